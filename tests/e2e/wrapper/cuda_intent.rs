//! Only packages that reach CUDA are checked: through the dependency graph, libraries that their build scripts link, or the
//! linked file.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use cudaguard_tests::{Call, e2e, parts};

use super::fixture::{Fixture, notes, package, summary};
use cudaguard_tests::scratch;

const MAIN: &str = "fn main() {\n    println!(\"{}\", used::seven!());\n}\n";
const MACROS: &str = "use proc_macro::TokenStream;\n#[proc_macro]\npub fn seven(_: TokenStream) -> TokenStream {\n    \"7\".parse().unwrap()\n}\n";

/// Returns a program that uses a procedural macro.
fn plain() -> Fixture {
    Fixture::without_policy(
        "meant-plain",
        &[
            ("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"tool\", \"used\"]\n"),
            ("tool/Cargo.toml", &package("tool", "[dependencies]\nused = { path = \"../used\" }\n")),
            ("tool/src/main.rs", MAIN),
            ("used/Cargo.toml", &package("used", "[lib]\nproc-macro = true\n")),
            ("used/src/lib.rs", MACROS),
        ],
    )
}

/// Returns environments in which builds of CUDA programs fail. Their files are created in this directory.
pub(crate) fn hostile(sibling: &Path) -> Vec<(&'static str, Vec<(&'static str, OsString)>)> {
    let [old, cuda, next] = ["11.8", "13.0", "13.2"].map(parts::cuda);
    let cudnn = parts::cudnn("8.9.7");
    let text = |path: &Path| path.as_os_str().to_owned();
    let first = |dir: &Path| {
        let mut path = dir.join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").expect("a PATH"));
        ("PATH", path)
    };
    let word = |text: &str| OsString::from(text);
    let silent = sibling.join("silent");
    scratch::program(&silent.join("bin/nvcc"), "#!/bin/sh\necho nonsense\nexit 3\n");
    let stubs = text(&cuda.join("lib64/stubs"));
    let mut rpath = word("-Clink-arg=-Wl,-rpath,");
    rpath.push(&stubs);
    let mixed = sibling.join("mixed");
    cudaguard_tests::fake_library::cudnn(&mixed, (9, 1, 0));
    let header = mixed.join("include/cudnn_version.h");
    let printed = fs::read_to_string(&header).expect("just written");
    fs::write(&header, printed.replace("MINOR 1", "MINOR 4").replace("90100", "90400")).expect("it can be written");
    vec![
        ("native without a GPU", vec![first(&cuda), ("CUDAARCHS", word("native"))]),
        ("native for every nvcc", vec![first(&cuda), ("NVCC_PREPEND_FLAGS", word("-arch=native"))]),
        ("flags that nvcc does not know", vec![first(&cuda), ("NVCC_APPEND_FLAGS", word("-gencode arch=foo"))]),
        ("no compute capability", vec![first(&cuda), ("CUDA_COMPUTE_CAP", word("foo"))]),
        ("no list of PyTorch's", vec![first(&cuda), ("TORCH_CUDA_ARCH_LIST", word("foo;bar"))]),
        ("no list of CMake's", vec![first(&cuda), ("CMAKE_CUDA_ARCHITECTURES", word("all-major;foo"))]),
        ("archs that it dropped", vec![first(&cuda), ("CUDAARCHS", word("35;60"))]),
        ("archs that come later", vec![first(&old), ("CUDAARCHS", word("120"))]),
        ("archs that contradict", vec![first(&cuda), ("CUDAARCHS", word("90")), ("CUDA_COMPUTE_CAP", word("80"))]),
        ("toolkits of two majors", vec![first(&cuda), ("CUDA_HOME", text(&old))]),
        ("toolkits of one major", vec![first(&cuda), ("CUDA_HOME", text(&next)), ("CUDA_PATH", text(&cuda))]),
        ("cuDNN of another major", vec![first(&cuda), ("CUDNN_PATH", text(&cudnn))]),
        ("cuDNN of two releases", vec![("CUDNN_PATH", text(&mixed))]),
        ("gcc too new", vec![first(&old), ("NVCC_CCBIN", word("/usr/bin/g++")), ("CXX", word("/usr/bin/g++"))]),
        ("no nvcc by NVCC", vec![("NVCC", word("/nowhere/nvcc"))]),
        ("no nvcc by CUDACXX", vec![("CUDACXX", word("/nowhere/nvcc"))]),
        ("no toolkit by CUDA_PATH", vec![("CUDA_PATH", word("/nowhere"))]),
        ("an nvcc that fails", vec![first(&silent)]),
        ("stubs to load from", vec![("LD_LIBRARY_PATH", stubs), ("LIBRARY_PATH", text(&old.join("lib64")))]),
        ("stubs in the runtime path", vec![first(&cuda), ("CARGO_ENCODED_RUSTFLAGS", rpath)]),
        ("levels that no crate knows", vec![("CUDARC_CUDA_VERSION", word("99999")), ("CUDNN_LIB", word("/nowhere"))]),
    ]
}

#[e2e(slow)]
fn plain_programs_ignore_toolkits() {
    let fixture = plain();
    for (number, (name, variables)) in hostile(&fixture.sibling("")).into_iter().enumerate() {
        for words in [&["build", "--release"][..], &["test", "--release"]] {
            if words[0] == "test" && number % 5 != 0 {
                continue;
            }
            let call = fixture.guard(words);
            let outcome = variables.iter().fold(call, |call, (name, value)| call.env(name, value)).run();
            assert_eq!(outcome.status(), Some(0), "{name}: {outcome}");
            for word in ["CG1", "warning", "error", "nvcc", "toolkit"] {
                assert!(!outcome.stderr.contains(word), "{name}: {word}: {outcome}");
            }
            if words[0] == "build" {
                assert_eq!(summary(&outcome), "cudaguard: 0 of 1 target guarded", "{name}");
                assert!(outcome.stderr.contains("not guarded: tool: does not use CUDA"), "{name}: {outcome}");
            }
        }
        assert!(notes(&fixture.built("release/tool")).is_empty(), "{name}");
    }
}

/// Returns a package that only reaches CUDA because its build script links cudart.
fn linking(name: &str) -> Fixture {
    let dir = parts::cuda("13.0").join("lib64");
    let script = format!(
        "fn main() {{\n    println!(\"cargo:rustc-link-search=native={}\");\n    println!(\"cargo:rustc-link-lib=cudart\");\n}}\n",
        dir.display()
    );
    let main = "extern \"C\" {\n    fn cudaGetDeviceCount(count: *mut i32) -> i32;\n}\nfn main() {\n    let mut count = 0;\n    \
                println!(\"{} {}\", unsafe { cudaGetDeviceCount(&mut count) }, count);\n}\n";
    Fixture::without_policy(
        name,
        &[
            ("Cargo.toml", &package("app", "build = \"script.rs\"\n[workspace]\n")),
            ("script.rs", &script),
            ("src/main.rs", main),
        ],
    )
}

/// Puts nvcc 13.0 first in `PATH` and sets `CUDA_HOME`.
fn with(call: Call, home: &str) -> Call {
    let cuda = parts::cuda("13.0");
    let path = format!("{}:{}", cuda.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    call.env("PATH", path).env("CUDA_HOME", parts::cuda(home))
}

#[e2e(slow)]
fn linked_cuda_is_checked_after_linking() {
    let fixture = linking("meant-linked");
    let refused = with(fixture.guard(["build", "--release"]), "11.8").run().expect(101);
    assert!(refused.stderr.contains("error[CG101]: "), "{refused}");
    assert!(refused.stderr.contains("could not compile `app` (bin \"app\") due to "), "{refused}");
    assert!(!refused.stderr.contains("--crate-name"), "no command line: {refused}");
    assert!(refused.stderr.contains("Compiling app"), "nobody knew before: {refused}");
    assert!(!refused.stderr.contains("guarded"), "{refused}");
    assert!(!fixture.built("release/app").exists());
    // A repeated build reports the same error.
    let again = with(fixture.guard(["build", "--release"]), "11.8").run().expect(101);
    assert!(again.stderr.contains("error[CG101]: "), "{again}");
    let right = with(fixture.guard(["build", "--release"]), "13.0").run().success();
    assert!(!right.stderr.contains("CG1"), "{right}");
    assert_eq!(summary(&right), "cudaguard: 1 of 1 target guarded (CUDA 13.0)");
    // The program is fresh for cargo, but still incompatible.
    let _ = with(fixture.guard(["build", "--release"]), "11.8").run().expect(101);
    let warned = with(fixture.guard(["build"]), "11.8").run().success();
    assert!(warned.stderr.contains("warning[CG101]: "), "{warned}");
}
