//! Output of `requirements` for users and programs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, Requirement};
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::fake_library::shared_library;
use cudaguard_tests::{Call, Scratch, command, e2e, parts, snapshot, tools};

use super::cel::Claim;
use super::consumers::{self, Seen};
use crate::machine::fixture::{asks_driver, demo, gpu, manifest, of_driver, program};

const FORMS: [&str; 10] =
    ["text", "json", "oci", "k8s-dra", "k8s-affinity", "conda", "wheel-variant", "slurm", "cyclonedx", "spdx"];

fn call(form: &str, files: &[&Path]) -> Call {
    command::call(["requirements", "--format", form]).args(files).env("CARGO_TERM_COLOR", "never")
}

fn plain(text: &str) -> String {
    let dir = demo().parent().expect("a folder");
    snapshot::paths(text, &[(dir, "<folder>")])
}

fn written(form: &str, files: &[&Path]) -> String {
    call(form, files).run().success().stdout
}

/// Program of the examples: machine code for 8.x and 9.x, PTX for newer GPUs, toolkit 12.4, cuDNN.
pub(crate) fn example() -> &'static Path {
    static MADE: OnceLock<(Scratch, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let scratch = Scratch::new("requirements-example");
        let path = scratch.join("my-model");
        program(&path, &[built_with_12_4()]);
        (scratch, path)
    });
    path
}

fn built_with_12_4() -> Manifest {
    let mut made = manifest(Linkage::Linked);
    made.requires.retain(|row| matches!(row, Requirement::Library { .. } | Requirement::Part { .. }));
    let cuda_12_4 = (CudaVersion::new(12, 4), DriverRelease::new(550, 54, 14));
    made.requires.extend([
        Requirement::Driver {
            cuda: CudaVersion::new(12, 0),
            release: DriverRelease::new(525, 60, 13),
            because: "libcudart 12.4".to_owned(),
        },
        gpu((0, 0), Some((7, 255)), GpuCoverage::Nothing, "", None),
        gpu((8, 0), Some((8, 6)), GpuCoverage::Cubin, "sm_80", None),
        gpu((8, 7), Some((8, 7)), GpuCoverage::Nothing, "", None),
        gpu((8, 8), Some((8, 255)), GpuCoverage::Cubin, "sm_80", None),
        gpu((9, 0), Some((9, 0)), GpuCoverage::Cubin, "sm_90", None),
        gpu((9, 1), None, GpuCoverage::Ptx, "compute_90", Some(cuda_12_4)),
    ]);
    made
}

#[e2e]
fn requirement_formats_match_snapshot() {
    for form in FORMS {
        let text = written(form, &[example()]);
        assert_eq!(text, written(form, &[example()]), "{form} prints the same each time");
        let dir = example().parent().expect("a folder");
        let text = without_digests(&snapshot::paths(&plain(&text), &[(dir, "<folder>")]));
        snapshot::check(&format!("requirements/{form}"), &text);
    }
    assert_eq!(
        written("json", &[example()]),
        command::call(["requirements", "--json"]).arg(example()).run().success().stdout
    );
}

/// Slurm starts prologs without a PATH, and a Prolog that fails drains the node.
#[e2e]
fn slurm_check_never_fails_a_prolog() {
    let scratch = Scratch::new("requirements-prolog");
    let script = scratch.file("check.sh", written("slurm", &[example()]));
    let run = |context: &str| {
        let set = format!("SLURM_SCRIPT_CONTEXT={context}");
        Call::new("env").args(["-i", &set, "/bin/sh"]).arg(&script).run()
    };
    for context in ["prolog_slurmd", "epilog_slurmd", "prolog_slurmctld"] {
        let _ = run(context).success();
    }
    // No nvidia-smi is an error of the check, not of a program that is not found.
    let task = run("prolog_task");
    assert_ne!(task.status(), Some(0), "{task}");
    assert!(task.stdout.is_empty() && !task.stderr.contains("uname"), "{task}");
}

/// All programs must run: the output contains the GPUs that both support, and the newer driver.
#[e2e]
fn several_files_are_combined() {
    let both = written("text", &[example(), of_driver()]);
    snapshot::check("requirements/several", &plain(&both));
    let value: serde_json::Value = serde_json::from_str(&written("json", &[example(), of_driver()])).expect("JSON");
    assert_eq!(value["gpus"][0]["driver"]["cuda"], "13.0", "{value:#}");
}

/// A program of 12.4 runs on a driver of 12.2, because both have the same major. EESSI's software layer once refused this,
/// because it compared the two versions.
#[e2e]
fn minor_version_compatibility_is_used() {
    let on = |release: &str, cuda: (u32, u32)| Seen {
        processor: std::env::consts::ARCH,
        release: release.to_owned(),
        cuda,
        gpus: vec![(8, 0)],
    };
    let (older, too_old) = (on("535.261.03", (12, 2)), on("520.61.05", (11, 8)));
    for (machine, taken) in [(&older, true), (&too_old, false)] {
        let require = written("oci", &[example()]);
        assert_eq!(consumers::nvidia_require(&require, machine), taken, "{require}");
        assert_eq!(consumers::affinity(&written("k8s-affinity", &[example()]), machine), taken);
        assert_eq!(consumers::slurm(&written("slurm", &[example()]), std::slice::from_ref(machine)), [taken]);
    }
    let verdict = command::call(["verify", "--json", "--driver", "535.261.03", "--gpu", "A100", "--cudnn", "9.15.1"]);
    assert_eq!(verdict.arg(example()).run().json()["verdict"], "runs");
}

/// The program accepts cuDNN 8.0, which has no code for H100. `requirements`, `verify` and `map` agree for each GPU.
#[e2e]
fn cudnn_depends_on_gpu() {
    let scratch = Scratch::new("requirements-cudnn");
    let file = scratch.join("model");
    let mut made = built_with_12_4();
    made.requires.retain(|row| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. }));
    made.require_cudnn(Version::new(8, 0, 0));
    program(&file, &[made]);
    let of = |form: &str| written(form, &[&file]);
    let asked: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
    for (from, min) in [("8.0", "8.0.0"), ("9.0", "8.6.0"), ("9.1", "8.6.0")] {
        let mut gpus = asked["gpus"].as_array().expect("GPUs").iter();
        assert!(gpus.any(|gpus| gpus["from"] == from && gpus["cudnn"]["min"] == min), "{from} {min}: {asked:#}");
    }
    assert_eq!(asked["cudnn"]["min"], "8.0.0");
    let verdict = |gpu: &str, cudnn: &[&str]| {
        let call = command::call(["verify", "--json", "--driver", "580.95.05", "--gpu", gpu]);
        call.args(cudnn).arg(&file).run().json()["verdict"].as_str().expect("a verdict").to_owned()
    };
    for (gpu, cudnn, expected) in [
        ("A100", &["--cudnn", "8.0.0"][..], "runs"),
        ("H100", &["--cudnn", "8.5.0"], "unknown"),
        ("H100", &["--cudnn", "8.6.0"], "runs"),
        ("H100", &[], "runs"),
        ("B200", &["--cudnn", "8.9.7"], "unknown"),
        // No release that the program accepts has code for it.
        ("B200", &[], "unknown"),
    ] {
        assert_eq!(verdict(gpu, cudnn), expected, "{gpu} {cudnn:?}");
    }
    let map = command::call(["map", "--json"]).arg(&file).run().success().json();
    let cells = |cc: &str| {
        let row = map["gpus"].as_array().expect("rows").iter().find(|row| row["cc"] == cc);
        row.unwrap_or_else(|| panic!("{map:#}")).to_string()
    };
    assert!(cells("9.0").contains("native") && !cells("9.0").contains("unknown"), "{map:#}");
    let note = "Excludes compute capability 9.0, which needs cuDNN 8.6.0 or newer: the format cannot express this.";
    for form in FORMS {
        let (text, expresses) = (of(form), ["text", "json", "oci", "conda", "cyclonedx", "spdx"]);
        assert!(text.contains("8.6.0"), "{form}: {text}");
        assert_eq!(text.contains(note), !expresses.contains(&form), "{form}: {text}");
    }
    assert!(of("text").contains("cuDNN: 8.6.0 or newer\n") && of("conda").contains("cudnn >=8.6.0,<9.0.0"));
    let hopper =
        Seen { processor: std::env::consts::ARCH, release: "550.163.01".to_owned(), cuda: (12, 4), gpus: vec![(9, 0)] };
    assert!(!consumers::affinity(&of("k8s-affinity"), &hopper) && consumers::json(&asked, &hopper));
}

/// The driver of CUDA 13 supports no GPU before Maxwell, so that such a machine cannot exist. The program has no kernels.
#[e2e]
fn gpu_without_such_a_driver_is_excluded() {
    let scratch = Scratch::new("requirements-left");
    let file = scratch.join("tool");
    let mut made = built_with_12_4();
    let floor = CudaVersion::new(13, 0);
    let release = DriverRelease::new(580, 65, 6);
    made.requires = vec![Requirement::Driver { cuda: floor, release, because: "libcudart 13.0".to_owned() }];
    program(&file, &[made]);
    let asked: serde_json::Value = serde_json::from_str(&written("json", &[&file])).expect("JSON");
    assert_eq!(asked["gpus"][0]["from"], "5.0", "{asked:#}");
    assert_eq!(
        (&asked["not_served"][0]["to"], &asked["not_served"][0]["code"]),
        (&"4".into(), &"CG317".into()),
        "{asked:#}"
    );
    assert_eq!(asked["gpus"].as_array().map(Vec::len), Some(1), "{asked:#}");
}

/// A program that only opens cuDNN by name runs without it, so its releases exclude no GPU, unless the policy requires cuDNN.
#[e2e(slow)]
fn optional_cudnn_excludes_no_gpu() {
    let scratch = Scratch::new("requirements-optional-cudnn");
    let at = |gpu: &str| match gpu {
        "H100" => "9.0",
        _ => "10.0",
    };
    for (name, is_required, expected) in [
        // Each case: the GPU, without cuDNN, with unknown cuDNN, in the map, by `requirements`, and in a format without cuDNN.
        (
            "optional",
            false,
            [("H100", "runs", "runs", "native", true, true), ("B200", "runs", "runs", "jit", true, true)],
        ),
        (
            "required",
            true,
            [
                ("H100", "refused", "runs", "native", true, false),
                ("B200", "refused", "unknown", "unknown", false, false),
            ],
        ),
    ] {
        let file = scratch.join(name);
        let mut made = built_with_12_4();
        made.requires.retain(|row| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. }));
        made.require_cudnn(Version::new(8, 0, 0));
        for row in &mut made.requires {
            if let Requirement::Library { linkage, required, .. } = row {
                (*linkage, *required) = (Linkage::Dlopened, is_required);
            }
        }
        program(&file, &[made]);
        let verdict = |gpu: &str, cudnn: &[&str]| {
            let call = command::call(["verify", "--json", "--driver", "580.95.05", "--gpu", gpu]).args(cudnn);
            call.arg(&file).run().json()["verdict"].as_str().expect("a verdict").to_owned()
        };
        let map = command::call(["map", "--json"]).arg(&file).run().success().json();
        let asked: serde_json::Value = serde_json::from_str(&written("json", &[&file])).expect("JSON");
        let conditions = written("k8s-affinity", &[&file]);
        for (gpu, without, unknown, in_map, fits, without_format) in expected {
            assert_eq!((&*verdict(gpu, &["--cudnn", "none"]), &*verdict(gpu, &[])), (without, unknown), "{name} {gpu}");
            let row = map["gpus"].as_array().expect("rows").iter().find(|row| row["cc"] == at(gpu)).expect("a row");
            assert!(row.to_string().contains(in_map), "{name} {gpu}: {row:#}");
            let cc = at(gpu).split_once('.').map(|(major, _)| (major.parse().expect("a number"), 0)).expect("a dot");
            let processor = std::env::consts::ARCH;
            let seen = Seen { processor, release: "580.95.05".to_owned(), cuda: (13, 0), gpus: vec![cc] };
            assert_eq!(consumers::json(&asked, &seen), fits, "{name} {gpu}: {asked:#}");
            assert_eq!(consumers::affinity(&conditions, &seen), without_format, "{name} {gpu}: {conditions}");
        }
        let note = written("k8s-affinity", &[&file]);
        let expresses = "compute capability 9.0 needs cuDNN 8.6.0 or newer, if it is used";
        assert_eq!(note.contains(expresses), !is_required, "{note}");
    }
}

/// A device of another driver, and a device without versions, are skipped. An error would abort the complete allocation.
#[e2e(slow)]
fn devices_without_attribute_are_excluded() {
    let claim = Claim::of(&written("k8s-dra", &[example()]));
    let whole = [("cudaComputeCapability", "8.0.0"), ("cudaDriverVersion", "12.4.0"), ("driverVersion", "550.163.1")];
    assert_eq!(claim.takes("gpu.nvidia.com", &whole), Ok(true));
    assert_eq!(claim.takes("gpu.other.com", &whole), Ok(false));
    for attributes in [&whole[..1], &whole[1..], &[]] {
        assert_eq!(claim.takes("gpu.nvidia.com", attributes), Ok(false), "{attributes:?}");
    }
}

/// The program only requires a driver: users get a message, and no selector is empty.
#[e2e]
fn program_without_cuda_has_no_requirements() {
    let scratch = Scratch::new("requirements-nothing");
    let mut asks = asks_driver();
    asks.requires.clear();
    let file = scratch.join("nothing");
    program(&file, &[asks]);
    let text = written("text", &[&file]);
    assert!(text.contains("no requirement on driver or GPU"), "{text}");
    let words = ["no requirement", "no CUDA component is required"];
    for form in FORMS.iter().filter(|form| !["text", "json"].contains(form)) {
        let outcome = call(form, &[&file]).run().expect(2);
        assert!(outcome.stdout.is_empty() && words.iter().any(|words| outcome.stderr.contains(words)), "{outcome}");
    }
}

#[e2e]
fn underivable_requirements_are_an_error() {
    let scratch = Scratch::new("requirements-none");
    let mut text = String::new();
    let mut say = |what: &str, files: &[&Path]| {
        for form in ["text", "k8s-dra"] {
            let outcome = call(form, files).run().expect(2);
            assert!(outcome.stdout.is_empty(), "{outcome}");
            let _ = write!(text, "{what}\n{}", outcome.clean_stderr());
        }
    };
    let source = scratch.file("main.c", "int main(void) { return 0; }\n");
    let bare = scratch.join("bare");
    let _ = Call::new("cc").arg(&source).arg("-o").arg(&bare).run().success();
    say("no CUDA at all:", &[&bare]);
    say("one of two has none:", &[example(), &bare]);
    say("no file:", &[&scratch.join("absent")]);
    // The first byte of the note's descriptor belongs to its magic number, without which the note is ignored.
    let mut bytes = std::fs::read(example()).expect("the program");
    let at = bytes.windows(10).position(|window| window == b"cudaguard\0").expect("the note's owner");
    bytes[at + 12..at + 44].fill(0xff);
    let damaged = scratch.file("damaged", &bytes);
    say("a damaged note:", &[&damaged]);
    let libcuda = scratch.join("libs/libcuda-1a2b3c4d.so.535.261.03");
    shared_library("libcuda-1a2b3c4d.so.535.261.03").source("int cuInit(int a) { return a; }").make(&libcuda);
    let own = scratch.join("own");
    let source = scratch.file("own.c", "int cuInit(int); int main(void) { return cuInit(0); }\n");
    let call = Call::new("cc").arg("-o").arg(&own).arg(&source).arg(&libcuda).arg("-Wl,-rpath,$ORIGIN/libs");
    let _ = call.run().success();
    say("a copy of libcuda:", &[&own]);
    // No GPU is supported.
    let mut nowhere = asks_driver();
    for row in &mut nowhere.requires {
        if let Requirement::Gpu { by, .. } = row {
            *by = GpuCoverage::Nothing;
        }
    }
    let unserved = scratch.join("unserved");
    program(&unserved, &[nowhere]);
    say("no code for any GPU:", &[&unserved]);
    // A toolkit that is newer than the tables.
    let mut newer = asks_driver();
    for row in &mut newer.requires {
        if let Requirement::Driver { cuda, .. } = row {
            *cuda = CudaVersion::new(99, 0);
        }
    }
    let unheard = scratch.join("unheard");
    program(&unheard, &[newer]);
    say("a driver that no table knows:", &[&unheard]);
    snapshot::check(
        "requirements/none",
        &snapshot::paths(&text, &[(&scratch, "<scratch>"), (example().parent().expect("a folder"), "<folder>")]),
    );
}

/// The bytes of the example depend on the compiler of the machine.
fn without_digests(text: &str) -> String {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_hex) {
        let (before, from) = rest.split_at(at);
        let length = from.find(|c| !is_hex(c)).unwrap_or(from.len());
        kept += before;
        kept += if matches!(length, 16 | 64) { "<digest>" } else { &from[..length] };
        rest = &from[length..];
    }
    kept + rest
}

/// A wheel with a library of NVIDIA inside, and one that it requires.
#[e2e]
fn bill_of_wheel_lists_libraries() {
    tools::need_all(&["g++", "python3"]);
    let scratch = Scratch::without_blanks("requirements-bill");
    let cudart = parts::cuda("13.0").join("lib/libcudart.so.13");
    scratch.file(
        "app.c",
        "extern int cudaGetDeviceCount(int *);\nint f(void) { int n; return cudaGetDeviceCount(&n); }\n",
    );
    for dir in ["tree/app", "tree/app.libs", "tree/app-1.0.dist-info"] {
        std::fs::create_dir_all(scratch.join(dir)).expect("a directory");
    }
    let call = Call::new("gcc").args(["-shared", "-fPIC", "app.c", "-o", "tree/app/app.so"]).arg(&cudart);
    let _ = call.dir(scratch.path()).run().success();
    std::fs::copy(&cudart, scratch.join("tree/app.libs/libcudart.8dd2b5e6.so.13")).expect("a copy");
    // Libraries that do not use CUDA. One has a version in its name.
    for name in ["libgomp-a34b3233.so.1.0.0", "libplain.so.1"] {
        let plain = Call::new("gcc").args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"]);
        let _ = plain.arg(scratch.join("tree/app.libs").join(name)).run().success();
    }
    let metadata =
        "Metadata-Version: 2.1\nName: My_App\nVersion: 1.0+cu130\nRequires-Dist: nvidia-cudnn-cu13==9.15.1.9\n";
    scratch.file("tree/app-1.0.dist-info/METADATA", metadata);
    let pack =
        "import shutil; shutil.move(shutil.make_archive('x', 'zip', 'tree'), 'my_app-1.0+cu130-py3-none-any.whl')";
    let _ = Call::new("python3").args(["-c", pack]).dir(scratch.path()).run().success();
    let wheel = scratch.join("my_app-1.0+cu130-py3-none-any.whl");
    let digest = |path: &Path| {
        let outcome = Call::new("sha256sum").arg(path).run().success();
        outcome.stdout.split(' ').next().expect("a digest").to_owned()
    };
    let cyclonedx: serde_json::Value = serde_json::from_str(&written("cyclonedx", &[&wheel])).expect("JSON");
    let components = cyclonedx["components"].as_array().expect("components");
    let of = |name: &str| {
        components.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {cyclonedx:#}"))
    };
    assert_eq!(of("My_App")["purl"], "pkg:pypi/my-app@1.0%2Bcu130");
    assert_eq!(of("My_App")["hashes"][0]["content"], digest(&wheel).as_str());
    let inside =
        components.iter().find(|one| one["bom-ref"] == "app.libs/libcudart.8dd2b5e6.so.13").expect("the library");
    assert_eq!((&inside["name"], &inside["version"]), (&"libcudart.so.13".into(), &"13.0".into()));
    assert_eq!(inside["hashes"][0]["content"], digest(&cudart).as_str());
    for (name, version, purl) in [
        ("app.so", "1.0+cu130", "pkg:pypi/my-app@1.0%2Bcu130#app/app.so"),
        ("libplain.so.1", "1.0+cu130", "pkg:pypi/my-app@1.0%2Bcu130#app.libs/libplain.so.1"),
        ("libgomp-a34b3233.so.1.0.0", "1.0.0", "pkg:pypi/my-app@1.0%2Bcu130#app.libs/libgomp-a34b3233.so.1.0.0"),
    ] {
        let (component, hash) = (of(name), &of(name)["hashes"][0]["content"]);
        assert_eq!((&component["version"], &component["purl"]), (&version.into(), &purl.into()), "{component}");
        assert_eq!(hash.as_str().map(str::len), Some(64), "{component}");
        assert!(component.get("supplier").is_none(), "{component}");
    }
    assert_eq!(of("nvidia-cudnn-cu13")["purl"], "pkg:pypi/nvidia-cudnn-cu13@9.15.1.9");
    let spdx: serde_json::Value = serde_json::from_str(&written("spdx", &[&wheel])).expect("JSON");
    let packages = spdx["packages"].as_array().expect("packages");
    let checksums: Vec<&str> =
        packages.iter().filter_map(|one| one["checksums"][0]["checksumValue"].as_str()).collect();
    assert_eq!(checksums.len(), 5, "the wheel and four libraries: {spdx:#}");
    assert!([&wheel, &cudart].iter().all(|path| checksums.contains(&digest(path).as_str())), "{spdx:#}");
    assert!(spdx["relationships"].as_array().expect("a list").iter().any(|one| one["relationshipType"] == "CONTAINS"));
}
