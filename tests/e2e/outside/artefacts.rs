//! Wheels, archives and folders of real parts: one answer for the whole, the same however it is packed.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, Trial, command, parts, scratch, snapshot, tools, trials};
use serde_json::Value;

pub(crate) fn trials() -> Vec<Trial> {
    trials![of_whatever_form, a_verdict_for_the_whole, what_is_no_archive_says_so]
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
