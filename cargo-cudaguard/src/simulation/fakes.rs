//! Fake libraries and programs, which the C compiler of this machine compiles once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudaguard::internal::digest::Digest;

use super::SimulationError;

const HEADER: &str = include_str!("fake.h");

/// Returns the C source of a fake.
fn source(name: &str) -> &'static str {
    match name {
        "libcuda" => include_str!("libcuda.c"),
        "libnvidia_ml" => include_str!("libnvidia_ml.c"),
        "nvidia-smi" => include_str!("nvidia_smi.c"),
        _ => "extern int fake_driver;\n",
    }
}

/// A directory with compiled fakes. The name of a file contains a digest of its source and options.
#[derive(Clone, Debug)]
pub struct Fakes(PathBuf);

impl Fakes {
    /// The directory, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// Returns a fake library with this soname. `note` is the JSON text of a forward compatibility note.
    ///
    /// # Errors
    /// If it must be compiled, and there is no compiler or it fails.
    pub fn library(&self, name: &str, soname: &str, note: Option<&str>) -> Result<PathBuf, SimulationError> {
        let mut options = vec!["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{soname}")];
        // A C string literal that contains an assembly string literal.
        options.extend(note.map(|note| format!("-DCOMPAT_NOTE=\"{}\"", note.replace('"', r#"\\\""#))));
        self.compile(soname, source(name), &options)
    }

    /// Returns a fake library with this soname and this source.
    ///
    /// # Errors
    /// As [`Self::library`].
    pub fn library_from(&self, text: &str, soname: &str) -> Result<PathBuf, SimulationError> {
        self.compile(soname, text, &["-shared".to_owned(), "-fPIC".to_owned(), format!("-Wl,-soname,{soname}")])
    }

    /// Returns a program.
    ///
    /// # Errors
    /// As [`Self::library`].
    pub fn program(&self, name: &str) -> Result<PathBuf, SimulationError> {
        self.compile(name, source(name), &[])
    }

    fn compile(&self, name: &str, text: &str, options: &[String]) -> Result<PathBuf, SimulationError> {
        let mut digest = Digest::new();
        digest.push_text(HEADER).push_text(text).push_text(std::env::consts::ARCH);
        for option in options {
            digest.push_text(option);
        }
        let made = self.0.join(format!("{name}-{digest}"));
        if made.is_file() {
            return Ok(made);
        }
        fs::create_dir_all(&self.0).map_err(|error| SimulationError::file(&self.0, error))?;
        let work = tempfile::tempdir_in(&self.0).map_err(|error| SimulationError::file(&self.0, error))?;
        for (file, text) in [("fake.h", HEADER), ("fake.c", text)] {
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
