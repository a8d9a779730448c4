//! Guarded programs for Windows, started by Wine with the real cuDNN of several releases.

use std::fs;
use std::path::{Path, PathBuf};

use cudaguard_tests::{Call, Scratch, command, e2e, parts, places, tools};

use super::COMPILER;
use super::wine::Wine;

pub(super) const OLD: &str = "9.1.0";
pub(super) const NEW: &str = "9.28.0";

/// Returns `cudnn64_9.dll` of a release.
pub(crate) fn cudnn_dll(release: &str) -> (PathBuf, &'static str) {
    let major = release.split('.').next().unwrap_or_default();
    (parts::part(&format!("cudnn-{release}-windows")).join(format!("cudnn64_{major}.dll")), "cudnn64_9.dll")
}

/// Checks that the program starts with a new cuDNN, and is refused with an older one and with another major.
#[track_caller]
pub(crate) fn starts_only_with_newer_cudnn(wine: &Wine, program: &Path) {
    let outcome = wine.start(program, &[cudnn_dll(NEW)], &[("CUDAGUARD_REPORT", "report.json")]).success();
    assert!(outcome.stdout.contains("main starts"), "{outcome}");
    assert_eq!(outcome.stderr, "");
    for text in [r#""verdict":"runs""#, r#""version":"9.28.0","version_from":"its version resource""#] {
        assert!(wine.report().contains(text), "{text}: {}", wine.report());
    }
    for (release, texts) in [
        (OLD, ["error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1, which app ", "first in PATH"]),
        ("8.9.7", ["error[CG201]: cuDNN 8.9.7 is another major version than cuDNN 9.15.1", "put cuDNN 9"]),
    ] {
        let refused = wine.start(program, &[cudnn_dll(release)], &[]).expect(78);
        assert_eq!(refused.stdout, "", "{refused}");
        for text in texts.into_iter().chain(["run\\cudnn64_9.dll", "picked by:  the directory of the program"]) {
            assert!(refused.stderr.contains(text), "{text}: {refused}");
        }
    }
    let warned = wine.start(program, &[cudnn_dll(OLD)], &[("CUDAGUARD", "warn")]).success();
    assert!(warned.stderr.contains("warning[CG202]") && warned.stdout.contains("main starts"), "{warned}");
    assert_eq!(wine.start(program, &[cudnn_dll(OLD)], &[("CUDAGUARD", "off")]).success().stderr, "");
}

/// Checks the same with one cuDNN each. A start takes seconds.
#[track_caller]
fn older_cudnn_is_refused(wine: &Wine, program: &Path) {
    let outcome = wine.start(program, &[cudnn_dll(NEW)], &[]).success();
    assert!(outcome.stdout.contains("main starts") && outcome.stderr.is_empty(), "{outcome}");
    let refused = wine.start(program, &[cudnn_dll(OLD)], &[]).expect(78);
    assert!(refused.stdout.is_empty() && refused.stderr.contains("error[CG202]"), "{refused}");
}

/// A program that opens cuDNN and uses a GPU.
pub(crate) const NEEDS_BOTH: &str = "[cudnn]\nlinkage = \"dlopened\"\nrequired = true\n[runtime]\ngpu = \"required\"\n";

/// Checks that the program of [`NEEDS_BOTH`] is refused without cuDNN, and without a driver.
#[track_caller]
pub(crate) fn missing_libraries_are_refused(wine: &Wine, program: &Path) {
    let cudnn = [cudnn_dll(NEW)];
    for (libraries, text) in [
        (&[][..], "error[CG205]: no cuDNN was found: the loader finds no cudnn64_9.dll"),
        (&cudnn[..], "error[CG307]: there is no nvcuda.dll, and app "),
    ] {
        let refused = wine.start(program, libraries, &[]).expect(78);
        assert!(refused.stdout.is_empty() && refused.stderr.contains(text), "{text}: {refused}");
    }
}

/// Writes the guard of a component for a compiler.
pub(super) fn embed(scratch: &Scratch, policy: &str, compiler: &str, object: &str) -> PathBuf {
    scratch.file("cudaguard.toml", policy);
    let object = scratch.path().join(object);
    let call = command::call(["embed", "--name", "app", "--version", "1.0.0", "--release", "--compiler", compiler]);
    let _ = call
        .arg("-I")
        .arg(parts::cudnn("9.15.1-cu12").join("include"))
        .arg("-o")
        .arg(&object)
        .dir(scratch.path())
        .run()
        .success();
    object
}

pub(super) const LINKED: &str = "[cudnn]\nlinkage = \"linked\"\n";
const OPENED: &str = "[cudnn]\nlinkage = \"dlopened\"\nrequired = true\n";
pub(super) const DEFINITION: &str = "LIBRARY cudnn64_9.dll\nEXPORTS\ncudnnGetVersion\ncudnnNowhere\n";

/// Writes main.c, which calls cuDNN, and returns the path.
pub(super) fn main_c(scratch: &Scratch) -> PathBuf {
    scratch.file(
        "main.c",
        r#"#include <stdio.h>
        #ifdef USE
        __declspec(dllimport) unsigned long long cudnnGetVersion(void);
        #endif
        __attribute__((constructor)) static void early(void) { puts("constructor"); }
        int main(void) {
          puts("main starts");
        #ifdef USE
          void *volatile imported = (void *)cudnnGetVersion; /* a call would need the sublibraries */
          return !imported;
        #endif
          return 0;
        }"#,
    )
}

pub(super) fn gcc(scratch: &Scratch, arguments: &[&str], guard: &Path) -> PathBuf {
    let program = scratch.path().join("app.exe");
    let call = Call::new(COMPILER).args(["-O2", "main.c"]).arg(guard).args(arguments).arg("-o").arg(&program);
    let _ = call.dir(scratch.path()).run().success();
    program
}

/// Builds a guarded program that imports cuDNN from `libcudnn.a`. Returns the object of the guard, and the program.
pub(super) fn gcc_program_linking_cudnn(scratch: &Scratch) -> (PathBuf, PathBuf) {
    main_c(scratch);
    scratch.file("cudnn.def", DEFINITION);
    let tool = Call::new("x86_64-w64-mingw32-dlltool").args(["-d", "cudnn.def", "-l", "libcudnn.a"]);
    let _ = tool.dir(scratch.path()).run().success();
    let guard = embed(scratch, LINKED, COMPILER, "guard.o");
    let program = gcc(scratch, &["-DUSE", "libcudnn.a"], &guard);
    (guard, program)
}

#[e2e(slow)]
fn gcc_program_is_judged_before_main() {
    tools::need(COMPILER);
    let wine = Wine::new("windows-guard-gcc");
    let scratch = Scratch::without_blanks("windows-gcc");
    let (guard, program) = gcc_program_linking_cudnn(&scratch);
    starts_only_with_newer_cudnn(&wine, &program);
    // The loader ends the program before the guard runs, without a text.
    let outcome = wine.start(&program, &[], &[]);
    assert_ne!(outcome.status(), Some(0));
    assert!(!outcome.stderr.contains("CG") && outcome.stdout.is_empty(), "{outcome}");
    let program = gcc(&scratch, &["-DUSE", "libcudnn.a", "-flto", "-s", "-Wl,--gc-sections"], &guard);
    older_cudnn_is_refused(&wine, &program);
    let inspected = command::call(["inspect"]).arg(scratch.path().join("app.exe")).run().success();
    assert!(inspected.stdout.contains("component app 1.0.0"), "{inspected}");
    // GNU ld delay-loads by a library of `dlltool`, so the guard reports a missing DLL.
    let tool = Call::new("x86_64-w64-mingw32-dlltool").args(["-d", "cudnn.def", "--output-delaylib", "libdelayed.a"]);
    let _ = tool.dir(scratch.path()).run().success();
    let program = gcc(&scratch, &["-DUSE", "libdelayed.a"], &guard);
    starts_only_with_newer_cudnn(&wine, &program);
    assert!(wine.start(&program, &[], &[]).expect(78).stderr.contains("error[CG205]"));
}

/// Builds the program of [`RUNTIME`] by CMake, Ninja, clang-cl and lld-link, with an empty library for the helper of delay-loading.
fn build_by_cmake(scratch: &Scratch) -> PathBuf {
    let bin = fs::canonicalize(tools::need("lld-link")).unwrap();
    let clang = |name: &str| bin.with_file_name(name).display().to_string();
    scratch.file("CMakeLists.txt", CMAKE_PROJECT);
    let _ = Call::new("llvm-ar").args(["rc", "delayimp.lib"]).dir(scratch.path()).run().success();
    let call = |arguments: &[&str]| {
        let cmake = Call::new(parts::program("cmake-3.24", "cmake")).args(arguments).dir(scratch.path());
        cmake.env("PATH", parts::path(&["ninja"]))
    };
    let _ =
        call(&["-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SYSTEM_NAME=Windows"])
            .arg("-DCMAKE_SYSTEM_PROCESSOR=AMD64")
            .arg("-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY")
            .arg("-DCMAKE_C_COMPILER_TARGET=x86_64-pc-windows-msvc")
            .arg(format!("-DCMAKE_C_COMPILER={}", clang("clang-cl")))
            .arg(format!("-DCMAKE_LINKER={}", clang("lld-link")))
            .arg(format!("-DCMAKE_RC_COMPILER={}", clang("llvm-rc")))
            .arg(format!("-DCMAKE_MT={}", clang("llvm-mt")))
            .arg(format!("-DCudaGuard_DIR={}", places::workspace().join("cmake").display()))
            .arg(format!("-DCUDAGUARD_COMMAND={}", command::path().display()))
            .arg(format!("-DCUDNN={}", parts::cudnn("9.15.1-cu12").join("include").display()))
            .run()
            .success();
    let _ = call(&["--build", "build"]).run().success();
    scratch.path().join("build/app.exe")
}

const CMAKE_PROJECT: &str = "cmake_minimum_required(VERSION 3.24)
project(app VERSION 1.0.0 LANGUAGES C)
find_package(CudaGuard REQUIRED)
add_executable(app main.c)
target_compile_options(app PRIVATE -clang:-ffreestanding -GS-)
target_link_options(app PRIVATE /entry:start /subsystem:console /nodefaultlib /opt:ref /opt:icf)
target_link_directories(app PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(app PRIVATE cudnn)
set(CMAKE_C_STANDARD_LIBRARIES kernel32.lib)
cudaguard_embed(app CUDNN_INCLUDE_DIR ${CUDNN})
";

#[e2e(slow)]
fn missing_cudnn_and_driver_are_refused() {
    tools::need(COMPILER);
    let wine = Wine::new("windows-guard-missing");
    let scratch = Scratch::without_blanks("windows-missing");
    main_c(&scratch);
    missing_libraries_are_refused(&wine, &gcc(&scratch, &[], &embed(&scratch, NEEDS_BOTH, COMPILER, "both.o")));
    let program = gcc(&scratch, &[], &embed(&scratch, OPENED, COMPILER, "guard.o"));
    let _ = wine.start(&program, &[cudnn_dll(NEW)], &[]).success();
    // A program that adds directories to the search may find it later.
    let adds = scratch.file(
        "adds.c",
        "__declspec(dllimport) int SetDllDirectoryA(const char *); int add(void) { return SetDllDirectoryA(\"x\"); }",
    );
    let guard = scratch.path().join("guard.o");
    let other = gcc(&scratch, &[adds.to_str().unwrap()], &guard);
    assert_eq!(wine.start(&other, &[], &[]).success().stderr, "");
    let program =
        gcc(&scratch, &[], &embed(&scratch, &format!("{OPENED}[runtime]\ngpu = \"auto\"\n"), COMPILER, "gpu.o"));
    assert_eq!(wine.start(&program, &[cudnn_dll(NEW)], &[]).success().stderr, "");
}

/// What MSVC's C runtime provides, which is not installed here: the TLS directory, the calls of initializers, functions that compilers call, and a helper of
/// delay-loading.
const RUNTIME: &str = r#"
typedef unsigned u32; typedef void *H; typedef unsigned long long u64;
__declspec(dllimport) u64 cudnnGetVersion(void); __declspec(dllimport) u64 cudnnNowhere(void);
__declspec(dllimport) void ExitProcess(u32); __declspec(dllimport) H GetStdHandle(u32);
__declspec(dllimport) int WriteFile(H, const void *, u32, u32 *, void *);
__declspec(dllimport) H LoadLibraryA(const char *); __declspec(dllimport) H GetProcAddress(H, const char *);
int _fltused; u32 _tls_index;
__attribute__((section(".tls$AAA"))) char _tls_start; __attribute__((section(".tls$ZZZ"))) char _tls_end;
__attribute__((section(".CRT$XLA"))) void *__xl_a; __attribute__((section(".CRT$XLZ"))) void *__xl_z;
__attribute__((section(".rdata$T"), used)) const struct { void *s, *e, *i, *c; u32 z, ch; } _tls_used =
    {&_tls_start, &_tls_end, &_tls_index, &__xl_a + 1, 0, 0};
void *memset(void *to, int c, u64 n) { for (char *t = to; n--;) { *t++ = (char)c; __asm__ volatile(""); } return to; }
void *memcpy(void *to, const void *from, u64 n) { const char *f = from; for (char *t = to; n--;) { *t++ = *f++; __asm__ volatile(""); } return to; }
extern char __ImageBase[]; struct delayed { u32 attributes, name, module, slots, names; };
H __delayLoadHelper2(const struct delayed *d, H *slot) {
  u64 name = ((u64 *)(__ImageBase + d->names))[slot - (H *)(__ImageBase + d->slots)];
  return *slot = GetProcAddress(LoadLibraryA(__ImageBase + d->name), __ImageBase + (u32)name + 2);
}
__attribute__((section(".CRT$XCA"))) void (*__xc_a)(void); __attribute__((section(".CRT$XCZ"))) void (*__xc_z)(void);
static void print(const char *s) { u32 n = 0, w; while (s[n]) n++; WriteFile(GetStdHandle((u32)-11), s, n, &w, 0); }
void start(void) {
  for (void (*volatile *initializer)(void) = &__xc_a; initializer != &__xc_z; initializer++)
    if (*initializer) (*initializer)();
  print("main starts\n");
  void *volatile imported = (void *)cudnnGetVersion; /* a call would need the sublibraries */
  if (!imported) print("not imported\n");
#ifdef NOWHERE
  cudnnNowhere();
#endif
  ExitProcess(0);
}
"#;

#[e2e(slow)]
fn clang_program_is_judged_before_main() {
    tools::need_all(&["clang", "lld-link", "llvm-dlltool"]);
    let wine = Wine::new("windows-guard-clang");
    let scratch = Scratch::without_blanks("windows-clang");
    scratch.file("main.c", RUNTIME);
    scratch.file("cudnn.def", DEFINITION);
    let functions = Call::new("llvm-nm").arg("-u");
    let guard = embed(&scratch, LINKED, "clang --target=x86_64-pc-windows-msvc", "guard.obj");
    let undefined = functions.arg(&guard).run().success().stdout;
    let mut kernel32 =
        "LIBRARY kernel32.dll\nEXPORTS\nExitProcess\nLoadLibraryA\nGetProcAddress\nGetStdHandle\nWriteFile\n"
            .to_owned();
    kernel32
        .extend(undefined.lines().filter_map(|line| line.split_once("__imp_")).map(|(_, name)| format!("{name}\n")));
    scratch.file("kernel32.def", kernel32);
    for library in ["kernel32", "cudnn"] {
        let call = Call::new("llvm-dlltool").args(["-m", "i386:x86-64", "-d", &format!("{library}.def")]);
        let _ = call.args(["-l", &format!("{library}.lib")]).dir(scratch.path()).run().success();
    }
    let program = scratch.path().join("app.exe");
    let link = |defined: &[&str], arguments: &[&str]| {
        let flags = [
            "--target=x86_64-pc-windows-msvc",
            "-O2",
            "-ffreestanding",
            "-fno-stack-protector",
            "-c",
            "main.c",
            "-o",
            "main.obj",
        ];
        let _ = Call::new("clang").args(flags).args(defined).dir(scratch.path()).run().success();
        let flags =
            ["/nologo", "/out:app.exe", "/entry:start", "/subsystem:console", "/nodefaultlib", "/opt:ref", "/opt:icf"];
        let call = Call::new("lld-link").args(flags).args(["main.obj", "guard.obj", "kernel32.lib", "cudnn.lib"]);
        let _ = call.args(arguments).dir(scratch.path()).run().success();
    };
    for (compiled, linked) in [(&[][..], &[][..]), (&["-flto"], &["/delayload:cudnn64_9.dll"])] {
        link(compiled, linked);
        older_cudnn_is_refused(&wine, &program);
    }
    // CMake with clang-cl: the launcher of the linker seals the program and delay-loads cuDNN.
    let built = build_by_cmake(&scratch);
    let inspected = command::call(["inspect"]).arg(&built).run().success();
    assert!(inspected.stdout.contains("delayed    cudnn64_9.dll"), "{inspected}");
    starts_only_with_newer_cudnn(&wine, &built);
    assert!(wine.start(&built, &[], &[]).expect(78).stderr.contains("error[CG205]"));
    // The guard reports what a delay-loaded DLL lacks, before the first call.
    let refused = wine.start(&program, &[], &[]).expect(78);
    assert!(
        refused.stderr.contains("error[CG205]: no cuDNN was found: the loader finds no cudnn64_9.dll"),
        "{refused}"
    );
    link(&["-DNOWHERE"], &["/delayload:cudnn64_9.dll"]);
    let refused = wine.start(&program, &[cudnn_dll(NEW)], &[]).expect(78);
    assert!(refused.stderr.contains("error[CG214]: app 1.0.0 uses cudnnNowhere, which no library has"), "{refused}");
    assert!(refused.stderr.contains("run\\cudnn64_9.dll"), "{refused}");
    let _ = embed(&scratch, NEEDS_BOTH, "clang --target=x86_64-pc-windows-msvc", "guard.obj");
    link(&[], &["/delayload:cudnn64_9.dll"]);
    missing_libraries_are_refused(&wine, &program);
}
