//! The machines that `verify` checks for: from a host file, or from options.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::Path;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::check_regular_file;
use cudaguard::internal::finding::Code;
use cudaguard::internal::tables;
use cudaguard::internal::version::{DriverRelease, Version};

use crate::cli::arguments::Flags;
use crate::cli::option_error::OptionError;
use crate::cli::platform;
use crate::cli::report::{self, CliError};
use crate::host::formats;
use crate::host::machine::{self, Driver, Gpu, HostLibrary, Machine, ParseError, REVISION};
use serde::de::IgnoredAny;

/// The place of a check on this machine, in findings and output.
pub(crate) const HERE: &str = "here";

/// The machines that `verify` checks for.
pub(crate) enum Machines {
    /// This machine. It is detected only if a check needs it.
    Here,
    /// The machines that a host file or options describe. A program must run on each of them.
    Described {
        machines: Vec<Machine>,
        /// The host file, or "the described machine".
        place: String,
        /// Options describe the machines. They ask about the facts that they state, and about no others.
        by_options: bool,
    },
}

impl Machines {
    pub(crate) fn from_options(host: Option<&Path>, flags: &Flags) -> Result<Self, CliError> {
        Ok(match host {
            Some(file) => Self::Described {
                machines: vec![read_host(file)?],
                place: file.display().to_string(),
                by_options: false,
            },
            None if flags.is_any_set() => Self::Described {
                machines: described_by(flags)?,
                place: "the described machine".to_owned(),
                by_options: true,
            },
            None => Self::Here,
        })
    }

    pub(crate) const fn are_described(&self) -> bool {
        matches!(self, Self::Described { .. })
    }

    /// Returns the codes of findings that report the absence of facts which the options do not state.
    pub(crate) fn codes_not_asked(&self) -> Vec<Code> {
        let Self::Described { machines, by_options: true, .. } = self else { return Vec::new() };
        let states_driver = |machine: &Machine| {
            let driver = machine.driver.as_ref();
            driver.is_some_and(|driver| driver.absent || driver.user.is_some()) && machine.gpus.is_some()
        };
        let cudnn = (!machines.iter().any(|machine| machine.libraries.contains_key(CUDNN.key)))
            .then_some(Code::CudnnCannotTell);
        let driver = (!machines.iter().any(states_driver)).then_some(Code::DriverCannotTell);
        cudnn.into_iter().chain(driver).chain([Code::LibraryNotStated]).collect()
    }

    /// Returns the name of the machine for the output.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Here => HERE,
            Self::Described { machines, place, .. } => {
                machines.first().and_then(|machine| machine.name.as_deref()).unwrap_or(place)
            }
        }
    }
}

/// Returns the machine that a host file describes, or options, which describe one machine with all GPUs.
#[cfg(target_os = "linux")]
pub(crate) fn machine_from_options(host: Option<&Path>, flags: &Flags) -> Result<Machine, CliError> {
    match host {
        Some(file) => read_host(file),
        None => Ok(describe_one(flags)?),
    }
}

/// Maximum size of a host file, in bytes. A typical file has a few thousand bytes; with very many GPUs and libraries,
/// it has a few hundred thousand.
const ENOUGH: u64 = 16 * 1024 * 1024;

/// Opens a file that describes machines, unless reading it could block or never end. A pipe without a name is one that
/// the caller holds open, such as `<(…)` in a shell; it is read like stdin.
pub(crate) fn open_input(path: &Path, what: &str, largest: u64) -> Result<File, CliError> {
    let fail = |why: &dyn std::fmt::Display| CliError::operational(format_args!("{}: {why}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| fail(&error))?;
    let nameless = platform::is_fifo(metadata.file_type()) && fs::canonicalize(path).is_err();
    match check_regular_file(&metadata, what, largest) {
        Err(problem) if !nameless => Err(fail(&problem)),
        _ => File::open(path).map_err(|error| fail(&error)),
    }
}

/// Reads a host file. An error contains the file, the line, the key and the expected value.
fn read_host(file: &Path) -> Result<Machine, CliError> {
    let name = file.display();
    let mut bytes = Vec::new();
    let input = BufReader::new(open_input(file, "host", ENOUGH)?);
    formats::decode_utf16(input)
        .and_then(|input| input.take(ENOUGH + 1).read_to_end(&mut bytes))
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
        let several = if has_several_values(text) { "; for several host files use --fleet" } else { "" };
        CliError::operational(format_args!("{name}:{}{several}", position_text(&error)))
    })?;
    if revision > REVISION {
        report::note(&format!(
            "info: {name} has revision {revision}, which is newer than this cudaguard: unknown parts are ignored"
        ));
    }
    for description in Machine::unknown_keys(text).descriptions() {
        report::note(&format!("info: {name}: {description}"));
    }
    for cc in machine.gpus.iter().flatten().filter_map(|gpu| gpu.cc).collect::<BTreeSet<_>>() {
        report::note_unknown_gpu(&name.to_string(), cc);
    }
    if let Some(release) = machine.driver.as_ref().and_then(|driver| driver.user) {
        report::note_unknown_branch(&name.to_string(), release);
    }
    Ok(machine)
}

/// Returns true if another JSON value follows the first one.
fn has_several_values(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next().is_some_and(|first| first.is_ok()) && values.next().is_some()
}

/// Returns text such as `3:12: …`, with line and column as editors count them.
pub(crate) fn position_text(error: &ParseError) -> String {
    format!("{}:{}: {error}", error.line, error.column)
}

/// Returns the machines that options describe: one for each GPU, or one machine with all GPUs.
fn described_by(flags: &Flags) -> Result<Vec<Machine>, OptionError> {
    let machine = describe_one(flags)?;
    Ok(match &machine.gpus {
        Some(gpus) if gpus.len() > 1 && !flags.together => {
            gpus.iter().map(|gpu| Machine { gpus: Some(vec![gpu.clone()]), ..machine.clone() }).collect()
        }
        _ => vec![machine],
    })
}

/// Returns one machine with all GPUs that options describe. Properties without an option are unknown.
fn describe_one(flags: &Flags) -> Result<Machine, OptionError> {
    let mut driver = Driver::default();
    match flags.driver.as_deref() {
        Some("none") => driver.absent = true,
        Some(text) => driver.user = Some(release_of_option("--driver", text)?),
        None => {}
    }
    // The regular driver has one release for both parts.
    let kernel = flags.kernel.as_deref().map(|text| release_of_option("--kernel", text)).transpose()?;
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
            let option = format!("--{}", CUDNN.key);
            let version: Version =
                text.parse().map_err(|_| OptionError::new(&option, text, "a version such as 9.15.1, or `none`"))?;
            let path = Some(format!("option --{}", CUDNN.key));
            let library = HostLibrary { version: Some(version), path, taken: true, ..HostLibrary::default() };
            libraries.insert(CUDNN.key, vec![library]);
        }
    }
    let has_driver = flags.driver.is_some() || flags.kernel.is_some();
    Ok(Machine { driver: has_driver.then_some(driver), gpus, libraries, ..Machine::default() })
}

fn release_of_option(flag: &str, text: &str) -> Result<DriverRelease, OptionError> {
    let expected = "a driver release such as 535.261.03, or a branch such as 535";
    let release = machine::parse_release(text).ok_or_else(|| OptionError::new(flag, text, expected))?;
    report::note_unknown_branch(flag, release);
    Ok(release)
}

/// Parses a GPU such as `8.6`, `sm_86` or `A100`.
fn parse_gpu(text: &str) -> Result<Gpu, OptionError> {
    let expected = "a compute capability such as 8.6, sm_86, or a GPU's name such as A100";
    let cc = tables::gpu_typed(text).ok_or_else(|| OptionError::new("--gpu", text, expected))?;
    report::note_unknown_gpu("--gpu", cc);
    let name = tables::gpu_cc(text).is_some().then(|| text.to_owned());
    Ok(Gpu { name, cc: Some(cc), visible: Some(true), ..Gpu::default() })
}
