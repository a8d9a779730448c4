//! Identifies the host compiler that nvcc would call, and its release. Another module runs the compiler; this one
//! parses its output.

use std::path::{Path, PathBuf};

use crate::model::version::Version;

/// A host compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCompiler {
    /// The program.
    pub path: PathBuf,
    /// The source of the choice: `NVCC_CCBIN`, `-ccbin in NVCC_PREPEND_FLAGS`, `PATH`, …
    pub source: String,
    /// The vendor.
    pub family: CompilerFamily,
    /// Its release; `None` if it prints none.
    pub version: Option<Version>,
}

/// The source of a compiler that no variable or flag names: nvcc calls the one that it finds.
pub(super) const UNNAMED: &str = "first in PATH";

impl HostCompiler {
    /// Returns family and release, `gcc 12.2.0`; `None` if the release is unknown.
    pub fn display_name(&self) -> Option<String> {
        display_name(self.family, self.version)
    }

    /// Converts an entry of `.comment` in an object to the manifest's form: `GCC: (GNU) 13.2.0` → `gcc 13.2.0`.
    /// `None` for linkers, rustc and unknown compilers.
    pub fn in_comment(text: &str) -> Option<String> {
        let (family, version) = match text.strip_prefix("GCC: ") {
            Some(rest) => (CompilerFamily::Gcc, parse_gnu_version(rest)),
            None => parse_version_output(text),
        };
        display_name(family, version)
    }

    /// Returns true if a variable or flag chose it for nvcc.
    pub fn is_named(&self) -> bool {
        self.source != UNNAMED
    }
}

/// Compiler vendors that nvcc distinguishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompilerFamily {
    /// GNU.
    Gcc,
    /// LLVM.
    Clang,
    /// Another vendor, or unknown.
    #[default]
    Other,
}

impl CompilerFamily {
    /// Returns `gcc` or `clang`; empty for another vendor.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
            Self::Other => "",
        }
    }
}

/// The host compilers that a toolkit accepts, according to its `crt/host_config.h`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The newest accepted major of gcc.
    pub gcc_max: Option<u32>,
    /// The first major of clang that is too new.
    pub clang_below: Option<u32>,
    /// The path of that file.
    pub source: String,
}

fn display_name(family: CompilerFamily, version: Option<Version>) -> Option<String> {
    Some(format!("{} {}", family.name(), version?)).filter(|_| family != CompilerFamily::Other)
}

/// Parses the release from the output of `g++ --version`.
pub(super) fn parse_version_output(text: &str) -> (CompilerFamily, Option<Version>) {
    let first = text.lines().next().unwrap_or_default();
    if let Some((_, rest)) = first.split_once("clang version ") {
        return (CompilerFamily::Clang, leading_version(rest));
    }
    if !text.contains("Free Software Foundation") {
        return (CompilerFamily::Other, None);
    }
    (CompilerFamily::Gcc, parse_gnu_version(first))
}

/// Parses the version after the first parenthesis: `g++ (Debian 12.2.0-14) 12.2.0`,
/// `gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)`.
fn parse_gnu_version(text: &str) -> Option<Version> {
    text.split_once(')').map_or(text, |(_, rest)| rest).split_whitespace().find_map(leading_version)
}

/// Returns true if both programs are drivers of one compiler: `c++` → `x86_64-linux-gnu-g++-12` and `gcc` →
/// `x86_64-linux-gnu-gcc-12`.
pub(super) fn is_same_compiler(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(|path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name =
            real.file_name().unwrap_or_default().to_string_lossy().replace("clang++", "clang").replace("g++", "gcc");
        real.with_file_name(name)
    });
    one == other
}

/// Parses the version at the start of a text: `14.0.6-1` → 14.0.6, `15` → 15.0.0.
fn leading_version(text: &str) -> Option<Version> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let text = text[..end].trim_end_matches('.');
    text.parse().ok().or_else(|| text.parse().ok().map(|major| Version::new(major, 0, 0)))
}

/// Parses the limits from the error messages in a `crt/host_config.h`.
pub(super) fn parse_limits(text: &str) -> (Option<u32>, Option<u32>) {
    let [gcc, clang] = ["gcc versions later than ", "clang version must be less than "].map(|before| {
        let (_, rest) = text.split_once(before)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    });
    (gcc, clang)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_versions_are_parsed() {
        const FSF: &str = "\nCopyright (C) 2022 Free Software Foundation, Inc.\n";
        for (text, family, version) in [
            (format!("g++ (Debian 12.2.0-14+deb12u1) 12.2.0{FSF}"), CompilerFamily::Gcc, Some("12.2.0")),
            (format!("gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3){FSF}"), CompilerFamily::Gcc, Some("11.4.1")),
            (
                format!("x86_64-conda-linux-gnu-c++ (conda-forge gcc 13.3.0-1) 13.3.0{FSF}"),
                CompilerFamily::Gcc,
                Some("13.3.0"),
            ),
            (format!("gcc (GCC) 15{FSF}"), CompilerFamily::Gcc, Some("15.0")),
            (
                "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n".to_owned(),
                CompilerFamily::Clang,
                Some("14.0.6"),
            ),
            ("Ubuntu clang version 18.1.3 (1ubuntu1)\n".to_owned(), CompilerFamily::Clang, Some("18.1.3")),
            ("icpx 2024".to_owned(), CompilerFamily::Other, None),
            (String::new(), CompilerFamily::Other, None),
        ] {
            assert_eq!(
                parse_version_output(&text),
                (family, version.map(|version| version.parse().unwrap())),
                "{text}"
            );
        }
    }

    #[test]
    fn object_comments_name_compiler() {
        for (text, expected) in [
            ("GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", Some("gcc 12.2.0")),
            ("GCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-20)", Some("gcc 8.5.0")),
            ("GCC: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", Some("gcc 11.4.0")),
            ("Debian clang version 14.0.6", Some("clang 14.0.6")),
            ("clang version 18.1.3 (https://github.com/llvm/llvm-project 3b5b5c1)", Some("clang 18.1.3")),
            ("rustc version 1.86.0 (05f9846f8 2025-03-31)", None),
            ("Linker: LLD 19.1.7", None),
            ("mold 1.10.1 (compatible with GNU ld)", None),
            ("GCC: (nothing)", None),
            ("", None),
        ] {
            assert_eq!(HostCompiler::in_comment(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn toolkit_compiler_limits_are_known() {
        const TEXT: &str = "#error -- unsupported GNU version! gcc versions later than 11 are not supported! The nvcc \
                            flag\n#error -- unsupported clang version! clang version must be less than 15 and greater \
                            than 3.2 .";
        assert_eq!(parse_limits(TEXT), (Some(11), Some(15)));
        assert_eq!(parse_limits("#error -- unsupported GNU version! gcc versions later than"), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn parsers_never_panic(text: String) {
            let _ = (parse_version_output(&text), parse_limits(&text));
        }
    }
}
