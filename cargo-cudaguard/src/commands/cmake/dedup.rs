//! Suppresses findings that were already reported in this build directory. Targets of one project share compiler and
//! toolkit, so the same problem is reported only once.
//!
//! A record is valid until an input of the target is newer than it: if a compiler would repeat a warning, the finding
//! is reported again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cudaguard::internal::digest::Digest;
use cudaguard::internal::finding::Finding;

/// The directory of records, below the build directory.
const DIR: &str = "CMakeFiles/cudaguard-said";

/// Returns the modification time of a file.
pub(super) fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|facts| facts.modified()).ok()
}

/// Returns the findings that were not reported for this configuration since the inputs changed, and records them as
/// reported.
pub(super) fn retain_unreported(
    findings: Vec<Finding>,
    target: &str,
    build: &Path,
    configuration: &str,
    inputs: &[PathBuf],
) -> Vec<Finding> {
    // A finding about a property of the target, such as `CUDA_ARCHITECTURES of app`, counts as the same for each
    // target.
    let own = format!(" of {target}");
    let newest = inputs.iter().filter_map(|path| modified(path)).max().unwrap_or(SystemTime::UNIX_EPOCH);
    let dir = build.join(DIR);
    findings
        .into_iter()
        .filter(|finding| {
            let text = remove_words(&finding.clone().with_component("").render(), &own);
            let mut digest = Digest::new();
            digest.push_text(configuration).push_text(&text);
            let record = dir.join(format!("{}-{digest}", finding.code));
            if modified(&record).is_some_and(|reported_at| reported_at < newest) {
                let _ = fs::remove_file(&record);
            }
            // If several targets are checked in parallel, only one creates the record. If it cannot be created, all
            // findings are reported.
            let made =
                fs::create_dir_all(&dir).and_then(|()| fs::File::options().write(true).create_new(true).open(&record));
            !made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
        })
        .collect()
}

/// Removes the phrase from the text, except if a longer word begins with it.
fn remove_words(text: &str, words: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(words) {
        kept.push_str(before);
        if after.starts_with(|next: char| next.is_alphanumeric() || "_-.+".contains(next)) {
            kept.push_str(words);
        }
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cudaguard::internal::finding::{MessageTemplate, Values};

    use super::*;

    #[test]
    fn finding_repeats_after_input_changes() {
        let scratch = tempfile::tempdir().unwrap();
        let build = scratch.path();
        let input = build.join("cuda.h");
        fs::write(&input, "").unwrap();
        let finding = |text: &str, component: &str| {
            MessageTemplate::ToolkitMixed.to_finding(&Values::default().with("root", text).with("component", component))
        };
        let reported_at = |findings: Vec<Finding>| {
            retain_unreported(findings, "app", build, "Debug", std::slice::from_ref(&input)).len()
        };
        assert_eq!(reported_at(vec![finding("a", "app 1.0"), finding("b", "app 1.0")]), 2);
        assert_eq!(reported_at(vec![finding("a", "other 1.0"), finding("c", "other 1.0")]), 1, "of another target too");
        let later = SystemTime::now() + Duration::from_secs(60);
        fs::File::options().write(true).open(&input).unwrap().set_modified(later).unwrap();
        assert_eq!(reported_at(vec![finding("a", "app 1.0")]), 1);
        // If no record can be written, all findings are reported.
        let no_dir = vec![finding("a", "app 1.0")];
        assert_eq!(retain_unreported(no_dir.clone(), "app", &input, "Debug", &[]), no_dir);
        assert_eq!(
            retain_unreported(no_dir.clone(), "app", build, "Coverage", &[]),
            no_dir,
            "each configuration is a build of its own"
        );
        // A finding that names the target is the same for the next target.
        let of = |target: &str| vec![finding(&format!("/inc (an include directory of {target})"), "app 1.0")];
        assert_eq!(retain_unreported(of("app"), "app", build, "Debug", &[]).len(), 1);
        assert_eq!(retain_unreported(of("other"), "other", build, "Debug", &[]).len(), 0);
        assert_eq!(
            retain_unreported(of("other"), "oth", build, "Debug", &[]).len(),
            1,
            "a name that begins so is another"
        );
    }
}
