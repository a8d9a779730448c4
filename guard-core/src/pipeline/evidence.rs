//! Evidence in the files of a project of what its packages use.

use std::path::Path;

use crate::config::lock;
use crate::knowledge::cudnn;
use crate::sys::files;

/// Words of build scripts and crate names that denote CUDA.
const CUDA_WORDS: [&str; 5] = ["cuda", "cudnn", "nvcc", "nvrtc", "cublas"];

/// Crates without such a word in their names whose build may use a toolkit.
const TOOLKIT_CRATES: [&str; 14] = [
    "arrayfire",
    "candle-flash-attn",
    "candle-flash-attn-v3",
    "candle-kernels",
    "cust_raw",
    "cuvs-sys",
    "cutile",
    "llama-cpp-sys-2",
    "nvidia-video-codec-sdk",
    "ort",
    "risc0-sys",
    "sppark",
    "torch-sys",
    "whisper-rs-sys",
];

/// The crate that loads CUDA at run time, unless a feature makes it link.
const LOADER: &str = "cudarc";

/// Parts of the features that make it use a toolkit at build time.
const TOOLKIT_FEATURES: [&str; 2] = ["-linking", "-from-build-system"];

/// Returns true if the manifest or the build script of a package names cuDNN.
pub fn names_cudnn(package: &Path) -> bool {
    ["Cargo.toml", "build.rs"].iter().any(|name| {
        let text = files::read_text(&package.join(name)).unwrap_or_default();
        text.to_ascii_lowercase().contains(cudnn::KEY)
    })
}

/// Returns true if the build script of a package mentions CUDA. `cudaguard::embed!()` alone uses nothing.
pub fn script_names_cuda(package: &Path) -> bool {
    let script = files::read_text(&package.join("build.rs")).unwrap_or_default().to_ascii_lowercase();
    has_cuda_word(&script)
}

/// Returns true if cudarc is the only crate in `Cargo.lock` that can reach CUDA, and no manifest enables a feature with which it
/// uses a toolkit. A build script has no other information about the crates. `package` is the name of the package in `dir`, `top` the
/// root of its workspace.
pub(crate) fn only_loads_cuda(package: &str, dir: &Path, top: &Path) -> bool {
    if lock::is_fetched(top) {
        // cargo ignores the `Cargo.lock` of a package that it downloaded.
        return false;
    }
    let lock = files::read_text(&top.join("Cargo.lock")).unwrap_or_default();
    let mut names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let mut others = names.clone().filter(|name| *name != LOADER && *name != package);
    let enables_toolkit = [dir, top].into_iter().any(|dir| {
        let manifest = files::read_text(&dir.join("Cargo.toml")).unwrap_or_default();
        TOOLKIT_FEATURES.into_iter().any(|feature| manifest.contains(feature))
    });
    names.any(|name| name == LOADER) && !others.any(may_use_toolkit) && !enables_toolkit
}

/// Returns true if the build of a crate with this name may use a toolkit.
pub fn may_use_toolkit(name: &str) -> bool {
    has_cuda_word(name) || TOOLKIT_CRATES.contains(&name)
}

fn has_cuda_word(text: &str) -> bool {
    let text = text.replace("cudaguard", "");
    CUDA_WORDS.into_iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn run_time_loading_needs_evidence() {
        let cudarc = "cudarc = { version = \"0.19\", features = [\"driver\"] }";
        for (crates, manifest, expected) in [
            (&["my-cuda-app", "cudaguard", "cudarc", "libloading"][..], cudarc, true),
            (&["my-cuda-app", "cudaguard", "libloading"], "", false),
            (&["my-cuda-app", "cudarc", "candle-core", "candle-kernels", "cudaforge"], cudarc, false),
            (&["my-cuda-app", "cudarc", "torch-sys"], cudarc, false),
            (&["my-cuda-app", "cudarc", "my-cuda-kernels"], cudarc, false),
            (&["my-cuda-app", "cudarc"], "features = [\"dynamic-linking\"]", false),
            (&["my-cuda-app", "cudarc"], "features = [\"cuda-version-from-build-system\"]", false),
        ] {
            let scratch = tempfile::tempdir().unwrap();
            let (top, dir) = (scratch.path(), scratch.path().join("app"));
            fs::create_dir(&dir).unwrap();
            let lock = crates.iter().map(|name| format!("[[package]]\nname = \"{name}\"")).collect::<Vec<_>>();
            fs::write(top.join("Cargo.lock"), lock.join("\n")).unwrap();
            fs::write(dir.join("Cargo.toml"), manifest).unwrap();
            assert_eq!(only_loads_cuda("my-cuda-app", &dir, top), expected, "{crates:?} {manifest}");
            // The workspace may set the features.
            fs::rename(dir.join("Cargo.toml"), top.join("Cargo.toml")).unwrap();
            assert_eq!(only_loads_cuda("my-cuda-app", &dir, top), expected, "{crates:?} {manifest} in the workspace");
        }
    }
}
