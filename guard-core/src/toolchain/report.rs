//! What was found, for `check`: as JSON and as text.

use std::fmt::Write as _;
use std::path::Path;

use super::{Cudart, HostCompiler, LibraryFile, LibraryHeaders, Native, Sourced, Toolchain};
use crate::json::{Value, array, object};
use crate::vendor::CUDNN;

fn path(path: &Path) -> Value {
    path.display().to_string().into()
}

fn texts(texts: &[String]) -> Value {
    array(texts.iter().map(String::as_str))
}

fn fact<T: ToString>(fact: &Sourced<T>) -> Value {
    object([("version", fact.value.to_string().into()), ("source", fact.source.as_str().into())])
}

impl Toolchain {
    /// Everything found, each with its source. What is not known is absent.
    pub fn to_json(&self) -> Value {
        let mut all = object([("target", self.target.as_str().into()), ("release", self.release.into())]);
        all.put(
            "toolkit",
            self.toolkit()
                .zip(self.release_text())
                .map(|(toolkit, release)| object([("version", release.into()), ("source", toolkit.source.into())])),
        );
        let toolkits: Vec<Value> = (0..self.toolkits.len()).map(|index| self.toolkit_json(index)).collect();
        all.put("toolkits", Some(toolkits));
        all.put("cudart", self.cudart.as_ref().map(cudart_json));
        all.put(CUDNN.key, self.library_headers_used().and_then(|headers| headers_json(headers).1));
        let installs: Vec<Value> = (0..self.installs.len()).map(|index| self.install_json(index)).collect();
        all.put(&format!("{}s", CUDNN.key), Some(installs));
        all.put("host_compiler", self.host.as_ref().map(host_json));
        all.put("host_compiler_of_cc", self.host_of_cc.as_ref().map(host_json));
        all.put("archs", Some(self.archs_json()));
        all.put("stubs", some(&self.stubs).map(|stubs| array(stubs.iter().map(named_path))));
        all.put("dangling", some(&self.dangling).map(|dangling| array(dangling.iter().map(named_path))));
        all
    }

    fn toolkit_json(&self, index: usize) -> Value {
        let toolkit = &self.toolkits[index];
        let mut value = object([("root", path(&toolkit.root)), ("found", texts(&toolkit.found))]);
        value.put("version", toolkit.release_text());
        value.put("source", toolkit.version().map(|version| version.source));
        value.put(
            "nvcc",
            toolkit.nvcc.as_ref().map(|nvcc| {
                let mut value = object([("path", path(&nvcc.path))]);
                value.put("version", nvcc.version.map(|version| version.to_string()));
                value.put("trouble", nvcc.trouble.as_deref());
                value
            }),
        );
        value.put(
            "headers",
            toolkit.headers.as_ref().map(|headers| {
                let mut value = object([("path", path(&headers.path))]);
                value.put("version", headers.version.map(|version| version.to_string()));
                value
            }),
        );
        value.put("stated", toolkit.stated.as_ref().map(fact));
        value.put("cudart", toolkit.cudart.as_ref().map(cudart_json));
        value.put("compiles", reason(self.compiler.as_ref(), index));
        value.put("included", reason(self.headers.as_ref(), index));
        let also: Vec<&str> = self
            .also_named
            .iter()
            .filter(|(other, _)| *other == index)
            .map(|(_, variable)| variable.as_str())
            .collect();
        value.put("also_named_by", some(&also).map(|also| array(also.iter().copied())));
        value
    }

    fn install_json(&self, index: usize) -> Value {
        let install = &self.installs[index];
        let mut value = object([("found", texts(&install.found))]);
        value.put("headers", install.headers.as_ref().map(|headers| headers_json(headers).0));
        value.put("library", install.library.as_ref().map(library_json));
        value.put("included", reason(self.library_headers.as_ref(), index));
        value.put("linked", reason(self.library_file.as_ref(), index));
        value
    }

    fn archs_json(&self) -> Value {
        let names = |targets: &[crate::arch::Target]| array(targets.iter().map(ToString::to_string));
        let sources = self.archs.declared.iter().map(|declared| {
            let mut value = object([
                ("source", declared.source.as_str().into()),
                ("text", declared.text.as_str().into()),
                ("archs", names(&declared.targets)),
            ]);
            value.put("trouble", declared.requests.as_ref().err().map(ToString::to_string));
            value
        });
        let mut value = object([("declared", names(&self.archs.in_force)), ("sources", array(sources))]);
        value.put(
            "native",
            self.archs.native.as_ref().map(|native| match native {
                Native::Gpus(gpus) => object([
                    ("ccs", array(gpus.value.iter().map(|(major, minor)| format!("{major}.{minor}")))),
                    ("source", gpus.source.as_str().into()),
                ]),
                Native::Unknown(why) => object([("unknown", why.as_str().into())]),
            }),
        );
        value
    }

    /// The same as a short text: what is in use and why, then what else was found.
    pub fn render(&self) -> String {
        let mut text = String::new();
        match self.toolkit() {
            Some(version) => line(&mut text, "toolkit", &self.release_text().unwrap_or_default(), &version.source),
            None => line(&mut text, "toolkit", "none in use", ""),
        }
        for (what, choice) in [("nvcc", &self.compiler), ("headers", &self.headers)] {
            let Some(choice) = choice else { continue };
            let toolkit = &self.toolkits[choice.index];
            let file = match what {
                "nvcc" => toolkit.nvcc.as_ref().map(|nvcc| nvcc.path.display().to_string()),
                _ => toolkit.headers.as_ref().map(|headers| headers.path.display().to_string()),
            };
            line(&mut text, "", what, &format!("{} ({})", file.unwrap_or_default(), choice.reason));
        }
        if let Some(cudart) = &self.cudart {
            line(
                &mut text,
                "cudart",
                &cudart.version_text(),
                &format!("{} ({})", cudart.path.display(), cudart.source),
            );
        }
        if let Some((headers, choice)) = self.library_headers_used().zip(self.library_headers.as_ref()) {
            let version = headers.version.map_or("not readable".to_owned(), |version| version.to_string());
            line(&mut text, CUDNN.name, &version, &format!("{} ({})", headers.path.display(), choice.reason));
        }
        if let Some((library, choice)) = self.library_used().zip(self.library_file.as_ref()) {
            let name = if self.library_headers.is_some() { "" } else { CUDNN.name };
            let shown = format!("{} ({})", library.path.display(), choice.reason);
            line(&mut text, name, &format!("library {}", library.describe()), &shown);
        }
        if let Some(host) = &self.host {
            line(&mut text, "compiler", &host.describe(), &format!("{} ({})", host.path.display(), host.source));
        }
        if let Some(host) = &self.host_of_cc {
            let shown = format!("{} (by the cc crate: {})", host.path.display(), host.source);
            line(&mut text, "", &host.describe(), &shown);
        }
        if !self.archs.in_force.is_empty() {
            let names: Vec<_> = self.archs.in_force.iter().map(ToString::to_string).collect();
            let sources: Vec<_> = self.archs.declared.iter().map(|declared| declared.source.as_str()).collect();
            line(&mut text, "archs", &names.join(" "), &sources.join(", "));
        }
        for (index, toolkit) in self.toolkits.iter().enumerate() {
            let used = [&self.compiler, &self.headers].into_iter().flatten().any(|choice| choice.index == index);
            if !used {
                line(&mut text, "also", &toolkit.describe(), &toolkit.place());
            }
        }
        for (index, install) in self.installs.iter().enumerate() {
            let used = [&self.library_headers, &self.library_file].into_iter().flatten().any(|c| c.index == index);
            if !used {
                line(&mut text, "also", &install.describe(), &install.place());
            }
        }
        for dangling in &self.dangling {
            line(&mut text, "nothing", &dangling.source, &format!("{} is not there", dangling.value.display()));
        }
        text
    }
}

fn some<T>(items: &[T]) -> Option<&[T]> {
    (!items.is_empty()).then_some(items)
}

fn line(text: &mut String, name: &str, value: &str, more: &str) {
    let _ = writeln!(text, "{}", format!("{name:<9} {value:<16} {more}").trim_end());
}

fn reason(choice: Option<&super::Choice>, index: usize) -> Option<&str> {
    choice.filter(|choice| choice.index == index).map(|choice| choice.reason.as_str())
}

fn named_path(fact: &Sourced<std::path::PathBuf>) -> Value {
    object([("path", path(&fact.value)), ("source", fact.source.as_str().into())])
}

fn cudart_json(cudart: &Cudart) -> Value {
    let mut value = object([("path", path(&cudart.path)), ("found", cudart.source.as_str().into())]);
    value.put("major", cudart.major);
    value.put("version", cudart.version.as_ref().map(|version| version.value.to_string()));
    value.put("source", cudart.version.as_ref().map(|version| version.source.as_str()));
    value
}

fn headers_json(headers: &LibraryHeaders) -> (Value, Option<Value>) {
    let mut value = object([("path", path(&headers.path))]);
    value.put("version", headers.version.map(|version| version.to_string()));
    let in_use = headers.version.map(|version| {
        object([("version", version.to_string().into()), ("source", headers.path.display().to_string().into())])
    });
    (value, in_use)
}

fn library_json(library: &LibraryFile) -> Value {
    let mut value = object([("path", path(&library.path)), ("major", library.major.into())]);
    value.put("version", library.version.as_ref().map(|version| version.value.to_string()));
    value.put("source", library.version.as_ref().map(|version| version.source.as_str()));
    value.put(
        "cuda_major",
        library
            .cuda_major
            .as_ref()
            .map(|major| object([("value", major.value.into()), ("source", major.source.as_str().into())])),
    );
    let parts = library.parts.iter().map(|part| {
        let mut value = object([("file", part.file.as_str().into())]);
        value.put("version", part.version.map(|version| version.to_string()));
        value
    });
    value.put("parts", Some(array(parts)));
    value.put("missing", some(&library.missing).map(texts));
    value
}

fn host_json(host: &HostCompiler) -> Value {
    let mut value = object([("path", path(&host.path)), ("found", host.source.as_str().into())]);
    value.put("family", Some(host.family.name()).filter(|name| !name.is_empty()));
    value.put("version", host.version.map(|version| version.to_string()));
    value
}
