//! Machine checks of the command: `probe`, `verify` on this machine, on described machines and on fleets; `exec` with a
//! driver that does not fit. No GPU is needed: libcuda is the real one of driver 535, or the fake one.

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

use cudaguard_tests::Test;

use super::loading::guarded;

pub(crate) fn tests() -> Vec<Test> {
    [
        bare::tests(),
        described::tests(),
        drawn::tests(),
        fleet::tests(),
        here::tests(),
        hostile::tests(),
        million::tests(),
        nccl::tests(),
        worlds::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
