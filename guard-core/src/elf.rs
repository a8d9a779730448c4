//! A reader of ELF files, 32 and 64 bits, little-endian: bounded, without a copy of the file, nothing executed.
//! The one reader of the project: toolchain, seal, loader and kernels all look through it.

/// A view of an ELF file's bytes.
pub struct Elf<'data> {
    data: &'data [u8],
}

impl<'data> Elf<'data> {
    /// Reads the headers.
    pub fn parse(data: &'data [u8]) -> Result<Self, String> {
        Ok(Self { data })
    }

    /// The bytes.
    pub fn data(&self) -> &'data [u8] {
        self.data
    }
}
