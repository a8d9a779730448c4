//! The end-to-end suites are one program, so a failing suite does not stop the others.
//!
//! `cargo test --test e2e cmake::` runs the fast tests of one suite, `cargo matrix cmake::` its slow ones.

mod cmake;
mod corpus;
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
mod readme;
mod rebuilds;
mod recipes;
mod record;
mod release;
mod requirements;
mod scenes;
mod symptoms;
mod tables;
mod toolchains;
mod unsealed;
mod verified;
mod windows;
mod wrapper;

use cudaguard_tests::compiled_once;

fn main() {
    compiled_once::prepare();
    loading::seal_where_asked();
    let suites = vec![
        ("cmake", cmake::tests()),
        ("corpus", corpus::tests()),
        ("cross", cross::tests()),
        ("driver", driver::tests()),
        ("embedding", embedding::tests()),
        ("graph", graph::tests()),
        ("judge_equal", judge_equal::tests()),
        ("kernels", kernels::tests()),
        ("loading", loading::tests()),
        ("machine", machine::tests()),
        ("other_builds", other_builds::tests()),
        ("outside", outside::tests()),
        ("policy", policy::tests()),
        ("readme", readme::tests()),
        ("rebuilds", rebuilds::tests()),
        ("recipes", recipes::tests()),
        ("record", record::tests()),
        ("release", release::tests()),
        ("requirements", requirements::tests()),
        ("scenes", scenes::tests()),
        ("symptoms", symptoms::tests()),
        ("tables", tables::tests()),
        ("toolchains", toolchains::tests()),
        ("unsealed", unsealed::tests()),
        ("verified", verified::tests()),
        ("windows", windows::tests()),
        ("wrapper", wrapper::tests()),
    ];
    cudaguard_tests::run(suites)
}
