//! Reader for archives and directories: wheels, conda packages, tars, Debian packages and container images.
//! [`walk_artifact`] passes on the members that a check may need: ELF files, GPU code, the texts that describe a
//! package, and links.
//!
//! The format of an archive is detected from its first bytes, not from its name. Members are also detected by their
//! first bytes; only a needed member is read completely, into a temporary file without a name. If a limit is exceeded
//! (see [`bounds`]), the walk ends with an error that names the archive and the member.

mod bounds;
mod dir;
mod image;
mod member_names;
mod tape;
mod zipped;

use crate::binary::ar;
use crate::cli::platform;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::binary::elf::Elf;
use crate::binary::examined::{self, Reason};
use crate::binary::kernels;
use crate::binary::mapped_file::{Contents, open_regular};
use crate::binary::pe::Pe;
use cudaguard::internal::file_error::{FileError, FileProblem};

use bounds::{Budget, MOST_NESTED};
pub(crate) use member_names::{file_name, is_library};
use member_names::{is_loader_setting, is_package_metadata, unexamined_by_name};

/// Number of bytes at the beginning of a member that suffice to detect its format.
const HEAD: usize = 4096;
/// Maximum length of a text that describes a package, in bytes.
const LONGEST_TEXT: u64 = 16 << 20;

/// A member of an archive, or a file of a directory.
pub(crate) struct ArchiveMember {
    /// The path from the root of the archive, with `/`. The path of a member of an inner archive follows `!`, as in
    /// `wheels/app.whl!app/lib.so`.
    pub(crate) name: String,
    pub(crate) content: Content,
}

/// The content of a member.
pub(crate) enum Content {
    /// An ELF or PE file, a static library, or GPU code by itself.
    Code(File),
    /// A text that describes a package: a wheel's METADATA or RECORD, conda's index.
    Text(String),
    /// The configuration of an image, as JSON.
    Config(String),
    /// A file that configures the dynamic linker.
    LoaderSettings(Vec<u8>),
    /// A link to the member with this path, as in [`ArchiveMember::name`].
    Link(String),
    /// A member that has the name of a library and contains no code, such as a script for the linker.
    NoCode,
    /// A member that may hold code and is not examined, with the reason.
    NotExamined(Reason),
}

/// A file that a subcommand examines. It is opened only once.
pub(crate) enum Opened {
    /// A single program, library or object.
    File(Arc<Contents>),
    /// An archive or a directory.
    Archive(Archive),
}

/// An open archive or directory.
pub(crate) struct Archive {
    path: PathBuf,
    source: Source,
}

enum Source {
    Dir,
    Stdin,
    File(File, ArchiveFormat),
}

/// Summary of a walk.
#[derive(Default)]
pub(crate) struct Walked {
    /// Description such as `wheel`, `tar archive` or `directory`.
    pub(crate) kind: &'static str,
    /// The number of members of any type.
    pub(crate) members: u64,
}

/// Callback for members. Several threads may call it at a time, in any order.
pub(crate) type MemberCallback<'a> = &'a (dyn Fn(ArchiveMember) -> Result<(), FileError> + Sync);

/// Format of an archive, detected from its first bytes.
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
    /// Returns true if the format is a single compressed stream.
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
        known
            .or_else(|| head.starts_with(b"!<arch>\ndebian-binary").then_some(Self::Deb))
            .or_else(|| (head.get(257..262) == Some(b"ustar")).then_some(Self::Tar))
    }
}

/// How a member is examined.
#[derive(Debug, PartialEq, Eq)]
enum Handling {
    /// It contains no code.
    Ignored,
    NotExamined(Reason),
    /// It describes a package.
    Text,
    /// It configures the dynamic linker.
    LoaderSettings,
    /// The whole file is needed.
    Whole,
}

impl Handling {
    /// Decides by the name and the first bytes.
    fn from_head(member: &str, is_executable: bool, head: &[u8]) -> Self {
        // A script may be followed by data, and PTX by nothing but comments.
        let is_open = head.starts_with(b"#!") || head.len() == HEAD && kernels::may_be_ptx(head);
        if let Some(format) = examined::kind_from_head(head) {
            Self::NotExamined(format)
        } else if is_code(head) || ArchiveFormat::from_magic(head).is_some() {
            Self::Whole
        } else if is_package_metadata(member) {
            Self::Text
        } else if is_loader_setting(member) {
            Self::LoaderSettings
        } else if let Some(why) = unexamined_by_name(member, is_executable, head) {
            Self::NotExamined(why.into())
        } else if is_open {
            Self::Whole
        } else {
            Self::Ignored
        }
    }
}

/// Opens the input of a subcommand: a file, an archive, a directory, or stdin for the name `-`.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn open(path: &Path) -> Result<Opened, FileError> {
    if path == Path::new("-") {
        return Ok(Opened::Archive(Archive { path: path.to_owned(), source: Source::Stdin }));
    }
    if path.is_dir() {
        return Ok(Opened::Archive(Archive { path: path.to_owned(), source: Source::Dir }));
    }
    let file = open_regular(path).map_err(|mut error| {
        if let FileProblem::Io(_, text) = &mut error.problem {
            text.push_str(&platform::hint_of_path(path));
        }
        error
    })?;
    let start = read_head(&mut ReadAt { file: &file, at: 0 }).map_err(|error| FileError::read(path, error))?;
    if let Some(form) = form_of(&file, &start).map_err(|error| FileError::read(path, error))? {
        return Ok(Opened::Archive(Archive { path: path.to_owned(), source: Source::File(file, form) }));
    }
    let contents = Contents::from_file(file, path)?;
    match examined::kind_from_head(&start) {
        Some(format) => {
            let what = format!("is {format}, which cudaguard does not read");
            Err(FileError::read(path, FileProblem::unsupported(what)))
        }
        None => Ok(Opened::File(Arc::new(contents))),
    }
}

/// Detects the archive format of a file that begins with `head`.
fn form_of(file: &File, head: &[u8]) -> io::Result<Option<ArchiveFormat>> {
    match ArchiveFormat::from_magic(head) {
        // A shell or Python script may be followed by a zip archive, whose directory is at the end.
        None if head.starts_with(b"#!") => Ok(ends_as_zip(file)?.then_some(ArchiveFormat::Zip)),
        form => Ok(form),
    }
}

/// Returns why a script is not examined if data follows its text: installers of this kind unpack themselves.
fn packed_script(file: &File, head: &[u8]) -> io::Result<Option<&'static str>> {
    const END: u64 = 4096;
    if !head.starts_with(b"#!") {
        return Ok(None);
    }
    let mut end = Vec::new();
    ReadAt { file, at: file.metadata()?.len().saturating_sub(END) }.read_to_end(&mut end)?;
    Ok(end.contains(&0).then_some("a script with packed data after its text"))
}

/// Length in bytes of the records at the end of a zip archive and the longest comment after them.
const END_OF_ZIP: u64 = 56 + 20 + 22 + 0xffff;

/// Returns true if a file ends with the directory of a zip archive.
fn ends_as_zip(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut end = Vec::new();
    ReadAt { file, at: length.saturating_sub(END_OF_ZIP) }.read_to_end(&mut end)?;
    Ok(end.windows(4).any(|bytes| bytes == b"PK\x05\x06"))
}

fn read_head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Passes the members of an archive or a directory to `each`.
///
/// # Errors
/// Returns an error that names the archive and the affected member.
pub(crate) fn walk_artifact(Archive { path, source }: Archive, each: MemberCallback<'_>) -> Result<Walked, FileError> {
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
        Source::Dir => dir::walk_dir(&path, &of)?,
        Source::Stdin => {
            // This copy is the packed archive, so its ratio is not limited.
            let copied = Budget::default();
            copied.add_packed(bounds::MOST_UNPACKED);
            let file = spool_to_temp_file(&mut io::stdin().lock(), &copied).map_err(|error| of.error_for("", error))?;
            budget.add_packed(file.metadata().map_err(|error| of.error_for("", error))?.len());
            let start = read_head(&mut ReadAt { file: &file, at: 0 }).map_err(|error| of.error_for("", error))?;
            let form = form_of(&file, &start).map_err(|error| of.error_for("", error))?;
            let form = form.ok_or_else(|| {
                let what = "is not a known archive format: expected zip, tar, Debian or conda";
                of.error_for("", FileProblem::unsupported(what))
            })?;
            walk_open_file(file, form, &path, &of)?
        }
        Source::File(file, form) => {
            budget.add_packed(file.metadata().map_err(|error| of.error_for("", error))?.len());
            walk_open_file(file, form, &path, &of)?
        }
    };
    let members = budget.member_count();
    if members == 0 {
        return Err(of.error_for("", FileProblem::unsupported(format!("is an empty {kind}"))));
    }
    Ok(Walked { kind, members })
}

/// The position of a member, and the state that all members share.
struct ArchivePlace<'a> {
    /// The outermost archive, for messages.
    archive: String,
    /// The prefix of the names of members, such as `inner.whl!`.
    prefix: String,
    /// The number of archives around this one.
    nested: usize,
    /// Set if the root of the archive is the root of a file system, so that an absolute link stays within it.
    rooted: bool,
    budget: &'a Budget,
    each: MemberCallback<'a>,
}

impl ArchivePlace<'_> {
    /// Returns an error for a member, or for the archive itself if the name is empty.
    fn error_for(&self, member: &str, problem: impl Into<FileProblem>) -> FileError {
        FileError::new(self.full_name(member), problem)
    }

    /// Returns the name of a member after that of the archive, or the archive itself if the name is empty.
    fn full_name(&self, member: &str) -> String {
        let whole = format!("{}!{}{member}", self.archive, self.prefix);
        whole.trim_end_matches('!').to_owned()
    }

    fn hand_on(&self, member: &str, content: Content) -> Result<(), FileError> {
        self.budget.keep(self.prefix.len() + member.len()).map_err(|why| self.error_for("", why))?;
        (self.each)(ArchiveMember { name: format!("{}{member}", self.prefix), content })
    }

    /// Returns the position of the members of the inner archive `member`.
    fn nested_in(&self, member: &str) -> Result<ArchivePlace<'_>, FileError> {
        if self.nested == MOST_NESTED {
            let why = format!("is nested in {MOST_NESTED} archives: cudaguard does not read deeper ones");
            return Err(self.error_for(member, FileProblem::too_large(why)));
        }
        // Both tars of a conda package together are the package.
        let of_conda = member.contains(".tar.") && ["pkg-", "info-"].iter().any(|start| member.starts_with(start));
        let prefix = if of_conda { self.prefix.clone() } else { format!("{}{member}!", self.prefix) };
        let (archive, rooted) = (self.archive.clone(), false);
        Ok(ArchivePlace { archive, prefix, nested: self.nested + 1, rooted, budget: self.budget, each: self.each })
    }

    fn add_link(&self, member: &str, target: &str) -> Result<(), FileError> {
        let target = bounds::resolve_link(member, target, self.rooted).map_err(|why| self.error_for(member, why))?;
        self.hand_on(member, Content::Link(format!("{}{target}", self.prefix)))
    }

    /// Passes on a text that describes a package.
    fn text(&self, member: &str, reader: &mut impl Read) -> Result<(), FileError> {
        let mut text = Vec::new();
        let read = reader.take(LONGEST_TEXT).read_to_end(&mut text);
        read.map_err(|error| self.error_for(member, read_problem(error)))?;
        self.budget.keep(text.len()).map_err(|why| self.error_for("", why))?;
        if text.len() as u64 == LONGEST_TEXT {
            let why = format!("package metadata after the first {} MiB", LONGEST_TEXT >> 20);
            self.hand_on(member, Content::NotExamined(why.into()))?;
        }
        self.hand_on(member, Content::Text(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Passes on a file that configures the dynamic linker.
    fn loader_settings(&self, member: &str, reader: &mut impl Read) -> Result<(), FileError> {
        let mut contents = Vec::new();
        let read = reader.take(LONGEST_TEXT).read_to_end(&mut contents);
        read.map_err(|error| self.error_for(member, read_problem(error)))?;
        self.budget.keep(contents.len()).map_err(|why| self.error_for("", why))?;
        self.hand_on(member, Content::LoaderSettings(contents))
    }

    /// Examines a member that is a file and passes it on if a check may need it. `stated` is the size that the archive
    /// specifies.
    fn read_member(
        &self,
        member: &str,
        is_executable: bool,
        reader: &mut impl Read,
        stated: u64,
    ) -> Result<(), FileError> {
        let head = read_head(reader).map_err(|error| self.error_for(member, read_problem(error)))?;
        let rest = &mut io::Read::chain(&head[..], reader);
        match Handling::from_head(member, is_executable, &head) {
            Handling::Ignored => self.ignore(member),
            Handling::NotExamined(why) => self.not_examined(member, why),
            Handling::Text => self.text(member, rest),
            Handling::LoaderSettings => self.loader_settings(member, rest),
            Handling::Whole => {
                let file = spool_to_temp_file(rest, self.budget)
                    .map_err(|error| self.error_for(member, read_problem(error)))?;
                let length = file.metadata().map_err(|error| self.error_for(member, error))?.len();
                if length != stated {
                    let why = format!("has {length} bytes, but the archive specifies {stated}");
                    return Err(self.error_for(member, FileProblem::damaged(why)));
                }
                self.examine_file(member, file, &head)
            }
        }
    }

    /// Passes on a member that is not examined. One with the name of a library cannot be loaded.
    fn not_examined(&self, member: &str, why: Reason) -> Result<(), FileError> {
        self.ignore(member)?;
        self.hand_on(member, Content::NotExamined(why))
    }

    /// Passes on a member without code if its name suggests a library, because links and metadata may name it.
    fn ignore(&self, member: &str) -> Result<(), FileError> {
        if is_library(member) { self.hand_on(member, Content::NoCode) } else { Ok(()) }
    }

    /// Examines a whole file that begins with `head`.
    fn examine_file(&self, member: &str, file: File, head: &[u8]) -> Result<(), FileError> {
        if let Some(form) = form_of(&file, head).map_err(|error| self.error_for(member, error))? {
            return self.archive(member, file, form);
        }
        let mut text = Vec::new();
        if !is_code(head) && kernels::may_be_ptx(head) {
            let read = ReadAt { file: &file, at: 0 }.take(LONGEST_TEXT).read_to_end(&mut text);
            read.map_err(|error| self.error_for(member, error))?;
        }
        if is_code(head) || !text.is_empty() && kernels::are_bare(&text) {
            return self.hand_on(member, Content::Code(file));
        }
        match packed_script(&file, head).map_err(|error| self.error_for(member, error))? {
            Some(why) => self.hand_on(member, Content::NotExamined(why.into())),
            None => self.ignore(member),
        }
    }

    /// Reads a member that is an archive of this format, or compressed.
    fn archive(&self, member: &str, file: File, form: ArchiveFormat) -> Result<(), FileError> {
        let path = Path::new(member);
        if form.is_packed() {
            let inner = tape::name_of_contents(path);
            let unpacked = tape::unpacked_head(&file, form);
            let not_examined = match unpacked.map(|head| Handling::from_head(&inner, false, &head)) {
                Ok(Handling::Whole) => None,
                Ok(Handling::Ignored | Handling::Text | Handling::LoaderSettings) => return self.ignore(member),
                Ok(Handling::NotExamined(why)) => Some(why),
                Err(error) => Some(format!("it cannot be unpacked: {error}").into()),
            };
            if let Some(why) = not_examined {
                return self.hand_on(member, Content::NotExamined(why));
            }
        }
        walk_open_file(file, form, path, &self.nested_in(member)?).map(drop)
    }
}

/// Returns true if a member that starts with these bytes may contain host or GPU code.
fn is_code(head: &[u8]) -> bool {
    Elf::is_elf(head)
        || Pe::may_be_pe(head)
        || kernels::are_bare(head)
        || ar::is_archive(head) && ArchiveFormat::from_magic(head).is_none()
}

/// Reads an archive of this format and returns a description. `path` is its name.
fn walk_open_file(
    mut file: File,
    form: ArchiveFormat,
    path: &Path,
    of: &ArchivePlace<'_>,
) -> Result<&'static str, FileError> {
    file.rewind().map_err(|error| of.error_for("", error))?;
    match form {
        ArchiveFormat::Zip => {
            let kind = zipped::walk_zip(file, of)?;
            let wheel = path.extension().is_some_and(|ending| ending == "whl");
            Ok(if kind == "zip archive" && wheel { "wheel" } else { kind })
        }
        ArchiveFormat::Deb => tape::walk_deb(file, of),
        ArchiveFormat::Rpm => {
            let what = "is an RPM package, which cudaguard does not read: convert it with `rpm2archive`";
            Err(of.error_for("", FileProblem::unsupported(what)))
        }
        ArchiveFormat::Tar => {
            if let Some(files) = image::image_from_tar(&mut file) {
                return image::walk_tar(&file, &files, of);
            }
            file.rewind().map_err(|error| of.error_for("", error))?;
            tape::walk_tar(&file, form, of)
        }
        ArchiveFormat::Gzip | ArchiveFormat::Bzip2 | ArchiveFormat::Xz | ArchiveFormat::Zstd => {
            match tape::unpacked_head(&file, form) {
                Ok(head) if ArchiveFormat::from_magic(&head) != Some(ArchiveFormat::Tar) => {
                    tape::walk_single(&file, form, path, of)
                }
                // If decompression fails, the reader reports the reason.
                _ => tape::walk_tar(&file, form, of),
            }
        }
    }
}

/// Writes all bytes of the reader to a temporary file without a name.
fn spool_to_temp_file(reader: &mut impl Read, budget: &Budget) -> io::Result<File> {
    let mut file = tempfile::tempfile().map_err(|error| {
        io::Error::other(format!("cannot create a temporary file in {}: {error}", std::env::temp_dir().display()))
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

/// Returns the problem of an archive that cannot be read.
fn read_problem(error: io::Error) -> FileProblem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => FileProblem::damaged("is cut off"),
        _ => error.into(),
    }
}

/// A file that several readers share, each with its own position.
#[derive(Clone)]
struct ReadAt<F> {
    file: F,
    at: u64,
}

impl<F: std::ops::Deref<Target = File>> Read for ReadAt<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = platform::read_at(&self.file, buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
