//! `inspect`: prints the manifests, kernels and needed libraries of a file as text or JSON.

mod driver_needs;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::binary::dlopen_note::DlopenEntry;
use crate::binary::elf::machine_name;
use crate::binary::examined::NotExamined;
use crate::binary::file::{Binary, BinaryKind};
use crate::binary::kernels::{self, Cover, Coverage, Kernels, Known};
use crate::binary::manifest_decoder::Note;
use crate::binary::mapped_file::Contents;
use crate::family::{Member, Release, describe_no_needed_library, is_of_nvidia, opened_names};
use crate::host::machine::Components;
use crate::knowledge::vendor::{self, CUDNN, Library, with_names_of_windows};
use crate::linked::evidence::Evidence;
use cudaguard::internal::arch::Target;
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, Requirement};
use cudaguard::internal::sanitize;
use object::elf::EM_NONE;
use serde::Serialize;
use serde_json::Value;

use crate::cli::arguments::Output;
use crate::cli::json_output::{self, Members, texts};
use crate::cli::report::{self, CliError, EXIT_ERROR};
use crate::cli::{counts, findings};

pub(crate) use driver_needs::{Needs, driver_needs};

/// Inspects one file that is not an archive.
pub(crate) fn inspect_file(file: &Path, contents: Arc<Contents>, form: Output) -> Result<ExitCode, CliError> {
    let binary = Binary::with_kernels(file, contents)?;
    let kernels = binary.kernels()?;
    let evidence = Evidence::from_binary(&binary, kernels);
    let (mut notes, mut damaged) = (Vec::new(), false);
    for note in binary.manifests() {
        match note {
            Ok(note) => notes.push(note),
            Err(error) => {
                damaged = true;
                report::note(&format!("warning: {}: a manifest cannot be read: {error}", file.display()));
            }
        }
    }
    let covers: Vec<_> = kernels.coverage_by_cc().into_iter().map(|Cover { cc, service }| (cc, service.by)).collect();
    let drivers = driver_needs(&Components::from_binary(file, &binary, &evidence), &covers);
    let inspected = InspectedFile { file, binary: &binary, notes, kernels, evidence: &evidence, drivers };
    report::print_result(&match form {
        // A single file has no findings that apply to every machine, so the SARIF output is empty.
        Output::Sarif => findings::files_to_sarif(&[]),
        Output::Json => inspected.to_json(),
        Output::Text => inspected.to_text(),
    })?;
    if inspected.notes.is_empty() && damaged {
        return Ok(ExitCode::from(EXIT_ERROR));
    }
    if inspected.notes.is_empty() && binary.kind != BinaryKind::GpuCode {
        report::note(&format!("{}: no manifest: it was built without cudaguard", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The contents of a file that `inspect` prints.
struct InspectedFile<'a> {
    file: &'a Path,
    binary: &'a Binary,
    notes: Vec<Note>,
    kernels: &'a Kernels,
    evidence: &'a Evidence,
    drivers: Vec<Needs>,
}

impl InspectedFile<'_> {
    fn to_json(&self) -> String {
        let Self { file, binary, notes, kernels, evidence, drivers } = self;
        let is_linked_to_cuda = binary.imported().any(|name| is_of_nvidia(name));
        let opened = if is_linked_to_cuda { Vec::new() } else { opened_names(binary) };
        let linkage = |library: &Library| binary.linkage(library).name().filter(|_| binary.kind != BinaryKind::GpuCode);
        let linkages = vendor::DESCRIBED.into_iter().filter_map(|library| Some((library.key, linkage(library)?)));
        let versions =
            vendor::DESCRIBED.into_iter().filter_map(|library| Some((library.key, version_inside(binary, library)?)));
        json_output::render(&FileView {
            file: file.to_string_lossy(),
            kind: binary.kind.to_string(),
            machine: processor_name(binary),
            components: notes.iter().map(|note| manifest_json(&note.manifest)).collect(),
            kernels,
            drivers,
            evidence: (!evidence.is_empty()).then_some(evidence),
            needed: &binary.needed,
            delay_loaded: &binary.delay_loaded,
            may_open: opened.into_iter().map(|soname| SonameView { soname }).collect(),
            version: binary.version_resource.as_ref().map(ToString::to_string),
            opened: &binary.opened,
            linkages: Members(linkages.collect()),
            library: self.release(),
            inside: Members(versions.collect()),
            not_judged: texts(self.not_examined()),
        })
    }

    fn to_text(&self) -> String {
        let Self { file, binary, notes, kernels, evidence, drivers } = self;
        let mut page = InspectPage::default();
        let what = match (binary.kind, processor_name(binary)) {
            (BinaryKind::GpuCode, _) => "kernels only".to_owned(),
            (kind, Some(processor)) => format!("{kind}, {processor}"),
            (kind, None) => format!("{kind} without objects"),
        };
        page.push_title(&format!("{}: {what}", file.display()));
        for note in notes {
            write_component(&mut page, note, !kernels.entries().is_empty());
        }
        page.push_title("kernels");
        if kernels.entries().is_empty() {
            let examined = if binary.not_examined().is_empty() {
                "no GPU code in this file"
            } else {
                "no GPU code in the examined parts"
            };
            page.push_line("none", examined);
        } else {
            write_images(&mut page, kernels);
        }
        page.push_lines("driver", drivers.iter().map(Needs::describe));
        made_by(&mut page, evidence);
        if binary.kind != BinaryKind::GpuCode {
            if let Some(release) = self.release() {
                let version = release.version.as_ref().map_or_else(
                    || "version not known".to_owned(),
                    |known| format!("{known} (from: {})", known.read_from),
                );
                page.push_title("this library");
                page.push_line(release.of.name, &version);
            }
            page.push_title("libraries");
            let (of_cuda, others): (Vec<&str>, Vec<&str>) =
                binary.needed.iter().map(String::as_str).partition(|name| is_of_nvidia(name));
            let delays = binary.delay_loaded.iter().any(|name| is_of_nvidia(name));
            let none =
                || if delays { "delay-loaded, as listed below".to_owned() } else { describe_no_needed_library(binary) };
            page.push_line("CUDA", &if of_cuda.is_empty() { none() } else { of_cuda.join(" ") });
            for library in vendor::DESCRIBED {
                let linkage = binary.linkage(library);
                if linkage != Linkage::None {
                    let version =
                        version_inside(binary, library).map(|version| format!("{version}, ")).unwrap_or_default();
                    page.push_line(library.name, &format!("{version}{}", linkage.name().unwrap_or("unknown")));
                }
            }
            page.push_line("others", &join_names(&others, "none needed"));
            let delayed: Vec<&str> = binary.delay_loaded.iter().map(String::as_str).collect();
            if !delayed.is_empty() {
                page.push_line("delayed", &delayed.join(" "));
            }
            if let Some(version) = &binary.version_resource {
                page.push_line("version", &version.to_string());
            }
            for entry in &binary.opened {
                page.push_line(
                    "opened",
                    &format!("{}: {}, {}", entry.sonames.join(", "), entry.priority, entry.description),
                );
            }
        }
        page.not_examined(&self.not_examined());
        page.0
    }

    /// Returns the library that the file is, if it is one that NVIDIA releases together with others.
    fn release(&self) -> Option<Release> {
        Member::read(&self.file.to_string_lossy(), self.binary.data())?.release
    }

    fn not_examined(&self) -> Vec<NotExamined> {
        let name = self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy();
        self.binary.not_examined().into_iter().map(|reason| NotExamined::new(&*name, reason)).collect()
    }
}

/// The output of `inspect` for a file as JSON.
#[derive(Serialize)]
struct FileView<'a> {
    file: Cow<'a, str>,
    kind: String,
    machine: Option<String>,
    components: Vec<Value>,
    kernels: &'a Kernels,
    #[serde(skip_serializing_if = "<[Needs]>::is_empty")]
    drivers: &'a [Needs],
    evidence: Option<&'a Evidence>,
    needed: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    delay_loaded: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_open: Vec<SonameView>,
    version: Option<String>,
    #[serde(skip_serializing_if = "<[DlopenEntry]>::is_empty")]
    opened: &'a [DlopenEntry],
    #[serde(flatten)]
    linkages: Members<&'static str, &'static str>,
    library: Option<Release>,
    #[serde(skip_serializing_if = "Members::is_empty")]
    inside: Members<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
}

#[derive(Serialize)]
struct SonameView {
    soname: String,
}

/// Returns a manifest with the keys of its note.
pub(crate) fn manifest_json(manifest: &Manifest) -> Value {
    serde_json::from_str(&manifest.to_json().to_string()).expect("the writer of manifests writes JSON")
}

/// Returns the version of a library that is statically linked into the file, if it is known.
pub(crate) fn version_inside(binary: &Binary, library: &Library) -> Option<String> {
    let inside = binary.linkage(library) == Linkage::Static;
    inside.then(|| binary.version_inside(library))?.map(|version| version.to_string())
}

/// Returns the name of the processor that the file is built for; `None` for GPU code alone and for an archive without
/// objects.
pub(crate) fn processor_name(binary: &Binary) -> Option<String> {
    (binary.kind != BinaryKind::GpuCode && binary.machine != EM_NONE).then(|| machine_name(binary.machine).into_owned())
}

/// Groups the names of parts that were not examined by their reason.
pub(crate) fn group_by_reason(parts: &[NotExamined]) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in parts {
        all.entry(&part.reason).or_default().push(&part.name);
    }
    all
}

/// A page of titles and of lines with a name and a description.
#[derive(Default)]
pub(crate) struct InspectPage(pub(crate) String);

impl InspectPage {
    pub(crate) fn push_title(&mut self, text: &str) {
        self.0.push_str(&sanitize::sanitize_line(text));
        self.0.push('\n');
    }

    /// Lists the parts that were not examined, with their number and the reasons.
    pub(crate) fn not_examined(&mut self, parts: &[NotExamined]) {
        if !parts.is_empty() {
            self.push_title(&format!("not examined: {}", counts::count_of(parts.len() as u64, "part")));
        }
        for (reason, names) in group_by_reason(parts) {
            self.push_line(&names.len().to_string(), &format!("{reason}: {}", counts::join_some(&names)));
        }
    }

    pub(crate) fn push_line(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.0, "  {name:<10} {}", sanitize::sanitize_line(text));
    }

    /// Adds lines of which only the first has the name.
    pub(crate) fn push_lines(&mut self, name: &str, texts: impl Iterator<Item = String>) {
        for (at, text) in texts.enumerate() {
            self.push_line(if at == 0 { name } else { "" }, &text);
        }
    }

    /// Adds the coverage of GPUs. Consecutive GPUs with the same coverage share one line.
    pub(crate) fn push_coverage(&mut self, covers: impl Iterator<Item = ((u8, u8), String)>) {
        let mut spans: Vec<([(u8, u8); 2], String)> = Vec::new();
        for (cc, how) in covers {
            match spans.last_mut() {
                Some((span, last)) if *last == how => span[1] = cc,
                _ => spans.push(([cc, cc], how)),
            }
        }
        let lines = spans.into_iter().map(|([(a, b), (c, d)], how)| {
            let range = if (a, b) == (c, d) { format!("{a}.{b}") } else { format!("{a}.{b} to {c}.{d}") };
            format!("{range}: {how}")
        });
        self.push_lines("serves", lines);
    }
}

fn write_component(page: &mut InspectPage, note: &Note, has_kernels: bool) {
    let manifest = &note.manifest;
    page.push_title(&format!("component {}", manifest.component));
    if note.revision > 1 {
        page.push_line(
            "note",
            &format!("revision {}, newer than this cudaguard: unknown parts are not shown", note.revision),
        );
    }
    page.push_line("guarded by", &format!("cudaguard {}", manifest.cudaguard));
    page.push_line("target", &format!("{}, {}", manifest.target, manifest.profile));
    page.push_line("toolkit", &manifest.toolkit.map_or("none".to_owned(), |version| version.to_string()));
    page.push_line(CUDNN.name, &describe_guard(manifest));
    if let Some(cudart) = manifest.cudart.filter(|cudart| cudart.linkage != Linkage::None) {
        let version = cudart.version.map(|version| format!("{version}, ")).unwrap_or_default();
        page.push_line("cudart", &format!("{version}{}", cudart.linkage.name().unwrap_or("unknown")));
    }
    if let Some(compiler) = &manifest.host_compiler {
        page.push_line("compiler", compiler);
    }
    let observed = manifest.observed.as_deref().filter(|_| manifest.archs_known() == "observed");
    let names: Vec<String> = observed.unwrap_or(&manifest.declared).iter().map(Target::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    page.push_line("archs", &format!("{} ({})", join_names(&names, "none"), manifest.archs_known()));
    let is_for_windows = manifest.target.contains("-windows");
    let rows = manifest.requires.iter().map(describe_requirement);
    let rows = rows.map(|row| if is_for_windows { with_names_of_windows(&row) } else { row });
    let rest = match manifest.not_judged() {
        // The note does not contain the requirements of the kernels; they are listed below.
        _ if manifest.observed.is_none() && has_kernels => {
            Some("not recorded for its kernels: the file is not sealed, so the shim reads them at start-up".to_owned())
        }
        Some(what) => Some(format!("unknown for {what}")),
        None if !manifest.requires.is_empty() => None,
        None if manifest.sealed => Some("nothing".to_owned()),
        None => {
            Some("nothing recorded: the file is not sealed, so the shim reads the requirements at start-up".to_owned())
        }
    };
    page.push_lines("requires", rows.chain(rest));
    for (code, reason) in &manifest.allow {
        page.push_line("allows", &format!("{code}: {reason}"));
    }
}

fn describe_guard(manifest: &Manifest) -> String {
    match &manifest.library {
        None => "none".to_owned(),
        Some(guarded) if guarded.linkage == Linkage::None => {
            format!("not used by this file (headers of {} were found)", guarded.version)
        }
        Some(guarded) => match guarded.linkage.name() {
            Some(linkage) => format!("{}, {linkage}", guarded.version),
            None => format!("{}, linkage unknown before linking", guarded.version),
        },
    }
}

/// Describes a requirement in one line.
fn describe_requirement(requirement: &Requirement) -> String {
    let driver = |cuda: &dyn std::fmt::Display, release: &dyn std::fmt::Display| {
        format!("driver supports CUDA {cuda} (release {release})")
    };
    match requirement {
        Requirement::Library { min, below, built, soname, .. } => {
            format!("{} {min} or newer, below {below} ({soname}, built with {built})", CUDNN.name)
        }
        Requirement::Part { file, needed, .. } => {
            format!("{file} next to it{}", if *needed { "" } else { ", if it is used" })
        }
        Requirement::Driver { cuda, because, .. } if cuda.major == 1 => format!("any driver: {because}"),
        Requirement::Driver { cuda, release, because } if release.branch == 0 => {
            format!("driver supports CUDA {cuda}: {because}")
        }
        Requirement::Driver { cuda, release, because } => format!("{}: {because}", driver(cuda, release)),
        Requirement::Gpu { from, to, by, code, cuda, release, guaranteed_from, .. } => {
            let mut text = match to {
                Some(to) if to == from => format!("GPU {}.{}: ", from.0, from.1),
                // The interval includes all minor versions of the major version.
                Some((major, u8::MAX)) if *from == (0, 0) => format!("GPU up to {major}.x: "),
                Some((major, minor)) if *from == (0, 0) => format!("GPU up to {major}.{minor}: "),
                Some((major, u8::MAX)) if *from == (*major, 0) => format!("GPU {major}.x: "),
                Some((major, u8::MAX)) => format!("GPU {}.{} to {major}.x: ", from.0, from.1),
                Some(to) => format!("GPU {}.{} to {}.{}: ", from.0, from.1, to.0, to.1),
                None => format!("GPU {}.{} and newer: ", from.0, from.1),
            };
            text.push_str(match by {
                GpuCoverage::Cubin => "supported by ",
                GpuCoverage::Ptx => "supported by PTX, ",
                GpuCoverage::Partial => "partly supported by ",
                GpuCoverage::PartialPtx => "partly supported by PTX, ",
                GpuCoverage::AtLeastPartial => "served at least in part, by ",
                GpuCoverage::AtLeastPartialPtx => "served at least in part, by PTX, ",
                GpuCoverage::AtMostPartial if code.is_empty() => "served in part at most",
                GpuCoverage::AtMostPartial => "unknown: the containers have no code, only ",
                GpuCoverage::Nothing => "not supported",
                GpuCoverage::Unknown if code.is_empty() => "unknown",
                GpuCoverage::Unknown => "unknown; from the readable parts: ",
            });
            text.push_str(code);
            match (cuda, release) {
                (Some(cuda), Some(release)) => text + "; " + &driver(cuda, release),
                (Some(cuda), None) => text + &format!("; driver supports CUDA {cuda}"),
                _ => match guaranteed_from {
                    Some((cuda, release)) => text + "; guaranteed if the " + &driver(cuda, release),
                    None => text,
                },
            }
        }
    }
}

fn write_images(page: &mut InspectPage, kernels: &Kernels) {
    let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
    for entry in kernels.entries() {
        let isa = entry.ptx_isa().map_or(String::new(), |(major, minor)| format!(" (PTX ISA {major}.{minor})"));
        let kind = match entry.kind {
            // The name is longer than the column.
            kernels::ImageKind::RelocatablePtx => "reloc. ptx".to_owned(),
            other => other.to_string(),
        };
        *count.entry((kind, format!("{}{isa}", entry.arch_name()))).or_default() += 1;
    }
    for ((kind, arch), number) in &count {
        page.push_line(kind, &if *number == 1 { arch.clone() } else { format!("{number} × {arch}") });
    }
    let all = kernels.container_count();
    page.push_coverage(kernels.coverage_by_cc().into_iter().map(|cover| {
        let mut how = match cover.service.code {
            Some(code) => format!("{} ({code})", cover.service.by.name()),
            None => cover.service.by.name().to_owned(),
        };
        match cover.service.by {
            Coverage::Partial => how.push_str(&left_out(kernels, cover.cc, all)),
            Coverage::Ptx => how.push_str(", compiled by the driver at the first start"),
            _ => {}
        }
        (cover.cc, how)
    }));
}

/// Lists the tools that built the file, as far as the file shows them.
fn made_by(page: &mut InspectPage, evidence: &Evidence) {
    if evidence.is_empty() {
        return;
    }
    page.push_title("made by");
    for (made, containers) in &evidence.kernel_makers() {
        let (major, minor) = made.release;
        let of = match containers {
            1 => String::new(),
            number => format!(", in {number} containers"),
        };
        let newer = if made.known == Known::Isa { " or newer" } else { "" };
        page.push_line(
            &made.kind.to_string(),
            &format!("CUDA {major}.{minor}{newer} ({}{of})", made.known.display_name()),
        );
    }
    for version in &evidence.cudart {
        page.push_line("cudart", &format!("{version} (a constant in its code)"));
    }
    for compiler in &evidence.compilers {
        page.push_line("compiler", compiler);
    }
}

/// Describes how many containers have no code for this compute capability, and the origin of some of them.
fn left_out(kernels: &Kernels, cc: (u8, u8), all: usize) -> String {
    let (mut number, mut origins) = (0, BTreeSet::new());
    for container in kernels.containers_without(cc) {
        number += 1;
        origins.extend(container.origin.as_deref());
    }
    let has = if number == 1 { "has" } else { "have" };
    let mut text = format!("; {number} of {all} containers {has} no code for it");
    if !origins.is_empty() {
        let _ = write!(text, ": {}", counts::join_some(&Vec::from_iter(origins)));
    }
    text
}

pub(crate) fn join_names(names: &[&str], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(" ") }
}

/// Describes the toolchain of a component briefly.
pub(crate) fn built_with(manifest: &Manifest) -> String {
    let mut parts = Vec::new();
    if let Some(version) = manifest.toolkit {
        parts.push(format!("CUDA {}.{}", version.major, version.minor));
    }
    if let Some(guarded) = manifest.library.as_ref().filter(|guarded| guarded.linkage != Linkage::None) {
        parts.push(format!("{} {}", CUDNN.name, guarded.version));
    }
    if parts.is_empty() { "no CUDA toolkit".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests;
