//! What every driver does with an input.

use std::path::Path;

use cudaguard::binary::Binary;
use cudaguard::elf::{self, Elf};

/// Its name, and what it does.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// The corpus of each lies in the folder of its name.
#[allow(dead_code)]
pub(crate) const ALL: [Target; 2] = [("kernels_read_bytes", kernels_read_bytes), ("binary_of_bytes", binary_of_bytes)];

/// Reads the bytes as a file with GPU code, and asks everything of what was read.
pub(crate) fn kernels_read_bytes(data: &[u8]) {
    let Ok(kernels) = cudaguard::kernels::read_bytes(data) else { return };
    for container in kernels.containers() {
        assert!(container.offset <= data.len() as u64 && container.size <= data.len() as u64);
        for entry in kernels.entries_of(container) {
            assert!(entry.offset <= data.len() as u64);
        }
    }
    // An entry has a header of 64 bytes, or a text of a few words: what is listed stays in proportion to what was given.
    assert!(kernels.entries().len() <= data.len() / 16 + 1);
    assert_eq!(kernels.has_kernels(), !kernels.container_groups().is_empty());
    for cc in [(7, 5), (9, 0), (10, 3), (200, 1)] {
        let _ = kernels.gpu_support(cc);
    }
    let _ = cudaguard::evidence::Evidence::in_bytes(data, &kernels).to_json();
    // The rows for every GPU there may ever be cost twenty times what reading does, and their code knows no bytes: one
    // input in sixteen, chosen by its own bytes, so that the same input always does the same.
    if data.iter().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte)) < 16 {
        assert_eq!(kernels.requirement_rows().is_empty(), !kernels.has_kernels());
        let _ = kernels.to_json().to_string();
    }
}

/// Reads the bytes as a program, a library, an object or an archive: notes, tables, names, and how CUDA is reached.
pub(crate) fn binary_of_bytes(data: &[u8]) {
    let contents = std::sync::Arc::new(cudaguard::mapped_file::Contents::from(data.to_vec()));
    if let Ok(binary) = Binary::from_contents(Path::new("fuzzed"), contents) {
        for note in binary.manifests().flatten() {
            let _ = note.manifest.to_json().to_string();
        }
    }
    if elf::is_archive(data) {
        return;
    }
    let Ok(elf) = Elf::parse(data) else { return };
    // What the finding of libraries asks beside that.
    let _ = (elf.needed_versions().count(), elf.defined_versions().count(), elf.exported_u32("cudnn_graph_version"));
    assert!(elf.sections().count() <= usize::from(u16::MAX) + data.len() / 40);
    let _ = elf.at_address(0x40_0000);
}
