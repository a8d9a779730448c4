//! Fixtures: packages on disk, and functions that examine their builds.

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

/// Workspace or package in a scratch directory, without external dependencies.
pub(crate) struct Fixture {
    scratch: Scratch,
    pub(crate) root: PathBuf,
    /// Sources that changed since the last build.
    changed: RefCell<Vec<PathBuf>>,
}

/// Policy that only requests a guard.
pub(crate) const GUARDED: &str = "[build]\nunguarded = \"warn\"\n";

impl Fixture {
    /// Creates packages that are guarded although they do not use CUDA: each gets the policy [`GUARDED`], unless the files
    /// contain another.
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

    /// Creates only these files.
    pub(crate) fn without_policy(name: &str, files: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new(name);
        let root = scratch.join("tree");
        for (name, content) in files {
            scratch::write(&root.join(name), content);
        }
        Self { scratch, root, changed: RefCell::default() }
    }

    /// Returns a path next to the tree.
    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        scratch::write(&self.root.join(name), content);
    }

    /// Writes a source file with a time that cargo always considers new, even on a file system with a coarse clock. Call
    /// [`Self::settle`] after the next build, or cargo will rebuild it again.
    pub(crate) fn change(&self, name: &str, content: &str) {
        self.write(name, content);
        let path = self.root.join(name);
        set_time(&path, SystemTime::now() + Duration::from_secs(10));
        self.changed.borrow_mut().push(path);
    }

    /// Marks the changed sources as built.
    pub(crate) fn settle(&self) {
        for path in self.changed.take() {
            set_time(&path, SystemTime::now() - Duration::from_secs(3600));
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.root.join(name)).expect("it is there");
    }

    /// Returns a call of plain cargo.
    pub(crate) fn cargo<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Call {
        self.settled(Call::new(cargo()).args(arguments))
    }

    /// Returns a call of `cargo-cudaguard`.
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

/// Sets the modification time of a file.
pub(crate) fn set_time(path: &Path, time: SystemTime) {
    let file = fs::File::options().append(true).open(path).expect("it is there");
    file.set_modified(time).expect("a time can be set");
}

/// Returns the first lines of the manifest of a package that is its own workspace.
pub(crate) fn package(name: &str, more: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\npublish = false\n{more}")
}

/// Returns the notes in a file.
#[track_caller]
pub(crate) fn notes(file: &Path) -> Vec<Note> {
    let binary = Binary::read(file).unwrap_or_else(|error| panic!("{error}"));
    binary.manifests().map(|note| note.unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect()
}

/// Returns the only note in a file. Checks that it belongs to this component and is sealed.
#[track_caller]
pub(crate) fn sealed(file: &Path, component: &str) -> Note {
    let mut notes = notes(file);
    assert_eq!(notes.len(), 1, "{}: one note", file.display());
    let note = notes.remove(0);
    assert_eq!(note.manifest.component.name, component, "{}", file.display());
    assert!(note.manifest.sealed, "{}: sealed", file.display());
    note
}

/// Returns the compiled units from the output of cargo's `-v`, with name and kind, such as `app:bin`.
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

/// Returns cudaguard's summary, which is the last line on stderr.
#[track_caller]
pub(crate) fn summary(outcome: &Outcome) -> String {
    let ours: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("cudaguard: ")).collect();
    assert_eq!(ours.len(), 1, "one summary: {outcome}");
    ours[0].to_owned()
}
