//! Reader for JSON values: lists of nodes and resource slices from Kubernetes, single ones (`jq -c '.items[]'`), and
//! arrays of them or of host files (`jq -s`).

use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, Read};
use std::rc::Rc;

use crate::host::machine::{Gpu, Machine};
use cudaguard::internal::tables;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::inputs::{HostFacts, parse_cc, parse_cuda_version, parse_driver_release};

/// Maximum size of an item, in bytes. The Kubernetes API server stores objects of at most 1.5 MiB.
const LARGEST: u64 = 4 * 1024 * 1024;

/// A machine, `None` for a node or slice without an NVIDIA GPU, or the reason why it cannot be read.
pub(super) type Item = Result<Option<Found>, String>;

/// The content of an item.
pub(super) enum Found {
    Machine(Box<Machine>),
    /// The text of a host file.
    HostFile(String),
}

/// Reads the values item by item until `take` returns false. An error concerns the entire input.
pub(super) fn read(input: &mut dyn BufRead, take: &mut dyn FnMut(usize, Item) -> bool) -> Result<(), String> {
    let left = Rc::new(Cell::new(LARGEST));
    let metered = Metered { input, left: left.clone() };
    let mut json = serde_json::Deserializer::from_reader(metered);
    let mut items = Items { take, left, number: 0, stopped: false, seen: false };
    loop {
        let read = TopLevel(&mut items).deserialize(&mut json);
        match read {
            _ if items.stopped => return Ok(()),
            Err(error) => return Err(error.to_string()),
            Ok(()) if !items.seen => {
                return Err("has no items: expected the output of kubectl get nodes -o json".to_owned());
            }
            // Another value may follow. The next iteration reports invalid text.
            Ok(()) => {
                if json.end().is_ok() {
                    return Ok(());
                }
            }
        }
    }
}

/// A reader that fails if one item is larger than [`LARGEST`].
struct Metered<'a> {
    input: &'a mut dyn BufRead,
    left: Rc<Cell<u64>>,
}

impl Read for Metered<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.left.get() == 0 {
            return Err(std::io::Error::other("one item is larger than 4 MiB"));
        }
        let length = self.input.read(bytes)?;
        self.left.set(self.left.get().saturating_sub(length as u64));
        Ok(length)
    }
}

/// State of the reader: the callback for items, and their count.
struct Items<'a> {
    take: &'a mut dyn FnMut(usize, Item) -> bool,
    left: Rc<Cell<u64>>,
    number: usize,
    stopped: bool,
    seen: bool,
}

impl Items<'_> {
    fn add<E: serde::de::Error>(&mut self, value: &Value) -> Result<(), E> {
        self.left.set(LARGEST);
        (self.number, self.seen) = (self.number + 1, true);
        self.stopped = !(self.take)(self.number, parse_item(value));
        // This error also stops the JSON parser.
        if self.stopped { Err(E::custom("the output is closed")) } else { Ok(()) }
    }
}

/// Visitor for a list, a single node or slice, or an array.
struct TopLevel<'a, 'b>(&'a mut Items<'b>);

impl<'de> DeserializeSeed<'de> for TopLevel<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output of kubectl get nodes -o json, or of kubectl get resourceslices -o json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(items) = self;
        let (mut alone, mut list) = (Map::new(), false);
        items.left.set(LARGEST);
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                items.left.set(LARGEST);
                (items.seen, list) = (true, true);
                map.next_value_seed(Array(items))?;
            } else if ["kind", "metadata", "spec", "status"].contains(&key.as_str()) {
                alone.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let kind = alone.get("kind").and_then(Value::as_str);
        let single = match kind {
            Some(kind) => !kind.ends_with("List"),
            None => alone.contains_key("metadata"),
        };
        if single && !list { items.add(&Value::Object(alone)) } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        self.0.seen = true;
        self.0.left.set(LARGEST);
        Array(self.0).visit_seq(items)
    }
}

struct Array<'a, 'b>(&'a mut Items<'b>);

impl<'de> DeserializeSeed<'de> for Array<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Array<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items: an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(value) = items.next_element::<Value>()? {
            self.0.add(&value)?;
        }
        Ok(())
    }
}

fn parse_item(value: &Value) -> Item {
    if ["driver", "gpus", "platform", "revision"].iter().any(|key| value.get(key).is_some()) {
        return Ok(Some(Found::HostFile(value.to_string())));
    }
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    let found = match value.get("kind").and_then(Value::as_str) {
        Some("Node") => parse_node(value),
        Some("ResourceSlice") => parse_resource_slice(value),
        Some(kind) => Err(format!("expected a Node or a ResourceSlice, found {kind:?}")),
        None if value.pointer("/spec/driver").is_some() => parse_resource_slice(value),
        None if value.get("metadata").is_some() => parse_node(value),
        None => Err("kind: expected Node or ResourceSlice, found nothing".to_owned()),
    };
    found
        .map(|machine| machine.map(|machine| Found::Machine(Box::new(machine))))
        .map_err(|why| format!("{name}: {why}"))
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("{field}: expected a string, found {value}"))
}

/// The labels of a node.
struct Labels<'a>(Option<&'a Value>);

impl<'a> Labels<'a> {
    /// Returns the first of these labels that the node has, and the field that contains it.
    fn first(&self, names: &[&str]) -> Result<Option<(&'a str, String)>, String> {
        for name in names {
            if let Some(found) = self.0.and_then(|labels| labels.get(*name)) {
                let field = format!("metadata.labels[\"{name}\"]");
                return Ok(Some((text(found, &field)?, field)));
            }
        }
        Ok(None)
    }

    fn get(&self, name: &str) -> Result<Option<&'a str>, String> {
        Ok(self.first(&[name])?.map(|(text, _)| text))
    }

    fn number(&self, names: &[&str]) -> Result<Option<&'a str>, String> {
        let Some((found, field)) = self.first(names)? else { return Ok(None) };
        if found.is_empty() || found.len() > 9 || !found.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("{field}: expected a whole number, found {found:?}"));
        }
        Ok(Some(found))
    }

    /// Returns a version that has one label for each part. The newer label names are tried first; the third part may be
    /// missing or empty.
    fn version(&self, newer: &[&str], older: &[&str]) -> Result<Option<String>, String> {
        let mut all = Vec::new();
        for (newer, older) in newer.iter().zip(older) {
            match self.first(&[newer, older])? {
                Some((found, _)) if found.is_empty() && all.len() == 2 => {}
                Some(_) => all.extend(self.number(&[newer, older])?),
                None if all.len() == 2 => {}
                None => return Ok(None),
            }
        }
        Ok(Some(all.join(".")))
    }

    fn compute_capability(&self) -> Result<Option<(u8, u8)>, String> {
        let Some(major) = self.number(&["nvidia.com/gpu.compute.major"])? else { return Ok(None) };
        let both = format!("{major}.{}", self.number(&["nvidia.com/gpu.compute.minor"])?.unwrap_or("0"));
        let wrong = || format!("nvidia.com/gpu.compute.major: expected a compute capability, found {both:?}");
        parse_cc(&both).map(Some).ok_or_else(wrong)
    }

    /// Returns the name of the GPU from the node labels of NVIDIA, Google and Amazon.
    fn product(&self) -> Result<Option<&'a str>, String> {
        const NAMES: [&str; 4] = [
            "nvidia.com/gpu.product",
            "cloud.google.com/gke-accelerator",
            "k8s.amazonaws.com/accelerator",
            "karpenter.k8s.aws/instance-gpu-name",
        ];
        Ok(self.first(&NAMES)?.map(|(name, _)| name.trim_end_matches("-SHARED")))
    }

    /// Returns true if a label shows that the node has an NVIDIA GPU.
    fn has_gpu(&self) -> bool {
        let all = self.0.and_then(Value::as_object).into_iter().flatten();
        all.filter_map(|(name, value)| Some((name, value.as_str()?))).any(|(name, value)| shows_gpu(name, value))
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

/// Returns the largest quantity of the resources in a list of the node; `None` if it has no such resource.
fn quantity(node: &Value, list: &str, is_meant: fn(&str) -> bool) -> Option<u64> {
    // A quantity in another format counts as one.
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(1);
    let all = node.pointer(list)?.as_object()?.iter();
    all.filter(|(name, _)| is_meant(name)).map(|(_, value)| number(value)).max()
}

/// Reads a node from the labels of GPU feature discovery (the older names are a fallback), the labels of cloud
/// providers, and the offered resources.
fn parse_node(value: &Value) -> Result<Option<Machine>, String> {
    let labels = Labels(value.pointer("/metadata/labels"));
    let lists = ["/status/allocatable", "/status/capacity"];
    let own = labels.compute_capability()?;
    let has_gpu = || labels.has_gpu() || lists.iter().any(|list| quantity(value, list, is_gpu) > Some(0));
    if own.is_none() && !has_gpu() {
        return Ok(None);
    }
    let product = labels.product()?;
    let cc = own.or_else(|| tables::gpu_cc(product?));
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
    let processor = match labels.get("kubernetes.io/arch")? {
        Some("amd64") => Some("x86_64"),
        Some("arm64") => Some("aarch64"),
        _ => None,
    };
    let system = labels.get("kubernetes.io/os")?.unwrap_or("linux");
    let mut facts = HostFacts {
        name: value.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned),
        platform: processor.map(|processor| format!("{processor}-{system}")),
        release: release.as_deref().map(parse_driver_release).transpose()?,
        cuda: cuda.as_deref().map(parse_cuda_version).transpose()?,
        ..HostFacts::default()
    };
    facts.add_gpu(Gpu { cc, name: product.map(str::to_owned), ..Gpu::default() })?;
    let offered = lists.iter().find_map(|list| quantity(value, list, is_container_gpu));
    // All GPUs are withdrawn from programs: CUDA cannot use them in their state, or they are not healthy.
    let invalid = product.is_some_and(|product| product.ends_with("MIG-INVALID"));
    facts.gpus_unknown = invalid || offered == Some(0) || labels.get("nvidia.com/gpu.count")? == Some("0");
    Ok(Some(facts.into_machine()))
}

/// Reads a slice from the attributes of the NVIDIA DRA driver. Slices of other drivers have no GPU.
fn parse_resource_slice(value: &Value) -> Result<Option<Machine>, String> {
    if value.pointer("/spec/driver").and_then(Value::as_str) != Some("gpu.nvidia.com") {
        return Ok(None);
    }
    let name = value.pointer("/spec/nodeName").and_then(Value::as_str).map(str::to_owned);
    let mut facts = HostFacts { name, ..HostFacts::default() };
    let none = Vec::new();
    let devices = match value.pointer("/spec/devices") {
        None => &none,
        Some(devices) => devices.as_array().ok_or("spec.devices: expected an array")?,
    };
    for (at, device) in devices.iter().enumerate() {
        let attributes = device.get("attributes").or_else(|| device.pointer("/basic/attributes"));
        let attribute = |name: &str, of: &str| -> Result<Option<&str>, String> {
            let whole = format!("gpu.nvidia.com/{name}");
            let found = attributes.and_then(|all| all.get(name).or_else(|| all.get(&whole)));
            let Some(found) = found.and_then(|attribute| attribute.get(of)) else { return Ok(None) };
            text(found, &format!("spec.devices[{at}].attributes.{name}.{of}")).map(Some)
        };
        // A device that is passed through to virtual machines has no NVIDIA driver on this node.
        if attribute("type", "string")? == Some("vfio") {
            continue;
        }
        let own = attribute("cudaComputeCapability", "version")?;
        let product = attribute("productName", "string")?;
        let own = match own {
            Some(own) => Some(parse_cc(own).ok_or_else(|| {
                format!(
                    "spec.devices[{at}].attributes.cudaComputeCapability.version: expected a version, found {own:?}"
                )
            })?),
            None => tables::gpu_cc(product.unwrap_or_default()),
        };
        facts.add_gpu(Gpu { cc: own, name: product.map(str::to_owned), ..Gpu::default() })?;
        if let (None, Some(release)) = (facts.release, attribute("driverVersion", "version")?) {
            facts.release = Some(parse_driver_release(release)?);
        }
        if let (None, Some(cuda)) = (facts.cuda, attribute("cudaDriverVersion", "version")?) {
            facts.cuda = Some(parse_cuda_version(cuda)?);
        }
    }
    if facts.gpus.is_empty() { Ok(None) } else { Ok(Some(facts.into_machine())) }
}
