//! Files of Python environments that were checked alone.

use std::path::{Path, PathBuf};

use crate::cli::report;

/// The directories in which pip and distributions install packages.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

/// Reports that a file which lacks libraries is in a Python environment, whose packages load libraries of each other.
pub(super) fn suggest_environment(file: &Path) {
    if let Some(dir) = environment_of(file).filter(|_| !file.is_dir()) {
        report::note(&format!(
            "info: {}: was checked alone, and Python packages load libraries of each other; to check them together, name {}",
            file.display(),
            dir.display()
        ));
    }
}

/// Returns the directory of packages that contains a file.
fn environment_of(file: &Path) -> Option<PathBuf> {
    let file = std::path::absolute(file).ok()?;
    let is_packages = |dir: &&Path| dir.file_name().is_some_and(|name| PACKAGES.iter().any(|known| name == *known));
    file.ancestors().skip(1).find(is_packages).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_of_file_is_found() {
        let packages = "/env/lib/python3.12/site-packages";
        for (file, expected) in [
            ("/env/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so", Some(packages)),
            ("/env/lib/python3.12/site-packages/plugin.so", Some(packages)),
            ("/usr/lib/python3/dist-packages/x/y.so", Some("/usr/lib/python3/dist-packages")),
            ("/env/lib/python3.12/site-packages", None),
            ("/opt/app/lib/libtorch_cuda.so", None),
        ] {
            // On Windows, the absolute path has a drive.
            let expected = expected.map(|dir| std::path::absolute(dir).expect("a path"));
            assert_eq!(environment_of(Path::new(file)), expected, "{file}");
        }
    }
}
