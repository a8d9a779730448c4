//! The map as Markdown, for release notes and job summaries.

use std::fmt::Write as _;

use crate::host::machine::map::{Map, State};

use super::{legend_states, row_label, state_meaning};
use crate::cli::markdown::{escape, push_table};

pub(super) fn render_markdown(title: &str, map: &Map) -> String {
    let mut text = format!("### {}\n", escape(&format!("{title}: GPU × driver")));
    let mut head = vec!["GPU".to_owned()];
    head.extend(map.branches.iter().map(|branch| format!("{} (CUDA {})", branch.shown, branch.cuda)));
    let rows = map.rows.iter().map(|row| {
        std::iter::once(row_label(row)).chain(row.cells.iter().map(|cell| symbol(cell.state).to_owned())).collect()
    });
    push_table(&mut text, &head, rows);
    text.push('\n');
    for state in legend_states(map) {
        let _ = writeln!(text, "- {}: {}", symbol(state), state_meaning(state));
    }
    text
}

/// A short word that needs no color.
const fn symbol(state: State) -> &'static str {
    match state {
        State::Native | State::NoKernels => "yes",
        State::Jit => "JIT",
        State::Partial => "partial",
        State::Refused => "no",
        State::Unknown => "?",
        State::NotDriven => "–",
    }
}
