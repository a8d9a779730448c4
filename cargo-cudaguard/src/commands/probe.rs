//! `probe`: prints this machine as text or as a host file in JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::cli::json_output;
use crate::host::machine::windows::NVCUDA;
use crate::host::machine::{self, Driver, DriverProbe, HostLibrary, Machine, MachineKind, OTHER_LIBRARIES};
use crate::knowledge::symptoms::likeliest_cause;
use crate::knowledge::vendor::{self, LIBCUDA};
use cudaguard::internal::env::Env;
use cudaguard::internal::sanitize;

use crate::cli::arguments::ProbeFormat;
use crate::cli::report::{self, CliError};

pub(crate) fn run_probe(env: &Env, form: ProbeFormat, name: Option<String>) -> Result<ExitCode, CliError> {
    let machine = Machine { name, ..machine::detect_machine(env, Some(&DriverProbe::with_current_exe())) };
    report::print_result(&match form {
        ProbeFormat::Text => to_text(&machine),
        ProbeFormat::Json => json_output::render(&machine.to_host_file()),
        ProbeFormat::Line => json_output::render_line(&machine.to_host_file()),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn to_text(machine: &Machine) -> String {
    let mut page = ProbePage(driver_and_gpus(machine));
    for library in vendor::DESCRIBED {
        page.push_title(library.name);
        write_libraries(&mut page, machine.library_files(library));
    }
    page.push_title("NVIDIA's other libraries");
    // A file that a compiler links is the same as the one with the soname.
    let is_soname = |library: &&HostLibrary| !library.soname.as_deref().is_some_and(|name| name.ends_with(".so"));
    let others = machine.libraries.get(OTHER_LIBRARIES).into_iter().flatten().filter(is_soname);
    write_libraries(&mut page, Some(&others.cloned().collect::<Vec<_>>()));
    if !machine.warnings.is_empty() {
        page.push_title("not known");
    }
    for warning in &machine.warnings {
        page.push_line("", warning);
    }
    page.0
}

/// Describes the machine without its libraries.
pub(crate) fn driver_and_gpus(machine: &Machine) -> String {
    let mut page = ProbePage::default();
    let kind = match machine.kind {
        Some(MachineKind::Wsl2) => ", Windows Subsystem for Linux",
        Some(MachineKind::Jetson) => ", a Jetson",
        None => "",
    };
    let name = machine.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    page.push_title(&format!("{name}{}{kind}", machine.platform.as_deref().unwrap_or("this machine")));
    page.push_title("driver");
    write_driver(&mut page, machine, machine.driver.as_ref());
    page.push_title("GPUs");
    write_gpus(&mut page, machine);
    for (name, value) in &machine.variables {
        page.push_line(name, if value.is_empty() { "(set, and empty)" } else { value });
    }
    page.0
}

#[derive(Default)]
struct ProbePage(String);

impl ProbePage {
    fn push_title(&mut self, text: &str) {
        let _ = writeln!(self.0, "{}", sanitize::sanitize_line(text));
    }

    fn push_line(&mut self, name: &str, text: &str) {
        let (name, text) = (sanitize::sanitize_line(name), sanitize::sanitize_line(text));
        let _ = if name.is_empty() { writeln!(self.0, "  {text}") } else { writeln!(self.0, "  {name:<14} {text}") };
    }
}

fn write_driver(page: &mut ProbePage, machine: &Machine, driver: Option<&Driver>) {
    let Some(driver) = driver else { return page.push_line("", "not known") };
    let source = |key: &str| {
        let found = machine.sources.iter().find(|(known, _)| known == key);
        found.map_or(String::new(), |(_, place)| format!("  ({place})"))
    };
    let (name, file) = if machine.is_windows() { ("nvcuda", NVCUDA) } else { ("libcuda", LIBCUDA) };
    if driver.absent {
        page.push_line(name, &format!("the loader does not find {file}"));
    } else if let Some(path) = &driver.library {
        page.push_line(name, &format!("{path}{}", source("driver.library")));
    }
    if let Some(release) = driver.user {
        page.push_line("release", &format!("{release}{}", source("driver.user")));
    }
    if let Some(cuda) = driver.cuda {
        page.push_line("supports", &format!("CUDA {cuda}{}", source("driver.cuda")));
    }
    let module = if machine.is_windows() { "display driver" } else { "kernel module" };
    match driver.kernel {
        Some(release) => page.push_line(module, &format!("{release}{}", source("driver.kernel"))),
        None => page.push_line(module, "not found"),
    }
    if let Some(init) = driver.init {
        let problem = likeliest_cause(init, &[]).map_or("see cuda.h", |(symptom, _)| &symptom.title);
        page.push_line("cuInit", &format!("answers {init}: {}", if init == 0 { "it works" } else { problem }));
    }
    if let Some(compat) = &driver.compat {
        let branches: Vec<String> = compat.branches.iter().map(u32::to_string).collect();
        page.push_line(
            "cuda-compat",
            &format!("for kernel modules of {}", join_words(&branches, "any branch (it lists none)")),
        );
    }
    if driver.ptx_compiler == Some(false) {
        page.push_line("PTX compiler", "libnvidia-ptxjitcompiler.so.1 is not found");
    }
}

fn write_gpus(page: &mut ProbePage, machine: &Machine) {
    let Some(gpus) = &machine.gpus else {
        let source = if machine.is_windows() { "nvidia-smi" } else { "the kernel module" };
        return page.push_line("not known", &format!("{source} lists none, and the driver showed none"));
    };
    if gpus.is_empty() {
        page.push_line("", "none");
    }
    for gpu in gpus {
        let cc = gpu.cc.map_or("compute capability unknown".to_owned(), |(major, minor)| {
            format!("compute capability {major}.{minor}")
        });
        let hidden = if gpu.visible == Some(false) { ", not visible to a program that is started here" } else { "" };
        let at = gpu.pci.as_ref().map(|pci| format!(", {pci}")).unwrap_or_default();
        page.push_line("", &format!("{}: {cc}{at}{hidden}", gpu.name.as_deref().unwrap_or("a GPU without a name")));
    }
}

fn write_libraries(page: &mut ProbePage, libraries: Option<&[HostLibrary]>) {
    let libraries = libraries.unwrap_or_default();
    if libraries.is_empty() {
        page.push_line("none", "not found by the loader");
    }
    for library in libraries {
        let version = library.version.map_or("version not known".to_owned(), |version| version.to_string());
        let path = library.path.as_deref().unwrap_or_default();
        if let Some(problem) = &library.problem {
            page.push_line("unusable", &format!("{path}: {problem}"));
            continue;
        }
        let by = library.by.as_ref().map(|by| format!("  ({by})")).unwrap_or_default();
        let behind = if library.taken { "" } else { ", after another copy" };
        page.push_line(&version, &format!("{path}{by}{behind}"));
    }
}

fn join_words(words: &[String], none: &str) -> String {
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}
