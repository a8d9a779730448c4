//! `verify`: checks if files run on this machine, on a machine that a file or options describe, or on each machine of a
//! fleet.

use crate::cli::platform;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::binary::examined::{self, NotExamined};
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::mapped_file::OpenFiles;
use crate::host::dry_run::{self, Loaded};
use crate::host::judge::answer::{GpuAnswer, Service, answers};
use crate::host::machine::{self, Components, Driver, DriverProbe, Gpu, HostLibrary, Machine, ParseError, REVISION};
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{self, Code, Finding, Severity, Verdict};
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::manifest::Manifest;
use cudaguard::internal::policy::check_regular_file;
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;
use cudaguard::internal::version::{DriverRelease, Version};

use crate::artifact::{self, Archive, Opened};
use crate::cli::arguments::{Flags, Output, VerifyArgs, Where};
use crate::cli::json_output;
use crate::cli::{counts, sarif};
use crate::commands::inspect::{built_with, group_by_reason, is_cuda};
use crate::commands::release::Gate;
use crate::commands::whole;
use crate::host::formats;
use crate::report::{self, CliError, EXIT_ERROR, REFUSED};

/// Maximum size of a host file, in bytes. A typical file has a few thousand bytes; with very many GPUs and libraries,
/// it has a few hundred thousand.
const ENOUGH: u64 = 16 * 1024 * 1024;

/// Maximum number of components that are listed one by one; the others are counted.
const TOLD: usize = 12;

pub(crate) fn run_verify(env: &Env, question: &VerifyArgs) -> Result<ExitCode, CliError> {
    let machines = match &question.place {
        Where::Here => None,
        Where::Host(file) => Some((vec![read_host(file)?], file.display().to_string())),
        Where::Flags(flags) => {
            Some((described_by(flags).map_err(CliError::operational)?, "the described machine".to_owned()))
        }
    };
    let gate = Gate::from_options(env, &question.gate, machines.is_some())?;
    let (mut refused, mut not_examined, mut found) = (false, false, Vec::new());
    let mut gate_reports = Vec::new();
    for file in &question.files {
        let (mut findings, mut judged) = match &machines {
            None if gate.is_some() => Default::default(),
            None => verify_here(env, file)?,
            Some((machines, place)) => verify_on(env, file, machines, place)?,
        };
        let on_machine = (examined::verdict(&findings, &judged.not_examined), findings.clone());
        if let Some(gate) = gate.as_ref().filter(|gate| gate.has_requirements()) {
            let report = gate.check(file)?;
            findings.extend(report.findings.iter().cloned());
            finding::sort_findings(&mut findings);
            for part in &report.not_examined {
                if !judged.not_examined.contains(part) {
                    judged.not_examined.push(part.clone());
                    judged.open.push(part.to_string());
                }
            }
            gate_reports.push((file.clone(), report));
        }
        let verdict = examined::verdict(&findings, &judged.not_examined);
        let unknown = verdict == Verdict::Unknown && gate.is_some();
        let partial = judged.gpus.iter().any(|answer| answer.service == Service::Partial);
        let strict = gate.as_ref().is_some_and(|gate| gate.requirements.strict);
        refused |= verdict == Verdict::Refused || strict && (unknown || partial);
        not_examined |= !judged.not_examined.is_empty() || unknown;
        let gate_report =
            gate.as_ref().filter(|gate| gate.has_requirements()).zip(gate_reports.last().map(|(_, report)| report));
        if question.form == Output::Sarif {
            found.push((file.clone(), findings));
        } else if question.form == Output::Json {
            let value = to_json(file, verdict, &findings);
            let mut value = with_judged(value, &judged);
            value.insert_some("release", gate_report.map(|(gate, report)| report.to_json(gate)));
            // Several files get one line each, so that readers can separate them.
            let text = if question.files.len() > 1 { value.to_string() } else { value.to_pretty_string() };
            report::print_result(&format!("{text}\n"))?;
        } else {
            let place = machines.as_ref().map(|(machines, place)| {
                let name = machines.first().and_then(|machine| machine.name.as_ref());
                name.unwrap_or(place).as_str()
            });
            report::print_findings(&findings);
            match gate_report {
                Some((gate, report)) => {
                    if machines.is_some() {
                        let (verdict, findings) = &on_machine;
                        report::print_result(&to_text(file, place, *verdict, findings, &judged))?;
                    }
                    let open = if machines.is_none() { not_judged_in_words(&judged.open) } else { String::new() };
                    report::print_result(&(report.to_text(file, gate) + &open))?;
                }
                None => report::print_result(&to_text(file, place, verdict, &findings, &judged))?,
            }
        }
    }
    if let Some(gate) = gate.as_ref().filter(|gate| gate.has_requirements()) {
        report::print_findings(&gate.stale_exceptions(&gate_reports));
    }
    if question.form == Output::Sarif {
        report::print_result(&sarif::files_to_sarif(&found))?;
    }
    Ok(match (refused, not_examined) {
        (true, _) => ExitCode::from(REFUSED),
        (false, true) => ExitCode::from(EXIT_ERROR),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// Reads each of these files with [`read_components`].
pub(crate) fn components_of_all(env: &Env, files: &[PathBuf]) -> Result<Vec<Components>, CliError> {
    files.iter().map(|file| read_components(env, file)).collect()
}

/// Returns the names of the files without their directories.
pub(crate) fn file_names(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    files.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Reads the components of a file and of the cuDNN libraries that it contains; returns an error if it contains nothing
/// to check.
pub(crate) fn read_components(env: &Env, file: &Path) -> Result<Components, CliError> {
    match artifact::open(file).map_err(CliError::operational)? {
        Opened::Archive(archive) => whole::artifact_components(file, archive),
        Opened::File(contents) => {
            components_of(env, &Binary::from_contents(file, contents).map_err(CliError::operational)?)
        }
    }
}

fn components_of(env: &Env, binary: &Binary) -> Result<Components, CliError> {
    let components = dry_run::components_of(binary, env);
    if components.manifests.is_empty() && components.findings.is_empty() && components.not_examined.is_empty() {
        return Err(nothing_to_judge(binary));
    }
    Ok(components)
}

fn nothing_to_judge(binary: &Binary) -> CliError {
    let file = &binary.path;
    if binary.kernels().is_ok_and(|kernels| !kernels.entries().is_empty()) {
        let why = "its GPU code contains no kernels, only input for the device linker";
        return CliError::operational(format_args!("{}: nothing to check: {why}", file.display()));
    }
    let needed: Vec<&str> = binary.needed.iter().map(String::as_str).filter(is_cuda).collect();
    let rest = if needed.is_empty() {
        "contains no GPU code and needs no CUDA library".to_owned()
    } else {
        format!("contains no GPU code, and its requirements on {} are unknown", needed.join(", "))
    };
    CliError::operational(format_args!("{}: nothing to check: it has no manifest, {rest}", file.display()))
}

/// The subject of a check.
#[derive(Default)]
struct VerifyResult {
    /// Descriptions of the components.
    components: Vec<String>,
    /// Descriptions of the parts that no rule has checked, and of the parts that were not examined.
    open: Vec<String>,
    not_examined: Vec<NotExamined>,
    /// The result for each GPU.
    gpus: Vec<GpuAnswer>,
    /// GPUs that the driver does not support, by name and compute capability.
    undriven: Vec<String>,
    /// The NVIDIA libraries that the dynamic linker would load; `None` if the dynamic linker of that machine cannot be
    /// simulated.
    libraries: Option<Vec<Loaded>>,
}

impl VerifyResult {
    fn from_answers(manifests: &[Manifest], not_examined: Vec<NotExamined>, gpus: Vec<GpuAnswer>) -> Self {
        let open = not_judged(manifests, &not_examined);
        Self {
            components: describe_manifests(manifests),
            open,
            not_examined,
            gpus,
            undriven: Vec::new(),
            libraries: None,
        }
    }
}

/// Describes the parts of these components that no rule has checked, and those that were not examined.
pub(crate) fn not_judged(manifests: &[Manifest], not_examined: &[NotExamined]) -> Vec<String> {
    let mut names: Vec<_> = manifests.iter().filter_map(Manifest::not_judged).map(str::to_owned).collect();
    names.dedup();
    names.extend(not_examined.iter().map(ToString::to_string));
    names
}

pub(crate) fn put_not_judged(value: &mut Value, names: &[String]) {
    value.insert_some("not_judged", (!names.is_empty()).then(|| array(names.iter().map(String::as_str))));
}

/// Returns one line for each name; if there are many, their number.
pub(crate) fn not_judged_in_words(names: &[String]) -> String {
    let line = |text: String, name: &String| text + "  not checked: " + &sanitize::sanitize_line(name) + "\n";
    let text = names.iter().take(TOLD).fold(String::new(), line);
    match names.len().saturating_sub(TOLD) {
        0 => text,
        more => text + &format!("  not checked: {more} more (--json has all)\n"),
    }
}

/// Prints how many parts of these files were not examined.
pub(crate) fn warn_of_not_examined(all: &[Components]) {
    for Components { file, not_examined, .. } in all {
        for (reason, names) in group_by_reason(not_examined) {
            let count = counts::count_of(names.len() as u64, "part");
            report::print_line(&format!(
                "warning: {file}: {count} not examined: {reason}: {}",
                counts::join_some(&names)
            ));
        }
    }
}

/// Returns the result of each component on each GPU of the machine.
fn on_each(manifests: &[Manifest], machine: Option<&Machine>) -> Vec<Vec<GpuAnswer>> {
    let gpus = machine.map(Machine::known_gpus).unwrap_or_default();
    let forced = machine.is_some_and(Machine::passes_over_machine_code);
    manifests.iter().map(|manifest| answers(manifest, &gpus, forced)).collect()
}

/// Returns the results for a single file, with the number of containers if only some of them have code for the GPU.
fn on_each_of(binary: &Binary, manifests: &[Manifest], machine: Option<&Machine>) -> Vec<GpuAnswer> {
    let mut all: Vec<GpuAnswer> = on_each(manifests, machine).into_iter().flatten().collect();
    // The code of a library next to the program is not in this file.
    if all.iter().any(|answer| answer.service == Service::Partial) && manifests.len() == 1 {
        if let Ok(kernels) = binary.kernels() {
            let count = kernels.container_groups().iter().map(|group| group.containers.len()).sum::<usize>();
            for answer in all.iter_mut().filter(|answer| answer.service == Service::Partial) {
                answer.containers = Some((count - kernels.containers_without(answer.cc).count().min(count), count));
            }
        }
    }
    all
}

fn verify_here(env: &Env, file: &Path) -> Result<(Vec<Finding>, VerifyResult), CliError> {
    let asker = DriverProbe::with_current_exe();
    let here = || [machine::detect_machine(env, Some(&asker))];
    let contents = match artifact::open(file).map_err(CliError::operational)? {
        Opened::Archive(archive) => return on_archive(file, archive, &here(), "here"),
        Opened::File(contents) => contents,
    };
    let binary = Binary::from_contents(file, contents).map_err(CliError::operational)?;
    let is_foreign = binary.os.is_some_and(|os| os != TargetOs::Linux);
    if is_foreign || matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive | BinaryKind::GpuCode) {
        // The dynamic linker takes none of these.
        return on_file(env, &binary, &here(), "here");
    }
    let predicted = dry_run::simulate_and_check(&binary, env, &OpenFiles::default(), Some(&asker))
        .map_err(CliError::operational)?;
    let findings = predicted.all_findings();
    if predicted.manifests.is_empty() && findings.is_empty() && predicted.not_examined.is_empty() {
        return Err(nothing_to_judge(&binary));
    }
    let gpus = on_each_of(&binary, &predicted.manifests, predicted.machine.as_ref());
    let libraries = Some(predicted.loaded_libraries());
    Ok((
        findings,
        VerifyResult { libraries, ..VerifyResult::from_answers(&predicted.manifests, predicted.not_examined, gpus) },
    ))
}

/// Checks a file on each of these machines; it must run on all of them.
fn verify_on(
    env: &Env,
    file: &Path,
    machines: &[Machine],
    place: &str,
) -> Result<(Vec<Finding>, VerifyResult), CliError> {
    match artifact::open(file).map_err(CliError::operational)? {
        Opened::Archive(archive) => on_archive(file, archive, machines, place),
        Opened::File(contents) => {
            let binary = Binary::from_contents(file, contents).map_err(CliError::operational)?;
            on_file(env, &binary, machines, place)
        }
    }
}

fn on_archive(
    file: &Path,
    archive: Archive,
    machines: &[Machine],
    place: &str,
) -> Result<(Vec<Finding>, VerifyResult), CliError> {
    let components = whole::artifact_components(file, archive)?;
    let machines = with_default_os(machines, &components);
    let on = |machine| whole::together_on(&on_each(&components.manifests, Some(machine)), &components.enough);
    let gpus = machines.iter().flat_map(on).collect();
    Ok(result_on(components, gpus, &machines, place))
}

fn on_file(
    env: &Env,
    binary: &Binary,
    machines: &[Machine],
    place: &str,
) -> Result<(Vec<Finding>, VerifyResult), CliError> {
    let components = components_of(env, binary)?;
    let machines = with_default_os(machines, &components);
    let on = |machine| on_each_of(binary, &components.manifests, Some(machine));
    let gpus = machines.iter().flat_map(on).collect();
    Ok(result_on(components, gpus, &machines, place))
}

/// Returns the machines; those whose operating system is not known have that of the file.
fn with_default_os(machines: &[Machine], components: &Components) -> Vec<Machine> {
    machines.iter().map(|machine| machine.with_default_os(components.os).into_owned()).collect()
}

fn result_on(
    components: Components,
    gpus: Vec<GpuAnswer>,
    machines: &[Machine],
    place: &str,
) -> (Vec<Finding>, VerifyResult) {
    let (mut findings, mut undriven) = (Vec::new(), Vec::new());
    for machine in machines {
        for finding in components.check_on(machine, place).into_iter().chain(machine.unknowns_finding()) {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        for gpu in machine.known_gpus() {
            if let (true, Some(_), Some((major, minor))) = (gpu.visible, gpu.undriven, gpu.cc) {
                undriven.push(format!("{} ({major}.{minor})", gpu.name.as_deref().unwrap_or("GPU")));
            }
        }
    }
    finding::sort_findings(&mut findings);
    let gpus = match components.os {
        Some(TargetOs::Windows) => gpus.into_iter().map(GpuAnswer::with_windows_releases).collect(),
        _ => gpus,
    };
    let result = VerifyResult::from_answers(&components.manifests, components.not_examined, gpus);
    (findings, VerifyResult { undriven, ..result })
}

fn describe_manifests(manifests: &[Manifest]) -> Vec<String> {
    // A component that was not built with cudaguard has no target.
    let one = |manifest: &Manifest| {
        let built =
            if manifest.target.is_empty() { String::new() } else { format!(", built with {}", built_with(manifest)) };
        format!("{}{built}", manifest.component)
    };
    manifests.iter().map(one).collect()
}

/// Opens a file that describes machines, unless reading it could block or never end. A pipe without a name is one that
/// the caller holds open, such as `<(…)` in a shell; it is read like stdin.
pub(crate) fn open_input(path: &Path, what: &str, largest: u64) -> Result<File, CliError> {
    let fail = |why: &dyn std::fmt::Display| CliError::operational(format_args!("{}: {why}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| fail(&error))?;
    let nameless = platform::is_fifo(metadata.file_type()) && fs::canonicalize(path).is_err();
    match check_regular_file(&metadata, what, largest) {
        Some(why) if !nameless => Err(fail(&why)),
        _ => File::open(path).map_err(|error| fail(&error)),
    }
}

/// Reads a host file. An error contains the file, the line, the key and the expected value.
fn read_host(file: &Path) -> Result<Machine, CliError> {
    let name = file.display();
    let mut bytes = Vec::new();
    open_input(file, "host", ENOUGH)?
        .take(ENOUGH + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::operational(format_args!("{name}: {error}")))?;
    if bytes.len() as u64 > ENOUGH {
        return Err(CliError::operational(format_args!("{name}: is larger than 16 MiB: not a host file")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::operational(format_args!("{name}: byte {at} is not UTF-8: not a host file"))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Some(what) = formats::format_of_fleet(text) {
        return Err(CliError::operational(format_args!("{name}: {what}")));
    }
    let (machine, revision) = Machine::read(text).map_err(|error| {
        let several = if error.what == "trailing characters" { "; for several host files use --fleet" } else { "" };
        CliError::operational(format_args!("{name}:{}{several}", position_text(&error)))
    })?;
    if revision > REVISION {
        report::note(&format!(
            "info: {name} has revision {revision}, which is newer than this cudaguard: unknown parts are ignored"
        ));
    }
    Ok(machine)
}

/// Returns text such as `3:12: …`, with line and column as editors count them.
pub(crate) fn position_text(error: &ParseError) -> String {
    format!("{}:{}: {error}", error.line, error.column)
}

/// Returns the machines that options describe: one for each GPU, or one machine with all GPUs. Properties without an
/// option are unknown.
fn described_by(flags: &Flags) -> Result<Vec<Machine>, String> {
    let release = |flag: &str, text: &str| -> Result<DriverRelease, String> {
        machine::parse_release(text).ok_or_else(|| {
            format!("{flag} {text}: expected a driver release such as 535.261.03, or a branch such as 535")
        })
    };
    let mut driver = Driver::default();
    match flags.driver.as_deref() {
        Some("none") => driver.absent = true,
        Some(text) => driver.user = Some(release("--driver", text)?),
        None => {}
    }
    // The regular driver has one release for both parts.
    let kernel = flags.kernel.as_deref().map(|text| release("--kernel", text)).transpose()?;
    driver.kernel = kernel.or(driver.user);
    let gpus = match flags.gpus.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["none"] => Some(Vec::new()),
        ref gpus => Some(gpus.iter().map(|text| parse_gpu(text)).collect::<Result<Vec<_>, _>>()?),
    };
    let mut libraries = BTreeMap::new();
    match flags.library.as_deref() {
        None => {}
        Some("none") => drop(libraries.insert(CUDNN.key, Vec::new())),
        Some(text) => {
            let version: Version = text
                .parse()
                .map_err(|_| format!("--{} {text}: expected a version such as 9.15.1, or `none`", CUDNN.key))?;
            let path = Some(format!("option --{}", CUDNN.key));
            let library = HostLibrary { version: Some(version), path, taken: true, ..HostLibrary::default() };
            libraries.insert(CUDNN.key, vec![library]);
        }
    }
    let has_driver = flags.driver.is_some() || flags.kernel.is_some();
    let machine = Machine { driver: has_driver.then_some(driver), gpus, libraries, ..Machine::default() };
    Ok(match &machine.gpus {
        Some(gpus) if gpus.len() > 1 && !flags.together => {
            let alone = |gpu: &Gpu| Machine { gpus: Some(vec![gpu.clone()]), ..machine.clone() };
            gpus.iter().map(alone).collect()
        }
        _ => vec![machine],
    })
}

/// Parses a GPU such as `8.6`, `sm_86` or `A100`.
fn parse_gpu(text: &str) -> Result<Gpu, String> {
    let cc = tables::gpu_typed(text).ok_or_else(|| {
        format!("--gpu {text}: expected a compute capability such as 8.6, sm_86, or a GPU's name such as A100")
    })?;
    let name = tables::gpu_cc(text).is_some().then(|| text.to_owned());
    Ok(Gpu { name, cc: Some(cc), visible: Some(true), ..Gpu::default() })
}

/// Returns the verdict as JSON, with the documented keys.
pub(crate) fn to_json(file: &Path, verdict: Verdict, findings: &[Finding]) -> Value {
    object([
        ("schema", json_output::SCHEMA.into()),
        ("file", file.to_string_lossy().as_ref().into()),
        ("verdict", verdict.name().into()),
        ("findings", array(finding::sorted_unique(findings).into_iter().map(Finding::to_json))),
    ])
}

fn with_judged(mut value: Value, judged: &VerifyResult) -> Value {
    put_not_judged(&mut value, &judged.open);
    value.insert_some("gpus", (!judged.gpus.is_empty()).then(|| array(judged.gpus.iter().map(GpuAnswer::to_json))));
    value.insert_some("libraries", judged.libraries.as_ref().map(|loaded| array(loaded.iter().map(Loaded::to_json))));
    value
}

fn to_text(file: &Path, place: Option<&str>, verdict: Verdict, findings: &[Finding], judged: &VerifyResult) -> String {
    let place = place.unwrap_or("here");
    let mut text =
        sanitize::sanitize_line(&format!("{}: {} ({place})", file.display(), verdict.name())).into_owned() + "\n";
    for component in judged.components.iter().take(TOLD) {
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(component));
    }
    if judged.components.len() > TOLD {
        let _ = writeln!(text, "  and {} more", judged.components.len() - TOLD);
    }
    text.push_str(&not_judged_in_words(&judged.open));
    for answer in &judged.gpus {
        // If there are several components, each line names its component.
        let of = if judged.components.len() > 1 { format!("{}: ", answer.component) } else { String::new() };
        let _ = writeln!(text, "  {}", sanitize::sanitize_line(&format!("{of}{answer}")));
    }
    for gpu in &judged.undriven {
        let _ = writeln!(text, "  {}: not supported by the driver", sanitize::sanitize_line(gpu));
    }
    for loaded in judged.libraries.iter().flatten() {
        let _ = writeln!(text, "  loads {}", sanitize::sanitize_line(&loaded.describe()));
    }
    if verdict == Verdict::Refused {
        let codes: Vec<String> = error_codes(findings).map(|code| code.to_string()).collect();
        let _ =
            writeln!(text, "  run `cargo cudaguard explain {}` for details", codes.first().map_or("", String::as_str));
    }
    text
}

fn error_codes(findings: &[Finding]) -> impl Iterator<Item = Code> + '_ {
    findings.iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.code)
}
