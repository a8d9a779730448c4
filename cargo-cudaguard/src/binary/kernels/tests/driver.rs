//! Tests of the driver that code needs.

use super::writer::{self, Image, cubin, data, fatbin, program};
use super::{by, image, plain, read_bytes, sm};
use crate::binary::kernels::{Coverage, Role};

/// Text next to containers does not prove GPU support, but the driver must compile it.
#[test]
fn ptx_text_near_fatbins_needs_driver() {
    let floor = |isa: &str, target: &str, cc: (u8, u8)| {
        let text = writer::ptx(isa, target, "helper").into_bytes();
        let file = program(&[data(".nv_fatbin", false, &fatbin(&[sm(90)])), data(".rodata", false, &text)]);
        let service = read_bytes(&file).unwrap().gpu_support(cc);
        (service.by, service.floor.map(|floor| floor.cuda.to_string()), service.text)
    };
    assert_eq!(floor("9.2", "sm_90", (9, 0)), (Coverage::Cubin, Some("13.2".to_owned()), Some((9, 2))));
    assert_eq!(floor("9.2", "sm_80", (9, 0)), (Coverage::Cubin, Some("13.2".to_owned()), Some((9, 2))));
    // For other GPUs, or for every driver of this GPU.
    assert_eq!(floor("9.2", "sm_100", (9, 0)), (Coverage::Cubin, None, None));
    assert_eq!(floor("7.0", "sm_80", (9, 0)), (Coverage::Cubin, None, None));
    // It is unknown whether the program needs the containers or the text.
    assert_eq!(floor("9.2", "sm_80", (8, 0)), (Coverage::Unknown, None, Some((9, 2))));
    assert_eq!(floor("9.2", "sm_90", (8, 0)), (Coverage::Nothing, None, None));
    // Texts of the same kernels for several archs are alternatives.
    let texts = [("9.2", "sm_80"), ("8.6", "sm_90")].map(|(isa, target)| writer::ptx(isa, target, "helper") + "\0");
    let file =
        program(&[data(".nv_fatbin", false, &fatbin(&[sm(90)])), data(".rodata", false, texts.concat().as_bytes())]);
    assert_eq!(read_bytes(&file).unwrap().gpu_support((9, 0)).text, Some((8, 6)));
}

/// No toolkit writes such an ABI, so no driver is known to load it.
#[test]
fn unknown_elf_abi_is_unknown() {
    let expected = [Coverage::Cubin, Coverage::Cubin, Coverage::Unknown];
    let image = |abi| Image { version: (1, abi), ..image(2, 90, 0, cubin(90, 7, &["k"])) };
    let of = |abi: u8| by(&plain(&[fatbin(&[writer::entry(&image(abi.into()))])]), (9, 0));
    assert_eq!([7, 8, 9].map(of), expected);
    let bare = |abi: u8| by(&read_bytes(&cubin(90, abi, &["k"])).unwrap(), (9, 0));
    assert_eq!([7, 8, 9].map(bare), expected);
}

/// The header of machine code shows the major that compiled it, also if the image is compressed.
#[test]
fn machine_code_shows_its_major() {
    let of = |release: u32, unpacked: Option<u64>| {
        let mut code = cubin(80, 7, &["k"]);
        code[20..24].copy_from_slice(&release.to_le_bytes());
        let payload = if unpacked.is_some() { lz4_of_literals(&code) } else { code.clone() };
        let flags = if unpacked.is_some() { writer::LZ4 } else { 0 };
        let image =
            Image { unpacked: unpacked.map(|_| code.len() as u64), version: (1, 7), ..image(2, 80, flags, payload) };
        plain(&[fatbin(&[writer::entry(&image)])]).gpu_support((8, 0)).guaranteed_from.map(|sure| sure.cuda.to_string())
    };
    for unpacked in [None, Some(0)] {
        assert_eq!(of(126, unpacked), Some("12.0".to_owned()));
        assert_eq!(of(118, unpacked), Some("11.0".to_owned()));
        assert_eq!(of(7, unpacked), None, "no release has this number");
    }
}

/// Encodes bytes as an LZ4 block without matches.
fn lz4_of_literals(bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0xf0];
    let mut rest = bytes.len() - 15;
    while rest >= 255 {
        block.push(255);
        rest -= 255;
    }
    block.push(u8::try_from(rest).unwrap());
    block.extend(bytes);
    block
}

/// A device linker links relocatable code; a driver never loads it.
#[test]
fn relocatable_code_in_archive_is_input() {
    let object = program(&[data("__nv_relfatbin", false, &fatbin(&[sm(90)]))]);
    let archive = read_bytes(&writer::archive(&[("a.o", &object)])).unwrap();
    assert!(!archive.has_kernels());
    assert_eq!(archive.containers().iter().map(|container| container.role).collect::<Vec<_>>(), [Role::Input]);
    let beside = program(&[data(".nv_fatbin", false, &fatbin(&[sm(80)]))]);
    let both = read_bytes(&writer::archive(&[("a.o", &object), ("b.o", &beside)])).unwrap();
    assert_eq!((by(&both, (8, 0)), by(&both, (9, 0))), (Coverage::Cubin, Coverage::Nothing));
}
