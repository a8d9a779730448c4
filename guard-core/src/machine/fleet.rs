//! Many machines against few files: the files are read once, each machine's line once, and machines of one kind are judged
//! once. Nothing grows with the length of the list.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use super::json_reader::Mistake;
use super::{Components, Driver, Library, Machine};
use crate::finding::{Code, Finding, Verdict};
use crate::manifest::Requirement;
use crate::tables;
use crate::vendor::GUARDED;
use crate::version::{DriverRelease, Version};

/// So many kinds of machines are remembered; a fleet has few, and one that has more is judged all the same.
const KINDS: usize = 4096;

/// What becomes of one file on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Where it is refused: the one change after which it would not be, where there is such a one.
    pub change: Option<Change>,
}

/// One thing that somebody can do so that a machine takes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A driver of this branch, or a newer one.
    Driver(u32),
    /// This release of the guarded library, or a newer one of its major.
    Library(Version),
    /// Code for this compute capability.
    Code((u8, u8)),
}

impl Change {
    /// `driver 550 or newer`.
    pub fn in_words(self) -> String {
        match self {
            Self::Driver(branch) => format!("driver {branch} or newer"),
            Self::Library(version) => format!("{} {version} or newer", GUARDED.name),
            Self::Code((major, minor)) => format!("code for {major}.{minor} (sm_{major}{minor})"),
        }
    }

    /// Of the machine's side, the one after which the file is no longer refused, asked of the judge; else code for its newest
    /// GPU, where all that it lacks is that.
    fn of(file: &Components, machine: &Machine, findings: &[Finding]) -> Option<Self> {
        let taken = |machine: &Machine| Verdict::of(&file.on(machine, "that machine")) != Verdict::Refused;
        let own = machine.driver.as_ref().and_then(|driver| driver.user.or(driver.kernel));
        let newer = tables::branches().iter().filter(|row| row.exact && own.is_none_or(|own| row.branch > own.branch));
        let refusing = || findings.iter().filter(|finding| Verdict::of([*finding]) == Verdict::Refused);
        // A driver that does not work is mended by other means than a newer one.
        let too_old = |finding: &Finding| {
            matches!(
                finding.code,
                Code::DriverTooOld
                    | Code::DriverTooOldForCode
                    | Code::DriverMissing
                    | Code::CudnnNeedsNewerDriver
                    | Code::GpuNotForDriver
            )
        };
        let newer = newer.filter(|_| refusing().any(too_old));
        let driver = newer.map(|row| row.branch).find(|branch| {
            let release = Some(DriverRelease::new(*branch, 0, 0));
            let driver = Driver { user: release, kernel: release, ..Driver::default() };
            taken(&machine.with(driver))
        });
        if let Some(branch) = driver {
            return Some(Self::Driver(branch));
        }
        let mins = file.manifests.iter().flat_map(|manifest| &manifest.requires).filter_map(|row| match row {
            Requirement::Library { min, .. } => Some(*min),
            _ => None,
        });
        let library = mins.max().filter(|version| {
            let mut other = machine.clone();
            let library = Library { version: Some(*version), taken: true, ..Library::default() };
            other.libraries.insert(GUARDED.key, vec![library]);
            taken(&other)
        });
        if let Some(version) = library {
            return Some(Self::Library(version));
        }
        let all = refusing().all(|finding| matches!(finding.code, Code::NoCodeForGpu | Code::PartialCode));
        let newest = machine.known_gpus().iter().filter(|gpu| gpu.visible).filter_map(|gpu| gpu.cc).max();
        newest.filter(|_| all).map(Self::Code)
    }
}

/// Files to be judged against many machines.
#[derive(Debug)]
pub struct Fleet {
    files: Vec<Components>,
    known: HashMap<Machine, Rc<[Outcome]>, BuildHasherDefault<Quick>>,
}

/// A hash of few multiplications: the map is small and is emptied when it is full, so a list that makes everything collide
/// makes itself slow and nothing else.
#[derive(Default)]
struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        // The constant of Firefox's hasher: the golden ratio's.
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.add(number.unsigned_abs() as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Fleet {
    /// For these files.
    pub fn new(files: Vec<Components>) -> Self {
        Self { files, known: HashMap::default() }
    }

    /// One machine's line: its label where it has one, and what becomes of each file, in their order.
    pub fn judge(&mut self, line: &str) -> Result<(Option<String>, Rc<[Outcome]>), Mistake> {
        Ok(self.judge_machine(Machine::read_for_judging(line)?))
    }

    /// The same of a machine that has been read; what no judge looks at should not be in it.
    pub fn judge_machine(&mut self, mut machine: Machine) -> (Option<String>, Rc<[Outcome]>) {
        let name = machine.name.take();
        if let Some(known) = self.known.get(&machine) {
            return (name, known.clone());
        }
        let outcomes: Rc<[Outcome]> = self.files.iter().map(|file| on(file, &machine)).collect();
        if self.known.len() == KINDS {
            self.known.clear();
        }
        self.known.insert(machine, outcomes.clone());
        (name, outcomes)
    }
}

fn on(file: &Components, machine: &Machine) -> Outcome {
    let findings = file.on(machine, "that machine");
    let verdict = Verdict::of(&findings);
    let change = if verdict == Verdict::Refused { Change::of(file, machine, &findings) } else { None };
    Outcome { verdict, findings, change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Code;
    use crate::manifest::{Component, Manifest, Requirement};
    use crate::policy::Policy;
    use crate::toolchain::Toolchain;
    use crate::version::{CudaVersion, DriverRelease};

    fn cudart_13() -> Components {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::of(component, "t", "release", &Policy::default(), &Toolchain::default());
        manifest.requires = vec![Requirement::Driver {
            cuda: CudaVersion::new(13, 0),
            release: DriverRelease::new(580, 65, 6),
            because: "libcudart 13.0".to_owned(),
        }];
        Components { manifests: vec![manifest], ..Components::default() }
    }

    #[test]
    fn machines_of_one_kind_are_judged_once_and_named_each() {
        let mut fleet = Fleet::new(vec![cudart_13()]);
        let line = |name: &str, driver: &str, uuid: &str| {
            format!(
                r#"{{"name": "{name}", "driver": {{"user": "{driver}", "kernel": "{driver}", "library": "/{name}"}}, "gpus": [{{"cc": "9.0", "uuid": "{uuid}"}}]}}"#
            )
        };
        let mut judge = |name: &str, driver: &str, uuid: &str| {
            let (label, outcomes) = fleet.judge(&line(name, driver, uuid)).unwrap();
            let codes: Vec<Code> = outcomes[0].findings.iter().map(|finding| finding.code).collect();
            (label.unwrap(), outcomes[0].verdict, codes)
        };
        assert_eq!(judge("a", "580.65.06", "GPU-1"), ("a".to_owned(), Verdict::Runs, vec![]));
        assert_eq!(judge("b", "580.65.06", "GPU-2"), ("b".to_owned(), Verdict::Runs, vec![]));
        assert_eq!(judge("c", "535.261.03", "GPU-3"), ("c".to_owned(), Verdict::Refused, vec![Code::DriverTooOld]));
        assert_eq!(fleet.known.len(), 2);
        assert!(fleet.judge("{").is_err());
    }

    #[test]
    fn the_one_change_that_admits_a_machine() {
        let mut fleet = Fleet::new(vec![cudart_13()]);
        let mut change = |driver: &str| {
            let line = format!(r#"{{"driver": {driver}, "gpus": [{{"cc": "9.0"}}]}}"#);
            fleet.judge(&line).unwrap().1[0].change
        };
        assert_eq!(change(r#"{"user": "535.261.03", "kernel": "535.261.03"}"#), Some(Change::Driver(580)));
        assert_eq!(change(r#"{"user": "580.95.05", "kernel": "580.95.05"}"#), None);
        // It is new enough: the kernel module is to be loaded anew.
        assert_eq!(change(r#"{"user": "590.44.01", "kernel": "580.95.05"}"#), None);
        // Their driver lists these GPUs, and a newer one may not.
        let mut of = |gpu: &str, driver: &str| {
            let line = format!(r#"{{"driver": {{"user": "{driver}", "kernel": "{driver}"}}, "gpus": [{gpu}]}}"#);
            fleet.judge(&line).unwrap().1[0].change
        };
        assert_eq!(of(r#"{"cc": "7.0", "uuid": "GPU-1"}"#, "535.261.03"), Some(Change::Driver(580)));
        assert_eq!(of(r#"{"cc": "3.7", "uuid": "GPU-1"}"#, "470.256.02"), None);
        assert_eq!(of(r#"{"cc": "12.0"}"#, "550.54.14"), Some(Change::Driver(580)));
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut fleet = Fleet::new(vec![cudart_13()]);
        for number in 0..3 * KINDS {
            let line = format!(
                r#"{{"driver": {{"user": "600.{number}", "kernel": "600.{number}"}}, "gpus": [{{"cc": "9.0"}}]}}"#
            );
            assert_eq!(fleet.judge(&line).unwrap().1[0].verdict, Verdict::Runs, "{number}");
            assert!(fleet.known.len() <= KINDS);
        }
    }
}
