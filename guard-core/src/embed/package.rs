//! Finds the package's own files, which the build script announces to cargo.
//!
//! cargo watches all files of a package until its build script announces a file, and then only the announced ones. So
//! the package's files must be announced too: a directory as one path if cargo may watch everything in it, otherwise
//! the paths in it. As in cargo's own rule, files that git ignores, the target directory and nested packages do not
//! count.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sys::files;
use crate::text::glob;

/// The package's own files.
pub(super) struct PackageSources {
    /// The paths to announce, sorted. If a directory is announced as one path, cargo also sees files that are added
    /// later.
    pub(super) announced: Vec<PathBuf>,
    /// True if they include CUDA sources.
    pub(super) kernels: bool,
}

/// Returns true for the name of a file with code for GPUs.
pub fn is_device_code(path: &Path) -> bool {
    const ENDINGS: [&str; 5] = ["cu", "cuh", "ptx", "cubin", "fatbin"];
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Finds the files of the package in `root`. `out_dir` is the directory that this build script writes to.
pub(super) fn package_files(root: &Path, out_dir: &Path) -> PackageSources {
    let mut walk = PackageWalk {
        out_dir: out_dir.canonicalize().unwrap_or_else(|_| out_dir.to_owned()),
        ignores: Ignore::from_ancestors(root),
        inside: Vec::new(),
        root: root.to_owned(),
        kernels: false,
    };
    let mut announced = match walk.visit_dir(root) {
        DirState::Complete => vec![root.to_owned()],
        DirState::Parts(parts) => parts,
    };
    announced.sort();
    PackageSources { announced, kernels: walk.kernels }
}

enum DirState {
    Complete,
    Parts(Vec<PathBuf>),
}

struct PackageWalk {
    root: PathBuf,
    out_dir: PathBuf,
    /// Rules of the directories from the top of the repository to the current one. `None` outside of a repository.
    ignores: Option<Vec<Ignore>>,
    /// Real paths of the directories that are being read, so that a link back to one of them is not followed.
    inside: Vec<PathBuf>,
    kernels: bool,
}

impl PackageWalk {
    fn visit_dir(&mut self, dir: &Path) -> DirState {
        let Ok(real) = dir.canonicalize() else { return DirState::Parts(Vec::new()) };
        let Ok(entries) = fs::read_dir(dir) else { return DirState::Parts(Vec::new()) };
        self.inside.push(real);
        if dir != self.root {
            if let (Some(ignores), Some(ignore)) = (&mut self.ignores, Ignore::from_dir(dir)) {
                ignores.push(ignore);
            }
        }
        let mut whole = true;
        let mut parts = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            match self.visit_entry(&path) {
                Some(DirState::Complete) => parts.push(path),
                Some(DirState::Parts(below)) => {
                    whole = false;
                    parts.extend(below);
                }
                None => whole = false,
            }
        }
        if let Some(ignores) = &mut self.ignores {
            if ignores.last().is_some_and(|last| last.dir == dir) && dir != self.root {
                ignores.pop();
            }
        }
        self.inside.pop();
        if whole { DirState::Complete } else { DirState::Parts(parts) }
    }

    /// Returns `None` if the path does not belong to the package or must be skipped.
    fn visit_entry(&mut self, path: &Path) -> Option<DirState> {
        if path.file_name()?.as_encoded_bytes().starts_with(b".") {
            return None;
        }
        let facts = fs::metadata(path).ok()?;
        if self.is_ignored(path, facts.is_dir()) {
            return None;
        }
        if facts.is_file() {
            self.kernels |= is_device_code(path);
            return Some(DirState::Complete);
        }
        if !facts.is_dir() {
            return None;
        }
        let real = path.canonicalize().ok()?;
        let back = self.inside.contains(&real);
        let target = path == self.root.join("target") || self.out_dir.starts_with(&real);
        if back || target || path.join("CACHEDIR.TAG").is_file() || path.join("Cargo.toml").is_file() {
            return None;
        }
        Some(self.visit_dir(path))
    }

    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let verdicts = self.ignores.iter().flatten().filter_map(|ignore| ignore.is_path_ignored(path, is_dir));
        verdicts.fold(false, |_, verdict| verdict)
    }
}

/// A `.gitignore` file. Patterns with classes (`[a-z]`) are not supported and ignore nothing: an additional file costs
/// a rebuild, but a missing file would make the build stale.
struct Ignore {
    dir: PathBuf,
    /// The rules in file order. The last rule that matches decides.
    rules: Vec<IgnoreRule>,
}

struct IgnoreRule {
    segments: Vec<String>,
    /// True if the pattern matches from this directory only, false if it matches at any depth.
    anchored: bool,
    only_dirs: bool,
    ignored: bool,
}

impl Ignore {
    /// Reads the files of all directories from the top of the repository to `root`. `None` if there is no repository.
    fn from_ancestors(root: &Path) -> Option<Vec<Self>> {
        let top = root.ancestors().find(|dir| dir.join(".git").exists())?;
        let mut dirs = root.ancestors().take_while(|dir| dir.starts_with(top)).collect::<Vec<_>>();
        dirs.reverse();
        Some(dirs.into_iter().filter_map(Self::from_dir).collect::<Vec<_>>())
    }

    fn from_dir(dir: &Path) -> Option<Self> {
        let bytes = files::read_bytes(&dir.join(".gitignore")).ok()?;
        let rules = String::from_utf8_lossy(&bytes).lines().filter_map(IgnoreRule::parse).collect::<Vec<_>>();
        Some(Self { dir: dir.to_owned(), rules })
    }

    fn is_path_ignored(&self, path: &Path, is_dir: bool) -> Option<bool> {
        let below = path.strip_prefix(&self.dir).ok()?;
        below.to_str()?;
        let names = below.iter().filter_map(|name| name.to_str()).collect::<Vec<_>>();
        self.rules.iter().rev().find(|rule| rule.matches(&names, is_dir)).map(|rule| rule.ignored)
    }
}

impl IgnoreRule {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end();
        let (line, ignored) = line.strip_prefix('!').map_or((line, true), |rest| (rest, false));
        if line.is_empty() || line.starts_with('#') || line.contains(['[', '\\']) {
            return None;
        }
        let (line, only_dirs) = line.strip_suffix('/').map_or((line, false), |rest| (rest, true));
        let anchored = line.contains('/');
        let segments = line.trim_start_matches('/').split('/').map(str::to_owned).collect::<Vec<_>>();
        Some(Self { segments, anchored, only_dirs, ignored })
    }

    fn matches(&self, names: &[&str], is_dir: bool) -> bool {
        if self.only_dirs && !is_dir {
            return false;
        }
        let segments = self.segments.iter().map(String::as_str).collect::<Vec<_>>();
        if self.anchored {
            return path_matches(&segments, names);
        }
        matches!((&segments[..], names.last()), ([pattern], Some(name)) if glob::matches(pattern, name))
    }
}

fn path_matches(patterns: &[&str], names: &[&str]) -> bool {
    match (patterns.split_first(), names.split_first()) {
        (None, None) => true,
        (Some((&"**", [])), rest) => rest.is_some(),
        (Some((&"**", patterns_left)), _) => {
            (0..=names.len()).any(|skipped| path_matches(patterns_left, &names[skipped..]))
        }
        (Some((pattern, patterns_left)), Some((name, names_left))) => {
            glob::matches(pattern, name) && path_matches(patterns_left, names_left)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PackageFiles(tempfile::TempDir);

    impl PackageFiles {
        fn new(files: &[(&str, &str)]) -> Self {
            let package = Self(tempfile::tempdir().unwrap());
            for (path, text) in files {
                let path = package.0.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            package
        }

        fn announced(&self, root: &str) -> Vec<String> {
            let root = self.0.path().join(root);
            let out_dir = self.0.path().join("target/debug/build/x/out");
            let relative = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            package_files(&root, &out_dir).announced.into_iter().map(relative).collect()
        }
    }

    #[test]
    fn clean_directory_is_announced_once() {
        let package = PackageFiles::new(&[("m/Cargo.toml", ""), ("m/src/main.rs", ""), ("m/kernels/a.cu", "")]);
        assert_eq!(package.announced("m"), [""]);
    }

    #[test]
    fn unrelated_files_are_omitted() {
        let package = PackageFiles::new(&[
            ("Cargo.toml", ""),
            ("build.rs", ""),
            ("src/main.rs", ""),
            ("kernels/a.cu", ""),
            ("kernels/.a.cu.swp", ""),
            (".hidden/x", ""),
            ("target/debug/build/x/out/note.o", ""),
            ("elsewhere/CACHEDIR.TAG", ""),
            ("elsewhere/debug/app", ""),
            ("member/Cargo.toml", ""),
            ("member/src/lib.rs", ""),
        ]);
        assert_eq!(package.announced(""), ["Cargo.toml", "build.rs", "kernels/a.cu", "src"]);
    }

    /// A package in a directory below `target`: its own files count.
    #[test]
    fn package_inside_target_dir_is_announced() {
        let package = PackageFiles::new(&[("target/scratch/p/Cargo.toml", ""), ("target/scratch/p/src/lib.rs", "")]);
        assert_eq!(package.announced("target/scratch/p"), [""]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_without_loops() {
        let package = PackageFiles::new(&[("p/Cargo.toml", ""), ("p/src/lib.rs", ""), ("shared/k.cu", "")]);
        std::os::unix::fs::symlink("../shared", package.0.path().join("p/kernels")).unwrap();
        assert_eq!(package.announced("p"), [""]);
        std::os::unix::fs::symlink("..", package.0.path().join("p/src/loop")).unwrap();
        std::os::unix::fs::symlink("nowhere", package.0.path().join("p/dangling")).unwrap();
        assert_eq!(package.announced("p"), ["Cargo.toml", "kernels", "src/lib.rs"]);
    }

    #[test]
    fn git_ignored_files_are_skipped() {
        let ignore = "# outputs\n*.log\n/results/\ndata/**/cache\n!keep.log\nbuild\n";
        let files = [
            ("Cargo.toml", ""),
            (".gitignore", ignore),
            ("a.log", ""),
            ("keep.log", ""),
            ("results/1.bin", ""),
            ("src/results/mod.rs", ""),
            ("src/lib.rs", ""),
            ("src/.gitignore", "generated.rs\n"),
            ("src/generated.rs", ""),
            ("data/x/y/cache/big", ""),
            ("data/x/in", ""),
            ("build/out", ""),
        ];
        let package = PackageFiles::new(&files);
        let without = package.announced("");
        assert!(without.contains(&"results".to_owned()), "outside of a repository nothing is ignored: {without:?}");
        fs::create_dir(package.0.path().join(".git")).unwrap();
        assert_eq!(package.announced(""), ["Cargo.toml", "data/x/in", "keep.log", "src/lib.rs", "src/results"]);
    }

    #[test]
    fn ignore_patterns_match_like_git() {
        for (pattern, name, expected) in [
            ("*.log", "a.log", true),
            ("*.log", "a.log.txt", false),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("?.cu", "a.cu", true),
            ("?.cu", ".cu", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(glob::matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
