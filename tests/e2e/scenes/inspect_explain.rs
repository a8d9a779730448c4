//! Contents of a file and explanations of findings: `inspect` and `explain`.

use cargo_cudaguard::binary::file::Binary;
use cudaguard_tests::command::components;
use cudaguard_tests::{Call, Project, Scratch, command, e2e, parts, snapshot};

use super::fixture::program;

#[e2e]
fn program_is_shown_in_both_formats() {
    let project = program("seen");
    let toolkit = parts::cuda("13.0");
    let path = format!("{}:{}", toolkit.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let call = project.cargo(["build", "--release"]).env("CUDNN_PATH", parts::cudnn("9.15.1"));
    let _ = call.env("PATH", path).env("CUDA_HOME", &toolkit).run().success();
    let file = project.built("release/seen");
    let reported = command::inspect(&file);
    let manifest = &reported["components"][0];
    assert_eq!(manifest["revision"], 1, "{reported}");
    assert_eq!(manifest["component"]["version"], "0.1.0", "{reported}");
    assert_eq!(manifest["profile"], "release", "{reported}");
    assert_eq!(manifest["toolkit"]["version"], "13.0.88", "{reported}");
    assert_eq!(manifest["cudnn"]["version"], "9.15.1", "{reported}");
    let needed = reported["needed"].as_array().expect("needed");
    assert!(needed.contains(&"libcudnn.so.9".into()), "{reported}");
    let outcome = command::call(["inspect"]).arg(&file).run().success();
    let version = format!("guarded by cudaguard {}", env!("CARGO_PKG_VERSION"));
    let text = outcome.stdout.replace(&version, "guarded by cudaguard <version>");
    // Lines that differ between machines: the host compiler, and the system libraries of Rust programs.
    let kept =
        text.lines().filter(|line| !["compiler", "others"].contains(&line.trim().split(' ').next().unwrap_or("")));
    let text = kept.fold(String::new(), |text, line| text + line + "\n");
    snapshot::check("scenes/inspect", &snapshot::paths(&text, &[(project.path(), "<project>")]));
}

#[e2e]
fn libraries_archives_and_objects_are_shown() {
    let project = Project::guarded("kinds")
        .append("Cargo.toml", "\n[lib]\ncrate-type = [\"cdylib\", \"staticlib\", \"rlib\"]\n")
        .file("src/lib.rs", "#[no_mangle]\npub extern \"C\" fn kinds() {}\n");
    let _ = project.cargo(["build", "--release"]).run().success();
    let library = project.built("release/libkinds.so");
    assert_eq!(components(&library), ["kinds"], "a shared library");
    let archive = project.built("release/libkinds.a");
    assert_eq!(components(&archive), ["kinds"], "a static archive");
    let scratch = Scratch::new("objects");
    let _ = Call::new("ar").arg("x").arg(&archive).dir(&scratch).run().success();
    let guarded = std::fs::read_dir(&*scratch).expect("a folder").filter(|entry| {
        // Read here, because the archive has hundreds of members.
        Binary::read(&entry.as_ref().expect("an entry").path()).is_ok_and(|binary| binary.manifests().count() > 0)
    });
    assert_eq!(guarded.count(), 1, "one member of the archive is the object with the note");
}
