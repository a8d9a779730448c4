//! The note that lists the libraries that a file opens by name.
//!
//! `DT_NEEDED` does not contain such a library, so neither the loader nor a packager sees it. The format is that of
//! <https://systemd.io/ELF_DLOPEN_METADATA>: section `.note.dlopen`, owner `FDO`, type `0x407c0c0a`, a JSON array of
//! objects. `systemd-analyze dlopen-metadata`, `dlopen-notes.py` and `dh_dlopenlibdeps` read it. A library that a crate
//! can open is `suggested`, because the program may never open it. A library that the policy declares is `recommended`,
//! or `required` if the policy requires it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::binary::elf::Elf;
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::guard::{DLOPEN_OWNER, DLOPEN_TYPE};
use cudaguard::internal::manifest::{Linkage, Manifest, Requirement};

/// A library in such a note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct DlopenEntry {
    /// The feature that the library provides: the library's stem without `lib`.
    #[serde(default)]
    pub feature: String,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// `required`, `recommended` or `suggested`.
    #[serde(default)]
    pub priority: String,
    /// The file names, in the order in which the program tries them.
    #[serde(rename = "soname")]
    pub sonames: Vec<String>,
}

impl DlopenEntry {
    fn new(stem: &str, priority: &str, by: &str, sonames: Vec<String>) -> Self {
        Self {
            feature: stem.to_owned(),
            description: format!("opened by name by {by}"),
            priority: priority.to_owned(),
            sonames,
        }
    }
}

/// Returns the text of the note for a manifest. `None` if the program opens no library by name.
pub fn note_text(manifest: &Manifest) -> Option<String> {
    let declared = manifest.requires.iter().find_map(|row| match row {
        Requirement::Library { soname, linkage, required, .. } => Some((soname, *linkage, *required)),
        _ => None,
    });
    let required = declared.is_some_and(|(.., required)| required);
    let mut entries = Vec::new();
    for opens in &manifest.opens {
        for stem in &opens.libraries {
            let priority = if required && stem == CUDNN.key { "required" } else { "suggested" };
            entries.push(DlopenEntry::new(stem, priority, &opens.by, opens.candidate_names(stem)));
        }
    }
    // If the project opens the library itself, only the policy declares it.
    if let Some((soname, Linkage::Dlopened, _)) = declared
        && entries.iter().all(|entry| entry.feature != CUDNN.key)
    {
        let priority = if required { "required" } else { "recommended" };
        entries.push(DlopenEntry::new(CUDNN.key, priority, &manifest.component.to_string(), vec![soname.clone()]));
    }
    serde_json::to_string(&entries).ok().filter(|_| !entries.is_empty())
}

/// Returns the entries of all such notes in a file, whichever tool wrote them. A note that is not valid JSON of this
/// form is ignored.
pub fn read_notes(elf: &Elf<'_>) -> Vec<DlopenEntry> {
    let notes = elf.notes().filter(|note| note.owner == DLOPEN_OWNER && note.kind == DLOPEN_TYPE);
    notes.flat_map(|note| parse_entries(note.desc)).collect()
}

fn parse_entries(text: &[u8]) -> Vec<DlopenEntry> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let entries: Vec<Value> = serde_json::from_slice(text).unwrap_or_default();
    entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_notes_are_ignored() {
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
