//! Command-line arguments of rustc that the wrapper reads.

use crate::cli::report::CliError;
use cudaguard::internal::file_error::FileError;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::build_context::MARK;
use crate::cargo::project::ArtifactKind;
use crate::linked::linker;
use cudaguard::internal::env::Env;
use cudaguard::internal::guard;

/// The arguments of rustc that affect the guard.
#[derive(Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an argument of rustc by itself")]
pub(super) struct RustcArgs {
    pub(super) name: String,
    /// `None` if the output cannot be guarded.
    pub(super) kind: Option<ArtifactKind>,
    /// Set for a program of `cargo test` or `cargo bench`.
    pub(super) is_test: bool,
    pub(super) out: PathBuf,
    /// The suffix that cargo adds to the name; empty if all builds use the same file name.
    pub(super) extra: String,
    pub(super) target: Option<String>,
    /// Set if the build script has added a guard to the arguments.
    pub(super) embeds: bool,
    /// Set if the linker is given an NVIDIA library or a directory that contains one.
    pub(super) links_cuda: bool,
    pub(super) dep_info: bool,
    /// Additional files for the linker: objects of the build script.
    pub(super) objects: Vec<PathBuf>,
    /// Directories in which the linker searches for libraries.
    pub(super) searched: Vec<PathBuf>,
    /// The choice of static or dynamic linking of the C library, if an argument specifies it.
    pub(super) crt_static: Option<bool>,
}

impl RustcArgs {
    /// Parses a call of the compiler; `None` if it builds no crate.
    pub(super) fn parse(env: &Env, words: &[OsString]) -> Option<Self> {
        let mut unit = Self::default();
        let (mut types, mut test, mut links) = (Vec::new(), false, false);
        let mut for_linker = Vec::new();
        let words = expand_arg_files(words);
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let (name, glued) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, Some(value)),
                _ if word.len() > 2
                    && !word.starts_with("--")
                    && ["-C", "-l", "-L"].iter().any(|short| word.starts_with(short)) =>
                {
                    (&word[..2], Some(&word[2..]))
                }
                _ => (word, None),
            };
            let mut value = || glued.or_else(|| rest.next()).unwrap_or_default();
            match name {
                "--crate-name" => value().clone_into(&mut unit.name),
                "--crate-type" => types.extend(value().split(',').map(str::to_owned)),
                "--out-dir" => unit.out = value().into(),
                "--target" => unit.target = Some(value().to_owned()),
                "--test" => test = true,
                "--print" => return None,
                "--emit" => {
                    for kind in value().split(',') {
                        links |= kind == "link" || kind.starts_with("link=");
                        unit.dep_info |= kind == "dep-info";
                    }
                }
                "-C" | "--codegen" => {
                    let option = value();
                    if let Some(extra) = option.strip_prefix("extra-filename=") {
                        extra.clone_into(&mut unit.extra);
                    }
                    unit.crt_static = guard::crt_static(option).or(unit.crt_static);
                    if let Some(argument) = option.strip_prefix("link-arg=") {
                        unit.embeds |= is_embed_argument(argument);
                        if !argument.starts_with('-') && !is_embed_argument(argument) {
                            unit.objects.push(argument.into());
                        }
                        for_linker.push(argument.to_owned());
                    }
                    if let Some(arguments) = option.strip_prefix("link-args=") {
                        for_linker.extend(arguments.split_whitespace().map(str::to_owned));
                    }
                }
                "-L" => {
                    let directory = value();
                    let is_of_rust = ["dependency=", "crate="].iter().any(|kind| directory.starts_with(kind));
                    let kinds = ["native=", "all=", "dependency=", "crate=", "framework="];
                    let bare = kinds.iter().find_map(|kind| directory.strip_prefix(kind)).unwrap_or(directory);
                    unit.links_cuda |= !is_of_rust && linker::has_cuda(Path::new(bare));
                    unit.searched.push(bare.into());
                }
                "-l" => {
                    let library = value();
                    unit.embeds |= is_embed_argument(library);
                    // The syntax is `KIND:MODIFIERS=NAME:RENAME`.
                    let name = library.rsplit('=').next().and_then(|name| name.split(':').next()).unwrap_or_default();
                    unit.links_cuda |= linker::is_cuda(name);
                }
                _ => {}
            }
        }
        if unit.name.is_empty() || unit.out.as_os_str().is_empty() {
            return None;
        }
        unit.links_cuda |= for_linker.iter().any(|word| linker::names_cuda(word));
        // A library that is named by its path takes precedence over the searched directories.
        let by_linker = linker::Dirs::from_args(for_linker.iter().map(String::as_str), env.current_dir());
        unit.searched.splice(0..0, by_linker.named);
        unit.searched.extend(by_linker.searched);
        let is = |wanted: &str| types.iter().any(|kind| kind == wanted);
        // Cargo sets this variable only for programs and examples: a test or a benchmark with its own `main` is
        // neither.
        let program = is("bin") && env.var_os("CARGO_BIN_NAME").is_some();
        let example = unit.out.ends_with("examples");
        unit.kind = match (program, is("cdylib")) {
            _ if test || !links || unit.name.starts_with("build_script_") => None,
            (true, _) if example => Some(ArtifactKind::Example),
            (true, _) => Some(ArtifactKind::Bin),
            (_, true) if example => Some(ArtifactKind::ExampleCdylib),
            (_, true) => Some(ArtifactKind::Cdylib),
            _ => None,
        };
        unit.is_test = links && (test || is("bin") && !program) && !unit.name.starts_with("build_script_");
        Some(unit)
    }

    /// Returns the directory name of the profile; `None` if cargo uses another directory layout.
    pub(super) fn profile_dir(&self) -> Option<&str> {
        let of_kind = self.out.ends_with("deps") || self.out.ends_with("examples");
        self.out.parent().filter(|_| of_kind)?.file_name()?.to_str()
    }

    /// Returns the expected path of the output.
    pub(super) fn output_file(&self, kind: ArtifactKind) -> PathBuf {
        self.out.join(match kind {
            ArtifactKind::Bin | ArtifactKind::Example => format!("{}{}", self.name, self.extra),
            ArtifactKind::Cdylib | ArtifactKind::ExampleCdylib => format!("lib{}{}.so", self.name, self.extra),
        })
    }

    /// Returns the output file, even if the target gives it another extension.
    pub(super) fn produced_file(&self, kind: ArtifactKind) -> Option<PathBuf> {
        let file = self.output_file(kind);
        if file.is_file() {
            return Some(file);
        }
        let stem = format!("{}{}", self.name, self.extra);
        let names = ["wasm", "exe", "dll", "dylib", "js"].map(|ending| format!("{stem}.{ending}"));
        let others = std::iter::once(format!("lib{stem}.dylib"));
        names.into_iter().chain(others).map(|name| self.out.join(name)).find(|file| file.is_file())
    }

    /// Adds the guard to the dependencies that cargo knows of this crate. If `cargo build` creates a file of the same
    /// name, its dependencies include this variable too, so that cargo does not confuse the two files.
    pub(super) fn depend_on(&self, key: &Path, shared: bool) -> Result<(), CliError> {
        if !self.dep_info {
            return Ok(());
        }
        let path = self.out.join(format!("{}{}.d", self.name, self.extra));
        let text = fs::read_to_string(&path).map_err(|error| FileError::read(&path, error))?;
        let key = key.to_string_lossy().replace(' ', "\\ ");
        let mut changed = String::with_capacity(text.len() + 2 * key.len());
        for line in text.lines() {
            changed.push_str(line);
            if line.contains(": ") && !line.starts_with('#') {
                changed.push(' ');
                changed.push_str(&key);
            }
            changed.push('\n');
        }
        if shared {
            let _ = write!(changed, "\n# env-dep:{MARK}=1\n");
        }
        fs::write(&path, changed).map_err(|error| FileError::write(&path, error))?;
        Ok(())
    }
}

/// Returns true for an argument that `embed!()` added: its files start with `cudaguard`.
fn is_embed_argument(argument: &str) -> bool {
    let name = argument.rsplit(['/', '=', ':']).next().unwrap_or_default();
    name.starts_with("cudaguard") || name.starts_with("libcudaguard")
}

/// Replaces `@file` by the arguments in the file. Cargo uses such files if a command line would be too long.
pub(super) fn expand_arg_files(words: &[OsString]) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        let word = word.to_string_lossy();
        match word.strip_prefix('@').map(fs::read_to_string) {
            Some(Ok(text)) => all.extend(text.lines().map(str::to_owned)),
            _ => all.push(word.into_owned()),
        }
    }
    all
}
