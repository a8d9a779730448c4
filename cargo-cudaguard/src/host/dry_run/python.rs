//! The Python environment that contains a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf, absolute};

use super::absent_libraries;
use crate::binary::file::Binary;
use crate::binary::loader::LoadGraph;
use crate::family::is_of_nvidia;

/// How many directories above a file may be the one in which its package was installed.
const LEVELS: usize = 8;

/// Returns the directory in which the packages of a file were installed, by their metadata.
fn environment_of(file: &Path) -> Option<PathBuf> {
    // The path as it is: the target of a link is in the cache of the installer.
    let file = absolute(file).ok()?;
    let is_environment = |dir: &&Path| {
        let mut entries = dir.read_dir().into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().ends_with(".dist-info"))
    };
    file.ancestors().skip(1).take(LEVELS).find(is_environment).map(Path::to_owned)
}

/// Returns the environment of a file, and the name of the file in it, with slashes on Windows, too.
pub(crate) fn place_in_environment(file: &Path) -> Option<(PathBuf, String)> {
    let dir = environment_of(file)?;
    let file = absolute(file).ok()?;
    let name = file.strip_prefix(&dir).ok()?.iter().map(OsStr::to_str).collect::<Option<Vec<_>>>()?.join("/");
    Some((dir, name))
}

/// Returns true if the search path of a file in a Python environment contains only directories of the environment, which contain
/// the same files on each machine.
pub(crate) fn is_searched_inside(file: &Binary) -> bool {
    place_in_environment(&file.path).is_some_and(|(_, name)| absent_libraries::is_searched_inside(&name, file))
}

/// Loads the libraries of NVIDIA's that the loader does not find and that packages of the environment contain. Python code loads
/// them before the modules that need them.
pub(super) fn load_from_packages(graph: &mut LoadGraph) {
    let is_wanted = |name: &str| is_of_nvidia(name) && !name.starts_with("libcuda.so") && !name.contains('/');
    // Nothing loads libraries for a program.
    if graph.interpreter.is_some() || !graph.unresolved_requests().any(|request| is_wanted(&request.name)) {
        return;
    }
    let Some(site) = environment_of(&graph.objects[0].path) else { return };
    let dirs_in = |dir: PathBuf| dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let dirs: Vec<PathBuf> = dirs_in(site.join("nvidia")).chain(dirs_in(site)).collect();
    graph.load_absent(|name| {
        let places =
            dirs.iter().filter(|_| is_wanted(name)).flat_map(|dir| [dir.join("lib").join(name), dir.join(name)]);
        places.into_iter().find(|path| path.is_file())
    });
}
