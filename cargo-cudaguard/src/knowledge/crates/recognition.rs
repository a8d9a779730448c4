//! Recognises crates that use CUDA and are not in the table, by their name, their build script or their source.

use std::collections::BTreeSet;

use crate::knowledge::vendor::{CUDNN, is_nvidia_word};

/// The name of cudaguard's own packages contains this.
const OWN_NAME: &str = "cudaguard";

/// Returns true if the name of a package suggests that it uses CUDA. cudaguard itself does not count.
pub fn is_cuda_name(name: &str) -> bool {
    !name.contains(OWN_NAME)
        && (name.contains("cuda") || name.contains(CUDNN.key) || name.split(['-', '_']).any(is_nvidia_word))
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
    if name.contains(OWN_NAME) {
        return None;
    }
    let optional = declared.into_iter().any(|feature| is_cuda_feature(feature.as_ref()));
    if optional && !enables_cuda(features) {
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

/// Returns true if a feature for CUDA is enabled.
pub fn enables_cuda(features: &BTreeSet<String>) -> bool {
    features.iter().any(|feature| is_cuda_feature(feature))
}

fn is_cuda_feature(feature: &str) -> bool {
    is_nvidia_word(feature) || feature.split(['-', '_']).any(is_nvidia_word)
}

/// Returns the reason to assume that a crate uses CUDA: attributes of its source link libraries of NVIDIA.
pub fn linked_by_attributes<'a>(sources: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut found = BTreeSet::new();
    for line in sources.into_iter().flat_map(str::lines).map(str::trim_start) {
        let attribute = if line.starts_with("#[link") || line.starts_with("#[cfg_attr") { line } else { continue };
        let name = attribute.split_once("link(name").and_then(|(_, rest)| rest.split('"').nth(1));
        found.extend(name.filter(|name| is_nvidia_word(name)).map(|name| format!("lib{name}")));
    }
    let names: Vec<String> = found.into_iter().collect();
    (!names.is_empty()).then(|| format!("its source links {}", names.join(", ")))
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
            // A variable such as CUDA_PATH, or a message, is no library.
            let is_name = stem.starts_with(|first: char| first.is_ascii_lowercase()) && !stem.contains(' ');
            if is_name && is_nvidia_word(stem) && !found.contains(&stem) {
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
        let script = "env::var(\"CUDA_PATH\").expect(\"cuda is not found\"); let l = [\"cublasLt\"]; println!(\"cargo:rustc-link-lib={l}\");";
        let links = Some("its build script links libcublasLt".to_owned());
        assert_eq!(evidence("fast-sum", Some(script), &[], &[]), links);
        let script = "out.join(\"cuda_available\"); cc.cuda(true); println!(\"cargo:rustc-link-lib=amdhip64\");";
        assert_eq!(evidence("fast-sum", Some(script), &[], &[]), Some("its build script runs nvcc".to_owned()));
        let script = "if cfg!(feature = \"cuda\") { println!(\"cargo:rustc-link-lib=z\"); }";
        assert_eq!(evidence("fast-sum", Some(script), &["cuda"], &["cuda"]), None);
        let compiles = Some("its build script runs nvcc".to_owned());
        assert_eq!(evidence("fast-sum", Some("cc::Build::new().cuda(true)"), &[], &[]), compiles);
    }

    #[test]
    fn attributes_of_the_source_are_recognized() {
        let source = "use x;\n#[link(name = \"cuda\")]\n    #[link(name = \"cublas\", kind = \"dylib\")]\n// #[link(name = \"cudnn\")]\n\
                      #[cfg_attr(unix, link(name = \"nvrtc\"))]\n#[link(name = \"z\")]";
        assert_eq!(linked_by_attributes([source]), Some("its source links libcublas, libcuda, libnvrtc".to_owned()));
        assert_eq!(linked_by_attributes(["#[link(name = \"z\")]"]), None);
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
