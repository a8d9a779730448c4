//! The hash tables of dynamic symbols.

use object::LittleEndian as LE;
use object::elf;
use object::{U32, pod};

use super::{Elf, entries};

/// Limit for the chains of a damaged file.
const LONGEST_CHAIN: usize = 1 << 16;

/// A hash table: for each remainder of a hash the first symbol of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum SymbolHash<'data> {
    /// The chains contain the hashes of consecutive symbols, from `first` on. The Bloom filter, which only saves time, is not
    /// used.
    Gnu { first: u32, buckets: &'data [U32<LE>], chains: &'data [U32<LE>] },
    /// The chains contain the next symbol of each symbol.
    SystemV { buckets: &'data [U32<LE>], chains: &'data [U32<LE>] },
}

impl<'data> SymbolHash<'data> {
    fn parse_gnu(table: &'data [u8], is_64_bit: bool) -> Option<Self> {
        let (header, rest) = pod::from_bytes::<elf::GnuHashHeader<LE>>(table).ok()?;
        let filter = (header.bloom_count.get(LE) as usize).checked_mul(if is_64_bit { 8 } else { 4 })?;
        let buckets = header.bucket_count.get(LE) as usize;
        let (buckets, chains) = pod::slice_from_bytes(rest.get(filter..)?, buckets).ok()?;
        Some(Self::Gnu { first: header.symbol_base.get(LE), buckets, chains: entries(chains) })
    }

    fn parse_system_v(table: &'data [u8]) -> Option<Self> {
        let (header, rest) = pod::from_bytes::<elf::HashHeader<LE>>(table).ok()?;
        let (buckets, chains) = pod::slice_from_bytes(rest, header.bucket_count.get(LE) as usize).ok()?;
        let (chains, _) = pod::slice_from_bytes(chains, header.chain_count.get(LE) as usize).ok()?;
        Some(Self::SystemV { buckets, chains })
    }

    /// Returns the number of symbols in the symbol table.
    pub(super) fn symbol_count(self) -> Option<usize> {
        let (first, buckets, chains) = match self {
            Self::Gnu { first, buckets, chains } => (first, buckets, chains),
            Self::SystemV { chains, .. } => return Some(chains.len()),
        };
        let last = buckets.iter().map(|bucket| bucket.get(LE)).max().unwrap_or(0);
        // A table without symbols follows the imported symbols.
        let Some(skip) = last.checked_sub(first) else { return Some(first as usize) };
        // The last bucket's chain ends at the hash whose lowest bit is set.
        let length = chains.get(skip as usize..)?.iter().position(|hash| hash.get(LE) & 1 == 1)?;
        (last as usize).checked_add(length)?.checked_add(1)
    }

    /// Returns the symbols that may have this name.
    pub(super) fn candidates(self, name: &[u8]) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        match self {
            Self::Gnu { first, buckets, chains } => {
                let hash = elf::gnu_hash(name);
                let start = buckets[(hash as usize).checked_rem(buckets.len())?].get(LE);
                let skip = start.checked_sub(first).filter(|_| start != 0)?;
                for (step, entry) in (0..).zip(chains.get(skip as usize..)?).take(LONGEST_CHAIN) {
                    let here = entry.get(LE);
                    if here | 1 == hash | 1 {
                        found.extend(start.checked_add(step));
                    }
                    if here & 1 == 1 {
                        break;
                    }
                }
            }
            Self::SystemV { buckets, chains } => {
                let mut index = buckets[(elf::hash(name) as usize).checked_rem(buckets.len())?].get(LE);
                while index != 0 && found.len() < LONGEST_CHAIN {
                    found.push(index);
                    index = chains.get(index as usize)?.get(LE);
                }
            }
        }
        Some(found)
    }
}

impl<'data> Elf<'data> {
    /// Returns the hash table that the loader uses.
    pub(super) fn symbol_hash(&self) -> Option<SymbolHash<'data>> {
        let gnu = self.dynamic_data(elf::DT_GNU_HASH).and_then(|table| SymbolHash::parse_gnu(table, self.is_64_bit));
        gnu.or_else(|| SymbolHash::parse_system_v(self.dynamic_data(elf::DT_HASH)?))
    }
}
