//! Properties of a wheel variant (PEP 825, a draft), of the values that NVIDIA's provider finds for a machine.
//!
//! Values as in wheelnext/nvidia-variant-provider of January 2026 (plugin.py). Every feature must be met, by one of its values. A machine
//! is its newest GPU: one of 8.6 meets `80_real` to `86_real`, and `80_virtual`. A value therefore stands for its own minor and
//! all later ones of that major, and PTX has no word for the majors after its own.

use cudaguard::judge::run::answer::Service;
use cudaguard::tables;
use cudaguard::vendor::GUARDED;
use cudaguard::version::CudaVersion;

use super::{Asked, commented, processor_comes_with};

/// The oldest CUDA version that the provider has a value for.
const OLDEST_CUDA: CudaVersion = CudaVersion::new(11, 0);

/// Minors of a compute capability have one digit.
const MINORS: std::ops::RangeInclusive<u8> = 0..=9;

pub(super) fn write(asked: &Asked<'_>) -> Result<String, String> {
    let rows = asked.rows()?;
    let mut heading = asked.heading("Properties of a wheel variant (PEP 825, a draft)");
    heading.push("Of the provider nvidia, as of January 2026, which looks at the newest GPU of a machine.".to_owned());
    heading.extend(processor_comes_with(asked, "the wheel's platform tag"));
    let any_gpu = rows.iter().any(|row| row.from.is_none() && row.below.is_none());
    let archs = if any_gpu { Vec::new() } else { archs(asked) };
    if !any_gpu && archs.is_empty() {
        return Err("no value of sm_arch stands for these GPUs alone".to_owned());
    }
    let newest = rows.iter().filter_map(|row| row.cuda).max();
    if rows.iter().any(|row| row.cuda != newest) {
        heading.push(
            "One bound holds for all: what some of the GPUs could do with an older driver is given away.".to_owned(),
        );
    }
    if !any_gpu {
        heading.push(
            "A value stands for all later minors of its major, too; GPUs that it cannot tell apart from unfit ones, and majors"
                .to_owned(),
        );
        heading.push("that no table knows yet, are given away.".to_owned());
    }
    if asked.placement.library.is_some() {
        heading.push(format!("No property tells of {}: that is a dependency of the wheel.", GUARDED.name));
    }
    let bound = newest.map(|cuda| format!("cuda_version_lower_bound :: {}", cuda.max(OLDEST_CUDA)));
    let archs = archs.into_iter().map(|arch| format!("sm_arch :: {arch}"));
    Ok(bound
        .into_iter()
        .chain(archs)
        .fold(commented(&heading), |text, property| text + "nvidia :: " + &property + "\n"))
}

/// The values that only fit GPUs meet.
fn archs(asked: &Asked<'_>) -> Vec<String> {
    let placement = asked.placement;
    let by_driver = |cc: (u8, u8)| {
        let gpus = placement.fit.iter().find(|gpus| gpus.include(cc))?;
        Some(gpus.by == Some(Service::Jit))
    };
    let mut majors: Vec<u8> = tables::archs().iter().map(|row| row.cc.0).collect();
    majors.dedup();
    let mut values = Vec::new();
    for major in majors {
        // Jetsons have another processor.
        let is_there = |minor: &u8| placement.processor != "x86_64" || !tables::is_tegra((major, *minor));
        let fit = MINORS.rev().filter(is_there).map_while(|minor| Some((minor, by_driver((major, minor))?)));
        let fit: Vec<(u8, bool)> = fit.collect();
        let oldest = MINORS.clone().find(is_there);
        if fit.last().is_some_and(|(minor, by_driver)| *by_driver && Some(*minor) == oldest) {
            values.push(format!("{major}0_virtual"));
        }
        if let Some((minor, _)) = fit.iter().rfind(|(_, by_driver)| !by_driver) {
            values.push(format!("{major}{minor}_real"));
        }
    }
    values
}
