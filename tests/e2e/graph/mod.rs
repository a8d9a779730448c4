//! Crates of a dependency graph and CUDA: mismatches are refused in release builds and warned of in others.

mod dlopened;
mod fixture;
mod kernels;
mod listing;
mod mismatches;
mod pages;
mod real_crates;
mod sources;
