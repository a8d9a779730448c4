//! The graph of all objects that the loader loads, in load order.

mod open;
mod search;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::loader_facts::{DependencyKind, ElfFacts, LoadFacts, ProgramKind};
use super::system::{self, System};
use super::tree::{Disk, Entry, Tree};
use super::{Environment, Inspection, LibraryCandidate, SearchSource, bytes_of};
use crate::binary::elf;
use crate::binary::mapped_file::{Contents, FileId, OpenFiles};
use cudaguard::internal::file_error::{FileError, FileProblem};
use object::elf::{EM_386, EM_ARM, EM_X86_64, ET_DYN, ET_EXEC, Machine};
use search::expand_tokens;

/// A file that is loaded into the process.
#[derive(Clone, Debug)]
pub struct Object {
    /// Path under which the loader opens the file.
    pub path: PathBuf,
    /// Name under which the file was first requested; empty for the program.
    pub name: String,
    /// Index in [`LoadGraph::objects`] of the object that first requested the file. `None` for the program and the
    /// loader.
    pub wanted_by: Option<usize>,
    /// Source of the path.
    pub place: SearchSource,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    names: Vec<Vec<u8>>,
    origin: PathBuf,
    /// True if `dlopen` loaded it. glibc then does not continue its search with the `DT_RPATH` of the caller.
    is_opened: bool,
    id: Option<FileId>,
    facts: Arc<LoadFacts>,
}

/// An object's request for a library, and its result.
#[derive(Clone, Debug)]
pub struct LibraryRequest {
    /// Index of the requesting object.
    pub by: usize,
    /// Requested name.
    pub name: String,
    /// Result of the request.
    pub answer: LoadOutcome,
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// The loader uses this object of [`LoadGraph::objects`], found in this place.
    Object(usize, SearchSource),
    /// The loader found nothing; these files were tried.
    Absent(Vec<LibraryCandidate>),
    /// The loader ends the program because of this file.
    Broken(LibraryCandidate),
}

#[derive(Clone, Debug)]
enum Rules {
    Glibc(System),
    /// The directories in its path file, or the compiled-in ones.
    Musl(Vec<(PathBuf, Option<PathBuf>)>),
}

/// All objects that are loaded to start a program.
#[derive(Clone, Debug)]
pub struct LoadGraph {
    /// The files in load order; the program is the first.
    pub objects: Vec<Object>,
    /// All requests, in the order in which the loader resolves them.
    pub requests: Vec<LibraryRequest>,
    /// Preloaded names that the loader reports and ignores, with the reason.
    pub ignored: Vec<(String, String)>,
    /// Path of the loader: the interpreter of the program. `None` for a static program.
    pub interpreter: Option<PathBuf>,
    /// The reason why the loader cannot start the program.
    pub interpreter_problem: Option<String>,
    machine: Machine,
    class64: bool,
    rules: Rules,
    environment: Environment,
    cache: Option<Arc<Contents>>,
    tree: Rc<dyn Tree>,
    /// All files of the disk that were read.
    files: OpenFiles,
}

impl Object {
    fn from_file(
        tree: &dyn Tree,
        path: PathBuf,
        name: &[u8],
        wanted_by: Option<usize>,
        place: SearchSource,
    ) -> Result<Self, FileError> {
        let facts = tree.facts(&path)?;
        let elf = facts.elf().map_err(|problem| FileError::read(&path, problem))?;
        let id = match tree.entry(&path) {
            Entry::File(id, _) => id,
            _ => None,
        };
        Ok(Self {
            name: String::from_utf8_lossy(name).into_owned(),
            wanted_by,
            place,
            soname: elf.soname.clone(),
            names: vec![name.to_vec(), bytes_of(path.as_os_str()).to_vec()],
            origin: path.parent().map(Path::to_owned).unwrap_or_default(),
            is_opened: false,
            id,
            facts,
            path,
        })
    }

    /// Returns the facts that the loader reads in the file.
    pub(super) fn elf(&self) -> &ElfFacts {
        self.facts.elf().expect("only ELF files are objects")
    }

    /// Returns its search path as written: `DT_RUNPATH`, or else `DT_RPATH`.
    pub(crate) fn search_path(&self) -> Option<&str> {
        let elf = self.elf();
        std::str::from_utf8(elf.runpath.as_deref().or(elf.rpath.as_deref())?).ok()
    }

    /// Returns the contents of the file; empty for a member of an archive.
    pub(crate) fn data(&self) -> &Arc<Contents> {
        self.facts.contents()
    }

    /// Returns true if this is the object's soname or a name under which it was requested.
    pub fn is_named(&self, name: &str) -> bool {
        self.is_called(name.as_bytes())
    }

    fn is_called(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| known == name)
            || self.soname.as_deref().is_some_and(|soname| soname.as_bytes() == name)
    }
}

impl LoadGraph {
    pub(super) fn new_for_program(
        program: &Path,
        environment: Environment,
        files: OpenFiles,
    ) -> Result<Self, FileError> {
        Self::new_in_tree(program, environment, Rc::new(Disk::new(files.clone())), files)
    }

    pub(super) fn new_in_tree(
        program: &Path,
        mut environment: Environment,
        tree: Rc<dyn Tree>,
        files: OpenFiles,
    ) -> Result<Self, FileError> {
        // Removes the `./` in the path of the program.
        let path: PathBuf = environment.dir.join(program).components().collect();
        let facts = tree.facts(&path)?;
        let elf = facts.elf().map_err(|problem| FileError::read(&path, problem))?;
        if !matches!(elf.kind, ET_EXEC | ET_DYN) {
            return Err(FileError::read(&path, FileProblem::unsupported("is not a program")));
        }
        let mut main = Object::from_file(&*tree, path.clone(), b"", None, SearchSource::Program)?;
        // `$ORIGIN` starts from the kernel's link to the program, not from the path under which it was started.
        let real = tree.real_path(&path)?;
        main.origin = real.parent().map(Path::to_owned).unwrap_or_default();
        main.names = vec![Vec::new()];
        if tree.is_privileged(&path) {
            environment = Environment { library_path: None, preload: None, is_secure: true, ..environment };
        }
        let mut graph = Self {
            objects: vec![main],
            requests: Vec::new(),
            ignored: Vec::new(),
            interpreter_problem: None,
            machine: elf.machine,
            class64: elf.class64,
            rules: Rules::Glibc(System::from_loader(&[], elf.machine, &*tree)),
            environment,
            cache: None,
            tree,
            files,
            interpreter: elf.interpreter.clone(),
        };
        // A library is handled as if a program of its kind had loaded it.
        let loader = match graph.interpreter.clone() {
            Some(loader) => loader,
            None if elf.wants.iter().any(|(_, want)| *want == DependencyKind::Needed) => graph.usual_loader(),
            None => return Ok(graph),
        };
        graph.load_program(&loader);
        Ok(graph)
    }

    /// Returns the usual loader for programs of this kind, because a library has no interpreter.
    fn usual_loader(&self) -> PathBuf {
        match (self.machine, self.class64) {
            (EM_X86_64, true) => "/lib64/ld-linux-x86-64.so.2".into(),
            (EM_X86_64, false) => "/libx32/ld-linux-x32.so.2".into(),
            (EM_386, _) => "/lib/ld-linux.so.2".into(),
            (EM_ARM, _) => "/lib/ld-linux-armhf.so.3".into(),
            (other, _) => format!("/lib/ld-linux-{}.so.1", elf::machine_name(other)).into(),
        }
    }

    fn load_program(&mut self, loader: &Path) {
        let musl = loader.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-musl-"));
        let is_elsewhere = self.tree.is_partial() && self.tree.entry(loader) == Entry::Missing;
        match self.tree.settings(loader) {
            _ if is_elsewhere && musl => self.rules = Rules::Musl(system::musl_dirs(loader, &*self.tree)),
            Err(_) if is_elsewhere => {}
            Err(error) => {
                self.interpreter_problem = self.interpreter.is_some().then(|| error.to_string());
                if musl || self.interpreter.is_some() {
                    return;
                }
            }
            Ok(_) if musl => self.rules = Rules::Musl(system::musl_dirs(loader, &*self.tree)),
            Ok(data) => self.rules = Rules::Glibc(System::from_loader(&data, self.machine, &*self.tree)),
        }
        match self.inspect_file(loader) {
            Inspection::Usable => {}
            _ if is_elsewhere => {}
            Inspection::Missing => self.interpreter_problem = Some(format!("{}: does not exist", loader.display())),
            Inspection::WrongArchitecture(why) | Inspection::Stopped(why) | Inspection::Broken(why) => {
                self.interpreter_problem = Some(format!("{}: {why}", loader.display()));
            }
        }
        if self.interpreter_problem.is_some() {
            return;
        }
        if let Rules::Glibc(system) = &self.rules {
            self.cache = self.tree.settings(&system.cache).ok();
        }
        let name = bytes_of(loader.as_os_str()).to_vec();
        if let Ok(object) = Object::from_file(&*self.tree, loader.to_owned(), &name, None, SearchSource::Loader) {
            self.objects.push(object);
        }
        let mut queue = VecDeque::from([0]);
        for (name, from) in self.preload_names() {
            if let Some(why) = self.preload_library(&name, &mut queue) {
                self.ignored.push((format!("{} ({from})", String::from_utf8_lossy(&name)), why));
            }
        }
        self.load_needed(queue);
    }

    /// Loads the dependencies of these objects and their dependencies, breadth first.
    fn load_needed(&mut self, mut queue: VecDeque<usize>) {
        while let Some(by) = queue.pop_front() {
            for (name, want) in self.objects[by].elf().wants.clone() {
                let name = match &self.rules {
                    // A needed name may contain tokens even without a slash.
                    Rules::Glibc(system) => expand_tokens(&name, &self.objects[by].origin, system).unwrap_or(name),
                    Rules::Musl(_) => name,
                };
                let answer = self.load_library(by, &name, &mut queue);
                if want == DependencyKind::Auxiliary && !matches!(answer, LoadOutcome::Object(..)) {
                    continue;
                }
                self.requests.push(LibraryRequest { by, name: String::from_utf8_lossy(&name).into_owned(), answer });
            }
        }
    }

    /// Loads a library before all others. Returns the reason if the loader ignores it.
    fn preload_library(&mut self, name: &[u8], queue: &mut VecDeque<usize>) -> Option<String> {
        match self.load_library(0, name, queue) {
            LoadOutcome::Object(..) => None,
            LoadOutcome::Absent(_) => Some("not found".to_owned()),
            LoadOutcome::Broken(candidate) => Some(candidate.problem()),
        }
    }

    /// Returns the names to load before all others, each with its source.
    fn preload_names(&self) -> Vec<(Vec<u8>, &'static str)> {
        let variable = self.environment.preload.as_deref().map(bytes_of).unwrap_or_default();
        let musl = self.is_of_musl();
        let names = variable.split(|byte| matches!(byte, b':' | b' ') || musl && byte.is_ascii_whitespace());
        let mut names: Vec<_> = names.map(|name| (name.to_vec(), "LD_PRELOAD")).collect();
        if !musl {
            let file = self.tree.settings("/etc/ld.so.preload".as_ref());
            for line in file.as_deref().map_or(&[][..], |file| file).split(|byte| *byte == b'\n') {
                let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
                let parts = line.split(|byte| matches!(byte, b':' | b' ' | b'\t'));
                names.extend(parts.map(|name| (name.to_vec(), "/etc/ld.so.preload")));
            }
        }
        names.retain(|(name, _)| !name.is_empty());
        names
    }

    fn load_library(&mut self, by: usize, name: &[u8], queue: &mut VecDeque<usize>) -> LoadOutcome {
        if let Some(index) = self.find_loaded(name) {
            return LoadOutcome::Object(index, SearchSource::Loaded);
        }
        let candidates = self.search_candidates(by, name, false);
        let Some(taken) = candidates.last().filter(|last| last.is_selected()) else {
            return LoadOutcome::Absent(candidates);
        };
        if taken.inspection != Inspection::Usable {
            return LoadOutcome::Broken(taken.clone());
        }
        let file = match self.tree.entry(&taken.path) {
            Entry::File(id, _) => id,
            _ => None,
        };
        if let Some(index) = self.objects.iter().position(|object| file.is_some() && object.id == file) {
            self.objects[index].names.push(name.to_vec());
            return LoadOutcome::Object(index, taken.place.clone());
        }
        match Object::from_file(&*self.tree, taken.path.clone(), name, Some(by), taken.place.clone()) {
            Ok(object) => {
                self.objects.push(object);
                queue.push_back(self.objects.len() - 1);
                LoadOutcome::Object(self.objects.len() - 1, taken.place.clone())
            }
            Err(error) => LoadOutcome::Broken(LibraryCandidate {
                inspection: Inspection::Broken(error.to_string()),
                ..taken.clone()
            }),
        }
    }

    /// Returns the index of the loaded object that `dlopen` returns for this name.
    pub(crate) fn loaded_object(&self, name: &str) -> Option<usize> {
        self.find_loaded(name.as_bytes())
    }

    fn find_loaded(&self, name: &[u8]) -> Option<usize> {
        match &self.rules {
            Rules::Glibc(_) => self.objects.iter().position(|object| object.is_called(name)),
            Rules::Musl(_) => {
                let loader = self.objects.iter().position(|object| object.place == SearchSource::Loader);
                if is_musl_itself(name) {
                    return loader;
                }
                // Only requested names count, not the sonames of the objects.
                (!name.contains(&b'/'))
                    .then(|| {
                        self.objects.iter().position(|object| {
                            object.names.iter().any(|known| known == name)
                                || (object.place == SearchSource::Loader && object.is_called(name))
                        })
                    })
                    .flatten()
            }
        }
    }

    /// Returns true if a program that opens a library by its name can get this loaded object. musl does not know the name of an
    /// object that was loaded by its path.
    pub(crate) fn is_opened_by_name(&self, object: &Object) -> bool {
        !self.is_of_musl() || object.names.iter().any(|name| !name.contains(&b'/'))
    }

    /// Returns the file that the loader would pick for this name if the object `from` requested it after everything
    /// else is loaded, for example with `dlopen`. The file is usable, or it ends the program. `None` if there is no
    /// such file.
    pub fn resolve_file(&self, from: usize, name: &str) -> Option<LibraryCandidate> {
        if let Some(index) = self.find_loaded(name.as_bytes()) {
            let object = &self.objects[index];
            return Some(LibraryCandidate {
                path: object.path.clone(),
                place: object.place.clone(),
                inspection: Inspection::Usable,
            });
        }
        self.search_candidates(self.opener(from), name.as_bytes(), false).pop().filter(LibraryCandidate::is_selected)
    }

    /// Loads this name and its dependencies like `dlopen`, called by the object `from`. Returns the index of the object
    /// in [`LoadGraph::objects`]. Dependencies that are missing are added to [`LoadGraph::requests`]. `None` if the
    /// file is missing or broken.
    pub fn dlopen_library(&mut self, from: usize, name: &str) -> Option<usize> {
        let (mut queue, first) = (VecDeque::new(), self.objects.len());
        let from = self.opener(from);
        let LoadOutcome::Object(index, _) = self.load_library(from, name.as_bytes(), &mut queue) else { return None };
        self.objects[index].is_opened |= index == first;
        self.load_needed(queue);
        Some(index)
    }

    /// Returns the object whose search paths `dlopen` uses: its caller, and with musl always the program.
    fn opener(&self, caller: usize) -> usize {
        if self.is_of_musl() { 0 } else { caller }
    }

    /// Returns true if there is a file at this path.
    pub(crate) fn has_file(&self, path: &Path) -> bool {
        matches!(self.tree.entry(path), Entry::File(..))
    }

    /// Returns the names in a directory.
    pub(crate) fn list_dir(&self, dir: &Path) -> Vec<String> {
        self.tree.list(dir)
    }

    /// Returns the files of the disk that were read.
    pub(crate) fn files(&self) -> &OpenFiles {
        &self.files
    }

    /// Returns the processor of the program.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Returns every existing file for this name, in search order. The loader picks the first one that is usable or
    /// broken; it shadows the following ones.
    pub fn candidates(&self, from: usize, name: &str) -> Vec<LibraryCandidate> {
        let mut seen = BTreeSet::new();
        let mut found = self.search_candidates(from, name.as_bytes(), true);
        found.retain(|candidate| candidate.inspection != Inspection::Missing && seen.insert(candidate.path.clone()));
        found
    }

    /// Returns true if a file of this name may be in a place that this process cannot access. The loader skips it, but
    /// it is unknown whether it exists.
    pub fn is_shut(&self, from: usize, name: &str) -> bool {
        self.search_candidates(from, name.as_bytes(), true).iter().any(|candidate| {
            matches!(candidate.inspection, Inspection::Missing | Inspection::Stopped(_))
                && self.tree.is_shut(&candidate.path)
        })
    }

    /// Returns the requests without a result. Because of these, the program ends before any of its code runs.
    pub fn unresolved_requests(&self) -> impl Iterator<Item = &LibraryRequest> + '_ {
        self.requests.iter().filter(|request| !matches!(request.answer, LoadOutcome::Object(..)))
    }

    /// Returns true if a file is below the directory of the program. Nothing is below the root directory.
    pub(crate) fn is_below_program(&self, file: &Path) -> bool {
        let dir = &self.objects[0].origin;
        dir.parent().is_some() && file.starts_with(dir)
    }

    /// Returns true if musl's loader starts the program.
    pub(super) fn is_of_musl(&self) -> bool {
        matches!(self.rules, Rules::Musl(_))
    }

    /// Returns true if the environment requests that all symbols are bound at start-up.
    pub(super) fn binds_at_start(&self) -> bool {
        self.environment.bind_now
    }

    /// Returns the index of the loaded object with this name.
    pub(super) fn object_index(&self, name: &[u8]) -> Option<usize> {
        self.objects.iter().position(|object| object.is_called(name))
    }

    /// Returns what the loader does with a file.
    fn inspect_file(&self, path: &Path) -> Inspection {
        match self.tree.entry(path) {
            Entry::Missing => Inspection::Missing,
            Entry::Stopped(why) => Inspection::Stopped(why),
            Entry::Dir => Inspection::Broken("is a directory".to_owned()),
            Entry::Special => Inspection::Broken("is not a regular file".to_owned()),
            Entry::File(_, 0) => Inspection::Broken("is empty: file too short".to_owned()),
            // The file was deleted in the meantime, or this user may not read it.
            Entry::File(..) => self.tree.facts(path).map_or(Inspection::Missing, |facts| facts.inspect(self.kind())),
        }
    }

    fn kind(&self) -> ProgramKind {
        ProgramKind { machine: self.machine, class64: self.class64, is_of_musl: self.is_of_musl() }
    }
}

impl LibraryCandidate {
    /// Returns true if the loader ends its search at this file.
    pub fn is_selected(&self) -> bool {
        matches!(self.inspection, Inspection::Usable | Inspection::Broken(_))
    }

    /// Describes the problem of the file; empty if there is none.
    pub fn problem(&self) -> String {
        match &self.inspection {
            Inspection::Usable => String::new(),
            Inspection::Missing => "does not exist".to_owned(),
            Inspection::WrongArchitecture(why) | Inspection::Stopped(why) | Inspection::Broken(why) => why.clone(),
        }
    }
}

/// Returns true for names that musl itself provides, such as libc, libm and libpthread, with any version number.
fn is_musl_itself(name: &[u8]) -> bool {
    const RESERVED: [&[u8]; 7] = [b"c.", b"pthread.", b"rt.", b"m.", b"dl.", b"util.", b"xnet."];
    name.strip_prefix(b"lib").is_some_and(|rest| RESERVED.iter().any(|reserved| rest.starts_with(reserved)))
}

#[cfg(test)]
mod tests;
