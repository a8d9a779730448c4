//! Guarded programs and fake cuDNNs. The C compiler builds each once, and each case patches a copy, so that a case needs no
//! compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cargo_cudaguard::knowledge::vendor::CUDNN;
use cudaguard::internal::cudnn;
use cudaguard::internal::manifest::{Component, Linkage, Manifest, Requirement};
use cudaguard::internal::note;
use cudaguard::internal::policy::Runtime;
use cudaguard::internal::version::Version;
use cudaguard_tests::{Call, Scratch, once, places, tools};

/// A number that occurs only in the places to patch.
const WORD: u32 = 0x5a17_c0de;
const DESCRIPTOR: &[u8; 16] = b"@@descriptor@@\n\n";

/// A machine to build for and how its programs are run.
pub(crate) struct Arch {
    pub(crate) cc: &'static str,
    runner: &'static [&'static str],
    made: OnceLock<Scratch>,
}

pub(crate) static NATIVE: Arch = Arch { cc: "cc", runner: &[], made: OnceLock::new() };
pub(crate) static AARCH64: Arch = Arch {
    cc: "aarch64-linux-gnu-gcc",
    runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    made: OnceLock::new(),
};

/// The behavior of `cudnnGetVersion` in a fake cuDNN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Number(u32),
    Aborts,
    Hangs,
    Nothing,
}

pub(crate) const MAIN: &str = r#"
#include <cudaguard.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char text[2048];
  if (argc > 2 && !dlopen(argv[2], RTLD_NOW)) { puts(dlerror()); return 3; }
  if (argc > 1) { int answer = cudaguard_check_text(text, sizeof text); printf("check %d %s\n", answer, text); }
  puts("main ran");
  return 0;
}
"#;

impl Arch {
    pub(crate) fn need(&self) {
        let tools: Vec<&str> = std::iter::once(self.cc).chain(self.runner.first().copied()).collect();
        tools::need_all(&tools);
    }

    /// Returns the command that runs a program built for this machine, such as an emulator.
    pub(crate) fn runner(&self) -> &'static [&'static str] {
        self.runner
    }

    /// Returns a call of a program built for this machine.
    pub(crate) fn call(&self, program: &Path) -> Call {
        match self.runner {
            [] => Call::new(program),
            [first, rest @ ..] => Call::new(first).args(rest).arg(program),
        }
    }

    /// Returns the contents of the file with this name. The first call builds it with this compiler call.
    pub(crate) fn made(&self, name: &str, compile: impl FnOnce(Call, &Path) -> Call) -> Vec<u8> {
        once(&format!("judge_equal {} {name}", self.cc), || {
            let scratch = Scratch::new("judge-equal-make");
            let work = scratch.join("made");
            let _ = compile(Call::new(self.cc).args(["-O1", "-o"]).arg(&work), scratch.path()).run().success();
            let bytes = fs::read(&work).expect("the compiler made it");
            write_executable(&self.place(name), &bytes);
            bytes
        })
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.made.get_or_init(|| Scratch::new("judge-equal")).join(name)
    }

    /// The compiled shim.
    pub(crate) fn shim(&self) -> PathBuf {
        let source = templates().join("shim.c");
        self.made("shim.o", |call, _| // As the guard is compiled for users, and with every warning.
            call.args(["-Os", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"])
                .args(["-Wall", "-Wextra", "-Werror", "-c"])
                .arg(source));
        self.place("shim.o")
    }

    /// Returns assembly source with this number of notes, each with a descriptor to be patched.
    pub(crate) fn notes(count: usize) -> String {
        let note = ".section .note.cudaguard,\"a\",%note\n.balign 4\n.long 10, 4096, 1\n.ascii \"cudaguard\\0\\0\\0\"\n\
                    .ascii \"@@descriptor@@\\n\\n\"\n.zero 4080\n";
        format!("{}.section .note.GNU-stack,\"\",%progbits\n", note.repeat(count))
    }

    /// Builds a guarded file with these notes. `name` distinguishes templates, and `options` are passed to the compiler.
    pub(crate) fn guarded(&self, name: &str, to: &Path, descriptors: &[Vec<u8>], source: &str, options: &[String]) {
        let shim = self.shim().display().to_string();
        self.bare(name, to, descriptors, source, &[&[shim], options].concat());
    }

    /// Builds a file with these notes, but without the compiled shim.
    pub(crate) fn bare(&self, name: &str, to: &Path, descriptors: &[Vec<u8>], source: &str, options: &[String]) {
        let bytes = self.made(&format!("{name}-{}", descriptors.len()), |call, work| {
            fs::write(work.join("main.c"), source).expect("a file can be written");
            fs::write(work.join("notes.s"), Self::notes(descriptors.len())).expect("a file can be written");
            call.arg("-I")
                .arg(templates())
                .args([&work.join("main.c"), &work.join("notes.s")])
                .args(options)
                .arg("-ldl")
        });
        Self::patched(to, bytes, descriptors);
    }

    /// Writes a program, with these notes in place of the descriptors of its template.
    pub(crate) fn patched(to: &Path, mut bytes: Vec<u8>, descriptors: &[Vec<u8>]) {
        let mut after = 0;
        for descriptor in descriptors {
            let at = bytes[after..].windows(DESCRIPTOR.len()).position(|window| window == DESCRIPTOR);
            let at = after + at.unwrap_or_else(|| panic!("no descriptor to patch in {}", to.display()));
            after = at + descriptor.len();
            bytes[at..after].copy_from_slice(descriptor);
        }
        write_executable(to, &bytes);
    }

    /// A guarded program, linked to the cuDNN of this major or to none.
    pub(crate) fn program(&self, to: &Path, descriptors: &[Vec<u8>], linked: Option<u32>) {
        let mut options = Vec::new();
        if let Some(major) = linked {
            let dir = self.place(&format!("link-{major}"));
            fs::create_dir_all(&dir).expect("a directory can be made");
            self.loader(&dir.join(format!("libcudnn.so.{major}")), major, Says::Nothing);
            options.extend([
                "-Wl,--no-as-needed".to_owned(),
                format!("-L{}", dir.display()),
                format!("-l:libcudnn.so.{major}"),
            ]);
        }
        self.guarded(&format!("program-{linked:?}"), to, descriptors, MAIN, &options);
    }

    /// A guarded program, linked to a library of this name.
    pub(crate) fn program_with(&self, to: &Path, descriptors: &[Vec<u8>], soname: &str) {
        let dir = self.place("link-with");
        fs::create_dir_all(&dir).expect("a directory can be made");
        self.library_of(soname, &dir.join(soname));
        let link = ["-Wl,--no-as-needed".to_owned(), format!("-L{}", dir.display()), format!("-l:{soname}")];
        self.guarded(&format!("program-{soname}"), to, descriptors, MAIN, &link);
    }

    /// Writes an empty library with this name.
    pub(crate) fn library_of(&self, soname: &str, to: &Path) {
        write_executable(to, &self.library(soname, "empty", "", "-Wl,--hash-style=gnu"));
    }

    /// Writes a loader library of cuDNN with this major version.
    pub(crate) fn loader(&self, to: &Path, major: u32, says: Says) {
        let (kind, body) = match says {
            Says::Number(_) => {
                ("answers", "unsigned long cudnnGetVersion(void) { return *(volatile const unsigned *)&number; }")
            }
            Says::Aborts => ("aborts", "void abort(void); unsigned long cudnnGetVersion(void) { abort(); }"),
            Says::Hangs => ("hangs", "int pause(void); unsigned long cudnnGetVersion(void) { for (;;) pause(); }"),
            Says::Nothing => ("mute", ""),
        };
        self.saying(to, major, says, kind, body);
    }

    fn saying(&self, to: &Path, major: u32, says: Says, kind: &str, body: &str) {
        let mut bytes = self.library(&format!("libcudnn.so.{major}"), kind, body, "-Wl,--hash-style=gnu");
        if let Says::Number(number) = says {
            assert!(patch(&mut bytes, &WORD.to_le_bytes(), &number.to_le_bytes()), "a number to patch");
        }
        write_executable(to, &bytes);
    }

    /// Writes a sub-library of cuDNN, with or without an exported version symbol.
    pub(crate) fn part(&self, to: &Path, symbol: &str, version: Option<Version>, hash: &str) {
        let soname = to.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let body = if version.is_some() { format!("const unsigned {symbol} = {WORD:#x};") } else { String::new() };
        let kind = format!("{}{}", if version.is_some() { "word" } else { "plain" }, &hash[hash.len() - 3..]);
        let mut bytes = self.library(&soname, &kind, &body, hash);
        if let Some(version) = version {
            let word = version.packed().expect("a small version").to_le_bytes();
            // Patches the exported symbol, and also the internal `number`, which no code reads.
            while patch(&mut bytes, &WORD.to_le_bytes(), &word) {}
        }
        write_executable(to, &bytes);
    }

    /// Writes a sub-library with a version symbol, and with the cudart of this release inside.
    pub(crate) fn part_made_with(&self, to: &Path, symbol: &str, version: Version, cuda: u32) {
        let soname = to.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let answer = format!("unsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}");
        let body = format!("const unsigned {symbol} = {WORD:#x};\n{answer}");
        let mut bytes = self.library(&soname, &format!("made-with-{cuda}"), &body, "-Wl,--hash-style=gnu");
        let word = version.packed().expect("a small version").to_le_bytes();
        while patch(&mut bytes, &WORD.to_le_bytes(), &word) {}
        write_executable(to, &bytes);
    }

    fn library(&self, soname: &str, kind: &str, body: &str, hash: &str) -> Vec<u8> {
        self.made(&format!("{soname}-{kind}"), |call, work| {
            let source = work.join("library.c");
            fs::write(&source, format!("static const unsigned number __attribute__((used)) = {WORD:#x};\n{body}\n"))
                .expect("a file can be written");
            call.args(["-shared", "-fPIC", "-w", hash, "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])
                .arg(format!("-Wl,-soname,{soname}"))
                .arg(source)
        })
    }
}

/// Returns the directory of the shim.
pub(crate) fn templates() -> PathBuf {
    places::templates()
}

fn patch(bytes: &mut [u8], mark: &[u8], with: &[u8]) -> bool {
    let Some(at) = bytes.windows(mark.len()).position(|window| window == mark) else { return false };
    bytes[at..at + with.len()].copy_from_slice(with);
    true
}

/// Writes the file under another name and renames it, because two tests may write the same file at the same time.
fn write_executable(to: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(to.parent().expect("a file has a parent directory")).expect("a directory can be made");
    let whole = to.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
    fs::write(&whole, bytes).expect("a file can be written");
    fs::set_permissions(&whole, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    fs::rename(&whole, to).expect("a file can be renamed");
}

/// Returns the manifest of a package built with this cuDNN.
pub(crate) fn manifest(name: &str, built: Version, linkage: Linkage) -> Manifest {
    let mut requires = vec![Requirement::Library {
        min: Version::new(built.major, built.minor, 0),
        below: Version::new(built.major + 1, 0, 0),
        built,
        soname: CUDNN.soname(built),
        linkage,
        patch_refuse: false,
        required: false,
    }];
    requires.extend(cudnn::parts_of_major(built.major).map(Requirement::for_part));
    Manifest {
        component: Component { name: name.to_owned(), version: "0.1.0".to_owned() },
        cudaguard: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        profile: "release".to_owned(),
        toolkit: None,
        toolkit_known: None,
        other_toolkits: Vec::new(),
        library: None,
        library_known: None,
        library_linked: None,
        cudart: None,
        declared: Vec::new(),
        observed: None,
        host_compiler: None,
        runtime: Runtime::default(),
        partial_refuse: false,
        allow: Vec::new(),
        opens: Vec::new(),
        sealed: false,
        requires,
    }
}

/// Returns the manifest as a note.
pub(crate) fn descriptor(manifest: &Manifest) -> Vec<u8> {
    note::encode(manifest).expect("a small manifest fits").to_vec()
}

/// Parses a version such as `9.15.1`.
pub(crate) fn version(text: &str) -> Version {
    text.parse().expect("a version")
}

/// Checks the length of the output: one refusal has at most six lines, and each further one three.
pub(crate) fn is_short(stderr: &str) -> bool {
    let refusals = stderr.matches("cudaguard: error[CG").count();
    stderr.lines().count() <= 3 + 3 * refusals.max(1)
}
