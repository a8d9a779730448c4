//! Tests of damaged and hostile files: no panic, no unbounded work, and an unknown result.

use super::super::*;
use super::writer::{cubin, data, fatbin, program};
use super::{archs, by, image, plain, sm, writer};

#[test]
fn damage_is_reported_as_unknown() {
    let mut file = fatbin(&[sm(80), sm(90)]);
    file.truncate(file.len() - 100);
    let kernels = read_bytes(&file).unwrap();
    assert_eq!(archs(&kernels), ["sm_80"]);
    assert!(kernels.warnings()[0].contains("of which"), "{:?}", kernels.warnings());
    assert_eq!(by(&kernels, (8, 0)), Coverage::Cubin);
    assert_eq!(by(&kernels, (9, 0)), Coverage::Unknown, "what was cut off might serve it");
}

/// Found by mutation: tables whose addresses or offsets are close to the maximum of the integer type.
#[test]
fn addresses_near_maximum_do_not_overflow() {
    let container = fatbin(&[sm(80)]);
    let record = [0xb1, 0x43, 0x62, 0x46, 2, 0, 0, 0].iter().copied().chain([0; 16]).collect::<Vec<u8>>();
    let file = program(&[
        data("__nv_relfatbin", false, &container),
        data(".nvFatBinSegment", true, &record),
        writer::WrittenSection { name: ".symtab", kind: 2, flags: 0, data: &[1; 48] },
    ]);
    let headers = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
    for section in 1..5 {
        for field in [16, 24, 32] {
            let mut file = file.clone();
            file[headers + section * 64 + field..][..8].fill(0xff);
            let _ = read_bytes(&file).map(|kernels| kernels.requirement_rows());
        }
    }
}

/// Writes an 8-byte value to a field of a section header.
fn set(file: &mut [u8], section: usize, field: usize, value: u64) {
    let headers = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
    file[headers + section * 64 + field..][..8].copy_from_slice(&value.to_le_bytes());
}

fn get(file: &[u8], section: usize, field: usize) -> u64 {
    let headers = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
    u64::from_le_bytes(file[headers + section * 64 + field..][..8].try_into().unwrap())
}

/// Each byte is read once, even if many headers claim it. Otherwise a small file would fill the memory.
#[test]
fn nested_sections_are_read_once() {
    let container = fatbin(&[sm(80), sm(90)]);
    let two = [&container[..], &container].concat();
    let names = [".nv_fatbin", "__nv_relfatbin", ".rodata", ".data"];
    let mut file = program(&names.map(|name| data(name, name == ".data", &two)));
    for section in 2..=4 {
        let (offset, size) = (get(&file, 1, 24), get(&file, 1, 32));
        set(&mut file, section, 24, offset);
        set(&mut file, section, 32, size);
    }
    let kernels = read_bytes(&file).unwrap();
    assert_eq!(archs(&kernels), ["sm_80", "sm_90", "sm_80", "sm_90"]);
    // A section that begins in the middle of another one and ends after it.
    let later = get(&file, 1, 24) + container.len() as u64;
    set(&mut file, 4, 24, later);
    assert_eq!(archs(&read_bytes(&file).unwrap()).len(), 6, "the first copy of `.data` follows the first section");
}

/// Headers of images that all point to one large table, which is damaged at its end: searching it for each header would
/// take quadratic time.
#[test]
fn images_sharing_tables_are_abandoned() {
    let image = cubin(90, 7, &["k"]);
    let mut table = vec![0u8; 64 * 200];
    let damaged = 64 * 199;
    table[damaged + 4] = 1;
    table[damaged + 24..damaged + 40].fill(0xff);
    let count = 40usize;
    let mut rodata = Vec::new();
    for number in 0..count {
        let mut head = image[..64].to_vec();
        head[40..48].copy_from_slice(&((count - number) as u64 * 64).to_le_bytes());
        head[60..62].copy_from_slice(&200u16.to_le_bytes());
        rodata.extend(head);
    }
    rodata.extend(table);
    let kernels = read_bytes(&program(&[data(".rodata", false, &rodata)])).unwrap();
    assert_eq!(kernels.entries(), []);
    let [warning] = kernels.warnings() else { panic!("{:?}", kernels.warnings()) };
    assert!(warning.contains("were not searched for"), "{warning}");
    // A single damaged image does not prevent the reader from finding the next one.
    let mut broken = image.clone();
    broken.truncate(image.len() - 70);
    let both = [&broken[..], &image].concat();
    let kernels = read_bytes(&program(&[data(".rodata", false, &both)])).unwrap();
    assert_eq!((archs(&kernels), kernels.warnings().len()), (vec!["sm_90".to_owned()], 0));
}

/// Thousands of device link records, relocation tables, names and notes that all claim the same bytes: their total cost
/// must be proportional to the size of the file.
#[test]
fn nested_tables_cost_linear_time() {
    const MANY: usize = 500;
    let record = [0xb1, 0x43, 0x62, 0x46, 2, 0, 0, 0].iter().copied().chain([0; 16]).collect::<Vec<u8>>();
    let records = record.repeat(1000);
    let (relocations, nothing) = (vec![1u8; 24 * 20_000], vec![0u8; 24_000]);
    let container = fatbin(&[sm(80)]);
    for kind in [1, 3] {
        let mut sections = vec![data("__nv_relfatbin", false, &container), data(".nvFatBinSegment", true, &records)];
        sections.push(writer::WrittenSection { name: ".rela.dyn", kind: 4, flags: 2, data: &relocations });
        sections.push(data("__nv_module_id", false, &relocations));
        sections.push(writer::WrittenSection { name: ".note", kind: 7, flags: 2, data: &nothing });
        let first = sections.len() + 1;
        let empty = |name, kind| writer::WrittenSection { name, kind, flags: 2, data: &[] };
        for _ in 0..MANY {
            sections.push(empty(".nvFatBinSegment", 1));
            sections.push(empty(".rela.dyn", 4));
            sections.push(empty("__nv_module_id", 1));
            sections.push(empty(".note", 7));
        }
        let mut file = writer::elf(kind, 62, 0, 0, &sections);
        for copy in first..first + 4 * MANY {
            let original = 2 + (copy - first) % 4;
            for field in [24, 32] {
                let value = get(&file, original, field);
                set(&mut file, copy, field, value);
            }
        }
        let started = std::time::Instant::now();
        assert_eq!(archs(&read_bytes(&file).unwrap()), ["sm_80"]);
        let contents = std::sync::Arc::new(crate::binary::mapped_file::Contents::from(file.clone()));
        let _ = crate::binary::file::Binary::from_contents(std::path::Path::new("crafted"), contents).unwrap();
        // Protects against quadratic time: 250 times the duration without optimization.
        assert!(started.elapsed().as_secs() < 50, "{:?} for {} bytes", started.elapsed(), file.len());
    }
}

/// A file that consists only of images must not fill the memory: it is rejected in every format.
#[test]
fn image_count_is_limited() {
    let container = fatbin(&[writer::entry(&image(2, 80, 0, Vec::new()))]);
    let text = writer::ptx("8.0", "sm_80", "k");
    for (section, bytes) in [
        (".nv_fatbin", fatbin(&[])),
        (".nv_fatbin", container),
        (".nv_fatbin", fatbin(&vec![writer::entry(&image(2, 80, 0, Vec::new())); 5000])),
        (".rodata", text.into_bytes()),
    ] {
        let many = if bytes.len() > 1 << 16 { bytes } else { bytes.repeat(5000) };
        let error = read_bytes(&program(&[data(section, false, &many)])).unwrap_err();
        assert!(error.to_string().contains("contains more than 4096 images"), "{error}");
    }
    // Text about PTX is not PTX.
    let many = ".version 8.0 .target sm_80 ".repeat(5000);
    let kernels = read_bytes(&program(&[data(".rodata", false, many.as_bytes())])).unwrap();
    assert_eq!((kernels.entries().len(), kernels.warnings().len()), (0, 0));
    // Problems above the limit are counted, not listed.
    let damaged = [&writer::program(&[])[..4], &[0x50, 0xed, 0x55, 0xba, 2, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let kernels = read_bytes(&program(&[data(".nv_fatbin", false, &damaged.repeat(1000))])).unwrap();
    assert_eq!(kernels.warnings().len(), 65);
    assert_eq!(kernels.warnings()[64], "and 1936 more of this kind");
}

/// nvcc's section contains fatbins and zeros: other bytes may have been a fatbin.
#[test]
fn invalid_fatbin_is_unknown() {
    let (one, two) = (fatbin(&[sm(80)]), fatbin(&[sm(80), sm(90)]));
    let section = [&one[..], &[0; 24], &two, &[0; 8]].concat();
    let whole = plain(std::slice::from_ref(&section));
    assert_eq!((whole.warnings().len(), by(&whole, (9, 0))), (0, Coverage::Partial));
    // A byte of the magic of each, of its version, of the length of its header and of its total length.
    for start in [0, one.len() + 24] {
        for at in [0, 1, 2, 3, 4, 6, 8] {
            let mut section = section.clone();
            section[start + at] ^= if at == 8 { 0x80 } else { 0x11 };
            let kernels = plain(&[section]);
            assert_eq!(by(&kernels, (8, 0)), Coverage::Unknown, "byte {at} of the container at {start}");
            assert!(kernels.warnings().iter().any(|warning| warning.contains("fatbin")), "{:?}", kernels.warnings());
        }
    }
    // A damaged fatbin without others is not the same as no code.
    let mut flipped = one.clone();
    flipped[0] ^= 1;
    for section in [".nv_fatbin", "__nv_relfatbin"] {
        let kernels = read_bytes(&program(&[data(section, false, &flipped)])).unwrap();
        assert_eq!((kernels.has_kernels(), by(&kernels, (8, 0))), (true, Coverage::Unknown));
        assert!(kernels.warnings()[0].contains("are not a fatbin"), "{:?}", kernels.warnings());
    }
    let tail = plain(&[[&one[..], b"x"].concat()]);
    assert!(tail.warnings()[0].starts_with("1 bytes at "), "{:?}", tail.warnings());
    // Sections of other names may contain anything, and an intact cubin in a damaged fatbin is found by itself.
    let elsewhere = read_bytes(&program(&[data(".rodata", false, &flipped)])).unwrap();
    assert_eq!((elsewhere.warnings().len(), elsewhere.containers()[0].form), (0, ImageForm::Cubin));
}

#[test]
fn impossible_arch_is_rejected() {
    for (number, known) in
        [(0, false), (9, false), (10, true), (999, true), (1000, false), (65535, false), (1 << 20, false)]
    {
        for kind in [1, 2, 8, 0x40] {
            let kernels = plain(&[fatbin(&[writer::entry(&image(kind, number, 0, cubin(80, 7, &["k"])))])]);
            assert_eq!(
                (kernels.entries().len(), kernels.warnings().is_empty()),
                (usize::from(known), known),
                "{number}"
            );
            if !known {
                assert_eq!(by(&kernels, (8, 0)), Coverage::Unknown);
                assert!(kernels.warnings()[0].contains(&format!("for arch {number}, which no GPU has")));
            }
        }
    }
    assert!(read_bytes(b".version 8.0 .target sm_65535 .entry k(){}").is_err());
}

#[test]
fn gzipped_ptx_is_read() {
    let packed = |text: &[u8]| {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut writer, text).unwrap();
        writer.finish().unwrap()
    };
    let module = writer::ptx("7.0", "sm_75", "k");
    let whole = packed(module.as_bytes());
    let long = packed(format!("{module}{}", "// \n".repeat(5 << 20)).as_bytes());
    let mut damaged = packed(format!("{module}{}", "// comment\n".repeat(500)).as_bytes());
    let end = damaged.len();
    damaged[end - 8..].fill(0);
    for (stream, images, warnings) in [
        (&whole[..], 1, 0),
        (&packed(b"a text"), 0, 0),
        (&whole[..9], 0, 0),
        (b"\x1f\x8b\x08 is only the magic number", 0, 0),
        (&damaged, 0, 1),
        (&long, 0, 1),
    ] {
        let file = program(&[data(".rodata", false, &[b"before ", stream, b" after"].concat())]);
        let kernels = read_bytes(&file).unwrap();
        assert_eq!((kernels.entries().len(), kernels.warnings().len()), (images, warnings), "{:?}", kernels.warnings());
    }
}
