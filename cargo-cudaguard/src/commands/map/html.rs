//! The map as a self-contained HTML page. Its table is accessible to screen readers and the keyboard, and scrolls in a
//! narrow window.

use std::fmt::Write as _;

use crate::host::machine::map::Map;

use super::{describe_cell, escape_xml, legend_states, row_label, state_class, state_letter, state_meaning};

pub(super) fn render_html(title: &str, map: &Map) -> String {
    let title = escape_xml(title);
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}: GPUs and drivers</title>\n<style>\n{STYLE}</style>\n<main>\n<h1>{title}</h1>\n\
         <p>The GPUs and drivers that the program runs on. Hover over a square, or select it with Tab, for its meaning and reason.</p>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"GPUs by driver branches\">\n<table>\n\
         <thead><tr><th scope=\"col\">GPU</th>"
    );
    for branch in &map.branches {
        let _ = write!(text, "<th scope=\"col\">{}<small>CUDA {}</small></th>", branch.shown, branch.cuda);
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &map.rows {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escape_xml(&row_label(row)));
        for (branch, cell) in map.branches.iter().zip(&row.cells) {
            let description = escape_xml(&describe_cell(row, branch, cell));
            let _ = write!(
                text,
                "<td class=\"{}\" tabindex=\"0\" aria-label=\"{description}\" data-why=\"{description}\">{}</td>",
                state_class(cell.state),
                state_letter(cell.state)
            );
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table>\n</div>\n<dl>\n");
    for state in legend_states(map) {
        let _ = writeln!(
            text,
            "<dt class=\"{}\">{}</dt><dd>{}</dd>",
            state_class(state),
            state_letter(state),
            state_meaning(state)
        );
    }
    text + "</dl>\n</main>\n</html>\n"
}

/// The colors of the SVG image, as backgrounds.
const STYLE: &str = include_str!("html.css");
