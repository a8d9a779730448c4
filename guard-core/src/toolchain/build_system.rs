//! Facts that a build system has already determined.
//!
//! CMake finds its compiler, toolkit and directories once, when it configures, and stores them. The variables that
//! cargo builds use (`CUDA_HOME`, `CUDAARCHS` …) and the usual directories do not count then. Variables that nvcc and
//! the linker read by themselves (`NVCC_PREPEND_FLAGS`, `NVCC_CCBIN`, `LIBRARY_PATH`) still count.

use std::path::{Path, PathBuf};

use super::nvcc::NvccCandidate;
use super::places::{Precedence, ToolkitPlace, path_below};
use super::toolkit_files::{cudart_in, headers_in, limits_of};
use super::toolkits::{Detector, ToolkitChoice, ToolkitList};
use super::{
    CompilerFamily, HostCompiler, SearchDir, Selection, SelectionReason, Sourced, Toolkit, ToolkitHeaders, installs,
};

/// The tool that builds. It selects the wording of hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildSystem {
    /// cargo, with variables and `PATH`.
    #[default]
    Cargo,
    /// CMake, with properties of targets.
    CMake,
    /// Any tool that calls the command with its options.
    Options,
}

impl BuildSystem {
    /// Returns the value for this tool.
    pub fn choose<T>(self, cargo: T, cmake: T, options: T) -> T {
        match self {
            Self::Cargo => cargo,
            Self::CMake => cmake,
            Self::Options => options,
        }
    }
}

/// The facts of a build system. The source of each fact is its name there: `CMAKE_CUDA_COMPILER`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildSystemFacts {
    /// The tool.
    pub by: BuildSystem,
    /// The nvcc of the toolkit.
    pub nvcc: Option<Sourced<PathBuf>>,
    /// True if that nvcc compiles a part of this build. Otherwise its flags and its host compiler do not count.
    pub compiles: bool,
    /// Its flags, each a part of a command line.
    pub flags: Vec<String>,
    /// The root of the toolkit, if there may be no nvcc.
    pub toolkit: Option<Sourced<PathBuf>>,
    /// The host compiler, as a program.
    pub host: Option<Sourced<PathBuf>>,
    /// The host compiler as the build system names it, if nvcc does not call it: `gcc 12.2.0`.
    pub host_known: Option<HostCompiler>,
    /// Header directories, in the compiler's order.
    pub includes: Vec<Sourced<PathBuf>>,
    /// Directories that the compiler searches by itself after those.
    pub own_includes: Vec<PathBuf>,
    /// Directories that the linker searches, in its order.
    pub libraries: Vec<Sourced<PathBuf>>,
    /// The architectures in CMake's spelling.
    pub archs: Option<Sourced<String>>,
    /// The meaning of `native` at configure time, in CMake's spelling: `90-real`.
    pub native: Option<Sourced<String>>,
    /// The cuDNN headers, if the project names them.
    pub library_include: Option<Sourced<PathBuf>>,
}

impl BuildSystemFacts {
    pub(super) fn nvcc_candidate(&self) -> Option<NvccCandidate> {
        let nvcc = self.nvcc.as_ref()?;
        let (source, reason) = (nvcc.source.clone(), SelectionReason::Named(nvcc.source.clone()));
        Some(NvccCandidate { path: nvcc.value.clone(), flags: Vec::new(), source, reason })
    }

    /// Returns the program with which this nvcc resolves `-arch=native`. If it finds no GPU, nvcc compiles for its
    /// default.
    pub(super) fn device_query(&self) -> Option<PathBuf> {
        let nvcc = &self.nvcc.as_ref()?.value;
        let real = nvcc.canonicalize().unwrap_or_else(|_| nvcc.clone());
        [nvcc, &real].iter().map(|nvcc| nvcc.with_file_name("__nvcc_device_query")).find(|program| program.is_file())
    }

    pub(super) fn toolkit_places(&self) -> Vec<ToolkitPlace> {
        let toolkit = self.toolkit.iter();
        toolkit
            .map(|root| ToolkitPlace {
                root: root.value.clone(),
                source: root.source.clone(),
                reach: Precedence::Named,
            })
            .collect::<Vec<_>>()
    }

    pub(super) fn link_first(&self) -> Vec<SearchDir> {
        self.libraries
            .iter()
            .map(|fact| SearchDir { path: fact.value.clone(), source: fact.source.clone(), reach: Precedence::Named })
            .collect::<Vec<_>>()
    }
}

impl Detector<'_> {
    /// Returns the first `cuda.h` on the compiler's search path, otherwise nvcc's own, which it adds after all
    /// others.
    pub(super) fn choose_given_headers(
        &self,
        list: &mut ToolkitList,
        compiler: Option<&Selection>,
        given: &BuildSystemFacts,
    ) -> Option<Selection> {
        let first = given.includes.iter().find_map(|dir| Some((headers_in(std::slice::from_ref(&dir.value))?, dir)));
        if let Some((headers, dir)) = first {
            let index = self.toolkit_of_headers(list, &headers, &dir.source);
            return Some(Selection { index, reason: SelectionReason::Named(dir.source.clone()) });
        }
        if let Some(index) = compiler.map(|choice| choice.index).filter(|index| list.has_headers(*index)) {
            return Some(Selection { index, reason: SelectionReason::Other("the compiler's own".to_owned()) });
        }
        let index = (0..list.toolkits.len()).find(|index| list.has_headers(*index))?;
        Some(Selection { index, reason: SelectionReason::Named(list.toolkits[index].found[0].clone()) })
    }

    /// Returns the toolkit of this `cuda.h`: a known one, or a new one with the parent directory as its root.
    fn toolkit_of_headers(&self, list: &mut ToolkitList, headers: &ToolkitHeaders, source: &str) -> usize {
        let dir = headers.path.parent().unwrap_or(Path::new("/"));
        // `include`, `targets/x86_64-linux/include` and `include/x86_64-linux-gnu` are at most three directories
        // below the root.
        let root = dir.ancestors().skip(1).take(3).find(|root| {
            let headers_there = headers_in(&self.layout.include_dirs(root));
            headers_there.is_some_and(|there| there.path.canonicalize().ok() == headers.path.canonicalize().ok())
        });
        let root = root.unwrap_or(dir).to_owned();
        if let Some(index) = list.find_known(&root, Some(headers)) {
            return index;
        }
        let place = ToolkitPlace { root: root.clone(), source: source.to_owned(), reach: Precedence::Named };
        list.add_place(&place, &self.layout).unwrap_or_else(|| {
            let toolkit = Toolkit {
                limits: limits_of(Some(headers), &root),
                cudart: self.layout.library_dirs(&root).iter().find_map(|dir| cudart_in(&self.layout, dir, source)),
                headers: Some(headers.clone()),
                found: vec![source.to_owned()],
                root,
                ..Toolkit::default()
            };
            list.push(toolkit, Precedence::Named)
        })
    }

    /// Returns the directories that may contain cuDNN. A directory that also contains `cuda.h` belongs to a toolkit
    /// or a whole system, so a cuDNN in it proves nothing about the build.
    pub(super) fn given_library(&self, given: &BuildSystemFacts, used: &ToolkitChoice) -> installs::InstallSearch {
        let mut search = installs::InstallSearch::default();
        for dir in given.link_first() {
            search.add_libraries([dir.path], &dir.source, Precedence::Named);
        }
        // The compiler uses the first headers; the library next to them comes from the same package.
        let mut includes = given.library_include.iter().chain(&given.includes);
        if let Some(first) = includes.find(|dir| installs::headers_in(&dir.value).is_some()) {
            let whole = first.value.join("cuda.h").is_file();
            let reach = if whole { Precedence::Usual } else { Precedence::Named };
            search.add_includes([first.value.clone()], &first.source, reach);
            let library_dirs = first.value.parent().map(|root| self.layout.library_dirs(root)).unwrap_or_default();
            search.add_libraries(library_dirs, &first.source, Precedence::Usual);
        }
        for index in used.used() {
            let root = &used.list.toolkits[index].root;
            let source = format!("next to the toolkit ({})", root.display());
            search.add_includes(self.layout.include_dirs(root), &source, Precedence::Usual);
            search.add_libraries(self.layout.library_dirs(root), &source, Precedence::Usual);
        }
        for variable in installs::INCLUDE_PATHS {
            search.add_includes(self.request.env.path_list(variable), variable, Precedence::Usual);
        }
        let source = "the directories of the compiler";
        search.add_includes(given.own_includes.clone(), source, Precedence::Usual);
        let system = path_below(&self.request.system_root, "/usr");
        search.add_libraries(self.layout.library_dirs(&system), source, Precedence::Usual);
        search
    }
}

/// Returns the header directories of a compiler command line: `-I`, then `-isystem`.
pub fn include_flags(words: &[String]) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for names in [&["-I", "--include-directory"][..], &["-isystem"]] {
        for (at, word) in words.iter().enumerate() {
            let dir = match names.iter().find_map(|name| word.strip_prefix(name)) {
                Some("") => words.get(at + 1).map(String::as_str),
                rest => rest.map(|rest| rest.trim_start_matches('=')),
            };
            dirs.extend(dir.filter(|dir| !dir.is_empty()).map(PathBuf::from));
        }
    }
    dirs
}

impl HostCompiler {
    /// Builds a compiler from CMake's ID (`GNU`, `Clang`, …) and its version.
    pub fn from_cmake(path: PathBuf, source: &str, id: &str, version: &str) -> Self {
        let family = match id {
            "GNU" => CompilerFamily::Gcc,
            "Clang" => CompilerFamily::Clang,
            _ => CompilerFamily::Other,
        };
        Self { path, source: source.to_owned(), family, version: version.parse().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_in_flags() {
        let words =
            ["-O2", "-I/a", "-isystem", "/b c", "-isystem", "/d", "-I", "/e f", "-isystem/f", "-Ix", "-include", "y.h"];
        let dirs = include_flags(&words.map(str::to_owned));
        let dirs: Vec<_> = dirs.iter().map(|dir| dir.to_string_lossy().into_owned()).collect();
        assert_eq!(dirs, ["/a", "/e f", "x", "/b c", "/d", "/f"]);
        assert_eq!(include_flags(&["-I".to_owned()]), [] as [PathBuf; 0]);
    }
}
