//! `init` in different kinds of projects, each of which builds afterwards.

use std::fs;

use cudaguard_tests::{
    Call, Project, Scratch, command, crates, e2e, fake_library, parts, places, project, scratch, tools,
};

use super::fixture::{Tree, equipped, with};

/// Returns a project whose registry contains the `cudaguard` of this repository.
fn settled(name: &str) -> Project {
    let seed = Project::guarded(name);
    let manifest = fs::read_to_string(seed.path().join("Cargo.toml")).expect("it was written");
    let (_, path) = manifest.split_once("path = '").expect("a dependency by path");
    let (path, _) = path.split_once('\'').expect("it ends");
    let patch = format!("[patch.crates-io]\ncudaguard = {{ path = '{path}' }}\n");
    fs::remove_file(seed.path().join("build.rs")).expect("it was written");
    let seed = seed.file(".git/HEAD", "ref: refs/heads/main\n").file("src/kernels.cu", "");
    equipped(seed.file(".cargo/config.toml", patch).file("Cargo.toml", project::package(name)))
}

const MAIN: &str = "fn main() {}\n";
const WORKFLOW: &str = ".github/workflows/cudaguard.yml";
const MADE: [&str; 3] = ["Cargo.toml", "build.rs", "cudaguard.toml"];

fn read(project: &Project, file: &str) -> String {
    fs::read_to_string(project.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns a call of a command that was installed from this checkout.
fn installed_from_checkout(project: &Project, arguments: &[&str]) -> Call {
    let checkout = places::workspace().display().to_string().replace(' ', "%20");
    record(project, &format!("path+file://{checkout}/cargo-cudaguard"));
    installed(project, arguments)
}

/// Writes cargo's record of installed programs.
fn record(project: &Project, source: &str) {
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("{{\"installs\": {{\"cargo-cudaguard {version} ({source})\": {{}}}}}}");
    scratch::write(&project.sibling().join("root/.crates2.json"), text);
}

/// Returns a call of a command without a known origin: it is outside a checkout and has no install record.
fn installed(project: &Project, arguments: &[&str]) -> Call {
    let command = project.sibling().join("root/bin/cargo-cudaguard");
    if !command.exists() {
        fs::create_dir_all(command.parent().expect("a folder")).expect("a directory can be made");
        fs::hard_link(command::path(), &command).expect("both are in the target directory");
    }
    let call = Call::new(command).args(arguments).dir(project.path()).env("CARGO", crates::cargo());
    with(call.env("CARGO_NET_OFFLINE", "true"), project.sibling(), "12.4")
}

/// Runs `init` twice, the second time without a change, and builds. Returns the output of the first run.
fn init(project: &Project, files: &[&str]) -> String {
    let call = |arguments: &[&str]| installed_from_checkout(project, arguments);
    let printed = call(&["init"]).run().success().stdout;
    let made: Vec<String> = files.iter().map(|file| read(project, file)).collect();
    let again = call(&["init"]).run().success().stdout;
    assert!(!again.contains("wrote ") && !again.contains("added "), "{again}");
    assert_eq!(files.iter().map(|file| read(project, file)).collect::<Vec<_>>(), made, "nothing changes");
    let _ = with(project.cargo(["build"]), project.sibling(), "12.4").run().success();
    printed
}

#[e2e]
fn init_guards_a_program() {
    let project = settled("init-bin").file("src/main.rs", MAIN);
    let printed = init(&project, &MADE);
    assert_eq!(printed.lines().filter(|line| line.starts_with("wrote ")).count(), 2, "{printed}");
    assert_eq!(read(&project, "build.rs"), "fn main() {\n    cudaguard::embed!();\n}\n");
    assert!(read(&project, "Cargo.toml").contains("\n[build-dependencies]\ncudaguard = { path = \""));
    assert!(read(&project, "cudaguard.toml").contains("\n[toolkit]\nrequire = \">=12.4, <13\"\n"));
    assert!(printed.contains("no workflow: the policy requires a CUDA toolkit"), "{printed}");
    assert!(!project.path().join(WORKFLOW).exists(), "a runner of GitHub has no toolkit");
    let notes = cargo_cudaguard::binary::file::Binary::read(&project.built("debug/init-bin")).expect("it was built");
    assert_eq!(notes.manifests().count(), 1, "and is guarded");
    let _ = with(project.cargo(["package", "--offline", "--allow-dirty"]), project.sibling(), "12.4").run().success();
}

/// `cargo publish` rejects `--offline`, so the test uses a registry in a directory and vendored crates. All requests to the
/// network fail.
#[e2e(slow)]
fn guarded_crate_can_be_published() {
    tools::need("git");
    let manifest = project::package("init-publish").replace("publish = false\n", "");
    let project = settled("init-publish").file("Cargo.toml", manifest).file("src/main.rs", MAIN);
    let call = |words: &[&str]| with(project.cargo(words), project.sibling(), "12.4");
    let _ = installed_from_checkout(&project, &["init"]).run().success();
    let index = project.sibling().join("index");
    let config = r#"{"dl": "http://registry.invalid/crates", "api": "http://registry.invalid"}"#;
    scratch::write(&index.join("config.json"), config);
    for words in ["init --quiet", "add config.json", "-c user.name=x -c user.email=x commit --quiet --message=index"] {
        let _ = Call::new("git").args(words.split(' ')).dir(&index).run().success();
    }
    let vendored = project.sibling().join("vendor").display().to_string();
    let _ = call(&["vendor", "--quiet", &vendored]).run().success();
    let from = format!("source.vendored.directory = '{vendored}'");
    let publish = ["publish", "--dry-run", "--registry", "folder", "--allow-dirty"];
    let sources = ["--config", "source.crates-io.replace-with = 'vendored'", "--config", &from];
    let address = format!("file://{}", index.display()).replace(' ', "%20");
    let run = call(&[&publish[..], &sources].concat()).env("CARGO_REGISTRIES_FOLDER_INDEX", address);
    let run = run.env("CARGO_NET_OFFLINE", "false").env("CARGO_HTTP_PROXY", "http://127.0.0.1:1").run().success();
    assert!(run.stderr.contains("Verifying init-publish") && run.stderr.contains("dry run"), "{run}");
}

/// Covers the time before the library is in a registry: the dependency comes from a checkout, which builds, or from a
/// repository that cargo recorded.
#[e2e(slow)]
fn init_works_from_other_directory() {
    let guard_core = places::workspace().join("guard-core").display().to_string();
    let bare = |name: &str| {
        let project = Project::new(name).file(".git/HEAD", "ref: refs/heads/main\n").file("src/main.rs", MAIN);
        equipped(project.file("src/kernels.cu", ""))
    };
    let project = bare("init-path");
    let call = |project: &Project, words: &[&str]| with(project.cudaguard(words), project.sibling(), "12.4").run();
    let wrong = call(&project, &["init", "--path", "src"]).expect(2);
    assert!(wrong.stderr.contains("does not contain the package `cudaguard`"), "{wrong}");
    assert!(!project.path().join("build.rs").exists());
    let _ = call(&project, &["init", "--path", &guard_core]).success();
    let manifest = read(&project, "Cargo.toml");
    assert!(manifest.contains("cudaguard = { path = \"../") && !manifest.contains(&guard_core), "{manifest}");
    assert!(!project.path().join(WORKFLOW).exists(), "the path leads out of the repository");
    let _ = with(project.cargo(["build"]), project.sibling(), "12.4").run().success();
    let notes = cargo_cudaguard::binary::file::Binary::read(&project.built("debug/init-path")).expect("it was built");
    assert_eq!(notes.manifests().count(), 1, "and is guarded");
    let patch = format!("patch.crates-io.cudaguard.path = '{guard_core}'");
    let package = ["package", "--offline", "--no-verify", "--allow-dirty", "--config", &patch];
    let _ = with(project.cargo(package), project.sibling(), "12.4").run().success();
    // By default the dependency comes from the source of the command.
    let project = bare("init-record");
    let printed = installed(&project, &["init"]).run().success().stdout;
    assert!(printed.contains("no registry has cudaguard: run `cargo cudaguard init --path"), "{printed}");
    assert!(!project.path().join("build.rs").exists(), "{printed}");
    let printed = installed_from_checkout(&project, &["init"]).run().success().stdout;
    assert!(printed.contains(", with the path of the checkout that this command was built from\n"), "{printed}");
    let _ = with(project.cargo(["build"]), project.sibling(), "12.4").run().success();
    let notes = cargo_cudaguard::binary::file::Binary::read(&project.built("debug/init-record")).expect("it was built");
    assert_eq!(notes.manifests().count(), 1, "and is guarded");
    fs::remove_file(project.path().join("build.rs")).expect("it was written");
    project.write("Cargo.toml", project::package("init-record"));
    record(&project, "git+https://example.invalid/cudaguard?branch=main#0123456");
    let _ = installed(&project, &["init"]).run().success();
    let written = "cudaguard = { git = \"https://example.invalid/cudaguard\", rev = \"0123456\", version = \"0.1\" }\n";
    assert!(read(&project, "Cargo.toml").ends_with(written));
    // A dependency on a release that no registry has, or on another checkout, is repaired; one with options is reported.
    let other = &format!("{{ path = \"{guard_core}/../guard-core\", version = \"0.1\" }}");
    let with_options = &format!("{{ path = \"{guard_core}/../guard-core\", features = [] }}");
    for (written, answer) in [
        ("\"0.1\"", "changed cudaguard in [build-dependencies]"),
        (other.as_str(), "changed cudaguard in [build-dependencies]"),
        (with_options, "not changed: write `cudaguard = {"),
    ] {
        let project = bare("init-repaired");
        let manifest = format!("{}\n[build-dependencies]\ncudaguard = {written}\n", project::package("init-repaired"));
        project.write("Cargo.toml", &manifest);
        project.write("build.rs", "fn main() {\n    cudaguard::embed!();\n}\n");
        let printed = call(&project, &["init", "--path", &guard_core]).success().stdout;
        assert!(printed.contains(answer), "{printed}");
        let printed = call(&project, &["init", "--path", &guard_core]).success().stdout;
        assert!(written == with_options || !printed.contains("[build-dependencies]"), "{printed}");
        if written == "\"0.1\"" {
            let _ = with(project.cargo(["build"]), project.sibling(), "12.4").run().success();
        }
    }
    let project = bare("init-git");
    let _ = call(&project, &["init", "--git", "https://example.invalid/cudaguard"]).success();
    assert!(
        read(&project, "Cargo.toml")
            .ends_with("cudaguard = { git = \"https://example.invalid/cudaguard\", version = \"0.1\" }\n")
    );
}

/// Unpacks a packaged crate at a path with blanks and non-ASCII characters. Runs `init` in a package with
/// build-dependencies at such a path, and in one with a build script, whose change is applied manually.
#[e2e(slow)]
fn init_works_in_odd_paths() {
    let seed = Project::guarded("init-odd");
    let directory = seed.sibling().join("ein Klon ü");
    let packed =
        ["package", "--package", "cudaguard", "--offline", "--allow-dirty", "--no-verify", "--quiet", "--target-dir"];
    let _ = project::cargo(packed).arg(&directory).dir(places::workspace()).run().success();
    let library = directory.join(concat!("package/cudaguard-", env!("CARGO_PKG_VERSION")));
    let packed = format!("{}.crate", library.display());
    let _ = Call::new("tar").arg("-xf").arg(packed).arg("-C").arg(directory.join("package")).run().success();
    let library = library.to_str().expect("UTF-8");
    let manifest = |name: &str| project::package(name) + "\n[build-dependencies]\ncc = \"1\"\n";
    let call = |project: &Project, words: &[&str]| with(project.cudaguard(words), project.sibling(), "12.4").run();
    let project = equipped(
        Project::in_dir("init-odd", "größer als eins")
            .file("Cargo.toml", manifest("init-odd"))
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file("src/kernels.cu", "")
            .file("src/main.rs", MAIN),
    );
    let _ = call(&project, &["init", "--path", library]).success();
    let made: Vec<String> = MADE.iter().map(|file| read(&project, file)).collect();
    let again = call(&project, &["init", "--path", library]).success();
    assert!(!again.stdout.contains("wrote ") && !again.stdout.contains("added "), "{again}");
    assert_eq!(MADE.iter().map(|file| read(&project, file)).collect::<Vec<_>>(), made, "nothing changes");
    assert!(made[0].ends_with("\", version = \"0.1\" }\ncc = \"1\"\n"), "{}", made[0]);
    assert!(made[2].contains("unguarded = \"deny\""), "{}", made[2]);
    // Both packages use the target directory of the first, which has the compiled library.
    let (target, program) = (project.built(""), project.built("debug/init-odd"));
    let is_guarded = |project: &Project| {
        let call = with(project.cargo(["build"]), project.sibling(), "12.4").env("CARGO_TARGET_DIR", &target);
        let _ = call.run().success();
        let built = cargo_cudaguard::binary::file::Binary::read(&program).expect("it was built");
        assert_eq!(built.manifests().count(), 1, "and is guarded");
    };
    is_guarded(&project);

    let script = "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n";
    let by_hand = equipped(
        Project::in_dir("init-by-hand", "von Hand ü")
            .file("Cargo.toml", manifest("init-odd"))
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file("build.rs", script)
            .file("src/kernels.cu", "")
            .file("src/main.rs", MAIN),
    );
    let printed = call(&by_hand, &["init", "--path", library]).success().stdout;
    let reported =
        printed.lines().find(|line| line.contains("exists, but does not call embed!()")).expect("what to do");
    let quoted: Vec<&str> = reported.split('`').skip(1).step_by(2).collect();
    let [dependency, line] = quoted[..] else { panic!("a dependency and a line of the script: {reported}") };
    by_hand.write("Cargo.toml", read(&by_hand, "Cargo.toml") + dependency + "\n");
    by_hand.write("build.rs", script.replace("\n}\n", &format!("\n    {line}\n}}\n")));
    is_guarded(&by_hand);
}

#[e2e]
fn init_guards_library_with_program() {
    let project = settled("init-both").file("src/main.rs", MAIN).file("src/lib.rs", "pub fn one() {}\n");
    let _ = init(&project, &MADE);
}

#[e2e]
fn init_guards_a_member() {
    let member = "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let project = settled("init-member")
        .file("Cargo.toml", "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n")
        .file("member/Cargo.toml", member)
        .file("member/src/kernels.cu", "")
        .file("member/src/main.rs", MAIN);
    let files = ["member/Cargo.toml", "member/build.rs", "cudaguard.toml"];
    let _ = init(&project, &files);
    assert_eq!(read(&project, "Cargo.toml"), "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n");
}

/// Returns the lines of the workflow without comments.
fn lines(workflow: &str) -> Vec<&str> {
    workflow.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect()
}

/// GitHub only reads workflows at the top of the repository, and each project in a repository gets its own. With a path
/// outside the repository there is no workflow.
const URL: &str = "https://example.com/cudaguard";

#[e2e]
fn init_works_below_repository_root() {
    let manifest = project::package("app");
    let tree = Tree::new(
        "init-below",
        &[
            ("native/the app/Cargo.toml", &manifest),
            ("native/the app/src/main.rs", MAIN),
            ("native/the app/src/kernels.cu", ""),
            ("c/CMakeLists.txt", "project(demo LANGUAGES C)\nadd_executable(demo main.c)\n"),
            // `.git` is a file in a worktree or a submodule.
            ("module/.git", "gitdir: ../.git/modules/module\n"),
            ("module/app/Cargo.toml", &manifest),
            ("module/app/src/main.rs", MAIN),
            ("module/app/src/kernels.cu", ""),
        ],
    );
    for (dir, arguments, file, title) in [
        (
            "native/the app",
            &["init", "--git", URL][..],
            ".github/workflows/cudaguard-native-the-app.yml",
            "native/the app",
        ),
        ("c", &["init", "--cmake", "--git", URL], ".github/workflows/cudaguard-c.yml", "c"),
        ("module/app", &["init", "--git", URL], "module/.github/workflows/cudaguard-app.yml", "app"),
    ] {
        let init = || tree.call("none", arguments).dir(tree.sibling().join("tree").join(dir)).run().success().stdout;
        let printed = init();
        let path = tree.sibling().join("tree").join(file);
        assert!(printed.contains(&format!("wrote {}\n", path.display())), "{printed}");
        let workflow = tree.read(file);
        let lines = lines(&workflow);
        assert!(lines.contains(&format!("name: \"cudaguard {title}\"").as_str()), "{workflow}");
        assert!(
            lines.contains(&format!("- run: cargo install --locked --git {URL} cargo-cudaguard").as_str()),
            "{workflow}"
        );
        let defaults =
            lines.iter().position(|line| *line == "defaults:").expect("steps run in the project's directory");
        assert_eq!(lines[defaults + 1..defaults + 3], ["run:", &format!("working-directory: \"{title}\"")]);
        assert!(!tree.sibling().join("tree").join(dir).join(".github").exists());
        assert!(!init().contains("wrote "));
        assert_eq!(tree.read(file), workflow, "nothing changes");
    }
}

/// GitHub's runners have no toolkit, so a job would fail.
#[e2e]
fn workflow_is_omitted_if_toolkit_required() {
    for (policy, requires) in [("", false), ("[toolkit]\nrequire = \">=12\"\n", true)] {
        let tree = Tree::package("init-waits");
        tree.write("cudaguard.toml", policy);
        tree.write("build.rs", "fn main() {\n    println!(\"cargo:rustc-link-lib=cudart\");\n}\n");
        let printed = tree.call("12.4", &["init", "--git", URL]).run().success().stdout;
        let written = tree.sibling().join("tree").join(WORKFLOW).exists();
        assert_eq!((written, printed.contains("no workflow: the policy requires")), (!requires, requires), "{printed}");
        // Runs the command of such a job.
        let runner = tree.call("none", &["check", "--workspace", "--release"]).run();
        let _ = runner.expect(i32::from(requires));
    }
}

/// The machine has a cuDNN. A program that does not use it must also build where there is none.
#[e2e]
fn policy_requires_cudnn_that_is_used() {
    let cudnn = Scratch::new("init-cudnn");
    fake_library::cudnn(cudnn.path(), (9, 15, 1));
    for (script, requires) in [("cudart", false), ("cudnn", true)] {
        let tree = Tree::package("init-used");
        tree.write("build.rs", &format!("fn main() {{\n    println!(\"cargo:rustc-link-lib={script}\");\n}}\n"));
        let call = tree.call("12.4", &["init", "--git", URL]).env("CUDNN_PATH", cudnn.path());
        let printed = call.run().success().stdout;
        assert_eq!(tree.read("cudaguard.toml").contains("[cudnn]\nrequire = \"^9.15\""), requires, "{printed}");
    }
}

#[e2e]
fn packages_without_cuda_are_skipped() {
    let member = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let tree = Tree::new(
        "init-some",
        &[
            ("Cargo.toml", "[workspace]\nmembers = [\"plain\", \"kernels\", \"script\", \"user\"]\nresolver = \"2\"\n"),
            ("plain/Cargo.toml", &member("plain")),
            ("plain/src/main.rs", MAIN),
            ("kernels/Cargo.toml", &member("kernels")),
            ("kernels/src/main.rs", MAIN),
            ("kernels/cuda/deep/a.cu", ""),
            ("script/Cargo.toml", &member("script")),
            ("script/src/main.rs", MAIN),
            ("script/src/lib.rs", ""),
            ("user/Cargo.toml", &(member("user") + "[dependencies]\nscript = { path = \"../script\" }\n")),
            ("user/src/main.rs", MAIN),
            ("script/build.rs", "fn main() {\n    println!(\"cargo:rustc-link-lib=cudart\");\n}\n"),
        ],
    );
    let files = ["plain/build.rs", "kernels/build.rs", "user/build.rs", "cudaguard.toml"];
    let there = || files.map(|file| tree.sibling().join("tree").join(file).exists());
    let planned = tree.call("none", &["init", "--dry-run"]).run().success().stdout;
    assert!(planned.contains("would write ") && planned.contains("would add cudaguard to "), "{planned}");
    assert_eq!(there(), [false; 4], "a dry run writes nothing: {planned}");
    let printed = tree.call("12.4", &["init"]).run().success().stdout;
    assert_eq!(there(), [false, true, true, true], "{printed}");
    let again = tree.call("12.4", &["init"]).run().success().stdout;
    assert_eq!(there(), [false, true, true, true], "the policy of the workspace guards no further member: {again}");
    assert!(
        printed.contains("plain/Cargo.toml: it has no CUDA source file") && printed.contains("add `-p plain`"),
        "{printed}"
    );
    assert!(printed.contains("script/build.rs: exists, but does not call embed!()"), "{printed}");
    let _ = tree.call("none", &["init", "-p", "plain"]).run().success();
    assert_eq!(there(), [true; 4]);
}

/// A policy would make a package without CUDA use CUDA for the second call.
#[e2e]
fn init_writes_nothing_without_cuda() {
    let tree = Tree::new("init-none", &[("Cargo.toml", &*project::package("plain")), ("src/main.rs", MAIN)]);
    for _ in 0..2 {
        let printed = tree.call("12.4", &["init"]).run().success().stdout;
        assert!(printed.lines().count() == 1 && printed.contains("it has no CUDA source file"), "{printed}");
    }
    // Crates that cannot be read are no evidence that there are none.
    tree.write("Cargo.toml", &format!("{}[dependencies]\nno-such-crate = \"1\"\n", project::package("plain")));
    let printed = tree.call("12.4", &["init"]).run().expect(2);
    assert!(printed.stdout.contains("its crates are not known"), "{printed}");
    assert!(printed.stderr.contains("the dependencies cannot be checked: "), "{printed}");
    assert!(!tree.sibling().join("tree/cudaguard.toml").exists());
}

/// A build script in a proc-macro package would warn in each build that it has no guard.
#[e2e]
fn init_skips_proc_macros() {
    let member = |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let macros = member("macros") + "[lib]\nproc-macro = true\n";
    let tree = Tree::new(
        "init-macros",
        &[
            ("Cargo.toml", "[workspace]\nmembers = [\"app\", \"macros\"]\nresolver = \"2\"\n"),
            ("app/Cargo.toml", &member("app")),
            ("app/src/main.rs", MAIN),
            ("app/src/kernels.cu", ""),
            ("macros/Cargo.toml", &macros),
            ("macros/src/lib.rs", ""),
        ],
    );
    let printed = tree.call("12.4", &["init"]).run().success().stdout;
    assert!(
        printed.contains("macros/Cargo.toml: it has no CUDA source file, build script or known crate"),
        "{printed}"
    );
    assert_eq!(tree.read("macros/Cargo.toml"), macros);
    assert!(tree.read("app/Cargo.toml").contains("\ncudaguard = "), "{printed}");
    assert!(!tree.sibling().join("tree/macros/build.rs").exists());
}

#[e2e]
fn init_extends_build_script() {
    let script = "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n";
    let project = settled("init-script").file("src/main.rs", MAIN).file("build.rs", script);
    let printed = init(&project, &MADE);
    assert!(printed.contains("build.rs: exists, but does not call embed!(): add `cudaguard = { path = "), "{printed}");
    assert!(printed.contains(" add `cudaguard::embed!();` to its main\n"), "{printed}");
    assert!(!read(&project, "Cargo.toml").contains("cudaguard ="), "nothing is half done");
    assert_eq!(read(&project, "build.rs"), script);
}

#[e2e]
fn init_keeps_existing_policy() {
    let policy = "[build]\ndev = \"warn\"\n";
    let project = settled("init-policy").file("src/main.rs", MAIN).file("cudaguard.toml", policy);
    let printed = init(&project, &MADE);
    assert!(printed.contains("kept "), "{printed}");
    assert_eq!(read(&project, "cudaguard.toml"), policy);
}

/// The only target of the project gets a guard, and the project builds.
#[e2e]
fn init_guards_cmake_project() {
    let lists = "cmake_minimum_required(VERSION 3.24)\nproject(demo LANGUAGES C)\nadd_executable(demo main.c)\n";
    let tree = Tree::new("init-cmake", &[("CMakeLists.txt", lists), ("main.c", "int main(void) { return 0; }\n")]);
    let init = || tree.call("12.4", &["init", "--cmake", "--git", URL]).run().success().stdout;
    let printed = init();
    let files = ["CMakeLists.txt", "cudaguard.toml", ".github/workflows/cudaguard.yml"];
    let made = files.map(|file| tree.read(file));
    assert_eq!(made[0], format!("{lists}\nfind_package(CudaGuard REQUIRED)\ncudaguard_embed(demo)\n"));
    assert!(made[1].contains("\n# [toolkit]\n"), "a project of C asks for no toolkit: {}", made[1]);
    assert!(made[2].contains("cmake install --prefix"), "{}", made[2]);
    assert_eq!(printed.lines().filter(|line| line.starts_with("wrote ")).count(), 2, "{printed}");
    let again = init();
    assert!(!again.contains("wrote ") && !again.contains("added "), "{again}");
    assert_eq!(files.map(|file| tree.read(file)), made, "nothing changes");

    let build = |arguments: &[&str]| {
        let cmake = parts::program("cmake-3.24", "cmake");
        let call = Call::new(cmake).args(arguments).dir(tree.sibling().join("tree"));
        let _ = with(call, tree.sibling(), "12.4").run().success();
    };
    let package = format!("-DCudaGuard_DIR={}", places::workspace().join("cmake").display());
    let command = format!("-DCUDAGUARD_COMMAND={}", command::path().display());
    let make = format!("-DCMAKE_MAKE_PROGRAM={}", parts::program("make", "make").display());
    build(&["-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", &make, &package, &command]);
    build(&["--build", "build"]);
    let program = tree.sibling().join("tree/build/demo");
    let notes = cargo_cudaguard::binary::file::Binary::read(&program).expect("it was built");
    assert_eq!(notes.manifests().count(), 1, "and is guarded");
}

/// If only the user can decide which target to guard, `init` prints this and changes nothing.
#[e2e(slow)]
fn init_asks_for_cmake_target() {
    let lists = "project(demo LANGUAGES C)\nadd_executable(app main.c)\nadd_executable(tool main.c)\n";
    let tree = Tree::new("init-cmake-several", &[("CMakeLists.txt", lists)]);
    let printed = tree.call("12.4", &["init", "--cmake"]).run().success().stdout;
    assert!(
        printed.contains("add these lines after the targets that you ship:\n    find_package(CudaGuard REQUIRED)\n"),
        "{printed}"
    );
    assert!(printed.contains("    cudaguard_embed(app)\n    cudaguard_embed(tool)\n"), "{printed}");
    assert_eq!(tree.read("CMakeLists.txt"), lists);
    let elsewhere = tree.call("12.4", &["init", "--cmake"]).dir(tree.sibling()).run().expect(2);
    assert!(
        elsewhere.stderr.contains("CMakeLists.txt: was not found: run this command in the directory"),
        "{elsewhere}"
    );
}

#[e2e]
fn init_without_cuda_is_refused() {
    let project = settled("init-plain").file("src/main.rs", MAIN);
    let plain = |arguments: &[&str]| with(project.cudaguard(arguments), project.sibling(), "none");
    let _ = plain(&["init"]).run().success();
    let policy = read(&project, "cudaguard.toml");
    assert!(policy.contains("# No CUDA toolkit was in use when this was written.\n# [toolkit]\n"), "{policy}");
    let _ = with(project.cargo(["build", "--release"]), project.sibling(), "none").run().success();
}
