//! Says which cuDNN it runs on, and whether its kernel ran. Works without a GPU too.

use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn cudnnGetVersion() -> usize;
    fn demo_saxpy() -> *const c_char;
}

fn main() {
    // SAFETY: a C function of no arguments.
    println!("cuDNN says that it is {}", unsafe { cudnnGetVersion() });
    // SAFETY: a C function of no arguments, which returns null or a static string of cudart.
    let error = unsafe { demo_saxpy() };
    if error.is_null() {
        println!("the kernel has run");
    } else {
        // SAFETY: not null, and static.
        let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        println!("the kernel has not run, as is to be expected where there is no GPU: {error}");
    }
}
