//! Writes the observed truth into the notes of a linked file: after linking, before cargo copies the file on.
//!
//! Either the old file or the new one is whole at every moment: the new one is written beside the old, under a hidden
//! name, and renamed over it. A running program, another hard link and a process killed in the middle keep the old one;
//! nothing is synced to disk, as no linker does either.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

mod slots;

use crate::arch::Target;
use crate::binary::{Binary, BinaryKind};
use crate::elf::Elf;
use crate::evidence::LinkEvidence;
use crate::manifest::{BuiltWith, KnownBy, Linkage, Manifest, RecordedCudart, Requirement};
use crate::note;
use crate::served;
use crate::tables;
use crate::vendor::{CUDART, CUDNN, cudart_named};
use crate::version::{CudaVersion, DriverRelease, Version};

/// What was seen in a linked file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkObservation {
    /// The package whose notes to seal; `None`: every note in the file. Those of other packages stay as they are: what
    /// they say was true of their own files, and the shim judges them by what is loaded.
    pub component: Option<String>,
    /// How the file reaches the guarded library. `Unknown` leaves what the note says.
    pub library: Linkage,
    /// The major in the name of that library, where it needs it.
    pub library_named: Option<u32>,
    /// How it reaches cudart.
    pub cudart: Linkage,
    /// The version in the name of the libcudart that it needs: `libcudart.so.13`. The second number is the library's own
    /// up to 10.2, and always 0 after that.
    pub cudart_named: Option<CudaVersion>,
    /// The archs that there are kernels for; `None` where nobody has looked.
    pub archs: Option<Vec<Target>>,
    /// Rows of what its kernels ask of GPUs ([`crate::kernels::Kernels::requirement_rows`]); `None` where nobody has looked.
    pub gpus: Option<Vec<Requirement>>,
    /// What the driver's functions that are looked up in it at once ask of a driver: the CUDA version that brought the
    /// newest, and who looks it up ([`crate::crates::driver_floors`]).
    pub looked_up: Vec<(CudaVersion, String)>,
    /// What its tools tell of the toolkit.
    pub seen: LinkEvidence,
    /// The release of the guarded library's headers, where it is another than was recorded, and the rows that follow from it.
    pub taken: Option<ResolvedCudnn>,
    /// The newest of the driver's functions that the file binds, and the CUDA version that brought it.
    pub bound: Option<(CudaVersion, String)>,
    /// Nobody has the file yet, and one that was left half written would be made anew: it is written to where it stands, since
    /// a copy of a large one takes longer than all the rest.
    pub fresh: bool,
    /// It has nothing of CUDA, and nobody has said that it should: what the machine has was not used.
    pub nothing: bool,
    /// What the note declares of archs is a list that is there for everybody: where the file shows no code, there is none.
    pub archs_of_nobody: bool,
}

impl LinkObservation {
    /// What a file says of itself; kernels are for who can read them.
    pub fn from_binary(binary: &Binary) -> Self {
        Self {
            component: None,
            fresh: false,
            nothing: false,
            archs_of_nobody: false,
            library: binary.linkage(CUDNN),
            library_named: binary.needed.iter().find_map(|name| CUDNN.major(name)),
            cudart: binary.linkage(&CUDART),
            cudart_named: binary.needed.iter().find_map(|name| cudart_named(name)),
            archs: None,
            gpus: None,
            looked_up: Vec::new(),
            seen: LinkEvidence::default(),
            taken: None,
            bound: binary
                .bound
                .iter()
                .find(|bound| bound.soname == "libcuda.so.1")
                .map(|bound| (CudaVersion::from(bound.first), bound.name.clone())),
        }
    }
}

/// The release of the guarded library's headers, as the build's own files show them, or what stands for them where nothing
/// does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCudnn {
    /// The release.
    pub version: Version,
    /// How it is known; `None`: by the headers themselves.
    pub known: Option<KnownBy>,
    /// What follows from it.
    pub rows: Vec<Requirement>,
}

impl ResolvedCudnn {
    /// Writes it into a manifest, in the place of what was taken for its headers.
    pub(crate) fn record_in(&self, manifest: &mut Manifest) {
        manifest.library = Some(BuiltWith { version: self.version, linkage: Linkage::Linked });
        manifest.library_known = self.known;
        let others = std::mem::take(&mut manifest.requires)
            .into_iter()
            .filter(|row| !matches!(row, Requirement::Library { .. } | Requirement::Part { .. }));
        manifest.requires = self.rows.iter().cloned().chain(others).collect();
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealResult {
    /// Notes written anew.
    pub written: usize,
    /// Notes that said the same already.
    pub same: usize,
    /// Notes that cannot be written, each with the reason: damaged, or of a cudaguard that knows more.
    pub left: Vec<String>,
}

/// Seals the notes of a file: in its place, where a file without notes, or whose notes say the same already, is not touched,
/// or as a new file `to` that replaces what stands there. An error says what stopped it; both are then as they were.
pub fn seal_file(file: &Path, to: Option<&Path>, observed: &LinkObservation) -> Result<SealResult, String> {
    seal_open(&Binary::read(file)?, to, observed).map(|(sealed, _)| sealed)
}

/// The same of a file that is open; with the result, the manifests that the sealed file carries.
pub(crate) fn seal_open(
    binary: &Binary,
    to: Option<&Path>,
    observed: &LinkObservation,
) -> Result<(SealResult, Vec<Manifest>), String> {
    // Behind a link stands the file to replace, not the link.
    let file = fs::canonicalize(&binary.path).map_err(|error| format!("{}: {error}", binary.path.display()))?;
    let mut sealed = SealResult::default();
    let mut manifests = Vec::new();
    if matches!(binary.kind, BinaryKind::Object | BinaryKind::Archive) {
        // What it will be linked to, nobody knows yet.
        return Ok((sealed, manifests));
    }
    let mut changes: Vec<Change> = Vec::new();
    let elf = if binary.notes.is_empty() { None } else { Elf::parse(binary.data()).ok() };
    for found in &binary.notes {
        let known = match found.decode() {
            Ok(known) => known,
            Err(error) => {
                sealed.left.push(format!("a note that cannot be read: {error}"));
                continue;
            }
        };
        let manifest = known.manifest;
        if observed.component.as_ref().is_some_and(|component| *component != manifest.component.name) {
            manifests.push(manifest);
            continue;
        }
        // Only what comes back as it was can be written without losing what this cudaguard does not know of.
        if note::encode(&manifest).ok().is_none_or(|again| again[..] != found.descriptor[..]) {
            sealed.left.push(format!(
                "the note of {}, written by cudaguard {}, which knows more than this one",
                manifest.component.name, manifest.cudaguard
            ));
            manifests.push(manifest);
            continue;
        }
        if elf.is_some_and(|elf| !elf.maps_note(found.offset)) {
            sealed.left.push(format!(
                "the note of {}, which no program header leads to: the guard cannot find it at start-up",
                manifest.component.name
            ));
            continue;
        }
        let manifest = observed_manifest(manifest, observed);
        let new = note::encode(&manifest)?;
        manifests.push(manifest);
        if new[..] == found.descriptor[..] {
            sealed.same += 1;
        } else {
            changes.push((found.offset, new.to_vec()));
        }
    }
    sealed.written = changes.len();
    if binary.kind == BinaryKind::Executable && sealed.written + sealed.same > 0 {
        changes.extend(slots::slot_changes(binary.data()));
    }
    if let Some(to) = to {
        replace_file(to, &file, &changes).map_err(|error| format!("cannot write {}: {error}", to.display()))?;
    } else if !changes.is_empty() {
        let in_place = observed.fresh && has_one_name(&file) && write_changes(&file, &changes).is_ok();
        let done = if in_place { Ok(()) } else { replace_file(&file, &file, &changes) };
        done.map_err(|error| format!("{}: cannot be sealed: {error}", file.display()))?;
    }
    Ok((sealed, manifests))
}

/// Makes `to` a copy of a file that has no note to seal.
///
/// # Errors
/// With the name of what cannot be written.
pub fn copy_file(file: &Path, to: &Path) -> Result<(), String> {
    replace_file(to, file, &[]).map_err(|error| format!("cannot write {}: {error}", to.display()))
}

/// The manifest as the linked file shows it.
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
        // A driver that the program starts on at all is then new enough for its machine code.
        let newest = manifest.requires.iter().filter_map(|requirement| match requirement {
            Requirement::Driver { cuda, .. } => Some(*cuda),
            _ => None,
        });
        let newest = newest.max();
        for requirement in &mut manifest.requires {
            if let Requirement::Gpu { sure_from, .. } = requirement {
                *sure_from = sure_from.filter(|(cuda, _)| newest.is_none_or(|newest| newest < *cuda));
            }
        }
        // What differed in nothing else is told together.
        manifest.requires.dedup_by(|next, row| served::merge_rows(row, next));
    }
    manifest
}

/// The toolkit that the file shows, in the place of the one that was looked up.
pub(crate) fn set_toolkit(manifest: &mut Manifest, seen: &LinkEvidence) {
    let recorded = manifest.toolkit.map(CudaVersion::from);
    if let Some(shown) = seen.built_with(recorded) {
        if recorded != Some(shown) {
            manifest.toolkit = Some(Version::new(shown.major, shown.minor, 0));
        }
        manifest.toolkit_known = Some(KnownBy::LinkObservation);
    }
    if !seen.kernels.is_empty() {
        manifest.toolkits_besides = seen.other_toolkits(manifest.toolkit.map(CudaVersion::from));
    }
}

fn set_cudnn(manifest: &mut Manifest, observed: &LinkObservation) {
    let Some(library) = &mut manifest.library else { return };
    library.linkage = match (library.linkage, observed.library) {
        // Declared to be loaded by name, it leaves no trace that must be found.
        (declared, Linkage::Unknown) | (declared @ Linkage::Dlopened, Linkage::None) => declared,
        (_, seen) => seen,
    };
    let seen = library.linkage;
    // Headers were there when it was built, and the file uses nothing of them, or another major's library: what they say is
    // asked of no host.
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

/// The version whose driver floor a cudart in a file has, where `shown` is what the file and its linker show of it: it asks for a driver of its own major, however it got there. One
/// that is opened by name may be of any.
pub(crate) fn cudart_speaks_for(
    manifest: &Manifest,
    linkage: Linkage,
    named: Option<CudaVersion>,
    shown: Option<CudaVersion>,
) -> Option<CudaVersion> {
    let toolkit = manifest.toolkit.map(CudaVersion::from);
    match (linkage, named) {
        (Linkage::Linked, Some(named)) => {
            let known = shown.or(toolkit).filter(|known| known.major == named.major);
            known.or(Some(named))
        }
        // Where its code does not tell: what nvcc links without being told otherwise.
        (Linkage::Static, _) => shown.or(toolkit),
        _ => None,
    }
}

fn set_cudart(manifest: &mut Manifest, observed: &LinkObservation) {
    if observed.cudart == Linkage::Unknown {
        return;
    }
    let shown = observed.seen.newest_cudart().filter(|_| matches!(observed.cudart, Linkage::Static | Linkage::Linked));
    let speaks_for = cudart_speaks_for(manifest, observed.cudart, observed.cudart_named, shown);
    let version = shown.or(speaks_for.filter(|version| manifest.toolkit.map(CudaVersion::from) == Some(*version)));
    manifest.cudart = Some(RecordedCudart { linkage: observed.cudart, version });
    manifest.requires.retain(|requirement| !matches!(requirement, Requirement::Driver { .. }));
    let Some(cudart) = speaks_for else { return };
    let floor = tables::cudart_floor(cudart);
    let row = Requirement::Driver {
        cuda: floor.cuda,
        release: floor.release.unwrap_or(DriverRelease::new(0, 0, 0)),
        because: match version {
            Some(version) => format!("libcudart {version}"),
            None if cudart.minor == 0 => format!("libcudart {}", cudart.major),
            None => format!("libcudart {cudart}"),
        },
    };
    // Before the rows of GPUs, as MANIFEST.md numbers them.
    let at = manifest.requires.iter().position(|requirement| matches!(requirement, Requirement::Gpu { .. }));
    manifest.requires.insert(at.unwrap_or(manifest.requires.len()), row);
}

/// Functions that must all be there ask for a driver that has them, whatever cudart asks for.
fn looked_up(manifest: &mut Manifest, observed: &LinkObservation) {
    let kept =
        |row: &Requirement| !matches!(row, Requirement::Driver { because, .. } if !because.starts_with("libcudart"));
    manifest.requires.retain(kept);
    // The loader, too, wants every function that is bound, now or at its first call.
    let bound_cuda = observed.bound.as_ref().map(|(cuda, _)| cuda);
    let floor = |row: &Requirement| matches!(row, Requirement::Driver { cuda, .. } if Some(cuda) >= bound_cuda);
    let bound = observed.bound.as_ref().filter(|_| !manifest.requires.iter().any(floor));
    for (cuda, because) in observed.looked_up.iter().chain(bound) {
        let release = tables::toolkit_floor(Version::new(cuda.major, cuda.minor, 0)).release;
        let row = Requirement::Driver {
            cuda: *cuda,
            release: release.unwrap_or(DriverRelease::new(0, 0, 0)),
            because: because.clone(),
        };
        let at = manifest.requires.iter().position(|requirement| matches!(requirement, Requirement::Gpu { .. }));
        manifest.requires.insert(at.unwrap_or(manifest.requires.len()), row);
    }
}

/// A file that is removed where it has not become something else.
struct Temporary(Option<PathBuf>);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Bytes, and where they go.
type Change = (u64, Vec<u8>);

/// Makes `file` what `from` is with the changes; they may be one.
fn replace_file(file: &Path, from: &Path, changes: &[Change]) -> io::Result<()> {
    let metadata = fs::metadata(from)?;
    let (folder, name) = (file.parent(), file.file_name());
    let (Some(folder), Some(name)) = (folder, name) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let prefix = format!(".{}.cudaguard-{}", name.to_string_lossy(), process_space());
    remove_leftovers(folder, &prefix);
    let mut temporary = create_temporary(folder, &prefix)?;
    let Some(path) = temporary.0.clone() else { return Err(io::ErrorKind::NotFound.into()) };
    fs::copy(from, &path)?;
    // A copy of a read-only file is read-only.
    set_writable(&path)?;
    write_changes(&path, changes)?;
    keep_owner(&path, &metadata);
    fs::set_permissions(&path, metadata.permissions())?;
    fs::rename(&path, file)?;
    temporary.0 = None;
    Ok(())
}

fn write_changes(file: &Path, changes: &[Change]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    for (offset, bytes) in changes {
        file.seek(SeekFrom::Start(*offset))?;
        file.write_all(bytes)?;
    }
    Ok(())
}

fn create_temporary(folder: &Path, prefix: &str) -> io::Result<Temporary> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{prefix}{}-{number}", std::process::id()));
        match File::create_new(&path) {
            Ok(_) => return Ok(Temporary(Some(path))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Names the processes among which a process id is unique: those of one boot and one PID namespace. Containers that share a
/// directory do not see each other's processes.
fn process_space() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("{}.{digits}-", boot.get(..8).unwrap_or_default())
}

/// Removes what processes that were killed in the middle have left. Those of a living process are its own business.
fn remove_leftovers(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split('-').next());
        let Some(process) = process.and_then(|number| number.parse::<u32>().ok()) else { continue };
        if Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{process}")).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Under a second name it may be somebody's already: a cache's, for one.
#[cfg(unix)]
fn has_one_name(file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(file).is_ok_and(|about| about.nlink() == 1)
}

#[cfg(not(unix))]
fn has_one_name(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn set_writable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
#[allow(clippy::permissions_set_readonly_false)]
fn set_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions)
}

/// Before the mode is set: a change of owner takes rights away. Only root can, and only for root does it matter.
#[cfg(unix)]
fn keep_owner(path: &Path, metadata: &fs::Metadata) {
    use std::os::unix::fs::MetadataExt as _;
    let same = fs::metadata(path).is_ok_and(|new| (new.uid(), new.gid()) == (metadata.uid(), metadata.gid()));
    if !same {
        let _ = std::os::unix::fs::chown(path, Some(metadata.uid()), Some(metadata.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &fs::Metadata) {}

#[cfg(test)]
mod tests;
