//! Functions that the machine's cuDNN lacks: the guard of a sealed program reports them, and the program never calls an
//! empty slot. The tests use real cuDNN, each linker, and each way in which a program uses a function.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_cudaguard::binary::elf::Elf;
use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::linked::seal::{LinkObservation, SealResult, seal_file};
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::version::Version;
use cudaguard_tests::run::unless_busy;
use cudaguard_tests::{Scratch, e2e, parts, places, snapshot, tools};

use super::guarded_programs::{self, Ended, library};

/// cuDNN has this function from 9.5 on.
const LACKED: &str = "cudnnBackendPopulateCudaGraph";
const CALLS: &str = "int cudnnBackendPopulateCudaGraph(void*, void*, void*); unsigned long cudnnGetVersion(void);\n\
    #include <stdio.h>\n\
    int main(int n, char **a) { printf(\"%lu\\n\", cudnnGetVersion()); fflush(stdout);\n\
    return n > 7 ? cudnnBackendPopulateCudaGraph(0, 0, 0) : 0; }\n";
const STORES: &str = "int cudnnBackendPopulateCudaGraph(void*, void*, void*); unsigned long cudnnGetVersion(void);\n\
    #include <stdio.h>\n\
    int (*held)(void*, void*, void*) = cudnnBackendPopulateCudaGraph;\n\
    int main(int n, char **a) { printf(\"%lu\\n\", cudnnGetVersion()); fflush(stdout);\n\
    return n > 7 ? held(0, 0, 0) : 0; }\n";

fn started(program: &Path, cudnn: &str, variables: &[(&str, &str)]) -> Ended {
    guarded_programs::started(program, &parts::cudnn(cudnn).join("lib"), variables)
}

fn sealed(program: &Path) {
    let binary = Binary::read(program).unwrap();
    assert_eq!(
        seal_file(program, None, &LinkObservation::from_binary(&binary)),
        Ok(SealResult { written: 1, ..SealResult::default() })
    );
}

fn made_weak(program: &Path) -> usize {
    let data = fs::read(program).unwrap();
    Elf::parse(&data).unwrap().dynamic_symbols().filter(|symbol| symbol.made_weak).count()
}

/// Code that runs before the guard could call an empty slot, so its symbols stay strong, and the dynamic linker names a
/// missing function.
#[e2e]
fn early_code_keeps_strong_symbols() {
    let dir = Scratch::new("early code");
    let objects = guards(&dir, BUILT);
    let chosen = "static int one(void) { return 1; }\nstatic int (*pick(void))(void) { return one; }\n\
                  int chosen(void) __attribute__((ifunc(\"pick\")));\nint (*used)(void) = chosen;\n";
    let in_array = "static void early(void) {}\n\
                    __attribute__((section(\".preinit_array\"), used)) static void (*const at)(void) = early;\n";
    let first = "__attribute__((constructor(100))) static void early(void) {}\n";
    let later = "__attribute__((constructor(102))) static void later(void) {}\n";
    for (what, text, option, weak) in [
        ("a later constructor", later, "-pie", true),
        ("a later constructor, at a fixed address", later, "-no-pie", true),
        ("packed relocations", later, "-Wl,-z,pack-relative-relocs", true),
        ("an earlier constructor", first, "-pie", false),
        ("an earlier constructor, at a fixed address", first, "-no-pie", false),
        (".preinit_array", in_array, "-pie", false),
        ("an IFUNC", chosen, "-pie", false),
        ("an initialization function", "void early(void) {}\n", "-Wl,-init=early", false),
    ] {
        let options = [option, "-Wl,-z,now"];
        let program = guarded_programs::program(&dir, &format!("{CALLS}{text}"), &objects, &options);
        let strong = started(&program, "9.1.0", &[("CUDAGUARD", "off")]);
        sealed(&program);
        assert_eq!(made_weak(&program) > 0, weak, "{what}");
        let ended = started(&program, "9.1.0", &[]);
        assert_eq!(ended.0, Some(if weak { 78 } else { 127 }), "{what}: {ended:?}");
        assert!(weak || ended == strong, "{what}: {ended:?}");
        assert_eq!(started(&program, "9.15.1", &[]).0, Some(0), "{what}");
    }
}

fn guards(dir: &Path, built: Version) -> Vec<PathBuf> {
    guarded_programs::objects(dir, &[guarded_programs::manifest("demo", built, Linkage::Unknown)])
}

fn build(dir: &Path, text: &str, built: Version, options: &[&str]) -> PathBuf {
    guarded_programs::program(dir, text, &guards(dir, built), options)
}

const BUILT: Version = Version::new(9, 15, 1);

/// Returns a table row: a description and the result of each start.
fn row(what: &str, ends: &[&Ended]) -> String {
    let cells = ends.iter().map(|(status, output, printed)| {
        let guard = printed.contains("[CG202]").then_some("CG202");
        let loader = printed.contains(&format!("undefined symbol: {LACKED}")).then_some("loader");
        let ran = (!output.is_empty() && *status == Some(0)).then_some("runs");
        let words: Vec<&str> = [guard, loader, ran].into_iter().flatten().collect();
        format!("{} {}", status.unwrap_or(-1), words.join(", "))
    });
    line(what, cells)
}

fn line(what: &str, cells: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| format!("| {cell:<18}")).collect();
    format!("{what:<36}{}", cells.concat().trim_end())
}

/// Compares the rows with the snapshot, as far as this machine has the linkers.
fn table(name: &str, columns: &[&str], rows: &[String], missing: &[String]) {
    if missing.is_empty() {
        snapshot::check(name, &format!("{}\n{}", line("", columns), rows.join("\n")));
    }
    tools::done_without(missing);
}

/// On an older cuDNN the guard refuses. If the guard is off, the program ends with the same message as before sealing. On
/// the cuDNN that it was built with, it runs as before.
fn hold(program: &Path, at_start: bool, what: &str) -> String {
    let (strong, good) = (started(program, "9.1.0", &[("CUDAGUARD", "off")]), started(program, "9.15.1", &[]));
    assert_eq!((good.0, &*good.1, &*good.2), (Some(0), "91501\n", ""), "{what}");
    let missing = format!("undefined symbol: {LACKED}, version libcudnn.so.9\n");
    // Checks the program before it is sealed. Lazily bound functions do not stop the start.
    let lazily = !at_start && strong.0 == Some(0);
    assert!(lazily || (strong.0 == Some(127) && strong.2.ends_with(&missing)), "{what}: {strong:?}");
    sealed(program);
    assert_eq!(made_weak(program) > 0, !lazily, "{what}");
    assert_eq!(started(program, "9.15.1", &[]), good, "{what}");
    let refused = started(program, "9.1.0", &[]);
    assert_eq!((refused.0, &*refused.1), (Some(78), ""), "{what}: {refused:?}");
    assert!(
        refused.2.starts_with("cudaguard: error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1"),
        "{what}: {refused:?}"
    );
    assert!(!refused.2.contains("CG214"), "{what}: {refused:?}");
    assert_eq!(started(program, "9.1.0", &[("CUDAGUARD", "off")]), strong, "{what}");
    let warned = started(program, "9.1.0", &[("CUDAGUARD", "warn")]);
    assert_eq!((warned.0, &warned.1), (strong.0, &strong.1), "{what}: {warned:?}");
    assert!(warned.2.starts_with("cudaguard: warning[CG202]") && warned.2.ends_with(&strong.2), "{what}: {warned:?}");
    row(what, &[&strong, &refused, &strong, &warned, &good])
}

/// Writes `tests/snapshots/loading/empty_slots.txt`: all linkers, languages and ways to use a function, and the result of
/// each start.
#[e2e(slow)]
fn program_slots_stay_empty() {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let common = Scratch::new("empty slots guard");
    let objects = guards(&common, BUILT);
    for linker in tools::linkers(&mut missing) {
        let name = format!("ld.{linker}");
        let option = format!("-fuse-ld={linker}");
        // The linker does not see the language.
        let languages: &[_] = if linker == "lld" { &["c", "c++"] } else { &["c"] };
        for &language in languages {
            for pie in ["-pie", "-no-pie"] {
                for bind in ["-Wl,-z,now", "-Wl,-z,lazy"] {
                    for (how, source, more) in
                        [("call", CALLS, "-fplt"), ("table", CALLS, "-fno-plt"), ("data", STORES, "-fplt")]
                    {
                        let dir = Scratch::new("empty slots");
                        let compiled = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
                        let options = [&*option, pie, compiled, bind, more, "-O1"];
                        let program = if language == "c" {
                            guarded_programs::program(&dir, source, &objects, &options)
                        } else {
                            let object = in_cpp(&dir, source, &options);
                            guarded_programs::program(&dir, "", &[&[object.into()], &objects[..]].concat(), &options)
                        };
                        // In a non-PIE program, the PLT entry may serve as the function's address.
                        let at_start = bind.ends_with("now") || how == "table" || (how == "data" && pie == "-pie");
                        let bound = bind.trim_start_matches("-Wl,-z,");
                        let what = format!("{name} {language} {} {bound} {how}", pie.trim_start_matches('-'));
                        rows.push(hold(&program, at_start, &what));
                    }
                }
            }
        }
        in_rust(&name, &mut rows);
    }
    let columns = ["9.1.0, unsealed", "9.1.0, sealed", "CUDAGUARD=off", "CUDAGUARD=warn", "9.15.1"];
    table("loading/empty_slots", &columns, &rows, &missing);
}

/// Compiles the same text with a C++ compiler.
fn in_cpp(dir: &Path, text: &str, options: &[&str]) -> String {
    let header = "#include <stdio.h>\n";
    let source = dir.join("main.cpp");
    fs::write(&source, format!("{header}extern \"C\" {{\n{}}}\n", text.replace(header, ""))).unwrap();
    let object = dir.join("main.o").display().to_string();
    let done = Command::new("g++").args(options).args(["-c", "-o", &object]).arg(&source).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    object
}

fn in_rust(linker: &str, rows: &mut Vec<String>) {
    let dir = Scratch::new("empty slots rust");
    let text = "extern \"C\" { fn cudnnBackendPopulateCudaGraph(a: usize, b: usize, c: usize) -> i32; fn cudnnGetVersion() -> usize; }\n\
        fn main() { println!(\"{}\", unsafe { cudnnGetVersion() });\n\
        if std::env::args().count() > 7 { std::process::exit(unsafe { cudnnBackendPopulateCudaGraph(0, 0, 0) }) } }\n";
    let source = dir.file("main.rs", text);
    for (how, more) in [
        ("pie", &[][..]),
        ("no-pie", &["-Crelocation-model=static"]),
        ("pie lto stripped", &["-Copt-level=3", "-Clto=fat", "-Cstrip=symbols"]),
    ] {
        let objects = guarded_programs::objects(&dir, &[guarded_programs::manifest("demo", BUILT, Linkage::Unknown)]);
        let program = dir.join("prog");
        let mut command = Command::new("rustc");
        command.arg(&source).arg("-o").arg(&program).args(more);
        command.arg(format!("-Clink-arg=-fuse-ld={}", linker.trim_start_matches("ld.")));
        for argument in objects.iter().map(|object| object.display().to_string()).chain([library()]) {
            command.arg(format!("-Clink-arg={argument}"));
        }
        let done = command.arg("-Clink-arg=-Wl,--allow-shlib-undefined").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        rows.push(hold(&program, true, &format!("{linker} rust {how}")));
    }
}

/// The manifest accepts this cuDNN, but it lacks a function: this is a separate finding.
#[e2e]
fn matching_versions_fill_slots() {
    let dir = Scratch::new("empty slots agree");
    let program = build(&dir, STORES, Version::new(9, 1, 0), &["-pie", "-fPIE"]);
    sealed(&program);
    let (status, output, printed) = started(&program, "9.1.0", &[]);
    assert_eq!((status, &*output), (Some(78), ""), "{printed}");
    let expected = format!(
        "cudaguard: error[CG214]: demo 0.1.0 uses {LACKED}, which no library has\n  \
         found:      {}\n  first in:   libcudnn.so.9 9.5.0\n  what to do: update the library, or rebuild\n",
        parts::cudnn("9.1.0").join("lib/libcudnn.so.9").display(),
    );
    assert!(printed.starts_with(&expected), "{printed}");
    let (status, _, printed) = started(&program, "9.1.0", &[("CUDAGUARD", "off")]);
    let name = program.display();
    let words = format!("{name}: symbol lookup error: {name}: undefined symbol: {LACKED}, version libcudnn.so.9\n");
    assert_eq!((status, printed), (Some(127), words));
    assert_eq!(started(&program, "9.15.1", &[]).0, Some(0));
    let report = dir.join("report.json");
    let _ = started(&program, "9.1.0", &[("CUDAGUARD_REPORT", report.to_str().unwrap())]);
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("\"verdict\":\"refused\"") && report.contains("\"code\":\"CG214\""), "{report}");
}

/// A function that the program itself declares weak may be missing, as before.
#[e2e]
fn optional_symbols_may_be_missing() {
    let dir = Scratch::new("empty slots weak");
    let text = CALLS
        .replacen("int cudnnBackend", "__attribute__((weak)) int cudnnBackend", 1)
        .replace("n > 7", "n > 7 && cudnnBackendPopulateCudaGraph");
    let program = build(&dir, &text, Version::new(9, 1, 0), &["-pie", "-fPIE", "-fno-plt", "-Wl,-z,now"]);
    sealed(&program);
    let (status, output, printed) = started(&program, "9.1.0", &[]);
    assert_eq!((status, &*printed), (Some(0), ""), "{output}");
}

/// Later changes to a sealed file by other tools do not affect it.
#[e2e(slow)]
fn other_tools_keep_slots() {
    let dir = Scratch::new("empty slots tools");
    let mut missing = Vec::new();
    for (tool, arguments) in [
        ("strip", &["@"][..]),
        ("objcopy", &["--strip-debug", "@"]),
        ("llvm-strip", &["@"]),
        ("patchelf", &["--set-rpath", "/nowhere/that/is/a/rather/long/path/for/a/folder", "@"]),
        ("patchelf", &["--add-needed", "libm.so.6", "@"]),
        ("chrpath", &["-r", "/x", "@"]),
    ] {
        if tools::find(tool).is_none() {
            // LLVM's tool is used if it is installed.
            missing.extend((tool != "llvm-strip").then_some(tool));
            continue;
        }
        for pie in ["-pie", "-no-pie"] {
            let compiled = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
            let program = build(&dir, STORES, BUILT, &[pie, compiled, "-Wl,-rpath,/nowhere"]);
            sealed(&program);
            let done = Command::new(tool)
                .args(arguments.iter().map(|word| word.replace('@', &program.display().to_string())))
                .output()
                .unwrap();
            assert!(done.status.success(), "{tool}: {}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(started(&program, "9.15.1", &[]).0, Some(0), "{tool} {pie}");
            let (status, _, printed) = started(&program, "9.1.0", &[]);
            assert!(status == Some(78) && printed.contains("CG202"), "{tool} {pie}: {printed}");
            let (status, _, printed) = started(&program, "9.1.0", &[("CUDAGUARD", "off")]);
            assert!(status == Some(127) && printed.contains(LACKED), "{tool} {pie}: {printed}");
        }
    }
    tools::done_without(&missing);
}

/// A file without a guard keeps strong symbols, because no guard would report the empty slots.
#[e2e]
fn unguarded_program_keeps_its_slots() {
    let dir = Scratch::new("empty slots not");
    let note = guards(&dir, BUILT).pop().unwrap();
    let program = dir.join("prog");
    guarded_programs::link(STORES, &program, &[note], &[library(), "-Wl,--allow-shlib-undefined".to_owned()]).unwrap();
    sealed(&program);
    assert_eq!(made_weak(&program), 0);
    assert_eq!(started(&program, "9.1.0", &[]).0, Some(127));
}

/// Program that opens a library, queries its guard, and prints both results.
const OPENS: &str = "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n\
    int main(int n, char **a) { void *l = dlopen(a[1], strcmp(a[2], \"now\") ? RTLD_LAZY : RTLD_NOW);\n\
    if (!l) return fprintf(stderr, \"%s\\n\", dlerror()), 3 + (n < 0);\n\
    printf(\"%s\\n\", ((const char *(*)(void))dlsym(l, \"says\"))()); return 0; }\n";

/// `dlopen` fails as before, with the loader's message, and so does a program that imports such a library. If the library
/// can be opened, its guard reports the problem with cuDNN on request.
#[e2e(slow)]
fn library_slots_stay_empty() {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let dir = Scratch::new("empty slots libraries");
    let objects = guards(&dir, BUILT);
    let opener = dir.join("opener");
    guarded_programs::link(OPENS, &opener, &[], &[]).unwrap();
    let header = format!("-I{}", places::workspace().join("templates").display());
    let says = "#include <cudaguard.h>\nstatic char text[2048];\n\
        const char *says(void) { cudaguard_check_text(text, sizeof text); return text; }\n";
    for linker in tools::linkers(&mut missing) {
        let name = format!("ld.{linker}");
        for (bind, how, source, more) in [
            ("now", "call", CALLS, "-fplt"),
            ("lazy", "call", CALLS, "-fplt"),
            ("lazy", "table", CALLS, "-fno-plt"),
            ("lazy", "data", STORES, "-fplt"),
        ] {
            let what = format!("{name} {bind} {how}");
            let shared = dir.join("libshared.so");
            let source = format!("{says}{}", source.replace("int main", "int uses"));
            let options = [&format!("-fuse-ld={linker}"), "-shared", "-fPIC", &header, more, &format!("-Wl,-z,{bind}")];
            let mut arguments = vec![library(), "-Wl,--allow-shlib-undefined".to_owned()];
            arguments.extend(options.map(str::to_owned));
            guarded_programs::link(&source, &shared, &objects, &arguments)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            let needing = dir.join("needing");
            let uses = "int uses(int, char **);\nint main(int n, char **a) { return uses(n, a); }\n";
            let options =
                [shared.display().to_string(), "-Wl,-rpath,$ORIGIN,--allow-shlib-undefined,-z,lazy".to_owned()];
            guarded_programs::link(uses, &needing, &[], &options).unwrap_or_else(|error| panic!("{what}: {error}"));
            let open = |cudnn: &str, mode: &str| {
                let mut command = Command::new(&opener);
                command.arg(&shared).arg(mode).env_clear().env("LD_LIBRARY_PATH", parts::cudnn(cudnn).join("lib"));
                let ended = unless_busy(|| command.output()).unwrap();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
            };
            let all = || {
                let [now, lazy] = ["now", "lazy"].map(|mode| open("9.1.0", mode));
                [now, lazy, started(&needing, "9.1.0", &[]), open("9.15.1", "now")]
            };
            let before = all();
            sealed(&shared);
            assert_eq!(made_weak(&shared), 0, "{what}");
            let after = all();
            assert_eq!(after, before, "{what}");
            for (ended, lazily) in after.iter().zip([false, true, true]) {
                let reported =
                    ended.1.contains("[CG202] cuDNN 9.1.0 is older than cuDNN 9.15.1") || ended.1 == "90100\n";
                let opens = lazily && bind == "lazy" && how == "call";
                assert!(reported == opens && (ended.0 == Some(0)) == opens, "{what}: {ended:?}");
                assert!(opens || ended.2.contains(&format!("undefined symbol: {LACKED}")), "{what}: {ended:?}");
            }
            let reported = |ended: &Ended| (ended.0, ended.1.clone(), format!("{}{}", ended.1, ended.2));
            let ends = after.each_ref().map(reported);
            rows.push(row(&what, &ends.each_ref()));
        }
    }
    let columns = ["dlopen now", "dlopen lazy", "a program needs it", "9.15.1"];
    table("loading/empty_slots_of_libraries", &columns, &rows, &missing);
}

/// cuDNN has no variables to copy. A library with a copied variable stays unchanged, and the loader reports the problem.
#[e2e]
fn copy_relocated_variable_is_kept() {
    let dir = Scratch::new("empty slots copy");
    let text = "unsigned long cudnnGetVersion(void) { return 91501; }\n";
    for (version, variable) in [("new", "int cudnnVariable = 7;\n"), ("old", "")] {
        let library = dir.join(version).join("libcudnn.so.9");
        fs::create_dir_all(dir.join(version)).unwrap();
        let shared = ["-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9"].map(str::to_owned);
        guarded_programs::link(&format!("{text}{variable}"), &library, &[], &shared).unwrap();
    }
    let program = dir.join("prog");
    let main = "extern int cudnnVariable; unsigned long cudnnGetVersion(void);\n\
                int main(void) { return cudnnVariable != 7 || !cudnnGetVersion(); }\n";
    let options = [
        dir.join("new/libcudnn.so.9").display().to_string(),
        "-no-pie".to_owned(),
        "-fno-pie".to_owned(),
        "-Wl,-z,now".to_owned(),
    ];
    guarded_programs::link(main, &program, &guards(&dir, BUILT), &options).unwrap();
    let start = |version: &str| {
        let mut command = Command::new(&program);
        command.env_clear().env("CUDAGUARD", "off").env("LD_LIBRARY_PATH", dir.join(version));
        let ended = unless_busy(|| command.output()).unwrap();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let before = ["new", "old"].map(start);
    assert_eq!(before[0].0, Some(0), "{before:?}");
    assert!(before[1].0 == Some(127) && before[1].1.contains("undefined symbol: cudnnVariable"), "{before:?}");
    sealed(&program);
    assert_eq!(["new", "old"].map(start), before);
}

/// A program with weak symbols prints the same output as the program with strong symbols.
#[e2e]
fn weak_symbols_keep_output() {
    let dir = Scratch::new("empty slots good");
    let strong = build(&dir, STORES, BUILT, &["-pie", "-fPIE"]);
    let weak = dir.join("weak");
    fs::copy(&strong, &weak).unwrap();
    sealed(&weak);
    assert!(made_weak(&strong) == 0 && made_weak(&weak) > 0);
    for program in [&strong, &weak] {
        assert_eq!(started(program, "9.15.1", &[]), (Some(0), "91501\n".to_owned(), String::new()));
    }
}
