//! Which version a library is, told by its file: nothing is loaded.

use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::binary;
use crate::elf::{Elf, machine};
use crate::host::Loader;
use crate::loader::{Graph, Look};
use crate::mapped_file::Contents;
use crate::vendor::{Asked, InCode, Library, Part};
use crate::version::{CudaVersion, Version};

/// The version of the library whose file this is: by its real name, else by a part beside it, else by its own text.
pub(crate) fn of_file(library: &Library, file: &Path) -> Option<Version> {
    let major = || library.major(file.file_name()?.to_str()?);
    let by_part = || {
        let mut parts = library.needed_parts(major()?);
        parts.find_map(|part| word(&file.with_file_name(part.file), part.symbol))
    };
    in_name(library, file)
        .or_else(by_part)
        .or_else(|| library.own_text.then(|| binary::version_inside(library, file))?)
}

/// The version in the name of the file behind every link.
pub(crate) fn in_name(library: &Library, file: &Path) -> Option<Version> {
    numbers_in_name(file, &format!("{}.so.", library.stem))
}

/// The version behind this stem in the name of the file behind every link; three numbers, or it is none.
pub(crate) fn numbers_in_name(file: &Path, stem: &str) -> Option<Version> {
    let real = std::fs::canonicalize(file).ok()?;
    let numbers = real.file_name()?.to_str()?.strip_prefix(stem)?;
    (numbers.split('.').count() >= 3).then(|| numbers.parse().ok()).flatten()
}

/// The version of an inner library: by its word, else by its real name, else by its code.
pub(crate) fn of_part(library: &Library, file: &Path, name: &str, symbol: &str) -> Option<Version> {
    let stem = || Some(format!("{}.so.", name.split_once(".so")?.0));
    let part = || library.parts.iter().find(|part| part.file == name);
    word(file, symbol).or_else(|| numbers_in_name(file, &stem()?)).or_else(|| in_code(library, part()?, file))
}

/// The packed version that an inner library exports. A word without a plausible major is none.
pub(crate) fn word(file: &Path, symbol: &str) -> Option<Version> {
    if symbol.is_empty() {
        return None;
    }
    let data = Contents::open(file).ok()?;
    let version = Version::from_packed(Elf::parse(&data).ok()?.exported_u32(symbol)?);
    (1..100).contains(&version.major).then_some(version)
}

/// The part of this name that a library, the object `index`, would open: it asks for its own full version
/// first, then for shorter ones.
pub(crate) fn inner_file(graph: &Graph, index: usize, file: &str, version: Option<Version>) -> Option<PathBuf> {
    let (stem, _) = file.split_once(".so")?;
    let names = version
        .iter()
        .flat_map(|version| [format!("{stem}.so.{version}"), format!("{stem}.so.{}.{}", version.major, version.minor)]);
    names
        .chain([file.to_owned()])
        .find_map(|name| graph.file(index, &name).filter(|candidate| candidate.look == Look::Usable))
        .map(|candidate| candidate.path)
}

/// So much of a function's code is looked at, as the shim does (measured: up to 1731 bytes with what stands before it).
const LOOKED_AT: usize = 2048;

/// So much before the function that is asked for the version may stand what puts it into names (measured: 704 bytes).
const BEFORE: u64 = 1024;

/// The release of the cudart that this part was made with: `mov $13000, %eax` in the function that answers with it.
pub(crate) fn made_with(library: &Library, part: &Path) -> Option<CudaVersion> {
    let data = Contents::open(part).ok()?;
    let elf = Elf::parse(&data).ok().filter(|elf| elf.machine() == machine::X86_64)?;
    let code = first(elf.exported_code(library.made_with?, 0)?);
    let numbers = code.windows(5).filter(|bytes| bytes[0] == 0xb8).map(|bytes| number(&bytes[1..]));
    only(numbers.filter(|number| CudaVersion::is_plausible(*number))).map(CudaVersion::from_int)
}

/// The version of a part by its code, where that says one of its major.
fn in_code(library: &Library, part: &Part, file: &Path) -> Option<Version> {
    const EXECUTABLE: u64 = 4;
    let asked = library.asked.as_ref()?;
    if part.in_code == InCode::Unknown {
        return None;
    }
    let data = Contents::open(file).ok()?;
    let elf = Elf::parse(&data).ok().filter(|elf| elf.machine() == machine::X86_64)?;
    let found = match part.in_code {
        InCode::Unknown => Vec::new(),
        InCode::Logged(function) => {
            // `movl $91501, -65712(%rbp)`
            let code = first(elf.exported_code(function, 0)?);
            let logged = code.windows(10).filter(|bytes| bytes[..2] == *b"\xc7\x85").map(|bytes| number(&bytes[6..]));
            logged.filter_map(|number| asked.version(number.into())).collect()
        }
        InCode::Compared => {
            let code = elf.sections().filter(|section| section.flags & EXECUTABLE != 0);
            code.flat_map(|section| compared(section.data, asked)).collect()
        }
    };
    only(found.into_iter().filter(|version| version.major == part.major))
}

/// Releases that functions of this code compare with the one that they are called with, two ways of 9.0 to 9.25 and of 9.26 and
/// later: `mov $1002, %eax` and `cmp $91501, %edi` beside each other; or a division by 10000, and behind it
/// `mov $1, %r9d` or `xor %r9d, %r9d` and then `movabs $0x1a00000009, %r8`.
fn compared(code: &[u8], asked: &Asked) -> Vec<Version> {
    const MISMATCH: [u8; 4] = 1002u32.to_le_bytes();
    const BY_10_000: [u8; 4] = 0xd1b7_1759_u32.to_le_bytes();
    /// So much stands between the two, and behind the division, at most (measured: 4 and 79 bytes).
    const GAP: usize = 8;
    const REST: usize = 128;
    let whole = |at: usize| {
        let compares = |from: Option<usize>| {
            let bytes = code.get(from?..)?.get(..6)?;
            (bytes[..2] == *b"\x81\xff").then(|| asked.version(number(&bytes[2..]).into()))?
        };
        let moves = at > 0 && (0xb8..=0xbf).contains(&code[at - 1]);
        let near = |gap: usize| compares(Some(at + 4 + gap)).or_else(|| compares(at.checked_sub(7 + gap)));
        (0..=GAP).filter(|_| moves).find_map(near)
    };
    let apart = |at: usize| {
        let rest = code.get(at..)?;
        let rest = &rest[..rest.len().min(REST)];
        let end = memmem::find(rest, b"\x49\xb8").filter(|end| end + 10 <= rest.len())?;
        let patch = match memmem::find(&rest[..end], b"\x41\xb9") {
            Some(at) => number(rest.get(at + 2..)?.get(..4)?),
            None => memmem::find(&rest[..end], b"\x45\x31\xc9").map(|_| 0)?,
        };
        let version = Version::new(number(&rest[end + 2..]), number(&rest[end + 6..]), patch);
        version.packed().map(|_| version)
    };
    let ways = memmem::find_iter(code, &MISMATCH).filter_map(whole);
    ways.chain(memmem::find_iter(code, &BY_10_000).filter_map(apart)).collect()
}

/// What the file of the library itself says of its release, which may not be that of its parts: by its name, else by its
/// code, which asks for `%s.9.15.1` and `%s.9.15` before anything else: `mov $15, %r9d`, `mov $9, %r8d`.
pub(crate) fn loader(library: &Library, file: &Path) -> Loader {
    if let Some(version) = in_name(library, file) {
        return Loader::Version(version);
    }
    let minor = || {
        let data = Contents::open(file).ok()?;
        let elf = Elf::parse(&data).ok().filter(|elf| elf.machine() == machine::X86_64)?;
        library.made_with?;
        let code = first(elf.exported_code(library.asked.as_ref()?.function, BEFORE)?);
        let pairs = code.windows(12).filter(|bytes| bytes[..2] == *b"\x41\xb9" && bytes[6..8] == *b"\x41\xb8");
        let pairs = pairs.map(|bytes| (number(&bytes[8..]), number(&bytes[2..6])));
        only(pairs.filter(|(major, minor)| (1..100).contains(major) && *minor < 256))
    };
    minor().map_or(Loader::Unknown, |(major, minor)| Loader::Minor(major, minor))
}

fn first(code: &[u8]) -> &[u8] {
    &code[..code.len().min(LOOKED_AT)]
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// What all of them say; nothing where they disagree.
fn only<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}
