//! The toolkits of a detection, and the ones that a build uses.

use std::path::Path;

use super::{Detector, NvccCandidate, profile_of, root_beside};
use crate::sys::subprocess;
use crate::toolchain::nvcc::Nvcc;
use crate::toolchain::places::{Layout, Precedence, ROOTS, ToolkitPlace};
use crate::toolchain::toolkit_files::{cudart_in, headers_in, limits_of, stated_in};
use crate::toolchain::{Selection, Toolkit, ToolkitHeaders};

/// The detected toolkits, each once.
#[derive(Default)]
pub(in crate::toolchain) struct ToolkitList {
    pub(in crate::toolchain) toolkits: Vec<Toolkit>,
    /// The certainty of each toolkit, in the same order.
    pub(in crate::toolchain) reach: Vec<Precedence>,
}

/// The versions and roots that nvccs print.
#[derive(Default)]
pub(super) struct NvccAnswers {
    pub(super) in_use: Option<Nvcc>,
    /// Those of toolkits without a version, with the index of the toolkit.
    pub(super) others: Vec<(usize, Nvcc)>,
}

/// The toolkits, those in use first.
pub(in crate::toolchain) struct ToolkitChoice {
    pub(in crate::toolchain) list: ToolkitList,
    /// The toolkit whose nvcc compiles.
    pub(in crate::toolchain) compiler: Option<Selection>,
    /// The toolkit whose headers are included.
    pub(in crate::toolchain) headers: Option<Selection>,
    /// Toolkits that other variables name.
    pub(super) also_named: Vec<(usize, String)>,
}

impl ToolkitList {
    pub(super) fn at_places(places: &[ToolkitPlace], layout: &Layout) -> Self {
        let mut list = Self::default();
        for place in places {
            list.add_place(place, layout);
        }
        list
    }

    /// Adds a toolkit and returns its index.
    pub(in crate::toolchain) fn push(&mut self, toolkit: Toolkit, reach: Precedence) -> usize {
        self.toolkits.push(toolkit);
        self.reach.push(reach);
        self.toolkits.len() - 1
    }

    /// Adds the toolkit at a place, or one more origin to a known toolkit.
    pub(in crate::toolchain) fn add_place(&mut self, place: &ToolkitPlace, layout: &Layout) -> Option<usize> {
        // Debian splits this toolkit between `/usr` and other directories.
        let apart = place.source == "/usr/lib/nvidia-cuda-toolkit";
        if apart && self.toolkits.iter().any(|toolkit| toolkit.found.iter().any(|found| found == "/usr")) {
            return None;
        }
        let nvcc = Some(place.root.join("bin/nvcc")).filter(|path| subprocess::is_executable(path));
        let headers = headers_in(&layout.include_dirs(&place.root));
        let known = self.find_known(&place.root, headers.as_ref());
        if let Some(index) = known {
            let toolkit = &mut self.toolkits[index];
            if !toolkit.found.contains(&place.source) {
                toolkit.found.push(place.source.clone());
            }
            toolkit.nvcc = toolkit.nvcc.take().or_else(|| nvcc.map(|path| Nvcc { path, ..Nvcc::default() }));
            self.reach[index] = self.reach[index].min(place.reach);
            return Some(index);
        }
        let cudart =
            layout.library_dirs(&place.root).iter().find_map(|folder| cudart_in(layout, folder, &place.source));
        // `/usr` is a toolkit only if Debian installed one there.
        let splayed = place.source == "/usr";
        if nvcc.is_none() && headers.is_none() && (cudart.is_none() || splayed) {
            return None;
        }
        let limits = limits_of(headers.as_ref(), &place.root);
        let toolkit = Toolkit {
            root: place.root.clone(),
            found: vec![place.source.clone()],
            nvcc: nvcc.map(|path| Nvcc { path, ..Nvcc::default() }),
            stated: stated_in(&place.root, layout),
            headers,
            cudart,
            limits,
        };
        Some(self.push(toolkit, place.reach))
    }

    /// Finds the toolkit of this root by its real directory or its real `cuda.h`.
    pub(in crate::toolchain) fn find_known(&self, root: &Path, headers: Option<&ToolkitHeaders>) -> Option<usize> {
        let real = |path: &Path| path.canonicalize().ok();
        let (root, header) = (real(root), headers.and_then(|headers| real(&headers.path)));
        self.toolkits.iter().position(|known| {
            let same_root = root.is_some() && real(&known.root) == root;
            let same_header = header.is_some() && known.headers.as_ref().and_then(|own| real(&own.path)) == header;
            same_root || same_header
        })
    }
}

impl ToolkitChoice {
    /// Returns the indexes of the toolkits in use: that of the headers, then that of the compiler.
    pub(in crate::toolchain) fn used(&self) -> impl Iterator<Item = usize> {
        [&self.headers, &self.compiler].into_iter().flatten().map(|choice| choice.index)
    }

    /// Moves the toolkits in use to the front; the order of the others does not change.
    fn in_use_first(mut self) -> Self {
        let used: Vec<usize> =
            [&self.compiler, &self.headers].into_iter().flatten().map(|choice| choice.index).collect();
        let mut order: Vec<usize> = (0..self.list.toolkits.len()).collect();
        order.sort_by_key(|index| used.iter().position(|used| used == index).unwrap_or(usize::MAX));
        let new_place = |old: usize| order.iter().position(|index| *index == old).unwrap_or(old);
        for choice in [&mut self.compiler, &mut self.headers].into_iter().flatten() {
            choice.index = new_place(choice.index);
        }
        for (index, _) in &mut self.also_named {
            *index = new_place(*index);
        }
        let mut old: Vec<_> = std::mem::take(&mut self.list.toolkits).into_iter().map(Some).collect();
        self.list.toolkits = order.iter().filter_map(|index| old[*index].take()).collect();
        self.list.reach = order.iter().map(|index| self.list.reach[*index]).collect();
        self
    }
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
        let beside = || root_beside(&candidate.path, &self.layout);
        let root = if bare { beside().or(top) } else { top.or_else(beside) };
        let root = root.unwrap_or_else(|| {
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
    let has = |index: &usize| list.toolkits[*index].headers.is_some();
    let of = |variable: &str| list.toolkits.iter().position(|toolkit| toolkit.found.iter().any(|f| f == variable));
    let mut named: Vec<(usize, String)> =
        ROOTS.iter().filter_map(|name| Some((of(name).filter(has)?, (*name).to_owned()))).collect();
    let chosen = if named.is_empty() {
        let own = compiler.map(|choice| choice.index).filter(has);
        own.map(|index| (index, "the compiler's own".to_owned())).or_else(|| {
            let usual = (0..list.reach.len()).find(|index| list.reach[*index] < Precedence::Listed && has(index))?;
            let place = &list.toolkits[usual].found[0];
            Some((usual, format!("found in {place}; no variable names a toolkit")))
        })
    } else {
        let (index, variable) = named.remove(0);
        Some((index, format!("{variable} names it")))
    };
    let Some((index, reason)) = chosen else { return (None, Vec::new()) };
    named.retain(|(other, _)| *other != index);
    (Some(Selection { index, reason }), named)
}
