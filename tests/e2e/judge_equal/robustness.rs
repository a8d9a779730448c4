//! The guard in programs that other tools changed, started in unusual ways, or share a machine with other users.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, e2e, skip, tools};

use super::fixture::{MAIN, NATIVE, descriptor};
use super::harmless::{Scene, built};

/// A guarded program from this source, linked to the scene's cuDNN.
fn program(scene: &Scene, name: &str, notes: &[Vec<u8>], source: &str) -> PathBuf {
    let to = scene.scratch.join(name);
    let options = ["-pthread".to_owned(), "-Wl,--no-as-needed".to_owned(), format!("-L{}", scene.lib().display())];
    let options = [&options[..], &["-l:libcudnn.so.9".to_owned()]].concat();
    NATIVE.guarded(&format!("robust-{name}"), &to, notes, source, &options);
    to
}

/// After that, GNU strip leaves the segment of the other notes without an address.
#[e2e]
fn stripped_build_id_keeps_the_guard() {
    tools::need("strip");
    let scene = Scene::older();
    let linked = program(&scene, "linked", &[descriptor(&built())], MAIN);
    let stripped = scene.scratch.join("stripped");
    let _ = Call::new("strip").args(["-R", ".note.gnu.build-id", "-o"]).args([&stripped, &linked]).run().success();
    let outcome = scene.call(&stripped).run().expect(78);
    assert!(outcome.stderr.starts_with("cudaguard: error[CG202]"), "{outcome}");
}

#[e2e]
fn missing_manifest_is_reported() {
    let scene = Scene::older();
    let bare = program(&scene, "bare", &[], MAIN);
    let outcome = scene.call(&bare).arg("check").env("CUDAGUARD_REPORT", "report.json").run().success();
    let warning = "cudaguard: warning[CG503]: bare has a guard and no manifest: it was not checked\n";
    assert!(outcome.stderr.starts_with(warning), "{outcome}");
    assert!(outcome.stdout.starts_with("check 2 [CG503] bare has a guard and no manifest"), "{outcome}");
    let report = scene.report();
    assert_eq!((&report["verdict"], &report["components"][0]["note"]), (&"unknown".into(), &"absent".into()));
    let _ = scene.call(&bare).env("CUDAGUARD", "enforce").run().success();
    assert_eq!(scene.call(&bare).env("CUDAGUARD", "off").run().success().stderr, "");
}

/// Another thread is in the loader while the process forks, so that the child inherits the loader's lock.
#[e2e]
fn forked_child_never_hangs() {
    let source = r#"
#include <cudaguard.h>
#include <pthread.h>
#include <stdio.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void *check(void *unused) {
  for (;;) cudaguard_check();
  return unused;
}
int main(void) {
  pthread_t thread;
  int round, status, hung = 0, wrong = 0;
  pthread_create(&thread, 0, check, 0);
  for (round = 0; round < 200; round++) {
    pid_t child = fork();
    if (!child) {
      alarm(20);
      _exit(cudaguard_check());
    }
    waitpid(child, &status, 0);
    hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    wrong += !WIFEXITED(status) || WEXITSTATUS(status) != CUDAGUARD_INCOMPATIBLE;
  }
  printf("%d hung, %d wrong\n", hung, wrong);
  fflush(stdout);
  _exit(0);
}
"#;
    let scene = Scene::older();
    let forks = program(&scene, "forks", &[descriptor(&built())], source);
    let outcome = scene.call(&forks).env("CUDAGUARD", "warn").run().success();
    assert_eq!(outcome.stdout, "0 hung, 0 wrong\n", "{outcome}");
}

#[e2e]
fn early_check_does_not_replace_start() {
    let scene = Scene::older();
    for (name, early) in [
        ("first", "__attribute__((constructor(101))) static void first(void) { cudaguard_check(); }"),
        (
            "before",
            "__attribute__((section(\".preinit_array\"), used)) static int (*const before)(void) = cudaguard_check;",
        ),
    ] {
        let source = format!("#include <cudaguard.h>\n{early}\n{MAIN}");
        let early = program(&scene, name, &[descriptor(&built())], &source);
        let outcome = scene.call(&early).run().expect(78);
        assert!(outcome.stderr.starts_with("cudaguard: error[CG202]"), "{name}: {outcome}");
    }
}

/// The kernel then reports the loader as the executable of the process.
#[e2e]
fn program_started_by_loader_is_checked() {
    let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
    if !loader.exists() {
        skip("the dynamic loader of x86-64", "glibc for x86-64");
    }
    let start = |scene: &Scene| scene.call(loader).arg("./program").env("CUDAGUARD_REPORT", "report.json").run();
    let older = Scene::older();
    let outcome = start(&older).expect(78);
    assert!(outcome.stderr.starts_with("cudaguard: error[CG202]"), "{outcome}");
    let program = fs::canonicalize(&older.program).expect("it exists");
    assert_eq!(older.report()["file"], program.to_string_lossy().into_owned());
    let _ = start(&Scene::right()).success();
}
