//! The host file: what `probe` writes, and what people write by hand for machines that they know.
//!
//! A key that nobody knows is passed over; so is what a newer revision adds. A known key with another kind of value is a
//! mistake, named with its key and with what was expected: a typing error must not become a fact that nobody knows.

use std::borrow::Cow;

use super::pull::{Mistake, Pull};
use super::{Compat, Driver, Gpu, Kind, Library, Machine, Part};
use crate::version::{CudaVersion, DriverRelease, Version};

const A_RELEASE: &str = "a driver's release in quotes such as \"535.261.03\"";
const A_CUDA: &str = "a CUDA version in quotes such as \"12.2\"";
const A_VERSION: &str = "a version in quotes such as \"9.15.1\"";
const A_CC: &str = "a compute capability in quotes such as \"8.6\"";
const A_TEXT: &str = "a text in quotes";

/// A driver's release as people and packages write it: `535.261.03`, `580.65.06-1`, `R535`, `v550.54.15`. With the branch
/// alone the rest is 0.
pub fn release(text: &str) -> Option<DriverRelease> {
    let text = text.trim().trim_start_matches(['R', 'r', 'V', 'v']);
    let number = text.split(['-', '+', '~', ' ']).next().unwrap_or_default();
    if !number.is_empty() && number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(DriverRelease::new(number.parse().ok()?, 0, 0));
    }
    number.parse().ok()
}

/// A compute capability: `8.6`.
pub(super) fn cc(text: &str) -> Option<(u8, u8)> {
    let (major, minor) = text.split_once('.')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number(major)?, number(minor)?))
}

impl Machine {
    /// Reads a host file's text. Beside the machine: the revision that it says it is of, 0 where it does not say.
    pub fn read(text: &str) -> Result<(Self, u32), Mistake> {
        Self::pull(text, true)
    }

    /// The same without what no judge looks at, so that machines of one kind are equal; with its label.
    pub(super) fn read_for_judging(text: &str) -> Result<Self, Mistake> {
        Self::pull(text, false).map(|(machine, _)| machine)
    }

    fn pull(text: &str, whole: bool) -> Result<(Self, u32), Mistake> {
        let mut machine = Self::default();
        let mut revision = 0;
        let mut pull = Pull::new(text);
        pull.object("a host file: an object, `{ … }`", |key, pull| {
            if pull.null() {
                return Ok(());
            }
            match key {
                "revision" => revision = pull.whole("a whole number")?,
                "name" => machine.name = Some(pull.text(A_TEXT)?.into_owned()),
                "platform" => machine.platform = Some(pull.text(A_TEXT)?.into_owned()),
                // One that nobody knows yet is no mistake: its driver is judged as any other.
                "kind" => machine.kind = Kind::by_name(&pull.text(A_TEXT)?),
                "driver" => machine.driver = Some(driver(pull, whole)?),
                "gpus" => machine.gpus = Some(list("an array of GPUs", pull, |pull| gpu(pull, whole))?),
                "cudnn" => machine.cudnn = Some(list("an array of libraries", pull, |pull| library(pull, whole))?),
                "cudart" => machine.cudart = Some(list("an array of libraries", pull, |pull| library(pull, whole))?),
                "variables" => machine.variables = texts("variables: an object of texts", pull)?,
                "sources" if whole => machine.sources = texts("sources: an object of texts", pull)?,
                "doubts" if whole => {
                    machine.doubts = list("an array of texts", pull, |pull| Ok(pull.text(A_TEXT)?.into_owned()))?;
                }
                _ => pull.skip()?,
            }
            Ok(())
        })?;
        pull.end()?;
        Ok((machine, revision))
    }
}

fn list<T>(
    expected: &str,
    pull: &mut Pull<'_>,
    mut item: impl FnMut(&mut Pull<'_>) -> Result<T, Mistake>,
) -> Result<Vec<T>, Mistake> {
    let mut items = Vec::new();
    pull.array(expected, |pull| {
        items.push(item(pull)?);
        Ok(())
    })?;
    Ok(items)
}

fn texts(expected: &str, pull: &mut Pull<'_>) -> Result<Vec<(String, String)>, Mistake> {
    let mut members: Vec<(String, String)> = Vec::new();
    pull.object(expected, |key, pull| {
        members.push((key.to_owned(), pull.text(A_TEXT)?.into_owned()));
        Ok(())
    })?;
    Ok(members)
}

/// A text that is read only to be shown again.
fn aside(pull: &mut Pull<'_>, whole: bool) -> Result<Option<String>, Mistake> {
    let text = pull.text(A_TEXT)?;
    Ok(whole.then(|| text.into_owned()))
}

/// A text that must mean something.
fn meaning<T>(pull: &mut Pull<'_>, expected: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Mistake> {
    let text = pull.text(expected)?;
    // Its opening quote is what an editor is led to.
    let at = pull.at().saturating_sub(text.len() + 2);
    read(&text).map(Some).ok_or_else(|| Pull::wrong(at, expected, &text))
}

fn version<T: std::str::FromStr>(pull: &mut Pull<'_>, expected: &str) -> Result<Option<T>, Mistake> {
    meaning(pull, expected, |text| text.parse().ok())
}

fn driver(pull: &mut Pull<'_>, whole: bool) -> Result<Driver, Mistake> {
    let mut driver = Driver::default();
    pull.object("a driver: an object, `{ … }`", |key, pull| {
        if pull.null() {
            return Ok(());
        }
        match key {
            "present" => driver.absent = !pull.truth()?,
            "user" => driver.user = meaning(pull, A_RELEASE, release)?,
            "kernel" => driver.kernel = meaning(pull, A_RELEASE, release)?,
            "cuda" => driver.cuda = version::<CudaVersion>(pull, A_CUDA)?,
            "init" => driver.init = Some(pull.whole("the number that cuInit answered")?),
            "library" => driver.library = aside(pull, whole)?,
            "ptx_compiler" => driver.ptx_compiler = Some(pull.truth()?),
            "ordinary" => driver.ordinary = pull.truth()?,
            "compat" => driver.compat = Some(compat(pull)?),
            _ => pull.skip()?,
        }
        Ok(())
    })?;
    Ok(driver)
}

fn compat(pull: &mut Pull<'_>) -> Result<Compat, Mistake> {
    let mut compat = Compat::default();
    pull.object("an object, `{ … }`", |key, pull| {
        match key {
            "cuda" => compat.cuda = version::<CudaVersion>(pull, A_CUDA)?,
            "branches" => compat.branches = list("an array of branches", pull, |pull| pull.whole("a driver's branch"))?,
            _ => pull.skip()?,
        }
        Ok(())
    })?;
    Ok(compat)
}

fn gpu(pull: &mut Pull<'_>, whole: bool) -> Result<Gpu, Mistake> {
    let mut gpu = Gpu::default();
    let mut name = None;
    pull.object("a GPU: an object, `{ … }`", |key, pull| {
        if pull.null() {
            return Ok(());
        }
        match key {
            "name" => name = Some(pull.text(A_TEXT)?),
            "cc" => gpu.cc = meaning(pull, A_CC, cc)?,
            "uuid" => gpu.uuid = aside(pull, whole)?,
            "pci" => gpu.pci = aside(pull, whole)?,
            "visible" => gpu.visible = Some(pull.truth()?),
            _ => pull.skip()?,
        }
        Ok(())
    })?;
    gpu.name = name.map(Cow::into_owned);
    Ok(gpu)
}

fn library(pull: &mut Pull<'_>, whole: bool) -> Result<Library, Mistake> {
    let mut library = Library { taken: true, ..Library::default() };
    pull.object("a library: an object, `{ … }`", |key, pull| {
        if pull.null() {
            return Ok(());
        }
        match key {
            "soname" => library.soname = Some(pull.text(A_TEXT)?.into_owned()),
            "version" => library.version = version::<Version>(pull, A_VERSION)?,
            "path" => library.path = Some(pull.text(A_TEXT)?.into_owned()),
            "by" => library.by = aside(pull, whole)?,
            "taken" => library.taken = pull.truth()?,
            "parts" => library.parts = Some(list("an array of libraries", pull, part)?),
            _ => pull.skip()?,
        }
        Ok(())
    })?;
    Ok(library)
}

fn part(pull: &mut Pull<'_>) -> Result<Part, Mistake> {
    let mut part = Part::default();
    pull.object("a library: an object, `{ … }`", |key, pull| {
        match key {
            "file" => part.file = pull.text(A_TEXT)?.into_owned(),
            "version" if pull.null() => {}
            "version" => part.version = version::<Version>(pull, A_VERSION)?,
            _ => pull.skip()?,
        }
        Ok(())
    })?;
    Ok(part)
}
