//! The name of a program or image, as requirements use it.

use crate::cli::option_error::OptionError;
use std::path::Path;

/// The name of a program: an image without tag and digest, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramName {
    /// A name that Kubernetes accepts for an object.
    pub(super) object: String,
}

/// Longest name of an object; some kinds add a suffix, and labels accept 63 characters.
const LONGEST: usize = 57;

impl ProgramName {
    /// Parses `--name`: an image as a pod names it, or any name.
    pub(super) fn parse(text: &str) -> Result<Self, OptionError> {
        let image = text.split('@').next().unwrap_or_default();
        // A colon before the last slash belongs to the port of a registry.
        let slash = image.rfind('/').map_or(0, |at| at + 1);
        let image = match image[slash..].find(':') {
            Some(tag) => &image[..slash + tag],
            None => image,
        };
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
        let own = image.rsplit('/').next().unwrap_or_default();
        if own.is_empty() || !image.chars().all(is_valid) || !own.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(OptionError::new("--name", text, "a name such as my-model or registry.example/team/my-model"));
        }
        Ok(Self { object: object_name(own) })
    }

    /// Derives the name from a file: of a package only its own name, without version and platform.
    pub(super) fn from_file(file: &Path) -> Self {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        Self { object: object_name(&package_name(&name)) }
    }
}

/// `my_model-1.0-cp311-cp311-linux_x86_64.whl` → `my_model`.
fn package_name(file: &str) -> String {
    let first = |text: &str, mark: char| text.split(mark).next().unwrap_or_default().to_owned();
    // Name, version and build of a conda package.
    let conda = |text: &str| text.rsplitn(3, '-').nth(2).unwrap_or(text).to_owned();
    let ends = |ending: &str| file.strip_suffix(ending);
    if let Some(rest) = ends(".whl") {
        return first(rest, '-');
    }
    if let Some(rest) = ends(".deb") {
        return first(rest, '_');
    }
    if let Some(rest) = ends(".conda") {
        return conda(rest);
    }
    let archives = [".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar", ".zip"];
    archives.iter().find_map(|ending| ends(ending)).unwrap_or(file).to_owned()
}

fn object_name(name: &str) -> String {
    let name: String = name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut name = name.trim_matches('-');
    if name.len() > LONGEST {
        // Ends with a whole word.
        let end = name[..LONGEST].rfind('-').filter(|end| *end > 0).unwrap_or(LONGEST);
        name = name[..end].trim_end_matches('-');
    }
    if name.is_empty() { "program".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_lose_tag_and_digest() {
        for (text, object) in [
            ("my-model", "my-model"),
            ("my-model:1.2", "my-model"),
            ("registry.example:5000/team/app:1", "app"),
            ("ghcr.io/team/My.App@sha256:00", "my-app"),
        ] {
            assert_eq!(ProgramName::parse(text).unwrap().object, object, "{text}");
        }
        for text in ["", "a b", "a\"b", "team/", ":1", "-x", "a(b"] {
            assert!(ProgramName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn packages_lose_version_and_platform() {
        for (file, expected) in [
            ("my_model-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "my-model"),
            ("libfoo-cuda_1.2-3_amd64.deb", "libfoo-cuda"),
            ("pytorch-gpu-2.1.0-cuda120py311.conda", "pytorch-gpu"),
            ("image.tar.gz", "image"),
            ("target/release/my-model", "my-model"),
            ("libapp.so", "libapp-so"),
        ] {
            assert_eq!(ProgramName::from_file(Path::new(file)).object, expected, "{file}");
        }
        let long = ProgramName::from_file(Path::new(&format!("{}end", "word-".repeat(20)))).object;
        assert!(long.len() <= LONGEST && long.ends_with("word"), "{long}");
    }
}
