//! Requirements as text for people.

use std::fmt::Write as _;

use crate::host::machine::judge::gpu_answer::Service;
use crate::host::machine::oldest_driver::OldestDriver;
use crate::host::machine::placement::{GpuRange, Placement};
use crate::knowledge::jetpack::jetpack_for;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;

use super::{RequirementsQuery, describe_span, span_of, unfit_reason};

pub(super) fn write_text(asked: &RequirementsQuery<'_>) -> String {
    let placement = asked.placement;
    let is_x86 = placement.processor == "x86_64";
    let mut text = sanitize::sanitize_line(&format!("{}: requirements", asked.file_names())).into_owned() + "\n";
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {}", sanitize::sanitize_line(value));
    };
    if !placement.processor.is_empty() {
        line("processor", &placement.processor);
    }
    if placement.asks_nothing() {
        line("GPUs", &asked.no_requirement());
    }
    let mut name = "GPUs";
    for gpus in placement.fit.iter().filter(|_| !placement.asks_nothing()) {
        let by = gpus.by.map(|by| format!(": {}", describe_support(by))).unwrap_or_default();
        line(
            name,
            &format!(
                "{}{}{by}; driver: {}{}",
                span_of(gpus),
                example_gpus(gpus.from, gpus.to, is_x86),
                describe_driver(gpus, is_x86),
                describe_library(placement, gpus)
            ),
        );
        name = "";
    }
    let mut name = "not on";
    for gpus in &placement.unfit {
        let why = unfit_reason(gpus.why.code);
        line(
            name,
            &format!(
                "{}{}: {why} ({})",
                describe_span(gpus.from, gpus.to),
                example_gpus(gpus.from, gpus.to, is_x86),
                gpus.why.code
            ),
        );
        name = "";
    }
    if let Some(library) = placement.library {
        let needed = if library.needed { "" } else { ", if it is used" };
        line(CUDNN.name, &format!("{} or newer, below {}{needed}", library.min, library.below));
        if let Some(version) = library.gpus_dropped_in {
            line("", &format!("{version} and newer no longer support some of these GPUs"));
        }
    }
    text
}

/// Returns the cuDNN releases that support these GPUs, if other GPUs need other ones.
pub(super) fn describe_library(placement: &Placement, gpus: &GpuRange) -> String {
    if placement.library.is_some() && gpus.library.is_none() {
        return format!("; {}: no release is known to support them", CUDNN.name);
    }
    let Some((range, whole)) = placement.differing_library(gpus).zip(placement.library) else { return String::new() };
    let min = (range.min != whole.min).then(|| format!("{} or newer", range.min));
    let below = (range.below != whole.below).then(|| format!("below {}", range.below));
    format!("; {}: {}", CUDNN.name, min.into_iter().chain(below).collect::<Vec<_>>().join(", "))
}

fn describe_support(by: Service) -> &'static str {
    match by {
        Service::Native => "native",
        Service::Jit => "JIT",
        Service::Partial => "partial, in some files or containers only",
        Service::None => "none",
        Service::Unknown => "unknown",
    }
}

/// Returns the driver that these GPUs need. That of a Jetson is a part of JetPack, and its releases have other numbers.
pub(super) fn describe_driver(gpus: &GpuRange, is_x86: bool) -> String {
    let Some(OldestDriver { cuda, release }) = gpus.driver else { return "any that supports it".to_owned() };
    if let Some(jetpack) = jetpack_of(gpus) {
        return format!("one that supports CUDA {cuda} ({jetpack})");
    }
    let release = release.map(|release| format!(" ({release} or newer)")).unwrap_or_default();
    let jetpacks = if is_x86 { String::new() } else { join_jetpacks(gpus, cuda) };
    let jetpacks = if jetpacks.is_empty() { jetpacks } else { format!("; Jetson: {jetpacks}") };
    format!("one that supports CUDA {cuda}{release}{jetpacks}")
}

/// Returns the JetPack releases whose driver is sufficient, if all of these GPUs are those of a Jetson.
pub(super) fn jetpack_of(gpus: &GpuRange) -> Option<String> {
    let cuda = gpus.driver?.cuda;
    let mut ccs = ccs_between(gpus.from, gpus.to).peekable();
    if ccs.peek().is_none() || !ccs.all(tables::is_tegra) {
        return None;
    }
    let known = join_jetpacks(gpus, cuda);
    Some(if known.is_empty() { "no known JetPack".to_owned() } else { known })
}

fn join_jetpacks(gpus: &GpuRange, cuda: CudaVersion) -> String {
    let jetpack = |cc: (u8, u8)| Some(format!("{} or newer on {}.{}", jetpack_for(cc, cuda)?, cc.0, cc.1));
    ccs_between(gpus.from, gpus.to).filter_map(jetpack).collect::<Vec<_>>().join(", ")
}

/// Returns the known compute capabilities in this range.
fn ccs_between(from: (u8, u8), to: Option<(u8, u8)>) -> impl Iterator<Item = (u8, u8)> {
    let mut ccs: Vec<(u8, u8)> = tables::arch_rows().iter().map(|row| row.cc).collect();
    ccs.dedup();
    ccs.into_iter().filter(move |cc| *cc >= from && to.is_none_or(|to| *cc <= to))
}

/// Returns ` (A100, A10)`: the best-known product of each compute capability, limited to the width of a line.
fn example_gpus(from: (u8, u8), to: Option<(u8, u8)>, is_x86: bool) -> String {
    const SHOWN: usize = 4;
    let ccs = ccs_between(from, to).filter(|cc| !is_x86 || !tables::is_tegra(*cc));
    let mut names: Vec<&str> = ccs.filter_map(|cc| tables::gpu_examples(cc).first()).copied().collect();
    names.dedup();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_of_a_jetson_is_named_as_jetpack() {
        let driver = OldestDriver { cuda: CudaVersion::new(12, 2), release: "535.54.03".parse().ok() };
        for (from, to, is_x86, expected) in [
            ((8, 7), Some((8, 7)), false, "(JetPack 6.0 with L4T 36.3 or newer on 8.7)"),
            ((8, 7), Some((8, 7)), true, "(JetPack 6.0 with L4T 36.3 or newer on 8.7)"),
            ((7, 2), Some((7, 2)), false, "(no known JetPack)"),
            ((8, 6), Some((8, 6)), false, "(535.54.03 or newer)"),
            ((0, 6), Some((1, 5)), true, "(535.54.03 or newer)"),
            ((8, 6), Some((8, 7)), true, "(535.54.03 or newer)"),
            ((8, 6), Some((8, 7)), false, "(535.54.03 or newer); Jetson: JetPack 6.0 with L4T 36.3 or newer on 8.7"),
        ] {
            let gpus = GpuRange { from, to, by: None, driver: Some(driver), library: None };
            let text = describe_driver(&gpus, is_x86);
            assert_eq!(text, format!("one that supports CUDA 12.2 {expected}"), "{from:?} {to:?}");
        }
    }
}
