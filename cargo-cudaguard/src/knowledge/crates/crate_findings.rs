//! Pure: (policy, toolchain, behaviour of the crates) → findings. It uses no file, environment, process or clock.
//!
//! A crate that is linked, or compiles, is built with the toolkit. A library that is opened by name may be another
//! one at run time. Another major is therefore an error for the first and a warning for the second.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::crate_use::{ArchUse, Chosen, CrateUse, DetectedLevel, Stopped};
use super::table::{self, LevelRule, LibraryRule, Mode, Symbols};
use super::{Crate, has_majors};
use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::arch::Suffix;
use cudaguard::internal::checks::wording::policy_file;
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::finding::{Finding, MessageFragment, MessageTemplate, Severity, Values};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::tables;
use cudaguard::internal::toolchain::Toolchain;
use cudaguard::internal::version::CudaVersion;

/// The output of a build script's last run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The crate's name.
    pub name: String,
    /// The crate's version.
    pub version: String,
    /// The variables that it set for the compiler.
    pub variables: BTreeMap<String, String>,
    /// The conditions that it set: `feature="cuda-13000"`.
    pub conditions: Vec<String>,
    /// The `cuda.h` in the directory that it puts into `CUDA_INCLUDE_DIR`, and its release.
    pub headers: Option<(PathBuf, CudaVersion)>,
}

/// Returns the findings about these crates with this toolchain and policy. Severities are those of the codes, or
/// lower if the build may be unaffected. [`Policy::apply_to`] comes afterwards.
pub fn check_crates(policy: &Policy, toolchain: &Toolchain, uses: &[CrateUse]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, one) in uses.iter().enumerate() {
        // A tool of several crates is reported once, with one path: the path on which its headers are named,
        // otherwise the shortest.
        let order =
            |at: usize, of: &CrateUse| (!of.headers.as_ref().is_some_and(|found| found.named), of.of.path.len(), at);
        let same = |other: &CrateUse| (&other.of.name, &other.of.version) == (&one.of.name, &one.of.version);
        let detected = uses.iter().enumerate().any(|(at, other)| same(other) && order(at, other) < order(index, one));
        if detected && one.of.tool {
            continue;
        }
        check_level(toolchain, one, &mut findings);
        check_download(toolchain, one, &mut findings);
        check_cudnn_level(toolchain, one, &mut findings);
        check_driver_level(policy, one, &mut findings);
        check_compiler(toolchain, one, &mut findings);
        check_kernel_arch(policy, one, &mut findings);
        check_build_script(toolchain, one, &mut findings);
    }
    check_majors_agree(uses, &mut findings);
    findings.sort_by_key(|finding| finding.code);
    findings
}

/// `13.0.88 (…/bin/nvcc --version)`.
fn in_use(toolchain: &Toolchain) -> Option<String> {
    Some(format!("{} ({})", toolchain.release_text().unwrap_or_default(), toolchain.sourced_toolkit_version()?.source))
}

/// Values of a finding about this crate.
fn crate_args(one: &CrateUse) -> Values {
    let values = Values::default().with("crate", one.of.describe()).with("way", one.of.dependency_path());
    let values = values.with("package", &one.of.name).with("uses", library_names(&one.of));
    values.with_known("named_in", one.of.named_in.first())
}

fn library_names(of: &Crate) -> String {
    let names: Vec<String> = of.library_stems().iter().map(|stem| format!("lib{stem}")).collect();
    let how = match of.link_mode() {
        Mode::Linked => "linked",
        Mode::Static => "linked statically",
        _ => "opened by name",
    };
    format!("{} ({how})", names.join(", "))
}

/// Returns the finding that a crate has another level, with the way to set it to the toolkit's level.
fn level_mismatch(
    one: &CrateUse,
    rule: &LevelRule,
    level: &DetectedLevel<CudaVersion>,
    to: CudaVersion,
    values: Values,
) -> Finding {
    let feature = format!("{}{}", rule.features, LevelRule::number_of(to));
    let words = match level.chosen {
        Chosen::Fixed if level.by.starts_with(&rule.variable) => MessageTemplate::CrateForOtherCudaUnset,
        Chosen::Fixed if !one.of.known.contains(&feature) => MessageTemplate::CrateForOtherCuda,
        Chosen::Fixed => MessageTemplate::CrateForOtherCudaFeature,
        Chosen::Found | Chosen::Assumed => MessageTemplate::CrateForOtherCudaPath,
    };
    // Without it, the crate reads only nvcc, or the declaration can be edited.
    let has_variable = match level.chosen {
        Chosen::Found => false,
        Chosen::Fixed => level.by.starts_with(&rule.variable) || one.of.named_in.is_empty(),
        Chosen::Assumed => true,
    };
    let values = values.with_known("variable", has_variable.then_some(&rule.variable));
    let values = values.with("feature", feature).with("named_in", one.of.declaration_place());
    let values = values.with("now", level.by.trim_start_matches("feature "));
    words.to_finding(&values.with("value", LevelRule::number_of(to)))
}

/// Compares the CUDA level of the bindings with the toolkit in use.
fn check_level(toolchain: &Toolchain, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some((detected, toolkit)) = one.level.as_ref().zip(toolchain.toolkit_version()) else { return };
    let toolkit = CudaVersion::from(toolkit);
    let built = matches!(one.of.link_mode(), Mode::Linked | Mode::Static);
    let Some(row) = one.of.table_row() else { return };
    // Functions of the driver never disappear, so crates that use only these fit every major. CUDA 13 removed functions of NVRTC,
    // and a crate that looks up all functions panics without them.
    let looks_up_all = row.symbols == Symbols::Opened && one.of.link_mode() == Mode::Loaded;
    let apart = one.of.library_stems().into_iter().any(|stem| has_majors(stem) || looks_up_all && stem == "nvrtc");
    let Some(rule) = row.level.as_ref().filter(|_| apart) else { return };
    let other_major = detected.value.major != toolkit.major;
    let newer = detected.value.major == toolkit.major && detected.value > toolkit;
    let wrong = other_major || newer && built;
    if !wrong {
        return;
    }
    let values =
        crate_args(one).with("found_cuda", detected.value).with("by", &detected.by).with("toolkit_cuda", toolkit);
    let finding = level_mismatch(one, rule, detected, toolkit, values.with_known("toolkit", in_use(toolchain)));
    findings.push(if other_major && built { finding } else { finding.with_severity(Severity::Warning) });
}

/// Compares the CUDA major of a downloaded library with the toolkit in use. The library opens its CUDA libraries at run time.
fn check_download(toolchain: &Toolchain, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some((major, toolkit)) = one.downloaded.zip(toolchain.toolkit_version()) else { return };
    if major == toolkit.major {
        return;
    }
    let rule = one.of.table_row().and_then(|row| row.download.as_ref());
    let variable = rule.and_then(|rule| rule.instead.first());
    let values = crate_args(one).with("major", major).with("toolkit_cuda", CudaVersion::from(toolkit));
    let values = values.with_known("toolkit", in_use(toolchain)).with_known("variable", variable);
    let finding = MessageTemplate::CrateForOtherCudaDownload.to_finding(&values.with("built_major", toolkit.major));
    findings.push(finding.with_severity(Severity::Warning));
}

/// Compares the cuDNN level of the bindings with the cuDNN in use.
fn check_cudnn_level(toolchain: &Toolchain, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some(detected) = &one.library else { return };
    let headers = toolchain.library_headers_used().and_then(|headers| Some((headers.version?, headers.path.clone())));
    let library = toolchain.library_used();
    let library = library.and_then(|library| Some((library.version.as_ref()?.value, library.path.clone())));
    let Some((found, path)) = headers.or(library) else { return };
    let (major, minor) = detected.value;
    let level = minor.map_or(major.to_string(), |minor| format!("{major}.{minor}"));
    let lacks = match one.of.table_row().and_then(|row| row.library.as_ref()) {
        Some(LibraryRule::Fixed { lacks, symbol, .. }) if one.of.link_mode() == Mode::Loaded && found <= *lacks => {
            Some(symbol)
        }
        _ => None,
    };
    if major == found.major && lacks.is_none() {
        return;
    }
    let values =
        crate_args(one).with("level", level).with("by", &detected.by).with("found", found).with("path", path.display());
    let values = values.with("built_major", major).with("major", found.major);
    let symbol = lacks.filter(|_| major == found.major);
    let words =
        if symbol.is_some() { MessageTemplate::CrateForOtherCudnnSymbol } else { MessageTemplate::CrateForOtherCudnn };
    findings.push(words.to_finding(&values.with_known("code", symbol)));
}

/// Finds two crates of different majors in one program.
fn check_majors_agree(uses: &[CrateUse], findings: &mut Vec<Finding>) {
    let cuda: Vec<(&CrateUse, u32, SourcedLevel<'_>)> = uses
        .iter()
        .filter(|one| !one.of.tool && one.of.library_stems().into_iter().any(has_majors))
        .filter_map(|one| {
            let detected = one.level.as_ref()?;
            Some((one, detected.value.major, (detected.value.to_string(), detected.by.as_str())))
        })
        .collect();
    report_disagreement("CUDA", &cuda, findings);
    let library: Vec<(&CrateUse, u32, SourcedLevel<'_>)> = uses
        .iter()
        .filter(|one| !one.of.tool)
        .filter_map(|one| {
            let detected = one.library.as_ref()?;
            Some((one, detected.value.0, (detected.value.0.to_string(), detected.by.as_str())))
        })
        .collect();
    report_disagreement(CUDNN.name, &library, findings);
}

/// A level, and its source.
type SourcedLevel<'a> = (String, &'a str);

fn report_disagreement(what: &str, uses: &[(&CrateUse, u32, SourcedLevel<'_>)], findings: &mut Vec<Finding>) {
    let Some((first, major, (level, by))) = uses.iter().max_by_key(|(_, major, _)| *major) else { return };
    let other = uses.iter().find(|(_, one, _)| one != major);
    let Some((other, other_major, (other_level, other_by))) = other else { return };
    let values = crate_args(first).with("library", what).with("major", major).with("level", level).with("by", by);
    let values = values.with("other", other.of.describe()).with("other_way", other.of.dependency_path());
    let values = values.with("other_major", other_major).with("other_level", other_level).with("other_by", other_by);
    let values =
        values.with("other_uses", library_names(&other.of)).with("other_named_in", other.of.declaration_place());
    findings.push(MessageTemplate::CratesDisagree.to_finding(&values.with("named_in", first.of.declaration_place())));
}

/// Compares a level that resolves all driver functions at once with the oldest driver of the fleet.
fn check_driver_level(policy: &Policy, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some((detected, floor)) = one.level.as_ref().zip(driver_floor(one)) else { return };
    let Some(fleet) = policy.driver_fleet_release() else { return };
    let supports = tables::driver_supports(fleet);
    if supports.covers(floor.needs) != Some(false) {
        return;
    }
    let rule = one.of.table_row().and_then(|row| row.level.as_ref());
    // The newest level that the driver of the fleet supports.
    let fit = table::table().driver.levels.iter().rev().find(|row| {
        let feature = rule.map(|rule| format!("{}{}", rule.features, LevelRule::number_of(row.level)));
        supports.covers(row.needs) == Some(true) && feature.is_some_and(|feature| one.of.known.contains(&feature))
    });
    let values = crate_args(one).with("code", &floor.symbol).with("level", detected.value).with("by", &detected.by);
    let values = values.with("needs_cuda", floor.needs).with_known("driver_fleet", policy.driver_fleet.as_ref());
    let values = values.with_known("cuda", supports.exact_version()).with_known("policy", policy_file(policy));
    findings.push(match (rule, fit) {
        (Some(rule), Some(fit)) => {
            let number = LevelRule::number_of(fit.level);
            let values = values.with("variable", &rule.variable).with("feature", format!("{}{number}", rule.features));
            // A variable beside a feature selects two levels, and the crate does not compile.
            let by_feature = detected.chosen == Chosen::Fixed && !detected.by.starts_with(&rule.variable);
            let words = if by_feature {
                MessageTemplate::CrateRaisesDriverLevelFeature
            } else {
                MessageTemplate::CrateRaisesDriverLevel
            };
            words.to_finding(&values.with("value", number))
        }
        _ => MessageTemplate::CrateRaisesDriver.to_finding(&values),
    });
}

/// The functions with which a program begins to use a GPU, and the CUDA release that introduced them (cuda.h; the tables begin
/// with 6.5). Crates that look up each function at its first call need no more for certain.
const FIRST_CALLS: [(&str, CudaVersion); 2] =
    [("cuDevicePrimaryCtxRetain", CudaVersion::new(7, 0)), ("cuInit", CudaVersion::new(6, 5))];

/// Returns the CUDA version that a driver must support if a crate resolves all its functions at once.
fn driver_floor(one: &CrateUse) -> Option<&'static table::DriverLevel> {
    let at_once = one.of.table_row()?.symbols == Symbols::Opened && one.of.link_mode() == Mode::Loaded;
    if !at_once || !one.of.library_stems().contains(&"cuda") {
        return None;
    }
    table::driver_level(one.level.as_ref()?.value)
}

/// Returns the driver requirements of a linked file that opens libcuda through these crates. For each crate: the constants that
/// show that its code is in the file, of which the first one in the file counts, with the CUDA version that the driver must
/// support, and the crate with the function.
pub fn driver_floors(uses: &[CrateUse]) -> Vec<Vec<(String, CudaVersion, String)>> {
    let floors = uses.iter().filter(|one| !one.of.tool && one.opens_library("cuda")).filter_map(|one| {
        let by = |symbol: &str| format!("{} ({symbol})", one.of.describe());
        if one.of.table_row()?.symbols == Symbols::Opened {
            let floor = driver_floor(one)?;
            return Some(vec![(format!("{}\0", floor.symbol), floor.needs, by(&floor.symbol))]);
        }
        Some(FIRST_CALLS.map(|(symbol, needs)| (symbol.to_owned(), needs, by(symbol))).to_vec())
    });
    floors.collect()
}

/// Compares the compiler that a crate runs with the headers that it passes to it. Each has its own search order.
fn check_compiler(toolchain: &Toolchain, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some(compiler) = &one.compiler else { return };
    let Some(release) = compiler.release.map(CudaVersion::from) else { return };
    let in_toolchain = toolchain.compiling_toolkit().and_then(|toolkit| toolkit.nvcc.as_ref());
    let same_compiler = in_toolchain.is_some_and(|nvcc| nvcc.path == compiler.path);
    let line = format!("{release} in {} ({})", compiler.path.display(), compiler.by);
    let values = crate_args(one).with("nvcc", line).with("nvcc_cuda", release);
    if let Some((headers, version)) = one.headers.as_ref().and_then(|headers| Some((headers, headers.release?))) {
        let including = toolchain.including_toolkit().and_then(|toolkit| toolkit.headers.as_ref());
        // A finding about the toolchain itself reports this already.
        let earlier = same_compiler && including.is_some_and(|including| including.path == headers.path);
        // gcc ignores an -I of a directory that it searches anyway, and nvcc's own headers come before that.
        let passed_over = headers.by == "/usr/include" || headers.path.starts_with("/usr/include");
        if version != release && !earlier && !passed_over {
            let in_use = format!("{version} in {} ({})", headers.path.display(), headers.by);
            let root = compiler.path.parent().and_then(Path::parent).unwrap_or(&compiler.path);
            let values = values.with("headers", in_use).with("headers_cuda", version).with("root", root.display());
            let finding = MessageTemplate::CrateToolkitMixedHeaders.to_finding(&values);
            findings.push(if headers.named { finding } else { finding.with_severity(Severity::Warning) });
            return;
        }
    }
    let Some(used) = in_toolchain.and_then(|nvcc| Some(CudaVersion::from(nvcc.version?))) else { return };
    if used == release {
        return;
    }
    let values = values.with("toolkit_cuda", used).with_known("toolkit", in_use(toolchain));
    findings.push(MessageTemplate::CrateToolkitMixed.to_finding(&values));
}

/// Compares the one architecture of a crate's kernels with the fleet.
fn check_kernel_arch(policy: &Policy, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some(used) = &one.arch else { return };
    let targets = used.compiled_targets();
    // The first of them is the machine code.
    let Some(made) = targets.first() else { return };
    let missing: Vec<String> = policy
        .fleet_ccs()
        .into_iter()
        .filter(|(_, cc)| targets.iter().all(|target| target.compatibility_with(*cc) == Compatibility::No))
        .map(|(name, (major, minor))| {
            let cc = format!("{major}.{minor}");
            if name == cc { cc } else { format!("{name} ({cc})") }
        })
        .collect();
    let values = crate_args(one).with("targets", made).with("gpus", missing.join(", "));
    let values = values.with("fleet", policy.fleet.join(", ")).with_known("policy", policy_file(policy));
    match used {
        ArchUse::Named { variable, text, arch } => {
            let values = values.with("variable", variable).with("value", text);
            let plain = arch.suffix == Suffix::None;
            if !missing.is_empty() {
                let alone = MessageTemplate::CrateArchOutsideFleetSpecific;
                findings.push(if plain { MessageTemplate::CrateArchOutsideFleet } else { alone }.to_finding(&values));
            } else if !plain && !text.trim().ends_with(['a', 'f']) {
                let (major, minor) = arch.cc();
                let family = arch.suffix == Suffix::Family;
                let words =
                    if family { MessageTemplate::CrateArchSpecificFamily } else { MessageTemplate::CrateArchSpecific };
                findings.push(words.to_finding(&values.with("gpu", format!("{major}.{minor}"))));
            }
        }
        ArchUse::BuildSystem { variable, gpus: Some(gpus), .. } if !missing.is_empty() => {
            let here: Vec<String> = gpus.iter().copied().map(tables::dotted_cc).collect();
            let values = values.with("variable", variable).with("here", here.join(", "));
            findings.push(MessageTemplate::BuilderGpuDecides.to_finding(&values));
        }
        ArchUse::BuildSystem { .. } => {}
    }
}

/// Reports a build script that would stop, and what to do, before it runs.
fn check_build_script(toolchain: &Toolchain, one: &CrateUse, findings: &mut Vec<Finding>) {
    let Some(stopped) = &one.stopped else { return };
    let root = toolchain.toolkits.first().map(|toolkit| toolkit.root.display());
    let values = crate_args(one).with_known("root", root.as_ref()).with_known("toolkit", in_use(toolchain));
    let (words, values) = match stopped {
        Stopped::UnknownRelease { asked, by, newest, variable } => {
            let values = values.with("found_cuda", asked).with("by", by).with("newest", newest);
            let values = values.with("variable", variable).with("value", LevelRule::number_of(*newest));
            let same_major = asked.major == newest.major;
            let other = MessageTemplate::CrateStopsOtherMajor;
            (if same_major { MessageTemplate::CrateStops } else { other }, values)
        }
        Stopped::NoCompiler => (MessageTemplate::CrateStopsNoCompiler, values),
        Stopped::NoHeaders { oldest, found, roots } => {
            let values = values.with("min", oldest).with("places", roots.join(", "));
            let values = values.with_known("found_cuda", found.as_ref().map(|(release, _)| release));
            let by = found.as_ref().map(|(_, by)| by);
            let variable = roots.first().and_then(|root| root.strip_prefix('$'));
            (MessageTemplate::CrateStopsNoHeaders, values.with_known("by", by).with_known("variable", variable))
        }
        Stopped::NoGpu { variable, why } => {
            // The crate whose kernels are compiled.
            let package = if one.of.tool { one.of.calling_crate() } else { &one.of.name };
            let values = values.with("package", package).with("variable", variable).with("why", why);
            (MessageTemplate::CrateStopsNoGpu, values)
        }
        Stopped::NoLibraries { places } => {
            (MessageTemplate::CrateStopsNoLibraries, values.with("places", places.join(", ")))
        }
        Stopped::TwoReleases { variable, text, feature } => {
            let values = values.with("variable", variable).with("value", text).with("feature", feature);
            (MessageTemplate::CrateStopsTwoReleases, values)
        }
        Stopped::NotLinked { library, places } => {
            let values = values.with("places", places.join(", ")).with("library", library);
            (MessageTemplate::CrateStopsNotLinked, values)
        }
        Stopped::NoDownload { variable, text, majors } => {
            let majors: Vec<String> = majors.iter().map(u32::to_string).collect();
            let values = values.with("variable", variable).with("value", text).with("levels", majors.join(", "));
            (MessageTemplate::CrateStopsNoDownload, values)
        }
        Stopped::UnknownLibrary { asked, header, known } => {
            let known: Vec<String> = known.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
            let values = values.with("found", format!("{}.{}", asked.major, asked.minor));
            let values = values.with("path", header.display()).with("levels", known.join(", "));
            (MessageTemplate::CrateStopsUnknownCudnn, values.with("named_in", one.of.declaration_place()))
        }
    };
    // The script reports this itself and then builds nothing, but cargo may still use its earlier output.
    findings.push(words.to_finding(&values).with_severity(Severity::Warning));
}

/// Finds crates that cargo reused from a run of their build script with another toolchain. `ran` is cargo's output
/// about the current build.
pub fn check_stale_builds(uses: &[CrateUse], ran: &[Ran], release: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in uses.iter().filter(|one| !one.of.tool) {
        let runs: Vec<&Ran> =
            ran.iter().filter(|ran| ran.name == one.of.name && ran.version == one.of.version).collect();
        // A package may run twice, for the host and for the target. Then only facts of both runs are certain.
        let earlier: Vec<Option<(String, String)>> = runs.iter().map(|ran| stale_choice(uses, one, ran)).collect();
        let Some(Some((took, now))) = earlier.first().filter(|_| earlier.iter().all(Option::is_some)) else { continue };
        let rerun = one.of.table_row().map(|row| row.reruns.join(", ")).unwrap_or_default();
        let values = crate_args(one).with("was", took).with("now", now).with("variable", rerun);
        let values = values.with("value", &one.of.version).with_known("profile", release.then_some("release"));
        findings.push(MessageTemplate::CrateStale.to_finding(&values));
    }
    findings
}

/// Returns what a build script used and what it would use now, if they differ.
fn stale_choice(uses: &[CrateUse], one: &CrateUse, ran: &Ran) -> Option<(String, String)> {
    let number = |name: &str| ran.variables.get(name)?.parse::<u32>().ok();
    if let (Some(major), Some(minor), Some(detected)) =
        (number("CUDA_MAJOR_VERSION"), number("CUDA_MINOR_VERSION"), &one.level)
    {
        let took = CudaVersion::new(major, minor);
        if took != detected.value {
            return Some((format!("CUDA {took}"), format!("CUDA {} ({})", detected.value, detected.by)));
        }
    }
    if let Some(Stopped::UnknownRelease { asked, by, newest, .. }) = &one.stopped
        && let (Some(major), Some(minor)) = (number("CUDA_MAJOR_VERSION"), number("CUDA_MINOR_VERSION"))
    {
        let values = Values::default().with("found_cuda", asked).with("by", by).with("newest", newest);
        return Some((format!("CUDA {}", CudaVersion::new(major, minor)), MessageFragment::NoBindings.render(&values)));
    }
    let rule = one.of.table_row().and_then(|row| row.library.as_ref());
    let guarded = rule.and_then(|rule| {
        ran.conditions.iter().find_map(|text| {
            let feature = text.strip_prefix("feature=\"")?.strip_suffix('"')?;
            rule.level_of(feature)
        })
    });
    if let Some((major, minor)) = guarded {
        let took = format!("{} {major}.{minor}", CUDNN.name);
        match (&one.library, &one.stopped) {
            (Some(detected), _) if detected.value != (major, Some(minor)) => {
                let now = detected
                    .value
                    .1
                    .map_or(detected.value.0.to_string(), |minor| format!("{}.{minor}", detected.value.0));
                return Some((took, format!("{} {now} ({})", CUDNN.name, detected.by)));
            }
            (None, Some(Stopped::UnknownLibrary { asked, header, .. })) => {
                let values = Values::default().with("found", asked).with("path", header.display());
                return Some((took, MessageFragment::NoBindingsCudnn.render(&values)));
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
    let (now, path) = by_headers.or_else(|| {
        let compiler = tool.compiler.as_ref()?;
        Some((compiler.release.map(CudaVersion::from)?, compiler.path.clone()))
    })?;
    (now != *release)
        .then(|| (format!("CUDA {release} ({})", headers.display()), format!("CUDA {now} ({})", path.display())))
}

#[cfg(test)]
mod tests;
