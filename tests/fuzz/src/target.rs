//! What every driver does with an input.

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
    let rows = kernels.requirements();
    assert_eq!(rows.is_empty(), !kernels.any());
    let _ = kernels.to_json().to_string();
}
