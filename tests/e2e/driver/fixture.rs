//! Programs that the scenarios start: packages with real kernels, guarded and sealed by one `cargo cudaguard build`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudaguard_tests::compiled_once::nvcc_once;
use cudaguard_tests::{Call, Project, Scratch, parts, places, project, scratch};

/// Loads its kernels through the driver API, which it opens with dlopen, as Rust programs do.
const DRIVER_API: &str = include_str!("program.rs");

/// Build script that compiles the package's kernels.
const BUILD_RS: &str = r#"fn main() {
    println!("cargo:rerun-if-changed=flags");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    let flags = std::fs::read_to_string("flags").unwrap();
    let mut nvcc = std::process::Command::new("nvcc");
    nvcc.args(flags.split_whitespace());
    nvcc_once(nvcc, "../kernel.cu".as_ref(), &out.join("kernels.fatbin"));
}
"#;

/// Build script that compiles the kernels into an object and links the runtime library.
const RUNTIME_BUILD_RS: &str = r#"fn main() {
    println!("cargo:rerun-if-changed=flags");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap());
    let cuda = std::path::PathBuf::from(std::env::var_os("CUDA_HOME").unwrap());
    let flags = std::fs::read_to_string("flags").unwrap();
    let object = out.join("kernels.o");
    let mut nvcc = std::process::Command::new("nvcc");
    nvcc.args(flags.split_whitespace());
    nvcc_once(nvcc, "../kernel.cu".as_ref(), &object);
    println!("cargo:rustc-link-arg={}", object.display());
    println!("cargo:rustc-link-arg={}", cuda.join("lib/libcudart_static.a").display());
    for library in ["-lstdc++", "-ldl", "-lrt", "-lpthread"] {
        println!("cargo:rustc-link-arg={library}");
    }
}
"#;

const KERNEL: &str = "extern \"C\" __global__ void first(int *p) { p[threadIdx.x] = 1; }\n";

/// Code that also runs the kernels if the program receives the argument `use`.
const LAUNCH: &str = r#"
#ifdef LAUNCH
extern "C" int launch(int device) {
  int *memory = 0, value = 0;
  cudaSetDevice(device);
  cudaMalloc(&memory, 4);
  first<<<1, 1>>>(memory);
  int status = cudaGetLastError();
  if (!status) status = cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost);
  return status ? status : value != 1;
}
extern "C" int devices(int *count) { return cudaGetDeviceCount(count); }
#endif
"#;

const RUNTIME: &str = r#"extern "C" {
    fn launch(device: i32) -> i32;
    fn devices(count: *mut i32) -> i32;
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("use") {
        let mut count = 0;
        let answer = unsafe { devices(&mut count) };
        println!("cudaGetDeviceCount {answer}: {count}");
        // 35: too old a driver, or none. It is too old for every GPU that there is.
        for device in 0..if answer == 0 { count } else { 0 } {
            println!("GPU {device}: kernels loaded, {}", unsafe { launch(device) });
        }
    }
    println!("main ran");
}
"#;

const ENGINE: &str = r#"#[repr(C, align(16))]
struct Aligned<T: ?Sized>(T);
static KERNELS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin")));

#[no_mangle]
pub extern "C" fn engine_size() -> usize {
    std::hint::black_box(&KERNELS.0).len()
}

/// 0 compatible, 1 incompatible, 2 unknown.
#[no_mangle]
pub extern "C" fn engine_check() -> i32 {
    cudaguard::check().status as i32
}
"#;

/// Machine code for 8.0 and compatible GPUs, and PTX for 9.0 and later.
const MODEL: &str = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90";

/// Additional lines of the build script of `vision`, which links cuDNN.
const LINKS_CUDNN: &str = r#"
    println!("cargo:rustc-link-search=native={}", std::env::var("CUDNN_PATH").unwrap() + "/lib");
    println!("cargo:rustc-link-arg=-Wl,--no-as-needed,-l:libcudnn.so.9");
}
"#;

/// Packages: name, kernels, and policy beyond the default.
const PACKAGES: [(&str, &str, &str); 8] = [
    ("model", MODEL, ""),
    ("needy", MODEL, "[package.needy.runtime]\ngpu = \"required\"\n"),
    ("patient", MODEL, "[package.patient.runtime]\ngpu = \"optional\"\n"),
    ("robot", "-gencode arch=compute_87,code=sm_87", ""),
    ("runtime", "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90", ""),
    ("vision", MODEL, ""),
    ("engine", MODEL, ""),
    ("motor", MODEL, "[package.motor.runtime]\nlibrary = \"enforce\"\n"),
];

static BUILT: OnceLock<Result<Scratch, String>> = OnceLock::new();

/// Returns the built package of this name: a program, or `libengine.so`. It is built once for the suite.
pub(crate) fn program(name: &str) -> PathBuf {
    match name {
        "shared" => return shared(),
        "older" => return older(),
        _ => {}
    }
    let (cuda, cudnn) = (parts::cuda("13.0"), parts::cudnn("9.15.1"));
    kept(BUILT.get_or_init(|| build(&cuda, &cudnn)), name)
}

fn is_library(name: &str) -> bool {
    matches!(name, "engine" | "motor")
}

/// Runs the build and keeps these files. A static holds the directory, which the next run of the suite deletes.
fn finished(project: &Project, call: Call, files: &[String]) -> Result<Scratch, String> {
    let built = call.run();
    if built.status() != Some(0) {
        return Err(format!("the scenes' programs do not build: {built}"));
    }
    let kept = Scratch::new("driver-programs");
    for file in files {
        fs::copy(project.built("release").join(file), kept.join(file)).expect("it was built");
    }
    Ok(kept)
}

fn build(cuda: &Path, cudnn: &Path) -> Result<Scratch, String> {
    let names: Vec<String> = PACKAGES.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
    let policy: String = PACKAGES.iter().map(|(.., policy)| *policy).collect();
    let mut project = Project::bare("driver")
        .file("Cargo.toml", format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", names.join(", ")))
        .file("cudaguard.toml", policy)
        .file("kernel.cu", KERNEL.to_owned() + LAUNCH);
    for (name, archs, _) in PACKAGES {
        let library = is_library(name);
        let manifest = project::package(name).replace("\n[workspace]\n", "") + &project::check_dependency();
        let (kind, main, source) = match name {
            "runtime" => ("-DLAUNCH -c", "main.rs", RUNTIME.to_owned()),
            _ if library => ("-fatbin", "lib.rs", ENGINE.replace("engine_", &format!("{name}_"))),
            _ => ("-fatbin", "main.rs", DRIVER_API.to_owned()),
        };
        let script = match name {
            "runtime" => RUNTIME_BUILD_RS.to_owned(),
            "vision" => BUILD_RS.trim_end().strip_suffix('}').expect("a function").to_owned() + LINKS_CUDNN,
            _ => BUILD_RS.to_owned(),
        };
        project = project
            .file(
                format!("{name}/Cargo.toml"),
                manifest + if library { "\n[lib]\ncrate-type = [\"cdylib\"]\n" } else { "" },
            )
            .file(format!("{name}/build.rs"), script + &nvcc_once())
            .file(format!("{name}/flags"), format!("{kind} {archs}"))
            .file(format!("{name}/src/{main}"), source);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(cuda.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(dirs).expect("a PATH");
    let built =
        project.cudaguard(["build", "--release"]).env("PATH", path).env("CUDA_HOME", cuda).env("CUDNN_PATH", cudnn);
    let files = PACKAGES.map(|(name, ..)| if is_library(name) { format!("lib{name}.so") } else { name.to_owned() });
    finished(&project, built, &files)
}

const PLAIN: &str = "fn main() {\n    println!(\"main ran\");\n}\n";

/// Builds a program without kernels in a separate project, with these lines in its build script and these variables.
fn alone(name: &str, build: &str, variables: &[(&str, &OsStr)]) -> Result<Scratch, String> {
    let project = Project::new(name).file("build.rs", format!("fn main() {{\n{build}}}\n")).file("src/main.rs", PLAIN);
    project.write("cudaguard.toml", "[build]\nunguarded = \"warn\"\n");
    let call = project.cudaguard(["build", "--release"]);
    let call = variables.iter().fold(call, |call, (name, value)| call.env(name, value));
    finished(&project, call, &[name.to_owned()])
}

fn kept(built: &Result<Scratch, String>, name: &str) -> PathBuf {
    match built {
        Ok(dir) => dir.join(name),
        Err(why) => panic!("{why}"),
    }
}

/// Returns a program that links the shared libcudart of CUDA 13.2.
fn shared() -> PathBuf {
    static BUILT: OnceLock<Result<Scratch, String>> = OnceLock::new();
    let cuda = parts::cuda("13.2");
    let link = "    println!(\"cargo:rustc-link-search=native={}/lib\", std::env::var(\"CUDA_HOME\").unwrap());\n    \
                println!(\"cargo:rustc-link-arg=-Wl,--no-as-needed,-lcudart\");\n";
    kept(BUILT.get_or_init(|| alone("shared", link, &[("CUDA_HOME", cuda.as_ref())])), "shared")
}

/// Returns a program that links cuDNN 9.1.0 for CUDA 12, which supports GPUs from 5.0.
fn older() -> PathBuf {
    static BUILT: OnceLock<Result<Scratch, String>> = OnceLock::new();
    let cudnn = parts::cudnn("9.1.0");
    let link = "    println!(\"cargo:rustc-link-search=native={}/lib\", std::env::var(\"CUDNN_PATH\").unwrap());\n    \
                println!(\"cargo:rustc-link-arg=-Wl,--no-as-needed,-l:libcudnn.so.9\");\n";
    kept(BUILT.get_or_init(|| alone("older", link, &[("CUDNN_PATH", cudnn.as_ref())])), "older")
}

const C_MAIN: &str = "#include <stdio.h>\nint main(void) { puts(\"main ran\"); return 0; }\n";

/// Returns the path of the shim's source.
pub(crate) fn shim() -> PathBuf {
    places::templates().join("shim.c")
}

/// Builds a C program with the note of this sealed package in `dir`. `compiler` gets its source, the note and the
/// arguments `more`: a shim and options.
pub(crate) fn in_c(package: &str, dir: &Path, compiler: &str, more: &[&OsStr]) -> PathBuf {
    let bytes = fs::read(program(package)).expect("it was built");
    let mark = b"cudaguard\0\0\0cudagrd\0";
    let at = bytes.windows(mark.len()).position(|window| window == mark).expect("a note") + 12;
    scratch::write(&dir.join("descriptor"), &bytes[at..at + 4096]);
    let note = format!(
        ".section .note.cudaguard,\"a\",%note\n.balign 4\n.long 10, 4096, 1\n.ascii \"cudaguard\\0\\0\\0\"\n.incbin \
         \"{}\"\n.section .note.GNU-stack,\"\",%progbits\n",
        dir.join("descriptor").display()
    );
    scratch::write(&dir.join("note.s"), note);
    scratch::write(&dir.join("main.c"), C_MAIN);
    let program = dir.join("program");
    let sources = [dir.join("main.c"), dir.join("note.s")];
    let made = Call::new(compiler).arg("-o").arg(&program).args(sources).args(more).arg("-ldl").run();
    assert!(made.status() == Some(0) && made.stderr.is_empty(), "{compiler}: {made}");
    program
}
