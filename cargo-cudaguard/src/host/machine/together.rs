//! The combined answer of several components for each GPU.

use super::Alternatives;
use crate::host::judge::answer::{GpuAnswer, Service};

fn same_gpu(one: &GpuAnswer, other: &GpuAnswer) -> bool {
    (one.cc, &one.name) == (other.cc, &other.name)
}

/// Combines the results of several members for each GPU: the worst result of the members that are all required, and the
/// best result of a group of which one suffices. If a library can use the code of other members, the GPU counts as
/// partially covered. `all` contains the results of each manifest.
pub(crate) fn answers_together(all: &[Vec<GpuAnswer>], alternatives: &Alternatives) -> Vec<GpuAnswer> {
    let of = |places: &[usize]| -> Vec<GpuAnswer> { places.iter().flat_map(|at| all[*at].iter().cloned()).collect() };
    let in_group = |at: &usize| alternatives.one_of.iter().any(|group| group.contains(at));
    let mut counted = of(&(0..all.len()).filter(|at| !in_group(at)).collect::<Vec<_>>());
    let mut best: Vec<GpuAnswer> = Vec::new();
    for answer in alternatives.one_of.iter().flat_map(|group| worst_answers(&of(group))) {
        match best.iter_mut().find(|known| same_gpu(known, &answer)) {
            None => best.push(answer),
            Some(known) => {
                if answer.service > known.service {
                    *known = answer;
                }
            }
        }
    }
    counted.extend(best);
    let mut found = worst_answers(&counted);
    let all_but: Vec<usize> = (0..all.len()).filter(|at| !in_group(at) && !alternatives.in_part.contains(at)).collect();
    let (wanted, serving) = (of(&all_but), of(&alternatives.serving));
    for answer in found.iter_mut().filter(|answer| answer.service == Service::None) {
        let of_gpu = |other: &&GpuAnswer| same_gpu(other, answer);
        let left_out = wanted.iter().filter(of_gpu).any(|other| other.service == Service::None);
        let served = serving
            .iter()
            .filter(of_gpu)
            .max_by_key(|other| other.service)
            .filter(|other| other.service > Service::Unknown);
        if let Some(served) = served.filter(|_| !left_out) {
            *answer = GpuAnswer { service: Service::Partial, ..served.clone() };
        }
    }
    found
}

/// Returns the worst result of several members for each GPU.
fn worst_answers(all: &[GpuAnswer]) -> Vec<GpuAnswer> {
    let mut found: Vec<GpuAnswer> = Vec::new();
    for answer in all {
        match found.iter_mut().find(|known| same_gpu(known, answer)) {
            None => found.push(answer.clone()),
            Some(known) => {
                if answer.service < known.service {
                    *known = answer.clone();
                }
            }
        }
    }
    found
}
