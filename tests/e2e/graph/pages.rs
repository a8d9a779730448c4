//! `docs/reference/crates.md`, which is generated from the table and from the snapshots of these tests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cargo_cudaguard::knowledge::crates::table::table;
use cudaguard_tests::{e2e, places, scratch};

const HEAD: &str = "\
# CUDA crates

A Rust program reaches CUDA through crates. Each crate selects its CUDA version in its own way, searches for nvcc and libraries in its own
order, and opens other files at run time. `cargo cudaguard build`, `test` and `check` read the dependency graph and check each crate
by its own rules:

- against the toolkit and cuDNN in use
- against the fleet in `cudaguard.toml`
- against the other crates of the program

A finding names the path to the crate and the line or variable to change. The most common problems are:

| problem | finding |
| --- | --- |
| a cudarc feature such as `cuda-12080` does not match the toolkit | CG150 |
| two major versions of cudarc in one program, for different CUDA versions | CG152 |
| a build script kept the result for another toolkit or cuDNN (stale build) | CG155 |
| one architecture for a fleet with several GPUs | CG156 |

## Checked crates

- Crates that are linked into the program. Crates of build scripts count only if they compile kernels or search for libraries.
- Features of the packages that you build, with your `--features`. `resolver = \"1\"` is not supported.
- `check` lists each crate that reaches CUDA: the CUDA version of its bindings and its source, its libraries, and how it links them.
- If a crate has no row below, `check` reports it as not known: only the linked file is judged. It recognises such a crate by its `links` key
  (`cudnn`), by the libraries in its `build.rs`, or by its name.
- Under plain cargo, `embed!()` sees only names in `Cargo.lock`. If only cudarc may use CUDA, findings about toolkits are information.
- Without `Cargo.lock`, `check` uses the versions that cargo would select, and writes no lock file.
- Crates of a package that `cargo cudaguard install` downloads are not checked.
- `run` does not report stale build scripts (CG155); `build` and `test` do.

## Problems and messages

Tests reproduce each problem with real crates, toolkits and driver library 535.261.03, without a GPU. An error stops a release build; the end of
the output explains how to build anyway.
";

const PROGRAMS: &str = "
## Tested programs

The tests build these without a change to their sources: cudarc 0.19.10 linked and opened by name; cust 0.3.2; a program with cudarc 0.17.8,
cudarc 0.19.10 and ort 2.0.0-rc.10 (`load-dynamic`); and a program with kernels that cudaforge 0.1.6 compiles as candle does. The dependency graphs of
candle-core, cubecl-cuda, llama-cpp-2 and torch-sys are tested too.

candle-core 0.11.1 with `cuda` and `cudnn` was built by hand, with CUDA 13.0, cuDNN 9.15.1 and CUDA_COMPUTE_CAP=90. `cargo cudaguard inspect`
prints for it:

```text
cuDNN      9.15.1, linked
archs      sm_90a compute_90a (observed)
requires   cuDNN 9.15.0 or newer, below 10.0.0 (libcudnn.so.9, built with 9.15.1)
           libcudnn_graph.so.9 next to it
           libcudnn_ops.so.9 next to it, if it is used
           driver supports CUDA 13.0 (release 580.65.06): libcudart 13.0
           GPU up to 8.x: not supported
           GPU 9.0: supported by PTX, compute_90a; driver supports CUDA 13.0 (release 580.65.06)
           GPU 9.1 and newer: not supported
```

| change | without cudaguard | with cudaguard |
| --- | --- | --- |
| nvcc 13.5 first in PATH, CUDA_HOME still 13.0 | `Finished`, still built for 13.0 | CG101, and CG159: its build script would stop |
| CUDNN_PATH of 8.9.7 | `Finished`; the bindings are of 9.21 | CG151, CG111 |
| a fleet of H100 and B200 | all 12 cubins and the PTX are sm_90a | CG156 |
| a fleet of T4 and H100, nvidia-smi reports 8.9, no CUDA_COMPUTE_CAP | `Finished`; all 12 cubins and the PTX are sm_89 | CG158 |
| the same, then nvidia-smi reports 7.5 | `Finished`; still sm_89 | CG130, from the linked file |
| `[driver] fleet = \"535\"` | at run time `35 CUDA driver version is insufficient for CUDA runtime version` | CG133, from the linked file |
| started with cuDNN 9.1.0 first in LD_LIBRARY_PATH | starts | CG202, status 78 |
| started without the driver's libraries | status 127, a message of the dynamic linker | `exec`: CG210, status 78 |
";

const CRATES: &str = "
## The crates

These facts come from the source of the version that was read. cudaguard applies them to the whole range.
`cargo-cudaguard/data/crates.toml` has the rules of each crate: its variables, search paths and features, with the lines of its source.

| crate | versions | read | purpose |
| --- | --- | --- | --- |
";

/// Mismatches: title, effect without the guard, snapshot.
const MISMATCHES: &[(&str, &str, &str)] = &[
    (
        "A crate linked with another CUDA major version",
        "cudarc 0.19.10 with the feature `cuda-12080` is linked with toolkit 13.0. A program that reads device properties does not link \
         (`undefined symbol: cudaGetDeviceProperties_v2`). Any other program builds without a message. It links `libcudart.so.13`, but its \
         bindings contain the `cudaDeviceProp` of 12.8.",
        "linked",
    ),
    (
        "Two CUDA versions in one program",
        "cudarc 0.17 for 12.8 and cudarc 0.19 for 13.0 build without a message. Both open `libcudart.so` first, which belongs to one of the \
         two. With the one of 13.0, cudarc 0.17.8 ends the program at its first call with status 101: `Expected symbol in library: DlSym { \
         desc: \"…/libcudart.so: undefined symbol: cudaEventElapsedTime_v2\" }`.",
        "two-levels",
    ),
    (
        "cuDNN bindings of another major version",
        "cudarc 0.19.10 with `cudnn-08009` opens cuDNN 9.15.1. `cudnnGetVersion` returns 91501, and the next call crashes with a segmentation fault \
         (status 139). With `cudnn-09021` the same program prints `CudnnError(CUDNN_STATUS_NOT_INITIALIZED)`.",
        "cudnn-major",
    ),
    (
        "A cuDNN that lacks a function",
        "cudarc 0.17.8 with `cudnn` and cuDNN 9.1.0 ends with status 101: `Expected symbol in library: DlSym { desc: \"…/libcudnn.so: \
         undefined symbol: cudnnBackendPopulateCudaGraph\" }`, even if the program does not use that function.",
        "cudnn-lacks",
    ),
    (
        "A CUDA version that needs a newer driver",
        "cubecl-cuda 0.8.1 (in burn 0.19) uses the version of the nvcc in PATH, or without nvcc the newest that it knows. On driver 535 \
         every program with it ends at its first call with status 101: `Expected symbol in library: DlSym { desc: \"…/libcuda.so: \
         undefined symbol: cuCtxFromGreenCtx\" }`. cargo does not show the warning of `fallback-latest`.",
        "cubecl-driver",
    ),
    ("No nvcc in PATH", "The build assumes CUDA 13.0 and does not report it.", "cubecl-without-nvcc"),
    (
        "nvcc and headers of two toolkits",
        "bindgen_cuda runs the nvcc in PATH. For PTX it passes the headers from CUDA_PATH, CUDA_ROOT or a usual directory, without a message. \
         A kernel from nvcc 13.0 with headers of 13.5 has 13050 as `CUDA_VERSION`. With headers of 11.8, nvcc 13.0 stops: `#error -- \
         unsupported GNU version! gcc versions later than 11 are not supported!`",
        "two-toolkits",
    ),
    (
        "A crate runs a different nvcc",
        "cudarc runs the nvcc in PATH, cudaforge the one in NVCC, and bindgen_cuda the one in PATH. Each build succeeds.",
        "another-nvcc",
    ),
    (
        "A stale build script: CUDA",
        "cudarc 0.19.10 was built with nvcc 13.0 in PATH. After another toolkit is put first \
         in PATH, cargo prints `Finished`, and the program still prints `CUDA_VERSION` 13000.",
        "kept",
    ),
    (
        "A stale build script: cuDNN",
        "cudarc 0.19.10 with `cudnn-version-from-build-system` was built with CUDNN_PATH of 8.9.7. Then CUDNN_PATH was changed to 9.10.2, and cargo prints `Finished` \
         with the bindings of 8.9. A new build with 9.1.0 panics with `Unsupported cuDNN version`; the stale one prints nothing.",
        "cudnn-kept",
    ),
    (
        "One architecture for a fleet",
        "candle-core 0.11.1 with CUDA_COMPUTE_CAP=90 builds. Every cubin and every PTX in the program is sm_90a.",
        "one-arch",
    ),
    (
        "An architecture that a crate narrows",
        "cudaforge turns CUDA_COMPUTE_CAP=90 into `-gencode=arch=compute_90a,code=sm_90a` without a message. PTX from `-arch=sm_90` would run on \
         every later GPU. sm_90a runs on none of them.",
        "narrowed-arch",
    ),
    (
        "The GPU of the build machine",
        "candle-core 0.11.1 without CUDA_COMPUTE_CAP uses the GPU that nvidia-smi reports. On a machine with 8.9 it builds, and all PTX is \
         `.target sm_89`. With 7.5 later: `Finished`, and still `.target sm_89`. Without nvidia-smi the build script ends: \
         `Error: ComputeCapDetectionFailed(\"Failed to run nvidia-smi: No such file or directory (os error 2). …\")`.",
        "builders-gpu",
    ),
    (
        "A toolkit that a crate does not know",
        "cudarc 0.19.10 with nvcc 13.5: its build script panics, `Unsupported cuda toolkit version: 13.5. Please raise a github issue.`",
        "unknown-toolkit",
    ),
    (
        "A crate that does not find the toolkit",
        "cust 0.3.2 with CUDA_PATH and CUDA_HOME set, and no toolkit in /usr/local or /opt: its build script panics, `Could not find a cuda \
         installation`.",
        "cust-finds-nothing",
    ),
    (
        "cudarc opens an older cuDNN first",
        "cudarc opens `libcudnn.so` before `libcudnn.so.9` and compares no version. If the symlink of cuDNN 8.9.7 comes first, the \
         program gets 8.9.7. `cargo cudaguard exec` uses the names in the manifest:",
        "another-major-by-name",
    ),
];

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, without, snapshot) in MISMATCHES {
        let path = places::workspace().join("tests/snapshots/graph").join(format!("{snapshot}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // The dev build prints the same finding as a warning.
        let dev = ["\n$ cargo cudaguard check\n", "\n$ cargo cudaguard build\n", "\n$ with "];
        let text = dev.iter().fold(text.as_str(), |text, dev| text.split(dev).next().unwrap_or_default());
        // The page explains once how to build the program anyway.
        let end = "\ncudaguard: app 0.1.0 was not built";
        let text = text.split(end).next().unwrap_or_default();
        let _ = write!(page, "\n### {title}\n\n{without}\n\n```text\n{}\n```\n", text.trim_end());
    }
    page.push_str(PROGRAMS);
    page.push_str(CRATES);
    for row in &table().crates {
        let _ = writeln!(page, "| {} | {} | {} | {} |", row.name, row.versions, row.read, capital(&row.about));
    }
    page.push_str(&drivers());
    page
}

fn drivers() -> String {
    let mut text = "\n## Driver requirement of cudarc before 0.19.5\n\nIf it opens libcuda by name, it resolves every driver function of its CUDA \
                    version. The manifest records this requirement.\n\n| CUDA version | driver must support | newest function |\n\
                    | --- | --- | --- |\n"
        .to_owned();
    for row in &table().driver.levels {
        let _ = writeln!(text, "| {} | {} | {} |", row.level, row.needs, row.symbol);
    }
    let _ = write!(text, "\nSource: {}.\n", table().driver.source);
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[e2e]
fn crates_page_matches_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/crates.md");
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        scratch::write(&path, page());
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/reference/crates.md: {error}"));
    for (number, (kept, new)) in kept.lines().zip(page().lines()).enumerate() {
        assert_eq!(kept, new, "docs/reference/crates.md:{}: CUDAGUARD_BLESS=1 rewrites it", number + 1);
    }
    assert!(kept == page(), "docs/reference/crates.md: CUDAGUARD_BLESS=1 rewrites it");
}
