//! A claim for Kubernetes' dynamic resource allocation, by the attributes that NVIDIA's driver publishes of each GPU.
//!
//! Attributes as in kubernetes-sigs/dra-driver-nvidia-gpu 25.3 and later (cmd/gpu-kubelet-plugin/deviceinfo.go): versions there
//! have three numbers, 12.4.0. A missing attribute ends the whole allocation with an error, so each is asked for first. The
//! driver's own release is not used: what CUDA version it supports is what counts, and 550.163.01 stands there as 550.163.1.

use std::fmt::Write as _;

use cudaguard::vendor::CUDNN;

use super::{RequirementsQuery, RequirementsRow, comment_lines, object_name, processor_comes_with};

/// How a device's attributes are reached.
const ATTRIBUTES: &str = "device.attributes[\"gpu.nvidia.com\"]";

pub(super) fn write_device_class(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading("ResourceClaimTemplate (resource.k8s.io/v1, Kubernetes 1.34 or newer)");
    heading.push("By the attributes of NVIDIA's DRA driver (dra-driver-nvidia-gpu 25.3 or newer).".to_owned());
    heading.extend(processor_comes_with(asked, "a pod's nodeSelector kubernetes.io/arch"));
    if asked.placement.library.is_some() {
        heading.push(format!("No attribute tells of {}: that comes with the image.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    let name = asked.files.first().map_or_else(String::new, |file| object_name(file));
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

/// True for a device that is fit; never an error.
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
