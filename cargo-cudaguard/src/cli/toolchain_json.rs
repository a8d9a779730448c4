//! The detected toolchain as JSON for `check`: all facts with their sources. Unknown facts are absent.

use std::path::{Path, PathBuf};

use cudaguard::internal::tables;
use cudaguard::internal::toolchain::{
    DeclaredArchs, HostCompiler, Install, LibraryFile, LinkedCudart, Native, Selection, Sourced, Toolchain, Toolkit,
};
use cudaguard::internal::version::Version;
use serde::Serialize;

use super::json_output::{VersionView, texts};

#[derive(Serialize)]
pub(crate) struct ToolchainView<'a> {
    target: &'a str,
    release: bool,
    toolkit: Option<VersionView>,
    toolkits: Vec<ToolkitView<'a>>,
    cudart: Option<ToolFileView<'a>>,
    cudnn: Option<VersionView>,
    cudnns: Vec<InstallView<'a>>,
    host_compiler: Option<ToolFileView<'a>>,
    host_compiler_of_cc: Option<ToolFileView<'a>>,
    archs: ArchsView<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stubs: Vec<PlaceView<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dangling: Vec<PlaceView<'a>>,
}

impl<'a> ToolchainView<'a> {
    pub(crate) fn new(toolchain: &'a Toolchain) -> Self {
        let version_in_use = toolchain.sourced_toolkit_version().zip(toolchain.release_text());
        let headers_in_use = toolchain.library_headers_used();
        Self {
            target: &toolchain.target,
            release: toolchain.release,
            toolkit: version_in_use.map(|(toolkit, version)| VersionView::new(&version, toolkit.source)),
            toolkits: (0..toolchain.toolkits.len()).map(|index| ToolkitView::new(toolchain, index)).collect(),
            cudart: toolchain.cudart.as_ref().map(ToolFileView::of_cudart),
            cudnn: headers_in_use.and_then(|headers| Some(VersionView::new(&headers.version?, text(&headers.path)))),
            cudnns: (0..toolchain.installs.len()).map(|index| InstallView::new(toolchain, index)).collect(),
            host_compiler: toolchain.host.as_ref().map(ToolFileView::of_compiler),
            host_compiler_of_cc: toolchain.host_of_cc.as_ref().map(ToolFileView::of_compiler),
            archs: ArchsView::new(&toolchain.archs),
            stubs: toolchain.stubs.iter().map(PlaceView::new).collect(),
            dangling: toolchain.dangling.iter().map(PlaceView::new).collect(),
        }
    }
}

#[derive(Serialize)]
struct ToolkitView<'a> {
    root: String,
    found: &'a [String],
    version: Option<String>,
    source: Option<String>,
    nvcc: Option<ToolFileView<'a>>,
    headers: Option<ToolFileView<'a>>,
    stated: Option<VersionView>,
    cudart: Option<ToolFileView<'a>>,
    compiles: Option<String>,
    included: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_named_by: Vec<&'a str>,
}

impl<'a> ToolkitView<'a> {
    fn new(toolchain: &'a Toolchain, index: usize) -> Self {
        let toolkit: &Toolkit = &toolchain.toolkits[index];
        let also_named = toolchain.also_named.iter().filter(|(other, _)| *other == index);
        Self {
            root: text(&toolkit.root),
            found: &toolkit.found,
            version: toolkit.release_text(),
            source: toolkit.version().map(|version| version.source),
            nvcc: toolkit.nvcc.as_ref().map(|nvcc| ToolFileView {
                trouble: nvcc.problem.as_deref(),
                ..ToolFileView::new(&nvcc.path, nvcc.version)
            }),
            headers: toolkit.headers.as_ref().map(|headers| ToolFileView::new(&headers.path, headers.version)),
            stated: toolkit.stated.as_ref().map(|stated| VersionView::new(&stated.value, stated.source.clone())),
            cudart: toolkit.cudart.as_ref().map(ToolFileView::of_cudart),
            compiles: choice_reason(toolchain.compiler.as_ref(), index),
            included: choice_reason(toolchain.headers.as_ref(), index),
            also_named_by: also_named.map(|(_, variable)| variable.as_str()).collect(),
        }
    }
}

#[derive(Serialize)]
struct InstallView<'a> {
    found: &'a [String],
    headers: Option<ToolFileView<'a>>,
    library: Option<ToolFileView<'a>>,
    included: Option<String>,
    linked: Option<String>,
}

impl<'a> InstallView<'a> {
    fn new(toolchain: &'a Toolchain, index: usize) -> Self {
        let install: &Install = &toolchain.installs[index];
        Self {
            found: &install.found,
            headers: install.headers.as_ref().map(|headers| ToolFileView::new(&headers.path, headers.version)),
            library: install.library.as_ref().map(ToolFileView::of_cudnn),
            included: choice_reason(toolchain.library_headers.as_ref(), index),
            linked: choice_reason(toolchain.library_file.as_ref(), index),
        }
    }
}

/// A program, a header or a library. Each kind has some of these facts.
#[derive(Default, Serialize)]
struct ToolFileView<'a> {
    path: String,
    found: Option<&'a str>,
    family: Option<&'static str>,
    major: Option<u32>,
    version: Option<String>,
    source: Option<&'a str>,
    trouble: Option<&'a str>,
    cuda_major: Option<MajorView<'a>>,
    parts: Option<Vec<PartView<'a>>>,
    missing: Option<&'a [String]>,
}

#[derive(Serialize)]
struct MajorView<'a> {
    value: u32,
    source: &'a str,
}

#[derive(Serialize)]
struct PartView<'a> {
    file: &'a str,
    version: Option<String>,
}

impl<'a> ToolFileView<'a> {
    fn new(path: &Path, version: Option<impl ToString>) -> Self {
        Self { path: text(path), version: version.map(|version| version.to_string()), ..Self::default() }
    }

    fn of_library(path: &Path, major: Option<u32>, version: Option<&'a Sourced<Version>>) -> Self {
        let source = version.map(|version| version.source.as_str());
        Self { major, source, ..Self::new(path, version.map(|version| version.value)) }
    }

    fn of_cudart(cudart: &'a LinkedCudart) -> Self {
        let found = Some(cudart.source.as_str());
        Self { found, ..Self::of_library(&cudart.path, cudart.major, cudart.version.as_ref()) }
    }

    fn of_cudnn(library: &'a LibraryFile) -> Self {
        let parts = library.parts.iter();
        let parts =
            parts.map(|part| PartView { file: &part.file, version: part.version.map(|known| known.to_string()) });
        let cuda_major = library.cuda_major.as_ref();
        Self {
            cuda_major: cuda_major.map(|major| MajorView { value: major.value, source: &major.source }),
            parts: Some(parts.collect()),
            missing: (!library.missing.is_empty()).then_some(&library.missing),
            ..Self::of_library(&library.path, Some(library.major), library.version.as_ref())
        }
    }

    fn of_compiler(host: &'a HostCompiler) -> Self {
        let family = Some(host.family.name()).filter(|name| !name.is_empty());
        Self { found: Some(&host.source), family, ..Self::new(&host.path, host.version) }
    }
}

#[derive(Serialize)]
struct ArchsView<'a> {
    declared: Vec<String>,
    sources: Vec<DeclaredView<'a>>,
    native: Option<NativeView<'a>>,
}

#[derive(Serialize)]
struct DeclaredView<'a> {
    source: &'a str,
    text: &'a str,
    archs: Vec<String>,
    trouble: Option<String>,
}

/// The GPUs of this machine, for which `native` compiles.
#[derive(Serialize)]
#[serde(untagged)]
enum NativeView<'a> {
    Gpus { ccs: Vec<String>, source: &'a str },
    Unknown { unknown: &'a str },
}

impl<'a> ArchsView<'a> {
    fn new(archs: &'a DeclaredArchs) -> Self {
        let sources = archs.declared.iter().map(|declared| DeclaredView {
            source: &declared.source,
            text: &declared.text,
            archs: texts(&declared.targets),
            trouble: declared.requests.as_ref().err().map(ToString::to_string),
        });
        Self {
            declared: texts(&archs.in_force),
            sources: sources.collect(),
            native: archs.native.as_ref().map(|native| match native {
                Native::Gpus(gpus) => NativeView::Gpus {
                    ccs: gpus.value.iter().copied().map(tables::dotted_cc).collect(),
                    source: &gpus.source,
                },
                Native::Unknown(why) => NativeView::Unknown { unknown: why },
            }),
        }
    }
}

/// A directory, and the variable or option that names it.
#[derive(Serialize)]
struct PlaceView<'a> {
    path: String,
    source: &'a str,
}

impl<'a> PlaceView<'a> {
    fn new(place: &'a Sourced<PathBuf>) -> Self {
        Self { path: text(&place.value), source: &place.source }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the reason why this entry is in use.
fn choice_reason(choice: Option<&Selection>, index: usize) -> Option<String> {
    choice.filter(|choice| choice.index == index).map(|choice| choice.reason.to_string())
}
