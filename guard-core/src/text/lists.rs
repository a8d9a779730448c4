//! Lists and texts from iterators. `collect` and `join` of the standard library compile into several times the code for each
//! caller, because a build script is not optimized.

use std::fmt::{Display, Write as _};

/// Methods that end a chain of iterators.
pub(crate) trait IteratorExt: Iterator + Sized {
    /// Collects the items.
    #[expect(clippy::while_let_on_iterator, reason = "`for` compiles `into_iter` for each type, too")]
    fn collect_vec(mut self) -> Vec<Self::Item> {
        let mut items = Vec::new();
        while let Some(item) = self.next() {
            items.push(item);
        }
        items
    }

    /// Joins the texts of the items.
    #[expect(clippy::while_let_on_iterator, reason = "see `collect_vec`")]
    fn join(mut self, separator: &str) -> String
    where
        Self::Item: Display,
    {
        let mut text = String::new();
        let mut before = "";
        while let Some(item) = self.next() {
            let _ = write!(text, "{before}{item}");
            before = separator;
        }
        text
    }
}

impl<I: Iterator> IteratorExt for I {}
