//! Shows the result of files on every GPU of the tables with every driver branch.
//!
//! Adds no rules: each cell is the result of the runtime checks for a machine with that GPU and driver,
//! and with the oldest cuDNN release that the files accept and that supports the GPU.

use super::placement::{PlacementError, PlacementQuery};
use super::{Components, Driver, Gpu, Machine, worst_service};
use crate::binary::file::TargetOs;
use crate::host::machine::judge::gpu_answer::Service;
use crate::verdict::Verdict;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

/// A table of GPUs by driver branches.
#[derive(Clone, Debug)]
pub struct Map {
    /// The processor that the files are built for; empty if they run on any.
    pub processor: String,
    /// The branches, oldest first. Starts with the last branch before those that run the files, or for which this is unknown.
    pub branches: Vec<Branch>,
    /// The GPUs that one of the branches supports, oldest first.
    pub rows: Vec<MapRow>,
}

/// A driver branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The first number of its releases for Linux.
    pub number: u32,
    /// The first number of its oldest release for the operating system of the files.
    pub shown: u32,
    /// The CUDA version that it supports.
    pub cuda: CudaVersion,
}

/// GPUs of one compute capability.
#[derive(Clone, Debug)]
pub struct MapRow {
    /// The compute capability.
    pub cc: (u8, u8),
    /// Product names, the best known first.
    pub names: &'static [&'static str],
    /// The cell of each branch.
    pub cells: Vec<Cell>,
}

/// The result for a GPU with a driver branch.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The state of the files.
    pub state: State,
    /// The reason, if they do not run or need more than machine code.
    pub why: Option<Finding>,
}

/// The result of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They run, with machine code.
    Native,
    /// They run, and the driver compiles PTX.
    Jit,
    /// They run, and some of their kernels have no code for the GPU.
    Partial,
    /// They run, and have no kernels.
    NoKernels,
    /// They are refused.
    Refused,
    /// Unknown.
    Unknown,
    /// No driver of that branch supports the GPU.
    NotDriven,
}

impl State {
    /// All states, in the order of the legend.
    pub const ALL: [Self; 7] =
        [Self::Native, Self::Jit, Self::Partial, Self::NoKernels, Self::Refused, Self::Unknown, Self::NotDriven];

    /// Returns true if the files run.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Native | Self::Jit | Self::Partial | Self::NoKernels)
    }
}

impl Map {
    /// Checks these files together, and each package of an environment on its own.
    ///
    /// # Errors
    /// If the files cannot be checked together.
    pub fn from_components(files: &[Components]) -> Result<Self, PlacementError> {
        let files: Vec<Components> =
            files.iter().flat_map(Components::units).map(Components::without_repeats).collect();
        let asked = PlacementQuery::from_components(&files)?;
        let processor = asked.processor_name()?;
        let is_for_windows = files.iter().all(|file| file.os == Some(TargetOs::Windows));
        let mut all = Vec::new();
        for row in tables::branch_rows().iter().filter(|row| row.exact) {
            let for_windows = tables::windows_release(row.least, DriverRelease::new(row.branch, 0, 0)).branch;
            let shown = if is_for_windows { for_windows } else { row.branch };
            all.push(Branch { number: row.branch, shown, cuda: row.least });
        }
        // Jetsons have only one kind of processor.
        let ccs = tables::arch_rows().iter().map(|row| row.cc);
        let mut ccs: Vec<(u8, u8)> = ccs.filter(|cc| processor == "aarch64" || !tables::is_tegra(*cc)).collect();
        ccs.dedup();
        let mut rows = Vec::new();
        for cc in ccs {
            let service = worst_service(&files, cc);
            let cells = all.iter().map(|branch| asked.judge_cell(cc, *branch, service)).collect();
            rows.push(MapRow { cc, names: tables::gpu_examples(cc), cells });
        }
        // Older drivers with the same result are shown once.
        let first = first_column_with(&rows, State::is_running)
            .or_else(|| first_column_with(&rows, |state| state == State::Unknown));
        let from = first.unwrap_or(all.len().saturating_sub(4)).saturating_sub(1);
        for row in &mut rows {
            row.cells.drain(..from);
        }
        rows.retain(|row| row.cells.iter().any(|cell| cell.state != State::NotDriven));
        Ok(Self { processor, branches: all[from..].to_vec(), rows })
    }
}

/// Returns the first column in which any row has such a state.
fn first_column_with(rows: &[MapRow], is_shown: fn(State) -> bool) -> Option<usize> {
    rows.iter().filter_map(|row| row.cells.iter().position(|cell| is_shown(cell.state))).min()
}

impl PlacementQuery<'_> {
    fn judge_cell(&self, cc: (u8, u8), branch: Branch, service: Option<Service>) -> Cell {
        let driver = Driver { user: Some(DriverRelease::new(branch.number, 0, 0)), ..Driver::default() };
        let gpu = Gpu { cc: Some(cc), visible: Some(true), ..Gpu::default() };
        let machine = Machine { driver: Some(driver), gpus: Some(vec![gpu]), ..self.sample_machine(Some(cc), None) };
        let found = self.findings_on(&machine);
        let verdict = self.verdict_of(&found);
        let state = match verdict {
            _ if found.iter().any(|finding| finding.code == Code::GpuNotForDriver) => State::NotDriven,
            Verdict::Refused => State::Refused,
            Verdict::Unknown => State::Unknown,
            Verdict::Runs => match service {
                Some(Service::Jit) => State::Jit,
                Some(Service::Partial) => State::Partial,
                Some(_) => State::Native,
                None => State::NoKernels,
            },
        };
        let why = found.into_iter().find(|finding| match state {
            State::NotDriven => finding.code == Code::GpuNotForDriver,
            _ => verdict != Verdict::Runs && Verdict::from_findings([finding]) == verdict,
        });
        Cell { state, why }
    }
}
