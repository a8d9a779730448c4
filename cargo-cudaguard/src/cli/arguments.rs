//! Command-line arguments and their help. Cargo subcommands pass theirs to cargo unchanged.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{
    Arg, ArgAction, Args, ColorChoice, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    ValueEnum, ValueHint,
};
use clap_complete::Shell;
use cudaguard::internal::policy::LossKind;
use cudaguard::internal::tables::gpu_typed;

mod cargo_call;
mod help;

pub(crate) use cargo_call::Call;

use crate::cli::report;

/// A cargo subcommand that builds something to guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CargoVerb {
    /// `cargo build`
    Build,
    /// `cargo run`
    Run,
    /// `cargo test`
    Test,
    /// `cargo install`
    Install,
    /// Any other subcommand that calls the compiler wrapper; its name is the first argument.
    Any,
}

impl CargoVerb {
    /// Returns the name that cargo uses.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Run => "run",
            Self::Test => "test",
            Self::Install => "install",
            Self::Any => "",
        }
    }

    /// Parses a name or a built-in alias.
    pub(crate) fn from_name(word: &str) -> Option<Self> {
        Some(match word {
            "build" | "b" => Self::Build,
            "run" | "r" => Self::Run,
            "test" | "t" => Self::Test,
            "install" => Self::Install,
            _ => return None,
        })
    }
}

#[derive(Debug, Parser)]
#[command(
    name = "cargo-cudaguard",
    version,
    long_version = long_version(),
    about = "Check CUDA programs for compatibility with toolkits, drivers and GPUs",
    after_help = "Run `cargo cudaguard <COMMAND> --help` for examples and exit status.",
    after_long_help = help::MAIN,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Verb,
}

/// The version and the date of the newest facts in the tables, as `--version` prints them.
fn long_version() -> String {
    format!("{}\ntables: {}", env!("CARGO_PKG_VERSION"), cudaguard::internal::tables::date())
}

/// Options of every subcommand.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log each decision and the rule behind it; -vv adds details
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A cargo subcommand with its arguments.
    #[command(skip)]
    Cargo(CargoVerb, Vec<OsString>),
    #[command(skip)]
    Environment(Vec<OsString>),
    #[command(skip)]
    Check(Vec<OsString>),
    #[command(skip)]
    Init(Vec<OsString>),
    #[command(skip)]
    Lock(Vec<OsString>),
    /// Show what a binary contains: manifests, GPU code and CUDA libraries
    #[command(after_long_help = help::INSPECT)]
    Inspect {
        /// Program, library, object, wheel, package, archive, directory or image; `-` reads an archive from stdin
        file: PathBuf,
        #[command(flatten)]
        format: Format<Output>,
    },
    /// Check whether a binary will run on this machine, a described machine or a fleet
    #[command(after_long_help = help::VERIFY)]
    Verify(Box<VerifyOptions>),
    /// Choose the build that runs on this machine, a described machine or each machine of a fleet
    #[command(after_long_help = help::CHOOSE)]
    Choose(Box<ChooseOptions>),
    /// Print what a machine must have to run the given files
    #[command(after_long_help = help::REQUIREMENTS)]
    Requirements {
        /// Files, as for `verify`; the machine must be able to run all of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Name of the program or image for Kubernetes: my-model, registry.example/team/my-model
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        format: Format<RequirementsFormat>,
    },
    /// Show a GPU × driver compatibility matrix
    #[command(after_long_help = help::MAP)]
    Map {
        /// Files, as for `verify`; a GPU counts if it runs all of them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        format: Format<MapFormat>,
        /// Write to this file instead of stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Compare two releases: GPUs, drivers, libraries and guards that are gained or lost
    #[command(after_long_help = help::DIFF)]
    Diff(DiffOptions),
    /// Describe this machine: driver, GPUs, cuDNN and cudart
    #[command(after_long_help = help::PROBE)]
    Probe {
        #[command(flatten)]
        format: Format<ProbeFormat>,
        /// Print JSON in one line, for `verify --fleet`; same as --format line
        #[arg(long, conflicts_with_all = ["format", "json"])]
        line: bool,
        /// Name of this machine in the output
        #[arg(long)]
        name: Option<String>,
    },
    /// Diagnose this machine, or a program on this machine
    #[command(after_long_help = help::DOCTOR)]
    Doctor {
        /// Program, library, package, archive or directory to check on this machine
        #[arg(value_name = "PROGRAM")]
        program: Option<PathBuf>,
        /// Judge only this package of an environment, an image or a directory of wheels; repeatable
        #[arg(long = "package", value_name = "NAME", requires = "program")]
        packages: Vec<String>,
        #[command(flatten)]
        format: Format<TextOrJson>,
    },
    /// Verify a program on this machine, then run it
    #[command(override_usage = "cargo cudaguard exec -- <PROGRAM> [ARGUMENTS]...", after_long_help = help::EXEC)]
    Exec {
        /// Program and its arguments
        #[arg(required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
        command_line: Vec<OsString>,
    },
    /// Run a command on a simulated machine with NVIDIA GPUs; kernels do not run
    #[command(override_usage = "cargo cudaguard simulate [OPTIONS] -- <COMMAND>...", after_long_help = help::SIMULATE)]
    Simulate(Box<SimulateOptions>),
    /// Check a toolchain and write the guard as an object file, for Make, Meson, Bazel and others
    #[command(after_long_help = help::EMBED)]
    Embed(Box<Options>),
    /// Check a linked binary against the policy and update its manifest
    ///
    /// If the check fails, the binary is deleted.
    #[command(after_long_help = help::SEAL)]
    Seal(SealArgs),
    #[command(
        about = "Install the CMake package for find_package(CudaGuard)",
        after_long_help = help::CMAKE,
        subcommand,
        arg_required_else_help = true
    )]
    Cmake(CmakeStep),
    /// Print a shell completion script
    #[command(after_long_help = help::COMPLETIONS)]
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
    /// Write man pages to a directory
    #[command(after_long_help = help::MAN)]
    Man {
        /// Directory to write to, such as ~/.local/share/man/man1
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
    },
    /// Explain a finding, a CUDA status or an error text
    #[command(after_long_help = help::EXPLAIN)]
    Explain {
        /// Finding (CG301), number (803), name of a status, or error text; without it, a log is read from stdin
        #[arg(value_name = "TEXT")]
        words: Vec<String>,
        #[command(flatten)]
        format: Format<TextOrJson>,
    },
}

impl Verb {
    /// Returns a description of the work of a subcommand that can take long and prints nothing until it ends.
    pub(crate) fn activity(&self) -> Option<String> {
        let reading = |files: &[PathBuf]| {
            let more = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
            format!("reading {}{more}", files[0].display())
        };
        match self {
            Self::Inspect { file, .. } => Some(reading(std::slice::from_ref(file))),
            Self::Verify(options) => Some(reading(&options.files)),
            Self::Choose(_) => Some("reading the candidates".to_owned()),
            Self::Requirements { files, .. } | Self::Map { files, .. } => Some(reading(files)),
            Self::Diff(DiffOptions { old, new, .. }) => Some(reading(&[old.clone(), new.clone()])),
            Self::Doctor { .. } | Self::Probe { .. } => Some("querying the driver".to_owned()),
            _ => None,
        }
    }
}

/// `--format`, with `--json` as its short form.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Format<F: ValueEnum + Default + Send + Sync + 'static> {
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: F,
    /// Print JSON; same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl<F: ValueEnum + Default + Send + Sync + 'static> Format<F> {
    /// Returns the selected format.
    pub(crate) fn get(self) -> F {
        if self.json { F::from_str("json", false).expect("each subcommand prints JSON") } else { self.format }
    }
}

/// Format of `inspect` and `verify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// SARIF, for code scanning services
    Sarif,
}

/// Format of `diff`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Markdown for a pull request or release notes
    Markdown,
    /// JSON
    Json,
}

/// Format of `choose`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChooseFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// Arguments of pip install
    Pip,
    /// Arguments of uv pip install
    Uv,
    /// Pin for conda
    Conda,
    /// Part of an image tag
    Docker,
}

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

/// Format of `doctor` and `explain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
}

/// Format of `map`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapFormat {
    /// Table for the terminal
    #[default]
    Text,
    /// SVG image
    Svg,
    /// HTML page
    Html,
    /// Markdown table for release notes
    Markdown,
    /// JSON
    Json,
}

/// Format of `probe`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbeFormat {
    /// Human-readable text
    #[default]
    Text,
    /// Host file, for `verify --host`
    Json,
    /// Host file in one line, for `verify --fleet`
    Line,
}

/// Format of `requirements`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequirementsFormat {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// Dockerfile lines with labels and the variable `NVIDIA_REQUIRE_CUDA`
    Oci,
    /// Kubernetes resource claim for the NVIDIA DRA driver
    K8sDra,
    /// Kubernetes node affinity by the labels of GPU feature discovery
    K8sAffinity,
    /// Pins of a conda recipe
    Conda,
    /// Properties of a wheel variant
    WheelVariant,
    /// Check for a Slurm job script
    Slurm,
    /// CycloneDX components
    #[value(name = "cyclonedx")]
    CycloneDx,
    /// SPDX packages
    Spdx,
}

impl RequirementsFormat {
    /// Returns the name that `--format` accepts.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().expect("no format is hidden").get_name().to_owned()
    }
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

/// Reads the arguments of this process. Prints help, version and usage errors, and ends the process after them.
pub(crate) fn parse_process_args() -> (GlobalOptions, Verb) {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // cargo calls `cargo-cudaguard cudaguard …`.
    let by_cargo = words.first().is_some_and(|word| word == "cudaguard");
    if by_cargo {
        words.remove(0);
    }
    words = move_global_options(words);
    // `cargo cudaguard help verify` means `verify --help`, as in cargo.
    if words.first().is_some_and(|word| word == "help") {
        words.remove(0);
        words.truncate(1);
        words.push("--help".into());
    }
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    match word(0).map(|name| (name, CargoVerb::from_name(name))) {
        Some((_, Some(verb))) => return cargo(verb, &words[1..]),
        Some(("--", _)) if words.len() > 1 => {
            return match word(1).and_then(CargoVerb::from_name) {
                Some(verb) => cargo(verb, &words[2..]),
                None => cargo(CargoVerb::Any, &words[1..]),
            };
        }
        Some(("--", _)) => words.clear(),
        Some((name, _)) => {
            if let Some((_, verb)) = PROJECT_COMMANDS.iter().find(|(command, _)| *command == name) {
                // `Call` parses these arguments; clap only rejects unknown ones.
                let matches = parse(by_cargo, &words);
                let global = GlobalOptions::from_arg_matches(matches.subcommand().expect("required").1);
                return (global.expect("declared"), verb(words.split_off(1)));
            }
            if matches!(name, "verify" | "simulate") {
                words = separate_gpus(words);
            }
        }
        None => {}
    }
    let cli = Cli::from_arg_matches(&parse(by_cargo, &words)).expect("the same declaration");
    (cli.global, cli.command)
}

/// Moves the global options before a subcommand behind its name, where cargo accepts them too.
fn move_global_options(mut words: Vec<OsString>) -> Vec<OsString> {
    let mut options = 0;
    while let Some(word) = words.get(options).and_then(|word| word.to_str()) {
        options += match word {
            "--color" => 2,
            "--quiet" | "--verbose" => 1,
            _ if word.starts_with("--color=") => 1,
            _ if word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|c| matches!(c, 'q' | 'v')) => 1,
            _ => break,
        };
    }
    // In `-v -- clippy`, the name follows `--`.
    let name = options + usize::from(words.get(options).is_some_and(|word| word == "--"));
    if name < words.len() {
        words[..=name].rotate_left(options);
    }
    words
}

/// A function that creates a subcommand from its arguments.
type VerbConstructor = fn(Vec<OsString>) -> Verb;

/// Subcommands that accept cargo's options for packages, features and profiles.
const PROJECT_COMMANDS: [(&str, VerbConstructor); 4] =
    [("check", Verb::Check), ("env", Verb::Environment), ("init", Verb::Init), ("lock", Verb::Lock)];

/// Parses a cargo subcommand and reads the global options from cargo's arguments.
fn cargo(verb: CargoVerb, arguments: &[OsString]) -> (GlobalOptions, Verb) {
    let call = Call::parse(Some(verb), arguments);
    let color = match call.color.as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    };
    let global = GlobalOptions { color, quiet: call.quiet, verbose: call.verbose };
    (global, Verb::Cargo(verb, arguments.to_vec()))
}

fn parse(by_cargo: bool, words: &[OsString]) -> clap::ArgMatches {
    let words = std::iter::once(OsString::from("cargo-cudaguard")).chain(words.iter().cloned());
    build_command(by_cargo).try_get_matches_from(words).unwrap_or_else(|mut error| {
        if error.kind() == ErrorKind::InvalidSubcommand {
            suggest_cargo_subcommand(&mut error);
        }
        if error.use_stderr() {
            error.exit();
        }
        std::process::exit(report::check_written(error.print()).map_or_else(|stop| stop.report_status().into(), |_| 0))
    })
}

/// Adds the form in which the command passes any other subcommand to cargo, such as `clippy`.
fn suggest_cargo_subcommand(error: &mut clap::Error) {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
        let tip = format!("to run a subcommand of cargo, put it after `--`: `cargo cudaguard -- {name}`");
        let _ = error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Returns the error message for these arguments of a subcommand that cargo does not have, without running it. `None` if they are
/// valid.
pub fn usage_error(words: &[&str]) -> Option<String> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let words = if words.first().is_some_and(|word| word == "verify") { separate_gpus(words) } else { words };
    let words = std::iter::once(OsString::from("cargo-cudaguard")).chain(words);
    build_command(true).try_get_matches_from(words).err().filter(clap::Error::use_stderr).map(|error| error.to_string())
}

/// Repeats `--gpu` before each GPU that follows it. Files may follow the GPUs: the first argument that names no GPU is
/// a file. A command after `--` does not change.
fn separate_gpus(words: Vec<OsString>) -> Vec<OsString> {
    let gpu = |word: &OsString| word.to_str().is_some_and(|word| word.split(',').all(|one| gpu_typed(one).is_some()));
    let mut separated = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            separated.push(word);
            separated.extend(words);
            break;
        }
        let option = word == "--gpu";
        separated.push(word);
        if option {
            separated.extend(words.next());
            while let Some(more) = words.next_if(gpu) {
                separated.extend(["--gpu".into(), more]);
            }
        }
    }
    separated
}

/// Returns cudaguard's part of the help of a cargo subcommand. Cargo's own help follows it.
pub(crate) fn cargo_help(verb: CargoVerb) -> String {
    let name = verb.name();
    let mut command = with_cargo_options(Command::new(name), name);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage();
    let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    format!("{about}\n\n{usage}\n\n{examples}\n\nHelp of `cargo {name}`:\n\n")
}

/// Declares all subcommands. `by_cargo` selects the name that the help shows.
pub(crate) fn build_command(by_cargo: bool) -> Command {
    let command = Cli::command().bin_name(if by_cargo { "cargo cudaguard" } else { "cargo-cudaguard" });
    let cargo = help::WITH_CARGO_OPTIONS.iter().map(|(name, ..)| with_cargo_options(Command::new(*name), name));
    let command = command.subcommands(cargo).mut_subcommand("init", |init| {
        let init = init.mut_arg("cmake", |arg| arg.conflicts_with_all(["package", "workspace", "manifest-path"]));
        init.mut_arg("path", |arg| arg.conflicts_with("git"))
    });
    let command = command.mut_subcommand("check", |check| {
        let check = check.mut_arg("format", |arg| {
            arg.value_parser(["text", "json", "sarif", "github"]).default_value("text").conflicts_with("json")
        });
        check.mut_arg("json", |arg| arg.help("Print JSON; same as --format json"))
    });
    let mut groups = String::new();
    for (title, names) in help::GROUPS {
        let _ = write!(groups, "\n\n{title}:");
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = write!(groups, "\n  {name:<13} {}", about.unwrap_or_default());
        }
    }
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}{groups}\n\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Declares the subcommands that users call, for shell completions.
pub(crate) fn for_people() -> Command {
    let all = build_command(false);
    let people = all.get_subcommands().filter(|one| one.get_name() != "cmake").cloned().collect::<Vec<_>>();
    let command = Command::new("cargo-cudaguard").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    command.args(all.get_arguments().cloned()).subcommands(people)
}

/// An option of cargo: name, short name, value, help, and the subcommands that have it: `b`uild, `r`un, `t`est, `i`nstall,
/// `c`heck, `e`nv, i`n`it, `l`ock.
type CargoOption = (&'static str, Option<char>, Option<&'static str>, &'static str, &'static str);

/// The options that the help and the completions list. [`Call`] and cargo parse them.
const CARGO_OPTIONS: &[CargoOption] = &[
    ("package", Some('p'), Some("SPEC"), "Package to build", "brte"),
    ("package", Some('p'), Some("SPEC"), "Package to check", "c"),
    ("package", Some('p'), Some("SPEC"), "Package to set up", "n"),
    ("workspace", None, None, "Select all packages of the workspace", "btcen"),
    ("exclude", None, Some("SPEC"), "Exclude this package", "bt"),
    ("lib", None, None, "Build only the library", "bt"),
    ("bin", None, Some("NAME"), "Build only this binary", "brti"),
    ("bins", None, None, "Build all binaries", "bti"),
    ("example", None, Some("NAME"), "Build only this example", "brti"),
    ("examples", None, None, "Build all examples", "bti"),
    ("test", None, Some("NAME"), "Build only this test", "bt"),
    ("tests", None, None, "Build all targets that have tests", "bt"),
    ("all-targets", None, None, "Build all targets", "bt"),
    ("release", Some('r'), None, "Use the release profile", "brtce"),
    ("debug", None, None, "Use the dev profile", "i"),
    ("profile", None, Some("NAME"), "Use this profile", "brtice"),
    ("features", Some('F'), Some("FEATURES"), "Enable these features", "brtice"),
    ("all-features", None, None, "Enable all features", "brtice"),
    ("no-default-features", None, None, "Disable the default feature", "brtice"),
    ("target", None, Some("TRIPLE"), "Build for this target", "brtie"),
    ("target", None, Some("TRIPLE"), "Check for this target", "c"),
    ("target", None, Some("TRIPLE"), "Lock this target; entries of other targets do not change", "l"),
    ("target-dir", None, Some("DIR"), "Directory for build output", "brtie"),
    ("manifest-path", None, Some("PATH"), "Path to Cargo.toml", "brtcenl"),
    ("message-format", None, Some("FORMAT"), "Output format of cargo", "brti"),
    ("no-run", None, None, "Build the tests, but do not run them", "t"),
    ("no-fail-fast", None, None, "Run all tests even if one fails", "t"),
    ("path", None, Some("DIR"), "Install the package in this directory", "i"),
    ("git", None, Some("URL"), "Install a package of this repository", "i"),
    ("version", None, Some("VERSION"), "Install this version", "i"),
    ("root", None, Some("DIR"), "Directory to install to", "i"),
    ("force", Some('f'), None, "Replace an installed package", "i"),
    ("jobs", Some('j'), Some("N"), "Number of parallel jobs", "brti"),
    ("keep-going", None, None, "Build as much as possible after an error", "bi"),
    ("cmake", None, None, "Set up the CMake project in this directory", "n"),
    ("path", None, Some("DIR"), "Depend on the cudaguard library in this directory", "n"),
    ("git", None, Some("URL"), "Depend on the cudaguard library in this repository", "n"),
    ("dry-run", None, None, "Print what would be written, but write nothing", "n"),
    ("format", None, Some("FORMAT"), "Output format", "c"),
    ("json", None, None, "", "c"),
    ("locked", None, None, "Fail if Cargo.lock or cudaguard.lock would change", "brtice"),
    ("locked", None, None, "Write nothing; fail if cudaguard.lock would change", "l"),
    ("offline", None, None, "Do not access the network", "brtice"),
    ("frozen", None, None, "Same as --locked and --offline", "brtice"),
    ("frozen", None, None, "Same as --locked, and do not access the network", "l"),
    ("config", None, Some("KEY=VALUE|PATH"), "Override a cargo configuration value", "brticenl"),
];

/// Adds help and options to a subcommand that parses its arguments as cargo does.
fn with_cargo_options(command: Command, name: &str) -> Command {
    let (_, letter, about, long) =
        help::WITH_CARGO_OPTIONS.iter().find(|(command, ..)| *command == name).expect("the table has it");
    let options = CARGO_OPTIONS.iter().filter(|(.., commands)| commands.contains(*letter));
    let command = command.about(*about).after_long_help(*long).args(options.map(|(name, short, value, help, _)| {
        let option = Arg::new(*name).long(*name).short(*short).help(*help);
        match value {
            Some(value @ "DIR") => option.value_name(*value).value_hint(ValueHint::DirPath),
            Some(value @ "PATH") => option.value_name(*value).value_hint(ValueHint::FilePath),
            Some(value @ ("SPEC" | "FEATURES" | "TRIPLE" | "KEY=VALUE|PATH")) => {
                option.value_name(*value).action(ArgAction::Append)
            }
            Some(value) => option.value_name(*value),
            None => option.action(ArgAction::SetTrue),
        }
    }));
    if "brti".contains(*letter) {
        command.disable_version_flag(true).override_usage(format!("cargo cudaguard {name} [CARGO OPTIONS]"))
    } else {
        command
    }
}

#[cfg(test)]
mod tests;
