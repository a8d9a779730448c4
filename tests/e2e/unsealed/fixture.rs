//! Unsealed programs with kernels, and a sealed twin of each.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::file::Binary;
use cargo_cudaguard::binary::kernels;
use cargo_cudaguard::linked::seal::{self, LinkObservation};
use cudaguard::internal::manifest::{Linkage, Manifest};
use cudaguard::internal::note;
use cudaguard_tests::world::World;
use cudaguard_tests::{Call, Scratch, last_report, once, parts, places, snapshot, world};
use serde_json::Value;

use crate::cmake::fixture::texts;
use crate::judge_equal::fixture::manifest;

/// Source file with one kernel and its host code.
pub(crate) const KERNEL: &str =
    "__global__ void NAME(int *p) { p[threadIdx.x] = 1; }\nextern \"C\" void run_NAME(int *p) { NAME<<<1, 1>>>(p); }\n";

pub(crate) const MAIN: &str = "#include <cudaguard.h>\n#include <stdio.h>\n#include <string.h>\n\
    int main(int n, char **a) {\n  static char text[4096];\n  \
    if (n > 1) {\n    struct cudaguard_verdict all;\n    int is = cudaguard_check_text(text, sizeof text);\n    \
    printf(\"check %d %s\\n\", is, text);\n    cudaguard_check_verdict(&all);\n    \
    printf(\"not checked: %s\\n\", all.not_judged);\n  }\n  \
    puts(\"main ran\");\n  return 0;\n}\n";

/// Returns a call of this toolkit's `nvcc`.
pub(crate) fn nvcc(cuda: &Path) -> Call {
    Call::new(cuda.join("bin/nvcc"))
}

/// Compiles an object with one kernel of this name and these flags.
pub(crate) fn object(dir: &Path, name: &str, flags: &str) -> PathBuf {
    let (source, object) = (dir.join(format!("{name}.cu")), dir.join(format!("{name}.o")));
    let made = once(&format!("kernel {name} {flags}"), || {
        fs::write(&source, KERNEL.replace("NAME", name)).expect("a file can be written");
        let flags = flags.split_whitespace();
        let _ = nvcc(&parts::cuda("13.0")).args(flags).arg("-c").args([&source]).arg("-o").arg(&object).run().success();
        fs::read(&object).expect("nvcc made it")
    });
    fs::write(&object, made).expect("a file can be written");
    object
}

/// Returns the manifest of a package that a build script creates with CUDA 13.0.
pub(crate) fn before_linking() -> Manifest {
    let mut manifest = manifest("demo", "9.15.1".parse().expect("a version"), Linkage::Dlopened);
    manifest.requires.clear();
    manifest.toolkit = Some("13.0.88".parse().expect("a version"));
    manifest
}

/// Options that build a program from objects.
pub(crate) struct Build<'a> {
    pub(crate) compiler: &'a str,
    /// Additional compiler flags.
    pub(crate) flags: &'a [&'a str],
    /// Linker options.
    pub(crate) options: &'a [&'a str],
    pub(crate) manifest: &'a Manifest,
}

/// Compiles the shim with this compiler and the flags that users get, and these additional flags.
pub(crate) fn shim(dir: &Path, compiler: &str, flags: &[&str]) -> PathBuf {
    let object = dir.join(format!("shim-{compiler}{}.o", flags.concat()));
    let made = once(&format!("shim {compiler} {flags:?}"), || {
        let _ = Call::new(compiler)
            .args(["-Os", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"])
            .args(flags)
            .args(["-c", "-o"])
            .args([&object, &places::templates().join("shim.c")])
            .run()
            .success();
        fs::read(&object).expect("the compiler made it")
    });
    fs::write(&object, made).expect("a file can be written");
    object
}

impl Build<'_> {
    /// Builds the unsealed program and its twin, with the same name in separate directories.
    pub(crate) fn make(&self, dir: &Path, objects: &[PathBuf]) -> [PathBuf; 2] {
        let descriptor = dir.join("descriptor");
        fs::write(&descriptor, note::encode(self.manifest).expect("a small manifest").as_slice()).expect("written");
        let note = format!(
            ".section .note.cudaguard,\"a\",%note\n.balign 4\n.long 10, 4096, 1\n.ascii \"cudaguard\\0\\0\\0\"\n.incbin \
             \"{}\"\n.section .note.GNU-stack,\"\",%progbits\n",
            descriptor.display()
        );
        fs::write(dir.join("note.s"), note).expect("written");
        fs::write(dir.join("main.c"), MAIN).expect("written");
        let twins = ["unsealed", "sealed"].map(|name| dir.join(name).join("program"));
        for twin in &twins {
            fs::create_dir_all(twin.parent().expect("a folder")).expect("a directory can be made");
        }
        let main = dir.join("main.o");
        let templates = places::templates();
        let compiled = Call::new(self.compiler)
            .arg("-O1")
            .args(self.flags)
            .args(["-c", "-I"])
            .arg(templates)
            .arg(dir.join("main.c"));
        let _ = compiled.arg("-o").arg(&main).run().success();
        let _ = Call::new(self.compiler)
            .arg("-o")
            .arg(&twins[0])
            .args(objects)
            .args([&main, &dir.join("note.s"), &shim(dir, self.compiler, self.flags)])
            .args(self.options)
            .arg(parts::cuda("13.0").join("lib/libcudart_static.a"))
            .args(["-lstdc++", "-ldl", "-lrt", "-lpthread"])
            .run()
            .success();
        fs::copy(&twins[0], &twins[1]).expect("a copy");
        sealed(&twins[1]);
        twins
    }
}

/// Seals a file as the command does after linking.
pub(crate) fn sealed(file: &Path) {
    let kernels = kernels::read_kernels(file).expect("a program");
    assert!(kernels.warnings().is_empty(), "{:?}", kernels.warnings());
    let observed = LinkObservation {
        archs: Some(kernels.built_targets()),
        gpus: Some(kernels.requirement_rows()),
        ..LinkObservation::from_binary(&Binary::read(file).expect("a program"))
    };
    assert_eq!(seal::seal_file(file, None, &observed).expect("it can be sealed").written, 1);
}

/// Facts that the guard of an unsealed file reports as not checked: the first always, the second if nothing shows that nvcc
/// compiled host code.
pub(crate) const PLAIN_DATA: &str = "GPU code outside fatbin containers";
pub(crate) const STATIC_CUDART: &str = "driver requirement of a static cudart";

/// Returns status, output and report of a start, without the differences between the twins.
pub(crate) fn reported(
    scratch: &Scratch,
    machine: &world::Machine,
    program: &Path,
    variables: &[(&str, &str)],
) -> (String, Value) {
    let file = scratch.join("report.json");
    let _ = fs::remove_file(&file);
    let report = [("CUDAGUARD_REPORT", file.to_str().expect("UTF-8"))];
    let all = [variables, &report].concat();
    let outcome = machine.call(program, &all).dir(scratch.path()).run();
    let mut report = last_report(&file);
    let members = report.as_object_mut().expect("an object");
    for of_this_start in ["file", "host", "pid", "started"] {
        members.remove(of_this_start);
    }
    let components = members.remove("components").expect("components");
    let left: Vec<&str> = texts(&components[0]["not_judged"]);
    // Code outside containers is not visible at the start. The seal has read the complete file.
    let open: &[&[&str]] =
        if program.ends_with("unsealed/program") { &[&[PLAIN_DATA], &[PLAIN_DATA, STATIC_CUDART]] } else { &[&[]] };
    assert!(open.contains(&&*left), "{}: {left:?}", program.display());
    let asked = machine.call(program, &all).arg("check").env("CUDAGUARD", "warn").dir(scratch.path()).run();
    let named = format!("not checked: {}\n", left.join("; "));
    assert!(asked.stdout.contains(&named), "{}: {asked}", program.display());
    let asked = asked.stdout.replace(&named, "");
    let text = format!("status {:?}\n{}{}\n{asked}", outcome.status(), outcome.stdout, outcome.stderr);
    let names = [(scratch.path(), "<scratch>")];
    (snapshot::paths(&text, &names), report)
}

/// Machines of the table.
pub(crate) fn worlds() -> Vec<(&'static str, World)> {
    use cudaguard_tests::world::{A10, A100, Gpu, H100, NEWS, ORIN, T4, V100};
    let r580 = |gpus: &[Gpu]| World::new("580.95.05", 13000, gpus);
    let r550 = |gpus: &[Gpu]| World::new("550.54.15", 12040, gpus);
    vec![
        ("V100", r580(&[V100])),
        ("A100", r580(&[A100])),
        ("A10", r580(&[A10])),
        ("H100", r580(&[H100])),
        ("eight H100", r580(&[H100; 8])),
        ("news", r580(&[NEWS])),
        ("Orin", r580(&[ORIN])),
        ("V100 and T4", r580(&[V100, T4])),
        ("V100, A100 and H100", r580(&[V100, A100, H100])),
        ("A100 with 535", World::new("535.261.03", 12020, &[A100])),
        ("H100 with 550", r550(&[H100])),
        ("no GPU", r580(&[])),
        ("nothing of NVIDIA", World::bare()),
    ]
}
