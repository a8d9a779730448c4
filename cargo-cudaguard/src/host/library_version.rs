//! Detects the version of a library from its file, without loading it.

use std::path::{Path, PathBuf};

use memchr::memmem;

use crate::binary::file::{self, only_value};
use crate::binary::loader::{Inspection, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::binary::pe::{Pe, version_in_resource};
use crate::host::facts::LoaderVersion;
use crate::host::judge::find_returned_constant;
use cudaguard::internal::elf::{Elf, machine};
use cudaguard::internal::vendor::{InCode, Library, Part, VersionGetter, plain_name, version_in_name};
use cudaguard::internal::version::{CudaVersion, Version};

/// Returns the version of this library file: from its real file name, otherwise from one of its parts in the same
/// directory, otherwise from its contents.
pub(crate) fn file_version(files: &OpenFiles, library: &Library, file: &Path) -> Option<Version> {
    in_name(library, file)
        .or_else(|| {
            let mut parts = library.needed_parts(library.major(file.file_name()?.to_str()?)?);
            parts.find_map(|part| exported_version(files, &file.with_file_name(part.file), part.symbol))
        })
        .or_else(|| library.has_version_text.then(|| file::version_inside(library, &files.open(file).ok()?))?)
}

/// Returns the version of this DLL: from its version resource, otherwise from one of its parts in the same directory.
pub(crate) fn dll_version(files: &OpenFiles, library: &Library, dll: &Path) -> Option<Version> {
    let data = files.open(dll).ok()?;
    let resource = Pe::parse(&data).ok().and_then(|image| image.version());
    resource.and_then(|resource| version_in_resource(library, &resource)).or_else(|| {
        let parts: Vec<&Part> = library.needed_parts(library.major(dll.file_name()?.to_str()?)?).collect();
        let mut entries = dll.parent()?.read_dir().ok()?.flatten();
        entries.find_map(|entry| {
            let name = entry.file_name();
            let part = parts.iter().find(|part| part.file == plain_name(&name.to_string_lossy()))?;
            exported_version(files, &entry.path(), part.symbol)
        })
    })
}

/// Returns the version in the name of the file, after all links are resolved.
pub(crate) fn in_name(library: &Library, file: &Path) -> Option<Version> {
    numbers_in_name(file, &format!("{}.so.", library.stem))
}

/// Returns the version that follows this stem in the name of the file, after all links are resolved. `None` if it has
/// fewer than three numbers.
pub(crate) fn numbers_in_name(file: &Path, stem: &str) -> Option<Version> {
    let real = std::fs::canonicalize(file).ok()?;
    real.file_name()?.to_str().filter(|name| name.starts_with(stem)).and_then(version_in_name)
}

/// Returns the version of an inner library: from its exported number, otherwise from its real file name, otherwise from
/// its code.
pub(crate) fn part_version(files: &OpenFiles, library: &Library, file: &Path, part: &Part) -> Option<Version> {
    let real = std::fs::canonicalize(file).ok()?;
    version_of_part(library, part, &files.open(file).ok()?, real.file_name()?.to_str()?)
}

/// Does the same as [`part_version`] for the contents of a file with this name.
pub(crate) fn version_of_part(library: &Library, part: &Part, data: &[u8], name: &str) -> Option<Version> {
    let exported = if part.symbol.is_empty() { None } else { file::exported_version(data, part.symbol) };
    exported
        .or_else(|| version_in_name(name).filter(|_| part.file.split(".so").next() == name.split(".so").next()))
        .or_else(|| in_code(library, part, data))
}

/// Returns the packed version that an inner library exports.
pub(crate) fn exported_version(files: &OpenFiles, file: &Path, symbol: &str) -> Option<Version> {
    if symbol.is_empty() {
        return None;
    }
    file::exported_version(&files.open(file).ok()?, symbol)
}

/// Returns the file of this name that a library, the object `index`, would open. The library tries its own full version
/// first, then shorter ones.
pub(crate) fn inner_file(graph: &LoadGraph, index: usize, file: &str, version: Option<Version>) -> Option<PathBuf> {
    let (stem, _) = file.split_once(".so")?;
    let names = version
        .iter()
        .flat_map(|version| [format!("{stem}.so.{version}"), format!("{stem}.so.{}.{}", version.major, version.minor)]);
    names
        .chain([file.to_owned()])
        .find_map(|name| {
            graph.resolve_file(index, &name).filter(|candidate| candidate.inspection == Inspection::Usable)
        })
        .map(|candidate| candidate.path)
}

/// Number of bytes of a function's code that are searched, as in the shim (measured: up to 461 bytes are needed).
const LOOKED_AT: usize = 2048;

/// Returns the release of the cudart that this part was built with, which its getter returns.
pub(crate) fn made_with(files: &OpenFiles, library: &Library, part: &Path) -> Option<CudaVersion> {
    let number = returned_constant(&Elf::parse(&files.open(part).ok()?).ok()?, library.made_with?)?;
    CudaVersion::is_plausible(number).then(|| CudaVersion::from_int(number))
}

/// Returns the constant that an exported getter returns, if it is known.
pub(crate) fn returned_constant(elf: &Elf<'_>, getter: &str) -> Option<u32> {
    find_returned_constant(first_function(elf.exported_code(getter)?), elf.machine())
}

/// Returns the version of a part from its code, if the code contains a release of its major.
fn in_code(library: &Library, part: &Part, data: &[u8]) -> Option<Version> {
    const EXECUTABLE: u64 = 4;
    let asked = library.asked.as_ref()?;
    if part.in_code == InCode::Unknown {
        return None;
    }
    let elf = Elf::parse(data).ok().filter(|elf| elf.machine() == machine::X86_64)?;
    let found = match part.in_code {
        InCode::Unknown => Vec::new(),
        InCode::Logged(function) => {
            // `movl $91501, -65712(%rbp)`
            let code = first_function(elf.exported_code(function)?);
            let logged = code.windows(10).filter(|bytes| bytes[..2] == *b"\xc7\x85").map(|bytes| read_u32(&bytes[6..]));
            logged.filter_map(|number| asked.version_of_answer(number.into())).collect()
        }
        InCode::Compared => {
            let code = elf.sections().filter(|section| section.flags & EXECUTABLE != 0);
            code.flat_map(|section| compared_releases(section.data, asked)).collect()
        }
    };
    only_value(found.into_iter().filter(|version| version.major == part.major))
}

/// Returns the releases that functions in this code compare with their argument. Versions 9.0 to 9.25 have
/// `mov $1002, %eax` and `cmp $91501, %edi` next to each other. From 9.26 on, a division by 10000 precedes
/// `mov $1, %r9d` or `xor %r9d, %r9d`, and then `movabs $0x1a00000009, %r8`.
fn compared_releases(code: &[u8], asked: &VersionGetter) -> Vec<Version> {
    const MISMATCH: [u8; 4] = 1002u32.to_le_bytes();
    const BY_10_000: [u8; 4] = 0xd1b7_1759_u32.to_le_bytes();
    let near = memmem::find_iter(code, &MISMATCH).filter_map(|at| release_near_status(code, at, asked));
    near.chain(memmem::find_iter(code, &BY_10_000).filter_map(|at| release_after_division(code, at))).collect()
}

/// Returns the release in a comparison next to the instruction whose operand, the status, is here.
fn release_near_status(code: &[u8], at: usize, asked: &VersionGetter) -> Option<Version> {
    /// Maximum number of bytes between the two instructions (measured: 4).
    const GAP: usize = 8;
    if at == 0 || !(0xb8..=0xbf).contains(&code[at - 1]) {
        return None;
    }
    let places = (0..=GAP).flat_map(|gap| [Some(at + 4 + gap), at.checked_sub(7 + gap)]);
    places.flatten().find_map(|from| {
        let bytes = code.get(from..)?.get(..6)?;
        (bytes[..2] == *b"\x81\xff").then(|| asked.version_of_answer(read_u32(&bytes[2..]).into()))?
    })
}

/// Returns the release in the instructions after the division whose operand is here.
fn release_after_division(code: &[u8], at: usize) -> Option<Version> {
    /// Maximum number of bytes after the division (measured: 79).
    const REST: usize = 128;
    let rest = code.get(at..)?;
    let rest = &rest[..rest.len().min(REST)];
    let end = memmem::find(rest, b"\x49\xb8").filter(|end| end + 10 <= rest.len())?;
    let patch = match memmem::find(&rest[..end], b"\x41\xb9") {
        Some(at) => read_u32(rest.get(at + 2..)?.get(..4)?),
        None => memmem::find(&rest[..end], b"\x45\x31\xc9").map(|_| 0)?,
    };
    let version = Version::new(read_u32(&rest[end + 2..]), read_u32(&rest[end + 6..]), patch);
    version.packed().map(|_| version)
}

/// Returns the release in the file name of the library itself, which may differ from that of its parts.
pub(crate) fn loader_version(library: &Library, file: &Path) -> LoaderVersion {
    in_name(library, file).map_or(LoaderVersion::Unknown, LoaderVersion::Version)
}

fn first_function(code: &[u8]) -> &[u8] {
    &code[..code.len().min(LOOKED_AT)]
}

fn read_u32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned_by_x86(code: &[u8]) -> Option<u32> {
        find_returned_constant(code, machine::X86_64)
    }

    fn returned_by_aarch64(words: &[u32]) -> Option<u32> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        find_returned_constant(&code, machine::AARCH64)
    }

    #[test]
    fn x86_getter_returns_its_constant() {
        let plain = [0xb8, 0xc8, 0x32, 0, 0, 0xc3];
        assert_eq!(returned_by_x86(&plain), Some(13_000));
        // The end of cudnnGetCudartVersion of cuDNN 9.15.1: five registers are restored.
        let restores = [0xb8, 0xc8, 0x32, 0, 0, 0x5b, 0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x5d, 0xc3, 0x0f];
        assert_eq!(returned_by_x86(&restores), Some(13_000));
        let adds = [0xb8, 1, 2, 3, 4, 0x48, 0x81, 0xc4, 0x20, 0, 1, 0, 0xc9, 0xc3];
        assert_eq!(returned_by_x86(&adds), Some(0x0403_0201));
        for (at, byte) in [(0, 0xb9), (5, 0xe8), (5, 0x90)] {
            let mut other = plain;
            other[at] = byte;
            assert_eq!(returned_by_x86(&other), None, "{at} {byte:x}");
        }
        assert_eq!(returned_by_x86(&plain[..5]), None);
        assert_eq!(returned_by_x86(&restores[..9]), None);
    }

    #[test]
    fn aarch64_getter_returns_its_constant() {
        const RET: u32 = 0xd65f_03c0;
        let mov = |number: u32| 0x5280_0000 | (number & 0xffff) << 5;
        let movk = |number: u32| 0x72a0_0000 | (number >> 16) << 5;
        assert_eq!(returned_by_aarch64(&[mov(13_000), RET]), Some(13_000));
        assert_eq!(returned_by_aarch64(&[mov(91_501), movk(91_501), RET]), Some(91_501));
        // ldp x29, x30, [sp], #32; ldr x19, [sp, #16]; add sp, sp, #32; autiasp
        let restores = [mov(12_090), 0xa8c2_7bfd, 0xf940_0bf3, 0x9100_83ff, 0xd503_23bf, RET];
        assert_eq!(returned_by_aarch64(&restores), Some(12_090));
        assert_eq!(returned_by_aarch64(&restores[..5]), None);
        // mov w1; a call in between
        assert_eq!(returned_by_aarch64(&[mov(13_000) | 1, RET]), None);
        assert_eq!(returned_by_aarch64(&[mov(13_000), 0x9400_0001, RET]), None);
    }
}
