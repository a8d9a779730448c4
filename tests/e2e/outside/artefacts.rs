//! Wheels, archives and folders of real parts: one answer for the whole, the same however it is packed.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, Trial, command, parts, scratch, snapshot, tools, trials};
use serde_json::Value;

pub(crate) fn trials() -> Vec<Trial> {
    trials![of_whatever_form, a_verdict_for_the_whole, what_a_package_promises, what_is_no_archive_says_so]
}

/// Packs the folder `tree` in each form, with what everybody has.
const PACK: &str = "
import os, tarfile, zipfile
with zipfile.ZipFile('app-1.0-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as wheel:
    for folder, _, files in os.walk('tree'):
        for file in sorted(files):
            path = os.path.join(folder, file)
            wheel.write(path, os.path.relpath(path, 'tree'))
for form in ['', 'gz', 'bz2', 'xz']:
    with tarfile.open('app.tar' + ('.' + form if form else ''), 'w:' + form) as tar:
        for entry in sorted(os.listdir('tree')):
            tar.add(os.path.join('tree', entry), entry)
";

/// A package that holds a library with kernels, its cuDNN where it looks for it, and a cudart where it does not.
fn package(name: &str) -> (Scratch, PathBuf) {
    tools::need("python3");
    tools::need("g++");
    let scratch = Scratch::without_blanks(name);
    let (cuda, cudnn) = (parts::cuda("13.0"), parts::cudnn("9.15.1"));
    let tree = scratch.join("tree");
    for folder in ["app/lib", "nvidia/cudnn/lib", "nvidia/cu13/lib", "app-1.0.dist-info"] {
        fs::create_dir_all(tree.join(folder)).expect("a folder");
    }
    scratch.file("k.cu", "extern \"C\" unsigned long cudnnGetVersion();\n__global__ void k(int *p) { *p = 1; }\nunsigned long f(int *p) { k<<<1, 1>>>(p); return cudnnGetVersion(); }\n");
    let _ = Call::new(cuda.join("bin/nvcc"))
        .args(["-c", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_80,code=sm_80"])
        .args(["-gencode", "arch=compute_90,code=[sm_90,compute_90]", "k.cu", "-o", "k.o"])
        .dir(scratch.path())
        .run()
        .success();
    let _ = Call::new("g++")
        .args(["-shared", "-Wl,-rpath,$ORIGIN/../../nvidia/cudnn/lib", "k.o", "-o", "tree/app/lib/libapp.so"])
        .args([cudnn.join("lib/libcudnn.so.9"), cuda.join("lib/libcudart.so.13")])
        .dir(scratch.path())
        .run()
        .success();
    for file in ["libcudnn.so.9", "libcudnn_graph.so.9"] {
        fs::copy(cudnn.join("lib").join(file), tree.join("nvidia/cudnn/lib").join(file)).expect("a copy");
    }
    fs::copy(cuda.join("lib/libcudart.so.13"), tree.join("nvidia/cu13/lib/libcudart.so.13")).expect("a copy");
    scratch::write(&tree.join("app/__init__.py"), "import app\n");
    let metadata = "Metadata-Version: 2.1\nName: app\nVersion: 1.0\nRequires-Dist: nvidia-cublas\n\nName: a trap\n";
    scratch::write(&tree.join("app-1.0.dist-info/METADATA"), metadata);
    let _ = Call::new("python3").args(["-c", PACK]).dir(scratch.path()).run().success();
    let wheel = scratch.join("app-1.0-py3-none-any.whl");
    (scratch, wheel)
}

fn told(file: &Path) -> Value {
    let outcome = command::call(["inspect", "--json"]).arg(file).run().success();
    let mut told: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    for differs in ["file", "kind", "members_in_all"] {
        assert!(told.as_object_mut().expect("an object").remove(differs).is_some(), "{outcome}");
    }
    told
}

fn of_whatever_form() {
    let (scratch, wheel) = package("artefact-forms");
    let outcome = command::call(["inspect"]).arg(&wheel).run().success();
    snapshot::check("outside/wheel", &snapshot::paths(&outcome.stdout, &[(scratch.path(), "<scratch>")]));
    let expected = told(&wheel);
    assert_eq!(expected["members"].as_array().map(Vec::len), Some(4), "{expected}");
    for form in ["tree", "app.tar", "app.tar.gz", "app.tar.bz2", "app.tar.xz"] {
        assert_eq!(told(&scratch.join(form)), expected, "{form}");
    }
    let script = r#"exec "$0" inspect --json - < app.tar.gz"#;
    let outcome = Call::new("sh").args(["-c", script]).arg(command::path()).dir(scratch.path()).run().success();
    let piped: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(piped["members"], expected["members"]);
}

fn a_verdict_for_the_whole() {
    let (_scratch, wheel) = package("artefact-verdict");
    let verify = |words: &[&str]| command::call(["verify"]).arg(&wheel).args(words).run();
    let outcome = verify(&["--driver", "580.65.06", "--gpu", "A100", "--cudnn", "none"]).expect(0);
    assert!(outcome.stdout.contains(": runs (what the flags say)"), "its cuDNN lies in it: {outcome}");
    let outcome = verify(&["--driver", "580.65.06", "--gpu", "V100"]).expect(1);
    assert!(outcome.stderr.contains("app/lib/libapp.so"), "the member is named: {outcome}");
    let outcome = verify(&["--driver", "535.261.03", "--gpu", "A100", "--json"]).expect(1);
    let told: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(told["verdict"], "refused", "{outcome}");
}

/// A wheel that carries a libcuda, two cuDNNs and the building machine's folder, and promises what does not fit; and the same with
/// promises that fit.
fn what_a_package_promises() {
    let (scratch, _) = package("artefact-promises");
    let tree = scratch.join("tree");
    let promise = |version: &str, requires: &[&str]| {
        let requires = requires.iter().fold(String::new(), |lines, one| lines + "Requires-Dist: " + one + "\n");
        let metadata = format!("Metadata-Version: 2.1\nName: app\nVersion: {version}\n{requires}\n");
        scratch::write(&tree.join("app-1.0.dist-info/METADATA"), metadata);
        let _ = Call::new("python3").args(["-c", PACK]).dir(scratch.path()).run().success();
    };
    let found = || {
        let inspected = told(&scratch.join("app-1.0-py3-none-any.whl"));
        let all = inspected["findings"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one["message"].as_str().expect("words").to_owned()).collect::<Vec<_>>()
    };
    promise("1.0+cu130", &["nvidia-cuda-runtime==13.0.96"]);
    assert_eq!(found(), [] as [&str; 0]);
    // An extension that finds its cuDNN elsewhere, and binds what 9.1 does not have.
    scratch.file(
        "ext.c",
        "int cudnnBackendPopulateCudaGraph(void);\nint g(void) { return cudnnBackendPopulateCudaGraph(); }\n",
    );
    let cudnn = parts::cudnn("9.15.1").join("lib");
    let _ = Call::new("gcc")
        .args(["-shared", "-fPIC", "-Wl,-rpath,/opt/build/lib:$ORIGIN", "ext.c", "-o", "tree/app/ext.so"])
        .args([cudnn.join("libcudnn.so.9"), cudnn.join("libcudnn_graph.so.9")])
        .dir(scratch.path())
        .run()
        .success();
    scratch.file("none.c", "int nothing;\n");
    fs::create_dir_all(tree.join("app.libs")).expect("a folder");
    let _ = Call::new("gcc")
        .args(["-shared", "-fPIC", "none.c", "-o", "tree/app.libs/libcuda-1a2b3c4d.so.1"])
        .dir(scratch.path())
        .run()
        .success();
    fs::copy(parts::cudnn("9.1.0").join("lib/libcudnn_graph.so.9"), tree.join("app.libs/libcudnn_graph.so.9"))
        .expect("a copy");
    promise("1.0+cu128", &["nvidia-cudnn-cu12==9.1.0.70", "nvidia-cuda-runtime-cu12==12.8.90; python_version > \"3\""]);
    let wheel = scratch.join("app-1.0-py3-none-any.whl");
    let outcome = command::call(["inspect"]).arg(&wheel).run().success();
    snapshot::check("outside/promises", &snapshot::paths(&outcome.stdout, &[(scratch.path(), "<scratch>")]));
    let messages = found().join("\n");
    for told in [
        "app.libs/libcuda-1a2b3c4d.so.1 belongs to the driver",
        "cuDNN stands in the package more than once: 9.1.0 in app.libs/libcudnn_graph.so.9, 9.15.1 in nvidia/cudnn/lib/",
        "requires nvidia-cudnn-cu12==9.1.0.70, and app/ext.so needs libcudnn",
        "requires nvidia-cuda-runtime-cu12==12.8.90; python_version > \"3\", and app/lib/libapp.so needs libcudart.so.13",
        "the version says cu128, and app/lib/libapp.so is for CUDA 13.0",
        "libraries are looked for outside of the package, in /opt/build/lib, by app/ext.so",
    ] {
        assert!(messages.contains(told), "{told} in:\n{messages}");
    }
    // Told, and no ground to refuse.
    let verified =
        command::call(["verify", "--driver", "580.65.06", "--gpu", "A100", "--cudnn", "9.15.1"]).arg(&wheel).run();
    assert!(verified.status() == Some(0) && verified.stderr.contains("warning[CG518]"), "{verified}");
}

fn what_is_no_archive_says_so() {
    let (scratch, wheel) = package("artefact-hostile");
    let bytes = fs::read(&wheel).expect("the wheel");
    let cut = scratch.file("cut.whl", &bytes[..bytes.len() / 2]);
    fs::create_dir(scratch.join("empty")).expect("a folder");
    let packed = fs::read(scratch.join("app.tar.xz")).expect("the tar");
    let short = scratch.file("short.tar.xz", &packed[..packed.len() / 2]);
    for (file, says) in [
        (cut, "cut.whl: is cut off or damaged"),
        (short, "is cut off"),
        (scratch.join("empty"), "is a folder that holds nothing"),
        (scratch.file("a.zip", b"PK\x03\x04 and no more"), "a.zip: is cut off or damaged"),
    ] {
        for verb in ["inspect", "verify"] {
            let outcome = command::call([verb]).arg(&file).run().expect(2);
            assert!(outcome.stderr.contains("error: ") && outcome.stderr.contains(says), "{says}: {outcome}");
        }
    }
}
