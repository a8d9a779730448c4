//! Machines and programs by chance: the judge in Rust, the started shim and a third judge agree on every pair.
//!
//! The third judge is written from docs/internals/decisions and MANIFEST.md alone, as plainly as they say it: it gives a verdict and
//! no words. Every pair is judged by it and in Rust. Further ones are started, too: a machine is made once, which takes a tenth
//! of a second, and each of its programs costs some milliseconds. More of both, from another start of the dice:
//!
//!     CUDAGUARD_PAIRS=100000 CUDAGUARD_STARTED=100000 CUDAGUARD_SEED=7 cargo matrix judge_equal::random

use std::fmt::Write as _;

use cargo_cudaguard::host::facts::{CudnnState, DriverState, Host, HostDriver, HostGpu};
use cudaguard::internal::finding::Verdict;
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Test, test};

use super::driver::{judged, need_worlds, random, random_machines, start_all};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        test("random::random_judges_agree", random_judges_agree).slow(),
        test("random::random_started_programs_agree", random_started_programs_agree).slow(),
    ]
}

/// Programs on each machine.
const PROGRAMS: usize = 50;

/// 0 would be thrown forever.
fn seed() -> u64 {
    number("CUDAGUARD_SEED", 0x5851_f42d_4c95_7f2d).max(1)
}

/// The started shim, the judge in Rust and the third judge.
fn random_started_programs_agree() {
    need_worlds();
    let started = usize::try_from(number("CUDAGUARD_STARTED", 200)).expect("so many fit");
    let (mut differences, mut pairs) = (Vec::new(), 0);
    for (machine, programs) in random_machines(seed().rotate_left(17), started.div_ceil(PROGRAMS), PROGRAMS) {
        let host = machine.host();
        for manifests in &programs {
            let (codes, ours) = judged(manifests, &machine);
            let theirs = manifests.iter().map(|manifest| verdict(manifest, &host)).max().unwrap_or(Plain::Runs);
            if ours != theirs.verdict().name() {
                differences
                    .push(format!("{ours} {codes:?}, and by the documents {theirs:?}\n{machine:?}\n{manifests:?}"));
            }
        }
        differences.extend(start_all(&machine, &programs));
        pairs += programs.len();
    }
    let shown = differences.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {pairs} pairs:\n{shown}", differences.len());
}

/// What a variable of the tests says.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty());
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}: expected a number")))
}

fn random_judges_agree() {
    let pairs = usize::try_from(number("CUDAGUARD_PAIRS", 5000)).expect("so many fit");
    let cases = random(seed(), pairs);
    let (mut differences, mut count) = (String::new(), 0);
    for case in &cases {
        let host = case.machine.host();
        let (codes, ours) = judged(&case.manifests, &case.machine);
        let theirs = case.manifests.iter().map(|manifest| verdict(manifest, &host)).max().unwrap_or(Plain::Runs);
        if ours != theirs.verdict().name() {
            count += 1;
            if count <= 3 {
                let _ = writeln!(
                    differences,
                    "{}: {ours} {codes:?}, and by the documents {theirs:?}\n{:?}\n{:?}",
                    case.name, case.machine, case.manifests
                );
            }
        }
    }
    assert!(count == 0, "{count} of {pairs} pairs:\n{differences}");
}

/// Ranks the GPU support: a greater number is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Plain {
    Runs,
    CannotTell,
    Refused,
}

impl Plain {
    const fn verdict(self) -> Verdict {
        match self {
            Self::Runs => Verdict::Runs,
            Self::CannotTell => Verdict::Unknown,
            Self::Refused => Verdict::Refused,
        }
    }
}

/// What a program comes to by the third judge: each component on the machine as it finds it.
pub(crate) fn plainly<'a>(components: impl IntoIterator<Item = (&'a Manifest, Host)>) -> Verdict {
    let all = components.into_iter().map(|(manifest, host)| verdict(manifest, &host));
    all.max().unwrap_or(Plain::Runs).verdict()
}

/// What a program with this manifest comes to on this host.
fn verdict(manifest: &Manifest, host: &Host) -> Plain {
    of_cudnn(manifest, host).max(of_driver_and_gpus(manifest, host))
}

/// "cuDNN: same major and loaded minor ≥ built minor" (decisions 10, 26, 28).
fn of_cudnn(manifest: &Manifest, host: &Host) -> Plain {
    let mut worst = Plain::Runs;
    for row in &manifest.requires {
        let Requirement::Library { min, below, linkage, required, .. } = row else { continue };
        worst = worst.max(match &host.library {
            _ if *linkage == Linkage::Static => Plain::Runs,
            CudnnState::Absent if *linkage == Linkage::Linked || *required => Plain::Refused,
            CudnnState::Unknown | CudnnState::Found { version: None, .. } => Plain::CannotTell,
            CudnnState::Found { version: Some(version), .. } if version < min || version >= below => Plain::Refused,
            CudnnState::Absent | CudnnState::Found { .. } => Plain::Runs,
        });
    }
    worst
}

fn of_driver_and_gpus(manifest: &Manifest, host: &Host) -> Plain {
    let required = manifest.runtime.gpu == GpuNeed::Required;
    let asks = |row: &Requirement| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. });
    let asks = required || manifest.requires.iter().any(asks);
    // Decision 6: nothing to see.
    let nothing = match (asks, required) {
        (false, _) => Plain::Runs,
        (true, false) => Plain::CannotTell,
        (true, true) => Plain::Refused,
    };
    let unknown = if asks { Plain::CannotTell } else { Plain::Runs };
    // Of a described machine the GPUs may be known without the driver: what they lack under any driver is certain.
    let nobody = HostDriver::default();
    let driver = match &host.driver {
        DriverState::Found(driver) => driver,
        DriverState::Absent => return nothing,
        DriverState::Unknown if host.gpus.is_none() => return unknown,
        DriverState::Unknown => &nobody,
    };
    let gpus: Option<Vec<_>> = host.gpus.as_ref().map(|gpus| gpus.iter().filter(|gpu| gpu.visible).collect());
    let none = gpus.as_ref().is_some_and(Vec::is_empty);
    match driver.init {
        Some(100) => return nothing,
        Some(0) | None if none => return nothing,
        Some(0) | None => {}
        // A driver that does not work harms nobody who asks nothing of it.
        Some(_) if !asks => return Plain::Runs,
        // A stub, where there is nothing that a driver could drive.
        Some(34) if !required && gpus.as_ref().is_none_or(Vec::is_empty) => return nothing,
        Some(34 | 803 | 804) => return Plain::Refused,
        Some(_) => return Plain::CannotTell,
    }
    let mut worst = if gpus.is_none() || host.driver == DriverState::Unknown { unknown } else { Plain::Runs };
    // Decision 11: the cudart inside cuDNN wants a driver of its major.
    let with_cudnn = manifest.requires.iter().any(|row| matches!(row, Requirement::Library { .. }));
    if let (true, CudnnState::Found { made_with: Some(made), .. }) = (with_cudnn, &host.library) {
        worst = worst.max(match driver.cuda {
            Some(supports) if supports.major >= made.major => Plain::Runs,
            Some(_) => Plain::Refused,
            None => unknown,
        });
    }
    // Decision 12: a cuDNN made for CUDA 11 knows GPUs up to 9.x, and nobody knows what it does on later ones alone.
    if let (true, CudnnState::Found { made_with: Some(made), .. }) = (with_cudnn, &host.library) {
        let later = |gpu: &&HostGpu| gpu.cc.is_some_and(|cc| cc.0 > 9);
        if made.major < 12 && gpus.as_ref().is_some_and(|gpus| gpus.iter().all(later)) {
            worst = worst.max(Plain::CannotTell);
        }
    }
    for row in &manifest.requires {
        let Requirement::Driver { cuda, release, .. } = row else { continue };
        worst = worst.max(match serves(driver.cuda, driver.user, Some(*cuda), Some(*release)) {
            Some(true) => Plain::Runs,
            Some(false) => Plain::Refused,
            None => Plain::CannotTell,
        });
    }
    // One fit GPU is enough (decision 23).
    let each: Vec<Plain> = gpus.iter().flatten().map(|gpu| of_gpu(manifest, host, driver, gpu.cc)).collect();
    worst.max(each.into_iter().min().unwrap_or(Plain::Runs))
}

/// Decision 22: what libcuda says it supports decides, its release stands in.
fn serves(
    supports: Option<CudaVersion>,
    user: Option<DriverRelease>,
    cuda: Option<CudaVersion>,
    release: Option<DriverRelease>,
) -> Option<bool> {
    match (cuda, release) {
        (None, None) => Some(true),
        (Some(cuda), _) if supports.is_some() => supports.map(|supports| supports >= cuda),
        // A release of 0 says that none is known to (MANIFEST.md).
        (_, Some(release)) if release.branch != 0 => user.map(|user| user >= release),
        _ => None,
    }
}

/// What one GPU comes to by itself.
fn of_gpu(manifest: &Manifest, host: &Host, driver: &HostDriver, cc: Option<(u8, u8)>) -> Plain {
    // cuDNN 9 wants compute capability 5.0, and from 9.11 on 7.5 (CG313).
    let with_cudnn =
        manifest.requires.iter().any(|row| matches!(row, Requirement::Library { built, .. } if built.major == 9));
    if let (true, CudnnState::Found { version: Some(version), .. }, Some(cc)) = (with_cudnn, &host.library, cc) {
        let floor = if *version >= Version::new(9, 11, 0) { (7, 5) } else { (5, 0) };
        if version.major == 9 && cc < floor {
            return Plain::Refused;
        }
    }
    let mut rows = manifest.requires.iter().filter(|row| matches!(row, Requirement::Gpu { .. })).peekable();
    if rows.peek().is_none() {
        return Plain::Runs;
    }
    let inside = |row: &&Requirement| match (row, cc) {
        (Requirement::Gpu { from, to, .. }, Some(cc)) => cc >= *from && to.is_none_or(|to| cc <= to),
        _ => false,
    };
    let Some(Requirement::Gpu { by, cuda, release, sure_from, beside, .. }) = rows.find(inside) else {
        return Plain::CannotTell;
    };
    let (mut cuda, mut release, mut sure_from) = (*cuda, *release, *sure_from);
    let serves = |cuda, release| serves(driver.cuda, driver.user, cuda, release);
    let machine_code = matches!(by, GpuCoverage::Cubin | GpuCoverage::Partial | GpuCoverage::PartialPtx);
    let mut ptx = matches!(by, GpuCoverage::Ptx | GpuCoverage::PartialPtx);
    match by {
        GpuCoverage::Nothing => return Plain::Refused,
        GpuCoverage::Unknown => return Plain::CannotTell,
        // CUDA_FORCE_PTX_JIT=1 passes over machine code, so that the PTX beside it counts, and not the machine code's ELF ABI.
        // Where PTX serves, the row says so only of machine code in other containers (MANIFEST.md).
        GpuCoverage::Ptx if host.jit.forced && *beside == PtxFallback::Nothing => return Plain::CannotTell,
        GpuCoverage::Ptx if host.jit.forced => {
            if let PtxFallback::Isa((major, minor)) = beside {
                let floor = tables::ptx_floor((u32::from(*major), u32::from(*minor)));
                match serves(Some(floor.cuda), floor.release) {
                    Some(false) => return Plain::Refused,
                    // Of no driver would it be compiled.
                    None if !host.jit.disabled => return Plain::CannotTell,
                    None | Some(true) => {}
                }
            }
        }
        _ if machine_code && host.jit.forced => match beside {
            PtxFallback::Nothing => return Plain::Refused,
            PtxFallback::Untold => return Plain::CannotTell,
            PtxFallback::Isa((major, minor)) => {
                ptx = true;
                let floor = tables::ptx_floor((u32::from(*major), u32::from(*minor)));
                let beside = serves(Some(floor.cuda), floor.release);
                if beside == Some(false) {
                    return Plain::Refused;
                }
                if *by != GpuCoverage::PartialPtx {
                    (cuda, release, sure_from) = (None, None, None);
                }
            }
        },
        _ => {}
    }
    match by {
        GpuCoverage::Partial | GpuCoverage::PartialPtx if manifest.partial_refuse => return Plain::Refused,
        _ if ptx && host.jit.disabled => return Plain::Refused,
        _ => {}
    }
    match serves(cuda, release) {
        Some(false) => return Plain::Refused,
        None => return Plain::CannotTell,
        Some(true) => {}
    }
    if ptx && host.jit.compiler == Some(false) {
        return Plain::Refused;
    }
    // Decision 24: what an older driver makes of newer machine code, no document says; decision 38: nor what one beyond the
    // tables makes of PTX beyond them.
    let sure = sure_from.is_none_or(|(cuda, release)| serves(Some(cuda), Some(release)) == Some(true));
    if sure { Plain::Runs } else { Plain::CannotTell }
}
