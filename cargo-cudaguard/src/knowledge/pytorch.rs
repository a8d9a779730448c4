//! The GPU code that PyTorch publishes for Linux on x86-64, by release and toolkit.

use cudaguard::internal::arch::{self, ArchRequest, Dialect, Target};
use cudaguard::internal::version::CudaVersion;

/// Builds of PyTorch for one toolkit with the same architectures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PytorchBuilds {
    /// The first and the last minor release of PyTorch 2.
    releases: (u32, u32),
    cuda: CudaVersion,
    /// `TORCH_CUDA_ARCH_LIST` of these builds.
    archs: &'static str,
}

const fn builds(first: u32, last: u32, cuda: (u32, u32), archs: &'static str) -> PytorchBuilds {
    PytorchBuilds { releases: (first, last), cuda: CudaVersion::new(cuda.0, cuda.1), archs }
}

/// Before 2.9: `.ci/manywheel/build_cuda.sh` of PyTorch, and `torch.cuda.get_arch_list()` of the packages
/// (<https://github.com/moi90/pytorch_compute_capabilities>). From 2.9 on: "PyTorch CUDA Support Matrix" of its releases
/// (pull requests 164471 and 175253, issue 178665). About Volta in 2.8 for CUDA 12.8, the release notes and the build
/// script disagree: the table has both.
const BUILDS: &[PytorchBuilds] = &[
    builds(5, 5, (12, 1), "5.0 6.0 7.0 7.5 8.0 8.6 9.0"),
    builds(5, 7, (11, 8), "3.7 5.0 6.0 7.0 7.5 8.0 8.6 9.0"),
    builds(5, 6, (12, 4), "5.0 6.0 7.0 7.5 8.0 8.6 9.0"),
    builds(6, 14, (12, 6), "5.0 6.0 7.0 7.5 8.0 8.6 9.0"),
    builds(7, 8, (12, 8), "7.5 8.0 8.6 9.0 10.0 12.0+PTX"),
    builds(8, 10, (12, 8), "7.0 7.5 8.0 8.6 9.0 10.0 12.0"),
    builds(11, 11, (12, 8), "7.5 8.0 8.6 9.0 10.0 12.0"),
    builds(8, 8, (12, 9), "7.0 7.5 8.0 8.6 9.0 10.0 12.0+PTX"),
    builds(9, 14, (13, 0), "7.5 8.0 8.6 9.0 10.0 12.0+PTX"),
    builds(12, 14, (13, 2), "7.5 8.0 8.6 9.0 10.0 12.0+PTX"),
];

/// Returns the builds for a toolkit, of this minor release or of all.
pub(crate) fn pytorch_builds(cuda: CudaVersion, minor: Option<u32>) -> impl Iterator<Item = &'static PytorchBuilds> {
    BUILDS.iter().filter(move |builds| {
        let (first, last) = builds.releases;
        builds.cuda == cuda && minor.is_none_or(|minor| (first..=last).contains(&minor))
    })
}

impl PytorchBuilds {
    /// Returns a name such as `PyTorch 2.8 to 2.10 for CUDA`.
    pub(crate) fn name(&self) -> String {
        let (first, last) = self.releases;
        let through = if first == last { String::new() } else { format!(" to 2.{last}") };
        format!("PyTorch 2.{first}{through} for CUDA")
    }

    /// Returns the machine code and PTX in these builds.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let requests = arch::parse_list(self.archs, Dialect::Torch).expect("a list of the table");
        let mut targets = Vec::new();
        for request in requests {
            if let ArchRequest::Target(target) = request {
                targets.push(target);
            }
        }
        targets
    }
}
