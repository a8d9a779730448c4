//! `verify --fleet`: each machine of a list, a line each; streaming, so that a list may be as long as it likes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cudaguard::env::Env;
use cudaguard::finding::{Code, Verdict};
use cudaguard::machine::fleet::{Fleet, Outcome};
use cudaguard::plain;

use crate::report::{self, NO_LOOK, REFUSED, Stop};
use crate::verify::{self, components, not_judged, put_not_judged, to_json};

/// A longer line is no host file; what is left of it is passed over.
const LONGEST: u64 = 4 * 1024 * 1024;
/// So many machines are named for each finding.
const NAMED: usize = 3;
/// So many lines that cannot be read are told of, each; the others are counted.
const TOLD: usize = 10;

pub(crate) fn run(env: &Env, files: &[PathBuf], list: &Path, json: bool) -> Result<ExitCode, Stop> {
    let read = files.iter().map(|file| components(env, file)).collect::<Result<Vec<_>, _>>()?;
    let open: Vec<_> = read.iter().map(|components| not_judged(&components.manifests)).collect();
    let mut fleet = Fleet::new(read);
    let stdin = list == Path::new("-");
    let name = if stdin { "stdin".to_owned() } else { list.display().to_string() };
    let mut input: Box<dyn BufRead> = if stdin {
        Box::new(std::io::stdin().lock())
    } else {
        // It is read a line at a time, so that it may be as long as it likes.
        Box::new(BufReader::with_capacity(256 * 1024, verify::open(list, "fleet", u64::MAX)?))
    };
    let mut out = BufWriter::with_capacity(256 * 1024, std::io::stdout().lock());
    let mut counts: Vec<Count> = files.iter().map(|_| Count::default()).collect();
    let (mut line, mut number, mut machines, mut unread) = (Vec::new(), 0_usize, 0_usize, 0_usize);
    loop {
        line.clear();
        let length = input
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .map_err(|error| Stop::no_look(format_args!("{name}: {error}")))?;
        if length == 0 {
            break;
        }
        number += 1;
        let whole = line.last() == Some(&b'\n') || (length as u64) < LONGEST;
        if !whole {
            skip_line(&mut input).map_err(|error| Stop::no_look(format_args!("{name}: {error}")))?;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let judged = match std::str::from_utf8(&line) {
            _ if !whole => Err("is longer than 4 MiB: not a host file".to_owned()),
            Ok(text) => fleet.judge(text).map_err(|mistake| mistake.to_string()),
            Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to())),
        };
        let (label, outcomes) = match judged {
            Ok(judged) => judged,
            Err(why) => {
                unread += 1;
                if unread <= TOLD {
                    report::line(&format!("warning: {name}:{number}: {why}"));
                }
                continue;
            }
        };
        machines += 1;
        for (((file, outcome), count), open) in files.iter().zip(outcomes.iter()).zip(&mut counts).zip(&open) {
            count.add(outcome, label.as_deref(), number);
            if json {
                let text = one(file, outcome, open, label.as_deref(), number);
                if !report::written(out.write_all(text.as_bytes()))? {
                    // Nobody reads any more, and the list may have no end.
                    return Ok(ExitCode::from(NO_LOOK));
                }
            }
        }
    }
    if unread > TOLD {
        report::line(&format!("warning: {name}: {} more lines cannot be read", unread - TOLD));
    }
    if machines == 0 {
        let why =
            if unread == 0 { "is empty: expected a host file on each line" } else { "no line of it is a host file" };
        return Err(Stop::no_look(format_args!("{name}: {why}")));
    }
    if !json {
        for ((file, count), open) in files.iter().zip(&counts).zip(&open) {
            let text = count.text(file, machines) + &verify::not_judged_in_words(open);
            report::written(out.write_all(text.as_bytes()))?;
        }
    }
    report::written(out.flush())?;
    Ok(match (counts.iter().any(|count| count.refused > 0), unread) {
        (true, _) => ExitCode::from(REFUSED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(NO_LOOK),
    })
}

fn skip_line(input: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        input.consume(used);
        if ended {
            return Ok(());
        }
    }
}

/// One verdict as a line of JSON: as without a fleet, with the machine's label, or the line it stands in.
fn one(file: &Path, outcome: &Outcome, open: &[&str], label: Option<&str>, number: usize) -> String {
    let mut value = to_json(file, outcome.verdict, &outcome.findings);
    put_not_judged(&mut value, open);
    value.put("host", label);
    value.put("line", Some(number as u64));
    plain::text(&format!("{value}\n")).into_owned()
}

/// What became of one file.
#[derive(Default)]
struct Count {
    runs: usize,
    unknown: usize,
    refused: usize,
    /// For each code that refuses, or that something cannot be told for: how many machines, and the first of them.
    why: BTreeMap<(bool, Code), (usize, Vec<String>)>,
}

impl Count {
    fn add(&mut self, outcome: &Outcome, label: Option<&str>, number: usize) {
        match outcome.verdict {
            Verdict::Runs => {
                self.runs += 1;
                return;
            }
            Verdict::Unknown => self.unknown += 1,
            Verdict::Refused => self.refused += 1,
        }
        let mut seen: Vec<Code> = Vec::new();
        for finding in &outcome.findings {
            let refuses = outcome.verdict == Verdict::Refused;
            if Verdict::of([finding]) != outcome.verdict || seen.contains(&finding.code) {
                continue;
            }
            seen.push(finding.code);
            let (count, named) = self.why.entry((!refuses, finding.code)).or_default();
            *count += 1;
            if named.len() < NAMED {
                named.push(label.map_or_else(|| format!("line {number}"), str::to_owned));
            }
        }
    }

    fn text(&self, file: &Path, machines: usize) -> String {
        let what = format!("{}: {machines} {}", file.display(), plural(machines, "machine"));
        let mut text = plain::line(&what).into_owned() + "\n";
        let width = machines.to_string().len();
        for (count, word) in [(self.runs, "run it"), (self.refused, "refused"), (self.unknown, "cannot tell")] {
            if count > 0 {
                let _ = writeln!(text, "  {count:>width$}  {word}");
            }
            let mine: &[bool] = match word {
                "refused" => &[false],
                "cannot tell" => &[true],
                _ => &[],
            };
            for ((_, code), (count, named)) in self.why.iter().filter(|((unknown, _), _)| mine.contains(unknown)) {
                let more = if *count > named.len() { ", …" } else { "" };
                let names = named.join(", ");
                let names = plain::line(&names);
                let _ = writeln!(text, "  {:>width$}  {count:>width$}  {code} {}: {names}{more}", "", code.title());
            }
        }
        text
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}
