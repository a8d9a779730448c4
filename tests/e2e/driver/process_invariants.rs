//! Effects that a guard with driver and GPU checks must never have on the program. The suite `judge_equal` covers cuDNN,
//! and subjects that concern the shim in general (setuid, damaged notes, sanitizers, valgrind).

use std::fs;

use cudaguard_tests::world::{A100, NEWS, T4, World};
use cudaguard_tests::{Outcome, command, e2e, fake_library, layout, skip};

use super::fixture;
use super::refused_starts::{r535, r580};
use super::scenario::{Stage, codes};

/// Returns a compatible machine with a GPU that no table lists, so the shim probes the driver.
fn asked() -> World {
    r580(&[NEWS])
}

#[track_caller]
fn ran(outcome: Outcome) -> Outcome {
    let outcome = outcome.success();
    assert!(outcome.stdout.ends_with("main ran\n") && outcome.stderr.is_empty(), "{outcome}");
    outcome
}

const USED: &str = "cuDriverGetVersion 0: 13000\ncuInit 0\nGPU 0, compute capability 13.0: kernels loaded, 0\n";

#[e2e]
fn later_fork_works() {
    let stage = Stage::new(&asked());
    let program = fixture::program("model");
    let outcome = ran(stage.call(&[], &program, &[]).arg("fork").run());
    assert_eq!(outcome.stdout, format!("{USED}the child ended with 7\nmain ran\n"));
    assert_eq!(stage.report()["level"], 1);
    let outcome = ran(stage.call(&[], &program, &[]).arg("use").run());
    assert_eq!(outcome.stdout, format!("{USED}main ran\n"));
}

#[e2e]
fn driver_is_probed_once() {
    let file = cudaguard_tests::Scratch::new("asked");
    let log = file.join("log");
    let count = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let stage = Stage::new(&asked().library(|library| library.log = Some(log.clone())));
    let program = fixture::program("model");
    ran(stage.call(&[], &program, &[]).run());
    assert_eq!(count(), 1);
    // check() reuses the answers of the start.
    let outcome = ran(stage.call(&[], &program, &[]).arg("check").run());
    assert_eq!((&*outcome.stdout, count()), ("compatible\nmain ran\n", 2));
    ran(stage.call(&[], &program, &[("CUDAGUARD", "off")]).run());
    assert_eq!(count(), 2);
    // A program with an optional GPU probes the driver only on request or for a report.
    let patient = fixture::program("patient");
    let unreported = || stage.machine.call(&patient, &[]).dir(stage.scratch.path());
    ran(unreported().run());
    assert_eq!(count(), 2);
    let outcome = ran(unreported().arg("check").run());
    assert_eq!((&*outcome.stdout, count()), ("compatible\nmain ran\n", 3));
    ran(stage.call(&[], &patient, &[]).run());
    assert_eq!(count(), 4);
}

/// The loaded libcuda counts, not the libcuda on the search path.
#[e2e]
fn preloaded_driver_is_used() {
    let (new, old) = (Stage::new(&r580(&[A100])), Stage::new(&r535(&[A100])));
    let dir = format!("usr-lib/{}-linux-gnu", std::env::consts::ARCH);
    for (stage, other, status) in [(&old, &new, 0), (&new, &old, 78)] {
        layout::link(&other.machine.root().join(&dir), &stage.scratch.join("other"));
        let preload = [("LD_PRELOAD", "./other/libcuda.so.1")];
        let outcome = stage.call(&[], &fixture::program("runtime"), &preload).run().expect(status);
        if status == 0 {
            ran(outcome);
        } else {
            assert!(outcome.stderr.contains("supports CUDA 12.2"), "{outcome}");
        }
    }
}

/// The library exists but cannot be loaded. The program and `verify` report this and do not refuse.
#[e2e]
fn unloadable_libcuda_is_reported() {
    let needs_gone = "int gone(void);\nint cuInit(unsigned flags) { return gone(); }\n";
    let too_large = "char large[1 << 30];\nint cuInit(unsigned flags) { return large[flags]; }\n";
    let alone = "libgone.so: cannot open shared object file";
    for (source, script, why) in [(needs_gone, "", alone), (too_large, "ulimit -v 900000; ", "loaded: libcuda.so.1: ")]
    {
        let stage = Stage::new(&asked());
        let dir = stage.scratch.join("folder");
        let [gone, library] = ["libgone.so", "libcuda.so.1"].map(|name| dir.join(name));
        fake_library::shared_library("libgone.so").source("int gone(void) { return 0; }\n").make(&gone);
        let libcuda = fake_library::shared_library("libcuda.so.1").source(source);
        libcuda.option("-Wl,--no-as-needed").option(gone.display().to_string()).make(&library);
        fs::remove_file(gone).expect("it was there");
        let variables = [("LD_LIBRARY_PATH", dir.to_str().expect("UTF-8"))];
        let script = format!("{script}exec \"$@\"");
        for program in ["model", "needy"] {
            let program = fixture::program(program);
            ran(stage.call(&["sh", "-c", &script, "sh"], &program, &variables).run());
            let finding = &stage.report()["findings"][0];
            let printed = finding["message"].as_str().unwrap_or_default();
            assert_eq!(finding["code"], "CG505", "{finding:#}");
            assert!(printed.contains("libcuda.so.1 cannot be loaded: ") && printed.contains(why), "{printed}");
            let verify = stage.machine.under(&["sh", "-c", &script, "sh"], command::path(), &variables).arg("verify");
            let outcome = verify.arg(&program).dir(stage.scratch.path()).run();
            // The command passes the path of the library.
            let reason = printed.lines().next().and_then(|line| line.rsplit(": ").next()).expect("a reason");
            let words = "libcuda.so.1 cannot be loaded: ";
            assert!(outcome.stderr.contains(words) && outcome.stderr.contains(reason), "{printed}\n{outcome}");
        }
    }
}

/// Library that installs a filter before any guard runs. SANDBOX selects it: `open` and `process` fail, `kill` kills a
/// process that forks, and `files 1` leaves one file descriptor.
const SANDBOX: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef SYS_open
#define SYS_open SYS_openat
#endif
#ifndef SYS_fork
#define SYS_fork SYS_clone
#endif
__attribute__((constructor)) static void loaded(void) {
  const char *what = getenv("SANDBOX");
  if (what && !strncmp(what, "files ", 6)) {
    for (int fd = 3; fd < 1024; fd++) close(fd); /* what whoever started it has handed on */
    int last = dup(0);
    struct rlimit limit = {last + atoi(what + 6), last + atoi(what + 6)};
    close(last);
    if (setrlimit(RLIMIT_NOFILE, &limit)) _exit(99);
    return;
  }
  int opens = what && !strcmp(what, "open");
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens ? SYS_openat : SYS_clone, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens ? SYS_open : SYS_fork, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, what && !strcmp(what, "kill") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (!what) return;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(99);
}
"#;

/// Starts a program in this sandbox. Skips the test if the kernel has no filters.
fn sandboxed(stage: &Stage, program: &str, what: &str) -> Outcome {
    stage.library("libsandbox.so", SANDBOX);
    let variables = [("LD_PRELOAD", "./libsandbox.so"), ("SANDBOX", what)];
    let outcome = stage.call(&[], &fixture::program(program), &variables).run();
    if outcome.status() == Some(99) {
        skip("seccomp filters", "a kernel that has them");
    }
    outcome
}

/// Neither the driver nor the report can be opened. A file that cannot be opened may exist, so everything is unknown.
#[e2e]
fn unopenable_files_do_not_refuse() {
    for world in [r580(&[A100]), r580(&[T4]), asked(), World::bare()] {
        for program in ["model", "needy", "runtime"] {
            ran(sandboxed(&Stage::new(&world), program, "open"));
        }
    }
}

/// The process has no or one file descriptor left: the driver cannot be probed, and absence is unproven. Two descriptors
/// suffice for a pipe to the child, which closes all others.
#[e2e]
fn exhausted_file_descriptors_do_not_refuse() {
    for (world, status) in [(r580(&[A100]), 0), (r580(&[T4]), 78), (asked(), 0), (World::bare(), 78)] {
        let stage = Stage::new(&world);
        for what in ["files 0", "files 1"] {
            ran(sandboxed(&stage, "needy", what));
        }
        let asked = sandboxed(&stage, "needy", "files 2").expect(status);
        assert_eq!(asked.stderr.is_empty(), status == 0, "{asked}");
    }
}

#[e2e]
fn failing_fork_does_not_refuse() {
    for (world, reported) in [(r580(&[A100]), ""), (r580(&[T4]), "CG505 info"), (asked(), "CG505 info")] {
        let stage = Stage::new(&world);
        ran(sandboxed(&stage, "model", "process"));
        assert_eq!(codes(&stage.report()), reported, "{world:?}");
    }
}

/// A compatible machine does not fork, so this filter is harmless.
#[e2e]
fn fatal_fork_does_not_refuse() {
    let stage = Stage::new(&r580(&[A100]));
    ran(sandboxed(&stage, "model", "kill"));
    assert_eq!(stage.report()["level"], 0);
}

#[e2e]
fn missing_procfs_does_not_refuse() {
    let without = |world| World { proc: false, ..world };
    for (world, program) in
        [(r580(&[A100]), "model"), (asked(), "model"), (World::bare(), "model"), (r580(&[A100]), "needy")]
    {
        ran(Stage::new(&without(world)).call(&[], &fixture::program(program), &[]).run());
    }
    // The driver finds the GPU without it.
    let stage = Stage::new(&without(r580(&[T4])));
    let outcome = stage.call(&[], &fixture::program("model"), &[]).run().expect(78);
    assert_eq!(
        (codes(&stage.report()).as_str(), outcome.stderr.lines().count() <= 6),
        ("CG303 error", true),
        "{outcome}"
    );
}

/// The initializer of a library runs before the guard. If the process has already initialized CUDA, the child gets no
/// answers, and the guard neither refuses nor breaks the program.
#[e2e]
fn earlier_cuda_calls_are_kept() {
    let eager = "#include <dlfcn.h>\nint (*init)(unsigned);\n__attribute__((constructor)) static void loaded(void) {\n  \
                 void *library = dlopen(\"libcuda.so.1\", RTLD_NOW);\n  if (library) *(void **)&init = dlsym(library, \
                 \"cuInit\"), init(0);\n}\n";
    for (world, reported) in [(asked(), "CG505 info"), (r580(&[T4]), "CG505 info"), (r580(&[A100]), "")] {
        let stage = Stage::new(&world);
        stage.library("libeager.so", eager);
        let preload = [("LD_PRELOAD", "./libeager.so")];
        let outcome = ran(stage.call(&[], &fixture::program("model"), &preload).arg("use").run());
        assert!(outcome.stdout.contains("cuInit 0\n"), "{outcome}");
        assert_eq!(codes(&stage.report()), reported, "{world:?}");
    }
}

/// Threads hold the heap's locks during the fork. The child answers, or it does not and nothing is refused.
#[e2e]
fn earlier_threads_do_not_hang() {
    let busy = "#include <pthread.h>\n#include <stdlib.h>\nstatic void *work(void *unused) {\n  for (;;) { void *volatile \
                p = malloc(4096 + rand() % 4096); free(p); }\n  return unused;\n}\n__attribute__((constructor)) static void \
                loaded(void) {\n  pthread_t thread;\n  for (int k = 0; k < 24; k++) pthread_create(&thread, 0, work, 0);\n}\n";
    for (world, answered, status) in [(asked(), "", 0), (r580(&[T4]), "CG303 error", 78)] {
        let stage = Stage::new(&world);
        stage.library("libbusy.so", busy);
        let preload = [("LD_PRELOAD", "./libbusy.so")];
        let outcome = stage.call(&[], &fixture::program("model"), &preload).run();
        let reported = codes(&stage.report());
        assert!(
            reported == answered && outcome.status() == Some(status)
                || reported == "CG505 info" && outcome.status() == Some(0),
            "{outcome}"
        );
    }
}
