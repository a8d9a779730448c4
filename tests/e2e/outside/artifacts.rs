//! Wheels, archives and directories of real parts: one verdict for the artifact, independent of its format.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, command, e2e, once, parts, scratch, snapshot, tools};
use serde_json::Value;

/// Packs the directory `tree` as a wheel, and as a tar with the compressions of its arguments.
const PACK: &str = "
import os, sys, tarfile, zipfile
with zipfile.ZipFile('app-1.0-py3-none-any.whl', 'w', zipfile.ZIP_DEFLATED) as wheel:
    for folder, _, files in os.walk('tree'):
        for file in sorted(files):
            path = os.path.join(folder, file)
            wheel.write(path, os.path.relpath(path, 'tree'))
for form in sys.argv[1:]:
    with tarfile.open('app.tar' + ('.' + form if form else ''), 'w:' + form) as tar:
        for entry in sorted(os.listdir('tree')):
            tar.add(os.path.join('tree', entry), entry)
";

/// Creates a package with a library that has kernels, a cuDNN on its search path, and a cudart outside its search path.
fn package(name: &str) -> (Scratch, PathBuf) {
    tools::need("python3");
    tools::need("g++");
    let scratch = Scratch::without_blanks(name);
    let (cuda, cudnn) = (parts::cuda("13.0"), parts::cudnn("9.15.1"));
    let tree = scratch.join("tree");
    for dir in ["app/lib", "nvidia/cudnn/lib", "nvidia/cu13/lib", "app-1.0.dist-info"] {
        fs::create_dir_all(tree.join(dir)).expect("a folder");
    }
    let source = scratch.file("k.cu", "extern \"C\" unsigned long cudnnGetVersion();\n__global__ void k(int *p) { *p = 1; }\nunsigned long f(int *p) { k<<<1, 1>>>(p); return cudnnGetVersion(); }\n");
    let object = scratch.join("k.o");
    let compiled = once("the kernels of outside::artifacts", || {
        let call = Call::new(cuda.join("bin/nvcc")).args(["-c", "-Xcompiler", "-fPIC"]);
        let call = call.args([
            "-gencode",
            "arch=compute_80,code=sm_80",
            "-gencode",
            "arch=compute_90,code=[sm_90,compute_90]",
        ]);
        let _ = call.arg(&source).arg("-o").arg(&object).run().success();
        fs::read(&object).expect("an object")
    });
    fs::write(&object, compiled).expect("a directory of this test");
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

fn listed(file: &Path) -> Value {
    let outcome = command::call(["inspect", "--json"]).arg(file).run().success();
    let mut listed = outcome.json();
    for differs in ["file", "kind", "members_in_all"] {
        assert!(listed.as_object_mut().expect("an object").remove(differs).is_some(), "{outcome}");
    }
    listed
}

#[e2e(slow)]
fn artifact_formats_are_read() {
    let (scratch, wheel) = package("artifact-forms");
    let _ = Call::new("python3").args(["-c", PACK, "", "gz", "bz2", "xz"]).dir(scratch.path()).run().success();
    let outcome = command::call(["inspect"]).arg(&wheel).run().success();
    snapshot::check("outside/wheel", &snapshot::paths(&outcome.stdout, &[(scratch.path(), "<scratch>")]));
    let expected = listed(&wheel);
    assert_eq!(expected["members"].as_array().map(Vec::len), Some(4), "{expected}");
    for form in ["tree", "app.tar", "app.tar.gz", "app.tar.bz2", "app.tar.xz"] {
        assert_eq!(listed(&scratch.join(form)), expected, "{form}");
    }
    let script = r#"exec "$0" inspect --json - < app.tar.gz"#;
    let outcome = Call::new("sh").args(["-c", script]).arg(command::path()).dir(scratch.path()).run().success();
    let piped = outcome.json();
    assert_eq!(piped["members"], expected["members"]);
}

/// A wheel contains a libcuda, two cuDNNs and a directory of the build machine, and declares requirements that do not fit.
/// The same wheel is checked with requirements that fit.
#[e2e(slow)]
fn wheel_requirements_are_checked() {
    let (scratch, _) = package("artifact-promises");
    let tree = scratch.join("tree");
    let promise = |version: &str, requires: &[&str]| {
        let requires = requires.iter().fold(String::new(), |lines, one| lines + "Requires-Dist: " + one + "\n");
        let metadata = format!("Metadata-Version: 2.1\nName: app\nVersion: {version}\n{requires}\n");
        scratch::write(&tree.join("app-1.0.dist-info/METADATA"), metadata);
        let _ = Call::new("python3").args(["-c", PACK]).dir(scratch.path()).run().success();
    };
    let found = || {
        let inspected = listed(&scratch.join("app-1.0-py3-none-any.whl"));
        let all = inspected["findings"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one["message"].as_str().expect("words").to_owned()).collect::<Vec<_>>()
    };
    promise("1.0+cu130", &["nvidia-cuda-runtime==13.0.96"]);
    assert_eq!(found(), [] as [&str; 0]);
    // An extension module finds a cuDNN elsewhere, and binds a function that 9.1 does not have.
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
    for listed in [
        "app.libs/libcuda-1a2b3c4d.so.1, which belongs to the driver",
        "the package contains cuDNN more than once: 9.1.0 in app.libs/libcudnn_graph.so.9, 9.15.1 in nvidia/cudnn/lib/",
        "requires nvidia-cudnn-cu12==9.1.0.70, but app/ext.so needs libcudnn",
        "requires nvidia-cuda-runtime-cu12==12.8.90; python_version > \"3\", but app/lib/libapp.so needs libcudart.so.13",
        "the version contains cu128, but app/lib/libapp.so is for CUDA 13.0",
        "a search path for libraries leads out of the package, to /opt/build/lib",
    ] {
        assert!(messages.contains(listed), "{listed} in:\n{messages}");
    }
    // It is reported, but does not refuse.
    let verified =
        command::call(["verify", "--driver", "580.65.06", "--gpu", "A100", "--cudnn", "9.15.1"]).arg(&wheel).run();
    assert!(verified.status() == Some(0) && verified.stderr.contains("warning[CG518]"), "{verified}");
}

/// Packs `tree` as a conda package, and as the only layer of an image with the variables in `env`.
const PACK_OTHERS: &str = "
import io, json, os, tarfile
def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
with tarfile.open('app-1.0-0.tar.bz2', 'w:bz2') as tar:
    add(tar, 'info/index.json', open('index.json', 'rb').read())
    add(tar, 'info/run_exports.json', open('exports.json', 'rb').read())
    for entry in ['app', 'nvidia']:
        tar.add(os.path.join('tree', entry), entry)
layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode='w') as tar:
    tar.add(os.path.join('tree', 'app'), 'opt/app')
config = {'config': {'Env': open('env').read().split(chr(10))}}
with tarfile.open('image.tar', 'w') as tar:
    add(tar, 'config.json', json.dumps(config).encode())
    add(tar, 'one/layer.tar', layer.getvalue())
    add(tar, 'manifest.json', json.dumps([{'Config': 'config.json', 'Layers': ['one/layer.tar']}]).encode())
";

fn messages(file: &Path) -> Vec<String> {
    let listed = listed(file);
    let all = listed["findings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one["message"].as_str().expect("words").to_owned()).collect()
}

#[e2e(slow)]
fn conda_and_image_requirements_are_checked() {
    let (scratch, _) = package("artifact-others");
    let pack = |build: &str, depends: &str, exports: &str, env: &str| {
        scratch.file(
            "index.json",
            format!(r#"{{"name": "app", "version": "1.0", "build": "{build}", "depends": [{depends}]}}"#),
        );
        scratch.file("exports.json", format!(r#"{{"weak": [{exports}]}}"#));
        scratch.file("env", env);
        let _ = Call::new("python3").args(["-c", PACK_OTHERS]).dir(scratch.path()).run().success();
        (messages(&scratch.join("app-1.0-0.tar.bz2")), messages(&scratch.join("image.tar")))
    };
    let (conda, image) = pack(
        "cuda130py312_0",
        r#""python >=3.12", "cuda-version >=13,<14""#,
        r#""cudnn >=9.15,<10.0a0""#,
        "PATH=/bin\nCUDA_VERSION=13.0.1\nNVIDIA_REQUIRE_CUDA=cuda>=13.0 brand=tesla,driver>=535,driver<536",
    );
    assert_eq!((conda, image), (Vec::new(), Vec::new()), "what fits");
    let (conda, image) = pack(
        "cuda128py312_0",
        r#""cuda-version >=12.8,<13""#,
        r#""cudnn >=8.9,<9.0a0""#,
        "CUDA_VERSION=12.8.1\nNVIDIA_REQUIRE_CUDA=cuda>=12.8",
    );
    for (found, listed) in [
        (&conda, "the package requires cuda-version >=12.8,<13, but app/lib/libapp.so needs libcudart.so.13"),
        (&conda, "the build string is cuda128py312_0, but app/lib/libapp.so is for CUDA 13.0"),
        (
            &conda,
            "run_exports of the package require cudnn >=8.9,<9.0a0, but nvidia/cudnn/lib/libcudnn.so.9 is libcudnn.so.9",
        ),
        (&image, "the image sets CUDA_VERSION=12.8.1, but opt/app/lib/libapp.so is for CUDA 13.0"),
        (&image, "CUDA 12.8 (NVIDIA_REQUIRE_CUDA), but opt/app/lib/libapp.so needs a driver that supports CUDA 13.0"),
    ] {
        assert!(found.iter().any(|one| one.contains(listed)), "{listed} in:\n{found:?}");
    }
}

/// A container with only PTX next to containers with machine code: cuBLASLt 12.6 and cuSPARSE 11.7 have these, and run on
/// drivers that cannot compile the PTX. In the user's own program this kernel would be missing.
#[e2e(slow)]
fn stray_container_is_ignored() {
    tools::need("g++");
    let scratch = Scratch::new("stray container");
    let cuda = parts::cuda("13.2");
    for (name, code) in [("usual", "arch=compute_80,code=sm_80"), ("stray", "arch=compute_75,code=compute_75")] {
        scratch.file(
            format!("{name}.cu"),
            format!(
                "__global__ void {name}(int *p) {{ *p = 1; }}\nvoid call_{name}(int *p) {{ {name}<<<1, 1>>>(p); }}\n"
            ),
        );
        let compile =
            ["-c", "-Xcompiler", "-fPIC", "-gencode", code, &format!("{name}.cu"), "-o", &format!("{name}.o")];
        let _ = Call::new(cuda.join("bin/nvcc")).args(compile).dir(scratch.path()).run().success();
    }
    let link = |name: &str, objects: &[&str]| {
        let soname = format!("-Wl,-soname,{name}");
        let link = ["-shared", &soname, "-o", &format!("tree/lib/{name}")];
        let _ = Call::new("g++")
            .args(link)
            .args(objects)
            .arg(cuda.join("lib/libcudart_static.a"))
            .dir(scratch.path())
            .run()
            .success();
        scratch.join("tree/lib").join(name)
    };
    let both = &["usual.o", "stray.o"];
    fs::create_dir_all(scratch.join("tree/lib")).expect("a folder");
    let (mine, theirs) = (link("libmine.so.12", both), link("libcublasLt.so.12", both));
    // A driver for 13.0 runs the machine code of 13.2, but does not compile its PTX. For H100 the file has only PTX.
    for (file, gpu, status) in
        [(&mine, "A100", 1), (&theirs, "A100", 0), (&theirs, "A10", 0), (&mine, "H100", 1), (&theirs, "H100", 1)]
    {
        let outcome = command::call(["verify", "--driver", "580.65.06", "--gpu", gpu]).arg(file).run();
        assert_eq!(outcome.status(), Some(status), "{gpu}: {outcome}");
        assert_eq!(outcome.stderr.contains("CG302"), status == 1, "{gpu}: {outcome}");
        let _ = command::call(["verify", "--driver", "595.45.04", "--gpu", gpu]).arg(file).run().success();
    }
    fs::remove_file(mine).expect("it was there");
    let whole = scratch.join("tree");
    let on = |gpu: &str, file: &Path| command::call(["verify", "--driver", "580.65.06", "--gpu", gpu]).arg(file).run();
    let _ = on("A100", &whole).success();
    // An NVIDIA library with only PTX is optional if other libraries have machine code. A library of others is not.
    let engine = link("libcusparse.so.12", &["stray.o"]);
    assert!(on("A100", &engine).status() == Some(1) && on("H100", &whole).status() == Some(1));
    let outcome = on("A100", &whole).success();
    assert!(outcome.stdout.contains("A100 (8.0): partial, sm_80; the driver must support CUDA 13.0"), "{outcome}");
    let anybodys = link("libengine.so", &["stray.o"]);
    assert_eq!(on("A100", &whole).status(), Some(1));
    fs::remove_file(anybodys).expect("it was there");
    let listed = command::call(["inspect"]).arg(&theirs).run().success().stdout;
    assert!(listed.contains("8.0 to 8.6: partial (sm_80); 1 of 2 containers has no code for it: stray.cu"), "{listed}");
}

/// An environment contains the cudart of a newer CUDA major, which no member loads.
#[e2e]
fn idle_library_is_no_requirement() {
    tools::need("gcc");
    let scratch = Scratch::without_blanks("artifact-idle");
    scratch.file("a.c", "int a;\n");
    let link = |to: &str, cudart: &Path| {
        let call = Call::new("gcc").args(["-shared", "-fPIC", "-Wl,--no-as-needed", "a.c", "-o", to]);
        let _ = call.arg(cudart).dir(scratch.path()).run().success();
    };
    for dir in ["env/app", "env/nvidia/cu13/lib"] {
        fs::create_dir_all(scratch.join(dir)).expect("a folder");
    }
    let new = scratch.join("env/nvidia/cu13/lib/libcudart.so.13");
    fs::copy(parts::cudart("13.0"), &new).expect("a copy");
    let verify = |driver: &str| {
        let env = scratch.join("env");
        command::call(["verify", "--driver", driver, "--gpu", "A100"]).arg(env).run()
    };
    // Something outside of the directory loads it.
    let _ = verify("470.57.02").expect(1);
    link("env/app/libapp.so", &parts::cudart("11.8"));
    let outcome = verify("470.57.02").expect(0);
    assert!(outcome.stderr.contains("warning[CG301]"), "{outcome}");
    assert!(outcome.stderr.contains("loaded by:  none of the examined files"), "{outcome}");
    let _ = verify("440.33.01").expect(1);
    // Libraries that no member loads do not refuse either if they do not fit each other.
    let compile = |source: &str, to: &str, arguments: &[&str]| {
        scratch.file("b.c", source);
        let call =
            Call::new("gcc").args(["-w", "b.c", "-o", to, "-Wl,-rpath,$ORIGIN,-rpath,$ORIGIN/../nvidia/cu13/lib"]);
        let _ = call.args(arguments).dir(scratch.path()).run().success();
    };
    let (linker, sparse) = ("env/nvidia/cu13/lib/libnvJitLink.so.12", "env/nvidia/cu13/lib/libcusparse.so.12");
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libnvJitLink.so.12"];
    compile("int __nvJitLinkComplete_12_4(void) { return 0; }\n", linker, &shared);
    compile(
        "int __nvJitLinkComplete_12_4(void); int c(void) { return __nvJitLinkComplete_12_4(); }\n",
        sparse,
        &["-shared", "-fPIC", "-Wl,-soname,libcusparse.so.12", linker],
    );
    compile("int __nvJitLinkComplete_12_1(void) { return 0; }\n", linker, &shared);
    let outcome = verify("470.57.02").expect(0);
    assert!(outcome.stderr.contains("warning[CG214]"), "{outcome}");
    let open = "#include <dlfcn.h>\nint main(void) { return !dlopen(\"libcusparse.so.12\", RTLD_NOW); }\n";
    compile(open, "env/app/program", &["-ldl"]);
    let outcome = verify("470.57.02").expect(1);
    assert!(outcome.stderr.contains("error[CG214]"), "{outcome}");
    fs::remove_file(scratch.join("env/app/program")).expect("it was compiled");
    link("env/app/libother.so", &new);
    let outcome = verify("470.57.02").expect(1);
    assert!(outcome.stderr.contains("error[CG301]"), "{outcome}");
}

#[e2e(slow)]
fn sarif_output_is_valid() {
    let (scratch, _) = package("artifact-sarif");
    let call = |words: &[&str]| {
        let script = r#"exec "$0" "$@""#;
        Call::new("sh").args(["-c", script]).arg(command::path()).args(words).dir(scratch.path()).run()
    };
    let wheel = "app-1.0-py3-none-any.whl";
    let outcome =
        call(&["verify", wheel, "tree", "--driver", "535.261.03", "--gpu", "A100", "--format", "sarif"]).expect(1);
    let listed = outcome.json();
    let results = listed["runs"][0]["results"].as_array().expect("results");
    let of = |uri: &str| {
        let place = |one: &&Value| one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri;
        results.iter().filter(place).map(|one| one["ruleId"].as_str().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert!(of(wheel).contains(&"CG301") && of("tree").contains(&"CG301"), "{outcome}");
    assert!(outcome.stderr.is_empty(), "one form is enough: {outcome}");
    let outcome = call(&["inspect", wheel, "--format", "sarif"]).success();
    let listed = outcome.json();
    assert_eq!(listed["runs"][0]["results"].as_array().map(Vec::len), Some(0), "{outcome}");
    let wrong = call(&["verify", wheel, "--fleet", "-", "--format", "sarif"]).expect(2);
    assert!(wrong.stderr.contains("--format"), "{wrong}");
}

#[e2e]
fn non_archive_is_reported() {
    tools::need("python3");
    let scratch = Scratch::new("artifact-hostile");
    // Incompressible bytes.
    let noise = (0..0x1_0000_u32).map(|at| at.wrapping_mul(0x9e37_79b9).to_be_bytes()[0]);
    scratch.file("tree/noise", noise.collect::<Vec<u8>>());
    let _ = Call::new("python3").args(["-c", PACK, "xz"]).dir(scratch.path()).run().success();
    let bytes = fs::read(scratch.join("app-1.0-py3-none-any.whl")).expect("the wheel");
    let cut = scratch.file("cut.whl", &bytes[..bytes.len() / 2]);
    fs::create_dir(scratch.join("empty")).expect("a folder");
    let packed = fs::read(scratch.join("app.tar.xz")).expect("the tar");
    let short = scratch.file("short.tar.xz", &packed[..packed.len() / 2]);
    for (file, says) in [
        (cut, "cut.whl: is cut off or damaged"),
        (short, "is cut off"),
        (scratch.join("empty"), "is an empty directory"),
        (scratch.file("a.zip", b"PK\x03\x04 and no more"), "a.zip: is cut off or damaged"),
    ] {
        for verb in ["inspect", "verify"] {
            let outcome = command::call([verb]).arg(&file).run().expect(2);
            assert!(outcome.stderr.contains("error: ") && outcome.stderr.contains(says), "{says}: {outcome}");
        }
    }
}

/// A damaged library for Windows, code for AMD, what follows an ELF image, and links: counted, named, and no ground for "runs".
#[e2e(slow)]
fn foreign_members_are_not_examined() {
    tools::need("objcopy");
    let (scratch, _) = package("artifact-foreign");
    let tree = scratch.join("tree");
    let flags = ["--driver", "580.65.06", "--gpu", "A100", "--cudnn", "9.15.1"];
    let verify = || command::call(["verify", "--json"]).arg(&tree).args(flags).run();
    let parts = |outcome: &cudaguard_tests::run::Outcome| -> Vec<String> {
        let listed = outcome.json();
        let all = listed["not_judged"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one.as_str().expect("a text").to_owned()).collect()
    };
    let outcome = verify().expect(0);
    assert_eq!(parts(&outcome), [] as [&str; 0]);
    // Code for AMD does not contradict an answer about NVIDIA's GPUs, unless there is no other code.
    let bundle = tree.join("app/k.co");
    fs::write(&bundle, b"__CLANG_OFFLOAD_BUNDLE__").expect("a file");
    let outcome = verify().expect(0);
    assert_eq!(parts(&outcome), ["app/k.co: GPU code for AMD"], "{outcome}");
    let only = scratch.join("only");
    fs::create_dir(&only).expect("a folder");
    fs::copy(&bundle, only.join("k.co")).expect("a copy");
    let outcome = command::call(["verify", "--json"]).arg(&only).args(flags).run().expect(2);
    assert_eq!(parts(&outcome), ["k.co: GPU code for AMD, and none for NVIDIA"], "{outcome}");
    let mut dll = vec![0; 512];
    dll[..2].copy_from_slice(b"MZ");
    dll[60] = 128;
    dll[128..132].copy_from_slice(b"PE\0\0");
    fs::write(tree.join("app/k.pyd"), &dll).expect("a file");
    let mut packed = fs::read("/bin/true").expect("a program");
    packed.extend_from_slice(b"hsqs and more");
    fs::write(tree.join("app/packed"), &packed).expect("a file");
    // PyInstaller adds its archive as a section.
    let (plain, archive) = (scratch.file("plain", ""), scratch.file("archive", "hsqs and more"));
    fs::copy("/bin/true", &plain).expect("a program");
    let section = format!("pydata={}", archive.display());
    let _ = Call::new("objcopy")
        .args(["--add-section", &section])
        .args([&plain, &tree.join("app/section")])
        .run()
        .success();
    fs::write(tree.join("app/disk.ISO"), [0; 16]).expect("a file");
    fs::write(tree.join("app/start.sh"), "#!/bin/sh\nexec app/k\n").expect("a file");
    fs::write(tree.join("app/install.run"), b"#!/bin/sh\ntail -n +4 $0 | tar xz\nexit\n\x1f\x8b\x08\0")
        .expect("a file");
    std::os::unix::fs::symlink("/usr", tree.join("app/usr")).expect("a link");
    let outcome = verify().expect(2);
    let expected = [
        "app/packed: 13 bytes after the end of the ELF image (a squashfs file system, as in an AppImage)",
        "app/section: 13 bytes in section pydata, which is not loaded (a squashfs file system, as in an AppImage)",
        "app/k.co: GPU code for AMD",
        "app/disk.ISO: a disk image",
        "app/usr: a link to the directory /usr",
        "app/install.run: a script with packed data after its text",
        "app/k.pyd: is a PE file with the unknown optional header 0x0",
    ];
    assert_eq!(parts(&outcome), expected, "{outcome}");
    assert_eq!(outcome.json()["verdict"], "unknown", "{outcome}");
    let inspected = command::call(["inspect"]).arg(&tree).run().success();
    assert!(inspected.stdout.contains("not examined: 7 parts"), "{inspected}");
    for verb in ["map", "requirements"] {
        let outcome = command::call([verb]).arg(&tree).run().success();
        assert!(
            outcome
                .stderr
                .contains("1 part not examined: is a PE file with the unknown optional header 0x0: app/k.pyd"),
            "{outcome}"
        );
    }
    // A name that looks like a command of a workflow begins no line.
    let odd = tree.join("::stop-commands::x");
    fs::copy(tree.join("app/packed"), &odd).expect("a copy");
    let outcome = command::call(["inspect", "::stop-commands::x"]).dir(&tree).run().success();
    for line in outcome.stdout.lines().chain(outcome.stderr.lines()) {
        assert!(!line.trim_start().starts_with("::"), "{outcome}");
    }
}

/// Members whose names promise code that is not there, in each format: they are named next to a library that runs. Ordinary data
/// is not.
#[e2e(slow)]
fn members_without_their_code_are_named() {
    tools::need("python3");
    let scratch = Scratch::without_blanks("artifact-absent");
    let tree = scratch.join("tree");
    let cudart = parts::cudart("13.0");
    let pack = |build: &str| {
        let _ = fs::remove_dir_all(&tree);
        fs::create_dir(&tree).expect("a folder");
        fs::copy(&cudart, tree.join("libcudart.so.13")).expect("a copy");
        let script = format!("{BUILDERS}{build}\n");
        let _ = Call::new("python3").args(["-c", &script]).dir(&tree).run().success();
    };
    for (build, expected) in [
        ("put('README', b'')", None),
        ("put('libx.so', b'INPUT(libx.so.1)')\nos.symlink('libx.so', 'liby.so')", None),
        ("os.symlink('usr/share/doc', 'doc')\nos.symlink('libc.so.6', 'libm.so')", None),
        (
            "os.mkdir('usr')\nput('usr/libx.so', b'INPUT(a)')\nos.symlink('usr', 'lib')\nos.symlink('lib/libx.so', 'a.so')",
            None,
        ),
        ("wheel({'m/k.so': b'INPUT(a)'}, 'm/k.so,,')", None),
        ("put('a.sh.gz', gzip.compress(b'#!/bin/sh\\n'))", None),
        ("put('model.bin', POINTER)", None),
        ("put('a.h', b'/*' + b'c' * 9000 + b'*/')", None),
        ("os.symlink('libx.so.1', 'libx.so')", Some("libx.so: a link to libx.so.1, which does not exist")),
        ("os.symlink('libx.so', 'libx.so')", Some("libx.so: a link to libx.so, which does not exist")),
        ("tar(tarfile.SYMTYPE)", Some("a.tar!libx.so: a link to libx.so.1, which does not exist")),
        ("tar(tarfile.LNKTYPE)", Some("a.tar!libx.so: a link to libx.so.1, which does not exist")),
        (
            "wheel({'m/k.so': POINTER}, 'm/k.so,,')",
            Some("a.whl!m/k.so: a pointer of Git LFS: the file itself is not here"),
        ),
        ("wheel({'m/a.py': b''}, 'm/k.so,,')", Some("a.whl!m/k.so: is absent, although the RECORD of m 1.0 lists it")),
        // The files that need it show whether it matters.
        ("wheel({'m/a.py': b''}, 'm/libnvrtc-builtins.so.12.6,,')", None),
        ("put('k.pyd', b'')", Some("k.pyd: is empty")),
        ("put('a.cpio.gz', gzip.compress(b'0'))", Some("a.cpio.gz: a cpio archive")),
        ("put('a', bytes(1024) + b'\\xe2\\xe1\\xf5\\xe0')", Some("a: an EROFS image")),
        ("put('k.ptx', b'\\xef\\xbb\\xbf.version 8.0')", Some("k.ptx: PTX in another encoding than ASCII")),
        ("put('k', b'\\x7fTileIR\\0\\x0d')", Some("k: GPU code as Tile IR")),
    ] {
        pack(build);
        let verify = command::call(["verify", "--driver", "580.65.06", "--gpu", "A100", "--json"]);
        let outcome = verify.arg(&tree).run().expect(if expected.is_some() { 2 } else { 0 });
        let listed = outcome.json();
        assert_eq!(listed["not_judged"][0].as_str(), expected, "{build}: {outcome}");
        let inspected = command::call(["inspect"]).arg(&tree).run().success();
        assert_eq!(inspected.stdout.contains("as far as examined"), expected.is_some(), "{build}: {inspected}");
    }
    // The comments before the first directive are longer than what selects the format.
    pack(
        "put('k.ptx', b'// c\\n' * 2000 + b'.version 8.0\\n.target sm_90\\n.address_size 64\\n.visible .entry k() { ret; }\\n')",
    );
    let outcome = command::call(["inspect"]).arg(&tree).run().success();
    assert!(outcome.stdout.contains("compute_90"), "{outcome}");
}

/// Functions of Python that write members.
const BUILDERS: &str = "
import gzip, os, tarfile, zipfile
POINTER = b'version https://git-lfs.github.com/spec/v1'
def put(name, data):
    open(name, 'wb').write(data)
def tar(kind):
    with tarfile.open('a.tar', 'w') as out:
        entry = tarfile.TarInfo('libx.so')
        entry.type, entry.linkname = kind, 'libx.so.1'
        out.addfile(entry)
def wheel(members, record):
    with zipfile.ZipFile('a.whl', 'w') as out:
        for name, data in members.items():
            out.writestr(name, data)
        out.writestr('m-1.0.dist-info/METADATA', 'Name: m\\nVersion: 1.0\\n')
        out.writestr('m-1.0.dist-info/RECORD', record)
";

/// The kernels of libcuda run on the driver itself, so a package that contains nothing else has no program.
#[e2e]
fn package_of_a_driver_is_named() {
    let scratch = Scratch::new("driver-package");
    let driver = parts::driver("535").join("libcuda.so.1");
    let _ = Call::new("tar")
        .arg("-chf")
        .arg(scratch.join("driver.tar"))
        .arg("-C")
        .arg(driver.parent().expect("a folder"))
        .arg("libcuda.so.1")
        .run()
        .success();
    for (verb, flags) in [("verify", &["--driver", "535", "--gpu", "A100"][..]), ("verify", &["--gpu", "8.6"])] {
        let outcome = command::call([verb]).arg(scratch.join("driver.tar")).args(flags).run().expect(2);
        assert!(outcome.stderr.contains("it contains a driver (libcuda.so.1) and no program"), "{outcome}");
    }
}

/// No subcommand opens the examined file or its libraries twice, executes something or uses a network.
#[e2e(slow)]
fn files_are_opened_once() {
    tools::need("strace");
    let (scratch, wheel) = package("artifact-opens");
    let library = scratch.join("tree/app/lib/libapp.so");
    let flags = ["--driver", "580.65.06", "--gpu", "A100"];
    let calls: [(&str, &Path, &[&str]); 8] = [
        ("inspect", &library, &[]),
        ("verify", &library, &[]),
        ("verify", &library, &flags),
        ("map", &library, &[]),
        ("requirements", &library, &[]),
        ("doctor", &library, &[]),
        ("inspect", &wheel, &[]),
        ("verify", &wheel, &flags),
    ];
    let trace = scratch.join("trace");
    for (verb, file, flags) in calls {
        let call = Call::new("strace").args(["-f", "-e", "trace=openat,open,execve,connect", "-o"]).arg(&trace);
        let outcome = call.arg(command::path()).arg(verb).arg(file).args(flags).run();
        let text = fs::read_to_string(&trace).expect("a trace");
        assert_eq!(text.matches("execve(").count(), 1, "{verb}: {outcome}\n{text}");
        assert!(!text.contains("connect("), "{verb}: {outcome}\n{text}");
        let lines = text.lines().filter(|line| !line.contains("ENOENT") && !line.contains("execve("));
        let paths: Vec<&str> = lines.filter_map(|line| line.split('"').nth(1)).collect();
        let times = |path: &str| paths.iter().filter(|other| **other == path).count();
        // strace escapes what is not ASCII, as a directory may be.
        let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let of_file = paths.iter().filter(|path| path.rsplit('/').next() == Some(name));
        assert_eq!(of_file.count(), 1, "{verb}: {outcome}\n{text}");
        // The command itself loads system libraries.
        let ours = paths.iter().filter(|path| path.contains("libcudnn") || path.contains("libcudart"));
        for path in ours {
            assert_eq!(times(path), 1, "{verb}: {path}\n{text}");
        }
    }
}
