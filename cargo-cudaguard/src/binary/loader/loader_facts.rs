//! The facts that the loader reads in a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::path_of;
use crate::binary::elf::{self, Elf, VersionEntry};
use crate::binary::mapped_file::Contents;
use cudaguard::internal::file_error::FileProblem;
use object::elf::{
    DF_1_NODEFLIB, DT_AUXILIARY, DT_FILTER, DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, ELFOSABI_LINUX, ELFOSABI_NONE,
    ET_DYN, ET_EXEC, FileType, Machine, OsAbi, PT_DYNAMIC, PT_LOAD, VER_FLG_WEAK,
};

/// Smallest page size; the loader maps complete pages.
const PAGE: u64 = 4096;

/// The loader's reaction to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The loader picks it.
    Usable,
    /// The file is missing or not readable: the loader continues its search.
    Missing,
    /// The file is for another machine: the loader continues its search.
    WrongArchitecture(String),
    /// The file cannot be accessed (a loop of links): the loader skips the rest of this list.
    Stopped(String),
    /// The loader picks it and ends the program.
    Broken(String),
}

/// The kind of program for which the loader loads files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProgramKind {
    pub(super) machine: Machine,
    pub(super) class64: bool,
    pub(super) is_of_musl: bool,
}

/// The facts about a file.
#[derive(Clone, Debug)]
pub(crate) struct LoadFacts {
    /// Length in bytes.
    length: usize,
    is_elf: bool,
    /// The byte of the ELF header with the class.
    class: u8,
    has_current_version: bool,
    elf: Result<ElfFacts, FileProblem>,
    contents: Arc<Contents>,
}

/// The facts about an ELF file.
#[derive(Clone, Debug)]
pub(crate) struct ElfFacts {
    pub(super) machine: Machine,
    pub(super) class64: bool,
    pub(super) kind: FileType,
    os_abi: OsAbi,
    has_dynamic_segment: bool,
    /// The end of the last segment that is loaded.
    end: Option<u64>,
    pub(super) interpreter: Option<PathBuf>,
    pub(super) soname: Option<String>,
    /// Not empty; `None` if there is a `DT_RUNPATH`.
    pub(super) rpath: Option<Vec<u8>>,
    pub(super) runpath: Option<Vec<u8>>,
    pub(super) no_system: bool,
    pub(super) wants: Vec<(Vec<u8>, DependencyKind)>,
    /// The versions that it requires, each with the library that has to define it.
    pub(super) needed_versions: Vec<(String, String)>,
    pub(super) defined_versions: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DependencyKind {
    Needed,
    /// True if the symbol may be missing.
    Auxiliary,
}

impl LoadFacts {
    /// Reads a file and keeps its contents.
    pub(super) fn with_contents(contents: &Arc<Contents>) -> Self {
        Self { contents: Arc::clone(contents), ..Self::read(contents) }
    }

    /// Reads a file and keeps none of its contents.
    pub(crate) fn read(data: &[u8]) -> Self {
        Self {
            length: data.len(),
            is_elf: Elf::is_elf(data),
            class: data.get(4).copied().unwrap_or_default(),
            has_current_version: data.get(20..24) == Some(&[1, 0, 0, 0]),
            elf: Elf::parse(data).map(|elf| ElfFacts::read(&elf)),
            contents: Arc::new(Contents::from(Vec::new())),
        }
    }

    /// Returns the path of the loader that a program names.
    pub(crate) fn interpreter(&self) -> Option<&Path> {
        self.elf.as_ref().ok()?.interpreter.as_deref()
    }

    /// Returns the facts of an ELF file.
    pub(super) fn elf(&self) -> Result<&ElfFacts, FileProblem> {
        self.elf.as_ref().map_err(Clone::clone)
    }

    /// Returns the contents of the file; empty if they are not kept.
    pub(super) fn contents(&self) -> &Arc<Contents> {
        &self.contents
    }

    /// Returns the loader's reaction to the file (`open_verify` and the first checks of `_dl_map_object_from_fd` in glibc). musl's
    /// `map_library` has fewer checks, and ends the program in cases in which glibc continues its search.
    pub(super) fn inspect(&self, program: ProgramKind) -> Inspection {
        match self.problem(program) {
            None => Inspection::Usable,
            Some((true, what)) if !program.is_of_musl => Inspection::WrongArchitecture(what),
            Some((_, what)) => Inspection::Broken(what),
        }
    }

    /// Returns the reason why the loader does not accept the file, and true if another architecture is the reason.
    fn problem(&self, program: ProgramKind) -> Option<(bool, String)> {
        if self.length < if program.class64 { 64 } else { 52 } {
            return Some((false, "file too short".to_owned()));
        }
        if !self.is_elf {
            return Some((false, "invalid ELF header".to_owned()));
        }
        match (self.class, program.class64) {
            (1, true) => return Some((true, "is for 32-bit programs".to_owned())),
            (2, false) => return Some((true, "is for 64-bit programs".to_owned())),
            _ => {}
        }
        let elf = match &self.elf {
            Ok(elf) => elf,
            Err(problem) => return Some((false, problem.to_string())),
        };
        if !program.is_of_musl && !self.has_current_version {
            return Some((false, "ELF file version does not match current one".to_owned()));
        }
        if !program.is_of_musl && !matches!(elf.os_abi, ELFOSABI_NONE | ELFOSABI_LINUX) {
            return Some((false, "ELF file OS ABI invalid".to_owned()));
        }
        if elf.machine != program.machine {
            return Some((true, format!("is for {}", elf::machine_name(elf.machine))));
        }
        if !matches!(elf.kind, ET_DYN | ET_EXEC) {
            return Some((false, "only ET_DYN and ET_EXEC can be loaded".to_owned()));
        }
        if !elf.has_dynamic_segment {
            return Some((false, "object file has no dynamic section".to_owned()));
        }
        let Some(end) = elf.end else { return Some((false, "object file has no loadable segments".to_owned())) };
        // An access to a page that is completely beyond the end of the file is a bus error.
        let [needed, length] =
            [end, self.length as u64].map(|size| size.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX));
        (needed > length).then(|| (false, format!("is cut off: {} of at least {end} bytes", self.length)))
    }
}

impl ElfFacts {
    fn read(elf: &Elf<'_>) -> Self {
        let [runpath, rpath] = [DT_RUNPATH, DT_RPATH].map(|tag| elf.dynamic_texts(tag).next().map(<[u8]>::to_vec));
        let wants = elf
            .dynamic()
            .iter()
            .filter(|(tag, _)| matches!(*tag, DT_NEEDED | DT_AUXILIARY | DT_FILTER))
            .filter_map(|(tag, value)| {
                let want = if *tag == DT_AUXILIARY { DependencyKind::Auxiliary } else { DependencyKind::Needed };
                Some((elf.dynamic_string(*value)?.to_vec(), want))
            })
            .collect();
        let (mut needed_versions, mut defined_versions) = (Vec::new(), BTreeSet::new());
        for VersionEntry { version, flags, .. } in elf.versions() {
            let name = String::from_utf8_lossy(version.name).into_owned();
            match version.of {
                // A weak one may be missing.
                Some(_) if flags.contains(VER_FLG_WEAK) => {}
                Some(of) => needed_versions.push((String::from_utf8_lossy(of).into_owned(), name)),
                None => {
                    defined_versions.insert(name);
                }
            }
        }
        let loaded = elf.segments().filter(|segment| segment.kind == PT_LOAD && segment.file_size != 0);
        Self {
            machine: elf.machine,
            class64: elf.is_64_bit,
            kind: elf.kind,
            os_abi: elf.os_abi,
            has_dynamic_segment: elf.segments().any(|segment| segment.kind == PT_DYNAMIC),
            end: loaded.map(|segment| segment.offset.saturating_add(segment.file_size)).max(),
            interpreter: elf.interpreter().map(|path| path_of(path.as_bytes())),
            soname: elf.soname().map(str::to_owned),
            rpath: rpath.filter(|path| runpath.is_none() && !path.is_empty()),
            runpath,
            no_system: elf.has_flag(DT_FLAGS_1, DF_1_NODEFLIB.0),
            wants,
            needed_versions,
            defined_versions,
        }
    }
}
