//! The libraries that a file brings, needs or opens.

use crate::family::is_installed;
use crate::host::machine::judge;
use crate::knowledge::vendor;
use cudaguard::internal::finding::{Code, Finding};
use cudaguard::internal::manifest::{Manifest, Requirement};

use super::super::described_libraries::python_module;
use super::super::{Host, HostLibrary, LibraryState};

/// What a module, with the files that are loaded for it, cannot be loaded without.
#[derive(Clone, Debug, Default)]
pub struct LoadedModule {
    /// The libraries, a part of [`Components::needed`](super::Components::needed).
    pub(crate) needs: Vec<String>,
    /// The files that link cuDNN.
    pub(crate) cudnn: Vec<LinkedCudnn>,
}

/// A file that links cuDNN.
#[derive(Clone, Debug)]
pub struct LinkedCudnn {
    /// An index in [`Components::manifests`](super::Components::manifests).
    pub(crate) manifest: usize,
    pub(crate) file: String,
    pub(crate) soname: String,
}

/// A library that a file needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The soname.
    pub soname: String,
    /// The member of a package that needs it. `None`: the file itself.
    pub by: Option<String>,
    /// True if the file contains an rpath or runpath, in which the library may be.
    pub has_search_path: bool,
    /// The module that needs it: a program works without the module if it does not load it.
    pub module: Option<String>,
    /// The error if the machine does not provide it, because the file that comes with the program is for another processor.
    pub foreign: Option<Box<Finding>>,
}

/// The cuDNN that comes with a file.
#[derive(Clone, Debug)]
pub struct BroughtCudnn {
    /// The manifest that requires it, an index in [`Components::manifests`](super::Components::manifests).
    pub(crate) manifest: usize,
    /// What the manifest requires of cuDNN.
    pub(crate) rows: Vec<Requirement>,
    /// The error if the machine does not provide one, because the one that comes with the file is for another processor.
    pub(crate) library: Result<HostLibrary, Finding>,
}

impl BroughtCudnn {
    /// Returns the paths of the parts that the manifest requires and this library lacks. The judge reports them.
    pub(crate) fn absent_parts(&self) -> Vec<String> {
        let Ok(HostLibrary { path: Some(path), parts: Some(present), .. }) = &self.library else { return Vec::new() };
        let dir = &path[..path.rfind(['/', '!']).map_or(0, |end| end + 1)];
        let mut absent = Vec::new();
        for row in &self.rows {
            if let Requirement::Part { file, .. } = row
                && present.iter().all(|part| part.file != *file)
            {
                absent.push(format!("{dir}{file}"));
            }
        }
        absent
    }

    /// Checks the manifest with this library instead of the one of the machine.
    pub(super) fn judge(&self, manifest: &Manifest, host: &Host<'_>) -> Vec<Finding> {
        let requires = [&manifest.requires[..], &self.rows].concat();
        let complete = Manifest { requires, ..manifest.clone() };
        let library = match &self.library {
            Ok(library) => LibraryState::Found(library),
            Err(finding) => match host.machine.cudnn_of(&complete) {
                // The machine may have the right major.
                LibraryState::Unknown if finding.code == Code::CudnnOtherMajor => LibraryState::Unknown,
                LibraryState::Absent | LibraryState::Unknown => {
                    let mut findings = judge::judge(manifest, host, host.machine.cudnn_of(manifest));
                    findings.push(finding.clone());
                    return findings;
                }
                found @ LibraryState::Found(_) => found,
            },
        };
        judge::judge(&complete, host, library)
    }
}

impl Needed {
    /// Returns true if one finding reports both. Each module of Python that cannot be imported has its own.
    pub(crate) fn is_reported_with(&self, other: &Self) -> bool {
        let module = |needed: &Self| needed.module.as_deref().and_then(python_module);
        self.soname == other.soname && self.module.is_none() == other.module.is_none() && module(self) == module(other)
    }

    /// Returns true for the driver's library.
    pub(crate) fn is_of_driver(&self) -> bool {
        vendor::is_libcuda(&self.soname)
    }
}

/// A library that a crate or a file opens by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedByName {
    /// The crate or the file: `cudarc 0.19.10`.
    pub by: String,
    /// The names that it tries, in order.
    pub names: Vec<String>,
    /// False for a file that may work without the library.
    pub is_by_crate: bool,
}

impl OpenedByName {
    /// Returns the libraries that the crates of a manifest open by name, except cuDNN and the driver's, which have their own rules.
    pub(crate) fn from_manifest(manifest: &Manifest) -> impl Iterator<Item = Self> {
        manifest.opens.iter().flat_map(|opens| {
            let others = opens.libraries.iter().filter(|stem| is_installed(&format!("lib{stem}.so")));
            others.map(|stem| Self { by: opens.by.clone(), names: opens.candidate_names(stem), is_by_crate: true })
        })
    }
}
