//! Archives and folders: wheels, conda packages, tars, Debian packages, container images. [`walk_artifact`] hands on what in them may
//! be of interest to anybody who judges code: ELF files, GPU code by itself, the texts that describe a package, links.
//!
//! What an archive is its first bytes tell, not its name. A member is looked at by its first bytes, too; only one that is
//! wanted is read in whole, into a temporary file without a name. Whatever could be meant to harm (see [`bounds`]) ends the walk
//! with an error that names the archive and the member.

mod bounds;
mod folder;
mod image;
mod tape;
mod zipped;

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudaguard::elf::{self, Elf};
use cudaguard::mapped_file::{Contents, open_regular};
use cudaguard::{examined, kernels};

use bounds::{Budget, MOST_NESTED};

/// So much of a member is looked at to tell what it is.
const HEAD: usize = 4096;
/// A text that describes a package is never longer.
const LONGEST_TEXT: u64 = 4 << 20;

/// A member of an archive, or a file of a folder.
pub(crate) struct ArchiveMember {
    /// Its path from the archive's top, with `/`; behind `!` where it stands in an archive that is itself a member:
    /// `wheels/app.whl!app/lib.so`.
    pub(crate) name: String,
    pub(crate) content: Content,
}

/// What a member is.
pub(crate) enum Content {
    /// An ELF file, a static library, or GPU code by itself.
    Code(File),
    /// A text that describes a package: a wheel's METADATA or RECORD, conda's index.
    Text(String),
    /// An image's configuration, as JSON.
    Config(String),
    /// A link: to this member, by its path as in [`ArchiveMember::name`].
    Link(String),
    /// A member that may hold code and is not examined, with the reason.
    NotExamined(String),
}

/// A file that a subcommand examines, opened once.
pub(crate) enum Opened {
    /// One program, library or object.
    File(Arc<Contents>),
    /// Something that contains files.
    Archive(Archive),
}

/// An archive or a folder that is open.
pub(crate) struct Archive {
    path: PathBuf,
    source: Source,
}

enum Source {
    Folder,
    Stdin,
    File(File, ArchiveFormat),
}

/// What was walked.
pub(crate) struct Walked {
    /// In words: `wheel`, `tar archive`, `folder`.
    pub(crate) kind: &'static str,
    /// How many members there are, whatever they are.
    pub(crate) members: u64,
}

/// Who takes the members; several at a time may be handed on, in no order.
pub(crate) type Each<'a> = &'a (dyn Fn(ArchiveMember) -> Result<(), String> + Sync);

/// What the bytes at the head of a file say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveFormat {
    Zip,
    Tar,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
    Deb,
    Rpm,
}

impl ArchiveFormat {
    /// Whether it is one stream that a packer has packed.
    const fn is_packed(self) -> bool {
        matches!(self, Self::Gzip | Self::Bzip2 | Self::Xz | Self::Zstd)
    }

    fn from_magic(head: &[u8]) -> Option<Self> {
        let known: [(&[u8], Self); 7] = [
            (b"PK\x03\x04", Self::Zip),
            (b"PK\x05\x06", Self::Zip),
            (b"\x1f\x8b", Self::Gzip),
            (b"BZh", Self::Bzip2),
            (b"\xfd7zXZ\0", Self::Xz),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
            (b"\xed\xab\xee\xdb", Self::Rpm),
        ];
        let known = known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, form)| *form);
        known.or_else(|| head.starts_with(b"!<arch>\ndebian-binary").then_some(Self::Deb)).or_else(|| {
            let tar = head.get(257..262) == Some(b"ustar");
            tar.then_some(Self::Tar)
        })
    }
}

/// Opens what a subcommand examines: a file, an archive, a folder, or stdin by the name `-`.
///
/// # Errors
/// With the path, and why it cannot be read.
pub(crate) fn open(path: &Path) -> Result<Opened, String> {
    let archive = |source| Ok(Opened::Archive(Archive { path: path.to_owned(), source }));
    if path == Path::new("-") {
        return archive(Source::Stdin);
    }
    if path.is_dir() {
        return archive(Source::Folder);
    }
    let file = open_regular(path)?;
    let fail = |error: &io::Error| format!("{}: {error}", path.display());
    let start = read_head(&mut At { file: &file, at: 0 }).map_err(|error| fail(&error))?;
    if let Some(form) = form_of(&file, &start).map_err(|error| fail(&error))? {
        return archive(Source::File(file, form));
    }
    let contents = Contents::from_file(file, path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match examined::by_head(&name, &start) {
        Some(format) => Err(format!("{}: is {format}, which is not read", path.display())),
        None => Ok(Opened::File(Arc::new(contents))),
    }
}

/// What kind of archive a file with this head is.
fn form_of(file: &File, head: &[u8]) -> io::Result<Option<ArchiveFormat>> {
    match ArchiveFormat::from_magic(head) {
        // A program for the shell or Python may have a zip archive behind it: its directory is at the end.
        None if head.starts_with(b"#!") => Ok(ends_as_zip(file)?.then_some(ArchiveFormat::Zip)),
        form => Ok(form),
    }
}

/// The records at the end of a zip archive, and the longest comment behind them.
const END_OF_ZIP: u64 = 56 + 20 + 22 + 0xffff;

/// Whether a file ends with the directory of a zip archive.
fn ends_as_zip(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut end = Vec::new();
    At { file, at: length.saturating_sub(END_OF_ZIP) }.read_to_end(&mut end)?;
    Ok(end.windows(4).any(|bytes| bytes == b"PK\x05\x06"))
}

fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Hands on what stands in an archive or a folder.
///
/// # Errors
/// With the names of the archive and of the member that it is about.
pub(crate) fn walk_artifact(Archive { path, source }: Archive, each: Each<'_>) -> Result<Walked, String> {
    let budget = Budget::default();
    let archive = if matches!(source, Source::Stdin) { "stdin".to_owned() } else { path.display().to_string() };
    let of = ArchivePlace {
        archive: archive.clone(),
        prefix: String::new(),
        nested: 0,
        rooted: false,
        budget: &budget,
        each,
    };
    let kind = match source {
        Source::Folder => folder::walk_dir(&path, &of)?,
        Source::Stdin => {
            let file = spool_to_temp_file(&mut io::stdin().lock(), &budget).map_err(|error| of.error_for("", error))?;
            let start = read_head(&mut At { file: &file, at: 0 }).map_err(|error| of.error_for("", error))?;
            let form = form_of(&file, &start).map_err(|error| of.error_for("", error))?;
            let form = form
                .ok_or_else(|| of.error_for("", "is no archive that is known: expected zip, tar, Debian or conda"))?;
            walk_open_file(file, form, &path, &of)?
        }
        Source::File(file, form) => walk_open_file(file, form, &path, &of)?,
    };
    let members = budget.member_count();
    if members == 0 {
        return Err(format!("{archive}: is a {kind} that holds nothing"));
    }
    Ok(Walked { kind, members })
}

/// Where a member stands, and what all of them share.
struct ArchivePlace<'a> {
    /// The outermost archive, for messages.
    archive: String,
    /// What stands before the name of a member, `inner.whl!`.
    prefix: String,
    /// In how many archives this one stands.
    nested: usize,
    /// Whether its top is the root of a system, so that an absolute link stays within.
    rooted: bool,
    budget: &'a Budget,
    each: Each<'a>,
}

impl ArchivePlace<'_> {
    /// An error about a member; about the archive itself where it has no name.
    fn error_for(&self, member: &str, why: impl std::fmt::Display) -> String {
        let whole = format!("{}{member}", self.prefix);
        let whole = whole.trim_end_matches('!');
        if whole.is_empty() { format!("{}: {why}", self.archive) } else { format!("{}!{whole}: {why}", self.archive) }
    }

    fn hand_on(&self, member: &str, content: Content) -> Result<(), String> {
        self.budget.keep(self.prefix.len() + member.len()).map_err(|why| self.error_for("", why))?;
        (self.each)(ArchiveMember { name: format!("{}{member}", self.prefix), content })
    }

    /// What the archive `member` holds stands here.
    fn nested_in(&self, member: &str) -> Result<ArchivePlace<'_>, String> {
        if self.nested == MOST_NESTED {
            let why = format!("is an archive within {MOST_NESTED} others; so deep none is looked into");
            return Err(self.error_for(member, why));
        }
        // The two tars of a conda package are the package.
        let of_conda = member.contains(".tar.") && ["pkg-", "info-"].iter().any(|start| member.starts_with(start));
        let prefix = if of_conda { self.prefix.clone() } else { format!("{}{member}!", self.prefix) };
        let (archive, rooted) = (self.archive.clone(), false);
        Ok(ArchivePlace { archive, prefix, nested: self.nested + 1, rooted, budget: self.budget, each: self.each })
    }

    fn add_link(&self, member: &str, target: &str) -> Result<(), String> {
        let target = bounds::resolve_link(member, target, self.rooted).map_err(|why| self.error_for(member, why))?;
        self.hand_on(member, Content::Link(format!("{}{target}", self.prefix)))
    }

    /// Hands on a text that describes a package.
    fn text(&self, member: &str, text: &[u8]) -> Result<(), String> {
        self.budget.keep(text.len()).map_err(|why| self.error_for("", why))?;
        self.hand_on(member, Content::Text(String::from_utf8_lossy(text).into_owned()))
    }

    /// Looks at a member that is a file, and hands on what may be wanted of it. `stated`: the size that the archive gives.
    fn read_member(&self, member: &str, reader: &mut impl Read, stated: u64) -> Result<(), String> {
        let head = read_head(reader).map_err(|error| self.error_for(member, describe_io_error(&error)))?;
        let form = ArchiveFormat::from_magic(&head);
        let rest = &mut io::Read::chain(&head[..], reader);
        if self.is_foreign(member, &head, rest)? {
            return Ok(());
        }
        // Scripts are small, so the end of one is at hand.
        let script = head.starts_with(b"#!") && stated > 22;
        if !is_code(&head) && form.is_none() && !script && !is_package_metadata(member) {
            return Ok(());
        }
        if is_package_metadata(member) && form.is_none() && !is_code(&head) {
            let mut text = Vec::new();
            rest.take(LONGEST_TEXT)
                .read_to_end(&mut text)
                .map_err(|error| self.error_for(member, describe_io_error(&error)))?;
            return self.text(member, &text);
        }
        let file =
            spool_to_temp_file(rest, self.budget).map_err(|error| self.error_for(member, describe_io_error(&error)))?;
        let length = file.metadata().map_err(|error| self.error_for(member, error))?.len();
        if length != stated {
            return Err(self.error_for(member, format!("is said to have {stated} bytes, and has {length}")));
        }
        let form = form_of(&file, &head).map_err(|error| self.error_for(member, error))?;
        match form {
            Some(form) => self.archive(member, file, form),
            None if is_code(&head) => self.hand_on(member, Content::Code(file)),
            None => Ok(()),
        }
    }

    /// Hands on a file that is for another system or for other GPUs than NVIDIA's as not examined; says whether it is one.
    /// `rest`: all of its bytes.
    fn is_foreign(&self, member: &str, head: &[u8], rest: &mut impl Read) -> Result<bool, String> {
        let Some(format) = examined::by_head(member, head) else { return Ok(false) };
        // Launchers for Windows lie in every Python environment.
        let harmless = examined::is_windows_program(head)
            && !holds_trace_of_cuda(rest).map_err(|error| self.error_for(member, describe_io_error(&error)))?;
        if !harmless {
            self.hand_on(member, Content::NotExamined(format.to_owned()))?;
        }
        Ok(true)
    }

    /// Looks into a member that is an archive of this form, or packed.
    fn archive(&self, member: &str, file: File, form: ArchiveFormat) -> Result<(), String> {
        if form.is_packed() {
            match tape::packed(&file, form) {
                Ok(Packed::Other) => return Ok(()),
                Ok(Packed::Tar | Packed::Code) => {}
                Err(error) => {
                    return self.hand_on(member, Content::NotExamined(format!("it cannot be unpacked: {error}")));
                }
            }
        }
        walk_open_file(file, form, Path::new(member), &self.nested_in(member)?).map(drop)
    }
}

/// What a stream holds that one of the packers has packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    Tar,
    /// A file that may hold code.
    Code,
    Other,
}

/// Whether what is left to read names a library of NVIDIA's, or holds GPU code.
fn holds_trace_of_cuda(reader: &mut impl Read) -> io::Result<bool> {
    let mut piece = vec![0; 1 << 16];
    let mut kept = 0;
    loop {
        let length = reader.read(&mut piece[kept..])?;
        if length == 0 {
            return Ok(false);
        }
        let end = kept + length;
        if examined::has_trace_of_cuda(&piece[..end]) {
            return Ok(true);
        }
        kept = end.min(examined::LONGEST_TRACE);
        piece.copy_within(end - kept..end, 0);
    }
}

/// Whether a member with this head may hold host or GPU code.
fn is_code(head: &[u8]) -> bool {
    Elf::is_elf(head) || kernels::are_bare(head) || elf::is_archive(head) && ArchiveFormat::from_magic(head).is_none()
}

/// Whether a member of this name describes a package.
fn is_package_metadata(member: &str) -> bool {
    let mut parts = member.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match name {
        "METADATA" | "RECORD" => folder.ends_with(".dist-info"),
        "index.json" | "run_exports.json" => folder == "info",
        _ => folder == "conda-meta" && name.ends_with(".json"),
    }
}

/// Reads an archive of this form; says what it is. `path` is its name.
fn walk_open_file(
    mut file: File,
    form: ArchiveFormat,
    path: &Path,
    of: &ArchivePlace<'_>,
) -> Result<&'static str, String> {
    file.rewind().map_err(|error| of.error_for("", error))?;
    match form {
        ArchiveFormat::Zip => {
            let kind = zipped::walk_zip(&Arc::new(file), of)?;
            let wheel = path.extension().is_some_and(|ending| ending == "whl");
            Ok(if kind == "zip archive" && wheel { "wheel" } else { kind })
        }
        ArchiveFormat::Deb => tape::walk_deb(file, of),
        ArchiveFormat::Rpm => {
            Err(of.error_for("", "is an RPM package, which is not read: `rpm2archive` makes a tar of it"))
        }
        ArchiveFormat::Tar => {
            if let Some(files) = image::image_from_tar(&mut file) {
                return image::walk_tar(&file, &files, of);
            }
            file.rewind().map_err(|error| of.error_for("", error))?;
            tape::walk_tar(&file, form, of)
        }
        ArchiveFormat::Gzip | ArchiveFormat::Bzip2 | ArchiveFormat::Xz | ArchiveFormat::Zstd => {
            match tape::packed(&file, form) {
                Ok(Packed::Code | Packed::Other) => tape::walk_single(&file, form, path, of),
                // What cannot be unpacked says why when it is read.
                Ok(Packed::Tar) | Err(_) => tape::walk_tar(&file, form, of),
            }
        }
    }
}

/// A temporary file without a name that holds all of this.
fn spool_to_temp_file(reader: &mut impl Read, budget: &Budget) -> io::Result<File> {
    let mut file = tempfile::tempfile().map_err(|error| {
        io::Error::other(format!("no temporary file in {}: {error}", std::env::temp_dir().display()))
    })?;
    let mut piece = vec![0; 1 << 18];
    loop {
        let length = reader.read(&mut piece)?;
        if length == 0 {
            break;
        }
        budget.count_unpacked(length as u64)?;
        file.write_all(&piece[..length])?;
    }
    file.rewind()?;
    Ok(file)
}

/// What went wrong in reading, to people.
fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "is cut off".to_owned(),
        _ => error.to_string(),
    }
}

/// A file that several read at once, each where it is.
#[derive(Clone)]
struct At<F> {
    file: F,
    at: u64,
}

impl<F: std::ops::Deref<Target = File>> Read for At<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

impl<F: std::ops::Deref<Target = File>> io::Seek for At<F> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let to = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
            io::SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = to.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests;
