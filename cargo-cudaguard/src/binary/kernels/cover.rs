//! Computes which GPUs the code of a file supports, by machine code or PTX, and which driver that needs. Uses only what
//! the reader found, without I/O.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Compression, Container, ImageForm, ImageKind, Kernels, Role};
use cudaguard::internal::arch::Target;
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::coverage::requirements::{
    self, BestCode, Coverage, DeviceCode, GpuSupport, best_code, higher_floor, target_of,
};
use cudaguard::internal::manifest::{PtxFallback, Requirement};
use cudaguard::internal::tables::{self, Floor};
use cudaguard::internal::version::CudaVersion;

/// The GPU support for one compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The compute capability.
    pub cc: (u8, u8),
    /// The support by machine code or PTX.
    pub service: GpuSupport,
}

/// Containers that are built for the same targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The targets, sorted.
    pub targets: Vec<Target>,
    /// False if some code cannot be read, or if the file does not show which device link it belongs to.
    pub whole: bool,
    /// Indices in [`Kernels::containers`].
    pub containers: Vec<usize>,
}

/// The device code that containers of the same contents offer to a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct LinkUnit {
    codes: Vec<DeviceCode>,
    /// Relocatable code that a device linker has processed: the PTX that all of these inputs have supports newer GPUs.
    inputs: Arc<[Vec<DeviceCode>]>,
    /// True if the file contains several device links: it does not record which inputs belong to which link.
    shared: bool,
}

/// The distinct units of a file, and the unit of each container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Units {
    distinct: Vec<LinkUnit>,
    of: Vec<Option<u32>>,
}

impl Units {
    pub(super) fn from_kernels(kernels: &Kernels) -> Self {
        let majors = Majors::from_kernels(kernels);
        let mut known: HashMap<LinkUnit, u32> = HashMap::new();
        let mut units = Self { distinct: Vec::new(), of: vec![None; kernels.containers.len()] };

        // Bare images of the same kernels are alternatives: the program selects one of them for its GPU.
        let mut alternatives: HashMap<u64, (Vec<usize>, Vec<DeviceCode>)> = HashMap::new();
        for (at, container) in kernels.containers_with_role(Role::Kernels) {
            let codes = container_codes(kernels, container, &majors);
            if container.kernels == 0 {
                units.put(&mut known, LinkUnit { codes, ..LinkUnit::default() }, &[at]);
            } else {
                let (members, all) = alternatives.entry(container.kernels).or_default();
                members.push(at);
                all.extend(codes);
            }
        }
        let mut alternatives: Vec<_> = alternatives.into_values().collect();
        alternatives.sort_unstable();
        for (members, mut codes) in alternatives {
            codes.sort_unstable();
            codes.dedup();
            units.put(&mut known, LinkUnit { codes, ..LinkUnit::default() }, &members);
        }

        let (input_members, mut inputs): (Vec<usize>, Vec<Vec<DeviceCode>>) = kernels
            .containers_with_role(Role::Input)
            .map(|(at, container)| (at, container_codes(kernels, container, &majors)))
            .unzip();
        inputs.sort_unstable();
        inputs.dedup();
        let inputs: Arc<[Vec<DeviceCode>]> = inputs.into();
        let shared = kernels.containers_with_role(Role::Linked).count() > 1;
        for (at, container) in kernels.containers_with_role(Role::Linked) {
            let codes = container_codes(kernels, container, &majors);
            units.put(&mut known, LinkUnit { codes, inputs: inputs.clone(), shared }, &[at]);
        }
        if kernels.has_linker_input() && !super::is_archive(&kernels.places) {
            units.put(&mut known, LinkUnit { codes: Vec::new(), inputs, shared: false }, &input_members);
        }
        units
    }

    /// Adds containers to a unit. `known` has the number of each unit.
    fn put(&mut self, known: &mut HashMap<LinkUnit, u32>, unit: LinkUnit, members: &[usize]) {
        let next = u32::try_from(self.distinct.len()).unwrap_or(u32::MAX);
        let number = *known.entry(unit).or_insert_with_key(|unit| {
            self.distinct.push(unit.clone());
            next
        });
        for member in members {
            self.of[*member] = Some(number);
        }
    }
}

/// The CUDA major that compressed an entry: its minimum driver depends on it, and no field stores it.
struct Majors {
    /// The major that applies to the entire file.
    file: u32,
}

impl Majors {
    fn from_kernels(kernels: &Kernels) -> Self {
        let mut stated = kernels.containers.iter().filter_map(|container| Self::stated_major(kernels, container));
        let first = stated.next();
        let agreed = first.is_some() && stated.all(|major| Some(major) == first);
        // If undecided, the lower minimum driver is used, which never rejects a machine that works.
        Self { file: first.filter(|_| agreed).unwrap_or(12) }
    }

    /// Infers the CUDA major from a container's images. PTX ISA 9 came with CUDA 13, and so did ELF ABI 8 below arch
    /// 100, and archs 88, 107 and 110; arch 101 ended with CUDA 12.
    fn stated_major(kernels: &Kernels, container: &Container) -> Option<u32> {
        kernels.entries_of(container).iter().find_map(|entry| match entry.kind {
            ImageKind::Ptx | ImageKind::RelocatablePtx => Some(if entry.version.0 >= 9 { 13 } else { 12 }),
            ImageKind::Cubin => match (entry.arch.number, entry.version) {
                (88 | 107 | 110, _) => Some(13),
                (101, _) => Some(12),
                (number, version) if number < 100 => Some(if version >= (1, 8) { 13 } else { 12 }),
                _ => None,
            },
            _ => None,
        })
    }
}

fn container_codes(kernels: &Kernels, container: &Container, majors: &Majors) -> Vec<DeviceCode> {
    let stated = Majors::stated_major(kernels, container);
    let in_header = Some(container.compiled_by).filter(|major| *major > 0);
    let compiled_by = stated.filter(|major| *major > 12).or(in_header);
    let mut codes = Vec::new();
    for entry in kernels.entries_of(container) {
        // A program uses kernels that set conditions only if the driver has such graphs.
        let is_certain = !entry.has_unknown_abi() && !container.sets_conditions;
        let code = match entry.runnable_target().filter(|_| is_certain) {
            Some(target) => {
                let zstd = (entry.compression == Compression::Zstd).then(|| stated.unwrap_or(majors.file));
                let wrote = compiled_by.filter(|_| matches!(target, Target::Cubin(_)));
                DeviceCode::Run { target, isa: entry.driver_isa().unwrap_or_default(), zstd, wrote }
            }
            None if entry.kind == ImageKind::LtoIr => continue,
            None => DeviceCode::Unknown,
        };
        codes.push(code);
    }
    if container.damaged {
        codes.push(DeviceCode::Unknown);
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

impl LinkUnit {
    fn unit_targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.codes.iter().filter_map(target_of).collect();
        if let Some((first, others)) = self.inputs.split_first() {
            let ptx = first.iter().filter_map(target_of).filter(|target| matches!(target, Target::Ptx(_)));
            targets.extend(ptx.filter(|target| {
                others.iter().all(|codes| codes.iter().filter_map(target_of).any(|other| other == *target))
            }));
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    fn for_gpu(&self, cc: (u8, u8)) -> BestCode {
        let cubin = best_code(&self.codes, cc, false);
        if let BestCode::Run { .. } = cubin {
            return cubin;
        }
        let ptx = best_code(&self.codes, cc, true);
        if let BestCode::Run { .. } = ptx {
            return ptx;
        }
        let linked = self.coverage_after_linking(cc);
        if let BestCode::Run { .. } = linked {
            return linked;
        }
        if [cubin, ptx, linked].contains(&BestCode::Unknown) { BestCode::Unknown } else { BestCode::Nothing }
    }

    /// Returns the best code that the driver can produce by linking the inputs again. All of them must have PTX for the
    /// GPU.
    fn coverage_after_linking(&self, cc: (u8, u8)) -> BestCode {
        let mut all = BestCode::Nothing;
        let mut missing = false;
        for (at, input) in self.inputs.iter().enumerate() {
            let found = best_code(input, cc, true);
            let (BestCode::Run { target, isa, floor, .. }, first) = (found, at == 0) else {
                if found == BestCode::Unknown {
                    return found;
                }
                missing = true;
                continue;
            };
            all = match all {
                BestCode::Run { target: other, isa: other_isa, floor: other_floor, .. } => BestCode::Run {
                    target: other.min(target),
                    isa: other_isa.max(isa),
                    floor: higher_floor(other_floor, floor),
                    wrote: None,
                },
                _ if first || missing => found,
                other => other,
            };
        }
        match all {
            BestCode::Run { .. } if missing && self.shared => BestCode::Unknown,
            BestCode::Run { .. } if missing => BestCode::Nothing,
            found => found,
        }
    }
}

impl Kernels {
    /// Returns true if any container has a kernel. Without kernels, a file has no GPU requirements.
    pub fn has_kernels(&self) -> bool {
        !self.units.distinct.is_empty()
    }

    /// Returns true if there is relocatable code that no device linker has processed.
    pub fn has_linker_input(&self) -> bool {
        self.containers_with_role(Role::Input).next().is_some()
            && self.containers_with_role(Role::Linked).next().is_none()
    }

    fn containers_with_role(&self, role: Role) -> impl Iterator<Item = (usize, &Container)> {
        self.containers.iter().enumerate().filter(move |(_, container)| container.role == role)
    }

    /// Returns true for a single bare cubin.
    pub fn is_one_cubin(&self) -> bool {
        matches!(&self.containers[..], [container] if container.form == ImageForm::Cubin)
    }

    /// Returns the newest CUDA major that compiled machine code of this file; `None` if it is unknown.
    pub fn compiled_by(&self) -> Option<u32> {
        let codes = self.units.distinct.iter().flat_map(|unit| &unit.codes);
        codes.filter_map(|code| if let DeviceCode::Run { wrote, .. } = code { *wrote } else { None }).max()
    }

    /// Returns true for the code of a library that NVIDIA publishes.
    pub const fn is_published(&self) -> bool {
        self.published
    }

    /// Returns true if there is machine code for GPUs of this compute capability, at least for some kernels.
    pub fn has_machine_code(&self, cc: (u8, u8)) -> bool {
        let is_machine_code =
            |unit: &LinkUnit| matches!(unit.for_gpu(cc), BestCode::Run { target: Target::Cubin(_), .. });
        self.units.distinct.iter().any(is_machine_code)
    }

    /// Records the compute capabilities for which other libraries of the same package have machine code. Applies to
    /// NVIDIA's libraries only; other code is checked by itself.
    pub fn mark_fallback(&mut self, others: impl Fn((u8, u8)) -> bool) {
        if self.published {
            self.covered_by_others = requirements::all_ccs(&self.built_targets()).filter(|cc| others(*cc)).collect();
        }
    }

    /// Returns a function that selects the best code of a unit for a GPU of this compute capability.
    ///
    /// In NVIDIA's libraries, machine code is decisive if this library or another one of its package has some for the
    /// GPU. Next to it there are single containers that have only PTX for the GPU, some by oversight and some for code
    /// that is compiled for a caller (one of 1686 in cuBLASLt 12.6, 34 of 170 in cuSPARSE 11.7), and entire libraries
    /// that are loaded on demand. A driver of the same major that is older than this PTX runs the libraries
    /// nevertheless, as NVIDIA guarantees, except for the functions that need the PTX. PTX that every driver of its
    /// major compiles counts as usual.
    fn for_gpu(&self, cc: (u8, u8)) -> impl Fn(&LinkUnit) -> BestCode {
        let decides = self.published && (self.covered_by_others.contains(&cc) || self.has_machine_code(cc));
        move |unit| match unit.for_gpu(cc) {
            BestCode::Run { target: Target::Ptx(_), floor: Some(Floor { cuda, .. }), .. }
                if decides && cuda.minor > 0 =>
            {
                BestCode::Nothing
            }
            found => found,
        }
    }

    /// Returns the support for GPUs of this compute capability.
    pub fn gpu_support(&self, cc: (u8, u8)) -> GpuSupport {
        let for_gpu = self.for_gpu(cc);
        let (mut served, mut left_out, mut unknown) = (false, false, false);
        let mut weakest: Option<Target> = None;
        let (mut newest, mut floor, mut guaranteed_from) = (None, None, None);
        let mut no_ptx =
            !self.containers.iter().any(|container| container.role == Role::Kernels && container.kernels != 0);
        let mut ptx_fallback = Vec::new();
        for unit in &self.units.distinct {
            let ptx = best_code(&unit.codes, cc, true);
            no_ptx &= ptx == BestCode::Nothing && unit.coverage_after_linking(cc) == BestCode::Nothing;
            match for_gpu(unit) {
                found @ BestCode::Run { target, isa, floor: needs, wrote } => {
                    served = true;
                    ptx_fallback.push(if matches!(target, Target::Ptx(_)) { found } else { ptx });
                    weakest = Some(weakest.map_or(target, |other| weaker_target(other, target)));
                    if matches!(target, Target::Ptx(_)) {
                        newest = newest.max(Some(isa));
                    }
                    floor = higher_floor(floor, needs);
                    guaranteed_from = higher_floor(
                        guaranteed_from,
                        wrote.map(|major| tables::cudart_floor(CudaVersion::new(major, 0))),
                    );
                }
                BestCode::Unknown => unknown = true,
                BestCode::Nothing => left_out = true,
            }
        }
        let newest_text = self.newest_text(cc).filter(|_| !self.published);
        // The program may have its kernels in PTX text (candle 0.11). Text older than CUDA 11 is a helper (XLA: up to 4.2).
        let only_text = newest_text.filter(|isa| !served && left_out && *isa >= (7, 0));
        unknown |= only_text.is_some();
        let text = newest_text.filter(|_| served).map(|isa| (isa, tables::ptx_floor((isa.0.into(), isa.1.into()))));
        // Every driver that supports the GPU compiles older text.
        let always = tables::first_driver(cc).map(|first| first.cuda);
        let always = always.or_else(|| Some(tables::branch_rows().first()?.least));
        let text = text.filter(|(_, needs)| always < Some(needs.cuda) && higher_floor(floor, Some(*needs)) != floor);
        if let Some((isa, needs)) = text {
            (newest, floor) = (newest.max(Some(isa)), higher_floor(floor, Some(needs)));
        }
        let text = text.map(|(isa, _)| isa).or(only_text);
        let by = match (served, left_out, unknown) {
            (true, true, _) => Coverage::Partial,
            (_, _, true) => Coverage::Unknown,
            (true, ..) if matches!(weakest, Some(Target::Ptx(_))) => Coverage::Ptx,
            (true, ..) => Coverage::Cubin,
            // It has PTX, which is ignored because other libraries of its package have machine code.
            _ if self.units.distinct.iter().any(|unit| unit.for_gpu(cc) != BestCode::Nothing) => Coverage::Partial,
            _ => Coverage::Nothing,
        };
        let ptx_fallback = match PtxFallback::from_codes(&ptx_fallback, by, floor) {
            PtxFallback::Nothing if !no_ptx && by != Coverage::Ptx => PtxFallback::Undetermined,
            ptx_fallback => ptx_fallback,
        };
        let lacks = by == Coverage::Unknown && left_out;
        GpuSupport { by, code: weakest, isa: newest, text, floor, guaranteed_from, ptx_fallback, lacks }
    }

    /// Returns the newest ISA of PTX text next to containers that the program may have the driver compile for a GPU of this
    /// compute capability. Texts of the same kernels are alternatives, of which it uses the one for the newest arch. Kernels
    /// that set conditions of CUDA graphs run only if the driver has these graphs, so their text requires nothing (XLA).
    fn newest_text(&self, cc: (u8, u8)) -> Option<(u16, u16)> {
        let mut best: HashMap<u64, (Target, (u16, u16))> = HashMap::new();
        for container in &self.containers {
            if container.role != Role::Aside || container.form != ImageForm::Ptx || container.sets_conditions {
                continue;
            }
            let images = self.entries_of(container).iter();
            for (target, isa) in images.filter_map(|image| Some((image.runnable_target()?, image.ptx_isa()?))) {
                if target.compatibility_with(cc) == Compatibility::Yes {
                    let known = best.entry(container.kernels).or_insert((target, isa));
                    *known = (*known).max((target, isa));
                }
            }
        }
        best.into_values().map(|(_, isa)| isa).max()
    }

    /// Iterates over the containers that have no code for GPUs of this compute capability, or none that counts.
    pub fn containers_without(&self, cc: (u8, u8)) -> impl Iterator<Item = &Container> {
        let for_gpu = self.for_gpu(cc);
        let lacking: Vec<bool> = self.units.distinct.iter().map(|unit| for_gpu(unit) == BestCode::Nothing).collect();
        self.containers
            .iter()
            .zip(&self.units.of)
            .filter_map(move |(container, unit)| unit.filter(|unit| lacking[*unit as usize]).map(|_| container))
    }

    /// Returns the support for every compute capability that is known or for which the file has code; empty for a file
    /// without kernels.
    pub fn coverage_by_cc(&self) -> Vec<Cover> {
        if !self.has_kernels() {
            return Vec::new();
        }
        let mut ccs = requirements::known_ccs();
        ccs.extend(self.built_targets().into_iter().map(|target| target.base_arch().cc()));
        ccs.sort_unstable();
        ccs.dedup();
        ccs.into_iter().map(|cc| Cover { cc, service: self.gpu_support(cc) }).collect()
    }

    /// Returns the number of containers with kernels.
    pub(crate) fn container_count(&self) -> usize {
        self.container_groups().iter().map(|group| group.containers.len()).sum()
    }

    /// Groups the containers with kernels by their targets. Bare images of the same kernels are one group, and so is
    /// the output of a device linker together with the PTX that all of its inputs have.
    pub fn container_groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for (unit, number) in self.units.distinct.iter().zip(0u32..) {
            let containers = self.units.of.iter().enumerate().filter(|(_, of)| **of == Some(number));
            groups.push(Group {
                targets: unit.unit_targets(),
                whole: !unit.codes.contains(&DeviceCode::Unknown) && (!unit.shared || unit.inputs.is_empty()),
                containers: containers.map(|(at, _)| at).collect(),
            });
        }
        groups
    }

    /// Returns the targets that the file is built for, sorted. For a device link, these are the targets of its output
    /// and the PTX that all of its inputs have.
    pub fn built_targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.units.distinct.iter().flat_map(LinkUnit::unit_targets).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// Returns one row for each interval of compute capabilities with the same support; empty for a file without
    /// kernels.
    ///
    /// An undetermined interval is [`GpuCoverage::Unknown`](cudaguard::internal::manifest::GpuCoverage), which is never rejected.
    pub fn requirement_rows(&self) -> Vec<Requirement> {
        if !self.has_kernels() {
            return Vec::new();
        }
        requirements::requirement_rows(&self.built_targets(), |cc| self.gpu_support(cc))
    }
}

/// Orders PTX before machine code, and within a kind the older arch first.
fn weaker_target(one: Target, other: Target) -> Target {
    match (one, other) {
        (Target::Ptx(_), Target::Cubin(_)) => one,
        (Target::Cubin(_), Target::Ptx(_)) => other,
        _ => one.min(other),
    }
}
