//! Checks references in comments and documents: comments refer only to existing pages, and paths in pages exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::places;

/// Returns all files of the repository with one of these endings, except generated and recorded files.
pub(crate) fn files(endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![places::workspace().to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_ours = !matches!(name.as_str(), ".git" | "target" | "snapshots" | "recorded" | "transcripts");
            if path.is_dir() && !path.is_symlink() && is_ours {
                open.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the comment in a line.
fn comment(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with(['#', '*']) {
        return line;
    }
    let stands_alone = |sign: &str| line.strip_prefix(sign).or_else(|| Some(line.split_once(&format!(" {sign}"))?.1));
    stands_alone("//").or_else(|| stands_alone("/*")).unwrap_or_default()
}

/// Returns the parts of a text that look like a path to a file with this ending.
fn paths<'a>(text: &'a str, ending: &'a str) -> impl Iterator<Item = &'a str> {
    let is_of_a_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    text.split(move |c| !is_of_a_path(c)).map(|word| word.trim_end_matches('.')).filter(move |word| {
        word.strip_suffix(ending).is_some_and(|before| before.chars().any(|c| c.is_ascii_alphanumeric()))
    })
}

fn is_there(name: &str, from: &Path) -> bool {
    let top = places::workspace();
    let crates = ["guard-core", "cargo-cudaguard", "tests"].map(|dir| top.join(dir));
    let mut dirs =
        from.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).chain(crates.iter().map(PathBuf::as_path));
    dirs.any(|dir| dir.join(name).exists())
}

#[test]
fn documents_named_in_comments_exist() {
    let decisions = decision_numbers();
    let mut wrong = BTreeSet::new();
    for file in files(&[".rs", ".c", ".h", ".py", ".cmake", ".toml", ".sh"]) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            let comment = comment(line);
            let mut say = |what: &str| {
                wrong.insert(format!("{}:{}: {what}: {}", file.display(), number + 1, comment.trim()));
            };
            for name in paths(comment, ".md").filter(|name| !is_there(name, &file)) {
                say(&format!("{name} is not there"));
            }
            if comment.contains(concat!("(facts", ":")) {
                say("facts of which page?");
            }
            for (_, behind) in comment.match_indices("decision ").map(|(at, word)| comment.split_at(at + word.len())) {
                let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
                if digits.parse().is_ok_and(|number: u32| !decisions.contains(&number)) {
                    say(&format!("docs/internals/decisions has no decision {digits}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", Vec::from_iter(wrong).join("\n"));
}

/// Returns the numbers of the decisions, from their file names.
fn decision_numbers() -> BTreeSet<u32> {
    let directory = fs::read_dir(places::workspace().join("docs/internals/decisions")).expect("the decisions");
    let names = directory.map(|entry| entry.expect("a decision").file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.split('-').next()?.parse().ok()).collect()
}

#[test]
fn decisions_have_number_status_and_date() {
    let numbers = decision_numbers();
    assert!(numbers.iter().copied().eq(1..=u32::try_from(numbers.len()).expect("few")), "{numbers:?}");
    for file in files(&[".md"]).iter().filter(|file| file.parent().is_some_and(|dir| dir.ends_with("decisions"))) {
        let text = fs::read_to_string(file).expect("a decision");
        if file.ends_with("index.md") {
            continue;
        }
        let name = file.file_name().expect("a name").to_string_lossy();
        let number: u32 = name.split('-').next().and_then(|digits| digits.parse().ok()).expect("a number");
        assert!(text.starts_with(&format!("# {number}. ")), "{name}: the title does not start with the number");
        let row = text.lines().nth(4).unwrap_or_default();
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let is_date = |text: &str| text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        assert!(cells.len() == 3 && is_date(cells[1]), "{name}: no status and date: {row}");
    }
}

/// Converts a heading to the anchor of its links, such as `#on-call`.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect();
    kept.split([' ', '-']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[test]
fn links_resolve() {
    let manifest = fs::read_to_string(places::workspace().join("Cargo.toml")).expect("the workspace's manifest");
    let mut wrong = Vec::new();
    let mut links = 0;
    for page in files(&[".md"]) {
        let text = fs::read_to_string(&page).expect("a page");
        // Code blocks contain no links.
        let words: String = text.split("\n```").step_by(2).collect();
        for (_, behind) in words.match_indices("](").map(|(at, sign)| words.split_at(at + sign.len())) {
            let target = behind.split(')').next().unwrap_or_default();
            if target.contains("://") {
                assert!(
                    !target.contains("cudaguard") || manifest.contains(&format!("repository = \"{target}\"")),
                    "{target}"
                );
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let has = |text: String| {
                text.lines().any(|line| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading)
            };
            let leads = if heading.is_empty() { file.exists() } else { fs::read_to_string(&file).is_ok_and(has) };
            if !leads {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 30, "{links}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn navigation_lists_all_pages() {
    let root = places::workspace();
    let navigation = fs::read_to_string(root.join("mkdocs.yml")).expect("mkdocs.yml");
    for page in files(&[".md"]) {
        let Ok(name) = page.strip_prefix(root.join("docs")) else { continue };
        let line = format!(" {}", name.display());
        assert!(navigation.lines().any(|entry| entry.ends_with(&line)), "mkdocs.yml does not list {}", name.display());
    }
}

/// Returns the directories that contain a file, to the depth of the map: all top-level ones, and one level below these.
fn directories() -> BTreeSet<String> {
    const MAPPED: [&str; 7] =
        ["cargo-cudaguard", "cargo-cudaguard/src", "docs", "guard-core", "guard-core/src", "templates", "tests"];
    let below = |directory: &Path| -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let directories = entries.filter(|entry| entry.path().is_dir() && !entry.path().is_symlink());
        directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    // Editors and tools create hidden directories.
    let is_ours = |name: &String| !name.starts_with('.') && !matches!(name.as_str(), "target" | "__pycache__");
    let top: Vec<String> = below(places::workspace()).into_iter().filter(is_ours).collect();
    let mapped = MAPPED.iter().flat_map(|name| {
        let inner = below(&places::workspace().join(name)).into_iter().filter(is_ours);
        inner.map(move |inner| format!("{name}/{inner}"))
    });
    mapped.chain(top.clone()).collect()
}

#[test]
fn contributing_maps_all_directories() {
    let text = fs::read_to_string(places::workspace().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let (_, map) = text.split_once("| directory | contents |\n| --- | --- |\n").expect("a map");
    let rows = map.lines().take_while(|line| line.starts_with("| `"));
    let mapped: BTreeSet<String> = rows.filter_map(|row| Some(row.split('`').nth(1)?.to_owned())).collect();
    let (hidden, visible): (BTreeSet<_>, BTreeSet<_>) = mapped.into_iter().partition(|name| name.starts_with('.'));
    assert_eq!(visible, directories());
    assert!(hidden.iter().all(|name| places::workspace().join(name).is_dir()), "{hidden:?}");
}

/// The commands in the page of measurements exist: benchmarks, programs and test suites.
#[test]
fn measurement_commands_exist() {
    let page = fs::read_to_string(places::workspace().join("docs/internals/measurements.md")).expect("the page");
    let manifest = fs::read_to_string(places::workspace().join("tests/Cargo.toml")).expect("the manifest");
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |"));
    let commands: Vec<&str> = rows.filter_map(|row| row.rsplit(" | ").next()?.split('`').nth(1)).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let behind = |flag: &str| words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
        if let Some(bench) = behind("--bench") {
            assert!(manifest.contains(&format!("[[bench]]\nname = \"{bench}\"")), "{command}");
        } else if let Some(name) = behind("e2e").or_else(|| behind("matrix")) {
            let mut parts = name.split("::");
            let suite = places::workspace().join("tests/e2e").join(parts.next().unwrap_or_default());
            let part = parts.next().unwrap_or_default();
            let main = fs::read_to_string(suite.join("mod.rs")).expect("a suite");
            let is_part = suite.join(format!("{part}.rs")).is_file() || main.contains(&format!("fn {part}()"));
            assert!(is_part || part.is_empty(), "{command}");
        } else {
            assert!(places::workspace().join(words[0]).is_file(), "{command}");
        }
    }
}

/// The command is not published yet, so all pages install it from a checkout or from the repository.
#[test]
fn install_instructions_agree() {
    for file in files(&[".md", ".cmake", ".yml", ".toml", ".rs"]) {
        let text = fs::read_to_string(&file).expect("a file");
        for line in text.lines().filter(|line| line.contains(concat!("cargo ", "install"))) {
            let unpublished = line.contains("cargo-cudaguard") && !line.contains("--path") && !line.contains("--git");
            assert!(!unpublished, "{}: {line}", file.display());
        }
    }
}

#[test]
fn document_names_are_recognized() {
    assert_eq!(
        paths("see `docs/reference/policy.md`, README.md. and x.mdx", ".md").collect::<Vec<_>>(),
        ["docs/reference/policy.md", "README.md"]
    );
    assert_eq!(
        (comment("    let x = 1; // see README.md"), comment("\"a.md/*\""), comment("# README.md")),
        (" see README.md", "", "# README.md")
    );
}
