//! Unpacks small images whose headers do not show whether they contain a kernel.

use std::io::Read as _;

use super::fatbin::Compression;
use super::ptx;

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

/// PTX that a program contains as a gzip stream, as FFmpeg does.
pub(super) struct GzippedPtx {
    pub(super) text: Vec<u8>,
    /// Offset of `.version` in the text.
    pub(super) version: usize,
    /// Length of the stream in bytes.
    pub(super) packed: usize,
}

/// Unpacks the gzip stream at the start of these bytes if it contains PTX.
///
/// # Errors
/// Returns a description if the stream begins like PTX, and is cut off, damaged or too long.
pub(super) fn unpack_gzipped_ptx(data: &[u8]) -> Result<Option<GzippedPtx>, &'static str> {
    /// The longest text: a hundred times the largest modules of FFmpeg.
    const LONGEST: u64 = 16 << 20;
    const HEAD: u64 = 1 << 10;
    let mut stream = flate2::bufread::GzDecoder::new(data);
    let mut text = Vec::new();
    // The data only begins like a stream if this fails.
    let is_stream = stream.by_ref().take(HEAD).read_to_end(&mut text).is_ok();
    if !is_stream || ptx::find_version(&text).is_none() {
        return Ok(None);
    }
    stream.by_ref().take(LONGEST).read_to_end(&mut text).map_err(|_| "PTX in a damaged gzip stream")?;
    if text.len() as u64 >= LONGEST {
        return Err("PTX in a gzip stream of more than 16 MiB");
    }
    let packed = data.len() - stream.get_ref().len();
    Ok(ptx::find_version(&text).map(|version| GzippedPtx { text, version, packed }))
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
