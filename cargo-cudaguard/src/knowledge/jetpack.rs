//! Releases of JetPack: on a Jetson the driver is a part of Jetson Linux (L4T), and releases of desktop drivers do not
//! apply.

use cudaguard::internal::tables::{Cc, is_tegra};
use cudaguard::internal::version::CudaVersion;

/// The CUDA version that the driver of each release supports, and the GPUs that the release runs on. Sources: release
/// notes of JetPack; for 7.2 pull request 2224 of OE4T/meta-tegra, which supports Orin and Thor.
const RELEASES: [(&str, &str, CudaVersion, &[Cc]); 7] = [
    ("4.2", "32.1", CudaVersion::new(10, 0), &[(5, 3), (6, 2), (7, 2)]),
    ("4.4", "32.4", CudaVersion::new(10, 2), &[(5, 3), (6, 2), (7, 2)]),
    ("5.0", "34.1", CudaVersion::new(11, 4), &[(7, 2), (8, 7)]),
    ("6.0", "36.3", CudaVersion::new(12, 2), &[(8, 7)]),
    ("6.1", "36.4", CudaVersion::new(12, 6), &[(8, 7)]),
    ("7.0", "38.2", CudaVersion::new(13, 0), &[(11, 0)]),
    ("7.2", "39.2", CudaVersion::new(13, 2), &[(8, 7), (11, 0)]),
];

/// Returns the oldest JetPack for this Jetson whose driver supports this CUDA: `JetPack 6.1 with L4T 36.4`. `None` for
/// another GPU, or if no release in the table does.
pub fn jetpack_for(gpu: Cc, cuda: CudaVersion) -> Option<String> {
    let (jetpack, l4t, ..) = RELEASES.iter().find(|(_, _, supports, gpus)| gpus.contains(&gpu) && *supports >= cuda)?;
    is_tegra(gpu).then(|| format!("JetPack {jetpack} with L4T {l4t}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jetpack_is_the_oldest_sufficient() {
        for (gpu, cuda, expected) in [
            ((8, 7), (11, 4), Some("JetPack 5.0 with L4T 34.1")),
            ((8, 7), (12, 3), Some("JetPack 6.1 with L4T 36.4")),
            ((8, 7), (13, 0), Some("JetPack 7.2 with L4T 39.2")),
            ((11, 0), (12, 3), Some("JetPack 7.0 with L4T 38.2")),
            ((7, 2), (12, 0), None),
            ((8, 6), (11, 4), None),
        ] {
            assert_eq!(jetpack_for(gpu, CudaVersion::new(cuda.0, cuda.1)).as_deref(), expected, "{gpu:?} {cuda:?}");
        }
    }
}
