use std::io::Write as _;
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tar::{Builder, EntryType, Header};

use super::*;

/// Bytes that begin like code.
const CODE: &[u8] = b"\x7fELF and more";

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, data) in members {
        let file =
            archive.new_file(EntryPath::verbatim(name.as_bytes())).compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        writer.write_all(data).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

/// Returns a tar with exactly these entries, even with invalid paths.
fn tar(entries: &[(&str, EntryType, &[u8], &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, data, target) in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(data.len() as u64);
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn files(members: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<_> = members.iter().map(|(name, data)| (*name, EntryType::Regular, *data, "")).collect();
    tar(&entries)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::best());
    writer.write_all(data).unwrap();
    writer.finish().unwrap()
}

/// Returns the names of the code members and the links in an archive.
fn walked(data: &[u8]) -> Result<Vec<String>, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(data).unwrap();
    walked_at(file.path()).map_err(|error| error.replace(&file.path().display().to_string(), "ARCHIVE"))
}

fn walked_at(path: &Path) -> Result<Vec<String>, String> {
    let names = Mutex::new(Vec::new());
    let Opened::Archive(archive) = open(path).map_err(|error| error.to_string())? else {
        return Err("no archive".to_owned());
    };
    walk_artifact(archive, &|member| {
        names.lock().unwrap().push(match &member.content {
            Content::Code(file) => {
                assert!(read_head(&mut ReadAt { file, at: 0 }).unwrap().starts_with(b"\x7fELF"));
                member.name
            }
            Content::Text(text) => format!("{}: {text}", member.name),
            Content::Config(text) => text.clone(),
            Content::LoaderSettings(_) => format!("{}: settings", member.name),
            Content::Link(target) => format!("{} -> {target}", member.name),
            Content::NoCode => format!("{}: no code", member.name),
            Content::NotExamined(why) => format!("{}: not examined: {why}", member.name),
        });
        Ok(())
    })
    .map_err(|error| error.to_string())?;
    let mut names = names.into_inner().unwrap();
    names.sort();
    Ok(names)
}

#[test]
fn nested_archives_are_searched() {
    let wheel = zip(&[("a/lib.so", CODE), ("a/text.py", b"import a"), ("a-1.dist-info/METADATA", b"Name: a")]);
    let expected = ["a-1.dist-info/METADATA: Name: a", "a/lib.so"];
    assert_eq!(walked(&wheel).unwrap(), expected);
    let outer = gzip(&files(&[("./w/a.whl", &wheel), ("b.so", CODE), ("doc.gz", &gzip(b"a page"))]));
    assert_eq!(walked(&outer).unwrap(), ["b.so", "w/a.whl!a-1.dist-info/METADATA: Name: a", "w/a.whl!a/lib.so"]);
    let links = tar(&[
        ("lib/liba.so.1.2", EntryType::Regular, CODE, ""),
        ("lib/liba.so.1", EntryType::Symlink, b"", "liba.so.1.2"),
        ("bin/a", EntryType::Symlink, b"", "../lib/liba.so.1"),
    ]);
    assert_eq!(
        walked(&links).unwrap(),
        ["bin/a -> lib/liba.so.1", "lib/liba.so.1 -> lib/liba.so.1.2", "lib/liba.so.1.2"]
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.whl"), &wheel).unwrap();
    let expected = expected.map(|name| format!("a.whl!{name}"));
    assert_eq!(walked_at(dir.path()).unwrap(), expected);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", dir.path().join("out")).unwrap();
        let found = walked_at(dir.path()).unwrap();
        assert_eq!(found[2..], ["out: not examined: a link to the directory /etc"]);
    }
}

#[test]
fn harmful_members_are_rejected_by_name() {
    let encrypted = {
        let mut bytes = zip(&[("a.so", CODE)]);
        let central = bytes.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
        (bytes[6], bytes[central + 8]) = (bytes[6] | 1, bytes[central + 8] | 1);
        bytes
    };
    let unknown = {
        let mut bytes = zip(&[("a.so", CODE)]);
        let central = bytes.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
        (bytes[8], bytes[central + 10]) = (98, 98);
        bytes
    };
    let longer = {
        let mut bytes = zip(&[("a.so", CODE)]);
        let central = bytes.windows(4).position(|part| part == b"PK\x01\x02").unwrap();
        (bytes[22], bytes[central + 24]) = (99, 99);
        bytes
    };
    let bomb = gzip(&files(&[("zeros", &vec![0; 65 << 20])]));
    let library = [CODE, &vec![0; 22 << 20]].concat();
    let nested_bomb = zip(&[("a.zip", &zip(&[("a.so", &library), ("b.so", &library), ("c.so", &library)]))]);
    let deep = (0..6).fold(zip(&[("a.so", CODE)]), |inner, _| zip(&[("a.zip", &inner)]));
    let whole = gzip(&files(&[("a.so", CODE), ("b.so", &vec![1; 1 << 16])]));
    for (bytes, says) in [
        (files(&[("../a.so", CODE)]), "ARCHIVE!../a.so: its path is outside of the archive (`..`)"),
        (zip(&[("x/../../a.so", CODE)]), "ARCHIVE!x/../../a.so: its path is outside of the archive (`..`)"),
        (files(&[("/a.so", CODE)]), "ARCHIVE!/a.so: its path is absolute"),
        (
            tar(&[("lib/a", EntryType::Symlink, b"", "../../etc/passwd")]),
            "ARCHIVE!lib/a: is a link to a target outside of the archive: ../../etc/passwd",
        ),
        (
            tar(&[("lib/a", EntryType::Link, b"", "/etc/passwd")]),
            "ARCHIVE!lib/a: is a link to a target outside of the archive: /etc/passwd",
        ),
        (files(&[("a.so", CODE), ("./a.so", CODE)]), "ARCHIVE!a.so: occurs twice in the archive"),
        (zip(&[("one.so", CODE), ("one.so", CODE)]), "ARCHIVE!one.so: occurs twice in the archive"),
        (encrypted, "ARCHIVE!a.so: is encrypted"),
        (unknown, "ARCHIVE!a.so: is compressed with method 98, which"),
        (longer, "ARCHIVE!a.so: "),
        (bomb, "unpacks to more than 250 times its size: possibly a decompression bomb"),
        (nested_bomb, "unpacks to more than 250 times its size: possibly a decompression bomb"),
        (deep, "cudaguard does not read deeper ones"),
        (whole[..whole.len() - 9].to_vec(), "ARCHIVE"),
        (zip(&[("a.so", CODE)])[..40].to_vec(), "ARCHIVE: is cut off or damaged"),
        (zip(&[]), "ARCHIVE: is an empty zip archive"),
        (b"\xed\xab\xee\xdb and more".to_vec(), "ARCHIVE: is an RPM package"),
        (long_name(), "the header of a member is larger than 2 MiB"),
    ] {
        let error = walked(&bytes).map(|names| names.join(" ")).unwrap_err();
        assert!(error.contains(says), "{error}\nexpected: {says}");
    }
}

/// Returns a tar whose first member has a name of 8 MiB, in the format of GNU tar.
fn long_name() -> Vec<u8> {
    tar(&[("././@LongLink", EntryType::GNULongName, &vec![b'a'; 8 << 20], ""), ("a", EntryType::Regular, b"", "")])
}

#[test]
fn unreadable_members_are_not_examined() {
    let archive = zip(&[
        ("a.bundle", b"__CLANG_OFFLOAD_BUNDLE__"),
        ("b.so", CODE),
        ("c.gz", &gzip(CODE)),
        ("d.gz", b"\x1f\x8b and more"),
        ("e", &gzip(b"text")),
        ("f.cpio.gz", &gzip(b"0707")),
        ("g.run.gz", &gzip(b"#!/bin/sh\nexit\n\0")),
        ("h.sh.gz", &gzip(b"#!/bin/sh\nexit\n")),
    ]);
    let found = walked(&archive).unwrap();
    assert_eq!(found[0], "a.bundle: not examined: GPU code for AMD");
    assert_eq!(found[1..3], ["b.so", "c.gz!c"]);
    assert!(found[3].starts_with("d.gz: not examined: it cannot be unpacked: "), "{found:?}");
    let expected = [
        "f.cpio.gz: not examined: a cpio archive",
        "g.run.gz!g.run: not examined: a script with packed data after its text",
    ];
    assert_eq!(found[4..], expected);
    let script = [&b"#!/usr/bin/env python3\n"[..], &zip(&[("lib/a.so", CODE)])].concat();
    assert_eq!(walked(&script).unwrap(), ["lib/a.so"]);
    assert_eq!(walked(&files(&[("bin/app", &script)])).unwrap(), ["bin/app!lib/a.so"]);
    assert_eq!(walked(&gzip(CODE)).unwrap().len(), 1);
}

#[test]
fn all_files_of_debian_packages_are_read() {
    let deb = |members: &[(&str, &[u8])]| {
        let mut bytes = b"!<arch>\n".to_vec();
        for (name, data) in [&[("debian-binary", &b"2.0\n"[..])], members].concat() {
            bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, data.len()).bytes());
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    };
    let control = gzip(&files(&[("./postinst", CODE), ("./control", b"Package: a")]));
    let data = files(&[("./usr/lib/a.so", CODE)]);
    let whole = deb(&[("control.tar.gz", &control), ("data.tar", &data)]);
    assert_eq!(walked(&whole).unwrap(), ["control.tar.gz!postinst", "usr/lib/a.so"]);
    let error = walked(&deb(&[("control.tar.gz", &control)])).unwrap_err();
    assert_eq!(error, "ARCHIVE: is a Debian package without data.tar");
}

#[test]
fn non_utf_8_names_stay_distinct() {
    let mut bytes = files(&[("a1.so", CODE), ("a2.so", CODE)]);
    for (from, to) in [(b"a1.so", b"a\xfe.so"), (b"a2.so", b"a\xff.so")] {
        let at = bytes.windows(5).position(|part| part == from).unwrap();
        bytes[at..at + 5].copy_from_slice(to);
        let header = at..at + 512;
        bytes[header.start + 148..header.start + 156].fill(b' ');
        let sum: u32 = bytes[header.clone()].iter().map(|byte| u32::from(*byte)).sum();
        bytes[header.start + 148..header.start + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    assert_eq!(walked(&bytes).unwrap(), ["a\\xfe.so", "a\\xff.so"]);
}

#[test]
fn image_layers_override_lower_layers() {
    let lower = files(&[
        ("usr/lib/a.so", CODE),
        ("usr/lib/b.so", CODE),
        ("opt/old/c.so", CODE),
        ("opt/kept/d.so", CODE),
        ("srv/e.so", CODE),
    ]);
    let upper = gzip(&tar(&[
        ("usr/lib/.wh.a.so", EntryType::Regular, b"", ""),
        ("usr/lib/b.so", EntryType::Regular, b"no code any more", ""),
        ("opt/old/", EntryType::Directory, b"", ""),
        ("opt/old/.wh..wh..opq", EntryType::Regular, b"", ""),
        ("opt/old/new.so", EntryType::Regular, CODE, ""),
        (".wh.srv", EntryType::Regular, b"", ""),
        ("etc/lib", EntryType::Symlink, b"", "/usr/lib"),
    ]));
    let manifest = br#"[{"Layers": ["1/layer.tar", "2.tar"]}]"#;
    let docker = files(&[("manifest.json", manifest), ("1/layer.tar", &lower), ("2.tar", &upper)]);
    let expected = ["etc/lib -> usr/lib", "opt/kept/d.so", "opt/old/new.so", "usr/lib/b.so: no code"];
    assert_eq!(walked(&docker).unwrap(), expected);

    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, data: &[u8]| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, data).unwrap();
    };
    put("oci-layout", b"{}");
    put("index.json", br#"{"manifests": [{"digest": "sha256:00"}]}"#);
    put("blobs/sha256/00", br#"{"layers": [{"digest": "sha256:01"}, {"digest": "sha256:02"}]}"#);
    put("blobs/sha256/01", &lower);
    put("blobs/sha256/02", &upper);
    assert_eq!(walked_at(dir.path()).unwrap(), expected);
    put("index.json", br#"{"manifests": [{"digest": "sha256:../../etc"}]}"#);
    assert!(walked_at(dir.path()).unwrap_err().contains("index.json: has no digest of a manifest"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any archive gives a result or an error that names it.
    #[test]
    fn damaged_archive_returns_error(
        kind in 0..3_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let inner = zip(&[("a.so", CODE), ("b.txt", b"text")]);
        let tar = files(&[("c.whl", &inner), ("d.so", CODE)]);
        let mut bytes = vec![inner, tar.clone(), gzip(&tar)].swap_remove(kind);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        if let Err(error) = walked(&bytes) {
            prop_assert!(error.starts_with("ARCHIVE") || error == "no archive", "{}", error);
        }
    }
}
