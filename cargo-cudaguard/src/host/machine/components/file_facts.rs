//! What a manifest or a file states about the libraries and the GPU code that it uses.

use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::kernels::Kernels;
use crate::binary::manifest_decoder::Note;
use crate::family::is_installed;
use crate::knowledge::vendor::{self, CUDART, CUDNN};
use cudaguard::internal::cudnn;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::manifest::{Component, Linkage, Manifest, REVISION, Requirement};
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::Toolchain;
use cudaguard::internal::version::{CudaVersion, Version};

use super::Needed;

pub(super) fn cuda_of_row(row: &Requirement) -> Option<CudaVersion> {
    match row {
        Requirement::Driver { cuda, .. } => Some(*cuda),
        _ => None,
    }
}

/// Returns the soname of the cuDNN that a component requires.
pub(crate) fn cudnn_soname(manifest: &Manifest) -> Option<&str> {
    manifest.requires.iter().find_map(|row| match row {
        Requirement::Library { soname, .. } => Some(soname.as_str()),
        _ => None,
    })
}

/// Returns the names under which a component opens cuDNN, in its order. `None` if it does not open it by name.
pub(crate) fn opened_cudnn(manifest: &Manifest) -> Option<Vec<String>> {
    manifest.requires.iter().find(|row| matches!(row, Requirement::Library { linkage: Linkage::Dlopened, .. }))?;
    manifest.names_of_opened(cudnn::KEY).or_else(|| Some(vec![cudnn_soname(manifest)?.to_owned()]))
}

/// Returns the soname of the cuDNN without which the dynamic linker does not start a component.
pub(super) fn linked_cudnn(manifest: &Manifest) -> Option<String> {
    manifest.requires.iter().find_map(|row| match row {
        Requirement::Library { built, linkage: Linkage::Linked, .. } => {
            Some(format!("{}.{}", cudnn::LINK_NAME, built.major))
        }
        _ => None,
    })
}

/// Returns true for the requirements on cuDNN and its parts.
pub(crate) fn is_cudnn_row(row: &Requirement) -> bool {
    matches!(row, Requirement::Library { .. } | Requirement::Part { .. })
}

/// Returns the libraries of NVIDIA that the file needs, except cuDNN. Libraries that wheel repair renamed are omitted, because they
/// are next to the file that needs them.
pub(super) fn needed_libraries(binary: &Binary) -> Vec<Needed> {
    // Windows searches the directory of the program, and those that the program adds, for the DLLs of a DLL.
    let is_dll = binary.os == Some(TargetOs::Windows) && binary.kind == BinaryKind::SharedLibrary;
    let has_search_path = binary.rpath.is_some() || binary.runpath.is_some() || is_dll;
    binary
        .needed
        .iter()
        .filter(|name| {
            // A DLL is found by its name whether or not a tool renamed it.
            let is_plain = binary.os == Some(TargetOs::Windows) || vendor::plain_name(name) == name.as_str();
            is_installed(name) && is_plain || vendor::is_libcuda(name)
        })
        .map(|name| Needed { soname: name.clone(), by: None, has_search_path, module: None, foreign: None })
        .collect()
}

/// Returns the cudart that a file with kernels opens by name, if its search path names NVIDIA's package of it. If the path does not
/// contain the release, it is of the major that compiled the kernels. A stub without kernels may open the cudart of any major
/// (tilelang 0.1.15).
pub(super) fn opened_cudart(binary: &Binary, kernels: &Kernels) -> Option<CudaVersion> {
    if !kernels.has_kernels() {
        return None;
    }
    let major = vendor::cudart_in_paths(binary.runpath.as_deref().or(binary.rpath.as_deref())?)?;
    let major = Some(major).filter(|major| *major > 0).or_else(|| kernels.compiled_by())?;
    Some(CudaVersion::new(major, 0))
}

pub(super) fn uses_cuda(binary: &Binary, kernels: Option<&Kernels>) -> bool {
    kernels.is_some_and(Kernels::has_kernels)
        || binary.linkage(&CUDART) != Linkage::None
        || vendor::DESCRIBED.iter().any(|library| binary.linkage(library) == Linkage::Linked)
        || binary.needed.iter().any(|name| vendor::is_libcuda(name) || is_installed(name))
}

/// Returns the manifest of a file without a note, before its code is examined. For a linked library, the soname shows
/// the major, and the newest function that the file binds shows the oldest release.
pub(super) fn manifest_without_note(name: &str, binary: &Binary) -> Manifest {
    let mut manifest =
        Manifest::from_build(Component::unrecorded(name), "", "", &Policy::default(), &Toolchain::default());
    let linked = binary.linkage(&CUDNN) == Linkage::Linked;
    if let Some(major) = binary.needed.iter().find_map(|name| CUDNN.major(name)).filter(|_| linked) {
        let newest = binary.bound.iter().find(|bound| CUDNN.is_named(&bound.soname)).map(|bound| bound.first);
        let version = newest.unwrap_or(Version::new(major, 0, 0));
        manifest.require_cudnn(version);
    }
    manifest
}

/// Reports a note of a later cudaguard, of which unknown parts are not checked.
pub(super) fn newer_note_finding(note: &Note) -> Option<Finding> {
    let values = Values::default().with("component", &note.manifest.component);
    if u32::from(note.revision) > REVISION {
        return Some(MessageTemplate::NoteNewer.to_finding(&values));
    }
    let kinds: Vec<String> = note.unknown_rows.iter().map(u16::to_string).collect();
    (!kinds.is_empty()).then(|| MessageTemplate::NoteNewerRows.to_finding(&values.with("kinds", kinds.join(", "))))
}
