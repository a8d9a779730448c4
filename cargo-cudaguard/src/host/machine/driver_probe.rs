//! Probes the real libcuda in a child process, so that a call that hangs or crashes costs a bounded time and the result
//! is "unknown".

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use cudaguard::internal::env::Env;
use cudaguard::internal::subprocess::{self, RunError};
use cudaguard::internal::version::CudaVersion;

/// The first argument that makes a program act as the probe child: see [`super::run_probe_child`].
pub(super) const MODE: &str = "__ask-libcuda";

/// Equal to the timeout of the shim: many GPUs without persistence mode take seconds to initialize.
const PATIENCE: Duration = Duration::from_secs(10);

/// The program that is started as the probe child and then calls [`super::run_probe_child`], usually the current
/// program.
#[derive(Clone, Debug)]
pub struct DriverProbe {
    program: PathBuf,
}

/// The answer of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DriverAnswers {
    /// Result of `cuDriverGetVersion`.
    pub(super) cuda: Option<CudaVersion>,
    /// Result of `cuInit`.
    pub(super) init: Option<u32>,
    /// Every GPU that the process may use; `None` if they were not listed.
    pub(super) gpus: Option<Vec<Device>>,
    /// The error message.
    pub(super) problem: Option<String>,
}

/// A GPU that the driver lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) cc: Option<(u8, u8)>,
    pub(super) pci: Option<String>,
    pub(super) uuid: Option<String>,
    pub(super) name: Option<String>,
    /// True if its compute mode is Prohibited.
    pub(super) prohibited: bool,
}

impl DriverProbe {
    /// Uses the current program, even if its file was replaced. Its `main` must begin with [`super::run_probe_child`].
    pub fn with_current_exe() -> Self {
        Self::with_program("/proc/self/exe".into())
    }

    /// Uses another program, whose `main` begins with [`super::run_probe_child`].
    pub fn with_program(program: PathBuf) -> Self {
        Self { program }
    }

    /// Probes the libcuda at this path, in this environment.
    pub(super) fn probe_library(&self, env: &Env, library: &Path) -> DriverAnswers {
        let (say, hear) = channel();
        let (program, library) = (self.program.clone(), library.to_owned());
        let variables = env.for_child().cloned();
        // Not joined: a child that hangs in the kernel cannot be killed, and joining it would hang as well.
        std::thread::spawn(move || {
            let seconds = PATIENCE.as_secs().to_string();
            let library = library.as_os_str();
            let arguments: [&std::ffi::OsStr; 3] = [MODE.as_ref(), seconds.as_ref(), library];
            let _ = say.send(subprocess::run_with_timeout(
                &program,
                &arguments,
                variables.as_ref(),
                PATIENCE + Duration::from_secs(2),
            ));
        });
        let answer = match hear.recv_timeout(PATIENCE + Duration::from_secs(4)) {
            Ok(answer) => answer,
            Err(_) => Err(RunError::Stuck),
        };
        match answer {
            Ok(answer) => parse_answer(&answer.out),
            Err(why) => {
                DriverAnswers { problem: Some(format!("the query of libcuda {why}")), ..DriverAnswers::default() }
            }
        }
    }
}

/// Parses the output of the child: one fact per line, so that facts before a crash are retained.
fn parse_answer(text: &str) -> DriverAnswers {
    let mut probe_answer = DriverAnswers::default();
    let mut ended = false;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "version" => probe_answer.cuda = rest.parse().ok().filter(|n| *n > 0).map(CudaVersion::from_int),
            "init" => probe_answer.init = rest.parse().ok(),
            "gpus" => probe_answer.gpus = Some(Vec::new()),
            "gpu" => probe_answer.gpus.get_or_insert_default().push(parse_device(rest)),
            "prohibited" => {
                let device = Device { prohibited: true, ..parse_device(rest) };
                probe_answer.gpus.get_or_insert_default().push(device);
            }
            "trouble" => probe_answer.problem = Some(rest.to_owned()),
            "end" => ended = true,
            _ => {}
        }
    }
    if !ended && probe_answer.problem.is_none() {
        let when = match (probe_answer.cuda, probe_answer.init) {
            (None, _) => "before it returned its version",
            (_, None) => "in cuInit",
            _ => "after cuInit",
        };
        probe_answer.problem = Some(format!("libcuda crashed or did not answer in time, {when}"));
        // An incomplete list is discarded.
        probe_answer.gpus = None;
    }
    probe_answer
}

/// Parses `8 0 0000:3b:00.0 GPU-… NVIDIA A100`, with `-` for unknown fields.
fn parse_device(text: &str) -> Device {
    let mut words = text.splitn(5, ' ');
    let [major, minor, pci, uuid, name] =
        std::array::from_fn(|_| words.next().filter(|word| !matches!(*word, "" | "-")).map(str::to_owned));
    let cc = major.zip(minor).and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    // No GPU has 0.0: the driver did not report it.
    Device { cc: cc.filter(|cc| *cc != (0, 0)), pci, uuid, name, prohibited: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_answers_are_parsed() {
        let whole = "version 12040\ninit 0\ngpus\nprohibited 8 0 0000:3b:00.0 GPU-1 NVIDIA A100-SXM4-40GB\ngpu - - - - -\nend\n";
        let probe_answer = parse_answer(whole);
        assert_eq!(
            (probe_answer.cuda, probe_answer.init, probe_answer.problem),
            (Some(CudaVersion::new(12, 4)), Some(0), None)
        );
        let text = |text: &str| Some(text.to_owned());
        let first = Device {
            cc: Some((8, 0)),
            pci: text("0000:3b:00.0"),
            uuid: text("GPU-1"),
            name: text("NVIDIA A100-SXM4-40GB"),
            prohibited: true,
        };
        assert_eq!(probe_answer.gpus, Some(vec![first, Device::default()]));
    }

    #[test]
    fn answers_before_crash_are_retained() {
        let probe_answer = parse_answer("version 12020\n");
        assert_eq!(
            (probe_answer.cuda, probe_answer.init, probe_answer.gpus),
            (Some(CudaVersion::new(12, 2)), None, None)
        );
        assert!(probe_answer.problem.unwrap().ends_with("in cuInit"));
        assert_eq!(parse_answer("version 0\ninit 34\nend\n").cuda, None, "a stub has no version");
        assert_eq!(
            parse_answer("version 12020\ninit 0\ngpus\ngpu 8 0").gpus,
            None,
            "a list that was broken off is none"
        );
        assert!(parse_answer("").problem.is_some());
        assert_eq!(parse_answer("trouble cannot be loaded: x\nend\n").problem.as_deref(), Some("cannot be loaded: x"));
    }

    #[test]
    fn unstartable_probe_is_reported() {
        let probe_answer = DriverProbe::with_program("/nowhere/asker".into())
            .probe_library(&Env::from_process(), Path::new("/nowhere/libcuda.so.1"));
        assert!(probe_answer.problem.unwrap().contains("cannot be started"));
    }
}
