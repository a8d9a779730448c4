//! Words of the comparison, for text and Markdown.

use cudaguard::internal::policy::LossKind;

use super::compare::{GpuChange, ReleaseDiff, SizeChange};
use super::release_facts::{ComparedGpu, describe_driver};

/// `1.2 MB`.
pub(super) fn describe_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        1..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

/// The value of a side, or a dash.
pub(super) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

/// Neighbours with the same change, as first and last of each group.
pub(super) fn group_changes(changes: &[GpuChange]) -> Vec<Vec<&GpuChange>> {
    let mut groups: Vec<Vec<&GpuChange>> = Vec::new();
    for change in changes {
        match groups.last_mut() {
            Some(group) if (group[0].old, group[0].new) == (change.old, change.new) => group.push(change),
            _ => groups.push(vec![change]),
        }
    }
    groups
}

/// `7.0 (Tesla V100), 7.5 (Tesla T4)`.
pub(super) fn labels(group: &[&GpuChange]) -> String {
    group.iter().map(|change| change.label()).collect::<Vec<_>>().join(", ")
}

/// `native, driver 525.60.13 (CUDA 12.0)`.
pub(super) fn describe_state(state: ComparedGpu) -> String {
    match state.driver {
        Some(driver) => format!("{}, driver {}", state.service.name(), describe_driver(driver)),
        None => state.service.name().to_owned(),
    }
}

/// The result in one sentence.
pub(super) fn summary(diff: &ReleaseDiff) -> String {
    let [lost, allowed] = [false, true].map(|allowed| {
        let counts = LossKind::ALL.into_iter().filter_map(|kind| {
            let number = diff.losses.iter().filter(|loss| loss.kind == kind && loss.allowed == allowed).count();
            (number > 0).then(|| format!("{}: {number}", kind.name()))
        });
        counts.collect::<Vec<_>>().join(", ")
    });
    let allowed = if allowed.is_empty() { allowed } else { format!("; allowed by the policy: {allowed}") };
    if !lost.is_empty() {
        format!("support is lost ({lost}){allowed}")
    } else if diff.is_known() {
        format!("no support is lost{allowed}")
    } else {
        format!("it is unknown whether support is lost: a fact is unknown or was not examined{allowed}")
    }
}

/// Rows for the size of GPU code: archs whose size differs, and the sum.
pub(super) fn size_rows(diff: &ReleaseDiff) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    for SizeChange { arch, old, new } in &diff.sizes {
        rows.push((arch.clone(), describe_size(*old), describe_size(*new)));
    }
    rows.retain(|(_, old, new)| old != new);
    if !diff.sizes.is_empty() {
        let (old, new) = diff.sizes.iter().fold((0, 0), |(old, new), size| (old + size.old, new + size.new));
        rows.push(("all".to_owned(), describe_size(old), describe_size(new)));
    }
    rows
}

#[cfg(test)]
mod tests;
