//! The map for programs.

use cudaguard::internal::tables;
use serde::Serialize;

use super::state_class;
use crate::cli::json_output;
use crate::host::machine::map::{Branch, Map, MapRow};

#[derive(Serialize)]
struct MapView<'a> {
    files: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    processor: &'a str,
    drivers: Vec<BranchView>,
    gpus: Vec<RowView<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    not_judged: &'a [String],
}

#[derive(Serialize)]
struct BranchView {
    branch: u32,
    cuda: String,
}

#[derive(Serialize)]
struct RowView<'a> {
    cc: String,
    names: &'a [&'static str],
    cells: Vec<CellView>,
}

#[derive(Serialize)]
struct CellView {
    branch: u32,
    state: &'static str,
    code: Option<String>,
}

impl BranchView {
    fn new(branch: &Branch) -> Self {
        Self { branch: branch.number, cuda: branch.cuda.to_string() }
    }
}

impl<'a> RowView<'a> {
    fn new(row: &'a MapRow, branches: &[Branch]) -> Self {
        let mut cells = Vec::new();
        for (cell, branch) in row.cells.iter().zip(branches) {
            let code = cell.why.as_ref().map(|finding| finding.code.to_string());
            cells.push(CellView { branch: branch.number, state: state_class(cell.state), code });
        }
        Self { cc: tables::dotted_cc(row.cc), names: row.names, cells }
    }
}

pub(super) fn render_json(files: &[String], map: &Map, not_judged: &[String]) -> String {
    json_output::render(&MapView {
        files,
        processor: &map.processor,
        drivers: map.branches.iter().map(BranchView::new).collect(),
        gpus: map.rows.iter().map(|row| RowView::new(row, &map.branches)).collect(),
        not_judged,
    })
}
