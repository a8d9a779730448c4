//! Library layouts that gcc builds, and the comparison of their predicted loading with the real loader.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_cudaguard::binary::loader::{self, LoadGraph, LoadOutcome, SearchSource};
use cudaguard::internal::env::Env;
use cudaguard_tests::Scratch;
use cudaguard_tests::run::unless_busy;

/// Directory with libraries and a program.
pub(crate) struct Scene {
    dir: Scratch,
    variables: RefCell<BTreeMap<String, OsString>>,
    compiler: &'static str,
}

impl Scene {
    /// Creates an empty directory.
    pub(crate) fn new(name: &str) -> Self {
        Self::in_dir(Scratch::new(name))
    }

    /// Creates a directory without blanks, so that `LD_PRELOAD`, which splits at blanks, can name its files.
    pub(crate) fn preloaded(name: &str) -> Self {
        Self::in_dir(Scratch::without_blanks(name))
    }

    fn in_dir(dir: Scratch) -> Self {
        dir.file("nothing.c", "int nothing(void) { return 0; }\n");
        dir.file("main.c", "int main(void) { return 0; }\n");
        Self { dir, variables: RefCell::default(), compiler: "gcc" }
    }

    /// Returns a path in the directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, argument: &str) -> String {
        argument.replace('@', &self.dir.path().display().to_string())
    }

    /// Builds a shared library whose soname is its file name. `@` in the arguments is the directory; other libraries are
    /// named by path.
    pub(crate) fn library(&self, path: &str, arguments: &[&str]) -> &Self {
        let name = path.rsplit('/').next().unwrap();
        self.named(path, name, arguments)
    }

    /// Builds a shared library with this soname, or without one if it is empty.
    pub(crate) fn named(&self, path: &str, soname: &str, arguments: &[&str]) -> &Self {
        let mut all = vec!["-shared", "-fPIC", "-nostdlib", "nothing.c"];
        let soname = format!("-Wl,-soname,{soname}");
        if !soname.ends_with(',') {
            all.push(&soname);
        }
        self.link("gcc", path, &all, arguments)
    }

    /// Builds the program `prog`.
    pub(crate) fn program(&self, arguments: &[&str]) -> &Self {
        self.link(self.compiler, "prog", &["main.c"], arguments)
    }

    fn link(&self, compiler: &str, path: &str, first: &[&str], arguments: &[&str]) -> &Self {
        let output = self.at(path);
        std::fs::create_dir_all(output.parent().unwrap()).unwrap();
        let done = Command::new(compiler)
            .args(first)
            .args(["-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all", "-o"])
            .arg(&output)
            .args(arguments.iter().map(|argument| self.text(argument)))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{compiler} {path}: {}", String::from_utf8_lossy(&done.stderr));
        self
    }

    /// Writes a file with these bytes.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> &Self {
        self.dir.file(path, bytes);
        self
    }

    /// Creates a symbolic link.
    pub(crate) fn link_to(&self, target: &str, path: &str) -> &Self {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// Copies a file and replaces one byte.
    pub(crate) fn altered(&self, from: &str, to: &str, at: usize, byte: u8) -> &Self {
        let mut bytes = std::fs::read(self.at(from)).unwrap();
        bytes[at] = byte;
        self.file(to, &bytes)
    }

    /// Deletes a file.
    pub(crate) fn without(&self, path: &str) -> &Self {
        std::fs::remove_file(self.at(path)).unwrap();
        self
    }

    /// Sets a variable; `@` is replaced by the directory.
    pub(crate) fn variable(&self, name: &str, value: &str) -> &Self {
        self.variables.borrow_mut().insert(name.to_owned(), self.text(value).into());
        self
    }

    /// Returns the predicted load graph of a program.
    pub(crate) fn predicted(&self, program: &Path) -> LoadGraph {
        loader::resolve_program(program, &Env::from_variables(self.variables.borrow().clone(), self.dir.path()))
            .unwrap()
    }

    /// Compares the prediction with the real loader.
    pub(crate) fn equal(&self) {
        self.equal_for("prog");
    }

    /// Compares the prediction for a program of another name.
    pub(crate) fn equal_for(&self, program: &str) {
        let program = self.at(program);
        let graph = self.predicted(&program);
        compare(&graph, &program, self.dir.path(), &self.variables.borrow());
    }
}

/// Libraries that the loader lists: (name, file) in load order, and the names that it does not find.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) files: Vec<(String, PathBuf)>,
    pub(crate) absent: Vec<String>,
    pub(crate) fatal: Option<String>,
}

/// Runs the real loader in its list mode, which does not start the program.
pub(crate) fn real(program: &Path, musl: bool, dir: &Path, variables: &BTreeMap<String, OsString>) -> Loaded {
    let mut command = Command::new(program);
    command.env_clear().envs(variables).env("LC_ALL", "C").current_dir(dir).stdin(Stdio::null());
    if musl {
        use std::os::unix::process::CommandExt as _;
        command = Command::new("/lib/ld-musl-x86_64.so.1");
        command.arg0("ldd").arg(program).env_clear().envs(variables).current_dir(dir).stdin(Stdio::null());
    } else {
        command.env("LD_TRACE_LOADED_OBJECTS", "1");
    }
    let output = unless_busy(|| command.output()).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut loaded = Loaded::default();
    for line in printed.lines() {
        let line = line.trim();
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        let place = place.rsplit_once(" (0x").map_or(place, |(place, _)| place);
        let name = name.rsplit_once(" (0x").map_or(name, |(name, _)| name);
        if place == "not found" {
            loaded.absent.push(name.to_owned());
        } else if line.contains("(0x") && !name.contains("linux-vdso") && !name.contains("ld-musl") {
            loaded.files.push((name.to_owned(), dir.join(place)));
        }
    }
    for line in errors.lines() {
        if let Some(rest) = line.strip_prefix("Error loading shared library ") {
            loaded.absent.push(rest.split(':').next().unwrap().to_owned());
        }
    }
    if !output.status.success() && (loaded.files.is_empty() || musl) && loaded.absent.is_empty() {
        loaded.fatal = Some(format!("{}: {errors}", output.status));
    }
    loaded
}

/// Fails if the prediction differs from the real loader.
pub(crate) fn compare(graph: &LoadGraph, program: &Path, dir: &Path, variables: &BTreeMap<String, OsString>) {
    let musl = graph.interpreter.as_ref().is_some_and(|path| path.to_string_lossy().contains("ld-musl"));
    let printed = real(program, musl, dir, variables);
    let broken = graph.requests.iter().find_map(|request| match &request.answer {
        LoadOutcome::Broken(candidate) => Some(candidate),
        _ => None,
    });
    if let Some(broken) = broken {
        let fatal = printed
            .fatal
            .clone()
            .unwrap_or_else(|| panic!("foretold to die of {broken:?}, and it does not: {printed:?}"));
        let named = fatal.contains(&*broken.path.to_string_lossy()) || fatal.contains("signal: 7");
        assert!(named, "dies of something else: {fatal}\nforetold: {broken:?}");
        return;
    }
    assert_eq!(printed.fatal, None, "foretold to live: {graph:#?}");
    let interpreter = graph.interpreter.as_deref();
    let mut predicted = Loaded::default();
    for object in
        graph.objects.iter().filter(|object| !matches!(object.place, SearchSource::Program | SearchSource::Loader))
    {
        predicted.files.push((object.name.clone(), object.path.clone()));
    }
    for request in graph.unresolved_requests() {
        predicted.absent.push(request.name.clone());
    }
    let real_files = printed.files.into_iter().filter(|(_, path)| Some(&**path) != interpreter).collect();
    // Depending on its release, the loader lists a missing name once or twice if it is imported twice.
    let once = |mut names: Vec<String>| {
        names.sort();
        names.dedup();
        names
    };
    let printed = Loaded { files: real_files, absent: once(printed.absent), fatal: None };
    predicted.absent = once(predicted.absent);
    assert_eq!(predicted, printed, "left: foretold, right: the loader");
}
