//! NVIDIA's libraries that files need or open, and that a machine provides as far as its description states them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Components, HostLibrary, LibraryState, Machine, Needed, OpenedByName};
use crate::binary::symbols::Bound;
use crate::family::{self, Member, MembersOfProcess, RuntimeCompiler, described_library_finding};
use crate::knowledge::vendor::{self, CUDNN, Owner};
use cudaguard::internal::finding::{Code, Finding, MessageFragment, MessageTemplate, Severity, Values};

/// The key of NVIDIA's libraries that have no key of their own, in host files and in [`Machine::libraries`].
pub(crate) const OTHER_LIBRARIES: &str = "libraries";

/// The libraries of a machine that a program loads, and the findings about them.
#[derive(Default)]
pub(super) struct LibrariesOfMachine<'a> {
    pub(super) findings: Vec<Finding>,
    loaded: Vec<(String, &'a HostLibrary)>,
    /// Libraries that the description of the machine does not contain, by the file that needs them.
    not_stated: BTreeMap<String, Vec<String>>,
    /// Absent libraries that only a search path may contain, by the file that needs them.
    in_search_path: BTreeMap<String, Vec<String>>,
}

impl Machine {
    fn library_state(&self, name: &str) -> LibraryState<'_> {
        let library = vendor::described_library(name);
        if let Some(found) = self.files_named(name).into_iter().find(|found| found.is_loaded()) {
            return LibraryState::Found(found);
        }
        match library {
            Some(library) if self.library_files(library).is_some() => LibraryState::Absent,
            None if self.libraries.contains_key(OTHER_LIBRARIES) => LibraryState::Absent,
            _ => LibraryState::Unknown,
        }
    }

    /// Returns the files that the description states for this soname.
    fn files_named(&self, name: &str) -> Vec<&HostLibrary> {
        let plain = vendor::plain_name(name);
        let mut files = Vec::new();
        if let Some(library) = vendor::described_library(&plain) {
            files.extend(self.library_files(library).into_iter().flatten().filter(|found| match &found.soname {
                Some(soname) => vendor::plain_name(soname) == plain,
                None => found.version.is_none_or(|version| library.soname(version) == *plain),
            }));
        }
        let others = self.libraries.get(OTHER_LIBRARIES).into_iter().flatten();
        files.extend(others.filter(|found| found.name().is_some_and(|name| vendor::plain_name(name) == plain)));
        files
    }

    /// Returns the error about a library that a file needs, if the loader of the machine finds only files that it cannot load.
    pub(super) fn unusable_library(&self, soname: &str, by: &str) -> Option<Finding> {
        let files = self.files_named(soname);
        let picked = files.iter().find(|found| found.taken);
        let found = picked.or(files.first())?;
        let why = found.problem.as_deref()?;
        let values = Values::default().with("library", soname).with("needed_by", by).with("why", why);
        let values = values.with("path", found.path.as_deref().unwrap_or(soname));
        let place = found.by.as_deref().unwrap_or("the search path of the machine");
        if picked.is_some() {
            return Some(MessageTemplate::LibraryDamaged.to_finding(&values.with("picked_by", place)));
        }
        let values = values.with("looked_in", place).with("cure", install_hint(soname));
        Some(MessageTemplate::WrongMachineElsewhere.to_finding(&values))
    }
}

impl HostLibrary {
    /// Returns its soname, or the name of its file.
    fn name(&self) -> Option<&str> {
        self.soname.as_deref().or_else(|| self.path.as_deref()?.rsplit(['/', '\\']).next())
    }

    /// Returns the directory of its file.
    fn dir(&self) -> Option<&str> {
        let path = self.path.as_deref()?;
        path.rfind(['/', '\\']).map(|end| &path[..end])
    }
}

impl Components {
    /// Finds the libraries of a machine that the file needs, those that these need, and those that crates open. cuDNN is checked by
    /// its row in the manifest. `of_each`: the findings about each manifest.
    pub(super) fn libraries_of<'a>(
        &self,
        machine: &'a Machine,
        of_each: &mut [Vec<Finding>],
    ) -> LibrariesOfMachine<'a> {
        let mut all = LibrariesOfMachine::default();
        self.find_needed(machine, &mut all, of_each);
        self.find_opened(machine, &mut all);
        let values = Values::default().with("file", &self.file);
        for (names, words) in [
            (&all.not_stated, MessageTemplate::LibraryNotStated),
            (&all.in_search_path, MessageTemplate::LibraryNotStatedInSearchPath),
        ] {
            for (by, names) in names {
                let values = Values::default().with("file", by).with("library", names.join(", "));
                all.findings.push(words.to_finding(&values));
            }
        }
        all.findings.extend(self.missing_functions(machine, &all.loaded));
        let members = all.members(machine);
        all.findings.extend(family::compilers_without_version(&members).map(|compiler| {
            MessageTemplate::LibraryNotStatedCompiler.to_finding(&values.clone().with("library", compiler))
        }));
        // Several modules need not be loaded together.
        let process = (self.modules.len() < 2).then(|| MembersOfProcess::all(self.file.clone(), members.len()));
        let members: Vec<_> = members.iter().collect();
        all.findings.extend(family::findings(
            &members,
            members.len(),
            process.as_slice(),
            &|_, soname| members.iter().position(|member| member.is_named(soname)),
            &|_, name| matches!(machine.library_state(name), LibraryState::Absent),
        ));
        all
    }

    /// If a module can be loaded, the libraries of other modules are no errors.
    fn find_needed<'a>(&self, machine: &'a Machine, all: &mut LibrariesOfMachine<'a>, of_each: &mut [Vec<Finding>]) {
        let mut missing: Vec<(Needed, Finding)> = Vec::new();
        let mut seen: BTreeSet<String> = self.needed.iter().map(|needed| needed.soname.clone()).collect();
        let mut queue: Vec<(Needed, String)> =
            self.needed.iter().rev().map(|needed| (needed.clone(), self.owner_of(needed))).collect();
        while let Some((needed, by)) = queue.pop() {
            if vendor::is_libcuda(&needed.soname) {
                let is_absent = machine.driver.as_ref().is_some_and(|driver| driver.absent);
                missing.extend(is_absent.then(|| (needed.clone(), absent_finding(&needed, &by))));
                continue;
            }
            match machine.library_state(&needed.soname) {
                LibraryState::Found(library) => {
                    let name = library.name().unwrap_or(&needed.soname);
                    let others = library.needs.iter().filter(|name| seen.insert((*name).clone()));
                    queue.extend(others.map(|soname| {
                        (Needed { soname: soname.clone(), foreign: None, ..needed.clone() }, name.to_owned())
                    }));
                    if !all.loaded.iter().any(|(soname, _)| *soname == needed.soname) {
                        all.loaded.push((needed.soname, library));
                    }
                }
                LibraryState::Absent | LibraryState::Unknown if needed.foreign.is_some() => {
                    let finding = needed.foreign.as_deref().cloned();
                    missing.extend(finding.map(|finding| (needed, finding)));
                }
                LibraryState::Absent if needed.has_search_path => {
                    all.in_search_path.entry(by).or_default().push(needed.soname);
                }
                LibraryState::Absent => {
                    let unusable = machine.unusable_library(&needed.soname, &by);
                    let finding = unusable.unwrap_or_else(|| absent_finding(&needed, &by));
                    missing.push((needed, finding));
                }
                LibraryState::Unknown => all.not_stated.entry(by).or_default().push(needed.soname),
            }
        }
        let is_usable = self.modules.iter().any(|module| {
            !module.needs.iter().any(|soname| missing.iter().any(|(needed, _)| needed.soname == *soname))
                && !module.cudnn.iter().any(|linked| of_each[linked.manifest].iter().any(is_absent_cudnn))
        });
        // A library that is no module of Python may be loaded by one that seems usable.
        let optional = self.modules.iter().flat_map(|module| &module.cudnn);
        for linked in optional.filter(|linked| is_usable && python_module(&linked.file).is_some()) {
            for finding in of_each[linked.manifest].iter_mut().filter(|finding| is_absent_cudnn(finding)) {
                let values = Values::default().with("cure", &finding.hint);
                *finding = absent_from_module(&linked.soname, &linked.file, values).with_severity(Severity::Warning);
            }
        }
        for (needed, finding) in missing {
            let is_optional = is_usable && needed.module.is_some();
            all.findings.push(if is_optional { finding.with_severity(Severity::Warning) } else { finding });
        }
    }

    fn owner_of(&self, needed: &Needed) -> String {
        needed.by.as_ref().unwrap_or(&self.file).clone()
    }

    fn find_opened<'a>(&self, machine: &'a Machine, all: &mut LibrariesOfMachine<'a>) {
        let mut not_stated: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for opened in &self.opened {
            let Some(first) = opened.names.first() else { continue };
            let states: Vec<_> = opened.names.iter().map(|name| (name, machine.library_state(name))).collect();
            let found = states.iter().find_map(|(name, state)| Some(((*name).clone(), state.found()?)));
            let is_unknown = states.iter().any(|(_, state)| matches!(state, LibraryState::Unknown));
            match found {
                Some((name, library)) => {
                    all.findings.extend(self.lookup_finding(opened, library));
                    all.loaded.push((name, library));
                }
                None if is_unknown => not_stated.entry(&opened.by).or_default().push(first),
                None => all.findings.push(opened.absent_finding()),
            }
        }
        for (by, names) in not_stated {
            let values = Values::default().with("library", names.join(", ")).with("crate", by);
            all.findings.push(MessageTemplate::LibraryNotStatedOpened.to_finding(&values));
        }
    }

    /// Compares the functions that a crate looks up in a library which it opens with the version of the library.
    fn lookup_finding(&self, opened: &OpenedByName, library: &HostLibrary) -> Option<Finding> {
        let lookup = self.lookups.iter().find(|lookup| lookup.by == opened.by && lookup.files == opened.names)?;
        let name = library.name()?;
        // A name without a number: the majors of the toolkit's libraries are in the description, as versions.
        let name = match library.version.filter(|_| vendor::major_of(name).is_none()) {
            Some(version) => format!("{}.so.{}", name.trim_end_matches(".so"), version.major),
            None => name.to_owned(),
        };
        described_library_finding(lookup, &name, library.version, library.path.as_deref())
    }

    /// Compares the functions that the file and the loaded libraries bind with the versions of the libraries that have them. cuDNN
    /// and the driver are checked by their rows in the manifest.
    fn missing_functions(&self, machine: &Machine, loaded: &[(String, &HostLibrary)]) -> Vec<Finding> {
        let of_libraries = loaded.iter().flat_map(|(soname, library)| {
            let by = library.name().unwrap_or(soname);
            library.binds.iter().map(move |bound| (by, library.dir(), bound))
        });
        let all = self.bound.iter().map(|bound| (self.file.as_str(), None, bound)).chain(of_libraries);
        let mut newest: BTreeMap<(&str, &str), (Option<&str>, &Bound)> = BTreeMap::new();
        for (by, dir, bound) in
            all.filter(|(_, _, bound)| !CUDNN.is_named(&bound.soname) && !vendor::is_libcuda(&bound.soname))
        {
            let known = newest.entry((by, &bound.soname)).or_insert((dir, bound));
            *known = if known.1.first < bound.first { (dir, bound) } else { *known };
        }
        let mut findings = Vec::new();
        for ((by, _), (dir, Bound { soname, name, first })) in newest {
            let LibraryState::Found(found) = machine.library_state(soname) else { continue };
            let values = Values::default().with("library", soname).with("first", first).with("file", by);
            let values = values.with("symbol", name).with("symbols", name).with_known("path", found.path.as_deref());
            match found.version {
                Some(version) if version < *first => findings
                    .push(MessageTemplate::LibraryLacksSymbolOnMachine.to_finding(&values.with("found", version))),
                // Two libraries in one directory are from one package.
                None if dir.is_none() || dir != found.dir() => {
                    findings.push(MessageTemplate::LibraryNotStatedVersion.to_finding(&values));
                }
                _ => {}
            }
        }
        findings
    }
}

fn described_member(soname: &str, library: &HostLibrary) -> Option<Member> {
    Member::from_description(library.path.as_deref().unwrap_or(soname), soname, library.version, &library.needs)
}

impl LibrariesOfMachine<'_> {
    /// Returns the run-time compilers among the loaded libraries.
    pub(super) fn compilers(&self, machine: &Machine) -> Vec<RuntimeCompiler> {
        family::compilers(&self.members(machine))
    }

    /// Returns the loaded libraries, and the builtins of NVRTC, which opens them when it compiles.
    fn members(&self, machine: &Machine) -> Vec<Member> {
        let mut members: Vec<Member> =
            self.loaded.iter().filter_map(|(soname, library)| described_member(soname, library)).collect();
        if members.iter().any(|member| member.is(&family::NVRTC)) {
            let all = machine.libraries.get(OTHER_LIBRARIES).into_iter().flatten();
            let others = all.filter_map(|library| described_member(library.name()?, library));
            members.extend(others.filter(|member| member.is(&family::BUILTINS)));
        }
        members
    }
}

impl OpenedByName {
    /// Returns the finding that none of the names is found.
    pub(crate) fn absent_finding(&self) -> Finding {
        let library = self.names.first().map(String::as_str).unwrap_or_default();
        let values = Values::default().with("library", library).with("value", self.names.join(", "));
        if self.is_by_crate {
            MessageTemplate::OpenedLibraryAbsent.to_finding(&values.with("crate", &self.by))
        } else {
            MessageTemplate::LibraryNotStatedOptional.to_finding(&values.with("file", &self.by))
        }
    }
}

/// Returns true for the error that no cuDNN of the right major is found: the dynamic linker does not load the file.
fn is_absent_cudnn(finding: &Finding) -> bool {
    finding.severity == Severity::Error && matches!(finding.code, Code::CudnnAbsent | Code::CudnnOtherMajor)
}

/// Returns the name with which Python imports an extension module. `None` for another file.
pub(super) fn python_module(path: &str) -> Option<String> {
    let start = ["/site-packages/", "/dist-packages/", "!"].iter().filter_map(|dir| Some(path.rfind(dir)? + dir.len()));
    let name = &path[start.max().unwrap_or_default()..];
    let (dir, file) = name.split_at(name.rfind('/').map_or(0, |at| at + 1));
    let (stem, ending) = file.split_once('.')?;
    let is_module =
        ending == "pyd" || ending.starts_with("cpython-") || ending.starts_with("cp3") || ending == "abi3.so";
    is_module.then(|| format!("{dir}{stem}").replace('/', "."))
}

fn absent_from_module(soname: &str, file: &str, values: Values) -> Finding {
    let values = values.with("library", soname).with("needed_by", file);
    match python_module(file) {
        Some(module) => MessageTemplate::LibraryAbsentModule.to_finding(&values.with("file", module)),
        None => MessageTemplate::LibraryAbsentFile.to_finding(&values),
    }
}

/// Returns the finding for a library that a file needs and that the machine lacks.
fn absent_finding(needed: &Needed, by: &str) -> Finding {
    let soname = &needed.soname;
    let values = Values::default().with("library", soname).with("cure", install_hint(soname));
    match &needed.module {
        Some(file) => absent_from_module(soname, file, values),
        None => MessageTemplate::LibraryAbsent.to_finding(&values.with("needed_by", by)),
    }
}

/// Returns the instruction to install a library.
pub(crate) fn install_hint(soname: &str) -> String {
    let cure = match vendor::nvidia_library(soname).map(|library| library.owner) {
        Some(Owner::Cudnn) => MessageFragment::InstallCudnn,
        Some(Owner::Driver) => MessageFragment::InstallDriver,
        Some(Owner::Toolkit | Owner::Tool) => MessageFragment::InstallToolkit,
        Some(Owner::Product) | None => MessageFragment::InstallPackage,
    };
    cure.render(&Values::default().with_known("major", CUDNN.major(soname)))
}
