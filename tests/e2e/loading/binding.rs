//! Symbol binding: compares the prediction with the real loader, for each way to import and to export a symbol.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_cudaguard::host::machine::DriverProbe;
use cargo_cudaguard::start;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard_tests::run::unless_busy;
use cudaguard_tests::{Scratch, e2e, tools};

/// The library that programs are linked with, its versions, and those of a library that has neither function nor variable of the second.
const WHOLE: &str = "int f; int g(void) { return 1; } int v = 2;";
const VERSIONS: &str = "V_1 { global: f; }; V_2 { global: g; v; } V_1;";
const LACKING: &str = "V_1 { global: f; }; V_2 { global: h; } V_1;";

/// Variants of the library: directory, source, versions and further arguments. Programs are linked with the first.
const HAVE: [(&str, &str, &str, &[&str]); 17] = [
    ("all", WHOLE, VERSIONS, &[]),
    ("lacks it", "int f; int h;", LACKING, &[]),
    ("lacks the version", "int f;", "V_1 { global: f; };", &[]),
    (
        "other version",
        "int f; int h; int g(void) { return 1; } int v = 2;",
        "V_1 { global: f; g; v; }; V_2 { global: h; } V_1;",
        &[],
    ),
    ("no versions", WHOLE, "", &[]),
    ("no versions and lacks it", "int f;", "", &[]),
    ("old hash table", WHOLE, VERSIONS, &["-Wl,--hash-style=sysv"]),
    ("old hash table and lacks it", "int f; int h;", LACKING, &["-Wl,--hash-style=sysv"]),
    ("both hash tables", WHOLE, VERSIONS, &["-Wl,--hash-style=both"]),
    ("weak", "int f; __attribute__((weak)) int g(void) { return 1; } __attribute__((weak)) int v = 2;", VERSIONS, &[]),
    (
        "protected",
        "int f; __attribute__((visibility(\"protected\"))) int g(void) { return 1; } int v = 2;",
        VERSIONS,
        &[],
    ),
    ("a variable", "int f; int g; int v;", VERSIONS, &[]),
    (
        "indirect",
        "int f; static int real(void) { return 1; } static void *pick(void) { return (void *)real; }\n\
      int g(void) __attribute__((ifunc(\"pick\"))); int v = 2;",
        VERSIONS,
        &[],
    ),
    (
        "hidden version",
        "int f; int new_g(void) { return 1; } int v = 2; __asm__(\".symver new_g,g@V_2\");",
        VERSIONS,
        &[],
    ),
    (
        "two versions",
        "int f; int old_g(void) { return 0; } int new_g(void) { return 1; } int v = 2;\n\
      __asm__(\".symver old_g,g@V_1\"); __asm__(\".symver new_g,g@@V_2\");",
        VERSIONS,
        &[],
    ),
    (
        "two others",
        "int f; int h; int old_g(void) { return 0; } int new_g(void) { return 1; } int v = 2;\n\
      __asm__(\".symver old_g,g@V_1\"); __asm__(\".symver new_g,g@@V_3\");",
        "V_1 { global: f; v; }; V_2 { global: h; } V_1; V_3 { global: g; } V_2;",
        &[],
    ),
    (
        "undefined itself",
        "int f; int h; int g(void); int use_it(void) { return g(); }",
        "V_1 { global: f; use_it; }; V_2 { global: h; } V_1;",
        &[],
    ),
];

/// Variants of the import.
const WANT: [(&str, &str, &[&str]); 6] = [
    ("call", "int g(void); int use(int n) { return n > 9 ? g() : 0; }", &[]),
    ("call without a table", "int g(void); int use(int n) { return n > 9 ? g() : 0; }", &["-fno-plt"]),
    ("address", "int g(void); int (*held)(void) = g; int use(int n) { return n > 9 ? held() : 0; }", &[]),
    ("compared", "int g(void); int use(int n) { return n > 9 && (void *)g == (void *)use; }", &[]),
    ("weak", "__attribute__((weak)) int g(void); int use(int n) { return n > 9 ? g() : 0; }", &[]),
    ("variable", "extern int v; int use(int n) { return n > 9 ? v : 0; }", &[]),
];

const MAIN: &str = "int use(int); int main(int n, char **a) { (void)a; return use(n); }";

/// Directory with all files of a test.
struct Fixture {
    dir: Scratch,
    linker: &'static str,
}

impl Fixture {
    /// Creates the libraries. Libraries that lack a symbol import it from a second library.
    fn new(linker: &'static str) -> Self {
        let fixture = Self { dir: Scratch::without_blanks(&format!("binding-{linker}")), linker };
        for (name, source, versions, arguments) in HAVE {
            fixture.library(&format!("{name}/libx.so.1"), source, versions, arguments);
            fixture.library(&format!("plain {name}/libx.so.1"), &source.replace("__asm__", "// "), "", &[]);
        }
        let whole = "int g(void) { return 1; } int v = 2;";
        fixture.library("more/libmore.so", whole, "", &[]);
        fixture.library("more/libversioned.so", whole, "V_2 { global: g; v; };", &[]);
        let more = fixture.at("more/libmore.so").display().to_string();
        for (name, versions) in [("lacks it", LACKING), ("no versions and lacks it", "")] {
            let path = format!("{name}, another has it/libx.so.1");
            fixture.library(
                &path,
                "int f; int h;",
                versions,
                &[&more, "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN/../more"],
            );
        }
        fixture
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn gcc(&self, output: &str, source: &str, arguments: &[&str]) {
        let (output, file) = (self.at(output), self.at("source.c"));
        std::fs::create_dir_all(output.parent().unwrap()).unwrap();
        std::fs::write(&file, source).unwrap();
        // The order of libraries and files matters: the arguments follow the source.
        let mut command = Command::new("gcc");
        command.arg(format!("-fuse-ld={}", self.linker)).arg("-w").arg(&file).arg("-o").arg(&output).args(arguments);
        let done = command.arg("-Wl,--allow-shlib-undefined").output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn library(&self, path: &str, source: &str, versions: &str, arguments: &[&str]) {
        let script = self.dir.file("versions.map", versions);
        let script = format!("-Wl,--version-script={}", script.display());
        let soname = format!("-Wl,-soname,{}", path.rsplit('/').next().unwrap());
        let mut all = vec!["-shared", "-fPIC", "-nostdlib", &soname];
        if !versions.is_empty() {
            all.push(&script);
        }
        all.extend(arguments);
        self.gcc(path, source, &all);
    }

    /// Returns programs (name, path) that import the symbol, directly or through a library, in each variant.
    fn programs(&self, linked_with: &str) -> Vec<(String, PathBuf)> {
        let library = self.at(&format!("{linked_with}/libx.so.1")).display().to_string();
        let mut programs = Vec::new();
        for (want, source, flags) in WANT {
            for (when, bind) in [("lazy", "-Wl,-z,lazy"), ("now", "-Wl,-z,now")] {
                for (form, shape) in [("pie", ["-pie", "-fPIE"]), ("fixed", ["-no-pie", "-fno-pie"])] {
                    if (when, form) == ("now", "fixed") {
                        continue;
                    }
                    let name = format!("{linked_with} {want} {when} {form}");
                    let arguments = [flags, &shape, &[library.as_str(), bind, "-Wl,--no-as-needed"]].concat();
                    self.gcc(&name, &format!("{source}\n{MAIN}"), &arguments);
                    programs.push((name.clone(), self.at(&name)));
                }
                let middle = format!("{linked_with} middle {want} {when}/libmiddle.so");
                let arguments = [flags, &[library.as_str(), bind]].concat();
                self.library(&middle, source, "", &arguments);
                let name = format!("{linked_with} {want} {when} in a library");
                let middle = self.at(&middle);
                let rpath = format!("-Wl,-rpath,{}", middle.parent().unwrap().display());
                self.gcc(&name, MAIN, &[&middle.display().to_string(), "-Wl,-z,now", &rpath]);
                programs.push((name.clone(), self.at(&name)));
            }
        }
        programs
    }
}

fn started(program: &Path, variables: &BTreeMap<String, OsString>) -> (Option<i32>, String) {
    let start = || Command::new(program).env_clear().envs(variables).env("LC_ALL", "C").current_dir("/").output();
    let output = unless_busy(start).unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Number of comparisons, and number of programs that the loader stopped.
#[derive(Debug, Default)]
struct Count {
    all: usize,
    died: usize,
}

/// Returns the errors with which a program ends at its start with these variables.
fn errors_of(program: &Path, variables: BTreeMap<String, OsString>) -> Vec<Finding> {
    let env = Env::from_variables(variables, "/");
    let mut findings = start::start_here(program, &env, &DriverProbe::with_current_exe());
    // The program may never call such a function.
    findings.retain(|finding| finding.fact("later").is_none());
    findings
}

/// Fails if the prediction differs from the real start.
fn hold(program: &(String, PathBuf), place: &str, variables: &BTreeMap<String, OsString>, count: &mut Count) {
    let (name, path) = program;
    let (status, printed) = started(path, variables);
    let findings = errors_of(path, variables.clone());
    let ours: String = findings.iter().map(Finding::render).collect::<Vec<_>>().join("\n");
    let scene = format!("{name}; {place}\nthe loader ({status:?}): {printed}\nforetold: {ours}");
    count.all += 1;
    if status == Some(0) {
        assert!(findings.is_empty(), "a false alarm: {scene}");
        return;
    }
    count.died += 1;
    assert!(!findings.is_empty(), "not foretold: {scene}");
    let codes: BTreeSet<Code> = findings.iter().map(|finding| finding.code).collect();
    let (code, word) = match printed.split_once("undefined symbol: ") {
        Some((_, rest)) => (Code::LibraryLacksSymbol, rest.split(|c: char| !c.is_alphanumeric()).next().unwrap()),
        None if printed.contains("version `") => (Code::LibraryTooOld, "V_2"),
        None => (Code::LibraryLacksSymbol, "g"),
    };
    assert_eq!(codes, BTreeSet::from([code]), "{scene}");
    assert!(ours.contains(word), "{word} is not named: {scene}");
    let after = |mark: &str| printed.split(mark).nth(1).map(|rest| rest.split([':', ')']).next().unwrap_or_default());
    let binder = after("symbol lookup error: ").or_else(|| after("not found (required by "));
    assert!(binder.is_none_or(|binder| ours.contains(binder)), "{binder:?} is not named: {scene}");
}

fn matrix(linker: &'static str, linked_with: &str, places: &[(&str, &str, &str)]) -> Count {
    let fixture = Fixture::new(linker);
    let mut count = Count::default();
    for program in fixture.programs(linked_with) {
        for (dir, preload, bind_now) in places {
            let plain = if linked_with == "all" || dir.contains(", another") { "" } else { "plain " };
            let at = |path: &str| fixture.at(path).into_os_string();
            let mut variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), at(&format!("{plain}{dir}")))]);
            if !preload.is_empty() {
                variables.insert("LD_PRELOAD".to_owned(), at(preload));
            }
            if !bind_now.is_empty() {
                variables.insert("LD_BIND_NOW".to_owned(), (*bind_now).into());
            }
            let place = format!("{plain}{dir}, preloaded: {preload}, LD_BIND_NOW={bind_now}");
            hold(&program, &place, &variables, &mut count);
        }
    }
    println!("{linker}, {linked_with}: {} starts, {} stopped by the loader", count.all, count.died);
    count
}

/// Returns the cases: variant of the library, preloaded library, `LD_BIND_NOW`.
fn places() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut places: Vec<_> = HAVE.iter().map(|(name, ..)| (*name, "", "")).collect();
    places.extend([("all", "", "1"), ("lacks it", "", "1"), ("other version", "", "1"), ("two others", "", "1")]);
    for preload in ["more/libmore.so", "more/libversioned.so"] {
        places.extend([("lacks it", preload, ""), ("no versions and lacks it", preload, "1")]);
        places.extend([("other version", preload, ""), ("no versions", preload, "")]);
    }
    places.extend([("lacks it, another has it", "", ""), ("no versions and lacks it, another has it", "", "")]);
    places
}

#[e2e(slow)]
fn versioned_symbols_bind() {
    let count = matrix("bfd", "all", &places());
    assert!(count.all > 900 && count.died > 200, "{count:?}");
}

#[e2e(slow)]
fn unversioned_symbols_bind() {
    let count = matrix("bfd", "plain all", &places());
    assert!(count.all > 900 && count.died > 100, "{count:?}");
}

#[e2e(slow)]
fn other_linkers_bind() {
    let places =
        [("all", "", ""), ("lacks it", "", ""), ("lacks the version", "", ""), ("no versions and lacks it", "", "1")];
    let mut missing = Vec::new();
    for linker in ["gold", "lld", "mold"] {
        let program = format!("ld.{linker}");
        if tools::find(&program).is_none() {
            missing.push(program);
            continue;
        }
        let count = matrix(linker, "all", &places);
        assert!(count.died > 50, "{linker}: {count:?}");
    }
    tools::done_without(&missing);
}

#[e2e]
fn binding_needs_no_section_headers() {
    let fixture = Fixture::new("bfd");
    let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), fixture.at("lacks it").into_os_string())]);
    let mut count = Count::default();
    for (name, path) in fixture.programs("all") {
        let mut bytes = std::fs::read(&path).unwrap();
        // e_shoff, e_shnum, e_shstrndx
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        std::fs::write(&path, bytes).unwrap();
        hold(&(name, path), "no section headers", &variables, &mut count);
    }
    assert!(count.died > 10, "{count:?}");
}

/// A library is loaded by an unknown program, which may provide the symbols that the library imports without a version.
#[e2e]
fn library_alone_binds() {
    let fixture = Fixture::new("bfd");
    let library = fixture.at("all/libx.so.1").display().to_string();
    let source = format!("{}\nint of_the_program(void); int ask(void) {{ return of_the_program(); }}", WANT[0].1);
    fixture.library("alone/libalone.so", &source, "", &[&library, "-Wl,-z,now"]);
    for (dir, lacks) in [("all", false), ("lacks it", true)] {
        let variables = BTreeMap::from([("LD_LIBRARY_PATH".to_owned(), fixture.at(dir).into_os_string())]);
        let findings = errors_of(&fixture.at("alone/libalone.so"), variables);
        let codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, if lacks { vec![Code::LibraryLacksSymbol] } else { vec![] }, "{findings:?}");
        assert!(findings.iter().all(|finding| !finding.message.contains("of_the_program")), "{findings:?}");
    }
}

#[e2e(slow)]
fn system_programs_bind() {
    let env = Env::from_variables(BTreeMap::from([("LD_BIND_NOW".to_owned(), "1".into())]), "/");
    let mut seen = 0;
    for dir in ["/usr/bin", "/usr/sbin"] {
        // A quarter of more than a thousand programs.
        for file in std::fs::read_dir(dir).unwrap().step_by(4).map(|file| file.unwrap().path()) {
            let Ok(graph) = cargo_cudaguard::binary::loader::resolve_program(&file, &env) else { continue };
            if graph.interpreter.is_some() && graph.unresolved_requests().count() == 0 {
                let missing = graph.missing_symbols(true);
                assert!(missing.is_empty(), "{}: {missing:?}", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "only {seen} programs were looked at");
}
