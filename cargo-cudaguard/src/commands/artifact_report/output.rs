//! Output of the report on a package or archive, as text and as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::packages::ArtifactPackage;
use super::{ArtifactMember, ArtifactReport, EXIT_NOT_FOUND, ExternalLibrary, TOLD};
use crate::artifact::Walked;
use crate::binary::examined;
use crate::binary::kernels::{Coverage, Kernels};
use crate::cli::counts::{count_of, join_some};
use crate::cli::findings::to_text;
use crate::cli::json_output::{self, FindingView, Members, texts};
use crate::commands::inspect::{self, InspectPage, Needs};
use crate::family::Release;
use crate::knowledge::vendor;
use cudaguard::internal::tables;
use serde::Serialize;

/// The report as JSON.
#[derive(Serialize)]
struct ArtifactView<'a> {
    file: Cow<'a, str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<ArtifactPackageView<'a>>,
    members_in_all: u64,
    members: Vec<MemberView<'a>>,
    covers: Vec<GpuSupportView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drivers: Vec<Needs>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<VariantView<'a>>,
    from_elsewhere: Vec<ElsewhereView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    may_open: Vec<OpenedView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<FindingView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_judged: Vec<String>,
}

#[derive(Serialize)]
struct ArtifactPackageView<'a> {
    name: String,
    requires: &'a [String],
}

impl<'a> ArtifactPackageView<'a> {
    fn new(package: &'a ArtifactPackage) -> Self {
        Self { name: package.name_and_version(), requires: &package.requires }
    }
}

#[derive(Serialize)]
struct MemberView<'a> {
    name: &'a str,
    kind: String,
    machine: Option<String>,
    guarded: bool,
    components: Vec<serde_json::Value>,
    kernels: &'a Kernels,
    needed: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    delay_loaded: &'a [String],
    #[serde(skip_serializing_if = "Members::is_empty")]
    holds: Members<&'static str, &'a str>,
    library: Option<&'a Release>,
}

impl<'a> MemberView<'a> {
    fn new(member: &'a ArtifactMember) -> Self {
        let notes = member.binary.manifests().filter_map(Result::ok);
        let holds = member.holds.iter();
        Self {
            name: &member.name,
            kind: member.binary.kind.to_string(),
            machine: inspect::processor_name(&member.binary),
            guarded: member.is_guarded(),
            components: notes.map(|note| inspect::manifest_json(&note.manifest)).collect(),
            kernels: &member.kernels,
            needed: &member.binary.needed,
            delay_loaded: &member.binary.delay_loaded,
            holds: Members(
                holds.map(|(library, version)| (library.key, version.as_deref().unwrap_or_default())).collect(),
            ),
            library: member.release(),
        }
    }
}

#[derive(Serialize)]
struct GpuSupportView {
    cc: String,
    by: &'static str,
}

/// The members for one CUDA major version, if a program loads one of several variants.
#[derive(Serialize)]
struct VariantView<'a> {
    cuda: u32,
    members: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drivers: Vec<Needs>,
}

#[derive(Serialize)]
struct ElsewhereView<'a> {
    soname: String,
    needed_by: Vec<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opened: bool,
    inside: Option<String>,
    required: Option<&'a str>,
}

impl<'a> ElsewhereView<'a> {
    fn new((soname, wanted): (String, ExternalLibrary<'a>)) -> Self {
        let ExternalLibrary { by: needed_by, inside, brought: required, is_opened: opened } = wanted;
        Self { soname, needed_by, opened, inside, required }
    }
}

#[derive(Serialize)]
struct OpenedView<'a> {
    soname: &'a str,
    by: Vec<&'a str>,
}

impl ArtifactReport {
    pub(super) fn to_json(&self) -> String {
        let covers = self.gpu_coverage();
        let members_of_majors = self.cuda_majors();
        let findings = self.package_findings();
        let mut drivers = Vec::new();
        let mut one_of = Vec::new();
        for (major, needs) in self.oldest_drivers() {
            match major {
                None => drivers = needs,
                Some(cuda) => {
                    let members = members_of_majors.get(&cuda).cloned().unwrap_or_default();
                    one_of.push(VariantView { cuda, members, drivers: needs });
                }
            }
        }
        json_output::render(&ArtifactView {
            file: self.archive.to_string_lossy(),
            kind: self.walked.kind,
            packages: self.packages.iter().map(ArtifactPackageView::new).collect(),
            members_in_all: self.walked.members,
            members: self.parts.iter().map(MemberView::new).collect(),
            covers: covers
                .iter()
                .map(|(cc, by)| GpuSupportView { cc: tables::dotted_cc(*cc), by: by.name() })
                .collect(),
            drivers,
            one_of,
            from_elsewhere: self.externally_needed().into_iter().map(ElsewhereView::new).collect(),
            may_open: self.possibly_opened().into_iter().map(|(soname, by)| OpenedView { soname, by }).collect(),
            findings: findings.iter().map(FindingView::new).collect(),
            not_judged: texts(self.all_not_examined()),
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut page = InspectPage::default();
        let Walked { kind, members } = &self.walked;
        let number = self.parts.len();
        page.push_title(&format!("{}: {kind}, {}", self.archive.display(), count_of(*members, "member")));
        for package in &self.packages {
            page.push_title(&package.display_title());
            page.push_lines("requires", package.requires.iter().cloned());
        }
        page.push_title(&format!("of CUDA: {}", count_of(number as u64, "member")));
        // Members with more information come first.
        let mut parts: Vec<&ArtifactMember> = self.parts.iter().collect();
        parts.sort_by_key(|part| (part.kernels.entries().is_empty(), part.holds.is_empty()));
        for part in parts.iter().take(TOLD) {
            page.push_title(&format!("  {}", part.name));
            page.push_title(&format!("    {}", part.describe()));
        }
        if number > TOLD {
            page.push_title(&format!("  and {} more (--json has all)", number - TOLD));
        }
        page.push_title("kernels, over all members");
        let covers = self.gpu_coverage();
        if covers.is_empty() {
            page.push_line("none", &self.limited("no GPU code in any member"));
        }
        page.push_coverage(covers.iter().map(|(cc, by)| match by {
            Coverage::Ptx => (*cc, "ptx, compiled by the driver at the first start".to_owned()),
            Coverage::Partial => (*cc, format!("partial{}", self.left_out(*cc))),
            other => (*cc, other.name().to_owned()),
        }));
        let drivers = self.oldest_drivers().into_iter().flat_map(|(major, drivers)| {
            let of = major.map(|major| format!("CUDA {major}, ")).unwrap_or_default();
            drivers.into_iter().map(move |needs| format!("{of}{}", needs.describe()))
        });
        page.push_lines("driver", drivers);
        let majors = self.cuda_majors().into_iter();
        page.push_lines("one of", majors.map(|(major, members)| format!("for CUDA {major}: {}", join_some(&members))));
        page.push_title("libraries, over all members");
        for library in vendor::DESCRIBED {
            let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for part in &self.parts {
                for (_, version) in part.holds.iter().filter(|(held, _)| held.key == library.key) {
                    listed.entry(version.as_deref().unwrap_or(EXIT_NOT_FOUND)).or_default().push(&part.name);
                }
            }
            if listed.len() > 1 {
                listed.remove(EXIT_NOT_FOUND);
            }
            let listed = listed.into_iter();
            let lines = listed.map(|(version, members)| format!("{version}, inside: {}", join_some(&members)));
            page.push_lines(library.name, lines);
        }
        for library in vendor::CATALOGUE.into_iter().filter(|library| vendor::library_for_key(library.key).is_none()) {
            let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            let is_it = |release: &&Release| release.of.is(library);
            let found = self.parts.iter().filter_map(|part| Some((part, part.release().filter(is_it)?)));
            let found: Vec<_> = found.map(|(part, release)| (part, release.version_text())).collect();
            for (part, version) in &found {
                listed.entry(version.as_deref().unwrap_or(EXIT_NOT_FOUND)).or_default().push(&part.name);
            }
            let listed = listed.into_iter();
            page.push_lines(
                library.name,
                listed.map(|(version, members)| format!("{version}, {}", join_some(&members))),
            );
        }
        let elsewhere = self.externally_needed();
        let lines = elsewhere.iter().map(|(soname, wanted)| {
            let out = match (&wanted.inside, wanted.brought) {
                (_, Some(requirement)) => {
                    format!("; the package requires {}", requirement.split(';').next().unwrap_or_default().trim_end())
                }
                (Some(inside), None) => format!("; their RPATH or RUNPATH does not contain {inside}"),
                (None, None) => String::new(),
            };
            let how = if wanted.is_opened { "opened by name by" } else { "needed by" };
            format!("{soname}, {how} {}{out}", join_some(&wanted.by))
        });
        page.push_lines("elsewhere", lines);
        if elsewhere.is_empty() {
            page.push_line("elsewhere", &self.limited("none needed"));
        }
        let opened = self.possibly_opened().into_iter();
        page.push_lines("may open", opened.map(|(soname, members)| format!("{soname}: {}", join_some(&members))));
        page.not_examined(&self.all_not_examined());
        let findings = to_text(&self.package_findings());
        if !findings.is_empty() {
            page.0 = page.0 + "\n" + &findings;
        }
        page.0
    }

    /// Qualifies an answer if it holds only for the examined parts.
    fn limited(&self, answer: &str) -> String {
        let is_examined = examined::is_complete(&self.all_not_examined());
        if is_examined { answer.to_owned() } else { format!("{answer}, as far as examined") }
    }

    /// Lists the members without code for GPUs of this compute capability, and those that lack some of their kernels.
    fn left_out(&self, cc: (u8, u8)) -> String {
        let in_part =
            |part: &&ArtifactMember| part.kernels.has_kernels() && part.kernels.gpu_support(cc).by == Coverage::Partial;
        let in_part: Vec<&str> = self.parts.iter().filter(in_part).map(|part| part.name.as_str()).collect();
        let listed = |words: &str, names: &[&str]| {
            if names.is_empty() { String::new() } else { format!("; {words} for it in {}", join_some(names)) }
        };
        listed("nothing", &self.members_without(cc)) + &listed("not all kernels", &in_part)
    }
}
