//! NVIDIA's libraries: the catalogue of their names, owners and versions, and lookups by the name of a file.

mod catalogue;
mod names;
mod windows;

use std::borrow::Cow;

use cudaguard::internal::cudnn::{CudnnPart, VersionGetter, numbers_of};
use cudaguard::internal::version::Version;

pub use catalogue::*;
pub use names::*;
pub use windows::{use_names_of_windows, with_names_of_windows};

/// Number of the libraries in [`DESCRIBED`].
pub const COUNT: usize = 3;

/// The libraries that cudaguard detects in programs and on machines, in the order of reports.
pub static DESCRIBED: [&Library; COUNT] = [&CUDNN, &CUDART, &NCCL];

/// Returns the described library with this key.
pub fn library_for_key(key: &str) -> Option<&'static Library> {
    DESCRIBED.into_iter().find(|library| library.key == key)
}

/// Returns the described library that a file with this name is.
pub fn described_library(file: &str) -> Option<&'static Library> {
    DESCRIBED.into_iter().find(|library| library.is_named(file))
}

/// The driver's management library: it requires no toolkit and runs no GPU code.
pub const NVML: &str = "nvidia-ml";

/// Evidence in a file that it uses a library, whether the file is stripped or not.
#[derive(Clone, Copy, Debug)]
pub struct Traces {
    /// The prefix of its functions, if no other library has the same: `cudnn`.
    pub functions: Option<&'static str>,
    /// The function with that prefix that returns the version; calls of it alone are no evidence.
    pub getter: &'static str,
    /// If they have no such prefix, functions that an object references if it uses the library.
    pub wanted: &'static [&'static str],
    /// The function that programs look up first after dlopen.
    pub opened_for: &'static str,
    /// The prefix of its status codes. A table of them is linked into programs that print them.
    pub answers: Option<&'static str>,
    /// Strings that a file contains, all of them, if the library is linked into it.
    pub inside: &'static [CodeMark],
    /// The equivalent for a PE file, with one set for each way in which the library is linked; empty if it does not exist for
    /// Windows.
    pub inside_pe: &'static [&'static [CodeMark]],
}

impl Traces {
    /// Traces of a library that is not described.
    pub(super) const NONE: Self =
        Self { functions: None, getter: "", wanted: &[], opened_for: "", answers: None, inside: &[], inside_pe: &[] };
}

/// A string in the code of a library.
#[derive(Debug)]
pub struct CodeMark {
    /// The string.
    pub text: &'static str,
    /// The separator of the numbers of the version that follows; `None` if no version follows.
    pub version: Option<char>,
}

impl CodeMark {
    /// Parses the version at the start of the bytes that follow the string.
    pub fn version_after(&self, behind: &[u8]) -> Option<Version> {
        let between = self.version?;
        let length = behind.iter().take_while(|byte| byte.is_ascii_digit() || char::from(**byte) == between).count();
        let text = std::str::from_utf8(&behind[..length]).ok()?;
        let mut numbers = text.split(between).map(|number| number.parse().ok());
        Some(Version::new(numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

/// Decodes a result of a function that returns a version.
pub fn version_of_answer(getter: &VersionGetter, answer: u64) -> Option<Version> {
    let (_, scale) = getter.scales.iter().find(|(from, _)| answer >= *from)?;
    let [major, minor, patch] =
        [answer / scale, answer % scale / 100, answer % 100].map(|number| u32::try_from(number).ok());
    Some(Version::new(major?, minor?, patch?))
}

impl Library {
    /// Returns the soname of this release.
    pub fn soname(&self, version: Version) -> String {
        let Version { major, minor, .. } = version;
        let whole = format!("{major}.{minor}");
        if major >= *self.majors.start() {
            return format!("{}.so.{major}", self.stem());
        }
        let of_major = format!("{major}.");
        let known = self.older_sonames.iter().find(|number| **number == whole);
        let known =
            known.or_else(|| self.older_sonames.iter().find(|number| format!("{number}.").starts_with(&of_major)));
        format!("{}.so.{}", self.stem(), known.copied().unwrap_or(&whole))
    }

    /// Returns every soname to search, newest first.
    pub fn sonames(&self) -> impl Iterator<Item = String> + '_ {
        let majors = self.majors.clone().rev().map(|major| major.to_string());
        let older = self.older_sonames.iter().map(|number| (*number).to_owned());
        majors.chain(older).map(|number| format!("{}.so.{number}", self.stem()))
    }

    /// Iterates over the parts of a major.
    pub fn parts_of_major(&self, major: u32) -> impl Iterator<Item = &'static CudnnPart> + use<> {
        self.parts.iter().filter(move |part| part.major == major)
    }

    /// Returns the file name that a linker searches: `libcudnn.so`.
    pub fn link_name(&self) -> String {
        format!("{}.so", self.stem())
    }

    /// Returns true if a file of this name is this library, in any release: `libcudnn.so`, `libcudnn.so.9`, `cudnn64_9.dll`, and
    /// `libcudnn-1a2b3c4d.so.9` as auditwheel renames it.
    pub fn is_named(&self, file: &str) -> bool {
        plain_name(file).strip_prefix(self.stem()).is_some_and(|rest| rest.starts_with(".so"))
    }

    /// Returns what follows `.so.` in the soname of this library's file.
    pub fn soname_version<'name>(&self, file: &'name str) -> Option<Cow<'name, str>> {
        match plain_name(file) {
            Cow::Borrowed(name) => Some(name.strip_prefix(self.stem())?.strip_prefix(".so.")?.into()),
            Cow::Owned(name) => Some(name.strip_prefix(self.stem())?.strip_prefix(".so.")?.to_owned().into()),
        }
    }

    /// Returns the major in its soname.
    pub fn major(&self, soname: &str) -> Option<u32> {
        self.soname_version(soname)?.split('.').next()?.parse().ok()
    }
}

/// Returns the first number after `.so.`; of a DLL of NVIDIA's, the first of its soname.
pub fn major_of(soname: &str) -> Option<u32> {
    numbers_of(&plain_name(soname)).first().copied()
}

/// Returns the soname of a library without the hash that auditwheel adds so that two packages' copies do not meet:
/// `libcudart-e409450e.so.11.0` is `libcudart.so.11.0`. A copy of libcuda has the name of its file, which ends with the release of
/// the driver: `libcuda-1a2b3c4d.so.535.261.03` is `libcuda.so.1`. For a DLL of NVIDIA's, returns its soname on Linux.
pub fn plain_name(file: &str) -> Cow<'_, str> {
    if let Some(soname) = windows::soname_of_dll(file) {
        return soname.into();
    }
    match file.find(".so").map(|at| file.split_at(at)) {
        Some((stem, _)) if stem != without_mark(stem) && without_mark(stem) == "libcuda" => "libcuda.so.1".into(),
        Some((stem, rest)) if without_mark(stem) != stem => format!("{}{rest}", without_mark(stem)).into(),
        _ => file.into(),
    }
}

/// Removes that hash, a dash or a dot and eight hexadecimal digits, from the end of a stem.
fn without_mark(stem: &str) -> &str {
    const MARK: usize = 9;
    let Some((own, mark)) = stem.len().checked_sub(MARK).and_then(|at| stem.split_at_checked(at)) else { return stem };
    let hash = mark.strip_prefix(['-', '.']);
    if hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit())) { own } else { stem }
}

#[cfg(test)]
mod tests;
