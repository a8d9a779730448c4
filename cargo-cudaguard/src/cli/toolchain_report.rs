//! Formats the detected toolchain for `check`, as JSON and as text.

use std::fmt::Write as _;
use std::path::Path;

use cudaguard::internal::json::{Value, array, object};
use cudaguard::internal::tables;
use cudaguard::internal::toolchain::{
    HostCompiler, LibraryFile, LibraryHeaders, LinkedCudart, Native, Selection, Sourced, Toolchain,
};
use cudaguard::internal::vendor::CUDNN;

fn path_value(path: &Path) -> Value {
    path.display().to_string().into()
}

fn text_values(texts: &[String]) -> Value {
    array(texts.iter().map(String::as_str))
}

fn fact_value<T: ToString>(fact: &Sourced<T>) -> Value {
    object([("version", fact.value.to_string().into()), ("source", fact.source.as_str().into())])
}

/// Returns all detected facts with their sources. Unknown facts are absent.
pub(crate) fn to_json(toolchain: &Toolchain) -> Value {
    let mut all = object([("target", toolchain.target.as_str().into()), ("release", toolchain.release.into())]);
    all.insert_some(
        "toolkit",
        toolchain
            .sourced_toolkit_version()
            .zip(toolchain.release_text())
            .map(|(toolkit, release)| object([("version", release.into()), ("source", toolkit.source.into())])),
    );
    let toolkits: Vec<Value> = (0..toolchain.toolkits.len()).map(|index| toolkit_json(toolchain, index)).collect();
    all.insert_some("toolkits", Some(toolkits));
    all.insert_some("cudart", toolchain.cudart.as_ref().map(cudart_json));
    all.insert_some(CUDNN.key, toolchain.library_headers_used().and_then(|headers| headers_json(headers).1));
    let installs: Vec<Value> = (0..toolchain.installs.len()).map(|index| install_json(toolchain, index)).collect();
    all.insert_some(&format!("{}s", CUDNN.key), Some(installs));
    all.insert_some("host_compiler", toolchain.host.as_ref().map(host_json));
    all.insert_some("host_compiler_of_cc", toolchain.host_of_cc.as_ref().map(host_json));
    all.insert_some("archs", Some(archs_json(toolchain)));
    all.insert_some("stubs", non_empty(&toolchain.stubs).map(|stubs| array(stubs.iter().map(named_path))));
    all.insert_some("dangling", non_empty(&toolchain.dangling).map(|dangling| array(dangling.iter().map(named_path))));
    all
}

fn toolkit_json(toolchain: &Toolchain, index: usize) -> Value {
    let toolkit = &toolchain.toolkits[index];
    let mut value = object([("root", path_value(&toolkit.root)), ("found", text_values(&toolkit.found))]);
    value.insert_some("version", toolkit.release_text());
    value.insert_some("source", toolkit.version().map(|version| version.source));
    value.insert_some(
        "nvcc",
        toolkit.nvcc.as_ref().map(|nvcc| {
            let mut value = object([("path", path_value(&nvcc.path))]);
            value.insert_some("version", nvcc.version.map(|version| version.to_string()));
            value.insert_some("trouble", nvcc.problem.as_deref());
            value
        }),
    );
    value.insert_some(
        "headers",
        toolkit.headers.as_ref().map(|headers| {
            let mut value = object([("path", path_value(&headers.path))]);
            value.insert_some("version", headers.version.map(|version| version.to_string()));
            value
        }),
    );
    value.insert_some("stated", toolkit.stated.as_ref().map(fact_value));
    value.insert_some("cudart", toolkit.cudart.as_ref().map(cudart_json));
    value.insert_some("compiles", choice_reason(toolchain.compiler.as_ref(), index));
    value.insert_some("included", choice_reason(toolchain.headers.as_ref(), index));
    let also: Vec<&str> = toolchain
        .also_named
        .iter()
        .filter(|(other, _)| *other == index)
        .map(|(_, variable)| variable.as_str())
        .collect();
    value.insert_some("also_named_by", non_empty(&also).map(|also| array(also.iter().copied())));
    value
}

fn install_json(toolchain: &Toolchain, index: usize) -> Value {
    let install = &toolchain.installs[index];
    let mut value = object([("found", text_values(&install.found))]);
    value.insert_some("headers", install.headers.as_ref().map(|headers| headers_json(headers).0));
    value.insert_some("library", install.library.as_ref().map(library_json));
    value.insert_some("included", choice_reason(toolchain.library_headers.as_ref(), index));
    value.insert_some("linked", choice_reason(toolchain.library_file.as_ref(), index));
    value
}

fn archs_json(toolchain: &Toolchain) -> Value {
    let names = |targets: &[cudaguard::internal::arch::Target]| array(targets.iter().map(ToString::to_string));
    let sources = toolchain.archs.declared.iter().map(|declared| {
        let mut value = object([
            ("source", declared.source.as_str().into()),
            ("text", declared.text.as_str().into()),
            ("archs", names(&declared.targets)),
        ]);
        value.insert_some("trouble", declared.requests.as_ref().err().map(ToString::to_string));
        value
    });
    let mut value = object([("declared", names(&toolchain.archs.in_force)), ("sources", array(sources))]);
    value.insert_some(
        "native",
        toolchain.archs.native.as_ref().map(|native| match native {
            Native::Gpus(gpus) => object([
                ("ccs", array(gpus.value.iter().copied().map(tables::dotted_cc))),
                ("source", gpus.source.as_str().into()),
            ]),
            Native::Unknown(why) => object([("unknown", why.as_str().into())]),
        }),
    );
    value
}

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

fn non_empty<T>(items: &[T]) -> Option<&[T]> {
    (!items.is_empty()).then_some(items)
}

fn push_line(text: &mut String, name: &str, value: &str, more: &str) {
    let _ = writeln!(text, "{}", format!("{name:<9} {value:<16} {more}").trim_end());
}

fn choice_reason(choice: Option<&Selection>, index: usize) -> Option<&str> {
    choice.filter(|choice| choice.index == index).map(|choice| choice.reason.as_str())
}

fn named_path(fact: &Sourced<std::path::PathBuf>) -> Value {
    object([("path", path_value(&fact.value)), ("source", fact.source.as_str().into())])
}

fn cudart_json(cudart: &LinkedCudart) -> Value {
    let mut value = object([("path", path_value(&cudart.path)), ("found", cudart.source.as_str().into())]);
    value.insert_some("major", cudart.major);
    value.insert_some("version", cudart.version.as_ref().map(|version| version.value.to_string()));
    value.insert_some("source", cudart.version.as_ref().map(|version| version.source.as_str()));
    value
}

fn headers_json(headers: &LibraryHeaders) -> (Value, Option<Value>) {
    let mut value = object([("path", path_value(&headers.path))]);
    value.insert_some("version", headers.version.map(|version| version.to_string()));
    let in_use = headers.version.map(|version| {
        object([("version", version.to_string().into()), ("source", headers.path.display().to_string().into())])
    });
    (value, in_use)
}

fn library_json(library: &LibraryFile) -> Value {
    let mut value = object([("path", path_value(&library.path)), ("major", library.major.into())]);
    value.insert_some("version", library.version.as_ref().map(|version| version.value.to_string()));
    value.insert_some("source", library.version.as_ref().map(|version| version.source.as_str()));
    value.insert_some(
        "cuda_major",
        library
            .cuda_major
            .as_ref()
            .map(|major| object([("value", major.value.into()), ("source", major.source.as_str().into())])),
    );
    let parts = library.parts.iter().map(|part| {
        let mut value = object([("file", part.file.as_str().into())]);
        value.insert_some("version", part.version.map(|version| version.to_string()));
        value
    });
    value.insert_some("parts", Some(array(parts)));
    value.insert_some("missing", non_empty(&library.missing).map(text_values));
    value
}

fn host_json(host: &HostCompiler) -> Value {
    let mut value = object([("path", path_value(&host.path)), ("found", host.source.as_str().into())]);
    value.insert_some("family", Some(host.family.name()).filter(|name| !name.is_empty()));
    value.insert_some("version", host.version.map(|version| version.to_string()));
    value
}
