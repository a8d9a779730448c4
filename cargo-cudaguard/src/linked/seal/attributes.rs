//! File capabilities, which Linux stores in an extended attribute. A new file has none, and only privileged users can set them.

#![allow(unsafe_code)]

use std::io;
use std::path::Path;

/// Gives the new file the capabilities of the old one.
///
/// # Errors
/// If the old file has capabilities and they cannot be set.
#[cfg(target_os = "linux")]
pub(super) fn keep_capabilities(new: &Path, old: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    const NAME: &std::ffi::CStr = c"security.capability";
    /// Size of the largest revision of the attribute, with room for later ones.
    const LARGEST: usize = 64;
    let old = CString::new(old.as_os_str().as_bytes())?;
    let new = CString::new(new.as_os_str().as_bytes())?;
    let mut value = [0_u8; LARGEST];
    // SAFETY: both strings end with NUL, and the buffer has the given length.
    let length = unsafe { libc::getxattr(old.as_ptr(), NAME.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    // Without capabilities, or on a file system without attributes, the call fails.
    let Some(value) = usize::try_from(length).ok().and_then(|length| value.get(..length)) else { return Ok(()) };
    // SAFETY: as above.
    let status = unsafe { libc::setxattr(new.as_ptr(), NAME.as_ptr(), value.as_ptr().cast(), value.len(), 0) };
    if status == 0 {
        return Ok(());
    }
    let why = io::Error::last_os_error();
    Err(io::Error::new(why.kind(), format!("its capabilities cannot be kept ({why}); run setcap after sealing")))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keep_capabilities(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}
