//! The API that a running program may call: the result of the guard that is linked into the same file.

use std::error::Error;
use std::fmt;

/// Result of the guard's check: can the program or library run on this machine?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// The guard found no problem. [`CheckReport::not_judged`] lists what the guard could not check.
    Compatible,
    /// Something prevents it. [`CheckReport::finding`] describes it.
    Incompatible,
    /// The guard could not determine it. This is no reason to stop.
    Unknown,
}

impl Status {
    /// Returns `compatible`, `incompatible` or `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Incompatible => "incompatible",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How serious a finding is. The policy and the build profile may raise or lower it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; it never stops anything.
    Info,
    /// Reported; the build or the program continues.
    Warning,
    /// Fails a release build, or ends a program at its start.
    Error,
}

impl Severity {
    /// Returns `info`, `warning` or `error`, as in reports and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The result of [`check`].
///
/// Its text is the status, or the finding that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Result of the check.
    pub status: Status,
    /// The finding that decided the status. `None` if nothing is wrong.
    pub finding: Option<CheckFinding>,
    /// The parts of the file that the guard could not check, such as GPU code that is stored as plain data.
    pub not_judged: Vec<String>,
}

impl CheckReport {
    /// Returns the finding as an error if the status is [`Status::Incompatible`].
    ///
    /// # Errors
    ///
    /// The finding that prevents the program from running here.
    ///
    /// ```
    /// fn gpu_backend() -> Result<(), Box<dyn std::error::Error>> {
    ///     cudaguard::check().into_result()?;
    ///     Ok(())
    /// }
    /// # assert!(gpu_backend().is_ok());
    /// ```
    pub fn into_result(mut self) -> Result<Self, Box<CheckFinding>> {
        match self.finding.take() {
            Some(finding) if self.status == Status::Incompatible => Err(Box::new(finding)),
            finding => Ok(Self { finding, ..self }),
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding {
            Some(finding) => write!(f, "{finding}"),
            None if self.not_judged.is_empty() => write!(f, "{}", self.status),
            None => write!(f, "{}; not checked: {}", self.status, self.not_judged.join("; ")),
        }
    }
}

/// A finding of the guard about this machine, with the same members as `struct cudaguard_verdict` in C.
///
/// Its text is what the guard prints: `error[CG202]: …`, the facts and the hint, each on its own line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckFinding {
    /// 202 for `CG202`. `None` if the guard did not run, because this file has none or `CUDAGUARD=off` is set.
    pub code: Option<u16>,
    /// How serious it is.
    pub severity: Severity,
    /// `cuDNN`, `driver` or `manifest`; empty if the guard did not run.
    pub subject: String,
    /// Name and version of the component, such as `my-model 0.3.0`.
    pub component: String,
    /// The version that the component was built with or needs; empty if the finding is not about a version.
    pub built: String,
    /// The version that this machine has; empty if the finding is not about a version.
    pub found: String,
    /// The problem in one sentence, followed by one line for each fact.
    pub message: String,
    /// The action to take; empty if there is none.
    pub hint: String,
}

impl fmt::Display for CheckFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code {
            write!(f, "{}[CG{code}]: ", self.severity)?;
        }
        f.write_str(&self.message.replace('\n', "\n  "))?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\n  hint: {}", self.hint.replace('\n', "\n  ")) }
    }
}

impl Error for CheckFinding {}

/// Completes the guard's check of the file that contains this call, program or library, and returns the result.
///
/// Call it after the program has loaded a library such as cuDNN itself. The first call may take as long as loading cuDNN. It is safe
/// from any thread and never ends the process. Without the guard, or on a target without support (only Linux on x86-64 and aarch64
/// has it), the status is [`Status::Unknown`].
///
/// ```
/// use cudaguard::Status;
///
/// let report = cudaguard::check();
/// match report.status {
///     Status::Compatible if report.not_judged.is_empty() => println!("using the GPU"),
///     Status::Compatible => println!("using the GPU; not checked: {}", report.not_judged.join(", ")),
///     Status::Incompatible => eprintln!("using the CPU\n{report}"),
///     _ => println!("trying the GPU: {report}"),
/// }
/// ```
pub fn check() -> CheckReport {
    shim::query().unwrap_or_else(|| CheckReport {
        status: Status::Unknown,
        finding: Some(CheckFinding {
            code: None,
            severity: Severity::Info,
            subject: String::new(),
            component: String::new(),
            built: String::new(),
            found: String::new(),
            message: "this file was built without the guard".to_owned(),
            hint: String::new(),
        }),
        not_judged: Vec::new(),
    })
}

/// Calls the guard through a weak reference, so a program without the guard also links, and the reference is null. Rust
/// can create such a reference only in assembly. (A section that the shim searches for slots would need `__start_`
/// symbols, which GNU ld exports.)
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[allow(unsafe_code)]
mod shim {
    use std::arch::asm;
    use std::ffi::c_int;

    use super::{CheckFinding, CheckReport, Severity, Status};

    type VerdictFn = unsafe extern "C" fn(to: *mut CVerdict) -> c_int;

    /// `struct cudaguard_verdict` of cudaguard.h. New members are only appended.
    #[repr(C)]
    struct CVerdict {
        size: usize,
        verdict: c_int,
        code: c_int,
        severity: c_int,
        level: c_int,
        subject: [u8; 16],
        component: [u8; 256],
        built: [u8; 32],
        found: [u8; 32],
        message: [u8; 2048],
        hint: [u8; 512],
        not_judged: [u8; 256],
    }

    /// Returns the address of `cudaguard_r1_verdict` in this file, or null if the file has none. The definition is
    /// hidden, but this reference is not: gold resolves a hidden weak name without a definition to the start of the
    /// file.
    fn verdict_address() -> *const () {
        let address: *const ();
        // SAFETY: loads one entry of this file's global offset table, which the linker fills with the symbol's address or,
        // the reference being weak, with 0; touches no memory, stack or flag of the program.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                ".weak cudaguard_r1_verdict",
                "mov {address}, qword ptr [rip + cudaguard_r1_verdict@GOTPCREL]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                ".weak cudaguard_r1_verdict",
                "adrp {address}, :got:cudaguard_r1_verdict",
                "ldr {address}, [{address}, :got_lo12:cudaguard_r1_verdict]",
                address = out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }

    pub(super) fn query() -> Option<CheckReport> {
        let address = verdict_address();
        if address.is_null() {
            return None;
        }
        // SAFETY: the name carries the revision of the shim, and in revision 1 it is a C function of this type.
        let verdict = unsafe { std::mem::transmute::<*const (), VerdictFn>(address) };
        // An older shim does not write members that it does not know, so they stay empty.
        let mut raw = CVerdict {
            size: size_of::<CVerdict>(),
            verdict: 0,
            code: 0,
            severity: 0,
            level: 0,
            subject: [0; 16],
            component: [0; 256],
            built: [0; 32],
            found: [0; 32],
            message: [0; 2048],
            hint: [0; 512],
            not_judged: [0; 256],
        };
        // SAFETY: `raw` is writable and contains its size; the function writes no further, and only valid values of each member.
        let status = match unsafe { verdict(&raw mut raw) } {
            0 => Status::Compatible,
            1 => Status::Incompatible,
            _ => Status::Unknown,
        };
        let names = text_until_nul(&raw.not_judged);
        let finding = CheckFinding {
            code: u16::try_from(raw.code).ok().filter(|code| *code > 0),
            severity: match raw.severity {
                0 => Severity::Info,
                1 => Severity::Warning,
                _ => Severity::Error,
            },
            subject: text_until_nul(&raw.subject),
            component: text_until_nul(&raw.component),
            built: text_until_nul(&raw.built),
            found: text_until_nul(&raw.found),
            message: text_until_nul(&raw.message),
            hint: text_until_nul(&raw.hint),
        };
        Some(CheckReport {
            status,
            finding: (!finding.message.is_empty()).then_some(finding),
            not_judged: names.split("; ").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    }

    /// Returns the text before the first NUL.
    fn text_until_nul(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod shim {
    pub(super) fn query() -> Option<super::CheckReport> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_without_guard_is_unknown() {
        let report = check();
        assert_eq!(report.status, Status::Unknown);
        assert_eq!(report.to_string(), "this file was built without the guard");
        assert!(report.into_result().is_ok());
    }

    #[test]
    fn incompatible_report_is_an_error() {
        let finding = CheckFinding {
            code: Some(202),
            severity: Severity::Error,
            subject: "cuDNN".to_owned(),
            component: "my-model 0.3.0".to_owned(),
            built: "9.15.1".to_owned(),
            found: "9.1.0".to_owned(),
            message: "cuDNN 9.1.0 is older\nbuilt with: 9.15.1".to_owned(),
            hint: "install 9.15".to_owned(),
        };
        let report =
            CheckReport { status: Status::Incompatible, finding: Some(finding.clone()), not_judged: Vec::new() };
        let text = "error[CG202]: cuDNN 9.1.0 is older\n  built with: 9.15.1\n  hint: install 9.15";
        assert_eq!((report.to_string().as_str(), report.into_result()), (text, Err(Box::new(finding))));
    }
}
