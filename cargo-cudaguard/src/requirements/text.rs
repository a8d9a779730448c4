//! For people.

use std::fmt::Write as _;

use cudaguard::judge::run::answer::Service;
use cudaguard::machine::placement::OldestDriver;
use cudaguard::sanitize;
use cudaguard::tables;
use cudaguard::vendor::CUDNN;

use super::{Asked, reason, span, span_of};

pub(super) fn write(asked: &Asked<'_>) -> String {
    let placement = asked.placement;
    let mut text = sanitize::line(&format!("{}: what a machine must have", asked.title())).into_owned() + "\n";
    let mut line = |name: &str, said: &str| {
        let _ = writeln!(text, "  {name:<10} {}", sanitize::line(said));
    };
    if !placement.processor.is_empty() {
        line("processor", &placement.processor);
    }
    if placement.asks_nothing() {
        line("GPUs", "no requirement: it asks nothing of driver or GPU");
    }
    let mut name = "GPUs";
    for gpus in placement.fit.iter().filter(|_| !placement.asks_nothing()) {
        let by = gpus.by.map(|by| format!(": {}", served(by))).unwrap_or_default();
        line(name, &format!("{}{}{by}; driver: {}", span_of(gpus), examples(gpus.from, gpus.to), driver(gpus.driver)));
        name = "";
    }
    let mut name = "not on";
    for gpus in &placement.unfit {
        let why = reason(gpus.why.code);
        line(name, &format!("{}{}: {why} ({})", span(gpus.from, gpus.to), examples(gpus.from, gpus.to), gpus.why.code));
        name = "";
    }
    if let Some(library) = placement.library {
        let needed = if library.needed { "" } else { ", where it is used" };
        line(CUDNN.name, &format!("{} or newer, below {}{needed}", library.min, library.below));
        if let Some(version) = library.leaves_behind {
            line("", &format!("{version} and newer leave some of these GPUs behind"));
        }
    }
    text
}

fn served(by: Service) -> &'static str {
    match by {
        Service::Native => "native",
        Service::Jit => "JIT",
        Service::Partial => "partial, in some containers only",
        Service::None => "none",
        Service::Unknown => "cannot be told",
    }
}

pub(super) fn driver(driver: Option<OldestDriver>) -> String {
    match driver {
        None => "any that drives it".to_owned(),
        Some(OldestDriver { cuda, release: None }) => format!("one that supports CUDA {cuda}"),
        Some(OldestDriver { cuda, release: Some(release) }) => {
            format!("one that supports CUDA {cuda} ({release} or newer)")
        }
    }
}

/// ` (A100, A10)`: of each compute capability the product that is known best, and no more than a line takes.
fn examples(from: (u8, u8), to: Option<(u8, u8)>) -> String {
    const SHOWN: usize = 4;
    let mut ccs: Vec<(u8, u8)> = tables::archs().iter().map(|row| row.cc).collect();
    ccs.dedup();
    let inside = ccs.into_iter().filter(|cc| *cc >= from && to.is_none_or(|to| *cc <= to));
    let mut names: Vec<&str> = inside.filter_map(|cc| tables::gpu_examples(cc).first()).map(String::as_str).collect();
    names.dedup();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) }
}
