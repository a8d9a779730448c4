//! The CMake package, for users who have installed only the command.

use crate::cli::report::CliError;
use std::path::Path;

use cudaguard::internal::files;

macro_rules! file {
    ($place:literal, $from:literal) => {
        ($place, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $from)))
    };
}

/// The installed files, in the layout of `cmake --install` in a checkout.
const FILES: [(&str, &str); 6] = [
    file!("lib/cmake/CudaGuard/CudaGuard.cmake", "cmake/CudaGuard.cmake"),
    file!("lib/cmake/CudaGuard/CudaGuardAll.cmake", "cmake/CudaGuardAll.cmake"),
    file!("lib/cmake/CudaGuard/CudaGuardConfig.cmake", "cmake/CudaGuardConfig.cmake"),
    file!("lib/cmake/CudaGuard/CudaGuardConfigVersion.cmake", "cmake/CudaGuardConfigVersion.cmake"),
    file!("lib/cmake/CudaGuard/README.md", "cmake/README.md"),
    file!("include/cudaguard/cudaguard.h", "templates/cudaguard.h"),
];

/// Writes the package below this prefix.
pub(super) fn install_package(prefix: &Path) -> Result<(), CliError> {
    for (place, text) in FILES {
        files::write_where_new(&prefix.join(place), text.as_bytes())?;
    }
    Ok(())
}
