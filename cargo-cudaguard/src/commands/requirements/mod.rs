//! `requirements`: prints the requirements of files as text, as JSON, and in the formats of tools that place programs
//! on machines.
//!
//! [`Placement`] derives the requirements; this module converts them to the formats. If a format cannot express a
//! requirement exactly, the output is stricter than necessary, and a comment describes the difference.

mod bill;
mod bill_parts;
mod conda;
mod cyclonedx;
mod json;
mod k8s_affinity;
mod k8s_dra;
mod name;
mod oci;
mod slurm;
mod spdx;
mod text;
mod wheel_variant;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::host::machine::Components;
use crate::host::machine::placement::{GpuRange, Placement, PlacementError};
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::Code;
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

use crate::cli::arguments::RequirementsFormat;
use crate::cli::counts::count_of;
use crate::cli::report::{self, CliError};
use crate::commands::verify;

use bill::BilledFile;
use name::ProgramName;

/// The input of a format.
struct RequirementsQuery<'a> {
    files: &'a [PathBuf],
    components: &'a [Components],
    placement: &'a Placement,
    /// The GPUs that need a newer cuDNN, if the format cannot express this. `placement` lacks them if cuDNN is needed.
    with_newer_cudnn: Vec<GpuRange>,
    name: ProgramName,
}

pub(crate) fn run_requirements(
    env: &Env,
    files: &[PathBuf],
    name: Option<&str>,
    form: RequirementsFormat,
) -> Result<ExitCode, CliError> {
    let name = match name {
        Some(name) => ProgramName::parse(name)?,
        None => ProgramName::from_file(&files[0]),
    };
    let all = verify::components_of_all(env, files)?;
    verify::warn_of_not_examined(&all);
    let mut placement = Placement::from_components(&all)
        .map_err(|why| CliError::operational(format_args!("no requirement can be derived: {why}")))?;
    let with_newer_cudnn = if expresses_cudnn(form) { Vec::new() } else { placement.split_off_newer_library() };
    let asked = RequirementsQuery { files, components: &all, placement: &placement, with_newer_cudnn, name };
    let written = match form {
        RequirementsFormat::Text => Ok(text::write_text(&asked)),
        RequirementsFormat::Json => Ok(json::write_json(&asked)),
        RequirementsFormat::Oci => oci::write_oci(&asked),
        RequirementsFormat::K8sDra => k8s_dra::write_device_class(&asked),
        RequirementsFormat::K8sAffinity => k8s_affinity::write_affinity(&asked),
        RequirementsFormat::Conda => conda::write_conda(&asked),
        RequirementsFormat::WheelVariant => wheel_variant::write_wheel_variant(&asked),
        RequirementsFormat::Slurm => slurm::write_slurm(&asked),
        RequirementsFormat::CycloneDx => cyclonedx::write_cyclonedx(&asked, &read_bill(files)?),
        RequirementsFormat::Spdx => spdx::write_spdx(&asked, &read_bill(files)?),
    };
    let text =
        written.map_err(|why| CliError::operational(format_args!("{}: {}: {why}", asked.file_names(), form.name())))?;
    report::print_result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the format can express a requirement on cuDNN.
fn expresses_cudnn(form: RequirementsFormat) -> bool {
    !matches!(
        form,
        RequirementsFormat::K8sDra
            | RequirementsFormat::K8sAffinity
            | RequirementsFormat::WheelVariant
            | RequirementsFormat::Slurm
    )
}

fn read_bill(files: &[PathBuf]) -> Result<Vec<BilledFile>, CliError> {
    files.iter().map(|file| BilledFile::read(file)).collect()
}

/// Why a format cannot express the requirements of files.
#[derive(Debug)]
enum Inexpressible {
    /// The files run on any GPU with any driver.
    AnyMachine,
    /// Nothing is required, as far as the files were examined.
    NoRequirement(String),
    /// The files need no component of CUDA.
    NoComponent,
    /// No known driver release is sufficient.
    NoDriver,
    /// No value of `sm_arch` selects these GPUs only.
    NoArch,
    /// The GPUs have no requirement in common.
    Placement(PlacementError),
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyMachine => {
                f.write_str("it runs on any GPU with any driver, so there is no requirement to express")
            }
            Self::NoRequirement(what) => write!(f, "it has {what}"),
            Self::NoComponent => f.write_str("no CUDA component is required"),
            Self::NoDriver => f.write_str("no known driver release is sufficient"),
            Self::NoArch => f.write_str("no value of sm_arch selects these GPUs only"),
            Self::Placement(error) => error.fmt(f),
        }
    }
}

impl From<PlacementError> for Inexpressible {
    fn from(error: PlacementError) -> Self {
        Self::Placement(error)
    }
}

/// A range of compute capabilities with the CUDA version that the driver must support, which most formats can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequirementsRow {
    /// Inclusive lower bound; `None` means unbounded.
    from: Option<(u8, u8)>,
    /// Exclusive upper bound; `None` means unbounded.
    below: Option<(u8, u8)>,
    /// `None` means any driver that supports these GPUs.
    cuda: Option<CudaVersion>,
}

impl RequirementsQuery<'_> {
    /// Returns the names of the files without their directories.
    fn file_names(&self) -> String {
        verify::file_names(self.files)
    }

    /// Returns the suitable GPUs, the oldest first, without the kind of support. Fails if the files require nothing of
    /// a driver or a GPU.
    fn fit_rows(&self) -> Result<Vec<RequirementsRow>, Inexpressible> {
        let mut rows: Vec<RequirementsRow> = Vec::new();
        for gpus in &self.placement.fit {
            let from = Some(gpus.from).filter(|from| *from != (0, 0));
            let cuda = gpus.driver.map(|driver| driver.cuda);
            let below = gpus.upper_bound();
            match rows.last_mut() {
                Some(last) if last.cuda == cuda && last.below.is_some() && last.below == from => last.below = below,
                _ => rows.push(RequirementsRow { from, below, cuda }),
            }
        }
        if rows.iter().any(|row| row.from.is_none() && row.below.is_none() && row.cuda.is_none()) {
            return Err(if self.placement.needs_driver {
                Inexpressible::AnyMachine
            } else {
                Inexpressible::NoRequirement(self.no_requirement())
            });
        }
        Ok(rows)
    }

    /// Describes that nothing is required, as far as the files were examined.
    fn no_requirement(&self) -> String {
        let limit = if self.open_parts() == 0 { "" } else { ", as far as examined" };
        format!("no requirement on driver or GPU{limit}")
    }

    /// Returns the number of parts that were not examined and may require more.
    fn open_parts(&self) -> usize {
        self.components.iter().flat_map(|file| &file.not_examined).filter(|part| part.may_contradict).count()
    }

    /// Returns the lines of a comment with the format, the files and the generator.
    fn comment_heading(&self, what: &str) -> Vec<String> {
        let mut lines = vec![format!("{what} for {}, generated by cudaguard requirements", self.file_names())];
        let open = self.open_parts();
        lines.extend(
            (open > 0).then(|| format!("Not examined, so it may require more: {}", count_of(open as u64, "part"))),
        );
        let is_needed = self.placement.library.is_some_and(|library| library.needed);
        for (gpus, range) in self.with_newer_cudnn.iter().filter_map(|gpus| Some((gpus, gpus.library?))) {
            let (gpus, cudnn) = (span_of(gpus), format!("{} {} or newer", CUDNN.name, range.min));
            lines.push(if is_needed {
                format!("Excludes compute capability {gpus}, which needs {cudnn}: the format cannot express this.")
            } else {
                format!("The format cannot express that compute capability {gpus} needs {cudnn}, if it is used.")
            });
        }
        lines
    }
}

/// Groups rows by the required driver, the oldest first, for formats in which a requirement contains one driver and
/// several requirements are alternatives.
fn group_by_driver(rows: &[RequirementsRow]) -> BTreeMap<Option<CudaVersion>, Vec<RequirementsRow>> {
    let mut of: BTreeMap<_, Vec<RequirementsRow>> = BTreeMap::new();
    for row in rows {
        of.entry(row.cuda).or_default().push(*row);
    }
    of
}

/// Returns the name of such an alternative, for example `cuda_12_0`.
fn variant_name(cuda: Option<CudaVersion>) -> String {
    cuda.map_or_else(|| "any".to_owned(), |cuda| format!("cuda_{}_{}", cuda.major, cuda.minor))
}

/// Returns the comment for a format that cannot express the processor.
fn processor_comes_with(asked: &RequirementsQuery<'_>, what: &str) -> Option<String> {
    let processor = &asked.placement.processor;
    (!processor.is_empty()).then(|| format!("It cannot express the processor ({processor}); use {what}."))
}

/// Describes a range: `up to 7.x`, `8.0 to 8.6`, `9.x`, `9.0 and newer` or `any`.
fn describe_span(from: (u8, u8), to: Option<(u8, u8)>) -> String {
    let end = |(major, minor): (u8, u8)| {
        if minor == u8::MAX { format!("{major}.x") } else { tables::dotted_cc((major, minor)) }
    };
    match to {
        None if from == (0, 0) => "any".to_owned(),
        None => format!("{} and newer", tables::dotted_cc(from)),
        Some(to) if from == (0, 0) => format!("up to {}", end(to)),
        Some(to) if to == from => tables::dotted_cc(from),
        Some((major, u8::MAX)) if from == (major, 0) => format!("{major}.x"),
        Some(to) => format!("{} to {}", tables::dotted_cc(from), end(to)),
    }
}

/// Describes the range of suitable GPUs.
fn span_of(gpus: &GpuRange) -> String {
    describe_span(gpus.from, gpus.to)
}

/// Returns the reason why GPUs are not suitable.
fn unfit_reason(code: Code) -> &'static str {
    match code {
        Code::NoCodeForGpu => "no code for them",
        other => other.title(),
    }
}

/// Formats comment lines: `# …`.
fn comment_lines(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| text + "# " + &sanitize::sanitize_line(line) + "\n")
}
