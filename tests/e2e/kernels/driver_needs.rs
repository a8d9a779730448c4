//! The driver that a file needs: all subcommands name the same one.

use cudaguard_tests::command::call;
use cudaguard_tests::{e2e, parts};
use serde_json::Value;

use super::toolkit_tools::{Bench, gencode};

const KERNEL: &[u8] =
    b"__global__ void k(int *p) { *p = 1; }\nextern \"C\" int go() { k<<<1, 1>>>(nullptr); return 0; }\n";

/// Returns the verdict of `verify` on a driver with a GPU, and its text.
fn verdict(bench: &Bench, file: &str, driver: &str, gpu: &str) -> (String, String) {
    let outcome = call(["verify"]).arg(bench.path(file)).args(["--driver", driver, "--gpu", gpu]).run();
    let line = outcome.stdout.lines().next().unwrap_or_default().to_owned();
    let word = line.rsplit(": ").next().and_then(|rest| rest.split(' ').next()).unwrap_or_default().to_owned();
    (word, format!("{}{}", outcome.stderr, outcome.stdout))
}

/// Asserts that `inspect`, `requirements` and `verify` name this driver for a compute capability.
fn assert_named(bench: &Bench, file: &str, cc: &str, cuda: &str, release: &str) {
    let file = bench.path(file);
    let json = |subcommand: &str| -> Value { call([subcommand, "--json"]).arg(&file).run().success().json() };
    let named =
        |value: &Value| (value["cuda"].as_str().map(str::to_owned), value["release"].as_str().map(str::to_owned));
    let expected = (Some(cuda.to_owned()), Some(release.to_owned()));
    let inspected = json("inspect");
    let of_gpu = inspected["drivers"].as_array().unwrap().iter().find(|one| one["from"] == cc || one["to"] == cc);
    assert_eq!(named(of_gpu.unwrap()), expected, "{inspected}");
    let required = json("requirements");
    let of_gpu = required["gpus"].as_array().unwrap().iter().find(|one| one["from"] == cc);
    assert_eq!(named(&of_gpu.unwrap()["driver"]), expected, "{required}");
    let outcome = call(["verify", "--json", "--driver", "525.60.13", "--gpu", cc]).arg(&file).run();
    let verified = outcome.json();
    assert_eq!(named(&verified["gpus"][0]["driver"]), expected, "{verified}");
    let outcome = call(["verify", "--driver-floor", "470"]).arg(&file).run().expect(1);
    assert!(outcome.stderr.contains(&format!("CUDA {cuda}, {release} or newer")), "{outcome}");
}

/// The layout of candle: machine code in containers, and PTX text of a newer toolkit as a constant.
#[e2e(slow)]
fn ptx_text_beside_containers_needs_driver() {
    let bench = Bench::new("13.5");
    bench.write("k.cu", KERNEL);
    bench.write("text.cu", b"extern \"C\" __global__ void q(int *p) { *p = 2; }\n");
    bench.nvcc("-ptx -arch=compute_80 text.cu -o text.ptx");
    bench.nvcc(&format!("-c {} k.cu -o k.o", gencode("90:sm_90")));
    bench.write("text.s", b".section .rodata\n.globl text\ntext: .incbin \"text.ptx\"\n.byte 0\n");
    bench.write("main.c", b"int go(void); extern char text[]; int main(void) { return go() + text[0]; }\n");
    let lib = parts::cuda("13.5").join("lib64").display().to_string();
    let link = "-lcudart_static -lstdc++ -ldl -lrt -lpthread";
    bench.tool(&format!("gcc -w -z noexecstack main.c text.s k.o -L'{lib}' {link} -o layout"));
    for (driver, expected) in [("580.95.05", "refused"), ("620.70.06", "runs")] {
        let (word, text) = verdict(&bench, "layout", driver, "H100");
        assert_eq!(word, expected, "{text}");
        assert!(text.contains("native, sm_90 and PTX text 9.5; the driver must support CUDA 13.5"), "{text}");
    }
    assert_named(&bench, "layout", "9.0", "13.5", "620");
    let (_, text) = verdict(&bench, "layout", "580.95.05", "H100");
    assert!(text.contains("or compile the PTX text with an older toolkit") && !text.contains("sm_90 added"), "{text}");
    // Only the text has code for this GPU. The finding and the list of requirements name it.
    let (word, text) = verdict(&bench, "layout", "620.70.06", "A100");
    assert_eq!(word, "unknown", "{text}");
    assert!(text.contains("no file shows whether PTX text 9.5 contains all that it launches"), "{text}");
    assert!(!text.contains("facts are missing") && text.contains("A100 (8.0): unknown, PTX text 9.5"), "{text}");

    // XLA's kernels for conditional nodes of graphs: a program uses them only if the driver has such nodes.
    let plain = std::fs::read_to_string(bench.path("text.ptx")).expect("PTX");
    let extern_function = ".address_size 64\n.extern .func cudaGraphSetConditional(.param .b64 a, .param .b32 b);\n";
    bench.write("text.ptx", plain.replace(".address_size 64\n", extern_function).as_bytes());
    bench.tool(&format!("gcc -w -z noexecstack main.c text.s k.o -L'{lib}' {link} -o graphs"));
    let (word, text) = verdict(&bench, "graphs", "580.95.05", "H100");
    assert_eq!(word, "runs", "{text}");
}

/// No document says whether a driver of an older major loads the code; the header of a cubin shows its major.
#[e2e(slow)]
fn code_of_cuda_11_is_unknown_on_10() {
    let bench = Bench::new("11.8");
    bench.write("k.cu", b"extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    bench.nvcc("-cubin -arch=sm_70 k.cu -o k.cubin");
    bench.nvcc(&format!("-fatbin {} k.cu -o k.fatbin", gencode("70:sm_70")));
    for file in ["k.cubin", "k.fatbin"] {
        for (driver, expected) in [("410.48", "unknown"), ("450.80.02", "runs"), ("580.65.06", "runs")] {
            let (word, text) = verdict(&bench, file, driver, "V100");
            assert_eq!(word, expected, "{file} {driver}: {text}");
        }
    }
    // The driver loads a cubin file although the variable is set (measured on an H200), but no machine code in a fatbin.
    bench.write(
        "forced.json",
        br#"{"driver": {"user": "580.65.06"}, "gpus": [{"name": "V100"}], "variables": {"CUDA_FORCE_PTX_JIT": "1"}}"#,
    );
    for (file, status) in [("k.cubin", 0), ("k.fatbin", 1)] {
        for option in ["--host", "--fleet"] {
            let call = call(["verify", option]).arg(bench.path("forced.json")).arg(bench.path(file));
            let _ = call.run().expect(status);
        }
    }
}

/// Programs without GPU code of their own that are linked to one library, which loads the driver.
#[e2e]
fn libraries_with_driver_require_one() {
    let bench = Bench::new("13.0");
    bench.write("empty.c", b"");
    bench.write("main.c", b"int main(void) { return 0; }\n");
    for (library, oldest) in [("libcudnn.so.9", "11.0"), ("libcurand.so.10", "10.0"), ("libnccl.so.2", "")] {
        bench.tool(&format!("gcc -shared -Wl,-soname,{library} empty.c -o {library}"));
        bench.tool(&format!("gcc -Wl,--no-as-needed main.c ./{library} -o program"));
        for (driver, gpu, expected) in [("580.95.05", "none", 2), ("none", "A100", 2), ("590.44.01", "V100", 1)] {
            let machine = ["--driver", driver, "--gpu", gpu, "--cudnn", "9.1.0"];
            let outcome = call(["verify"]).arg(bench.path("program")).args(machine).run();
            assert_eq!(outcome.status(), Some(expected), "{library} {driver} {gpu}: {outcome}");
        }
        let outcome = call(["requirements"]).arg(bench.path("program")).run().success();
        let promised = format!("driver: one that supports CUDA {oldest}");
        assert_eq!(outcome.stdout.contains(&promised), !oldest.is_empty(), "{library}: {outcome}");
    }
}
