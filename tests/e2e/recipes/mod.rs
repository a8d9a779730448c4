//! Wrong toolchains and policies: each is a recipe with real parts. Plain cargo with `embed!()` and `cargo cudaguard` both
//! refuse it in release with the same message. Some rows also check that both warn of it in dev, and that they build it and
//! record the reason if it is allowed.

mod fixture;
mod profiles;
mod table;

use cudaguard_tests::{Test, e2e, test};
use fixture::{Lane, Recipe};

#[e2e(rows)]
fn tests() -> Vec<Test> {
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
    tests
}

/// Each row builds two packages several times, so `cargo test` runs only this one.
const FAST: &str = "policies::mistyped";

/// A row with all ways of building.
const IN_ALL_WAYS: &str = "toolkits::path-against-cuda-home";

fn layered(name: String, body: impl FnOnce() + Send + 'static) -> Test {
    let is_fast = name == FAST;
    let test = test(name, body);
    if is_fast { test } else { test.slow() }
}

fn rows(group: &str, recipes: Vec<Recipe>) -> Vec<Test> {
    let row = |recipe: Recipe| {
        let name = format!("{group}::{}", recipe.name);
        let in_all_ways = name == IN_ALL_WAYS || recipe.observed.is_some() || !recipe.warnings.is_empty();
        layered(name, move || Lane::new().build(&recipe, in_all_ways))
    };
    recipes.into_iter().map(row).collect()
}
