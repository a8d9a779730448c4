//! Encodes requirements and the facts of a host as the structures of `judge.h`, and decodes the numbers of its findings.

use super::code;
use super::judge_ffi::{CudnnFacts, DriverFacts, GpuFacts, NoteRow, PartFacts, Zeroed as _};
use crate::host::machine::{Driver, DriverSupport, Host, HostGpu, LibraryState, LoaderVersion};
use cudaguard::internal::linkage::Linkage;
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::note::visit_numbers;
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// A release in the wide form.
fn widen(release: DriverRelease) -> u32 {
    release.branch.min(0xfff) << 20 | release.minor.min(0xfff) << 8 | release.patch.min(0xff)
}

/// The release of a wide form; `None` if it is unknown.
pub(super) fn narrow(wide: u32) -> Option<DriverRelease> {
    (wide != 0).then(|| DriverRelease::new(wide >> 20, wide >> 8 & 0xfff, wide & 0xff))
}

fn found_or_absent(is_found: bool) -> u32 {
    if is_found { code::FOUND } else { code::ABSENT }
}

pub(super) fn pack_cc((major, minor): (u8, u8)) -> u32 {
    u32::from(major) << 8 | u32::from(minor)
}

pub(super) fn known(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != 0)
}

/// The numbers of a requirement's row, as in a note. Texts stay empty: the judge reads none.
pub(super) fn to_row(requirement: &Requirement) -> NoteRow {
    let mut row = [0; size_of::<NoteRow>()];
    // The program does not use it.
    if matches!(requirement, Requirement::Library { linkage: Linkage::None, .. }) {
        return row;
    }
    visit_numbers(requirement, &mut |at, number, size| {
        let [low, high, ..] = number.to_le_bytes();
        match size {
            1 => row[at] = low,
            2 => row[at..at + 2].copy_from_slice(&u16::from_le_bytes([low, high]).to_ne_bytes()),
            _ => row[at..at + 4].copy_from_slice(&number.to_ne_bytes()),
        }
    });
    row
}

/// Returns whether forward compatibility excludes a product (NVIDIA's "CUDA Compatibility"; the brands that cuda-compat's note
/// omits).
fn is_consumer(name: &str) -> bool {
    ["GeForce", "TITAN", "NVS", "GRID"].iter().any(|brand| name.contains(brand))
}

pub(super) fn gpu_facts(gpu: &HostGpu<'_>) -> GpuFacts {
    let product = match gpu.name {
        Some(name) if is_consumer(name) => code::PRODUCT_OF_CONSUMERS,
        Some(_) => code::PRODUCT_OF_DATA_CENTERS,
        None => 0,
    };
    let facts =
        // 0 is unknown, and the samples of `requirements` begin below every GPU.
        GpuFacts { cc: gpu.cc.map_or(0, |cc| pack_cc(cc).max(1)), product, ..GpuFacts::zeroed() };
    let (driven, floor) = match gpu.support {
        DriverSupport::NoLonger(branch) => return GpuFacts { driven: code::NO_LONGER_DRIVEN, branch, ..facts },
        DriverSupport::NotYet(floor) => (code::NOT_YET_DRIVEN, floor),
        DriverSupport::Unknown(floor) => (code::MAY_BE_DRIVEN, floor),
        DriverSupport::Supported => return facts,
    };
    let first_release = floor.release.map_or(0, widen);
    GpuFacts { driven, first_cuda: floor.cuda.to_int(), first_release, ..facts }
}

pub(super) fn cudnn_facts(manifest: &Manifest, state: LibraryState<'_>) -> (CudnnFacts, Vec<PartFacts>) {
    let facts = CudnnFacts { source: code::DETECTED, ..CudnnFacts::zeroed() };
    let library = match state {
        LibraryState::Found(library) => library,
        LibraryState::Absent => return (CudnnFacts { state: code::ABSENT, ..facts }, Vec::new()),
        LibraryState::Unknown => return (facts, Vec::new()),
    };
    let mut parts = Vec::new();
    for (row, requirement) in manifest.requires.iter().enumerate().filter(|_| library.parts.is_some()) {
        let Requirement::Part { file, .. } = requirement else { continue };
        let part = library.part(file);
        parts.push(PartFacts {
            row: u32::try_from(row).unwrap_or(code::NO_ROW),
            state: found_or_absent(part.is_some()),
            version: part.and_then(|part| part.version).map_or(0, Version::packed_saturating),
        });
    }
    let (loader, is_minor) = match library.loader {
        LoaderVersion::Unknown => (0, 0),
        LoaderVersion::Version(version) => (version.packed_saturating(), 0),
        LoaderVersion::Minor(major, minor) => (Version::new(major, minor, 0).packed_saturating(), 1),
    };
    let facts = CudnnFacts {
        state: code::FOUND,
        has_file: 1,
        major: library.major().unwrap_or_default(),
        version: library.version.map_or(0, Version::packed_saturating),
        loader,
        is_minor,
        made_with: library.cuda.map_or(0, CudaVersion::to_int),
        ..facts
    };
    (facts, parts)
}

pub(super) fn driver_facts(host: &Host<'_>) -> DriverFacts {
    let facts = DriverFacts {
        source: code::DETECTED,
        compiler: host.machine.has_ptx_compiler().map_or(0, found_or_absent),
        compiler_source: code::DETECTED,
        forces_ptx: found_or_absent(host.machine.passes_over_machine_code()),
        disables_ptx: found_or_absent(host.machine.disables_ptx()),
        init: -1,
        ..DriverFacts::zeroed()
    };
    let Some(driver) = &host.driver else { return facts };
    if driver.absent {
        return DriverFacts { state: code::ABSENT, ..facts };
    }
    let bounds = driver.user.filter(|_| driver.cuda.is_none()).map(tables::driver_supports);
    let compat = host.machine.driver.as_ref().map_or(0, |read| compat_code(read, driver.kernel));
    DriverFacts {
        state: code::FOUND,
        init: driver.init.map_or(-1, |init| i32::try_from(init).unwrap_or(i32::MAX)),
        user: driver.user.map_or(0, widen),
        kernel: driver.kernel.map_or(0, widen),
        branch: host.machine.linux_branch().unwrap_or_default(),
        cuda: driver.cuda.map_or(0, CudaVersion::to_int),
        least_cuda: bounds.and_then(|bounds| bounds.least).map_or(0, CudaVersion::to_int),
        most_cuda: bounds.and_then(|bounds| bounds.most).map_or(0, CudaVersion::to_int),
        compat,
        ..facts
    }
}

/// Returns whether a libcuda supports this kernel module by forward compatibility.
fn compat_code(driver: &Driver, kernel: Option<DriverRelease>) -> u32 {
    match driver.compat_branches() {
        // Only if the file was read is it known to have no note.
        None if driver.ordinary => code::COMPAT_NONE,
        None => 0,
        Some([]) => code::COMPAT_ANY,
        Some(branches) if kernel.is_some_and(|kernel| branches.contains(&kernel.branch)) => code::COMPAT_LISTED,
        Some(_) => code::COMPAT_UNLISTED,
    }
}
