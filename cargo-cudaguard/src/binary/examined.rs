//! Parts of an artifact that were not examined. Results such as "runs" or "none" are valid only if there are no such
//! parts.

use std::fmt;

use memchr::memmem;

use cudaguard::internal::elf::Elf;
use cudaguard::internal::finding::{Finding, Verdict};
use cudaguard::internal::json::Value;

/// A part of an artifact that was not examined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotExamined {
    /// The reason.
    pub reason: String,
    /// Name of the file, or of the archive member.
    pub name: String,
}

impl NotExamined {
    /// Creates a part with this name and reason.
    pub fn new(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }
}

impl fmt::Display for NotExamined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl From<&NotExamined> for Value {
    fn from(part: &NotExamined) -> Self {
        part.to_string().into()
    }
}

/// Returns the verdict of these findings on an artifact: `runs` only if all of it was examined.
pub fn verdict(findings: &[Finding], not_examined: &[NotExamined]) -> Verdict {
    match Verdict::from_findings(findings) {
        Verdict::Runs if !not_examined.is_empty() => Verdict::Unknown,
        other => other,
    }
}

/// AMD's processor for GPU code: `e_machine`.
const AMDGPU: u16 = 224;
/// Magic numbers of a bundle, uncompressed and compressed, that clang writes for AMD's GPUs and for others except
/// NVIDIA's.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_BUNDLE: &[u8] = b"CCOB";
/// Section that clang's newer driver writes for any GPU.
const OFFLOADING: &str = ".llvm.offloading";

/// Returns the reason why this file or member is not examined, from its first bytes and its name. `None` if it can be
/// examined or cannot contain code.
pub fn kind_from_head(name: &str, head: &[u8]) -> Option<&'static str> {
    const MACH_O: [[u8; 4]; 4] =
        [[0xfe, 0xed, 0xfa, 0xce], [0xce, 0xfa, 0xed, 0xfe], [0xfe, 0xed, 0xfa, 0xcf], [0xcf, 0xfa, 0xed, 0xfe]];
    // Java class files start with the same bytes, but have their version where this format has the number of
    // architectures.
    let fat =
        head.starts_with(&[0xca, 0xfe, 0xba, 0xbe]) && head.get(4..8).is_some_and(|count| count < &[0, 0, 0, 20][..]);
    if is_pe(name, head) {
        Some("a Windows PE file")
    } else if fat || MACH_O.iter().any(|magic| head.starts_with(magic)) {
        Some("a macOS file (Mach-O)")
    } else if head.starts_with(BUNDLE) || head.starts_with(COMPRESSED_BUNDLE) {
        Some(AMD)
    } else {
        None
    }
}

const AMD: &str = "GPU code for AMD";

/// Returns true for a Windows program or library.
fn is_pe(name: &str, head: &[u8]) -> bool {
    let offset = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
    let header = || head.get(60..64).map(offset);
    let ending = name.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase());
    head.starts_with(b"MZ")
        && (["dll", "exe", "pyd"].contains(&&*ending)
            || header().is_some_and(|at| at >= head.len() || head[at..].starts_with(b"PE\0\0")))
}

/// Returns true for a Windows program, not a library. Every Python environment contains such launchers.
pub fn is_windows_program(head: &[u8]) -> bool {
    const DLL: u16 = 0x2000;
    let offset = head.get(60..64).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize));
    let header = offset.and_then(|at| head.get(at..)).filter(|header| header.starts_with(b"PE\0\0"));
    let flags = header.and_then(|header| Some(u16::from_le_bytes(header.get(22..24)?.try_into().ok()?)));
    head.starts_with(b"MZ") && flags.is_some_and(|flags| flags & DLL == 0)
}

/// Number of bytes of one piece that are searched again with the next piece: the maximum length of a trace.
pub const LONGEST_TRACE: usize = 8;

/// Returns true if these bytes contain the name of an NVIDIA library or a container of its GPU code. A file of any
/// format without such a trace does not use CUDA.
pub fn has_trace_of_cuda(bytes: &[u8]) -> bool {
    const TRACES: [&[u8]; 6] = [b"cuda", b"CUDA", b"nv_fatb", b"nvrtc", b"cudnn", b"\x50\xed\x55\xba"];
    TRACES.iter().any(|trace| memmem::find(bytes, trace).is_some())
}

/// Returns the reasons why parts of a linked file or an object are not examined.
pub(crate) fn unexamined_parts_of_elf(elf: &Elf<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let is_amd = |name: &str| name == ".hip_fatbin" || name.starts_with("__CLANG_OFFLOAD_BUNDLE__");
    if elf.machine() == AMDGPU || elf.sections().any(|section| is_amd(section.name)) {
        reasons.push(AMD.to_owned());
    }
    if elf.sections().any(|section| section.name == OFFLOADING) {
        reasons.push(format!("GPU code in clang's format ({OFFLOADING})"));
    }
    reasons.extend(elf.find_damage());
    let trailing = elf.trailing();
    if trailing.iter().any(|byte| *byte != 0) {
        reasons.push(format!("{} after the end of the ELF image{}", size(trailing.len()), kind(trailing)));
    }
    reasons
}

/// Describes the data after an ELF image by its magic numbers.
fn kind(data: &[u8]) -> &'static str {
    let end = &data[data.len().saturating_sub(4096)..];
    if memmem::find(end, b"MEI\x0c\x0b\x0a\x0b\x0e").is_some() {
        " (an archive of PyInstaller)"
    } else if data.starts_with(b"hsqs") {
        " (a squashfs file system, as in an AppImage)"
    } else if memmem::find(end, b"PK\x05\x06").is_some() {
        " (a zip archive)"
    } else {
        ""
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
pub(crate) fn unexamined_parts_of_archive(unread: &[(String, String)]) -> Vec<String> {
    let others = unread.iter().filter(|(name, _)| name != "lib.rmeta").collect::<Vec<_>>();
    let Some((name, why)) = others.first() else { return Vec::new() };
    let more = match others.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more members"),
    };
    vec![format!("its member {name} ({why}){more}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_magic_bytes() {
        let mut dll = vec![0; 256];
        dll[..2].copy_from_slice(b"MZ");
        dll[60] = 128;
        dll[128..132].copy_from_slice(b"PE\0\0");
        dll[151] = 0x20;
        let mut program = dll.clone();
        program[151] = 0;
        assert!(is_windows_program(&program) && !is_windows_program(&dll));
        for (name, head, expected) in [
            ("a.dll", &dll[..], Some("a Windows PE file")),
            ("a", &dll, Some("a Windows PE file")),
            ("a.PYD", b"MZ", Some("a Windows PE file")),
            ("a.txt", b"MZ is how it begins", None),
            ("a.dylib", b"\xcf\xfa\xed\xfe\x07", Some("a macOS file (Mach-O)")),
            ("a.class", b"\xca\xfe\xba\xbe\0\0\0\x3d", None),
            ("a.co", b"__CLANG_OFFLOAD_BUNDLE__\x02", Some(AMD)),
            ("a", b"", None),
        ] {
            assert_eq!(kind_from_head(name, head), expected, "{name}");
        }
    }
}
