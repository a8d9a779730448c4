//! Encodes the manifest as the bytes that MANIFEST.md describes.

pub mod layout;

use std::fmt::{self, Display};

use crate::config::policy::GpuNeed;
use crate::knowledge::cudnn;
use crate::knowledge::tables;
use crate::manifest::model::{Component, GpuCoverage, Linkage, Manifest, PtxFallback, REVISION, Requirement};
use crate::manifest::windows;
use crate::model::version::{CudaVersion, DriverRelease, Version};
use crate::text::json::Value;

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

/// How a descriptor begins.
pub const MAGIC: &[u8; 8] = b"cudagrd\0";
/// No last compute capability.
pub const NO_END: u32 = 0xffff;

/// Maximum length of a string in a note, in bytes: the shim has a buffer of this size for each, and treats a note with
/// a longer string as damaged. The JSON text has no such limit.
pub const LONGEST_TEXT: usize = 255;

/// A manifest that does not fit into a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The note is too small for all entries.
    Size {
        /// The component.
        component: Component,
        /// The required number of bytes.
        needed: usize,
        /// The largest entry and its size in bytes.
        largest: (String, usize),
    },
    /// A text is longer than a field can be.
    Text {
        /// The entry to shorten.
        entry: &'static str,
        /// The beginning of the text.
        start: String,
        /// Its length in bytes.
        length: usize,
    },
}

impl Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { component, needed, largest: (entry, size) } => write!(
                f,
                "the manifest of {component} needs {needed} bytes, but a note has {SIZE}: shorten {entry}, which needs \
                 {size} bytes"
            ),
            Self::Text { entry, start, length } => write!(
                f,
                "the manifest cannot contain `{start}...`, which has {length} bytes: shorten {entry} to {LONGEST_TEXT} bytes"
            ),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Encodes the descriptor. If the JSON text does not fit with `requires`, that key is omitted, since the rows contain
/// the same data.
///
/// # Errors
/// The entry to shorten.
pub fn encode(manifest: &Manifest) -> Result<Box<[u8; SIZE]>, EncodeError> {
    let manifest = &*windows::with_releases_of_target(manifest);
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

/// Returns the error of a manifest that is too large. It names the largest entry, because shortening it helps most.
fn does_not_fit(manifest: &Manifest, needed: usize) -> EncodeError {
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
        ("the requirements (fewer archs need fewer)".to_owned(), manifest.requires.len() * ROW_SIZE),
    ];
    entries.extend(manifest.allow.iter().map(|(code, reason)| (format!("the reason of [allow] {code}"), reason.len())));
    let largest = entries.into_iter().max_by_key(|(_, size)| *size).unwrap_or_default();
    EncodeError::Size { component: component.clone(), needed, largest }
}

fn too_long(manifest: &Manifest, text: &str) -> EncodeError {
    let component = &manifest.component;
    let entry = match text {
        _ if text == component.name => "the package's name",
        _ if text == component.version => "the package's version",
        _ => "it",
    };
    EncodeError::Text { entry, start: text.chars().take(40).collect(), length: text.len() }
}

/// Encodes the note without padding.
///
/// # Errors
/// If a string does not fit into its field.
fn assemble_note(manifest: &Manifest, json: &str) -> Result<Vec<u8>, EncodeError> {
    let has_unknown_cudart = manifest.has_unknown_cudart();
    let rows = manifest.requires.len() + usize::from(has_unknown_cudart);
    let rows_end = head::SIZE + ROW_SIZE * rows;
    let mut out = Writer { bytes: vec![0; rows_end], rows_end, manifest };
    out.bytes[..8].copy_from_slice(MAGIC);
    out.write_u16(head::REVISION, REVISION as usize)?;
    out.write_u16(head::ROWS, rows)?;
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
    if has_unknown_cudart {
        // The other numbers stay zero: the requirement is unknown.
        out.write_u16(rows_end - ROW_SIZE, ROW_DRIVER.into())?;
    }
    let start = out.bytes.len();
    out.bytes.extend_from_slice(json.as_bytes());
    out.write_u16(head::JSON_AT, start)?;
    out.write_u16(head::JSON_SIZE, json.len())?;
    Ok(out.bytes)
}

struct Writer<'a> {
    bytes: Vec<u8>,
    /// Where the string table begins.
    rows_end: usize,
    manifest: &'a Manifest,
}

impl Writer<'_> {
    fn write_u16(&mut self, at: usize, value: usize) -> Result<(), EncodeError> {
        let value = u16::try_from(value).map_err(|_| does_not_fit(self.manifest, self.bytes.len().max(value)))?;
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn write_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes a string. If the string table already contains it, the existing one is used.
    fn write_text(&mut self, at: usize, text: &str) -> Result<(), EncodeError> {
        if text.is_empty() {
            return Ok(());
        }
        if text.len() > LONGEST_TEXT {
            return Err(too_long(self.manifest, text));
        }
        let texts = &self.bytes[self.rows_end..];
        let known = texts.windows(text.len()).position(|window| window == text.as_bytes());
        let start = self.rows_end + known.unwrap_or(texts.len());
        if known.is_none() {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        self.write_u16(at, start)?;
        self.write_u16(at + 2, text.len())
    }

    fn write_row(&mut self, at: usize, row: &Requirement) -> Result<(), EncodeError> {
        visit_numbers(row, &mut |offset, number, size| {
            let field = at + offset..at + offset + size;
            self.bytes[field].copy_from_slice(&number.to_le_bytes()[..size]);
        });
        match row {
            Requirement::Library { soname, linkage, .. } => {
                self.write_text(at + library_row::SONAME, soname)?;
                self.write_text(at + library_row::LIBRARY, cudnn::NAME)?;
                let names = self
                    .manifest
                    .names_of_opened(cudnn::KEY)
                    .filter(|_| *linkage != Linkage::Static)
                    .unwrap_or_default();
                self.write_text(at + library_row::NAMES, &truncate_list(&names, "\n", ""))
            }
            Requirement::Part { file, symbol, needed } => {
                self.write_text(at + part_row::FILE, file)?;
                if *needed {
                    self.write_text(at + part_row::MADE_WITH, cudnn::CUDART_GETTER)?;
                }
                self.write_text(at + part_row::SYMBOL, symbol)
            }
            Requirement::Driver { because, .. } => {
                self.write_text(at + driver_row::BECAUSE, &truncate_list(&words(because), " ", "..."))?;
                // libcudart opens libcuda.so.1.
                let names = self.manifest.names_of_opened("cuda").filter(|_| !because.starts_with("libcudart"));
                self.write_text(at + driver_row::NAMES, &truncate_list(&names.unwrap_or_default(), "\n", ""))?;
                let Some((soname, built)) = self.manifest.shared_cudart() else { return Ok(()) };
                let version = Version::new(built.major, built.minor, 0);
                self.write_u32(at + driver_row::CUDART_BUILT, version.packed_saturating());
                self.write_text(at + driver_row::CUDART, &soname)
            }
            Requirement::Gpu { code, .. } => {
                self.write_u32(at + gpu_row::ARCH, arch_number(code));
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

fn pack_cc((major, minor): (u8, u8)) -> u32 {
    u32::from(major) << 8 | u32::from(minor)
}

/// Calls `write` with the offset, the value and the size in bytes of each number that the judge of a start reads in the row of a
/// requirement. Releases that are too large count as the largest.
pub fn visit_numbers(row: &Requirement, write: &mut dyn FnMut(usize, u32, usize)) {
    match row {
        Requirement::Library { min, below, built, linkage, patch_refuse, required, .. } => {
            let linkage = match linkage {
                Linkage::Linked => LIBRARY_LINKED,
                Linkage::Dlopened => LIBRARY_DLOPENED,
                Linkage::Static => LIBRARY_STATIC,
                Linkage::Unknown | Linkage::None => 0,
            };
            let patch = if *patch_refuse { LIBRARY_PATCH } else { 0 };
            let required = if *required { LIBRARY_REQUIRED } else { 0 };
            write(library_row::KIND, ROW_LIBRARY.into(), 2);
            write(library_row::FLAGS, (linkage | patch | required).into(), 2);
            write(library_row::MIN, min.packed_saturating(), 4);
            write(library_row::BELOW, below.packed_saturating(), 4);
            write(library_row::BUILT, built.packed_saturating(), 4);
            let floors = cudnn::RELEASES.gpu_floors(built.major).collect::<Vec<_>>();
            if let [.., (from, cc)] = floors[..] {
                write(library_row::DROPS_GPUS_FROM, from.packed_saturating(), 4);
                write(library_row::OLDEST_GPU, pack_cc(cc), 2);
            }
            if let [.., (_, cc), _] = floors[..] {
                write(library_row::OLDEST_GPU_BEFORE, pack_cc(cc), 2);
            }
            if let Some(gpus) = cudnn::RELEASES.newest_gpus(built.major) {
                write(library_row::NEWEST_GPUS, gpus.newest.into(), 1);
                write(library_row::NEWEST_GPUS_FROM, gpus.from_minor.min(255), 1);
                write(library_row::NEWEST_GPUS_BEFORE, gpus.before.into(), 1);
                write(library_row::NEWEST_GPUS_BELOW_CUDA, gpus.below_cuda.min(255), 1);
            }
        }
        Requirement::Part { needed, .. } => {
            write(part_row::KIND, ROW_PART.into(), 2);
            write(part_row::NEEDED, u32::from(*needed), 2);
            if *needed {
                // The oldest drivers for a library with a cudart of one of the two newest majors.
                let [older, newer] = tables::newest_cudart_floors();
                for (floor, cuda, release) in [
                    (older, part_row::OLDER_CUDA, part_row::OLDER_RELEASE),
                    (newer, part_row::NEWER_CUDA, part_row::NEWER_RELEASE),
                ] {
                    write(cuda, floor.cuda.to_int(), 4);
                    write(release, floor.release.map_or(0, DriverRelease::packed_saturating), 4);
                }
            }
        }
        Requirement::Driver { cuda, release, .. } => {
            write(driver_row::KIND, ROW_DRIVER.into(), 2);
            write(driver_row::CUDA, cuda.to_int(), 4);
            write(driver_row::RELEASE, release.packed_saturating(), 4);
        }
        Requirement::Gpu { from, to, by, cuda, release, guaranteed_from, ptx_fallback, .. } => {
            write(gpu_row::KIND, ROW_GPU.into(), 2);
            write(gpu_row::SERVED_BY, (served_flag(*by) | ptx_fallback_flags(*ptx_fallback)).into(), 2);
            write(gpu_row::LOWEST, pack_cc(*from), 4);
            write(gpu_row::HIGHEST, to.map_or(NO_END, pack_cc), 4);
            write(gpu_row::CUDA, cuda.map_or(0, CudaVersion::to_int), 4);
            write(gpu_row::RELEASE, release.map_or(0, DriverRelease::packed_saturating), 4);
            if let Some((cuda, release)) = guaranteed_from {
                write(gpu_row::SURE_CUDA, cuda.to_int(), 4);
                write(gpu_row::SURE_RELEASE, release.packed_saturating(), 4);
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect::<Vec<_>>()
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

/// The flags of the PTX in a GPU row.
pub const fn ptx_fallback_flags(ptx_fallback: PtxFallback) -> u16 {
    match ptx_fallback {
        PtxFallback::Nothing => NO_PTX,
        PtxFallback::Isa((major, minor)) => u16::from_le_bytes([0, major << 4 | minor]),
        PtxFallback::Undetermined => 0,
    }
}

/// The flag of a GPU row.
pub const fn served_flag(by: GpuCoverage) -> u16 {
    match by {
        GpuCoverage::Cubin => BY_CUBIN,
        GpuCoverage::Ptx => BY_PTX,
        GpuCoverage::Partial => BY_SOME,
        GpuCoverage::PartialPtx => BY_SOME | BY_PTX,
        GpuCoverage::AtLeastPartial => BY_UNKNOWN | BY_SOME,
        GpuCoverage::AtLeastPartialPtx => BY_UNKNOWN | BY_SOME | BY_PTX,
        GpuCoverage::AtMostPartial => BY_UNKNOWN | BY_NONE,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_truncated_between_members() {
        let list = |count: usize| (0..count).map(|at| format!("sm_{:03}", 100 + at)).collect::<Vec<_>>();
        assert_eq!(truncate_list(&list(2), ", ", "..."), "sm_100, sm_101");
        let cut = truncate_list(&list(60), ", ", "...");
        assert!(cut.len() <= LONGEST_TEXT && cut.starts_with("sm_100, ") && cut.ends_with(", ..."), "{cut}");
        let cut = truncate_list(&list(60), "\n", "");
        assert!(cut.len() <= LONGEST_TEXT && cut.lines().all(|line| line.len() == 6), "{cut}");
    }
}
