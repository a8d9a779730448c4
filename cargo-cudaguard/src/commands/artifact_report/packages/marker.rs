//! Markers of pip requirements: the platforms and versions of Python for which a requirement is. Six variables are known.

use std::cmp::Ordering;

use super::package_version::{compare, numbers_of, sign_accepts};
use crate::binary::file::TargetOs;

/// The platform on which the package is installed, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkerPlatform {
    is_windows: Option<bool>,
    /// The processor, as Linux names it: `x86_64`, `aarch64`.
    processor: Option<&'static str>,
    /// The version of Python.
    python: Option<(u32, u32)>,
}

impl MarkerPlatform {
    /// Creates the platform of binaries for this system and processor, installed in this directory.
    pub(super) fn new(os: Option<TargetOs>, processor: &str, dir: &str) -> Self {
        let python = dir.rsplit(['/', '\\']).find_map(|part| {
            let (major, minor) = part.strip_prefix("python")?.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        let processor = ["x86_64", "aarch64"].into_iter().find(|known| *known == processor);
        Self { is_windows: os.map(|os| os == TargetOs::Windows), processor, python }
    }

    /// Returns true if a requirement with this marker applies. `None` if that is unknown. Requirements of an extra apply if the user
    /// chooses it.
    pub(super) fn matches(self, marker: &str) -> Option<bool> {
        // Each parenthesis is a call below.
        const MOST_TOKENS: usize = 256;
        let tokens = tokens_of(marker);
        if tokens.len() > MOST_TOKENS {
            return None;
        }
        let mut rest = tokens.as_slice();
        self.any(&mut rest).filter(|_| rest.is_empty())
    }

    fn any(self, rest: &mut &[&str]) -> Option<bool> {
        let mut found = self.all(rest);
        while take(rest, "or") {
            found = match (found, self.all(rest)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        found
    }

    fn all(self, rest: &mut &[&str]) -> Option<bool> {
        let mut found = self.one(rest);
        while take(rest, "and") {
            found = match (found, self.one(rest)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        found
    }

    fn one(self, rest: &mut &[&str]) -> Option<bool> {
        if take(rest, "(") {
            return self.any(rest).filter(|_| take(rest, ")"));
        }
        let (variable, sign, text);
        (variable, *rest) = rest.split_first()?;
        (sign, *rest) = rest.split_first()?;
        (text, *rest) = rest.split_first()?;
        self.compare(variable, sign, text.strip_prefix(['"', '\''])?.trim_end_matches(['"', '\'']))
    }

    /// Compares a variable of the environment with a text. Other variables and operators are unknown.
    fn compare(self, variable: &str, sign: &str, text: &str) -> Option<bool> {
        let [of_linux, of_windows] = match variable {
            "extra" => return Some(true),
            "python_version" => return self.compare_python(sign, text),
            "sys_platform" => ["linux", "win32"],
            "platform_system" => ["Linux", "Windows"],
            "os_name" => ["posix", "nt"],
            "platform_machine" => match self.processor? {
                "x86_64" => ["x86_64", "AMD64"],
                "aarch64" => ["aarch64", "ARM64"],
                _ => return None,
            },
            _ => return None,
        };
        let value = if self.is_windows? { of_windows } else { of_linux };
        match sign {
            "==" => Some(value == text),
            "!=" => Some(value != text),
            _ => None,
        }
    }

    /// NVIDIA's packages need Python 3, so this much of an unknown version is known.
    fn compare_python(self, sign: &str, text: &str) -> Option<bool> {
        let wanted = numbers_of(text)?;
        let order = match self.python {
            // The patch level is unknown.
            Some((major, minor)) if wanted.len() <= 2 => compare(&[major, minor], &wanted),
            None if compare(&wanted, &[3]) != Ordering::Greater => Ordering::Greater,
            _ => return None,
        };
        sign_accepts(sign, order)
    }
}

fn take(rest: &mut &[&str], token: &str) -> bool {
    let is_it = rest.first() == Some(&token);
    *rest = &rest[usize::from(is_it)..];
    is_it
}

/// Returns names, operators, brackets, and texts with their opening quote.
fn tokens_of(marker: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), marker.trim_start());
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
        let is_sign = |c: char| "<>=!~".contains(c);
        let end = match first {
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if is_sign(first) => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_evaluated() {
        let linux = MarkerPlatform::new(Some(TargetOs::Linux), "x86_64", "env/lib/python3.12/site-packages");
        let unknown = MarkerPlatform::default();
        for (marker, here, elsewhere) in [
            ("sys_platform == \"win32\"", Some(false), None),
            ("platform_system == 'Linux' and platform_machine == 'x86_64'", Some(true), None),
            ("platform_machine == 'aarch64'", Some(false), None),
            ("os_name != 'nt'", Some(true), None),
            ("'linux' in sys_platform", None, None),
            ("sys_platform not in 'win32 darwin'", None, None),
            ("python_version < \"3.0\"", Some(false), Some(false)),
            ("python_version >= '3'", Some(true), Some(true)),
            ("python_version < \"3.13\"", Some(true), None),
            ("\"3.9\" > python_version", None, None),
            ("python_version == '3.12'", Some(true), None),
            ("python_full_version < '3.13.4'", None, None),
            ("extra == \"cuda\" and sys_platform == 'win32'", Some(false), None),
            ("extra == 'cuda'", Some(true), Some(true)),
            ("sys_platform == 'win32' or (python_version < '3.0' and extra == 'a')", Some(false), None),
            ("platform_release == '6'", None, None),
            ("platform_release == '6' and python_version < '3.0'", Some(false), Some(false)),
            ("platform_release == '6' or extra == 'a'", Some(true), Some(true)),
            ("sys_platform ==", None, None),
            ("sys_platform == 'linux' linux", None, None),
            ("(python_version > '2.7'", None, None),
            ("python_version > 'x'", None, None),
            ("\"", None, None),
            ("", None, None),
            // A call for each of them would exceed the stack.
            (&"(".repeat(1 << 20), None, None),
        ] {
            assert_eq!(linux.matches(marker), here, "{marker}");
            assert_eq!(unknown.matches(marker), elsewhere, "{marker}");
        }
    }
}
