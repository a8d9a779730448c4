//! The map for programs.

use crate::host::machine::map::{Branch, Map, MapRow};
use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;

use super::state_class;
use crate::cli::json_output;

pub(super) fn render_json(files: &[String], map: &Map, not_judged: &[String]) -> String {
    let mut value = object([("files", array(files.iter().map(String::as_str)))]);
    value.insert_some("processor", Some(map.processor.as_str()).filter(|name| !name.is_empty()));
    let branch =
        |branch: &Branch| object([("branch", Value::from(branch.number)), ("cuda", branch.cuda.to_string().into())]);
    value.insert_some("drivers", Some(array(map.branches.iter().map(branch))));
    let row = |row: &MapRow| {
        let cells = row.cells.iter().zip(&map.branches).map(|(cell, branch)| {
            let mut value = object([("branch", Value::from(branch.number)), ("state", state_class(cell.state).into())]);
            value.insert_some("code", cell.why.as_ref().map(|finding| finding.code.to_string()));
            value
        });
        object([
            ("cc", Value::from(tables::dotted_cc(row.cc))),
            ("names", array(row.names.iter().copied())),
            ("cells", array(cells)),
        ])
    };
    value.insert_some("gpus", Some(array(map.rows.iter().map(row))));
    value.insert_some("not_judged", (!not_judged.is_empty()).then(|| array(not_judged.iter().map(String::as_str))));
    json_output::render(value)
}
