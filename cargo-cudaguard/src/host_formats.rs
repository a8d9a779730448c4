//! Formats of texts that describe machines: detected by their first bytes.

use cudaguard::machine::parse_release;

/// What an input is, it says in so many bytes.
pub(crate) const OPENING: usize = 4096;

/// What an input looks like by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
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
    pub(crate) fn detect(beginning: &[u8]) -> Self {
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
pub(crate) fn xml_start(beginning: &[u8]) -> Option<usize> {
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
/// A column of nvidia-smi's CSV.
pub(crate) enum Column {
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

/// The columns that a header names; `None` for each that is not understood.
pub(crate) fn parse_columns(line: &str) -> Vec<Option<Column>> {
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

/// What a text is, if it is something that `--fleet` reads or knows and `--host` does not.
pub(crate) fn format_of_fleet(text: &str) -> Option<&'static str> {
    match InputKind::detect(&text.as_bytes()[..text.len().min(OPENING)]) {
        InputKind::Xml => Some("is what nvidia-smi -q -x writes, which --fleet reads; --host reads one host file"),
        InputKind::Csv => Some("is CSV of nvidia-smi, which --fleet reads; --host reads one host file"),
        InputKind::Json => {
            Some("is a list of nodes, slices or host files, which --fleet reads; --host reads one host file")
        }
        InputKind::Other(what) => Some(what),
        InputKind::Lines | InputKind::HostFile => None,
    }
}
