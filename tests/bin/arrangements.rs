//! Compares three answers for random arrangements of libraries: the program without a guard, the same program with a
//! guard, and the prediction of `verify` and `exec`.
//!
//! `arrangements [--seed N] [--count N] [--only N] [--compiler NAME] [--root DIR]…`. With `--compiler musl-gcc`, the programs use
//! the dynamic linker of musl. A root is a directory with another distribution and
//! its gcc, for example one that `debootstrap --variant=minbase --include=gcc,libc6-dev SUITE DIR` creates; without
//! the option, the arrangements are made on this machine. It needs root, or permission to create user namespaces.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use cargo_cudaguard::host::machine::DriverProbe;
use cargo_cudaguard::start;
use cudaguard::internal::env::Env;
use cudaguard_tests::{Dice, command, parts};
use rustix::mount::{MountFlags, mount, mount_bind};

const SONAME: &str = "libcudnn.so.9";
/// Parts of cuDNN that are always in the same directory.
const INNER: [&str; 2] = ["libcudnn_graph.so.9", "libcudnn_ops.so.9"];
/// The version that the programs are built with, older ones, and newer ones.
const VERSIONS: [(u32, u32, u32); 4] = [(9, 15, 1), (9, 1, 0), (9, 10, 2), (9, 17, 1)];
const BUILT: u32 = 91501;
/// Length of the path list that each program reserves.
const ROOM: usize = 900;
const DIRS: usize = 5;
/// Directories that glibc searches in a directory, on some processors and in some releases.
const HARDWARE: [&str; 6] =
    ["glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v9", "tls", "haswell", "x86_64"];
/// The user who starts programs with file capabilities.
const NOBODY: u32 = 65534;
const REFUSED: i32 = 78;

const INNER_SOURCE: &str = "const unsigned cudnn_NAME_version = WORD;
unsigned long cudnnNAMEVersion(void) { return NUMBER; }
";
/// The main library returns the version of a part that it opens by name, as the real one does.
const MAIN_SOURCE: &str = r#"#include <dlfcn.h>
#include <stdlib.h>
unsigned long cudnnGetVersion(void) {
  void *part = dlopen("libcudnn_graph.so.9", RTLD_NOW);
  unsigned long (*get)(void) = part ? (unsigned long (*)(void))dlsym(part, "cudnngraphVersion") : 0;
  if (!get) abort();
  return get();
}
"#;
const OPENS: &str = r#"#include <dlfcn.h>
#include <stdio.h>
int opens(void) {
  void *library = dlopen("libcudnn.so.9", RTLD_NOW);
  unsigned long (*get)(void) = library ? (unsigned long (*)(void))dlsym(library, "cudnnGetVersion") : 0;
  printf("%lu\n", get ? get() : 0);
  return 0;
}
"#;
const LINKS: &str = "#include <stdio.h>
unsigned long cudnnGetVersion(void);
int main(void) { printf(\"%lu\\n\", cudnnGetVersion()); return 0; }
";
/// Starts a program with two values of `LD_LIBRARY_PATH`.
const TWICE: &str = r#"#include <stdio.h>
#include <unistd.h>
int main(int n, char **a) {
  static char one[9999], two[9999];
  char *variables[] = {one, two, 0};
  (void)n;
  snprintf(one, sizeof one, "LD_LIBRARY_PATH=%s", a[1]);
  snprintf(two, sizeof two, "LD_LIBRARY_PATH=%s", a[2]);
  execve(a[3], a + 3, variables);
  return 99;
}
"#;
const AUDIT: &str = r#"#include <stdint.h>
#include <string.h>
unsigned la_version(unsigned version) { return version; }
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
  static char other[4096];
  const char *base = strrchr(name, '/');
  (void)cookie; (void)flag;
  if (!base || strncmp(base, "/libcudnn", 9)) return (char *)name;
  strcpy(other, AUDITED);
  return strcat(other, base);
}
"#;

/// The object that opens cuDNN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Program,
    /// The program links cuDNN.
    Linker,
    /// A library, which another library loads.
    Library,
}

const CALLERS: [Caller; 3] = [Caller::Program, Caller::Linker, Caller::Library];
/// Linker options for the path list of a program.
const PATHS: [&str; 3] = ["", "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"];

/// Options of the command line.
struct Options {
    seed: u64,
    count: u64,
    only: Option<u64>,
    compiler: String,
    roots: Vec<PathBuf>,
    inside: Option<PathBuf>,
}

fn read_options() -> Result<Options, String> {
    let mut options =
        Options { seed: 1, count: 200, only: None, compiler: "gcc".to_owned(), roots: Vec::new(), inside: None };
    let mut words = std::env::args().skip(1);
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{option} {value}: expected a number"));
        match option.as_str() {
            "--seed" => options.seed = number()?.max(1),
            "--count" => options.count = number()?,
            "--only" => options.only = Some(number()?),
            "--compiler" => options.compiler = value,
            "--root" => options.roots.push(value.into()),
            "--inside" => options.inside = Some(value.into()),
            _ => return Err(format!("no such option: {option}")),
        }
    }
    if options.roots.is_empty() {
        options.roots.push("/".into());
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match read_options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("arrangements: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(root) = &options.inside {
        return run_inside(&options, root);
    }
    let mut all_agree = true;
    for root in &options.roots {
        let here = std::env::current_exe().expect("this program");
        let user = if is_root() { &["-m"][..] } else { &["-r", "-m"] };
        let mut command = Command::new("unshare");
        command.args(user).arg(here).arg("--inside").arg(root);
        command.args(["--seed", &options.seed.to_string(), "--count", &options.count.to_string()]);
        if let Some(only) = options.only {
            command.args(["--only", &only.to_string()]);
        }
        command.args(["--compiler", &options.compiler]);
        all_agree &= command.status().expect("unshare can be started").success();
    }
    if all_agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// Builds the files in a root, then makes and compares the arrangements.
fn run_inside(options: &Options, root: &Path) -> ExitCode {
    let work = root.join(format!("tmp/arrangements-{}", std::process::id()));
    fs::create_dir_all(&work).expect("a directory can be made");
    fs::set_permissions(&work, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let in_root = |path: &Path| Path::new("/").join(path.strip_prefix(root).expect("it is in the root"));
    let builder = Builder { work: work.clone(), root: root.to_owned(), compiler: options.compiler.clone() };
    builder.build();
    let cache = work.join("cache");
    let system = root.join("etc/ld.so.cache");
    if fs::copy(&system, &cache).is_err() {
        fs::write(&cache, "").expect("a file can be written");
        fs::write(&system, "").expect("a file can be written");
    }
    mount_bind(&cache, &system).expect("the cache can be replaced");
    if root != Path::new("/") {
        rustix::process::chroot(root).expect("the root can be entered");
        std::env::set_current_dir("/").expect("the root can be entered");
        mount("proc", "/proc", "proc", MountFlags::empty(), c"").expect("/proc can be mounted");
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown system");
    let work = in_root(&work);
    let mut tally = Tally::default();
    let (first, count) = options.only.map_or((0, options.count), |only| (only, 1));
    for index in first..first.saturating_add(count) {
        compare(&work, options, index, &mut tally);
    }
    println!("{}: seed {}, {}", name.trim_matches('"'), options.seed, tally.describe());
    fs::remove_dir_all(&work).unwrap_or_default();
    if tally.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Tally {
    total: u32,
    fits: u32,
    older: u32,
    absent: u32,
    not_loaded: u32,
    fails_later: u32,
    differences: u32,
}

impl Tally {
    fn describe(&self) -> String {
        format!(
            "{} arrangements ({} fit, {} have an older cuDNN, {} find none, {} are not started by the dynamic linker, {} \
             have a cuDNN that fails), {} differences",
            self.total, self.fits, self.older, self.absent, self.not_loaded, self.fails_later, self.differences
        )
    }
}

/// Builds programs and libraries with the compiler of a root.
struct Builder {
    work: PathBuf,
    root: PathBuf,
    compiler: String,
}

impl Builder {
    fn build(&self) {
        for dir in ["lib", "programs", "app"] {
            fs::create_dir_all(self.work.join(dir)).expect("a directory can be made");
        }
        for (index, (major, minor, patch)) in VERSIONS.iter().enumerate() {
            let number = major * 10000 + minor * 100 + patch;
            for inner in INNER {
                let stem = inner.trim_start_matches("libcudnn_").trim_end_matches(".so.9");
                let word = format!("{:#x}", major << 16 | minor << 8 | patch);
                let text = INNER_SOURCE.replace("NAME", stem).replace("WORD", &word);
                self.library(&format!("lib/{inner}.{index}"), inner, &text.replace("NUMBER", &number.to_string()), &[]);
            }
        }
        for (style, options) in
            [&["-Wl,--enable-new-dtags,-rpath,$ORIGIN"][..], &["-Wl,--disable-new-dtags,-rpath,$ORIGIN"], &[]]
                .iter()
                .enumerate()
        {
            self.library(&format!("lib/{SONAME}.{style}"), SONAME, MAIN_SOURCE, options);
        }
        self.library(
            "lib/libaudit.so",
            "libaudit.so",
            AUDIT,
            &[&format!("-DAUDITED=\"{}/scene/d{}\"", self.in_root("").trim_end_matches('/'), DIRS - 1)],
        );
        self.gcc(&["-o", "programs/twice"], "twice.c", TWICE, &[]);
        for caller in CALLERS {
            let guard = self.guard(caller);
            for (index, path) in PATHS.iter().enumerate() {
                for guarded in [false, true] {
                    self.program(caller, index, path, guarded.then_some(guard.as_str()));
                }
            }
        }
    }

    /// Returns a path for a process in the root.
    fn in_root(&self, name: &str) -> String {
        let path = self.work.join(name);
        Path::new("/").join(path.strip_prefix(&self.root).expect("it is in the root")).display().to_string()
    }

    fn gcc(&self, first: &[&str], file: &str, source: &str, more: &[&str]) {
        fs::write(self.work.join(file), source).expect("a file can be written");
        let work = self.in_root("");
        let line = "cd \"$0\" && exec \"$@\"";
        let mut command = Command::new("/usr/sbin/chroot");
        command
            .arg(&self.root)
            .args(["/bin/sh", "-c", line, &work, &self.compiler, "-w"])
            .args(first)
            .arg(file)
            .args(more)
            .arg("-ldl");
        let done = command.output().expect("chroot can be started");
        assert!(done.status.success(), "gcc {file}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn library(&self, path: &str, soname: &str, source: &str, options: &[&str]) {
        let soname = format!("-Wl,-soname,{soname}");
        self.gcc(&["-shared", "-fPIC", "-O1", &soname, "-o", path], "library.c", source, options);
    }

    /// Compiles the guard for this caller, and returns the name of the object.
    fn guard(&self, caller: Caller) -> String {
        let policy = match caller {
            Caller::Program => "cudnn.linkage = \"dlopened\"\n",
            Caller::Linker => "",
            Caller::Library => "cudnn.linkage = \"dlopened\"\n[runtime]\nlibrary = \"enforce\"\n",
        };
        let object = format!("guard-{caller:?}.o");
        fs::write(self.work.join("cudaguard.toml"), policy).expect("a file can be written");
        let (toolkit, cudnn) = (parts::cuda("13.0"), parts::cudnn("9.15.1").join("include"));
        self.command(&[
            "embed",
            "--name",
            "app",
            "--toolkit",
            &toolkit.display().to_string(),
            "-I",
            &cudnn.display().to_string(),
            "--compiler",
            &self.compiler,
            "-o",
            &object,
        ]);
        object
    }

    /// Runs the command on this machine, in the directory.
    fn command(&self, arguments: &[&str]) {
        let done =
            Command::new(command::path()).args(["cudaguard", "-q"]).args(arguments).current_dir(&self.work).output();
        let done = done.expect("the command can be started");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Builds a program with room for a path list in the object that searches cuDNN.
    fn program(&self, caller: Caller, index: usize, path: &str, guard: Option<&str>) {
        let kind = if guard.is_some() { "guarded" } else { "plain" };
        let output = format!("programs/{kind}-{caller:?}-{index}");
        let list = format!("-Wl,-rpath,/{}", "P".repeat(ROOM));
        let mut options = if path.is_empty() { Vec::new() } else { vec![path, &list] };
        let built = format!("lib/{SONAME}.0");
        let guard_objects: Vec<&str> = guard.into_iter().collect();
        match caller {
            Caller::Program => {
                let source = format!("{OPENS}int main(void) {{ return opens(); }}\n");
                self.gcc(&["-c", "-o", "main.o"], "main.c", &source, &[]);
                self.link(&output, "main.o", &guard_objects, &options);
            }
            Caller::Linker => {
                self.gcc(&["-c", "-o", "main.o"], "main.c", LINKS, &[]);
                options.push(&built);
                self.link(&output, "main.o", &guard_objects, &options);
            }
            Caller::Library => {
                self.gcc(&["-c", "-fPIC", "-o", "main.o"], "main.c", OPENS, &[]);
                let inner = format!("{output}-libinner.so");
                options.extend(["-shared", "-Wl,-soname,libinner.so"]);
                self.link(&inner, "main.o", &guard_objects, &options);
                let mid = format!("{output}-libmid.so");
                let chain = ["-Wl,--disable-new-dtags", list.as_str(), &inner];
                self.library(&mid, "libmid.so", "int opens(void); int calls(void) { return opens(); }", &chain);
                let main = "int calls(void); int main(void) { return calls(); }";
                let chain = ["-Wl,--allow-shlib-undefined,--disable-new-dtags", list.as_str(), &mid];
                self.gcc(&["-o", &output], "main.c", main, &chain);
            }
        }
    }

    fn link(&self, output: &str, object: &str, guard: &[&str], options: &[&str]) {
        let all: Vec<&str> = guard.iter().chain(options).copied().collect();
        self.gcc(&["-o", output, object], "nothing.c", "", &all);
        if let [guard] = guard {
            self.command(&["seal", output, object, guard]);
        }
    }
}

/// Writes a path list into the room that a program has for it.
fn put_list(file: &Path, list: &str) {
    let mut bytes = fs::read(file).expect("a file can be read");
    let room = [b"/".as_slice(), "P".repeat(ROOM).as_bytes()].concat();
    let Some(at) = bytes.windows(room.len()).position(|window| window == room) else { return };
    assert!(list.len() < ROOM, "{list}");
    bytes[at..at + list.len()].copy_from_slice(list.as_bytes());
    bytes[at + list.len()] = 0;
    fs::write(file, bytes).expect("a file can be written");
}

/// The place of cuDNN's files in a directory, and the changes to them.
fn put_cudnn(dice: &mut Dice, work: &Path, dir: &Path, is_musl: bool, log: &mut String) {
    fs::create_dir_all(dir).expect("a directory can be made");
    let (index, style) = (dice.pick(&[0, 0, 1, 1, 2, 3]), dice.pick(&[0, 0, 0, 1, 2]));
    let target = dir.join(SONAME);
    let how = if dice.one_in(4) { dice.below(8) + 1 } else { 0 };
    // musl does not read the processor and the class of a file, so it loads a file of which only these differ.
    let how = if is_musl && matches!(how, 2 | 6) { 0 } else { how };
    let real = work.join(format!("lib/{SONAME}.{style}"));
    let _ = write!(log, "\n  {}: {:?}, style {style}, change {how}", dir.display(), VERSIONS[index]);
    let bytes = || fs::read(&real).expect("a library");
    match how {
        1 => fs::write(&target, "").expect("a file"),
        2 => {
            let mut other = bytes();
            other[18] = 183;
            fs::write(&target, other).expect("a file");
        }
        3 => symlink("nothing", &target).expect("a link"),
        4 => symlink(SONAME, &target).expect("a link"),
        5 => fs::write(&target, "INPUT(libcudnn.so.9.1)\n".repeat(9)).expect("a file"),
        6 => {
            let mut other = bytes();
            other[4] = 1;
            fs::write(&target, other).expect("a file");
        }
        7 => {
            // Without a version in its name, because the file has no version of its own.
            fs::hard_link(&real, dir.join("file")).expect("a link");
            symlink("file", &target).expect("a link");
        }
        _ => fs::hard_link(&real, &target).expect("a link"),
    }
    let of = match dice.below(12) {
        0 => return,
        1 => dice.below(VERSIONS.len()),
        _ => index,
    };
    let _ = write!(log, ", parts {:?}", VERSIONS[of]);
    for inner in INNER {
        fs::hard_link(work.join(format!("lib/{inner}.{of}")), dir.join(inner)).expect("a link");
    }
}

/// Returns a random path list. `from` is the directory of the object, relative to the scene.
fn path_list(dice: &mut Dice, scene: &Path, separators: &[&str]) -> String {
    let mut list = String::new();
    for at in 0..=dice.below(4) {
        if at > 0 {
            list.push_str(dice.pick(separators));
        }
        let dir = format!("d{}", dice.below(DIRS));
        let whole = scene.display();
        let element = match dice.below(16) {
            0 => String::new(),
            1 => dir,
            2 => format!("$ORIGIN/../{dir}"),
            3 => format!("${{ORIGIN}}/../{dir}"),
            4 => format!("{whole}/{dir}/"),
            5 => format!("{whole}/$LIB/../../{dir}"),
            6 => format!("{whole}/{dir}/$PLATFORM"),
            7 => format!("{whole}/gone"),
            8 => format!("{whole}/$ORIGINAL/{dir}"),
            9 => format!("{whole}/app/prog"),
            _ => format!("{whole}/{dir}"),
        };
        list.push_str(&element);
    }
    list
}

/// A program that was made for an arrangement, and the way to start it.
struct Start {
    scene: PathBuf,
    variables: BTreeMap<String, OsString>,
    twice: Option<(String, String)>,
    is_secure: bool,
    is_musl: bool,
}

impl Start {
    fn run(&self, program: &Path) -> Output {
        let mut command = match &self.twice {
            Some((one, two)) => {
                let mut command = Command::new(self.scene.with_file_name("programs").join("twice"));
                command.args([one, two]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.env_clear().envs(&self.variables).current_dir(&self.scene).stdin(Stdio::null());
        if self.is_secure {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().expect("a program can be started")
    }

    /// Returns whether the prediction refuses the program.
    fn is_refused_by_prediction(&self, program: &Path) -> bool {
        let mut variables = self.variables.clone();
        if let Some((first, last)) = &self.twice {
            // glibc uses the last value of a variable, musl the first one.
            let used = if self.is_musl { first } else { last };
            variables.insert("LD_LIBRARY_PATH".to_owned(), used.into());
        }
        let env = Env::from_variables(variables, &self.scene);
        let predict = || !start::start_here(program, &env, &DriverProbe::with_current_exe()).is_empty();
        if !self.is_secure {
            return predict();
        }
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: these only change the process, and end it.
                unsafe {
                    libc::setgid(NOBODY);
                    libc::setuid(NOBODY);
                    // Otherwise root owns the files of this process in /proc.
                    libc::prctl(libc::PR_SET_DUMPABLE, 1);
                    libc::_exit(i32::from(predict()));
                }
            }
            child => {
                let mut status = 0;
                // SAFETY: the child was just started.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                libc::WEXITSTATUS(status) == 1
            }
        }
    }
}

/// Gives a file the capability to bind ports, which makes a process secure.
fn add_capability(file: &Path) -> bool {
    const REVISION_2_EFFECTIVE: u32 = 0x0200_0001;
    let mut value = REVISION_2_EFFECTIVE.to_le_bytes().to_vec();
    value.extend(1_u32.rotate_left(10).to_le_bytes());
    value.resize(20, 0);
    let path = CString::new(file.as_os_str().as_encoded_bytes()).expect("no NUL");
    // SAFETY: the path and the value are valid.
    let set = unsafe {
        libc::setxattr(path.as_ptr(), c"security.capability".as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    set == 0
}

/// The caches: of the system, of random directories, or unreadable.
fn put_cache(dice: &mut Dice, work: &Path, scene: &Path, log: &mut String) {
    let mut text = String::new();
    for _ in 0..=dice.below(3) {
        let _ = writeln!(text, "{}/d{}", scene.display(), dice.below(DIRS));
    }
    let (configuration, made) = (work.join("conf"), work.join("made"));
    let kind = dice.below(8);
    if kind == 0 {
        let _ = write!(log, "\n  cache: not readable");
        return fs::write("/etc/ld.so.cache", "no cache\n".repeat(20)).expect("it is ours");
    }
    if kind > 4 {
        text.clear();
    }
    fs::write(&configuration, &text).expect("a file can be written");
    let mut ldconfig = Command::new("/sbin/ldconfig");
    ldconfig.args(["-X", "-i", "-f"]).arg(&configuration).arg("-C").arg(&made);
    let done = ldconfig.output().expect("ldconfig can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let _ = write!(log, "\n  cache: {}", text.trim().replace('\n', " "));
    // The old format also occurs, with a NUL at the end.
    let mut bytes = fs::read(&made).expect("a file");
    if dice.one_in(5) {
        bytes.push(0);
    }
    fs::write("/etc/ld.so.cache", bytes).expect("it is ours");
}

/// Makes an arrangement, and compares its three answers.
fn compare(work: &Path, options: &Options, index: u64, tally: &mut Tally) {
    let (dice, mut log) = (&mut Dice::new(options.seed, index), String::new());
    let is_musl = options.compiler.starts_with("musl");
    let scene = work.join("scene");
    let _ = fs::remove_dir_all(&scene);
    fs::create_dir_all(scene.join("app")).expect("a directory can be made");
    for number in 0..DIRS {
        let dir = scene.join(format!("d{number}"));
        fs::create_dir_all(&dir).expect("a directory can be made");
        if !dice.one_in(4) {
            put_cudnn(dice, work, &dir, is_musl, &mut log);
        }
        if dice.one_in(6) {
            let below = dir.join(dice.pick(&HARDWARE));
            put_cudnn(dice, work, &below, is_musl, &mut log);
        }
    }
    if dice.one_in(10) {
        put_cudnn(dice, work, &scene, is_musl, &mut log);
    }
    put_cache(dice, work, &scene, &mut log);
    if dice.one_in(8) {
        let gone = scene.join(format!("d{}", dice.below(DIRS))).join(dice.pick(&[SONAME, INNER[0]]));
        let _ = write!(log, "\n  deleted after the cache was made: {}", gone.display());
        let _ = fs::remove_file(gone);
    }
    let mut start = Start { scene: scene.clone(), variables: BTreeMap::new(), twice: None, is_secure: false, is_musl };
    match dice.below(12) {
        0 => {
            let mut list = || path_list(dice, &scene, &[":", ";"]);
            start.twice = Some((list(), list()));
        }
        1..7 => {
            let list = path_list(dice, &scene, &[":", ":", ";"]);
            start.variables.insert("LD_LIBRARY_PATH".to_owned(), list.into());
        }
        _ => {}
    }
    if start.twice.is_none() && dice.one_in(14) {
        let name = scene.join(format!("d{}", dice.below(DIRS))).join(SONAME);
        start.variables.insert("LD_PRELOAD".to_owned(), name.into());
    }
    let is_audited = start.twice.is_none() && dice.one_in(25);
    if is_audited {
        start.variables.insert("LD_AUDIT".to_owned(), work.join("lib/libaudit.so").into());
    }
    let (caller, path) = (dice.pick(&CALLERS), dice.below(PATHS.len()));
    let _ = write!(log, "\n  {caller:?}, {}, {:?} {:?}", PATHS[path], start.variables, start.twice);
    let lists = [0; 3].map(|_| path_list(dice, &scene, &[":"]));
    let by_link = dice.one_in(10);
    let is_capable = caller != Caller::Library && dice.one_in(10);
    let mut answers = Vec::new();
    for kind in ["plain", "guarded"] {
        let from = work.join(format!("programs/{kind}-{caller:?}-{path}"));
        let program = scene.join("app/prog");
        let copy = |from: &Path, to: &Path, list: &str| {
            let _ = fs::remove_file(to);
            fs::copy(from, to).expect("a file can be copied");
            put_list(to, list);
        };
        if caller == Caller::Library {
            // The first element finds the libraries of the program.
            let lists = [0, 1, 2].map(|at| format!("$ORIGIN:{}", lists[at]));
            copy(&from, &program, &lists[0]);
            for (library, list) in ["libmid.so", "libinner.so"].iter().zip(&lists[1..]) {
                let from = work.join(format!("programs/{kind}-{caller:?}-{path}-{library}"));
                copy(&from, &scene.join("app").join(library), list);
            }
        } else {
            copy(&from, &program, &lists[0]);
        }
        start.is_secure = is_capable && is_root() && add_capability(&program);
        let started = if by_link { scene.join("link") } else { program.clone() };
        if by_link && kind == "plain" {
            symlink("app/prog", &started).expect("a link");
        }
        answers.push(start.run(&started));
        if kind == "guarded" {
            let refused = !is_audited && start.is_refused_by_prediction(&started);
            let _ = write!(log, "\n  secure: {}, lists {lists:?}", start.is_secure);
            judge(index, &log, &answers, (!is_audited).then_some(refused), options.only.is_some(), tally);
        }
    }
}

/// Compares the answers: the program without a guard, with a guard, and the prediction.
fn judge(index: u64, log: &str, answers: &[Output], refused: Option<bool>, is_shown: bool, tally: &mut Tally) {
    let [plain, guarded] = answers else { panic!("two programs") };
    let loaded: Option<u32> = String::from_utf8_lossy(&plain.stdout).trim().parse().ok();
    tally.total += 1;
    // `None`: not compared.
    let is_wrong = match loaded {
        _ if plain.status.signal().is_some() => {
            tally.fails_later += 1;
            None
        }
        None => {
            tally.not_loaded += 1;
            Some(true)
        }
        Some(0) => {
            tally.absent += 1;
            Some(false)
        }
        Some(version) if version < BUILT / 100 * 100 => {
            tally.older += 1;
            Some(true)
        }
        Some(_) => {
            tally.fits += 1;
            Some(false)
        }
    };
    let stops = guarded.status.code() == Some(REFUSED) || (loaded.is_none() && guarded.status == plain.status);
    let mut problems = Vec::new();
    for (who, stops) in [("guard", Some(stops)), ("verify", refused)] {
        match (is_wrong, stops) {
            (Some(true), Some(false)) => problems.push(format!("{who}: starts although it must not")),
            (Some(false), Some(true)) => problems.push(format!("{who}: refused although it runs")),
            _ => {}
        }
    }
    if guarded.status.code() != Some(REFUSED) && guarded.stdout != plain.stdout {
        problems.push("guard: changes the program".to_owned());
    }
    tally.differences += u32::from(!problems.is_empty());
    if !problems.is_empty() || is_shown {
        println!(
            "arrangement {index}: {problems:?}{log}\n  plain: {:?} {}{}\n  guarded: {:?} {}{}",
            plain.status,
            String::from_utf8_lossy(&plain.stdout),
            String::from_utf8_lossy(&plain.stderr),
            guarded.status,
            String::from_utf8_lossy(&guarded.stdout),
            String::from_utf8_lossy(&guarded.stderr)
        );
    }
}
