//! Keys of host files that this cudaguard does not know.

use std::collections::BTreeSet;

use super::described_libraries::OTHER_LIBRARIES;
use crate::knowledge::vendor;
use cudaguard::internal::sanitize::sanitize_line;
use cudaguard::internal::suggest::closest_match;

/// Maximum number of keys that are reported.
const MOST: usize = 16;
/// Maximum length of a reported key, in characters.
const LONGEST: usize = 64;

/// The known keys, except those of single libraries.
const KEYS: [&str; 11] = [
    "schema",
    "revision",
    "name",
    "platform",
    "kind",
    "driver",
    "gpus",
    OTHER_LIBRARIES,
    "variables",
    "sources",
    "doubts",
];

/// The unknown keys of host files, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownKeys(BTreeSet<String>);

impl UnknownKeys {
    /// Adds a key that no reader of the file uses. Keys of other tools (`$schema`, `_comment`) are not added.
    pub(super) fn add(&mut self, key: &str) {
        let is_of_others = key.starts_with(['$', '_', '/', '#']);
        if !is_of_others && !KEYS.contains(&key) && self.0.len() < MOST {
            self.0.insert(key.chars().take(LONGEST).collect());
        }
    }

    /// Adds the keys of another file.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
        while self.0.len() > MOST {
            self.0.pop_last();
        }
    }

    /// Describes each key, with the known key that it may be meant for.
    pub fn descriptions(&self) -> impl Iterator<Item = String> + '_ {
        let libraries = vendor::DESCRIBED.into_iter().map(|library| library.key);
        let known: Vec<&str> = KEYS.into_iter().chain(libraries).collect();
        self.0.iter().map(move |key| {
            let intent = closest_match(key, &known).map(|known| format!("; did you mean `{known}`?"));
            format!("the key `{}` is unknown and was ignored{}", sanitize_line(key), intent.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::Machine;

    #[test]
    fn unknown_keys_are_described() {
        for (text, expected) in [
            (r#"{"gpu": [], "drivers": {}, "gpus": []}"#, &["`drivers`|`driver`", "`gpu`|`gpus`"][..]),
            (r#"{"cudnnn": [{}]}"#, &["`cudnnn`|`cudnn`"]),
            (r#"{"rack": "r7", "rack": 8}"#, &["`rack`"]),
            (r#"{"schema": 1, "revision": 1, "$schema": "x", "_comment": "y", "sources": {}, "doubts": []}"#, &[]),
            // A newer cudaguard knows more keys.
            (r#"{"gpu": [], "revision": 2}"#, &[]),
        ] {
            let line = |text: String| {
                let (key, intent) = text.split_once(" is unknown and was ignored").expect("a description");
                let intent = intent.strip_prefix("; did you mean ").and_then(|rest| rest.strip_suffix('?'));
                let key = key.trim_start_matches("the key ");
                intent.map_or(key.to_owned(), |intent| format!("{key}|{intent}"))
            };
            let keys = Machine::unknown_keys(text);
            assert_eq!(keys.descriptions().map(line).collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(Machine::read_for_judging(text).expect(text).2, keys);
        }
    }

    #[test]
    fn schema_keys_are_known() {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/cudaguard-host.schema.json");
        let schema = std::fs::read_to_string(schema).expect("a file");
        let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
        let libraries = vendor::DESCRIBED.map(|library| library.key);
        let mut keys = schema["properties"].as_object().expect("an object").keys();
        assert!(keys.all(|key| KEYS.contains(&key.as_str()) || libraries.contains(&key.as_str())));
    }

    #[test]
    fn keys_are_bounded() {
        let mut all = UnknownKeys::default();
        for file in 0..3 {
            let mut keys = UnknownKeys::default();
            (0..2 * MOST).for_each(|at| keys.add(&format!("{file}-{at}-{}", "x".repeat(2 * LONGEST))));
            all.extend(keys);
        }
        assert_eq!(all.descriptions().count(), MOST);
        assert!(all.0.iter().all(|key| key.len() == LONGEST));
    }
}
