//! The directories in which a linker finds libraries, parsed from its arguments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::binary::file::Binary;
use crate::knowledge::vendor::{CUDART, CUDNN, NVML, is_nvidia_word, stem_of};
use crate::linked::torch;

/// Directories in the order of the linker.
#[derive(Debug, Default)]
pub(crate) struct Dirs {
    /// The directories of libraries that the arguments name by path, if they are relevant here.
    pub(crate) named: Vec<PathBuf>,
    /// The directories that the linker searches for all other libraries.
    pub(crate) searched: Vec<PathBuf>,
}

impl Dirs {
    /// Parses the arguments of a linker. Relative paths start from `base`.
    pub(crate) fn from_args<'w>(words: impl IntoIterator<Item = &'w str>, base: &Path) -> Self {
        let mut dirs = Self::default();
        let mut follows = false;
        let words = words.into_iter().flat_map(|word| match word.strip_prefix("-Wl,") {
            Some(words) => words.split(',').collect(),
            None => vec![word],
        });
        for word in words.filter(|word| *word != "-Xlinker") {
            let glued = ["-L", "--library-path="].iter().find_map(|option| word.strip_prefix(option));
            if std::mem::take(&mut follows) {
                dirs.searched.push(base.join(word));
            } else if matches!(word, "-L" | "--library-path") {
                follows = true;
            } else if let Some(dir) = glued {
                dirs.searched.push(base.join(dir));
            } else if let Some(dir) = Path::new(word).parent().filter(|_| is_asked_for(word)) {
                dirs.named.push(base.join(dir));
            }
        }
        dirs
    }

    /// Returns all directories. A library that is named by its path takes precedence over the searched directories.
    pub(crate) fn into_dirs(self) -> impl Iterator<Item = PathBuf> {
        self.named.into_iter().chain(self.searched)
    }
}

/// Returns true if a library with this name, as `-l` accepts it, uses CUDA. NVML alone does not.
pub(crate) fn is_cuda(name: &str) -> bool {
    let name = name.strip_suffix("_static").unwrap_or(name);
    name != NVML && is_nvidia_word(name)
}

/// Returns true if an argument of the linker names such a library: `-lcudart`, `-Wl,-lcuda`, `/opt/cuda/lib64/libcublas.so`.
pub(crate) fn names_cuda(argument: &str) -> bool {
    argument.split(',').any(|word| {
        let name = if word.starts_with('-') {
            word.strip_prefix("-l")
        } else {
            let file = word.rsplit('/').next().and_then(|file| file.strip_prefix("lib"));
            file.and_then(|file| file.split_once('.')).map(|(name, _)| name)
        };
        name.is_some_and(is_cuda)
    })
}

/// Returns true if a directory that a build script names contains the libraries of a CUDA toolkit, driver, cuDNN or
/// libtorch with CUDA.
/// System directories are not evidence, because programs without CUDA name them, too.
pub(crate) fn has_cuda(dir: &Path) -> bool {
    let files = ["libcudart.so", "libcudart_static.a", "libcuda.so", "libcudnn.so"];
    !is_of_system(dir) && (files.iter().any(|file| dir.join(file).exists()) || torch::cuda_part(dir).is_some())
}

fn is_of_system(dir: &Path) -> bool {
    ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
        .iter()
        .any(|system| dir.strip_prefix(system).is_ok_and(|below| below.components().count() <= 1))
}

/// Returns true if one of these libraries, or a library that it needs, uses CUDA. Only libraries in directories that
/// the build names are read; the system libraries do not use CUDA.
pub(crate) fn need_cuda(needed: &[String], searched: &[PathBuf]) -> bool {
    /// Maximum number of examined libraries; no build has more.
    const MOST: usize = 1000;
    let (mut open, mut seen) = (needed.to_vec(), BTreeSet::new());
    while let Some(name) = open.pop() {
        let stem = stem_of(&name);
        let names = [name.clone(), format!("{stem}.so")];
        let files =
            searched.iter().filter(|dir| !is_of_system(dir)).flat_map(|dir| names.iter().map(|name| dir.join(name)));
        let Some(file) = files.into_iter().find(|file| file.is_file()) else { continue };
        if seen.len() == MOST || !seen.insert(file.clone()) {
            continue;
        }
        let Ok(library) = Binary::read(&file) else { continue };
        if library.reaches_cuda().unwrap_or(false) {
            return true;
        }
        open.extend(library.needed);
    }
    false
}

fn is_asked_for(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    !word.starts_with('-') && [&CUDNN, &CUDART].iter().any(|library| name.starts_with(&library.link_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_follow_linker_order() {
        let found = |words: &str| Dirs::from_args(words.split(' '), Path::new("/b")).into_dirs().collect::<Vec<_>>();
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            found("-L/one -L two -Wl,-L,/three -Wl,-L/four,--library-path=/five"),
            paths(&["/one", "/b/two", "/three", "/four", "/five"])
        );
        assert_eq!(found("-Xlinker -L -Xlinker /one -lcudnn"), paths(&["/one"]));
        // A path precedes all directories. The path of another library does not matter.
        assert_eq!(
            found("-L/one /two/libcudnn.so.9 x/libz.so x/main.o ../libcudart.so.13.0.96"),
            paths(&["/two", "/b/..", "/one"])
        );
    }
}
