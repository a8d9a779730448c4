//! Error messages and their most frequent causes (`data/symptoms.toml`). [`diagnose`] takes a number, the name of a
//! status, an error message or a whole log, and returns the symptoms that match.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::knowledge::from_text;
use cudaguard::internal::finding::Code;

mod pattern;
mod statuses;

use pattern::{NormalizedText, Pattern};

/// An error as users see it. Its JSON is a part of the output of `explain`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Symptom {
    /// The name that `explain` accepts.
    pub name: String,
    /// A short title.
    pub title: String,
    /// A description of what happened.
    pub means: String,
    /// The numbers of this error.
    #[serde(default)]
    pub numbers: Vec<Number>,
    /// Names of status codes.
    #[serde(default, rename(serialize = "statuses"))]
    pub names: Vec<String>,
    /// Patterns of the message, in the syntax of the data file.
    #[serde(default, skip_serializing)]
    pub texts: Vec<String>,
    /// Patterns of names, by the key of the messages about them.
    #[serde(default, skip_serializing)]
    pub about: BTreeMap<String, Vec<String>>,
    /// The most frequent one first.
    #[serde(rename(deserialize = "cause"))]
    pub causes: Vec<Cause>,
    /// Public pages that show it.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Names and texts.
    #[serde(skip)]
    patterns: Vec<Pattern>,
}

/// A cause of a symptom.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause, in one sentence.
    pub why: String,
    /// The findings that detect it.
    #[serde(deserialize_with = "codes_of_numbers", serialize_with = "names_of_codes")]
    pub codes: Vec<Code>,
    /// The fact of a machine that selects this cause.
    #[serde(skip_serializing)]
    pub when: Option<MachineFact>,
    /// The command that shows whether it is this cause.
    pub see: String,
    /// The action to take.
    #[serde(rename(serialize = "do"))]
    pub fix: String,
}

/// A fact of a machine that decides between the causes of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineFact {
    /// Every GPU is a virtual one.
    Vgpu,
    /// The process runs in a container.
    Container,
    /// The machine is Windows Subsystem for Linux.
    Wsl,
    /// `CUDA_MPS_PIPE_DIRECTORY` is set.
    MpsVariable,
    /// The status is that of `cuInit`: a fact of every machine.
    Init,
    /// `/dev/nvidia-uvm` or `/dev/nvidiactl` is missing, or this process may not open it.
    NoUvm,
}

/// An error number of one family, in the data file `CUDA: 35`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Number {
    /// `CUDA`, `NVML`, …: who assigns the number.
    #[serde(rename = "of")]
    pub family: String,
    /// The number.
    pub number: u32,
}

/// The contents of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymptomTable {
    /// The families of numbers, in the order in which a bare number is looked up.
    families: Vec<String>,
    /// Texts that contain a number, with the beginning of its families.
    numbered: Vec<(String, Pattern)>,
    /// Ordinary log lines that look like errors.
    harmless: Vec<Pattern>,
    /// English texts, with their patterns in other languages.
    translated: BTreeMap<String, Vec<Pattern>>,
    /// The messages of compilers and linkers about a name, by kind. `NAME` is the placeholder for the name.
    messages: BTreeMap<String, Vec<String>>,
    #[serde(rename = "symptom")]
    symptoms: Vec<Symptom>,
}

/// The result of [`diagnose`].
#[derive(Debug)]
pub enum SymptomMatches {
    /// The text is a message of cudaguard with these findings.
    Findings(Vec<Code>),
    /// A bare number, and every symptom that has it.
    Number(u32, Vec<&'static Symptom>),
    /// The symptoms that the text matches, in the order of the table.
    Shown(Vec<&'static Symptom>),
    /// The text matches no symptom.
    Nothing,
}

const TEXT: &str = include_str!("../../../data/symptoms.toml");

/// Returns the symptoms in the order of their priority.
pub fn all_symptoms() -> &'static [Symptom] {
    &compiled_in().symptoms
}

/// Returns the statuses that have no symptom of their own. Their names are the names of the statuses.
pub fn all_statuses() -> &'static [Symptom] {
    static STATUSES: OnceLock<Vec<Symptom>> = OnceLock::new();
    STATUSES.get_or_init(|| statuses::parse_statuses().unwrap_or_else(|error| unreachable!("built-in table: {error}")))
}

fn compiled_in() -> &'static SymptomTable {
    static TABLE: OnceLock<SymptomTable> = OnceLock::new();
    TABLE.get_or_init(|| parse_table(TEXT).unwrap_or_else(|error| unreachable!("built-in table: {error}")))
}

/// Finds the symptoms that this text shows.
pub fn diagnose(text: &str) -> SymptomMatches {
    let trimmed = text.trim();
    if let Some(symptom) = all_symptoms().iter().find(|symptom| symptom.name == trimmed) {
        return SymptomMatches::Shown(vec![symptom]);
    }
    let codes = find_own_codes(text);
    if !codes.is_empty() {
        return SymptomMatches::Findings(codes);
    }
    if let Some((number, families)) = parse_bare_number(trimmed) {
        let mut matching: Vec<&Symptom> = Vec::new();
        for table in [all_symptoms(), all_statuses()] {
            for found in families.iter().filter_map(|family| find_by_number(table, family, number)) {
                // One symptom can have this number in several families.
                if matching.iter().all(|other| other.name != found.name) {
                    matching.push(found);
                }
            }
        }
        return if matching.is_empty() { SymptomMatches::Nothing } else { SymptomMatches::Number(number, matching) };
    }
    let text = normalize(text);
    let numbered = find_numbered(&text);
    let is_shown =
        |symptom: &&Symptom| symptom.matches(&text) || numbered.iter().any(|other| other.name == symptom.name);
    let mut shown: Vec<_> = all_symptoms().iter().filter(is_shown).collect();
    if shown.is_empty() {
        shown = all_statuses().iter().filter(is_shown).collect();
    }
    if shown.is_empty() { SymptomMatches::Nothing } else { SymptomMatches::Shown(shown) }
}

/// Returns the symptom of a status of `cuInit`, and its likeliest cause on a machine with these facts. If no fact selects a cause, it
/// is the first one that needs none. `None`: no table has this status.
pub fn likeliest_cause(status: u32, facts: &[MachineFact]) -> Option<(&'static Symptom, &'static Cause)> {
    let symptom = find_by_init_status(status)?;
    let selected = |cause: &&Cause| cause.when.is_some_and(|fact| facts.contains(&fact));
    let mut causes = symptom.causes.iter();
    let cause = causes.clone().find(selected).or_else(|| causes.find(|cause| cause.when.is_none()))?;
    Some((symptom, cause))
}

/// Translates messages of glibc and GNU ld to English, and removes harmless log lines.
fn normalize(text: &str) -> NormalizedText {
    let mut text = NormalizedText::new(text);
    for (english, patterns) in &compiled_in().translated {
        for pattern in patterns {
            text.replace(pattern, &NormalizedText::new(english));
        }
    }
    for pattern in &compiled_in().harmless {
        text.replace(pattern, &NormalizedText::new(""));
    }
    text
}

impl Symptom {
    fn matches(&self, text: &NormalizedText) -> bool {
        self.patterns.iter().any(|pattern| pattern.find_matches(text).next().is_some())
    }
}

fn find_by_number(table: &'static [Symptom], family: &str, number: u32) -> Option<&'static Symptom> {
    table.iter().find(|symptom| symptom.numbers.iter().any(|one| one.family == family && one.number == number))
}

/// Returns the symptom of a status that `cuInit` returns. If only other calls return the status, it is the one of a driver that fails
/// without a reason.
fn find_by_init_status(status: u32) -> Option<&'static Symptom> {
    let find =
        |table| ["CUDA", "CUDA driver", "CUDA runtime"].iter().find_map(|family| find_by_number(table, family, status));
    find(all_symptoms()).or_else(|| {
        let _ = find(all_statuses())?;
        find_by_number(all_symptoms(), "CUDA", 999)
    })
}

/// Returns the findings that a message of cudaguard names: `error[CG202]`.
fn find_own_codes(text: &str) -> Vec<Code> {
    let mut codes = Vec::new();
    for (at, _) in text.match_indices("[CG") {
        let code = text.get(at + 1..at + 6).filter(|_| text[at + 6..].starts_with(']'));
        if let Some(code) = code.and_then(|code| code.parse::<Code>().ok()).filter(|code| !codes.contains(code)) {
            codes.push(code);
        }
    }
    codes
}

/// Parses a number that is accompanied only by the name of its family: `209`, `CUDA error 35`, `exit status 78`.
fn parse_bare_number(text: &str) -> Option<(u32, Vec<&'static String>)> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let at = words.iter().position(|word| word.parse::<u32>().is_ok())?;
    let number = words.remove(at).parse().ok()?;
    let all = &compiled_in().families;
    let mut families: Vec<_> = all.iter().collect();
    for word in &words {
        let begins = |family: &&String| family.to_ascii_lowercase().split(' ').next() == Some(word.as_str());
        match word.as_str() {
            "error" | "code" | "number" | "status" => {}
            // The numbers that both APIs share belong to each of them.
            "runtime" | "driver" => families.retain(|family| *family == "CUDA" || family.contains(word.as_str())),
            _ if all.iter().any(|family| begins(&family)) => families.retain(begins),
            _ => return None,
        }
    }
    Some((number, families))
}

/// Returns the symptoms of the numbers that the text contains together with their family.
fn find_numbered(text: &NormalizedText) -> Vec<&'static Symptom> {
    let mut found: Vec<&'static Symptom> = Vec::new();
    for (family, pattern) in &compiled_in().numbered {
        for number in pattern.find_matches(text).filter_map(|found| found.number) {
            if family == "cuInit" {
                found.extend(find_by_init_status(number));
                continue;
            }
            let families = compiled_in().families.iter().filter(|one| one.starts_with(family.as_str()));
            let by_family = |family: &String| {
                find_by_number(all_symptoms(), family, number)
                    .or_else(|| find_by_number(all_statuses(), family, number))
            };
            found.extend(families.filter_map(by_family).take(1));
        }
    }
    found
}

/// Returns the messages of one kind about these names.
fn messages_about<'a>(
    messages: &'a BTreeMap<String, Vec<String>>,
    kind: &str,
    names: &'a [String],
) -> impl Iterator<Item = String> + use<'a> {
    let forms = messages.get(kind).into_iter().flatten();
    forms.flat_map(move |form| names.iter().map(move |name| form.replace("NAME", name)))
}

/// Parses the table.
fn parse_table(text: &str) -> Result<SymptomTable, toml::de::Error> {
    let mut table: SymptomTable = toml::from_str(text)?;
    for symptom in &mut table.symptoms {
        let messages = symptom.about.iter().flat_map(|(kind, names)| messages_about(&table.messages, kind, names));
        let texts = symptom.names.iter().chain(&symptom.texts).cloned().chain(messages);
        symptom.patterns = texts.map(|text| Pattern::new(&text)).collect();
    }
    Ok(table)
}

impl FromStr for Number {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (family, number) = text.rsplit_once(": ").ok_or(())?;
        Ok(Self { family: family.to_owned(), number: number.parse().map_err(|_| ())? })
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        from_text(input)
    }
}

fn codes_of_numbers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Code>, D::Error> {
    let code = |number: u16| {
        format!("CG{number}").parse::<Code>().map_err(|()| D::Error::custom(format_args!("no CG{number}")))
    };
    Vec::deserialize(input)?.into_iter().map(code).collect()
}

fn names_of_codes<S: Serializer>(codes: &[Code], json: S) -> Result<S::Ok, S::Error> {
    json.collect_seq(codes.iter().map(Code::to_string))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn first(text: &str) -> String {
        match diagnose(text) {
            SymptomMatches::Shown(shown) => shown[0].name.clone(),
            SymptomMatches::Number(_, matching) => matching[0].name.clone(),
            SymptomMatches::Findings(codes) => codes[0].to_string(),
            SymptomMatches::Nothing => String::new(),
        }
    }

    #[test]
    fn rows_are_complete_and_unique() {
        let mut seen = BTreeSet::new();
        for symptom in all_symptoms() {
            let Symptom { name, texts, about, names, numbers, causes, sources, means, title, .. } = symptom;
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(plain) && name.contains(char::is_alphabetic), "{name}");
            assert!(seen.insert(name.clone()), "duplicate {name}");
            assert!((1..=3).contains(&causes.len()), "{name}: one to three causes");
            assert!(!texts.is_empty() || !names.is_empty() || !numbers.is_empty(), "{name}: matches nothing");
            assert!(!sources.is_empty() || name == "refused-by-the-guard", "{name}: no source");
            assert!(sources.iter().all(|source| source.starts_with("https://")), "{name}: {sources:?}");
            assert!(means.ends_with(['.', ')']) && !title.ends_with('.'), "{name}: {means} {title}");
            for number in numbers {
                assert!(compiled_in().families.contains(&number.family), "{name}: {number:?}");
                assert!(seen.insert(format!("{}: {}", number.family, number.number)), "{name}: duplicate {number:?}");
            }
            for text in texts.iter().chain(names) {
                assert!(seen.insert(text.to_ascii_lowercase()), "{name}: duplicate `{text}`");
            }
            assert!(about.keys().all(|kind| compiled_in().messages.contains_key(kind)), "{name}: {about:?}");
            for cause in causes {
                assert!(cause.why.ends_with(['.', ')']) && !cause.fix.ends_with('.'), "{name}: {cause:?}");
            }
        }
    }

    /// Each status of the second table has one row, and none in the first table.
    #[test]
    fn statuses_are_complete_and_unique() {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for number in all_symptoms().iter().flat_map(|symptom| &symptom.numbers) {
            seen.insert(format!("{}: {}", number.family, number.number));
        }
        seen.extend(all_symptoms().iter().flat_map(|symptom| symptom.names.clone()));
        for status in all_statuses() {
            let Number { family, number } = &status.numbers[0];
            assert!(compiled_in().families.contains(family), "{}: {family}", status.name);
            assert!(seen.insert(format!("{family}: {number}")), "{}: duplicate {family} {number}", status.name);
            assert!(status.means.ends_with('.') && status.causes[0].why.ends_with('.'), "{}", status.name);
            assert!(!status.causes[0].fix.ends_with('.') && !status.sources.is_empty(), "{}", status.name);
            for name in &status.names {
                assert!(seen.insert(name.clone()), "duplicate {name}");
                assert_eq!(first(name), status.name, "{name}");
            }
            let library = family.split(' ').next().unwrap_or_default();
            assert_eq!(first(&format!("{library} error {number}")), status.name, "{family} {number}");
            let text = format!("x.cu:3: CUDA error: {}", status.title);
            assert!(family != "CUDA" || first(&text) == status.name, "{text}");
        }
    }

    #[test]
    fn symptoms_match_their_own_texts() {
        for symptom in all_symptoms() {
            for name in symptom.names.iter().chain(std::iter::once(&symptom.name)) {
                assert_eq!(first(name), symptom.name, "{name}");
                assert_eq!(first(&format!("x: Error {name}(\"…\")")).is_empty(), *name == symptom.name, "{name}");
            }
            let about = symptom.about.iter();
            let messages = about.flat_map(|(kind, names)| messages_about(&compiled_in().messages, kind, names));
            for text in symptom.texts.iter().cloned().chain(messages) {
                let (start, end) = if text.starts_with("= ") { ("\n", "\n") } else { ("/a/b.rs:12: ", ": c") };
                let text = text
                    .trim_start_matches("= ")
                    .replace('*', "x")
                    .replace('#', "12.4")
                    .replace(" ... ", " and so on ");
                let SymptomMatches::Shown(shown) = diagnose(&format!("{start}{text}{end}")) else { panic!("{text}") };
                assert!(shown.iter().any(|shown| shown.name == symptom.name), "{text}");
            }
            for number in &symptom.numbers {
                let SymptomMatches::Number(_, matching) = diagnose(&number.number.to_string()) else {
                    panic!("{number:?}")
                };
                assert!(matching.iter().any(|matching| matching.name == symptom.name), "{number:?}");
            }
        }
    }

    #[test]
    fn numbers_are_looked_up_by_family() {
        for (text, name) in [
            ("803", "driver-parts-differ"),
            ("error 803", "driver-parts-differ"),
            ("CUDA error: 35", "driver-too-old"),
            ("cuda runtime error (35)", "driver-too-old"),
            ("cuda 1", "cudaErrorInvalidValue"),
            ("1", "cudnn-not-initialized"),
            ("cudnn 1", "cudnn-not-initialized"),
            ("cuDNN status 1", "cudnn-not-initialized"),
            ("cublas 13", "library-execution-failed"),
            ("nvml 18", "driver-parts-differ"),
            ("18", "driver-parts-differ"),
            ("48", "no-kernel-image"),
            ("exit status 78", "refused-by-the-guard"),
            ("exit code 127", "library-missing"),
            ("driver 202", "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
            ("runtime 202", ""),
            ("4711", ""),
            ("line 209", ""),
            ("Check failed: error == cudaSuccess (803 vs. 0)", "driver-parts-differ"),
            ("x.cu:255 code=35(cudaErrorX) \"y\"", "driver-too-old"),
            ("CUDNN failure 1: X ; GPU=0", "cudnn-not-initialized"),
            ("CURAND failure 105: (see curand.h)", "CURAND_STATUS_LENGTH_NOT_MULTIPLE"),
            ("HTTP error 804", ""),
            ("error: os error 100", ""),
            ("cudaGetDeviceProperties returned 802", "fabric-manager"),
            ("cuda driver library init failure: 205", "driver-unknown-error"),
            ("cuInit(0) returned 304", "device-not-open"),
            ("cuInit err: 209", "no-kernel-image"),
        ] {
            assert_eq!(first(text), name, "{text}");
        }
    }

    #[test]
    fn a_number_lists_each_symptom_once() {
        for number in 0..=1000 {
            if let SymptomMatches::Number(_, matching) = diagnose(&number.to_string()) {
                let names: BTreeSet<&str> = matching.iter().map(|symptom| symptom.name.as_str()).collect();
                assert_eq!(names.len(), matching.len(), "{number}: {names:?}");
            }
        }
    }

    #[test]
    fn own_messages_return_their_findings() {
        assert_eq!(first("cudaguard: error[CG202]: cuDNN 9.1.0 is older"), "CG202");
        assert_eq!(first("x[CG999] y"), "");
    }

    #[test]
    fn malformed_rows_are_errors() {
        let row = |rest: &str| format!("[[symptom]]\nname = \"a\"\ntitle = \"b\"\nmeans = \"c.\"\n{rest}");
        let cause = "[[symptom.cause]]\nwhy = \"d.\"\nsee = \"e\"\nfix = \"f\"\n";
        for (text, expected) in [
            ("x = 1".to_owned(), "unknown field `x`"),
            (row(""), "missing field `cause`"),
            (row("numbers = [\"Cuda\"]"), "`Cuda` is not valid here"),
            (row(&format!("{cause}codes = [999]")), "no CG999"),
        ] {
            let error = parse_table(&text).expect_err("a malformed row").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
