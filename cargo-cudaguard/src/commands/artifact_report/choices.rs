//! Files of which a program uses the one that fits: builds of one library for several CUDA releases, and kernel files for several GPUs.

use std::collections::{BTreeMap, BTreeSet};

use super::member::file_name;
use super::{ArtifactMember, ArtifactReport};
use crate::binary::file::BinaryKind;

/// The directories with files that only the developers of a package use, and with sources that a package compiles on the machine.
const OF_DEVELOPERS: [&str; 6] = ["csrc", "test", "tests", "example", "examples", "samples"];
/// The words before the release of a toolkit in names, such as `cuda_v12` and `cu118`.
const TOOLKIT: [&str; 2] = ["cuda", "cu"];
/// The words before a compute capability in the names of kernel files.
const ARCH: [&str; 4] = ["compute", "sm", "cuda", "cu"];

/// Files of which one suffices.
pub(super) struct FileChoice<'a> {
    pub(super) variants: Vec<FileVariant<'a>>,
}

/// One of the files.
pub(super) struct FileVariant<'a> {
    pub(super) name: &'a str,
    /// Kernel files with different stems contain different kernels. Empty for a library.
    pub(super) stem: String,
    /// The file, and the members that are loaded for it alone.
    pub(super) members: BTreeSet<&'a str>,
}

impl FileChoice<'_> {
    pub(super) fn is_of_libraries(&self) -> bool {
        self.variants.iter().all(|variant| variant.stem.is_empty())
    }
}

impl ArtifactReport {
    /// Returns the files of which one suffices: libraries of one name in sibling directories, or of one name without the release of
    /// their toolkit; kernel files in one directory.
    pub(super) fn file_choices(&self) -> Vec<FileChoice<'_>> {
        let loaded = self.loaded_names();
        let mut groups: BTreeMap<(bool, String), Vec<&str>> = BTreeMap::new();
        for part in self.judged_parts().filter(|part| !part.is_of_nvidia() && !part.is_driver()) {
            let is_loose = part.binary.kind == BinaryKind::GpuCode;
            let is_always_loaded = loaded.iter().any(|names| names[1..].contains(&part.name.as_str()));
            if !part.components.manifests.is_empty() && !is_always_loaded {
                groups.entry((is_loose, group_name(&part.name, is_loose))).or_default().push(&part.name);
            }
        }
        groups.retain(|_, names| names.len() > 1);
        groups.into_iter().map(|((is_loose, _), names)| choice_of(&names, is_loose, &loaded)).collect()
    }

    /// Returns the groups of members of which one suffices.
    pub(crate) fn variant_groups(&self) -> Vec<Vec<&ArtifactMember>> {
        let mut groups = Vec::new();
        for choice in self.file_choices() {
            let mut of_stems: BTreeMap<&str, Vec<&ArtifactMember>> = BTreeMap::new();
            for variant in &choice.variants {
                let part = self.parts.iter().find(|part| part.name == variant.name);
                of_stems.entry(&variant.stem).or_default().extend(part);
            }
            groups.extend(of_stems.into_values().filter(|group| group.len() > 1));
        }
        groups
    }

    /// Returns the names of the members that run together, the first is the root.
    fn loaded_names(&self) -> Vec<Vec<&str>> {
        self.judged_closures().map(|one| one.members().map(|at| self.loaders[at].name.as_str()).collect()).collect()
    }

    /// Returns the names of files in directories of tests and examples that no other file loads.
    pub(crate) fn files_of_developers(&self) -> BTreeSet<&str> {
        let is_of_developers = |name: &str| {
            let package = self.packages.iter().find(|package| package.lists_member(name));
            let inside = &name[package.map_or(0, |package| package.directory().len().min(name.len()))..];
            inside.rsplit('/').skip(1).any(|dir| OF_DEVELOPERS.contains(&dir))
        };
        let loaded = self.loaded_names();
        let others = loaded.iter().filter(|names| names.first().is_some_and(|root| !is_of_developers(root)));
        let used: BTreeSet<&str> = others.flatten().copied().collect();
        let names = self.judged_parts().map(|part| part.name.as_str());
        names.filter(|name| is_of_developers(name) && !used.contains(name) && !self.is_file()).collect()
    }
}

/// Returns a name that the files of a group have in common.
fn group_name(name: &str, is_loose: bool) -> String {
    let (dir, file) = name.split_at(name.len() - file_name(name).len());
    if is_loose {
        return without_releases(dir, &ARCH);
    }
    let general = without_releases(name, &TOOLKIT);
    // A process loads one library of a name.
    let is_library = file.starts_with("lib") && file.contains(".so") || file.to_ascii_lowercase().ends_with(".dll");
    match dir.trim_end_matches('/').rfind('/') {
        Some(at) if is_library && general == name => format!("{}/*/{file}", &dir[..at]),
        None if is_library && general == name && !dir.is_empty() => format!("*/{file}"),
        _ => general,
    }
}

fn choice_of<'a>(names: &[&'a str], is_loose: bool, loaded: &[Vec<&'a str>]) -> FileChoice<'a> {
    let is_variant = |names_of_one: &&Vec<&str>| names_of_one.first().is_some_and(|root| names.contains(root));
    let of_others: BTreeSet<&str> = loaded.iter().filter(|one| !is_variant(one)).flatten().copied().collect();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for member in loaded.iter().filter(is_variant).flatten() {
        *times.entry(member).or_default() += 1;
    }
    let mut variants = Vec::new();
    for name in names {
        let own = loaded.iter().filter(|one| one.first() == Some(name)).flatten().copied();
        // What several variants or other files load is always needed.
        let alone = own.filter(|member| times.get(member) == Some(&1) && !of_others.contains(member));
        let members = alone.chain([*name]).collect();
        let stem = without_releases(file_name(name), &ARCH);
        let stem = if is_loose { stem.split('.').next().unwrap_or_default().to_owned() } else { String::new() };
        variants.push(FileVariant { name, stem, members });
    }
    FileChoice { variants }
}

/// Removes the release after each of these words, with the word: `lib_cuda118.so` is `lib.so`.
fn without_releases(name: &str, words: &[&str]) -> String {
    let mut general = String::new();
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        let is_start = !general.ends_with(|last: char| last.is_ascii_alphanumeric());
        let release = words.iter().filter(|_| is_start).find_map(|word| after_release(rest.strip_prefix(word)?));
        rest = if let Some(after) = release {
            general.truncate(general.trim_end_matches(['_', '-', '.']).len());
            after
        } else {
            general.push(next);
            &rest[next.len_utf8()..]
        };
    }
    general
}

/// Returns the text after a release such as `12`, `_v12.4` or `90a`. `None` if it does not begin with one.
fn after_release(text: &str) -> Option<&str> {
    let number = text.trim_start_matches(['_', '-', '.']).trim_start_matches('v');
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let digits = |text: &str| text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(number);
    while let Some(minor) = number[end..].strip_prefix('.').filter(|rest| digits(rest) > 0) {
        end += 1 + digits(minor);
    }
    let rest = &number[end..];
    let rest = rest.strip_prefix(['a', 'f', 'x']).unwrap_or(rest);
    (!rest.starts_with(|next: char| next.is_ascii_alphanumeric())).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_one_group_name() {
        for (one, other, is_loose, expected) in [
            ("lib/cuda_v12/libbackend.so", "lib/cuda_v13/libbackend.so", false, true),
            ("lib/fast/libbackend.so", "lib/other/libbackend.so", false, true),
            ("fast/libbackend.so", "other/libbackend.so", false, true),
            ("b/libbackend_cuda118.so", "b/libbackend_cuda130.so", false, true),
            ("b/libbackend.cu12.so", "b/libbackend-cuda13.1.so", false, true),
            ("p/cu12/_ext.abi3.so", "p/cu13/_ext.abi3.so", false, true),
            ("p/_ext_cu126.cpython-312.so", "p/_ext_cu130.cpython-312.so", false, true),
            ("p/one/_ext.abi3.so", "p/two/_ext.abi3.so", false, false),
            ("p/libone.so", "p/libtwo.so", false, false),
            ("a/lib/libbackend.so", "b/lib/libbackend.so", false, false),
            ("p/libcublas12.so", "p/libcublas13.so", false, false),
            ("k/scale_sm_75.cubin", "k/scale_sm_90a.cubin", true, true),
            ("k/sm75/scale.cubin", "k/sm90/scale.cubin", true, true),
            ("k/scale.cubin", "other/scale.cubin", true, false),
        ] {
            assert_eq!(group_name(one, is_loose) == group_name(other, is_loose), expected, "{one} {other}");
        }
        for (name, stem) in [("scale_sm_75.cubin", "scale"), ("scale.compute_80.ptx", "scale"), ("small.ptx", "small")]
        {
            assert_eq!(without_releases(name, &ARCH).split('.').next(), Some(stem), "{name}");
        }
    }
}
