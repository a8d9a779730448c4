//! Files of an installed Python environment: alone, they have the same answer as the environment.

use std::fs;
use std::path::Path;

use cudaguard_tests::{Call, Scratch, command, e2e, parts, scratch, tools};

/// Links a library and creates its directory.
fn link(source: &str, to: &Path, arguments: &[&str]) {
    tools::need("cc");
    let text = to.with_extension("c");
    scratch::write(&text, source);
    let _ =
        Call::new("cc").args(["-w", "-shared", "-fPIC"]).arg(&text).arg("-o").arg(to).args(arguments).run().success();
    fs::remove_file(text).expect("it was just written");
}

/// Installs a package that contains this file.
fn install(site: &Path, name: &str, version: &str, requires: &str, file: &str) {
    let info = site.join(format!("{name}-{version}.dist-info"));
    let requires = if requires.is_empty() { String::new() } else { format!("Requires-Dist: {requires}\n") };
    scratch::write(
        &info.join("METADATA"),
        format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"),
    );
    scratch::write(&info.join("RECORD"), format!("{file},,\n"));
}

fn verify(file: &Path, machine: &[&str]) -> (i32, String) {
    let outcome = command::call(["verify"]).args(machine).arg(file).run();
    (outcome.status().expect("a status"), outcome.to_string())
}

const H100: [&str; 4] = ["--gpu", "9.0", "--driver", "550.90.07"];
const NEWEST_DRIVER: [&str; 4] = ["--gpu", "9.0", "--driver", "580.95.05"];
const MODULE: &str = "app/module.so";

/// cupy has modules without a search path: Python loads NVIDIA's libraries from their packages before.
#[e2e]
fn module_has_the_answer_of_its_environment() {
    for (release, status) in [("12_4", 0), ("12_1", 1)] {
        let scratch = Scratch::new("environment of a module");
        let site = scratch.join("site-packages");
        let (linker, sparse) =
            (site.join("nvidia/nvjitlink/lib/libnvJitLink.so.12"), site.join("nvidia/cusparse/lib/libcusparse.so.12"));
        let complete = |release: &str| format!("int __nvJitLinkComplete_{release}(void) {{ return 0; }}\n");
        link(&complete("12_4"), &linker, &["-Wl,-soname,libnvJitLink.so.12"]);
        link(
            "int __nvJitLinkComplete_12_4(void);\nint cusparseCreate(void) { return __nvJitLinkComplete_12_4(); }\n",
            &sparse,
            &["-Wl,-soname,libcusparse.so.12,-rpath,$ORIGIN/../../nvjitlink/lib", &linker.to_string_lossy()],
        );
        link(
            "int cusparseCreate(void);\nint use(void) { return cusparseCreate(); }\n",
            &site.join(MODULE),
            &[&sparse.to_string_lossy()],
        );
        link(&complete(release), &linker, &["-Wl,-soname,libnvJitLink.so.12"]);
        install(&site, "app", "1.0", "nvidia-cusparse-cu12", MODULE);
        install(&site, "nvidia_cusparse_cu12", "12.5.4", "", "nvidia/cusparse/lib/libcusparse.so.12");
        let bare = scratch.file(
            "bare.json",
            r#"{"driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"cc": "9.0"}], "cudart": [], "libraries": []}"#,
        );
        for machine in [&H100[..], &["--host", &bare.to_string_lossy()]] {
            for file in [&site, &site.join(MODULE)] {
                let (found, text) = verify(file, machine);
                assert_eq!(found, status, "{release} {machine:?}: {text}");
                assert_eq!(text.contains("CG214"), status == 1, "{release} {machine:?}: {text}");
            }
        }
        // Without the metadata, it is a library as any other.
        fs::remove_dir_all(site.join("app-1.0.dist-info")).expect("it exists");
        fs::remove_dir_all(site.join("nvidia_cusparse_cu12-12.5.4.dist-info")).expect("it exists");
        let (found, text) = verify(&site.join(MODULE), &["--host", &bare.to_string_lossy()]);
        assert!(found == 1 && text.contains("CG210"), "{text}");
    }
}

/// Frameworks stop at their first use of a cuDNN with an older minor than that of their build.
#[e2e]
fn package_of_a_file_counts() {
    for (installed, status) in [("9.1.0.70", 0), ("9.0.0.312", 2)] {
        let scratch = Scratch::new("package of a file");
        let site = scratch.join("site-packages");
        link("int cudaMalloc(void);\n", &site.join("libcudart.so.12"), &["-Wl,-soname,libcudart.so.12"]);
        let library = site.join("libcudart.so.12").display().to_string();
        link("int use(void) { return 0; }\n", &site.join(MODULE), &["-Wl,--no-as-needed,-rpath,$ORIGIN/..", &library]);
        install(&site, "app", "1.0", "nvidia-cudnn-cu12==9.1.0.70", MODULE);
        install(&site, "nvidia_cudnn_cu12", installed, "", "nvidia/cudnn/lib/libcudnn.so.9");
        let (source, program) = (scratch.file("main.c", "int main(void) { return 0; }\n"), scratch.join("program"));
        let link = Call::new("cc").arg("-o").args([&program, &source]).arg("-Wl,--no-as-needed").arg(site.join(MODULE));
        let _ = link.arg(format!("-Wl,-rpath,{}", site.join("app").display())).run().success();
        for file in [&site, &site.join(MODULE), &program] {
            let (found, text) = verify(file, &H100);
            assert_eq!(found, status, "{installed}: {text}");
            assert_eq!(text.contains("an older cuDNN"), status == 2, "{installed}: {text}");
        }
        for file in [&site.join(MODULE), &program] {
            let text = command::call(["doctor"]).arg(file).run().to_string();
            assert_eq!(text.contains("an older cuDNN"), status == 2, "{installed}: {text}");
        }
    }
}

/// A file can be replaced without its metadata.
#[e2e]
fn replaced_cudnn_is_read_from_its_file() {
    for (found, status) in [("9.15.1", 0), ("9.1.0", 2)] {
        let scratch = Scratch::new("replaced cudnn");
        let site = scratch.join("site-packages");
        let cudnn = site.join("nvidia/cudnn/lib/libcudnn.so.9");
        fs::create_dir_all(cudnn.parent().expect("a directory")).expect("it can be created");
        // Its first file does not contain the release.
        let part = "libcudnn_graph.so.9";
        for name in ["libcudnn.so.9", part] {
            fs::copy(parts::cudnn(found).join("lib").join(name), cudnn.with_file_name(name)).expect("a library");
        }
        let arguments = ["-Wl,--no-as-needed,-rpath,$ORIGIN/../nvidia/cudnn/lib", &cudnn.to_string_lossy()];
        link("int use(void) { return 0; }\n", &site.join(MODULE), &arguments);
        install(&site, "app", "1.0", "nvidia-cudnn-cu12==9.15.1.9", MODULE);
        let record = format!("nvidia/cudnn/lib/libcudnn.so.9,,\nnvidia/cudnn/lib/{part}");
        install(&site, "nvidia_cudnn_cu12", "9.15.1.9", "", &record);
        for file in [&site, &site.join(MODULE)] {
            let (code, text) = verify(file, &NEWEST_DRIVER);
            assert_eq!(code, status, "{found}: {text}");
            assert_eq!(text.contains("an older cuDNN (nvidia_cudnn_cu12 9.1.0)"), status == 2, "{found}: {text}");
        }
    }
}

/// The dynamic linker finds a file by its name, and then misses the versions of its symbols.
#[e2e]
fn cudart_of_another_major_is_refused() {
    for (release, status) in [("11.8", 0), ("13.0", 1)] {
        let scratch = Scratch::new("cudart of another major");
        let site = scratch.join("site-packages");
        let cudart = site.join("nvidia/cuda_runtime/lib/libcudart.so.11.0");
        fs::create_dir_all(cudart.parent().expect("a directory")).expect("it can be created");
        fs::copy(parts::cudart("11.8"), &cudart).expect("a library");
        let source = "int cudaDeviceReset(void);\nint use(void) { return cudaDeviceReset(); }\n";
        let searches = "-Wl,-rpath,$ORIGIN/../nvidia/cuda_runtime/lib";
        // Python loads it for the other module.
        let other = "app/other.so";
        link(source, &site.join(MODULE), &[searches, &cudart.to_string_lossy()]);
        link(source, &site.join(other), &[&cudart.to_string_lossy()]);
        fs::copy(parts::cudart(release), &cudart).expect("a library");
        install(&site, "app", "1.0", "nvidia-cuda-runtime-cu11", MODULE);
        for file in [&site, &site.join(MODULE), &site.join(other)] {
            let (code, text) = verify(file, &NEWEST_DRIVER);
            assert_eq!(code, status, "{release}: {text}");
            assert_eq!(text.contains("cudaDeviceReset"), status == 1, "{release}: {text}");
        }
    }
}

/// A search path below the environment contains what the environment contains.
#[e2e]
fn absent_library_is_reported() {
    let scratch = Scratch::new("absent library");
    let site = scratch.join("site-packages");
    let sparse = scratch.join("libcusparse.so.12");
    link("int cusparseCreate(void) { return 0; }\n", &sparse, &["-Wl,-soname,libcusparse.so.12"]);
    let host = r#"{"driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"cc": "9.0"}], "cudart": [], "libraries": []}"#;
    let bare = scratch.file("bare.json", host);
    for (path, status, code) in [("$ORIGIN/../nvidia/cusparse/lib", 1, "CG210"), ("$ORIGIN/../../lib", 2, "CG519")] {
        let arguments = [&*format!("-Wl,-rpath,{path}"), &*sparse.to_string_lossy()];
        link("int cusparseCreate(void);\nint use(void) { return cusparseCreate(); }\n", &site.join(MODULE), &arguments);
        install(&site, "app", "1.0", "", MODULE);
        for file in [&site, &site.join(MODULE)] {
            let (found, text) = verify(file, &["--host", &bare.to_string_lossy()]);
            assert!(found == status && text.contains(code), "{path}: {text}");
        }
    }
}

/// A package may open a library of a package that it requires. The environment shows that this one is not installed, and the
/// machine may have another one.
#[e2e]
fn required_package_that_is_not_installed_is_unknown() {
    let scratch = Scratch::new("required package");
    let site = scratch.join("site-packages");
    let cudart = site.join("nvidia/cuda_runtime/lib/libcudart.so.12");
    link("int cudaMalloc(void) { return 0; }\n", &cudart, &["-Wl,-soname,libcudart.so.12"]);
    link(
        "int cudaMalloc(void);\nvoid *dlopen(const char *, int);\nvoid *use(void) { return cudaMalloc() ? 0 : dlopen(\"libcublas.so.12\", 2); }\n",
        &site.join(MODULE),
        &["-Wl,-rpath,$ORIGIN/../nvidia/cuda_runtime/lib", &cudart.to_string_lossy(), "-ldl"],
    );
    let host = r#"{"driver": {"user": "580.95.05", "kernel": "580.95.05"}, "gpus": [{"cc": "9.0"}], "cudart": [], "libraries": []}"#;
    let bare = scratch.file("bare.json", host);
    for requires in ["", "nvidia-cublas-cu12"] {
        install(&site, "app", "1.0", requires, MODULE);
        for file in [&site, &site.join(MODULE)] {
            let (found, text) = verify(file, &["--host", &bare.to_string_lossy()]);
            assert!(found == 2 && text.contains("libcublas.so.12"), "{requires}: {text}");
        }
    }
}

/// JAX opens cudart by its name. A copy can give this name to the library of another CUDA major.
#[e2e]
fn opened_library_of_another_major_is_unknown() {
    for (release, status) in [("11.8", 0), ("13.0", 2)] {
        let scratch = Scratch::new("opened under another name");
        let site = scratch.join("site-packages");
        let cudart = site.join("nvidia/cuda_runtime/lib/libcudart.so.11.0");
        fs::create_dir_all(cudart.parent().expect("a directory")).expect("it can be created");
        fs::copy(parts::cudart(release), &cudart).expect("a library");
        let container = "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.quad 0x00100001ba55ed50, 0\\n.text\");\n";
        link(
            &format!("{container}int use(void) {{ return 0; }}\n"),
            &site.join(MODULE),
            &["-Wl,-rpath,$ORIGIN/../nvidia/cuda_runtime/lib"],
        );
        install(&site, "app", "1.0", "", MODULE);
        for file in [&site, &site.join(MODULE)] {
            let (code, text) = verify(file, &NEWEST_DRIVER);
            let is_reported = text.contains("is loaded as libcudart.so.11.0, but is libcudart.so.13");
            assert!(code == status && is_reported == (status == 2), "{release}: {text}");
        }
    }
}

/// JAX opens cuSPARSE by its name, as its search path shows, and the machine may have the nvJitLink that it needs.
#[e2e]
fn opened_library_may_need_the_machine() {
    let scratch = Scratch::new("opened in an environment");
    let site = scratch.join("site-packages");
    let (linker, sparse) = (scratch.join("libnvJitLink.so.12"), site.join("nvidia/cusparse/lib/libcusparse.so.12"));
    link("int nvJitLinkVersion(void) { return 0; }\n", &linker, &["-Wl,-soname,libnvJitLink.so.12"]);
    link(
        "const char *const name = \"cuda\";\nint nvJitLinkVersion(void);\nint cusparseCreate(void) { return nvJitLinkVersion(); }\n",
        &sparse,
        &["-Wl,-soname,libcusparse.so.12", &linker.to_string_lossy()],
    );
    let container = "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.quad 0x00100001ba55ed50, 0\\n.text\");\n";
    link(
        &format!("{container}int use(void) {{ return 0; }}\n"),
        &site.join(MODULE),
        &["-Wl,-rpath,$ORIGIN/../nvidia/cusparse/lib"],
    );
    install(&site, "app", "1.0", "", MODULE);
    for file in [&site, &site.join(MODULE)] {
        let (code, text) = verify(file, &NEWEST_DRIVER);
        assert!(
            code == 0 && text.contains("not checked: it is unknown whether the machine has libnvJitLink.so.12"),
            "{text}"
        );
    }
}

/// Packs a directory as the only layer of an image with these variables.
const PACK_IMAGE: &str = "
import io, json, sys, tarfile
def put(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode='w') as tar:
    tar.add(sys.argv[1], '.')
with tarfile.open(sys.argv[2], 'w') as tar:
    put(tar, 'manifest.json', json.dumps([{'Config': 'config.json', 'Layers': ['one/layer.tar']}]).encode())
    put(tar, 'config.json', json.dumps({'config': {'Env': sys.argv[3:]}}).encode())
    put(tar, 'one/layer.tar', layer.getvalue())
";

/// `LD_LIBRARY_PATH` comes before `DT_RUNPATH` and after `DT_RPATH`.
#[e2e]
fn variable_of_an_image_is_a_search_path() {
    for (variable, tags, status) in [
        ("A=", "--enable-new-dtags", 0),
        ("LD_LIBRARY_PATH=/nowhere:/opt/old", "--enable-new-dtags", 1),
        ("LD_LIBRARY_PATH=/opt/old", "--disable-new-dtags", 0),
    ] {
        let scratch = Scratch::new("variable of an image");
        let root = scratch.join("root");
        let [new, old] = ["opt/app", "opt/old"].map(|dir| root.join(dir).join("libnvJitLink.so.12"));
        for (file, release) in [(&new, "12_4"), (&old, "12_1")] {
            let source = format!("int __nvJitLinkComplete_{release}(void) {{ return 0; }}\n");
            link(&source, file, &["-Wl,-soname,libnvJitLink.so.12"]);
        }
        link(
            "int __nvJitLinkComplete_12_4(void);\nint cusparseCreate(void) { return __nvJitLinkComplete_12_4(); }\n",
            &root.join("opt/app/libcusparse.so.12"),
            &["-Wl,-soname,libcusparse.so.12,-rpath,$ORIGIN", &format!("-Wl,{tags}"), &new.to_string_lossy()],
        );
        let image = scratch.join("image.tar");
        let pack = Call::new("python3").args(["-c", PACK_IMAGE]).args([&root, &image]).arg(variable);
        let _ = pack.run().success();
        let (found, text) = verify(&image, &NEWEST_DRIVER);
        assert_eq!((found, text.contains("CG214")), (status, status == 1), "{variable} {tags}: {text}");
        assert_eq!(text.contains("LD_LIBRARY_PATH of the image"), status == 1, "{variable} {tags}: {text}");
    }
}

/// A root, its tar and an image of it have one answer about a program whose library is found, is elsewhere or is absent.
#[e2e]
fn root_and_image_have_one_answer() {
    for (library, status) in [("usr/lib/libmine.so.1", 0), ("opt/lib/libmine.so.1", 2), ("", 1)] {
        let scratch = Scratch::new("root and image");
        let (root, mine, driver) = (scratch.join("root"), scratch.join("libmine.so"), scratch.join("libcuda.so"));
        link("int mine(void) { return 0; }\n", &mine, &["-Wl,-soname,libmine.so.1"]);
        link("int cuInit(unsigned flags) { return 0; }\n", &driver, &["-Wl,-soname,libcuda.so.1"]);
        scratch.file("app.c", "int mine(void), cuInit(unsigned);\nint main(void) { return mine() + cuInit(0); }\n");
        scratch::write(&root.join("etc/ld.so.conf"), "/usr/lib\n");
        let build = Call::new("cc").dir(&root).args(["-o", "app", "../app.c", "../libmine.so", "../libcuda.so"]);
        let _ = build.run().success();
        if !library.is_empty() {
            scratch::write(&root.join(library), fs::read(&mine).expect("a library"));
        }
        let [tar, image] = ["root.tar", "image.tar"].map(|name| scratch.join(name));
        let _ = Call::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").run().success();
        let _ = Call::new("python3").args(["-c", PACK_IMAGE]).args([&root, &image]).run().success();
        for form in [root, tar, image] {
            let (found, text) = verify(&form, &NEWEST_DRIVER);
            assert_eq!(found, status, "{} {library}: {text}", form.display());
        }
    }
}

/// Each package has a row, with the libraries of the environment; the status is the worst of the packages that are named.
#[e2e(slow)]
fn packages_are_judged_one_by_one() {
    let scratch = Scratch::new("packages of an environment");
    let site = scratch.join("lib/site-packages");
    let module = |package: &str, name: &str, release: &str| {
        let library = parts::cudart(release);
        let file = format!("{package}/{name}.cpython-312-x86_64-linux-gnu.so");
        fs::create_dir_all(site.join(package)).expect("a directory");
        let source = "int cudaGetDeviceCount(int *);\nint use(void) { return cudaGetDeviceCount(0); }\n";
        link(source, &site.join(&file), &[&library.display().to_string()]);
        file
    };
    let (old, new) = (("11.8", "libcudart.so.11.0"), ("13.0", "libcudart.so.13"));
    for (release, cudart) in [old, new] {
        fs::create_dir_all(site.join("nvidia/lib")).expect("a directory");
        let library = parts::cudart(release);
        fs::copy(library, site.join("nvidia/lib").join(cudart)).expect("a library");
    }
    let older = module("older", "core", old.0);
    let newer = module("newer", "core", new.0);
    // Two optional modules of the first package, and the only one of the third.
    let nccl = scratch.join("libnccl.so.2");
    link("int ncclCommAbort(void) { return 0; }\n", &nccl, &["-Wl,-soname,libnccl.so.2"]);
    let with_nccl = |package: &str, name: &str| {
        let file = format!("{package}/{name}.cpython-312-x86_64-linux-gnu.so");
        let source = "int ncclCommAbort(void);\nint use(void) { return ncclCommAbort(); }\n";
        fs::create_dir_all(site.join(package)).expect("a directory");
        link(source, &site.join(&file), &[&nccl.display().to_string()]);
        file
    };
    let [nccl_module, other_module] = ["nccl", "collective"].map(|name| with_nccl("older", name));
    install(&site, "older", "1.0", "", &format!("{older},,\n{nccl_module},,\n{other_module}"));
    install(&site, "newer", "2.0", "", &newer);
    install(&site, "broken", "3.0", "", &with_nccl("broken", "nccl"));
    install(&site, "pure", "4.0", "", "pure/__init__.py");
    // A library of NVIDIA's that links the driver, for one of two modules.
    let driver = scratch.join("libcuda.so.1");
    link("int cuInit(unsigned flags) { return 0; }\n", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let nvshmem = site.join("nvidia/lib/libnvshmem_host.so.3");
    let soname = "-Wl,-soname,libnvshmem_host.so.3";
    link(
        "int cuInit(unsigned);\nint run(void) { return cuInit(0); }\n",
        &nvshmem,
        &[soname, &driver.display().to_string()],
    );
    let core = module("driven", "core", old.0);
    let fast = "driven/fast.cpython-312-x86_64-linux-gnu.so";
    link("int run(void);\nint use(void) { return run(); }\n", &site.join(fast), &[&nvshmem.display().to_string()]);
    install(&site, "driven", "5.0", "", &format!("{core},,\n{fast}"));
    install(&site, "nvidia_cuda_runtime", "13.0", "", &format!("nvidia/lib/{},,\nnvidia/lib/{}", old.1, new.1));
    let host = scratch.file(
        "host.json",
        r#"{"driver": {"user": "535.261.03", "kernel": "535.261.03"}, "gpus": [{"cc": "9.0"}], "cudart": [], "nccl": []}"#,
    );
    let optional = "older.nccl cannot be imported: libnccl.so.2 is not found";
    let other = "older.collective cannot be imported: libnccl.so.2 is not found";
    let only = "broken.nccl cannot be imported: libnccl.so.2 is not found";
    for (named, status, expected) in [
        (
            &[][..],
            1,
            &["older 1.0 runs CG210", "newer 2.0 refused CG301", "broken 3.0 refused CG210", optional, only][..],
        ),
        (&["older"], 0, &["older 1.0 runs CG210", optional, other]),
        (&["Newer"], 1, &["newer 2.0 refused CG301"]),
        (&["broken"], 1, &["broken 3.0 refused CG210", only]),
        (&["older", "newer"], 1, &["older 1.0 runs CG210", "newer 2.0 refused CG301"]),
        (&["pure"], 2, &["pure 4.0: nothing to check"]),
        (
            &["absent"],
            2,
            &[
                "no package absent; its packages: broken 3.0, driven 5.0, newer 2.0, nvidia_cuda_runtime 13.0, older 1.0",
            ],
        ),
    ] {
        let options = named.iter().flat_map(|name| ["--package", name]);
        let verify =
            || command::call(["verify"]).arg(scratch.join("lib")).args(options.clone()).arg("--host").arg(&host);
        let outcome = verify().run().expect(status);
        let text = outcome.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        for expected in expected {
            assert!(text.contains(expected), "{named:?}: no {expected}: {outcome}");
        }
        let rows = outcome.stdout.lines().filter(|line| line.starts_with("  ") && line.contains("0  r")).count();
        let json = verify().arg("--json").run().expect(status);
        assert_eq!(json.stdout.matches("\"name\": ").count(), if status < 2 { rows } else { 0 }, "{named:?}: {json}");
    }
    let without_driver =
        command::call(["verify", "--package", "driven", "--driver", "none"]).arg(scratch.join("lib")).run().expect(2);
    assert!(without_driver.stdout.contains("driven  5.0  unknown  CG504"), "{without_driver}");
    // The release gate and a fleet answer for the packages that they name.
    let fleet = scratch.file("fleet.jsonl", format!("{}\n", fs::read_to_string(&host).expect("a host")));
    for (named, gate, of_fleet) in
        [(&[][..], 1, 1), (&["older"], 0, 0), (&["newer"], 1, 1), (&["older", "newer"], 1, 1)]
    {
        let options: Vec<&str> = named.iter().flat_map(|name| ["--package", name]).collect();
        let question =
            |machine: [&str; 2]| command::call(["verify"]).arg(scratch.join("lib")).args(&options).args(machine).run();
        let outcome = question(["--driver-floor", "525"]).expect(gate);
        let lists = |package: &str| outcome.stdout.contains(&format!("/{package}/core"));
        let is_named = |package: &&str| named.is_empty() || named.contains(package);
        for package in ["older", "newer"] {
            assert_eq!(lists(package), is_named(&package), "{named:?} {package}: {outcome}");
        }
        let _ = question(["--fleet", &fleet.to_string_lossy()]).expect(of_fleet);
    }
}

/// Two builds of one library are alternatives, if no other file loads one of them: one that fits suffices for every question.
#[e2e(slow)]
fn one_of_several_builds_suffices() {
    for (first, second, is_choice) in [
        ("lib/cuda_v11/libbackend.so", "lib/cuda_v13/libbackend.so", true),
        ("lib/one/libbackend.so", "lib/other/libbackend.so", true),
        ("app/_ext_cu118.abi3.so", "app/_ext_cu130.abi3.so", true),
        ("tests/libneeded.so", "lib/libbackend.so", false),
        ("lib/libbackend.so", "tests/libbackend13.so", true),
        ("lib/libbackend.so", "data/csrc/libbackend13.so", true),
        ("lib/libone.so", "lib/libtwo.so", false),
    ] {
        let scratch = Scratch::new("builds of a library");
        let tree = scratch.join("tree");
        for (file, release) in [(first, "11.8"), (second, "13.0")] {
            let library = parts::cudart(release);
            fs::create_dir_all(tree.join(file).parent().expect("a directory")).expect("it can be created");
            let source = "int cudaGetDeviceCount(int *);\nint use(void) { return cudaGetDeviceCount(0); }\n";
            link(source, &tree.join(file), &[&library.display().to_string()]);
        }
        let status = i32::from(!is_choice);
        for question in [&["--gpu", "8.0", "--driver", "535.261.03"][..], &["--driver-floor", "525"]] {
            let (found, text) = verify(&tree, question);
            assert_eq!(found, status, "{first} {second} {question:?}: {text}");
        }
        let requires = command::call(["requirements"]).arg(&tree).run().success().stdout;
        assert_eq!(requires.contains("580"), !is_choice, "{first} {second}: {requires}");
        let map = command::call(["map", "--json"]).arg(&tree).run().success().stdout;
        assert_eq!(map.contains("\"branch\": 535"), is_choice, "{first} {second}: {map}");
    }
}
