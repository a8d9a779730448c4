//! The table of recipes, one for each cause of a finding. The suite `toolchains` has more machines for each.

use cudaguard_tests::parts;

use super::fixture::{Machine, Recipe};

const fn recipe(
    name: &'static str,
    errors: &'static [&'static str],
    policy: &'static str,
    machine: fn(&mut Machine),
) -> Recipe {
    Recipe { name, machine, policy, errors, warnings: &[], observed: None }
}

pub(crate) fn toolkits() -> Vec<Recipe> {
    vec![
        recipe("path-against-cuda-home", &["CG101"], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.cuda("cuda-13.5", "13.5");
            machine.set_at("CUDA_HOME", "cuda-13.5");
        }),
        recipe("nvcc-copied-into-another-root", &["CG101"], "", |machine| {
            machine.one_of("cuda/bin/nvcc", &parts::cuda("13.0").join("bin/nvcc"));
            machine.one_of("cuda/include/cuda.h", &parts::cuda("13.5").join("include/cuda.h"));
            machine.set_at("CUDA_HOME", "cuda");
            machine.path_first("cuda/bin");
        }),
        // (RUSTFLAGS can also add a cudart, but would recompile all crates. The toolchain suite covers this.)
        recipe("another-cudart-in-the-same-root", &["CG102"], "", |machine| {
            let (new, old) = (parts::cuda("13.0"), parts::cuda("11.8"));
            for (part, file) in [(&new, "bin/nvcc"), (&new, "include/cuda.h"), (&old, "lib64/libcudart.so")] {
                machine.one_of(&format!("cuda/{file}"), &part.join(file));
            }
            machine.set_at("CUDA_HOME", "cuda");
            machine.path_first("cuda/bin");
        }),
        recipe("toolkit-newer-than-allowed", &["CG103"], "[toolkit]\nrequire = \">=12.4, <13.5\"\n", |machine| {
            machine.cuda_in_use("13.5");
        }),
        recipe(
            "package-with-stricter-policy",
            &["CG103"],
            "[toolkit]\nrequire = \">=12\"\n[package.app.toolkit]\nrequire = \">=13.5\"\n[package.other.toolkit]\nrequire = \"<12\"\n",
            |machine| machine.cuda_in_use("13.0"),
        ),
        recipe("cuda-home-is-missing", &["CG100"], "[toolkit]\nrequire = \">=12.4\"\n", |machine| {
            machine.set_at("CUDA_HOME", "cuda-12.4");
        }),
        recipe("gcc-too-new-for-nvcc", &["CG105"], "", |machine| {
            machine.cuda_in_use("11.8");
            machine.program("bin/g++-13", "g++-13 (a fake) 13.2.0\n(C) Free Software Foundation, Inc.");
            machine.set_at("NVCC_CCBIN", "bin/g++-13");
            machine.set_at("CXX", "bin/g++-13");
        }),
        recipe("stubs-in-the-rpath", &["CG106"], "", |machine| {
            machine.cuda_in_use("13.0");
            let stubs = machine.at("cuda-13.0/lib64/stubs");
            machine.set("LDFLAGS", format!("-Wl,-rpath,{}", stubs.display()));
        }),
        recipe("another-toolkit-than-the-one-locked", &["CG107"], "", |machine| {
            machine.cuda_in_use("13.5");
            let target = "x86_64-unknown-linux-gnu";
            machine.lock = Some(format!("version = 1\n\n[target.{target}]\ntoolkit = \"13.0.88\"\n"));
        }),
    ]
}

pub(crate) fn cudnn() -> Vec<Recipe> {
    vec![
        recipe("headers-older-than-the-library", &["CG110"], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn-9.28", "9.28.0");
            machine.cudnn("cudnn-9.15", "9.15.1");
            machine.set_at("CUDNN_INCLUDE_DIR", "cudnn-9.15/include");
            machine.set_at("CUDNN_LIB", "cudnn-9.28/lib");
        }),
        recipe("cudnn-of-cuda-12-under-cuda-13", &["CG111"], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "9.15.1-cu12");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
        recipe("loader-library-alone", &["CG112"], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "9.15.1-loader");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
        recipe("cudnn-older-than-allowed", &["CG113"], "[cudnn]\nrequire = \"^9.20\"\n", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "9.15.1");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
        // The linker may receive a cuDNN that no variable names.
        Recipe {
            observed: Some(&["CG113"]),
            ..recipe("required-cudnn-is-missing", &["CG113"], "[cudnn]\nrequire = \"^9.1\"\n", |machine| {
                machine.cuda_in_use("13.0");
                machine.set_at("CUDNN_PATH", "cudnn");
            })
        },
    ]
}

pub(crate) fn archs() -> Vec<Recipe> {
    vec![
        recipe("arch-of-a-later-toolkit", &["CG120"], "", |machine| {
            machine.cuda_11_8_in_use();
            machine.set("CUDAARCHS", "90;120");
        }),
        recipe("dropped-arch", &["CG121"], "[gpu]\narchs = [\"sm_70\", \"sm_80\"]\n", |machine| {
            machine.cuda_in_use("13.0");
        }),
        recipe("native-without-a-gpu", &["CG124"], "", |machine| {
            machine.cuda_in_use("13.0");
            // Output of nvidia-smi without a GPU.
            machine.program("bin/nvidia-smi", "No devices were found");
            machine.path_first("bin");
            machine.set("CUDAARCHS", "native");
        }),
        recipe("native-outside-the-fleet", &["CG125"], "[gpu]\nfleet = [\"T4\", \"A100\"]\n", |machine| {
            machine.cuda_in_use("13.0");
            machine.program("bin/nvidia-smi", "8.9");
            machine.path_first("bin");
            machine.set("CUDAARCHS", "native");
        }),
        recipe("unreadable-arch", &["CG126"], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.set("CUDAARCHS", "80;hopper");
        }),
        recipe(
            "everything-at-once",
            &["CG101", "CG103", "CG111", "CG121"],
            "[toolkit]\nrequire = \"<13\"\n[gpu]\narchs = [\"sm_60\"]\n",
            |machine| {
                machine.cuda_in_use("13.0");
                machine.cuda("cuda-13.5", "13.5");
                machine.set_at("CUDA_HOME", "cuda-13.5");
                machine.cudnn("cudnn", "8.9.7");
                machine.set_at("CUDNN_PATH", "cudnn");
            },
        ),
    ]
}

pub(crate) fn fleets() -> Vec<Recipe> {
    vec![
        Recipe {
            observed: Some(&["CG130"]),
            ..recipe(
                "gpu-without-code",
                &["CG132"],
                "[gpu]\narchs = [\"sm_80\", \"sm_90\", \"compute_90\"]\nfleet = [\"T4\", \"A100\"]\n",
                |machine| {
                    machine.cuda_in_use("13.0");
                    machine.kernel(
                        "13.0",
                        "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]",
                    );
                },
            )
        },
        Recipe {
            warnings: &["CG133"],
            observed: Some(&["CG133"]),
            ..recipe("driver-older-than-the-toolkit", &[], "[driver]\nfleet = \"535\"\n", |machine| {
                machine.cuda_in_use("13.0");
                machine.kernel("13.0", "-arch=sm_80");
            })
        },
        Recipe {
            observed: Some(&["CG135"]),
            ..recipe(
                "ptx-newer-than-the-driver",
                &["CG135"],
                "[gpu]\narchs = [\"sm_70\", \"compute_70\"]\nfleet = [\"A100\"]\n[driver]\nfleet = \"470\"\n",
                |machine| {
                    machine.cuda_11_8_in_use();
                    machine.kernel("11.8", "-arch=sm_70");
                },
            )
        },
        recipe("cudnn-older-than-the-headers", &["CG136"], "[cudnn]\nfleet = \"9.1\"\n", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "9.15.1");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
        recipe("gpu-dropped-by-cudnn", &["CG137"], "[gpu]\nfleet = [\"P100\", \"A100\"]\n", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "9.15.1");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
    ]
}

/// Fleets that do not refuse a program without CUDA.
pub(crate) fn without_cuda() -> Vec<Recipe> {
    vec![
        Recipe {
            warnings: &["CG133"],
            ..recipe("driver-older-than-unused-toolkit", &[], "[driver]\nfleet = \"535\"\n", |machine| {
                machine.cuda_in_use("13.0");
            })
        },
        Recipe {
            warnings: &["CG132"],
            ..recipe("archs-set-for-other-tools", &[], "[gpu]\nfleet = [\"T4\"]\n", |machine| {
                machine.cuda_in_use("13.0");
                machine.set("CUDAARCHS", "80");
            })
        },
    ]
}

/// Unreadable policies.
pub(crate) const POLICIES: &[(&str, &[u8])] = &[
    (
        "mistyped",
        b"[tolkit]\nrequire = \">=12.4\"\n\n[gpu]\narch = [\"sm_80\"]\n\n[build]\nrelese = \"warn\"\n\n[allow]\nCG12 = \"why not\"\n",
    ),
    (
        "wrong-types",
        b"[toolkit]\nrequire = 13\n[cudnn]\nrequired = \"yes\"\nfleet = 9.1\n[gpu]\narchs = \"sm_80\"\n[driver]\nfleet = 535\n",
    ),
    (
        "wrong-values",
        b"[toolkit]\nrequire = \"12.4 or newer\"\n[gpu]\narchs = [\"sm_80\", \"hopper\", \"native\"]\nfleet = [\"T5\"]\n\
          [runtime]\nmismatch = \"deny\"\n[allow]\nCG122 = \"\"\nCG999 = \"not yet\"\n",
    ),
    ("not-toml", b"[gpu]\narchs = [\"sm_80\"\nfleet = [\"T4\"]\n"),
    ("not-text", b"[gpu]\n# Gr\xf6\xdfe\n"),
    ("of-a-package", b"[package.app.gpu]\narchs = [\"sm_8O\"]\n[package.other.toolkit]\nrequires = \">=12\"\n"),
];
