//! The fuzz targets that all drivers share.

use std::path::Path;

use cargo_cudaguard::binary::ar;
use cargo_cudaguard::binary::elf::Elf;
use cargo_cudaguard::binary::file::Binary;

/// A name and a function for an input.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets. Each corpus is in the directory with the name of its target.
#[allow(dead_code)]
pub(crate) const ALL: [Target; 2] = [("kernels_read_bytes", kernels_read_bytes), ("binary_of_bytes", binary_of_bytes)];

/// Parses the bytes as a file with GPU code, and calls every query on the result.
pub(crate) fn kernels_read_bytes(data: &[u8]) {
    let Ok(kernels) = cargo_cudaguard::binary::kernels::read_bytes(data) else { return };
    for container in kernels.containers() {
        assert!(container.offset <= data.len() as u64 && container.size <= data.len() as u64);
        for entry in kernels.entries_of(container) {
            assert!(entry.offset <= data.len() as u64);
        }
    }
    // An entry has a header of 64 bytes or a text of at least 16 bytes, so the number of entries is limited by the
    // length of the input.
    assert!(kernels.entries().len() <= data.len() / 16 + 1);
    assert_eq!(kernels.has_kernels(), !kernels.container_groups().is_empty());
    for cc in [(7, 5), (9, 0), (10, 3), (200, 1)] {
        let _ = kernels.gpu_support(cc);
    }
    let _ = serde_json::to_string(&cargo_cudaguard::linked::evidence::Evidence::in_bytes(data, &kernels));
    // Computing the rows for all possible GPUs takes twenty times as long as reading, and does not depend on the bytes
    // directly. It runs for one of sixteen inputs, selected by the content, so that the same input always has the same
    // result.
    if data.iter().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(*byte)) < 16 {
        assert_eq!(kernels.requirement_rows().is_empty(), !kernels.has_kernels());
        let _ = serde_json::to_string(&kernels);
    }
}

/// Parses the bytes as a program, a library, an object or an archive: notes, tables, names and the use of CUDA.
pub(crate) fn binary_of_bytes(data: &[u8]) {
    let contents = std::sync::Arc::new(cargo_cudaguard::binary::mapped_file::Contents::from(data.to_vec()));
    if let Ok(binary) = Binary::from_contents(Path::new("fuzzed"), contents) {
        for note in binary.manifests().flatten() {
            let _ = note.manifest.to_json().to_string();
        }
    }
    if ar::is_archive(data) {
        return;
    }
    let Ok(elf) = Elf::parse(data) else { return };
    // Additional queries of the library detection.
    let _ = (elf.versions(), elf.exported_u32("cudnn_graph_version"));
    assert!(elf.sections().count() <= usize::from(u16::MAX) + data.len() / 40);
    let _ = elf.at_address(0x40_0000);
}
