//! Records what a CUDA program was built with, and refuses to start it on a machine where it cannot work.
//!
//! In a build.rs, use `cudaguard::embed!()`, or `cudaguard::Embed` for options. A program that wants the result itself
//! calls [`check()`]. Only these are stable API: everything else is for the `cargo cudaguard` command, which depends on
//! exactly this version of the library.
//!
//! # In a build.rs
//!
//! ```no_run
//! cudaguard::embed!();
//! ```
//!
//! It detects the toolkit, libraries and host compiler that this build uses, checks them against `cudaguard.toml`, and
//! links a note with these facts and a small guard into everything that the package builds. A release build with
//! mismatching parts fails and prints the reasons. Other builds continue; if no guard can be built (a target without
//! ELF, no C compiler, docs.rs), cargo prints a warning.
//!
//! # In the program
//!
//! No code is needed: before `main`, the guard checks the machine, and ends a program that cannot work there with
//! status 78 and the reason on stderr. A program that can run without the GPU sets `gpu = "optional"` under `[runtime]`
//! in `cudaguard.toml`, depends on this crate with `default-features = false`, and calls:
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
// Code that only the command uses is also compiled for a build.rs, where its modules are private.
#![cfg_attr(not(feature = "command"), allow(dead_code, unreachable_pub, unused_imports))]

mod check;
#[cfg(feature = "build")]
mod embed;

pub use check::{CheckFinding, CheckReport, Severity, Status, check};
#[cfg(feature = "build")]
pub use embed::{Embed, EmbedError};

/// The modules of the command. They are not public API and may change at any time.
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
// Also without the command, so that `crate::name` works in both cases.
#[cfg(all(feature = "build", not(feature = "command")))]
#[allow(clippy::wildcard_imports)]
use inside::*;

/// Records what this package is built with, and guards all its executables, examples and `cdylib`s, and everything that
/// links its library. Call it in a build.rs. [`Embed`] has options.
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
