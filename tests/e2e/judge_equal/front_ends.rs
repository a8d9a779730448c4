//! Checks that all front ends agree on one table of cases: `verify` and `exec` before the start, the report and the output of the
//! started program, and the results of `cudaguard_check()` (C) and `cudaguard::check()` (Rust) in it.

use std::fmt::Write as _;
use std::path::Path;

use cargo_cudaguard::host::machine::Machine as Described;
use cargo_cudaguard::host::machine::judge::{judge, together};
use cargo_cudaguard::knowledge::vendor::{CUDART, CUDNN};
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::finding::{self, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::Manifest;
use cudaguard_tests::{Call, command, e2e};
use serde_json::Value;

use crate::judge_equal::driver::{
    Case, Machine, Scene, T4, cudart, cudnn_of, in_world, need_worlds, plain, r535, written,
};
use crate::judge_equal::fixture::{NATIVE, descriptor};

/// The parts of a finding that must be equal in all front ends.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
pub(super) struct ReportedFinding {
    pub(super) code: String,
    severity: String,
    says: String,
    hint: String,
}

impl ReportedFinding {
    fn of(finding: &Finding) -> Self {
        Self::new(&finding.code.to_string(), finding.severity.name(), &finding.message, &finding.hint)
    }

    fn new(code: &str, severity: &str, message: &str, hint: &str) -> Self {
        // The command knows the search path of the loader, so its fixes for a wrong libcuda are more precise.
        let hint = if ["CG304", "CG305", "CG306", "CG322"].contains(&code) { "" } else { hint };
        let [code, severity, says, hint] = [code, severity, message, hint].map(str::to_owned);
        Self { code, severity, says, hint }
    }

    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error.name()
    }

    pub(super) fn list(findings: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let one = |one: &Value| {
            Self::new(&text(&one["code"]), &text(&one["severity"]), &text(&one["message"]), &text(&one["hint"]))
        };
        findings.as_array().expect("findings").iter().map(one).collect()
    }
}

/// Checks that the text contains all these refusals, in this order.
pub(super) fn are_printed(refusals: &[&ReportedFinding], text: &str) -> bool {
    // Facts are on indented lines. Only the first refusal is printed with its facts.
    let printed = |(at, reported): (usize, &&ReportedFinding)| match reported.says.split_once('\n') {
        Some((sentence, _)) if at > 0 => sentence.to_owned(),
        _ => reported.says.replace('\n', "\n  "),
    };
    let places: Vec<_> = refusals.iter().enumerate().map(|reported| text.find(&printed(reported))).collect();
    places.iter().all(Option::is_some)
        && places.is_sorted()
        && refusals.iter().all(|reported| text.contains(&reported.hint))
}

pub(super) fn sorted(reported: &[ReportedFinding]) -> Vec<ReportedFinding> {
    let mut reported = reported.to_vec();
    reported.sort();
    reported
}

/// A program in its fake host, and the findings that each front end must report about it.
struct Rehearsal<'a> {
    name: &'a str,
    scene: Scene,
    variables: Vec<(&'static str, &'static str)>,
    expected: Vec<Finding>,
}

impl Rehearsal<'_> {
    fn call(&self, program: &Path, arguments: &[&str]) -> Call {
        let call = in_world(self.scene.scratch.path()).arg(program).args(arguments);
        let call = call.env("LD_LIBRARY_PATH", self.scene.scratch.join("lib"));
        // The command abbreviates the home directory as `~`, and this clone may be in it.
        let call = call.env("CUDAGUARD_REPORT", self.scene.report_path()).env("HOME", "/nowhere");
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    /// Returns the differences, with the front end of each.
    fn differences(&self) -> String {
        let mut differences = String::new();
        let verdict = Verdict::from_findings(&self.expected);
        let reported: Vec<ReportedFinding> = self.expected.iter().map(ReportedFinding::of).collect();
        let mut differ = |front_end: &str, heard: &dyn std::fmt::Debug| {
            let _ = writeln!(
                differences,
                "{}: the judge returns {verdict:?} {reported:#?}\n  {front_end}: {heard:#?}",
                self.name
            );
        };
        let program = self.scene.program.display().to_string();

        let started = self.call(&self.scene.program, &[]).run();
        let report = self.scene.report();
        let heard = ReportedFinding::list(&report["findings"]);
        let at_start = self.expected.iter().filter(|finding| finding.code.is_judged_at_start());
        let at_start: Vec<ReportedFinding> = at_start.map(ReportedFinding::of).collect();
        if report["verdict"] != verdict.name() || sorted(&heard) != sorted(&at_start) {
            differ("the report of the start", &(&report["verdict"], heard));
        }
        let refusals: Vec<&ReportedFinding> = reported.iter().filter(|reported| reported.is_error()).collect();
        let text_printed = |text: &str| are_printed(&refusals, text);
        let status = if refusals.is_empty() { 0 } else { 78 };
        if started.status() != Some(status) || !text_printed(&started.stderr) {
            differ("the start", &(started.status(), started.stderr));
        }

        let outcome = self.call(command::path(), &["verify", "--json", &program]).run();
        let answer = outcome.json();
        let mut heard = ReportedFinding::list(&answer["findings"]);
        // The judge does not examine what cuDNN opens later: the fake one comes without cuBLASLt and NVRTC.
        heard.retain(|reported| reported.code != "CG234");
        if answer["verdict"] != verdict.name() || sorted(&heard) != sorted(&reported) {
            differ("verify", &(&answer["verdict"], heard));
        }

        // `doctor` reports more: problems of the machine that do not depend on the program.
        let outcome = self.call(command::path(), &["doctor", "--json", &program]).run();
        let answer = outcome.json();
        let heard = ReportedFinding::list(&answer["findings"]);
        if answer["verdict"] != verdict.name() || !reported.iter().all(|reported| heard.contains(reported)) {
            differ("doctor", &(&answer["verdict"], heard));
        }

        let outcome = self.call(command::path(), &["exec", "--", &program]).run();
        if outcome.status() != Some(status) || !text_printed(&outcome.stderr) {
            differ("exec", &(outcome.status(), outcome.stderr));
        }

        // Calls the API in the program, which starts because of `CUDAGUARD=warn`.
        let number = match verdict {
            Verdict::Runs => 0,
            Verdict::Refused => 1,
            Verdict::Unknown => 2,
        };
        let worst = self.expected.iter().find(|finding| Verdict::from_findings([*finding]) == verdict && number != 0);
        let words = worst
            .map_or_else(String::new, |finding| format!("[{}] {}", finding.code, ReportedFinding::of(finding).says));
        let outcome = self.call(&self.scene.program, &["check"]).env("CUDAGUARD", "warn").run();
        if !outcome.stdout.starts_with(&format!("check {number} {words}")) {
            differ("cudaguard_check()", &outcome.stdout);
        }
        differences
    }
}

/// Returns the machine as facts, with the paths of the files in this scene.
fn described_in(machine: &Machine, scene: &Scene) -> Described {
    let mut described = machine.described();
    let path = |file: &str| Some(scene.scratch.join("lib").join(file).display().to_string());
    if let Some(driver) = &mut described.driver {
        driver.library = path("libcuda.so.1");
    }
    for library in described.libraries.entry(CUDNN.key).or_default() {
        library.path = path(&format!("libcudnn.so.{}", library.major().unwrap_or_default()));
        library.by = Some("LD_LIBRARY_PATH".to_owned());
    }
    for library in described.libraries.entry(CUDART.key).or_default() {
        library.path = path("libcudart.so.12");
    }
    described
}

/// Every fourth machine of the other table, which goes through the judge completely. Machines whose driver does not respond are
/// left out: for these, `verify` and `exec` report a failure of the machine, for which the judge has no finding.
#[e2e(slow)]
fn front_ends_agree() {
    need_worlds();
    let mut cases: Vec<Case> = written().into_iter().filter(|case| !case.machine.is_silent()).step_by(4).collect();
    let differences: String = cases
        .iter_mut()
        .map(|case| {
            // For a sealed note, the requirements of the code in the file are not read again.
            case.manifests.iter_mut().for_each(|manifest| manifest.sealed = true);
            let scene = Scene::of(&NATIVE, &case.manifests, &case.machine);
            let machine = described_in(&case.machine, &scene);
            let (host, cudnn) = (machine.host("this machine"), cudnn_of(&machine));
            let mut expected: Vec<Finding> =
                case.manifests.iter().flat_map(|manifest| judge(manifest, &host, cudnn)).collect();
            expected.extend(together(&case.manifests, &host, cudnn));
            finding::sort_findings(&mut expected);
            let variables = case.machine.variables.clone();
            Rehearsal { name: &case.name, scene, variables, expected }.differences()
        })
        .collect();
    assert!(differences.is_empty(), "of {} cases:\n{differences}", cases.len());
}

/// A modification of a note.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Covers notes that front ends once read in different ways: notes of a later cudaguard, damaged notes, and notes with rows of
/// unknown kinds.
#[e2e(slow)]
fn notes_of_other_writers_are_read() {
    need_worlds();
    let mut manifest = plain();
    manifest.sealed = true;
    let of = Values::default().with("component", &manifest.component);
    let mut with_row = cudart(manifest.clone(), 12);
    with_row.sealed = true;
    let newer = |bytes: &mut Vec<u8>| bytes[8] = 2;
    let damaged = |bytes: &mut Vec<u8>| bytes[0] ^= 1;
    // Rows begin at byte 44, each with its kind.
    let unknown = |bytes: &mut Vec<u8>| bytes[44] = 99;
    let file = Values::default().with("file", "program").with("why", "it does not begin with `cudagrd`");
    let cases: [(&str, &Manifest, Change<'_>, Finding); 4] = [
        ("a newer note", &manifest, &newer, MessageTemplate::NoteNewer.to_finding(&of)),
        ("a damaged note", &manifest, &damaged, MessageTemplate::NoteDamaged.to_finding(&file)),
        (
            "rows of unknown kinds only",
            &with_row,
            &unknown,
            MessageTemplate::NoteNewerRows.to_finding(&of.clone().with("kinds", 99)),
        ),
        (
            "rows of unknown kinds in a newer note",
            &with_row,
            &|bytes| (bytes[8], bytes[44]) = (2, 99),
            MessageTemplate::NoteNewer.to_finding(&of),
        ),
    ];
    let mut differences = String::new();
    for (name, manifest, change, expected) in cases {
        let machine = r535(&[T4]);
        let scene = Scene::new(&NATIVE, manifest, &machine);
        let mut note = descriptor(manifest);
        change(&mut note);
        NATIVE.program(&scene.program, std::slice::from_ref(&note), None);
        let rehearsal = Rehearsal { name, scene, variables: Vec::new(), expected: vec![expected] };
        differences += &rehearsal.differences();
    }
    assert!(differences.is_empty(), "{differences}");
}
