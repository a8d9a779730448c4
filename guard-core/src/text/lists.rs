//! Texts from iterators.

use std::fmt::{Display, Write as _};

/// Joins the items of an iterator.
pub(crate) trait IteratorExt: Iterator + Sized {
    /// Joins the texts of the items.
    fn join(self, separator: &str) -> String
    where
        Self::Item: Display,
    {
        let mut text = String::new();
        let mut before = "";
        for item in self {
            let _ = write!(text, "{before}{item}");
            before = separator;
        }
        text
    }
}

impl<I: Iterator> IteratorExt for I {}
