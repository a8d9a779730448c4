//! `[runtime] loader = "guard"`: NVIDIA's libraries loaded and bound by the guard of a sealed program, with real cuDNN, by every
//! linker and in every way in which a program uses a function; what is said of one that cannot be loaded; and the programs for
//! which it is refused at build time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::binary::Binary;
use cudaguard::dry_run;
use cudaguard::elf::Elf;
use cudaguard::env::Env;
use cudaguard::manifest::Linkage;
use cudaguard::seal::{LinkObservation, SealResult, left_to_the_loader, seal};
use cudaguard::version::Version;
use cudaguard_tests::{Call, Scratch, Trial, command, parts, snapshot, tools, trials};

use super::guarded::{self, Ended, library, started};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        in_programs,
        several_libraries,
        who_stands_before_the_library,
        who_stands_before_what_it_brings_along,
        where_it_cannot_be_right,
        a_second_seal_changes_nothing,
        after_other_tools,
        it_is_known_as_needed,
        debuggers_see_all,
        on_arm,
        by_policy,
        damaged_files_are_left_alone,
        its_size,
        what_a_good_start_costs,
    ]
}

const BUILT: Version = Version::new(9, 15, 1);
const MAIN: &str = "#include <stdio.h>\n\
    int cudnnBackendPopulateCudaGraph(void*, void*, void*); unsigned long cudnnGetVersion(void);\n\
    const char *cudnnGetErrorString(int);\n";
const CALLS: &str = "int main(int n, char **a) { (void)a; printf(\"%lu %s\\n\", cudnnGetVersion(), cudnnGetErrorString(0));\n\
    fflush(stdout); return n > 7 ? cudnnBackendPopulateCudaGraph(0, 0, 0) : 0; }\n";
const STORES: &str = "int (*held)(void*, void*, void*) = cudnnBackendPopulateCudaGraph;\n\
    unsigned long (*const version)(void) = cudnnGetVersion;\n\
    int main(int n, char **a) { (void)a; printf(\"%lu %s\\n\", version(), cudnnGetErrorString(0));\n\
    fflush(stdout); return n > 7 ? held(0, 0, 0) : 0; }\n";

fn guards(folder: &Path, built: Version) -> Vec<PathBuf> {
    let mut manifest = guarded::manifest("demo", built, Linkage::Unknown);
    manifest.runtime.guard_loads = true;
    guarded::objects(folder, &[manifest])
}

/// Why the guard of this file may not load its libraries.
fn unfit(program: &Path) -> Option<String> {
    let binary = Binary::read(program).unwrap();
    let manifest = binary.manifests().flatten().next().expect("a note").manifest;
    left_to_the_loader(&manifest, &binary).unwrap()
}

fn sealed(program: &Path) {
    let binary = Binary::read(program).unwrap();
    assert_eq!(unfit(program), None);
    assert_eq!(
        seal(program, None, &LinkObservation::of(&binary)),
        Ok(SealResult { written: 1, ..SealResult::default() })
    );
}

/// What is wrong with the library, and the words of the loader's answer that tell of it.
const FAULTS: [(&str, &str, &str); 5] = [
    ("absent", "CG205", "libcudnn.so.9: cannot open shared object file"),
    ("needs an absent one", "CG210", "libgone.so.1: cannot open shared object file"),
    ("32 bits", "CG211", "wrong ELF class: ELFCLASS32"),
    ("a newer glibc", "CG213", "version `GLIBC_9.99' not found"),
    ("cut off", "CG212", "file too short"),
];

/// A folder for each fault, with a library that has it.
fn faults(folder: &Path) -> Vec<(PathBuf, &'static str, &'static str, &'static str)> {
    let shared = |file: &Path, text: &str, more: &[String]| {
        let mut arguments = ["-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed"].map(str::to_owned).to_vec();
        arguments.push(format!("-Wl,-soname,{}", file.file_name().unwrap().to_str().unwrap()));
        arguments.extend_from_slice(more);
        guarded::link(text, file, &[], &arguments).unwrap_or_else(|error| panic!("{error}"));
    };
    let whole = fs::read(library()).unwrap();
    let text = "int nothing_of_interest;\n";
    FAULTS
        .iter()
        .map(|(fault, code, words)| {
            let place = folder.join(fault.replace(' ', "-"));
            fs::create_dir_all(&place).unwrap();
            let file = place.join("libcudnn.so.9");
            match *fault {
                "absent" => {}
                "needs an absent one" => {
                    let gone = folder.join("libgone.so.1");
                    shared(&gone, text, &[]);
                    shared(&file, text, &[gone.display().to_string()]);
                    fs::remove_file(gone).unwrap();
                }
                "32 bits" => {
                    let mut other = whole.clone();
                    other[4] = 1;
                    fs::write(&file, other).unwrap();
                }
                "a newer glibc" => {
                    let newer = folder.join("newer/libm.so.6");
                    fs::create_dir_all(newer.parent().unwrap()).unwrap();
                    let script = folder.join("newer.map");
                    fs::write(&script, "GLIBC_9.99 { global: newer; };").unwrap();
                    shared(
                        &newer,
                        "int newer(void) { return 0; }\n",
                        &[format!("-Wl,--version-script={}", script.display())],
                    );
                    let uses = "int newer(void); int uses(void) { return newer(); }\n";
                    fs::write(&script, "libcudnn.so.9 { global: uses; };").unwrap();
                    let script = format!("-Wl,--version-script={}", script.display());
                    shared(&file, uses, &[newer.display().to_string(), script]);
                }
                _ => fs::write(&file, &whole[..45]).unwrap(),
            }
            (place, *fault, *code, *words)
        })
        .collect()
}

/// How a start ended, in a word or two.
fn told(ended: &Ended) -> String {
    let (status, output, said) = ended;
    let code = said.find("error[").and_then(|at| said.get(at + 6..at + 11)).unwrap_or_default();
    let loader = ["error while loading", "symbol lookup error"].iter().any(|words| said.contains(words));
    let what = [code, if loader { "loader" } else { "" }, if output.is_empty() { "" } else { "runs" }].concat();
    format!("{} {what}", status.unwrap_or(-1))
}

/// Holds a program: what it did before it was sealed, a good start, an older library, and every fault.
fn hold(program: &Path, folders: &[(PathBuf, &'static str, &'static str, &'static str)], what: &str) -> String {
    let lib = |release: &str| parts::cudnn(release).join("lib");
    let strong = started(program, &lib("9.15.1"), &[]);
    assert_eq!((strong.0, &*strong.1, &*strong.2), (Some(0), "91501 CUDNN_STATUS_SUCCESS\n", ""), "{what}");
    let before: Vec<Ended> = folders.iter().map(|(folder, ..)| started(program, folder, &[])).collect();
    let predicted = |when: &str| {
        for (folder, fault, code, _) in folders {
            let env = Env::empty().with([("LD_LIBRARY_PATH".to_owned(), folder.clone().into_os_string())]);
            let codes: Vec<String> = dry_run::start(program, &env).iter().map(|one| one.code.to_string()).collect();
            assert_eq!(codes, [*code], "{what} {fault}, {when}: as the guard says it");
        }
    };
    predicted("before it is sealed");
    sealed(program);
    predicted("sealed");
    let mut cells = Vec::new();
    for variables in [&[][..], &[("LD_BIND_NOW", "1")], &[("LD_PRELOAD", "libcudnn.so.9")], &[("CUDAGUARD", "off")]] {
        let ended = started(program, &lib("9.15.1"), variables);
        assert_eq!(ended, strong, "{what} {variables:?}");
        cells.push(told(&ended));
    }
    cells.truncate(1);
    let refused = started(program, &lib("9.1.0"), &[]);
    assert!(refused.0 == Some(78) && refused.2.starts_with("cudaguard: error[CG202]"), "{what}: {refused:?}");
    // All is bound at the start now: also what was looked up at its first call.
    let off = started(program, &lib("9.1.0"), &[("CUDAGUARD", "off")]);
    let missing = "undefined symbol: cudnnBackendPopulateCudaGraph, version libcudnn.so.9\n";
    assert!(off.0 == Some(127) && off.2.ends_with(missing) && off.1.is_empty(), "{what}: {off:?}");
    cells.extend([told(&refused), told(&off)]);
    for ((folder, fault, code, words), before) in folders.iter().zip(&before) {
        let ended = started(program, folder, &[]);
        assert!(ended.0 == Some(78) && ended.1.is_empty(), "{what} {fault}: {ended:?}");
        let said =
            format!("cudaguard: error[{code}]: libcudnn.so.9 cannot be loaded\n  needed by:  {}\n", program.display());
        assert!(ended.2.starts_with(&said) && ended.2.contains(words), "{what} {fault}: {ended:?}");
        assert_eq!(ended.2.lines().count(), 4, "{what} {fault}: {ended:?}");
        let off = started(program, folder, &[("CUDAGUARD", "off")]);
        assert_eq!(off, *before, "{what} {fault}: what the loader said before it was sealed");
        let warned = started(program, folder, &[("CUDAGUARD", "warn")]);
        assert!(warned.0 == before.0 && warned.2.ends_with(&before.2), "{what} {fault}: {warned:?}");
        assert!(warned.2.starts_with(&said.replace("error[", "warning[")), "{what} {fault}: {warned:?}");
        cells.extend([told(&ended)]);
    }
    line(what, cells)
}

fn line(what: &str, cells: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| format!("| {cell:<20}")).collect();
    format!("{what:<30}{}", cells.concat().trim_end())
}

/// `tests/snapshots/loading/late.txt`: every linker, language and way to use a function, and what came of each start.
fn in_programs() {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let common = Scratch::new("late guard");
    let (objects, folders) = (guards(&common, BUILT), faults(&common));
    for linker in tools::linkers(&mut missing) {
        let name = format!("ld.{linker}");
        let option = format!("-fuse-ld={linker}");
        for (pie, compiled) in [("-pie", "-fPIE"), ("-no-pie", "-fno-pie")] {
            for bind in ["-Wl,-z,now", "-Wl,-z,lazy"] {
                for (how, source, more) in
                    [("call", CALLS, "-fplt"), ("table", CALLS, "-fno-plt"), ("data", STORES, "-fplt")]
                {
                    let folder = Scratch::new("late");
                    let options = [&*option, pie, compiled, bind, more, "-O1"];
                    let program = guarded::program(&folder, &format!("{MAIN}{source}"), &objects, &options);
                    let bound = bind.trim_start_matches("-Wl,-z,");
                    let what = format!("{name} c {} {bound} {how}", pie.trim_start_matches('-'));
                    rows.push(hold(&program, &folders, &what));
                }
            }
            let folder = Scratch::new("late");
            let program = in_cpp(&folder, &objects, &[&option, pie, compiled]);
            rows.push(hold(&program, &folders, &format!("{name} c++ {} constructor", pie.trim_start_matches('-'))));
        }
        for (how, more) in [
            ("pie", &[][..]),
            ("no-pie", &["-Crelocation-model=static"]),
            ("lto stripped", &["-Clto=fat", "-Cstrip=symbols"]),
        ] {
            let folder = Scratch::new("late");
            let program = in_rust(&folder, &objects, linker, more);
            rows.push(hold(&program, &folders, &format!("{name} rust {how}")));
        }
    }
    let faults = FAULTS.map(|(fault, ..)| fault);
    let columns = [&["9.15.1", "9.1.0", "9.1.0, CUDAGUARD=off"], &faults[..]].concat();
    if missing.is_empty() {
        snapshot::check("loading/late", &format!("{}\n{}", line("", columns), rows.join("\n")));
    }
    tools::done_without(&missing);
}

/// One whose static constructor calls the library.
fn in_cpp(folder: &Path, objects: &[PathBuf], options: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("main.cpp"), folder.join("prog"));
    let text = "#include <cstdio>\n#include <string>\nextern \"C\" { int cudnnBackendPopulateCudaGraph(void*, void*, void*);\n\
        unsigned long cudnnGetVersion(void); const char *cudnnGetErrorString(int); }\n\
        static const std::string version = std::to_string(cudnnGetVersion()) + \" \" + cudnnGetErrorString(0);\n\
        int main(int n, char **) { std::puts(version.c_str()); std::fflush(stdout);\n\
        return n > 7 ? cudnnBackendPopulateCudaGraph(nullptr, nullptr, nullptr) : 0; }\n";
    fs::write(&source, text).unwrap();
    let mut command = Command::new("g++");
    command.args(options).args(["-O1", "-o"]).arg(&program).arg(&source).args(objects);
    let done = command.args([&library(), "-Wl,--allow-shlib-undefined", "-ldl"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn in_rust(folder: &Path, objects: &[PathBuf], linker: &str, more: &[&str]) -> PathBuf {
    let text = "extern \"C\" { fn cudnnBackendPopulateCudaGraph(a: usize, b: usize, c: usize) -> i32;\n\
        fn cudnnGetVersion() -> usize; fn cudnnGetErrorString(error: i32) -> *const std::ffi::c_char; }\n\
        fn main() { let text = unsafe { std::ffi::CStr::from_ptr(cudnnGetErrorString(0)) }.to_str().unwrap();\n\
        println!(\"{} {text}\", unsafe { cudnnGetVersion() });\n\
        if std::env::args().count() > 7 { std::process::exit(unsafe { cudnnBackendPopulateCudaGraph(0, 0, 0) }) } }\n";
    let (source, program) = (folder.join("main.rs"), folder.join("prog"));
    fs::write(&source, text).unwrap();
    let mut command = Command::new("rustc");
    command.arg(&source).arg("-o").arg(&program).args(more).arg(format!("-Clink-arg=-fuse-ld={linker}"));
    for argument in objects.iter().map(|object| object.display().to_string()).chain([library()]) {
        command.arg(format!("-Clink-arg={argument}"));
    }
    let done = command.arg("-Clink-arg=-Wl,--allow-shlib-undefined").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn c(folder: &Path, built: Version, text: &str, options: &[&str]) -> PathBuf {
    guarded::program(folder, text, &guards(folder, built), options)
}

fn lib(release: &str) -> PathBuf {
    parts::cudnn(release).join("lib")
}

/// cuDNN, cudart and the driver together: the last has no versions, and its functions are known by belonging to nobody else.
fn several_libraries() {
    let folder = Scratch::new("late several");
    let text = "#include <stdio.h>\nunsigned long cudnnGetVersion(void); int cudaRuntimeGetVersion(int *);\n\
        int cuDriverGetVersion(int *); int cuInit(unsigned);\n\
        __attribute__((weak)) int cuOfNobody(void); __attribute__((weak)) int cuCtxSynchronize(void);\n\
        __attribute__((weak)) int cudnnOfNobody(void);\n\
        int (*const held)(int *) = cuDriverGetVersion;\n\
        int main(int n, char **a) { int r = 0, d = 0; (void)a; cudaRuntimeGetVersion(&r); held(&d);\n\
        printf(\"%lu %d %d %d%d%d\\n\", cudnnGetVersion(), r, d, !!cuOfNobody, !!cuCtxSynchronize, !!cudnnOfNobody);\n\
        return n > 7 ? cuInit(0) : 0; }\n";
    let (cudart, driver) = (parts::cuda("13.0").join("lib64"), parts::driver("535"));
    for (pie, bind) in [("-pie", "now"), ("-pie", "lazy"), ("-no-pie", "now"), ("-no-pie", "lazy")] {
        let compiled = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
        let libraries =
            [cudart.join("libcudart.so.13"), driver.join("libcuda.so.1")].map(|path| path.display().to_string());
        let options = [&libraries[0], &libraries[1], pie, compiled, &format!("-Wl,-z,{bind}")];
        let program = c(&folder, BUILT, text, &options);
        let all = [lib("9.15.1"), cudart.clone(), driver.clone()];
        let without = |left: usize| {
            let some = all.iter().enumerate().filter(|(index, _)| *index != left).map(|(_, path)| path);
            std::env::join_paths(some).unwrap()
        };
        let start = |left: usize| started(&program, Path::new(&without(left)), &[]);
        let before = [0, 1, 2, 3].map(start);
        assert_eq!(before[3].0, Some(0), "{before:?}");
        assert!(before[3].1.starts_with("91501 13000 ") && before[3].1.ends_with(" 010\n"), "{before:?}");
        sealed(&program);
        let after = [0, 1, 2, 3].map(start);
        assert_eq!(after[3], before[3], "{pie} {bind}");
        for (name, (after, before)) in
            ["libcudnn.so.9", "libcudart.so.13", "libcuda.so.1"].into_iter().zip(after.iter().zip(&before))
        {
            let code = if name == "libcudnn.so.9" { "CG205" } else { "CG210" };
            let said = format!("cudaguard: error[{code}]: {name} cannot be loaded\n");
            assert!(before.0 == Some(127) && after.0 == Some(78) && after.2.starts_with(&said), "{name}: {after:?}");
            assert_eq!(after.2.contains("a part of the NVIDIA driver"), name == "libcuda.so.1", "{after:?}");
        }
    }
}

/// `LD_PRELOAD` is heard as before, whether a function is bound at the start or at its first call; a library that was preloaded
/// is one that the loader loads.
fn who_stands_before_the_library() {
    let folder = Scratch::new("late-preload");
    let other = folder.join("other.so");
    let shared = ["-shared", "-fPIC"].map(str::to_owned);
    guarded::link("unsigned long cudnnGetVersion(void) { return 7; }\n", &other, &[], &shared).unwrap();
    let preload = other.display().to_string();
    for (source, bind) in [(CALLS, "now"), (CALLS, "lazy"), (STORES, "now"), (STORES, "lazy")] {
        let program = c(&folder, BUILT, &format!("{MAIN}{source}"), &["-pie", "-fPIE", &format!("-Wl,-z,{bind}")]);
        let start = || started(&program, &lib("9.15.1"), &[("LD_PRELOAD", &preload)]);
        let before = start();
        assert_eq!(before.1, "7 CUDNN_STATUS_SUCCESS\n");
        sealed(&program);
        assert_eq!(start(), before, "{bind}");
    }
}

/// What the program, a preloaded library, or one that was added to the file after sealing defines, is found by the libraries
/// that the guard loads and by what they bring along, too: libstdc++ takes a large piece of memory when it is loaded.
fn who_stands_before_what_it_brings_along() {
    tools::need("patchelf");
    let folder = Scratch::new("late before");
    let nccl = parts::part("nccl-2.19.3").join("lib");
    let counts = "#include <stddef.h>\n#include <stdio.h>\nvoid *__libc_malloc(size_t); static int large;\n\
        void *malloc(size_t size) { large += size > 70000; return __libc_malloc(size); }\n";
    let tells = "__attribute__((destructor)) static void tell(void) { printf(\"%d large\\n\", large); }\n";
    let other = folder.join("libother.so.1");
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libother.so.1"].map(str::to_owned);
    guarded::link(&format!("{counts}{tells}"), &other, &[], &shared).unwrap();
    let path = [&lib("9.15.1"), &nccl, folder.path()].map(|folder| folder.display().to_string()).join(":");
    let add = |program: &Path| {
        let _ = Call::new("patchelf").args(["--add-needed", "libother.so.1"]).arg(program).run().success();
    };
    let plain = format!("{MAIN}{CALLS}");
    let with_nccl = format!("int ncclGetVersion(int *);\n{}", plain.replace("(void)a;", "int v; ncclGetVersion(&v);"));
    let nccl = nccl.join("libnccl.so.2").display().to_string();
    let own = format!("{MAIN}{counts}{tells}{CALLS}");
    for (what, text, variables, added) in [
        ("the program", &own, &[][..], false),
        ("a preloaded library", &plain, &[("LD_PRELOAD", "libother.so.1")], false),
        ("a library that was added", &plain, &[], true),
        ("nobody", &plain, &[], false),
        ("nobody, beside NCCL, for which linkers export their marks", &with_nccl, &[], false),
    ] {
        let nobody = what.starts_with("nobody");
        for options in [["-pie", "-fPIE"], ["-no-pie", "-fno-pie"]] {
            let program = c(&folder, BUILT, text, &[&options[..], &["-Wl,--as-needed", &nccl]].concat());
            let by_guard = folder.join("by-guard");
            fs::copy(&program, &by_guard).unwrap();
            sealed(&by_guard);
            if added {
                add(&program);
                add(&by_guard);
            }
            let before = started(&program, Path::new(&path), variables);
            let told = if nobody { "" } else { "1 large\n" };
            assert_eq!(before, (Some(0), format!("91501 CUDNN_STATUS_SUCCESS\n{told}"), String::new()), "{what}");
            assert_eq!(started(&by_guard, Path::new(&path), variables), before, "{what}");
            let scopes = started(&by_guard, Path::new(&path), &[variables, &[("LD_DEBUG", "scopes")]].concat()).2;
            let of_cudnn = scopes.split("object=").find(|object| object.contains("/libcudnn.so.9 [0]\n")).unwrap();
            let at = |name: &str| of_cudnn.find(name).unwrap_or_else(|| panic!("{what}: no {name}: {of_cudnn}"));
            let among_its_own = at("/libstdc++.so.6 ") < at("/by-guard ");
            assert_eq!(among_its_own, nobody, "{what}: {of_cudnn}");
        }
    }
}

/// Refused at build time, in words; the file is then sealed as any other, and the system's loader loads its libraries.
fn where_it_cannot_be_right() {
    let folder = Scratch::new("late refused");
    let library = |name: &str, text: &str, versions: &str| {
        let file = folder.join(name);
        let script = folder.join("versions.map");
        fs::write(&script, versions).unwrap();
        let mut arguments = vec!["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{name}")];
        arguments.extend((!versions.is_empty()).then(|| format!("-Wl,--version-script={}", script.display())));
        guarded::link(text, &file, &[], &arguments).unwrap_or_else(|error| panic!("{error}"));
        file.display().to_string()
    };
    let own = "libcudnn.so.9 { global: *; };";
    let text =
        "unsigned long cudnnGetVersion(void) { return 91501; } int cudnnVariable = 7; __thread int cudnnThread = 7;\n";
    let of_own = library("libcudnn.so.9", text, own);
    let beside = library("libbeside.so.1", "int beside(void) { return 7; }\n", "");
    let plain = "unsigned long cudnnGetVersion(void);\nint main(void) { return !cudnnGetVersion(); }\n";
    let variable = "extern int cudnnVariable; unsigned long cudnnGetVersion(void);\n\
        int main(void) { return cudnnVariable != 7 || !cudnnGetVersion(); }\n";
    let thread =
        variable.replace("extern int cudnnVariable", "extern __thread int cudnnThread").replace("Variable", "Thread");
    let both = plain.replace("!cudnnGetVersion()", "!cudnnGetVersion() || beside() != 7");
    let both = format!("int beside(void);\n{both}");
    for (text, options, why) in [
        (plain, &[&*of_own, "-pie"][..], None),
        (&both, &[&of_own, &beside], Some("it needs libbeside.so.1, too, which may use or define their functions")),
        (
            variable,
            &[&of_own, "-no-pie", "-fno-pie"],
            Some("it has a copy of cudnnVariable, a variable of libcudnn.so.9's"),
        ),
        (
            &thread,
            &[&of_own, "-pie", "-fPIE"],
            Some("cudnnThread of libcudnn.so.9 is bound in a way that only the loader knows"),
        ),
        // An address within a variable, by a relocation that names the symbol, is bound as any other.
        (
            "extern int cudnnVariable; int *held = &cudnnVariable;\nint main(void) { return *held != 7; }\n",
            &[&of_own, "-pie", "-fPIE"],
            None,
        ),
    ] {
        let program = folder.join("prog");
        let mut arguments: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        arguments.push("-Wl,--no-as-needed".to_owned());
        guarded::link(text, &program, &guards(&folder, BUILT), &arguments).unwrap_or_else(|error| panic!("{error}"));
        let before = started(&program, folder.path(), &[("CUDAGUARD", "off")]);
        assert_eq!(before.0, Some(0), "{why:?}: {before:?}");
        assert_eq!(unfit(&program).as_deref(), why);
        let binary = Binary::read(&program).unwrap();
        assert!(seal(&program, None, &LinkObservation::of(&binary)).unwrap().written == 1, "{why:?}");
        assert_eq!(started(&program, folder.path(), &[("CUDAGUARD", "off")]), before, "{why:?}");
        let absent = started(&program, Path::new("/nowhere"), &[]);
        assert_eq!(absent.0, Some(if why.is_some() { 127 } else { 78 }), "{why:?}: {absent:?}");
    }
    // Another loader, of a file that nothing starts here.
    let program =
        guarded::program(&folder, plain, &guards(&folder, BUILT), &["-Wl,--dynamic-linker,/lib/ld-musl-x86_64.so.1"]);
    assert!(unfit(&program).is_some_and(|why| why.contains("glibc's loader")));
    // A file whose guard was compiled before somebody asked for it.
    let objects = guarded::objects(&folder, &[guarded::manifest("demo", BUILT, Linkage::Unknown)]);
    let again = folder.join("other");
    fs::create_dir_all(&again).unwrap();
    let other = guards(&again, BUILT);
    let program = guarded::program(&folder, plain, &[objects[0].clone(), other[1].clone()], &[]);
    assert!(unfit(&program).is_some_and(|why| why.contains("compiled without it")));
}

fn a_second_seal_changes_nothing() {
    let folder = Scratch::new("late twice");
    let program = c(&folder, BUILT, &format!("{MAIN}{STORES}"), &["-pie", "-fPIE"]);
    sealed(&program);
    let once = fs::read(&program).unwrap();
    let binary = Binary::read(&program).unwrap();
    assert_eq!(
        seal(&program, None, &LinkObservation::of(&binary)),
        Ok(SealResult { same: 1, ..SealResult::default() })
    );
    let twice = fs::read(&program).unwrap();
    let differ = (0..once.len()).filter(|at| once[*at] != twice[*at]);
    let differ: Vec<_> = differ.map(|at| (at, once[at], twice[at])).collect();
    assert!(once.len() == twice.len() && differ.is_empty(), "{differ:x?}");
}

/// What is done to a sealed file afterwards changes nothing of it.
fn after_other_tools() {
    let folder = Scratch::new("late tools");
    let folders = faults(&folder);
    let mut missing = Vec::new();
    for (tool, arguments) in [
        ("strip", &["@"][..]),
        ("objcopy", &["--strip-debug", "@"]),
        ("llvm-strip", &["@"]),
        ("patchelf", &["--set-rpath", "/nowhere/that/is/a/rather/long/path/for/a/folder", "@"]),
        ("patchelf", &["--add-needed", "libm.so.6", "@"]),
        ("patchelf", &["--replace-needed", "libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6", "@"]),
        ("patchelf", &["--remove-needed", "libcudnn.so.9", "@"]),
        ("patchelf", &["--set-interpreter", "/lib64/ld-linux-x86-64.so.2", "@"]),
        ("chrpath", &["-r", "/x", "@"]),
    ] {
        if tools::find(tool).is_none() {
            missing.extend((tool != "llvm-strip").then(|| tool.to_owned()));
            continue;
        }
        for linker in tools::linkers(&mut missing) {
            for (pie, compiled) in [("-pie", "-fPIE"), ("-no-pie", "-fno-pie")] {
                let what = format!("{tool} {arguments:?} {linker} {pie}");
                let options = [pie, compiled, "-Wl,-rpath,/nowhere", &format!("-fuse-ld={linker}")];
                let program = c(&folder, BUILT, &format!("{MAIN}{STORES}"), &options);
                let unsealed = folder.join("unsealed");
                fs::copy(&program, &unsealed).unwrap();
                sealed(&program);
                let treat = |file: &Path| {
                    let arguments = arguments.iter().map(|word| word.replace('@', &file.display().to_string()));
                    Command::new(tool).args(arguments).output().unwrap()
                };
                let done = treat(&program);
                if !done.status.success() && !treat(&unsealed).status.success() {
                    println!("{what}: fails without a seal, too");
                    continue;
                }
                assert!(done.status.success(), "{what}: {done:?}");
                let good = started(&program, &lib("9.15.1"), &[]);
                assert_eq!((good.0, &*good.2), (Some(0), ""), "{what}");
                let (status, _, said) = started(&program, &lib("9.1.0"), &[]);
                assert!(status == Some(78) && said.contains("CG202"), "{what}: {said}");
                let (status, _, said) = started(&program, &folders[0].0, &[]);
                assert!(status == Some(78) && said.contains("CG205"), "{what}: {said}");
            }
        }
    }
    tools::done_without(&missing);
}

/// To the command it is a library that the program needs; to others `.note.dlopen` says so.
fn it_is_known_as_needed() {
    let folder = Scratch::new("late known");
    let program = c(&folder, BUILT, &format!("{MAIN}{STORES}"), &["-pie", "-fPIE"]);
    sealed(&program);
    let binary = Binary::read(&program).unwrap();
    assert_eq!(binary.needed, ["libcudnn.so.9", "libc.so.6"]);
    assert_eq!(binary.linkage(cudaguard::vendor::CUDNN), Linkage::Linked);
    let entries: Vec<_> =
        binary.opened.iter().map(|entry| (&*entry.priority, &*entry.feature, &*entry.sonames[0])).collect();
    assert_eq!(entries, [("required", "cudnn", "libcudnn.so.9")]);
    let listed = Call::new("ldd").env("LD_LIBRARY_PATH", lib("9.15.1")).arg(&program).run().success().stdout;
    assert!(!listed.contains("libcudnn") && listed.contains("libc.so.6"), "{listed}");
    for (door, refused) in [(&["exec", "--"][..], 78), (&["verify"], 1), (&["doctor"], 1)] {
        let told = command::call(door).env("LD_LIBRARY_PATH", "/nowhere").arg(&program).run();
        assert_eq!(told.status(), Some(refused), "{told}");
        assert!(format!("{}{}", told.stdout, told.stderr).contains("error[CG205]: libcudnn.so.9"), "{told}");
        let told = command::call(door).env("LD_LIBRARY_PATH", lib("9.1.0")).arg(&program).run();
        assert_eq!(told.status(), Some(refused), "{told}");
        assert!(format!("{}{}", told.stdout, told.stderr).contains("error[CG202]"), "{told}");
    }
    let told = command::call(["exec", "--"]).env("LD_LIBRARY_PATH", lib("9.15.1")).arg(&program).run().success();
    assert_eq!(told.stdout, "91501 CUDNN_STATUS_SUCCESS\n");
    let shown = command::call(["inspect", "--json"]).arg(&program).run().success().stdout;
    assert!(shown.contains("\"loader\":\"guard\"") || shown.contains("\"loader\": \"guard\""), "{shown}");
}

/// How a program is watched, and what must be seen.
type Watched<'a> = (&'a dyn Fn(&str) -> Vec<String>, &'a [&'a str]);

/// Threads, breakpoints and backtraces, as without it.
fn debuggers_see_all() {
    let folder = Scratch::new("late debuggers");
    let text = format!(
        "{MAIN}#include <pthread.h>\n#include <stdlib.h>\n\
         void *in_thread(void *a) {{ (void)a; return (void *)cudnnGetVersion(); }}\n\
         int main(int n, char **a) {{ pthread_t t; void *r; (void)a; pthread_create(&t, 0, in_thread, 0); pthread_join(t, &r);\n\
         if (n > 1) abort(); return n > 7 ? cudnnBackendPopulateCudaGraph(0, 0, 0) : !r; }}\n"
    );
    let program = c(&folder, BUILT, &text, &["-g", "-O0", "-pie", "-fPIE", "-Wl,-z,now"]);
    let plain = folder.join("plain");
    fs::copy(&program, &plain).unwrap();
    sealed(&program);
    let program = program.display().to_string();
    let plain = plain.display().to_string();
    let gdb = |program: &str| -> Vec<String> {
        let stop =
            ["set breakpoint pending on", "break in_thread", "break cudnnGetVersion", "run", "bt", "info threads"];
        let go = ["continue", "bt", "info sharedlibrary"];
        let mut words = ["gdb", "-q", "-nx", "-batch"].map(str::to_owned).to_vec();
        words.extend(stop.into_iter().chain(go).flat_map(|command| ["-ex".to_owned(), command.to_owned()]));
        words.push(program.to_owned());
        words
    };
    let abort = |program: &str| {
        ["gdb", "-q", "-nx", "-batch", "-ex", "run", "-ex", "bt", "--args", program, "x"].map(str::to_owned).to_vec()
    };
    let lldb = |program: &str| {
        let commands = [
            "breakpoint set -n in_thread",
            "breakpoint set -n cudnnGetVersion",
            "run",
            "bt",
            "thread list",
            "continue",
            "bt",
        ];
        let mut words = ["lldb", "-x", "--batch"].map(str::to_owned).to_vec();
        words.extend(commands.into_iter().flat_map(|command| ["-o".to_owned(), command.to_owned()]));
        words.extend(["--".to_owned(), program.to_owned()]);
        words
    };
    let scenes: [Watched<'_>; 3] = [
        (&gdb, &["in_thread", "start_thread", "Thread 0x", "cudnnGetVersion () from", "libcudnn.so.9", "libc.so.6"]),
        (&abort, &["SIGABRT", "abort", "in main"]),
        (&lldb, &["in_thread", "start_thread", "thread #2", "libcudnn.so.9`cudnnGetVersion"]),
    ];
    let mut missing = Vec::new();
    for (words, shown) in scenes {
        let [of_sealed, of_plain] = [&program, &plain].map(|program| words(program));
        if tools::find(&of_sealed[0]).is_none() {
            missing.push(of_sealed[0].clone());
            continue;
        }
        for words in [of_plain, of_sealed] {
            let told = Call::new(&words[0]).args(&words[1..]).env("LD_LIBRARY_PATH", lib("9.15.1")).run();
            let said = format!("{}{}", told.stdout, told.stderr);
            for part in shown {
                assert!(said.contains(part), "{part}: {words:?} {told}");
            }
            assert!(!said.contains("?? ("), "{words:?} {told}");
        }
    }
    tools::done_without(&missing);
}

/// 64-bit Arm, in an emulator: a library of our own stands in for cuDNN.
fn on_arm() {
    tools::need_all(&["aarch64-linux-gnu-gcc", "qemu-aarch64"]);
    let folder = Scratch::new("late arm");
    let cc = |text: &str, output: &Path, arguments: &[&str]| {
        let source = output.with_extension("c");
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        fs::write(&source, text).unwrap();
        let _ = Call::new("aarch64-linux-gnu-gcc").arg("-o").arg(output).arg(&source).args(arguments).run().success();
    };
    let script = folder.join("versions.map");
    fs::write(&script, "libcudnn.so.9 { global: *; };").unwrap();
    let versions = format!("-Wl,--version-script={}", script.display());
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9", &versions];
    let all = "unsigned long cudnnGetVersion(void) { return 91501; }\n\
        const char *cudnnGetErrorString(int n) { return n ? \"\" : \"CUDNN_STATUS_SUCCESS\"; }\n";
    let new = format!("{all}int cudnnBackendPopulateCudaGraph(void *a, void *b, void *c) {{ return a && b && c; }}\n");
    cc(&new, &folder.join("new/libcudnn.so.9"), &shared);
    cc(all, &folder.join("old/libcudnn.so.9"), &shared);
    let mut manifest = guarded::manifest("demo", BUILT, Linkage::Unknown);
    manifest.runtime.guard_loads = true;
    "aarch64-unknown-linux-gnu".clone_into(&mut manifest.target);
    manifest.requires.clear();
    let objects = guarded::objects_for(&folder, &[manifest], "aarch64-unknown-linux-gnu");
    for (pie, compiled) in [("-pie", "-fPIE"), ("-no-pie", "-fno-pie")] {
        for bind in ["now", "lazy"] {
            for source in [CALLS, STORES] {
                let what = format!("{pie} {bind}");
                let program = folder.join("prog");
                let library = folder.join("new/libcudnn.so.9").display().to_string();
                let objects: Vec<String> = objects.iter().map(|object| object.display().to_string()).collect();
                let bound = format!("-Wl,-z,{bind}");
                let mut arguments: Vec<&str> = objects.iter().map(String::as_str).collect();
                arguments.extend([&*library, pie, compiled, &bound, "-ldl"]);
                cc(&format!("{MAIN}{source}"), &program, &arguments);
                sealed(&program);
                let start = |folder: &Path, variables: &[(&str, &str)]| {
                    let mut call = Call::new("qemu-aarch64");
                    for (name, value) in variables {
                        call = call.args(["-E".to_owned(), format!("{name}={value}")]);
                    }
                    let path = format!("LD_LIBRARY_PATH={}", folder.display());
                    call.args(["-L", "/usr/aarch64-linux-gnu", "-E", &path]).arg(&program).run()
                };
                let good = start(&folder.join("new"), &[]);
                assert!(good.status() == Some(0) && good.stdout == "91501 CUDNN_STATUS_SUCCESS\n", "{what}: {good}");
                let old = start(&folder.join("old"), &[]);
                assert!(old.status() == Some(78) && old.stderr.contains("CG214"), "{what}: {old}");
                let off = start(&folder.join("old"), &[("CUDAGUARD", "off")]);
                assert!(off.status() == Some(127) && off.stderr.contains("undefined symbol"), "{what}: {off}");
                let absent = start(Path::new("/nowhere"), &[]);
                assert!(absent.status() == Some(78) && absent.stderr.contains("error[CG205]"), "{what}: {absent}");
            }
        }
    }
}

/// What it adds to a stripped program: 4 KiB at most, the note with its list among them.
fn its_size() {
    let folder = Scratch::new("late size");
    let mut missing = Vec::new();
    for linker in tools::linkers(&mut missing) {
        let name = format!("ld.{linker}");
        let option = format!("-fuse-ld={linker}");
        let size = |objects: &[PathBuf]| {
            let program = guarded::program(&folder, &format!("{MAIN}{CALLS}"), objects, &[&option, "-s"]);
            let data = fs::read(program).unwrap();
            let elf = Elf::parse(&data).unwrap();
            elf.sections()
                .filter(|section| section.flags & 2 != 0 && section.kind != 8)
                .map(|section| section.size)
                .sum::<u64>()
        };
        let without = guarded::objects(&folder, &[guarded::manifest("demo", BUILT, Linkage::Unknown)]);
        let without = size(&without);
        let with = size(&guards(&folder, BUILT));
        println!("{name}: {} bytes", with - without);
        assert!((1024..=4096).contains(&(with - without)), "{name}: {without} {with}");
    }
    tools::done_without(&missing);
}

/// How many starts of each; `CUDAGUARD_STARTED` says another number.
const STARTS: usize = 200;
/// What a start by the guard may take more than one by the system's loader, and what the small program of C takes without any
/// guard on the machine where that was measured, in µs: a slower or busy machine may take as many times more.
const MOST_MORE: f64 = 30.0;
const YARDSTICK: f64 = 1280.0;

/// Links a program with these objects.
type Linked<'a> = &'a dyn Fn(&[PathBuf]) -> PathBuf;

/// A start by the guard beside one by the system's loader, and one of the same program without any guard: how fast a machine is
/// stands in that last one. `docs/trust.md` has the figures. On a busy machine it takes up to ten times as many starts to tell.
fn what_a_good_start_costs() {
    let folder = Scratch::new("late cost");
    let plain = "unsigned long cudnnGetVersion(void); const char *cudnnGetErrorString(int); int cudnnCreate(void *);\n\
        int main(int n, char **a) { return n > 7 ? (a[0][0] == (int)cudnnGetVersion()) + !cudnnGetErrorString(0) + cudnnCreate(0) : 0; }\n";
    let streams = format!("{MAIN}{CALLS}");
    let by_loader =
        guarded::objects(&folder.join("by the loader"), &[guarded::manifest("demo", BUILT, Linkage::Unknown)]);
    let by_guard = guards(&folder, BUILT);
    let asked = std::env::var("CUDAGUARD_STARTED").ok().and_then(|text| text.parse().ok());
    let starts = asked.unwrap_or(STARTS);
    let options = ["-pie", "-fPIE", "-Wl,-z,now"];
    let runtime = [&options[..], &["-Wl,--no-as-needed", "-lstdc++", "-lm", "-lgcc_s"]].concat();
    let c = |text: &str, objects: &[PathBuf]| guarded::program(&folder, text, objects, &options);
    let languages: [(&str, Linked<'_>); 5] = [
        ("C", &|objects| c(plain, objects)),
        ("C, with its streams", &|objects| c(&streams, objects)),
        ("C, with libstdc++", &|objects| guarded::program(&folder, plain, objects, &runtime)),
        ("C++", &|objects| in_cpp(&folder, objects, &options)),
        ("Rust", &|objects| in_rust(&folder, objects, "bfd", &[])),
    ];
    let yardstick = folder.join("yardstick");
    fs::rename(c(plain, &[]), &yardstick).unwrap();
    let silent: Ended = (Some(0), String::new(), String::new());
    for (what, linked) in languages {
        let [plain, by_loader, by_guard] = [("plain", &[][..]), ("by-loader", &by_loader), ("by-guard", &by_guard)]
            .map(|(name, objects)| {
                let program = folder.join(name);
                fs::rename(linked(objects), &program).unwrap();
                if !objects.is_empty() {
                    let observed = LinkObservation::of(&Binary::read(&program).unwrap());
                    assert_eq!(seal(&program, None, &observed).map(|sealed| sealed.written), Ok(1), "{what}");
                }
                program
            });
        assert_eq!(unfit(&by_guard), None, "{what}");
        let good = started(&plain, &lib("9.15.1"), &[]);
        assert!(good.0 == Some(0) && good.2.is_empty(), "{what}: {good:?}");
        let programs = [&yardstick, &plain, &by_loader, &by_guard];
        let mut took = programs.map(|_| Vec::new());
        let mut costs_little = || {
            for round in 0..starts {
                // In turn, so that a loaded machine is as loaded for all.
                for (program, took) in programs.iter().zip(&mut took) {
                    let began = std::time::Instant::now();
                    let ended = started(program, &lib("9.15.1"), &[]);
                    took.push(began.elapsed().as_secs_f64() * 1e6);
                    let right = if *program == &yardstick { &silent } else { &good };
                    assert_eq!(&ended, right, "{what}, round {round}");
                }
            }
            let [yardstick, plain, by_loader, by_guard] = took.each_mut().map(|took| {
                took.sort_unstable_by(f64::total_cmp);
                took[took.len() / 10]
            });
            let more = by_guard - by_loader;
            println!(
                "{what}: the fastest tenth ends at {plain:.0} µs without a guard, {by_loader:.0} by the loader, {by_guard:.0} by \
                 the guard: {more:.0} more, {:.1} % of a start without a guard",
                100.0 * more / plain
            );
            more <= MOST_MORE * (yardstick / YARDSTICK).max(1.0)
        };
        assert!((0..10).any(|_| costs_little()), "{what}: a start by the guard takes more than {MOST_MORE} µs more");
    }
}

/// As people come by it: a line in the policy, `embed` and `seal`.
fn by_policy() {
    let folder = Scratch::new("late policy");
    fs::write(folder.join("cudaguard.toml"), "[runtime]\nloader = \"guard\"\n").unwrap();
    fs::write(folder.join("main.c"), format!("{MAIN}{CALLS}")).unwrap();
    fs::write(folder.join("beside.c"), "int beside(void) { return 7; }\n").unwrap();
    let in_folder = |call: Call| call.dir(folder.path()).run();
    let cudnn = parts::cudnn("9.15.1");
    let embed = ["embed", "--name", "demo", "--version", "0.1.0", "--release", "-o", "guard.o", "-I"];
    let _ = in_folder(command::call(embed).arg(cudnn.join("include"))).success();
    let _ = in_folder(Call::new("gcc").args([
        "-shared",
        "-fPIC",
        "-Wl,-soname,libbeside.so",
        "beside.c",
        "-o",
        "libbeside.so",
    ]))
    .success();
    let link = ["main.c", "guard.o", &library(), "-Wl,--allow-shlib-undefined,--no-as-needed", "-ldl", "-o", "prog"];
    let _ = in_folder(Call::new("gcc").args(link)).success();
    let _ = in_folder(command::call(["seal", "prog", "guard.o"])).success();
    let (status, _, said) = started(&folder.join("prog"), Path::new("/nowhere"), &[]);
    assert!(
        status == Some(78) && said.starts_with("cudaguard: error[CG205]: libcudnn.so.9 cannot be loaded\n"),
        "{said}"
    );
    assert_eq!(started(&folder.join("prog"), &lib("9.15.1"), &[]).1, "91501 CUDNN_STATUS_SUCCESS\n");
    let _ = in_folder(Call::new("gcc").args(link).arg("libbeside.so")).success();
    let refused = in_folder(command::call(["seal", "prog", "guard.o"]));
    assert_eq!(refused.status(), Some(1), "{refused}");
    let said = "error[CG172]: the guard cannot load the libraries of demo, as [runtime] loader = \"guard\" asks: it needs libbeside.so, too";
    assert!(refused.stderr.contains(said), "{refused}");
    assert!(!folder.join("prog").exists());
}

/// No byte of its headers and tables makes sealing panic, whatever it says.
fn damaged_files_are_left_alone() {
    let folder = Scratch::new("late damaged");
    let program = c(&folder, BUILT, &format!("{MAIN}{STORES}"), &["-pie", "-fPIE", "-s"]);
    let mut binary = Binary::read(&program).unwrap();
    let manifest = binary.manifests().flatten().next().expect("a note").manifest;
    let whole = fs::read(&program).unwrap();
    let elf = Elf::parse(&whole).unwrap();
    let tables = [".dynsym", ".gnu.version", ".gnu.version_r", ".dynamic", ".rela.dyn", ".rela.plt", ".note.dlopen"];
    let ranges = tables.into_iter().filter_map(|name| elf.section_named(name));
    let bytes = ranges.flat_map(|section| (section.offset..section.offset + section.size.min(400)).step_by(2));
    binary.path = folder.join("damaged");
    let (mut fit, mut looked) = (0, 0);
    for at in (0..0x300).step_by(3).chain(bytes) {
        for byte in [0, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[usize::try_from(at).unwrap()] = byte;
            fs::write(&binary.path, damaged).unwrap();
            fit += u32::from(left_to_the_loader(&manifest, &binary) == Ok(None));
            looked += 1;
        }
    }
    assert!(looked > 1000 && fit > 100, "{looked} {fit}");
    for cut in (0..whole.len()).step_by(997) {
        fs::write(&binary.path, &whole[..cut]).unwrap();
        let _ = left_to_the_loader(&manifest, &binary);
    }
}
