//! How a program reaches a library.

/// How a program reaches a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Not known before linking.
    #[default]
    Unknown,
    /// In `DT_NEEDED`.
    Linked,
    /// Inside the file.
    Static,
    /// By name at run time.
    Dlopened,
    /// Not at all.
    None,
}

impl Linkage {
    /// `linked`, `static`, `dlopened`, `none`: in reports and in JSON. `None` where it is not known.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Linked => Some("linked"),
            Self::Static => Some("static"),
            Self::Dlopened => Some("dlopened"),
            Self::None => Some("none"),
        }
    }

    /// The reverse of [`Linkage::name`]; a word that nobody knows is not known.
    pub fn from_name(name: &str) -> Self {
        [Self::Linked, Self::Static, Self::Dlopened, Self::None]
            .into_iter()
            .find(|linkage| linkage.name() == Some(name))
            .unwrap_or_default()
    }
}
