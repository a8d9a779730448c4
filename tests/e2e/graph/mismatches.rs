//! Each mismatch is triggered once: refused in release, warned of otherwise. The graphs are recordings of cargo's output
//! for the real crates; the toolkits are fakes.

use cudaguard_tests::{e2e, snapshot};

use super::fixture::Tree;
use super::real_crates;
use cudaguard_tests::scratch::program;

const FLEET: &str = "[gpu]\nfleet = [\"T4\", \"H100\"]\n";

#[e2e]
fn candle_as_documented_has_no_findings() {
    for graph in ["candle-0.11", "candle-0.9"] {
        let tree = Tree::recorded("candle", graph);
        let cudnn = tree.sibling("cudnn-9.15");
        for (release, cap) in [("13.0", "80"), ("12.8", "86"), ("12.4", "90a")] {
            let printed = tree.passes(|arguments| {
                let call = tree.call(release, arguments).env("CUDNN_PATH", &cudnn);
                call.env("CUDA_PATH", tree.sibling(&format!("cuda-{release}"))).env("CUDA_COMPUTE_CAP", cap)
            });
            // Findings of `check` about the toolchain (an arch without PTX) do not concern crates.
            assert!(!printed.contains("[CG15"), "{graph} with {release} and {cap}:\n{printed}");
        }
    }
}

#[e2e]
fn single_arch_for_fleet_is_refused() {
    let tree = Tree::recorded("one-arch", "candle-0.11");
    tree.write("cudaguard.toml", FLEET);
    tree.refused("one-arch", |_, arguments| {
        tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "90").env("CUDNN_PATH", tree.sibling("cudnn-9.15"))
    });
}

/// 9.0 with its PTX would run on both GPUs, but cudaforge compiles 9.0a.
#[e2e]
fn narrowed_arch_is_refused() {
    let fleet = "[gpu]\nfleet = [\"H100\", \"B200\"]\n";
    let call = |tree: &Tree, arguments: &[&str]| {
        tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "90").env("CUDNN_PATH", tree.sibling("cudnn-9.15"))
    };
    let tree = Tree::recorded("narrowed", "candle-0.11");
    tree.write("cudaguard.toml", fleet);
    tree.refused("narrowed-arch", |_, arguments| call(&tree, arguments));
    let tree = Tree::recorded("not-narrowed", "candle-0.9");
    tree.write("cudaguard.toml", fleet);
    let printed = tree.printed(&call(&tree, &["check"]).run().success());
    assert!(!printed.contains("[CG15"), "bindgen_cuda adds nothing to 90: {printed}");
}

#[e2e]
fn builder_gpu_for_fleet_is_refused() {
    let tree = Tree::recorded("builders-gpu", "candle-0.11");
    tree.write("cudaguard.toml", FLEET);
    // Fake nvidia-smi of a machine with an L4.
    program(
        &tree.sibling("cuda-13.0/bin/nvidia-smi"),
        "#!/bin/sh\ncase \"$*\" in *noheader*) ;; *) echo compute_cap ;; esac\necho 8.9\n",
    );
    tree.refused("builders-gpu", |_, arguments| tree.call("13.0", arguments));
}

/// The build script of candle-kernels fails without `CUDA_COMPUTE_CAP` if nvidia-smi reports no GPU.
#[e2e]
fn builder_without_gpu_is_reported() {
    let printed = ["candle-0.11", "candle-0.9"].map(|graph| {
        let tree = Tree::recorded("no-gpu", graph);
        tree.write("cudaguard.toml", FLEET);
        program(&tree.sibling("cuda-13.0/bin/nvidia-smi"), "#!/bin/sh\necho 'No devices were found' >&2\nexit 6\n");
        let printed = tree.passes(|arguments| tree.call("13.0", arguments));
        let named = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "75"));
        assert!(!named.contains("CG159"), "{named}");
        let ours = printed.split_inclusive('\n').skip_while(|line| !line.contains("CG159")).take(3).collect::<String>();
        format!("# {graph}\n{ours}")
    });
    snapshot::check("graph/builder-without-gpu", &printed.concat());
}

#[e2e]
fn arch_suffix_change_is_reported() {
    let tree = Tree::recorded("specific", "candle-0.11");
    let printed = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_COMPUTE_CAP", "90"));
    let ours: String = printed.split_inclusive('\n').skip_while(|line| !line.contains("CG157")).take(4).collect();
    snapshot::check("graph/specific-arch", &ours);
}

#[e2e]
fn nvcc_and_headers_mismatch_is_refused() {
    let tree = Tree::recorded("two-toolkits", "candle-0.9");
    // CUDA_HOME and PATH select 13.0. bindgen_cuda does not read CUDA_HOME, and CUDA_ROOT is last in the toolchain's own
    // order.
    tree.refused("two-toolkits", |_, arguments| {
        tree.call("13.0", arguments).env("CUDA_ROOT", tree.sibling("cuda-12.4")).env("CUDA_COMPUTE_CAP", "80")
    });
}

#[e2e]
fn unused_nvcc_is_refused() {
    let tree = Tree::recorded("another-nvcc", "candle-0.9");
    tree.refused("another-nvcc", |_, arguments| {
        tree.call("12.4", arguments)
            .env("NVCC", tree.sibling("cuda-13.0/bin/nvcc"))
            .env("CUDA_HOME", tree.sibling("cuda-13.0"))
            .env("CUDA_PATH", tree.sibling("cuda-13.0"))
            .env("CUDA_COMPUTE_CAP", "80")
    });
}

#[e2e]
fn cubecl_on_old_driver_is_refused() {
    let tree = Tree::recorded("cubecl", "cubecl-0.8");
    tree.write("cudaguard.toml", "[driver]\nfleet = \"535\"\n");
    tree.refused("cubecl-driver", |_, arguments| tree.call("12.4", arguments));
    // The suggested fix is sufficient.
    let printed = tree.passes(|arguments| tree.call("12.4", arguments).env("CUDARC_CUDA_VERSION", "12020"));
    assert!(!printed.contains("[CG15"), "{printed}");
}

#[e2e]
fn cubecl_without_nvcc_is_refused() {
    let tree = Tree::recorded("cubecl-alone", "cubecl-0.8");
    tree.write("cudaguard.toml", "[driver]\nfleet = \"550\"\n");
    tree.refused("cubecl-without-nvcc", |_, arguments| {
        let path = std::env::var("PATH").expect("a PATH");
        tree.call("13.0", arguments).env_remove("CUDA_HOME").env("PATH", path)
    });
}

#[e2e]
fn cust_without_libraries_is_reported() {
    let tree = Tree::recorded("cust", "cust-0.3");
    let printed = tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_PATH", tree.sibling("cuda-13.0")));
    snapshot::check("graph/cust-finds-nothing", &printed);
    std::fs::create_dir_all(tree.sibling("cuda-13.0/lib64")).expect("a folder");
    let printed =
        tree.passes(|arguments| tree.call("13.0", arguments).env("CUDA_LIBRARY_PATH", tree.sibling("cuda-13.0")));
    assert!(!printed.contains("[CG15"), "{printed}");
}

#[e2e]
fn listed_crates_have_no_findings() {
    // llama-cpp-sys-2 only queries find_cuda_helper, but cust fails if it finds nothing.
    for graph in ["ort-2.0.0-rc.10", "tch-0.26", "llama-cpp-2-0.1"] {
        let tree = Tree::recorded("known", graph);
        let printed = tree.passes(|arguments| tree.call("13.0", arguments));
        assert!(!printed.contains("[CG15"), "{graph}: {printed}");
    }
}

/// A crate that only opens libraries at run time does not use the toolkit of the machine.
#[e2e]
fn toolkit_is_checked_if_crates_use_it() {
    let rows = [
        ("\"dynamic-loading\", \"cuda-13000\"", "info"),
        ("\"dynamic-loading\", \"cuda-version-from-build-system\"", "warning"),
        ("\"dynamic-linking\", \"cuda-13000\"", "warning"),
    ];
    for (features, severity) in rows {
        let tree = real_crates::tree(
            "used-toolkit",
            &format!(
                "cudarc = {{ version = \"=0.19.10\", default-features = false, features = [\"driver\", {features}] }}\n"
            ),
        );
        let checked = tree.call("13.0", &["check"]).env("CUDA_HOME", "/nowhere").run().success();
        assert!(
            checked.stderr.contains(&format!("{severity}[CG104]: CUDA_HOME names a path")),
            "{features}: {checked}"
        );
    }
}
