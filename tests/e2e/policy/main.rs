//! What a project asks of its builds: the lock, and how findings reach editors and CI.

mod bed;
mod forms;
mod init;
mod lock;
mod pages;

use cudaguard_tests::suite;

fn main() {
    let mut trials = lock::trials();
    trials.extend(forms::trials());
    trials.extend(init::trials());
    trials.extend(pages::trials());
    suite(trials);
}
