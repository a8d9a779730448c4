//! Pins of a conda recipe, on the virtual packages of the machine that installs: `__cuda` (CEP 30) and `__cuda_arch` (CEP 46).
//!
//! One version of `__cuda` holds for all GPUs: where newer GPUs need a newer driver, all do. `__cuda_arch` is the oldest of the
//! machine's GPUs.

use std::fmt::Write as _;

use cudaguard::vendor::GUARDED;

use super::{Asked, Row, commented, dotted, processor_comes_with};

pub(super) fn write(asked: &Asked<'_>) -> Result<String, String> {
    let rows = asked.rows()?;
    let mut heading =
        asked.heading("Pins of a conda recipe (recipe.yaml of rattler-build; the same words in meta.yaml)");
    heading.push("__cuda as in CEP 30; __cuda_arch as in CEP 46, which is the oldest GPU of the machine that installs: a client that".to_owned());
    heading.push("does not know it installs nothing that needs it.".to_owned());
    heading.extend(processor_comes_with(asked, "the package's platform"));
    let newest = rows.iter().filter_map(|row| row.cuda).max();
    if rows.iter().any(|row| row.cuda != newest) {
        heading.push(
            "One __cuda holds for all: what some of the GPUs could do with an older driver is given away.".to_owned(),
        );
        heading.extend(alternative(&rows));
    }
    let mut text = commented(&heading);
    text.push_str("requirements:\n  run:\n");
    // Without a driver neither package is there.
    let cuda = newest.map(|cuda| format!(" >={cuda}")).unwrap_or_default();
    let _ = writeln!(text, "    - __cuda{cuda}");
    let arch = rows_of_gpus(&rows);
    if !arch.is_empty() {
        let _ = writeln!(text, "    - __cuda_arch {arch}");
    }
    if let Some(library) = asked.placement.library {
        let below = library.leaves_behind.unwrap_or(library.below);
        if library.leaves_behind.is_some() {
            let _ = writeln!(text, "    # {} {below} and newer leave some of these GPUs behind.", GUARDED.name);
        }
        if !library.needed {
            text.push_str("  run_constraints:\n");
        }
        let _ = writeln!(text, "    - {} >={},<{below}", GUARDED.key, library.min);
    }
    Ok(text)
}

/// The other way round: the oldest driver that serves any of the GPUs, and only those that it serves.
fn alternative(rows: &[Row]) -> Option<String> {
    let oldest = rows.iter().map(|row| row.cuda).min()?;
    let served: Vec<Row> = rows.iter().filter(|row| row.cuda == oldest).copied().collect();
    let cuda = oldest.map(|cuda| format!(" >={cuda}")).unwrap_or_default();
    Some(format!("Older drivers, and fewer GPUs: __cuda{cuda} with __cuda_arch {}", rows_of_gpus(&served)))
}

/// Alternatives joined by `|`, each an interval; empty: any GPU.
fn rows_of_gpus(rows: &[Row]) -> String {
    // What stands apart only by its driver is one.
    let mut joined: Vec<Row> = Vec::new();
    for row in rows {
        match joined.last_mut() {
            Some(last) if last.below.is_some() && last.below == row.from => last.below = row.below,
            _ => joined.push(*row),
        }
    }
    let interval = |row: &Row| {
        let from = row.from.map(|cc| format!(">={}", dotted(cc)));
        let below = row.below.map(|cc| format!("<{}", dotted(cc)));
        [from, below].into_iter().flatten().collect::<Vec<_>>().join(",")
    };
    let all: Vec<String> = joined.iter().map(interval).collect();
    if all.iter().any(String::is_empty) { String::new() } else { all.join("|") }
}
