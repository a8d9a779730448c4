//! Random arrangements of libraries (`tests/bin/arrangements.rs`): the guard and `verify` agree with the program that has
//! no guard, on this machine and in roots of other distributions.
//!
//! More of them, in a root that `debootstrap --variant=minbase --include=gcc,libc6-dev SUITE DIR` has made:
//!
//!     target/debug/arrangements --seed 7 --count 2000 --root DIR

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::{Call, e2e, scratch, skip, tools, world};

/// Compares this number of arrangements in a root.
fn compare(count: u32, root: &str) {
    let program = world::sibling("arrangements");
    let call = Call::new(program).args(["--seed", "1", "--count", &count.to_string(), "--root", root]);
    print!("{}", call.run().success().stdout);
}

#[e2e]
fn arrangements_agree_here() {
    world::need();
    tools::need("/usr/sbin/ldconfig");
    compare(200, "/");
}

#[e2e(slow)]
fn arrangements_agree_with_oldest_glibc() {
    compare(200, &debian("bullseye"));
}

#[e2e(slow)]
fn arrangements_agree_with_newest_glibc() {
    compare(200, &debian("trixie"));
}

/// Returns a root with this release of Debian, which is made once. debootstrap does not quote its path.
fn debian(suite: &str) -> String {
    let root: PathBuf = scratch::target_without_blanks().join("roots").join(suite);
    let (marker, path) = (root.join(".made"), root.display().to_string());
    if !marker.exists() {
        let debootstrap = tools::need("debootstrap");
        let call = Call::new(debootstrap).args(["--variant=minbase", "--include=gcc,libc6-dev", suite, &path]);
        let outcome = call.run();
        if outcome.status() != Some(0) {
            skip(format!("a root of Debian {suite}"), "run the tests as root, with a mirror of Debian");
        }
        fs::write(marker, "").expect("the root is ours");
    }
    path
}
