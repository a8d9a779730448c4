//! Selects the toolkits that a build uses.

use std::path::Path;

use super::{profile_of, sibling_root};
use crate::toolchain::nvcc::{Nvcc, NvccCandidate};
use crate::toolchain::places::{Precedence, ROOTS, ToolkitPlace};
use crate::toolchain::toolkit_files::{headers_in, stated_in};
use crate::toolchain::toolkits::{Detector, ToolkitChoice, ToolkitList};
use crate::toolchain::{Selection, SelectionReason, Toolkit};

/// The versions and roots that nvccs print.
#[derive(Default)]
pub(super) struct NvccAnswers {
    pub(super) in_use: Option<Nvcc>,
    /// Those of toolkits without a version, with the index of the toolkit.
    pub(super) others: Vec<(usize, Nvcc)>,
}

impl Detector<'_> {
    /// Selects the toolkits that a build uses for its compiler and for its headers.
    pub(super) fn choose_toolkits(
        &self,
        mut list: ToolkitList,
        candidate: Option<NvccCandidate>,
        answers: NvccAnswers,
    ) -> ToolkitChoice {
        for (index, nvcc) in answers.others {
            list.toolkits[index].nvcc = Some(nvcc);
        }
        let compiler = candidate.map(|candidate| {
            let index = self.assign_compiler(&mut list, &candidate, answers.in_use.unwrap_or_default());
            Selection { index, reason: candidate.reason }
        });
        let (headers, also_named) = match &self.request.given {
            Some(given) => (self.choose_given_headers(&mut list, compiler.as_ref(), given), Vec::new()),
            None => choose_headers(&list, compiler.as_ref()),
        };
        ToolkitChoice { list, compiler, headers, also_named }.in_use_first()
    }

    /// Adds the compiler in use to its toolkit, which may be new: the root that nvcc uses.
    fn assign_compiler(&self, list: &mut ToolkitList, candidate: &NvccCandidate, mut nvcc: Nvcc) -> usize {
        nvcc.compiler_bindir = profile_of(&candidate.path);
        // Debian's nvcc uses a directory without headers as TOP; they are next to the script.
        let top = nvcc.top.clone();
        let bare = top.as_ref().is_some_and(|top| headers_in(&self.layout.include_dirs(top)).is_none());
        let sibling = if bare || top.is_none() { sibling_root(&candidate.path, &self.layout) } else { None };
        let root = sibling.or(top).unwrap_or_else(|| {
            let real = candidate.path.canonicalize().unwrap_or_else(|_| candidate.path.clone());
            real.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned()
        });
        let place = ToolkitPlace { root, source: candidate.source.clone(), reach: Precedence::Named };
        let index = list.add_place(&place, &self.layout).unwrap_or_else(|| {
            let toolkit = Toolkit {
                root: place.root.clone(),
                found: vec![candidate.source.clone()],
                stated: stated_in(&place.root, &self.layout),
                ..Toolkit::default()
            };
            list.push(toolkit, Precedence::Named)
        });
        let toolkit = &mut list.toolkits[index];
        // The origin of the compiler comes first.
        toolkit.found.retain(|source| *source != candidate.source);
        toolkit.found.insert(0, candidate.source.clone());
        toolkit.nvcc = Some(nvcc);
        index
    }
}

/// Selects the headers; see the module. Also returns the other toolkits that variables name.
fn choose_headers(list: &ToolkitList, compiler: Option<&Selection>) -> (Option<Selection>, Vec<(usize, String)>) {
    let mut named: Vec<(usize, String)> = Vec::new();
    for variable in ROOTS {
        let toolkit = list.toolkits.iter().position(|toolkit| toolkit.found.iter().any(|source| source == variable));
        named.extend(toolkit.filter(|index| list.has_headers(*index)).map(|index| (index, (*variable).to_owned())));
    }
    let chosen = if named.is_empty() {
        let own = compiler.map(|choice| choice.index).filter(|index| list.has_headers(*index));
        own.map(|index| (index, SelectionReason::Other("the compiler's own".to_owned()))).or_else(|| {
            let usual = (0..list.reach.len())
                .find(|index| list.reach[*index] < Precedence::Listed && list.has_headers(*index))?;
            let place = &list.toolkits[usual].found[0];
            Some((usual, SelectionReason::Other(format!("found in {place}; no variable names a toolkit"))))
        })
    } else {
        let (index, variable) = named.remove(0);
        Some((index, SelectionReason::Named(variable)))
    };
    let Some((index, reason)) = chosen else { return (None, Vec::new()) };
    named.retain(|(other, _)| *other != index);
    (Some(Selection { index, reason }), named)
}
