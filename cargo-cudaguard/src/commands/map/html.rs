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
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1f2328; --line: #c5c9ce }
body { background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; margin: 0 }
main { margin: 0 auto; max-width: 82rem; padding: 1.5rem 1rem 6rem }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere }
.wide { overflow-x: auto }
table { border-collapse: separate; border-spacing: 2px }
thead th { font-weight: 500; vertical-align: bottom }
small { display: block; font-size: .68rem; opacity: .75; white-space: nowrap }
tbody th { background: var(--ground); font-weight: 400; left: 0; padding-right: .6rem; position: sticky; text-align: left; white-space: nowrap }
td { border-radius: 3px; height: 1.7rem; min-width: 2.6rem; text-align: center }
td:focus-visible, .wide:focus-visible { outline: 2px solid var(--ink); outline-offset: 1px }
td:hover::after, td:focus::after { background: var(--ink); border-radius: 4px; bottom: 1rem; color: var(--ground); content: attr(data-why);
  left: 1rem; max-width: 46rem; padding: .6rem .8rem; position: fixed; right: 1rem; text-align: left; z-index: 1 }
dl { display: grid; gap: .3rem .6rem; grid-template-columns: 1.8rem 1fr; margin: 1rem 0 }
dt { border-radius: 3px; text-align: center } dd { margin: 0 }
.native, .runs { background: #1b6ca8; color: #ffffff } .jit { background: #9fd0f0; color: #10243a }
.partial { background: #f3d27a; color: #3a2c00 } .refused { background: #b3423a; color: #ffffff }
.unknown { background: #d5d8dc; color: #1f2328 } .none { box-shadow: inset 0 0 0 1px var(--line); color: #6a737d }
@media (max-width: 40rem) { tbody th { max-width: 7rem; overflow: hidden; text-overflow: ellipsis } }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --ink: #e6edf3; --line: #3a4049 }
  .native, .runs { background: #4aa3df; color: #04121f } .jit { background: #1d4a6b; color: #e6f3ff }
  .partial { background: #8a6d1d; color: #ffffff } .refused { background: #d9655c; color: #1c0503 }
  .unknown { background: #3a4049; color: #e6edf3 } .none { color: #8b949e }
}
";
