//! Libraries that are loaded under the names of others.

use crate::binary::examined::NotExamined;
use crate::knowledge::vendor::cuda_majors_with;

/// Returns the reason why the functions of a library of the toolkit are unknown: it is loaded under the name of another CUDA major,
/// because a link or a copy has that name.
pub(crate) fn misnamed(path: &str, loaded_as: &str, soname: Option<&str>) -> Option<NotExamined> {
    let of_name = cuda_majors_with(loaded_as)?;
    let soname = soname.filter(|soname| cuda_majors_with(soname).is_some_and(|majors| majors != of_name))?;
    Some(NotExamined::new(path, format!("is loaded as {loaded_as}, but is {soname}: whether it fits is unknown")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_majors_are_found() {
        for (loaded_as, soname, expected) in [
            ("libcudart.so.12", Some("libcudart.so.13"), true),
            ("libnvJitLink.so.12", Some("libnvJitLink.so.13"), true),
            ("libcudart.so.12", Some("libcudart.so.12"), false),
            ("libcudart-e409450e.so.11.0", Some("libcudart.so.11.0"), false),
            ("libcudart.so", Some("libcudart.so.13"), false),
            ("libcusolver.so.11.7.5", Some("libcusolver.so.11"), false),
            ("libcufile.so.1.9.1", Some("libcufile.so.0"), false),
            ("libcupti.so.2024.1.1", Some("libcupti.so.12"), false),
            ("libcudart.so.12", None, false),
        ] {
            assert_eq!(misnamed("", loaded_as, soname).is_some(), expected, "{loaded_as}");
        }
    }
}
