//! Pieces of messages that the judges share.

use crate::arch::Target;
use crate::policy::Policy;

/// Facts below a message: one a line, names in one column.
pub(crate) fn facts<'a>(message: &str, facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let facts: Vec<_> = facts.into_iter().filter(|(_, fact)| !fact.is_empty()).collect();
    let width = facts.iter().map(|(name, _)| name.chars().count() + 1).max().unwrap_or_default();
    facts.iter().fold(message.to_owned(), |text, (name, fact)| format!("{text}\n{:<width$} {fact}", format!("{name}:")))
}

/// Where the policy says so: ` in cudaguard.toml`; empty where there is no file.
pub(crate) fn in_file(policy: &Policy) -> String {
    let over = policy.over.as_ref().map(|package| format!(", [package.{package}] laid over it")).unwrap_or_default();
    policy.path.as_ref().map(|path| format!(" in {}{over}", path.display())).unwrap_or_default()
}

/// `sm_80, compute_90`.
pub(super) fn names<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    targets.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
