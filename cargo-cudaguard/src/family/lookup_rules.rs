//! Findings about functions that crates look up by name and that the opened library lacks.

use super::fit_facts::Member;
use super::looked_up::LookedUp;
use super::rules::Resolve;
use crate::binary::symbols;
use crate::knowledge::crates::table::Symbols;
use crate::knowledge::vendor;
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::version::Version;

/// Returns the findings about functions that crates look up and that the library which they open lacks.
pub(crate) fn looked_up_findings(members: &[&Member], judged: usize, resolve: &Resolve<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, member) in members[..judged].iter().enumerate() {
        for lookup in &member.looks_up {
            let opened = lookup.files.iter().find_map(|name| resolve(at, name));
            let Some(opened) = opened.filter(|library| !members[*library].exports.is_empty()) else { continue };
            let library = members[opened];
            // `dlsym` also searches the libraries that this one needs.
            let needed = library.needed.iter().filter_map(|name| resolve(opened, name)).map(|index| members[index]);
            let files: Vec<&Member> = std::iter::once(library).chain(needed).collect();
            let mut missing: Vec<&String> = lookup.functions.iter().collect();
            missing.retain(|function| !files.iter().any(|file| file.exports.contains(*function)));
            if !missing.is_empty() {
                let values = Values::default().with("needed_by", &member.name).with("path", &library.name);
                findings.push(lookup_finding(lookup, &library.soname, &missing, values));
            }
        }
    }
    findings
}

/// Returns what members look up in the libraries that crates open by name.
pub(crate) fn lookups<'a>(members: impl IntoIterator<Item = &'a Member>) -> Vec<LookedUp> {
    members.into_iter().flat_map(|member| member.looks_up.iter().cloned()).collect()
}

/// Returns the finding about a library that is described by its name and its version. For a library of another CUDA major than the
/// bindings, the table of functions does not show whether it has all of them.
pub(crate) fn described_library_finding(
    lookup: &LookedUp,
    name: &str,
    version: Option<Version>,
    path: Option<&str>,
) -> Option<Finding> {
    let mut missing: Vec<&String> = lookup.functions.iter().collect();
    missing.retain(|function| {
        let releases = symbols::releases_with(name, function).zip(version);
        releases.is_some_and(|(releases, version)| !releases.contains(version))
    });
    if !missing.is_empty() {
        return Some(lookup_finding(lookup, name, &missing, Values::default().with_known("path", path)));
    }
    let bindings = lookup.cuda_major();
    let is_other_major = bindings.zip(vendor::cuda_majors_with(name)).is_some_and(|(cuda, all)| !all.contains(&cuda));
    let is_unknown = is_other_major
        || version.is_none()
            && lookup.functions.iter().any(|function| symbols::releases_with(name, function).is_some());
    (is_unknown && lookup.when == Symbols::Opened).then(|| {
        let values = Values::default().with("library", name).with("crate", &lookup.by).with_known("cuda", bindings);
        MessageTemplate::LibraryNotStatedBindings.to_finding(&values.with_known("path", path))
    })
}

fn lookup_finding(lookup: &LookedUp, soname: &str, missing: &[&String], values: Values) -> Finding {
    let words = match lookup.when {
        Symbols::Opened => MessageTemplate::LibraryLacksSymbolAtOpening,
        Symbols::ResolvedAtFirstCall => MessageTemplate::LibraryLacksSymbolAtCall,
        Symbols::Checked => MessageTemplate::LibraryLacksSymbolChecked,
    };
    let first: Option<Version> = missing.iter().filter_map(|name| symbols::first_with(soname, name)).max();
    let values = values.with("library", vendor::plain_name(soname)).with("symbol", missing[0]);
    let values = values.with("symbols", symbols::list_functions(missing)).with("crate", &lookup.by);
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
            let found = looked_up_findings(&members.iter().collect::<Vec<_>>(), members.len(), &resolve);
            let line = |finding: &Finding| {
                format!("{} {}", finding.severity.name(), finding.message.lines().next().unwrap_or_default())
            };
            assert_eq!(found.iter().map(line).collect::<Vec<_>>(), expected, "{functions:?} {name}");
        }
    }
}
