//! `docs/crates.md`: written from the table and from what the tests here have seen.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard::crates::table::{LibraryRule, Mode, Row, Symbols, table};
use cudaguard_tests::{Test, places, scratch, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![the_page_says_what_the_table_says]
}

const HEAD: &str = "\
# Your crate and CUDA

A Rust program reaches CUDA through crates, and each has its own way to learn which CUDA it is for, its own order of looking for
nvcc and libraries, and its own idea of what to open when the program runs. `cargo cudaguard build`, `test` and `check` read the
graph by `cargo metadata`, work out which features are on in what is *linked*, and judge each crate by its own rules: against the
toolkit and cuDNN in use, against the fleet of `cudaguard.toml`, and against each other. A finding names the way to the crate and
the line or variable to change. A mismatch is an error in a release build and a warning otherwise, as everywhere.

- Crates that only build scripts, tests or procedural macros use are left aside, but for those that compile kernels or search for
  libraries in the build script of a crate that is linked. Tests and examples count where the call makes them.
- Features are those of the packages that the call is for, with its `--features`. With `resolver = \"1\"` cargo also gives the
  program what a build script asks of the same crate; that is not followed. The default since edition 2021 is 2.
- What the graph says is kept in the target folder until `Cargo.lock`, a manifest or cargo's configuration changes.
- A crate that is in no row below is let be; one with a `links` key such as `cudnn` is known to be one of CUDA's, and no more.
- Without `Cargo.lock`, `check` judges the versions that cargo would take now, and writes no lock; where cargo finds none
  (offline, or with `--locked`) the listing says that the crates are not judged.
- A package that `cargo cudaguard install` fetches is unpacked and resolved by cargo alone: its crates are not judged.
- `cargo cudaguard run` becomes cargo and then the program, so what a build script has kept (CG155) is told by `build` and `test`.

This page is written from `guard-core/data/crates.toml` and from the snapshots of the tests; a test keeps it so.

## What goes wrong, and what is said

Each was provoked with the real crates. What happens without cudaguard was seen with real toolkits, the driver library
535.261.03 and no GPU.
";

const PROGRAMS: &str = "
## Real programs, guarded as they are

In the tests, with no change to their sources: cudarc 0.19.10 linked and opened by name, cust 0.3.2, one program with cudarc
0.17.8, cudarc 0.19.10 and ort 2.0.0-rc.10 (`load-dynamic`) in it, and one whose kernels cudaforge 0.1.6 compiles as candle's are.
candle-core, cubecl-cuda, llama-cpp-2 and torch-sys are judged there by what cargo says of their graphs.

By hand, because it takes minutes to compile, cubecl-cuda 0.8.1 on a machine without any toolkit, `cargo cudaguard build` in
3 min 54 s on two busy cores. The program is what it was; on the driver 535 it still panics where there is no GPU to see, and
where there is one the guard refuses before, by this row of `cargo cudaguard inspect`:

```text
requires   driver supports CUDA 13.0 (release 580.65.06): cudarc 0.17.8 (cuCtxGetDevice_v2)
```

And candle-core 0.11.1 with `cuda` and `cudnn`, CUDA 13.0, cuDNN 9.15.1, CUDA_COMPUTE_CAP=90, no source changed, 20 minutes of
processor time. On the driver 535 without a GPU it says what it says unguarded, `DriverError(CUDA_ERROR_NO_DEVICE, …)`, status 1,
and the guard nothing. `cargo cudaguard inspect` says of it:

```text
cuDNN      9.15.1, linked
archs      sm_90a compute_90a (observed)
requires   cuDNN 9.15.0 or newer, below 10.0.0 (libcudnn.so.9, built with 9.15.1)
           libcudnn_graph.so.9 beside it
           libcudnn_ops.so.9 beside it, where it is used
           driver supports CUDA 13.0 (release 580.65.06): libcudart 13.0
           GPU up to 8.x: not served
           GPU 9.0: served by PTX, compute_90a; driver supports CUDA 13.0 (release 580.65.06)
           GPU 9.1 and newer: not served
```

| then | without | with cudaguard |
| --- | --- | --- |
| nvcc 13.5 first in PATH, CUDA_HOME still 13.0 | `Finished`, and 13.0 is kept | CG101, and CG159: its build script would stop |
| CUDNN_PATH of 8.9.7 | `Finished`; the bindings are of 9.21 | CG151, CG111 |
| a fleet of H100 and B200 | all 12 cubins and the PTX are sm_90a | CG156 |
| a fleet of T4 and H100, nvidia-smi says 8.9, no CUDA_COMPUTE_CAP | `Finished`; all 12 cubins and the PTX are sm_89 | CG158 |
| built so, then nvidia-smi says 7.5 | `Finished`; still sm_89 | CG130, of the linked file |
| `[driver] fleet = \"535\"` | a call of this cudart: `35 CUDA driver version is insufficient for CUDA runtime version` | CG133, of the linked file |
| started with cuDNN 9.1.0 first in LD_LIBRARY_PATH | starts | CG202, status 78 |
| started without the driver's libraries | status 127, the loader's words | `exec`: CG210, status 78 |
";

/// Each mismatch: title, what happens without the guard, the snapshot.
const MISMATCHES: &[(&str, &str, &str)] = &[
    (
        "A crate linked with another major",
        "cudarc 0.19.10 with the feature `cuda-12080`, linked, toolkit 13.0: a program that asks for a device's properties does not \
         link (`undefined symbol: cudaGetDeviceProperties_v2`). One that does not ask for them builds without a word and is linked \
         to `libcudart.so.13`, while its bindings hold the `cudaDeviceProp` of 12.8.",
        "linked",
    ),
    (
        "Two levels in one program",
        "cudarc 0.17 for 12.8 and 0.19 for 13.0: builds without a word. Both open `libcudart.so` first, which is of one of the two. \
         With the one of 13.0, cudarc 0.17.8 ends the program at its first call, status 101: `Expected symbol in library: DlSym { \
         desc: \"…/libcudart.so: undefined symbol: cudaEventElapsedTime_v2\" }`.",
        "two-levels",
    ),
    (
        "cuDNN bindings of another major",
        "cudarc 0.19.10 with `cudnn-08009`, and cuDNN 9.15.1 to be opened: `cudnnGetVersion` answers 91501, the next call is a \
         segmentation fault (status 139). With `cudnn-09021` the same program prints `CudnnError(CUDNN_STATUS_NOT_INITIALIZED)`.",
        "cudnn-major",
    ),
    (
        "A cuDNN that lacks a function",
        "cudarc 0.17.8 with `cudnn`, and cuDNN 9.1.0: status 101, `Expected symbol in library: DlSym { desc: \"…/libcudnn.so: undefined \
         symbol: cudnnBackendPopulateCudaGraph\" }`, whether or not the program uses that function.",
        "cudnn-lacks",
    ),
    (
        "A level that asks for a newer driver",
        "cubecl-cuda 0.8.1 (what burn 0.19 has) takes the level of the nvcc in PATH, and without one the newest that it knows. On the \
         driver 535 every program with it ends at its first call, status 101: `Expected symbol in library: DlSym { desc: \
         \"…/libcuda.so: undefined symbol: cuCtxFromGreenCtx\" }`. cargo does not show the warning of `fallback-latest`.",
        "cubecl-driver",
    ),
    ("The same without any nvcc", "As above; nothing in the build says that 13.0 was assumed.", "cubecl-without-nvcc"),
    (
        "nvcc and headers of two toolkits",
        "bindgen_cuda runs the nvcc in PATH and, for PTX, gives it the headers that CUDA_PATH, CUDA_ROOT or a usual folder leads to; \
         it says nothing. A kernel made so by nvcc 13.0 with the headers of 13.5 has 13050 for `CUDA_VERSION`; with those of 11.8 \
         nvcc 13.0 stops: `#error -- unsupported GNU version! gcc versions later than 11 are not supported!`",
        "two-toolkits",
    ),
    (
        "Another nvcc than the one in use",
        "cudarc asks the nvcc in PATH, cudaforge the one that NVCC names, bindgen_cuda the one in PATH: each builds.",
        "another-nvcc",
    ),
    (
        "What cargo has kept",
        "cudarc 0.19.10 built with nvcc 13.0 in PATH, then 11.8 put first: `Finished`, and the program prints `CUDA_VERSION` 13000.",
        "kept",
    ),
    (
        "The same for cuDNN",
        "cudarc 0.19.10 with `cudnn-version-from-build-system`, built with CUDNN_PATH of 8.9.7, then of 9.10.2: `Finished`, with the \
         bindings of 8.9. Built anew with 9.1.0 its build script panics, `Unsupported cuDNN version`; kept, it says nothing.",
        "cudnn-kept",
    ),
    (
        "One arch for a fleet",
        "candle-core 0.11.1 with CUDA_COMPUTE_CAP=90 builds; every cubin and every PTX in the program is sm_90a.",
        "one-arch",
    ),
    (
        "An arch that a crate narrows",
        "cudaforge makes `-gencode=arch=compute_90a,code=sm_90a` of CUDA_COMPUTE_CAP=90 and says nothing. nvcc's own `-arch=sm_90` would \
         leave PTX that every later GPU takes; of sm_90a none does.",
        "narrowed-arch",
    ),
    (
        "The builder's own GPU",
        "candle-core 0.11.1 without CUDA_COMPUTE_CAP, nvidia-smi answering 8.9: `Finished`, no word of an arch, and all PTX in the \
         program says `.target sm_89`. nvidia-smi then answering 7.5: `Finished`, still `.target sm_89`. Without nvidia-smi the \
         build script ends: `Error: ComputeCapDetectionFailed(\"Failed to run nvidia-smi: No such file or directory (os error 2). …\")`.",
        "builders-gpu",
    ),
    (
        "A toolkit that a crate does not know",
        "cudarc 0.19.10 with nvcc 13.5: its build script panics, `Unsupported cuda toolkit version: 13.5. Please raise a github issue.`",
        "unknown-toolkit",
    ),
    (
        "A crate that does not look where the toolkit is",
        "cust 0.3.2 with CUDA_PATH and CUDA_HOME set, and no toolkit in /usr/local or /opt: its build script panics, `Could not find a \
         cuda installation`.",
        "cust-finds-nothing",
    ),
    (
        "Another library under the name that is opened first",
        "cudarc opens `libcudnn.so` before `libcudnn.so.9`, and compares no version: with cuDNN 8.9.7's development link first on the \
         way, 8.9.7 is what the program gets. Here `cargo cudaguard exec`, by the names recorded in the manifest:",
        "another-major-by-name",
    ),
];

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, without, snapshot) in MISMATCHES {
        let path = places::workspace().join("tests/snapshots/graph").join(format!("{snapshot}.txt"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // What the dev build says is the same as a warning.
        let dev = ["\n$ cargo cudaguard check\n", "\n$ cargo cudaguard build\n", "\n$ with "];
        let text = dev.iter().fold(text.as_str(), |text, dev| text.split(dev).next().unwrap_or_default());
        let _ = write!(page, "\n### {title}\n\nWithout: {without}\n\n```text\n{}\n```\n", text.trim_end());
    }
    page.push_str(PROGRAMS);
    page.push_str(
        "\n## The crates\n\nRead in the crates' own sources, of the version named. A range is taken to behave as the version that was \
         read.\n",
    );
    for row in &table().crates {
        describe(&mut page, row);
    }
    page.push_str(&drivers());
    page
}

fn describe(page: &mut String, row: &Row) {
    let _ = write!(
        page,
        "\n### {} {}\n\n{}. Read: {}, {}.\n\n",
        row.name,
        row.versions,
        capital(&row.about),
        row.read,
        row.date
    );
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(page, "- {name}: {text}");
        }
    };
    if let Some(rule) = &row.level {
        let newest = rule.newest.as_ref().map(|feature| format!("; without nvcc, by `{feature}`, the newest it knows"));
        line(
            "CUDA level",
            format!(
                "`{}`, else a feature `{}12080`, else by `{}` the first nvcc in PATH{}",
                rule.variable,
                rule.features,
                rule.nvcc,
                newest.unwrap_or_default()
            ),
        );
    }
    match &row.library {
        Some(LibraryRule::Fixed { feature, major, has, lacks, symbol }) => line(
            "cuDNN level",
            format!("`{feature}`: bindings of cuDNN {major}; {has} has all their functions, {lacks} lacks {symbol}"),
        ),
        Some(LibraryRule::Named { features, headers, places, newest }) => line(
            "cuDNN level",
            format!(
                "a feature `{features}09021`, else by `{headers}` cudnn_version.h in {}; what it does not know, by `{newest}`, is taken \
                 for the newest",
                code(places)
            ),
        ),
        None => {}
    }
    let modes: Vec<String> = row
        .modes
        .iter()
        .map(|(feature, mode)| {
            let how = match mode {
                Mode::Linked => "linked",
                Mode::Static => "linked statically",
                Mode::Loaded => "opened by name",
                Mode::None | Mode::Unknown => "none",
            };
            if feature.is_empty() { how.to_owned() } else { format!("`{feature}` {how}") }
        })
        .collect();
    line("libraries", modes.join(", "));
    let names: Vec<String> = row.names.iter().filter(|name| !name.contains("64")).cloned().collect();
    line("opens", code(&names));
    if row.modes.iter().any(|(_, mode)| *mode == Mode::Loaded) {
        let when = match row.symbols {
            Symbols::Opened => "all at once when the library is opened; the first that is missing ends the program",
            Symbols::WrapperCall => "each when it is called; a missing one ends the program then",
            Symbols::Checked => "each when it is called; a missing one is an error of that call",
        };
        line("functions", when.to_owned());
    }
    line("nvcc", code(&row.nvcc));
    line("cuda.h", code(&row.headers));
    line("looks for libraries in", code(&row.link));
    if let Some(rule) = &row.arch {
        let suffix = if rule.suffix { ", with a suffix of its own from 90 on (`sm_90a`)" } else { "" };
        line("arch", format!("the one in `{}`, else of the first GPU that nvidia-smi names{suffix}", rule.variable));
    }
    line("its build script runs again for", code(&row.reruns));
    let sources: Vec<String> = row.source.iter().map(|(what, place)| format!("{what} {place}")).collect();
    line("source", sources.join("; "));
}

fn drivers() -> String {
    let mut text = "\n## The driver that a level asks for\n\ncudarc before 0.19.5, opened by name, looks up every driver function of its level \
                    when it opens libcuda. Where its code is in the linked file, that is a row of the manifest.\n\n| level | needs a driver \
                    that supports | newest function |\n| --- | --- | --- |\n"
        .to_owned();
    for row in &table().driver {
        let _ = writeln!(text, "| {} | {} | {} |", row.level, row.needs, row.symbol);
    }
    let _ = write!(text, "\nSource: {}.\n", table().driver_source);
    text
}

fn code(list: &[String]) -> String {
    list.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn the_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/crates.md");
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        scratch::write(&path, page());
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/crates.md: {error}"));
    for (number, (kept, new)) in kept.lines().zip(page().lines()).enumerate() {
        assert_eq!(kept, new, "docs/crates.md:{}: CUDAGUARD_BLESS=1 rewrites it", number + 1);
    }
    assert!(kept == page(), "docs/crates.md: CUDAGUARD_BLESS=1 rewrites it");
}
