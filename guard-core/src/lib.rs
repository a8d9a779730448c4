//! Records what a CUDA program was built with, and refuses to start it where that cannot work.
//!
//! In a build.rs: `cudaguard::embed!()`, or `cudaguard::Embed` with options. In the program, only where it wants the answer
//! itself: [`check()`]. That is all that is promised: the rest is for the `cargo cudaguard` command, which depends on exactly
//! the library's version.
//!
//! # In a build.rs
//!
//! ```no_run
//! cudaguard::embed!();
//! ```
//!
//! It finds the toolkit, libraries and host compiler that this build uses, holds them against `cudaguard.toml`, and links a note
//! with these facts and a small guard into what the package makes. A release build whose parts do not belong together fails
//! with the reasons. Any other build goes on: where there is no guard to be had (a target without ELF, no C compiler,
//! docs.rs), a warning of cargo's says so.
//!
//! # In the program
//!
//! Nothing is needed: before `main` the guard looks at the machine, and ends a program that cannot work there with
//! status 78 and the reason on stderr. A program that can do without the GPU says `gpu = "optional"` under `[runtime]` in
//! `cudaguard.toml`, depends on this crate with `default-features = false`, and asks:
//!
//! ```
//! use cudaguard::Status;
//!
//! let report = cudaguard::check();
//! let on_gpu = report.status == Status::Compatible;
//! if !on_gpu {
//!     eprintln!("continuing without the GPU: {report}");
//! }
//! # assert!(!on_gpu);
//! ```
//!
//! # Features
//!
//! `build`, the default, is what a build.rs needs. Without it the crate contains only [`check()`] and its result, and has no dependency.
//! `command` is for the `cargo cudaguard` command.

#![deny(unsafe_code)]
// What the command alone uses is compiled for a build.rs too, where its modules are private.
#![cfg_attr(not(feature = "command"), allow(dead_code, unreachable_pub, unused_imports))]

mod check;
#[cfg(feature = "build")]
mod embed;

pub use check::{CheckFinding, CheckReport, Severity, Status, check};
#[cfg(feature = "build")]
pub use embed::{Embed, EmbedError};

/// What the command is made of: nobody else sees these modules, so that they may change at any time.
#[cfg(feature = "build")]
#[path = "."]
mod inside {
    pub mod arch;
    pub mod digest;
    pub mod elf;
    pub mod env;
    pub mod files;
    pub mod finding;
    pub mod guard;
    pub mod json;
    pub mod judge;
    pub(crate) mod linkage;
    pub mod lock;
    pub mod manifest;
    pub mod note;
    pub mod pipeline;
    pub mod policy;
    pub mod rebuild_stamp;
    pub mod sanitize;
    pub mod served;
    pub mod serves;
    pub mod shell_words;
    pub(crate) mod subprocess;
    pub mod suggest;
    pub mod tables;
    pub mod toolchain;
    pub mod vendor;
    pub mod version;

    #[cfg(feature = "command")]
    pub mod binary;
    #[cfg(feature = "command")]
    pub mod crates;
    #[cfg(feature = "command")]
    pub mod dlopen_note;
    #[cfg(feature = "command")]
    pub mod doctor;
    #[cfg(feature = "command")]
    pub mod dry_run;
    #[cfg(feature = "command")]
    pub(crate) mod entry;
    #[cfg(feature = "command")]
    pub mod evidence;
    #[cfg(feature = "command")]
    pub mod examined;
    #[cfg(feature = "command")]
    pub mod host;
    #[cfg(feature = "command")]
    pub mod kernels;
    #[cfg(feature = "command")]
    pub(crate) mod library_version;
    #[cfg(feature = "command")]
    pub mod loader;
    #[cfg(feature = "command")]
    pub mod machine;
    #[cfg(feature = "command")]
    pub mod mapped_file;
    #[cfg(feature = "command")]
    pub mod seal;
    #[cfg(feature = "command")]
    pub mod symbols;
    #[cfg(feature = "command")]
    pub mod symptoms;
}

#[cfg(feature = "command")]
#[doc(hidden)]
pub use inside::*;
// As above, so that `crate::name` means the same with and without the command.
#[cfg(all(feature = "build", not(feature = "command")))]
#[allow(clippy::wildcard_imports)]
use inside::*;

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
