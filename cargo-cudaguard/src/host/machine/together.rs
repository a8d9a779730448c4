//! The combined answer of several components for each GPU.

use std::collections::BTreeMap;

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
    let in_group = |at: &usize| {
        alternatives.one_of.iter().flat_map(|choice| &choice.variants).any(|one| one.manifests.contains(at))
    };
    let mut counted = of(&(0..all.len()).filter(|at| !in_group(at)).collect::<Vec<_>>());
    for choice in &alternatives.one_of {
        let variants = choice.variants.iter().map(|one| (one.stem.as_str(), worst_answers(&of(&one.manifests))));
        counted.extend(answers_of_choice(variants));
    }
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

/// Returns the best result of several variants for each GPU. If all variants of a stem lack code that others have, the GPU is partially
/// covered.
fn answers_of_choice<'a>(variants: impl Iterator<Item = (&'a str, Vec<GpuAnswer>)>) -> Vec<GpuAnswer> {
    let mut of_stems: BTreeMap<&str, Vec<GpuAnswer>> = BTreeMap::new();
    for (stem, answers) in variants {
        let best = of_stems.entry(stem).or_default();
        for answer in answers {
            match best.iter_mut().find(|known| same_gpu(known, &answer)) {
                None => best.push(answer),
                Some(known) if answer.service > known.service => *known = answer,
                Some(_) => {}
            }
        }
    }
    let all: Vec<GpuAnswer> = of_stems.into_values().flatten().collect();
    let mut found = worst_answers(&all);
    for answer in found.iter_mut().filter(|answer| answer.service == Service::None) {
        let served = all.iter().filter(|other| same_gpu(other, answer)).max_by_key(|other| other.service);
        if let Some(served) = served.filter(|served| served.service > Service::Unknown) {
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
