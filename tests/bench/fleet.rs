//! Measures the cost of checking a fleet: `cargo bench -p cudaguard-tests --bench fleet-cost`.
//!
//! One process of the command reads a list of machines from a file in the page cache. The result is its processor time
//! (user and system), which other work on the machine hardly affects, including the start of the process. A verdict is
//! one file on one machine. The lists are: a typical fleet with few kinds of machines, whose lines `probe` wrote on a
//! machine with one GPU or with eight; the same lists with a different kind for each machine; and short lines.
//!
//! A second table contains every format that `--fleet` reads, in inputs of 1 and of 16 MiB. The ratio of the times for
//! each MiB is 1 if the reader is linear.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use cargo_cudaguard::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::env::Env;
use cudaguard::internal::guard::{self, GuardObjects, NoteSource};
use cudaguard::internal::manifest::{BuiltWith, Component, GpuCoverage, Linkage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::note;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::Toolchain;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Call, Scratch, command, cost};

const MACHINES: usize = 100_000;
const RUNS: u32 = 3;

/// Function that returns the line of a machine.
type Line = fn(usize) -> String;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches`: nothing to measure.
        return;
    }
    // Builds the command before the measurements.
    let _ = command::path();
    let dir = Scratch::new("fleet-cost");
    let program = dir.join("program");
    make(&program, &dir);
    println!("{MACHINES} machines; processor time, the mean of {RUNS} runs");
    println!("{:<34} {:>10}    {:<18} {:>9} {:>14}", "", "bytes/line", "", "time", "verdicts/s");
    let lists: [(&str, Line); 5] = [
        ("12 kinds, one GPU each", |number| probed(number, kind(number).0, 1)),
        ("12 kinds, eight GPUs each", |number| probed(number, kind(number).0, 8)),
        ("each of its own kind, one GPU", |number| probed(number, &own_kind(number), 1)),
        ("each of its own kind, eight GPUs", |number| probed(number, &own_kind(number), 8)),
        ("12 kinds, short lines", short),
    ];
    for (name, line) in lists {
        let mut text = String::new();
        for number in 0..MACHINES {
            let _ = writeln!(text, "{}", line(number));
        }
        let list = dir.file("fleet.jsonl", &text);
        for (how, files, arguments) in
            [("1 file, summary", 1, &[][..]), ("1 file, --json", 1, &["--json"]), ("4 files, summary", 4, &[])]
        {
            let before = cost::children();
            (0..RUNS).for_each(|_| judge(&program, files, &list, arguments));
            let time = cost::children().saturating_sub(before) / RUNS;
            #[allow(clippy::cast_precision_loss)]
            let rate = (MACHINES * files) as f64 / time.as_secs_f64();
            let milliseconds = time.as_secs_f64() * 1e3;
            println!("{name:<34} {:>10}    {how:<18} {milliseconds:>6.0} ms {rate:>14.0}", text.len() / MACHINES);
        }
    }
    formats(&program, &dir);
}

/// A format of `--fleet`: its name, the text before the entries, an entry, the text between entries, and the text after
/// them.
type Format = (&'static str, &'static str, fn(usize) -> String, &'static str, &'static str);

const SMALL: usize = 1024 * 1024;
const LARGE: usize = 16 * SMALL;
const LOG: &str = "<nvidia_smi_log>\n<driver_version>550.54.14</driver_version>\n";
const NODES: &str = r#"{"apiVersion":"v1","kind":"List","items":["#;

fn formats(program: &Path, dir: &Scratch) {
    let all: [Format; 14] = [
        ("host files, a line each", "", |number| short(number) + "\n", "", ""),
        ("an array of host files", "[\n", short, ",\n", "]"),
        ("lines that are no host files", "", |number| format!("{{\"driver\":{number}}}\n"), "", ""),
        ("empty host files", "", |_| "{}\n".to_owned(), "", ""),
        ("XML: one log of large GPUs", LOG, |number| smi_gpu(number, 2000), "", "</nvidia_smi_log>\n"),
        ("XML: many logs", "", |number| format!("{LOG}{}</nvidia_smi_log>\n", smi_gpu(number, 200)), "", ""),
        ("XML: empty elements", LOG, |_| "<a/>".to_owned(), "", "</nvidia_smi_log>\n"),
        ("XML: line ends", LOG, |_| "\n".repeat(1000), "", "</nvidia_smi_log>\n"),
        ("CSV: a line for each machine", "host, name, driver_version\n", smi_row, "", ""),
        ("CSV: wrong lines", "host, name, driver_version\n", |_| "a\n".to_owned(), "", ""),
        ("nodes in a list", NODES, node, ",", "]}"),
        ("nodes one by one", "", |number| node(number) + "\n", "", ""),
        ("nodes without a GPU", NODES, |_| r#"{"kind":"Node"}"#.to_owned(), ",", "]}"),
        ("items that are no nodes", NODES, |_| "{}".to_owned(), ",", "]}"),
    ];
    println!("\n{:<34} {:>12} {:>12} {:>8}", "time for each MiB", "1 MiB", "16 MiB", "ratio");
    for (name, before, entry, between, after) in all {
        let time = |size: usize| {
            let mut text = before.to_owned();
            for number in 0.. {
                let entry = entry(number);
                if text.len() + entry.len() + after.len() > size {
                    break;
                }
                text.push_str(if number == 0 { "" } else { between });
                text.push_str(&entry);
            }
            text.push_str(after);
            let list = dir.file("list", &text);
            // The small input is read more often, because the clock has a resolution of 10 ms.
            let runs = if size == SMALL { 16 } else { 1 };
            let before = cost::children();
            (0..runs).for_each(|_| read(program, &list));
            let time = cost::children().saturating_sub(before) / runs;
            time.as_secs_f64() * 1e3 / f64::from(u32::try_from(size / SMALL).expect("a small number"))
        };
        let (small, large) = (time(SMALL), time(LARGE));
        println!("{name:<34} {small:>9.1} ms {large:>9.1} ms {:>8.2}", large / small);
    }
}

/// Reads a list like [`judge`], but accepts lists with errors.
fn read(program: &Path, list: &Path) {
    let mut call = Command::new(command::path());
    call.arg("verify").arg(program).arg("--fleet").arg(list).stdout(Stdio::null()).stderr(Stdio::null());
    let status = call.status().expect("the command can be started");
    assert!(matches!(status.code(), Some(0..=2)), "{status}");
}

fn smi_gpu(number: usize, elements: usize) -> String {
    let mut more = String::new();
    for element in 0..elements {
        let _ = writeln!(more, "\t<element_{element}>\n\t\t<used>{element} MiB</used>\n\t</element_{element}>");
    }
    format!(
        "<gpu id=\"{number:08}\">\n<product_name>NVIDIA A40</product_name>\n<pci><pci_device_id>223510DE</pci_device_id></pci>\n{more}</gpu>\n"
    )
}

fn smi_row(number: usize) -> String {
    format!("node-{number}, NVIDIA A40, 550.54.14\n")
}

fn node(number: usize) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{number}","labels":{{"kubernetes.io/arch":"amd64","nvidia.com/cuda.driver-version.major":"550","nvidia.com/cuda.driver-version.minor":"54","nvidia.com/cuda.driver-version.revision":"14","nvidia.com/gpu.compute.major":"8","nvidia.com/gpu.compute.minor":"6"}}}},"status":{{"capacity":{{"nvidia.com/gpu":"8"}}}}}}"#
    )
}

fn own_kind(number: usize) -> String {
    format!("{}.{}", 600 + number % 100, number / 100)
}

fn judge(program: &Path, files: usize, list: &Path, arguments: &[&str]) {
    let status = Command::new(command::path())
        .arg("verify")
        .args(std::iter::repeat_n(program, files))
        .arg("--fleet")
        .arg(list)
        .args(arguments)
        .stdout(Stdio::null())
        .status()
        .expect("the command can be started");
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}

/// Creates a guarded program that requires cuDNN, a driver and GPUs.
fn make(to: &Path, dir: &Path) {
    let version = Version::new(9, 15, 1);
    let component = Component { name: "program".to_owned(), version: "0.1.0".to_owned() };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut manifest = Manifest::from_build(component, &target, "release", &Policy::default(), &Toolchain::default());
    manifest.sealed = true;
    manifest.library = Some(BuiltWith { version, linkage: Linkage::Linked });
    let gpu = |from, to, by, code: &str| Requirement::Gpu {
        from,
        to,
        by,
        code: code.to_owned(),
        cuda: None,
        release: None,
        guaranteed_from: None,
        ptx_fallback: PtxFallback::Undetermined,
    };
    let inner = cudnn::needed_parts(9).map(Requirement::for_part);
    manifest.requires = [
        Requirement::Library {
            min: Version::new(9, 15, 0),
            below: Version::new(10, 0, 0),
            built: version,
            soname: CUDNN.soname(version),
            linkage: Linkage::Linked,
            patch_refuse: false,
            required: false,
        },
        Requirement::Driver {
            cuda: CudaVersion::new(13, 0),
            release: DriverRelease::new(580, 65, 6),
            because: "libcudart 13.0".to_owned(),
        },
        gpu((0, 0), Some((7, 255)), GpuCoverage::Nothing, ""),
        gpu((8, 0), Some((9, 255)), GpuCoverage::Cubin, "sm_80"),
        gpu((10, 0), None, GpuCoverage::Ptx, "compute_90"),
    ]
    .into_iter()
    .chain(inner)
    .collect();
    let descriptor = note::encode(&manifest).expect("a note");
    let source = NoteSource { descriptor: &descriptor, component: &manifest.component, dlopen: None };
    let GuardObjects::Objects { note, shim } =
        guard::compile_guard(&Env::from_process(), source, &target, dir, &dir.join("shims")).expect("a C compiler")
    else {
        panic!("no guard for {target}")
    };
    let source = dir.join("main.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a file can be written");
    let _ = Call::new("cc").arg("-o").arg(to).args([&source, &note, &shim]).arg("-ldl").run().success();
}

fn kind(number: usize) -> (&'static str, &'static str, &'static str) {
    let kinds = [
        ("580.65.06", "9.0", "9.28.0"),
        ("580.65.06", "8.0", "9.15.1"),
        ("580.95.05", "8.9", "9.15.1"),
        ("535.261.03", "7.5", "9.15.1"),
        ("550.163.01", "8.0", "9.1.0"),
        ("595.91.07", "10.0", "9.15.1"),
        ("595.91.07", "12.0", "9.28.0"),
        ("610.12", "9.0", "9.28.0"),
        ("580.65.06", "6.0", "9.15.1"),
        ("570.10", "8.6", "8.9.7"),
        ("580.65.06", "9.0", "9.15.1"),
        ("615.05", "10.3", "9.28.0"),
    ];
    kinds[number % kinds.len()]
}

/// Returns a host file on one line, as `probe` writes it.
fn probed(number: usize, driver: &str, gpus: usize) -> String {
    let (_, cc, cudnn) = kind(number);
    let gpus: Vec<String> = (0..gpus)
        .map(|gpu| {
            format!(
                r#"{{"name":"NVIDIA GPU {cc}","cc":"{cc}","uuid":"GPU-{number:08x}-0d1f-2c34-8c1b-3a0f0b6ce2d{gpu}","pci":"0000:{gpu}b:00.0","visible":true}}"#
            )
        })
        .collect();
    format!(
        r#"{{"revision":1,"name":"node-{number}","platform":"{}-linux","driver":{{"user":"{driver}","kernel":"{driver}","init":0,"library":"/usr/lib/libcuda.so.1","ptx_compiler":true}},"gpus":[{}],"cudnn":[{{"soname":"libcudnn.so.9","version":"{cudnn}","path":"/usr/lib/libcudnn.so.9","by":"/etc/ld.so.cache","parts":[{{"file":"libcudnn_graph.so.9","version":"{cudnn}"}}]}}],"cudart":[],"sources":{{"driver.library":"/etc/ld.so.cache","driver.user":"the name of /usr/lib/libcuda.so.{driver}","driver.kernel":"/proc/driver/nvidia/version","gpus":"libcuda, queried in a child process"}}}}"#,
        std::env::consts::ARCH,
        gpus.join(",")
    )
}

fn short(number: usize) -> String {
    let (driver, cc, cudnn) = kind(number);
    format!(
        r#"{{"name":"node-{number}","driver":{{"user":"{driver}"}},"gpus":[{{"cc":"{cc}"}}],"cudnn":[{{"version":"{cudnn}"}}]}}"#
    )
}
