//! Compilers that a program runs: NVRTC, nvJitLink and ptxas, against the driver and the GPUs of a machine.

use std::collections::BTreeSet;

use super::fit_facts::Member;
use crate::knowledge::vendor::{self, Library, NVJITLINK, NVRTC, PTXAS};
use cudaguard::internal::arch::Target;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::tables::{self, CcSupport};
use cudaguard::internal::version::{CudaVersion, Version};

/// A compiler that runs with a program.
#[derive(Clone, Debug)]
pub struct RuntimeCompiler {
    of: &'static Library,
    version: Version,
    /// True if only the soname is known: the compiler is this release or a newer one of the same soname.
    or_newer: bool,
    /// The file, or the soname if none was found.
    name: String,
}

impl RuntimeCompiler {
    /// Returns its file.
    pub(crate) fn file(&self) -> &str {
        &self.name
    }
}

const COMPILERS: [&Library; 3] = [&NVRTC, &NVJITLINK, &PTXAS];

/// Returns the compilers among these members whose versions are known.
pub(crate) fn compilers<'a>(members: impl IntoIterator<Item = &'a Member>) -> Vec<RuntimeCompiler> {
    let mut found = Vec::new();
    for member in members {
        if let Some(release) =
            member.release.as_ref().filter(|release| COMPILERS.iter().any(|known| release.of.is(known)))
            && let Some(version) = release.number()
        {
            found.push(RuntimeCompiler { of: release.of, version, or_newer: false, name: member.name.clone() });
        }
    }
    found
}

/// Returns true if this is a soname of NVRTC, with which a program compiles GPU code.
pub(crate) fn is_nvrtc(soname: &str) -> bool {
    vendor::released_library(soname).is_some_and(|of| of.is(&NVRTC))
}

/// Returns the oldest release of a compiler that has this soname: `libnvrtc.so.13` is 13.0 or newer.
pub(crate) fn compiler_of_soname(soname: &str) -> Option<RuntimeCompiler> {
    let of = vendor::released_library(soname).filter(|of| COMPILERS.iter().any(|known| of.is(known)))?;
    let (_, release) = soname.split_once(".so.")?;
    let (major, minor) = release.split_once('.').unwrap_or((release, "0"));
    let version = Version::new(major.parse().ok()?, minor.parse().ok()?, 0);
    Some(RuntimeCompiler { of, version, or_newer: true, name: soname.to_owned() })
}

/// Returns the sonames of the compilers among these members whose versions are unknown.
pub(crate) fn compilers_without_version(members: &[Member]) -> impl Iterator<Item = &str> {
    let compilers = members.iter().filter(|member| COMPILERS.iter().any(|known| member.is(known)));
    compilers.filter(|member| member.version().is_none()).map(|member| member.soname.as_str())
}

/// Returns the findings about compilers on a machine. If there are several releases of one compiler, any of them may be the one
/// that runs, so only what is true for all of them is reported.
pub(crate) fn compiler_findings(
    all: &[RuntimeCompiler],
    driver: Option<CudaVersion>,
    gpus: impl IntoIterator<Item = (u8, u8)>,
) -> Vec<Finding> {
    let gpus: BTreeSet<(u8, u8)> = gpus.into_iter().collect();
    let mut findings = Vec::new();
    for of in COMPILERS {
        let releases: Vec<&RuntimeCompiler> = all.iter().filter(|compiler| compiler.of.is(of)).collect();
        // nvJitLink and ptxas write machine code only.
        if of.is(&NVRTC) {
            findings.extend(driver.and_then(|driver| ptx_finding(&releases, driver)));
        }
        findings.extend(gpu_findings(&releases, &gpus));
    }
    findings
}

fn ptx_finding(releases: &[&RuntimeCompiler], driver: CudaVersion) -> Option<Finding> {
    let oldest = releases.iter().min_by_key(|compiler| compiler.version)?;
    let isa = tables::ptx_isa(oldest.version);
    if isa.map_or_else(|| CudaVersion::from(oldest.version), |isa| tables::ptx_floor(isa).cuda) <= driver {
        return None;
    }
    let values = compiler_values(oldest).with("cuda", driver).with("newest", driver);
    let values = values.with_known("needs_cuda", isa.map(|isa| tables::ptx_floor(isa).cuda));
    let isa = isa.map_or_else(|| format!("of CUDA {}", CudaVersion::from(oldest.version)), |(a, b)| format!("{a}.{b}"));
    Some(MessageTemplate::CompilerNewerThanDriver.to_finding(&values.with("isa", isa)))
}

fn gpu_findings(releases: &[&RuntimeCompiler], gpus: &BTreeSet<(u8, u8)>) -> Vec<Finding> {
    let Some(newest) = releases.iter().max_by_key(|compiler| compiler.version) else { return Vec::new() };
    let mut findings = Vec::new();
    for cc in gpus {
        let Some((first, last)) = releases_with_gpu(newest, *cc) else { continue };
        if releases.iter().all(|compiler| releases_with_gpu(compiler, *cc).is_some()) {
            let values = compiler_values(newest).with("gpus", tables::dotted_cc(*cc));
            let values = values.with_known("first", first).with_known("last", last);
            findings.push(MessageTemplate::CompilerUnknownGpu.to_finding(&values));
        }
    }
    findings
}

/// Returns the first and the last release that compile for a GPU, as far as known, if this compiler does not.
fn releases_with_gpu(compiler: &RuntimeCompiler, cc: (u8, u8)) -> Option<(Option<CudaVersion>, Option<CudaVersion>)> {
    let mut known = tables::arch_rows().iter().map(|row| row.arch);
    // No release supports GPUs again that are older than all of the tables.
    let arch = known.next().filter(|oldest| cc <= oldest.cc()).or_else(|| known.find(|arch| arch.cc() == cc))?;
    match tables::can_make(compiler.version, Target::Cubin(arch)) {
        CcSupport::TooNew { first } => (!compiler.or_newer).then_some((first, None)),
        CcSupport::Dropped { last } => Some((None, last)),
        CcSupport::Made | CcSupport::Unknown => None,
    }
}

fn compiler_values(compiler: &RuntimeCompiler) -> Values {
    let found = if compiler.or_newer {
        format!("{} or newer", CudaVersion::from(compiler.version))
    } else {
        compiler.version.to_string()
    };
    Values::default().with("library", compiler.of.name).with("found", found).with("path", &compiler.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler(of: &'static Library, version: &str) -> RuntimeCompiler {
        RuntimeCompiler { of, version: version.parse().expect("a version"), or_newer: false, name: "lib".to_owned() }
    }

    fn messages(all: &[RuntimeCompiler], driver: Option<(u32, u32)>, gpus: &[(u8, u8)]) -> Vec<String> {
        let driver = driver.map(|(major, minor)| CudaVersion::new(major, minor));
        let findings = compiler_findings(all, driver, gpus.iter().copied());
        findings.iter().map(|finding| finding.message.lines().next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn ptx_of_a_newer_nvrtc_is_reported() {
        let nvrtc = [compiler(&NVRTC, "12.6.77")];
        assert_eq!(
            messages(&nvrtc, Some((12, 4)), &[]),
            ["NVRTC 12.6.77 writes PTX that this driver does not compile"]
        );
        // 12.6 writes the PTX of 12.5.
        for driver in [Some((12, 5)), Some((12, 6)), Some((13, 0)), None] {
            assert_eq!(messages(&nvrtc, driver, &[]), [""; 0], "{driver:?}");
        }
        // One of them fits; nvJitLink and ptxas write machine code.
        let several = [compiler(&NVRTC, "12.4.127"), compiler(&NVRTC, "13.0.88")];
        assert_eq!(messages(&several, Some((12, 4)), &[]), [""; 0]);
        let others = [compiler(&NVJITLINK, "12.9.86"), compiler(&PTXAS, "12.9.86")];
        assert_eq!(messages(&others, Some((12, 4)), &[]), [""; 0]);
    }

    #[test]
    fn unsupported_gpu_is_reported() {
        for (of, version, cc, expected) in [
            (&NVRTC, "12.4.127", (12, 0), true),
            (&NVRTC, "12.9.86", (12, 0), false),
            (&NVRTC, "13.0.88", (7, 0), true),
            (&NVRTC, "12.9.86", (7, 0), false),
            (&NVJITLINK, "12.4.127", (10, 0), true),
            (&PTXAS, "12.4.131", (9, 0), false),
            // The tables do not know this GPU.
            (&PTXAS, "12.4.131", (99, 0), false),
        ] {
            let found = messages(&[compiler(of, version)], None, &[cc]);
            assert_eq!(!found.is_empty(), expected, "{version} {cc:?} {found:?}");
        }
        // Triton has one ptxas for Blackwell.
        let both = [compiler(&PTXAS, "12.4.131"), compiler(&PTXAS, "13.0.88")];
        assert_eq!(messages(&both, None, &[(12, 0), (7, 0)]), [""; 0]);
    }
}
