//! GPU coverage of device code, and the manifest rows that encode it.

use std::cmp::Ordering;

use crate::coverage::compatibility::Compatibility;
use crate::knowledge::tables::{self, Floor};
use crate::manifest::model::{GpuCoverage, PtxFallback, Requirement};
use crate::model::arch::Target;
use crate::text::lists::IteratorExt as _;

/// The kind of coverage of a compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coverage {
    /// Machine code in every container.
    Cubin,
    /// Code in every container, in at least one only PTX that the driver compiles.
    Ptx,
    /// At least one container is unknown, and it is unknown whether another serves it, or lacks code.
    Unknown,
    /// Code in some containers.
    Partial,
    /// No code in any container.
    Nothing,
}

impl Coverage {
    /// Returns `cubin`, `ptx`, `unknown`, `partial` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Ptx => "ptx",
            Self::Unknown => "unknown",
            Self::Partial => "partial",
            Self::Nothing => "none",
        }
    }
}

/// The coverage of one compute capability, and its requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSupport {
    /// The kind of coverage.
    pub by: Coverage,
    /// The weakest code that such a GPU uses: PTX before machine code, then the oldest arch.
    pub code: Option<Target>,
    /// The newest PTX ISA that the driver must compile for it.
    pub isa: Option<(u16, u16)>,
    /// The ISA of PTX text outside of containers, if it needs a newer driver than the code in the containers, or if no
    /// container has code.
    pub text: Option<(u16, u16)>,
    /// The driver requirement: PTX ISA and compression of the entries that such a GPU uses, and PTX text next to them.
    pub floor: Option<Floor>,
    /// The driver from which the code certainly loads. A driver that is older than the toolkit's major may or may not
    /// load its machine code, and no driver is known to compile PTX that is newer than the tables.
    pub guaranteed_from: Option<Floor>,
    /// The PTX next to the machine code that such a GPU uses.
    pub ptx_fallback: PtxFallback,
    /// Of unknown coverage: a container is known to lack code.
    pub lacks: bool,
}

/// Code that a GPU may use, with the inputs of its driver requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceCode {
    /// It runs on some GPUs.
    Run {
        /// The target that it was compiled for.
        target: Target,
        /// The ISA of PTX; (0, 0) for a cubin.
        isa: (u16, u16),
        /// CUDA major of the Zstandard compression.
        zstd: Option<u32>,
        /// CUDA major that compiled machine code, if its file shows it.
        wrote: Option<u32>,
    },
    /// An unknown or damaged kind.
    Unknown,
}

/// The code of one unit that a GPU uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BestCode {
    /// This code.
    Run {
        /// The target that it was compiled for.
        target: Target,
        /// The ISA of PTX; (0, 0) for a cubin.
        isa: (u16, u16),
        /// The driver that it needs.
        floor: Option<Floor>,
        /// CUDA major that compiled machine code, if its file shows it.
        wrote: Option<u32>,
    },
    /// Code of an unknown kind may serve it.
    Unknown,
    /// No code serves it.
    Nothing,
}

/// Selects the best of these that a GPU runs: the newest arch, then the narrowest suffix.
pub fn best_code(codes: &[DeviceCode], cc: (u8, u8), ptx: bool) -> BestCode {
    let mut unknown = false;
    let mut found: Option<DeviceCode> = None;
    for code in codes {
        let DeviceCode::Run { target, .. } = *code else {
            unknown = true;
            continue;
        };
        if matches!(target, Target::Ptx(_)) != ptx {
            continue;
        }
        match target.compatibility_with(cc) {
            Compatibility::Yes if found.as_ref().and_then(target_of).is_none_or(|best| best < target) => {
                found = Some(*code);
            }
            Compatibility::CannotTell => unknown = true,
            _ => {}
        }
    }
    match found {
        Some(DeviceCode::Run { target, isa, zstd, wrote }) => {
            let compiled = ptx.then(|| tables::ptx_floor((isa.0.into(), isa.1.into())));
            let unpacked = zstd.and_then(tables::zstandard_floor);
            BestCode::Run { target, isa, floor: higher_floor(compiled, unpacked), wrote }
        }
        _ if unknown => BestCode::Unknown,
        _ => BestCode::Nothing,
    }
}

/// Names of architectures have one digit for the minor, so nothing changes above this one.
const BEYOND: u8 = 10;

/// Returns every compute capability that can make a difference, up to one major above all tables and all code.
pub fn all_ccs(targets: &[Target]) -> impl Iterator<Item = (u8, u8)> {
    let mut ccs = known_ccs();
    for target in targets {
        ccs.push(target.base_arch().cc());
    }
    let last = ccs.iter().max().map_or(0, |(major, _)| *major).saturating_add(1);
    (0..=last).flat_map(|major| (0..=BEYOND).map(move |minor| (major, minor)))
}

/// Returns one row for each interval of compute capabilities with the same coverage, from 0.0 on, without gaps. An
/// interval that ends with a major ends at minor 255. `targets` are the targets with code.
pub fn requirement_rows(targets: &[Target], service: impl Fn((u8, u8)) -> GpuSupport) -> Vec<Requirement> {
    let mut rows: Vec<Interval> = Vec::new();
    for (major, minor) in all_ccs(targets) {
        let to = (major, if minor == BEYOND { u8::MAX } else { minor });
        let service = row_key(service((major, minor)));
        match rows.last_mut() {
            Some(row) if row.service == service => row.to = to,
            _ => rows.push(Interval { from: (major, minor), to, service }),
        }
    }
    let count = rows.len();
    let rows = rows.into_iter().enumerate().map(|(at, Interval { from, to, service })| Requirement::Gpu {
        from,
        to: (at + 1 < count).then_some(to),
        by: match service.by {
            Coverage::Cubin => GpuCoverage::Cubin,
            Coverage::Ptx => GpuCoverage::Ptx,
            Coverage::Partial if matches!(service.code, Some(Target::Ptx(_))) => GpuCoverage::PartialPtx,
            Coverage::Partial => GpuCoverage::Partial,
            Coverage::Unknown => match service.code {
                Some(Target::Ptx(_)) => GpuCoverage::AtLeastPartialPtx,
                Some(Target::Cubin(_)) => GpuCoverage::AtLeastPartial,
                None if service.lacks => GpuCoverage::AtMostPartial,
                None => GpuCoverage::Unknown,
            },
            Coverage::Nothing => GpuCoverage::Nothing,
        },
        code: describe_code(service),
        cuda: service.floor.map(|floor| floor.cuda),
        release: service.floor.and_then(|floor| floor.release),
        guaranteed_from: match service.floor {
            Some(Floor { exact: false, .. }) => Some(tables::NO_DRIVER_KNOWN),
            _ => service.guaranteed_from.and_then(|floor| Some((floor.cuda, floor.release?))),
        },
        ptx_fallback: service.ptx_fallback,
    });
    rows.collect::<Vec<_>>()
}

/// Returns the code that such a GPU uses: `sm_90`, `sm_90 and PTX text 9.5`, `PTX text 9.5`.
fn describe_code(service: GpuSupport) -> String {
    let code = service.code.map(|code| code.to_string());
    let text = service.text.map(|(major, minor)| format!("PTX text {major}.{minor}"));
    code.into_iter().chain(text).join(" and ")
}

/// Returns the rows of declared architectures: one container with all of them and PTX of this ISA.
pub fn declared_rows(targets: &[Target], isa: (u32, u32)) -> Vec<Requirement> {
    if targets.is_empty() {
        return Vec::new();
    }
    let isa = (u16::try_from(isa.0).unwrap_or_default(), u16::try_from(isa.1).unwrap_or_default());
    let codes = targets.iter().map(|target| {
        let isa = if matches!(target, Target::Ptx(_)) { isa } else { (0, 0) };
        DeviceCode::Run { target: *target, isa, zstd: None, wrote: None }
    });
    let codes = codes.collect::<Vec<_>>();
    requirement_rows(targets, |cc| {
        let (cubin, ptx) = (best_code(&codes, cc, false), best_code(&codes, cc, true));
        let used = if matches!(cubin, BestCode::Run { .. }) { cubin } else { ptx };
        let mut support = GpuSupport {
            by: if [cubin, ptx].contains(&BestCode::Unknown) { Coverage::Unknown } else { Coverage::Nothing },
            code: None,
            isa: None,
            text: None,
            floor: None,
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
            lacks: false,
        };
        if let BestCode::Run { target, isa, floor, .. } = used {
            let is_ptx = matches!(target, Target::Ptx(_));
            support.by = if is_ptx { Coverage::Ptx } else { Coverage::Cubin };
            support.isa = is_ptx.then_some(isa);
            support.code = Some(target);
            support.floor = floor;
            support.ptx_fallback = PtxFallback::from_codes(&[ptx], support.by, floor);
        }
        support
    })
}

/// An interval of compute capabilities with the same coverage, ends included.
struct Interval {
    from: (u8, u8),
    to: (u8, u8),
    service: GpuSupport,
}

/// Removes the facts that no row encodes. Intervals are merged by the others.
fn row_key(service: GpuSupport) -> GpuSupport {
    let ptx_fallback = if service.code.is_none() { PtxFallback::Undetermined } else { service.ptx_fallback };
    GpuSupport { isa: None, ptx_fallback, lacks: service.lacks && service.code.is_none(), ..service }
}

impl PtxFallback {
    /// Combines the PTX of the containers that cover a GPU. `floor`: the requirement of the code that is used without
    /// the variable.
    pub fn from_codes(ptx: &[BestCode], by: Coverage, floor: Option<Floor>) -> Self {
        if by != Coverage::Ptx && ptx.iter().all(|found| *found == BestCode::Nothing) {
            return Self::Nothing;
        }
        let undetermined = if by == Coverage::Ptx { Self::Nothing } else { Self::Undetermined };
        let mut needs = None;
        for found in ptx {
            match found {
                BestCode::Run { floor: Some(floor), .. } => needs = higher_floor(needs, Some(*floor)),
                _ => return undetermined,
            }
        }
        let Some(needs) = needs else { return undetermined };
        if by == Coverage::Ptx && floor.is_some_and(|floor| needs.cuda <= floor.cuda) {
            return Self::Undetermined;
        }
        needs.exact.then(|| tables::isa_of_driver(needs.cuda)).flatten().map_or(undetermined, Self::Isa)
    }
}

/// The target that this code is for.
pub fn target_of(code: &DeviceCode) -> Option<Target> {
    match code {
        DeviceCode::Run { target, .. } => Some(*target),
        DeviceCode::Unknown => None,
    }
}

/// Returns the driver that meets both requirements: the one with the newer CUDA version, with its release if the
/// tables have it. The release of an older CUDA version would not satisfy it.
pub fn higher_floor(one: Option<Floor>, other: Option<Floor>) -> Option<Floor> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    Some(match one.cuda.cmp(&other.cuda) {
        Ordering::Greater => one,
        Ordering::Less => other,
        Ordering::Equal => Floor { release: one.release.max(other.release), exact: one.exact && other.exact, ..one },
    })
}

/// Returns every compute capability in the tables.
pub fn known_ccs() -> Vec<(u8, u8)> {
    tables::arch_rows().iter().map(|row| row.cc).collect::<Vec<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_code_rows_match_linked_file() {
        for (names, isa, wanted) in [
            (
                &["sm_80"][..],
                (9, 0),
                "0.0 to 7.255 by none; 8.0 to 8.6 by cubin sm_80; 8.7 by none; 8.8 to 8.255 by cubin sm_80; 9.0 on by none",
            ),
            (&["compute_80"], (9, 0), "0.0 to 7.255 by none; 8.0 on by ptx compute_80 from 13.0"),
            (
                &["sm_90a", "compute_80"],
                (8, 0),
                "0.0 to 7.255 by none; 8.0 to 8.255 by ptx compute_80 from 12.0; 9.0 by cubin sm_90a; 9.1 on by ptx compute_80 from 12.0",
            ),
            (&[], (9, 0), ""),
        ] {
            let targets: Vec<Target> = names.iter().map(|name| name.parse().unwrap()).collect();
            let rows: Vec<String> = declared_rows(&targets, isa).iter().map(words).collect();
            assert_eq!(rows.join("; "), wanted, "{names:?}");
        }
    }

    #[test]
    fn suggested_release_serves_all_gpus() {
        let zstd = tables::zstandard_floor(13);
        let newer = higher_floor(Some(tables::ptx_floor((99, 0))), zstd).expect("one of them is there");
        assert!(zstd.is_some_and(|zstd| zstd.release.is_some() && zstd.cuda < newer.cuda));
        assert_eq!((newer.release, newer.exact), (None, false));
        let same = higher_floor(Some(tables::ptx_floor((9, 0))), zstd).expect("one of them is there");
        assert_eq!(same.release, tables::ptx_floor((9, 0)).release.max(zstd.and_then(|zstd| zstd.release)));
    }

    #[test]
    fn ptx_fallback_uses_best_code() {
        let ptx = |isa: (u16, u16), zstd: Option<u32>| {
            let code = DeviceCode::Run { target: "compute_80".parse().unwrap(), isa, zstd, wrote: None };
            best_code(&[code], (9, 0), true)
        };
        let of = |found: &[BestCode]| PtxFallback::from_codes(found, Coverage::Cubin, None);
        for (found, ptx_fallback) in [
            (vec![BestCode::Nothing], PtxFallback::Nothing),
            (vec![ptx((8, 4), None)], PtxFallback::Isa((8, 4))),
            (vec![ptx((7, 0), None), ptx((8, 2), None)], PtxFallback::Isa((8, 2))),
            // Compression can need a newer driver than the code.
            (vec![ptx((7, 0), Some(12))], PtxFallback::Isa((8, 4))),
            (vec![ptx((7, 0), None), BestCode::Nothing], PtxFallback::Undetermined),
            (vec![ptx((99, 0), None)], PtxFallback::Undetermined),
            (vec![BestCode::Unknown], PtxFallback::Undetermined),
        ] {
            assert_eq!(of(&found), ptx_fallback, "{found:?}");
        }
        // For GPUs with PTX coverage: the additional requirement of the variable.
        for (found, ptx_fallback) in [
            (vec![ptx((8, 2), None)], PtxFallback::Undetermined),
            (vec![ptx((8, 2), None), ptx((7, 0), None)], PtxFallback::Undetermined),
            (vec![ptx((8, 2), None), ptx((8, 4), None)], PtxFallback::Isa((8, 4))),
            (vec![ptx((8, 2), None), ptx((99, 0), None)], PtxFallback::Nothing),
            (vec![ptx((8, 2), None), BestCode::Nothing], PtxFallback::Nothing),
            (vec![ptx((8, 2), None), BestCode::Unknown], PtxFallback::Nothing),
        ] {
            let floor = tables::ptx_floor((8, 2));
            assert_eq!(PtxFallback::from_codes(&found, Coverage::Ptx, Some(floor)), ptx_fallback, "{found:?}");
        }
    }

    fn words(row: &Requirement) -> String {
        let Requirement::Gpu { from, to, by, code, cuda, .. } = row else { panic!("no row of a GPU: {row:?}") };
        let to = match to {
            None => " on".to_owned(),
            Some(to) if to == from => String::new(),
            Some(to) => format!(" to {}.{}", to.0, to.1),
        };
        let code = if code.is_empty() { String::new() } else { format!(" {code}") };
        let cuda = cuda.map(|cuda| format!(" from {cuda}")).unwrap_or_default();
        format!("{}.{}{to} by {}{code}{cuda}", from.0, from.1, by.name())
    }
}
