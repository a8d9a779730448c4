//! What the tools of a linked file tell of the toolkit that it was built with.

use std::collections::BTreeSet;

use super::Evidence;
use crate::binary::Binary;
use crate::contents::Contents;
use crate::kernels::{Form, Kernels, Known};
use crate::linkage::Linkage;
use crate::vendor::{self, CUDART};
use crate::version::CudaVersion;

/// The releases that a linked file shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of its kernels.
    pub kernels: Vec<Kernel>,
    /// Of the cudarts that stand in it.
    pub cudart: Vec<CudaVersion>,
    /// In the name of the libcudart that it needs; the second number is always 0 from 12 on.
    pub cudart_named: Option<CudaVersion>,
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

impl Seen {
    /// Looks at a file that has been read, and whose kernels have. Where it does not show the toolkit in use alone, `own`
    /// tells of each container whether this build is known to have made it, by the file's bytes.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn of(
        binary: &Binary,
        kernels: &Kernels,
        in_use: Option<CudaVersion>,
        own: impl FnOnce(&[u8]) -> Vec<bool>,
    ) -> Result<Self, String> {
        let cudart = binary.linkage(&CUDART);
        if !kernels.any() && cudart != Linkage::Static {
            return Ok(Self { cudart_named: named(binary), ..Self::default() });
        }
        let evidence = Evidence::of(binary, kernels)?;
        let mut seen = Self { cudart_named: named(binary), ..Self::told(&evidence, kernels) };
        if seen.kernels.iter().any(|kernel| Some(kernel.release) != in_use) {
            let own = own(&Contents::open(&binary.path)?);
            for kernel in &mut seen.kernels {
                kernel.own = own.get(kernel.container).copied().unwrap_or(false);
            }
        }
        Ok(seen)
    }

    fn told(evidence: &Evidence, kernels: &Kernels) -> Self {
        // An ISA says no more than that the release is not older.
        let exact = evidence.kernels.iter().filter(|(_, made)| made.known != Known::Isa);
        let kernel = |(at, made): &(usize, crate::kernels::Made)| Kernel {
            container: *at,
            release: CudaVersion::new(made.release.0, made.release.1),
            known: made.known,
            own: false,
            bare: kernels.containers().get(*at).is_some_and(|container| container.form != Form::Fatbin),
        };
        Self { kernels: exact.map(kernel).collect(), cudart: evidence.cudart.clone(), cudart_named: None }
    }

    fn releases(&self, of: impl Fn(&Kernel) -> bool) -> BTreeSet<CudaVersion> {
        self.kernels.iter().filter(|kernel| of(kernel)).map(|kernel| kernel.release).collect()
    }

    /// The toolkits that compiled what this build is known to have made.
    pub fn own(&self) -> BTreeSet<CudaVersion> {
        self.releases(|kernel| kernel.own)
    }

    /// Those of the kernels that a cudart registers.
    pub fn registered(&self) -> BTreeSet<CudaVersion> {
        self.releases(|kernel| !kernel.bare)
    }

    /// Those of images without a fatbin around them.
    pub fn bare(&self) -> BTreeSet<CudaVersion> {
        self.releases(|kernel| kernel.bare)
    }

    /// Whether the cudart in it is of this release, or the one that it needs may be.
    pub fn may_take_cudart_of(&self, release: CudaVersion) -> bool {
        self.cudart.contains(&release) || self.cudart_named.is_some_and(|named| named.major == release.major)
    }

    /// The toolkit that it was built with, where the file shows one: the one in use where that took part, else the newest
    /// of those that did.
    pub fn toolkit(&self, in_use: Option<CudaVersion>) -> Option<CudaVersion> {
        let one_of = |releases: &BTreeSet<CudaVersion>| {
            let in_use = in_use.filter(|release| releases.contains(release));
            in_use.or_else(|| releases.last().copied())
        };
        let (own, registered) = (self.own(), self.registered());
        if !own.is_empty() {
            return one_of(&own);
        }
        // Kernels of others, linked to the cudart of the toolkit in use.
        if let Some(release) = in_use.filter(|release| self.cudart.contains(release)) {
            return Some(release);
        }
        let of_needed = |release: &CudaVersion| self.cudart_named.is_none_or(|named| named.major == release.major);
        if !registered.iter().any(of_needed) && !registered.is_empty() {
            return None;
        }
        one_of(&registered).or_else(|| one_of(&self.cudart.iter().copied().collect())).or_else(|| one_of(&self.bare()))
    }

    /// Whether it shows no other release than this one.
    pub fn shows_only(&self, release: CudaVersion) -> bool {
        self.kernels.iter().all(|kernel| kernel.release == release) && self.cudart.iter().all(|one| *one == release)
    }

    /// The other toolkits whose code stands in it, oldest first.
    pub fn besides(&self, toolkit: Option<CudaVersion>) -> Vec<CudaVersion> {
        self.releases(|_| true).into_iter().filter(|release| Some(*release) != toolkit).collect()
    }

    /// The release of the cudart in it: of several the one that asks most of a driver.
    pub fn cudart_inside(&self) -> Option<CudaVersion> {
        self.cudart.iter().max().copied()
    }
}

fn named(binary: &Binary) -> Option<CudaVersion> {
    binary.needed.iter().find_map(|name| vendor::cudart_named(name))
}
