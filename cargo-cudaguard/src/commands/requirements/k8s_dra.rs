//! A claim for Kubernetes' dynamic resource allocation, with the attributes that NVIDIA's driver publishes for each
//! GPU.
//!
//! The attributes are those of kubernetes-sigs/dra-driver-nvidia-gpu 25.3 and later
//! (cmd/gpu-kubelet-plugin/deviceinfo.go). Its versions have three numbers: 12.4.0. A missing attribute makes the whole
//! allocation fail, so the expression first checks that each attribute exists. The release of the driver is not used:
//! the supported CUDA version is decisive, and the attribute writes 550.163.01 as 550.163.1.

use std::fmt::Write as _;

use crate::knowledge::vendor::CUDNN;

use super::Inexpressible;
use super::{RequirementsQuery, RequirementsRow, comment_lines, processor_comes_with};

/// CEL expression for the attributes of a device.
const ATTRIBUTES: &str = "device.attributes[\"gpu.nvidia.com\"]";

pub(super) fn write_device_class(asked: &RequirementsQuery<'_>) -> Result<String, Inexpressible> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading("ResourceClaimTemplate (resource.k8s.io/v1, Kubernetes 1.34 or newer)");
    heading.push("By the attributes of the DRA driver: github.com/kubernetes-sigs/dra-driver-nvidia-gpu 0.4, or NVIDIA's 25.3, or newer.".to_owned());
    heading.extend(processor_comes_with(asked, "a pod's nodeSelector kubernetes.io/arch"));
    if asked.placement.library.is_some() {
        heading.push(format!("No attribute describes {}, which the image contains.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    let name = &asked.name.object;
    let _ = write!(
        text,
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: {name}\nspec:\n  spec:\n    devices:\n      \
         requests:\n      - name: gpu\n        exactly:\n          deviceClassName: gpu.nvidia.com\n          selectors:\n          - cel:\n              \
         expression: |-\n"
    );
    for line in cel_expression(&rows).lines() {
        let _ = writeln!(text, "                {line}");
    }
    Ok(text)
}

/// Returns an expression that is true for a suitable device and never fails.
fn cel_expression(rows: &[RequirementsRow]) -> String {
    let uses = |of: fn(&RequirementsRow) -> bool| rows.iter().any(of);
    let mut all = vec!["device.driver == \"gpu.nvidia.com\"".to_owned()];
    let asked = [
        ("cudaComputeCapability", uses(|row| row.from.is_some() || row.below.is_some())),
        ("cudaDriverVersion", uses(|row| row.cuda.is_some())),
    ];
    all.extend(
        asked.into_iter().filter(|(_, used)| *used).map(|(attribute, _)| format!("\"{attribute}\" in {ATTRIBUTES}")),
    );
    let rows: Vec<String> = rows.iter().map(cel_row).collect();
    match &rows[..] {
        [one] => all.push(one.clone()),
        several => {
            let several: Vec<String> = several.iter().map(|row| format!("({row})")).collect();
            all.push(format!("({})", several.join(" ||\n ")));
        }
    }
    all.join(" &&\n")
}

fn cel_row(row: &RequirementsRow) -> String {
    let compared = |attribute: &str, (major, minor): (u32, u32), how: &str| {
        format!("{ATTRIBUTES}.{attribute}.compareTo(semver(\"{major}.{minor}.0\")) {how} 0")
    };
    let cc = |(major, minor): (u8, u8)| (u32::from(major), u32::from(minor));
    let from = row.from.map(|from| compared("cudaComputeCapability", cc(from), ">="));
    let below = row.below.map(|below| compared("cudaComputeCapability", cc(below), "<"));
    let cuda = row.cuda.map(|cuda| compared("cudaDriverVersion", (cuda.major, cuda.minor), ">="));
    [from, below, cuda].into_iter().flatten().collect::<Vec<_>>().join(" &&\n  ")
}
