//! What the tools of a linked file tell of the toolkit that it was built with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Evidence, HostCode};
use crate::binary::Binary;
use crate::kernels::{ImageForm, Kernels, Known};
use crate::linkage::Linkage;
use crate::toolchain::{LibraryFile, Toolchain};
use crate::vendor::{self, CUDART, CUDNN};
use crate::version::{CudaVersion, Version};

/// The releases that a linked file shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkEvidence {
    /// Of its kernels.
    pub kernels: Vec<Kernel>,
    /// Of the cudarts that stand in it.
    pub cudart: Vec<CudaVersion>,
    /// In the name of the libcudart that it needs; the second number is always 0 from 12 on.
    pub cudart_named: Option<CudaVersion>,
    /// The release of the libcudart that the linker took, and its file.
    pub cudart_taken: Option<(CudaVersion, PathBuf)>,
    /// The guarded library that the linker took.
    pub library_taken: Option<LibraryFile>,
    /// The compilers of the host's code in what this build has made; `None` where nobody has looked.
    pub host: Option<HostCode>,
}

/// A container whose code tells the release that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its number: [`Kernels::containers`].
    pub container: usize,
    /// Of the toolkit that made it.
    pub release: CudaVersion,
    /// How that is known.
    pub known: Known,
    /// This very build is known to have made it.
    pub own: bool,
    /// An image without a fatbin around it: no cudart registers it, and it may have come with the sources.
    pub bare: bool,
}

impl LinkEvidence {
    /// Looks at a file that has been read, and whose kernels have. Where it does not show the toolkit on record alone, `own`
    /// tells of each container whether this build is known to have made it, by the file's bytes. `searched` is where the
    /// linker looked for libraries, in its order.
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
        if let Some(soname) = binary.needed.iter().find(|name| vendor::cudart_named(name).is_some()) {
            seen.cudart_named = vendor::cudart_named(soname);
            seen.cudart_taken = resolve_library(soname, searched);
        }
        let library = binary.needed.iter().find(|name| CUDNN.is_named(name));
        seen.library_taken = library.and_then(|soname| Toolchain::library_taken(soname, searched));
        // Kernels may be of it, and the cudart of another: objects that were kept when the toolkit was switched.
        if !recorded.is_some_and(|release| seen.shows_only(release)) && !seen.kernels.is_empty() {
            let own = own(binary.data());
            for kernel in &mut seen.kernels {
                kernel.own = own.get(kernel.container).copied().unwrap_or(false);
            }
        }
        seen
    }

    fn from_evidence(evidence: &Evidence, kernels: &Kernels) -> Self {
        // An ISA says no more than that the release is not older.
        let exact = evidence.kernels.iter().filter(|(_, made)| made.known != Known::Isa);
        let kernel = |(at, made): &(usize, crate::kernels::Provenance)| Kernel {
            container: *at,
            release: CudaVersion::new(made.release.0, made.release.1),
            known: made.known,
            own: false,
            bare: kernels.containers().get(*at).is_some_and(|container| container.form != ImageForm::Fatbin),
        };
        Self { kernels: exact.map(kernel).collect(), cudart: evidence.cudart.clone(), ..Self::default() }
    }

    fn kernel_releases(&self, of: impl Fn(&Kernel) -> bool) -> BTreeSet<CudaVersion> {
        self.kernels.iter().filter(|kernel| of(kernel)).map(|kernel| kernel.release).collect()
    }

    /// The toolkits that compiled what this build is known to have made.
    pub fn own_kernel_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| kernel.own)
    }

    /// Those of the kernels that a cudart registers.
    pub fn registered_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| !kernel.bare)
    }

    /// Those of images without a fatbin around them.
    pub fn bare_image_releases(&self) -> BTreeSet<CudaVersion> {
        self.kernel_releases(|kernel| kernel.bare)
    }

    /// The releases of the cudarts that it was linked with, as far as they are known.
    pub fn cudart_releases(&self) -> BTreeSet<CudaVersion> {
        self.cudart.iter().copied().chain(self.cudart_taken.iter().map(|(release, _)| *release)).collect()
    }

    /// Whether its cudart is of this release, or may be.
    pub fn may_take_cudart_of(&self, release: CudaVersion) -> bool {
        let by_name =
            self.cudart_taken.is_none() && self.cudart_named.is_some_and(|named| named.major == release.major);
        by_name || self.cudart_releases().contains(&release)
    }

    /// The one toolkit of which both its kernels and its cudart are; `None` where there are several, or where anything
    /// does not tell.
    pub fn only_toolkit(&self) -> Option<CudaVersion> {
        let (mut all, cudarts) = (self.registered_releases(), self.cudart_releases());
        if all.is_empty() || cudarts.is_empty() {
            return None;
        }
        all.extend(self.own_kernel_releases());
        all.extend(cudarts);
        all.first().copied().filter(|_| all.len() == 1)
    }

    /// The toolkit that it was built with, where the file shows one: the one in use where that took part, else the newest
    /// of those that did.
    pub fn built_with(&self, in_use: Option<CudaVersion>) -> Option<CudaVersion> {
        let one_of = |releases: &BTreeSet<CudaVersion>| {
            let in_use = in_use.filter(|release| releases.contains(release));
            in_use.or_else(|| releases.last().copied())
        };
        let (own, registered) = (self.own_kernel_releases(), self.registered_releases());
        if !own.is_empty() {
            return one_of(&own);
        }
        // Kernels of others, linked to the cudart of the toolkit in use.
        let cudarts = self.cudart_releases();
        if let Some(release) = in_use.filter(|release| cudarts.contains(release)) {
            return Some(release);
        }
        let of_needed = |release: &CudaVersion| self.cudart_named.is_none_or(|named| named.major == release.major);
        let by_in_use = in_use.is_some_and(|release| registered.contains(&release));
        if !by_in_use && !registered.iter().any(of_needed) && !registered.is_empty() {
            return None;
        }
        one_of(&registered).or_else(|| one_of(&cudarts)).or_else(|| one_of(&self.bare_image_releases()))
    }

    /// Whether it shows no other release than this one.
    pub fn shows_only(&self, release: CudaVersion) -> bool {
        self.kernels.iter().all(|kernel| kernel.release == release)
            && self.cudart_releases().iter().all(|one| *one == release)
    }

    /// The other toolkits whose code stands in it, oldest first.
    pub fn other_toolkits(&self, toolkit: Option<CudaVersion>) -> Vec<CudaVersion> {
        self.kernel_releases(|_| true).into_iter().filter(|release| Some(*release) != toolkit).collect()
    }

    /// The release of the guarded library that the linker took.
    pub fn cudnn_version(&self) -> Option<Version> {
        Some(self.library_taken.as_ref()?.version.as_ref()?.value)
    }

    /// The release of its cudart: of several the one that asks most of a driver.
    pub fn newest_cudart(&self) -> Option<CudaVersion> {
        self.cudart_releases().last().copied()
    }
}

/// The library of this soname that a linker finds first.
fn resolve_library(soname: &str, searched: &[PathBuf]) -> Option<(CudaVersion, PathBuf)> {
    let names = [CUDART.link_name(), soname.to_owned()];
    let files = searched.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
    files.filter(|file| file.is_file()).find_map(|file| {
        let library = Binary::read(&file).ok().filter(|library| library.soname.as_deref() == Some(soname))?;
        let evidence = Evidence::from_binary(&library, &Kernels::default());
        Some((*evidence.cudart.first()?, file))
    })
}
