//! Directives of a Spack package: the values of `cuda_arch` on which the files do not run, and cuDNN.
//!
//! The values are those of `build_systems/cuda.py` of spack-packages of 2026. Spack cannot express a driver.

use std::fmt::Write as _;

use crate::host::machine::placement::LibraryRange;
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;
use cudaguard::internal::version::Version;

use super::text::describe_driver;
use super::{RequirementsQuery, comment_lines, processor_comes_with, span_of};

/// All values of `cuda_arch`.
const VALUES: &str = "10 11 12 13 20 21 30 32 35 37 50 52 53 60 61 62 70 72 75 80 86 87 89 90 90a 100 100a 100f 101 101a 101f \
                      103 103a 103f 110 110a 110f 120 120a 120f 121 121a 121f";

pub(super) fn write_spack(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let placement = asked.placement;
    let fit = |cc: (u8, u8)| placement.fit.iter().any(|gpus| gpus.contains(cc));
    let unfit: Vec<(&str, (u8, u8))> =
        VALUES.split_whitespace().map(|value| (value, parse_capability(value))).filter(|(_, cc)| !fit(*cc)).collect();
    if unfit.is_empty() && placement.library.is_none() {
        return Err("it runs on the GPUs of all values of cuda_arch, so there is no requirement to express".to_owned());
    }
    let mut heading = asked.comment_heading("Directives of a Spack package (package.py, a CudaPackage)");
    heading.push(
        "Uses the values of cuda_arch in spack-packages of 2026, for the GPU of the machine. There is none for 8.8."
            .to_owned(),
    );
    heading.extend(processor_comes_with(asked, "the target"));
    heading
        .push("Spack cannot express a driver: exclude nodes with older drivers by other means. Required:".to_owned());
    heading.extend(
        placement
            .fit
            .iter()
            .map(|gpus| format!("  {}: {}", span_of(gpus), describe_driver(gpus, placement.processor == "x86_64"))),
    );
    let mut text = comment_lines(&heading);
    for (value, cc) in unfit {
        let why = placement.unfit.iter().find(|gpus| gpus.contains(cc));
        let why = why.map(|gpus| format!(" ({})", gpus.why.code)).unwrap_or_default();
        let title: String =
            sanitize::sanitize_line(&asked.file_names()).chars().filter(|c| !matches!(c, '"' | '\\')).collect();
        let _ = writeln!(
            text,
            "conflicts(\"cuda_arch={value}\", when=\"+cuda\", msg=\"{title} does not run on compute capability {}{why}\")",
            tables::dotted_cc(cc)
        );
    }
    if let Some((library, LibraryRange { min, below })) = placement.library.zip(placement.common_library()?) {
        if library.gpus_dropped_in.is_some() {
            let _ = writeln!(text, "# {} {below} and newer no longer support some of these GPUs.", CUDNN.name);
        }
        if min > library.min {
            text.push_str("# Older releases do not support some of these GPUs.\n");
        }
        let key = CUDNN.key;
        let end = range_end(below);
        if library.needed {
            let _ = writeln!(text, "depends_on(\"{key}@{min}:{end}\", type=\"run\")");
        } else {
            let _ = writeln!(text, "conflicts(\"{key}@:{}\")\nconflicts(\"{key}@{below}:\")", range_end(min));
        }
    }
    Ok(text)
}

/// Parses a value: `90a` is 9.0.
fn parse_capability(value: &str) -> (u8, u8) {
    let number: u8 = value.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().expect("a value of the list");
    (number / 10, number % 10)
}

/// Returns the inclusive end of a Spack range below this version. An end includes all versions with its prefix: `9`
/// excludes 10.0, `9.10` excludes 9.11, `9.11.0` excludes 9.11.1.
fn range_end(version: Version) -> String {
    let Version { major, minor, patch } = version;
    match (minor, patch) {
        (0, 0) => major.saturating_sub(1).to_string(),
        (_, 0) => format!("{major}.{}", minor - 1),
        _ => format!("{major}.{minor}.{}", patch - 1),
    }
}
