//! Tables of tests as text: a block for each test, and its steps as lines.
//!
//! A block begins with `= NAME`, and its marks. `slow` moves the test to the slow layer; the lines of a `part` belong to other blocks. Blank
//! lines and lines that begin with `#` are comments. If a step fails, the message has the file and the number of its line.

use std::cell::RefCell;

use crate::{Test, test};

thread_local! {
    /// The step that the test on this thread follows.
    static STEP: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A table of tests.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name of its file.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The marks that its blocks may have, in addition to `slow` and `part`.
    pub marks: &'static [&'static str],
}

/// A block of a table.
#[derive(Clone, Debug)]
pub struct Block {
    /// The name of the test.
    pub name: &'static str,
    marks: Vec<&'static str>,
    /// Each step with its place in the file.
    steps: Vec<(String, &'static str)>,
}

impl Table {
    /// Returns a test for each block that is no part of others. `prefix` is the module of the tests, such as `glibc::`.
    pub fn tests(self, prefix: &str, body: fn(&Block)) -> Vec<Test> {
        let blocks = self.blocks().into_iter().filter(|block| !block.has("part"));
        let tests = blocks.map(|block| {
            let (name, is_slow) = (format!("{prefix}{}", block.name), block.has("slow"));
            let test = test(name, move || body(&block));
            if is_slow { test.slow() } else { test }
        });
        tests.collect()
    }

    /// Returns the block with this name.
    pub fn block(self, name: &str) -> Block {
        let block = self.blocks().into_iter().find(|block| block.name == name);
        block.unwrap_or_else(|| panic!("{} has no block {name}", self.file))
    }

    fn blocks(self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for (index, line) in self.text.lines().map(str::trim).enumerate() {
            let place = format!("{}:{}", self.file, index + 1);
            if let Some(head) = line.strip_prefix("= ") {
                let mut words = head.split(' ');
                let name = words.next().unwrap_or_default();
                let marks: Vec<&str> = words.collect();
                assert!(blocks.iter().all(|block| block.name != name), "{place}: a second block {name}");
                for mark in &marks {
                    let is_known = ["slow", "part"].contains(mark) || self.marks.contains(mark);
                    assert!(is_known, "{place}: `{mark}` is no mark of a block");
                }
                blocks.push(Block { name, marks, steps: Vec::new() });
            } else if !line.is_empty() && !line.starts_with('#') {
                let block = blocks.last_mut().unwrap_or_else(|| panic!("{place}: a step before the first block"));
                block.steps.push((place, line));
            }
        }
        blocks
    }
}

impl Block {
    /// Returns true if the block has this mark.
    pub fn has(&self, mark: &str) -> bool {
        self.marks.contains(&mark)
    }

    /// Passes the first word and the rest of each line to a function, which returns false if it does not know the word.
    pub fn follow(&self, mut step: impl FnMut(&str, &str) -> bool) {
        let outer = STEP.take();
        for (place, line) in &self.steps {
            STEP.set(Some(format!("{place}: {line}")));
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            assert!(step(word, rest.trim_start()), "`{word}` is no step of this table");
        }
        STEP.set(outer);
    }
}

/// Takes the step in which the test on this thread fails, as a line of its message.
pub(crate) fn failed_step() -> String {
    STEP.take().map(|step| format!("\nin the step {step}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    const fn table(text: &'static str) -> Table {
        Table { file: "rows.txt", text, marks: &["fast"] }
    }

    #[test]
    fn steps_of_a_block_are_followed() {
        let table = table("# comment\n= one fast\n  add 1 2\n\n  # comment\n  end\n= other\n  add 3\n");
        let block = table.block("one");
        let mut seen = Vec::new();
        block.follow(|word, rest| {
            seen.push(format!("{word}({rest})"));
            true
        });
        assert_eq!((seen.join(" ").as_str(), block.has("fast"), block.has("slow")), ("add(1 2) end()", true, false));
    }

    #[test]
    fn failed_steps_have_a_place() {
        let block = table("= one\n  right\n  wrong 1\n").block("one");
        assert!(panic::catch_unwind(|| block.follow(|word, _| word == "right")).is_err());
        assert_eq!((failed_step().as_str(), failed_step().as_str()), ("\nin the step rows.txt:3: wrong 1", ""));
    }

    #[test]
    fn mistakes_of_a_table_have_a_place() {
        for (text, message) in [
            ("step\n", "rows.txt:1: a step before the first block"),
            ("= one\n= one\n", "rows.txt:2: a second block one"),
            ("= one slwo\n", "rows.txt:1: `slwo` is no mark of a block"),
        ] {
            let error = panic::catch_unwind(|| table(text).blocks()).unwrap_err();
            assert_eq!(error.downcast_ref::<String>().map(String::as_str), Some(message));
        }
    }
}
