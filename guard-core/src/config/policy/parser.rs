//! Parser of `cudaguard.toml`.

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use super::{BuildAction, GpuNeed, Policy, VersionRequirement};
use crate::config::ConfigError;
use crate::finding::Code;
use crate::knowledge::cudnn;
use crate::knowledge::tables;
use crate::model::arch::{self, ArchRequest, Dialect};
use crate::model::linkage::Linkage;
use crate::model::version::{DriverRelease, Version};
use crate::text::lists::IteratorExt as _;
use crate::text::suggest::{closest_match, edit_distance};
use crate::text::toml_error::kind_of;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Limit of reported mistakes; a file with more is not a policy.
pub(super) const MOST: usize = 40;

/// The section of cuDNN.
const LIBRARY: &str = cudnn::KEY;

/// The keys of `[release]`.
pub(super) const RELEASE_KEYS: &[&str] =
    &["archs", "driver-floor", "cudnn-floor", "guarded", "strict", "except", "allow-loss"];

/// Every section and its keys. `allow` and `package` have free keys.
pub(super) const SECTIONS: &[(&str, &[&str])] = &[
    ("toolkit", &["require"]),
    (LIBRARY, &["require", "built", "linkage", "patch", "required", "fleet"]),
    ("gpu", &["archs", "fleet", "partial"]),
    ("driver", &["fleet"]),
    ("build", &["release", "dev", "unguarded"]),
    ("runtime", &["mismatch", "gpu", "library"]),
    ("release", RELEASE_KEYS),
    ("allow", &[]),
];

/// A value and its full key.
#[derive(Clone, Copy)]
pub(super) struct PolicyEntry<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

pub(super) struct PolicyReader<'a> {
    pub(super) path: &'a Path,
    /// Offsets of line ends.
    ends: Vec<usize>,
    /// (offset in the text, message without position).
    pub(super) errors: Vec<(usize, String)>,
}

impl<'a> PolicyReader<'a> {
    pub(super) fn new(path: &'a Path, text: &str) -> Self {
        Self { path, ends: text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>(), errors: Vec::new() }
    }

    fn line_at(&self, offset: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < offset)
    }

    pub(super) fn into_result(mut self) -> Result<(), ConfigError> {
        if self.errors.is_empty() {
            return Ok(());
        }
        self.errors.sort();
        let more = self.errors.len() > MOST;
        let errors = std::mem::take(&mut self.errors).into_iter().take(MOST);
        let mistakes = errors.map(|(offset, message)| (self.line_at(offset), message)).collect::<Vec<_>>();
        Err(ConfigError::Mistakes { path: self.path.to_owned(), mistakes, more })
    }

    pub(super) fn push_error(&mut self, entry: PolicyEntry<'_>, expected: &str) {
        let found = match entry.value.get_ref() {
            DeValue::String(text) => format!("{text:?}"),
            other => kind_of(other),
        };
        self.errors.push((entry.value.span().start, format!("`{}`: expected {expected}, found {found}", entry.key)));
    }

    /// Reports a key that is not one of `valid`.
    pub(super) fn unknown_key(&mut self, full: &str, at: usize, valid: &[&str]) {
        if self.errors.len() > MOST {
            return;
        }
        let last = full.rsplit('.').next().unwrap_or(full);
        let mut message = format!("`{full}`: no such key");
        if let Some(suggestion) = closest_match(last, valid) {
            let _ = write!(message, "; did you mean `{suggestion}`?");
        } else if SECTIONS.iter().any(|(_, keys)| keys.contains(&last)) {
            let homes = SECTIONS.iter().filter(|(_, keys)| keys.contains(&last));
            let _ =
                write!(message, "; it belongs to {}", homes.map(|(section, _)| format!("[{section}]")).join(" or "));
        } else {
            let _ = write!(message, "; expected one of {}", valid.join(", "));
        }
        self.errors.push((at, message));
    }

    pub(super) fn read_table<'v>(&mut self, entry: PolicyEntry<'v>) -> Option<&'v DeTable<'v>> {
        let table = entry.value.get_ref().as_table();
        if table.is_none() {
            self.push_error(entry, &format!("a table: [{}]", entry.key));
        }
        table
    }

    pub(super) fn read_file(&mut self, table: &DeTable<'_>, policy: &mut Policy, package: &str) {
        self.read_sections("", table, policy);
        let Some(packages) = table.get("package") else { return };
        let Some(packages) = self.read_table(PolicyEntry { key: "package", value: packages }) else { return };
        policy.packages =
            packages.keys().map(|name| (name.get_ref().to_string(), self.line_at(name.span().start))).collect();
        for (name, value) in packages {
            let key = format!("package.{}", name.get_ref());
            let Some(table) = self.read_table(PolicyEntry { key: &key, value }) else { continue };
            // Overrides of another package are parsed for their mistakes.
            let mut other = Policy::default();
            let over = if name.get_ref() == package { &mut *policy } else { &mut other };
            over.over = Some(name.get_ref().to_string());
            self.read_sections(&format!("{key}."), table, over);
        }
    }

    pub(super) fn read_sections(&mut self, prefix: &str, table: &DeTable<'_>, policy: &mut Policy) {
        let mut sections = SECTIONS.to_vec();
        if prefix.is_empty() {
            sections.push(("package", &[]));
        } else {
            // A release consists of files, not of packages.
            sections.retain(|(section, _)| *section != "release");
        }
        for (name, value) in table {
            let (section, at): (&str, usize) = (name.get_ref(), name.span().start);
            let key = format!("{prefix}{section}");
            let Some((_, keys)) = sections.iter().find(|(known, _)| *known == section) else {
                let names = sections.iter().map(|(name, _)| *name).collect::<Vec<_>>();
                self.unknown_key(&key, at, &names);
                continue;
            };
            if section == "package" {
                continue;
            }
            let Some(table) = self.read_table(PolicyEntry { key: &key, value }) else { continue };
            if section == "allow" {
                self.read_allow(&key, table, policy);
                continue;
            }
            for (name, value) in table {
                let full = format!("{key}.{}", name.get_ref());
                if keys.contains(&&**name.get_ref()) {
                    self.read_key(section, name.get_ref(), PolicyEntry { key: &full, value }, policy);
                } else {
                    self.unknown_key(&full, name.span().start, keys);
                }
            }
            if section == LIBRARY {
                self.read_library(&key, table, policy);
            }
        }
    }

    pub(super) fn read_key(&mut self, section: &str, key: &str, entry: PolicyEntry<'_>, policy: &mut Policy) {
        match (section, key) {
            ("toolkit", "require") => set_if_some(&mut policy.toolkit, self.read_requirement(entry, ">=12.4, <14")),
            (LIBRARY, "require") => set_if_some(&mut policy.library, self.read_requirement(entry, "^9.1")),
            (LIBRARY, "built") => {
                let expected = format!("the {} of the headers as a string such as \"9.1\"", cudnn::NAME);
                let text: Option<String> = self.read_parsed(entry, &expected, |_: &Version| true);
                set_if_some(&mut policy.library_built, text.and_then(|text| text.parse().ok()));
            }
            (LIBRARY, "linkage") => {
                let linkages = [
                    ("linked", Linkage::Linked),
                    ("static", Linkage::Static),
                    ("dlopened", Linkage::Dlopened),
                    ("none", Linkage::None),
                ];
                set_if_some(&mut policy.library_linkage, self.read_choice(entry, &linkages));
            }
            (LIBRARY, "patch") => {
                policy.library_patch_refuse =
                    self.read_choice(entry, &[("accept", false), ("refuse", true)]).unwrap_or_default();
            }
            (LIBRARY, "required") => policy.library_required = self.read_bool(entry),
            (LIBRARY, "fleet") => {
                set_if_some(
                    &mut policy.library_fleet,
                    self.read_parsed(
                        entry,
                        &format!("the oldest {} as a string such as \"9.1\"", cudnn::NAME),
                        |_: &Version| true,
                    ),
                );
            }
            ("gpu", "archs") => self.read_archs(entry, policy),
            ("gpu", "fleet") => self.read_fleet(entry, policy),
            ("gpu", "partial") => {
                policy.partial_refuse =
                    self.read_choice(entry, &[("accept", false), ("refuse", true)]).unwrap_or_default();
            }
            ("driver", "fleet") => {
                let expected = "the oldest driver as a string such as \"535\" or \"535.261.03\"";
                let release = self.read_parsed(entry, expected, |release: &DriverRelease| release.is_one());
                set_if_some(&mut policy.driver_fleet, release);
            }
            ("build", "release") => set_if_some(&mut policy.release, self.build_action(entry)),
            ("build", "dev") => set_if_some(&mut policy.dev, self.build_action(entry)),
            ("build", "unguarded") => set_if_some(&mut policy.unguarded, self.build_action(entry)),
            ("runtime", "mismatch") => {
                policy.runtime.mismatch_warns =
                    self.read_choice(entry, &[("refuse", false), ("warn", true)]).unwrap_or_default();
            }
            ("runtime", "gpu") => {
                let needs = [("auto", GpuNeed::Auto), ("required", GpuNeed::Required), ("optional", GpuNeed::Optional)];
                policy.runtime.gpu = self.read_choice(entry, &needs).unwrap_or_default();
            }
            ("runtime", "library") => {
                policy.runtime.library_enforces =
                    self.read_choice(entry, &[("check", false), ("enforce", true)]).unwrap_or_default();
            }
            ("release", key) => self.read_release_key(key, entry, policy),
            _ => unreachable!("a key of SECTIONS that nothing reads: {section}.{key}"),
        }
    }

    /// Checks `require` and `linkage` of one table together. The later layer overrides the earlier one.
    pub(super) fn read_library(&mut self, key: &str, table: &DeTable<'_>, policy: &mut Policy) {
        let none = policy.library_linkage == Some(Linkage::None);
        match (table.get("require"), table.get("linkage")) {
            (Some(require), Some(_)) if none => self.errors.push((
                require.span().start,
                format!("`{key}.require`: contradicts linkage = \"none\" in the same table; keep one of them"),
            )),
            (None, Some(_)) if none => policy.library = None,
            (Some(_), None) if none => policy.library_linkage = None,
            _ => {}
        }
    }

    pub(super) fn read_string<'v>(&mut self, entry: PolicyEntry<'v>, expected: &str) -> Option<&'v str> {
        let text = entry.value.get_ref().as_str();
        if text.is_none() {
            self.push_error(entry, expected);
        }
        text
    }

    pub(super) fn read_requirement(&mut self, entry: PolicyEntry<'_>, example: &str) -> Option<VersionRequirement> {
        let expected = format!("a version requirement in cargo's syntax, such as {example:?}");
        let text = self.read_string(entry, &expected)?;
        match semver::VersionReq::parse(text) {
            Ok(parsed) => Some(VersionRequirement { text: text.to_owned(), parsed }),
            Err(error) => {
                let place = entry.value.span().start;
                self.errors.push((place, format!("`{}`: expected {expected}, found {text:?}: {error}", entry.key)));
                None
            }
        }
    }

    /// Parses a string as `T` and keeps its text.
    pub(super) fn read_parsed<T: FromStr>(
        &mut self,
        entry: PolicyEntry<'_>,
        expected: &str,
        such: fn(&T) -> bool,
    ) -> Option<String> {
        let text = self.read_string(entry, expected)?;
        if !text.parse().is_ok_and(|value| such(&value)) {
            self.push_error(entry, expected);
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn read_choice<T: Copy>(&mut self, entry: PolicyEntry<'_>, choices: &[(&str, T)]) -> Option<T> {
        let names = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        Some(choices[self.read_name(entry, &names)?].1)
    }

    /// Returns the index of the name.
    fn read_name(&mut self, entry: PolicyEntry<'_>, names: &[&str]) -> Option<usize> {
        let expected = match names {
            [one, other] => format!("{one:?} or {other:?}"),
            several => format!("one of {}", several.iter().map(|name| format!("{name:?}")).join(", ")),
        };
        let text = self.read_string(entry, &expected)?;
        let chosen = names.iter().position(|name| *name == text);
        if chosen.is_none() {
            self.push_error(entry, &expected);
        }
        chosen
    }

    pub(super) fn build_action(&mut self, entry: PolicyEntry<'_>) -> Option<BuildAction> {
        self.read_choice(entry, &[("deny", BuildAction::Deny), ("warn", BuildAction::Warn)])
    }

    /// Reads each string of an array, with its own key.
    pub(super) fn read_strings(
        &mut self,
        entry: PolicyEntry<'_>,
        expected: &str,
        each: &mut dyn FnMut(&mut Self, PolicyEntry<'_>, &str),
    ) {
        let Some(array) = entry.value.get_ref().as_array() else {
            self.push_error(entry, &format!("an array of {expected}"));
            return;
        };
        for (index, value) in array.iter().enumerate() {
            if self.errors.len() > MOST {
                return;
            }
            let entry = PolicyEntry { key: &format!("{}[{index}]", entry.key), value };
            if let Some(text) = self.read_string(entry, &format!("one of {expected}")) {
                each(self, entry, text);
            }
        }
    }

    pub(super) fn read_archs(&mut self, entry: PolicyEntry<'_>, policy: &mut Policy) {
        policy.archs.clear();
        policy.arch_words.clear();
        self.read_strings(entry, "strings such as \"sm_90a\" or \"compute_90\"", &mut |reader, entry, text| {
            let place = entry.value.span().start;
            let requests = match arch::parse_list(text, Dialect::Policy) {
                Ok(requests) if requests.is_empty() => {
                    return reader.push_error(entry, "an architecture such as \"sm_90a\"");
                }
                Ok(requests) => requests,
                Err(error) => return reader.errors.push((place, format!("`{}`: {error}", entry.key))),
            };
            for request in requests {
                match request {
                    ArchRequest::Target(target) if policy.archs.contains(&target) => {}
                    ArchRequest::Target(target) => policy.archs.push(target),
                    ArchRequest::All | ArchRequest::AllMajor => policy.arch_words.push(request),
                    ArchRequest::Native | ArchRequest::Off => reader.errors.push((
                        place,
                        format!(
                            "`{}`: `{request}` depends on the machine; expected architectures such as \
                             \"sm_90a\"",
                            entry.key
                        ),
                    )),
                }
            }
        });
    }

    pub(super) fn read_fleet(&mut self, entry: PolicyEntry<'_>, policy: &mut Policy) {
        policy.fleet.clear();
        self.read_strings(entry, "strings such as \"T4\", \"A100\" or \"8.6\"", &mut |reader, entry, text| {
            if tables::gpu_cc(text).is_none() {
                let mut message = format!(
                    "`{}`: {text:?} is not a known GPU; expected its compute capability, such as \"8.6\"",
                    entry.key
                );
                if let Some(suggestion) = tables::suggest_gpu(text) {
                    let _ = write!(message, ", or did you mean {suggestion:?}?");
                }
                reader.errors.push((entry.value.span().start, message));
            } else if !policy.fleet.iter().any(|known| known == text) {
                policy.fleet.push(text.to_owned());
            }
        });
    }

    pub(super) fn read_allow(&mut self, key: &str, table: &DeTable<'_>, policy: &mut Policy) {
        let mut names = table.iter().collect::<Vec<_>>();
        names.sort_by_key(|(name, _)| name.span().start);
        let mut lines_of: Vec<(Code, &str, usize)> = Vec::new();
        for (name, value) in &names {
            let full = format!("{key}.{}", name.get_ref());
            let entry = PolicyEntry { key: &full, value };
            if self.errors.len() > MOST {
                return;
            }
            let Ok(code) = name.get_ref().parse::<Code>() else {
                // Codes are so similar that with two wrong characters a dozen could be meant.
                let typed = name.get_ref().to_ascii_uppercase();
                let suggestion = Code::ALL
                    .iter()
                    .map(ToString::to_string)
                    .find(|code| typed.len() <= code.len() + 1 && edit_distance(&typed, code) == 1);
                let mut message = format!("`{full}`: no such finding; expected a code such as CG122");
                if let Some(suggestion) = suggestion {
                    let _ = write!(message, ", did you mean `{suggestion}`?");
                }
                self.errors.push((name.span().start, message));
                continue;
            };
            let at = name.span().start;
            if let Some(&(_, first, before)) = lines_of.iter().find(|(known, ..)| *known == code) {
                let line = self.line_at(before);
                self.errors.push((
                    at,
                    format!("`{full}`: line {line} has `{key}.{first}` for the same code; keep one of them"),
                ));
            } else {
                lines_of.push((code, name.get_ref(), at));
            }
            match value.get_ref().as_str() {
                Some(reason) if !reason.trim().is_empty() => {
                    policy.allow.insert(code, reason.trim().to_owned());
                }
                _ => self.push_error(entry, "the reason, a string that is not empty"),
            }
        }
    }
}

/// Keeps the value of the earlier layer if this layer has a mistake.
fn set_if_some<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}
