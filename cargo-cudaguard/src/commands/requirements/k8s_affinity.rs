//! Node affinity by the labels of GPU feature discovery.
//!
//! The labels are those of NVIDIA/k8s-device-plugin 0.17 and later (see its page on GPU feature discovery). A label is
//! a string. `Gt` and `Lt` compare it with one integer, and there is no ≥. A version therefore needs two labels, and
//! sometimes two terms. Terms are alternatives, and all expressions in a term must match.

use std::fmt::Write as _;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::version::CudaVersion;

use super::Inexpressible;
use super::{RequirementsQuery, RequirementsRow, comment_lines};

const CC_MAJOR: &str = "nvidia.com/gpu.compute.major";
const CC_MINOR: &str = "nvidia.com/gpu.compute.minor";
const CUDA_MAJOR: &str = "nvidia.com/cuda.runtime-version.major";
const CUDA_MINOR: &str = "nvidia.com/cuda.runtime-version.minor";

/// A label, an operator and a value.
type Factor = (&'static str, &'static str, String);

/// A label, an operator and a numeric value.
type Numbered = (&'static str, &'static str, u32);

/// Returns the name of a processor in Kubernetes.
fn kubernetes_arch(processor: &str) -> Option<&'static str> {
    match processor {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

pub(super) fn write_affinity(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let mut heading = asked.comment_heading("nodeAffinity (Kubernetes v1), a part of a pod's spec,");
    heading.push(
        "By the labels of GPU feature discovery (k8s-device-plugin 0.17 or newer); cuda.runtime-version is what the"
            .to_owned(),
    );
    heading.push("driver supports. The labels describe one GPU model of a node: if a node has several, the others are not checked.".to_owned());
    if asked.placement.library.is_some() {
        heading.push(format!("No label describes {}, which the image contains.", CUDNN.name));
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

/// Returns the alternative terms, one of which a node must match.
fn all_terms(asked: &RequirementsQuery<'_>) -> Result<Vec<Vec<Factor>>, Inexpressible> {
    let architecture = kubernetes_arch(&asked.placement.processor);
    let architecture = architecture.map(|name| ("kubernetes.io/arch", "In", name.to_owned()));
    let with_numbers = |term: Vec<Numbered>| {
        let numbers = term.into_iter().map(|(label, operator, number)| (label, operator, number.to_string()));
        architecture.clone().into_iter().chain(numbers).collect()
    };
    Ok(asked.fit_rows()?.iter().flat_map(affinity_terms).map(with_numbers).collect())
}

/// Combines each compute capability of a row with each CUDA version.
fn affinity_terms(row: &RequirementsRow) -> Vec<Vec<Numbered>> {
    let gpus = gpu_terms(row);
    let drivers = row.cuda.map_or_else(|| vec![Vec::new()], driver_terms);
    gpus.iter().flat_map(|gpu| drivers.iter().map(|driver| [gpu.as_slice(), driver].concat())).collect()
}

/// Returns the terms for the first major version from its minor version on, for the complete major versions, and for
/// the last one up to its minor version.
fn gpu_terms(row: &RequirementsRow) -> Vec<Vec<Numbered>> {
    let wide = |(major, minor): (u8, u8)| (u32::from(major), u32::from(minor));
    let (from, below) = (row.from.map_or((0, 0), wide), row.below.map(wide));
    let at_least = |minor: u32| minor.checked_sub(1).map(|less| (CC_MINOR, "Gt", less));
    let mut terms: Vec<Vec<Numbered>> = Vec::new();
    if let Some(below) = below.filter(|below| below.0 == from.0) {
        let one = [Some((CC_MAJOR, "In", from.0)), at_least(from.1), Some((CC_MINOR, "Lt", below.1))];
        return vec![one.into_iter().flatten().collect()];
    }
    let mut first_complete = from.0;
    if from.1 > 0 {
        terms.push([Some((CC_MAJOR, "In", from.0)), at_least(from.1)].into_iter().flatten().collect());
        first_complete += 1;
    }
    // Covers the major versions from `first_complete` on, below `end`.
    let end = below.map(|below| below.0);
    match end {
        Some(end) if end == first_complete + 1 => terms.push(vec![(CC_MAJOR, "In", first_complete)]),
        Some(end) if end <= first_complete => {}
        _ => {
            let from = first_complete.checked_sub(1).map(|less| (CC_MAJOR, "Gt", less));
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
