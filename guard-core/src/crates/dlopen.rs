//! The libraries that crates open by name: recorded in the manifest, and as a note that other tools read too.
//!
//! Such a library stands in no `DT_NEEDED`, so neither the loader nor a packager sees it. The note is the one of
//! <https://systemd.io/ELF_DLOPEN_METADATA>: section `.note.dlopen`, owner `FDO`, type `0x407c0c0a`, a JSON array of
//! objects, read by `systemd-analyze dlopen-metadata`, `dlopen-notes.py` and `dh_dlopenlibdeps`. Everything in it is
//! `suggested`: that a crate can open a library does not say that the program does.

use serde_json::{Value, json};

use super::table::Mode;
use super::{Crate, Use};
use crate::elf::Elf;
use crate::manifest::{Manifest, Opens};

/// The note's owner, without its NUL.
pub const OWNER: &str = "FDO";
/// Its type.
pub const TYPE: u32 = 0x407c_0c0a;
/// Its section.
pub const SECTION: &str = ".note.dlopen";

/// One library in such a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What for: the stem of a library without `lib`.
    pub feature: String,
    /// In words.
    pub description: String,
    /// `required`, `recommended` or `suggested`.
    pub priority: String,
    /// The names, in the order in which they are tried.
    pub sonames: Vec<String>,
}

/// What these crates open by name.
pub fn opens(uses: &[Use]) -> Vec<Opens> {
    let loaded = uses.iter().filter(|one| !one.of.tool && one.of.mode() == Mode::Loaded);
    loaded.filter_map(|one| of(&one.of, one.level.as_ref().map(|level| level.value))).collect()
}

fn of(one: &Crate, level: Option<crate::version::CudaVersion>) -> Option<Opens> {
    let row = one.row()?;
    // Windows' spellings are tried on Linux too, and no package has such a file.
    let names = row.names_of("", level).into_iter().filter(|name| !name.contains("64"));
    let endings: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("lib")?.to_owned())).collect();
    let libraries: Vec<String> = one.libraries().into_iter().map(str::to_owned).collect();
    (!libraries.is_empty() && !endings.is_empty()).then(|| Opens { by: one.in_words(), libraries, endings })
}

/// The note's text for a manifest; `None` where nothing is opened by name.
pub fn text(manifest: &Manifest) -> Option<String> {
    let entry = |opens: &Opens, stem: &String| {
        json!({
            "feature": stem,
            "description": format!("opened by name by {}", opens.by),
            "priority": "suggested",
            "soname": opens.names(stem),
        })
    };
    let entries: Vec<Value> =
        manifest.opens.iter().flat_map(|opens| opens.libraries.iter().map(move |stem| entry(opens, stem))).collect();
    (!entries.is_empty()).then(|| Value::Array(entries).to_string())
}

/// What the notes of a file say, of whoever wrote them. One that is no such JSON says nothing.
pub fn read(elf: &Elf<'_>) -> Vec<Entry> {
    let notes = elf.notes().filter(|note| note.owner == OWNER && note.kind == TYPE);
    notes.flat_map(|note| parse(note.desc)).collect()
}

fn parse(text: &[u8]) -> Vec<Entry> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let Ok(Value::Array(entries)) = serde_json::from_slice(text) else { return Vec::new() };
    let entry = |value: &Value| {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let sonames = value["soname"].as_array()?.iter().filter_map(|name| name.as_str().map(str::to_owned));
        Some(Entry {
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
    use crate::crates::look::{Chosen, Told};
    use crate::version::CudaVersion;

    #[test]
    fn names_of_what_is_opened() {
        let mut one = Use {
            of: Crate {
                name: "cudarc".to_owned(),
                version: "0.19.10".to_owned(),
                features: ["driver", "cudnn", "dynamic-loading"].map(str::to_owned).into(),
                path: vec!["app".to_owned(), "cudarc 0.19.10".to_owned()],
                ..Crate::default()
            },
            level: Some(Told { value: CudaVersion::new(13, 0), by: String::new(), chosen: Chosen::Fixed }),
            library: None,
            compiler: None,
            headers: None,
            arch: None,
            stopped: None,
        };
        one.of.features.insert("cudnn-09021".to_owned());
        let found = opens(std::slice::from_ref(&one));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].by, "cudarc 0.19.10");
        assert_eq!(found[0].libraries, ["cuda", "cudnn"]);
        assert_eq!(found[0].endings, [".so", ".so.13", ".so.12", ".so.11", ".so.10", ".so.9", ".so.1"]);
        assert_eq!(found[0].names("cudnn")[..2], ["libcudnn.so", "libcudnn.so.13"]);
        one.of.features.insert("dynamic-linking".to_owned());
        assert!(opens(&[one]).is_empty(), "what is linked stands in DT_NEEDED");
    }

    #[test]
    fn what_is_no_such_note_says_nothing() {
        for text in ["", "{}", "[1, \"x\", {}]", "[{\"soname\": 1}]", "not JSON"] {
            assert!(parse(text.as_bytes()).is_empty(), "{text}");
        }
        let found = parse(b"[{\"soname\":[\"libx.so.1\"],\"feature\":\"x\"}]\0\0\0");
        assert_eq!((found[0].sonames.len(), found[0].feature.as_str()), (1, "x"));
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
