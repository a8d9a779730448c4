//! The support of each GPU for each component, and the driver that the component needs there. The verdict, in contrast, is about
//! the machine as a whole.

use std::fmt;

use crate::as_text;
use crate::host::machine::HostGpu;
use crate::knowledge::jetpack::jetpack_for;
use cudaguard::internal::manifest::{GpuCoverage, Manifest, PtxFallback, Requirement};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease};
use serde::{Serialize, Serializer};

/// The support of a GPU by the code of a component; the better, the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// No code.
    None,
    /// Unknown.
    #[default]
    Unknown,
    /// Code in some containers.
    Partial,
    /// Code in every container; in at least one of them PTX, which the driver compiles.
    Jit,
    /// Machine code in every container.
    Native,
}

impl Service {
    /// `native`, `jit`, `partial`, `none`, `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Jit => "jit",
            Self::Partial => "partial",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// The answer for one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuAnswer {
    /// The component.
    pub component: String,
    /// The GPU's name, if it is known.
    pub name: Option<String>,
    /// Its compute capability.
    pub cc: (u8, u8),
    /// The support by machine code or PTX.
    pub service: Service,
    /// The weakest code that it uses; empty if there is none.
    pub code: String,
    /// The number of containers with kernels that serve it, and the number of all; `None` if the containers were not counted.
    pub containers: Option<(usize, usize)>,
    /// The CUDA version that the driver must support, because of the code, the libraries or the GPU.
    pub cuda: Option<CudaVersion>,
    /// The first driver release that supports it.
    pub release: Option<DriverRelease>,
    /// The first driver that certainly loads its code, if that is newer than the required one (docs/internals/decisions, decision
    /// 24).
    pub guaranteed_from: Option<(CudaVersion, DriverRelease)>,
}

/// Returns the answers of a component for each of these GPUs whose compute capability is known. A component without kernels has
/// none. `forced` is set for `CUDA_FORCE_PTX_JIT=1`, with which the driver ignores machine code. The driver is absent in the result.
pub fn answers(manifest: &Manifest, gpus: &[HostGpu<'_>], forced: bool) -> Vec<GpuAnswer> {
    let mut found: Vec<GpuAnswer> = Vec::new();
    for gpu in gpus.iter().filter(|gpu| gpu.visible && !gpu.support.is_missing()) {
        let Some(cc) = gpu.cc else { continue };
        for row in &manifest.requires {
            let Requirement::Gpu { from, to, by, code, ptx_fallback, .. } = row else { continue };
            if cc < *from || to.is_some_and(|to| cc > to) {
                continue;
            }
            let by_ptx = forced.then(|| apply_forced_ptx(*by, *ptx_fallback)).flatten();
            let (by, code) = by_ptx.unwrap_or_else(|| (*by, code.clone()));
            let machine_code = !matches!(
                by,
                GpuCoverage::Ptx | GpuCoverage::Nothing | GpuCoverage::Unknown | GpuCoverage::AtMostPartial
            );
            let passed_over = forced && machine_code && *ptx_fallback == PtxFallback::Nothing;
            let (by, code) = if passed_over { (GpuCoverage::Nothing, String::new()) } else { (by, code) };
            let answer = GpuAnswer {
                component: manifest.component.to_string(),
                name: gpu.name.map(str::to_owned),
                cc,
                service: match by {
                    GpuCoverage::Cubin => Service::Native,
                    GpuCoverage::Ptx => Service::Jit,
                    GpuCoverage::Partial
                    | GpuCoverage::PartialPtx
                    | GpuCoverage::AtLeastPartial
                    | GpuCoverage::AtLeastPartialPtx => Service::Partial,
                    GpuCoverage::Nothing => Service::None,
                    GpuCoverage::AtMostPartial | GpuCoverage::Unknown => Service::Unknown,
                },
                code,
                ..GpuAnswer::default()
            };
            if !found.contains(&answer) {
                found.push(answer);
            }
        }
    }
    found
}

/// Evaluates a row of GPUs if the driver ignores machine code and compiles PTX. `None` if nothing changes: the row is
/// PTX anyway, or there is none.
fn apply_forced_ptx(by: GpuCoverage, ptx_fallback: PtxFallback) -> Option<(GpuCoverage, String)> {
    let served = match by {
        GpuCoverage::Cubin | GpuCoverage::Ptx => GpuCoverage::Ptx,
        GpuCoverage::Partial | GpuCoverage::PartialPtx => GpuCoverage::PartialPtx,
        GpuCoverage::AtLeastPartial | GpuCoverage::AtLeastPartialPtx => GpuCoverage::AtLeastPartialPtx,
        GpuCoverage::AtMostPartial | GpuCoverage::Nothing | GpuCoverage::Unknown => return None,
    };
    match (by, ptx_fallback) {
        (GpuCoverage::Ptx, PtxFallback::Undetermined) => None,
        (GpuCoverage::Ptx, PtxFallback::Nothing) | (_, PtxFallback::Undetermined) => {
            Some((GpuCoverage::Unknown, String::new()))
        }
        (_, PtxFallback::Nothing) => None,
        (_, PtxFallback::Isa((major, minor))) => Some((served, format!("PTX {major}.{minor}"))),
    }
}

/// A driver, as CUDA version and as release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OldestDriver {
    /// The CUDA version that it must support.
    #[serde(serialize_with = "as_text::value")]
    pub cuda: CudaVersion,
    /// The first release that is known to support it; `None` if no such release is known.
    #[serde(serialize_with = "as_text::optional")]
    pub release: Option<DriverRelease>,
}

impl Serialize for GpuAnswer {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct GpuAnswerView<'a> {
            component: &'a str,
            name: Option<&'a str>,
            cc: String,
            by: &'static str,
            #[serde(skip_serializing_if = "str::is_empty")]
            code: &'a str,
            containers: Option<ContainersView>,
            driver: Option<OldestDriver>,
            sure_from: Option<OldestDriver>,
        }

        #[derive(Serialize)]
        struct ContainersView {
            serve: usize,
            of: usize,
        }

        // Releases of desktop drivers do not apply to a Jetson.
        let release = self.release.filter(|_| !tables::is_tegra(self.cc));
        let view = GpuAnswerView {
            component: &self.component,
            name: self.name.as_deref(),
            cc: tables::dotted_cc(self.cc),
            by: self.service.name(),
            code: &self.code,
            containers: self.containers.map(|(serve, of)| ContainersView { serve, of }),
            driver: self.cuda.map(|cuda| OldestDriver { cuda, release }),
            sure_from: self.guaranteed_from.map(|(cuda, release)| OldestDriver { cuda, release: Some(release) }),
        };
        view.serialize(json)
    }
}

impl fmt::Display for GpuAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.cc;
        match &self.name {
            Some(name) if *name != format!("{major}.{minor}") => write!(f, "{name} ({major}.{minor}): ")?,
            _ => write!(f, "GPU {major}.{minor}: ")?,
        }
        f.write_str(match self.service {
            Service::Native => "native",
            Service::Jit => "JIT",
            Service::Partial => "partial",
            Service::None => "none: no code for it",
            Service::Unknown => "unknown",
        })?;
        if let Some((served, all)) = self.containers {
            write!(f, ", {served} of {all} containers")?;
        }
        if !self.code.is_empty() {
            write!(f, ", {}", self.code)?;
        }
        if let Some(cuda) = self.cuda.filter(|_| tables::is_tegra(self.cc)) {
            return match jetpack_for(self.cc, cuda) {
                Some(jetpack) => write!(f, "; the driver must support CUDA {cuda} ({jetpack} or newer)"),
                None => write!(f, "; the driver must support CUDA {cuda}, and no JetPack for it is known"),
            };
        }
        match (self.cuda, self.release) {
            (Some(cuda), Some(release)) => write!(f, "; the driver must support CUDA {cuda} ({release} or newer)")?,
            (Some(cuda), None) => write!(f, "; the driver must support CUDA {cuda}")?,
            _ => {}
        }
        match self.guaranteed_from {
            Some((cuda, release)) => write!(f, "; guaranteed if the driver supports CUDA {cuda} ({release} or newer)"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::DriverSupport;
    use cudaguard::internal::manifest::Component;
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;

    #[test]
    fn gpu_answers_are_separate() {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        let row = |from, to, by, code: &str| Requirement::Gpu {
            from,
            to,
            by,
            code: code.to_owned(),
            cuda: None,
            release: None,
            guaranteed_from: None,
            ptx_fallback: PtxFallback::Undetermined,
        };
        manifest.requires = vec![
            row((0, 0), Some((7, 255)), GpuCoverage::Nothing, ""),
            row((8, 0), Some((8, 255)), GpuCoverage::Cubin, "sm_80"),
            row((9, 0), Some((9, 255)), GpuCoverage::PartialPtx, "compute_80"),
            row((10, 0), None, GpuCoverage::Ptx, "compute_80"),
        ];
        let gpu = |name, cc| HostGpu { name: Some(name), cc: Some(cc), visible: true, ..HostGpu::default() };
        let gpus = [
            gpu("T4", (7, 5)),
            gpu("A100", (8, 0)),
            gpu("A100", (8, 0)),
            gpu("H100", (9, 0)),
            gpu("B200", (10, 0)),
            HostGpu { visible: false, ..gpu("A10", (8, 6)) },
            HostGpu { support: DriverSupport::NoLonger(470), ..gpu("A10", (8, 6)) },
        ];
        let rendered: Vec<String> = answers(&manifest, &gpus, false).iter().map(ToString::to_string).collect();
        assert_eq!(
            rendered,
            [
                "T4 (7.5): none: no code for it",
                "A100 (8.0): native, sm_80",
                "H100 (9.0): partial, compute_80",
                "B200 (10.0): JIT, compute_80",
            ]
        );
        let under_force = |manifest: &Manifest| {
            answers(manifest, &gpus[1..], true).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            under_force(&manifest),
            ["A100 (8.0): unknown", "H100 (9.0): unknown", "B200 (10.0): JIT, compute_80"]
        );
        for (with, expected) in [
            (
                PtxFallback::Isa((8, 0)),
                ["A100 (8.0): JIT, PTX 8.0", "H100 (9.0): partial, PTX 8.0", "B200 (10.0): JIT, PTX 8.0"],
            ),
            (
                PtxFallback::Nothing,
                ["A100 (8.0): none: no code for it", "H100 (9.0): none: no code for it", "B200 (10.0): unknown"],
            ),
        ] {
            let mut manifest = manifest.clone();
            for row in &mut manifest.requires {
                if let Requirement::Gpu { ptx_fallback, .. } = row {
                    *ptx_fallback = with;
                }
            }
            assert_eq!(under_force(&manifest), expected);
        }
        let partial = GpuAnswer { containers: Some((196, 197)), ..answers(&manifest, &gpus, false).remove(2) };
        assert!(partial.to_string().contains("partial, 196 of 197 containers, compute_80"), "{partial}");
        assert_eq!(
            serde_json::to_string(&partial).unwrap(),
            r#"{"component":"demo 0.1.0","name":"H100","cc":"9.0","by":"partial","code":"compute_80","containers":{"serve":196,"of":197},"driver":null,"sure_from":null}"#
        );
    }
}
