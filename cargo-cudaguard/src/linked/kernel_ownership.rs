//! Determines which kernels of a linked file belong to the package. A kernel belongs to it if the same bytes are in a
//! file that its build script wrote, in its directory, or in a file that it passes to the linker. The owner of other
//! kernels is unknown.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::kernels::{self, Container, ImageForm, Kernels};
use crate::binary::mapped_file::OpenFiles;
use crate::knowledge::vendor::is_nvidia_word;

/// Maximum number of files that are examined. It suffices for the kernels of any package, and it limits the walk
/// through a directory of data sets.
const MOST_FILES: usize = 20_000;

/// The locations of the GPU code of a package.
#[derive(Debug)]
pub(crate) struct BuildPlaces<'a> {
    /// The directory of the package, if its files count.
    pub(crate) package: Option<&'a Path>,
    /// The output directories of build scripts.
    pub(crate) out_dirs: Vec<PathBuf>,
    /// The files that the linker is given by name.
    pub(crate) objects: &'a [PathBuf],
    /// The target directory of cargo, which may be in any location.
    pub(crate) target_dir: &'a Path,
    /// The files that the command has open.
    pub(crate) files: &'a OpenFiles,
}

/// Returns, for each container of a file, whether it is known to belong to the package.
pub(crate) fn owned_containers(data: &[u8], found: &Kernels, places: &BuildPlaces<'_>) -> Vec<bool> {
    let mut own = vec![false; found.containers().len()];
    // Most containers already differ in size.
    let mut by_size: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, container) in found.containers().iter().enumerate() {
        by_size.entry(container.size).or_default().push(at);
    }
    for_each_file(places, &mut |path| {
        let Ok(bytes) = places.files.open(path) else { return };
        let Ok(theirs) = kernels::read_contents(path, &bytes) else { return };
        for container in theirs.containers() {
            let Some(wanted) = bytes_of(&bytes, container) else { continue };
            if container.form == ImageForm::Ptx {
                // The length of a PTX text in a linked file depends on the bytes that follow it.
                let text = wanted.trim_ascii_end();
                for (at, candidate) in found.containers().iter().enumerate() {
                    own[at] |= candidate.form == ImageForm::Ptx && starts_with(data, candidate.offset, text);
                }
                continue;
            }
            for at in by_size.get(&container.size).into_iter().flatten() {
                // A container that already matched is not compared again.
                own[*at] = own[*at] || bytes_of(data, &found.containers()[*at]) == Some(wanted);
            }
        }
    });
    own
}

/// Returns the objects and static libraries among the files of a build, without its guard.
pub(crate) fn object_files(places: &BuildPlaces<'_>) -> Vec<PathBuf> {
    let mut objects = Vec::new();
    for_each_file(places, &mut |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let guard = name.starts_with("cudaguard") || name.starts_with("libcudaguard");
        if !guard && [".o", ".obj", ".a"].iter().any(|ending| name.ends_with(ending)) {
            objects.push(path.to_owned());
        }
    });
    objects
}

fn for_each_file(places: &BuildPlaces<'_>, known: &mut impl FnMut(&Path)) {
    for object in places.objects.iter().filter(|object| holds_code(object)) {
        known(object);
    }
    let mut left = MOST_FILES;
    let mut seen = BTreeSet::new();
    for dir in places.out_dirs.iter().map(PathBuf::as_path).chain(places.package) {
        walk_kernel_files(dir, dir, places, &mut left, &mut seen, known);
    }
}

fn bytes_of<'a>(data: &'a [u8], container: &Container) -> Option<&'a [u8]> {
    let start = usize::try_from(container.offset).ok()?;
    data.get(start..start.checked_add(usize::try_from(container.size).ok()?)?)
}

fn starts_with(data: &[u8], offset: u64, text: &[u8]) -> bool {
    !text.is_empty()
        && usize::try_from(offset).is_ok_and(|start| data.get(start..).is_some_and(|rest| rest.starts_with(text)))
}

/// Visits the files whose names indicate GPU code, in a directory and its subdirectories, without other packages and
/// cargo's outputs.
fn walk_kernel_files(
    top: &Path,
    dir: &Path,
    places: &BuildPlaces<'_>,
    left: &mut usize,
    seen: &mut BTreeSet<PathBuf>,
    known: &mut impl FnMut(&Path),
) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let of_cargo = path == places.target_dir || path.join("CACHEDIR.TAG").exists();
            let package = path.join("Cargo.toml").exists() && path != top;
            if !hidden && !of_cargo && !package {
                walk_kernel_files(top, &path, places, left, seen, known);
            }
        } else if path.is_file() && holds_code(&path) && seen.insert(path.clone()) {
            known(&path);
        }
    }
}

fn holds_code(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    matches!(ending, "o" | "obj" | "a" | "ptx" | "cubin" | "fatbin") && !is_nvidia_archive(&name)
}

/// Returns true for a static library of NVIDIA, even if a package contains it.
fn is_nvidia_archive(name: &str) -> bool {
    let word = ["_static", "devrt"].iter().find_map(|mark| Some(name.split_once(mark)?.0));
    word.is_some_and(is_nvidia_word) || name.starts_with("libnccl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_match_by_name() {
        for name in ["kernels.o", "libkernels.a", "k.ptx", "k.cubin", "libcustom.a", "libnvidia_like.a"] {
            assert!(holds_code(Path::new(name)), "{name}");
        }
        for name in ["main.rs", "a.out", "libcublas_static.a", "libcudadevrt.a", "libnccl_static.a", "o"] {
            assert!(!holds_code(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn identical_kernel_text_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let out = dir.join("target/out");
        fs::create_dir_all(&out).unwrap();
        fs::create_dir_all(dir.join("member")).unwrap();
        let ptx = |name: &str| {
            format!("//\n.version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry {name}()\n{{\n\tret;\n}}\n")
        };
        fs::write(dir.join("mine.ptx"), ptx("mine")).unwrap();
        fs::write(dir.join("member/Cargo.toml"), "").unwrap();
        fs::write(dir.join("member/theirs.ptx"), ptx("theirs")).unwrap();
        fs::write(out.join("built.ptx"), ptx("built")).unwrap();
        let target = dir.join("target");
        let places = BuildPlaces {
            package: Some(dir),
            out_dirs: vec![out],
            target_dir: &target,
            objects: &[],
            files: &OpenFiles::default(),
        };
        for (name, expected) in [("mine", true), ("theirs", false), ("built", true), ("elsewhere", false)] {
            let text = ptx(name);
            let found = kernels::read_bytes(text.as_bytes()).unwrap();
            assert_eq!(owned_containers(text.as_bytes(), &found, &places), [expected], "{name}");
        }
    }
}
