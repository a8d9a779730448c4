//! Crates of a dependency graph and CUDA: mismatches are refused in release builds and warned of in others.

mod fixture;
mod kernels;
mod loaded;
mod pages;
mod provoked;
mod real;
mod sources;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = provoked::tests();
    tests.extend(real::tests());
    tests.extend(loaded::tests());
    tests.extend(kernels::tests());
    tests.extend(sources::tests());
    tests.extend(pages::tests());
    tests
}
