//! The candidates of `choose`: files, and names that state a toolkit.

use std::path::{Path, PathBuf};

use cudaguard::internal::arch::Target;
use cudaguard::internal::coverage::requirements::declared_rows;
use cudaguard::internal::env::Env;
use cudaguard::internal::manifest::{Component, Manifest, Requirement};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::tables;
use cudaguard::internal::toolchain::Toolchain;
use cudaguard::internal::version::{CudaVersion, Version};

use crate::cli::report::CliError;
use crate::commands::verify;
use crate::host::machine::Components;
use crate::knowledge::publishers::publisher_of;
use crate::knowledge::pytorch::pytorch_builds;
use crate::linked::seal::cudart_row;

/// Endings of files. A name with such an ending is no name of a toolkit.
const FILE_ENDINGS: [&str; 7] = [".whl", ".conda", ".bz2", ".gz", ".zip", ".tar", ".so"];

/// A toolkit that a name states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatedToolkit {
    pub(super) major: u32,
    pub(super) minor: Option<u32>,
    /// True for PyTorch's form `cu126`.
    is_of_pytorch: bool,
}

/// A build to choose from.
pub(super) struct Candidate {
    /// The file or the name, as given.
    pub(super) name: String,
    pub(super) file: Option<PathBuf>,
    pub(super) stated: Option<StatedToolkit>,
    /// The version in the name of a wheel.
    pub(super) release: ReleaseKey,
    /// What a machine must have for it: one for a file, and one for each build that a name may mean. Empty for a file
    /// that is checked on this machine; an error if the file cannot be read or no table has the toolkit.
    pub(super) programs: Vec<Result<Components, CliError>>,
}

/// A version, ordered by release: `2.8.0rc1` is before `2.8.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReleaseKey {
    numbers: Vec<u64>,
    is_final: bool,
    suffix: Vec<u64>,
}

impl Candidate {
    /// Reads a candidate. `is_for_here` is set if it is checked on this machine, which reads the file itself.
    pub(super) fn read(env: &Env, text: &str, is_for_here: bool) -> Result<Self, CliError> {
        let path = Path::new(text);
        let stated = stated_toolkit(text);
        if path.exists() {
            let programs = if is_for_here { Vec::new() } else { vec![verify::read_components(env, path, &[])] };
            let release = wheel_release(path);
            return Ok(Self { name: text.to_owned(), file: Some(path.to_owned()), stated, release, programs });
        }
        if FILE_ENDINGS.iter().any(|ending| text.ends_with(ending)) {
            return Err(CliError::operational(format_args!("{text}: no such file")));
        }
        let Some(stated) = stated else {
            return Err(CliError::operational(format_args!(
                "{text}: neither a file nor a name that states a toolkit, such as cu126, 12.6, cuda12 or cupy-cuda12x"
            )));
        };
        let mut programs: Vec<Result<Components, CliError>> = stated.programs(text).into_iter().map(Ok).collect();
        if programs.is_empty() {
            let newest = tables::toolkit_rows().last().map(|row| row.version.to_string()).unwrap_or_default();
            programs.push(Err(CliError::operational(format_args!(
                "the tables do not contain this toolkit; the newest one is {newest}"
            ))));
        }
        let (file, release) = (None, ReleaseKey::default());
        Ok(Self { name: text.to_owned(), file, stated: Some(stated), release, programs })
    }
}

impl StatedToolkit {
    /// Returns the oldest toolkit that it may be.
    pub(super) fn oldest(self) -> CudaVersion {
        CudaVersion::new(self.major, self.minor.unwrap_or(0))
    }

    /// Returns a program for each build that this name may mean.
    fn programs(self, name: &str) -> Vec<Components> {
        let rows = tables::toolkit_rows().iter().map(|row| row.version);
        let cudas: Vec<CudaVersion> = rows
            .filter(|cuda| cuda.major == self.major && self.minor.is_none_or(|minor| cuda.minor == minor))
            .collect();
        let (Some(first), Some(last)) = (cudas.first(), cudas.last()) else { return Vec::new() };
        let publisher = publisher_of(name);
        if self.is_of_pytorch && publisher.is_none() {
            let published: Vec<Components> = pytorch_builds(*first, pytorch_minor(name))
                .map(|builds| toolkit_program(&builds.name(), *first, &builds.targets()))
                .collect();
            if !published.is_empty() {
                return published;
            }
        }
        let mut programs = Vec::new();
        for cuda in if first == last { vec![*first] } else { vec![*first, *last] } {
            let mut targets = tables::expand_all(Version::new(cuda.major, cuda.minor, 0));
            // Publishers differ in their PTX, so that a name says nothing about it.
            targets.retain(|target| !matches!(target, Target::Ptx(_)));
            if let Some(publisher) = publisher {
                targets.retain(|target| target.base_arch().cc() >= publisher.oldest);
            }
            programs.push(toolkit_program(publisher.map_or("CUDA", |publisher| publisher.label), cuda, &targets));
        }
        programs
    }
}

/// Returns a program that was built with this toolkit for these targets.
fn toolkit_program(name: &str, cuda: CudaVersion, targets: &[Target]) -> Components {
    let component = Component { name: name.to_owned(), version: cuda.to_string() };
    let mut manifest = Manifest::from_build(component, "", "release", &Policy::default(), &Toolchain::default());
    let toolkit = Version::new(cuda.major, cuda.minor, 0);
    manifest.toolkit = Some(toolkit);
    let mut rows: Vec<Requirement> = vec![cudart_row(cuda, None)];
    rows.extend(declared_rows(targets, tables::ptx_isa(toolkit).unwrap_or_default()));
    manifest.requires = rows;
    Components { manifests: vec![manifest], file: name.to_owned(), ..Components::default() }
}

/// Returns the minor release of PyTorch 2 in a name such as `torch==2.8.0+cu128`.
fn pytorch_minor(name: &str) -> Option<u32> {
    let release = name.strip_prefix("torch")?.trim_start_matches(['=', '-']).strip_prefix("2.")?;
    release.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the toolkit that a name states: `cu126`, `12.6`, `cuda12`, `cupy-cuda12x`, `jax[cuda13]`,
/// `nvidia/cuda:12.6.3-base-ubuntu24.04`, `torch==2.8.0+cu128`.
fn stated_toolkit(name: &str) -> Option<StatedToolkit> {
    if name.starts_with(|c: char| c.is_ascii_digit()) && name.contains('.') {
        let (major, minor) = dotted(name)?;
        let is_only_version = name.chars().all(|c| c.is_ascii_digit() || c == '.');
        if is_only_version {
            return Some(StatedToolkit { major, minor: Some(minor), is_of_pytorch: false });
        }
    }
    let lower = name.to_ascii_lowercase();
    for (at, _) in lower.match_indices("cu") {
        let starts_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        if !starts_word {
            continue;
        }
        let rest = &lower[at + 2..];
        let (is_of_pytorch, rest) = match rest.strip_prefix("da") {
            Some(rest) => (false, rest.trim_start_matches(['-', ':', '_'])),
            None => (true, rest),
        };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let (major, minor) = match (dotted(rest), digits.len()) {
            (Some((major, minor)), _) => (major, Some(minor)),
            (None, 2) => (digits.parse().ok()?, None),
            (None, 3) => (digits[..2].parse().ok()?, Some(digits[2..].parse().ok()?)),
            _ => continue,
        };
        return Some(StatedToolkit { major, minor, is_of_pytorch: is_of_pytorch && minor.is_some() });
    }
    None
}

/// Returns the first two numbers of a text that begins with a version such as `12.6`.
fn dotted(text: &str) -> Option<(u32, u32)> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the version in the name of a wheel.
fn wheel_release(file: &Path) -> ReleaseKey {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some(version) = name.strip_suffix(".whl").and_then(|name| name.split('-').nth(1)) else {
        return ReleaseKey::default();
    };
    let public = version.split('+').next().unwrap_or_default();
    let end = public.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(public.len());
    let (release, suffix) = public.split_at(end);
    let mut numbers = numbers_in(release);
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    ReleaseKey { numbers, is_final: suffix.is_empty() || suffix.starts_with("post"), suffix: numbers_in(suffix) }
}

fn numbers_in(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_toolkits() {
        for (name, wanted) in [
            ("cu118", Some((11, Some(8), true))),
            ("cu128", Some((12, Some(8), true))),
            ("torch==2.8.0+cu128", Some((12, Some(8), true))),
            ("12.6", Some((12, Some(6), false))),
            ("12.6.3", Some((12, Some(6), false))),
            ("cuda12", Some((12, None, false))),
            ("jax[cuda13]", Some((13, None, false))),
            ("jax-cuda12-plugin", Some((12, None, false))),
            ("cupy-cuda12x", Some((12, None, false))),
            ("nvidia-cublas-cu12", Some((12, None, false))),
            ("cuda126", Some((12, Some(6), false))),
            ("nvidia/cuda:12.6.3-base-ubuntu24.04", Some((12, Some(6), false))),
            ("pytorch/pytorch:2.8.0-cuda12.9-cudnn9-runtime", Some((12, Some(9), false))),
            ("llama-b6123-bin-win-cuda-12.4-x64", Some((12, Some(4), false))),
            ("server-cuda13", Some((13, None, false))),
            ("cuda", None),
            ("cudnn9", None),
            ("onnxruntime-gpu", None),
            ("2.8.0-runtime", None),
            ("rescu12", None),
        ] {
            let stated = stated_toolkit(name).map(|one| (one.major, one.minor, one.is_of_pytorch));
            assert_eq!(stated, wanted, "{name}");
        }
    }

    #[test]
    fn wheel_releases_are_ordered() {
        let ordered = ["2.7.1", "2.8.0rc1", "2.8.0", "2.8.0.post1", "2.8.1", "2.10.0", "2.11.0.dev20260101", "2.11"];
        let keys: Vec<ReleaseKey> = ordered
            .iter()
            .map(|version| {
                wheel_release(Path::new(&format!("dist/torch-{version}+cu128-cp312-cp312-linux_x86_64.whl")))
            })
            .collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
    }
}
