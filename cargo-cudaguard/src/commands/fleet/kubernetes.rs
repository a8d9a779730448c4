//! Reader for the nodes that `kubectl get nodes -o json` prints.

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::host::machine::{Gpu, Machine};
use cudaguard::internal::tables;
use serde::Deserialize;
use serde_json::Value;

use super::entry_error::EntryError;
use super::inputs::{HostFacts, parse_cc, parse_cuda_version, parse_driver_release};

/// A list of nodes, or a single node.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    kind: Option<String>,
    metadata: NodeMetadata,
    status: NodeStatus,
    /// The nodes of a list.
    items: Option<Vec<Node>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeMetadata {
    name: Option<String>,
    labels: Labels,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    allocatable: Resources,
    capacity: Resources,
}

/// Quantities by the name of the resource.
#[derive(Default, Deserialize)]
struct Resources(BTreeMap<String, Value>);

#[derive(Default, Deserialize)]
struct Labels(BTreeMap<String, String>);

/// Reads the nodes of an input.
pub(super) fn read_nodes(input: &mut dyn BufRead) -> Result<Vec<Node>, EntryError> {
    let node: Node = serde_json::from_reader(input).map_err(|error| EntryError::kind(error.to_string()))?;
    match node {
        Node { items: Some(items), .. } => Ok(items),
        Node { kind: Some(_), .. } => Ok(vec![node]),
        _ => Err(EntryError::kind("has no items: expected the output of kubectl get nodes -o json")),
    }
}

impl Labels {
    /// Returns the first of these labels that the node has.
    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.get(*name)).map(String::as_str)
    }

    fn number(&self, names: &[&str]) -> Result<Option<&str>, EntryError> {
        let Some(found) = self.first(names) else { return Ok(None) };
        if found.is_empty() || found.len() > 9 || !found.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(EntryError::value(format!("label {}", names[0]), "a whole number", found));
        }
        Ok(Some(found))
    }

    /// Returns a version that has one label for each part. The newer label names are tried first; the third part may be
    /// missing or empty.
    fn version(&self, newer: &[&str], older: &[&str]) -> Result<Option<String>, EntryError> {
        let mut all = Vec::new();
        for (newer, older) in newer.iter().zip(older) {
            match self.first(&[newer, older]) {
                None | Some("") if all.len() == 2 => {}
                None => return Ok(None),
                Some(_) => all.extend(self.number(&[newer, older])?),
            }
        }
        Ok(Some(all.join(".")))
    }

    fn compute_capability(&self) -> Result<Option<(u8, u8)>, EntryError> {
        let Some(major) = self.number(&["nvidia.com/gpu.compute.major"])? else { return Ok(None) };
        let both = format!("{major}.{}", self.number(&["nvidia.com/gpu.compute.minor"])?.unwrap_or("0"));
        let cc = parse_cc(&both).map(Some);
        cc.ok_or_else(|| EntryError::value("nvidia.com/gpu.compute.major", "a compute capability", &both))
    }

    /// Returns the name of the GPU from the node labels of NVIDIA, Google and Amazon.
    fn product(&self) -> Option<&str> {
        const NAMES: [&str; 4] = [
            "nvidia.com/gpu.product",
            "cloud.google.com/gke-accelerator",
            "k8s.amazonaws.com/accelerator",
            "karpenter.k8s.aws/instance-gpu-name",
        ];
        self.first(&NAMES).map(|name| name.trim_end_matches("-SHARED"))
    }

    /// Returns true if a label shows that the node has an NVIDIA GPU.
    fn has_gpu(&self) -> bool {
        self.0.iter().any(|(name, value)| shows_gpu(name, value))
    }
}

/// Returns true if a label with this value exists only on nodes with an NVIDIA GPU.
fn shows_gpu(name: &str, value: &str) -> bool {
    /// Facts of GPU feature discovery, which adds these labels only if there is a GPU.
    const FACTS: [&str; 7] = ["count", "family", "machine", "memory", "present", "product", "replicas"];
    const MAKER: [&str; 5] = [
        "cloud.google.com/gke-accelerator",
        "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-manufacturer",
        "kubernetes.azure.com/accelerator",
        "accelerator",
    ];
    if let Some(fact) = name.strip_prefix("nvidia.com/gpu.") {
        return FACTS.contains(&fact) && !["", "0", "false"].contains(&value);
    }
    if let Some(device) =
        name.strip_prefix("feature.node.kubernetes.io/pci-").and_then(|at| at.strip_suffix(".present"))
    {
        // The optional class of a display or 3D controller, the vendor, and optional other fields.
        let device = ["0300_", "0302_"].iter().find_map(|class| device.strip_prefix(class)).unwrap_or(device);
        return value == "true" && device.split('_').next() == Some("10de");
    }
    MAKER.contains(&name) && value.starts_with("nvidia")
}

/// Returns true if containers can use NVIDIA GPUs, or parts of them, through this resource.
fn is_container_gpu(resource: &str) -> bool {
    /// Resources of device plugins that share NVIDIA GPUs.
    const SHARED: [&str; 4] = ["aliyun.com/gpu-", "tencent.com/vcuda-", "volcano.sh/gpu-", "volcano.sh/vgpu-"];
    match resource.strip_prefix("nvidia.com/") {
        Some(name) => ["gpu", "vgpu", "mig-"].iter().any(|start| name.starts_with(start)) || name.ends_with(".shared"),
        None => SHARED.iter().any(|start| resource.starts_with(start)),
    }
}

/// Returns true if the resource is an NVIDIA GPU for containers or for virtual machines. The latter have the name of the
/// product. Network devices also have names with `nvidia.com/`.
fn is_gpu(resource: &str) -> bool {
    const NETWORK: [&str; 10] =
        ["hostdev", "rdma", "sriov", "roce", "infiniband", "mellanox", "mlnx", "bluefield", "nic", "vf"];
    let other =
        resource.strip_prefix("nvidia.com/").is_some_and(|name| !NETWORK.iter().any(|word| name.contains(word)));
    is_container_gpu(resource) || other
}

impl Resources {
    /// Returns the largest quantity of these resources; `None` if there are none.
    fn quantity(&self, is_meant: fn(&str) -> bool) -> Option<u64> {
        let meant = self.0.iter().filter(|(name, _)| is_meant(name));
        // A quantity in another format counts as one.
        meant.map(|(_, value)| value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(1)).max()
    }
}

impl Node {
    /// Reads the machine from the labels of GPU feature discovery (the older names are a fallback), the labels of cloud
    /// providers, and the offered resources. `None` if the node has no NVIDIA GPU.
    pub(super) fn machine(&self) -> Result<Option<Machine>, EntryError> {
        let name = self.metadata.name.as_deref().unwrap_or("without a name");
        let machine = match self.kind.as_deref() {
            Some("Node") => self.labelled_machine(),
            Some(kind) => Err(EntryError::kind(format!("expected a Node, found {kind:?}"))),
            None => Err(EntryError::kind("kind: expected Node, found nothing")),
        };
        machine.map_err(|why| EntryError::Node(name.to_owned(), Box::new(why)))
    }

    fn labelled_machine(&self) -> Result<Option<Machine>, EntryError> {
        let (labels, status) = (&self.metadata.labels, &self.status);
        let own = labels.compute_capability()?;
        let offers_gpu = [&status.allocatable, &status.capacity].iter().any(|list| list.quantity(is_gpu) > Some(0));
        if own.is_none() && !labels.has_gpu() && !offers_gpu {
            return Ok(None);
        }
        let product = labels.product();
        let release = labels.version(
            &[
                "nvidia.com/cuda.driver-version.major",
                "nvidia.com/cuda.driver-version.minor",
                "nvidia.com/cuda.driver-version.revision",
            ],
            &["nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"],
        )?;
        let cuda = labels.version(
            &["nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime-version.minor"],
            &["nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor"],
        )?;
        let processor = match labels.first(&["kubernetes.io/arch"]) {
            Some("amd64") => Some("x86_64"),
            Some("arm64") => Some("aarch64"),
            _ => None,
        };
        let system = labels.first(&["kubernetes.io/os"]).unwrap_or("linux");
        let mut facts = HostFacts {
            name: self.metadata.name.clone(),
            platform: processor.map(|processor| format!("{processor}-{system}")),
            release: release.as_deref().map(parse_driver_release).transpose()?,
            cuda: cuda.as_deref().map(parse_cuda_version).transpose()?,
            ..HostFacts::default()
        };
        let cc = own.or_else(|| tables::gpu_cc(product?));
        facts.add_gpu(Gpu { cc, name: product.map(str::to_owned), ..Gpu::default() })?;
        let offered =
            status.allocatable.quantity(is_container_gpu).or_else(|| status.capacity.quantity(is_container_gpu));
        // All GPUs are withdrawn from programs: CUDA cannot use them in their state, or they are not healthy.
        let invalid = product.is_some_and(|product| product.ends_with("MIG-INVALID"));
        facts.gpus_unknown = invalid || offered == Some(0) || labels.first(&["nvidia.com/gpu.count"]) == Some("0");
        Ok(Some(facts.into_machine()))
    }
}
