//! Starts under seccomp filters that kill the process: the guard makes only the system calls that cudaguard.h lists.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cudaguard_tests::world::{A100, T4, World};
use cudaguard_tests::{Outcome, Scratch, e2e, parts, places, skip};

use super::fixture;
use super::refused_starts::r580;
use super::scenario::{Stage, codes};

/// Library that installs a filter before any guard runs. `CALLS` lists the allowed calls or the forbidden calls.
const FILTER: &str = r"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static const int calls[] = {CALLS};
enum { COUNT = sizeof calls / sizeof *calls };
__attribute__((constructor)) static void loaded(void) {
  static struct sock_filter filter[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  struct sock_fprog program = {COUNT + 3, filter};
  int k;
  for (k = 0; k < COUNT; k++) filter[k + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[k], COUNT - k, 0);
  filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, OTHERS);
  filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, LISTED);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(99);
}
";

/// Starts a program under such a filter. Skips the test if the kernel has no filters.
fn filtered(stage: &Stage, program: &Path, only: bool, calls: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let numbers = calls.iter().fold(String::new(), |mut numbers, call| {
        let _ = write!(numbers, "SYS_{call}, ");
        numbers
    });
    let (listed, others) = if only { ("ALLOW", "KILL_PROCESS") } else { ("KILL_PROCESS", "ALLOW") };
    let source = FILTER.replace("{CALLS}", &format!("{{{numbers}}}"));
    let source = source.replace("OTHERS", &format!("SECCOMP_RET_{others}"));
    stage.library("libfilter.so", &source.replace("LISTED", &format!("SECCOMP_RET_{listed}")));
    let variables = [&[("LD_PRELOAD", "./libfilter.so")][..], variables].concat();
    let outcome = stage.machine.under(&[], program, &variables).dir(stage.scratch.path()).run();
    if outcome.status() == Some(99) {
        skip("seccomp filters", "a kernel that has them");
    }
    outcome
}

#[e2e]
fn fatal_driver_call_is_avoided() {
    let cudnn = parts::cudnn("9.15.1").join("lib");
    for program in ["model", "vision"] {
        let stage = Stage::new(&r580(&[A100]));
        for call in ["clone", "pipe2", "ppoll", "wait4", "readlinkat", "faccessat", "clock_gettime"] {
            let ours = matches!(call, "readlinkat" | "faccessat");
            if ours && cfg!(target_arch = "aarch64") {
                continue; // there they are the loader's own
            }
            let variables = [("LD_LIBRARY_PATH", cudnn.to_str().expect("UTF-8"))];
            let outcome = filtered(&stage, &fixture::program(program), false, &[call], &variables);
            assert_eq!(outcome.status(), Some(0), "{program} {call}");
            assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{call}: {outcome}");
        }
    }
}

/// Returns the calls that the contract lists for this purpose.
fn listed<'a>(contract: &'a str, purpose: &str) -> Vec<&'a str> {
    let line = contract.lines().find_map(|line| line.strip_prefix("| ")?.strip_prefix(purpose));
    let calls = line.unwrap_or_else(|| panic!("{purpose}?")).split('`').nth(1).unwrap_or_default();
    let here = |call| match call {
        "access" if cfg!(target_arch = "aarch64") => "faccessat",
        "readlink" if cfg!(target_arch = "aarch64") => "readlinkat",
        call => call,
    };
    calls.split_whitespace().map(here).collect()
}

#[e2e]
fn only_listed_calls_are_made() {
    /// Calls of the program itself, which writes a line and exits.
    const PROGRAM: [&str; 6] = ["write", "newfstatat", "fstat", "brk", "getrandom", "exit_group"];
    /// Calls of the probed driver, which is loaded and searches for its files.
    const DRIVER: [&str; 9] = ["mprotect", "read", "openat", "newfstatat", "fstat", "close", "mmap", "munmap", "futex"];
    let contract =
        fs::read_to_string(places::workspace().join("docs/internals/shim-contract.md")).expect("the contract");
    let all = |lists: &[&str]| lists.iter().flat_map(|list| listed(&contract, list)).chain(PROGRAM).collect::<Vec<_>>();
    let place = Scratch::new("listed-calls");
    let program = fixture::in_c("model", &place, "cc", &[fixture::shim().as_ref()]);
    let start = |world: &World, calls: &[&str], variables: &[(&str, &str)]| {
        let stage = Stage::new(world);
        let outcome = filtered(&stage, &program, true, calls, variables);
        (stage, outcome)
    };
    let (fit, unfit) = (r580(&[A100]), r580(&[T4]));
    let (_, outcome) = start(&fit, &all(&["start", "files |", "GPUs, if"]), &[]);
    assert_eq!((outcome.status(), &*outcome.stdout), (Some(0), "main ran\n"), "{outcome}");
    let (_, outcome) = start(&World::bare(), &all(&["start", "files |"]), &[]);
    assert_eq!((outcome.status(), &*outcome.stdout), (Some(0), "main ran\n"), "{outcome}");

    let (stage, outcome) = start(
        &fit,
        &all(&["start", "files |", "GPUs, if", "messages", "report"]),
        &[("CUDAGUARD_REPORT", "report.json")],
    );
    assert_eq!((outcome.status(), &*outcome.stdout), (Some(0), "main ran\n"), "{outcome}");
    assert_eq!(stage.report()["level"], 0);

    let asking = [
        all(&["start", "files |", "GPUs, if", "messages", "report", "creating the child of level 1", "in that child"]),
        DRIVER.to_vec(),
    ]
    .concat();
    let (stage, outcome) = start(&unfit, &asking, &[("CUDAGUARD_REPORT", "report.json")]);
    assert_eq!((outcome.status(), codes(&stage.report()).as_str()), (Some(78), "CG303 error"), "{outcome}");
    // Checks that the filter is effective.
    let fewer: Vec<_> = asking.iter().copied().filter(|call| *call != "clone").collect();
    let (_, outcome) = start(&unfit, &fewer, &[]);
    assert_eq!(outcome.status(), None, "{outcome}");
}
