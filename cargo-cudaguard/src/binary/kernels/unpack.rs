//! Unpacks small images whose headers do not show whether they contain a kernel.

use std::io::Read as _;

use super::fatbin::Compression;

/// Unpacks an image. Returns `None` if the compression is unknown or the unpacked size differs from `length`.
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
        Compression::Gzip | Compression::Unknown => return None,
    };
    (image.len() == length).then_some(image)
}

/// Unpacks the first `length` bytes of an image that is longer.
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
        Compression::Gzip | Compression::Unknown => return None,
    };
    (image.len() == length).then_some(image)
}

/// Unpacks a raw LZ4 block. Source: the description of the block format in lz4 1.9. `cut`: the image may continue after
/// `length`.
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
        // Copied byte by byte because the source and the destination may overlap.
        for at in from..from + copied {
            image.push(image[at]);
        }
    }
    Some(image)
}

/// Reads a length. If its four bits are all set, further bytes are added to it.
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
