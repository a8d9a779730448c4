//! Reads the host file, which `probe` writes and which users can write manually.
//!
//! Unknown keys are ignored, and reported if the revision is known ([`UnknownKeys`]). A known key with a value of the wrong type or form is
//! an error, so that a typing mistake does not silently become an unknown fact.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::unknown_keys::UnknownKeys;
use super::{Gpu, GpuState, HostLibrary, LoaderVersion, Machine, MachineKind, OTHER_LIBRARIES, REVISION};
use crate::binary::symbols::Bound;
use crate::knowledge::vendor;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// Maximum number of entries of an array or object in a host file.
const MOST: usize = 4096;

const A_HOST_FILE: &str = "a host file: an object, `{ … }`, as `cargo cudaguard probe --json` writes it";

/// An error in a host file and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// Path of the keys of the value, outermost first: `gpus[2].cc`. Empty at the top level.
    pub key: String,
    /// The message: the actual and the expected value.
    pub what: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = cudaguard::internal::sanitize::sanitize_line(&self.what);
        if self.key.is_empty() {
            f.write_str(&what)
        } else {
            write!(f, "`{}`: {what}", cudaguard::internal::sanitize::sanitize_line(&self.key))
        }
    }
}

impl ParseError {
    fn new(key: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column().max(1));
        let what = error.to_string();
        let place = format!(" at line {line} column {}", error.column());
        // Serde quotes the complete string.
        let what = shorten(what.strip_suffix(&place).unwrap_or(&what), 240);
        // If no key was read, the path ends with a question mark.
        let key = if key == "." { String::new() } else { shorten(key.trim_end_matches(['.', '?']), 120) };
        Self { line, column, key, what }
    }

    /// Returns the error for a text that does not begin with an object.
    fn not_an_object(text: &str) -> Self {
        let rest = text.trim_start();
        let before = &text[..text.len() - rest.len()];
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        let found = match rest.lines().next() {
            Some(line) => format!("found `{}`", shorten(line, 24)),
            None => "unexpected end of the text".to_owned(),
        };
        let line = before.matches('\n').count() + 1;
        Self { line, column, key: String::new(), what: format!("expected {A_HOST_FILE}; {found}") }
    }
}

fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Parses a driver release in the usual notations: `535.261.03`, `580.65.06-1`, `R535`, `v550.54.15`. If there is only
/// the branch, the other numbers are 0.
pub fn parse_release(text: &str) -> Option<DriverRelease> {
    let text = text.trim().trim_start_matches(['R', 'r', 'V', 'v']);
    let number = text.split(['-', '+', '~', ' ']).next().unwrap_or_default();
    if !number.is_empty() && number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(DriverRelease::new(number.parse().ok()?, 0, 0)).filter(|branch| branch.is_one());
    }
    number.parse().ok().filter(|release: &DriverRelease| release.is_one())
}

/// Parses a compute capability such as `8.6`.
pub(super) fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let (major, minor) = text.split_once('.').filter(|_| text.bytes().all(|b| b.is_ascii_digit() || b == b'.'))?;
    Some((major.parse().ok()?, minor.parse().ok()?)).filter(|(major, _)| *major > 0)
}

/// Parses the version of a loader library: two numbers come from its code, three from its file name.
fn loader(text: &str) -> Option<LoaderVersion> {
    let version: Version = text.parse().ok()?;
    let whole = text.matches('.').count() > 1;
    Some(if whole { LoaderVersion::Version(version) } else { LoaderVersion::Minor(version.major, version.minor) })
}

impl Machine {
    /// Parses a host file. Returns the machine and the revision that the file names, 0 if it names none.
    pub fn read(text: &str) -> Result<(Self, u32), ParseError> {
        let file = HostFile::parse(text, true)?;
        Ok((file.machine, file.revision.unwrap_or_default()))
    }

    /// Returns the top-level keys of a host file that are ignored.
    pub fn unknown_keys(text: &str) -> UnknownKeys {
        HostFile::parse(text, true).map(|file| file.unknown).unwrap_or_default()
    }

    /// Parses a host file without the facts that the checks do not use, so that machines with equal relevant facts
    /// compare equal. Returns the label and the keys that are ignored separately from the machine.
    pub(super) fn read_for_judging(text: &str) -> Result<(Option<String>, Self, UnknownKeys), ParseError> {
        let HostFile { mut machine, unknown, .. } = HostFile::parse(text, false)?;
        // A GPU's id matters only if a variable selects GPUs by it.
        let mut variables = machine.variables.iter();
        let keeps_uuid = variables.any(|(name, value)| name == "CUDA_VISIBLE_DEVICES" && value.contains("GPU-"));
        for gpu in machine.gpus.iter_mut().flatten() {
            gpu.uuid = gpu.uuid.take().filter(|_| keeps_uuid);
            gpu.pci = None;
        }
        for library in machine.libraries.values_mut().flatten() {
            library.by = None;
        }
        if let Some(driver) = &mut machine.driver {
            driver.library = None;
        }
        Ok((machine.name.take(), machine, unknown))
    }
}

/// A string that is borrowed from the input if it contains no escape.
#[derive(Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// An array of at most [`MOST`] entries.
struct List<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct ItemsVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    if list.len() == MOST {
                        return Err(A::Error::custom(format_args!("expected at most {MOST} entries")));
                    }
                    list.push(item);
                }
                Ok(List(list))
            }
        }

        json.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

/// An object of strings, in the order of the input.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    if pairs.len() == MOST {
                        return Err(A::Error::custom(format_args!("expected at most {MOST} entries")));
                    }
                    pairs.push(pair);
                }
                let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(A::Error::custom(format_args!("duplicate field `{}`", shorten(twice[0], 24))));
                }
                Ok(Pairs(pairs))
            }
        }

        json.deserialize_map(MembersVisitor)
    }
}

/// Parses a string with `parse`; `null` is `None`.
fn parse<'de, D: Deserializer<'de>, T>(
    json: D,
    expected: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    struct ParsedText<T> {
        expected: &'static str,
        parse: fn(&str) -> Option<T>,
    }

    impl<'de, T> Visitor<'de> for ParsedText<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Option<T>, D::Error> {
            json.deserialize_str(self)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Option<T>, E> {
            (self.parse)(text).map(Some).ok_or_else(|| E::invalid_value(Unexpected::Str(&shorten(text, 24)), &self))
        }
    }

    json.deserialize_option(ParsedText { expected, parse })
}

/// Defines a function for `deserialize_with` that parses one kind of string.
macro_rules! parsers {
    ($($name:ident: $of:ty = $parse:expr, $expected:literal;)*) => {$(
        pub(super) fn $name<'de, D: Deserializer<'de>>(json: D) -> Result<Option<$of>, D::Error> {
            parse(json, $expected, $parse)
        }
    )*};
}

parsers! {
    a_release: DriverRelease = parse_release, "a driver's release in quotes such as \"535.261.03\"";
    a_cuda_version: CudaVersion = |text| text.parse().ok(), "a CUDA version in quotes such as \"12.2\"";
    a_version: Version = |text| text.parse().ok(), "a version in quotes such as \"9.15.1\"";
    a_state: GpuState = GpuState::from_name, "compute-prohibited, mig-without-instances, reset-required or lost";
    a_cc: (u8, u8) = parse_cc, "a compute capability in quotes such as \"8.6\"";
}

/// Parses the version of a loader library; `null` is unknown.
pub(super) fn a_loader<'de, D: Deserializer<'de>>(json: D) -> Result<LoaderVersion, D::Error> {
    parse(json, "a version in quotes such as \"9.15\" or \"9.15.1\"", loader).map(Option::unwrap_or_default)
}

/// Parses a value; `null` is its default.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(json: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or_default())
}

/// Parses an array of at most [`MOST`] entries; `null` is `None`.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<Option<Vec<T>>, D::Error> {
    Ok(Option::<List<T>>::deserialize(json)?.map(|list| list.0))
}

/// Does the same as [`list`]; `null` is an empty array.
pub(super) fn list_or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(json: D) -> Result<Vec<T>, D::Error> {
    list(json).map(Option::unwrap_or_default)
}

/// Reads the functions that a library binds.
pub(super) fn bound_functions<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<Bound>, D::Error> {
    #[derive(Deserialize)]
    #[serde(expecting = "a function: an object, `{ … }`")]
    struct BoundEntry {
        soname: String,
        function: String,
        #[serde(deserialize_with = "a_version")]
        first: Option<Version>,
    }

    let entries = list_or_empty(json)?.into_iter();
    Ok(entries
        .filter_map(|it: BoundEntry| Some(Bound { soname: it.soname, name: it.function, first: it.first? }))
        .collect())
}

/// Returns true for `false` only.
pub(super) fn is_false<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(json)? == Some(false))
}

/// Returns false for `false` only.
pub(super) fn is_not_false<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    is_false(json).map(|is_false| !is_false)
}

pub(super) const fn yes() -> bool {
    true
}

/// Returns the key if its value is a list of libraries.
fn library_key(key: &str) -> Option<&'static str> {
    vendor::library_for_key(key).map(|of| of.key).or_else(|| (key == OTHER_LIBRARIES).then_some(OTHER_LIBRARIES))
}

#[derive(Default)]
struct HostFile {
    revision: Option<u32>,
    machine: Machine,
    unknown: UnknownKeys,
}

/// Reads the value of a key that may occur once in an object; `null` is an absent value.
fn member<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    key: &'static str,
    member: &mut Option<T>,
) -> Result<(), A::Error> {
    if member.is_some() {
        return Err(A::Error::duplicate_field(key));
    }
    *member = map.next_value()?;
    Ok(())
}

/// The visitor that reads a host file. `shown`: with the facts that are only displayed.
#[derive(Clone, Copy)]
struct HostFileVisitor {
    shown: bool,
}

impl<'de> DeserializeSeed<'de> for HostFileVisitor {
    type Value = HostFile;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<HostFile, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HostFileVisitor {
    type Value = HostFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A_HOST_FILE)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HostFile, A::Error> {
        let HostFile { mut revision, mut machine, mut unknown } = HostFile::default();
        let (mut kind, mut gpus): (Option<BorrowedText<'_>>, Option<List<Gpu>>) = (None, None);
        let (mut variables, mut sources): (Option<Pairs>, Option<Pairs>) = (None, None);
        let mut warnings: Option<List<String>> = None;
        while let Some(BorrowedText(key)) = map.next_key()? {
            match &*key {
                "revision" => member(&mut map, "revision", &mut revision)?,
                "name" => member(&mut map, "name", &mut machine.name)?,
                "platform" => member(&mut map, "platform", &mut machine.platform)?,
                "kind" => member(&mut map, "kind", &mut kind)?,
                "driver" => member(&mut map, "driver", &mut machine.driver)?,
                "gpus" => member(&mut map, "gpus", &mut gpus)?,
                "variables" => member(&mut map, "variables", &mut variables)?,
                "sources" if self.shown => member(&mut map, "sources", &mut sources)?,
                "doubts" if self.shown => member(&mut map, "doubts", &mut warnings)?,
                key => {
                    if let Some(key) = library_key(key) {
                        let mut files: Option<List<HostLibrary>> = None;
                        member(&mut map, key, &mut files)?;
                        if files.and_then(|files| machine.libraries.insert(key, files.0)).is_some() {
                            return Err(A::Error::duplicate_field(key));
                        }
                        continue;
                    }
                    unknown.add(key);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        // A driver of an unknown kind is checked like any other.
        machine.kind = kind.and_then(|kind| MachineKind::from_name(&kind.0));
        machine.gpus = gpus.map(|gpus| gpus.0);
        for gpu in machine.gpus.iter_mut().flatten() {
            // Only the driver reports these, so it supports the GPU.
            gpu.listed = gpu.uuid.is_some() || gpu.pci.is_some();
        }
        machine.variables = variables.map(|variables| variables.0).unwrap_or_default();
        machine.sources = sources.map(|sources| sources.0).unwrap_or_default();
        machine.warnings = warnings.map(|warnings| warnings.0).unwrap_or_default();
        if revision.is_some_and(|revision| revision > REVISION) {
            unknown = UnknownKeys::default();
        }
        Ok(HostFile { revision, machine, unknown })
    }
}

impl HostFile {
    fn parse(text: &str, shown: bool) -> Result<Self, ParseError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = HostFileVisitor { shown }.deserialize(&mut json);
        parsed.and_then(|file| json.end().map(|()| file)).map_err(|error| {
            if !text.trim_start().starts_with('{') {
                return ParseError::not_an_object(text);
            }
            // Tracking the keys takes time, so it is done only for an error message.
            let mut track = serde_path_to_error::Track::new();
            let mut json = serde_json::Deserializer::from_str(text);
            let tracked =
                HostFileVisitor { shown }.deserialize(serde_path_to_error::Deserializer::new(&mut json, &mut track));
            ParseError::new(&tracked.err().map(|_| track.path().to_string()).unwrap_or_default(), &error)
        })
    }
}
