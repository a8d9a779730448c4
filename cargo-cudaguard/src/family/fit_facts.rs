//! The facts about a file that decide if it fits the other files of a set.

use super::driver_functions::{DriverFunctions, driver_functions};
use super::headers::nccl_headers;
use super::looked_up::{LookedUp, exported_functions, looked_up};
use super::version::{FileVersion, Release, cudart_inside};
use crate::binary::elf::{Elf, Symbol};
use crate::binary::file::{only_value, texts_starting_with};
use crate::binary::pe::Pe;
use crate::binary::symbols;
use crate::knowledge::vendor::{self, BUILTINS, CUBLAS, CUDART, CUDNN, Library, NCCL, NVJITLINK, NVRTC};
use cudaguard::internal::version::{CudaVersion, Version};
use object::elf::DT_NEEDED;
use std::collections::BTreeSet;

/// A file of a set that runs together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    /// The path in the artifact or on the machine.
    pub(crate) name: String,
    /// Its soname, or its file name; of a DLL, as on Linux.
    pub(super) soname: String,
    /// The library of the family that it is.
    pub(crate) release: Option<Release>,
    /// The libraries that it needs, as written.
    pub(super) needed: Vec<String>,
    /// The run-time compilers that it opens by name, as sonames.
    pub(super) opens: Vec<String>,
    /// The name in its file of the builtins that it opens, if it is NVRTC.
    pub(super) builtins: Option<String>,
    /// The CUDA version that this part of cuDNN was built with.
    pub(crate) cudnn_for: Option<CudaVersion>,
    /// The first release that has all of its functions, and the first one that has more, if it is cuBLAS.
    pub(super) cublas_range: (Option<Version>, Option<Version>),
    /// The release of NCCL's headers that it was compiled with, if it needs NCCL.
    pub(super) nccl_headers: Option<Version>,
    /// The functions that crates in it look up in libraries that they open.
    pub(super) looks_up: Vec<LookedUp>,
    /// The functions that crates in it look up in the driver.
    pub(super) driver_functions: Vec<DriverFunctions>,
    /// The functions that it exports, if crates may look them up.
    pub(super) exports: BTreeSet<String>,
}

impl Member {
    /// Reads a file. `None` if it is neither a library of the family, cudart nor cuDNN, and needs none of them.
    pub(crate) fn read(name: &str, data: &[u8]) -> Option<Self> {
        let mut member = if Pe::is_pe(data) {
            let image = Pe::parse(data).ok()?;
            let needed = image.imports().into_iter().map(|dll| dll.name.to_owned()).collect();
            Self { needed, ..Self::named(name, image.dll_name()) }
        } else {
            let elf = Elf::parse(data).ok()?;
            let mut member = Self::named(name, elf.soname());
            let needed = elf.dynamic_texts(DT_NEEDED).map(|name| String::from_utf8_lossy(name).into_owned());
            member.needed = needed.collect();
            if member.soname.starts_with(CUDNN.stem()) {
                member.cudnn_for = cudart_inside(&elf);
            }
            if vendor::released_library(&member.soname).is_some_and(|library| library.is(&CUBLAS)) {
                member.cublas_range = range_of_exports(&elf, &member.soname);
            }
            member.exports = exported_functions(&elf, &member.soname);
            let nccl = member.needed.iter().find_map(|name| NCCL.major(name));
            member.nccl_headers = nccl.and_then(|major| nccl_headers(&elf, major));
            member
        };
        member.release = Release::read(file_name(name), &member.soname, data);
        if member.release.is_some() {
            let starts = [&NVRTC, &NVJITLINK].map(|compiler| format!("{}.so.", compiler.stem()));
            let opened = starts.iter().flat_map(|start| texts_starting_with(data, start));
            member.opens = opened.filter(|name| *name != member.soname && vendor::major_of(name).is_some()).collect();
        }
        if member.is(&NVRTC) {
            member.builtins = name_of_builtins(data);
        }
        member.looks_up = looked_up(data);
        member.driver_functions = driver_functions(name, data);
        let is_library = member.release.is_some() || member.cudnn_for.is_some() || CUDART.is_named(&member.soname);
        let matters = is_library || !member.exports.is_empty() || !member.looks_up.is_empty();
        let matters = matters || !member.driver_functions.is_empty();
        (matters || member.needed.iter().any(|name| vendor::is_beside_driver(name))).then_some(member)
    }

    fn named(name: &str, soname: Option<&str>) -> Self {
        // Programs with an embedded list of exports state a soname too, so that of a library decides only if it is known.
        let known = soname.filter(|soname| vendor::is_beside_driver(soname));
        let soname = vendor::plain_name(known.unwrap_or_else(|| file_name(name))).into_owned();
        Self { name: name.to_owned(), soname, ..Self::default() }
    }

    /// Creates a library of the family from facts that are known without its file. `None` for other libraries.
    pub(crate) fn from_description(
        name: &str,
        soname: &str,
        version: Option<Version>,
        needed: &[String],
    ) -> Option<Self> {
        let version = version.map(|version| FileVersion::exact(version, "description"));
        let release = Release { of: vendor::released_library(soname)?, version };
        Some(Self { release: Some(release), needed: needed.to_vec(), ..Self::named(name, Some(soname)) })
    }

    /// Returns true if it has this soname.
    pub(crate) fn is_named(&self, soname: &str) -> bool {
        self.soname == *vendor::plain_name(soname)
    }

    /// Returns true if this is the library of a descriptor.
    pub(crate) fn is(&self, library: &Library) -> bool {
        self.release.as_ref().is_some_and(|release| release.of.is(library))
    }

    /// Returns the name of the builtins that it opens when it compiles, if it is NVRTC.
    pub(crate) fn builtins_name(&self) -> Option<String> {
        // The first release with builtins in a file of their own, as far as known.
        let version = self.version().filter(|version| self.is(&NVRTC) && *version >= Version::new(11, 0, 0))?;
        let Version { major, minor, .. } = version;
        Some(if let Some(builtins) = &self.builtins {
            builtins.clone()
        } else if self.name.ends_with(".dll") {
            format!("nvrtc-builtins64_{major}{minor}.dll")
        } else {
            format!("{}.so.{major}.{minor}", vendor::stem_of(&self.soname).replacen(NVRTC.stem(), BUILTINS.stem(), 1))
        })
    }

    /// Returns the version, with a patch of 0 if it is unknown.
    pub(super) fn version(&self) -> Option<Version> {
        self.release.as_ref()?.number()
    }

    /// Returns the version for messages: two numbers if the patch is unknown.
    pub(super) fn version_text(&self) -> Option<String> {
        self.release.as_ref()?.version_text()
    }

    /// Returns the directory in the name, with the separator.
    pub(super) fn dir(&self) -> &str {
        &self.name[..self.name.len() - file_name(&self.name).len()]
    }

    pub(super) fn is_nccl(&self) -> bool {
        NCCL.is_named(&self.soname)
    }
}

/// Returns the first release that has every function of this library, and the first later one that has more.
fn range_of_exports(elf: &Elf<'_>, soname: &str) -> (Option<Version>, Option<Version>) {
    let exports: std::collections::BTreeSet<&str> = elf
        .dynamic_symbols()
        .filter(Symbol::is_exported)
        .filter_map(|symbol| symbol.name())
        .filter(|name| name.starts_with("cublas"))
        .collect();
    let (mut from, mut before) = (None, None);
    for (name, releases) in symbols::library_functions(soname) {
        let Some(first) = releases.first else { continue };
        if exports.contains(name) {
            from = from.max(Some(first));
        } else if releases.last.is_none() {
            before = Some(before.map_or(first, |known: Version| known.min(first)));
        }
    }
    (from, before)
}

/// Returns the only name of builtins in an NVRTC. Wheel repair may have changed it. Messages with the name contain blanks.
fn name_of_builtins(data: &[u8]) -> Option<String> {
    let starts = BUILTINS.dll_starts().chain([BUILTINS.stem().to_owned()]);
    let mut names: Vec<String> = starts.flat_map(|start| texts_starting_with(data, &start)).collect();
    names.retain(|name| !name.contains(char::is_whitespace) && !name.ends_with('.'));
    only_value(names.into_iter())
}

pub(super) fn file_name(name: &str) -> &str {
    name.rsplit(['/', '!', '\\']).next().unwrap_or(name)
}
