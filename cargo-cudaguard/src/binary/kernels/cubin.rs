//! Parses bare cubins: ELF images for a GPU that are not in a container.

use crate::binary::elf::Elf;
use cudaguard::internal::arch::{Arch, Suffix};
use cudaguard::internal::digest::Digest;
use object::elf::EM_CUDA;

/// The facts from a cubin's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cubin {
    pub(super) arch: Arch,
    /// Version of its ELF ABI, the second number of the version in a container's entry: 7 up to CUDA 12, 8 since CUDA
    /// 13.
    pub(super) abi: u16,
    pub(super) debug: bool,
    /// Bytes from its beginning to the end of its last table or section.
    pub(super) size: usize,
    /// Hash of its kernel names: equal for images that contain the same kernels for other GPUs.
    pub(super) kernels: u64,
    /// The CUDA major that compiled it; 0 if its header does not show it.
    pub(super) compiled_by: u32,
}

/// Reads the cubin at the beginning of `data`, which may continue after it.
///
/// # Errors
/// If it is not a complete cubin, returns the number of headers that were examined.
pub(super) fn read_cubin(data: &[u8]) -> Result<Cubin, u64> {
    // Checked before parsing, because in a scan most data that begins like ELF is not a cubin.
    if data.get(18..20) != Some(&EM_CUDA.0.to_le_bytes()[..]) {
        return Err(0);
    }
    let elf = Elf::parse(data).map_err(|_| 0u64)?;
    if elf.find_damage().is_some() {
        return Err(elf.header_count());
    }
    read_complete(data, &elf).ok_or(elf.header_count())
}

fn read_complete(data: &[u8], elf: &Elf) -> Option<Cubin> {
    let mut end = elf.tables_end;
    let (mut kernels, mut debug) = (0u64, false);
    for section in elf.sections() {
        let stored = section.data.len() as u64;
        end = end.max(section.offset.saturating_add(stored));
        if let Some(name) = section.name.strip_prefix(".text.") {
            kernels = kernels.wrapping_add(name_mark(name.as_bytes()));
        }
        debug |= section.name == ".debug_info" || section.name == ".nv_debug_info_reg_sass";
    }
    let flags = elf.flags.0;
    // The position of the arch in the flags depends on the ABI (measured: ptxas 11.8 to 12.9 write 7, 13.0 to 13.5
    // write 8).
    let (number, flag) =
        if elf.abi_version >= 8 { (flags >> 8 & 0xff, FLAG_ACCELERATED_8) } else { (flags & 0xff, FLAG_ACCELERATED_7) };
    let suffix = elf
        .notes()
        .filter(|note| note.owner.starts_with("NVIDIA"))
        .find_map(|note| suffix_in(note.desc))
        .unwrap_or(if number >= FIRST_ACCELERATED && flags & flag != 0 { Suffix::Specific } else { Suffix::None });
    let number = u16::try_from(number).ok().filter(|number| super::fatbin::is_possible_arch(*number))?;
    Some(Cubin {
        arch: Arch { number, suffix },
        abi: elf.abi_version.into(),
        debug,
        size: usize::try_from(end).ok().filter(|end| *end <= data.len())?,
        kernels,
        compiled_by: super::provenance::major_in_header(data),
    })
}

// Flags of machine code that are set for `sm_90a`; source: EF_CUDA_ACCELERATORS in LLVM's `ELF.h`. Newer archs record
// the suffix in their notes only. Before arch 90, the first with such a suffix, the bit has another meaning: CUPTI 12.6
// has an `sm_60` with it.
const FIRST_ACCELERATED: u32 = 90;
const FLAG_ACCELERATED_7: u32 = 0x800;
const FLAG_ACCELERATED_8: u32 = 0x8;

/// Extracts the suffix from `-arch sm_100f` in the command line that ptxas 13 and later store in `.note.nv.tkinfo`.
fn suffix_in(desc: &[u8]) -> Option<Suffix> {
    let mark = b"-arch sm_";
    let at = desc.windows(mark.len()).position(|window| window == mark)?;
    let rest = &desc[at + mark.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(match rest.get(digits) {
        Some(b'a') => Suffix::Specific,
        Some(b'f') => Suffix::Family,
        _ => Suffix::None,
    })
}

/// Returns true if a cubin contains a kernel, or if it cannot be read.
pub(super) fn has_kernels(image: &[u8]) -> bool {
    match Elf::parse(image) {
        Ok(elf) if elf.sections().next().is_some() => elf.sections().any(|section| section.name.starts_with(".text.")),
        _ => true,
    }
}

/// Hashes a kernel name; the sum of several hashes does not depend on their order.
pub(super) fn name_mark(name: &[u8]) -> u64 {
    Digest::from_bytes(name).to_u64()
}
