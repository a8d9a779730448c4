//! The constant that an exported getter returns, read by the function of the shim (`templates/shim/returned_constant.h`).

#![allow(unsafe_code)]

use crate::binary::elf::Elf;
use object::elf::Machine;

/// Number of bytes of a function's code that are searched, as in the shim (measured: up to 461 bytes are needed).
const LOOKED_AT: usize = 2048;

unsafe extern "C" {
    fn cudaguard_find_returned_constant(code: *const u8, size: usize, machine: u32) -> u32;
}

/// Returns the constant that an exported getter returns, if it is known.
pub(crate) fn returned_constant(elf: &Elf<'_>, getter: &str) -> Option<u32> {
    find_returned_constant(first_function(elf.exported_code(getter)?), elf.machine)
}

/// Returns the constant that the function with this code returns, if it is known. `machine` is the `e_machine` of its file.
fn find_returned_constant(code: &[u8], machine: Machine) -> Option<u32> {
    // SAFETY: The function only reads the bytes of `code`, and keeps no pointer.
    let constant = unsafe { cudaguard_find_returned_constant(code.as_ptr(), code.len(), machine.0.into()) };
    (constant != 0).then_some(constant)
}

/// Returns the start of this code that may belong to its first function.
pub(crate) fn first_function(code: &[u8]) -> &[u8] {
    &code[..code.len().min(LOOKED_AT)]
}

#[cfg(test)]
mod tests {
    use object::elf::{EM_AARCH64, EM_X86_64};

    use super::*;

    fn returned_by_x86(code: &[u8]) -> Option<u32> {
        find_returned_constant(code, EM_X86_64)
    }

    fn returned_by_aarch64(words: &[u32]) -> Option<u32> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        find_returned_constant(&code, EM_AARCH64)
    }

    #[test]
    fn x86_getter_returns_its_constant() {
        let plain = [0xb8, 0xc8, 0x32, 0, 0, 0xc3];
        assert_eq!(returned_by_x86(&plain), Some(13_000));
        // The end of cudnnGetCudartVersion of cuDNN 9.15.1: five registers are restored.
        let restores = [0xb8, 0xc8, 0x32, 0, 0, 0x5b, 0x41, 0x5c, 0x41, 0x5d, 0x41, 0x5e, 0x5d, 0xc3, 0x0f];
        assert_eq!(returned_by_x86(&restores), Some(13_000));
        let adds = [0xb8, 1, 2, 3, 4, 0x48, 0x81, 0xc4, 0x20, 0, 1, 0, 0xc9, 0xc3];
        assert_eq!(returned_by_x86(&adds), Some(0x0403_0201));
        for (at, byte) in [(0, 0xb9), (5, 0xe8), (5, 0x90)] {
            let mut other = plain;
            other[at] = byte;
            assert_eq!(returned_by_x86(&other), None, "{at} {byte:x}");
        }
        assert_eq!(returned_by_x86(&plain[..5]), None);
        assert_eq!(returned_by_x86(&restores[..9]), None);
    }

    #[test]
    fn aarch64_getter_returns_its_constant() {
        const RET: u32 = 0xd65f_03c0;
        let mov = |number: u32| 0x5280_0000 | (number & 0xffff) << 5;
        let movk = |number: u32| 0x72a0_0000 | (number >> 16) << 5;
        assert_eq!(returned_by_aarch64(&[mov(13_000), RET]), Some(13_000));
        assert_eq!(returned_by_aarch64(&[mov(91_501), movk(91_501), RET]), Some(91_501));
        // ldp x29, x30, [sp], #32; ldr x19, [sp, #16]; add sp, sp, #32; autiasp
        let restores = [mov(12_090), 0xa8c2_7bfd, 0xf940_0bf3, 0x9100_83ff, 0xd503_23bf, RET];
        assert_eq!(returned_by_aarch64(&restores), Some(12_090));
        assert_eq!(returned_by_aarch64(&restores[..5]), None);
        // mov w1; a call in between
        assert_eq!(returned_by_aarch64(&[mov(13_000) | 1, RET]), None);
        assert_eq!(returned_by_aarch64(&[mov(13_000), 0x9400_0001, RET]), None);
    }
}
