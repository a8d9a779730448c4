//! The words of findings about programs for Windows.

use super::{Finding, WINDOWS};
use crate::knowledge::vendor::dll_of_soname;

impl Finding {
    /// Replaces what the finding names of Linux by the same of Windows.
    pub fn use_names_of_windows(&mut self) {
        let facts = self.facts.iter_mut().map(|(_, value)| value);
        for text in [&mut self.message, &mut self.hint].into_iter().chain(facts) {
            *text = with_names_of_windows(text);
        }
    }
}

/// Replaces sonames and other names of Linux in a text by those of Windows.
pub fn with_names_of_windows(text: &str) -> String {
    let mut named = String::new();
    for part in text.split_inclusive(is_separator) {
        let (word, rest) = part.split_at(part.trim_end_matches(|c| is_separator(c) || c == '.').len());
        match dll_of_soname(word) {
            Some(dll) => named = named + &dll + rest,
            None => named += part,
        }
    }
    WINDOWS.iter().fold(named, |text, (linux, windows)| text.replace(linux, windows))
}

fn is_separator(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

#[test]
fn names_of_linux_are_replaced() {
    for (text, windows) in [
        ("finds no libcudnn.so.9: set LD_LIBRARY_PATH=x", "finds no cudnn64_9.dll: set PATH=x"),
        ("there is no libcuda.so.1, and app", "there is no nvcuda.dll, and app"),
        ("first in LD_LIBRARY_PATH.", "first in PATH."),
        ("libcudnn_graph.so.9\tlibcudart.so.11.0 libfoo.so.1", "cudnn_graph64_9.dll\tcudart64_110.dll libfoo.so.1"),
        ("install the NVIDIA driver (container: --gpus all)", "install the NVIDIA driver"),
        ("too old for libcudart 12", "too old for cudart 12"),
        ("the libcuda found is the stub", "the nvcuda.dll found is the stub"),
    ] {
        assert_eq!(with_names_of_windows(text), windows);
    }
}
