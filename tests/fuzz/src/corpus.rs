//! Writes the corpus anew, from nothing but the description of the format: `cargo run --bin corpus`.

#[path = "../../../guard-core/src/kernels/tests/writer.rs"]
mod writer;

use std::path::Path;

use writer::{Image, archive, concatenated, cubin, data, elf, entry, fatbin, program, ptx};

fn image(kind: u16, arch: u32, flags: u64, payload: Vec<u8>) -> Image {
    let version = if kind == 1 { (8, 5) } else { (1, 7) };
    Image { kind, arch, version, flags, payload, unpacked: None, options: Vec::new(), name: String::new() }
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/kernels_read_bytes");
    std::fs::create_dir_all(&folder).expect("a folder for the corpus");
    let text = ptx("8.5", "sm_90a, debug", "k").into_bytes();
    let named = Image { name: "k.cu".to_owned(), options: b"--compile-only".to_vec(), ..image(1, 90, 0, text.clone()) };
    // LZ4 of literals, then a copy that overlaps itself: `.entry` and blanks.
    let lz4 = [&[0x7f, b'.', b'e', b'n', b't', b'r', b'y', b' ', 1, 0, 30][..], &[0x00]].concat();
    let packed = Image { unpacked: Some(56), ..image(1, 80, writer::LZ4, lz4) };
    // A Zstandard frame of one raw block.
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 7, 0x39, 0, 0][..], b".entry "].concat();
    let zstandard = Image { unpacked: Some(7), ..image(1, 100, 0x8000 | writer::FAMILY, zstd) };
    let container = fatbin(&[
        entry(&image(2, 75, writer::DEBUG, cubin(75, 7, &["k"]))),
        entry(&image(2, 90, writer::SPECIFIC, cubin(90, 8, &[]))),
        entry(&named),
        entry(&packed),
        entry(&zstandard),
        entry(&image(8, 80, 0x1_0000, vec![0; 16])),
        concatenated(&[image(2, 75, 0, vec![1; 24]), image(2, 100, writer::FAMILY, vec![2; 40])], &[0; 16], 64),
    ]);
    let empty = fatbin(&[]);
    let small = fatbin(&[entry(&packed), entry(&zstandard)]);
    let two = [container.clone(), empty.clone(), small.clone()].concat();
    let mut rodata = b"about .version 7: ".to_vec();
    rodata.extend(&text);
    rodata.extend(cubin(80, 7, &["k", "j"]));
    rodata.extend(&small);
    // The record of a device link whose container stands at the beginning of the next section's place.
    let mut record = vec![0xb1, 0x43, 0x62, 0x46, 2, 0, 0, 0];
    record.extend(0x40u64.to_le_bytes());
    record.extend([0; 8]);
    let sections = [
        data(".nv_fatbin", false, &two),
        data("__nv_relfatbin", false, &small),
        data("__nv_module_id", false, b"def _1_4_a_cu_x\0__NV_MODULE_ID\0_7f1bd79f_4_a_cu__Z1kPi\0"),
        data(".nvFatBinSegment", true, &record),
        data(".rodata", false, &rodata),
    ];
    let object = elf(1, 183, 0, 0, &sections);
    let files: [(&str, Vec<u8>); 10] = [
        ("fatbin", two.clone()),
        ("fatbin-packed", small.clone()),
        ("fatbin-empty", empty.clone()),
        ("cubin-7", cubin(90, 7, &["k"])),
        ("cubin-8", cubin(121, 8, &["k"])),
        ("ptx", text.clone()),
        ("ptx-twice", [text.clone(), text].concat()),
        ("program", program(&sections)),
        ("object", object.clone()),
        ("archive", archive(&[("a.o", &object), ("b.txt", b"no object"), ("c.o", &object)])),
    ];
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).expect("a file of the corpus");
    }
}
