//! Guarded programs behave under debuggers, tracers and sanitizers like unguarded ones. In a traced process the guard creates no child,
//! so what only a child can determine is unknown.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, e2e, once, places, skip, tools};

use super::fixture::{Arch, MAIN, descriptor, templates};
use super::harmless::{Scene, built};

/// Runs some executions of `tests/fuzz/judge/run`, from an empty corpus.
#[e2e(slow)]
fn judge_survives_the_fuzzer() {
    let scratch = Scratch::new("judge-fuzzer");
    let source =
        scratch.file("none.c", "int LLVMFuzzerTestOneInput(const char *at, long size) { return !at && size; }\n");
    let probe =
        Call::new("clang").arg("-fsanitize=fuzzer,address,undefined").arg("-o").arg(scratch.join("none")).arg(source);
    if tools::find("clang").is_none() || probe.run().status() != Some(0) {
        skip("clang with libFuzzer", "clang's libraries for it");
    }
    let call =
        Call::new(places::workspace().join("tests/fuzz/judge/run")).args(["-runs=100000", "-max_len=1200", "-seed=1"]);
    let _ = call.env("CARGO_TARGET_DIR", scratch.path()).run().success();
}

/// Result of a start: the exit status of the program, and the level and verdict of the report.
type Expected = (i32, u32, &'static str);

/// Returns a scene for each way to detect the version, by files or by calling cuDNN.
fn scenes() -> [(Scene, Expected); 5] {
    [
        (Scene::right(), (0, 0, "runs")),
        (Scene::older(), (78, 1, "refused")),
        (Scene::mute(), (0, 1, "unknown")),
        (Scene::asked(91_501), (0, 1, "runs")),
        (Scene::asked(90_100), (78, 1, "refused")),
    ]
}

/// Returns the same scenes with their results in a traced process.
fn traced_scenes() -> [(Scene, Expected); 5] {
    scenes().map(|(scene, (_, level, _))| (scene, (0, 0, if level == 0 { "runs" } else { "unknown" })))
}

/// Builds a guarded program from source, including the shim, with this compiler and these options. Skips the test if they do not
/// work.
fn made(compiler: &str, options: &str, scene: &Scene) -> PathBuf {
    let (program, bytes) = template(compiler, options, scene);
    Arch::patched(&program, bytes, &[descriptor(&built())]);
    program
}

/// Builds the same program, without its manifest. Returns its path and contents.
fn template(compiler: &str, options: &str, scene: &Scene) -> (PathBuf, Vec<u8>) {
    let program = scene.scratch.join("watched");
    let source = scene.scratch.file("main.c", MAIN);
    let notes = scene.scratch.file("notes.s", Arch::notes(1));
    let shim = scene.scratch.file("shim.o", compile_shim(compiler, options));
    let call = Call::new(compiler).args(["-g", "-O1", "-I"]).arg(templates()).args(options.split_whitespace());
    let call = call.arg("-o").arg(&program).args([&source, &notes, &shim]);
    let made = call.arg("-Wl,--no-as-needed").arg(scene.lib().join("libcudnn.so.9")).arg("-ldl").run();
    if made.status() != Some(0) {
        skip(format!("{compiler} that links with {options}"), "the compiler's libraries for it");
    }
    let bytes = fs::read(&program).expect("it was made");
    (program, bytes)
}

/// Compiles the shim with these options, once for all tests. A sanitizer makes this slow.
pub(super) fn compile_shim(compiler: &str, options: &str) -> Vec<u8> {
    once(&format!("watched shim {compiler} {options}"), || {
        let scratch = Scratch::new("watched-shim");
        let object = scratch.join("shim.o");
        let call =
            Call::new(compiler).args(["-g", "-O1", "-c"]).args(options.split_whitespace()).arg("-o").arg(&object);
        let _ = call.arg(templates().join("shim.c")).run().success();
        fs::read(&object).expect("it was compiled")
    })
}

/// Runs the program under this tool, checks status, output and report, and returns stdout.
#[track_caller]
fn watched(
    tool: &[impl AsRef<OsStr>],
    program: &Path,
    (scene, (status, level, verdict)): &(Scene, Expected),
    own_status: bool,
) -> String {
    let call = match tool {
        [] => scene.call(program),
        [first, rest @ ..] => scene.call(Path::new(first)).args(rest).arg(program),
    };
    let outcome = call
        .arg("check")
        .env("CUDAGUARD_REPORT", "report.json")
        .env("ASAN_OPTIONS", "exitcode=66")
        .env("UBSAN_OPTIONS", "halt_on_error=1:exitcode=67")
        .run();
    assert_eq!(outcome.status(), Some(if own_status { *status } else { 0 }), "{outcome}");
    assert_eq!(outcome.stdout.contains("main ran"), *status == 0, "{outcome}");
    for word in ["Sanitizer", "runtime error", "SIG", "signal"] {
        assert!(!outcome.stdout.contains(word) && !outcome.stderr.contains(word), "{outcome}");
    }
    let report = scene.report();
    assert_eq!((&report["level"], &report["verdict"]), (&(*level).into(), &(*verdict).into()), "{report:#}\n{outcome}");
    let _ = fs::remove_file(scene.scratch.join("report.json"));
    outcome.stdout
}

/// A debugger may take an unknown child for a thread of the program, and its breakpoints would end the child.
#[e2e(slow)]
fn debuggers_see_no_child() {
    let everywhere =
        ["set detach-on-fork off", "set follow-fork-mode child", "set breakpoint pending on", "break malloc if 0"];
    let gdb = ["gdb", "-q", "-nx", "-batch"].map(str::to_owned).to_vec();
    let with = |commands: &[&str]| {
        let commands = commands.iter().flat_map(|command| ["-ex".to_owned(), (*command).to_owned()]);
        gdb.iter().cloned().chain(commands).chain(["-ex", "run", "--args"].map(str::to_owned)).collect::<Vec<_>>()
    };
    let lldb =
        ["lldb", "-x", "--batch", "-o", "breakpoint set -n malloc -c 0", "-o", "run", "--"].map(str::to_owned).to_vec();
    let mut missing = Vec::new();
    let all = traced_scenes();
    let program = made("cc", "", &all[0].0);
    for tool in [with(&[]), with(&everywhere), lldb] {
        if tools::find(&tool[0]).is_none() {
            missing.push(tool[0].clone());
            continue;
        }
        for scene in &all {
            let reported = watched(&tool, &program, scene, false);
            let ended = if tool[0] == "gdb" { "exited normally" } else { "exited with status = 0 " };
            assert!(reported.contains(ended), "{tool:?}: {reported}");
        }
    }
    tools::done_without(&missing);
}

#[e2e(slow)]
fn tracers_see_no_child() {
    let mut missing = Vec::new();
    let (untraced, traced) = (scenes(), traced_scenes());
    let program = made("cc", "", &traced[0].0);
    // perf 6.1 loses the status of processes that end immediately (28 of 200).
    let held = "\"$0\" \"$@\"; status=$?; sleep 0.1; exit $status";
    for tool in [
        &["strace", "-f", "-o", "/dev/null"][..],
        &["strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "-o", "/dev/null"],
        &["perf", "stat", "-o", "/dev/null", "sh", "-c", held],
        &["perf", "record", "-q", "-e", "cpu-clock", "-o", "samples", "sh", "-c", held],
    ] {
        if tools::find(tool[0]).is_none() {
            missing.push(tool[0]);
            continue;
        }
        for scene in if tool[0] == "strace" { &traced } else { &untraced } {
            watched(tool, &program, scene, true);
        }
    }
    tools::done_without(&missing);
}

#[e2e(slow)]
fn valgrind_finds_nothing() {
    tools::need("valgrind");
    let tool = ["valgrind", "-q", "--error-exitcode=68", "--leak-check=full", "--child-silent-after-fork=yes"];
    let all = scenes();
    let program = made("cc", "", &all[0].0);
    for scene in &all {
        watched(&tool, &program, scene, true);
    }
}

pub(super) const UNDEFINED: &str = "-fsanitize=address,undefined -fno-sanitize-recover=undefined";

/// The shim is compiled with the sanitizer, too.
#[e2e(slow)]
fn sanitizers_find_nothing() {
    let calls = "-fsanitize=cfi -flto -fvisibility=hidden -fuse-ld=lld";
    let all = scenes();
    let mut missing = Vec::new();
    for (compiler, options) in
        [("gcc", UNDEFINED), ("clang", "-fsanitize=thread"), ("clang", "-fsanitize=memory"), ("clang", calls)]
    {
        let needs = [compiler, if options == calls { "ld.lld" } else { compiler }];
        if let Some(lacking) = needs.iter().find(|program| tools::find(program).is_none()) {
            missing.push(*lacking);
            continue;
        }
        let program = made(compiler, options, &all[0].0);
        for scene in &all {
            watched(&[""; 0], &program, scene, true);
        }
    }
    tools::done_without(&missing);
}
