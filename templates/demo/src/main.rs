//! Says which cuDNN it runs on, and whether its kernel ran. Works without a GPU too.

use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn cudnnGetVersion() -> usize;
    fn demo_saxpy() -> *const c_char;
}

fn main() {
    // SAFETY: both are plain C functions of no arguments; the second returns a static string of cudart.
    let (cudnn, kernel) = unsafe { (cudnnGetVersion(), CStr::from_ptr(demo_saxpy())) };
    println!("cuDNN says that it is {cudnn}; the kernel: {}", kernel.to_string_lossy());
}
