//! The child process that calls libcuda, so that no NVIDIA code runs in the parent. All unsafe code of the host
//! detection is in this file.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Write as _, stdout};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use super::driver_probe::MODE;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`, and its value for Prohibited.
const COMPUTE_MODE: c_int = 20;
const PROHIBITED: c_int = 2;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`, in every cuda.h.
const CC_MAJOR: c_int = 75;
const CC_MINOR: c_int = 76;

/// Calls libcuda if this process was started as a probe child ([`super::DriverProbe`]), and returns the exit status of
/// the process; `None` if it was started for another purpose. `main` must call this first.
pub fn run_probe_child() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != MODE {
        return None;
    }
    let seconds = words.next().and_then(|word| word.to_str()?.parse().ok()).unwrap_or(10);
    let answered = words.next().is_some_and(|library| probe_driver(&library, seconds).is_some());
    Some(if answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if this process may open a file for reading and writing. Does not open it, because that would wake a
/// GPU.
pub(super) fn may_open(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the string ends with NUL and outlives the call, which writes nothing.
    unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) == 0 }
}

fn probe_driver(library: &OsString, seconds: u32) -> Option<()> {
    // The answer is written to a copy of stdout; output of the driver is discarded.
    let mut out = File::from(stdout().as_fd().try_clone_to_owned().ok()?);
    be_a_child(seconds)?;
    let mut write_line = |line: &str| out.write_all(format!("{line}\n").as_bytes()).ok();
    let library = CString::new(library.as_bytes()).ok()?;
    // SAFETY: the path ends with NUL. Loading runs the code of the library, which is the purpose of this process: it
    // cannot affect other processes.
    let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if handle.is_null() {
        write_line(&format!("trouble libcuda.so.1 cannot be loaded: {}", last_error()))?;
        return write_line("end");
    }
    let driver = OpenDriver { handle };
    driver.report_facts(&mut write_line)?;
    write_line("end")
}

/// Configures this process: no core file, silent, and killed together with its parent or after `seconds`.
fn be_a_child(seconds: u32) -> Option<()> {
    let null = File::options().read(true).write(true).open("/dev/null").ok()?;
    // SAFETY: these calls do not access memory of this process; the descriptors are open, 1 and 2 are replaced and not
    // closed, and nothing has cached them: Rust's stdout has not been written to.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        let null = std::os::fd::AsRawFd::as_raw_fd(&null);
        (libc::dup2(null, 1) == 1 && libc::dup2(null, 2) == 2).then_some(())?;
        libc::alarm(seconds);
    }
    Some(())
}

fn last_error() -> String {
    // SAFETY: dlerror returns null or a string that ends with NUL and is valid until the next dl call of this thread;
    // it is copied immediately.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    };
    text.replace('\n', " ")
}

struct OpenDriver {
    handle: *mut c_void,
}

impl OpenDriver {
    fn load_symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle comes from dlopen and is never closed; the name ends with NUL.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }

    /// Reports the facts of the driver. Returns `None` if the parent no longer reads.
    fn report_facts(&self, write_line: &mut impl FnMut(&str) -> Option<()>) -> Option<()> {
        type Init = unsafe extern "C" fn(c_uint) -> c_int;
        type GetNumber = unsafe extern "C" fn(*mut c_int) -> c_int;
        type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
        let (Some(version), Some(init), Some(count), Some(device)) = (
            self.load_symbol(c"cuDriverGetVersion"),
            self.load_symbol(c"cuInit"),
            self.load_symbol(c"cuDeviceGetCount"),
            self.load_symbol(c"cuDeviceGet"),
        ) else {
            return write_line("trouble the libcuda found lacks functions that every libcuda has");
        };
        // SAFETY: cuda.h declares these four functions with these types, unchanged since CUDA 2.0; the addresses are
        // those that the library exports under their names.
        let (version, init, count, device) = unsafe {
            (
                std::mem::transmute::<*mut c_void, GetNumber>(version),
                std::mem::transmute::<*mut c_void, Init>(init),
                std::mem::transmute::<*mut c_void, GetNumber>(count),
                std::mem::transmute::<*mut c_void, GetDevice>(device),
            )
        };
        let mut number = 0;
        // SAFETY: the pointer refers to an int that outlives the call. The function does not require cuInit.
        if unsafe { version(&raw mut number) } == 0 {
            write_line(&format!("version {number}"))?;
        }
        // SAFETY: 0 is the only valid flag.
        let answer = unsafe { init(0) };
        write_line(&format!("init {answer}"))?;
        // SAFETY: the pointer refers to an int that outlives the call.
        if answer != 0 || unsafe { count(&raw mut number) } != 0 {
            return Some(());
        }
        write_line("gpus")?;
        for index in 0..number.clamp(0, 1024) {
            let mut handle = 0;
            // SAFETY: the pointer refers to an int that outlives the call; the index is less than the count.
            if unsafe { device(&raw mut handle, index) } == 0 {
                write_line(&self.describe_device(handle))?;
            } else {
                write_line("gpu - - - - -")?;
            }
        }
        Some(())
    }

    fn describe_device(&self, device: c_int) -> String {
        let [major, minor] =
            [CC_MAJOR, CC_MINOR].map(|which| self.attribute(device, which).map(|value| value.to_string()));
        // The fields of the line are separated by blanks, so the id must not contain one.
        let pci = self.text(device, c"cuDeviceGetPCIBusId").map(|id| id.to_ascii_lowercase().replace(' ', ""));
        let word = if self.attribute(device, COMPUTE_MODE) == Some(PROHIBITED) { "prohibited" } else { "gpu" };
        let facts = [major, minor, pci, self.uuid(device), self.text(device, c"cuDeviceGetName")];
        format!("{word} {}", facts.map(|fact| fact.unwrap_or_else(|| "-".to_owned())).join(" "))
    }

    fn attribute(&self, device: c_int, which: c_int) -> Option<c_int> {
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        // SAFETY: every cuda.h declares the function with this type; the pointer refers to an int, the device comes
        // from cuDeviceGet.
        unsafe {
            let ask = std::mem::transmute::<*mut c_void, Attribute>(self.load_symbol(c"cuDeviceGetAttribute")?);
            let mut value = 0;
            (ask(&raw mut value, which, device) == 0).then_some(value)
        }
    }

    fn text(&self, device: c_int, name: &CStr) -> Option<String> {
        type GetText = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        let mut buffer = [0_u8; 256];
        // SAFETY: cuDeviceGetName and cuDeviceGetPCIBusId have this type (text, its size, device); they write at
        // most as many bytes as the size argument, which is one less than the buffer, so that the buffer always
        // ends with NUL.
        unsafe {
            let ask = std::mem::transmute::<*mut c_void, GetText>(self.load_symbol(name)?);
            (ask(buffer.as_mut_ptr().cast(), 255, device) == 0).then_some(())?;
        }
        let text = CStr::from_bytes_until_nul(&buffer).ok()?.to_string_lossy();
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    }

    fn uuid(&self, device: c_int) -> Option<String> {
        type Uuid = unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int;
        let mut bytes = [0_u8; 16];
        // SAFETY: CUuuid has 16 bytes, the size of the buffer.
        unsafe {
            let ask = std::mem::transmute::<*mut c_void, Uuid>(self.load_symbol(c"cuDeviceGetUuid")?);
            (ask(&raw mut bytes, device) == 0).then_some(())?;
        }
        Some(format_uuid(bytes))
    }
}

/// Formats a UUID as nvidia-smi and `CUDA_VISIBLE_DEVICES` write it.
fn format_uuid(uuid: [u8; 16]) -> String {
    let mut text = "GPU".to_owned();
    for (index, byte) in uuid.iter().enumerate() {
        let dash = if matches!(index, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn uuids_use_nvidia_spelling() {
        let bytes = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(super::format_uuid(bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
