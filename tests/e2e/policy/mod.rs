//! What a project asks of its builds: the lock, and how findings reach editors and CI.

mod doors;
mod fixture;
mod formats;
mod init;
mod lock;
pub(crate) mod pages;

use cudaguard_tests::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = lock::trials();
    trials.extend(doors::trials());
    trials.extend(formats::trials());
    trials.extend(init::trials());
    trials.extend(pages::trials());
    trials
}
