//! The error of `Embed::try_embed`, and how a build script prints it.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::finding::Finding;
use crate::finding::render::annotated_error;
use crate::manifest::model::Component;
use crate::sys::env::Env;
use crate::sys::file_error::FileError;
use crate::text::sanitize;

use super::render_refusal;

/// Why [`Embed::try_embed`](super::Embed::try_embed) fails: the findings that refuse the build, or the file that it cannot read or write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedError(pub(super) EmbedFailure);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EmbedFailure {
    /// The caller is no build script: cargo has not set this variable.
    NoBuildScript(String),
    /// The message about the findings that refuse the build.
    Refused(String),
    /// The message about a build that cannot be checked.
    Unchecked(String),
    /// A path that cannot be passed to cargo.
    Path(PathBuf),
    /// A file that cannot be read or written.
    File(FileError),
}

impl EmbedError {
    /// Creates the error of a build that cannot be checked.
    pub(super) fn unchecked(env: &Env, why: &dyn fmt::Display) -> Self {
        let why = why.to_string();
        let annotation = if env.is_github_workflow() { format!("\n{}", annotated_error(&why)) } else { String::new() };
        Self(EmbedFailure::Unchecked(format!("error: {why}{annotation}")))
    }

    /// Creates the error of a refused build: its findings and the other options of the user.
    pub(super) fn refused(env: &Env, findings: &[Finding], component: &Component, release: bool) -> Self {
        Self(EmbedFailure::Refused(render_refusal(env, findings, component, release)))
    }
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.0 {
            EmbedFailure::NoBuildScript(name) => {
                format!("cudaguard::embed!() was called outside of a build.rs: cargo has not set {name}")
            }
            EmbedFailure::Path(path) => {
                format!("a path that is passed to cargo must be UTF-8 without line breaks: {}", path.display())
            }
            EmbedFailure::File(error) => error.to_string(),
            EmbedFailure::Refused(text) | EmbedFailure::Unchecked(text) => text.clone(),
        };
        f.write_str(&sanitize::sanitize_text(&text))
    }
}

impl Error for EmbedError {}

impl From<FileError> for EmbedError {
    fn from(error: FileError) -> Self {
        Self(EmbedFailure::File(error))
    }
}

/// The first release of Rust that accepts `cargo::` directives in a package with this `rust-version`.
const NEW_DIRECTIVES: u32 = 77;

/// The variable with the parameters of its job server, which cargo sets for each build script. Other callers of build scripts, such
/// as Bazel and Buck, do not set it.
const JOB_SERVER: &str = "CARGO_MAKEFLAGS";

/// Ends the build script so that cargo fails the build with this error. cargo prints `cargo::error` lines alone; if a script exits
/// with another status than 0, cargo prints its whole output, in which the reason is hard to find. Every other caller sees the failure
/// by the status.
pub(super) fn fail_build(env: &Env, error: &EmbedError) -> ! {
    let text = error.to_string();
    let by_cargo = env.var_os(JOB_SERVER).is_some();
    // A workflow command must be at the start of a line, which only the whole output preserves.
    if !by_cargo || env.is_github_workflow() || !accepts_new_directives(env.var("CARGO_PKG_RUST_VERSION").as_deref()) {
        eprintln!("{text}");
        std::process::exit(1);
    }
    for line in text.lines() {
        println!("cargo::error={line}");
    }
    std::process::exit(0);
}

/// Returns true if cargo accepts `cargo::` directives from a package with this `rust-version`, which may be empty.
fn accepts_new_directives(rust_version: Option<&str>) -> bool {
    let mut numbers = rust_version.unwrap_or_default().split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(1), Some(minor)) => minor >= NEW_DIRECTIVES,
        (Some(major), None) => major > 1,
        _ => true,
    }
}
