//! Windows files: the DLLs that the Windows loader picks, compared with Wine, and findings about PE files.

pub(crate) mod guard;
mod on_wine;
pub(crate) mod wine;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::loader::DllSearch;
use cudaguard_tests::{Call, Scratch, command, e2e, parts, tools};

use self::wine::Wine;

pub(crate) const COMPILER: &str = "x86_64-w64-mingw32-gcc";
const DLLS: [&str; 3] = ["a", "b", "c"];
const ARRANGEMENTS: u32 = 12;

/// A program that needs `a.dll`, which needs `b.dll`, which needs `c.dll`, and an extension module that needs `b.dll`. Both print
/// the DLLs of the process.
struct Built {
    scratch: Scratch,
    files: PathBuf,
}

impl Built {
    fn new() -> Self {
        let scratch = Scratch::without_blanks("windows-dlls");
        let files = scratch.path().join("files");
        fs::create_dir(&files).unwrap();
        for (name, body) in [
            ("c.c", "__declspec(dllexport) int c(void) { return 1; }"),
            ("b.c", "__declspec(dllimport) int c(void); __declspec(dllexport) int b(void) { return c(); }"),
            ("a.c", "__declspec(dllimport) int b(void); __declspec(dllexport) int a(void) { return b(); }"),
            ("ext.c", "__declspec(dllimport) int b(void); __declspec(dllexport) int ext(void) { return b(); }"),
            ("plain.c", &format!("__declspec(dllimport) int a(void); {REPORT} int main(void) {{ a(); report(); return 0; }}")),
            (
                "host.c",
                &format!(
                    "{REPORT} int main(int n, char **arguments) {{ wchar_t path[512];
                     for (int i = 2; i < n; i++) {{ MultiByteToWideChar(CP_UTF8, 0, arguments[i], -1, path, 512); AddDllDirectory(path); }}
                     if (!LoadLibraryExA(arguments[1], 0, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR)) return 3;
                     report(); return 0; }}"
                ),
            ),
        ] {
            fs::write(files.join(name), body).unwrap();
        }
        let build = |arguments: &[&str]| drop(Call::new(COMPILER).args(arguments).dir(&files).run().success());
        build(&["-shared", "c.c", "-o", "c.dll"]);
        build(&["-shared", "b.c", "c.dll", "-o", "b.dll"]);
        build(&["-shared", "a.c", "b.dll", "-o", "a.dll"]);
        build(&["-shared", "ext.c", "b.dll", "-o", "ext.pyd"]);
        build(&["plain.c", "a.dll", "-o", "plain.exe"]);
        build(&["host.c", "-o", "host.exe"]);
        Self { scratch, files }
    }
}

/// Prints each DLL of the test that the process has, with its file.
const REPORT: &str = r#"
    #define _WIN32_WINNT 0x0602
    #include <windows.h>
    #include <stdio.h>
    static void report(void) {
        const char *names[] = {"a.dll", "b.dll", "c.dll"}; char path[512];
        for (int i = 0; i < 3; i++) {
            HMODULE module = GetModuleHandleA(names[i]);
            if (module) { GetModuleFileNameA(module, path, 512); printf("%s=%s\n", names[i], path); }
        }
    }
"#;

fn windows_path(path: &Path) -> String {
    format!("Z:{}", path.display()).replace('/', "\\")
}

/// Parses the output of the program into the file of each DLL, in lower case.
fn printed(output: &str) -> BTreeMap<String, String> {
    let pairs = output.lines().filter_map(|line| line.trim().split_once('='));
    pairs.map(|(name, file)| (name.to_owned(), file.to_ascii_lowercase())).collect()
}

/// Copies of the DLLs are in random directories, with names in mixed case. Wine's loader is the reference.
#[e2e(slow)]
fn wine_picks_the_same_dlls() {
    tools::need(COMPILER);
    let built = Built::new();
    let wine = Wine::new("windows-dlls-of-wine");
    let system = wine.system();
    let mut state = 1u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    let (mut found, mut missing) = (0, 0);
    for number in 0..ARRANGEMENTS {
        let root = built.scratch.path().join(format!("arrangement{number}"));
        let at = |name: &str| root.join(name);
        for directory in ["app", "cwd", "path", "module", "added"] {
            fs::create_dir_all(at(directory)).unwrap();
            for dll in DLLS {
                if random() % 3 != 0 {
                    continue;
                }
                let name = if random() % 2 == 0 { format!("{dll}.dll") } else { format!("{}.DLL", dll.to_uppercase()) };
                fs::copy(built.files.join(format!("{dll}.dll")), at(directory).join(name)).unwrap();
            }
        }
        for dll in DLLS {
            let file = system.join(format!("{dll}.dll"));
            let _ = fs::remove_file(&file);
            if random() % 6 == 0 {
                fs::copy(built.files.join(format!("{dll}.dll")), file).unwrap();
            }
        }
        for program in ["plain.exe", "host.exe"] {
            fs::copy(built.files.join(program), at("app").join(program)).unwrap();
        }
        fs::copy(built.files.join("ext.pyd"), at("module/ext.pyd")).unwrap();
        let search = DllSearch {
            application: at("app"),
            system: vec![system.clone()],
            current: Some(at("cwd")),
            path: vec![at("path")],
            ..DllSearch::default()
        };
        let of_module = DllSearch { added: vec![at("added")], ..search.clone() };
        let extension = windows_path(&at("module/ext.pyd"));
        for ((search, file), program, arguments) in [
            ((&search, at("app/plain.exe")), at("app/plain.exe"), vec![]),
            ((&of_module, at("module/ext.pyd")), at("app/host.exe"), vec![extension, windows_path(&at("added"))]),
        ] {
            let closure = search.resolve(&file, &search.dirs_for(&file));
            let outcome =
                wine.call(program, &at("cwd")).args(arguments).env("WINEPATH", windows_path(&at("path"))).run();
            let ours = closure.iter().filter(|request| DLLS.iter().any(|dll| request.is_named(&format!("{dll}.dll"))));
            let ours: BTreeMap<_, _> =
                ours.map(|request| (request.name.to_ascii_lowercase(), request.found.as_ref())).collect();
            if ours.values().any(Option::is_none) {
                missing += 1;
                assert_ne!(outcome.status(), Some(0), "arrangement {number}: {ours:?}\n{outcome}");
                continue;
            }
            found += 1;
            let ours = ours.into_iter().filter_map(|(name, dll)| {
                let path = dll.as_ref()?.path.as_ref()?;
                let file = match path.strip_prefix(&system) {
                    Ok(own) => format!("c:\\windows\\system32\\{}", own.display()),
                    Err(_) => windows_path(path),
                };
                Some((name.clone(), file.to_ascii_lowercase()))
            });
            assert_eq!(printed(&outcome.stdout), ours.collect::<BTreeMap<_, _>>(), "arrangement {number}\n{outcome}");
        }
    }
    assert!(found > 2 && missing > 2, "{found} loads that succeed, {missing} that fail");
}

/// A Windows program gets a verdict for a Windows machine, and is refused on Linux.
#[e2e(slow)]
fn answers_about_pe_files() {
    tools::need(COMPILER);
    let scratch = Scratch::new("windows-answers");
    let source =
        scratch.file("app.c", "__declspec(dllimport) int cudaFree(void *); int main(void) { return cudaFree(0); }");
    let library = scratch.file("rt.c", "__declspec(dllexport) int cudaFree(void *p) { return p != 0; }");
    let (dll, program) = (scratch.path().join("cudart64_12.dll"), scratch.path().join("app.exe"));
    let _ = Call::new(COMPILER).arg("-shared").arg(&library).arg("-o").arg(&dll).run().success();
    let _ = Call::new(COMPILER).arg(&source).arg(&dll).arg("-o").arg(&program).run().success();
    let inspected = command::call(["inspect"]).arg(&program).run().success();
    for text in ["executable, x86_64", "CUDA       cudart64_12.dll", "cudart     linked", "527.41 or newer"] {
        assert!(inspected.stdout.contains(text), "{text}: {inspected}");
    }
    let host = |name: &str, platform: &str, driver: &str| {
        scratch.file(name, format!(r#"{{"platform": "{platform}", "driver": {{"user": "{driver}"}}, "cudart": [{{"soname": "cudart64_12.dll"}}], "gpus": [{{"name": "RTX 4090"}}]}}"#))
    };
    for (file, status, text) in [
        (host("new.json", "x86_64-windows", "566.36"), 0, "runs"),
        (host("old.json", "x86_64-windows", "522.06"), 1, "driver 522.06 that supports CUDA 11.8"),
        (host("linux.json", "x86_64-linux", "580.65.06"), 1, "is for x86_64-windows, but that machine is x86_64-linux"),
    ] {
        let outcome = command::call(["verify", "--host"]).arg(file).arg(&program).run().expect(status);
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(text), "{text}: {outcome}");
    }
    // Windows PowerShell writes UTF-16 into files. The device manager has the driver's version in another form.
    let text = fs::read_to_string(scratch.path().join("new.json")).unwrap().replace("566.36", "32.0.15.6636");
    let wide: Vec<u8> = format!("\u{feff}{text}\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let wide = scratch.file("wide.json", wide);
    for option in ["--host", "--fleet"] {
        let _ = command::call(["verify", option]).arg(&wide).arg(&program).run().success();
    }
    // A program that opens the driver by name, and its guard, which does so, too.
    for (load, expected) in
        [("LoadLibraryA(\"nvcuda.dll\")", 2), ("LoadLibraryW(L\"nvcuda.dll\")", 2), ("LoadLibraryA(\"x\")", 0)]
    {
        let source = format!("#include <windows.h>\nint main(void) {{ return {load} == 0; }}");
        let (opener, object, guard) = (scratch.join("opener.exe"), scratch.join("opener.o"), scratch.join("guard.o"));
        let source = scratch.file("opener.c", source);
        let _ = Call::new(COMPILER).args(["-c", "-o"]).args([&object, &source]).run().success();
        let embed =
            command::call(["embed", "--name", "app", "--compiler", COMPILER, "--toolkit"]).arg(parts::cuda("13.0"));
        let _ = embed.arg("-o").arg(&guard).run().success();
        let _ = Call::new(COMPILER).arg("-o").args([&opener, &object, &guard]).run().success();
        let _ = command::call(["seal"]).args([&opener, &object, &guard]).run().success();
        let _ = command::call(["verify", "--driver", "580", "--gpu", "A100"]).arg(&opener).run().expect(expected);
    }
    fs::remove_file(scratch.join("opener.exe")).unwrap();
    for (verb, status) in [("verify", 1), ("doctor", 1), ("exec", 78)] {
        let here = command::call([verb]).arg(&program).run().expect(status);
        assert!(format!("{}{}", here.stdout, here.stderr).contains("is for x86_64-windows"), "{here}");
    }
    let dir = command::call(["inspect"]).arg(scratch.path()).run().success();
    for text in ["app.exe", "cudart64_12.dll", "elsewhere  none needed"] {
        assert!(dir.stdout.contains(text), "{text}: {dir}");
    }
}
