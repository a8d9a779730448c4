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

/// Fails if a front end does not refuse with this code, or refuses at all if there is none.
fn expect_all(app: &Path, driver: (&'static str, u32), code: Option<&str>) {
    for (front_end, outcome) in ask_all(app, driver) {
        let status = match (code, front_end) {
            (None, _) => 0,
            (Some(_), "exec") => 78,
            (Some(_), _) => 1,
        };
        assert_eq!(outcome.status(), Some(status), "{front_end} {code:?}: {outcome}");
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        if let Some(code) = code {
            assert!(text.contains(&format!("error[{code}]")), "{front_end}: {outcome}");
        }
    }
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

#[e2e]
fn library_needs_newer_driver() {
    world::need();
    for (release, cudart, code) in [("11.8", "libcudart.so.11.0", None), ("13.0", "libcudart.so.13", Some("CG301"))] {
        let scratch = Scratch::new("closure-driver");
        expect_all(&app_with_library(&scratch, release, cudart, &[]), (RELEASE, 12020), code);
    }
}

/// The program needs no library of NVIDIA itself.
#[e2e]
fn two_cudarts_in_libraries_are_reported() {
    world::need();
    let scratch = Scratch::new("closure-cudarts");
    let app = scratch.join("app");
    let lib = app.join("lib");
    fs::create_dir_all(&lib).expect("a folder");
    let text = |path: PathBuf| path.display().to_string();
    for (release, cudart, name) in [("11.8", "libcudart.so.11.0", "a"), ("13.0", "libcudart.so.13", "b")] {
        fs::copy(parts::cudart(release), lib.join(cudart)).expect("a library");
        let shared =
            ["-shared", "-fPIC", &format!("-Wl,-soname,lib{name}.so"), "-Wl,-rpath,$ORIGIN"].map(str::to_owned);
        let source = LIBRARY.replace("int b(void)", &format!("int {name}(void)"));
        let library = lib.join(format!("lib{name}.so"));
        link(&source, &library, &[], &[&shared[..], &[text(lib.join(cudart))]].concat()).expect("a library");
    }
    let needed = [text(lib.join("liba.so")), text(lib.join("libb.so")), "-Wl,-rpath,$ORIGIN/lib".to_owned()];
    let main = "int a(void); int b(void); int main(int n, char **v) { (void)v; return n > 9 ? a() + b() : 0; }\n";
    link(main, &app.join("prog"), &[], &needed).expect("a program");
    for (front_end, outcome) in ask_all(&app, ("580.65.06", 13000)).into_iter().filter(|(name, _)| *name != "exec") {
        let text = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(
            text.contains("warning[CG233]") && text.contains("prog loads libcudart.so.11"),
            "{front_end}: {outcome}"
        );
    }
}

/// A program with GPU code names NVIDIA's package of cuFFT in its search path and does not link it, so it opens it by name.
#[e2e]
fn opened_library_is_judged() {
    world::need();
    let container = "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.quad 0x00100001ba55ed50, 0\\n.text\");\n";
    for (release, cudart, code) in [
        ("11.8", Some("libcudart.so.11.0"), None),
        ("13.0", Some("libcudart.so.13"), Some("CG301")),
        ("11.8", None, None),
    ] {
        let scratch = Scratch::new("closure-opened");
        let app = scratch.join("app");
        let lib = app.join("nvidia/cufft/lib");
        fs::create_dir_all(&lib).expect("a folder");
        let main = format!("{container}int main(void) {{ return 0; }}\n");
        link(&main, &app.join("prog"), &[], &["-Wl,-rpath,$ORIGIN/nvidia/cufft/lib".to_owned()]).expect("a program");
        let Some(cudart) = cudart else {
            for (front_end, outcome) in ask_all(&app, (RELEASE, 12020)).into_iter().filter(|(name, _)| *name != "exec")
            {
                assert_eq!(outcome.status(), Some(2), "{front_end}: {outcome}");
                assert!(outcome.stdout.contains("libcufft.so"), "{front_end}: {outcome}");
            }
            continue;
        };
        fs::copy(parts::cudart(release), lib.join(cudart)).expect("a library");
        let shared = ["-shared", "-fPIC", "-Wl,-soname,libcufft.so.11", "-Wl,-rpath,$ORIGIN"].map(str::to_owned);
        let needed = [lib.join(cudart).display().to_string()];
        link(LIBRARY, &lib.join("libcufft.so.11"), &[], &[&shared[..], &needed].concat()).expect("a library");
        expect_all(&app, (RELEASE, 12020), code);
    }
}

/// The name of a library in the directory or search path of a program is a text in the program: it is a plugin that the program opens.
#[e2e(slow)]
fn plugin_is_judged() {
    world::need();
    for (release, cudart, dir, code) in [
        ("11.8", "libcudart.so.11.0", "", None),
        ("13.0", "libcudart.so.13", "", Some("CG301")),
        ("13.0", "libcudart.so.13", "plugins", Some("CG301")),
    ] {
        let scratch = Scratch::new("closure-plugin");
        let app = scratch.join("app");
        let plugins = app.join(dir);
        fs::create_dir_all(&plugins).expect("a directory");
        fs::copy(parts::cudart(release), plugins.join(cudart)).expect("a library");
        let shared = ["-shared", "-fPIC", "-Wl,-soname,libplugin.so,-rpath,$ORIGIN"].map(str::to_owned);
        let needed = [plugins.join(cudart).display().to_string()];
        link(LIBRARY, &plugins.join("libplugin.so"), &[], &[&shared[..], &needed].concat()).expect("a library");
        let main = "const char *const plugin = \"libplugin.so\";\nint main(int n, char **a) { return n > 9 && **a == *plugin; }\n";
        link(main, &app.join("prog"), &[], &[format!("-Wl,-rpath,$ORIGIN/{dir}")]).expect("a program");
        expect_all(&app, (RELEASE, 12020), code);
    }
}

/// A program brings the CUDA runtime, and its name is a text in the program.
#[e2e]
fn opened_cudart_is_judged() {
    world::need();
    let container = "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.quad 0x00100001ba55ed50, 0\\n.text\");\n";
    for (release, cudart, code) in [("11.8", "libcudart.so.11.0", None), ("13.0", "libcudart.so.13", Some("CG301"))] {
        let scratch = Scratch::new("closure-opened-cudart");
        let app = scratch.join("app");
        fs::create_dir_all(&app).expect("a directory");
        fs::copy(parts::cudart(release), app.join(cudart)).expect("a library");
        let main = format!(
            "{container}const char *const name = \"{cudart}\";\nint main(int n, char **a) {{ return n > 9 && **a == *name; }}\n"
        );
        link(&main, &app.join("prog"), &[], &["-Wl,-rpath,$ORIGIN".to_owned()]).expect("a program");
        expect_all(&app, (RELEASE, 12020), code);
    }
}

/// cuDNN opens its parts by name, and a crate opens the libraries that the manifest lists. Both need cudart 13 here.
#[e2e]
fn libraries_of_cudnn_and_crates_are_judged() {
    world::need();
    let cudnn = parts::cudnn("9.15.1").join("lib/libcudnn.so.9");
    for (is_cudnn, opened) in [(true, "libcudnn_graph.so.9"), (false, "libnvrtc.so")] {
        let scratch = Scratch::new("closure-others");
        let app = scratch.join("app");
        let lib = app.join("lib");
        fs::create_dir_all(&lib).expect("a directory");
        let rpath = "-Wl,--no-as-needed,-rpath,$ORIGIN/lib".to_owned();
        let (objects, needed) = if is_cudnn {
            fs::copy(&cudnn, lib.join("libcudnn.so.9")).expect("a library");
            (Vec::new(), vec![rpath, "-Wl,--unresolved-symbols=ignore-all".to_owned(), cudnn.display().to_string()])
        } else {
            let mut manifest = guarded_programs::manifest("demo", Version::new(9, 15, 1), Linkage::None);
            (manifest.library, manifest.sealed) = (None, true);
            manifest.requires.clear();
            let (by, libraries, endings) =
                ("cudarc 0.19.10".to_owned(), vec!["nvrtc".to_owned()], vec![".so".to_owned()]);
            manifest.opens = vec![Opens { by, libraries, endings }];
            (guarded_programs::objects(scratch.path(), &[manifest]), vec![rpath])
        };
        link("int main(void) { return 0; }\n", &app.join("prog"), &objects, &needed).expect("a program");
        let cudart = lib.join("libcudart.so.13");
        fs::copy(parts::cudart("13.0"), &cudart).expect("a library");
        let reports_driver = |outcome: &Outcome| format!("{}{}", outcome.stdout, outcome.stderr).contains("CG301");
        for (front_end, outcome) in ask_all(&app, (RELEASE, 12020)) {
            assert!(!reports_driver(&outcome) || front_end.contains("DIR") || front_end.contains("TAR"), "{outcome}");
        }
        let shared = ["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", &format!("-Wl,-soname,{opened}")].map(str::to_owned);
        let needed = [&shared[..], &[cudart.display().to_string()]].concat();
        link(LIBRARY, &lib.join(opened), &[], &needed).expect("a library");
        for (front_end, outcome) in ask_all(&app, (RELEASE, 12020)).into_iter().filter(|(name, _)| *name != "exec") {
            assert!(outcome.status() == Some(1) && reports_driver(&outcome), "{opened} {front_end}: {outcome}");
        }
    }
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

/// An extension module that does not use CUDA says nothing about a GPU, even if it cannot be loaded: mpi4py has one for each MPI.
#[e2e(slow)]
fn absent_library_of_others_is_ignored() {
    world::need();
    let scratch = Scratch::new("closure-others-absent");
    let app = app_with_library(&scratch, "11.8", "libcudart.so.11.0", &[]);
    let shared = |soname: &str| ["-shared", "-fPIC", &format!("-Wl,-soname,{soname}")].map(str::to_owned);
    let mpi = scratch.join("libmpi.so.12");
    link("int cuda_x(void) { return 1; }\n", &mpi, &[], &shared("libmpi.so.12")).expect("a library");
    for (source, status) in [
        ("const char *word = \"__cuda_array_interface__\";\n", 0),
        ("const char *name = \"libcuda.so.1\";\n", 2),
        ("int cuda_x(void); int x(void) { return cuda_x(); }\n", 2),
    ] {
        let needed = ["-Wl,--no-as-needed".to_owned(), mpi.display().to_string()];
        link(source, &app.join("MPI.so"), &[], &[&shared("MPI.so")[..], &needed].concat()).expect("a library");
        for (front_end, outcome) in ask_all(&app, (RELEASE, 12020)) {
            if front_end.contains("DIR") || front_end.contains("TAR") {
                assert_eq!(outcome.status(), Some(status), "{source} {front_end}: {outcome}");
                assert_eq!(outcome.stdout.contains("not checked: libmpi.so.12: "), status == 2, "{outcome}");
            }
        }
    }
}

/// The dynamic linker finds the libraries outside of the directory that contains the program.
#[e2e]
fn libraries_of_machine_are_judged() {
    world::need();
    for (release, cudart, code) in [("11.8", "libcudart.so.11.0", None), ("13.0", "libcudart.so.13", Some("CG301"))] {
        let scratch = Scratch::new("closure-machine");
        let app = app_with_library(&scratch, release, cudart, &[]);
        let elsewhere = scratch.join("elsewhere");
        fs::rename(app.join("lib"), &elsewhere).expect("a directory");
        let machine = World::new(RELEASE, 12020, &[T4]).make(&scratch.join("machine"));
        let path = elsewhere.display().to_string();
        for (words, place, refused) in [
            (&["verify"][..], app.join("prog"), 1),
            (&["verify"], app.clone(), 1),
            (&["doctor"], app.join("prog"), 1),
            (&["exec", "--"], app.join("prog"), 78),
        ] {
            let call = machine.call(command::path(), &[("LD_LIBRARY_PATH", &path)]);
            let outcome = call.args(words).arg(&place).run();
            assert_eq!(outcome.status(), Some(code.map_or(0, |_| refused)), "{words:?} {}: {outcome}", place.display());
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(code.is_none_or(|code| text.contains(&format!("error[{code}]"))), "{words:?}: {outcome}");
        }
        let outcome = machine.call(command::path(), &[]).arg("verify").arg(&app).run().expect(1);
        for soname in ["libb.so", "libcudart.so.11.0"] {
            assert!(outcome.stderr.contains(&format!("error[CG210]: {soname} is not found")), "{outcome}");
        }
        // Another machine may have other libraries of these names.
        let described = Call::new(command::path()).arg("verify").arg(&app).args(["--driver", RELEASE, "--gpu", "T4"]);
        assert!(described.run().expect(2).stdout.contains("not checked: libb.so: needed by prog, and not among the"));
    }
}

/// Modules of an environment find the libraries of other packages, because Python loads these first. A module whose library
/// is not on the machine cannot be loaded, and others can.
#[e2e]
fn module_without_library_is_reported() {
    let scratch = Scratch::new("closure-modules");
    let env = scratch.join("env");
    let cudart = "libcudart.so.11.0";
    for dir in ["pkg", "nvidia/lib"] {
        fs::create_dir_all(env.join(dir)).expect("a directory");
    }
    let shared = |soname: &str| ["-shared", "-fPIC", &format!("-Wl,-soname,{soname}")].map(str::to_owned);
    let nccl = scratch.join("libnccl.so.2");
    link("int ncclCommAbort(void) { return 0; }\n", &nccl, &[], &shared("libnccl.so.2")).expect("a library");
    let module = |name: &str, source: &str, library: &Path| {
        let arguments = [&shared(name)[..], &[library.display().to_string()]].concat();
        link(source, &env.join("pkg").join(name), &[], &arguments).expect("a library");
    };
    let driver = r#"{"schema": 1, "revision": 1, "driver": {"user": "535.261.03"}, "gpus": [{"cc": "7.5"}]"#;
    let host = scratch.file("host.json", format!(r#"{driver}, "nccl": [], "cudart": []}}"#));
    let verify = || Call::new(command::path()).arg("verify").arg(&env).arg("--host").arg(&host).run();
    module("nccl.so", "int ncclCommAbort(void); int x(void) { return ncclCommAbort(); }\n", &nccl);
    // No module works.
    let outcome = verify().expect(1);
    assert!(
        outcome.stderr.contains("error[CG210]: libnccl.so.2 is not found: the module that needs it cannot be"),
        "{outcome}"
    );
    let library = parts::cudart("11.8");
    module("ext.so", LIBRARY, &library);
    assert!(verify().expect(1).stderr.contains("error[CG210]: libcudart.so.11.0"));
    fs::copy(&library, env.join("nvidia/lib").join(cudart)).expect("a library");
    let outcome = verify().success();
    assert!(
        outcome.stderr.contains("warning[CG210]: libnccl.so.2 is not found: the module that needs it cannot be"),
        "{outcome}"
    );
    fs::copy(&nccl, env.join("nvidia/lib/libnccl.so.2")).expect("a library");
    assert!(!verify().success().stderr.contains("CG210"));
    // A module and the library of another package load two cudarts.
    let other = parts::cudart("13.0");
    fs::copy(&other, env.join("nvidia/lib/libcudart.so.13")).expect("a library");
    let core = env.join("nvidia/lib/libcore.so");
    let arguments =
        [&shared("libcore.so")[..], &["-Wl,-rpath,$ORIGIN".to_owned(), other.display().to_string()]].concat();
    link(LIBRARY, &core, &[], &arguments).expect("a library");
    assert!(!verify().stderr.contains("CG233"));
    let source =
        "int b(void); int cudaRuntimeGetVersion(int *); int e(void) { return b() + cudaRuntimeGetVersion(0); }\n";
    let needed = [&library, &core].map(|path| path.display().to_string());
    let arguments = [&shared("ext.so")[..], &needed].concat();
    link(source, &env.join("pkg/ext.so"), &[], &arguments).expect("a library");
    assert!(verify().stderr.contains("CG233"));
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

/// The program has code for every GPU, and its library only for compute capability 9.0.
#[e2e(slow)]
fn library_lacks_code_for_gpu() {
    world::need();
    let nvcc = parts::cuda("13.0").join("bin/nvcc");
    for (arch, code) in [("75", None), ("90", Some("CG303"))] {
        let scratch = Scratch::without_blanks("closure-code");
        let app = scratch.join("app");
        fs::create_dir_all(app.join("lib")).expect("a folder");
        let kernel = "__global__ void k(int *a) { *a = 1; }\n";
        let library = "extern \"C\" int b(void) { k<<<1, 1>>>(nullptr); return 0; }\n";
        let library = scratch.file("b.cu", format!("{kernel}{library}"));
        let main = "int b(void);\nint main(int n, char **) { if (n > 9) { k<<<1, 1>>>(nullptr); b(); } return 0; }\n";
        let program = scratch.file("m.cu", format!("{kernel}extern \"C\" {main}"));
        let compile = |arguments: &[&str]| {
            let _ = Call::new(&nvcc).args(["-cudart", "static"]).args(arguments).dir(scratch.path()).run().success();
        };
        let target = format!("-gencode=arch=compute_{arch},code=sm_{arch}");
        let library = library.display().to_string();
        compile(&[
            "-shared",
            "-Xcompiler",
            "-fPIC",
            "-Xlinker",
            "-soname,libb.so",
            &target,
            "-o",
            "app/lib/libb.so",
            &library,
        ]);
        let program = program.display().to_string();
        let rpath = "-rpath,$ORIGIN/lib";
        compile(&["-arch=sm_75", "-o", "app/prog", &program, "app/lib/libb.so", "-Xlinker", rpath]);
        expect_all(&app, ("580.95.05", 13000), code);
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
