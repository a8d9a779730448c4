//! A check phase of a Nix derivation: compares the compute capabilities of a nixpkgs configuration with the suitable
//! ones.
//!
//! `cudaCapabilities` has the format of nixpkgs' `config` (`"8.0"`, `"9.0a"`). Nix cannot express a driver.

use std::fmt::Write as _;

use cudaguard::internal::tables;
use cudaguard::internal::vendor::CUDNN;

use super::{RequirementsQuery, comment_lines, processor_comes_with};

pub(super) fn write_nix(asked: &RequirementsQuery<'_>) -> Result<String, String> {
    let rows = asked.fit_rows()?;
    let mut heading = asked.comment_heading(
        "Check phase of a Nix derivation: call this function and merge the result (//) into its attributes,",
    );
    heading
        .push("with cudaCapabilities of nixpkgs' config. The build fails if one of them is not compatible.".to_owned());
    heading.extend(processor_comes_with(asked, "the derivation's system"));
    heading.push(
        "Nix cannot express a driver: needsCuda is the CUDA version that the driver of the machine must support."
            .to_owned(),
    );
    if asked.placement.library.is_some() {
        heading.push(format!("It does not include {}, a dependency of the derivation.", CUDNN.name));
    }
    let mut text = comment_lines(&heading);
    text.push_str("{ cudaCapabilities }:\nlet\n  fit = [  # from here on, below there\n");
    for row in &rows {
        let version = |cc: Option<(u8, u8)>, none: &str| cc.map_or_else(|| none.to_owned(), tables::dotted_cc);
        let (from, below) = (version(row.from, "0"), version(row.below, "999"));
        let cuda = row.cuda.map(|cuda| format!(" needsCuda = \"{cuda}\";")).unwrap_or_default();
        let _ = writeln!(text, "    {{ from = \"{from}\"; below = \"{below}\";{cuda} }}");
    }
    let title: String =
        asked.file_names().chars().filter(|c| c.is_ascii_alphanumeric() || " ,.-_".contains(*c)).collect();
    let _ = write!(
        text,
        "  ];\n  number = cc: builtins.head (builtins.match \"([0-9]+[.][0-9]+)[af]?\" cc);\n  within = cc: row:\n    \
         builtins.compareVersions cc row.from >= 0 && builtins.compareVersions cc row.below < 0;\n  \
         unfit = builtins.filter (cc: !(builtins.any (within (number cc)) fit)) cudaCapabilities;\nin\n{{\n  \
         doInstallCheck = true;\n  installCheckPhase =\n    if unfit == [ ] then\n      \"runHook preInstallCheck; runHook postInstallCheck\"\n    \
         else\n      \"echo '{title}: not fit for compute capability ${{toString unfit}}' >&2; exit 1\";\n}}\n"
    );
    Ok(text)
}
