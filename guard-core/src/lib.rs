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

#![deny(unsafe_code)]
mod check;
#[cfg(feature = "build")]
mod checks;
#[cfg(feature = "build")]
mod config;
#[cfg(feature = "build")]
mod coverage;
#[cfg(feature = "build")]
mod embed;
#[cfg(feature = "build")]
mod finding;
#[cfg(feature = "build")]
mod guard;
#[cfg(feature = "build")]
mod knowledge;
#[cfg(feature = "build")]
mod manifest;
#[cfg(feature = "build")]
mod model;
#[cfg(feature = "build")]
mod pipeline;
#[cfg(feature = "build")]
mod sys;
#[cfg(feature = "build")]
mod text;
#[cfg(feature = "build")]
mod toolchain;

pub use check::{CheckFinding, CheckReport, Severity, Status, check};
#[cfg(feature = "build")]
pub use embed::{Embed, EmbedError};

/// The modules that the `cargo cudaguard` command uses. They may change in any release.
#[cfg(feature = "build")]
#[doc(hidden)]
pub mod internal {
    /// The newest version in the registries. It is empty before the first release; `.ci/release` sets it.
    pub const PUBLISHED: &str = include_str!("../data/published.txt").trim_ascii();

    pub use crate::config::{ConfigError, check_regular_file, lock, policy};
    pub use crate::embed::{is_device_code, rebuild_stamp};
    pub use crate::knowledge::{cudnn, tables};
    pub use crate::manifest::windows::use_windows_releases;
    pub use crate::manifest::{model as manifest, note};
    pub use crate::model::{arch, linkage, version};
    pub use crate::sys::{bytes, digest, env, file_error, files, subprocess};
    pub use crate::text::{glob, json, sanitize, shell_words, suggest};

    /// The checks of a build.
    pub mod checks {
        pub use crate::checks::*;
    }
    /// The GPUs that the code of a program serves.
    pub mod coverage {
        pub use crate::coverage::*;
    }
    /// Findings.
    pub mod finding {
        pub use crate::finding::*;
    }
    /// The guard as object files.
    pub mod guard {
        pub use crate::guard::*;
    }
    /// The steps of a build.
    pub mod pipeline {
        pub use crate::pipeline::*;
    }
    /// Detection of the toolchain.
    pub mod toolchain {
        pub use crate::toolchain::*;
    }
}

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
