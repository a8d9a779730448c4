//! Simulated machines: an unmodified program runs with any NVIDIA driver and any GPUs.
//!
//! A [`World`] describes a machine, [`World::make`] creates its files in a directory, and [`Machine::call`] starts a
//! program in a new mount namespace in which `/proc/driver`, `/dev`, `/sys/bus/pci` and the library directories are
//! those of that machine. The libraries are the fakes of `tests/fake_driver`, or real NVIDIA libraries.

use std::collections::VecDeque;
use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudaguard::internal::tables;

use crate::{Call, Scratch, layout, once, places, scratch, skip, tools};

/// A GPU with the properties that the machine and its driver report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "containers hide each of these by itself")]
pub struct Gpu {
    /// The name that the driver reports.
    pub name: &'static str,
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
}

const fn gpu(name: &'static str, cc: (u8, u8), id: u16) -> Gpu {
    Gpu { name, cc, id, minor: None, mig: false, node: true, listed: true, driven: true }
}

/// Compute capability 7.0.
pub const V100: Gpu = gpu("Tesla V100-SXM2-16GB", (7, 0), 0x1db1);
/// Compute capability 7.5.
pub const T4: Gpu = gpu("Tesla T4", (7, 5), 0x1eb8);
/// Compute capability 8.0.
pub const A100: Gpu = gpu("NVIDIA A100-SXM4-80GB", (8, 0), 0x20b2);
/// Compute capability 8.6.
pub const A10: Gpu = gpu("NVIDIA A10", (8, 6), 0x2236);
/// Compute capability 8.9. CUDA forward compatibility does not support GPUs of this type.
pub const RTX_4090: Gpu = gpu("NVIDIA GeForce RTX 4090", (8, 9), 0x2684);
/// Compute capability 9.0.
pub const H100: Gpu = gpu("NVIDIA H100 80GB HBM3", (9, 0), 0x2330);
/// Compute capability 8.7, the GPU of a Jetson: it is not on a PCI bus.
pub const ORIN: Gpu = Gpu { node: false, listed: false, ..gpu("Orin (nvgpu)", (8, 7), 0) };
/// Compute capability 12.0, which needs the open kernel modules.
pub const RTX_5090: Gpu = gpu("NVIDIA GeForce RTX 5090", (12, 0), 0x2b85);
/// A GPU of a generation that is in no table.
pub const NEWS: Gpu = gpu("NVIDIA News", (13, 0), 0x3f00);

/// The names of GPUs in options.
const GPUS: [(&str, Gpu); 9] = [
    ("V100", V100),
    ("T4", T4),
    ("A100", A100),
    ("A10", A10),
    ("A10-24Q", Gpu { name: "NVIDIA A10-24Q", ..A10 }),
    ("RTX4090", RTX_4090),
    ("H100", H100),
    ("RTX5090", RTX_5090),
    ("News", NEWS),
];

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
pub struct Library {
    /// The release of the driver: `535.261.03`.
    pub release: &'static str,
    /// The result of `cuDriverGetVersion`: 12020.
    pub cuda: u32,
    /// The result of `cuInit`.
    pub init: u32,
    /// The behavior of libcuda.
    pub manner: Manner,
    /// The part of the file name after `libcuda.so.`; `None` means the release.
    pub suffix: Option<&'static str>,
    /// Set if libnvidia-ptxjitcompiler exists.
    pub jit: bool,
    /// The JSON text of its forward compatibility note.
    pub note: Option<&'static str>,
    /// A file to which each `cuInit` adds a line.
    pub log: Option<PathBuf>,
    /// A directory with NVIDIA's `libcuda.so.<release>` and `libnvidia-ml.so.<release>`, which replace the fakes.
    pub real: Option<PathBuf>,
}

impl Library {
    /// Returns a library that works.
    pub fn new(release: &'static str, cuda: u32) -> Self {
        Self {
            release,
            cuda,
            init: 0,
            manner: Manner::Works,
            suffix: None,
            jit: true,
            note: None,
            log: None,
            real: None,
        }
    }

    /// Returns a library of this driver release, with the CUDA version that it supports.
    fn of_release(release: String) -> Option<Self> {
        let cuda = tables::driver_supports(release.parse().ok()?).least?;
        Some(Self::new(release.leak(), cuda.major * 1000 + cuda.minor * 10))
    }
}

/// The location of the libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
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

/// A machine, or the part of it that is visible in a container.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "machines differ in each of these by itself")]
pub struct World {
    /// The release in `/proc/driver/nvidia/version`; `None`: `/proc/driver/nvidia` does not exist.
    pub kernel: Option<&'static str>,
    /// Set if the kernel module is the open one, whose version file has another text.
    pub open: bool,
    /// Set if `/proc/driver/nvidia` exists and is empty.
    pub empty: bool,
    /// Set if `/proc` exists.
    pub proc: bool,
    /// Set if `/dev/nvidia-uvm` exists.
    pub uvm: bool,
    /// The user-mode part of the driver; `None`: libcuda does not exist.
    pub library: Option<Library>,
    /// The cuda-compat library in `/usr/local/cuda/compat`, which is in `LD_LIBRARY_PATH`.
    pub compat: Option<Library>,
    /// Set if the loader cache contains that directory instead, as with NVIDIA's container toolkit.
    pub compat_cached: bool,
    /// The location of the libraries.
    pub layout: Layout,
    /// The GPUs in the order of the bus.
    pub gpus: Vec<Gpu>,
    /// The indices of the GPUs, fastest first; empty means the order of the bus.
    pub fastest: Vec<usize>,
}

impl World {
    /// Creates a machine with one driver, both parts of it, and these GPUs.
    pub fn new(release: &'static str, cuda: u32, gpus: &[Gpu]) -> Self {
        Self {
            kernel: Some(release),
            open: true,
            empty: false,
            proc: true,
            uvm: true,
            library: Some(Library::new(release, cuda)),
            compat: None,
            compat_cached: false,
            layout: Layout::System,
            gpus: gpus.to_vec(),
            fastest: Vec::new(),
        }
    }

    /// Creates a machine without any NVIDIA files.
    pub fn bare() -> Self {
        Self { kernel: None, library: None, ..Self::new("", 0, &[]) }
    }

    /// Takes the options of a machine up to `--`, or all of them, see `tests/bin/simulate.rs`. `None` if one is wrong.
    pub fn from_options(words: &mut VecDeque<String>) -> Option<Self> {
        let (mut world, mut libcuda, mut compat) = (Self::bare(), None, false);
        while let Some(option) = words.pop_front() {
            match option.as_str() {
                "--" => break,
                "--driver" => {
                    let library = Library::of_release(words.pop_front()?)?;
                    world.kernel = Some(library.release);
                    world.library = Some(library);
                }
                "--libcuda" => libcuda = Some(Library::of_release(words.pop_front()?)?),
                "--compat" => compat = true,
                "--compat-cached" => (compat, world.compat_cached) = (true, true),
                "--gpu" => {
                    let name = words.pop_front()?;
                    world.gpus.push(GPUS.iter().find(|(known, _)| *known == name)?.1);
                }
                "--proprietary" => world.open = false,
                "--wsl" => (world.layout, world.kernel) = (Layout::Wsl, None),
                "--init" => {
                    let status = words.pop_front()?.parse().ok()?;
                    libcuda.as_mut().or(world.library.as_mut())?.init = status;
                }
                "--no-jit" => world.library.as_mut()?.jit = false,
                "--crashes" => world.library.as_mut()?.manner = Manner::Crashes,
                "--no-uvm" => world.uvm = false,
                _ => return None,
            }
        }
        if compat {
            world.compat = libcuda;
        } else if libcuda.is_some() {
            world.library = libcuda;
        }
        Some(world)
    }

    /// Changes the library.
    #[must_use]
    pub fn library(mut self, change: impl FnOnce(&mut Library)) -> Self {
        change(self.library.as_mut().expect("it has a library"));
        self
    }

    /// Changes each GPU.
    #[must_use]
    pub fn each(mut self, change: impl Fn(usize, &mut Gpu)) -> Self {
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

    /// Creates the files of the machine in this directory, which must outlive the result.
    pub fn make(&self, root: &Path) -> Machine {
        let machine = Machine { root: root.to_owned(), proc: self.proc, library_path: Vec::new() };
        self.make_kernel(root);
        for node in ["null", "zero", "full", "random", "urandom"] {
            scratch::write(&root.join("dev").join(node), "");
        }
        fs::create_dir_all(root.join("dev/shm")).expect("a directory can be made");
        let fd = root.join("dev/fd");
        if !fd.is_symlink() {
            std::os::unix::fs::symlink("/proc/self/fd", fd).expect("a link can be made");
        }
        self.make_libraries(machine)
    }

    fn make_kernel(&self, root: &Path) {
        for dir in ["driver", "pci/devices"] {
            fs::create_dir_all(root.join(dir)).expect("a directory can be made");
        }
        if self.empty {
            fs::create_dir_all(root.join("driver/nvidia")).expect("a directory can be made");
        }
        let seen = self.kernel.filter(|_| !self.empty);
        if let Some(kernel) = seen {
            let module = if self.open {
                format!("Open Kernel Module for {ARCH}  {kernel}  Release Build  (root@host)")
            } else {
                format!("{ARCH} Kernel Module  {kernel}")
            };
            let date = "Mon Sep  1 10:00:00 UTC 2026";
            scratch::write(
                &root.join("driver/nvidia/version"),
                format!(
                    "NVRM version: NVIDIA UNIX {module}  {date}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
                ),
            );
            fs::create_dir_all(root.join("driver/nvidia/gpus")).expect("a directory can be made");
        }
        for (n, gpu) in self.gpus.iter().enumerate() {
            let (slot, minor, uuid) = (slot(n), gpu.minor.unwrap_or(n), Self::uuid(n));
            if seen.is_some() && gpu.listed {
                scratch::write(
                    &root.join(format!("driver/nvidia/gpus/{slot}/information")),
                    format!(
                        "Model: \t\t {}\nIRQ:   \t\t 42\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.5e.00.01\nBus Type: \t \
                         PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t {slot}\nDevice Minor: \
                         \t {minor}\nGPU Firmware: \t {}\nGPU Excluded:\t No\n",
                        gpu.name,
                        self.kernel.unwrap_or_default()
                    ),
                );
            }
            // WSL2 and Jetsons show no GPU on the PCI bus.
            if gpu.id != 0 && self.layout != Layout::Wsl {
                for (file, text) in [("vendor", "0x10de".to_owned()), ("device", format!("{:#06x}", gpu.id))] {
                    scratch::write(&root.join(format!("pci/devices/{slot}/{file}")), format!("{text}\n"));
                }
            }
            if gpu.node && self.layout != Layout::Wsl {
                let uvm = self.uvm.then(|| "nvidia-uvm".to_owned());
                for node in [format!("nvidia{minor}"), "nvidiactl".to_owned()].into_iter().chain(uvm) {
                    scratch::write(&root.join("dev").join(node), "");
                }
            }
        }
    }

    fn make_libraries(&self, mut machine: Machine) -> Machine {
        let root = machine.root.clone();
        let system = root.join(format!("usr-lib/{ARCH}-linux-gnu"));
        let above = format!("/usr/lib/{ARCH}-linux-gnu");
        let mut cached = None;
        match self.layout {
            Layout::Wsl => scratch::write(&root.join("dev/dxg"), ""),
            Layout::Jetson => {
                for node in ["nvmap", "nvhost-ctrl", "nvgpu/igpu0/ctrl"] {
                    scratch::write(&root.join("dev").join(node), "");
                }
                scratch::write(&root.join("etc/nv_tegra_release"), "# R36 (release), REVISION: 4.3, BOARD: generic\n");
            }
            Layout::Dir | Layout::System | Layout::Debian => {}
        }
        if let Some(compat) = &self.compat {
            self.lay(compat, &root.join("usr-local/cuda/compat"));
            if self.compat_cached {
                cached = Some("/usr/local/cuda/compat".to_owned());
            } else {
                machine.library_path.push("/usr/local/cuda/compat".into());
            }
        }
        let Some(library) = &self.library else { return machine };
        match self.layout {
            Layout::Dir => {
                self.lay(library, &root.join("lib"));
                machine.library_path.push(root.join("lib"));
            }
            Layout::System => self.lay(library, &system),
            Layout::Debian => {
                self.lay(library, &system.join("nvidia/current"));
                for name in sonames(library) {
                    let alternative = format!("/etc/alternatives/nvidia--{name}-{ARCH}-linux-gnu");
                    layout::link(Path::new(&alternative), &system.join(&name));
                    let file = format!("{above}/nvidia/current/{name}");
                    layout::link(Path::new(&file), &root.join(&alternative[1..]));
                }
            }
            Layout::Wsl => {
                self.lay(library, &root.join("usr-lib/wsl/lib"));
                cached = Some("/usr/lib/wsl/lib".to_owned());
            }
            Layout::Jetson => {
                self.lay(library, &system.join("nvidia"));
                cached = Some(format!("{above}/nvidia"));
            }
        }
        if let Some(dir) = cached {
            scratch::write(&root.join("ld.so.conf"), format!("{dir}\n{above}\n"));
            fs::create_dir_all(root.join("etc")).expect("a directory can be made");
        }
        machine
    }

    /// Writes the files of the library to this directory.
    fn lay(&self, library: &Library, dir: &Path) {
        let suffix = library.suffix.unwrap_or(library.release);
        for name in sonames(library) {
            let stem = name.strip_suffix(".1").expect("all are of major 1");
            let file = format!("{stem}.{suffix}");
            let target = dir.join(&file);
            match (stem, &library.real) {
                _ if library.manner == Manner::Empty => scratch::write(&target, ""),
                ("libcuda.so" | "libnvidia-ml.so", Some(real)) => {
                    scratch::write(&target, "");
                    fs::copy(real.join(format!("{stem}.{}", library.release)), &target).expect("a file can be copied");
                }
                ("libcuda.so", None) => scratch::write(&target, fake("libcuda", &name, library.note)),
                ("libnvidia-ml.so", None) => scratch::write(&target, fake("libnvidia_ml", &name, None)),
                _ => scratch::write(&target, fake("", &name, None)),
            }
            if file != name {
                layout::link(Path::new(&file), &dir.join(&name));
            }
        }
        let mut text = format!("{} {} {}", library.cuda, library.init, library.manner as u32);
        let driven: Vec<_> = self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.driven).collect();
        for (_, gpu) in &driven {
            let _ = write!(text, " {}", u32::from(gpu.cc.0) * 256 + u32::from(gpu.cc.1));
        }
        let _ = write!(text, "\nrelease {}\n", self.kernel.unwrap_or(library.release));
        if self.kernel.is_some_and(|kernel| kernel != library.release) {
            text.push_str("nvml 18\n");
        }
        if let Some(log) = &library.log {
            let _ = writeln!(text, "log {}", log.display());
        }
        if !self.fastest.is_empty() {
            let order: Vec<String> = self.fastest.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "order {}", order.join(" "));
        }
        for (k, (n, gpu)) in driven.iter().enumerate() {
            let mig = if gpu.mig { Self::mig(*n) } else { "-".to_owned() };
            let _ = writeln!(text, "gpu {k} {} {} {mig} {}", Self::uuid(*n), slot(*n), gpu.name);
        }
        scratch::write(&dir.join("fake-driver"), text);
    }
}

fn slot(n: usize) -> String {
    format!("0000:{:02x}:00.0", n + 1)
}

fn sonames(library: &Library) -> Vec<String> {
    let mut names = vec!["libcuda.so.1".to_owned(), "libnvidia-ml.so.1".to_owned()];
    if library.jit {
        names.push("libnvidia-ptxjitcompiler.so.1".to_owned());
    }
    names
}

/// Returns one of the libraries of `tests/fake_driver`, compiled once. An empty `source` gives an empty library.
fn fake(source: &str, soname: &str, note: Option<&str>) -> Vec<u8> {
    once(&format!("fake driver {soname} {}", note.unwrap_or_default()), || {
        let work = Scratch::new("fake-driver");
        let dir = places::workspace().join("tests/fake_driver");
        let empty = work.file("empty.c", "extern int fake_driver;\n");
        let file = if source.is_empty() { empty } else { dir.join(format!("{source}.c")) };
        let mut call = Call::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-Wl,-soname,{soname}"));
        if let Some(note) = note {
            // A C string literal that contains an assembly string literal.
            call = call.arg(format!("-DCOMPAT_NOTE=\"{}\"", note.replace('"', r#"\\\""#)));
        }
        let _ = call.arg("-o").arg(work.join("made.so")).arg(file).arg("-ldl").run().success();
        fs::read(work.join("made.so")).expect("the compiler made it")
    })
}

/// A machine whose files were created.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    proc: bool,
    /// The value of `LD_LIBRARY_PATH` on the machine; a program may need more directories.
    pub library_path: Vec<PathBuf>,
}

impl Machine {
    /// Returns a call of this program on the machine, with these variables in addition to its library path.
    pub fn call(&self, program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        self.under(&[], program, variables)
    }

    /// Returns a call that a tool such as `strace -f` starts.
    pub fn under(&self, tool: &[&str], program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        // Only the program gets the variables, not the tool that creates the namespace.
        let given = variables.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let named = variables.iter().any(|(name, _)| *name == "LD_LIBRARY_PATH");
        let path = std::env::join_paths(&self.library_path).expect("paths without colons");
        let path = (!named && !path.is_empty()).then(|| {
            let mut text = OsString::from("LD_LIBRARY_PATH=");
            text.push(path);
            text
        });
        let mut call = Call::new("unshare").args(["-r", "-m"]).arg(sibling("enter-world")).arg(&self.root);
        call = call.arg(if self.proc { "yes" } else { "no" });
        let given = given.chain(path);
        // The tool does not get them either.
        call =
            if tool.is_empty() { call.args(given).arg("--") } else { call.arg("--").args(tool).arg("env").args(given) };
        call.arg(program.as_ref())
    }

    /// Returns the directory with the files of the machine.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Returns the path of a program of this package: cargo builds them before tests and benchmarks, which are one
/// directory below them.
pub fn sibling(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program has a file");
    let dirs = own.ancestors().skip(1);
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file()).expect("it was built")
}

/// The instruction for machines on which users cannot create namespaces.
pub const NAMESPACES: &str =
    "a kernel that lets users make them (sysctl user.max_user_namespaces, and in a container its seccomp profile)";

/// Skips the test if this user may not create such a namespace.
pub fn need() {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    tools::need("unshare");
    let answer = ANSWER.get_or_init(|| {
        let scratch = Scratch::new("world");
        let outcome =
            World { layout: Layout::Wsl, ..World::new("1.1", 1, &[T4]) }.make(&scratch).call("true", &[]).run();
        if outcome.status() == Some(0) { Ok(()) } else { Err(outcome.stderr.trim().to_owned()) }
    });
    if let Err(why) = answer {
        eprintln!("no mount namespaces here: {why}");
        skip("mount namespaces", NAMESPACES);
    }
}
