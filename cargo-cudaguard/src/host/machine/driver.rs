//! The driver of a machine.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::detect::in_compat_dir;
use super::{MachineKind, host_file, host_file_writer};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};

/// A driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, expecting = "a driver: an object, `{ … }`")]
pub struct Driver {
    /// True if a search found no libcuda.
    #[serde(
        rename = "present",
        deserialize_with = "host_file::is_false",
        serialize_with = "host_file_writer::negated"
    )]
    #[serde(skip_serializing_if = "host_file_writer::is_unset")]
    pub absent: bool,
    /// Its release.
    #[serde(deserialize_with = "host_file::a_release", serialize_with = "host_file_writer::text")]
    pub user: Option<DriverRelease>,
    /// The release of the kernel module.
    #[serde(deserialize_with = "host_file::a_release", serialize_with = "host_file_writer::text")]
    pub kernel: Option<DriverRelease>,
    /// The CUDA version that libcuda supports.
    #[serde(deserialize_with = "host_file::a_cuda_version", serialize_with = "host_file_writer::text")]
    pub cuda: Option<CudaVersion>,
    /// Result of `cuInit`; `None`: not called, or it did not return.
    pub init: Option<u32>,
    /// Path of libcuda.
    pub library: Option<String>,
    /// True if `libnvidia-ptxjitcompiler.so.1`, which compiles PTX, is installed.
    pub ptx_compiler: Option<bool>,
    /// True if libcuda's file was read, has no such note, and is not in a cuda-compat directory.
    #[serde(deserialize_with = "host_file::or_default", skip_serializing_if = "host_file_writer::is_unset")]
    pub ordinary: bool,
    /// Contents of libcuda's note about forward compatibility, which only cuda-compat has.
    pub compat: Option<CompatPackage>,
}

/// The note of a cuda-compat libcuda.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(default, expecting = "an object, `{ … }`")]
pub struct CompatPackage {
    /// The CUDA version that it supports.
    #[serde(deserialize_with = "host_file::a_cuda_version", serialize_with = "host_file_writer::text")]
    pub cuda: Option<CudaVersion>,
    /// The branches of kernel modules that it supports; empty if it lists none.
    #[serde(deserialize_with = "host_file::list_or_empty")]
    pub branches: Vec<u32>,
}

impl Driver {
    /// Returns the branches of kernel modules that a libcuda of cuda-compat supports; empty if its note contains none (Jetson). `None`
    /// for another libcuda. Packages up to 2025 had no note.
    pub(crate) fn compat_branches(&self) -> Option<&[u32]> {
        match &self.compat {
            Some(compat) => Some(&compat.branches),
            None if self.ordinary => None,
            None => self.compat_of_table(),
        }
    }

    /// Returns the branches of a cuda-compat libcuda, identified by its directory, if the table lists this kernel
    /// module for it.
    fn compat_of_table(&self) -> Option<&'static [u32]> {
        let (user, kernel) = (self.user?, self.kernel?);
        let in_dir = self.library.as_deref().is_some_and(|path| in_compat_dir(Path::new(path)));
        let cuda = self.cuda.or_else(|| tables::driver_supports(user).exact_version())?;
        let branches = tables::compat_kernels(cuda);
        (in_dir && user > kernel && branches.contains(&kernel.branch)).then_some(branches)
    }

    /// Returns the driver of a Windows machine with the branches of Linux, by which the tables know it.
    pub(super) fn with_linux_branches(&self) -> Self {
        let [user, kernel] = [self.user, self.kernel].map(|release| release.map(tables::branch_of_windows));
        Self { user, kernel, ..self.clone() }
    }

    /// Returns the CUDA version that libcuda reported, or that of its release if the table has the branch. On WSL, the
    /// release is that of the Windows driver, which is numbered differently.
    pub(crate) fn cuda_version(&self, kind: Option<MachineKind>) -> Option<CudaVersion> {
        self.cuda.or_else(|| tables::driver_supports(self.user.filter(|_| kind.is_none())?).exact_version())
    }

    /// Returns the newest CUDA version that both libcuda and the kernel module may support; they know no GPUs that are
    /// newer. The drivers of a Tegra support its GPU from the first release on.
    pub(super) fn supports_at_most(&self, kind: Option<MachineKind>) -> Option<CudaVersion> {
        let (user, kernel) = agreed_release(self.user, self.kernel);
        match kind {
            Some(MachineKind::Jetson) => None,
            Some(MachineKind::Wsl2) => self.cuda,
            None => {
                let by_libcuda = self.cuda.or_else(|| tables::driver_supports(user?).most);
                // libcuda's own answer has precedence over the table entry of its release.
                let other = kernel.filter(|_| self.cuda.is_none() || user != kernel);
                let by_kernel = other.and_then(|release| tables::driver_supports(release).most);
                by_libcuda.into_iter().chain(by_kernel).min()
            }
        }
    }
}

/// Treats two releases of one branch as equal if one of them is only the branch number.
pub(crate) fn agreed_release(
    user: Option<DriverRelease>,
    kernel: Option<DriverRelease>,
) -> (Option<DriverRelease>, Option<DriverRelease>) {
    match (user, kernel) {
        (Some(one), Some(other)) if other == DriverRelease::new(one.branch, 0, 0) => (user, user),
        (Some(one), Some(other)) if one == DriverRelease::new(other.branch, 0, 0) => (kernel, kernel),
        _ => (user, kernel),
    }
}
