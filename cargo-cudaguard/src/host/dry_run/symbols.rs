//! Findings about functions that a program binds but no library defines.

use crate::binary::loader::{LoadGraph, MissingSymbol};
use crate::binary::symbols::{self, Releases};
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};

/// Maximum number of function names in a finding about one file and one library.
const SHOWN: usize = 3;

/// Returns the missing symbols that stop the program at its start. `later` adds functions of libraries in the symbol
/// tables that fail only at their first call.
pub(super) fn symbol_findings(graph: &LoadGraph, later: bool) -> Vec<Finding> {
    let mut groups: Vec<(Option<usize>, Vec<MissingSymbol>)> = Vec::new();
    for missing in graph.missing_symbols(later) {
        let owner = expected_owner(graph, &missing);
        // The program that loads the library may define the symbol, and a lazily bound function may never be called.
        if owner.is_none() && (graph.interpreter.is_none() || missing.lazy) {
            continue;
        }
        let same = |group: &&mut (Option<usize>, Vec<MissingSymbol>)| {
            let other = &group.1[0];
            group.0 == owner
                && (other.by, other.lazy, other.unversioned) == (missing.by, missing.lazy, missing.unversioned)
        };
        match groups.iter_mut().find(same) {
            Some((_, all)) => all.push(missing),
            None => groups.push((owner, vec![missing])),
        }
    }
    groups.iter().map(|(owner, missing)| missing_symbols_finding(graph, *owner, missing)).collect()
}

/// Returns the library that should define the symbol: the one that its version names, or one that has it in another
/// release according to the symbol tables.
fn expected_owner(graph: &LoadGraph, missing: &MissingSymbol) -> Option<usize> {
    missing.of.or_else(|| {
        graph.objects.iter().position(|object| {
            object.soname.as_deref().is_some_and(|soname| symbols::releases_with(soname, &missing.name).is_some())
        })
    })
}

fn missing_symbols_finding(graph: &LoadGraph, owner: Option<usize>, missing: &[MissingSymbol]) -> Finding {
    let one = &missing[0];
    let mut names: Vec<String> = missing.iter().take(SHOWN).map(|symbol| symbol.name.clone()).collect();
    if missing.len() > SHOWN {
        names.push(format!("{} more", missing.len() - SHOWN));
    }
    let values = Values::default().with("symbol", &one.name).with("symbols", names.join(", "));
    let values = values.with("needed_by", graph.objects[one.by].path.display());
    let values = values.with_known("later", one.lazy.then_some(&one.name));
    let Some(object) = owner.map(|owner| &graph.objects[owner]) else {
        return MessageTemplate::LibraryLacksSymbolNowhere.to_finding(&values);
    };
    let soname = object.soname.as_deref().unwrap_or(&object.name);
    let values = values.with("library", soname).with("path", object.path.display()).with("picked_by", &object.place);
    if let (true, Some(version)) = (one.unversioned, &one.version) {
        return MessageTemplate::LibraryLacksSymbolUnversioned.to_finding(&values.with("value", version));
    }
    let known = missing.iter().filter_map(|symbol| symbols::releases_with(soname, &symbol.name));
    let newest = known.max_by_key(|releases| releases.first);
    let words = match newest {
        Some(Releases { first: Some(_), last: Some(_) }) => MessageTemplate::LibraryLacksSymbolOutside,
        Some(Releases { first: Some(_), last: None }) => MessageTemplate::LibraryLacksSymbolBefore,
        Some(Releases { first: None, last: Some(_) }) => MessageTemplate::LibraryLacksSymbolAfter,
        _ => MessageTemplate::LibraryLacksSymbol,
    };
    let values = values.with_known("first", newest.and_then(|newest| newest.first));
    words.to_finding(&values.with_known("last", newest.and_then(|newest| newest.last)))
}
