//! Records what a CUDA program was built with, and refuses to start it where that cannot work.
//!
//! In a build.rs: `cudaguard::embed!()`. In the program, only where it wants the answer itself: [`check`].
//! Everything else here is what the `cargo cudaguard` command is made of.

#![deny(unsafe_code)]

mod check;
pub use check::{Verdict, check};

#[cfg(feature = "build")]
pub mod arch;
#[cfg(feature = "command")]
pub mod digest;
#[cfg(feature = "build")]
pub mod elf;
#[cfg(feature = "build")]
mod embed;
#[cfg(feature = "build")]
pub mod env;
#[cfg(feature = "command")]
pub mod files;
#[cfg(feature = "build")]
pub mod finding;
#[cfg(feature = "build")]
pub mod guard;
#[cfg(feature = "command")]
pub mod host;
#[cfg(feature = "build")]
pub mod json;
#[cfg(feature = "build")]
pub mod judge;
#[cfg(feature = "build")]
mod linkage;
#[cfg(feature = "build")]
pub mod lock;
#[cfg(feature = "build")]
pub mod manifest;
#[cfg(feature = "build")]
pub mod note;
#[cfg(feature = "build")]
pub mod policy;
#[cfg(feature = "build")]
pub mod serves;
#[cfg(feature = "build")]
pub mod spelling;
#[cfg(feature = "build")]
pub mod stamp;
#[cfg(feature = "build")]
mod subprocess;
#[cfg(feature = "build")]
pub mod tables;
#[cfg(feature = "build")]
pub mod toolchain;
#[cfg(feature = "build")]
pub mod vendor;
#[cfg(feature = "build")]
pub mod version;

#[cfg(feature = "command")]
pub mod binary;
#[cfg(feature = "command")]
pub mod crates;
#[cfg(feature = "command")]
pub mod doctor;
#[cfg(feature = "command")]
pub mod dry_run;
#[cfg(feature = "command")]
pub mod kernels;
#[cfg(feature = "command")]
mod library_version;
#[cfg(feature = "command")]
pub mod loader;
#[cfg(feature = "command")]
pub mod machine;
#[cfg(feature = "command")]
pub mod seal;
#[cfg(feature = "command")]
pub mod symbols;

#[cfg(feature = "build")]
pub use embed::Embed;

/// In a build.rs: records what this package is built with, and guards every executable, example and `cdylib` of it and
/// whatever links its library. [`Embed`] has the options.
///
/// ```no_run
/// cudaguard::embed!();
/// ```
#[cfg(feature = "build")]
#[macro_export]
macro_rules! embed {
    () => {
        $crate::Embed::new().embed()
    };
}
