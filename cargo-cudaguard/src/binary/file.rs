//! Static facts about a linked file, read without running it: kind, notes, needed libraries, and how it reaches
//! NVIDIA's libraries. Reads executables, shared libraries, objects and static archives.

mod contents;
mod strings;

pub(crate) use contents::{
    constants_after, exported_version, has_code_of, notes_in, only_value, texts_starting_with, version_inside,
    versions_after,
};

use crate::binary::ar;
use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::binary::dlopen_note;
use crate::binary::elf::Elf;
use crate::binary::examined::{self, Reason};
use crate::binary::kernels::{self, Kernels};
use crate::binary::manifest_decoder::{self, DamagedNote};
use crate::binary::mapped_file::Contents;
use crate::binary::pe::{CoffObject, ImportedDll, Pe, VersionResource};
use crate::binary::symbols::{self, Bound};
use crate::knowledge::vendor::{self, CodeMark, Library};
use cudaguard::internal::file_error::{FileError, FileProblem};
use cudaguard::internal::manifest::Linkage;
use cudaguard::internal::note;
use cudaguard::internal::version::Version;
use memchr::memmem;
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_CUDA, EM_NONE, ET_CORE, ET_DYN, ET_EXEC, ET_REL, Machine,
};
use strings::FileStrings;

/// Owner of cudaguard's notes (MANIFEST.md).
const OWNER: &str = "cudaguard";

/// Limits far above what real files contain. In a damaged file, notes may overlap, which no linker writes; the limits
/// keep them from filling the memory. A note that is longer than the format allows is damaged, and `manifest_decoder::decode`
/// reports this for its truncated bytes too.
const MOST_NOTES: usize = 4096;
const LONGEST_NOTE: usize = 2 * note::SIZE;
/// Functions of the driver and NVRTC that every program needs to run code on a GPU. The shim contains none of these
/// names.
const CALLED: [&str; 7] = [
    "cuLaunchKernel",
    "cuModuleLoad",
    "cuLibraryLoad",
    "cuDevicePrimaryCtxRetain",
    "cuCtxCreate",
    "cuMemAlloc",
    "nvrtcCompileProgram",
];

/// The operating system whose loader takes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetOs {
    /// ELF files.
    Linux,
    /// PE files.
    Windows,
}

impl TargetOs {
    /// Returns the name in the platform of a host file: `windows` in `x86_64-windows`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryKind {
    /// A program, position-independent or not.
    Executable,
    /// A shared library.
    SharedLibrary,
    /// A relocatable object.
    Object,
    /// A static archive, including a Rust library.
    Archive,
    /// A file that is itself a fatbin, a cubin, PTX or LTO-IR.
    GpuCode,
}

impl fmt::Display for BinaryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Executable => "executable",
            Self::SharedLibrary => "shared library",
            Self::Object => "object",
            Self::Archive => "static archive",
            Self::GpuCode => "GPU code",
        })
    }
}

/// A cudaguard note in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundNote {
    /// Offset of its descriptor in the file.
    pub offset: u64,
    /// Offsets of equal descriptors: a file for Windows has one for each time that an object was linked.
    pub copies: Vec<u64>,
    /// The archive member that contains it; `None` outside of archives.
    pub member: Option<String>,
    /// The bytes of its descriptor.
    pub descriptor: Vec<u8>,
}

impl FoundNote {
    /// Decodes the note. The error describes the damage.
    pub fn decode(&self) -> Result<manifest_decoder::Note, DamagedNote> {
        manifest_decoder::decode(&self.descriptor)
    }
}

/// A file that a command examines. It is opened once, and read only as far as the command needs.
#[derive(Clone, Debug)]
pub struct Binary {
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of the file.
    data: Arc<Contents>,
    /// GPU code of the file, read on first use.
    kernels: OnceCell<Result<Kernels, FileError>>,
    /// Kind of the file.
    pub kind: BinaryKind,
    /// For which operating system; `None` for GPU code.
    pub os: Option<TargetOs>,
    /// Processor of the file ([`Machine`]). In an archive, that of its first object; 0 if there is none.
    pub machine: Machine,
    /// True for a 64-bit file.
    pub class64: bool,
    /// cudaguard's notes, in file order.
    pub notes: Vec<FoundNote>,
    /// The libraries in `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// The libraries that a PE file loads at the first call of one of their functions.
    pub delay_loaded: Vec<String>,
    /// The version that a PE file's maker recorded in it.
    pub version_resource: Option<VersionResource>,
    /// Libraries that the file opens by name according to its `.note.dlopen`.
    pub opened: Vec<dlopen_note::DlopenEntry>,
    /// `DT_SONAME` of a shared library.
    pub soname: Option<String>,
    /// Returns `DT_RPATH`, as written.
    pub rpath: Option<String>,
    /// Returns `DT_RUNPATH`, as written.
    pub runpath: Option<String>,
    /// The program interpreter (`PT_INTERP`).
    pub interpreter: Option<String>,
    /// How the file reaches each library of [`vendor::DESCRIBED`], in that order.
    reaches: [Linkage; vendor::COUNT],
    /// For each NVIDIA library, the newest function that the file binds.
    pub bound: Vec<Bound>,
    /// Archive members that are not ELF objects, or that a thin archive only names: (name, reason).
    pub unread: Vec<(String, Reason)>,
    /// Damage: a table or section that is not within the file. The rest of the file is read.
    pub damage: Option<String>,
    /// Parts that were not examined and may contain GPU code, without those that only the kernels show.
    unexamined: Vec<Reason>,
}

impl Binary {
    /// Opens and reads a file.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::from_contents(path, Arc::new(Contents::open(path)?))
    }

    /// Reads a file that is already open.
    pub fn from_contents(path: &Path, data: Arc<Contents>) -> Result<Self, FileError> {
        let mut binary = Self::empty(path, data);
        binary.parse().map_err(|problem| FileError::read(path, problem))?;
        Ok(binary)
    }

    /// Reads a file that is already open, and its GPU code. The search for GPU code maps large parts of the file at
    /// once, so it runs first.
    pub fn with_kernels(path: &Path, data: Arc<Contents>) -> Result<Self, FileError> {
        let mut binary = Self::empty(path, data);
        let _ = binary.kernels.set(Ok(kernels::read_contents(path, &binary.data)?));
        binary.parse().map_err(|problem| FileError::read(path, problem))?;
        Ok(binary)
    }

    fn empty(path: &Path, data: Arc<Contents>) -> Self {
        Self {
            path: path.to_owned(),
            data,
            kernels: OnceCell::new(),
            kind: BinaryKind::Archive,
            os: None,
            machine: EM_NONE,
            class64: false,
            notes: Vec::new(),
            needed: Vec::new(),
            delay_loaded: Vec::new(),
            version_resource: None,
            opened: Vec::new(),
            soname: None,
            rpath: None,
            runpath: None,
            interpreter: None,
            reaches: [Linkage::None; vendor::COUNT],
            bound: Vec::new(),
            unread: Vec::new(),
            damage: None,
            unexamined: Vec::new(),
        }
    }

    fn parse(&mut self) -> Result<(), FileProblem> {
        let data = &*Arc::clone(&self.data);
        if ar::is_archive(data) {
            self.os = Some(TargetOs::Linux);
            self.read_archive(data)?;
            self.unexamined = examined::unexamined_parts_of_archive(&self.unread);
            self.unexamined.extend(self.damage.clone().map(Reason::from));
            return Ok(());
        }
        if kernels::are_bare(data) {
            (self.kind, self.machine) = (BinaryKind::GpuCode, EM_CUDA);
            return Ok(());
        }
        if Pe::is_pe(data) {
            self.read_pe(&Pe::parse(data)?);
            return Ok(());
        }
        if !data.is_empty() && !Elf::is_elf(data) {
            return Err(kernels::describe_unknown_form(data));
        }
        let elf = Elf::parse(data)?;
        self.os = Some(TargetOs::Linux);
        self.kind = match elf.kind {
            ET_EXEC => BinaryKind::Executable,
            ET_DYN if is_program(&elf) => BinaryKind::Executable,
            ET_DYN => BinaryKind::SharedLibrary,
            ET_REL => BinaryKind::Object,
            ET_CORE => return Err(FileProblem::unsupported("is a core dump")),
            other => {
                let what = format!("is an ELF file of type {other}; expected a program, a library or an object");
                return Err(FileProblem::unsupported(what));
            }
        };
        (self.machine, self.class64) = (elf.machine, elf.is_64_bit);
        self.needed = elf.dynamic_texts(DT_NEEDED).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        self.opened = dlopen_note::read_notes(&elf);
        self.soname = elf.soname().map(str::to_owned);
        self.rpath = elf.dynamic_text(DT_RPATH).map(str::to_owned);
        self.runpath = elf.dynamic_text(DT_RUNPATH).map(str::to_owned);
        self.interpreter = elf.interpreter().map(str::to_owned);
        self.damage = elf.find_damage();
        self.notes = find_notes(&elf, 0, None);
        self.reaches = linkages(&elf);
        self.bound = symbols::newest_bound(&elf);
        self.unexamined = examined::unexamined_parts_of_elf(&elf);
        Ok(())
    }

    fn read_pe(&mut self, image: &Pe<'_>) {
        self.kind = if image.is_dll() { BinaryKind::SharedLibrary } else { BinaryKind::Executable };
        self.os = Some(TargetOs::Windows);
        (self.machine, self.class64) = (image.machine(), image.is_64_bit());
        let imports = image.imports();
        for dll in &imports {
            let names = if dll.is_delayed { &mut self.delay_loaded } else { &mut self.needed };
            names.push(dll.name.to_owned());
        }
        self.soname = image.dll_name().map(str::to_owned);
        self.version_resource = image.version();
        self.damage = image.find_damage();
        let strings = FileStrings::from_pe(image);
        self.reaches = vendor::DESCRIBED.map(|library| detect_dll_linkage(library, &imports, &strings));
        self.bound = symbols::newest_imported(&imports);
        self.unexamined = examined::unexamined_parts_of_pe(image, &|| examined::has_trace_of_cuda(&self.data));
        self.notes = find_pe_notes(image);
    }

    /// Reads only the notes of a linked file or an object, which is faster than [`Binary::read`].
    pub fn notes_of(path: &Path) -> Result<Vec<FoundNote>, FileError> {
        notes_in(&Contents::open(path)?).map_err(|problem| FileError::read(path, problem))
    }

    /// Returns the contents of the file.
    pub fn data(&self) -> &Arc<Contents> {
        &self.data
    }

    /// Returns the GPU code of the file.
    ///
    /// # Errors
    /// The path and the reason, if the format of the file cannot contain GPU code.
    pub fn kernels(&self) -> Result<&Kernels, FileError> {
        self.kernels.get_or_init(|| kernels::read_contents(&self.path, &self.data)).as_ref().map_err(Clone::clone)
    }

    /// Returns the parts that were not examined and may contain GPU code, with the reason. Damaged GPU code counts:
    /// nothing shows what it was.
    pub fn not_examined(&self) -> Vec<Reason> {
        let mut reasons = self.unexamined.clone();
        for damage in self.kernels().map(Kernels::warnings).unwrap_or_default() {
            let damage = Reason::from(damage.as_str());
            if !reasons.contains(&damage) {
                reasons.push(damage);
            }
        }
        reasons
    }

    /// Returns the version of a library whose code is in this file, from the text that the library contains.
    pub fn version_inside(&self, library: &Library) -> Option<Version> {
        version_inside(library, &self.data)
    }

    /// Returns true if the constants of this file contain these bytes, as they do for a function that the file looks up by
    /// name.
    pub fn holds_constant(&self, bytes: &[u8]) -> Result<bool, FileError> {
        Ok(self.strings()?.contains_bytes(bytes))
    }

    /// Drops the contents of the file; the facts that were read remain.
    pub fn close(&mut self) {
        self.data = Arc::new(Contents::from(Vec::new()));
    }

    fn read_archive(&mut self, data: &[u8]) -> Result<(), FileProblem> {
        let mut objects = 0;
        for member in ar::archive_members(data)? {
            let member = match member {
                Ok(member) => member,
                Err(error) => {
                    self.damage = Some(error.to_string());
                    break;
                }
            };
            let name = member.name.into_owned();
            let Some(bytes) = member.data else {
                self.unread.push((name, "the archive is thin, so its members are separate files".into()));
                continue;
            };
            if let Some(object) = CoffObject::parse(bytes) {
                self.os = Some(TargetOs::Windows);
                (self.machine, self.class64) = (self.machine.max(object.machine), true);
                continue;
            }
            let elf = match Elf::parse(bytes) {
                Ok(elf) => elf,
                Err(error) => {
                    if examined::has_trace_of_cuda(bytes) {
                        self.unread.push((name, error.to_string().into()));
                    }
                    continue;
                }
            };
            for reason in examined::unexamined_parts_of_elf(&elf) {
                self.unread.push((name.clone(), reason));
            }
            if objects == 0 {
                (self.machine, self.class64) = (elf.machine, elf.is_64_bit);
            }
            objects += 1;
            self.notes.extend(find_notes(&elf, member.offset, Some(&name)));
            for (known, here) in self.reaches.iter_mut().zip(linkages(&elf)) {
                *known = stronger_linkage(*known, here);
            }
        }
        Ok(())
    }

    /// Returns how the file reaches this library.
    pub fn linkage(&self, library: &Library) -> Linkage {
        let at = vendor::DESCRIBED.iter().position(|known| known.key == library.key);
        at.map_or(Linkage::None, |at| self.reaches[at])
    }

    /// Returns the libraries that the linker bound: those that load with the file, then the delay-loaded ones.
    pub fn imported(&self) -> impl Iterator<Item = &String> {
        self.needed.iter().chain(&self.delay_loaded)
    }

    /// Returns how the build bound this library: the linker also binds a delay-loaded DLL.
    pub fn linkage_in_build(&self, library: &Library) -> Linkage {
        let is_delayed = self.delay_loaded.iter().any(|name| library.is_named(name));
        if is_delayed { Linkage::Linked } else { self.linkage(library) }
    }

    /// Returns true if anything other than GPU code shows that the file uses CUDA: an NVIDIA library that it needs,
    /// contains or opens, or the names of functions that it looks up.
    ///
    /// # Errors
    /// The reason why the file cannot be parsed.
    pub fn reaches_cuda(&self) -> Result<bool, FileError> {
        let bound = self.bound.iter().map(|bound| bound.soname.as_str());
        let mut names = self.imported().map(String::as_str).chain(bound);
        if names.any(|name| vendor::is_beside_driver(name) || vendor::is_libcuda(name))
            || self.reaches.iter().any(|linkage| *linkage != Linkage::None)
        {
            return Ok(true);
        }
        self.names_functions()
    }

    /// Returns true if the file names functions of the driver or of NVRTC, which it may look up in a library that it opens.
    ///
    /// # Errors
    /// The reason why the file cannot be parsed.
    pub(crate) fn names_functions(&self) -> Result<bool, FileError> {
        Ok(self.strings()?.find_first_of_each(&CALLED).iter().any(Option::is_some))
    }

    /// Returns true if the file loads GPU code that it neither contains nor compiles: only the program knows where it is.
    pub(crate) fn loads_other_code(&self) -> bool {
        const LOADERS: [&str; 3] = ["cuModuleLoad", "cuLibraryLoad", "cudaLibraryLoad"];
        let imports = Elf::parse(self.data()).is_ok_and(|elf| {
            elf.undefined_symbols().any(|symbol| LOADERS.iter().any(|start| symbol.starts_with(start)))
        });
        imports
            && memmem::find(self.data(), b"nvrtc").is_none()
            && self.kernels().is_ok_and(|kernels| kernels.entries().is_empty())
    }

    fn strings(&self) -> Result<FileStrings<'_>, FileError> {
        FileStrings::from_bytes(&self.data).map_err(|problem| FileError::read(&self.path, problem))
    }

    /// Decodes each note. An item is an error if the note is damaged.
    pub fn manifests(&self) -> impl Iterator<Item = Result<manifest_decoder::Note, DamagedNote>> + '_ {
        self.notes.iter().map(FoundNote::decode)
    }
}

fn stronger_linkage(one: Linkage, other: Linkage) -> Linkage {
    let strongest_first = [Linkage::Static, Linkage::Linked, Linkage::Dlopened, Linkage::Unknown];
    strongest_first.into_iter().find(|linkage| [one, other].contains(linkage)).unwrap_or(Linkage::None)
}

/// Returns true if a file of type `ET_DYN` is a program. Linkers before 2016 do not set the flag; a file without it is
/// a program if it has an interpreter and no soname (libc.so.6 has both).
fn is_program(elf: &Elf<'_>) -> bool {
    elf.has_flag(DT_FLAGS_1, DF_1_PIE.0) || (elf.interpreter().is_some() && elf.soname().is_none())
}

fn find_notes(elf: &Elf<'_>, base: u64, member: Option<&str>) -> Vec<FoundNote> {
    elf.notes()
        .filter(|note| note.owner == OWNER && note.kind == note::TYPE)
        // The object of a guard that is not written yet.
        .filter(|note| elf.kind != ET_REL || note.desc.iter().any(|byte| *byte != 0))
        .take(MOST_NOTES)
        .map(|note| FoundNote {
            offset: base + note.offset,
            copies: Vec::new(),
            member: member.map(str::to_owned),
            descriptor: note.desc[..note.desc.len().min(LONGEST_NOTE)].to_owned(),
        })
        .collect()
}

fn find_pe_notes(image: &Pe<'_>) -> Vec<FoundNote> {
    let notes = image.notes().into_iter().take(MOST_NOTES);
    notes
        .map(|note| FoundNote {
            offset: note.offsets[0],
            copies: note.offsets[1..].to_owned(),
            member: None,
            descriptor: note.descriptor[..note.descriptor.len().min(LONGEST_NOTE)].to_owned(),
        })
        .collect()
}

fn linkages(elf: &Elf<'_>) -> [Linkage; vendor::COUNT] {
    let text = (elf.kind != ET_REL).then(|| FileStrings::from_elf(elf));
    // Some libraries define half a million symbols in addition to those that they import.
    let wanted: Vec<&str> = elf.undefined_symbols().collect();
    vendor::DESCRIBED.map(|library| detect_linkage(library, elf, &wanted, text.as_ref()))
}

/// Returns how a file, stripped or not, reaches a library. `None`: the file contains no name of the library's functions
/// or status codes, so no code in it calls the library. `Unknown`: it contains such a name, but nothing shows how it
/// gets the library.
///
/// A program that calls `dlsym` contains the names of the functions, each terminated by NUL. The shim of a guarded file
/// contains the file name of cuDNN and the name of its version function, and calls `dlopen`; these are not evidence.
fn detect_linkage(library: &Library, elf: &Elf<'_>, wanted: &[&str], text: Option<&FileStrings<'_>>) -> Linkage {
    let traces = &library.traces;
    if elf.needed().iter().any(|name| library.is_named(name)) {
        return Linkage::Linked;
    }
    // The file imports the function, but nothing names the library: an object, or a library whose users link the
    // dependency.
    if wanted.iter().any(|name| {
        traces.functions.is_some_and(|start| name.starts_with(start)) || text.is_none() && traces.wanted.contains(name)
    }) {
        return Linkage::Unknown;
    }
    let Some(text) = text else { return Linkage::None };
    detect_in_strings(library, text, &[traces.inside], opens_libraries(elf, wanted))
}

/// Detects the linkage of a library in a PE file, which names the DLL of each function that it imports. `Dlopened` if it loads the
/// DLL at the first call.
fn detect_dll_linkage(library: &Library, imports: &[ImportedDll<'_>], text: &FileStrings<'_>) -> Linkage {
    if let Some(dll) = imports.iter().find(|dll| library.is_named(dll.name)) {
        return if dll.is_delayed { Linkage::Dlopened } else { Linkage::Linked };
    }
    let opens = imports.iter().flat_map(|dll| &dll.functions).any(|name| name.starts_with("LoadLibrary"));
    detect_in_strings(library, text, library.traces.inside_pe, opens)
}

/// Detects a library that a file does not need by what its constants contain. `opens`: the file can load libraries by name.
fn detect_in_strings(library: &Library, text: &FileStrings<'_>, inside: &[&[CodeMark]], opens: bool) -> Linkage {
    let traces = &library.traces;
    // Most files contain neither, and their constants may take hundreds of megabytes, so one search for each comes
    // first.
    let answers = traces.answers.is_some_and(|start| text.contains_bytes(start.as_bytes()));
    if !answers && traces.functions.is_some_and(|start| !text.contains_bytes(start.as_bytes())) {
        return Linkage::None;
    }
    if inside.iter().any(|marks| marks.iter().all(|mark| text.contains_mark(mark))) {
        return Linkage::Static;
    }
    if opens && text.contains_bytes(format!("{}\0", traces.opened_for).as_bytes()) {
        return Linkage::Dlopened;
    }
    let Some(start) = traces.functions else { return Linkage::None };
    let asked = traces.getter.strip_prefix(start).unwrap_or_default();
    let has_function = text.occurrences(start.as_bytes()).any(|behind| {
        behind.first().is_some_and(u8::is_ascii_uppercase)
            && (asked.is_empty() || !behind.starts_with(asked.as_bytes()))
    });
    if answers || has_function { Linkage::Unknown } else { Linkage::None }
}
/// Returns true if the file can load libraries by name at run time.
fn opens_libraries(elf: &Elf<'_>, wanted: &[&str]) -> bool {
    !elf.is_dynamic() || wanted.iter().any(|name| ["dlopen", "dlmopen"].contains(name))
}

#[cfg(test)]
mod tests;
