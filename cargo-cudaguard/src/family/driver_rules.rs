//! Findings about functions that crates look up in the driver of a machine, which lacks them.

use super::driver_functions::DriverFunctions;
use super::fit_facts::Member;
use crate::binary::symbols::list_functions;
use crate::knowledge::vendor::LIBCUDA;
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::version::{CudaVersion, DriverRelease};

/// Returns all functions that these members look up in the driver.
pub(crate) fn functions_of_driver<'a>(members: impl IntoIterator<Item = &'a Member>) -> Vec<DriverFunctions> {
    members.into_iter().flat_map(|member| member.driver_functions.iter().cloned()).collect()
}

/// Returns a warning for each crate that looks up functions which a driver lacks. `release`: returns the first release of the driver
/// that supports a CUDA version, if it is known.
pub(crate) fn driver_function_findings(
    all: &[DriverFunctions],
    driver: CudaVersion,
    release: impl Fn(CudaVersion) -> Option<DriverRelease>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for looked_up in all {
        let missing = looked_up.functions.iter().filter(|(_, first)| **first > driver);
        let Some(newest) = missing.clone().map(|(_, first)| *first).max() else { continue };
        let names: Vec<&str> = missing.map(|(name, _)| *name).collect();
        let values = Values::default().with("library", LIBCUDA).with("symbol", names[0]).with("later", names[0]);
        let values = values.with("symbols", list_functions(&names)).with("crate", &looked_up.by);
        let values = values.with("needed_by", &looked_up.file).with("cuda", driver).with("needs_cuda", newest);
        let values = values.with_known("needs_release", release(newest));
        // The program may avoid the function.
        findings.push(MessageTemplate::LibraryLacksSymbolOfDriver.to_finding(&values).with_severity(Severity::Warning));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_up(functions: &[(&'static str, (u32, u32))]) -> DriverFunctions {
        let version = |(major, minor)| CudaVersion::new(major, minor);
        DriverFunctions {
            by: "cudarc 0.19.10".to_owned(),
            file: "bin/app".to_owned(),
            functions: functions.iter().map(|(name, first)| (*name, version(*first))).collect(),
        }
    }

    #[test]
    fn functions_newer_than_driver_are_reported() {
        let all = [
            looked_up(&[("cuEventElapsedTime_v2", (12, 8)), ("cuCtxCreate_v4", (12, 5)), ("cuGraphAddNode", (12, 2))]),
            looked_up(&[("cuLaunchKernelEx", (11, 6))]),
        ];
        let messages = |driver: (u32, u32)| {
            let release = |cuda: CudaVersion| (cuda.minor == 8).then_some(DriverRelease::new(570, 26, 0));
            let found = driver_function_findings(&all, CudaVersion::new(driver.0, driver.1), release);
            let line = |finding: &Finding| {
                let first = finding.message.lines().next().unwrap_or_default();
                format!("{} {first}; {}", finding.severity.name(), finding.hint)
            };
            found.iter().map(line).collect::<Vec<_>>()
        };
        let update = "update the driver to 570.26 or newer, or do not call";
        assert_eq!(
            messages((12, 2)),
            [format!(
                "warning this driver lacks cuCtxCreate_v4, cuEventElapsedTime_v2: cudarc 0.19.10 panics when the program first calls cuCtxCreate_v4; {update} cuCtxCreate_v4"
            )]
        );
        assert_eq!(messages((12, 7)).len(), 1);
        assert_eq!(messages((12, 8)), [""; 0]);
        assert_eq!(messages((13, 0)), [""; 0]);
        assert_eq!(messages((11, 4)).len(), 2);
    }
}
