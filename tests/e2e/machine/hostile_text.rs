//! Names and texts that contain terminal commands, reverse the reading direction or imitate our output, in each kind of
//! input that the output can contain.

use std::fs;

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::{Call, Outcome, Scratch, e2e};

use super::fixture::{self, BUILT, call, demo};
use super::guarded_programs;

/// Clears the screen with seven-bit and eight-bit sequences, reverses the following text and forges an error line.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}2J\u{202e}\u{7f}\r\nerror[CG101]: forged";
const SHOWN: &str = "x\\u001b[2J\\u009b2J\\u202e\\u007f\\u000d\\u000aerror[CG101]: forged";

/// Returns the output. Checks that a terminal can show it safely, and that no part of it imitates our lines.
#[track_caller]
fn harmless(outcome: &Outcome) -> String {
    let printed = format!("{}\n{}", outcome.stdout, outcome.stderr);
    let commands = |c: char| (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}');
    assert!(!printed.contains(commands), "{printed:?}");
    assert!(!printed.lines().any(|line| line.trim_start().starts_with("error[CG101]: forged")), "{printed}");
    printed
}

#[e2e]
fn hostile_file_name_is_sanitized() {
    let scratch = Scratch::new("hostile-file");
    let file = scratch.join(HOSTILE);
    fixture::link(demo(), &file);
    for (verb, place) in [("inspect", &[][..]), ("verify", &["--driver", "535", "--gpu", "8.0"]), ("doctor", &[])] {
        let outcome = call([verb]).arg(&file).args(place).run();
        let printed = harmless(&outcome);
        assert!(printed.contains(SHOWN), "{verb}: {printed}");
    }
    // JSON output contains the exact name.
    let outcome = call(["inspect", "--json"]).arg(&file).run().success();
    let _ = harmless(&outcome);
    assert_eq!(outcome.json()["file"], file.to_str().expect("it is UTF-8"));
}

#[e2e]
fn hostile_component_is_sanitized() {
    let scratch = Scratch::new("hostile-component");
    let file = scratch.join("program");
    fixture::program(&file, &[guarded_programs::manifest(HOSTILE, BUILT, Linkage::Linked)]);
    for words in [&["inspect"][..], &["verify", "--driver", "535", "--gpu", "8.0", "--cudnn", "8.9.0"]] {
        let printed = harmless(&call(words).arg(&file).run());
        assert!(printed.contains(SHOWN), "{printed}");
    }
}

#[e2e]
fn hostile_soname_is_sanitized() {
    let scratch = Scratch::new("hostile-soname");
    let (library, file) = (scratch.join("library.so"), scratch.join("program"));
    let source = scratch.file("library.c", "int answer(void) { return 42; }\n");
    let soname = format!("-Wl,-soname,libcudart.{HOSTILE}");
    let _ = Call::new("cc").args(["-shared", "-fPIC", &soname, "-o"]).args([&library, &source]).run().success();
    let main = scratch.file("main.c", "int answer(void);\nint main(void) { return answer(); }\n");
    let _ = Call::new("cc").arg("-o").args([&file, &main, &library]).run().success();
    let printed = harmless(&call(["inspect"]).arg(&file).run());
    assert!(printed.contains(SHOWN), "{printed}");
}

#[e2e]
fn hostile_host_file_is_sanitized() {
    let scratch = Scratch::new("hostile-host");
    let text = |key: &str| {
        serde_json::json!({ key: 1, "name": HOSTILE, "driver": { "user": "535.1" },
        "gpus": [{ "cc": "7.5", "name": HOSTILE }] })
    };
    let host = scratch.file("host.json", text("x").to_string());
    for place in ["--host", "--fleet"] {
        let printed = harmless(&call(["verify"]).arg(demo()).arg(place).arg(&host).run().expect(1));
        assert!(printed.contains(SHOWN), "{printed}");
    }
    // An error in a key, and one in a value.
    let wrong = serde_json::json!({ "variables": { HOSTILE: 1 } });
    let host = scratch.file("wrong.json", wrong.to_string());
    let printed = harmless(&call(["verify"]).arg(demo()).arg("--host").arg(&host).run().expect(2));
    assert!(printed.contains(SHOWN), "{printed}");
    let host = scratch.file("value.json", serde_json::json!({ "gpus": [{ "cc": HOSTILE }] }).to_string());
    let printed = harmless(&call(["verify"]).arg(demo()).arg("--host").arg(&host).run().expect(2));
    assert!(printed.contains("x\\u{1b}[2J"), "{printed}");
}

#[e2e(slow)]
fn hostile_policy_is_sanitized() {
    let scratch = Scratch::new("hostile-policy");
    let quoted = serde_json::json!(HOSTILE).to_string().replace('\u{7f}', "\\u007f");
    scratch.file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    fs::create_dir(scratch.join("src")).expect("a folder");
    scratch.file("src/main.rs", "fn main() {}\n");
    for policy in [format!("[toolkit]\n{quoted} = 1\n"), format!("[toolkit]\nrequire = {quoted}\n")] {
        scratch.file("cudaguard.toml", policy);
        let printed = harmless(&call(["check"]).dir(scratch.path()).run().expect(2));
        // A key is shown in TOML syntax, and a value with the escapes of Rust.
        assert!(printed.contains("x\\u001b[2J") || printed.contains("x\\u{1b}[2J"), "{printed}");
    }
}

#[e2e]
fn hostile_nvcc_is_sanitized() {
    let scratch = Scratch::new("hostile-nvcc");
    scratch.file("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");
    fs::create_dir(scratch.join("src")).expect("a folder");
    scratch.file("src/main.rs", "fn main() {}\n");
    scratch.file("cudaguard.toml", "[toolkit]\nrequire = \"13\"\n");
    let nvcc = scratch.file("nvcc", "#!/bin/sh\nprintf 'x\\033[2J\\302\\2332J\\342\\200\\256y\\n' >&2; exit 3\n");
    let _ = Call::new("chmod").arg("+x").arg(&nvcc).run().success();
    let printed = harmless(&call(["check"]).dir(scratch.path()).env("NVCC", &nvcc).run());
    assert!(printed.contains("--version: exit status 3: x\\u001b[2J\\u009b2J\\u202ey"), "{printed}");
}
