//! The DLLs that Windows loads for a program or a library, as far as their directories are known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::absent_libraries::{absent_library, is_of_program};
use super::symbol_findings::{SymbolFile, findings_of_missing};
use crate::binary::examined::{self, NotExamined};
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::loader::{DllClosure, DllRequest, DllSearch, DllSource, MissingSymbol, SearchedDirs};
use crate::binary::mapped_file::OpenFiles;
use crate::binary::pe::Pe;
use crate::family::{
    Member, MembersOfProcess, compilers, findings, functions_of_driver, is_installed, looked_up_findings,
};
use crate::host::library_version::file_version;
use crate::host::machine::{Components, DriverProbe, HostLibrary, detect_machine};
use crate::verdict::{Verdict, is_reported_by_loader};
use cudaguard::internal::elf::machine::machine_name;
use cudaguard::internal::env::Env;
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::finding::{Code, Finding, MessageFragment, MessageTemplate, Values};
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::vendor::{self, CUDNN};

const SEARCH: &str = "the search for DLLs";

/// A program or library with its DLLs. Files are numbered: 0 is the file itself, and request `n` of the closure is file `n + 1`.
struct DllFiles<'a> {
    file: &'a Binary,
    requests: DllClosure,
    /// The DLLs that do not come with Windows and have a trace of CUDA.
    libraries: Vec<(usize, Binary)>,
}

/// Returns the requirements of this file and of the DLLs that it loads, or that it may load at the first call. `here`: the
/// environment of this Windows machine, on which a DLL that does not exist is a finding. Without it, the DLLs are those that come with the
/// file.
pub(crate) fn components_of_dlls(file: &Binary, here: Option<&Env>) -> Components {
    let files = &OpenFiles::default();
    files.insert(&file.path, file.data());
    let search = DllSearch::for_file(&file.path, file.kind == BinaryKind::Executable, here);
    let dirs = search.dirs_for(&file.path);
    let closure = DllFiles::new(file, search.resolve(&file.path, &dirs), files);
    let (objects, mut all) = components_together(
        file,
        &closure.libraries,
        &|index| vendor::is_beside_driver(&closure.requests[index - 1].name),
        &|_, name| closure.file_of(name).is_some(),
    );
    closure.check_cudnn(&dirs, &objects, &mut all, files);
    let members = closure.members();
    // NVRTC opens its builtins when it compiles, so they are in no table of imports.
    let opened = members.iter().filter_map(|(_, member)| find_own(&dirs, &member.builtins_name()?));
    let opened: Vec<Member> =
        opened.filter_map(|path| Member::read(&path.to_string_lossy(), &files.open(path).ok()?)).collect();
    let resolve = |_: usize, name: &str| {
        let of_opened = || Some(members.len() + opened.iter().position(|builtins| builtins.is_named(name))?);
        closure.file_of(name).and_then(|index| members.iter().position(|(at, _)| *at == index)).or_else(of_opened)
    };
    let listed: Vec<&Member> = members.iter().map(|(_, member)| member).chain(&opened).collect();
    let process = MembersOfProcess::all(file.path.display().to_string(), listed.len());
    all.findings.extend(findings(&listed, listed.len(), &[process], &resolve, &|_, _| false));
    all.findings.extend(looked_up_findings(&listed, listed.len(), &resolve));
    all.driver_functions = functions_of_driver(listed.iter().copied());
    all.compilers = compilers(listed);
    all.findings.extend(closure.missing_functions());
    closure.report_unusable_dlls(&mut all, files);
    if here.is_some() {
        closure.report_missing_dlls(&mut all);
    } else {
        let absent = closure.missing_dlls().filter(|request| is_of_program(&request.name));
        all.not_examined.extend(absent.map(|request| absent_library(&request.name, &request.needed_by)));
    }
    all
}

/// Returns the requirements of a program and its libraries, and for each manifest the index of its file: 0 for the program.
/// `is_inside` returns true if a file gets a library of this name from the closure.
fn components_together(
    program: &Binary,
    libraries: &[(usize, Binary)],
    is_of_vendor: &dyn Fn(usize) -> bool,
    is_inside: &dyn Fn(usize, &str) -> bool,
) -> (Vec<usize>, Components) {
    let mut all = Components::from_binary(&program.path, program);
    let mut objects = vec![0; all.manifests.len()];
    let runtime =
        all.manifests.iter().find(|manifest| !manifest.component.is_unrecorded()).map(|manifest| manifest.runtime);
    all.needed.retain(|needed| !is_inside(0, &needed.soname));
    all.bound.retain(|bound| !is_inside(0, &bound.soname));
    let mut of_others: Vec<usize> = (0..objects.len()).collect();
    let mut of_vendor: Vec<usize> = Vec::new();
    for (index, binary) in libraries {
        let mut own = Components::from_binary(&binary.path, binary);
        own.findings.retain(|finding| finding.code != Code::NoManifest);
        // `[runtime]` of the program also applies to its libraries without a guard.
        for manifest in own.manifests.iter_mut().filter(|manifest| manifest.component.is_unrecorded()) {
            manifest.runtime = runtime.unwrap_or(manifest.runtime);
        }
        let places = objects.len()..objects.len() + own.manifests.len();
        if is_of_vendor(*index) {
            if let Ok(kernels) = binary.kernels() {
                own.mark_fallback(&mut kernels.clone(), |cc| {
                    let mut files = std::iter::once(program).chain(libraries.iter().map(|(_, binary)| binary));
                    files.any(|file| file.kernels().is_ok_and(|kernels| kernels.has_machine_code(cc)))
                });
            }
            of_vendor.extend(places);
        } else {
            of_others.extend(places);
        }
        objects.extend(own.manifests.iter().map(|_| *index));
        all.manifests.extend(own.manifests);
        all.findings.extend(own.findings);
        all.not_examined.extend(own.not_examined);
        for needed in own.needed.into_iter().filter(|needed| !is_inside(*index, &needed.soname)) {
            if !all.needed.iter().any(|known| known.soname == needed.soname) {
                all.needed.push(needed);
            }
        }
        all.bound.extend(own.bound.into_iter().filter(|bound| !is_inside(*index, &bound.soname)));
        let opened: Vec<_> = own.opened.into_iter().filter(|opened| !all.opened.contains(opened)).collect();
        all.opened.extend(opened);
    }
    all.drop_implied_rows(&of_vendor);
    // The functions of NVIDIA's libraries need a GPU only when they are called.
    if !of_vendor.is_empty() {
        (all.alternatives.in_part, all.alternatives.serving) = (of_vendor, of_others);
    }
    (objects, all)
}

/// Returns true for a program or library for Windows.
pub(crate) fn has_dlls(file: &Binary) -> bool {
    file.os == Some(TargetOs::Windows) && matches!(file.kind, BinaryKind::Executable | BinaryKind::SharedLibrary)
}

/// Returns the findings that refuse a program with its DLLs on this Windows machine. The guard of a program reports the rest itself.
pub(crate) fn start_on_windows(file: &Binary, env: &Env, probe: &DriverProbe) -> Vec<Finding> {
    if !has_dlls(file) {
        return Vec::new();
    }
    let components = components_of_dlls(file, Some(env));
    let is_guarded = components.manifests.iter().any(|manifest| !manifest.component.is_unrecorded());
    let mut findings = components.check_on(&detect_machine(env, Some(probe)), "this machine");
    findings.retain(|finding| {
        Verdict::from_findings([finding]) == Verdict::Refused && (!is_guarded || is_reported_by_loader(finding.code))
    });
    findings
}

fn damaged_dll(request: &DllRequest, path: &Path, why: &str) -> Finding {
    let values = Values::default().with("library", &request.name).with("path", path.display());
    let values = values.with("why", why).with("needed_by", request.needed_by.display());
    MessageTemplate::LibraryDamaged.to_finding(&values.with("picked_by", SEARCH))
}

/// Returns the file of a library in the first directory outside of Windows that contains it.
fn find_own<'a>(dirs: &'a SearchedDirs, name: &str) -> Option<&'a PathBuf> {
    let wanted = vendor::plain_name(name);
    let own = dirs.iter().filter(|(by, _)| *by != DllSource::System);
    let mut files = own.flat_map(|(_, files)| files);
    let found = files.find(|(file, _)| file.ends_with(".dll") && vendor::plain_name(file) == wanted);
    found.map(|(_, path)| path)
}

impl<'a> DllFiles<'a> {
    fn new(file: &'a Binary, requests: DllClosure, files: &OpenFiles) -> Self {
        let libraries = requests.iter().enumerate().filter_map(|(at, request)| {
            let path = request.own_file().filter(|_| !vendor::is_of_driver(&request.name))?;
            let data = files.open(path).ok().filter(|data| examined::has_trace_of_cuda(data))?;
            Some((at + 1, Binary::from_contents(path, data).ok()?))
        });
        Self { file, libraries: libraries.collect(), requests }
    }

    /// Returns the number of the library with this name.
    fn file_of(&self, name: &str) -> Option<usize> {
        self.libraries.iter().find(|(index, _)| self.requests[index - 1].is_named(name)).map(|(index, _)| *index)
    }

    fn files(&self) -> impl Iterator<Item = (usize, &Binary)> {
        std::iter::once((0, self.file)).chain(self.libraries.iter().map(|(index, binary)| (*index, binary)))
    }

    fn members(&self) -> Vec<(usize, Member)> {
        let read =
            |(index, file): (usize, &Binary)| Some((index, Member::read(&file.path.to_string_lossy(), file.data())?));
        self.files().filter_map(read).collect()
    }

    /// Checks the cuDNN that each file gets, and drops the requirements that it fulfils.
    fn check_cudnn(&self, dirs: &SearchedDirs, objects: &[usize], all: &mut Components, files: &OpenFiles) {
        for (index, file) in self.files() {
            let places: Vec<usize> = (0..objects.len()).filter(|at| objects[*at] == index).collect();
            let asked = places.iter().flat_map(|at| &all.manifests[*at].requires).filter_map(|row| match row {
                Requirement::Library { soname, .. } => Some(soname.as_str()),
                _ => None,
            });
            let imported = file.imported().map(String::as_str).filter(|name| CUDNN.is_named(name));
            let Some(path) = imported.chain(asked).find_map(|name| find_own(dirs, name)) else { continue };
            let library = HostLibrary {
                soname: path.file_name().map(|name| name.to_string_lossy().into_owned()),
                version: file_version(files, path),
                path: Some(path.display().to_string()),
                taken: true,
                ..HostLibrary::default()
            };
            for at in places {
                all.bring_cudnn(at, Ok(library.clone()), "the program");
            }
        }
    }

    /// Reports DLLs that Windows would pick and fail to load, with 0xC000007B. It does not continue the search.
    fn report_unusable_dlls(&self, all: &mut Components, files: &OpenFiles) {
        let program = self.file.path.file_name().unwrap_or_default().to_string_lossy();
        for (at, request) in self.requests.iter().enumerate() {
            let Some(path) = request.own_file() else { continue };
            // The files with a trace of CUDA report their damage themselves.
            let is_reported = self.libraries.iter().any(|(index, _)| *index == at + 1);
            let contents = files.open(path);
            let finding = match contents.as_deref().map(|data| Pe::parse(data)) {
                Ok(Ok(image)) => {
                    if let Some(damage) = image.find_damage().filter(|_| !is_reported) {
                        all.not_examined.push(NotExamined::new(request.name.as_str(), damage));
                    }
                    finding_of_processor((&request.name, image.processor()), (&program, self.file.machine))
                }
                Ok(Err(why)) => Some(damaged_dll(request, path, &format!("it {why}"))),
                Err(FileError { problem: FileProblem::Empty, .. }) => Some(damaged_dll(request, path, "it is empty")),
                Err(why) => {
                    all.not_examined.push(NotExamined::new(request.name.as_str(), why.to_string()));
                    continue;
                }
            };
            match finding {
                Some(finding) if request.is_delayed => {
                    all.not_examined.push(NotExamined::new(request.name.as_str(), finding.message));
                }
                finding => all.findings.extend(finding),
            }
        }
    }

    /// Reports functions that a file imports and that the DLL lacks.
    fn missing_functions(&self) -> Vec<Finding> {
        let path = self.file.path.display().to_string();
        let mut files = vec![SymbolFile { path, soname: String::new(), picked_by: Some(SEARCH.to_owned()) }];
        for request in &self.requests {
            let path = request.own_file().map(|path| path.display().to_string()).unwrap_or_default();
            files.push(SymbolFile { path, soname: request.name.clone(), picked_by: Some(SEARCH.to_owned()) });
        }
        let mut missing = Vec::new();
        for (by, file) in self.files() {
            let Ok(image) = Pe::parse(file.data()) else { continue };
            for dll in image.imports() {
                let library = self.file_of(dll.name);
                let Some((of, library)) = self.libraries.iter().find(|(index, _)| Some(*index) == library) else {
                    continue;
                };
                let Ok(exporter) = Pe::parse(library.data()) else { continue };
                let exports: BTreeSet<&str> = exporter.exported_names().collect();
                let lacks = dll.functions.iter().filter(|function| !exports.contains(**function));
                missing.extend(lacks.map(|function| MissingSymbol {
                    name: (*function).to_owned(),
                    version: None,
                    by,
                    of: Some(*of),
                    lazy: dll.is_delayed,
                    unversioned: false,
                }));
            }
        }
        findings_of_missing(&files, missing, |_| false)
    }

    /// Returns the requests for DLLs that no directory contains. The driver and NVIDIA's libraries are checked as requirements.
    fn missing_dlls(&self) -> impl Iterator<Item = &DllRequest> {
        self.requests.iter().filter(|request| request.found.is_none() && !request.is_delayed).filter(|request| {
            let name = &request.name;
            let is_checked = vendor::is_libcuda(name) || CUDNN.is_named(name) || is_installed(name);
            !is_checked && !is_side_by_side(&name.to_ascii_lowercase())
        })
    }

    /// Reports the DLLs without which Windows ends a program. The program that loads a library may have them in its directory.
    fn report_missing_dlls(&self, all: &mut Components) {
        for request in self.missing_dlls() {
            let by = request.needed_by.display();
            if self.file.kind == BinaryKind::Executable {
                let values = Values::default().with("library", &request.name).with("needed_by", by);
                let cure = MessageFragment::InstallPackage.render(&Values::default());
                all.findings.push(MessageTemplate::LibraryAbsent.to_finding(&values.with("cure", cure)));
            } else {
                let why = format!("{by} needs it, and only the directory of the program may contain it");
                all.not_examined.push(NotExamined::new(request.name.as_str(), why));
            }
        }
    }
}

/// Returns the finding for a DLL that is for another processor than the program: each with its name and processor.
pub(crate) fn finding_of_processor(dll: (&str, Option<u16>), program: (&str, u16)) -> Option<Finding> {
    let processor = dll.1.filter(|processor| ![0, program.1].contains(processor) && program.1 != 0)?;
    let values = Values::default().with("file", dll.0).with("processor", machine_name(processor));
    let values = values.with("place", program.0).with("machine", machine_name(program.1));
    Some(MessageTemplate::WrongMachine.to_finding(&values))
}

/// Returns true for a C runtime that Windows loads from a side-by-side assembly: Visual C++ 2005 and 2008.
fn is_side_by_side(dll: &str) -> bool {
    const STEMS: [&str; 6] = ["msvcr", "msvcp", "msvcm", "mfc", "atl", "vcomp"];
    let stem = dll.strip_suffix("80.dll").or_else(|| dll.strip_suffix("90.dll"));
    stem.is_some_and(|stem| STEMS.contains(&stem))
}
