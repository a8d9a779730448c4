//! Random arrangements of libraries (`tests/bin/arrangements.rs`): the guard and `verify` agree with the program that has
//! no guard, on this machine and in roots of other distributions.
//!
//! More of them, in a root that `debootstrap --variant=minbase --include=gcc,libc6-dev SUITE DIR` has made:
//!
//!     target/debug/arrangements --seed 7 --count 2000 --root DIR

use std::fs;
use std::path::PathBuf;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, scratch, skip, tools, world};

/// Compares this number of arrangements in a root.
fn compare(count: u32, root: &str) {
    compare_with(&["--seed", "1", "--count", &count.to_string(), "--root", root]);
}

fn compare_with(options: &[&str]) {
    print!("{}", command::call_program("arrangements").args(options).run().success().stdout);
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

#[e2e(slow)]
fn arrangements_agree_with_musl() {
    tools::need("musl-gcc");
    compare_with(&["--seed", "1", "--count", "200", "--compiler", "musl-gcc"]);
}

/// A cuDNN that ends the child of the guard with `abort()`, which musl sends to the thread that the last fork recorded.
#[e2e(slow)]
fn abort_in_the_child_spares_a_program_of_musl() {
    const SCRIPT: &str = r#"set -eu
        echo 'void abort(void); unsigned long cudnnGetVersion(void) { abort(); }' > cudnn.c
        echo '#include <dlfcn.h>
        int main(void) { return !dlopen("libcudnn.so.9", RTLD_NOW); }' > main.c
        printf '[cudnn]\nlinkage = "dlopened"\n' > cudaguard.toml
        musl-gcc -shared -fPIC cudnn.c -o libcudnn.so.9 -Wl,-soname,libcudnn.so.9
        musl-gcc -c main.c
        "$COMMAND" embed --name app --toolkit "$TOOLKIT" -I "$HEADERS" --compiler musl-gcc -o guard.o
        musl-gcc main.o guard.o -o app -Wl,-rpath,'$ORIGIN'
        "$COMMAND" seal app main.o guard.o
        ./app"#;
    tools::need("musl-gcc");
    let scratch = Scratch::new("musl abort");
    let call = Call::new("sh").args(["-c", SCRIPT]).dir(scratch.path()).env("COMMAND", command::path());
    let call = call.env("TOOLKIT", parts::cuda("13.0")).env("HEADERS", parts::cudnn("9.15.1").join("include"));
    let _ = call.run().success();
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
