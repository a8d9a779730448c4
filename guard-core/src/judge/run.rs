//! (manifest, host) → findings.

use crate::finding::Finding;
use crate::host::Host;
use crate::manifest::Manifest;

/// What is wrong with running a program of this manifest on this host.
pub fn judge(_manifest: &Manifest, _host: &Host) -> Vec<Finding> {
    Vec::new()
}
