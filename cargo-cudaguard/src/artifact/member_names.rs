//! The names of members: which belong to libraries and packages, and what is not examined under its name.

use crate::binary::kernels;
use crate::knowledge::vendor;

/// Formats that can contain programs and that are not read, by the endings of names.
const PACKED_BY_ENDING: [(&str, &str); 11] = [
    ("asar", "an archive of Electron"),
    ("cpio", "a cpio archive"),
    ("dmg", DISK),
    ("iso", DISK),
    ("lzma", "a file compressed with LZMA"),
    ("msi", "an installer of Windows"),
    ("qcow2", DISK),
    ("vdi", DISK),
    ("vhdx", DISK),
    ("vmdk", DISK),
    ("zlib", "a file compressed with zlib"),
];
const DISK: &str = "a disk image";

/// Endings of archives, whose parts are numbered if they are split: `app.zip.001`.
const SPLIT: [&str; 8] = ["7z", "bz2", "gz", "tar", "tgz", "xz", "zip", "zst"];

/// Endings of programs, GPU code and packages, besides those of libraries.
const OF_CODE: [&str; 11] = ["a", "conda", "cubin", "deb", "egg", "fatbin", "ltoir", "o", "optixir", "ptx", "whl"];

/// First bytes of a text by which Git LFS replaces a file.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// Returns the file name of a member, which may be in an archive inside of the artifact.
pub(crate) fn file_name(member: &str) -> &str {
    let separators: &[char] = if cfg!(windows) { &['/', '!', '\\'] } else { &['/', '!'] };
    member.rsplit(separators).next().unwrap_or(member)
}

fn file_and_ending(member: &str) -> (&str, String) {
    let name = file_name(member);
    (name, name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase())
}

/// Returns true for the name of a library or of a program for Windows.
pub(crate) fn is_library(member: &str) -> bool {
    let (name, ending) = file_and_ending(member);
    matches!(&*ending, "so" | "dll" | "pyd" | "exe")
        || name.split(".so.").skip(1).any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns why a member without code that starts with these bytes is not examined: its name is that of another format, or of code
/// that is not there (an interrupted copy, a pointer of Git LFS).
pub(super) fn unexamined_by_name(member: &str, is_executable: bool, head: &[u8]) -> Option<&'static str> {
    let (name, ending) = file_and_ending(member);
    if head.starts_with(LFS_POINTER) {
        let is_code = is_executable || is_library(name) || OF_CODE.contains(&&*ending);
        return is_code.then_some("a pointer of Git LFS: the file itself is not here");
    }
    let packed = PACKED_BY_ENDING.iter().find(|(packed, _)| ending == *packed && !head.is_empty());
    if let Some((_, format)) = packed {
        return Some(format);
    }
    let is_number = ending.len() == 3 && ending.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && SPLIT.contains(&&*file_and_ending(&name[..name.len() - 4]).1) {
        return Some("a part of a split archive");
    }
    // A boot sector ends with these bytes.
    if ending == "img" && head.get(510..512) == Some(b"\x55\xaa") {
        return Some(DISK);
    }
    if is_marked_ptx(head) {
        return Some("PTX in another encoding than ASCII");
    }
    // An empty program does not start.
    if !is_library(name) || ending == "exe" {
        return None;
    }
    // The container runtime of NVIDIA creates empty files for the libraries of the driver, which it mounts from the machine.
    let is_of_driver = vendor::is_of_driver(name);
    let is_of_vendor = vendor::DESCRIBED.into_iter().any(|library| library.is_named(name));
    match head {
        [] if is_of_vendor || !is_of_driver => Some("is empty"),
        [_, ..] if head.iter().all(|byte| *byte == 0) => Some("contains only zeros"),
        // A file without a number in its name may be a script for the linker.
        [_, ..] if is_of_vendor && ending != "so" => Some("is no library, although it has the name of one"),
        _ => None,
    }
}

/// Returns true for PTX that begins with a byte order mark: UTF-8 or UTF-16.
fn is_marked_ptx(head: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    let text = head.iter().copied().filter(|byte| byte.is_ascii() && *byte != 0);
    marks.iter().any(|mark| head.starts_with(mark)) && kernels::are_bare(&text.collect::<Vec<_>>())
}

/// Returns true if a member with this name describes a package.
pub(super) fn is_package_metadata(member: &str) -> bool {
    let mut parts = member.rsplit('/');
    let (name, dir) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match name {
        "METADATA" | "RECORD" => dir.ends_with(".dist-info"),
        "index.json" | "run_exports.json" => dir == "info",
        _ => dir == "conda-meta" && name.ends_with(".json"),
    }
}

/// Returns true for a file that configures the dynamic linker: its cache, and those with directories and libraries.
pub(super) fn is_loader_setting(member: &str) -> bool {
    let Some(name) = member.strip_prefix("etc/") else { return false };
    matches!(name, "ld.so.cache" | "ld.so.conf" | "ld.so.preload")
        || name.strip_prefix("ld.so.conf.d/").is_some_and(|rest| rest.ends_with(".conf") && !rest.contains('/'))
        || name.starts_with("ld-musl-") && name.ends_with(".path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_name() {
        for (name, expected) in [
            ("m/_k.cpython-311-x86_64-linux-gnu.so", true),
            ("libcudart-ab12cd34.so.12.3.101", true),
            ("a.tar!k.PYD", true),
            ("libx.so.txt", false),
            ("so", false),
        ] {
            assert_eq!(is_library(name), expected, "{name}");
        }
    }

    #[test]
    fn names_without_their_code_are_reported() {
        let pointer = &[LFS_POINTER, b"\noid sha256:00\n"].concat()[..];
        let utf_16 = "\u{feff}// a\n.version 8.0\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for (name, is_executable, head, expected) in [
            ("m/_k.so", false, pointer, Some("a pointer of Git LFS: the file itself is not here")),
            ("bin/app", true, pointer, Some("a pointer of Git LFS: the file itself is not here")),
            ("weights.bin", false, pointer, None),
            ("m/_k.so", false, b"", Some("is empty")),
            ("m/_k.pyd", false, b"\0\0\0", Some("contains only zeros")),
            ("libx.so", false, b"/* GNU ld script */\nINPUT(libx.so.1)\n", None),
            ("libcudart.so", false, b"INPUT(libcudart.so.13)\n", None),
            ("libcudart.so.13", false, b"text", Some("is no library, although it has the name of one")),
            // The container runtime mounts the driver over these files.
            ("libcuda.so.1", false, b"", None),
            ("libnvidia-ml.so.535.54.03", false, b"", None),
            ("data.bin", false, b"", None),
            ("app.zip.001", false, b"\0", Some("a part of a split archive")),
            ("log.001", false, b"a", None),
            (".001", false, b"a", None),
            ("ÀÀ.001", false, b"a", None),
            ("scan.img", false, b"\0", None),
            ("k.txt", false, &utf_16, Some("PTX in another encoding than ASCII")),
            ("page.ptx", false, b"\xef\xbb\xbf<pretext>", None),
        ] {
            assert_eq!(unexamined_by_name(name, is_executable, head), expected, "{name}");
        }
    }
}
