//! Detects the facts of a Windows machine: the driver from the version resource of `nvcuda.dll`, the GPUs from `nvidia-smi`, and the
//! libraries from the directories in which a program searches for DLLs. No NVIDIA code runs in this process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::redact::redact_home;
use super::{Driver, Gpu, HostLibrary, Machine, OTHER_LIBRARIES};
use crate::binary::mapped_file::{Contents, OpenFiles};
use crate::binary::pe::Pe;
use crate::family::is_installed;
use crate::host::library_version::file_version;
use crate::knowledge::vendor;
use cudaguard::internal::env::Env;
use cudaguard::internal::subprocess::run_with_timeout;
use cudaguard::internal::tables::pci;
use cudaguard::internal::version::DriverRelease;

pub(crate) const NVCUDA: &str = "nvcuda.dll";
const SMI: &str = "nvidia-smi.exe";
/// Equal to the limit for the driver on Linux.
const PATIENCE: Duration = Duration::from_secs(10);
/// The columns of a GPU. `nvidia-smi` of drivers before 2022 does not know `compute_cap`.
const COLUMNS: [&str; 6] = ["driver_version", "uuid", "pci.bus_id", "pci.device_id", "name", "compute_cap"];

/// Detects this machine as a program that is started here would see it. Without `asks`, no program is started.
pub(super) fn detect_windows(env: &Env, asks: bool) -> Machine {
    let platform = Some(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS));
    let mut machine = Machine { platform, ..Machine::default() };
    let root = env.var_os("SystemRoot").map(PathBuf::from);
    let system = root.as_ref().map(|root| root.join("System32"));
    match &system {
        Some(system) => detect_driver(env, &mut machine, system, asks),
        None => machine.warnings.push("SystemRoot is not set, so the driver's files are unknown".to_owned()),
    }
    let mut dirs: Vec<(PathBuf, &str)> = [system, root].into_iter().flatten().map(|dir| (dir, "system")).collect();
    dirs.push((env.current_dir().to_owned(), "current directory"));
    dirs.extend(env.path_list("PATH").into_iter().map(|dir| (dir, "PATH")));
    detect_libraries(env, &mut machine, &dirs);
    machine.read_variables(env);
    machine
}

fn detect_driver(env: &Env, machine: &mut Machine, system: &Path, asks: bool) {
    let library = system.join(NVCUDA);
    let mut driver = Driver { absent: !library.is_file(), ordinary: true, ..Driver::default() };
    if !driver.absent {
        driver.user = release_of_dll(&library);
        driver.library = Some(redact_home(env, &library.display()));
        match driver.user {
            Some(_) => machine.sources.push(("driver.user".to_owned(), format!("the version resource of {NVCUDA}"))),
            None => machine
                .warnings
                .push(format!("{NVCUDA} has no version resource of NVIDIA's, so its release is unknown")),
        }
        if asks {
            ask_smi(env, machine, &mut driver, &system.join(SMI));
        }
    }
    machine.driver = Some(driver);
}

/// Returns the release in the version resource of a driver file.
fn release_of_dll(file: &Path) -> Option<DriverRelease> {
    let [.., third, fourth] = Pe::parse(&Contents::open(file).ok()?).ok()?.version()?.numbers;
    DriverRelease::from_windows(third.into(), fourth.into())
}

/// Queries the GPUs and the release of the display driver.
fn ask_smi(env: &Env, machine: &mut Machine, driver: &mut Driver, smi: &Path) {
    let variables = env.for_child();
    let mut query = format!("--query-gpu={}", COLUMNS.join(","));
    let mut answer = run_with_timeout(smi, &[query.as_str(), "--format=csv,noheader"], variables, PATIENCE);
    if answer.as_ref().is_ok_and(|answer| answer.failed.is_some()) {
        query = format!("--query-gpu={}", COLUMNS[..5].join(","));
        answer = run_with_timeout(smi, &[query.as_str(), "--format=csv,noheader"], variables, PATIENCE);
    }
    match answer {
        Ok(answer) if answer.failed.is_none() => {
            let (release, gpus) = parse_gpus(&answer.out);
            driver.kernel = release;
            machine.gpus = Some(gpus);
            machine.sources.extend(["driver.kernel", "gpus"].map(|key| (key.to_owned(), SMI.to_owned())));
        }
        Ok(answer) => {
            let message = answer.out.lines().chain(answer.err.lines()).find(|line| !line.trim().is_empty());
            machine.warnings.push(format!("{SMI} failed: {}", message.unwrap_or("without a message").trim()));
        }
        Err(why) => machine.warnings.push(format!("{SMI} {why}, so the GPUs are unknown")),
    }
}

/// Parses the CSV lines of `nvidia-smi`, one for each GPU, and the driver's release, which all lines have.
fn parse_gpus(text: &str) -> (Option<DriverRelease>, Vec<Gpu>) {
    let (mut release, mut gpus) = (None, Vec::new());
    for line in text.lines().filter(|line| line.contains(',')) {
        let mut fields = line.split(',').map(str::trim);
        let [driver, uuid, pci, id, name, cc] =
            std::array::from_fn(|_| fields.next().filter(|text| !text.is_empty() && !text.starts_with('[')));
        release = release.or_else(|| driver?.parse().ok());
        let stated = cc.and_then(|cc| cc.split_once('.'));
        let cc = stated.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?))).or_else(|| {
            // The vendor is the lower half.
            let id = u32::from_str_radix(id?.strip_prefix("0x")?, 16).ok()?;
            pci::compute_capability(u16::try_from(id >> 16).ok()?)
        });
        let [name, uuid, pci] = [name, uuid, pci].map(|text| text.map(str::to_owned));
        gpus.push(Gpu { name, cc, uuid, pci, listed: true, ..Gpu::default() });
    }
    (release, gpus)
}

/// Finds the DLLs of each library in the directories, in their order.
fn detect_libraries(env: &Env, machine: &mut Machine, dirs: &[(PathBuf, &str)]) {
    let files = OpenFiles::default();
    for key in vendor::DESCRIBED.into_iter().map(|library| library.key).chain([OTHER_LIBRARIES]) {
        machine.libraries.insert(key, Vec::new());
    }
    let (mut searched, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (dir, kind) in dirs.iter().filter(|(dir, _)| !dir.as_os_str().is_empty()) {
        if !searched.insert(dir) {
            continue;
        }
        let mut names: Vec<String> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        for name in names.into_iter().filter(|name| name.to_ascii_lowercase().ends_with(".dll")) {
            let library = vendor::described_library(&name);
            if library.is_none() && !is_installed(&name) {
                continue;
            }
            let path = dir.join(&name);
            let found = HostLibrary {
                version: file_version(&files, &path),
                path: Some(redact_home(env, &path.display())),
                taken: taken.insert(name.to_ascii_lowercase()),
                by: Some(redact_home(env, &format!("{kind}: {}", dir.display()))),
                soname: Some(name),
                ..HostLibrary::default()
            };
            let key = library.map_or(OTHER_LIBRARIES, |library| library.key);
            machine.libraries.entry(key).or_default().push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_is_in_last_digits() {
        let release = |third, fourth| DriverRelease::from_windows(third, fourth).map(|release| release.to_string());
        assert_eq!(release(15, 5222).as_deref(), Some("552.22"));
        assert_eq!(release(15, 8157).as_deref(), Some("581.57"));
        assert_eq!(release(14, 11).as_deref(), Some("400.11"));
        assert_eq!((release(0, 1), release(15, 10_000)), (None, None));
    }

    #[test]
    fn gpus_of_smi_are_parsed() {
        let (release, gpus) = parse_gpus(
            "581.57, GPU-1, 00000000:01:00.0, 0x268410DE, NVIDIA GeForce RTX 4090, 8.9\r\n\
             581.57, GPU-2, 00000000:02:00.0, 0x220410DE, NVIDIA GeForce RTX 3090\r\n\
             581.57, GPU-3, 00000000:03:00.0, 0xFFFF10DE, Future, [N/A]\r\n",
        );
        assert_eq!(release.map(|release| release.to_string()).as_deref(), Some("581.57"));
        assert_eq!(gpus.iter().map(|gpu| gpu.cc).collect::<Vec<_>>(), [Some((8, 9)), Some((8, 6)), None]);
        assert_eq!(gpus[0].name.as_deref(), Some("NVIDIA GeForce RTX 4090"));
        assert_eq!(parse_gpus("No devices were found\n"), (None, Vec::new()));
    }
}
