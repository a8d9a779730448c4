//! `verify --fleet`: each machine of a list, of whatever people have of their machines; streaming, so that a list may be as long as it
//! likes.

mod inputs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, BufWriter, Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use cudaguard::env::Env;
use cudaguard::finding::{Code, Verdict};
use cudaguard::machine::fleet::{Change, Fleet, Outcome};
use cudaguard::plain;

use crate::report::{self, NO_LOOK, REFUSED, Stop};
use crate::verify::{self, components, not_judged, put_not_judged, to_json};
use inputs::Kind;

/// A machine's label, and what becomes of each file on it.
type Judged = (Option<String>, Rc<[Outcome]>);

/// A longer line is no host file; what is left of it is passed over.
const LONGEST: u64 = 4 * 1024 * 1024;
/// What an input is, it says in so many bytes.
const OPENING: usize = 4096;
/// So many machines are named for each finding.
const NAMED: usize = 3;
/// So many lines that cannot be read are told of, each; the others are counted.
const TOLD: usize = 10;

pub(crate) fn run(env: &Env, files: &[PathBuf], list: &Path, json: bool) -> Result<ExitCode, Stop> {
    let read = files.iter().map(|file| components(env, file)).collect::<Result<Vec<_>, _>>()?;
    let open: Vec<_> = read.iter().map(|components| not_judged(&components.manifests)).collect();
    let mut run = Run {
        files,
        open: &open,
        json,
        fleet: Fleet::new(read),
        counts: files.iter().map(|_| Count::default()).collect(),
        out: BufWriter::with_capacity(256 * 1024, std::io::stdout().lock()),
        machines: 0,
        unread: 0,
        lines: true,
        without: 0,
        stopped: None,
    };
    let stdin = list == Path::new("-");
    let name = if stdin { "stdin".to_owned() } else { list.display().to_string() };
    if stdin {
        run.input(&name, None, &mut std::io::stdin().lock())?;
    } else if list.is_dir() {
        for file in in_order(list)? {
            let label = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            // It is read a line at a time, so that it may be as long as it likes.
            let mut input = BufReader::with_capacity(256 * 1024, verify::open(&file, "fleet", u64::MAX)?);
            run.input(&file.display().to_string(), label.as_deref(), &mut input)?;
        }
    } else {
        let mut input = BufReader::with_capacity(256 * 1024, verify::open(list, "fleet", u64::MAX)?);
        run.input(&name, None, &mut input)?;
    }
    run.end(&name)
}

/// The files of a folder, in the order of their names; hidden ones are left alone.
fn in_order(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let fail = |error: std::io::Error| Stop::no_look(format_args!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Where a machine stands in what was read.
#[derive(Clone, Copy)]
enum Place {
    Line(usize),
    Item(usize),
    Whole,
}

/// A list on its way through the judge.
struct Run<'a> {
    files: &'a [PathBuf],
    /// What of each file no rule has judged.
    open: &'a [Vec<&'static str>],
    json: bool,
    fleet: Fleet,
    counts: Vec<Count>,
    out: BufWriter<std::io::StdoutLock<'static>>,
    machines: usize,
    unread: usize,
    /// Whether all of it was host files on lines.
    lines: bool,
    /// Nodes and slices without a GPU of NVIDIA's.
    without: usize,
    /// Why there is nothing more to do: nobody reads what is written, or it cannot be written.
    stopped: Option<Result<ExitCode, Stop>>,
}

impl Run<'_> {
    fn input(&mut self, name: &str, label: Option<&str>, input: &mut dyn BufRead) -> Result<(), Stop> {
        let fail = |error: std::io::Error| Stop::no_look(format_args!("{name}: {error}"));
        let first = opening(input).map_err(fail)?;
        let kind = Kind::of(&first);
        let input: &mut dyn BufRead = &mut Cursor::new(&first).chain(input);
        self.lines &= kind == Kind::Lines;
        match kind {
            Kind::Lines => self.lines(name, input).map_err(fail)?,
            Kind::HostFile => {
                let mut text = Vec::new();
                input.take(LONGEST + 1).read_to_end(&mut text).map_err(fail)?;
                let judged = match std::str::from_utf8(&text) {
                    _ if text.len() as u64 > LONGEST => Err("is longer than 4 MiB: not a host file".to_owned()),
                    Ok(text) => self.fleet.judge(text).map_err(|mistake| verify::at(text, &mistake)),
                    Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to())),
                };
                self.take(name, label, Place::Whole, judged);
            }
            Kind::Xml => {
                let judged = match inputs::xml(input) {
                    Ok(machine) => Ok(self.fleet.judge_machine(machine)),
                    Err((0, why)) => Err(why),
                    Err((line, why)) => Err(format!("{line}: {why}")),
                };
                self.take(name, label, Place::Whole, judged);
            }
            Kind::Csv => inputs::csv(input, &mut |line, machine| {
                let judged = machine.map(|machine| self.fleet.judge_machine(machine));
                self.take(name, label, Place::Line(line), judged)
            })
            .map_err(fail)?,
            Kind::Kubectl => {
                let whole = inputs::kubectl(input, &mut |number, item| match item {
                    Ok(None) => {
                        self.without += 1;
                        true
                    }
                    Ok(Some(machine)) => {
                        let judged = Ok(self.fleet.judge_machine(machine));
                        self.take(name, label, Place::Item(number), judged)
                    }
                    Err(why) => self.take(name, label, Place::Item(number), Err(why)),
                });
                if let Err(why) = whole {
                    self.take(name, label, Place::Whole, Err(why));
                }
            }
        }
        Ok(())
    }

    /// A host file on each line.
    fn lines(&mut self, name: &str, input: &mut dyn BufRead) -> std::io::Result<()> {
        let (mut line, mut number) = (Vec::new(), 0_usize);
        loop {
            line.clear();
            let length = (&mut *input).take(LONGEST).read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(());
            }
            number += 1;
            let whole = line.last() == Some(&b'\n') || (length as u64) < LONGEST;
            if !whole {
                skip_line(input)?;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let judged = match std::str::from_utf8(&line) {
                _ if !whole => Err("is longer than 4 MiB: not a host file".to_owned()),
                Ok(text) => self.fleet.judge(text).map_err(|mistake| mistake.to_string()),
                Err(error) => Err(format!("byte {} is not UTF-8", error.valid_up_to())),
            };
            if !self.take(name, None, Place::Line(number), judged) {
                return Ok(());
            }
        }
    }

    /// One machine, or why it cannot be read; whether to go on. `label` names what names itself in no way.
    fn take(&mut self, name: &str, label: Option<&str>, place: Place, judged: Result<Judged, String>) -> bool {
        let (own, outcomes) = match judged {
            Ok(judged) => judged,
            Err(why) => {
                self.unread += 1;
                if self.unread <= TOLD {
                    report::line(&match place {
                        Place::Line(number) => format!("warning: {name}:{number}: {why}"),
                        Place::Item(number) => format!("warning: {name}: item {number}: {why}"),
                        Place::Whole => format!("warning: {name}: {why}"),
                    });
                }
                return true;
            }
        };
        self.machines += 1;
        let label = own.as_deref().or(label);
        let all = self.files.iter().zip(outcomes.iter()).zip(&mut self.counts).zip(self.open);
        for (((file, outcome), count), open) in all {
            count.add(outcome, label, place);
            if self.json && self.stopped.is_none() {
                let text = one(file, outcome, open, label, place);
                self.stopped = match report::written(self.out.write_all(text.as_bytes())) {
                    Ok(true) => None,
                    // Nobody reads any more, and the list may have no end.
                    Ok(false) => Some(Ok(ExitCode::from(NO_LOOK))),
                    Err(stop) => Some(Err(stop)),
                };
            }
        }
        self.stopped.is_none()
    }

    fn end(mut self, name: &str) -> Result<ExitCode, Stop> {
        if let Some(stopped) = self.stopped {
            return stopped;
        }
        if self.unread > TOLD {
            report::line(&format!("warning: {name}: {} more lines cannot be read", self.unread - TOLD));
        }
        if self.machines == 0 {
            let why = match (self.unread, self.without, self.lines) {
                (0, 0, true) => "is empty: expected a host file on each line",
                (0, 0, false) => "names no machine",
                (0, ..) => "no node or slice of it has a GPU of NVIDIA's",
                (.., true) => "no line of it is a host file",
                (.., false) => "no machine of it can be read",
            };
            return Err(Stop::no_look(format_args!("{name}: {why}")));
        }
        if self.without > 0 {
            let what = plural(self.without, "node or slice", "nodes and slices");
            report::line(&format!("info: {name}: {} {what} without a GPU of NVIDIA's", self.without));
        }
        if !self.json {
            for ((file, count), open) in self.files.iter().zip(&self.counts).zip(self.open) {
                let text = count.text(file, self.machines) + &verify::not_judged_in_words(open);
                report::written(self.out.write_all(text.as_bytes()))?;
            }
        }
        report::written(self.out.flush())?;
        Ok(match (self.counts.iter().any(|count| count.refused > 0), self.unread) {
            (true, _) => ExitCode::from(REFUSED),
            (false, 0) => ExitCode::SUCCESS,
            (false, _) => ExitCode::from(NO_LOOK),
        })
    }
}

/// As much as tells what it is: its first line, two where the first is a bracket. More is not waited for, since somebody may be
/// writing it.
fn opening(input: &mut dyn BufRead) -> std::io::Result<Vec<u8>> {
    let mut first = Vec::new();
    while first.len() < OPENING && first.trim_ascii().len() <= 1 {
        let more = (&mut *input).take(OPENING as u64).read_until(b'\n', &mut first)?;
        if more == 0 {
            break;
        }
    }
    Ok(first)
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
fn one(file: &Path, outcome: &Outcome, open: &[&str], label: Option<&str>, place: Place) -> String {
    let mut value = to_json(file, outcome.verdict, &outcome.findings);
    put_not_judged(&mut value, open);
    value.put("change", outcome.change.map(Change::in_words));
    value.put("host", label);
    match place {
        Place::Line(number) => value.put("line", Some(number as u64)),
        Place::Item(number) => value.put("item", Some(number as u64)),
        Place::Whole => {}
    }
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
    /// How many of the refused each change would admit.
    changes: BTreeMap<Change, usize>,
}

impl Count {
    fn add(&mut self, outcome: &Outcome, label: Option<&str>, place: Place) {
        match outcome.verdict {
            Verdict::Runs => {
                self.runs += 1;
                return;
            }
            Verdict::Unknown => self.unknown += 1,
            Verdict::Refused => self.refused += 1,
        }
        if let Some(change) = outcome.change {
            *self.changes.entry(change).or_default() += 1;
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
                named.push(label.map_or_else(|| place.in_words(), str::to_owned));
            }
        }
    }

    fn text(&self, file: &Path, machines: usize) -> String {
        let what = format!("{}: {machines} {}", file.display(), plural(machines, "machine", "machines"));
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
        // What admits the most comes first.
        let mut changes: Vec<(&Change, &usize)> = self.changes.iter().collect();
        changes.sort_by_key(|(change, count)| (std::cmp::Reverse(**count), **change));
        if !changes.is_empty() {
            text.push_str("  one change would admit\n");
        }
        for (change, count) in &changes {
            let _ = writeln!(text, "  {:>width$}  {count:>width$}  by {}", "", change.in_words());
        }
        let others = self.refused - changes.iter().map(|(_, count)| **count).sum::<usize>();
        if others > 0 && !changes.is_empty() {
            let _ = writeln!(text, "  {:>width$}  {others:>width$}  by none alone", "");
        }
        text
    }
}

impl Place {
    fn in_words(self) -> String {
        match self {
            Self::Line(number) => format!("line {number}"),
            Self::Item(number) => format!("item {number}"),
            Self::Whole => "the machine".to_owned(),
        }
    }
}

fn plural<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}
