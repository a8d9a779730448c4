//! Real CUDA and cuDNN libraries: the linked file shows how a program reaches them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_cudaguard::binary::elf::{Elf, Symbol};
use cargo_cudaguard::binary::file::{Binary, BinaryKind};
use cargo_cudaguard::binary::mapped_file::Contents;
use cargo_cudaguard::binary::symbols;
use cargo_cudaguard::knowledge::vendor::{CUDART, CUDNN};
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::version::Version;
use cudaguard_tests::{Scratch, e2e, parts, tools};

use super::guarded_programs;

fn linkage(path: &Path) -> (Linkage, Linkage) {
    let binary = Binary::read(path).unwrap();
    (binary.linkage(&CUDART), binary.linkage(&CUDNN))
}

#[e2e(slow)]
fn cudart_releases_are_recognized() {
    let dir = Scratch::new("cudart");
    let text = "#include <cuda_runtime_api.h>\nint main(void) { int v = 0; return cudaDriverGetVersion(&v); }";
    for release in ["11.8", "13.0", "13.5"] {
        let root = parts::cuda(release);
        let (include, lib) =
            (format!("-I{}", root.join("include").display()), format!("-L{}", root.join("lib64").display()));
        for (library, expected) in [("-lcudart_static", Linkage::Static), ("-lcudart", Linkage::Linked)] {
            let lld: &[&[&str]] = if tools::find("ld.lld").is_some() { &[&["-s", "-fuse-ld=lld"]] } else { &[] };
            for strip in [&[][..], &["-s"]].iter().chain(lld) {
                let file = dir.join("prog");
                let mut arguments = vec![include.clone(), lib.clone(), library.to_owned()];
                arguments.extend(strip.iter().map(|argument| (*argument).to_owned()));
                arguments.extend(["-ldl", "-lpthread", "-lrt"].map(str::to_owned));
                guarded_programs::link(text, &file, &[], &arguments).unwrap();
                assert_eq!(linkage(&file), (expected, Linkage::None), "{release} {library} {strip:?}");
            }
        }
        let plain = dir.join("plain");
        guarded_programs::link("int main(void) { return 0; }", &plain, &[], &[]).unwrap();
        assert_eq!(linkage(&plain), (Linkage::None, Linkage::None));
        let archive = Binary::read(&root.join("lib64/libcudart_static.a")).unwrap();
        assert_eq!(archive.kind, BinaryKind::Archive);
        assert!(archive.damage.is_none() && archive.notes.is_empty());
    }
    tools::need("ld.lld");
}

#[e2e]
fn nvcc_program_cudart_is_recognized() {
    let root = parts::cuda("13.0");
    let dir = Scratch::new("nvcc");
    let source = dir.file(
        "k.cu",
        "__global__ void k(int *a) { *a = 1; }\nint main() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); return 0; }\n",
    );
    for (cudart, expected) in [("static", Linkage::Static), ("shared", Linkage::Linked)] {
        let file = dir.join(cudart);
        let done = Command::new(root.join("bin/nvcc"))
            .args(["-arch=sm_80", "-cudart", cudart, "-o"])
            .args([&file, &source])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(linkage(&file).0, expected);
        assert!(Command::new("strip").arg(&file).status().unwrap().success());
        assert_eq!(linkage(&file).0, expected, "stripped");
    }
}

const RELEASES: [(&str, Version, &str, &str); 4] = [
    ("8.5.0", Version::new(8, 5, 0), "libcudnn_ops_infer.so.8", "cudnn_ops_infer_version"),
    ("8.9.7", Version::new(8, 9, 7), "libcudnn_ops_infer.so.8", "cudnn_ops_infer_version"),
    ("9.1.0", Version::new(9, 1, 0), "libcudnn_graph.so.9", "cudnn_graph_version"),
    ("9.15.1", Version::new(9, 15, 1), "libcudnn_graph.so.9", "cudnn_graph_version"),
];

#[e2e]
fn cudnn_file_names_its_version() {
    for (name, version, file, symbol) in RELEASES {
        let path = parts::cudnn(name).join("lib").join(file);
        let data = Contents::open(&path).unwrap();
        let elf = Elf::parse(&data).unwrap();
        assert_eq!(elf.exported_u32(symbol).map(Version::from_packed), Some(version), "{name}");
        assert_eq!(elf.find_damage(), None);
        assert_eq!(elf.soname(), Some(file));
        let binary = Binary::read(&path).unwrap();
        assert_eq!(
            (binary.kind, binary.linkage(&CUDNN)),
            (BinaryKind::SharedLibrary, Linkage::Static),
            "{name}: it is inside itself"
        );
    }
}

const CALLS: &str =
    "#include <stddef.h>\nsize_t cudnnGetVersion(void); int main(void) { return cudnnGetVersion() == 0; }";

fn linked_to(dir: &Path, name: &str, built: Version) -> PathBuf {
    let lib = parts::cudnn(name).join("lib");
    let program = dir.join("prog");
    let objects = guarded_programs::objects(dir, &[guarded_programs::manifest("demo", built, Linkage::Linked)]);
    let library = lib.join(format!("libcudnn.so.{}", built.major)).display().to_string();
    let arguments = [library, "-Wl,--allow-shlib-undefined".to_owned()];
    guarded_programs::link(CALLS, &program, &objects, &arguments).unwrap();
    program
}

#[e2e]
fn static_cudnn_is_recognized() {
    let dir = Scratch::new("cudnn linkage");
    let program = linked_to(&dir, "9.15.1", Version::new(9, 15, 1));
    assert_eq!(linkage(&program), (Linkage::None, Linkage::Linked));
    assert!(Command::new("strip").arg(&program).status().unwrap().success());
    assert_eq!(linkage(&program), (Linkage::None, Linkage::Linked));

    // A program that loads cuDNN with dlopen contains function names. A program that only prints its name does not.
    let text = "#include <dlfcn.h>\nint main(void) { void *h = dlopen(\"libcudnn.so.9\", 2);\n\
                return h && dlsym(h, \"cudnnCreate\"); }";
    let by_name = dir.join("by name");
    guarded_programs::link(text, &by_name, &[], &["-s".to_owned()]).unwrap();
    assert_eq!(linkage(&by_name).1, Linkage::Dlopened);
    let text =
        "#include <stdio.h>\nint main(int n, char **a) { puts(n > 1 ? \"cuDNN\" : \"cudnnCreate failed\"); return 0; }";
    let speaks = dir.join("speaks");
    guarded_programs::link(text, &speaks, &[], &["-s".to_owned()]).unwrap();
    assert_eq!(linkage(&speaks).1, Linkage::Unknown);
    // The guard itself does not count as evidence of cuDNN.
    let objects = guarded_programs::objects(
        &dir,
        &[guarded_programs::manifest("demo", Version::new(9, 15, 1), Linkage::Unknown)],
    );
    let guarded = dir.join("guarded");
    guarded_programs::link("int main(void) { return 0; }", &guarded, &objects, &[]).unwrap();
    assert_eq!(linkage(&guarded).1, Linkage::None);
}

/// Compares the table with real libraries: functions of later releases are missing, and all others are present.
#[e2e]
fn function_table_matches_libraries() {
    let cudart = |release: &str| parts::cudart(release).with_file_name("");
    let cudnn = |release: &str| parts::cudnn(release).join("lib");
    let driver = parts::driver("535");
    for (dir, soname, release) in [
        (cudart("11.8"), "libcudart.so.11.0", (11, 8, 89)),
        // The names of these files do not contain the third number.
        (cudart("13.0"), "libcudart.so.13", (13, 0, 999)),
        (cudart("13.2"), "libcudart.so.13", (13, 2, 999)),
        (cudart("13.5"), "libcudart.so.13", (13, 5, 999)),
        (cudnn("8.5.0"), "libcudnn.so.8", (8, 5, 0)),
        (cudnn("8.9.7"), "libcudnn.so.8", (8, 9, 7)),
        (cudnn("9.1.0"), "libcudnn.so.9", (9, 1, 0)),
        (cudnn("9.15.1"), "libcudnn.so.9", (9, 15, 1)),
        (cudnn("9.28.0"), "libcudnn.so.9", (9, 28, 0)),
        (driver, "libcuda.so.1", (12, 2, 0)),
    ] {
        let release = Version::new(release.0, release.1, release.2);
        let data = Contents::open(&dir.join(soname)).unwrap();
        let elf = Elf::parse(&data).unwrap();
        let exported: BTreeSet<_> =
            elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name()).collect();
        let mut compared = 0;
        for (name, releases) in symbols::library_functions(soname) {
            // The headers declare functions of drivers for other systems, too.
            let elsewhere = ["cuEventCreateFromEGLSync", "cuWGLGetDevice"].contains(&name);
            assert_eq!(
                exported.contains(name),
                releases.contains(release) && !elsewhere,
                "{name} of {soname} {release}"
            );
            compared += 1;
        }
        let least = if soname == "libcudnn.so.8" { 1 } else { 5 };
        assert!(compared >= least, "{soname}: only {compared} names");
    }
}
