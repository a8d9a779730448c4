//! Evidence in a linked file about the toolkit that built it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Evidence, HostCode};
use crate::binary::file::Binary;
use crate::binary::kernels::{ImageForm, Kernels, Known};
use crate::knowledge::vendor::{self, CUDART, CUDNN};
use crate::linked::torch::UnloadedTorchCuda;
use cudaguard::internal::linkage::Linkage;
use cudaguard::internal::toolchain::{self, LibraryFile};
use cudaguard::internal::version::{CudaVersion, Version};

/// Releases that a linked file shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkEvidence {
    /// The kernels and their releases.
    pub kernels: Vec<Kernel>,
    /// Releases of the cudarts in the file.
    pub cudart: Vec<CudaVersion>,
    /// Release in the name of the libcudart that it needs; from 12 on, the second number is always 0.
    pub cudart_named: Option<CudaVersion>,
    /// Release and path of the libcudart that the linker resolved.
    pub cudart_taken: Option<(CudaVersion, PathBuf)>,
    /// The cuDNN that the linker resolved.
    pub library_taken: Option<LibraryFile>,
    /// The CUDA part of the linked libtorch, if the file does not load it.
    pub torch_cuda: Option<UnloadedTorchCuda>,
    /// Compilers of the host code in this build's outputs; `None` if they were not examined.
    pub host: Option<HostCode>,
}

/// A container whose code shows the release that compiled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Index in [`Kernels::containers`].
    pub container: usize,
    /// Release of the toolkit that compiled it.
    pub release: CudaVersion,
    /// Evidence for the release.
    pub known: Known,
    /// True if it is known that this build compiled it.
    pub own: bool,
    /// True for an image that is not in a fatbin: no cudart registers it, and it may come from the source tree.
    pub bare: bool,
}

impl LinkEvidence {
    /// Collects the releases from a linked file and its kernels. If the file shows any toolkit other than `recorded`,
    /// `own` is called with the contents of the file and returns, for each container, whether this build is known to
    /// have compiled it. `searched` lists the directories in which the linker searched for libraries, in order.
    pub fn from_linked_file(
        binary: &Binary,
        kernels: &Kernels,
        recorded: Option<CudaVersion>,
        searched: &[PathBuf],
        own: impl FnOnce(&[u8]) -> Vec<bool>,
    ) -> Self {
        let cudart = binary.linkage(&CUDART);
        let mut seen = Self::default();
        if kernels.has_kernels() || cudart == Linkage::Static {
            seen = Self::from_evidence(&Evidence::from_binary(binary, kernels), kernels);
        }
        if let Some(soname) = binary.imported().find(|name| vendor::cudart_named(name).is_some()) {
            seen.cudart_named = vendor::cudart_named(soname);
            seen.cudart_taken = resolve_library(soname, searched);
        }
        let library = binary.imported().find(|name| CUDNN.is_named(name));
        seen.library_taken = library.and_then(|soname| toolchain::resolve_library(soname, searched));
        seen.torch_cuda = UnloadedTorchCuda::detect(&binary.needed, searched);
        // Kernels and cudart may be from different toolkits, because objects were reused after the toolkit was changed.
        if !recorded.is_some_and(|release| seen.shows_only(release)) && !seen.kernels.is_empty() {
            let own = own(binary.data());
            for kernel in &mut seen.kernels {
                kernel.own = own.get(kernel.container).copied().unwrap_or(false);
            }
        }
        seen
    }

    fn from_evidence(evidence: &Evidence, kernels: &Kernels) -> Self {
        // An ISA version shows only the oldest possible release.
        let exact = evidence.kernels.iter().filter(|(_, made)| made.known != Known::Isa);
        let exact = exact.map(|(at, made)| Kernel {
            container: *at,
            release: CudaVersion::new(made.release.0, made.release.1),
            known: made.known,
            own: false,
            bare: kernels.containers().get(*at).is_some_and(|container| container.form != ImageForm::Fatbin),
        });
        Self { kernels: exact.collect(), cudart: evidence.cudart.clone(), ..Self::default() }
    }

    fn kernel_releases(&self, of: impl Fn(&Kernel) -> bool) -> BTreeSet<CudaVersion> {
        self.kernels.iter().filter(|kernel| of(kernel)).map(|kernel| kernel.release).collect()
    }

    /// Returns the toolkits of the kernels that this build is known to have compiled.
    pub fn own_kernel_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| kernel.own)
    }

    /// Returns the toolkits of the kernels that a cudart registers.
    pub fn registered_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| !kernel.bare)
    }

    /// Returns the toolkits of images that are not in a fatbin.
    pub fn bare_image_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| kernel.bare)
    }

    /// Returns the known releases of the cudarts that the file was linked with.
    pub fn cudart_releases(&self) -> BTreeSet<CudaVersion> {
        self.cudart.iter().copied().chain(self.cudart_taken.iter().map(|(release, _)| *release)).collect()
    }

    /// Returns true if its cudart has this release, or may have it.
    pub fn may_take_cudart_of(&self, release: CudaVersion) -> bool {
        let by_name =
            self.cudart_taken.is_none() && self.cudart_named.is_some_and(|named| named.major == release.major);
        by_name || self.cudart_releases().contains(&release)
    }

    /// Returns the toolkit if all kernels and the cudart come from one. `None` if there are several, or if the kernels
    /// or the cudart do not show their release.
    pub fn only_toolkit(&self) -> Option<CudaVersion> {
        let (mut all, cudarts) = (self.registered_releases(), self.cudart_releases());
        if all.is_empty() || cudarts.is_empty() {
            return None;
        }
        all.extend(self.own_kernel_releases());
        all.extend(cudarts);
        all.first().copied().filter(|_| all.len() == 1)
    }

    /// Returns the toolkit that built the file, if the file shows one: the toolkit in use if it took part, otherwise
    /// the newest one that did.
    pub fn built_with(&self, in_use: Option<CudaVersion>) -> Option<CudaVersion> {
        let (own, registered) = (self.own_kernel_releases(), self.registered_releases());
        if !own.is_empty() {
            return in_use_or_newest(in_use, &own);
        }
        // Kernels from elsewhere, linked to the cudart of the toolkit in use.
        let cudarts = self.cudart_releases();
        if let Some(release) = in_use.filter(|release| cudarts.contains(release)) {
            return Some(release);
        }
        let by_in_use = in_use.is_some_and(|release| registered.contains(&release));
        if let Some(named) = self.cudart_named.filter(|_| !by_in_use && !registered.is_empty())
            && registered.iter().all(|release| release.major != named.major)
        {
            return None;
        }
        [registered, cudarts, self.bare_image_releases()].iter().find_map(|releases| in_use_or_newest(in_use, releases))
    }

    /// Returns true if the file shows no release other than this one.
    pub fn shows_only(&self, release: CudaVersion) -> bool {
        self.kernels.iter().all(|kernel| kernel.release == release)
            && self.cudart_releases().iter().all(|one| *one == release)
    }

    /// Returns the other toolkits whose code is in the file, oldest first.
    pub fn other_toolkits(&self, toolkit: Option<CudaVersion>) -> Vec<CudaVersion> {
        self.kernel_releases(|_| true).into_iter().filter(|release| Some(*release) != toolkit).collect()
    }

    /// Returns the release of the cuDNN that the linker resolved.
    pub fn cudnn_version(&self) -> Option<Version> {
        Some(self.library_taken.as_ref()?.version.as_ref()?.value)
    }

    /// Returns the newest release of its cudarts, which has the highest driver requirement.
    pub fn newest_cudart(&self) -> Option<CudaVersion> {
        self.cudart_releases().last().copied()
    }
}

/// Returns release and path of the library with this soname that a linker finds first.
fn resolve_library(soname: &str, searched: &[PathBuf]) -> Option<(CudaVersion, PathBuf)> {
    let names = [CUDART.link_name(), soname.to_owned()];
    let files = searched.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
    files.filter(|file| file.is_file()).find_map(|file| {
        let library = Binary::read(&file).ok().filter(|library| library.soname.as_deref() == Some(soname))?;
        Some((*Evidence::from_binary(&library, &Kernels::default()).cudart.first()?, file))
    })
}

fn in_use_or_newest(in_use: Option<CudaVersion>, releases: &BTreeSet<CudaVersion>) -> Option<CudaVersion> {
    in_use.filter(|release| releases.contains(release)).or_else(|| releases.last().copied())
}
