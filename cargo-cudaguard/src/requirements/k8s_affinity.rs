//! Affinity to nodes, by the labels of GPU feature discovery.
//!
//! Labels as in NVIDIA/k8s-device-plugin 0.17 and later (its page on GPU feature discovery). A label is a text; `Gt` and `Lt` compare it
//! with one whole number, and there is no ≥: so a version takes two labels, and at times two terms. Terms are alternatives,
//! what stands in one term is all needed.

use std::fmt::Write as _;

use cudaguard::vendor::CUDNN;
use cudaguard::version::CudaVersion;

use super::{RequirementsQuery, RequirementsRow, comment_lines};

const CC_MAJOR: &str = "nvidia.com/gpu.compute.major";
const CC_MINOR: &str = "nvidia.com/gpu.compute.minor";
const CUDA_MAJOR: &str = "nvidia.com/cuda.runtime-version.major";
const CUDA_MINOR: &str = "nvidia.com/cuda.runtime-version.minor";

/// A label, the operator and its value.
pub(super) type Factor = (&'static str, &'static str, String);

/// The same of a label that holds a number.
type Numbered = (&'static str, &'static str, u32);

/// As Kubernetes calls a processor.
fn kubernetes_arch(processor: &str) -> Option<&'static str> {
    match processor {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

pub(super) fn write_affinity(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let mut heading = asked.comment_heading("nodeAffinity (Kubernetes v1), a part of a pod's spec,");
    heading.push(
        "By the labels of GPU feature discovery (k8s-device-plugin 0.17 or newer); cuda.runtime-version is what the"
            .to_owned(),
    );
    heading.push("driver supports. A node is judged by the labels of one GPU model: of a node with several, the others are not seen.".to_owned());
    if asked.placement.library.is_some() {
        heading.push(format!("No label tells of {}: that comes with the image.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    text.push_str(
        "affinity:\n  nodeAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n",
    );
    for term in all_terms(asked)? {
        text.push_str("      - matchExpressions:\n");
        for (label, operator, value) in term {
            let _ = writeln!(text, "        - {{key: {label}, operator: {operator}, values: [\"{value}\"]}}");
        }
    }
    Ok(text)
}

/// The alternatives, one of which a node must meet.
pub(super) fn all_terms(asked: &RequirementsQuery<'_>) -> Result<Vec<Vec<Factor>>, String> {
    let architecture = kubernetes_arch(&asked.placement.processor);
    let architecture = architecture.map(|name| ("kubernetes.io/arch", "In", name.to_owned()));
    let with_numbers = |term: Vec<Numbered>| {
        let numbers = term.into_iter().map(|(label, operator, number)| (label, operator, number.to_string()));
        architecture.clone().into_iter().chain(numbers).collect()
    };
    Ok(asked.fit_rows()?.iter().flat_map(affinity_terms).map(with_numbers).collect())
}

/// Each compute capability of a row with each CUDA version.
fn affinity_terms(row: &RequirementsRow) -> Vec<Vec<Numbered>> {
    let gpus = gpu_terms(row);
    let drivers = row.cuda.map_or_else(|| vec![Vec::new()], driver_terms);
    gpus.iter().flat_map(|gpu| drivers.iter().map(|driver| [gpu.as_slice(), driver].concat())).collect()
}

/// The first major from its minor on, the whole majors, the last one up to its minor.
fn gpu_terms(row: &RequirementsRow) -> Vec<Vec<Numbered>> {
    let wide = |(major, minor): (u8, u8)| (u32::from(major), u32::from(minor));
    let (from, below) = (row.from.map_or((0, 0), wide), row.below.map(wide));
    let at_least = |minor: u32| minor.checked_sub(1).map(|less| (CC_MINOR, "Gt", less));
    let mut terms: Vec<Vec<Numbered>> = Vec::new();
    if let Some(below) = below.filter(|below| below.0 == from.0) {
        let one = [Some((CC_MAJOR, "In", from.0)), at_least(from.1), Some((CC_MINOR, "Lt", below.1))];
        return vec![one.into_iter().flatten().collect()];
    }
    let mut whole_from = from.0;
    if from.1 > 0 {
        terms.push([Some((CC_MAJOR, "In", from.0)), at_least(from.1)].into_iter().flatten().collect());
        whole_from += 1;
    }
    // Majors from `whole_from` on, below `end`.
    let end = below.map(|below| below.0);
    match end {
        Some(end) if end == whole_from + 1 => terms.push(vec![(CC_MAJOR, "In", whole_from)]),
        Some(end) if end <= whole_from => {}
        _ => {
            let from = whole_from.checked_sub(1).map(|less| (CC_MAJOR, "Gt", less));
            let below = end.map(|end| (CC_MAJOR, "Lt", end));
            terms.push(from.into_iter().chain(below).collect());
        }
    }
    if let Some(below) = below.filter(|below| below.1 > 0) {
        terms.push(vec![(CC_MAJOR, "In", below.0), (CC_MINOR, "Lt", below.1)]);
    }
    terms
}

fn driver_terms(cuda: CudaVersion) -> Vec<Vec<Numbered>> {
    let newer_major = vec![(CUDA_MAJOR, "Gt", cuda.major)];
    match cuda.minor.checked_sub(1) {
        None => vec![vec![(CUDA_MAJOR, "Gt", cuda.major.saturating_sub(1))]],
        Some(less) => vec![newer_major, vec![(CUDA_MAJOR, "In", cuda.major), (CUDA_MINOR, "Gt", less)]],
    }
}
