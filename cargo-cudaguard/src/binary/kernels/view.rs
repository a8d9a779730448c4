//! The `kernels` object of `inspect --json`.

use cudaguard::internal::tables;
use serde::{Serialize, Serializer};

use super::{Cover, Coverage, Kernels};

#[derive(Serialize)]
struct KernelsView<'a> {
    entries: Vec<ImageView<'a>>,
    covers: Vec<CoverView>,
    containers: Vec<ContainerView<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    doubts: &'a [String],
}

#[derive(Serialize)]
struct ImageView<'a> {
    kind: String,
    arch: String,
    isa: Option<String>,
    container: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    section: &'a str,
    size: u64,
    compression: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    debug: bool,
}

#[derive(Serialize)]
struct CoverView {
    cc: String,
    by: &'static str,
    code: Option<String>,
    /// The number of containers that do not serve it.
    without: Option<usize>,
}

#[derive(Serialize)]
struct ContainerView<'a> {
    container: usize,
    role: &'static str,
    offset: u64,
    size: u64,
    member: Option<&'a str>,
    origin: Option<&'a str>,
}

impl Serialize for Kernels {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        let mut entries = Vec::with_capacity(self.entries.len());
        for container in &self.containers {
            entries.extend(self.entries_of(container).iter().map(|entry| ImageView {
                kind: entry.kind.to_string(),
                arch: entry.arch_name(),
                isa: entry.ptx_isa().map(|(major, minor)| format!("{major}.{minor}")),
                container: entry.container,
                section: self.section_name(container),
                size: entry.size,
                compression: entry.compression.name(),
                debug: entry.debug,
            }));
        }
        let covers = self.coverage_by_cc().into_iter().map(|Cover { cc, service }| CoverView {
            cc: tables::dotted_cc(cc),
            by: service.by.name(),
            code: service.code.map(|code| code.to_string()),
            without: (service.by == Coverage::Partial).then(|| self.containers_without(cc).count()),
        });
        let containers = self.containers.iter().enumerate().map(|(number, container)| ContainerView {
            container: number,
            role: container.role.name(),
            offset: container.offset,
            size: container.size,
            member: self.member_name(container),
            origin: container.origin.as_deref(),
        });
        let (covers, containers) = (covers.collect(), containers.collect());
        KernelsView { entries, covers, containers, doubts: &self.warnings }.serialize(json)
    }
}
