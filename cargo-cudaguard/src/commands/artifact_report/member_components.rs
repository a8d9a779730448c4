//! Components of a package or archive.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use super::closure::MemberGraph;
use super::member::{MemberLoader, file_name};
use super::not_inside::AbsentLibrary;
use super::packages::{ArtifactPackage, Unfulfilled, check_packages, unfulfilled_requirements};
use super::program::{ONLY_LINKER_INPUT, nothing_to_check};
use super::{ArtifactMember, ArtifactReport, LibraryPlace, common_os, common_processor};
use crate::binary::elf::machine_name;
use crate::binary::examined::{NotExamined, mark_only_code};
use crate::binary::file::{BinaryKind, TargetOs};
use crate::binary::loader::SearchSource;
use crate::cli::report::CliError;
use crate::family::is_nvrtc;
use crate::host::dry_run::{is_brought, is_searched_inside};
use crate::host::library_version::in_name;
use crate::host::machine::detect::{PartFacts, in_compat_dir, read_part, release_in_name, release_of_file};
use crate::host::machine::{
    BroughtCudnn, Choice, Components, HostLibrary as Found, LinkedCudnn, LoadedModule, Needed, OpenedByName, Variant,
    cudnn_soname, is_cudnn_row, opened_cudnn, read_parts_of,
};
use crate::knowledge::vendor::{CUDNN, LIBCUDA, plain_name, stem_of};
use cudaguard::internal::finding::Finding;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::version::DriverRelease;

impl ArtifactReport {
    /// Does the same as [`Self::components_with_packages`], but returns an error if the artifact contains nothing to check.
    pub(crate) fn checkable_components(&mut self, packages: &[String]) -> Result<Components, CliError> {
        let mut all = self.components_with_packages(packages)?;
        if !all.is_empty() && self.is_file() {
            let (findings, unknown) = check_packages(&all.files);
            all.findings.extend(findings);
            all.not_examined.extend(unknown);
            if all.manifests.is_empty() {
                mark_only_code(&mut all.not_examined);
            }
        }
        if !all.is_empty() {
            return Ok(all);
        }
        if let Some(root) = self.root() {
            return Err(nothing_to_check(&root.binary));
        }
        let why = match self.judged_parts().find(|part| part.is_driver()) {
            Some(part) => format!("it contains a driver ({}) and no program", part.name),
            None if self.judged_parts().any(|part| !part.kernels.entries().is_empty()) => ONLY_LINKER_INPUT.to_owned(),
            None => "no member contains GPU code or requirements on a CUDA library".to_owned(),
        };
        Err(CliError::operational(format_args!("{}: nothing to check: {why}", self.archive.display())))
    }

    /// Returns the libcuda that a member links and that comes with it: renamed by wheel repair, or in its search path. It is not
    /// cuda-compat, and no file of a system directory, which the container runtime replaces.
    fn copy_of_libcuda(&self, part: &ArtifactMember) -> Option<(String, Option<DriverRelease>)> {
        let is_libcuda = |name: &&String| plain_name(name) == LIBCUDA;
        let soname = part.binary.needed.iter().find(is_libcuda).filter(|_| part.binary.os == Some(TargetOs::Linux))?;
        let LibraryPlace::Inside(name) = self.find_library(part, soname) else { return None };
        let of_link = || release_in_name(Path::new(&name)).filter(|_| self.is_file());
        let release = release_of_file(file_name(&name)).or_else(of_link);
        let search_path = part.binary.runpath.as_deref().or(part.binary.rpath.as_deref()).unwrap_or_default();
        let is_own = search_path.contains("ORIGIN") && release.is_some() && !in_compat_dir(Path::new(&name));
        (soname != LIBCUDA || is_own).then_some((name, release))
    }

    /// Returns the requirements of all members. A library that a member finds in the artifact is not required of a machine.
    pub(crate) fn components(&self) -> Components {
        let whole = self;
        let (fatal, absent): (Vec<_>, Vec<_>) =
            whole.absent_libraries().into_iter().partition(|library| library.ends_start);
        let not_examined = whole.not_examined_with(&absent);
        let file = whole.archive.display().to_string();
        let mut all = Components { file, is_image: whole.is_image(), not_examined, ..Components::default() };
        if let Some(root) = whole.root() {
            whole.describe_root(root, &mut all);
        } else {
            whole.processor().clone_into(&mut all.processor);
            all.os = common_os(whole.judged_parts());
        }
        let is_root = |part: &ArtifactMember| whole.root().is_some_and(|root| root.name == part.name);
        let choices = whole.file_choices();
        let of_developers = whole.files_of_developers();
        let mut places_of: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        let mut of_vendor: Vec<usize> = Vec::new();
        let mut idle: Vec<usize> = Vec::new();
        let mut modules: BTreeMap<&str, LoadedModule> = BTreeMap::new();
        let is_complete = whole.is_complete();
        let is_package = whole.packages.iter().any(ArtifactPackage::is_one);
        let of_programs = whole.members_of_programs();
        // A program finds the libraries in its own directories or nowhere. Python loads those of a module from others.
        let started = whole.members_that_start();
        let of_others = whole.members_of_others();
        // The kernels of a driver run on the driver itself, and those of a profiler with the profiler. They are no requirement of
        // a program.
        for part in whole.judged_parts().filter(|part| is_root(part) || !part.is_driver() && !whole.is_of_cupti(part)) {
            if of_developers.contains(part.name.as_str()) {
                continue;
            }
            let mut own = part.components.clone();
            let inside = |soname: &str| match whole.find_library(part, soname) {
                LibraryPlace::Inside(name) => Some(name),
                _ => None,
            };
            let is_module = !of_programs.contains(part.name.as_str());
            // In an environment, another package may load what the search path of a module does not reach.
            let may_be_loaded = is_module && (whole.walked.kind == "directory" || whole.packages.len() != 1);
            let is_elsewhere =
                |soname: &str| may_be_loaded && !matches!(whole.find_library(part, soname), LibraryPlace::External);
            let is_installed_with = |soname: &str| !is_complete && whole.required_package(part, soname).is_some();
            let is_available =
                |soname: &str| is_elsewhere(soname) || inside(soname).is_some() || is_installed_with(soname);
            for needed in own.needed.iter().filter(|_| may_be_loaded && !part.is_of_nvidia()) {
                if is_elsewhere(&needed.soname) && whole.foreign_library(part, &needed.soname).is_some() {
                    let why = format!("it needs {}, which is there for another processor only", needed.soname);
                    all.not_examined.push(NotExamined::new(&*part.name, why));
                }
            }
            let is_in_place = |soname: &str| is_available(soname) || whole.is_broken(part, soname);
            own.needed
                .retain(|needed| !is_in_place(&needed.soname) && !whole.is_loaded_with(&part.name, &needed.soname));
            for needed in &mut own.needed {
                needed.by = (!is_root(part)).then(|| part.name.clone());
                needed.foreign = whole.foreign_library(part, &needed.soname).map(Box::new);
            }
            own.bound.retain(|bound| !is_available(&bound.soname));
            own.opened.retain(|opened| !opened.names.iter().any(|name| whole.has_file_named(name)));
            let is_installed = is_complete || started.contains(part.name.as_str());
            if is_installed && is_searched_inside(&part.name, &part.binary) || whole.is_searched_in_environment(part) {
                own.needed.iter_mut().for_each(|needed| needed.has_search_path = false);
            }
            if is_module && !part.is_of_nvidia() {
                own.needed.iter_mut().for_each(|needed| needed.module = Some(part.name.clone()));
            }
            // A library that no member loads stops none.
            let is_idle = is_module
                && part.is_of_nvidia()
                && (whole.is_rest() || !of_others.is_empty())
                && !of_others.contains(part.name.as_str());
            if is_module && part.is_of_nvidia() {
                own.needed.retain(|needed| !is_idle || needed.is_of_driver());
                own.bound.retain(|_| !is_idle);
                for needed in &mut own.needed {
                    needed.has_search_path = true;
                    // A part of cuDNN links the driver, and a module that loads cuDNN works without that part.
                    needed.module = needed.is_of_driver().then(|| part.name.clone());
                }
            }
            let needs_cudnn = own.manifests.iter().any(|manifest| manifest.requires.iter().any(is_cudnn_row));
            if needs_cudnn {
                let linked = part.binary.needed.iter().find(|name| CUDNN.is_named(name));
                let foreign = linked.and_then(|name| whole.foreign_library(part, name));
                let mut bundled = match foreign {
                    Some(finding) => vec![Err(finding)],
                    None => whole.bundled_libraries(part, &own, linked.is_none_or(|name| is_available(name))),
                };
                if bundled.is_empty() && linked.is_some_and(|name| is_available(name) || whole.is_broken(part, name)) {
                    for manifest in &mut own.manifests {
                        manifest.requires.retain(|row| !is_cudnn_row(row));
                    }
                }
                if bundled.is_empty() {
                    let other = linked.and_then(|name| whole.cudnn_of_other_major(part, name));
                    bundled.extend(other.map(Err));
                }
                for library in &bundled {
                    own.bring_cudnn(library);
                }
            }
            all.own_libcuda = all.own_libcuda.or_else(|| whole.copy_of_libcuda(part));
            let offset = all.manifests.len();
            if is_module && !part.is_of_nvidia() {
                let linked = part.binary.needed.iter().filter(|name| needs_cudnn && CUDNN.is_named(name));
                let cudnn = linked.flat_map(|soname| {
                    let linked = |manifest| LinkedCudnn { manifest, file: part.name.clone(), soname: soname.clone() };
                    (offset..offset + own.manifests.len()).map(linked)
                });
                let needs = own.needed.iter().map(|needed| needed.soname.clone()).collect();
                modules.insert(part.name.as_str(), LoadedModule { needs, cudnn: cudnn.collect() });
            }
            let places = offset..all.manifests.len() + own.manifests.len();
            // In a guarded member, the manifest states which requirements are optional.
            let unrecorded = own.manifests.iter().all(|manifest| manifest.target.is_empty());
            // A program picks one of several loose files with GPU code.
            let is_loose = part.binary.kind == BinaryKind::GpuCode;
            let is_of_vendor = part.is_of_nvidia() && !is_root(part);
            // The functions of NVIDIA's libraries need a GPU only when they are called.
            let is_called = whole.is_file() && is_of_vendor;
            if is_loose && !is_root(part) || is_called || is_package && unrecorded && whole.does_without(part) {
                all.alternatives.in_part.extend(places.clone());
            }
            if is_idle {
                idle.extend(places.clone());
            }
            let group = if is_of_vendor { &mut of_vendor } else { &mut all.alternatives.serving };
            group.extend(places.clone());
            places_of.insert(&part.name, places);
            let mut variants = choices.iter().flat_map(|choice| &choice.variants);
            if variants.any(|variant| variant.members.contains(part.name.as_str())) {
                // The selected member, and the libraries that it finds, are only known when the program runs.
                own.needed.clear();
                own.bound.clear();
                own.opened.clear();
            }
            all.manifests.extend(own.manifests);
            let brought = own.brought.into_iter();
            all.brought.extend(brought.map(|one| BroughtCudnn { manifest: offset + one.manifest, ..one }));
            all.findings.extend(own.findings);
            for needed in own.needed {
                let is_same = |known: &Needed| known.is_reported_with(&needed);
                if !all.needed.iter().any(is_same) {
                    all.needed.push(needed);
                }
            }
            all.bound.extend(own.bound);
            let opened: Vec<_> = own.opened.into_iter().filter(|opened| !all.opened.contains(opened)).collect();
            all.opened.extend(opened);
        }
        // A part that cannot be read cannot be loaded either, and the judge reports it as absent.
        let reported: BTreeSet<String> = all.brought.iter().flat_map(BroughtCudnn::absent_parts).collect();
        all.not_examined.retain(|part| !reported.contains(&format!("{}!{}", all.file, part.name)));
        all.modules = whole.loaded_modules(&modules);
        all.opened.extend(whole.opened_on_machine());
        all.drop_implied_rows(&of_vendor);
        if whole.is_rest() {
            all.alternatives.idle = idle;
        } else {
            all.mark_idle(idle);
        }
        for choice in &choices {
            let mut variants = Vec::new();
            for variant in &choice.variants {
                let places = variant.members.iter().filter_map(|name| places_of.get(name));
                let mut manifests: Vec<usize> = places.cloned().flatten().collect();
                manifests.sort_unstable();
                variants.push(Variant { name: variant.name.to_owned(), stem: variant.stem.clone(), manifests });
            }
            all.alternatives.one_of.push(Choice { variants });
        }
        let is_only = all.manifests.is_empty();
        all.not_examined.extend(of_developers.iter().map(|name| {
            let why = "it is among tests, examples or sources, so it is not judged";
            NotExamined { may_contradict: is_only, ..NotExamined::new(*name, why) }
        }));
        all.findings.extend(whole.package_findings());
        all.findings.extend(fatal.iter().map(AbsentLibrary::to_finding));
        all.not_examined.extend(whole.unfulfilled_requirements().into_iter().filter_map(|one| one.unknown));
        all.compilers = whole.compilers();
        let opens_nvrtc = |opened: &OpenedByName| opened.is_by_crate && opened.names.iter().any(|name| is_nvrtc(name));
        all.loads_nvrtc = whole.links_nvrtc() || all.opened.iter().any(opens_nvrtc);
        all.driver_functions = whole.driver_functions();
        all.lookups = whole.lookups();
        all.wanted_nccl = whole.wanted_nccl();
        if all.manifests.is_empty() {
            mark_only_code(&mut all.not_examined);
            let unknown = "the GPU code that it compiles when a program runs is unknown";
            let open = all.compilers.iter().filter(|compiler| whole.is_own(compiler.file()));
            all.not_examined.extend(open.map(|compiler| NotExamined::new(compiler.file(), unknown)));
        }
        let loader = whole.judged_loaders().find(|loader| loader.loads_other_code);
        if let Some(loader) = loader.filter(|_| !all.has_gpu_code()) {
            all.not_examined.push(NotExamined::loader_of_code(&*loader.name));
        }
        all.not_examined.extend(whole.unexplained_openers());
        all
    }

    /// Returns the processor that the judged members are for; empty if they are for several. A file that opens libraries of
    /// NVIDIA's by name counts, although it is no part.
    fn processor(&self) -> &str {
        let of_parts = common_processor(self.judged_parts());
        let mut openers = self.judged_loaders().filter(|loader| !loader.may_open.is_empty());
        let is_other = |loader: &MemberLoader| loader.processor.is_some_and(|own| machine_name(own) != of_parts);
        if openers.any(is_other) { "" } else { of_parts }
    }

    /// Returns the modules that no other file loads, each with the needs of the files that it loads. `needs`: the needs of each file.
    fn loaded_modules(&self, needs: &BTreeMap<&str, LoadedModule>) -> Vec<LoadedModule> {
        let mut modules = Vec::new();
        for closure in self.judged_closures() {
            let mut names = closure.members().map(|at| self.loaders[at].name.as_str()).peekable();
            if !names.peek().is_some_and(|root| needs.contains_key(root) && self.is_own(root)) {
                continue;
            }
            let mut module = LoadedModule::default();
            for own in names.filter_map(|name| needs.get(name)) {
                module.needs.extend(own.needs.iter().cloned());
                module.cudnn.extend(own.cudnn.iter().cloned());
            }
            modules.push(module);
        }
        modules
    }

    /// Returns the requirements of the packages that the installed ones do not fulfil.
    pub(super) fn unfulfilled_requirements(&self) -> Vec<Unfulfilled> {
        unfulfilled_requirements(&self.packages, self.judged_packages())
    }

    /// Returns the parts that were not examined, and the libraries that are absent or unknown.
    pub(super) fn all_not_examined(&self) -> Vec<NotExamined> {
        self.not_examined_with(&self.absent_libraries())
    }

    fn not_examined_with(&self, absent: &[AbsentLibrary<'_>]) -> Vec<NotExamined> {
        let mut all = self.judged_not_examined();
        all.extend(absent.iter().map(|library| self.describe_absent(library)));
        all.extend(self.misnamed_libraries());
        all
    }

    /// Returns true for a library of CUPTI, NVIDIA's profiler, which comes with other code. Programs run without its kernels.
    fn is_of_cupti(&self, part: &ArtifactMember) -> bool {
        let (dir, file) = part.name.split_at(part.name.len() - file_name(&part.name).len());
        let is_beside_cupti =
            || self.files.iter().any(|name| name.strip_prefix(dir).is_some_and(|name| name.starts_with("libcupti.so")));
        let is_it = match stem_of(file.strip_suffix("_static.a").unwrap_or(file)) {
            "libcupti" | "libnvperf_host" | "libnvperf_target" | "libpcsamplingutil" => true,
            "libcheckpoint" => is_beside_cupti(),
            _ => false,
        };
        is_it && self.loaders.iter().any(|loader| !loader.is_of_nvidia() && !loader.name.starts_with(dir))
    }

    /// Returns the members whose requirements are unknown because they name libraries of NVIDIA's that they may open.
    pub(crate) fn unexamined_openers(&self) -> impl Iterator<Item = NotExamined> {
        self.judged_loaders().filter_map(|loader| NotExamined::opener(&loader.name, &loader.may_open))
    }

    /// Returns those without the libraries about which the other members show something: they contain or need them, or need a driver.
    fn unexplained_openers(&self) -> impl Iterator<Item = NotExamined> {
        self.unexplained_names().filter_map(|(loader, names)| NotExamined::opener(&loader.name, &names))
    }

    /// Returns the members that may open libraries of NVIDIA's about which nothing else shows anything, with the names.
    pub(super) fn unexplained_names(&self) -> impl Iterator<Item = (&MemberLoader, Vec<String>)> {
        let with_rows =
            |part: &&ArtifactMember| part.has_requirements() && !part.is_of_nvidia() && !self.is_of_cupti(part);
        let requiring: Vec<&ArtifactMember> = self.judged_parts().filter(with_rows).collect();
        let mut known: BTreeSet<&str> =
            requiring.iter().flat_map(|part| part.binary.imported()).map(|name| stem_of(name)).collect();
        if !requiring.is_empty() {
            known.extend(["libcuda", "libcudart"]);
            known.extend(self.files.iter().chain(self.links.keys()).map(|name| stem_of(file_name(name))));
            known.extend(requiring.iter().flat_map(|part| &part.holds).map(|(library, _)| library.stem()));
        }
        self.judged_loaders().map(move |loader| {
            (loader, loader.may_open.iter().filter(|name| !known.contains(stem_of(name))).cloned().collect())
        })
    }

    /// Returns the cuDNN that a member loads in each process of the artifact. `is_supplied`: a package
    /// that supplies cuDNN is installed with the member, and Python loads it first, wherever it is.
    fn bundled_libraries(
        &self,
        part: &ArtifactMember,
        own: &Components,
        is_supplied: bool,
    ) -> Vec<Result<Found, Finding>> {
        let Some(at) = self.loader_of(&part.name) else { return Vec::new() };
        if part.binary.os == Some(TargetOs::Windows) {
            let imported = part.binary.imported().map(String::as_str).filter(|name| CUDNN.is_named(name));
            let mut names = imported.chain(own.manifests.iter().filter_map(cudnn_soname));
            let found = names.find_map(|name| Some((name, self.find_dll(&part.name, name)?)));
            return found.map(|(name, file)| Ok(self.bundled_dll(name, &file))).into_iter().collect();
        }
        let mut names: Vec<String> = part.binary.needed.iter().filter(|name| CUDNN.is_named(name)).cloned().collect();
        // If it is unknown how a component uses cuDNN, it uses one that is loaded anyway.
        names.extend(own.manifests.iter().filter_map(cudnn_soname).map(str::to_owned));
        let opened: Vec<String> = own.manifests.iter().filter_map(opened_cudnn).flatten().collect();
        let rows: Vec<_> = own.manifests.iter().flat_map(|manifest| manifest.requires.iter().cloned()).collect();
        let of_process = |root: usize| {
            self.graphs_of(root).find_map(|mut graph| {
                let object = graph.object_of(at)?;
                let (index, name) = graph.find_cudnn(object, &opened, &names)?;
                self.bundled_cudnn(&graph, index, name, is_supplied, &rows)
            })
        };
        self.roots_with(at).filter_map(of_process).map(Ok).collect()
    }

    /// Returns the cuDNN for Windows in this file. A file of its directory contains its version.
    fn bundled_dll(&self, soname: &str, file: &str) -> Found {
        let dir = |name: &str| name.rfind('/').map_or(String::new(), |at| name[..at].to_owned());
        let mut beside = self.parts.iter().filter(|part| dir(&part.name) == dir(file));
        let version = beside.find_map(ArtifactMember::cudnn_version);
        let path = Some(if self.is_file() { file.to_owned() } else { format!("{}!{file}", self.archive.display()) });
        Found { soname: Some(soname.to_owned()), version, path, taken: true, ..Found::default() }
    }

    /// Describes the cuDNN that is loaded under this name as an object, with the parts that it then opens. `rows`: the requirements
    /// of the member.
    fn bundled_cudnn(
        &self,
        graph: &MemberGraph<'_>,
        index: usize,
        name: &str,
        is_supplied: bool,
        rows: &[Requirement],
    ) -> Option<Found> {
        let object = &graph.graph.objects[index];
        if !is_supplied && object.place == SearchSource::Package {
            return None;
        }
        // Another machine has its own copy.
        if graph.is_on_disk() && !self.is_joined && !is_brought(&graph.graph, index) {
            return None;
        }
        let path = &object.path;
        let own = object.soname.as_deref().filter(|own| CUDNN.major(own).is_some()).unwrap_or(name);
        let mut found = Found { soname: Some(plain_name(own).into_owned()), taken: true, ..Found::default() };
        if graph.is_on_disk() {
            found.version = in_name(&CUDNN, path);
            let read = |path: &Path, symbol: &str| read_part(&graph.graph, path, symbol);
            read_parts_of(&graph.graph, (index, found.version), &CUDNN, rows, &mut found, &read);
        } else {
            found.version = self.part_at(graph, path).and_then(ArtifactMember::cudnn_version);
            read_parts_of(&graph.graph, (index, found.version), &CUDNN, rows, &mut found, &|path, _| {
                self.part_facts(graph, path)
            });
        }
        found.by = self.is_file().then(|| object.place.in_short());
        let is_member = !self.is_file() && !graph.is_of_machine(path);
        found.path = Some(if is_member {
            format!("{}!{}", self.archive.display(), self.loaders[graph.loader_at(path)?].name)
        } else {
            path.display().to_string()
        });
        Some(found)
    }

    fn part_facts(&self, graph: &MemberGraph<'_>, path: &Path) -> PartFacts {
        let member = self.part_at(graph, path);
        let cuda = member.and_then(|member| member.family.as_ref()?.cudnn_for);
        PartFacts { version: member.and_then(|member| member.cudnn_part), cuda, path: None }
    }

    fn part_at(&self, graph: &MemberGraph<'_>, path: &Path) -> Option<&ArtifactMember> {
        let name = &self.loaders[graph.loader_at(path)?].name;
        self.parts.iter().find(|part| part.name == *name)
    }
}
