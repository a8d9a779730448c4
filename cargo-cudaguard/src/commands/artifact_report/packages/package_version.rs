//! Versions of packages with all of their numbers, and clauses that accept them.

use std::cmp::Ordering;

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

/// Returns true if all clauses, separated by commas, accept a version, or may accept it.
pub(super) fn clauses_allow(kind: PackageKind, clauses: &str, version: &str) -> bool {
    let Some(version) = numbers_of(version) else { return true };
    clauses.split(',').map(str::trim).all(|clause| {
        let at = clause.find(|c: char| c.is_ascii_digit()).unwrap_or(clause.len());
        let (sign, text) = (clause[..at].trim(), clause[at..].trim());
        let begins = text.ends_with('*') || kind == PackageKind::Conda && matches!(sign, "" | "=");
        // `<10.0a0` is the first release of 10.0 and all before it.
        let text = text.trim_end_matches(['*', '.']).trim_end_matches("a0");
        let Some(wanted) = numbers_of(text) else { return true };
        let order = compare(&version, &wanted);
        let has_prefix = |count: usize| {
            let number = |at: usize| version.get(at).copied().unwrap_or_default();
            wanted.iter().take(count).enumerate().all(|(at, wanted)| number(at) == *wanted)
        };
        match sign {
            "" | "=" | "==" | "===" if begins => has_prefix(wanted.len()),
            "" | "=" | "==" | "===" => order == Ordering::Equal,
            "!=" if begins => !has_prefix(wanted.len()),
            "!=" => order != Ordering::Equal,
            "<" => order == Ordering::Less,
            "<=" => order != Ordering::Greater,
            ">" => order == Ordering::Greater,
            ">=" => order != Ordering::Less,
            "~=" => order != Ordering::Less && has_prefix(wanted.len().saturating_sub(1)),
            _ => true,
        }
    })
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
