//! The family in a program: the files that the dynamic linker loads for it.

use std::path::{Path, PathBuf};

use crate::binary::loader::{LoadGraph, LoadOutcome};
use crate::family::{BUILTINS, Member, MembersOfProcess, compilers, findings, functions_of_driver, looked_up_findings};
use crate::host::machine::Machine;
use cudaguard::internal::finding::Finding;

/// The members of a load graph.
#[derive(Default)]
struct GraphMembers {
    members: Vec<Member>,
    /// For each member its object in the graph; `None` for the builtins of an NVRTC.
    objects: Vec<Option<usize>>,
    /// Each NVRTC with the builtins that it opens, as indices.
    builtins: Vec<(usize, usize)>,
}

impl GraphMembers {
    /// Reads the objects of the graph that `is_included` selects by their index. `is_here`: the files run on this machine.
    fn new(graph: &LoadGraph, is_included: impl Fn(usize) -> bool, is_here: bool) -> Self {
        let mut all = Self::default();
        for (index, object) in graph.objects.iter().enumerate().filter(|(index, _)| is_included(*index)) {
            let Some(member) = Member::read(&object.path.to_string_lossy(), object.data()) else { continue };
            let wanted = member.builtins_name();
            all.members.push(member);
            all.objects.push(Some(index));
            if let Some(wanted) = wanted {
                all.add_builtins(graph, index, &wanted, is_here);
            }
        }
        all
    }

    /// Adds the builtins of the last member, an NVRTC, which opens them when it compiles, and those beside it.
    fn add_builtins(&mut self, graph: &LoadGraph, nvrtc: usize, wanted: &str, is_here: bool) {
        let at = self.members.len() - 1;
        let mut paths = builtins_beside(&graph.objects[nvrtc].path);
        let searched = is_here.then(|| graph.resolve_file(nvrtc, wanted)).flatten().map(|found| found.path);
        let is_wanted = |path: &&PathBuf| path.file_name().is_some_and(|name| name == wanted);
        let opened = searched.or_else(|| paths.iter().find(is_wanted).cloned());
        paths.extend(opened.iter().filter(|opened| !paths.contains(opened)).cloned().collect::<Vec<_>>());
        for path in paths {
            let data = graph.files().open(&path).ok();
            let Some(member) = data.and_then(|data| Member::read(&path.to_string_lossy(), &data)) else { continue };
            if opened.as_ref() == Some(&path) {
                self.builtins.push((at, self.members.len()));
            }
            self.members.push(member);
            self.objects.push(None);
        }
    }

    fn findings(&self, graph: &LoadGraph) -> Vec<Finding> {
        let resolve = |by: usize, soname: &str| {
            if self.members[by].builtins_name().as_deref() == Some(soname) {
                return self.builtins.iter().find(|(nvrtc, _)| *nvrtc == by).map(|(_, builtins)| *builtins);
            }
            let by = self.objects[by]?;
            let answer = graph.requests.iter().find(|request| request.by == by && request.name == soname)?;
            let LoadOutcome::Object(index, _) = &answer.answer else { return None };
            self.objects.iter().position(|object| *object == Some(*index))
        };
        let process = MembersOfProcess::all(graph.objects[0].path.display().to_string(), self.members.len());
        let absent =
            |by: usize, name: &str| self.objects[by].is_some_and(|object| graph.resolve_file(object, name).is_none());
        findings(&self.members.iter().collect::<Vec<_>>(), &[process], &resolve, &absent)
    }
}

/// Returns the files with the builtins of an NVRTC, in its directory.
pub(crate) fn builtins_beside(nvrtc: &Path) -> Vec<PathBuf> {
    let entries = nvrtc.parent().and_then(|dir| dir.read_dir().ok());
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(BUILTINS.stems[0]))
    };
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_builtins).collect()
}

/// Returns the findings about functions that crates look up in libraries of the graph. A crate opens the first file that has one
/// of its names.
pub(super) fn lookup_findings(graph: &LoadGraph, is_included: impl Fn(usize) -> bool) -> Vec<Finding> {
    let members = GraphMembers::new(graph, is_included, false);
    let resolve = |_: usize, name: &str| {
        let index = graph.objects.iter().position(|object| object.is_named(name))?;
        members.objects.iter().position(|object| *object == Some(index))
    };
    looked_up_findings(&members.members.iter().collect::<Vec<_>>(), &resolve)
}

/// Returns the findings about the files that the dynamic linker loads, together and on this machine.
pub(super) fn findings_of_graph(graph: &LoadGraph, machine: Option<&Machine>) -> Vec<Finding> {
    let members = GraphMembers::new(graph, |_| true, true);
    let mut findings = members.findings(graph);
    let compilers = compilers(&members.members);
    findings.extend(machine.into_iter().flat_map(|machine| machine.compiler_findings(&compilers)));
    let functions = functions_of_driver(&members.members);
    findings.extend(machine.into_iter().flat_map(|machine| machine.driver_function_findings(&functions)));
    findings
}
