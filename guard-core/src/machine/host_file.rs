//! The host file: what `probe` writes, and what people write by hand for machines that they know.
//!
//! A key that nobody knows is passed over; so is what a newer revision adds. A known key with another kind of value is a
//! mistake, named with its key and with what was expected: a typing error must not become a fact that nobody knows.

use std::borrow::Cow;

use super::json_reader::{JsonReader, ParseError, Text, Use};
use super::{CompatPackage, Driver, Gpu, HostLibrary, HostLibraryPart, Machine, MachineKind};
use crate::host::LoaderVersion;
use crate::vendor;
use crate::version::{CudaVersion, DriverRelease, Version};

const A_RELEASE: &str = "a driver's release in quotes such as \"535.261.03\"";
const A_CUDA: &str = "a CUDA version in quotes such as \"12.2\"";
const A_VERSION: &str = "a version in quotes such as \"9.15.1\"";
const A_LOADER: &str = "a version in quotes such as \"9.15\" or \"9.15.1\"";
const A_CC: &str = "a compute capability in quotes such as \"8.6\"";
const A_TEXT: &str = "a text in quotes";

/// A driver's release as people and packages write it: `535.261.03`, `580.65.06-1`, `R535`, `v550.54.15`. With the branch
/// alone the rest is 0.
pub fn parse_release(text: &str) -> Option<DriverRelease> {
    let text = text.trim().trim_start_matches(['R', 'r', 'V', 'v']);
    let number = text.split(['-', '+', '~', ' ']).next().unwrap_or_default();
    if !number.is_empty() && number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(DriverRelease::new(number.parse().ok()?, 0, 0)).filter(|branch| branch.is_one());
    }
    number.parse().ok().filter(|release: &DriverRelease| release.is_one())
}

/// A compute capability: `8.6`.
pub(super) fn parse_cc(text: &str) -> Option<(u8, u8)> {
    let (major, minor) = text.split_once('.')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(major)?, number(minor)?))
}

impl Machine {
    /// Reads a host file's text. Beside the machine: the revision that it says it is of, 0 where it does not say.
    pub fn read(text: &str) -> Result<(Self, u32), ParseError> {
        let (machine, revision, _) = Self::json(text, true)?;
        Ok((machine, revision))
    }

    /// The same without what no judge looks at, so that machines of one kind are equal; with its label. Beside it the texts of
    /// which it was made, where a line with other texts in their places can be told by them.
    pub(super) fn read_for_judging(text: &str) -> Result<(Self, Option<Vec<Text>>), ParseError> {
        let (mut machine, _, mut texts) = Self::json(text, false)?;
        let by_uuid = |(name, value): &(String, String)| name == "CUDA_VISIBLE_DEVICES" && value.contains("GPU-");
        if machine.variables.iter().any(by_uuid) {
            let (whole, ..) = Self::json(text, true)?;
            texts = None;
            for (gpu, named) in machine.gpus.iter_mut().flatten().zip(whole.gpus.into_iter().flatten()) {
                gpu.uuid = named.uuid;
            }
        }
        Ok((machine, texts))
    }

    fn json(text: &str, whole: bool) -> Result<(Self, u32, Option<Vec<Text>>), ParseError> {
        let mut machine = Self::default();
        let mut revision = 0;
        let mut json = JsonReader::new(text);
        json.object("a host file: an object, `{ … }`, as `cargo cudaguard probe --json` writes it", |key, json| {
            if json.null() {
                return Ok(());
            }
            match key {
                "revision" => revision = json.whole("a whole number")?,
                "name" => {
                    machine.name = Some(json.text(A_TEXT)?.into_owned());
                    json.was(Use::Name);
                }
                "platform" => machine.platform = Some(json.text(A_TEXT)?.into_owned()),
                // One that nobody knows yet is no mistake: its driver is judged as any other.
                "kind" => machine.kind = MachineKind::from_name(&json.text(A_TEXT)?),
                "driver" => machine.driver = Some(driver(json, whole)?),
                "gpus" => machine.gpus = Some(list("an array of GPUs", json, |json| gpu(json, whole))?),
                "variables" => machine.variables = texts("variables: an object of texts", json)?,
                "sources" if whole => machine.sources = texts("sources: an object of texts", json)?,
                "doubts" if whole => {
                    machine.doubts = list("an array of texts", json, |json| Ok(json.text(A_TEXT)?.into_owned()))?;
                }
                _ => match vendor::library_for_key(key) {
                    Some(of) => {
                        let files = list("an array of libraries", json, |json| library(json, whole))?;
                        machine.libraries.insert(of.key, files);
                    }
                    None => json.skip()?,
                },
            }
            Ok(())
        })?;
        json.end()?;
        Ok((machine, revision, json.texts()))
    }
}

fn list<T>(
    expected: &str,
    json: &mut JsonReader<'_>,
    mut item: impl FnMut(&mut JsonReader<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut items = Vec::new();
    json.array(expected, |json| {
        items.push(item(json)?);
        Ok(())
    })?;
    Ok(items)
}

fn texts(expected: &str, json: &mut JsonReader<'_>) -> Result<Vec<(String, String)>, ParseError> {
    let mut members: Vec<(String, String)> = Vec::new();
    json.object(expected, |key, json| {
        members.push((key.to_owned(), json.text(A_TEXT)?.into_owned()));
        Ok(())
    })?;
    Ok(members)
}

/// A text that is read only to be shown again.
fn aside(json: &mut JsonReader<'_>, whole: bool) -> Result<Option<String>, ParseError> {
    let text = json.text(A_TEXT)?;
    json.was(Use::Passed);
    Ok(whole.then(|| text.into_owned()))
}

/// A text that must mean something.
fn meaning<T>(
    json: &mut JsonReader<'_>,
    expected: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ParseError> {
    let text = json.text(expected)?;
    // Its opening quote is what an editor is led to.
    let at = json.at().saturating_sub(text.len() + 2);
    read(&text).map(Some).ok_or_else(|| JsonReader::wrong(at, expected, &text))
}

fn version<T: std::str::FromStr>(json: &mut JsonReader<'_>, expected: &str) -> Result<Option<T>, ParseError> {
    meaning(json, expected, |text| text.parse().ok())
}

fn driver(json: &mut JsonReader<'_>, whole: bool) -> Result<Driver, ParseError> {
    let mut driver = Driver::default();
    json.object("a driver: an object, `{ … }`", |key, json| {
        if json.null() {
            return Ok(());
        }
        match key {
            "present" => driver.absent = !json.truth()?,
            "user" => driver.user = meaning(json, A_RELEASE, parse_release)?,
            "kernel" => driver.kernel = meaning(json, A_RELEASE, parse_release)?,
            "cuda" => driver.cuda = version::<CudaVersion>(json, A_CUDA)?,
            "init" => driver.init = Some(json.whole("the number that cuInit answered")?),
            "library" => driver.library = aside(json, whole)?,
            "ptx_compiler" => driver.ptx_compiler = Some(json.truth()?),
            "ordinary" => driver.ordinary = json.truth()?,
            "compat" => driver.compat = Some(compat(json)?),
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(driver)
}

fn compat(json: &mut JsonReader<'_>) -> Result<CompatPackage, ParseError> {
    let mut compat = CompatPackage::default();
    json.object("an object, `{ … }`", |key, json| {
        match key {
            "cuda" => compat.cuda = version::<CudaVersion>(json, A_CUDA)?,
            "branches" => compat.branches = list("an array of branches", json, |json| json.whole("a driver's branch"))?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(compat)
}

fn gpu(json: &mut JsonReader<'_>, whole: bool) -> Result<Gpu, ParseError> {
    let mut gpu = Gpu::default();
    let mut name = None;
    json.object("a GPU: an object, `{ … }`", |key, json| {
        if json.null() {
            return Ok(());
        }
        match key {
            "name" => name = Some(json.text(A_TEXT)?),
            "cc" => gpu.cc = meaning(json, A_CC, parse_cc)?,
            // Nobody but its driver knows these.
            "uuid" => (gpu.uuid, gpu.listed) = (aside(json, whole)?, true),
            "pci" => (gpu.pci, gpu.listed) = (aside(json, whole)?, true),
            "visible" => gpu.visible = Some(json.truth()?),
            _ => json.skip()?,
        }
        Ok(())
    })?;
    gpu.name = name.map(Cow::into_owned);
    Ok(gpu)
}

fn library(json: &mut JsonReader<'_>, whole: bool) -> Result<HostLibrary, ParseError> {
    let mut library = HostLibrary { taken: true, ..HostLibrary::default() };
    json.object("a library: an object, `{ … }`", |key, json| {
        if json.null() {
            return Ok(());
        }
        match key {
            "soname" => library.soname = Some(json.text(A_TEXT)?.into_owned()),
            "version" => library.version = version::<Version>(json, A_VERSION)?,
            "loader" => library.loader = meaning(json, A_LOADER, loader)?.unwrap_or_default(),
            "cuda" => library.cuda = version::<CudaVersion>(json, A_CUDA)?,
            "path" => library.path = Some(json.text(A_TEXT)?.into_owned()),
            "by" => library.by = aside(json, whole)?,
            "taken" => library.taken = json.truth()?,
            "parts" => library.parts = Some(list("an array of libraries", json, part)?),
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(library)
}

/// Two numbers are what code tells, three what a name does.
fn loader(text: &str) -> Option<LoaderVersion> {
    let version: Version = text.parse().ok()?;
    let whole = text.matches('.').count() > 1;
    Some(if whole { LoaderVersion::Version(version) } else { LoaderVersion::Minor(version.major, version.minor) })
}

fn part(json: &mut JsonReader<'_>) -> Result<HostLibraryPart, ParseError> {
    let mut part = HostLibraryPart::default();
    json.object("a library: an object, `{ … }`", |key, json| {
        match key {
            "file" => part.file = json.text(A_TEXT)?.into_owned(),
            "version" if json.null() => {}
            "version" => part.version = version::<Version>(json, A_VERSION)?,
            _ => json.skip()?,
        }
        Ok(())
    })?;
    Ok(part)
}
