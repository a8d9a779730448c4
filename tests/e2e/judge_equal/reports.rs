//! Reports of several processes, in one file or in one file each, and of several guards in one process.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard_tests::{Call, Test, tests, tools};
use serde_json::Value;

use super::fixture::{NATIVE, descriptor, manifest, version};
use super::harmless::{LAUNCHER, Scene, built};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        #[slow]
        concurrent_reports_stay_intact,
        process_pattern_creates_one_file,
        late_library_extends_the_report,
        stale_report_is_replaced,
        longest_report_name_works,
        overlong_path_is_not_truncated,
        log_is_appended,
        report_in_read_only_directory,
        full_disk_keeps_old_report,
        killed_process_files_are_replaced,
        #[slow]
        kill_while_writing_keeps_report,
    ]
}

const PROCESSES: usize = 64;

fn read(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
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

/// A reader finds a complete report at any time.
fn concurrent_reports_stay_intact() {
    let scene = Scene::right();
    let (file, over) = (scene.scratch.join("report.json"), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !over.load(Ordering::Relaxed) {
                if file.exists() {
                    assert_eq!(read(&file)["verdict"], "runs");
                    seen += 1;
                }
            }
            seen
        });
        at_once(&scene, "report.json");
        over.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("it finds no other") > 0);
    });
    assert_eq!(names(&scene, "report"), ["report.json"]);
}

fn process_pattern_creates_one_file() {
    let scene = Scene::right();
    at_once(&scene, "report-%h-%p-%.json");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let files = names(&scene, "report-");
    assert_eq!(files.len(), PROCESSES, "{files:?}");
    for file in files {
        let report = read(&scene.scratch.join(&file));
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

fn late_library_extends_the_report() {
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
    for (program, first) in [(&guarded, &guarded), (&plain, &libraries[0])] {
        for times in ["0", "3"] {
            let call = scene.call(program).arg(times).args(&libraries).env("CUDAGUARD_REPORT", "report.json");
            let outcome = call.run().success();
            let report = scene.report();
            assert_eq!(report["file"], first.to_str().expect("UTF-8"), "{report:#}\n{outcome}");
            assert_eq!(report["role"], if program == first { "program" } else { "library" });
            assert_eq!(report["action"], if times == "0" { "start" } else { "checked" });
            let later: Vec<_> = report["loaded_later"].as_array().expect("a list").iter().collect();
            let files: Vec<_> = later.iter().map(|report| report["file"].as_str().expect("a file")).collect();
            let expected = libraries.iter().filter(|library| *library != first);
            assert!(expected.map(|library| library.to_str().expect("UTF-8")).eq(files.iter().copied()), "{files:?}");
            for library in later {
                assert_eq!((&library["role"], &library["pid"]), (&"library".into(), &report["pid"]), "{library:#}");
                assert_eq!(library["action"], report["action"]);
            }
        }
    }
}

/// A report of an earlier process is replaced, even if that process had the same process ID.
fn stale_report_is_replaced() {
    let scene = Scene::right();
    let _ = scene.call(&scene.program).env("CUDAGUARD_REPORT", "report.json").run().success();
    thread::sleep(Duration::from_millis(20)); // the kernel counts in hundredths of a second
    let first = scene.report();
    let forged = fs::read_to_string(scene.scratch.join("report.json")).expect("a report");
    let (pid, started) = (first["pid"].to_string(), first["started"].as_str().expect("a number"));
    assert!(started.parse::<u64>().is_ok_and(|ticks| ticks > 0), "{started}");
    fs::write(scene.scratch.join("forged"), forged.replace("loaded_later\":[\n", "loaded_later\":[\n{\"old\":1}\n"))
        .expect("a file");
    let script = format!("sed \"s/\\\"pid\\\":{pid}/\\\"pid\\\":$$/\" forged >report.json; exec ./program");
    let _ = scene.call(Path::new("sh")).args(["-c", &script]).env("CUDAGUARD_REPORT", "report.json").run().success();
    let report = scene.report();
    assert_ne!(report["started"], first["started"]);
    assert_eq!(report["loaded_later"], Value::Array(Vec::new()), "{report:#}");
}

fn longest_report_name_works() {
    let scene = Scene::right();
    let name = "r".repeat(255);
    for _ in 0..2 {
        let _ = scene.call(&scene.program).env("CUDAGUARD_REPORT", &name).run().success();
        assert_eq!(read(&scene.scratch.join(&name))["verdict"], "runs");
    }
    assert_eq!(names(&scene, "rrr"), [name]);
}

/// If the path were truncated to the maximum length, it would be the path of another file.
fn overlong_path_is_not_truncated() {
    const LONGEST: usize = 4095; // PATH_MAX, less its NUL
    let scene = Scene::right();
    let other = scene.scratch.file("report", "of somebody else");
    let long = format!("{}/report.json", "./".repeat((LONGEST - "/report".len()) / 2));
    assert_eq!(&long[LONGEST - "/report".len()..LONGEST], "/report");
    // The second path has an allowed length, but the temporary file next to it would have a longer path.
    for report in [&long, &long["./././.".len() + 1..]] {
        let _ = scene.call(&scene.program).env("CUDAGUARD_REPORT", report).run().success();
        assert_eq!(fs::read_to_string(&other).expect("it was written here"), "of somebody else");
    }
    assert_eq!(read(&scene.scratch.join("report.json"))["verdict"], "runs");
    assert_eq!(names(&scene, "report").len(), 2);
}

/// The log keeps its contents under each of these names, and the output of the program follows.
fn log_is_appended() {
    for (scene, status, printed) in
        [(Scene::right(), 0, "main ran\n"), (Scene::older(), 78, "cudaguard: error[CG202]: ")]
    {
        for report in ["/dev/stderr", "/proc/self/fd/1", "log", "link"] {
            let script = "echo before >log; ln -sf log link; exec ./program >>log 2>&1";
            let call = scene.call(Path::new("sh")).args(["-c", script]).env("CUDAGUARD_REPORT", report);
            let _ = call.run().expect(status);
            let log = fs::read_to_string(scene.scratch.join("log")).expect("a log");
            let parts = log.strip_prefix("before\n").and_then(|log| log.split_once("\n]}\n"));
            let (head, rest) = parts.unwrap_or_else(|| panic!("{report}: {log}"));
            let whole: Value = serde_json::from_str(&format!("{head}]}}")).expect("JSON");
            assert_eq!(whole["verdict"], if status == 0 { "runs" } else { "refused" });
            assert!(rest.starts_with(printed), "{report}: {log}");
            assert_eq!(names(&scene, "log"), ["log"]);
        }
    }
}

/// An existing file is written directly. Without one, the program runs without a report.
fn report_in_read_only_directory() {
    tools::need("setpriv");
    let scene = Scene::right();
    fs::create_dir(scene.scratch.join("closed")).expect("a folder");
    let file = scene.scratch.file("closed/report.json", "x".repeat(100_000));
    // Root may write everywhere, unless this capability is removed.
    let script = "chmod 555 closed; if [ $(id -u) = 0 ]; then set -- setpriv --bounding-set=-dac_override \"$@\"; fi; \"$@\"; \
                  status=$?; chmod 755 closed; exit $status";
    for report in ["closed/report.json", "closed/other.json"] {
        let call = scene.call(Path::new("sh")).args(["-c", script, "sh", "./program"]);
        let outcome = call.env("CUDAGUARD_REPORT", report).run().success();
        assert_eq!(outcome.stdout, "main ran\n", "{outcome}");
        assert_eq!(fs::read_dir(scene.scratch.join("closed")).expect("a folder").count(), 1);
    }
    assert_eq!(read(&file)["verdict"], "runs");
}

fn full_disk_keeps_old_report() {
    let scene = Scene::right();
    let source = scene.scratch.file("launcher.c", LAUNCHER);
    let launcher = scene.scratch.join("launcher");
    let _ = Call::new("cc").args(["-O1", "-w", "-o"]).arg(&launcher).arg(source).run().success();
    let start = |how: &str| {
        scene.call(&launcher).arg(how).arg(&scene.program).env("CUDAGUARD_REPORT", "report.json").run().success()
    };
    let _ = start("nothing");
    let first = scene.report();
    let _ = start("no-file-size");
    assert_eq!(scene.report(), first);
    assert_eq!(names(&scene, "report"), ["report.json"]);
}

/// The next process with the same process ID replaces the file.
fn killed_process_files_are_replaced() {
    let scene = Scene::right();
    let script = "echo half >report.json.$(uname -n).$$.new; exec ./program";
    let _ = scene.call(Path::new("sh")).args(["-c", script]).env("CUDAGUARD_REPORT", "report.json").run().success();
    assert_eq!((names(&scene, "report"), &scene.report()["verdict"]), (vec!["report.json".to_owned()], &"runs".into()));
}

fn kill_while_writing_keeps_report() {
    let scene = Scene::right();
    let report = scene.scratch.join("report.json");
    let mut round = 0;
    // A busy machine needs longer waits until a process is killed after it wrote the report.
    while round < 60 || !report.exists() {
        assert!(round < 2000, "no report in {round} rounds");
        let script = format!("./program & sleep 0.{round:04}; kill -9 $! 2>/dev/null; wait $!; true");
        let _ = scene.call(Path::new("bash")).args(["-c", &script]).env("CUDAGUARD_REPORT", "report.json").run();
        if report.exists() {
            assert_eq!(scene.report()["verdict"], "runs");
        }
        round += 1;
    }
}
