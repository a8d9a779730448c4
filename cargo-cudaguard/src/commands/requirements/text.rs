//! Requirements as text for people.

use std::fmt::Write as _;

use crate::host::judge::answer::Service;
use crate::host::machine::oldest_driver::OldestDriver;
use crate::host::machine::placement::GpuRange;
use cudaguard::internal::sanitize;
use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;

use super::{RequirementsQuery, describe_span, span_of, unfit_reason};

pub(super) fn write_text(asked: &RequirementsQuery<'_>) -> String {
    let placement = asked.placement;
    let mut text = sanitize::sanitize_line(&format!("{}: requirements", asked.file_names())).into_owned() + "\n";
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10} {}", sanitize::sanitize_line(value));
    };
    if !placement.processor.is_empty() {
        line("processor", &placement.processor);
    }
    if placement.asks_nothing() {
        line("GPUs", "no requirement on driver or GPU");
    }
    let mut name = "GPUs";
    for gpus in placement.fit.iter().filter(|_| !placement.asks_nothing()) {
        let by = gpus.by.map(|by| format!(": {}", describe_support(by))).unwrap_or_default();
        line(
            name,
            &format!(
                "{}{}{by}; driver: {}",
                span_of(gpus),
                example_gpus(gpus.from, gpus.to),
                describe_driver_of(gpus, placement.processor == "x86_64")
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
                example_gpus(gpus.from, gpus.to),
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

fn describe_support(by: Service) -> &'static str {
    match by {
        Service::Native => "native",
        Service::Jit => "JIT",
        Service::Partial => "partial, in some containers only",
        Service::None => "none",
        Service::Unknown => "unknown",
    }
}

pub(super) fn describe_driver(driver: Option<OldestDriver>) -> String {
    match driver {
        None => "any that supports it".to_owned(),
        Some(OldestDriver { cuda, release: None }) => format!("one that supports CUDA {cuda}"),
        Some(OldestDriver { cuda, release: Some(release) }) => {
            format!("one that supports CUDA {cuda} ({release} or newer)")
        }
    }
}

/// Returns the driver for these GPUs. That of a Jetson is a part of JetPack, and its releases have other numbers.
fn describe_driver_of(gpus: &GpuRange, is_x86: bool) -> String {
    let text = describe_driver(gpus.driver);
    let Some(cuda) = gpus.driver.filter(|_| !is_x86).map(|driver| driver.cuda) else { return text };
    let jetpacks: Vec<String> = ccs_between(gpus.from, gpus.to)
        .filter_map(|cc| Some(format!("{} or newer on {}.{}", tables::jetpack_for(cc, cuda)?, cc.0, cc.1)))
        .collect();
    if ccs_between(gpus.from, gpus.to).all(tables::is_tegra) {
        let known = if jetpacks.is_empty() { "no known JetPack".to_owned() } else { jetpacks.join(", ") };
        format!("one that supports CUDA {cuda} ({known})")
    } else if jetpacks.is_empty() {
        text
    } else {
        format!("{text}; Jetson: {}", jetpacks.join(", "))
    }
}

/// Returns the known compute capabilities in this range.
fn ccs_between(from: (u8, u8), to: Option<(u8, u8)>) -> impl Iterator<Item = (u8, u8)> {
    let mut ccs: Vec<(u8, u8)> = tables::arch_rows().iter().map(|row| row.cc).collect();
    ccs.dedup();
    ccs.into_iter().filter(move |cc| *cc >= from && to.is_none_or(|to| *cc <= to))
}

/// Returns ` (A100, A10)`: the best-known product of each compute capability, limited to the width of a line.
fn example_gpus(from: (u8, u8), to: Option<(u8, u8)>) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<&str> =
        ccs_between(from, to).filter_map(|cc| tables::gpu_examples(cc).first()).map(String::as_str).collect();
    names.dedup();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) }
}
