//! Encodes requirements and the facts of a host as the structures of `judge.h`, and decodes the numbers of its findings.

use super::code;
use super::judge_ffi::{CudnnFacts, DriverFacts, GpuFacts, PartFacts, Row};
use crate::host::facts::{CompatState, CudnnState, DriverMismatch, DriverState, Host, HostGpu, Inner, LoaderVersion};
use cudaguard::internal::linkage::Linkage;
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::note::layout::{
    LIBRARY_DLOPENED, LIBRARY_LINKED, LIBRARY_PATCH, LIBRARY_REQUIRED, LIBRARY_STATIC, ROW_DRIVER, ROW_GPU,
    ROW_LIBRARY, ROW_PART, driver_row, gpu_row, library_row, part_row,
};
use cudaguard::internal::note::{NO_END, ptx_fallback_flags, served_flag};
use cudaguard::internal::tables::{self, Floor};
use cudaguard::internal::vendor::CUDNN;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// A release in the wide form.
fn widen(release: DriverRelease) -> u32 {
    release.branch.min(0xfff) << 20 | release.minor.min(0xfff) << 8 | release.patch.min(0xff)
}

/// The release of a wide form; `None` if it is unknown.
pub(super) fn narrow(wide: u32) -> Option<DriverRelease> {
    (wide != 0).then(|| DriverRelease::new(wide >> 20, wide >> 8 & 0xfff, wide & 0xff))
}

/// Packs a version as rows have it. Numbers that are too large count as the largest.
pub(super) fn pack(version: Version) -> u32 {
    version.major.min(0xffff) << 16 | version.minor.min(0xff) << 8 | version.patch.min(0xff)
}

pub(super) fn unpack(packed: u32) -> Version {
    Version::new(packed >> 16, packed >> 8 & 0xff, packed & 0xff)
}

fn pack_release(release: DriverRelease) -> u32 {
    pack(Version::new(release.branch, release.minor, release.patch))
}

fn pack_cc((major, minor): (u8, u8)) -> u32 {
    u32::from(major) << 8 | u32::from(minor)
}

pub(super) fn known(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != 0)
}

/// Writes a row of this kind with these numbers, each of so many bytes at its offset. Texts stay empty: the judge reads none.
fn row(kind: u16, numbers: &[(usize, u32, usize)]) -> Row {
    let mut row = [0; size_of::<Row>()];
    row[..2].copy_from_slice(&kind.to_ne_bytes());
    for &(at, number, size) in numbers {
        let [low, high, ..] = number.to_le_bytes();
        match size {
            1 => row[at] = low,
            2 => row[at..at + 2].copy_from_slice(&u16::from_le_bytes([low, high]).to_ne_bytes()),
            _ => row[at..at + 4].copy_from_slice(&number.to_ne_bytes()),
        }
    }
    row
}

/// The row of a requirement, as in a note.
pub(super) fn to_row(requirement: &Requirement) -> Row {
    match requirement {
        // The program does not use it.
        Requirement::Library { linkage: Linkage::None, .. } => row(0, &[]),
        Requirement::Library { min, below, built, linkage, patch_refuse, required, .. } => {
            let flags = match linkage {
                Linkage::Linked => LIBRARY_LINKED,
                Linkage::Dlopened => LIBRARY_DLOPENED,
                Linkage::Static => LIBRARY_STATIC,
                Linkage::Unknown | Linkage::None => 0,
            };
            let patch = if *patch_refuse { LIBRARY_PATCH } else { 0 };
            let required = if *required { LIBRARY_REQUIRED } else { 0 };
            let floors: Vec<_> = CUDNN.release_table().gpu_floors(built.major).collect();
            let (from, oldest) = floors.last().map_or((0, 0), |(from, cc)| (pack(*from), pack_cc(*cc)));
            let before = if let [.., (_, cc), _] = floors[..] { pack_cc(cc) } else { 0 };
            let newest = CUDNN.release_table().newest_gpus(built.major);
            let [newest, from_minor, newest_before, below_cuda] = newest.map_or([0; 4], |gpus| {
                [u32::from(gpus.newest), gpus.from_minor.min(255), u32::from(gpus.before), gpus.below_cuda.min(255)]
            });
            row(
                ROW_LIBRARY,
                &[
                    (library_row::FLAGS, u32::from(flags | patch | required), 2),
                    (library_row::MIN, pack(*min), 4),
                    (library_row::BELOW, pack(*below), 4),
                    (library_row::BUILT, pack(*built), 4),
                    (library_row::DROPS_GPUS_FROM, from, 4),
                    (library_row::OLDEST_GPU, oldest, 2),
                    (library_row::OLDEST_GPU_BEFORE, before, 2),
                    (library_row::NEWEST_GPUS, newest, 1),
                    (library_row::NEWEST_GPUS_FROM, from_minor, 1),
                    (library_row::NEWEST_GPUS_BEFORE, newest_before, 1),
                    (library_row::NEWEST_GPUS_BELOW_CUDA, below_cuda, 1),
                ],
            )
        }
        Requirement::Part { needed, .. } => {
            let floors = CUDNN.made_with.filter(|_| *needed).map(|_| tables::newest_cudart_floors());
            let numbers = |floor: Floor| (floor.cuda.to_int(), floor.release.map_or(0, pack_release));
            let [older, newer] = floors.map_or([(0, 0); 2], |floors| floors.map(numbers));
            row(
                ROW_PART,
                &[
                    (part_row::NEEDED, u32::from(*needed), 2),
                    (part_row::OLDER_CUDA, older.0, 4),
                    (part_row::OLDER_RELEASE, older.1, 4),
                    (part_row::NEWER_CUDA, newer.0, 4),
                    (part_row::NEWER_RELEASE, newer.1, 4),
                ],
            )
        }
        Requirement::Driver { cuda, release, .. } => {
            row(ROW_DRIVER, &[(driver_row::CUDA, cuda.to_int(), 4), (driver_row::RELEASE, pack_release(*release), 4)])
        }
        Requirement::Gpu { from, to, by, cuda, release, guaranteed_from, ptx_fallback, .. } => row(
            ROW_GPU,
            &[
                (gpu_row::SERVED_BY, u32::from(served_flag(*by) | ptx_fallback_flags(*ptx_fallback)), 2),
                (gpu_row::LOWEST, pack_cc(*from), 4),
                (gpu_row::HIGHEST, to.map_or(NO_END, pack_cc), 4),
                (gpu_row::CUDA, cuda.map_or(0, CudaVersion::to_int), 4),
                (gpu_row::RELEASE, release.map_or(0, pack_release), 4),
                (gpu_row::SURE_CUDA, guaranteed_from.map_or(0, |(cuda, _)| cuda.to_int()), 4),
                (gpu_row::SURE_RELEASE, guaranteed_from.map_or(0, |(_, release)| pack_release(release)), 4),
            ],
        ),
    }
}

/// Returns whether forward compatibility excludes a product (NVIDIA's "CUDA Compatibility"; the brands that cuda-compat's note
/// omits).
fn is_consumer(name: &str) -> bool {
    ["GeForce", "TITAN", "NVS", "GRID"].iter().any(|brand| name.contains(brand))
}

pub(super) fn gpu_facts(gpu: &HostGpu) -> GpuFacts {
    let product = match gpu.name.as_deref() {
        Some(name) if is_consumer(name) => code::PRODUCT_OF_CONSUMERS,
        Some(_) => code::PRODUCT_OF_DATA_CENTERS,
        None => 0,
    };
    let facts =
        // 0 is unknown, and the samples of `requirements` begin below every GPU.
        GpuFacts { cc: gpu.cc.map_or(0, |cc| pack_cc(cc).max(1)), product, driven: 0, branch: 0, first_cuda: 0, first_release: 0 };
    let first = |driven, floor: Floor| GpuFacts {
        driven,
        first_cuda: floor.cuda.to_int(),
        first_release: floor.release.map_or(0, widen),
        ..facts
    };
    match (gpu.undriven, gpu.guaranteed_from) {
        (Some(DriverMismatch::NoLonger(last)), _) => GpuFacts { driven: code::NO_LONGER_DRIVEN, branch: last, ..facts },
        (Some(DriverMismatch::NotYet(floor)), _) => first(code::NOT_YET_DRIVEN, floor),
        (None, Some(floor)) => first(code::MAY_BE_DRIVEN, floor),
        (None, None) => facts,
    }
}

pub(super) fn cudnn_facts(manifest: &Manifest, state: &CudnnState) -> (CudnnFacts, Vec<PartFacts>) {
    let facts = CudnnFacts { source: code::DETECTED, ..CudnnFacts::default() };
    let CudnnState::Found { major, version, inner, loader, made_with, .. } = state else {
        let state = if *state == CudnnState::Absent { code::ABSENT } else { 0 };
        return (CudnnFacts { state, ..facts }, Vec::new());
    };
    let row_of = |part: &Inner| {
        let is_row = |row: &Requirement| matches!(row, Requirement::Part { file, .. } if *file == part.file);
        manifest.requires.iter().position(is_row).and_then(|at| u32::try_from(at).ok())
    };
    let part = |part: &Inner| PartFacts {
        row: row_of(part).unwrap_or(code::NO_ROW),
        state: if part.present { code::FOUND } else { code::ABSENT },
        version: part.version.map_or(0, pack),
    };
    let (loader, is_minor) = match loader {
        LoaderVersion::Unknown => (0, 0),
        LoaderVersion::Version(version) => (pack(*version), 0),
        LoaderVersion::Minor(major, minor) => (pack(Version::new(*major, *minor, 0)), 1),
    };
    let facts = CudnnFacts {
        state: code::FOUND,
        has_file: 1,
        major: *major,
        version: version.map_or(0, pack),
        loader,
        is_minor,
        made_with: made_with.map_or(0, CudaVersion::to_int),
        ..facts
    };
    (facts, inner.iter().map(part).collect())
}

pub(super) fn driver_facts(host: &Host) -> DriverFacts {
    let flag = |set: bool| if set { code::FOUND } else { code::ABSENT };
    let facts = DriverFacts {
        source: code::DETECTED,
        compiler: host.jit.compiler.map_or(0, flag),
        compiler_source: code::DETECTED,
        forces_ptx: flag(host.jit.forced),
        disables_ptx: flag(host.jit.disabled),
        ..DriverFacts::default()
    };
    let driver = match &host.driver {
        DriverState::Unknown => return facts,
        DriverState::Absent => return DriverFacts { state: code::ABSENT, ..facts },
        DriverState::Found(driver) => driver,
    };
    let bounds = driver.user.filter(|_| driver.cuda.is_none()).map(tables::driver_supports);
    let bound = |cuda: Option<CudaVersion>| cuda.map_or(0, CudaVersion::to_int);
    let compat = match &driver.compat {
        CompatState::Unknown => 0,
        CompatState::Ordinary => code::COMPAT_NONE,
        CompatState::Branches(branches) if branches.is_empty() => code::COMPAT_ANY,
        CompatState::Branches(branches) => match driver.kernel {
            Some(kernel) if branches.contains(&kernel.branch) => code::COMPAT_LISTED,
            _ => code::COMPAT_UNLISTED,
        },
    };
    DriverFacts {
        state: code::FOUND,
        init: driver.init.map_or(-1, |init| i32::try_from(init).unwrap_or(i32::MAX)),
        user: driver.user.map_or(0, widen),
        kernel: driver.kernel.map_or(0, widen),
        cuda: driver.cuda.map_or(0, CudaVersion::to_int),
        least_cuda: bound(bounds.and_then(|bounds| bounds.least)),
        most_cuda: bound(bounds.and_then(|bounds| bounds.most)),
        compat,
        ..facts
    }
}
