//! The release of NCCL's headers that a file was compiled with.
//!
//! NCCL's structures for options begin with their size, a magic number and `NCCL_VERSION_CODE`, which the initializers of the
//! headers store (`NCCL_CONFIG_INITIALIZER`). NCCL itself compares this number with its own: `parseCommConfig` in
//! `src/init.cc`, `getNcclVersionCompat` in `src/dev_runtime.cc`. A file without such a structure passes no release to NCCL.

use memchr::memmem;

use super::version::operand_of_x86;
use crate::binary::elf::{Elf, without_overlaps};
use crate::knowledge::vendor::{NCCL_GETTER, version_of_answer};
use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::version::Version;
use object::elf::{SHF_ALLOC, SHT_PROGBITS};

/// `NCCL_API_MAGIC`, as it is stored.
const MAGIC: [u8; 4] = 0xcafe_beef_u32.to_le_bytes();

/// Returns the newest release of the headers that a file for this major of NCCL was compiled with. `None` if no structure
/// shows one.
pub(super) fn nccl_headers(elf: &Elf<'_>, major: u32) -> Option<Version> {
    let sections = elf
        .sections()
        .filter(|section| section.kind == SHT_PROGBITS && section.flags.contains(SHF_ALLOC))
        // The containers of kernels are the largest sections.
        .filter(|section| !section.name.starts_with(".nv") && !section.name.starts_with("__nv"));
    let parts = without_overlaps(sections.map(|section| (section.offset, section.data))).into_iter();
    parts.flat_map(|part| versions_in(part, major)).max()
}

/// Returns the versions that follow the magic number, in constants or in code.
fn versions_in(part: &[u8], major: u32) -> impl Iterator<Item = Version> {
    memmem::find_iter(part, &MAGIC).filter_map(move |at| {
        let behind = &part[at + MAGIC.len()..];
        // Constants and 8-byte operands have it next to the magic number. Without optimization, gcc uses a
        // separate instruction for each field.
        u32_at(behind, 0)
            .and_then(|number| version(number, major))
            .or_else(|| version(operand_of_x86(behind).filter(|_| behind[0] == 0xc7)?, major))
    })
}

/// Decodes `NCCL_VERSION_CODE`. These structures exist since 2.14.
fn version(number: u32, major: u32) -> Option<Version> {
    const FIRST: Version = Version::new(2, 14, 0);
    let version = version_of_answer(&NCCL_GETTER, u64::from(number))?;
    (version.major == major && version >= FIRST).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_follows_the_magic_number() {
        let constant = [&80_u64.to_le_bytes()[..], &MAGIC, &22_809_u32.to_le_bytes(), &[0, 0, 0, 0x80]].concat();
        let move_of_eight = [&[0x48, 0xb8][..], &MAGIC, &22_703_u32.to_le_bytes(), &[0x48]].concat();
        // movl $0xcafebeef, -88(%rbp); movl $22809, -84(%rbp)
        let by_frame = [&[0xc7, 0x45, 0xa8][..], &MAGIC, &[0xc7, 0x45, 0xac], &22_809_u32.to_le_bytes()].concat();
        // movl $22809, 156(%rsp)
        let by_stack = [&MAGIC[..], &[0xc7, 0x84, 0x24, 0x9c, 0, 0, 0], &22_809_u32.to_le_bytes(), &[0xc7]].concat();
        let compared = [&[0x81, 0x7c, 0x24, 8][..], &MAGIC, &[0x0f, 0x85, 0, 0, 0, 0]].concat();
        let truncated = [&MAGIC[..], &[0xc7, 0x45]].concat();
        let later = Some(Version::new(2, 28, 9));
        for (code, expected) in [
            (constant.clone(), later),
            (move_of_eight, Some(Version::new(2, 27, 3))),
            (by_frame, later),
            (by_stack, later),
            (compared, None),
            (truncated, None),
            ([&MAGIC[..], &1_u32.to_le_bytes()].concat(), None),
            (MAGIC.to_vec(), None),
        ] {
            assert_eq!(versions_in(&code, 2).max(), expected, "{code:x?}");
        }
        assert_eq!(versions_in(&constant, 3).max(), None);
    }
}
