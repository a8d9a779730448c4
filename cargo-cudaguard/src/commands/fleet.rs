//! `verify --fleet`: checks each machine of a list in any supported input format. The list is streamed, so its length
//! is not limited. [`read_fleet`] reads such a list for other subcommands too.

mod entry_error;
mod inputs;
mod kubernetes;
mod smi_xml;
mod summary;

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::host::machine::Machine;
use crate::host::machine::fleet_judge::Fleet;

use crate::cli::report::{self, CliError};
use crate::commands::verify;
use crate::host::formats::{self, InputKind, OPENING, decode_utf16};
use entry_error::EntryError;
use inputs::HostFacts;
pub(crate) use summary::run_fleet;

/// A machine's label and the result of judging it.
type LabelledResult<T> = (Option<String>, Rc<T>);

/// Maximum length of a line, in bytes. A longer line is rejected as a host file, and its rest is skipped.
const LONGEST: u64 = 4 * 1024 * 1024;
/// Maximum printed length of a label, and of the reason why a line cannot be read.
const LONGEST_LABEL: usize = 200;
const LONGEST_REASON: usize = 600;
/// Maximum number of unreadable entries that are reported one by one; the others are counted.
const TOLD: usize = 10;

/// The number of machines in a fleet.
pub(super) struct FleetSize {
    pub(super) machines: usize,
    /// Number of entries that cannot be read.
    pub(super) unread: usize,
}

/// Receives the result for a machine, its label and its position. Returns false if the reader of the output has closed it.
type AddMachine<'a, T> = &'a mut dyn FnMut(&T, Option<&str>, InputPlace) -> Result<bool, CliError>;

/// Judges each machine of a list, and passes the result to `add`. Reports entries that cannot be read. Returns `None` if
/// `add` returned false.
pub(super) fn read_fleet<T>(
    list: &Path,
    judge: impl Fn(&Machine) -> T,
    add: AddMachine<'_, T>,
) -> Result<Option<FleetSize>, CliError> {
    let mut run = Run {
        fleet: Fleet::new(judge),
        add,
        machines: 0,
        unread: 0,
        unusable: 0,
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
            let name = file.display().to_string();
            if file.is_dir() {
                let why = EntryError::kind("is a directory: its files are not read");
                run.take(&name, None, InputPlace::EntireInput, Err(why));
                continue;
            }
            // The file is read line by line, so its length is not limited.
            let mut input = BufReader::with_capacity(256 * 1024, verify::open_input(&file, "fleet", u64::MAX)?);
            let before = run.found();
            run.input(&name, label.as_deref(), &mut input)?;
            if run.stopped.is_none() && run.found() == before {
                run.take(&name, None, InputPlace::EntireInput, Err(EntryError::kind("contains no machine")));
            }
        }
    } else {
        let mut input = BufReader::with_capacity(256 * 1024, verify::open_input(list, "fleet", u64::MAX)?);
        run.input(&name, None, &mut input)?;
    }
    run.end(&name)
}

/// Returns the entries of a directory sorted by name, without hidden ones.
pub(super) fn in_order(dir: &Path) -> Result<Vec<PathBuf>, CliError> {
    let fail = |error: std::io::Error| CliError::operational(format_args!("{}: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The position of a machine in the input.
#[derive(Clone, Copy)]
pub(super) enum InputPlace {
    Line(usize),
    Item(usize),
    EntireInput,
}

/// State of the check of one fleet.
struct Run<'a, T, F> {
    fleet: Fleet<T, F>,
    add: AddMachine<'a, T>,
    machines: usize,
    unread: usize,
    /// Number of GPUs that no program can use, or for which this is unknown.
    unusable: usize,
    /// Set while all input consists of host files, one a line.
    lines: bool,
    /// Number of nodes and slices without an NVIDIA GPU.
    without: usize,
    /// Set if the run stopped early, because the reader closed the output (`Ok`) or the output cannot be written.
    stopped: Option<Result<(), CliError>>,
}

impl<T, F: Fn(&Machine) -> T> Run<'_, T, F> {
    /// Returns the number of machines, of entries that cannot be read, and of nodes without a GPU.
    fn found(&self) -> usize {
        self.machines + self.unread + self.without
    }

    fn input(&mut self, name: &str, label: Option<&str>, input: &mut dyn BufRead) -> Result<(), CliError> {
        let fail = |error: std::io::Error| CliError::operational(format_args!("{name}: {error}"));
        let input = &mut *decode_utf16(input).map_err(fail)?;
        let first = peek_opening(input).map_err(fail)?;
        let mut first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first);
        let kind = InputKind::detect(first);
        let mut line = 1;
        if let (InputKind::Xml, Some(start)) = (kind, formats::xml_start(first)) {
            let before = String::from_utf8_lossy(&first[..start]);
            if let Some((at, why)) = smi_xml::stray_text(&before) {
                self.take(name, label, InputPlace::Line(line + at), Err(why));
            }
            line += before.matches('\n').count();
            first = &first[start..];
        }
        let input: &mut dyn BufRead = &mut Cursor::new(first).chain(input);
        self.lines &= kind == InputKind::Lines;
        match kind {
            InputKind::Lines => self.lines(name, input).map_err(fail)?,
            InputKind::HostFile => {
                let mut text = Vec::new();
                input.take(LONGEST + 1).read_to_end(&mut text).map_err(fail)?;
                let judged = match std::str::from_utf8(&text) {
                    _ if text.len() as u64 > LONGEST => Err(EntryError::kind("is longer than 4 MiB: not a host file")),
                    Ok(text) => self.fleet.judge_line(text).map_err(EntryError::HostFileAt),
                    Err(error) => Err(EntryError::NotUtf8(error.valid_up_to())),
                };
                self.take(name, label, InputPlace::EntireInput, judged);
            }
            InputKind::Other(what) => {
                self.take(name, label, InputPlace::EntireInput, Err(EntryError::kind(what)));
            }
            InputKind::Xml => self.xml(name, label, input, line),
            InputKind::Csv => {
                inputs::read_csv(input, &mut |line, facts| self.facts(name, label, InputPlace::Line(line), facts))
                    .map_err(fail)?;
            }
            InputKind::Json => self.nodes(name, label, input),
        }
        Ok(())
    }

    fn nodes(&mut self, name: &str, label: Option<&str>, input: &mut dyn BufRead) {
        let nodes = match kubernetes::read_nodes(input) {
            Ok(nodes) => nodes,
            Err(why) => {
                self.take(name, label, InputPlace::EntireInput, Err(why));
                return;
            }
        };
        for (at, node) in nodes.iter().enumerate() {
            let judged = match node.machine() {
                Ok(None) => {
                    self.without += 1;
                    continue;
                }
                Ok(Some(machine)) => Ok(self.fleet.judge_machine(machine)),
                Err(why) => Err(why),
            };
            if !self.take(name, label, InputPlace::Item(at + 1), judged) {
                return;
            }
        }
    }

    /// Reads logs of nvidia-smi. They get numbers only if there are several.
    fn xml(&mut self, name: &str, label: Option<&str>, input: &mut dyn BufRead, line: usize) {
        let (mut first, mut count) = (None, 0);
        let read = smi_xml::read(input, line, &mut |line, log| {
            let log = match log {
                Ok(log) => log,
                Err(why) => return self.take(name, label, InputPlace::Line(line), Err(why)),
            };
            count += 1;
            if count == 1 {
                first = Some(log);
                return true;
            }
            let before = first.take().is_none_or(|log| self.log(name, label, Some(1), log));
            before && self.log(name, label, Some(count), log)
        });
        if let Some(log) = first {
            self.log(name, label, None, log);
        }
        if let Err((line, why)) = read {
            self.take(name, label, InputPlace::Line(line), Err(why));
        }
    }

    fn log(&mut self, name: &str, label: Option<&str>, number: Option<usize>, facts: HostFacts) -> bool {
        let numbered = label.zip(number).map(|(label, number)| format!("{label} ({number})"));
        let place = number.map_or(InputPlace::EntireInput, InputPlace::Item);
        self.facts(name, numbered.as_deref().or(label), place, Ok(facts))
    }

    /// Adds a machine that nvidia-smi describes, and prints which of its GPUs may be unusable.
    fn facts(
        &mut self,
        name: &str,
        label: Option<&str>,
        place: InputPlace,
        facts: Result<HostFacts, EntryError>,
    ) -> bool {
        for why in facts.iter().flat_map(|facts| &facts.remarks) {
            self.unusable += 1;
            if self.unusable <= TOLD {
                report::note(&format!("info: {}: {why}", place.prefix(name)));
            }
        }
        let judged = facts.map(|facts| self.fleet.judge_machine(facts.into_machine()));
        self.take(name, label, place, judged)
    }

    /// Reads one host file from each line.
    fn lines(&mut self, name: &str, input: &mut dyn BufRead) -> std::io::Result<()> {
        let (mut line, mut number) = (Vec::new(), 0_usize);
        loop {
            let ReadLine { length, is_whole } = read_line(input, LONGEST, &mut line)?;
            if length == 0 {
                return Ok(());
            }
            number += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let judged = match std::str::from_utf8(&line) {
                _ if !is_whole => Err(EntryError::kind("is longer than 4 MiB: not a host file")),
                Ok(text) => self.fleet.judge_line(text).map_err(EntryError::HostFile),
                Err(error) => Err(EntryError::NotUtf8(error.valid_up_to())),
            };
            if !self.take(name, None, InputPlace::Line(number), judged) {
                return Ok(());
            }
        }
    }

    /// Adds one machine, or the reason why it cannot be read. Returns false if the run must stop. `label` names a
    /// machine that has no name.
    fn take(
        &mut self,
        name: &str,
        label: Option<&str>,
        place: InputPlace,
        judged: Result<LabelledResult<T>, EntryError>,
    ) -> bool {
        let (own, result) = match judged {
            Ok(judged) => judged,
            Err(why) => {
                self.unread += 1;
                if self.unread <= TOLD {
                    let why = why.to_string();
                    let why = shorten(&why, LONGEST_REASON);
                    report::note(&format!("warning: {}: {why}", place.prefix(name)));
                }
                return true;
            }
        };
        self.machines += 1;
        let label = own.as_deref().or(label);
        match (self.add)(&result, label, place) {
            Ok(true) => true,
            // The reader has closed the output, and the list may be infinite.
            Ok(false) => {
                self.stopped = Some(Ok(()));
                false
            }
            Err(error) => {
                self.stopped = Some(Err(error));
                false
            }
        }
    }

    fn end(self, name: &str) -> Result<Option<FleetSize>, CliError> {
        if let Some(stopped) = self.stopped {
            return stopped.map(|()| None);
        }
        if self.unread > TOLD {
            report::note(&format!("warning: {name}: {} more entries cannot be read", self.unread - TOLD));
        }
        if self.unusable > TOLD {
            report::note(&format!("info: {name}: the same applies to {} more GPUs", self.unusable - TOLD));
        }
        for description in self.fleet.unknown_keys().descriptions() {
            report::note(&format!("info: {name}: {description}"));
        }
        if self.machines == 0 {
            let why = match (self.unread, self.without, self.lines) {
                (0, 0, true) => "is empty: expected a host file on each line",
                (0, 0, false) => "contains no machine",
                (0, ..) => "contains no node with an NVIDIA GPU",
                (.., true) => {
                    "contains no host file: expected host files, or the output of nvidia-smi -q -x, nvidia-smi --format=csv or kubectl get nodes -o json"
                }
                (.., false) => "contains no readable machine",
            };
            return Err(CliError::operational(format_args!("{name}: {why}")));
        }
        if self.without > 0 {
            let what = pluralize(self.without, "node", "nodes");
            report::note(&format!("info: {name}: {} {what} without an NVIDIA GPU", self.without));
        }
        Ok(Some(FleetSize { machines: self.machines, unread: self.unread }))
    }
}

/// Reads the opening of an input that shows its format: the first line, or two lines if the first is a bracket. The
/// writer may be slow, so more is read only if the first line matches no format.
fn peek_opening(input: &mut dyn BufRead) -> std::io::Result<Vec<u8>> {
    let mut first = Vec::new();
    while first.len() < OPENING {
        let line = first.trim_ascii();
        if line.len() > 1 && (line.starts_with(b"{") || InputKind::detect(&first) != InputKind::Lines) {
            break;
        }
        let left = OPENING - first.len();
        if (&mut *input).take(left as u64).read_until(b'\n', &mut first)? == 0 {
            break;
        }
    }
    Ok(first)
}

/// Result of reading a line.
struct ReadLine {
    /// Length in bytes including the end of line; 0 at the end of the input.
    length: usize,
    /// False if the line is longer than the limit and its rest was skipped.
    is_whole: bool,
}

fn read_line(input: &mut dyn BufRead, longest: u64, line: &mut Vec<u8>) -> std::io::Result<ReadLine> {
    line.clear();
    let length = (&mut *input).take(longest).read_until(b'\n', line)?;
    let is_whole = line.last() == Some(&b'\n') || (length as u64) < longest;
    if !is_whole {
        let _ = input.skip_until(b'\n')?;
    }
    Ok(ReadLine { length, is_whole })
}

fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

impl InputPlace {
    /// Returns the beginning of a message about this place of an input.
    fn prefix(self, name: &str) -> String {
        match self {
            Self::Line(number) => format!("{name}:{number}"),
            Self::Item(number) => format!("{name}: item {number}"),
            Self::EntireInput => name.to_owned(),
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            Self::Line(number) => format!("line {number}"),
            Self::Item(number) => format!("item {number}"),
            Self::EntireInput => "the machine".to_owned(),
        }
    }
}

fn pluralize<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}
