//! A member of an archive or directory: its GPU code, its requirements and the NVIDIA libraries in it.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use cudaguard::internal::cudnn;
use sha2::{Digest as _, Sha256};

pub(super) use crate::artifact::file_name;
use crate::binary::examined::Reason;
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::kernels::Kernels;
use crate::binary::loader::LoadFacts;
use crate::binary::mapped_file::Contents;
use crate::binary::pe::Pe;
use crate::binary::vendor_symbols::VendorSymbols;
use crate::family::opened_without_requirement;
use crate::family::{self, Member, Release, is_of_nvidia, version_in_file};
use crate::host::dry_run::{FileOpens, is_dll_name, is_of_program, reaches_cuda};
use crate::host::machine::Components;
use crate::host::machine::oldest_driver::{driver_needs, machine_with_gpu};
use crate::knowledge::vendor::{self, CUDART, CUDNN, Library, is_libcuda, plain_name};
use crate::linked::evidence::Evidence;
use cudaguard::internal::file_error::FileProblem;
use cudaguard::internal::finding::Code;
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::version::{CudaVersion, Version};
use object::elf::Machine;

/// What the dynamic linker reads in a member.
pub(super) struct MemberLoader {
    pub(super) name: String,
    pub(super) soname: Option<String>,
    /// What the dynamic linker of Linux reads.
    pub(super) facts: Arc<LoadFacts>,
    /// The contents of a dynamic linker, which contain its settings.
    pub(super) settings: Option<Vec<u8>>,
    pub(super) needed: Vec<String>,
    /// Those of them that come with a program.
    pub(super) wants: Vec<String>,
    /// True if it uses CUDA. Not determined without [`Self::wants`].
    pub(super) reaches_cuda: bool,
    /// The libraries that it opens by name.
    pub(super) opens: FileOpens,
    /// The libraries of NVIDIA that it names and may open, if nothing shows what it requires of them.
    pub(super) may_open: Vec<String>,
    pub(super) delay_loaded: Vec<String>,
    /// True if it loads GPU code that it does not contain.
    pub(super) loads_other_code: bool,
    kind: BinaryKind,
    pub(super) is_for_windows: bool,
    /// The processor that it is for, as an ELF file numbers it; `None` if it is for several.
    pub(super) processor: Option<Machine>,
    /// The SHA-256 of the file, if it was requested.
    pub(super) sha256: Option<String>,
}

impl MemberLoader {
    fn from_binary(name: &str, binary: &Binary) -> Self {
        let is_for_windows = binary.os == Some(TargetOs::Windows);
        let is_of_nvidia = is_of_nvidia(file_name(name)) || binary.soname.as_deref().is_some_and(is_of_nvidia);
        let wants = binary.needed.iter().filter(|name| is_of_program(name));
        let wants: Vec<String> = if is_of_nvidia { Vec::new() } else { wants.cloned().collect() };
        Self {
            name: name.to_owned(),
            reaches_cuda: !wants.is_empty() && reaches_cuda(binary),
            wants,
            soname: binary.soname.clone(),
            facts: Arc::new(LoadFacts::read(binary.data())),
            settings: (is_loader_name(file_name(name)) && binary.data().len() < LONGEST_LOADER)
                .then(|| binary.data().to_vec()),
            needed: binary.needed.clone(),
            opens: FileOpens::default(),
            may_open: Vec::new(),
            delay_loaded: binary.delay_loaded.clone(),
            loads_other_code: !is_of_nvidia
                && binary.imported().any(|name| family::is_of_nvidia(name))
                && binary.loads_other_code(),
            kind: binary.kind,
            is_for_windows,
            processor: Pe::parse(binary.data()).map_or(Some(binary.machine), |image| image.processor()),
            sha256: None,
        }
    }

    pub(super) fn is_program(&self) -> bool {
        self.kind == BinaryKind::Executable
    }

    /// Returns true if the dynamic linker loads it: it is no relocatable object or archive.
    pub(super) fn is_loadable(&self) -> bool {
        matches!(self.kind, BinaryKind::Executable | BinaryKind::SharedLibrary)
    }

    pub(super) fn is_archive(&self) -> bool {
        self.kind == BinaryKind::Archive
    }

    /// Returns true for a library of NVIDIA's, by its name.
    pub(super) fn is_of_nvidia(&self) -> bool {
        is_of_nvidia(file_name(&self.name)) || self.soname.as_deref().is_some_and(is_of_nvidia)
    }

    /// Returns true if it may open a library by this name.
    pub(super) fn may_open_library(&self, name: &str) -> bool {
        self.may_open.iter().any(|known| known == name) || self.opens.includes(name)
    }

    /// Returns true if the dynamic linker uses this file for a library of this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        if self.is_for_windows {
            return file_name(&self.name).eq_ignore_ascii_case(name);
        }
        file_name(&self.name) == name || self.soname.as_deref() == Some(name)
    }
}

/// A member with GPU code, a note or a library of NVIDIA.
pub(crate) struct ArtifactMember {
    pub(crate) name: String,
    pub(crate) binary: Binary,
    pub(crate) kernels: Kernels,
    pub(crate) components: Components,
    /// The symbols that it exchanges with NVIDIA's libraries.
    pub(crate) symbols: VendorSymbols,
    /// NVIDIA's libraries in the member, linked in or as the file itself, with the version if it is known.
    pub(crate) holds: Vec<(&'static Library, Option<String>)>,
    /// The version of the file, if it is a part of cuDNN.
    pub(super) cudnn_part: Option<Version>,
    /// How it fits the other members, if it is a library of NVIDIA's or needs one.
    pub(crate) family: Option<Member>,
}

impl ArtifactMember {
    /// Reads a member. Returns it if it has kernels, a note or libraries of NVIDIA; its search paths for libraries; and the reasons
    /// why parts of it were not examined.
    /// What matters of a member, and what it does for those that it loads.
    pub(super) fn from_file(
        name: &str,
        mut file: File,
        digests: bool,
    ) -> Result<(Option<Self>, MemberLoader, Vec<Reason>), FileProblem> {
        let sha256 = if digests { Some(sha256_of(&mut file)?) } else { None };
        let contents = Contents::from_file(file, Path::new(name)).map_err(|error| error.problem)?;
        let (part, loader, reasons) = Self::from_contents(name, Arc::new(contents), false)?;
        Ok((part.map(Self::into_member), MemberLoader { sha256, ..loader }, reasons))
    }

    /// Reads a file. `is_root`: it is kept whatever it contains.
    pub(super) fn from_contents(
        name: &str,
        contents: Arc<Contents>,
        is_root: bool,
    ) -> Result<(Option<Self>, MemberLoader, Vec<Reason>), FileProblem> {
        let path = Path::new(name);
        let read = if is_root { Binary::from_contents } else { Binary::with_kernels };
        let mut binary = read(path, contents).map_err(|error| error.problem)?;
        // A finding reports that the GPU code of a root cannot be read.
        let kernels = match binary.kernels() {
            Ok(kernels) => kernels.clone(),
            Err(_) if is_root => Kernels::default(),
            Err(error) => return Err(error.problem),
        };
        let evidence = Evidence::from_binary(&binary, &kernels);
        let not_examined = binary.not_examined();
        let reached = vendor::DESCRIBED.iter().any(|library| binary.linkage(library) != Linkage::None);
        let (own, mut loader) = (file_name(name), MemberLoader::from_binary(name, &binary));
        let needs = binary.imported().any(|name| is_of_nvidia(name));
        let family = Member::read(name, binary.data());
        let released = family.as_ref().is_some_and(|member| member.release.is_some());
        let soname = binary.soname.as_deref().unwrap_or(own);
        let matters = released || !kernels.entries().is_empty() || !binary.notes.is_empty() || reached || needs;
        let matters = matters || is_root || is_of_nvidia(own);
        loader.opens = FileOpens::read(soname, binary.data(), matters);
        if !matters {
            loader.may_open = opened_without_requirement(&binary);
            return Ok((None, loader, not_examined));
        }
        let components = Components::from_binary(path, &binary, &evidence);
        // Neither a note nor the code of the file shows what it requires of these libraries.
        if components.manifests.iter().all(|manifest| manifest.requires.is_empty()) {
            loader.may_open = opened_without_requirement(&binary);
        }
        let holds = vendor::DESCRIBED
            .into_iter()
            .filter_map(|library| held_library(library, name, &binary, &evidence))
            .collect();
        let symbols = VendorSymbols::from_binary(&binary);
        let part = cudnn::PARTS.iter().find(|part| part.file == plain_name(soname));
        let cudnn_part = part.and_then(|_| version_in_file(own, soname, binary.data())).map(|found| found.version);
        binary.close();
        Ok((
            Some(Self { name: name.to_owned(), binary, kernels, components, symbols, holds, cudnn_part, family }),
            loader,
            not_examined,
        ))
    }

    /// Drops what only the answer for a file itself reports.
    pub(super) fn into_library(mut self) -> Self {
        self.components.findings.retain(|finding| finding.code != Code::NoManifest);
        self
    }

    /// Does the same as [`Self::into_library`], and names its requirements after the member.
    pub(super) fn into_member(self) -> Self {
        let mut member = self.into_library();
        member.name.clone_into(&mut member.components.file);
        for manifest in &mut member.components.manifests {
            // A component without a manifest is named after its file.
            if manifest.target.is_empty() && manifest.component.name == file_name(&member.name) {
                member.name.clone_into(&mut manifest.component.name);
            }
        }
        member
    }

    /// Returns the version of the cuDNN in it, if it is known.
    pub(super) fn cudnn_version(&self) -> Option<Version> {
        let (_, version) = self.holds.iter().find(|(library, _)| library.key == CUDNN.key)?;
        version.as_ref()?.parse().ok()
    }

    /// Returns true for libcuda, which is a part of the driver.
    pub(super) fn is_driver(&self) -> bool {
        is_libcuda(file_name(&self.name))
    }

    /// Returns the library that the member is, if it is one that NVIDIA releases together with others.
    pub(super) fn release(&self) -> Option<&Release> {
        self.family.as_ref()?.release.as_ref()
    }

    /// Returns the version of the library that the member is.
    pub(crate) fn released_version(&self) -> Option<String> {
        Some(self.release()?.version.as_ref()?.version.to_string())
    }

    /// Returns true if it contains a readable manifest.
    pub(crate) fn is_guarded(&self) -> bool {
        self.binary.manifests().any(|note| note.is_ok())
    }

    /// Returns true for a library that NVIDIA publishes, which no project compiles.
    pub(crate) fn is_of_vendor(&self) -> bool {
        self.kernels.is_published() || !self.kernels.has_kernels() && self.is_of_nvidia()
    }

    /// Returns the CUDA version that a driver must support for it on any GPU.
    pub(super) fn least_driver(&self) -> Option<CudaVersion> {
        driver_needs(std::slice::from_ref(&self.components), &machine_with_gpu(None)).driver.map(|driver| driver.cuda)
    }

    /// Returns true if it requires anything of a machine.
    pub(super) fn has_requirements(&self) -> bool {
        self.components.manifests.iter().any(|manifest| !manifest.requires.is_empty())
    }

    /// Returns true for a library of NVIDIA, by its name. A copy may have another one than the library.
    pub(crate) fn is_of_nvidia(&self) -> bool {
        is_of_nvidia(file_name(&self.name)) || self.binary.soname.as_deref().is_some_and(is_of_nvidia)
    }

    /// Describes the member briefly.
    pub(super) fn describe(&self) -> String {
        let mut reported = Vec::new();
        if !self.kernels.entries().is_empty() {
            let targets: Vec<String> = self.kernels.built_targets().iter().map(ToString::to_string).collect();
            reported.push(if targets.is_empty() { "GPU code without kernels".to_owned() } else { targets.join(" ") });
        }
        for (library, version) in &self.holds {
            let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            reported.push(format!("{}{version} inside", library.name));
        }
        let is_held = |release: &&Release| self.holds.iter().any(|(library, _)| library.key == release.of.key);
        if let Some(release) = self.release().filter(|release| !is_held(release)) {
            reported.push(release.to_string());
        }
        let needed: Vec<&str> =
            self.binary.needed.iter().map(String::as_str).filter(|name| is_of_nvidia(name)).collect();
        if !needed.is_empty() {
            reported.push(format!("needs {}", needed.join(" ")));
        }
        if self.is_driver() {
            reported.push("part of the driver".to_owned());
        }
        if self.is_guarded() {
            reported.push("guarded".to_owned());
        } else if !self.components.manifests.is_empty() && !self.is_of_vendor() {
            reported.push("not guarded".to_owned());
        }
        if reported.is_empty() { self.binary.kind.to_string() } else { reported.join("; ") }
    }
}

/// Maximum length of a dynamic linker in bytes. That of glibc has 250 kB, and that of musl, which contains the C library, 650 kB.
const LONGEST_LOADER: usize = 4 << 20;

/// Returns true for the file name of a dynamic linker.
fn is_loader_name(name: &str) -> bool {
    (name.starts_with("ld-") || name.starts_with("ld64.") || name.starts_with("ld.")) && name.contains(".so")
}

/// Returns the SHA-256 of a whole file in hexadecimal, and rewinds it.
pub(crate) fn sha256_of(file: &mut File) -> std::io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 18];
    file.rewind()?;
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => digest.update(&piece[..length]),
        }
    }
    file.rewind()?;
    Ok(digest.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Returns a file name as the dynamic linker compares it. Windows ignores case.
pub(super) fn library_name(path: &str) -> Cow<'_, str> {
    let name = file_name(path);
    if is_dll_name(name) { Cow::Owned(name.to_ascii_lowercase()) } else { Cow::Borrowed(name) }
}

/// Returns true if two members are in the same directory.
pub(super) fn are_adjacent(one: &str, other: &str) -> bool {
    one.strip_suffix(file_name(one)) == other.strip_suffix(file_name(other))
}

/// Returns the library, with its version, if this file is that NVIDIA library or has it linked in.
fn held_library(
    library: &'static Library,
    name: &str,
    binary: &Binary,
    evidence: &Evidence,
) -> Option<(&'static Library, Option<String>)> {
    let own = file_name(name);
    let of_code = || evidence.cudart.first().filter(|_| library.key == CUDART.key).map(ToString::to_string);
    let of_file = || version_in_file(own, own, binary.data()).map(|found| found.version.to_string());
    if library.parts.iter().any(|part| part.file == plain_name(own) && !part.symbol.is_empty()) {
        return Some((library, Some(of_file()?)));
    }
    if library.is_named(own) {
        return Some((library, of_file().or_else(of_code)));
    }
    let linked_in = binary.linkage(library) == Linkage::Static && binary.kind != BinaryKind::GpuCode;
    let of_text = || binary.version_inside(library).map(|version| version.to_string());
    linked_in.then(|| (library, of_text().or_else(of_code)))
}
