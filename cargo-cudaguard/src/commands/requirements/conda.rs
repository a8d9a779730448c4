//! Pins of a conda recipe, as conda-forge writes them: the metapackages `cuda-version` and `cuda-arch`, whose versions
//! constrain the driver (`__cuda`, CEP 30) and the GPU (`__cuda_arch`, CEP 46) of the installing machine.
//!
//! A recipe cannot depend on `__cuda` directly: the machine that builds it often has no driver. `cuda-version` constrains
//! only the CUDA major of the driver, and `cuda-arch` only the oldest GPU, so `run_constraints` contains the exact
//! requirements. They apply if the machine has the virtual packages. If GPUs need different drivers, the recipe builds one
//! package for each driver, called a variant. `__cuda_arch` is the compute capability of the oldest GPU in the machine.

use std::fmt::Write as _;

use crate::host::machine::placement::LibraryRange;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

use super::Inexpressible;
use super::{RequirementsQuery, RequirementsRow, comment_lines, group_by_driver, processor_comes_with, variant_name};

pub(super) fn write_conda(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let rows = asked.fit_rows()?;
    let mut heading =
        asked.comment_heading("Pins of a conda recipe (recipe.yaml of rattler-build; meta.yaml uses the same keys)");
    heading.push("cuda-version and cuda-arch are metapackages of conda-forge. The constraints apply to machines with a driver; a".to_owned());
    heading.push("machine without one installs the package. meta.yaml calls them run_constrained.".to_owned());
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
    let lists = |pins: &WritePins| {
        let mut list = String::new();
        for (cuda, rows) in &by_driver {
            let pins = pins(*cuda, rows);
            if several && !pins.is_empty() {
                let _ = writeln!(list, "    - if: {KEY} == \"{}\"\n      then:", variant_name(*cuda));
            }
            for pin in pins {
                let _ = writeln!(list, "{}- {pin}", if several { "        " } else { "    " });
            }
        }
        list
    };
    let mut run = lists(&|cuda, rows| {
        let oldest = rows.iter().map(|row| row.from).min().flatten();
        let cuda = cuda.map(|cuda| format!(" >={cuda}")).unwrap_or_default();
        let arch = oldest.map(|cc| format!("cuda-arch >={}", tables::dotted_cc(cc)));
        [format!("cuda-version{cuda}")].into_iter().chain(arch).collect()
    });
    let mut constraints = lists(&|cuda, rows| {
        let arch = Some(rows_of_gpus(rows)).filter(|arch| !arch.is_empty());
        let cuda = cuda.map(|cuda| format!("__cuda >={cuda}"));
        cuda.into_iter().chain(arch.map(|arch| format!("__cuda_arch {arch}"))).collect()
    });
    if let Some((library, LibraryRange { min, below })) = asked.placement.library.zip(asked.placement.common_library()?)
    {
        let list = if library.needed { &mut run } else { &mut constraints };
        if library.gpus_dropped_in.is_some() {
            let _ = writeln!(list, "    # {} {below} and newer no longer support some of these GPUs.", CUDNN.name);
        }
        if min > library.min {
            let _ = writeln!(list, "    # Older releases do not support some of these GPUs.");
        }
        let _ = writeln!(list, "    - {} >={min},<{below}", CUDNN.key);
    }
    let _ = write!(text, "requirements:\n  run:\n{run}");
    if !constraints.is_empty() {
        let _ = write!(text, "  run_constraints:\n{constraints}");
    }
    Ok(text)
}

/// Returns the pins for machines with a driver of this CUDA version, and these GPUs.
type WritePins = dyn Fn(Option<CudaVersion>, &[RequirementsRow]) -> Vec<String>;

/// The variant key that distinguishes the packages of a recipe.
const KEY: &str = "least_driver";

/// Returns alternatives joined by `|`, each an interval. An empty string means any GPU.
fn rows_of_gpus(rows: &[RequirementsRow]) -> String {
    let interval = |row: &RequirementsRow| {
        let from = row.from.map(|cc| format!(">={}", tables::dotted_cc(cc)));
        let below = row.below.map(|cc| format!("<{}", tables::dotted_cc(cc)));
        [from, below].into_iter().flatten().collect::<Vec<_>>().join(",")
    };
    let all: Vec<String> = rows.iter().map(interval).collect();
    if all.iter().any(String::is_empty) { String::new() } else { all.join("|") }
}
