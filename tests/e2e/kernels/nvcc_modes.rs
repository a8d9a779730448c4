//! Small programs, compiled in the modes that nvcc offers.

use cargo_cudaguard::binary::kernels::{Compression, Coverage, Kernels, Role};
use cudaguard::internal::arch::Target;
use cudaguard_tests::test;
use cudaguard_tests::{Test, e2e};

use super::toolkit_tools::{Bench, found, gencode, names};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    // The oldest and the newest toolkit differ in archs, compression and device linking.
    for toolkit in ["11.8", "13.5"] {
        tests.push(test(format!("all_archs_of_{toolkit}"), move || every_arch(toolkit)).slow());
        tests.push(test(format!("relocatable_code_of_{toolkit}"), move || relocatable(toolkit)).slow());
    }
    tests
}

fn by(kernels: &Kernels, cc: (u8, u8)) -> Coverage {
    kernels.gpu_support(cc).by
}

fn every_arch(toolkit: &'static str) {
    let bench = Bench::new(toolkit);
    let (codes, newest) = match toolkit {
        "11.8" => ("35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90", "90"),
        _ => ("75 80 86 87 88 89 90 100 103 107 110 120 121", "121"),
    };
    let mut asked: Vec<String> = codes.split(' ').map(|arch| format!("{arch}:sm_{arch}")).collect();
    asked.push(format!("{newest}:compute_{newest}"));
    let asked = asked.join(" ");
    let kernels = bench.made(&format!("{} k.cu", gencode(&asked)), "all");
    assert_eq!(found(&kernels, Role::Kernels), [names(&asked)]);
    // nvcc's device linker adds an empty cubin per arch to each program.
    assert_eq!(found(&kernels, Role::Empty).len(), 1);
    assert_eq!(kernels.containers()[1].origin.as_deref(), Some("k.cu"));
    let isa = if toolkit == "11.8" { (7, 8) } else { (9, 5) };
    let ptx: Vec<_> =
        kernels.entries().iter().filter_map(cargo_cudaguard::binary::kernels::KernelImage::ptx_isa).collect();
    assert_eq!(ptx, [isa]);
    for arch in codes.split(' ') {
        let arch: u8 = arch.parse().unwrap();
        assert_eq!(by(&kernels, (arch / 10, arch % 10)), Coverage::Cubin, "{arch}");
    }
    assert_eq!(by(&kernels, (13, 0)), Coverage::Ptx);
    assert_eq!(by(&kernels, (3, 0)), Coverage::Nothing);
}

fn relocatable(toolkit: &'static str) {
    let bench = Bench::new(toolkit);
    let asked = "75:sm_75 90:sm_90,compute_90";
    let kernels = bench.made(&format!("-rdc=true {} a.cu b.cu", gencode(asked)), "rdc");
    assert_eq!(found(&kernels, Role::Linked), [["sm_75", "sm_90"]]);
    assert_eq!(found(&kernels, Role::Input), [names(asked), names(asked)], "{:?}", kernels.containers());
    assert_eq!(found(&kernels, Role::Kernels), [[""; 0]; 0]);
    let mut origins: Vec<_> = kernels
        .containers()
        .iter()
        .filter(|container| container.role == Role::Input)
        .map(|container| container.origin.as_deref().unwrap_or_default())
        .collect();
    origins.sort_unstable();
    assert_eq!(origins, ["a.cu", "b.cu"]);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Cubin);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Nothing);
    assert_eq!(by(&kernels, (10, 0)), Coverage::Ptx, "its inputs' PTX is linked anew");
    let targets: Vec<String> = kernels.built_targets().iter().map(Target::to_string).collect();
    assert_eq!(targets, ["sm_75", "sm_90", "compute_90"]);

    // Repeats the check without symbols, and with all images compressed.
    bench.tool("strip rdc");
    let stripped = bench.read("rdc");
    assert_eq!(found(&stripped, Role::Linked), [["sm_75", "sm_90"]]);
    assert_eq!(stripped.coverage_by_cc(), kernels.coverage_by_cc());
    let packed = bench.made(&format!("-rdc=true -Xfatbin -compress-all {} a.cu b.cu", gencode(asked)), "packed");
    assert_eq!(packed.built_targets(), kernels.built_targets());
    // Objects and archives are read as they are before any device link. No driver loads their code.
    let archive = bench.made(&format!("-lib -rdc=true {} a.cu b.cu", gencode(asked)), "lib.a");
    assert_eq!(found(&archive, Role::Input), [names(asked), names(asked)]);
    assert_eq!(found(&archive, Role::Kernels), [[""; 0]; 0]);
    assert!(archive.containers().iter().all(|container| archive.member_name(container).is_some()));
}

#[e2e(slow)]
fn only_ptx_of_13_5() {
    let bench = Bench::new("13.5");
    let code = gencode("80:compute_80");
    let kernels = bench.made(&format!("{code} k.cu"), "whole");
    assert_eq!(found(&kernels, Role::Kernels), [["compute_80"]]);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Nothing, "libcudadevrt has an image for it, and does not count");
    assert_eq!(by(&kernels, (8, 6)), Coverage::Ptx);
    let kernels = bench.made(&format!("-rdc=true {code} a.cu b.cu"), "rdc");
    assert_eq!(found(&kernels, Role::Input), [["compute_80"], ["compute_80"]]);
    assert_eq!(found(&kernels, Role::DeviceRuntime).len(), 1);
    assert_eq!(by(&kernels, (8, 6)), Coverage::Ptx);
    assert_eq!(by(&kernels, (7, 5)), Coverage::Nothing);
    bench.tool("strip rdc");
    assert_eq!(bench.read("rdc").coverage_by_cc(), kernels.coverage_by_cc());
}

#[e2e(slow)]
fn suffixes_of_13_5() {
    let bench = Bench::new("13.5");
    let asked = "90a:sm_90a,compute_90a 100a:sm_100a 100f:sm_103,compute_100f 120f:sm_120f 75:sm_75";
    let kernels = bench.made(&format!("{} k.cu", gencode(asked)), "letters");
    assert_eq!(found(&kernels, Role::Kernels), [names(asked)]);
    for (cc, expected) in [
        ((9, 0), Coverage::Cubin),
        ((8, 0), Coverage::Nothing),
        ((10, 0), Coverage::Cubin),
        ((10, 3), Coverage::Cubin),
        ((11, 0), Coverage::Nothing),
        ((12, 0), Coverage::Cubin),
        ((12, 1), Coverage::Cubin),
        ((13, 0), Coverage::Nothing),
    ] {
        assert_eq!(by(&kernels, cc), expected, "{cc:?}");
    }
}

fn schemes(kernels: &Kernels) -> Vec<Compression> {
    let mut schemes: Vec<Compression> = kernels
        .containers()
        .iter()
        .filter(|container| container.role == Role::Kernels)
        .flat_map(|container| kernels.entries_of(container))
        .map(|entry| entry.compression)
        .collect();
    schemes.sort_unstable();
    schemes.dedup();
    schemes
}

#[e2e(slow)]
fn compression_of_13_5() {
    let bench = Bench::new("13.5");
    let asked = "80:sm_80 90:sm_90,compute_90";
    let code = gencode(asked);
    for (mode, expected) in [
        ("none", vec![Compression::None]),
        ("speed", vec![Compression::None, Compression::Lz4]),
        ("balance", vec![Compression::None, Compression::Zstd]),
        ("size", vec![Compression::Zstd]),
    ] {
        let kernels = bench.made(&format!("-compress-mode={mode} {code} k.cu"), mode);
        assert_eq!(found(&kernels, Role::Kernels), [names(asked)], "{mode}");
        assert_eq!(found(&kernels, Role::Empty).len(), 1, "{mode}");
        let schemes = schemes(&kernels);
        assert!(schemes.iter().all(|scheme| expected.contains(scheme)), "{mode}: {schemes:?}");
        assert!(schemes.contains(expected.last().unwrap()), "{mode}: {schemes:?}");
        let floor = kernels.gpu_support((9, 0)).floor.map(|floor| floor.cuda.to_string());
        let zstd = schemes == [Compression::Zstd];
        assert_eq!(floor.as_deref(), zstd.then_some("13.0"), "{mode}");
    }
}

#[e2e(slow)]
fn lto_ir_of_13_5() {
    let bench = Bench::new("13.5");
    // `-arch` stores PTX in addition to the LTO-IR, and the PTX serves newer GPUs.
    let kernels = bench.made("-dlto -rdc=true -arch=sm_80 a.cu b.cu", "lto");
    assert_eq!(found(&kernels, Role::Linked), [["sm_80"]]);
    assert_eq!(found(&kernels, Role::Input), [["compute_80", "lto_80"], ["compute_80", "lto_80"]]);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Ptx);
    bench.nvcc("-dc -gencode arch=compute_80,code=lto_80 b.cu -o b.o");
    let object = bench.read("b.o");
    assert_eq!(found(&object, Role::LinkTime), [["lto_80"]]);
    assert_eq!(by(&object, (8, 0)), Coverage::Nothing, "LTO-IR runs nowhere by itself");
    bench.nvcc("-dc -gencode arch=compute_80,code=lto_80 a.cu -o a.o");
    let kernels = bench.made("-dlto -arch=sm_80 a.o b.o", "linked");
    assert_eq!(found(&kernels, Role::Linked), [["sm_80"]]);
    assert_eq!(found(&kernels, Role::Input), [["lto_80"], ["lto_80"]]);
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Nothing);
}

#[e2e(slow)]
fn files_of_13_5() {
    let bench = Bench::new("13.5");
    let asked = "75:sm_75,compute_75 100f:sm_100f";
    let code = gencode(asked);
    for (options, name) in [
        ("-c", "k.o"),
        ("-c -G", "debug.o"),
        ("-shared -Xcompiler -fPIC", "libk.so"),
        ("-lib", "libk.a"),
        ("-fatbin", "k.fatbin"),
    ] {
        let kernels = bench.made(&format!("{options} {code} alone.cu"), name);
        assert_eq!(found(&kernels, Role::Kernels), [names(asked)], "{name}");
        let debug = kernels.entries().iter().any(|entry| entry.debug);
        assert_eq!(debug, name == "debug.o", "{name}");
    }
    bench.nvcc("-cubin -arch=sm_100f alone.cu -o k.cubin");
    assert_eq!(found(&bench.read("k.cubin"), Role::Kernels), [["sm_100f"]]);
    bench.nvcc("-ptx -arch=compute_80 alone.cu -o k.ptx");
    assert_eq!(found(&bench.read("k.ptx"), Role::Kernels), [["compute_80"]]);
    let floor = bench.read("k.ptx").gpu_support((8, 0)).floor.unwrap();
    assert_eq!(floor.cuda.to_string(), "13.5");
}
