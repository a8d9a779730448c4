//! Programs and libraries of the corpus: small files that the C compiler builds once.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::fake_library::{Library, shared_library};
use cudaguard_tests::world::{A100, H100, T4, V100, World};
use cudaguard_tests::{Call, Scratch, once, parts, scratch};

use super::Pair;
use crate::judge_equal::fixture::{NATIVE, descriptor, manifest, version};

/// A library that a program needs.
struct Need {
    name: &'static str,
    soname: &'static str,
    function: &'static str,
    /// The directory of its package for Python, below `nvidia`.
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need { name: "cudnn9", soname: "libcudnn.so.9", function: "cudnnCreate", package: "cudnn" },
    Need { name: "cudnn8", soname: "libcudnn.so.8", function: "cudnnCreate", package: "cudnn" },
    Need { name: "cudart13", soname: "libcudart.so.13", function: "cudaRuntimeGetVersion", package: "cu13" },
    Need { name: "cudart11", soname: "libcudart.so.11.0", function: "cudaRuntimeGetVersion", package: "cuda_runtime" },
    Need { name: "cublas12", soname: "libcublas.so.12", function: "cublasCreate_v2", package: "cublas" },
    Need { name: "nvrtc13", soname: "libnvrtc.so.13", function: "nvrtcVersion", package: "cu13" },
    Need { name: "nvrtc12", soname: "libnvrtc.so.12", function: "nvrtcVersion", package: "cuda_nvrtc" },
    Need { name: "libcuda535", soname: "libcuda-1a2b3c4d.so.535.261.03", function: "cuInit", package: "driver" },
    Need { name: "own", soname: "libown.so", function: "own", package: "own" },
    Need { name: "dll", soname: "framework.dll", function: "framework", package: "framework" },
    Need { name: "nothing", soname: "", function: "", package: "" },
];

/// A library of a set: its file name and its contents.
type LibraryFile = (String, Vec<u8>);

/// The files of one pair, in a directory.
pub(crate) struct Arrangement {
    dir: Scratch,
    /// The search path in the environment, as directories of this machine; empty if the program needs none.
    pub(crate) library_path: Vec<PathBuf>,
    /// The same directories in an image.
    pub(crate) image_path: String,
}

impl Arrangement {
    /// Creates `tree` (the package), `outside` (directories in `LD_LIBRARY_PATH`), `system` and `cached` (directories of the machine).
    pub(crate) fn new(pair: &Pair) -> Self {
        let dir = Scratch::without_blanks("corpus");
        let need = NEEDS.iter().find(|need| need.name == pair.needs).expect("a known library");
        let mut arrangement = Self { dir, library_path: Vec::new(), image_path: String::new() };
        let into = arrangement.place(pair, need);
        let mut files = if pair.files == "-" { Vec::new() } else { set(&pair.files) };
        let listed: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        change(&pair.change, need, &mut files);
        for (name, contents) in files {
            write(&into.join(name), &contents);
        }
        let other = pair.change.split_once(':');
        if let Some((order, set_name)) = other {
            let sibling = match order {
                "before" => "first",
                "after" => "second",
                _ => panic!("no such order: {order}"),
            };
            for (name, contents) in set(set_name) {
                write(&into.with_file_name(sibling).join(name), &contents);
            }
        }
        arrangement.write_program(pair, need);
        arrangement.write_metadata(&listed, &into);
        arrangement
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the directory for the libraries.
    fn place(&mut self, pair: &Pair, need: &Need) -> PathBuf {
        match pair.place.as_str() {
            "runpath" | "rpath" => self.dir.join("tree/app/lib"),
            "beside" | "windows" => self.dir.join("tree/app/bin"),
            "packages" => self.dir.join(format!("tree/nvidia/{}/lib", need.package)),
            "system" => self.dir.join("system"),
            "cached" => self.dir.join("cached"),
            "variable" => {
                let names = ["first", "lib", "second"];
                self.library_path = names.map(|name| self.dir.join("outside").join(name)).to_vec();
                self.image_path = names.map(|name| format!("/opt/outside/{name}")).join(":");
                self.dir.join("outside/lib")
            }
            other => panic!("no such place: {other}"),
        }
    }

    fn write_program(&self, pair: &Pair, need: &Need) {
        let search = match pair.place.as_str() {
            "runpath" | "rpath" => "$ORIGIN/../first:$ORIGIN/../lib:$ORIGIN/../second".to_owned(),
            "beside" => "$ORIGIN".to_owned(),
            "packages" => format!("$ORIGIN/../../nvidia/{}/lib", need.package),
            _ => String::new(),
        };
        let tags = if pair.place == "rpath" { "--disable-new-dtags" } else { "--enable-new-dtags" };
        let mut options = vec![format!("-Wl,{tags}")];
        if !search.is_empty() {
            options.push(format!("-Wl,-rpath,{search}"));
        }
        let program = self.dir.join("tree/app/bin/prog");
        let key = format!("corpus {} {} {options:?}", pair.needs, pair.program);
        let (kind, is_guarded) = match pair.program.strip_prefix("guarded-") {
            Some(kind) => (kind, true),
            None => (pair.program.as_str(), false),
        };
        if let Some(contents) = loose_code(kind) {
            let kept = if pair.change == "cut-program" { contents.len() * 95 / 100 } else { contents.len() };
            write(&program, &contents[..kept]);
            return;
        }
        if pair.place == "windows" {
            write(&program, &windows_program());
            return;
        }
        let stub = self.dir.join("stub").join(need.soname);
        let links = match kind {
            "links" => vec![stub.display().to_string()],
            "inner" => vec![self.dir.join("stub/libinner.so").display().to_string()],
            _ => Vec::new(),
        };
        let source = match kind {
            "links" => format!("int {0}(void *); int main(void) {{ long h; return {0}(&h); }}", need.function),
            "inner" => "int inner(void); int main(void) { return inner(); }".to_owned(),
            "opens" => opener(need),
            "opens-with-code" => kernels("code-80", &opener(need)),
            code => kernels(code, "int main(void) { return 0; }"),
        };
        if !need.soname.is_empty() && !links.is_empty() {
            let body = format!("int {}(void *h) {{ (void)h; return 0; }}", need.function);
            shared_library(need.soname).source(&body).make(&stub);
            if kind == "inner" {
                let calls = format!("int {0}(void *); int inner(void) {{ long h; return {0}(&h); }}", need.function);
                let library = shared_library("libinner.so").source(&calls).option(stub.display().to_string());
                let library = options.iter().fold(library, Library::option);
                library.make(&self.dir.join("stub/libinner.so"));
                // It is next to the program, which finds it there in every place.
                let inner = self.dir.join("tree/app/bin/libinner.so");
                write(&inner, &fs::read(self.dir.join("stub/libinner.so")).expect("a library"));
            }
        }
        if kind == "inner" {
            options = vec![format!("-Wl,{tags}"), "-Wl,-rpath,$ORIGIN".to_owned()];
        }
        options.extend(links);
        options.push("-Wl,--allow-shlib-undefined".to_owned());
        if is_guarded {
            let linkage = if kind == "links" { Linkage::Linked } else { Linkage::Dlopened };
            let mut manifest = manifest("app", version("9.15.1"), linkage);
            manifest.sealed = true;
            NATIVE.guarded(&key, &program, &[descriptor(&manifest)], &source, &options);
            return;
        }
        let bytes = once(&key, || {
            let source = self.dir.file("main.c", &source);
            let output = self.dir.join("main");
            let call = Call::new("cc").args(["-O1", "-w", "-o"]).arg(&output).arg(source);
            let _ = call.args(&options).arg("-ldl").run().success();
            fs::read(output).expect("the compiler made it")
        });
        write(&program, &bytes);
    }

    /// Writes the metadata of the package, whose `RECORD` lists the files as they were installed.
    fn write_metadata(&self, listed: &[String], into: &Path) {
        let metadata = self.dir.join("metadata");
        scratch::write(&metadata.join("METADATA"), "Metadata-Version: 2.1\nName: app\nVersion: 1.0\n");
        let mut record = "app/bin/prog,,\napp-1.0.dist-info/METADATA,,\napp-1.0.dist-info/RECORD,,\n".to_owned();
        if let Ok(inside) = into.strip_prefix(self.dir.join("tree")) {
            for name in listed {
                let _ = writeln!(record, "{}/{name},,", inside.display());
            }
        }
        scratch::write(&metadata.join("RECORD"), record);
    }
}

/// Returns the machine of this name, and the options that describe it.
pub(crate) fn machine(name: &str) -> (World, &'static [&'static str]) {
    match name {
        "H100-580" => (World::new("580.95.05", 13000, &[H100]), &["--driver", "580.95.05", "--gpu", "H100"]),
        "A100-535" => (World::new("535.261.03", 12020, &[A100]), &["--driver", "535.261.03", "--gpu", "A100"]),
        "T4-470" => (World::new("470.256.02", 11040, &[T4]), &["--driver", "470.256.02", "--gpu", "T4"]),
        "A100-580" => (World::new("580.95.05", 13000, &[A100]), &["--driver", "580.95.05", "--gpu", "A100"]),
        "V100-580" => (World::new("580.95.05", 13000, &[V100]), &["--driver", "580.95.05", "--gpu", "V100"]),
        other => panic!("no such machine: {other}"),
    }
}

/// Writes an executable file.
pub(crate) fn write(path: &Path, contents: &[u8]) {
    scratch::write(path, contents);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
}

/// Returns the source of a program that opens a library by name.
fn opener(need: &Need) -> String {
    format!(
        "#include <dlfcn.h>\nint main(void) {{ long h; void *l = dlopen(\"{}\", RTLD_NOW); if (!l) return 1;\n\
         int (*f)(void *) = (int (*)(void *))dlsym(l, \"{}\"); return f ? f(&h) : 2; }}",
        need.soname, need.function
    )
}

/// Returns the source of a program with kernels: `code-80` has machine code for 8.0, `code-80+90` also for 9.0, `text-90` has PTX.
fn kernels(code: &str, main: &str) -> String {
    let bytes = fatbin(code);
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!(
        "__asm__(\".section .nv_fatbin,\\\"a\\\"\\n.balign 8\\nc:\\n.byte {}\\n.section .nvFatBinSegment,\\\"aw\\\"\\n\
         .balign 8\\n.long 0x466243b1, 1\\n.quad c, 0\\n.text\");\n{main}",
        list.join(",")
    )
}

/// Returns a container with this code.
fn fatbin(code: &str) -> Vec<u8> {
    once(&format!("corpus {code}"), || {
        let dir = Scratch::new("corpus-kernels");
        let source = dir.file("k.cu", "__global__ void k(int *p) { *p = 1; }\n");
        let mut call =
            Call::new(parts::cuda("13.0").join("bin/nvcc")).arg("-fatbin").arg("-o").arg(dir.join("k.fatbin"));
        let (kind, archs) = code.split_once('-').expect("code-80 or text-80");
        let target = if kind == "text" { "compute" } else { "sm" };
        for arch in archs.split('+') {
            call = call.arg("-gencode").arg(format!("arch=compute_{arch},code={target}_{arch}"));
        }
        let _ = call.arg(source).run().success();
        fs::read(dir.join("k.fatbin")).expect("nvcc made it")
    })
}

/// Returns a file with GPU code that is no program: `fatbin-code-80`, or `archive-code-80+90`, a static library with one object for each.
fn loose_code(kind: &str) -> Option<Vec<u8>> {
    if let Some(code) = kind.strip_prefix("fatbin-") {
        return Some(fatbin(code));
    }
    let archs = kind.strip_prefix("archive-code-")?;
    Some(once(&format!("corpus {kind}"), || {
        let dir = Scratch::without_blanks("corpus-archive");
        let archive = dir.join("all.a");
        for arch in archs.split('+') {
            let source = dir
                .file("object.c", kernels(&format!("code-{arch}"), &format!("int main{arch}(void) {{ return 0; }}")));
            let object = dir.join(format!("object{arch}.o"));
            let _ = Call::new("cc").args(["-c", "-o"]).arg(&object).arg(source).run().success();
            let _ = Call::new("ar").arg("rcD").arg(&archive).arg(object).run().success();
        }
        fs::read(archive).expect("an archive")
    }))
}

/// Returns a program for Windows that imports a DLL of its own and a cudart.
fn windows_program() -> Vec<u8> {
    once("corpus windows program", || {
        let dir = Scratch::without_blanks("corpus-windows");
        for (name, contents) in set("dll") {
            write(&dir.join(name), &contents);
        }
        let source = "int framework(void); int cudaRuntimeGetVersion(int *);\n\
                      int main(void) { int v; return framework() + cudaRuntimeGetVersion(&v); }";
        let source = dir.file("main.c", source);
        let call = Call::new(WINDOWS).args(["-w", "-o"]).arg(dir.join("main.exe")).arg(source);
        let _ = call.arg(dir.join("framework.dll")).arg(dir.join("cudart64_12.dll")).run().success();
        fs::read(dir.join("main.exe")).expect("the compiler made it")
    })
}

fn windows_library(name: &str, source: &str) -> LibraryFile {
    let contents = once(&format!("corpus {name}"), || {
        let dir = Scratch::without_blanks("corpus-windows");
        let (file, source) = (dir.join(name), dir.file("library.c", source));
        let _ = Call::new(WINDOWS).args(["-shared", "-w", "-o"]).arg(&file).arg(source).run().success();
        fs::read(file).expect("the compiler made it")
    });
    (name.to_owned(), contents)
}

const WINDOWS: &str = "x86_64-w64-mingw32-gcc";

/// Returns the files of a set: `cudnn-9.15.1` is built for CUDA 12, `cudnn-9.15.1-cu13` for CUDA 13, and `cudnn-9.15.1-plain` has no
/// search path of its own.
fn set(name: &str) -> Vec<LibraryFile> {
    let mut words = name.split('-');
    let (stem, release) = (words.next().expect("a stem"), words.next().unwrap_or_default());
    let kind = words.next().unwrap_or_default();
    let numbers: Vec<u32> = release.split('.').filter_map(|number| number.parse().ok()).collect();
    match (stem, &numbers[..]) {
        ("cudnn", [major, minor, patch]) => cudnn((*major, *minor, *patch), kind),
        ("cudart", [13, ..]) => vec![real("13.0", "libcudart.so.13")],
        ("cudart", _) => vec![real("11.8", "libcudart.so.11.0")],
        ("cublas", _) => {
            let light = library("libcublasLt.so.12", "int cublasLtCreate(void *h) { return 0; }", &[]);
            let needed = stub("libcublasLt.so.12");
            let calls = "int cublasLtCreate(void *); int cublasCreate_v2(void *h) { return cublasLtCreate(h); }";
            let main = library("libcublas.so.12", calls, &[&needed, "-Wl,-rpath,$ORIGIN"]);
            vec![("libcublas.so.12".to_owned(), main), ("libcublasLt.so.12".to_owned(), light)]
        }
        ("nvrtc", [major, minor]) => {
            let text = format!("Cuda compilation tools, release {major}.{minor}, V{major}.{minor}.88");
            let source = format!("const char text[] = \"{text}\"; int nvrtcVersion(void *h) {{ (void)h; return 0; }}");
            let builtins = source.replace("nvrtcVersion", "nvrtc_builtins");
            let names =
                [(format!("libnvrtc.so.{major}"), source), (format!("libnvrtc-builtins.so.{release}"), builtins)];
            names.map(|(name, source)| (name.clone(), library(&name, &source, &["-Wl,-rpath,$ORIGIN"]))).to_vec()
        }
        ("libcuda", _) => {
            let soname = "libcuda-1a2b3c4d.so.535.261.03";
            vec![(soname.to_owned(), library(soname, "int cuInit(void *h) { (void)h; return 0; }", &[]))]
        }
        ("dll", _) => vec![
            windows_library("framework.dll", "int framework(void) { return 0; }"),
            windows_library("cudart64_12.dll", "int cudaRuntimeGetVersion(int *v) { return 0; }"),
        ],
        ("own", _) => {
            let cudart = parts::cuda("13.0").join("lib64/libcudart.so.13").display().to_string();
            let calls =
                "int cudaRuntimeGetVersion(int *); int own(void *h) { int v; return cudaRuntimeGetVersion(&v); }";
            let own = library("libown.so", calls, &[&cudart, "-Wl,-rpath,$ORIGIN"]);
            vec![("libown.so".to_owned(), own), real("13.0", "libcudart.so.13")]
        }
        _ => panic!("no such set: {name}"),
    }
}

fn real(release: &str, name: &str) -> LibraryFile {
    (name.to_owned(), fs::read(parts::cuda(release).join("lib64").join(name)).expect("a library"))
}

/// Builds an empty library with this soname to link to.
fn stub(soname: &str) -> String {
    let path = NATIVE.place(&format!("corpus-stub-{soname}")).join(soname);
    write(&path, &library(soname, "int cublasLtCreate(void *h) { return 0; }", &[]));
    path.display().to_string()
}

fn library(soname: &str, source: &str, options: &[&str]) -> Vec<u8> {
    once(&format!("corpus {soname} {source} {options:?}"), || {
        let dir = Scratch::without_blanks("corpus-library");
        let library = shared_library(soname).source(source);
        let library = options.iter().fold(library, |library, option| library.option(*option));
        fs::read(library.make(&dir.join(soname))).expect("the compiler made it")
    })
}

/// Returns a fake cuDNN: each sub-library exports its version, and the main library opens its first one, as the real one does.
fn cudnn((major, minor, patch): (u32, u32, u32), kind: &str) -> Vec<LibraryFile> {
    let parts: &[&str] = match major {
        8 => &["ops_infer", "cnn_infer", "adv_infer", "ops_train", "cnn_train", "adv_train"],
        _ => &["graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"],
    };
    let number = if major < 9 { major * 1000 + minor * 100 + patch } else { major * 10000 + minor * 100 + patch };
    let cuda = if kind == "cu13" { 13000 } else { 12080 };
    let word = major << 16 | minor << 8 | patch;
    let origin: &[&str] = if kind == "plain" { &[] } else { &["-Wl,-rpath,$ORIGIN"] };
    let main = format!(
        "#include <dlfcn.h>\nunsigned long cudnnGetVersion(void) {{ return {number}; }}\n\
         unsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}\n\
         int cudnnCreate(void **h) {{ *h = dlopen(\"libcudnn_{}.so.{major}\", RTLD_NOW); return !*h; }}",
        parts[0]
    );
    let soname = |part: &str| format!("libcudnn{part}.so.{major}");
    let mut files = vec![(soname(""), library(&soname(""), &main, origin))];
    for part in parts {
        let source = format!(
            "const unsigned cudnn_{part}_version = {word:#x};\nunsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}"
        );
        let name = soname(&format!("_{part}"));
        files.push((name.clone(), library(&name, &source, origin)));
    }
    files
}

/// Changes the files of a set: `without-graph`, `cut-main`, `empty-graph`, `foreign-main`, `zeros-main`, or the set of another copy.
fn change(what: &str, need: &Need, files: &mut Vec<LibraryFile>) {
    let Some((verb, part)) = what.split_once('-').filter(|_| what != "-" && !what.contains(':')) else { return };
    if part == "program" {
        return;
    }
    let at = match part {
        "main" => files.iter().position(|(name, _)| name == need.soname),
        part => files
            .iter()
            .position(|(name, _)| name.contains(&format!("_{part}.")) || name.contains(&format!("{part}.so"))),
    };
    let at = at.unwrap_or_else(|| panic!("no part {part}"));
    let contents = &mut files[at].1;
    match verb {
        "without" => drop(files.remove(at)),
        "cut" => contents.truncate(contents.len() / 2),
        "empty" => contents.clear(),
        "zeros" => contents.fill(0),
        // The machine of an ELF header: aarch64.
        "foreign" => contents[18] = 183,
        _ => panic!("no such change: {what}"),
    }
}
