//! Reads the large sections of a file on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{KernelReader, RELOCATABLE, SectionPiece, WHOLE, marks_to_search};
use crate::binary::elf::{self, Elf};
use crate::binary::kernels::scan;
use object::elf::{PF_W, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_PROGBITS};

/// A section to read.
pub(super) struct Task<'data> {
    pub(super) name: &'data str,
    pub(super) data: &'data [u8],
    pub(super) base: u64,
    /// The search mode for containers; `None` if the section contains nothing else.
    pub(super) marks: Option<scan::Marks>,
}

/// Number of bytes from which several threads are faster than one.
pub(super) const WORTH_THREADS: usize = 32 << 20;

/// Returns the parts of a host file that may contain GPU code: loaded, and no machine code.
pub(super) fn section_tasks<'data>(elf: &Elf<'data>, base: u64) -> Vec<Task<'data>> {
    let mut tasks = Vec::new();
    let mut sections = false;
    for section in elf.sections() {
        sections |= section.index != 0;
        let data =
            section.kind == SHT_PROGBITS && section.flags.contains(SHF_ALLOC) && !section.flags.contains(SHF_EXECINSTR);
        if !data || section.data.is_empty() || elf::TABLES.contains(&section.name) {
            continue;
        }
        let whole = section.name == WHOLE || section.name == RELOCATABLE;
        tasks.push(Task {
            name: section.name,
            data: section.data,
            base: base.saturating_add(section.offset),
            marks: (!whole).then(|| marks_to_search(section.flags.contains(SHF_WRITE), section.size)),
        });
    }
    if !sections {
        let loaded = elf.segments().filter(|segment| segment.kind == PT_LOAD && !segment.flags.contains(PF_X));
        tasks.extend(loaded.map(|segment| Task {
            name: "",
            data: segment.data,
            base: base.saturating_add(segment.offset),
            marks: Some(marks_to_search(segment.flags.contains(PF_W), segment.file_size)),
        }));
    }
    remove_overlaps(&mut tasks);
    tasks
}

/// Removes the overlap of tasks: in a damaged file, a table of a thousand overlapping sections would turn one image
/// into a thousand.
pub(super) fn remove_overlaps(tasks: &mut [Task]) {
    let rests = elf::without_overlaps(tasks.iter().map(|task| (task.base, task.data)));
    for (task, rest) in tasks.iter_mut().zip(rests) {
        task.base += (task.data.len() - rest.len()) as u64;
        task.data = rest;
    }
}

impl<'data> Task<'data> {
    pub(super) fn run_task(&self, outer: &KernelReader<'data>) -> KernelReader<'data> {
        let mut reader = KernelReader { map: outer.map, read: outer.read.clone(), ..KernelReader::default() };
        // Alignment is relative to the file; a section may begin at any offset (`.ldata` of cuFFT 11.3.3).
        let skipped = match self.marks {
            Some(scan::Marks::Aligned) => self.base.wrapping_neg() % scan::ALIGNED,
            _ => 0,
        };
        let data = self.data.get(usize::try_from(skipped).unwrap_or_default()..).unwrap_or_default();
        let piece = SectionPiece { data, base: self.base.saturating_add(skipped), place: 0 };
        match self.marks {
            None => reader.walk_containers(piece),
            Some(marks) => reader.search_section(piece, marks),
        }
        reader
    }
}

/// Runs tasks in this order until other threads have taken the rest.
fn run_tasks<'data>(
    tasks: &[Task<'data>],
    order: &[usize],
    next: &AtomicUsize,
    outer: &KernelReader<'data>,
) -> Vec<(usize, KernelReader<'data>)> {
    let mut done = Vec::new();
    while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
        done.push((*at, tasks[*at].run_task(outer)));
    }
    done
}

/// Runs the tasks on all processors, the largest first. Results have the order of the tasks.
pub(super) fn at_once<'data>(tasks: &[Task<'data>], outer: &KernelReader<'data>) -> Vec<KernelReader<'data>> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(tasks[*at].data.len()));
    let next = AtomicUsize::new(0);
    let (order, next) = (&order, &next);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS);
    let mut done: Vec<(usize, KernelReader)> = std::thread::scope(|scope| {
        // This thread works too, alone if no other can be started.
        let mut others = Vec::new();
        for _ in 1..threads {
            let thread = std::thread::Builder::new();
            others.extend(thread.spawn_scoped(scope, move || run_tasks(tasks, order, next, outer)));
        }
        let mut done = run_tasks(tasks, order, next, outer);
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, part)| part).collect()
}

/// Memory bandwidth is the limit; more threads are not faster.
const MOST_THREADS: usize = 4;
