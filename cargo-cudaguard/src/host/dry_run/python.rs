//! The Python environment that contains a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf, absolute};

use super::absent_libraries;
use crate::binary::file::Binary;
use crate::binary::loader::LoadGraph;
use crate::knowledge::vendor::{is_libcuda, is_of_nvidia};

/// How many directories above a file may be the one in which its package was installed.
const LEVELS: usize = 8;

/// Returns the directory in which the packages of a file were installed, by their metadata.
fn environment_of(file: &Path) -> Option<PathBuf> {
    // The path as it is: the target of a link is in the cache of the installer.
    let file = absolute(file).ok()?;
    let mut dirs = file.ancestors().skip(1).take(LEVELS);
    let environment = dirs.find(|dir| {
        let mut entries = dir.read_dir().into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().ends_with(".dist-info"))
    });
    environment.map(Path::to_owned)
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
    // Nothing loads libraries for a program.
    if graph.interpreter.is_some() || !graph.unresolved_requests().any(|request| may_be_of_package(&request.name)) {
        return;
    }
    let Some(site) = environment_of(&graph.objects[0].path) else { return };
    let entries =
        [site.join("nvidia"), site].into_iter().flat_map(|dir| dir.read_dir().into_iter().flatten().flatten());
    let dirs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    graph.load_absent(|name| {
        let dirs = dirs.iter().filter(|_| may_be_of_package(name));
        dirs.flat_map(|dir| [dir.join("lib").join(name), dir.join(name)]).find(|path| path.is_file())
    });
}

fn may_be_of_package(name: &str) -> bool {
    is_of_nvidia(name) && !is_libcuda(name) && !name.contains('/')
}
