//! The map as an SVG image. Each cell is a square with a letter and a title, which is shown on hover and read by screen
//! readers.

use std::fmt::Write as _;

use crate::host::machine::map::Map;

use super::{describe_cell, escape_xml, legend_states, row_label, state_class, state_letter, state_meaning};

const SQUARE: usize = 26;
const NAMES: usize = 250;
const HEAD: usize = 76;

pub(super) fn render_svg(title: &str, map: &Map) -> String {
    let shown: Vec<_> = legend_states(map).collect();
    let width = NAMES + map.branches.len().max(9) * SQUARE + 12;
    let legend = HEAD + map.rows.len() * SQUARE + 14;
    let height = legend + shown.len() * 22 + 8;
    let label = format!("{}: GPUs and drivers", escape_xml(title));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{label}</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n<text class=\"ink\" x=\"10\" y=\"22\" font-size=\"15\" \
         font-weight=\"600\">{label}</text>\n"
    );
    for (at, branch) in map.branches.iter().enumerate() {
        let (x, y) = (NAMES + at * SQUARE + SQUARE / 2, HEAD - 6);
        let _ = writeln!(
            text,
            "<text class=\"ink\" transform=\"translate({},{y}) rotate(-55)\" font-size=\"11\"><title>driver {}: CUDA {}</title>{}</text>",
            x + 4,
            branch.shown,
            branch.cuda,
            branch.shown
        );
    }
    for (line, row) in map.rows.iter().enumerate() {
        let y = HEAD + line * SQUARE;
        let _ = writeln!(
            text,
            "<text class=\"ink\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            NAMES - 8,
            y + 17,
            escape_xml(&row_label(row))
        );
        for (at, (branch, cell)) in map.branches.iter().zip(&row.cells).enumerate() {
            let x = NAMES + at * SQUARE;
            let _ = writeln!(
                text,
                "<g class=\"{}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"24\" height=\"24\" rx=\"3\"/><text x=\"{}\" \
                 y=\"{}\" text-anchor=\"middle\">{}</text></g>",
                state_class(cell.state),
                escape_xml(&describe_cell(row, branch, cell)),
                x + 12,
                y + 17,
                state_letter(cell.state)
            );
        }
    }
    for (at, state) in shown.into_iter().enumerate() {
        let y = legend + at * 22;
        let _ = writeln!(
            text,
            "<g class=\"{}\"><rect x=\"{}\" y=\"{y}\" width=\"20\" height=\"20\" rx=\"3\"/><text x=\"{}\" y=\"{}\" \
             text-anchor=\"middle\">{}</text></g><text class=\"ink\" x=\"{}\" y=\"{}\">{}</text>",
            state_class(state),
            NAMES,
            NAMES + 10,
            y + 15,
            state_letter(state),
            NAMES + 28,
            y + 15,
            state_meaning(state)
        );
    }
    text + "</svg>\n"
}

/// Colors that people with red-green color blindness can distinguish; each square has a letter as well.
const STYLE: &str = include_str!("svg.css");
