//! Reader for the XML that `nvidia-smi -q -x` writes: one log for each machine, any number of them in one input.

use std::io::{self, BufRead, Read};

use crate::host::formats::{Column, InputKind};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::entry_error::{EntryError, GPUS};
use super::inputs::{HostFacts, LARGEST, SmiGpu, is_absent, parse_cuda_version, parse_driver_release};
use super::shorten;

/// The root element of a log.
const ROOT: &str = "nvidia_smi_log";
/// Maximum nesting of the elements.
const DEEPEST: usize = 64;

/// Reader that counts the lines that it passes on, and fails if one log is larger than [`LARGEST`].
struct LogInput<'a> {
    input: &'a mut dyn BufRead,
    line: usize,
    left: usize,
}

impl Read for LogInput<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let buffer = self.fill_buf()?;
        let length = buffer.len().min(bytes.len());
        bytes[..length].copy_from_slice(&buffer[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for LogInput<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffer = self.input.fill_buf()?;
        if self.left == 0 && !buffer.is_empty() {
            let why = "is larger than 16 MiB for one machine: expected the output of nvidia-smi -q -x";
            return Err(io::Error::other(why));
        }
        Ok(&buffer[..buffer.len().min(self.left)])
    }

    fn consume(&mut self, length: usize) {
        // The bytes are buffered, so this reads nothing.
        if let Ok(buffer) = self.input.fill_buf() {
            self.line += buffer.iter().take(length).filter(|byte| **byte == b'\n').count();
        }
        self.left -= length.min(self.left);
        self.input.consume(length);
    }
}

/// Returns the column of the CSV output that has the value of this element of a GPU.
fn column(path: &[String]) -> Option<Column> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["product_name"] => Some(Column::Name),
        ["pci", "pci_device_id"] => Some(Column::PciId),
        ["mig_mode", "current_mig"] => Some(Column::Mig),
        ["compute_mode"] => Some(Column::ComputeMode),
        ["gpu_reset_status", "reset_required"] => Some(Column::ResetRequired),
        ["gpu_recovery_action"] => Some(Column::RecoveryAction),
        ["fabric", "state"] => Some(Column::FabricState),
        _ => None,
    }
}

/// Returns why this text outside the logs may concern another machine: it is neither a command line nor a warning. The
/// index is that of its line.
pub(super) fn stray_text(text: &str) -> Option<(usize, EntryError)> {
    let is_remark = |line: &str| {
        let warning = line.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("warning"));
        line.trim().is_empty() || line.contains("nvidia-smi -") || warning
    };
    let (at, line) = text.lines().enumerate().find(|(_, line)| !is_remark(line))?;
    let why = match InputKind::detect(line.as_bytes()) {
        InputKind::Other(what) => EntryError::kind(what),
        _ => unexpected(line.trim()),
    };
    Some((at, why))
}

fn unexpected(found: &str) -> EntryError {
    EntryError::kind(format!("expected {ROOT}, as in the output of nvidia-smi -q -x, found {}", shorten(found, 40)))
}

/// Reads logs, and text outside them, until `take` returns false. `line` is the number of the first line of the input.
/// `take` gets the number of the last line of a log. An error contains the line number.
pub(super) fn read(
    input: &mut dyn BufRead,
    line: usize,
    take: &mut dyn FnMut(usize, Result<HostFacts, EntryError>) -> bool,
) -> Result<(), (usize, EntryError)> {
    let mut reader = Reader::from_reader(LogInput { input, line, left: LARGEST });
    let (mut buffer, mut path) = (Vec::new(), Vec::<String>::new());
    let (mut facts, mut gpu, mut machines) = (HostFacts::default(), None::<SmiGpu>, 0_usize);
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let line = reader.get_ref().line;
        match event.map_err(|error| (line, EntryError::kind(error.to_string())))? {
            Event::Start(tag) => {
                let name = tag.name().as_ref().to_owned();
                if path.is_empty() && name != ROOT {
                    return Err((line, unexpected(&name)));
                }
                if path.len() == DEEPEST {
                    return Err((line, EntryError::kind("is nested too deeply for the output of nvidia-smi")));
                }
                if path.len() == 1 && name == "gpu" {
                    if facts.listed == GPUS {
                        return Err((line, EntryError::TooManyGpus));
                    }
                    gpu = Some(SmiGpu::with_instances());
                }
                if let (Some(gpu), "mig_device", 3) = (&mut gpu, &*name, path.len()) {
                    gpu.add_instance();
                }
                path.push(name);
            }
            Event::End(_) => {
                path.pop();
                if path.len() == 1
                    && let Some(gpu) = gpu.take()
                {
                    facts.add_smi_gpu(gpu).map_err(|why| (line, why))?;
                }
                if path.is_empty() {
                    let facts = std::mem::take(&mut facts);
                    if facts.release.is_none() && facts.gpus.is_empty() {
                        let why = "driver_version: expected a driver's release, found none, and no gpu";
                        return Err((line, EntryError::kind(why)));
                    }
                    (machines, reader.get_mut().left) = (machines + 1, LARGEST);
                    if !take(line, Ok(facts)) {
                        return Ok(());
                    }
                }
            }
            Event::Text(text) => {
                let whole: &str = &text;
                let text = whole.trim();
                match (&path[..], &mut gpu) {
                    ([], _) => {
                        if let Some((at, why)) = stray_text(whole)
                            && !take(line - whole.matches('\n').count() + at, Err(why))
                        {
                            return Ok(());
                        }
                    }
                    ([_, _, inside @ ..], Some(gpu)) => {
                        gpu.set(column(inside), text).map_err(|why| (line, why))?;
                    }
                    _ if is_absent(text) => {}
                    ([_, name], _) if name == "driver_version" => {
                        facts.release = Some(parse_driver_release(text).map_err(|why| (line, why))?);
                    }
                    ([_, name], _) if name == "cuda_version" => {
                        facts.cuda = Some(parse_cuda_version(text).map_err(|why| (line, why))?);
                    }
                    _ => {}
                }
            }
            Event::Eof if path.is_empty() && machines > 0 => return Ok(()),
            Event::Eof => return Err((line, EntryError::kind(format!("ends too early: expected the end of {ROOT}")))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::GpuState;

    fn logs(text: &str) -> Result<Vec<HostFacts>, (usize, EntryError)> {
        let mut all = Vec::new();
        let mut push = |_, facts: Result<_, _>| {
            all.extend(facts);
            true
        };
        read(&mut text.as_bytes(), 1, &mut push).map(|()| all)
    }

    fn log(gpu: &str) -> String {
        format!("<{ROOT}><driver_version>550.54.14</driver_version><gpu id=\"0\">{gpu}</gpu></{ROOT}>\n")
    }

    #[test]
    fn device_id_precedes_name() {
        for (id, name, cc) in [
            ("1CB310DE", "Quadro P400", Some((6, 1))),
            ("0x218410DE", "Graphics Device", Some((7, 5))),
            ("FFFF10DE", "NVIDIA A40", Some((8, 6))),
            ("1CB31002", "Graphics Device", None),
            ("", "Graphics Device", None),
        ] {
            let text =
                log(&format!("<product_name>{name}</product_name><pci><pci_device_id>{id}</pci_device_id></pci>"));
            let logs = logs(&text).expect("a log");
            assert_eq!(logs[0].gpus[0].cc, cc, "{id}");
        }
    }

    #[test]
    fn unusable_gpu_is_not_visible() {
        let mig = |devices: &str| {
            format!("<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>{devices}</mig_devices>")
        };
        for (state, why) in [
            (mig("None"), Some("MIG is enabled and it has no MIG instance")),
            (mig("<mig_device><index>0</index></mig_device>"), None),
            ("<compute_mode>Prohibited</compute_mode>".to_owned(), Some("its compute mode is Prohibited")),
            ("<compute_mode>Exclusive_Process</compute_mode>".to_owned(), None),
            (
                "<gpu_reset_status><reset_required>Yes</reset_required></gpu_reset_status>".to_owned(),
                Some("it must be reset"),
            ),
            ("<gpu_reset_status><reset_required>No</reset_required></gpu_reset_status>".to_owned(), None),
        ] {
            let logs = logs(&log(&state)).expect("a log");
            let expected: Vec<String> = why.iter().map(|why| format!("no program can use GPU 0: {why}")).collect();
            assert_eq!(logs[0].remarks, expected, "{state}");
            assert_eq!(logs[0].gpus[0].state.map(GpuState::describe), why, "{state}");
        }
    }

    #[test]
    fn errors_name_their_line() {
        let text = log("") + "\n" + &log("") + "<html>";
        assert_eq!(logs(&text).err().map(|(line, _)| line), Some(4));
        let text = format!("<{ROOT}>\n<driver_version>new</driver_version></{ROOT}>");
        assert_eq!(logs(&text).err().map(|(line, _)| line), Some(2));
        assert_eq!(logs(&(log("") + &log(""))).map(|logs| logs.len()), Ok(2));
    }

    #[test]
    fn text_between_logs_is_reported() {
        let strays = |between: &str| {
            let (text, mut found) = (log("") + between + &log("") + between, Vec::new());
            let mut push = |line, facts: Result<HostFacts, EntryError>| {
                found.extend(facts.err().map(|why| (line, why)));
                true
            };
            read(&mut text.as_bytes(), 1, &mut push).expect("logs");
            found
        };
        for (between, lines) in [
            ("", &[][..]),
            ("\n$ nvidia-smi -q -x\n", &[]),
            ("Warning: Permanently added 'b' (ED25519) to the list of known hosts.\n", &[]),
            ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n\n", &[2, 5]),
            ("\nssh: connect to host b port 22: Connection refused\n", &[3, 6]),
            ("{\"driver\": {\"user\": \"535\"}}\n", &[2, 4]),
        ] {
            let found = strays(between);
            assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), lines, "{found:?}");
        }
    }
}
