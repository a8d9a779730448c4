//! NVIDIA's libraries that have releases of their own, one descriptor for each: what it is called, what in its files tells
//! its version, which parts it opens by itself, and which words lead to it.
//!
//! All code asks the descriptor. What holds for one library alone stands in that library's file here and in its table in
//! `data/`, and a further library is a further file.

mod cudart;
mod cudnn;
mod nccl;
mod table;

use std::borrow::Cow;
use std::ops::RangeInclusive;

pub use cudart::CUDART;
pub(crate) use cudart::cudart_named;
pub use table::LibraryTable;
pub(crate) use table::serves_later;

use crate::version::Version;

/// The library for which a manifest has rows, a policy a table of its own and a lock a pin.
pub const CUDNN: &Library = &cudnn::CUDNN;

/// How many there are.
pub const COUNT: usize = 3;

/// Every library that has a descriptor, in the order in which reports list them.
pub static ALL: [&Library; COUNT] = [CUDNN, &CUDART, &nccl::NCCL];

/// The library with this key.
pub fn library_for_key(key: &str) -> Option<&'static Library> {
    ALL.into_iter().find(|library| library.key == key)
}

/// The driver's management library: it asks for no toolkit and runs nothing on a GPU.
pub const NVML: &str = "nvidia-ml";

/// Libraries of the toolkit, by their files' names.
#[cfg(feature = "command")]
pub(crate) const OF_TOOLKIT: [&str; 14] = [
    "libcudart",
    "libcublas",
    "libcublasLt",
    "libcufft",
    "libcufftw",
    "libcufile",
    "libcurand",
    "libcusolver",
    "libcusolverMg",
    "libcusparse",
    "libnppc",
    "libnvrtc",
    "libnvJitLink",
    "libnvjpeg",
];

/// NVIDIA's other libraries that hold kernels, by their files' names.
#[cfg(feature = "command")]
const BESIDE_TOOLKIT: [&str; 4] = ["libcusparseLt", "libcutensor", "libcutensorMg", "libnvshmem_host"];

/// Whether a library of this soname is one that NVIDIA publishes: by its whole name, for what only begins like one may be
/// anybody's. Parts of one with its major at the end count, also those that no table knows yet.
#[cfg(feature = "command")]
pub(crate) fn is_nvidia_soname(soname: &str) -> bool {
    let name = plain_name(soname);
    let stem = name.split(".so").next().unwrap_or_default();
    let is_part = |library: &Library| {
        let part = stem.strip_prefix(library.stem);
        part == Some("")
            || !library.parts.is_empty()
                && part.is_some_and(|part| part.starts_with('_'))
                && major_of(&name).is_some_and(|major| library.majors.contains(&major))
    };
    // `libnppial`, `libnppist`: NPP is cut up by what it does.
    let npp = stem.strip_prefix("libnpp").is_some_and(|rest| rest.len() <= 4 && rest.starts_with(['c', 'i', 's']));
    OF_TOOLKIT.contains(&stem) || BESIDE_TOOLKIT.contains(&stem) || npp || ALL.into_iter().any(is_part)
}

/// Whether a name, in a `links` key or between `lib` and `.so`, is one of a library that comes with the toolkit or the driver, or
/// by itself: what no table knows yet is told all the same.
pub fn is_nvidias(name: &str) -> bool {
    const WHOLE: [&str; 6] = ["cuda", "nvrtc", "nvml", NVML, "nvjpeg", "nvjitlink"];
    const STARTS: [&str; 12] = [
        "cublas", "cufft", "cufile", "cupti", "curand", "cusolver", "cusparse", "cutensor", "nvtx", "npp", "cuda_",
        "cuda-",
    ];
    let stem = name.to_ascii_lowercase();
    let stem = stem.strip_prefix("lib").unwrap_or(&stem);
    library_for_key(stem).is_some() || WHOLE.contains(&stem) || STARTS.iter().any(|start| stem.starts_with(start))
}

/// A library of NVIDIA's.
#[derive(Debug)]
pub struct Library {
    /// In host files, policies, locks and reports, and behind `-l`: `cudnn`.
    pub key: &'static str,
    /// To people: `cuDNN`.
    pub name: &'static str,
    /// Its file's name before `.so`: `libcudnn`.
    pub stem: &'static str,
    /// The majors to look for whose soname ends with the major alone; some do not exist yet.
    pub majors: RangeInclusive<u32>,
    /// What the sonames of older releases end with, the newest first.
    pub older_sonames: &'static [&'static str],
    /// Libraries that it opens by itself, those that tell its version first.
    pub parts: &'static [Part],
    /// Whether the file of the library itself holds the text of [`Traces::inside`] that tells its version, and is asked for it
    /// where its name does not tell.
    pub own_text: bool,
    /// Under which names a build finds it.
    pub names: LibraryNames,
    /// What in a file shows that it uses this library.
    pub traces: Traces,
    /// The function that tells its version, and how it counts.
    pub asked: Option<VersionGetter>,
    /// The function of the part that tells its version which answers with the release of the cudart inside: that number stands in
    /// its code. Beside the function of [`Self::asked`] in the library's own file stand the major and minor by which
    /// it names its parts.
    pub made_with: Option<&'static str>,
    /// What is known of its releases; `None`: no rule asks.
    pub table: Option<fn() -> &'static LibraryTable>,
}

/// A library that another one opens by itself.
#[derive(Debug)]
pub struct Part {
    /// Of this major.
    pub major: u32,
    /// `libcudnn_graph.so.9`.
    pub file: &'static str,
    /// The data symbol that it exports with its packed version; empty: it is not asked, and a build does without it.
    pub symbol: &'static str,
    /// Without it the library does nothing but abort.
    pub needed: bool,
    /// Where its release stands in its code, for parts without a word.
    pub in_code: InCode,
}

/// Where the release of a part stands in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InCode {
    /// Nobody knows.
    Unknown,
    /// In this function, which it exports: it writes the release to a log.
    Logged(&'static str),
    /// In a function that it registers with another part, is called with the release of that one, and answers 1002 where
    /// its own is another.
    Compared,
}

/// Under which names a build finds a library; none, where it comes with the toolkit or no build is judged by it.
#[derive(Debug)]
pub struct LibraryNames {
    /// The headers that define its version, the surest first.
    pub headers: &'static [&'static str],
    /// The macros of these headers: major, minor and patch.
    pub macros: [&'static str; 3],
    /// The variable that names the folder of its headers.
    pub include: &'static str,
    /// Variables that name its file, or the folder of it.
    pub files: &'static [&'static str],
    /// Variables that name its root, in the order of most build scripts.
    pub roots: &'static [&'static str],
}

impl LibraryNames {
    const NONE: Self = Self { headers: &[], macros: ["", "", ""], include: "", files: &[], roots: &[] };
}

/// What in a file shows that it uses a library, stripped or not.
#[derive(Debug)]
pub struct Traces {
    /// How the names of its functions begin, where those of no other library do: `cudnn`.
    pub functions: Option<&'static str>,
    /// Where they do: functions that an object asks for which uses it.
    pub wanted: &'static [&'static str],
    /// The function that whoever opens it by name looks up first.
    pub opened_for: &'static str,
    /// How the names of its answers begin, of which a table comes with whatever prints them.
    pub answers: Option<&'static str>,
    /// Texts that stand, all of them, in a file that holds the library itself.
    pub inside: &'static [CodeMark],
}

/// A text that a library's code brings along.
#[derive(Debug)]
pub struct CodeMark {
    /// The text.
    pub text: &'static str,
    /// What stands between the numbers of the version that follows it; `None`: none follows.
    pub version: Option<char>,
}

impl CodeMark {
    /// The version at the start of what stands behind the text.
    pub fn version_after(&self, behind: &[u8]) -> Option<Version> {
        let between = self.version?;
        let length = behind.iter().take_while(|byte| byte.is_ascii_digit() || char::from(**byte) == between).count();
        let text = std::str::from_utf8(&behind[..length]).ok()?;
        let mut numbers = text.split(between).map(|number| number.parse().ok());
        Some(Version::new(numbers.next()??, numbers.next()??, numbers.next()??))
    }
}

/// A function that answers with the version as one number: `major * scale + minor * 100 + patch`.
#[derive(Debug)]
pub struct VersionGetter {
    /// The function.
    pub function: &'static str,
    /// From which answer on the major is counted by which scale, the largest first.
    pub scales: &'static [(u64, u64)],
}

impl VersionGetter {
    /// The version that an answer means.
    pub fn version_of_answer(&self, answer: u64) -> Option<Version> {
        let (_, scale) = self.scales.iter().find(|(from, _)| answer >= *from)?;
        let number = |number: u64| u32::try_from(number).ok();
        Some(Version::new(number(answer / scale)?, number(answer % scale / 100)?, number(answer % 100)?))
    }
}

impl Library {
    /// The soname of this release.
    pub fn soname(&self, version: Version) -> String {
        let Version { major, minor, .. } = version;
        let whole = format!("{major}.{minor}");
        if major >= *self.majors.start() {
            return format!("{}.so.{major}", self.stem);
        }
        let of_major = |number: &&&str| number.split('.').next().is_some_and(|first| first == major.to_string());
        let known = self.older_sonames.iter().find(|number| **number == whole);
        let known = known.or_else(|| self.older_sonames.iter().find(of_major));
        format!("{}.so.{}", self.stem, known.copied().unwrap_or(&whole))
    }

    /// Every soname to look for, the newest first.
    pub fn sonames(&self) -> impl Iterator<Item = String> + '_ {
        let majors = self.majors.clone().rev().map(|major| major.to_string());
        let older = self.older_sonames.iter().map(|number| (*number).to_owned());
        majors.chain(older).map(|number| format!("{}.so.{number}", self.stem))
    }

    /// The name that a linker looks for: `libcudnn.so`.
    pub fn link_name(&self) -> String {
        format!("{}.so", self.stem)
    }

    /// Whether a file of this name is this library, of whatever release: `libcudnn.so`, `libcudnn.so.9`, and
    /// `libcudnn-1a2b3c4d.so.9` as wheel repair calls it.
    pub fn is_named(&self, file: &str) -> bool {
        file.strip_prefix(self.stem).is_some_and(|rest| strip_mark(rest).starts_with(".so"))
    }

    /// What stands behind `.so.` in the name of this library's file.
    pub fn soname_version<'name>(&self, file: &'name str) -> Option<&'name str> {
        strip_mark(file.strip_prefix(self.stem)?).strip_prefix(".so.")
    }

    /// The major in its soname.
    pub fn major(&self, soname: &str) -> Option<u32> {
        self.soname_version(soname).and_then(|_| major_of(soname))
    }

    /// The version in a file's whole name, `libcudnn.so.9.10.2`; `None` where it has no three numbers.
    pub fn version_in_name(&self, file: &str) -> Option<Version> {
        let mut numbers = self.soname_version(file)?.split('.').map(|number| match number.len() {
            1..=3 if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok(),
            _ => None,
        });
        let version = Version::new(numbers.next()??, numbers.next()??, numbers.next()??);
        version.packed().map(Version::from_packed)
    }

    /// The parts of a major.
    pub fn parts_of_major(&self, major: u32) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts.iter().filter(move |part| part.major == major)
    }

    /// Those without which it does not work.
    pub fn needed_parts(&self, major: u32) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts_of_major(major).filter(|part| part.needed)
    }

    /// What is known of its releases: nothing, where no table has any.
    pub fn release_table(&self) -> &'static LibraryTable {
        static NOTHING: LibraryTable = LibraryTable::empty();
        self.table.map_or(&NOTHING, |table| table())
    }
}

/// The numbers behind `.so.` in the name of any library's file: `libcudart.so.13.0.96` → [13, 0, 96].
pub fn numbers_of(file: &str) -> Vec<u32> {
    let Some((_, suffix)) = file.split_once(".so.") else { return Vec::new() };
    suffix.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The first of them.
pub fn major_of(soname: &str) -> Option<u32> {
    numbers_of(soname).first().copied()
}

/// A library's name without the mark that wheel repair puts into it, so that two packages' copies do not meet:
/// `libcudart-e409450e.so.11.0` is `libcudart.so.11.0`.
pub fn plain_name(file: &str) -> Cow<'_, str> {
    match file.find('-').map(|at| file.split_at(at)) {
        Some((stem, rest)) if strip_mark(rest) != rest => format!("{stem}{}", strip_mark(rest)).into(),
        _ => file.into(),
    }
}

/// What stands behind a library's stem, without that mark: a dash and eight hexadecimal digits.
fn strip_mark(rest: &str) -> &str {
    const MARK: usize = 9;
    let is_mark = |mark: &str| mark.strip_prefix('-').is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()));
    match rest.split_at_checked(MARK) {
        Some((mark, behind)) if is_mark(mark) && behind.starts_with(".so") => behind,
        _ => rest,
    }
}

#[cfg(test)]
mod tests;
