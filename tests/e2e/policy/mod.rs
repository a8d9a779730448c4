//! Requirements of a project on its builds: the policy and the lock, and findings in editors and CI.

mod fixture;
mod formats;
mod front_ends;
mod init;
mod lock;
pub(crate) mod pages;
