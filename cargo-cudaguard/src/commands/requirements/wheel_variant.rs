//! Properties of a wheel variant (PEP 825, a draft), with the values that NVIDIA's provider detects on a machine.
//!
//! The values are those of wheelnext/nvidia-variant-provider of January 2026 (plugin.py). A machine must match every
//! feature with one of its values. Only the newest GPU of a machine counts: one of 8.6 matches `80_real` to `86_real`,
//! and `80_virtual`. A value therefore covers its minor version and all later ones of the same major version, and PTX
//! for later major versions cannot be expressed. A variant requires one driver: if GPUs need different ones, there is a
//! variant for each.

use std::fmt::Write as _;

use crate::host::machine::judge::gpu_answer::Service;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

use super::Inexpressible;
use super::{RequirementsQuery, comment_lines, group_by_driver, processor_comes_with, variant_name};

/// The oldest CUDA version for which the provider has a value.
const OLDEST_CUDA: CudaVersion = CudaVersion::new(11, 0);

/// Minor versions of a compute capability have one digit.
const MINORS: std::ops::RangeInclusive<u8> = 0..=9;

pub(super) fn write_wheel_variant(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading("Properties of a wheel variant (PEP 825 and PEP 850, drafts)");
    heading.push("Uses the provider nvidia of January 2026, which reads the newest GPU of a machine.".to_owned());
    heading.extend(processor_comes_with(asked, "the wheel's platform tag"));
    let any_gpu = rows.iter().any(|row| row.from.is_none() && row.below.is_none());
    let by_driver = group_by_driver(&rows);
    let mut variants: Vec<(Option<CudaVersion>, Vec<String>)> = Vec::new();
    for cuda in by_driver.keys() {
        // A newer driver also supports the GPUs of an older one; values of an earlier variant are removed.
        let mut archs = if any_gpu { Vec::new() } else { variant_archs(asked, *cuda) };
        archs.retain(|arch| !variants.iter().any(|(_, earlier)| earlier.contains(arch)));
        if any_gpu || !archs.is_empty() {
            variants.push((*cuda, archs));
        }
    }
    if variants.is_empty() {
        return Err(Inexpressible::NoArch);
    }
    if variants.len() > 1 {
        heading.push(format!(
            "A variant can require one driver, but these GPUs need different ones: build {} wheels of the same files, each with the properties",
            variants.len()
        ));
        heading.push("after one of the comments.".to_owned());
    }
    if !any_gpu {
        heading.push(
            "A value includes all later minors of its major; GPUs that it cannot distinguish from incompatible ones, and majors"
                .to_owned(),
        );
        heading.push("that no table contains yet, are omitted.".to_owned());
    }
    if asked.placement.library.is_some() {
        heading.push(format!("No property describes {}, a dependency of the wheel.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    for (cuda, archs) in &variants {
        if variants.len() > 1 {
            let _ = writeln!(text, "# variant: {}", variant_name(*cuda));
        }
        let bound = cuda.map(|cuda| format!("cuda_version_lower_bound :: {}", cuda.max(OLDEST_CUDA)));
        for property in bound.into_iter().chain(archs.iter().map(|arch| format!("sm_arch :: {arch}"))) {
            let _ = writeln!(text, "nvidia :: {property}");
        }
    }
    Ok(text)
}

/// Returns the values that match only suitable GPUs, with a driver of this CUDA version.
fn variant_archs(asked: &RequirementsQuery<'_>, cuda: Option<CudaVersion>) -> Vec<String> {
    let placement = asked.placement;
    let by_jit = |cc: (u8, u8)| {
        let gpus = placement.fit.iter().find(|gpus| gpus.contains(cc))?;
        let least = gpus.driver.map(|driver| driver.cuda);
        (least <= cuda).then_some(gpus.by == Some(Service::Jit))
    };
    let mut majors: Vec<u8> = tables::arch_rows().iter().map(|row| row.cc.0).collect();
    majors.dedup();
    let mut values = Vec::new();
    for major in majors {
        // Jetsons have another processor.
        let is_there = |minor: &u8| placement.processor != "x86_64" || !tables::is_tegra((major, *minor));
        let fit = MINORS.rev().filter(is_there).map_while(|minor| Some((minor, by_jit((major, minor))?)));
        let fit: Vec<(u8, bool)> = fit.collect();
        let oldest = MINORS.clone().find(is_there);
        let Some(&(least, by_jit)) = fit.last() else { continue };
        let whole = Some(least) == oldest;
        if whole && by_jit {
            values.push(format!("{major}0_virtual"));
        }
        let native = fit.iter().rfind(|(_, by_jit)| !by_jit).map(|(minor, _)| *minor);
        // No other value covers a part of a major version, even if the driver compiles for its oldest GPU.
        if let Some(minor) = if whole { native } else { Some(least) } {
            values.push(format!("{major}{minor}_real"));
        }
    }
    values
}
