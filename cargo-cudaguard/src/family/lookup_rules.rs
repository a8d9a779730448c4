//! Findings about functions that crates look up by name and that the opened library lacks.

use super::looked_up::LookedUp;
use super::member::Member;
use super::rules::Resolve;
use crate::binary::symbols;
use crate::knowledge::crates::table::Symbols;
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::vendor;
use cudaguard::internal::version::Version;

/// Returns the findings about functions that crates look up and that the library which they open lacks.
pub(crate) fn looked_up_findings(members: &[&Member], resolve: &Resolve<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, member) in members.iter().enumerate() {
        for lookup in &member.looks_up {
            let opened = lookup.files.iter().find_map(|name| resolve(at, name));
            let Some(opened) = opened.filter(|library| !members[*library].exports.is_empty()) else { continue };
            let library = members[opened];
            // `dlsym` also searches the libraries that this one needs.
            let needed = library.needed.iter().filter_map(|name| resolve(opened, name)).map(|index| members[index]);
            let files: Vec<&Member> = std::iter::once(library).chain(needed).collect();
            let has = |function: &String| files.iter().any(|file| file.exports.contains(function));
            let missing: Vec<&String> = lookup.functions.iter().filter(|function| !has(function)).collect();
            if !missing.is_empty() {
                findings.push(lookup_finding(member, lookup, library, &missing));
            }
        }
    }
    findings
}

fn lookup_finding(member: &Member, lookup: &LookedUp, library: &Member, missing: &[&String]) -> Finding {
    let words = match lookup.when {
        Symbols::Opened => MessageTemplate::LibraryLacksSymbolAtOpening,
        Symbols::ResolvedAtFirstCall => MessageTemplate::LibraryLacksSymbolAtCall,
        Symbols::Checked => MessageTemplate::LibraryLacksSymbolChecked,
    };
    let first: Option<Version> = missing.iter().filter_map(|name| symbols::first_with(&library.soname, name)).max();
    let soname = vendor::plain_name(&library.soname).into_owned();
    let values = Values::default()
        .with("library", soname)
        .with("symbol", missing[0])
        .with("symbols", symbols::list_functions(missing));
    let values = values.with("crate", &lookup.by).with("needed_by", &member.name).with("path", &library.name);
    let finding = words.to_finding(&values.with("later", missing[0]).with_known("first", first));
    // The program may avoid a single function, but not all of a library.
    if lookup.when == Symbols::Opened { finding } else { finding.with_severity(Severity::Warning) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(functions: &[&str], when: Symbols) -> Member {
        let lookup = LookedUp {
            by: "cudarc 0.17.8".to_owned(),
            files: vec!["libnvrtc.so".to_owned(), "libnvrtc.so.12".to_owned()],
            functions: functions.iter().map(|name| (*name).to_owned()).collect(),
            when,
        };
        Member { name: "bin/app".to_owned(), looks_up: vec![lookup], ..Member::default() }
    }

    fn nvrtc(major: u32, exports: &[&str]) -> Member {
        let soname = format!("libnvrtc.so.{major}");
        let exports = exports.iter().map(|name| (*name).to_owned()).collect();
        Member { name: format!("lib/{soname}"), soname, exports, ..Member::default() }
    }

    #[test]
    fn missing_functions_are_reported() {
        let both = ["nvrtcGetNVVM", "nvrtcGetPTX"];
        let thirteen = nvrtc(13, &["nvrtcGetPTX", "nvrtcGetTileIR"]);
        for (functions, when, library, name, expected) in [
            (
                &both[..],
                Symbols::Opened,
                Some(thirteen.clone()),
                "libnvrtc.so",
                &[
                    "error libnvrtc.so.13 lacks nvrtcGetNVVM, which cudarc 0.17.8 looks up when it opens the library: the program panics",
                ][..],
            ),
            (
                &["nvrtcGetTileIR"],
                Symbols::ResolvedAtFirstCall,
                Some(nvrtc(12, &both)),
                "libnvrtc.so.12",
                &[
                    "warning libnvrtc.so.12 lacks nvrtcGetTileIR: cudarc 0.17.8 panics when the program first calls nvrtcGetTileIR",
                ],
            ),
            (
                &["nvrtcGetTileIR"],
                Symbols::Checked,
                Some(nvrtc(12, &both)),
                "libnvrtc.so.12",
                &["warning libnvrtc.so.12 lacks nvrtcGetTileIR, which cudarc 0.17.8 may look up"],
            ),
            (&["nvrtcGetTileIR"], Symbols::ResolvedAtFirstCall, Some(thirteen.clone()), "libnvrtc.so", &[]),
            // The crate does not try this name; the library is not here; a file whose functions are unknown.
            (&both, Symbols::Opened, Some(thirteen), "libnvrtc.so.13", &[]),
            (&both, Symbols::Opened, None, "libnvrtc.so", &[]),
            (&both, Symbols::Opened, Some(nvrtc(13, &[])), "libnvrtc.so", &[]),
        ] {
            let members: Vec<Member> = std::iter::once(program(functions, when)).chain(library).collect();
            let resolve = |_: usize, soname: &str| (soname == name && members.len() > 1).then_some(1);
            let found = looked_up_findings(&members.iter().collect::<Vec<_>>(), &resolve);
            let line = |finding: &Finding| {
                format!("{} {}", finding.severity.name(), finding.message.lines().next().unwrap_or_default())
            };
            assert_eq!(found.iter().map(line).collect::<Vec<_>>(), expected, "{functions:?} {name}");
        }
    }
}
