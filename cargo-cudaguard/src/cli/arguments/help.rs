//! Help texts: groups, examples and exit status.

/// Subcommands grouped by subject, as `--help` lists them.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Build with cargo", &["build", "run", "test", "install", "check", "lock", "init", "env"]),
    ("Examine files", &["inspect", "verify", "choose", "diff", "requirements", "map"]),
    ("Examine this machine", &["doctor", "probe", "exec"]),
    ("Test without a GPU", &["simulate"]),
    ("Build with other tools", &["cmake", "embed", "seal"]),
    ("Help", &["explain", "completions", "man"]),
];

pub(crate) const MAIN: &str = "\
Examples:
  cargo cudaguard build --release                               Build a program with the guard
  cargo cudaguard -- nextest run                                Guard any other cargo subcommand
  cargo cudaguard verify ./my-model --gpu A100 --driver 535     Check a program for another machine
  cargo cudaguard doctor ./my-model                             Find out why a program fails here
  cargo cudaguard explain 803                                   Explain an error

Exit status:
  0   success
  1   incompatible, or a build is refused; choose: no candidate runs; diff: support is lost; lock --locked: the file would change
  2   usage or I/O error; verify, choose, doctor, diff: unknown, or something was not examined
  3   explain: unknown text
  78  run, exec: refused at start-up
  If cargo fails, the status is cargo's.

Environment:
  CUDAGUARD_LOG=info|debug    Log as -v and -vv do, also in builds that other tools start
  CARGO_TERM_COLOR, NO_COLOR  Colors, if --color is not given";

/// Subcommands that parse their arguments as cargo does: name, letter in the table of options, summary, and the end of
/// the long help.
pub(crate) const WITH_CARGO_OPTIONS: &[(&str, char, &str, &str)] = &[
    (
        "build",
        'b',
        "Run cargo build and add the guard to each program",
        "\
All options of `cargo build` are accepted and passed on.

Examples:
  cargo cudaguard build --release
  cargo cudaguard build -p my-model --features cuda

Exit status:
  1  a build is refused
  Otherwise the status of cargo.",
    ),
    (
        "run",
        'r',
        "Run cargo run with the guard, and verify the program before it starts",
        "\
All options of `cargo run` are accepted and passed on.

Example:
  cargo cudaguard run --release

Exit status:
  1   the build is refused
  78  the start is refused
  Otherwise the status of cargo or of the program.",
    ),
    (
        "test",
        't',
        "Run cargo test with guarded programs",
        "\
All options of `cargo test` are accepted and passed on. A test executable is guarded only if its package calls `embed!()`.

Example:
  cargo cudaguard test --workspace

Exit status:
  1  a build is refused
  Otherwise the status of cargo.",
    ),
    (
        "install",
        'i',
        "Run cargo install and add the guard to each program",
        "\
All options of `cargo install` are accepted and passed on.

Example:
  cargo cudaguard install --path .

Exit status:
  1  a build is refused
  Otherwise the status of cargo.",
    ),
    (
        "check",
        'c',
        "Check the CUDA toolchain without building",
        "\
Examples:
  cargo cudaguard check --release
  cargo cudaguard check --workspace --format github

Exit status:
  0  no findings that fail a build of this profile
  1  findings that fail the build
  2  usage or I/O error",
    ),
    (
        "env",
        'e',
        "Print the environment of a guarded build, for tools that call cargo",
        "\
Example:
  eval \"$(cargo cudaguard env --release)\" && cargo build --release

Exit status:
  0  success
  1  the build is refused
  2  usage or I/O error

The printed text ends with `false` if the status is not 0, so that `eval` fails too.",
    ),
    (
        "init",
        'n',
        "Set up a project: build.rs, its dependency, cudaguard.toml and a CI workflow",
        "\
`init` never changes a file that exists, except that it adds a build-dependency to Cargo.toml.

Examples:
  cargo cudaguard init --dry-run
  cargo cudaguard init -p my-model
  cargo cudaguard init --cmake

Exit status:
  0  success
  2  usage or I/O error",
    ),
    (
        "lock",
        'l',
        "Pin the toolchain of the workspace in cudaguard.lock",
        "\
Examples:
  cargo cudaguard lock
  cargo cudaguard lock --locked     Fail if the file is not current

Exit status:
  0  success
  1  --locked: the file would change
  2  usage or I/O error",
    ),
];

pub(crate) const INSPECT: &str = "\
Examples:
  cargo cudaguard inspect target/release/my-model
  cargo cudaguard inspect dist/my_model.whl --json

Exit status:
  0  success; the output counts the parts that could not be examined
  2  the file cannot be read, or a usage error";

pub(crate) const VERIFY: &str = "\
Without --host, --fleet or an option that describes a machine, `verify` checks for this machine.
If options describe the machine, the facts that they do not state are not part of the question.
The requirements of a release need no machine. They may also be in [release] of a cudaguard.toml or in
[tool.cudaguard.release] of a pyproject.toml, which apply if no option describes a machine.

Examples:
  cargo cudaguard verify ./my-model
  cargo cudaguard verify ./my-model --driver 535.261.03 --gpu A100
  cargo cudaguard verify dist/my_model.whl --host t4.json
  cargo cudaguard verify ./my-model --fleet hosts.jsonl --json
  cargo cudaguard verify dist/my_model.whl --archs 80,90,120+ptx --driver-floor 525 --guarded --strict

Exit status:
  0  compatible, and everything was examined
  1  incompatible; with --strict also unknown, partial or not examined
  2  unknown, something was not examined, or a usage or I/O error";

pub(crate) const CHOOSE: &str = "\
Of the candidates that run, those with machine code come before those with PTX, then the newest toolkit, the newest version of a
wheel, and the order on the command line decide. An unknown candidate is never chosen.
A name states its toolkit, not its GPU code. It never `runs`, it `fits`: cu126 is checked against the GPUs that PyTorch lists, another
name against the limits of the toolkit and those that its project documents. What was not checked is listed.

Examples:
  cargo cudaguard choose cu118 cu126 cu128 cu130
  pip install torch $(cargo cudaguard choose cu126 cu130 --format pip)

Exit status:
  0  a candidate runs or fits; with --fleet, on each machine
  1  no candidate runs
  2  no candidate certainly runs; with --strict, something was not checked; or a usage or I/O error";

pub(crate) const DIFF: &str = "\
Support is lost if a GPU no longer runs the release or only parts of it, if a GPU needs a newer driver, if a newer
cuDNN is needed, or if a file is no longer guarded. The [release] table of cudaguard.toml decides what counts: with archs,
only the GPUs of these archs; with driver-floor, only that driver and newer ones; allow-loss accepts a kind of loss.

Examples:
  cargo cudaguard diff my_model-1.0.whl my_model-1.1.whl
  cargo cudaguard diff my_model-1.0.whl my_model-1.1.whl --format markdown
  cargo cudaguard diff my_model-1.0.whl my_model-1.1.whl --allow-loss driver --json

Exit status:
  0  no support is lost
  1  support is lost
  2  something is unknown or was not examined, or a usage or I/O error";

pub(crate) const REQUIREMENTS: &str = "\
Examples:
  cargo cudaguard requirements ./my-model
  cargo cudaguard requirements dist/my_model.whl --format k8s-affinity
  cargo cudaguard requirements ./my-model --format k8s-dra --name registry.example/team/my-model

Exit status:
  0  success
  2  a file cannot be read, the format cannot express the requirements, or a usage error";

pub(crate) const MAP: &str = "\
Examples:
  cargo cudaguard map ./my-model
  cargo cudaguard map ./my-model --format html -o map.html

Exit status:
  0  success
  2  a file cannot be read, or a usage error";

pub(crate) const PROBE: &str = "\
Examples:
  cargo cudaguard probe
  cargo cudaguard probe --json > this-host.json
  cargo cudaguard probe --line --name node-7 >> hosts.jsonl

Exit status:
  0  success
  2  usage or I/O error";

pub(crate) const DOCTOR: &str = "\
Examples:
  cargo cudaguard doctor
  cargo cudaguard doctor ./my-model
  cargo cudaguard doctor ./my-model --json > report.json     For a bug report

The JSON contains paths, environment variables and GPU identifiers of this machine. Read it before you publish it.

Exit status:
  0  no error; with PROGRAM also: everything was examined
  1  an error: the program, or any CUDA program, does not work here
  2  with PROGRAM: unknown, or something was not examined; a usage or I/O error";

pub(crate) const EXEC: &str = "\
A program whose verdict is unknown is started.

Example:
  cargo cudaguard exec -- ./my-model --input data

Exit status:
  78  the start is refused
  2   the program cannot be read, or a usage error
  Otherwise the status of the program.";

pub(crate) const SIMULATE: &str = "\
The command sees the driver, NVML, nvidia-smi, /proc, /sys and the PCI devices of the described machine. A launch of a kernel
returns CUDA_ERROR_NOT_SUPPORTED (801). Input, output, environment, directory and exit status pass through.
`simulate` needs Linux, permission to create namespaces, and a C compiler for the first start.

Examples:
  cargo cudaguard simulate --gpu V100 --driver 535 -- pytest
  cargo cudaguard simulate --gpu H100,H100 --driver 580.95.05 --mig -- nvidia-smi
  cargo cudaguard simulate --driver none -- ./my-model
  cargo cudaguard simulate --host node-7.json -- python3 train.py

Exit status:
  2  usage error, or the machine cannot be simulated
  Otherwise the status of the command.";

pub(crate) const CMAKE: &str = "\
Example:
  cargo cudaguard cmake install --prefix ~/.local

Exit status:
  0  success
  2  usage or I/O error";

pub(crate) const EMBED: &str = "\
Examples:
  cargo cudaguard embed --name my-model --nvcc /usr/local/cuda/bin/nvcc --nvcc-flags -arch=sm_80 -o guard.o
  cargo cudaguard embed --name my-model --toolkit /usr/local/cuda --release -o guard.o

Exit status:
  0  success
  1  the build is refused
  2  usage or I/O error";

pub(crate) const SEAL: &str = "\
Example:
  cargo cudaguard seal my-model main.o kernels.o guard.o

Exit status:
  0  success
  1  the file is refused and deleted
  2  usage or I/O error";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  cargo cudaguard completions bash > ~/.local/share/bash-completion/completions/cargo-cudaguard
  cargo cudaguard completions zsh > ~/.zfunc/_cargo-cudaguard

Exit status:
  0  success
  2  usage or I/O error";

pub(crate) const MAN: &str = "\
Example:
  cargo cudaguard man ~/.local/share/man/man1

Exit status:
  0  success
  2  usage or I/O error";

pub(crate) const EXPLAIN: &str = "\
Without text or pipe, `explain` lists all findings and texts that it knows.

Examples:
  cargo cudaguard explain CG301
  cargo cudaguard explain 803
  cargo cudaguard explain CUDNN_STATUS_NOT_INITIALIZED
  ./my-program 2>&1 | cargo cudaguard explain

Exit status:
  0  success
  2  usage or I/O error
  3  no explanation found for the text";
