//! Reads the version of a library from its file, without running it.

use crate::binary::elf::{Elf, Symbol};
use crate::binary::file::{exported_version, only_value, version_inside, versions_after};
use crate::binary::pe::{Pe, version_in_resource};
use crate::binary::returned_constant::{first_function, returned_constant};
use crate::knowledge::vendor::{self, Library, TOOLS, VersionSource, version_of_answer};
use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::cudnn::{self, CudnnPart, VersionGetter};
use cudaguard::internal::version::{CudaVersion, Version};
use memchr::memmem;
use object::elf::{EM_AARCH64, EM_X86_64, Machine, SHF_EXECINSTR};
use serde::{Serialize, Serializer};

/// A library or tool of the family, and its version.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The library.
    pub(crate) of: &'static Library,
    /// The version; `None` if the file does not contain it.
    pub(crate) version: Option<FileVersion>,
}

/// A version, and the part of the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) version: Version,
    /// False if only major and minor are known.
    pub(crate) is_exact: bool,
    /// A function, `text`, `exported names`, `file name`, `version resource` or a package.
    pub(crate) read_from: String,
}

impl FileVersion {
    pub(super) fn exact(version: Version, read_from: &str) -> Self {
        Self { version, is_exact: true, read_from: read_from.to_owned() }
    }
}

impl std::fmt::Display for FileVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Version { major, minor, .. } = self.version;
        if self.is_exact { self.version.fmt(f) } else { write!(f, "{major}.{minor}") }
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.of.name)?;
        self.version.as_ref().map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct LibraryReleaseView<'a> {
            name: &'static str,
            version: Option<String>,
            read_from: Option<&'a str>,
        }

        let read_from = self.version.as_ref().map(|version| version.read_from.as_str());
        LibraryReleaseView { name: self.of.key, version: self.version_text(), read_from }.serialize(json)
    }
}

/// A file whose format is known.
enum LibraryFormat<'data> {
    Elf(Elf<'data>),
    Pe(Pe<'data>),
}

impl Release {
    /// Returns the library that this file is, with its version; `None` for other files. `file` is the file name without its
    /// directory.
    pub(crate) fn read(file: &str, soname: &str, data: &[u8]) -> Option<Self> {
        let of = vendor::released_library(soname)?;
        (Pe::parse(data).is_ok() || Elf::parse(data).is_ok())
            .then(|| Self { of, version: version_in_file(file, soname, data) })
    }

    /// Returns the version for messages: two numbers if the patch is unknown.
    pub(crate) fn version_text(&self) -> Option<String> {
        self.version.as_ref().map(ToString::to_string)
    }

    /// Returns the version, with a patch of 0 if it is unknown.
    pub(crate) fn number(&self) -> Option<Version> {
        self.version.as_ref().map(|known| known.version)
    }
}

/// Returns the version of a library of NVIDIA's, or of a part of one: the version that the file exports, states in its resource or
/// returns, that in its name, or that in its texts and its code. `file` is the file name without its directory.
pub(crate) fn version_in_file(file: &str, soname: &str, data: &[u8]) -> Option<FileVersion> {
    let (own, name) = (vendor::plain_name(soname), vendor::plain_name(file));
    let image = LibraryFormat::parse(data);
    let part = cudnn::PARTS.iter().find(|part| part.file == own);
    let library = vendor::described_library(&own);
    let in_image = image.as_ref().and_then(|image| {
        let exported = part.and_then(|part| exported_version(data, part.symbol));
        exported
            .map(|version| FileVersion::exact(version, "exported number"))
            .or_else(|| image.stated_version(library, soname, data))
    });
    let is_own_name = vendor::stem_of(&own) == vendor::stem_of(&name);
    in_image
        .or_else(|| Some(FileVersion::exact(vendor::version_in_name(&name).filter(|_| is_own_name)?, "file name")))
        .or_else(|| Some(FileVersion::exact(text_version(library?, &own, data)?, "text")))
        .or_else(|| match (part, image) {
            (Some(part), Some(LibraryFormat::Elf(elf))) => {
                Some(FileVersion::exact(version_in_code(part, &elf)?, "code"))
            }
            _ => None,
        })
}

/// Returns the version in the texts of a library that consists of one file. Otherwise its parts contain them.
fn text_version(library: &Library, soname: &str, data: &[u8]) -> Option<Version> {
    let major = library.major(soname)?;
    library.parts_of_major(major).next().is_none().then(|| version_inside(library, data))?
}

impl<'data> LibraryFormat<'data> {
    fn parse(data: &'data [u8]) -> Option<Self> {
        if Pe::is_pe(data) { Pe::parse(data).ok().map(Self::Pe) } else { Elf::parse(data).ok().map(Self::Elf) }
    }
}

impl LibraryFormat<'_> {
    /// Returns the version in the resource of the file, or in a place that the catalogue lists.
    fn stated_version(&self, library: Option<&Library>, soname: &str, data: &[u8]) -> Option<FileVersion> {
        let in_resource = match self {
            Self::Elf(_) => None,
            Self::Pe(image) => image.version().and_then(|resource| version_in_resource(library, &resource)),
        };
        in_resource.map(|version| FileVersion::exact(version, "version resource")).or_else(|| {
            let sources = vendor::nvidia_library(soname)?.versions;
            sources.iter().find_map(|source| self.read(source, vendor::major_of(soname), data))
        })
    }

    fn read(&self, source: &VersionSource, major: Option<u32>, data: &[u8]) -> Option<FileVersion> {
        let (version, read_from) = match source {
            VersionSource::Getter(getter) => (self.version_of_getter(getter, major?)?, getter.function),
            VersionSource::Text(text) => (only_value(versions_after(data, text, "").into_iter())?, "text"),
            VersionSource::TextOfTools => (only_value(versions_after(data, TOOLS, ", V").into_iter())?, "text"),
            VersionSource::ExportedNames(prefix) => {
                let version = self.exported_names().filter_map(|name| numbers_after(name, prefix)).max()?;
                return Some(FileVersion { version, is_exact: false, read_from: "exported names".to_owned() });
            }
        };
        Some(FileVersion::exact(version, read_from))
    }

    fn exported_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Elf(elf) => {
                Box::new(elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name()))
            }
            Self::Pe(image) => Box::new(image.exported_names()),
        }
    }

    /// Returns the version that an exported function returns or stores.
    ///
    /// The code of such a function contains the version once, as the constant operand of a move. Measured: functions of 9
    /// bytes (`movl $10305, (%rdi); xor %eax, %eax; ret`) up to 602 bytes, which write a log first. A number counts only if it
    /// encodes a version of the library's own major, and if all such numbers in the function are equal.
    fn version_of_getter(&self, getter: &VersionGetter, major: u32) -> Option<Version> {
        let (machine, code) = match self {
            Self::Elf(elf) => (elf.machine, elf.exported_code(getter.function)?),
            Self::Pe(image) => (image.machine(), image.exported_code(getter.function)?),
        };
        only_value(constants_of(machine, code).into_iter().filter_map(|number| decode(getter, major, number)))
    }
}

/// Returns the release of the cudart that a part of cuDNN was built with, which its getter returns.
pub(crate) fn cudart_inside(part: &Elf<'_>) -> Option<CudaVersion> {
    let number = returned_constant(part, cudnn::CUDART_GETTER)?;
    CudaVersion::is_plausible(number).then(|| CudaVersion::from_int(number))
}

fn constants_of(machine: Machine, code: &[u8]) -> Vec<u32> {
    match machine {
        EM_X86_64 => constants_of_x86(code),
        EM_AARCH64 => constants_of_aarch64(code),
        _ => Vec::new(),
    }
}

/// Decodes the result of a getter as a version of this major. The minor may have two digits even if the scale is 1000.
fn decode(getter: &VersionGetter, major: u32, number: u32) -> Option<Version> {
    let (_, scale) = getter.scales.iter().find(|(from, _)| u64::from(number) >= *from)?;
    let rest = number.checked_sub(major.checked_mul(u32::try_from(*scale).ok()?)?)?;
    // Version 0.0 does not exist, and small numbers are no versions.
    (rest < 10_000 && number >= 100).then(|| Version::new(major, rest / 100, rest % 100))
}

/// Returns the constant operands of the moves in this code: `mov $imm32, %reg` and `movl $imm32, memory`. Also returns
/// bytes of other instructions that look like one.
fn constants_of_x86(code: &[u8]) -> Vec<u32> {
    (0..code.len()).filter_map(|at| operand_of_x86(&code[at..])).collect()
}

/// Returns the constant operand of the move at the start of this code.
pub(super) fn operand_of_x86(code: &[u8]) -> Option<u32> {
    let skip = match code {
        [0xb8..=0xbf, ..] => 1,
        // The operand follows the address: a register, optionally with an index, and a displacement.
        [0xc7, address, ..] if address & 0x38 == 0 => {
            let displacement = match address >> 6 {
                0 => 0,
                1 => 1,
                2 => 4,
                _ => return None,
            };
            2 + usize::from(address & 7 == 4) + displacement
        }
        _ => return None,
    };
    u32_at(code, skip)
}

/// Returns the constants that `mov w, #imm16` and a following `movk w, #imm16, lsl #16` put into a register. At most two
/// other instructions are between them.
fn constants_of_aarch64(code: &[u8]) -> Vec<u32> {
    let words: Vec<u32> = code.chunks_exact(4).filter_map(|word| u32_at(word, 0)).collect();
    let mut constants = Vec::new();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| **word & 0x7fe0_0000 == 0x5280_0000) {
        let upper = words[at + 1..].iter().take(3).find(|next| **next & 0x7fe0_001f == 0x72a0_0000 | word & 0x1f);
        constants.push((word >> 5 & 0xffff) | upper.map_or(0, |next| (next >> 5 & 0xffff) << 16));
    }
    constants
}

/// Parses major and minor after a prefix: `__nvJitLinkCreate_12_4`, `__nvrtc_builtins__12_4_getArchBuiltins50`.
fn numbers_after(name: &str, prefix: &str) -> Option<Version> {
    let mut numbers = name.strip_prefix(prefix)?.split('_').map(|number| number.parse().ok());
    Some(Version::new(numbers.next()??, numbers.next()??, 0))
}

/// The location of the release of a part of cuDNN in its code.
#[derive(Clone, Copy)]
enum ReleaseInCode {
    /// In this exported function, which writes the release to a log.
    Logged(&'static str),
    /// In a function that it registers with another part. That part passes its release, and the function returns 1002
    /// if they differ.
    Compared,
}

/// The parts of cuDNN without a version symbol whose code contains their release (measured on x86-64: 9.0.0 to 9.28.1, for CUDA 11
/// to 13).
const RELEASES_IN_CODE: [(&str, ReleaseInCode); 5] = [
    ("libcudnn_cnn.so.9", ReleaseInCode::Logged("cudnnCnnVersionCheck")),
    ("libcudnn_adv.so.9", ReleaseInCode::Logged("cudnnAdvVersionCheck")),
    ("libcudnn_engines_precompiled.so.9", ReleaseInCode::Compared),
    ("libcudnn_engines_runtime_compiled.so.9", ReleaseInCode::Compared),
    ("libcudnn_heuristic.so.9", ReleaseInCode::Compared),
];

/// Returns the version of a part from its code, if the code contains a release of its major.
fn version_in_code(part: &CudnnPart, elf: &Elf<'_>) -> Option<Version> {
    if elf.machine != EM_X86_64 {
        return None;
    }
    let (_, place) = RELEASES_IN_CODE.iter().find(|(file, _)| *file == part.file)?;
    let found: Vec<Version> = match place {
        ReleaseInCode::Logged(function) => {
            // `movl $91501, -65712(%rbp)`
            let code = first_function(elf.exported_code(function)?);
            let logged = code.windows(10).filter(|bytes| bytes[..2] == *b"\xc7\x85").map(|bytes| read_u32(&bytes[6..]));
            logged.filter_map(|number| version_of_answer(&cudnn::GETTER, number.into())).collect()
        }
        ReleaseInCode::Compared => {
            let code = elf.sections().filter(|section| section.flags.contains(SHF_EXECINSTR));
            code.flat_map(|section| compared_releases(section.data)).collect()
        }
    };
    only_value(found.into_iter().filter(|version| version.major == part.major))
}

/// Returns the releases that functions in this code compare with their argument. Versions 9.0 to 9.25 have
/// `mov $1002, %eax` and `cmp $91501, %edi` next to each other. From 9.26 on, a division by 10000 precedes
/// `mov $1, %r9d` or `xor %r9d, %r9d`, and then `movabs $0x1a00000009, %r8`.
fn compared_releases(code: &[u8]) -> Vec<Version> {
    const MISMATCH: [u8; 4] = 1002u32.to_le_bytes();
    const BY_10_000: [u8; 4] = 0xd1b7_1759_u32.to_le_bytes();
    let near = memmem::find_iter(code, &MISMATCH).filter_map(|at| release_near_status(code, at));
    near.chain(memmem::find_iter(code, &BY_10_000).filter_map(|at| release_after_division(code, at))).collect()
}

/// Returns the release in a comparison next to the instruction whose operand, the status, is here.
fn release_near_status(code: &[u8], at: usize) -> Option<Version> {
    /// Maximum number of bytes between the two instructions (measured: 4).
    const GAP: usize = 8;
    if at == 0 || !(0xb8..=0xbf).contains(&code[at - 1]) {
        return None;
    }
    let places = (0..=GAP).flat_map(|gap| [Some(at + 4 + gap), at.checked_sub(7 + gap)]);
    places.flatten().find_map(|from| {
        let bytes = code.get(from..)?.get(..6)?;
        (bytes[..2] == *b"\x81\xff").then(|| version_of_answer(&cudnn::GETTER, read_u32(&bytes[2..]).into()))?
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

fn read_u32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GETTER: VersionGetter = VersionGetter { function: "f", scales: &[(10_000, 10_000), (0, 1000)] };

    #[test]
    fn x86_code_contains_its_constants() {
        for (code, expected) in [
            // curandGetVersion 10.3.5: movl $10305, (%rdi); xor %eax, %eax; ret
            (&[0xc7, 0x07, 0x41, 0x28, 0, 0, 0x31, 0xc0, 0xc3][..], vec![10_305]),
            // mov $101501, %eax; ret
            (&[0xb8, 0x7d, 0x8c, 1, 0, 0xc3], vec![101_501]),
            // movl $12301, (%r12) and movl $602, 16(%rbx)
            (&[0x41, 0xc7, 0x04, 0x24, 0x0d, 0x30, 0, 0], vec![12_301]),
            (&[0xc7, 0x43, 0x10, 0x5a, 2, 0, 0], vec![602]),
            // movl $1, %edx is in a register, not in memory; a truncated move
            (&[0xc7, 0xc2, 1, 0, 0, 0], vec![]),
            (&[0xb8, 1, 2], vec![]),
        ] {
            assert_eq!(constants_of_x86(code), expected, "{code:x?}");
        }
    }

    #[test]
    fn aarch64_code_contains_its_constants() {
        const STORE: u32 = 0xb900_0001;
        let mov = |number: u32, register: u32| 0x5280_0000 | (number & 0xffff) << 5 | register;
        let movk = |number: u32, register: u32| 0x72a0_0000 | (number >> 16) << 5 | register;
        for (words, expected) in [
            (vec![mov(12_301, 1), STORE], vec![12_301]),
            (vec![mov(130_100, 1), STORE, movk(130_100, 1)], vec![130_100]),
            // Another register
            (vec![mov(130_100, 1), movk(130_100, 2)], vec![64_564]),
        ] {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(constants_of_aarch64(&code), expected);
        }
    }

    #[test]
    fn number_is_decoded_for_the_major() {
        for (major, number, expected) in [
            (10, 101_501, Some(Version::new(10, 15, 1))),
            (8, 8601, Some(Version::new(8, 6, 1))),
            (10, 475, None),
            (11, 101_501, None),
            (0, 602, Some(Version::new(0, 6, 2))),
            (0, 3, None),
        ] {
            assert_eq!(decode(&GETTER, major, number), expected, "{major} {number}");
        }
        let thousands = VersionGetter { function: "f", scales: &[(0, 1000)] };
        assert_eq!(decode(&thousands, 12, 13_004), Some(Version::new(12, 10, 4)));
    }

    #[test]
    fn names_contain_versions() {
        assert_eq!(numbers_after("__nvJitLinkCreate_12_4", "__nvJitLinkCreate_"), Some(Version::new(12, 4, 0)));
        assert_eq!(numbers_after("__nvrtc_builtins__13_5_getArch", "__nvrtc_builtins__"), Some(Version::new(13, 5, 0)));
        assert_eq!(numbers_after("__nvJitLinkCreate_x", "__nvJitLinkCreate_"), None);
        assert_eq!(vendor::version_in_name("libcublas.so.12.4.5.8"), Some(Version::new(12, 4, 5)));
        assert_eq!(vendor::version_in_name("libcublas.so.12"), None);
    }
}
