//! Switches of users who start a program (`CUDAGUARD`, `CUDAGUARD_REPORT`), and of those who build it (`[runtime]`).

use std::fs;

use cudaguard_tests::{Outcome, Test, fake_library, parts, tests};
use serde_json::Value;

use super::fixture::{build, program, runs, start};

pub(crate) fn tests() -> Vec<Test> {
    tests![cudaguard_variable_overrides_manifest, report_lists_passed_checks]
}

fn warned(outcome: Outcome) {
    let outcome = outcome.success();
    assert!(outcome.stdout.starts_with("main: "), "main has run: {outcome}");
    assert!(outcome.stderr.contains("8.1.0") && outcome.stderr.contains("8.0.5"), "it is said: {outcome}");
}

fn cudaguard_variable_overrides_manifest() {
    let (strict, lenient) = (program("strict"), program("lenient"));
    lenient.write("cudaguard.toml", "[runtime]\nmismatch = \"warn\"\n");
    for (project, name) in [(&strict, "strict"), (&lenient, "lenient")] {
        let (built, older) = (project.sibling().join("cudnn-8.1.0"), project.sibling().join("cudnn-8.0.5"));
        fake_library::cudnn(&built, (8, 1, 0));
        fake_library::cudnn(&older, (8, 0, 5));
        build(project, &built);
        let program = project.built(&format!("release/{name}"));
        let call = || start(&program, &older);
        runs(call().env("CUDAGUARD", "off").run(), 8005);
        warned(call().env("CUDAGUARD", "warn").run());
        let enforced = call().env("CUDAGUARD", "enforce").run().expect(78);
        assert_eq!(enforced.stdout, "");
        if name == "strict" {
            let _ = call().run().expect(78);
            let _ = call().env("CUDAGUARD", "an unknown word").run().expect(78);
            let _ = call().env("CUDAGUARD", "").run().expect(78);
        } else {
            warned(call().run());
        }
        for word in ["off", "warn", "enforce"] {
            runs(start(&program, &built).env("CUDAGUARD", word).run(), 8100);
        }
    }
}

fn report_lists_passed_checks() {
    let project = program("reporting");
    let built = parts::cudnn("9.15.1");
    build(&project, &built);
    let program = project.built("release/reporting");
    let report = project.sibling().join("report of a start.json");
    let read = || -> Value {
        let text = fs::read_to_string(&report).expect("a report is left");
        fs::remove_file(&report).expect("a report can be removed");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    runs(start(&program, &built).env("CUDAGUARD_REPORT", &report).run(), 91501);
    let passed = read();
    assert_eq!(passed["verdict"], "runs", "{passed}");
    // The test parts contain only three of cuDNN's libraries.
    let codes: Vec<_> =
        passed["findings"].as_array().expect("findings").iter().map(|one| one["code"].as_str()).collect();
    assert_eq!(codes, [Some("CG204")], "{passed}");
    let refused = start(&program, &parts::cudnn("9.1.0")).env("CUDAGUARD_REPORT", &report).run().expect(78);
    let reported = read();
    assert_eq!(reported["verdict"], "refused", "{reported}");
    let findings = reported["findings"].as_array().expect("findings");
    let finding = findings.iter().find(|finding| finding["severity"] == "error").expect("an error");
    assert_eq!(finding["code"], "CG202", "{reported}");
    assert!(finding["message"].as_str().is_some_and(|text| text.contains("9.1.0")), "{reported}");
    assert!(refused.stderr.contains("CG202"), "{refused}");
    let nowhere = project.sibling().join("no such folder/report.json");
    runs(start(&program, &built).env("CUDAGUARD_REPORT", nowhere).run(), 91501);
}
