//! Generator of the files that come from `guard-core/data/findings.toml`: the codes in Rust and their texts, the
//! messages of the shim in C, and the page.

// Authors of the table see a panic with the location; the generator has no other users.
#![allow(clippy::missing_panics_doc)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use toml::{Table, Value};

/// The source of all generated files.
pub const TABLE: &str = "guard-core/data/findings.toml";

const PAGE: &str = "\
# Findings

A finding is one problem that cudaguard reports. Its code never changes; its wording may improve. `cargo cudaguard explain CG101` prints the
explanation in the terminal. To allow a finding of a build, add its code and a reason to [`[allow]`](policy.md#allow-a-finding) in `cudaguard.toml`.

| codes | subject |
| --- | --- |
| CG1xx | the build |
| CG2xx | libraries at start-up |
| CG3xx | GPU and driver |
| CG5xx | facts that could not be determined |
| CG6xx | [requirements of a release](../guides/release-gate.md) |

A finding that *leaves the verdict open* makes the verdict `unknown`, unless another finding causes a refusal.

The guard checks findings that are marked *also checked at start-up*. The dynamic linker itself reports the problems CG210 to CG213; in a sealed
program the guard reports CG214 first. `verify` and `doctor` check more, for example libraries without a guard. They add
`not checked at start-up` to a finding that the guard does not check, and in JSON the key `at_start` with the value `not checked`.
";

const FINDINGS_IN_C: &str = "
/* name, code, severity, verdict, rank, subject, three lines, sentence, hint */
#define FINDINGS(X)";

/// The forms of hints.
const FORMS: [&str; 9] = ["set", "directory", "install", "rebuild", "remove", "policy", "driver", "reboot", "command"];

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The number of the code, such as 202.
    pub code: i64,
    /// The name of the code, such as `CudnnOlder`.
    pub name: String,
    /// The severity, such as `error`.
    pub severity: String,
    /// The effect on the verdict: `refuses`, `open` or `informs`.
    pub verdict: String,
    /// The rank in the order of findings.
    pub rank: Option<i64>,
    /// Set if the shim reports it, too.
    pub shim: bool,
    /// Set if the user need not act.
    pub no_action: bool,
    /// The form of the first hint, such as `remove`; empty if the user need not act.
    pub form: String,
    /// The short title.
    pub title: String,
    /// The detailed explanation.
    pub explanation: String,
    /// The message templates. The first one has no separate name.
    pub words: Vec<MessageTemplate>,
}

/// A message template of a code.
#[derive(Debug)]
pub struct MessageTemplate {
    /// The name of the template, such as `CudnnInnerMissingNeeded`.
    pub name: String,
    /// The subject of the message.
    pub subject: String,
    /// The sentence and its lines.
    pub message: String,
    /// The names of those lines. A line that only this template uses is its own name.
    pub lines: Vec<String>,
    /// The action to take.
    pub hint: String,
    /// Set if the shim uses the template.
    pub shim: bool,
}

/// A placeholder.
#[derive(Debug)]
pub struct Field {
    /// The name of the placeholder, such as `found`.
    pub name: String,
    /// The type of its value, such as `version`.
    pub kind: String,
    /// The meaning of the value.
    pub means: String,
}

/// The parsed table.
#[derive(Debug)]
pub struct Findings {
    /// The placeholders.
    pub fields: Vec<Field>,
    /// The lines that follow sentences, by name.
    pub lines: Vec<(String, String)>,
    /// Phrases that replace a value in several findings, by name.
    pub phrases: Vec<(String, String)>,
    /// Parts of texts that name something of Linux, and the same for Windows.
    pub windows: Vec<(String, String)>,
    /// Actions that differ by the tool that builds: a name, and the texts for cargo, CMake and other tools.
    pub front_ends: Vec<(String, [String; 3])>,
    /// The codes.
    pub rows: Vec<Row>,
}

/// Returns the root of the repository.
pub fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Reads the table. An error in it ends the process with the affected key.
pub fn read() -> Findings {
    let path = workspace().join(TABLE);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Findings::of(&text)
}

fn text(table: &Table, key: &str) -> String {
    table
        .get(key)
        .map(|value| value.as_str().unwrap_or_else(|| panic!("{key}: expected a text, found {value:?}")).to_owned())
        .unwrap_or_default()
}

fn flag(table: &Table, key: &str) -> bool {
    table.get(key).is_some_and(|value| value.as_bool().unwrap_or_else(|| panic!("{key}: expected true or false")))
}

fn table<'a>(value: Option<&'a Value>, name: &str) -> &'a Table {
    value.and_then(Value::as_table).unwrap_or_else(|| panic!("{TABLE}: no [{name}]"))
}

fn rows(value: Option<&Value>) -> impl Iterator<Item = &Table> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let pair = |value: &Value| {
        let [linux, windows] = value.as_array()?.as_slice() else { return None };
        Some((linux.as_str()?.to_owned(), windows.as_str()?.to_owned()))
    };
    let all = value.and_then(Value::as_array).into_iter().flatten();
    all.map(|value| pair(value).unwrap_or_else(|| panic!("{TABLE}: windows: expected two texts, found {value:?}")))
        .collect()
}

fn front_end(name: &str, texts: &Value) -> (String, [String; 3]) {
    let texts: Vec<_> = texts.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let texts =
        texts.try_into().unwrap_or_else(|texts| panic!("{TABLE}: {name}: expected three texts, found {texts:?}"));
    (name.to_owned(), texts)
}

impl Findings {
    /// Parses the table.
    pub fn of(source: &str) -> Self {
        let read: Table = source.parse().unwrap_or_else(|error| panic!("{TABLE}: {error}"));
        let (lines, phrases) = (table(read.get("lines"), "lines"), table(read.get("phrases"), "phrases"));
        let fields = table(read.get("fields"), "fields").iter().map(|(name, about)| Field {
            name: name.clone(),
            kind: text(table(Some(about), name), "kind"),
            means: text(table(Some(about), name), "means"),
        });
        let row = |row: &Table| {
            let (code, name) = (row["code"].as_integer().expect("a code is a number"), text(row, "name"));
            let known =
                "code name severity verdict rank shim no_action subject title message lines hint form explanation also";
            for key in row.keys() {
                assert!(known.split(' ').any(|known| known == key), "CG{code}: unknown key `{key}`");
            }
            let first = (row, String::new());
            let also = rows(row.get("also")).map(|also| (also, text(also, "name")));
            let words = std::iter::once(first).chain(also).map(|(words, own)| {
                let of = |key: &str| if words.contains_key(key) { words } else { row };
                let names: Vec<&str> = line_names(of("lines")).collect();
                MessageTemplate {
                    name: format!("{name}{own}"),
                    subject: text(of("subject"), "subject"),
                    message: message(&text(of("message"), "message"), &names, lines),
                    lines: names.into_iter().map(str::to_owned).collect(),
                    hint: text(of("hint"), "hint"),
                    shim: if words.contains_key("shim") { flag(words, "shim") } else { flag(row, "shim") },
                }
            });
            let form = row.get("form").and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_known = FORMS.contains(&form.as_str()) || flag(row, "no_action");
            assert!(is_known, "CG{code}: the form `{form}` of its hint is none of {FORMS:?}");
            Row {
                code,
                form,
                severity: text(row, "severity"),
                verdict: text(row, "verdict"),
                rank: row.get("rank").and_then(Value::as_integer),
                shim: flag(row, "shim"),
                no_action: flag(row, "no_action"),
                title: text(row, "title"),
                explanation: text(row, "explanation"),
                words: words.collect(),
                name,
            }
        };
        Self {
            fields: fields.collect(),
            lines: lines.keys().map(|name| (name.clone(), text(lines, name))).collect(),
            phrases: phrases.keys().map(|name| (name.clone(), text(phrases, name))).collect(),
            windows: pairs(read.get("windows")),
            front_ends: table(read.get("front_ends"), "front_ends")
                .iter()
                .map(|(name, texts)| front_end(name, texts))
                .collect(),
            rows: rows(read.get("finding")).map(row).collect(),
        }
    }

    /// Returns the files that are generated from the table, with their content.
    pub fn written(&self) -> [(&'static str, String); 4] {
        [
            ("guard-core/src/finding/codes.rs", self.rust()),
            ("guard-core/data/findings.tsv", self.texts()),
            ("templates/shim/findings.h", self.c()),
            ("docs/reference/findings.md", self.page()),
        ]
    }

    /// Generates `guard-core/src/finding/codes.rs`.
    pub fn rust(&self) -> String {
        let mut out = format!("// Written by `cargo findings` from {TABLE}; a test keeps it so.\n\ncodes! {{\n");
        for row in &self.rows {
            let Row { code, name, severity, verdict, .. } = row;
            let (severity, verdict, rank) = (title_case(severity), title_case(verdict), row.rank.unwrap_or(255));
            let at_start = row.is_judged_at_start();
            let _ = writeln!(out, "    {code} {name} {severity} {verdict} {rank} {at_start};");
        }
        out.push_str("}\n\nwords! {\n");
        for (row, words) in self.templates() {
            let _ = writeln!(out, "    {} {};", words.name, row.name);
        }
        out.push_str("}\n\nphrases! {\n");
        for (name, _) in &self.phrases {
            let _ = writeln!(out, "    {}", phrase_name(name));
        }
        let names: Vec<_> = self.fields.iter().map(|field| &field.name).collect();
        let _ = write!(
            out,
            "}}\n\n/// Names of the placeholders that a text may contain.\nconst FIELDS: &[&str] = &{names:?};\n\n\
             /// Parts of texts that name something of Linux, and the same for Windows.\npub const WINDOWS_NAMES: &[(&str, &str)] = &{:?};\n\n\
             /// Values of hints that differ by the tool that builds: for cargo, CMake and other tools.\n\
             const FRONT_ENDS: &[(&str, [&str; 3])] = &{:?};\n",
            self.windows, self.front_ends
        );
        out
    }

    /// Generates `guard-core/data/findings.tsv`: the texts of `codes.rs`, in its order.
    pub fn texts(&self) -> String {
        let mut out = format!(
            "# Generated by `cargo findings` from {TABLE}: the texts of the codes, of the message templates and of the phrases.\n"
        );
        let mut put = |name: &str, texts: &[&str]| {
            out.push_str(name);
            for text in texts {
                assert!(!text.contains('\\'), "{name}: a backslash would be an escape");
                out.push('\t');
                out.push_str(&text.replace('\n', "\\n").replace('\t', "\\t"));
            }
            out.push('\n');
        };
        for Row { name, title, explanation, .. } in &self.rows {
            put(name, &[title, explanation]);
        }
        for (_, words) in self.templates() {
            put(&words.name, &[&words.subject, &words.message, &words.hint]);
        }
        for (name, text) in &self.phrases {
            put(&phrase_name(name), &[text]);
        }
        out
    }

    fn templates(&self) -> impl Iterator<Item = (&Row, &MessageTemplate)> {
        self.rows.iter().flat_map(|row| row.words.iter().map(move |words| (row, words)))
    }

    /// Generates `templates/shim/findings.h`.
    pub fn c(&self) -> String {
        let spoken: Vec<(&Row, &MessageTemplate)> = self.templates().filter(|(_, words)| words.shim).collect();
        let uses = |name: &String| spoken.iter().any(|(_, words)| words.lines.contains(name));
        let lines: Vec<_> = self.lines.iter().filter(|(name, _)| uses(name)).collect();
        let mut fields = BTreeSet::new();
        let mut out = String::new();
        let head = format!(
            "/* Generated by `cargo findings` from {TABLE}: the messages of the shim.\n \
             * That file documents each column. In a text, {{name}} is a placeholder, which FIELDS\n \
             * describes, and a part in [ ] is omitted if a value in it is empty. */\n\
             #ifndef CUDAGUARD_FINDINGS_H\n#define CUDAGUARD_FINDINGS_H\n\n\
             #ifdef _WIN32\n#define ON(linux, windows) windows\n#else\n#define ON(linux, windows) linux\n#endif\n"
        );
        for (row, words) in &spoken {
            let MessageTemplate { name, message, lines, hint, .. } = words;
            assert!(!message.contains('\t'), "{name}: the shim cannot align columns");
            assert!(lines.len() <= 3, "{name}: the shim prints at most three lines after a sentence");
            let Row { code, severity, verdict, .. } = row;
            let (rank, severity, verdict) = (row.rank.unwrap_or(255), shout(severity), shout(verdict));
            let (name, subject) = (shout(name), words.subject.to_lowercase());
            let sentence = message.lines().next().unwrap_or_default();
            let line = |at: usize| words.lines.get(at).map_or("none", String::as_str);
            let _ = write!(
                out,
                " \\\n  X({name}, {code}, {severity}, {verdict}, {rank}, {subject}, {}, {}, {}, \\\n    {}, \\\n    {})",
                line(0),
                line(1),
                line(2),
                self.literal(sentence),
                self.literal(hint),
            );
            fields.extend(placeholders(sentence).chain(placeholders(hint)).map(str::to_owned));
        }
        out.push_str("\n\n/* name, subject */\n#define SUBJECTS(X)");
        for subject in spoken.iter().map(|(_, words)| &words.subject).collect::<BTreeSet<_>>() {
            let _ = write!(out, " \\\n  X({}, {subject:?})", subject.to_lowercase());
        }
        out.push_str("\n\n/* name, line; `none` is no line */\n#define LINES(X)");
        for (name, line) in lines {
            let _ = write!(out, " \\\n  X({name}, {})", self.literal(line));
            fields.extend(placeholders(line).map(str::to_owned));
        }
        out.push_str("\n\n/* name, kind */\n#define FIELDS(X)");
        for field in fields {
            let Some(Field { name, kind, means }) = self.fields.iter().find(|known| known.name == field) else {
                panic!("{TABLE}: [fields] has no `{field}`")
            };
            let _ = write!(out, " \\\n  X({name}, {}) /* {means} */", shout(kind));
        }
        out.push_str("\n\n#endif\n");
        head + FINDINGS_IN_C + &out
    }

    /// Quotes a text as C string literals inside a macro, with the text for each system where they differ.
    fn literal(&self, text: &str) -> String {
        let found = self.windows.iter().filter_map(|pair| Some((text.find(pair.0.as_str())?, pair)));
        let Some((at, (linux, windows))) = found.min_by_key(|(at, _)| *at) else { return format!("{text:?}") };
        let (before, after) = (&text[..at], &text[at + linux.len()..]);
        let mut parts = vec![format!("ON({linux:?}, {windows:?})")];
        parts.splice(0..0, (!before.is_empty()).then(|| format!("{before:?}")));
        parts.extend((!after.is_empty()).then(|| self.literal(after)));
        parts.join(" ")
    }

    /// Generates `docs/reference/findings.md`.
    pub fn page(&self) -> String {
        let mut page = PAGE.to_owned();
        for row @ Row { code, title, severity, verdict, explanation, .. } in &self.rows {
            let open = if verdict == "open" { ", leaves the verdict open" } else { "" };
            let start = if row.is_judged_at_start() { ", also checked at start-up" } else { "" };
            let _ = write!(page, "\n## CG{code}: {title}\n\n*{severity}*{open}{start}\n");
            for paragraph in explanation.lines() {
                let _ = write!(page, "\n{paragraph}\n");
            }
        }
        page
    }
}

impl Row {
    /// Returns true if the shim has a message of this code.
    fn is_judged_at_start(&self) -> bool {
        self.words.iter().any(|words| words.shim)
    }
}

fn line_names(words: &Table) -> impl Iterator<Item = &str> {
    let names = words.get("lines").and_then(Value::as_array).into_iter().flatten();
    names.map(|name| name.as_str().expect("lines are named by texts"))
}

/// Returns the names of the placeholders in a text.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{')
        .skip(1)
        .map(move |part| part.split_once('}').unwrap_or_else(|| panic!("{text}: a placeholder without an end")).0)
}

/// Joins the sentence and the lines after it.
fn message(sentence: &str, names: &[&str], lines: &Table) -> String {
    names.iter().fold(sentence.to_owned(), |message, name| {
        let own = name.contains('{').then_some(*name);
        let line = own.or_else(|| lines.get(*name)?.as_str());
        message + "\n" + line.unwrap_or_else(|| panic!("{TABLE}: [lines] has no `{name}`"))
    })
}

/// Converts `NotLoaded` to `NOT_LOADED`.
fn shout(name: &str) -> String {
    let mut out = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

/// Converts `open_gpus` to `OpenGpus`.
fn phrase_name(name: &str) -> String {
    name.split('_').map(title_case).collect()
}

/// Converts `error` to `Error`.
fn title_case(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    first.to_uppercase() + rest
}
