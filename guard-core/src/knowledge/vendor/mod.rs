//! Descriptors of NVIDIA's libraries with separate releases: names, version information in the files, dlopened parts,
//! and the variables that builds use to find them.
//!
//! All code uses the descriptors. Facts about a single library are in that library's file in this directory and in its
//! table in `data/`; to support another library, add a file.

mod catalogue;
mod cudart;
mod cudnn;
mod names;
mod nccl;
mod table;
mod windows;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::model::version::Version;
pub use catalogue::*;
pub use cudart::CUDART;
pub use cudart::HYBRID as HYBRID_CUDART;
pub use cudart::{cudart_in_paths, cudart_named};
pub use names::*;
pub use nccl::NCCL;
pub use table::LibraryTable;
pub(crate) use table::serves_later;
pub(crate) use windows::dll_of_soname;

/// cuDNN, the library with rows in the manifest, a table in the policy and a pin in the lock.
pub const CUDNN: &Library = &cudnn::CUDNN;

/// Number of descriptors.
pub const COUNT: usize = 3;

/// Every library with a descriptor, in the order of reports.
pub static ALL: [&Library; COUNT] = [CUDNN, &CUDART, &NCCL];

/// Returns the library with this key.
pub fn library_for_key(key: &str) -> Option<&'static Library> {
    ALL.into_iter().find(|library| library.key == key)
}

/// Returns the library with a descriptor that a file with this name is.
pub fn described_library(file: &str) -> Option<&'static Library> {
    ALL.into_iter().find(|library| library.is_named(file))
}

/// The driver's management library: it requires no toolkit and runs no GPU code.
pub const NVML: &str = "nvidia-ml";

/// A library of NVIDIA.
#[derive(Debug)]
pub struct Library {
    /// The key in host files, policies, locks and reports, and the name for `-l`: `cudnn`.
    pub key: &'static str,
    /// The name in messages: `cuDNN`.
    pub name: &'static str,
    /// The file name before `.so`: `libcudnn`.
    pub stem: &'static str,
    /// The majors to search whose soname ends with only the major; some do not exist yet.
    pub majors: RangeInclusive<u32>,
    /// The version suffixes of older sonames, newest first.
    pub older_sonames: &'static [&'static str],
    /// Libraries that it loads with dlopen; those that contain its version come first.
    pub parts: &'static [Part],
    /// The names with which a build finds it.
    pub names: LibraryNames,
    /// Evidence in a file that it uses this library.
    pub traces: Traces,
    /// The function that returns its version, and the encoding of the result.
    pub asked: Option<VersionGetter>,
    /// The function that returns the release of the cudart inside, in the part that contains the version: the number is
    /// in its code. The library's own file has, next to the function of [`Self::asked`], the major and minor from which
    /// it builds the names of its parts.
    pub made_with: Option<&'static str>,
    /// The table of its releases; `None` if no rule needs one.
    pub table: Option<&'static LibraryTable>,
}

/// A library that another one loads with dlopen.
#[derive(Debug)]
pub struct Part {
    /// The major that it belongs to.
    pub major: u32,
    /// The file name: `libcudnn_graph.so.9`.
    pub file: &'static str,
    /// The exported data symbol with its packed version; empty if the symbol is not read and a build does not need the
    /// part.
    pub symbol: &'static str,
    /// True if the library only aborts without it.
    pub needed: bool,
    /// The location of its release in its code, for parts without a version symbol.
    pub in_code: InCode,
}

/// The location of a part's release in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InCode {
    /// Unknown.
    Unknown,
    /// In this exported function, which writes the release to a log.
    Logged(&'static str),
    /// In a function that it registers with another part. That part passes its release, and the function returns 1002
    /// if they differ.
    Compared,
}

/// The names with which a build finds a library. Empty if it comes with the toolkit or is not checked for builds.
#[derive(Debug)]
pub struct LibraryNames {
    /// The headers that define its version, the most certain first.
    pub headers: &'static [&'static str],
    /// The macros of these headers: major, minor and patch.
    pub macros: [&'static str; 3],
    /// The variable with the directory of its headers.
    pub include: &'static str,
    /// Variables with the path of its file or of the directory.
    pub files: &'static [&'static str],
    /// Variables with its root, in the order of most build scripts.
    pub roots: &'static [&'static str],
}

impl LibraryNames {
    const NONE: Self = Self { headers: &[], macros: ["", "", ""], include: "", files: &[], roots: &[] };
}

/// Evidence in a file that it uses a library, whether the file is stripped or not.
#[derive(Debug)]
pub struct Traces {
    /// The prefix of its functions, if no other library has the same: `cudnn`.
    pub functions: Option<&'static str>,
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

/// A function that returns the version as one number: `major * scale + minor * 100 + patch`.
#[derive(Clone, Copy, Debug)]
pub struct VersionGetter {
    /// The function.
    pub function: &'static str,
    /// Pairs of the smallest result and the scale of its major, largest first.
    pub scales: &'static [(u64, u64)],
}

impl VersionGetter {
    /// Decodes a result of the function.
    pub fn version_of_answer(&self, answer: u64) -> Option<Version> {
        let (_, scale) = self.scales.iter().find(|(from, _)| answer >= *from)?;
        let [major, minor, patch] =
            [answer / scale, answer % scale / 100, answer % 100].map(|number| u32::try_from(number).ok());
        Some(Version::new(major?, minor?, patch?))
    }
}

impl Library {
    /// Returns the soname of this release.
    pub fn soname(&self, version: Version) -> String {
        let Version { major, minor, .. } = version;
        let whole = format!("{major}.{minor}");
        if major >= *self.majors.start() {
            return format!("{}.so.{major}", self.stem);
        }
        let of_major = format!("{major}.");
        let known = self.older_sonames.iter().find(|number| **number == whole);
        let known =
            known.or_else(|| self.older_sonames.iter().find(|number| format!("{number}.").starts_with(&of_major)));
        format!("{}.so.{}", self.stem, known.copied().unwrap_or(&whole))
    }

    /// Returns every soname to search, newest first.
    pub fn sonames(&self) -> impl Iterator<Item = String> + '_ {
        let majors = self.majors.clone().rev().map(|major| major.to_string());
        let older = self.older_sonames.iter().map(|number| (*number).to_owned());
        majors.chain(older).map(|number| format!("{}.so.{number}", self.stem))
    }

    /// Returns the file name that a linker searches: `libcudnn.so`.
    pub fn link_name(&self) -> String {
        format!("{}.so", self.stem)
    }

    /// Returns true if a file of this name is this library, in any release: `libcudnn.so`, `libcudnn.so.9`, `cudnn64_9.dll`, and
    /// `libcudnn-1a2b3c4d.so.9` as auditwheel renames it.
    pub fn is_named(&self, file: &str) -> bool {
        plain_name(file).strip_prefix(self.stem).is_some_and(|rest| rest.starts_with(".so"))
    }

    /// Returns what follows `.so.` in the soname of this library's file.
    pub fn soname_version<'name>(&self, file: &'name str) -> Option<Cow<'name, str>> {
        match plain_name(file) {
            Cow::Borrowed(name) => Some(name.strip_prefix(self.stem)?.strip_prefix(".so.")?.into()),
            Cow::Owned(name) => Some(name.strip_prefix(self.stem)?.strip_prefix(".so.")?.to_owned().into()),
        }
    }

    /// Returns the major in its soname.
    pub fn major(&self, soname: &str) -> Option<u32> {
        self.soname_version(soname)?.split('.').next()?.parse().ok()
    }

    /// Iterates over the parts of a major.
    pub fn parts_of_major(&self, major: u32) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts.iter().filter(move |part| part.major == major)
    }

    /// Iterates over the parts of a major that are required.
    pub fn needed_parts(&self, major: u32) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts_of_major(major).filter(|part| part.needed)
    }

    /// Returns the table of its releases; empty if there is none.
    pub fn release_table(&self) -> &'static LibraryTable {
        const NOTHING: &LibraryTable = &LibraryTable::empty();
        self.table.unwrap_or(NOTHING)
    }
}

/// Returns the numbers after `.so.` in the file name of a library: `libcudart.so.13.0.96` → [13, 0, 96].
pub fn numbers_of(file: &str) -> Vec<u32> {
    let Some((_, suffix)) = file.split_once(".so.") else { return Vec::new() };
    suffix.split('.').map_while(|part| part.parse().ok()).collect::<Vec<_>>()
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
