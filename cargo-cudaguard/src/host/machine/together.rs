//! The combined answer of several components for each GPU.

use std::collections::BTreeMap;

use super::{Alternatives, Components, HostGpu};
use crate::host::machine::judge::gpu_answer::{GpuAnswer, Service, answers};

fn same_gpu(one: &GpuAnswer, other: &GpuAnswer) -> bool {
    (one.cc, &one.name) == (other.cc, &other.name)
}

/// Returns the worst result of these files for a GPU; `None` if there are no kernels.
pub(crate) fn worst_service(files: &[Components], cc: (u8, u8)) -> Option<Service> {
    let gpu = [HostGpu { cc: Some(cc), visible: true, ..HostGpu::default() }];
    let answers = files.iter().flat_map(|file| {
        let all: Vec<_> = file.manifests.iter().map(|manifest| answers(manifest, &gpu, false)).collect();
        answers_together(&all, &file.alternatives)
    });
    answers.map(|answer| answer.service).min()
}

fn answers_at(all: &[Vec<GpuAnswer>], places: &[usize]) -> Vec<GpuAnswer> {
    places.iter().flat_map(|at| all[*at].iter().cloned()).collect()
}

/// Combines the results of several members for each GPU: the worst result of the members that are all required, and the
/// best result of a group of which one suffices. If a library can use the code of other members, the GPU counts as
/// partially covered. `all` contains the results of each manifest.
pub(crate) fn answers_together(all: &[Vec<GpuAnswer>], alternatives: &Alternatives) -> Vec<GpuAnswer> {
    let mut required: Vec<usize> = (0..all.len()).collect();
    required.retain(|at| {
        let mut variants = alternatives.one_of.iter().flat_map(|choice| &choice.variants);
        // No file loads an idle library.
        !variants.any(|one| one.manifests.contains(at)) && !alternatives.idle.contains(at)
    });
    let mut counted = answers_at(all, &required);
    for choice in &alternatives.one_of {
        let variants = choice.variants.iter();
        counted.extend(answers_of_choice(
            variants.map(|one| (one.stem.as_str(), worst_answers(&answers_at(all, &one.manifests)))),
        ));
    }
    let mut found = worst_answers(&counted);
    required.retain(|at| !alternatives.in_part.contains(at));
    let (wanted, serving) = (answers_at(all, &required), answers_at(all, &alternatives.serving));
    for answer in found.iter_mut().filter(|answer| answer.service == Service::None) {
        let left_out = wanted.iter().any(|other| same_gpu(other, answer) && other.service == Service::None);
        let served = serving
            .iter()
            .filter(|other| same_gpu(other, answer))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::map::{Map, State};
    use crate::host::machine::{Choice, Variant};
    use cudaguard::internal::manifest::{Component, GpuCoverage, Manifest, PtxFallback, Requirement};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;

    /// A component with code for the GPUs of one major.
    fn component(name: &str, major: u8) -> Manifest {
        let component = Component { name: name.to_owned(), version: "1.0.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        let gpu = |from, to, by| Requirement::Gpu {
            from,
            to,
            by,
            code: String::new(),
            cuda: None,
            release: None,
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        };
        manifest.requires = vec![
            gpu((0, 0), Some((major - 1, 255)), GpuCoverage::Nothing),
            gpu((major, 0), Some((major, 255)), GpuCoverage::Cubin),
            gpu((major + 1, 0), None, GpuCoverage::Nothing),
        ];
        manifest
    }

    /// The builds of one package are no alternatives of another one.
    #[test]
    fn packages_are_mapped_one_by_one() {
        let builds = |majors: &[u8]| {
            let variant = |at: usize| Variant { name: at.to_string(), stem: "lib".to_owned(), manifests: vec![at] };
            let one_of = vec![Choice { variants: (0..majors.len()).map(variant).collect() }];
            let manifests = majors.iter().map(|major| component(&format!("for {major}"), *major)).collect();
            let alternatives = Alternatives { one_of, ..Alternatives::default() };
            Components { manifests, alternatives, ..Components::default() }
        };
        let environment = Components::from_packages("env".to_owned(), vec![builds(&[7, 8]), builds(&[8, 9])]);
        let map = Map::from_components(&[environment]).unwrap();
        for (cc, expected) in [((7, 5), State::Refused), ((8, 0), State::Native), ((9, 0), State::Refused)] {
            let row = map.rows.iter().find(|row| row.cc == cc).unwrap();
            assert_eq!(row.cells.last().unwrap().state, expected, "{cc:?}");
        }
    }
}
