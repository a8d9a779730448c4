//! Toolkits and guarded libraries that `.pc` files name: by pkg-config's own rules wherever the program is there (sysroot, cross
//! builds, `${…}`), else as far as the file can be read here.

use std::path::{Path, PathBuf};

use super::places::{Layout, Place, Precedence, below, entries, name_of};
use crate::env::Env;
use crate::files;

/// What the program reads of its environment, without what is for one target alone.
const READ: &[&str] =
    &["PATH", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR", "PKG_CONFIG_ALLOW_CROSS"];

/// What one `.pc` file tells.
#[derive(Debug)]
pub(super) struct Package {
    /// The file's name.
    pub(super) file: String,
    /// The folder above its headers and libraries.
    pub(super) root: Option<PathBuf>,
    pub(super) includes: Vec<PathBuf>,
    pub(super) libraries: Vec<PathBuf>,
}

/// The toolkits that it knows.
pub(super) fn places(env: &Env, system_root: &Path, layout: &Layout) -> Vec<Place> {
    let packages = packages(env, system_root, layout, "cuda").into_iter();
    let places = packages.filter_map(|package| {
        let source = format!("pkg-config ({})", package.file);
        Some(Place { root: package.root?, source, reach: Precedence::Listed })
    });
    places.filter(|place| place.root.is_dir()).collect()
}

/// The packages whose names begin so, in the folders that `PKG_CONFIG_PATH` (or `PKG_CONFIG_LIBDIR`) names and in those
/// where pkg-config looks by itself. What stands below the system's root means a path below it.
pub(super) fn packages(env: &Env, system_root: &Path, layout: &Layout, prefix: &str) -> Vec<Package> {
    let triplets = entries(&below(system_root, "/usr/lib"), "").into_iter();
    let triplets = triplets.filter(|folder| layout.triplets.iter().any(|triplet| folder.ends_with(triplet)));
    let usual = ["/usr/local/lib", "/usr/local/share", "/usr/lib64", "/usr/lib", "/usr/share"];
    let usual = usual.iter().map(|folder| below(system_root, folder)).chain(triplets);
    let usual = usual.map(|folder| (folder.join("pkgconfig"), true));
    let named = ["PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"].into_iter().flat_map(|name| env.paths(name));
    let named = named.map(|folder| (folder, false));
    let files = named
        .chain(usual)
        .flat_map(|(folder, system)| entries(&folder, prefix).into_iter().map(move |file| (file, system)))
        // The program would wait for what is no file.
        .filter(|(file, _)| file.extension().is_some_and(|extension| extension == "pc") && files::bytes(file).is_ok());
    let mut packages: Vec<Package> = Vec::new();
    let mut told: Vec<String> = Vec::new();
    for (file, system) in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Of several files of one name it takes the first.
        if told.contains(&name) {
            continue;
        }
        let asked = (!system || system_root == Path::new("/")) && may_be_asked(env, layout);
        match asked.then(|| by_program(&file, &name)).flatten() {
            Some(package) => {
                told.push(name);
                packages.push(package);
            }
            None => packages.push(by_reading(&file, system.then_some(system_root))),
        }
    }
    packages
}

/// The crate asks the program in this process's own environment: that has to be the one that we look in, and where the
/// target is another one's, the build script's, whose `TARGET` it goes by.
fn may_be_asked(env: &Env, layout: &Layout) -> bool {
    env.matches_process(READ) && (!layout.cross || env.var_os("TARGET").is_some())
}

fn by_program(file: &Path, name: &str) -> Option<Package> {
    // It would announce variables to cargo by itself, on a standard output that may be a report's.
    let told = pkg_config::Config::new().cargo_metadata(false).env_metadata(false).probe(name).ok()?;
    let root = told.include_paths.iter().chain(&told.link_paths).find_map(|folder| above(folder));
    Some(Package { file: name_of(file), root, includes: told.include_paths, libraries: told.link_paths })
}

/// The root that a folder of headers or libraries belongs to: `<root>/include`, `<root>/targets/x86_64-linux/lib/stubs`.
fn above(folder: &Path) -> Option<PathBuf> {
    let parts = ["include", "lib", "lib64"];
    let folder = folder.ancestors().find(|folder| parts.iter().any(|part| folder.ends_with(part)))?;
    let root = folder.parent()?;
    let in_targets = root.parent().filter(|targets| targets.ends_with("targets")).and_then(Path::parent);
    Some(in_targets.unwrap_or(root).to_owned())
}

fn by_reading(file: &Path, system_root: Option<&Path>) -> Package {
    let text = files::text(file).unwrap_or_default();
    let path = |key: &str| {
        let value = value(&text, key)?;
        Some(system_root.map_or_else(|| PathBuf::from(&value), |root| below(root, &value)))
    };
    Package {
        file: name_of(file),
        root: path("cudaroot=").or_else(|| path("prefix=")),
        includes: path("includedir=").into_iter().collect(),
        libraries: path("libdir=").into_iter().collect(),
    }
}

/// The value of a line of a `.pc` file: `Version: 12.9`, `cudaroot=/usr/local/cuda-12.9`; `None` where it refers to
/// other variables.
pub(super) fn value(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?.trim();
    (!value.is_empty() && !value.contains("${")).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_folders() {
        for (folder, root) in [
            ("/usr/include", Some("/usr")),
            ("/usr/local/cuda-12.9/targets/x86_64-linux/include", Some("/usr/local/cuda-12.9")),
            ("/usr/local/cuda-12.9/targets/x86_64-linux/lib/stubs", Some("/usr/local/cuda-12.9")),
            ("/opt/cuda/lib64", Some("/opt/cuda")),
            ("/usr/include/x86_64-linux-gnu", Some("/usr")),
            ("/opt/elsewhere", None),
        ] {
            assert_eq!(above(Path::new(folder)), root.map(PathBuf::from), "{folder}");
        }
    }

    #[test]
    fn lines_that_can_be_read() {
        let pc = "cudaroot=/usr/local/cuda-12.9\nlibdir=${cudaroot}/lib\nVersion: 12.9\n";
        assert_eq!(value(pc, "cudaroot="), Some("/usr/local/cuda-12.9".to_owned()));
        assert_eq!(value(pc, "Version:"), Some("12.9".to_owned()));
        assert_eq!(value(pc, "libdir="), None);
    }
}
