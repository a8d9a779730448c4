//! The end-to-end suites are one program, so a failing suite does not stop the others.
//!
//! `cargo test --test e2e cmake::` runs the fast tests of one suite, `cargo matrix cmake::` its slow ones.

mod cmake;
mod corpus;
mod cross;
mod driver;
mod embedding;
mod graph;
mod hints;
mod judge_equal;
mod kernels;
mod loading;
mod machine;
mod other_builds;
mod outside;
mod policy;
mod readme;
mod rebuilds;
mod record;
mod release;
mod requirements;
mod scenes;
mod symptoms;
mod tables;
mod toolchains;
mod unsealed;
mod windows;
mod wrapper;

use cudaguard_tests::compiled_once;

fn main() {
    compiled_once::prepare();
    loading::seal_where_asked();
    cudaguard_tests::run()
}
