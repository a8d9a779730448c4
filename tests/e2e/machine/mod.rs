//! The command's own look at machines: `probe`, `verify` here, on machines that files and flags describe, and on fleets;
//! `exec` on a driver that does not fit. No GPU is needed: libcuda is the real one of driver 535, or the fake one.

mod bare;
mod described;
mod drawn;
pub(crate) mod fixture;
mod fleet;
mod here;
mod hostile;
mod million;
mod nccl;
mod worlds;

use cudaguard_tests::Trial;

use super::loading::guarded;

pub(crate) fn trials() -> Vec<Trial> {
    [
        bare::trials(),
        described::trials(),
        drawn::trials(),
        fleet::trials(),
        here::trials(),
        hostile::trials(),
        million::trials(),
        nccl::trials(),
        worlds::trials(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
