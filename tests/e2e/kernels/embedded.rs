//! GPU code that programs contain as data: `include_bytes!`, `include_str!` and C arrays.

use cargo_cudaguard::binary::kernels::{Coverage, ImageForm, KernelImage, Kernels, Role};
use cudaguard_tests::{Call, e2e, tools};

use super::toolkit_tools::{Bench, gencode};

/// Returns section and arch of each image.
fn places(kernels: &Kernels) -> Vec<(String, String)> {
    let mut places: Vec<_> = kernels
        .containers()
        .iter()
        .flat_map(|container| {
            let place = |entry: &KernelImage| (kernels.section_name(container).to_owned(), entry.arch_name());
            kernels.entries_of(container).iter().map(place)
        })
        .collect();
    places.sort();
    places
}

fn images(bench: &Bench) {
    bench.nvcc("-cubin -arch=sm_90a alone.cu -o k90a.cubin");
    bench.nvcc("-ptx -arch=compute_80 alone.cu -o k.ptx");
    bench.nvcc(&format!("-fatbin {} alone.cu -o k.fatbin", gencode("75:sm_75,compute_75")));
}

#[e2e]
fn c_arrays_are_found() {
    let bench = Bench::new("13.5");
    images(&bench);
    let array = |name: &str, file: &str, kind: &str| {
        let bytes = std::fs::read(bench.path(file)).unwrap();
        let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
        format!("{kind} {name}[] = {{{}}};\n", numbers.join(","))
    };
    let source = [
        array("cubin", "k90a.cubin", "const unsigned char"),
        array("fatbin", "k.fatbin", "const unsigned char"),
        array("writable", "k.fatbin", "unsigned char"),
        array("text", "k.ptx", "const char"),
        "int main(int n, char **a) { return cubin[n] + fatbin[n] + writable[n] + text[n]; }\n".to_owned(),
    ];
    bench.write("carrier.c", source.concat().as_bytes());
    bench.tool("gcc -O1 -o carrier carrier.c");
    let kernels = bench.read("carrier");
    let expected = [
        (".data", "compute_75"),
        (".data", "sm_75"),
        (".rodata", "compute_75"),
        (".rodata", "compute_80"),
        (".rodata", "sm_75"),
        (".rodata", "sm_90a"),
    ];
    assert_eq!(places(&kernels), expected.map(|(section, arch)| (section.to_owned(), arch.to_owned())));
    let origins: Vec<_> = kernels.containers().iter().filter_map(|container| container.origin.as_deref()).collect();
    for name in ["cubin", "fatbin", "writable"] {
        assert!(origins.contains(&name), "{origins:?}");
    }
    bench.tool("strip carrier");
    assert_eq!(places(&bench.read("carrier")), places(&kernels));
}

#[e2e(slow)]
fn rust_constants_are_found() {
    let bench = Bench::new("13.5");
    images(&bench);
    // A static library of relocatable code with its own device link, as a build script produces it.
    let code = gencode("80:sm_80,compute_80");
    bench.write("far.cu", b"__device__ int far(int x) { return x + 1; }\n");
    bench.write(
        "near.cu",
        b"__device__ int far(int);\n__global__ void near(int *p) { *p = far(1); }\n\
          extern \"C\" void launch() { near<<<1, 1>>>(nullptr); }\n",
    );
    bench.nvcc(&format!("-dc {code} near.cu -o near.o"));
    bench.nvcc(&format!("-dc {code} far.cu -o far.o"));
    bench.nvcc(&format!("-dlink {} near.o far.o -o devlink.o", gencode("80:sm_80")));
    bench.tool("ar rcs libdevice.a near.o far.o devlink.o");
    bench.write(
        "main.rs",
        br#"static PTX: &str = include_str!("k.ptx");
static CUBIN: &[u8] = include_bytes!("k90a.cubin");
static FATBIN: &[u8] = include_bytes!("k.fatbin");
unsafe extern "C" {
    safe fn launch();
}
fn main() {
    launch();
    let n = std::env::args().count();
    println!("{} {} {} and {} more words", PTX, CUBIN[n], FATBIN[n], n);
}
"#,
    );
    let rustc = Call::new("rustc").args("-C opt-level=3 -C lto=fat -C strip=symbols -C codegen-units=1".split(' '));
    let toolkit = format!("-Lnative={}", cudaguard_tests::parts::cuda("13.5").join("lib").display());
    let libraries = "-Lnative=. -lstatic=device -lstatic=cudadevrt -lstatic=cudart_static -lstdc++ -ldl -lrt -lpthread";
    let rustc = rustc.arg("--edition=2024").arg(toolkit).args(libraries.split(' '));
    let _ = rustc.args(["main.rs", "-o", "program"]).dir(bench.path("")).run().success();
    let kernels = bench.read("program");
    let found: Vec<(ImageForm, Vec<String>)> = kernels
        .containers()
        .iter()
        .map(|container| (container.form, kernels.entries_of(container).iter().map(KernelImage::arch_name).collect()))
        .collect();
    for (form, archs) in [
        (ImageForm::Ptx, vec!["compute_80"]),
        (ImageForm::Cubin, vec!["sm_90a"]),
        (ImageForm::Fatbin, vec!["compute_75", "sm_75"]),
    ] {
        let matches = |(other, named): &&(ImageForm, Vec<String>)| {
            let mut named = named.clone();
            named.sort();
            *other == form && named == archs
        };
        assert_eq!(found.iter().filter(matches).count(), 1, "{form:?} in {found:?}");
    }
    assert_eq!(super::toolkit_tools::found(&kernels, Role::Linked), [["sm_80"]]);
    assert_eq!(super::toolkit_tools::found(&kernels, Role::Input), [["compute_80", "sm_80"], ["compute_80", "sm_80"]]);
    let of = |role: Role| kernels.containers().iter().filter(|container| container.role == role).count();
    let roles = (of(Role::Kernels), of(Role::Aside), kernels.containers().len() - of(Role::Empty));
    assert_eq!(roles, (1, 2, 6), "nothing is counted twice");
    // The fatbin covers 7.5 and newer, the linked code 8.0 and newer. The PTX text and the cubin do not count.
    assert_eq!(kernels.gpu_support((9, 0)).by, Coverage::Ptx);
    assert_eq!(kernels.gpu_support((7, 5)).by, Coverage::Partial);
}

#[e2e]
fn aarch64_objects_are_read() {
    let compiler = "aarch64-linux-gnu-gcc";
    tools::need(compiler);
    let bench = Bench::new("13.5");
    images(&bench);
    bench.write(
        "carrier.s",
        b".section .nv_fatbin,\"a\"\n.balign 8\nfatbinData:\n.incbin \"k.fatbin\"\n\
          .section .rodata\n.globl text\ntext:\n.incbin \"k.ptx\"\n.byte 0\n.incbin \"k90a.cubin\"\n",
    );
    bench.tool(&format!("{compiler} -c carrier.s -o carrier.o"));
    bench.tool(&format!("{compiler} -nostdlib -shared carrier.o -o libcarrier.so"));
    bench.tool("aarch64-linux-gnu-ar rcs libcarrier.a carrier.o");
    for file in ["carrier.o", "libcarrier.so", "libcarrier.a"] {
        let kernels = bench.read(file);
        let expected =
            [(".nv_fatbin", "compute_75"), (".nv_fatbin", "sm_75"), (".rodata", "compute_80"), (".rodata", "sm_90a")];
        assert_eq!(places(&kernels), expected.map(|(section, arch)| (section.to_owned(), arch.to_owned())), "{file}");
    }
}

/// Changes bytes of real files at critical positions. The changes are seeded, so that a failure is reproducible.
#[e2e(slow)]
fn mutated_files_never_panic() {
    let bench = Bench::new("13.5");
    images(&bench);
    let asked = gencode("75:sm_75 90:sm_90,compute_90 100f:sm_100f");
    bench.nvcc(&format!("-c -rdc=true -Xfatbin -compress-all {asked} alone.cu -o rdc.o"));
    bench.nvcc(&format!("-c -Xfatbin -concat {asked} alone.cu -o concat.o"));
    bench.nvcc(&format!("-lib -rdc=true {asked} a.cu b.cu -o lib.a"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 20).unwrap() % below
    };
    for name in ["k90a.cubin", "k.ptx", "k.fatbin", "rdc.o", "concat.o", "lib.a"] {
        let real = std::fs::read(bench.path(name)).unwrap();
        for _ in 0..300 {
            let mut bytes = real.clone();
            for _ in 0..=random(6) {
                let at = random(bytes.len());
                let value = [0, 1, 0xff, 0x7f, 0x80, 0x50][random(6)];
                bytes[at] = value;
            }
            if random(4) == 0 {
                bytes.truncate(random(bytes.len()));
            }
            if let Ok(kernels) = cargo_cudaguard::binary::kernels::read_bytes(&bytes) {
                let rows = kernels.requirement_rows();
                assert!(rows.len() < 5000 && serde_json::to_string(&kernels).unwrap().len() > 2);
            }
        }
    }
}
