//! Functions that the machine's cuDNN lacks: sealed programs are told by the guard, and never call an empty slot. With real
//! cuDNN, by every linker and in every way in which a program uses a function.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::binary::Binary;
use cudaguard::elf::Elf;
use cudaguard::manifest::Linkage;
use cudaguard::seal::{Observed, Sealed, seal};
use cudaguard::version::Version;
use cudaguard_tests::{Scratch, Trial, parts, tools, trials};

use super::guarded;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        in_c,
        in_rust,
        with_versions_that_agree,
        what_the_program_does_without,
        after_other_tools,
        without_a_guard_and_in_libraries,
    ]
}

/// cuDNN has it from 9.5 on, as far as anybody declares it.
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

/// Status, output, and what was said.
type Ended = (Option<i32>, String, String);

fn started(program: &Path, cudnn: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(program);
    command.env_clear().env("LD_LIBRARY_PATH", parts::cudnn(cudnn).join("lib"));
    let ended = command.envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}

fn sealed(program: &Path) {
    let binary = Binary::read(program).unwrap();
    assert_eq!(seal(program, &Observed::of(&binary)), Ok(Sealed { written: 1, ..Sealed::default() }));
}

fn made_weak(program: &Path) -> usize {
    let data = fs::read(program).unwrap();
    Elf::parse(&data).unwrap().links().unwrap().made_weak().len()
}

fn library() -> String {
    parts::cudnn("9.15.1").join("lib/libcudnn.so.9").display().to_string()
}

fn guards(folder: &Path, built: Version) -> Vec<PathBuf> {
    guarded::objects(folder, &[guarded::manifest("demo", built, Linkage::Unknown)])
}

fn build(folder: &Path, text: &str, built: Version, options: &[&str]) -> PathBuf {
    link(folder, text, &guards(folder, built), options)
}

fn link(folder: &Path, text: &str, objects: &[PathBuf], options: &[&str]) -> PathBuf {
    let program = folder.join("prog");
    let mut arguments = vec![library(), "-Wl,--allow-shlib-undefined".to_owned()];
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    guarded::link(text, &program, objects, &arguments).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    program
}

const BUILT: Version = Version::new(9, 15, 1);

/// On an older cuDNN the guard refuses, and where it may not the program ends as it did unsealed, in the same words; on the one
/// built with it runs as it did.
fn hold(program: &Path, at_start: bool, what: &str) {
    let (strong, good) = (started(program, "9.1.0", &[("CUDAGUARD", "off")]), started(program, "9.15.1", &[]));
    assert_eq!((good.0, &*good.1, &*good.2), (Some(0), "91501\n", ""), "{what}");
    let missing = format!("undefined symbol: {LACKED}, version libcudnn.so.9\n");
    // Before it is sealed. What is looked up at its first call stops nothing here.
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
}

fn in_c() {
    let mut missing = Vec::new();
    let common = Scratch::new("empty slots guard");
    let objects = guards(&common, BUILT);
    for linker in ["bfd", "gold", "lld", "mold"] {
        let name = format!("ld.{linker}");
        if tools::find(&name).is_none() {
            missing.push(name);
            continue;
        }
        let linker = format!("-fuse-ld={linker}");
        for language in ["c", "c++"] {
            for pie in ["-pie", "-no-pie"] {
                for bind in ["-Wl,-z,now", "-Wl,-z,lazy"] {
                    for (how, source, more) in
                        [("call", CALLS, "-fplt"), ("table", CALLS, "-fno-plt"), ("data", STORES, "-fplt")]
                    {
                        let folder = Scratch::new("empty slots");
                        let compiled = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
                        let options = [&*linker, pie, compiled, bind, more, "-O1"];
                        let program = if language == "c" {
                            link(&folder, source, &objects, &options)
                        } else {
                            let object = in_cpp(&folder, source, &options);
                            link(&folder, "", &[&[object.into()], &objects[..]].concat(), &options)
                        };
                        // Where a program is not to be moved, its own entry for calls may stand for the function's address.
                        let at_start = bind.ends_with("now") || how == "table" || (how == "data" && pie == "-pie");
                        hold(&program, at_start, &format!("{linker} {language} {pie} {bind} {how}"));
                    }
                }
            }
        }
    }
    tools::done_without(&missing);
}

/// The same text as an object by a C++ compiler.
fn in_cpp(folder: &Path, text: &str, options: &[&str]) -> String {
    let header = "#include <stdio.h>\n";
    let source = folder.join("main.cpp");
    fs::write(&source, format!("{header}extern \"C\" {{\n{}}}\n", text.replace(header, ""))).unwrap();
    let object = folder.join("main.o").display().to_string();
    let done = Command::new("g++").args(options).args(["-c", "-o", &object]).arg(&source).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    object
}

fn in_rust() {
    let folder = Scratch::new("empty slots rust");
    let text = "extern \"C\" { fn cudnnBackendPopulateCudaGraph(a: usize, b: usize, c: usize) -> i32; fn cudnnGetVersion() -> usize; }\n\
        fn main() { println!(\"{}\", unsafe { cudnnGetVersion() });\n\
        if std::env::args().count() > 7 { std::process::exit(unsafe { cudnnBackendPopulateCudaGraph(0, 0, 0) }) } }\n";
    let source = folder.file("main.rs", text);
    for more in [&[][..], &["-Crelocation-model=static"], &["-Copt-level=3", "-Clto=fat", "-Cstrip=symbols"]] {
        let objects = guarded::objects(&folder, &[guarded::manifest("demo", BUILT, Linkage::Unknown)]);
        let program = folder.join("prog");
        let mut command = Command::new("rustc");
        command.arg(&source).arg("-o").arg(&program).args(more);
        for argument in objects.iter().map(|object| object.display().to_string()).chain([library()]) {
            command.arg(format!("-Clink-arg={argument}"));
        }
        let done = command.arg("-Clink-arg=-Wl,--allow-shlib-undefined").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        hold(&program, true, &format!("rust {more:?}"));
    }
}

/// The manifest accepts this cuDNN, and it lacks a function all the same: a finding of its own.
fn with_versions_that_agree() {
    let folder = Scratch::new("empty slots agree");
    let program = build(&folder, STORES, Version::new(9, 1, 0), &["-pie", "-fPIE"]);
    sealed(&program);
    let (status, output, said) = started(&program, "9.1.0", &[]);
    assert_eq!((status, &*output), (Some(78), ""), "{said}");
    let expected = format!(
        "cudaguard: error[CG214]: demo 0.1.0 uses {LACKED}, which no library has\n  \
         first in:   libcudnn.so.9 9.5.0\n  what to do: update the library, or rebuild\n"
    );
    assert!(said.starts_with(&expected), "{said}");
    let (status, _, said) = started(&program, "9.1.0", &[("CUDAGUARD", "off")]);
    let name = program.display();
    let words = format!("{name}: symbol lookup error: {name}: undefined symbol: {LACKED}, version libcudnn.so.9\n");
    assert_eq!((status, said), (Some(127), words));
    assert_eq!(started(&program, "9.15.1", &[]).0, Some(0));
    let report = folder.join("report.json");
    let _ = started(&program, "9.1.0", &[("CUDAGUARD_REPORT", report.to_str().unwrap())]);
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("\"verdict\":\"refused\"") && report.contains("\"code\":\"CG214\""), "{report}");
}

/// A function that the program itself declares weak may be missing, as before.
fn what_the_program_does_without() {
    let folder = Scratch::new("empty slots weak");
    let text = CALLS
        .replacen("int cudnnBackend", "__attribute__((weak)) int cudnnBackend", 1)
        .replace("n > 7", "n > 7 && cudnnBackendPopulateCudaGraph");
    let program = build(&folder, &text, Version::new(9, 1, 0), &["-pie", "-fPIE", "-fno-plt", "-Wl,-z,now"]);
    sealed(&program);
    let (status, output, said) = started(&program, "9.1.0", &[]);
    assert_eq!((status, &*said), (Some(0), ""), "{output}");
}

/// What is done to a sealed file afterwards changes nothing of it.
fn after_other_tools() {
    let folder = Scratch::new("empty slots tools");
    for (tool, arguments) in [
        ("strip", &["@"][..]),
        ("objcopy", &["--strip-debug", "@"]),
        ("llvm-strip", &["@"]),
        ("patchelf", &["--set-rpath", "/nowhere/that/is/a/rather/long/path/for/a/folder", "@"]),
        ("patchelf", &["--add-needed", "libm.so.6", "@"]),
        ("chrpath", &["-r", "/x", "@"]),
    ] {
        // binutils' are always there; the others are tried where somebody has them.
        if tools::find(tool).is_none() {
            continue;
        }
        for pie in ["-pie", "-no-pie"] {
            let compiled = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
            let program = build(&folder, STORES, BUILT, &[pie, compiled, "-Wl,-rpath,/nowhere"]);
            sealed(&program);
            let done = Command::new(tool)
                .args(arguments.iter().map(|word| word.replace('@', &program.display().to_string())))
                .output()
                .unwrap();
            assert!(done.status.success(), "{tool}: {}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(started(&program, "9.15.1", &[]).0, Some(0), "{tool} {pie}");
            let (status, _, said) = started(&program, "9.1.0", &[]);
            assert!(status == Some(78) && said.contains("CG202"), "{tool} {pie}: {said}");
            let (status, _, said) = started(&program, "9.1.0", &[("CUDAGUARD", "off")]);
            assert!(status == Some(127) && said.contains(LACKED), "{tool} {pie}: {said}");
        }
    }
}

/// Nobody would answer for the slots of a file without the guard, and `dlopen` of a library has to fail as it did.
fn without_a_guard_and_in_libraries() {
    let folder = Scratch::new("empty slots not");
    let note = guarded::objects(&folder, &[guarded::manifest("demo", BUILT, Linkage::Unknown)]).pop().unwrap();
    let program = folder.join("prog");
    guarded::link(STORES, &program, &[note], &[library(), "-Wl,--allow-shlib-undefined".to_owned()]).unwrap();
    sealed(&program);
    assert_eq!(made_weak(&program), 0);
    assert_eq!(started(&program, "9.1.0", &[]).0, Some(127));

    let shared = build(&folder, STORES, BUILT, &["-shared", "-fPIC"]);
    sealed(&shared);
    assert_eq!(made_weak(&shared), 0);
    let text = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char **a) { void *l = dlopen(a[1], RTLD_NOW); (void)n;\n\
                if (!l) puts(dlerror()); return !l; }\n";
    let opener = folder.join("opener");
    guarded::link(text, &opener, &[], &[]).unwrap();
    let open = |cudnn: &str| {
        let lib = parts::cudnn(cudnn).join("lib");
        let ran = Command::new(&opener).arg(&shared).env_clear().env("LD_LIBRARY_PATH", lib).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    assert_eq!(open("9.15.1"), (Some(0), String::new()));
    let (status, said) = open("9.1.0");
    assert!(status == Some(1) && said.contains(&format!("undefined symbol: {LACKED}")), "{said}");
}
