//! Guards in libraries: they print nothing at load time, keep the verdict, and return it when they are called from C, Python or
//! Rust.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard_tests::{Call, Scratch, e2e, last_report, places, tools};

use super::fixture::{Arch, MAIN, NATIVE, Says, descriptor, manifest, version};

const LIBRARY: &str =
    "#include <cudaguard.h>\nint ask(char *text, unsigned long size) { return cudaguard_check_text(text, size); }\n";

/// Loads its arguments, calls each, and prints the results.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int k;
  for (k = 1; k < argc; k++) {
    char text[2048];
    int (*ask)(char *, unsigned long);
    void *library = dlopen(argv[k], RTLD_NOW | RTLD_LOCAL);
    if (!library) { puts(dlerror()); return 3; }
    ask = (int (*)(char *, unsigned long))dlsym(library, "ask");
    printf("%d ", ask(text, sizeof text));
    printf("%.7s\n", text);
  }
  return 0;
}
"#;

struct Scene {
    scratch: Scratch,
    host: PathBuf,
}

impl Scene {
    /// Creates a machine with this cuDNN 9.
    fn new(found: &str) -> Self {
        let scratch = Scratch::new("libraries");
        NATIVE.loader(&scratch.join("lib/libcudnn.so.9"), 9, Says::Nothing);
        NATIVE.part(
            &scratch.join("lib/libcudnn_graph.so.9"),
            "cudnn_graph_version",
            Some(version(found)),
            "-Wl,--hash-style=gnu",
        );
        NATIVE.part(
            &scratch.join("lib/libcudnn_ops.so.9"),
            "cudnn_ops_infer_version",
            Some(version(found)),
            "-Wl,--hash-style=gnu",
        );
        let host = scratch.join("host");
        let source = scratch.file("host.c", HOST);
        let _ = Call::new("cc").args(["-w", "-o"]).arg(&host).arg(source).arg("-ldl").run().success();
        Self { scratch, host }
    }

    fn library(&self, name: &str, manifest: &Manifest) -> PathBuf {
        let path = self.scratch.join(format!("lib{name}.so"));
        let mut options = vec!["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,lib{name}.so")];
        let mut template = format!("asking-{name}");
        if matches!(
            manifest.requires.first(),
            Some(cudaguard::internal::manifest::Requirement::Library { linkage: Linkage::Linked, .. })
        ) {
            let link = NATIVE.place("link-9");
            fs::create_dir_all(&link).expect("a directory can be made");
            NATIVE.loader(&link.join("libcudnn.so.9"), 9, Says::Nothing);
            options.extend([
                "-Wl,--no-as-needed".to_owned(),
                format!("-L{}", link.display()),
                "-l:libcudnn.so.9".to_owned(),
            ]);
            template.push_str("-linked");
        }
        NATIVE.guarded(&template, &path, &[descriptor(manifest)], LIBRARY, &options);
        path
    }

    fn call(&self, program: &Path) -> Call {
        Call::new(program)
            .env("LD_LIBRARY_PATH", format!("{}:{}", self.scratch.join("lib").display(), self.scratch.path().display()))
            .env("CUDAGUARD_REPORT", self.scratch.join("report.json"))
    }

    fn report(&self) -> serde_json::Value {
        last_report(&self.scratch.join("report.json"))
    }
}

fn built(name: &str, linkage: Linkage) -> Manifest {
    manifest(name, version("9.15.1"), linkage)
}

#[e2e]
fn library_stays_silent_and_answers() {
    for (found, answer) in [("9.1.0", "1 [CG202]\n"), ("9.15.1", "0 \n")] {
        let scene = Scene::new(found);
        let library = scene.library("one", &built("one", Linkage::Linked));
        let outcome = scene.call(&scene.host).arg(&library).run().success();
        assert_eq!((&*outcome.stdout, &*outcome.stderr), (answer, ""));
        assert_eq!(scene.report()["role"], "library");
        let script = format!(
            "import ctypes\ntext = ctypes.create_string_buffer(2048)\n\
             print(ctypes.CDLL(\"{}\").ask(text, 2048), text.value.decode()[:7])",
            library.display()
        );
        let outcome = scene.call(Path::new("python3")).args(["-c", &script]).run().success();
        assert_eq!((&*outcome.stdout, &*outcome.stderr), (answer, ""), "Python goes on");
    }
    let scene = Scene::new("9.1.0");
    let library = scene.library("one", &built("one", Linkage::Linked));
    let outcome = scene.call(&scene.host).arg(&library).env("CUDAGUARD", "warn").run().success();
    assert_eq!(outcome.stderr.matches("warning[CG202]").count(), 1, "{outcome}");
    let outcome = scene.call(&scene.host).arg(&library).env("CUDAGUARD", "enforce").run().expect(78);
    assert!(outcome.stdout.is_empty(), "{outcome}");
}

#[e2e]
fn enforcing_library_ends_the_process() {
    let mut strict = built("strict", Linkage::Linked);
    strict.runtime.library_enforces = true;
    for (found, status) in [("9.1.0", 78), ("9.15.1", 0)] {
        let scene = Scene::new(found);
        let library = scene.library("strict", &strict);
        let outcome = scene.call(&scene.host).arg(&library).run().expect(status);
        assert_eq!(outcome.stderr.is_empty(), status == 0, "{outcome}");
    }
}

#[e2e]
fn two_guarded_libraries_coexist() {
    let scene = Scene::new("9.1.0");
    let wrong = scene.library("one", &built("one", Linkage::Linked));
    let right = scene.library("two", &manifest("two", version("9.1.0"), Linkage::Linked));
    let outcome = scene.call(&scene.host).args([&wrong, &right]).run().success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("1 [CG202]\n0 \n", ""), "each reports about its own file");
    let outcome = scene.call(&scene.host).args([&wrong, &right]).env("CUDAGUARD", "warn").run().success();
    assert_eq!(outcome.stderr.matches("cudaguard:").count(), 1, "{outcome}");
    let outcome = scene.call(&scene.host).args([&right, &wrong]).env("CUDAGUARD", "nonsense").run().success();
    assert_eq!(outcome.stderr.matches("nonsense").count(), 1, "said once: {outcome}");
}

#[e2e]
fn program_checks_its_libraries() {
    let scene = Scene::new("9.1.0");
    let _ = scene.library("one", &built("one", Linkage::Linked));
    let program = scene.scratch.join("program");
    let options = [
        format!("-L{}", scene.scratch.display()),
        "-Wl,--no-as-needed,-lone".to_owned(),
        "-Wl,--allow-shlib-undefined".to_owned(),
    ];
    let fine = manifest("fine", version("9.0.0"), Linkage::Unknown);
    NATIVE.guarded(&format!("needs-one-{}", std::process::id()), &program, &[descriptor(&fine)], MAIN, &options);
    let outcome = scene.call(&program).run().expect(78);
    assert!(outcome.stderr.contains("which one 0.1.0 was built with"), "{outcome}");
    let report = scene.report();
    assert_eq!(
        (report["role"].as_str(), report["components"].as_array().map(Vec::len)),
        (Some("program"), Some(2)),
        "{report}"
    );
    let outcome = scene.call(&program).env("CUDAGUARD", "warn").run().success();
    assert_eq!(outcome.stderr.matches("warning[CG202]").count(), 1, "once, though two guards saw it: {outcome}");
}

#[e2e]
fn late_cudnn_is_checked_on_request() {
    for (found, linkage, answer) in [
        ("9.1.0", Linkage::Dlopened, "check 1 [CG202]"),
        ("9.15.1", Linkage::Dlopened, "check 0 "),
        ("9.1.0", Linkage::Unknown, "check 1 [CG202]"),
        ("9.28.0", Linkage::Unknown, "check 0 "),
    ] {
        let scene = Scene::new(found);
        let program = scene.scratch.join("program");
        NATIVE.program(&program, &[descriptor(&built("late", linkage))], None);
        // No variable names the directory, so the library is not found at the start. The program loads it by its path.
        let library = scene.scratch.join("lib/libcudnn.so.9");
        let outcome = Call::new(&program).args(["check", library.to_str().expect("UTF-8")]).run().success();
        assert!(outcome.stdout.starts_with(answer) && outcome.stderr.is_empty(), "{found} {linkage:?}: {outcome}");
        let outcome = Call::new(&program).arg("check").run().success();
        let nothing = if linkage == Linkage::Dlopened {
            "check 0 "
        } else {
            "check 2 [CG501] it is unknown which cuDNN late 0.1.0 would load"
        };
        assert!(outcome.stdout.starts_with(nothing), "{linkage:?}: {outcome}");
    }
    // A different major release, in a program that was built with a dlopened cuDNN.
    let scene = Scene::new("9.1.0");
    let program = scene.scratch.join("program");
    NATIVE.program(&program, &[descriptor(&manifest("late", version("8.9.7"), Linkage::Dlopened))], None);
    let library = scene.scratch.join("lib/libcudnn.so.9");
    let outcome = Call::new(&program).args(["check", library.to_str().expect("UTF-8")]).run().success();
    assert!(outcome.stdout.starts_with("check 1 [CG201]"), "{outcome}");
}

const DATA: &str = r#"
#include <cudaguard.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  struct cudaguard_verdict all, some;
  int answer = cudaguard_check_verdict(&all);
  printf("%d %d %d %d %d|%s|%s|%s|%s|%s|%s|%s\n", answer, all.verdict, all.code, all.severity, all.level, all.subject,
         all.component, all.built, all.found, all.message, all.hint, all.not_judged);
  if (!cudaguard_r1_verdict) return 0;
  /* One that knows less of it. */
  memset(&some, 'x', sizeof some);
  some.size = offsetof(struct cudaguard_verdict, severity);
  answer = cudaguard_r1_verdict(&some);
  printf("%d %d %d %d\n", answer == some.verdict, some.code == all.code, some.severity == all.severity, some.message[0] == 'x');
  return 0;
}
"#;

#[e2e]
fn verdict_is_structured() {
    let wrong = "1 1 202 2 1|cuDNN|data 0.1.0|9.15.1|9.1.0|cuDNN 9.1.0 is older than cuDNN 9.15.1, which data 0.1.0 was built with\n\
                 built with: cuDNN 9.15.1 (data 0.1.0)\nfound:      cuDNN 9.1.0 in {lib}/libcudnn.so.9\npicked by:  LD_LIBRARY_PATH|update \
                 it, or put cuDNN 9.15.0 or newer first in LD_LIBRARY_PATH; or rebuild with cuDNN 9.1.0 and its CUDA|GPU code \
                 outside fatbin containers; driver requirement of a static cudart\n1 1 0 1\n";
    let right = "0 0 0 0 0|||||||GPU code outside fatbin containers; driver requirement of a static cudart\n1 1 0 1\n";
    for (found, expected) in [("9.1.0", wrong), ("9.15.1", right)] {
        let scene = Scene::new(found);
        let program = scene.scratch.join("program");
        let mut manifest = built("data", Linkage::Dlopened);
        manifest.runtime.mismatch_warns = true;
        NATIVE.guarded("data", &program, &[descriptor(&manifest)], DATA, &["-std=c99".to_owned()]);
        let outcome = scene.call(&program).run().success();
        assert_eq!(outcome.stdout, expected.replace("{lib}", &scene.scratch.join("lib").display().to_string()));
    }
    let scene = Scene::new("9.1.0");
    let program = scene.scratch.join("program");
    NATIVE.bare("data-unguarded", &program, &[], DATA, &[]);
    let outcome = Call::new(&program).run().success();
    assert_eq!(outcome.stdout, "2 2 0 0 0|||||this file was built without the guard||\n");
}

const ASKING: &str = r#"
#[unsafe(no_mangle)]
pub extern "C" fn ask(text: *mut u8, size: usize) -> i32 {
    let report = cudaguard::check();
    let answer = report.status as i32;
    let words = report.finding.map(|finding| finding.to_string().replacen("error", "", 1)).unwrap_or_default();
    let bytes = &words.as_bytes()[..words.len().min(size - 1)];
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), text, bytes.len());
        *text.add(bytes.len()) = 0;
    }
    answer
}
"#;

#[e2e(slow)]
fn rust_checks_its_own_file() {
    let scene = Scene::new("9.1.0");
    let shim = NATIVE.shim();
    let notes = scene.scratch.file("notes.s", Arch::notes(1));
    let note = scene.scratch.join("notes.o");
    let _ = Call::new("cc").arg("-c").arg(notes).arg("-o").arg(&note).run().success();
    let mut bytes = fs::read(&note).expect("it was made");
    let at = bytes.windows(16).position(|window| window == b"@@descriptor@@\n\n").expect("the note");
    let mut manifest = built("rusty", Linkage::Linked);
    manifest.runtime.mismatch_warns = true;
    bytes[at..at + 4096].copy_from_slice(&descriptor(&manifest));
    fs::write(&note, bytes).expect("a file can be written");
    let core = places::workspace().join("guard-core/src/check.rs");
    // Only the module of the API, with the paths that it has in the crate `cudaguard`.
    let library = scene
        .scratch
        .file("cudaguard.rs", format!("#[path = \"{}\"]\nmod check;\npub use check::*;\n", core.display()));
    let main = scene.scratch.file("main.rs", "fn main() { println!(\"{}\", cudaguard::check()); }\n");
    let asking = scene.scratch.file("asking.rs", ASKING);
    let rustc = |source: &Path, more: &[&str]| {
        let call =
            Call::new("rustc").args(["--edition", "2024", "-C", "opt-level=2", "--out-dir"]).arg(scene.scratch.path());
        let made = call.arg("-L").arg(scene.scratch.path()).args(more).arg(source).dir(scene.scratch.path()).run();
        assert!(made.status() == Some(0), "{made}");
    };
    let cudnn = scene.scratch.join("lib/libcudnn.so.9").display().to_string();
    let objects = [&shim, &note].map(|object| format!("-Clink-arg={}", object.display()));
    let linked = ["-Clink-arg=-Wl,--no-as-needed".to_owned(), format!("-Clink-arg={cudnn}")];
    let mut missing = Vec::new();
    for lto in ["-Clto=off", "-Clto=fat"] {
        rustc(&library, &["--crate-type", "rlib", "--crate-name", "cudaguard"]);
        // rustc performs fat LTO, with the same result for each linker, so one linker is enough.
        let linkers = if lto == "-Clto=fat" { &["lld"][..] } else { &["bfd", "gold", "lld", "mold"] };
        for linker in linkers {
            let program = format!("ld.{linker}");
            if tools::find(&program).is_none() {
                missing.push(program);
                continue;
            }
            let fuse = format!("-Clink-arg=-fuse-ld={linker}");
            let common =
                ["--extern", "cudaguard", lto, "-Cembed-bitcode=yes", "-Cpanic=abort", "-Cstrip=symbols", &fuse];
            let guarded = [&common[..], &[&objects[0], &objects[1], &linked[0], &linked[1]]].concat();
            rustc(&main, &guarded);
            let outcome = scene.call(&scene.scratch.join("main")).run().success();
            assert!(outcome.stdout.starts_with("error[CG202]: cuDNN 9.1.0 is older"), "{linker} {lto}: {outcome}");
            rustc(&asking, &[&guarded[..], &["--crate-type", "cdylib"]].concat());
            let asking_library = scene.scratch.join("libasking.so");
            let outcome = scene.call(&scene.host).arg(&asking_library).run().success();
            assert_eq!((&*outcome.stdout, &*outcome.stderr), ("1 [CG202]\n", ""), "{linker} {lto}");
            let exported = Call::new("nm").args(["-D", "--defined-only"]).arg(&asking_library).run().success();
            assert!(
                exported.stdout.contains(" ask") && !exported.stdout.contains("guard"),
                "{linker} {lto}: {exported}"
            );
            if lto == "-Clto=fat" {
                continue;
            }
            // A program without the guard.
            for relocation in ["-Crelocation-model=pie", "-Crelocation-model=static"] {
                rustc(&main, &[&common[..], &[relocation]].concat());
                let outcome = scene.call(&scene.scratch.join("main")).run().success();
                assert_eq!(outcome.stdout, "this file was built without the guard\n", "{linker} {lto}");
            }
            rustc(&asking, &[&common[..], &["--crate-type", "cdylib"]].concat());
            let outcome = scene.call(&scene.host).arg(&asking_library).run().success();
            assert_eq!(outcome.stdout, "2 this fi\n", "{linker} {lto}");
        }
    }
    tools::done_without(&missing);
}
