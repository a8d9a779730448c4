//! The arguments, and nothing done about them. cargo's verbs keep theirs as they are.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::Shell;
use cudaguard::guard::Tool;
use cudaguard::tables::gpu_typed;

mod cargo_call;

pub(crate) use cargo_call::Call;

use crate::report;

/// cargo's verbs that build something to guard.
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
    /// Whatever other subcommand builds something by calling cargo's compiler wrapper: its name is the first argument.
    Any,
}

impl CargoVerb {
    /// As cargo calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Run => "run",
            Self::Test => "test",
            Self::Install => "install",
            Self::Any => "",
        }
    }

    /// The one of this name.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "build" | "b" => Self::Build,
            "run" | "r" => Self::Run,
            "test" | "t" => Self::Test,
            "install" => Self::Install,
            _ => return None,
        })
    }
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Verb {
    /// cargo's own verb with cargo's own arguments.
    Cargo(CargoVerb, Vec<OsString>),
    /// The variables of a guarded build, for tools that call cargo themselves.
    Environment(Vec<OsString>),
    /// Judge the toolchain only.
    Check(Vec<OsString>),
    /// Write the files that a project needs.
    Init(Vec<OsString>),
    /// Write the lock.
    Lock(Vec<OsString>),
    /// What is in this file.
    Inspect {
        /// The file.
        file: PathBuf,
        /// In which form.
        form: Output,
    },
    /// Will it run.
    Verify(VerifyArgs),
    /// Will they run on each machine of a list of host files, a line each.
    Fleet {
        /// The files.
        files: Vec<PathBuf>,
        /// The list; `-` is stdin.
        list: PathBuf,
        /// As JSON.
        json: bool,
    },
    /// What a machine must have to run all of them.
    Requirements {
        /// The files.
        files: Vec<PathBuf>,
        /// In whose words.
        form: Form,
    },
    /// On which GPU with which driver files run, as a picture.
    Map {
        /// The files.
        files: Vec<PathBuf>,
        /// In which form.
        form: MapFormat,
        /// Where to; stdout without it.
        output: Option<PathBuf>,
    },
    /// What this machine is.
    Probe {
        /// For whom.
        form: ProbeFormat,
        /// What it is called.
        name: Option<String>,
    },
    /// What is wrong here.
    Doctor {
        /// With this program.
        program: Option<PathBuf>,
        /// As JSON.
        json: bool,
        /// Everything in this file, for a bug report.
        bundle: Option<PathBuf>,
    },
    /// Verify, then become the program.
    Exec {
        /// The program.
        program: OsString,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
    /// Make the guard of a program, for any build system.
    Embed(Box<Options>),
    /// Verify and seal what was linked with it.
    Seal(SealArgs),
    /// What the CMake module asks for.
    Cmake(CmakeStep),
    /// The script that completes words in a shell.
    Completions(Shell),
    /// Manual pages, into this folder.
    Man(PathBuf),
    /// A finding at length, or what these words mean.
    Explain { words: Vec<String>, json: bool },
}

/// What a build system that is neither cargo nor CMake says of a program.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The object, or the text in C.
    pub(crate) output: PathBuf,
    pub(crate) compiler: String,
    pub(crate) nvcc: Option<PathBuf>,
    pub(crate) nvcc_flags: Vec<String>,
    pub(crate) toolkit: Option<PathBuf>,
    pub(crate) includes: Vec<PathBuf>,
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) release: bool,
    pub(crate) source: PathBuf,
    pub(crate) policy: Option<PathBuf>,
    pub(crate) depfile: Option<PathBuf>,
}

/// What was linked with a guard.
#[derive(Debug)]
pub(crate) struct SealArgs {
    /// The linked file.
    pub(crate) file: PathBuf,
    /// What it was linked from.
    pub(crate) objects: Vec<PathBuf>,
    /// What `embed` wrote, where it is not among those.
    pub(crate) guard: Option<PathBuf>,
    /// Where the sealed file goes, if not into its place.
    pub(crate) output: Option<PathBuf>,
}

/// What was asked.
#[derive(Debug)]
pub(crate) struct VerifyArgs {
    /// The files.
    pub(crate) files: Vec<PathBuf>,
    /// Where they would run.
    pub(crate) place: Where,
    /// In which form.
    pub(crate) form: Output,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// The findings, for what shows them beside the files.
    Sarif,
}

impl Output {
    fn of(matches: &ArgMatches) -> Self {
        match matches.get_one::<String>("format").map(String::as_str) {
            Some("sarif") => Self::Sarif,
            Some("json") => Self::Json,
            _ if matches.get_flag("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// How a map is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapFormat {
    /// For the terminal.
    Text,
    /// As a drawing.
    Svg,
    /// As one page.
    Html,
}

impl MapFormat {
    /// All of them; the first where nobody asks for another.
    const ALL: [Self; 3] = [Self::Text, Self::Svg, Self::Html];

    /// As `--format` spells it.
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Svg => "svg",
            Self::Html => "html",
        }
    }
}

/// For whom a machine is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeFormat {
    /// For people.
    Text,
    /// As a host file.
    Json,
    /// As a line of a fleet.
    Line,
}

/// In whose words requirements are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// As JSON.
    Json,
    /// `NVIDIA_REQUIRE_CUDA`, of NVIDIA's container runtime.
    NvidiaRequire,
    /// Lines of a Dockerfile.
    Oci,
    /// A claim for NVIDIA's driver for dynamic resource allocation in Kubernetes.
    K8sDra,
    /// Affinity to nodes by the labels of GPU feature discovery.
    K8sAffinity,
    /// A policy of Kubernetes that holds pods to that affinity.
    K8sAdmission,
    /// Pins of a conda recipe.
    Conda,
    /// Properties of a wheel variant.
    WheelVariant,
    /// Directives of a Spack package.
    Spack,
    /// A check phase of a Nix derivation.
    Nix,
    /// A check for a prolog of Slurm.
    Slurm,
    /// Components of a bill of materials, by `CycloneDX`.
    CycloneDx,
    /// Packages of one, by SPDX.
    Spdx,
}

impl Form {
    /// All of them.
    pub(crate) const ALL: [Self; 14] = [
        Self::Text,
        Self::Json,
        Self::NvidiaRequire,
        Self::Oci,
        Self::K8sDra,
        Self::K8sAffinity,
        Self::K8sAdmission,
        Self::Conda,
        Self::WheelVariant,
        Self::Spack,
        Self::Nix,
        Self::Slurm,
        Self::CycloneDx,
        Self::Spdx,
    ];

    /// As `--format` spells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::NvidiaRequire => "nvidia-require",
            Self::Oci => "oci",
            Self::K8sDra => "k8s-dra",
            Self::K8sAffinity => "k8s-affinity",
            Self::K8sAdmission => "k8s-admission",
            Self::Conda => "conda",
            Self::WheelVariant => "wheel-variant",
            Self::Spack => "spack",
            Self::Nix => "nix",
            Self::Slurm => "slurm",
            Self::CycloneDx => "cyclonedx",
            Self::Spdx => "spdx",
        }
    }
}

/// Where a file would run.
#[derive(Debug)]
pub(crate) enum Where {
    /// On this machine.
    Here,
    /// On the machine of this host file.
    Host(PathBuf),
    /// On the machine that these flags describe.
    Flags(Flags),
}

/// A machine by flags, as they were typed.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// `--driver`: libcuda's release, a branch, `none`.
    pub(crate) driver: Option<String>,
    /// `--kernel`: the kernel module's.
    pub(crate) kernel: Option<String>,
    /// `--gpu`: compute capabilities, architectures or names.
    pub(crate) gpus: Vec<String>,
    /// `--cudnn`: a version, or `none`.
    pub(crate) library: Option<String>,
}

impl Flags {
    /// Whether any was given.
    fn any(&self) -> bool {
        self.driver.is_some() || self.kernel.is_some() || !self.gpus.is_empty() || self.library.is_some()
    }
}

/// What the CMake module asks for.
#[derive(Debug)]
pub(crate) enum CmakeStep {
    /// Whether targets can be guarded.
    Begin {
        /// The module's version.
        module: String,
        /// A compiler for the target.
        tool: Tool,
    },
    /// Judge, and make the guard.
    Embed {
        /// What CMake knows; the objects go beside it.
        facts: PathBuf,
        /// Where to write what they depend on.
        depfile: Option<PathBuf>,
    },
    /// Write the lock.
    Lock {
        /// The folders of what CMake knows, a line for each guarded target.
        targets: PathBuf,
    },
    /// Call the linker, then verify and seal what it made.
    Link {
        /// What CMake knows; with several configurations, the folder above.
        facts: PathBuf,
        /// First judge, and make the guard.
        judge: bool,
        /// The linker's command line.
        words: Vec<OsString>,
    },
    /// Write the CMake package.
    Install {
        /// Below this folder.
        prefix: PathBuf,
    },
}

/// Reads the process's arguments; wrong ones, `--help` and `--version` are answered here and end the process.
pub(crate) fn read() -> Verb {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // cargo calls `cargo-cudaguard cudaguard …`.
    let by_cargo = words.first().is_some_and(|word| word == "cudaguard");
    if by_cargo {
        words.remove(0);
    }
    if let Some(word) = words.first().and_then(|word| word.to_str()) {
        if let Some(verb) = CargoVerb::of(word) {
            return Verb::Cargo(verb, words.split_off(1));
        }
        if word == "--" {
            if let Some(name) = words.get(1) {
                return match name.to_str().and_then(CargoVerb::of) {
                    Some(verb) => Verb::Cargo(verb, words.split_off(2)),
                    None => Verb::Cargo(CargoVerb::Any, words.split_off(1)),
                };
            }
            words.truncate(0);
        }
    }
    if let Some(word) = words.first().and_then(|word| word.to_str()) {
        // These read cargo's way of naming packages and profiles, as the verbs that build do.
        let verb = match word {
            "check" => Some(Verb::Check as fn(Vec<OsString>) -> Verb),
            "env" => Some(Verb::Environment as fn(Vec<OsString>) -> Verb),
            "init" => Some(Verb::Init as fn(Vec<OsString>) -> Verb),
            "lock" => Some(Verb::Lock as fn(Vec<OsString>) -> Verb),
            _ => None,
        };
        if let Some(verb) = verb.filter(|_| !words.iter().any(|word| word == "--help" || word == "-h")) {
            let _ = matches(by_cargo, &words);
            return verb(words.split_off(1));
        }
    }
    if words.first().is_some_and(|word| word == "verify") {
        words = apart(words);
    }
    understood(&matches(by_cargo, &words))
}

/// Ends the process where there is nothing to do: help or version were asked for, or the words are wrong.
fn matches(by_cargo: bool, words: &[OsString]) -> ArgMatches {
    command(by_cargo).try_get_matches_from(named(words)).unwrap_or_else(|told| {
        if told.use_stderr() {
            told.exit();
        }
        let written = report::written(told.print());
        std::process::exit(written.map_or_else(|stop| stop.told().into(), |_| 0))
    })
}

/// Several GPUs may follow one `--gpu`, and so may a file: what names no GPU is one.
fn apart(words: Vec<OsString>) -> Vec<OsString> {
    let gpu = |word: &OsString| word.to_str().is_some_and(|word| word.split(',').all(|one| gpu_typed(one).is_some()));
    let mut told = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let option = word == "--gpu";
        told.push(word);
        if option {
            told.extend(words.next());
            while let Some(more) = words.next_if(gpu) {
                told.extend(["--gpu".into(), more]);
            }
        }
    }
    told
}

fn named(words: &[OsString]) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from("cargo-cudaguard")).chain(words.iter().cloned())
}

fn understood(matches: &ArgMatches) -> Verb {
    let (name, matches) = matches.subcommand().expect("a verb is required");
    match name {
        "inspect" => Verb::Inspect {
            file: matches.get_one::<PathBuf>("FILE").cloned().expect("required"),
            form: Output::of(matches),
        },
        "verify" => verify_of(matches),
        "requirements" => Verb::Requirements {
            files: matches.get_many::<PathBuf>("FILE").expect("required").cloned().collect(),
            form: match matches.get_one::<String>("format") {
                Some(name) => Form::ALL.into_iter().find(|form| form.name() == name).expect("one of the names"),
                None if matches.get_flag("json") => Form::Json,
                None => Form::Text,
            },
        },
        "map" => Verb::Map {
            files: matches.get_many::<PathBuf>("FILE").expect("required").cloned().collect(),
            form: {
                let name = matches.get_one::<String>("format").expect("it has a default");
                MapFormat::ALL.into_iter().find(|form| form.name() == name).expect("one of the names")
            },
            output: matches.get_one::<PathBuf>("output").cloned(),
        },
        "probe" => Verb::Probe {
            form: match (matches.get_flag("line"), matches.get_flag("json")) {
                (true, _) => ProbeFormat::Line,
                (false, true) => ProbeFormat::Json,
                (false, false) => ProbeFormat::Text,
            },
            name: matches.get_one::<String>("name").cloned(),
        },
        "doctor" => Verb::Doctor {
            program: matches.get_one::<PathBuf>("FILE").cloned(),
            json: matches.get_flag("json"),
            bundle: matches.get_one::<PathBuf>("bundle").cloned(),
        },
        "exec" => {
            let mut words = matches.get_many::<OsString>("PROGRAM").expect("required").cloned();
            Verb::Exec { program: words.next().expect("at least one"), arguments: words.collect() }
        }
        "embed" => Verb::Embed(Box::new(of_embed(matches))),
        "seal" => {
            let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
            Verb::Seal(SealArgs {
                file: path("FILE").expect("required"),
                objects: matches.get_many::<PathBuf>("OBJECT").unwrap_or_default().cloned().collect(),
                guard: path("guard"),
                output: path("output"),
            })
        }
        "cmake" => Verb::Cmake(of_cmake(matches)),
        "completions" => Verb::Completions(*matches.get_one::<Shell>("SHELL").expect("required")),
        "man" => Verb::Man(matches.get_one::<PathBuf>("FOLDER").cloned().expect("required")),
        "explain" => Verb::Explain {
            words: matches.get_many::<String>("WHAT").unwrap_or_default().cloned().collect(),
            json: matches.get_flag("json"),
        },
        other => unreachable!("{other} has been dealt with"),
    }
}

fn of_embed(matches: &ArgMatches) -> Options {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let paths = |name: &str| matches.get_many::<PathBuf>(name).unwrap_or_default().cloned().collect();
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    Options {
        name: text("name"),
        version: text("version"),
        output: path("output").expect("required"),
        compiler: text("compiler"),
        nvcc: path("nvcc"),
        nvcc_flags: matches.get_many::<String>("nvcc-flags").unwrap_or_default().cloned().collect(),
        toolkit: path("toolkit"),
        includes: paths("include"),
        libraries: paths("library-dir"),
        release: matches.get_flag("release"),
        source: path("source").unwrap_or_else(|| ".".into()),
        policy: path("policy"),
        depfile: path("depfile"),
    }
}

/// For Make, Meson, Bazel and whatever else compiles and links.
fn any_build_system() -> [Command; 2] {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
    };
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let output = |help: &'static str| path("output", "FILE", help).short('o');
    let files = |name: &'static str, help: &'static str| {
        Arg::new(name).value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath).help(help)
    };
    let embed = Command::new("embed")
        .about(
            "Judge what a program is built with, and make its guard as an object to link: for Make, Meson and others",
        )
        .arg(output("The guard: an object (guard.o), or its text in C (guard.c)").required(true))
        .arg(text("name", "NAME", "What is built: the name that findings call it by").required(true))
        .arg(text("version", "VERSION", "Its version").default_value("0.0.0"))
        .arg(
            text("compiler", "CC", "The C compiler of the build, with flags that choose the target")
                .default_value("cc"),
        )
        .arg(path("nvcc", "FILE", "The nvcc that compiles its kernels"))
        .arg(
            text("nvcc-flags", "FLAGS", "What that nvcc is called with: -gencode, -arch, -ccbin, -I")
                .action(ArgAction::Append)
                .allow_hyphen_values(true),
        )
        .arg(path("toolkit", "ROOT", "The root of the toolkit, where no nvcc compiles anything"))
        .arg(
            path("include", "FOLDER", "Where the compiler finds headers, in its order")
                .short('I')
                .action(ArgAction::Append),
        )
        .arg(
            path("library-dir", "FOLDER", "Where the linker finds libraries, in its order")
                .short('L')
                .action(ArgAction::Append),
        )
        .arg(
            Arg::new("release")
                .long("release")
                .action(ArgAction::SetTrue)
                .help("A build to give to others: by default, what does not belong together fails it"),
        )
        .arg(path(
            "source",
            "FOLDER",
            "The project: where cudaguard.toml and cudaguard.lock stand [default: this folder]",
        ))
        .arg(path("policy", "FILE", "The policy, where it stands elsewhere"))
        .arg(path("depfile", "FILE", "Write what the guard depends on, as a rule of make"));
    let seal = Command::new("seal")
        .about(
            "Hold a linked file against the policy, and record in it what it holds; a file that is refused is removed",
        )
        .arg(files("FILE", "The program or shared library").required(true))
        .arg(files("OBJECT", "What it was linked from, the guard among them").num_args(0..))
        .arg(path("guard", "FILE", "What `embed` wrote, where it is not among the objects"))
        .arg(output("Write the sealed file here, and leave the other as it is"));
    [embed, seal]
}

fn of_cmake(matches: &ArgMatches) -> CmakeStep {
    let (name, matches) = matches.subcommand().expect("a step is required");
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    match name {
        "begin" => CmakeStep::Begin {
            module: matches.get_one::<String>("module").cloned().expect("required"),
            tool: Tool {
                program: path("compiler").expect("required"),
                flags: matches.get_many::<String>("flag").into_iter().flatten().cloned().collect(),
                kept: None,
            },
        },
        "embed" => CmakeStep::Embed { facts: path("facts").expect("required"), depfile: path("depfile") },
        "link" => CmakeStep::Link {
            facts: path("facts").expect("required"),
            judge: matches.get_flag("judge"),
            words: matches.get_many::<OsString>("WORD").expect("required").cloned().collect(),
        },
        "install" => CmakeStep::Install { prefix: path("prefix").expect("required") },
        "lock" => CmakeStep::Lock { targets: path("targets").expect("required") },
        other => unreachable!("{other} has been dealt with"),
    }
}

/// What the CMake module calls, and what writes it.
fn cmake() -> Command {
    let path = |name: &'static str| Arg::new(name).long(name).required(true).value_parser(value_parser!(PathBuf));
    let facts = || path("facts").value_name("FOLDER").help("What CMake knows of the target");
    Command::new("cmake")
        .about("Write the CMake package, for find_package(CudaGuard)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("install")
                .about("Write the CMake package: PREFIX/lib/cmake/CudaGuard and PREFIX/include/cudaguard")
                .arg(path("prefix").value_name("PREFIX").help("A folder that CMAKE_PREFIX_PATH will name")),
        )
        .subcommand(
            Command::new("begin")
                .hide(true)
                .about("Whether targets can be guarded: status 1 and the reason on stdout where not")
                .arg(
                    Arg::new("module").long("module").value_name("VERSION").required(true).help("The module's version"),
                )
                .arg(path("compiler").value_name("FILE").help("Compiles C for the target"))
                .arg(
                    Arg::new("flag")
                        .long("flag")
                        .value_name("FLAG")
                        .action(ArgAction::Append)
                        .allow_hyphen_values(true)
                        .help("A flag that it needs for that"),
                ),
        )
        .subcommand(
            Command::new("embed")
                .hide(true)
                .about("Judge what the target is built with, and make the objects of its guard")
                .arg(facts())
                .arg(path("depfile").required(false).value_name("FILE").help("Where to write what they depend on")),
        )
        .subcommand(
            Command::new("link")
                .hide(true)
                .about("Call the linker, then verify the file and seal its note; one that is refused is removed")
                .arg(facts())
                .arg(
                    Arg::new("judge")
                        .long("judge")
                        .action(ArgAction::SetTrue)
                        .help("First do as `embed`, which was no step of its own"),
                )
                .arg(
                    Arg::new("WORD")
                        .required(true)
                        .num_args(1..)
                        .last(true)
                        .value_parser(value_parser!(OsString))
                        .help("Its command line"),
                ),
        )
        .subcommand(
            Command::new("lock")
                .hide(true)
                .about("Write the lock of a project")
                .arg(path("targets").value_name("FILE").help("A line for each target: what CMake knows of it")),
        )
}

fn verify_of(matches: &ArgMatches) -> Verb {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let files = matches.get_many::<PathBuf>("FILE").expect("required").cloned().collect();
    let json = matches.get_flag("json");
    let gpus = matches.get_many::<String>("gpu").unwrap_or_default().cloned().collect();
    let flags = Flags { driver: text("driver"), kernel: text("kernel"), gpus, library: text("cudnn") };
    let place = match (path("host"), path("fleet")) {
        (Some(host), _) => Where::Host(host),
        (None, Some(list)) => return Verb::Fleet { files, list, json },
        (None, None) if flags.any() => Where::Flags(flags),
        (None, None) => Where::Here,
    };
    Verb::Verify(VerifyArgs { files, place, form: Output::of(matches) })
}

fn form() -> Arg {
    let form = Arg::new("format").long("format").value_name("FORM").value_parser(["text", "json", "sarif"]);
    form.conflicts_with("json").help("The form of the output")
}

/// What cargo itself would be told.
fn of_cargo() -> [Arg; 2] {
    [
        Arg::new("manifest-path").long("manifest-path").value_name("PATH").help("Path to Cargo.toml"),
        Arg::new("config")
            .long("config")
            .value_name("KEY=VALUE|PATH")
            .action(ArgAction::Append)
            .help("Override one of cargo's configuration values"),
    ]
}

/// Which features: they decide which crates are in a program.
fn features() -> [Arg; 4] {
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    [
        Arg::new("features")
            .short('F')
            .long("features")
            .value_name("FEATURES")
            .action(ArgAction::Append)
            .help("With these features, as for a build"),
        switch("all-features").help("With all features"),
        switch("no-default-features").help("Without the default feature"),
        switch("offline").help("Fetch nothing"),
    ]
}

/// Which packages, as cargo is told.
fn packages(one: &'static str, all: &'static str) -> [Arg; 2] {
    let package = Arg::new("package").short('p').long("package").value_name("SPEC").action(ArgAction::Append);
    [package.help(one), Arg::new("workspace").long("workspace").action(ArgAction::SetTrue).help(all)]
}

fn locks(help: &'static str) -> [Arg; 2] {
    let locked = Arg::new("locked").long("locked").action(ArgAction::SetTrue);
    [locked.help(help), Arg::new("frozen").long("frozen").action(ArgAction::SetTrue).hide(true)]
}

/// An option of cargo's: name, letter, value, help, and the verbs that have it by their first letters.
type OfCargo = (&'static str, Option<char>, Option<&'static str>, &'static str, &'static str);

/// Those that are worth completing. They are never read here.
const OF_CARGO: &[OfCargo] = &[
    ("package", Some('p'), Some("SPEC"), "Package to build", "brt"),
    ("workspace", None, None, "All packages of the workspace", "bt"),
    ("exclude", None, Some("SPEC"), "All but this package", "bt"),
    ("lib", None, None, "The library only", "bt"),
    ("bin", None, Some("NAME"), "This program", "brti"),
    ("bins", None, None, "All programs", "bti"),
    ("example", None, Some("NAME"), "This example", "brti"),
    ("examples", None, None, "All examples", "bti"),
    ("test", None, Some("NAME"), "This test", "bt"),
    ("tests", None, None, "All targets that have tests", "bt"),
    ("all-targets", None, None, "All targets", "bt"),
    ("release", Some('r'), None, "Optimised, with the release profile", "brt"),
    ("debug", None, None, "With the dev profile", "i"),
    ("profile", None, Some("NAME"), "With this profile", "brti"),
    ("features", Some('F'), Some("FEATURES"), "Features to enable", "brti"),
    ("all-features", None, None, "All features", "brti"),
    ("no-default-features", None, None, "Without the default features", "brti"),
    ("target", None, Some("TRIPLE"), "Build for this target", "brti"),
    ("target-dir", None, Some("FOLDER"), "Where built files go", "brti"),
    ("manifest-path", None, Some("PATH"), "Path to Cargo.toml", "brt"),
    ("message-format", None, Some("FORM"), "The form of the output", "brti"),
    ("no-run", None, None, "Build, and run nothing", "t"),
    ("no-fail-fast", None, None, "Run all tests, also after one has failed", "t"),
    ("path", None, Some("FOLDER"), "The package in this folder", "i"),
    ("git", None, Some("URL"), "A package of this repository", "i"),
    ("version", None, Some("VERSION"), "This version", "i"),
    ("root", None, Some("FOLDER"), "Where to install", "i"),
    ("force", Some('f'), None, "Replace what is installed", "i"),
    ("jobs", Some('j'), Some("N"), "How many at a time", "brti"),
    ("keep-going", None, None, "Build as much as possible", "bi"),
    ("locked", None, None, "Cargo.lock and cudaguard.lock must hold", "brti"),
    ("offline", None, None, "Without the network", "brti"),
    ("frozen", None, None, "--locked and --offline", "brti"),
    ("config", None, Some("KEY=VALUE|PATH"), "Override one of cargo's configuration values", "brti"),
    ("color", None, Some("WHEN"), "auto, always, never", "brti"),
    ("verbose", Some('v'), None, "Say more", "brti"),
    ("quiet", Some('q'), None, "Say less", "brti"),
];

/// The options of one of cargo's verbs.
fn options_of(verb: &'static str) -> impl Iterator<Item = Arg> {
    let of = OF_CARGO.iter().filter(move |(.., verbs)| verbs.contains(&verb[..1]));
    of.map(|(name, letter, value, help, _)| {
        let option = Arg::new(*name).long(*name).help(*help);
        let option = letter.map_or(option.clone(), |letter| option.short(letter));
        match value {
            Some(value @ "FOLDER") => option.value_name(*value).value_hint(ValueHint::DirPath),
            Some(value @ "PATH") => option.value_name(*value).value_hint(ValueHint::FilePath),
            Some(value) => option.value_name(*value),
            None => option.action(ArgAction::SetTrue),
        }
    })
}

fn verify() -> Command {
    let file = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf))
    };
    let machine = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).conflicts_with_all(["host", "fleet"])
    };
    Command::new("verify")
        .about("Will it run: here, on a machine that is described, or on which machines of a fleet")
        .arg(
            Arg::new("FILE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("A program, a library, an object, or GPU code by itself; a wheel, an archive, a folder or an image"),
        )
        .arg(file("host", "HOST.json").help("On the machine of this host file, which `probe --json` writes"))
        .arg(
            file("fleet", "HOSTS")
                .conflicts_with("host")
                .help(
                    "On each machine of this list: a host file on each line, nvidia-smi's XML or CSV, kubectl's nodes or \
                     resourceslices as JSON, or a folder of those; `-` reads stdin",
                ),
        )
        .arg(machine("driver", "RELEASE").help("With a driver of this release or branch: 535.261.03, 535, none"))
        .arg(machine("kernel", "RELEASE").help("With a kernel module of another release than libcuda"))
        .arg(
            machine("gpu", "GPU")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("With these GPUs: 8.6, sm_86, A100, none"),
        )
        .arg(machine("cudnn", "VERSION").help("With this cuDNN: 9.15.1, none"))
        .after_help(
            "What no flag names is not known, and what is not known never refuses. Exit status: 0 it runs, or it cannot be \
             told; 1 it is refused; 2 could not look.",
        )
}

fn requirements() -> Command {
    Command::new("requirements")
        .about("What a machine must have to run files, for people and in the words of schedulers and package managers")
        .arg(
            Arg::new("FILE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("A program, a library, an object, or GPU code by itself; of several all must run"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .value_parser(Form::ALL.map(Form::name))
                .conflicts_with("json")
                .help("In whose words"),
        )
        .after_help("Exit status: 0 fine, 2 could not look, or nothing can be said in that form.")
}

fn map() -> Command {
    Command::new("map")
        .about("On which GPU with which driver files run: a table, a drawing or a page")
        .arg(
            Arg::new("FILE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("What `verify` reads; of several all must run"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .value_parser(MapFormat::ALL.map(MapFormat::name))
                .default_value(MapFormat::ALL[0].name())
                .help("How it is drawn"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Where to, in the place of stdout"),
        )
        .after_help("Exit status: 0 fine, 2 could not look.")
}

/// What we say of one of cargo's verbs, above what cargo says of it.
pub(crate) fn of_verb(verb: CargoVerb) -> String {
    let all = for_people(true);
    let known = all.get_subcommands().find(|one| one.get_name() == verb.name());
    let about = known.and_then(|one| one.get_about()).map(ToString::to_string).unwrap_or_default();
    let name = verb.name();
    format!(
        "{about}\n\nUsage: cargo cudaguard {name} [cargo's own arguments]\n\nWhat cargo says of `cargo {name}`:\n\n"
    )
}

/// Everything that is understood; with `by_cargo` called as cargo calls it.
pub(crate) fn command(by_cargo: bool) -> Command {
    for_people(by_cargo).subcommand(cmake())
}

/// The same without what only programs call: for shells.
pub(crate) fn for_people(by_cargo: bool) -> Command {
    let json = || Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON on stdout");
    let cargos = |name: &'static str, about: &'static str| {
        let usage = format!("cargo cudaguard {name} [cargo's own arguments]");
        Command::new(name).about(about).override_usage(usage).disable_version_flag(true).args(options_of(name))
    };
    Command::new("cargo-cudaguard")
        .bin_name(if by_cargo { "cargo cudaguard" } else { "cargo-cudaguard" })
        .version(env!("CARGO_PKG_VERSION"))
        .about("Builds CUDA programs that know what they were built with, and says where they will run")
        .after_help(
            "Any other subcommand of cargo's, guarded: cargo cudaguard -- nextest run\n\n\
             Exit status: 0 fine, 1 findings that refuse, 2 could not look, 3 nothing known of it (explain), 78 refused at \
             start-up (run, exec); cargo's own where cargo failed.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(cargos("build", "cargo build, with guard and manifest in what it makes"))
        .subcommand(cargos("run", "cargo run, guarded; says beforehand what would stop the loader"))
        .subcommand(cargos("test", "cargo test; the package's programs are guarded, those that cargo makes of tests are not"))
        .subcommand(cargos("install", "cargo install, guarded"))
        .subcommand(
            Command::new("env")
                .about("The variables of a guarded build, for a shell: eval \"$(cargo cudaguard env --release)\"")
                .args(packages("Package to build", "All packages of the workspace"))
                .arg(
                    Arg::new("release")
                        .short('r')
                        .long("release")
                        .action(ArgAction::SetTrue)
                        .help("For builds of the release profile"),
                )
                .arg(Arg::new("profile").long("profile").value_name("NAME").help("For builds of this profile"))
                .arg(Arg::new("target").long("target").value_name("TRIPLE").help("For builds for this target"))
                .arg(Arg::new("target-dir").long("target-dir").value_name("FOLDER").help("Where built files go"))
                .args(features())
                .args(of_cargo())
                .args(locks("Where cudaguard.lock says otherwise, refuse")),
        )
        .subcommand(
            Command::new("check")
                .about("Judge the toolchain only")
                .arg(json())
                .args(packages("Package to judge for", "For every member"))
                .arg(
                    Arg::new("release")
                        .short('r')
                        .long("release")
                        .action(ArgAction::SetTrue)
                        .help("As for a release build"),
                )
                .arg(Arg::new("profile").long("profile").value_name("NAME").help("As for a build of this profile"))
                .arg(Arg::new("target").long("target").value_name("TRIPLE").help("As for a build for this target"))
                .arg(
                    Arg::new("format")
                        .long("format")
                        .value_name("FORM")
                        .value_parser(["text", "json", "sarif", "github"])
                        .conflicts_with("json")
                        .help("The form of the output"),
                )
                .args(features())
                .args(of_cargo())
                .args(locks("Where cudaguard.lock says otherwise, refuse")),
        )
        .subcommand(
            Command::new("init")
                .about("Write what a project needs: build.rs, its dependency, cudaguard.toml, a workflow; never over a file")
                .args(packages("Package to guard", "Every member"))
                .arg(
                    Arg::new("cmake")
                        .long("cmake")
                        .action(ArgAction::SetTrue)
                        .conflicts_with_all(["package", "workspace", "manifest-path"])
                        .help("For the CMake project in this folder: lines of CMakeLists.txt, cudaguard.toml, a workflow"),
                )
                .arg(
                    Arg::new("path")
                        .long("path")
                        .value_name("FOLDER")
                        .value_hint(ValueHint::DirPath)
                        .conflicts_with_all(["cmake", "git"])
                        .help("Depend on the library cudaguard in this folder, not on a version of the registry's"),
                )
                .arg(
                    Arg::new("git")
                        .long("git")
                        .value_name("URL")
                        .conflicts_with("cmake")
                        .help("Depend on the library cudaguard of this repository"),
                )
                .args(of_cargo()),
        )
        .subcommand(
            Command::new("lock")
                .about("Write cudaguard.lock: what the workspace is built with, to be kept from now on")
                .arg(
                    Arg::new("target")
                        .long("target")
                        .value_name("TRIPLE")
                        .action(ArgAction::Append)
                        .help("For this target; what is locked for others stays"),
                )
                .args(of_cargo())
                .args(locks("Write nothing; refuse where the file would be changed")),
        )
        .subcommand(
            Command::new("inspect")
                .about("Manifests, kernels and CUDA libraries of a file, or of all in an archive")
                .arg(Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf)).help(
                    "An executable, a shared library, an object or a static archive; a wheel, an archive, a folder or an image; `-` reads an archive from stdin",
                ))
                .arg(form())
                .arg(json()),
        )
        .subcommand(verify().arg(form().conflicts_with("fleet")).arg(json()))
        .subcommand(requirements().arg(json()))
        .subcommand(map())
        .subcommand(
            Command::new("probe")
                .about("This machine's driver, GPUs, cuDNN and cudart, as a host file for `verify --host`")
                .arg(json())
                .arg(
                    Arg::new("line")
                        .long("line")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("json")
                        .help("As JSON in one line, for `verify --fleet`"),
                )
                .arg(Arg::new("name").long("name").value_name("NAME").help("What this machine is called in it")),
        )
        .subcommand(
            Command::new("doctor")
                .about("What is wrong with this machine, or with a program on it, and what to do")
                .arg(
                    Arg::new("FILE")
                        .value_parser(value_parser!(PathBuf))
                        .help("A program or a shared library: what it would meet here"),
                )
                .arg(json())
                .arg(
                    Arg::new("bundle")
                        .long("bundle")
                        .value_name("FILE")
                        .value_parser(value_parser!(PathBuf))
                        .conflicts_with("json")
                        .help("Write one file for a bug report, without private data, and say what was taken out"),
                ),
        )
        .subcommand(
            Command::new("exec")
                .about("Verify, then become the program: says what would stop the loader")
                .override_usage("cargo cudaguard exec -- PROGRAM [ARGUMENTS]…")
                .arg(
                    Arg::new("PROGRAM")
                        .required(true)
                        .num_args(1..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .value_parser(value_parser!(OsString))
                        .help("The program and its arguments"),
                ),
        )
        .subcommands(any_build_system())
        .subcommand(
            Command::new("completions")
                .about("The script that completes `cargo cudaguard` in a shell, on stdout")
                .arg(Arg::new("SHELL").required(true).value_parser(value_parser!(Shell)).help("Which shell")),
        )
        .subcommand(
            Command::new("man").about("Write manual pages").arg(
                Arg::new("FOLDER")
                    .required(true)
                    .value_parser(value_parser!(PathBuf))
                    .value_hint(ValueHint::DirPath)
                    .help("Where they go: a folder man1 on MANPATH"),
            ),
        )
        .subcommand(
            Command::new("explain")
                .about("A finding at length, or what an error most often means; without a word, the list of both")
                .arg(Arg::new("WHAT").num_args(0..).help(
                    "CG and three digits; or a number (803), a status's name, an error's text; - reads a log from stdin. \
                     Status 3 where nothing is known",
                ))
                .arg(json()),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        command(true).debug_assert();
        command(false).debug_assert();
    }

    #[test]
    fn the_commands_that_symptoms_name_are_there() {
        let mut own = 0;
        for cause in cudaguard::symptoms::table().iter().flat_map(|symptom| &symptom.causes) {
            let named = cause.cure.split('`').filter(|text| text.starts_with("cargo cudaguard"));
            for command_line in named.chain(std::iter::once(cause.see.as_str())) {
                let Some(words) = command_line.strip_prefix("cargo cudaguard") else { continue };
                let words = std::iter::once("cargo-cudaguard").chain(words.split_whitespace());
                let understood = command(true).try_get_matches_from(words);
                assert!(understood.is_ok(), "{command_line}: {}", understood.unwrap_err());
                own += 1;
            }
        }
        assert!(own > 50, "{own}");
    }

    #[test]
    fn cargo_has_the_options_that_are_completed() {
        for verb in ["build", "run", "test", "install"] {
            let cargo = cudaguard::env::Env::from_process().var_os("CARGO").expect("cargo runs the tests");
            let help = std::process::Command::new(cargo).args([verb, "--help"]).output().expect("cargo starts");
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            let words: Vec<&str> = help.split(|c: char| c.is_whitespace() || "[]<>,=.".contains(c)).collect();
            for option in options_of(verb) {
                let long = format!("--{}", option.get_long().expect("each has a long name"));
                assert!(words.contains(&long.as_str()), "cargo {verb} has no {long}");
                if let Some(letter) = option.get_short() {
                    assert!(words.contains(&format!("-{letter}").as_str()), "cargo {verb} has no -{letter}");
                }
            }
        }
    }
}
