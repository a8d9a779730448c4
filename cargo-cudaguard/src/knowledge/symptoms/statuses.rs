//! Statuses without a symptom of their own (`data/statuses.toml`). Each one becomes a [`Symptom`] with the cause of its group.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::pattern::Pattern;
use super::{Cause, Number, Symptom};
use cudaguard::internal::finding::Code;

const TEXT: &str = include_str!("../../../data/statuses.toml");
/// A shorter text is also part of messages that are unrelated to CUDA.
const DISTINCTIVE_WORDS: usize = 5;
/// What precedes the text of a status in error messages.
const PREFIXES: [&str; 4] = ["cuda error: ", "cuda error ", "cuda failure: ", "cuda failure "];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusTable {
    #[serde(rename = "group")]
    groups: Vec<StatusGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusGroup {
    /// The family of the numbers.
    of: String,
    means: String,
    why: String,
    #[serde(default, deserialize_with = "codes")]
    codes: Vec<Code>,
    see: String,
    fix: String,
    sources: Vec<String>,
    statuses: Vec<String>,
}

fn codes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Code>, D::Error> {
    super::codes_of_numbers(input)
}

/// Parses the table.
pub(super) fn parse_statuses() -> Result<Vec<Symptom>, String> {
    let table: StatusTable = toml::from_str(TEXT).map_err(|error| error.to_string())?;
    table.groups.iter().flat_map(|group| group.statuses.iter().map(|row| parse_status(group, row))).collect()
}

/// Parses `[FAMILY:]NUMBER NAME…: TEXT`.
fn parse_status(group: &StatusGroup, row: &str) -> Result<Symptom, String> {
    let invalid = || format!("`{row}` is not `[FAMILY:]NUMBER NAME…: TEXT`");
    let (head, text) = row.split_once(": ").ok_or_else(invalid)?;
    let (family, head) = head.split_once(':').unwrap_or((&group.of, head));
    let mut words = head.split(' ');
    let number = words.next().and_then(|number| number.parse().ok()).ok_or_else(invalid)?;
    let names: Vec<String> = words.map(str::to_owned).collect();
    let name = names.first().ok_or_else(invalid)?.clone();
    let mut patterns: Vec<Pattern> = names.iter().map(|name| Pattern::new(name)).collect();
    if family == "CUDA" {
        patterns.extend(PREFIXES.map(|prefix| Pattern::new(&format!("{prefix}{text}"))));
        if text.split(' ').count() >= DISTINCTIVE_WORDS {
            patterns.push(Pattern::new(text));
        }
    }
    Ok(Symptom {
        name,
        title: text.to_owned(),
        numbers: vec![Number { family: family.to_owned(), number }],
        names,
        texts: Vec::new(),
        about: BTreeMap::new(),
        means: group.means.clone(),
        sources: group.sources.clone(),
        causes: vec![Cause {
            why: group.why.clone(),
            codes: group.codes.clone(),
            when: None,
            see: group.see.clone(),
            fix: group.fix.clone(),
        }],
        patterns,
    })
}
