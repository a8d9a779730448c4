//! The one digest: FNV-1a with 128 bits. It tells contents apart, it is no protection.

use std::fmt;

/// A digest of what it has been given so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl Digest {
    /// Of nothing.
    pub const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Of these bytes.
    pub const fn from_bytes(bytes: &[u8]) -> Self {
        Self::new().with_bytes(bytes)
    }

    /// Gone on with these bytes, without their length.
    #[must_use]
    pub const fn with_bytes(self, bytes: &[u8]) -> Self {
        let Self(mut state) = self;
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            state = (state ^ *byte as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            rest = after;
        }
        Self(state)
    }

    /// Goes on with these bytes, without their length: for parts of one whole.
    pub fn push_raw(&mut self, bytes: &[u8]) -> &mut Self {
        *self = self.with_bytes(bytes);
        self
    }

    /// Goes on with a number.
    pub fn push_number(&mut self, number: u64) -> &mut Self {
        self.push_raw(&number.to_le_bytes())
    }

    /// Goes on with a whole, and its length.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.push_number(bytes.len() as u64).push_raw(bytes)
    }

    /// Goes on with a text, and its length.
    pub fn push_text(&mut self, text: &str) -> &mut Self {
        self.push_bytes(text.as_bytes())
    }

    /// Folded to 64 bits.
    #[allow(clippy::cast_possible_truncation)]
    pub const fn to_u64(self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv() {
        assert_eq!(Digest::from_bytes(b"a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(Digest::from_bytes(b"a").to_u64(), 0xd228_cb69_6f1a_8caf ^ 0x7891_2b70_4e4a_8964);
    }
}
