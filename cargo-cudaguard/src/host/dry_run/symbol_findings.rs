//! Findings about functions that a program binds but no library defines.

use crate::binary::loader::{LoadGraph, MissingSymbol};
use crate::binary::symbols;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};

/// A file of a closure, as findings about its symbols name it.
pub(crate) struct SymbolFile {
    /// Name or path of the file.
    pub(crate) path: String,
    /// `DT_SONAME`, or the name under which the file was requested.
    pub(crate) soname: String,
    /// Source of the path.
    pub(crate) picked_by: Option<String>,
}

/// Returns the missing symbols that stop the program at its start, and the functions of libraries in the symbol tables that fail
/// only at their first call.
pub(crate) fn symbol_findings(graph: &LoadGraph) -> Vec<Finding> {
    let missing = graph.missing_symbols(true);
    // The program that loads the library may define the symbol, and a lazily bound function may never be called.
    findings_of_missing(&symbol_files(graph), missing, |missing| graph.interpreter.is_some() && !missing.lazy)
}

/// Returns the missing functions, at the start or at their first call, if importer and library are both among these
/// objects.
pub(crate) fn symbol_findings_among(graph: &LoadGraph, includes: impl Fn(usize) -> bool) -> Vec<Finding> {
    let files = symbol_files(graph);
    let mut missing = graph.missing_symbols(true);
    missing.retain(|missing| includes(missing.by) && expected_owner(&files, missing).is_some_and(&includes));
    findings_of_missing(&files, missing, |_| false)
}

fn symbol_files(graph: &LoadGraph) -> Vec<SymbolFile> {
    let files = graph.objects.iter().map(|object| SymbolFile {
        path: object.path.display().to_string(),
        soname: object.soname.clone().unwrap_or_else(|| object.name.clone()),
        picked_by: Some(object.place.to_string()),
    });
    files.collect()
}

/// Groups missing symbols by importer and library. `nowhere` selects those that count although no library of `files`
/// is known to have them.
pub(crate) fn findings_of_missing(
    files: &[SymbolFile],
    all: Vec<MissingSymbol>,
    nowhere: impl Fn(&MissingSymbol) -> bool,
) -> Vec<Finding> {
    let mut groups: Vec<(Option<usize>, Vec<MissingSymbol>)> = Vec::new();
    for missing in all {
        let owner = expected_owner(files, &missing);
        if owner.is_none() && !nowhere(&missing) {
            continue;
        }
        let same = groups.iter_mut().find(|(of, all)| {
            let other = &all[0];
            *of == owner && (other.by, other.lazy, other.unversioned) == (missing.by, missing.lazy, missing.unversioned)
        });
        match same {
            Some((_, all)) => all.push(missing),
            None => groups.push((owner, vec![missing])),
        }
    }
    groups.iter().map(|(owner, missing)| missing_symbols_finding(files, *owner, missing)).collect()
}

/// Returns the library that should define the symbol: the one that its version names, or one that has it in another
/// release according to the symbol tables.
fn expected_owner(files: &[SymbolFile], missing: &MissingSymbol) -> Option<usize> {
    missing.of.or_else(|| files.iter().position(|file| symbols::releases_with(&file.soname, &missing.name).is_some()))
}

fn missing_symbols_finding(files: &[SymbolFile], owner: Option<usize>, missing: &[MissingSymbol]) -> Finding {
    let one = &missing[0];
    let names: Vec<&str> = missing.iter().map(|symbol| symbol.name.as_str()).collect();
    let values = Values::default().with("symbol", &one.name).with("symbols", symbols::list_functions(&names));
    let values = values.with("needed_by", &files[one.by].path).with_known("later", one.lazy.then_some(&one.name));
    let Some(file) = owner.map(|owner| &files[owner]) else {
        return MessageTemplate::LibraryLacksSymbolNowhere.to_finding(&values);
    };
    let soname = file.soname.as_str();
    let values = values.with("library", soname).with("path", &file.path);
    let values = values.with_known("picked_by", file.picked_by.as_ref());
    if let (true, Some(version)) = (one.unversioned, &one.version) {
        return MessageTemplate::LibraryLacksSymbolUnversioned.to_finding(&values.with("value", version));
    }
    let known = missing.iter().filter_map(|symbol| symbols::releases_with(soname, &symbol.name));
    let newest = known.max_by_key(|releases| releases.first);
    let values = values.with_known("first", newest.and_then(|newest| newest.first));
    let values = values.with_known("last", newest.and_then(|newest| newest.last));
    MessageTemplate::LibraryLacksSymbol.to_finding(&values)
}
