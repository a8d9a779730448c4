//! Predictions of a start, compared with the start itself.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::binary::mapped_file::{Contents, OpenFiles};
use cargo_cudaguard::start;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::Finding;
use cudaguard::internal::manifest::{Linkage, Requirement};
use cudaguard::internal::version::Version;
use cudaguard_tests::{Call, Scratch, command, e2e, fake_library, skip, world};

use super::guarded_programs;

const BUILT: Version = Version::new(9, 15, 1);
const SIGPIPE: u32 = 13;

/// `exec` passes SIGPIPE and the loader's variables to the program unchanged.
#[e2e]
fn caller_signals_and_variables_are_kept() {
    let show = "echo \"$LD_LIBRARY_PATH\"; grep SigIgn /proc/self/status";
    for (before, ignored) in [("", false), ("trap '' PIPE; ", true)] {
        let script = format!("{before}exec \"$@\"");
        let call =
            Call::new("sh").args(["-c", &script, "sh"]).arg(command::path()).args(["exec", "--", "sh", "-c", show]);
        let outcome = call.env("LD_LIBRARY_PATH", "/some/where:").run().success();
        let (path, signals) = outcome.stdout.split_once('\n').expect("two lines");
        assert_eq!(path, "/some/where:", "{outcome}");
        let mask = signals.trim_start_matches("SigIgn:").trim();
        let mask = u64::from_str_radix(mask, 16).expect("a mask of signals");
        assert_eq!(mask >> (SIGPIPE - 1) & 1 == 1, ignored, "{outcome}");
    }
}

fn release(dir: &Path, version: (u32, u32, u32)) -> PathBuf {
    let root = dir.join(format!("{}.{}.{}", version.0, version.1, version.2));
    fake_library::cudnn(&root, version);
    root.join("lib")
}

/// systemd's dlopen note lists the library, and `inspect` reads this note from any file.
#[e2e]
fn dlopen_note_names_cudnn() {
    let dir = Scratch::new("opened");
    for (linkage, required, priority) in
        [(Linkage::Dlopened, false, "recommended"), (Linkage::Dlopened, true, "required"), (Linkage::Linked, false, "")]
    {
        let mut manifest = guarded_programs::manifest("demo", BUILT, linkage);
        for requirement in &mut manifest.requires {
            if let Requirement::Library { required: of_row, .. } = requirement {
                *of_row = required;
            }
        }
        let program = dir.join("prog");
        let objects = guarded_programs::objects(&dir, &[manifest]);
        guarded_programs::link("int main(void) { return 0; }", &program, &objects, &["-s".to_owned()]).unwrap();
        let shown = command::inspect(&program);
        if priority.is_empty() {
            assert_eq!(shown.get("opened"), None, "{shown:#}");
            continue;
        }
        let entry = &shown["opened"][0];
        assert_eq!((&entry["feature"], &entry["priority"]), (&"cudnn".into(), &priority.into()), "{shown:#}");
        assert_eq!(entry["soname"], serde_json::json!(["libcudnn.so.9"]));
        let text = command::call(["inspect"]).arg(&program).run().success();
        let line = format!("libcudnn.so.9: {priority}, opened by name by demo 0.1.0");
        assert!(text.stdout.contains(&line), "{text}");
    }
}

/// Returns the output of the command and of a guarded program that opens cuDNN and requires it, with this directory on the
/// library path. Both run in a user namespace without rights over files of other users.
fn needs(scratch: &Scratch, dir: &Path) -> (String, String) {
    let mut manifest = guarded_programs::manifest("demo", BUILT, Linkage::Dlopened);
    for requirement in &mut manifest.requires {
        if let Requirement::Library { required, .. } = requirement {
            *required = true;
        }
    }
    let program = scratch.join("prog");
    let objects = guarded_programs::objects(scratch, &[manifest]);
    guarded_programs::link("int main(void) { return 0; }", &program, &objects, &[]).unwrap();
    let report = scratch.join("report.json");
    let _ = fs::remove_file(&report);
    let nobody = |word: &Path| Call::new("unshare").arg("-U").arg(word).env("LD_LIBRARY_PATH", dir);
    if nobody(Path::new("true")).run().status() != Some(0) {
        skip("user namespaces", world::NAMESPACES);
    }
    fs::write(&report, "").unwrap();
    fs::set_permissions(&report, fs::Permissions::from_mode(0o666)).unwrap();
    let _ = nobody(&program).env("CUDAGUARD_REPORT", &report).run();
    let verified = nobody(command::path()).args(["verify".as_ref(), "--json".as_ref(), program.as_os_str()]).run();
    let reported = |text: &str| {
        let mut codes: Vec<&str> = text.split('"').filter(|word| word.starts_with("CG")).collect();
        codes.dedup();
        codes.into_iter().filter(|code| code.starts_with("CG2") || *code == "CG501").collect::<Vec<_>>().join(" ")
    };
    (reported(&verified.stdout), reported(&fs::read_to_string(&report).unwrap()))
}

/// An unreadable file is not treated as absent.
#[e2e]
fn unreadable_directory_is_unknown() {
    let scratch = Scratch::new("may not be read");
    let (empty, shut) = (scratch.join("empty"), release(&scratch, (9, 15, 1)));
    fs::create_dir_all(&empty).unwrap();
    let both = |codes: &str| (codes.to_owned(), codes.to_owned());
    assert_eq!(needs(&scratch, &empty), both("CG205"));
    assert_eq!(needs(&scratch, &shut), both(""));
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    let reported = needs(&scratch, &shut);
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(reported, both("CG501"));
}

#[e2e(slow)]
fn system_programs_have_no_findings() {
    let environment = Env::without_variables();
    let mut seen = 0;
    // A part of more than a thousand programs.
    for file in std::fs::read_dir("/usr/bin").unwrap().step_by(16).map(|file| file.unwrap().path()) {
        let Ok(contents) = Contents::open(&file) else { continue };
        let Ok(program) = Binary::from_contents(&file, Arc::new(contents)) else { continue };
        let Ok(predicted) = start::simulate_and_check(&program, &environment, &OpenFiles::default(), None) else {
            continue;
        };
        let findings: Vec<_> = predicted.findings.iter().map(Finding::render).collect();
        if !findings.is_empty() && std::fs::metadata(&file).unwrap().mode() & 0o6000 == 0 {
            // A machine may have programs that do not start. In this case the loader must report the same.
            let trace = Command::new(&file).env_clear().env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap();
            let printed = [trace.stdout, trace.stderr].concat();
            let agrees = String::from_utf8_lossy(&printed).contains("not found") || !trace.status.success();
            assert!(agrees, "a false alarm about {}: {}", file.display(), findings.join("\n"));
        }
        seen += 1;
    }
    assert!(seen > 20, "only {seen} programs were read");
}
