//! Wrong toolchains and policies: each is a recipe over real parts. Plain cargo with `embed!()` and `cargo cudaguard` both
//! refuse it in release, in the same words, warn of it in dev, and build it where it is allowed with a reason, which is then
//! found in the manifest.

mod fixture;
mod profiles;
mod table;

use cudaguard_tests::{Test, test};
use fixture::{Lane, Recipe};

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = rows("toolkits", table::toolkits());
    tests.extend(rows("cudnn", table::cudnn()));
    tests.extend(rows("archs", table::archs()));
    tests.extend(rows("fleets", table::fleets()));
    tests.extend(table::without_cuda().into_iter().map(|recipe| {
        test(format!("without_cuda::{}", recipe.name), move || Lane::without_kernels().build_without_cuda(&recipe))
            .slow()
    }));
    tests.extend(table::POLICIES.iter().enumerate().map(|(row, (name, policy))| {
        first_is_fast(row, test(format!("policies::{name}"), move || Lane::new().misread(name, policy)))
    }));
    tests.extend(profiles::tests());
    tests
}

fn rows(group: &str, recipes: Vec<Recipe>) -> Vec<Test> {
    let rows = recipes.into_iter().enumerate();
    rows.map(|(row, recipe)| {
        first_is_fast(row, test(format!("{group}::{}", recipe.name), move || Lane::new().build(&recipe)))
    })
    .collect()
}

/// Each row builds two packages several times, so `cargo test` runs one row of each group.
fn first_is_fast(row: usize, test: Test) -> Test {
    if row == 0 { test } else { test.slow() }
}
