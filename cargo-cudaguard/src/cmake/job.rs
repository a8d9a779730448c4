//! A target of CMake's: what is known of it, and its policy.

use std::path::Path;
use std::process::{Command, Stdio};

use cudaguard::finding::{Finding, Severity};
use cudaguard::guard::Tool;
use cudaguard::pipeline::{self, CudaIntent};
use cudaguard::policy;

use super::facts::Facts;
use crate::report::{self, CliError, REFUSED};

/// The target triple as rustc spells it, by what the compiler says: `x86_64-linux-gnu` is `x86_64-unknown-linux-gnu`.
pub(crate) fn triple(tool: &Tool) -> Result<String, String> {
    let shown = tool.program.display();
    let said = Command::new(&tool.program)
        .args(&tool.flags)
        .arg("-dumpmachine")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("the compiler {shown} cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if !said.status.success() || text.is_empty() {
        return Err(format!("the compiler {shown} does not say what it compiles for (-dumpmachine): {}", said.status));
    }
    Ok(normal(&text))
}

fn normal(machine: &str) -> String {
    let parts: Vec<&str> = machine.split('-').collect();
    match parts[..] {
        [arch, .., "linux", libc] => {
            // Debian's gcc for 32 bits calls itself i686; amd64 is what some BSDs say.
            format!("{}-unknown-linux-{libc}", if arch == "amd64" { "x86_64" } else { arch })
        }
        [arch, .., "linux"] => format!("{arch}-unknown-linux-gnu"),
        _ => machine.to_owned(),
    }
}

/// A target, as the walk takes it.
pub(crate) struct Job {
    pub(crate) facts: Facts,
    triple: String,
    profile: String,
}

impl Job {
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        Self::of(Facts::read(folder)?)
    }

    pub(crate) fn of(facts: Facts) -> Result<Self, String> {
        let asked = || match triple(&facts.tool) {
            // Nothing will be compiled for it.
            Err(_) if facts.unguarded.is_some() => Ok("unknown".to_owned()),
            asked => asked,
        };
        let (triple, profile) = (facts.triple.clone().map_or_else(asked, Ok)?, facts.profile());
        Ok(Self { facts, triple, profile })
    }

    pub(crate) fn facts(&self) -> pipeline::Facts<'_> {
        let Facts { component, source, top, policy, release, locked, given, tool, .. } = &self.facts;
        pipeline::Facts {
            component: component.clone(),
            package: &component.name,
            folder: source,
            top,
            policy: policy.clone(),
            target: &self.triple,
            profile: &self.profile,
            release: *release,
            locked: Some(*locked),
            sees_linked: true,
            meant: CudaIntent::Build,
            archs: None,
            headers: None,
            given: Some(given.clone()),
            tool: Some(tool),
            crates: &[],
        }
    }

    /// Says them, and whether the build may go on.
    pub(crate) fn say(&self, findings: &[Finding]) -> Result<(), CliError> {
        let heavy: Vec<Finding> =
            findings.iter().filter(|finding| finding.severity > Severity::Info).cloned().collect();
        report::annotations(&heavy);
        report::findings(&heavy);
        if !pipeline::refuses(&heavy) {
            return Ok(());
        }
        report::line(&format!("cudaguard: {}", policy::not_built(&self.facts.component, self.facts.release)));
        Err(CliError::silent(REFUSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_as_compilers_call_them() {
        for (machine, expected) in [
            ("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-redhat-linux", "x86_64-unknown-linux-gnu"),
            ("x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("x86_64-alpine-linux-musl", "x86_64-unknown-linux-musl"),
            ("aarch64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
            ("i686-linux-gnu", "i686-unknown-linux-gnu"),
            ("x86_64-w64-mingw32", "x86_64-w64-mingw32"),
            ("arm64-apple-darwin23.0.0", "arm64-apple-darwin23.0.0"),
        ] {
            assert_eq!(normal(machine), expected);
        }
    }
}
