//! Where the library comes from that `init` adds to a project.

use std::path::{Path, PathBuf};

use crate::cargo::project::absolute_path;
use crate::cli::arguments::Call;
use crate::cli::report::CliError;
use cudaguard::internal::files;

use super::DependencySource;

/// Returns the library that the user specified, or else the one that this command was built with, because packages
/// depend on that release. A path to another directory would break the build, so it is an error.
pub(super) fn dependency_source(call: &Call) -> Result<DependencySource, CliError> {
    if let Some(directory) = &call.path {
        let directory = absolute_path(directory);
        if !holds_the_library(&directory) {
            return Err(CliError::operational(format_args!(
                "--path {}: does not contain the package `cudaguard`; in a checkout it is in the directory guard-core",
                directory.display()
            )));
        }
        return Ok(DependencySource::Directory { directory, because: "" });
    }
    if let Some(url) = &call.git {
        return Ok(DependencySource::Repository { url: url.clone(), revision: String::new(), because: "" });
    }
    let exe = std::env::current_exe().unwrap_or_default();
    Ok(match came_from(&exe) {
        Some(Origin::Dir(directory)) => DependencySource::Directory {
            directory,
            because: ", with the path of the checkout that this command was built from",
        },
        Some(Origin::Repository { url, revision }) => DependencySource::Repository {
            url,
            revision,
            because: ", from the repository that this command was built from",
        },
        None => DependencySource::Registry,
    })
}

/// Returns the release series of this version, whose releases are compatible with each other.
pub(super) fn version_series() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').map_or(version, |(series, _)| series)
}

fn holds_the_library(dir: &Path) -> bool {
    let manifest = files::read_text(&dir.join("Cargo.toml")).ok().and_then(|text| text.parse::<toml::Table>().ok());
    manifest.as_ref().and_then(|table| table.get("package")?.get("name")?.as_str()) == Some("cudaguard")
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The directory of the library in a checkout.
    Dir(PathBuf),
    Repository {
        url: String,
        revision: String,
    },
}

fn library_of_checkout(checkout: &Path) -> Option<PathBuf> {
    Some(checkout.join("guard-core")).filter(|dir| holds_the_library(dir))
}

/// Returns the origin of this command if it does not come from a registry. Cargo records what it has installed, and a
/// program of a checkout is in its target directory.
pub(super) fn came_from(exe: &Path) -> Option<Origin> {
    let built = [3, 4].into_iter().find_map(|above| library_of_checkout(exe.ancestors().nth(above)?));
    if built.is_some() {
        return built.map(Origin::Dir);
    }
    let root = exe.parent()?.parent()?;
    let record: serde_json::Value = serde_json::from_str(&files::read_text(&root.join(".crates2.json")).ok()?).ok()?;
    // For example `cargo-cudaguard 0.1.0 (path+file:///directory/cargo-cudaguard)` or `…
    // (git+https://host/name?branch=x#revision)`.
    let ours = concat!("cargo-cudaguard ", env!("CARGO_PKG_VERSION"), " (");
    let installed =
        record.get("installs")?.as_object()?.keys().find_map(|key| key.strip_prefix(ours)?.strip_suffix(')'))?;
    if let Some(dir) = installed.strip_prefix("path+file://") {
        let dir = PathBuf::from(percent_decode(dir.split(['#', '?']).next()?)?);
        return library_of_checkout(dir.parent()?).map(Origin::Dir);
    }
    let (url, revision) = installed.strip_prefix("git+")?.split_once('#')?;
    let url = url.split('?').next()?.to_owned();
    Some(Origin::Repository { url, revision: revision.to_owned() })
}

/// Decodes the path of a URL: `%20` is a blank.
fn percent_decode(path: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let [first, behind @ ..] = rest {
        rest = behind;
        let byte = if *first == b'%' {
            let (digits, behind) = rest.split_at_checked(2)?;
            rest = behind;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        } else {
            *first
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}
