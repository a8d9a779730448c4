//! Files without a manifest, checked by the libraries that they need and the functions that they bind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::internal::manifest::Opens;
use cudaguard_tests::{Outcome, Scratch, codes, command, e2e, parts, skip};
use serde_json::Value;

use super::fixture::call;
use super::guarded_programs;

/// Libraries with NVIDIA's names and symbol versions, and programs that use one function of one of them.
struct Fixture(Scratch);

impl Fixture {
    fn new(name: &str) -> Self {
        Self(Scratch::new(name))
    }

    fn gcc(&self, output: &str, source: &str, arguments: &[String]) -> PathBuf {
        let (file, output) = (self.0.join("source.c"), self.0.join(output));
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        fs::write(&file, source).unwrap();
        let done = Command::new("gcc").arg("-w").arg(&file).arg("-o").arg(&output).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        output
    }

    fn library(&self, path: &str, functions: &[&str]) -> PathBuf {
        let soname = path.rsplit('/').next().unwrap();
        let define = |name: &&str| format!("int {name}(void) {{ return 0; }}");
        let source = functions.iter().map(define).collect::<Vec<_>>().join("\n");
        let mut arguments: Vec<String> = ["-shared", "-fPIC", "-nostdlib"].map(str::to_owned).into();
        arguments.push(format!("-Wl,-soname,{soname}"));
        // libcuda and NCCL have no symbol versions.
        if !soname.starts_with("libcuda.") && !soname.starts_with("libnccl") {
            // Wheel repair does not change the version names.
            let node = cudaguard::internal::vendor::plain_name(soname);
            let map = self.0.file("versions.map", format!("{node} {{ global: *; }};"));
            arguments.push(format!("-Wl,--version-script={}", map.display()));
        }
        self.gcc(path, &source, &arguments)
    }

    fn program(&self, name: &str, functions: &[&str], library: &Path, bind: &str) -> PathBuf {
        let declare = |name: &&str| format!("int {name}(void);\n");
        let calls = functions.iter().map(declare).collect::<Vec<_>>().concat();
        let sum = functions.iter().map(|name| format!("{name}()")).collect::<Vec<_>>().join(" + ");
        let source = format!("{calls}int main(int n, char **a) {{ return n > 9 ? {sum} : 0; }}");
        self.gcc(name, &source, &[library.display().to_string(), format!("-Wl,-z,{bind}")])
    }
}

#[e2e]
fn unguarded_program_on_described_hosts() {
    let fixture = Fixture::new("bare described");
    let cudnn = fixture
        .library("all/libcudnn.so.9", &["cudnnCreate", "cudnnBackendPopulateCudaGraph", "cudnnBackendCreateCudaGraph"]);
    let cudnn_8 = fixture.library("all/libcudnn.so.8", &["cudnnCreate"]);
    let libcuda = fixture.library("all/libcuda.so.1", &["cuInit", "cuMemAllocAsync", "cuGraphAddNode_v2"]);
    for (function, library, flags, verdict, expected) in [
        ("cudnnCreate", &cudnn, "--cudnn 9.0.0", "runs", &["CG513 info"][..]),
        ("cudnnCreate", &cudnn, "--cudnn 9.28.0", "runs", &["CG513 info"]),
        ("cudnnCreate", &cudnn, "--cudnn 8.9.7", "refused", &["CG201 error", "CG513 info"]),
        ("cudnnCreate", &cudnn, "--cudnn none", "refused", &["CG205 error", "CG513 info"]),
        ("cudnnBackendPopulateCudaGraph", &cudnn, "--cudnn 9.4.0", "refused", &["CG202 error", "CG513 info"]),
        ("cudnnBackendPopulateCudaGraph", &cudnn, "--cudnn 9.5.0", "runs", &["CG513 info"]),
        // GPUs newer than the library: supported from cuDNN 9 for CUDA 12 on.
        ("cudnnCreate", &cudnn_8, "--cudnn 8.9.7 --driver 580 --gpu B200", "unknown", &["CG513 info", "CG517 info"]),
        ("cudnnCreate", &cudnn_8, "--cudnn 8.9.7 --driver 580 --gpu H100", "runs", &["CG513 info"]),
        (
            "cudnnCreate",
            &cudnn_8,
            "--cudnn 8.9.7 --driver 580 --gpu B200 --gpu A100 --together",
            "runs",
            &["CG513 info"],
        ),
        ("cudnnCreate", &cudnn_8, "--cudnn 8.5.0 --driver 580 --gpu 8.9", "runs", &["CG513 info"]),
        ("cudnnCreate", &cudnn_8, "--cudnn 8.9.2 --driver 580 --gpu 12.0", "unknown", &["CG513 info", "CG517 info"]),
        ("cudnnCreate", &cudnn, "--cudnn 9.1.0 --driver 580 --gpu B200", "runs", &["CG513 info"]),
        ("cudnnCreate", &cudnn, "--cudnn 9.28.0 --driver 580 --gpu B200", "runs", &["CG513 info"]),
        // The function is in no header, so it proves nothing.
        ("cudnnBackendCreateCudaGraph", &cudnn, "--cudnn 9.1.0", "runs", &["CG513 info"]),
        ("cuInit", &libcuda, "--driver 450.80.02", "runs", &["CG513 info"]),
        ("cuInit", &libcuda, "--driver none", "refused", &["CG210 error", "CG513 info"]),
        ("cuMemAllocAsync", &libcuda, "--driver 450.80.02", "refused", &["CG301 error", "CG513 info"]),
        ("cuMemAllocAsync", &libcuda, "--driver 470", "runs", &["CG513 info"]),
        ("cuGraphAddNode_v2", &libcuda, "--driver 535", "refused", &["CG301 error", "CG513 info"]),
        ("cuGraphAddNode_v2", &libcuda, "--driver 550", "runs", &["CG513 info"]),
    ] {
        let name = format!("{function}-{}", library.file_name().unwrap().to_string_lossy());
        let program = fixture.0.join(&name);
        if !program.exists() {
            let _ = fixture.program(&name, &[function], library, "lazy");
        }
        let value = call(["verify", "--json"]).arg(&program).args(flags.split(' ')).run().json();
        let mut found: Vec<String> = codes(&value).into_iter().filter(|code| !code.starts_with("CG50")).collect();
        found.sort();
        assert_eq!(found, expected, "{function}, {flags}: {value}");
        assert_eq!(value["verdict"] == "refused", verdict == "refused", "{function}, {flags}: {value}");
        assert!(verdict != "unknown" || value["verdict"] == verdict, "{function}, {flags}: {value}");
    }
    // Another machine does not have the files in a search path of the builder.
    let builder = Fixture::new("bare builder");
    let elsewhere = builder.library("libcudnn.so.9", &["cudnnCreate"]);
    let search_path = format!("lazy,-rpath,{}", builder.0.path().display());
    let program = fixture.program("built", &["cudnnCreate"], &elsewhere, &search_path);
    for (cudnn, expected) in [("9.0.0", ""), ("8.9.7", "CG201 error"), ("none", "CG205 error")] {
        let value = call(["verify", "--json"]).arg(&program).args(["--cudnn", cudnn]).run().json();
        let found: Vec<String> = codes(&value).into_iter().filter(|code| code.ends_with("error")).collect();
        assert_eq!(found.concat(), expected, "{cudnn}: {value}");
    }
    let cudart_library = fixture.library("all/libcudart.so.12", &["cudaMalloc", "cudaGraphAddNode_v2"]);
    let program = fixture.program("prog", &["cudaGraphAddNode_v2"], &cudart_library, "now");
    for (version, refused) in [("12.2.140", true), ("12.3.52", false), ("12.9.79", false)] {
        let host = format!(
            "{{\"revision\": 1, \"cudart\": [{{\"soname\": \"libcudart.so.12\", \"version\": \"{version}\", \"path\": \"/x\"}}]}}"
        );
        let host = fixture.0.file("host.json", host);
        let value = call(["verify", "--json"]).arg(&program).arg("--host").arg(host).run().json();
        assert_eq!(codes(&value).contains(&"CG214 error".to_owned()), refused, "{version}: {value}");
        assert!(!refused || value.to_string().contains("libcudart.so.12 12.3.52"), "{value}");
    }
    // A cuDNN for CUDA 11 supports no later GPU. The CUDA version of a cuDNN 9 comes from its code.
    let program = fixture.program("prog", &["cudnnCreate"], &cudnn, "lazy");
    for (cuda, reported) in [(r#", "cuda": "11.8""#, true), (r#", "cuda": "12.4""#, false), ("", false)] {
        let host = format!(
            r#"{{"driver": {{"user": "580.95.05", "kernel": "580.95.05"}}, "gpus": [{{"cc": "10.0"}}], "cudnn": [{{"soname": "libcudnn.so.9", "version": "9.1.0"{cuda}}}]}}"#
        );
        let host = fixture.0.file("host.json", host);
        let value = call(["verify", "--json"]).arg(&program).arg("--host").arg(host).run().json();
        assert_eq!(codes(&value).contains(&"CG517 info".to_owned()), reported, "{cuda}: {value}");
    }
    let program = fixture.program("prog", &["cudaGraphAddNode_v2"], &cudart_library, "now");
    // The loader of that machine finds no file with the required name.
    for (cudart, refused) in [
        ("[]", true),
        (r#"[{"soname": "libcudart.so.13", "version": "13.0.48"}]"#, true),
        (r#"[{"version": "12.9.79"}]"#, false),
    ] {
        let host = fixture.0.file("host.json", format!("{{\"revision\": 1, \"cudart\": {cudart}}}"));
        let verify = |program: &Path| call(["verify", "--json"]).arg(program).arg("--host").arg(&host).run().json();
        let value = verify(&program);
        assert_eq!(codes(&value).contains(&"CG210 error".to_owned()), refused, "{cudart}: {value}");
        // The directories of the program were examined, and the machine may have those that only its search path names.
        for (search, expected) in [("$ORIGIN/lib", refused), ("/opt/own/lib", false)] {
            let own = [format!("-Wl,-rpath,{search}"), cudart_library.display().to_string()];
            let source = "int cudaMalloc(void); int main(void) { return cudaMalloc(); }";
            let value = verify(&fixture.gcc("with-own", source, &own));
            assert_eq!(codes(&value).contains(&"CG210 error".to_owned()), expected, "{cudart}, {search}: {value}");
        }
    }
}

/// A static cudart requires a driver. No manifest records which, so its code determines the release, unless the code has no
/// release either.
#[e2e]
fn static_cudart_is_checked() {
    let fixture = Fixture::new("bare static");
    let library = parts::cuda("13.0").join("lib64/libcudart_static.a").display().to_string();
    let arguments = [library.as_str(), "-ldl", "-lpthread", "-lrt"].map(str::to_owned);
    let source = "int cudaDriverGetVersion(int *); int main(void) { int v; return cudaDriverGetVersion(&v); }";
    let program = fixture.gcc("prog", source, &arguments);
    let verify = || call(["verify", "--json"]).arg(&program).args(["--driver", "390.157"]).run().json();
    let value = verify();
    assert!(codes(&value).contains(&"CG301 error".to_owned()), "{value}");
    assert_eq!(value["verdict"], "refused", "{value}");
    // movl $13000, (%rdi)
    let mut bytes = std::fs::read(&program).expect("the compiler made it");
    let places: Vec<usize> =
        (0..bytes.len() - 6).filter(|at| bytes[*at..*at + 6] == *b"\xc7\x07\xc8\x32\0\0").collect();
    assert_eq!(places.len(), 2, "{places:?}");
    for at in places {
        bytes[at + 2] += 1;
    }
    std::fs::write(&program, bytes).expect("a file can be written");
    let value = verify();
    assert!(codes(&value).contains(&"CG516 info".to_owned()), "{value}");
    assert_eq!(value["verdict"], "unknown", "{value}");
}

/// Compares the loader's message with ours. `verify` and `exec` also report a function that is bound at the first call.
#[e2e]
fn missing_library_function_is_reported() {
    let fixture = Fixture::new("bare lacking");
    for (name, old, new, first) in [
        ("libcudnn.so.9", "cudnnCreate", "cudnnBackendPopulateCudaGraph", "9.5.0"),
        ("libcudart.so.12", "cudaMalloc", "cudaGraphAddNode_v2", "12.3.52"),
        ("libnccl.so.2", "ncclAllReduce", "ncclAllGatherConfig", "2.31.2"),
        ("libcuda.so.1", "cuInit", "cuGraphAddNode_v2", "12.3"),
    ] {
        let whole = fixture.library(&format!("new/{name}"), &[old, new]);
        fixture.library(&format!("old/{name}"), &[old]);
        for bind in ["now", "lazy"] {
            let program = fixture.program("prog", &[old, new], &whole, bind);
            for (dir, lacks) in [("new", false), ("old", true)] {
                let scene = format!("{name}, {bind}, {dir}");
                let dir = fixture.0.join(dir);
                let value = call(["verify", "--json"]).arg(&program).env("LD_LIBRARY_PATH", &dir).run().json();
                assert_eq!(codes(&value).contains(&"CG214 error".to_owned()), lacks, "{scene}: {value}");
                let text = value.to_string();
                for part in [name, new, first, "prog", "LD_LIBRARY_PATH"].iter().filter(|_| lacks) {
                    assert!(text.contains(part), "{part} is not in {scene}: {value}");
                }
                let variables = BTreeMap::from([("LD_LIBRARY_PATH", OsString::from(&dir))]);
                let ran = Command::new(&program).env_clear().envs(&variables).output().unwrap();
                let dies = lacks && bind == "now";
                assert_eq!(ran.status.code(), Some(if dies { 127 } else { 0 }), "{scene}");
                let exec = call(["exec", "--"]).arg(&program).env("LD_LIBRARY_PATH", &dir).run();
                let refused = value["verdict"] == "refused";
                assert_eq!(exec.status(), Some(if refused { 78 } else { 0 }), "{scene}: {}", exec.stderr);
                assert_eq!(exec.stderr.contains("error[CG214]"), lacks, "{scene}: {}", exec.stderr);
            }
        }
    }
}

/// The result of a check: the verdict, and the codes of the findings about libraries.
fn result(value: &Value) -> (String, Vec<String>) {
    let mut codes = codes(value);
    codes.retain(|code| !["CG504", "CG505", "CG513"].contains(&&code[..5]));
    (value["verdict"].as_str().unwrap_or_default().to_owned(), codes)
}

/// Only a host file states which libraries a machine has.
#[e2e]
fn libraries_of_machine_are_stated() {
    let fixture = Fixture::new("stated libraries");
    let cudart = fixture.library("all/libcudart.so.13", &["cudaMalloc"]);
    let cublas = fixture.library("all/libcublas.so.13", &["cublasCreate_v2"]);
    let nvrtc = fixture.library("all/libnvrtc.so.13", &["nvrtcVersion", "nvrtcGetTileIR"]);
    let source =
        "int cudaMalloc(void); int cublasCreate_v2(void); int main(void) { return cudaMalloc() + cublasCreate_v2(); }";
    let both = fixture.gcc("both", source, &[&cudart, &cublas].map(|path| path.display().to_string()));
    let compiler = fixture.program("compiler", &["nvrtcVersion"], &nvrtc, "now");
    let newer = fixture.program("newer", &["nvrtcGetTileIR"], &nvrtc, "now");
    let in_path = ["-Wl,-rpath,/opt/lib".to_owned(), cublas.display().to_string()];
    let in_path =
        fixture.gcc("in-path", "int cublasCreate_v2(void); int main(void) { return cublasCreate_v2(); }", &in_path);
    let mut opens = super::fixture::asks_driver();
    opens.opens = vec![Opens {
        by: "cudarc 0.19.10".to_owned(),
        libraries: ["cuda", "nvrtc", "cublas", "cudnn", "onnxruntime"].map(str::to_owned).into(),
        endings: [".so", ".so.13", ".so.12"].map(str::to_owned).into(),
    }];
    let crates = fixture.0.join("crates");
    super::fixture::program(&crates, &[opens]);
    // Without versions, libraries fit if they are in one directory.
    let pair = |dir: &str, other: &str| {
        let binds = r#"[{"soname": "libcublasLt.so.13", "function": "cublasLtNew", "first": "13.1.0"}]"#;
        format!(
            r#"{{"path": "{dir}/libcublas.so.13", "needs": ["libcublasLt.so.13"], "binds": {binds}}}, {{"path": "{other}/libcublasLt.so.13"}}"#
        )
    };
    let builtins = r#"{"soname": "libnvrtc-builtins.so.13.0", "version": "13.0.88"}"#;
    let nvrtc = r#"{"soname": "libnvrtc.so.13", "version": "13.0.88"}"#;
    let nvrtc_of_any_version = r#"{"soname": "libnvrtc.so.13"}"#;
    for (program, libraries, verdict, expected) in [
        (&both, String::new(), "unknown", &["CG519 info"][..]),
        (&both, r#""cudart": [{"version": "13.0.48"}]"#.to_owned(), "unknown", &["CG519 info"]),
        (&both, r#""cudart": [{"version": "13.0.48"}], "libraries": []"#.to_owned(), "refused", &["CG210 error"]),
        (
            &both,
            r#""cudart": [{"version": "13.0.48"}], "libraries": [{"path": "/usr/lib/libcublas.so.13"}]"#.to_owned(),
            "runs",
            &[],
        ),
        (
            &both,
            r#""cudart": [{"version": "13.0.48"}], "libraries": [{"soname": "libcublas.so.13", "needs": ["libcublasLt.so.13"]}]"#
                .to_owned(),
            "refused",
            &["CG210 error"],
        ),
        (&both, format!(r#""cudart": [{{"version": "13.0.48"}}], "libraries": [{}]"#, pair("/lib", "/lib")), "runs", &[]),
        (
            &both,
            format!(r#""cudart": [{{"version": "13.0.48"}}], "libraries": [{}]"#, pair("/lib", "/other")),
            "unknown",
            &["CG519 info"],
        ),
        (&in_path, r#""libraries": []"#.to_owned(), "unknown", &["CG519 info"]),
        (&compiler, format!(r#""libraries": [{nvrtc}, {builtins}]"#), "runs", &[]),
        (&compiler, format!(r#""libraries": [{nvrtc}]"#), "unknown", &["CG519 info"]),
        (&newer, format!(r#""libraries": [{nvrtc}, {builtins}]"#), "refused", &["CG214 error"]),
        // Without its version, it is unknown what NVRTC compiles and which functions it has.
        (&compiler, format!(r#""libraries": [{nvrtc_of_any_version}, {builtins}]"#), "unknown", &["CG519 info"]),
        (&newer, format!(r#""libraries": [{nvrtc_of_any_version}, {builtins}]"#), "unknown", &["CG519 info"; 2]),
        (&crates, String::new(), "unknown", &["CG519 info"]),
        (&crates, r#""libraries": [{"soname": "libcublas.so"}]"#.to_owned(), "runs", &["CG238 warning"]),
        (&crates, format!(r#""libraries": [{nvrtc}, {builtins}, {{"soname": "libcublas.so.12"}}]"#), "runs", &[]),
    ] {
        let libraries = if libraries.is_empty() { libraries } else { format!(", {libraries}") };
        let driver = r#""driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"cc": "9.0"}]"#;
        let host = fixture.0.file("host.json", format!("{{{driver}{libraries}}}"));
        let there = call(["verify", "--json"]).arg(program).arg("--host").arg(&host).run().json();
        let expected: Vec<String> = expected.iter().map(|code| (*code).to_owned()).collect();
        assert_eq!(result(&there), (verdict.to_owned(), expected), "{libraries}: {there}");
        let fleet = call(["verify"]).arg(program).arg("--fleet").arg(&host).run().stdout;
        assert_eq!(fleet.contains("1  CG519"), verdict == "unknown", "{libraries}: {fleet}");
        // No option asks about libraries.
        let by_options =
            call(["verify"]).arg(program).args(["--driver", "580.95.05", "--gpu", "9.0"]).run().success().stdout;
        assert!(by_options.contains("runs, judged by the options alone"), "{by_options}");
        assert!(by_options.contains("not checked: it is unknown whether the machine has lib"), "{by_options}");
    }
}

/// cudarc before 0.19.5 looks up all functions of a library when it opens it, and panics if one is missing. CUDA 13 removed some.
#[e2e]
fn lookups_are_compared_with_described_libraries() {
    let fixture = Fixture::new("described lookups");
    for (by, endings, library, verdict, expected) in [
        (
            "cudarc 0.17.8",
            &[".so", ".so.12", ".so.11"][..],
            r#""path": "/lib/libnvrtc.so.12", "version": "12.8.93""#,
            "runs",
            None,
        ),
        (
            "cudarc 0.17.8",
            &[".so", ".so.12", ".so.11"],
            r#""soname": "libnvrtc.so.12", "version": "12.0.76""#,
            "refused",
            Some("CG214 error"),
        ),
        (
            "cudarc 0.17.8",
            &[".so", ".so.12", ".so.11"],
            r#""soname": "libnvrtc.so", "version": "12.0.76""#,
            "refused",
            Some("CG214 error"),
        ),
        (
            "cudarc 0.17.8",
            &[".so", ".so.12", ".so.11"],
            r#""soname": "libnvrtc.so", "version": "13.0.88""#,
            "unknown",
            Some("CG519 info"),
        ),
        ("cudarc 0.17.8", &[".so", ".so.13"], r#""soname": "libnvrtc.so.13", "version": "13.0.88""#, "runs", None),
        ("cudarc 0.19.10", &[".so", ".so.12"], r#""soname": "libnvrtc.so", "version": "13.0.88""#, "runs", None),
    ] {
        let mut manifest = super::fixture::asks_driver();
        let (libraries, endings) =
            (vec!["nvrtc".to_owned()], endings.iter().map(|ending| (*ending).to_owned()).collect());
        manifest.opens = vec![Opens { by: by.to_owned(), libraries, endings }];
        let objects = guarded_programs::objects(fixture.0.path(), &[manifest]);
        let program = fixture.0.join("prog");
        let main = "const char *const names[] = { \"nvrtcGetPTX\", \"nvrtcGetNVVM\", \"nvrtcSetFlowCallback\" };\nint main(int n, char **a) { return n > 9 && **a == *names[n]; }\n";
        guarded_programs::link(main, &program, &objects, &[]).unwrap();
        let driver = r#""driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"cc": "9.0"}]"#;
        let builtins = r#"{"soname": "libnvrtc-builtins.so.12.8", "version": "12.8.93"}, {"soname": "libnvrtc-builtins.so.12.0", "version": "12.0.76"}, {"soname": "libnvrtc-builtins.so.13.0", "version": "13.0.88"}"#;
        let host = fixture.0.file("host.json", format!("{{{driver}, \"libraries\": [{{{library}}}, {builtins}]}}"));
        let there = call(["verify", "--json"]).arg(&program).arg("--host").arg(&host).run().json();
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(result(&there), (verdict.to_owned(), expected), "{by} {library}: {there}");
    }
}

/// A host file of `probe` contains what the dynamic linker finds.
#[e2e(slow)]
fn probed_machine_has_the_same_answer() {
    if Path::new("/proc/driver/nvidia/version").exists() {
        skip("a machine without a local driver", "another machine");
    }
    let fixture = Fixture::new("probed libraries");
    let driver = super::fixture::driver(&fixture.0, "580.65.06", "13000 0 0 2048");
    let old_driver = super::fixture::driver(&fixture.0, "535.261.03", "12020 0 0 2048");
    let cufft = fixture.library("fft/libcufft.so.12", &["cufftPlan1d"]);
    let version = "Cuda compilation tools, release 13.0, V13.0.88";
    let compiler = |name: &str, functions: &[&str]| {
        let define = |name: &&str| format!("int {name}(void) {{ return 0; }}");
        let defines = functions.iter().map(define).collect::<Vec<_>>().join("\n");
        let source = format!("const char text[] = \"{version}\";\n{defines}");
        let soname = name.rsplit('/').next().unwrap();
        let arguments = ["-shared", "-fPIC", "-nostdlib", &format!("-Wl,-soname,{soname}")].map(str::to_owned);
        fixture.gcc(name, &source, &arguments)
    };
    let nvrtc = compiler("rtc/libnvrtc.so.13", &["nvrtcVersion"]);
    let newer = compiler("newer/libnvrtc.so.13", &["nvrtcVersion", "nvrtcGetTileIR"]);
    let builtins = compiler("built/libnvrtc-builtins.so.13.0", &["getArchBuiltins"]);
    let complete = fixture.0.join("complete");
    fs::create_dir_all(&complete).unwrap();
    for file in [&nvrtc, &builtins] {
        fs::copy(file, complete.join(file.file_name().unwrap())).unwrap();
    }
    let cudart = parts::cuda("13.0").join("lib64");
    let (nvjpeg, nccl) = (parts::part("nvjpeg-13.0").join("lib"), parts::part("nccl-2.19.3").join("lib"));
    // The best-known failure of environments of PyTorch.
    let linker = |name: &str, release: &str| {
        let source = format!("int __nvJitLinkComplete_{release}(void) {{ return 0; }}");
        fixture.gcc(name, &source, &["-shared", "-nostdlib", "-Wl,-soname,libnvJitLink.so.12"].map(str::to_owned))
    };
    let built_with = linker("linker/libnvJitLink.so.12", "12_4");
    linker("sparse/libnvJitLink.so.12.1.105", "12_1");
    std::os::unix::fs::symlink("libnvJitLink.so.12.1.105", fixture.0.join("sparse/libnvJitLink.so.12")).unwrap();
    let source = "int __nvJitLinkComplete_12_4(void); int cusparseCreate(void) { return __nvJitLinkComplete_12_4(); }";
    let arguments = ["-shared", "-fPIC", "-Wl,-soname,libcusparse.so.12,-z,now", &built_with.display().to_string()];
    let sparse = fixture.gcc("sparse/libcusparse.so.12", source, &arguments.map(str::to_owned));
    let arguments = ["-Wl,--allow-shlib-undefined".to_owned(), sparse.display().to_string()];
    let source = "int cusparseCreate(void); int main(void) { return cusparseCreate(); }";
    let mixed = fixture.gcc("mixed", source, &arguments);
    let programs = [
        ("mixed", mixed, fixture.0.join("sparse")),
        ("cudart", fixture.program("cudart", &["cudaMalloc"], &cudart.join("libcudart.so.13"), "now"), cudart),
        ("nvjpeg", fixture.program("nvjpeg", &["nvjpegCreateSimple"], &nvjpeg.join("libnvjpeg.so.13"), "now"), nvjpeg),
        ("nccl", fixture.program("nccl", &["ncclGetVersion"], &nccl.join("libnccl.so.2"), "now"), nccl),
        ("cufft", fixture.program("cufft", &["cufftPlan1d"], &cufft, "now"), fixture.0.join("fft")),
        ("nvrtc", fixture.program("nvrtc", &["nvrtcVersion"], &nvrtc, "now"), complete.clone()),
        ("incomplete", fixture.program("incomplete", &["nvrtcVersion"], &nvrtc, "now"), fixture.0.join("rtc")),
        ("newer", fixture.program("newer-program", &["nvrtcGetTileIR"], &newer, "now"), complete),
    ];
    for (name, program, dir) in &programs {
        for (driver, dirs) in [(&driver, vec![dir]), (&driver, vec![]), (&old_driver, vec![dir])] {
            let path = std::env::join_paths(std::iter::once(driver).chain(dirs.iter().copied())).unwrap();
            let run = |arguments: &[&str]| call(arguments).env("LD_LIBRARY_PATH", &path);
            let host = fixture.0.file("host.json", run(&["probe", "--json"]).run().success().stdout);
            let here = run(&["verify", "--json"]).arg(program).run().json();
            let there = call(["verify", "--json"]).arg(program).arg("--host").arg(host).run().json();
            assert_eq!(there["verdict"], here["verdict"], "{name} with {path:?}: {there} {here}");
            // Only this machine shows the kernels of its libraries.
            if driver != &old_driver {
                assert_eq!(result(&there), result(&here), "{name} with {path:?}: {there} {here}");
            }
            let expected = match (*name, dirs.is_empty()) {
                ("mixed" | "newer", _) | (_, true) => "refused",
                ("incomplete", _) => "unknown",
                _ => "runs",
            };
            assert!(driver == &old_driver || here["verdict"] == expected, "{name} with {path:?}: {here}");
            let needs_newer = codes(&there).contains(&"CG301 error".to_owned());
            assert_eq!(
                needs_newer,
                driver == &old_driver && ["cudart", "cufft", "nvjpeg"].contains(name),
                "{name}: {there}"
            );
        }
    }
}

/// torch 1.13.1 contains `libcudart-e409450e.so.11.0`.
#[e2e]
fn repaired_wheel_names_are_resolved() {
    let fixture = Fixture::new("bare renamed");
    for (name, flags, code) in [
        ("libcudart-e409450e.so.11.0", "--driver 440.33.01", "CG301 error"),
        ("libcudart-1a2b3c4d.so.12", "--driver 450.80.02", "CG301 error"),
        ("libcudnn-1a2b3c4d.so.9", "--cudnn 8.9.7", "CG201 error"),
    ] {
        let function = if name.starts_with("libcudnn") { "cudnnCreate" } else { "cudaMalloc" };
        let library = fixture.library(&format!("lib/{name}"), &[function]);
        let program = fixture.program("prog", &[function], &library, "lazy");
        let value = call(["verify", "--json"]).arg(&program).args(flags.split(' ')).run().json();
        assert!(codes(&value).contains(&code.to_owned()), "{name}, {flags}: {value}");
    }
}

/// Which functions a program looks up in a library that it opens is in no file, so the answer is not that it needs none.
#[e2e]
fn names_of_opened_libraries_are_reported() {
    let fixture = Fixture::new("bare names");
    let opens = r#"
        #include <dlfcn.h>
        int main(void) { return !dlopen("libcuda.so.1", RTLD_NOW) || !dlopen("libnvrtc.so.12", RTLD_NOW); }
    "#;
    let sonames = |value: &Value| -> Vec<String> {
        let all = value["may_open"].as_array().into_iter().flatten();
        all.filter_map(|one| Some(one["soname"].as_str()?.to_owned())).collect()
    };
    // Text alone opens nothing.
    let prints = opens.replace("#include <dlfcn.h>", "#include <stdio.h>\n#define dlopen(name, mode) puts(name)");
    // cudarc puts the name together.
    let composes = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            char name[32];
            snprintf(name, sizeof name, "%s%s.so", argc ? "lib" : argv[0], "cuda");
            void *cuda = dlopen(name, RTLD_NOW);
            return !cuda || !dlsym(cuda, "cuMemAlloc_v2");
        }
    "#;
    for (name, source, all) in [
        ("opens", opens, &["libcuda.so.1", "libnvrtc.so.12"][..]),
        ("prints", &*prints, &[]),
        ("composes", composes, &["libcuda.so"]),
    ] {
        let expected = !all.is_empty();
        let names = if expected { all.join(", ") } else { "libcuda.so".to_owned() };
        let program = fixture.gcc(name, source, &[]);
        let text = |outcome: Outcome| format!("{}{}", outcome.stdout, outcome.stderr);
        let verified = text(call(["verify", "--driver", "580", "--gpu", "A100"]).arg(&program).run().expect(2));
        assert!(
            verified.contains("nothing to check") != expected && verified.contains(&names) == expected,
            "{verified}"
        );
        let inspected = text(call(["inspect"]).arg(&program).run().success());
        assert_eq!(inspected.contains(&format!("none needed; may open {names}")), expected, "{inspected}");
        let value = command::inspect(&program);
        assert_eq!(sonames(&value), all, "{value}");
        let dir = fixture.0.join(format!("{name}-directory"));
        fs::create_dir(&dir).unwrap();
        fs::copy(&program, dir.join("program")).unwrap();
        let listed = call(["inspect"]).arg(&dir).run().success().stdout;
        assert_eq!(
            listed.contains(&format!("may open   {}: program\n", names.replace(", ", ": program\n             "))),
            expected,
            "{listed}"
        );
        let outcome = call(["verify", "--driver", "580", "--gpu", "A100"]).arg(&dir).run().expect(2);
        let unknown = format!("not checked: program: its requirements on {names}, which it may open, are unknown");
        assert_eq!(outcome.stdout.contains(&unknown), expected, "{outcome}");
        assert_eq!(outcome.stderr.contains("nothing to check"), !expected, "{outcome}");
        let value = command::inspect(&dir);
        assert_eq!(sonames(&value), all, "{value}");
        let diagnosed = text(call(["doctor"]).arg(&program).run());
        assert_eq!(diagnosed.contains(&format!("the requirements of the program on {names}")), expected, "{diagnosed}");
    }
}

/// Every library of NVIDIA's that a program names and that is absent is named, with or without a version.
#[e2e]
fn absent_opened_libraries_are_named() {
    let fixture = Fixture::new("bare absent");
    for name in ["libcudnn.so", "libcudnn.so.9", "libcublas.so", "libcublas.so.12", "libnvrtc.so", "libnccl.so.2"] {
        let source = format!("#include <dlfcn.h>\nint main(void) {{ return !dlopen(\"{name}\", RTLD_NOW); }}\n");
        let program = fixture.gcc(&format!("opens {name}"), &source, &[]);
        let arguments = ["-shared", "-fPIC", "-nostdlib", &format!("-Wl,-soname,{name}")].map(str::to_owned);
        let library = fixture.gcc(&format!("dir {name}/{name}"), "int answer(void) { return 42; }", &arguments);
        let absent =
            format!("info[CG519]: it is unknown whether opens {name} works without {name}, which it opens by name");
        let open =
            format!("info[CG519]: it is unknown whether the machine has {name}, which opens {name} opens by name");
        let described = call(["verify", "--driver", "580", "--gpu", "A100"]).arg(&program).run().expect(2);
        assert!(described.stderr.contains(&open), "{described}");
        for verb in ["verify", "doctor"] {
            let here = call([verb]).arg(&program).env_remove("LD_LIBRARY_PATH").run().expect(2);
            assert!(format!("{}{}", here.stdout, here.stderr).contains(&absent), "{here}");
            let found = call([verb]).arg(&program).env("LD_LIBRARY_PATH", library.parent().unwrap()).run();
            assert!(!format!("{}{}", found.stdout, found.stderr).contains("CG519"), "{found}");
        }
    }
}

/// The kernels of NVIDIA's profiler are not those of the program that comes with it (triton 3.2 has no others).
#[e2e]
fn profiler_is_no_requirement() {
    let fixture = Fixture::new("bare profiler");
    let source = r#"#include <dlfcn.h>
        int main(void) { return !dlopen("libcuda.so.1", RTLD_NOW); }"#;
    let program = fixture.gcc("program", source, &[]);
    let (alone, both) = (fixture.0.join("alone"), fixture.0.join("both"));
    for dir in [&alone, &both] {
        fs::create_dir_all(dir.join("cupti")).unwrap();
        fs::copy(parts::part("cupti-12.6").join("lib/libcupti.so.12"), dir.join("cupti/libcupti.so.12")).unwrap();
    }
    fs::copy(&program, both.join("program")).unwrap();
    // What a compiler compiles when a program runs is unknown.
    let source = r#"const char text[] = "Cuda compilation tools, release 12.4, V12.4.127"; int nvrtcVersion(void) { return 0; }"#;
    let arguments = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libnvrtc.so.12"].map(str::to_owned);
    fixture.gcc("compiler/libnvrtc.so.12", source, &arguments);
    let compiler = fixture.0.join("compiler");
    // CUPTI 12.6 has no code for this GPU.
    for (dir, verdict, expected) in [
        (&alone, "refused", &["CG303 error"][..]),
        (&both, "unknown", &[]),
        (&compiler, "unknown", &["CG236 warning", "CG519 info"]),
    ] {
        let value = call(["verify", "--json", "--driver", "580", "--gpu", "RTX5090"]).arg(dir).run().json();
        let expected: Vec<String> = expected.iter().map(|code| (*code).to_owned()).collect();
        assert_eq!(result(&value), (verdict.to_owned(), expected), "{value}");
        let map = call(["map", "--json"]).arg(dir).run().json();
        // The answer is unknown for each driver, so the map has all of them.
        assert_eq!(map["drivers"][0]["branch"] == 340, verdict == "unknown", "{map}");
    }
}

/// A stub without kernels opens the cudart of any major, whatever its search path contains (tilelang 0.1.15, modules of JAX).
#[e2e]
fn stub_of_cudart_is_unknown() {
    let fixture = Fixture::new("bare stub");
    let stub = |name: &str, library: &str| {
        let source = format!(
            r#"#include <dlfcn.h>
            #include <stdio.h>
            void *cudaMalloc(void) {{ char name[32]; {library}; return dlsym(dlopen(name, RTLD_NOW), "cudaMalloc"); }}"#
        );
        let arguments = ["-shared", "-fPIC", "-O0", "-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib"];
        fixture.gcc(name, &source, &arguments.map(str::to_owned))
    };
    let whole = stub("whole/lib/libstub_cudart.so", r#"sprintf(name, "libcudart.so")"#);
    let joined = stub("joined/lib/joined.so", r#"sprintf(name, "lib%s.so", "cudart")"#);
    let dirs = [&whole, &joined].map(|file| (file.parent().unwrap(), vec![]));
    let files = [(whole.as_path(), vec!["CG519 info".to_owned()]), (joined.as_path(), vec![])];
    for (target, codes) in files.into_iter().chain(dirs) {
        let value = call(["verify", "--json", "--driver", "535", "--gpu", "T4"]).arg(target).run().json();
        assert_eq!(result(&value), ("unknown".to_owned(), codes), "{value}");
        assert!(value["not_judged"].to_string().contains("libcudart.so, which it may open"), "{value}");
    }
}

/// The missing part of the file may contain requirements, so the verdict must not be that it has none.
#[e2e]
fn truncated_file_is_reported() {
    let fixture = Fixture::new("bare cut off");
    let program = fixture.gcc("whole", "int main(void) { return 0; }", &[]);
    let bytes = fs::read(&program).unwrap();
    let cut = fixture.0.file("cut", &bytes[..bytes.len() - 100]);
    for (file, says) in [(&cut, "is cut off or damaged"), (&program, "needs no CUDA library")] {
        let outcome = call(["verify", "--driver", "580", "--gpu", "A100"]).arg(file).run().expect(2);
        assert!(outcome.stdout.contains(says) || outcome.stderr.contains(says), "{outcome}");
        assert_eq!(outcome.stderr.contains("nothing to check"), file == &program, "{outcome}");
    }
}
