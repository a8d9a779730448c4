//! Output of the report on a package or archive, as text and as JSON.

use std::collections::BTreeMap;

use super::packages::ArtifactPackage;
use super::{ArtifactMember, ArtifactReport, EXIT_NOT_FOUND, TOLD};
use crate::artifact::Walked;
use crate::binary::examined;
use crate::binary::kernels::Coverage;
use crate::cli::counts::{count_of, join_some};
use crate::cli::findings::{to_json, to_text};
use crate::cli::json_output;
use crate::commands::inspect::{self, InspectPage};
use crate::family::{Descriptor, Release};
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;
use cudaguard::internal::vendor;

impl ArtifactReport {
    pub(super) fn to_json(&self) -> String {
        let mut value = object([("file", self.archive.to_string_lossy().as_ref().into())]);
        value.insert_some("kind", Some(self.walked.kind));
        let package = |package: &ArtifactPackage| {
            let requires = package.requires.iter().map(String::as_str);
            object([("name", Value::from(package.name_and_version())), ("requires", array(requires))])
        };
        value.insert_some("packages", (!self.packages.is_empty()).then(|| array(self.packages.iter().map(package))));
        value.insert_some("members_in_all", Some(self.walked.members));
        value.insert_some("members", Some(array(self.parts.iter().map(ArtifactMember::to_json))));
        let covers = self.gpu_coverage();
        let one = |(cc, by): &((u8, u8), Coverage)| {
            object([("cc", Value::from(tables::dotted_cc(*cc))), ("by", by.name().into())])
        };
        value.insert_some("covers", Some(array(covers.iter().map(one))));
        let mut one_of = Vec::new();
        for (major, drivers) in self.oldest_drivers() {
            let drivers = (!drivers.is_empty()).then(|| array(drivers.iter().map(inspect::Needs::to_json)));
            let Some(major) = major else {
                value.insert_some("drivers", drivers);
                continue;
            };
            let members = self.cuda_majors().remove(&major).unwrap_or_default();
            let mut one = object([("cuda", Value::from(major)), ("members", array(members))]);
            one.insert_some("drivers", drivers);
            one_of.push(one);
        }
        value.insert_some("one_of", (!one_of.is_empty()).then(|| array(one_of)));
        let elsewhere = self.externally_needed().into_iter().map(|(soname, wanted)| {
            let mut value = object([("soname", Value::from(soname)), ("needed_by", array(wanted.by))]);
            value.insert_some("opened", wanted.is_opened.then_some(true));
            value.insert_some("inside", wanted.inside);
            value.insert_some("required", wanted.brought);
            value
        });
        value.insert_some("from_elsewhere", Some(array(elsewhere)));
        let opened = self.possibly_opened().into_iter();
        let opened = opened.map(|(soname, members)| object([("soname", Value::from(soname)), ("by", array(members))]));
        let opened: Vec<Value> = opened.collect();
        value.insert_some("may_open", (!opened.is_empty()).then(|| array(opened)));
        let findings = self.package_findings();
        value.insert_some("findings", (!findings.is_empty()).then(|| to_json(&findings)));
        inspect::put_not_judged(&mut value, &self.all_not_examined());
        json_output::render(value)
    }

    pub(super) fn to_text(&self) -> String {
        let mut page = InspectPage::default();
        let Walked { kind, members } = &self.walked;
        let number = self.parts.len();
        page.push_title(&format!("{}: {kind}, {}", self.archive.display(), count_of(*members, "member")));
        for package in &self.packages {
            page.push_title(&package.display_title());
            let mut name = "requires";
            for requires in &package.requires {
                page.push_line(name, requires);
                name = "";
            }
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
        let mut name = "driver";
        for (major, drivers) in self.oldest_drivers() {
            let of = major.map(|major| format!("CUDA {major}, ")).unwrap_or_default();
            for needs in drivers {
                page.push_line(name, &format!("{of}{}", needs.describe()));
                name = "";
            }
        }
        let mut name = "one of";
        for (major, members) in self.cuda_majors() {
            page.push_line(name, &format!("for CUDA {major}: {}", join_some(&members)));
            name = "";
        }
        page.push_title("libraries, over all members");
        for library in vendor::ALL {
            let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for part in &self.parts {
                for (_, version) in part.holds.iter().filter(|(held, _)| held.key == library.key) {
                    listed.entry(version.as_deref().unwrap_or(EXIT_NOT_FOUND)).or_default().push(&part.name);
                }
            }
            if listed.len() > 1 {
                listed.remove(EXIT_NOT_FOUND);
            }
            let mut name = library.name;
            for (version, members) in listed {
                page.push_line(name, &format!("{version}, inside: {}", join_some(&members)));
                name = "";
            }
        }
        for library in Descriptor::all().filter(|library| vendor::library_for_key(library.key).is_none()) {
            let mut listed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            let is_it = |release: &&Release| release.of.is(library);
            let found = self.parts.iter().filter_map(|part| Some((part, part.release().filter(is_it)?)));
            let found: Vec<_> = found.map(|(part, release)| (part, release.version_text())).collect();
            for (part, version) in &found {
                listed.entry(version.as_deref().unwrap_or(EXIT_NOT_FOUND)).or_default().push(&part.name);
            }
            let mut name = library.name;
            for (version, members) in listed {
                page.push_line(name, &format!("{version}, {}", join_some(&members)));
                name = "";
            }
        }
        let elsewhere = self.externally_needed();
        let mut name = "elsewhere";
        for (soname, wanted) in &elsewhere {
            let out = match (&wanted.inside, wanted.brought) {
                (_, Some(requirement)) => {
                    format!("; the package requires {}", requirement.split(';').next().unwrap_or_default().trim_end())
                }
                (Some(inside), None) => format!("; their RPATH or RUNPATH does not contain {inside}"),
                (None, None) => String::new(),
            };
            let how = if wanted.is_opened { "opened by name by" } else { "needed by" };
            page.push_line(name, &format!("{soname}, {how} {}{out}", join_some(&wanted.by)));
            name = "";
        }
        if elsewhere.is_empty() {
            page.push_line(name, &self.limited("none needed"));
        }
        let mut name = "may open";
        for (soname, members) in self.possibly_opened() {
            page.push_line(name, &format!("{soname}: {}", join_some(&members)));
            name = "";
        }
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
