//! The digest of this project: FNV-1a with 128 bits. It distinguishes contents; it is not cryptographic.

use std::fmt;

const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// A digest of the bytes pushed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl Digest {
    /// Creates the digest of no bytes.
    pub const fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Creates the digest of these bytes.
    pub const fn from_bytes(bytes: &[u8]) -> Self {
        Self::new().with_bytes(bytes)
    }

    /// Returns the digest extended by these bytes, without their length.
    #[must_use]
    pub const fn with_bytes(self, bytes: &[u8]) -> Self {
        let Self(mut state) = self;
        let mut rest = bytes;
        while let [byte, after @ ..] = rest {
            state = (state ^ *byte as u128).wrapping_mul(PRIME);
            rest = after;
        }
        Self(state)
    }

    /// Adds these bytes without their length, for the parts of one value.
    pub fn push_raw(&mut self, bytes: &[u8]) -> &mut Self {
        *self = self.with_bytes(bytes);
        self
    }

    /// Adds these bytes, preceded by their length, eight at a time: a build of fifty small programs digests the shim's
    /// sources fifty times.
    pub fn push_words(&mut self, bytes: &[u8]) -> &mut Self {
        self.push_number(bytes.len() as u64);
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.0 = (self.0 ^ u128::from(u64::from_le_bytes(word.try_into().unwrap_or_default()))).wrapping_mul(PRIME);
        }
        self.push_raw(words.remainder())
    }

    /// Adds a number.
    pub fn push_number(&mut self, number: u64) -> &mut Self {
        self.push_raw(&number.to_le_bytes())
    }

    /// Adds these bytes, preceded by their length.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.push_number(bytes.len() as u64).push_raw(bytes)
    }

    /// Adds this text, preceded by its length.
    pub fn push_text(&mut self, text: &str) -> &mut Self {
        self.push_bytes(text.as_bytes())
    }

    /// Returns the digest folded to 64 bits.
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
    fn digest_matches_fnv() {
        assert_eq!(Digest::from_bytes(b"a").to_string(), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(Digest::from_bytes(b"a").to_u64(), 0xd228_cb69_6f1a_8caf ^ 0x7891_2b70_4e4a_8964);
    }

    #[test]
    fn words_and_rest_count() {
        let texts = ["", "12345678", "12345679", "123456781", "123456782", "1234567812345678"];
        let digests = texts.map(|text| Digest::new().push_words(text.as_bytes()).to_u64());
        let distinct = digests.iter().collect::<std::collections::HashSet<_>>();
        assert_eq!(distinct.len(), texts.len(), "{digests:?}");
    }
}
