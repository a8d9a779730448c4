//! Encodes the manifest as the bytes that MANIFEST.md describes, and decodes it.

pub(crate) mod layout;

use crate::json::Value;
use crate::manifest::{GpuCoverage, Linkage, Manifest, PtxFallback, REVISION, Requirement};
use crate::policy::GpuNeed;
use crate::tables;
use crate::vendor::CUDNN;
use crate::version::{CudaVersion, Version};

use layout::{
    ARCHS_DECLARED, ARCHS_OBSERVED, ARCHS_UNSEALED, BY_CUBIN, BY_NONE, BY_PTX, BY_SOME, BY_UNKNOWN, GPU_AUTO,
    GPU_OPTIONAL, GPU_REQUIRED, LIBRARY_DLOPENED, LIBRARY_LINKED, LIBRARY_PATCH, LIBRARY_REQUIRED, LIBRARY_STATIC,
    NO_PTX, ROW_DRIVER, ROW_GPU, ROW_LIBRARY, ROW_PART, ROW_SIZE, driver_row, gpu_row, head, library_row, part_row,
};

/// Size of a note's descriptor in bytes.
pub const SIZE: usize = 4096;

/// The note's owner, including the final NUL.
pub const OWNER: &[u8; 10] = b"cudaguard\0";

/// The note's type.
pub const TYPE: u32 = 1;

/// The name of the note's section.
pub const SECTION: &str = ".note.cudaguard";

const MAGIC: &[u8; 8] = b"cudagrd\0";
const NO_END: u32 = 0xffff;

/// Maximum length of a string in a note, in bytes: the shim has a buffer of this size for each, and treats a note with
/// a longer string as damaged. The JSON text has no such limit.
const LONGEST_TEXT: usize = 255;

/// Encodes the descriptor. If the JSON text does not fit with `requires`, that key is omitted, since the rows contain
/// the same data.
///
/// # Errors
/// Returns a message that names the entry to shorten.
pub fn encode(manifest: &Manifest) -> Result<Box<[u8; SIZE]>, String> {
    let mut json = manifest.to_json();
    let bytes = assemble_note(manifest, &json.to_string())?;
    if let Ok(whole) = <Box<[u8; SIZE]>>::try_from(pad_to_size(bytes)) {
        return Ok(whole);
    }
    if let Value::Object(members) = &mut json {
        members.retain(|(key, _)| key != "requires");
    }
    let bytes = assemble_note(manifest, &json.to_string())?;
    let needed = bytes.len();
    pad_to_size(bytes).try_into().map_err(|_| does_not_fit(manifest, needed))
}

fn pad_to_size(mut bytes: Vec<u8>) -> Box<[u8]> {
    if bytes.len() < SIZE {
        bytes.resize(SIZE, 0);
    }
    bytes.into()
}

/// Returns the message for a manifest that is too large. It names the largest entry, because shortening it helps most.
fn does_not_fit(manifest: &Manifest, needed: usize) -> String {
    let component = &manifest.component;
    let mut entries = vec![
        ("the package's name".to_owned(), component.name.len()),
        ("the package's version".to_owned(), component.version.len()),
        ("the profile's name".to_owned(), manifest.profile.len()),
        ("the target's name".to_owned(), manifest.target.len()),
        ("the list of declared archs".to_owned(), manifest.declared.len() * "\"compute_90\",".len()),
        (
            "the list of archs for which there are kernels".to_owned(),
            manifest.observed.as_ref().map_or(0, Vec::len) * "\"compute_90\",".len(),
        ),
        ("the requirements (fewer archs make fewer)".to_owned(), manifest.requires.len() * ROW_SIZE),
    ];
    entries.extend(manifest.allow.iter().map(|(code, reason)| (format!("the reason of [allow] {code}"), reason.len())));
    let (entry, size) = entries.into_iter().max_by_key(|(_, size)| *size).unwrap_or_default();
    format!(
        "the manifest of {component} needs {needed} bytes, and a note holds {SIZE}: shorten {entry}, which takes \
         {size} bytes"
    )
}

fn too_long(manifest: &Manifest, text: &str) -> String {
    let component = &manifest.component;
    let entry = match text {
        _ if text == component.name => "the package's name",
        _ if text == component.version => "the package's version",
        _ => "it",
    };
    let start: String = text.chars().take(40).collect();
    format!(
        "the manifest cannot hold `{start}...`, which takes {} bytes: shorten {entry} to {LONGEST_TEXT} bytes",
        text.len()
    )
}

/// Encodes the note without padding.
///
/// # Errors
/// Returns a message if a number or a string does not fit into its field.
fn assemble_note(manifest: &Manifest, json: &str) -> Result<Vec<u8>, String> {
    let rows_end = head::SIZE + ROW_SIZE * manifest.requires.len();
    let mut out = Writer { bytes: vec![0; rows_end], manifest };
    out.bytes[..8].copy_from_slice(MAGIC);
    out.write_u16(head::REVISION, REVISION as usize)?;
    out.write_u16(head::ROWS, manifest.requires.len())?;
    out.write_u16(head::ROWS_AT, head::SIZE)?;
    out.write_u16(head::ROW_SIZE, ROW_SIZE)?;
    out.bytes[head::MISMATCH] = u8::from(!manifest.runtime.mismatch_warns);
    out.bytes[head::GPU] = match manifest.runtime.gpu {
        GpuNeed::Auto => GPU_AUTO,
        GpuNeed::Required => GPU_REQUIRED,
        GpuNeed::Optional => GPU_OPTIONAL,
    };
    out.bytes[head::LIBRARY] = u8::from(manifest.runtime.library_enforces);
    out.bytes[head::ARCHS_KNOWN] = match manifest.archs_known() {
        "observed" => ARCHS_OBSERVED,
        "declared" => ARCHS_DECLARED,
        _ => ARCHS_UNSEALED,
    };
    out.bytes[head::SEALED] = u8::from(manifest.sealed);
    out.bytes[head::PARTIAL] = u8::from(manifest.partial_refuse);
    out.write_text(head::NAME, &manifest.component.name)?;
    out.write_text(head::VERSION, &manifest.component.version)?;
    out.write_text(head::CUDAGUARD, &manifest.cudaguard)?;
    out.write_text(head::TOOLKIT, &manifest.toolkit.map(|version| version.to_string()).unwrap_or_default())?;
    for (index, row) in manifest.requires.iter().enumerate() {
        out.write_row(head::SIZE + ROW_SIZE * index, row)?;
    }
    let start = out.bytes.len();
    out.bytes.extend_from_slice(json.as_bytes());
    out.write_u16(head::JSON_AT, start)?;
    out.write_u16(head::JSON_SIZE, json.len())?;
    Ok(out.bytes)
}

struct Writer<'a> {
    bytes: Vec<u8>,
    manifest: &'a Manifest,
}

impl Writer<'_> {
    fn write_u16(&mut self, at: usize, value: usize) -> Result<(), String> {
        let value = u16::try_from(value).map_err(|_| does_not_fit(self.manifest, self.bytes.len().max(value)))?;
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn write_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes a string. If the string table already contains it, the existing one is used.
    fn write_text(&mut self, at: usize, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        if text.len() > LONGEST_TEXT {
            return Err(too_long(self.manifest, text));
        }
        let texts = head::SIZE + ROW_SIZE * self.manifest.requires.len();
        let known = self.bytes[texts..].windows(text.len()).position(|window| window == text.as_bytes());
        let start = known.map_or(self.bytes.len(), |position| texts + position);
        if known.is_none() {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        self.write_u16(at, start)?;
        self.write_u16(at + 2, text.len())
    }

    fn write_packed(&mut self, at: usize, what: &str, packed: Option<u32>) -> Result<(), String> {
        let packed = packed.ok_or_else(|| {
            format!("the manifest of {} cannot hold {what}: a number in it is too large", self.manifest.component)
        })?;
        self.write_u32(at, packed);
        Ok(())
    }

    /// Writes the oldest drivers for a library with a cudart of one of the two newest majors.
    fn write_floors(&mut self, at: usize) -> Result<(), String> {
        let [older, newer] = tables::newest_cudart_floors();
        for (floor, cuda, release) in [
            (older, part_row::OLDER_CUDA, part_row::OLDER_RELEASE),
            (newer, part_row::NEWER_CUDA, part_row::NEWER_RELEASE),
        ] {
            self.write_u32(at + cuda, floor.cuda.to_int());
            if let Some(oldest) = floor.release {
                self.write_packed(at + release, &format!("driver {oldest}"), oldest.packed())?;
            }
        }
        Ok(())
    }

    fn write_row(&mut self, at: usize, row: &Requirement) -> Result<(), String> {
        match row {
            Requirement::Library { min, below, built, soname, linkage, patch_refuse, required } => {
                let mut flags = match linkage {
                    Linkage::Linked => LIBRARY_LINKED,
                    Linkage::Dlopened => LIBRARY_DLOPENED,
                    Linkage::Static => LIBRARY_STATIC,
                    Linkage::Unknown | Linkage::None => 0,
                };
                flags |= if *patch_refuse { LIBRARY_PATCH } else { 0 };
                flags |= if *required { LIBRARY_REQUIRED } else { 0 };
                let of = CUDNN.name;
                self.write_u16(at, ROW_LIBRARY.into())?;
                self.write_u16(at + library_row::FLAGS, flags.into())?;
                self.write_packed(at + library_row::MIN, &format!("{of} {min}"), min.packed())?;
                self.write_packed(at + library_row::BELOW, &format!("{of} {below}"), below.packed())?;
                self.write_packed(at + library_row::BUILT, &format!("{of} {built}"), built.packed())?;
                let packed_cc = |(major, minor): (u8, u8)| usize::from(major) << 8 | usize::from(minor);
                let floors: Vec<_> = CUDNN.release_table().gpu_floors(built.major).collect();
                if let [.., (from, cc)] = floors[..] {
                    self.write_packed(at + library_row::DROPS_GPUS_FROM, &format!("{of} {from}"), from.packed())?;
                    self.write_u16(at + library_row::OLDEST_GPU, packed_cc(cc))?;
                }
                if let [.., (_, cc), _] = floors[..] {
                    self.write_u16(at + library_row::OLDEST_GPU_BEFORE, packed_cc(cc))?;
                }
                if let Some(gpus) = CUDNN.release_table().newest_gpus(built.major) {
                    let all = [u32::from(gpus.newest), gpus.from_minor, u32::from(gpus.before), gpus.below_cuda];
                    let byte = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
                    self.write_u32(at + library_row::NEWEST_GPUS, u32::from_le_bytes(all.map(byte)));
                }
                self.write_text(at + library_row::SONAME, soname)?;
                self.write_text(at + library_row::LIBRARY, of)?;
                let names = self.manifest.library_names().filter(|_| *linkage != Linkage::Static).unwrap_or_default();
                self.write_text(at + library_row::NAMES, &truncate_list(&names, "\n", ""))
            }
            Requirement::Part { file, symbol, needed } => {
                self.write_u16(at, ROW_PART.into())?;
                self.write_u16(at + part_row::NEEDED, usize::from(*needed))?;
                self.write_text(at + part_row::FILE, file)?;
                if let Some(made_with) = CUDNN.made_with.filter(|_| *needed) {
                    self.write_floors(at)?;
                    self.write_text(at + part_row::MADE_WITH, made_with)?;
                }
                self.write_text(at + part_row::SYMBOL, symbol)
            }
            Requirement::Driver { cuda, release, because } => {
                self.write_u16(at, ROW_DRIVER.into())?;
                self.write_u32(at + driver_row::CUDA, cuda.to_int());
                self.write_packed(at + driver_row::RELEASE, &format!("driver {release}"), release.packed())?;
                self.write_text(at + driver_row::BECAUSE, &truncate_list(&words(because), " ", "..."))?;
                let Some((soname, built)) = self.manifest.shared_cudart() else { return Ok(()) };
                let packed = Version::new(built.major, built.minor, 0).packed();
                self.write_packed(at + driver_row::CUDART_BUILT, &format!("libcudart {built}"), packed)?;
                self.write_text(at + driver_row::CUDART, &soname)
            }
            Requirement::Gpu { from, to, by, code, cuda, release, sure_from, beside } => {
                let cc = |(major, minor): (u8, u8)| u32::from(major) << 8 | u32::from(minor);
                self.write_u16(at, ROW_GPU.into())?;
                self.write_u16(at + gpu_row::SERVED_BY, (served_flag(*by) | beside_flags(*beside)).into())?;
                self.write_u32(at + gpu_row::LOWEST, cc(*from));
                self.write_u32(at + gpu_row::HIGHEST, to.map_or(NO_END, cc));
                self.write_u32(at + gpu_row::ARCH, arch_number(code));
                self.write_u32(at + gpu_row::CUDA, cuda.map_or(0, CudaVersion::to_int));
                if let Some(release) = release {
                    self.write_packed(at + gpu_row::RELEASE, &format!("driver {release}"), release.packed())?;
                }
                if let Some((cuda, release)) = sure_from {
                    self.write_u32(at + gpu_row::SURE_CUDA, cuda.to_int());
                    self.write_packed(at + gpu_row::SURE_RELEASE, &format!("driver {release}"), release.packed())?;
                }
                self.write_text(at + gpu_row::CODE, code)?;
                let built_for = self.manifest.built_for();
                self.write_text(
                    at + gpu_row::BUILT_FOR,
                    &truncate_list(&built_for.split(", ").map(str::to_owned).collect::<Vec<_>>(), ", ", "..."),
                )
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Joins as many entries as fit into a string of the note, followed by `rest` if some are omitted.
fn truncate_list(list: &[String], separator: &str, rest: &str) -> String {
    let whole = list.join(separator);
    if whole.len() <= LONGEST_TEXT {
        return whole;
    }
    let ends = whole.match_indices(separator).map(|(at, _)| at);
    let end = ends.filter(|at| at + separator.len() + rest.len() <= LONGEST_TEXT).last().unwrap_or_default();
    if rest.is_empty() { whole[..end].to_owned() } else { format!("{}{separator}{rest}", &whole[..end]) }
}

const fn beside_flags(beside: PtxFallback) -> u16 {
    match beside {
        PtxFallback::Nothing => NO_PTX,
        PtxFallback::Isa((major, minor)) => u16::from_le_bytes([0, major << 4 | minor]),
        PtxFallback::Untold => 0,
    }
}

const fn served_flag(by: GpuCoverage) -> u16 {
    match by {
        GpuCoverage::Cubin => BY_CUBIN,
        GpuCoverage::Ptx => BY_PTX,
        GpuCoverage::Partial => BY_SOME,
        GpuCoverage::PartialPtx => BY_SOME | BY_PTX,
        GpuCoverage::Nothing => BY_NONE,
        GpuCoverage::Unknown => BY_UNKNOWN,
    }
}

/// Extracts 90 from `sm_90a`; 0 if there is no number.
fn arch_number(code: &str) -> u32 {
    let digits = code.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

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

/// Decodes a descriptor.
///
/// # Errors
/// Returns a message with the damage and its position.
#[cfg(feature = "command")]
pub fn decode(descriptor: &[u8]) -> Result<Note, String> {
    read::decode_note(descriptor)
}

#[cfg(feature = "command")]
mod read {
    use std::str::FromStr;

    use serde_json::Value;

    use super::layout::{
        LIBRARY_DLOPENED, LIBRARY_LINKED, LIBRARY_PATCH, LIBRARY_REQUIRED, LIBRARY_STATIC, NO_PTX, ROW_DRIVER, ROW_GPU,
        ROW_LIBRARY, ROW_PART, ROW_SIZE, driver_row, gpu_row, head, library_row, part_row,
    };
    use super::{
        CudaVersion, GpuCoverage, GpuNeed, LONGEST_TEXT, Linkage, MAGIC, Manifest, NO_END, Note, PtxFallback, REVISION,
        Requirement, served_flag,
    };
    use crate::arch::{Arch, Suffix, Target};
    use crate::manifest::{BuiltWith, Component, KnownBy, Opens, RecordedCudart};
    use crate::policy::Runtime;
    use crate::vendor::CUDNN;
    use crate::version::{DriverRelease, Version};

    pub(super) fn decode_note(bytes: &[u8]) -> Result<Note, String> {
        let note = Bytes(bytes);
        if bytes.get(..8) != Some(MAGIC) {
            return Err("it does not begin with `cudagrd`".to_owned());
        }
        let revision = note.read_u16(head::REVISION)?;
        if revision == 0 {
            return Err("the manifest is damaged: its revision (at byte 8) is 0".to_owned());
        }
        let json = note.unlimited_text(head::JSON_AT, "the JSON text")?;
        let facts: Value =
            serde_json::from_str(json).map_err(|error| format!("the manifest's JSON text is damaged: {error}"))?;
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
                text => {
                    Some(text.parse().map_err(|error| format!("the manifest's toolkit version is damaged: {error}"))?)
                }
            };
        }
        Ok(Note { revision, manifest, unknown_rows, json: json.to_owned() })
    }

    /// A descriptor with bounds-checked reads.
    #[derive(Clone, Copy)]
    struct Bytes<'a>(&'a [u8]);

    impl<'a> Bytes<'a> {
        fn read_array<const N: usize>(self, at: usize) -> Result<[u8; N], String> {
            let bytes = at.checked_add(N).and_then(|end| self.0.get(at..end));
            bytes
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(|| format!("the manifest is damaged: {N} bytes at {at} stand beyond its end"))
        }

        fn read_u16(self, at: usize) -> Result<u16, String> {
            self.read_array(at).map(u16::from_le_bytes)
        }

        fn read_u32(self, at: usize) -> Result<u32, String> {
            self.read_array(at).map(u32::from_le_bytes)
        }

        fn read_text(self, at: usize, what: &str) -> Result<&'a str, String> {
            let text = self.unlimited_text(at, what)?;
            if text.len() > LONGEST_TEXT {
                return Err(format!(
                    "the manifest is damaged: {what} has {} bytes, and {LONGEST_TEXT} is the most",
                    text.len()
                ));
            }
            Ok(text)
        }

        fn unlimited_text(self, at: usize, what: &str) -> Result<&'a str, String> {
            let (start, length) = (usize::from(self.read_u16(at)?), usize::from(self.read_u16(at + 2)?));
            let bytes = self.0.get(start..start + length);
            bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(|| {
                format!("the manifest is damaged: {what} ({length} bytes at {start}) is no text within it")
            })
        }

        fn read_choice<T: Copy>(self, at: usize, what: &str, choices: &[T]) -> Result<T, String> {
            let [number] = self.read_array(at)?;
            choices
                .get(usize::from(number))
                .copied()
                .ok_or_else(|| format!("the manifest is damaged: {what} (at byte {at}) is {number}"))
        }
    }

    fn decode_rows(note: Bytes<'_>) -> Result<(Vec<Requirement>, Vec<u16>), String> {
        let (count, start, size) = (
            note.read_u16(head::ROWS)?,
            usize::from(note.read_u16(head::ROWS_AT)?),
            usize::from(note.read_u16(head::ROW_SIZE)?),
        );
        if count > 0 && size < ROW_SIZE {
            return Err(format!(
                "the manifest is damaged: its rows (at byte 14) are {size} bytes, {ROW_SIZE} at least"
            ));
        }
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for index in 0..usize::from(count) {
            let at = start + size * index;
            let kind = note.read_u16(at)?;
            match decode_row(note, at, kind)? {
                Some(row) => known.push(row),
                None => unknown.push(kind),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        Ok((known, unknown))
    }

    fn decode_row(note: Bytes<'_>, at: usize, kind: u16) -> Result<Option<Requirement>, String> {
        let _whole: [u8; ROW_SIZE] = note.read_array(at)?;
        // The flags have the same offset in all kinds of rows with flags.
        let flags = note.read_u16(at + library_row::FLAGS)?;
        let text = |offset: usize, what: &str| {
            note.read_text(at + offset, &format!("{what} of the row at byte {at}")).map(str::to_owned)
        };
        let version = |offset: usize| note.read_u32(at + offset).map(Version::from_packed);
        Ok(match kind {
            ROW_LIBRARY => Some(Requirement::Library {
                min: version(library_row::MIN)?,
                below: version(library_row::BELOW)?,
                built: version(library_row::BUILT)?,
                soname: text(library_row::SONAME, "the soname")?,
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
                file: text(part_row::FILE, "the file")?,
                symbol: text(part_row::SYMBOL, "the symbol")?,
                needed: flags & 1 != 0,
            }),
            ROW_DRIVER => Some(Requirement::Driver {
                cuda: CudaVersion::from_int(note.read_u32(at + driver_row::CUDA)?),
                release: DriverRelease::from_packed(note.read_u32(at + driver_row::RELEASE)?),
                because: text(driver_row::BECAUSE, "the reason")?,
            }),
            ROW_GPU => {
                let cc = |packed: u32| match packed.to_le_bytes() {
                    [minor, major, 0, 0] => Ok((major, minor)),
                    _ => Err(format!("the manifest is damaged: the row at byte {at} names no compute capability")),
                };
                let all = [
                    GpuCoverage::PartialPtx,
                    GpuCoverage::Cubin,
                    GpuCoverage::Ptx,
                    GpuCoverage::Partial,
                    GpuCoverage::Nothing,
                    GpuCoverage::Unknown,
                ];
                let by = all.into_iter().find(|by| flags & served_flag(*by) == served_flag(*by));
                let (from, to) = (cc(note.read_u32(at + gpu_row::LOWEST)?)?, note.read_u32(at + gpu_row::HIGHEST)?);
                let to = if to == NO_END { None } else { Some(cc(to)?) };
                let code = text(gpu_row::CODE, "the code")?;
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
                    sure_from: (sure != 0)
                        .then(|| (CudaVersion::from_int(sure), DriverRelease::from_packed(sure_release))),
                    beside: match flags.to_le_bytes()[1] {
                        _ if flags & NO_PTX != 0 => PtxFallback::Nothing,
                        0 => PtxFallback::Untold,
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
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let policy = &facts["policy"];
        let archs = |key: &str| {
            let list = facts["archs"][key].as_array()?;
            Some(list.iter().filter_map(|name| parse_target(name.as_str()?)).collect::<Vec<_>>())
        };
        Manifest {
            component: Component {
                name: text(&facts["component"]["name"]),
                version: text(&facts["component"]["version"]),
            },
            cudaguard: text(&facts["cudaguard"]),
            target: text(&facts["target"]),
            profile: text(&facts["profile"]),
            toolkit: decode_version(&facts["toolkit"]["version"]),
            toolkit_known: facts["toolkit"]["known"].as_str().and_then(KnownBy::from_name),
            toolkits_besides: facts["toolkit"]["besides"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|release| decode_version(release).map(CudaVersion::from))
                .collect(),
            library: decode_version(&facts[CUDNN.key]["version"]).map(|version| BuiltWith {
                version,
                linkage: facts[CUDNN.key]["linkage"].as_str().map(Linkage::from_name).unwrap_or_default(),
            }),
            library_known: facts[CUDNN.key]["known"].as_str().and_then(KnownBy::from_name),
            library_linked: facts[CUDNN.key]["library"].as_str().and_then(|text| text.parse().ok()),
            cudart: facts["cudart"]["linkage"].as_str().map(|linkage| RecordedCudart {
                linkage: Linkage::from_name(linkage),
                version: decode_version(&facts["cudart"]["version"]).map(CudaVersion::from),
            }),
            declared: archs("declared").unwrap_or_default(),
            observed: archs("observed"),
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
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = |value: &Value| value.as_array().into_iter().flatten().filter_map(text).collect();
        Opens {
            by: text(&value["by"]).unwrap_or_default(),
            libraries: texts(&value["libraries"]),
            endings: texts(&value["endings"]),
        }
    }

    fn decode_version(value: &Value) -> Option<Version> {
        value.as_str().and_then(|text| Version::from_str(text).ok())
    }

    /// Parses a target as the writer formats it: `sm_90a`, `compute_90`.
    fn parse_target(name: &str) -> Option<Target> {
        let arch = |text: &str| {
            let (digits, suffix) = match text.as_bytes().last()? {
                b'a' => (&text[..text.len() - 1], Suffix::Specific),
                b'f' => (&text[..text.len() - 1], Suffix::Family),
                _ => (text, Suffix::None),
            };
            Some(Arch { number: digits.parse().ok()?, suffix })
        };
        match name.split_once('_')? {
            ("sm", rest) => arch(rest).map(Target::Cubin),
            ("compute", rest) => arch(rest).map(Target::Ptx),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{Arch, Suffix, Target};
    use crate::finding::Code;
    use crate::manifest::{BuiltWith, Component, KnownBy, Opens, RecordedCudart};
    use crate::policy::Runtime;
    use crate::version::{DriverRelease, Version};

    fn rich() -> Manifest {
        let version = Version::new(9, 15, 1);
        Manifest {
            component: Component { name: "resnet".to_owned(), version: "0.3.1".to_owned() },
            cudaguard: "0.1.0".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            profile: "release".to_owned(),
            toolkit: Some(Version::new(13, 0, 48)),
            toolkit_known: Some(KnownBy::LinkObservation),
            toolkits_besides: vec![CudaVersion::new(11, 8), CudaVersion::new(12, 4)],
            library: Some(BuiltWith { version, linkage: Linkage::Linked }),
            library_known: Some(KnownBy::Linked),
            library_linked: Some(Version::new(9, 17, 1)),
            cudart: Some(RecordedCudart { linkage: Linkage::Static, version: Some(CudaVersion::new(13, 0)) }),
            declared: vec![
                Target::Cubin(Arch { number: 90, suffix: Suffix::Specific }),
                Target::Ptx(Arch { number: 100, suffix: Suffix::Family }),
            ],
            observed: Some(vec![Target::Cubin(Arch { number: 80, suffix: Suffix::None })]),
            host_compiler: Some("gcc 12.2.0".to_owned()),
            runtime: Runtime { mismatch_warns: false, gpu: GpuNeed::Optional, library_enforces: true },
            partial_refuse: true,
            allow: vec![(Code::ALL[0], "a reason, \"quoted\"".to_owned())],
            opens: vec![Opens {
                by: "cudarc 0.19.10".to_owned(),
                libraries: vec!["cuda".to_owned(), "cudnn".to_owned()],
                endings: vec![".so".to_owned(), ".so.13".to_owned()],
            }],
            sealed: true,
            requires: vec![
                Requirement::Library {
                    min: Version::new(9, 15, 0),
                    below: Version::new(10, 0, 0),
                    built: version,
                    soname: "libcudnn.so.9".to_owned(),
                    linkage: Linkage::Linked,
                    patch_refuse: true,
                    required: false,
                },
                Requirement::Part {
                    file: "libcudnn_graph.so.9".to_owned(),
                    symbol: "cudnn_graph_version".to_owned(),
                    needed: true,
                },
                Requirement::Driver {
                    cuda: CudaVersion::new(13, 0),
                    release: DriverRelease::new(580, 65, 6),
                    because: "libcudart 13.0".to_owned(),
                },
                Requirement::Gpu {
                    from: (9, 0),
                    to: None,
                    by: GpuCoverage::Ptx,
                    code: "compute_90".to_owned(),
                    cuda: Some(CudaVersion::new(12, 4)),
                    release: None,
                    sure_from: None,
                    beside: PtxFallback::Untold,
                },
            ],
        }
    }

    #[test]
    fn fields_stand_where_the_page_says() {
        let manifest = rich();
        let bytes = encode(&manifest).unwrap();
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let text_at = |at: usize| std::str::from_utf8(&bytes[u16_at(at)..][..u16_at(at + 2)]).unwrap();
        assert_eq!(&bytes[..8], b"cudagrd\0");
        assert_eq!([8, 10, 12, 14].map(u16_at), [1, 4, 44, 40]);
        assert_eq!(bytes[20..28], [1, 2, 1, 2, 1, 1, 0, 0]);
        assert_eq!([28, 32, 36, 40].map(text_at), ["resnet", "0.3.1", "0.1.0", "13.0.48"]);
        assert_eq!(text_at(16), manifest.to_json().to_string());
        assert_eq!([44, 46].map(u16_at), [1, 1 | 8]);
        assert_eq!([48, 52, 56].map(u32_at), [0x09_0f00, 0x0a_0000, 0x09_0f01]);
        assert_eq!([44 + 24, 44 + 28].map(text_at), ["libcudnn.so.9", "cuDNN"]);
        assert_eq!([84, 86].map(u16_at), [2, 1]);
        assert_eq!([84 + 24, 84 + 28].map(text_at), ["libcudnn_graph.so.9", "cudnn_graph_version"]);
        assert_eq!([124, 126].map(u16_at), [3, 0]);
        assert_eq!([124 + 16, 124 + 20].map(u32_at), [13_000, 580 << 16 | 65 << 8 | 6]);
        assert_eq!(text_at(124 + 24), "libcudart 13.0");
        assert_eq!([164, 166].map(u16_at), [4, 2]);
        assert_eq!([168, 172, 176, 180, 184].map(u32_at), [0x900, 0xffff, 90, 12_040, 0]);
        assert_eq!(text_at(164 + 24), "compute_90");
    }

    #[test]
    fn what_later_writers_added_stands_where_nothing_stood() {
        let mut manifest = rich();
        manifest.observed = None;
        manifest.opens = vec![Opens {
            by: "cudarc 0.19.10".to_owned(),
            libraries: vec!["cuda".to_owned(), "cudnn".to_owned()],
            endings: [".so", ".so.9"].map(str::to_owned).to_vec(),
        }];
        let row = |from, to, by, code: &str, sure_from| Requirement::Gpu {
            from,
            to,
            by,
            code: code.to_owned(),
            cuda: None,
            release: None,
            sure_from,
            beside: if by == GpuCoverage::Cubin { PtxFallback::Nothing } else { PtxFallback::Isa((8, 4)) },
        };
        let sure = Some((CudaVersion::new(13, 0), DriverRelease::new(580, 65, 6)));
        manifest.requires.truncate(1);
        manifest.requires.extend([
            row((0, 0), Some((7, 255)), GpuCoverage::Nothing, "", None),
            row((8, 0), Some((8, 255)), GpuCoverage::Cubin, "sm_80", sure),
            row((9, 0), None, GpuCoverage::Ptx, "compute_90", None),
        ]);
        let bytes = encode(&manifest).unwrap();
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let text_at = |at: usize| std::str::from_utf8(&bytes[u16_at(at)..][..u16_at(at + 2)]).unwrap();
        assert_eq!([44 + 24, 44 + 32].map(text_at), ["libcudnn.so.9", "libcudnn.so\nlibcudnn.so.9"]);
        assert_eq!(text_at(84 + 28), "sm_80, compute_90");
        assert_eq!([124 + 2, 164 + 2].map(u16_at), [1 | 32, 2 | 0x8400]);
        assert_eq!([124 + 32, 124 + 36, 164 + 32, 164 + 36].map(u32_at), [13_000, 580 << 16 | 65 << 8 | 6, 0, 0]);
    }

    #[test]
    fn lists_are_cut_between_their_members() {
        let list = |count: usize| (0..count).map(|at| format!("sm_{:03}", 100 + at)).collect::<Vec<_>>();
        assert_eq!(truncate_list(&list(2), ", ", "..."), "sm_100, sm_101");
        let cut = truncate_list(&list(60), ", ", "...");
        assert!(cut.len() <= LONGEST_TEXT && cut.starts_with("sm_100, ") && cut.ends_with(", ..."), "{cut}");
        let cut = truncate_list(&list(60), "\n", "");
        assert!(cut.len() <= LONGEST_TEXT && cut.lines().all(|line| line.len() == 6), "{cut}");
    }

    #[test]
    fn what_does_not_fit_names_the_entry() {
        let mut manifest = rich();
        manifest.allow[0].1 = "because ".repeat(600);
        let error = encode(&manifest).unwrap_err();
        let expected = format!("shorten the reason of [allow] {}, which takes 4800 bytes", manifest.allow[0].0);
        assert!(error.starts_with("the manifest of resnet 0.3.1 needs ") && error.ends_with(&expected), "{error}");

        manifest = rich();
        manifest.component.name = "n".repeat(70_000);
        assert!(encode(&manifest).unwrap_err().contains("shorten the package's name"));

        manifest = rich();
        manifest.library = None;
        manifest.requires = vec![Requirement::Driver {
            cuda: CudaVersion::new(12, 2),
            release: DriverRelease::new(535, 261, 3),
            because: String::new(),
        }];
        assert!(encode(&manifest).unwrap_err().contains("driver 535.261.03"));
    }

    /// Every arch that one toolkit supports: only the rows contain all of them.
    #[test]
    fn texts_longer_than_the_shim_reads_are_rejected() {
        let longest = "v".repeat(LONGEST_TEXT);
        let mut manifest = rich();
        manifest.component.version.clone_from(&longest);
        assert!(encode(&manifest).is_ok());
        manifest.component.version.push('v');
        let error = encode(&manifest).unwrap_err();
        assert!(error.ends_with("takes 256 bytes: shorten the package's version to 255 bytes"), "{error}");

        manifest = rich();
        let because = format!("{} and more", vec!["crate"; 100].join(" "));
        let driver = manifest.requires.iter_mut().find_map(|row| match row {
            Requirement::Driver { because, .. } => Some(because),
            _ => None,
        });
        *driver.unwrap() = because;
        assert!(encode(&manifest).is_ok(), "a list is cut");
    }

    #[test]
    fn many_archs_fit() {
        let mut manifest = rich();
        let all: Vec<_> = (0..24).map(|n| Target::Cubin(Arch { number: 50 + n * 3, suffix: Suffix::None })).collect();
        manifest.requires.extend(all.iter().map(|target| {
            let Target::Cubin(arch) = target else { unreachable!() };
            Requirement::Gpu {
                from: arch.cc(),
                to: Some(arch.cc()),
                by: GpuCoverage::Cubin,
                code: target.to_string(),
                cuda: Some(CudaVersion::new(12, 0)),
                release: Some(DriverRelease::new(525, 60, 13)),
                sure_from: None,
                beside: PtxFallback::Untold,
            }
        }));
        manifest.declared.clone_from(&all);
        manifest.observed = Some(all);
        let bytes = encode(&manifest).unwrap();
        #[cfg(feature = "command")]
        {
            let note = decode(&bytes[..]).unwrap();
            assert_eq!(note.manifest, manifest);
            assert!(!note.json.contains("requires"), "{}", note.json);
        }
        assert_eq!(u16::from_le_bytes([bytes[10], bytes[11]]), 28);
    }

    #[cfg(feature = "command")]
    mod decoding {
        use proptest::prelude::*;

        use super::*;

        #[test]
        fn everything_returns() {
            let manifest = rich();
            let note = decode(&encode(&manifest).unwrap()[..]).unwrap();
            assert_eq!(note.manifest, manifest);
            assert_eq!((note.revision, note.json), (1, manifest.to_json().to_string()));
            assert!(note.unknown_rows.is_empty());
        }

        /// Revision 2 with longer rows, one of a new kind, and other offsets of fixed fields.
        #[test]
        fn a_newer_revision_is_read_as_far_as_it_is_known() {
            let manifest = rich();
            let mut bytes = encode(&manifest).unwrap().to_vec();
            bytes[8] = 2;
            bytes[20..44].fill(0xee);
            bytes[44] = 99;
            let note = decode(&bytes).unwrap();
            assert_eq!((note.revision, &note.unknown_rows[..]), (2, &[99][..]));
            assert_eq!(note.manifest.requires, manifest.requires[1..]);
            assert_eq!(Manifest { requires: manifest.requires.clone(), ..note.manifest }, manifest);
        }

        #[test]
        fn damage_is_named() {
            let good = encode(&rich()).unwrap().to_vec();
            let mut long = good.clone();
            long[head::NAME + 2..head::NAME + 4].copy_from_slice(&256_u16.to_le_bytes());
            let error = decode(&long).unwrap_err();
            assert_eq!(error, "the manifest is damaged: the component's name has 256 bytes, and 255 is the most");
            let damaged = |at: usize, value: u8| {
                let mut bytes = good.clone();
                bytes[at] = value;
                decode(&bytes).unwrap_err()
            };
            assert!(damaged(0, 0).contains("does not begin"));
            assert!(damaged(8, 0).contains("revision"));
            assert!(damaged(14, 8).contains("rows"));
            assert!(damaged(21, 3).contains("[runtime] gpu"));
            assert!(damaged(29, 0xff).contains("the component's name"));
            assert!(damaged(17, 0).contains("JSON"));
            assert!(damaged(44 + 25, 0xff).contains("the soname of the row at byte 44"));
            for length in 0..good.len().min(400) {
                assert!(decode(&good[..length]).is_err(), "{length} bytes");
            }
        }

        fn version() -> impl Strategy<Value = Version> {
            (0..=0xffffu32, 0..=0xffu32, 0..=0xffu32).prop_map(|(a, b, c)| Version::new(a, b, c))
        }

        fn cuda() -> impl Strategy<Value = CudaVersion> {
            (1..=99u32, 0..=99u32).prop_map(|(a, b)| CudaVersion::new(a, b))
        }

        fn release() -> impl Strategy<Value = DriverRelease> {
            (1..=0xffffu32, 0..=0xffu32, 0..=0xffu32).prop_map(|(a, b, c)| DriverRelease::new(a, b, c))
        }

        fn linkage() -> impl Strategy<Value = Linkage> {
            prop::sample::select(vec![Linkage::Unknown, Linkage::Linked, Linkage::Static, Linkage::Dlopened])
        }

        fn target() -> impl Strategy<Value = Target> {
            let suffix = prop::sample::select(vec![Suffix::None, Suffix::Family, Suffix::Specific]);
            (any::<bool>(), 1..=999u16, suffix).prop_map(|(cubin, number, suffix)| {
                let arch = Arch { number, suffix };
                if cubin { Target::Cubin(arch) } else { Target::Ptx(arch) }
            })
        }

        fn text() -> impl Strategy<Value = String> {
            prop::collection::vec(any::<char>(), 0..24).prop_map(String::from_iter)
        }

        fn requirement() -> impl Strategy<Value = Requirement> {
            let by = prop::sample::select(vec![
                GpuCoverage::Cubin,
                GpuCoverage::Ptx,
                GpuCoverage::Partial,
                GpuCoverage::PartialPtx,
                GpuCoverage::Nothing,
                GpuCoverage::Unknown,
            ]);
            let cc = || (any::<u8>(), any::<u8>());
            prop_oneof![
                (version(), version(), version(), text(), linkage(), any::<bool>(), any::<bool>()).prop_map(
                    |(min, below, built, soname, linkage, patch_refuse, required)| Requirement::Library {
                        min,
                        below,
                        built,
                        soname,
                        linkage,
                        patch_refuse,
                        required
                    }
                ),
                (text(), text(), any::<bool>()).prop_map(|(file, symbol, needed)| Requirement::Part {
                    file,
                    symbol,
                    needed
                }),
                (cuda(), release(), text()).prop_map(|(cuda, release, because)| Requirement::Driver {
                    cuda,
                    release,
                    because
                }),
                (
                    cc(),
                    prop::option::of(cc().prop_filter("255.255 is no end", |cc| *cc != (255, 255))),
                    by,
                    text(),
                    prop::option::of(cuda()),
                    prop::option::of(release()),
                    prop::option::of((cuda(), release())),
                    prop::option::of((0..16u8, 0..16u8))
                )
                    .prop_map(|(from, to, by, code, cuda, release, sure_from, isa)| {
                        let beside = match isa {
                            None => PtxFallback::Untold,
                            Some((0, _)) => PtxFallback::Nothing,
                            Some(isa) => PtxFallback::Isa(isa),
                        };
                        Requirement::Gpu { from, to, by, code, cuda, release, sure_from, beside }
                    }),
            ]
        }

        fn manifest() -> impl Strategy<Value = Manifest> {
            let gpu = prop::sample::select(vec![GpuNeed::Auto, GpuNeed::Required, GpuNeed::Optional]);
            let facts = (
                [text(), text(), text(), text(), text()],
                prop::option::of(version()),
                prop::option::of((version(), linkage())),
                prop::option::of((linkage(), prop::option::of(version()))),
                prop::collection::vec(target(), 0..6),
                prop::option::of(prop::collection::vec(target(), 0..6)),
                prop::option::of(text()),
            );
            let rules = (
                [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()],
                gpu,
                prop::collection::btree_map(prop::sample::select(Code::ALL.to_vec()), text(), 0..3),
                prop::collection::vec(requirement(), 0..6),
            );
            (facts, rules).prop_map(
                |(
                    (
                        [name, version, cudaguard, target, profile],
                        toolkit,
                        library,
                        cudart,
                        declared,
                        observed,
                        host_compiler,
                    ),
                    ([mismatch_warns, library_enforces, partial_refuse, sealed], gpu, allow, requires),
                )| Manifest {
                    component: Component { name, version },
                    cudaguard,
                    target,
                    profile,
                    toolkit,
                    toolkit_known: toolkit.filter(|_| sealed).map(|_| KnownBy::LinkObservation),
                    toolkits_besides: toolkit.map(CudaVersion::from).into_iter().collect(),
                    library: library.map(|(version, linkage)| BuiltWith { version, linkage }),
                    library_known: None,
                    library_linked: None,
                    cudart: cudart
                        .filter(|(linkage, _)| *linkage != Linkage::Unknown)
                        .map(|(linkage, version)| RecordedCudart { linkage, version: version.map(CudaVersion::from) }),
                    declared,
                    observed,
                    host_compiler,
                    runtime: Runtime { mismatch_warns, gpu, library_enforces },
                    partial_refuse,
                    allow: allow.into_iter().collect(),
                    opens: Vec::new(),
                    sealed,
                    requires,
                },
            )
        }

        proptest! {
            #[test]
            fn what_is_written_is_read(manifest in manifest()) {
                if let Ok(bytes) = encode(&manifest) {
                    prop_assert_eq!(decode(&bytes[..]).unwrap().manifest, manifest);
                }
            }

            #[test]
            fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
                let _ = decode(&bytes);
                let mut marked = b"cudagrd\0\x01\0".to_vec();
                marked.extend(bytes);
                let _ = decode(&marked);
            }

            #[test]
            fn flipped_bytes_never_panic(at in 8..SIZE, value in any::<u8>(), other in 8..SIZE, second in any::<u8>()) {
                let mut bytes = encode(&rich()).unwrap().to_vec();
                bytes[at] = value;
                bytes[other] = second;
                let _ = decode(&bytes);
            }
        }
    }
}
