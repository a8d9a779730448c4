//! Starts that are refused, each based on the driver's own answer.

use std::path::PathBuf;

use cudaguard_tests::world::{A100, H100, Layout, Library, RTX_4090, T4, V100, World};
use cudaguard_tests::{Test, e2e, parts};

use super::scenario::{Scene, scene};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let rows = scenes().into_iter().map(|scene| scene.test("refused"));
    rows.collect()
}

/// Runs a scenario with a compatible driver and GPU, and these directories of real cuDNN releases on the library path.
fn cudnn(name: &'static str, dirs: &[PathBuf], codes: &'static str) {
    let path = std::env::join_paths(dirs).expect("paths without colons").into_string().expect("UTF-8");
    scene(name, "vision", r580(&[A100])).with("LD_LIBRARY_PATH", path).refused(codes).play();
}

#[e2e]
fn older_cudnn_is_refused() {
    cudnn("older cuDNN", &[parts::cudnn("9.1.0").join("lib")], "CG202 error, CG204 warning, CG207 warning");
}

#[e2e]
fn cudnn_loader_alone_is_refused() {
    cudnn("cuDNN without inner libraries", &[parts::cudnn("9.15.1-loader").join("lib")], "CG204 error, CG204 warning");
}

/// The library path contains the loader library of the build release, followed by an older release.
#[e2e]
fn inner_libraries_elsewhere_are_refused() {
    let dirs = [parts::cudnn("9.15.1-loader").join("lib"), parts::cudnn("9.1.0").join("lib")];
    cudnn("inner libraries of cuDNN from another directory", &dirs, "CG202 error, CG204 warning, CG207 warning");
}

/// Driver of CUDA 13.0, which the programs are built with.
pub(crate) fn r580(gpus: &[cudaguard_tests::world::Gpu]) -> World {
    World::new("580.95.05", 13000, gpus)
}

pub(crate) fn r535(gpus: &[cudaguard_tests::world::Gpu]) -> World {
    World::new("535.261.03", 12020, gpus)
}

/// Note from NVIDIA's cuda-compat of this release (recorded).
pub(crate) const NOTE_575: &str =
    r#"{"format":1,"CUDA version":"12.9","driver":[535,550,560,565,570,575],"device":[1,2,7,8,9,10,11,12,13,14]}"#;

/// From 9.11, cuDNN for CUDA 12 needs GPUs of 7.5 or higher.
#[e2e]
fn cudnn_too_new_for_gpu() {
    let path = parts::cudnn("9.15.1-cu12").join("lib").into_os_string().into_string().expect("UTF-8");
    scene("cuDNN too new for the GPU", "older", r535(&[V100]))
        .with("LD_LIBRARY_PATH", path)
        .refused("CG204 warning, CG313 error")
        .play();
}

fn scenes() -> Vec<Scene> {
    let r570 = |gpus: &[_]| World::new("570.172.08", 12080, gpus);
    let upgraded =
        |gpus: &[_]| World { kernel: Some("580.65.06".into()), ..r580(gpus).library(|library| library.init = 803) };
    let compat = |init| Library { init, note: Some(NOTE_575.into()), ..Library::new("575.57.08", 12090) };
    vec![
        scene("driver too old for cudart", "runtime", r535(&[A100])).refused("CG301 error"),
        scene("driver too old for cudart on Debian", "runtime", World { layout: Layout::Debian, ..r535(&[A100]) })
            .refused("CG301 error"),
        scene("driver too old for the PTX", "model", r570(&[H100])).refused("CG302 error"),
        scene("missing code for the GPU", "model", r580(&[T4])).refused("CG303 error"),
        scene("missing code for all GPUs", "model", r580(&[T4, V100])).refused("CG303 error"),
        scene("fit GPU is hidden", "model", r580(&[T4, A100])).with("CUDA_VISIBLE_DEVICES", "0").refused("CG303 error"),
        scene("upgraded and not rebooted", "model", upgraded(&[A100])).refused("CG304 error"),
        scene("upgraded on Debian and not rebooted", "model", World { layout: Layout::Debian, ..upgraded(&[A100]) })
            .refused("CG304 error"),
        scene("cuda-compat on a GeForce", "model", World { compat: Some(compat(804)), ..r535(&[RTX_4090]) })
            .refused("CG305 error"),
        scene(
            "cuda-compat on a branch that it does not list",
            "model",
            World { compat: Some(compat(803)), ..World::new("520.61.05", 11080, &[A100]) },
        )
        .refused("CG304 error"),
        scene(
            "stub",
            "model",
            r580(&[A100]).library(|library| {
                library.init = 34;
                library.suffix = Some("1".into());
            }),
        )
        .refused("CG306 error"),
        scene("missing libcuda and a required GPU", "needy", World { library: None, ..r580(&[A100]) })
            .refused("CG307 error"),
        scene("nothing of NVIDIA and a required GPU", "needy", World::bare()).refused("CG307 error"),
        scene("kernel module without the required GPU", "needy", r580(&[])).refused("CG310 error"),
        scene("hidden and required", "needy", r580(&[A100])).with("CUDA_VISIBLE_DEVICES", "").refused("CG310 error"),
        scene("missing PTX compiler", "model", r580(&[H100]).library(|library| library.jit = false))
            .refused("CG309 error"),
        scene("PTX forced but missing", "model", r580(&[A100])).with("CUDA_FORCE_PTX_JIT", "1").refused("CG315 error"),
        scene("PTX switched off", "model", r580(&[H100])).with("CUDA_DISABLE_PTX_JIT", "1").refused("CG308 error"),
    ]
}
