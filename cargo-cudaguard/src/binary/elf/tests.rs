use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use proptest::prelude::*;

use cudaguard::internal::bytes::{u16_at, u64_at};
use object::elf::{DT_RPATH, DT_RUNPATH, ET_DYN, ET_REL};

use super::*;

const SOURCE: &str = "
    #include <stdint.h>
    const uint32_t demo_version = 0x90F01;
    uint64_t demo_wide = 5;
    __attribute__((visibility(\"hidden\"))) uint32_t demo_hidden = 7;
    extern int demo_wanted(void);
    int demo_call(void) { return demo_wanted() + (int)demo_hidden; }
    __asm__(\".pushsection .note.demo,\\\"a\\\",%note\\n.balign 4\\n\"
            \".long 10\\n.long 8\\n.long 1\\n.asciz \\\"cudaguard\\\"\\n.balign 4\\n.ascii \\\"12345678\\\"\\n.popsection\");
";

fn gcc(dir: &Path, output: &str, arguments: &[&str]) -> Vec<u8> {
    let source = dir.join("demo.c");
    std::fs::write(&source, SOURCE).unwrap();
    let file = dir.join(output);
    let status = Command::new("gcc").arg("-o").arg(&file).arg(&source).args(arguments).status().unwrap();
    assert!(status.success(), "gcc {arguments:?}");
    std::fs::read(file).unwrap()
}

fn library() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        gcc(
            dir.path(),
            "libdemo.so",
            &[
                "-shared",
                "-fPIC",
                "-Wl,-soname,libdemo.so.9",
                "-Wl,--enable-new-dtags",
                "-Wl,-rpath,$ORIGIN/x",
                "-Wl,--no-as-needed",
                "-lm",
                "-Wl,--build-id",
            ],
        )
    })
}

/// Removes the section headers, like `strip --strip-section-headers` of newer binutils.
fn without_sections(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data[40..48].fill(0);
    data[58..64].fill(0);
    data
}

fn facts(data: &[u8]) {
    let elf = Elf::parse(data).unwrap();
    assert!(elf.is_64_bit);
    assert_eq!(elf.kind, ET_DYN);
    assert_eq!(elf.soname(), Some("libdemo.so.9"));
    assert_eq!(elf.dynamic_text(DT_RUNPATH), Some("$ORIGIN/x"));
    assert_eq!(elf.dynamic_text(DT_RPATH), None);
    assert_eq!(elf.needed(), ["libm.so.6", "libc.so.6"]);
    assert_eq!(elf.interpreter(), None);
    assert_eq!(elf.exported_u32("demo_version"), Some(0x90F01));
    assert_eq!(elf.exported_u32("demo_wide"), None, "eight bytes are not four");
    assert_eq!(elf.exported_u32("demo_hidden"), None);
    assert_eq!(elf.exported_u32("demo_versio"), None);
    assert_eq!(elf.exported_u32("demo_call"), None);
    let exported: Vec<_> =
        elf.dynamic_symbols().filter(Symbol::is_exported).filter_map(|symbol| symbol.name()).collect();
    assert!(
        exported.contains(&"demo_call") && !exported.contains(&"demo_wanted") && !exported.contains(&"demo_hidden")
    );
    assert!(elf.undefined_symbols().any(|name| name == "demo_wanted"));
    let notes: Vec<_> = elf.notes().filter(|note| note.owner == "cudaguard").collect();
    assert_eq!(notes.len(), 1);
    assert_eq!((notes[0].kind, notes[0].desc), (1, &b"12345678"[..]));
    let at = usize::try_from(notes[0].offset).unwrap();
    assert_eq!(&data[at..at + 8], b"12345678");
    assert!(elf.notes().any(|note| note.owner == "GNU" && note.kind == 3), "the build ID is also found");
    assert_eq!(elf.find_damage(), None);
}

#[test]
fn library_parses_without_section_headers() {
    facts(library());
    facts(&without_sections(library()));
    let bare = without_sections(library());
    assert_eq!(Elf::parse(&bare).unwrap().sections().count(), 0);
    let elf = Elf::parse(library()).unwrap();
    assert!(elf.symbols().any(|symbol| symbol.has_name(b"demo_hidden")), "local symbols are in .symtab");
    assert_eq!(elf.section_named(".note.demo").unwrap().data.len(), 32);
    let counted = elf.dynamic_symbols().map(|symbol| symbol.name()).collect::<Vec<_>>();
    let bare = Elf::parse(&bare).unwrap().dynamic_symbols().map(|symbol| symbol.name()).collect::<Vec<_>>();
    assert_eq!(counted, bare, "the hash table gives the same number of symbols as the section");
}

#[test]
fn hash_tables_yield_symbol_count() {
    let dir = tempfile::tempdir().unwrap();
    for style in ["sysv", "gnu", "both"] {
        let hash = format!("-Wl,--hash-style={style}");
        let data = gcc(dir.path(), "libhash.so", &["-shared", "-fPIC", &hash]);
        let bare = without_sections(&data);
        let names = |data| Elf::parse(data).unwrap().dynamic_symbols().filter_map(|symbol| symbol.name()).count();
        assert_eq!(names(&data), names(&bare), "{style}");
        assert_eq!(Elf::parse(&bare).unwrap().exported_u32("demo_version"), Some(0x90F01), "{style}");
    }
}

#[test]
fn object_is_parsed() {
    let dir = tempfile::tempdir().unwrap();
    let object = gcc(dir.path(), "demo.o", &["-c"]);
    let elf = Elf::parse(&object).unwrap();
    assert_eq!(elf.kind, ET_REL);
    assert!(!elf.is_dynamic() && elf.needed().is_empty());
    assert_eq!(elf.notes().filter(|note| note.owner == "cudaguard").count(), 1);
    assert!(elf.undefined_symbols().any(|name| name == "demo_wanted"));
}

#[test]
fn non_elf_is_rejected_with_reason() {
    for (data, why) in [
        (&b""[..], "is empty"),
        (b"#!/bin/sh\n", "is not an ELF file"),
        (b"\x7fELF", "cut off within the ELF header"),
        (b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0", "big-endian"),
        (b"\x7fELF\x09\x01\x01\0\0\0\0\0\0\0\0\0", "class 9"),
        (b"\x7fELF\x02\x07\x01\0\0\0\0\0\0\0\0\0", "byte order 7"),
        (b"\x7fELF\x02\x01\x05\0\0\0\0\0\0\0\0\0", "version 5"),
        (&library()[..63], "cut off within the ELF header"),
        (&library()[..80], "program headers"),
    ] {
        let error = Elf::parse(data).unwrap_err();
        assert!(error.to_string().contains(why), "{error}: {why}");
    }
    let cut = &library()[..library().len() - 100];
    let elf = Elf::parse(cut).unwrap();
    assert!(elf.find_damage().unwrap().contains("section headers"), "{:?}", elf.find_damage());
    assert_eq!(elf.needed(), ["libm.so.6", "libc.so.6"], "what is there is read all the same");
    // UPX ends a file like this; an example is mxnet's library of 2019.
    let packed = [cut, b"UPX!", &[0; 32]].concat();
    let elf = Elf::parse(&packed).unwrap();
    assert!(elf.is_packed() && elf.find_damage().is_none());
}

/// A file with more than 65279 sections keeps their number, and the number of the names' section, in the first header.
#[test]
fn extended_section_count_is_read() {
    let mut data = library().to_vec();
    let elf = Elf::parse(library()).unwrap();
    let (count, names) = (u64::from(u16_at(&data, 60).unwrap()), u32::from(u16_at(&data, 62).unwrap()));
    let first = usize::try_from(u64_at(&data, 40).unwrap()).unwrap();
    data[60..62].fill(0);
    data[62..64].copy_from_slice(&[0xff, 0xff]);
    data[first + 32..first + 40].copy_from_slice(&count.to_le_bytes());
    data[first + 40..first + 44].copy_from_slice(&names.to_le_bytes());
    let extended = Elf::parse(&data).unwrap();
    assert_eq!(extended.sections().count() as u64, count);
    let of = |elf: &Elf<'_>| elf.sections().map(|section| section.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(of(&extended), of(&elf));

    data[first + 32..first + 40].copy_from_slice(&u64::MAX.to_le_bytes());
    let huge = Elf::parse(&data).unwrap();
    assert_eq!(huge.sections().count(), 0);
    assert!(huge.find_damage().unwrap().contains("section headers"));
}

#[test]
fn damaged_section_name_hides_no_other() {
    let mut data = library().to_vec();
    let first = usize::try_from(u64_at(&data, 40).unwrap()).unwrap();
    data[first + 64..first + 68].fill(0xff);
    let elf = Elf::parse(&data).unwrap();
    assert_eq!(elf.sections().nth(1).unwrap().name, "");
    assert!(elf.section_named(".note.demo").is_some() && elf.section_named(".shstrtab").is_some());
}

#[test]
fn test_executable_is_parsed() {
    let data = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = Elf::parse(&data).unwrap();
    assert!(elf.interpreter().is_some_and(|path| path.contains("ld")));
    assert!(elf.needed().iter().any(|name| name.starts_with("libc.")));
    // A release build is stripped.
    let least = if elf.sections().any(|section| section.name == ".symtab") { 1000 } else { 20 };
    assert!(elf.symbols().filter(|symbol| symbol.name().is_some()).count() > least);
    assert_eq!(elf.find_damage(), None);
}

fn walk(data: &[u8]) -> usize {
    let Ok(elf) = Elf::parse(data) else { return 0 };
    let _ = (elf.find_damage(), elf.interpreter(), elf.needed(), elf.soname());
    elf.sections().count()
        + elf.segments().count()
        + elf.notes().map(|note| note.desc.len()).sum::<usize>()
        + elf.symbols().filter_map(|symbol| symbol.name()).count()
        + elf.dynamic_symbols().filter_map(|symbol| symbol.name()).count()
        + elf.undefined_symbols().count()
        + elf.versions().len()
        + links::dynamic_links(&elf).map_or(0, |links| {
            let imports = links.symbol_imports(false);
            imports.iter().filter(|import| links.defines(import, false)).count()
                + links.exports().count()
                + links.startup_slots().len()
        })
        + elf.exported_u32("demo_version").map_or(0, |_| 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic(
        bare in any::<bool>(),
        // Most damage is in the headers, because they affect the parser most.
        hits in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut data = if bare { without_sections(library()) } else { library().to_vec() };
        for (index, place, byte) in hits {
            let at = match place {
                0 => index.index(64),
                1 => index.index(1024),
                _ => index.index(data.len()),
            };
            data[at] = byte;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len()));
        }
        walk(&data);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut data in prop::collection::vec(any::<u8>(), 0..400), class in 1..3_u8) {
        walk(&data);
        if data.len() > 16 {
            data[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
            walk(&data);
        }
    }
}

#[test]
fn symbol_versions_are_read() {
    let elf = Elf::parse(library()).unwrap();
    assert!(elf.versions().iter().all(|entry| entry.version.of.is_some()));
    let data = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = Elf::parse(&data).unwrap();
    assert!(elf.versions().iter().any(|entry| {
        entry.version.of.is_some_and(|of| of.starts_with(b"libc.")) && entry.version.name.starts_with(b"GLIBC_2.")
    }));
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map");
    std::fs::write(&map, "DEMO_1 { global: demo_call; }; DEMO_2 { global: demo_version; local: *; } DEMO_1;").unwrap();
    let script = format!("-Wl,--version-script={}", map.display());
    let data = gcc(dir.path(), "libversions.so", &["-shared", "-fPIC", &script]);
    for data in [data.clone(), without_sections(&data)] {
        let elf = Elf::parse(&data).unwrap();
        let versions = elf.versions().into_iter().filter(|entry| entry.version.of.is_none());
        let defined: Vec<_> = versions.map(|entry| String::from_utf8_lossy(entry.version.name).into_owned()).collect();
        assert_eq!(defined, ["libversions.so", "DEMO_1", "DEMO_2"], "its own name is the first");
    }
}
