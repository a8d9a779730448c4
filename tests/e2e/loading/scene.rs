//! Layouts of libraries made by gcc, and the comparison of what is foretold of them with what the loader does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_cudaguard::binary::loader::{self, LoadGraph, LoadOutcome, SearchSource};
use cudaguard::internal::env::Env;
use cudaguard_tests::Scratch;
use cudaguard_tests::run::unless_busy;

/// A folder with libraries and a program in it.
pub(crate) struct Scene {
    folder: Scratch,
    variables: RefCell<BTreeMap<String, OsString>>,
    compiler: &'static str,
}

impl Scene {
    /// An empty one.
    pub(crate) fn new(name: &str) -> Self {
        Self::in_folder(Scratch::new(name))
    }

    /// One whose files `LD_PRELOAD` can name: blanks divide its list.
    pub(crate) fn preloaded(name: &str) -> Self {
        Self::in_folder(Scratch::without_blanks(name))
    }

    fn in_folder(folder: Scratch) -> Self {
        folder.file("nothing.c", "int nothing(void) { return 0; }\n");
        folder.file("main.c", "int main(void) { return 0; }\n");
        Self { folder, variables: RefCell::default(), compiler: "gcc" }
    }

    /// The same, its program linked by another compiler.
    pub(crate) fn by(self, compiler: &'static str) -> Self {
        Self { compiler, ..self }
    }

    /// A path in it.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, argument: &str) -> String {
        argument.replace('@', &self.folder.path().display().to_string())
    }

    /// A shared library of this file name, which is its soname too; `@` in the arguments is the scene's folder, and
    /// other libraries of the scene are named by path.
    pub(crate) fn library(&self, path: &str, arguments: &[&str]) -> &Self {
        let name = path.rsplit('/').next().unwrap();
        self.named(path, name, arguments)
    }

    /// The same with a soname of its own; none where that is empty.
    pub(crate) fn named(&self, path: &str, soname: &str, arguments: &[&str]) -> &Self {
        let mut all = vec!["-shared", "-fPIC", "-nostdlib", "nothing.c"];
        let soname = format!("-Wl,-soname,{soname}");
        if !soname.ends_with(',') {
            all.push(&soname);
        }
        self.link("gcc", path, &all, arguments)
    }

    /// The program `prog`.
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
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{compiler} {path}: {}", String::from_utf8_lossy(&done.stderr));
        self
    }

    /// A file of these bytes.
    pub(crate) fn file(&self, path: &str, bytes: &[u8]) -> &Self {
        self.folder.file(path, bytes);
        self
    }

    /// A symbolic link.
    pub(crate) fn link_to(&self, target: &str, path: &str) -> &Self {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// A copy in which this byte is another.
    pub(crate) fn altered(&self, from: &str, to: &str, at: usize, byte: u8) -> &Self {
        let mut bytes = std::fs::read(self.at(from)).unwrap();
        bytes[at] = byte;
        self.file(to, &bytes)
    }

    /// Takes a file away.
    pub(crate) fn without(&self, path: &str) -> &Self {
        std::fs::remove_file(self.at(path)).unwrap();
        self
    }

    /// Sets a variable; `@` is the scene's folder.
    pub(crate) fn variable(&self, name: &str, value: &str) -> &Self {
        self.variables.borrow_mut().insert(name.to_owned(), self.text(value).into());
        self
    }

    /// What is foretold of the program.
    pub(crate) fn predicted(&self, program: &Path) -> LoadGraph {
        loader::resolve_program(program, &Env::from_variables(self.variables.borrow().clone(), self.folder.path()))
            .unwrap()
    }

    /// Compares what is foretold with what the loader does.
    pub(crate) fn equal(&self) {
        self.equal_for("prog");
    }

    /// The same for a program of another name.
    pub(crate) fn equal_for(&self, program: &str) {
        let program = self.at(program);
        let graph = self.predicted(&program);
        compare(&graph, &program, self.folder.path(), &self.variables.borrow());
    }
}

/// What the loader says it loads: (name, file), in its order; and the names that it does not find.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) files: Vec<(String, PathBuf)>,
    pub(crate) absent: Vec<String>,
    pub(crate) fatal: Option<String>,
}

/// Asks the real loader, which then starts nothing.
pub(crate) fn real(program: &Path, musl: bool, folder: &Path, variables: &BTreeMap<String, OsString>) -> Loaded {
    let mut command = Command::new(program);
    command.env_clear().envs(variables).env("LC_ALL", "C").current_dir(folder).stdin(Stdio::null());
    if musl {
        use std::os::unix::process::CommandExt as _;
        command = Command::new("/lib/ld-musl-x86_64.so.1");
        command.arg0("ldd").arg(program).env_clear().envs(variables).current_dir(folder).stdin(Stdio::null());
    } else {
        command.env("LD_TRACE_LOADED_OBJECTS", "1");
    }
    let output = unless_busy(|| command.output()).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut loaded = Loaded::default();
    for line in said.lines() {
        let line = line.trim();
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        let place = place.rsplit_once(" (0x").map_or(place, |(place, _)| place);
        let name = name.rsplit_once(" (0x").map_or(name, |(name, _)| name);
        if place == "not found" {
            loaded.absent.push(name.to_owned());
        } else if line.contains("(0x") && !name.contains("linux-vdso") && !name.contains("ld-musl") {
            loaded.files.push((name.to_owned(), folder.join(place)));
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

/// Fails where what is foretold is not what the loader does.
pub(crate) fn compare(graph: &LoadGraph, program: &Path, folder: &Path, variables: &BTreeMap<String, OsString>) {
    let musl = graph.interpreter.as_ref().is_some_and(|path| path.to_string_lossy().contains("ld-musl"));
    let said = real(program, musl, folder, variables);
    let broken = graph.requests.iter().find_map(|request| match &request.answer {
        LoadOutcome::Broken(candidate) => Some(candidate),
        _ => None,
    });
    if let Some(broken) = broken {
        let fatal =
            said.fatal.clone().unwrap_or_else(|| panic!("foretold to die of {broken:?}, and it does not: {said:?}"));
        let named = fatal.contains(&*broken.path.to_string_lossy()) || fatal.contains("signal: 7");
        assert!(named, "dies of something else: {fatal}\nforetold: {broken:?}");
        return;
    }
    assert_eq!(said.fatal, None, "foretold to live: {graph:#?}");
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
    let real_files = said.files.into_iter().filter(|(_, path)| Some(&**path) != interpreter).collect();
    // The loader lists a name that is wanted twice and not found once or twice, by its release.
    let once = |mut names: Vec<String>| {
        names.sort();
        names.dedup();
        names
    };
    let said = Loaded { files: real_files, absent: once(said.absent), fatal: None };
    predicted.absent = once(predicted.absent);
    assert_eq!(predicted, said, "left: foretold, right: the loader");
}
