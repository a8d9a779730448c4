//! Versions of packages with all of their numbers, clauses that accept them, and CUDA versions in their names.

use std::cmp::Ordering;

use cudaguard::internal::version::CudaVersion;

use super::PackageKind;

/// Returns the numbers of a release. `None` if other parts than a local version or a build follow, such as `rc1`.
pub(super) fn numbers_of(version: &str) -> Option<Vec<u32>> {
    version.split(['+', '-']).next().unwrap_or_default().trim().split('.').map(|number| number.parse().ok()).collect()
}

/// Compares two releases. Missing numbers are 0.
pub(super) fn compare(one: &[u32], other: &[u32]) -> Ordering {
    let number = |all: &[u32], at: usize| all.get(at).copied().unwrap_or_default();
    let orders = (0..one.len().max(other.len())).map(|at| number(one, at).cmp(&number(other, at)));
    orders.fold(Ordering::Equal, Ordering::then)
}

/// Returns true if a sign accepts a version whose order to that of the clause is this. `None` for other signs.
pub(super) fn sign_accepts(sign: &str, order: Ordering) -> Option<bool> {
    match sign {
        "==" => Some(order == Ordering::Equal),
        "!=" => Some(order != Ordering::Equal),
        "<" => Some(order == Ordering::Less),
        "<=" => Some(order != Ordering::Greater),
        ">" => Some(order == Ordering::Greater),
        ">=" => Some(order != Ordering::Less),
        _ => None,
    }
}

/// A clause of a requirement: `>=9.1`, `==9.1.*`, and `12.4` in conda.
pub(super) struct Clause<'a> {
    /// `==` also for a clause of conda without a sign.
    pub(super) sign: &'a str,
    /// The version as written.
    pub(super) version: &'a str,
    /// Set if the clause is for all versions with this prefix.
    pub(super) is_prefix: bool,
}

impl<'a> Clause<'a> {
    /// Parses clauses that are separated by commas.
    pub(super) fn parse_all(kind: PackageKind, clauses: &'a str) -> impl Iterator<Item = Self> {
        clauses.split(',').map(str::trim).map(move |clause| {
            let at = clause.find(|c: char| c.is_ascii_digit()).unwrap_or(clause.len());
            let (sign, version) = (clause[..at].trim(), clause[at..].trim());
            let is_prefix = version.contains('*') || kind == PackageKind::Conda && matches!(sign, "" | "=");
            let sign = if matches!(sign, "" | "=" | "===") { "==" } else { sign };
            Self { sign, version, is_prefix }
        })
    }

    /// Returns true if it accepts a version, or may accept it.
    fn allows(&self, version: &[u32]) -> bool {
        // `<10.0a0` is the first release of 10.0 and all before it.
        let text = self.version.trim_end_matches(['*', '.']).trim_end_matches("a0");
        let Some(wanted) = numbers_of(text) else { return true };
        let order = compare(version, &wanted);
        let has_prefix = |count: usize| {
            let number = |at: usize| version.get(at).copied().unwrap_or_default();
            wanted.iter().take(count).enumerate().all(|(at, wanted)| number(at) == *wanted)
        };
        match self.sign {
            "==" if self.is_prefix => has_prefix(wanted.len()),
            "!=" if self.is_prefix => !has_prefix(wanted.len()),
            "~=" => order != Ordering::Less && has_prefix(wanted.len().saturating_sub(1)),
            sign => sign_accepts(sign, order).unwrap_or(true),
        }
    }
}

/// Returns true if all clauses accept a version, or may accept it.
pub(super) fn clauses_allow(kind: PackageKind, clauses: &str, version: &str) -> bool {
    numbers_of(version).is_none_or(|version| Clause::parse_all(kind, clauses).all(|clause| clause.allows(&version)))
}

/// Parses `cu128` in the local part of a version as CUDA 12.8.
pub(super) fn cuda_of_tag(local: &str) -> Option<(&str, CudaVersion)> {
    let tag = local.split('.').find(|part| part.starts_with("cu"))?;
    Some((tag, cuda_of_digits(tag.strip_prefix("cu")?)?))
}

/// Parses a build string such as `cuda124py312h1_0` or `py3.11_cuda12.4_0` as CUDA 12.4. A major version alone is not a
/// release.
pub(super) fn cuda_of_build(build: &str) -> Option<CudaVersion> {
    let (_, rest) = build.split_once("cuda")?;
    let rest = rest.trim_start_matches(['_', '-']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    if number.contains('.') { cuda_in(number) } else { cuda_of_digits(number).filter(|_| number.len() == 3) }
}

/// Parses digits: `128` is 12.8, and `92` is 9.2.
fn cuda_of_digits(digits: &str) -> Option<CudaVersion> {
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some(CudaVersion::new(major.parse().ok()?, minor.parse().ok()?))
}

/// Parses the first two numbers of a version.
pub(super) fn cuda_in(text: &str) -> Option<CudaVersion> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some(CudaVersion::new(numbers.next()??, numbers.next().unwrap_or(Some(0))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_compare_all_numbers() {
        for (clauses, version, wheel, conda) in [
            ("==12.1.3.1", "12.1.3.1", true, true),
            ("==12.1.3.1", "12.1.3.2", false, false),
            ("==12.1.3.1", "12.1.3.1+local", true, true),
            ("==12.1.3", "12.1.3.1", false, false),
            ("==12.1.*", "12.1.3.1", true, true),
            ("12.1", "12.1.3.1", false, true),
            ("=12.1.3.2", "12.1.3.1", false, false),
            ("!=12.1.3.1", "12.1.3.1", false, false),
            ("!=12.1.*", "12.1.3.1", false, false),
            ("!=12.1.3", "12.1.3.1", true, true),
            (">12.1.3.1", "12.1.3.1", false, false),
            (">12.1.3.0,<12.2", "12.1.3.1", true, true),
            ("<12.1.3.1", "12.1.3.1", false, false),
            ("<12.1.3.1", "12.1.3.0", true, true),
            ("<=12.1.3.1", "12.1.3.1", true, true),
            (">=12.1.3.2", "12.1.3.1", false, false),
            (">=12,<13.0a0", "13.0.0", false, false),
            ("~=12.1", "12.9.3.1", true, true),
            ("~=12.1.3", "12.2.0.0", false, false),
            ("==12.1.3rc1", "12.1.3.1", true, true),
            (">=12", "12.0rc1", true, true),
            ("", "12.1.3.1", true, true),
        ] {
            assert_eq!(clauses_allow(PackageKind::Wheel, clauses, version), wheel, "{clauses} {version}");
            assert_eq!(clauses_allow(PackageKind::Conda, clauses, version), conda, "{clauses} {version}");
        }
    }
}
