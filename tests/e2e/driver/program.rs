//! Program with kernels that opens the driver library at run time, like most Rust programs.
//!
//! Without an argument it prints that it ran. `check` queries the guard; `use` loads the kernels on all visible GPUs;
//! `fork` does this in a child; `children` prints the number of children that the program did not create.

use std::ffi::{c_char, c_int, c_void, CStr};

#[repr(C, align(16))]
struct Aligned<T: ?Sized>(T);
static KERNELS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin")));

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

struct Driver(*mut c_void);

impl Driver {
    fn open() -> Option<Self> {
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) };
        (!library.is_null()).then_some(Self(library))
    }

    fn function(&self, name: &CStr) -> *mut c_void {
        let address = unsafe { dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "libcuda has no {name:?}");
        address
    }
}

macro_rules! call {
    ($driver:expr, $name:literal, ($($kind:ty),*), $($argument:expr),*) => {{
        let function: unsafe extern "C" fn($($kind),*) -> c_int =
            unsafe { std::mem::transmute($driver.function($name)) };
        unsafe { function($($argument),*) }
    }};
}

fn use_driver() {
    let Some(driver) = Driver::open() else { return println!("no libcuda") };
    let (mut version, mut count) = (0, 0);
    let answer = call!(driver, c"cuDriverGetVersion", (*mut c_int), &mut version);
    println!("cuDriverGetVersion {answer}: {version}");
    let answer = call!(driver, c"cuInit", (u32), 0);
    println!("cuInit {answer}");
    if answer != 0 {
        return;
    }
    call!(driver, c"cuDeviceGetCount", (*mut c_int), &mut count);
    for number in 0..count {
        let (mut device, mut major, mut minor) = (0, 0, 0);
        let (mut context, mut module) = (std::ptr::null_mut(), std::ptr::null_mut());
        call!(driver, c"cuDeviceGet", (*mut c_int, c_int), &mut device, number);
        call!(driver, c"cuDeviceGetAttribute", (*mut c_int, c_int, c_int), &mut major, 75, device);
        call!(driver, c"cuDeviceGetAttribute", (*mut c_int, c_int, c_int), &mut minor, 76, device);
        call!(driver, c"cuDevicePrimaryCtxRetain", (*mut *mut c_void, c_int), &mut context, device);
        call!(driver, c"cuCtxSetCurrent", (*mut c_void), context);
        let kernels = KERNELS.0.as_ptr().cast::<c_void>();
        let answer = call!(driver, c"cuModuleLoadData", (*mut *mut c_void, *const c_void), &mut module, kernels);
        println!("GPU {number}, compute capability {major}.{minor}: kernels loaded, {answer}");
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("check") => println!("{}", cudaguard::check()),
        Some("use") => use_driver(),
        Some("fork") => unsafe {
            let child = fork();
            if child == 0 {
                use_driver();
                _exit(7);
            }
            let mut status = 0;
            assert_eq!(waitpid(child, &mut status, 0), child);
            println!("the child ended with {}", status >> 8);
        },
        Some("children") => println!("children: {}", unsafe { waitpid(-1, std::ptr::null_mut(), 1) }),
        Some(other) => panic!("{other}?"),
    }
    println!("main ran");
}
