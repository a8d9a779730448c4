//! The members of an archive or directory that run together, found as the dynamic linker finds them.

use std::collections::{BTreeMap, BTreeSet};

use super::member::{MemberLoader, file_name};
use super::{ArtifactMember, ArtifactReport};
use crate::binary::examined::NotExamined;
use crate::binary::loader::MissingSymbol;
use crate::family::misnamed;
use crate::host::dry_run::{SymbolFile, finding_of_processor, findings_of_missing};
use cudaguard::internal::finding::Finding;
use cudaguard::internal::vendor::CUDNN;

/// Maximum number of searches for a library. A real environment with 5000 files needs fewer than 100000.
const MOST_SEARCHES: usize = 1 << 20;

/// A program, or a library that no other member needs, with the members that the dynamic linker loads for it.
#[derive(Default)]
pub(super) struct MemberClosure {
    /// The members in load order.
    loaded: Vec<LoadedMember>,
}

impl MemberClosure {
    /// Returns the indices of the members in [`ArtifactReport::loaders`], the first is the root.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> {
        self.loaded.iter().map(|member| member.at)
    }

    /// Returns true if a library of this name is loaded.
    pub(super) fn has_library(&self, loaders: &[MemberLoader], name: &str) -> bool {
        self.loaded.iter().any(|member| member.name == name || loaders[member.at].is_named(name))
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
    /// The link that the dynamic linker opens: its directory is `$ORIGIN`. `None` if it opens the file itself.
    link: Option<String>,
    /// The search path that contains it.
    picked_by: String,
    /// True if it is loaded before it is requested, so that no search path need contain it.
    by_name: bool,
}

impl LoadedMember {
    fn root(at: usize) -> Self {
        let picked_by = "the program".to_owned();
        Self { at, wanted_by: None, name: String::new(), link: None, picked_by, by_name: false }
    }

    /// A library of this machine.
    pub(super) fn joined(at: usize, name: String, picked_by: String) -> Self {
        Self { at, wanted_by: None, name, link: None, picked_by, by_name: true }
    }
}

/// Returns true if the dynamic linker searches the directory of a member, if the top of the archive is the root of the file system.
fn is_in_default_directory(member: &str) -> bool {
    let dir = &member[member.find('!').map_or(0, |at| at + 1)..member.len() - file_name(member).len()];
    let dir = dir.trim_start_matches("./").trim_end_matches('/');
    let below = dir.strip_prefix("usr/").unwrap_or(dir);
    let lib = below.strip_prefix("local/").unwrap_or(below);
    matches!(lib, "lib" | "lib64") || lib.strip_prefix("lib/").is_some_and(|triplet| triplet.ends_with("-linux-gnu"))
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
        let places: BTreeMap<&str, usize> = self
            .loaders
            .iter()
            .enumerate()
            .filter(|(_, loader)| loader.is_loadable())
            .map(|(at, loader)| (loader.name.as_str(), at))
            .collect();
        let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        // The dynamic linker of an image also searches directories that no member names. In an environment, Python loads
        // the libraries of other packages by their paths before it loads a module that needs them.
        let is_image = self.walked.kind == "container image";
        for name in self.files.iter().chain(self.links.keys()) {
            if let Some(file) = self.resolve_links(name) {
                by_name.entry(file_name(name)).or_default().insert(file);
            }
        }
        let mut dlls: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for loader in self.loaders.iter().filter(|loader| loader.is_for_windows) {
            dlls.entry(file_name(&loader.name).to_ascii_lowercase()).or_default().push(&loader.name);
        }
        let only = |root: &MemberLoader, by: &MemberLoader, name: &str| {
            if by.is_for_windows {
                // Of several copies in other directories, any may be used.
                let files = dlls.get(&name.to_ascii_lowercase())?;
                let dir = |name: &str| name.len() - file_name(name).len();
                let same_dir = files.iter().find(|file| file[..dir(file)] == by.name[..dir(&by.name)]);
                return same_dir.or(files.first().filter(|_| files.len() == 1)).copied();
            }
            let may_be = |file: &&&str| is_image || !root.is_program() || is_in_default_directory(file);
            let mut files = by_name.get(name)?.iter().filter(may_be);
            files.next().filter(|_| files.next().is_none()).copied()
        };
        let (mut reached, mut searches, mut closures) = (BTreeSet::new(), 0, Vec::new());
        for first in [true, false] {
            for (at, loader) in self.loaders.iter().enumerate() {
                let is_root = loader.is_program() || !is_needed(loader);
                // The second round has libraries that need each other. A library of which another copy is loaded is not
                // used.
                let is_reached = |name: &str| reached.contains(name);
                let own = [Some(file_name(&loader.name)), loader.soname.as_deref()];
                if is_root != first || !first && own.into_iter().flatten().any(is_reached) || searches > MOST_SEARCHES {
                    continue;
                }
                let closure = self.load_closure(at, &places, &only, &mut searches);
                for loaded in closure.loaded.iter().map(|member| &self.loaders[member.at]) {
                    reached.insert(file_name(&loaded.name));
                    reached.extend(loaded.soname.as_deref());
                }
                closures.push(closure);
            }
        }
        if searches > MOST_SEARCHES {
            let why = format!("which members run together: more than {MOST_SEARCHES} searches for libraries");
            self.not_examined.push(NotExamined::new(self.archive.display().to_string(), why));
        }
        self.closures = closures;
    }

    fn load_closure<'a>(
        &'a self,
        root: usize,
        places: &BTreeMap<&str, usize>,
        only: &dyn Fn(&MemberLoader, &MemberLoader, &str) -> Option<&'a str>,
        searches: &mut usize,
    ) -> MemberClosure {
        let mut loaded = vec![LoadedMember::root(root)];
        let mut next = 0;
        while next < loaded.len() {
            let of_next = &self.loaders[loaded[next].at];
            for name in of_next.needed.iter().chain(&of_next.delay_loaded) {
                let is_it = |member: &LoadedMember| member.name == *name || self.loaders[member.at].is_named(name);
                if loaded.iter().any(is_it) {
                    continue;
                }
                *searches += 1;
                let found = self.search_closure(&loaded, next, name);
                let place = match self.walked.kind {
                    _ if of_next.is_for_windows => "the search for DLLs",
                    "container image" => "a directory of the image",
                    _ => "the only file of this name",
                };
                let by_name = found.is_none();
                let only = || Some((only(&self.loaders[root], of_next, name)?.to_owned(), place.to_owned()));
                let Some((found, picked_by)) = found.or_else(only) else { continue };
                let Some(at) = self.resolve_links(&found).and_then(|file| places.get(file)).copied() else { continue };
                if !loaded.iter().any(|member| member.at == at) {
                    let (wanted_by, name) = (Some(next), name.clone());
                    let link = (found != self.loaders[at].name).then_some(found);
                    loaded.push(LoadedMember { at, wanted_by, name, link, picked_by, by_name });
                }
            }
            let own = file_name(&of_next.name);
            let parts = CUDNN.major(own).filter(|_| CUDNN.is_named(own)).into_iter();
            let parts = parts.flat_map(|major| CUDNN.parts_of_major(major)).map(|part| part.file);
            let parts = parts.map(|part| Some((part.to_owned(), self.search_closure(&loaded, next, part)?.0)));
            let opens = of_next.opens.iter().map(|opened| self.find_opened(of_next, opened));
            for found in parts.chain(opens).collect::<Vec<_>>() {
                *searches += 1;
                let Some((name, found)) = found else { continue };
                let Some(at) = self.resolve_links(&found).and_then(|file| places.get(file)).copied() else { continue };
                if !loaded.iter().any(|member| member.at == at) {
                    let picked_by = format!("opened by {}", self.loaders[loaded[next].at].name);
                    let wanted_by = Some(next);
                    loaded.push(LoadedMember { at, wanted_by, name, link: None, picked_by, by_name: false });
                }
            }
            next += 1;
        }
        MemberClosure { loaded }
    }

    /// Returns the member that the dynamic linker finds for a library that this member needs, alone or in any closure.
    pub(super) fn find_in_closures(&self, name: &str, soname: &str) -> Option<String> {
        let at = self.loader_of(name)?;
        let mut with_it = self.loaded_with(at);
        let alone = || self.search_closure(&[LoadedMember::root(at)], 0, soname);
        let found = with_it.find_map(|(loaded, own)| self.search_closure(loaded, own, soname)).or_else(alone);
        let of_machine = || self.find_loaded(name, soname).filter(|found| self.of_machine.contains(found));
        found.and_then(|(found, _)| self.resolve_links(&found).map(str::to_owned)).or_else(of_machine)
    }

    /// Returns the member that the dynamic linker finds if a member opens this name, for every program that loads the member.
    pub(super) fn find_for_all(&self, member: &str, name: &str) -> Option<String> {
        let at = self.loader_of(member)?;
        let found_by = |loaded: &[LoadedMember], by: usize| {
            let is_it = |other: &&LoadedMember| other.name == name || self.loaders[other.at].is_named(name);
            if let Some(other) = loaded.iter().find(is_it) {
                return Some(self.loaders[other.at].name.clone());
            }
            let beside = || self.search_path(self.opened_as(&loaded[by]), "$ORIGIN", name);
            let found = self.search_closure(loaded, by, name).map(|(found, _)| found).or_else(beside)?;
            self.resolve_links(&found).map(str::to_owned)
        };
        let mut with_it = self.loaded_with(at).map(|(loaded, by)| found_by(loaded, by)).peekable();
        let alone = if with_it.peek().is_none() { found_by(&[LoadedMember::root(at)], 0) } else { None };
        with_it.reduce(Option::and).unwrap_or(alone)
    }

    /// Returns the name under which the dynamic linker opens a member.
    fn opened_as<'a>(&'a self, member: &'a LoadedMember) -> &'a str {
        member.link.as_deref().unwrap_or(&self.loaders[member.at].name)
    }

    /// Returns the member with this name that is loaded before a member needs it: no search path need contain it.
    pub(super) fn find_loaded(&self, name: &str, soname: &str) -> Option<String> {
        let mut loaded = self.loaded_with(self.loader_of(name)?).flat_map(|(loaded, _)| loaded);
        let is_it = |member: &&LoadedMember| {
            member.by_name && (member.name == soname || self.loaders[member.at].is_named(soname))
        };
        loaded.find(is_it).map(|member| self.loaders[member.at].name.clone())
    }

    /// Returns true if a library of this name that a search path contains is loaded with a member: the dynamic linker does not search
    /// it again.
    pub(super) fn is_loaded_with(&self, name: &str, soname: &str) -> bool {
        let loaded =
            self.loader_of(name).into_iter().flat_map(|at| self.loaded_with(at)).flat_map(|(loaded, _)| loaded);
        let is_it = |member: &LoadedMember| member.name == soname || self.loaders[member.at].is_named(soname);
        loaded.into_iter().any(|member| !member.by_name && is_it(member))
    }

    fn loader_of(&self, name: &str) -> Option<usize> {
        let (own, of_machine) = self.loaders.split_at(self.loaders.len() - self.of_machine.len());
        let at = own.binary_search_by(|loader| loader.name.as_str().cmp(name)).ok();
        at.or_else(|| Some(own.len() + of_machine.iter().position(|loader| loader.name == name)?))
    }

    /// Returns the closures with a member, and its index in each.
    fn loaded_with(&self, at: usize) -> impl Iterator<Item = (&[LoadedMember], usize)> {
        let closures = self.closures.iter().map(|closure| closure.loaded.as_slice());
        closures.filter_map(move |loaded| Some((loaded, loaded.iter().position(|own| own.at == at)?)))
    }

    /// Returns the file or the link that the dynamic linker finds for a library, and the search path that contains it.
    fn search_closure(&self, loaded: &[LoadedMember], by: usize, soname: &str) -> Option<(String, String)> {
        let of = |member: &LoadedMember| &self.loaders[member.at];
        let look = |member: &LoadedMember, kind: &str, path: &str| {
            let found = self.search_path(self.opened_as(member), path, soname)?;
            Some((found, format!("{kind} of {}: {path}", of(member).name)))
        };
        let own = &loaded[by];
        let of_image = || {
            let mut paths = self.library_path.iter();
            paths.find_map(|path| {
                let found = self.search_path(self.opened_as(own), path, soname)?;
                Some((found, format!("LD_LIBRARY_PATH of the image: {path}")))
            })
        };
        if let Some(runpath) = &of(own).runpath {
            return of_image().or_else(|| look(own, "DT_RUNPATH", runpath));
        }
        let mut chain = std::iter::successors(Some(by), |at| loaded[*at].wanted_by).chain([0]).map(|at| &loaded[at]);
        chain.find_map(|member| look(member, "DT_RPATH", of(member).rpath.as_deref()?)).or_else(of_image)
    }

    /// Returns the names of the members that are programs or that programs load.
    pub(super) fn members_of_programs(&self) -> BTreeSet<&str> {
        let is_program = |at: usize| self.loaders[at].is_program();
        let closures = self.closures.iter().filter(|closure| closure.members().next().is_some_and(is_program));
        closures.flat_map(MemberClosure::members).map(|at| self.loaders[at].name.as_str()).collect()
    }

    /// Returns the names of the members that run with a member which is not a library of NVIDIA's.
    pub(super) fn members_of_others(&self) -> BTreeSet<&str> {
        let is_others = |at: usize| !self.loaders[at].is_of_nvidia();
        let closures = self.closures.iter().filter(|closure| closure.members().next().is_some_and(is_others));
        closures.flat_map(MemberClosure::members).map(|at| self.loaders[at].name.as_str()).collect()
    }

    /// Returns the libraries that are loaded under a name of another CUDA major.
    pub(super) fn misnamed_libraries(&self) -> BTreeSet<NotExamined> {
        let loaded = self.closures.iter().flat_map(|closure| &closure.loaded);
        loaded
            .filter_map(|member| {
                let loader = &self.loaders[member.at];
                misnamed(&loader.name, &member.name, loader.soname.as_deref())
            })
            .collect()
    }

    /// Returns the members with CUDA that run together, each with the search path that contains it.
    pub(super) fn closures(&self) -> impl Iterator<Item = Vec<(&ArtifactMember, &str)>> {
        let parts: BTreeMap<&str, &ArtifactMember> = self.parts.iter().map(|part| (part.name.as_str(), part)).collect();
        self.closures.iter().filter(|closure| closure.loaded.len() > 1).map(move |closure| {
            let part = |member: &'_ LoadedMember| parts.get(self.loaders[member.at].name.as_str()).copied();
            let members = closure.loaded.iter().filter_map(|member| Some((part(member)?, member.picked_by.as_str())));
            members.collect()
        })
    }

    /// Reports DLLs next to a program that are for another processor: Windows ends the program with 0xC000007B.
    pub(super) fn processor_findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let dir = |loader: &MemberLoader| loader.name.len() - file_name(&loader.name).len();
        for closure in &self.closures {
            let root = &self.loaders[closure.loaded[0].at];
            for member in &closure.loaded[1..] {
                let dll = &self.loaders[member.at];
                let by = member.wanted_by.map(|by| &self.loaders[closure.loaded[by].at]);
                let is_imported = by.is_some_and(|by| by.is_for_windows && by.needed.contains(&member.name));
                let is_adjacent = root.name[..dir(root)] == dll.name[..dir(dll)];
                if let Some(program) = root.processor.filter(|_| is_imported && is_adjacent) {
                    findings.extend(finding_of_processor((&dll.name, dll.processor), (&root.name, program)));
                }
            }
        }
        findings
    }

    /// Reports functions that a member needs of a library of NVIDIA and that the library which runs with it lacks.
    pub(super) fn symbol_findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for members in self.closures() {
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
            for finding in findings_of_missing(&files, missing, |_| false) {
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        findings
    }
}
