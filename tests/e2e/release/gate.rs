//! `verify` with the requirements of a release.

use std::fs;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, snapshot};
use serde_json::Value;

use super::{compile, link, verify, wheel};

/// A wheel that claims 8.0 and 9.0: one library has both, one has 9.0 in one of its sources only, one lacks it.
#[e2e]
fn false_claim_is_refused() {
    let scratch = Scratch::without_blanks("release-claim");
    let (both, old) = (
        compile(&scratch, "both", &["arch=compute_80,code=sm_80", "arch=compute_90,code=[sm_90a,compute_90]"]),
        compile(&scratch, "old", &["arch=compute_80,code=sm_80"]),
    );
    link(&scratch, "tree/app/lib/libboth.so", &[&both]);
    link(&scratch, "tree/app/lib/libpart.so", &[&both, &old]);
    link(&scratch, "tree/app/extra/libold.so", &[&old]);
    wheel(&scratch, "app.whl");
    let outcome = verify(&scratch, &["app.whl", "--archs", "80,90"]).expect(1);
    snapshot::check("release/claim", &format!("{}---\n{}", outcome.stdout, outcome.stderr));
    for (words, status, code) in [
        (&["--archs", "80"][..], 0, ""),
        (&["--archs", "sm_80", "--strict"], 0, ""),
        (&["--archs", "80,90", "--except", "app/extra/*"], 0, "warning[CG602]"),
        (&["--archs", "80,90", "--except", "libold.so", "--strict"], 1, "error[CG602]"),
        (&["--archs", "80,90", "--except", "libold.so", "--except", "*/libpart.so", "--strict"], 0, ""),
        (&["--archs", "90+ptx", "--except", "libold.so"], 0, "warning[CG602]"),
        (&["--archs", "100", "--except", "*old*"], 1, "error[CG601]"),
        (&["--archs", "86"], 1, "error[CG601]"),
        (&["--archs", "80", "--except", "libnone.so"], 0, "warning[CG607]"),
        (&["--archs", "native"], 2, "names no architecture"),
        (&["--archs", ","], 2, "expected architectures"),
        (&["--strict"], 2, "nothing is required"),
        (&["--archs", "80", "--fleet", "-"], 2, "cannot be used with"),
        // Archs and a machine in one call.
        (&["--archs", "80", "--gpu", "A100", "--driver", "580"], 0, ""),
        (&["--archs", "80", "--gpu", "A100", "--driver", "550"], 1, "error[CG301]"),
        (&["--archs", "100", "--gpu", "A100", "--driver", "580"], 1, "error[CG601]"),
        (&["--gpu", "H100", "--driver", "580", "--except", "libold.so", "--strict"], 1, "error[CG303]"),
    ] {
        let outcome = verify(&scratch, &[&["app.whl"], words].concat());
        assert!(outcome.status() == Some(status) && outcome.stderr.contains(code), "{outcome}");
        assert!(!code.is_empty() || !outcome.stderr.contains("error"), "{outcome}");
    }
    let outcome = verify(&scratch, &["app.whl", "--archs", "80,90", "--json"]).expect(1);
    let value = outcome.json();
    assert_eq!(value["verdict"], "refused", "{outcome}");
    let of = |name: &str| {
        let files = value["release"]["files"].as_array().expect("files");
        files.iter().find(|file| file["name"].as_str().is_some_and(|own| own.ends_with(name))).expect(name)["archs"]["sm_90"].clone()
    };
    assert_eq!(
        (of("libboth.so"), of("libpart.so"), of("libold.so")),
        ("all".into(), "partial".into(), "missing".into())
    );
    // A package whose build omitted the kernels.
    fs::remove_dir_all(scratch.join("tree")).expect("it is there");
    scratch.file("tree/app/__init__.py", "");
    wheel(&scratch, "empty.whl");
    let outcome = verify(&scratch, &["empty.whl", "--archs", "80"]).expect(1);
    assert!(outcome.stderr.contains("contains no GPU code"), "{outcome}");
    let _ = verify(&scratch, &["empty.whl", "--archs", "80", "--except", "empty.whl"]).success();
    let _ = verify(&scratch, &["empty.whl", "--driver-floor", "525"]).success();
}

#[e2e(slow)]
fn newer_driver_is_refused() {
    let scratch = Scratch::without_blanks("release-driver");
    let native = compile(&scratch, "native", &["arch=compute_80,code=sm_80", "arch=compute_120,code=sm_120"]);
    let ptx = compile(&scratch, "ptx", &["arch=compute_80,code=compute_80"]);
    link(&scratch, "libnative.so", &[&native]);
    link(&scratch, "libptx.so", &[&ptx]);
    // No kernels, so the GPU does not matter.
    let source = scratch.file("host.c", "int cudaDeviceReset(void);\nint main(void) { return cudaDeviceReset(); }\n");
    let host = Call::new("cc").arg("-o").args([&scratch.join("host"), &source]).arg("-L");
    let _ = host.arg(parts::cuda("13.0").join("lib")).arg("-lcudart").run().success();
    // No libcudart, so only the code counts.
    let code = Call::new(parts::cuda("13.0").join("bin/nvcc"))
        .args(["-cubin", "-arch=sm_120", "native.cu", "-o", "native.cubin"])
        .dir(scratch.path());
    let _ = code.run().success();
    for (file, floor, status, reason) in [
        ("libnative.so", "580", 0, ""),
        ("libnative.so", "570", 1, "error[CG603]: libnative.so needs a newer driver than 570"),
        ("libnative.so", "570", 1, "because:    libcudart 13"),
        ("libptx.so", "580", 0, ""),
        ("libptx.so", "570", 1, "PTX (compute_80) that the driver compiles"),
        ("host", "580", 0, ""),
        ("host", "570", 1, "because:    libcudart 13"),
        // The first driver for sm_120 is newer than the floor, and not the fault of the file.
        ("native.cubin", "580", 0, ""),
        ("libnative.so", "12.4", 2, "expected a driver branch or release"),
    ] {
        let outcome = verify(&scratch, &[file, "--driver-floor", floor]);
        assert!(outcome.status() == Some(status) && outcome.stderr.contains(reason), "{file} {floor}: {outcome}");
    }
}

#[e2e]
fn newer_cudnn_is_refused() {
    let scratch = Scratch::without_blanks("release-cudnn");
    scratch.file(
        "ext.c",
        "int cudnnBackendPopulateCudaGraph(void);\nint g(void) { return cudnnBackendPopulateCudaGraph(); }\n",
    );
    fs::create_dir_all(scratch.join("tree/app")).expect("a directory");
    let cudnn = parts::cudnn("9.15.1").join("lib");
    let _ = Call::new("gcc")
        .args(["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN/../libs", "ext.c", "-o", "tree/app/ext.so"])
        .args([cudnn.join("libcudnn.so.9"), cudnn.join("libcudnn_graph.so.9")])
        .dir(scratch.path())
        .run()
        .success();
    let metadata = |requires: &str| {
        let text = format!("Metadata-Version: 2.1\nName: app\nVersion: 1.0\nRequires-Dist: {requires}\n");
        scratch.file("tree/app-1.0.dist-info/METADATA", text);
        wheel(&scratch, "app.whl");
    };
    metadata("nvidia-cudnn-cu13==9.15.1.9");
    let outcome = verify(&scratch, &["app.whl", "--cudnn-floor", "9.1"]).expect(1);
    assert!(outcome.stderr.contains("it calls cudnnBackendPopulateCudaGraph"), "{outcome}");
    assert!(outcome.stderr.contains("error[CG604]: app 1.0 needs cuDNN 9.15.1 or newer"), "{outcome}");
    assert!(outcome.stderr.contains("the package requires nvidia-cudnn-cu13==9.15.1.9"), "{outcome}");
    let outcome = verify(&scratch, &["app.whl", "--cudnn-floor", "10.0"]).expect(1);
    assert!(outcome.stderr.contains("app/ext.so needs a cuDNN below 10.0.0"), "{outcome}");
    metadata("nvidia-cudnn-cu13>=9.5");
    let _ = verify(&scratch, &["app.whl", "--cudnn-floor", "9.5"]).success();
    // A cuDNN that the package contains is not required of a machine.
    metadata("numpy");
    for file in ["libcudnn.so.9", "libcudnn_graph.so.9"] {
        fs::create_dir_all(scratch.join("tree/libs")).expect("a directory");
        fs::copy(cudnn.join(file), scratch.join("tree/libs").join(file)).expect("a copy");
    }
    wheel(&scratch, "app.whl");
    let _ = verify(&scratch, &["app.whl", "--cudnn-floor", "9.1"]).success();
}

#[e2e(slow)]
fn unguarded_file_is_refused() {
    let scratch = Scratch::without_blanks("release-guarded");
    let kernels = compile(&scratch, "kernels", &["arch=compute_80,code=sm_80"]);
    let guard = scratch.join("guard.o");
    let _ = command::call(["embed", "--name", "app", "--toolkit"])
        .arg(parts::cuda("13.0"))
        .args(["--compiler", "gcc -fPIC", "-o"])
        .arg(&guard)
        .dir(scratch.path())
        .run()
        .success();
    link(&scratch, "tree/libplain.so", &[&kernels]);
    link(&scratch, "tree/libguarded.so", &[&kernels, &guard]);
    let cudart = parts::cuda("13.0").join("lib/libcudart.so.13");
    fs::copy(cudart, scratch.join("tree/libcudart.so.13")).expect("a copy");
    wheel(&scratch, "app.whl");
    let outcome = verify(&scratch, &["app.whl", "--guarded"]).expect(1);
    assert!(outcome.stderr.contains("error[CG605]: libplain.so uses CUDA and contains no guard"), "{outcome}");
    assert_eq!(outcome.stderr.matches("CG605").count(), 1, "{outcome}");
    // NVIDIA's library has kernels. The other one has only its own name in common with NVIDIA's.
    fs::copy(parts::part("cupti-12.6").join("lib/libcupti.so.12"), scratch.join("libcupti.so.12")).expect("a copy");
    link(&scratch, "libcuda-app.so", &[&kernels]);
    for file in ["tree/libguarded.so", "tree/libcudart.so.13", "libcupti.so.12"] {
        let _ = verify(&scratch, &[file, "--guarded"]).success();
    }
    for file in ["tree/libplain.so", "libcuda-app.so"] {
        let _ = verify(&scratch, &[file, "--guarded"]).expect(1);
    }
    let outcome = command::call(["inspect", "app.whl"]).dir(scratch.path()).run().success();
    for line in ["sm_80; needs libcudart.so.13; guarded\n", "sm_80; needs libcudart.so.13; not guarded\n"] {
        assert!(outcome.stdout.contains(line), "{line}: {outcome}");
    }
    let outcome = command::call(["inspect", "app.whl", "--json"]).dir(scratch.path()).run().success();
    let value = outcome.json();
    let guarded: Vec<&Value> =
        value["members"].as_array().expect("members").iter().map(|one| &one["guarded"]).collect();
    assert_eq!(guarded, [false, true, false], "{outcome}");
}

#[e2e]
fn settings_of_a_project_apply() {
    let scratch = Scratch::without_blanks("release-settings");
    let kernels = compile(&scratch, "kernels", &["arch=compute_80,code=sm_80"]);
    link(&scratch, "dist/lib.so", &[&kernels]);
    let policy = "[release]\narchs = [\"80\", \"90\"]\ndriver-floor = \"580\"\n";
    for (file, text) in [
        ("cudaguard.toml", policy.to_owned()),
        ("pyproject.toml", policy.replace("[release]", "[tool.cudaguard.release]")),
        ("pyproject.toml", policy.replace("[release]", "[project]\nname = \"app\"\n[tool.cudaguard]")),
    ] {
        let path = scratch.file(file, text);
        let outcome = verify(&scratch, &["dist/lib.so"]).expect(1);
        assert!(outcome.stderr.contains("has no code for sm_90") && outcome.stdout.contains(file), "{outcome}");
        // An option replaces the value of the file.
        let _ = verify(&scratch, &["dist/lib.so", "--archs", "80"]).success();
        let _ = verify(&scratch, &["dist/lib.so", "--archs", "80", "--driver-floor", "570"]).expect(1);
        // A call about a machine ignores the release requirements of the file.
        let _ = verify(&scratch, &["dist/lib.so", "--gpu", "A100", "--driver", "580"]).success();
        let outcome = verify(&scratch, &["dist/lib.so", "--policy", "none"]);
        assert!(outcome.stdout.contains("(here)") && !outcome.stdout.contains("release"), "{outcome}");
        let named = scratch.file("other/pyproject.toml", "[tool.cudaguard]\narchs = [\"80\"]\n");
        let _ = verify(&scratch, &["dist/lib.so", "--policy", &named.to_string_lossy()]).success();
        fs::remove_file(path).expect("it is there");
    }
    scratch.file("pyproject.toml", "[tool.cudaguard]\narch = [\"80\"]\n");
    let outcome = verify(&scratch, &["dist/lib.so", "--archs", "80"]).expect(2);
    assert!(outcome.stderr.contains("pyproject.toml:2: `arch`: no such key"), "{outcome}");
}

#[e2e]
fn unexamined_parts_are_not_fine() {
    let scratch = Scratch::without_blanks("release-unexamined");
    let kernels = compile(&scratch, "kernels", &["arch=compute_80,code=sm_80"]);
    link(&scratch, "tree/lib.so", &[&kernels]);
    scratch.file("tree/gpu.co", b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0");
    wheel(&scratch, "app.whl");
    // Code for AMD's GPUs is named. It decides only with --strict, unless it is excepted.
    let outcome = verify(&scratch, &["app.whl", "--archs", "80"]).success();
    assert!(outcome.stdout.contains("gpu.co: GPU code for AMD"), "{outcome}");
    let outcome = verify(&scratch, &["app.whl", "--archs", "80", "--strict"]).expect(1);
    assert!(outcome.stderr.contains("error[CG608]") && outcome.stderr.contains("gpu.co"), "{outcome}");
    let outcome = verify(&scratch, &["app.whl", "--archs", "80", "--strict", "--except", "*.co"]).success();
    assert!(!outcome.stderr.contains("CG607"), "{outcome}");
    // So does an archive that is not read, without --strict too.
    scratch.file("tree/more.7z", b"7z\xbc\xaf\x27\x1c\0\x04");
    let outcome = verify(&scratch, &["tree", "--archs", "80"]).expect(2);
    assert!(outcome.stdout.contains("it is unknown whether") && outcome.stdout.contains("more.7z"), "{outcome}");
    // Code that is compiled when the program runs.
    let lto = Call::new(parts::cuda("13.0").join("bin/nvcc"))
        .args(["-fatbin", "-gencode", "arch=compute_80,code=lto_80", "kernels.cu", "-o", "lto.fatbin"])
        .dir(scratch.path());
    let _ = lto.run().success();
    let outcome = verify(&scratch, &["lto.fatbin", "--archs", "80"]).expect(2);
    assert!(outcome.stderr.contains("info[CG606]") && outcome.stderr.contains("LTO-IR"), "{outcome}");
    // A file that is cut off.
    let whole = fs::read(scratch.join("tree/lib.so")).expect("the library");
    scratch.file("cut.so", &whole[..whole.len() / 2]);
    let outcome = verify(&scratch, &["cut.so", "--archs", "80"]);
    assert!(matches!(outcome.status(), Some(1 | 2)), "{outcome}");
}

/// Each status of `verify`, and the line that explains it.
#[e2e(slow)]
fn each_status_has_a_reason() {
    let scratch = Scratch::without_blanks("release-status");
    let compiled = |name: &str, source: &str, options: &[&str]| {
        let file = scratch.file(format!("{name}.c"), source);
        let call = Call::new("gcc").args(["-w", "-o"]).arg(scratch.join(name)).arg(file).args(options);
        let _ = call.run().success();
    };
    let opens = "#include <dlfcn.h>\nint main(void) { return !dlopen(\"libcuda.so.1\", RTLD_NOW); }";
    compiled("opens", opens, &["-ldl"]);
    compiled("opens-cufft", &opens.replace("libcuda.so.1", "libcufft.so.11"), &["-ldl"]);
    // The name of the library is put together when the program runs.
    let assembles = "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { char name[32]; sprintf(name, \"lib%s.so\", \"cuda\");\n\
                     return !dlsym(dlopen(name, RTLD_NOW), \"cuDevicePrimaryCtxRetain\"); }";
    compiled("assembles", assembles, &["-ldl"]);
    fs::create_dir_all(scratch.join("directory")).expect("a directory");
    fs::create_dir_all(scratch.join("mixed")).expect("a directory");
    compiled("mixed/opens-cudnn", &opens.replace("libcuda.so.1", "libcudnn.so.9"), &["-ldl"]);
    compiled("host", "int main(void) { return 0; }", &[]);
    let cudart = parts::cuda("13.0").join("lib/libcudart.so.13").display().to_string();
    compiled(
        "linked",
        "int cudaRuntimeGetVersion(int *); int main(int v) { return cudaRuntimeGetVersion(&v); }",
        &[&cudart],
    );
    fs::copy(scratch.join("linked"), scratch.join("mixed/linked")).expect("a copy");
    let (both, old) = (
        compile(&scratch, "both", &["arch=compute_80,code=sm_80", "arch=compute_90,code=sm_90"]),
        compile(&scratch, "old", &["arch=compute_80,code=sm_80"]),
    );
    link(&scratch, "whole.so", &[&both]);
    link(&scratch, "part.so", &[&both, &old]);
    for dir in ["amd", "tested/tests"] {
        fs::create_dir_all(scratch.join(dir)).expect("a directory");
    }
    for copy in ["amd/whole.so", "tested/whole.so", "tested/tests/whole.so"] {
        fs::copy(scratch.join("whole.so"), scratch.join(copy)).expect("a copy");
    }
    scratch.file("amd/gpu.co", b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0");
    let machine = r#"{"driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"name": "H100"}], "cudnn": []"#;
    let cudart = r#""cudart": [{"version": "13.0", "soname": "libcudart.so.13"}]"#;
    scratch.file("whole.json", format!("{machine}, {cudart}, \"libraries\": []}}"));
    scratch.file("half.json", format!("{machine}}}"));
    scratch.file("odd.json", r#"{"driver": {"user": "999.10", "kernel": "999.10"}, "gpus": [{"cc": "75.0"}]}"#);
    let options = "--driver 580.95.05 --gpu H100";
    for (file, words, status, reason) in [
        ("linked", options, 0, "linked: runs, judged by the options alone"),
        (
            "linked",
            &format!("{options} --strict"),
            1,
            "error[CG608]: linked: --strict requires an answer, and this is unknown: it is unknown whether the machine has libcudart.so.13",
        ),
        ("linked", "--host whole.json", 0, "linked: runs (whole.json)"),
        ("linked", "--host whole.json --strict", 0, "linked: runs (whole.json)"),
        ("linked", "--host half.json", 2, "not checked: it is unknown whether the machine has libcudart.so.13"),
        ("linked", "--host half.json --strict", 1, "error[CG608]"),
        ("linked", "--driver 5350 --gpu H100", 2, "--driver 5350: expected a driver release"),
        ("linked", "--driver 999 --gpu H100", 0, "info: --driver: branch 999 is newer than"),
        ("linked", "--driver-floor 999", 0, "info: --driver-floor: branch 999 is newer than"),
        ("linked", "--driver 535 --gpu H100", 1, "error[CG301]"),
        ("part.so", options, 0, "part.so: runs"),
        (
            "part.so",
            &format!("{options} --strict"),
            1,
            "error[CG608]: part.so has code for compute capability 9.0 in some of its containers only",
        ),
        ("whole.so", "--host whole.json --strict", 0, "whole.so: runs"),
        (
            "whole.so",
            "--driver 620 --gpu 99.0",
            1,
            "info: --gpu: this cudaguard knows no GPU of compute capability 99.0",
        ),
        ("whole.so", "--host odd.json", 1, "info: odd.json: this cudaguard knows no GPU of compute capability 75.0"),
        ("whole.so", "--host odd.json", 1, "info: odd.json: branch 999 is newer than"),
        ("whole.so", "--driver 620 --gpu 0.0", 2, "--gpu 0.0: expected a compute capability"),
        // No code for other vendors or of tests contradicts the answer, but --strict accepts nothing that was not examined.
        ("amd", "--host whole.json", 0, "not checked: gpu.co: GPU code for AMD"),
        (
            "amd",
            "--host whole.json --strict",
            1,
            "error[CG608]: amd: --strict requires an answer, and this is unknown: gpu.co",
        ),
        ("amd", "--host whole.json --strict --except *.co", 0, "amd: runs"),
        ("tested", "--host whole.json", 0, "not checked: tests/whole.so: it is among tests"),
        ("tested", "--host whole.json --strict", 1, "this is unknown: tests/whole.so: it is among tests"),
        ("tested", "--host whole.json --strict --except tests/*", 0, "tested: runs"),
        ("opens", options, 2, "not checked: opens: its requirements on libcuda.so.1, which it may open, are unknown"),
        ("opens", &format!("{options} --strict"), 1, "error[CG608]: opens: --strict requires an answer"),
        ("opens", "--guarded", 2, "info[CG606]: opens: it cannot be determined"),
        ("opens", "--guarded --strict", 1, "error[CG608]"),
        ("assembles", "--guarded --strict", 1, "its requirements on libcuda.so, which it may open, are unknown"),
        ("opens-cufft", "--guarded --strict", 1, "libcufft.so.11, which it may open, are unknown"),
        ("host", "--archs 80 --policy directory", 2, "is a directory; expected a policy file"),
        ("opens", "--driver-floor 535", 2, "info[CG606]"),
        ("opens", "--guarded --except opens", 0, "it is unknown whether a program or library uses CUDA"),
        ("opens", "--archs 80", 1, "it is unknown whether a program or library uses CUDA"),
        (
            "mixed",
            options,
            2,
            "not checked: opens-cudnn: its requirements on libcudnn.so.9, which it may open, are unknown",
        ),
        ("mixed", &format!("{options} --strict"), 1, "error[CG608]: mixed: --strict requires an answer"),
        ("host", options, 2, "nothing to check: it has no manifest"),
        ("host", "--guarded --strict", 0, "no program or library uses CUDA"),
        ("gone", options, 2, "gone"),
        ("linked", "--host gone.json", 2, "gone.json"),
    ] {
        let words: Vec<&str> = std::iter::once(file).chain(words.split(' ')).collect();
        let outcome = verify(&scratch, &words).expect(status);
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(reason), "{reason}: {outcome}");
    }
}

/// The machine and the requirements of a release both need the members, and stdin has them only once.
#[e2e]
fn archive_on_stdin_is_read_once() {
    let scratch = Scratch::without_blanks("release-stdin");
    let kernels = compile(&scratch, "kernels", &["arch=compute_80,code=sm_80"]);
    link(&scratch, "tree/lib.so", &[&kernels]);
    for (archs, status) in [("80", 0), ("90", 1)] {
        let script = format!("tar c tree | \"$0\" verify - --gpu A100 --driver 580 --archs {archs}");
        let outcome = Call::new("sh").args(["-c", &script]).arg(command::path()).dir(scratch.path()).run();
        assert_eq!(outcome.status(), Some(status), "{outcome}");
        assert!(outcome.stdout.contains("-: runs, judged by the options alone (the described machine)"), "{outcome}");
        assert!(outcome.stdout.contains("of the release"), "{outcome}");
    }
}
