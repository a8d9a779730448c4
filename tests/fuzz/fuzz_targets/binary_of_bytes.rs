//! Fuzz target of `cargo fuzz run binary_of_bytes`.

#![no_main]

#[path = "../src/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::binary_of_bytes(data));
