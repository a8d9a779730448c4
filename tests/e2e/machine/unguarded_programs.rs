//! Files without a manifest, checked by the libraries that they need and the functions that they bind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::internal::manifest::Opens;
use cudaguard_tests::{Outcome, Scratch, codes, command, e2e, parts};
use serde_json::Value;

use super::fixture::call;

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
            let node = cargo_cudaguard::knowledge::vendor::plain_name(soname);
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
