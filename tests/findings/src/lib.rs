//! What is written from `guard-core/data/findings.toml`: the codes in Rust, the words of the shim in C, and the page.

// Whoever writes the table sees a panic with the place; nobody else runs this.
#![allow(clippy::missing_panics_doc)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use toml::{Table, Value};

/// The table that everything else is made from.
pub const TABLE: &str = "guard-core/data/findings.toml";

const PAGE: &str = "\
# Findings

Each finding has a code that stays, and words that may improve. `cargo cudaguard explain CG101` says the same in the
terminal. Under `[allow]` in `cudaguard.toml` a code and a reason turn a finding of the build into an info; the reason is
recorded in the binary.

The first digit tells where it comes from: 1 the build, 2 the start of a program, 3 GPU and driver, 4 kernels, 5 what
cannot be told. A finding that *leaves the verdict open* makes it `unknown` where nothing refuses.

This page is written from `guard-core/data/findings.toml` by `cargo findings`; a test keeps it so.
";

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// 202.
    pub code: i64,
    /// `CudnnOlder`.
    pub name: String,
    /// `error`.
    pub severity: String,
    /// `refuses`, `open`, `informs`.
    pub verdict: String,
    /// Which is told first.
    pub rank: Option<i64>,
    /// Whether the shim speaks it, too.
    pub shim: bool,
    /// Whether there is nothing to do.
    pub no_action: bool,
    /// In a few words.
    pub title: String,
    /// At length.
    pub explanation: String,
    /// Its words, the first without a name of their own.
    pub words: Vec<Words>,
}

/// Words of a code.
#[derive(Debug)]
pub struct Words {
    /// `CudnnInnerMissingNeeded`.
    pub name: String,
    /// What it is about.
    pub subject: String,
    /// The sentence and its lines.
    pub message: String,
    /// The names of those lines; a line that stands here alone is its own name.
    pub lines: Vec<String>,
    /// What to do.
    pub hint: String,
    /// Whether the shim speaks them.
    pub shim: bool,
}

/// A placeholder.
#[derive(Debug)]
pub struct Field {
    /// `found`.
    pub name: String,
    /// `version`.
    pub kind: String,
    /// What it stands for.
    pub means: String,
}

/// The table, read.
#[derive(Debug)]
pub struct Findings {
    /// Its placeholders.
    pub fields: Vec<Field>,
    /// The lines that stand behind sentences, by name.
    pub lines: Vec<(String, String)>,
    /// Words that stand for a value of several findings, by name.
    pub phrases: Vec<(String, String)>,
    /// Its codes.
    pub rows: Vec<Row>,
}

/// The repository's top.
pub fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The table as it is kept. A mistake in it ends the process, with the key that it is in.
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

impl Findings {
    /// What this text says.
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
                "code name severity verdict rank shim no_action subject title message lines hint explanation also";
            for key in row.keys() {
                assert!(known.split(' ').any(|known| known == key), "CG{code}: unknown key `{key}`");
            }
            let first = (row, String::new());
            let also = rows(row.get("also")).map(|also| (also, text(also, "name")));
            let words = std::iter::once(first).chain(also).map(|(words, own)| {
                let of = |key: &str| if words.contains_key(key) { words } else { row };
                let names: Vec<&str> = line_names(of("lines")).collect();
                Words {
                    name: format!("{name}{own}"),
                    subject: text(of("subject"), "subject"),
                    message: message(&text(of("message"), "message"), &names, lines),
                    lines: names.into_iter().map(str::to_owned).collect(),
                    hint: text(of("hint"), "hint"),
                    shim: if words.contains_key("shim") { flag(words, "shim") } else { flag(row, "shim") },
                }
            });
            Row {
                code,
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
            rows: rows(read.get("finding")).map(row).collect(),
        }
    }

    /// Every file that is made from the table.
    pub fn written(&self) -> [(&'static str, String); 3] {
        [
            ("guard-core/src/finding/codes.rs", self.rust()),
            ("templates/shim/findings.h", self.c()),
            ("docs/findings.md", self.page()),
        ]
    }

    /// `guard-core/src/finding/codes.rs`.
    pub fn rust(&self) -> String {
        let mut out = format!("// Written by `cargo findings` from {TABLE}; a test keeps it so.\n\ncodes! {{\n");
        for row in &self.rows {
            let Row { code, name, severity, verdict, title, explanation, .. } = row;
            let rank = row.rank.unwrap_or(255);
            let (severity, verdict) = (title_case(severity), title_case(verdict));
            let _ = write!(
                out,
                "    {code} {name} {severity} {verdict} {rank}\n        {title:?}\n        {explanation:?};\n"
            );
        }
        out.push_str("}\n\nwords! {\n");
        for row in &self.rows {
            for words in &row.words {
                let Words { name, subject, message, hint, .. } = words;
                let _ = write!(out, "    {name} {} {subject:?}\n        {message:?}\n        {hint:?};\n", row.name);
            }
        }
        out.push_str("}\n\nphrases! {\n");
        for (name, text) in &self.phrases {
            let name: String = name.split('_').map(title_case).collect();
            let _ = write!(out, "    {name}\n        {text:?};\n");
        }
        let names: Vec<_> = self.fields.iter().map(|field| &field.name).collect();
        let _ =
            write!(out, "}}\n\n/// What may stand in words as a placeholder.\nconst FIELDS: &[&str] = &{names:?};\n");
        out
    }

    /// `templates/shim/findings.h`.
    pub fn c(&self) -> String {
        let mut out = format!(
            "/* Written by `cargo findings` from {TABLE}; a test keeps it so. What the shim speaks, and\n \
             * the placeholders in it: that table says what each column means, and how the words are read. */\n\n\
             /* name, code, severity, verdict, rank, subject, sentence, its three lines, the finding that has the same hint, hint */\n\
             #define FINDINGS(X)"
        );
        let (mut all, mut said) = (String::new(), Vec::new());
        let (mut subjects, mut hints) = (BTreeMap::new(), BTreeMap::new());
        for row in self.rows.iter().filter(|row| row.words.iter().any(|words| words.shim)) {
            let Row { code, severity, verdict, .. } = row;
            let (rank, severity, verdict) = (row.rank.unwrap_or(255), shout(severity), shout(verdict));
            for Words { name, subject, message, lines, hint, .. } in row.words.iter().filter(|words| words.shim) {
                let sentence = message.lines().next().unwrap_or_default();
                let place = |at: usize| lines.get(at).map_or("none", String::as_str);
                assert!(!message.contains('\t'), "{name}: the shim knows no columns");
                assert!(lines.len() <= 3, "{name}: the shim has room for three lines behind a sentence");
                let name = shout(name);
                let first = hints.entry(hint.clone()).or_insert_with(|| name.clone());
                let _ = write!(
                    out,
                    " \\\n  /* {sentence} */ \\\n  X({name}, {code}, {severity}, {verdict}, {rank}, {}, \\\n    {}, \\\n    {}, {}, {}, {first}, \\\n    {})",
                    subject.to_lowercase(),
                    literal(sentence),
                    place(0),
                    place(1),
                    place(2),
                    if *first == name { literal(hint) } else { literal("") },
                );
                subjects.insert(subject.to_lowercase(), subject);
                said.extend(lines);
                all = all + message + hint;
            }
        }
        out.push_str("\n\n/* name, subject */\n#define SUBJECTS(X)");
        for (name, subject) in subjects {
            let _ = write!(out, " \\\n  X({name}, {subject:?})");
        }
        out.push_str("\n\n/* name, line; `none` is no line */\n#define LINES(X)");
        for (name, line) in self.lines.iter().filter(|(name, _)| said.contains(&name)) {
            let _ = write!(out, " \\\n  X({name}, {})", literal(line));
            all.push_str(line);
        }
        out.push_str("\n\n/* name, kind */\n#define FIELDS(X)");
        let spoken = |field: &&Field| all.contains(&format!("{{{}}}", field.name));
        let fields: Vec<_> = self.fields.iter().filter(spoken).collect();
        for Field { name, kind, means } in &fields {
            let _ = write!(out, " \\\n  X({name}, {}) /* {means} */", shout(kind));
        }
        out.push_str("\n\n/* name, what many sentences say */\n#define PIECES(X)");
        for (name, piece) in PIECES {
            let _ = write!(out, " \\\n  X({name}, {piece:?})");
        }
        assert!(fields.len() + PIECES.len() < 0x80, "a byte has room for so many");
        out.push_str("\n\n/* How each stands in the words: one byte, its place among these. */\n");
        let all = fields.iter().map(|field| ("V", &*field.name)).chain(PIECES.iter().map(|(name, _)| ("W", *name)));
        for (at, (kind, name)) in all.enumerate() {
            let _ = writeln!(out, "#define {kind}_{name} \"\\{:o}\"", 0x80 + at);
        }
        out
    }

    /// `docs/findings.md`.
    pub fn page(&self) -> String {
        let mut page = PAGE.to_owned();
        for Row { code, title, severity, verdict, explanation, .. } in &self.rows {
            let open = if verdict == "open" { ", leaves the verdict open" } else { "" };
            let _ = write!(page, "\n## CG{code}: {title}\n\n*{severity}*{open}\n");
            for paragraph in explanation.lines() {
                let _ = write!(page, "\n{paragraph}\n");
            }
        }
        page
    }
}

fn line_names(words: &Table) -> impl Iterator<Item = &str> {
    let names = words.get("lines").and_then(Value::as_array).into_iter().flatten();
    names.map(|name| name.as_str().expect("lines are named by texts"))
}

/// What many sentences say stands once in the shim, and as one byte in each of them.
const PIECES: [(&str, &str); 44] = [
    ("compute_capability", " compute capability "),
    ("first_in_path", " first in LD_LIBRARY_PATH"),
    ("cannot_tell", "cannot tell whether "),
    ("was_built_with", " was built with"),
    ("start_a_container", "; start a container"),
    ("rebuild", "rebuild"),
    ("cudaguard", "cudaguard"),
    ("cudnn", "cuDNN"),
    ("driver", "driver"),
    ("cuda", " CUDA "),
    ("which", " which "),
    ("newer", "newer"),
    ("that", " that "),
    ("with", " with"),
    ("the", " the "),
    ("is", " is "),
    ("and", " and"),
    ("or", " or "),
    ("for", " for"),
    ("older", "older"),
    ("install", "install"),
    ("update", "update"),
    ("added", " added"),
    ("library_path", " LD_LIBRARY_PATH"),
    ("libcuda", "libcuda"),
    ("gpu", " GPU"),
    ("manifest", "manifest"),
    ("supports", "supports"),
    ("it", " it"),
    ("on", " on"),
    ("no", " no"),
    ("of", " of"),
    ("librar", "librar"),
    ("has", " has"),
    ("visible_devices", "_VISIBLE_DEVICES"),
    ("in", " in"),
    ("ptx_jit", "_PTX_JIT"),
    ("needs", "needs"),
    ("its_gpus", " its GPUs (--gpus all)"),
    ("found", "found:      "),
    ("put_a", "put a "),
    ("doctor", "`cargo cudaguard doctor` lists every candidate"),
    ("judge", " judge"),
    ("nvidia_smi", "see what nvidia-smi says"),
];

/// Words as a text in C, each placeholder by its own name: `"cuDNN " V_found " is older"`.
fn literal(words: &str) -> String {
    assert!(words.is_ascii(), "what is no ASCII stands for a placeholder in the shim: {words}");
    let mut out = String::new();
    for (at, piece) in words.split('{').enumerate() {
        let (name, rest) =
            if at == 0 { (None, piece) } else { piece.split_once('}').map_or((None, piece), |(n, r)| (Some(n), r)) };
        let space = |out: &mut String| {
            if !out.is_empty() {
                out.push(' ');
            }
        };
        if let Some(name) = name {
            space(&mut out);
            let _ = write!(out, "V_{name}");
        }
        let mut rest = rest;
        while !rest.is_empty() {
            let next = PIECES.iter().filter_map(|(name, piece)| Some((rest.find(piece)?, *name, piece.len())));
            // Of two that begin at the same place the longer one.
            let (plain, name, length) =
                next.min_by_key(|(at, _, length)| (*at, std::cmp::Reverse(*length))).unwrap_or((rest.len(), "", 0));
            if plain > 0 {
                space(&mut out);
                let _ = write!(out, "{:?}", &rest[..plain]);
            }
            if length > 0 {
                space(&mut out);
                let _ = write!(out, "W_{name}");
            }
            rest = &rest[plain + length..];
        }
    }
    if out.is_empty() { "\"\"".to_owned() } else { out }
}

/// The sentence, and the lines after it.
fn message(sentence: &str, names: &[&str], lines: &Table) -> String {
    names.iter().fold(sentence.to_owned(), |message, name| {
        let own = name.contains('{').then_some(*name);
        let line = own.or_else(|| lines.get(*name)?.as_str());
        message + "\n" + line.unwrap_or_else(|| panic!("{TABLE}: [lines] has no `{name}`"))
    })
}

/// `NotLoaded` → `NOT_LOADED`.
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

/// `error` → `Error`.
fn title_case(word: &str) -> String {
    let (first, rest) = word.split_at(1.min(word.len()));
    first.to_uppercase() + rest
}
