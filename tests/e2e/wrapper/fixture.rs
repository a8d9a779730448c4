//! Packages on disk, and what can be seen of their builds.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::binary::manifest_decoder::Note;
pub(crate) use cudaguard_tests::crates::cargo;
use cudaguard_tests::{Call, Outcome, Scratch, command, scratch};

/// A workspace or package in a scratch folder, without any dependency from elsewhere.
pub(crate) struct Fixture {
    scratch: Scratch,
    pub(crate) root: PathBuf,
    /// Sources changed since the last build.
    changed: RefCell<Vec<PathBuf>>,
}

/// A policy that asks for a guard, and for nothing else.
pub(crate) const GUARDED: &str = "[build]\nunguarded = \"warn\"\n";

impl Fixture {
    /// Packages that are guarded although they do not use CUDA: each has [`GUARDED`] as its policy, unless the files have
    /// another.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let fixture = Self::without_policy(name, files);
        if !files.iter().any(|(name, _)| name.ends_with("cudaguard.toml")) {
            for (name, content) in files {
                if name.ends_with("Cargo.toml") && content.contains("[package]") {
                    fixture.write(&name.replace("Cargo.toml", "cudaguard.toml"), GUARDED);
                }
            }
        }
        fixture
    }

    /// These files and no others.
    pub(crate) fn without_policy(name: &str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new(name);
        let root = scratch.join("tree");
        for (name, content) in files {
            scratch::write(&root.join(name), content);
        }
        Self { scratch, root, changed: RefCell::default() }
    }

    /// A place beside the tree.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        scratch::write(&self.root.join(name), content);
    }

    /// Writes a source file and gives it a time that cargo cannot take for an old one, however coarse the file system's
    /// clock is; [`Self::settle`] after the next build, or cargo will take it for new again.
    pub(crate) fn change(&self, name: &str, content: &str) {
        self.write(name, content);
        let path = self.root.join(name);
        set_time(&path, SystemTime::now() + Duration::from_secs(10));
        self.changed.borrow_mut().push(path);
    }

    /// What was changed has been built.
    pub(crate) fn settle(&self) {
        for path in self.changed.take() {
            set_time(&path, SystemTime::now() - Duration::from_secs(3600));
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.root.join(name)).expect("it is there");
    }

    /// Plain cargo.
    pub(crate) fn cargo<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Call {
        self.settled(Call::new(cargo()).args(arguments))
    }

    /// The path of `cargo-cudaguard`.
    pub(crate) fn guard<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Call {
        self.settled(command::call(arguments).env("CARGO", cargo()))
    }

    fn settled(&self, call: Call) -> Call {
        call.dir(&self.root).env("CARGO_NET_OFFLINE", "true").env("CARGO_TERM_COLOR", "never")
    }

    pub(crate) fn built(&self, file: &str) -> PathBuf {
        self.root.join("target").join(file)
    }
}

/// Gives a file this time.
pub(crate) fn set_time(path: &Path, time: SystemTime) {
    let file = fs::File::options().append(true).open(path).expect("it is there");
    file.set_modified(time).expect("a time can be set");
}

/// The head of a package that is its own workspace.
pub(crate) fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\npublish = false\n{more}")
}

/// The notes in a file.
#[track_caller]
pub(crate) fn notes(file: &Path) -> Vec<Note> {
    let binary = Binary::read(file).unwrap_or_else(|error| panic!("{error}"));
    binary.manifests().map(|note| note.unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect()
}

/// The one note in a file, which is of this component, and sealed.
#[track_caller]
pub(crate) fn sealed(file: &Path, component: &str) -> Note {
    let mut notes = notes(file);
    assert_eq!(notes.len(), 1, "{}: one note", file.display());
    let note = notes.remove(0);
    assert_eq!(note.manifest.component.name, component, "{}", file.display());
    assert!(note.manifest.sealed, "{}: sealed", file.display());
    note
}

/// What the compiler was called for, by cargo's `-v`: `name` and its kind, `app:bin`.
pub(crate) fn compiled(outcome: &Outcome) -> BTreeSet<String> {
    let mut units = BTreeSet::new();
    for line in outcome.stderr.lines().filter(|line| line.trim_start().starts_with("Running `")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after =
            |name: &str| words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]).collect::<Vec<_>>();
        if let [name] = after("--crate-name")[..] {
            let kind = if words.contains(&"--test") { "test".to_owned() } else { after("--crate-type").join("+") };
            units.insert(format!("{name}:{kind}"));
        }
    }
    units
}

pub(crate) fn set(units: &[&str]) -> BTreeSet<String> {
    units.iter().map(|unit| (*unit).to_owned()).collect()
}

/// Our line, the last one on stderr.
#[track_caller]
pub(crate) fn summary(outcome: &Outcome) -> String {
    let ours: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("cudaguard: ")).collect();
    assert_eq!(ours.len(), 1, "one summary: {outcome}");
    ours[0].to_owned()
}
