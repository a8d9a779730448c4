//! Programs for Windows, judged with the DLLs next to them: a single file and its directory.

use std::fs;

use cudaguard_tests::{Call, Scratch, command, e2e, tools};

use super::COMPILER;
use super::guard::{NEW, OLD, cudnn_dll, gcc, gcc_program_linking_cudnn};

const HOST: &str =
    r#"{"platform": "x86_64-windows", "driver": {"user": "581.57"}, "gpus": [{"name": "RTX 4090"}], "cudnn": []}"#;

/// The real cuDNN of several releases is next to the program. The host has none.
#[e2e]
fn dll_next_to_program_is_judged() {
    tools::need(COMPILER);
    let scratch = Scratch::without_blanks("windows-closure");
    let (guard, program) = gcc_program_linking_cudnn(&scratch);
    let host = scratch.file("host.json", HOST);
    let dir = scratch.path().join("run");
    for (release, status, text) in [
        ("", 1, "error[CG205]: no cuDNN was found: the loader finds no cudnn64_9.dll"),
        (NEW, 0, "runs"),
        (OLD, 1, "error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1"),
        ("8.9.7", 1, "error[CG201]: cuDNN 8.9.7 is another major version than cuDNN 9.15.1"),
    ] {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        fs::copy(&program, dir.join("App.exe")).unwrap();
        if !release.is_empty() {
            // Windows ignores case.
            fs::copy(cudnn_dll(release).0, dir.join("CUDNN64_9.dll")).unwrap();
        }
        for file in [dir.join("App.exe"), dir.clone()] {
            let outcome = command::call(["verify", "--host"]).arg(&host).arg(&file).run().expect(status);
            assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(text), "{release} {text}: {outcome}");
        }
    }
    // Windows does not continue the search after a file that it cannot load: it ends the program with 0xC000007B.
    let dll = fs::read(cudnn_dll(NEW).0).unwrap();
    let machine = u32::from_le_bytes(dll[60..64].try_into().unwrap()) as usize + 4;
    let for_arm = [&dll[..machine], &[0x64, 0xaa], &dll[machine + 2..]].concat();
    for (contents, status, text, in_dir) in [
        (&for_arm[..], 1, "error[CG211]: cudnn64_9.dll is for aarch64, but App.exe is x86_64", "CG211"),
        (b"version https://git-lfs", 1, "error[CG212]: the loader would pick", "CUDNN64_9.dll: is no library"),
        (b"", 1, "CUDNN64_9.dll and fail: it is empty", "CUDNN64_9.dll: is empty"),
        (&dll[..1 << 16], 2, "is truncated or damaged", "is truncated or damaged"),
    ] {
        fs::write(dir.join("CUDNN64_9.dll"), contents).unwrap();
        let outcome = command::call(["verify", "--host"]).arg(&host).arg(dir.join("App.exe")).run().expect(status);
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(text), "{text}: {outcome}");
        let outcome = command::call(["verify", "--host"]).arg(&host).arg(&dir).run();
        assert_ne!(outcome.status(), Some(0), "{outcome}");
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(in_dir), "{in_dir}: {outcome}");
    }
    // The real DLL lacks this function, so Windows would end the program with 0xC0000139.
    scratch.file("main.c", "__declspec(dllimport) int cudnnNowhere(void); int main(void) { return cudnnNowhere(); }");
    let _ = fs::remove_file(dir.join("CUDNN64_9.dll"));
    fs::copy(cudnn_dll(NEW).0, dir.join("cudnn64_9.dll")).unwrap();
    fs::copy(gcc(&scratch, &["libcudnn.a"], &guard), dir.join("App.exe")).unwrap();
    for file in [dir.join("App.exe"), dir.clone()] {
        let outcome = command::call(["verify", "--host"]).arg(&host).arg(&file).run().expect(1);
        assert!(outcome.stderr.contains("error[CG214]: cudnn64_9.dll lacks cudnnNowhere"), "{outcome}");
    }
    // Python loads a module below `site-packages`, and NVIDIA's packages add their directories.
    let packages = scratch.path().join("Lib").join("site-packages");
    for name in ["nvidia/cudnn/bin", "app"] {
        fs::create_dir_all(packages.join(name)).unwrap();
    }
    fs::copy(cudnn_dll(NEW).0, packages.join("nvidia/cudnn/bin/cudnn64_9.dll")).unwrap();
    let module = packages.join("app/app.pyd");
    fs::copy(gcc(&scratch, &["-shared", "libcudnn.a"], &guard), &module).unwrap();
    let outcome = command::call(["verify", "--host"]).arg(&host).arg(&module).run().expect(1);
    assert!(outcome.stderr.contains("nvidia/cudnn/bin/cudnn64_9.dll"), "{outcome}");
}

/// NVRTC opens its builtins when it compiles, so no DLL imports them.
#[e2e]
fn builtins_next_to_nvrtc_are_found() {
    tools::need(COMPILER);
    let scratch = Scratch::without_blanks("windows-builtins");
    let host = scratch.file("host.json", HOST);
    let version = "Cuda compilation tools, release 12.6, V12.6.77";
    let export = "__declspec(dllexport)";
    scratch.file("nvrtc.c", format!("{export} const char *nvrtcVersion(void) {{ return \"{version}\"; }}"));
    scratch.file("builtins.c", format!("{export} int __nvrtc_builtins__12_6_getBuiltinHeader(void) {{ return 0; }}"));
    scratch.file("main.c", "const char *nvrtcVersion(void); int main(void) { return nvrtcVersion() == 0; }");
    let dir = scratch.path().join("run");
    fs::create_dir(&dir).unwrap();
    let gcc = |words: &[&str]| {
        let _ = Call::new(COMPILER).args(words).dir(scratch.path()).run().success();
    };
    gcc(&["-shared", "nvrtc.c", "-o", "run/nvrtc64_120_0.dll"]);
    gcc(&["main.c", "run/nvrtc64_120_0.dll", "-o", "run/App.exe"]);
    for is_complete in [false, true] {
        if is_complete {
            gcc(&["-shared", "builtins.c", "-o", "run/nvrtc-builtins64_126.dll"]);
        }
        for file in [dir.join("App.exe"), dir.clone()] {
            let outcome = command::call(["verify", "--host"]).arg(&host).arg(&file).run();
            let is_reported = outcome.stderr.contains("NVRTC 12.6.77 comes without nvrtc-builtins64_126.dll");
            assert_eq!(is_reported, !is_complete, "{outcome}");
        }
    }
}
