//! Counts and lists of names in the output.

/// Maximum number of names that a list shows.
const NAMED: usize = 3;

/// Joins the first names and counts the rest.
pub(crate) fn join_some(names: &[&str]) -> String {
    let text = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

pub(crate) fn count_of(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
