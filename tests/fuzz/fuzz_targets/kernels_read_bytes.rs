//! Fuzz target of `cargo fuzz run kernels_read_bytes`.

#![no_main]

#[path = "../src/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::kernels_read_bytes(data));
