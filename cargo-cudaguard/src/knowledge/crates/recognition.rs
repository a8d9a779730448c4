//! Recognises crates that use CUDA and are not in the table, by their name or their build script.

use std::collections::BTreeSet;

use cudaguard::internal::vendor::{CUDNN, is_nvidia_name};

/// The name of cudaguard's own packages contains this.
const OWN_NAME: &str = "cudaguard";

/// Returns true if the name of a package suggests that it uses CUDA. cudaguard itself does not count.
pub fn is_cuda_name(name: &str) -> bool {
    !name.contains(OWN_NAME)
        && (name.contains("cuda") || name.contains(CUDNN.key) || name.split(['-', '_']).any(is_nvidia_name))
}

/// Returns the reason to assume that a crate uses CUDA: its build script links libraries of NVIDIA, or its name.
/// `features` are the enabled ones and `declared` all. A crate with a feature for CUDA uses it only if the feature is
/// enabled.
pub fn cuda_evidence(
    name: &str,
    build_script: Option<&str>,
    features: &BTreeSet<String>,
    declared: impl IntoIterator<Item = impl AsRef<str>>,
) -> Option<String> {
    let is_cuda_feature = |feature: &str| is_nvidia_name(feature) || feature.split(['-', '_']).any(is_nvidia_name);
    if name.contains(OWN_NAME) {
        return None;
    }
    let optional = declared.into_iter().any(|feature| is_cuda_feature(feature.as_ref()));
    if optional && !features.iter().any(|feature| is_cuda_feature(feature)) {
        return None;
    }
    let libraries = build_script.map(linked_libraries).unwrap_or_default();
    if !libraries.is_empty() {
        let names: Vec<String> = libraries.into_iter().map(|stem| format!("lib{stem}")).collect();
        return Some(format!("its build script links {}", names.join(", ")));
    }
    if build_script.is_some_and(|script| script.contains(".cuda(true)") || script.contains("\"nvcc\"")) {
        return Some("its build script runs nvcc".to_owned());
    }
    is_cuda_name(name).then(|| "its name".to_owned())
}

/// Returns the libraries of NVIDIA that a build script links, in the order of the source: those in its directives, and all that it
/// names if a directive gets the name from elsewhere.
fn linked_libraries(script: &str) -> Vec<&str> {
    const DIRECTIVE: &str = "rustc-link-lib=";
    let mut found = Vec::new();
    let by_value = script.split(DIRECTIVE).skip(1).any(|rest| rest.split('"').next().unwrap_or_default().contains('{'));
    let counts_all = by_value || script.contains("pkg_config");
    let mut before = "";
    for (index, text) in script.split('"').enumerate() {
        let is_linked = counts_all || text.contains(DIRECTIVE);
        // Texts in quotes are the odd ones. A feature is no library.
        if index % 2 == 1 && is_linked && !before.trim_end().ends_with("feature =") {
            // `cargo:rustc-link-lib=static:+whole-archive=cudart_static` and pkg-config's `cudart-12.8`.
            let name = text.rsplit('=').next().unwrap_or_default().trim_end_matches("\\n");
            let stem = name.split('-').next().unwrap_or_default();
            let stem = stem.strip_suffix("_static").unwrap_or(stem);
            let stem = stem.strip_prefix("lib").unwrap_or(stem);
            if is_nvidia_name(stem) && !found.contains(&stem) {
                found.push(stem);
            }
        }
        before = text;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(name: &str, script: Option<&str>, on: &[&str], declared: &[&str]) -> Option<String> {
        cuda_evidence(name, script, &on.iter().map(|one| (*one).to_owned()).collect(), declared)
    }

    #[test]
    fn build_script_links_are_recognized() {
        let script = "println!(\"cargo:rustc-link-lib=dylib=cublas\");\n    println!(\"cargo::rustc-link-lib=cudart\");\n\
                      println!(\"cargo:rustc-link-lib=static=cudart_static\");\nprintln!(\"cargo:rustc-link-lib=z\");";
        let links = Some("its build script links libcublas, libcudart".to_owned());
        assert_eq!(evidence("fast-sum", Some(script), &[], &[]), links);
        assert_eq!(evidence("fast-sum", Some(script), &["cuda"], &["cuda", "metal"]), links);
        assert_eq!(evidence("fast-sum", Some(script), &["use-cuda"], &["use-cuda"]), links);
        assert_eq!(evidence("fast-sum", Some(script), &["metal"], &["cuda", "metal"]), None);
        assert_eq!(evidence("fast-sum", Some("println!(\"cargo:rustc-link-lib=curl\");"), &[], &[]), None);
        let script = "for name in [\"cudart\", \"cuda\"] { println!(\"cargo:rustc-link-lib={name}\"); }";
        let links = Some("its build script links libcudart, libcuda".to_owned());
        assert_eq!(evidence("fast-sum", Some(script), &[], &[]), links);
        let script = "out.join(\"cuda_available\"); cc.cuda(true); println!(\"cargo:rustc-link-lib=amdhip64\");";
        assert_eq!(evidence("fast-sum", Some(script), &[], &[]), Some("its build script runs nvcc".to_owned()));
        let script = "if cfg!(feature = \"cuda\") { println!(\"cargo:rustc-link-lib=z\"); }";
        assert_eq!(evidence("fast-sum", Some(script), &["cuda"], &["cuda"]), None);
        let compiles = Some("its build script runs nvcc".to_owned());
        assert_eq!(evidence("fast-sum", Some("cc::Build::new().cuda(true)"), &[], &[]), compiles);
    }

    #[test]
    fn crate_names_are_recognized() {
        assert_eq!(evidence("my-cudnn-bindings", None, &[], &["std"]), Some("its name".to_owned()));
        assert_eq!(evidence("cudaguard", Some("Command::new(\"nvcc\")"), &[], &[]), None);
        for name in ["serde", "cudaguard", "cudaguard-build", "curl", "zstd-sys"] {
            assert_eq!(evidence(name, None, &[], &[]), None, "{name}");
        }
    }
}
