//! Functions that a crate looks up by name in a library that it opens when the program runs.

use std::collections::BTreeSet;

use super::member::Member;
use super::rules::Resolve;
use crate::binary::file::{constants_after, notes_in};
use crate::binary::symbols;
use crate::knowledge::crates::table::{self, Mode, Symbols};
use cudaguard::internal::elf::{Elf, Symbol};
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::Opens;
use cudaguard::internal::vendor;
use cudaguard::internal::version::Version;

/// The functions that a crate looks up in one library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookedUp {
    /// The crate: `cudarc 0.19.10`.
    by: String,
    /// The file names that it tries, in order.
    files: Vec<String>,
    functions: BTreeSet<String>,
    when: Symbols,
}

/// Libraries without `lib`, and the start of the names of their functions.
const PREFIXES: [(&str, &str); 12] = [
    ("cublas", "cublas"),
    ("cublasLt", "cublasLt"),
    ("cudart", "cuda"),
    ("cudnn", "cudnn"),
    ("cufft", "cufft"),
    ("curand", "curand"),
    ("cusolver", "cusolver"),
    ("cusolverMg", "cusolverMg"),
    ("cusparse", "cusparse"),
    ("cutensor", "cutensor"),
    ("nccl", "nccl"),
    ("nvrtc", "nvrtc"),
];

/// Other libraries have the functions with these prefixes.
const OF_OTHERS: [&str; 4] = ["cublasLt", "cublasXt", "cusolverMg", "cusparseLt"];

/// The start of the names of functions after the prefix. The names of types differ.
const VERBS: [&str; 4] = ["Create", "Destroy", "Get", "Set"];

/// The number of functions that a finding names.
const SHOWN: usize = 3;

fn prefix_of(stem: &str) -> Option<&'static str> {
    PREFIXES.iter().find(|(known, _)| *known == stem).map(|(_, prefix)| *prefix)
}

/// Returns the functions that crates look up according to the manifests of a file, as far as its constants contain their names.
pub(super) fn looked_up(data: &[u8]) -> Vec<LookedUp> {
    let notes = notes_in(data).unwrap_or_default();
    let manifests = notes.iter().filter_map(|note| Some(note.decode().ok()?.manifest));
    let opens: Vec<Opens> = manifests.flat_map(|manifest| manifest.opens).collect();
    let mut all = Vec::new();
    for crate_opens in &opens {
        let row = crate_opens.by.split_once(' ').and_then(|(name, version)| table::find_row(name, version));
        let row = row.filter(|row| row.modes.iter().any(|(_, mode)| *mode == Mode::Loaded));
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
    let is_of_others = |name: &str| OF_OTHERS.iter().any(|other| *other != prefix && name.starts_with(other));
    let known: Vec<&str> = symbols::functions_of_stem(stem).filter(|name| !is_of_others(name)).collect();
    let function = |behind: &[u8]| {
        let text = &behind[..behind.len().min(LONGEST)];
        if when != Symbols::Opened {
            // Names in Rust's constants need not end with NUL.
            let starts = |name: &&&str| name.strip_prefix(prefix).is_some_and(|rest| text.starts_with(rest.as_bytes()));
            return Some((*known.iter().filter(starts).max_by_key(|name| name.len())?).to_owned());
        }
        let name = std::str::from_utf8(text.split(|byte| *byte == 0).next().filter(|name| name.len() < text.len())?);
        let name = name.ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))?;
        let is_verb = VERBS.iter().any(|verb| name.starts_with(verb));
        // The table has no functions that only another major has.
        let full = format!("{prefix}{name}");
        (known.contains(&full.as_str()) || is_verb && !is_of_others(&full)).then_some(full)
    };
    constants_after(data, prefix).into_iter().filter_map(function).collect()
}

/// Returns the functions that a library exports and that crates look up.
pub(super) fn exported_functions(elf: &Elf<'_>, soname: &str) -> BTreeSet<String> {
    let stem = soname.strip_prefix("lib").and_then(|name| name.split(".so").next()).unwrap_or_default();
    let Some(prefix) = prefix_of(stem) else { return BTreeSet::new() };
    let exported = elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name());
    exported.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect()
}

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
    let mut names: Vec<String> = missing.iter().take(SHOWN).map(|name| (*name).clone()).collect();
    if missing.len() > SHOWN {
        names.push(format!("{} more", missing.len() - SHOWN));
    }
    let words = match lookup.when {
        Symbols::Opened => MessageTemplate::LibraryLacksSymbolAtOpening,
        Symbols::ResolvedAtFirstCall => MessageTemplate::LibraryLacksSymbolAtCall,
        Symbols::Checked => MessageTemplate::LibraryLacksSymbolChecked,
    };
    let first: Option<Version> = missing.iter().filter_map(|name| symbols::first_with(&library.soname, name)).max();
    let soname = vendor::plain_name(&library.soname).into_owned();
    let values = Values::default().with("library", soname).with("symbol", missing[0]).with("symbols", names.join(", "));
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

    #[test]
    fn prefixes_belong_to_known_libraries() {
        for (stem, prefix) in PREFIXES {
            let soname = format!("lib{stem}.so.12");
            assert!(vendor::is_nvidia_soname(&soname), "{soname}");
            let known: Vec<&str> = symbols::functions_of_stem(stem).collect();
            let is_own = |name: &&str| name.starts_with(prefix) || name.starts_with('_') || name.starts_with('p');
            assert!(known.iter().all(is_own), "{stem}: {known:?}");
        }
    }
}
