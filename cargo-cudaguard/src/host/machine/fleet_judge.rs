//! Checks many machines against few files. Files are read once, each machine's line once, and machines with equal facts
//! are checked once. Memory use does not depend on the length of the list.

use std::collections::HashMap;
use std::rc::Rc;

pub use super::change::Change;
use super::{Components, Machine, ParseError, UnknownKeys};
use crate::binary::examined;
use crate::verdict::Verdict;
use cudaguard::internal::finding::Finding;

/// Maximum number of cached machines. A fleet has few different ones; a fleet with more is checked more slowly.
const KINDS: usize = 1024;
/// Machines with longer lines or more GPUs are not cached, to bound the size of the cache.
const LONGEST: usize = 16 * 1024;
const MOST_GPUS: usize = 64;

/// The result for one file on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOutcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The findings.
    pub findings: Vec<Finding>,
    /// If it is refused, the fewest changes that fix it, if there are any.
    pub change: Option<Change>,
}

/// The results for all files on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// The result of each file, in their order.
    pub each: Vec<FleetOutcome>,
    /// If a file is refused, the fewest changes after which none is, if there are any.
    pub change: Option<Change>,
}

/// Judges many machines. `T` is the result of the caller's function, which is called once for each cached machine.
pub struct Fleet<T, F> {
    judge: F,
    known: HashMap<Machine, Rc<T>>,
    unknown_keys: UnknownKeys,
}

impl<T, F: Fn(&Machine) -> T> Fleet<T, F> {
    /// Creates a fleet whose machines this function judges.
    pub fn new(judge: F) -> Self {
        Self { judge, known: HashMap::new(), unknown_keys: UnknownKeys::default() }
    }

    /// Checks the machine on one line. Returns its label, if it has one, and the value derived from the outcomes.
    pub fn judge_line(&mut self, line: &str) -> Result<(Option<String>, Rc<T>), ParseError> {
        let (name, machine, unknown_keys) = Machine::read_for_judging(line)?;
        self.unknown_keys.extend(unknown_keys);
        let made = if line.len() > LONGEST { Rc::new((self.judge)(&machine)) } else { self.judge_machine(machine).1 };
        Ok((name, made))
    }

    /// Returns the top-level keys of all host files that are ignored.
    pub fn unknown_keys(&self) -> &UnknownKeys {
        &self.unknown_keys
    }

    /// Checks a parsed machine. It should not have facts that the checks do not use, because they defeat the cache.
    pub fn judge_machine(&mut self, mut machine: Machine) -> (Option<String>, Rc<T>) {
        let name = machine.name.take();
        if let Some(known) = self.known.get(&machine) {
            return (name, known.clone());
        }
        let made = Rc::new((self.judge)(&machine));
        if machine.gpus.as_ref().is_some_and(|gpus| gpus.len() > MOST_GPUS) {
            return (name, made);
        }
        if self.known.len() == KINDS {
            self.known.clear();
        }
        self.known.insert(machine, made.clone());
        (name, made)
    }
}

/// Checks these files on a machine.
pub fn check_files(files: &[Components], machine: &Machine) -> Outcomes {
    let mut each = Vec::new();
    for file in files {
        let findings = file.check_on(machine, "that machine");
        let verdict = examined::verdict(&findings, &file.not_examined);
        let refused = verdict == Verdict::Refused;
        let change = if refused { Change::fewest_changes(&[file], machine, &findings) } else { None };
        each.push(FleetOutcome { verdict, findings, change });
    }
    let mut refused = each.iter().filter(|outcome| outcome.verdict == Verdict::Refused);
    let change = match (refused.next(), refused.next()) {
        (None, _) => None,
        (Some(alone), None) if files.len() == 1 => alone.change,
        _ => {
            let findings: Vec<Finding> = each.iter().flat_map(|outcome| outcome.findings.iter().cloned()).collect();
            Change::fewest_changes(&files.iter().collect::<Vec<_>>(), machine, &findings)
        }
    };
    Outcomes { each, change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudaguard::internal::finding::Code;
    use cudaguard::internal::manifest::{Component, GpuCoverage, Manifest, PtxFallback, Requirement};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;
    use cudaguard::internal::version::{CudaVersion, DriverRelease};

    fn cudart_13() -> Components {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        manifest.requires = vec![Requirement::Driver {
            cuda: CudaVersion::new(13, 0),
            release: DriverRelease::new(580, 65, 6),
            because: "libcudart 13.0".to_owned(),
        }];
        Components { manifests: vec![manifest], ..Components::default() }
    }

    #[test]
    fn equal_hosts_are_checked_once() {
        let mut fleet = Fleet::new(|machine| check_files(&[cudart_13()], machine));
        let line = |name: &str, driver: &str, uuid: &str| {
            format!(
                r#"{{"name": "{name}", "driver": {{"user": "{driver}", "kernel": "{driver}", "library": "/{name}"}}, "gpus": [{{"cc": "9.0", "uuid": "{uuid}"}}]}}"#
            )
        };
        let mut judge = |name: &str, driver: &str, uuid: &str| {
            let line = line(name, driver, uuid);
            let (label, outcomes) = fleet.judge_line(&line).unwrap();
            let outcome = &outcomes.each[0];
            let codes: Vec<Code> = outcome.findings.iter().map(|finding| finding.code).collect();
            (label.unwrap(), outcome.verdict, codes)
        };
        assert_eq!(judge("a", "580.65.06", "GPU-1"), ("a".to_owned(), Verdict::Runs, vec![]));
        assert_eq!(judge("b", "580.65.06", "GPU-2"), ("b".to_owned(), Verdict::Runs, vec![]));
        assert_eq!(judge("c", "535.261.03", "GPU-3"), ("c".to_owned(), Verdict::Refused, vec![Code::DriverTooOld]));
        assert_eq!(fleet.known.len(), 2);
        assert!(fleet.judge_line("{").is_err());
    }

    fn driver(branch: u32) -> Change {
        Change { driver: Some(branch), ..Change::default() }
    }

    /// The machine needs a newer driver, and code for a GPU that the file has none for.
    #[test]
    fn several_changes_are_combined() {
        let mut asks = cudart_13();
        let gpu = |from, to, by| Requirement::Gpu {
            from,
            to,
            by,
            code: String::new(),
            cuda: None,
            release: None,
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        };
        asks.manifests[0]
            .requires
            .extend([gpu((0, 0), Some((7, 255)), GpuCoverage::Nothing), gpu((8, 0), None, GpuCoverage::Cubin)]);
        let mut fleet = Fleet::new(|machine| check_files(&[asks.clone(), cudart_13()], machine));
        let mut changes = |driver: &str, cc: &str| {
            let line = format!(
                r#"{{"driver": {{"user": "{driver}", "kernel": "{driver}"}}, "gpus": [{{"cc": "{cc}", "uuid": "GPU-1"}}]}}"#
            );
            let (_, outcomes) = fleet.judge_line(&line).unwrap();
            let words = |change: Option<Change>| change.map(Change::describe).unwrap_or_default();
            [words(outcomes.each[0].change), words(outcomes.each[1].change), words(outcomes.change)]
        };
        let both = "driver 580 or newer, and code for 7.5 (sm_75)";
        assert_eq!(changes("535.261.03", "7.5"), [both, "driver 580 or newer", both]);
        assert_eq!(changes("580.65.06", "7.5"), ["code for 7.5 (sm_75)", "", "code for 7.5 (sm_75)"]);
        assert_eq!(changes("535.261.03", "8.0"), ["driver 580 or newer"; 3]);
        assert_eq!(changes("580.65.06", "8.0"), [""; 3]);
    }

    #[test]
    fn single_sufficient_change_is_found() {
        let mut fleet = Fleet::new(|machine| check_files(&[cudart_13()], machine));
        let mut change = |driver: &str| {
            let line = format!(r#"{{"driver": {driver}, "gpus": [{{"cc": "9.0"}}]}}"#);
            fleet.judge_line(&line).unwrap().1.each[0].change
        };
        assert_eq!(change(r#"{"user": "535.261.03", "kernel": "535.261.03"}"#), Some(driver(580)));
        assert_eq!(change(r#"{"user": "580.95.05", "kernel": "580.95.05"}"#), None);
        // The driver is new enough: its kernel module must be reloaded.
        assert_eq!(change(r#"{"user": "590.44.01", "kernel": "580.95.05"}"#), None);
        // The driver lists these GPUs, which a newer one may no longer support.
        let mut of = |gpu: &str, driver: &str| {
            let line = format!(r#"{{"driver": {{"user": "{driver}", "kernel": "{driver}"}}, "gpus": [{gpu}]}}"#);
            fleet.judge_line(&line).unwrap().1.each[0].change
        };
        assert_eq!(of(r#"{"cc": "7.0", "uuid": "GPU-1"}"#, "535.261.03"), Some(driver(580)));
        assert_eq!(of(r#"{"cc": "3.7", "uuid": "GPU-1"}"#, "470.256.02"), None);
        assert_eq!(of(r#"{"cc": "12.0"}"#, "550.54.14"), Some(driver(580)));
    }

    #[test]
    fn host_memory_is_bounded() {
        let mut fleet = Fleet::new(|machine| check_files(&[cudart_13()], machine));
        for number in 0..3 * KINDS {
            let line = format!(
                r#"{{"driver": {{"user": "600.{number}", "kernel": "600.{number}"}}, "gpus": [{{"cc": "9.0"}}]}}"#
            );
            assert_eq!(fleet.judge_line(&line).unwrap().1.each[0].verdict, Verdict::Runs, "{number}");
            assert!(fleet.known.len() <= KINDS);
        }
    }
}
