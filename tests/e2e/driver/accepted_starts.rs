//! Programs that start without output. A compatible machine does not probe the driver; on all others the driver's answer
//! decides.

use std::fs;
use std::path::Path;

use cudaguard_tests::world::{A100, Gpu, H100, Layout, Library, Manner, ORIN, T4, World};
use cudaguard_tests::{Scratch, Test, e2e, layout, parts};

use super::refused_starts::{NOTE_575, r535, r580};
use super::scenario::{Scene, scene};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let tables = [("visible", visible()), ("locations", locations())];
    let rows = tables.into_iter().flat_map(|(group, scenes)| scenes.into_iter().map(move |scene| scene.test(group)));
    rows.collect()
}

fn dir(part: &Path) -> String {
    part.join("lib").into_os_string().into_string().expect("UTF-8")
}

#[e2e]
fn newer_cudnn_with_known_gpu_runs() {
    let path = dir(&parts::cudnn("9.15.1-cu12"));
    scene("newer cuDNN with a known GPU", "older", r535(&[T4])).with("LD_LIBRARY_PATH", path).runs(0, NOT_WHOLE).play();
}

/// The test parts contain only three of cuDNN's libraries. The start prints nothing, and the report has this warning.
const NOT_WHOLE: &str = "CG204 warning";

/// Copies the library of the wheel under the name that NVIDIA's installer uses. Returns its directory.
fn installed(scratch: &Scratch, toolkit: &str, version: &str) -> String {
    let file = format!("libcudart.so.{version}");
    let from = parts::cuda(toolkit).join("lib/libcudart.so.13");
    fs::copy(from, scratch.join(&file)).expect("a library can be copied");
    layout::link(Path::new(&file), &scratch.join("libcudart.so.13"));
    scratch.path().to_str().expect("UTF-8").to_owned()
}

fn shared_cudart(name: &'static str, path: String, codes: &'static str) {
    scene(name, "shared", r580(&[A100])).with("LD_LIBRARY_PATH", path).runs(0, codes).play();
}

#[e2e]
fn older_shared_cudart_runs() {
    let scratch = Scratch::new("cudart");
    let path = installed(&scratch, "13.0", "13.0.96");
    shared_cudart("older shared cudart", path, "CG314 warning");
}

#[e2e]
fn same_shared_cudart_runs() {
    let scratch = Scratch::new("cudart");
    let path = installed(&scratch, "13.2", "13.2.75");
    shared_cudart("same shared cudart", path, "");
}

/// The file does not contain its release, so only the report mentions it, for older and newer releases.
#[e2e]
fn wheel_shared_cudart_runs() {
    shared_cudart("older shared cudart of a wheel", dir(&parts::cuda("13.0")), "CG507 info");
    shared_cudart("shared cudart of a wheel", dir(&parts::cuda("13.2")), "CG507 info");
}

const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Selections of the visible GPUs.
fn visible() -> Vec<Scene> {
    let two = || World { fastest: vec![1, 0], ..r580(&[T4, A100]) };
    let model = |name, world| scene(name, "model", world);
    vec![
        model("by index, fastest first", two()).with(VISIBLE, "0").runs(1, ""),
        model("by index, in the order of the bus", two())
            .with(VISIBLE, "0")
            .with("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            .refused("CG303 error"),
        model("by the other index, in the order of the bus", two())
            .with(VISIBLE, "1")
            .with("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            .runs(1, ""),
        model("by UUID", two()).with(VISIBLE, World::uuid(1)).runs(1, ""),
        model("by UUID prefix", two()).with(VISIBLE, "GPU-00000002").runs(1, ""),
        model("unfit GPU by UUID prefix", two()).with(VISIBLE, "GPU-00000001").refused("CG303 error"),
        model("MIG instance", r580(&[A100]).each(|_, gpu| gpu.mig = true)).with(VISIBLE, World::mig(0)).runs(1, ""),
        model("MIG without a setting", r580(&[A100, A100]).each(|_, gpu| gpu.mig = true)).runs(0, ""),
        model("empty list hides all GPUs", r580(&[T4])).with(VISIBLE, "").runs(0, "CG504 info"),
        model("-1 hides all GPUs", r580(&[T4])).with(VISIBLE, "-1").runs(0, "CG504 info"),
        model("unknown name hides all GPUs", r580(&[T4])).with(VISIBLE, "GPU-ffffffff").runs(1, "CG504 info"),
        model("invalid tail", two()).with(VISIBLE, "0,nonsense,1").runs(1, ""),
        model("invalid head", two()).with(VISIBLE, "nonsense,0").runs(1, "CG504 info"),
        model("unlike GPUs, one fit", two()).runs(1, "CG303 info"),
        model("unlike GPUs, all fit", r580(&[A100, H100])).runs(0, ""),
    ]
}

/// Locations of the driver, and different degrees of visibility.
fn locations() -> Vec<Scene> {
    let model = |name, world| scene(name, "model", world);
    let other = |n, gpu: &mut Gpu| {
        if n == 0 {
            (gpu.node, gpu.driven) = (false, false);
        }
    };
    let wsl = |gpus: &[_]| {
        let windows = r580(gpus).library(|library| library.suffix = Some("1.1".into()));
        World { kernel: None, layout: Layout::Wsl, ..windows }
    };
    let jetson = |kernel| {
        let library = r580(&[ORIN]).library(|library| library.suffix = Some("1.1".into()));
        World { kernel, layout: Layout::Jetson, ..library }
    };
    let compat = |note| Library { note, ..Library::new("575.57.08", 12090) };
    vec![
        model("container with one of two GPUs, procfs unmasked", r580(&[T4, A100]).each(other)).runs(0, ""),
        model(
            "container with one of two GPUs, procfs masked",
            r580(&[T4, A100]).each(|n, gpu| {
                other(n, gpu);
                gpu.listed = n != 0;
            }),
        )
        .runs(0, ""),
        model("container with the unfit one of two GPUs", r580(&[A100, T4]).each(other)).refused("CG303 error"),
        model("container with an empty procfs", World { empty: true, ..r580(&[A100]) }).runs(1, ""),
        model("container without procfs of the driver", World { kernel: None, ..r580(&[A100]) }).runs(1, ""),
        model("container with an empty procfs and an unfit GPU", World { empty: true, ..r580(&[T4]) })
            .refused("CG303 error"),
        model("container without any GPU", r580(&[A100]).each(|_, gpu| (gpu.node, gpu.driven) = (false, false)))
            .runs(1, "CG504 info"),
        model("minors in another order", r580(&[T4, A100]).each(|n, gpu| gpu.minor = Some(1 - n)))
            .runs(1, "CG303 info"),
        model("WSL2", wsl(&[A100])).runs(1, ""),
        model("WSL2 with an unfit GPU", wsl(&[T4])).refused("CG303 error"),
        scene("Jetson", "robot", jetson(None)).runs(1, ""),
        scene("Jetson of a newer L4T", "robot", jetson(Some("540.4.0".into()))).runs(1, ""),
        scene("Jetson without code for it", "model", jetson(None)).refused("CG303 error"),
        // It works, but no document describes how this driver loads machine code of CUDA 13.
        model("cuda-compat with its note", World { compat: Some(compat(Some(NOTE_575.into()))), ..r535(&[A100]) })
            .runs(1, "CG505 info"),
        model(
            "cuda-compat by the cache of the loader",
            World { compat: Some(compat(Some(NOTE_575.into()))), compat_cached: true, ..r535(&[A100]) },
        )
        .runs(1, "CG505 info"),
        model("GPUs and no libcuda", World { library: None, ..r580(&[A100]) }).runs(1, "CG504 info"),
        model("empty file for libcuda", r580(&[A100]).library(|library| library.manner = Manner::Empty))
            .runs(1, "CG504 info"),
        model(
            "stub in a build image without GPUs",
            World { kernel: None, ..r580(&[]).library(|library| library.init = 34) },
        )
        .runs(0, "CG504 info"),
        model("cuda-compat without a note", World { compat: Some(compat(None)), ..r535(&[A100]) })
            .runs(1, "CG505 info"),
        model(
            "cuda-compat that makes the driver new enough",
            World { compat: Some(Library::new("580.95.05", 13000)), ..r535(&[H100]) },
        )
        .runs(1, ""),
    ]
}
