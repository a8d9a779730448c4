//! Snapshots of the output that users read, as files: `tests/snapshots/<suite>/<name>.txt`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::{places, scratch};

/// Compares `text` with the snapshot of this name (`suite/name`). `CUDAGUARD_BLESS=1` writes it instead.
#[track_caller]
pub fn check(name: &str, text: &str) {
    let path = places::workspace().join("tests/snapshots").join(format!("{name}.txt"));
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("CUDAGUARD_BLESS").is_some_and(|value| !value.is_empty()) {
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            scratch::write(&path, &text);
        }
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; CUDAGUARD_BLESS=1 writes it. It would be:\n{text}", path.display())
    });
    assert!(kept == text, "{} differs (CUDAGUARD_BLESS=1 rewrites it):\n{}", path.display(), difference(&kept, &text));
}

/// Returns the lines that begin with one of these texts, each with the lines that continue it. cargo indents its own lines further.
pub fn blocks(text: &str, starts: &[&str]) -> String {
    let (mut kept, mut is_inside) = (Vec::new(), false);
    for line in text.lines() {
        let continues = line.starts_with("  ") && !line.starts_with("   ");
        is_inside = starts.iter().any(|start| line.starts_with(start)) || is_inside && continues;
        if is_inside {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Replaces each of these strings in `text`, the longest first; empty strings are ignored.
pub fn replace(text: &str, names: &[(&str, &str)]) -> String {
    let mut names: Vec<_> = names.iter().filter(|(from, _)| !from.is_empty()).collect();
    names.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    names.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Replaces each of these paths in `text`, as given and with its links resolved.
pub fn paths(text: &str, names: &[(&Path, &str)]) -> String {
    let spelled: Vec<(String, &str)> = names
        .iter()
        .flat_map(|(path, name)| {
            let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            [(path.display().to_string(), *name), (resolved.display().to_string(), *name)]
        })
        .collect();
    replace(text, &spelled.iter().map(|(from, to)| (from.as_str(), *to)).collect::<Vec<_>>())
}

/// Returns the lines of both texts, with `-` for removed and `+` for added lines, based on a longest common
/// subsequence.
fn difference(kept: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (kept.lines().collect(), new.lines().collect());
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, old_line) in old.iter().enumerate().rev() {
        for (j, new_line) in new.iter().enumerate().rev() {
            common[i][j] =
                if old_line == new_line { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            let _ = writeln!(text, "  {}", old[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            let _ = writeln!(text, "- {}", old[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "+ {}", new[j]);
            j += 1;
        }
    }
    text
}
