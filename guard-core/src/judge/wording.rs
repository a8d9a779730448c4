//! Pieces of messages that the judges share.

use std::fmt::Display;

use crate::arch::Target;
use crate::finding::Values;
use crate::policy::Policy;
use crate::toolchain::Sourced;

/// Values of a finding that speaks of the policy: its file is among them.
pub(crate) fn policy_args(policy: &Policy) -> Values {
    Values::default().with_known("policy", policy_file(policy))
}

/// The policy's file, and the table of a package's own that is laid over it.
pub(crate) fn policy_file(policy: &Policy) -> Option<String> {
    let over = policy.over.as_ref().map(|package| format!(", [package.{package}] laid over it")).unwrap_or_default();
    policy.path.as_ref().map(|path| format!("{}{over}", path.display()))
}

/// A fact and what told it.
pub(crate) fn describe(fact: &Sourced<impl Display>) -> String {
    format!("{} ({})", fact.value, fact.source)
}

/// `sm_80, compute_90`.
pub(super) fn join_targets<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    targets.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
