//! Finds toolkits and cuDNN in `.pc` files: with pkg-config if it is installed (sysroot, cross builds, `${…}`),
//! otherwise by parsing simple files.

use std::path::{Path, PathBuf};

use super::places::{Layout, Precedence, ToolkitPlace, entries_with_prefix, name_of, path_below};
use crate::sys::env::Env;
use crate::sys::files;

/// The variables that pkg-config reads, without those for a single target.
const READ: &[&str] =
    &["PATH", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR", "PKG_CONFIG_ALLOW_CROSS"];

/// The facts in one `.pc` file.
#[derive(Debug)]
pub(super) struct PkgConfigPackage {
    /// The file name.
    pub(super) file: String,
    /// The parent directory of its headers and libraries.
    pub(super) root: Option<PathBuf>,
    pub(super) includes: Vec<PathBuf>,
    pub(super) libraries: Vec<PathBuf>,
}

/// Returns the toolkits in `.pc` files.
pub(super) fn toolkit_places(env: &Env, system_root: &Path, layout: &Layout) -> Vec<ToolkitPlace> {
    let mut places = Vec::new();
    for package in find_packages(env, system_root, layout, "cuda") {
        if let Some(root) = package.root.filter(|root| root.is_dir()) {
            let source = format!("pkg-config ({})", package.file);
            places.push(ToolkitPlace { root, source, reach: Precedence::Listed });
        }
    }
    places
}

/// Finds the packages with this prefix in the directories that `PKG_CONFIG_PATH` (or `PKG_CONFIG_LIBDIR`) lists and in
/// the default directories of pkg-config. Paths in files below the system root are relative to that root.
pub(super) fn find_packages(env: &Env, system_root: &Path, layout: &Layout, prefix: &str) -> Vec<PkgConfigPackage> {
    let mut dirs: Vec<(PathBuf, bool)> = Vec::new();
    for name in &["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        for dir in env.path_list(name) {
            dirs.push((dir, false));
        }
    }
    for usual in &["/usr/local/lib", "/usr/local/share", "/usr/lib64", "/usr/lib", "/usr/share"] {
        dirs.push((path_below(system_root, usual).join("pkgconfig"), true));
    }
    for dir in entries_with_prefix(&path_below(system_root, "/usr/lib"), "") {
        if layout.triplets.iter().any(|triplet| dir.ends_with(triplet)) {
            dirs.push((dir.join("pkgconfig"), true));
        }
    }
    let mut files: Vec<(PathBuf, bool)> = Vec::new();
    for (dir, system) in dirs {
        for file in entries_with_prefix(&dir, prefix) {
            // pkg-config would block on something that is not a regular file.
            if file.extension().is_some_and(|extension| extension == "pc") && files::read_bytes(&file).is_ok() {
                files.push((file, system));
            }
        }
    }
    let mut packages: Vec<PkgConfigPackage> = Vec::new();
    let mut flags: Vec<String> = Vec::new();
    for (file, system) in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // If several files have the same name, pkg-config uses the first one.
        if flags.contains(&name) {
            continue;
        }
        let asked = (!system || system_root == Path::new("/")) && may_be_asked(env, layout);
        match asked.then(|| query_pkg_config(&file, &name)).flatten() {
            Some(package) => {
                flags.push(name);
                packages.push(package);
            }
            None => packages.push(read_pc_file(&file, system.then_some(system_root))),
        }
    }
    packages
}

/// Returns true if pkg-config may be run. The crate runs it in the environment of this process, so that environment
/// must be the inspected one. For another target, this must be a build script, because the crate reads `TARGET`.
fn may_be_asked(env: &Env, layout: &Layout) -> bool {
    env.matches_process(READ) && (!layout.cross || env.var_os("TARGET").is_some())
}

fn query_pkg_config(file: &Path, name: &str) -> Option<PkgConfigPackage> {
    // By default, the crate prints cargo directives to the standard output, which may be a report.
    let flags = pkg_config::Config::new().cargo_metadata(false).env_metadata(false).probe(name).ok()?;
    let root = flags.include_paths.iter().chain(&flags.link_paths).find_map(|dir| installation_root(dir));
    Some(PkgConfigPackage { file: name_of(file), root, includes: flags.include_paths, libraries: flags.link_paths })
}

/// Returns the root of a directory with headers or libraries: `<root>/include`,
/// `<root>/targets/x86_64-linux/lib/stubs`.
fn installation_root(dir: &Path) -> Option<PathBuf> {
    let parts = ["include", "lib", "lib64"];
    let root = dir.ancestors().find(|dir| parts.iter().any(|part| dir.ends_with(part)))?.parent()?;
    Some(root.parent().filter(|targets| targets.ends_with("targets")).and_then(Path::parent).unwrap_or(root).to_owned())
}

fn read_pc_file(file: &Path, system_root: Option<&Path>) -> PkgConfigPackage {
    let text = files::read_text(file).unwrap_or_default();
    let [root, prefix, includes, libraries] = ["cudaroot=", "prefix=", "includedir=", "libdir="].map(|key| {
        let value = field_value(&text, key)?;
        Some(system_root.map_or_else(|| PathBuf::from(&value), |root| path_below(root, &value)))
    });
    PkgConfigPackage {
        file: name_of(file),
        root: root.or(prefix),
        includes: includes.into_iter().collect::<Vec<_>>(),
        libraries: libraries.into_iter().collect::<Vec<_>>(),
    }
}

/// Returns the value of a line in a `.pc` file: `Version: 12.9`, `cudaroot=/usr/local/cuda-12.9`; `None` if it refers
/// to other variables.
pub(super) fn field_value(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?.trim();
    (!value.is_empty() && !value.contains("${")).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_derived_from_directories() {
        for (dir, root) in [
            ("/usr/include", Some("/usr")),
            ("/usr/local/cuda-12.9/targets/x86_64-linux/include", Some("/usr/local/cuda-12.9")),
            ("/usr/local/cuda-12.9/targets/x86_64-linux/lib/stubs", Some("/usr/local/cuda-12.9")),
            ("/opt/cuda/lib64", Some("/opt/cuda")),
            ("/usr/include/x86_64-linux-gnu", Some("/usr")),
            ("/opt/elsewhere", None),
        ] {
            assert_eq!(installation_root(Path::new(dir)), root.map(PathBuf::from), "{dir}");
        }
    }

    #[test]
    fn pc_file_lines_are_parsed() {
        let pc = "cudaroot=/usr/local/cuda-12.9\nlibdir=${cudaroot}/lib\nVersion: 12.9\n";
        assert_eq!(field_value(pc, "cudaroot="), Some("/usr/local/cuda-12.9".to_owned()));
        assert_eq!(field_value(pc, "Version:"), Some("12.9".to_owned()));
        assert_eq!(field_value(pc, "libdir="), None);
    }
}
