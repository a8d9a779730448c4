//! Facts that all readers of fleet lists share, and the reader for the CSV output of nvidia-smi.

use std::io::BufRead;

use crate::host::machine::{Driver, Gpu, GpuState, Machine, cc_of_pci_device, parse_release};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

use super::entry_error::{EntryError, GPUS};
use super::{read_line, shorten};
use crate::host::formats::{Column, parse_columns};

/// Maximum size of the log of one machine, in bytes.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// Maximum length of a CSV line, in bytes.
const LONGEST_ROW: u64 = 64 * 1024;
/// Exclusive upper limit for the length of a GPU name, in bytes.
const LONGEST_NAME: usize = 200;
/// Maximum printed length of a value, in characters.
const LONGEST_VALUE: usize = 40;

/// Returns the device of a PCI id such as `1EB810DE`: device and vendor, each with four hexadecimal digits.
pub(super) fn device_id(text: &str) -> Option<u16> {
    let (device, vendor) = text.strip_prefix("0x").unwrap_or(text).split_at_checked(4)?;
    vendor.eq_ignore_ascii_case("10DE").then(|| u16::from_str_radix(device, 16).ok())?
}

/// Returns the text without the brackets in which nvidia-smi encloses placeholders in its CSV output.
fn without_brackets(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

fn is_one_of(text: &str, known: &[&str]) -> bool {
    known.iter().any(|known| text.eq_ignore_ascii_case(known))
}

/// Returns true if the text is a placeholder that nvidia-smi prints for a value that the GPU or the driver does not
/// have.
fn is_unsupported(text: &str) -> bool {
    const REASONS: [&str; 5] = ["", "N/A", "Not Supported", "Not Found", "Requested functionality has been deprecated"];
    is_one_of(without_brackets(text), &REASONS)
}

/// Returns true if the text is a placeholder that nvidia-smi prints for an unavailable value. In its CSV output, each
/// placeholder is in brackets.
pub(super) fn is_absent(text: &str) -> bool {
    const REASONS: [&str; 5] =
        ["Unknown Error", "Insufficient Permissions", "GPU is lost", "GPU requires reset", "ERR!"];
    is_unsupported(text) || without_brackets(text) != text || is_one_of(text, &REASONS)
}

/// A GPU whose elements or columns are being read.
#[derive(Default)]
pub(super) struct SmiGpu {
    gpu: Gpu,
    mig_enabled: bool,
    /// Number of MIG instances; `None`: the input does not list them.
    mig_instances: Option<usize>,
    /// The reason why it is unknown whether a program can use the GPU.
    unknown: Option<String>,
}

impl SmiGpu {
    /// Creates a GPU for an input that lists the MIG instances.
    pub(super) fn with_instances() -> Self {
        Self { mig_instances: Some(0), ..Self::default() }
    }

    pub(super) fn add_instance(&mut self) {
        self.mig_instances = self.mig_instances.map(|count| count + 1);
    }

    /// Adds a value; `column` is `None` if only errors in the value are of interest.
    pub(super) fn set(&mut self, column: Option<Column>, value: &str) -> Result<(), EntryError> {
        let bare = without_brackets(value);
        if is_one_of(bare, &["GPU is lost"]) {
            self.set_state(GpuState::Lost);
        } else if is_one_of(bare, &["GPU requires reset"]) {
            self.set_state(GpuState::ResetRequired);
        } else if let Some(column) = column {
            self.set_usability(column, value);
            if !is_absent(value) {
                self.set_identity(column, value)?;
            }
        }
        Ok(())
    }

    fn set_identity(&mut self, column: Column, value: &str) -> Result<(), EntryError> {
        match column {
            Column::Name => self.gpu.name = Some(value.to_owned()),
            // The PCI device id is exact. A product name may be unknown, or missing (`Graphics Device`).
            Column::PciId => self.gpu.cc = self.gpu.cc.or_else(|| device_id(value).and_then(cc_of_pci_device)),
            Column::Cc => {
                let expected = "a compute capability such as 8.6";
                let cc = parse_cc(value).ok_or_else(|| EntryError::value("compute_cap", expected, value))?;
                self.gpu.cc = Some(cc);
            }
            Column::Mig => self.mig_enabled = value == "Enabled",
            _ => {}
        }
        Ok(())
    }

    /// Adds the value of a column that shows whether programs can use the GPU. If the value is not known to allow it, the
    /// fact is unknown.
    fn set_usability(&mut self, column: Column, value: &str) {
        let (what, usable, unusable): (_, &[&str], _) = match column {
            Column::ComputeMode => (
                "compute mode",
                &["Default", "Exclusive_Process", "Exclusive_Thread"],
                Some(("Prohibited", GpuState::ComputeProhibited)),
            ),
            Column::Mig => ("MIG mode", &["Enabled", "Disabled"], None),
            Column::ResetRequired => ("reset status", &["No"], Some(("Yes", GpuState::ResetRequired))),
            // Programs can use the GPU in the two states before the GPU is drained.
            Column::RecoveryAction => {
                ("recovery action", &["None", "Drain P2P", "Drain and Reset"], Some(("Reset", GpuState::ResetRequired)))
            }
            // Until the fabric manager has completed it, cuInit returns 802.
            Column::FabricState => ("fabric state", &["Completed"], None),
            _ => return,
        };
        match unusable {
            Some((name, state)) if name == value => self.set_state(state),
            _ if usable.contains(&value) || is_unsupported(value) => {}
            _ => self.unknown = Some(format!("its {what} is {}", shorten(without_brackets(value), LONGEST_VALUE))),
        }
    }

    fn set_state(&mut self, state: GpuState) {
        self.gpu.state = self.gpu.state.max(Some(state));
    }
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
    /// Number of GPUs that were added with [`HostFacts::add_smi_gpu`].
    pub(super) listed: usize,
    /// The GPUs that no program can use, and those for which this is unknown, with the reasons.
    pub(super) remarks: Vec<String>,
}

impl HostFacts {
    /// Adds a GPU. Equal GPUs are stored once, because they get the same verdict.
    pub(super) fn add_gpu(&mut self, mut gpu: Gpu) -> Result<(), EntryError> {
        if self.gpus.len() == GPUS {
            return Err(EntryError::TooManyGpus);
        }
        gpu.name = gpu.name.filter(|name| name.len() < LONGEST_NAME);
        if !self.gpus.contains(&gpu) {
            self.gpus.push(gpu);
        }
        Ok(())
    }

    /// Adds a GPU after its values have been read.
    pub(super) fn add_smi_gpu(&mut self, smi: SmiGpu) -> Result<(), EntryError> {
        let SmiGpu { mut gpu, mig_enabled, mig_instances, mut unknown } = smi;
        match mig_instances {
            Some(0) if mig_enabled => gpu.state = gpu.state.max(Some(GpuState::MigWithoutInstances)),
            None if mig_enabled => {
                unknown = unknown.or(Some("MIG is enabled, and its MIG instances are not listed".to_owned()));
            }
            _ => {}
        }
        gpu.cc = gpu.cc.or_else(|| tables::gpu_cc(gpu.name.as_deref()?));
        let name = gpu.name.as_deref().map(|name| format!(" ({})", shorten(name, LONGEST_NAME))).unwrap_or_default();
        let label = format!("GPU {}{name}", self.listed);
        let remark = match (gpu.state, unknown) {
            (Some(state), _) => Some(format!("no program can use {label}: {}", state.describe())),
            (None, Some(why)) => {
                self.gpus_unknown = true;
                Some(format!("it is unknown whether a program can use {label}: {why}"))
            }
            (None, None) => None,
        };
        self.listed += 1;
        self.remarks.extend(remark.filter(|_| self.remarks.len() < GPUS));
        self.add_gpu(gpu)
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

pub(super) fn parse_driver_release(text: &str) -> Result<DriverRelease, EntryError> {
    let expected = "a driver's release such as 535.261.03";
    parse_release(text).ok_or_else(|| EntryError::value("driver_version", expected, text))
}

pub(super) fn parse_cuda_version(text: &str) -> Result<CudaVersion, EntryError> {
    text.parse().map_err(|_| EntryError::value("cuda_version", "a CUDA version such as 12.4", text))
}

/// Parses a compute capability such as `8.0` or `8.0.0`.
pub(super) fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let mut numbers = text.split('.');
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(numbers.next()?)?, number(numbers.next()?)?)).filter(|(major, _)| *major > 0)
}

/// Reads the CSV output of nvidia-smi, one line for each GPU. If a column names the host, consecutive lines of one host
/// are one machine.
pub(super) fn read_csv(
    input: &mut dyn BufRead,
    take: &mut dyn FnMut(usize, Result<HostFacts, EntryError>) -> bool,
) -> std::io::Result<()> {
    let (mut columns_of, mut machine, mut first) = (None, None::<HostFacts>, 0);
    let mut number = 0;
    let mut bytes = Vec::new();
    loop {
        let line = read_line(input, LONGEST_ROW, &mut bytes)?;
        number += 1;
        if !line.is_whole {
            if !take(number, Err(EntryError::kind("is longer than 64 KiB: not a line of nvidia-smi"))) {
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
            (Some(facts), Some(Ok((next, _)))) => facts.name != next.name,
            (Some(_), None) => true,
            _ => false,
        };
        if flush
            && let Some(facts) = machine.take()
            && !take(first, Ok(facts))
        {
            return Ok(());
        }
        match row {
            None => return Ok(()),
            Some(Err(why)) => {
                if !take(number, Err(why)) {
                    return Ok(());
                }
            }
            Some(Ok((next, _)))
                if machine.as_ref().is_some_and(|facts| (facts.release, facts.cuda) != (next.release, next.cuda)) =>
            {
                if !take(number, Err(EntryError::SeveralDrivers(next.name))) {
                    return Ok(());
                }
            }
            Some(Ok((next, gpu))) => {
                let facts = machine.get_or_insert_with(|| {
                    first = number;
                    next
                });
                if let Err(why) = facts.add_smi_gpu(gpu) {
                    take(number, Err(why));
                }
            }
        }
    }
}

/// Returns the facts of a line about its machine and about its GPU.
fn parse_row(columns: &[Option<Column>], line: &str) -> Result<(HostFacts, SmiGpu), EntryError> {
    let values: Vec<&str> = line.split(',').map(str::trim).collect();
    if values.len() != columns.len() {
        return Err(EntryError::Columns { expected: columns.len(), found: values.len() });
    }
    let (mut facts, mut gpu) = (HostFacts::default(), SmiGpu::default());
    for (column, value) in columns.iter().zip(values) {
        gpu.set(*column, value)?;
        match column {
            _ if is_absent(value) => {}
            Some(Column::Host) => facts.name = Some(value.to_owned()),
            Some(Column::Driver) => facts.release = Some(parse_driver_release(value)?),
            Some(Column::Cuda) => facts.cuda = Some(parse_cuda_version(value)?),
            _ => {}
        }
    }
    Ok((facts, gpu))
}
