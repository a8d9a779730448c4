//! The door of a build.rs.

/// What `cudaguard::embed!()` does, with options.
#[derive(Debug, Default)]
pub struct Embed {}

impl Embed {
    /// With everything by default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}
