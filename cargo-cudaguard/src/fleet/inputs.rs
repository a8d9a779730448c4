//! What people have of their machines: nvidia-smi's XML and CSV, and what kubectl says of nodes and of resource slices.
//!
//! Each is read a machine at a time. What is no such thing is refused, with the place and the field.

use std::cell::Cell;
use std::fmt;
use std::io::{BufRead, Read};
use std::rc::Rc;

use cudaguard::machine::{Driver, Gpu, Machine, parse_release};
use cudaguard::tables;
use cudaguard::version::CudaVersion;
use quick_xml::events::Event;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// So much of one machine is read; nobody's is larger.
const LARGEST: u64 = 16 * 1024 * 1024;
/// So many GPUs of one machine.
const GPUS: usize = 1024;

/// What an input looks like by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A host file on each line.
    Lines,
    /// One host file over several lines.
    HostFile,
    /// `nvidia-smi -q -x`.
    Xml,
    /// `nvidia-smi --query-gpu=… --format=csv`.
    Csv,
    /// `kubectl get nodes -o json`, or `resourceslices`.
    Kubectl,
    /// What others write for people, or in another form: it is not read, and this is what to ask for instead.
    Other(&'static str),
}

impl InputKind {
    /// By what can be seen of it without reading on.
    pub(super) fn detect(first: &[u8]) -> Self {
        let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
        let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        let has = |word: &[u8]| first.windows(word.len()).any(|window| window == word);
        match first.first() {
            Some(b'<') => Self::Xml,
            Some(b'{') if has(b"\"apiVersion\"") => Self::Kubectl,
            Some(b'{') if line.len() == 1 => Self::HostFile,
            Some(b'{') | None => Self::Lines,
            Some(0xff | 0xfe) => Self::Other("is UTF-16, as a shell of Windows writes it; expected UTF-8"),
            _ if is_header(line) => Self::Csv,
            _ => FOR_PEOPLE
                .iter()
                .find(|(words, _)| has(words.as_bytes()))
                .map(|(_, what)| Self::Other(what))
                .or_else(|| is_row(line).then_some(Self::Other(WITHOUT_COLUMNS)))
                .unwrap_or(Self::Lines),
        }
    }
}

/// What others write for people, or where they fail: words that stand in it, and what to ask for instead.
const FOR_PEOPLE: [(&str, &str); 6] = [
    ("NVIDIA-SMI has failed", "says that nvidia-smi failed there: no driver answered it"),
    ("No devices were found", "says that nvidia-smi found no GPU there"),
    (
        "is not a valid field to query",
        "says that nvidia-smi does not know a column: before driver 510 there is no compute_cap, and name tells it",
    ),
    ("NVSMI LOG", "is what nvidia-smi -q writes for people; expected that of -q -x"),
    (
        "NVIDIA-SMI ",
        "is what nvidia-smi writes for people; expected that of -q -x, or of --query-gpu=name,compute_cap,driver_version --format=csv",
    ),
    ("apiVersion:", "is YAML; expected what kubectl get … -o json writes"),
];

const WITHOUT_COLUMNS: &str =
    "is CSV without the line that names its columns; expected nvidia-smi's --format=csv, without noheader";

/// Columns that are understood, under every name that they have.
const COLUMNS: [(&str, Column); 8] = [
    ("host", Column::Host),
    ("hostname", Column::Host),
    ("node", Column::Host),
    ("name", Column::Name),
    ("gpu_name", Column::Name),
    ("compute_cap", Column::Cc),
    ("driver_version", Column::Driver),
    ("cuda_version", Column::Cuda),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Host,
    Name,
    Cc,
    Driver,
    Cuda,
}

fn parse_columns(line: &str) -> Vec<Option<Column>> {
    let known = |name: &str| COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column);
    // `memory.total [MiB]`
    line.split(',').map(|name| known(name.split('[').next().unwrap_or_default().trim())).collect()
}

fn is_header(line: &[u8]) -> bool {
    let known = std::str::from_utf8(line).map(parse_columns).unwrap_or_default();
    known.contains(&Some(Column::Driver)) || known.contains(&Some(Column::Cc)) || known.contains(&Some(Column::Name))
}

/// Whether it is a row of nvidia-smi's CSV: one of its values is a driver's release.
fn is_row(line: &[u8]) -> bool {
    let release =
        |value: &str| value.contains('.') && parse_release(value.trim()).is_some_and(|release| release.branch > 99);
    std::str::from_utf8(line).is_ok_and(|line| line.split(',').count() > 1 && line.split(',').any(release))
}

/// What nvidia-smi says of a fact that it cannot tell: in its CSV in brackets, whatever the reason.
fn is_absent(text: &str) -> bool {
    const REASONS: [&str; 8] = [
        "N/A",
        "Not Supported",
        "Not Found",
        "Unknown Error",
        "Insufficient Permissions",
        "GPU is lost",
        "GPU requires reset",
        "ERR!",
    ];
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    text.is_empty() || bare.is_some() || REASONS.iter().any(|reason| text.eq_ignore_ascii_case(reason))
}

/// Facts of a machine, on the way.
#[derive(Default)]
struct HostFacts {
    name: Option<String>,
    platform: Option<String>,
    release: Option<String>,
    cuda: Option<String>,
    gpus: Vec<Gpu>,
}

impl HostFacts {
    fn add_gpu(&mut self, gpu: Gpu) -> Result<(), String> {
        if self.gpus.len() == GPUS {
            return Err(format!("more than {GPUS} GPUs in one machine"));
        }
        // One of each kind says all that is judged.
        if !self.gpus.contains(&gpu) {
            self.gpus.push(gpu);
        }
        Ok(())
    }

    fn into_machine(self) -> Result<Machine, String> {
        let user = self.release.as_deref().map(|text| {
            parse_release(text).ok_or_else(|| {
                format!("driver_version: expected a driver's release such as 535.261.03, found {text:?}")
            })
        });
        let cuda = self.cuda.as_deref().map(cuda_version);
        let (user, cuda) = (user.transpose()?, cuda.transpose()?);
        let driver =
            (user.is_some() || cuda.is_some()).then(|| Driver { user, kernel: user, cuda, ..Driver::default() });
        // Who writes these lists has asked the driver.
        let gpus = Some(self.gpus.into_iter().map(|gpu| Gpu { listed: true, ..gpu }).collect());
        Ok(Machine { name: self.name, platform: self.platform, driver, gpus, ..Machine::default() })
    }
}

fn cuda_version(text: &str) -> Result<CudaVersion, String> {
    text.parse().map_err(|_| format!("cuda_version: expected a CUDA version such as 12.4, found {text:?}"))
}

/// `8.0`, `8.0.0`.
fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let mut numbers = text.split('.');
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

fn gpu_from_name(name: &str) -> Gpu {
    Gpu { name: Some(name.to_owned()), cc: tables::gpu_cc(name), ..Gpu::default() }
}

/// `nvidia-smi -q -x`: a machine, or several, one after the other. An error names the line.
pub(super) fn read_xml(input: &mut dyn BufRead) -> Result<Vec<Machine>, (usize, String)> {
    let mut text = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut text).map_err(|error| (0, error.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err((
            0,
            "is larger than 16 MiB: expected what nvidia-smi -q -x writes, a file for each machine".to_owned(),
        ));
    }
    let line = |at: u64| {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
        text[..at].split(|byte| *byte == b'\n').count()
    };
    let mut reader = quick_xml::Reader::from_reader(text.as_slice());
    let mut machines = Vec::new();
    let (mut path, mut facts, mut gpu): (Vec<String>, HostFacts, Option<Gpu>) =
        (Vec::new(), HostFacts::default(), None);
    // The line of the fact that stood last, under its name.
    let mut places = FactLines::default();
    loop {
        let event = reader.read_event().map_err(|error| (line(reader.error_position()), error.to_string()))?;
        let here = line(reader.buffer_position());
        match event {
            Event::Start(tag) => {
                let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
                if path.is_empty() && name != "nvidia_smi_log" {
                    return Err((
                        here,
                        format!("expected nvidia_smi_log, as nvidia-smi -q -x writes it, found {name}"),
                    ));
                }
                if path.len() == 64 {
                    return Err((here, "is nested too deeply: not of nvidia-smi".to_owned()));
                }
                if path.len() == 1 && name == "gpu" {
                    gpu = Some(Gpu::default());
                }
                path.push(name);
            }
            Event::End(_) => {
                path.pop();
                if path.len() == 1 {
                    if let Some(gpu) = gpu.take() {
                        facts.add_gpu(gpu).map_err(|why| (here, why))?;
                    }
                }
                if path.is_empty() {
                    let whole = std::mem::take(&mut facts);
                    if whole.release.is_none() && whole.gpus.is_empty() {
                        return Err((
                            here,
                            "driver_version: expected a driver's release, found none, and no gpu".to_owned(),
                        ));
                    }
                    let of = |why: String| (places.line_of_fact(&why).unwrap_or(here), why);
                    machines.push(whole.into_machine().map_err(of)?);
                }
            }
            Event::Text(found) => {
                let found = String::from_utf8_lossy(&found).trim().to_owned();
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                match path[..] {
                    _ if is_absent(&found) => {}
                    ["nvidia_smi_log", "driver_version"] => {
                        facts.release = Some(found);
                        places.release = here;
                    }
                    ["nvidia_smi_log", "cuda_version"] => {
                        facts.cuda = Some(found);
                        places.cuda = here;
                    }
                    ["nvidia_smi_log", "gpu", "product_name"] => gpu = Some(gpu_from_name(&found)),
                    _ => {}
                }
            }
            Event::Eof if path.is_empty() && !machines.is_empty() => return Ok(machines),
            Event::Eof => {
                return Err((here, "ends too early: expected the end of nvidia_smi_log".to_owned()));
            }
            _ => {}
        }
    }
}

/// The lines in which a machine's facts stand.
#[derive(Default)]
struct FactLines {
    release: usize,
    cuda: usize,
}

impl FactLines {
    /// The line of the fact that a mistake names.
    fn line_of_fact(&self, why: &str) -> Option<usize> {
        let known = [("driver_version", self.release), ("cuda_version", self.cuda)];
        known.into_iter().find(|(name, _)| why.starts_with(name)).map(|(_, line)| line)
    }
}

/// nvidia-smi's CSV: a line for each GPU; where a column names the host, lines of one host that follow each other are one machine.
pub(super) fn read_csv(
    input: &mut dyn BufRead,
    take: &mut dyn FnMut(usize, Result<Machine, String>) -> bool,
) -> std::io::Result<()> {
    let (mut columns_of, mut machine, mut first) = (None, None::<HostFacts>, 0);
    let mut number = 0;
    loop {
        let mut bytes = Vec::new();
        let length = (&mut *input).take(64 * 1024).read_until(b'\n', &mut bytes)?;
        number += 1;
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_start_matches('\u{feff}').trim();
        if length > 0 && line.is_empty() {
            continue;
        }
        let Some(known) = &columns_of else {
            if length == 0 {
                return Ok(());
            }
            columns_of = Some(parse_columns(line));
            continue;
        };
        let row = if length == 0 { None } else { Some(parse_row(known, line)) };
        let flush = match (&machine, &row) {
            (Some(facts), Some(Ok(next))) => facts.name != next.name,
            (Some(_), None) => true,
            _ => false,
        };
        if flush {
            if let Some(facts) = machine.take() {
                if !take(first, facts.into_machine()) {
                    return Ok(());
                }
            }
        }
        match row {
            None => return Ok(()),
            Some(Err(why)) => {
                if !take(number, Err(why)) {
                    return Ok(());
                }
            }
            Some(Ok(next)) => match &mut machine {
                Some(facts) if facts.release != next.release || facts.cuda != next.cuda => {
                    let why = match &facts.name {
                        Some(host) => format!("driver_version: another than the other GPUs of {host} have"),
                        None => "driver_version: another than the machine's other GPUs have; name the machines in a column `host`".to_owned(),
                    };
                    if !take(number, Err(why)) {
                        return Ok(());
                    }
                }
                Some(facts) => {
                    for gpu in next.gpus {
                        if let Err(why) = facts.add_gpu(gpu) {
                            take(number, Err(why));
                        }
                    }
                }
                None => (machine, first) = (Some(next), number),
            },
        }
    }
}

fn parse_row(columns: &[Option<Column>], line: &str) -> Result<HostFacts, String> {
    let values: Vec<&str> = line.split(',').map(str::trim).collect();
    if values.len() != columns.len() {
        return Err(format!("expected {} values, as the first line names them, found {}", columns.len(), values.len()));
    }
    let (mut facts, mut gpu) = (HostFacts::default(), Gpu::default());
    for (column, value) in columns.iter().zip(values) {
        let value = Some(value).filter(|value| !is_absent(value)).map(str::to_owned);
        match column {
            Some(Column::Host) => facts.name = value,
            Some(Column::Driver) => facts.release = value,
            Some(Column::Cuda) => facts.cuda = value,
            Some(Column::Name) => {
                gpu.cc = gpu.cc.or_else(|| tables::gpu_cc(value.as_deref()?));
                gpu.name = value;
            }
            Some(Column::Cc) => {
                if let Some(text) = value {
                    let wrong = || format!("compute_cap: expected a compute capability such as 8.6, found {text:?}");
                    gpu.cc = Some(parse_cc(&text).ok_or_else(wrong)?);
                }
            }
            None => {}
        }
    }
    facts.gpus.push(gpu);
    Ok(facts)
}

/// What becomes of an item of a list: a machine, nothing that has a GPU of NVIDIA's, or a mistake.
pub(super) type Item = Result<Option<Machine>, String>;

/// A list of kubectl's, an item at a time; the error is about the list as a whole.
pub(super) fn read_kubectl(input: &mut dyn BufRead, take: &mut dyn FnMut(usize, Item) -> bool) -> Result<(), String> {
    let left = Rc::new(Cell::new(LARGEST));
    let metered = Metered { input, left: left.clone() };
    let mut json = serde_json::Deserializer::from_reader(metered);
    let mut list = List { take, left, number: 0, stopped: false, seen: false };
    let done = (&mut list).deserialize(&mut json);
    match done {
        _ if list.stopped => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(()) if !list.seen => Err("has no items: expected what kubectl get nodes -o json writes".to_owned()),
        Ok(()) => json.end().map_err(|error| error.to_string()),
    }
}

/// A reader that ends in an error where one item goes on for ever.
struct Metered<'a> {
    input: &'a mut dyn BufRead,
    left: Rc<Cell<u64>>,
}

impl Read for Metered<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.left.get() == 0 {
            return Err(std::io::Error::other("one item is larger than 16 MiB"));
        }
        let length = self.input.read(bytes)?;
        self.left.set(self.left.get().saturating_sub(length as u64));
        Ok(length)
    }
}

struct List<'a> {
    take: &'a mut dyn FnMut(usize, Item) -> bool,
    left: Rc<Cell<u64>>,
    number: usize,
    stopped: bool,
    seen: bool,
}

impl<'de> DeserializeSeed<'de> for &mut List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what kubectl get nodes -o json, or resourceslices, writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // `kubectl get node gpu-7 -o json` writes the item by itself.
        let mut alone = serde_json::Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.left.set(LARGEST);
            if key == "items" {
                self.seen = true;
                map.next_value_seed(Items(self))?;
            } else if ["kind", "metadata", "spec"].contains(&key.as_str()) {
                alone.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let kind = alone.get("kind").and_then(Value::as_str);
        if !self.seen && matches!(kind, Some("Node" | "ResourceSlice")) {
            self.seen = true;
            self.number = 1;
            (self.take)(1, parse_item(&Value::Object(alone)));
        }
        Ok(())
    }
}

struct Items<'a, 'b>(&'a mut List<'b>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("items: an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Items(list) = self;
        while let Some(value) = items.next_element::<Value>()? {
            list.left.set(LARGEST);
            list.number += 1;
            if !(list.take)(list.number, parse_item(&value)) {
                list.stopped = true;
                return Err(A::Error::custom("nobody reads any more"));
            }
        }
        Ok(())
    }
}

fn parse_item(value: &Value) -> Item {
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    let found = match value.get("kind").and_then(Value::as_str) {
        Some("Node") => parse_node(value),
        Some("ResourceSlice") => parse_resource_slice(value),
        Some(kind) => Err(format!("expected a Node or a ResourceSlice, found {kind:?}")),
        None => Err("kind: expected Node or ResourceSlice, found nothing".to_owned()),
    };
    found.map_err(|why| format!("{name}: {why}"))
}

fn string_field<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("{field}: expected a text in quotes, found {value}"))
}

/// By the labels of GPU feature discovery; the older names stand in for the newer.
fn parse_node(value: &Value) -> Item {
    let label = |names: &[&str]| -> Result<Option<(String, String)>, String> {
        for name in names {
            if let Some(found) = value.pointer("/metadata/labels").and_then(|labels| labels.get(*name)) {
                let field = format!("metadata.labels[\"{name}\"]");
                return Ok(Some((string_field(found, &field)?.to_owned(), field)));
            }
        }
        Ok(None)
    };
    let number = |names: &[&str]| -> Result<Option<String>, String> {
        let Some((found, field)) = label(names)? else { return Ok(None) };
        if found.is_empty() || found.len() > 9 || !found.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("{field}: expected a whole number, found {found:?}"));
        }
        Ok(Some(found))
    };
    let major = number(&["nvidia.com/gpu.compute.major"])?;
    let minor = number(&["nvidia.com/gpu.compute.minor"])?;
    let Some(major) = major else { return Ok(None) };
    let both = format!("{major}.{}", minor.as_deref().unwrap_or("0"));
    let cc = parse_cc(&both)
        .ok_or_else(|| format!("nvidia.com/gpu.compute.major: expected a compute capability, found {both:?}"))?;
    let parts = |newer: [&str; 3], older: [&str; 3]| -> Result<Option<String>, String> {
        let mut all = Vec::new();
        for (newer, older) in newer.iter().zip(older).filter(|(newer, _)| !newer.is_empty()) {
            // A driver of two numbers has an empty revision.
            match label(&[newer, older])? {
                Some((found, _)) if found.is_empty() && all.len() == 2 => {}
                Some(_) => all.extend(number(&[newer, older])?),
                None if all.len() == 2 => {}
                None => return Ok(None),
            }
        }
        Ok(Some(all.join(".")))
    };
    let release = parts(
        [
            "nvidia.com/cuda.driver-version.major",
            "nvidia.com/cuda.driver-version.minor",
            "nvidia.com/cuda.driver-version.revision",
        ],
        ["nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"],
    )?;
    let cuda = parts(
        ["nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime-version.minor", ""],
        ["nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor", ""],
    )?;
    let platform = label(&["kubernetes.io/arch"])?.and_then(|(arch, _)| match arch.as_str() {
        "amd64" => Some("x86_64-linux".to_owned()),
        "arm64" => Some("aarch64-linux".to_owned()),
        _ => None,
    });
    let name = value.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    let gpu = Gpu { cc: Some(cc), ..Gpu::default() };
    HostFacts { name, platform, release, cuda, gpus: vec![gpu] }.into_machine().map(Some)
}

/// By the attributes of NVIDIA's DRA driver; those of other drivers are passed over.
fn parse_resource_slice(value: &Value) -> Item {
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
        let version = |name: &str| -> Result<Option<String>, String> {
            let field = format!("spec.devices[{at}].attributes.{name}.version");
            let whole = format!("gpu.nvidia.com/{name}");
            let found = attributes.and_then(|all| all.get(name).or_else(|| all.get(&whole)));
            let Some(found) = found.and_then(|attribute| attribute.get("version")) else { return Ok(None) };
            string_field(found, &field).map(|text| Some(text.to_owned()))
        };
        let Some(own) = version("cudaComputeCapability")? else { continue };
        let wrong = || {
            format!("spec.devices[{at}].attributes.cudaComputeCapability.version: expected a version, found {own:?}")
        };
        facts.add_gpu(Gpu { cc: Some(parse_cc(&own).ok_or_else(wrong)?), ..Gpu::default() })?;
        facts.release = facts.release.or(version("driverVersion")?);
        facts.cuda = facts.cuda.or(version("cudaDriverVersion")?);
    }
    if facts.gpus.is_empty() { Ok(None) } else { facts.into_machine().map(Some) }
}
