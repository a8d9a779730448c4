//! NVIDIA's libraries that are released together: their versions, and findings about a set of them that runs together.

mod compilers;
mod driver_functions;
mod driver_rules;
mod fit_facts;
mod headers;
mod looked_up;
mod lookup_rules;
mod may_open;
mod names;
mod opened;
mod rules;
mod version;

pub(crate) use crate::knowledge::vendor::{
    BUILTINS, NVRTC, cuda_major_of, is_installed, is_of_nvidia, oldest_driver_of,
};
pub use compilers::RuntimeCompiler;
pub(crate) use compilers::{compiler_findings, compiler_of_soname, compilers, compilers_without_version, is_nvrtc};
pub use driver_functions::DriverFunctions;
pub(crate) use driver_rules::{driver_function_findings, functions_of_driver};
pub(crate) use fit_facts::Member;
pub use looked_up::LookedUp;
pub(crate) use lookup_rules::{described_library_finding, looked_up_findings, lookups};
pub(crate) use may_open::{describe_no_needed_library, opened_names, opened_without_requirement};
pub(crate) use names::misnamed;
pub(crate) use opened::{OpenedLibrary, opened_libraries};
pub(crate) use rules::{MembersOfProcess, findings, older_nccl_finding, wanted_nccl};
pub(crate) use version::{FileVersion, Release, cudart_inside, version_in_file};
