//! The table of a library's releases: the CUDA majors that each was built for, and the GPUs that its builds support.

use std::env::consts::ARCH;
use std::ops::RangeInclusive;

use crate::knowledge::tables::Cc;
use crate::model::version::Version;

/// The releases of a library, from its file in `data/`.
#[derive(Debug)]
pub struct LibraryTable {
    pub(super) builds: &'static [CudnnBuild],
    pub(super) known: &'static [(u32, &'static [Version])],
    cuda: &'static [(Version, RangeInclusive<u32>)],
    left: &'static [(u32, Version, Cc)],
}

#[derive(Debug)]
pub(super) struct CudnnBuild {
    pub(super) cuda_major: u32,
    pub(super) from: Version,
    pub(super) min_cc: Cc,
    newest_cc: Option<Cc>,
    /// The processor of this build; `None`: all processors.
    platform: Option<&'static str>,
}

include!("rows.rs");

impl LibraryTable {
    pub(super) const fn empty() -> Self {
        Self { builds: &[], known: &[], cuda: &[], left: &[] }
    }

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
    use super::{CudnnBuild, LibraryTable};
    use crate::knowledge::tables::tests::parser::{
        A_CC, check_generated, constant, data, leak, parse_cc, parse_list, parse_number, parse_text, read_file,
    };
    use crate::knowledge::vendor::ALL;
    use crate::model::version::Version;

    #[test]
    fn rows_of_libraries_are_generated() {
        const A_MAJOR: &str = "a CUDA major";
        const A_RELEASE: &str = "a release of the library such as \"9.11\"";
        let table = read_file("cudnn.toml", &data("cudnn.toml"), |file| {
            Ok(LibraryTable {
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
        check_generated("vendor/rows.rs", &constant("pub(super) const CUDNN: LibraryTable", &table.unwrap()));
    }

    #[test]
    fn tables_are_consistent() {
        for table in ALL.map(super::super::Library::release_table) {
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
                    assert!(
                        table.cuda_majors(*version).is_some_and(|majors| majors.contains(major)),
                        "{version} {major}"
                    );
                }
            }
            assert!(table.cuda.is_sorted_by(|one, other| one.0 < other.0), "{:?}", table.cuda);
            assert!(table.left.is_sorted_by(|one, other| (one.1, one.2) < (other.1, other.2)), "{:?}", table.left);
            for (major, from, floor) in table.left {
                assert_eq!(*major, from.major);
                // A note has space for the last one, and for one that applies to all earlier releases.
                let floors: Vec<_> = table.gpu_floors(*major).collect();
                assert!(
                    floors.len() == 1 || floors.len() == 2 && floors[0].0 == Version::new(*major, 0, 0),
                    "{floors:?}"
                );
                // It applies to every build of that release.
                let builds: Vec<_> = (0..99).filter_map(|cuda| Some((cuda, table.min_cc(*from, cuda)?))).collect();
                let left_over = |cuda: u32| table.cuda_majors(*from).is_some_and(|majors| !majors.contains(&cuda));
                assert!(builds.iter().all(|(cuda, least)| least >= floor || left_over(*cuda)), "{builds:?}");
            }
        }
    }
}
