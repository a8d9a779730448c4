//! A program that loads cuDNN with dlopen at run time, like most frameworks. Its start reports nothing; it can check later.

use cudaguard_tests::{Call, Outcome, Project, Test, parts, project, tests};

use super::fixture::{build, start};

pub(crate) fn tests() -> Vec<Test> {
    tests![verdict_follows_loaded_cudnn, declared_cudnn_is_found_at_start, required_cudnn_is_missing]
}

const MAIN: &str = r#"
use std::ffi::{c_char, c_int, c_void, CStr};

#[link(name = "dl")]
extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
}

fn say(when: &str) {
    let report = cudaguard::check();
    match report.finding {
        None => println!("{when}: {}", report.status),
        Some(finding) => println!("{when}: {}: {finding}", report.status),
    }
}

fn main() {
    say("before");
    let name = CStr::from_bytes_with_nul(b"libcudnn.so.9\0").unwrap();
    println!("loaded: {}", unsafe { !dlopen(name.as_ptr(), 2).is_null() });
    say("after");
}
"#;

/// Returns a program that is built with the headers of 9.15.1 and this policy, and not linked with cuDNN.
fn loading(name: &str, policy: &str) -> Project {
    let project = Project::guarded(name)
        .append("Cargo.toml", &project::check_dependency())
        .file("cudaguard.toml", policy)
        .file("src/main.rs", MAIN);
    build(&project, &parts::cudnn("9.15.1"));
    project
}

fn printed(outcome: &Outcome, when: &str) -> String {
    let start = format!("{when}: ");
    let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("nothing said {when}: {outcome}")).to_owned()
}

fn verdict_follows_loaded_cudnn() {
    let project = loading("loading", "");
    let program = project.built("release/loading");
    let good = start(&program, &parts::cudnn("9.15.1")).run().success();
    assert_eq!((printed(&good, "loaded"), printed(&good, "after")), ("true".into(), "compatible".into()), "{good}");
    let older = start(&program, &parts::cudnn("9.1.0")).run().success();
    assert_eq!(older.stderr, "", "how cuDNN is reached is not known, so its start is not refused: {older}");
    assert!(printed(&older, "after").starts_with("incompatible: error[CG202]"), "{older}");
    let absent = Call::new(&program).run().success();
    assert_eq!((printed(&absent, "loaded"), absent.stderr.as_str()), ("false".into(), ""), "{absent}");
    assert!(!printed(&absent, "after").starts_with("incompatible"), "{absent}");
}

fn declared_cudnn_is_found_at_start() {
    let project = loading("declared", "[cudnn]\nlinkage = \"dlopened\"\n");
    let program = project.built("release/declared");
    let good = start(&program, &parts::cudnn("9.17.1")).run().success();
    assert_eq!((printed(&good, "after").as_str(), good.stderr.as_str()), ("compatible", ""), "{good}");
    let older = start(&program, &parts::cudnn("9.1.0")).run().expect(78);
    assert!(older.stdout.is_empty() && older.stderr.contains("CG202"), "{older}");
    let absent = Call::new(&program).run().success();
    assert_eq!(absent.stderr, "", "a program may well do without: {absent}");
}

fn required_cudnn_is_missing() {
    let project = loading("required", "[cudnn]\nlinkage = \"dlopened\"\nrequired = true\n");
    let program = project.built("release/required");
    let absent = Call::new(&program).run().expect(78);
    assert!(absent.stdout.is_empty() && absent.stderr.contains("CG205"), "{absent}");
    let good = start(&program, &parts::cudnn("9.15.1")).run().success();
    assert_eq!(printed(&good, "after"), "compatible", "{good}");
}
