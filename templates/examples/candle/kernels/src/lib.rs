//! The kernels of the model, as PTX.

pub const ADD: &str = include_str!(concat!(env!("OUT_DIR"), "/add.ptx"));
pub const SCALE: &str = include_str!(concat!(env!("OUT_DIR"), "/scale.ptx"));
