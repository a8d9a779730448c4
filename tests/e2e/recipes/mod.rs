//! Wrong toolchains and policies: each is a recipe with real parts. Plain cargo with `embed!()` and `cargo cudaguard` both
//! refuse it in release with the same message, and warn of it in dev. If it is allowed with a reason, they build it and
//! record the reason in the manifest.

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
        layered(format!("without_cuda::{}", recipe.name), move || Lane::without_kernels().build_without_cuda(&recipe))
    }));
    tests.extend(
        table::POLICIES
            .iter()
            .map(|(name, policy)| layered(format!("policies::{name}"), move || Lane::new().misread(name, policy))),
    );
    tests.extend(profiles::tests());
    tests
}

/// Each row builds two packages several times, so `cargo test` runs only these rows.
const FAST: [&str; 2] = ["toolkits::path-against-cuda-home", "policies::mistyped"];

fn layered(name: String, body: impl FnOnce() + Send + 'static) -> Test {
    let is_fast = FAST.contains(&name.as_str());
    let test = test(name, body);
    if is_fast { test } else { test.slow() }
}

fn rows(group: &str, recipes: Vec<Recipe>) -> Vec<Test> {
    let rows = recipes.into_iter();
    rows.map(|recipe| layered(format!("{group}::{}", recipe.name), move || Lane::new().build(&recipe))).collect()
}
