//! The crates of the project that use CUDA, from the metadata of cargo: which crates are linked into a package, with
//! which features, and which crates run in their build scripts.
//!
//! This module resolves the features itself, from the selected packages along the linked dependencies. Cargo's metadata
//! contains one set of features for all members, tests and build scripts together, and features that only a build
//! script uses are not in the program. With resolver 1, cargo also turns these features on in the program if both use
//! the same crate; this module ignores that.
//!
//! The result is cached next to the guards until `Cargo.lock`, a manifest or cargo's configuration changes, because
//! cargo needs a tenth of a second for the metadata of a few hundred packages.

mod query;
mod stale;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::knowledge::crates::Crate;
use crate::knowledge::crates::recognition::{cuda_evidence, enables_cuda, is_cuda_name, linked_by_attributes};
use crate::knowledge::crates::table::{find_row, table};
use cargo_metadata::semver::{Version, VersionReq};
use cargo_metadata::{DependencyKind, Metadata, Node, Package, PackageId, TargetKind};
use cudaguard::internal::digest::Digest;
use cudaguard::internal::files;
use cudaguard::internal::files::write_where_new;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toml::Value as Toml;

use crate::cargo::config::Config;
use crate::cargo::project::Project;
use crate::cli::arguments::Call;
use query::{GraphQuery, ScratchCopy};
pub(crate) use stale::{StaleCheck, stale_by_messages, stale_crates};

/// The crates of each package, for each target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CrateGraph {
    crates: BTreeMap<String, BTreeMap<String, Vec<Crate>>>,
    /// The reason why the crates are unknown.
    #[serde(skip)]
    pub(crate) unchecked: Option<String>,
}

impl CrateGraph {
    /// Returns the crates with CUDA in a package for a target, sorted by name and version.
    pub(crate) fn crates_of(&self, target: &str, package: &str) -> &[Crate] {
        self.crates.get(target).and_then(|packages| packages.get(package)).map_or(&[], Vec::as_slice)
    }

    /// Reads the graph of this project. If cargo cannot resolve it, the graph is empty, because cargo reports the error
    /// in its own build. `builds` is set if cargo is about to build: then cargo may write `Cargo.lock` now instead of
    /// during the build.
    pub(crate) fn from_project(project: &Project, call: &Call, config: &Config, own: &Path, builds: bool) -> Self {
        let lock = files::read_text(&project.top.join("Cargo.lock"));
        // A lock file without CUDA is enough only before a build. Other commands list the crates, and a build script in a package
        // with any name may link CUDA.
        if builds && lock.as_ref().is_ok_and(|text| !speaks_of_cuda(text)) {
            return Self::default();
        }
        // Cargo reports it in its own build.
        if let Some(error) = lock.as_ref().err().filter(|error| !builds && error.kind() != ErrorKind::NotFound) {
            return Self { unchecked: Some(format!("Cargo.lock cannot be read: {error}")), ..Self::default() };
        }
        let asked =
            GraphQuery { env: &config.env, project, call, top: &project.top, copy: None, locked: lock.is_ok(), builds };
        if lock.is_err() && !builds {
            return Self::resolve_in_copy(&asked);
        }
        let file =
            own.join("graph").join(format!("{}.json", Digest::from_bytes(asked.cache_key_words(config).as_bytes())));
        if let Some(kept) = read_cached(&file) {
            return kept;
        }
        let mut graph = Self::default();
        let mut inputs: BTreeSet<PathBuf> =
            project.members.iter().map(|member| member.dir.join("Cargo.toml")).collect();
        inputs.extend([project.top.join("Cargo.toml"), project.top.join("Cargo.lock")]);
        for target in &project.targets {
            let Some(metadata) = asked.resolve_metadata(target) else {
                let why = "`cargo metadata` fails: run it to see why".to_owned();
                return Self { unchecked: Some(why), ..Self::default() };
            };
            // Path dependencies may be outside of the workspace.
            let by_path = metadata.packages.iter().filter(|package| package.source.is_none());
            for package in by_path {
                inputs.insert(package.manifest_path.clone().into_std_path_buf());
                let scripts = package.targets.iter().filter(|target| target.kind.contains(&TargetKind::CustomBuild));
                inputs.extend(scripts.map(|target| target.src_path.clone().into_std_path_buf()));
            }
            graph.crates.insert(target.clone(), crates_by_package(&metadata, project, call));
        }
        let inputs: Vec<Value> = inputs.into_iter().map(|path| json!([path, digest_of(&path)])).collect();
        let text = json!({ "inputs": inputs, "targets": graph }).to_string();
        // A check of a project that was never built writes nothing into it. If the cache cannot be written, the graph is
        // read again next time.
        let _ = (builds || own.is_dir()).then(|| write_where_new(&file, text.as_bytes()));
        graph
    }

    /// Resolves a project that has no lock and must not get one. Cargo resolves a copy in another directory, whose lock
    /// is discarded. The result is not cached, because cargo may select other versions later.
    fn resolve_in_copy(asked: &GraphQuery<'_>) -> Self {
        if asked.call.locked {
            return Self::unchecked("--locked prevents cargo from creating it");
        }
        // Windows allows links to directories only to administrators and developers.
        let copy = match ScratchCopy::copy_project(asked.project) {
            Ok(copy) => copy,
            Err(error) => {
                return Self::unchecked(&format!(
                    "no copy of the project can be made to create one in ({error}): run `cargo generate-lockfile`, then check again"
                ));
            }
        };
        let asked =
            GraphQuery { top: &copy.path_in_copy(&asked.project.top), copy: Some(&copy.0), builds: true, ..*asked };
        let mut graph = Self::default();
        for target in &asked.project.targets {
            let Some(metadata) = asked.resolve_metadata(target) else {
                return Self::unchecked("cargo cannot create one: run `cargo generate-lockfile` to see why");
            };
            graph.crates.insert(target.clone(), crates_by_package(&metadata, asked.project, asked.call));
        }
        graph
    }

    fn unchecked(why: &str) -> Self {
        Self { unchecked: Some(format!("there is no Cargo.lock, and {why}")), ..Self::default() }
    }
}

/// Reads the cached graph if none of its inputs has changed.
fn read_cached(file: &Path) -> Option<CrateGraph> {
    let value: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    value["inputs"].as_array()?.iter().try_for_each(|input| {
        let path = Path::new(input[0].as_str()?);
        (input[1].as_str()? == digest_of(path)).then_some(())
    })?;
    CrateGraph::deserialize(&value["targets"]).ok()
}

/// Returns true if a lock names a package that could use CUDA.
fn speaks_of_cuda(lock: &str) -> bool {
    lock.lines().filter_map(|line| line.strip_prefix("name = ")).any(|name| {
        let name = name.trim_matches('"');
        is_cuda_name(name) || table().crates.iter().any(|row| row.name == name)
    })
}

/// Returns the digest of a file's content. A missing file counts as empty.
fn digest_of(path: &Path) -> String {
    Digest::from_bytes(&files::read_bytes(path).unwrap_or_default()).to_string()
}

/// Returns true if tests or examples are built, which also link dev-dependencies.
fn uses_dev_dependencies(call: &Call) -> bool {
    call.tests || call.all_examples || call.all_targets || !call.examples.is_empty()
}

/// Returns the crates with CUDA of each member.
fn crates_by_package(metadata: &Metadata, project: &Project, call: &Call) -> BTreeMap<String, Vec<Crate>> {
    let Some(resolve) = &metadata.resolve else { return BTreeMap::new() };
    let mut walk = GraphWalk {
        packages: metadata.packages.iter().map(|package| (&package.id, package)).collect(),
        nodes: resolve.nodes.iter().map(|node| (&node.id, node)).collect(),
        on: BTreeMap::new(),
        dev: uses_dev_dependencies(call),
        members: metadata.workspace_members.iter().collect(),
    };
    let members: Vec<&Package> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| {
            let dir = package.manifest_path.parent();
            project.members.iter().any(|member| dir.is_some_and(|dir| dir.as_std_path() == member.dir))
        })
        .collect();
    let mut seeds = members.clone();
    seeds.retain(|package| {
        let dir = package.manifest_path.parent();
        project.selected.iter().any(|at| dir.is_some_and(|dir| dir.as_std_path() == project.members[*at].dir))
    });
    walk.turn_on(&seeds, call);
    let top = project.top.as_path();
    let mut files: BTreeSet<PathBuf> = BTreeSet::from([top.join("Cargo.toml")]);
    files.extend(members.iter().map(|package| package.manifest_path.clone().into_std_path_buf()));
    let manifests: Vec<CargoManifest> = files.iter().filter_map(|file| CargoManifest::parse_file(file, top)).collect();
    // A member whose C library is built along is guarded too, so the result contains all members.
    members
        .iter()
        .filter(|package| walk.on.contains_key(&package.id))
        .map(|package| (package.name.to_string(), walk.crates_from(package, &manifests)))
        .collect()
}

/// A manifest of the workspace, used to locate dependencies by line.
struct CargoManifest {
    /// Path relative to the workspace root.
    path: String,
    text: String,
    table: Toml,
}

/// The graph, and the features that are on in it.
struct GraphWalk<'a> {
    packages: BTreeMap<&'a PackageId, &'a Package>,
    nodes: BTreeMap<&'a PackageId, &'a Node>,
    /// The linked packages, each with its enabled features and optional dependencies.
    on: BTreeMap<&'a PackageId, EnabledFeatures>,
    dev: bool,
    members: BTreeSet<&'a PackageId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct EnabledFeatures {
    features: BTreeSet<String>,
    /// The keys of the enabled optional dependencies in the manifest.
    optional: BTreeSet<String>,
}

/// A resolved dependency.
struct Edge<'a> {
    declared: &'a cargo_metadata::Dependency,
    to: &'a Package,
}

impl Edge<'_> {
    /// Returns the key of the dependency in the manifest.
    fn manifest_key(&self) -> &str {
        self.declared.rename.as_deref().unwrap_or(&self.declared.name)
    }
}

impl<'a> GraphWalk<'a> {
    /// Returns the dependencies of one kind.
    fn dependency_edges(&self, from: &PackageId, kind: DependencyKind) -> Vec<Edge<'a>> {
        let (Some(package), Some(node)) = (self.packages.get(from), self.nodes.get(from)) else { return Vec::new() };
        let mut edges = Vec::new();
        for dep in &node.deps {
            let Some(to) = self.packages.get(&dep.pkg).copied() else { continue };
            let declared = package.dependencies.iter().filter(|declared| {
                let resolved = dep.dep_kinds.iter().any(|info| info.kind == kind && info.target == declared.target);
                declared.kind == kind
                    && declared.name == to.name.as_str()
                    && resolved
                    && declared.req.matches(&to.version)
            });
            edges.extend(declared.map(|declared| Edge { declared, to }));
        }
        edges
    }

    /// Returns the linked dependencies: the normal ones, and the dev-dependencies of a member if tests or examples are
    /// built. Procedural macros run in the compiler and are not linked.
    fn linked_edges(&self, from: &PackageId) -> Vec<Edge<'a>> {
        let mut edges = self.dependency_edges(from, DependencyKind::Normal);
        if self.dev && self.members.contains(from) {
            edges.extend(self.dependency_edges(from, DependencyKind::Development));
        }
        edges.retain(|edge| !edge.to.targets.iter().any(|one| one.kind.contains(&TargetKind::ProcMacro)));
        edges
    }

    fn is_on(&self, from: &PackageId, edge: &Edge<'_>) -> bool {
        !edge.declared.optional || self.on.get(from).is_some_and(|on| on.optional.contains(edge.manifest_key()))
    }

    /// Enables the features that these packages need, until no further one is added.
    fn turn_on(&mut self, seeds: &[&'a Package], call: &Call) {
        for seed in seeds {
            let features = call.features.enabled_features(&seed.name, &seed.features);
            self.on.entry(&seed.id).or_default().features.extend(features);
        }
        loop {
            let mut next = self.on.clone();
            for (id, on) in &self.on {
                let package = self.packages[id];
                let edges = self.linked_edges(id);
                let mut mine = on.clone();
                let mut theirs: Vec<(&'a PackageId, String)> = Vec::new();
                for value in on.features.iter().filter_map(|feature| package.features.get(feature)).flatten() {
                    if let Some(key) = value.strip_prefix("dep:") {
                        mine.optional.insert(key.to_owned());
                    } else if let Some((key, feature)) = value.split_once('/') {
                        let weak = key.ends_with('?');
                        let key = key.trim_end_matches('?');
                        if !weak {
                            mine.optional.insert(key.to_owned());
                            // If no feature uses `dep:`, the dependency is a feature too.
                            if package.features.contains_key(key) {
                                mine.features.insert(key.to_owned());
                            }
                        }
                        let named = edges.iter().filter(|edge| edge.manifest_key() == key);
                        for edge in named.filter(|edge| !weak || self.is_on(id, edge)) {
                            theirs.push((&edge.to.id, feature.to_owned()));
                        }
                    } else {
                        mine.features.insert(value.clone());
                    }
                }
                next.insert(id, merge_conditions(next.get(id), mine));
                for edge in edges.iter().filter(|edge| self.is_on(id, edge)) {
                    let there = next.entry(&edge.to.id).or_default();
                    there.features.extend(edge.declared.features.iter().cloned());
                    if edge.declared.uses_default_features && edge.to.features.contains_key("default") {
                        there.features.insert("default".to_owned());
                    }
                }
                for (there, feature) in theirs {
                    if next.contains_key(there) {
                        next.entry(there).or_default().features.insert(feature);
                    }
                }
            }
            if next == self.on {
                return;
            }
            self.on = next;
        }
    }

    /// Returns the crates with CUDA that this package depends on, each with its shortest path.
    fn crates_from(&self, root: &'a Package, manifests: &[CargoManifest]) -> Vec<Crate> {
        let mut found = Vec::new();
        let mut seen: BTreeSet<&PackageId> = BTreeSet::from([&root.id]);
        let mut open: VecDeque<(&Package, Vec<String>)> = VecDeque::from([(root, vec![root.name.to_string()])]);
        while let Some((package, path)) = open.pop_front() {
            let on = self.on.get(&package.id).cloned().unwrap_or_default();
            if Crate::is_relevant(&package.name, package.links.as_deref()) {
                found.push(crate_from_package(package, on.features, path.clone(), false, manifests));
            } else if let Some(evidence) = package_evidence(package, &on.features).filter(|_| package.id != root.id) {
                let found_crate = crate_from_package(package, on.features, path.clone(), false, manifests);
                found.push(Crate { assumed: Some(evidence), ..found_crate });
            }
            for edge in self.linked_edges(&package.id).iter().filter(|edge| self.is_on(&package.id, edge)) {
                if seen.insert(&edge.to.id) {
                    open.push_back((edge.to, extend_path(&path, edge.to)));
                }
            }
            // Crates that the build script of this package uses: they are not linked, but they compile or search for
            // it.
            for edge in self.dependency_edges(&package.id, DependencyKind::Build) {
                let runs = edge.to.name != package.name && self.is_on(&package.id, &edge);
                let row = find_row(&edge.to.name, &edge.to.version.to_string());
                let is_named = is_cuda_name(&edge.to.name) && row.is_none();
                let is_relevant = Crate::is_relevant(&edge.to.name, edge.to.links.as_deref());
                let assumed = (is_named && !is_relevant).then(|| "its name".to_owned());
                if runs && (assumed.is_some() || row.is_some_and(|row| row.works_for(&package.name))) {
                    let path = extend_path(&path, edge.to);
                    let found_crate = crate_from_package(edge.to, BTreeSet::new(), path, true, manifests);
                    found.push(Crate { assumed, ..found_crate });
                }
            }
        }
        found.sort_by(|a, b| (&a.name, &a.version, &a.path).cmp(&(&b.name, &b.version, &b.path)));
        found
    }
}

/// Returns the reason to assume that a package uses CUDA.
fn package_evidence(package: &Package, features: &BTreeSet<String>) -> Option<String> {
    let script = package.targets.iter().find(|target| target.kind.contains(&TargetKind::CustomBuild));
    let script = script.and_then(|target| files::read_text(target.src_path.as_std_path()).ok());
    let evidence = cuda_evidence(&package.name, script.as_deref(), features, package.features.keys());
    if evidence.is_some() || !enables_cuda(features) {
        return evidence;
    }
    let library = package.targets.iter().find(|target| target.is_lib())?;
    let mut sources = Vec::new();
    read_sources(library.src_path.as_std_path().parent()?, 0, &mut sources);
    linked_by_attributes(sources.iter().map(String::as_str))
}

/// Reads the Rust files of a directory and of those below it. Directories that are deeper than any module are omitted.
fn read_sources(dir: &Path, depth: usize, sources: &mut Vec<String>) {
    const DEEPEST: usize = 12;
    for entry in dir.read_dir().into_iter().flatten().flatten() {
        let (path, is_dir) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
        if is_dir && depth < DEEPEST {
            read_sources(&path, depth + 1, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.extend(files::read_text(&path));
        }
    }
}

fn merge_conditions(one: Option<&EnabledFeatures>, other: EnabledFeatures) -> EnabledFeatures {
    let mut both = one.cloned().unwrap_or_default();
    both.features.extend(other.features);
    both.optional.extend(other.optional);
    both
}

fn extend_path(path: &[String], package: &Package) -> Vec<String> {
    let mut path = path.to_vec();
    path.push(format!("{} {}", package.name, package.version));
    path
}

fn crate_from_package(
    package: &Package,
    features: BTreeSet<String>,
    path: Vec<String>,
    tool: bool,
    manifests: &[CargoManifest],
) -> Crate {
    // First the nearest manifest on the path, then the manifest of the workspace, from which members inherit
    // dependencies.
    let on_the_way = path.iter().rev().skip(1).filter_map(|step| {
        let name = step.split(' ').next();
        manifests.iter().find(|manifest| manifest.package_name() == name)
    });
    let shared = manifests.iter().filter(|manifest| manifest.table.get("workspace").is_some());
    let (mut named_in, mut inherited): (Vec<String>, Vec<String>) = Default::default();
    for manifest in on_the_way.chain(shared) {
        if let Some((line, inherits)) = manifest.declaration_line(&package.name, &package.version) {
            let place = format!("{}:{line}", manifest.path);
            // A declaration that only inherits from the workspace cannot be changed itself.
            let places = if inherits { &mut inherited } else { &mut named_in };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    named_in.extend(inherited);
    Crate {
        name: package.name.to_string(),
        version: package.version.to_string(),
        features,
        known: package.features.keys().cloned().collect(),
        links: package.links.clone(),
        path,
        tool,
        named_in,
        assumed: None,
    }
}

impl CargoManifest {
    fn parse_file(file: &Path, top: &Path) -> Option<Self> {
        let text = files::read_text(file).ok()?;
        let table = Toml::Table(text.parse().ok()?);
        Some(Self { path: file.strip_prefix(top).unwrap_or(file).display().to_string(), text, table })
    }

    fn package_name(&self) -> Option<&str> {
        self.table.get("package")?.get("name")?.as_str()
    }

    /// Returns the line that declares a dependency of this name and version. The flag is set if the declaration
    /// inherits everything from the workspace.
    fn declaration_line(&self, name: &str, version: &Version) -> Option<(usize, bool)> {
        let mut keys = Vec::new();
        declared_keys(&self.table, name, version, &mut keys);
        let mut within = false;
        for (number, line) in self.text.lines().enumerate() {
            let line = line.trim();
            let declared = if let Some(section) = line.strip_prefix('[') {
                within = section.contains("dependencies");
                // A table header such as `[dependencies.cudarc]`.
                section.trim_end_matches(']').rsplit('.').next()
            } else {
                line.split(['=', '.']).next()
            };
            let declared = declared.unwrap_or_default().trim().trim_matches('"');
            if let Some((_, inherits)) = keys.iter().find(|(key, _)| within && key == declared) {
                return Some((number + 1, *inherits));
            }
        }
        None
    }
}

/// Collects the keys that declare a dependency, in every table of dependencies. The flag is set if the declaration
/// inherits everything from the workspace.
fn declared_keys(table: &Toml, name: &str, version: &Version, keys: &mut Vec<(String, bool)>) {
    let Some(table) = table.as_table() else { return };
    for (key, value) in table {
        let Some(inner) = value.as_table().filter(|_| !key.starts_with("package")) else { continue };
        if !key.ends_with("dependencies") {
            declared_keys(value, name, version, keys);
            continue;
        }
        for (key, value) in inner {
            let [package, required] = ["package", "version"].map(|field| value.get(field).and_then(Toml::as_str));
            let package = package.unwrap_or(key);
            let required = value.as_str().or(required);
            let fits = required
                .and_then(|text| text.parse::<VersionReq>().ok())
                .is_none_or(|required| required.matches(version));
            if package == name && fits {
                let inherits = value.get("workspace").is_some() && value.get("features").is_none();
                keys.push((key.clone(), inherits));
            }
        }
    }
}

#[cfg(test)]
mod tests;
