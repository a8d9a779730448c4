//! Unpacks small images, where only their inside tells whether they hold a kernel.

use std::io::Read as _;

use super::fatbin::Compression;

/// The image, if it is packed by a known scheme and is as long as its header says.
pub(super) fn unpack_image(packed: &[u8], compression: Compression, length: usize) -> Option<Vec<u8>> {
    let image = match compression {
        Compression::None => packed.to_vec(),
        Compression::Lz4 => unpack_lz4(packed, length, false)?,
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
            let mut image = Vec::with_capacity(length);
            decoder.take(length as u64 + 1).read_to_end(&mut image).ok()?;
            image
        }
        Compression::Unknown => return None,
    };
    (image.len() == length).then_some(image)
}

/// So many bytes of the beginning of an image that has more.
pub(super) fn unpack_beginning(packed: &[u8], compression: Compression, length: usize) -> Option<Vec<u8>> {
    let image = match compression {
        Compression::None => packed.get(..length)?.to_vec(),
        Compression::Lz4 => unpack_lz4(packed, length, true)?,
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
            let mut image = Vec::with_capacity(length);
            decoder.take(length as u64).read_to_end(&mut image).ok()?;
            image
        }
        Compression::Unknown => return None,
    };
    (image.len() == length).then_some(image)
}

/// A raw LZ4 block. Source: lz4 1.9's description of its block format.
/// `cut`: the image may go on behind `length`.
fn unpack_lz4(packed: &[u8], length: usize, cut: bool) -> Option<Vec<u8>> {
    let mut image = Vec::with_capacity(length);
    let mut input = packed.iter();
    while image.len() < length {
        let token = *input.next()?;
        let within =
            |bytes: usize, room: usize| if cut { Some(bytes.min(room)) } else { (bytes <= room).then_some(bytes) };
        let literals = within(read_long_length(token >> 4, &mut input)?, length - image.len())?;
        let rest = input.as_slice();
        image.extend_from_slice(rest.get(..literals)?);
        input = rest[literals..].iter();
        if image.len() == length {
            break;
        }
        let distance = usize::from(u16::from_le_bytes([*input.next()?, *input.next()?]));
        let copied = within(read_long_length(token & 0xf, &mut input)?.checked_add(4)?, length - image.len())?;
        let from = image.len().checked_sub(distance).filter(|_| distance != 0)?;
        // Byte by byte: a copy may overlap what it writes.
        for at in from..from + copied {
            image.push(image[at]);
        }
    }
    Some(image)
}

/// A length that goes on in further bytes where its four bits are full.
fn read_long_length(bits: u8, input: &mut std::slice::Iter<'_, u8>) -> Option<usize> {
    let mut length = usize::from(bits);
    if bits == 15 {
        loop {
            let byte = *input.next()?;
            length = length.checked_add(byte.into())?;
            if byte != 255 {
                break;
            }
        }
    }
    Some(length)
}
