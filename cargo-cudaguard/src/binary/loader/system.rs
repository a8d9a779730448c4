//! Settings that are compiled into a machine's glibc, read from its loader's file. They differ between distributions,
//! and no other file contains them.

use std::path::{Path, PathBuf};

use super::path_of;
use super::tree::Tree;
use crate::binary::elf::machine_name;
use object::elf::{EM_386, EM_AARCH64, EM_NONE, EM_X86_64, Machine};

/// The settings of a glibc.
#[derive(Clone, Debug)]
pub(super) struct System {
    /// Directories that it always searches, in order.
    pub(super) dirs: Vec<PathBuf>,
    /// Value of `$LIB`.
    pub(super) lib: String,
    /// Value of `$PLATFORM`.
    pub(super) platform: String,
    /// Path of the cache that ldconfig writes.
    pub(super) cache: PathBuf,
    /// The directories in `/etc/ld.so.conf`, from which the machine of a partial tree writes the cache.
    pub(super) listed: Vec<PathBuf>,
    /// Directories below `glibc-hwcaps` that this processor supports, best first.
    pub(super) hwcaps: Vec<String>,
    /// Subdirectories that are searched in each directory, best first; the last one is empty.
    pub(super) below: Vec<String>,
}

impl System {
    /// Reads the settings from the contents of the loader.
    pub(super) fn from_loader(loader: &[u8], for_machine: Machine, tree: &dyn Tree) -> Self {
        let texts: Vec<&str> = loader
            .split(|byte| *byte == 0)
            .filter(|text| text.len() > 2)
            .filter_map(|text| std::str::from_utf8(text).ok())
            .collect();
        let version = texts.iter().find_map(|text| parse_glibc_release(text.split_once("release version ")?.1));
        let dirs = builtin_dirs(texts.iter().copied()).unwrap_or_else(|| default_dirs(for_machine, tree));
        let first = dirs.first().and_then(|dir| dir.to_str()).unwrap_or_default().trim_matches('/');
        let lib = if texts.contains(&first) {
            first.to_owned()
        } else {
            first.rsplit('/').next().unwrap_or_default().to_owned()
        };
        let cache: PathBuf = texts
            .iter()
            .find(|text| text.starts_with('/') && text.ends_with("/ld.so.cache"))
            .unwrap_or(&"/etc/ld.so.cache")
            .into();
        // The level of this processor is only valid for native programs; an emulator runs the others.
        let native = for_machine == native_machine();
        let level = if native { psabi_level() } else { 1 };
        let hwcaps: Vec<String> = texts
            .iter()
            .find(|text| text.starts_with("x86-64-v") && text.contains(':'))
            .copied()
            .unwrap_or_default()
            .split(':')
            .filter(|name| name.strip_prefix("x86-64-v").and_then(|n| n.parse().ok()).is_some_and(|n: u8| n <= level))
            .map(str::to_owned)
            .collect();
        let mut platform = machine_name(for_machine).into_owned();
        let mut below: Vec<String> = hwcaps.iter().map(|name| format!("glibc-hwcaps/{name}")).collect();
        // The loader names its release from 2.33 on.
        if version.is_none_or(|version| version < (2, 37)) {
            below.extend(legacy_dirs(for_machine, native, &mut platform));
        }
        below.push(String::new());
        let is_cache_unknown = tree.is_partial() && tree.settings(&cache).is_err();
        let listed = if is_cache_unknown { listed_dirs(tree) } else { Vec::new() };
        Self { dirs, lib, platform, cache, listed, hwcaps, below }
    }
}

fn parse_glibc_release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the compiled-in list: consecutive texts, each a directory that ends with a slash.
fn builtin_dirs<'text>(texts: impl Iterator<Item = &'text str>) -> Option<Vec<PathBuf>> {
    let mut run = Vec::new();
    for text in texts {
        if text.len() > 2 && text.starts_with('/') && text.ends_with('/') && text.contains("/lib") {
            run.push(path_of(text.as_bytes()));
        } else if !run.is_empty() {
            break;
        }
    }
    (!run.is_empty()).then_some(run)
}

fn default_dirs(for_machine: Machine, tree: &dyn Tree) -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", machine_name(for_machine));
    [format!("/lib/{triplet}/"), format!("/usr/lib/{triplet}/")]
        .iter()
        .map(String::as_str)
        .chain(["/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/"])
        .map(PathBuf::from)
        .filter(|dir| tree.is_dir(dir))
        .collect()
}

/// The file that lists the directories for ldconfig.
pub(super) const PATH_FILE: &str = "/etc/ld.so.conf";

/// Returns the directories for which ldconfig writes the cache. Without its file, those of most distributions.
fn listed_dirs(tree: &dyn Tree) -> Vec<PathBuf> {
    /// No real file includes more files.
    const MOST_FILES: usize = 1000;
    let Ok(text) = tree.settings(Path::new(PATH_FILE)) else { return vec![PathBuf::from("/usr/local/lib")] };
    let (mut dirs, mut files, mut texts) = (Vec::new(), 0, vec![text]);
    while let Some(text) = texts.pop() {
        for line in String::from_utf8_lossy(&text).lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let Some(pattern) = line.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t'])) else {
                let is_dir = line.starts_with('/');
                dirs.extend(is_dir.then(|| PathBuf::from(line.split('=').next().unwrap_or_default().trim_end())));
                continue;
            };
            for file in included_files(tree, pattern.trim()) {
                files += 1;
                texts.extend(tree.settings(&file).ok().filter(|_| files < MOST_FILES));
            }
        }
    }
    dirs
}

/// Returns the files that a pattern such as `/etc/ld.so.conf.d/*.conf` selects, by name.
fn included_files(tree: &dyn Tree, pattern: &str) -> Vec<PathBuf> {
    let pattern = Path::new("/etc").join(pattern);
    let (Some(dir), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Some((start, end)) = name.split_once('*') else { return vec![pattern] };
    let mut names = tree.list(dir);
    names.retain(|name| name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end));
    names.sort();
    names.iter().map(|name| dir.join(name)).collect()
}

pub(super) const fn native_machine() -> Machine {
    if cfg!(target_arch = "x86_64") {
        EM_X86_64
    } else if cfg!(target_arch = "aarch64") {
        EM_AARCH64
    } else if cfg!(target_arch = "x86") {
        EM_386
    } else {
        EM_NONE
    }
}

/// Returns the x86-64 psABI level of this processor.
#[cfg(target_arch = "x86_64")]
fn psabi_level() -> u8 {
    macro_rules! all { ($($feature:tt)*) => { $(is_x86_feature_detected!($feature))&&* } }
    let second = all!("cmpxchg16b" "popcnt" "sse3" "sse4.1" "sse4.2" "ssse3");
    let third = second && all!("avx" "avx2" "bmi1" "bmi2" "f16c" "fma" "lzcnt" "movbe");
    let fourth = third && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
    1 + u8::from(second) + u8::from(third) + u8::from(fourth)
}

#[cfg(not(target_arch = "x86_64"))]
const fn psabi_level() -> u8 {
    1
}

/// Returns the hardware directories of the old kind, which glibc supported up to 2.36: all combinations of `tls`, the
/// platform and the important hardware capabilities (`_dl_important_hwcaps`). Intel's processors have other platform
/// names (`cpu_features.c`).
fn legacy_dirs(for_machine: Machine, native: bool, platform: &mut String) -> Vec<String> {
    let mut names = Vec::new();
    if for_machine == EM_X86_64 {
        names.push("x86_64".to_owned());
        if native
            && psabi_level() >= 3
            && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("GenuineIntel"))
        {
            if psabi_level() >= 4 {
                names.push("avx512_1".to_owned());
            }
            "haswell".clone_into(platform);
        }
    }
    names.push(platform.clone());
    names.push("tls".to_owned());
    (1..1_usize << names.len())
        .rev()
        .map(|mask| {
            let parts = (0..names.len()).rev().filter(|bit| mask >> bit & 1 == 1).map(|bit| names[bit].as_str());
            parts.collect::<Vec<_>>().join("/")
        })
        .collect()
}

/// Returns musl's directories, each with the path file that lists it; without a path file, the compiled-in ones.
pub(super) fn musl_dirs(interpreter: &Path, tree: &dyn Tree) -> Vec<(PathBuf, Option<PathBuf>)> {
    // `/lib/ld-musl-x86_64.so.1` reads `/etc/ld-musl-x86_64.path`: `etc` and `lib` have the same parent directory.
    let name = interpreter.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let arch = name.strip_prefix("ld-musl-").and_then(|rest| rest.split('.').next()).unwrap_or_default();
    let prefix = interpreter.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let file = prefix.join(format!("etc/ld-musl-{arch}.path"));
    match tree.settings(&file) {
        Ok(text) => text
            .split(|byte| matches!(byte, b':' | b'\n'))
            .filter(|dir| !dir.is_empty())
            .map(|dir| (path_of(dir), Some(file.clone())))
            .collect(),
        Err(_) => ["/lib", "/usr/local/lib", "/usr/lib"].iter().map(|dir| (dir.into(), None)).collect(),
    }
}
