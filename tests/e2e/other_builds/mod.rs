//! Build systems other than cargo and CMake: the tests run the code of docs/start/other-build-systems.md.

mod bazel;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use cudaguard_tests::{Call, Outcome, Scratch, command, e2e, parts, places, scratch, tools};

use crate::cmake::fixture::{manifest, texts};

pub(crate) const MAIN: &str = "#include <stdio.h>\nvoid run(int *p);\nint main(int n, char **a) {\n  (void)a;\n  if (n > 9) run(0);\n  \
                    puts(\"main ran\");\n  return 0;\n}\n";
pub(crate) const KERNELS: &str =
    "__global__ void k(int *p) { p[threadIdx.x] = 1; }\nextern \"C\" void run(int *p) { k<<<1, 1>>>(p); }\n";

/// Returns the page's code blocks of this language, in page order; `""` selects the indented ones.
fn blocks(language: &str) -> Vec<String> {
    let page = fs::read_to_string(places::workspace().join("docs/start/other-build-systems.md")).expect("the page");
    let mut blocks: Vec<String> = Vec::new();
    let (mut fence, mut inside) = (None, false);
    for line in page.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(_), Some(_)) => fence = None,
            (Some(name), None) => {
                fence = Some(name);
                blocks.extend((name == language).then(String::new));
            }
            (None, Some(name)) if name == language => {
                let block = blocks.last_mut().expect("one has begun");
                block.push_str(line);
                block.push('\n');
            }
            (None, None) if language.is_empty() && line.starts_with("    ") => {
                if !inside {
                    blocks.push(String::new());
                }
                let block = blocks.last_mut().expect("one has begun");
                block.push_str(line.trim_start());
                block.push('\n');
            }
            _ => {}
        }
        inside = fence.is_none() && line.starts_with("    ");
    }
    blocks
}

/// Project with a C program and a kernel. The commands of the page find the files that they name.
pub(crate) struct Project(Scratch);

impl Project {
    fn new() -> Self {
        Self::below(Scratch::new("other build ü"))
    }

    fn below(scratch: Scratch) -> Self {
        tools::need_all(&["gcc", "g++"]);
        let project = Self(scratch);
        project.write("main.c", MAIN);
        project.write("kernels.cu", KERNELS);
        project
    }

    /// Creates a project with the page's file for a build system, with these replacements.
    pub(crate) fn of_page(language: &str, file: &str, changes: &[(&str, &str)]) -> Self {
        let [text] = &blocks(language)[..] else { panic!("one {file}") };
        let mut text = text.clone();
        for (words, others) in changes {
            assert!(text.contains(words), "{file} says {words}");
            text = text.replace(words, others);
        }
        let project = Self::new();
        project.write(file, &text);
        project
    }

    pub(crate) fn make(&self) -> Outcome {
        let variable = format!("CUDA='{}'", parts::cuda("13.0").display());
        self.call(parts::program("make", "make")).arg(variable).run()
    }

    /// Configures with this build type and compiles. Returns both results.
    pub(crate) fn meson(&self, kind: &str) -> [Outcome; 2] {
        let call = |words: &[&str]| self.call(parts::program("meson", "meson")).args(words).run().success();
        [call(&["setup", "build", "--buildtype", kind]), call(&["compile", "-C", "build"])]
    }

    fn write(&self, file: &str, text: &str) {
        scratch::write(&self.0.join("source").join(file), text);
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join("source").join(file)
    }

    /// Returns a call in the project's directory, with the command, nvcc, make, ninja and meson in `PATH`.
    fn call(&self, program: impl AsRef<std::ffi::OsStr>) -> Call {
        Call::new(program).env("PATH", self.search_path()).dir(self.0.join("source"))
    }

    fn search_path(&self) -> OsString {
        let tools = self.0.join("bin");
        if !tools.exists() {
            fs::create_dir_all(&tools).expect("a directory can be made");
            std::os::unix::fs::symlink(command::path(), tools.join("cargo-cudaguard")).expect("a link can be made");
        }
        let mut path: OsString = tools.into_os_string();
        path.push(":");
        path.push(parts::path(&["make", "ninja", "cuda-13.0"]));
        path
    }

    fn shell(&self, line: &str) -> Outcome {
        self.call("sh").args(["-ec", line]).run()
    }

    /// Compiles the objects of the program.
    fn compiled(&self) -> &Self {
        let _ = self.shell("gcc -c main.c && nvcc -arch=sm_80 -c kernels.cu").success();
        self
    }

    /// Runs `embed` with the options of the program's build, and these arguments.
    fn embed(&self, words: &str) -> Outcome {
        self.shell(&format!(
            "cargo-cudaguard embed --name my-model --version 1.2.0 --nvcc nvcc --nvcc-flags -arch=sm_80 {words}"
        ))
    }
}

/// Checks that a file is guarded and sealed, and starts.
fn is_whole(project: &Project, file: &str) {
    let (file, name) = (project.path(file), "my-model");
    let found = manifest(&file, name);
    assert_eq!(found["component"]["version"], "1.2.0", "{found:#}");
    assert_eq!(texts(&found["archs"]["observed"]).first(), Some(&"sm_80"), "{found:#}");
    assert_eq!(found["archs"]["known"], "observed", "{found:#}");
    let toolkit = found["toolkit"]["version"].as_str();
    assert!(toolkit.is_some_and(|version| version.starts_with("13.0.")), "{found:#}");
    let started = Call::new(&file).run().success();
    assert_eq!((started.stdout.as_str(), started.stderr.as_str()), ("main ran\n", ""));
}

#[e2e(slow)]
fn make_builds_guarded_program() {
    let project = Project::of_page("make", "Makefile", &[]);
    let first = project.make().success();
    assert!(!first.stderr.contains("cudaguard"), "{first}");
    is_whole(&project, "my-model");
    let again = project.make().success();
    assert_eq!(again.stdout, "", "{again}");
    project.write("cudaguard.toml", "gpu.fleet = [\"T4\"]\n");
    let refused = project.make();
    assert_ne!(refused.status(), Some(0), "{refused}");
    assert!(refused.stderr.contains("error[CG130]") && refused.stderr.contains("T4"), "{refused}");
    assert!(!project.path("my-model").exists(), "no build tool takes it for one that was accepted");
    project.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\n");
    let mended = project.make().success();
    assert!(mended.stdout.contains("cargo-cudaguard seal"), "a changed policy is applied: {mended}");
    is_whole(&project, "my-model");
}

#[e2e(slow)]
fn meson_builds_guarded_program() {
    let project = Project::of_page("meson", "meson.build", &[]);
    let [configured, built] = project.meson("debug");
    assert!(configured.stdout.contains("cargo-cudaguard found: YES"), "{configured}");
    assert!(!format!("{built}").contains("warning["), "{built}");
    is_whole(&project, "build/my-model");
    let again = project.call("ninja").args(["-C", "build"]).run().success();
    assert!(!again.stdout.contains("Linking"), "{again}");
    let prefix = project.0.join("installed");
    let meson = parts::program("meson", "meson");
    let install = project.call(meson).args(["install", "-C", "build"]).env("DESTDIR", &prefix).run().success();
    let installed = prefix.join("usr/local/bin/my-model");
    assert_eq!(fs::read(installed).ok(), fs::read(project.path("build/my-model")).ok(), "{install}");
}

#[e2e(slow)]
fn documented_commands_build_guarded_program() {
    let project = Project::new();
    let [commands] = &blocks("")[..] else { panic!("the three commands are in one block") };
    assert_eq!(commands.lines().count(), 3);
    let lib = parts::cuda("13.0").join("lib64");
    let commands =
        commands.replace("-lcudart", &format!("-L'{}' -lcudart_static -lstdc++ -ldl -lrt -lpthread", lib.display()));
    let printed = project.compiled().shell(&commands).success();
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("", ""));
    is_whole(&project, "my-model");
}

/// The guard is in a shared library (a plugin, an extension module), which loads without output.
#[e2e]
fn shared_library_is_guarded() {
    let project = Project::new();
    project.write("part.c", "int part(void) { return 7; }\n");
    let python = tools::need("python3");
    let _ = project.embed("-o guard.o").success();
    let printed = project
        .shell("gcc -fPIC -c part.c && gcc -shared -o libpart.so part.o guard.o && cargo-cudaguard seal libpart.so part.o guard.o")
        .success();
    assert_eq!(printed.stderr, "");
    assert_eq!(manifest(&project.path("libpart.so"), "my-model")["sealed"], true);
    let script = "import ctypes; print(ctypes.CDLL('./libpart.so').part())";
    let loaded = project.call(&python).args(["-c", script]).run().success();
    assert_eq!((loaded.stdout.as_str(), loaded.stderr.as_str()), ("7\n", ""));
}

/// Options of all subcommands.
const GLOBAL: [&str; 4] = ["--color", "--help", "--quiet", "--verbose"];

/// The page lists all options, and no others.
#[e2e(slow)]
fn embed_options_are_applied() {
    let page = fs::read_to_string(places::workspace().join("docs/start/other-build-systems.md")).expect("the page");
    let options = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        let mut found: Vec<String> = words
            .filter(|word| word.starts_with("--") && !word.starts_with("---") && word.len() > 2)
            .map(str::to_owned)
            .collect();
        found.sort();
        found.dedup();
        found
    };
    let mut known =
        vec!["--output".to_owned(), "--include".to_owned(), "--library-dir".to_owned(), "--help".to_owned()];
    for verb in ["embed", "seal"] {
        known.extend(options(&command::call([verb, "--help"]).run().success().stdout));
    }
    let table: String =
        page.lines().filter(|line| line.starts_with('|')).map(|line| line.replace("-o ", "--output ")).collect();
    let table = table.replace("-I ", "--include ").replace("-L ", "--library-dir ");
    for option in options(&page) {
        assert!(known.contains(&option), "{option}: neither verb has it");
    }
    let help = command::call(["embed", "--help"]).run().success().stdout;
    for option in options(&help).iter().filter(|option| !GLOBAL.contains(&option.as_str())) {
        assert!(options(&table).contains(option), "{option}: the page does not name it");
    }
}

/// Error messages use the terms of the build system.
#[e2e(slow)]
fn wrong_arguments_are_rejected() {
    let project = Project::new();
    let seen = |outcome: &Outcome, status: i32, words: &[&str]| {
        assert_eq!(outcome.status(), Some(status), "{outcome}");
        for word in words {
            assert!(outcome.stderr.contains(word), "{word}: {outcome}");
        }
    };
    seen(&project.embed("-o guard"), 2, &["guard.o", "guard.c"]);
    seen(&project.embed("-o guard.o --compiler no-such-cc"), 2, &["no-such-cc", "cannot be started"]);
    seen(&project.embed("-o guard.o --compiler 'gcc -fsyntax-only'"), 2, &["creates no object for", "-fsyntax-only"]);
    seen(
        &project.shell("cargo-cudaguard embed --name a -o guard.o --nvcc no-such-nvcc"),
        2,
        &["--nvcc no-such-nvcc: is not in PATH"],
    );
    let without_nvcc = "cargo-cudaguard embed --name a -o guard.o --nvcc-flags -arch=sm_80";
    seen(&project.shell(without_nvcc), 2, &["required arguments were not provided", "--nvcc <FILE>"]);
    for named in ["--nvcc ./no/nvcc", "--toolkit no/toolkit", "--source no-folder"] {
        let call = format!("cargo-cudaguard embed --name a -o guard.o {named}");
        seen(&project.shell(&call), 2, &[named, "No such file or directory"]);
    }
    seen(&project.shell("cargo-cudaguard seal main.c"), 2, &["none of the objects is a guard"]);
    // A wrong argument destroys no file.
    seen(&project.embed("-o guard.o"), 0, &[]);
    for file in ["guard.o", "main.c"] {
        seen(&project.shell(&format!("cargo-cudaguard seal {file} guard.o")), 2, &[file]);
        assert!(project.path(file).exists(), "{file}");
    }
    project.write("cudaguard.toml", "toolkit.require = \">=14\"\n");
    let refused = project.embed("--release -o guard.o");
    seen(&refused, 1, &["error[CG103]", "name it with --nvcc or --toolkit", "my-model"]);
    assert!(!project.path("guard.o").exists(), "what is refused is not there to be linked");
    seen(&project.embed("-o guard.o"), 0, &["warning[CG103]"]);
    project.write("cudaguard.toml", "gpu.archs = [\"90\"]\n");
    let contradicting = project.embed("-o guard.o");
    seen(&contradicting, 0, &["CG123", "--nvcc-flags"]);
    assert!(!contradicting.stderr.contains("CMAKE"), "{contradicting}");
    project.write("cudaguard.toml", "cudnn.require = \"^9.1\"\n");
    seen(
        &project.embed("--release -o guard.o"),
        1,
        &["error[CG113]", "use an allowed cuDNN: name its headers with --include"],
    );
    let old = parts::cudnn("8.9.7-loader");
    let with_old = format!("--release -o guard.o -I '{}'", old.join("include").display());
    seen(&project.embed(&with_old), 1, &["error[CG113]", "8.9.7", "--include"]);
    let new = parts::cudnn("9.15.1");
    let with_new =
        format!("--release -o guard.o -I '{}' -L '{}'", new.join("include").display(), new.join("lib").display());
    let fine = project.embed(&with_new);
    seen(&fine, 0, &[]);
    // The program was linked without the guard.
    project.compiled();
    let lib = parts::cuda("13.0").join("lib64");
    let _ = project
        .shell(&format!("g++ -o my-model main.o kernels.o -L'{}' -lcudart_static -ldl -lrt -lpthread", lib.display()))
        .success();
    let unlinked = project.shell("cargo-cudaguard seal my-model main.o kernels.o guard.o");
    seen(&unlinked, 1, &["my-model", "it is not in the file"]);
    assert!(!project.path("my-model").exists());
}

/// Returns the setup.py of the page about Python.
fn setup_script() -> String {
    let page = fs::read_to_string(places::workspace().join("docs/start/python.md")).expect("the page");
    let (_, script) = page.split_once("```python\n# setup.py\n").expect("a setup.py");
    script.split("```").next().expect("its end").to_owned()
}

/// Source of an extension module that links cudart.
const EXTENSION: &str = "#include <Python.h>\n#include <cuda_runtime_api.h>\n\
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, \"my_extension\"};\n\
    PyMODINIT_FUNC PyInit_my_extension(void) { int v; cudaRuntimeGetVersion(&v); return PyModule_Create(&module); }\n";

#[e2e(slow)]
fn setuptools_recipe_guards_module() {
    let python = crate::cmake::fixture::python();
    if Call::new(&python).args(["-c", "import setuptools"]).run().status() != Some(0) {
        cudaguard_tests::skip::skip_all(vec![tools::missing("setuptools")]);
    }
    let project = Project::new();
    project.write("setup.py", &setup_script());
    project.write("my_extension.c", EXTENSION);
    let build = || {
        let call = project.call(&python).args(["setup.py", "-q", "build_ext", "--inplace", "--force"]);
        call.env("CUDA_HOME", parts::cuda("13.0")).run()
    };
    let _ = build().success();
    let mut modules = fs::read_dir(project.path(".")).expect("the project").flatten().map(|entry| entry.path());
    let module = modules.find(|path| path.extension().is_some_and(|ending| ending == "so")).expect("a module");
    assert_eq!(manifest(&module, "my_extension")["component"]["version"], "1.0.0");
    project.write("cudaguard.toml", "driver.fleet = \"535\"\n");
    let refused = build();
    assert!(refused.status() != Some(0) && refused.stderr.contains("error[CG133]"), "{refused}");
    let last = refused.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("cudaguard: my_extension 1.0.0 was not built"), "{refused}");
}

/// `embed` can run in each build: it replaces the guard only if an input has changed, also one that the guard does not contain.
#[e2e(slow)]
fn unchanged_guard_is_kept() {
    let project = Project::new();
    let time =
        |file: &str| fs::metadata(project.path(file)).and_then(|about| about.modified()).expect("it was written");
    for output in ["guard.o", "guard.c"] {
        let embed = || drop(project.embed(&format!("--release -o {output}")).success());
        embed();
        let first = time(output);
        embed();
        assert_eq!(time(output), first, "{output}");
        project.write("cudaguard.toml", "gpu.fleet = [\"A100\"]\n");
        embed();
        let second = time(output);
        assert_ne!(second, first, "{output}: the policy was added");
        fs::remove_file(project.path("cudaguard.toml")).expect("the policy");
        embed();
        assert_ne!(time(output), second, "{output}: the policy was removed");
    }
}
