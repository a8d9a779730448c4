//! Versions in the files of a toolkit: `cuda.h`, `version.json`, `version.txt` and the CUDA runtime.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::host_compiler::Limits;
use super::places::Layout;
use super::{LinkedCudart, Sourced, ToolkitHeaders, host_compiler, pkg_config, places};
use crate::knowledge::cudnn;
use crate::model::version::{CudaVersion, Version};
use crate::sys::files;

/// The origin of a libcudart that only its toolkit reaches.
pub(super) const OWN_DIR: &str = "the directory of the toolkit";

/// Returns the release in this `cuda.h`.
pub fn cuda_h_release(file: &Path) -> Option<CudaVersion> {
    read_start(file).as_deref().and_then(parse_cuda_h).or_else(|| parse_cuda_h(&read_lossy(file)?))
}

/// Parses `CUDA_VERSION` in a `cuda.h`.
fn parse_cuda_h(text: &str) -> Option<CudaVersion> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        let found = words.next() == Some("define") && words.next() == Some("CUDA_VERSION");
        let number: u32 = found.then(|| words.next()?.parse().ok())??;
        (number >= 1000).then(|| CudaVersion::from_int(number))
    })
}

/// Parses the version of a component in a `version.json`: `"cuda"`, `"cuda_cudart"`, … It takes the first `"version"`
/// after the key, without a JSON parser, which this crate does not need otherwise.
fn parse_version_json(text: &str, component: &str) -> Option<Version> {
    let (_, rest) = text.split_once(&format!("\"{component}\""))?;
    let (object, _) = rest.split_once('}')?;
    let (_, rest) = object.split_once("\"version\"")?;
    rest.split('"').nth(1)?.parse().ok()
}

/// Parses `CUDA Version 10.2.89` in a `version.txt`.
fn parse_version_txt(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("CUDA Version ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Reads a file as text, with replacement characters for invalid UTF-8.
pub(super) fn read_lossy(path: &Path) -> Option<String> {
    files::read_bytes(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the start of a file: `CUDA_VERSION` is in the first tenth of a `cuda.h` of a megabyte.
pub(super) fn read_start(path: &Path) -> Option<String> {
    let (bytes, read) = files::read_at_most(files::open_regular(path).ok()?, 128 << 10);
    read.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn headers_in(dirs: &[PathBuf]) -> Option<ToolkitHeaders> {
    let path = dirs.iter().map(|dir| dir.join("cuda.h")).find(|path| path.is_file())?;
    let version = read_start(&path).as_deref().and_then(parse_cuda_h).or_else(|| parse_cuda_h(&read_lossy(&path)?));
    Some(ToolkitHeaders { path, version })
}

pub(super) fn stated_in(root: &Path, layout: &Layout) -> Option<Sourced<Version>> {
    let packages = layout.library_dirs(root).into_iter().flat_map(|dir| {
        let files = places::entries_with_prefix(&dir.join("pkgconfig"), "cuda").into_iter();
        files.filter(|file| file.extension().is_some_and(|extension| extension == "pc"))
    });
    for file in [root.join("version.json"), root.join("version.txt")].into_iter().chain(packages) {
        let Some(text) = read_lossy(&file) else { continue };
        let version = match file.extension().and_then(OsStr::to_str) {
            Some("json") => parse_version_json(&text, "cuda"),
            Some("txt") => parse_version_txt(&text),
            _ => pkg_config::field_value(&text, "Version:").and_then(|version| version.parse().ok()),
        };
        if let Some(version) = version {
            return Some(Sourced::new(version, file.display().to_string()));
        }
    }
    match places::version_in_name(root)[..] {
        [major, minor] if root.file_name()?.to_str()?.starts_with("cuda-") => {
            Some(Sourced::new(Version::new(major, minor, 0), format!("the name of the directory, {}", root.display())))
        }
        _ => None,
    }
}

/// Returns the libcudart of a directory. If its name does not contain the version, the `version.json` of the root
/// may.
pub(super) fn cudart_in(layout: &Layout, dir: &Path, source: &str) -> Option<LinkedCudart> {
    let linked = dir.join("libcudart.so");
    let path = if linked.is_file() {
        linked
    } else {
        let found = layout.libraries_in(dir, "libcudart.so.").into_iter().find(|file| file.is_file());
        found.or_else(|| Some(dir.join("libcudart_static.a")).filter(|file| file.is_file()))?
    };
    let real = path.canonicalize().ok()?;
    let numbers = cudnn::numbers_of(&real.file_name()?.to_string_lossy());
    let version = match numbers[..] {
        [major, minor, patch, ..] => Some(Sourced::new(Version::new(major, minor, patch), real.display().to_string())),
        // Up to 10.2 the soname contains the complete release (libcudart.so.10.2); for 11 it is always 11.0.
        [major @ ..=10, minor] => Some(Sourced::new(Version::new(major, minor, 0), real.display().to_string())),
        // lib, lib64 and targets/*/lib are at most three directories below the root.
        _ => dir.ancestors().skip(1).take(3).map(|root| root.join("version.json")).find_map(|file| {
            Some(Sourced::new(parse_version_json(&read_lossy(&file)?, "cuda_cudart")?, file.display().to_string()))
        }),
    };
    // A version.json of another major belongs to another toolkit.
    let version = version.filter(|version| numbers.first().is_none_or(|major| *major == version.value.major));
    let major = numbers.first().copied().or(version.as_ref().map(|version| version.value.major));
    Some(LinkedCudart { path, major, version, source: source.to_owned() })
}

pub(super) fn limits_of(headers: Option<&ToolkitHeaders>, root: &Path) -> Option<Limits> {
    let next_to_headers = headers.and_then(|headers| headers.path.parent()).map(|dir| dir.join("crt/host_config.h"));
    // CUDA 8 and older kept it next to the headers.
    let file =
        next_to_headers.into_iter().chain([root.join("include/crt/host_config.h")]).find(|file| file.is_file())?;
    let (gcc_max, clang_below) = host_compiler::parse_limits(&read_lossy(&file)?);
    Some(Limits { gcc_max, clang_below, source: file.display().to_string() })
}
