//! The crates of a graph and CUDA: what is refused in a release build, warned of in another, and left alone.

mod fixture;
mod kernels;
mod loaded;
mod pages;
mod provoked;
mod real;
mod sources;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = provoked::trials();
    trials.extend(real::trials());
    trials.extend(loaded::trials());
    trials.extend(kernels::trials());
    trials.extend(sources::trials());
    trials.extend(pages::trials());
    trials
}
