//! Every suite end to end, in one program: a suite that fails keeps none of the others from running.
//!
//! `cargo test --test e2e cmake::` runs one of them, and `cargo quick` a first look at them all.

mod cmake;
mod cross;
mod driver;
mod embedding;
mod graph;
mod judge_equal;
mod kernels;
mod loading;
mod machine;
mod other_builds;
mod outside;
mod policy;
mod quick;
mod readme;
mod rebuilds;
mod recipes;
mod record;
mod requirements;
mod scenes;
mod symptoms;
mod tables;
mod toolchains;
mod unsealed;
mod verified;
mod worlds;
mod wrapper;

use cudaguard_tests::compiled_once;

fn main() {
    compiled_once::prepare();
    loading::seal_where_asked();
    let suites = vec![
        ("cmake", cmake::trials()),
        ("cross", cross::trials()),
        ("driver", driver::trials()),
        ("embedding", embedding::trials()),
        ("graph", graph::trials()),
        ("judge_equal", judge_equal::trials()),
        ("kernels", kernels::trials()),
        ("loading", loading::trials()),
        ("machine", machine::trials()),
        ("other_builds", other_builds::trials()),
        ("outside", outside::trials()),
        ("policy", policy::trials()),
        ("readme", readme::trials()),
        ("rebuilds", rebuilds::trials()),
        ("recipes", recipes::trials()),
        ("record", record::trials()),
        ("requirements", requirements::trials()),
        ("scenes", scenes::trials()),
        ("symptoms", symptoms::trials()),
        ("tables", tables::trials()),
        ("toolchains", toolchains::trials()),
        ("unsealed", unsealed::trials()),
        ("verified", verified::trials()),
        ("worlds", worlds::trials()),
        ("wrapper", wrapper::trials()),
    ];
    cudaguard_tests::run(suites, quick::TRIALS)
}
