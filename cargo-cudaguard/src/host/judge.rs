//! (manifest, host) → findings.
//!
//! The shim judges the same intervals in C (`templates/shim/judge.h`) and says the same words; one table of cases drives
//! both and proves them equal.

pub mod answer;
mod driver;

use std::path::Path;

use crate::host::facts::{CudartState, CudnnState, Host, Inner, LoaderVersion};
use cudaguard::internal::finding::{self, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::linkage::Linkage;
use cudaguard::internal::manifest::{Manifest, Requirement};
use cudaguard::internal::version::{CudaVersion, Version};

pub(crate) use driver::older_than;

/// What is wrong with running a program of this manifest on this host, in the order in which it is told. Severities are the
/// rules' own: `[runtime]` and `CUDAGUARD` change what a program does at its start, never the verdict.
pub fn judge(manifest: &Manifest, host: &Host) -> Vec<Finding> {
    let component = Values::default().with("component", &manifest.component);
    let mut findings = Vec::new();
    for requirement in &manifest.requires {
        if let Requirement::Library { min, below, built, soname, linkage, patch_refuse, required } = requirement {
            let min = if *patch_refuse { *min.max(built) } else { *min };
            let or_newer = if manifest.component.is_unrecorded() { " or newer" } else { "" };
            let values = component.clone().with("built", format_args!("{built}{or_newer}"));
            let values = values.with("built_major", built.major).with("min", min);
            Rule {
                min,
                below: *below,
                built: *built,
                linkage: *linkage,
                required: *required,
                values: values.with("library", soname),
            }
            .judge(manifest, &host.library, &mut findings);
        }
    }
    findings.extend(cudart(manifest, host, component.clone()));
    driver::judge(manifest, host, &component, &mut findings);
    finding::sort_findings(&mut findings);
    findings
}

/// What is wrong with running these components in one program, beyond what is wrong with each: a warning of which the
/// first component is the owner.
pub fn together<'a>(manifests: impl IntoIterator<Item = &'a Manifest>, host: &Host) -> Option<Finding> {
    let manifests: Vec<&Manifest> = manifests.into_iter().collect();
    driver::together(&manifests, host)
}

/// A shared libcudart may be of an older minor than built with, where the program calls nothing that is new in it.
fn cudart(manifest: &Manifest, host: &Host, values: Values) -> Option<Finding> {
    let (Some((soname, built)), CudartState::Found { path, version }) = (manifest.shared_cudart(), &host.cudart) else {
        return None;
    };
    let values = values.with("library", soname).with("built_cuda", built).with("path", path.display());
    let Some(found) = *version else { return Some(MessageTemplate::CudartUnknown.to_finding(&values)) };
    let older = CudaVersion::from(found) < built && found.major == built.major;
    older.then(|| MessageTemplate::CudartOlder.to_finding(&values.with("found_cuda", CudaVersion::from(found))))
}

/// Without these parts a library answers, and fails whoever calls what is in them.
pub(crate) fn lacking(values: &Values, files: &[&str]) -> Finding {
    let values = values.clone().with("library", files.join(", "));
    MessageTemplate::CudnnInnerMissing.to_finding(&values).with_severity(Severity::Warning)
}

struct Rule {
    min: Version,
    below: Version,
    built: Version,
    linkage: Linkage,
    required: bool,
    /// What is known before anything is found.
    values: Values,
}

impl Rule {
    fn judge(&self, manifest: &Manifest, found: &CudnnState, findings: &mut Vec<Finding>) {
        match (self.linkage, found) {
            (Linkage::Static | Linkage::None, _) => {}
            (_, found @ CudnnState::Found { path, picked_by, major, version, inner, .. }) => {
                let this = Rule { values: self.values.clone().with_known("picked_by", picked_by.as_ref()), ..*self };
                if this.judge_found(manifest, path, *major, *version, inner, findings) {
                    this.judge_making(manifest, found, findings);
                }
            }
            (Linkage::Linked | Linkage::Dlopened, CudnnState::Absent) => {
                let needed = self.linkage == Linkage::Linked || self.required;
                let severity = if needed { Severity::Error } else { Severity::Info };
                findings.push(MessageTemplate::CudnnAbsent.to_finding(&self.values).with_severity(severity));
            }
            (Linkage::Unknown, CudnnState::Absent) | (_, CudnnState::Unknown) => {
                findings.push(MessageTemplate::CudnnCannotTellNotLoaded.to_finding(&self.values));
            }
        }
    }

    /// Whether it is of the major that was built with.
    fn judge_found(
        &self,
        manifest: &Manifest,
        path: &Path,
        major: u32,
        version: Option<Version>,
        inner: &[Inner],
        findings: &mut Vec<Finding>,
    ) -> bool {
        // The library that says the version is named where it stands in another folder.
        let says = inner.iter().find(|part| part.version.is_some() && part.version == version);
        let elsewhere = |own: &&Path| own.parent() != path.parent();
        let beside = says.and_then(|part| part.path.as_deref()).filter(elsewhere).map(Path::display);
        let values = self.values.clone().with_known("found", version).with("path", path.display());
        let with_beside = values.clone().with_known("beside", beside);
        let found_major = version.map_or(major, |version| version.major);
        // 0: a name without a number, and nothing else that tells.
        if (found_major != 0 && found_major != self.built.major) || version.is_some_and(|version| version >= self.below)
        {
            findings.push(MessageTemplate::CudnnOtherMajor.to_finding(&with_beside));
            return false;
        }
        let rows = || {
            manifest.requires.iter().filter_map(|requirement| match requirement {
                Requirement::Part { file, needed, .. } => Some((file, *needed)),
                _ => None,
            })
        };
        let missing = |file: &str| inner.iter().any(|part| part.file == file && !part.present);
        match version {
            None if rows().any(|(file, needed)| needed && missing(file)) => {}
            None => findings.push(MessageTemplate::CudnnCannotTell.to_finding(&with_beside)),
            Some(version) if version < self.min => {
                let patch = (version.major, version.minor) == (self.built.major, self.built.minor);
                let words = if patch { MessageTemplate::CudnnOlderPatch } else { MessageTemplate::CudnnOlder };
                findings.push(words.to_finding(&with_beside));
            }
            Some(_) => {}
        }
        for (file, _) in rows().filter(|(file, needed)| *needed && missing(file)) {
            findings.push(MessageTemplate::CudnnInnerMissingNeeded.to_finding(&values.clone().with("library", file)));
        }
        let others: Vec<&str> =
            rows().filter(|(file, needed)| !needed && missing(file)).map(|(file, _)| file.as_str()).collect();
        if !others.is_empty() {
            findings.push(lacking(&values, &others));
        }
        for (part, whole) in inner.iter().filter(|part| part.present).filter_map(|part| Some((part, version?))) {
            let Some(own) = part.version.filter(|own| *own != whole) else { continue };
            // Parts of one minor have been seen to work together.
            let same_minor = (own.major, own.minor) == (whole.major, whole.minor);
            let severity = if same_minor { Severity::Warning } else { Severity::Error };
            let beside = part.path.as_deref().map(Path::display);
            let values = values.clone().with("library", &part.file).with("part", own).with_known("beside", beside);
            findings.push(MessageTemplate::CudnnInnerMixed.to_finding(&values).with_severity(severity));
        }
        true
    }

    /// The loader library against its parts, and the CUDA that they were made with against the program's.
    fn judge_making(&self, manifest: &Manifest, found: &CudnnState, findings: &mut Vec<Finding>) {
        let CudnnState::Found { path, version, loader, made_with, .. } = found else { return };
        let values = self.values.clone().with_known("found", *version).with("path", path.display());
        match (loader, version) {
            (LoaderVersion::Version(own), Some(whole)) if own != whole => {
                let same_minor = (own.major, own.minor) == (whole.major, whole.minor);
                let severity = if same_minor { Severity::Warning } else { Severity::Error };
                findings.push(
                    MessageTemplate::CudnnInnerMixed
                        .to_finding(&values.clone().with("part", own))
                        .with_severity(severity),
                );
            }
            (LoaderVersion::Minor(major, minor), Some(whole)) if (*major, *minor) != (whole.major, whole.minor) => {
                let values = values.clone().with("loader", format!("{major}.{minor}"));
                findings.push(MessageTemplate::CudnnInnerMixedLoader.to_finding(&values));
            }
            _ => {}
        }
        if let (Some(made), Some(own)) = (made_with, manifest.cuda_version()) {
            if made.major != own.major {
                let values = values.with("found_cuda", made).with("built_cuda", own);
                findings.push(MessageTemplate::CudnnOtherCuda.to_finding(&values));
            }
        }
    }
}
