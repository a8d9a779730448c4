//! The table of recipes, one for each way through the pipeline: the finding is known before linking, after it, or both. The suite
//! `toolchains` has the machines for each finding, and the unit tests of the policy have its errors.

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
        recipe(
            "package-with-stricter-policy",
            &["CG103"],
            "[toolkit]\nrequire = \">=12\"\n[package.app.toolkit]\nrequire = \">=13.5\"\n[package.other.toolkit]\nrequire = \"<12\"\n",
            |machine| machine.cuda_in_use("13.0"),
        ),
    ]
}

pub(crate) fn cudnn() -> Vec<Recipe> {
    vec![
        // The linker may receive a cuDNN that no variable names.
        Recipe {
            observed: Some(&["CG113"]),
            ..recipe("required-cudnn-is-missing", &["CG113"], "[cudnn]\nrequire = \"^9.1\"\n", |machine| {
                machine.cuda_in_use("13.0");
            })
        },
    ]
}

pub(crate) fn archs() -> Vec<Recipe> {
    vec![recipe(
        "everything-at-once",
        &["CG101", "CG103", "CG111", "CG121"],
        "[toolkit]\nrequire = \"<13\"\n[gpu]\narchs = [\"sm_60\"]\n[cudnn]\nrequire = \"8\"\n",
        |machine| {
            machine.cuda_in_use("13.0");
            machine.cuda("cuda-13.5", "13.5");
            machine.set_at("CUDA_HOME", "cuda-13.5");
            machine.cudnn("cudnn", "8.9.7");
            machine.set_at("CUDNN_PATH", "cudnn");
        },
    )]
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
        recipe(
            "gpu-dropped-by-cudnn",
            &["CG137"],
            "[cudnn]\nrequire = \"9\"\n[gpu]\nfleet = [\"P100\", \"A100\"]\n",
            |machine| {
                machine.cuda_in_use("13.0");
                machine.cudnn("cudnn", "9.15.1");
                machine.set_at("CUDNN_PATH", "cudnn");
            },
        ),
    ]
}

/// Fleets and machines that do not refuse a program without CUDA.
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
        recipe("cudnn-that-nothing-uses", &[], "", |machine| {
            machine.cuda_in_use("13.0");
            machine.cudnn("cudnn", "8.9.7");
            machine.set_at("CUDNN_PATH", "cudnn");
        }),
    ]
}

/// Unreadable policies.
pub(crate) const POLICIES: &[(&str, &[u8])] = &[
    (
        "mistyped",
        b"[tolkit]\nrequire = \">=12.4\"\n\n[gpu]\narch = [\"sm_80\"]\n\n[build]\nrelese = \"warn\"\n\n[allow]\nCG12 = \"why not\"\n",
    ),
    ("not-text", b"[gpu]\n# Gr\xf6\xdfe\n"),
];
