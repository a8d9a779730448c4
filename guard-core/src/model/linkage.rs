//! The ways in which a program reaches a library.

/// The way in which a program reaches a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Not known before linking.
    #[default]
    Unknown,
    /// The library is in `DT_NEEDED`.
    Linked,
    /// The library's code is in the file.
    Static,
    /// The program opens the library by name at run time.
    Dlopened,
    /// The program does not use the library.
    None,
}

impl Linkage {
    /// Returns the name in reports and in JSON: `linked`, `static`, `dlopened`, `none`. `None` if it is unknown.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Linked => Some("linked"),
            Self::Static => Some("static"),
            Self::Dlopened => Some("dlopened"),
            Self::None => Some("none"),
        }
    }

    /// Parses the result of [`Linkage::name`]. Other texts give [`Linkage::Unknown`].
    pub fn from_name(name: &str) -> Self {
        [Self::Linked, Self::Static, Self::Dlopened, Self::None]
            .into_iter()
            .find(|linkage| linkage.name() == Some(name))
            .unwrap_or_default()
    }
}
