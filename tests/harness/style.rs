//! Checks the language of pages, comments and messages: CONTRIBUTING.md, "Style". Counts sentences, comments and string literals
//! with expressions that outsiders do not understand.

use std::fs;
use std::path::{Path, PathBuf};

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

/// Maximum shares of comments and string literals, in percent: comments that begin with a fragment, comments with one of
/// [`PRIVATE`], string literals with one of them. Well-known projects have up to 4 of each.
const FRAGMENTS: usize = 4;
const PRIVATE_IN_COMMENTS: usize = 3;
const PRIVATE_IN_STRINGS: usize = 1;
/// Tests contain source code in string literals.
const PRIVATE_IN_TEST_STRINGS: usize = 3;

/// Openings of comments that define nothing.
const FRAGMENT_STARTS: &[&str] = &[
    "what",
    "whether",
    "those",
    "these",
    "the same",
    "of the",
    "of this",
    "of these",
    "of a",
    "of which",
    "of its",
    "of what",
    "by the",
    "by its",
    "by what",
    "by a",
    "by which",
    "as it",
    "as the",
    "as a",
    "as one",
    "as what",
    "as many",
    "as much",
    "where",
    "who",
    "whose",
    "which",
    "so many",
    "from which",
    "in which",
    "in whose",
    "for people",
    "for whom",
    "none",
    "nothing",
    "nobody",
    "before",
    "behind",
    "beside",
    "below",
    "at once",
    "at most",
    "with",
    "without",
    "on this",
    "on the",
    "a one",
    "an other",
    "one",
    "other",
];

/// Expressions that name neither the actor nor the action, in comments and in messages of the program.
const PRIVATE: &[&str] = &[
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
    "words",
    "beside",
    "behind",
    "besides",
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
];

/// Returns the prose of a page, without code and tables.
fn prose(page: &str) -> String {
    let outside: String = page.split("```").step_by(2).collect();
    let mut text: String = outside.split('`').step_by(2).collect::<Vec<_>>().join("X");
    text = text.lines().filter(|line| !line.trim_start().starts_with('|')).map(|line| line.to_owned() + "\n").collect();
    text
}

/// Returns the sentences in lower case, separated by single blanks. Headings and other short ones are omitted.
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

/// Returns a text in lower case, with a blank around each run of letters and digits.
fn words(text: &str) -> String {
    let words: String = text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn first_of(phrases: &[&'static str], text: &str) -> Option<&'static str> {
    let words = words(text);
    phrases.iter().copied().find(|phrase| words.contains(&format!(" {phrase} ")))
}

fn avoided(sentence: &str) -> Option<&'static str> {
    first_of(AVOIDED, sentence)
}

/// Comments and string literals of a Rust source.
#[derive(Default)]
struct RustTexts {
    /// Blocks of adjacent comment lines.
    comments: Vec<String>,
    /// String literals before the unit tests, without placeholders. Short ones are omitted.
    strings: Vec<String>,
}

impl RustTexts {
    fn parse(source: &str) -> Self {
        let mut texts = Self::default();
        let mut block = String::new();
        for line in source.lines().chain([""]) {
            match line.trim_start().strip_prefix("//") {
                Some(comment) => block = block + comment.trim_start_matches(['/', '!']) + " ",
                None if block.is_empty() => {}
                None => texts.comments.push(std::mem::take(&mut block).trim().to_owned()),
            }
        }
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let mut rest = code;
        while let Some(at) = rest.find(['"', '\'', '/']) {
            let (before, start) = rest.split_at(at);
            rest = if start.starts_with("//") {
                start.split_once('\n').map_or("", |(_, next)| next)
            } else if let Some(inside) = start.strip_prefix('"') {
                let hashes = before.len() - before.trim_end_matches('#').len();
                let raw = before[..before.len() - hashes].ends_with('r');
                let (text, next) = if raw { split_raw(inside, hashes) } else { split_escaped(inside) };
                let text = without_placeholders(text);
                if text.split_whitespace().count() >= 4 {
                    texts.strings.push(text);
                }
                next
            } else {
                // A character, which may be a quotation mark, or a lifetime.
                let character = ["'\"'", "'\\''", "'\\\\'"].into_iter().find(|known| start.starts_with(known));
                &start[character.map_or(1, str::len)..]
            };
        }
        texts
    }
}

/// Splits after the end of a raw string.
fn split_raw(text: &str, hashes: usize) -> (&str, &str) {
    text.split_once(&format!("\"{}", "#".repeat(hashes))).unwrap_or((text, ""))
}

/// Splits after the quotation mark that no backslash escapes.
fn split_escaped(text: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or((text, ""), |end| (&text[..end], &text[end + 1..]))
}

fn without_placeholders(text: &str) -> String {
    let mut pieces = text.split('{');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('}').map_or(piece, |(_, rest)| rest))
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

/// Fails if more than `bound` percent of `all` texts are in `found`.
fn check_share(what: &str, found: &[String], all: usize, bound: usize) {
    assert!(found.len() * 100 <= all * bound, "{} of {all} {what}:\n{}", found.len(), found.join("\n"));
}

/// Comments of several files: their number, and those that break a rule.
#[derive(Default)]
struct CheckedComments {
    total: usize,
    fragments: Vec<String>,
    private: Vec<String>,
}

impl CheckedComments {
    fn add(&mut self, name: &str, comments: &[String]) {
        self.total += comments.len();
        for text in comments {
            let words = words(text);
            if FRAGMENT_STARTS.iter().any(|start| words[1..].starts_with(&format!("{start} "))) {
                self.fragments.push(format!("{name}: {text}"));
            }
            self.private.extend(first_of(PRIVATE, text).map(|word| format!("{name}: \"{word}\": {text}")));
        }
    }

    /// Fails if there are fewer than `least` comments, which means that they were not found, or too many break a rule.
    fn check(&self, least: usize) {
        assert!(self.total >= least, "{} comments", self.total);
        check_share("comments begin with a fragment", &self.fragments, self.total, FRAGMENTS);
        check_share("comments", &self.private, self.total, PRIVATE_IN_COMMENTS);
    }
}

/// Returns the files with one of these endings by their path in the repository, without the word lists of this file.
fn sources(endings: &[&str]) -> Vec<(String, String)> {
    let name =
        |path: &Path| path.strip_prefix(places::workspace()).expect("a file of the repository").display().to_string();
    let read = |path: PathBuf| Some((name(&path), fs::read_to_string(&path).ok()?));
    files(endings)
        .into_iter()
        .filter(|path| !path.is_symlink() && !path.ends_with("style.rs"))
        .filter_map(read)
        .collect()
}

/// Checks the comments and string literals of the Rust sources for which `is_included` returns true.
fn check_rust(is_included: impl Fn(&str) -> bool, bound: usize) {
    let (mut comments, mut strings, mut private) = (CheckedComments::default(), 0, Vec::new());
    for (name, source) in sources(&[".rs"]).into_iter().filter(|(name, _)| is_included(name)) {
        let texts = RustTexts::parse(&source);
        comments.add(&name, &texts.comments);
        strings += texts.strings.len();
        private.extend(
            texts.strings.iter().filter_map(|text| Some(format!("{name}: \"{}\": {text}", first_of(PRIVATE, text)?))),
        );
    }
    comments.check(1000);
    assert!(strings > 500, "{strings} string literals");
    check_share("string literals", &private, strings, bound);
}

fn is_shipped(name: &str) -> bool {
    ["guard-core/src/", "cargo-cudaguard/src/", "templates/"].iter().any(|top| name.starts_with(top))
}

#[test]
fn rust_sources_use_plain_english() {
    check_rust(|name| is_shipped(name) && !name.contains("tests"), PRIVATE_IN_STRINGS);
}

#[test]
fn tests_use_plain_english() {
    check_rust(|name| !is_shipped(name) || name.contains("tests"), PRIVATE_IN_TEST_STRINGS);
}

#[test]
fn c_sources_use_plain_english() {
    let mut comments = CheckedComments::default();
    for (name, source) in sources(&[".c", ".h", ".cu", ".cpp"]) {
        let blocks = source.split("/*").skip(1).filter_map(|rest| rest.split("*/").next());
        let text = |block: &str| block.split_whitespace().filter(|word| *word != "*").collect::<Vec<_>>().join(" ");
        comments.add(&name, &blocks.map(text).collect::<Vec<_>>());
    }
    comments.check(300);
}

#[test]
fn scripts_and_data_use_plain_english() {
    let mut comments = CheckedComments::default();
    for (name, source) in sources(&[".cmake", "CMakeLists.txt", ".py", ".sh", ".toml", ".yml", ".yaml", ".tsv"]) {
        comments.add(&name, &hash_comments(&source));
    }
    let scripts = fs::read_dir(places::workspace().join(".ci")).expect("the scripts").flatten();
    for script in scripts.filter(|entry| entry.path().extension().is_none()) {
        let source = fs::read_to_string(script.path()).expect("a script");
        comments.add(&script.file_name().to_string_lossy(), &hash_comments(&source));
    }
    comments.check(150);
}

/// Returns the blocks of adjacent lines that begin with `#`.
fn hash_comments(source: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), String::new());
    for line in source.lines().chain([""]) {
        match line.trim_start().strip_prefix('#').filter(|rest| !rest.starts_with('!')) {
            Some(comment) => block = block + comment.trim_matches(['#', ' ']) + " ",
            None if block.is_empty() => {}
            None => blocks.push(std::mem::take(&mut block).trim().to_owned()),
        }
    }
    blocks
}
