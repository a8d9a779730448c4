//! By what GPUs are served, and the rows that a note has of it.

use std::cmp::Ordering;

use crate::arch::Target;
use crate::manifest::{GpuCoverage, PtxFallback, Requirement};
use crate::serves::Compatibility;
use crate::tables::{self, Floor};

/// How GPUs of a compute capability are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coverage {
    /// By machine code in every container.
    Cubin,
    /// By every container, at least one of them through PTX that the driver compiles first.
    Ptx,
    /// No container is known to leave it out, but for one at least nobody can tell.
    Unknown,
    /// By some containers, not by others.
    Partial,
    /// By none.
    Nothing,
}

impl Coverage {
    /// `cubin`, `ptx`, `unknown`, `partial`, `none`.
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

/// How one compute capability is served, and at what price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// By what.
    pub by: Coverage,
    /// The weakest code that a GPU of this kind uses: PTX before machine code, then the oldest arch.
    pub code: Option<Target>,
    /// The newest PTX ISA that the driver must compile for it.
    pub isa: Option<(u16, u16)>,
    /// What the driver must support for it: PTX ISA and compression of the entries that such a GPU uses.
    pub floor: Option<Floor>,
    /// From which driver on it is sure that the code loads: one that is older than the major of the toolkit that wrote machine
    /// code may know its ELF ABI, or not; which one compiles PTX newer than the tables, nobody knows.
    pub sure_from: Option<Floor>,
    /// The PTX beside the machine code that serves it.
    pub beside: PtxFallback,
}

/// One thing that a GPU may use, with what the driver's floor depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Code {
    Run {
        target: Target,
        /// Of PTX; (0, 0) of a cubin.
        isa: (u16, u16),
        /// CUDA major of the Zstandard compression.
        zstd: Option<u32>,
        /// CUDA major of machine code, where it is of 13 or newer: older code does not tell.
        wrote: Option<u32>,
    },
    /// Of a kind that nobody here knows, or damaged.
    Unknown,
}

/// What a GPU finds in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Run { target: Target, isa: (u16, u16), floor: Option<Floor>, wrote: Option<u32> },
    Unknown,
    Nothing,
}

/// The best of these that a GPU runs: the newest arch, the narrowest suffix.
pub(crate) fn best(codes: &[Code], cc: (u8, u8), ptx: bool) -> Found {
    let mut unknown = false;
    let mut found: Option<Code> = None;
    for code in codes {
        let Code::Run { target, .. } = *code else {
            unknown = true;
            continue;
        };
        if matches!(target, Target::Ptx(_)) != ptx {
            continue;
        }
        match target.serves(cc) {
            Compatibility::Yes if found.as_ref().and_then(target_of).is_none_or(|best| best < target) => {
                found = Some(*code);
            }
            Compatibility::CannotTell => unknown = true,
            _ => {}
        }
    }
    match found {
        Some(Code::Run { target, isa, zstd, wrote }) => {
            let compiled = ptx.then(|| tables::ptx_floor((isa.0.into(), isa.1.into())));
            let unpacked = zstd.and_then(tables::zstandard_floor);
            Found::Run { target, isa, floor: higher(compiled, unpacked), wrote }
        }
        _ if unknown => Found::Unknown,
        _ => Found::Nothing,
    }
}

/// No arch's name can say a minor above 9, so from this one on nothing changes any more.
const BEYOND: u8 = 10;

/// Every compute capability that can make a difference, up to one major beyond all that is known or that there is code for.
pub(crate) fn all_ccs(targets: &[Target]) -> impl Iterator<Item = (u8, u8)> {
    let newest = known_ccs().into_iter().chain(targets.iter().map(|target| target.arch().cc()));
    let last = newest.map(|(major, _)| major).max().unwrap_or_default().saturating_add(1);
    (0..=last).flat_map(|major| (0..=BEYOND).map(move |minor| (major, minor)))
}

/// One row for each interval of compute capabilities that is served alike, from 0.0 on, without gaps: an interval
/// ends at minor 255 where it ends with a major. `targets` are those that there is code for.
pub(crate) fn rows(targets: &[Target], service: impl Fn((u8, u8)) -> Service) -> Vec<Requirement> {
    let mut rows: Vec<Interval> = Vec::new();
    for (major, minor) in all_ccs(targets) {
        let to = (major, if minor == BEYOND { u8::MAX } else { minor });
        let service = alike(service((major, minor)));
        match rows.last_mut() {
            Some(row) if row.service == service => row.to = to,
            _ => rows.push(Interval { from: (major, minor), to, service }),
        }
    }
    let count = rows.len();
    let row = |(at, Interval { from, to, service }): (usize, Interval)| Requirement::Gpu {
        from,
        to: (at + 1 < count).then_some(to),
        by: match service.by {
            Coverage::Cubin => GpuCoverage::Cubin,
            Coverage::Ptx => GpuCoverage::Ptx,
            Coverage::Partial if matches!(service.code, Some(Target::Ptx(_))) => GpuCoverage::PartialPtx,
            Coverage::Partial => GpuCoverage::Partial,
            Coverage::Unknown => GpuCoverage::Unknown,
            Coverage::Nothing => GpuCoverage::Nothing,
        },
        code: service.code.map(|code| code.to_string()).unwrap_or_default(),
        cuda: service.floor.map(|floor| floor.cuda),
        release: service.floor.and_then(|floor| floor.release),
        sure_from: match service.floor {
            Some(Floor { exact: false, .. }) => Some(tables::NO_DRIVER_KNOWN),
            _ => service.sure_from.and_then(|floor| Some((floor.cuda, floor.release?))),
        },
        beside: service.beside,
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// The rows of code that a builder declares: one container with all of these, its PTX of this ISA.
pub(crate) fn declared(targets: &[Target], isa: (u32, u32)) -> Vec<Requirement> {
    let narrow = |number: u32| u16::try_from(number).unwrap_or_default();
    let run = |target: &Target| {
        let isa = if matches!(target, Target::Ptx(_)) { (narrow(isa.0), narrow(isa.1)) } else { (0, 0) };
        Code::Run { target: *target, isa, zstd: None, wrote: None }
    };
    let codes: Vec<Code> = targets.iter().map(run).collect();
    if codes.is_empty() {
        return Vec::new();
    }
    rows(targets, |cc| {
        let (cubin, ptx) = (best(&codes, cc, false), best(&codes, cc, true));
        let used = if matches!(cubin, Found::Run { .. }) { cubin } else { ptx };
        if let Found::Run { target, isa, floor, .. } = used {
            let (by, isa) = match target {
                Target::Ptx(_) => (Coverage::Ptx, Some(isa)),
                Target::Cubin(_) => (Coverage::Cubin, None),
            };
            let beside = PtxFallback::of(&[ptx], by, floor);
            Service { by, code: Some(target), isa, floor, sure_from: None, beside }
        } else {
            let by = if [cubin, ptx].contains(&Found::Unknown) { Coverage::Unknown } else { Coverage::Nothing };
            Service { by, code: None, isa: None, floor: None, sure_from: None, beside: PtxFallback::Untold }
        }
    })
}

/// Makes one row of two neighbours that say the same of their GPUs; whether they do.
pub(crate) fn join(row: &mut Requirement, next: &Requirement) -> bool {
    let mut same = next.clone();
    let (Requirement::Gpu { from: first, to: end, .. }, Requirement::Gpu { from, to, .. }) = (&*row, &mut same) else {
        return false;
    };
    let last = std::mem::replace(to, *end);
    *from = *first;
    if *row != same {
        return false;
    }
    if let Requirement::Gpu { to, .. } = row {
        *to = last;
    }
    true
}

/// Compute capabilities, ends included, that are served alike.
struct Interval {
    from: (u8, u8),
    to: (u8, u8),
    service: Service,
}

/// A service without what no row says: intervals are merged by the rest.
fn alike(service: Service) -> Service {
    let beside =
        if matches!(service.by, Coverage::Unknown | Coverage::Nothing) { PtxFallback::Untold } else { service.beside };
    Service { isa: None, beside, ..service }
}

impl PtxFallback {
    /// Of what the containers that serve have as PTX. `floor`: of what is used without the variable.
    pub(crate) fn of(ptx: &[Found], by: Coverage, floor: Option<Floor>) -> Self {
        if by != Coverage::Ptx && ptx.iter().all(|found| *found == Found::Nothing) {
            return Self::Nothing;
        }
        let untold = if by == Coverage::Ptx { Self::Nothing } else { Self::Untold };
        let floor_of = |found: &Found| match found {
            Found::Run { floor, .. } => *floor,
            Found::Unknown | Found::Nothing => None,
        };
        let floors: Option<Vec<Floor>> = ptx.iter().map(floor_of).collect();
        let Some(needs) = floors.into_iter().flatten().map(Some).fold(None, higher) else { return untold };
        if by == Coverage::Ptx && floor.is_some_and(|floor| needs.cuda <= floor.cuda) {
            return Self::Untold;
        }
        needs.exact.then(|| tables::isa_of_driver(needs.cuda)).flatten().map_or(untold, Self::Isa)
    }
}

pub(crate) fn target_of(code: &Code) -> Option<Target> {
    match code {
        Code::Run { target, .. } => Some(*target),
        Code::Unknown => None,
    }
}

/// PTX before machine code; of the same kind the older arch.
pub(crate) fn weaker(one: Target, other: Target) -> Target {
    match (one, other) {
        (Target::Ptx(_), Target::Cubin(_)) => one,
        (Target::Cubin(_), Target::Ptx(_)) => other,
        _ => one.min(other),
    }
}

/// The driver that meets both: the one that supports the newer CUDA, with the release that is known for that. Of a newer CUDA than
/// the tables have none is, and that of an older one does not serve.
pub(crate) fn higher(one: Option<Floor>, other: Option<Floor>) -> Option<Floor> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    Some(match one.cuda.cmp(&other.cuda) {
        Ordering::Greater => one,
        Ordering::Less => other,
        Ordering::Equal => Floor { release: one.release.max(other.release), exact: one.exact && other.exact, ..one },
    })
}

/// Every compute capability that the tables have.
pub(crate) fn known_ccs() -> Vec<(u8, u8)> {
    tables::archs().iter().map(|row| row.cc).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_declared_code_are_those_of_a_file_that_has_it() {
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
            let rows: Vec<String> = declared(&targets, isa).iter().map(words).collect();
            assert_eq!(rows.join("; "), wanted, "{names:?}");
        }
    }

    #[test]
    fn no_release_is_named_that_serves_only_a_part() {
        let zstd = tables::zstandard_floor(13);
        let newer = higher(Some(tables::ptx_floor((99, 0))), zstd).expect("one of them is there");
        assert!(zstd.is_some_and(|zstd| zstd.release.is_some() && zstd.cuda < newer.cuda));
        assert_eq!((newer.release, newer.exact), (None, false));
        let same = higher(Some(tables::ptx_floor((9, 0))), zstd).expect("one of them is there");
        assert_eq!(same.release, tables::ptx_floor((9, 0)).release.max(zstd.and_then(|zstd| zstd.release)));
    }

    #[test]
    fn the_ptx_beside_machine_code() {
        let ptx = |isa: (u16, u16), zstd: Option<u32>| {
            let code = Code::Run { target: "compute_80".parse().unwrap(), isa, zstd, wrote: None };
            best(&[code], (9, 0), true)
        };
        let of = |found: &[Found]| PtxFallback::of(found, Coverage::Cubin, None);
        for (found, beside) in [
            (vec![Found::Nothing], PtxFallback::Nothing),
            (vec![ptx((8, 4), None)], PtxFallback::Isa((8, 4))),
            (vec![ptx((7, 0), None), ptx((8, 2), None)], PtxFallback::Isa((8, 2))),
            // What it is packed with may ask for a newer driver than what it says.
            (vec![ptx((7, 0), Some(12))], PtxFallback::Isa((8, 4))),
            (vec![ptx((7, 0), None), Found::Nothing], PtxFallback::Untold),
            (vec![ptx((99, 0), None)], PtxFallback::Untold),
            (vec![Found::Unknown], PtxFallback::Untold),
        ] {
            assert_eq!(of(&found), beside, "{found:?}");
        }
        // Where PTX serves, what the variable adds to what that needs anyway.
        for (found, beside) in [
            (vec![ptx((8, 2), None)], PtxFallback::Untold),
            (vec![ptx((8, 2), None), ptx((7, 0), None)], PtxFallback::Untold),
            (vec![ptx((8, 2), None), ptx((8, 4), None)], PtxFallback::Isa((8, 4))),
            (vec![ptx((8, 2), None), ptx((99, 0), None)], PtxFallback::Nothing),
            (vec![ptx((8, 2), None), Found::Nothing], PtxFallback::Nothing),
            (vec![ptx((8, 2), None), Found::Unknown], PtxFallback::Nothing),
        ] {
            let floor = tables::ptx_floor((8, 2));
            assert_eq!(PtxFallback::of(&found, Coverage::Ptx, Some(floor)), beside, "{found:?}");
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
