//! Problems of the machine that its facts show, without a program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::loader::sorted_entries;
use crate::host::machine::judge;
use crate::host::machine::{Gpu, Machine, MachineKind, detect};
use crate::knowledge::symptoms::{MachineFact, likeliest_cause};
use crate::knowledge::vendor::{CUDNN, LIBCUDA};
use cudaguard::internal::env::Env;
use cudaguard::internal::finding::{Code, Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::Component;
use cudaguard::internal::tables;

use super::{CandidateState, DriverCandidate, is_gpu_device, is_nvidia_gpu, name_of};

/// Facts about this machine's files that [`Machine`] does not contain.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct HostSymptoms {
    /// PCI addresses of NVIDIA's GPUs.
    on_bus: Vec<String>,
    /// Device files of GPUs that this process may not open.
    denied: Vec<String>,
    /// Devices of all GPUs that are missing, or that this process may not open.
    lacking: Vec<String>,
    /// The libcuda that the loader picks.
    libcuda: Option<String>,
    /// True if this process may open the device file of a GPU.
    usable: bool,
    /// True if the kernel module is the proprietary one.
    closed_module: bool,
    /// True if the kernel module is the open one.
    open_module: bool,
    /// Compute capabilities of the GPUs on the bus, if each is known.
    capabilities: Vec<(u8, u8)>,
    /// True if the process runs in a container.
    container: bool,
    /// The value of `CUDA_MPS_PIPE_DIRECTORY`.
    mps: Option<String>,
}

impl HostSymptoms {
    pub(super) fn from_candidates(env: &Env, choices: &[DriverCandidate]) -> Self {
        let picked = choices.iter().find(|choice| choice.name == LIBCUDA && choice.fate == CandidateState::Picked);
        let version = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let mut gpus = sorted_entries(Path::new("/sys/bus/pci/devices"));
        gpus.retain(|path| is_nvidia_gpu(path));
        let mut devices = sorted_entries(Path::new("/dev"));
        devices.retain(|path| is_gpu_device(path));
        let (usable, denied): (Vec<PathBuf>, Vec<PathBuf>) =
            devices.into_iter().partition(|path| detect::may_open(path));
        let shared = ["/dev/nvidiactl", "/dev/nvidia-uvm"].iter().filter(|path| !detect::may_open(Path::new(path)));
        Self {
            lacking: shared.map(|path| (*path).to_owned()).collect(),
            usable: !usable.is_empty(),
            closed_module: version.contains("NVRM version") && !version.contains("Open Kernel Module"),
            open_module: version.contains("Open Kernel Module"),
            capabilities: gpus.iter().map(|path| capability_on_bus(path)).collect::<Option<_>>().unwrap_or_default(),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists()),
            mps: env.var("CUDA_MPS_PIPE_DIRECTORY"),
            on_bus: gpus.iter().map(|path| name_of(path)).collect(),
            denied: denied.iter().map(|path| path.display().to_string()).collect(),
            libcuda: picked.map(|choice| choice.path.clone()),
        }
    }
}

/// Returns the compute capability of a GPU in `/sys/bus/pci/devices`, by its device id.
fn capability_on_bus(path: &Path) -> Option<(u8, u8)> {
    let id = fs::read_to_string(path.join("device")).ok()?;
    tables::pci::compute_capability(u16::from_str_radix(id.trim().strip_prefix("0x")?, 16).ok()?)
}

/// Returns the problems of a machine that do not depend on the program.
pub(super) fn diagnose_host(machine: &Machine, signs: &HostSymptoms) -> Vec<Finding> {
    let mut found = Vec::new();
    let driver = machine.driver.clone().unwrap_or_default();
    let libcuda = signs.libcuda.as_deref().unwrap_or("libcuda.so.1");
    let module = driver.kernel.is_some() || machine.kind.is_some();
    let kernel = driver.kernel.filter(|kernel| Some(*kernel) != driver.user);
    let values = Values::default()
        .with_known("driver", driver.user)
        .with_known("cuda", driver.cuda)
        .with_known("kernel", kernel);
    let values = values.with("libcuda", libcuda);
    if !signs.on_bus.is_empty() && (driver.absent || !module) {
        let words = match (driver.absent, module) {
            (true, true) => MessageTemplate::GpuUndrivenNoLibrary,
            (true, false) => MessageTemplate::GpuUndriven,
            _ => MessageTemplate::GpuUndrivenNoModule,
        };
        found.push(words.to_finding(&values.clone().with("devices", signs.on_bus.join(", "))));
    }
    // For 100, no device, the GPUs and device files of the machine decide, below.
    if let Some(answer) = driver.init.filter(|answer| *answer != 100) {
        let refusal = judge::refusal_of_every_gpu_program(Component::unrecorded(""), machine);
        let refusal = refusal.filter(|finding| answer != 0 || finding.code == Code::GpuNotForDriver);
        found.extend(refusal.or_else(|| (answer != 0).then(|| init_failure(answer, machine, signs, &values))));
    }
    if machine.kind == Some(MachineKind::Wsl2) && signs.libcuda.as_deref().is_some_and(|path| !path.contains("/wsl/")) {
        found.push(MessageTemplate::WslShadowed.to_finding(&values));
    }
    let compat = !driver.ordinary && driver.library.is_some() && machine.kind.is_none();
    if let (true, Some(user), Some(kernel)) = (compat, driver.user, driver.kernel)
        && user.branch <= kernel.branch
        && user != kernel
    {
        let values = values.clone().with("fix", format_args!("remove {libcuda} from the loader's path"));
        found.push(MessageTemplate::CompatOutdated.to_finding(&values));
    }
    // If cuInit succeeds, the driver has created the devices that were missing.
    let lacking = if signs.usable && module && driver.init != Some(0) { &*signs.lacking } else { &[] };
    let shadowed = found.iter().any(|finding| finding.code == Code::WslShadowed);
    let denied = [&*signs.denied, lacking].concat();
    let hidden = machine.variables.iter().find(|(name, _)| name == "CUDA_VISIBLE_DEVICES");
    let all_hidden =
        machine.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty() && gpus.iter().all(|gpu| gpu.visible == Some(false)));
    match hidden {
        Some((_, value)) if driver.init == Some(100) || all_hidden => {
            found.push(MessageTemplate::GpusHidden.to_finding(&Values::default().with("value", value)));
        }
        _ if !denied.is_empty() => {
            found.push(MessageTemplate::DeviceDenied.to_finding(&Values::default().with("devices", denied.join(" "))));
        }
        _ if driver.init == Some(100) && machine.kind == Some(MachineKind::Wsl2) && !shadowed => {
            found.push(init_failure(100, machine, signs, &values));
        }
        _ if driver.init == Some(100) && !signs.on_bus.is_empty() && module && machine.kind.is_none() => {
            let values = values.clone().with("devices", signs.on_bus.join(", "));
            let finding = undriven_finding(machine, signs, &values)
                .unwrap_or_else(|| MessageTemplate::DriverNotWorkingNoGpu.to_finding(&values));
            // If there are no device files, this is a container that was started without GPUs, or a host that gives its GPUs
            let is_certain = signs.usable || finding.code == Code::GpuNotForDriver;
            found.push(finding.with_severity(if is_certain { Severity::Error } else { Severity::Warning }));
        }
        _ => {}
    }
    if driver.ptx_compiler == Some(false) && driver.init == Some(0) && machine.kind.is_none() {
        found.push(MessageTemplate::JitMissingAnybody.to_finding(&values).with_severity(Severity::Warning));
    }
    for library in machine.library_files(&CUDNN).into_iter().flatten().filter(|library| library.is_loaded()) {
        for finding in judge::findings_of_cudnn(library, machine) {
            // It is unknown whether any program loads this cuDNN.
            let severity = finding.severity.min(Severity::Warning);
            found.push(finding.with_severity(severity));
        }
    }
    found
}

/// Returns the finding for a `cuInit` that fails: the cause that the facts of this machine select in the table of statuses.
fn init_failure(answer: u32, machine: &Machine, signs: &HostSymptoms, values: &Values) -> Finding {
    let values = values.clone().with("answer", answer);
    let mut facts = vec![MachineFact::Init];
    if machine.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty() && gpus.iter().all(is_virtual)) {
        facts.push(MachineFact::Vgpu);
    }
    if signs.container {
        facts.push(MachineFact::Container);
    }
    if machine.kind == Some(MachineKind::Wsl2) {
        facts.push(MachineFact::Wsl);
    } else if !signs.lacking.is_empty() {
        facts.push(MachineFact::NoUvm);
    }
    if signs.mps.is_some() {
        facts.push(MachineFact::MpsVariable);
    }
    let Some((symptom, cause)) = likeliest_cause(answer, &facts) else {
        return MessageTemplate::DriverNotWorking.to_finding(&values);
    };
    let is_open = cause.when.is_none() && symptom.causes.len() > 1;
    let values = values.with("problem", &symptom.title).with("why", cause.why.trim_end_matches('.'));
    let values = values.with("action", cause.fix.trim_end_matches('.')).with_known("status", is_open.then_some(answer));
    let is_of_mps = (805..=810).contains(&answer);
    let values = values.with_known("value", signs.mps.as_ref().filter(|_| is_of_mps));
    MessageTemplate::DriverNotWorkingCaused.to_finding(&values)
}

/// Returns true for a virtual GPU of a guest: `GRID T4-8Q`, `NVIDIA A10-24C`.
fn is_virtual(gpu: &Gpu) -> bool {
    let name = gpu.name.as_deref().unwrap_or_default();
    let size = name.rsplit('-').next().unwrap_or_default().strip_suffix(['A', 'B', 'C', 'Q']).unwrap_or_default();
    name.contains("GRID") || (!size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the machine without the answer of its driver, so that the release decides which GPUs it supports. `on_bus`: the compute
/// capabilities of the GPUs on the bus, which count if the driver names none.
fn without_answer(machine: &Machine, on_bus: &[(u8, u8)]) -> Machine {
    let mut described = machine.clone();
    if let Some(driver) = &mut described.driver {
        driver.init = None;
    }
    if described.known_gpus().iter().all(|gpu| gpu.cc.is_none()) {
        described.gpus = Some(on_bus.iter().map(|cc| Gpu { cc: Some(*cc), ..Gpu::default() }).collect());
    }
    for gpu in described.gpus.iter_mut().flatten() {
        (gpu.listed, gpu.visible) = (false, None);
    }
    described
}

/// Returns why this driver can never use the GPUs on the bus: its branch dropped them, or its kernel module is not for them.
fn undriven_finding(machine: &Machine, signs: &HostSymptoms, values: &Values) -> Option<Finding> {
    let described = without_answer(machine, &signs.capabilities);
    let newest = described.known_gpus().iter().filter_map(|gpu| gpu.cc).max()?;
    let refusal = judge::refusal_of_every_gpu_program(Component::unrecorded(""), &described);
    if let Some(finding) = refusal.filter(|finding| finding.code == Code::GpuNotForDriver) {
        return Some(finding);
    }
    // Blackwell and later GPUs work with the open kernel modules only, and GPUs before Turing with the other ones only.
    if signs.closed_module && newest >= (10, 0) {
        return Some(MessageTemplate::DriverNotWorkingClosedModule.to_finding(values));
    }
    let is_too_old = signs.open_module && newest < (7, 5) && !tables::is_tegra(newest);
    is_too_old.then(|| MessageTemplate::DriverNotWorkingOpenModule.to_finding(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::{Components, Driver};
    use cudaguard::internal::finding::Effect;
    use cudaguard::internal::manifest::{Manifest, Requirement};
    use cudaguard::internal::policy::Policy;
    use cudaguard::internal::toolchain::Toolchain;
    use cudaguard::internal::version::{CudaVersion, DriverRelease};

    fn codes(host: &str, signs: &HostSymptoms) -> Vec<String> {
        let (machine, _) = Machine::read(host).unwrap_or_else(|mistake| panic!("{mistake}: {host}"));
        diagnose_host(&machine, signs).iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect()
    }

    #[test]
    fn healthy_host_has_no_problems() {
        let bus = HostSymptoms { on_bus: vec!["0000:01:00.0".to_owned()], ..HostSymptoms::default() };
        let good = r#"{"driver": {"user": "580.65.06", "kernel": "580.65.06", "init": 0, "library": "/x", "ordinary": true,
            "ptx_compiler": true}, "gpus": [{"cc": "8.0"}]}"#;
        assert_eq!(codes(good, &bus), [""; 0]);
        assert_eq!(
            codes(r#"{"driver": {"present": false}}"#, &HostSymptoms::default()),
            [""; 0],
            "a machine without a GPU"
        );
        assert_eq!(codes("{}", &HostSymptoms::default()), [""; 0]);
        assert!(
            diagnose_host(&Machine { driver: Some(Driver::default()), ..Machine::default() }, &HostSymptoms::default())
                .is_empty()
        );
    }

    #[test]
    fn problems_are_diagnosed() {
        let bus = || HostSymptoms { on_bus: vec!["0000:01:00.0".to_owned()], ..HostSymptoms::default() };
        let libcuda = |path: &str| HostSymptoms { libcuda: Some(path.to_owned()), ..bus() };
        let of = |cc| HostSymptoms { capabilities: vec![cc], ..bus() };
        let denied = HostSymptoms { denied: vec!["/dev/nvidia0".to_owned()], ..bus() };
        let no_uvm = || HostSymptoms { lacking: vec!["/dev/nvidia-uvm".to_owned()], usable: true, ..bus() };
        for (host, signs, expected) in [
            (r#"{"driver": {"present": false}}"#, bus(), &["CG320 warning"][..]),
            (r#"{"driver": {"present": false, "kernel": "580.65.06"}}"#, bus(), &["CG320 warning"]),
            (r#"{"driver": {"user": "580.65.06", "ordinary": true}}"#, bus(), &["CG320 warning"]),
            (
                r#"{"driver": {"user": "580.1", "kernel": "535.1", "init": 803, "ordinary": true}}"#,
                bus(),
                &["CG304 error"],
            ),
            (r#"{"driver": {"kernel": "535.1", "init": 804}}"#, bus(), &["CG305 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 34}}"#, bus(), &["CG306 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 802}}"#, bus(), &["CG324 error"]),
            (r#"{"driver": {"kernel": "535.1", "init": 999}}"#, bus(), &["CG324 error"]),
            (
                r#"{"kind": "wsl2", "driver": {"init": 100}}"#,
                libcuda("/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
                &["CG323 warning"],
            ),
            (r#"{"kind": "wsl2", "driver": {"init": 0}}"#, libcuda("/usr/lib/wsl/lib/libcuda.so.1"), &[]),
            (
                r#"{"kind": "wsl2", "driver": {"init": 100}}"#,
                libcuda("/usr/lib/wsl/lib/libcuda.so.1"),
                &["CG324 error"],
            ),
            (
                r#"{"driver": {"user": "535.1.1", "kernel": "580.65.06", "init": 0, "library": "/usr/local/cuda/compat/x"}}"#,
                bus(),
                &["CG322 warning"],
            ),
            (
                r#"{"driver": {"user": "580.65.06", "kernel": "535.1.1", "init": 0, "library": "/usr/local/cuda/compat/x"}}"#,
                bus(),
                &[],
            ),
            (
                r#"{"driver": {"kernel": "535.1", "init": 100}, "variables": {"CUDA_VISIBLE_DEVICES": "7"}}"#,
                bus(),
                &["CG325 info"],
            ),
            (r#"{"driver": {"kernel": "535.1", "init": 100}}"#, denied, &["CG321 warning"]),
            (
                r#"{"driver": {"user": "595.58.03", "kernel": "595.58.03", "init": 0}, "gpus": [{"cc": "7.0"}]}"#,
                bus(),
                &["CG317 error"],
            ),
            (r#"{"driver": {"user": "595.58.03", "kernel": "595.58.03", "init": 100}}"#, of((7, 0)), &["CG317 error"]),
            (r#"{"driver": {"user": "535.1", "kernel": "535.1", "init": 100}}"#, of((12, 0)), &["CG317 error"]),
            (r#"{"driver": {"user": "535.1", "kernel": "535.1", "init": 100}}"#, of((9, 0)), &["CG324 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 100}}"#, no_uvm(), &["CG321 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 999}}"#, no_uvm(), &["CG324 error", "CG321 warning"]),
            (r#"{"driver": {"kernel": "535.1", "init": 0}}"#, no_uvm(), &[]),
            (r#"{"driver": {"kernel": "535.1", "init": 0, "ptx_compiler": false}}"#, bus(), &["CG309 warning"]),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": []}]}"#,
                HostSymptoms::default(),
                &["CG204 warning", "CG204 warning"],
            ),
            (
                r#"{"gpus": [{"cc": "6.1", "visible": true}], "cudnn": [{"version": "9.14.0", "path": "/x"}]}"#,
                HostSymptoms::default(),
                &["CG313 warning"],
            ),
            (
                r#"{"gpus": [{"cc": "6.1", "visible": true}], "cudnn": [{"version": "9.10.2", "path": "/x"}]}"#,
                HostSymptoms::default(),
                &[],
            ),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": [{"file": "libcudnn_graph.so.9", "version": "9.2.0"}]}]}"#,
                HostSymptoms::default(),
                &["CG206 warning", "CG204 warning"],
            ),
            (
                r#"{"cudnn": [{"version": "9.1.0", "path": "/x", "parts": [{"file": "libcudnn_graph.so.9", "version": "9.1.0"}]}]}"#,
                HostSymptoms::default(),
                &["CG204 warning"],
            ),
        ] {
            assert_eq!(codes(host, &signs), expected, "{host}");
        }
    }

    /// The judge of a start refuses with the code of `doctor`, or does not know. Then `doctor` names the cause that other facts select.
    #[test]
    fn start_and_doctor_agree_about_each_status() {
        let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
        let manifest = Manifest::from_build(component, "t", "release", &Policy::default(), &Toolchain::default());
        let (cuda, release) = (CudaVersion::new(12, 0), DriverRelease::new(525, 60, 13));
        let requires = vec![Requirement::Driver { cuda, release, because: "libcudart 12.4".to_owned() }];
        let manifests = vec![Manifest { requires, ..manifest }];
        let program = Components { manifests, ..Components::default() };
        for status in [3, 34, 46, 101, 205, 300, 304, 801, 802, 803, 804, 805, 806, 809, 999] {
            for (facts, kernel) in [(r#""ordinary": true"#, "535.261.03"), (r#""compat": {}"#, "535.261.03")] {
                let host = format!(
                    r#"{{"driver": {{"user": "580.95.05", "kernel": "{kernel}", "init": {status}, {facts}}},
                    "gpus": [{{"cc": "8.0"}}]}}"#
                );
                let (machine, _) = Machine::read(&host).unwrap();
                let start = program.check_on(&machine, "that machine");
                let start = start.iter().map(|finding| finding.code).find(|code| code.effect() != Effect::Informs);
                let doctor = diagnose_host(&machine, &HostSymptoms::default());
                let [doctor] = doctor.iter().map(|finding| finding.code).collect::<Vec<_>>()[..] else {
                    panic!("{host}: {doctor:?}");
                };
                let agree =
                    start == Some(doctor) || (start, doctor) == (Some(Code::DriverCannotTell), Code::DriverNotWorking);
                assert!(agree, "{host}: {start:?}, {doctor:?}");
            }
        }
    }
}
