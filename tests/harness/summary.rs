//! What came of a run, as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::skip::{Cure, Lack};

/// As much of each failure as stands at the end of a run.
const LAST_LINES: usize = 40;

/// How a trial ended.
#[derive(Debug)]
pub(crate) enum End {
    Passed,
    Failed(String),
    Skipped(Vec<Lack>),
}

/// Every trial that was run, and how it ended.
#[derive(Debug, Default)]
pub(crate) struct Summary(Vec<(&'static str, String, Duration, End)>);

impl fmt::Display for Cure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(names) => write!(f, "apt install {names}"),
            Self::MessageTemplate(words) => f.write_str(words),
            Self::Machine(machine) => write!(f, "on {machine}"),
        }
    }
}

impl Summary {
    pub(crate) fn add(&mut self, suite: &'static str, trial: String, took: Duration, end: End) {
        self.0.push((suite, trial, took, end));
    }

    /// For people: each suite's numbers, what failed, and what was skipped for want of what.
    pub(crate) fn table(&self, took: Duration) -> String {
        let mut text = format!("\n{:<14}{:>7}{:>9}{:>8}{:>10}\n", "suite", "passed", "skipped", "failed", "seconds");
        let mut row = |name: &str, suite: Option<&str>, seconds: Option<f64>| {
            let of_it = || self.0.iter().filter(|(of, ..)| suite.is_none_or(|suite| suite == *of));
            let ended = |is: fn(&End) -> bool| of_it().filter(|(_, _, _, end)| is(end)).count();
            let _ = writeln!(
                text,
                "{name:<14}{:>7}{:>9}{:>8}{:>10.0}",
                ended(|end| matches!(end, End::Passed)),
                ended(|end| matches!(end, End::Skipped(_))),
                ended(|end| matches!(end, End::Failed(_))),
                seconds.unwrap_or_else(|| of_it().map(|(_, _, took, _)| took.as_secs_f64()).sum()),
            );
        };
        let suites: BTreeSet<&str> = self.0.iter().map(|(suite, ..)| *suite).collect();
        for suite in &suites {
            row(suite, Some(suite), None);
        }
        row("all together", None, Some(took.as_secs_f64()));

        let mut failed: Vec<&str> = Vec::new();
        let mut wanting: BTreeMap<&Lack, Vec<&str>> = BTreeMap::new();
        for (_, trial, _, end) in &self.0 {
            match end {
                End::Passed => {}
                End::Failed(_) => failed.push(trial),
                End::Skipped(lacks) => {
                    // One that wants a thing twice is named once.
                    let lacks: BTreeSet<&Lack> = lacks.iter().collect();
                    for lack in lacks {
                        wanting.entry(lack).or_default().push(trial);
                    }
                }
            }
        }
        if !failed.is_empty() {
            failed.sort_unstable();
            let _ = writeln!(text, "\nfailed:\n    {}", failed.join("\n    "));
        }
        for (lack, trials) in &mut wanting {
            trials.sort_unstable();
            let _ = writeln!(text, "\nskipped for want of {}:\n    {}", lack.what, trials.join("\n    "));
            let _ = writeln!(text, "  to bring back: {}", lack.cure);
        }
        let packages: BTreeSet<&str> = wanting
            .keys()
            .filter_map(|lack| match lack.cure {
                Cure::Packages(names) => Some(names.split(' ')),
                Cure::MessageTemplate(_) | Cure::Machine(_) => None,
            })
            .flatten()
            .collect();
        if packages.len() > 1 {
            let names: Vec<&str> = packages.into_iter().collect();
            let _ = writeln!(text, "\nAll that packages bring back: apt install {}", names.join(" "));
        }
        text + "\n"
    }

    /// So many trials that took longest, and their seconds; of none, nothing.
    pub(crate) fn slowest(&self, wanted: usize) -> String {
        let mut all: Vec<(Duration, &str)> = self.0.iter().map(|(_, trial, took, _)| (*took, trial.as_str())).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.truncate(wanted);
        let lines = all.iter().map(|(took, trial)| format!("    {:>4.0} {trial}\n", took.as_secs_f64()));
        let heading = if wanted == 0 { "" } else { "slowest, seconds:\n" };
        heading.to_owned() + &lines.collect::<String>()
    }

    /// Why each failed, shortened: what stands last in a log is what people see of it. All of it stands further up.
    pub(crate) fn failures(&self) -> String {
        let mut text = String::new();
        for (_, trial, _, end) in &self.0 {
            let End::Failed(why) = end else { continue };
            let lines: Vec<&str> = why.lines().collect();
            let left_out = lines.len().saturating_sub(LAST_LINES + 1);
            let _ = writeln!(text, "failed: {trial}");
            // Where it failed stands in the first line, what it saw in the last ones.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn the_table_counts_and_says_what_brings_back() {
        let mut summary = Summary::default();
        let second = Duration::from_secs(1);
        summary.add("cmake", "cmake::b".to_owned(), second, End::Skipped(vec![tools::lack("strace")]));
        summary.add("cmake", "cmake::a".to_owned(), second, End::Passed);
        summary.add("scenes", "scenes::x".to_owned(), 2 * second, End::Failed("why".to_owned()));
        let two = vec![tools::lack("strace"), tools::lack("ld.mold"), tools::lack("strace")];
        summary.add("scenes", "scenes::y".to_owned(), second, End::Skipped(two));
        let namespaces =
            Lack { what: "namespaces".to_owned(), cure: Cure::MessageTemplate("another kernel".to_owned()) };
        summary.add("scenes", "scenes::z".to_owned(), second, End::Skipped(vec![namespaces]));
        let expected = "
suite          passed  skipped  failed   seconds
cmake               1        1       0         2
scenes              0        2       1         4
all together        1        3       1         3

failed:
    scenes::x

skipped for want of ld.mold:
    scenes::y
  to bring back: apt install mold

skipped for want of namespaces:
    scenes::z
  to bring back: another kernel

skipped for want of strace:
    cmake::b
    scenes::y
  to bring back: apt install strace

All that packages bring back: apt install mold strace

";
        assert_eq!(summary.table(3 * second), expected);
        assert_eq!(summary.slowest(0), "");
        assert_eq!(summary.slowest(2), "slowest, seconds:\n       2 scenes::x\n       1 scenes::z\n");
    }

    #[test]
    fn what_failed_stands_last_and_shortened() {
        let mut summary = Summary::default();
        let mut add = |name: &str, end| summary.add("a", name.to_owned(), Duration::ZERO, end);
        add("a::passed", End::Passed);
        add("a::short", End::Failed("at here.rs:1\nwhy".to_owned()));
        let long: String = (1..=60).fold("at there.rs:2\n".to_owned(), |text, n| text + &format!("line {n}\n"));
        add("a::long", End::Failed(long));
        let said = summary.failures();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..4], ["failed: a::short", "    at here.rs:1", "    why", ""]);
        assert_eq!(lines[4..8], ["failed: a::long", "    at there.rs:2", "    ... 20 lines ...", "    line 21"]);
        assert_eq!(lines[46..], ["    line 60", ""]);
    }
}
