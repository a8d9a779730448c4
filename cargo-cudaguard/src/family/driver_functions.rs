//! Functions of the driver that crates look up when a program first calls them.

use std::collections::BTreeMap;

use super::looked_up::crates_that_open;
use crate::binary::file::{constants_after, has_code_of};
use crate::binary::symbols;
use crate::knowledge::crates::table::Symbols;
use crate::knowledge::vendor::{CUDART, LIBCUDA};
use cudaguard::internal::version::CudaVersion;

/// Functions of the driver that a crate looks up at their first call: the program panics if one is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFunctions {
    /// The crate: `cudarc 0.19.10`.
    pub(super) by: String,
    /// The file that contains the crate.
    pub(super) file: String,
    /// The functions by name, with the CUDA version of the first driver that has them. Functions of all drivers are not included.
    pub(super) functions: BTreeMap<&'static str, CudaVersion>,
}

/// Returns the functions that the crates in a file look up in the driver, as far as its constants contain their names.
pub(super) fn driver_functions(file: &str, data: &[u8]) -> Vec<DriverFunctions> {
    let mut all = Vec::new();
    for (opens, row) in crates_that_open(data, "cuda") {
        let Some(row) = row.filter(|row| row.symbols == Symbols::ResolvedAtFirstCall) else { continue };
        let mut functions = functions_in(data);
        functions.retain(|name, _| !row.guarded.iter().any(|guarded| guarded == name));
        if !functions.is_empty() {
            all.push(DriverFunctions { by: opens.by, file: file.to_owned(), functions });
        }
    }
    all
}

fn functions_in(data: &[u8]) -> BTreeMap<&'static str, CudaVersion> {
    const START: &str = "cu";
    let known: Vec<(&str, CudaVersion)> = symbols::library_functions(LIBCUDA)
        .filter_map(|(name, releases)| Some((name, CudaVersion::from(releases.first?))))
        .filter(|(name, _)| name.starts_with(START))
        .collect();
    // cudart looks up hundreds of functions, and works without the newer ones.
    let has_cudart = has_code_of(&CUDART, data);
    let mut found = BTreeMap::new();
    for behind in constants_after(data, START) {
        // Names in Rust's constants need not end with NUL.
        let starting = known.iter().filter(|(name, _)| behind.starts_with(&name.as_bytes()[START.len()..]));
        let Some((name, first)) = starting.max_by_key(|(name, _)| name.len()) else { continue };
        // A message that contains the name, a newer version of the function, or a name in cudart.
        let is_other = match behind.get(name.len() - START.len()) {
            Some(b' ' | b'`' | b'(' | b'_') => true,
            Some(0) | None => has_cudart,
            Some(_) => false,
        };
        if !is_other {
            found.insert(*name, *first);
        }
    }
    found
}
