//! Prints the version of the loaded cuDNN, and whether the kernel ran. The program also works without a GPU.

use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn cudnnGetVersion() -> usize;
    fn demo_saxpy() -> *const c_char;
}

fn main() {
    // SAFETY: this C function takes no arguments.
    println!("cuDNN version: {}", unsafe { cudnnGetVersion() });
    // SAFETY: this C function takes no arguments and returns null or a static string of cudart.
    let error = unsafe { demo_saxpy() };
    if error.is_null() {
        println!("kernel: ok");
    } else {
        // SAFETY: the pointer is not null, and the string is static.
        let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        println!("kernel: {error} (this is expected without a GPU)");
    }
}
