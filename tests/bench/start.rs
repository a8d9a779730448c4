//! Prints the time that the guard adds to the start of a program, without assertions: `cargo bench -p cudaguard-tests
//! --bench start`.
//!
//! The benchmark starts the same C program, with the note of a real one, with and without the shim, on simulated
//! machines (a mount namespace each, see the harness's `world`). The same run measures programs that call NVIDIA's
//! libraries directly. The two variants alternate, so that the load of the machine is the same for both. The time runs
//! from the call that creates the process to its end. On a loaded machine, the lower quartile of the differences is
//! more reliable than the median.
//!
//! `-- --against SHIM.c` measures another shim in the same rounds, for example that of an earlier commit: `git worktree
//! add EARLIER COMMIT`, then `-- --against EARLIER/templates/shim.c`. Its results follow those of this tree.

#[path = "../e2e/driver/fixture.rs"]
mod fixture;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cudaguard::internal::cudnn;
use cudaguard::internal::note;
use cudaguard_tests::containers::copies;
use cudaguard_tests::world::{self, A100, Gpu, H100, Library, MakeMachine as _, NEWS, V100, World};
use cudaguard_tests::{Call, Scratch, parts};

/// Source of a program that calls NVIDIA's libraries directly. The argument selects the call; without an argument, it
/// does nothing.
const PEERS: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
static int call(const char *library, const char *name, void *argument) {
  void *handle = dlopen(library, RTLD_NOW);
  int (*function)(void *);
  if (!handle || !(*(void **)&function = dlsym(handle, name))) { fputs(dlerror(), stderr); return 1; }
  function(argument);
  return 0;
}
int main(int n, char **a) {
  if (n < 2) return 0;
  if (!strcmp(a[1], "cuInit")) return call("libcuda.so.1", "cuInit", 0);
  if (!strcmp(a[1], "nvmlInit")) return call("libnvidia-ml.so.1", "nvmlInit_v2", 0);
  return call("libcudnn.so.9", "cudnnGetVersion", 0);
}
"#;

const ROUNDS: usize = 1001;

/// The shim to compare with, if the caller specifies one.
static AGAINST: OnceLock<Option<PathBuf>> = OnceLock::new();

fn against() -> Option<&'static Path> {
    AGAINST.get().and_then(Option::as_deref)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // This process runs inside the namespace: it measures the rounds.
    if arguments.get(1).map(String::as_str) == Some("--inside") {
        return inside(&arguments[2..]);
    }
    // `cargo test --benches` only checks that it compiles.
    if arguments.iter().any(|word| word == "--test" || word == "--list") {
        return;
    }
    world::need();
    let named = arguments.iter().position(|word| word == "--against").map(|at| {
        let source = arguments.get(at + 1).expect("--against SHIM.c");
        fs::canonicalize(source).unwrap_or_else(|error| panic!("--against {source}: {error}"))
    });
    AGAINST.set(named).expect("set once");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "microseconds, of {ROUNDS} pairs in turn: median of the one; median and lower quartile of what the other adds"
    );
    if let Some(source) = against() {
        println!("behind them the same of {}", source.display());
    }
    println!("load of this machine: {}", load.trim());
    guarded();
    unsealed();
    peers();
    size();
}

/// A benchmark on one machine.
struct Bench {
    scratch: Scratch,
    machine: world::Machine,
}

impl Bench {
    fn new(world: &World) -> Self {
        let scratch = Scratch::new("bench-start");
        let machine = world.make(&scratch.join("world"));
        Self { scratch, machine }
    }

    /// Compiles the shims to measure as for users: that of this tree, and the one to compare with.
    fn shims(&self) -> Vec<PathBuf> {
        let sources = [Some(fixture::shim()), against().map(Path::to_owned)].into_iter().flatten();
        let compiled = sources.enumerate().map(|(which, source)| {
            let object = self.scratch.join(format!("shim-{which}.o"));
            let call =
                Call::new("cc").args(["-Os", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-c"]);
            let _ = call.arg("-o").args([&object, &source]).run().success();
            object
        });
        compiled.collect()
    }

    /// Builds the program without a shim and with each shim.
    fn programs(&self, package: &str, more: &[&OsStr]) -> (PathBuf, Vec<PathBuf>) {
        let program = |name: &str, shim: Option<&Path>| {
            let objects: Vec<&OsStr> = ["-O2".as_ref()].into_iter().chain(shim.map(Path::as_os_str)).collect();
            fixture::in_c(package, &self.scratch.join(name), "cc", &[&objects[..], more].concat())
        };
        let shims = self.shims();
        let guarded = shims.iter().enumerate().map(|(which, shim)| program(&format!("guarded-{which}"), Some(shim)));
        (program("plain", None), guarded.collect())
    }

    fn compare_guarded(&self, what: &str, plain: &Path, guarded: &[PathBuf], library_path: &str) {
        let guarded: Vec<[&OsStr; 1]> = guarded.iter().map(|program| [program.as_os_str()]).collect();
        let guarded: Vec<&[&OsStr]> = guarded.iter().map(<[_; 1]>::as_slice).collect();
        self.compare(what, &[plain.as_ref()], &guarded, library_path);
    }

    fn compare(&self, what: &str, one: &[&OsStr], others: &[&[&OsStr]], library_path: &str) {
        let here = std::env::current_exe().expect("this program");
        let mut variables = Vec::new();
        if !library_path.is_empty() {
            variables.push(("LD_LIBRARY_PATH", library_path));
        }
        let mut call = self.machine.call(here, &variables).arg("--inside").arg(what).args(one);
        for other in others {
            call = call.arg("--").args(*other);
        }
        print!("{}", call.run().success().stdout);
    }
}

/// Measures the commands in the arguments `WHAT ONE... -- OTHER... [-- OTHER...]`.
fn inside(arguments: &[String]) {
    let mut commands = arguments[1..].split(|word| word == "--");
    let one = commands.next().expect("one");
    let others: Vec<&[String]> = commands.collect();
    let start = |words: &[String]| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let _ = command.status().expect("it can be started");
        began.elapsed()
    };
    // Slow programs are started less often.
    let rounds = if start(others[0]) > Duration::from_millis(8) { ROUNDS / 10 } else { ROUNDS };
    let (mut alone, mut added) = (Vec::new(), vec![Vec::new(); others.len()]);
    for _ in 0..rounds {
        let first = us(start(one));
        alone.push(first);
        for (other, added) in others.iter().zip(&mut added) {
            added.push(us(start(other)) - first);
        }
    }
    alone.sort_by(f64::total_cmp);
    print!("{:58} {:7.0}", arguments[0], alone[rounds / 2]);
    for added in &mut added {
        added.sort_by(f64::total_cmp);
        print!("   + {:6.0}   + {:6.0}", added[rounds / 2], added[rounds / 4]);
    }
    println!();
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Creates a complete cuDNN in this directory. The fetched component lacks the large libraries; copies of a small one
/// replace them, because only their location is examined.
fn whole_cudnn(dir: &Path) -> PathBuf {
    let fetched = parts::cudnn("9.15.1").join("lib");
    for part in cudnn::parts_of_major(9).map(|part| part.file).chain(["libcudnn.so.9"]) {
        let real = fetched.join(part);
        let from = if real.is_file() { real } else { fetched.join("libcudnn.so.9") };
        let _ = fs::copy(from, dir.join(part)).expect("a library can be copied");
    }
    dir.to_owned()
}

fn guarded() {
    let r580 = |gpus: &[Gpu]| World::new("580.95.05", 13000, gpus);
    let scratch = Scratch::new("bench-start-cudnn");
    let cudnn = whole_cudnn(scratch.path());
    let linked = ["-Wl,--no-as-needed".into(), cudnn.join("libcudnn.so.9")];
    let linked: Vec<&OsStr> = linked.iter().map(|path: &PathBuf| path.as_os_str()).collect();
    for (what, package, world) in [
        ("guard: nothing to look at (no NVIDIA)", "model", World::bare()),
        ("guard: nothing to look at (no NVIDIA), cuDNN linked", "vision", World::bare()),
        ("guard: 1 GPU, level 0", "model", r580(&[A100])),
        ("guard: 8 GPUs, level 0", "model", r580(&[H100; 8])),
        ("guard: 1 GPU, cuDNN linked, level 0", "vision", r580(&[A100])),
        ("guard: 8 GPUs, cuDNN linked, level 0", "vision", r580(&[H100; 8])),
        ("guard: a GPU that no table knows, level 1 (fake driver)", "model", r580(&[NEWS])),
    ] {
        let bench = Bench::new(&world);
        let more = if package == "vision" { &linked[..] } else { &[] };
        let (plain, guarded) = bench.programs(package, more);
        let path = if package == "vision" { cudnn.to_str().expect("UTF-8") } else { "" };
        bench.compare_guarded(what, &plain, &guarded, path);
    }
    // The time of this program is the driver's part of level 1.
    let bench = Bench::new(&r580(&[NEWS]));
    let peer = peer(&bench.scratch);
    bench.compare(
        "peer: dlopen and cuInit of that fake driver",
        &[peer.as_ref()],
        &[&[peer.as_ref(), "cuInit".as_ref()]],
        "",
    );
    let real = Library { real: Some(parts::driver("535")), ..Library::new("535.261.03", 12020) };
    let bench = Bench::new(&World { library: Some(real), ..World::new("535.261.03", 12020, &[]) });
    let (plain, guarded) = bench.programs("model", &[]);
    bench.compare_guarded("guard: level 1, NVIDIA's libcuda 535, no GPU", &plain, &guarded, "");
}

/// Measures files that are not sealed: the guard searches for their kernels itself.
fn unsealed() {
    let bench = Bench::new(&World::new("580.95.05", 13000, &[A100]));
    let unfit = Bench::new(&World::new("580.95.05", 13000, &[V100]));
    let shims = bench.shims();
    let kernel = bench.scratch.file("k.cu", "__global__ void k(int *p) { p[threadIdx.x] = 1; }\n");
    let object = bench.scratch.join("k.o");
    let nvcc = Call::new(parts::cuda("13.0").join("bin/nvcc")).args(["-gencode", "arch=compute_80,code=sm_80", "-c"]);
    let _ = nvcc.arg(&kernel).arg("-o").arg(&object).run().success();
    for count in [0, 1, 200] {
        let dir = bench.scratch.join(format!("unsealed-{count}"));
        let _ = fixture::in_c("model", &dir, "cc", &[]);
        let descriptor = dir.join("descriptor");
        let bytes = fs::read(&descriptor).expect("the note of a sealed program");
        let mut manifest = cargo_cudaguard::binary::manifest_decoder::decode(&bytes).expect("a note").manifest;
        manifest.observed = None;
        manifest.sealed = false;
        manifest.requires.clear();
        fs::write(&descriptor, note::encode(&manifest).expect("it is no longer").as_slice()).expect("it is ours");
        let mut all = vec![dir.join("main.c"), dir.join("note.s")];
        if count > 0 {
            all.push(copies(&dir, &object, count));
        }
        let linked = |name: &str, more: &[PathBuf]| {
            let program = dir.join(name);
            let call = Call::new("cc").args(["-O2", "-o"]).arg(&program).args(&all).args(more).arg("-ldl");
            let _ = call.run().success();
            program
        };
        let plain = linked("plain", &[]);
        let guarded =
            shims.iter().enumerate().map(|(which, shim)| linked(&format!("guarded-{which}"), slice::from_ref(shim)));
        let guarded: Vec<PathBuf> = guarded.collect();
        // A refusal proves that the guard searches for the kernels, because they do not run on that GPU.
        let _ = unfit.machine.call(&guarded[0], &[]).run().expect(if count == 0 { 0 } else { 78 });
        let what = format!("guard: 1 GPU, not sealed, {count} container{}", if count == 1 { "" } else { "s" });
        bench.compare_guarded(&what, &plain, &guarded, "");
    }
}

fn peer(scratch: &Scratch) -> PathBuf {
    let (source, program) = (scratch.file("peer.c", PEERS), scratch.join("peer"));
    let _ = Call::new("cc").args(["-O2", "-w", "-o"]).args([&program, &source]).arg("-ldl").run().success();
    program
}

fn peers() {
    let bench = Bench::new(&World::bare());
    let peer = peer(&bench.scratch);
    let driver = parts::driver("535");
    for (what, word, dir) in [
        ("peer: cuInit of NVIDIA's libcuda 535, no GPU", "cuInit", &driver),
        ("peer: nvmlInit of NVIDIA's libnvidia-ml 535, no GPU", "nvmlInit", &driver),
        ("peer: dlopen of cuDNN 9.15.1 and cudnnGetVersion", "cudnn", &parts::cudnn("9.15.1").join("lib")),
    ] {
        let path = dir.to_str().expect("UTF-8");
        bench.compare(what, &[peer.as_ref()], &[&[peer.as_ref(), word.as_ref()]], path);
    }
}

fn size() {
    let bench = Bench::new(&World::bare());
    let length = |path: &Path| fs::metadata(path).expect("it was made").len();
    let (plain, guarded) = bench.programs("model", &["-s".as_ref(), "-Wl,--gc-sections".as_ref()]);
    let added: Vec<String> = guarded.iter().map(|with| (length(with) - length(&plain)).to_string()).collect();
    println!("bytes that the shim adds to a stripped program, the note excluded: {}", added.join(", "));
}
