//! Facts that all readers of fleet lists share, and the reader for the CSV output of nvidia-smi.

use std::io::BufRead;

use crate::host::machine::{Driver, Gpu, GpuState, Machine, cc_of_pci_device, parse_release};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

use super::read_line;
use crate::host::formats::{Column, parse_columns};

/// Maximum size of the log of one machine, in bytes.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// Maximum number of GPUs in one machine.
pub(super) const GPUS: usize = 1024;
/// Maximum length of a CSV line, in bytes.
const LONGEST_ROW: u64 = 64 * 1024;
/// Exclusive upper limit for the length of a GPU name, in bytes.
const LONGEST_NAME: usize = 200;

/// Returns the device of a PCI id such as `1EB810DE`: device and vendor, each with four hexadecimal digits.
pub(super) fn device_id(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let (device, vendor) = digits.split_at_checked(4)?;
    vendor.eq_ignore_ascii_case("10DE").then(|| u16::from_str_radix(device, 16).ok())?
}

/// Returns true if the text is a placeholder that nvidia-smi prints for an unavailable value. In its CSV output, each
/// placeholder is in brackets.
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
    /// Set if it is not known which of the GPUs a program can use.
    pub(super) gpus_unknown: bool,
}

impl HostFacts {
    /// Adds a GPU. Equal GPUs are stored once, because they get the same verdict.
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
        // The driver reported these GPUs.
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

/// Parses a compute capability such as `8.0` or `8.0.0`.
pub(super) fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let mut numbers = text.split('.');
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

/// Reads the CSV output of nvidia-smi, one line for each GPU. If a column names the host, consecutive lines of one host
/// are one machine.
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
                        Some(host) => format!("driver_version: differs from the other GPUs of {host}"),
                        None => "driver_version: differs from the other GPUs of the machine; add a column `host` if these are several machines".to_owned(),
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
        return Err(format!(
            "expected {} values, one for each column of the first line, found {}",
            columns.len(),
            values.len()
        ));
    }
    let (mut facts, mut gpu) = (HostFacts::default(), Gpu::default());
    for (column, value) in columns.iter().zip(values) {
        let (Some(column), false) = (column, is_absent(value)) else { continue };
        match column {
            Column::Host => facts.name = Some(value.to_owned()),
            Column::Driver => facts.release = Some(parse_driver_release(value)?),
            Column::Cuda => facts.cuda = Some(parse_cuda_version(value)?),
            Column::Name => gpu.name = Some(value.to_owned()),
            Column::PciId => gpu.cc = gpu.cc.or_else(|| device_id(value).and_then(cc_of_pci_device)),
            Column::Cc => {
                let wrong = || format!("compute_cap: expected a compute capability such as 8.6, found {value:?}");
                gpu.cc = Some(parse_cc(value).ok_or_else(wrong)?);
            }
            // No column shows if the GPU has MIG instances.
            Column::Mig => facts.gpus_unknown |= value == "Enabled",
            Column::ComputeMode if value == "Prohibited" => gpu.state = Some(GpuState::ComputeProhibited),
            Column::ResetRequired if value == "Yes" => gpu.state = Some(GpuState::ResetRequired),
            Column::ComputeMode | Column::ResetRequired => {}
        }
    }
    gpu.cc = gpu.cc.or_else(|| tables::gpu_cc(gpu.name.as_deref()?));
    facts.add_gpu(gpu)?;
    Ok(facts)
}
