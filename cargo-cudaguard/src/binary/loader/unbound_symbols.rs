//! Symbols that a file binds and no loaded file defines. The loader ends the program because of them even if it finds
//! all files.
//!
//! Rules: glibc, `_dl_lookup_symbol_x` and `do_lookup_x` in `elf/dl-lookup.c`; musl, `find_sym` in `ldso/dynlink.c`.

use super::graph::LoadGraph;
use crate::binary::elf::Elf;

use crate::binary::elf::links::{Links, SymbolImport, SymbolUse, dynamic_links};

/// A symbol that a file binds and no loaded file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSymbol {
    /// Name of the symbol.
    pub name: String,
    /// Version of the symbol.
    pub version: Option<String>,
    /// Index in [`LoadGraph::objects`] of the file that binds it.
    pub by: usize,
    /// Index of the file that its version names, if any.
    pub of: Option<usize>,
    /// True if the symbol is resolved at the first call, so the program starts without it.
    pub lazy: bool,
    /// True if that file defines the symbol but has no versions at all, which the loader treats as an error.
    pub unversioned: bool,
}

/// Result of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SymbolSearch {
    Found,
    /// Defined in a file without versions, although the reference has a version.
    Unversioned,
    Nothing,
}

impl LoadGraph {
    /// Returns the symbols that the loader would not find after it has loaded everything except
    /// [`LoadGraph::unresolved_requests`]. `lazy` includes symbols that are resolved at the first call. For a library,
    /// the result also contains symbols that the program which loads it may define.
    pub fn missing_symbols(&self, lazy: bool) -> Vec<MissingSymbol> {
        let elves: Vec<_> = self.objects.iter().map(|object| Elf::parse(object.data()).ok()).collect();
        let files: Vec<_> = elves.iter().map(|elf| elf.as_ref().and_then(dynamic_links)).collect();
        let mut missing = Vec::new();
        // The object that is loaded last is bound first.
        for (by, links) in files.iter().enumerate().rev() {
            let Some(links) = links else { continue };
            let symbol_imports = links.symbol_imports(self.is_of_musl() || self.binds_at_start());
            for import in symbol_imports.into_iter().filter(|import| lazy || !import.lazy) {
                let of = import.version.and_then(|version| self.object_index(version.of?));
                let search = self.find_definition(&files, of, &import);
                if search == SymbolSearch::Found || (search == SymbolSearch::Nothing && import.weak) {
                    continue;
                }
                missing.push(MissingSymbol {
                    name: String::from_utf8_lossy(import.name).into_owned(),
                    version: import.version.map(|version| String::from_utf8_lossy(version.name).into_owned()),
                    by,
                    of,
                    lazy: import.lazy,
                    unversioned: search == SymbolSearch::Unversioned,
                });
            }
        }
        missing
    }

    /// Searches all files, including those that the version does not name (as glibc does since 2.30).
    fn find_definition(
        &self,
        files: &[Option<Links<'_, '_>>],
        of: Option<usize>,
        import: &SymbolImport<'_>,
    ) -> SymbolSearch {
        let musl = self.is_of_musl();
        for (index, links) in files.iter().enumerate().skip(usize::from(import.by == SymbolUse::Copy)) {
            // A file that cannot be parsed may define every symbol.
            let Some(links) = links else { return SymbolSearch::Found };
            if links.defines(import, musl) {
                let unversioned = !musl && of == Some(index) && !links.has_versions();
                return if unversioned { SymbolSearch::Unversioned } else { SymbolSearch::Found };
            }
        }
        SymbolSearch::Nothing
    }
}
