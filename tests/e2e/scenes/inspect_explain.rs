//! Contents of a file and explanations of findings: `inspect` and `explain`.

use std::path::Path;

use cargo_cudaguard::binary::file::Binary;
use cudaguard::internal::finding::Code;
use cudaguard_tests::{Call, Project, Scratch, Test, command, parts, places, project, snapshot, tests};
use serde_json::Value;

use super::fixture::{LINKS_CUDNN, build, program};
use super::packages::components;

pub(crate) fn tests() -> Vec<Test> {
    tests![
        program_is_shown_in_both_formats,
        libraries_archives_and_objects_are_shown,
        components_are_shown_separately,
        missing_manifest_is_reported,
        documented_parser_reads_readelf_output,
        codes_are_all_explained,
    ]
}

fn json(file: &Path) -> Value {
    let outcome = command::call(["inspect", "--json"]).arg(file).run().success();
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn program_is_shown_in_both_formats() {
    let project = program("seen");
    let toolkit = parts::cuda("13.0");
    let path = format!("{}:{}", toolkit.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let call = project.cargo(["build", "--release"]).env("CUDNN_PATH", parts::cudnn("9.15.1"));
    let _ = call.env("PATH", path).env("CUDA_HOME", &toolkit).run().success();
    let file = project.built("release/seen");
    let reported = json(&file);
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

fn components_are_shown_separately() {
    let cudnn = parts::cudnn("9.15.1");
    let member = |name: &str| project::package(name).replace("\n[workspace]\n", "") + &project::build_dependency();
    let depends = |names: &[&str]| {
        names.iter().fold("\n[dependencies]\n".to_owned(), |text, name| {
            text + &format!("{name} = {{ path = \"../{name}\" }}\n")
        })
    };
    let guarded = LINKS_CUDNN.replace("EMBED", "cudaguard::embed!();");
    let library = "pub fn answer() -> u32 { 1 }\n";
    // Two dependency paths lead from the program to `base`.
    let project = Project::bare("several")
        .file("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"base\", \"left\", \"top\"]\n")
        .file("base/Cargo.toml", member("base"))
        .file("base/build.rs", &guarded)
        .file("base/src/lib.rs", library)
        .file("left/Cargo.toml", member("left") + &depends(&["base"]))
        .file("left/build.rs", &guarded)
        .file("left/src/lib.rs", "pub fn answer() -> u32 { base::answer() }\n")
        .file("top/Cargo.toml", member("top") + &depends(&["base", "left"]))
        .file("top/build.rs", &guarded)
        .file("top/src/main.rs", "fn main() { println!(\"{}\", base::answer() + left::answer()); }\n");
    build(&project, &cudnn);
    let file = project.built("release/top");
    assert_eq!(components(&file), ["base", "left", "top"]);
    let text = command::call(["inspect"]).arg(&file).run().success().stdout;
    for name in ["base 0.1.0", "left 0.1.0", "top 0.1.0"] {
        assert!(text.contains(name), "{name} is not named:\n{text}");
    }
}

fn missing_manifest_is_reported() {
    let scratch = Scratch::new("bare-files");
    let bare = Path::new("/bin/sh");
    let reported = command::call(["inspect"]).arg(bare).run().expect(0);
    assert!(reported.stderr.contains("/bin/sh: no manifest") && reported.stdout.contains("libc.so.6"), "{reported}");
    let text = scratch.file("a text.txt", "not a program\n");
    let reported = command::call(["inspect"]).arg(&text).run().expect(2);
    assert!(reported.stderr.contains("a text.txt"), "{reported}");
    let reported = command::call(["inspect"]).arg(scratch.join("no such file")).run().expect(2);
    assert!(reported.stderr.contains("no such file"), "{reported}");
}

/// Runs the Python parser from MANIFEST.md unchanged, and `readelf -n`.
fn documented_parser_reads_readelf_output() {
    let project = program("documented");
    build(&project, &parts::cudnn("9.15.1"));
    let file = project.built("release/documented");
    let page = std::fs::read_to_string(places::workspace().join("MANIFEST.md")).expect("MANIFEST.md");
    let parser = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a parser");
    assert!(parser.lines().count() <= 10, "ten lines");
    let reported = Call::new("python3").args(["-c", parser]).arg(&file).run().success();
    let manifest: Value = serde_json::from_str(&reported.stdout).unwrap_or_else(|error| panic!("{error}: {reported}"));
    assert_eq!(manifest, json(&file)["components"][0], "the same as the output of inspect");
    let notes = Call::new("readelf").arg("-n").arg("-W").arg(&file).env("LC_ALL", "C").run().success();
    assert_eq!(
        notes.stdout.matches("cudaguard").count() - notes.stdout.matches(".note.cudaguard").count(),
        1,
        "{notes}"
    );
}

fn codes_are_all_explained() {
    let all = command::call(["explain"]).run().success();
    for code in Code::ALL {
        let name = code.to_string();
        assert!(all.stdout.contains(&name), "{name} is not in the list");
        let reported = command::call(["explain", &name]).run().success();
        assert!(reported.stdout.contains(code.title()) && reported.stdout.contains("What to do"), "{reported}");
    }
    let lower = command::call(["explain", "cg202"]).run().success();
    assert_eq!(lower.stdout, command::call(["explain", "CG202"]).run().success().stdout);
    let unknown = command::call(["explain", "CG999"]).run();
    assert!(unknown.status() == Some(2) && unknown.stderr.contains("CG999"), "{unknown}");
}
