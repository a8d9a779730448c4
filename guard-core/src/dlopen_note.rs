//! The libraries that a file opens by name, as a note that other tools read too.
//!
//! Such a library stands in no `DT_NEEDED`, so neither the loader nor a packager sees it. The note is the one of
//! <https://systemd.io/ELF_DLOPEN_METADATA>: section `.note.dlopen`, owner `FDO`, type `0x407c0c0a`, a JSON array of
//! objects, read by `systemd-analyze dlopen-metadata`, `dlopen-notes.py` and `dh_dlopenlibdeps`. What a crate can open is
//! `suggested`: that does not say that the program does. What the policy declares is `recommended`, and `required` where it says so.

use serde_json::{Value, json};

use crate::elf::Elf;
use crate::manifest::{Linkage, Manifest, Opens, Requirement};
use crate::vendor::CUDNN;

/// The note's owner, without its NUL.
pub const OWNER: &str = "FDO";
/// Its type.
pub const TYPE: u32 = 0x407c_0c0a;
/// Its section.
pub const SECTION: &str = ".note.dlopen";

/// One library in such a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DlopenEntry {
    /// What for: the stem of a library without `lib`.
    pub feature: String,
    /// In words.
    pub description: String,
    /// `required`, `recommended` or `suggested`.
    pub priority: String,
    /// The names, in the order in which they are tried.
    pub sonames: Vec<String>,
}

/// The note's text for a manifest; `None` where nothing is opened by name.
pub fn note_text(manifest: &Manifest) -> Option<String> {
    let declared = manifest.requires.iter().find_map(|row| match row {
        Requirement::Library { soname, linkage, required, .. } => Some((soname, *linkage, *required)),
        _ => None,
    });
    let required = declared.is_some_and(|(.., required)| required);
    let entry = |stem: &str, priority: &str, by: &str, sonames: Vec<String>| {
        json!({
            "feature": stem,
            "description": format!("opened by name by {by}"),
            "priority": priority,
            "soname": sonames,
        })
    };
    let by_crate = |opens: &Opens, stem: &String| {
        let priority = if required && stem == CUDNN.key { "required" } else { "suggested" };
        entry(stem, priority, &opens.by, opens.candidate_names(stem))
    };
    let by_crates =
        manifest.opens.iter().flat_map(|opens| opens.libraries.iter().map(move |stem| by_crate(opens, stem)));
    let mut entries: Vec<Value> = by_crates.collect();
    // Where the project opens it itself, only the policy knows.
    if let Some((soname, Linkage::Dlopened, _)) = declared {
        if entries.iter().all(|entry| entry["feature"] != CUDNN.key) {
            let priority = if required { "required" } else { "recommended" };
            entries.push(entry(CUDNN.key, priority, &manifest.component.to_string(), vec![soname.clone()]));
        }
    }
    (!entries.is_empty()).then(|| Value::Array(entries).to_string())
}

/// What the notes of a file say, of whoever wrote them. One that is no such JSON says nothing.
pub fn read_notes(elf: &Elf<'_>) -> Vec<DlopenEntry> {
    let notes = elf.notes().filter(|note| note.owner == OWNER && note.kind == TYPE);
    notes.flat_map(|note| parse_entries(note.desc)).collect()
}

fn parse_entries(text: &[u8]) -> Vec<DlopenEntry> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let Ok(Value::Array(entries)) = serde_json::from_slice(text) else { return Vec::new() };
    let entry = |value: &Value| {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let sonames = value["soname"].as_array()?.iter().filter_map(|name| name.as_str().map(str::to_owned));
        Some(DlopenEntry {
            feature: text("feature"),
            description: text("description"),
            priority: text("priority"),
            sonames: sonames.collect(),
        })
    };
    entries.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_note_says_nothing() {
        for text in ["", "{}", "[1, \"x\", {}]", "[{\"soname\": 1}]", "not JSON"] {
            assert!(parse_entries(text.as_bytes()).is_empty(), "{text}");
        }
        let found = parse_entries(b"[{\"soname\":[\"libx.so.1\"],\"feature\":\"x\"}]\0\0\0");
        assert_eq!((found[0].sonames.len(), found[0].feature.as_str()), (1, "x"));
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(bytes: Vec<u8>) {
            let _ = parse_entries(&bytes);
        }
    }
}
