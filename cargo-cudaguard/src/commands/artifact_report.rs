//! Reports of `inspect` and `verify` for an entire archive or directory: one result for all members that contain GPU
//! code or need an NVIDIA library.

mod by_package;
mod choices;
mod closure;
mod dlls;
mod machine;
mod member;
mod member_components;
mod member_tree;
mod named_members;
mod not_inside;
mod nvidia_members;
mod opened_by_members;
mod output;
mod packages;
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use crate::binary::examined::{NotExamined, Reason};
use crate::binary::file::TargetOs;
use crate::binary::kernels::{Coverage, Kernels};
use crate::binary::loader::LoadGraph;
use crate::binary::mapped_file::{Contents, open_regular};
use crate::host::machine::{Components, extend_new, mark_idle};
use crate::knowledge::vendor::{CUDART, CUDNN, is_of_driver, plain_name};
use cudaguard::internal::finding::{Finding, Severity};
use cudaguard::internal::version::{CudaVersion, Version};

use crate::artifact::{self, Archive, ArchiveMember, Content, Opened, Walked};
use crate::cli::arguments::Output;
use crate::cli::findings;
use crate::cli::report::{self, CliError};
use crate::commands::inspect;
use crate::family::is_of_nvidia;

use by_package::PackageScope;
use closure::{MemberClosure, version_findings};
pub(crate) use dlls::has_dlls;
pub(crate) use member::{ArtifactMember, sha256_of};
use member::{MemberLoader, are_adjacent, file_name};
use member_tree::{MemberTrees, TreeInput};
use named_members::PresentMembers;
use not_inside::NamedLibraries;
use packages::{ArtifactPackage, NeededVersions};
pub(crate) use packages::{BilledPackage, BilledRequirement, PackageId, check_packages, escape_purl};
pub(crate) use program::nothing_to_check;

/// Maximum number of members that are listed one by one; the others are counted.
const TOLD: usize = 24;
const EXIT_NOT_FOUND: &str = "version not known";

/// A library or program of an artifact, for a bill of materials.
pub(crate) struct BilledMember<'a> {
    pub(crate) name: &'a str,
    pub(crate) sha256: Option<&'a str>,
    pub(crate) is_program: bool,
    /// Present if it uses CUDA.
    pub(crate) part: Option<&'a ArtifactMember>,
    /// The package that contains it.
    pub(crate) package: Option<BilledPackage>,
}

/// An archive or a directory that has been read.
#[derive(Default)]
pub(crate) struct ArtifactReport {
    pub(crate) archive: PathBuf,
    walked: Walked,
    /// Members that contain GPU code, need a library of NVIDIA, or are one; by name.
    pub(crate) parts: Vec<ArtifactMember>,
    /// Every ELF file and every link, in which a library may be found.
    files: BTreeSet<String>,
    links: BTreeMap<String, String>,
    /// The programs and libraries, by name.
    loaders: Vec<MemberLoader>,
    /// The members that a library may be, by its name.
    libraries: NamedLibraries,
    /// The files and links, in which the dynamic linker searches.
    trees: MemberTrees,
    /// The search paths in `LD_LIBRARY_PATH` of an image.
    library_path: Vec<String>,
    /// The members that run together.
    closures: Vec<MemberClosure>,
    /// The prefixes of the names of members of wheels, which are installed into one directory.
    wheels: BTreeSet<String>,
    /// The libraries that any member needs.
    needed: BTreeSet<String>,
    /// The metadata of the packages in it, and of an image.
    packages: Vec<ArtifactPackage>,
    /// Members, or data in them, that were not examined.
    pub(crate) not_examined: Vec<NotExamined>,
    /// The names of the libraries of this machine, the last of [`Self::loaders`].
    of_machine: Vec<String>,
    /// True if these are complete: the answer is for this machine.
    is_joined: bool,
    /// The files that the dynamic linker loads for a single file.
    disk: Option<LoadGraph>,
    /// The part that the question is about; `None` for everything.
    scope: Option<PackageScope>,
}

/// The data that was collected so far.
#[derive(Default)]
struct Read {
    parts: Vec<ArtifactMember>,
    /// Every program, library and link, in which a library may be found.
    files: BTreeSet<String>,
    links: BTreeMap<String, String>,
    /// Members without code that have the name of a library.
    without_code: BTreeSet<String>,
    loaders: Vec<MemberLoader>,
    needed: BTreeSet<String>,
    /// Texts that describe packages, with their names.
    texts: Vec<(String, String)>,
    images: Vec<ArtifactPackage>,
    library_path: Vec<String>,
    /// The files that configure the dynamic linker, with their names.
    settings: Vec<(String, Vec<u8>)>,
    /// The parts that were not examined, with the reasons.
    not_examined: Vec<NotExamined>,
}

/// Passes to each NVIDIA library the GPUs for which another member has machine code.
fn mark_fallback_code(parts: &mut [ArtifactMember]) {
    for at in 0..parts.len() {
        let mut kernels = std::mem::take(&mut parts[at].kernels);
        let mut components = std::mem::take(&mut parts[at].components);
        components.mark_fallback(&mut kernels, |cc| parts.iter().any(|other| other.kernels.has_machine_code(cc)));
        parts[at].components = components;
        parts[at].kernels = kernels;
    }
}

/// A library that must come from outside of the archive.
#[derive(Default)]
struct ExternalLibrary<'a> {
    /// The members that need it.
    by: Vec<&'a str>,
    /// Its path inside the archive, if the search paths do not reach it.
    inside: Option<String>,
    /// The package requirement that provides it.
    brought: Option<&'a str>,
    /// True if the members open it by name.
    is_opened: bool,
}

/// The place where the dynamic linker finds a library that a member needs.
enum LibraryPlace {
    /// In this member: the search path of the member that needs it reaches it.
    Inside(String),
    /// In this member, which the search path does not reach.
    OutOfReach(String),
    External,
}

impl ArtifactReport {
    /// Reads a file, an archive or a directory; a file is its own only member. `digests`: with the SHA-256 of each member.
    pub(crate) fn open(path: &Path, digests: bool) -> Result<Self, CliError> {
        match artifact::open(path)? {
            Opened::Archive(archive) => Self::read(path, archive, digests),
            Opened::File(contents) => Self::from_contents(path, contents),
        }
    }

    /// Reads a file that is its own only member.
    pub(crate) fn from_contents(path: &Path, contents: Arc<Contents>) -> Result<Self, CliError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let read = ArtifactMember::from_contents(&name, contents, false)
            .map_err(|why| CliError::operational(format_args!("{}: {why}", path.display())))?;
        let (part, loader, reasons) = read;
        Ok(Self::with_file(path, part.map(ArtifactMember::into_member), loader, reasons))
    }

    /// Creates the report on a file without other members.
    fn with_file(path: &Path, part: Option<ArtifactMember>, loader: MemberLoader, reasons: Vec<Reason>) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Self {
            archive: path.to_owned(),
            walked: Walked { kind: "file", members: 1 },
            parts: part.into_iter().collect(),
            files: BTreeSet::from([loader.name.clone()]),
            needed: loader.needed.iter().cloned().collect(),
            loaders: vec![loader],
            not_examined: reasons.into_iter().map(|reason| NotExamined::new(&*name, reason)).collect(),
            ..Self::default()
        }
    }

    /// Returns true if a member finds this library inside of the same package.
    pub(crate) fn is_bundled(&self, part: &ArtifactMember, soname: &str) -> bool {
        matches!(self.find_library(part, soname), LibraryPlace::Inside(_))
    }

    /// Returns the name and version of the only package, or the name of the file.
    pub(crate) fn title(&self) -> String {
        match &self.packages[..] {
            [package] if package.is_one() => package.name_and_version(),
            _ => self.archive.file_name().unwrap_or(self.archive.as_os_str()).to_string_lossy().into_owned(),
        }
    }

    /// Returns the packages that it contains, as bills of materials name them.
    pub(crate) fn packages_in_bill(&self) -> Vec<BilledPackage> {
        self.packages.iter().filter_map(ArtifactPackage::to_billed).collect()
    }

    /// Returns the libraries and programs for a bill of materials, with NVIDIA's static libraries.
    pub(crate) fn members_in_bill(&self) -> Vec<BilledMember<'_>> {
        let parts: BTreeMap<&str, &ArtifactMember> = self.parts.iter().map(|part| (part.name.as_str(), part)).collect();
        let mut members = Vec::new();
        for loader in &self.loaders {
            if !loader.is_loadable() && !is_of_nvidia(file_name(&loader.name)) {
                continue;
            }
            let owner = self.packages.iter().find(|package| package.owns_member(&loader.name));
            members.push(BilledMember {
                name: &loader.name,
                sha256: loader.sha256.as_deref(),
                is_program: loader.is_program(),
                part: parts.get(loader.name.as_str()).copied(),
                package: owner.and_then(ArtifactPackage::to_billed),
            });
        }
        members
    }

    /// Returns the libraries of NVIDIA that must come from elsewhere, by soname.
    pub(crate) fn sonames_from_elsewhere(&self) -> Vec<String> {
        self.externally_needed().into_iter().filter(|(_, wanted)| !wanted.is_opened).map(|(soname, _)| soname).collect()
    }

    /// Returns what the packages require of NVIDIA's packages: name and range.
    pub(crate) fn package_requirements(&self) -> impl Iterator<Item = (String, String)> {
        self.packages.iter().flat_map(ArtifactPackage::split_requirements)
    }

    /// Returns the requirements of the packages for cuDNN: the package, the requirement and the oldest release that it accepts.
    pub(crate) fn cudnn_promises(&self) -> impl Iterator<Item = (String, &str, Version)> {
        self.judged_packages().filter(|package| package.is_one()).flat_map(|package| {
            let least = package.oldest_of(CUDNN.key);
            least.map(|(text, least)| (package.name_and_version(), text, least))
        })
    }

    /// Reads all members of an archive or a directory.
    pub(crate) fn read(path: &Path, archive: Archive, digests: bool) -> Result<Self, CliError> {
        let read = Mutex::new(Read::default());
        let lock = || read.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let take = |ArchiveMember { name, content }: ArchiveMember| {
            match content {
                Content::Code(file) => {
                    let part = ArtifactMember::from_file(&name, file, digests);
                    let mut read = lock();
                    match part {
                        Ok((part, loader, reasons)) => {
                            read.parts.extend(part);
                            read.needed.extend(loader.needed.iter().cloned());
                            read.loaders.push(loader);
                            let reasons = reasons.into_iter().map(|reason| NotExamined::new(name.as_str(), reason));
                            read.not_examined.extend(reasons);
                        }
                        Err(problem) => read.not_examined.push(NotExamined::new(name.as_str(), problem.to_string())),
                    }
                    read.files.insert(name);
                }
                Content::Link(target) => drop(lock().links.insert(name, target)),
                Content::Text(text) => lock().texts.push((name, text)),
                Content::Config(text) => {
                    let mut read = lock();
                    read.images.extend(ArtifactPackage::from_image(&text));
                    read.library_path.extend(packages::library_path_of_image(&text));
                }
                Content::LoaderSettings(contents) => lock().settings.push((name, contents)),
                Content::NoCode => drop(lock().without_code.insert(name)),
                Content::NotExamined(why) => lock().not_examined.push(NotExamined::new(name, why)),
            }
            Ok(())
        };
        let walked = artifact::walk_artifact(archive, &take)?;
        let read = read.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Read { mut parts, files, links, without_code, mut loaders, .. } = read;
        let Read { needed, texts, images: mut packages, library_path, mut settings, mut not_examined, .. } = read;
        // Several threads read the members, so their order is random.
        parts.sort_by(|one, other| one.name.cmp(&other.name));
        loaders.sort_by(|one, other| one.name.cmp(&other.name));
        let wheels = files.iter().filter_map(|name| Some(&name[..=name.rfind(".whl!")? + 4])).map(str::to_owned);
        let wheels = wheels.collect();
        mark_fallback_code(&mut parts);
        packages.extend(packages::all_of(&texts));
        let known = files.iter().chain(&without_code).map(String::as_str);
        let known = known.chain(not_examined.iter().map(|part| part.name.as_str()));
        let present = PresentMembers { files: known.collect(), links: &links };
        let missing = present.find_missing(&packages, walked.kind == "Debian package");
        not_examined.extend(missing);
        let (os, processor) = (common_os(&parts), common_processor(&parts));
        for package in &mut packages {
            package.set_platform(os, processor, path);
        }
        not_examined.sort();
        nvidia_members::use_package_versions(&mut parts, &packages);
        for package in &mut packages {
            package.find_replaced_cudnn(|member| parts.iter().find(|part| part.name == member)?.cudnn_version());
        }
        for package in &packages {
            let Some(major) = package.required_cudart() else { continue };
            let owned = parts.iter_mut().filter(|part| package.owns_member(&part.name) && !part.is_of_nvidia());
            owned.for_each(|part| part.components.require_cudart_of_package(CudaVersion::new(major, 0)));
        }
        let archive = path.to_owned();
        for loader in &mut loaders {
            settings.extend(loader.settings.take().map(|contents| (loader.name.clone(), contents)));
        }
        let is_read: BTreeSet<&str> = loaders.iter().map(|loader| loader.name.as_str()).collect();
        let others = files.iter().chain(&without_code).map(String::as_str);
        let trees = MemberTrees::new(TreeInput {
            loaders: &loaders,
            links: &links,
            // The container runtime mounts the driver over its files.
            others: others.filter(|name| !is_read.contains(name) && !is_of_driver(file_name(name))).collect(),
            settings,
            is_root: matches!(walked.kind, "container image" | "Debian package"),
        });
        let mut report = Self {
            archive,
            walked,
            parts,
            files,
            links,
            loaders,
            trees,
            library_path,
            wheels,
            needed,
            packages,
            not_examined,
            ..Self::default()
        };
        report.libraries = report.named_libraries();
        report.find_closures();
        report.report_opened();
        Ok(report)
    }

    /// Checks what runs together, and the requirements of packages and images. The contents are checked only in packages, because images and
    /// directories may legitimately contain such files.
    fn package_findings(&self) -> Vec<Finding> {
        let mut findings = self.findings_of_closures();
        for package in self.judged_packages() {
            let mine = || self.judged_parts().filter(|part| package.owns_member(&part.name));
            let members: Vec<_> = mine().map(|part| (part.name.as_str(), self.library_wants(part))).collect();
            findings.extend(package.check_wants(&members));
            findings.extend(
                package.check_exports(
                    mine().filter_map(|part| Some((part.name.as_str(), part.binary.soname.as_deref()?))),
                ),
            );
            let needs = mine().filter_map(|part| Some((part.name.as_str(), part.least_driver()?)));
            findings.extend(package.check_driver_promise(needs));
        }
        if !self.packages.iter().any(ArtifactPackage::is_one) {
            return findings;
        }
        let uses_cuda = |package: &ArtifactPackage| self.judged_parts().any(|part| package.owns_member(&part.name));
        findings.extend(packages::overwritten_files(&self.packages, uses_cuda, |name| self.installed_digest(name)));
        findings.extend(self.unfulfilled_requirements().into_iter().map(|one| one.finding));
        findings.extend(
            self.own_parts().filter_map(|part| packages::bundled_driver_finding(&part.name, file_name(&part.name))),
        );
        let held = self.own_parts().flat_map(|part| {
            let listed = part.holds.iter().filter(|(library, _)| library.key == CUDNN.key);
            listed.filter_map(|(library, version)| Some((*library, version.as_deref()?, part.name.as_str())))
        });
        findings.extend(packages::duplicate_libraries(held));
        findings.extend(packages::leading_out(self.own_parts().map(|part| (part.name.as_str(), &part.binary))));
        findings
    }

    /// Checks what runs together. An error about libraries of NVIDIA's that no other file loads is a warning.
    fn findings_of_closures(&self) -> Vec<Finding> {
        let (used, idle) = self.used_and_idle_closures();
        let mut findings = self.findings_of(&used);
        if !idle.is_empty() {
            let mut of_idle = self.findings_of(&idle);
            of_idle.retain(|finding| !findings.contains(finding));
            of_idle.iter_mut().filter(|finding| finding.severity == Severity::Error).for_each(mark_idle);
            findings.extend(of_idle);
        }
        findings
    }

    fn findings_of(&self, closures: &[&MemberClosure]) -> Vec<Finding> {
        let mut findings = self.symbol_findings(closures);
        extend_new(&mut findings, &version_findings(closures));
        findings.extend(self.processor_findings(closures));
        findings.extend(self.broken_libraries(closures));
        findings.extend(self.family_findings(closures));
        findings
    }

    /// Returns the SHA-256 of a file of a directory.
    fn installed_digest(&self, name: &str) -> Option<String> {
        let path = self.archive.join(name);
        let mut file = (self.walked.kind == "directory").then(|| open_regular(&path).ok()).flatten()?;
        sha256_of(&mut file).ok()
    }

    fn library_wants(&self, part: &ArtifactMember) -> NeededVersions {
        let is_inside = |soname: &str| matches!(self.find_library(part, soname), LibraryPlace::Inside(_));
        packages::member_wants(&part.components, &part.binary.needed, is_inside)
    }

    /// Returns the requirement that installs a library together with the package that contains the member.
    fn required_package(&self, part: &ArtifactMember, soname: &str) -> Option<&str> {
        let soname = plain_name(soname);
        let mut own = self.packages.iter().filter(|package| package.owns_member(&part.name)).peekable();
        let _ = own.peek()?;
        let oldest = self.library_wants(part).remove(&*soname)?.map(|(oldest, _)| oldest);
        own.find_map(|package| package.requirement_for(&soname, oldest))
    }

    /// Returns the members for each CUDA major version, if a package contains a variant of its library for several of
    /// them and a program loads one.
    fn cuda_majors(&self) -> BTreeMap<u32, Vec<&str>> {
        let mut all: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for choice in self.file_choices().iter().filter(|choice| choice.is_of_libraries()) {
            let is_variant = |part: &&ArtifactMember| choice.variants.iter().any(|variant| variant.name == part.name);
            for part in self.judged_parts().filter(is_variant).filter(|part| part.kernels.has_kernels()) {
                let needed = part.binary.needed.iter().find_map(|soname| CUDART.major(soname));
                // The static cudart of CUDA 13 on Windows is the driver's: such packages need no DLL of it.
                let inside = || {
                    let held = part.holds.iter().filter(|_| part.binary.os == Some(TargetOs::Windows));
                    let mut held = held.filter(|(library, _)| library.key == CUDART.key);
                    held.find_map(|(_, version)| version.as_ref()?.split('.').next()?.parse().ok())
                };
                if let Some(major) = needed.or_else(inside) {
                    all.entry(major).or_default().push(&part.name);
                }
            }
        }
        if all.len() < 2 { BTreeMap::new() } else { all }
    }

    /// Returns true if a package works although this member has no code for a GPU that others support: an optional
    /// library that is loaded on demand, or an NVIDIA library, whose functions need the GPU only when they are called.
    fn does_without(&self, part: &ArtifactMember) -> bool {
        let own = file_name(&part.name);
        let soname = part.binary.soname.as_deref().unwrap_or(own);
        part.is_of_nvidia() || !self.needed.contains(own) && !self.needed.contains(soname)
    }

    /// Returns the program or library that a chain of links ends at.
    fn resolve_links(&self, name: &str) -> Option<&str> {
        let (tree, path) = self.trees.place_of(name)?;
        tree.loader_at(&path).map(|at| self.loaders[at].name.as_str())
    }

    fn find_library(&self, part: &ArtifactMember, soname: &str) -> LibraryPlace {
        if part.binary.os == Some(TargetOs::Windows) {
            return self.find_dll(&part.name, soname).map_or(LibraryPlace::External, LibraryPlace::Inside);
        }
        if let Some(found) = self.find_in_closures(&part.name, soname) {
            return LibraryPlace::Inside(found);
        }
        // An environment has thousands of files, and the end of a name is compared fast.
        let is_it = |name: &&String| name.ends_with(soname) && file_name(name) == soname;
        let elsewhere = self.files.iter().chain(self.links.keys()).find(is_it);
        elsewhere.map_or(LibraryPlace::External, |name| LibraryPlace::OutOfReach(name.clone()))
    }

    /// Returns the member that Windows loads under this name: in the directory of the member that needs it, or else in any
    /// directory. Packages for Python add the other directories with `os.add_dll_directory`, or load the DLLs themselves.
    fn find_dll(&self, member: &str, name: &str) -> Option<String> {
        // NVIDIA's have the names that they have on Linux, too.
        let is_dll = |file: &&String| {
            let file = file_name(file);
            file.eq_ignore_ascii_case(name) || plain_name(file) == name
        };
        let mut found = self.files.iter().filter(is_dll).peekable();
        let first = found.peek().copied();
        found.find(|file| are_adjacent(file, member)).or(first).cloned()
    }

    /// Returns the coverage for each compute capability over all members with kernels.
    fn gpu_coverage(&self) -> Vec<((u8, u8), Coverage)> {
        covers_of(&self.parts.iter().collect::<Vec<_>>())
    }

    /// Returns the oldest driver for each GPU. If a program loads one of several variants, each result has the CUDA
    /// major version of its variant.
    fn oldest_drivers(&self) -> Vec<(Option<u32>, Vec<inspect::Needs>)> {
        let of = |parts: &[&ArtifactMember]| {
            let manifests = parts.iter().flat_map(|part| part.components.manifests.iter().cloned()).collect();
            let os = common_os(parts.iter().copied());
            let components = Components { manifests, os, ..Components::default() };
            inspect::driver_needs(&components, &covers_of(parts))
        };
        let majors = self.cuda_majors();
        if majors.is_empty() {
            return vec![(None, of(&self.parts.iter().collect::<Vec<_>>()))];
        }
        let mine = |part: &&ArtifactMember, members: &[&str]| {
            let name = part.name.as_str();
            members.contains(&name) || !majors.values().flatten().any(|other| *other == name)
        };
        let one = |(major, members): (&u32, &Vec<&str>)| {
            (Some(*major), of(&self.parts.iter().filter(|part| mine(part, members)).collect::<Vec<_>>()))
        };
        majors.iter().map(one).collect()
    }

    /// Returns the members that have kernels, but none for this compute capability.
    fn members_without(&self, cc: (u8, u8)) -> Vec<&str> {
        let lacks =
            |part: &&ArtifactMember| part.kernels.has_kernels() && part.kernels.gpu_support(cc).by == Coverage::Nothing;
        self.parts.iter().filter(lacks).map(|part| part.name.as_str()).collect()
    }

    /// Returns each NVIDIA library that a member needs or opens, and that no search path reaches within the archive.
    fn externally_needed(&self) -> BTreeMap<String, ExternalLibrary<'_>> {
        let mut all: BTreeMap<String, ExternalLibrary<'_>> = BTreeMap::new();
        for part in &self.parts {
            for soname in part.binary.imported().filter(|name| is_of_nvidia(name)) {
                let inside = match self.find_library(part, soname) {
                    LibraryPlace::Inside(_) => continue,
                    LibraryPlace::OutOfReach(name) => Some(name),
                    LibraryPlace::External => None,
                };
                let wanted = all.entry(soname.clone()).or_default();
                wanted.is_opened |= wanted.by.is_empty() && !part.binary.needed.contains(soname);
                wanted.by.push(&part.name);
                wanted.brought = wanted.brought.or_else(|| self.required_package(part, soname));
                wanted.inside = inside;
            }
        }
        self.add_opened(&mut all);
        all
    }

    /// Returns each NVIDIA library that is not inside and that members name and may open, with these members, if
    /// nothing shows what they require.
    fn possibly_opened(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for loader in &self.loaders {
            for soname in &loader.may_open {
                all.entry(soname).or_default().push(&loader.name);
            }
        }
        all.retain(|soname, _| !self.has_file_named(soname));
        all
    }
}

/// Combines the coverage of several members for one GPU.
fn merge_coverage(all: impl Iterator<Item = Coverage>) -> Coverage {
    let all: Vec<Coverage> = all.collect();
    let any = |by: Coverage| all.contains(&by);
    let served = any(Coverage::Cubin) || any(Coverage::Ptx) || any(Coverage::Partial);
    if any(Coverage::Partial) || served && any(Coverage::Nothing) {
        Coverage::Partial
    } else if any(Coverage::Unknown) {
        Coverage::Unknown
    } else if any(Coverage::Ptx) {
        Coverage::Ptx
    } else if any(Coverage::Cubin) {
        Coverage::Cubin
    } else {
        Coverage::Nothing
    }
}

fn covers_of(parts: &[&ArtifactMember]) -> Vec<((u8, u8), Coverage)> {
    let with: Vec<&Kernels> = parts.iter().map(|part| &part.kernels).filter(|kernels| kernels.has_kernels()).collect();
    let ccs: BTreeSet<_> = with.iter().flat_map(|kernels| kernels.coverage_by_cc()).map(|cover| cover.cc).collect();
    ccs.into_iter().map(|cc| (cc, merge_coverage(with.iter().map(|kernels| kernels.gpu_support(cc).by)))).collect()
}

/// Returns the operating system that all of these members are for.
fn common_os<'a>(parts: impl IntoIterator<Item = &'a ArtifactMember>) -> Option<TargetOs> {
    let mut systems = parts.into_iter().filter_map(|part| part.binary.os);
    systems.next().filter(|os| systems.all(|other| other == *os))
}

/// Returns the processor that all of these members are for; empty if they are for several.
fn common_processor<'a>(parts: impl IntoIterator<Item = &'a ArtifactMember>) -> &'a str {
    let mut names = parts.into_iter().map(|part| part.components.processor.as_str()).filter(|name| !name.is_empty());
    names.next().filter(|name| names.all(|other| other == *name)).unwrap_or_default()
}

/// Runs `inspect` on a file, an archive or a directory.
pub(crate) fn run_inspect(file: &Path, form: Output) -> Result<ExitCode, CliError> {
    match artifact::open(file)? {
        Opened::Archive(archive) => inspect_artifact(file, archive, form),
        Opened::File(contents) => inspect::inspect_file(file, contents, form),
    }
}

fn inspect_artifact(file: &Path, archive: Archive, form: Output) -> Result<ExitCode, CliError> {
    let whole = ArtifactReport::read(file, archive, false)?;
    report::print_result(&match form {
        Output::Text => whole.to_text(),
        Output::Json => whole.to_json(),
        Output::Sarif => findings::files_to_sarif(&[(file.to_owned(), whole.package_findings())]),
    })?;
    Ok(ExitCode::SUCCESS)
}
