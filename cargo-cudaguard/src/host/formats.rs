//! Detects the formats of texts that describe machines by their first bytes.

use memchr::memmem;
use std::io::{self, BufRead, Read};

const LONGEST_UTF16: u64 = 64 << 20;

/// Number of bytes at the beginning of an input that suffice to detect its format.
pub(crate) const OPENING: usize = 4096;

/// Format of an input, detected by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Host files, one on each line.
    Lines,
    /// A host file on several lines.
    HostFile,
    /// Output of `nvidia-smi -q -x`.
    Xml,
    /// Output of `nvidia-smi --query-gpu=… --format=csv`.
    Csv,
    /// Output of `kubectl get nodes -o json`.
    Json,
    /// Unsupported output of another program or in another format: a description, and the command to use instead.
    Other(&'static str),
}

impl InputKind {
    /// Detects the format from the beginning of an input, which has no byte order mark.
    pub(crate) fn detect(beginning: &[u8]) -> Self {
        let first = beginning.trim_ascii_start();
        let line = first.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
        match first.first() {
            Some(b'<') => Self::Xml,
            Some(b'{') if memmem::find(first, b"\"apiVersion\"").is_some() => Self::Json,
            Some(b'{') if line.len() == 1 => Self::HostFile,
            Some(b'{') | None => Self::Lines,
            _ if is_header(line) => Self::Csv,
            _ if xml_start(beginning).is_some() => Self::Xml,
            _ if OTHERS.iter().any(|word| memmem::find(first, word.as_bytes()).is_some()) => Self::Other(OTHER),
            _ => Self::Lines,
        }
    }
}

/// Returns the input in UTF-8 if it starts with the byte order mark of UTF-16: Windows PowerShell writes the output of programs
/// to files in this encoding.
///
/// # Errors
/// If the input cannot be read, or is longer than `LONGEST_UTF16`.
pub(crate) fn decode_utf16<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let unit: fn([u8; 2]) -> u16 = match input.fill_buf()? {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Ok(Box::new(input)),
    };
    let mut bytes = Vec::new();
    input.take(LONGEST_UTF16 + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_UTF16 {
        return Err(io::Error::other("is UTF-16 and longer than 64 MiB; expected UTF-8"));
    }
    let units: Vec<u16> = bytes.chunks_exact(2).skip(1).map(|pair| unit([pair[0], pair[1]])).collect();
    Ok(Box::new(io::Cursor::new(String::from_utf16(&units).map_err(|_| io::Error::other("is not valid UTF-16"))?)))
}

/// Returns the start of the XML. A command line and warnings may precede it.
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

/// Words in messages and in other outputs of nvidia-smi.
const OTHERS: [&str; 4] = ["NVIDIA-SMI", "NVSMI LOG", "NVML", "No devices were found"];

const OTHER: &str = "is a message or another output of nvidia-smi; expected that of nvidia-smi -q -x, or of nvidia-smi \
                     --query-gpu=name,compute_cap,driver_version --format=csv";

/// Supported columns, with all their names.
const COLUMNS: [(&str, Column); 15] = [
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
    ("gpu_recovery_action", Column::RecoveryAction),
    ("fabric.state", Column::FabricState),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// A column of the CSV output of nvidia-smi.
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
    RecoveryAction,
    FabricState,
}

/// Returns the columns of a header; `None` for each unknown column.
pub(crate) fn parse_columns(line: &str) -> Vec<Option<Column>> {
    // Removes the unit, as in `memory.total [MiB]`.
    let names = line.split(',').map(|name| name.split('[').next().unwrap_or_default().trim());
    names.map(|name| COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)).collect()
}

fn is_header(line: &[u8]) -> bool {
    let known = std::str::from_utf8(line).map(parse_columns).unwrap_or_default();
    known.contains(&Some(Column::Driver)) || known.contains(&Some(Column::Cc)) || known.contains(&Some(Column::Name))
}

/// Describes a text that `--fleet` accepts or recognizes and `--host` does not accept.
pub(crate) fn format_of_fleet(text: &str) -> Option<&'static str> {
    match InputKind::detect(&text.as_bytes()[..text.len().min(OPENING)]) {
        InputKind::Xml => Some("is the output of nvidia-smi -q -x: pass it with --fleet; --host expects one host file"),
        InputKind::Csv => Some("is CSV of nvidia-smi: pass it with --fleet; --host expects one host file"),
        InputKind::Json => Some("is a list of nodes: pass it with --fleet; --host expects one host file"),
        InputKind::Other(what) => Some(what),
        InputKind::Lines | InputKind::HostFile => None,
    }
}
