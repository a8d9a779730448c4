//! Effects that a guard with driver and GPU checks must never have on the program. The suite `judge_equal` covers cuDNN,
//! and subjects that concern the shim in general (setuid, damaged notes, sanitizers, valgrind).

use std::ffi::OsString;
use std::fs;

use cudaguard_tests::world::{A100, Gpu, NEWS, ORIN, T4, World};
use cudaguard_tests::{Outcome, Scratch, command, e2e, fake_library, layout, skip};

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

/// Script that enters a root with the program's dependencies, the driver's files and device nodes, but without `/proc`,
/// `/sys` and `/etc`.
const MOVE_IN: &str = r#"set -e
root=$1 program=$2; shift 2
for file in "$(command -v env)" "$program" /usr/lib/*/libcuda.so.1 /usr/lib/*/libnvidia-ptxjitcompiler.so.1 /usr/lib/*/fake-driver; do
    if [ ! -e "$file" ]; then continue; fi
    { echo "$file"; ldd "$file" 2>/dev/null | sed -n 's/^[^/]*\(\/.*\) (0x.*/\1/p'; } | while IFS= read -r needed; do
        mkdir -p "$root${needed%/*}"
        cp -L "$needed" "$root$needed"
    done
done
mkdir -p "$root/dev" "$root$PWD"
mount --rbind /dev "$root/dev"
mount --bind "$PWD" "$root$PWD"
PATH=$PATH:/usr/sbin:/sbin
exec chroot "$root" "$@"
"#;

#[e2e]
fn chroot_does_not_refuse() {
    for (world, name, reported) in [
        (r580(&[A100]), "model", ""),
        (r580(&[T4]), "model", "CG303 error"),
        (World::bare(), "model", "CG504 info"),
        (World::bare(), "needy", "CG307 error"),
    ] {
        let stage = Stage::new(&world);
        let (root, program) = (stage.scratch.join("root"), fixture::program(name));
        let [root, path] = [&root, &program].map(|path| path.to_str().expect("UTF-8"));
        let outcome = stage.call(&["sh", "-c", MOVE_IN, "sh", root, path], &program, &[]).run();
        assert_eq!(codes(&stage.report()), reported, "{:#}\n{outcome}", stage.report());
        if reported.contains("error") {
            let _ = outcome.expect(78);
        } else {
            ran(outcome);
        }
    }
}

#[e2e]
fn full_disks_do_not_refuse() {
    let (fine, unfit) = (Stage::new(&asked()), Stage::new(&r580(&[T4])));
    for mount in [
        "mount -t tmpfs -o size=4k none /dev/shm; head -c 100000 /dev/zero >/dev/shm/filler 2>/dev/null || true",
        "mount -t tmpfs -o ro none /dev/shm",
    ] {
        let script = format!("{mount}; exec \"$@\"");
        for (stage, status) in [(&fine, 0), (&unfit, 78)] {
            let report = [("CUDAGUARD_REPORT", "/dev/shm/report.json")];
            let tool = ["sh", "-c", &script, "sh"];
            let outcome = stage.machine.under(&tool, fixture::program("model"), &report).run();
            assert_eq!(outcome.status(), Some(status), "{mount}: {outcome}");
            assert_eq!(outcome.stdout == "main ran\n", status == 0, "{outcome}");
        }
    }
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

/// A program and its guarded library each support a different GPU. With both GPUs the program runs and its report lists the
/// conflict. Without the library's GPU the start is refused once, with the name of the library.
#[e2e(slow)]
fn program_and_library_need_different_gpus() {
    let integrated = Gpu { node: true, listed: true, id: 0x3ffe, ..ORIN };
    for (gpus, status, reported) in
        [(&[A100, integrated][..], 0, "CG303 info, CG303 info"), (&[A100], 78, "CG303 error")]
    {
        let stage = Stage::new(&r580(gpus));
        let dir = stage.scratch.join("library");
        let made =
            fixture::in_c("robot", &dir, "cc", &[fixture::shim().as_ref(), "-shared".as_ref(), "-fPIC".as_ref()]);
        let library = dir.join("librobot.so");
        fs::rename(made, &library).expect("it was made");
        let options = [fixture::shim().into_os_string(), "-Wl,--no-as-needed".into(), library.into_os_string()];
        let program = fixture::in_c("model", &stage.scratch, "cc", &options.each_ref().map(OsString::as_os_str));
        let outcome = stage.call(&[], &program, &[]).run();
        assert_eq!(outcome.status(), Some(status), "{outcome}");
        assert_eq!(codes(&stage.report()), reported, "{outcome}");
        assert_eq!(outcome.stderr.matches("robot 0.1.0 has no code").count(), usize::from(status != 0), "{outcome}");
    }
}

/// The shims of two versions in one program do not share state.
#[e2e(slow)]
fn two_cudaguard_versions_coexist() {
    let shim = cudaguard::internal::guard::shim_source();
    let place = Scratch::new("two-versions");
    let other = place.file("other.c", shim.replace("cudaguard_r1", "cudaguard_r2"));
    let program = fixture::in_c("model", &place, "cc", &[fixture::shim().as_ref(), other.as_ref()]);
    for (world, status) in [(r580(&[A100]), 0), (asked(), 0), (r580(&[T4]), 78)] {
        let stage = Stage::new(&world);
        let outcome = stage.call(&[], &program, &[]).run();
        assert_eq!(outcome.status(), Some(status), "{outcome}");
        assert_eq!(outcome.stdout, if status == 0 { "main ran\n" } else { "" }, "{outcome}");
        assert_eq!(outcome.stderr.matches("cudaguard: ").count(), usize::from(status != 0), "{outcome}");
    }
}
