//! Formats the detected toolchain for `check`, as text.

use std::fmt::Write as _;

use crate::knowledge::vendor::CUDNN;
use cudaguard::internal::toolchain::Toolchain;

/// Formats a short text: the parts in use and the reasons, then other parts that were found.
pub(crate) fn render(toolchain: &Toolchain) -> String {
    let mut text = String::new();
    match toolchain.sourced_toolkit_version() {
        Some(version) => {
            push_line(&mut text, "toolkit", &toolchain.release_text().unwrap_or_default(), &version.source);
        }
        None => push_line(&mut text, "toolkit", "none in use", ""),
    }
    for (what, choice) in [("nvcc", &toolchain.compiler), ("headers", &toolchain.headers)] {
        let Some(choice) = choice else { continue };
        let toolkit = &toolchain.toolkits[choice.index];
        let file = match what {
            "nvcc" => toolkit.nvcc.as_ref().map(|nvcc| nvcc.path.display().to_string()),
            _ => toolkit.headers.as_ref().map(|headers| headers.path.display().to_string()),
        };
        push_line(&mut text, "", what, &format!("{} ({})", file.unwrap_or_default(), choice.reason));
    }
    if let Some(cudart) = &toolchain.cudart {
        push_line(
            &mut text,
            "cudart",
            &cudart.version_text(),
            &format!("{} ({})", cudart.path.display(), cudart.source),
        );
    }
    if let Some((headers, choice)) = toolchain.library_headers_used().zip(toolchain.library_headers.as_ref()) {
        let version = headers.version.map_or("not readable".to_owned(), |version| version.to_string());
        push_line(&mut text, CUDNN.name, &version, &format!("{} ({})", headers.path.display(), choice.reason));
    }
    if let Some((library, choice)) = toolchain.library_used().zip(toolchain.library_file.as_ref()) {
        let name = if toolchain.library_headers.is_some() { "" } else { CUDNN.name };
        let shown = format!("{} ({})", library.path.display(), choice.reason);
        push_line(&mut text, name, &format!("library {}", library.describe()), &shown);
    }
    if let Some(host) = &toolchain.host {
        push_line(&mut text, "compiler", &host.describe(), &format!("{} ({})", host.path.display(), host.source));
    }
    if let Some(host) = &toolchain.host_of_cc {
        let shown = format!("{} (by the cc crate: {})", host.path.display(), host.source);
        push_line(&mut text, "", &host.describe(), &shown);
    }
    if !toolchain.archs.in_force.is_empty() {
        let names: Vec<_> = toolchain.archs.in_force.iter().map(ToString::to_string).collect();
        let sources: Vec<_> = toolchain.archs.declared.iter().map(|declared| declared.source.as_str()).collect();
        push_line(&mut text, "archs", &names.join(" "), &sources.join(", "));
    }
    for (index, toolkit) in toolchain.toolkits.iter().enumerate() {
        let used = [&toolchain.compiler, &toolchain.headers].into_iter().flatten().any(|choice| choice.index == index);
        if !used {
            push_line(&mut text, "also", &toolkit.describe(), &toolkit.describe_place());
        }
    }
    for (index, install) in toolchain.installs.iter().enumerate() {
        let used =
            [&toolchain.library_headers, &toolchain.library_file].into_iter().flatten().any(|c| c.index == index);
        if !used {
            push_line(&mut text, "also", &install.describe(), &install.describe_place());
        }
    }
    for dangling in &toolchain.dangling {
        push_line(&mut text, "missing", &dangling.source, &format!("nothing found at {}", dangling.value.display()));
    }
    text
}

fn push_line(text: &mut String, name: &str, value: &str, more: &str) {
    let _ = writeln!(text, "{}", format!("{name:<9} {value:<16} {more}").trim_end());
}
