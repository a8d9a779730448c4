//! Lines of a Dockerfile: labels for people and registries, and the variable `NVIDIA_REQUIRE_CUDA` of the container
//! runtime.
//!
//! The grammar of the variable is that of libnvidia-container (src/cli/dsl.c): factors joined by `,` must all hold, and
//! terms joined by a blank are alternatives. `cuda` is the CUDA version that the host's driver supports, which already
//! includes minor-version compatibility; `arch` is the compute capability.

use std::fmt::Write as _;

use crate::host::machine::placement::LibraryRange;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::tables;

use super::Inexpressible;
use super::text::jetpack_of;
use super::{RequirementsQuery, RequirementsRow, comment_lines, processor_comes_with, span_of};

/// Prefix of the keys. It starts with the name of the project, as the OCI image specification 1.1 requires for
/// annotations.
const PREFIX: &str = "io.github.cudaguard";

/// Comment lines about the programs that read the variable.
const READERS: [&str; 3] = [
    "libnvidia-container 1.x (nvidia-container-cli --require) checks it for every visible GPU. In the mode jit-cdi, the default of",
    "nvidia-container-toolkit, and with CDI it has no effect.",
    "A machine is refused if one of its GPUs is not compatible.",
];

pub(super) fn write_oci(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let rows = asked.fit_rows()?;
    let placement = asked.placement;
    let mut heading = asked.comment_heading("Labels (OCI image specification 1.1) and NVIDIA_REQUIRE_CUDA");
    heading.extend(READERS.map(str::to_owned));
    heading.extend(processor_comes_with(asked, "the image's platform"));
    if placement.library.is_some() {
        heading.push(format!("It cannot express {}, which the image contains.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    let mut label = |key: &str, value: &str| {
        let _ = writeln!(text, "LABEL {PREFIX}.{key}=\"{value}\"");
    };
    let gpus = placement.fit.iter().map(|gpus| match gpus.by {
        Some(by) => format!("{} {}", span_of(gpus), by.name()),
        None => span_of(gpus),
    });
    label("gpus", &gpus.collect::<Vec<_>>().join(", "));
    let drivers = placement.fit.iter().filter_map(|gpus| {
        let driver = gpus.driver?;
        let release = jetpack_of(gpus).or_else(|| driver.release.map(|release| release.to_string()));
        let release = release.map(|release| format!(" ({release})")).unwrap_or_default();
        Some(format!("{}: CUDA {}{release}", span_of(gpus), driver.cuda))
    });
    let drivers = drivers.collect::<Vec<_>>().join(", ");
    if !drivers.is_empty() {
        label("driver", &drivers);
    }
    // One label cannot express the releases for each GPU.
    if let Some(LibraryRange { min, below }) = placement.common_library()? {
        label(CUDNN.key, &format!(">={min},<{below}"));
    }
    let _ = writeln!(text, "ENV NVIDIA_REQUIRE_CUDA=\"{}\"", require_expression(&rows));
    Ok(text)
}

/// Returns one term for each row.
fn require_expression(rows: &[RequirementsRow]) -> String {
    rows.iter().map(require_term).collect::<Vec<_>>().join(" ")
}

fn require_term(row: &RequirementsRow) -> String {
    let from = row.from.map(|cc| format!("arch>={}", tables::dotted_cc(cc)));
    let below = row.below.map(|cc| format!("arch<{}", tables::dotted_cc(cc)));
    let cuda = row.cuda.map(|cuda| format!("cuda>={cuda}"));
    [from, below, cuda].into_iter().flatten().collect::<Vec<_>>().join(",")
}
