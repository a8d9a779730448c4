//! The members of an archive or directory that run together, found as the dynamic linker finds them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::member::{MemberLoader, are_adjacent, file_name};
use super::member_tree::MemberTree;
use super::{ArtifactMember, ArtifactReport};
use crate::binary::elf::machine_name;
use crate::binary::examined::NotExamined;
use crate::binary::loader::{
    self, DllRequest, Inspection, LibraryCandidate, LoadGraph, LoadOutcome, MissingSymbol, Object, SearchSource,
};
use crate::binary::mapped_file::OpenFiles;
use crate::family::{OpenedLibrary, misnamed};
use crate::host::dry_run::{
    FileOpens, OpeningFiles, SymbolFile, brought_cudnn_of_other_major, findings_of_missing, foreign_library,
    is_of_program, load_opened_here, load_opened_inside, symbol_findings, symbol_findings_among,
};
use crate::host::machine::extend_new;
use crate::knowledge::vendor::plain_name;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use object::elf::{EM_NONE, Machine};

/// Maximum number of requests for libraries. A real environment with 5000 files needs fewer than 100000.
const MOST_REQUESTS: usize = 1 << 20;
const SEARCH_FOR_DLLS: &str = "the search for DLLs";

/// The files for Windows by name, as indices in [`ArtifactReport::loaders`].
pub(super) type NamedDlls = BTreeMap<String, Vec<usize>>;

/// A program, or a library that no other member needs, with the members that the dynamic linker loads for it.
#[derive(Default)]
pub(super) struct MemberClosure {
    /// The members in load order.
    loaded: Vec<LoadedMember>,
    /// The requests of the members for libraries.
    requests: Vec<MemberRequest>,
    /// The errors about libraries that lack a version of symbols.
    too_old: Vec<Finding>,
}

/// The request of a member for a library.
struct MemberRequest {
    /// Index in [`MemberClosure::loaded`].
    by: usize,
    name: String,
    answer: Answer,
}

/// The answer of the dynamic linker.
enum Answer {
    /// This member, an index in [`ArtifactReport::loaders`].
    Found(usize),
    /// A member that no search path contains. Another module loads it before.
    LoadedBefore,
    Absent,
    /// A file for another processor, which the dynamic linker skips.
    Foreign(Finding),
    /// A file that cannot be loaded: its path, the reason, and the search path that contains it.
    Broken {
        path: String,
        why: String,
        picked_by: String,
    },
}

impl MemberClosure {
    /// Returns the indices of the members in [`ArtifactReport::loaders`], the first is the root.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        self.loaded.iter().map(|member| member.at)
    }

    /// Returns the index of the first member in [`ArtifactReport::loaders`].
    pub(super) fn root(&self) -> usize {
        self.loaded[0].at
    }

    /// Returns true if a library of this name is loaded.
    pub(super) fn has_library(&self, loaders: &[MemberLoader], name: &str) -> bool {
        let name = file_name(name);
        self.loaded.iter().any(|member| member.is_named(loaders, name))
    }

    /// Returns true if the dynamic linker picks a file for a library of this name and cannot load it.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        self.requests.iter().any(|request| request.name == name && matches!(request.answer, Answer::Broken { .. }))
    }

    /// Returns true if an error names the files that the dynamic linker finds for a library of this name and does not load.
    pub(super) fn is_reported(&self, name: &str) -> bool {
        let is_foreign = |request: &MemberRequest| request.name == name && matches!(request.answer, Answer::Foreign(_));
        self.is_broken(name) || self.requests.iter().any(is_foreign)
    }

    /// Adds a DLL that Windows picks and fails to load, with 0xC000007B. It does not continue the search.
    pub(super) fn push_broken_dll(&mut self, loaders: &[MemberLoader], request: &DllRequest, path: &Path, why: String) {
        let is_by = |member: &LoadedMember| Path::new(&loaders[member.at].name) == request.needed_by;
        let by = self.loaded.iter().position(is_by).unwrap_or_default();
        let path = path.display().to_string();
        let answer = Answer::Broken { path, why, picked_by: SEARCH_FOR_DLLS.to_owned() };
        self.requests.push(MemberRequest { by, name: request.name.clone(), answer });
    }

    /// Adds a library that is loaded from elsewhere.
    pub(super) fn push(&mut self, member: Option<LoadedMember>) {
        self.loaded.extend(member);
    }
}

/// A member of a closure.
pub(super) struct LoadedMember {
    /// Index in [`ArtifactReport::loaders`].
    at: usize,
    /// The member in the closure that requested it first.
    wanted_by: Option<usize>,
    /// Name under which it was requested; empty for the first.
    name: String,
    /// The search path that contains it.
    picked_by: String,
    /// True if it is loaded before it is requested, so that no search path need contain it.
    by_name: bool,
}

impl LoadedMember {
    fn root(at: usize) -> Self {
        Self { at, wanted_by: None, name: String::new(), picked_by: "the program".to_owned(), by_name: false }
    }

    /// Returns true if it is loaded for a library of this name.
    fn is_named(&self, loaders: &[MemberLoader], name: &str) -> bool {
        self.name == name || loaders[self.at].is_named(name)
    }

    /// A library of this machine.
    pub(super) fn joined(at: usize, name: String, picked_by: String) -> Self {
        Self { at, wanted_by: None, name, picked_by, by_name: true }
    }
}

/// The members of a tree, as far as they open libraries by name.
struct OpeningMembers<'a> {
    loaders: &'a [MemberLoader],
    tree: &'a MemberTree,
}

impl OpeningFiles for OpeningMembers<'_> {
    fn opens(&self, object: &Object) -> Cow<'_, FileOpens> {
        match self.tree.loader_at(&object.path) {
            Some(at) => Cow::Borrowed(&self.loaders[at].opens),
            None => Cow::Owned(FileOpens::default()),
        }
    }

    fn is_brought(&self, _: &LoadGraph, _: usize) -> bool {
        true
    }

    fn is_of_machine(&self, name: &str) -> bool {
        !is_of_program(name)
    }

    fn find_elsewhere(&self, name: &str) -> Option<PathBuf> {
        self.tree.any_file_named(name)
    }
}

/// The files that the dynamic linker loads for a member.
pub(super) struct MemberGraph<'a> {
    pub(super) graph: LoadGraph,
    source: GraphSource<'a>,
}

/// The files of a graph.
enum GraphSource<'a> {
    /// Members of the artifact.
    Tree(Rc<MemberTree>),
    /// Files of this machine, some of which are members of a directory.
    Machine(&'a ArtifactReport),
    /// Files of the disk, some of which come with a program.
    Disk(&'a ArtifactReport),
}

impl MemberGraph<'_> {
    /// Returns the index in [`ArtifactReport::loaders`] of the file at a path.
    pub(super) fn loader_at(&self, path: &Path) -> Option<usize> {
        match &self.source {
            GraphSource::Tree(tree) => tree.loader_at(path),
            GraphSource::Machine(report) => report.loader_of_file(path),
            GraphSource::Disk(report) => report.loader_on_disk(path),
        }
    }

    /// Returns true if the paths are those of files of this machine.
    pub(super) fn is_on_disk(&self) -> bool {
        !matches!(self.source, GraphSource::Tree(_))
    }

    /// Returns true if the file at a path is no member.
    pub(super) fn is_of_machine(&self, path: &Path) -> bool {
        match &self.source {
            GraphSource::Tree(_) | GraphSource::Disk(_) => false,
            GraphSource::Machine(report) => report.member_of_file(path).is_none(),
        }
    }

    /// Returns the object of a member.
    pub(super) fn object_of(&self, loader: usize) -> Option<usize> {
        self.graph.objects.iter().position(|object| self.loader_at(&object.path) == Some(loader))
    }

    /// Returns the cuDNN that an object opens under one of these names, or that is loaded under one of the others, and its name.
    pub(super) fn find_cudnn<'a>(
        &mut self,
        object: usize,
        opened: &'a [String],
        loaded: &'a [String],
    ) -> Option<(usize, &'a str)> {
        for name in opened {
            if let Some(index) = self.graph.dlopen_library(object, name) {
                return Some((index, name));
            }
        }
        loaded.iter().find_map(|name| Some((self.graph.loaded_object(name)?, name.as_str())))
    }

    /// Returns the member that an object opens under a name.
    fn open(&self, object: usize, name: &str) -> Option<usize> {
        let found = self.graph.resolve_file(object, name).filter(|found| found.inspection == Inspection::Usable)?;
        self.loader_at(&found.path)
    }
}

impl ArtifactReport {
    /// Determines which members run together.
    pub(super) fn find_closures(&mut self) {
        let needed: BTreeSet<&str> =
            self.loaders.iter().flat_map(|loader| &loader.needed).map(String::as_str).collect();
        let is_needed = |loader: &MemberLoader| {
            let soname = loader.soname.as_deref();
            needed.contains(file_name(&loader.name)) || soname.is_some_and(|soname| needed.contains(soname))
        };
        let dlls = self.named_dlls();
        let (mut reached, mut requests, mut closures) = (BTreeSet::new(), 0, Vec::new());
        for first in [true, false] {
            for (at, loader) in self.loaders.iter().enumerate() {
                let is_root = loader.is_program() || !is_needed(loader);
                // The second round has libraries that need each other. A library of which another copy is loaded is not
                // used.
                let is_reached = |name: &str| reached.contains(name);
                let own = [Some(file_name(&loader.name)), loader.soname.as_deref()];
                if is_root != first || !first && own.into_iter().flatten().any(is_reached) || requests > MOST_REQUESTS {
                    continue;
                }
                let closure = if loader.is_for_windows { self.load_dlls(at, &dlls) } else { self.load_members(at) };
                requests += closure.requests.len().max(closure.loaded.len());
                for loaded in closure.loaded.iter().map(|member| &self.loaders[member.at]) {
                    reached.insert(file_name(&loaded.name));
                    reached.extend(loaded.soname.as_deref());
                }
                closures.push(closure);
            }
        }
        if requests > MOST_REQUESTS {
            let why = format!("which members run together: more than {MOST_REQUESTS} requests for libraries");
            self.not_examined.push(NotExamined::new(self.archive.display().to_string(), why));
        }
        self.closures = closures;
    }

    /// Loads a member as the dynamic linker does. `None` if it loads no such file.
    pub(super) fn graph_of(&self, at: usize) -> Option<MemberGraph<'_>> {
        if let Some(graph) = &self.disk {
            return Some(MemberGraph { graph: graph.clone(), source: GraphSource::Disk(self) });
        }
        let loader = &self.loaders[at];
        let (tree, path) = self.trees.place_of(&loader.name)?;
        let library_path = (!self.library_path.is_empty()).then(|| self.library_path.join(":"));
        let mut graph = loader::resolve_in(Rc::<MemberTree>::clone(&tree), &path, library_path.as_deref()).ok()?;
        // Python loads the libraries of other packages by their paths before it loads a module that needs them.
        if !loader.is_program() {
            graph.load_absent(|name| tree.only_file_named(name));
        }
        load_opened_inside(&mut graph, &OpeningMembers { loaders: &self.loaders, tree: &tree });
        Some(MemberGraph { graph, source: GraphSource::Tree(tree) })
    }

    /// Loads a member as the dynamic linker of this machine does, if the answer is for this machine.
    fn graph_here(&self, at: usize) -> Option<MemberGraph<'_>> {
        let mut graph = self.load_here(&self.loaders[at].name, &Env::from_process(), &OpenFiles::default())?;
        let _ = load_opened_here(&mut graph);
        Some(MemberGraph { graph, source: GraphSource::Machine(self) })
    }

    /// Returns the name of the member that is this file of the machine.
    fn member_of_file(&self, path: &Path) -> Option<String> {
        let top = fs::canonicalize(&self.archive).ok()?;
        let below = fs::canonicalize(path.parent()?).ok()?.strip_prefix(&top).ok()?.join(path.file_name()?);
        let names: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
        Some(self.resolve_links(&names?.join("/"))?.to_owned())
    }

    /// Returns the index of the member, or of the joined library, that is this file of the machine.
    fn loader_of_file(&self, path: &Path) -> Option<usize> {
        self.loader_of(&self.member_of_file(path).unwrap_or_else(|| without_links(path).display().to_string()))
    }

    pub(super) fn load_members(&self, root: usize) -> MemberClosure {
        let mut closure = MemberClosure { loaded: vec![LoadedMember::root(root)], ..MemberClosure::default() };
        let Some(graph) = self.graph_of(root) else { return closure };
        let mut places: BTreeMap<usize, usize> = BTreeMap::from([(0, 0)]);
        for (index, object) in graph.graph.objects.iter().enumerate().skip(1) {
            let Some(at) = graph.loader_at(&object.path).filter(|_| object.place != SearchSource::Loader) else {
                continue;
            };
            places.insert(index, closure.loaded.len());
            closure.loaded.push(LoadedMember {
                at,
                wanted_by: object.wanted_by.and_then(|by| places.get(&by).copied()),
                name: object.name.rsplit('/').next().unwrap_or_default().to_owned(),
                picked_by: self.describe_place(&graph, &object.place),
                by_name: object.place == SearchSource::Package || object.place == SearchSource::Path,
            });
        }
        for request in &graph.graph.requests {
            let Some(by) = places.get(&request.by).copied() else { continue };
            let answer = match &request.answer {
                LoadOutcome::Object(index, place) => {
                    let Some(at) = graph.loader_at(&graph.graph.objects[*index].path) else { continue };
                    if *place == SearchSource::Package { Answer::LoadedBefore } else { Answer::Found(at) }
                }
                LoadOutcome::Absent(candidates) => {
                    let by = &self.loaders[closure.loaded[by].at].name;
                    let mut own: Vec<LibraryCandidate> = candidates.clone();
                    own.retain(|candidate| self.is_in_artifact(candidate));
                    foreign_library(&request.name, by, &own, |path| self.member_name(&graph, path))
                        .map_or(Answer::Absent, Answer::Foreign)
                }
                LoadOutcome::Broken(candidate) if !self.is_in_artifact(candidate) => Answer::Absent,
                LoadOutcome::Broken(candidate) => Answer::Broken {
                    path: self.member_name(&graph, &candidate.path),
                    why: candidate.problem(),
                    picked_by: self.describe_place(&graph, &candidate.place),
                },
            };
            closure.requests.push(MemberRequest { by, name: request.name.clone(), answer });
        }
        for missing in graph.graph.missing_versions() {
            if [&missing.library, &missing.by].iter().all(|path| graph.loader_at(path).is_some()) {
                let values = Values::default().with("path", self.member_name(&graph, &missing.library));
                let values = values.with("value", &missing.version);
                let values = values.with("needed_by", self.member_name(&graph, &missing.by));
                closure.too_old.push(MessageTemplate::LibraryTooOld.to_finding(&values));
            }
        }
        closure
    }

    /// Returns the name of the member at a path of a graph.
    fn member_name(&self, graph: &MemberGraph<'_>, path: &Path) -> String {
        let shown = || {
            let path = path.to_string_lossy();
            if self.is_file() { path.into_owned() } else { path.trim_start_matches('/').to_owned() }
        };
        graph.loader_at(path).map_or_else(shown, |at| self.loaders[at].name.clone())
    }

    /// Describes the search path that contains a member.
    fn describe_place(&self, graph: &MemberGraph<'_>, place: &SearchSource) -> String {
        match place {
            SearchSource::Rpath(of, entry) => {
                SearchSource::Rpath(self.member_name(graph, of).into(), entry.clone()).to_string()
            }
            SearchSource::Runpath(of, entry) => {
                SearchSource::Runpath(self.member_name(graph, of).into(), entry.clone()).to_string()
            }
            other if self.is_file() => other.to_string(),
            SearchSource::LibraryPath(entry) => format!("LD_LIBRARY_PATH of the image: {entry}"),
            SearchSource::Package | SearchSource::Path => "the only file of this name".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns the files for Windows by name in lower case. NVIDIA's have also the soname that they have on Linux.
    pub(super) fn named_dlls(&self) -> NamedDlls {
        let mut dlls = NamedDlls::new();
        for (at, loader) in self.loaders.iter().enumerate().filter(|(_, loader)| loader.is_for_windows) {
            let name = file_name(&loader.name).to_ascii_lowercase();
            for known in BTreeSet::from([plain_name(&name).into_owned(), name.clone()]) {
                dlls.entry(known).or_default().push(at);
            }
        }
        dlls
    }

    /// Returns the DLL that a file gets: the one in its directory, or else the only one of this name.
    fn find_loaded_dll(&self, by: &MemberLoader, name: &str, dlls: &NamedDlls) -> Option<usize> {
        let files = dlls.get(&name.to_ascii_lowercase())?;
        let beside = files.iter().find(|at| are_adjacent(&self.loaders[**at].name, &by.name));
        beside.or(files.first().filter(|_| files.len() == 1)).copied()
    }

    /// Loads the DLLs of a file, and those that these need or open.
    pub(super) fn load_dlls(&self, root: usize, dlls: &NamedDlls) -> MemberClosure {
        let mut loaded = vec![LoadedMember::root(root)];
        let mut next = 0;
        while next < loaded.len() {
            let by = &self.loaders[loaded[next].at];
            let imported = by.needed.iter().chain(&by.delay_loaded).map(std::slice::from_ref);
            for names in imported.chain(by.opens.groups()) {
                let find = |name: &String| Some((self.find_loaded_dll(by, name, dlls)?, name.clone()));
                let Some((at, name)) = names.iter().find_map(find) else { continue };
                if !loaded.iter().any(|member| member.at == at) {
                    let picked_by = SEARCH_FOR_DLLS.to_owned();
                    loaded.push(LoadedMember { at, wanted_by: Some(next), name, picked_by, by_name: true });
                }
            }
            next += 1;
        }
        MemberClosure { loaded, ..MemberClosure::default() }
    }

    /// Returns the member that the dynamic linker finds for a library that this member needs, alone or in any closure.
    pub(super) fn find_in_closures(&self, name: &str, soname: &str) -> Option<String> {
        let at = self.loader_of(name)?;
        let mut is_in_any = false;
        for (closure, own) in self.loaded_with(at) {
            is_in_any = true;
            let request =
                closure.requests.iter().filter(|request| request.by == own).find(|request| request.name == soname);
            if let Some(MemberRequest { answer: Answer::Found(found), .. }) = request {
                return Some(self.loaders[*found].name.clone());
            }
        }
        let found = if self.loaders[at].needed.iter().any(|needed| needed == soname) && is_in_any {
            None
        } else {
            self.graphs_with(at).find_map(|(graph, own)| graph.open(own, soname))
        };
        let of_machine = || self.find_loaded(name, soname).filter(|found| self.of_machine.contains(found));
        found.map(|found| self.loaders[found].name.clone()).or_else(of_machine)
    }

    /// Returns the member that the dynamic linker finds if a member opens this name, for every program that loads the member.
    pub(super) fn find_for_all(&self, member: &str, name: &str) -> Option<String> {
        let at = self.loader_of(member)?;
        let found_by = |(graph, by): (MemberGraph<'_>, usize)| {
            graph.open(by, name).or_else(|| graph.loader_at(&graph.graph.objects[by].path.with_file_name(name)))
        };
        let found = self.graphs_with(at).map(found_by).reduce(Option::and)??;
        Some(self.loaders[found].name.clone())
    }

    /// Returns the error about the cuDNN that a member needs, if it finds only one of another major in the artifact.
    pub(super) fn cudnn_of_other_major(&self, part: &ArtifactMember, soname: &str) -> Option<Finding> {
        self.graphs_with(self.loader_of(&part.name)?).find_map(|(graph, by)| {
            let mut requests = graph.graph.requests.iter();
            let request = requests.find(|request| request.by == by && request.name == soname)?;
            let is_inside = |candidate: &LibraryCandidate| self.is_in_artifact(candidate);
            brought_cudnn_of_other_major(&graph.graph, request, is_inside, |path| self.member_name(&graph, path))
        })
    }

    /// Returns the graph of each closure with a member, and the object of the member.
    pub(super) fn graphs_with(&self, at: usize) -> impl Iterator<Item = (MemberGraph<'_>, usize)> {
        self.roots_with(at).filter_map(move |root| {
            let graph = self.graphs_of(root).next()?;
            let object = graph.object_of(at)?;
            Some((graph, object))
        })
    }

    /// Returns the members for which a member is loaded. One that no closure contains is loaded alone.
    pub(super) fn roots_with(&self, at: usize) -> impl Iterator<Item = usize> {
        let roots: Vec<usize> = self.loaded_with(at).filter_map(|(closure, _)| closure.members().next()).collect();
        let alone = roots.is_empty().then_some(at);
        roots.into_iter().chain(alone).filter(|at| *at < self.loaders.len() - self.of_machine.len())
    }

    /// Returns what the dynamic linker loads for a member: on this machine, if the answer is for it, and with the top of the artifact
    /// as the root of the file system.
    pub(super) fn graphs_of(&self, root: usize) -> impl Iterator<Item = MemberGraph<'_>> {
        let is_here = self.is_joined && !self.is_file();
        let here = std::iter::once_with(move || if is_here { self.graph_here(root) } else { None });
        here.chain(std::iter::once_with(move || self.graph_of(root))).flatten()
    }

    /// Returns the member with this name that is loaded before a member needs it: no search path need contain it.
    pub(super) fn find_loaded(&self, name: &str, soname: &str) -> Option<String> {
        let mut loaded = self.members_beside(name);
        loaded
            .find(|member| member.by_name && member.is_named(&self.loaders, soname))
            .map(|member| self.loaders[member.at].name.clone())
    }

    /// Returns true if a library of this name that a search path contains is loaded with a member: the dynamic linker does not search
    /// it again.
    pub(super) fn is_loaded_with(&self, name: &str, soname: &str) -> bool {
        self.members_beside(name).any(|member| !member.by_name && member.is_named(&self.loaders, soname))
    }

    /// Returns true if a member opens this library by name and the artifact contains it.
    pub(super) fn is_opened_inside(&self, member: &str, opened: &OpenedLibrary) -> bool {
        self.members_beside(member).any(|member| {
            let loader = &self.loaders[member.at];
            let names = [Some(member.name.as_str()), Some(file_name(&loader.name)), loader.soname.as_deref()];
            names.into_iter().flatten().any(|name| opened.is_named(name))
        })
    }

    /// Reports the libraries that the dynamic linker picks for members and cannot load.
    pub(super) fn broken_libraries(&self, closures: &[&MemberClosure]) -> Vec<Finding> {
        let mut findings: Vec<Finding> = Vec::new();
        for closure in closures.iter().filter(|closure| !self.loaders[closure.root()].is_of_nvidia()) {
            for request in &closure.requests {
                let finding = match &request.answer {
                    Answer::Broken { path, why, picked_by } => {
                        let by = &self.loaders[closure.loaded[request.by].at].name;
                        let values = Values::default().with("library", &request.name).with("needed_by", by);
                        let values = values.with("path", path).with("why", why).with("picked_by", picked_by);
                        MessageTemplate::LibraryDamaged.to_finding(&values)
                    }
                    Answer::Foreign(finding) if is_of_program(&request.name) => finding.clone(),
                    _ => continue,
                };
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        findings
    }

    /// Returns true if the dynamic linker picks a file for a library that a member needs, and cannot load it.
    pub(super) fn is_broken(&self, part: &ArtifactMember, soname: &str) -> bool {
        self.closures_with(&part.name).any(|(closure, _)| closure.is_broken(soname))
    }

    /// Returns the error about a library that a member needs, if the artifact contains only one for another processor.
    pub(super) fn foreign_library(&self, part: &ArtifactMember, soname: &str) -> Option<Finding> {
        let mut requests = self
            .closures_with(&part.name)
            .flat_map(|(closure, by)| closure.requests.iter().filter(move |one| one.by == by));
        requests.find_map(|request| match &request.answer {
            Answer::Foreign(finding) if request.name == soname => Some(finding.clone()),
            _ => None,
        })
    }

    pub(super) fn loader_of(&self, name: &str) -> Option<usize> {
        let (own, of_machine) = self.loaders.split_at(self.loaders.len() - self.of_machine.len());
        let at = own.binary_search_by(|loader| loader.name.as_str().cmp(name)).ok();
        at.or_else(|| Some(own.len() + of_machine.iter().position(|loader| loader.name == name)?))
    }

    /// Returns the closures with a member, and its index in each.
    fn loaded_with(&self, at: usize) -> impl Iterator<Item = (&MemberClosure, usize)> {
        let position = move |closure: &MemberClosure| closure.loaded.iter().position(|own| own.at == at);
        self.judged_closures().filter_map(move |closure| Some((closure, position(closure)?)))
    }

    /// Returns the closures with the member of this name, and its index in each.
    fn closures_with(&self, name: &str) -> impl Iterator<Item = (&MemberClosure, usize)> {
        self.loader_of(name).into_iter().flat_map(|at| self.loaded_with(at))
    }

    /// Returns the members that are loaded together with the member of this name.
    fn members_beside(&self, name: &str) -> impl Iterator<Item = &LoadedMember> {
        self.closures_with(name).flat_map(|(closure, _)| &closure.loaded)
    }

    /// Returns the names of the members that are programs or that programs load. A program loads a library that is given alone.
    pub(super) fn members_of_programs(&self) -> BTreeSet<&str> {
        self.members_with_root(|root| self.is_file() || root.is_program())
    }

    /// Returns the names of the members that are programs in the artifact, or that these load.
    pub(super) fn members_that_start(&self) -> BTreeSet<&str> {
        self.members_with_root(MemberLoader::is_program)
    }

    /// Returns the names of the members that run with a member which is not a library of NVIDIA's, or that such a member may open.
    pub(super) fn members_of_others(&self) -> BTreeSet<&str> {
        self.members_with_root(|root| self.is_used(root))
    }

    /// Returns the names of the members of each closure whose root is selected.
    fn members_with_root(&self, is_selected: impl Fn(&MemberLoader) -> bool) -> BTreeSet<&str> {
        let is_of_root =
            |closure: &&MemberClosure| closure.members().next().is_some_and(|at| is_selected(&self.loaders[at]));
        let closures = self.judged_closures().filter(is_of_root);
        closures.flat_map(MemberClosure::members).map(|at| self.loaders[at].name.as_str()).collect()
    }

    /// Returns the libraries that are loaded under a name of another CUDA major.
    pub(super) fn misnamed_libraries(&self) -> BTreeSet<NotExamined> {
        let loaded = self.judged_closures().flat_map(|closure| &closure.loaded);
        loaded
            .filter_map(|member| {
                let loader = &self.loaders[member.at];
                misnamed(&loader.name, &member.name, loader.soname.as_deref())
            })
            .collect()
    }

    /// Returns the members with CUDA that run together, each with the search path that contains it.
    fn members_of<'a>(
        &'a self,
        closures: &[&'a MemberClosure],
    ) -> impl Iterator<Item = Vec<(&'a ArtifactMember, &'a str)>> {
        let parts: BTreeMap<&str, &ArtifactMember> = self.parts.iter().map(|part| (part.name.as_str(), part)).collect();
        closures.iter().filter(|closure| closure.loaded.len() > 1).map(move |closure| {
            let part = |member: &'_ LoadedMember| parts.get(self.loaders[member.at].name.as_str()).copied();
            closure.loaded.iter().filter_map(|member| Some((part(member)?, member.picked_by.as_str()))).collect()
        })
    }

    /// Reports DLLs next to a program that are for another processor: Windows ends the program with 0xC000007B.
    pub(super) fn processor_findings(&self, closures: &[&MemberClosure]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for closure in closures {
            let root = &self.loaders[closure.root()];
            for member in &closure.loaded[1..] {
                let dll = &self.loaders[member.at];
                let by = member.wanted_by.map(|by| &self.loaders[closure.loaded[by].at]);
                let is_imported = by.is_some_and(|by| by.is_for_windows && by.needed.contains(&member.name));
                // Other directories are searched for a single file alone.
                let is_searched = self.is_file() || are_adjacent(&root.name, &dll.name);
                let names =
                    if self.is_file() { [file_name(&root.name), &member.name] } else { [&*root.name, &dll.name] };
                if let Some(program) = root.processor.filter(|_| is_imported && is_searched) {
                    findings.extend(finding_of_processor((names[1], dll.processor), (names[0], program)));
                }
            }
        }
        findings
    }

    /// Reports functions that a member needs of a library of NVIDIA and that the library which runs with it lacks.
    pub(super) fn symbol_findings(&self, closures: &[&MemberClosure]) -> Vec<Finding> {
        if let Some(graph) = &self.disk {
            if self.is_joined {
                return symbol_findings(graph);
            }
            return symbol_findings_among(graph, |at| self.loader_on_disk(&graph.objects[at].path).is_some());
        }
        let mut findings = Vec::new();
        for members in self.members_of(closures) {
            let file = |(part, picked_by): &(&ArtifactMember, &str)| SymbolFile {
                path: part.name.clone(),
                soname: part.binary.soname.clone().unwrap_or_else(|| file_name(&part.name).to_owned()),
                picked_by: Some((*picked_by).to_owned()),
            };
            let files: Vec<SymbolFile> = members.iter().map(file).collect();
            // The dynamic linker finds a file by its name, whatever its soname.
            let is_it = |file: &SymbolFile, name: &str| file.soname == name || file_name(&file.path) == name;
            let owner = |name: &str| files.iter().position(|file| is_it(file, name));
            let mut missing = Vec::new();
            for (by, (part, _)) in members.iter().enumerate() {
                for import in &part.symbols.imports {
                    let lacking = |of: Option<usize>, unversioned: bool| MissingSymbol {
                        name: import.name.clone(),
                        version: import.version.as_ref().map(|(version, _)| version.clone()),
                        by,
                        of,
                        lazy: import.lazy,
                        unversioned,
                    };
                    if let Some(dll) = &import.dll {
                        let is_it = |file: &SymbolFile| file_name(&file.path).eq_ignore_ascii_case(dll);
                        let of = files.iter().position(is_it).filter(|at| !members[*at].0.symbols.defines(import));
                        missing.extend(of.map(|at| lacking(Some(at), false)));
                        continue;
                    }
                    if let Some(other) = import.other_library() {
                        let of = owner(other).filter(|at| members[*at].0.symbols.lacks(import));
                        missing.extend(of.map(|at| lacking(Some(at), false)));
                        continue;
                    }
                    let defines = |(other, _): &&(&ArtifactMember, &str)| other.symbols.defines(import);
                    let of = import.version.as_ref().and_then(|(_, of)| owner(of));
                    let found = members.iter().position(|member| defines(&member));
                    // glibc requires versions of the library that an import names.
                    let unversioned =
                        found.is_some() && found == of && !members[found.unwrap_or(by)].0.symbols.has_versions;
                    if found.is_none() || unversioned {
                        missing.push(lacking(of, unversioned));
                    }
                }
            }
            extend_new(&mut findings, &findings_of_missing(&files, missing, |_| false));
        }
        findings
    }
}

/// Reports libraries that lack a version of symbols which a member needs.
pub(super) fn version_findings(closures: &[&MemberClosure]) -> Vec<Finding> {
    closures.iter().flat_map(|closure| &closure.too_old).cloned().collect()
}

/// Returns the path with the real directory, so that each file has one path.
pub(super) fn without_links(path: &Path) -> PathBuf {
    let dir = path.parent().and_then(|dir| fs::canonicalize(dir).ok());
    dir.zip(path.file_name()).map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}

/// Returns the finding for a DLL that is for another processor than the program: each with its name and processor.
fn finding_of_processor(dll: (&str, Option<Machine>), program: (&str, Machine)) -> Option<Finding> {
    let processor = dll.1.filter(|processor| ![EM_NONE, program.1].contains(processor) && program.1 != EM_NONE)?;
    let values = Values::default().with("file", dll.0).with("processor", machine_name(processor));
    let values = values.with("place", program.0).with("machine", machine_name(program.1));
    Some(MessageTemplate::WrongMachine.to_finding(&values))
}
