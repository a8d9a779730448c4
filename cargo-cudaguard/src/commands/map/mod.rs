//! `map`: GPU generations by driver branches, as text, SVG or HTML.

mod html;
mod json;
mod markdown;
mod svg;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::host::machine::map::{Branch, Cell, Map, MapRow, State};
use cudaguard::internal::env::Env;
use cudaguard::internal::files;

use crate::cli::arguments::MapFormat;
use crate::cli::report::{self, CliError};
use crate::commands::verify;

pub(crate) fn run_map(
    env: &Env,
    files: &[PathBuf],
    form: MapFormat,
    output: Option<&Path>,
) -> Result<ExitCode, CliError> {
    let all = verify::components_of_all(env, files)?;
    verify::warn_of_not_examined(&all);
    let map = Map::from_components(&all)
        .map_err(|why| CliError::operational(format_args!("cannot create the map: {why}")))?;
    let title = verify::file_names(files);
    let drawn = match form {
        MapFormat::Text => text::render_text(&title, &map),
        MapFormat::Svg => svg::render_svg(&title, &map),
        MapFormat::Html => html::render_html(&title, &map),
        MapFormat::Markdown => markdown::render_markdown(&title, &map),
        MapFormat::Json => {
            let files: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
            let open: Vec<String> = all.iter().flat_map(|file| &file.not_examined).map(ToString::to_string).collect();
            json::render_json(&files, &map, &open)
        }
    };
    match output {
        None => report::print_result(&drawn)?,
        Some(path) => {
            files::write_regular(path, drawn.as_bytes()).map_err(|error| CliError::cannot_write(path, &error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the letter of a state. Each format shows it in addition to the color.
const fn state_letter(state: State) -> &'static str {
    match state {
        State::Native => "N",
        State::Jit => "J",
        State::Partial => "P",
        State::NoKernels => "R",
        State::Refused => "x",
        State::Unknown => "?",
        State::NotDriven => "·",
    }
}

/// Returns the name of a state for classes of a style sheet.
const fn state_class(state: State) -> &'static str {
    match state {
        State::Native => "native",
        State::Jit => "jit",
        State::Partial => "partial",
        State::NoKernels => "runs",
        State::Refused => "refused",
        State::Unknown => "unknown",
        State::NotDriven => "none",
    }
}

const fn state_meaning(state: State) -> &'static str {
    match state {
        State::Native => "runs, by machine code",
        State::Jit => "runs, the driver compiles PTX",
        State::Partial => "runs, some kernels have no code",
        State::NoKernels => "runs, and has no GPU code",
        State::Refused => "is refused",
        State::Unknown => "unknown",
        State::NotDriven => "no driver of that branch supports this GPU",
    }
}

/// Returns a label such as `8.6 (A40)`.
fn row_label(row: &MapRow) -> String {
    let example = row.names.first().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}.{}{example}", row.cc.0, row.cc.1)
}

/// Describes a cell, for example `8.6 (A40) with driver 535, CUDA 12.2: is refused (CG303: no code …)`.
fn describe_cell(row: &MapRow, branch: &Branch, cell: &Cell) -> String {
    let why = cell
        .why
        .as_ref()
        .filter(|_| cell.state != State::NotDriven)
        .map(|finding| format!(" ({}: {})", finding.code, finding.first_line()));
    let Branch { shown, cuda, .. } = branch;
    format!(
        "{} with driver {shown}, CUDA {cuda}: {}{}",
        row_label(row),
        state_meaning(cell.state),
        why.unwrap_or_default()
    )
}

/// Returns the states that the map contains, in the order of the legend.
fn legend_states(map: &Map) -> impl Iterator<Item = State> + '_ {
    State::ALL.into_iter().filter(|state| map.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.state == *state))
}

/// Escapes text for XML and HTML.
fn escape_xml(text: &str) -> String {
    cudaguard::internal::sanitize::sanitize_line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
