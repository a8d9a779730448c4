//! Detects the facts of this machine: from files first, then from the real libcuda in a child process. The rules are in
//! docs/internals/decisions, *Drivers* and *GPUs*. If a file does not contain a fact, the fact is unknown.

pub(super) mod libraries;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::driver_probe::{DriverAnswers, DriverProbe};
use super::redact::redact_home;
use super::{
    CompatPackage, Driver, Gpu, GpuState, HostLibrary, HostLibraryPart, LoaderVersion, Machine, MachineKind,
    OTHER_LIBRARIES, hides_all,
};
use crate::binary::elf::Elf;
use crate::binary::loader::{self, Inspection, LibraryCandidate, LoadGraph};
use crate::binary::mapped_file::OpenFiles;
use crate::family::cudart_inside;
use crate::host::library_version::{exported_version, file_version, in_name, inner_file};
use crate::knowledge::vendor::{self, LIBCUDA};
use cudaguard::internal::env::Env;
use cudaguard::internal::files;
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

const PTX_COMPILER: &str = "libnvidia-ptxjitcompiler.so.1";
/// Maximum size of a text file of the kernel. Longer files are ignored.
const ENOUGH: u64 = 64 * 1024;

/// Detects this machine as a program that is started here would see it: by the rules of the loader, in this
/// environment. Without a probe, the real driver is not called.
pub fn detect_machine(env: &Env, probe: Option<&DriverProbe>) -> Machine {
    with_graph(env, probe).0
}

/// Detects this machine, and returns the load graph of the program that was used for it.
pub(crate) fn with_graph(env: &Env, probe: Option<&DriverProbe>) -> (Machine, Option<LoadGraph>) {
    if cfg!(windows) {
        return (super::windows::detect_windows(env, probe.is_some()), None);
    }
    let mut machine = Machine::default();
    // A static build of this program has no loader. Use a program that every system has instead.
    let graph = ["/proc/self/exe", "/bin/sh", "/usr/bin/env"]
        .iter()
        .filter_map(|program| loader::resolve_program(Path::new(program), env).ok())
        .find(|graph| graph.interpreter.is_some() && graph.interpreter_problem.is_none());
    let root = Root::default();
    machine.platform = Some(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS));
    let Some(mut graph) = graph else {
        machine
            .warnings
            .push("no dynamically linked program was found, so the search path of the loader is unknown".to_owned());
        root.detect_hardware(&mut machine);
        return (machine, None);
    };
    for library in vendor::DESCRIBED {
        let mut files = library_candidates(env, &graph, library);
        for file in files.iter_mut().filter(|file| file.is_loaded() && !library.parts.is_empty()) {
            read_parts(&mut graph, library, file);
        }
        machine.libraries.insert(library.key, files);
    }
    machine.libraries.insert(OTHER_LIBRARIES, libraries::detect_others(env, &graph));
    detect_libraries(env, &mut machine, &root, &mut graph, LIBCUDA, probe);
    (machine, Some(graph))
}

/// Detects driver and GPUs as the program of this graph would see them; without a probe, from files only. The program opens
/// libcuda with the first of these names that it finds; no names: by its soname. The dependencies of libcuda are loaded into
/// the graph.
pub(crate) fn detect_for_graph(
    env: &Env,
    graph: &mut LoadGraph,
    names: &[String],
    probe: Option<&DriverProbe>,
) -> Machine {
    let mut machine = Machine::default();
    let usable =
        names.iter().find(|name| graph.resolve_file(0, name).is_some_and(|file| file.inspection == Inspection::Usable));
    let name = usable.map_or(LIBCUDA, String::as_str);
    detect_libraries(env, &mut machine, &Root::default(), graph, name, probe);
    machine
}

fn detect_libraries(
    env: &Env,
    machine: &mut Machine,
    root: &Root,
    graph: &mut LoadGraph,
    libcuda: &str,
    probe: Option<&DriverProbe>,
) {
    root.detect_hardware(machine);
    let mut driver = machine.driver.take().unwrap_or_default();
    match graph.resolve_file(0, libcuda) {
        None if graph.is_shut(0, libcuda) => {
            machine.warnings.push(format!("{libcuda} was not found, and not all directories could be read"));
        }
        None => driver.absent = true,
        Some(LibraryCandidate { path, place, inspection: Inspection::Usable }) => {
            push_note(machine, "driver.library", redact_home(env, &place));
            read_libcuda(env, machine, &mut driver, graph.files(), &path);
            if let Some(index) = graph.dlopen_library(0, libcuda) {
                let there =
                    graph.resolve_file(index, PTX_COMPILER).is_some_and(|file| file.inspection == Inspection::Usable);
                // On WSL it is in the driver store, in which only libcuda finds it. The same may apply to a libcuda without a
                // release in its file name.
                let is_usual = machine.kind.is_none() && driver.user.is_some();
                driver.ptx_compiler = Some(there).filter(|there| *there || is_usual);
            }
            driver.library = Some(redact_home(env, &path.display()));
            let native = loader::native_machine().is_some_and(|native| native == graph.machine());
            match probe.filter(|_| native) {
                Some(probe) => apply_probe(env, machine, &mut driver, probe.probe_library(env, &path)),
                None if probe.is_some() => {
                    machine
                        .warnings
                        .push("the program is for another processor, so its driver cannot be queried".to_owned());
                }
                None => {}
            }
        }
        Some(broken) => {
            let path = redact_home(env, &broken.path.display());
            machine.warnings.push(format!("the loader would pick {path} and fail: {}", broken.problem()));
        }
    }
    machine.driver = Some(driver);
    machine.read_variables(env);
    if machine.variable("CUDA_VISIBLE_DEVICES").map(str::trim).is_some_and(hides_all) {
        for gpu in machine.gpus.iter_mut().flatten() {
            gpu.visible = Some(false);
        }
    }
}

fn push_note(machine: &mut Machine, key: &str, source: impl Into<String>) {
    machine.sources.push((key.to_owned(), source.into()));
}

/// Extracts the release after `libcuda.so.` from the file name that all links resolve to. On WSL and Jetson the name is
/// libcuda.so.1.1, and a stub has no number: no release has a branch below 100.
pub(crate) fn release_in_name(path: &Path) -> Option<DriverRelease> {
    release_of_file(fs::canonicalize(path).ok()?.file_name()?.to_str()?)
}

/// Returns the release in the name of a libcuda, also of a copy that wheel repair renamed.
pub(crate) fn release_of_file(name: &str) -> Option<DriverRelease> {
    let (stem, release) = name.split_once(".so.")?;
    let release: DriverRelease = release.parse().ok()?;
    (stem.starts_with("libcuda") && release.branch >= 100).then_some(release)
}

/// Reads the facts in libcuda's file.
fn read_libcuda(env: &Env, machine: &mut Machine, driver: &mut Driver, files: &OpenFiles, path: &Path) {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    driver.user = release_in_name(path).filter(|_| machine.kind.is_none());
    if driver.user.is_some() {
        push_note(machine, "driver.user", format!("the name of {}", redact_home(env, &real.display())));
    }
    let Ok(data) = files.open(path) else { return };
    let Ok(elf) = Elf::parse(&data) else { return };
    driver.compat =
        elf.notes().find(|note| note.owner == "NVIDIA Corporation").and_then(|note| parse_compat_note(note.desc));
    if driver.compat.is_some() {
        push_note(machine, "driver.compat", format!("the note in {}", redact_home(env, &real.display())));
    }
    driver.ordinary = driver.compat.is_none() && !in_compat_dir(path) && !in_compat_dir(&real);
}

/// Recognizes `/usr/local/cuda-12.4/compat/libcuda.so.1`: packages of cuda-compat up to 2025 had no note.
pub(crate) fn in_compat_dir(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_str().is_some_and(|part| part.contains("compat")))
}

/// Parses `{"format":1,"CUDA version":"12.9","driver":[535,550,…],"device":[…]}`.
fn parse_compat_note(note: &[u8]) -> Option<CompatPackage> {
    let value: serde_json::Value = serde_json::from_str(std::str::from_utf8(note).ok()?.trim_end_matches('\0')).ok()?;
    let numbers = value.get("driver").and_then(serde_json::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Some(CompatPackage {
        cuda: value.get("CUDA version").and_then(serde_json::Value::as_str).and_then(|version| version.parse().ok()),
        branches: numbers.iter().filter_map(|number| u32::try_from(number.as_u64()?).ok()).collect(),
    })
}

/// Applies the answer of the real driver, which has precedence over the files: it honours every variable, and supports
/// MIG, WSL, Jetson and cuda-compat.
fn apply_probe(env: &Env, machine: &mut Machine, driver: &mut Driver, answer: DriverAnswers) {
    const ASKED: &str = "libcuda, queried in a child process";
    driver.cuda = answer.cuda;
    if driver.cuda.is_some() {
        push_note(machine, "driver.cuda", format!("{ASKED}: cuDriverGetVersion"));
    }
    driver.init = answer.init;
    if driver.init.is_some() {
        push_note(machine, "driver.init", format!("{ASKED}: cuInit"));
    }
    machine.warnings.extend(answer.problem.map(|problem| redact_home(env, &problem)));
    let Some(devices) = answer.gpus else { return };
    // The visible GPUs come first, in the driver's order. Other GPUs of the kernel module are hidden.
    let mut hidden = machine.gpus.take().unwrap_or_default();
    let mut gpus = Vec::new();
    for device in devices {
        let slot = device.pci.as_deref().map(normalize_slot);
        let known = hidden.iter().position(|gpu| gpu.pci.is_some() && gpu.pci.as_deref().map(normalize_slot) == slot);
        let known = known.map(|at| hidden.remove(at)).unwrap_or_default();
        gpus.push(Gpu {
            name: device.name.or(known.name),
            cc: device.cc.or(known.cc),
            uuid: device.uuid.or(known.uuid),
            pci: device.pci.or(known.pci),
            visible: Some(true),
            state: device.prohibited.then_some(GpuState::ComputeProhibited),
            listed: true,
        });
    }
    gpus.extend(hidden.into_iter().map(|gpu| Gpu { visible: Some(false), ..gpu }));
    machine.gpus = Some(gpus);
    machine.sources.retain(|(key, _)| key != "gpus");
    push_note(machine, "gpus", ASKED);
}

/// Normalizes a PCI address: `00000000:3B:00.0` and `0000:3b:00.0` are equal.
fn normalize_slot(id: &str) -> String {
    let id = id.to_ascii_lowercase();
    match id.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => format!("{}:{rest}", domain.trim_start_matches('0')),
        _ => id,
    }
}

/// Returns every file that the loader considers for this library's sonames. The first usable one is resolved, the
/// others follow it.
fn library_candidates(env: &Env, graph: &LoadGraph, library: &vendor::Library) -> Vec<HostLibrary> {
    let mut found = Vec::new();
    for name in library.sonames() {
        let mut candidates = graph.candidates(0, &name);
        let has_selected = candidates.iter().any(LibraryCandidate::is_selected);
        candidates.retain(|candidate| candidate.is_selected() || !has_selected);
        for (at, candidate) in candidates.into_iter().enumerate() {
            let is_usable = candidate.inspection == Inspection::Usable;
            let version = if is_usable { file_version(graph.files(), &candidate.path) } else { None };
            found.push(HostLibrary {
                taken: at == 0 && has_selected,
                ..described_file(env, name.clone(), version, &candidate)
            });
        }
    }
    found
}

/// Describes a file that the loader considers for a name.
fn described_file(env: &Env, name: String, version: Option<Version>, candidate: &LibraryCandidate) -> HostLibrary {
    let is_usable = candidate.inspection == Inspection::Usable;
    HostLibrary {
        soname: Some(name),
        version,
        path: Some(redact_home(env, &candidate.path.display())),
        problem: (!is_usable).then(|| candidate.problem()),
        taken: candidate.is_selected(),
        by: Some(redact_home(env, &candidate.place)),
        ..HostLibrary::default()
    }
}

/// Reads the parts of a library that exist and that are required or contain a version, and the release in the library's
/// own file.
fn read_parts(graph: &mut LoadGraph, library: &vendor::Library, file: &mut HostLibrary) {
    let Some(index) = file.soname.as_deref().and_then(|soname| graph.dlopen_library(0, soname)) else { return };
    let by_name = in_name(library, &graph.objects[index].path);
    read_parts_of(graph, (index, by_name), library, &[], file, &|path, symbol| read_part(graph, path, symbol));
}

/// A file that is a part of a library.
#[derive(Default)]
pub(crate) struct PartFacts {
    pub(crate) version: Option<Version>,
    /// The CUDA version that the library is built for.
    pub(crate) cuda: Option<CudaVersion>,
    /// The file, if it is on this machine.
    pub(crate) path: Option<PathBuf>,
}

/// Reads a part of a library that is a file of this machine. `symbol`: the function that contains the version.
pub(crate) fn read_part(graph: &LoadGraph, path: &Path, symbol: &str) -> PartFacts {
    let files = graph.files();
    PartFacts {
        version: exported_version(files, path, symbol).or_else(|| file_version(files, path)),
        cuda: files.open(path).ok().and_then(|data| cudart_inside(&Elf::parse(&data).ok()?)),
        path: Some(path.to_owned()),
    }
}

/// Reads the parts that an object, a library, opens. `of`: the object, and the version in its name. `rows`: the requirements of a
/// component. `read` reads a part.
pub(crate) fn read_parts_of(
    graph: &LoadGraph,
    of: (usize, Option<Version>),
    library: &vendor::Library,
    rows: &[Requirement],
    file: &mut HostLibrary,
    read: &dyn Fn(&Path, &str) -> PartFacts,
) {
    let Some(major) = file.soname.as_deref().and_then(|soname| library.major(soname)) else { return };
    let (index, by_name) = of;
    let mut names: Vec<(&str, &str)> = library.parts_of_major(major).map(|part| (part.file, part.symbol)).collect();
    // Those of a major that no table lists.
    for row in rows {
        let Requirement::Part { file, symbol, .. } = row else { continue };
        if vendor::major_of(file) == Some(major) && !names.iter().any(|(known, _)| known == file) {
            names.push((file, symbol));
        }
    }
    let (mut found, mut is_known) = (Vec::new(), true);
    for (name, symbol) in names {
        let Some(own) = inner_file(graph, index, name, by_name) else {
            is_known &= !graph.is_shut(index, name);
            continue;
        };
        let PartFacts { version, cuda, path } = read(&own, symbol);
        file.cuda = file.cuda.or(cuda);
        found.push(HostLibraryPart { file: name.to_owned(), version, path });
    }
    // The version of the parts counts. The release of the library's own file is reported if it differs.
    file.version = found.iter().find_map(|part| part.version).or(file.version);
    file.loader = match by_name.filter(|own| file.version.is_some_and(|whole| whole != *own)) {
        Some(own) => LoaderVersion::Version(own),
        None => LoaderVersion::Unknown,
    };
    file.parts = is_known.then_some(found);
}

/// The root of the kernel's file systems: `/`, or a directory with the same layout.
struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self("/".into())
    }
}

impl Root {
    fn path_in_root(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    fn read_text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = files::open_regular(&self.path_in_root(path)).ok()?;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, ENOUGH), &mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Detects everything except libcuda.
    fn detect_hardware(&self, machine: &mut Machine) {
        machine.kind = self.detect_kind();
        let mut driver = Driver::default();
        if let Some(text) = self.read_text("/proc/driver/nvidia/version") {
            driver.kernel = kernel_module(&text);
            match driver.kernel {
                Some(_) => push_note(machine, "driver.kernel", "/proc/driver/nvidia/version"),
                None => machine.warnings.push("/proc/driver/nvidia/version contains no release".to_owned()),
            }
        }
        machine.gpus = self.detect_gpus();
        if machine.gpus.is_some() {
            push_note(machine, "gpus", "/proc/driver/nvidia/gpus, /sys/bus/pci/devices, /dev/nvidia*");
        }
        machine.driver = Some(driver);
    }

    fn detect_kind(&self) -> Option<MachineKind> {
        if self.path_in_root("/dev/dxg").exists() {
            return Some(MachineKind::Wsl2);
        }
        let is_tegra = self.path_in_root("/etc/nv_tegra_release").exists()
            || self.read_text("/proc/device-tree/compatible").is_some_and(|text| text.contains("nvidia,tegra"));
        is_tegra.then_some(MachineKind::Jetson)
    }

    /// Detects the GPUs that the kernel module supports; `None` if it does not list them (WSL, Jetson, a container that
    /// hides them, no module).
    fn detect_gpus(&self) -> Option<Vec<Gpu>> {
        let dir = fs::read_dir(self.path_in_root("/proc/driver/nvidia/gpus")).ok()?;
        let mut slots: Vec<String> =
            dir.flatten().filter_map(|entry| entry.file_name().to_str().map(str::to_owned)).collect();
        slots.sort();
        Some(slots.iter().map(|slot| self.detect_gpu(slot)).collect())
    }

    fn detect_gpu(&self, slot: &str) -> Gpu {
        let text = self.read_text(&format!("/proc/driver/nvidia/gpus/{slot}/information")).unwrap_or_default();
        let facts: BTreeMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let [name, uuid] = ["Model", "GPU UUID"].map(|key| facts.get(key).copied().filter(|value| !value.is_empty()));
        let minor = facts.get("Device Minor").and_then(|minor| minor.parse::<u32>().ok());
        let id = self.read_text(&format!("/sys/bus/pci/devices/{slot}/device"));
        let id = id.and_then(|id| u16::from_str_radix(id.trim().strip_prefix("0x")?, 16).ok());
        let device = minor.map(|minor| self.path_in_root(&format!("/dev/nvidia{minor}")));
        Gpu {
            // The kernel module writes `Unknown` for a board without a name.
            name: name.filter(|name| *name != "Unknown").map(str::to_owned),
            cc: id.and_then(cudaguard::internal::tables::pci::compute_capability),
            // It contains question marks until the GPU has been initialized.
            uuid: uuid.filter(|uuid| uuid.starts_with("GPU-") && !uuid.contains('?')).map(str::to_owned),
            pci: Some(slot.to_owned()),
            visible: device.filter(|device| !may_open(device)).map(|_| false),
            state: None,
            listed: true,
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn may_open(path: &Path) -> bool {
    super::probe_child::may_open(path)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn may_open(path: &Path) -> bool {
    path.exists()
}

/// Extracts the release from the kernel module's line: `… Kernel Module  535.129.03  <date>`,
/// `… Open Kernel Module for x86_64  595.91.07  Release Build …`.
fn kernel_module(text: &str) -> Option<DriverRelease> {
    let (_, behind) = text.lines().find(|line| line.starts_with("NVRM version:"))?.split_once("Kernel Module")?;
    behind
        .split_whitespace()
        .find_map(|word| word.parse::<DriverRelease>().ok())
        .filter(|release| release.branch >= 100)
}

#[cfg(test)]
mod tests;
