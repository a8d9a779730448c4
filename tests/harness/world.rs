//! Simulated machines of `cargo cudaguard simulate`, on which tests run programs.
//!
//! [`MakeMachine::make`] writes the files of a [`World`], and [`Machine::call`] starts a program on the machine.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cargo_cudaguard::simulation::Fakes;
pub use cargo_cudaguard::simulation::{
    DriverLibraries as Library, LibraryLayout as Layout, Manner, SimulatedGpu as Gpu, World,
};

use crate::{Call, Scratch, places, skip, tools};

/// Compute capability 7.0.
pub const V100: Gpu = Gpu::new("Tesla V100-SXM2-16GB", (7, 0), 0x1db1);
/// Compute capability 7.5.
pub const T4: Gpu = Gpu::new("Tesla T4", (7, 5), 0x1eb8);
/// Compute capability 8.0.
pub const A100: Gpu = Gpu::new("NVIDIA A100-SXM4-80GB", (8, 0), 0x20b2);
/// Compute capability 8.6.
pub const A10: Gpu = Gpu::new("NVIDIA A10", (8, 6), 0x2236);
/// Compute capability 8.9. CUDA forward compatibility does not support GPUs of this type.
pub const RTX_4090: Gpu = Gpu::new("NVIDIA GeForce RTX 4090", (8, 9), 0x2684);
/// Compute capability 9.0.
pub const H100: Gpu = Gpu::new("NVIDIA H100 80GB HBM3", (9, 0), 0x2330);
/// Compute capability 8.7, the GPU of a Jetson: it is not on a PCI bus.
pub const ORIN: Gpu = Gpu::integrated("Orin (nvgpu)", (8, 7));
/// Compute capability 12.0, which needs the open kernel modules.
pub const RTX_5090: Gpu = Gpu::new("NVIDIA GeForce RTX 5090", (12, 0), 0x2b85);
/// A GPU of a generation that is in no table.
pub const NEWS: Gpu = Gpu::new("NVIDIA News", (13, 0), 0x3f00);

/// The names of GPUs in options.
const GPUS: [(&str, Gpu); 9] = [
    ("V100", V100),
    ("T4", T4),
    ("A100", A100),
    ("A10", A10),
    ("A10-24Q", Gpu::new("NVIDIA A10-24Q", (8, 6), 0x2236)),
    ("RTX4090", RTX_4090),
    ("H100", H100),
    ("RTX5090", RTX_5090),
    ("News", NEWS),
];

/// Takes the options of a machine up to `--`, or all of them, see `tests/bin/simulate.rs`. `None` if one is wrong.
pub fn from_options(words: &mut VecDeque<String>) -> Option<World> {
    let (mut world, mut libcuda, mut compat) = (World::bare(), None, false);
    while let Some(option) = words.pop_front() {
        match option.as_str() {
            "--" => break,
            "--driver" => {
                let library = Library::of_release(words.pop_front()?)?;
                world.kernel = Some(library.release.clone());
                world.library = Some(library);
            }
            "--libcuda" => libcuda = Some(Library::of_release(words.pop_front()?)?),
            "--compat" => compat = true,
            "--compat-cached" => (compat, world.compat_cached) = (true, true),
            "--gpu" => {
                let name = words.pop_front()?;
                world.gpus.push(GPUS.iter().find(|(known, _)| *known == name)?.1.clone());
            }
            "--proprietary" => world.open = false,
            "--wsl" => (world.layout, world.kernel) = (Layout::Wsl, None),
            "--init" => {
                let status = words.pop_front()?.parse().ok()?;
                libcuda.as_mut().or(world.library.as_mut())?.init = status;
            }
            "--no-jit" => world.library.as_mut()?.jit = false,
            "--crashes" => world.library.as_mut()?.manner = Manner::Crashes,
            "--no-uvm" => world.uvm = false,
            "--no-libcuda" => world.library = None,
            "--no-module" => world.kernel = None,
            _ => return None,
        }
    }
    if compat {
        world.compat = libcuda;
    } else if libcuda.is_some() {
        world.library = libcuda;
    }
    Some(world)
}

/// Writes the files of a simulated machine.
pub trait MakeMachine {
    /// Creates the files of the machine in this directory, which must outlive the result.
    fn make(&self, root: &Path) -> Machine;
}

impl MakeMachine for World {
    fn make(&self, root: &Path) -> Machine {
        let fakes = Fakes::new(places::target().join("fake-driver"));
        let library_path = self.write(root, &fakes).unwrap_or_else(|error| panic!("{error}"));
        Machine { root: root.to_owned(), proc: self.proc, library_path }
    }
}

/// A machine whose files were created.
#[derive(Clone, Debug)]
pub struct Machine {
    root: PathBuf,
    proc: bool,
    /// The value of `LD_LIBRARY_PATH` on the machine; a program may need more directories.
    pub library_path: Vec<PathBuf>,
}

impl Machine {
    /// Returns a call of this program on the machine, with these variables in addition to its library path.
    pub fn call(&self, program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        self.under(&[], program, variables)
    }

    /// Returns a call that a tool such as `strace -f` starts.
    pub fn under(&self, tool: &[&str], program: impl AsRef<Path>, variables: &[(&str, &str)]) -> Call {
        // Only the program gets the variables, not the tool that creates the namespace.
        let given = variables.iter().map(|(name, value)| OsString::from(format!("{name}={value}")));
        let named = variables.iter().any(|(name, _)| *name == "LD_LIBRARY_PATH");
        let path = std::env::join_paths(&self.library_path).expect("paths without colons");
        let path = (!named && !path.is_empty()).then(|| {
            let mut text = OsString::from("LD_LIBRARY_PATH=");
            text.push(path);
            text
        });
        let mut call = Call::new("unshare").args(["-r", "-m"]).arg(sibling("enter-world")).arg(&self.root);
        call = call.arg(if self.proc { "yes" } else { "no" });
        let given = given.chain(path);
        // The tool does not get them either.
        call =
            if tool.is_empty() { call.args(given).arg("--") } else { call.arg("--").args(tool).arg("env").args(given) };
        call.arg(program.as_ref())
    }

    /// Returns the directory with the files of the machine.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Returns the path of a program of this package: cargo builds them before tests and benchmarks, which are one
/// directory below them.
pub fn sibling(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program has a file");
    let dirs = own.ancestors().skip(1);
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file()).expect("it was built")
}

/// The instruction for machines on which users cannot create namespaces.
pub const NAMESPACES: &str =
    "a kernel that lets users make them (sysctl user.max_user_namespaces, and in a container its seccomp profile)";

/// Skips the test if this user may not create such a namespace.
pub fn need() {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    tools::need("unshare");
    let answer = ANSWER.get_or_init(|| {
        let scratch = Scratch::new("world");
        let outcome =
            World { layout: Layout::Wsl, ..World::new("1.1", 1, &[T4]) }.make(&scratch).call("true", &[]).run();
        if outcome.status() == Some(0) { Ok(()) } else { Err(outcome.stderr.trim().to_owned()) }
    });
    if let Err(why) = answer {
        eprintln!("no mount namespaces here: {why}");
        skip("mount namespaces", NAMESPACES);
    }
}
