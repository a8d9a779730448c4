//! The language of the pages: CONTRIBUTING.md, "Style". Counts sentences with expressions that outsiders do not understand.

use std::fs;

use crate::documents::files;
use crate::places;

/// Maximum share of sentences with one of these expressions, in percent. Well-known projects have 0 to 4.
const BOUND: usize = 2;

/// Expressions that name neither the actor nor the action.
const AVOIDED: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "stand",
    "stands",
    "stood",
    "told",
    "tell",
    "tells",
    "say",
    "says",
    "said",
    "in words",
    "beside",
    "behind",
    "of its own",
    "taken for",
    "come of",
    "comes of",
    "made of",
    "left out",
    "lead to",
    "leads to",
    "hand on",
    "hands on",
    "hand over",
    "hands over",
    "lie",
    "lies",
    "ask of",
    "asks of",
    "for its own",
    "for their own",
    "held against",
    "looked at",
    "look at",
    "looks at",
    "be had",
    "it is all",
    "than that",
    "of which",
    "whose",
    "where it",
    "where they",
    "what it",
    "what is",
    "what a",
    "what the",
    "what was",
    "what they",
];

/// Returns the prose of a page, without code and tables.
fn prose(page: &str) -> String {
    let outside: String = page.split("```").step_by(2).collect();
    let mut text: String = outside.split('`').step_by(2).collect::<Vec<_>>().join("X");
    text = text.lines().filter(|line| !line.trim_start().starts_with('|')).map(|line| line.to_owned() + "\n").collect();
    text
}

/// Returns the sentences of at least four words, in lower case, separated by single blanks.
fn sentences(prose: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for paragraph in prose.split("\n\n") {
        let mut words: Vec<String> = Vec::new();
        for word in paragraph.split_whitespace() {
            words.push(word.to_lowercase());
            if word.ends_with(['.', '!', '?', ':']) {
                sentences.push(std::mem::take(&mut words));
            }
        }
        sentences.push(words);
    }
    sentences.into_iter().filter(|words| words.len() >= 4).map(|words| words.join(" ")).collect()
}

fn avoided(sentence: &str) -> Option<&'static str> {
    let words: String = sentence.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    AVOIDED.iter().copied().find(|phrase| words.contains(&format!(" {phrase} ")))
}

#[test]
fn pages_use_plain_english() {
    let (mut total, mut found) = (0, Vec::new());
    for page in files(&[".md"]) {
        let name = page.strip_prefix(places::workspace()).expect("a page of the repository").display().to_string();
        if name == "CHANGELOG.md" || page.is_symlink() {
            continue;
        }
        let all = sentences(&prose(&fs::read_to_string(&page).expect("a page")));
        total += all.len();
        found.extend(all.iter().filter_map(|text| Some(format!("{name}: \"{}\": {text}", avoided(text)?))));
    }
    assert!(total > 1000, "{total}");
    assert!(found.len() * 100 <= total * BOUND, "{} of {total} sentences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn avoided_expression_is_found() {
    let page =
        "# Title\n\nThe file lies beside it. The linker picks the first match:\n`it says so`, `told`.\n| it says |\n";
    let all = sentences(&prose(page));
    assert_eq!(all.iter().map(|text| avoided(text)).collect::<Vec<_>>(), [Some("beside"), None]);
}
