//! Detects the cuDNN headers that a build compiled with. Objects do not contain `-I` options, so this reads other
//! outputs of build scripts and compilers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use cudaguard::internal::env;
use cudaguard::internal::toolchain::{LibraryHeaders, include_flags};
use cudaguard::internal::vendor::CUDNN;
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
    let mut add = |included: Included| {
        if !found.iter().any(|known| known.version == included.version) {
            found.push(included);
        }
    };
    for dir in out_dirs {
        let mut left = MOST_FILES;
        walk_files(dir, &mut left, &mut |file: &Path| scan_file(file, &mut add));
        // cargo stores the output of a script in a sibling of `OUT_DIR`.
        if let Some(output) = dir.parent().map(|dir| dir.join("output")) {
            scan_paths(&output, parse_script_output, &mut add);
        }
    }
    found
}

fn walk_files(dir: &Path, left: &mut usize, visit: &mut impl FnMut(&Path)) {
    let mut entries: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk_files(&entry.path(), left, visit),
            Ok(kind) if kind.is_file() => visit(&entry.path()),
            _ => {}
        }
    }
}

fn scan_file(file: &Path, add: &mut impl FnMut(Included)) {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("d") => scan_paths(file, parse_depfile, add),
        // Bindings: bindgen converts the macros to constants.
        Some("rs") => {
            let version = text_of(file).as_deref().and_then(parse_bindings_version);
            if let Some(version) = version {
                add(Included { version, path: file.to_owned(), by: file.to_owned() });
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
fn scan_paths(file: &Path, paths: fn(&str) -> Vec<PathBuf>, add: &mut impl FnMut(Included)) {
    let Some(text) = text_of(file) else { return };
    let dirs: BTreeSet<PathBuf> = paths(&text).into_iter().collect();
    for dir in dirs {
        add_dir(&dir, file, add);
    }
}

/// Adds the headers of this directory if they did not change after `by` was written.
fn add_dir(dir: &Path, by: &Path, add: &mut impl FnMut(Included)) {
    let Some(LibraryHeaders { path, version: Some(version) }) = LibraryHeaders::in_dir(dir) else { return };
    let written = fs::metadata(by).and_then(|about| about.modified());
    if written.is_ok_and(|written| !changed_since(&path, written)) {
        add(Included { version, path, by: by.to_owned() });
    }
}

/// Returns true if a file, or a link on its path, was placed there after this time. The modification time of a file may
/// be older than that, but the change time of its inode is not.
fn changed_since(path: &Path, written: SystemTime) -> bool {
    let is_later = |about: &fs::Metadata| change_time(about).is_some_and(|changed| changed > written);
    path.ancestors().any(|part| {
        fs::symlink_metadata(part).is_ok_and(|about| {
            let counts = part == path || about.file_type().is_symlink();
            counts && is_later(&about)
        })
    }) || fs::metadata(path).is_ok_and(|about| is_later(&about))
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
    let announced = |line: &str| {
        let rest = line.strip_prefix("cargo:").filter(|_| !embeds)?;
        dir_of_header(rest.strip_prefix(':').unwrap_or(rest).strip_prefix("rerun-if-changed=")?)
    };
    // The compiler uses the first directory that contains the headers.
    let called = |line: &str| {
        let words: Vec<String> =
            line.strip_prefix("running: ")?.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        include_flags(&words).into_iter().find(|dir| dir.is_absolute() && LibraryHeaders::in_dir(dir).is_some())
    };
    text.lines().filter_map(|line| announced(line).or_else(|| called(line))).collect()
}

/// Returns the release in bindings: `pub const …_MAJOR: u32 = 9;` and the two constants that follow.
fn parse_bindings_version(text: &str) -> Option<Version> {
    let number = |name: &str| {
        let (_, rest) = text.split_once(&format!("const {name}"))?;
        let (kind, rest) = rest.split_once('=')?;
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|_| kind.trim_start().starts_with(':'))
    };
    let [major, minor, patch] = CUDNN.names.macros;
    Some(Version::new(number(major)?, number(minor)?, number(patch)?))
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
        let [major, minor, patch] = CUDNN.names.macros;
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
