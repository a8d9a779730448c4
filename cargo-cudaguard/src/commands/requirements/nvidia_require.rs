//! `NVIDIA_REQUIRE_CUDA` as an env file (`docker run --env-file`).
//!
//! The grammar is that of libnvidia-container (src/cli/dsl.c): factors joined by `,` must all hold, and terms joined by
//! a blank are alternatives. `cuda` is the CUDA version that the host's driver supports, which already includes
//! minor-version compatibility; `arch` is the compute capability.

use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;

use super::{RequirementsQuery, RequirementsRow, comment_lines, processor_comes_with};

/// Comment lines about the programs that read the variable.
pub(super) const READERS: [&str; 2] = [
    "libnvidia-container 1.x (nvidia-container-cli --require) checks it for every visible GPU. In the mode jit-cdi, the default of",
    "nvidia-container-toolkit, and with CDI it has no effect.",
];

pub(super) fn write_nvidia_require(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading("Variable NVIDIA_REQUIRE_CUDA");
    heading.extend(READERS.map(str::to_owned));
    heading.extend(gives_away(asked));
    Ok(format!("{}NVIDIA_REQUIRE_CUDA={}\n", comment_lines(&heading), require_expression(&rows)))
}

/// Returns one term for each row.
pub(super) fn require_expression(rows: &[RequirementsRow]) -> String {
    rows.iter().map(require_term).collect::<Vec<_>>().join(" ")
}

fn require_term(row: &RequirementsRow) -> String {
    let from = row.from.map(|cc| format!("arch>={}", tables::dotted_cc(cc)));
    let below = row.below.map(|cc| format!("arch<{}", tables::dotted_cc(cc)));
    let cuda = row.cuda.map(|cuda| format!("cuda>={cuda}"));
    [from, below, cuda].into_iter().flatten().collect::<Vec<_>>().join(",")
}

/// Returns comment lines about the requirements that the variable cannot express.
pub(super) fn gives_away(asked: &RequirementsQuery<'_>) -> Vec<String> {
    let mut lines = vec!["A machine is refused if one of its GPUs is not compatible.".to_owned()];
    lines.extend(processor_comes_with(asked, "the image's platform"));
    if asked.placement.library.is_some() {
        lines.push(format!("It cannot express {}, which the image contains.", CUDNN.name));
    }
    lines
}
