//! The map for the terminal: a letter for each GPU and branch, and the reasons of refusals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::host::machine::map::{Map, State};
use cudaguard::internal::sanitize;

use super::{legend_states, row_label, state_letter, state_meaning};

/// Width of a column, for a branch and a space. A terminal line has room for twelve columns after the names.
const COLUMN: usize = 5;
const COLUMNS: usize = 12;

pub(super) fn render_text(title: &str, map: &Map) -> String {
    let mut text = sanitize::sanitize_line(&format!("{title}: GPUs and drivers")).into_owned() + "\n";
    let width = map.rows.iter().map(|row| row_label(row).chars().count()).max().unwrap_or(0);
    for from in (0..map.branches.len()).step_by(COLUMNS) {
        let to = map.branches.len().min(from + COLUMNS);
        let line = |text: &mut String, name: &str, cells: &mut dyn Iterator<Item = String>| {
            let cells: String = cells.fold(String::new(), |line, cell| line + &format!("{cell:>COLUMN$}"));
            let _ = writeln!(text, "  {name:<width$} {}", cells.trim_end());
        };
        text.push('\n');
        let is_for_windows = map.branches.iter().any(|branch| branch.shown != branch.number);
        let name = if is_for_windows { "driver for Windows" } else { "driver" };
        line(&mut text, name, &mut map.branches[from..to].iter().map(|branch| branch.shown.to_string()));
        line(&mut text, "CUDA", &mut map.branches[from..to].iter().map(|branch| branch.cuda.to_string()));
        for row in &map.rows {
            line(
                &mut text,
                &row_label(row),
                &mut row.cells[from..to].iter().map(|cell| state_letter(cell.state).to_owned()),
            );
        }
    }
    text.push('\n');
    for state in legend_states(map) {
        let _ = writeln!(text, "  {}  {}", state_letter(state), state_meaning(state));
    }
    // Each reason is listed once, with the number of its cells.
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let refused =
        map.rows.iter().flat_map(|row| &row.cells).filter(|cell| matches!(cell.state, State::Refused | State::Unknown));
    for finding in refused.filter_map(|cell| cell.why.as_ref()) {
        *reasons.entry(format!("{} {}", finding.code, finding.code.title())).or_default() += 1;
    }
    let unexplained = map.rows.iter().flat_map(|row| &row.cells);
    let unexplained = unexplained.filter(|cell| cell.state == State::Unknown && cell.why.is_none()).count();
    if unexplained > 0 {
        reasons.insert("parts of the files were not examined".to_owned(), unexplained);
    }
    if !reasons.is_empty() {
        let _ = writeln!(text, "\n  reasons, and the number of squares:");
    }
    for (reason, count) in reasons {
        let _ = writeln!(text, "  {count:>5}  {reason}");
    }
    text
}
