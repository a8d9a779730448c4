//! The same on NVIDIA's own libraries.

use std::fs;
use std::path::Path;

use cudaguard::manifest::Linkage;
use cudaguard_tests::{Outcome, Scratch, Trial, parts, trials};

use crate::bed::{NATIVE, descriptor, manifest, version};

pub(crate) fn trials() -> Vec<Trial> {
    trials![nine, eight, loaded_at_run_time, a_loader_alone_is_refused_in_words, the_fetched_minimum_runs]
}

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
    let report = serde_json::from_str(&fs::read_to_string(report).expect("a report")).expect("JSON");
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

fn nine() {
    runs("9.15.1", Linkage::Linked, "9.15.1");
    runs("9.15.1", Linkage::Linked, "9.28.0");
    runs("9.1.0", Linkage::Linked, "9.15.1");
    refused("9.15.1", Linkage::Linked, "9.1.0");
    refused("9.28.0", Linkage::Linked, "9.15.1");
}

fn eight() {
    runs("8.1.0", Linkage::Linked, "8.9.7");
    runs("8.9.7", Linkage::Linked, "8.9.7");
    runs("8.5.0", Linkage::Linked, "8.9.7");
    refused("8.9.7", Linkage::Linked, "8.5.0");
}

fn loaded_at_run_time() {
    runs("9.15.1", Linkage::Dlopened, "9.15.1");
    runs("8.1.0", Linkage::Dlopened, "8.9.7");
    refused("9.15.1", Linkage::Dlopened, "9.1.0");
    refused("8.9.7", Linkage::Dlopened, "8.5.0");
}

fn a_loader_alone_is_refused_in_words() {
    for (built, inner) in [("9.15.1", "libcudnn_graph.so.9"), ("8.9.7", "libcudnn_ops_infer.so.8")] {
        for linkage in [Linkage::Linked, Linkage::Dlopened] {
            let lib = parts::cudnn(&format!("{built}-loader")).join("lib");
            let (outcome, _) = start(built, linkage, &lib);
            let outcome = outcome.expect(78);
            assert!(outcome.stderr.contains("error[CG204]") && outcome.stderr.contains(inner), "{outcome}");
            assert!(!outcome.stderr.contains("Could not load"), "cuDNN's own words went nowhere: {outcome}");
        }
    }
}

/// Loader and first inner library are enough to start with: what needs more says so itself.
fn the_fetched_minimum_runs() {
    let scratch = Scratch::new("minimum");
    for file in ["libcudnn.so.9", "libcudnn_graph.so.9"] {
        std::os::unix::fs::symlink(parts::cudnn("9.15.1").join("lib").join(file), scratch.join(file)).expect("a link");
    }
    let (outcome, report) = start("9.15.1", Linkage::Linked, scratch.path());
    let outcome = outcome.success();
    assert_eq!(outcome.stderr, "");
    assert_eq!(report["findings"][0]["severity"], "warning", "{report}");
}
