//! Symbols that a file binds and no loaded file has: of these the loader stops a program when everything is found.
//!
//! Rules: glibc, `_dl_lookup_symbol_x` and `do_lookup_x` in `elf/dl-lookup.c`; musl, `find_sym` in `ldso/dynlink.c`.

use super::graph::LoadGraph;
use crate::elf::{Elf, Links, SymbolImport, SymbolUse};

/// A symbol that a file binds and that none has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSymbol {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The file that binds it: its number in [`LoadGraph::objects`].
    pub by: usize,
    /// The file that it is asked of, where its version says that.
    pub of: Option<usize>,
    /// It is looked up at the first call: the program starts without it.
    pub lazy: bool,
    /// That file has it, and no versions at all: the loader takes that for a mistake, and stops.
    pub unversioned: bool,
}

/// What a search comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SymbolSearch {
    Found,
    /// In a file without versions, of which a version is asked.
    Unversioned,
    Nothing,
}

impl LoadGraph {
    /// What the loader would not find, with everything loaded that [`LoadGraph::unresolved_requests`] does not name; `lazy` ones only
    /// where they are asked for. Of a library alone also what the program that loads it may have.
    pub fn missing_symbols(&self, lazy: bool) -> Vec<MissingSymbol> {
        let elves = self.objects.iter().map(|object| Elf::parse(object.data()).ok());
        let files: Vec<Option<Links<'_>>> = elves.map(|elf| elf.and_then(|elf| elf.dynamic_links())).collect();
        let mut missing = Vec::new();
        // Last come, first bound.
        for (by, links) in files.iter().enumerate().rev() {
            let Some(links) = links else { continue };
            let symbol_imports = links.symbol_imports(self.is_of_musl() || self.binds_at_start());
            for wish in symbol_imports.into_iter().filter(|wish| lazy || !wish.lazy) {
                let of = wish.version.and_then(|version| self.object_index(version.of?));
                let search = self.find_definition(&files, of, &wish);
                if search == SymbolSearch::Found || (search == SymbolSearch::Nothing && wish.weak) {
                    continue;
                }
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                missing.push(MissingSymbol {
                    name: text(wish.name),
                    version: wish.version.map(|version| text(version.name)),
                    by,
                    of,
                    lazy: wish.lazy,
                    unversioned: search == SymbolSearch::Unversioned,
                });
            }
        }
        missing
    }

    /// Any file may have it, also another than the one that its version is asked of (glibc since 2.30).
    fn find_definition(&self, files: &[Option<Links<'_>>], of: Option<usize>, wish: &SymbolImport<'_>) -> SymbolSearch {
        let musl = self.is_of_musl();
        for (index, links) in files.iter().enumerate().skip(usize::from(wish.by == SymbolUse::Copy)) {
            // What cannot be read may have everything.
            let Some(links) = links else { return SymbolSearch::Found };
            if links.defines(wish, musl) {
                let unversioned = !musl && of == Some(index) && !links.has_versions();
                return if unversioned { SymbolSearch::Unversioned } else { SymbolSearch::Found };
            }
        }
        SymbolSearch::Nothing
    }
}
