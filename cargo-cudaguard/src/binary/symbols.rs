//! The first release of each function of NVIDIA's libraries, from `data/symbols.txt`. `docs/internals/symbols.md`
//! documents the format and the limits of that file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use memchr::memmem;

use crate::binary::elf::Elf;

use crate::binary::elf::links::dynamic_links;
use crate::binary::pe::ImportedDll;
use crate::knowledge::vendor::{plain_name, stem_of};
use cudaguard::internal::version::Version;

const TEXT: &str = include_str!("../../data/symbols.txt");

/// The releases of a library that have a function. For libcuda, these are CUDA versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Releases {
    /// The first one; `None` if every inspected release of the library's major up to the last one has it.
    pub first: Option<Version>,
    /// The last one, if a later release lacks the function.
    pub last: Option<Version>,
}

impl Releases {
    /// Returns true if this release has the function. Gaps between the first and the last release are not recorded.
    pub fn contains(&self, release: Version) -> bool {
        self.first.is_none_or(|first| first <= release) && self.last.is_none_or(|last| release <= last)
    }
}

type Table = BTreeMap<&'static str, BTreeMap<&'static str, Releases>>;

fn symbol_table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| parse_table(TEXT).expect("data/symbols.txt is whole: a test reads it"))
}

fn parse_release(text: &str, line: usize) -> Result<Version, String> {
    text.parse().map_err(|why| format!("line {line}: {why}"))
}

fn parse_table(text: &str) -> Result<BTreeMap<&str, BTreeMap<&str, Releases>>, String> {
    let mut table: BTreeMap<&str, BTreeMap<&str, Releases>> = BTreeMap::new();
    let (mut library, mut first) = (None, None);
    for (line, number) in text.lines().zip(1..) {
        match line.split_at_checked(1) {
            Some(("#", _)) => {}
            Some(("=", soname)) => (library, first) = (Some(soname), None),
            Some(("@", text)) => first = Some(parse_release(text, number)?),
            _ => {
                let (name, last) = line.split_once(' ').map_or((line, None), |(name, last)| (name, Some(last)));
                let (Some(soname), Some(first)) = (library, first) else {
                    return Err(format!("line {number}: a name before any library and release"));
                };
                let last = last.map(|last| parse_release(last, number)).transpose()?;
                let first = Some(first).filter(|first| *first != Version::new(0, 0, 0));
                if table.entry(soname).or_default().insert(name, Releases { first, last }).is_some() {
                    return Err(format!("line {number}: {name} occurs twice in {soname}"));
                }
            }
        }
    }
    Ok(table)
}

/// Returns true if the table has functions of this library. Parsing the complete table takes as long as sealing a small
/// program.
fn is_listed(soname: &str) -> bool {
    memmem::find(TEXT.as_bytes(), format!("\n={soname}\n").as_bytes()).is_some()
}

/// Returns the releases of the library that have this function; `None` if all or no releases have it, or it was not
/// inspected.
pub fn releases_with(soname: &str, name: &str) -> Option<Releases> {
    symbol_table().get(&*plain_name(soname))?.get(name).copied()
}

/// Iterates over the functions of this library in the table.
pub fn library_functions(soname: &str) -> impl Iterator<Item = (&'static str, Releases)> + use<> {
    symbol_table().get(&*plain_name(soname)).into_iter().flatten().map(|(name, releases)| (*name, *releases))
}

/// Iterates over the functions of every major of a library, `nvrtc`, that some release of its major lacks.
pub(crate) fn functions_of_stem(stem: &str) -> impl Iterator<Item = &'static str> {
    tables_of_stem(stem).flat_map(|functions| functions.keys().copied())
}

/// Returns the first release of a library with this function, in any major.
pub(crate) fn first_with(soname: &str, name: &str) -> Option<Version> {
    let plain = plain_name(soname);
    let stem = stem_of(plain.strip_prefix("lib")?);
    tables_of_stem(stem).filter_map(|functions| functions.get(name)?.first).min()
}

fn tables_of_stem(stem: &str) -> impl Iterator<Item = &'static BTreeMap<&'static str, Releases>> {
    let start = format!("lib{stem}.so.");
    symbol_table().iter().filter(move |(soname, _)| soname.starts_with(&start)).map(|(_, functions)| functions)
}

/// A function that a file binds and that the first releases of its library lack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The library's soname.
    pub soname: String,
    /// The function.
    pub name: String,
    /// The first release that has it.
    pub first: Version,
}

/// Returns the newest function of each library that a linked file binds; weak references and dlsym lookups do not
/// count.
pub fn newest_bound(elf: &Elf<'_>) -> Vec<Bound> {
    let needed = elf.needed().into_iter().map(|name| plain_name(name).into_owned());
    let needed: Vec<String> = needed.filter(|soname| is_listed(soname)).collect();
    if needed.is_empty() {
        return Vec::new();
    }
    let mut newest: BTreeMap<&str, (Version, &str)> = BTreeMap::new();
    let symbol_imports = dynamic_links(elf).map(|links| links.symbol_imports(false)).unwrap_or_default();
    for import in symbol_imports.iter().filter(|import| !import.weak) {
        let Ok(name) = std::str::from_utf8(import.name) else { continue };
        // The version of a symbol shows its library.
        let of = import.version.and_then(|version| std::str::from_utf8(version.of?).ok()).map(plain_name);
        for soname in needed.iter().filter(|soname| of.as_ref().is_none_or(|of| of == soname.as_str())) {
            if let Some(Releases { first: Some(first), .. }) = releases_with(soname, name) {
                let known = newest.entry(soname).or_insert((first, name));
                *known = (*known).max((first, name));
            }
        }
    }
    bound_functions(newest)
}

/// The newest function of each DLL that a PE file imports, delay-loaded or not.
pub(crate) fn newest_imported(imports: &[ImportedDll<'_>]) -> Vec<Bound> {
    let mut newest: BTreeMap<&str, (Version, &str)> = BTreeMap::new();
    for dll in imports.iter().filter(|dll| is_listed(&plain_name(dll.name))) {
        for name in &dll.functions {
            if let Some(Releases { first: Some(first), .. }) = releases_with(dll.name, name) {
                let known = newest.entry(dll.name).or_insert((first, name));
                *known = (*known).max((first, name));
            }
        }
    }
    bound_functions(newest)
}

fn bound_functions(newest: BTreeMap<&str, (Version, &str)>) -> Vec<Bound> {
    newest
        .into_iter()
        .map(|(soname, (first, name))| Bound { soname: soname.to_owned(), name: name.to_owned(), first })
        .collect()
}

/// Lists the first of these functions: `a, b, c, 4 more`.
pub(crate) fn list_functions(all: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 3;
    let mut names: Vec<String> = all.iter().take(SHOWN).map(|name| name.as_ref().to_owned()).collect();
    if all.len() > SHOWN {
        names.push(format!("{} more", all.len() - SHOWN));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbol_table_is_complete_and_sorted() {
        let table = parse_table(TEXT).unwrap();
        assert!(table.len() > 15 && table.values().map(BTreeMap::len).sum::<usize>() > 1000);
        let (mut sonames, mut release, mut name): (Vec<&str>, Version, &str) = (Vec::new(), Version::new(0, 0, 0), "");
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            if let Some(soname) = line.strip_prefix('=') {
                assert!(sonames.last().is_none_or(|last| *last < soname), "{soname} is not in order");
                sonames.push(soname);
                name = "@";
            } else if let Some(text) = line.strip_prefix('@') {
                let next: Version = text.parse().unwrap();
                assert!(name == "@" || release < next, "{text} of {sonames:?} is not in order");
                (release, name) = (next, "");
            } else {
                assert!(name < line && name != "@", "{line} of {sonames:?} is not in order");
                name = line;
            }
        }
        for (soname, names) in &table {
            let number: u32 = crate::knowledge::vendor::major_of(soname).unwrap();
            for (name, releases) in names {
                let known = releases.first.or(releases.last).expect("the table omits names that every release has");
                assert!(releases.last.is_none_or(|last| releases.first.is_none_or(|first| first <= last)), "{name}");
                if ["libcudart", "libcudnn", "libcublas", "libnvrtc", "libnccl"]
                    .iter()
                    .any(|stem| soname.starts_with(stem))
                {
                    assert_eq!(known.major, number, "{name} of {soname}");
                }
            }
        }
    }

    #[test]
    fn known_functions_have_versions() {
        let populate = releases_with("libcudnn.so.9", "cudnnBackendPopulateCudaGraph").unwrap();
        assert_eq!(populate.first, Some(Version::new(9, 5, 0)));
        assert!(!populate.contains(Version::new(9, 1, 0)) && populate.contains(Version::new(9, 15, 1)));
        assert_eq!(releases_with("libcudnn.so.9", "cudnnCreate"), None, "every release has it");
        assert_eq!(releases_with("libcudnn.so.9", "cudnnBackendCreateCudaGraph"), None, "no header ever declared it");
        let gone = releases_with("libcufft.so.11", "cufftXtSetDistribution").unwrap();
        assert_eq!((gone.first, gone.last), (None, Some(Version::new(11, 0, 12))));
        let driver = releases_with("libcuda.so.1", "cuMemAllocAsync").unwrap();
        assert_eq!(driver.first, Some(Version::new(11, 2, 0)));
        assert_eq!(releases_with("libc.so.6", "malloc"), None);
    }

    #[test]
    fn damaged_table_line_is_reported() {
        for (text, why) in [
            ("name\n", "line 1: a name before any library"),
            ("=lib.so.1\nname\n", "line 2: a name before any library"),
            ("=lib.so.1\n@x\n", "line 2: `x` is not a version"),
            ("=lib.so.1\n@1.0\na\na 2.0\n", "line 4: a occurs twice in lib.so.1"),
            ("=lib.so.1\n@1.0\na b\n", "line 3: `b` is not a version"),
        ] {
            assert!(parse_table(text).unwrap_err().contains(why), "{text}");
        }
    }
}
