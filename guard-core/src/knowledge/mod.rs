//! Facts about NVIDIA's products, from the tables in `data/`.

pub mod tables;
pub mod vendor;
