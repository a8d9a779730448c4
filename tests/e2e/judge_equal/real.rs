//! Comparisons with NVIDIA's libraries.

use std::fs;
use std::path::Path;

use cudaguard::internal::manifest::{Linkage, Opens};
use cudaguard_tests::{Outcome, Scratch, command, e2e, last_report, parts};

use super::fixture::{NATIVE, descriptor, manifest, version};

fn start(built: &str, linkage: Linkage, lib: &Path) -> (Outcome, serde_json::Value) {
    let scratch = Scratch::new("real");
    let built = version(built);
    let program = scratch.join("program");
    NATIVE.program(
        &program,
        &[descriptor(&manifest("demo", built, linkage))],
        (linkage == Linkage::Linked).then_some(built.major),
    );
    let report = scratch.join("report.json");
    let outcome =
        NATIVE.call(&program).env("LD_LIBRARY_PATH", lib).env("CUDAGUARD_REPORT", &report).dir(scratch.path()).run();
    let report = last_report(&report);
    (outcome, report)
}

fn runs(built: &str, linkage: Linkage, found: &str) {
    let (outcome, report) = start(built, linkage, &parts::cudnn(found).join("lib"));
    let outcome = outcome.success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{built} on {found}");
    assert_eq!(report["level"], 0, "the ordinary good machine needs no child: {report}");
    assert_eq!(report["components"][0]["cudnn"]["version"], found, "{report}");
}

fn refused(built: &str, linkage: Linkage, found: &str) {
    let (outcome, report) = start(built, linkage, &parts::cudnn(found).join("lib"));
    let outcome = outcome.expect(78);
    for words in ["error[CG202]", &format!("cuDNN {found} in "), &format!("built with: cuDNN {built}"), "what to do: "]
    {
        assert!(outcome.stderr.contains(words), "{words}: {outcome}");
    }
    assert!(outcome.stdout.is_empty() && outcome.stderr.lines().count() <= 6, "{outcome}");
    assert_eq!(report["components"][0]["cudnn"]["version"], found, "{report}");
}

#[e2e]
fn cudnn_9_is_checked() {
    runs("9.15.1", Linkage::Linked, "9.15.1");
    runs("9.15.1", Linkage::Linked, "9.28.0");
    runs("9.1.0", Linkage::Linked, "9.15.1");
    refused("9.15.1", Linkage::Linked, "9.1.0");
    refused("9.28.0", Linkage::Linked, "9.15.1");
}

#[e2e]
fn cudnn_8_is_checked() {
    runs("8.1.0", Linkage::Linked, "8.9.7");
    runs("8.9.7", Linkage::Linked, "8.9.7");
    runs("8.5.0", Linkage::Linked, "8.9.7");
    refused("8.9.7", Linkage::Linked, "8.5.0");
}

/// Tries to load cuDNN by these names in turn, and prints the version of the first that loads.
const TRIES: &str = r#"
#include <cudaguard.h>
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  char text[2048];
  size_t (*version)(void) = 0;
  void *library = 0;
  static const char *names[] = {"libcudnn.so", "libcudnn.so.9"};
  int k;
  (void)argv;
  for (k = 0; k < 2 && !library; k++) library = dlopen(names[k], RTLD_NOW);
  if (library) *(void **)&version = dlsym(library, "cudnnGetVersion");
  if (argc > 1) printf("check %d, ", cudaguard_check_text(text, sizeof text));
  printf("%s opens %zu\n", library ? names[k - 1] : "nothing", version ? version() : 0);
  return 0;
}
"#;

/// cudarc tries the plain name in all directories before the name with a number. The program, the shim at its start, `check()` and
/// `exec` must use the same file.
#[e2e]
fn crate_library_names_are_tried() {
    let scratch = Scratch::new("names");
    let real = |release: &str| parts::cudnn(release).join("lib");
    // The layout of system packages: file names with a version, and a link with the plain name.
    let laid_out = |release: &str, link: &str| {
        let dir = scratch.join(format!("{release}-as-{link}"));
        fs::create_dir_all(&dir).expect("a directory can be made");
        for stem in ["libcudnn", "libcudnn_graph", "libcudnn_ops"] {
            fs::copy(real(release).join(format!("{stem}.so.9")), dir.join(format!("{stem}.so.{release}")))
                .expect("a copy");
        }
        std::os::unix::fs::symlink(format!("libcudnn.so.{release}"), dir.join(link)).expect("a link can be made");
        dir
    };
    let mut manifest = manifest("demo", version("9.15.1"), Linkage::Dlopened);
    let endings = vec![".so".to_owned(), ".so.9".to_owned()];
    manifest.opens.push(Opens { by: "cudarc 0.19.10".to_owned(), libraries: vec!["cudnn".to_owned()], endings });
    manifest.sealed = true;
    let program = scratch.join("program");
    NATIVE.guarded("tries", &program, &[descriptor(&manifest)], TRIES, &[]);
    let (older, newer) = ("9.1.0", "9.15.1");
    for (plain, numbered, status, opens) in [
        (Some(newer), Some(older), 0, "libcudnn.so opens 91501\n"),
        (Some(older), Some(newer), 78, "libcudnn.so opens 90100\n"),
        (None, Some(older), 78, "libcudnn.so.9 opens 90100\n"),
        (None, Some(newer), 0, "libcudnn.so.9 opens 91501\n"),
        (Some(newer), None, 0, "libcudnn.so opens 91501\n"),
    ] {
        let plain = plain.map(|release| laid_out(release, "libcudnn.so"));
        let numbered = numbered.map(|release| laid_out(release, "libcudnn.so.9"));
        // The order of the directories must not matter.
        for dirs in [[&numbered, &plain], [&plain, &numbered]] {
            let path = std::env::join_paths(dirs.into_iter().flatten()).expect("paths without colons");
            let start = || NATIVE.call(&program).env("LD_LIBRARY_PATH", &path).dir(scratch.path());
            let unguarded = start().env("CUDAGUARD", "off").run().success();
            assert_eq!(unguarded.stdout, opens, "{path:?}");
            let guarded = start().run().expect(status);
            assert_eq!(guarded.stdout, if status == 0 { opens } else { "" }, "{path:?}: {guarded}");
            let executed =
                command::call(["exec", "--"]).arg(&program).env("LD_LIBRARY_PATH", &path).run().expect(status);
            for printed in [&guarded, &executed] {
                assert_eq!(printed.stderr.contains("CG202"), status != 0, "{path:?}: {printed}");
            }
            let asked = start().env("CUDAGUARD", "warn").arg("check").run().success();
            assert_eq!(asked.stdout, format!("check {}, {opens}", i32::from(status != 0)), "{path:?}");
        }
        for dir in plain.into_iter().chain(numbered) {
            fs::remove_dir_all(dir).expect("a directory can be removed");
        }
    }
}

/// The code of the engines and of `libcudnn_cnn` contains their release, which neither a file name nor a symbol shows. Engines
/// return `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH` if `libcudnn_graph` has another release.
#[e2e(slow)]
fn mixed_engines_are_refused() {
    const ENGINES: [&str; 2] = ["libcudnn_cnn.so.9", "libcudnn_engines_runtime_compiled.so.9"];
    let scratch = Scratch::new("engines");
    let program = scratch.join("program");
    NATIVE.program(&program, &[descriptor(&manifest("demo", version("9.1.0"), Linkage::Linked))], Some(9));
    for (whole, engines, mixed) in [
        ("9.1.0", "9.1.0", false),
        ("9.15.1", "9.15.1", false),
        ("9.28.0", "9.28.0", false),
        ("9.15.1", "9.1.0", true),
        ("9.1.0", "9.28.0", true),
    ] {
        let dir = scratch.join(format!("{engines} in {whole}"));
        fs::create_dir_all(&dir).expect("a directory can be made");
        let rest = ["libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_ops.so.9"].map(|file| (whole.to_owned(), file));
        for (part, file) in rest.into_iter().chain(ENGINES.map(|file| (format!("{engines}-engines"), file))) {
            let real = parts::cudnn(&part).join("lib").join(file);
            std::os::unix::fs::symlink(real, dir.join(file)).expect("a link can be made");
        }
        let call = |arguments: &[&str]| command::call(arguments).env("LD_LIBRARY_PATH", &dir);
        let outcome = call(&["probe", "--json"]).run().success();
        let host = outcome.json();
        for file in ENGINES {
            let parts = host["cudnn"][0]["parts"].as_array().expect("parts");
            let reported = parts.iter().find(|part| part["file"] == file).expect("it is there");
            assert_eq!(reported["version"], engines, "{host}");
        }
        let host = scratch.file("host.json", &outcome.stdout);
        let status = i32::from(mixed);
        let verified = [
            // cuDNN's kernels are a part of the program, and no GPU is visible here.
            call(&["verify", "--json"]).arg(&program).run().expect(if mixed { 1 } else { 2 }),
            command::call(["verify", "--json"]).arg(&program).arg("--host").arg(host).run().expect(status),
        ];
        let executed = call(&["exec", "--"]).arg(&program).run().expect(if mixed { 78 } else { 0 });
        let says = format!("cuDNN is mixed: {} is {engines}, the rest {whole}", ENGINES[1]);
        for printed in verified.map(|outcome| outcome.stdout).iter().chain([&executed.stderr]) {
            assert_eq!(printed.contains(&says), mixed, "{engines} in {whole}: {printed}");
        }
        let outcome = call(&["doctor"]).run();
        assert_eq!(outcome.stdout.contains("warning[CG206]"), mixed, "{outcome}");
        // The guard does not read megabytes of code at the start: it uses only symbols and file names, and does not detect the mix.
        let (outcome, _) = start("9.1.0", Linkage::Linked, &dir);
        let _ = outcome.success();
    }
}

/// Checks the CUDA release that cuDNN was built with, in the report of the shim and in `probe`.
#[e2e]
fn build_versions_are_recorded() {
    for (release, cuda) in [
        ("8.5.0", "11.7"),
        ("8.9.7", "12.2"),
        ("9.1.0", "12.4"),
        ("9.15.1", "13.0"),
        ("9.15.1-cu12", "12.9"),
        ("9.28.0", "13.5"),
    ] {
        let lib = parts::cudnn(release).join("lib");
        let built = release.split('-').next().expect("a release");
        let (_, report) = start(built, Linkage::Dlopened, &lib);
        assert_eq!(report["components"][0]["cudnn"]["cuda"], cuda, "{report}");
        let outcome = command::call(["probe", "--json"]).env("LD_LIBRARY_PATH", &lib).run().success();
        let host = outcome.json();
        assert_eq!(
            (&host["cudnn"][0]["cuda"], &host["cudnn"][0]["loader"]),
            (&cuda.into(), &serde_json::Value::Null),
            "{host}"
        );
    }
}
