//! Output that cannot be written, for each subcommand: a full disk, a closed pipe, a closed stream.

use cudaguard::internal::manifest::{Linkage, Requirement};
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Call, Outcome, Scratch, command, e2e};

use crate::loading::guarded_programs;

/// Machine whose driver is too old for the program.
const OLD: &str = r#"{"driver":{"user":"535.1","kernel":"535.1","cuda":"12.2"},"gpus":[{"cc":"8.0"}]}"#;

/// Creates a package, a program, and a list of machines that cannot run it.
fn scene() -> Scratch {
    let scratch = Scratch::new("output");
    scratch.file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    scratch.file("src/main.rs", "fn main() {}\n");
    let mut manifest = guarded_programs::manifest("demo", Version::new(9, 15, 1), Linkage::Linked);
    manifest.sealed = true;
    manifest.requires = vec![Requirement::Driver {
        cuda: CudaVersion::new(13, 0),
        release: DriverRelease::new(580, 65, 6),
        because: "libcudart 13.0".to_owned(),
    }];
    let objects = guarded_programs::objects(scratch.path(), &[manifest]);
    guarded_programs::link("int main(void) { return 0; }\n", &scratch.join("program"), &objects, &[])
        .expect("a program");
    scratch.file("hosts.jsonl", format!("{OLD}\n"));
    scratch
}

/// Pipe whose reader has exited.
const GONE: &str = "| :";

/// Runs the command with these arguments and shell redirections.
fn led(scratch: &Scratch, words: &[&str], redirections: &str) -> Outcome {
    let script = match redirections {
        // The reader exits before the command starts.
        GONE => "rm -f pipe; mkfifo pipe; : <pipe & exec >pipe; wait $!; exec \"$@\"".to_owned(),
        _ => format!("exec \"$@\" {redirections}"),
    };
    let call = Call::new("bash").args(["-c", &script, "bash"]).arg(command::path()).args(words);
    call.dir(scratch.path()).env("CARGO_NET_OFFLINE", "true").run()
}

#[e2e(slow)]
fn subcommands_survive_closed_output() {
    let scratch = scene();
    let of_this_machine = -1;
    let described = ["--driver", "535", "--gpu", "A100"];
    for (words, status) in [
        (&["inspect", "program"][..], 0),
        (&["inspect", "--json", "program"], 0),
        (&[&["verify", "program"][..], &described].concat(), 1),
        (&[&["verify", "--json", "program"][..], &described].concat(), 1),
        (&["verify", "program", "--fleet", "hosts.jsonl"], 1),
        (&["verify", "program", "--fleet", "hosts.jsonl", "--json"], 1),
        (&["requirements", "program"], 0),
        (&["requirements", "--format", "k8s-dra", "program"], 0),
        (&["map", "program"], 0),
        (&["map", "--format", "html", "program"], 0),
        (&["probe"], of_this_machine),
        (&["probe", "--json"], of_this_machine),
        (&["doctor", "--json"], of_this_machine),
        (&["check"], of_this_machine),
        (&["check", "--json"], of_this_machine),
        (&["check", "--format", "sarif"], of_this_machine),
        (&["env"], of_this_machine),
        (&["explain"], 0),
        (&["explain", "CG202"], 0),
        (&["explain", "803"], 0),
        (&["completions", "bash"], 0),
        (&["--help"], 0),
        (&["verify", "--help"], 0),
        (&["--version"], 0),
    ] {
        let plain = led(&scratch, words, "");
        let status = if status == of_this_machine { plain.status().expect("it ends by itself") } else { status };
        assert_eq!(plain.status(), Some(status), "{words:?}: {plain}");
        for (redirections, expected) in
            [(GONE, status), (">&-", status), (">/dev/null 2>/dev/full", status), ("2>&-", status), (">/dev/full", 2)]
        {
            let outcome = led(&scratch, words, redirections);
            assert_eq!(
                (outcome.status(), outcome.signal()),
                (Some(expected), None),
                "{words:?} {redirections}: {outcome}"
            );
            assert!(!outcome.stderr.contains("panicked"), "{words:?} {redirections}: {outcome}");
            let reported = outcome.stderr.contains("cannot write to stdout: ");
            assert_eq!(reported, redirections == ">/dev/full", "{words:?} {redirections}: {outcome}");
        }
    }
}
