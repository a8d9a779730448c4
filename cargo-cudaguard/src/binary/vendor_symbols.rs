//! The symbols that a file exchanges with NVIDIA's libraries, and those with versions. They are kept after the file is closed, so that the members
//! of an archive can be compared.

use std::collections::BTreeMap;

use crate::binary::elf::Elf;
use crate::knowledge::vendor::{self, is_beside_driver};

use crate::binary::elf::links::dynamic_links;
use crate::binary::file::Binary;
use crate::binary::pe::Pe;
use crate::binary::symbols;

/// Maximum number of symbols that are kept of one file.
const MOST: usize = 1 << 18;
/// Maximum number of symbols of a library of others whose symbols with versions are compared: those of TensorFlow would need 100 MB.
const MOST_WITH_VERSIONS: usize = 1 << 14;
/// Prefixes of the functions of NVIDIA's libraries.
const PREFIXES: [&[u8]; 6] = [b"cu", b"nv", b"npp", b"nccl", b"__nv", b"__cuda"];

/// A symbol that a file imports from a library of NVIDIA, or with a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VendorImport {
    pub(crate) name: String,
    /// The version, and the soname of the library that has to define it.
    pub(crate) version: Option<(String, String)>,
    /// The DLL that has to define it.
    pub(crate) dll: Option<String>,
    /// True if the symbol is resolved at the first call.
    pub(crate) lazy: bool,
}

impl VendorImport {
    /// Returns the library that is not of NVIDIA's and has to define the symbol.
    pub(crate) fn other_library(&self) -> Option<&str> {
        self.version.as_ref().map(|(_, of)| of.as_str()).filter(|of| !is_beside_driver(of))
    }
}

/// A version, and true if an import without a version finds it.
type ExportedVersion = (Option<Box<[u8]>>, bool);
/// For each name the versions that a file defines.
type Exports = BTreeMap<Box<[u8]>, Vec<ExportedVersion>>;

/// The symbols that a file imports and those that it defines.
#[derive(Clone, Debug, Default)]
pub(crate) struct VendorSymbols {
    pub(crate) imports: Vec<VendorImport>,
    /// The symbols that it defines.
    exports: Exports,
    pub(crate) has_versions: bool,
    /// True if all symbols that it defines are kept, not only those with names of NVIDIA's functions.
    has_all: bool,
    /// True if the file has more symbols than are kept, or they cannot be read: it may define every symbol.
    is_unknown: bool,
}

impl VendorSymbols {
    /// Reads the symbols of a program or library. Other files have none.
    pub(crate) fn from_binary(binary: &Binary) -> Self {
        if let Ok(image) = Pe::parse(binary.data()) {
            return Self::from_pe(&image);
        }
        let Ok(elf) = Elf::parse(binary.data()) else { return Self::default() };
        let Some(links) = dynamic_links(&elf) else { return Self::default() };
        let needed: Vec<&str> =
            binary.needed.iter().map(String::as_str).filter(|name| is_beside_driver(name)).collect();
        let mut imports = Vec::new();
        for wish in links.symbol_imports(false).into_iter().filter(|wish| !wish.weak) {
            let name = String::from_utf8_lossy(wish.name).into_owned();
            let version = wish.version.and_then(|version| {
                let of = String::from_utf8_lossy(version.of?).into_owned();
                Some((String::from_utf8_lossy(version.name).into_owned(), of))
            });
            let of_vendor = match &version {
                Some((_, of)) => is_compared(of),
                None => needed.iter().any(|soname| symbols::releases_with(soname, &name).is_some()),
            };
            if of_vendor {
                imports.push(VendorImport { name, version, dll: None, lazy: wish.lazy });
            }
        }
        // A file finds a symbol with a version in no other library.
        let own = binary.soname.as_deref().is_some_and(is_beside_driver)
            || links.exports().nth(MOST_WITH_VERSIONS).is_none()
                && links.exports().any(|(_, version, _)| version.is_some());
        let mut exports = Exports::new();
        let mut is_unknown = imports.len() > MOST;
        imports.truncate(MOST);
        for (name, version, is_default) in links.exports() {
            if !own && !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            if exports.len() == MOST {
                is_unknown = true;
                break;
            }
            exports.entry(name.into()).or_default().push((version.map(Box::from), is_default));
        }
        Self { imports, exports, has_versions: links.has_versions(), has_all: own, is_unknown }
    }

    fn from_pe(image: &Pe<'_>) -> Self {
        let imports = image.imports().into_iter().filter(|dll| is_beside_driver(dll.name)).flat_map(|dll| {
            dll.functions.into_iter().map(move |name| VendorImport {
                name: name.to_owned(),
                version: None,
                dll: Some(dll.name.to_owned()),
                lazy: dll.is_delayed,
            })
        });
        let is_own = image.dll_name().is_some_and(is_beside_driver);
        let names = image.exported_names().filter(|_| is_own).take(MOST);
        let exports: Exports = names.map(|name| (name.as_bytes().into(), vec![(None, true)])).collect();
        // The name in the file may differ from the name of the file.
        let is_unknown = exports.len() == MOST || !is_own;
        Self { imports: imports.take(MOST).collect(), exports, has_versions: false, has_all: is_own, is_unknown }
    }

    /// Returns true if the file lacks a symbol that an import requires of this file by its version.
    pub(crate) fn lacks(&self, import: &VendorImport) -> bool {
        self.has_all && !self.defines(import)
    }

    /// Returns true if the file defines the imported symbol, by the rules of glibc.
    pub(crate) fn defines(&self, import: &VendorImport) -> bool {
        if self.is_unknown {
            return true;
        }
        let Some(versions) = self.exports.get(import.name.as_bytes()) else { return false };
        versions.iter().any(|(version, is_default)| match (&import.version, version) {
            _ if !self.has_versions => true,
            (Some((wanted, _)), Some(version)) => **version == *wanted.as_bytes(),
            (Some(_), None) | (None, _) => *is_default,
        })
    }
}

/// Returns true for a library whose symbols with versions are compared: it is no part of the driver or of the C library.
fn is_compared(soname: &str) -> bool {
    const SYSTEM: [&str; 11] = [
        "libcuda",
        "libnvidia-ml",
        "libc",
        "libm",
        "libdl",
        "librt",
        "libpthread",
        "libutil",
        "libgcc_s",
        "libstdc++",
        "libgomp",
    ];
    let name = vendor::plain_name(soname);
    !name.starts_with("ld-") && !SYSTEM.contains(&vendor::stem_of(&name))
}
