//! NVIDIA libraries that a file names in its constants and may open by name.

use std::collections::BTreeSet;

use crate::binary::elf::Elf;
use crate::binary::file::{Binary, constants_after};
use crate::binary::kernels::Kernels;
use crate::binary::pe::Pe;
use crate::binary::searcher::Searcher;
use crate::knowledge::vendor::{self, Library, is_of_nvidia};
use cudaguard::internal::manifest::Linkage;

/// What precedes a name in the constants of a guard: a mark in the shim, or a word of a message.
const BEFORE_NAMES_OF_GUARD: [&str; 2] = ["guard:", " "];
/// Names without a version that a guard contains, too.
const NAMES_OF_GUARD: [&str; 2] = ["libcudart.so", "libcudnn.so"];

/// Returns the names of NVIDIA libraries in the constants of a file that can open libraries by name. Names of its guard do not count,
/// and neither does a file whose note lists what known crates open. A file that puts the name together when it runs, as cudarc does,
/// names functions of the driver instead.
pub(crate) fn opened_names(binary: &Binary) -> Vec<String> {
    let is_guarded = !binary.notes.is_empty();
    if is_guarded && binary.manifests().any(|note| note.is_ok_and(|note| !note.manifest.opens.is_empty())) {
        return Vec::new();
    }
    if let Ok(image) = Pe::parse(binary.data()) {
        return named_dlls(&image, binary.data());
    }
    let Ok(elf) = Elf::parse(binary.data()) else { return Vec::new() };
    let can_open = !elf.is_dynamic() || elf.undefined_symbols().any(|name| name == "dlopen" || name == "dlmopen");
    if !can_open {
        return Vec::new();
    }
    let named = named_libraries(binary.data(), is_guarded);
    if named.is_empty() && binary.names_functions() == Ok(true) { vec!["libcuda.so".to_owned()] } else { named }
}

fn named_libraries(data: &[u8], is_guarded: bool) -> Vec<String> {
    // A linker or strip may have removed the note, but not the guard.
    let is_guarded = is_guarded || !constants_after(data, "guard:libcuda.so").is_empty();
    let mut found = BTreeSet::new();
    let stems: Vec<&str> =
        opened_by_programs().flat_map(|library| library.stems).filter(|stem| !stem.ends_with('*')).copied().collect();
    // Most files contain none of them.
    if Searcher::new(&stems).find(data, 0).is_none() {
        return Vec::new();
    }
    for name in stems.iter().map(|stem| format!("{stem}.so")) {
        let mut of_guard = Vec::new();
        for before in BEFORE_NAMES_OF_GUARD.iter().filter(|_| is_guarded) {
            of_guard.extend(constants_after(data, &format!("{before}{name}")));
        }
        for behind in constants_after(data, &name) {
            if of_guard.iter().any(|own| std::ptr::eq(*own, behind)) {
                continue;
            }
            let version = behind.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.'));
            let version: String = version.map(|byte| char::from(*byte)).collect();
            found.insert(format!("{name}{}", version.trim_end_matches('.')));
        }
    }
    found.retain(|name| !is_guarded || !NAMES_OF_GUARD.contains(&name.as_str()));
    found.into_iter().collect()
}

fn opened_by_programs() -> impl Iterator<Item = &'static Library> {
    vendor::CATALOGUE.into_iter().filter(|library| library.is_opened)
}

/// Returns the names of NVIDIA's DLLs in the constants of a file that can load DLLs by name, as bytes or as UTF-16.
fn named_dlls(image: &Pe<'_>, data: &[u8]) -> Vec<String> {
    if !image.imports().iter().flat_map(|dll| &dll.functions).any(|function| function.starts_with("LoadLibrary")) {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    for start in opened_by_programs().flat_map(Library::dll_starts) {
        let wide: String = start.chars().flat_map(|letter| [letter, '\0']).collect();
        let of_guard = constants_after(data, &format!("guard:{start}"));
        let is_own = |behind: &&[u8]| !of_guard.iter().any(|own| std::ptr::eq(*own, *behind));
        let narrow = constants_after(data, &start).into_iter().filter(is_own).map(|behind| text_until_nul(behind, 1));
        let all = narrow.chain(constants_after(data, &wide).into_iter().map(|behind| text_until_nul(behind, 2)));
        found.extend(all.map(|rest| format!("{start}{rest}")).filter(|name| name.ends_with(".dll")));
    }
    found.into_iter().collect()
}

/// Returns the start of a constant whose letters are `width` bytes apart.
fn text_until_nul(constant: &[u8], width: usize) -> String {
    const LONGEST: usize = 32;
    let letters = constant.iter().step_by(width).take(LONGEST);
    letters.take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}

/// Returns these names for a file that needs no library of NVIDIA's and is none: what it requires of the libraries is unknown.
pub(crate) fn opened_without_requirement(binary: &Binary) -> Vec<String> {
    let file = binary.path.file_name().unwrap_or_default().to_string_lossy();
    let is_known = binary.soname.as_deref().is_some_and(is_of_nvidia)
        || is_of_nvidia(&file)
        || binary.imported().any(|name| is_of_nvidia(name))
        || binary.kernels().is_ok_and(Kernels::has_kernels);
    if is_known {
        return Vec::new();
    }
    let mut all = opened_names(binary);
    // Tools that open only NVML run no GPU code.
    all.retain(|name| !vendor::plain_name(name).starts_with("libnvidia-ml.so"));
    // The parts of a name may be joined when the program runs (XLA).
    let opened = vendor::DESCRIBED.into_iter().filter(|library| binary.linkage(library) == Linkage::Dlopened);
    for library in opened.filter(|_| binary.notes.is_empty()) {
        if !all.iter().any(|name| library.is_named(name)) {
            all.push(library.link_name());
        }
    }
    all
}

/// Describes the libraries of CUDA that a file without any needed one uses.
pub(crate) fn describe_no_needed_library(binary: &Binary) -> String {
    let named = opened_names(binary);
    if named.is_empty() { "none needed".to_owned() } else { format!("none needed; may open {}", named.join(", ")) }
}
