//! Where a linker takes libraries from, by the words that it is called with.

use std::path::{Path, PathBuf};

use cudaguard::vendor::{CUDART, CUDNN};

/// Folders, in the linker's order.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// Of libraries that are named by their paths, as far as anybody asks for them here.
    pub(crate) named: Vec<PathBuf>,
    /// In which it looks for all others.
    pub(crate) searched: Vec<PathBuf>,
}

impl Folders {
    /// Relative ones are below `base`.
    pub(crate) fn of<'w>(words: impl IntoIterator<Item = &'w str>, base: &Path) -> Self {
        let mut folders = Self::default();
        let mut follows = false;
        let passed = |word: &'w str| match word.strip_prefix("-Wl,") {
            Some(words) => words.split(',').collect(),
            None => vec![word],
        };
        for word in words.into_iter().flat_map(passed).filter(|word| *word != "-Xlinker") {
            let glued = ["-L", "--library-path="].iter().find_map(|option| word.strip_prefix(option));
            if std::mem::take(&mut follows) {
                folders.searched.push(base.join(word));
            } else if matches!(word, "-L" | "--library-path") {
                follows = true;
            } else if let Some(folder) = glued {
                folders.searched.push(base.join(folder));
            } else if let Some(folder) = Path::new(word).parent().filter(|_| is_asked_for(word)) {
                folders.named.push(base.join(folder));
            }
        }
        folders
    }

    /// A library that is named by its path is taken, whatever is searched.
    pub(crate) fn all(self) -> impl Iterator<Item = PathBuf> {
        self.named.into_iter().chain(self.searched)
    }
}

fn is_asked_for(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    !word.starts_with('-') && [CUDNN, &CUDART].iter().any(|library| name.starts_with(&library.link_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_the_order_of_the_linker() {
        let found = |words: &str| Folders::of(words.split(' '), Path::new("/b")).all().collect::<Vec<_>>();
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(
            found("-L/one -L two -Wl,-L,/three -Wl,-L/four,--library-path=/five"),
            paths(&["/one", "/b/two", "/three", "/four", "/five"])
        );
        assert_eq!(found("-Xlinker -L -Xlinker /one -lcudnn"), paths(&["/one"]));
        // A path goes before all folders, and that of another library tells nothing.
        assert_eq!(
            found("-L/one /two/libcudnn.so.9 x/libz.so x/main.o ../libcudart.so.13.0.96"),
            paths(&["/two", "/b/..", "/one"])
        );
    }
}
