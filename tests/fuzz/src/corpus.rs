//! Writes the initial corpus files, generated only from the descriptions of the formats: `cargo run --bin corpus`.

#[path = "../../../cargo-cudaguard/src/binary/kernels/tests/writer.rs"]
mod writer;

use std::path::Path;

use cudaguard::internal::manifest::{Component, Manifest};
use cudaguard::internal::note;
use cudaguard::internal::policy::Policy;
use cudaguard::internal::toolchain::Toolchain;
use writer::{Image, WrittenSection, archive, concatenated, cubin, data, elf, entry, fatbin, program, ptx};

fn image(kind: u16, arch: u32, flags: u64, payload: Vec<u8>) -> Image {
    let version = if kind == 1 { (8, 5) } else { (1, 7) };
    Image { kind, arch, version, flags, payload, unpacked: None, options: Vec::new(), name: String::new() }
}

fn main() {
    write("kernels_read_bytes", &kernels());
    write("binary_of_bytes", &binaries());
}

fn write(target: &str, files: &[(&str, Vec<u8>)]) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&dir).expect("a directory for the corpus");
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes).expect("a file of the corpus");
    }
}

/// Returns files with notes, strings that show how cudart and cuDNN are used, and a dynamic section.
fn binaries() -> Vec<(&'static str, Vec<u8>)> {
    let component = Component { name: "demo".to_owned(), version: "0.1.0".to_owned() };
    let manifest = Manifest::from_build(
        component,
        "x86_64-unknown-linux-gnu",
        "release",
        &Policy::default(),
        &Toolchain::default(),
    );
    let descriptor = note::encode(&manifest).expect("a small manifest");
    let mut noted: Vec<u8> = [10u32, 4096, note::TYPE].iter().flat_map(|word| word.to_le_bytes()).collect();
    noted.extend(note::OWNER);
    noted.extend([0, 0]);
    noted.extend(&descriptor[..]);
    let section = |name, kind, data| WrittenSection { name, kind, flags: 2, data };
    let texts = b"/cudart.shm.\0cudaErrorCudartUnloading\0cudaMalloc\0cudnnCreate\0CUDNN_STATUS_\0cudnn_version_9_1\0";
    // The entries refer to the strings at 1 (a needed library) and 17 (the soname); then the end.
    let words: [u64; 8] = [1, 1, 14, 17, 29, 1, 0, 0];
    let table: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let strings = b"\0libcudnn.so.9\0\0\0libx.so.1\0dlopen\0";
    // An empty symbol, and an undefined one.
    let mut symbols = vec![0u8; 48];
    symbols[24] = 28;
    symbols[28] = 0x12;
    let with_note = [section(note::SECTION, 7, &noted), section(".rodata", 1, texts)];
    let dynamic = [
        section(".dynamic", 6, &table),
        section(".dynstr", 3, strings),
        section(".dynsym", 11, &symbols),
        section(".rodata", 1, texts),
    ];
    // The headers of these tables refer to the section with their strings, the second section of the file.
    let mut library = program(&dynamic);
    let headers = usize::try_from(u64::from_le_bytes(library[40..48].try_into().expect("8 bytes"))).expect("small");
    for table in [1, 3] {
        library[headers + table * 64 + 40] = 2;
    }
    let object = elf(1, 62, 0, 0, &with_note);
    vec![
        ("noted", program(&with_note)),
        ("library", library),
        ("archive", archive(&[("a.o", &object), ("b.txt", b"no object")])),
        ("object", object),
    ]
}

fn kernels() -> Vec<(&'static str, Vec<u8>)> {
    let text = ptx("8.5", "sm_90a, debug", "k").into_bytes();
    let named = Image { name: "k.cu".to_owned(), options: b"--compile-only".to_vec(), ..image(1, 90, 0, text.clone()) };
    // LZ4 literals, then a copy that overlaps itself: `.entry` and blanks.
    let lz4 = [&[0x7f, b'.', b'e', b'n', b't', b'r', b'y', b' ', 1, 0, 30][..], &[0x00]].concat();
    let packed = Image { unpacked: Some(56), ..image(1, 80, writer::LZ4, lz4) };
    // A Zstandard frame with one raw block.
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
    // A device link record whose container begins at the address of the next section.
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
    vec![
        ("fatbin", two.clone()),
        ("fatbin-packed", small.clone()),
        ("fatbin-empty", empty.clone()),
        ("cubin-7", cubin(90, 7, &["k"])),
        ("cubin-8", cubin(121, 8, &["k"])),
        ("ptx", text.clone()),
        ("ptx-glued", b".version 8.0.target sm_80.address_size 64 .visible.entry k(){ret;}".to_vec()),
        (
            "ltoir",
            [
                &[0xed, 0x43, 0x4e, 0x7f, 1, 0x41, 2, 0x62, 3, 2, 7, 0, 0x18, 0, 1, 0][..],
                &[0x2c, 0, 0, 0, 0x30],
                &[0, 0, 0, 1, 0, 0x84, 3, 2, 0, 2, 0, 0x20, 0, 1, 0],
            ]
            .concat(),
        ),
        ("ptx-twice", [text.clone(), text].concat()),
        ("program", program(&sections)),
        ("object", object.clone()),
        ("archive", archive(&[("a.o", &object), ("b.txt", b"no object"), ("c.o", &object)])),
    ]
}
