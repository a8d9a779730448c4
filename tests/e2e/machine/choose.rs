//! `choose`: builds by the names that projects publish, and files.

use std::fmt::Write as _;

use cudaguard_tests::{Scratch, e2e};

use super::fixture::call;

/// The machines of [`PUBLISHED`]: GPU and driver.
const MACHINES: [(&str, &str); 10] = [
    ("P100", "535"),
    ("V100", "535"),
    ("V100", "580"),
    ("T4", "450"),
    ("T4", "525"),
    ("A100", "550"),
    ("A100", "580"),
    ("H100", "580"),
    ("B200", "570"),
    ("12.0", "580"),
];

/// No candidate runs.
const NONE: &str = "refused";
/// No candidate certainly runs: cuda12 may be a toolkit without code for Blackwell (before 12.8).
const OPEN: &str = "unknown";

/// The builds that a project publishes, and the one to choose on each machine.
const PUBLISHED: &[(&[&str], [&str; 10])] = &[
    // PyTorch, "CUDA Support Matrix": https://github.com/pytorch/pytorch/pull/164471, https://github.com/pytorch/pytorch/pull/175253
    (
        &["cu118", "cu126", "cu128", "cu130"],
        ["cu126", "cu126", "cu126", "cu118", "cu128", "cu128", "cu130", "cu130", "cu128", "cu130"],
    ),
    // JAX, cuda12: driver 525 and SM 5.2; cuda13: driver 580 and SM 7.5:
    // https://docs.jax.dev/en/latest/installation.html#nvidia-gpu
    (
        &["jax[cuda12]", "jax[cuda13]"],
        [
            "jax[cuda12]",
            "jax[cuda12]",
            "jax[cuda12]",
            NONE,
            "jax[cuda12]",
            "jax[cuda12]",
            "jax[cuda13]",
            "jax[cuda13]",
            OPEN,
            "jax[cuda13]",
        ],
    ),
    // onnxruntime: https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#requirements
    (
        &["cuda11", "cuda12", "ort-cuda-13-nightly"],
        [
            "cuda12",
            "cuda12",
            "cuda12",
            "cuda11",
            "cuda12",
            "cuda12",
            "ort-cuda-13-nightly",
            "ort-cuda-13-nightly",
            OPEN,
            "ort-cuda-13-nightly",
        ],
    ),
    // CuPy: https://docs.cupy.dev/en/stable/install.html#installing-cupy-from-pypi
    (
        &["cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"],
        [
            "cupy-cuda12x",
            "cupy-cuda12x",
            "cupy-cuda12x",
            "cupy-cuda11x",
            "cupy-cuda12x",
            "cupy-cuda12x",
            "cupy-cuda13x",
            "cupy-cuda13x",
            OPEN,
            "cupy-cuda13x",
        ],
    ),
    // vLLM: https://docs.vllm.ai/en/stable/getting_started/installation/gpu/#pre-built-wheels. It also requires 7.0.
    (
        &["vllm+cu118", "vllm+cu126", "vllm+cu128", "vllm+cu129", "vllm+cu130"],
        [
            NONE,
            "vllm+cu129",
            "vllm+cu129",
            "vllm+cu118",
            "vllm+cu129",
            "vllm+cu129",
            "vllm+cu130",
            "vllm+cu130",
            "vllm+cu129",
            "vllm+cu130",
        ],
    ),
    // llama.cpp: https://github.com/ggml-org/llama.cpp/releases
    (
        &["llama-bin-win-cuda-12.4-x64", "llama-bin-win-cuda-13.1-x64"],
        [
            "llama-bin-win-cuda-12.4-x64",
            "llama-bin-win-cuda-12.4-x64",
            "llama-bin-win-cuda-12.4-x64",
            NONE,
            "llama-bin-win-cuda-12.4-x64",
            "llama-bin-win-cuda-12.4-x64",
            "llama-bin-win-cuda-13.1-x64",
            "llama-bin-win-cuda-13.1-x64",
            NONE,
            "llama-bin-win-cuda-13.1-x64",
        ],
    ),
];

#[e2e(slow)]
fn published_builds_are_chosen() {
    let scratch = Scratch::new("choose-published");
    let mut fleet = String::new();
    for (gpu, driver) in MACHINES {
        let cc = match gpu {
            "P100" => "6.0",
            "V100" => "7.0",
            "T4" => "7.5",
            "A100" => "8.0",
            "H100" => "9.0",
            "B200" => "10.0",
            other => other,
        };
        let release = format!("{driver}.999.99");
        let _ = writeln!(
            fleet,
            "{{\"name\": \"{gpu} {driver}\", \"driver\": {{\"user\": \"{release}\", \"kernel\": \"{release}\"}}, \"gpus\": [{{\"cc\": \"{cc}\"}}]}}"
        );
    }
    let fleet = scratch.file("fleet.jsonl", fleet);
    for (candidates, expected) in PUBLISHED {
        let status = if expected.contains(&NONE) { 1 } else { 2 * i32::from(expected.contains(&OPEN)) };
        let of_fleet = call(["choose"]).args(*candidates).arg("--fleet").arg(&fleet).arg("--json").run().expect(status);
        let lines: Vec<&str> = of_fleet.stdout.lines().collect();
        assert_eq!(lines.len(), MACHINES.len());
        for (((gpu, driver), wanted), line) in MACHINES.into_iter().zip(expected).zip(lines) {
            let status = [NONE, OPEN].iter().position(|one| one == wanted).map_or(0, |at| at + 1);
            let described = call(["choose"]).args(*candidates).args(["--gpu", gpu, "--driver", driver, "--json"]).run();
            let described = described.expect(i32::try_from(status).expect("a status")).json();
            let listed: serde_json::Value = serde_json::from_str(line).expect("JSON");
            for value in [&described, &listed] {
                let chosen = value["chosen"].as_str().or(value["verdict"].as_str());
                assert_eq!(chosen, Some(*wanted), "{candidates:?} on {gpu} with driver {driver}: {value:#}");
            }
        }
    }
}

/// Each row: candidates, options, status, and lines of the output.
#[e2e]
fn other_candidates_have_reasons() {
    let cu130 = "PyTorch 2.9 to 2.14 for CUDA 13.0";
    for (candidates, options, status, lines) in [
        (
            "cu126 cu130",
            "--gpu V100 --driver 580",
            0,
            vec![
                "the described machine: cu126".to_owned(),
                format!("  cu130: refused: CG303: {cu130} has no code for compute capability 7.0"),
                "  not checked: the GPU code of the package and its compression: a name states only its toolkit; give the file to check it".to_owned(),
            ],
        ),
        (
            "torch==2.7.1+cu128 torch==2.10.0+cu128",
            "--gpu V100 --driver 580",
            0,
            vec![
                "the described machine: torch==2.10.0+cu128".to_owned(),
                "  torch==2.7.1+cu128: refused: CG303: PyTorch 2.7 to 2.8 for CUDA 12.8 has no code for compute capability 7.0".to_owned(),
            ],
        ),
        // The release notes and the build script disagree about Volta.
        (
            "torch==2.8.0+cu128",
            "--gpu V100 --driver 580",
            2,
            vec!["  torch==2.8.0+cu128: unknown: the name does not state the build: CG303: PyTorch 2.7 to 2.8 for CUDA 12.8 has no code for compute capability 7.0".to_owned()],
        ),
        (
            "12.6 12.8 12.4",
            "--gpu A100,T4 --driver 535",
            0,
            vec![
                "the described machine: 12.8".to_owned(),
                "  12.6: fits; 12.8 has a newer toolkit".to_owned(),
                "  12.4: fits; 12.8 has a newer toolkit".to_owned(),
            ],
        ),
        ("12.6 12.6.3", "--gpu A100 --driver 535", 0, vec!["  12.6.3: fits; 12.6 comes first".to_owned()]),
        // Each GPU must be served, unless the machine has both.
        (
            "cu126",
            "--gpu A100,B200 --driver 580",
            1,
            vec![
                "the described machine: no candidate runs".to_owned(),
                "  cu126: refused: CG303: PyTorch 2.6 to 2.14 for CUDA 12.6 has no code for compute capability 10.0".to_owned(),
            ],
        ),
        ("cu126", "--gpu A100,B200 --together --driver 580", 0, vec!["the described machine: cu126".to_owned()]),
        (
            "cuda12",
            "--gpu none",
            2,
            vec![
                "the described machine: unknown: no candidate certainly runs".to_owned(),
                "  cuda12: unknown: CG504: no GPU is visible: nothing to check".to_owned(),
            ],
        ),
        ("cu126 cu130 --format pip", "--gpu V100 --driver 580", 0, vec!["--index-url https://download.pytorch.org/whl/cu126".to_owned()]),
        ("cu126 cu130 --format uv", "--gpu V100 --driver 580", 0, vec!["--torch-backend=cu126".to_owned()]),
        ("cu126 cu130 --format conda", "--gpu V100 --driver 580", 0, vec!["cuda-version=12.6".to_owned()]),
        ("cu126 cu130 --format docker", "--gpu V100 --driver 580", 0, vec!["cuda12.6".to_owned()]),
        ("cuda12 cuda13 --format pip", "--gpu V100 --driver 580", 0, vec!["jax[cuda12]".to_owned()]),
        ("cupy-cuda12x cupy-cuda13x --format pip", "--gpu V100 --driver 580", 0, vec!["cupy-cuda12x".to_owned()]),
        ("cupy-cuda12x --format conda", "--gpu V100 --driver 580", 0, vec!["cuda-version=12".to_owned()]),
        ("nvidia/cuda:12.6.3-base-ubuntu24.04 --format docker", "--gpu V100 --driver 580", 0, vec!["nvidia/cuda:12.6.3-base-ubuntu24.04".to_owned()]),
        ("cu130 --format pip", "--gpu V100 --driver 580", 1, vec![]),
        ("onnxruntime-gpu", "", 2, vec!["error: onnxruntime-gpu: neither a file nor a name that states a toolkit, such as cu126, 12.6, cuda12 or cupy-cuda12x".to_owned()]),
        ("cuda99", "", 2, vec!["  cuda99: unknown: the tables do not contain this toolkit; the newest one is 13.5".to_owned()]),
        (
            "cu140 cu126 cu126",
            "--gpu A100 --driver 550",
            0,
            vec![
                "the described machine: cu126".to_owned(),
                "  cu140: unknown: the tables do not contain this toolkit; the newest one is 13.5".to_owned(),
                "  cu126: fits; cu126 comes first".to_owned(),
            ],
        ),
        ("cu126 --strict", "--gpu A100 --driver 550", 2, vec!["the described machine: cu126".to_owned()]),
        (
            "vllm+cu126",
            "--gpu P100 --driver 580",
            1,
            vec!["  vllm+cu126: refused: CG303: vLLM for CUDA 12.6 has no code for compute capability 6.0".to_owned()],
        ),
        ("torch-2.8.0+cu126.whl", "", 2, vec!["error: torch-2.8.0+cu126.whl: no such file".to_owned()]),
    ] {
        let arguments = candidates.split(' ').chain(options.split(' ').filter(|word| !word.is_empty()));
        let outcome = call(["choose"]).args(arguments).run().expect(status);
        let printed = format!("{}{}", outcome.stdout, outcome.clean_stderr());
        for line in &lines {
            assert!(printed.lines().any(|one| one == line), "{candidates} {options}: no line {line:?} in\n{printed}");
        }
        let is_for_installer = candidates.contains("--format");
        assert!(!is_for_installer || outcome.stdout.lines().count() == lines.len(), "{candidates}: {}", outcome.stdout);
    }
}
