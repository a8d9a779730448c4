//! Functions that a crate looks up by name in a library that it opens when the program runs.

use std::collections::BTreeSet;

use crate::binary::elf::{Elf, Symbol};
use crate::binary::file::{constants_after, notes_in};
use crate::binary::symbols;
use crate::knowledge::crates::table::{self, CrateRow, Mode, Symbols};
use crate::knowledge::vendor;
use cudaguard::internal::manifest::Opens;

/// The functions that a crate looks up in one library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookedUp {
    /// The crate: `cudarc 0.19.10`.
    pub(crate) by: String,
    /// The file names that it tries, in order.
    pub(crate) files: Vec<String>,
    pub(super) functions: BTreeSet<String>,
    pub(super) when: Symbols,
}

impl LookedUp {
    /// Returns the CUDA major of the bindings: the first number that the crate appends to the name of a library.
    pub(super) fn cuda_major(&self) -> Option<u32> {
        self.files.iter().find_map(|name| name.rsplit_once(".so.")?.1.parse().ok())
    }
}

/// The start of the names of functions after the prefix. The names of types differ.
const VERBS: [&str; 4] = ["Create", "Destroy", "Get", "Set"];

/// Returns the start of the names of the functions of a library, if crates look them up.
fn prefix_of(stem: &str) -> Option<&'static str> {
    let library = vendor::nvidia_library(&format!("lib{stem}.so"))?;
    Some(library.functions).filter(|prefix| !prefix.is_empty())
}

/// Returns the crates that open libraries by name according to the manifests of a file, each with its row in the table.
fn opening_crates(data: &[u8]) -> impl Iterator<Item = (Opens, Option<&'static CrateRow>)> + use<> {
    let notes = notes_in(data).unwrap_or_default();
    let manifests = notes.into_iter().filter_map(|note| Some(note.decode().ok()?.manifest));
    manifests.flat_map(|manifest| manifest.opens).map(|opens| {
        let row = opens.by.split_once(' ').and_then(|(name, version)| table::find_row(name, version));
        (opens, row.filter(|row| row.modes.iter().any(|(_, mode)| *mode == Mode::Loaded)))
    })
}

/// Returns the crates in a file that open one library by name.
pub(super) fn crates_that_open(
    data: &[u8],
    stem: &'static str,
) -> impl Iterator<Item = (Opens, Option<&'static CrateRow>)> {
    opening_crates(data).filter(move |(opens, _)| opens.libraries.iter().any(|library| library == stem))
}

/// Returns the functions that crates look up according to the manifests of a file, as far as its constants contain their names.
pub(super) fn looked_up(data: &[u8]) -> Vec<LookedUp> {
    let mut all = Vec::new();
    for (crate_opens, row) in opening_crates(data) {
        let when = row.map_or(Symbols::Checked, |row| row.symbols);
        for stem in &crate_opens.libraries {
            let functions = functions_in(data, stem, when);
            if !functions.is_empty() {
                let (by, files) = (crate_opens.by.clone(), crate_opens.candidate_names(stem));
                all.push(LookedUp { by, files, functions, when });
            }
        }
    }
    all
}

/// Returns the functions of a library whose names are in the constants of a file, if some release of the library lacks them.
fn functions_in(data: &[u8], stem: &str, when: Symbols) -> BTreeSet<String> {
    const LONGEST: usize = 128;
    let Some(prefix) = prefix_of(stem) else { return BTreeSet::new() };
    let known: Vec<&str> = symbols::functions_of_stem(stem).collect();
    let mut found = BTreeSet::new();
    for behind in constants_after(data, prefix) {
        let text = &behind[..behind.len().min(LONGEST)];
        if when != Symbols::Opened {
            // Names in Rust's constants need not end with NUL.
            let starting = known
                .iter()
                .filter(|name| name.strip_prefix(prefix).is_some_and(|rest| text.starts_with(rest.as_bytes())));
            found.extend(starting.max_by_key(|name| name.len()).map(|name| (*name).to_owned()));
            continue;
        }
        let Some(end) = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_') else { continue };
        let name = String::from_utf8_lossy(&text[..end]);
        let is_verb = VERBS.iter().any(|verb| name.starts_with(verb));
        // The table has no functions that only another major has.
        let full = format!("{prefix}{name}");
        if text[end] == 0 && (known.contains(&full.as_str()) || is_verb) {
            found.insert(full);
        }
    }
    found
}

/// Returns the functions that a library exports and that crates look up.
pub(super) fn exported_functions(elf: &Elf<'_>, soname: &str) -> BTreeSet<String> {
    let stem = soname.strip_prefix("lib").map(vendor::stem_of).unwrap_or_default();
    let Some(prefix) = prefix_of(stem) else { return BTreeSet::new() };
    let exported = elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name());
    exported.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_belong_to_known_libraries() {
        for library in vendor::CATALOGUE.iter().filter(|library| !library.functions.is_empty()) {
            let (stem, prefix) = (&library.stem()["lib".len()..], library.functions);
            let soname = format!("lib{stem}.so.12");
            assert!(vendor::is_beside_driver(&soname), "{soname}");
            let known: Vec<&str> = symbols::functions_of_stem(stem).collect();
            let is_own = |name: &&str| name.starts_with(prefix) || name.starts_with('_') || name.starts_with('p');
            assert!(known.iter().all(is_own), "{stem}: {known:?}");
        }
    }
}
