//! Correctness of the cache: tables of changes, and the units that each recompiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cargo_cudaguard::binary::file::Binary;
use cudaguard_tests::{Call, Outcome, e2e, scratch};

use super::fixture::{Fixture, GUARDED, compiled, notes, package, sealed, set, set_time};

/// Sets the environment of a build.
type With<'a> = Box<dyn Fn(Call) -> Call + 'a>;

/// Package with the units that changes must recompile.
struct Shape {
    fixture: Fixture,
    /// Arguments of all builds.
    arguments: Vec<String>,
    /// Guarded files with their components.
    guarded: Vec<(PathBuf, &'static str)>,
    /// Units that contain a guard: exactly these are recompiled when a guard changes.
    holders: Vec<&'static str>,
    /// A source file, and the units that it recompiles.
    source: (&'static str, Vec<&'static str>),
    /// Units that differ between a plain build and a guarded one, without dependencies. Each build compiles them once.
    own: Vec<&'static str>,
    /// Units whose file both builds share. They are recompiled after each build of the other kind.
    shared: Vec<&'static str>,
}

impl Shape {
    fn words(&self) -> Vec<String> {
        ["build", "-v"].into_iter().map(str::to_owned).chain(self.arguments.iter().cloned()).collect()
    }

    fn guard(&self, with: impl FnOnce(Call) -> Call) -> Outcome {
        let outcome = with(self.fixture.guard(self.words())).run().success();
        self.fixture.settle();
        for (file, component) in &self.guarded {
            let _ = sealed(file, component);
        }
        outcome
    }

    fn plain(&self) -> Outcome {
        let outcome = self.fixture.cargo(self.words()).run().success();
        for (file, _) in &self.guarded {
            assert!(notes(file).is_empty(), "{}: cargo build leaves no guard", file.display());
        }
        outcome
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        self.guarded.iter().map(|(file, _)| fs::read(file).expect("it was built")).collect()
    }

    /// Checks builds without a change, with a changed source file, and guarded and plain builds in turn.
    fn is_cached(&self) {
        let first = compiled(&self.guard(|call| call));
        for unit in &self.own {
            assert!(first.contains(*unit), "{unit} in {first:?}");
        }
        let before = self.contents();
        assert_eq!(compiled(&self.guard(|call| call)), set(&[]), "nothing changed");
        assert_eq!(self.contents(), before, "nothing changed: the same bytes");

        let text = fs::read_to_string(self.fixture.root.join(self.source.0)).expect("a source file");
        self.fixture.change(self.source.0, &(text + "\n// changed\n"));
        assert_eq!(compiled(&self.guard(|call| call)), set(&self.source.1), "a source file changed");

        let own = set(&self.own);
        assert_eq!(compiled(&self.plain()), own, "a plain build makes its own, and no dependency again");
        let shared = set(&self.shared);
        assert_eq!(compiled(&self.guard(|call| call)), shared, "guarded after plain");
        assert_eq!(compiled(&self.guard(|call| call)), set(&[]), "guarded twice");
        assert_eq!(compiled(&self.plain()), shared, "plain after guarded");
        assert_eq!(compiled(&self.plain()), set(&[]), "plain twice");
    }

    /// Checks that a changed guard recompiles exactly the units that contain it. This does not depend on their crate types, so
    /// one shape suffices.
    fn changed_guard_recompiles_holders(&self) {
        let holders = set(&self.holders);
        let _ = self.guard(|call| call);
        // Contents matter, not times.
        for (what, policy) in [
            ("a key is added", "[runtime]\nmismatch = \"warn\"\n"),
            ("the policy changes", "[runtime]\nmismatch = \"refuse\"\ngpu = \"optional\"\n"),
            ("the key goes", GUARDED),
        ] {
            self.policy(policy);
            assert_eq!(compiled(&self.guard(|call| call)), holders, "{what}");
            let warns = policy.contains("mismatch = \"warn\"");
            for (file, component) in &self.guarded {
                assert_eq!(sealed(file, component).manifest.runtime.mismatch_warns, warns, "{what}");
            }
            assert_eq!(compiled(&self.guard(|call| call)), set(&[]), "{what}: nothing changed since");
        }

        let (older, newer) = (self.toolkit(12, 4), self.toolkit(13, 0));
        let cudnn = self.fixture.sibling("cudnn");
        cudaguard_tests::fake_library::cudnn(&cudnn, (9, 15, 1));
        let steps: [(&str, With<'_>); 6] = [
            ("a toolkit", Box::new(|call| call.env("CUDA_HOME", &older))),
            ("another toolkit", Box::new(|call| call.env("CUDA_HOME", &newer))),
            ("cuDNN", Box::new(|call| call.env("CUDA_HOME", &newer).env("CUDNN_PATH", &cudnn))),
            ("archs", Box::new(|call| call.env("CUDA_HOME", &newer).env("CUDAARCHS", "90"))),
            ("other archs", Box::new(|call| call.env("CUDA_HOME", &newer).env("CUDAARCHS", "90;100"))),
            ("none of them", Box::new(|call| call)),
        ];
        for (what, with) in &steps {
            assert_eq!(compiled(&self.guard(with)), holders, "{what}");
            assert_eq!(compiled(&self.guard(with)), set(&[]), "{what}: nothing changed since");
        }
        // An older toolkit with older files replaces the toolkit in place.
        assert_eq!(compiled(&self.guard(&steps[1].1)), holders, "a toolkit");
        cuda_h(&newer, 12, 9);
        set_time(&newer.join("include/cuda.h"), long_ago());
        assert_eq!(compiled(&self.guard(&steps[1].1)), holders, "a toolkit replaced by an older one");
        assert_eq!(compiled(&self.guard(|call| call)), holders, "none again");
    }

    /// Writes this policy into each guarded package.
    fn policy(&self, text: &str) {
        for dir in ["", "app", "c-part"] {
            let file = Path::new(dir).join("cudaguard.toml");
            if self.fixture.root.join(&file).exists() {
                self.fixture.write(&file.to_string_lossy(), text);
            }
        }
    }

    /// Creates a fake toolkit: its header, which identifies it.
    fn toolkit(&self, major: u32, minor: u32) -> PathBuf {
        let root = self.fixture.sibling(&format!("cuda-{major}.{minor}"));
        cuda_h(&root, major, minor);
        root
    }
}

/// Returns a time before all builds.
pub(crate) fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn cuda_h(root: &Path, major: u32, minor: u32) {
    let text = format!("/* A fake. */\n#define CUDA_VERSION {}\n", major * 1000 + minor * 10);
    cudaguard_tests::scratch::write(&root.join("include/cuda.h"), text);
}

const MAIN: &str = "fn main() {\n    println!(\"ran\");\n}\n";
const EXPORT: &str = "#[no_mangle]\npub extern \"C\" fn seven() -> u32 {\n    7\n}\n";

#[e2e(slow)]
fn mixed_crate_types_are_cached() {
    let more = "[lib]\ncrate-type = [\"lib\", \"cdylib\"]\n[workspace]\n";
    let fixture = Fixture::new(
        "cache-both",
        &[
            ("Cargo.toml", &package("seven", more)),
            ("src/lib.rs", EXPORT),
            ("src/main.rs", "fn main() {\n    println!(\"{}\", seven::seven());\n}\n"),
        ],
    );
    Shape {
        guarded: vec![(fixture.built("debug/libseven.so"), "seven"), (fixture.built("debug/seven"), "seven")],
        fixture,
        arguments: vec![],
        holders: vec!["seven:lib+cdylib", "seven:bin"],
        source: ("src/main.rs", vec!["seven:bin"]),
        own: vec!["seven:lib+cdylib", "seven:bin"],
        // The program is linked from the library's file.
        shared: vec!["seven:lib+cdylib", "seven:bin"],
    }
    .is_cached();
}

fn workspace(name: &str, more: &str) -> Fixture {
    Fixture::new(
        name,
        &[
            (
                "Cargo.toml",
                &format!("[workspace]\nresolver = \"2\"\nmembers = [\"app\", \"part\", \"c-part\"]\n{more}"),
            ),
            (
                "app/Cargo.toml",
                &package(
                    "app",
                    "[dependencies]\npart = { path = \"../part\" }\noutside = { path = \"../../outside\" }\n",
                ),
            ),
            ("app/src/main.rs", "fn main() {\n    println!(\"{} {}\", part::word(), outside::word());\n}\n"),
            ("app/build.rs", "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n"),
            ("part/Cargo.toml", &package("part", "")),
            ("part/src/lib.rs", "pub fn word() -> &'static str {\n    \"ran\"\n}\n"),
            ("c-part/Cargo.toml", &package("c-part", "[lib]\ncrate-type = [\"cdylib\"]\n")),
            ("c-part/src/lib.rs", EXPORT),
            ("../outside/Cargo.toml", &package("outside", "[workspace]\n")),
            ("../outside/src/lib.rs", "pub fn word() -> &'static str {\n    \"far\"\n}\n"),
        ],
    )
}

#[e2e(slow)]
fn workspace_is_cached() {
    let fixture = workspace("cache-workspace", "");
    let shape = Shape {
        guarded: vec![(fixture.built("debug/app"), "app"), (fixture.built("debug/libc_part.so"), "c-part")],
        fixture,
        arguments: vec![],
        holders: vec!["app:bin", "c_part:cdylib"],
        source: ("part/src/lib.rs", vec!["part:lib", "app:bin"]),
        own: vec!["app:bin", "part:lib", "c_part:cdylib", "build_script_build:bin"],
        shared: vec!["c_part:cdylib"],
    };
    // Both builds share the C library's own unit, so a plain build after a guarded one recompiles it, as `own` lists.
    shape.is_cached();
    shape.changed_guard_recompiles_holders();
}

/// The wrapper is killed after the linker exits. Later outputs of cargo are complete and sealed.
#[e2e(slow)]
fn killed_build_is_sealed_later() {
    let fixture =
        Fixture::new("cache-killed", &[("Cargo.toml", &package("app", "[workspace]\n")), ("src/main.rs", MAIN)]);
    let script = fixture.sibling("rustc-then-kill");
    let text = "#!/bin/sh\n\"$@\" || exit\ncase \"$*\" in *'--crate-name app '*) kill -KILL $PPID;; esac\n";
    scratch::program(&script, text);
    let outcome = fixture.guard(["build"]).env("RUSTC_WORKSPACE_WRAPPER", &script).run();
    assert_ne!(outcome.status(), Some(0), "{outcome}");
    assert!(!fixture.built("debug/app").exists(), "cargo hands nothing on");
    let _ = fixture.guard(["build"]).run().success();
    let _ = sealed(&fixture.built("debug/app"), "app");
    assert!(Binary::read(&fixture.built("debug/app")).is_ok_and(|binary| binary.damage.is_none()));
}

pub(crate) fn host() -> String {
    let printed = Call::new("rustc").arg("-vV").run().success().stdout;
    printed.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}
