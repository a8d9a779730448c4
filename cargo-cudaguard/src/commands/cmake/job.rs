//! A CMake target with the inputs of its build and its policy.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::guard::Tool;
use cudaguard::internal::finding::{Finding, Severity};
use cudaguard::internal::guard::NoGuard;
use cudaguard::internal::pipeline::{self, CudaIntent};
use cudaguard::internal::policy;

use super::target_properties::TargetDescription;
use crate::cli::findings;
use crate::cli::report::{self, CliError, REFUSED};

/// Queries the compiler and returns the target triple as rustc spells it: `x86_64-linux-gnu` becomes
/// `x86_64-unknown-linux-gnu`.
pub(crate) fn target_triple(tool: &Tool) -> Result<String, NoGuard> {
    let compiler_output = Command::new(&tool.program)
        .args(tool.arguments())
        .arg("-dumpmachine")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| NoGuard::NotStarted(tool.program.clone(), error.to_string()))?;
    let text = String::from_utf8_lossy(&compiler_output.stdout).trim().to_owned();
    if !compiler_output.status.success() || text.is_empty() {
        return Err(NoGuard::NoTriple(tool.program.clone(), compiler_output.status.to_string()));
    }
    Ok(normalize_machine(&text))
}

fn normalize_machine(machine: &str) -> String {
    let parts: Vec<&str> = machine.split('-').collect();
    match parts[..] {
        [arch, .., "linux", libc] => {
            // Debian's 32-bit gcc names itself i686; some BSDs use amd64.
            format!("{}-unknown-linux-{libc}", if arch == "amd64" { "x86_64" } else { arch })
        }
        [arch, .., "linux"] => format!("{arch}-unknown-linux-gnu"),
        [arch, .., "mingw32"] => format!("{arch}-pc-windows-gnu"),
        // clang appends the version of the compiler that it imitates: `msvc19.33.0`.
        [arch, .., "windows", abi] if abi.starts_with("msvc") => format!("{arch}-pc-windows-msvc"),
        [arch, .., "windows", "gnu"] => format!("{arch}-pc-windows-gnu"),
        _ => machine.to_owned(),
    }
}

/// A target in the form that the build pipeline needs.
pub(crate) struct CmakeJob {
    pub(crate) facts: TargetDescription,
    triple: String,
    profile: String,
}

impl CmakeJob {
    pub(super) fn from_dir(dir: &Path) -> Result<Self, CliError> {
        Self::from_facts(TargetDescription::read_dir(dir)?)
    }

    pub(crate) fn from_facts(facts: TargetDescription) -> Result<Self, CliError> {
        let triple = match &facts.triple {
            Some(triple) => triple.clone(),
            None => match target_triple(&facts.tool) {
                // The guard of this target is not compiled.
                Err(_) if facts.unguarded.is_some() => "unknown".to_owned(),
                asked => asked?,
            },
        };
        let profile = facts.profile_name();
        Ok(Self { facts, triple, profile })
    }

    pub(crate) fn build_inputs(&self) -> pipeline::BuildInputs<'_> {
        let TargetDescription { component, source, top, policy, release, locked, given, .. } = &self.facts;
        pipeline::BuildInputs {
            component: component.clone(),
            package: &component.name,
            dir: source,
            top,
            policy: policy.clone(),
            target: &self.triple,
            profile: &self.profile,
            release: *release,
            locked: Some(*locked),
            sees_linked: self.facts.sees_linked(),
            intent: CudaIntent::Build,
            archs: None,
            ptx_isa: None,
            headers: None,
            given: Some(given.clone()),
            by_crates: CudaIntent::Unstated,
            uses_cudnn: false,
        }
    }

    /// Reports the findings, and returns an error if they fail the build.
    pub(crate) fn report_findings(&self, findings: &[Finding]) -> Result<(), CliError> {
        // The reasons for a refusal are the last lines of a build.
        for severity in [Severity::Warning, Severity::Error] {
            let of_it = findings.iter().filter(|finding| finding.severity == severity);
            findings::print(&of_it.cloned().collect::<Vec<_>>());
        }
        if !pipeline::fails_build(findings) {
            return Ok(());
        }
        let (component, release) = (&self.facts.component, self.facts.release);
        let line = match &self.facts.link_command {
            Some(_) => policy::not_built(format_args!("{} with {component}", self.facts.linked_name()), release),
            None => policy::not_built(component, release),
        };
        report::print_line(&format!("cudaguard: {line}"));
        Err(CliError::already_reported(REFUSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_machine_names_are_mapped() {
        for (machine, expected) in [
            ("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-redhat-linux", "x86_64-unknown-linux-gnu"),
            ("x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-alpine-linux-musl", "x86_64-unknown-linux-musl"),
            ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
            ("i686-linux-gnu", "i686-unknown-linux-gnu"),
            ("x86_64-w64-mingw32", "x86_64-pc-windows-gnu"),
            ("arm64-apple-darwin23.0.0", "arm64-apple-darwin23.0.0"),
        ] {
            assert_eq!(normalize_machine(machine), expected);
        }
    }
}
