//! The files of a simulated machine.

use std::borrow::Cow;
use std::env::consts::ARCH;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cudaguard::internal::tables;

use super::fakes::{DriverLibrary, Fakes};
use super::{SimulationError, namespace};
use crate::host::machine::GpuState;

/// A constant of a test, or a text of a description.
pub type Text = Cow<'static, str>;

/// A GPU with the properties that the machine and its driver report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "containers hide each of these by itself")]
pub struct SimulatedGpu {
    /// The name that the driver reports.
    pub name: Text,
    /// The compute capability.
    pub cc: (u8, u8),
    /// PCI device id.
    pub id: u16,
    /// The number in `/dev/nvidia<minor>`; `None` means the index of the GPU.
    pub minor: Option<usize>,
    /// Set if the GPU is in MIG mode, with one instance.
    pub mig: bool,
    /// Set if `/dev/nvidia<minor>` exists.
    pub node: bool,
    /// Set if `/proc/driver/nvidia/gpus` contains the GPU.
    pub listed: bool,
    /// Set if the driver gives this process access to the GPU.
    pub driven: bool,
    /// The UUID; `None` means [`World::uuid`].
    pub uuid: Option<Text>,
    /// The PCI address; `None` means one bus for each GPU.
    pub pci: Option<Text>,
    /// The memory in MiB, if it is known.
    pub memory: Option<u32>,
    /// The state that prevents CUDA programs from using it.
    pub state: Option<GpuState>,
}

impl SimulatedGpu {
    /// Creates a GPU that programs can use.
    pub const fn new(name: &'static str, cc: (u8, u8), id: u16) -> Self {
        Self::on_bus(name, cc, id, true)
    }

    /// Creates the GPU of a system on a chip, which is on no PCI bus.
    pub const fn integrated(name: &'static str, cc: (u8, u8)) -> Self {
        Self::on_bus(name, cc, 0, false)
    }

    const fn on_bus(name: &'static str, cc: (u8, u8), id: u16, on_bus: bool) -> Self {
        Self {
            name: Cow::Borrowed(name),
            cc,
            id,
            minor: None,
            mig: false,
            node: on_bus,
            listed: on_bus,
            driven: true,
            uuid: None,
            pci: None,
            memory: None,
            state: None,
        }
    }

    fn uuid(&self, n: usize) -> String {
        self.uuid.as_deref().map_or_else(|| World::uuid(n), ToOwned::to_owned)
    }

    fn slot(&self, n: usize) -> String {
        self.pci.as_deref().map_or_else(|| format!("0000:{:02x}:00.0", n + 1), ToOwned::to_owned)
    }
}

/// Behavior of a fake libcuda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The library works.
    Works,
    /// `cuInit` aborts.
    Crashes,
    /// `cuInit` never returns.
    Hangs,
    /// `cuInit` writes to stdout and stderr.
    Talks,
    /// The library aborts while it is loaded.
    CrashesEarly,
    /// The library hangs while it is loaded.
    HangsEarly,
    /// `cuInit` ends the process with status 3.
    Ends,
    /// The files are empty, as in a container image where the host's files should have been mounted.
    Empty,
}

/// The user-mode part of a driver: libcuda and its libraries.
#[derive(Clone, Debug)]
pub struct DriverLibraries {
    /// The release of the driver: `535.261.03`.
    pub release: Text,
    /// The result of `cuDriverGetVersion`: 12020.
    pub cuda: u32,
    /// The result of `cuInit`.
    pub init: u32,
    /// The behavior of libcuda.
    pub manner: Manner,
    /// The part of the file name after `libcuda.so.`; `None` means the release.
    pub suffix: Option<Text>,
    /// Set if libnvidia-ptxjitcompiler exists.
    pub jit: bool,
    /// The JSON text of its forward compatibility note.
    pub note: Option<Text>,
    /// A file to which each `cuInit` adds a line.
    pub log: Option<PathBuf>,
    /// The calls that fail: the beginning of the name of the function, and the status that it returns.
    pub failures: Vec<(String, u32)>,
    /// A directory with NVIDIA's `libcuda.so.<release>` and `libnvidia-ml.so.<release>`, which replace the fakes.
    pub real: Option<PathBuf>,
}

impl DriverLibraries {
    /// Returns a library that works.
    pub fn new(release: impl Into<Text>, cuda: u32) -> Self {
        Self {
            release: release.into(),
            cuda,
            init: 0,
            manner: Manner::Works,
            suffix: None,
            jit: true,
            note: None,
            log: None,
            failures: Vec::new(),
            real: None,
        }
    }

    /// Returns a library of this driver release, with the CUDA version that it supports.
    pub fn of_release(release: String) -> Option<Self> {
        let cuda = tables::driver_supports(release.parse().ok()?).least?;
        Some(Self::new(release, cuda.major * 1000 + cuda.minor * 10))
    }
}

/// The location of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryLayout {
    /// A separate directory in `LD_LIBRARY_PATH`.
    Dir,
    /// The system's library directory, as NVIDIA's `.run` installer and container toolkit use it.
    System,
    /// The layout of Debian: `nvidia/current/` below the system's library directory, with links through
    /// `/etc/alternatives`.
    Debian,
    /// The layout of WSL2: `/usr/lib/wsl/lib` in the loader cache, and `/dev/dxg`.
    Wsl,
    /// The layout of a Jetson: `nvidia/` below the system's library directory in the loader cache, and `/dev/nvmap` and
    /// `/etc/nv_tegra_release`.
    Jetson,
}

/// A fake library of a machine.
#[derive(Clone, Debug)]
pub struct FakeFile {
    /// Its soname, to which a link exists.
    pub soname: String,
    /// The name of the file.
    pub file: String,
    /// Its C source.
    pub source: String,
}

/// A machine, or the part of it that is visible in a container.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "machines differ in each of these by itself")]
pub struct World {
    /// The release in `/proc/driver/nvidia/version`; `None`: `/proc/driver/nvidia` does not exist.
    pub kernel: Option<Text>,
    /// Set if the kernel module is the open one, whose version file has another text.
    pub open: bool,
    /// Set if `/proc/driver/nvidia` exists and is empty.
    pub empty: bool,
    /// Set if `/proc` exists.
    pub proc: bool,
    /// Set if `/dev/nvidia-uvm` exists.
    pub uvm: bool,
    /// The user-mode part of the driver; `None`: libcuda does not exist.
    pub library: Option<DriverLibraries>,
    /// The cuda-compat library in `/usr/local/cuda/compat`, which is in `LD_LIBRARY_PATH`.
    pub compat: Option<DriverLibraries>,
    /// Set if the loader cache contains that directory instead, as with NVIDIA's container toolkit.
    pub compat_cached: bool,
    /// The location of the libraries.
    pub layout: LibraryLayout,
    /// The GPUs in the order of the bus.
    pub gpus: Vec<SimulatedGpu>,
    /// The indices of the GPUs, fastest first; empty means the order of the bus.
    pub fastest: Vec<usize>,
    /// Other fake libraries, in the system's library directory.
    pub files: Vec<FakeFile>,
    /// Set if programs are clients of MPS.
    pub mps: bool,
    /// Set if the loader cache is written anew, with all libraries of the machine, and if the machine has nvidia-smi.
    pub complete: bool,
}

impl World {
    /// Creates a machine with one driver, both parts of it, and these GPUs.
    pub fn new(release: impl Into<Text>, cuda: u32, gpus: &[SimulatedGpu]) -> Self {
        let release = release.into();
        Self {
            kernel: Some(release.clone()),
            open: true,
            empty: false,
            proc: true,
            uvm: true,
            library: Some(DriverLibraries::new(release, cuda)),
            compat: None,
            compat_cached: false,
            layout: LibraryLayout::System,
            gpus: gpus.to_vec(),
            fastest: Vec::new(),
            files: Vec::new(),
            mps: false,
            complete: false,
        }
    }

    /// Creates a machine without any NVIDIA files.
    pub fn bare() -> Self {
        Self { kernel: None, library: None, ..Self::new("", 0, &[]) }
    }

    /// Changes the library, if the machine has one.
    #[must_use]
    pub fn library(mut self, change: impl FnOnce(&mut DriverLibraries)) -> Self {
        if let Some(library) = &mut self.library {
            change(library);
        }
        self
    }

    /// Changes each GPU.
    #[must_use]
    pub fn each(mut self, change: impl Fn(usize, &mut SimulatedGpu)) -> Self {
        self.gpus.iter_mut().enumerate().for_each(|(n, gpu)| change(n, gpu));
        self
    }

    /// Returns the UUID of this GPU.
    pub fn uuid(n: usize) -> String {
        format!("GPU-{0:08x}-0000-4000-8000-{0:012x}", n + 1)
    }

    /// Returns the UUID of the MIG instance in this GPU.
    pub fn mig(n: usize) -> String {
        format!("MIG-{0:08x}-0000-5000-8000-{0:012x}", n + 1)
    }

    /// Writes the files of the machine to this directory. Returns the directories in its `LD_LIBRARY_PATH`.
    ///
    /// # Errors
    /// If a file cannot be written or a fake cannot be compiled.
    pub fn write(&self, root: &Path, fakes: &Fakes) -> Result<Vec<PathBuf>, SimulationError> {
        self.write_kernel(root)?;
        for node in namespace::NODES {
            write(&root.join("dev").join(node), "")?;
        }
        for dir in namespace::DEVICE_DIRS {
            create_dir(&root.join("dev").join(dir))?;
        }
        for (name, target) in namespace::DEVICE_LINKS {
            link(target, &root.join("dev").join(name))?;
        }
        if self.mps {
            write(&Self::mps_directory(root).join("nvidia-cuda-mps-control.pid"), "1\n")?;
        }
        self.write_libraries(root, fakes)
    }

    /// Returns the directory of the pipes of MPS, for `CUDA_MPS_PIPE_DIRECTORY`.
    pub fn mps_directory(root: &Path) -> PathBuf {
        root.join("nvidia-mps")
    }

    /// Compiles the fakes of the machine that are not compiled yet.
    ///
    /// # Errors
    /// If a fake cannot be compiled.
    pub fn compile(&self, fakes: &Fakes) -> Result<(), SimulationError> {
        for library in self.library.iter().chain(&self.compat) {
            for part in parts_of(library) {
                fakes.library(&part)?;
            }
            fakes.program("nvidia-smi")?;
        }
        self.files.iter().try_for_each(|file| fakes.library_from(&file.source, &file.soname).map(drop))
    }

    fn write_kernel(&self, root: &Path) -> Result<(), SimulationError> {
        for dir in ["driver", "pci/devices"] {
            create_dir(&root.join(dir))?;
        }
        if self.empty {
            create_dir(&root.join("driver/nvidia"))?;
        }
        let seen = self.kernel.as_deref().filter(|_| !self.empty);
        if let Some(kernel) = seen {
            let module = if self.open {
                format!("Open Kernel Module for {ARCH}  {kernel}  Release Build  (root@host)")
            } else {
                format!("{ARCH} Kernel Module  {kernel}")
            };
            let date = "Mon Sep  1 10:00:00 UTC 2026";
            write(
                &root.join("driver/nvidia/version"),
                format!(
                    "NVRM version: NVIDIA UNIX {module}  {date}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
                ),
            )?;
            create_dir(&root.join("driver/nvidia/gpus"))?;
        }
        for (n, gpu) in self.gpus.iter().enumerate() {
            let (slot, minor, uuid) = (gpu.slot(n), gpu.minor.unwrap_or(n), gpu.uuid(n));
            if seen.is_some() && gpu.listed {
                write(
                    &root.join(format!("driver/nvidia/gpus/{slot}/information")),
                    format!(
                        "Model: \t\t {}\nIRQ:   \t\t 42\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.5e.00.01\nBus Type: \t \
                         PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t {slot}\nDevice Minor: \
                         \t {minor}\nGPU Firmware: \t {}\nGPU Excluded:\t No\n",
                        gpu.name,
                        self.kernel.as_deref().unwrap_or_default()
                    ),
                )?;
            }
            // WSL2 and Jetsons show no GPU on the PCI bus.
            if gpu.id != 0 && self.layout != LibraryLayout::Wsl {
                for (file, text) in [("vendor", "0x10de".to_owned()), ("device", format!("{:#06x}", gpu.id))] {
                    write(&root.join(format!("pci/devices/{slot}/{file}")), format!("{text}\n"))?;
                }
            }
            if gpu.node && self.layout != LibraryLayout::Wsl {
                let uvm = self.uvm.then(|| "nvidia-uvm".to_owned());
                for node in [format!("nvidia{minor}"), "nvidiactl".to_owned()].into_iter().chain(uvm) {
                    write(&root.join("dev").join(node), "")?;
                }
            }
        }
        Ok(())
    }

    fn write_libraries(&self, root: &Path, fakes: &Fakes) -> Result<Vec<PathBuf>, SimulationError> {
        let (mut library_path, mut cached) = (Vec::new(), None);
        let above = namespace::library_dir();
        let system = namespace::place_in(root, &above);
        match self.layout {
            LibraryLayout::Wsl => write(&root.join("dev/dxg"), "")?,
            LibraryLayout::Jetson => {
                for node in ["nvmap", "nvhost-ctrl", "nvgpu/igpu0/ctrl"] {
                    write(&root.join("dev").join(node), "")?;
                }
                write(&root.join("etc/nv_tegra_release"), "# R36 (release), REVISION: 4.3, BOARD: generic\n")?;
            }
            LibraryLayout::Dir | LibraryLayout::System | LibraryLayout::Debian => {}
        }
        if let Some(compat) = &self.compat {
            self.write_library(compat, fakes, &root.join("usr-local/cuda/compat"))?;
            if self.compat_cached {
                cached = Some("/usr/local/cuda/compat".to_owned());
            } else {
                library_path.push("/usr/local/cuda/compat".into());
            }
        }
        for FakeFile { soname, file, source } in &self.files {
            copy(&fakes.library_from(source, soname)?, &system.join(file))?;
            link(file, &system.join(soname))?;
        }
        if let Some(library) = &self.library {
            match self.layout {
                LibraryLayout::Dir => {
                    self.write_library(library, fakes, &root.join("lib"))?;
                    library_path.push(root.join("lib"));
                }
                LibraryLayout::System => self.write_library(library, fakes, &system)?,
                LibraryLayout::Debian => {
                    self.write_library(library, fakes, &system.join("nvidia/current"))?;
                    for DriverLibrary { soname: name, .. } in parts_of(library) {
                        let alternative = format!("/etc/alternatives/nvidia--{name}-{ARCH}-linux-gnu");
                        link(&alternative, &system.join(name))?;
                        link(&format!("{above}/nvidia/current/{name}"), &root.join(&alternative[1..]))?;
                    }
                }
                LibraryLayout::Wsl => {
                    self.write_library(library, fakes, &root.join("usr-lib/wsl/lib"))?;
                    cached = Some("/usr/lib/wsl/lib".to_owned());
                }
                LibraryLayout::Jetson => {
                    self.write_library(library, fakes, &system.join("nvidia"))?;
                    cached = Some(format!("{above}/nvidia"));
                }
            }
        }
        if self.complete || cached.is_some() {
            let others = if self.complete { "include /etc/ld.so.conf" } else { "" };
            write(&root.join("ld.so.conf"), format!("{}\n{above}\n{others}\n", cached.unwrap_or_default()))?;
            create_dir(&root.join("etc"))?;
        }
        if self.complete && self.library.is_some() {
            copy(&fakes.program("nvidia-smi")?, &root.join("usr-bin/nvidia-smi"))?;
        }
        Ok(library_path)
    }

    /// Writes the files of the library to this directory.
    fn write_library(&self, library: &DriverLibraries, fakes: &Fakes, dir: &Path) -> Result<(), SimulationError> {
        let suffix = library.suffix.as_ref().unwrap_or(&library.release);
        for part in parts_of(library) {
            let name = part.soname;
            let stem = name.trim_end_matches(".1");
            let file = format!("{stem}.{suffix}");
            let target = dir.join(&file);
            match (stem, &library.real) {
                _ if library.manner == Manner::Empty => write(&target, "")?,
                ("libcuda.so" | "libnvidia-ml.so", Some(real)) => {
                    copy(&real.join(format!("{stem}.{}", library.release)), &target)?;
                }
                _ => copy(&fakes.library(&part)?, &target)?,
            }
            if file != name {
                link(&file, &dir.join(name))?;
            }
        }
        write(&dir.join("fake-driver"), self.configuration(library))
    }

    /// Returns the configuration of the fakes, which `fake.h` describes.
    fn configuration(&self, library: &DriverLibraries) -> String {
        let mut text = format!("{} {} {}", library.cuda, library.init, library.manner as u32);
        let driven: Vec<_> = self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.driven).collect();
        for (_, gpu) in &driven {
            let _ = write!(text, " {}", u32::from(gpu.cc.0) * 256 + u32::from(gpu.cc.1));
        }
        let _ = write!(text, "\nrelease {}\n", self.kernel.as_ref().unwrap_or(&library.release));
        if self.kernel.as_ref().is_some_and(|kernel| *kernel != library.release) {
            text.push_str("nvml 18\n");
        }
        if let Some(log) = &library.log {
            let _ = writeln!(text, "log {}", log.display());
        }
        if !self.fastest.is_empty() {
            let order: Vec<String> = self.fastest.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "order {}", order.join(" "));
        }
        if self.mps {
            text.push_str("mps\n");
        }
        for (call, status) in &library.failures {
            let _ = writeln!(text, "fail {call} {status}");
        }
        for (k, (n, gpu)) in driven.iter().enumerate() {
            let mig = if gpu.mig { Self::mig(*n) } else { "-".to_owned() };
            let _ = writeln!(text, "gpu {k} {} {} {mig} {}", gpu.uuid(*n), gpu.slot(*n), gpu.name);
            let _ = writeln!(text, "device {k} {}", gpu.id);
            if let Some(memory) = gpu.memory {
                let _ = writeln!(text, "memory {k} {memory}");
            }
            if let Some(state) = gpu.state {
                let _ = writeln!(text, "state {k} {}", state.name());
            }
        }
        text
    }
}

/// Returns the libraries of a driver.
fn parts_of(library: &DriverLibraries) -> Vec<DriverLibrary<'_>> {
    let mut parts =
        vec![("libcuda", "libcuda.so.1", library.note.as_deref()), ("libnvidia_ml", "libnvidia-ml.so.1", None)];
    if library.jit {
        parts.push(("empty", "libnvidia-ptxjitcompiler.so.1", None));
    }
    parts.into_iter().map(|(source, soname, note)| DriverLibrary { source, soname, cuda: library.cuda, note }).collect()
}

fn create_dir(dir: &Path) -> Result<(), SimulationError> {
    fs::create_dir_all(dir).map_err(|error| SimulationError::file(dir, error))
}

/// Creates the directory of a file.
fn create_parent(file: &Path) -> Result<(), SimulationError> {
    file.parent().map_or(Ok(()), create_dir)
}

fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), SimulationError> {
    create_parent(file)?;
    fs::write(file, text).map_err(|error| SimulationError::file(file, error))
}

fn copy(from: &Path, to: &Path) -> Result<(), SimulationError> {
    create_parent(to)?;
    fs::copy(from, to).map(drop).map_err(|error| SimulationError::file(to, error))
}

fn link(target: &str, link: &Path) -> Result<(), SimulationError> {
    create_parent(link)?;
    match symlink(target, link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(SimulationError::file(link, error)),
        _ => Ok(()),
    }
}
