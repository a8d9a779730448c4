//! Reports of several processes and of several guards in one process: one line of JSON each.

use std::fs;
use std::path::Path;
use std::thread;

use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard_tests::{e2e, tools};
use serde_json::Value;

use super::fixture::{NATIVE, descriptor, manifest, version};
use super::harmless::{Scene, built};

const PROCESSES: usize = 64;

/// Returns the reports of a file: one per line.
fn read(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))).collect()
}

/// Returns the file names in the directory of a scene that start with this prefix.
fn names(scene: &Scene, start: &str) -> Vec<String> {
    let entries = fs::read_dir(scene.scratch.path()).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    names.filter(|name| name.starts_with(start)).collect()
}

fn at_once(scene: &Scene, report: &str) {
    thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| scene.call(&scene.program).env("CUDAGUARD_REPORT", report).run().success());
        }
    });
}

#[e2e]
fn concurrent_reports_stay_intact() {
    let scene = Scene::right();
    at_once(&scene, "report.json");
    let reports = read(&scene.scratch.join("report.json"));
    assert_eq!(reports.len(), PROCESSES);
    assert!(reports.iter().all(|report| report["verdict"] == "runs"), "{reports:?}");
}

#[e2e]
fn process_pattern_creates_one_file() {
    let scene = Scene::right();
    at_once(&scene, "report-%h-%p-%.json");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let files = names(&scene, "report-");
    assert_eq!(files.len(), PROCESSES, "{files:?}");
    for file in files {
        let [report] = &read(&scene.scratch.join(&file))[..] else { panic!("{file} has several reports") };
        assert_eq!(report["host"], host.trim());
        assert_eq!(file, format!("report-{}-{}-%.json", host.trim(), report["pid"]));
    }
}

/// Loads its arguments, and calls each of them and itself as often as an argument requests.
const ASKS: &str = r#"
#include <cudaguard.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int times, k;
  for (k = 2; k < argc; k++) {
    void *library = dlopen(argv[k], RTLD_NOW);
    if (!library) { puts(dlerror()); return 3; }
    for (times = atoi(argv[1]); times > 0; times--) ((int (*)(void))dlsym(library, "ours"))();
  }
  for (times = atoi(argv[1]); times > 0; times--) cudaguard_check();
  return 0;
}
"#;
const OURS: &str = "#include <cudaguard.h>\nint ours(void) { return cudaguard_check(); }\n";

fn named(name: &str) -> Manifest {
    manifest(name, version("9.15.1"), Linkage::Linked)
}

/// Each guard reports its start. Later calls of the check add nothing.
#[e2e]
fn each_guard_appends_a_line() {
    let scene = Scene::right();
    let libraries = ["one", "two"].map(|name| {
        let library = scene.scratch.join(format!("lib{name}.so"));
        NATIVE.guarded(
            "reports-library",
            &library,
            &[descriptor(&named(name))],
            OURS,
            &["-shared", "-fPIC"].map(str::to_owned),
        );
        library
    });
    let (guarded, plain) = (scene.scratch.join("asks"), scene.scratch.join("plain"));
    let linked =
        ["-Wl,--no-as-needed".to_owned(), scene.lib().join("libcudnn.so.9").display().to_string(), "-ldl".to_owned()];
    NATIVE.guarded("reports-asks", &guarded, &[descriptor(&built())], ASKS, &linked);
    NATIVE.bare("reports-plain", &plain, &[], ASKS, &linked);
    for (program, expected) in
        [(&guarded, vec![&guarded, &libraries[0], &libraries[1]]), (&plain, libraries.iter().collect())]
    {
        for times in ["0", "3"] {
            let file = scene.scratch.join("report.json");
            let _ = fs::remove_file(&file);
            let call = scene.call(program).arg(times).args(&libraries).env("CUDAGUARD_REPORT", "report.json");
            let outcome = call.run().success();
            let reports = read(&file);
            let files: Vec<_> =
                reports.iter().map(|report| Path::new(report["file"].as_str().expect("a file"))).collect();
            assert_eq!(files, expected, "{outcome}");
            for report in &reports {
                let role = if report["file"] == guarded.to_str().expect("UTF-8") { "program" } else { "library" };
                assert_eq!((&report["role"], &report["action"]), (&role.into(), &"start".into()), "{report:#}");
                assert_eq!((&report["pid"], &report["started"]), (&reports[0]["pid"], &reports[0]["started"]));
                assert!(
                    report["started"].as_str().is_some_and(|ticks| ticks.parse::<u64>().is_ok_and(|ticks| ticks > 0))
                );
            }
        }
    }
}

/// The log keeps its contents under each of these names, and the output of the program follows.
#[e2e]
fn log_is_appended() {
    for (scene, status, printed) in
        [(Scene::right(), 0, "main ran\n"), (Scene::older(), 78, "cudaguard: error[CG202]: ")]
    {
        for report in ["/dev/stderr", "/proc/self/fd/1", "log", "link"] {
            let script = "echo before >log; ln -sf log link; exec ./program >>log 2>&1";
            let call = scene.call(Path::new("sh")).args(["-c", script]).env("CUDAGUARD_REPORT", report);
            let _ = call.run().expect(status);
            let log = fs::read_to_string(scene.scratch.join("log")).expect("a log");
            let parts = log.strip_prefix("before\n").and_then(|log| log.split_once('\n'));
            let (line, rest) = parts.unwrap_or_else(|| panic!("{report}: {log}"));
            let whole: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(whole["verdict"], if status == 0 { "runs" } else { "refused" });
            assert!(rest.starts_with(printed), "{report}: {log}");
        }
    }
}

/// An existing file gets a line. Without one, the program runs without a report.
#[e2e]
fn report_in_read_only_directory() {
    tools::need("setpriv");
    let scene = Scene::right();
    fs::create_dir(scene.scratch.join("closed")).expect("a folder");
    let file = scene.scratch.file("closed/report.json", "{}\n");
    // Root may write everywhere, unless this capability is removed.
    let script = "chmod 555 closed; if [ $(id -u) = 0 ]; then set -- setpriv --bounding-set=-dac_override \"$@\"; fi; \"$@\"; \
                  status=$?; chmod 755 closed; exit $status";
    for report in ["closed/report.json", "closed/other.json"] {
        let call = scene.call(Path::new("sh")).args(["-c", script, "sh", "./program"]);
        let outcome = call.env("CUDAGUARD_REPORT", report).run().success();
        assert_eq!(outcome.stdout, "main ran\n", "{outcome}");
        assert_eq!(fs::read_dir(scene.scratch.join("closed")).expect("a folder").count(), 1);
    }
    assert_eq!(read(&file)[1]["verdict"], "runs");
}
