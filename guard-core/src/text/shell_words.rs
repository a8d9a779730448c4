//! Splits strings into arguments like a shell, for flags in variables and for output of compilers.

/// Splits a string into arguments. An unclosed quote and a final backslash end with the string.
pub fn split_words(text: &str) -> Vec<String> {
    let dangling = text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    let text = text.get(..text.len() - usize::from(dangling)).unwrap_or_default();
    ["", "'", "\""].iter().find_map(|quote| shlex::split(&format!("{text}{quote}"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_split() {
        for (text, wanted) in [
            ("a  b\tc", &["a", "b", "c"][..]),
            ("a'b c'd", &["ab cd"]),
            (r#""a \" b" '' c\ d"#, &["a \" b", "", "c d"]),
            (r#"a\ b "c \" d" '' e"#, &["a b", "c \" d", "", "e"]),
            // Inside double quotes only a few characters are escaped.
            (r#""-DWHERE=C:\cuda""#, &[r"-DWHERE=C:\cuda"]),
            ("'open a", &["open a"]),
            ("\"open 'a", &["open 'a"]),
            ("a\\", &["a"]),
            ("  ", &[]),
        ] {
            assert_eq!(split_words(text), wanted, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text: String) {
            let _ = split_words(&text);
        }
    }
}
