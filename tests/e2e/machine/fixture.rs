//! Guarded programs and drivers, compiled once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Call, Outcome, Scratch, command, places, snapshot};

use super::guarded_programs;

pub(crate) const BUILT: Version = Version::new(9, 15, 1);

/// Returns a requirement for GPUs from `from` to `to`. `floor` is the oldest driver.
pub(crate) fn gpu(
    from: (u8, u8),
    to: Option<(u8, u8)>,
    by: GpuCoverage,
    code: &str,
    floor: Option<(CudaVersion, DriverRelease)>,
) -> Requirement {
    let (cuda, release) = floor.unzip();
    Requirement::Gpu {
        from,
        to,
        by,
        code: code.to_owned(),
        cuda,
        release,
        guaranteed_from: None,
        ptx_fallback: PtxFallback::Undetermined,
    }
}

/// Returns the rows that sealing writes for cudart 13.0 with machine code for 8.x and PTX for newer GPUs.
fn rows() -> Vec<Requirement> {
    let cuda_13 = (CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6));
    vec![
        Requirement::Driver { cuda: cuda_13.0, release: cuda_13.1, because: "libcudart 13.0".to_owned() },
        gpu((0, 0), Some((7, 255)), GpuCoverage::Nothing, "", None),
        gpu((8, 0), Some((8, 255)), GpuCoverage::Cubin, "sm_80", None),
        gpu((9, 0), None, GpuCoverage::Ptx, "compute_90", Some(cuda_13)),
    ]
}

/// Returns a sealed manifest with requirements of each kind.
pub(crate) fn manifest(cudnn: Linkage) -> Manifest {
    let mut manifest = guarded_programs::manifest("demo", BUILT, cudnn);
    manifest.sealed = true;
    manifest.requires.extend(rows());
    manifest
}

/// Builds a guarded program that prints `ran` and links no CUDA library.
pub(crate) fn program(to: &Path, manifests: &[Manifest]) {
    let dir = Scratch::new("machine-program");
    let objects = guarded_programs::objects(&dir, manifests);
    let text = "#include <stdio.h>\nint main(void) { return puts(\"ran\") < 0; }\n";
    guarded_programs::link(text, to, &objects, &[]).unwrap_or_else(|error| panic!("{error}"));
}

/// Creates a file that all tests share.
fn kept(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    static SCRATCH: OnceLock<Scratch> = OnceLock::new();
    let path = SCRATCH.get_or_init(|| Scratch::new("machine")).join(name);
    make(&path);
    path
}

/// Returns the program of most tests. Its notes record a linked cuDNN.
pub(crate) fn demo() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| kept("demo", |path| program(path, &[manifest(Linkage::Linked)])))
}

/// Returns a manifest that only has requirements on driver and GPU.
pub(crate) fn asks_driver() -> Manifest {
    let mut manifest = manifest(Linkage::Linked);
    manifest.library = None;
    manifest.requires.retain(|row| !matches!(row, Requirement::Library { .. } | Requirement::Part { .. }));
    manifest
}

/// Returns a program with that manifest.
pub(crate) fn of_driver() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| kept("of-driver", |path| program(path, &[asks_driver()])))
}

/// Creates a hard link to a program. Does not copy it: a child that another test forks meanwhile would hold the copy open
/// for writing, and the kernel does not start such a file.
pub(crate) fn link(from: &Path, to: &Path) {
    fs::hard_link(from, to).expect("a link can be made");
}

/// Creates a directory with a fake libcuda that answers as its file `fake-driver` specifies. The file name is that of a
/// driver of this release.
pub(crate) fn driver(dir: &Path, release: &str, says: &str) -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let fake = MADE.get_or_init(|| {
        kept("libcuda.so", |path| {
            let source = places::workspace().join("cargo-cudaguard/src/simulation/libcuda.c");
            let compile = Call::new("cc").args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"]).arg(path);
            let _ = compile.arg(source).arg("-ldl").run().success();
        })
    });
    let dir = dir.join(format!("driver {release}"));
    let file = dir.join(format!("libcuda.so.{release}"));
    fs::create_dir_all(&dir).expect("a directory can be made");
    fs::copy(fake, &file).expect("a file can be copied");
    std::os::unix::fs::symlink(&file, dir.join("libcuda.so.1")).expect("a link can be made");
    fs::write(dir.join("fake-driver"), says).expect("a file can be written");
    dir
}

/// Returns a call of `cargo-cudaguard`. The home directory contains no test file, because paths below it would begin with
/// `~`.
pub(crate) fn call<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Call {
    command::call(arguments).env("CARGO_TERM_COLOR", "never").env("HOME", "/home/nobody at all")
}

/// Returns a host file of this suite.
pub(crate) fn host(name: &str) -> PathBuf {
    places::workspace().join(format!("tests/e2e/machine/hosts/{name}.json"))
}

/// Returns stdout and stderr without paths of this machine, with the findings first as on a terminal.
pub(crate) fn printed(outcome: &Outcome, names: &[(&Path, &str)]) -> String {
    let status = outcome.status().map_or("a signal".to_owned(), |status| status.to_string());
    let hosts = places::workspace().join("tests/e2e/machine/hosts");
    let mut all = vec![(demo(), "demo"), (hosts.as_path(), "hosts")];
    all.extend(names);
    snapshot::paths(&format!("{}{}status {status}\n", outcome.clean_stderr(), outcome.stdout), &all)
}
