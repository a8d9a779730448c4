//! (manifest, host) → findings.
//!
//! The shim judges the same intervals in C (`templates/shim.c`); one table of cases drives both and proves them equal.

mod driver;

use std::path::Path;

use crate::finding::{Code, Finding, Severity};
use crate::host::{CudartFound, CudnnFound, Host, Inner};
use crate::manifest::{Linkage, Manifest, Requirement};
use crate::version::{CudaVersion, Version};

/// What is wrong with running a program of this manifest on this host. Severities are the rules' own: `[runtime]` and
/// `CUDAGUARD` change what a program does at its start, never the verdict (facts: decisions 14 and 27).
pub fn judge(manifest: &Manifest, host: &Host) -> Vec<Finding> {
    let component = format!("{} {}", manifest.component.name, manifest.component.version);
    let mut findings = Vec::new();
    for requirement in &manifest.requires {
        if let Requirement::Cudnn { min, below, built, soname, linkage, patch_refuse, required } = requirement {
            let min = if *patch_refuse { *min.max(built) } else { *min };
            Cudnn {
                min,
                below: *below,
                built: *built,
                soname,
                linkage: *linkage,
                required: *required,
                component: &component,
            }
            .judge(manifest, &host.cudnn, &mut findings);
        }
    }
    cudart(manifest, host, &component, &mut findings);
    driver::judge(manifest, host, &component, &mut findings);
    findings.into_iter().map(|finding| finding.of(component.as_str())).collect()
}

/// What is wrong with running these components in one program, beyond what is wrong with each: a warning of which the
/// first component is the owner (facts: decision 8).
pub fn together<'a>(manifests: impl IntoIterator<Item = &'a Manifest>, host: &Host) -> Option<Finding> {
    let manifests: Vec<&Manifest> = manifests.into_iter().collect();
    let (first, finding) = driver::together(&manifests, host)?;
    Some(finding.of(first.component.to_string()))
}

/// A shared libcudart may be of an older minor than built with, where the program calls nothing that is new in it (facts:
/// decision 13).
fn cudart(manifest: &Manifest, host: &Host, component: &str, findings: &mut Vec<Finding>) {
    let (Some((soname, built)), CudartFound::Found { version }) = (manifest.shared_cudart(), host.cudart) else {
        return;
    };
    let Some(found) = version else {
        let message = format!(
            "cannot tell whether {soname} is older than CUDA {built}, which {component} was built with: its file's name does \
             not say"
        );
        findings.push(Finding::new(Code::CudartUnknown, "cudart", message, "nothing"));
        return;
    };
    if CudaVersion::from(found) < built && found.major == built.major {
        let message = format!("{soname} is of CUDA {found}, older than CUDA {built}, which {component} was built with");
        let hint = "put the libcudart built with first in LD_LIBRARY_PATH, or update it; or link it statically";
        findings.push(Finding::new(Code::CudartOlder, "cudart", message, hint));
    }
}

struct Cudnn<'a> {
    min: Version,
    below: Version,
    built: Version,
    soname: &'a str,
    linkage: Linkage,
    required: bool,
    component: &'a str,
}

impl Cudnn<'_> {
    fn judge(&self, manifest: &Manifest, found: &CudnnFound, findings: &mut Vec<Finding>) {
        match (self.linkage, found) {
            (Linkage::Static | Linkage::None, _) => {}
            (_, CudnnFound::Found { path, major, version, inner }) => {
                self.judge_found(manifest, path, *major, *version, inner, findings);
            }
            (Linkage::Linked, CudnnFound::Absent) => findings.push(self.absent(Severity::Error)),
            (Linkage::Dlopened, CudnnFound::Absent) => {
                findings.push(self.absent(if self.required { Severity::Error } else { Severity::Info }));
            }
            (Linkage::Unknown, CudnnFound::Absent) | (_, CudnnFound::Unknown) => {
                let message = format!("cannot tell which cuDNN this program would get\n{}", self.built_with());
                findings.push(Finding::new(Code::CudnnCannotTell, "cuDNN", message, CANNOT_TELL));
            }
        }
    }

    fn judge_found(
        &self,
        manifest: &Manifest,
        path: &Path,
        major: u32,
        version: Option<Version>,
        inner: &[Inner],
        findings: &mut Vec<Finding>,
    ) {
        // The library that says the version is named where it stands in another folder.
        let says = inner.iter().find(|part| part.version.is_some() && part.version == version);
        let elsewhere = says.and_then(|part| part.path.as_deref()).filter(|own| own.parent() != path.parent());
        let beside = elsewhere.map_or_else(String::new, |own| format!(", with {}", own.display()));
        let place = format!("{}\n{}{beside}", self.built_with(), found(version, path));
        let found_name = name(version);
        let other_major = || {
            let message = format!(
                "{found_name} is of another major than cuDNN {}, which {} was built with\n{place}",
                self.built, self.component
            );
            let hint = format!(
                "install cuDNN {} ({} or newer) where the loader looks first; or rebuild against the one found",
                self.built.major, self.min
            );
            Finding::new(Code::CudnnOtherMajor, "cuDNN", message, hint)
        };
        let found_major = version.map_or(major, |version| version.major);
        // 0: a name without a number, and nothing else that tells.
        if (found_major != 0 && found_major != self.built.major) || version.is_some_and(|version| version >= self.below)
        {
            findings.push(other_major());
            return;
        }
        let rows = || {
            manifest.requires.iter().filter_map(|requirement| match requirement {
                Requirement::CudnnInner { file, needed, .. } => Some((file, *needed)),
                _ => None,
            })
        };
        let missing = |file: &str| inner.iter().any(|part| part.file == file && !part.present);
        match version {
            None if rows().any(|(file, needed)| needed && missing(file)) => {}
            None => {
                let message = format!("cannot tell which cuDNN this is\n{place}");
                findings.push(Finding::new(Code::CudnnCannotTell, "cuDNN", message, CANNOT_TELL));
            }
            Some(version) if version < self.min => findings.push(self.older(version, &place)),
            Some(_) => {}
        }
        for (file, needed) in rows().filter(|(file, _)| missing(file)) {
            let consequence = if needed { ": the first call would abort" } else { "" };
            let message = format!("cuDNN's library {file} is missing{consequence}\n{place}");
            let severity = if needed { Severity::Error } else { Severity::Warning };
            let hint = "reinstall cuDNN whole, so that all its libraries stand in one folder";
            findings.push(Finding::new(Code::CudnnInnerMissing, "cuDNN", message, hint).weighing(severity));
        }
        for (part, whole) in inner.iter().filter(|part| part.present).filter_map(|part| Some((part, version?))) {
            let Some(own) = part.version.filter(|own| *own != whole) else { continue };
            let message = format!("cuDNN is mixed: {} is {own}, the rest {whole}\n{place}", part.file);
            // facts: decisions, 10.
            let same_minor = (own.major, own.minor) == (whole.major, whole.minor);
            let severity = if same_minor { Severity::Warning } else { Severity::Error };
            let hint = "remove the stray copy, or reinstall cuDNN whole from one package";
            findings.push(Finding::new(Code::CudnnInnerMixed, "cuDNN", message, hint).weighing(severity));
        }
    }

    fn older(&self, version: Version, place: &str) -> Finding {
        let patch = (version.major, version.minor) == (self.built.major, self.built.minor);
        let (code, older) =
            if patch { (Code::CudnnOlderPatch, "is an older patch than") } else { (Code::CudnnOlder, "is older than") };
        let message =
            format!("cuDNN {version} {older} cuDNN {}, which {} was built with\n{place}", self.built, self.component);
        let hint = format!(
            "update it, or put a folder in LD_LIBRARY_PATH that has cuDNN {} or newer; or rebuild against cuDNN {version}",
            self.min
        );
        Finding::new(code, "cuDNN", message, hint)
    }

    fn absent(&self, severity: Severity) -> Finding {
        let message = format!(
            "no cuDNN was found: no folder that the loader looks into has {}\n{}",
            self.soname,
            self.built_with()
        );
        let hint = format!("install cuDNN {} or newer, or name its folder in LD_LIBRARY_PATH", self.min);
        Finding::new(Code::CudnnAbsent, "cuDNN", message, hint).weighing(severity)
    }

    fn built_with(&self) -> String {
        format!("built with: cuDNN {} ({})", self.built, self.component)
    }
}

const CANNOT_TELL: &str = "nothing; its inner libraries should stand beside it";

fn name(version: Option<Version>) -> String {
    version.map_or_else(|| "cuDNN".to_owned(), |version| format!("cuDNN {version}"))
}

fn found(version: Option<Version>, path: &Path) -> String {
    format!("found:      {} in {}", name(version), path.display())
}
