//! Checks that the child process, which loads cuDNN, ends with its parent.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cudaguard::internal::manifest::Linkage;
use cudaguard_tests::{Call, e2e};

use super::fixture::{Arch, MAIN, Says, descriptor, manifest, templates, version};
use super::harmless::Scene;

/// The shim, with a child that waits for a second before it requests to be killed with its parent. Without the macro of an
/// architecture, all system calls of the shim use the function of the C library.
const SLOWLY: &str = r"
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static long slowly(long number, long a, long b, long c, long d, long e, long f) {
  if (number == SYS_prctl) {
    if (write(9, &number, 1) != 1) _exit(1);
    sleep(1);
  }
  return syscall(number, a, b, c, d, e, f);
}
#undef __x86_64__
#undef __aarch64__
#define syscall slowly
#include <shim.c>
";

/// Checks that a child ends if its parent was killed before the child requested the signal.
#[e2e(slow)]
fn killed_parent_leaves_no_child() {
    let manifest = manifest("demo", version("9.15.1"), Linkage::Dlopened);
    let scene = Scene::new(&manifest, "", Says::Nothing);
    let hangs = "#include <unistd.h>\n__attribute__((constructor)) static void loaded(void) { for (;;) pause(); }\n";
    let hangs = scene.scratch.file("hangs.c", hangs);
    let library = scene.lib().join("libcudnn.so.9");
    let _ = Call::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9", "-o"])
        .args([library, hangs])
        .run()
        .success();
    let main = scene.scratch.file("main.c", MAIN);
    let notes = scene.scratch.file("notes.s", Arch::notes(1));
    let shim = scene.scratch.file("slowly.c", SLOWLY);
    let program = scene.scratch.join("slow");
    let call =
        Call::new("cc").args(["-O1", "-w", "-I"]).arg(templates()).arg("-o").arg(&program).args([main, notes, shim]);
    let _ = call.arg("-ldl").run().success();
    let bytes = fs::read(&program).expect("it was made");
    Arch::patched(&program, bytes, &[descriptor(&manifest)]);
    // The child closes descriptors 0, 1 and 2 only, so descriptor 9 keeps the pipe open while the child runs.
    let mut start = Command::new("sh");
    start.args(["-c", "exec ./slow 9>&1"]).current_dir(scene.scratch.path()).env("LD_LIBRARY_PATH", scene.lib());
    let mut parent = start.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = parent.stdout.take().expect("a pipe");
    out.read_exact(&mut [0]).expect("the child is about to request the signal");
    parent.kill().expect("it still runs");
    let _ = parent.wait().expect("it was started here");
    let (say, hear) = channel();
    thread::spawn(move || say.send(out.read_to_end(&mut Vec::new()).is_ok()));
    assert_eq!(hear.recv_timeout(Duration::from_secs(120)), Ok(true), "the child is still there");
}
