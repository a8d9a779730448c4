//! Library search: the candidates that the loaders of glibc and musl try for a name, in their order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{LoadGraph, Object, Rules};
use crate::binary::loader::system::{self, System};
use crate::binary::loader::{Inspection, LibraryCandidate, SearchSource, bytes_of, cache, path_of};
use object::elf::{EM_386, EM_AARCH64, EM_X86_64};

/// A step of the search for a library.
enum SearchStep {
    /// Search these directories.
    List(Vec<(PathBuf, SearchSource)>),
    /// Try this file.
    File(PathBuf, SearchSource),
}

impl LoadGraph {
    /// Tries one file after the other, up to the one that the loader picks. `all`: continues to the end.
    pub(super) fn search_candidates(&self, by: usize, name: &[u8], all: bool) -> Vec<LibraryCandidate> {
        let mut candidates = Vec::new();
        let below = self.subdirectories();
        let done =
            |candidates: &[LibraryCandidate]| !all && candidates.last().is_some_and(LibraryCandidate::is_selected);
        for step in self.search_steps(by, name) {
            match step {
                SearchStep::File(path, place) => {
                    candidates.push(LibraryCandidate { inspection: self.inspect_file(&path), path, place });
                }
                SearchStep::List(dirs) => {
                    'list: for (dir, place) in dirs {
                        let there = self.tree.is_dir(&dir);
                        for below in below {
                            let dir = if below.is_empty() { dir.clone() } else { dir.join(below) };
                            let path = dir.join(path_of(name));
                            let inspection = match (there, below.is_empty()) {
                                (false, true) => Inspection::Missing,
                                (true, false) if self.tree.is_dir(&dir) => self.inspect_file(&path),
                                (true, true) => self.inspect_file(&path),
                                (_, false) => continue,
                            };
                            let stop = below.is_empty() && matches!(inspection, Inspection::Stopped(_));
                            candidates.push(LibraryCandidate { path, place: place.clone(), inspection });
                            if done(&candidates) {
                                return candidates;
                            }
                            if stop && self.is_of_musl() {
                                return candidates;
                            }
                            // glibc continues with the next list.
                            if stop {
                                break 'list;
                            }
                        }
                    }
                }
            }
            if done(&candidates) {
                return candidates;
            }
        }
        candidates
    }

    /// Returns the names under which the loader may find a file for the program: those in its cache and in the directories that it
    /// searches.
    pub(crate) fn names_in_search_path(&self, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let in_cache = self.cache.iter().flat_map(|cache| cache::names(cache)).filter(|name| is_wanted(name));
        let mut names: BTreeSet<String> = in_cache.map(str::to_owned).collect();
        // The directories are the same for every name without a slash.
        for step in self.search_steps(0, b"libcudart.so") {
            let SearchStep::List(dirs) = step else { continue };
            for dir in dirs.iter().flat_map(|(dir, _)| self.subdirectories().iter().map(move |below| dir.join(below))) {
                names.extend(self.tree.list(&dir).into_iter().filter(|name| is_wanted(name)));
            }
        }
        names
    }

    /// Returns the subdirectories that the loader searches in each directory, the last of which is the directory itself.
    fn subdirectories(&self) -> &[String] {
        const NOTHING: &[String] = &[String::new()];
        match &self.rules {
            Rules::Glibc(system) => &system.below,
            Rules::Musl(_) => NOTHING,
        }
    }

    fn search_steps(&self, by: usize, name: &[u8]) -> Vec<SearchStep> {
        match &self.rules {
            Rules::Glibc(system) => self.glibc_steps(system, by, name),
            Rules::Musl(dirs) => self.musl_steps(dirs, by, name),
        }
    }

    fn glibc_steps(&self, system: &System, by: usize, name: &[u8]) -> Vec<SearchStep> {
        let object = &self.objects[by];
        if name.contains(&b'/') {
            let path = expand_tokens(name, &object.origin, system).map(|name| self.absolute_path(&name));
            return path.map(|path| SearchStep::File(path, SearchSource::Path)).into_iter().collect();
        }
        let mut steps = Vec::new();
        if object.elf().runpath.is_none() {
            // The RPATHs of the requesting object, of the object that requested it, and so on, then that of the
            // program.
            let mut next = Some(by);
            let mut with_program = false;
            while let Some(index) = next {
                let asking = &self.objects[index];
                if let Some(rpath) = &asking.elf().rpath {
                    steps.push(self.rpath_list(system, rpath, asking, SearchSource::Rpath));
                    with_program |= index == 0;
                }
                next = asking.wanted_by.filter(|_| !asking.is_opened);
            }
            let program = &self.objects[0];
            if let (false, true, Some(rpath)) = (with_program, by != 0, &program.elf().rpath) {
                steps.push(self.rpath_list(system, rpath, program, SearchSource::Rpath));
            }
        }
        if let Some(list) = &self.environment.library_path {
            let origin = &self.objects[0].origin;
            let entries = bytes_of(list).split(|byte| matches!(byte, b':' | b';'));
            steps.push(self.expand_entries(system, entries, origin, false, source_in_library_path));
        }
        if let Some(runpath) = object.elf().runpath.as_ref().filter(|runpath| !runpath.is_empty()) {
            steps.push(self.rpath_list(system, runpath, object, SearchSource::Runpath));
        }
        steps.extend(
            self.find_in_cache(system, object, name)
                .map(|path| SearchStep::File(path, SearchSource::Cache(system.cache.clone()))),
        );
        if !system.listed.is_empty() {
            let place = SearchSource::PathFile(PathBuf::from(system::PATH_FILE));
            steps.push(SearchStep::List(system.listed.iter().map(|dir| (dir.clone(), place.clone())).collect()));
        }
        if !object.elf().no_system {
            steps.push(SearchStep::List(system.dirs.iter().map(|dir| (dir.clone(), SearchSource::System)).collect()));
        }
        steps
    }

    fn rpath_list(
        &self,
        system: &System,
        text: &[u8],
        of: &Object,
        place: fn(PathBuf, String) -> SearchSource,
    ) -> SearchStep {
        let entries = text.split(|byte| *byte == b':');
        // The user may link the program into another directory, but not its libraries.
        let distrusts_origin = self.environment.is_secure && of.place == SearchSource::Program;
        self.expand_entries(system, entries, &of.origin, distrusts_origin, |entry| {
            place(of.path.clone(), String::from_utf8_lossy(entry).into_owned())
        })
    }

    fn expand_entries<'text>(
        &self,
        system: &System,
        entries: impl Iterator<Item = &'text [u8]>,
        origin: &Path,
        distrusts_origin: bool,
        place: impl Fn(&[u8]) -> SearchSource,
    ) -> SearchStep {
        let mut dirs: Vec<(PathBuf, SearchSource)> = Vec::new();
        for entry in entries {
            // An entry that is empty before its expansion means the current directory.
            let Some(dir) = expand_tokens(entry, origin, system) else { continue };
            let dir = self.absolute_path(&dir);
            if distrusts_origin && has_origin(entry) && !system.dirs.iter().any(|trusted| dir.starts_with(trusted)) {
                continue;
            }
            if !dirs.iter().any(|(known, _)| *known == dir) {
                dirs.push((dir, place(entry)));
            }
        }
        SearchStep::List(dirs)
    }

    fn absolute_path(&self, bytes: &[u8]) -> PathBuf {
        self.environment.dir.join(path_of(bytes))
    }

    /// Returns the cache's file for this name: for this kind of program, in the best hardware directory.
    fn find_in_cache(&self, system: &System, object: &Object, name: &[u8]) -> Option<PathBuf> {
        let known = match (self.machine, self.class64) {
            (EM_X86_64, true) => Some(0x303),
            (EM_X86_64, false) => Some(0x803),
            (EM_386, _) => Some(3),
            (EM_AARCH64, true) => Some(0xa03),
            _ => None,
        };
        let entries = cache::lookup_entries(self.cache.as_ref()?, name);
        let mut best: Option<(usize, PathBuf)> = None;
        for entry in entries {
            let path = path_of(entry.path);
            let fits = match known {
                Some(flags) => entry.flags == flags || entry.flags == 1,
                // The bits of other machines are unknown, so the file itself decides.
                None => entry.flags & 0xff == 3 && self.inspect_file(&path) == Inspection::Usable,
            };
            let level = match entry.hwcaps {
                Some(name) => system.hwcaps.iter().position(|known| known.as_bytes() == name),
                None if entry.legacy == 0 => Some(usize::MAX),
                // ldconfig sorts the entries of the old hardware directories by their rank.
                None => {
                    let dir = path.parent().unwrap_or(Path::new(""));
                    let is_old = system.below.iter().any(|below| !below.is_empty() && dir.ends_with(below));
                    is_old.then_some(usize::MAX - 1)
                }
            };
            if let Some(level) = level.filter(|level| fits && best.as_ref().is_none_or(|(known, _)| level < known)) {
                best = Some((level, path));
            }
        }
        let (_, best) = best?;
        (!object.elf().no_system || !system.dirs.iter().any(|dir| best.starts_with(dir))).then_some(best)
    }

    fn musl_steps(&self, system: &[(PathBuf, Option<PathBuf>)], by: usize, name: &[u8]) -> Vec<SearchStep> {
        if name.contains(&b'/') {
            return vec![SearchStep::File(self.absolute_path(name), SearchSource::Path)];
        }
        let mut steps = Vec::new();
        if let Some(list) = &self.environment.library_path {
            let entries = musl_entries(bytes_of(list));
            let entries = entries.map(|entry| (self.absolute_path(entry), source_in_library_path(entry)));
            steps.push(SearchStep::List(entries.collect()));
        }
        let mut next = Some(by);
        while let Some(index) = next {
            let object = &self.objects[index];
            // musl treats both kinds of paths the same, and inherits both.
            let (text, place): (_, fn(PathBuf, String) -> SearchSource) =
                match (&object.elf().runpath, &object.elf().rpath) {
                    (Some(text), _) => (Some(text), SearchSource::Runpath),
                    (None, text) => (text.as_ref(), SearchSource::Rpath),
                };
            // A privileged process ignores the paths of a program with `$ORIGIN`.
            let is_ignored = self.environment.is_secure && index == 0;
            let text = text.filter(|text| !is_ignored || !text.contains(&b'$'));
            if let Some(text) = text.and_then(|text| expand_origin(text, &object.origin)) {
                let entries = musl_entries(&text).map(|entry| {
                    let source = place(object.path.clone(), String::from_utf8_lossy(entry).into_owned());
                    (self.absolute_path(entry), source)
                });
                steps.push(SearchStep::List(entries.collect()));
            }
            next = object.wanted_by;
        }
        let dirs = system
            .iter()
            .map(|(dir, file)| (dir.clone(), file.clone().map_or(SearchSource::System, SearchSource::PathFile)));
        steps.push(SearchStep::List(dirs.collect()));
        steps
    }
}

/// Expands glibc's `$ORIGIN`, `$LIB` and `$PLATFORM`, also in braces. Any other `$` is an ordinary character. `None` if
/// the result is empty but the entry was not.
pub(super) fn expand_tokens(text: &[u8], origin: &Path, system: &System) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let meanings: [(&[u8], &[u8]); 3] = [
            (b"ORIGIN", bytes_of(origin.as_os_str())),
            (b"PLATFORM", system.platform.as_bytes()),
            (b"LIB", system.lib.as_bytes()),
        ];
        let hit = meanings.iter().find_map(|(name, meaning)| strip_token(rest, name).map(|behind| (behind, *meaning)));
        match hit {
            Some((behind, meaning)) => {
                out.extend_from_slice(meaning);
                rest = behind;
            }
            None => out.push(b'$'),
        }
    }
    out.extend_from_slice(rest);
    (text.is_empty() || !out.is_empty()).then_some(out)
}

fn source_in_library_path(entry: &[u8]) -> SearchSource {
    SearchSource::LibraryPath(String::from_utf8_lossy(entry).into_owned())
}

/// Splits a list of directories as musl does.
fn musl_entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b':' | b'\n')).filter(|entry| !entry.is_empty())
}

/// Returns true if `$ORIGIN` is in an entry of a path list.
fn has_origin(entry: &[u8]) -> bool {
    (0..entry.len()).any(|at| entry[at] == b'$' && strip_token(&entry[at + 1..], b"ORIGIN").is_some())
}

/// Returns the text after this token. `None` if the text does not start with it.
fn strip_token<'text>(text: &'text [u8], name: &[u8]) -> Option<&'text [u8]> {
    if let Some(inner) = text.strip_prefix(b"{") {
        return inner.strip_prefix(name)?.strip_prefix(b"}");
    }
    let behind = text.strip_prefix(name)?;
    let goes_on = behind.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    (!goes_on).then_some(behind)
}

/// Expands musl's `$ORIGIN`. `None` if the text contains any other `$`, because musl then ignores the entire path.
pub(super) fn expand_origin(text: &[u8], origin: &Path) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..at]);
        let behind = &rest[at + 1..];
        rest = behind.strip_prefix(b"{ORIGIN}").or_else(|| behind.strip_prefix(b"ORIGIN"))?;
        out.extend_from_slice(bytes_of(origin.as_os_str()));
    }
    out.extend_from_slice(rest);
    Some(out)
}
