//! Driver and GPU: checks verdict and codes for requirements on a machine, by the judge and by started programs. Each machine is a
//! mount namespace with its own `/proc/driver`, `/dev` and `/sys/bus/pci`, and with a fake libcuda whose results are configured.
//! The program and its guard are the ones that users build.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cargo_cudaguard::host::machine::judge::judge;
use cargo_cudaguard::host::machine::{Driver, Gpu, HostLibrary, LibraryState, LoaderVersion, Machine as Described};
use cargo_cudaguard::knowledge::vendor::{self, CUDNN};
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::cudnn;
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, RecordedCudart, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};
use cudaguard_tests::{Call, Dice, Outcome, Scratch, e2e, last_report, places, skip, sorted_codes, tools, world};

use super::fixture::{AARCH64, Arch, NATIVE, Says, descriptor, is_short, manifest, version};

#[e2e]
fn judges_agree_on_a_third() {
    drive(&NATIVE, &written().into_iter().step_by(3).collect::<Vec<_>>());
}

#[e2e(slow)]
fn judges_agree() {
    drive(&NATIVE, &written());
}

/// An emulator starts these programs. The judge is the same code.
#[e2e(slow)]
fn judges_agree_on_aarch64() {
    AARCH64.need();
    drive(&AARCH64, &written().into_iter().step_by(8).collect::<Vec<_>>());
}

const K80: (u8, u8, &str) = (3, 7, "0x102d");
const V100: (u8, u8, &str) = (7, 0, "0x1db4");
pub(crate) const T4: (u8, u8, &str) = (7, 5, "0x1eb8");
const A100: (u8, u8, &str) = (8, 0, "0x20b5");
const A10: (u8, u8, &str) = (8, 6, "0x2236");
pub(crate) const H100: (u8, u8, &str) = (9, 0, "0x2330");
const B200: (u8, u8, &str) = (10, 0, "0x2901");
/// A GPU of a generation that is in no table.
const NEWS: (u8, u8, &str) = (13, 0, "0x3f00");
/// The names of GPUs in the table of cases.
const GPUS: [(&str, (u8, u8, &str)); 8] = [
    ("K80", K80),
    ("V100", V100),
    ("T4", T4),
    ("A100", A100),
    ("A10", A10),
    ("H100", H100),
    ("B200", B200),
    ("NEWS", NEWS),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Works = 0,
    Crashes = 1,
    Talks = 3,
}

/// A fake libcuda.
#[derive(Clone, Debug)]
struct Lib {
    release: &'static str,
    cuda: u32,
    init: u32,
    manner: Manner,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Release of the kernel module; `None` if `/proc/driver/nvidia` is not visible.
    kernel: Option<&'static str>,
    lib: Option<Lib>,
    gpus: Vec<(u8, u8, &'static str)>,
    /// Set if `/dev/nvidia<minor>` exists.
    nodes: bool,
    /// `nvidiactl` or `nvidia-uvm`, if this device is missing.
    missing_node: &'static str,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    /// Set if the library that compiles PTX is installed.
    compiler: bool,
    /// The version in the file name of a cuDNN.
    cudnn: Option<&'static str>,
    /// The CUDA release of the cudart inside cuDNN, as the code of its sub-library returns it.
    made_with: Option<u32>,
    /// The version in the file name of the shared libcudart 12 that the program is linked to. "12" is the name in pip's packages.
    pub(crate) cudart: Option<&'static str>,
}

fn machine(release: &'static str, cuda: u32, gpus: &[(u8, u8, &'static str)]) -> Machine {
    Machine {
        kernel: Some(release),
        lib: Some(Lib { release, cuda, init: 0, manner: Manner::Works }),
        gpus: gpus.to_vec(),
        nodes: true,
        compiler: true,
        ..bare()
    }
}

pub(crate) fn r535(gpus: &[(u8, u8, &'static str)]) -> Machine {
    machine("535.261.03", 12020, gpus)
}

fn r580(gpus: &[(u8, u8, &'static str)]) -> Machine {
    machine("580.95.05", 13000, gpus)
}

/// Returns a machine without any NVIDIA software or GPU.
fn bare() -> Machine {
    Machine {
        kernel: None,
        lib: None,
        gpus: Vec::new(),
        nodes: false,
        missing_node: "",
        variables: Vec::new(),
        compiler: false,
        cudnn: None,
        made_with: None,
        cudart: None,
    }
}

impl Machine {
    fn lib(mut self, change: impl FnOnce(&mut Lib)) -> Self {
        change(self.lib.as_mut().expect("a library"));
        self
    }

    fn init(self, init: u32) -> Self {
        self.lib(|lib| lib.init = init)
    }

    fn manner(self, manner: Manner) -> Self {
        self.lib(|lib| lib.manner = manner)
    }

    fn value(&self, name: &str) -> Option<&'static str> {
        self.variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value)
    }

    /// Writes the files of the machine to this directory.
    fn build(&self, arch: &Arch, root: &Path) {
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a directory can be made");
            fs::write(path, text).expect("a file can be written");
        };
        for dir in ["driver", "dev", "pci/devices", "lib"] {
            fs::create_dir_all(root.join(dir)).expect("a directory can be made");
        }
        write("dev/null", "");
        if let Some(kernel) = self.kernel {
            write(
                "driver/nvidia/version",
                &format!(
                    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {kernel}  Release Build  (root@host)  Mon \
                     Sep  1 10:00:00 UTC 2026\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
                ),
            );
        }
        for (n, (_, _, id)) in self.gpus.iter().enumerate() {
            let slot = format!("0000:{:02x}:00.0", n + 1);
            if self.kernel.is_some() {
                write(
                    &format!("driver/nvidia/gpus/{slot}/information"),
                    &format!(
                        "Model: \t\t NVIDIA GPU\nIRQ:   \t\t 42\nGPU UUID: \t GPU-{n}\nBus Location: \t \
                         {slot}\nDevice Minor: \t {n}\nGPU Excluded:\t No\n"
                    ),
                );
            }
            write(&format!("pci/devices/{slot}/device"), &format!("{id}\n"));
            if self.nodes {
                write(&format!("dev/nvidia{n}"), "");
            }
        }
        if self.nodes {
            for node in ["nvidiactl", "nvidia-uvm"].iter().filter(|node| **node != self.missing_node) {
                write(&format!("dev/{node}"), "");
            }
        }
        if let Some(lib) = &self.lib {
            let file = format!("libcuda.so.{}", lib.release);
            fs::write(root.join("lib").join(&file), fake(arch)).expect("a file can be written");
            std::os::unix::fs::symlink(&file, root.join("lib/libcuda.so.1")).expect("a link can be made");
            let mut text = format!("{} {} {}", lib.cuda, lib.init, lib.manner as u32);
            for (major, minor, _) in &self.gpus {
                let _ = write!(text, " {}", u32::from(*major) * 256 + u32::from(*minor));
            }
            write("lib/fake-driver", &text);
        }
        if self.compiler {
            let path = root.join("lib/libnvidia-ptxjitcompiler.so.1");
            fs::write(path, fake(arch)).expect("a file can be written");
        }
        if let Some(cudnn) = self.cudnn {
            let file = format!("libcudnn.so.{cudnn}");
            arch.loader(&root.join("lib").join(&file), version(cudnn).major, Says::Nothing);
            let soname = format!("lib/libcudnn.so.{}", version(cudnn).major);
            std::os::unix::fs::symlink(&file, root.join(soname)).expect("a link can be made");
            if let Some(cuda) = self.made_with {
                arch.part_made_with(&root.join("lib").join(GRAPH), "cudnn_graph_version", version(cudnn), cuda);
            }
        }
        if let Some(cudart) = self.cudart {
            let file = format!("libcudart.so.{cudart}");
            arch.library_of(CUDART, &root.join("lib").join(&file));
            if file != CUDART {
                std::os::unix::fs::symlink(&file, root.join("lib").join(CUDART)).expect("a link can be made");
            }
        }
    }

    /// Returns true if the driver does not respond, because it crashes.
    pub(crate) fn is_silent(&self) -> bool {
        self.lib.as_ref().is_some_and(|lib| lib.manner == Manner::Crashes)
    }

    /// Returns the facts of the machine.
    pub(crate) fn described(&self) -> Described {
        let cudnn = self.cudnn.map(|found| HostLibrary {
            version: Some(version(found)),
            loader: LoaderVersion::Version(version(found)),
            cuda: self.made_with.map(CudaVersion::from_int),
            taken: true,
            ..HostLibrary::default()
        });
        let cudart = self.cudart.map(|file| HostLibrary {
            soname: Some(CUDART.to_owned()),
            version: file.contains('.').then(|| version(file)),
            taken: true,
            ..HostLibrary::default()
        });
        let jit = ["CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"];
        let variables = jit.iter().filter_map(|name| Some(((*name).to_owned(), self.value(name)?.to_owned())));
        let libraries = [(CUDNN.key, cudnn), (vendor::CUDART.key, cudart)];
        let libraries = libraries.map(|(key, library)| (key, library.into_iter().collect())).into();
        let machine = Described { libraries, variables: variables.collect(), ..Described::default() };
        let Some(lib) = &self.lib else {
            return Described { driver: Some(Driver { absent: true, ..Driver::default() }), ..machine };
        };
        if lib.manner == Manner::Crashes {
            return machine;
        }
        let shown: Vec<_> = match self.value("CUDA_VISIBLE_DEVICES") {
            None => self.gpus.clone(),
            Some(list) => list.split(',').map_while(|n| self.gpus.get(n.parse::<usize>().ok()?).copied()).collect(),
        };
        let init = if lib.init == 0 && shown.is_empty() { 100 } else { lib.init };
        // A stub has a version in its name that is not a release.
        let user: Option<DriverRelease> = lib.release.parse().ok().filter(|_| lib.release != "1.1");
        let driver = Driver {
            user,
            kernel: self.kernel.map(|kernel| kernel.parse().expect("a release")),
            cuda: (init != 34).then(|| CudaVersion::from_int(lib.cuda)),
            init: Some(init),
            // A libcuda with no release in its name belongs to a machine whose other driver files cannot be located from outside.
            ptx_compiler: (lib.release != "1.1").then_some(self.compiler),
            ..Driver::default()
        };
        // GPUs that are visible in files, without the driver.
        let seen = self.kernel.is_some() && self.nodes && !self.gpus.is_empty();
        let gpus = shown.iter().map(|(major, minor, _)| Gpu {
            cc: (*major != 0).then_some((*major, *minor)),
            visible: Some(true),
            ..Gpu::default()
        });
        Described { driver: Some(driver), gpus: (init == 0 || seen).then(|| gpus.collect()), ..machine }
    }
}

/// Returns the cuDNN of a machine.
pub(crate) fn cudnn_of(machine: &Described) -> LibraryState<'_> {
    let library = machine.library_files(&CUDNN).and_then(<[_]>::first);
    library.map_or(LibraryState::Absent, LibraryState::Found)
}

/// Returns the fake libcuda for this architecture.
fn fake(arch: &Arch) -> Vec<u8> {
    arch.made("fake-libcuda", |call, _| {
        call.args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1"])
            .arg(places::workspace().join("cargo-cudaguard/src/simulation/libcuda.c"))
            .arg("-ldl")
    })
}

const WORLD: &str = "set -e; w=$1; shift; mount --bind /dev/null \"$w/dev/null\"; mount --rbind \"$w/dev\" /dev; \
                     mount --bind \"$w/driver\" /proc/driver; mount --bind \"$w/pci\" /sys/bus/pci; exec \"$@\"";

pub(crate) fn in_world(root: &Path) -> Call {
    Call::new("unshare").args(["-rm", "sh", "-c", WORLD, "sh"]).arg(root)
}

/// Skips the test if the user may not create mount namespaces.
pub(crate) fn need_worlds() {
    static WORKS: OnceLock<bool> = OnceLock::new();
    tools::need("unshare");
    let works = *WORKS.get_or_init(|| {
        let scratch = Scratch::new("world");
        bare().build(&NATIVE, scratch.path());
        in_world(scratch.path()).arg("true").run().status() == Some(0)
    });
    if !works {
        skip("mount namespaces", world::NAMESPACES);
    }
}

const CUDART: &str = "libcudart.so.12";
const GRAPH: &str = "libcudnn_graph.so.9";

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) machine: Machine,
    /// The expected codes, written by hand.
    codes: &'static str,
    /// The expected level of the shim, written by hand: 0 for files only, 1 if it called a library.
    level: u32,
}

pub(crate) fn plain() -> Manifest {
    let mut manifest = manifest("demo", version("9.15.1"), Linkage::None);
    manifest.requires.clear();
    manifest
}

fn release(text: &str) -> DriverRelease {
    text.parse().expect("a release")
}

/// Adds the driver requirement of a static cudart with this major version.
pub(crate) fn cudart(mut manifest: Manifest, major: u32) -> Manifest {
    let floor = if major == 13 { "580.65.06" } else { "525.60.13" };
    manifest.requires.push(Requirement::Driver {
        cuda: CudaVersion::new(major, 0),
        release: release(floor),
        because: format!("libcudart {major}.0"),
    });
    manifest
}

/// Machine code that is compressed with Zstandard, which older drivers cannot unpack.
fn compressed(mut manifest: Manifest) -> Manifest {
    for row in &mut manifest.requires {
        if let Requirement::Gpu { by: GpuCoverage::Cubin | GpuCoverage::Partial, cuda, release: first, .. } = row {
            (*cuda, *first) = (Some(CudaVersion::new(12, 4)), Some(release("550.54.14")));
        }
    }
    manifest
}

/// Returns GPU rows for every compute capability: no code below 8.0, machine code for 8.x, `nine` for 9.x, and PTX of CUDA 12.4 for
/// later ones.
pub(crate) fn kernels(nine: GpuCoverage) -> Manifest {
    let mut manifest = plain();
    let ptx = (Some(CudaVersion::new(12, 4)), Some(release("550.54.14")));
    let mut row = |from, to, by: GpuCoverage, code: &str, floor: (Option<CudaVersion>, Option<DriverRelease>)| {
        manifest.requires.push(Requirement::Gpu {
            from,
            to,
            by,
            code: code.to_owned(),
            cuda: floor.0,
            release: floor.1,
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        });
    };
    row((0, 0), Some((7, 255)), GpuCoverage::Nothing, "", (None, None));
    row((8, 0), Some((8, 255)), GpuCoverage::Cubin, "sm_80", (None, None));
    let code = match nine {
        GpuCoverage::Ptx | GpuCoverage::PartialPtx | GpuCoverage::AtLeastPartialPtx => "compute_80",
        GpuCoverage::Nothing | GpuCoverage::Unknown | GpuCoverage::AtMostPartial => "",
        GpuCoverage::Cubin | GpuCoverage::Partial | GpuCoverage::AtLeastPartial => "sm_90a",
    };
    row((9, 0), Some((9, 255)), nine, code, if code == "compute_80" { ptx } else { (None, None) });
    row((10, 0), None, GpuCoverage::Ptx, "compute_90", ptx);
    manifest
}

fn unknown_release(mut manifest: Manifest) -> Manifest {
    for requirement in &mut manifest.requires {
        if let Requirement::Driver { release, .. } = requirement {
            *release = DriverRelease::new(0, 0, 0);
        }
    }
    manifest
}

/// Links to the shared cudart of this minor version.
fn shared_cudart(manifest: Manifest, minor: impl Into<Option<u32>>) -> Manifest {
    let mut manifest = cudart(manifest, 12);
    let version = minor.into().map(|minor| CudaVersion::new(12, minor));
    manifest.cudart = Some(RecordedCudart { linkage: Linkage::Linked, version });
    manifest
}

/// Adds a dlopened cuDNN.
fn with_cudnn(mut manifest: Manifest, built: &str) -> Manifest {
    let own = super::fixture::manifest("demo", version(built), Linkage::Dlopened);
    manifest.requires.insert(0, own.requires.into_iter().next().expect("a row"));
    manifest
}

/// Adds a dlopened cuDNN 9.5, with the sub-library that returns the CUDA release it was built with.
fn with_graph(manifest: Manifest) -> Manifest {
    let mut manifest = with_cudnn(manifest, "9.5.0");
    let part = cudnn::needed_parts(9).next().expect("a part");
    manifest.requires.insert(1, Requirement::for_part(part));
    manifest
}

/// Sets CUDA 13 as the release of the machine code. No document describes whether older drivers load it.
fn of_13(mut manifest: Manifest) -> Manifest {
    for row in &mut manifest.requires {
        if let Requirement::Gpu { guaranteed_from, .. } = row {
            *guaranteed_from = Some((CudaVersion::new(13, 0), release("580.65.06")));
        }
    }
    manifest
}

/// Sets an ISA of PTX that is in no table.
fn newer_ptx(mut manifest: Manifest) -> Manifest {
    for row in &mut manifest.requires {
        if let Requirement::Gpu {
            by: GpuCoverage::Ptx | GpuCoverage::PartialPtx, cuda, release, guaranteed_from, ..
        } = row
        {
            (*cuda, *release) = (Some(CudaVersion::new(13, 6)), None);
            *guaranteed_from = Some(tables::NO_DRIVER_KNOWN);
        }
    }
    manifest
}

/// Sets the PTX fallback of machine code, for GPUs that it serves, or for those that PTX serves.
fn set_ptx_fallback(mut manifest: Manifest, is: PtxFallback, where_ptx_serves: bool) -> Manifest {
    for row in &mut manifest.requires {
        if let Requirement::Gpu { by, ptx_fallback, .. } = row
            && (*by == GpuCoverage::Ptx) == where_ptx_serves
        {
            *ptx_fallback = is;
        }
    }
    manifest
}

pub(crate) fn named(mut manifest: Manifest, name: &str) -> Manifest {
    name.clone_into(&mut manifest.component.name);
    manifest
}

/// Keeps only the code for this GPU generation.
fn only(major: u8) -> Manifest {
    let mut manifest = kernels(GpuCoverage::Nothing);
    for row in &mut manifest.requires {
        if let Requirement::Gpu { from, to, by, cuda, release, .. } = row {
            let here = from.0 <= major && to.is_none_or(|to| major <= to.0);
            *by = if here { GpuCoverage::Cubin } else { GpuCoverage::Nothing };
            (*cuda, *release) = (None, None);
        }
    }
    manifest
}

pub(crate) fn needing(mut manifest: Manifest, gpu: GpuNeed) -> Manifest {
    manifest.runtime.gpu = gpu;
    manifest
}

fn required(manifest: Manifest) -> Manifest {
    needing(manifest, GpuNeed::Required)
}

/// The table of cases; its head lists the words.
const CASES: &str = include_str!("driver.txt");

pub(crate) fn written() -> Vec<Case> {
    let rows = CASES.lines().filter(|line| !line.starts_with('#'));
    let case = |line: &'static str| {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [name, manifests, machine, codes, level] = columns[..] else { panic!("five columns, not {line}") };
        Case {
            name: name.to_owned(),
            manifests: manifests.split(" + ").map(read_manifest).collect(),
            machine: read_machine(machine),
            codes: if codes == "-" { "" } else { codes },
            level: number(level),
        }
    };
    rows.map(case).collect()
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("a number, not {text}"))
}

/// Splits `cudart=13`; the value of a word without one is empty.
pub(crate) fn split_word(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

/// Parses a manifest: its device code, and what is added.
fn read_manifest(words: &str) -> Manifest {
    let mut words = words.split(' ');
    let code = words.next().expect("device code");
    let manifest = match split_word(code) {
        ("plain", _) => plain(),
        ("only", major) => only(major.parse().expect("a generation")),
        (kind, _) => kernels(match kind {
            "cubin" => GpuCoverage::Cubin,
            "ptx" => GpuCoverage::Ptx,
            "partial" => GpuCoverage::Partial,
            "partial-ptx" => GpuCoverage::PartialPtx,
            "nothing" => GpuCoverage::Nothing,
            "unknown" => GpuCoverage::Unknown,
            _ => panic!("no such device code: {kind}"),
        }),
    };
    words.fold(manifest, change_manifest)
}

fn change_manifest(manifest: Manifest, word: &str) -> Manifest {
    let fallback = |value: &str| match value.split_once('.') {
        Some((major, minor)) => PtxFallback::Isa((major.parse().expect("a major"), minor.parse().expect("a minor"))),
        None => PtxFallback::Nothing,
    };
    match split_word(word) {
        ("name", name) => named(manifest, name),
        ("cudart", major) => cudart(manifest, number(major)),
        ("unknown-release", _) => unknown_release(manifest),
        ("shared-cudart", "") => shared_cudart(manifest, None),
        ("shared-cudart", minor) => shared_cudart(manifest, number(minor)),
        ("cudnn", built) => with_cudnn(manifest, built),
        ("graph", _) => with_graph(manifest),
        ("compressed", _) => compressed(manifest),
        ("of-13", _) => of_13(manifest),
        ("newer-ptx", _) => newer_ptx(manifest),
        ("fallback", value) => set_ptx_fallback(manifest, fallback(value), false),
        ("other-fallback", value) => set_ptx_fallback(manifest, fallback(value), true),
        ("toolkit", release) => Manifest { toolkit: Some(version(release)), ..manifest },
        ("strict", _) => Manifest { partial_refuse: true, ..manifest },
        ("required", _) => required(manifest),
        _ => panic!("no such word: {word}"),
    }
}

/// Parses a machine: its driver, its GPUs, and what is different.
fn read_machine(words: &'static str) -> Machine {
    let mut words = words.split(' ');
    let machine = match words.next().expect("a driver") {
        "bare" => bare(),
        "470" => machine("470.256.02", 11040, &[]),
        "535" => r535(&[]),
        "580" => r580(&[]),
        other => {
            let (release, cuda) = other.split_once('/').expect("a release with its CUDA version");
            machine(release, number(cuda), &[])
        }
    };
    words.fold(machine, change_machine)
}

fn change_machine(mut machine: Machine, word: &'static str) -> Machine {
    let (what, value) = split_word(word);
    match what {
        "gpu" => {
            let (cc, id) = value.split_once('/').expect("a compute capability and an id");
            let (major, minor) = cc.split_once('.').expect("a compute capability");
            machine.gpus.push((major.parse().expect("a major"), minor.parse().expect("a minor"), id));
        }
        "no-kernel" => machine.kernel = None,
        "no-nodes" => machine.nodes = false,
        "no-node" => machine.missing_node = value,
        "no-compiler" => machine.compiler = false,
        "no-lib" => machine.lib = None,
        "cudnn" => machine.cudnn = Some(value),
        "made-with" => machine.made_with = Some(number(value)),
        "cudart" => machine.cudart = Some(value),
        "init" => return machine.init(number(value)),
        "crashes" => return machine.manner(Manner::Crashes),
        "talks" => return machine.manner(Manner::Talks),
        "lib" => {
            let (release, cuda) = value.split_once('/').map_or((value, None), |(release, cuda)| (release, Some(cuda)));
            return machine.lib(|lib| {
                lib.release = release;
                lib.cuda = cuda.map_or(lib.cuda, number);
            });
        }
        variable if variable.starts_with("CUDA_") => machine.variables.push((variable, value)),
        gpu => {
            let (name, count) = gpu.split_once('x').unwrap_or((gpu, "1"));
            let (_, gpu) = GPUS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no word: {word}"));
            machine.gpus.extend(vec![*gpu; count.parse().expect("a number")]);
        }
    }
    machine
}

/// Returns a manifest with rows that cover every compute capability, each with random code and a random driver requirement.
fn random_manifest(dice: &mut Dice, name: &str) -> Manifest {
    use GpuCoverage::{Cubin, Nothing, Partial, PartialPtx, Ptx, Unknown};
    let floors = [(12, 0, "525.60.13"), (12, 4, "550.54.14"), (13, 0, "580.65.06"), (13, 2, "595.10.01")];
    let mut manifest = named(plain(), name);
    if dice.below(4) == 0 {
        manifest = with_graph(manifest);
    }
    if dice.below(2) == 0 {
        let major = dice.pick(&[12, 13]);
        manifest = cudart(manifest, major);
    }
    let mut from = (0, 0);
    while dice.below(8) > 0 || from != (0, 0) {
        let end = (from.0 + dice.pick(&[0, 0, 1, 7]), dice.pick(&[0, 5, 255]));
        let to = Some(end).filter(|end| end.0 < 12 && dice.below(6) > 0);
        let by = dice.pick(&[Cubin, Cubin, Ptx, Ptx, Partial, PartialPtx, Nothing, Unknown]);
        let (major, minor, oldest) = dice.pick(&floors);
        let floor = dice.below(2) == 0 && by != Nothing;
        manifest.requires.push(Requirement::Gpu {
            from,
            to: to.map(|to| to.max(from)),
            by,
            code: dice.pick(&["", "sm_80", "compute_75"]).to_owned(),
            cuda: floor.then(|| CudaVersion::new(major, minor)),
            release: floor.then(|| release(oldest)),
            guaranteed_from: match dice.below(9) {
                0 => Some(tables::NO_DRIVER_KNOWN),
                1..4 => Some((CudaVersion::new(major, minor), release(oldest))),
                _ => None,
            },
            ptx_fallback: dice.pick(&[
                PtxFallback::Nothing,
                PtxFallback::Undetermined,
                PtxFallback::Isa((8, 4)),
                PtxFallback::Isa((9, 0)),
            ]),
        });
        let Some(to) = to.map(|to| to.max(from)) else { break };
        from = if to.1 == 255 { (to.0 + 1, 0) } else { (to.0, to.1 + 1) };
    }
    manifest.partial_refuse = dice.below(4) == 0;
    manifest.runtime.gpu = if dice.below(5) == 0 { GpuNeed::Required } else { GpuNeed::Auto };
    manifest
}

/// Returns a program with one to three components.
fn random_program(dice: &mut Dice) -> Vec<Manifest> {
    let count = dice.pick(&[1, 1, 2, 3]);
    ["one", "two", "three"][..count].iter().map(|name| random_manifest(dice, name)).collect()
}

fn random_machine(dice: &mut Dice) -> Machine {
    let drivers = [
        ("470.256.02", 11040),
        ("525.60.13", 12000),
        ("535.261.03", 12020),
        ("550.163.01", 12040),
        ("580.95.05", 13000),
        ("590.44.01", 13010),
        ("700.01", 15000),
    ];
    let (driver, cuda) = dice.pick(&drivers);
    let mut machine = machine(driver, cuda, &[]);
    for _ in 0..dice.pick(&[0, 1, 1, 2, 3]) {
        let gpu = dice.pick(&[V100, T4, A100, A10, H100, NEWS, (0, 0, "0x3f01")]);
        machine.gpus.push(gpu);
    }
    // Later branches do not drive the K80. It is only added to machines whose files show the GPUs, because otherwise the shim
    // does not call the driver because of it.
    let has_old_gpus = driver.starts_with("470.") && dice.below(2) == 0;
    if has_old_gpus {
        machine.gpus.push(K80);
    }
    // The shim calls the driver, and uses the result of cuInit, only if the files leave the verdict open.
    if dice.below(4) == 0 {
        let init = dice.pick(&[0, 2, 34, 100, 802, 803, 804]);
        machine = machine.lib(|lib| (lib.release, lib.init) = ("1.1", init));
    }
    match dice.below(8) {
        // A machine with neither kernel module nor device nodes would count as a machine without NVIDIA.
        0 if !machine.gpus.is_empty() && !has_old_gpus => machine.kernel = None,
        1 if !has_old_gpus => machine.nodes = false,
        2 => machine.kernel = Some("535.104.05"),
        3 => machine.compiler = false,
        4 => machine = machine.manner(Manner::Crashes).lib(|lib| lib.release = "1.1"),
        _ => {}
    }
    // If the variable hides all GPUs, the verdict is certain without the driver.
    let odd = machine.lib.as_ref().is_some_and(|lib| lib.release == "1.1");
    let mut lists = vec![None, None, None, Some("0"), Some("1"), Some("1,0"), Some("0,9")];
    lists.extend([Some(""), Some("-1")].iter().filter(|_| !odd));
    machine.variables.extend(dice.pick(&lists).map(|list| ("CUDA_VISIBLE_DEVICES", list)));
    for variable in ["CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT"] {
        if dice.below(8) == 0 {
            machine.variables.push((variable, dice.pick(&["0", "1"])));
        }
    }
    machine.cudnn = dice.pick(&[None, Some("9.4.0"), Some("9.5.1"), Some("9.10.2"), Some("9.11.0"), Some("9.28.0")]);
    machine.made_with = Some(dice.pick(&[11080, 12090, 12090, 13000])).filter(|_| machine.cudnn.is_some());
    machine
}

/// Returns random programs without machines.
pub(crate) fn random_programs(seed: u64, programs: usize) -> Vec<Vec<Manifest>> {
    let mut dice = Dice::new(seed, 0);
    (0..programs).map(|_| random_program(&mut dice)).collect()
}

/// Returns random machines, with this number of programs for each.
pub(crate) fn random_machines(seed: u64, machines: usize, programs: usize) -> Vec<(Machine, Vec<Vec<Manifest>>)> {
    let mut dice = Dice::new(seed, 0);
    let mut all = Vec::new();
    for _ in 0..machines {
        let machine = random_machine(&mut dice);
        all.push((machine, (0..programs).map(|_| random_program(&mut dice)).collect()));
    }
    all
}

/// Starts each of these programs on this machine, which is built only once: a start takes some milliseconds. Returns a line for
/// each difference from the judge.
pub(crate) fn start_all(machine: &Machine, programs: &[Vec<Manifest>]) -> Vec<String> {
    const EACH: &str =
        "cd \"$0\"; for p in p*; do CUDAGUARD_REPORT=$p.json ./$p >$p.out 2>$p.err; echo $? >$p.status; done";
    let scratch = Scratch::new("driver-batch");
    machine.build(&NATIVE, scratch.path());
    for (at, manifests) in programs.iter().enumerate() {
        let descriptors: Vec<_> = manifests.iter().map(descriptor).collect();
        NATIVE.program(&scratch.join(format!("programs/p{at}")), &descriptors, None);
    }
    let call = in_world(scratch.path()).args(["sh", "-c", EACH]).arg(scratch.join("programs"));
    let call = call.env("LD_LIBRARY_PATH", scratch.join("lib"));
    let _ = machine.variables.iter().fold(call, |call, (name, value)| call.env(name, value)).run().success();
    let mut differences = Vec::new();
    for (at, manifests) in programs.iter().enumerate() {
        let left = |ending: &str| {
            fs::read_to_string(scratch.join(format!("programs/p{at}.{ending}")))
                .unwrap_or_else(|error| panic!("p{at}.{ending}: {error}"))
        };
        let (expected, verdict) = judged(manifests, machine);
        let report = last_report(&scratch.join(format!("programs/p{at}.json")));
        let codes = sorted_codes(&report);
        let ended = (left("status").trim().to_owned(), left("out"), left("err").is_empty());
        let refused = verdict == "refused";
        let whole = if refused { ("78", "", false) } else { ("0", "main ran\n", true) };
        if codes != expected || report["verdict"] != verdict || (&*ended.0, &*ended.1, ended.2) != whole {
            differences.push(format!(
                "the judge says {verdict} {expected:?}, the start {ended:?} {report}\n{machine:?}\n{manifests:?}"
            ));
        }
    }
    differences
}

/// Returns the codes of a start and its verdict. A start does not report that no GPU can run two components.
pub(crate) fn judged(manifests: &[Manifest], machine: &Machine) -> (Vec<String>, &'static str) {
    let machine = machine.described();
    let (host, cudnn) = (machine.host("this machine"), cudnn_of(&machine));
    let findings = manifests.iter().flat_map(|manifest| judge(manifest, &host, cudnn));
    let findings: Vec<_> = findings.collect();
    let mut codes: Vec<_> = findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect();
    codes.sort();
    let verdict = Verdict::from_findings(&findings).name();
    (codes, verdict)
}

pub(crate) struct Scene {
    pub(crate) scratch: Scratch,
    pub(crate) program: PathBuf,
}

impl Scene {
    pub(crate) fn new(arch: &Arch, manifest: &Manifest, machine: &Machine) -> Self {
        Self::of(arch, std::slice::from_ref(manifest), machine)
    }

    pub(crate) fn of(arch: &Arch, manifests: &[Manifest], machine: &Machine) -> Self {
        let scratch = Scratch::new("driver-scene");
        machine.build(arch, scratch.path());
        let program = scratch.join("program");
        let descriptors: Vec<_> = manifests.iter().map(descriptor).collect();
        match machine.cudart {
            None => arch.program(&program, &descriptors, None),
            Some(_) => arch.program_with(&program, &descriptors, CUDART),
        }
        Self { scratch, program }
    }

    pub(crate) fn start(&self, arch: &Arch, machine: &Machine, arguments: &[&str]) -> Outcome {
        let mut call = in_world(self.scratch.path())
            .args(arch.runner())
            .arg(&self.program)
            .args(arguments)
            .env("LD_LIBRARY_PATH", self.scratch.join("lib"))
            .env("CUDAGUARD_REPORT", self.report_path());
        for (name, value) in &machine.variables {
            call = call.env(name, value);
        }
        call.run()
    }

    pub(crate) fn report_path(&self) -> PathBuf {
        self.scratch.join("report.json")
    }

    pub(crate) fn report(&self) -> serde_json::Value {
        last_report(&self.report_path())
    }

    fn codes(&self) -> Vec<String> {
        sorted_codes(&self.report())
    }
}

#[e2e]
fn judge_returns_expected_codes() {
    for case in written() {
        assert_eq!(judged(&case.manifests, &case.machine).0.join(", "), case.codes, "{}", case.name);
    }
}

fn drive(arch: &Arch, cases: &[Case]) {
    need_worlds();
    let mut differences = String::new();
    for case in cases {
        let (expected, verdict) = judged(&case.manifests, &case.machine);
        let scene = Scene::of(arch, &case.manifests, &case.machine);
        let outcome = scene.start(arch, &case.machine, &[]);
        let report = scene.report();
        if scene.codes() != expected || report["verdict"] != verdict {
            let _ = writeln!(differences, "{}: the judge returns {verdict} {expected:?}, the shim {report}", case.name);
        }
        if report["level"] != case.level {
            let _ = writeln!(differences, "{}: level {}", case.name, report["level"]);
        }
        let refused = verdict == "refused";
        let printed = (outcome.stderr.is_empty(), outcome.stdout.as_str());
        let whole = if refused { (false, "") } else { (true, "main ran\n") };
        let status = Some(if refused { 78 } else { 0 });
        if outcome.status() != status || printed != whole || !is_short(&outcome.stderr) {
            let _ = writeln!(differences, "{}: {outcome}", case.name);
        }
    }
    assert!(differences.is_empty(), "of {} cases:\n{differences}", cases.len());
}

/// Two components that need the same driver result in one refusal, which names both.
#[e2e]
fn same_cause_is_printed_once() {
    need_worlds();
    let named = |name: &str, major: u32| {
        let mut manifest = cudart(plain(), major);
        name.clone_into(&mut manifest.component.name);
        manifest
    };
    let machine = r535(&[A100]);
    let manifests = [named("one", 13), named("two", 13)];
    let outcome = Scene::of(&NATIVE, &manifests, &machine).start(&NATIVE, &machine, &[]).expect(78);
    assert_eq!(outcome.stderr.matches("error[CG301]").count(), 1, "{outcome}");
    assert!(outcome.stderr.contains("needed by:  one 0.1.0, two 0.1.0\n"), "{outcome}");
}
