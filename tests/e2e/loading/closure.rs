//! What runs together is judged together: each arrangement of programs and libraries has the same answer in every front end. The
//! real loader judges the arrangements of small libraries.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard::internal::manifest::{Linkage, Opens};
use cudaguard::internal::version::Version;
use cudaguard_tests::world::{self, MakeMachine as _, T4, World};
use cudaguard_tests::{Call, Dice, Outcome, Scratch, Test, command, e2e, parts, test};

use super::guarded_programs::{self, link};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for seed in 1..=20 {
        let one = test(format!("closure::random_arrangement_{seed}"), move || random_arrangement(seed));
        tests.push(if seed <= 6 { one } else { one.slow() });
    }
    tests
}

const RELEASE: &str = "535.261.03";

/// Asks every front end about a program and the directory that contains it, on a machine with a T4 and this driver, which
/// supports this CUDA version.
fn ask_all(app: &Path, (release, cuda): (&'static str, u32)) -> Vec<(&'static str, Outcome)> {
    let file = app.join("prog");
    let tar = app.with_extension("tar");
    let _ = Call::new("tar").arg("-cf").arg(&tar).arg("-C").arg(app).arg(".").run().success();
    let machine = World::new(release, cuda, &[T4]).make(&app.with_extension("machine"));
    let described = |path: &Path| {
        Call::new(command::path()).arg("verify").arg(path).args(["--driver", release, "--gpu", "T4"]).run()
    };
    let here = |words: &[&str], path: &Path| machine.call(command::path(), &[]).args(words).arg(path).run();
    vec![
        ("verify FILE --driver", described(&file)),
        ("verify DIR --driver", described(app)),
        ("verify TAR --driver", described(&tar)),
        ("verify FILE", here(&["verify"], &file)),
        ("verify DIR", here(&["verify"], app)),
        ("verify TAR", here(&["verify"], &tar)),
        ("doctor", here(&["doctor"], &file)),
        ("exec", here(&["exec", "--"], &file)),
    ]
}

const CALLS: &str = "int cudaRuntimeGetVersion(int *); int b(void);\n\
                     int main(int n, char **a) { (void)a; return n > 9 ? cudaRuntimeGetVersion(&n) + b() : 0; }\n";
const LIBRARY: &str = "int cudaRuntimeGetVersion(int *); int b(void) { int v; return cudaRuntimeGetVersion(&v); }\n";

/// Builds `app/prog`, linked to cudart 11.8 and to `app/lib/libb.so`, which is linked to this cudart.
fn app_with_library(scratch: &Scratch, release: &str, cudart: &str, objects: &[PathBuf]) -> PathBuf {
    let app = scratch.join("app");
    let lib = app.join("lib");
    fs::create_dir_all(&lib).expect("a folder");
    for (release, name) in [("11.8", "libcudart.so.11.0"), (release, cudart)] {
        fs::copy(parts::cudart(release), lib.join(name)).expect("a library");
    }
    let text = |path: PathBuf| path.display().to_string();
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libb.so", "-Wl,-rpath,$ORIGIN"].map(str::to_owned);
    link(LIBRARY, &lib.join("libb.so"), &[], &[&shared[..], &[text(lib.join(cudart))]].concat()).expect("a library");
    let needed = [text(lib.join("libb.so")), text(lib.join("libcudart.so.11.0")), "-Wl,-rpath,$ORIGIN/lib".to_owned()];
    link(CALLS, &app.join("prog"), objects, &needed).expect("a program");
    app
}

/// A crate looks up functions by their names, which are constants of the program: one version looks up all of them when it opens
/// the library, another version each at its first call.
#[e2e(slow)]
fn functions_that_crates_look_up_are_judged() {
    world::need();
    for (by, named, exported, message) in [
        ("cudarc 0.17.8", &["nvrtcGetPTX", "nvrtcGetNVVM"][..], "nvrtcGetPTX", Some("error[CG214]")),
        ("cudarc 0.17.8", &["nvrtcGetPTX", "nvrtcResult"], "nvrtcGetPTX", None),
        ("cudarc 0.19.10", &["nvrtcGetPTX", "nvrtcGetTileIR"], "nvrtcGetPTX", Some("warning[CG214]")),
        ("cudarc 0.19.10", &["nvrtcGetPTX", "nvrtcGetTileIR"], "nvrtcGetTileIR", None),
        ("another 1.0.0", &["nvrtcGetTileIR"], "nvrtcGetPTX", Some("warning[CG214]")),
    ] {
        let scratch = Scratch::new("closure-looked-up");
        let app = scratch.join("app");
        fs::create_dir_all(app.join("lib")).expect("a directory");
        let mut manifest = guarded_programs::manifest("demo", Version::new(9, 15, 1), Linkage::None);
        (manifest.library, manifest.sealed) = (None, true);
        manifest.requires.clear();
        let (libraries, endings) = (vec!["nvrtc".to_owned()], vec![".so".to_owned()]);
        manifest.opens = vec![Opens { by: by.to_owned(), libraries, endings }];
        let objects = guarded_programs::objects(scratch.path(), &[manifest]);
        let main = format!(
            "const char *const names[] = {{ \"{}\" }};\nint main(int n, char **a) {{ return n > 9 && **a == *names[n]; }}\n",
            named.join("\", \"")
        );
        let rpath = ["-Wl,-rpath,$ORIGIN/lib".to_owned()];
        link(&main, &app.join("prog"), &objects, &rpath).expect("a program");
        let library = format!("int {exported}(void) {{ return 0; }}\n");
        let shared = ["-shared", "-fPIC", "-Wl,-soname,libnvrtc.so.13"].map(str::to_owned);
        link(&library, &app.join("lib/libnvrtc.so"), &[], &shared).expect("a library");
        let is_error = message.is_some_and(|message| message.starts_with("error"));
        for (front_end, outcome) in ask_all(&app, (RELEASE, 12020)) {
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            if front_end == "exec" {
                assert_eq!(outcome.status(), Some(if is_error { 78 } else { 0 }), "{by}: {outcome}");
            } else {
                assert_eq!(outcome.status() == Some(1), is_error, "{by} {front_end}: {outcome}");
                let reported = text.contains("[CG214]");
                assert_eq!(
                    reported,
                    message.is_some_and(|message| text.contains(message)),
                    "{by} {front_end}: {outcome}"
                );
                assert_eq!(reported, message.is_some(), "{by} {named:?} {front_end}: {outcome}");
            }
        }
    }
}

/// A library of the program that is nowhere may contain GPU code. Libraries of the system do not.
#[e2e]
fn absent_library_is_unknown() {
    for (soname, status) in [("libkernels.so.1", 2), ("libGL.so.1", 0), ("libgomp.so.1", 0)] {
        let scratch = Scratch::new("closure-absent");
        let app = app_with_library(&scratch, "11.8", "libcudart.so.11.0", &[]);
        let library = scratch.join(soname);
        link(
            "int x(void) { return 1; }\n",
            &library,
            &[],
            &["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{soname}")],
        )
        .expect("a library");
        let program = app.join("absent");
        let needed = [library, app.join("lib/libcudart.so.11.0")].map(|path| path.display().to_string());
        let needed = [&["-Wl,--no-as-needed,-rpath,$ORIGIN/lib".to_owned()][..], &needed].concat();
        link("int main(void) { return 0; }\n", &program, &[], &needed).expect("a program");
        fs::remove_file(scratch.join(soname)).expect("the library");
        let tar = scratch.join("app.tar");
        let _ = Call::new("tar").arg("-cf").arg(&tar).arg("-C").arg(&app).arg(".").run().success();
        for path in [&program, &app, &tar] {
            let verify = Call::new(command::path()).arg("verify").arg(path).args(["--driver", RELEASE, "--gpu", "T4"]);
            let outcome = verify.run();
            assert_eq!(outcome.status(), Some(status), "{soname}: {outcome}");
            assert_eq!(outcome.stdout.contains(soname), status == 2, "{soname}: {outcome}");
            for (words, text) in [
                (&["map"][..], "parts of the files were not examined"),
                (&["requirements", "--format", "oci"], "# Not examined, so it may require more: 1 part\n"),
            ] {
                let outcome = Call::new(command::path()).args(words).arg(path).run().success();
                assert_eq!(outcome.stdout.contains(text), status == 2, "{soname} {words:?}: {outcome}");
            }
        }
    }
}

/// `doctor` takes a program from PATH, as `exec` does. The other subcommands take files, and name the program.
#[e2e]
fn program_is_found_by_name() {
    let scratch = Scratch::new("closure-name");
    let app = app_with_library(&scratch, "11.8", "libcudart.so.11.0", &[]);
    let call =
        |words: &[&str]| Call::new(command::path()).args(words).arg("prog").env("PATH", &app).dir(&*scratch).run();
    let program = app.join("prog").display().to_string();
    assert!(call(&["doctor"]).stdout.contains(&format!("\n{program}: ")));
    for words in [&["verify"], &["inspect"], &["map"], &["requirements"]] {
        let outcome = call(words).expect(2);
        assert!(outcome.stderr.contains(&format!("; the program of this name is {program}\n")), "{outcome}");
    }
}

/// The guard of a program judges its own component. `verify` says of other problems that no start checks them.
#[e2e]
fn unchecked_problems_are_marked() {
    let scratch = Scratch::new("closure-marked");
    let mut manifest = guarded_programs::manifest("demo", Version::new(9, 15, 1), Linkage::None);
    (manifest.library, manifest.sealed) = (None, true);
    manifest.requires.clear();
    let objects = guarded_programs::objects(scratch.path(), &[manifest]);
    let app = app_with_library(&scratch, "13.0", "libcudart.so.13", &objects);
    let verify = Call::new(command::path()).arg("verify").arg(app.join("prog"));
    let outcome = verify.args(["--driver", RELEASE, "--gpu", "T4", "--json"]).run().expect(1);
    let mark = "\"at_start\": \"not checked\"";
    assert!(outcome.stdout.contains("CG301") && outcome.stdout.contains(mark), "{outcome}");
    // Without the library, nothing is wrong.
    let alone = scratch.join("alone");
    link("int main(void) { return 0; }\n", &alone, &objects, &[]).expect("a program");
    let verify = Call::new(command::path()).arg("verify").arg(&alone).args(["--driver", RELEASE, "--gpu", "T4"]);
    assert!(!verify.run().success().stderr.contains("not checked at start-up"));
}

const DIRS: [&str; 3] = ["a", "b", "c"];
/// Libraries with the functions that they define, each after those that it may need.
const LIBRARIES: [(&str, &str); 3] = [
    ("libnvJitLink.so.12", "__nvJitLinkComplete_12_4"),
    ("libcusparse.so.12", "cusparseCreate"),
    ("libcusolver.so.11", "cusolverDnCreate"),
];

/// Returns a search path in random order: all directories or some, in one of the two tags or in none.
fn search_path(random: &mut Dice, from: &str) -> Vec<String> {
    let mut dirs = DIRS.to_vec();
    let start = random.below(3);
    dirs.rotate_left(start);
    if random.below(2) == 0 {
        dirs.swap(0, 1);
    }
    dirs.truncate([3, 3, 2, 1][random.below(4)]);
    let path = dirs.iter().map(|dir| format!("{from}/{dir}")).collect::<Vec<_>>().join(":");
    match random.below(4) {
        0 => Vec::new(),
        1 => vec![format!("-Wl,--disable-new-dtags,-rpath,{path}")],
        _ => vec![format!("-Wl,--enable-new-dtags,-rpath,{path}")],
    }
}

/// Builds libraries in random directories, some without the function that another one needs, and compares the front ends with the
/// loader, which binds all functions at the start.
fn random_arrangement(seed: u64) {
    let mut random = Dice::new(seed, 0);
    let scratch = Scratch::new("closure-random");
    let (app, good) = (scratch.join("app"), scratch.join("good"));
    for dir in DIRS.iter().map(|dir| app.join(dir)).chain([app.join("bin"), good.clone()]) {
        fs::create_dir_all(dir).expect("a folder");
    }
    let text = |path: PathBuf| path.display().to_string();
    for (at, (soname, function)) in LIBRARIES.iter().enumerate() {
        let own: Vec<usize> = (0..at).filter(|other| *other + 1 == at || random.below(2) == 0).collect();
        let calls = own.iter().map(|other| format!("int {}(void); ", LIBRARIES[*other].1)).collect::<Vec<_>>().concat();
        let sum = own.iter().fold("0".to_owned(), |sum, other| format!("{sum} + {}()", LIBRARIES[*other].1));
        let whole = format!("{calls}int {function}(void) {{ return {sum}; }}\n");
        let script = scratch.file("versions.map", format!("{soname} {{ global: *; }};"));
        let build = |source: &str, place: &Path, more: &[String]| {
            let mut arguments =
                ["-shared", "-fPIC", "-nostdlib", "-Wl,--allow-shlib-undefined"].map(str::to_owned).to_vec();
            arguments.extend([format!("-Wl,--version-script={}", script.display()), format!("-Wl,-soname,{soname}")]);
            arguments.extend(more.iter().cloned());
            arguments.extend(own.iter().map(|other| text(good.join(LIBRARIES[*other].0))));
            link(source, place, &[], &arguments).unwrap_or_else(|error| panic!("{error}"));
        };
        build(&whole, &good.join(soname), &[]);
        let lacking = format!("{calls}int other_{at}(void) {{ return {sum}; }}\n");
        let first = random.below(3);
        for (index, dir) in DIRS.iter().enumerate() {
            if index == first || random.below(2) == 0 {
                // Only the first library lacks its function in some directories, as an old release does.
                let source = if at == 0 && random.below(2) == 0 { &lacking } else { &whole };
                build(source, &app.join(dir).join(soname), &search_path(&mut random, "$ORIGIN/.."));
            }
        }
    }
    let own: Vec<usize> = (0..3).filter(|at| *at == 2 || random.below(3) == 0).collect();
    let calls = own.iter().map(|at| format!("int {}(void); ", LIBRARIES[*at].1)).collect::<Vec<_>>().concat();
    let sum = own.iter().fold("0".to_owned(), |sum, at| format!("{sum} + {}()", LIBRARIES[*at].1));
    let mut arguments = search_path(&mut random, "$ORIGIN/..");
    arguments.push("-Wl,--allow-shlib-undefined".to_owned());
    arguments.extend(own.iter().rev().map(|at| text(good.join(LIBRARIES[*at].0))));
    let program = app.join("bin/prog");
    let main = format!("{calls}int main(int n, char **a) {{ (void)a; return n > 9 ? {sum} : 0; }}\n");
    link(&main, &program, &[], &arguments).unwrap_or_else(|error| panic!("{error}"));
    fs::remove_file(program.with_extension("c")).expect("the source");
    let real = Call::new(&program).env("LC_ALL", "C").env("LD_BIND_NOW", "1").run();
    let lacks = real.stderr.contains("undefined symbol");
    if real.status() != Some(0) && !lacks {
        // A library is not found. Another machine may have it, so only the front ends for this machine refuse.
        assert!(real.stderr.contains("cannot open shared object file"), "{seed}: {real}");
        let exec = Call::new(command::path()).args(["exec", "--"]).arg(&program).run();
        assert_eq!(exec.status(), Some(78), "{seed}: {exec}");
        return;
    }
    let tar = scratch.join("app.tar");
    let _ = Call::new("tar").arg("-cf").arg(&tar).arg("-C").arg(&app).arg(".").run().success();
    let driver = ["--driver", RELEASE, "--gpu", "T4"];
    for (words, path) in
        [(&driver[..], &program), (&driver, &app), (&driver, &tar), (&[], &program), (&[], &app), (&[], &tar)]
    {
        let outcome = Call::new(command::path()).arg("verify").arg(path).args(words).run();
        let refused = outcome.stderr.contains("error[CG214]");
        assert_eq!(refused, lacks, "{seed}: verify {} {words:?}\n{real}\n{outcome}", path.display());
        assert_eq!(outcome.status() == Some(1), lacks, "{seed}: {outcome}");
    }
    let exec = Call::new(command::path()).args(["exec", "--"]).arg(&program).run();
    assert_eq!(exec.status() == Some(78), lacks, "{seed}: {real}\n{exec}");
    // `doctor` also reports that a machine has no driver.
    let doctor = Call::new(command::path()).arg("doctor").arg(&program).run();
    assert_eq!(doctor.to_string().contains("error[CG214]"), lacks, "{seed}: {real}\n{doctor}");
}
