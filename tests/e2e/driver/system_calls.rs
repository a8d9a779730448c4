//! Start on a compatible machine: the system calls, and the NVIDIA files that are accessed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard_tests::world::{A100, H100, World};
use cudaguard_tests::{e2e, skip, snapshot, tools};

use super::fixture;
use super::refused_starts::r580;
use super::scenario::Stage;

/// Returns the strace lines of a start, without calls that vary between runs.
fn traced(stage: &Stage, program: &Path, guard: &str) -> Vec<String> {
    let file = stage.scratch.join("trace");
    let tool = ["strace", "-f", "-o", file.to_str().expect("UTF-8"), "-e", "trace=all"];
    let variables = [("CUDAGUARD", guard)];
    let outcome = stage.machine.under(&tool, program, &variables).run();
    if outcome.status() != Some(0) {
        eprintln!("{outcome}");
        skip("leave to trace (strace)", "a container with the capability SYS_PTRACE");
    }
    let text = fs::read_to_string(file).expect("a trace");
    let lines = text.lines().map(|line| line.split_once(' ').map_or(line, |(_, call)| call.trim_start()).to_owned());
    // `env` starts the program. System calls before that belong to `env`.
    let mut lines: Vec<String> = lines.collect();
    // strace escapes what is not ASCII, as a directory may be.
    let program = program.file_name().and_then(|name| name.to_str()).expect("UTF-8");
    let start = lines.iter().rposition(|line| line.starts_with("execve(") && line.contains(program)).expect("a start");
    lines.split_off(start)
}

fn need_strace() {
    tools::need("strace");
}

/// No device of NVIDIA is opened, no process is created, and no network is used.
#[e2e]
fn nvidia_code_is_not_executed() {
    need_strace();
    for world in [r580(&[A100]), r580(&[H100; 8]), World::bare()] {
        let stage = Stage::new(&world);
        for name in ["model", "runtime", "needy"] {
            if name == "needy" && world.kernel.is_none() {
                continue;
            }
            let lines = traced(&stage, &fixture::program(name), "");
            for line in &lines[1..] {
                for call in ["clone", "fork(", "vfork(", "execve"] {
                    assert!(!line.starts_with(call), "{name} makes a process: {line}");
                }
                for call in ["socket", "connect(", "send"] {
                    assert!(!line.starts_with(call), "{name} uses a network: {line}");
                }
                for file in ["/dev/nvidia", "libcudnn"] {
                    assert!(
                        !(line.starts_with("open") && line.contains(file)),
                        "{name} opens what it did not need: {line}"
                    );
                }
            }
        }
    }
}

/// Compares a start with one whose guard is disabled. The added calls must not exceed the limit, and their paths match the
/// snapshot. The program is in C, because other runtimes make varying calls.
#[e2e(slow)]
fn system_calls_match_snapshot() {
    need_strace();
    let mut text = String::new();
    for (what, name, world, most) in [
        ("nothing of NVIDIA", "model", World::bare(), 6),
        ("one GPU", "model", r580(&[A100]), 37),
        ("eight GPUs", "model", r580(&[H100; 8]), 94),
        ("one GPU, with cudart", "runtime", r580(&[A100]), 37),
    ] {
        let stage = Stage::new(&world);
        let program = fixture::in_c(name, &stage.scratch, "cc", &[fixture::shim().as_ref(), "-O2".as_ref()]);
        let count = |guard: &str| {
            let mut counts: BTreeMap<String, i64> = BTreeMap::new();
            for line in traced(&stage, &program, guard) {
                *counts.entry(kind(&line)).or_default() += 1;
            }
            counts
        };
        let (with, without) = (count(""), count("off"));
        let added: Vec<(&String, i64)> = with
            .iter()
            .map(|(kind, n)| (kind, n - without.get(kind).copied().unwrap_or_default()))
            .filter(|(_, n)| *n != 0)
            .collect();
        let total = added.iter().map(|(_, n)| n).sum::<i64>();
        assert!(total <= most, "{what}: {total} system calls, and {most} at most were agreed: {added:#?}");
        let _ = writeln!(text, "{what}");
        for (kind, n) in added.iter().filter(|(kind, _)| kind.contains(' ')) {
            let _ = writeln!(text, "  {n} {kind}");
        }
    }
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    snapshot::check("driver/system-calls", &snapshot::replace(&text, &[(&triplet, "<triplet>")]));
}

/// Reduces a line to its call and path, such as `openat /proc/driver/nvidia/version`. The device files of all GPUs count as
/// one.
fn kind(line: &str) -> String {
    let call = match line.split('(').next().unwrap_or_default() {
        "faccessat" => "access", // aarch64 has no other
        "readlinkat" => "readlink",
        call => call,
    };
    let object = line.split('"').nth(1).filter(|object| object.starts_with('/')).unwrap_or_default();
    let object = object.split("0000:").next().map_or_else(String::new, |head| {
        let tail = object.strip_prefix(head).and_then(|tail| tail.rsplit('/').next()).unwrap_or_default();
        if tail.is_empty() { head.to_owned() } else { format!("{head}<GPU>/{tail}") }
    });
    let object = object.strip_prefix("/dev/nvidia").map_or(object.clone(), |number| {
        if number.chars().all(|c| c.is_ascii_digit()) && !number.is_empty() {
            "/dev/nvidia<minor>".to_owned()
        } else {
            object.clone()
        }
    });
    let object = if object.starts_with("/proc/self/fd/") { "/proc/self/fd/<number>" } else { &object };
    format!("{call} {object}").trim_end().to_owned()
}
