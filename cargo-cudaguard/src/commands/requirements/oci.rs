//! Lines of a Dockerfile: labels for people and registries, and the variable of the container runtime.

use std::fmt::Write as _;

use crate::host::machine::placement::LibraryRange;
use cudaguard::internal::vendor::CUDNN;

use super::text::jetpack_of;
use super::{RequirementsQuery, comment_lines, nvidia_require, span_of};

/// Prefix of the keys. It starts with the name of the project, as the OCI image specification 1.1 requires for
/// annotations.
const PREFIX: &str = "io.github.cudaguard";

pub(super) fn write_oci(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let rows = asked.fit_rows()?;
    let placement = asked.placement;
    let mut heading = asked.comment_heading("Labels (OCI image specification 1.1) and NVIDIA_REQUIRE_CUDA");
    heading.extend(nvidia_require::READERS.map(str::to_owned));
    heading.extend(nvidia_require::gives_away(asked));
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
    let _ = writeln!(text, "ENV NVIDIA_REQUIRE_CUDA=\"{}\"", nvidia_require::require_expression(&rows));
    Ok(text)
}
