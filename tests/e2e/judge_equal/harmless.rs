//! Checks that the guard does not harm the program, and that it works with all compilers and linkers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use cargo_cudaguard::guard::{self, Tool};
use cudaguard::internal::cudnn;
use cudaguard::internal::guard::GuardObjects;
use cudaguard::internal::manifest::{Component, Linkage, Manifest};
use cudaguard::internal::note;
use cudaguard_tests::{Call, Outcome, Scratch, e2e, last_report, skip, tools};

use super::fixture::{Arch, MAIN, NATIVE, Says, descriptor, manifest, templates, version};

/// A guarded program, in a directory with the fake cuDNN that it finds.
pub(super) struct Scene {
    pub(super) scratch: Scratch,
    pub(super) program: PathBuf,
}

pub(super) fn built() -> Manifest {
    manifest("demo", version("9.15.1"), Linkage::Linked)
}

impl Scene {
    pub(super) fn new(manifest: &Manifest, graph: &str, says: Says) -> Self {
        let scratch = Scratch::new("guarded");
        NATIVE.loader(&scratch.join("lib/libcudnn.so.9"), 9, says);
        for (file, symbol) in
            [("libcudnn_graph.so.9", "cudnn_graph_version"), ("libcudnn_ops.so.9", "cudnn_ops_infer_version")]
        {
            let word = (!graph.is_empty()).then(|| version(graph));
            NATIVE.part(&scratch.join("lib").join(file), symbol, word, "-Wl,--hash-style=gnu");
        }
        for part in cudnn::parts_of_major(9).filter(|part| part.symbol.is_empty()) {
            NATIVE.part(&scratch.join("lib").join(part.file), "", None, "-Wl,--hash-style=gnu");
        }
        let program = scratch.join("program");
        NATIVE.program(&program, &[descriptor(manifest)], Some(9));
        Self { scratch, program }
    }

    pub(super) fn older() -> Self {
        Self::new(&built(), "9.1.0", Says::Number(90_100))
    }

    pub(super) fn right() -> Self {
        Self::new(&built(), "9.15.1", Says::Number(91_501))
    }

    pub(super) fn mute() -> Self {
        Self::new(&built(), "", Says::Nothing)
    }

    /// Creates a scene whose cuDNN has no version symbol, and returns this number when it is called.
    pub(super) fn asked(says: u32) -> Self {
        Self::new(&built(), "", Says::Number(says))
    }

    pub(super) fn lib(&self) -> PathBuf {
        self.scratch.join("lib")
    }

    pub(super) fn call(&self, program: &Path) -> Call {
        Call::new(program).env("LD_LIBRARY_PATH", self.lib()).dir(self.scratch.path())
    }

    fn shell(&self, script: &str) -> Outcome {
        self.call(Path::new("sh")).args(["-c", script]).run()
    }

    pub(super) fn report(&self) -> serde_json::Value {
        last_report(&self.scratch.join("report.json"))
    }
}

#[e2e]
fn modes_control_refusal() {
    let scene = Scene::older();
    for (mode, status, words) in [
        ("", 78, "error[CG202]"),
        ("enforce", 78, "error[CG202]"),
        ("warn", 0, "warning[CG202]"),
        ("off", 0, ""),
        ("loud", 78, "CUDAGUARD is loud, not off, warn or enforce: ignored"),
    ] {
        let outcome = scene.call(&scene.program).env("CUDAGUARD", mode).run().expect(status);
        assert!(outcome.stderr.contains(words), "{mode}: {outcome}");
        assert_eq!(outcome.stderr.is_empty(), words.is_empty(), "{mode}: {outcome}");
        assert_eq!(outcome.stdout, if status == 0 { "main ran\n" } else { "" }, "{mode}: {outcome}");
    }
    let outcome = scene.call(&scene.program).arg("check").env("CUDAGUARD", "off").run().success();
    assert_eq!(outcome.stdout, "check 2 CUDAGUARD=off switches the guard off\nmain ran\n");
    let right = Scene::right();
    for mode in ["", "enforce", "warn", "off"] {
        let outcome = right.call(&right.program).arg("check").env("CUDAGUARD", mode).run().success();
        assert_eq!(outcome.stderr, "", "{mode}");
        assert!(mode == "off" || outcome.stdout == "check 0 \nmain ran\n", "{mode}: {outcome}");
    }
    // A later check does not read the variable again.
    let outcome = right.call(&right.program).arg("check").env("CUDAGUARD", "loud").run().success();
    assert_eq!(outcome.stderr.matches("CUDAGUARD is loud").count(), 1, "{outcome}");
}

#[e2e]
fn warn_manifest_does_not_refuse() {
    let mut lenient = built();
    lenient.runtime.mismatch_warns = true;
    let scene = Scene::new(&lenient, "9.1.0", Says::Number(90_100));
    let outcome = scene.call(&scene.program).arg("check").run().success();
    assert!(outcome.stderr.contains("warning[CG202]") && outcome.stderr.lines().count() <= 6, "{outcome}");
    assert!(outcome.stdout.starts_with("check 1 [CG202] cuDNN 9.1.0 is older than cuDNN 9.15.1"), "{outcome}");
    let _ = scene.call(&scene.program).env("CUDAGUARD", "enforce").run().expect(78);
}

#[e2e]
fn refusal_message_matches_snapshot() {
    let scene = Scene::older();
    let outcome = scene.call(&scene.program).env("CUDAGUARD_REPORT", "report.json").run().expect(78);
    let dir = scene.lib();
    assert_eq!(
        outcome.stderr,
        format!(
            "cudaguard: error[CG202]: cuDNN 9.1.0 is older than cuDNN 9.15.1, which demo 0.1.0 was built with\n  \
             built with: cuDNN 9.15.1 (demo 0.1.0)\n  \
             found:      cuDNN 9.1.0 in {0}/libcudnn.so.9\n  \
             picked by:  LD_LIBRARY_PATH\n  \
             what to do: update it, or put cuDNN 9.15.0 or newer first in LD_LIBRARY_PATH; or rebuild with \
             cuDNN 9.1.0 and its CUDA\n  \
             (CUDAGUARD=warn starts it anyway; CUDAGUARD_REPORT=FILE writes a report)\n",
            dir.display()
        )
    );
    let report = scene.report();
    assert_eq!(report["verdict"], "refused");
    assert_eq!(report["action"], "refuse");
    assert_eq!(report["role"], "program");
    assert_eq!(report["file"], scene.program.to_str().expect("UTF-8"));
    assert_eq!(report["components"][0]["name"], "demo");
    assert_eq!(report["components"][0]["cudnn"]["version"], "9.1.0");
    let finding = &report["findings"][0];
    for key in ["code", "severity", "component", "subject", "message", "hint"] {
        assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {report}");
    }
    // The message names RUNPATH if it decided.
    let program = scene.scratch.join("by-runpath");
    let options = [
        format!("-L{}", dir.display()),
        "-Wl,--no-as-needed,-l:libcudnn.so.9".to_owned(),
        "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib".to_owned(),
    ];
    NATIVE.guarded(&format!("by-runpath-{}", std::process::id()), &program, &[descriptor(&built())], MAIN, &options);
    let outcome = Call::new(&program).run().expect(78);
    assert!(outcome.stderr.contains(&format!("picked by:  RUNPATH of {}", program.display())), "{outcome}");
    // A component name must not add lines or control characters to the output.
    let mut evil = built();
    "two\nlines\u{1b}[2J".clone_into(&mut evil.component.name);
    NATIVE.program(&program, &[descriptor(&evil)], Some(9));
    let outcome = scene.call(&program).env("CUDAGUARD_REPORT", "report.json").run().expect(78);
    assert!(outcome.stderr.lines().count() == 6 && !outcome.stderr.contains('\u{1b}'), "{outcome}");
    assert_eq!(scene.report()["verdict"], "refused");
}

#[e2e]
fn closed_standard_files_stay_closed() {
    let older = Scene::older();
    let right = Scene::right();
    let mute = Scene::mute();
    for redirections in ["2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", "<&-"] {
        let _ = older.shell(&format!("./program {redirections}")).expect(78);
        for scene in [&right, &mute] {
            let outcome = scene.shell(&format!("CUDAGUARD_REPORT=report.json ./program {redirections}"));
            assert!(outcome.status() == Some(0), "{redirections}: {outcome}");
        }
        assert_eq!(right.report()["verdict"], "runs", "{redirections}");
        // The pipe of the child reused the number of a closed file, and the child still answers.
        assert_eq!(mute.report()["level"], 1, "{redirections}");
    }
}

/// Starts programs under conditions that a shell cannot make.
pub(crate) const LAUNCHER: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  (void)argc;
  signal(SIGPIPE, SIG_DFL);
  if (!strcmp(argv[1], "broken-pipe")) {
    int ends[2];
    if (pipe(ends)) return 1;
    close(ends[0]);
    dup2(ends[1], 2);
    close(ends[1]);
  } else if (!strcmp(argv[1], "full-pipe") || strstr(argv[1], "-socket")) {
    static char much[65536];
    int ends[2];
    if (strstr(argv[1], "-socket") ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) return 1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (strstr(argv[1], "full-") && write(ends[1], much, sizeof much) > 0);
    fcntl(ends[1], F_SETFL, 0);
    if (!strcmp(argv[1], "gone-socket")) close(ends[0]);
    dup2(ends[1], 2);
    close(ends[1]);
  } else if (!strcmp(argv[1], "no-file-size")) {
    struct rlimit none = {0, 0};
    int file = open("words", O_WRONLY | O_CREAT, 0600);
    dup2(file, 2);
    close(file);
    signal(SIGXFSZ, SIG_DFL);
    if (setrlimit(RLIMIT_FSIZE, &none)) return 1;
  } else if (!strcmp(argv[1], "no-process")) {
    struct sock_filter deny[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
#ifdef SYS_fork
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 1, 0),
#else
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 9999, 1, 0),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof deny / sizeof deny[0], deny};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
  } else if (!strcmp(argv[1], "ignored-children")) {
    signal(SIGCHLD, SIG_IGN);
  }
  execv(argv[2], argv + 2);
  return 1;
}
"#;

fn launch(scene: &Scene, how: &str) -> Outcome {
    launch_reporting(scene, how, "report.json")
}

fn launch_reporting(scene: &Scene, how: &str, report: &str) -> Outcome {
    let source = scene.scratch.file("launcher.c", LAUNCHER);
    let launcher = scene.scratch.join("launcher");
    let _ = Call::new("cc").args(["-O1", "-w", "-o"]).arg(&launcher).arg(source).run().success();
    scene.call(&launcher).arg(how).arg(&scene.program).env("CUDAGUARD_REPORT", report).run()
}

#[e2e]
fn unread_pipe_does_not_kill() {
    let outcome = launch(&Scene::older(), "broken-pipe");
    assert_eq!((outcome.status(), outcome.signal()), (Some(78), None), "{outcome}");
    let mut lenient = built();
    lenient.runtime.mismatch_warns = true;
    let outcome = launch(&Scene::new(&lenient, "9.1.0", Says::Nothing), "broken-pipe");
    assert_eq!((outcome.status(), outcome.signal()), (Some(0), None), "{outcome}");
}

/// Returns scenes of a refused program and of one with a warning, with their exit statuses.
fn reported() -> [(Scene, i32); 2] {
    let mut lenient = built();
    lenient.runtime.mismatch_warns = true;
    [(Scene::older(), 78), (Scene::new(&lenient, "9.1.0", Says::Nothing), 0)]
}

const NOWHERE: [&str; 5] = ["broken-pipe", "full-pipe", "gone-socket", "full-socket", "no-file-size"];

#[e2e(slow)]
fn blocked_stderr_does_not_hang() {
    for (scene, status) in reported() {
        for how in NOWHERE {
            let outcome = launch(&scene, how);
            assert_eq!((outcome.status(), outcome.signal()), (Some(status), None), "{how}: {outcome}");
        }
    }
}

#[e2e(slow)]
fn blocked_report_does_not_hang() {
    for (scene, status) in reported() {
        let _ = Call::new("mkfifo").arg(scene.scratch.join("fifo")).run().success();
        let places = ["/dev/stderr", "/proc/self/fd/2", "fifo"].into_iter();
        for (how, place) in places.flat_map(|place| NOWHERE.map(|how| (how, place))) {
            let outcome = launch_reporting(&scene, how, place);
            assert_eq!((outcome.status(), outcome.signal()), (Some(status), None), "{how} {place}: {outcome}");
        }
    }
}

/// Returns a scene whose `cudnnGetVersion` has this body.
fn doing(body: &str) -> Scene {
    let scene = Scene::mute();
    let source = format!(
        "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nunsigned long cudnnGetVersion(void) {{ {body} }}\n"
    );
    let source = scene.scratch.file("doing.c", source);
    let name = ["-Wl,-soname,libcudnn.so.9", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"];
    let call = Call::new("cc").args(["-shared", "-fPIC"]).args(name).arg("-o").arg(scene.lib().join("libcudnn.so.9"));
    let _ = call.arg(source).run().success();
    scene
}

/// The daemon keeps the pipe of the child open, and the shim does not wait for it.
#[e2e]
fn library_with_daemon_does_not_hang() {
    let scene = doing(
        "if (!fork()) { setsid(); int f = creat(\"daemon\", 0600); dprintf(f, \"%d\", (int)getpid()); close(f); \
         for (int i = 0; i < 600 && !access(\"daemon\", F_OK); i++) sleep(1); _exit(0); } return 91501;",
    );
    let _ = scene.call(&scene.program).env("CUDAGUARD_REPORT", "report.json").run().success();
    assert_eq!((&scene.report()["verdict"], &scene.report()["level"]), (&"runs".into(), &1.into()));
    // Wait until the daemon has written its process ID. It ends when the file is deleted.
    let file = scene.scratch.join("daemon");
    let pid = (0..6000).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        fs::read_to_string(&file).ok().filter(|pid| !pid.is_empty())
    });
    let process = format!("/proc/{}", pid.expect("the daemon writes its number"));
    assert!(Path::new(&process).exists(), "the daemon ended before the program");
}

/// The exit handlers of the program run once, in the program and not in the child.
#[e2e]
fn library_that_exits_is_survived() {
    let scene = doing("exit(0);");
    let preload = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nstatic FILE *file;\nstatic void end(void) { \
                   fputs(\"end\\n\", file); fflush(file); }\n__attribute__((constructor)) static void loaded(void) {\n  file \
                   = fopen(\"ends\", \"a\");\n  fputs(\"begun\\n\", file);\n  atexit(end);\n}\n";
    let source = scene.scratch.file("preload.c", preload);
    let library = scene.lib().join("libends.so");
    let _ = Call::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).run().success();
    let preload = library.strip_prefix(scene.scratch.path()).expect("it is in the directory of the scenario");
    let call = scene.call(&scene.program).env("LD_PRELOAD", preload).env("CUDAGUARD_REPORT", "report.json");
    let outcome = call.run().success();
    assert_eq!(outcome.stdout, "main ran\n", "{outcome}");
    assert_eq!(fs::read_to_string(scene.scratch.join("ends")).expect("a file"), "begun\nend\n");
    assert_eq!((&scene.report()["verdict"], &scene.report()["level"]), (&"unknown".into(), &1.into()));
}

#[e2e(slow)]
fn timeout_is_respected() {
    let scene = Scene::new(&built(), "", Says::Hangs);
    for (given, seconds) in [("1", 1), ("3", 3), ("soon", 10)] {
        let call = scene.call(&scene.program).arg("check").env("CUDAGUARD_REPORT", "report.json");
        let outcome = call.env("CUDAGUARD_TIMEOUT", given).run().success();
        assert!(outcome.stdout.contains("CG501"), "{outcome}");
        let waited = (seconds > 1).then(|| serde_json::Value::from(seconds));
        assert_eq!(scene.report().get("waited_seconds"), waited.as_ref(), "{given}");
    }
    let swift = Scene::asked(91_501);
    let _ = swift.call(&swift.program).env("CUDAGUARD_REPORT", "report.json").run().success();
    assert_eq!(swift.report().get("waited_seconds"), None);
}

#[e2e]
fn unwritable_report_is_ignored() {
    for (scene, status) in [(Scene::right(), 0), (Scene::older(), 78)] {
        for place in ["/dev/full", "/nowhere/at/all", "/", "/dev/null"] {
            let _ = scene.call(&scene.program).env("CUDAGUARD_REPORT", place).run().expect(status);
        }
    }
}

#[e2e]
fn setuid_programs_ignore_variables() {
    for tool in ["setpriv", "unshare"] {
        tools::need(tool);
    }
    let scene = Scene::older();
    // Not in the directory of the test, which other users may not enter.
    let dir = std::env::temp_dir().join(format!("cudaguard-setuid-{}", std::process::id()));
    let _remove = Remove(dir.clone());
    fs::create_dir_all(dir.join("lib")).expect("a directory can be made");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
    for entry in fs::read_dir(scene.lib()).expect("a folder").flatten() {
        fs::copy(entry.path(), dir.join("lib").join(entry.file_name())).expect("a file can be copied");
    }
    let program = dir.join("program");
    let rpath = format!("-Wl,-rpath,{}/lib", dir.display());
    let options = [format!("-L{}/lib", dir.display()), "-Wl,--no-as-needed,-l:libcudnn.so.9".to_owned(), rpath];
    let source = format!(
        "#include <sys/auxv.h>\n{}",
        MAIN.replace("puts(\"main ran\")", "puts(getauxval(AT_SECURE) ? \"secure\" : \"not secure\")")
    );
    NATIVE.guarded(&format!("setuid-{}", std::process::id()), &program, &[descriptor(&built())], &source, &options);
    let call = |words: &[&str], guard: &str| {
        let call = Call::new(words[0]).args(&words[1..]).arg(&program);
        call.env("CUDAGUARD", guard).env("CUDAGUARD_REPORT", dir.join("report.json")).dir("/").run()
    };
    let more_rights = |mode: u32| fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("a mode");
    let is_secure = |words: &[&str]| {
        // Checks that the kernel starts the program in secure mode: otherwise `CUDAGUARD=off` disables the guard.
        let outcome = Call::new(words[0]).args(&words[1..]).arg(&program).env("CUDAGUARD", "off").dir("/").run();
        outcome.status() == Some(78) || outcome.stdout == "secure\n"
    };
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    // Root in a namespace may give a file a capability, which is effective in nested namespaces.
    let capability = format!(
        "python3 -c 'import os, struct, sys; os.setxattr(sys.argv[1], \"security.capability\", struct.pack(\"<5I\", \
         0x02000001, 1 << 10, 0, 0, 0))' '{}' && exec unshare -U \"$@\"",
        program.display()
    );
    let by_file = ["unshare", "-r", "sh", "-c", &capability, "sh"];
    let mut tried = 0;
    for (start, mode) in [(&nobody[..], 0o4755), (&by_file[..], 0o755)] {
        more_rights(mode);
        if !is_secure(start) {
            continue;
        }
        tried += 1;
        let outcome = call(start, "off").expect(78);
        assert!(outcome.stderr.contains("CG202") && outcome.stdout.is_empty(), "{outcome}");
        assert!(!dir.join("report.json").exists(), "a setuid program wrote to the path that its user set");
    }
    if tried == 0 {
        skip(
            "leave to start a program with more rights than one's own",
            "root, or a kernel that allows user namespaces",
        );
    }
}

struct Remove(PathBuf);

impl Drop for Remove {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[e2e]
fn failing_fork_does_not_refuse() {
    let mute = Scene::mute();
    let outcome = launch(&mute, "no-process");
    if outcome.status() == Some(99) {
        skip("seccomp filters", "a kernel that has them");
    }
    assert!(outcome.status() == Some(0) && outcome.stderr.is_empty(), "{outcome}");
    assert_eq!(mute.report()["findings"][0]["code"], "CG501");
    let _ = launch(&Scene::right(), "no-process").success();
    // The file shows the version, so no child is needed.
    let _ = launch(&Scene::older(), "no-process").expect(78);
    // The verdict about a missing sub-library depends on the answer of the loader library.
    let broken = Scene::older();
    for file in ["libcudnn_graph.so.9", "libcudnn_ops.so.9"] {
        fs::remove_file(broken.lib().join(file)).expect("it was there");
    }
    NATIVE.loader(&broken.lib().join("libcudnn.so.9"), 9, Says::Aborts);
    let _ = launch(&broken, "no-process").success();
    let _ = launch(&broken, "ignored-children").expect(78);
    let _ = launch(&broken, "nothing").expect(78);
}

/// In the new namespace, the child does not find its parent and ends before it calls the library. The verdict is then unknown.
#[e2e]
fn new_pid_namespace_is_handled() {
    tools::need("unshare");
    // The sub-libraries are missing, but the library answers, which only a child can detect.
    let scene = Scene::right();
    for file in ["libcudnn_graph.so.9", "libcudnn_ops.so.9"] {
        fs::remove_file(scene.lib().join(file)).expect("it was there");
    }
    let start = |call: Call| call.env("CUDAGUARD_REPORT", "report.json").run();
    let _ = start(scene.call(&scene.program)).success();
    assert_eq!(scene.report()["verdict"], "runs");
    if Call::new("unshare").args(["-r", "--pid", "true"]).run().status() != Some(0) {
        skip("namespaces of one's own", "root, or a kernel that allows user namespaces");
    }
    let _ = start(scene.call(Path::new("unshare")).args(["-r", "--pid", "./program"])).success();
    assert_eq!(scene.report()["verdict"], "unknown", "{:#}", scene.report());
}

#[e2e]
fn program_notices_no_child() {
    let scene = Scene::mute();
    let source = r"
#include <cudaguard.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int seen;
static void on_child(int signal) { seen += signal == SIGCHLD; }
static int at_start;
__attribute__((constructor(200))) static void early(void) { at_start = errno; }
int main(int argc, char **argv) {
  struct sigaction action = {0};
  int status = 0;
  pid_t child;
  if (argc < 2 || at_start) return 10;
  action.sa_handler = on_child;
  sigaction(SIGCHLD, &action, 0);
  if (!dlopen(argv[1], RTLD_NOW)) return 11;
  errno = 1234;
  if (cudaguard_check() != 2) return 12; /* asked in a child, which knew nothing */
  if (errno != 1234) return 13;
  if (seen) return 14;
  if (waitpid(-1, &status, WNOHANG) != -1 || errno != ECHILD) return 15;
  child = fork();
  if (child == 0) _exit(cudaguard_check() == 2 ? 42 : 1);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 42 || seen != 1) return 16;
  return 0;
}
";
    let program = scene.scratch.join("children");
    let mut manifest = built();
    manifest.requires.truncate(1);
    if let Some(cudaguard::internal::manifest::Requirement::Library { linkage, .. }) = manifest.requires.first_mut() {
        *linkage = Linkage::Dlopened;
    }
    NATIVE.guarded("children", &program, &[descriptor(&manifest)], source, &[]);
    let library = scene.lib().join("libcudnn.so.9");
    let outcome =
        Call::new(&program).arg(library).env("CUDAGUARD_REPORT", scene.scratch.join("report.json")).run().success();
    assert_eq!(outcome.stderr, "");
}

#[e2e]
fn core_file_is_not_written() {
    let scene = Scene::new(&built(), "", Says::Aborts);
    let outcome = scene.shell("ulimit -c unlimited 2>/dev/null; exec ./program").success();
    assert_eq!(outcome.stderr, "", "a child that aborts prints nothing");
    let cores = fs::read_dir(scene.scratch.path())
        .expect("a folder")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("core"));
    assert_eq!(cores.count(), 0);
}

#[e2e]
fn damaged_notes_never_refuse() {
    let scene = Scene::older();
    let good = descriptor(&built());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).expect("small")
    };
    for round in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..=next(6) {
            // Mostly in the offsets, the counts and the rows.
            let at = if next(4) == 0 { next(4096) } else { next(200) };
            bytes[at] = u8::try_from(next(256)).expect("a byte");
        }
        NATIVE.program(&scene.program, &[bytes.clone()], Some(9));
        let outcome = scene.call(&scene.program).env("CUDAGUARD_REPORT", "report.json").run();
        let report = scene.report();
        let damaged = report["components"][0]["note"] == "damaged";
        assert!(matches!(outcome.status(), Some(0 | 78)), "round {round}: {outcome}");
        assert!(!damaged || outcome.status() == Some(0), "round {round}: a damaged note refused: {outcome}");
    }
    for (at, byte) in [(0, 0), (8, 0), (14, 39), (13, 0xff), (29, 0xff), (44 + 25, 0xff)] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        NATIVE.program(&scene.program, &[bytes], Some(9));
        let outcome = scene.call(&scene.program).arg("check").env("CUDAGUARD_REPORT", "report.json").run().success();
        assert!(outcome.stderr.starts_with("cudaguard: warning[CG503]"), "byte {at}: {outcome}");
        assert!(outcome.stdout.starts_with("check 2 [CG503]"), "byte {at}: {outcome}");
        assert_eq!(scene.report()["findings"][0]["code"], "CG503", "byte {at}");
        assert_eq!(scene.report()["verdict"], "unknown", "byte {at}");
    }
}

/// CG508 reports omitted findings, and the refusals are among those that are printed.
#[e2e]
fn excess_findings_are_counted() {
    for (scene, notes, status, verdict, says) in [
        (Scene::right(), 260, 0, "unknown", "4 manifests were not checked"),
        (Scene::older(), 60, 78, "refused", "12 findings were dropped"),
    ] {
        NATIVE.program(&scene.program, &vec![descriptor(&built()); notes], Some(9));
        let outcome = scene.call(&scene.program).env("CUDAGUARD_REPORT", "report.json").run().expect(status);
        let report = scene.report();
        assert_eq!(report["verdict"], verdict, "{notes}: {report}");
        let findings = report["findings"].as_array().expect("findings");
        let left_out = findings.iter().find(|finding| finding["code"] == "CG508").expect("CG508");
        assert!(left_out["message"].as_str().is_some_and(|message| message.starts_with(says)), "{left_out}");
        assert_eq!(outcome.stderr.matches("error[CG202]").count(), if status == 0 { 0 } else { 8 }, "{outcome}");
    }
}

/// A note header with an address that the loader does not map is ignored.
#[e2e]
fn unmapped_notes_are_not_read() {
    let scene = Scene::right();
    let library = scene.lib().join("libodd.so");
    NATIVE.library_of("libodd.so", &library);
    let mut bytes = fs::read(&library).expect("it was made");
    let u64_at = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let start = usize::try_from(u64_at(&bytes, 32)).expect("small");
    let stack = (start..).step_by(56).find(|at| bytes[*at..at + 4] == 0x6474_e551_u32.to_le_bytes());
    let at = stack.expect("PT_GNU_STACK");
    bytes[at..at + 4].copy_from_slice(&4_u32.to_le_bytes()); // PT_NOTE, mapped nowhere
    for (field, value) in [(8, 0_u64), (16, 0x7000_0000), (24, 0x7000_0000), (32, 4096), (40, 4096), (48, 4)] {
        bytes[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
    }
    fs::write(&library, bytes).expect("a file can be written");
    // A relative path, because a blank would end a path in `LD_PRELOAD`.
    let preload = library.strip_prefix(scene.scratch.path()).expect("it is in the directory of the scenario");
    let outcome = scene.call(&scene.program).env("LD_PRELOAD", preload).arg("check").run().success();
    assert!(outcome.stdout.starts_with("check 0 "), "{outcome}");
}

#[e2e]
fn guard_exports_no_symbols() {
    let scene = Scene::right();
    let library = scene.scratch.join("libguarded.so");
    NATIVE.guarded(
        "library",
        &library,
        &[descriptor(&built())],
        "int ours(void) { return 1; }\n",
        &["-shared".to_owned(), "-fPIC".to_owned()],
    );
    let exported = Call::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&library).run().success();
    assert!(exported.stdout.contains("ours"), "{exported}");
    assert!(!exported.stdout.contains("guard"), "{exported}");
    let rdynamic = scene.scratch.join("rdynamic");
    NATIVE.guarded("rdynamic", &rdynamic, &[descriptor(&built())], MAIN, &["-rdynamic".to_owned()]);
    let exported = Call::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&rdynamic).run().success();
    assert!(exported.stdout.contains("main") && !exported.stdout.contains("guard"), "{exported}");
}

/// Links a program from this source and these objects, strips it, and returns its size in bytes.
fn linked(compiler: &str, linker: &str, scratch: &Scratch, source: &Path, objects: &[&Path], options: &[&str]) -> i64 {
    let program = scratch.join("program");
    let linker = format!("-fuse-ld={linker}");
    let call = Call::new(compiler).args(["-O2", "-s", &linker, "-o"]).arg(&program).arg(source);
    let _ = call.args(objects).args(options).arg("-ldl").run().success();
    let table = Call::new("size").arg(&program).run().success().stdout;
    let numbers = table.lines().nth(1).expect("a line for the program").split_whitespace().take(2);
    numbers.map(|number| number.parse::<i64>().expect("a number of bytes")).sum()
}

/// A thread with a stack of 16 KiB calls the API, and a program with such a stack starts, both by files and by calling cuDNN.
#[e2e(slow)]
fn small_stack_is_enough() {
    let main = "#include <cudaguard.h>\n#include <pthread.h>\n#include <stdio.h>\nstatic void *ask(void *unused) {\n  \
                struct cudaguard_verdict all;\n  int is = cudaguard_check();\n  \
                printf(\"%d\\n\", cudaguard_check_verdict(&all) == is ? is : 9);\n  return unused;\n}\nint main(void) {\n  pthread_t thread;\n  \
                pthread_attr_t small;\n  pthread_attr_init(&small);\n  if (pthread_attr_setstacksize(&small, 16384)) return 9;\n  \
                if (pthread_create(&thread, &small, ask, 0)) return 9;\n  pthread_join(thread, 0);\n  return 0;\n}\n";
    let mut missing = Vec::new();
    for (compiler, level) in [("gcc", "-Os"), ("gcc", "-O2"), ("clang", "-O0")] {
        if tools::find(compiler).is_none() {
            missing.push(compiler);
            continue;
        }
        let objects = Scratch::new("small-stack");
        let (shim, source) = (objects.join("shim.o"), objects.file("main.c", main));
        let call = Call::new(compiler).args([level, "-w", "-c", "-o"]).args([&shim, &templates().join("shim.c")]);
        let _ = call.run().success();
        for (scene, answer) in [(Scene::right(), "0\n"), (Scene::asked(91_501), "0\n"), (Scene::asked(90_100), "1\n")] {
            let notes = scene.scratch.file("notes.s", Arch::notes(1));
            let program = scene.scratch.join("small");
            let call =
                Call::new(compiler).args([level, "-w", "-pthread", "-I"]).arg(templates()).arg("-o").arg(&program);
            let call = call.args([&source, &notes, &shim]).arg("-Wl,--no-as-needed");
            let _ = call.arg(scene.lib().join("libcudnn.so.9")).arg("-ldl").run().success();
            let bytes = fs::read(&program).expect("it was made");
            Arch::patched(&program, bytes, &[descriptor(&built())]);
            let start = |script: &str| scene.call(Path::new("sh")).args(["-c", script]).env("CUDAGUARD", "warn").run();
            for script in ["./small", "ulimit -s 16 && exec ./small"] {
                let outcome = start(script).success();
                assert_eq!(outcome.stdout, answer, "{compiler} {level}: {outcome}");
            }
        }
    }
    tools::done_without(&missing);
}

/// In a namespace of `dlmopen` the first object is not the program, and the process continues after a refusal.
#[e2e]
fn dlmopened_library_is_checked() {
    let scene = Scene::older();
    let library = scene.scratch.join("libguarded.so");
    let ours = "unsigned la_version(unsigned version) { return version; }\n#include <cudaguard.h>\nint ours(void) { return \
                cudaguard_check(); }\n";
    let linked = scene.lib().join("libcudnn.so.9").display().to_string();
    let options = ["-shared", "-fPIC", "-Wl,--no-as-needed", &linked].map(str::to_owned);
    NATIVE.guarded("namespace", &library, &[descriptor(&built())], ours, &options);
    let main = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char **a) {\n  if (n > 1) {\n    \
                void *library = dlmopen(LM_ID_NEWLM, a[1], RTLD_NOW);\n    if (!library) return puts(dlerror()), 3;\n    \
                printf(\"%d\\n\", ((int (*)(void))dlsym(library, \"ours\"))());\n  }\n  puts(\"main ran\");\n  return 0;\n}\n";
    let source = scene.scratch.file("namespaces.c", main);
    let program = scene.scratch.join("namespaces");
    let _ = Call::new("cc").args(["-w", "-o"]).args([&program, &source]).arg("-ldl").run().success();
    let outcome = scene.call(&program).arg(&library).run().success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("1\nmain ran\n", ""), "{outcome}");
    let outcome = scene.call(&program).env("LD_AUDIT", "./libguarded.so").run().success();
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("main ran\n", ""), "{outcome}");
}

/// Builds the guard with the options for users, with each compiler and linker, and measures text and data without the note. (The
/// file size would include padding of the linker: gold rounds it to whole pages.)
#[e2e(slow)]
fn shim_is_small() {
    let scratch = Scratch::new("small");
    let source = scratch.file("plain.c", "int main(void) { return 0; }\n");
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let component = Component { name: "small".to_owned(), version: "1.0.0".to_owned() };
    let mut missing = Vec::new();
    for compiler in ["gcc", "gcc-11", "clang"] {
        let Some(program) = tools::find(compiler) else {
            missing.push(compiler.to_owned());
            continue;
        };
        let dir = scratch.join(compiler);
        fs::create_dir_all(&dir).expect("a directory can be made");
        let tool = Tool { program, flags: Vec::new(), kept: None };
        let made = guard::compile_with(&tool, &[0; note::SIZE], &component, &target, &dir).expect("it compiles");
        let GuardObjects::Objects { shim, .. } = made else { panic!("{compiler}: {made:?}") };
        for linker in tools::linkers(&mut missing) {
            for options in [&[][..], &["-Wl,--gc-sections", "-fPIE", "-pie"]] {
                let size = |objects: &[&Path]| linked(compiler, linker, &scratch, &source, objects, options);
                let added = size(&[&shim]) - size(&[]);
                assert!((1000..=64 * 1024).contains(&added), "{compiler} {linker} {options:?}: {added} bytes");
            }
        }
    }
    tools::done_without(&missing);
}

#[e2e(slow)]
fn duplicate_guards_link() {
    let scene = Scene::older();
    let shim = NATIVE.shim();
    let source = scene.scratch.file("main.c", MAIN);
    let copies: Vec<_> = (0..3)
        .map(|n| {
            let copy = scene.scratch.join(format!("copy{n}.o"));
            fs::copy(&shim, &copy).expect("a file can be copied");
            copy
        })
        .collect();
    let notes = scene.scratch.file("notes.s", Arch::notes(1));
    let mut missing = Vec::new();
    for linker in ["bfd", "gold", "lld", "mold"] {
        // lld has no plugin for the objects of `gcc -flto`.
        let compiler = if linker == "lld" { "clang" } else { "gcc" };
        let lacking = [&format!("ld.{linker}"), compiler].map(str::to_owned);
        let lacking: Vec<_> = lacking.into_iter().filter(|program| tools::find(program).is_none()).collect();
        if !lacking.is_empty() {
            missing.extend(lacking);
            continue;
        }
        for options in [&[][..], &["-Wl,--gc-sections", "-s"], &["-flto", "-Wl,--gc-sections", "-s"]] {
            let make = |name: &str, copies: &[PathBuf]| {
                let program = scene.scratch.join(name);
                let call = Call::new(compiler).args(["-O2", &format!("-fuse-ld={linker}"), "-o"]).arg(&program);
                let call = call.arg("-I").arg(templates()).args([&source, &notes]).args(copies).args(options);
                let made = call.arg("-Wl,--no-as-needed").arg(scene.lib().join("libcudnn.so.9")).arg("-ldl").run();
                assert!(made.status() == Some(0), "{linker} {options:?}: {made}");
                let mut bytes = fs::read(&program).expect("it was made");
                let at = bytes
                    .windows(16)
                    .position(|window| window == b"@@descriptor@@\n\n")
                    .expect("the note outlives the link");
                bytes[at..at + 4096].copy_from_slice(&descriptor(&built()));
                fs::write(&program, &bytes).expect("a file can be written");
                (program, bytes.len())
            };
            let (_, one) = make("one", &copies[..1]);
            let (program, three) = make("three", &copies);
            let outcome = scene.call(&program).run().expect(78);
            assert_eq!(outcome.stderr.matches("error[CG202]").count(), 1, "{linker}: {outcome}");
            let outcome = scene.call(&program).arg("check").env("CUDAGUARD", "warn").run().success();
            assert!(outcome.stdout.starts_with("check 1 "), "{linker}: {outcome}");
            assert_eq!(outcome.stderr.matches("warning[CG202]").count(), 1, "{linker}: {outcome}");
            if options.contains(&"-Wl,--gc-sections") {
                assert!(three < one + 4096, "{linker} {options:?}: {three} against {one} bytes");
            }
        }
    }
    tools::done_without(&missing);
}

#[e2e(slow)]
fn shim_compiles_with_all_compilers() {
    let scratch = Scratch::new("compiles");
    let shim = templates().join("shim.c");
    let header = scratch.file("header.c", "#include <cudaguard.h>\nint ask(void) { return cudaguard_check(); }\n");
    let mut missing = Vec::new();
    // Options of distributions: checked copies, canaries, frame pointers.
    let hardened = "-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fno-omit-frame-pointer";
    // Other standards differ in the front end only.
    let parsed = "-fsyntax-only";
    for (compiler, language, level) in [
        ("gcc", "-std=c11 -x c", "-O3 -fPIC"),
        ("gcc", "-std=gnu99 -x c", parsed),
        ("clang", "-std=c17 -x c -Weverything -Wno-everything -Wall", hardened),
        ("g++", "-std=c++11 -x c++", parsed),
        ("g++", "-std=c++20 -x c++", hardened),
        ("clang++", "-std=c++20 -x c++", parsed),
        ("aarch64-linux-gnu-gcc", "-std=c11 -x c", hardened),
        ("musl-gcc", "-std=c11 -x c", parsed),
    ] {
        if tools::find(compiler).is_none() {
            missing.push(compiler);
            continue;
        }
        for file in [&shim, &header] {
            let call = Call::new(compiler).args(language.split(' ')).args(level.split(' '));
            let warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Wshadow", "-Werror"];
            let call = call.args(warnings).args(["-c", "-I"]).arg(templates());
            let made = call.arg("-o").arg(scratch.join("object.o")).arg(file).run();
            assert!(made.status() == Some(0) && made.stderr.is_empty(), "{compiler} {language} {level}: {made}");
        }
    }
    // The shim is an empty object on systems other than Linux.
    let made = Call::new("gcc")
        .args(["-U__linux__", "-Wall", "-Wextra", "-Werror", "-c", "-o"])
        .arg(scratch.join("empty.o"))
        .arg(&shim)
        .run();
    let _ = made.success();
    tools::done_without(&missing);
}

#[e2e(slow)]
fn static_programs_are_guarded() {
    let scratch = Scratch::new("static");
    let mut missing = Vec::new();
    for compiler in ["gcc", "musl-gcc"] {
        if tools::find(compiler).is_none() {
            missing.push(compiler);
            continue;
        }
        let source = scratch.file("main.c", "#include <cudaguard.h>\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", cudaguard_check()); return 0; }\n");
        let notes = scratch.file("notes.s", Arch::notes(1));
        let program = scratch.join("program");
        let made = Call::new(compiler).args(["-static", "-O1", "-I"]).arg(templates()).arg("-o").arg(&program);
        let made = made.args([&source, &notes, &templates().join("shim.c")]).run();
        // glibc warns about each use of `dlopen` in a static program. The reference of the shim is weak.
        let quiet = made.stderr.lines().all(|line| line.contains("in function") || line.contains("Using 'dlopen'"));
        assert!(made.status() == Some(0) && quiet, "{compiler}: {made}");
        for (manifest, answer) in [(manifest("demo", version("9.15.1"), Linkage::Static), "0\n"), (built(), "2\n")] {
            let mut bytes = fs::read(&program).expect("it was made");
            let at = bytes.windows(16).position(|window| window == b"@@descriptor@@\n\n").expect("the note");
            bytes[at..at + 4096].copy_from_slice(&descriptor(&manifest));
            let patched = scratch.join("patched");
            fs::write(&patched, &bytes).expect("a file can be written");
            fs::set_permissions(&patched, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
            let outcome = Call::new(&patched).run().success();
            assert_eq!((&*outcome.stdout, &*outcome.stderr), (answer, ""), "{compiler}");
        }
    }
    tools::done_without(&missing);
}

#[e2e(slow)]
fn header_works_without_guard() {
    let scratch = Scratch::new("header");
    let source = scratch.file("main.c", MAIN);
    let lacking = ["gcc", "clang", "g++", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"];
    let missing: Vec<_> = lacking.into_iter().filter(|program| tools::find(program).is_none()).collect();
    let compilers = [("gcc", "c"), ("clang", "c"), ("g++", "c++")];
    let modes = ["-O0 -fPIE -pie", "-O2 -fPIE -pie", "-O2 -fno-pie -no-pie", "-O2 -fPIC"];
    // The mode decides whether an address is relocated, and each linker resolves weak symbols in its own way.
    for (number, (linker, mode)) in [0, 1]
        .into_iter()
        .flat_map(|shift| (0..4).map(move |n| (tools::LINKERS[n], modes[(n + shift) % 4])))
        .enumerate()
    {
        let (compiler, language) = compilers[number % compilers.len()];
        if missing.contains(&compiler) || missing.contains(&&*format!("ld.{linker}")) {
            continue;
        }
        let options = &format!("{mode} -fuse-ld={linker}");
        let program = scratch.join("program");
        let call = Call::new(compiler).args(["-x", language]).args(options.split(' ')).arg("-I").arg(templates());
        let _ = call.arg("-o").arg(&program).arg(&source).args(["-x", "none", "-ldl"]).run().success();
        let outcome = Call::new(&program).arg("check").run().success();
        assert_eq!(outcome.stdout, "check 2 this file was built without the guard\nmain ran\n", "{compiler} {options}");
    }
    tools::done_without(&missing);
}
