//! Removes the user's name from texts that may be published.

use std::path::Path;

use cudaguard::internal::env::Env;

/// Replaces the home directory in a text that may be published, because it contains the user's name.
pub(crate) fn redact_home(env: &Env, text: &dyn std::fmt::Display) -> String {
    let text = text.to_string();
    let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let home = env.var(variable).filter(|home| Path::new(home).parent().is_some() && Path::new(home).is_absolute());
    let Some(home) = home else { return text };
    replace_word(&text, home.trim_end_matches(['/', '\\']), "~")
}

/// Replaces each separate occurrence of `word` by `written`: `al` does not occur in `alice`, `bea-1` or `libal.so`, and
/// `/home/al` occurs in `-L/home/al/lib` but not in `/home/al.fredo`.
fn replace_word(text: &str, word: &str, written: &str) -> String {
    if word.is_empty() {
        return text.to_owned();
    }
    let begins = word.chars().next().is_some_and(is_letter);
    let ends = word.chars().next_back().is_some_and(is_letter);
    let mut out = String::new();
    let mut at = 0;
    for (found, _) in text.match_indices(word) {
        let (before, behind) = (&text[..found], &text[found + word.len()..]);
        let inside = begins && continues_name(before.chars().rev()) || ends && continues_name(behind.chars());
        out = out + &text[at..found] + if inside { word } else { written };
        at = found + word.len();
    }
    out + &text[at..]
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A dot or a hyphen continues a name if a letter follows; otherwise it ends a sentence.
fn continues_name(mut next: impl Iterator<Item = char>) -> bool {
    match next.next() {
        Some('.' | '-') => next.next().is_some_and(is_letter),
        other => other.is_some_and(is_letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_is_not_shown() {
        for (home, text, expected) in [
            ("/home/al", "/home/al/cudnn/lib", "~/cudnn/lib"),
            ("/home/al/", "LD_LIBRARY_PATH: /home/al:/home/alice", "LD_LIBRARY_PATH: ~:/home/alice"),
            ("/", "/opt/cudnn", "/opt/cudnn"),
            ("al", "/home/al", "/home/al"),
            ("/root", "/root", "~"),
        ] {
            let env = Env::from_variables([("HOME".to_owned(), home.into())], "/");
            assert_eq!(redact_home(&env, &text), expected);
        }
    }

    #[test]
    fn only_standalone_words_are_replaced() {
        for (text, word, expected) in [
            ("/home/al/lib", "/home/al", "~/lib"),
            ("-L/home/al:/home/alice", "/home/al", "-L~:/home/alice"),
            ("/home/al.fredo, /home/al-2 and /home/al_", "/home/al", "/home/al.fredo, /home/al-2 and /home/al_"),
            ("in /home/al. (/home/al)", "/home/al", "in ~. (~)"),
            ("libal.so al al-1 alal AL", "al", "libal.so ~ al-1 alal AL"),
            ("al", "al", "~"),
            ("x.al -al", "al", "x.al -~"),
            ("grün-ü", "grün", "grün-ü"),
            ("", "al", ""),
            ("al", "", "al"),
        ] {
            assert_eq!(replace_word(text, word, "~"), expected, "{text}");
        }
    }
}
