//! Converts the description of a machine, from options or a host file, to a simulated one.

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

use super::world::FakeFile;
use super::{DriverLibraries, LibraryLayout, SimulatedGpu, World};
use crate::host::machine::detect::in_compat_dir;
use crate::host::machine::{self, CompatPackage, Driver, DriverSupport, Machine, MachineKind, agreed_release};

/// `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`.
const DRIVER_MISMATCH: u32 = 803;

/// Properties that only simulated machines have.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// Set if each GPU is in MIG mode, with one instance.
    pub mig: bool,
    /// The release of cuda-compat.
    pub compat: Option<DriverRelease>,
    /// Set if the machine is a WSL2.
    pub wsl: bool,
    /// Set if programs are clients of MPS.
    pub mps: bool,
    /// The memory of each GPU in GiB; `None`: the one in its name.
    pub memory: Option<u32>,
    /// The calls that fail: the beginning of the name of the function, and its status.
    pub failures: Vec<(String, u32)>,
}

/// Returns the simulated machine. A driver that is unknown is the newest one that supports the GPUs.
pub fn describe(machine: &Machine, extras: &Extras) -> World {
    let mut machine = Machine { variables: Vec::new(), ..machine.clone() };
    if extras.wsl {
        machine.kind = Some(MachineKind::Wsl2);
    }
    if machine.driver.is_none() && machine.gpus.is_some() {
        machine.driver = newest_driver(&machine);
    }
    let mut world = World { complete: true, ..World::bare() };
    world.layout = match machine.kind {
        Some(MachineKind::Wsl2) => LibraryLayout::Wsl,
        Some(MachineKind::Jetson) => LibraryLayout::Jetson,
        None => LibraryLayout::System,
    };
    world.mps = extras.mps;
    world.gpus = gpus_of(&machine, extras);
    let files = machine.libraries.get(CUDNN.key).into_iter().flatten().filter(|library| library.is_loaded());
    world.files = files.filter_map(|library| library.version).flat_map(cudnn_files).collect();
    if let Some(driver) = machine.driver.filter(|driver| !driver.absent) {
        set_driver(&mut world, &driver, machine.kind, extras);
    }
    world
}

/// Sets both parts of the driver, and cuda-compat.
fn set_driver(world: &mut World, driver: &Driver, kind: Option<MachineKind>, extras: &Extras) {
    let (user, kernel) = agreed_release(driver.user, driver.kernel);
    let kernel = kernel.or(user);
    let is_compat = driver.compat.is_some()
        || driver.library.as_deref().is_some_and(|path| in_compat_dir(path.as_ref())) && driver.user > driver.kernel;
    let user = user.or(kernel.filter(|_| !is_compat));
    let compat = extras.compat.or(user.filter(|_| is_compat));
    let own = if is_compat { kernel } else { user };
    let mut library = library_of(own, driver.cuda.filter(|_| !is_compat), kind);
    library.jit = driver.ptx_compiler != Some(false);
    let mut loaded = compat.map(|release| {
        let mut library = library_of(Some(release), driver.cuda.filter(|_| is_compat), kind);
        library.jit = driver.ptx_compiler != Some(false);
        let package = driver.compat.clone().unwrap_or_else(|| package_of(&library));
        if let Some(kernel) = kernel.filter(|kernel| !package.branches.contains(&kernel.branch)) {
            library.init =
                if package.branches.is_empty() || release.branch <= kernel.branch { 0 } else { DRIVER_MISMATCH };
        }
        library.note = Some(note_of(&package).into());
        library
    });
    if own != kernel {
        library.init = DRIVER_MISMATCH;
    }
    let target = loaded.as_mut().unwrap_or(&mut library);
    target.init = driver.init.unwrap_or(target.init);
    target.failures.clone_from(&extras.failures);
    world.kernel = kernel.filter(|_| kind != Some(MachineKind::Wsl2)).map(|release| release_text(release).into());
    world.library = Some(library);
    world.compat = loaded;
    world.compat_cached = true;
}

/// Returns a library of this release, with the CUDA version that it reports.
fn library_of(release: Option<DriverRelease>, cuda: Option<CudaVersion>, kind: Option<MachineKind>) -> DriverLibraries {
    let tabled = release.map(|release| match kind {
        Some(MachineKind::Wsl2) => tables::branch_of_windows(release),
        _ => release,
    });
    let newest = || tables::branch_rows().last().map(|row| row.least);
    let cuda = cuda.or_else(|| tables::driver_supports(tabled?).least).or_else(newest);
    let number = cuda.map_or(0, |cuda| cuda.major * 1000 + cuda.minor * 10);
    DriverLibraries::new(release.map_or_else(|| "000.00".to_owned(), release_text), number)
}

/// Returns the contents of the note that a cuda-compat package of this release has.
fn package_of(library: &DriverLibraries) -> CompatPackage {
    let cuda = CudaVersion::new(library.cuda / 1000, library.cuda % 1000 / 10);
    CompatPackage { cuda: Some(cuda), branches: tables::compat_kernels(cuda).to_vec() }
}

fn note_of(package: &CompatPackage) -> String {
    let cuda = package.cuda.map(|cuda| cuda.to_string()).unwrap_or_default();
    let branches: Vec<String> = package.branches.iter().map(u32::to_string).collect();
    format!(r#"{{"format":1,"CUDA version":"{cuda}","driver":[{}]}}"#, branches.join(","))
}

/// Returns the release as drivers write it. If only the branch is known, the other number is 0.
fn release_text(release: DriverRelease) -> String {
    let text = release.to_string();
    if text.contains('.') { text } else { text + ".00" }
}

/// Returns the newest driver of the tables that supports all GPUs.
fn newest_driver(machine: &Machine) -> Option<Driver> {
    let mut drivers = tables::branch_rows().iter().rev().filter(|row| row.exact).map(|row| {
        let release = Some(DriverRelease::new(row.branch, 0, 0));
        Driver { user: release, kernel: release, ..Driver::default() }
    });
    drivers.find(|driver| {
        let machine = Machine { driver: Some(driver.clone()), ..machine.clone() };
        machine.known_gpus().iter().all(|gpu| gpu.support == DriverSupport::Supported)
    })
}

fn gpus_of(machine: &Machine, extras: &Extras) -> Vec<SimulatedGpu> {
    let known = machine.known_gpus();
    let described = machine.gpus.iter().flatten().zip(known);
    described
        .map(|(gpu, seen)| {
            let cc = seen.cc.unwrap_or((0, 0));
            let is_tegra = machine.kind == Some(MachineKind::Jetson);
            let name = product_name(gpu, cc);
            let id = if is_tegra { None } else { tables::pci::device_of(cc) };
            let hidden = gpu.visible == Some(false) && machine.variables.is_empty();
            SimulatedGpu {
                mig: extras.mig && gpu.state.is_none() && cc >= (8, 0),
                node: !hidden && !is_tegra,
                listed: !is_tegra && !seen.support.is_missing(),
                driven: !hidden && !seen.support.is_missing(),
                uuid: gpu.uuid.clone().map(Into::into),
                pci: gpu.pci.clone().map(Into::into),
                memory: extras.memory.or_else(|| memory_in(&name)).map(|gigabytes| gigabytes * 1024),
                name: name.into(),
                state: gpu.state,
                ..SimulatedGpu::new("", cc, id.unwrap_or(0))
            }
        })
        .collect()
}

/// Returns the name that the driver reports. For a short name such as `T4`, it is that of a product in the tables.
fn product_name(gpu: &machine::Gpu, cc: (u8, u8)) -> String {
    let typed = gpu.name.as_deref().unwrap_or_default();
    if typed.contains(' ') {
        return typed.to_owned();
    }
    let is_named = |name: &&&str| name.to_lowercase().ends_with(&typed.to_lowercase());
    let examples = tables::gpu_examples(cc);
    let name = examples.iter().find(is_named).copied().unwrap_or(if typed.is_empty() { "GPU" } else { typed });
    let has_line = ["NVIDIA", "Tesla", "Quadro", "GRID", "Orin", "Jetson"].iter().any(|line| name.starts_with(line));
    if has_line { name.to_owned() } else { format!("NVIDIA {name}") }
}

/// Returns the memory in the name of a product such as `Tesla V100-SXM2-16GB`.
fn memory_in(name: &str) -> Option<u32> {
    let mut words = name.split([' ', '-']);
    words.find_map(|word| word.strip_suffix("GB")?.parse().ok())
}

/// Returns the libraries of a cuDNN that programs ask for their version.
fn cudnn_files(version: Version) -> Vec<FakeFile> {
    let Version { major, minor, patch, .. } = version;
    let number = if major < 9 { major * 1000 + minor * 100 + patch } else { major * 10000 + minor * 100 + patch };
    let inner: &[&str] = match major {
        ..8 => &[],
        8 => &["ops_infer"],
        _ => &["graph", "ops"],
    };
    let packed = major << 16 | minor << 8 | patch;
    let whole = ("libcudnn".to_owned(), format!("unsigned long cudnnGetVersion(void) {{ return {number}; }}\n"));
    let parts = inner
        .iter()
        .map(|name| (format!("libcudnn_{name}"), format!("const unsigned cudnn_{name}_version = {packed:#x};\n")));
    let file = |(stem, source): (String, String)| FakeFile {
        soname: format!("{stem}.so.{major}"),
        file: format!("{stem}.so.{major}.{minor}.{patch}"),
        source,
    };
    std::iter::once(whole).chain(parts).map(file).collect()
}
