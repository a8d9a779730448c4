//! Dependencies between the files of a crate, read from the sources, and the cycles among them.
//!
//! The files are those that `mod` declares, starting from the crate root, without tests. A file refers to another one
//! by a path that starts with `crate`, `super`, `self` or one of its child modules. The first file of a directory
//! (`kernels/mod.rs`) and the files below it form one group, in which Rust's privacy rules give access. References
//! between the first file and the others are not a cycle. Two files of one group that refer to each other are a cycle,
//! and so are two groups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of a crate by their paths (`kernels::cover`; the root is empty), each with the modules that it refers
/// to.
#[derive(Debug, Default)]
pub struct Modules(BTreeMap<Vec<String>, BTreeSet<Vec<String>>>);

impl Modules {
    /// Reads the modules of the crate with this root file.
    pub fn of(root: &Path) -> Self {
        let mut texts: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        let dir = root.parent().expect("a file in a directory");
        let mut open = vec![(Vec::new(), root.to_owned())];
        while let Some((module, file)) = open.pop() {
            let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let words = without_tests(words(&text));
            for pair in words.windows(3).filter(|three| three[0] == "mod" && three[2] == ";") {
                let child = [&module[..], &pair[1..2]].concat();
                let place = dir.join(child.iter().collect::<PathBuf>());
                let files = [place.with_extension("rs"), place.join("mod.rs")];
                let file = files.iter().find(|file| file.is_file()).unwrap_or_else(|| panic!("no file for {child:?}"));
                open.push((child, file.clone()));
            }
            texts.insert(module, words);
        }
        let known: BTreeSet<Vec<String>> = texts.keys().cloned().collect();
        Self(texts.iter().map(|(module, words)| (module.clone(), named(module, words, &known))).collect())
    }

    /// Returns the cycles, each as a list of modules: among the top-level modules, and within each group.
    pub fn circles(&self) -> Vec<Vec<String>> {
        let houses: BTreeSet<&[String]> =
            self.0.keys().filter(|module| !module.is_empty()).map(|module| &module[..module.len() - 1]).collect();
        houses.into_iter().flat_map(|house| self.circles_in(house)).collect()
    }

    fn circles_in(&self, house: &[String]) -> Vec<Vec<String>> {
        let room = |module: &[String]| module.strip_prefix(house).and_then(|rest| rest.first()).cloned();
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, named) in &self.0 {
            let Some(from) = room(module) else { continue };
            let to = named.iter().filter_map(|other| room(other)).filter(|to| *to != from);
            names.entry(from.clone()).or_default().extend(to);
        }
        let reached = |from: &String| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
            while let Some(at) = open.pop() {
                open.extend(names[at].iter().filter(|next| seen.insert((*next).clone())));
            }
            seen
        };
        let reach: BTreeMap<&String, BTreeSet<String>> = names.keys().map(|room| (room, reached(room))).collect();
        let circle = |room: &String| -> Vec<String> {
            let both = reach[room].iter().filter(|other| reach[*other].contains(room));
            both.map(|room| [house, std::slice::from_ref(room)].concat().join("::")).collect()
        };
        let circles: BTreeSet<Vec<String>> = names.keys().map(circle).filter(|circle| !circle.is_empty()).collect();
        circles.into_iter().collect()
    }

    /// Returns the references between the modules of a cycle, one a line.
    pub fn within(&self, circle: &[String]) -> Vec<String> {
        let is_in = |module: &[String], room: &String| {
            let name = module.join("::");
            name == *room || name.strip_prefix(room.as_str()).is_some_and(|rest| rest.starts_with("::"))
        };
        let mut lines = BTreeSet::new();
        for (module, named) in &self.0 {
            let Some(from) = circle.iter().find(|room| is_in(module, room)) else { continue };
            for other in named {
                if circle.iter().any(|room| room != from && is_in(other, room)) {
                    lines.insert(format!("{} names {}", module.join("::"), other.join("::")));
                }
            }
        }
        lines.into_iter().collect()
    }
}

/// Returns the other modules that the tokens of a module refer to.
fn named(module: &[String], words: &[String], known: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let mut named = BTreeSet::new();
    // Inline modules of the file, each with the number of open braces around it.
    let mut inside: Vec<(String, usize)> = Vec::new();
    let mut braces = 0;
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            "{" => {
                if at > 1 && words[at - 2] == "mod" {
                    inside.push((words[at - 1].clone(), braces));
                }
                braces += 1;
            }
            "}" => {
                braces -= 1;
                inside.pop_if(|(_, around)| *around == braces);
            }
            _ if words.get(at + 1).is_none_or(|next| next != "::") || at > 0 && words[at - 1] == "::" => {}
            word => {
                let mut here = module.to_vec();
                here.extend(inside.iter().map(|(name, _)| name.clone()));
                let start = match word {
                    "crate" => Vec::new(),
                    "self" => here,
                    "super" => here[..here.len().saturating_sub(1)].to_vec(),
                    word => {
                        let child = [module, &[word.to_owned()]].concat();
                        if !known.contains(&child) {
                            continue;
                        }
                        child
                    }
                };
                paths(&words[at + 2..], start, &mut |path| {
                    let longest =
                        (0..=path.len()).rev().map(|length| &path[..length]).find(|path| known.contains(*path));
                    named.extend(longest.filter(|other| *other != module).map(<[String]>::to_vec));
                });
            }
        }
    }
    named
}

/// Calls `on_path` for each path after `start::`: two calls for `a::{b, c::*}`. Returns the number of tokens that were read.
fn paths(words: &[String], mut start: Vec<String>, on_path: &mut impl FnMut(&[String])) -> usize {
    let mut at = 0;
    loop {
        match words.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while words.get(at).is_some_and(|word| word != "}") {
                    if words[at] == "," {
                        at += 1;
                    } else {
                        at += paths(&words[at..], start.clone(), on_path).max(1);
                    }
                }
                return at + 1;
            }
            Some("super") => drop(start.pop()),
            Some("self" | "*") | None => {}
            Some(name) => start.push(name.to_owned()),
        }
        at += 1;
        if words.get(at).is_none_or(|word| word != "::") {
            on_path(&start);
            let renamed = words.get(at).is_some_and(|word| word == "as");
            return at + if renamed { 2 } else { 0 };
        }
        at += 1;
    }
}

/// Splits a source into tokens, without comments and string literals.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(quoted) = quoted(rest) {
            quoted
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            words.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            words.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                words.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// Returns the length of the string or character literal at the beginning, if there is one.
fn quoted(text: &str) -> Option<usize> {
    let behind = |start: usize, end: &str| text[start..].find(end).map(|at| start + at + end.len());
    let raw = text.trim_start_matches(['b', 'c']);
    let before = text.len() - raw.len();
    if before <= 1 && (raw.starts_with("r\"") || raw.starts_with("r#")) {
        let marks = raw[1..].len() - raw[1..].trim_start_matches('#').len();
        return raw[1 + marks..]
            .starts_with('"')
            .then(|| behind(before + marks + 2, &format!("\"{}", "#".repeat(marks))))?;
    }
    let (mark, plain) = match raw.chars().next()? {
        '"' if before <= 1 => ('"', &raw[1..]),
        // `'a'` is a character, `'a` a lifetime.
        '\'' if before <= 1 && (raw[1..].starts_with('\\') || raw.chars().nth(2) == Some('\'')) => ('\'', &raw[1..]),
        _ => return None,
    };
    let mut escaped = false;
    let end = plain.char_indices().find(|(_, c)| {
        let ends = *c == mark && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map(|(at, _)| before + 1 + at + 1)
}

/// Removes modules that exist only for tests.
fn without_tests(words: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word != "#" || words.peek().is_none_or(|next| next != "[") {
            kept.push(word);
            continue;
        }
        let mut attribute = vec![word];
        let mut depth = 0;
        for word in words.by_ref() {
            depth += match word.as_str() {
                "[" => 1,
                "]" => -1,
                _ => 0,
            };
            attribute.push(word);
            if depth == 0 {
                break;
            }
        }
        let of_tests = attribute.iter().any(|word| word == "cfg")
            && attribute.iter().any(|word| word == "test")
            && !attribute.iter().any(|word| word == "not");
        if !of_tests {
            kept.extend(attribute);
            continue;
        }
        // Skips the item after the attribute: up to the end of its braces, or of the statement.
        let mut braces = 0;
        for word in words.by_ref() {
            braces += match word.as_str() {
                "{" => 1,
                "}" => -1,
                _ => 0,
            };
            if braces == 0 && (word == "}" || word == ";") {
                break;
            }
        }
    }
    kept
}

/// Returns the root files of the two crates of this workspace.
pub fn crates() -> [PathBuf; 2] {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the workspace");
    ["guard-core/src/lib.rs", "cargo-cudaguard/src/lib.rs"].map(|root| workspace.join(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn crates_have_no_import_cycle() {
        for root in crates() {
            let modules = Modules::of(&root);
            let reported =
                |circle: &Vec<String>| format!("{}\n  {}", circle.join(", "), modules.within(circle).join("\n  "));
            let circles: Vec<String> = modules.circles().iter().map(reported).collect();
            assert!(circles.is_empty(), "{}: circles: {}", root.display(), circles.join("\n"));
        }
    }

    fn crate_of(files: &[(&str, &str)]) -> Modules {
        let scratch = Scratch::new("modules");
        for (name, text) in files {
            scratch.file(name, text);
        }
        Modules::of(&scratch.path().join("main.rs"))
    }

    #[test]
    fn import_cycles_are_found() {
        let files = [
            ("main.rs", "mod a;\nmod b;\nmod c;\nmod d;\n#[cfg(test)]\nmod nowhere;\nfn main() { a::f() }\n"),
            ("a.rs", "use crate::{c::x as y, b::{self, One}};\n"),
            ("b.rs", "fn f() { crate::d::inner::g(); \"crate::c::f\"; 'c'; r#\"crate::c\"# }\n// crate::a::x\n"),
            ("c.rs", "#[cfg(test)]\nmod tests { use crate::a::f; }\nmod within { use super::Two; }\nuse super::d;\n"),
            ("d/mod.rs", "mod inner;\nmod other;\npub use inner::g;\n"),
            ("d/inner.rs", "use super::other::h;\nuse crate::d::Own;\n"),
            ("d/other.rs", "impl<'a> X<'a> { fn f(&'a self) { super::inner::g() } }\nuse crate::a::f;\n"),
        ];
        let modules = crate_of(&files);
        assert_eq!(modules.circles(), [vec!["a", "b", "c", "d"], vec!["d::inner", "d::other"]]);
        assert_eq!(modules.within(&["a", "d"].map(str::to_owned)), ["d::other names a"], "{modules:?}");
    }
}
