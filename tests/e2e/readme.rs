//! Worked examples of the book: the tests write their files into an empty directory and run their commands.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Outcome, Scratch, command, crates, crates::cargo, e2e, parts, places, scratch, tools};

/// Section of a page.
struct Section {
    /// Name and contents of each block that begins with a file name in a comment.
    files: Vec<(String, String)>,
    /// Commands, with the output lines that the page shows.
    commands: Vec<(String, Vec<String>)>,
}

fn section(page: &str, title: &str) -> Section {
    let readme = fs::read_to_string(places::workspace().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (_, behind) = readme.split_once(&format!("\n## {title}\n")).expect("a section of this name");
    let text = behind.split("\n## ").next().unwrap_or_default();
    let mut section = Section { files: Vec::new(), commands: Vec::new() };
    for block in text.split("\n```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').expect("a block has lines");
        if language == "console" {
            for line in body.lines() {
                match (line.strip_prefix("$ "), section.commands.last_mut()) {
                    (Some(command), _) => section.commands.push((command.to_owned(), Vec::new())),
                    (None, Some((_, shown))) => shown.push(line.to_owned()),
                    (None, None) => panic!("{title}: output before a command: {line}"),
                }
            }
        } else if let Some((first, rest)) = body.split_once('\n') {
            let name = first.trim_start_matches(['#', '/', ' ']);
            section.files.push((name.to_owned(), format!("{rest}\n")));
        }
    }
    assert!(!section.files.is_empty() && !section.commands.is_empty(), "{title}: nothing to type");
    section
}

impl Section {
    /// Writes the files, with values from `given` in place of the reader's own.
    fn write(&self, dir: &Path, given: &[(&str, &str)]) {
        for (name, text) in &self.files {
            let text = given.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to));
            scratch::write(&dir.join(name), text);
        }
    }

    /// Asserts that the directory `templates/examples/NAME` has exactly these files.
    fn assert_is_example(&self, name: &str) {
        let dir = places::workspace().join("templates/examples").join(name);
        for (file, text) in &self.files {
            let example = fs::read_to_string(dir.join(file)).unwrap_or_else(|error| panic!("{name}/{file}: {error}"));
            assert_eq!(&example, text, "{name}/{file} and the page differ");
        }
    }

    /// Runs the commands and checks that they print the shown lines.
    fn typed(&self, dir: &Path, with: impl Fn(Call) -> Call) {
        for (line, shown) in &self.commands {
            let word = |word: &str| word.replace('"', "").replace("$PWD", &dir.display().to_string());
            let mut words: Vec<String> = line.split(' ').map(word).collect();
            let call = if line.starts_with("cargo cudaguard ") {
                command::call(words.split_off(2))
            } else {
                let program = words.remove(0);
                Call::new(program).args(words)
            };
            let outcome = with(call).dir(dir).run();
            let refused = shown.iter().any(|line| line.starts_with("error["));
            assert_eq!(outcome.status(), Some(i32::from(refused)), "{line}\n{outcome}");
            let printed = text(&outcome);
            for wanted in shown {
                assert!(
                    printed.lines().any(|line| line == wanted),
                    "{line}\nis said to print\n{wanted}\nand prints\n{printed}"
                );
            }
        }
    }
}

fn text(outcome: &Outcome) -> String {
    format!("{}{}", outcome.stderr, outcome.stdout)
}

#[e2e(slow)]
fn readme_rust_program_works() {
    tools::need_all(&["g++"]);
    let section = section("docs/start/rust.md", "Embed the guard with plain cargo");
    section.assert_is_example("cudarc");
    let scratch = Scratch::without_blanks("readme");
    let dir = scratch.join("my-model");
    let library = places::workspace().join("guard-core").display().to_string();
    section.write(&dir, &[("../cudaguard/guard-core", &library), ("version = \"0.19\"", "version = \"=0.19.10\"")]);
    crates::settle(&dir);
    let path = parts::path(&["cuda-13.0"]);
    // cudarc compiles faster without optimization.
    section.typed(&dir, |call| call.env("PATH", &path).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"));
}

#[e2e(slow)]
fn readme_cmake_project_works() {
    tools::need_all(&["g++"]);
    let section = section("docs/start/cmake.md", "Guard a target");
    section.assert_is_example("cmake");
    let scratch = Scratch::without_blanks("readme");
    let dir = scratch.join("my-model");
    section.write(&dir, &[]);
    let mut path = parts::path(&["cmake-3.24", "make", "cuda-13.0"]);
    path.push(":");
    path.push(command::path().parent().expect("a folder"));
    section.typed(&dir, |call| call.env("PATH", &path));
}

/// Copies an example into a scratch directory.
fn example(name: &str) -> (Scratch, PathBuf) {
    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).expect("a directory of an example").flatten() {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            if from.is_dir() {
                copy(&from, &to);
            } else {
                scratch::write(&to, fs::read(&from).expect("a file of an example"));
            }
        }
    }
    let scratch = Scratch::without_blanks("example");
    let dir = scratch.join("my-model");
    copy(&places::workspace().join("templates/examples").join(name), &dir);
    (scratch, dir)
}

#[e2e(slow)]
fn candle_example_is_guarded() {
    tools::need_all(&["g++"]);
    let (_scratch, dir) = example("candle");
    let manifest = dir.join("app/Cargo.toml");
    let old = fs::read_to_string(&manifest).expect("a manifest");
    scratch::write(&manifest, old.replace("version = \"0.19\"", "version = \"=0.19.10\""));
    crates::settle(&dir);
    let path = parts::path(&["cuda-13.0"]);
    let call = command::call(["build", "--release"]).dir(&dir).env("PATH", &path);
    let _ = call.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").run().success();
    let verify = |driver| {
        command::call(["verify", "target/release/my-model", "--driver", driver, "--gpu", "A100,H100"]).dir(&dir).run()
    };
    let runs = verify("580.95.05").success();
    assert!(runs.stdout.contains("H100 (9.0): JIT, compute_80"), "{runs}");
    let refused = verify("535.261.03").expect(1);
    assert!(text(&refused).contains("CG302"), "{refused}");
}

#[e2e(slow)]
fn scikit_build_core_example_is_guarded() {
    tools::need_all(&["gcc", "python3"]);
    let (scratch, directory) = example("scikit-build-core");
    let module = places::workspace().join("cargo-cudaguard/python");
    let mut search = parts::part("scikit-build-core").join("lib").into_os_string();
    search.push(":");
    search.push(&module);
    let wheels = scratch.join("wheels");
    let pip = ["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-index", "--no-deps", "--wheel-dir"];
    let call = Call::new("python3").args(pip).arg(&wheels).arg(".").dir(&directory);
    let mut path = parts::path(&["cmake-3.24", "ninja"]);
    path.push(":");
    path.push(command::path().parent().expect("a directory"));
    let call = call.env("PATH", path).env("PYTHONPATH", search);
    let _ = call.env("CudaGuard_DIR", places::workspace().join("cmake")).run().success();
    let wheel = fs::read_dir(&wheels).expect("the wheel").flatten().next().expect("one file").path();
    let shown = command::call(["inspect"]).arg(&wheel).run().success();
    assert!(shown.stdout.contains("\n    guarded\n"), "{shown}");
}

/// Returns the commands on a page: lines of code blocks, and inline code that calls the command.
fn commands(page: &str) -> Vec<String> {
    let is_command =
        |text: &&str| text.starts_with("cargo cudaguard ") || text.starts_with("eval \"$(cargo cudaguard ");
    let lines = page.lines().map(|line| line.trim_start_matches(['$', ' ']));
    let lines = lines.filter(is_command).map(|line| line.split("  #").next().unwrap_or(line));
    // A part of a command line is not a separate command.
    let inline = page.lines().filter(|line| !is_command(&line.trim_start_matches(['$', ' '])));
    let inline = inline.flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_command);
    lines.chain(inline).map(|line| line.trim().to_owned()).filter(|line| !line.contains("...")).collect()
}

/// Checks that the subcommand of each command from README and docs exists and accepts the arguments. Cargo and the shell check
/// the commands that they parse: these run in a package, with a built program for each file that they name.
#[e2e(slow)]
fn documented_commands_are_valid() {
    tools::need_all(&["gcc"]);
    let scratch = Scratch::without_blanks("pages");
    let (dir, home) = (scratch.join("my-model"), scratch.join("home"));
    let manifest = "[package]\nname = \"my-model\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    scratch::write(&dir.join("Cargo.toml"), manifest);
    scratch::write(&dir.join("src/main.rs"), "fn main() {}\n");
    // Creates a separate repository, because `init` writes to the top of the enclosing one.
    scratch::write(&dir.join(".git/HEAD"), "ref: refs/heads/main\n");
    scratch::write(&home.join(".zfunc/there"), "");
    scratch::write(&home.join(".local/share/man/man1/there"), "");
    scratch::write(&home.join(".local/share/bash-completion/completions/there"), "");
    scratch::write(&home.join(".config/fish/conf.d/there"), "");
    let mut path = command::path().parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    // The home directory is the reader's; cargo's and rustup's directories stay unchanged.
    let own = std::env::var_os("HOME").unwrap_or_default();
    let kept =
        |name: &str, dir: &str| std::env::var_os(name).unwrap_or_else(|| Path::new(&own).join(dir).into_os_string());
    let typed = |line: &str| {
        let call = Call::new("sh").args(["-c", line]).dir(&dir).env("PATH", &path).env("HOME", &home);
        let call =
            call.env("CARGO_HOME", kept("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup"));
        call.env("CARGO", cargo()).env("CARGO_NET_OFFLINE", "true").run()
    };
    let _ = typed("cargo cudaguard build --release").success();
    let program = "target/release/my-model";
    for name in ["my-model", "program", "my-program"] {
        fs::copy(dir.join(program), dir.join(name)).expect("a program");
    }
    let _ = typed("cargo cudaguard probe --json > gpu-7.json").success();
    let host = fs::read_to_string(dir.join("gpu-7.json")).expect("a host file");
    let host: String = host.split_whitespace().collect();
    scratch::write(&dir.join("hosts.jsonl"), host + "\n");
    for name in ["training.log", "LOG"] {
        scratch::write(&dir.join(name), "CUDA error: no kernel image is available for execution on the device\n");
    }
    let mut pages = vec!["README.md".into(), "cmake/README.md".into(), "cargo-cudaguard/README.md".into()];
    pages_below(Path::new("docs"), &mut pages);
    let mut seen = std::collections::BTreeSet::new();
    for page in &pages {
        let text = fs::read_to_string(places::workspace().join(page)).expect("a page");
        let page = page.display();
        for line in commands(&text) {
            // The examples of the help have a description after the command.
            let line = line.split("   ").next().unwrap_or_default().to_owned();
            // Third-party programs may be missing here.
            let needs_more = ["nextest", "maturin", "<TAB>"].iter().any(|word| line.contains(word));
            if needs_more || !seen.insert(line.clone()) {
                continue;
            }
            let words: Vec<&str> = line.split(' ').skip(2).collect();
            let is_parsed_by_others = line.contains(['|', '<', '>', '&', '$', '"', '\''])
                || ["build", "install", "run", "test", "--"].contains(&words[0]);
            if !is_parsed_by_others {
                let error = cargo_cudaguard::usage_error(&words);
                assert!(error.as_deref().is_none_or(is_incomplete), "{page}: {line}: {error:?}");
                continue;
            }
            let here =
                line.split(' ').map(|word| if ["PROGRAM", "FILE", "BIN"].contains(&word) { program } else { word });
            let outcome = typed(&here.collect::<Vec<_>>().join(" "));
            let text_printed = text_of_usage(&outcome);
            assert!(text_printed.is_none(), "{page}: {line}: {outcome}");
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
}

/// Collects all pages in a directory of the repository and below it.
fn pages_below(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(places::workspace().join(directory)).expect("a directory").flatten() {
        let path = directory.join(entry.file_name());
        if entry.path().is_dir() {
            pages_below(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

/// Returns the error message for unknown arguments. If a page only mentions a subcommand or an option, its arguments are
/// missing, which is ignored.
fn text_of_usage(outcome: &Outcome) -> Option<&str> {
    let asks = |line: &&str| line.contains("For more information, try") || line.starts_with("sh: ");
    outcome.stderr.lines().find(asks).filter(|_| !is_incomplete(&outcome.stderr))
}

/// Returns true if arguments are missing in a command that a page only mentions.
fn is_incomplete(error: &str) -> bool {
    ["a value is required for", "required arguments were not provided"].iter().any(|text| error.contains(text))
}

/// Each packaged crate contains licences, and all files that its README and its sources name.
#[e2e(slow)]
fn packages_contain_listed_files() {
    for (package, dir) in [("cudaguard", "guard-core"), ("cargo-cudaguard", "cargo-cudaguard")] {
        let call = Call::new(cargo()).args(["package", "--list", "--offline", "--allow-dirty", "-p", package]);
        let listed = call.dir(places::workspace()).run().success().stdout;
        let holds = |name: &str| listed.lines().any(|line| line == name || line.starts_with(&format!("{name}/")));
        assert!(holds("LICENSE-MIT") && holds("LICENSE-APACHE") && holds("README.md"), "{package}: {listed}");
        let readme = fs::read_to_string(places::workspace().join(dir).join("README.md")).expect("its README");
        let links = readme.split("](").skip(1).filter_map(|behind| behind.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            assert!(holds(link), "{package}: its README links to {link}, which the package does not contain");
        }
        let sources = listed.lines().filter(|name| name.ends_with(".rs"));
        for name in sources {
            let path = places::workspace().join(dir).join(name);
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for (_, behind) in text.match_indices("include_str!(\"").map(|(at, call)| text.split_at(at + call.len())) {
                let named = behind.split('"').next().unwrap_or_default();
                let file = path.parent().expect("a folder").join(named).canonicalize();
                let file = file.unwrap_or_else(|error| panic!("{name}: {named}: {error}"));
                let top = places::workspace().join(dir).canonicalize().expect("a folder");
                let within = file.strip_prefix(&top).or_else(|_| file.strip_prefix(places::workspace()));
                let within = within.expect("a file of the repository").display().to_string();
                assert!(holds(&within), "{package}: {name} takes in {within}, which the package does not hold");
            }
        }
    }
}
