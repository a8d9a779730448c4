//! Parts of an artifact that were not examined. Results such as "runs" or "none" are valid only if there are no such
//! parts.

use crate::binary::pe::Pe;
use crate::binary::searcher::Searcher;
use crate::verdict::Verdict;
use std::fmt;

use memchr::memmem;
use object::elf::{EM_AMDGPU, ET_REL, SHF_ALLOC, SHT_PROGBITS};

use crate::binary::elf::{Elf, Section};
use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::finding::Finding;

/// A part of an artifact that was not examined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotExamined {
    /// The reason.
    pub reason: String,
    /// Name of the file, or of the archive member.
    pub name: String,
    /// True if this part may contradict an answer about NVIDIA's GPUs. Code for GPUs of AMD and Intel does not.
    pub may_contradict: bool,
}

impl NotExamined {
    /// Creates a part with this name and reason.
    pub fn new(name: impl Into<String>, reason: impl Into<Reason>) -> Self {
        let reason = reason.into();
        let may_contradict = !matches!(reason, Reason::ForeignCode(_));
        Self { reason: reason.to_string(), name: name.into(), may_contradict }
    }
}

impl NotExamined {
    /// Creates a part that may open these libraries, if there are any.
    pub(crate) fn opener(name: &str, libraries: &[String]) -> Option<Self> {
        let libraries = Some(libraries.join(", ")).filter(|names| !names.is_empty())?;
        Some(Self::new(name, format!("its requirements on {libraries}, which it may open, are unknown")))
    }

    /// Creates a part that loads GPU code which no examined file contains.
    pub(crate) fn loader_of_code(name: impl Into<String>) -> Self {
        Self::new(
            name,
            "loads GPU code while it runs, and none was found: which GPUs and drivers it supports is unknown",
        )
    }
}

/// The reason why a part was not examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// GPU code for this vendor.
    ForeignCode(&'static str),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignCode(vendor) => write!(f, "GPU code for {vendor}"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl<T: Into<String>> From<T> for Reason {
    fn from(reason: T) -> Self {
        Self::Other(reason.into())
    }
}

/// Returns true if everything was examined that may contradict an answer about NVIDIA's GPUs.
pub fn is_complete(not_examined: &[NotExamined]) -> bool {
    !not_examined.iter().any(|part| part.may_contradict)
}

/// Marks the code for GPUs of others in an artifact without code for NVIDIA's: no answer is possible.
pub fn mark_only_code(not_examined: &mut [NotExamined]) {
    for part in not_examined.iter_mut().filter(|part| !part.may_contradict) {
        part.reason += ", and none for NVIDIA";
        part.may_contradict = true;
    }
}

impl fmt::Display for NotExamined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

/// Returns the verdict of these findings on an artifact: `runs` only if all that may contradict it was examined.
pub fn verdict(findings: &[Finding], not_examined: &[NotExamined]) -> Verdict {
    match Verdict::from_findings(findings) {
        Verdict::Runs if !is_complete(not_examined) => Verdict::Unknown,
        other => other,
    }
}

/// Magic numbers of a bundle, uncompressed and compressed, that clang writes for AMD's GPUs and for others except
/// NVIDIA's.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_BUNDLE: &[u8] = b"CCOB";
/// Section that clang's newer driver writes for any GPU.
const OFFLOADING: &str = ".llvm.offloading";

/// Formats that are not read, by the offset of their magic number and by that number: those that can contain programs, and bare
/// Tile IR.
const PACKED: [(usize, &[u8], &str); 15] = [
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"MSCF\0\0\0\0", "a cabinet file of Windows"),
    (0, b"PK\x07\x08", "a part of a split archive"),
    (0, b"\x04\x22\x4d\x18", "a file compressed with LZ4"),
    (0, b"LZIP\x01", "a file compressed with lzip"),
    (0, b"\x1f\x9d\x90", "a file compressed with compress"),
    (0, b"hsqs", "a squashfs image"),
    (1024, b"\xe2\xe1\xf5\xe0", "an EROFS image"),
    (0, b"QFI\xfb\0\0\0", DISK),
    (0, b"KDMV", DISK),
    (0, b"vhdxfile", DISK),
    (64, b"\x7f\x10\xda\xbe", DISK),
    (0, b"#!/usr/bin/env run-singularity\n", "a Singularity image"),
    (0, b"\x7fTileIR\0", "GPU code as Tile IR"),
];
const DISK: &str = "a disk image";

/// Returns true for a disk image of Linux (ext2 to ext4). Its magic number is short, so other fields count as well.
fn is_ext_image(head: &[u8]) -> bool {
    // The magic number, the size of blocks and the revision.
    head.get(1080..1082) == Some(b"\x53\xef")
        && u32_at(head, 1048).is_some_and(|size| size <= 6)
        && u32_at(head, 1100).is_some_and(|revision| revision <= 1)
}

/// Returns true for the result of `nvcc --optix-ir`, whose level differs from that of LTO-IR (files of nvcc 13.0 to 13.5).
fn is_optix(head: &[u8]) -> bool {
    head.starts_with(b"\xed\x43\x4e\x7f") && head.get(14..16) == Some(&[2, 0])
}

/// Returns true for a cpio archive, whose header consists of digits.
fn is_cpio(head: &[u8]) -> bool {
    let formats = [(&b"070701"[..], 110, 16), (b"070702", 110, 16), (b"070707", 76, 8)];
    formats.iter().any(|(magic, length, radix)| {
        let header = head.get(..*length).filter(|header| header.starts_with(magic));
        header.is_some_and(|header| header.iter().all(|byte| char::from(*byte).is_digit(*radix)))
    })
}

/// Returns the reason why a file or member with these first bytes is not examined. `None` if it can be examined or cannot
/// contain code.
pub fn kind_from_head(head: &[u8]) -> Option<Reason> {
    const MACH_O: [[u8; 4]; 4] =
        [[0xfe, 0xed, 0xfa, 0xce], [0xce, 0xfa, 0xed, 0xfe], [0xfe, 0xed, 0xfa, 0xcf], [0xcf, 0xfa, 0xed, 0xfe]];
    // Java class files start with the same bytes, but have their version where this format has the number of
    // architectures.
    let fat =
        head.starts_with(&[0xca, 0xfe, 0xba, 0xbe]) && head.get(4..8).is_some_and(|count| count < &[0, 0, 0, 20][..]);
    if fat || MACH_O.iter().any(|magic| head.starts_with(magic)) {
        Some("a macOS file (Mach-O)".into())
    } else if head.starts_with(BUNDLE) || head.starts_with(COMPRESSED_BUNDLE) {
        Some(AMD)
    } else if is_cpio(head) {
        Some("a cpio archive".into())
    } else if is_ext_image(head) {
        Some(DISK.into())
    } else if is_optix(head) {
        Some("GPU code as OptiX IR".into())
    } else {
        let mut formats = PACKED.iter();
        let format = formats.find(|(at, magic, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
        format.map(|(_, _, format)| Reason::from(*format))
    }
}

const AMD: Reason = Reason::ForeignCode("AMD");
const INTEL: Reason = Reason::ForeignCode("Intel (SYCL)");

/// Returns true if these bytes contain the name of an NVIDIA library or a container of its GPU code. A file of any
/// format without such a trace does not use CUDA.
pub fn has_trace_of_cuda(bytes: &[u8]) -> bool {
    const TRACES: [&[u8]; 9] = [
        b"cuda",
        b"CUDA",
        b"nv_fatb",
        b"\x50\xed\x55\xba",
        b"cutensor",
        b"libnccl",
        b"libnpp",
        b"libnvjpeg",
        b"libnvJitLink",
    ];
    TRACES.iter().any(|trace| memmem::find(bytes, trace).is_some()) || names_library_of_cuda(bytes)
}

/// Returns true if these bytes contain the name of an NVIDIA library with GPU code, of its driver or of a compiler.
pub fn names_library_of_cuda(bytes: &[u8]) -> bool {
    const NAMES: [&str; 10] =
        ["libcuda", "nvcuda", "cudart", "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nvrtc"];
    Searcher::new(&NAMES).find(bytes, 0).is_some()
}

/// Returns what the section with this name contains if clang or hipcc wrote GPU code to it. The name of a bundle ends with its
/// target, such as `sycl-spir64_gen` or `hip-amdgcn-amd-amdhsa--gfx90a`.
fn foreign_code(section: &str) -> Option<Reason> {
    if section == ".hip_fatbin" {
        return Some(AMD);
    }
    let target = section.strip_prefix("__CLANG_OFFLOAD_BUNDLE__")?;
    Some(if target.contains("amdgcn") {
        AMD
    } else if target.contains("spir") {
        INTEL
    } else {
        "GPU code in clang's bundle format".into()
    })
}

/// Returns the reasons why parts of a linked file or an object are not examined.
pub(crate) fn unexamined_parts_of_elf(elf: &Elf<'_>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if elf.machine == EM_AMDGPU {
        reasons.push(AMD);
    }
    for reason in elf.sections().filter_map(|section| foreign_code(section.name)) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if elf.sections().any(|section| section.name == OFFLOADING) {
        reasons.push(format!("GPU code in clang's format ({OFFLOADING})").into());
    }
    if elf.is_packed() {
        reasons.push(UPX.into());
    }
    reasons.extend(elf.find_damage().map(Reason::from));
    reasons.extend(elf.sections().filter(|_| elf.kind != ET_REL).filter_map(|section| packed_section(&section)));
    let trailing = elf.trailing();
    if !is_footer(trailing) && trailing.iter().any(|byte| *byte != 0) {
        reasons.push(format!("{} after the end of the ELF image{}", size(trailing.len()), kind(trailing)).into());
    }
    reasons
}

/// Describes a section that is not loaded and that the program reads from its own file. Tools begin the names of their own sections
/// with a dot.
fn packed_section(section: &Section<'_>) -> Option<Reason> {
    let Section { name, data, .. } = *section;
    let is_stored = section.kind == SHT_PROGBITS && !section.flags.contains(SHF_ALLOC);
    // Fedora stores the names of local functions in a compressed ELF file.
    let is_own = is_stored && (!name.starts_with('.') || !kind(data).is_empty() && name != ".gnu_debugdata");
    (is_own && data.iter().any(|byte| *byte != 0))
        .then(|| format!("{} in section {name}, which is not loaded{}", size(data.len()), kind(data)).into())
}

/// Returns what of a program or DLL for Windows is not examined.
/// `uses_cuda`: whether the file has a trace of CUDA.
pub(crate) fn unexamined_parts_of_pe(image: &Pe<'_>, uses_cuda: &dyn Fn() -> bool) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if image.sections().any(|section| section.name.starts_with(".hip_fat")) {
        reasons.push(AMD);
    }
    // Names in an image end after eight characters.
    if image.sections().any(|section| section.name.starts_with(&OFFLOADING[..8])) {
        reasons.push(format!("GPU code in clang's format ({OFFLOADING})").into());
    }
    reasons.extend(image.foreign_code().filter(|_| uses_cuda()).map(Reason::from));
    if image.is_packed() {
        reasons.push(UPX.into());
    }
    reasons.extend(image.find_damage().map(Reason::from));
    let trailing = image.trailing();
    // Python's launchers are programs with a small zip archive that contains one script.
    let is_launcher = trailing.len() <= LAUNCHER && kind(trailing) == ZIP && !has_trace_of_cuda(trailing);
    if !is_launcher && trailing.iter().any(|byte| *byte != 0) {
        reasons.push(format!("{} after the end of the PE image{}", size(trailing.len()), kind(trailing)).into());
    }
    reasons
}

/// Returns true for a signature or a description after the image, such as the 512 bytes of `DuckDB`'s extensions.
fn is_footer(trailing: &[u8]) -> bool {
    const LONGEST: usize = 1 << 10;
    trailing.len() <= LONGEST && kind(trailing).is_empty() && !has_trace_of_cuda(trailing)
}

const UPX: &str = "code and data that UPX packed: `upx -d` unpacks them";
const ZIP: &str = " (a zip archive)";
/// Limit for the script of a launcher.
const LAUNCHER: usize = 64 << 10;

/// Describes the data after an image by its magic numbers; empty if it is unknown.
fn kind(data: &[u8]) -> &'static str {
    const STARTS: [(&[u8], &str); 5] = [
        (b"hsqs", " (a squashfs file system, as in an AppImage)"),
        (b"\x7fELF", " (an ELF file)"),
        (b"\x1f\x8b\x08", " (compressed by gzip)"),
        (b"\x28\xb5\x2f\xfd", " (compressed by zstd)"),
        (b"\xfd7zXZ\0", " (compressed by xz)"),
    ];
    let end = &data[data.len().saturating_sub(4096)..];
    if memmem::find(end, b"MEI\x0c\x0b\x0a\x0b\x0e").is_some() {
        " (an archive of PyInstaller)"
    } else if memmem::find(end, b"PK\x05\x06").is_some() {
        ZIP
    } else {
        STARTS.iter().find(|(magic, _)| data.starts_with(magic)).map_or("", |(_, kind)| kind)
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Returns the reason for members of a static library that are not examined. The metadata that `rustc` adds does not
/// count.
pub(crate) fn unexamined_parts_of_archive(unread: &[(String, Reason)]) -> Vec<Reason> {
    let own = unread.iter().filter(|(name, _)| name != "lib.rmeta");
    let (foreign, others): (Vec<_>, Vec<_>) = own.partition(|(_, why)| matches!(why, Reason::ForeignCode(_)));
    let mut reasons: Vec<Reason> = Vec::new();
    for (_, why) in foreign {
        if !reasons.contains(why) {
            reasons.push(why.clone());
        }
    }
    let Some((name, why)) = others.first() else { return reasons };
    let more = match others.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more members"),
    };
    reasons.push(format!("its member {name} ({why}){more}").into());
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_code_is_named_by_its_target() {
        for (section, expected) in [
            (".hip_fatbin", Some(AMD)),
            ("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", Some(AMD)),
            ("__CLANG_OFFLOAD_BUNDLE__sycl-spir64_gen", Some(INTEL)),
            ("__CLANG_OFFLOAD_BUNDLE__sycl-nvptx64-nvidia-cuda", Some("GPU code in clang's bundle format".into())),
            (".text", None),
        ] {
            assert_eq!(foreign_code(section), expected, "{section}");
        }
    }

    #[test]
    fn footer_is_no_code() {
        for (trailing, expected) in [
            (&[7; 512][..], true),
            (&[7; 1025], false),
            (b"\x1f\x8b\x08 compressed", false),
            (b"libcudart", false),
            (b"\x50\xed\x55\xba\x01", false),
        ] {
            assert_eq!(is_footer(trailing), expected, "{trailing:?}");
        }
    }

    #[test]
    fn formats_are_known_by_magic_bytes() {
        let mut ext = [0; 1200];
        ext[1080..1082].copy_from_slice(b"\x53\xef");
        for (head, expected) in [
            (&b"MZ\x90"[..], None),
            (b"\xcf\xfa\xed\xfe\x07", Some("a macOS file (Mach-O)".into())),
            (b"\xca\xfe\xba\xbe\0\0\0\x3d", None),
            (b"__CLANG_OFFLOAD_BUNDLE__\x02", Some(AMD)),
            (b"7z\xbc\xaf\x27\x1c\0\x04", Some("a 7z archive".into())),
            (b"", None),
            (b"LZIP\x01", Some("a file compressed with lzip".into())),
            (&[&[0; 64][..], b"\x7f\x10\xda\xbe"].concat(), Some(DISK.into())),
            (&[&b"070701"[..], &[b'0'; 104]].concat(), Some("a cpio archive".into())),
            (b"070701 is a number", None),
            (b"\xed\x43\x4e\x7f\x01\x41\x02\x62\x03\x02\x07\0\x18\0\x02\0", Some("GPU code as OptiX IR".into())),
            (b"\xed\x43\x4e\x7f\x01\x41\x02\x62\x03\x02\x07\0\x18\0\x01\0", None),
            (&ext, Some(DISK.into())),
            (&ext[..1100], None),
        ] {
            assert_eq!(kind_from_head(head), expected, "{head:?}");
        }
    }
}
