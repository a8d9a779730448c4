//! Writes the files that the reader reads: fatbins, cubins, ELF files and archives, from the description of the format
//! only.

/// An entry of a fatbin, or an image of a concatenated entry.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) kind: u16,
    pub(crate) arch: u32,
    /// (major, minor).
    pub(crate) version: (u16, u16),
    pub(crate) flags: u64,
    /// The payload as it is stored.
    pub(crate) payload: Vec<u8>,
    /// Unpacked size in bytes; `None` if it is not compressed.
    pub(crate) unpacked: Option<u64>,
    pub(crate) options: Vec<u8>,
    pub(crate) name: String,
}

pub(crate) const SPECIFIC: u64 = 0x10_0000;
pub(crate) const FAMILY: u64 = 0x20_0000;
pub(crate) const LZ4: u64 = 0x2000;
pub(crate) const DEBUG: u64 = 2;

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

#[allow(clippy::cast_possible_truncation)]
fn length(bytes: &[u8]) -> u32 {
    bytes.len() as u32
}

fn header(image: &Image, payload: u64) -> Vec<u8> {
    let mut header = vec![0u8; 64];
    let packed = if image.unpacked.is_some() { length(&image.payload) } else { 0 };
    put(&mut header, 0, &image.kind.to_le_bytes());
    put(&mut header, 2, &0x0101u16.to_le_bytes());
    put(&mut header, 8, &payload.to_le_bytes());
    put(&mut header, 16, &packed.to_le_bytes());
    put(&mut header, 24, &image.version.1.to_le_bytes());
    put(&mut header, 26, &image.version.0.to_le_bytes());
    put(&mut header, 28, &image.arch.to_le_bytes());
    put(&mut header, 40, &(image.flags | 0x11).to_le_bytes());
    put(&mut header, 56, &image.unpacked.unwrap_or(0).to_le_bytes());
    if !image.options.is_empty() {
        let at = length(&header);
        put(&mut header, 20, &at.to_le_bytes());
        header.extend((at + 8).to_le_bytes());
        header.extend(length(&image.options).to_le_bytes());
        header.extend(&image.options);
        header.push(0);
        pad(&mut header, 8);
    }
    if !image.name.is_empty() {
        let at = length(&header);
        put(&mut header, 32, &at.to_le_bytes());
        put(&mut header, 36, &length(image.name.as_bytes()).to_le_bytes());
        header.extend(image.name.as_bytes());
        header.push(0);
        pad(&mut header, 8);
    }
    header
}

pub(crate) fn entry(image: &Image) -> Vec<u8> {
    let mut payload = image.payload.clone();
    pad(&mut payload, 8);
    let mut bytes = header(image, payload.len() as u64);
    let size = length(&bytes);
    put(&mut bytes, 4, &size.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Builds an entry of several cubins, with uncompressed headers.
pub(crate) fn concatenated(images: &[Image], stream: &[u8], unpacked: u64) -> Vec<u8> {
    let mut table = Vec::new();
    let mut offset = 0u32;
    for image in images {
        let mut sub = header(&Image { unpacked: None, ..image.clone() }, image.payload.len() as u64);
        put(&mut sub, 4, &offset.to_le_bytes());
        offset += length(&image.payload);
        table.extend(sub);
    }
    let outer = Image {
        kind: 0x100,
        arch: 0,
        version: (0, 1),
        flags: LZ4,
        payload: stream.to_vec(),
        unpacked: Some(unpacked),
        options: Vec::new(),
        name: String::new(),
    };
    let mut payload = stream.to_vec();
    pad(&mut payload, 8);
    let mut bytes = header(&outer, payload.len() as u64);
    put(&mut bytes, 20, &64u32.to_le_bytes());
    #[allow(clippy::cast_possible_truncation)]
    bytes.extend((images.len() as u32).to_le_bytes());
    bytes.extend((length(&table) + 8).to_le_bytes());
    bytes.extend(table);
    let size = length(&bytes);
    put(&mut bytes, 4, &size.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Builds a container of these entries.
pub(crate) fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
    let payload = entries.concat();
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((payload.len() as u64).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A section to write.
pub(crate) struct WrittenSection<'data> {
    pub(crate) name: &'data str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) data: &'data [u8],
}

/// Returns a section of loaded data, read-only or writable.
pub(crate) const fn data<'data>(name: &'data str, writable: bool, data: &'data [u8]) -> WrittenSection<'data> {
    WrittenSection { name, kind: 1, flags: if writable { 3 } else { 2 }, data }
}

/// Builds an ELF file of these sections; addresses equal offsets.
pub(crate) fn elf(kind: u16, machine: u16, flags: u32, abi: u8, sections: &[WrittenSection]) -> Vec<u8> {
    let mut bytes = vec![0u8; 64];
    put(&mut bytes, 0, &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, abi]);
    put(&mut bytes, 16, &kind.to_le_bytes());
    put(&mut bytes, 18, &machine.to_le_bytes());
    put(&mut bytes, 20, &1u32.to_le_bytes());
    put(&mut bytes, 48, &flags.to_le_bytes());
    put(&mut bytes, 52, &64u16.to_le_bytes());
    let mut names = vec![0u8];
    let mut headers = vec![0u8; 64];
    let mut add = |bytes: &mut Vec<u8>, names: &mut Vec<u8>, section: &WrittenSection| {
        pad(bytes, 16);
        let mut header = vec![0u8; 64];
        put(&mut header, 0, &length(names).to_le_bytes());
        names.extend(section.name.as_bytes());
        names.push(0);
        let at = bytes.len() as u64;
        let data = if section.name == ".shstrtab" { names.clone() } else { section.data.to_vec() };
        put(&mut header, 4, &section.kind.to_le_bytes());
        put(&mut header, 8, &section.flags.to_le_bytes());
        put(&mut header, 16, &(if kind == 1 { 0 } else { at }).to_le_bytes());
        put(&mut header, 24, &at.to_le_bytes());
        put(&mut header, 32, &(data.len() as u64).to_le_bytes());
        put(&mut header, 48, &1u64.to_le_bytes());
        headers.extend(header);
        bytes.extend(data);
    };
    for section in sections {
        add(&mut bytes, &mut names, section);
    }
    add(&mut bytes, &mut names, &WrittenSection { name: ".shstrtab", kind: 3, flags: 0, data: &[] });
    pad(&mut bytes, 8);
    let at = bytes.len() as u64;
    put(&mut bytes, 40, &at.to_le_bytes());
    put(&mut bytes, 58, &64u16.to_le_bytes());
    #[allow(clippy::cast_possible_truncation)]
    let count = sections.len() as u16 + 2;
    put(&mut bytes, 60, &count.to_le_bytes());
    put(&mut bytes, 62, &(count - 1).to_le_bytes());
    bytes.extend(headers);
    bytes
}

/// Builds a program for the host's processor.
pub(crate) fn program(sections: &[WrittenSection]) -> Vec<u8> {
    elf(3, 62, 0, 0, sections)
}

/// Builds a cubin with these kernels, in the flag layout of its ABI, 7 or 8.
pub(crate) fn cubin(arch: u32, abi: u8, kernels: &[&str]) -> Vec<u8> {
    let names: Vec<String> = kernels.iter().map(|kernel| format!(".text.{kernel}")).collect();
    let sections: Vec<WrittenSection> =
        names.iter().map(|name| WrittenSection { name, kind: 1, flags: 6, data: &[0; 128] }).collect();
    let flags = if abi >= 8 { 0x0600_0002 | arch << 8 } else { 0x0050_0500 | arch << 16 | arch };
    elf(2, 190, flags, abi, &sections)
}

/// Builds an archive of these members in GNU format.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        bytes.extend(
            format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, data.len()).bytes(),
        );
        bytes.extend(*data);
        pad(&mut bytes, 2);
    }
    bytes
}

/// Returns PTX with one kernel.
pub(crate) fn ptx(isa: &str, target: &str, kernel: &str) -> String {
    format!(
        "//\n// written by a test\n//\n\n.version {isa}\n.target {target}\n.address_size 64\n\n\
         .visible .entry {kernel}(\n\t.param .u64 {kernel}_param_0\n)\n{{\n\tret;\n}}\n"
    )
}
