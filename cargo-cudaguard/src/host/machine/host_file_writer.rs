//! Writes a machine as a host file.

#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]

use std::collections::BTreeMap;

pub(super) use crate::as_text::optional as text;
use crate::knowledge::vendor;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::{HostLibrary, LoaderVersion, Machine, OTHER_LIBRARIES, REVISION};
use crate::binary::symbols::Bound;
use cudaguard::internal::tables;

/// A host file. `home` directories are written as `~`, because they contain the user's name.
#[derive(Serialize)]
pub struct HostFileView<'a> {
    revision: u32,
    #[serde(flatten)]
    machine: &'a Machine,
}

impl Machine {
    /// Returns the contents of the host file.
    pub const fn to_host_file(&self) -> HostFileView<'_> {
        HostFileView { revision: REVISION, machine: self }
    }
}

impl LoaderVersion {
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }
}

impl Serialize for LoaderVersion {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown => json.serialize_none(),
            Self::Version(version) => json.collect_str(version),
            Self::Minor(major, minor) => json.collect_str(&format_args!("{major}.{minor}")),
        }
    }
}

pub(super) fn dotted<S: Serializer>(cc: &Option<(u8, u8)>, json: S) -> Result<S::Ok, S::Error> {
    text(&cc.map(tables::dotted_cc), json)
}

pub(super) fn negated<S: Serializer>(value: &bool, json: S) -> Result<S::Ok, S::Error> {
    json.serialize_bool(!value)
}

pub(super) const fn is_set(value: &bool) -> bool {
    *value
}

pub(super) const fn is_unset(value: &bool) -> bool {
    !*value
}

pub(super) fn texts<S: Serializer>(texts: &[(String, String)], json: S) -> Result<S::Ok, S::Error> {
    json.collect_map(texts.iter().map(|(key, text)| (key, text)))
}

/// Writes the lists of libraries in the order of the table.
pub(super) fn libraries<S: Serializer>(
    libraries: &BTreeMap<&'static str, Vec<HostLibrary>>,
    json: S,
) -> Result<S::Ok, S::Error> {
    let mut map = json.serialize_map(None)?;
    for key in vendor::DESCRIBED.into_iter().map(|library| library.key).chain([OTHER_LIBRARIES]) {
        if let Some(files) = libraries.get(key) {
            map.serialize_entry(key, files)?;
        }
    }
    map.end()
}

pub(super) fn bound_functions<S: Serializer>(bound: &[Bound], json: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct BoundView<'a> {
        soname: &'a str,
        function: &'a str,
        first: String,
    }

    json.collect_seq(bound.iter().map(|bound| BoundView {
        soname: &bound.soname,
        function: &bound.name,
        first: bound.first.to_string(),
    }))
}
