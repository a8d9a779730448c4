//! The command and its unit tests, built for Windows and run by Wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cudaguard_tests::scratch::target_without_blanks;
use cudaguard_tests::{BuiltOnce, Call, Scratch, command, e2e, parts, places, tools};

use super::COMPILER;
use super::guard::{LINKED, NEW, cudnn_dll};
use super::wine::Wine;

const TARGET: &str = "x86_64-pc-windows-gnu";
/// A build takes minutes.
const LIMIT: Duration = Duration::from_secs(1800);

/// Returns true if Rust has the libraries for tests on Windows in this directory, or in its default one.
fn has_test_library(libraries: Option<PathBuf>) -> bool {
    let libraries = libraries.unwrap_or_else(|| {
        let printed = Call::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).run().success().stdout;
        PathBuf::from(printed.trim())
    });
    let mut names = fs::read_dir(libraries).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().starts_with("libtest-"))
}

/// Packages that the profile `dev` optimizes. These tests read small files.
const OPTIMIZED: [&str; 6] = ["aho-corasick", "crc32fast", "memchr", "ruzstd", "sha2", "zlib-rs"];

/// Returns a call of cargo for Windows. All calls share the compiled dependencies, and build scripts and macros with the
/// workspace.
fn cargo(command: &str) -> Call {
    let call = Call::new("cargo")
        .args([command, "--quiet", "--package", "cargo-cudaguard", "--target", TARGET])
        .dir(places::workspace())
        .args(OPTIMIZED.map(|package| format!("--config=profile.dev.package.{package}.opt-level=0")))
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_TARGET_DIR", target_without_blanks())
        .limit(LIMIT);
    if has_test_library(None) { call } else { call.env("RUSTC", parts::rustc_for_others()) }
}

/// Returns the command for Windows, built once.
fn program() -> &'static Path {
    static PROGRAM: BuiltOnce = BuiltOnce::new();
    PROGRAM.path(|| {
        let built = cargo("build").args(["--package", "cudaguard", "--lib", "--bins"]).run();
        let program = target_without_blanks().join(TARGET).join("debug/cargo-cudaguard.exe");
        if built.status() == Some(0) { Ok(program) } else { Err(built.to_string()) }
    })
}

fn start_wine(name: &str) -> Wine {
    tools::need(COMPILER);
    let wine = Wine::new(name);
    wine.add_random_numbers();
    wine
}

/// A program, its DLLs, a wheel and a compressed archive of them, and libraries for Linux.
#[e2e(slow)]
fn output_equals_that_of_linux() {
    let wine = start_wine("windows-output");
    let scratch = Scratch::without_blanks("windows-files");
    let dir = scratch.path().join("files");
    fs::create_dir(&dir).unwrap();
    for file in [cudnn_dll(NEW).0, parts::part("cudnn-9.1.0-windows").join("cudnn_graph64_9.dll")] {
        fs::copy(&file, dir.join(file.file_name().unwrap())).unwrap();
    }
    scratch.file(
        "host.json",
        r#"{"platform": "x86_64-windows", "driver": {"user": "566.36"}, "gpus": [{"name": "RTX 4090"}]}"#,
    );
    let _ = Call::new("tar").args(["czf", "files.tar.gz", "files"]).dir(scratch.path()).run().success();
    let _ =
        Call::new("python3").args(["-m", "zipfile", "-c", "files.zip", "files"]).dir(scratch.path()).run().success();
    let library = parts::part("nvjpeg-13.0").join("lib/libnvjpeg.so.13").display().to_string();
    for arguments in [
        &["inspect", "--json", &library][..],
        &["inspect", "files/cudnn_graph64_9.dll"],
        &["inspect", "--json", "files"],
        &["inspect", "--json", "files.tar.gz"],
        &["inspect", "--json", "files.zip"],
        &["verify", "--host", "host.json", "files"],
        &["verify", "--json", "--host", "host.json", "files/cudnn_graph64_9.dll", &library],
        &["requirements", "--format", "json", "files/cudnn_graph64_9.dll"],
        &["map", "--json", &library],
        &["map", "files/cudnn_graph64_9.dll"],
        &["diff", "--json", "files/cudnn_graph64_9.dll", &library],
        &["explain", "CG214"],
        &["explain", "exit code: 0xc0000135"],
    ] {
        let here = command::call(arguments).arg("-q").dir(scratch.path()).run();
        let there = wine.call(program(), scratch.path()).args(arguments).arg("-q").run();
        assert_eq!(there.status(), here.status(), "{arguments:?}\n{there}");
        assert_eq!(there.stdout.replace("\r\n", "\n"), here.stdout, "{arguments:?}\n{there}");
        assert_eq!(there.stderr.replace("\r\n", "\n"), here.stderr, "{arguments:?}\n{there}");
    }
}

/// Wine starts the compiler of Linux through a program that converts paths.
#[e2e(slow)]
fn embedded_guard_equals_that_of_linux() {
    let wine = start_wine("windows-embed");
    let scratch = Scratch::without_blanks("windows-embed-files");
    scratch.file("start.c", include_str!("start_compiler.c"));
    scratch.file("cudaguard.toml", LINKED);
    scratch.file("main.c", "int main(void) { return 0; }");
    let compile = |arguments: &[&str]| drop(Call::new(COMPILER).args(arguments).dir(scratch.path()).run().success());
    compile(&["start.c", "-o", "x86_64-w64-mingw32-gcc.exe"]);
    let headers = parts::cudnn("9.15.1-cu12").join("include").display().to_string();
    let embed =
        ["embed", "--name", "app", "--version", "1.0.0", "--release", "-I", &headers, "-o", "guard.o", "--compiler"];
    let here = command::call(embed).arg(COMPILER).dir(scratch.path());
    let compiler = super::windows_path(&scratch.path().join("x86_64-w64-mingw32-gcc.exe"));
    let there = wine.call(program(), scratch.path()).args(embed).arg(compiler);
    let seal = ["seal", "app.exe", "--guard", "guard.o"];
    let sealing = [command::call(seal).dir(scratch.path()), wine.call(program(), scratch.path()).args(seal)];
    let [here, there]: [_; 2] = [here, there]
        .into_iter()
        .zip(sealing)
        .map(|(embed, seal)| {
            let _ = embed.run().success();
            compile(&["main.c", "guard.o", "-Wl,--no-insert-timestamp", "-o", "app.exe"]);
            let _ = seal.run().success();
            ["guard.o", "app.exe"].map(|file| fs::read(scratch.path().join(file)).unwrap())
        })
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    assert!(here == there, "the guards differ");
    let inspected = command::call(["inspect", "app.exe"]).dir(scratch.path()).run().success();
    assert!(inspected.stdout.contains("component app 1.0.0"), "{inspected}");
}

/// A version resource.
fn resource(version: &str, description: &str) -> String {
    format!(
        "1 VERSIONINFO\nFILEVERSION {version}\nBEGIN\nBLOCK \"StringFileInfo\"\nBEGIN\nBLOCK \"040904b0\"\nBEGIN\n\
         VALUE \"FileDescription\", \"{description}\"\nEND\nEND\nEND\n"
    )
}

/// A fake driver and `nvidia-smi`, a fake cudart in `PATH`, and a program that needs them and a real cuDNN.
#[e2e(slow)]
fn machine_is_detected() {
    let wine = start_wine("windows-machine");
    let scratch = Scratch::without_blanks("windows-machine-files");
    for dir in ["path", "app", "link"] {
        fs::create_dir(scratch.path().join(dir)).unwrap();
    }
    let compile = |arguments: &[&str]| drop(Call::new(COMPILER).args(arguments).dir(scratch.path()).run().success());
    let path = |file: &Path| file.display().to_string();
    for (name, text) in [
        ("nvcuda.rc", resource("32,0,15,6636", "NVIDIA CUDA Driver")),
        ("cudart.rc", resource("6,14,11,12040", "NVIDIA CUDA Runtime, Version 12.4.99")),
        ("cuda.c", "__declspec(dllexport) int cuInit(int x) { return x; }".to_owned()),
        ("rt.c", "__declspec(dllexport) int cudaFree(void *p) { return p != 0; }".to_owned()),
        ("cudnn.c", "__declspec(dllexport) int cudnnGetVersion(void) { return 0; }".to_owned()),
        (
            "app.c",
            "__declspec(dllimport) int cudaFree(void *), cudnnGetVersion(void);
             /* A call would need the sublibraries. */
             int main(void) { void *volatile imported = (void *)cudnnGetVersion; return cudaFree(0) + !imported; }"
                .to_owned(),
        ),
        (
            "smi.c",
            "#include <stdio.h>\n#include <string.h>\nint main(int n, char **a) {
               for (int i = 1; i < n; i++) if (strstr(a[i], \"compute_cap\")) return 2;
               puts(\"566.36, GPU-1, 00000000:01:00.0, 0x268410DE, NVIDIA GeForce RTX 4090\"); return 0; }"
                .to_owned(),
        ),
    ] {
        scratch.file(name, text);
    }
    for name in ["nvcuda", "cudart"] {
        let call = Call::new("x86_64-w64-mingw32-windres").args([format!("{name}.rc"), format!("{name}.o")]);
        let _ = call.dir(scratch.path()).run().success();
    }
    compile(&["-shared", "rt.c", "cudart.o", "-o", "path/cudart64_12.dll"]);
    compile(&["-shared", "cudnn.c", "-o", "link/cudnn64_9.dll"]);
    compile(&["app.c", "path/cudart64_12.dll", "link/cudnn64_9.dll", "-o", "app/app.exe"]);
    let run = |arguments: &[&str]| {
        let call = || {
            let call = wine.call(program(), scratch.path()).args(arguments);
            call.env("WINEPATH", super::windows_path(&scratch.path().join("path"))).run()
        };
        // Rarely, Wine cannot start nvidia-smi.exe: "Internal error. (os error 1359)".
        let outcome = call();
        if outcome.to_string().contains("(os error 1359)") { call() } else { outcome }
    };
    let without = run(&["verify", "app/app.exe"]).expect(1);
    assert!(
        without.stderr.contains("error[CG205]: no cuDNN was found: the loader finds no cudnn64_9.dll"),
        "{without}"
    );
    assert!(run(&["probe"]).success().stdout.contains("the loader does not find nvcuda.dll"));
    compile(&["-shared", "cuda.c", "nvcuda.o", "-o", &path(&wine.system().join("nvcuda.dll"))]);
    compile(&["smi.c", "-o", &path(&wine.system().join("nvidia-smi.exe"))]);
    let probed = run(&["probe"]).success();
    for text in [
        "566.36  (the version resource of nvcuda.dll)",
        "566.36  (nvidia-smi.exe)",
        "RTX 4090: compute capability 8.9",
        "12.4.99 ",
    ] {
        assert!(probed.stdout.contains(text), "{text}: {probed}");
    }
    let (dll, name) = cudnn_dll(NEW);
    fs::copy(dll, scratch.path().join("app").join(name)).unwrap();
    let verified = run(&["verify", "app/app.exe"]).success();
    assert!(verified.stdout.contains("runs (here)"), "{verified}");
    let examined = run(&["doctor", "app\\app.exe"]).success();
    for text in ["nvcuda.dll", "path\\cudart64_12.dll (12.4.99)", "app.exe: compatible"] {
        assert!(examined.stdout.contains(text), "{text}: {examined}");
    }
    let _ = run(&["exec", "--", "app\\app.exe"]).success();
    fs::remove_file(scratch.path().join("app").join(name)).unwrap();
    let refused = run(&["exec", "--", "app\\app.exe"]).expect(78);
    assert!(refused.stderr.contains("error[CG205]"), "{refused}");
    // Linux programs do not run there.
    let library = path(&parts::part("nvjpeg-13.0").join("lib/libnvjpeg.so.13"));
    let foreign = run(&["verify", &library]).expect(1);
    assert!(foreign.stderr.contains("is for x86_64-linux, but that machine is x86_64-windows"), "{foreign}");
}

/// Toolkits and cuDNN are where NVIDIA's installers put them. Their headers are real, and nvcc prints only its release.
#[e2e(slow)]
fn installed_toolkits_are_detected() {
    let wine = start_wine("windows-toolkits");
    let scratch = Scratch::without_blanks("windows-toolkit-files");
    let compile = |arguments: &[&str]| drop(Call::new(COMPILER).args(arguments).dir(scratch.path()).run().success());
    scratch.file("start.c", include_str!("start_compiler.c"));
    for name in ["bin/cargo.exe", "bin/rustc.exe"] {
        fs::create_dir_all(scratch.path().join("bin")).unwrap();
        compile(&["start.c", "-o", name]);
    }
    scratch.file("Cargo.toml", "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    scratch.file("Cargo.lock", "version = 3\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n");
    scratch.file("src/main.rs", "fn main() {}");
    scratch.file("cudaguard.toml", "[toolkit]\nrequire = \">=11\"\n[cudnn]\nlinkage = \"linked\"\n");
    scratch.file(
        "nvcc.c",
        r#"#include <stdio.h>
           int main(void) { return !printf("Cuda compilation tools, release %s, V%s.1\n", RELEASE, RELEASE); }"#,
    );
    let programs = wine.prefix().join("drive_c/Program Files");
    let copy_header = |from: &Path, to: &Path, name: &str| {
        fs::create_dir_all(to).unwrap();
        fs::copy(from.join(name), to.join(name)).unwrap();
    };
    for release in ["13.0", "13.2"] {
        let toolkit = programs.join("NVIDIA GPU Computing Toolkit/CUDA").join(format!("v{release}"));
        copy_header(&parts::cuda(release).join("include"), &toolkit.join("include"), "cuda.h");
        fs::create_dir(toolkit.join("bin")).unwrap();
        let nvcc = toolkit.join("bin/nvcc.exe").display().to_string();
        compile(&["nvcc.c", &format!("-DRELEASE=\"{release}\""), "-o", &nvcc]);
    }
    let other = scratch.path().join("other");
    copy_header(&parts::cuda("11.8").join("include"), &other.join("include"), "cuda.h");
    let cudnn = parts::cudnn("9.15.1-cu12").join("include");
    copy_header(&cudnn, &programs.join("NVIDIA/CUDNN/v9.15/include/12.9"), "cudnn_version.h");
    let installed = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA";
    let old = format!(r"{installed}\v13.0");
    let check = |path: &str, variables: &[(&str, &str)]| {
        let call = wine.call(program(), scratch.path()).args(["check", "--target", TARGET]);
        let call = variables.iter().fold(call, |call, (name, value)| call.env(name, value));
        let tools = super::windows_path(&scratch.path().join("bin"));
        call.env("WINEPATH", format!("{tools};{path}")).run().success()
    };
    let outcome = check("", &[("CUDA_PATH_V11_8", &super::windows_path(&other))]);
    for text in [
        &format!(r"{installed}\v13.2\bin\nvcc.exe (found in {installed}\v13.2; no variable names a toolkit"),
        &format!(r"also      CUDA 13.0        {old}"),
        "(CUDA_PATH_V11_8)",
        r"also      cuDNN 9.15.1     C:\Program Files\NVIDIA\CUDNN\v9.15\include\12.9",
    ] {
        assert!(outcome.stdout.contains(text), "{text}: {outcome}");
    }
    let outcome = check("", &[("CUDA_PATH", &old)]);
    let text = format!(r"{old}\bin\nvcc.exe (CUDA_PATH names it; PATH has no nvcc)");
    assert!(outcome.stdout.contains(&text) && !outcome.stderr.contains("CG101"), "{text}: {outcome}");
    let outcome = check(&format!(r"{installed}\v13.2\bin"), &[("CUDA_PATH", &old)]);
    assert!(outcome.stdout.contains(r"v13.2\bin\nvcc.exe (first nvcc in PATH)"), "{outcome}");
    assert!(outcome.stderr.contains("[CG101]: nvcc is from CUDA 13.2, but CUDA_PATH names CUDA 13.0"), "{outcome}");
}
