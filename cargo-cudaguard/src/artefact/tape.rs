//! Tars, packed or not, and Debian packages, which hold one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bzip2::bufread::MultiBzDecoder;
use cudaguard::elf;
use cudaguard::mapped_file::Contents;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use tar::{Archive, EntryType};

use super::bounds::{self, Packed, Unpacked};
use super::{Form, Held, Place};

pub(super) fn walk(file: &File, form: Form, of: &Place<'_>) -> Result<&'static str, String> {
    members(unpacked(file, form, of), of, &mut |_, _| true)?;
    Ok("tar archive")
}

/// What a stream unpacks to, within bounds.
pub(super) fn unpacked<'a, R: Read + 'a>(reader: R, form: Form, of: &'a Place<'_>) -> Box<dyn Read + 'a> {
    if form == Form::Tar {
        return Box::new(BufReader::with_capacity(1 << 16, reader));
    }
    let length = Arc::new(AtomicU64::new(0));
    let packed = BufReader::with_capacity(1 << 16, Packed { reader, length: Arc::clone(&length) });
    let reader: Box<dyn Read + 'a> = match form {
        Form::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
        Form::Xz => Box::new(XzReader::new(packed, true)),
        Form::Zstd => Box::new(Frames { source: Some(packed), frame: None }),
        _ => Box::new(MultiGzDecoder::new(packed)),
    };
    Box::new(Unpacked { reader, packed: length, length: 0, budget: of.budget })
}

/// The frames of a file packed by Zstandard, one after the other.
struct Frames<R: BufRead> {
    source: Option<R>,
    frame: Option<Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>>,
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let length = frame.read(buffer)?;
                if length > 0 || buffer.is_empty() {
                    return Ok(length);
                }
                self.source = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            if source.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new(source).map_err(|error| io::Error::other(error.to_string()))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

/// Whether a packed file holds a tar. One that cannot be unpacked holds none.
pub(super) fn holds_tar(file: &mut File, form: Form) -> bool {
    let budget = bounds::Budget::default();
    let of = Place {
        archive: String::new(),
        prefix: String::new(),
        nested: 0,
        rooted: false,
        budget: &budget,
        each: &|_| Ok(()),
    };
    let head = super::head(&mut unpacked(&mut *file, form, &of));
    head.is_ok_and(|head| Form::of(&head) == Some(Form::Tar)) && file.rewind().is_ok()
}

/// Each member of a tar that `wanted` says so of, by its path and whether it is a folder.
pub(super) fn members(
    reader: Box<dyn Read + '_>,
    of: &Place<'_>,
    wanted: &mut dyn FnMut(&str, bool) -> bool,
) -> Result<(), String> {
    let damaged = |error: &io::Error| of.fails("", format!("is cut off or damaged: {error}"));
    let mut archive = Archive::new(reader);
    let mut known = HashSet::new();
    let mut any = false;
    for entry in archive.entries().map_err(|error| damaged(&error))? {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        any = true;
        let told = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        of.budget.member().map_err(|why| of.fails("", why))?;
        let name = bounds::path(&told).map_err(|why| of.fails(&told, why))?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader || !wanted(&name, kind.is_dir()) || kind.is_dir() || name.is_empty() {
            continue;
        }
        if !known.insert(name.clone()) {
            return Err(of.fails(&name, "stands in the archive twice"));
        }
        let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
        match (kind, target) {
            (EntryType::Symlink, Some(target)) => of.link(&name, &target)?,
            // From the archive's top, as a member's path is.
            (EntryType::Link, Some(target)) => {
                let target = bounds::path(&target)
                    .map_err(|_| of.fails(&name, format!("is a link that leads out of the archive: {target}")))?;
                of.hand_on(&name, super::Content::Link(format!("{}{target}", of.prefix)))?;
            }
            _ => {
                let size = entry.size();
                of.file(&name, &mut entry, size)?;
            }
        }
    }
    // The end of what was packed has its checksum.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(|error| damaged(&error))?;
    if !any {
        return Err(of.fails("", "is a tar archive that holds nothing, or no archive at all"));
    }
    Ok(())
}

/// A Debian package: an archive of `ar` with the files in `data.tar`.
pub(super) fn deb(file: &File, of: &Place<'_>) -> Result<&'static str, String> {
    let held = Held::of(file.try_clone().map_err(|error| of.fails("", error))?);
    let data = Contents::open(held.path()).map_err(|error| of.fails("", error))?;
    for member in elf::archive(&data).map_err(|error| of.fails("", error))? {
        let member = member.map_err(|error| of.fails("", error))?;
        let (name, Some(bytes)) = (member.name, member.data) else { continue };
        if !name.starts_with("data.tar") {
            continue;
        }
        let form = Form::of(&bytes[..bytes.len().min(super::HEAD)]);
        let form = form.filter(|form| !matches!(form, Form::Zip | Form::Deb | Form::Rpm));
        let form = form.ok_or_else(|| of.fails(&name, "is no tar that is known"))?;
        let inner = Place { archive: of.archive.clone(), prefix: of.prefix.clone(), rooted: true, ..*of };
        members(unpacked(bytes, form, &inner), &inner, &mut |_, _| true)?;
        return Ok("Debian package");
    }
    Err(of.fails("", "is a Debian package without data.tar"))
}
