//! The results of a run, as a table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::cost::Cost;
use crate::skip::{Missing, Remedy};

/// Number of lines of each failure that are repeated at the end of a run.
const LAST_LINES: usize = 40;

/// The end of a test.
#[derive(Debug)]
pub(crate) enum End {
    Passed,
    Failed(String),
    Skipped(Vec<Missing>),
}

/// The results of all tests that ran.
#[derive(Debug, Default)]
pub(crate) struct Summary(Vec<(&'static str, String, Cost, End)>);

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(names) => write!(f, "apt install {names}"),
            Self::Instruction(text) => f.write_str(text),
        }
    }
}

impl Summary {
    pub(crate) fn add(&mut self, suite: &'static str, test: String, took: Cost, end: End) {
        self.0.push((suite, test, took, end));
    }

    /// Returns the number of tests that were skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.0.iter().map(|(.., end)| u64::from(matches!(end, End::Skipped(_)))).sum()
    }

    /// Returns the numbers of each suite, the failed tests, and the skipped tests with what is missing.
    pub(crate) fn table(&self, took: Duration) -> String {
        let mut text = format!("\n{:<14}{:>7}{:>9}{:>8}{:>10}\n", "suite", "passed", "skipped", "failed", "CPU s");
        let mut row = |name: &str, suite: Option<&str>| {
            let of_it = || self.0.iter().filter(|(of, ..)| suite.is_none_or(|suite| suite == *of));
            let ended = |is: fn(&End) -> bool| of_it().filter(|(_, _, _, end)| is(end)).count();
            let _ = writeln!(
                text,
                "{name:<14}{:>7}{:>9}{:>8}{:>10.0}",
                ended(|end| matches!(end, End::Passed)),
                ended(|end| matches!(end, End::Skipped(_))),
                ended(|end| matches!(end, End::Failed(_))),
                of_it().map(|(_, _, took, _)| took.processor.as_secs_f64()).sum::<f64>(),
            );
        };
        let suites: BTreeSet<&str> = self.0.iter().map(|(suite, ..)| *suite).collect();
        for suite in &suites {
            row(suite, Some(suite));
        }
        row("total", None);
        let _ = writeln!(text, "{:.0} seconds elapsed", took.as_secs_f64());

        let mut failed: Vec<&str> = Vec::new();
        let mut skipped: BTreeMap<&Missing, Vec<&str>> = BTreeMap::new();
        for (_, test, _, end) in &self.0 {
            match end {
                End::Passed => {}
                End::Failed(_) => failed.push(test),
                End::Skipped(missing) => {
                    let missing: BTreeSet<&Missing> = missing.iter().collect();
                    for one in missing {
                        skipped.entry(one).or_default().push(test);
                    }
                }
            }
        }
        if !failed.is_empty() {
            failed.sort_unstable();
            let _ = writeln!(text, "\nfailed:\n    {}", failed.join("\n    "));
        }
        for (missing, tests) in &mut skipped {
            tests.sort_unstable();
            let _ = writeln!(text, "\nskipped, {} is missing:\n    {}", missing.what, tests.join("\n    "));
            let _ = writeln!(text, "  to run them: {}", missing.remedy);
        }
        let packages: BTreeSet<&str> = skipped
            .keys()
            .filter_map(|missing| match missing.remedy {
                Remedy::Packages(names) => Some(names.split(' ')),
                Remedy::Instruction(_) => None,
            })
            .flatten()
            .collect();
        if packages.len() > 1 {
            let names: Vec<&str> = packages.into_iter().collect();
            let _ = writeln!(text, "\nTo install all missing packages: apt install {}", names.join(" "));
        }
        text + "\n"
    }

    /// Returns the slowest tests, with their processor time and elapsed time.
    pub(crate) fn slowest(&self, wanted: usize) -> String {
        let mut all: Vec<(&Cost, &str)> = self.0.iter().map(|(_, test, took, _)| (took, test.as_str())).collect();
        all.sort_by_key(|(took, test)| (Reverse(took.processor), *test));
        all.truncate(wanted);
        let seconds = |time: Duration| time.as_secs_f64();
        let line = |(took, test): &(&Cost, &str)| {
            format!("{:>8.1}{:>9.1}  {test}\n", seconds(took.processor), seconds(took.wall))
        };
        let heading = if wanted == 0 { "" } else { "   CPU s  elapsed  slowest tests\n" };
        heading.to_owned() + &all.iter().map(line).collect::<String>()
    }

    /// Returns the shortened failures. Each was printed in full when it happened.
    pub(crate) fn failures(&self) -> String {
        let mut text = String::new();
        for (_, test, _, end) in &self.0 {
            let End::Failed(why) = end else { continue };
            let lines: Vec<&str> = why.lines().collect();
            let left_out = lines.len().saturating_sub(LAST_LINES + 1);
            let _ = writeln!(text, "failed: {test}");
            // The first line has the location, the last ones the output.
            let last = if left_out == 0 {
                lines.as_slice()
            } else {
                let _ = writeln!(text, "    {}\n    ... {left_out} lines ...", lines[0]);
                &lines[1 + left_out..]
            };
            for line in last {
                let _ = writeln!(text, "    {line}");
            }
            text.push('\n');
        }
        text
    }
}
