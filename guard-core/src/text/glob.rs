//! Matches texts against globs.

/// Returns true if the text matches the glob: `*` matches any characters, also `/`, and `?` matches one byte. The time is at most
/// proportional to the product of both lengths.
pub fn matches(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    // The last `*`, and where the text after it begins.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, begun)) = star else { return false };
                star = Some((place, begun + 1));
                (at, from) = (place + 1, begun + 1);
            }
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}
