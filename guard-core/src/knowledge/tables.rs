//! The tables of toolkits, architectures and drivers in `data/`, and functions that query them.
//!
//! `rows.rs` is generated from the tables, so that no program parses them. Every row in `data/` has a source, and every
//! source a date.
//!
//! Releases and archs that are not in the tables are handled by the general rules, so that a new release never causes
//! an error: a toolkit that is newer than all rows supports what the newest one supports, and everything else is
//! unknown.

mod gpus;
pub mod pci;

use crate::model::arch::{Arch, Suffix, Target};
use crate::model::version::{CudaVersion, DriverRelease, Version};
pub use gpus::{dotted_cc, gpu_cc, gpu_examples, gpu_typed, is_tegra, other_name, same_chip, same_family, suggest_gpu};

/// A compute capability: (major, minor).
pub type Cc = (u8, u8);

/// The support of a toolkit for an arch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CcSupport {
    /// The toolkit compiles code for it.
    Made,
    /// The arch is too new for the toolkit.
    TooNew {
        /// The first release that supports it; `None`: the table has none, up to and including its newest.
        first: Option<CudaVersion>,
    },
    /// The toolkit no longer supports it.
    Dropped {
        /// The last release that supported it; `None`: older than the table.
        last: Option<CudaVersion>,
    },
    /// Unknown: neither the toolkit nor the arch is in the table.
    Unknown,
}

/// The oldest driver for something, as CUDA version and as release. If the CUDA version of a driver is known, it is
/// decisive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The CUDA version that the driver must support.
    pub cuda: CudaVersion,
    /// The oldest Linux release that is known to support it; `None` if no document names one yet.
    pub release: Option<DriverRelease>,
    /// True if the requirement is exact. Otherwise it is a lower bound: older drivers are unsuitable, and newer ones
    /// unknown.
    pub exact: bool,
}

/// The known CUDA support of a driver release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supports {
    /// It supports at least this CUDA version.
    pub least: Option<CudaVersion>,
    /// It supports at most this CUDA version.
    pub most: Option<CudaVersion>,
}

impl Supports {
    /// Returns the version, if it is known exactly.
    pub fn exact_version(self) -> Option<CudaVersion> {
        self.least.filter(|_| self.least == self.most)
    }

    /// Returns true if it supports `need`; `None` if unknown.
    pub fn covers(self, need: CudaVersion) -> Option<bool> {
        if self.least.is_some_and(|least| least >= need) {
            Some(true)
        } else if self.most.is_some_and(|most| most < need) {
            Some(false)
        } else {
            None
        }
    }
}

/// The host compilers that an nvcc accepts. `None` means no known limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLimits {
    /// The newest gcc major that it accepts.
    pub gcc_newest: Option<u32>,
    /// The first clang major that it rejects.
    pub clang_below: Option<u32>,
}

/// A row of the arch table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchRow {
    /// `90a`.
    pub arch: Arch,
    /// The compute capability of the GPUs it is named after.
    pub cc: Cc,
    /// The first release that supports it; 7.0 means 7.0 or older.
    pub first: CudaVersion,
    /// The last release that supports it; `None`: the newest still does.
    pub last: Option<CudaVersion>,
    /// True for a part of a Jetson or Drive.
    pub tegra: bool,
}

/// A row of the toolkit table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolkitRow {
    /// The release, without its update.
    pub version: CudaVersion,
    /// The PTX ISA that its nvcc writes.
    pub ptx: (u32, u32),
    /// The driver that it came with.
    pub driver: Option<DriverRelease>,
    /// The driver for Windows that it came with.
    pub windows: Option<DriverRelease>,
    /// The arch that nvcc compiles for by default.
    pub default_arch: Option<Arch>,
    /// The accepted host compilers.
    pub host: HostLimits,
    /// True for a CUDA version that a driver reports but that no toolkit has.
    pub unreleased: bool,
}

/// A row of the driver table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchRow {
    /// The number before the first dot.
    pub branch: u32,
    /// The oldest CUDA version that it supports.
    pub least: CudaVersion,
    /// True if that is also the newest.
    pub exact: bool,
    /// The newest, if it is known to be newer.
    pub most: Option<CudaVersion>,
}

#[derive(Debug)]
struct ArchTable {
    rows: &'static [ArchRow],
    families: &'static [&'static [Cc]],
    renamed: &'static [(Cc, Cc)],
}

#[derive(Debug)]
struct GpuTable {
    products: &'static [(Cc, &'static [&'static str])],
    chips: &'static [(Cc, &'static [&'static str])],
    /// NVIDIA's names of products with a PCI device id.
    listed: &'static [(Cc, &'static [&'static str])],
}

#[derive(Debug)]
struct Toolkits {
    rows: &'static [ToolkitRow],
    older_ptx: &'static [((u32, u32), CudaVersion)],
}

#[derive(Debug)]
struct Drivers {
    branches: &'static [BranchRow],
    cudart: &'static [(u32, Floor)],
    /// The releases of these floors: for Linux, for Windows.
    cudart_on_windows: &'static [(DriverRelease, DriverRelease)],
    zstandard: &'static [(u32, Floor)],
    left: &'static [(Cc, u32)],
    compat: &'static [(CudaVersion, &'static [u32])],
}

include!("tables/rows.rs");

/// Returns every arch in the table, oldest first.
pub fn arch_rows() -> &'static [ArchRow] {
    ARCHS.rows
}

/// Returns every toolkit in the table, oldest first, including the one that was never released.
pub fn toolkit_rows() -> &'static [ToolkitRow] {
    TOOLKITS.rows
}

/// Returns the date of the newest fact in the tables.
pub const fn date() -> &'static str {
    DATE
}

/// Returns every driver branch in the table, oldest first.
pub fn branch_rows() -> &'static [BranchRow] {
    DRIVERS.branches
}

/// Returns whether the toolkit compiles machine code, or PTX, for an arch. (So far each release supports both or
/// neither.)
pub fn can_make(toolkit: Version, target: Target) -> CcSupport {
    let toolkit = CudaVersion::from(toolkit);
    let arch = target.base_arch();
    let rows = arch_rows();
    if let Some(row) = rows.iter().find(|row| row.arch == arch) {
        return match row.last {
            _ if toolkit < row.first => CcSupport::TooNew { first: Some(row.first) },
            Some(last) if toolkit > last => CcSupport::Dropped { last: Some(last) },
            _ => CcSupport::Made,
        };
    }
    let known = toolkit_rows()
        .first()
        .zip(toolkit_rows().last())
        .is_some_and(|(first, last)| (first.version..=last.version).contains(&toolkit));
    if !known {
        CcSupport::Unknown
    } else if rows.first().is_some_and(|oldest| arch.number < oldest.arch.number) {
        CcSupport::Dropped { last: None }
    } else {
        CcSupport::TooNew { first: None }
    }
}

/// Returns the first and the last toolkit that compile code for GPUs of all these compute capabilities; `None`: no
/// limit.
pub fn compiling_toolkits(ccs: impl IntoIterator<Item = Cc>) -> (Option<CudaVersion>, Option<CudaVersion>) {
    let (mut from, mut to) = (None, None);
    for cc in ccs {
        let Some(row) = arch_rows().iter().find(|row| row.cc == cc && row.arch.suffix == Suffix::None) else {
            continue;
        };
        from = from.max(Some(row.first));
        to = [to, row.last].into_iter().flatten().min();
    }
    (from, to)
}

/// Returns the code to add for a GPU of this cc: `sm_90`, or `PTX` if no known toolkit compiles machine code for it.
pub fn code_to_add(cc: Cc) -> String {
    if arch_rows().iter().any(|row| row.cc == cc) { format!("sm_{}{}", cc.0, cc.1) } else { "PTX".to_owned() }
}

/// Returns the archs without suffix that the toolkit supports, oldest first.
fn plain_archs(toolkit: Version) -> Vec<Arch> {
    let plain = arch_rows().iter().map(|row| row.arch).filter(|arch| arch.suffix == Suffix::None);
    plain.filter(|arch| can_make(toolkit, Target::Cubin(*arch)) == CcSupport::Made).collect::<Vec<_>>()
}

/// Returns the newest PTX of this toolkit that the driver can compile for a GPU of this cc, for GPUs for which the
/// toolkit cannot compile machine code; `None` if there is none.
pub fn only_ptx(toolkit: Version, cc: Cc) -> Option<Arch> {
    plain_archs(toolkit).into_iter().rfind(|arch| arch.cc() <= cc)
}

/// Returns the meaning of `all` for this toolkit (nvcc's `-arch=all`, CMake's `all`): machine code of every arch
/// without suffix, and PTX of the first arch of the newest major. Measured with nvcc 11.8, 13.0, 13.2 and 13.5.
pub fn expand_all(toolkit: Version) -> Vec<Target> {
    with_newest_ptx(&plain_archs(toolkit), |_| true)
}

/// Returns the meaning of `all-major` for this toolkit: the oldest arch, the first of each major, and PTX of the first
/// arch of the newest major. Measured like [`expand_all`].
pub fn expand_all_major(toolkit: Version) -> Vec<Target> {
    let archs = plain_archs(toolkit);
    with_newest_ptx(&archs, |arch| arch.cc().1 == 0 || Some(&arch) == archs.first())
}

fn with_newest_ptx(archs: &[Arch], is_included: impl Fn(Arch) -> bool) -> Vec<Target> {
    let mut targets = Vec::new();
    for arch in archs {
        if is_included(*arch) {
            targets.push(Target::Cubin(*arch));
        }
    }
    let newest = archs.last().and_then(|last| archs.iter().find(|arch| arch.cc().0 == last.cc().0));
    targets.extend(newest.map(|arch| Target::Ptx(*arch)));
    targets
}

/// Returns the row of exactly this toolkit.
fn toolkit_row(toolkit: CudaVersion) -> Option<&'static ToolkitRow> {
    toolkit_rows().iter().find(|row| row.version == toolkit)
}

/// Returns the arch for which nvcc compiles machine code and PTX by default. A toolkit that is newer than the table has
/// the default of the newest one.
pub fn default_arch(toolkit: Version) -> Option<Arch> {
    toolkit_rows().iter().rev().filter(|row| row.version <= toolkit.into()).find_map(|row| row.default_arch)
}

/// Returns the host compilers that the toolkit's nvcc accepts. A toolkit that is not in the table has no limits.
pub fn host_compiler(toolkit: Version) -> HostLimits {
    toolkit_row(toolkit.into()).map(|row| row.host).unwrap_or_default()
}

/// Returns the PTX ISA that the toolkit's nvcc writes; `None` if the toolkit is not in the table.
pub fn ptx_isa(toolkit: Version) -> Option<(u32, u32)> {
    toolkit_row(toolkit.into()).map(|row| row.ptx)
}

/// Returns the driver that compiles PTX of this ISA: the oldest CUDA version whose toolkit writes it. An ISA that is
/// newer than the table needs a driver that is newer than every row; nothing else is known (docs/internals/decisions,
/// decision 38).
pub fn ptx_floor(isa: (u32, u32)) -> Floor {
    let table = TOOLKITS;
    let oldest = table.rows.first().map_or((0, 0), |row| row.ptx);
    if isa < oldest {
        // Every driver in use supports the oldest ISA of the table.
        let cuda = table.older_ptx.iter().find(|(known, _)| *known >= isa).map(|&(_, cuda)| cuda);
        if let Some(cuda) = cuda {
            return Floor { cuda, release: first_release(cuda), exact: true };
        }
    }
    if let Some(row) = table.rows.iter().find(|row| row.ptx >= isa) {
        return Floor { cuda: row.version, release: row.driver, exact: true };
    }
    // No driver of the table compiles it; the next one may.
    let newest = table.rows.last().map_or(CudaVersion::new(0, 0), |row| row.version);
    Floor { cuda: CudaVersion::new(newest.major, newest.minor + 1), release: None, exact: false }
}

/// Returns the oldest PTX ISA whose driver supports this CUDA version; `None` if the table has none, or if it is not a
/// valid ISA.
pub fn isa_of_driver(cuda: CudaVersion) -> Option<(u8, u8)> {
    let table = TOOLKITS;
    let rows = table.older_ptx.iter().copied().chain(table.rows.iter().map(|row| (row.ptx, row.version)));
    let (major, minor) = rows.map(|((major, minor), _)| (major, minor)).find(|isa| ptx_floor(*isa).cuda >= cuda)?;
    Some((u8::try_from(major).ok()?, u8::try_from(minor).ok()?)).filter(|(major, minor)| *major < 16 && *minor < 16)
}

/// The driver from which PTX that is newer than the tables certainly compiles: none is known (docs/internals/decisions,
/// decision 38).
pub const NO_DRIVER_KNOWN: (CudaVersion, DriverRelease) = (CudaVersion::new(99, 0), DriverRelease::new(0, 0, 0));

/// Returns the driver that supports the complete version of a toolkit: the minimum for its PTX if the ISA is unknown.
pub fn toolkit_floor(toolkit: Version) -> Floor {
    let cuda = toolkit.into();
    Floor { cuda, release: first_release(cuda), exact: true }
}

/// The oldest release that is known to support a CUDA version.
pub fn first_release(cuda: CudaVersion) -> Option<DriverRelease> {
    if let Some(row) = toolkit_row(cuda) {
        return row.driver;
    }
    let branch = branch_rows().iter().find(|row| row.exact && row.least >= cuda)?;
    Some(DriverRelease::new(branch.branch, 0, 0))
}

/// Returns the driver that a libcudart needs: any of the same major (minor version compatibility); for CUDA 10 and
/// older, the exact version. A major that is not in the table needs `major.0`, by the same rule.
pub fn cudart_floor(cudart: CudaVersion) -> Floor {
    if let Some(&(_, floor)) = DRIVERS.cudart.iter().find(|(major, _)| *major == cudart.major) {
        // The driver that was released with this cudart starts it, even if it is older than the one that NVIDIA
        // documents for the major: 450.51.05 for 11.0, and 450.80.02 for 11.x.
        let own = toolkit_row(cudart).and_then(|row| row.driver);
        Floor { release: own.into_iter().chain(floor.release).min(), ..floor }
    } else if cudart.major < 11 {
        Floor { cuda: cudart, release: first_release(cudart), exact: true }
    } else {
        Floor { cuda: CudaVersion::new(cudart.major, 0), release: None, exact: true }
    }
}

/// Returns the minimum drivers of the two newest majors of cudart, the older one first.
pub fn newest_cudart_floors() -> [Floor; 2] {
    let newest = DRIVERS.cudart.iter().map(|(major, _)| *major).max().unwrap_or_default();
    [newest.saturating_sub(1), newest].map(|major| cudart_floor(CudaVersion::new(major, 0)))
}

/// Returns the driver that unpacks Zstandard-compressed entries of a toolkit of this major; `None` if unknown.
pub fn zstandard_floor(toolkit_major: u32) -> Option<Floor> {
    DRIVERS.zstandard.iter().find(|(major, _)| *major == toolkit_major).map(|&(_, floor)| floor)
}

/// Returns the CUDA version that a driver release supports: that of its branch, or an interval from the neighbouring
/// branches, because newer branches never support less.
pub fn driver_supports(release: DriverRelease) -> Supports {
    let rows = branch_rows();
    if let Some(row) = rows.iter().find(|row| row.branch == release.branch) {
        return Supports { least: Some(row.least), most: row.most.or(row.exact.then_some(row.least)) };
    }
    let older = rows.iter().rev().find(|row| row.branch < release.branch);
    let newer = rows.iter().find(|row| row.branch > release.branch && row.exact);
    Supports { least: older.map(|row| row.least), most: newer.map(|row| row.least) }
}

/// Returns the oldest driver release for Windows that supports a CUDA version; `linux` is that for Linux. If the table has none, the
/// branch is known.
pub fn windows_release(cuda: CudaVersion, linux: DriverRelease) -> DriverRelease {
    let of_cudart = DRIVERS.cudart_on_windows.iter().find(|(release, windows)| [release, windows].contains(&&linux));
    of_cudart.map(|(_, windows)| *windows).or_else(|| toolkit_row(cuda)?.windows).unwrap_or(DriverRelease::new(
        linux.branch,
        0,
        0,
    ))
}

/// Returns a driver release for Windows as one for Linux of the same branch. The numbers of Windows grow within a branch: 572.83 is of
/// branch 570, 581.57 of branch 580. A release that may be of a branch after the table remains as it is.
pub fn branch_of_windows(release: DriverRelease) -> DriverRelease {
    /// From this distance on, a number after the last row may be of a later branch.
    const NUMBERS: u32 = 5;
    let branches = branch_rows().iter().map(|row| row.branch).filter(|branch| *branch != DriverRelease::JETPACK);
    let newest = branches.clone().max().unwrap_or_default();
    match branches.rev().find(|branch| *branch <= release.branch) {
        Some(own) if own < newest || release.branch < own + NUMBERS => DriverRelease::new(own, 0, 0),
        _ => release,
    }
}

/// Returns the compute capabilities below which a branch is the last one, in ascending order.
pub fn last_branches() -> Vec<(Cc, u32)> {
    let mut all: Vec<(Cc, u32)> = DRIVERS.left.to_vec();
    all.sort_unstable();
    all
}

/// Returns the last branch that supports GPUs of this cc; `None` if the newest does, or for a Tegra.
pub fn last_branch(gpu: Cc) -> Option<u32> {
    DRIVERS.left.iter().filter(|_| !is_tegra(gpu)).filter(|(below, _)| gpu < *below).map(|(_, last)| *last).min()
}

/// Returns the first drivers that support GPUs of this cc: those of the CUDA version whose toolkit first compiled code
/// for them, since the PTX compiler of a driver is that of the toolkit. `None` if all drivers in use support them, if
/// the cc is not in the table, or for a Tegra.
pub fn first_driver(gpu: Cc) -> Option<Floor> {
    let rows = arch_rows().iter().filter(|row| row.cc == gpu && !row.tegra);
    let first = rows.map(|row| row.first).min()?;
    // The table begins there: "or older".
    let begin = arch_rows().iter().map(|row| row.first).min();
    (Some(first) > begin).then(|| Floor { cuda: first, release: first_release(first), exact: true })
}

/// Returns the first drivers that support any GPU of this one's generation. Within a generation, updates of a branch
/// may have added GPUs that its first release does not support.
pub fn first_of_generation(gpu: Cc) -> Option<Floor> {
    first_driver((gpu.0, 0)).filter(|_| !is_tegra(gpu))
}

/// Returns the branches of kernel modules for which NVIDIA documents cuda-compat of this CUDA version. Others may work:
/// the list omits branches that are no longer supported.
pub fn compat_kernels(cuda: CudaVersion) -> &'static [u32] {
    DRIVERS.compat.iter().find(|(known, _)| *known == cuda).map_or(&[], |(_, kernels)| kernels)
}

#[cfg(test)]
pub(crate) mod tests;
