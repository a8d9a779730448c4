//! Pins of a conda recipe on the virtual packages of the installing machine: `__cuda` (CEP 30) and `__cuda_arch` (CEP
//! 46).
//!
//! A package can require only one version of `__cuda`. If GPUs need different drivers, the recipe builds one package
//! for each driver, called a variant. `__cuda_arch` is the compute capability of the oldest GPU in the machine.

use std::fmt::Write as _;

use cudaguard::internal::vendor::CUDNN;

use super::{
    RequirementsQuery, RequirementsRow, comment_lines, dotted_cc, group_by_driver, processor_comes_with, variant_name,
};

pub(super) fn write_conda(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let rows = asked.fit_rows()?;
    let mut heading =
        asked.comment_heading("Pins of a conda recipe (recipe.yaml of rattler-build; meta.yaml uses the same keys)");
    heading.push(
        "__cuda as in CEP 30; __cuda_arch as in CEP 46: the oldest GPU of the machine that installs. A client that"
            .to_owned(),
    );
    heading.push("does not support it does not install the package.".to_owned());
    heading.extend(processor_comes_with(asked, "the package's platform"));
    let by_driver = group_by_driver(&rows);
    let several = by_driver.len() > 1;
    if several {
        heading.push("A package can require one driver, but these GPUs need different ones: the recipe builds one package for each, with the".to_owned());
        heading.push("same files. In variants.yaml next to it (meta.yaml: use selectors):".to_owned());
        let names: Vec<String> = by_driver.keys().map(|cuda| format!("\"{}\"", variant_name(*cuda))).collect();
        heading.push(format!("  {KEY}: [{}]", names.join(", ")));
    }
    let mut text = comment_lines(&heading);
    text.push_str("requirements:\n  run:\n");
    for (cuda, rows) in &by_driver {
        // Neither virtual package exists without a driver.
        let least = cuda.map(|cuda| format!(" >={cuda}")).unwrap_or_default();
        let arch = rows_of_gpus(rows);
        let pins =
            [format!("__cuda{least}")].into_iter().chain((!arch.is_empty()).then(|| format!("__cuda_arch {arch}")));
        let indent = if several {
            let _ = writeln!(text, "    - if: {KEY} == \"{}\"\n      then:", variant_name(*cuda));
            "        "
        } else {
            "    "
        };
        for pin in pins {
            let _ = writeln!(text, "{indent}- {pin}");
        }
    }
    if let Some(library) = asked.placement.library {
        let below = library.gpus_dropped_in.unwrap_or(library.below);
        if library.gpus_dropped_in.is_some() {
            let _ = writeln!(text, "    # {} {below} and newer no longer support some of these GPUs.", CUDNN.name);
        }
        if !library.needed {
            text.push_str("  run_constraints:\n");
        }
        let _ = writeln!(text, "    - {} >={},<{below}", CUDNN.key, library.min);
    }
    Ok(text)
}

/// The variant key that distinguishes the packages of a recipe.
const KEY: &str = "least_driver";

/// Returns alternatives joined by `|`, each an interval. An empty string means any GPU.
fn rows_of_gpus(rows: &[RequirementsRow]) -> String {
    let interval = |row: &RequirementsRow| {
        let from = row.from.map(|cc| format!(">={}", dotted_cc(cc)));
        let below = row.below.map(|cc| format!("<{}", dotted_cc(cc)));
        [from, below].into_iter().flatten().collect::<Vec<_>>().join(",")
    };
    let all: Vec<String> = rows.iter().map(interval).collect();
    if all.iter().any(String::is_empty) { String::new() } else { all.join("|") }
}
