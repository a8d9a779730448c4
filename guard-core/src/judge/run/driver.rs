//! Driver and GPU: the rows that say which driver is needed, and which code serves which GPU.

use crate::finding::{Code, Finding, Severity};
use crate::host::{Driver, DriverFound, Gpu, Host};
use crate::manifest::{Manifest, Requirement, ServedBy};
use crate::policy::GpuNeed;
use crate::version::{CudaVersion, DriverRelease};

/// Answers of `cuInit`.
mod answer {
    pub(super) const RIGHT: u32 = 0;
    pub(super) const STUB: u32 = 34;
    pub(super) const NO_GPU: u32 = 100;
    pub(super) const MISMATCH: u32 = 803;
    pub(super) const COMPAT_UNSUPPORTED: u32 = 804;
}

/// How a row, or a GPU, comes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fits,
    /// Cannot tell.
    Open,
    Wrong(Code),
}

/// Says nothing where the manifest asks nothing of driver and GPU (facts: decisions 6 and 28).
pub(super) fn judge(manifest: &Manifest, host: &Host, component: &str, findings: &mut Vec<Finding>) {
    let required = manifest.runtime.gpu == GpuNeed::Required;
    let rows = |requirement: &Requirement| matches!(requirement, Requirement::Driver { .. } | Requirement::Gpu { .. });
    if !required && !manifest.requires.iter().any(rows) {
        return;
    }
    let driver = match &host.driver {
        DriverFound::Found(driver) => Some(*driver),
        DriverFound::Unknown | DriverFound::Absent => None,
    };
    let gpus = host.gpus.as_ref().map(|gpus| gpus.iter().filter(|gpu| gpu.visible).collect());
    let judge = Judge { manifest, host, component, required, driver: driver.unwrap_or_default(), gpus };
    if host.driver == DriverFound::Absent {
        findings.push(judge.nothing(Code::DriverMissing));
        return;
    }
    match judge.driver.init {
        None | Some(answer::RIGHT) if judge.gpus.as_ref().is_some_and(Vec::is_empty) => {
            findings.push(judge.nothing(Code::GpuMissing));
        }
        None | Some(answer::RIGHT) => judge.rows(driver.is_none(), findings),
        // A stub where there is no GPU is nobody's trouble: images that build have it, on hosts with a driver, too.
        Some(answer::STUB) if required || judge.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty()) => {
            findings.push(judge.finding(
                Code::StubDriver,
                "the libcuda found is the stub that is for linking only (34)".to_owned(),
                "take the folder with the stubs out of LD_LIBRARY_PATH and of RPATH".to_owned(),
            ));
        }
        Some(answer::STUB | answer::NO_GPU) => findings.push(judge.nothing(Code::GpuMissing)),
        Some(answer::MISMATCH) => findings.push(judge.finding(
            Code::DriverMismatch,
            "libcuda and the kernel module do not belong together (803)".to_owned(),
            "reboot after a driver's update; in a container, remove its own libcuda".to_owned(),
        )),
        Some(answer::COMPAT_UNSUPPORTED) => findings.push(
            judge.finding(
                Code::ForwardCompatUnsupported,
                "cuda-compat does not work with this GPU (804)".to_owned(),
                "take the compat folder out of LD_LIBRARY_PATH and update the driver, or hide that GPU with \
             CUDA_VISIBLE_DEVICES"
                    .to_owned(),
            ),
        ),
        // Says nothing about versions: a system that is not ready, too little memory, a process forked off too late.
        Some(other) => findings.push(judge.cannot_tell(&format!("the driver answers {other}"))),
    }
}

struct Judge<'a> {
    manifest: &'a Manifest,
    host: &'a Host,
    component: &'a str,
    required: bool,
    driver: Driver,
    /// Those that the process sees.
    gpus: Option<Vec<&'a Gpu>>,
}

impl Judge<'_> {
    fn rows(&self, driver_unknown: bool, findings: &mut Vec<Finding>) {
        let Driver { user, kernel, init, .. } = self.driver;
        // Whether two releases are an allowed pair, only the driver says.
        let unlike = init.is_none() && user.zip(kernel).is_some_and(|(user, kernel)| user != kernel);
        let mut open = driver_unknown || self.gpus.is_none() || unlike;
        for requirement in &self.manifest.requires {
            let Requirement::Driver { cuda, release, because } = requirement else { continue };
            // 0: no release is known for it.
            let (cuda, release) = (Some(*cuda), Some(*release).filter(|release| release.branch != 0));
            match self.floor(cuda, release, Code::DriverTooOld) {
                Outcome::Fits => {}
                Outcome::Open => open = true,
                Outcome::Wrong(code) => findings.push(self.too_old(code, because, cuda, release)),
            }
        }
        open |= self.coverage(findings);
        if open {
            findings.push(self.cannot_tell("not all is known of driver and GPUs"));
        }
    }

    /// One fit GPU is enough (facts: decision 23). True where it cannot be told.
    fn coverage(&self, findings: &mut Vec<Finding>) -> bool {
        let visible = self.gpus.as_deref().unwrap_or_default();
        let mut rows = Vec::new();
        let mut kernels = false;
        for requirement in &self.manifest.requires {
            let Requirement::Gpu { from, to, by, code, cuda, release } = requirement else { continue };
            kernels = true;
            let inside = |cc: (u8, u8)| cc >= *from && to.is_none_or(|to| cc <= to);
            let here: Vec<(u8, u8)> = visible.iter().filter_map(|gpu| gpu.cc).filter(|cc| inside(*cc)).collect();
            if !here.is_empty() {
                rows.push((self.served(*by, *cuda, *release), here, code, *cuda, *release));
            }
        }
        let placed: usize = rows.iter().map(|(_, here, ..)| here.len()).sum();
        let fit = rows.iter().any(|(outcome, ..)| *outcome == Outcome::Fits);
        let doubt = kernels && placed < visible.len() || rows.iter().any(|(outcome, ..)| *outcome == Outcome::Open);
        let severity = if fit || doubt { Severity::Info } else { Severity::Error };
        for (outcome, here, code, cuda, release) in rows {
            let Outcome::Wrong(wrong) = outcome else { continue };
            findings.push(self.unserved(wrong, &here, code, cuda, release).weighing(severity));
        }
        doubt && !fit
    }

    fn served(&self, by: ServedBy, cuda: Option<CudaVersion>, release: Option<DriverRelease>) -> Outcome {
        let floor = self.floor(cuda, release, Code::DriverTooOldForCode);
        match by {
            // Which PTX stands beside the machine code, no row says.
            ServedBy::Cubin if self.host.jit.forced => Outcome::Open,
            ServedBy::Ptx if self.host.jit.disabled => Outcome::Wrong(Code::JitDisabled),
            ServedBy::Cubin | ServedBy::Ptx => floor,
            ServedBy::Partial if self.manifest.partial_refuse => Outcome::Wrong(Code::PartialCode),
            ServedBy::Partial if floor == Outcome::Fits => Outcome::Fits,
            ServedBy::Partial | ServedBy::Unknown => Outcome::Open,
            ServedBy::Nothing => Outcome::Wrong(Code::NoCodeForGpu),
        }
    }

    /// What libcuda says it supports decides; its release stands in where that is not known (facts: decision 22), and
    /// the kernel module's only to accept: cuda-compat may be newer (decision 25).
    fn floor(&self, cuda: Option<CudaVersion>, release: Option<DriverRelease>, too_old: Code) -> Outcome {
        let Driver { user, kernel, cuda: supports, .. } = self.driver;
        if cuda.is_none() && release.is_none() {
            return Outcome::Fits;
        }
        let enough = match (cuda.zip(supports), release.zip(user), release.zip(kernel)) {
            (Some((needed, found)), ..) => found >= needed,
            (None, Some((needed, found)), _) => found >= needed,
            (None, None, Some((needed, found))) if found >= needed => true,
            (None, None, _) => return Outcome::Open,
        };
        if enough { Outcome::Fits } else { Outcome::Wrong(too_old) }
    }

    fn nothing(&self, code: Code) -> Finding {
        if !self.required {
            let message = "no GPU to be seen: nothing to judge".to_owned();
            return self.finding(Code::NothingToSee, message, "nothing".to_owned());
        }
        let (what, hint) = if code == Code::DriverMissing {
            (
                "there is no libcuda.so.1, and the program requires a GPU",
                "install the NVIDIA driver; start a container with its GPUs (--gpus all)",
            )
        } else {
            (
                "there is no GPU, and the program requires one",
                "see nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with its GPUs (--gpus all)",
            )
        };
        self.finding(code, what.to_owned(), hint.to_owned())
    }

    fn too_old(&self, code: Code, because: &str, cuda: Option<CudaVersion>, release: Option<DriverRelease>) -> Finding {
        let needed = match (cuda, release) {
            (Some(cuda), _) => format!("one that supports CUDA {cuda}"),
            (None, Some(release)) => format!("release {release}"),
            (None, None) => "another".to_owned(),
        };
        let message = format!("the driver is too old: {because} needs {needed}\nneeded by:  {}", self.component);
        let newer = release.map_or_else(String::new, |release| format!(" to {release} or newer"));
        self.finding(code, message, format!("update the driver{newer}; or rebuild with an older toolkit"))
    }

    fn unserved(
        &self,
        wrong: Code,
        here: &[(u8, u8)],
        code: &str,
        cuda: Option<CudaVersion>,
        release: Option<DriverRelease>,
    ) -> Finding {
        let names: Vec<String> = here.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        let gpus = format!("compute capability {}", names.join(", "));
        let Self { component, .. } = self;
        let rebuild = "rebuild with that architecture among those built for".to_owned();
        match wrong {
            Code::NoCodeForGpu => self.finding(wrong, format!("{component} has no code for {gpus}"), rebuild),
            Code::PartialCode => {
                self.finding(wrong, format!("only a part of the code in {component} is for {gpus}"), rebuild)
            }
            Code::JitDisabled => self.finding(
                wrong,
                format!("CUDA_DISABLE_PTX_JIT forbids what {gpus} needs: {code}"),
                "unset CUDA_DISABLE_PTX_JIT; or rebuild with that architecture".to_owned(),
            ),
            _ => self.too_old(wrong, &format!("{code} for {gpus}"), cuda, release),
        }
    }

    fn cannot_tell(&self, why: &str) -> Finding {
        let message = format!("cannot tell whether driver and GPU fit: {why}");
        self.finding(Code::DriverCannotTell, message, "nothing".to_owned())
    }

    fn finding(&self, code: Code, message: String, hint: String) -> Finding {
        let Driver { user, kernel, cuda, .. } = self.driver;
        let facts = [
            user.map(|user| format!("driver {user}")),
            cuda.map(|cuda| format!("CUDA {cuda}")),
            kernel.filter(|_| kernel != user).map(|kernel| format!("kernel module {kernel}")),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let message = if facts.is_empty() { message } else { format!("{message}\nfound:      {}", facts.join(", ")) };
        Finding::new(code, "driver", message, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Jit;
    use crate::manifest::Component;
    use crate::policy::Policy;
    use crate::toolchain::Toolchain;

    fn manifest(requires: Vec<Requirement>) -> Manifest {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let mut manifest = Manifest::of(component, "t", "release", &Policy::default(), &Toolchain::default());
        manifest.requires = requires;
        manifest
    }

    fn cudart_13() -> Requirement {
        Requirement::Driver {
            cuda: CudaVersion::new(13, 0),
            release: DriverRelease::new(580, 65, 6),
            because: "libcudart 13.0".to_owned(),
        }
    }

    fn sm_80() -> Vec<Requirement> {
        [
            ((0, 0), Some((7, 255)), ServedBy::Nothing),
            ((8, 0), Some((8, 255)), ServedBy::Cubin),
            ((9, 0), None, ServedBy::Nothing),
        ]
        .into_iter()
        .map(|(from, to, by)| Requirement::Gpu { from, to, by, code: "sm_80".to_owned(), cuda: None, release: None })
        .collect()
    }

    fn gpus(ccs: &[(u8, u8)]) -> Vec<Gpu> {
        ccs.iter().map(|cc| Gpu { cc: Some(*cc), uuid: None, visible: true }).collect()
    }

    fn codes(manifest: &Manifest, driver: DriverFound, gpus: Option<Vec<Gpu>>) -> Vec<String> {
        let host = Host { driver, gpus, jit: Jit::default(), ..Host::default() };
        let findings = crate::judge::run::judge(manifest, &host);
        findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
    }

    fn releases(user: Option<u32>, kernel: Option<u32>) -> DriverFound {
        let release = |branch| DriverRelease::new(branch, 95, 5);
        DriverFound::Found(Driver { user: user.map(release), kernel: kernel.map(release), ..Driver::default() })
    }

    #[test]
    fn a_driver_known_by_its_release_alone() {
        let manifest = manifest(vec![cudart_13()]);
        let one = || Some(gpus(&[(9, 0)]));
        for (user, kernel, expected) in [
            (Some(535), None, &["CG301 error"][..]),
            (Some(580), None, &[]),
            (Some(590), Some(590), &[]),
            // cuda-compat may be newer than the kernel module, but it is never older than what works with it.
            (None, Some(535), &["CG505 info"]),
            (None, Some(590), &[]),
            (Some(590), Some(535), &["CG505 info"]),
            (None, None, &["CG505 info"]),
        ] {
            assert_eq!(codes(&manifest, releases(user, kernel), one()), expected, "{user:?} on {kernel:?}");
        }
        let nobody_knows = Requirement::Driver {
            cuda: CudaVersion::new(99, 0),
            release: DriverRelease::new(0, 0, 0),
            because: String::new(),
        };
        assert_eq!(codes(&self::manifest(vec![nobody_knows]), releases(Some(590), Some(590)), one()), ["CG505 info"]);
    }

    #[test]
    fn what_the_driver_supports_goes_before_its_release() {
        let driver = Driver {
            user: Some(DriverRelease::new(535, 0, 0)),
            cuda: Some(CudaVersion::new(13, 0)),
            init: Some(0),
            ..Driver::default()
        };
        assert_eq!(codes(&manifest(vec![cudart_13()]), DriverFound::Found(driver), Some(gpus(&[(9, 0)]))), [""; 0]);
    }

    #[test]
    fn nobody_is_refused_for_what_nobody_knows() {
        let mut manifest = manifest(vec![cudart_13()]);
        manifest.requires.extend(sm_80());
        for need in [GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional] {
            manifest.runtime.gpu = need;
            assert_eq!(codes(&manifest, DriverFound::Unknown, None), ["CG505 info"]);
        }
        // A GPU that does not tell its cc, beside one that is not fit.
        let two = Some(vec![Gpu { visible: true, ..Gpu::default() }, gpus(&[(7, 5)]).remove(0)]);
        assert_eq!(codes(&manifest, releases(Some(590), None), two), ["CG303 info", "CG505 info"]);
    }

    #[test]
    fn gpus_that_the_process_does_not_see_are_not_judged() {
        let manifest = manifest(sm_80());
        let mut two = gpus(&[(8, 6), (7, 5)]);
        assert_eq!(codes(&manifest, releases(Some(590), None), Some(two.clone())), ["CG303 info"]);
        two[0].visible = false;
        assert_eq!(codes(&manifest, releases(Some(590), None), Some(two.clone())), ["CG303 error"]);
        two[1].visible = false;
        assert_eq!(codes(&manifest, releases(Some(590), None), Some(two)), ["CG504 info"]);
    }

    #[test]
    fn a_component_that_asks_nothing_hears_nothing() {
        let mut manifest = manifest(Vec::new());
        assert_eq!(codes(&manifest, DriverFound::Absent, None), [""; 0]);
        manifest.runtime.gpu = GpuNeed::Required;
        assert_eq!(codes(&manifest, DriverFound::Absent, None), ["CG307 error"]);
        assert_eq!(codes(&manifest, releases(Some(590), None), Some(gpus(&[]))), ["CG310 error"]);
    }
}
