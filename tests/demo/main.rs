//! `cargo demo`: builds a guarded program on real CUDA components, inspects it, and runs it with several cuDNN releases.
//! It needs no GPU.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

const TOOLKIT: &str = "cuda-13.0";
const BUILT_WITH: &str = "cudnn-9.15.1";
const NEWER_MINOR: &str = "cudnn-9.17.1";
const OLDER_MINOR: &str = "cudnn-9.1.0";
const OTHER_MAJOR: &str = "cudnn-8.9.7-loader";
const COMPONENTS: [&str; 5] = [TOOLKIT, BUILT_WITH, NEWER_MINOR, OLDER_MINOR, OTHER_MAJOR];

/// The paths that all steps use.
struct Demo {
    /// The path of `cargo-cudaguard`.
    command: PathBuf,
    /// The package of the demo program, a copy of `templates/demo` below `target/`.
    package: PathBuf,
    /// The directory of the fetched components.
    components: PathBuf,
}

/// The status and the captured output of a process.
struct Output {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let demo = Demo::prepare()?;

    heading("Build the demo program (templates/demo) with CUDA 13.0 and cuDNN 9.15.1");
    println!("It has a kernel for sm_75, sm_80 and sm_90. Its build.rs ends with `cudaguard::embed!();`.\n");
    println!("  $ cargo cudaguard build --release");
    let built = status(&mut demo.cudaguard(&["build", "--release"]))?;
    if !built.success() {
        return Err(format!("the demo program does not build ({built})"));
    }
    let program = demo.package.join("target/release/cudaguard-demo");

    heading("Read the manifest that the binary contains");
    let mut inspect = demo.cudaguard(&["inspect"]);
    let inspected = show("cargo cudaguard inspect target/release/cudaguard-demo", inspect.arg(&program))?;
    expect_status(&inspected, 0, "inspect found the manifest")?;
    expect_text(&inspected.stdout, "9.15.1", "the manifest names the cuDNN of the build")?;

    heading("Start it with the cuDNN of the build, 9.15.1");
    let run = demo.start(&program, BUILT_WITH)?;
    expect_status(&run, 0, "the program starts, and the guard prints nothing")?;
    expect_text(&run.stdout, "91501", "it runs on cuDNN 9.15.1")?;
    expect_silence(&run)?;

    heading("Start it with a newer minor release, 9.17.1");
    let run = demo.start(&program, NEWER_MINOR)?;
    expect_status(&run, 0, "the program starts, because newer minor releases are compatible")?;
    expect_text(&run.stdout, "91701", "it runs on cuDNN 9.17.1")?;
    expect_silence(&run)?;

    heading("Start it with an older minor release, 9.1.0");
    let run = demo.start(&program, OLDER_MINOR)?;
    expect_status(&run, 78, "the guard refused to run the program before main")?;
    expect_text(&run.stderr, "9.1.0", "the message names the cuDNN that was found")?;
    expect_text(&run.stderr, "9.15.1", "the message names the cuDNN of the build")?;
    if !run.stdout.is_empty() {
        return Err(format!("the guard refused the program, but main ran:\n{}", run.stdout));
    }

    heading("Start it with another major release only, 8.9.7");
    println!("The dynamic linker ends the program before the guard can run:");
    demo.start(&program, OTHER_MAJOR)?;
    println!("`cargo cudaguard run` reports the cause without starting it:");
    let run = demo.run(Some(OTHER_MAJOR))?;
    expect_status(&run, 78, "the command predicted the failure")?;
    expect_text(&run.stderr, "libcudnn.so.9", "the message names the missing library")?;

    heading("Start it without any cuDNN");
    let run = demo.run(None)?;
    expect_status(&run, 78, "the command predicted the failure")?;
    expect_text(&run.stderr, "libcudnn.so.9", "the message names the missing library")?;

    heading("The demo is complete. Every step had the expected result.");
    Ok(())
}

impl Demo {
    /// Fetches the components, compiles the command at the same time, and copies the demo program's package.
    fn prepare() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("tests/demo has no workspace")?;
        let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let target = this.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
        let target = target.map_or_else(|| root.join("target"), Path::to_path_buf);
        let given = std::env::var_os("CUDAGUARD_PARTS").filter(|value| !value.is_empty());
        let components = given.map_or_else(|| target.join("parts"), PathBuf::from);

        heading(
            "Fetch CUDA 13.0 and four cuDNN releases (once, about 1 GB), and compile cargo-cudaguard at the same time",
        );
        println!("Components: {}", components.display());
        let mut fetch = python();
        fetch.arg(root.join("tests/parts/fetch.py")).arg("--into").arg(&components).args(COMPONENTS);
        let fetch = spawn(fetch.stdout(Stdio::null()))?;
        fetch_and_compile(fetch, root)?;
        let command = this.with_file_name("cargo-cudaguard");

        let package = target.join("demo");
        copy_package(root, &package)?;
        Ok(Self { command, package, components })
    }

    /// Returns a call of the command in the package. The command finds the toolkit in `PATH` and `CUDA_HOME`, and the
    /// headers in `CUDNN_PATH`.
    fn cudaguard(&self, arguments: &[&str]) -> Command {
        let toolkit = self.components.join(TOOLKIT);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([toolkit.join("bin")].into_iter().chain(std::env::split_paths(&path)));
        let mut command = Command::new(&self.command);
        command.args(arguments).current_dir(&self.package);
        clean_environment(&mut command);
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command.env("CUDA_HOME", &toolkit).env("CUDNN_PATH", self.components.join(BUILT_WITH));
        command
    }

    /// Starts the program itself with this cuDNN in the dynamic linker's search path.
    fn start(&self, program: &Path, cudnn: &str) -> Result<Output, String> {
        let lib = self.components.join(cudnn).join("lib");
        let mut command = Command::new(program);
        command.current_dir(&self.package);
        clean_environment(&mut command);
        show(
            &format!("LD_LIBRARY_PATH={} target/release/cudaguard-demo", lib.display()),
            command.env("LD_LIBRARY_PATH", &lib),
        )
    }

    /// Starts the program with `cargo cudaguard run`.
    fn run(&self, cudnn: Option<&str>) -> Result<Output, String> {
        let mut command = self.cudaguard(&["run", "--release", "--quiet"]);
        let variable = match cudnn.map(|cudnn| self.components.join(cudnn).join("lib")) {
            Some(lib) => {
                command.env("LD_LIBRARY_PATH", &lib);
                format!("LD_LIBRARY_PATH={} ", lib.display())
            }
            None => String::new(),
        };
        show(&format!("{variable}cargo cudaguard run --release"), &mut command)
    }
}

/// Compiles the command while the components are fetched.
fn fetch_and_compile(fetch: Child, root: &Path) -> Result<(), String> {
    // The features of the whole workspace and the profile of the tests, so that `cargo test` compiles none of it again.
    let mut compile = Command::new(cargo());
    compile.args(["build", "--workspace", "--bin", "cargo-cudaguard"]).current_dir(root);
    let mut compile = spawn(&mut compile)?;
    if let Err(error) = wait(fetch, "fetching the components") {
        // The compiler would continue in the background.
        let _ = compile.kill().and_then(|()| compile.wait());
        return Err(error);
    }
    wait(compile, "compiling cargo-cudaguard")
}

/// Copies the template below `target/`, with the path of this repository's library and with its `Cargo.lock`.
fn copy_package(root: &Path, package: &Path) -> Result<(), String> {
    let template = root.join("templates/demo");
    for name in ["Cargo.toml", "build.rs", "cudaguard.toml", "src/main.rs", "src/saxpy.cu"] {
        let text = read(&template.join(name))?;
        let library = root.join("guard-core").display().to_string();
        write_if_changed(&package.join(name), &text.replace("../../guard-core", &library))?;
    }
    if !package.join("Cargo.lock").exists() {
        write_if_changed(&package.join("Cargo.lock"), &read(&root.join("Cargo.lock"))?)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Keeps the modification time of an unchanged file, so that cargo does not build it again.
fn write_if_changed(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

fn python() -> Command {
    Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()))
}

/// Removes the variables that would select other CUDA components, another target directory, or the libraries of `cargo
/// run`.
fn clean_environment(command: &mut Command) {
    let foreign = ["CUDA", "CUDNN", "NVCC", "LD_", "CARGO_TARGET_DIR", "CARGO_MANIFEST", "CARGO_PKG", "CARGO_BIN"];
    for (name, _) in std::env::vars_os() {
        if foreign.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

fn start_error(command: &Command, error: &io::Error) -> String {
    format!("cannot start {}: {error}", command.get_program().to_string_lossy())
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    command.stdin(Stdio::null()).spawn().map_err(|error| start_error(command, &error))
}

fn status(command: &mut Command) -> Result<ExitStatus, String> {
    command.stdin(Stdio::null()).status().map_err(|error| start_error(command, &error))
}

fn wait(mut child: Child, what: &str) -> Result<(), String> {
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed ({status})")),
        Err(error) => Err(format!("{what} failed: {error}")),
    }
}

fn heading(text: &str) {
    println!("\n== {text}");
}

/// Runs the process, and prints the command line, the output and the status.
fn show(line: &str, command: &mut Command) -> Result<Output, String> {
    println!("\n  $ {line}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| start_error(command, &error))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let output = Output { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) };
    for line in output.stdout.lines().chain(output.stderr.lines()) {
        println!("  {line}");
    }
    println!("  ({})\n", output.status);
    Ok(output)
}

fn expect_status(output: &Output, status: i32, meaning: &str) -> Result<(), String> {
    if output.status.code() == Some(status) {
        println!("As expected: {meaning}.");
        return Ok(());
    }
    Err(format!("expected status {status} ({meaning}), got {}", output.status))
}

fn expect_text(text: &str, part: &str, meaning: &str) -> Result<(), String> {
    if text.contains(part) { Ok(()) } else { Err(format!("expected {part:?} in the output ({meaning}):\n{text}")) }
}

fn expect_silence(output: &Output) -> Result<(), String> {
    if output.stderr.is_empty() {
        Ok(())
    } else {
        Err(format!("the guard must print nothing if everything is compatible:\n{}", output.stderr))
    }
}
