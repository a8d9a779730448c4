//! Message parts that several checks share.

use std::fmt::Display;

use crate::config::policy::Policy;
use crate::finding::Values;
use crate::model::arch::Target;
use crate::text::lists::IteratorExt as _;
use crate::toolchain::Sourced;

/// Returns the values of a finding about the policy, including the policy's file.
pub fn policy_args(policy: &Policy) -> Values {
    Values::default().with_known("policy", policy_file(policy))
}

/// Returns the policy's file, and the package's own table that overrides it.
pub fn policy_file(policy: &Policy) -> Option<String> {
    let over = policy.over.as_ref().map(|package| format!(", merged with [package.{package}]")).unwrap_or_default();
    policy.path.as_ref().map(|path| format!("{}{over}", path.display()))
}

/// Formats a fact with its source.
pub fn describe(fact: &Sourced<impl Display>) -> String {
    format!("{} ({})", fact.value, fact.source)
}

/// Joins targets: `sm_80, compute_90`.
pub fn join_targets<'a>(targets: impl IntoIterator<Item = &'a Target>) -> String {
    targets.into_iter().join(", ")
}
