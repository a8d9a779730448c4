//! Archives and folders: wheels, conda packages, tars, Debian packages, container images. [`walk`] hands on what in them may
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
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudaguard::elf::{self, Elf};
use cudaguard::kernels;

use bounds::{Budget, MOST_NESTED};

/// So much of a member is looked at to tell what it is.
const HEAD: usize = 4096;
/// A text that describes a package is never longer.
const LONGEST_TEXT: u64 = 4 << 20;

/// A member of an archive, or a file of a folder.
pub(crate) struct Member {
    /// Its path from the archive's top, with `/`; behind `!` where it stands in an archive that is itself a member:
    /// `wheels/app.whl!app/lib.so`.
    pub(crate) name: String,
    pub(crate) content: Content,
}

/// What a member is.
pub(crate) enum Content {
    /// An ELF file, a static library, or GPU code by itself.
    Code(Held),
    /// A text that describes a package: a wheel's METADATA or RECORD, conda's index.
    Text(String),
    /// An image's configuration, as JSON.
    Config(String),
    /// A link: to this member, by its path as in [`Member::name`].
    Link(String),
}

/// The bytes of a member, as a file that can be opened for as long as this lives.
pub(crate) struct Held {
    path: PathBuf,
    _file: Option<File>,
}

impl Held {
    /// Where to open it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// What was walked.
pub(crate) struct Walked {
    /// In words: `wheel`, `tar archive`, `folder`.
    pub(crate) kind: &'static str,
    /// How many members there are, whatever they are.
    pub(crate) members: u64,
}

/// Who takes the members; several at a time may be handed on, in no order.
pub(crate) type Each<'a> = &'a (dyn Fn(Member) -> Result<(), String> + Sync);

/// What the bytes at the head of a file say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Zip,
    Tar,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
    Deb,
    Rpm,
}

impl Form {
    fn of(head: &[u8]) -> Option<Self> {
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

/// Whether this is for [`walk`]: a folder, an archive, or `-`.
pub(crate) fn is_one(path: &Path) -> bool {
    if path == Path::new("-") {
        return true;
    }
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    metadata.is_dir() || metadata.is_file() && File::open(path).is_ok_and(|mut file| form_of(&mut file).is_some())
}

fn form_of(file: &mut File) -> Option<Form> {
    Form::of(&head(file).ok()?)
}

fn head(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Hands on what stands in an archive or a folder; `-` is read from stdin.
///
/// # Errors
/// With the names of the archive and of the member that it is about.
pub(crate) fn walk(path: &Path, each: Each<'_>) -> Result<Walked, String> {
    let budget = Budget::default();
    let stdin = path == Path::new("-");
    let archive = if stdin { "stdin".to_owned() } else { path.display().to_string() };
    let of = Place { archive: archive.clone(), prefix: String::new(), nested: 0, rooted: false, budget: &budget, each };
    let kind = if path.is_dir() {
        folder::walk(path, &of)?
    } else {
        let file = if stdin {
            spooled(&mut io::stdin().lock(), &budget).map_err(|error| of.fails("", error))?
        } else {
            File::open(path).map_err(|error| of.fails("", error))?
        };
        let ending = path.extension().is_some_and(|ending| ending == "whl");
        match opened(file, &of)? {
            "zip archive" if ending => "wheel",
            other => other,
        }
    };
    let members = budget.members();
    if members == 0 {
        return Err(format!("{archive}: is a {kind} that holds nothing"));
    }
    Ok(Walked { kind, members })
}

/// Where a member stands, and what all of them share.
struct Place<'a> {
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

impl Place<'_> {
    /// An error about a member; about the archive itself where it has no name.
    fn fails(&self, member: &str, why: impl std::fmt::Display) -> String {
        let whole = format!("{}{member}", self.prefix);
        let whole = whole.trim_end_matches('!');
        if whole.is_empty() { format!("{}: {why}", self.archive) } else { format!("{}!{whole}: {why}", self.archive) }
    }

    fn hand_on(&self, member: &str, content: Content) -> Result<(), String> {
        (self.each)(Member { name: format!("{}{member}", self.prefix), content })
    }

    /// What the archive `member` holds stands here.
    fn within(&self, member: &str) -> Result<Place<'_>, String> {
        if self.nested == MOST_NESTED {
            let why = format!("is an archive within {MOST_NESTED} others; so deep none is looked into");
            return Err(self.fails(member, why));
        }
        // The two tars of a conda package are the package.
        let of_conda = member.contains(".tar.") && ["pkg-", "info-"].iter().any(|start| member.starts_with(start));
        let prefix = if of_conda { self.prefix.clone() } else { format!("{}{member}!", self.prefix) };
        let (archive, rooted) = (self.archive.clone(), false);
        Ok(Place { archive, prefix, nested: self.nested + 1, rooted, budget: self.budget, each: self.each })
    }

    fn link(&self, member: &str, target: &str) -> Result<(), String> {
        let target = bounds::link(member, target, self.rooted).map_err(|why| self.fails(member, why))?;
        self.hand_on(member, Content::Link(format!("{}{target}", self.prefix)))
    }

    /// Looks at a member that is a file, and hands on what may be wanted of it. `stated`: the size that the archive gives.
    fn file(&self, member: &str, reader: &mut impl Read, stated: u64) -> Result<(), String> {
        let head = head(reader).map_err(|error| self.fails(member, said(&error)))?;
        let form = Form::of(&head);
        if !is_code(&head) && form.is_none() && !describes(member) {
            return Ok(());
        }
        let rest = &mut io::Read::chain(&head[..], reader);
        if describes(member) && form.is_none() && !is_code(&head) {
            let mut text = Vec::new();
            rest.take(LONGEST_TEXT).read_to_end(&mut text).map_err(|error| self.fails(member, said(&error)))?;
            return self.hand_on(member, Content::Text(String::from_utf8_lossy(&text).into_owned()));
        }
        let mut file = spooled(rest, self.budget).map_err(|error| self.fails(member, said(&error)))?;
        let length = file.metadata().map_err(|error| self.fails(member, error))?.len();
        if length != stated {
            return Err(self.fails(member, format!("is said to have {stated} bytes, and has {length}")));
        }
        if let Some(form) = form {
            let of_tar = matches!(form, Form::Gzip | Form::Bzip2 | Form::Xz | Form::Zstd);
            if of_tar && !tape::holds_tar(&mut file, form) {
                return Ok(());
            }
            return opened(file, &self.within(member)?).map(drop);
        }
        self.hand_on(member, Content::Code(Held::of(file)))
    }
}

impl Held {
    fn of(file: File) -> Self {
        Self { path: PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), _file: Some(file) }
    }
}

/// Whether a member with this head may hold host or GPU code.
fn is_code(head: &[u8]) -> bool {
    Elf::is_elf(head) || kernels::are_bare(head) || elf::is_archive(head) && Form::of(head).is_none()
}

/// Whether a member of this name describes a package.
fn describes(member: &str) -> bool {
    let mut parts = member.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match name {
        "METADATA" | "RECORD" => folder.ends_with(".dist-info"),
        "index.json" | "run_exports.json" => folder == "info",
        _ => folder == "conda-meta" && name.ends_with(".json"),
    }
}

/// Reads an archive from a file at its beginning; says what it is.
fn opened(mut file: File, of: &Place<'_>) -> Result<&'static str, String> {
    file.rewind().map_err(|error| of.fails("", error))?;
    let form = form_of(&mut file);
    file.rewind().map_err(|error| of.fails("", error))?;
    match form {
        Some(Form::Zip) => zipped::walk(&Arc::new(file), of),
        Some(Form::Deb) => tape::deb(&file, of),
        Some(Form::Rpm) => Err(of.fails("", "is an RPM package, which is not read: `rpm2archive` makes a tar of it")),
        Some(form) => {
            if let Some(files) = image::of_tar(&mut file, form) {
                return image::walk_tar(&file, &files, of);
            }
            file.rewind().map_err(|error| of.fails("", error))?;
            tape::walk(&file, form, of)
        }
        None => Err(of.fails("", "is no archive that is known: expected zip, tar, Debian or conda")),
    }
}

/// A temporary file without a name that holds all of this.
fn spooled(reader: &mut impl Read, budget: &Budget) -> io::Result<File> {
    let mut file = tempfile::tempfile().map_err(|error| {
        io::Error::other(format!("no temporary file in {}: {error}", std::env::temp_dir().display()))
    })?;
    let mut piece = vec![0; 1 << 18];
    loop {
        let length = reader.read(&mut piece)?;
        if length == 0 {
            break;
        }
        budget.unpacked(length as u64)?;
        file.write_all(&piece[..length])?;
    }
    file.rewind()?;
    Ok(file)
}

/// What went wrong in reading, to people.
fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "is cut off".to_owned(),
        _ => error.to_string(),
    }
}

/// A file that several read at once, each where it is.
#[derive(Clone)]
struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

impl io::Seek for At {
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
