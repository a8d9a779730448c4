//! The formats of a fleet's list, and what its readers share; the reader of nvidia-smi's CSV.

use std::io::BufRead;

use cudaguard::machine::{Driver, Gpu, Machine, cc_of_pci_device, parse_release};
use cudaguard::tables;
use cudaguard::version::{CudaVersion, DriverRelease};

use super::{read_line, smi_xml};

/// The log of one machine may be this large.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// A machine may have this many GPUs.
pub(super) const GPUS: usize = 1024;
/// A line of CSV may be this long.
const LONGEST_ROW: u64 = 64 * 1024;
/// A GPU's name is shorter than this.
const LONGEST_NAME: usize = 200;

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
    /// `kubectl get nodes -o json`, or `resourceslices`; their items one by one; an array of those or of host files.
    Json,
    /// Output of another program, or of another form, that is not read: what it is, and which command to use.
    Other(&'static str),
}

impl InputKind {
    /// Detects the format from the beginning of an input, which has no byte order mark.
    pub(super) fn detect(beginning: &[u8]) -> Self {
        let first = beginning.trim_ascii_start();
        let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        let has = |word: &str| first.windows(word.len()).any(|window| window == word.as_bytes());
        match first.first() {
            Some(b'<') => Self::Xml,
            Some(b'[') => Self::Json,
            Some(b'{') if has("\"apiVersion\"") => Self::Json,
            Some(b'{') if (has("\"metadata\"") || has("\"items\"")) && !has("\"driver\"") => Self::Json,
            Some(b'{') if line.len() == 1 => Self::HostFile,
            Some(b'{') | None => Self::Lines,
            Some(0xff | 0xfe) => Self::Other("is UTF-16, as a shell of Windows writes it; expected UTF-8"),
            _ if is_header(line) => Self::Csv,
            _ if xml_start(beginning).is_some() => Self::Xml,
            _ => {
                let known = OTHERS.iter().find(|(words, _)| words.iter().all(|word| has(word)));
                match known {
                    Some((_, what)) => Self::Other(what),
                    None if is_row(line) => Self::Other(WITHOUT_COLUMNS),
                    None => Self::Lines,
                }
            }
        }
    }
}

/// Where the XML begins: a command line and warnings may come before it.
pub(super) fn xml_start(beginning: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in beginning.split_inclusive(|byte| *byte == b'\n') {
        let indent = line.len() - line.trim_ascii_start().len();
        if ["<?xml", "<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log"]
            .iter()
            .any(|tag| line[indent..].starts_with(tag.as_bytes()))
        {
            return Some(at + indent);
        }
        at += line.len();
    }
    None
}

/// Output that is not read: words that it contains, and what it is and which command to use.
const OTHERS: [(&[&str], &str); 11] = [
    (&["NVIDIA-SMI has failed"], "says that nvidia-smi failed there: no driver answered it"),
    (
        &["Failed to initialize NVML"],
        "says that nvidia-smi failed there: the driver does not work, or its library and its kernel module are of two releases",
    ),
    (
        &["Unable to determine the device handle"],
        "says that nvidia-smi failed there: a GPU does not answer, and it must be reset or the machine rebooted",
    ),
    (&["couldn't communicate with the NVIDIA driver"], "says that nvidia-smi failed there: no driver answered it"),
    (
        &["nvidia-smi", "not found"],
        "says that there is no nvidia-smi: no driver is installed there, or it is not in PATH",
    ),
    (&["No devices were found"], "says that nvidia-smi found no GPU there"),
    (
        &["is not a valid field to query"],
        "says that nvidia-smi does not know a column: before driver 510 there is no compute_cap, and name tells it",
    ),
    (&["NVSMI LOG"], "is what nvidia-smi -q writes for people; expected that of -q -x"),
    (
        &["NVIDIA-SMI "],
        "is what nvidia-smi writes for people; expected that of -q -x, or of --query-gpu=name,compute_cap,driver_version --format=csv",
    ),
    (
        &["GPU ", "UUID: "],
        "is what nvidia-smi -L writes for people; expected that of -q -x, or of --query-gpu=name,compute_cap,driver_version --format=csv",
    ),
    (&["apiVersion:"], "is YAML; expected what kubectl get … -o json writes"),
];

const WITHOUT_COLUMNS: &str =
    "is CSV without the line that names its columns; expected nvidia-smi's --format=csv, without noheader";

/// Columns that are understood, under every name that they have.
const COLUMNS: [(&str, Column); 13] = [
    ("host", Column::Host),
    ("hostname", Column::Host),
    ("node", Column::Host),
    ("name", Column::Name),
    ("gpu_name", Column::Name),
    ("compute_cap", Column::Cc),
    ("driver_version", Column::Driver),
    ("cuda_version", Column::Cuda),
    ("pci.device_id", Column::PciId),
    ("mig.mode.current", Column::Mig),
    ("compute_mode", Column::ComputeMode),
    ("gpu_reset_status.reset_required", Column::ResetRequired),
    ("reset_status.reset_required", Column::ResetRequired),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Host,
    Name,
    Cc,
    Driver,
    Cuda,
    PciId,
    Mig,
    ComputeMode,
    ResetRequired,
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
pub(super) fn is_absent(text: &str) -> bool {
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

/// The facts of a machine that is being read.
#[derive(Default)]
pub(super) struct HostFacts {
    pub(super) name: Option<String>,
    pub(super) platform: Option<String>,
    pub(super) release: Option<DriverRelease>,
    pub(super) cuda: Option<CudaVersion>,
    pub(super) gpus: Vec<Gpu>,
    /// It is not known which of the GPUs a program can use.
    pub(super) gpus_unknown: bool,
}

impl HostFacts {
    /// Adds a GPU. Equal ones are kept once, because the verdict on them is the same.
    pub(super) fn add_gpu(&mut self, mut gpu: Gpu) -> Result<(), String> {
        if self.gpus.len() == GPUS {
            return Err(format!("more than {GPUS} GPUs in one machine"));
        }
        gpu.name = gpu.name.filter(|name| name.len() < LONGEST_NAME);
        if !self.gpus.contains(&gpu) {
            self.gpus.push(gpu);
        }
        Ok(())
    }

    pub(super) fn into_machine(self) -> Machine {
        let (user, cuda) = (self.release, self.cuda);
        let driver =
            (user.is_some() || cuda.is_some()).then(|| Driver { user, kernel: user, cuda, ..Driver::default() });
        // These lists come from the driver.
        let gpus = self.gpus.into_iter().map(|gpu| Gpu { listed: true, ..gpu }).collect();
        let gpus = Some(gpus).filter(|_| !self.gpus_unknown);
        Machine { name: self.name, platform: self.platform, driver, gpus, ..Machine::default() }
    }
}

pub(super) fn parse_driver_release(text: &str) -> Result<DriverRelease, String> {
    parse_release(text)
        .ok_or_else(|| format!("driver_version: expected a driver's release such as 535.261.03, found {text:?}"))
}

pub(super) fn parse_cuda_version(text: &str) -> Result<CudaVersion, String> {
    text.parse().map_err(|_| format!("cuda_version: expected a CUDA version such as 12.4, found {text:?}"))
}

/// `8.0`, `8.0.0`.
pub(super) fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let mut numbers = text.split('.');
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

/// nvidia-smi's CSV: a line for each GPU; where a column names the host, lines of one host that follow each other are one machine.
pub(super) fn read_csv(
    input: &mut dyn BufRead,
    take: &mut dyn FnMut(usize, Result<Machine, String>) -> bool,
) -> std::io::Result<()> {
    let (mut columns_of, mut machine, mut first) = (None, None::<HostFacts>, 0);
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        let line = read_line(input, LONGEST_ROW, &mut bytes)?;
        number += 1;
        if !line.is_whole {
            if !take(number, Err("is longer than 64 KiB: not a line of nvidia-smi".to_owned())) {
                return Ok(());
            }
            continue;
        }
        let length = line.length;
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
                if !take(first, Ok(facts.into_machine())) {
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
                    facts.gpus_unknown |= next.gpus_unknown;
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
        let (Some(column), false) = (column, is_absent(value)) else { continue };
        match column {
            Column::Host => facts.name = Some(value.to_owned()),
            Column::Driver => facts.release = Some(parse_driver_release(value)?),
            Column::Cuda => facts.cuda = Some(parse_cuda_version(value)?),
            Column::Name => gpu.name = Some(value.to_owned()),
            Column::PciId => gpu.cc = gpu.cc.or_else(|| smi_xml::device_id(value).and_then(cc_of_pci_device)),
            Column::Cc => {
                let wrong = || format!("compute_cap: expected a compute capability such as 8.6, found {value:?}");
                gpu.cc = Some(parse_cc(value).ok_or_else(wrong)?);
            }
            // Whether it has MIG instances is in no column.
            Column::Mig => facts.gpus_unknown |= value == "Enabled",
            Column::ComputeMode if value == "Prohibited" => gpu.visible = Some(false),
            Column::ResetRequired if value == "Yes" => gpu.visible = Some(false),
            Column::ComputeMode | Column::ResetRequired => {}
        }
    }
    gpu.cc = gpu.cc.or_else(|| tables::gpu_cc(gpu.name.as_deref()?));
    facts.add_gpu(gpu)?;
    Ok(facts)
}
