//! The libraries that crates open by name: recorded in the manifest, and as a note for other tools
//! ([`crate::binary::dlopen_note`]).

use super::table::Mode;
use super::{Crate, CrateUse};
use cudaguard::internal::manifest::Opens;

/// Returns the libraries that these crates open by name.
pub fn dlopened_libraries(uses: &[CrateUse]) -> Vec<Opens> {
    let loaded = uses.iter().filter(|one| !one.of.tool && one.of.link_mode() == Mode::Loaded);
    loaded.filter_map(|one| dlopened_by(&one.of, one.level.as_ref().map(|level| level.value))).collect()
}

fn dlopened_by(one: &Crate, level: Option<cudaguard::internal::version::CudaVersion>) -> Option<Opens> {
    let row = one.table_row()?;
    // Crates try Windows' file names on Linux too, and no package contains such a file.
    let names = row.names_of("", level).into_iter().filter(|name| !name.contains("64"));
    let endings: Vec<String> = names.filter_map(|name| Some(name.strip_prefix("lib")?.to_owned())).collect();
    let libraries: Vec<String> = one.library_stems().into_iter().map(str::to_owned).collect();
    (!libraries.is_empty() && !endings.is_empty()).then(|| Opens { by: one.describe(), libraries, endings })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::crates::crate_use::{Chosen, DetectedLevel};
    use cudaguard::internal::version::CudaVersion;

    #[test]
    fn dlopened_names_are_listed() {
        let mut one = CrateUse {
            of: Crate {
                name: "cudarc".to_owned(),
                version: "0.19.10".to_owned(),
                features: ["driver", "cudnn", "dynamic-loading"].map(str::to_owned).into(),
                path: vec!["app".to_owned(), "cudarc 0.19.10".to_owned()],
                ..Crate::default()
            },
            level: Some(DetectedLevel { value: CudaVersion::new(13, 0), by: String::new(), chosen: Chosen::Fixed }),
            library: None,
            compiler: None,
            headers: None,
            arch: None,
            downloaded: None,
            stopped: None,
        };
        one.of.features.insert("cudnn-09021".to_owned());
        let found = dlopened_libraries(std::slice::from_ref(&one));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].by, "cudarc 0.19.10");
        assert_eq!(found[0].libraries, ["cuda", "cudnn"]);
        assert_eq!(found[0].endings, [".so", ".so.13", ".so.12", ".so.11", ".so.10", ".so.9", ".so.1"]);
        assert_eq!(found[0].candidate_names("cudnn")[..2], ["libcudnn.so", "libcudnn.so.13"]);
        one.of.features.insert("dynamic-linking".to_owned());
        assert!(dlopened_libraries(&[one]).is_empty(), "DT_NEEDED lists linked libraries");
    }
}
