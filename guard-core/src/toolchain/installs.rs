//! Detects cuDNN for a build: headers, the library that the linker would use, its inner libraries, and its CUDA
//! major. Everything comes from files; no NVIDIA code runs.

use std::path::{Path, PathBuf};

use super::library::LibraryImage;
use super::pkg_config;
use super::places::{
    Layout, Precedence, ToolkitPlace, conda_root, entries_with_prefix, newest_first, path_below, releases_of_installer,
    site_packages,
};
use super::{SearchDir, Selection, SelectionReason, Sourced};
use crate::knowledge::cudnn::{self, numbers_of};
use crate::model::version::Version;
use crate::sys::env::Env;
use crate::sys::files;

/// A place with headers, a library, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Install {
    /// The origins of the path: a variable, a toolkit, `/usr/include`, …
    pub found: Vec<String>,
    /// Its headers.
    pub headers: Option<CudnnHeaders>,
    /// Its library.
    pub library: Option<InstalledLibrary>,
}

/// The header that contains the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudnnHeaders {
    /// The path: a file of [`cudnn::HEADERS`].
    pub path: PathBuf,
    /// Its version; `None` if it contains none.
    pub version: Option<Version>,
}

/// The library that programs link, and the libraries in its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledLibrary {
    /// The path as found.
    pub path: PathBuf,
    /// The version in its soname.
    pub major: u32,
    /// The version from the inner library's exported symbol, the real file name, or the wheel's name.
    pub version: Option<Sourced<Version>>,
    /// The CUDA major that it is built for.
    pub cuda_major: Option<Sourced<u32>>,
    /// The inner libraries in its directory. The one with the version comes first.
    pub parts: Vec<InstalledPart>,
    /// Missing inner libraries: those that the loader library needs, and those that contain their version
    /// ([`cudnn::PARTS`]).
    pub missing: Vec<String>,
}

/// An inner library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPart {
    /// Its file name.
    pub file: String,
    /// Its own version, from an exported symbol or its real file name.
    pub version: Option<Version>,
}

/// Parses the version from the macros of a header: `#define …_MAJOR 9`.
pub(super) fn parse_header(text: &str) -> Option<Version> {
    let [major, minor, patch] = cudnn::MACROS.map(|name| {
        text.lines().find_map(|line| {
            let mut words = line.strip_prefix('#')?.split_whitespace();
            (words.next() == Some("define") && words.next() == Some(name)).then(|| words.next()?.parse().ok())?
        })
    });
    Some(Version::new(major?, minor?, patch?))
}

pub(super) fn headers_in(dir: &Path) -> Option<CudnnHeaders> {
    let mut damaged = None;
    for name in cudnn::HEADERS {
        let path = dir.join(name);
        let Ok(text) = files::read_bytes(&path) else { continue };
        let version = parse_header(&String::from_utf8_lossy(&text));
        if version.is_some() {
            return Some(CudnnHeaders { path, version });
        }
        // A header without a version may be next to one that has it.
        damaged.get_or_insert(CudnnHeaders { path, version: None });
    }
    damaged
}

impl CudnnHeaders {
    /// Returns the headers in this directory.
    pub fn in_dir(dir: &Path) -> Option<Self> {
        headers_in(dir)
    }
}

/// Returns the file in a directory that a linker would use, or that belongs to a wheel.
fn file_in(dir: &Path, layout: &Layout) -> Option<PathBuf> {
    let named = dir.join(cudnn::LINK_NAME);
    let path = if named.is_file() {
        named
    } else {
        // Wheels contain no link of this name. Prefer the newest major, and the soname itself within a major.
        let mut found = layout.libraries_in(dir, &format!("{}.", cudnn::LINK_NAME));
        found.retain(|file| file.is_file());
        found.sort_by(|one, other| {
            let (one, other) = (version_numbers(one), version_numbers(other));
            other.first().cmp(&one.first()).then(one.len().cmp(&other.len()))
        });
        found.into_iter().next()?
    };
    layout.is_linkable(&path).then_some(path)
}

/// Reads the library of a directory. Entries of `known` are not read again.
fn library_in(dir: &Path, layout: &Layout, known: &[Install]) -> Option<InstalledLibrary> {
    let path = file_in(dir, layout)?;
    let real = path.canonicalize().ok()?;
    let known = known
        .iter()
        .filter_map(|install| install.library.as_ref())
        .find(|known| known.path.canonicalize().ok().as_ref() == Some(&real));
    known.cloned().or_else(|| library_from_path(&path))
}

fn version_numbers(file: &Path) -> Vec<u32> {
    numbers_of(&file.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns the release in the name of a file: `libcudnn.so.9.15.1`.
fn version_from_name(file: &Path) -> Option<Version> {
    match version_numbers(file)[..] {
        [major, minor, patch, ..] => Some(Version::new(major, minor, patch)),
        _ => None,
    }
}

/// Reads the library in this file; `None` if even its major is unknown.
fn library_from_path(path: &Path) -> Option<InstalledLibrary> {
    let real = path.canonicalize().ok()?;
    let dir = real.parent()?;
    let soname = files::read_bytes(&real)
        .ok()
        .and_then(|data| numbers_of(crate::sys::elf::Elf64::parse(&data)?.soname()?).first().copied());
    let major = soname
        .or_else(|| version_numbers(&real).first().copied())
        .or_else(|| version_numbers(path).first().copied())?;

    let suffix = format!(".so.{major}");
    let needed = cudnn::needed_parts(major).map(|part| part.file).collect::<Vec<_>>();
    let asked = cudnn::parts_of_major(major).filter(|part| !part.symbol.is_empty());
    let mut names = asked.map(|part| part.file.to_owned()).collect::<Vec<_>>();
    names.extend(entries_with_prefix(dir, &format!("{}_", cudnn::STEM)).iter().filter_map(|file| {
        let name = file.file_name()?.to_str()?;
        name.ends_with(&suffix).then(|| name.to_owned())
    }));
    let mut parts = Vec::new();
    let mut missing = Vec::new();
    let mut cuda_major = None;
    let mut word: Option<Sourced<Version>> = None;
    names.sort();
    names.dedup();
    // The library with the exported version comes first.
    if let Some(at) = names.iter().position(|name| needed.first().is_some_and(|first| first == name)) {
        names[..=at].rotate_right(1);
    }
    for name in names {
        let file = dir.join(&name);
        let Ok(real) = file.canonicalize() else {
            missing.push(name);
            continue;
        };
        // Some majors kept the names of the one before.
        let stem = name.trim_start_matches("lib").trim_end_matches(&suffix);
        let symbols = [format!("{stem}_version"), format!("{stem}_infer_version")];
        // Engines and heuristics export no version and are large.
        let asked = needed.iter().any(|needed| *needed == name) || stem.contains("adv") || stem.contains("_ops");
        let mut image = asked.then(|| LibraryImage::open(&real)).flatten();
        let exported = image.as_mut().and_then(|image| {
            let (symbol, word) = symbols.iter().find_map(|symbol| Some((symbol, image.exported_u32(symbol)?)))?;
            Some((symbol.clone(), Version::from_packed(word)))
        });
        if let (Some((symbol, version)), None, true) =
            (&exported, &word, needed.first().is_some_and(|first| *first == name))
        {
            word = Some(Sourced { value: *version, source: format!("{symbol} in {}", file.display()) });
        }
        let part = InstalledPart {
            file: name,
            version: exported.map(|(_, version)| version).or_else(|| version_from_name(&real)),
        };
        // A stale inner library of another release proves nothing about the library.
        let fits = word.as_ref().is_none_or(|word| part.version.is_none_or(|own| own == word.value));
        if fits && cuda_major.is_none() {
            cuda_major = image.as_mut().and_then(|image| cuda_major_of(image, &file, major));
        }
        parts.push(part);
    }
    let version = word
        .or_else(|| Some(Sourced { value: version_from_name(&real)?, source: format!("file name {}", real.display()) }))
        .or_else(|| dist_info(dir).map(|(version, _, source)| Sourced { value: version, source }))
        .filter(|version| version.value.major == major);
    let cuda_major = cuda_major
        .or_else(|| dist_info(dir).and_then(|(_, cuda, source)| Some(Sourced { value: cuda?, source })))
        .or_else(|| package_major(dir, major));
    Some(InstalledLibrary { path: path.to_owned(), major, version, cuda_major, parts, missing })
}

/// Returns the CUDA major of an inner library, from the libraries that it needs (up to 8.7), its search directories
/// (from 9.17), the names that it loads (8), or the PTX of its kernels (all).
fn cuda_major_of(image: &mut LibraryImage, file: &Path, own_major: u32) -> Option<Sourced<u32>> {
    for text in image.dynamic_texts() {
        if let Some(major) = text.strip_prefix("libcublas.so.").and_then(|rest| rest.parse().ok()) {
            return Some(Sourced { value: major, source: format!("{} needs {text}", file.display()) });
        }
        let dir = text.split(['/', ':']).find(|part| part.starts_with("cu1"));
        if let Some(major) = dir.and_then(|name| name[2..].parse().ok()) {
            return Some(Sourced { value: major, source: format!("{} searches ../cu{major}/lib", file.display()) });
        }
    }
    // From 9 on, none of the libraries that are read here contains it.
    if let Some(major) = (own_major < 9).then(|| image.number_after("libcublas.so.")).flatten() {
        return Some(Sourced { value: major, source: format!("{} loads libcublas.so.{major}", file.display()) });
    }
    // CUDA 11 writes PTX ISA 7.x, 12 8.x, 13 9.x (data/toolkits.toml); later ones are unknown.
    let (major, minor) = image.ptx_isa()?;
    (7..=9).contains(&major).then(|| Sourced {
        value: u32::from(major) + 4,
        source: format!("{} holds PTX {major}.{minor}, which CUDA {} writes", file.display(), major + 4),
    })
}

/// Returns the version and CUDA major from the metadata directory of the wheel with `nvidia/<key>/lib`:
/// `nvidia_<key>_cu12-9.1.0.70.dist-info`.
fn dist_info(dir: &Path) -> Option<(Version, Option<u32>, String)> {
    let key = cudnn::KEY;
    if !dir.ends_with(format!("nvidia/{key}/lib")) {
        return None;
    }
    let site = dir.ancestors().nth(3)?;
    entries_with_prefix(site, &format!("nvidia_{key}")).into_iter().find_map(|entry| {
        let name = entry.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        let (package, version) = name.rsplit_once('-')?;
        let cuda = package.strip_prefix(&format!("nvidia_{key}_cu")).and_then(|number| number.parse().ok());
        Some((version.parse().ok()?, cuda, format!("wheel {name}")))
    })
}

/// Returns the CUDA major from the package metadata: the name of NVIDIA's Debian package (`-cuda-12` in
/// `/var/lib/dpkg/info`), or the dependencies of a conda package.
fn package_major(dir: &Path, major: u32) -> Option<Sourced<u32>> {
    let system_root = dir.ancestors().find(|root| root.join("var/lib/dpkg/info").is_dir());
    let triplet_dir = dir.parent().is_some_and(|parent| parent.ends_with("usr/lib"));
    if let Some(root) = system_root.filter(|_| triplet_dir) {
        let prefix = format!("{}{major}-cuda-", cudnn::STEM);
        let lists = entries_with_prefix(&root.join("var/lib/dpkg/info"), &prefix);
        let mut majors = lists.iter().filter_map(|file| number_in(file, &prefix)).collect::<Vec<_>>();
        majors.dedup();
        // Two packages cannot own the same files.
        if let [cuda] = majors[..] {
            return Some(Sourced { value: cuda, source: format!("package {prefix}{cuda}") });
        }
    }
    let meta = dir.parent()?.join("conda-meta");
    let mut records = entries_with_prefix(&meta, &format!("{}-", cudnn::KEY));
    records.extend(entries_with_prefix(&meta, &format!("{}-", cudnn::STEM)));
    records.into_iter().find_map(|file| {
        let text = files::read_text(&file).ok()?;
        let source = format!("conda package {}", file.file_stem()?.to_string_lossy());
        Some(Sourced { value: conda_cuda(&text)?, source })
    })
}

/// Returns the CUDA major that a record in `conda-meta` requires: `cuda-version >=12,<13.0a0` (conda-forge),
/// `cuda-version 12.*` (Anaconda, and older packages of conda-forge).
fn conda_cuda(record: &str) -> Option<u32> {
    let (_, rest) = record.split_once("\"cuda-version ")?;
    let rest = rest.trim_start_matches([' ', '>', '=', '~']);
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn number_in(file: &Path, prefix: &str) -> Option<u32> {
    let rest = file.file_name()?.to_str()?.strip_prefix(prefix)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The origin of the system directories.
pub(super) const SYSTEM: &str = "the system";

/// Variables with header directories of every compiler.
pub(super) const INCLUDE_PATHS: [&str; 3] = ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];

/// Returns the library of this soname that a linker finds first in these directories.
pub fn resolve_library(soname: &str, dirs: &[PathBuf]) -> Option<InstalledLibrary> {
    let names = [cudnn::LINK_NAME, soname];
    for dir in dirs {
        for file in names.iter().map(|name| dir.join(name)).filter(|file| file.is_file()) {
            let found =
                library_from_path(&file).filter(|library| cudnn::numbers_of(soname).first() == Some(&library.major));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// The directories that may contain headers or libraries, the most certain first, with their origins.
#[derive(Debug, Default)]
pub(super) struct InstallSearch {
    pub(super) includes: Vec<SearchDir>,
    pub(super) libraries: Vec<SearchDir>,
}

impl InstallSearch {
    pub(super) fn add_includes(&mut self, dirs: impl IntoIterator<Item = PathBuf>, source: &str, reach: Precedence) {
        let dirs = dirs.into_iter().map(|path| SearchDir { path, source: source.to_owned(), reach });
        self.includes.extend(dirs);
    }

    pub(super) fn add_libraries(&mut self, dirs: impl IntoIterator<Item = PathBuf>, source: &str, reach: Precedence) {
        let dirs = dirs.into_iter().map(|path| SearchDir { path, source: source.to_owned(), reach });
        self.libraries.extend(dirs);
    }
}

/// Lists the directories to search for cuDNN. `toolkits`: roots of the toolkits, those in use first.
pub(super) fn search_installs(
    env: &Env,
    system_root: &Path,
    layout: &Layout,
    toolkits: &[ToolkitPlace],
    link_first: &[SearchDir],
) -> InstallSearch {
    let mut search = InstallSearch::default();
    search.add_includes(env.path(cudnn::INCLUDE_VARIABLE), cudnn::INCLUDE_VARIABLE, Precedence::Named);
    // The variable may contain a file or a directory, and some tools treat the directory as a root.
    let mut sibling_includes = Vec::new();
    for name in cudnn::FILE_VARIABLES {
        let Some(dir) = env.path(name) else { continue };
        let dir = if dir.is_dir() { dir } else { dir.parent().map(Path::to_owned).unwrap_or(dir) };
        search.add_libraries([dir.clone()], name, Precedence::Named);
        search.add_libraries(layout.library_dirs(&dir), name, Precedence::Named);
        sibling_includes.extend([(dir.join("include"), name), (dir.join("../include"), name)]);
    }
    for name in cudnn::ROOT_VARIABLES {
        let Some(root) = env.path(name) else { continue };
        // NVIDIA's archives for Arm servers have the same layout as those for PCs; their files show the architecture.
        let plain = Some(root.join("lib")).filter(|dir| layout.cross && file_in(dir, layout).is_some());
        let sibling_includes = plain.is_some().then(|| root.join("include"));
        let mut includes = layout.include_dirs(&root);
        includes.extend(sibling_includes);
        let mut below = layout.library_dirs(&root);
        below.extend(plain);
        includes.push(root.clone());
        below.push(root);
        search.add_includes(includes, name, Precedence::Named);
        search.add_libraries(below, name, Precedence::Named);
    }
    for (dir, name) in sibling_includes {
        search.add_includes([dir], name, Precedence::Named);
    }
    for dir in link_first {
        search.add_libraries([dir.path.clone()], &dir.source, Precedence::Named);
    }
    for place in toolkits {
        let source = format!("next to the toolkit ({})", place.source);
        search.add_includes(layout.include_dirs(&place.root), &source, place.reach);
        search.add_libraries(layout.library_dirs(&place.root), &source, place.reach);
        // The root of a cu13 wheel is next to the library's.
        let wheel =
            place.root.parent().filter(|parent| parent.ends_with("nvidia")).map(|nvidia| nvidia.join(cudnn::KEY));
        if let Some(wheel) = wheel.filter(|wheel| !layout.cross || file_in(&wheel.join("lib"), layout).is_some()) {
            search.add_includes([wheel.join("include")], &source, place.reach);
            search.add_libraries([wheel.join("lib")], &source, place.reach);
        }
    }
    // Searched after every `-I` and before the system directories.
    for variable in INCLUDE_PATHS {
        search.add_includes(env.path_list(variable), variable, Precedence::Named);
    }
    for usual in &["/usr/local", "/usr"] {
        let root = path_below(system_root, usual);
        search.add_includes(layout.include_dirs(&root), SYSTEM, Precedence::Usual);
        search.add_libraries(layout.library_dirs(&root), SYSTEM, Precedence::Usual);
        if !layout.cross {
            search.add_libraries([root.join("lib64")], SYSTEM, Precedence::Usual);
        }
    }
    // It has a directory for each CUDA: `v9.15\include\13.0`.
    for release in releases_of_installer(env, ["NVIDIA", "CUDNN"]) {
        let dirs = newest_first(entries_with_prefix(&release.join("include"), ""));
        search.add_includes(dirs, &release.display().to_string(), Precedence::Listed);
    }
    if let Some(conda) = conda_root(env) {
        search.add_includes([conda.join("include")], "CONDA_PREFIX", Precedence::Listed);
        search.add_libraries([conda.join("lib")], "CONDA_PREFIX", Precedence::Listed);
    }
    for (variable, site) in site_packages(env) {
        let wheel = format!("nvidia/{}", cudnn::KEY);
        let source = format!("{variable} (wheel {wheel})");
        search.add_includes([site.join(&wheel).join("include")], &source, Precedence::Listed);
        search.add_libraries([site.join(&wheel).join("lib")], &source, Precedence::Listed);
    }
    for package in pkg_config::find_packages(env, system_root, layout, cudnn::KEY) {
        let source = format!("pkg-config ({})", package.file);
        let (mut includes, mut below) = (package.includes, package.libraries);
        if let Some(root) = &package.root {
            includes.extend(layout.include_dirs(root));
            below.extend(layout.library_dirs(root));
        }
        search.add_includes(includes, &source, Precedence::Listed);
        search.add_libraries(below, &source, Precedence::Listed);
    }
    search
}

/// The places of a search, and the ones in use.
#[derive(Debug, Default)]
pub(super) struct FoundInstalls {
    pub(super) all: Vec<Install>,
    pub(super) headers: Option<Selection>,
    pub(super) library: Option<Selection>,
}

/// Reads the directories of a search.
///
/// The headers in use are the first ones that a build finds without configuration. The library in use is the first one
/// that a variable puts on the linker's search path; otherwise the one that came with the headers; otherwise the first
/// one that a build finds.
pub(super) fn read_installs(search: &InstallSearch, layout: &Layout) -> FoundInstalls {
    let mut sources: Vec<(&str, Precedence)> = Vec::new();
    for dir in search.includes.iter().chain(&search.libraries) {
        if !sources.iter().any(|(source, _)| *source == dir.source) {
            sources.push((&dir.source, dir.reach));
        }
    }
    let mut found = FoundInstalls::default();
    let mut reaches: Vec<Precedence> = Vec::new();
    for (source, reach) in sources {
        let mut includes = search.includes.iter().filter(|dir| dir.source == source);
        let mut libraries = search.libraries.iter().filter(|dir| dir.source == source);
        let headers = includes.find_map(|dir| headers_in(&dir.path));
        let library = libraries.find_map(|dir| library_in(&dir.path, layout, &found.all));
        if headers.is_none() && library.is_none() {
            continue;
        }
        let known = found.all.iter().position(|known| {
            let (known_headers, known_library) = (known.headers.as_ref(), known.library.as_ref());
            headers.as_ref().is_none_or(|new| known_headers.is_some_and(|old| is_same_file(&old.path, &new.path)))
                && library
                    .as_ref()
                    .is_none_or(|new| known_library.is_some_and(|old| is_same_file(&old.path, &new.path)))
        });
        if let Some(known) = known {
            found.all[known].found.push(source.to_owned());
            reaches[known] = reaches[known].min(reach);
            continue;
        }
        found.all.push(Install { found: vec![source.to_owned()], headers, library });
        reaches.push(reach);
    }
    let usual = (0..found.all.len()).filter(|index| reaches[*index] < Precedence::Listed).collect::<Vec<_>>();
    let headers = usual.iter().copied().find(|index| found.all[*index].headers.is_some());
    let with_library = usual.into_iter().filter(|index| found.all[*index].library.is_some()).collect::<Vec<_>>();
    // In the order of the linker, which differs from that of the headers.
    let on_the_way = search
        .libraries
        .iter()
        .filter(|dir| dir.reach == Precedence::Named)
        .find_map(|dir| with_library.iter().find(|index| found.all[**index].found.contains(&dir.source)).copied());
    let of_headers = headers.filter(|index| with_library.contains(index));
    let library = on_the_way.or(of_headers).or(with_library.first().copied());
    found.headers = headers.map(|index| choose_install(index, reaches[index], &found.all));
    found.library = library.map(|index| choose_install(index, reaches[index], &found.all));
    if let Some(library) = found.library.as_mut().filter(|_| on_the_way.is_none() && headers == library) {
        library.reason = SelectionReason::Other("from the same package as the headers".to_owned());
    }
    found
}

fn choose_install(index: usize, reach: Precedence, all: &[Install]) -> Selection {
    let source = &all[index].found[0];
    let reason = match reach {
        Precedence::Named => SelectionReason::Named(source.clone()),
        _ => SelectionReason::Other(format!("{source}: no variable names another")),
    };
    Selection { index, reason }
}

/// Returns true if both paths lead to one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().ok() == other.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cudnn_headers_are_parsed() {
        let eight = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n";
        assert_eq!(parse_header(eight), Some(Version::new(8, 9, 7)));
        // cuDNN 7's cudnn.h, aligned with blanks.
        let seven = "/* x */\n#define CUDNN_MAJOR 7\n#define  CUDNN_MINOR   6\n#define CUDNN_PATCHLEVEL 5\n";
        assert_eq!(parse_header(seven), Some(Version::new(7, 6, 5)));
        assert_eq!(parse_header("#define CUDNN_MAJOR\n#define CUDNN_MINOR x\n#define"), None);
        assert_eq!(parse_header(""), None);
    }

    #[test]
    fn conda_package_cuda_is_read() {
        for (record, cuda) in [
            (r#"{"depends": ["cuda-version >=12,<13.0a0", "libstdcxx"]}"#, Some(12)),
            (r#"{"depends": ["cuda-nvrtc", "cuda-version 12.*"]}"#, Some(12)),
            (r#"{"depends": ["cuda-version ==13.0"]}"#, Some(13)),
            (r#"{"depends": ["cuda-version"]}"#, None),
            (r#"{"depends": ["cuda-version *"]}"#, None),
            (r#"{"depends": ["cuda-version <13"]}"#, None),
            (r#"{"depends": ["cuda-version 12"#, None),
        ] {
            assert_eq!(conda_cuda(record), cuda, "{record}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parsers_never_panic(text: String) {
            let _ = parse_header(&text);
            let _ = conda_cuda(&format!("\"cuda-version {text}"));
        }
    }
}
