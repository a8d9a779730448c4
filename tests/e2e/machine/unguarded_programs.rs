//! Files without a manifest, checked by the libraries that they need and the functions that they bind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard_tests::{Scratch, Test, parts, tests};

use super::fixture::{call, codes, json};

pub(crate) fn tests() -> Vec<Test> {
    tests![
        static_cudart_is_checked,
        truncated_file_is_reported,
        unguarded_program_on_described_hosts,
        missing_library_function_is_reported,
        repaired_wheel_names_are_resolved
    ]
}

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
        let value = json(&call(["verify", "--json"]).arg(&program).args(flags.split(' ')).run());
        let mut found: Vec<String> = codes(&value).into_iter().filter(|code| !code.starts_with("CG50")).collect();
        found.sort();
        assert_eq!(found, expected, "{function}, {flags}: {value}");
        assert_eq!(value["verdict"] == "refused", verdict == "refused", "{function}, {flags}: {value}");
        assert!(verdict != "unknown" || value["verdict"] == verdict, "{function}, {flags}: {value}");
    }
    let cudart_library = fixture.library("all/libcudart.so.12", &["cudaMalloc", "cudaGraphAddNode_v2"]);
    let program = fixture.program("prog", &["cudaGraphAddNode_v2"], &cudart_library, "now");
    for (version, refused) in [("12.2.140", true), ("12.3.52", false), ("12.9.79", false)] {
        let host = format!(
            "{{\"revision\": 1, \"cudart\": [{{\"soname\": \"libcudart.so.12\", \"version\": \"{version}\", \"path\": \"/x\"}}]}}"
        );
        let host = fixture.0.file("host.json", host);
        let value = json(&call(["verify", "--json"]).arg(&program).arg("--host").arg(host).run());
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
        let value = json(&call(["verify", "--json"]).arg(&program).arg("--host").arg(host).run());
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
        let verify = |program: &Path| json(&call(["verify", "--json"]).arg(program).arg("--host").arg(&host).run());
        let value = verify(&program);
        assert_eq!(codes(&value).contains(&"CG210 error".to_owned()), refused, "{cudart}: {value}");
        // A program with its own runtime path may bring its own library.
        let own = ["-Wl,-rpath,$ORIGIN/lib".to_owned(), cudart_library.display().to_string()];
        let value =
            verify(&fixture.gcc("with-own", "int cudaMalloc(void); int main(void) { return cudaMalloc(); }", &own));
        assert!(!codes(&value).contains(&"CG210 error".to_owned()), "{cudart}: {value}");
    }
}

/// A static cudart requires a driver. No manifest records which, so its code determines the release, unless the code has no
/// release either.
fn static_cudart_is_checked() {
    let fixture = Fixture::new("bare static");
    let library = parts::cuda("13.0").join("lib64/libcudart_static.a").display().to_string();
    let arguments = [library.as_str(), "-ldl", "-lpthread", "-lrt"].map(str::to_owned);
    let source = "int cudaDriverGetVersion(int *); int main(void) { int v; return cudaDriverGetVersion(&v); }";
    let program = fixture.gcc("prog", source, &arguments);
    let verify = || json(&call(["verify", "--json"]).arg(&program).args(["--driver", "390.157"]).run());
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
                let value = json(&call(["verify", "--json"]).arg(&program).env("LD_LIBRARY_PATH", &dir).run());
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

/// torch 1.13.1 contains `libcudart-e409450e.so.11.0`.
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
        let value = json(&call(["verify", "--json"]).arg(&program).args(flags.split(' ')).run());
        assert!(codes(&value).contains(&code.to_owned()), "{name}, {flags}: {value}");
    }
}

/// The missing part of the file may contain requirements, so the verdict must not be that it has none.
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
