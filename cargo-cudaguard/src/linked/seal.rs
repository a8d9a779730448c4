//! Writes the observed facts into the notes of a linked file: after linking, before cargo copies the file.
//!
//! Unless it is fresh linker output ([`LinkObservation::fresh`]), the file is replaced atomically: the new one is
//! written to the same directory under a hidden name and renamed over the old one. A running program, another hard link
//! and a process that is killed meanwhile keep the old file. File capabilities are copied, or sealing fails. Nothing is synced to disk, as linkers do not do it either.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

mod attributes;
mod replace;
mod slots;

use replace::{NotePatch, has_one_name, replace_file, write_changes};

use crate::binary::elf::Elf;
use crate::binary::file::{Binary, BinaryKind};
use crate::knowledge::vendor::{CUDART, CUDNN, cudart_named, is_libcuda};
use crate::linked::evidence::LinkEvidence;
use cudaguard::internal::arch::Target;
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::manifest::{BuiltWith, FactSource, Linkage, Manifest, RecordedCudart, Requirement};
use cudaguard::internal::note::{self, EncodeError};
use cudaguard::internal::tables;
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};

/// The facts observed in a linked file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkObservation {
    /// The package whose notes are sealed; `None`: every note in the file. Notes of other packages are not changed:
    /// their facts were true of their own files, and the shim compares them with the loaded libraries.
    pub component: Option<String>,
    /// How the file links or loads cuDNN. With `Unknown` the fact in the note is not changed.
    pub library: Linkage,
    /// The major in the soname of cuDNN, if the file needs it.
    pub library_named: Option<u32>,
    /// How it links or loads cudart.
    pub cudart: Linkage,
    /// The version in the name of the libcudart that it needs: `libcudart.so.13`. The second number is the library's
    /// minor up to 10.2, and always 0 after that.
    pub cudart_named: Option<CudaVersion>,
    /// The cudart that it opens by name, from the search path or the package that brings it.
    pub cudart_opened: Option<CudaVersion>,
    /// The targets of its kernels; `None` if it was not searched for kernels.
    pub archs: Option<Vec<Target>>,
    /// The GPU rows of its kernels ([`crate::binary::kernels::Kernels::requirement_rows`]); `None` if it was not searched for
    /// kernels.
    pub gpus: Option<Vec<Requirement>>,
    /// Driver requirements of functions that it looks up at startup: the CUDA version that introduced the newest one,
    /// and the crate that looks it up ([`crate::knowledge::crates::driver_floors`]).
    pub looked_up: Vec<(CudaVersion, String)>,
    /// The evidence of its toolkit.
    pub seen: LinkEvidence,
    /// The cuDNN release, if it differs from the recorded one, and the rows that follow from it.
    pub taken: Option<ResolvedCudnn>,
    /// The newest function of the driver that the file binds, and the CUDA version that introduced it.
    pub bound: Option<(CudaVersion, String)>,
    /// The name of libcuda, if the file is linked to it.
    pub libcuda: Option<String>,
    /// True if the linker output is not published yet and a crash triggers a rebuild. It is patched in place then,
    /// because copying a large file takes longer than all other steps.
    pub fresh: bool,
    /// True if it does not use CUDA and nothing indicates that it should: the toolkit of the machine was not used.
    pub nothing: bool,
    /// True if the declared archs in the note are a general list that is not specific to this package. If the file
    /// contains no code, they are removed.
    pub archs_of_nobody: bool,
}

impl LinkObservation {
    /// Collects the facts that the parsed file shows, without those about its kernels.
    pub fn from_binary(binary: &Binary) -> Self {
        Self {
            library: binary.linkage_in_build(&CUDNN),
            library_named: binary.imported().find_map(|name| CUDNN.major(name)),
            cudart: binary.linkage_in_build(&CUDART),
            cudart_named: binary.imported().find_map(|name| cudart_named(name)),
            bound: binary
                .bound
                .iter()
                .find(|bound| is_libcuda(&bound.soname))
                .map(|bound| (CudaVersion::from(bound.first), bound.name.clone())),
            libcuda: binary.needed.iter().find(|name| is_libcuda(name)).cloned(),
            ..Self::default()
        }
    }
}

/// The cuDNN release that the build's files show, or a substitute if they show none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCudnn {
    /// The release.
    pub version: Version,
    /// The origin of the release; `None`: the headers.
    pub known: Option<FactSource>,
    /// The rows that follow from it.
    pub rows: Vec<Requirement>,
}

impl ResolvedCudnn {
    /// Writes it into a manifest, replacing the recorded headers.
    pub(crate) fn record_in(&self, manifest: &mut Manifest) {
        manifest.library = Some(BuiltWith { version: self.version, linkage: Linkage::Linked });
        manifest.library_known = self.known;
        let others = std::mem::take(&mut manifest.requires)
            .into_iter()
            .filter(|row| !matches!(row, Requirement::Library { .. } | Requirement::Part { .. }));
        manifest.requires = self.rows.iter().cloned().chain(others).collect();
    }
}

/// The result of sealing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealResult {
    /// Number of changed notes.
    pub written: usize,
    /// Number of notes that were already up to date.
    pub same: usize,
    /// Notes that cannot be sealed, each with the reason: damaged, or written by a newer cudaguard.
    pub left: Vec<String>,
}

/// A file that cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealError {
    /// It cannot be read or written.
    File(FileError),
    /// The sealed manifest does not fit into the note.
    Manifest(EncodeError),
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Manifest(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SealError {}

impl From<FileError> for SealError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl From<EncodeError> for SealError {
    fn from(error: EncodeError) -> Self {
        Self::Manifest(error)
    }
}

/// Seals the notes of a file, in place or into a new file `to`, which replaces an existing one. In place, a file
/// without notes or with up-to-date notes is not modified.
///
/// # Errors
/// Both files are unchanged then.
pub fn seal_file(file: &Path, to: Option<&Path>, observed: &LinkObservation) -> Result<SealResult, SealError> {
    seal_open(&Binary::read(file)?, to, observed).map(|(sealed, _)| sealed)
}

/// Seals an open file. Also returns the manifests in the sealed file.
pub(crate) fn seal_open(
    binary: &Binary,
    to: Option<&Path>,
    observed: &LinkObservation,
) -> Result<(SealResult, Vec<Manifest>), SealError> {
    // If the path is a link, its target is replaced, not the link.
    let file = fs::canonicalize(&binary.path).map_err(|error| FileError::read(&binary.path, error))?;
    let mut sealed = SealResult::default();
    let mut manifests = Vec::new();
    if matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive) {
        // The libraries that it will be linked to are not known yet.
        return Ok((sealed, manifests));
    }
    let mut changes: Vec<NotePatch> = Vec::new();
    let elf = if binary.notes.is_empty() { None } else { Elf::parse(binary.data()).ok() };
    for found in &binary.notes {
        let known = match found.decode() {
            Ok(known) => known,
            Err(error) => {
                sealed.left.push(format!("an unreadable note: {error}"));
                continue;
            }
        };
        let manifest = known.manifest;
        let Some(linked) = linked_manifest(&manifest, observed) else {
            manifests.push(manifest);
            continue;
        };
        // A note is rewritten only if encoding it again yields the same bytes. Otherwise data of a newer cudaguard
        // would be lost.
        if note::encode(&manifest).ok().is_none_or(|again| again[..] != found.descriptor[..]) {
            sealed.left.push(format!(
                "the note of {}, written by the newer cudaguard {}",
                manifest.component.name, manifest.cudaguard
            ));
            manifests.push(manifest);
            continue;
        }
        if elf.as_ref().is_some_and(|elf| !elf.maps_note(found.offset)) {
            sealed.left.push(format!(
                "the note of {}, because no program header contains it: the guard cannot find it at start-up",
                manifest.component.name
            ));
            continue;
        }
        let new = note::encode(&linked)?;
        manifests.push(linked);
        if new[..] == found.descriptor[..] {
            sealed.same += 1;
        } else {
            sealed.written += 1;
            let offsets = std::iter::once(found.offset).chain(found.copies.iter().copied());
            changes.extend(offsets.map(|offset| (offset, new.to_vec())));
        }
    }
    if binary.kind == BinaryKind::Executable && sealed.written + sealed.same > 0 {
        changes.extend(slots::slot_changes(binary.data()));
    }
    if let Some(to) = to {
        replace_file(to, &file, &changes).map_err(|error| FileError::write(to, error))?;
    } else if !changes.is_empty() {
        // Windows does not replace a file that this process has mapped.
        let may_patch = cfg!(windows) || observed.fresh && has_one_name(&file);
        let in_place = may_patch && write_changes(&file, &changes).is_ok();
        if !in_place {
            replace_file(&file, &file, &changes).map_err(|error| FileError::write(&file, error))?;
        }
    }
    Ok((sealed, manifests))
}

/// Returns the manifest with what the linked file shows. `None` if the note is left as it is, because it is that of another component.
fn linked_manifest(manifest: &Manifest, observed: &LinkObservation) -> Option<Manifest> {
    if observed.component.as_ref().is_none_or(|component| *component == manifest.component.name) {
        return Some(observed_manifest(manifest.clone(), observed));
    }
    // Only the linked file shows whether the cuDNN that was found for a library is used.
    let is_open = !manifest.sealed && manifest.library.as_ref().is_some_and(|one| one.linkage == Linkage::Unknown);
    (is_open && observed.library == Linkage::None).then(|| {
        let mut linked = manifest.clone();
        set_cudnn(&mut linked, observed);
        linked
    })
}

/// Copies a file that has no note to seal to `to`.
///
/// # Errors
/// If it cannot be written.
pub fn copy_file(file: &Path, to: &Path) -> Result<(), FileError> {
    replace_file(to, file, &[]).map_err(|error| FileError::write(to, error))
}

/// Deletes a refused file. If the path is a symbolic link, deletes both the link and the file, because sealing follows the link.
pub fn remove_refused(file: &Path) {
    for path in fs::canonicalize(file).iter().map(PathBuf::as_path).chain([file]) {
        let _ = fs::remove_file(path);
    }
}

/// Updates the manifest with the observed facts.
pub(crate) fn observed_manifest(mut manifest: Manifest, observed: &LinkObservation) -> Manifest {
    manifest.sealed = true;
    if observed.nothing {
        (manifest.toolkit, manifest.library, manifest.host_compiler) = (None, None, None);
        manifest.declared.clear();
        manifest.requires.retain(|row| !matches!(row, Requirement::Library { .. } | Requirement::Part { .. }));
    }
    if observed.archs_of_nobody && observed.archs.as_ref().is_some_and(Vec::is_empty) {
        manifest.declared.clear();
    }
    if observed.archs.is_some() {
        manifest.observed.clone_from(&observed.archs);
    }
    set_toolkit(&mut manifest, &observed.seen);
    if let Some(host) = &observed.seen.host {
        manifest.host_compiler = host.only_compiler().cloned();
    }
    if let Some(taken) = &observed.taken {
        taken.record_in(&mut manifest);
    }
    set_cudnn(&mut manifest, observed);
    let named = manifest.library.as_ref().map(|library| library.version);
    manifest.library_linked =
        observed.seen.cudnn_version().filter(|linked| named.is_some_and(|named| named != *linked));
    set_cudart(&mut manifest, observed);
    looked_up(&mut manifest, observed);
    if let Some(rows) = &observed.gpus {
        manifest.requires.retain(|requirement| !matches!(requirement, Requirement::Gpu { .. }));
        manifest.requires.extend(rows.iter().cloned());
        drop_certain(&mut manifest);
    }
    require_libcuda(&mut manifest, observed);
    manifest
}

/// Merges two neighbouring rows with equal contents. Returns true if they were merged.
fn merge_rows(row: &mut Requirement, next: &Requirement) -> bool {
    let mut same = next.clone();
    let (Requirement::Gpu { from: first, to: end, .. }, Requirement::Gpu { from, to, .. }) = (&*row, &mut same) else {
        return false;
    };
    let last = std::mem::replace(to, *end);
    *from = *first;
    if *row != same {
        return false;
    }
    if let Requirement::Gpu { to, .. } = row {
        *to = last;
    }
    true
}

/// Drops the drivers from which machine code certainly loads if the program needs a newer one to start.
pub(crate) fn drop_certain(manifest: &mut Manifest) {
    let newest = manifest.requires.iter().filter_map(|requirement| match requirement {
        Requirement::Driver { cuda, .. } => Some(*cuda),
        _ => None,
    });
    let newest = newest.max();
    for requirement in &mut manifest.requires {
        if let Requirement::Gpu { guaranteed_from, .. } = requirement {
            *guaranteed_from = guaranteed_from.filter(|(cuda, _)| newest.is_none_or(|newest| newest < *cuda));
        }
    }
    // Neighbouring rows that have become equal are merged.
    manifest.requires.dedup_by(|next, row| merge_rows(row, next));
}

/// Adds the requirement of a cudart that the package of the file brings, if the file has kernels and no other cudart is known.
pub(crate) fn require_cudart_of_package(manifest: &mut Manifest, cudart: CudaVersion) {
    let known =
        |row: &Requirement| matches!(row, Requirement::Driver { because, .. } if because.starts_with("libcudart"));
    let has_kernels = manifest.requires.iter().any(|row| matches!(row, Requirement::Gpu { .. }));
    if has_kernels && !manifest.requires.iter().any(known) {
        insert_driver_row(manifest, cudart_row(cudart, None));
        drop_certain(manifest);
    }
}

/// Adds the driver requirement of a library that the file needs, unless the file already requires such a driver. `major` is the
/// oldest CUDA major that the driver may support; 1 for any driver.
pub(crate) fn require_driver_of_library(manifest: &mut Manifest, soname: &str, major: u32) {
    let mut row = if major > 1 { cudart_row(CudaVersion::new(major, 0), None) } else { any_driver(soname) };
    let Requirement::Driver { cuda: oldest, because, .. } = &mut row else { return };
    soname.clone_into(because);
    if !manifest.requires.iter().any(|row| match row {
        Requirement::Driver { cuda, .. } => cuda >= oldest,
        Requirement::Gpu { .. } => major == 1,
        _ => false,
    }) {
        insert_driver_row(manifest, row);
        drop_certain(manifest);
    }
}

/// Returns the requirement of a driver that every driver fulfils.
fn any_driver(because: &str) -> Requirement {
    let (cuda, release) = (CudaVersion::new(1, 0), DriverRelease::new(0, 0, 0));
    Requirement::Driver { cuda, release, because: because.to_owned() }
}

/// Replaces the detected toolkit by the one that the file shows.
pub(crate) fn set_toolkit(manifest: &mut Manifest, seen: &LinkEvidence) {
    let recorded = manifest.toolkit.map(CudaVersion::from);
    if let Some(shown) = seen.built_with(recorded) {
        if recorded != Some(shown) {
            manifest.toolkit = Some(Version::new(shown.major, shown.minor, 0));
        }
        manifest.toolkit_known = Some(FactSource::LinkObservation);
    }
    if !seen.kernels.is_empty() {
        manifest.other_toolkits = seen.other_toolkits(manifest.toolkit.map(CudaVersion::from));
    }
}

fn set_cudnn(manifest: &mut Manifest, observed: &LinkObservation) {
    let Some(library) = &mut manifest.library else { return };
    library.linkage = match (library.linkage, observed.library) {
        // A library that is declared as dlopened need not leave a trace in the file.
        (declared, Linkage::Unknown) | (declared @ Linkage::Dlopened, Linkage::None) => declared,
        (_, seen) => seen,
    };
    let seen = library.linkage;
    // The headers existed when it was built, but the file does not use them, or uses the library of another major: they
    // impose no requirements on the host.
    let other = observed.library_named.is_some_and(|major| major != library.version.major);
    manifest.requires.retain(|requirement| {
        seen != Linkage::None && !other
            || !matches!(requirement, Requirement::Library { .. } | Requirement::Part { .. })
    });
    for requirement in &mut manifest.requires {
        if let Requirement::Library { linkage, .. } = requirement {
            *linkage = seen;
        }
    }
}

/// Returns the version that determines the minimum driver of a cudart in a file: it needs a driver of the same major,
/// whatever way it is linked. `shown` is the version that the file and its linker show. A dlopened cudart may be of any
/// version.
pub(crate) fn cudart_speaks_for(
    manifest: &Manifest,
    linkage: Linkage,
    named: Option<CudaVersion>,
    shown: Option<CudaVersion>,
) -> Option<CudaVersion> {
    let toolkit = manifest.toolkit.map(CudaVersion::from);
    match (linkage, named) {
        (Linkage::Linked, Some(named)) => shown.or(toolkit).filter(|known| known.major == named.major).or(Some(named)),
        // If its code does not show the version, assume that nvcc linked its default.
        (Linkage::Static, _) => shown.or(toolkit),
        _ => None,
    }
}

fn set_cudart(manifest: &mut Manifest, observed: &LinkObservation) {
    if observed.cudart == Linkage::Unknown && observed.cudart_opened.is_none() {
        return;
    }
    let shown = observed.seen.newest_cudart().filter(|_| matches!(observed.cudart, Linkage::Static | Linkage::Linked));
    let speaks_for =
        cudart_speaks_for(manifest, observed.cudart, observed.cudart_named, shown).or(observed.cudart_opened);
    let version = shown.or(speaks_for.filter(|version| manifest.toolkit.map(CudaVersion::from) == Some(*version)));
    manifest.cudart = Some(RecordedCudart { linkage: observed.cudart, version });
    manifest.requires.retain(|requirement| !matches!(requirement, Requirement::Driver { .. }));
    if let Some(cudart) = speaks_for {
        insert_driver_row(manifest, cudart_row(cudart, version));
    }
}

/// Returns the driver requirement of a cudart.
pub(crate) fn cudart_row(cudart: CudaVersion, version: Option<CudaVersion>) -> Requirement {
    let floor = tables::cudart_floor(cudart);
    Requirement::Driver {
        cuda: floor.cuda,
        release: floor.release.unwrap_or(DriverRelease::new(0, 0, 0)),
        because: match version {
            Some(version) => format!("libcudart {version}"),
            None if cudart.minor == 0 => format!("libcudart {}", cudart.major),
            None => format!("libcudart {cudart}"),
        },
    }
}

/// Inserts a driver row before the GPU rows, as MANIFEST.md specifies.
fn insert_driver_row(manifest: &mut Manifest, row: Requirement) {
    let at = manifest.requires.iter().position(|requirement| matches!(requirement, Requirement::Gpu { .. }));
    manifest.requires.insert(at.unwrap_or(manifest.requires.len()), row);
}

/// Adds the driver requirements of functions that must all exist, in addition to those of cudart.
fn looked_up(manifest: &mut Manifest, observed: &LinkObservation) {
    manifest
        .requires
        .retain(|row| !matches!(row, Requirement::Driver { because, .. } if !because.starts_with("libcudart")));
    // The loader requires every bound function, at startup or at its first call.
    let bound_cuda = observed.bound.as_ref().map(|(cuda, _)| cuda);
    let mut rows = manifest.requires.iter();
    let is_met = rows.any(|row| matches!(row, Requirement::Driver { cuda, .. } if Some(cuda) >= bound_cuda));
    let bound = observed.bound.as_ref().filter(|_| !is_met);
    // The newest version implies the others.
    let newest = observed.looked_up.iter().map(|(cuda, _)| cuda).max();
    for (cuda, because) in observed.looked_up.iter().filter(|(cuda, _)| Some(cuda) == newest).chain(bound) {
        let release = tables::toolkit_floor(Version::new(cuda.major, cuda.minor, 0)).release;
        let row = Requirement::Driver {
            cuda: *cuda,
            release: release.unwrap_or(DriverRelease::new(0, 0, 0)),
            because: because.clone(),
        };
        insert_driver_row(manifest, row);
    }
}

/// Adds the requirement of a driver to a file that is linked to libcuda and that no other requirement of the driver has. Its
/// functions are older than those of the symbol table, so every driver supports the CUDA version.
fn require_libcuda(manifest: &mut Manifest, observed: &LinkObservation) {
    let mut rows = manifest.requires.iter();
    if rows.any(|row| matches!(row, Requirement::Driver { .. } | Requirement::Gpu { .. })) {
        return;
    }
    manifest.requires.extend(observed.libcuda.as_ref().map(|name| any_driver(name)));
}

#[cfg(test)]
mod tests;
