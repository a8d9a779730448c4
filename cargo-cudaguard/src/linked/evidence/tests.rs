use super::*;
use crate::binary::kernels::read_bytes;
use crate::binary::kernels::tests::writer::{self, Image, WrittenSection};
use object::elf::{EM_386, EM_AARCH64};

fn image(kind: u16, version: (u16, u16), payload: Vec<u8>) -> Image {
    Image { kind, arch: 90, version, flags: 0, payload, unpacked: None, options: Vec::new(), name: String::new() }
}

/// A cubin that stores its release in the header, as ABI 7 does.
fn cubin(release: u32) -> Vec<u8> {
    let mut bytes = writer::cubin(90, 7, &["k"]);
    bytes[20..24].copy_from_slice(&release.to_le_bytes());
    bytes
}

fn noted(release: &str) -> Vec<u8> {
    let text = format!("ptxas\0Cuda compilation tools, release {release}, V{release}.1\0");
    let mut note: Vec<u8> =
        [12, u32::try_from(text.len()).unwrap(), 2000].iter().flat_map(|word| word.to_le_bytes()).collect();
    note.extend(b"NVIDIA Corp\0");
    note.extend(text.as_bytes());
    let sections = [
        WrittenSection { name: ".note.nv.tkinfo", kind: 7, flags: 0, data: &note },
        WrittenSection { name: ".text.k", kind: 1, flags: 6, data: &[0; 16] },
    ];
    writer::elf(2, 190, 0x0600_0002 | 90 << 8, 8, &sections)
}

fn made(bytes: &[u8]) -> Vec<String> {
    let evidence = Evidence::in_bytes(bytes, &read_bytes(bytes).unwrap());
    let one = |(made, count): &(Provenance, usize)| {
        format!("{} {}.{} {} {count}", made.kind, made.release.0, made.release.1, made.known.name())
    };
    evidence.kernel_makers().iter().map(one).collect()
}

#[test]
fn images_name_their_compiler() {
    let lz4 = |bytes: &[u8]| {
        // Literals only.
        let mut block = vec![0xf0];
        let mut rest = bytes.len() - 15;
        while rest >= 255 {
            block.push(255);
            rest -= 255;
        }
        block.push(u8::try_from(rest).unwrap());
        block.extend(bytes);
        Image { flags: writer::LZ4, unpacked: Some(bytes.len() as u64), ..image(2, (1, 7), block) }
    };
    let text = |comment: &str| format!("//\n// {comment}\n//\n\n{}", writer::ptx("8.4", "sm_90", "k")).into_bytes();
    let (evidence, silent) = (text("Cuda compilation tools, release 12.5, V12.5.40"), text("written by hand"));
    let fatbin = |images: &[Image]| writer::fatbin(&images.iter().map(writer::entry).collect::<Vec<_>>());
    let section = [
        fatbin(&[image(2, (1, 7), cubin(123)), image(1, (8, 4), evidence.clone())]),
        fatbin(&[lz4(&cubin(129)), image(1, (8, 4), silent)]),
        fatbin(&[lz4(&noted("13.2"))]),
        fatbin(&[lz4(&cubin(123))]),
    ]
    .concat();
    let file = writer::program(&[writer::data(".nv_fatbin", false, &section)]);
    assert_eq!(
        made(&file),
        [
            "ptx 12.4 isa 1",
            "ptx 12.5 comment 1",
            "cubin 12.3 elf header 2",
            "cubin 12.9 elf header 1",
            "cubin 13.2 note 1"
        ]
    );
    assert_eq!(made(&noted("13.0")), ["cubin 13.0 note 1"]);
    assert_eq!(made(&cubin(118)), ["cubin 11.8 elf header 1"]);
    assert_eq!(made(&evidence), ["ptx 12.5 comment 1"]);
    // A number that is not a release is ignored.
    assert!(made(&cubin(1)).is_empty() && made(&cubin(u32::MAX)).is_empty());
}

fn stores(machine: object::elf::Machine, code: &[u8]) -> Vec<String> {
    let sections = [
        WrittenSection { name: ".text", kind: 1, flags: 6, data: code },
        WrittenSection {
            name: ".comment",
            kind: 1,
            flags: 0,
            data: b"GCC: (GNU) 13.3.0\0\0GCC: (GNU) 13.3.0\0clang 18\0",
        },
    ];
    let file = writer::elf(3, machine.0, 0, 0, &sections);
    let evidence = Evidence::in_bytes(&file, &read_bytes(&file).unwrap());
    assert_eq!(evidence.compilers, ["GCC: (GNU) 13.3.0", "clang 18"]);
    evidence.cudart.iter().map(CudaVersion::to_string).collect()
}

#[test]
fn static_cudart_release_is_detected() {
    let store = |value: u32| [&[0x90, 0xc7, 0x07][..], &value.to_le_bytes()].concat();
    for (values, expected) in [
        (&[13000, 13000][..], &["13.0"][..]),
        (&[13000], &[]),
        (&[13000, 13000, 13000], &[]),
        (&[9000, 9000, 9000, 9000, 6940], &["9.0"]),
        // Several candidates are no fact.
        (&[11080, 12090, 11080, 12090], &[]),
        // Releases that never existed, and a future one.
        (&[12730, 12730, 9660, 9660, 12100, 12100, 13005, 13005, 7, 7], &[]),
        (&[99010, 99010], &["99.1"]),
    ] {
        let code: Vec<u8> = values.iter().flat_map(|value| store(*value)).collect();
        assert_eq!(stores(EM_X86_64, &code), expected, "{values:?}");
    }
    let word = |register: u32, value: u32| (0x5280_0000 | value << 5 | register).to_le_bytes();
    let nothing = 0xd503_201fu32.to_le_bytes();
    for (words, expected) in [
        ([word(19, 13000), word(25, 13003), nothing, nothing], &["13.0"][..]),
        ([nothing, word(26, 12093), word(27, 12090), nothing], &["12.9"]),
        ([word(2, 13000), word(2, 13000), word(4, 13000), nothing], &[]),
        ([word(19, 13000), nothing, word(25, 13003), nothing], &[]),
    ] {
        assert_eq!(stores(EM_AARCH64, &words.concat()), expected);
    }
    // Code of another processor is ignored.
    assert!(stores(EM_386, &store(13000).repeat(2)).is_empty());
}
