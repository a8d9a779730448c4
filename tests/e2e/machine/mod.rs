//! Machine checks of the command: `probe`, `verify` on this machine, on described machines and on fleets; `exec` with a
//! driver that does not fit. No GPU is needed: libcuda is the real one of driver 535, or the fake one.

mod choose;
mod described_hosts;
mod fake_hosts;
pub(crate) mod fixture;
mod fleet;
mod hostile_text;
mod local_host;
mod map;
mod simulate;
mod unguarded_programs;

use super::loading::guarded_programs;
