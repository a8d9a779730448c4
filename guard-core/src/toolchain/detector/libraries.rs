//! Detects the libraries that the linker finds: the CUDA runtime, cuDNN and stub libraries.

use std::path::PathBuf;

use crate::sys::env::Env;
use crate::text::shell_words::split_words;
use crate::toolchain::build_system::BuildSystemFacts;
use crate::toolchain::installs::{self, FoundInstalls};
use crate::toolchain::places::{Precedence, ToolkitPlace, path_below};
use crate::toolchain::toolkit_files::{OWN_DIR, cudart_in};
use crate::toolchain::toolkits::{Detector, ToolkitChoice, ToolkitList, with_first};
use crate::toolchain::{LinkedCudart, SearchDir, Sourced};

impl Detector<'_> {
    /// Returns rustc's flags, if rustc builds.
    fn rust_flags(&self) -> Vec<(String, Vec<String>)> {
        if self.request.given.is_some() { Vec::new() } else { rust_flags(&self.request.env, &self.request.target) }
    }

    /// Returns the directories that the user specifies, which the linker searches before those of a toolkit.
    fn link_first(&self) -> Vec<SearchDir> {
        let given = self.request.given.as_ref();
        let mut dirs: Vec<SearchDir> = given.map(BuildSystemFacts::link_first).unwrap_or_default();
        for (source, flags) in self.rust_flags() {
            let mut flags = flags.iter();
            while let Some(flag) = flags.next() {
                let Some(rest) = flag.strip_prefix("-L") else { continue };
                let value = if rest.is_empty() { flags.next().map_or("", String::as_str) } else { rest };
                let (kind, path) = value.split_once('=').unwrap_or(("all", value));
                if matches!(kind, "native" | "all") && !path.is_empty() {
                    let source = format!("-L in {source}");
                    dirs.push(SearchDir {
                        path: self.request.env.current_dir().join(path),
                        source,
                        reach: Precedence::Named,
                    });
                }
            }
        }
        // gcc as a cross compiler does not read LIBRARY_PATH.
        let variables: &[&str] = match given {
            _ if self.layout.cross => &[],
            Some(_) => &["LIBRARY_PATH"],
            None => &["LIBRARY_PATH", "CUDA_LIBRARY_PATH"],
        };
        for variable in variables {
            for path in self.request.env.path_list(variable) {
                dirs.push(SearchDir { path, source: (*variable).to_owned(), reach: Precedence::Named });
            }
        }
        dirs
    }

    /// Returns the libcudart on the linker's search path.
    pub(super) fn find_cudart(&self, used: &ToolkitChoice) -> Option<LinkedCudart> {
        let on_the_way = self.link_first().iter().find_map(|dir| cudart_in(&self.layout, &dir.path, &dir.source));
        if on_the_way.is_some() {
            return on_the_way;
        }
        if let Some(cudart) = used.used().iter().find_map(|index| used.list.toolkits[*index].cudart.clone()) {
            return Some(LinkedCudart { source: OWN_DIR.to_owned(), ..cudart });
        }
        let root = path_below(&self.request.system_root, "/usr");
        self.layout.library_dirs(&root).iter().find_map(|dir| cudart_in(&self.layout, dir, "the system directory"))
    }

    /// Finds every place with cuDNN, and selects the one in use.
    pub(super) fn find_cudnn(&self, choice: &ToolkitChoice) -> FoundInstalls {
        let ToolkitList { toolkits: known, reach } = &choice.list;
        let used = choice.used();
        let toolkits: Vec<ToolkitPlace> = with_first(&used, known.len())
            .into_iter()
            // System directories keep their own names, and those of virtual environments too.
            .filter(|index| used.contains(index) || reach[*index] < Precedence::Listed)
            .map(|index| {
                let toolkit = &known[index];
                let reach = if used.contains(&index) { Precedence::Usual } else { Precedence::Listed };
                ToolkitPlace { root: toolkit.root.clone(), source: toolkit.root.display().to_string(), reach }
            })
            .filter(|place| place.root != path_below(&self.request.system_root, "/usr"))
            .collect::<Vec<_>>();
        let search = match &self.request.given {
            Some(given) => self.given_library(given, choice),
            None => installs::search_installs(
                &self.request.env,
                &self.request.system_root,
                &self.layout,
                &toolkits,
                &self.link_first(),
            ),
        };
        installs::read_installs(&search, &self.layout)
    }

    /// Finds stub directories on the search path of the dynamic linker.
    pub(super) fn find_stubs(&self) -> Vec<Sourced<PathBuf>> {
        let mut named = vec![("LD_LIBRARY_PATH".to_owned(), self.request.env.path_list("LD_LIBRARY_PATH"))];
        for (source, flags) in self.rust_flags() {
            named.push((format!("-rpath in {source}"), rpath_dirs(&flags)));
        }
        // CMake has read it when it configured; the linked file shows the result.
        if let Some(flags) = self.request.env.var("LDFLAGS").filter(|_| self.request.given.is_none()) {
            named.push(("-rpath in LDFLAGS".to_owned(), rpath_dirs(&split_words(&flags))));
        }
        let mut stubs = Vec::new();
        for (source, dirs) in named {
            for dir in dirs {
                if dir.file_name().is_some_and(|name| name == "stubs") && dir.is_dir() {
                    stubs.push(Sourced::new(dir, source.as_str()));
                }
            }
        }
        stubs
    }
}

/// Returns rustc's flags from variables, each with its variable, in cargo's order of preference. As in cargo, the
/// first one that is set wins.
fn rust_flags(env: &Env, target: &str) -> Vec<(String, Vec<String>)> {
    if let Some(encoded) = env.var("CARGO_ENCODED_RUSTFLAGS") {
        return vec![("RUSTFLAGS".to_owned(), encoded.split('\u{1f}').map(str::to_owned).collect::<Vec<_>>())];
    }
    let of_target = format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase().replace(['-', '.'], "_"));
    let mut found = Vec::new();
    for name in ["RUSTFLAGS", &of_target, "CARGO_BUILD_RUSTFLAGS"] {
        if let Some(flags) = env.var(name) {
            found.push((name.to_owned(), flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>()));
            if name == "RUSTFLAGS" {
                break;
            }
        }
    }
    found
}

/// Returns the directories of `-rpath` in flags of a linker or of rustc: `-Wl,-rpath,DIR`, `-Wl,-rpath=DIR`,
/// `link-arg=-Wl,-rpath,DIR`.
fn rpath_dirs(flags: &[String]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // `link-args` contains several, separated by blanks; elsewhere a blank is part of a path.
    let mut words: Vec<&str> = Vec::new();
    for flag in flags {
        let has_several = flag.contains("link-args");
        words.extend(flag.split(|c| matches!(c, ',' | '=') || has_several && c == ' '));
    }
    for pair in words.windows(2) {
        if matches!(pair[0], "-rpath" | "--rpath" | "-R") {
            found.extend(pair[1].split(':').filter(|path| !path.is_empty()).map(PathBuf::from));
        }
    }
    found
}
