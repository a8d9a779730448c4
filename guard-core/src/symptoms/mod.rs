//! What people have in hand when a program fails, and what it most often means (`data/symptoms.toml`): [`asked`] takes a
//! number, the name of a status, an error's text or a whole log, and answers with what fits, or with nothing.

use std::sync::OnceLock;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::entry::Entry;
use crate::finding::Code;

mod pattern;

use pattern::{Pattern, Text};

/// What goes wrong, as people see it.
#[derive(Clone, Debug)]
pub struct Symptom {
    /// As `explain` takes it.
    pub name: String,
    /// In a few words.
    pub title: String,
    /// The numbers that stand for it.
    pub numbers: Vec<Number>,
    /// The names of statuses.
    pub names: Vec<String>,
    /// What is said; the data file has the rules.
    pub texts: Vec<String>,
    /// What happened.
    pub means: String,
    /// Public pages that show it.
    pub sources: Vec<String>,
    /// The likeliest first.
    pub causes: Vec<Cause>,
    patterns: Vec<Pattern>,
}

/// Why it goes wrong.
#[derive(Clone, Debug)]
pub struct Cause {
    /// A sentence.
    pub why: String,
    /// The findings that would have said it.
    pub codes: Vec<Code>,
    /// The command that shows whether it is this one.
    pub see: String,
    /// What to do.
    pub cure: String,
}

/// A number, and who means this by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// `CUDA`, `NVML`, …: who counts so.
    pub family: String,
    /// The number.
    pub number: u32,
}

/// The data file.
#[derive(Debug)]
struct Table {
    /// Who counts errors, in the order in which a bare number is looked up.
    families: Vec<String>,
    /// How a text says a number, with the beginning of its families.
    numbered: Vec<(String, Pattern)>,
    symptoms: Vec<Symptom>,
}

/// What an answer is about.
#[derive(Debug)]
pub enum Answer {
    /// The text is this program's own: these findings.
    Findings(Vec<Code>),
    /// A number alone, and each that it may stand for.
    Number(u32, Vec<&'static Symptom>),
    /// What the text shows, the most telling first.
    Shown(Vec<&'static Symptom>),
    /// Nothing in it is known.
    Nothing,
}

const FILE: &str = "symptoms.toml";
const TEXT: &str = include_str!("../../data/symptoms.toml");

/// The symptoms, what says more first.
pub fn table() -> &'static [Symptom] {
    &whole().symptoms
}

/// The table that is compiled in.
fn whole() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| read(TEXT).unwrap_or_else(|error| unreachable!("a table that is compiled in: {error}")))
}

/// What this text shows.
pub fn asked(text: &str) -> Answer {
    let trimmed = text.trim();
    if let Some(symptom) = table().iter().find(|symptom| symptom.name == trimmed) {
        return Answer::Shown(vec![symptom]);
    }
    let codes = own_codes(text);
    if !codes.is_empty() {
        return Answer::Findings(codes);
    }
    if let Some((number, families)) = bare_number(trimmed) {
        let meant: Vec<_> = families.iter().filter_map(|family| of_number(family, number)).collect();
        return if meant.is_empty() { Answer::Nothing } else { Answer::Number(number, meant) };
    }
    let text = Text::new(text);
    let mut shown: Vec<_> = table().iter().filter(|symptom| symptom.is_in(&text)).collect();
    for symptom in numbered(&text) {
        if !shown.iter().any(|other| other.name == symptom.name) {
            shown.push(symptom);
        }
    }
    if shown.is_empty() { Answer::Nothing } else { Answer::Shown(shown) }
}

impl Symptom {
    fn is_in(&self, text: &Text) -> bool {
        self.patterns.iter().any(|pattern| pattern.find(text).next().is_some())
    }
}

fn of_number(family: &str, number: u32) -> Option<&'static Symptom> {
    let means = |symptom: &&Symptom| symptom.numbers.iter().any(|one| one.family == family && one.number == number);
    table().iter().find(means)
}

/// The findings that a text of this program's names: `error[CG202]`.
fn own_codes(text: &str) -> Vec<Code> {
    let mut codes = Vec::new();
    for (at, _) in text.match_indices("[CG") {
        let code = text.get(at + 1..at + 6).filter(|_| text[at + 6..].starts_with(']'));
        if let Some(code) = code.and_then(|code| code.parse::<Code>().ok()).filter(|code| !codes.contains(code)) {
            codes.push(code);
        }
    }
    codes
}

/// A number with nothing but words that say whose it is: `209`, `CUDA error 35`, `exit status 78`.
fn bare_number(text: &str) -> Option<(u32, Vec<&'static String>)> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let at = words.iter().position(|word| word.parse::<u32>().is_ok())?;
    let number = words.remove(at).parse().ok()?;
    let mut families: Vec<_> = whole().families.iter().collect();
    for word in &words {
        let begins = |family: &&String| family.to_ascii_lowercase().split(' ').next() == Some(word.as_str());
        match word.as_str() {
            "error" | "code" | "number" | "status" => {}
            // The numbers that both APIs share are each one's own, too.
            "runtime" | "driver" => families.retain(|family| *family == "CUDA" || family.contains(word.as_str())),
            _ if whole().families.iter().any(|family| begins(&family)) => families.retain(begins),
            _ => return None,
        }
    }
    Some((number, families))
}

/// What the numbers mean that a text says in a way that leaves no doubt whose they are.
fn numbered(text: &Text) -> Vec<&'static Symptom> {
    let mut found: Vec<&'static Symptom> = Vec::new();
    for (family, pattern) in &whole().numbered {
        for number in pattern.find(text).flatten() {
            let of_family = whole().families.iter().filter(|one| one.starts_with(family.as_str()));
            found.extend(of_family.filter_map(|family| of_number(family, number)).take(1));
        }
    }
    found
}

/// Reads the table; an error names the row, the key and what was expected.
fn read(text: &str) -> Result<Table, String> {
    let whole = DeTable::parse(text).map_err(|error| format!("{FILE}: {}", error.message()))?;
    let top = Entry { file: FILE, key: String::new(), table: whole.get_ref() };
    top.only(&["families", "numbered", "symptom"])?;
    let families = top.texts("families")?;
    let numbered = top.pairs("numbered")?.into_iter().map(|(family, text)| (family, Pattern::new(&text))).collect();
    let symptoms = rows(&top, "symptom")?.iter().map(|row| symptom(row, &families)).collect::<Result<_, _>>()?;
    Ok(Table { families, numbered, symptoms })
}

fn rows<'a>(entry: &Entry<'a>, key: &str) -> Result<Vec<Entry<'a>>, String> {
    let rows = entry.get(key).and_then(DeValue::as_array).ok_or_else(|| entry.error(key, "an array of tables"))?;
    let row = |(index, row): (usize, &'a Spanned<DeValue<'a>>)| {
        let table = row.get_ref().as_table().ok_or_else(|| entry.error(key, "an array of tables"))?;
        Ok(Entry { file: FILE, key: format!("{}{key}[{index}].", entry.key), table })
    };
    rows.iter().enumerate().map(row).collect()
}

fn symptom(row: &Entry<'_>, families: &[String]) -> Result<Symptom, String> {
    row.only(&["name", "title", "numbers", "names", "texts", "means", "sources", "cause"])?;
    let number = |text: String| {
        let (family, number) = text.rsplit_once(": ")?;
        let number = number.parse().ok()?;
        families.iter().any(|one| one == family).then(|| Number { family: family.to_owned(), number })
    };
    let numbers = row.texts("numbers")?.into_iter().map(number).collect::<Option<_>>();
    let (names, texts) = (row.texts("names")?, row.texts("texts")?);
    Ok(Symptom {
        name: row.text("name")?,
        title: row.text("title")?,
        numbers: numbers.ok_or_else(|| row.error("numbers", "a list of \"FAMILY: NUMBER\""))?,
        patterns: names.iter().chain(&texts).map(|text| Pattern::new(text)).collect(),
        names,
        texts,
        means: row.text("means")?,
        sources: row.texts("sources")?,
        causes: rows(row, "cause")?.iter().map(cause).collect::<Result<_, _>>()?,
    })
}

fn cause(row: &Entry<'_>) -> Result<Cause, String> {
    row.only(&["why", "codes", "see", "cure"])?;
    let code = |value: &Spanned<DeValue<'_>>| {
        let number = value.get_ref().as_integer()?.as_str();
        format!("CG{number}").parse::<Code>().ok()
    };
    let codes = row.get("codes").and_then(DeValue::as_array).and_then(|codes| codes.iter().map(code).collect());
    Ok(Cause {
        why: row.text("why")?,
        codes: codes.ok_or_else(|| row.error("codes", "numbers of findings"))?,
        see: row.text("see")?,
        cure: row.text("cure")?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn first(text: &str) -> String {
        match asked(text) {
            Answer::Shown(shown) => shown[0].name.clone(),
            Answer::Number(_, meant) => meant[0].name.clone(),
            Answer::Findings(codes) => codes[0].to_string(),
            Answer::Nothing => String::new(),
        }
    }

    #[test]
    fn each_row_holds_together() {
        let mut seen = BTreeSet::new();
        for symptom in table() {
            let Symptom { name, texts, names, numbers, causes, sources, means, title, .. } = symptom;
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(plain) && name.contains(char::is_alphabetic), "{name}");
            assert!(seen.insert(name.clone()), "{name} is there twice");
            assert!((1..=3).contains(&causes.len()), "{name}: one to three causes");
            assert!(!texts.is_empty() || !names.is_empty() || !numbers.is_empty(), "{name}: known by nothing");
            assert!(sources.iter().all(|source| source.starts_with("https://")), "{name}: {sources:?}");
            assert!(means.ends_with(['.', ')']) && !title.ends_with('.'), "{name}: {means} {title}");
            for number in numbers {
                assert!(
                    seen.insert(format!("{}: {}", number.family, number.number)),
                    "{name}: {number:?} is there twice"
                );
            }
            for text in texts.iter().chain(names) {
                assert!(seen.insert(text.to_ascii_lowercase()), "{name}: `{text}` is there twice");
            }
            for cause in causes {
                assert!(cause.why.ends_with(['.', ')']) && !cause.cure.ends_with('.'), "{name}: {cause:?}");
            }
        }
    }

    #[test]
    fn each_symptom_is_told_by_its_own_words() {
        for symptom in table() {
            for name in symptom.names.iter().chain(std::iter::once(&symptom.name)) {
                assert_eq!(first(name), symptom.name, "{name}");
                assert_eq!(first(&format!("x: Error {name}(\"…\")")).is_empty(), *name == symptom.name, "{name}");
            }
            for text in &symptom.texts {
                let said = text.replace('*', "x").replace('#', "12.4").replace(" ... ", " and so on ");
                let Answer::Shown(shown) = asked(&format!("/a/b.rs:12: {said}: c")) else { panic!("{said}") };
                assert!(shown.iter().any(|shown| shown.name == symptom.name), "{said}");
            }
            for number in &symptom.numbers {
                let Answer::Number(_, meant) = asked(&number.number.to_string()) else { panic!("{number:?}") };
                assert!(meant.iter().any(|meant| meant.name == symptom.name), "{number:?}");
            }
        }
    }

    #[test]
    fn numbers_are_told_by_their_family() {
        for (text, name) in [
            ("803", "driver-parts-differ"),
            ("error 803", "driver-parts-differ"),
            ("CUDA error: 35", "driver-too-old"),
            ("cuda runtime error (35)", "driver-too-old"),
            ("1", "fault-in-kernel"),
            ("cudnn 1", "cudnn-not-initialized"),
            ("cuDNN status 1", "cudnn-not-initialized"),
            ("nvml 18", "driver-parts-differ"),
            ("18", "driver-parts-differ"),
            ("48", "no-kernel-image"),
            ("exit status 78", "refused-by-the-guard"),
            ("exit code 127", "library-missing"),
            ("driver 202", "context"),
            ("runtime 202", ""),
            ("4711", ""),
            ("line 209", ""),
            ("Check failed: error == cudaSuccess (803 vs. 0)", "driver-parts-differ"),
            ("x.cu:255 code=35(cudaErrorX) \"y\"", "driver-too-old"),
            ("CUDNN failure 1: X ; GPU=0", "cudnn-not-initialized"),
            ("HTTP error 804", ""),
            ("error: os error 100", ""),
            ("cudaGetDeviceProperties returned 802", "fabric-manager"),
        ] {
            assert_eq!(first(text), name, "{text}");
        }
    }

    #[test]
    fn the_programs_own_words_lead_to_its_findings() {
        assert_eq!(first("cudaguard: error[CG202]: cuDNN 9.1.0 is older"), "CG202");
        assert_eq!(first("x[CG999] y"), "");
    }

    #[test]
    fn a_row_that_is_not_one_is_told() {
        let row = |rest: &str| format!("[[symptom]]\nname = \"a\"\ntitle = \"b\"\nmeans = \"c.\"\n{rest}");
        for (text, said) in [
            ("x = 1".to_owned(), "symptoms.toml: `x`: expected no such key"),
            (row(""), "`symptom[0].cause`: expected an array of tables, found nothing"),
            (row("numbers = [\"Cuda: 1\"]"), "`symptom[0].numbers`: expected a list of \"FAMILY: NUMBER\""),
            (
                row("[[symptom.cause]]\nwhy = \"d.\"\ncodes = [999]\nsee = \"e\"\ncure = \"f\""),
                "`symptom[0].cause[0].codes`: expected numbers of findings",
            ),
        ] {
            let error = read(&text).expect_err("no such row");
            assert!(error.contains(said), "{error}");
        }
    }
}
