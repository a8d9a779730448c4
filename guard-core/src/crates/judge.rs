//! (policy, toolchain, what the crates would do) → findings. No file, environment, process or clock in here.
//!
//! A crate that is linked, or compiles, is built with the toolkit; what is loaded by name meets its libraries on another
//! machine. So the first is wrong with another major than the toolkit's, and of the second it is only said.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::look::{ArchUse, Chosen, Stopped, Told, Use};
use super::table::{self, LevelRule, LibraryRule, Mode, Symbols};
use super::{Crate, has_majors};
use crate::finding::{Code, Finding, Severity};
use crate::judge::wording::{facts, in_file};
use crate::policy::Policy;
use crate::serves::Serves;
use crate::tables;
use crate::toolchain::Toolchain;
use crate::version::CudaVersion;

/// What a build script has told of its last run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The crate's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The variables that it set for the compiler.
    pub variables: BTreeMap<String, String>,
    /// The conditions that it set: `feature="cudnn-09021"`.
    pub conditions: Vec<String>,
    /// The `cuda.h` in the folder that it names in `CUDA_INCLUDE_DIR`, and its release.
    pub headers: Option<(PathBuf, CudaVersion)>,
}

/// What is wrong with these crates, built by this toolchain under this policy. Severities are the codes' own, or less where
/// the build need not be touched by it; [`Policy::apply`] comes after.
pub fn judge(policy: &Policy, toolchain: &Toolchain, uses: &[Use]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, one) in uses.iter().enumerate() {
        // A tool of several crates is one tool; of all ways to it one is told: on which its headers are named, then the
        // shortest.
        let order = |at: usize, of: &Use| (!of.headers.as_ref().is_some_and(|found| found.named), of.of.path.len(), at);
        let same = |other: &Use| (&other.of.name, &other.of.version) == (&one.of.name, &one.of.version);
        let told = uses.iter().enumerate().any(|(at, other)| same(other) && order(at, other) < order(index, one));
        if told && one.of.tool {
            continue;
        }
        level(toolchain, one, &mut findings);
        guarded(toolchain, one, &mut findings);
        driver(policy, one, &mut findings);
        compiler(toolchain, one, &mut findings);
        arch(policy, one, &mut findings);
        stopped(toolchain, one, &mut findings);
    }
    disagreement(uses, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// `13.0.88 (…/bin/nvcc --version)`.
fn in_use(toolchain: &Toolchain) -> String {
    let Some(toolkit) = toolchain.toolkit() else { return String::new() };
    format!("{} ({})", toolchain.release_text().unwrap_or_default(), toolkit.source)
}

fn libraries(of: &Crate) -> String {
    let names: Vec<String> = of.libraries().iter().map(|stem| format!("lib{stem}")).collect();
    let how = match of.mode() {
        Mode::Linked => "linked",
        Mode::Static => "linked statically",
        _ => "opened by name",
    };
    format!("{} ({how})", names.join(", "))
}

/// How to tell a crate another level: where, and what to write.
fn change(one: &Use, rule: &LevelRule, level: &Told<CudaVersion>, to: CudaVersion) -> String {
    let number = LevelRule::number_of(to);
    match level.chosen {
        Chosen::Fixed if level.by.starts_with(&rule.variable) => {
            format!("unset {}, or set it to {number}", rule.variable)
        }
        Chosen::Fixed => {
            let feature = format!("{}{number}", rule.features);
            let now = level.by.trim_start_matches("feature ");
            match (one.of.known.contains(&feature), one.of.named_in.first()) {
                (true, Some(line)) => {
                    format!("{line}: take the feature {feature} instead of {now}; or set {}={number}", rule.variable)
                }
                (true, None) => format!("set {}={number}; {now} is asked for by {}", rule.variable, one.of.line()),
                (false, _) => format!("{} knows no CUDA {to}: update it ({})", one.of.in_words(), one.of.line()),
            }
        }
        Chosen::Found => "put the bin folder of the toolkit in use first in PATH".to_owned(),
        Chosen::Assumed => {
            format!("put the bin folder of the toolkit in use first in PATH, or set {}={number}", rule.variable)
        }
    }
}

/// The bindings' CUDA level against the toolkit in use.
fn level(toolchain: &Toolchain, one: &Use, findings: &mut Vec<Finding>) {
    let Some((told, toolkit)) = one.level.as_ref().zip(toolchain.toolkit_version()) else { return };
    let toolkit = CudaVersion::from(toolkit);
    let built = matches!(one.of.mode(), Mode::Linked | Mode::Static);
    // The driver's functions stay, and so do NVRTC's: what only uses these is of no major.
    let apart = one.of.libraries().into_iter().any(has_majors);
    let Some(rule) = one.of.row().and_then(|row| row.level.as_ref()).filter(|_| apart) else { return };
    let other_major = told.value.major != toolkit.major;
    let newer = told.value.major == toolkit.major && told.value > toolkit;
    let wrong = other_major || newer && built;
    if !wrong {
        return;
    }
    let message =
        format!("{} has bindings for CUDA {}, and the toolkit in use is {toolkit}.", one.of.in_words(), told.value);
    let finding = Finding::new(
        Code::CrateForOtherCuda,
        one.of.in_words(),
        facts(
            &message,
            [
                ("crate", one.of.way()),
                ("level", format!("{} ({})", told.value, told.by)),
                ("toolkit", in_use(toolchain)),
                ("uses", libraries(&one.of)),
            ],
        ),
        change(one, rule, told, toolkit),
    );
    findings.push(if other_major && built { finding } else { finding.weighing(Severity::Warning) });
}

/// The bindings' cuDNN level against the cuDNN in use.
fn guarded(toolchain: &Toolchain, one: &Use, findings: &mut Vec<Finding>) {
    let Some(told) = &one.library else { return };
    let headers = toolchain.library_headers_used().and_then(|headers| Some((headers.version?, headers.path.clone())));
    let library = toolchain.library_used();
    let library = library.and_then(|library| Some((library.version.as_ref()?.value, library.path.clone())));
    let Some((found, path)) = headers.or(library) else { return };
    let (major, minor) = told.value;
    let level = minor.map_or(major.to_string(), |minor| format!("{major}.{minor}"));
    let lacks = match one.of.row().and_then(|row| row.library.as_ref()) {
        Some(LibraryRule::Fixed { lacks, symbol, .. }) if one.of.mode() == Mode::Loaded && found <= *lacks => {
            Some(symbol)
        }
        _ => None,
    };
    if major == found.major && lacks.is_none() {
        return;
    }
    let message = match lacks.filter(|_| major == found.major) {
        Some(symbol) => {
            format!("{} looks up {symbol} when it opens cuDNN, and cuDNN {found} does not have it.", one.of.in_words())
        }
        None => format!("{} has bindings for cuDNN {level}, and the cuDNN in use is {found}.", one.of.in_words()),
    };
    let hint = if major == found.major {
        "use a newer cuDNN (9.15 has it), or a cudarc from 0.19.5 on, which looks up what is called".to_owned()
    } else {
        let install = format!("install cuDNN {major} and set CUDNN_PATH to its root");
        match one.of.named_in.first() {
            Some(line) => format!("{install}, or take bindings for cuDNN {} in {line}", found.major),
            // What the manifest of a published crate says nobody changes here.
            None => install,
        }
    };
    findings.push(Finding::new(
        Code::CrateForOtherCudnn,
        one.of.in_words(),
        facts(
            &message,
            [
                ("crate", one.of.way()),
                ("level", format!("{level} ({})", told.by)),
                ("cuDNN", format!("{found} ({})", path.display())),
                ("uses", libraries(&one.of)),
            ],
        ),
        hint,
    ));
}

/// Two crates of different majors in one program.
fn disagreement(uses: &[Use], findings: &mut Vec<Finding>) {
    let cuda: Vec<(&Use, u32, String)> = uses
        .iter()
        .filter(|one| !one.of.tool && one.of.libraries().into_iter().any(has_majors))
        .filter_map(|one| {
            let told = one.level.as_ref()?;
            Some((one, told.value.major, format!("{} ({})", told.value, told.by)))
        })
        .collect();
    differ("CUDA", &cuda, findings);
    let library: Vec<(&Use, u32, String)> = uses
        .iter()
        .filter(|one| !one.of.tool)
        .filter_map(|one| {
            let told = one.library.as_ref()?;
            Some((one, told.value.0, format!("{} ({})", told.value.0, told.by)))
        })
        .collect();
    differ("cuDNN", &library, findings);
}

fn differ(what: &str, uses: &[(&Use, u32, String)], findings: &mut Vec<Finding>) {
    let Some((first, major, told)) = uses.iter().max_by_key(|(_, major, _)| *major) else { return };
    let Some((other, other_major, other_told)) = uses.iter().find(|(_, one, _)| one != major) else { return };
    let (one, two) = (first.of.in_words(), other.of.in_words());
    findings.push(Finding::new(
        Code::CratesDisagree,
        what,
        facts(
            &format!("{one} is for {what} {major}, {two} for {what} {other_major}, and both are in one program."),
            [
                ("crate", first.of.way()),
                ("level", told.clone()),
                ("uses", libraries(&first.of)),
                ("and", other.of.way()),
                ("level", other_told.clone()),
                ("uses", libraries(&other.of)),
            ],
        ),
        format!("give both one level: {one} is named in {}, {two} in {}", first.of.line(), other.of.line()),
    ));
}

/// A level whose driver functions are all looked up at once, against the oldest driver of the fleet.
fn driver(policy: &Policy, one: &Use, findings: &mut Vec<Finding>) {
    let Some((told, floor)) = one.level.as_ref().zip(driver_floor(one)) else { return };
    let Some(fleet) = policy.driver_fleet_release() else { return };
    let supports = tables::driver_supports(fleet);
    if supports.covers(floor.needs) != Some(false) {
        return;
    }
    let most = supports.exactly().map(|most| format!(", which supports {most}")).unwrap_or_default();
    let rule = one.of.row().and_then(|row| row.level.as_ref());
    // The newest level that the driver of the fleet serves.
    let fit = table::table().driver.iter().rev().find(|row| {
        let feature = rule.map(|rule| format!("{}{}", rule.features, LevelRule::number_of(row.level)));
        supports.covers(row.needs) == Some(true) && feature.is_some_and(|feature| one.of.known.contains(&feature))
    });
    let hint = match (rule, fit) {
        (Some(rule), Some(fit)) => {
            let number = LevelRule::number_of(fit.level);
            let line = one.of.named_in.first();
            let line = line.map(|line| format!(" ({line}: or take the feature {}{number})", rule.features));
            format!(
                "set {}={number}{}; cudarc from 0.19.5 on looks up only what is called",
                rule.variable,
                line.unwrap_or_default()
            )
        }
        _ => "ask for a newer driver in [driver] fleet".to_owned(),
    };
    findings.push(Finding::new(
        Code::CrateRaisesDriver,
        one.of.in_words(),
        facts(
            &format!(
                "{} would panic on the oldest driver of the fleet: it looks up {} when it opens libcuda.",
                one.of.in_words(),
                floor.symbol
            ),
            [
                ("crate", one.of.way()),
                ("level", format!("{} ({})", told.value, told.by)),
                ("needs", format!("a driver that supports CUDA {}", floor.needs)),
                (
                    "fleet",
                    format!(
                        "{}{most} ([driver] fleet{})",
                        policy.driver_fleet.as_deref().unwrap_or_default(),
                        in_file(policy)
                    ),
                ),
            ],
        ),
        hint,
    ));
}

/// What a driver must support where a crate looks up all its functions at once.
fn driver_floor(one: &Use) -> Option<&'static table::DriverLevel> {
    let row = one.of.row()?;
    let at_once = row.symbols == Symbols::Opened && one.of.mode() == Mode::Loaded;
    if !at_once || !one.of.libraries().contains(&"cuda") {
        return None;
    }
    table::driver_level(one.level.as_ref()?.value)
}

/// What a linked file asks of a driver, where these crates look up all functions of their level at once: the function whose
/// name shows that the crate's code is in the file, the CUDA version that brought it, and who looks it up.
pub fn floors(uses: &[Use]) -> Vec<(&'static str, CudaVersion, String)> {
    let linked = uses.iter().filter(|one| !one.of.tool);
    linked
        .filter_map(|one| {
            let floor = driver_floor(one)?;
            let by = format!("{} ({})", one.of.in_words(), floor.symbol);
            Some((floor.symbol.as_str(), floor.needs, by))
        })
        .collect()
}

/// The compiler that a crate runs and the headers that it names to it, each by its own order.
fn compiler(toolchain: &Toolchain, one: &Use, findings: &mut Vec<Finding>) {
    let Some(compiler) = &one.compiler else { return };
    let Some(release) = compiler.release.map(CudaVersion::from) else { return };
    let in_toolchain = toolchain.compiling().and_then(|toolkit| toolkit.nvcc.as_ref());
    let same_compiler = in_toolchain.is_some_and(|nvcc| nvcc.path == compiler.path);
    let line = format!("{release} in {} ({})", compiler.path.display(), compiler.by);
    if let Some((headers, version)) = one.headers.as_ref().and_then(|headers| Some((headers, headers.release?))) {
        let including = toolchain.including().and_then(|toolkit| toolkit.headers.as_ref());
        // Of the toolchain itself it is said already.
        let said = same_compiler && including.is_some_and(|including| including.path == headers.path);
        // gcc passes over an -I of a folder that it searches anyway, and nvcc's own headers come before that.
        let passed_over = headers.by == "/usr/include" || headers.path.starts_with("/usr/include");
        if version != release && !said && !passed_over {
            let finding = Finding::new(
                Code::CrateToolkitMixed,
                one.of.in_words(),
                facts(
                    &format!(
                        "{} runs the nvcc of CUDA {release} with the headers of CUDA {version}.",
                        one.of.in_words()
                    ),
                    [
                        ("crate", one.of.way()),
                        ("nvcc", line.clone()),
                        ("cuda.h", format!("{version} in {} ({})", headers.path.display(), headers.by)),
                    ],
                ),
                own_root(&compiler.path, headers.by.starts_with('/')),
            );
            findings.push(if headers.named { finding } else { finding.weighing(Severity::Warning) });
            return;
        }
    }
    let Some(used) = in_toolchain.and_then(|nvcc| Some(CudaVersion::from(nvcc.version?))) else { return };
    if used == release {
        return;
    }
    findings.push(Finding::new(
        Code::CrateToolkitMixed,
        one.of.in_words(),
        facts(
            &format!("{} compiles with CUDA {release}, and the toolkit in use is {used}.", one.of.in_words()),
            [("crate", one.of.way()), ("nvcc", line), ("toolkit", in_use(toolchain))],
        ),
        format!("{} looks for nvcc in another order: let NVCC, PATH and CUDA_HOME name one toolkit", one.of.name),
    ));
}

/// How to make a crate take the headers of the compiler it runs.
fn own_root(nvcc: &std::path::Path, unset: bool) -> String {
    match nvcc.parent().and_then(std::path::Path::parent) {
        Some(root) if unset => format!("set CUDA_PATH={}: no variable that it reads names a toolkit", root.display()),
        Some(root) => format!("set CUDA_PATH={}, or put the other toolkit's bin folder first in PATH", root.display()),
        None => "let PATH and CUDA_PATH name one toolkit".to_owned(),
    }
}

/// One arch for all kernels of a crate, against the fleet.
fn arch(policy: &Policy, one: &Use, findings: &mut Vec<Finding>) {
    let Some(used) = &one.arch else { return };
    let targets = used.targets();
    // The first of them is the machine code.
    let Some(made) = targets.first() else { return };
    let missing: Vec<String> = policy
        .fleet_ccs()
        .into_iter()
        .filter(|(_, cc)| targets.iter().all(|target| target.serves(*cc) == Serves::No))
        .map(|(name, (major, minor))| {
            let cc = format!("{major}.{minor}");
            if name == cc { cc } else { format!("{name} ({cc})") }
        })
        .collect();
    let fleet = ("fleet", format!("{} ([gpu] fleet{})", policy.fleet.join(", "), in_file(policy)));
    match used {
        ArchUse::Named { variable, text, arch } if !missing.is_empty() => {
            let alone = if arch.suffix == crate::arch::Suffix::None { "" } else { ", which runs on that GPU alone" };
            findings.push(Finding::new(
                Code::CrateArchOutsideFleet,
                one.of.in_words(),
                facts(
                    &format!("{variable}={text} leaves {} of the fleet without kernels.", missing.join(", ")),
                    [("crate", one.of.way()), ("makes", format!("{made}{alone} ({variable}={text})")), fleet],
                ),
                format!(
                    "{} compiles for one arch: build once for each generation of the fleet, with its own {variable}",
                    one.of.name
                ),
            ));
        }
        ArchUse::Named { variable, text, arch }
            if arch.suffix != crate::arch::Suffix::None && !text.trim().ends_with(['a', 'f']) =>
        {
            findings.push(Finding::new(
                Code::CrateArchSpecific,
                one.of.in_words(),
                facts(
                    &format!("{} makes {made} of {variable}={text}.", one.of.in_words()),
                    [("crate", one.of.way()), ("serves", serves_in_words(*arch))],
                ),
                format!(
                    "nothing, where that is what the program runs on; otherwise build for an older {variable} as well"
                ),
            ));
        }
        ArchUse::Builder { variable, gpus: Some(gpus), .. } if !missing.is_empty() => {
            let here: Vec<String> = gpus.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
            findings.push(Finding::new(
                Code::BuilderGpuDecides,
                one.of.in_words(),
                facts(
                    &format!(
                        "{} compiles for the GPU of this machine, which leaves {} of the fleet without kernels.",
                        one.of.in_words(),
                        missing.join(", ")
                    ),
                    [
                        ("crate", one.of.way()),
                        ("here", format!("{}, hence {made} (nvidia-smi)", here.join(", "))),
                        fleet,
                    ],
                ),
                format!("set {variable}, and build once for each generation of the fleet"),
            ));
        }
        _ => {}
    }
}

fn serves_in_words(arch: crate::arch::Arch) -> String {
    let (major, minor) = arch.cc();
    match arch.suffix {
        crate::arch::Suffix::Specific => format!("GPUs of compute capability {major}.{minor} and no others"),
        crate::arch::Suffix::Family => format!("the family of compute capability {major}.{minor} and no others"),
        crate::arch::Suffix::None => format!("GPUs from compute capability {major}.{minor} on"),
    }
}

/// A build script that would stop: said before it does, with what to do.
fn stopped(toolchain: &Toolchain, one: &Use, findings: &mut Vec<Finding>) {
    let Some(stopped) = &one.stopped else { return };
    let (message, line, hint) = match stopped {
        Stopped::UnknownRelease { asked, by, newest, variable } => (
            format!("{} has no bindings for CUDA {asked}, and its build script stops.", one.of.in_words()),
            vec![("asked", format!("{asked} ({by})")), ("newest", format!("CUDA {newest}"))],
            format!(
                "`cargo update -p {}`, or set {variable}={}: bindings for an older release of one major work",
                one.of.name,
                LevelRule::number_of(*newest)
            ),
        ),
        Stopped::NoCompiler => (
            format!("{} asks nvcc for the release, and there is none in PATH.", one.of.in_words()),
            vec![("toolkit", in_use(toolchain))],
            match toolchain.toolkits.first() {
                Some(toolkit) => {
                    format!("add {}/bin to PATH, or set CUDARC_CUDA_VERSION", toolkit.root.display())
                }
                None => "install a toolkit, or set CUDARC_CUDA_VERSION".to_owned(),
            },
        ),
        Stopped::NoLibraries { places } => (
            format!("{} finds no CUDA where it looks, and its build script stops.", one.of.in_words()),
            vec![("looks in", places.join(", ")), ("toolkit", in_use(toolchain))],
            match toolchain.toolkits.first() {
                Some(toolkit) => format!("set CUDA_LIBRARY_PATH={}", toolkit.root.display()),
                None => "install a toolkit, and name its root in CUDA_LIBRARY_PATH".to_owned(),
            },
        ),
        Stopped::UnknownLibrary { asked, header, known } => {
            let known: Vec<String> = known.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
            (
                format!(
                    "{} has no bindings for cuDNN {}.{}, and its build script stops.",
                    one.of.in_words(),
                    asked.major,
                    asked.minor
                ),
                vec![("header", header.display().to_string()), ("has", known.join(", "))],
                format!(
                    "in {} name the bindings (feature cudnn-…) instead of asking the headers; those of one major fit",
                    one.of.line()
                ),
            )
        }
    };
    // The script says so itself, and then nothing is built; what it made before may still be used.
    findings.push(
        Finding::new(
            Code::CrateStops,
            one.of.in_words(),
            facts(&message, std::iter::once(("crate", one.of.way())).chain(line)),
            hint,
        )
        .weighing(Severity::Warning),
    );
}

/// Crates that cargo took from an earlier run of their build script, when something else was in use. `ran` is what cargo
/// says of the build just done.
pub fn stale(uses: &[Use], ran: &[Ran], release: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in uses.iter().filter(|one| !one.of.tool) {
        let runs: Vec<&Ran> =
            ran.iter().filter(|ran| ran.name == one.of.name && ran.version == one.of.version).collect();
        // One package may run twice, for the host and for the target: then only what both say is sure.
        let said: Vec<Option<(String, String)>> = runs.iter().map(|ran| kept(uses, one, ran)).collect();
        let Some(Some((took, now))) = said.first().filter(|_| said.iter().all(Option::is_some)) else { continue };
        let rerun = one.of.row().map(|row| row.reruns.join(", ")).unwrap_or_default();
        let profile = if release { " --release" } else { "" };
        findings.push(Finding::new(
            Code::CrateStale,
            one.of.in_words(),
            facts(
                &format!("{} was built for {took}, and cargo has kept that.", one.of.in_words()),
                [("crate", one.of.way()), ("now", now.clone()), ("reruns on", rerun)],
            ),
            format!("cargo clean -p {}@{}{profile}, then build again", one.of.name, one.of.version),
        ));
    }
    findings
}

/// What a build script took, and what it would take now, where these differ.
fn kept(uses: &[Use], one: &Use, ran: &Ran) -> Option<(String, String)> {
    let number = |name: &str| ran.variables.get(name)?.parse::<u32>().ok();
    if let (Some(major), Some(minor), Some(told)) =
        (number("CUDA_MAJOR_VERSION"), number("CUDA_MINOR_VERSION"), &one.level)
    {
        let took = CudaVersion::new(major, minor);
        if took != told.value {
            return Some((format!("CUDA {took}"), format!("CUDA {} ({})", told.value, told.by)));
        }
    }
    if let Some(Stopped::UnknownRelease { asked, by, newest, .. }) = &one.stopped {
        if let (Some(major), Some(minor)) = (number("CUDA_MAJOR_VERSION"), number("CUDA_MINOR_VERSION")) {
            let now = format!("CUDA {asked} ({by}), for which it has no bindings; the newest are for {newest}");
            return Some((format!("CUDA {}", CudaVersion::new(major, minor)), now));
        }
    }
    let rule = one.of.row().and_then(|row| row.library.as_ref());
    let guarded = rule.and_then(|rule| {
        let feature = |text: &String| {
            let feature = text.strip_prefix("feature=\"")?.strip_suffix('"')?;
            rule.level_of(feature)
        };
        ran.conditions.iter().find_map(feature)
    });
    if let Some((major, minor)) = guarded {
        let took = format!("cuDNN {major}.{minor}");
        match (&one.library, &one.stopped) {
            (Some(told), _) if told.value != (major, Some(minor)) => {
                let now = told.value.1.map_or(told.value.0.to_string(), |minor| format!("{}.{minor}", told.value.0));
                return Some((took, format!("cuDNN {now} ({})", told.by)));
            }
            (None, Some(Stopped::UnknownLibrary { asked, header, .. })) => {
                let now = format!("cuDNN {asked} ({}), for which it has no bindings", header.display());
                return Some((took, now));
            }
            _ => {}
        }
    }
    let (headers, release) = ran.headers.as_ref()?;
    let tool = uses.iter().find(|tool| {
        tool.of.tool
            && tool.compiler.is_some()
            && tool.of.path.split_last().is_some_and(|(_, above)| above == one.of.path)
    })?;
    let by_headers = tool.headers.as_ref().and_then(|headers| Some((headers.release?, headers.path.clone())));
    let by_compiler = || {
        let compiler = tool.compiler.as_ref()?;
        Some((compiler.release.map(CudaVersion::from)?, compiler.path.clone()))
    };
    let (now, path) = by_headers.or_else(by_compiler)?;
    (now != *release)
        .then(|| (format!("CUDA {release} ({})", headers.display()), format!("CUDA {now} ({})", path.display())))
}

#[cfg(test)]
mod tests;
