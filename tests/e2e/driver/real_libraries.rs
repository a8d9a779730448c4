//! NVIDIA's own libraries: libcuda 535 on a fake machine that lists GPUs but has none, and the stub of a toolkit.

use std::fs;

use cudaguard_tests::world::{A100, Gpu, Layout, World};
use cudaguard_tests::{Test, e2e, layout, parts, snapshot, test};

use super::fixture;
use super::refused_starts::r535;
use super::scenario::{Scene, Stage, codes, scene};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    type Row = (&'static str, fn() -> Scene);
    let rows: [Row; 4] = [
        ("nothing to check", || scene("real 535 without GPUs", "model", real(&[])).runs(1, "CG504 info")),
        ("nothing to check for cudart", || scene("real 535 and cudart", "runtime", real(&[])).runs(1, "CG504 info")),
        ("required", || scene("real 535 and a required GPU", "needy", real(&[])).refused("CG310 error")),
        ("required, as Debian lays it out", || {
            scene("real 535 on Debian and a required GPU", "needy", World { layout: Layout::Debian, ..real(&[]) })
                .refused("CG310 error")
        }),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, make)| test(format!("real_libraries::{}", name.replace(' ', "_")), move || make().play()));
    rows.collect()
}

fn real(gpus: &[Gpu]) -> World {
    let dir = parts::driver("535");
    r535(gpus).library(|library| library.real = Some(dir))
}

/// A directory contains NVIDIA's link-time stub under the name that the loader searches. Build images leave such
/// directories in `LD_LIBRARY_PATH`.
#[e2e(slow)]
fn toolkit_stub_is_refused() {
    let stage = Stage::new(&r535(&[A100]));
    let stub = parts::cuda("11.8").join("lib64/stubs/libcuda.so");
    let dir = stage.scratch.join("stubs");
    layout::link(&fs::canonicalize(&stub).expect("a stub"), &dir.join("libcuda.so.1"));
    let path = [("LD_LIBRARY_PATH", dir.to_str().expect("UTF-8"))];
    let outcome = stage.call(&[], &fixture::program("model"), &path).run().expect(78);
    assert_eq!(codes(&stage.report()), "CG306 error", "{outcome}");
    let names = [(stage.scratch.path(), "<scene>")];
    snapshot::check("driver/toolkit-stub", &snapshot::paths(&outcome.stderr, &names));
}
