//! Machines that are not there: any NVIDIA driver and any GPUs, before an unmodified program.
//!
//! A [`World`] says what a machine is, [`World::make`] lays it out in a folder, and [`Machine::call`] starts a program in a
//! mount namespace of its own, where `/proc/driver`, `/dev`, `/sys/bus/pci` and the libraries' folders are those of that
//! machine. The libraries are the fakes of `tests/fake_driver`, or NVIDIA's own ones of another machine.

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{Call, Scratch, layout, once, places, scratch, skip, tools};

/// A GPU, as the machine and as its driver know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "containers hide each of these by itself")]
pub struct Gpu {
    /// What the driver calls it.
    pub name: &'static str,
    /// Compute capability.
    pub cc: (u8, u8),
    /// PCI device id.
    pub id: u16,
    /// The number in `/dev/nvidia<minor>`; nothing: its place among the GPUs.
    pub minor: Option<usize>,
    /// In MIG mode, with one instance.
    pub mig: bool,
    /// Whether `/dev/nvidia<minor>` is there.
    pub node: bool,
    /// Whether `/proc/driver/nvidia/gpus` has it.
    pub listed: bool,
    /// Whether the driver hands it out to this process.
    pub driven: bool,
}

const fn gpu(name: &'static str, cc: (u8, u8), id: u16) -> Gpu {
    Gpu { name, cc, id, minor: None, mig: false, node: true, listed: true, driven: true }
}

/// 7.0.
pub const V100: Gpu = gpu("Tesla V100-SXM2-16GB", (7, 0), 0x1db1);
/// 7.5.
pub const T4: Gpu = gpu("Tesla T4", (7, 5), 0x1eb8);
/// 8.0.
pub const A100: Gpu = gpu("NVIDIA A100-SXM4-80GB", (8, 0), 0x20b2);
/// 8.6.
pub const A10: Gpu = gpu("NVIDIA A10", (8, 6), 0x2236);
/// 8.9, of the kind that no forward compatibility is for.
pub const RTX_4090: Gpu = gpu("NVIDIA GeForce RTX 4090", (8, 9), 0x2684);
/// 9.0.
pub const H100: Gpu = gpu("NVIDIA H100 80GB HBM3", (9, 0), 0x2330);
/// 8.7, the GPU inside a Jetson: on no PCI bus.
pub const ORIN: Gpu = Gpu { node: false, listed: false, ..gpu("Orin (nvgpu)", (8, 7), 0) };
/// 12.0, which needs the open kernel modules.
pub const RTX_5090: Gpu = gpu("NVIDIA GeForce RTX 5090", (12, 0), 0x2b85);
/// Of a generation that no table knows.
pub const NEWS: Gpu = gpu("NVIDIA News", (13, 0), 0x3f00);

/// What a fake libcuda does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It answers.
    Works,
    /// cuInit aborts.
    Crashes,
    /// cuInit never returns.
    Hangs,
    /// cuInit writes to stdout and stderr.
    Talks,
    /// Aborts while it is loaded.
    CrashesEarly,
    /// Hangs while it is loaded.
    HangsEarly,
    /// cuInit ends the process, with status 3.
    Ends,
    /// There is none: its files are empty, as in a container's image where the host's should have been mounted.
    Empty,
}

/// The user's side of a driver: libcuda and what belongs to it.
#[derive(Clone, Debug)]
pub struct Library {
    /// Of the driver: `535.261.03`.
    pub release: &'static str,
    /// What `cuDriverGetVersion` answers: 12020.
    pub cuda: u32,
    /// What `cuInit` answers.
    pub init: u32,
    /// How it behaves.
    pub manner: Manner,
    /// What stands behind `libcuda.so.` in the file's name; nothing: the release.
    pub suffix: Option<&'static str>,
    /// Whether libnvidia-ptxjitcompiler is there.
    pub jit: bool,
    /// The JSON text of its note of forward compatibility.
    pub note: Option<&'static str>,
    /// A file that gets a line at each `cuInit`.
    pub log: Option<PathBuf>,
    /// NVIDIA's own `libcuda.so.<release>` and `libnvidia-ml.so.<release>` in this folder, in place of the fakes.
    pub real: Option<PathBuf>,
}

impl Library {
    /// One that works.
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
}

/// Where the libraries lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In a folder of their own, which `LD_LIBRARY_PATH` names.
    Folder,
    /// In the system's folder: NVIDIA's `.run` installer, and what its container toolkit mounts.
    System,
    /// Debian's: `nvidia/current/` below the system's folder, by way of `/etc/alternatives`.
    Debian,
    /// WSL2's: `/usr/lib/wsl/lib`, in the loader's cache; `/dev/dxg`.
    Wsl,
    /// A Jetson's: `nvidia/` below the system's folder, in the loader's cache; `/dev/nvmap` and `/etc/nv_tegra_release`.
    Jetson,
}

/// A machine, or what a container shows of it.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "machines differ in each of these by itself")]
pub struct World {
    /// The release in `/proc/driver/nvidia/version`; nothing: there is no `/proc/driver/nvidia`.
    pub kernel: Option<&'static str>,
    /// Whether the kernel module is the open one, which words that file otherwise.
    pub open: bool,
    /// Whether `/proc/driver/nvidia` is there and empty.
    pub empty: bool,
    /// Whether `/proc` is there at all.
    pub proc: bool,
    /// The user's side; nothing: there is no libcuda.
    pub library: Option<Library>,
    /// Of cuda-compat, in `/usr/local/cuda/compat`, which `LD_LIBRARY_PATH` names.
    pub compat: Option<Library>,
    /// Whether the loader's cache names that folder instead, as NVIDIA's container toolkit does it.
    pub compat_cached: bool,
    /// Where the libraries lie.
    pub layout: Layout,
    /// In the order of the bus.
    pub gpus: Vec<Gpu>,
    /// The same by their numbers, fastest first; nothing: as on the bus.
    pub fastest: Vec<usize>,
}

impl World {
    /// One driver, both sides of it, and these GPUs.
    pub fn new(release: &'static str, cuda: u32, gpus: &[Gpu]) -> Self {
        Self {
            kernel: Some(release),
            open: true,
            empty: false,
            proc: true,
            library: Some(Library::new(release, cuda)),
            compat: None,
            compat_cached: false,
            layout: Layout::System,
            gpus: gpus.to_vec(),
            fastest: Vec::new(),
        }
    }

    /// Nothing of NVIDIA.
    pub fn bare() -> Self {
        Self { kernel: None, library: None, ..Self::new("", 0, &[]) }
    }

    /// The same with its library changed.
    #[must_use]
    pub fn library(mut self, change: impl FnOnce(&mut Library)) -> Self {
        change(self.library.as_mut().expect("it has a library"));
        self
    }

    /// The same with each GPU changed.
    #[must_use]
    pub fn each(mut self, change: impl Fn(usize, &mut Gpu)) -> Self {
        self.gpus.iter_mut().enumerate().for_each(|(n, gpu)| change(n, gpu));
        self
    }

    /// The UUID of this GPU.
    pub fn uuid(n: usize) -> String {
        format!("GPU-{0:08x}-0000-4000-8000-{0:012x}", n + 1)
    }

    /// The UUID of the MIG instance in this GPU.
    pub fn mig(n: usize) -> String {
        format!("MIG-{0:08x}-0000-5000-8000-{0:012x}", n + 1)
    }

    /// Lays it out in this folder, which must outlive it.
    pub fn make(&self, root: &Path) -> Machine {
        let machine = Machine { root: root.to_owned(), proc: self.proc, overlays: true, library_path: Vec::new() };
        self.make_kernel(root);
        for node in ["null", "zero", "full", "random", "urandom"] {
            scratch::write(&root.join("dev").join(node), "");
        }
        fs::create_dir_all(root.join("dev/shm")).expect("a folder can be made");
        let fd = root.join("dev/fd");
        if !fd.is_symlink() {
            std::os::unix::fs::symlink("/proc/self/fd", fd).expect("a link can be made");
        }
        self.make_libraries(machine)
    }

    fn make_kernel(&self, root: &Path) {
        for folder in ["driver", "pci/devices"] {
            fs::create_dir_all(root.join(folder)).expect("a folder can be made");
        }
        if self.empty {
            fs::create_dir_all(root.join("driver/nvidia")).expect("a folder can be made");
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
            fs::create_dir_all(root.join("driver/nvidia/gpus")).expect("a folder can be made");
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
            // WSL2 and Jetsons show no GPU on the bus.
            if gpu.id != 0 && self.layout != Layout::Wsl {
                for (file, text) in [("vendor", "0x10de".to_owned()), ("device", format!("{:#06x}", gpu.id))] {
                    scratch::write(&root.join(format!("pci/devices/{slot}/{file}")), format!("{text}\n"));
                }
            }
            if gpu.node && self.layout != Layout::Wsl {
                for node in [format!("nvidia{minor}"), "nvidiactl".to_owned(), "nvidia-uvm".to_owned()] {
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
            Layout::Folder | Layout::System | Layout::Debian => {}
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
            Layout::Folder => {
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
        if let Some(folder) = cached {
            scratch::write(&root.join("ld.so.conf"), format!("{folder}\n{above}\n"));
            fs::create_dir_all(root.join("etc")).expect("a folder can be made");
        }
        machine
    }

    /// The library's files in this folder.
    fn lay(&self, library: &Library, folder: &Path) {
        let suffix = library.suffix.unwrap_or(library.release);
        for name in sonames(library) {
            let stem = name.strip_suffix(".1").expect("all are of major 1");
            let file = format!("{stem}.{suffix}");
            let target = folder.join(&file);
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
                layout::link(Path::new(&file), &folder.join(&name));
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
        scratch::write(&folder.join("fake-driver"), text);
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

/// One of the libraries of `tests/fake_driver`, compiled once; an empty one where it is called nothing.
fn fake(source: &str, soname: &str, note: Option<&str>) -> Vec<u8> {
    once(&format!("fake driver {soname} {}", note.unwrap_or_default()), || {
        let work = Scratch::new("fake-driver");
        let folder = places::workspace().join("tests/fake_driver");
        let empty = work.file("empty.c", "extern int fake_driver;\n");
        let file = if source.is_empty() { empty } else { folder.join(format!("{source}.c")) };
        let mut call = Call::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-Wl,-soname,{soname}"));
        if let Some(note) = note {
            // A string in C whose text is a string in assembly.
            call = call.arg(format!("-DCOMPAT_NOTE=\"{}\"", note.replace('"', r#"\\\""#)));
        }
        let _ = call.arg("-o").arg(work.join("made.so")).arg(file).arg("-ldl").run().success();
        fs::read(work.join("made.so")).expect("the compiler made it")
    })
}

/// A world that is laid out.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    proc: bool,
    overlays: bool,
    /// What `LD_LIBRARY_PATH` names on it; a program may need more.
    pub library_path: Vec<PathBuf>,
}

impl Machine {
    /// A call of this program on the machine, with these variables beside its own library path.
    pub fn call(&self, program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        self.under(&[], program, variables)
    }

    /// The same, started by this tool: `strace -f`.
    pub fn under(&self, tool: &[&str], program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        // The variables are the program's alone, not those of what makes the namespace.
        let given = variables.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let named = variables.iter().any(|(name, _)| *name == "LD_LIBRARY_PATH");
        let path = std::env::join_paths(&self.library_path).expect("paths without colons");
        let path = (!named && !path.is_empty()).then(|| {
            let mut text = OsString::from("LD_LIBRARY_PATH=");
            text.push(path);
            text
        });
        let yes = |is: bool| if is { "yes" } else { "no" };
        let mut call = Call::new("unshare").args(["-r", "-m"]).arg(beside("enter-world")).arg(&self.root);
        call = call.args([self.proc, self.overlays].map(yes));
        let given = given.chain(path);
        // Nor are they the tool's.
        call =
            if tool.is_empty() { call.args(given).arg("--") } else { call.arg("--").args(tool).arg("env").args(given) };
        call.arg(program.as_ref())
    }

    /// The same as on a kernel that lets users mount no overlays.
    #[must_use]
    pub fn without_overlays(self) -> Self {
        Self { overlays: false, ..self }
    }

    /// The folder that it is laid out in.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// A program of this package: cargo builds them before what is tested or measured, and puts that one folder further down.
fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program has a file");
    let folders = own.ancestors().skip(1);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file()).expect("it was built")
}

/// What a machine without them lacks, in most cases.
pub const NAMESPACES: &str =
    "a kernel that lets users make them (sysctl user.max_user_namespaces, and in a container its seccomp profile)";

/// Skips, by name, where this user may make no such namespace.
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
