//! Fake libraries and programs, which the C compiler of this machine compiles once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::internal::digest::Digest;
use cudaguard::internal::version::Version;

use super::SimulationError;
use crate::binary::symbols;

const HEADER: &str = include_str!("fake.h");
/// The functions that the libraries of a driver export, apart from the newer ones of libcuda in `data/symbols.txt`.
const FUNCTIONS: &str = include_str!("functions.txt");

/// Returns the C source of a fake.
fn source(name: &str) -> &'static str {
    match name {
        "libcuda" => include_str!("libcuda.c"),
        "libnvidia_ml" => include_str!("libnvidia_ml.c"),
        "nvidia-smi" => include_str!("nvidia_smi.c"),
        _ => "extern int fake_driver;\n",
    }
}

const CUDA_NOT_SUPPORTED: u32 = 801;
const NVML_NOT_SUPPORTED: u32 = 3;

/// A library of a simulated driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverLibrary<'a> {
    /// The name of its source.
    pub(super) source: &'static str,
    pub(super) soname: &'static str,
    /// The result of `cuDriverGetVersion`, which determines the functions of libcuda.
    pub(super) cuda: u32,
    /// The JSON text of a forward compatibility note.
    pub(super) note: Option<&'a str>,
}

/// Returns the public functions of a library, each with the first CUDA version that has it; 0: each version.
fn exported_functions(soname: &str, cuda: u32) -> Vec<(&'static str, u32)> {
    let mut sections = FUNCTIONS.split("\n=").skip(1);
    let section = sections.find_map(|section| section.strip_prefix(soname)).unwrap_or_default();
    let mut functions: Vec<(&str, u32)> = section.split_whitespace().map(|name| (name, 0)).collect();
    let version = Version::new(cuda / 1000, cuda % 1000 / 10, 0);
    for (name, releases) in symbols::library_functions(soname).filter(|(_, releases)| releases.contains(version)) {
        functions.push((name, releases.first.map_or(0, |first| first.major * 1000 + first.minor * 10)));
    }
    functions
}

/// Returns the options for a shared library.
fn shared(soname: &str) -> Vec<String> {
    vec!["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{soname}")]
}

/// A directory with compiled fakes. The name of a file contains a digest of its source and options.
#[derive(Clone, Debug)]
pub struct Fakes(PathBuf);

impl Fakes {
    /// The directory, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// Returns a library of the driver.
    ///
    /// # Errors
    /// If it must be compiled, and there is no compiler or it fails.
    pub(super) fn library(&self, library: &DriverLibrary<'_>) -> Result<PathBuf, SimulationError> {
        let mut options = shared(library.soname);
        // A C string literal that contains an assembly string literal.
        options.extend(library.note.map(|note| format!("-DCOMPAT_NOTE=\"{}\"", note.replace('"', r#"\\\""#))));
        let functions = exported_functions(library.soname, library.cuda);
        let mut files = vec![("fake.c", source(library.source).to_owned())];
        if !functions.is_empty() {
            let lines = functions.iter().map(|(name, first)| format!("EXPORT({name}, {first})\n"));
            let names: Vec<&str> = functions.iter().map(|(name, _)| *name).collect();
            let unsimulated =
                if library.soname.starts_with("libcuda.") { CUDA_NOT_SUPPORTED } else { NVML_NOT_SUPPORTED };
            options.extend([
                "-Wl,--version-script=exports.map".to_owned(),
                format!("-DUNSIMULATED={unsimulated}"),
                "unsimulated.c".to_owned(),
            ]);
            files.push(("exports.map", format!("{{ global: {}; local: *; }};\n", names.join("; "))));
            files.push(("exports.h", lines.collect()));
            files.push(("unsimulated.c", include_str!("unsimulated.c").to_owned()));
        }
        self.compile(library.soname, &files, &options)
    }

    /// Returns a fake library with this soname and this source.
    ///
    /// # Errors
    /// The C compiler is absent or fails, or the cache cannot be written.
    pub fn library_from(&self, text: &str, soname: &str) -> Result<PathBuf, SimulationError> {
        self.compile(soname, &[("fake.c", text.to_owned())], &shared(soname))
    }

    /// Returns a program.
    ///
    /// # Errors
    /// The C compiler is absent or fails, or the cache cannot be written.
    pub fn program(&self, name: &str) -> Result<PathBuf, SimulationError> {
        self.compile(name, &[("fake.c", source(name).to_owned())], &[])
    }

    fn compile(&self, name: &str, files: &[(&str, String)], options: &[String]) -> Result<PathBuf, SimulationError> {
        let headers = [("fake.h", HEADER.to_owned()), ("names.h", include_str!("names.h").to_owned())];
        let mut digest = Digest::new();
        digest.push_text(std::env::consts::ARCH);
        for (_, text) in headers.iter().chain(files) {
            digest.push_text(text);
        }
        for option in options {
            digest.push_text(option);
        }
        let made = self.0.join(format!("{name}-{digest}"));
        if made.is_file() {
            return Ok(made);
        }
        fs::create_dir_all(&self.0).map_err(|error| SimulationError::file(&self.0, error))?;
        let work = tempfile::tempdir_in(&self.0).map_err(|error| SimulationError::file(&self.0, error))?;
        for (file, text) in headers.iter().chain(files) {
            let file = work.path().join(file);
            fs::write(&file, text).map_err(|error| SimulationError::file(&file, error))?;
        }
        let file = work.path().join("made");
        run_compiler(work.path(), options)?;
        // Processes that compile at the same time produce equal files.
        fs::rename(&file, &made).map_err(|error| SimulationError::file(&made, error))?;
        Ok(made)
    }
}

/// Compiles `fake.c` in this directory to `made`.
fn run_compiler(dir: &Path, options: &[String]) -> Result<(), SimulationError> {
    let found = ["cc", "gcc", "clang"].into_iter().find_map(|name| which::which(name).ok());
    let compiler = found.ok_or(SimulationError::NoCompiler)?;
    let mut command = Command::new(&compiler);
    command.current_dir(dir).args(["-O1", "-w"]).args(options);
    let output = command.args(["-o", "made", "fake.c", "-ldl"]).output();
    let output = output.map_err(|error| SimulationError::Compiler(compiler.clone(), error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(SimulationError::Compiler(compiler, String::from_utf8_lossy(&output.stderr).into_owned()))
}
