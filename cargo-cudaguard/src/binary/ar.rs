//! Members of `ar` archives (static libraries).

use std::borrow::Cow;

use cudaguard::internal::file_error::FileProblem;

/// A member of an `ar` archive.
#[derive(Clone, Debug)]
pub struct ArMember<'data> {
    /// Name of the member.
    pub name: Cow<'data, str>,
    /// Contents of the member; `None` in a thin archive, which contains only names.
    pub data: Option<&'data [u8]>,
    /// Offset of the contents in the archive.
    pub offset: u64,
}

/// Returns true if these bytes start with the magic number of an archive or a thin archive.
pub fn is_archive(data: &[u8]) -> bool {
    data.starts_with(b"!<arch>\n") || data.starts_with(b"!<thin>\n")
}

/// The longest name that is read from the table of long names. No file system has longer paths.
const LONGEST_NAME: usize = 4096;

/// Returns the members of an `ar` archive, in order, without the archive's symbol and name tables. Supports the long
/// names of GNU and BSD. Damage ends the iteration with an error that contains its position.
pub fn archive_members(
    data: &[u8],
) -> Result<impl Iterator<Item = Result<ArMember<'_>, FileProblem>> + use<'_>, FileProblem> {
    if !is_archive(data) {
        return Err(FileProblem::unsupported("is not an archive"));
    }
    Ok(ArArchive { data, at: 8, thin: data.starts_with(b"!<thin>\n"), names: &[] })
}

struct ArArchive<'data> {
    data: &'data [u8],
    at: usize,
    thin: bool,
    names: &'data [u8],
}

impl<'data> ArArchive<'data> {
    /// Reads the next member. `Ok(None)` if it is one of the archive's own tables.
    fn next_member(&mut self) -> Result<Option<ArMember<'data>>, FileProblem> {
        let at = self.at;
        let header = self.data.get(at..at + 60).ok_or_else(|| damaged_at(at, "the header of a member"))?;
        if &header[58..] != b"`\n" {
            return Err(damaged_at(at, "no header of a member"));
        }
        let size = parse_number(&header[48..58]).ok_or_else(|| damaged_at(at, "the size of a member"))?;
        let field = header[..16].trim_ascii_end();
        let table = field == b"/" || field == b"/SYM64/";
        let names = field == b"//";
        let start = at + 60;
        let stored = if self.thin && !table && !names { 0 } else { size };
        let end = start.checked_add(stored).ok_or_else(|| damaged_at(at, "the size of a member"))?;
        let mut body =
            self.data.get(start..end).ok_or_else(|| damaged_at(at, "a member that ends after the end of the file"))?;
        // Members start at even bytes.
        self.at = end.checked_next_multiple_of(2).unwrap_or(end);
        if names {
            self.names = body;
        }
        if table || names {
            return Ok(None);
        }
        let mut offset = start;
        let name = if let Some(length) = field.strip_prefix(b"#1/") {
            let length = parse_number(length).filter(|length| *length <= body.len());
            let length = length.ok_or_else(|| damaged_at(at, "a long name"))?;
            let (name, rest) = body.split_at(length);
            body = rest;
            offset += length;
            name.split(|byte| *byte == 0).next().unwrap_or_default()
        } else if let Some(place) = field.strip_prefix(b"/") {
            let rest = parse_number(place).and_then(|place| self.names.get(place..));
            // Each member searches the end of its name, which takes quadratic time without a limit.
            let rest = rest.map(|rest| &rest[..rest.len().min(LONGEST_NAME)]);
            let rest = rest.ok_or_else(|| damaged_at(at, "the offset of a long name"))?;
            // Microsoft's librarian ends names with NUL.
            let line = rest.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
            line.strip_suffix(b"/").unwrap_or(line)
        } else {
            field.strip_suffix(b"/").unwrap_or(field)
        };
        if name.starts_with(b"__.SYMDEF") {
            return Ok(None);
        }
        let data = (!self.thin).then_some(body);
        Ok(Some(ArMember { name: String::from_utf8_lossy(name), data, offset: offset as u64 }))
    }
}

fn damaged_at(at: usize, what: &str) -> FileProblem {
    FileProblem::damaged(format!("is damaged or cut off: {what} at byte {at}"))
}

fn parse_number(field: &[u8]) -> Option<usize> {
    std::str::from_utf8(field).ok()?.trim_end_matches([' ', '\0']).parse().ok()
}

impl<'data> Iterator for ArArchive<'data> {
    type Item = Result<ArMember<'data>, FileProblem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.data.len() {
            match self.next_member() {
                Ok(Some(member)) => return Some(Ok(member)),
                Ok(None) => {}
                Err(error) => {
                    self.at = self.data.len();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gnu_archives_are_read() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.o", "a_name_that_is_longer_than_sixteen.o"] {
            std::fs::write(dir.path().join(name), "content").unwrap();
        }
        for (flags, thin) in [("rcs", false), ("rcsT", true)] {
            let file = dir.path().join(format!("lib{flags}.a"));
            let status = Command::new("ar")
                .arg(flags)
                .arg(&file)
                .args(["b.o", "a_name_that_is_longer_than_sixteen.o"])
                .current_dir(dir.path())
                .status()
                .unwrap();
            assert!(status.success());
            let data = std::fs::read(&file).unwrap();
            let members: Vec<_> = archive_members(&data).unwrap().map(Result::unwrap).collect();
            let names: Vec<_> = members.iter().map(|member| member.name.as_ref()).collect();
            assert_eq!(names, ["b.o", "a_name_that_is_longer_than_sixteen.o"], "{flags}");
            for member in &members {
                if thin {
                    assert!(member.data.is_none());
                } else {
                    assert_eq!(member.data, Some(&b"content"[..]));
                    let at = usize::try_from(member.offset).unwrap();
                    assert_eq!(&data[at..at + 7], b"content");
                }
            }
        }
    }

    #[test]
    fn bsd_and_damaged_archives_are_handled() {
        let header = |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        let mut data = b"!<arch>\n".to_vec();
        data.extend(header("#1/20", 25).bytes());
        data.extend(b"long_name_of_bsd.o\0\0");
        data.extend(b"12345\n");
        data.extend(header("plain.o/", 3).bytes());
        data.extend(b"abc");
        let members: Vec<_> = archive_members(&data).unwrap().map(Result::unwrap).collect();
        assert_eq!(members[0].name, "long_name_of_bsd.o");
        assert_eq!(members[0].data, Some(&b"12345"[..]));
        assert_eq!((members[1].name.as_ref(), members[1].data), ("plain.o", Some(&b"abc"[..])));

        let cut = archive_members(&data[..data.len() - 1]).unwrap().collect::<Vec<_>>();
        assert!(cut[0].is_ok());
        assert!(cut[1].as_ref().unwrap_err().to_string().contains("ends after the end"), "{cut:?}");
        let mut bad = data.clone();
        bad[8 + 58] = b'x';
        let bad = archive_members(&bad).unwrap().collect::<Vec<_>>();
        assert_eq!(bad.len(), 1, "damage ends the walk");
        assert!(bad[0].as_ref().unwrap_err().to_string().contains("at byte 8"));
        assert!(archive_members(b"!<arch>").is_err());
        assert_eq!(archive_members(b"!<arch>\n").unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
            for member in archive_members(&[b"!<arch>\n", &data[..]].concat()).unwrap() {
                let _ = member;
            }
        }
    }
}
