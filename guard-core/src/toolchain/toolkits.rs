//! The detected toolkits, and the ones that a build uses.

use std::env::consts::EXE_SUFFIX;
use std::path::Path;

use super::nvcc::Nvcc;
use super::places::{Layout, Precedence, ToolkitPlace};
use super::toolkit_files::{cudart_in, headers_in, limits_of, stated_in};
use super::{DetectOptions, Selection, Toolkit, ToolkitHeaders};
use crate::sys::subprocess;

/// The inputs of a detection, for all its steps.
pub(super) struct Detector<'a> {
    pub(super) request: &'a DetectOptions,
    pub(super) layout: Layout,
}

/// The detected toolkits, each once.
#[derive(Default)]
pub(super) struct ToolkitList {
    pub(super) toolkits: Vec<Toolkit>,
    /// The certainty of each toolkit, in the same order.
    pub(super) reach: Vec<Precedence>,
}

/// The toolkits, those in use first.
pub(super) struct ToolkitChoice {
    pub(super) list: ToolkitList,
    /// The toolkit whose nvcc compiles.
    pub(super) compiler: Option<Selection>,
    /// The toolkit whose headers are included.
    pub(super) headers: Option<Selection>,
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
    pub(super) fn push(&mut self, toolkit: Toolkit, reach: Precedence) -> usize {
        self.toolkits.push(toolkit);
        self.reach.push(reach);
        self.toolkits.len() - 1
    }

    /// Adds the toolkit at a place, or one more origin to a known toolkit.
    pub(super) fn add_place(&mut self, place: &ToolkitPlace, layout: &Layout) -> Option<usize> {
        // Debian splits this toolkit between `/usr` and other directories.
        let apart = place.source == "/usr/lib/nvidia-cuda-toolkit";
        if apart && self.toolkits.iter().any(|toolkit| toolkit.found.iter().any(|found| found == "/usr")) {
            return None;
        }
        let nvcc = Some(place.root.join("bin").join(format!("nvcc{EXE_SUFFIX}")))
            .filter(|path| subprocess::is_executable(path));
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
        let cudart = layout.library_dirs(&place.root).iter().find_map(|dir| cudart_in(layout, dir, &place.source));
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
    pub(super) fn find_known(&self, root: &Path, headers: Option<&ToolkitHeaders>) -> Option<usize> {
        let (root, header) = (root.canonicalize().ok(), headers.and_then(|headers| headers.path.canonicalize().ok()));
        self.toolkits.iter().position(|known| {
            root.is_some() && known.root.canonicalize().ok() == root
                || header.is_some() && known.header_path().and_then(|path| path.canonicalize().ok()) == header
        })
    }

    pub(super) fn has_headers(&self, index: usize) -> bool {
        self.toolkits[index].headers.is_some()
    }
}

impl ToolkitChoice {
    /// Returns the indexes of the toolkits in use: that of the headers, then that of the compiler.
    pub(super) fn used(&self) -> Vec<usize> {
        [&self.headers, &self.compiler].iter().filter_map(|choice| Some(choice.as_ref()?.index)).collect::<Vec<_>>()
    }

    /// Moves the toolkits in use to the front; the order of the others does not change.
    pub(super) fn in_use_first(mut self) -> Self {
        let mut used: Vec<usize> = Vec::new();
        used.extend(self.compiler.as_ref().map(|choice| choice.index));
        used.extend(self.headers.as_ref().map(|choice| choice.index));
        let order = with_first(&used, self.list.toolkits.len());
        let choices = self.compiler.iter_mut().chain(&mut self.headers).map(|choice| &mut choice.index);
        for index in choices.chain(self.also_named.iter_mut().map(|(index, _)| index)) {
            *index = order.iter().position(|old| old == index).unwrap_or(*index);
        }
        let mut old = std::mem::take(&mut self.list);
        for index in order {
            self.list.push(std::mem::take(&mut old.toolkits[index]), old.reach[index]);
        }
        self
    }
}

/// Returns the indexes below `count`: the given ones first, then the others in their order.
pub(super) fn with_first(first: &[usize], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for index in first.iter().copied().chain(0..count) {
        if !order.contains(&index) {
            order.push(index);
        }
    }
    order
}
