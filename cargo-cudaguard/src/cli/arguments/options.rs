//! Options of the subcommands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use cudaguard::internal::policy::LossKind;

use super::formats::{ChooseFormat, DiffFormat, Format, Output};
use super::help;

/// Arguments of `choose`.
#[derive(Debug, Args)]
pub(crate) struct ChooseOptions {
    /// Files, as for `verify`, or names that state a toolkit: cu126, 12.6, cuda12, cupy-cuda12x
    #[arg(value_name = "CANDIDATE", required_unless_present = "index")]
    pub(crate) candidates: Vec<String>,
    /// Choose from the wheels and conda packages in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) index: Option<PathBuf>,
    /// Choose for the machine in this host file, which `probe --json` writes
    #[arg(long, value_name = "HOST.json", conflicts_with_all = FLAGS)]
    pub(crate) host: Option<PathBuf>,
    /// Choose for each machine in this list, as for `verify`; `-` reads stdin
    #[arg(long, value_name = "HOSTS", conflicts_with = "host", conflicts_with_all = FLAGS)]
    pub(crate) fleet: Option<PathBuf>,
    /// Exit with status 2 if something about the chosen candidate was not checked, such as the GPU code of a name
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
    #[command(flatten)]
    pub(crate) format: Format<ChooseFormat>,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffOptions {
    /// Old file, wheel, package, directory or image
    pub(crate) old: PathBuf,
    /// New file, wheel, package, directory or image
    pub(crate) new: PathBuf,
    /// Accept this loss: gpu, driver, cudnn, guard
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) allow_loss: Vec<LossKind>,
    /// Read the `[release]` table of this cudaguard.toml or pyproject.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format<DiffFormat>,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// Programs, libraries, objects, GPU code, wheels, packages, archives, directories or images
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Check for the machine in this host file, which `probe --json` writes
    #[arg(long, value_name = "HOST.json", conflicts_with_all = FLAGS)]
    pub(crate) host: Option<PathBuf>,
    /// Check for each machine in this list; `-` reads stdin
    ///
    /// The list contains host files (one per line), XML or CSV output of nvidia-smi, or Kubernetes nodes
    /// as JSON from kubectl. It may be a directory of such files.
    #[arg(verbatim_doc_comment, long, value_name = "HOSTS", conflicts_with_all = ["host", "format"], conflicts_with_all = FLAGS)]
    pub(crate) fleet: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Judge only this package of an environment, an image or a directory of wheels; repeatable
    #[arg(long = "package", value_name = "NAME")]
    pub(crate) packages: Vec<String>,
    #[command(flatten)]
    pub(crate) format: Format<Output>,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
}

/// Requirements of a release.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Requirements of a release")]
pub(crate) struct GateOptions {
    /// Require this code in each file with kernels: 80,90,120+ptx
    #[arg(long, value_name = "ARCHS", conflicts_with = "fleet")]
    pub(crate) archs: Vec<String>,
    /// Reject files that need a newer driver than this branch or release: 525
    #[arg(long, value_name = "RELEASE", conflicts_with = "fleet")]
    pub(crate) driver_floor: Option<String>,
    /// Reject files that need a newer cuDNN than this one: 9.1
    #[arg(long, value_name = "VERSION", conflicts_with = "fleet")]
    pub(crate) cudnn_floor: Option<String>,
    /// Reject files that use CUDA and are not guarded
    #[arg(long, conflicts_with = "fleet")]
    pub(crate) guarded: bool,
    /// Reject partial coverage, unknown facts and parts that were not examined
    #[arg(long, conflicts_with = "fleet")]
    pub(crate) strict: bool,
    /// Exclude files that match this glob from --archs and --guarded; repeatable
    #[arg(long, value_name = "GLOB", conflicts_with = "fleet")]
    pub(crate) except: Vec<String>,
    /// Read the requirements from this cudaguard.toml or pyproject.toml, or from none
    #[arg(long, value_name = "FILE", conflicts_with = "fleet")]
    pub(crate) policy: Option<PathBuf>,
}

impl GateOptions {
    /// Returns true if any option was given.
    pub(crate) fn is_any_set(&self) -> bool {
        let names_policy = self.policy.as_ref().is_some_and(|policy| policy.as_os_str() != "none");
        let given = [self.driver_floor.is_some(), self.cudnn_floor.is_some(), names_policy];
        !self.archs.is_empty() || !self.except.is_empty() || self.guarded || self.strict || given.contains(&true)
    }
}

/// Arguments of `simulate`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has the namespaces"))]
#[derive(Debug, Args)]
#[command(mut_arg("together", |arg| arg.hide(true)))]
pub(crate) struct SimulateOptions {
    /// Program and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// Simulate the machine in this host file, which `probe --json` writes
    #[arg(long, value_name = "HOST.json", conflicts_with_all = FLAGS)]
    pub(crate) host: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Enable MIG on each GPU that has it, with one instance
    #[arg(long)]
    pub(crate) mig: bool,
    /// Memory of each GPU in GiB; default: the one in its name, as in A100-SXM4-80GB
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) memory: Option<u32>,
    /// Let programs be clients of MPS; with --fail cuInit=805, its daemon does not answer
    #[arg(long)]
    pub(crate) mps: bool,
    /// Add cuda-compat of this release to the loader cache
    #[arg(long, value_name = "RELEASE")]
    pub(crate) compat: Option<String>,
    /// Simulate Windows Subsystem for Linux
    #[arg(long)]
    pub(crate) wsl: bool,
    /// Let a function of the driver or NVML return this status: cuInit=802; repeatable
    #[arg(long = "fail", value_name = "CALL=STATUS")]
    pub(crate) failures: Vec<String>,
}

/// The options of [`Flags`].
const FLAGS: [&str; 5] = ["driver", "kernel", "gpus", "together", "library"];

/// Options that describe a machine.
#[derive(Debug, Default, Args)]
pub(crate) struct Flags {
    /// Driver release or branch of the machine, or none: 535.261.03, 535, none
    #[arg(long, value_name = "RELEASE")]
    pub(crate) driver: Option<String>,
    /// Release of the kernel module, if it differs from the driver library
    #[arg(long, value_name = "RELEASE")]
    pub(crate) kernel: Option<String>,
    #[arg(help = "GPUs: T4,H100, 8.6, sm_86, none", long = "gpu", value_name = "GPU", value_delimiter = ',')]
    pub(crate) gpus: Vec<String>,
    /// Check for one machine with all these GPUs; the files must run on one of them
    #[arg(long, requires = "gpus")]
    pub(crate) together: bool,
    /// cuDNN version of the machine, or none: 9.15.1, none
    #[arg(long = "cudnn", value_name = "VERSION")]
    pub(crate) library: Option<String>,
}

impl Flags {
    /// Returns true if any option was given.
    pub(crate) fn is_any_set(&self) -> bool {
        self.driver.is_some() || self.kernel.is_some() || !self.gpus.is_empty() || self.library.is_some()
    }
}

/// Arguments of `embed`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Guard to write: an object (guard.o) or its C source (guard.c)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Name of the component, as findings show it
    #[arg(long)]
    pub(crate) name: String,
    /// Version of the component
    #[arg(long, default_value = "0.0.0")]
    pub(crate) version: String,
    /// C compiler of the build, with the options that select the target
    #[arg(long, value_name = "CC", default_value = "cc")]
    pub(crate) compiler: String,
    /// nvcc that compiles the kernels
    #[arg(long, value_name = "FILE")]
    pub(crate) nvcc: Option<PathBuf>,
    /// Options of this nvcc, such as -gencode, -arch, -ccbin and -I
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, requires = "nvcc")]
    pub(crate) nvcc_flags: Vec<String>,
    /// Root of the CUDA toolkit, if no nvcc is used
    #[arg(long, value_name = "DIR")]
    pub(crate) toolkit: Option<PathBuf>,
    /// Include directory of the compiler, in search order
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    pub(crate) includes: Vec<PathBuf>,
    /// Library directory of the linker, in search order
    #[arg(short = 'L', long = "library-dir", value_name = "DIR")]
    pub(crate) libraries: Vec<PathBuf>,
    /// Treat mismatches as errors, as in a release build
    #[arg(long)]
    pub(crate) release: bool,
    /// Directory of cudaguard.toml and cudaguard.lock
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) source: PathBuf,
    /// Policy file to use instead of the cudaguard.toml in that directory
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Write the dependencies of the guard as a Make rule
    #[arg(long, value_name = "FILE")]
    pub(crate) depfile: Option<PathBuf>,
}

/// Arguments of `seal`.
#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    /// Linked program or shared library
    pub(crate) file: PathBuf,
    /// Files that it was linked from, including the guard
    #[arg(value_name = "OBJECT", value_hint = ValueHint::FilePath)]
    pub(crate) objects: Vec<PathBuf>,
    /// Guard that `embed` wrote, if it is not one of the objects
    #[arg(long, value_name = "FILE")]
    pub(crate) guard: Option<PathBuf>,
    /// Write the result to this file and leave the input unchanged
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Steps of the CMake package; CMake calls all but `install`.
#[derive(Debug, Subcommand)]
pub(crate) enum CmakeStep {
    /// Check whether targets can be guarded; prints the reason and ends with status 1 if not
    #[command(hide = true)]
    Begin {
        /// Version of the CMake package
        #[arg(long, value_name = "VERSION")]
        module: String,
        /// C compiler for the target
        #[arg(long, value_name = "FILE")]
        compiler: PathBuf,
        /// Option that the compiler needs for the target
        #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Check the toolchain of a target and write the objects of its guard
    #[command(hide = true)]
    Embed {
        /// Directory with what CMake knows about the target
        #[arg(long, value_name = "DIR")]
        facts: PathBuf,
        /// File for the dependencies of the guard
        #[arg(long, value_name = "FILE")]
        depfile: Option<PathBuf>,
    },
    /// Call the linker, then verify and seal its output; deletes the output if it is refused
    #[command(hide = true)]
    Link {
        /// Directory with what CMake knows about the target, if the target itself is guarded
        #[arg(long, value_name = "DIR")]
        facts: Option<PathBuf>,
        /// Run the `embed` step first
        #[arg(long, requires = "facts")]
        judge: bool,
        /// Command line of the linker
        #[arg(required = true, last = true, value_name = "COMMAND")]
        words: Vec<OsString>,
    },
    /// Write cudaguard.lock of a project
    #[command(hide = true)]
    Lock {
        /// File that lists the directories of the targets
        #[arg(long, value_name = "FILE")]
        targets: PathBuf,
    },
    /// Write the CMake package to PREFIX/lib/cmake/CudaGuard and the header to PREFIX/include/cudaguard
    #[command(after_long_help = help::CMAKE)]
    Install {
        #[arg(help = "Directory that CMAKE_PREFIX_PATH contains", long)]
        prefix: PathBuf,
    },
}
