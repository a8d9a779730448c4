use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::binary::file::{Binary, BinaryKind, TargetOs};
use crate::binary::kernels::tests::writer::{cubin, fatbin};
use crate::binary::kernels::tests::{compute, sm};
use crate::binary::kernels::{self, Kernels};
use crate::binary::mapped_file::Contents;
use crate::knowledge::vendor::{CUDART, CUDNN};
use cudaguard::internal::file_error::FileError;
use cudaguard::internal::manifest::Linkage;
use object::elf::{EM_AARCH64, EM_X86_64};

const CODE: u32 = 0x6000_0020;
const CONSTANTS: u32 = 0x4000_0040;
const VARIABLES: u32 = 0xc000_0040;
const ALIGN: usize = 0x200;
const PAGE: u32 = 0x1000;
const BASE: u64 = 0x1_8000_0000;

/// A 64-bit image to write. The first section, `.rdata`, contains the tables.
#[derive(Clone, Default)]
struct Written<'a> {
    is_program: bool,
    sections: Vec<(&'a str, u32, Vec<u8>)>,
    imports: Vec<(&'a str, Vec<&'a str>)>,
    delayed: Vec<(&'a str, Vec<&'a str>)>,
    name: &'a str,
    exports: Vec<&'a str>,
    version: Option<([u16; 4], &'a str)>,
}

/// Bytes that are mapped at an address.
struct Tables(Vec<u8>);

impl Tables {
    fn add(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = PAGE + u32::try_from(self.0.len()).unwrap();
        self.0.extend(bytes);
        at
    }

    fn text(&mut self, text: &str) -> u32 {
        self.add(&[text.as_bytes(), &[0]].concat())
    }

    /// A table of pointers to names, each after a hint.
    fn thunks(&mut self, functions: &[&str]) -> u32 {
        let pointers: Vec<u64> = functions
            .iter()
            .map(|name| self.add(&[&[0, 0], name.as_bytes(), &[0]].concat()).into())
            .chain([0])
            .collect();
        self.add(&pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect::<Vec<_>>())
    }

    fn words(&mut self, words: &[u32]) -> u32 {
        self.add(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
    }
}

fn resource(numbers: [u16; 4], description: &str) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes.extend([0xbd, 0x04, 0xef, 0xfe, 0, 0, 1, 0]);
    bytes.extend([numbers[1], numbers[0], numbers[3], numbers[2]].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend([0; 36]);
    let text = ["FileDescription\0\0", description, "\0"].concat();
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    bytes
}

impl Written<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut tables = Tables(Vec::new());
        let mut directories = [(0u32, 0u32); 16];
        let mut descriptors = Vec::new();
        for (dll, functions) in &self.imports {
            let (thunks, name) = (tables.thunks(functions), tables.text(dll));
            descriptors.extend([thunks, 0, 0, name, thunks]);
        }
        if !descriptors.is_empty() {
            descriptors.extend([0; 5]);
            directories[1] = (tables.words(&descriptors), 20);
        }
        let mut descriptors = Vec::new();
        for (dll, functions) in &self.delayed {
            let (thunks, name) = (tables.thunks(functions), tables.text(dll));
            descriptors.extend([1, name, 0, thunks, thunks, 0, 0, 0]);
        }
        if !descriptors.is_empty() {
            descriptors.extend([0; 8]);
            directories[13] = (tables.words(&descriptors), 32);
        }
        if !self.name.is_empty() {
            // Each export is a variable with the number of its place, outside of the directory.
            let count = u32::try_from(self.exports.len()).unwrap();
            let variables: Vec<u32> = (0..count).map(|number| tables.words(&[number])).collect();
            let at = tables.words(&[0; 10]);
            let name = tables.text(self.name);
            let names: Vec<u32> = self.exports.iter().map(|export| tables.text(export)).collect();
            let names = tables.words(&names);
            let variables = tables.words(&variables);
            let ordinals: Vec<u8> = (0..count).flat_map(|number| [number.to_le_bytes()[0], 0]).collect();
            let ordinals = tables.add(&ordinals);
            let directory = [0, 0, 0, name, 1, count, count, variables, names, ordinals];
            let start = usize::try_from(at - PAGE).unwrap();
            let directory: Vec<u8> = directory.iter().flat_map(|word| word.to_le_bytes()).collect();
            tables.0[start..start + directory.len()].copy_from_slice(&directory);
            directories[0] = (at, ordinals + 2 * count - at);
        }
        if let Some((numbers, description)) = self.version {
            let bytes = resource(numbers, description);
            let data = tables.add(&bytes);
            let table = |id: u32, to: u32| [0, 0, 0, 1 << 16, id, to];
            let mut words = [table(16, (1 << 31) + 24), table(1, (1 << 31) + 48), table(1033, 72)].concat();
            words.extend([data, u32::try_from(bytes.len()).unwrap(), 0, 0]);
            directories[2] = (tables.words(&words), 24);
        }
        let mut sections = vec![(".rdata", CONSTANTS, tables.0)];
        sections.extend(self.sections.iter().cloned());

        let mut file = vec![0u8; 0x80];
        file[..2].copy_from_slice(b"MZ");
        file[60] = 0x80;
        file.extend(b"PE\0\0\x64\x86");
        file.extend(u16::try_from(sections.len()).unwrap().to_le_bytes());
        file.extend([0; 12]);
        file.extend(240u16.to_le_bytes());
        file.extend((if self.is_program { 0x22u16 } else { 0x2022 }).to_le_bytes());
        let mut optional = vec![0u8; 112];
        optional[..2].copy_from_slice(&0x20bu16.to_le_bytes());
        optional[24..32].copy_from_slice(&BASE.to_le_bytes());
        optional[32..36].copy_from_slice(&PAGE.to_le_bytes());
        optional[36..40].copy_from_slice(&0x200u32.to_le_bytes());
        optional[60..64].copy_from_slice(&0x400u32.to_le_bytes());
        optional[108] = 16;
        file.extend(optional);
        file.extend(directories.iter().flat_map(|(at, size)| [at.to_le_bytes(), size.to_le_bytes()].concat()));
        let (mut address, mut offset) = (PAGE, 0x400u32);
        for (name, flags, data) in &sections {
            let mut header = [0u8; 40];
            let length = name.len().min(8);
            header[..length].copy_from_slice(&name.as_bytes()[..length]);
            let size = u32::try_from(data.len()).unwrap();
            let stored = size.next_multiple_of(0x200);
            for (at, word) in [(8, size), (12, address), (16, stored), (20, offset), (36, *flags)] {
                header[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            file.extend(header);
            address += size.max(1).next_multiple_of(PAGE);
            offset += stored;
        }
        file.resize(0x400, 0);
        for (_, _, data) in &sections {
            file.extend(data);
            file.resize(file.len().next_multiple_of(ALIGN), 0);
        }
        file
    }
}

fn read(bytes: Vec<u8>) -> Result<Binary, FileError> {
    Binary::from_contents(Path::new("a.dll"), Arc::new(Contents::from(bytes)))
}

fn archs(kernels: &Kernels) -> Vec<String> {
    kernels
        .entries()
        .iter()
        .map(|entry| {
            format!("{} {}", kernels.section_name(&kernels.containers()[entry.container as usize]), entry.arch_name())
        })
        .collect()
}

fn library() -> Written<'static> {
    Written {
        sections: vec![
            (".text", CODE, fatbin(&[sm(70)])),
            (".data", VARIABLES, fatbin(&[sm(75)])),
            (".nv_fatbin", CONSTANTS, [fatbin(&[sm(80), compute(90, (8, 5))]), fatbin(&[sm(90)])].concat()),
        ],
        imports: vec![("cudart64_12.dll", vec!["cudaMalloc", "cudaLaunchKernelExC"]), ("KERNEL32.dll", vec!["Sleep"])],
        delayed: vec![("cudnn64_9.dll", vec!["cudnnCreate", "cudnnBackendPopulateCudaGraph"])],
        name: "mine.dll",
        exports: vec!["first", "second"],
        version: Some(([1, 2, 3, 4], "My library, Version 1.2.3")),
        ..Written::default()
    }
}

#[test]
fn image_is_read_completely() {
    let binary = read(library().bytes()).unwrap();
    assert_eq!(
        (binary.kind, binary.os, binary.machine),
        (BinaryKind::SharedLibrary, Some(TargetOs::Windows), EM_X86_64)
    );
    assert_eq!(binary.needed, ["cudart64_12.dll", "KERNEL32.dll"]);
    assert_eq!(binary.delay_loaded, ["cudnn64_9.dll"]);
    assert_eq!((binary.linkage(&CUDART), binary.linkage(&CUDNN)), (Linkage::Linked, Linkage::Dlopened));
    let bound: Vec<_> = binary.bound.iter().map(|bound| (&*bound.soname, &*bound.name)).collect();
    assert!(bound.contains(&("cudnn64_9.dll", "cudnnBackendPopulateCudaGraph")), "{bound:?}");
    assert_eq!(binary.soname.as_deref(), Some("mine.dll"));
    let version = VersionResource {
        numbers: [1, 2, 3, 4],
        description: "My library, Version 1.2.3".to_owned(),
        product: String::new(),
    };
    assert_eq!(binary.version_resource, Some(version));
    assert_eq!((binary.damage.as_deref(), binary.not_examined().len()), (None, 0));
    let kernels = binary.kernels().unwrap();
    assert_eq!(archs(kernels), [".data sm_75", ".nv_fatbin sm_80", ".nv_fatbin compute_90", ".nv_fatbin sm_90"]);
    let bytes = library().bytes();
    assert_eq!(Pe::parse(&bytes).unwrap().exported_names().collect::<Vec<_>>(), ["first", "second"]);
    let exported = |name| Pe::parse(&bytes).unwrap().exported_u32(name);
    assert_eq!([exported("first"), exported("second"), exported("third")], [Some(0), Some(1), None]);
}

#[test]
fn static_cudart_is_detected_with_its_release() {
    let getter = b"\xc3\xc7\x01\xf4\x2e\0\0\x33\xc0\xc3";
    let hybrid = b"\xc7\x44\x24\x30\xe6\x32\0\0";
    for (texts, code, expected) in [
        (&b"cudaErrorCudartUnloading\0nvcuda.dll\0"[..], &getter[..], Some("12.2")),
        (b"nvcudart_hybrid64.dll\0", hybrid, Some("13.3")),
        // A table of errors alone is that of a binding.
        (b"cudaErrorCudartUnloading\0", getter, None),
    ] {
        let image = Written {
            sections: vec![(".text", CODE, code.to_vec()), (".rdata", CONSTANTS, texts.to_vec())],
            is_program: true,
            ..Written::default()
        };
        let binary = read(image.bytes()).unwrap();
        assert_eq!(binary.kind, BinaryKind::Executable);
        assert_eq!(binary.linkage(&CUDART) == Linkage::Static, expected.is_some(), "{texts:?}");
        let evidence = crate::linked::evidence::Evidence::from_binary(&binary, binary.kernels().unwrap());
        assert_eq!(evidence.cudart.first().map(ToString::to_string).as_deref(), expected);
    }
}

/// Returns the reasons why parts of a file were not examined.
fn reasons(file: &Binary) -> Vec<String> {
    file.not_examined().iter().map(ToString::to_string).collect()
}

/// The data after an image is not examined. A signature, and the script of a launcher, are part of every package.
#[test]
fn bytes_after_the_image_are_reported() {
    let image = Written { is_program: true, ..Written::default() }.bytes();
    let with = |more: &[u8]| reasons(&read([&image[..], more].concat()).unwrap());
    assert_eq!(with(b""), [""; 0]);
    assert_eq!(with(b"payload"), ["7 bytes after the end of the PE image"]);
    assert_eq!(with(b"#!python\r\nPK\x03\x04 __main__.py PK\x05\x06"), [""; 0]);
    assert_eq!(
        with(b"PK\x03\x04 cudart64_12.dll PK\x05\x06"),
        ["25 bytes after the end of the PE image (a zip archive)"]
    );
    let mut signed = [&image[..], &[1; 64]].concat();
    let directory = 0x80 + 24 + 112 + 4 * 8;
    signed[directory..directory + 4].copy_from_slice(&u32::try_from(image.len()).unwrap().to_le_bytes());
    signed[directory + 4] = 64;
    assert_eq!(reasons(&read(signed.clone()).unwrap()), [""; 0]);
    signed.push(1);
    assert_eq!(reasons(&read(signed).unwrap()), ["1 byte after the end of the PE image"]);
}

/// Bits of headers that other compilers set.
#[test]
fn rare_headers_are_read() {
    const DIRECTORIES: usize = 0x80 + 24 + 112;
    let image = library().bytes();
    let machine = |number: [u8; 2]| [&image[..0x84], &number, &image[0x86..]].concat();
    assert_eq!(read(machine([0x64, 0xaa])).unwrap().machine, EM_AARCH64);
    let found = reasons(&read(machine([0x64, 0x50])).unwrap());
    assert_eq!(found, ["code for an unknown processor (0x5064)"]);
    let mut managed = image.clone();
    managed[DIRECTORIES + 14 * 8..][..8].copy_from_slice(&[0, 0x10, 0, 0, 72, 0, 0, 0]);
    let found = reasons(&read(managed).unwrap());
    assert!(found.len() == 1 && found[0].starts_with("code for .NET"), "{found:?}");
    // The load configuration of ARM64EC has a table of its code for both processors.
    let mut load_config = vec![0; 256];
    load_config[..4].copy_from_slice(&256u32.to_le_bytes());
    for (table, expected) in [(0, EM_X86_64), (1, EM_AARCH64)] {
        load_config[200] = table;
        let section = Written { sections: vec![("config", CONSTANTS, load_config.clone())], ..Written::default() };
        let mut hybrid = section.bytes();
        hybrid[DIRECTORIES + 10 * 8..][..8].copy_from_slice(&[0, 0x20, 0, 0, 0, 1, 0, 0]);
        assert_eq!(read(hybrid).unwrap().machine, expected);
    }
}

#[test]
fn foreign_and_packed_code_is_reported() {
    let with =
        |name| read(Written { sections: vec![(name, CONSTANTS, vec![1])], ..Written::default() }.bytes()).unwrap();
    for (name, reason) in
        [(".hip_fatbin", "GPU code for AMD"), ("UPX0", "UPX packed"), (".llvm.offloading", "clang's format")]
    {
        let found = reasons(&with(name));
        assert!(found.len() == 1 && found[0].contains(reason), "{found:?}");
    }
}

#[test]
fn damaged_headers_are_rejected() {
    let image = library().bytes();
    let mut sections = image.clone();
    sections[0x86..0x88].copy_from_slice(&97u16.to_le_bytes());
    sections.resize(0x2000, 0);
    let mut magic = image.clone();
    magic[0x98] = 9;
    for (bytes, why) in [
        (image[..0x120].to_vec(), "damaged or truncated"),
        (sections, "at most 96"),
        (magic, "unknown optional header 0x209"),
        (b"MZ".to_vec(), "is not an ELF file"),
    ] {
        let error = read(bytes).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    let cut = read(image[..image.len() - 0x200].to_vec()).unwrap();
    assert!(
        cut.damage.as_ref().is_some_and(|damage| damage.contains("is truncated")) && !cut.not_examined().is_empty()
    );
}

/// Each byte counts once, however many sections contain it.
#[test]
fn overlapping_sections_are_read_once() {
    let container = fatbin(&[sm(80)]);
    let sections = vec![(".data", CONSTANTS, container); 14];
    let mut bytes = Written { sections, ..Written::default() }.bytes();
    // Every section at the place of the second.
    let first = 0x80 + 24 + 240 + 40;
    for at in (1..14).map(|number| first + number * 40) {
        bytes.copy_within(first + 20..first + 24, at + 20);
    }
    assert_eq!(kernels::read_bytes(&bytes).unwrap().containers().len(), 1);
}

/// A static library of device code, as `lib.exe` writes it.
#[test]
fn objects_of_static_libraries_are_read() {
    let container = fatbin(&[sm(80)]);
    let mut object = vec![0x64, 0x86, 1, 0, 0, 0, 0, 0];
    let symbols = u32::try_from(20 + 40 + container.len()).unwrap();
    object.extend(symbols.to_le_bytes());
    object.extend([0; 8]);
    object.extend(b"/4\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    object.extend(u32::try_from(container.len()).unwrap().to_le_bytes());
    object.extend(60u32.to_le_bytes());
    object.extend([0; 12]);
    object.extend(CONSTANTS.to_le_bytes());
    object.extend(&container);
    object.extend(15u32.to_le_bytes());
    object.extend(b".nv_fatbin\0");
    let import = b"\0\0\xff\xff\0\0\x64\x86\0\0\0\0cudaMalloc\0cudart64_12.dll\0";
    let archive = crate::binary::kernels::tests::writer::archive(&[("a.obj", &object), ("cudart64_12.dll", import)]);
    let binary = read(archive).unwrap();
    assert_eq!((binary.kind, binary.os), (BinaryKind::Archive, Some(TargetOs::Windows)));
    assert_eq!(reasons(&binary), [""; 0]);
    assert_eq!(archs(binary.kernels().unwrap()), [".nv_fatbin sm_80"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    /// No input panics, and what is listed is in proportion to what was given.
    #[test]
    fn damaged_images_never_panic(
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        headers in prop::collection::vec((0usize..0x400, any::<u8>()), 0..12),
        whole in any::<bool>(),
    ) {
        let mut image = library();
        image.sections.push(("__nv_relfatbin", CONSTANTS, fatbin(&[sm(80)])));
        image.sections.push((".nvFatBinSegment", CONSTANTS, vec![0xb1; 48]));
        image.sections.push((".rsrc", CONSTANTS, cubin(80, 7, &["k"])));
        let mut bytes = image.bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        for (at, value) in headers {
            bytes[at] = value;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()) + 1);
        }
        if let Ok(kernels) = kernels::read_bytes(&bytes) {
            prop_assert!(kernels.entries().len() <= bytes.len() / 16 + 1);
            for container in kernels.containers() {
                prop_assert!(container.offset + container.size <= bytes.len() as u64);
            }
        }
        if let Ok(binary) = read(bytes) {
            let texts = binary.needed.iter().chain(&binary.delay_loaded).map(String::len).sum::<usize>();
            prop_assert!(texts <= MOST_DLLS * LONGEST_NAME);
            let _ = binary.reaches_cuda();
        }
    }
}
