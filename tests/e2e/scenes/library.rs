//! A guarded library in a third-party program, Python: the program continues, and the library's verdict is available.

use std::path::Path;

use cudaguard_tests::{Call, Outcome, Project, Test, parts, places, project, snapshot, tests};

use super::fixture::{LINKS_CUDNN, build};

pub(crate) fn tests() -> Vec<Test> {
    tests![python_survives_a_guarded_library, enforcing_library_ends_the_process, verdict_without_guard_is_unknown]
}

const SOURCE: &str = r#"
extern "C" {
    fn cudnnGetVersion() -> usize;
    fn asked_in_c(text: *mut u8, size: usize) -> i32;
}

#[no_mangle]
pub extern "C" fn works() -> usize {
    unsafe { cudnnGetVersion() }
}

#[no_mangle]
pub extern "C" fn ask_in_rust() -> i32 {
    let report = cudaguard::check();
    if let Some(finding) = report.finding {
        println!("rust: {finding}");
    }
    report.status as i32
}

#[no_mangle]
pub extern "C" fn ask_in_c() -> i32 {
    let mut text = [0; 4096];
    let verdict = unsafe { asked_in_c(text.as_mut_ptr(), text.len()) };
    let end = text.iter().position(|byte| *byte == 0).unwrap();
    println!("c: {}", String::from_utf8_lossy(&text[..end]));
    verdict
}
"#;

const ASKED_IN_C: &str = "#include <cudaguard.h>\n\
                          int asked_in_c(char *text, size_t size) { return cudaguard_check_text(text, size); }\n";

const SCRIPT: &str = "
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print('loaded', flush=True)
print('rust:', library.ask_in_rust(), 'c:', library.ask_in_c(), flush=True)
if len(sys.argv) > 2:
    print('works:', library.works())
print('alive')
";

/// Returns a cdylib that links cuDNN and exposes the check in Rust and in C.
fn extension(name: &str) -> Project {
    let include = places::workspace().join("templates");
    let c = format!("cc::Build::new().file(\"asked.c\").include(\"{}\").compile(\"asked\");", include.display());
    Project::new(name)
        .append("Cargo.toml", &project::build_dependency())
        .append("Cargo.toml", "cc = \"1\"\n[lib]\ncrate-type = [\"cdylib\"]\n")
        .append("Cargo.toml", &project::check_dependency())
        .file("build.rs", LINKS_CUDNN.replace("EMBED", &format!("{c}\n    cudaguard::embed!();")))
        .file("asked.c", ASKED_IN_C)
        .file("src/lib.rs", SOURCE)
}

/// Loads the library in Python with this cuDNN on its library path. `more` contains further arguments, which make it call
/// cuDNN.
fn python(project: &Project, library: &str, cudnn: &Path, more: &[&str]) -> Outcome {
    Call::new("python3")
        .args(["-c", SCRIPT])
        .arg(project.built(&format!("release/{library}")))
        .args(more)
        .env("LD_LIBRARY_PATH", cudnn.join("lib"))
        .run()
}

fn python_survives_a_guarded_library() {
    let project = extension("extension");
    build(&project, &parts::cudnn("9.15.1"));
    let good = python(&project, "libextension.so", &parts::cudnn("9.15.1"), &["call"]).success();
    assert_eq!(good.stdout, "loaded\nc: \nrust: 0 c: 0\nworks: 91501\nalive\n", "{good}");
    assert_eq!(good.stderr, "");
    let older = python(&project, "libextension.so", &parts::cudnn("9.1.0"), &[]).success();
    assert!(older.stdout.contains("rust: 1 c: 1") && older.stdout.ends_with("alive\n"), "{older}");
    assert_eq!(older.stderr, "", "a library prints nothing unless it is called: {older}");
    snapshot::check(
        "scenes/python",
        &snapshot::paths(&older.stdout, &[(&parts::dir(), "<parts>"), (project.path(), "<project>")]),
    );
}

fn enforcing_library_ends_the_process() {
    let project = extension("enforcing").file("cudaguard.toml", "[runtime]\nlibrary = \"enforce\"\n");
    build(&project, &parts::cudnn("9.15.1"));
    let good = python(&project, "libenforcing.so", &parts::cudnn("9.15.1"), &["call"]).success();
    assert!(good.stdout.ends_with("works: 91501\nalive\n") && good.stderr.is_empty(), "{good}");
    let older = python(&project, "libenforcing.so", &parts::cudnn("9.1.0"), &[]).expect(78);
    assert_eq!(older.stdout, "", "before anything of the library runs: {older}");
    snapshot::check(
        "scenes/enforcing",
        &snapshot::paths(&older.stderr, &[(&parts::dir(), "<parts>"), (project.path(), "<project>")]),
    );
}

fn verdict_without_guard_is_unknown() {
    let project = Project::new("bare")
        .append("Cargo.toml", &project::check_dependency())
        .file("src/main.rs", "fn main() { println!(\"{}\", cudaguard::check()); }\n");
    let outcome = project.cargo(["run", "--quiet"]).run().success();
    assert_eq!(outcome.stdout, "this file was built without the guard\n", "{outcome}");
}
