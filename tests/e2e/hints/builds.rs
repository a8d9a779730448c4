//! Hints of `cargo cudaguard check`.

use crate::toolchains::fixture::{Bench, recorded};

use super::{hint_of, is_solved, part};

/// A fault of a build, and the literal application of its hint.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) code: &'static str,
    scene: fn(&mut Bench),
    fix: fn(&mut Bench, &str),
}

impl Row {
    pub(super) fn check(&self) {
        let mut bench = Bench::without_blanks(self.name);
        (self.scene)(&mut bench);
        let hint = hint_of(bench.tell().value(), self.code);
        (self.fix)(&mut bench, &hint);
        is_solved(bench.tell().value(), self.code, &hint);
    }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "toolkit-missing",
        code: "CG100",
        scene: |bench| {
            bench.set_at("CUDA_HOME", "opt/cuda");
            bench.policy("toolkit.require = \">=12.4\"\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("install a toolkit, or set CUDA_HOME to its root"), "{hint}");
            bench.cuda("opt/cuda", "13.0");
        },
    },
    Row {
        name: "toolkit-not-required",
        code: "CG100",
        scene: |bench| bench.policy("toolkit.require = \">=12.4\"\n"),
        fix: |bench, hint| {
            let _ = part(hint, "remove [toolkit] require", "");
            bench.policy("");
        },
    },
    Row {
        name: "path-against-cuda-home",
        code: "CG101",
        scene: |bench| {
            bench.cuda("opt/cuda-13.0", "13.0");
            bench.cuda("opt/cuda-13.5", "13.5");
            bench.path_first("opt/cuda-13.0/bin");
            bench.set_at("CUDA_HOME", "opt/cuda-13.5");
        },
        fix: |bench, hint| bench.path_first(part(hint, "put ", " first in PATH")),
    },
    Row {
        name: "cuda-home-against-path",
        code: "CG101",
        scene: |bench| {
            bench.cuda("opt/cuda-13.0", "13.0");
            bench.cuda("opt/cuda-13.5", "13.5");
            bench.path_first("opt/cuda-13.0/bin");
            bench.set_at("CUDA_HOME", "opt/cuda-13.5");
        },
        fix: |bench, hint| {
            let (variable, root) = part(hint, "for the other, set ", "").split_once('=').expect("a variable");
            bench.set(variable, root);
        },
    },
    Row {
        name: "rustflags-with-another-cudart",
        code: "CG102",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cuda("opt/cuda-11.8", "11.8");
            let flags = format!("-L native={}", bench.at("opt/cuda-11.8/lib64").display());
            bench.set("RUSTFLAGS", flags);
        },
        fix: |bench, hint| bench.set(part(hint, "remove that directory from -L in ", ","), ""),
    },
    Row {
        name: "library-path-with-another-cudart",
        code: "CG102",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cuda("opt/cuda-11.8", "11.8");
            bench.set_at("LIBRARY_PATH", "opt/cuda-11.8/lib64");
        },
        fix: |bench, hint| bench.set(part(hint, "remove that directory from ", ","), ""),
    },
    Row {
        name: "toolkit-not-allowed",
        code: "CG103",
        scene: |bench| {
            bench.cuda("usr/local/cuda-13.5", "13.5");
            bench.fake_library("usr/local/cuda-12.4", "12.4.131");
            bench.policy("toolkit.require = \">=12.4, <13\"\n");
        },
        fix: |bench, hint| {
            assert!(
                hint.starts_with("put the bin directory of an allowed toolkit first in PATH and set CUDA_HOME"),
                "{hint}"
            );
            bench.path_first("usr/local/cuda-12.4/bin");
            bench.set_at("CUDA_HOME", "usr/local/cuda-12.4");
        },
    },
    Row {
        name: "nvcc-with-unexpected-output",
        code: "CG104",
        scene: |bench| {
            bench.program("opt/cuda/bin/nvcc", "echo 'license server not reachable' >&2; exit 3");
            bench.path_first("opt/cuda/bin");
        },
        fix: |bench, hint| {
            let _ = part(hint, "reinstall the toolkit", "");
            bench.fake_library("opt/cuda", "12.4.131");
        },
    },
    Row {
        name: "host-compiler-rejected",
        code: "CG105",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "11.8");
            bench.set("NVCC_CCBIN", "gcc");
        },
        fix: |bench, hint| {
            let compiler = part(hint, "install ", " and set");
            let (_, major) = compiler.split_once('-').expect("a release");
            bench.gcc(&format!("usr/bin/{compiler}"), &format!("{major}.1.0"));
            bench.set("NVCC_CCBIN", part(hint, "otherwise NVCC_CCBIN=", ";"));
        },
    },
    Row {
        name: "stubs-at-run-time",
        code: "CG106",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            let stubs = bench.at("usr/local/cuda/lib64/stubs");
            bench.set("LD_LIBRARY_PATH", stubs);
        },
        fix: |bench, hint| bench.set(part(hint, "remove the stubs directory from ", ";"), ""),
    },
    Row {
        name: "stale-allow",
        code: "CG109",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.policy("[allow]\nCG121 = \"an old GPU\"\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("remove CG121 from [allow]"), "{hint}");
            bench.policy("");
        },
    },
    Row {
        name: "headers-older-than-cudnn",
        code: "CG110",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cudnn("opt/cudnn-9.1", "9.1.0");
            bench.cudnn("opt/cudnn-9.15", "9.15.1");
            bench.set_at("CUDNN_INCLUDE_DIR", "opt/cudnn-9.1/include");
            bench.set_at("CUDNN_LIB", "opt/cudnn-9.15/lib");
        },
        fix: |bench, hint| {
            let _ = part(hint, "set CUDNN_PATH to its root and unset the other CUDNN_ variables", "");
            bench.set_at("CUDNN_PATH", "opt/cudnn-9.15");
            bench.unset("CUDNN_INCLUDE_DIR");
            bench.unset("CUDNN_LIB");
        },
    },
    Row {
        name: "cudnn-for-another-cuda",
        code: "CG111",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cudnn("opt/cudnn", "9.15.1-cu12");
            bench.set_at("CUDNN_PATH", "opt/cudnn");
        },
        fix: |bench, hint| {
            assert!(hint.contains("cudnn9-cuda-13"), "{hint}");
            bench.cudnn("opt/cudnn9-cuda-13", "9.15.1");
            bench.set_at("CUDNN_PATH", "opt/cudnn9-cuda-13");
        },
    },
    Row {
        name: "cudnn-incomplete",
        code: "CG112",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cudnn("opt/cudnn", "9.15.1-loader");
            bench.set_at("CUDNN_PATH", "opt/cudnn");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("reinstall cuDNN completely"), "{hint}");
            bench.cudnn("opt/complete", "9.15.1");
            bench.set_at("CUDNN_PATH", "opt/complete");
        },
    },
    Row {
        name: "cudnn-not-allowed",
        code: "CG113",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.cudnn("opt/cudnn", "9.15.1");
            bench.cudnn("opt/cudnn-9.28", "9.28.0");
            bench.set_at("CUDNN_PATH", "opt/cudnn");
            bench.policy("cudnn.require = \"^9.20\"\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("set CUDNN_PATH to the root of an allowed cuDNN"), "{hint}");
            bench.set_at("CUDNN_PATH", "opt/cudnn-9.28");
        },
    },
    Row {
        name: "cudnn-headers-damaged",
        code: "CG114",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.file("opt/cudnn/include/cudnn_version.h", "#define CUDNN_MAJOR\n");
            bench.set_at("CUDNN_PATH", "opt/cudnn");
        },
        fix: |bench, hint| {
            let _ = part(hint, "should define CUDNN_MAJOR, CUDNN_MINOR and CUDNN_PATCHLEVEL", "");
            bench.file(
                "opt/cudnn/include/cudnn_version.h",
                "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 15\n#define CUDNN_PATCHLEVEL 1\n",
            );
        },
    },
    Row {
        name: "arch-too-new",
        code: "CG120",
        scene: |bench| {
            bench.fake_library("usr/local/cuda", "12.4.131");
            bench.set("CUDAARCHS", "90;120");
        },
        fix: |bench, hint| {
            let first = format!("{}.", part(hint, "build with CUDA ", " or newer"));
            let releases = recorded();
            let mut builds = releases.iter().filter_map(|release| release["version"].as_str());
            let build = builds.find(|build| build.starts_with(&first)).expect("a release");
            bench.fake_library("opt/cuda", build);
            bench.path_first("opt/cuda/bin");
        },
    },
    Row {
        name: "arch-dropped",
        code: "CG121",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.policy("gpu.archs = [\"sm_70\", \"sm_90a\"]\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("remove it"), "{hint}");
            bench.policy("gpu.archs = [\"sm_90a\"]\n");
        },
    },
    Row {
        name: "archs-contradict",
        code: "CG123",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.policy("gpu.archs = [\"sm_80\", \"sm_90a\"]\n");
            bench.set("CUDA_COMPUTE_CAP", "86");
        },
        fix: |bench, hint| {
            let _ = part(hint, "preferably [gpu] archs in cudaguard.toml, and unset the others", "");
            bench.unset("CUDA_COMPUTE_CAP");
        },
    },
    Row {
        name: "native-without-gpu",
        code: "CG124",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.set("CUDAARCHS", "native");
        },
        fix: |bench, hint| bench.set("CUDAARCHS", part(hint, "for example CUDAARCHS=\"", "\"")),
    },
    Row {
        name: "native-outside-the-fleet",
        code: "CG125",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.program("usr/bin/nvidia-smi", "echo 8.9; echo 8.9");
            bench.set("CUDAARCHS", "native");
            bench.policy("gpu.fleet = [\"A100\", \"L4\"]\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("name the archs of the fleet instead of `native`"), "{hint}");
            bench.set("CUDAARCHS", "80;89");
        },
    },
    Row {
        name: "arch-unreadable",
        code: "CG126",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.set("CUDAARCHS", "80;hopper");
        },
        fix: |bench, hint| bench.set(part(hint, "correct ", ","), part(hint, "for example to `", "`")),
    },
    Row {
        name: "package-misspelled",
        code: "CG141",
        scene: |bench| {
            bench.cuda("usr/local/cuda", "13.0");
            bench.policy("[package.ap.toolkit]\nrequire = \">=12\"\n");
        },
        fix: |bench, hint| {
            assert!(hint.starts_with("did you mean package.app?"), "{hint}");
            bench.policy("[package.app.toolkit]\nrequire = \">=12\"\n");
        },
    },
];
