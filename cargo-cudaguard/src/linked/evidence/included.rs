//! Detects the cuDNN headers that a build compiled with. Objects do not contain `-I` options, so this reads other
//! outputs of build scripts and compilers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::env;
use cudaguard::internal::toolchain::{LibraryHeaders, include_flags};
use cudaguard::internal::version::Version;

/// Included headers, and the evidence for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// Release of the headers.
    pub version: Version,
    /// The header that contains the release, or the bindings that were generated from it.
    pub path: PathBuf,
    /// The file that contains the evidence: a compiler's dependency file or the output of a build script.
    pub by: PathBuf,
}

/// Maximum size in bytes of a dependency file or a script's output. A larger file is something else.
const LARGEST: u64 = 64 << 20;

/// Maximum number of files per output directory; enough for the objects of a large library.
const MOST_FILES: usize = 20_000;

/// Returns the headers found in the output directories of build scripts (`OUT_DIR`s). Each release is listed once.
pub fn included_headers(out_dirs: &[PathBuf]) -> Vec<Included> {
    let mut found: Vec<Included> = Vec::new();
    for dir in out_dirs {
        let mut left = MOST_FILES;
        scan_dir(dir, &mut left, &mut found);
        // cargo stores the output of a script in a sibling of `OUT_DIR`.
        if let Some(output) = dir.parent().map(|dir| dir.join("output")) {
            scan_paths(&output, parse_script_output, &mut found);
        }
    }
    let mut known = BTreeSet::new();
    found.retain(|included| known.insert(included.version));
    found
}

fn scan_dir(dir: &Path, left: &mut usize, found: &mut Vec<Included>) {
    let mut entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => scan_dir(&entry.path(), left, found),
            Ok(kind) if kind.is_file() => scan_file(&entry.path(), found),
            _ => {}
        }
    }
}

fn scan_file(file: &Path, found: &mut Vec<Included>) {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("d") => scan_paths(file, parse_depfile, found),
        // Bindings: bindgen converts the macros to constants.
        Some("rs") => {
            let version = text_of(file).as_deref().and_then(parse_bindings_version);
            if let Some(version) = version {
                found.push(Included { version, path: file.to_owned(), by: file.to_owned() });
            }
        }
        _ => {}
    }
}

fn text_of(file: &Path) -> Option<String> {
    let fits = fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
    fits.then(|| fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))?
}

/// Adds the headers whose paths are in a text file.
fn scan_paths(file: &Path, paths: fn(&str) -> Vec<PathBuf>, found: &mut Vec<Included>) {
    let Some(text) = text_of(file) else { return };
    let dirs: BTreeSet<PathBuf> = paths(&text).into_iter().collect();
    for dir in dirs {
        add_dir(&dir, file, found);
    }
}

/// Adds the headers of this directory if they did not change after `by` was written.
fn add_dir(dir: &Path, by: &Path, found: &mut Vec<Included>) {
    let Some(LibraryHeaders { path, version: Some(version) }) = LibraryHeaders::in_dir(dir) else { return };
    let written = fs::metadata(by).and_then(|about| about.modified());
    if written.is_ok_and(|written| !changed_since(&path, written)) {
        found.push(Included { version, path, by: by.to_owned() });
    }
}

/// Returns true if a file, or a link on its path, was placed there after this time. The modification time of a file may
/// be older than that, but the change time of its inode is not.
fn changed_since(path: &Path, written: SystemTime) -> bool {
    let links = path
        .ancestors()
        .filter_map(|part| fs::symlink_metadata(part).ok().filter(|about| part == path || about.is_symlink()));
    links.chain(fs::metadata(path)).filter_map(|about| change_time(&about)).any(|changed| changed > written)
}

/// Returns when the inode changed; on systems without inodes, when the file was created here or written.
fn change_time(about: &fs::Metadata) -> Option<SystemTime> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let nanoseconds = u32::try_from(about.ctime_nsec()).ok()?;
        Some(SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(about.ctime()).ok()?, nanoseconds))
    }
    #[cfg(not(unix))]
    about.created().ok().max(about.modified().ok())
}

fn is_header(name: &str) -> bool {
    name.starts_with(CUDNN.key) && name.ends_with(".h")
}

fn dir_of_header(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_header);
    path.parent().filter(|dir| named && dir.is_absolute()).map(Path::to_owned)
}

/// Returns the header directories in a make rule that a compiler wrote (`-MD`), in which a backslash escapes a space.
fn parse_depfile(text: &str) -> Vec<PathBuf> {
    if !text.contains(CUDNN.key) {
        return Vec::new();
    }
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ").replace("\\ ", "\0");
    let words = text.split_whitespace().map(|word| word.replace('\0', " ").replace("\\#", "#").replace("$$", "$"));
    words.filter_map(|word| dir_of_header(&word)).collect()
}

/// Returns the header directories in the output of a build script: announced files, which bindgen's callbacks print for
/// every file that clang reads, and the compiler calls that older releases of the cc crate print. If the script embeds
/// a guard, its announcements are ignored, because the guard announces every header that it read, used or not.
fn parse_script_output(text: &str) -> Vec<PathBuf> {
    let embeds = text.contains(env::STAMP_DIR_VAR);
    let mut dirs = Vec::new();
    for line in text.lines() {
        if let Some(call) = line.strip_prefix("running: ") {
            let words: Vec<String> = call.split('"').skip(1).step_by(2).map(str::to_owned).collect();
            // The compiler uses the first directory that contains the headers.
            let mut called = include_flags(&words).into_iter();
            dirs.extend(called.find(|dir| dir.is_absolute() && LibraryHeaders::in_dir(dir).is_some()));
        } else if let Some(rest) = line.strip_prefix("cargo:").filter(|_| !embeds) {
            let file = rest.strip_prefix(':').unwrap_or(rest).strip_prefix("rerun-if-changed=");
            dirs.extend(file.and_then(dir_of_header));
        }
    }
    dirs
}

/// Returns the release in bindings: `pub const …_MAJOR: u32 = 9;` and the two constants that follow.
fn parse_bindings_version(text: &str) -> Option<Version> {
    let [major, minor, patch] = cudnn::MACROS.map(|name| {
        let (_, rest) = text.split_once(&format!("const {name}"))?;
        let (kind, rest) = rest.split_once('=')?;
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|_| kind.trim_start().starts_with(':'))
    });
    Some(Version::new(major?, minor?, patch?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_in_texts() {
        let key = CUDNN.key;
        let rule =
            format!("/o/k.o: k.cu /a\\ b/{key}_version.h \\\n /usr/include/stdio.h /c/{key}_ops.h\\\n {key}.h\n");
        assert_eq!(parse_depfile(&rule), [PathBuf::from("/a b"), PathBuf::from("/c")]);
        let output = format!(
            "cargo:rerun-if-changed=/a/{key}.h\ncargo::rerun-if-changed=/b/{key}_graph.h\ncargo:rerun-if-changed=/c/x.h\n\
             cargo:rustc-link-lib={key}\nrunning: \"c++\" \"-I\" \"/nowhere\" \"-c\" \"k.cpp\"\n"
        );
        assert_eq!(parse_script_output(&output), [PathBuf::from("/a"), PathBuf::from("/b")]);
        let embeds = format!("{output}cargo:rerun-if-env-changed={}\n", env::STAMP_DIR_VAR);
        assert_eq!(parse_script_output(&embeds), [] as [PathBuf; 0]);
    }

    #[test]
    fn releases_are_found_in_bindings() {
        let [major, minor, patch] = cudnn::MACROS;
        let text = |of: &str| {
            format!("pub const {major}: {of} = 9;\npub const {minor}: {of} = 15 ; pub const {patch} : {of}=1;\n")
        };
        for of in ["u32", "::std::os::raw::c_int"] {
            let output = parse_bindings_version(&text(of));
            assert_eq!(output, Some(Version::new(9, 15, 1)), "{of}");
        }
        assert_eq!(parse_bindings_version(""), None);
        assert_eq!(parse_bindings_version(&format!("pub const {major}: u32 = 9;")), None);
    }
}
