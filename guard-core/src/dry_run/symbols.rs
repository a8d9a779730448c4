//! What is said of functions that a program binds and no library has.

use std::fmt::Write as _;

use crate::finding::{Code, Finding};
use crate::loader::{Graph, MissingSymbol};
use crate::symbols::{self, Releases};

/// So many names are told of one file and one library.
const SHOWN: usize = 3;

/// What the loader would stop the program for at its start; `later`: also at the first call of a function of a library
/// whose functions the tables know.
pub(super) fn findings(graph: &Graph, later: bool) -> Vec<Finding> {
    let mut groups: Vec<(Option<usize>, Vec<MissingSymbol>)> = Vec::new();
    for missing in graph.missing_symbols(later) {
        let owner = owner(graph, &missing);
        // What a library alone wants may be in the program that loads it, and a function may never be called.
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
    groups.iter().map(|(owner, missing)| finding(graph, *owner, missing)).collect()
}

/// The library that should have it: whom its version names, or whom the tables know to have it in another release.
fn owner(graph: &Graph, missing: &MissingSymbol) -> Option<usize> {
    missing.of.or_else(|| {
        graph.objects.iter().position(|object| {
            object.soname.as_deref().is_some_and(|soname| symbols::releases(soname, &missing.name).is_some())
        })
    })
}

fn finding(graph: &Graph, owner: Option<usize>, missing: &[MissingSymbol]) -> Finding {
    let by = graph.objects[missing[0].by].path.display();
    let when = if missing[0].lazy { " when it first calls it" } else { "" };
    let mut names: Vec<String> = missing.iter().take(SHOWN).map(|symbol| symbol.name.clone()).collect();
    if missing.len() > SHOWN {
        names.push(format!("{} more", missing.len() - SHOWN));
    }
    let subject = missing[0].name.clone();
    let names = names.join(", ");
    let Some(object) = owner.map(|owner| &graph.objects[owner]) else {
        let message = format!("no library has {names}: the loader would stop the program{when}\nneeded by: {by}");
        let hint =
            "one of the libraries is of another release than the program was linked with: use that one, or build anew";
        return Finding::new(Code::LibraryLacksSymbol, subject, message, hint);
    };
    let soname = object.soname.as_deref().unwrap_or(&object.name);
    let found = format!("found: {}, picked by: {}", object.path.display(), object.place);
    if let (true, Some(version)) = (missing[0].unversioned, &missing[0].version) {
        let message = format!(
            "{soname} has no versions, and {names} is asked of it in version {version}: the loader would stop the program\n\
             needed by: {by}\n{found}"
        );
        let hint = format!("use the {soname} that the program was linked with");
        return Finding::new(Code::LibraryLacksSymbol, subject, message, hint);
    }
    let known = missing.iter().filter_map(|symbol| symbols::releases(soname, &symbol.name));
    let newest = known.max_by_key(|releases| releases.first);
    let mut message =
        format!("{soname} lacks {names}: the loader would stop the program{when}\nneeded by: {by}\n{found}");
    let words = match newest {
        Some(Releases { first: Some(first), last }) => {
            let last = last.map(|last| format!(" up to {last}")).unwrap_or_default();
            let _ = write!(message, "\nfirst in: {soname} {first}{last}");
            format!("use {soname} {first}{}", if last.is_empty() { " or newer".to_owned() } else { last })
        }
        Some(Releases { last: Some(last), .. }) => {
            let _ = write!(message, "\nlast in: {soname} {last}");
            format!("use {soname} {last} or older")
        }
        _ => format!("use the {soname} that the program was linked with, or a newer one"),
    };
    Finding::new(
        Code::LibraryLacksSymbol,
        subject,
        message,
        format!("{words}; or rebuild against the one that is there"),
    )
}
