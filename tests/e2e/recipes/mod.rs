//! Wrong toolchains and policies: each is a recipe over real parts. Plain cargo with `embed!()` and `cargo cudaguard` both
//! refuse it in release, in the same words, warn of it in dev, and build it where it is allowed with a reason, which is then
//! found in the manifest.

mod fixture;
mod profiles;
mod table;

use cudaguard_tests::{Trial, trial};
use fixture::{Lane, Recipe};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("toolkits", || build(&table::toolkits())),
        trial("cudnn", || build(&table::cudnn())),
        trial("archs", || build(&table::archs())),
        trial("fleets", || build(&table::fleets())),
        trial("fleets-without-cuda", || {
            let lane = Lane::without_kernels();
            for recipe in &table::without_cuda() {
                lane.build_without_cuda(recipe);
            }
        }),
        trial("profiles", profiles::profiles),
        trial("policies", || {
            let lane = Lane::new();
            for (name, policy) in table::POLICIES {
                lane.misread(name, policy);
            }
        }),
    ]
}

/// One after the other on the same two packages, which thereby see each change of machine and policy.
fn build(recipes: &[Recipe]) {
    let lane = Lane::new();
    for recipe in recipes {
        lane.build(recipe);
    }
}
