//! Libraries of NVIDIA that a file opens by name when it runs, as far as the file shows them.

use crate::binary::elf::Elf;
use crate::knowledge::vendor;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};

use crate::binary::file::texts_starting_with;
use crate::binary::pe::Pe;

/// A library that a file opens by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenedLibrary {
    /// The file name before `.so`: `libcublas`.
    pub(crate) stem: String,
    /// The names that it may try. Empty if only the directory is known.
    pub(crate) names: Vec<String>,
    /// The entries of the search path that name its package.
    pub(crate) dirs: Vec<String>,
}

impl OpenedLibrary {
    /// Returns true if the search path of the file leads to the package that contains it.
    pub(crate) fn comes_with_program(&self) -> bool {
        self.dirs.iter().any(|dir| dir.contains("ORIGIN"))
    }

    /// Returns true if a file of this name is the library.
    pub(crate) fn is_named(&self, file: &str) -> bool {
        let rest = file.strip_prefix(&self.stem).and_then(|rest| rest.strip_prefix(".so"));
        if self.names.is_empty() {
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        } else {
            self.names.iter().any(|name| name == file)
        }
    }

    /// Returns the name of the library, or those that the file may try: `libcublas.so`.
    pub(crate) fn describe(&self) -> String {
        if self.names.is_empty() { format!("{}.so", self.stem) } else { self.names.join(" or ") }
    }
}

/// Returns the libraries that a file opens by name. NVIDIA's own libraries open others only for some of their functions, so they
/// are not included, nor are parts of the driver.
pub(crate) fn opened_libraries(data: &[u8]) -> Vec<OpenedLibrary> {
    if let Ok(image) = Pe::parse(data) {
        return opened_dlls(&image, data);
    }
    let Ok(elf) = Elf::parse(data) else { return Vec::new() };
    if elf.soname().is_some_and(vendor::is_beside_driver) || !elf.is_dynamic() {
        return Vec::new();
    }
    let needed: Vec<String> =
        elf.dynamic_texts(DT_NEEDED).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let needed_stems: Vec<String> =
        needed.iter().map(|name| vendor::stem_of(&vendor::plain_name(name)).to_owned()).collect();
    let mut found: Vec<OpenedLibrary> = Vec::new();
    // A file that links some of NVIDIA's libraries has search paths for these.
    let links = needed.iter().any(|name| vendor::is_beside_driver(name));
    if !links && elf.sections().any(|section| section.name == ".nv_fatbin") {
        for dir in elf.dynamic_text(DT_RUNPATH).or_else(|| elf.dynamic_text(DT_RPATH)).unwrap_or_default().split(':') {
            for stem in libraries_of_dir(dir).into_iter().map(|stem| format!("lib{stem}")) {
                if needed_stems.contains(&stem) {
                    continue;
                }
                match found.iter_mut().find(|known| known.stem == stem) {
                    Some(known) => known.dirs.push(dir.to_owned()),
                    None => found.push(OpenedLibrary { stem, names: Vec::new(), dirs: vec![dir.to_owned()] }),
                }
            }
        }
    }
    let opens = elf.undefined_symbols().any(|name| name == "dlopen" || name == "dlmopen");
    for name in opens.then(|| texts_starting_with(data, "libcu")).into_iter().flatten() {
        let Some((stem, _)) = name.split_once(".so.") else { continue };
        let is_known = vendor::nvidia_library(stem).is_some_and(|library| library.is_essential);
        if !is_known || vendor::major_of(&name).is_none() || needed_stems.iter().any(|needed| needed == stem) {
            continue;
        }
        match found.iter_mut().find(|known| known.stem == stem) {
            Some(known) => known.names.push(name),
            None => found.push(OpenedLibrary { stem: stem.to_owned(), names: vec![name], dirs: Vec::new() }),
        }
    }
    found
}

/// Returns the DLLs that a file for Windows opens by name. NVIDIA's own DLLs are not included.
fn opened_dlls(image: &Pe<'_>, data: &[u8]) -> Vec<OpenedLibrary> {
    let imports = image.imports();
    let opens = imports.iter().flat_map(|dll| &dll.functions).any(|function| function.starts_with("LoadLibrary"));
    if !opens || image.dll_name().is_some_and(vendor::is_beside_driver) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for library in vendor::CATALOGUE.iter().filter(|library| library.is_essential) {
        let starts = library.dll_starts();
        let mut names: Vec<String> = starts.flat_map(|start| texts_starting_with(data, &start)).collect();
        names.retain(|name| name.ends_with(".dll") && vendor::major_of(name).is_some());
        names.retain(|name| !imports.iter().any(|dll| dll.name.eq_ignore_ascii_case(name)));
        if !names.is_empty() {
            found.push(OpenedLibrary { stem: library.stem().to_owned(), names, dirs: Vec::new() });
        }
    }
    found
}

/// Returns the libraries of the package of NVIDIA that this entry of a search path names: `$ORIGIN/../nvidia/cublas/lib`.
fn libraries_of_dir(dir: &str) -> Vec<&'static str> {
    let package = dir.trim_end_matches('/').strip_suffix("/lib").and_then(|dir| dir.rsplit_once("nvidia/"));
    package.map(|(_, package)| vendor::libraries_of_package(&package.replace('_', "-"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_in_search_paths_are_known() {
        for (dir, expected) in [
            ("$ORIGIN/../../nvidia/cublas/lib", &["cublas", "cublasLt"][..]),
            ("$ORIGIN/../nvidia/cuda_runtime/lib/", &["cudart"]),
            ("${ORIGIN}/../nvidia/cudnn/lib", &["cudnn"]),
            ("$ORIGIN/../nvidia/unknown/lib", &[]),
            ("$ORIGIN/../tensorrt", &[]),
            ("/usr/lib", &[]),
        ] {
            assert_eq!(libraries_of_dir(dir), expected, "{dir}");
        }
        let opened = OpenedLibrary { stem: "libcublas".to_owned(), names: Vec::new(), dirs: vec!["x".to_owned()] };
        assert!(opened.is_named("libcublas.so.12") && opened.is_named("libcublas.so"));
        assert!(!opened.is_named("libcublasLt.so.12") && !opened.is_named("libcublas.so12"));
    }
}
