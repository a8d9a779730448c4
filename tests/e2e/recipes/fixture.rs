//! Machines that consist of real parts, and two packages that are built on them repeatedly: one with `embed!()` for plain
//! cargo, one without for `cargo cudaguard`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cudaguard::internal::toolchain::SYSROOT;
use cudaguard_tests::{Call, Outcome, Project, Scratch, command, parts, scratch, snapshot, tools};

/// A wrong setup.
pub(crate) struct Recipe {
    /// Part of the snapshot's name.
    pub(crate) name: &'static str,
    /// Creates the files of the machine and sets its variables.
    pub(crate) machine: fn(&mut Machine),
    /// Contents of `cudaguard.toml`.
    pub(crate) policy: &'static str,
    /// Errors of a release build by plain cargo, in order. The build passes if each is allowed.
    pub(crate) errors: &'static [&'static str],
    /// Warnings of plain cargo in each profile, about facts that only the linked file shows.
    pub(crate) warnings: &'static [&'static str],
    /// Errors of `cargo cudaguard` if they differ, because it inspects the linked file.
    pub(crate) observed: Option<&'static [&'static str]>,
}

/// Directory with the files of a machine, and the variables of its builds.
pub(crate) struct Machine {
    root: PathBuf,
    variables: Vec<(String, OsString)>,
    /// Directories that precede `PATH` of the build machine.
    path: Vec<PathBuf>,
}

impl Machine {
    /// Creates a machine without additional files.
    pub(crate) fn in_dir(root: PathBuf) -> Self {
        Self { root, variables: Vec::new(), path: Vec::new() }
    }

    /// Runs a call on this machine. Toolkits in the default locations of the build machine are hidden.
    pub(crate) fn on(&self, call: Call) -> Call {
        fs::create_dir_all(&self.root).expect("a temporary directory takes directories");
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = self.path.iter().cloned().chain(std::env::split_paths(&inherited));
        let call = call
            .env("PATH", std::env::join_paths(path).expect("a PATH"))
            .env("CARGO_TERM_COLOR", "never")
            .env(SYSROOT, &self.root);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    /// Sets a variable to a path on this machine.
    pub(crate) fn set_at(&mut self, name: &str, path: &str) {
        self.set(name, self.at(path));
    }

    /// Puts a directory of this machine first in `PATH`.
    pub(crate) fn path_first(&mut self, dir: &str) {
        self.path.insert(0, self.at(dir));
    }

    pub(crate) fn file(&self, path: &str, text: &str) {
        scratch::write(&self.at(path), text);
    }

    fn link(&self, path: &str, to: &Path) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a link has a parent directory"))
            .expect("a temporary directory takes directories");
        symlink(to, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Links a real toolkit to this root.
    pub(crate) fn cuda(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cuda(version));
    }

    /// Links a real toolkit and selects it: its nvcc is first in `PATH`, and `CUDA_HOME` is its root.
    pub(crate) fn cuda_in_use(&mut self, version: &str) {
        let root = format!("cuda-{version}");
        self.cuda(&root, version);
        self.path_first(&format!("{root}/bin"));
        self.set_at("CUDA_HOME", &root);
    }

    /// Selects nvcc 11.8 with a supported host compiler.
    pub(crate) fn cuda_11_8_in_use(&mut self) {
        self.cuda_in_use("11.8");
        tools::need("g++-11");
        self.set("NVCC_CCBIN", "g++-11");
    }

    /// Links a real cuDNN to this root.
    pub(crate) fn cudnn(&self, root: &str, version: &str) {
        self.all_of(root, &parts::cudnn(version));
    }

    fn all_of(&self, root: &str, part: &Path) {
        for entry in fs::read_dir(part).unwrap_or_else(|error| panic!("{}: {error}", part.display())) {
            let entry = entry.expect("a part can be listed");
            self.link(&format!("{root}/{}", entry.file_name().to_string_lossy()), &entry.path());
        }
    }

    /// Compiles a kernel with the real nvcc of this version and links it into the program, with the cudart of its toolkit.
    pub(crate) fn kernel(&mut self, version: &str, flags: &str) {
        self.file("kernel.cu", "__global__ void first(int *p) { p[threadIdx.x] = 1; }\n");
        let (object, cuda) = (self.at("kernel.o"), parts::cuda(version));
        if version == "11.8" {
            tools::need("g++-11");
        }
        let call = Call::new(cuda.join("bin/nvcc")).args(flags.split_whitespace()).arg("-c").arg(self.at("kernel.cu"));
        let call = if version == "11.8" { call.args(["-ccbin", "g++-11"]) } else { call };
        let _ = call.arg("-o").arg(&object).run().success();
        let library = ["lib/libcudart_static.a", "lib64/libcudart_static.a"].map(|file| cuda.join(file));
        let library = library.into_iter().find(|file| file.exists()).expect("a toolkit has a static cudart");
        self.set("RECIPE_LINKS", format!("{}:{}", object.display(), library.display()));
    }
}

/// This file gives the embedding package kernels, so it is checked before it is linked.
const KERNELS: &str = "kernels/none.cu";

/// Build script that links the objects of a recipe.
const BUILD_RS: &str = r#"fn main() {
    println!("cargo:rerun-if-env-changed=RECIPE_LINKS");
    let links = std::env::var("RECIPE_LINKS").unwrap_or_default();
    for file in links.split(':').filter(|file| !file.is_empty()) {
        println!("cargo:rustc-link-arg={file}");
    }
    if !links.is_empty() {
        for library in ["-lstdc++", "-ldl", "-lrt", "-lpthread"] {
            println!("cargo:rustc-link-arg={library}");
        }
    }
    // cudaguard
}
"#;

/// The two packages, `app 0.1.0` each.
pub(crate) struct Lane {
    embedded: Project,
    plain: Project,
    /// Parent of the machines. Its path contains no blanks, because LDFLAGS is split at blanks.
    machines: Scratch,
}

impl Lane {
    pub(crate) fn new() -> Self {
        let Self { embedded, plain, machines } = Self::without_kernels();
        Self { embedded: embedded.file(KERNELS, ""), plain: plain.file(KERNELS, ""), machines }
    }

    pub(crate) fn without_kernels() -> Self {
        let main = "fn main() {\n    println!(\"ran\");\n}\n";
        let embeds = BUILD_RS.replace("// cudaguard", "cudaguard::embed!();");
        let made = |project: Project, script: &str| project.file("src/main.rs", main).file("build.rs", script);
        Self {
            embedded: made(Project::guarded("app"), &embeds),
            plain: made(Project::new("app"), BUILD_RS),
            machines: Scratch::without_blanks("recipes"),
        }
    }

    fn policy(&self, text: &str) {
        for project in [&self.embedded, &self.plain] {
            project.change("cudaguard.toml", text);
        }
    }

    /// Builds with this recipe: both front ends refuse the release. If `in_all_ways`, a dev build warns of it, and it builds if it
    /// is allowed with a reason, which the manifest records. Neither depends on the cause.
    pub(crate) fn build(&self, recipe: &Recipe, in_all_ways: bool) {
        let Recipe { name, machine: lay, policy, errors, warnings, observed } = recipe;
        let root = self.machines.join(name);
        let mut machine = Machine::in_dir(root);
        lay(&mut machine);
        self.policy(policy);

        let by_cargo = self.cargo(&machine, &["build", "--release"]).run();
        let text = if errors.is_empty() { warned(&by_cargo) } else { reason(&by_cargo) };
        let text = without_unread(&self.clean(&machine, text.trim_end()));
        let by_cargo = by_cargo.expect(if errors.is_empty() { 0 } else { 101 });
        assert_eq!(codes(&text, "error["), *errors, "{name}: {by_cargo}");
        assert_eq!(codes(&text, "warning["), *warnings, "{name}: {by_cargo}");
        snapshot::check(&format!("recipes/{name}"), &text);
        // If the linked file has no kernels, the build is only checked because the package calls `embed!()`.
        let guarded = if observed.is_none() { &self.embedded } else { &self.plain };
        let by_command = machine.on(guarded.cudaguard(["build", "--release"])).run();
        match observed {
            None => {
                // A script that calls `embed!()` without options is checked before it runs.
                let printed = if errors.is_empty() { warned(&by_command) } else { by_command.stderr.clone() };
                let printed = findings(&self.clean(&machine, printed.trim_end()));
                let _ = by_command.expect(i32::from(!errors.is_empty()));
                assert_eq!(printed, findings(&text), "{name}: both front ends report the same");
            }
            Some(observed) => {
                let printed = findings(&self.clean(&machine, &by_command.stderr));
                let by_command = by_command.expect(101);
                assert_eq!(codes(&printed, "error["), *observed, "{name}: {by_command}");
                snapshot::check(&format!("recipes/{name}-observed"), &printed);
                // Under `cargo cudaguard`, `embed!()` also waits for the linked file.
                let embedded = machine.on(self.embedded.cudaguard(["build", "--release"])).run().expect(101);
                assert_eq!(findings(&self.clean(&machine, &embedded.stderr)), printed, "{name}: {embedded}");
            }
        }
        assert!(!self.plain.built("release/app").exists(), "{name}: nothing is left to be run");
        if !in_all_ways {
            return;
        }

        let in_dev = self.cargo(&machine, &["build"]).run().success();
        assert_eq!(codes(&warned(&in_dev), "warning["), [*errors, *warnings].concat(), "{name}: {in_dev}");
        // Both front ends use the same severities before linking. After linking, the wrapper's severities apply.
        if let Some(observed) = observed {
            let in_dev = self.cudaguard(&machine, &["build"]).run().success();
            assert_eq!(codes(&findings(&in_dev.stderr), "warning["), *observed, "{name}: {in_dev}");
        }

        let why = format!("recipe {name}");
        let allow = |codes: &[&str]| {
            let mut codes = codes.to_vec();
            codes.dedup();
            codes.iter().map(|code| format!("{code} = \"{why}\"\n")).collect::<Vec<_>>().concat()
        };
        let allowing = |codes: &[&str]| format!("{policy}\n[allow]\n{}", allow(codes));
        let declared = [*errors, *warnings].concat();
        self.policy(&allowing(&declared));
        let allowed = self.cargo(&machine, &["build", "--release"]).run().success();
        assert_eq!(warned(&allowed), "", "{name}: {allowed}");
        assert!(!allowed.stderr.contains("error["), "{name}: {allowed}");
        recorded(&self.embedded, &declared, &why);
        let observed = observed.unwrap_or(errors);
        self.policy(&allowing(observed));
        let _ = machine.on(guarded.cudaguard(["build", "--release"])).run().success();
        recorded(guarded, observed, &why);
        for project in [&self.embedded, guarded] {
            let _ = fs::remove_file(project.built("release/app"));
        }
    }

    /// Builds a program without CUDA. Plain cargo does not refuse it for undetermined facts, and the command, which
    /// inspects the linked file, reports nothing.
    pub(crate) fn build_without_cuda(&self, recipe: &Recipe) {
        let mut machine = Machine::in_dir(self.machines.join(recipe.name));
        (recipe.machine)(&mut machine);
        self.policy(recipe.policy);
        let by_cargo = self.cargo(&machine, &["build", "--release"]).run().success();
        assert_eq!(codes(&warned(&by_cargo), "warning["), recipe.warnings, "{}: {by_cargo}", recipe.name);
        let by_command = self.cudaguard(&machine, &["build", "--release"]).run().success();
        assert_eq!(findings(&by_command.stderr), "", "{}: {by_command}", recipe.name);
    }

    /// Builds with an unreadable policy. Both front ends refuse it in each profile, with the same message.
    pub(crate) fn misread(&self, name: &str, policy: &[u8]) {
        for project in [&self.embedded, &self.plain] {
            project.change("cudaguard.toml", policy);
        }
        let root = self.machines.join("none");
        let machine = Machine::in_dir(root);
        let mut texts = Vec::new();
        for profile in [&["build", "--release"][..], &["build"]] {
            let refused = self.cargo(&machine, profile).run().expect(101);
            texts.push(self.clean(&machine, reason(&refused).trim_end()));
            let refused = self.cudaguard(&machine, profile).run().expect(2);
            texts.push(self.clean(&machine, refused.stderr.trim_end()));
        }
        assert!(texts.iter().all(|text| *text == texts[0]), "{name}: {texts:#?}");
        snapshot::check(&format!("recipes/policy-{name}"), &texts[0]);
    }

    fn cargo(&self, machine: &Machine, arguments: &[&str]) -> Call {
        machine.on(self.embedded.cargo(arguments))
    }

    fn cudaguard(&self, machine: &Machine, arguments: &[&str]) -> Call {
        machine.on(self.plain.cudaguard(arguments))
    }

    /// Replaces the paths of this machine.
    fn clean(&self, machine: &Machine, text: &str) -> String {
        let names: [(&Path, &str); 4] = [
            (self.embedded.path(), "<project>"),
            (self.plain.path(), "<project>"),
            (&machine.root, ""),
            (&parts::dir(), "<parts>"),
        ];
        snapshot::paths(text, &names)
    }
}

/// Returns the errors of a build script. They are all that cargo prints after the lines about its progress.
fn reason(refused: &Outcome) -> String {
    let progress = ["   Compiling ", "    Blocking ", "       Dirty ", "       Fresh "];
    let lines = refused.stderr.lines().filter(|line| !progress.iter().any(|start| line.starts_with(start)));
    let (mut errors, mut others) = (Vec::new(), Vec::new());
    for line in lines {
        match line.strip_prefix("error: app@0.1.0: ") {
            Some(error) => errors.push(error),
            None => others.push(line),
        }
    }
    assert!(!errors.is_empty() && others.len() <= 2, "no reason, or more than the reason: {refused}");
    errors.join("\n")
}

/// Returns the warnings of a build script, which cargo prints line by line.
fn warned(built: &Outcome) -> String {
    let lines = built.stderr.lines().filter_map(|line| line.strip_prefix("warning: app@0.1.0: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the text without CG139, because `cargo cudaguard` reads the linked file.
fn without_unread(text: &str) -> String {
    let mut is_it = false;
    let kept = text.lines().filter(|line| {
        is_it = line.starts_with("warning[CG139]") || is_it && line.starts_with("  ");
        !is_it
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Returns the codes of the lines with this beginning, in order.
fn codes(text: &str, begin: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.strip_prefix(begin)?.get(..5)?.to_owned())).collect()
}

/// Returns the errors and warnings with their following lines.
fn findings(text: &str) -> String {
    snapshot::blocks(text, &["error[", "warning[", "cudaguard: app 0.1.0 was not built"])
}

/// Checks that `inspect` lists these codes as allowed in the manifest.
fn recorded(project: &Project, codes: &[&str], reason: &str) {
    let reported = command::inspect(&project.built("release/app"));
    for code in codes {
        assert_eq!(reported["components"][0]["allow"][code], reason, "{reported}");
    }
}
