//! Three front ends share one pipeline: a build.rs, `cargo cudaguard build` and CMake's step report the same findings for the
//! same facts, and write byte-identical notes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cargo_cudaguard::binary::elf::Elf;
use cudaguard_tests::{Call, Outcome, Project, Scratch, Test, command, e2e, once, project, scratch, test};

use super::fixture::{toolkit, with};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let rows = POLICIES.iter().zip(TOOLCHAINS.iter().cycle());
    rows.map(|((name, policy, locks), toolchain)| {
        let name = format!("front_ends::{name}, nvcc {}, headers {}", toolchain.0, toolchain.1).replace(' ', "_");
        test(name, move || front_ends_agree(policy, *locks, *toolchain)).slow()
    })
    .collect()
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Policies by name, and the number of [`LOCKS`] that a release build and a dev build run with. A lock does not depend on the
/// policy, unless the policy allows that it differs.
const POLICIES: &[(&str, &str, [usize; 2])] = &[
    ("none", "", [5, 5]),
    (
        "another toolkit, only warned of in release",
        "[toolkit]\nrequire = \"^12\"\n[build]\nrelease = \"warn\"\ndev = \"deny\"\n",
        [1, 1],
    ),
    ("archs that 13.0 does not make", "[gpu]\narchs = [\"sm_60\", \"sm_90\"]\n", [1, 1]),
    (
        "drift and mixed parts allowed",
        "[allow]\nCG101 = \"the headers are patched\"\nCG107 = \"trying another\"\nCG120 = \"nothing of the kind is found\"\n",
        [5, 1],
    ),
];

/// Releases of nvcc and of the headers.
const TOOLCHAINS: &[(&str, &str)] = &[("13.0", "13.0"), ("13.0", "12.4")];

/// Contents of the lock, and whether `--locked` is set. The lock of another target has no effect.
const LOCKS: &[(&str, bool)] = &[
    ("", false),
    ("[target.x86_64-unknown-linux-gnu]\ntoolkit = \"13.0.131\"\n", false),
    ("[target.x86_64-unknown-linux-gnu]\ntoolkit = \"11.8.89\"\nhost-compiler = \"gcc 1.0.0\"\n", false),
    ("[target.x86_64-unknown-linux-gnu]\ntoolkit = \"11.8.89\"\n", true),
    ("[target.riscv64gc-unknown-linux-gnu]\ntoolkit = \"11.8.89\"\n", true),
];

/// Result of a front end.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    /// Findings such as `error[CG107]`, without the message: it names the searched paths, which differ between front ends.
    findings: BTreeSet<String>,
    built: bool,
    note: Option<Vec<u8>>,
}

fn printed(outcome: &Outcome, built: bool, note: &Path) -> Said {
    let text = format!("{}\n{}", outcome.stdout, outcome.clean_stderr());
    let lines = text.lines().map(|line| line.strip_prefix("cargo:warning=").unwrap_or(line));
    let heads = lines.filter_map(|line| line.split_once(']').map(|(head, _)| format!("{head}]")));
    let findings = heads.filter(|head| head.starts_with("error[CG") || head.starts_with("warning[CG")).collect();
    Said { findings, built, note: built.then(|| descriptor(note)) }
}

fn descriptor(note: &Path) -> Vec<u8> {
    let bytes = fs::read(note).unwrap_or_else(|error| panic!("{}: {error}", note.display()));
    let elf = Elf::parse(&bytes).expect("an object is ELF");
    elf.notes().find(|found| found.owner == "cudaguard").expect("a note").desc.to_vec()
}

struct Fixture {
    scratch: Scratch,
    /// Compiled build script.
    script: std::path::PathBuf,
}

/// Compiles the build script of a package that calls `embed!()`.
fn compile_script() -> Vec<u8> {
    let scripted = Project::bare("scripted")
        .file("Cargo.toml", project::package("app") + &project::build_dependency())
        .file("build.rs", "fn main() { cudaguard::embed!(); }\n")
        .file("src/main.rs", "fn main() {}\n");
    let _ = scripted.cargo(["build"]).run().success();
    let dir = scripted.built("debug/build");
    let compiled = fs::read_dir(&dir).expect("cargo has built").filter_map(|entry| {
        let entry = entry.ok()?;
        let program = entry.path().join("build-script-build");
        (entry.file_name().to_string_lossy().starts_with("app-") && program.is_file()).then_some(program)
    });
    fs::read(compiled.last().expect("a build script")).expect("a file")
}

/// Row of the table.
#[derive(Clone, Copy, Debug)]
struct Case {
    policy: &'static str,
    /// Releases of nvcc and headers.
    toolchain: (&'static str, &'static str),
    release: bool,
    lock: &'static str,
    locked: bool,
}

impl Fixture {
    fn new() -> Self {
        let scratch = Scratch::new("front-ends");
        let (bytes, script) = (scratch.join("build-script.bytes"), scratch.join("build-script"));
        scratch::write(&bytes, once("the build script of policy::front_ends", compile_script));
        // A child process writes the program, so that no fork of this process has it open for writing.
        let _ = Call::new("install").args(["-m", "755"]).args([&bytes, &script]).run().success();
        for (nvcc, headers) in TOOLCHAINS {
            let sibling = scratch.join(format!("{nvcc}-{headers}"));
            toolkit(&sibling, nvcc);
            let (major, minor) = headers.split_once('.').expect("two numbers");
            scratch::write(
                &sibling.join(format!("cuda-{nvcc}/include/cuda.h")),
                format!("#define CUDA_VERSION {major}0{minor}0\n"),
            );
        }
        // A crate that declares this makes the package reach CUDA for the command, too.
        let dependency = "[dependencies]\ncuda-lib = { path = \"cuda-lib\" }\n";
        scratch::write(&scratch.join("tree/Cargo.toml"), project::package("app") + dependency);
        let library = "[package]\nname = \"cuda-lib\"\nversion = \"0.1.0\"\nlinks = \"cuda\"\n";
        scratch::write(&scratch.join("tree/cuda-lib/Cargo.toml"), library);
        scratch::write(&scratch.join("tree/cuda-lib/build.rs"), "fn main() {}\n");
        scratch::write(&scratch.join("tree/cuda-lib/src/lib.rs"), "");
        scratch::write(
            &scratch.join("tree/Cargo.lock"),
            "version = 3\n\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\n \"cuda-lib\",\n]\n\n\
             [[package]]\nname = \"cuda-lib\"\nversion = \"0.1.0\"\n",
        );
        scratch::write(&scratch.join("tree/src/main.rs"), "fn main() {}\n");
        Self { scratch, script }
    }

    fn prepare(&self, case: &Case) {
        scratch::write(&self.scratch.join("tree/cudaguard.toml"), case.policy);
        let lock = self.scratch.join("tree/cudaguard.lock");
        if case.lock.is_empty() {
            let _ = fs::remove_file(lock);
        } else {
            scratch::write(&lock, format!("version = 1\n\n{}", case.lock));
        }
    }

    fn call(&self, case: &Case, call: Call) -> Call {
        let (nvcc, headers) = case.toolchain;
        with(call.dir(self.scratch.join("tree")), &self.scratch.join(format!("{nvcc}-{headers}")), nvcc)
    }

    fn by_build_script(&self, case: &Case) -> Said {
        let (dir, profile) = if case.release { ("release", "release") } else { ("debug", "debug") };
        let out = self.scratch.join(format!("script/{dir}/build/app-0/out"));
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out).expect("a directory can be made");
        let call = self.call(case, Call::new(&self.script)).env("OUT_DIR", &out).env("PROFILE", profile);
        let call = call.env("CARGO_MANIFEST_DIR", self.scratch.join("tree")).env("CARGO_PKG_NAME", "app");
        let call = call.env("CARGO_PKG_VERSION", "0.1.0").env("TARGET", TARGET).env("HOST", TARGET);
        // `cargo cudaguard` sets this variable if it inspects the linked file later.
        let call = call.env("CUDAGUARD_STAMPS", self.scratch.join("stamps"));
        let outcome = if case.locked { call.env("CUDAGUARD_LOCKED", "1") } else { call }.run();
        // The caller is not cargo, so a refused build has another status.
        printed(&outcome, outcome.status() == Some(0), &out.join("cudaguard-note.o"))
    }

    fn by_command(&self, case: &Case) -> Said {
        let mut words = vec!["build", "--offline"];
        words.extend(case.release.then_some("--release"));
        words.extend(case.locked.then_some("--locked"));
        let call = self.call(case, command::call(&words));
        let call = match std::env::var_os("CARGO") {
            Some(cargo) => call.env("CARGO", cargo),
            None => call,
        };
        let outcome = call.run();
        let profile = if case.release { "release" } else { "dev" };
        let note = format!("tree/target/cudaguard/guards/{TARGET}/{profile}/app-0.1.0/cudaguard-note.o");
        printed(&outcome, outcome.status() == Some(0), &self.scratch.join(note))
    }

    fn by_cmake(&self, case: &Case) -> Said {
        let tree = self.scratch.join("tree");
        // The rest of the build directory stays, because it contains the compiled shim.
        let build = self.scratch.join("build");
        let _ = fs::remove_dir_all(build.join("facts"));
        let (nvcc, headers) = case.toolchain;
        let root = self.scratch.join(format!("{nvcc}-{headers}/cuda-{nvcc}"));
        // CMake itself has no configuration `dev`, but a project may define it.
        let configuration = if case.release { "Release" } else { "dev" };
        let facts = format!(
            "cudaguard-facts 1\ntarget app\ntype EXECUTABLE\ncomponent app\nversion 0.1.0\nsource {tree}\ntop {tree}\n\
             binary {build}\ncompiler /usr/bin/cc\nconfiguration {configuration}\ndebug-configuration dev\n\
             cuda-compiler {root}/bin/nvcc\ncuda-compiler-id NVIDIA\ncuda-host-compiler /usr/bin/g++\nsource-file a.cu\n\
             include {root}/include\noutput {build}/app\nlocked {}\n",
            if case.locked { "ON" } else { "OFF" },
            tree = tree.display(),
            build = build.display(),
            root = root.display(),
        );
        scratch::write(&build.join("facts/facts.CUDA"), facts);
        let facts = build.join("facts");
        let outcome = self.call(case, command::call(["cmake", "embed", "--facts", &facts.to_string_lossy()])).run();
        printed(&outcome, outcome.status() == Some(0), &facts.join("cudaguard-note.o"))
    }
}

fn front_ends_agree(policy: &'static str, locks: [usize; 2], toolchain: (&'static str, &'static str)) {
    let fixture = Fixture::new();
    for (release, count) in [true, false].into_iter().zip(locks) {
        for (lock, locked) in &LOCKS[..count] {
            let case = Case { policy, toolchain, release, lock, locked: *locked };
            fixture.prepare(&case);
            let by_command = fixture.by_command(&case);
            for (front_end, printed) in
                [("a build.rs", fixture.by_build_script(&case)), ("CMake", fixture.by_cmake(&case))]
            {
                assert_eq!(printed.findings, by_command.findings, "{front_end}: {case:?}");
                assert_eq!(printed.built, by_command.built, "{front_end}: {case:?}");
                assert!(printed.note == by_command.note, "{front_end}: another note: {case:?}");
            }
        }
    }
}
