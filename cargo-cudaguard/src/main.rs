//! `cargo cudaguard`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: cargo_cudaguard::CountingAllocator = cargo_cudaguard::CountingAllocator;

fn main() -> ExitCode {
    cargo_cudaguard::run()
}
