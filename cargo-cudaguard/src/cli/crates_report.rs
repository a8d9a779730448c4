//! Formats the crates that reach CUDA for `check`, as text and as JSON.

use std::fmt::Write as _;

use crate::knowledge::vendor::CUDNN;
use serde::Serialize;

use super::json_output::VersionView;
use crate::knowledge::crates::table::{self, Mode};
use crate::knowledge::crates::{ArchUse, CrateUse};

/// The part of a report about a crate without a row in the table.
pub(crate) const UNKNOWN: &str = "not known to cudaguard: only the linked file is judged";

/// Returns the crates that the list contains: each one once, with the shortest path.
fn listed(uses: &[CrateUse]) -> impl Iterator<Item = &CrateUse> {
    let same = |one: &CrateUse, other: &CrateUse| {
        (&one.of.name, &one.of.version, one.of.tool) == (&other.of.name, &other.of.version, other.of.tool)
    };
    let is_first = move |(at, one): &(usize, &CrateUse)| !uses[..*at].iter().any(|other| same(one, other));
    uses.iter().enumerate().filter(is_first).map(|(_, one)| one).filter(|one| one.of.is_listed())
}

/// Returns why a crate without a row is in the list. `None`: it has a row.
fn unknown_because(one: &CrateUse) -> Option<String> {
    let of = &one.of;
    if of.table_row().is_some() {
        return None;
    }
    let links = || of.links.as_ref().map_or_else(String::new, |links| format!("links = \"{links}\""));
    Some(match &of.assumed {
        Some(evidence) => evidence.clone(),
        None if table::is_known(&of.name) => "other versions are known".to_owned(),
        None => links(),
    })
}

/// Returns how a crate reaches its libraries, and their names. The library of the driver exists only as a shared one.
fn library_groups(one: &CrateUse) -> Vec<(&'static str, Vec<String>)> {
    let (driver, others): (Vec<&str>, Vec<&str>) =
        one.of.library_stems().into_iter().partition(|stem| one.of.link_mode() == Mode::Static && *stem == "cuda");
    let how = match one.of.link_mode() {
        Mode::Linked => "linked",
        Mode::Static => "static",
        Mode::Loaded => "loaded",
        Mode::None | Mode::Unknown => return Vec::new(),
    };
    let names = |stems: Vec<&str>| stems.into_iter().map(|stem| format!("lib{stem}")).collect::<Vec<_>>();
    [(how, names(others)), ("linked", names(driver))].into_iter().filter(|(_, names)| !names.is_empty()).collect()
}

/// Returns the reason for the level of a crate, its libraries and its tools, in one line.
fn describe(one: &CrateUse) -> String {
    if let Some(why) = unknown_because(one) {
        return format!("{UNKNOWN} ({why})");
    }
    let mut parts = Vec::new();
    if let Some(level) = &one.level {
        parts.push(format!("bindings for CUDA {} ({})", level.value, level.by));
    } else if one.of.table_row().is_some_and(|row| row.level.is_some() || row.header_level.is_some()) {
        parts.push("bindings for an unknown CUDA version".to_owned());
    }
    if let Some(library) = &one.library {
        parts.push(format!("bindings for {} {} ({})", CUDNN.name, short_version(library.value), library.by));
    }
    for (how, names) in library_groups(one) {
        let how = match how {
            "loaded" => "loads at run time",
            "static" => "links statically",
            _ => "links",
        };
        parts.push(format!("{how} {}", names.join(", ")));
    }
    if let Some(compiler) = &one.compiler {
        let release = compiler.release.map(|release| format!(" {release}")).unwrap_or_default();
        parts.push(format!("runs nvcc{release}: {} ({})", compiler.path.display(), compiler.by));
    }
    match &one.arch {
        Some(ArchUse::Named { arch, variable, text }) => {
            parts.push(format!("compiles for sm_{arch} ({variable}={text})"));
        }
        Some(ArchUse::BuildSystem { variable, .. }) => {
            parts.push(format!("compiles for the GPU that nvidia-smi reports ({variable} is not set)"));
        }
        None => {}
    }
    if one.of.tool {
        parts.push(format!("in the build script of {}", one.of.calling_crate()));
    }
    if parts.is_empty() {
        parts.push("uses CUDA through other crates or libraries".to_owned());
    }
    parts.join("; ")
}

/// Lists the crates of a package that reach CUDA, one a line.
pub(crate) fn render(uses: &[CrateUse]) -> String {
    let mut text = String::new();
    for (index, one) in listed(uses).enumerate() {
        let title = if index == 0 { "crates" } else { "" };
        let _ = writeln!(text, "{title:<9} {:<22} {}", one.of.describe(), describe(one));
    }
    text
}

/// Returns the crates of a package that reach CUDA as JSON. Unknown facts are absent.
pub(crate) fn views(uses: &[CrateUse]) -> Vec<CrateView<'_>> {
    listed(uses).map(CrateView::new).collect()
}

/// Returns the crates without a row in the table, each with the reason why it is in the list.
pub(crate) fn not_judged(uses: &[CrateUse]) -> Vec<String> {
    let unknown = listed(uses).filter_map(|one| Some((one, unknown_because(one)?)));
    unknown.map(|(one, why)| format!("{}: {UNKNOWN} ({why})", one.of.describe())).collect()
}

#[derive(Serialize)]
pub(crate) struct CrateView<'a> {
    name: &'a str,
    version: &'a str,
    path: &'a [String],
    known: bool,
    build_script: bool,
    level: Option<VersionView>,
    cudnn: Option<VersionView>,
    libraries: Vec<LibraryView>,
    nvcc: Option<NvccView<'a>>,
    arch: Option<VersionView>,
    not_judged: Option<String>,
}

#[derive(Serialize)]
struct LibraryView {
    name: String,
    how: &'static str,
}

#[derive(Serialize)]
struct NvccView<'a> {
    path: String,
    source: &'a str,
    version: Option<String>,
}

impl<'a> CrateView<'a> {
    fn new(one: &'a CrateUse) -> Self {
        let mut libraries = Vec::new();
        for (how, names) in library_groups(one) {
            libraries.extend(names.into_iter().map(|name| LibraryView { name, how }));
        }
        Self {
            name: &one.of.name,
            version: &one.of.version,
            path: &one.of.path,
            known: one.of.table_row().is_some(),
            build_script: one.of.tool,
            level: one.level.as_ref().map(|level| VersionView::new(&level.value, level.by.clone())),
            cudnn: one
                .library
                .as_ref()
                .map(|library| VersionView::new(&short_version(library.value), library.by.clone())),
            libraries,
            nvcc: one.compiler.as_ref().map(|compiler| NvccView {
                path: compiler.path.display().to_string(),
                source: &compiler.by,
                version: compiler.release.map(|release| release.to_string()),
            }),
            arch: match &one.arch {
                Some(ArchUse::Named { arch, variable, .. }) => {
                    Some(VersionView::new(&format!("sm_{arch}"), variable.clone()))
                }
                _ => None,
            },
            not_judged: unknown_because(one).map(|why| format!("{UNKNOWN} ({why})")),
        }
    }
}

/// `9` or `9.1`.
fn short_version((major, minor): (u32, Option<u32>)) -> String {
    minor.map_or_else(|| major.to_string(), |minor| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::knowledge::crates::{Crate, detect_crates};
    use cudaguard::internal::env::Env;
    use cudaguard::internal::toolchain::Toolchain;

    fn uses(crates: &[Crate]) -> Vec<CrateUse> {
        let env = Env::from_variables([], "/");
        detect_crates(&env, crates, &Toolchain::default(), Path::new("/nowhere"), false)
    }

    fn one(name: &str, version: &str, features: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            version: version.to_owned(),
            features: features.iter().map(|one| (*one).to_owned()).collect(),
            path: vec!["app".to_owned(), format!("{name} {version}")],
            ..Crate::default()
        }
    }

    #[test]
    fn crates_are_described_by_level_and_libraries() {
        let uses = uses(&[
            one("cudarc", "0.19.10", &["driver", "runtime", "cuda-12080", "static-linking"]),
            one("cudarc", "0.19.10", &["driver", "runtime", "cuda-12080", "static-linking"]),
            one("cudarc", "0.17.8", &["driver", "cudnn", "cuda-12080", "dynamic-loading"]),
            one("candle-core", "0.11.1", &[]),
            one("candle-core", "0.11.0", &["cuda"]),
            one("torch-sys", "0.26.0", &[]),
        ]);
        assert_eq!(
            render(&uses),
            "crates    cudarc 0.19.10         bindings for CUDA 12.8 (feature cuda-12080); links statically libcudart; \
             links libcuda\n          \
             cudarc 0.17.8          bindings for CUDA 12.8 (feature cuda-12080); bindings for cuDNN 9 (feature cudnn); \
             loads at run time libcuda, libcudnn\n          \
             candle-core 0.11.0     uses CUDA through other crates or libraries\n          \
             torch-sys 0.26.0       links libtorch_cpu\n"
        );
        assert!(not_judged(&uses).is_empty());
    }

    #[test]
    fn unknown_crates_are_not_judged() {
        let mut named = one("my-gpu", "1.0.0", &[]);
        named.links = Some("cuda".to_owned());
        let mut assumed = one("fast-sum", "2.0.0", &[]);
        assumed.assumed = Some("its build script links libcublas".to_owned());
        let uses = uses(&[named, assumed, one("cudarc", "0.99.0", &["driver"])]);
        let expected = [
            "my-gpu 1.0.0: not known to cudaguard: only the linked file is judged (links = \"cuda\")",
            "fast-sum 2.0.0: not known to cudaguard: only the linked file is judged (its build script links libcublas)",
            "cudarc 0.99.0: not known to cudaguard: only the linked file is judged (other versions are known)",
        ];
        assert_eq!(not_judged(&uses), expected);
        assert_eq!(render(&uses).matches(UNKNOWN).count(), 3);
        assert!(views(&uses).iter().all(|one| !one.known));
    }
}
