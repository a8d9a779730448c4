//! Conflicts between CUDA's math header and the C library: since 2.41, glibc declares functions that
//! `crt/math_functions.h` declares too, and a C++ compiler accepts both only with equal exception specifications.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::host_compiler::HostCompiler;
use super::toolkit_files::read_lossy;
use super::{Limits, Sourced};
use crate::model::version::CudaVersion;
use crate::sys::subprocess;
use crate::text::lists::IteratorExt as _;

/// Functions, the minor of glibc 2 that added them, and the first CUDA whose declaration fits. Sources: release notes
/// of glibc 2.41 and 2.42; the headers of CUDA 11.8 to 13.5.
const SHARED: [(&[&str], u32, CudaVersion); 2] =
    [(&["sinpi", "cospi"], 41, CudaVersion::new(13, 0)), (&["rsqrt"], 42, CudaVersion::new(13, 2))];

/// Functions that the header and glibc declare differently, so no CUDA file compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MathConflict {
    /// CUDA's header.
    pub header: PathBuf,
    /// The functions, `sinpi, cospi`.
    pub functions: String,
    /// The release of glibc that the host compiler includes: `2.42`.
    pub glibc: String,
    /// The newest release of glibc that this toolkit supports.
    pub newest: String,
    /// The first toolkit that supports this glibc.
    pub first: CudaVersion,
    /// The host compiler.
    pub compiler: Sourced<PathBuf>,
}

/// Checks the header next to the `crt/host_config.h` of the compiling toolkit against the glibc of the host compiler.
/// Runs the host compiler only if the header has declarations without an exception specification.
pub(super) fn detect_conflict(
    limits: Option<&Limits>,
    host: Option<&HostCompiler>,
    variables: Option<&BTreeMap<String, OsString>>,
    patience: Duration,
) -> Option<MathConflict> {
    let header = Path::new(&limits?.source).with_file_name("math_functions.h");
    let text = read_lossy(&header)?;
    let mut unguarded = Vec::new();
    for (functions, minor, first) in SHARED {
        for function in functions.iter().filter(|function| is_unguarded(&text, function)) {
            unguarded.push((*function, minor, first));
        }
    }
    if unguarded.is_empty() {
        return None;
    }
    let host = host?;
    let arguments = ["-x", "c++", "-E", "-dM", "-include", "features.h", "/dev/null"];
    let macros = subprocess::run_with_timeout(&host.path, &arguments, variables, patience).ok()?.out;
    let glibc = parse_glibc_minor(&macros)?;
    unguarded.retain(|(_, minor, _)| *minor <= glibc);
    Some(MathConflict {
        header,
        functions: unguarded.iter().map(|(function, ..)| *function).join(", "),
        glibc: format!("2.{glibc}"),
        newest: format!("2.{}", unguarded.iter().map(|(_, minor, _)| minor - 1).min()?),
        first: unguarded.iter().map(|(.., first)| *first).max()?,
        compiler: Sourced::new(host.path.clone(), host.source.clone()),
    })
}

/// Returns true if the header declares `double FUNCTION(double)` without anything between the argument list and the
/// semicolon.
fn is_unguarded(text: &str, function: &str) -> bool {
    let call = format!(" {function}(double");
    let declarations = text.match_indices(&call).filter_map(|(at, _)| {
        let line = text[..at].rsplit('\n').next()?;
        let rest = text[at..].split_once(')')?.1;
        (line.contains("extern") && line.contains("double")).then(|| rest.trim_start().starts_with(';'))
    });
    declarations.into_iter().any(|bare| bare)
}

/// Parses the minor of glibc 2 from the macros that a compiler prints. `None` for another C library.
fn parse_glibc_minor(macros: &str) -> Option<u32> {
    let [major, minor] = ["#define __GLIBC__ ", "#define __GLIBC_MINOR__ "]
        .map(|name| macros.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u32>().ok()));
    minor.filter(|_| major == Some(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_without_specification_are_found() {
        const DECLARED: &str = "extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double                 ";
        for (rest, expected) in [
            ("rsqrt(double x);", true),
            ("rsqrt(double x) ;", true),
            ("rsqrt(double x) _NV_RSQRT_SPECIFIER;", false),
            ("rsqrt(double x) noexcept(true);", false),
            ("sinpi(double x);", false),
            ("", false),
        ] {
            assert_eq!(is_unguarded(&format!("/**\n * rsqrt(double x);\n */\n{DECLARED}{rest}\n"), "rsqrt"), expected);
        }
    }

    #[test]
    fn glibc_macros_are_parsed() {
        for (macros, minor) in [
            ("#define __GLIBC_MINOR__ 42\n#define __GLIBC__ 2\n", Some(42)),
            ("#define __GLIBC__ 2\n", None),
            ("#define __UCLIBC__ 1\n", None),
            ("g++ (GCC) 12.2.0\n", None),
        ] {
            assert_eq!(parse_glibc_minor(macros), minor, "{macros}");
        }
    }
}
