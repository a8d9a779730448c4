//! `cargo cudaguard`.
fn main() {}
