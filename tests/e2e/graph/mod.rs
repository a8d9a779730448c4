//! Crates of a dependency graph and CUDA: mismatches are refused in release builds and warned of in others.

mod dlopened;
mod fixture;
mod kernels;
mod listing;
mod mismatches;
mod pages;
mod real_crates;
mod sources;

use cudaguard_tests::Test;

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = mismatches::tests();
    tests.extend(real_crates::tests());
    tests.extend(dlopened::tests());
    tests.extend(kernels::tests());
    tests.extend(listing::tests());
    tests.extend(sources::tests());
    tests.extend(pages::tests());
    tests
}
