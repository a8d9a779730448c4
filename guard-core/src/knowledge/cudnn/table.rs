//! The table of the releases of cuDNN: the CUDA majors that each was built for, and the GPUs that its builds support.

use std::env::consts::ARCH;
use std::ops::RangeInclusive;

use crate::knowledge::tables::Cc;
use crate::model::version::Version;

/// The releases of cuDNN, from `data/cudnn.toml`.
#[derive(Debug)]
pub struct CudnnReleases {
    builds: &'static [CudnnBuild],
    known: &'static [(u32, &'static [Version])],
    cuda: &'static [(Version, RangeInclusive<u32>)],
    left: &'static [(u32, Version, Cc)],
}

#[derive(Debug)]
struct CudnnBuild {
    cuda_major: u32,
    from: Version,
    min_cc: Cc,
    newest_cc: Option<Cc>,
    /// The processor of this build; `None`: all processors.
    platform: Option<&'static str>,
}

include!("rows.rs");

impl CudnnReleases {
    /// Returns the oldest compute capability that a release's build for a CUDA major supports; `None` if the table does
    /// not have that build.
    pub fn min_cc(&self, version: Version, cuda_major: u32) -> Option<Cc> {
        self.find_build(version, cuda_major).map(|build| build.min_cc)
    }

    /// Returns the newest compute capability that it has code for.
    pub fn newest_cc(&self, version: Version, cuda_major: u32) -> Option<Cc> {
        self.find_build(version, cuda_major).and_then(|build| build.newest_cc)
    }

    fn find_build(&self, version: Version, cuda_major: u32) -> Option<&CudnnBuild> {
        let mut here = self.builds.iter().rev().filter(|build| build.platform.is_none_or(|platform| platform == ARCH));
        here.find(|build| build.cuda_major == cuda_major && build.from <= version)
    }

    /// Returns the releases that exist for a CUDA major, oldest first.
    pub fn releases_for(&self, cuda_major: u32) -> &[Version] {
        self.known.iter().find(|(major, _)| *major == cuda_major).map_or(&[], |(_, versions)| *versions)
    }

    /// Returns the CUDA majors for which a release was published. A limit that is not reached yet is open.
    pub fn cuda_majors(&self, version: Version) -> Option<RangeInclusive<u32>> {
        self.cuda.iter().rev().find(|(from, _)| *from <= version).map(|(_, majors)| majors.clone())
    }

    /// Returns the CUDA majors of the known builds of a release, possibly with duplicates.
    pub fn built_for(&self, version: Version) -> impl Iterator<Item = u32> + '_ {
        let majors = self.cuda_majors(version);
        let older = self.builds.iter().filter(move |build| build.from <= version).map(|build| build.cuda_major);
        older.filter(move |cuda| majors.as_ref().is_some_and(|majors| majors.contains(cuda)))
    }

    /// Returns the releases of this major that dropped GPUs which drivers still support, with the new minimum compute
    /// capability, oldest first. They apply to builds for every CUDA major.
    pub fn gpu_floors(&self, major: u32) -> impl Iterator<Item = (Version, Cc)> + '_ {
        self.left.iter().filter(move |(of, ..)| *of == major).map(|(_, from, cc)| (*from, *cc))
    }

    /// Returns the minimum that applies to this release.
    pub fn gpu_floor(&self, version: Version) -> Option<(Version, Cc)> {
        self.gpu_floors(version.major).take_while(|(from, _)| *from <= version).last()
    }

    /// Returns the newest GPUs that the releases of this major have code for, if newer GPUs may not work; `None` if
    /// unknown.
    pub fn newest_gpus(&self, major: u32) -> Option<NewestGpus> {
        let mut known: Vec<(u8, u32)> = Vec::new();
        for (cuda, versions) in self.known {
            for version in *versions {
                if version.major == major && !serves_later(*version, *cuda) {
                    known.extend(self.newest_cc(*version, *cuda).map(|cc| (cc.0, version.minor)));
                }
            }
        }
        // The newest GPUs first, and for each the oldest release first.
        known.sort_by(|one, other| (other.0, one.1).cmp(&(one.0, other.1)));
        let (newest, from_minor) = *known.first()?;
        let before = known.iter().find(|(_, minor)| *minor < from_minor).map(|(gpus, _)| *gpus);
        let below_cuda = (0..ANY_CUDA).find(|cuda| serves_later(Version::new(major, 0, 0), *cuda)).unwrap_or(ANY_CUDA);
        Some(NewestGpus { newest, from_minor, before: before.unwrap_or(newest), below_cuda })
    }
}

/// Returns true if the release also supports newer GPUs: cuDNN 9 for CUDA 12 and later does (hardware forward
/// compatibility).
pub(crate) const fn serves_later(version: Version, cuda: u32) -> bool {
    version.major >= 9 && cuda >= 12
}

/// A number greater than any CUDA major.
pub(crate) const ANY_CUDA: u32 = 255;

/// The newest GPUs that the releases of a major have code for, as majors of their compute capabilities: machine code
/// also runs on later GPUs of the same major. Later releases never support fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestGpus {
    /// The newest major that the release `from_minor` and later ones support.
    pub newest: u8,
    /// The minor of that release.
    pub from_minor: u32,
    /// The newest major that earlier releases support.
    pub before: u8,
    /// Applies only to builds for CUDA majors less than this one.
    pub below_cuda: u32,
}

impl NewestGpus {
    /// Returns the newest major that a release has code for, if newer GPUs may not work. `made_with`: the CUDA major
    /// that it was built with, if known.
    pub fn newest_for(self, version: Version, made_with: Option<u32>) -> Option<u8> {
        let concerned = made_with.unwrap_or(ANY_CUDA - 1) < self.below_cuda;
        concerned.then_some(if version.minor >= self.from_minor { self.newest } else { self.before })
    }
}

#[cfg(test)]
mod tests {
    use super::{CudnnBuild, CudnnReleases, RELEASES};
    use crate::knowledge::tables::tests::parser::{
        A_CC, check_generated, constant, data, leak, parse_cc, parse_list, parse_number, parse_text, read_file,
    };
    use crate::model::version::Version;

    #[test]
    fn rows_of_cudnn_are_generated() {
        const A_MAJOR: &str = "a CUDA major";
        const A_RELEASE: &str = "a release of the library such as \"9.11\"";
        let table = read_file("cudnn.toml", &data("cudnn.toml"), |file| {
            Ok(CudnnReleases {
                builds: leak(file.read_rows(
                    "build",
                    &["major", "from", "min_cc", "newest_cc", "platform"],
                    &|row| {
                        Ok(CudnnBuild {
                            cuda_major: row.read_required("major", A_MAJOR, parse_number)?,
                            from: row.read_required("from", A_RELEASE, parse_text)?,
                            min_cc: row.read_required("min_cc", A_CC, parse_cc)?,
                            newest_cc: row.read_optional("newest_cc", A_CC, parse_cc)?,
                            platform: row.read_optional("platform", "x86_64 or aarch64", |value| {
                                ["x86_64", "aarch64"].into_iter().find(|name| value.as_str() == Some(*name))
                            })?,
                        })
                    },
                )?),
                known: leak(file.read_rows("known", &["major", "versions"], &|row| {
                    let versions = row.read_required("versions", "releases", |value| parse_list(value, parse_text))?;
                    Ok((row.read_required("major", A_MAJOR, parse_number)?, versions))
                })?),
                cuda: leak(file.read_rows("cuda", &["from", "oldest", "newest"], &|row| {
                    let newest = row.read_optional("newest", A_MAJOR, parse_number)?.unwrap_or(u32::MAX);
                    let oldest = row.read_required("oldest", A_MAJOR, parse_number)?;
                    Ok((row.read_required("from", A_RELEASE, parse_text)?, oldest..=newest))
                })?),
                left: leak(file.read_rows("left", &["major", "from", "min_cc"], &|row| {
                    let from = row.read_required("from", A_RELEASE, parse_text)?;
                    Ok((
                        row.read_required("major", "the library's major", parse_number)?,
                        from,
                        row.read_required("min_cc", A_CC, parse_cc)?,
                    ))
                })?),
            })
        });
        let text = constant("/// The known releases.\npub static RELEASES: CudnnReleases", &table.unwrap());
        check_generated("cudnn/rows.rs", &text);
    }

    #[test]
    fn table_is_consistent() {
        let table = &RELEASES;
        for pair in table.builds.windows(2) {
            let platforms = [&pair[0].platform, &pair[1].platform];
            let same_release = (pair[0].cuda_major, pair[0].from) == (pair[1].cuda_major, pair[1].from)
                && platforms[0] != platforms[1]
                && platforms.iter().all(|platform| platform.is_some());
            let rising = (pair[0].cuda_major, pair[0].from) < (pair[1].cuda_major, pair[1].from);
            assert!(rising || same_release, "{pair:?}");
            assert!(pair[0].cuda_major != pair[1].cuda_major || pair[0].min_cc <= pair[1].min_cc, "{pair:?}");
        }
        for (major, versions) in table.known {
            assert!(versions.is_sorted_by(|one, other| one < other), "CUDA {major}: {versions:?}");
            for version in *versions {
                assert!(table.min_cc(*version, *major).is_some(), "{version} for CUDA {major} has no floor");
                assert!(table.cuda_majors(*version).is_some_and(|majors| majors.contains(major)), "{version} {major}");
            }
        }
        assert!(table.cuda.is_sorted_by(|one, other| one.0 < other.0), "{:?}", table.cuda);
        assert!(table.left.is_sorted_by(|one, other| (one.1, one.2) < (other.1, other.2)), "{:?}", table.left);
        for (major, from, floor) in table.left {
            assert_eq!(*major, from.major);
            // A note has space for the last one, and for one that applies to all earlier releases.
            let floors: Vec<_> = table.gpu_floors(*major).collect();
            assert!(floors.len() == 1 || floors.len() == 2 && floors[0].0 == Version::new(*major, 0, 0), "{floors:?}");
            // It applies to every build of that release.
            let builds: Vec<_> = (0..99).filter_map(|cuda| Some((cuda, table.min_cc(*from, cuda)?))).collect();
            let left_over = |cuda: u32| table.cuda_majors(*from).is_some_and(|majors| !majors.contains(&cuda));
            assert!(builds.iter().all(|(cuda, least)| least >= floor || left_over(*cuda)), "{builds:?}");
        }
    }

    #[test]
    fn release_gpu_support_is_listed() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        for (release, major, oldest, newest) in [
            ("9.15.1", 13, Some((7, 5)), Some((12, 1))),
            ("9.10.2", 12, Some((5, 0)), Some((12, 0))),
            ("9.11.0", 12, Some((7, 5)), Some((12, 0))),
            ("8.5.0", 11, Some((3, 5)), Some((8, 6))),
            ("8.2.2", 11, Some((3, 5)), None),
            ("7.6.5", 10, Some((3, 0)), Some((7, 5))),
            ("9.99.0", 13, Some((7, 5)), Some((12, 1))),
            ("9.15.1", 14, None, None),
            ("8.5.0", 12, None, None),
        ] {
            let release = version(release);
            assert_eq!(
                (RELEASES.min_cc(release, major), RELEASES.newest_cc(release, major)),
                (oldest, newest),
                "{release} {major}"
            );
        }
        assert!(RELEASES.releases_for(13).contains(&version("9.15.1")));
        assert!(!RELEASES.releases_for(11).contains(&version("9.15.1")));
        assert!(RELEASES.releases_for(14).is_empty());
        for (release, floor) in [
            ("7.6.5", None),
            ("8.8.1", None),
            ("8.9.0", Some(("8.9", (5, 0)))),
            ("9.0.0", Some(("9.0", (5, 0)))),
            ("9.10.2", Some(("9.0", (5, 0)))),
            ("9.11.0", Some(("9.11", (7, 5)))),
            ("9.99.0", Some(("9.11", (7, 5)))),
            ("10.0.0", None),
        ] {
            let floor = floor.map(|(from, cc)| (version(from), cc));
            assert_eq!(RELEASES.gpu_floor(version(release)), floor, "{release}");
        }
        let newest = |major, release: &str, cuda| RELEASES.newest_gpus(major)?.newest_for(version(release), cuda);
        assert_eq!(["8.5", "8.6", "8.9"].map(|release| newest(8, release, None)), [Some(8), Some(9), Some(9)]);
        assert_eq!(
            [None, Some(11), Some(12), Some(13)].map(|cuda| newest(9, "9.5", cuda)),
            [None, Some(9), None, None]
        );
        assert_eq!(newest(10, "10.1", Some(13)), None);
    }

    #[test]
    fn release_cuda_versions_are_listed() {
        for (version, cuda, made) in [
            ("7.6.5", 10, true),
            ("7.6.5", 11, false),
            ("8.5.0", 11, true),
            ("8.5.0", 12, false),
            ("8.9.7", 12, true),
            ("8.9.7", 13, false),
            ("9.1.0", 11, true),
            ("9.1.0", 13, false),
            ("9.10.2", 11, true),
            ("9.11.0", 11, false),
            ("9.12.0", 13, true),
            ("9.28.0", 12, true),
            ("10.0.0", 14, true),
        ] {
            let majors = RELEASES.cuda_majors(version.parse().unwrap()).unwrap();
            assert_eq!(majors.contains(&cuda), made, "{version} for CUDA {cuda}");
        }
    }
}
