//! The package that installed a file, found by the metadata next to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::conflicts::{Unfulfilled, unfulfilled_requirements};
use super::requirement::normalize_name;
use super::{ArtifactPackage, all_of};
use crate::binary::examined::NotExamined;
use crate::binary::file::TargetOs;
use crate::binary::mapped_file::OpenFiles;
use crate::host::dry_run::place_in_environment;
use crate::host::library_version::file_version;
use cudaguard::internal::files;
use cudaguard::internal::finding::Finding;

/// Checks the requirements of the packages that installed these files, and of packages of the same release that require them (the
/// packages of JAX), against the other installed packages.
pub(crate) fn check_packages(files: &[PathBuf]) -> (Vec<Finding>, Vec<NotExamined>) {
    let mut environments: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for file in files {
        if let Some((dir, member)) = place_in_environment(file) {
            environments.entry(dir).or_default().push(member);
        }
    }
    let all = environments.into_iter().flat_map(|(dir, members)| unfulfilled_in(&dir, &members));
    let (findings, unknown): (_, Vec<_>) = all.map(|one| (one.finding, one.unknown)).unzip();
    (findings, unknown.into_iter().flatten().collect())
}

fn unfulfilled_in(dir: &Path, members: &[String]) -> Vec<Unfulfilled> {
    let mut packages = installed_in(dir);
    let files = OpenFiles::default();
    let os = if cfg!(windows) { TargetOs::Windows } else { TargetOs::Linux };
    for package in &mut packages {
        package.set_platform(Some(os), std::env::consts::ARCH, dir);
        package.find_replaced_cudnn(|member| file_version(&files, &dir.join(member)));
    }
    let owners: Vec<&ArtifactPackage> =
        packages.iter().filter(|package| members.iter().any(|member| package.files.contains(member))).collect();
    let is_judged = |package: &&ArtifactPackage| {
        owners.iter().any(|owner| {
            let requires_it = || package.names_of_others().contains(&normalize_name(&owner.name));
            package.name == owner.name || package.version == owner.version && requires_it()
        })
    };
    unfulfilled_requirements(&packages, packages.iter().filter(is_judged))
}

/// Returns the packages whose metadata is in this directory.
fn installed_in(dir: &Path) -> Vec<ArtifactPackage> {
    let names = fs::read_dir(dir).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let members = names
        .filter(|name| name.ends_with(".dist-info"))
        .flat_map(|name| ["METADATA", "RECORD"].map(|file| format!("{name}/{file}")));
    let read = |member: String| {
        let text = files::read_text(&dir.join(&member)).ok()?;
        Some((member, text))
    };
    all_of(&members.filter_map(read).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_of_a_file_is_found() {
        let scratch = tempfile::tempdir().unwrap();
        let site = scratch.path().join("site");
        let install = |name: &str, version: &str, requires: &str, file: &str| {
            let info = site.join(format!("{name}-{version}.dist-info"));
            fs::create_dir_all(&info).unwrap();
            let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\n");
            fs::write(info.join("METADATA"), metadata).unwrap();
            fs::write(info.join("RECORD"), format!("{file},sha256=1,2\n")).unwrap();
            fs::create_dir_all(site.join(file).parent().unwrap()).unwrap();
            fs::write(site.join(file), "").unwrap();
        };
        let cudnn = "Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.1";
        install("jax-cuda12-pjrt", "0.4.38", "", "jax_plugins/xla_cuda12/xla.so");
        install("jax-cuda12-plugin", "0.4.38", &format!("{cudnn}\nRequires-Dist: jax-cuda12-pjrt==0.4.38"), "jax/a.so");
        install("torch", "2.6.0", "Requires-Dist: nvidia-cudnn-cu12==9.0.0.312", "torch/lib/b.so");
        install("vision", "1.0", &format!("{cudnn}\nRequires-Dist: torch==2.6.0"), "vision/c.so");
        install("nvidia-cudnn-cu12", "9.0.0.312", "", "nvidia/cudnn/lib/libcudnn.so.9");
        for (file, expected) in [
            ("jax_plugins/xla_cuda12/xla.so", 1),
            ("jax/a.so", 1),
            ("torch/lib/b.so", 0),
            ("vision/c.so", 1),
            ("vision/another.so", 0),
        ] {
            let (findings, unknown) = check_packages(&[site.join(file)]);
            assert_eq!((findings.len(), unknown.len()), (expected, expected), "{file}");
        }
        assert_eq!(check_packages(&["/absent".into()]), (Vec::new(), Vec::new()));
    }
}
