//! (policy, toolchain) → findings.

use crate::finding::Finding;
use crate::policy::Policy;
use crate::toolchain::Toolchain;

/// What is wrong with building by this toolchain under this policy. Severities are the codes' own; the policy's
/// `[build]` and `[allow]` are applied by [`crate::policy::Policy`]'s owner, after.
pub fn judge(_policy: &Policy, _toolchain: &Toolchain) -> Vec<Finding> {
    Vec::new()
}
