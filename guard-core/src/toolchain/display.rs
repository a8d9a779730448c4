//! Formats detected facts for findings and reports.

use std::path::Path;

use super::{HostCompiler, Install, LibraryFile, LinkedCudart, Toolchain, Toolkit};
use crate::knowledge::cudnn;

impl Toolchain {
    /// Returns the known part of the release of the toolkit in use: `13.0.88`, or `13.0` if it is only known from
    /// `cuda.h`.
    pub fn release_text(&self) -> Option<String> {
        let toolkit = self.compiling_toolkit().filter(|toolkit| toolkit.version().is_some());
        toolkit.or_else(|| self.including_toolkit())?.release_text()
    }
}

impl LinkedCudart {
    /// Returns `13.0.96`, `13`, or `of an unknown release`.
    pub fn version_text(&self) -> String {
        match (&self.version, self.major) {
            (Some(version), _) => version.value.to_string(),
            (None, Some(major)) => major.to_string(),
            (None, None) => "of an unknown release".to_owned(),
        }
    }
}

impl HostCompiler {
    /// Returns `gcc 12.2.0`, or the file name of the program.
    pub fn describe(&self) -> String {
        let file_name = self.path.file_name().unwrap_or_default();
        self.display_name().unwrap_or_else(|| file_name.to_string_lossy().into_owned())
    }
}

impl Toolkit {
    /// Returns the known part of its release: `12.4.131`, or `12.4` if the third number is unknown.
    pub fn release_text(&self) -> Option<String> {
        Some(self.version()?.value.known_text())
    }

    /// Describes the toolkit: `CUDA 12.4.131`, or the parts of it that exist.
    pub fn describe(&self) -> String {
        match (self.release_text(), &self.cudart) {
            (Some(release), _) => format!("CUDA {release}"),
            (None, Some(cudart)) => format!("libcudart {}", cudart.version_text()),
            (None, None) => "CUDA of an unknown release".to_owned(),
        }
    }

    /// Describes the location: `/usr/local/cuda-12.4 (CUDA_HOME, /usr/local/cuda)`.
    pub fn describe_place(&self) -> String {
        format!("{} ({})", self.root.display(), self.found.join(", "))
    }
}

impl LibraryFile {
    /// Describes the library: `9.15.1`, with the CUDA major if it is known; or its major.
    pub fn describe(&self) -> String {
        let version = self.version.as_ref().map_or(self.major.to_string(), |version| version.value.to_string());
        match &self.cuda_major {
            Some(cuda) => format!("{version} for CUDA {}", cuda.value),
            None => version,
        }
    }
}

impl Install {
    /// Returns name and version, from the headers or the library.
    pub fn describe(&self) -> String {
        let headers = self.headers.as_ref().and_then(|headers| headers.version).map(|version| version.to_string());
        let library = self.library.as_ref().map(LibraryFile::describe);
        format!("{} {}", cudnn::NAME, headers.or(library).unwrap_or_else(|| "of an unknown version".to_owned()))
    }

    /// Describes the directory and its origins.
    pub fn describe_place(&self) -> String {
        let headers = self.headers.as_ref().map(|headers| &headers.path);
        let file = headers.or(self.library.as_ref().map(|library| &library.path));
        let dir = file.and_then(|file| file.parent()).unwrap_or(Path::new(""));
        format!("{} ({})", dir.display(), self.found.join(", "))
    }
}
