//! Reads the manifest from the descriptor of a note: the bytes of MANIFEST.md.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::manifest::{BuiltWith, Component, FactSource, Opens, RecordedCudart};
use cudaguard::internal::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, REVISION, Requirement};
use cudaguard::internal::note::layout::{
    LIBRARY_DLOPENED, LIBRARY_LINKED, LIBRARY_PATCH, LIBRARY_REQUIRED, LIBRARY_STATIC, NO_PTX, ROW_DRIVER, ROW_GPU,
    ROW_LIBRARY, ROW_PART, ROW_SIZE, driver_row, gpu_row, head, library_row, part_row,
};
use cudaguard::internal::note::{LONGEST_TEXT, MAGIC, NO_END, served_flag};
use cudaguard::internal::policy::GpuNeed;
use cudaguard::internal::policy::Runtime;
use cudaguard::internal::version::CudaVersion;
use cudaguard::internal::version::{DriverRelease, ParseVersionError, Version};

/// A decoded descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The note's revision.
    pub revision: u16,
    /// The manifest: the fixed fields and rows, and the facts that only the JSON text contains.
    pub manifest: Manifest,
    /// Kinds of rows that this reader does not know.
    pub unknown_rows: Vec<u16>,
    /// The JSON text.
    pub json: String,
}

/// The damage of a descriptor, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamagedNote {
    /// It has another magic number.
    Magic,
    /// Its revision is 0.
    Revision,
    /// It ends before these bytes.
    CutOff {
        /// The offset of the bytes.
        at: usize,
        /// Their number.
        length: usize,
    },
    /// A text is not within the descriptor, or is not UTF-8.
    Text {
        /// The field.
        what: String,
        /// The offset of the text.
        start: usize,
        /// Its length in bytes.
        length: usize,
    },
    /// A text is longer than the format allows.
    LongText {
        /// The field.
        what: String,
        /// Its length in bytes.
        length: usize,
    },
    /// A field has a value without a meaning.
    Choice {
        /// The field.
        what: &'static str,
        /// Its offset.
        at: usize,
        /// The value.
        number: u8,
    },
    /// The rows are smaller than the format requires.
    RowSize(usize),
    /// A row for GPUs contains no compute capability.
    ComputeCapability {
        /// The offset of the row.
        row: usize,
    },
    /// The JSON text cannot be parsed.
    Json(String),
    /// The version of the toolkit cannot be parsed.
    Toolkit(ParseVersionError),
}

impl fmt::Display for DamagedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAMAGED: &str = "the manifest is damaged";
        match self {
            Self::Magic => f.write_str("it does not begin with `cudagrd`"),
            Self::Revision => write!(f, "{DAMAGED}: its revision (at byte 8) is 0"),
            Self::CutOff { at, length } => write!(f, "{DAMAGED}: {length} bytes at {at} are after its end"),
            Self::Text { what, start, length } => {
                write!(f, "{DAMAGED}: {what} ({length} bytes at {start}) is not a text within it")
            }
            Self::LongText { what, length } => {
                write!(f, "{DAMAGED}: {what} has {length} bytes, but the maximum is {LONGEST_TEXT}")
            }
            Self::Choice { what, at, number } => write!(f, "{DAMAGED}: {what} (at byte {at}) is {number}"),
            Self::RowSize(size) => {
                write!(f, "{DAMAGED}: its rows (at byte 14) have {size} bytes, but need at least {ROW_SIZE}")
            }
            Self::ComputeCapability { row } => {
                write!(f, "{DAMAGED}: the row at byte {row} has no compute capability")
            }
            Self::Json(error) => write!(f, "the manifest's JSON text is damaged: {error}"),
            Self::Toolkit(error) => write!(f, "the manifest's toolkit version is damaged: {error}"),
        }
    }
}

impl std::error::Error for DamagedNote {}

/// Decodes a descriptor.
///
/// # Errors
/// The damage and its position.
pub fn decode(bytes: &[u8]) -> Result<Note, DamagedNote> {
    let note = Bytes(bytes);
    if bytes.get(..8) != Some(MAGIC) {
        return Err(DamagedNote::Magic);
    }
    let revision = note.read_u16(head::REVISION)?;
    if revision == 0 {
        return Err(DamagedNote::Revision);
    }
    let json = note.unlimited_text(head::JSON_AT, "the JSON text")?;
    let facts: Value = serde_json::from_str(json).map_err(|error| DamagedNote::Json(error.to_string()))?;
    let (requires, unknown_rows) = decode_rows(note)?;
    let mut manifest = from_json(&facts);
    manifest.requires = requires;
    // Only the fields before byte 20 have the same offset in later revisions.
    if u32::from(revision) == REVISION {
        manifest.runtime = Runtime {
            mismatch_warns: note.read_choice(head::MISMATCH, "[runtime] mismatch", &[true, false])?,
            gpu: note.read_choice(
                head::GPU,
                "[runtime] gpu",
                &[GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional],
            )?,
            library_enforces: note.read_choice(head::LIBRARY, "[runtime] library", &[false, true])?,
        };
        manifest.sealed = note.read_choice(head::SEALED, "whether it is sealed", &[false, true])?;
        manifest.partial_refuse = note.read_choice(head::PARTIAL, "[gpu] partial", &[false, true])?;
        manifest.component = Component {
            name: note.read_text(head::NAME, "the component's name")?.to_owned(),
            version: note.read_text(head::VERSION, "the component's version")?.to_owned(),
        };
        note.read_text(head::CUDAGUARD, "cudaguard's version")?.clone_into(&mut manifest.cudaguard);
        manifest.toolkit = match note.read_text(head::TOOLKIT, "the toolkit's version")? {
            "" => None,
            text => Some(text.parse().map_err(DamagedNote::Toolkit)?),
        };
    }
    Ok(Note { revision, manifest, unknown_rows, json: json.to_owned() })
}

/// A descriptor with bounds-checked reads.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn read_array<const N: usize>(self, at: usize) -> Result<[u8; N], DamagedNote> {
        let bytes = at.checked_add(N).and_then(|end| self.0.get(at..end));
        bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(DamagedNote::CutOff { at, length: N })
    }

    fn read_u16(self, at: usize) -> Result<u16, DamagedNote> {
        self.read_array(at).map(u16::from_le_bytes)
    }

    fn read_u32(self, at: usize) -> Result<u32, DamagedNote> {
        self.read_array(at).map(u32::from_le_bytes)
    }

    fn read_text(self, at: usize, what: &str) -> Result<&'a str, DamagedNote> {
        let text = self.unlimited_text(at, what)?;
        if text.len() > LONGEST_TEXT {
            return Err(DamagedNote::LongText { what: what.to_owned(), length: text.len() });
        }
        Ok(text)
    }

    /// Reads the text at an offset in a row.
    fn read_row_text(self, row: usize, offset: usize, what: &str) -> Result<String, DamagedNote> {
        self.read_text(row + offset, &format!("{what} of the row at byte {row}")).map(str::to_owned)
    }

    fn unlimited_text(self, at: usize, what: &str) -> Result<&'a str, DamagedNote> {
        let (start, length) = (usize::from(self.read_u16(at)?), usize::from(self.read_u16(at + 2)?));
        let bytes = self.0.get(start..start + length);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        text.ok_or_else(|| DamagedNote::Text { what: what.to_owned(), start, length })
    }

    fn read_choice<T: Copy>(self, at: usize, what: &'static str, choices: &[T]) -> Result<T, DamagedNote> {
        let [number] = self.read_array(at)?;
        choices.get(usize::from(number)).copied().ok_or(DamagedNote::Choice { what, at, number })
    }
}

fn decode_rows(note: Bytes<'_>) -> Result<(Vec<Requirement>, Vec<u16>), DamagedNote> {
    let (count, start, size) = (
        note.read_u16(head::ROWS)?,
        usize::from(note.read_u16(head::ROWS_AT)?),
        usize::from(note.read_u16(head::ROW_SIZE)?),
    );
    if count > 0 && size < ROW_SIZE {
        return Err(DamagedNote::RowSize(size));
    }
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for index in 0..usize::from(count) {
        let at = start + size * index;
        let kind = note.read_u16(at)?;
        match decode_row(note, at, kind)? {
            // A static cudart of an unknown release, which the JSON text contains.
            Some(Requirement::Driver { cuda: CudaVersion { major: 0, minor: 0 }, because, .. })
                if because.is_empty() => {}
            Some(row) => known.push(row),
            None => unknown.push(kind),
        }
    }
    unknown.sort_unstable();
    unknown.dedup();
    Ok((known, unknown))
}

fn decode_cc(packed: u32, row: usize) -> Result<(u8, u8), DamagedNote> {
    match packed.to_le_bytes() {
        [minor, major, 0, 0] => Ok((major, minor)),
        _ => Err(DamagedNote::ComputeCapability { row }),
    }
}

fn decode_row(note: Bytes<'_>, at: usize, kind: u16) -> Result<Option<Requirement>, DamagedNote> {
    let _whole: [u8; ROW_SIZE] = note.read_array(at)?;
    // The flags have the same offset in all kinds of rows with flags.
    let flags = note.read_u16(at + library_row::FLAGS)?;
    Ok(match kind {
        ROW_LIBRARY => Some(Requirement::Library {
            min: Version::from_packed(note.read_u32(at + library_row::MIN)?),
            below: Version::from_packed(note.read_u32(at + library_row::BELOW)?),
            built: Version::from_packed(note.read_u32(at + library_row::BUILT)?),
            soname: note.read_row_text(at, library_row::SONAME, "the soname")?,
            linkage: match flags & (LIBRARY_LINKED | LIBRARY_DLOPENED | LIBRARY_STATIC) {
                LIBRARY_LINKED => Linkage::Linked,
                LIBRARY_DLOPENED => Linkage::Dlopened,
                LIBRARY_STATIC => Linkage::Static,
                _ => Linkage::Unknown,
            },
            patch_refuse: flags & LIBRARY_PATCH != 0,
            required: flags & LIBRARY_REQUIRED != 0,
        }),
        ROW_PART => Some(Requirement::Part {
            file: note.read_row_text(at, part_row::FILE, "the file")?,
            symbol: note.read_row_text(at, part_row::SYMBOL, "the symbol")?,
            needed: flags & 1 != 0,
        }),
        ROW_DRIVER => Some(Requirement::Driver {
            cuda: CudaVersion::from_int(note.read_u32(at + driver_row::CUDA)?),
            release: DriverRelease::from_packed(note.read_u32(at + driver_row::RELEASE)?),
            because: note.read_row_text(at, driver_row::BECAUSE, "the reason")?,
        }),
        ROW_GPU => {
            let all = [
                GpuCoverage::AtLeastPartialPtx,
                GpuCoverage::AtLeastPartial,
                GpuCoverage::AtMostPartial,
                GpuCoverage::PartialPtx,
                GpuCoverage::Cubin,
                GpuCoverage::Ptx,
                GpuCoverage::Partial,
                GpuCoverage::Nothing,
                GpuCoverage::Unknown,
            ];
            let by = all.into_iter().find(|by| flags & served_flag(*by) == served_flag(*by));
            let from = decode_cc(note.read_u32(at + gpu_row::LOWEST)?, at)?;
            let to = note.read_u32(at + gpu_row::HIGHEST)?;
            let to = if to == NO_END { None } else { Some(decode_cc(to, at)?) };
            let code = note.read_row_text(at, gpu_row::CODE, "the code")?;
            let (cuda, release) = (note.read_u32(at + gpu_row::CUDA)?, note.read_u32(at + gpu_row::RELEASE)?);
            let (sure, sure_release) =
                (note.read_u32(at + gpu_row::SURE_CUDA)?, note.read_u32(at + gpu_row::SURE_RELEASE)?);
            by.map(|by| Requirement::Gpu {
                from,
                to,
                by,
                code,
                cuda: (cuda != 0).then(|| CudaVersion::from_int(cuda)),
                release: (release != 0).then(|| DriverRelease::from_packed(release)),
                guaranteed_from: (sure != 0)
                    .then(|| (CudaVersion::from_int(sure), DriverRelease::from_packed(sure_release))),
                ptx_fallback: match flags.to_le_bytes()[1] {
                    _ if flags & NO_PTX != 0 => PtxFallback::Nothing,
                    0 => PtxFallback::Undetermined,
                    isa => PtxFallback::Isa((isa >> 4, isa & 15)),
                },
            })
        }
        _ => None,
    })
}

/// Reads the facts in the JSON text. Facts that are missing, or have values that this reader does not know, stay
/// empty.
fn from_json(facts: &Value) -> Manifest {
    let policy = &facts["policy"];
    let component = &facts["component"];
    Manifest {
        component: Component { name: decode_text(&component["name"]), version: decode_text(&component["version"]) },
        cudaguard: decode_text(&facts["cudaguard"]),
        target: decode_text(&facts["target"]),
        profile: decode_text(&facts["profile"]),
        toolkit: decode_version(&facts["toolkit"]["version"]),
        toolkit_known: facts["toolkit"]["known"].as_str().and_then(FactSource::from_name),
        other_toolkits: facts["toolkit"]["besides"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|release| decode_version(release).map(CudaVersion::from))
            .collect(),
        library: decode_version(&facts[CUDNN.key]["version"]).map(|version| BuiltWith {
            version,
            linkage: facts[CUDNN.key]["linkage"].as_str().map(Linkage::from_name).unwrap_or_default(),
        }),
        library_known: facts[CUDNN.key]["known"].as_str().and_then(FactSource::from_name),
        library_linked: facts[CUDNN.key]["library"].as_str().and_then(|text| text.parse().ok()),
        cudart: facts["cudart"]["linkage"].as_str().map(|linkage| RecordedCudart {
            linkage: Linkage::from_name(linkage),
            version: decode_version(&facts["cudart"]["version"]).map(CudaVersion::from),
        }),
        declared: decode_targets(&facts["archs"]["declared"]).unwrap_or_default(),
        observed: decode_targets(&facts["archs"]["observed"]),
        host_compiler: facts["host_compiler"].as_str().map(str::to_owned),
        runtime: Runtime {
            mismatch_warns: policy["mismatch"] == "warn",
            gpu: match policy["gpu"].as_str() {
                Some("required") => GpuNeed::Required,
                Some("optional") => GpuNeed::Optional,
                _ => GpuNeed::Auto,
            },
            library_enforces: policy["library"] == "enforce",
        },
        partial_refuse: policy["partial"] == "refuse",
        allow: facts["allow"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(code, reason)| Some((code.parse().ok()?, reason.as_str()?.to_owned())))
            .collect(),
        opens: facts["dlopen"].as_array().into_iter().flatten().map(decode_dlopened).collect(),
        sealed: facts["sealed"] == true,
        requires: Vec::new(),
    }
}

fn decode_dlopened(value: &Value) -> Opens {
    let [libraries, endings] = ["libraries", "endings"].map(|key| {
        let texts = value[key].as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    });
    Opens { by: decode_text(&value["by"]), libraries, endings }
}

fn decode_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn decode_targets(list: &Value) -> Option<Vec<Target>> {
    Some(list.as_array()?.iter().filter_map(|name| parse_target(name.as_str()?)).collect())
}

fn decode_version(value: &Value) -> Option<Version> {
    value.as_str().and_then(|text| Version::from_str(text).ok())
}

/// Parses a target as the writer formats it: `sm_90a`, `compute_90`.
fn parse_target(name: &str) -> Option<Target> {
    let (kind, text) = name.split_once('_')?;
    let (digits, suffix) = match text.as_bytes().last()? {
        b'a' => (&text[..text.len() - 1], Suffix::Specific),
        b'f' => (&text[..text.len() - 1], Suffix::Family),
        _ => (text, Suffix::None),
    };
    let arch = Arch { number: digits.parse().ok()?, suffix };
    match kind {
        "sm" => Some(Target::Cubin(arch)),
        "compute" => Some(Target::Ptx(arch)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
