//! Facts about NVIDIA's products, from the tables in `data/`.

pub mod cudnn;
pub mod tables;
