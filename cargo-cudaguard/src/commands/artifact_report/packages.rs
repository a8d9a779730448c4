//! Metadata of packages and images, and checks of the metadata against the contents.

mod conflicts;
mod installed;
mod marker;
mod package_version;
mod requirement;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::binary::file::{Binary, TargetOs};
use crate::host::machine::Components;
use crate::knowledge::vendor::{CUDART, CUDNN, Library, is_libcuda, major_of, plain_name};
use cudaguard::internal::finding::{Finding, MessageTemplate, Severity, Values};
use cudaguard::internal::manifest::Requirement;
use cudaguard::internal::version::{CudaVersion, Version};
use serde::Serialize;
use serde_json::Value;

use crate::cli::counts::join_some;
pub(super) use conflicts::{Unfulfilled, overwritten_files, unfulfilled_requirements};
pub(crate) use installed::check_packages;
use marker::MarkerPlatform;
use package_version::{cuda_in, cuda_of_build, cuda_of_tag};
use requirement::{
    Promise, bundled_libraries, driver_of_conda, guarded_version, is_nvidia_package, is_of_extra, leading_version,
    name_of, normalize_name,
};

/// The metadata of a package or an image: METADATA of a wheel, the index of a conda package, or the variables of an
/// image.
#[derive(Default)]
pub(super) struct ArtifactPackage {
    kind: PackageKind,
    /// Name of the package.
    name: String,
    /// Version of the package, including the part after a `+`.
    version: String,
    /// The requirements of NVIDIA packages, unchanged.
    pub(super) requires: Vec<String>,
    /// The requirements of other packages, unchanged.
    others: Vec<String>,
    /// Requirements that it adds to packages that link to it (conda's `run_exports`), unchanged.
    exports: Vec<String>,
    /// The CUDA version in its version, its build string or a variable, with a description of the source.
    tag: Option<(String, CudaVersion)>,
    /// The prefix of the names of its members.
    top: String,
    /// The members that its metadata lists; empty if it lists none.
    files: BTreeSet<String>,
    /// The SHA-256 in hexadecimal of libraries and programs that its metadata lists.
    digests: BTreeMap<String, String>,
    /// The release of cuDNN that is in place of that of this package.
    replaced_by: Option<Version>,
    /// The oldest CUDA version of the drivers of the machines on which it is installed or started, with the requirement.
    driver: Option<(String, CudaVersion)>,
    /// The platform on which it is installed.
    platform: MarkerPlatform,
}

/// The name and version of a package.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PackageId {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The prefix of the names of its files.
    #[serde(skip)]
    pub(crate) directory: String,
}

/// A package in a bill of materials.
pub(crate) struct BilledPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `pkg:pypi/torch@2.9.1`
    pub(crate) purl: String,
    pub(crate) requires: Vec<BilledRequirement>,
}

/// A package of NVIDIA that another one requires.
pub(crate) struct BilledRequirement {
    pub(crate) name: String,
    /// The only release that is accepted, if it is one.
    pub(crate) version: Option<String>,
    /// The accepted releases, as written.
    pub(crate) range: String,
    /// Its package URL, with the version if it is one.
    pub(crate) purl: String,
    /// Only an extra requires it.
    pub(crate) optional: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PackageKind {
    #[default]
    Wheel,
    Conda,
    Image,
}

/// The variable of an image with the CUDA version of its libraries.
const CUDA_VERSION: &str = "CUDA_VERSION=";
/// The variable of an image with directories that the dynamic linker searches.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH=";
/// The variable of an image with the machines that can start it.
const REQUIRE_CUDA: &str = "NVIDIA_REQUIRE_CUDA=";

/// Parses the packages that these texts describe; each text has the name of its member. Texts in another format are
/// ignored.
pub(super) fn all_of(texts: &[(String, String)]) -> Vec<ArtifactPackage> {
    let mut packages: Vec<ArtifactPackage> = Vec::new();
    let read_sibling = |dir: &str, name: &str| {
        let wanted = format!("{dir}{name}");
        texts.iter().find(|(other, _)| *other == wanted).map(|(_, text)| text.as_str())
    };
    for (member, text) in texts {
        let (dir, name) = member.split_at(member.rfind(['/', '!']).map_or(0, |at| at + 1));
        let top = dir.trim_end_matches('/');
        let top = &top[..top.rfind(['/', '!']).map_or(0, |at| at + 1)];
        packages.extend(match name {
            "METADATA" => Some(ArtifactPackage::from_wheel(top, text, read_sibling(dir, "RECORD").unwrap_or_default())),
            "index.json" => ArtifactPackage::from_conda(top, text, read_sibling(dir, "run_exports.json")),
            "RECORD" | "run_exports.json" => None,
            _ => ArtifactPackage::from_conda(top, text, None),
        });
    }
    packages.sort_by_key(|package| (package.top.clone(), package.display_title()));
    packages
}

/// Returns the directories in which the dynamic linker of an image also searches, from its configuration.
pub(super) fn library_path_of_image(config: &str) -> Option<String> {
    let config: Value = serde_json::from_str(config).ok()?;
    let mut variables = config["config"]["Env"].as_array()?.iter().filter_map(Value::as_str);
    variables.find_map(|text| text.strip_prefix(LIBRARY_PATH)).map(str::to_owned)
}

impl ArtifactPackage {
    /// Returns the version of a library of the family that this package is named after, and the name of the package: NVIDIA's
    /// `nvidia-cublas-cu12` of pip, or `libcublas` of conda.
    pub(super) fn library_version(&self, key: &str) -> Option<(String, Version)> {
        let name = normalize_name(&self.name);
        let stem = name.strip_prefix("nvidia-").or_else(|| name.strip_prefix("lib"))?;
        let is_major =
            |rest: &str| rest.is_empty() || rest.strip_prefix("-cu").is_some_and(|major| major.parse::<u32>().is_ok());
        let is_it = stem.strip_prefix(&*key.to_ascii_lowercase()).is_some_and(is_major);
        Some((format!("package {}", self.name), self.version.parse().ok().filter(|_| is_it)?))
    }

    /// Compares the release of cuDNN's package with that of its files. `release_of` reads the release of a member.
    pub(super) fn find_replaced_cudnn(&mut self, release_of: impl Fn(&str) -> Option<Version>) {
        let is_cudnn = self.name == CUDNN.key || self.library_version(CUDNN.key).is_some();
        let mut files = self.files.iter().filter(|file| file.contains("libcudnn") && is_cudnn);
        let own = leading_version(&self.version);
        self.replaced_by = files.find_map(|file| release_of(file)).filter(|found| own != Some(*found));
    }

    /// Returns the version of the files in its place.
    fn version_in_place(&self) -> String {
        self.replaced_by.map_or_else(|| self.version.clone(), |release| release.to_string())
    }

    fn from_wheel(top: &str, metadata: &str, record: &str) -> Self {
        // The text after the first empty line is a free-form description.
        let lines = || metadata.lines().take_while(|line| !line.is_empty());
        let all = |key: &'static str| lines().filter_map(move |line| Some(line.strip_prefix(key)?.trim().to_owned()));
        let first = |key| all(key).next().unwrap_or_default();
        let version = first("Version:");
        let tag = version.split_once('+').and_then(|(_, local)| cuda_of_tag(local));
        let tag = tag.map(|(tag, cuda)| (format!("the version contains {tag}"), cuda));
        let path = |line: &str| format!("{top}{}", line.split(',').next().unwrap_or_default().trim_matches('"'));
        let (requires, others) = all("Requires-Dist:").partition(|text| is_nvidia_package(text));
        Self {
            kind: PackageKind::Wheel,
            name: first("Name:"),
            version,
            requires,
            others,
            tag,
            top: top.to_owned(),
            files: record.lines().map(path).collect(),
            digests: conflicts::digests_of_record(record)
                .map(|(file, digest)| (format!("{top}{file}"), digest))
                .collect(),
            platform: MarkerPlatform::new(None, "", top),
            ..Self::default()
        }
    }

    /// Parses `info/index.json`, or `conda-meta/NAME.json` of an installed package.
    fn from_conda(top: &str, index: &str, exports: Option<&str>) -> Option<Self> {
        let index: Value = serde_json::from_str(index).ok()?;
        let text = |key: &str| Some(index[key].as_str()?.to_owned());
        let list = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|one| Some(one.as_str()?.to_owned())).collect()
        };
        let named = |text: &String| bundled_libraries(PackageKind::Conda, name_of(text)).is_some();
        let exports = exports.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
        // A plain list contains the requirements of packages that link to this one.
        let exported = list(&exports).into_iter().chain(["weak", "strong"].iter().flat_map(|key| list(&exports[*key])));
        let build = text("build").unwrap_or_default();
        let tag = cuda_of_build(&build).map(|cuda| (format!("the build string is {build}"), cuda));
        let _ = index["depends"].as_array()?;
        let depends = list(&index["depends"]);
        let (requires, others) = depends.iter().cloned().partition(named);
        Some(Self {
            kind: PackageKind::Conda,
            name: text("name")?,
            version: text("version")?,
            requires,
            others,
            exports: exported.filter(named).collect(),
            tag,
            top: top.to_owned(),
            files: list(&index["files"]).iter().map(|file| format!("{top}{file}")).collect(),
            digests: conflicts::digests_of_conda(&index)
                .map(|(file, digest)| (format!("{top}{file}"), digest))
                .collect(),
            driver: driver_of_conda(&[depends, list(&index["constrains"])].concat()),
            ..Self::default()
        })
    }

    /// Parses the variables of an image that concern CUDA.
    pub(super) fn from_image(config: &str) -> Option<Self> {
        let config: Value = serde_json::from_str(config).ok()?;
        let variables = config["config"]["Env"].as_array()?.iter().filter_map(Value::as_str);
        let guarded = guarded_version();
        let relevant = |text: &&str| [CUDA_VERSION, REQUIRE_CUDA, &guarded].iter().any(|key| text.starts_with(key));
        let requires: Vec<String> = variables.filter(relevant).map(str::to_owned).collect();
        let cuda =
            |text: &&String| Some((format!("the image sets {text}"), cuda_in(text.strip_prefix(CUDA_VERSION)?)?));
        let tag = requires.iter().find_map(|text| cuda(&text));
        let driver = requires.iter().find_map(|text| driver_of_image(text.strip_prefix(REQUIRE_CUDA)?));
        (!requires.is_empty()).then(|| Self {
            kind: PackageKind::Image,
            name: "of the image".to_owned(),
            requires,
            tag,
            driver,
            ..Self::default()
        })
    }

    /// Returns a title such as `package torch 2.9.1+cu128`.
    pub(super) fn display_title(&self) -> String {
        match self.kind {
            PackageKind::Image => "variables of the image".to_owned(),
            _ => format!("package {} {}", self.name, self.version),
        }
    }

    /// Returns the name and the version, unchanged.
    pub(super) fn name_and_version(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_owned()
    }

    /// Returns true if its members belong together, so that one may use the code of another.
    pub(super) fn is_one(&self) -> bool {
        self.kind != PackageKind::Image
    }

    pub(super) fn is_of_conda(&self) -> bool {
        self.kind == PackageKind::Conda
    }

    /// Returns true for the file of a conda package. Those that are installed list their members.
    pub(super) fn is_conda_file(&self) -> bool {
        self.is_of_conda() && self.files.is_empty()
    }

    /// Returns the members that its metadata lists and that are below its directory. Names with `\` are not those of members.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files
            .iter()
            .map(String::as_str)
            .filter(|file| !file.contains('\\') && !file.split('/').any(|part| part == ".."))
    }

    /// Returns true if the member belongs to this package.
    pub(super) fn owns_member(&self, member: &str) -> bool {
        if self.files.is_empty() { member.starts_with(&self.top) } else { self.files.contains(member) }
    }

    /// Returns the prefix of the names of its members.
    pub(super) fn directory(&self) -> &str {
        &self.top
    }

    /// Returns true if the metadata lists the member, or if the member is in the archive of this package.
    pub(super) fn lists_member(&self, member: &str) -> bool {
        if self.files.is_empty() {
            self.is_one() && self.top.ends_with('!') && member.starts_with(&self.top)
        } else {
            self.files.contains(member)
        }
    }

    pub(super) fn id(&self) -> PackageId {
        PackageId { name: self.name.clone(), version: self.version.clone(), directory: self.top.clone() }
    }

    /// Returns true if an index or an option names this package so.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.is_one() && normalize_name(&self.name) == normalize_name(name)
    }

    /// Returns the oldest CUDA major of the cudart that is installed with the package; `None` if there is none.
    pub(super) fn required_cudart(&self) -> Option<u32> {
        self.promises().filter_map(|promise| promise.cudart_major()).min()
    }

    fn promises(&self) -> impl Iterator<Item = Promise<'_>> {
        let all = self.requires.iter().flat_map(|text| Promise::all_of(self.kind, text));
        all.filter(|one| one.applies_on(self.platform) != Some(false))
    }

    /// Sets the platform on which the package is installed.
    pub(super) fn set_platform(&mut self, os: Option<TargetOs>, processor: &str, dir: &Path) {
        self.platform = MarkerPlatform::new(os, processor, &format!("{}/{}", dir.display(), self.top));
    }

    /// Returns the text of the requirement that installs the library with this soname together with the package.
    pub(super) fn requirement_for(&self, soname: &str, oldest: Option<Version>) -> Option<&str> {
        let fits = |one: &Promise<'_>| {
            one.provides(soname)
                && one.lets_in(soname)
                && (oldest.is_none() || one.least.is_some() && oldest <= one.least)
        };
        self.promises()
            .find(|one| self.kind != PackageKind::Image && !is_of_extra(one.text) && fits(one))
            .map(|one| one.text)
    }

    /// Returns the text of a requirement for a library with this name, also of an extra.
    pub(super) fn any_requirement_for(&self, name: &str) -> Option<&str> {
        self.promises().find(|one| self.kind != PackageKind::Image && one.provides(name)).map(|one| one.text)
    }

    fn names_of_others(&self) -> Vec<String> {
        self.others.iter().map(|text| normalize_name(name_of(text))).collect()
    }

    /// Returns the name of a required package, not of NVIDIA, that a library is named after: `torch` for `libtorch_cuda.so`.
    pub(super) fn other_supplier(&self, soname: &str) -> Option<String> {
        let stem = normalize_name(soname.strip_prefix("lib").unwrap_or(soname));
        // PyTorch's core library has the name of its project.
        let of_torch = stem.starts_with("c10");
        let is_it = |name: &&String| stem.starts_with(name.as_str()) || of_torch && *name == "torch";
        let plain = |name: &&String| stem.starts_with(name.strip_prefix("lib").unwrap_or(name));
        let names = self.names_of_others();
        names.iter().find(is_it).or_else(|| names.iter().find(plain)).cloned()
    }

    /// The package as a bill of materials names it. `None` for an image.
    pub(super) fn to_billed(&self) -> Option<BilledPackage> {
        let kind = match self.kind {
            PackageKind::Wheel => "pypi",
            PackageKind::Conda => "conda",
            PackageKind::Image => return None,
        };
        let purl = |name: &str, version: Option<&str>| {
            let name = if self.kind == PackageKind::Wheel { normalize_name(name) } else { name.to_lowercase() };
            let version = version.map(|version| format!("@{}", escape_purl(version))).unwrap_or_default();
            format!("pkg:{kind}/{name}{version}")
        };
        let requires = self.requires.iter().map(|text| {
            let (name, range) = self.split_requirement(text);
            let exact = range.strip_prefix("==").filter(|rest| !rest.contains(['*', ',', '=', '|']));
            BilledRequirement {
                version: exact.map(str::to_owned),
                purl: purl(&name, exact),
                optional: is_of_extra(text),
                name,
                range,
            }
        });
        Some(BilledPackage {
            name: self.name.clone(),
            version: self.version.clone(),
            purl: purl(&self.name, Some(&self.version)),
            requires: requires.collect(),
        })
    }

    /// Returns all requirements of the package as name and range. For an image, these are names and values of variables.
    pub(super) fn split_requirements(&self) -> impl Iterator<Item = (String, String)> {
        self.requires.iter().chain(&self.others).map(|text| self.split_requirement(text))
    }

    fn split_requirement(&self, text: &str) -> (String, String) {
        let (name, range) = text.split_at(name_of(text).len());
        let range = range.split(';').next().unwrap_or_default().replace(['(', ')', ' '], "");
        let range = if self.kind == PackageKind::Image { range.replacen('=', "", 1) } else { range };
        let name = if self.kind == PackageKind::Image { name.to_owned() } else { normalize_name(name) };
        (name, if range.is_empty() { "any".to_owned() } else { range })
    }

    /// Returns the requirements of the package for the library with this key, each with the oldest release that it accepts. Extras
    /// do not count.
    pub(super) fn oldest_of(&self, key: &str) -> impl Iterator<Item = (&str, Version)> {
        let of_library = move |one: &Promise<'_>| one.stems == [key] && !one.is_of_extra();
        self.promises().filter(of_library).filter_map(|one| Some((one.text, one.least?)))
    }

    fn promise_text(&self, text: &str) -> String {
        let who = if self.kind == PackageKind::Image { "the image sets" } else { "the package requires" };
        format!("{who} {text}")
    }

    /// Reports libraries that members need from outside of the package, if the package requires another release of
    /// them. A library is fine if one of several requirements provides it, because they may have different markers.
    pub(super) fn check_wants(&self, members: &[(&str, NeededVersions)]) -> Vec<Finding> {
        let promises: Vec<Promise<'_>> = self.promises().collect();
        let wanted = || members.iter().flat_map(|(_, wants)| wants.keys());
        let mut findings = Vec::new();
        for (name, wants) in members {
            let values = Values::default().with("path", *name);
            for (soname, oldest) in wants {
                let mine: Vec<&Promise<'_>> = promises.iter().filter(|one| one.provides(soname)).collect();
                let strictest = mine.iter().filter(|one| one.lets_in(soname)).max_by_key(|one| one.least);
                let values = |one: &Promise<'_>| {
                    values.clone().with("value", self.promise_text(one.text)).with("library", soname.as_str())
                };
                // The package contains a file for each of several major versions, and the requirement is for another
                // one.
                let for_another = |one: &Promise<'_>| wanted().any(|other| other != soname && one.is_first(other));
                match (strictest, oldest) {
                    (Some(one), Some((oldest, symbol))) if one.least.is_some_and(|least| least < *oldest) => {
                        let values = values(one).with("min", *oldest).with("symbol", symbol.as_str());
                        findings.push(MessageTemplate::PackageUnfitPromise.to_finding(&values));
                    }
                    (Some(one), None) => {
                        // An older major version has no library with this soname.
                        let first = major_of(soname).map(|major| Version::new(major, 0, 0));
                        let older = first.filter(|first| one.least.is_some_and(|least| least < *first));
                        if let Some(first) = older.filter(|_| !for_another(one)) {
                            let values = values(one).with("min", first).with("symbol", "");
                            findings.push(MessageTemplate::PackageUnfitPromise.to_finding(&values));
                        }
                    }
                    (Some(_), Some(_)) => {}
                    (None, _)
                        if mine.iter().any(|one| wanted().any(|other| one.provides(other) && one.lets_in(other))) => {}
                    (None, _) => {
                        findings.extend(
                            mine.first().map(|one| MessageTemplate::PackageUnfitPromiseMajor.to_finding(&values(one))),
                        );
                    }
                }
            }
        }
        if let Some((tag, cuda)) = &self.tag {
            let of_cudart = |(name, wants): &(&str, NeededVersions)| {
                let majors = wants.keys().filter_map(|soname| CUDART.major(soname));
                majors.map(|major| (name.to_string(), major)).collect::<Vec<_>>()
            };
            let all: Vec<(String, u32)> = members.iter().flat_map(of_cudart).collect();
            if let Some((name, major)) = all.first().filter(|_| all.iter().all(|(_, major)| *major != cuda.major)) {
                let values = Values::default().with("path", name.as_str()).with("value", tag);
                findings.push(
                    MessageTemplate::PackageUnfitTag
                        .to_finding(&values.with("found_cuda", CudaVersion::new(*major, 0))),
                );
            }
        }
        findings
    }

    /// Reports requirements that the package adds to packages that link to it, but that do not match its own libraries.
    /// `members` contains names and sonames of libraries.
    pub(super) fn check_exports<'a>(&self, members: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
        let exports: Vec<Promise<'_>> = self.exports.iter().flat_map(|text| Promise::all_of(self.kind, text)).collect();
        let unfit = |(name, soname): (&'a str, &'a str)| {
            let one = exports.iter().find(|one| one.provides(soname) && !one.lets_in(soname))?;
            let description = format!("the run_exports of the package require {}", one.text);
            let values = Values::default().with("value", description).with("path", name).with("library", soname);
            Some(MessageTemplate::PackageUnfitExport.to_finding(&values))
        };
        members.filter_map(unfit).collect()
    }

    /// Reports a package or an image that machines accept on which its members do not run. `needs` contains the CUDA version that
    /// each member needs the driver to support.
    pub(super) fn check_driver_promise<'a>(
        &self,
        needs: impl Iterator<Item = (&'a str, CudaVersion)>,
    ) -> Option<Finding> {
        let (description, promised) = self.driver.as_ref()?;
        let (name, cuda) = needs.max_by_key(|(_, cuda)| *cuda).filter(|(_, cuda)| cuda > promised)?;
        let values = Values::default().with("value", description).with("path", name).with("cuda", cuda);
        let format = if self.kind == PackageKind::Image { "oci" } else { "conda" };
        let path = shlex::try_quote(name).unwrap_or(name.into());
        let values = values.with("command", format_args!("requirements --format {format} {path}"));
        Some(MessageTemplate::PackageUnfitDriver.to_finding(&values))
    }
}

/// Parses the value of the variable with the machines that can start an image. Terms are alternatives, and all factors of a term must
/// hold: the result is the lowest version that some term allows.
fn driver_of_image(value: &str) -> Option<(String, CudaVersion)> {
    let factor = |text: &str| cuda_in(text.strip_prefix("cuda>=")?);
    let promised = value.split(' ').filter_map(|term| term.split(',').find_map(factor)).min()?;
    let name = REQUIRE_CUDA.trim_end_matches('=');
    Some((format!("the image requires a driver that supports CUDA {promised} ({name})"), promised))
}

/// Characters that a package URL does not contain as they are: `2.9.1+cu128` is `2.9.1%2Bcu128`.
pub(crate) fn escape_purl(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_~".contains(&byte);
    text.bytes().fold(String::new(), |url, byte| {
        if plain(byte) { url + &char::from(byte).to_string() } else { url + &format!("%{byte:02X}") }
    })
}

/// The libraries that a member needs from outside of the package, by soname. If known, each has the oldest suitable
/// release, and the function that requires it.
pub(super) type NeededVersions = BTreeMap<String, Option<(Version, String)>>;

/// Returns the libraries that a member needs and does not find within the package.
pub(super) fn member_wants(own: &Components, needed: &[String], is_inside: impl Fn(&str) -> bool) -> NeededVersions {
    let elsewhere = |soname: &&String| !is_inside(soname);
    let mut wants: NeededVersions =
        needed.iter().filter(elsewhere).map(|soname| (plain_name(soname).into_owned(), None)).collect();
    let mut oldest = |soname: &str, version: Version, symbol: &str| {
        if let Some(known) = wants.get_mut(soname) {
            *known = known.take().max(Some((version, symbol.to_owned())));
        }
    };
    for bound in &own.bound {
        oldest(&bound.soname, bound.first, &bound.name);
    }
    for row in own.manifests.iter().flat_map(|manifest| &manifest.requires) {
        if let Requirement::Library { min, soname, .. } = row {
            oldest(soname, *min, "");
        }
    }
    wants
}

/// Reports a member that is the driver library or its stub.
pub(super) fn bundled_driver_finding(name: &str, own: &str) -> Option<Finding> {
    let values = Values::default().with("path", name);
    is_libcuda(own).then(|| MessageTemplate::PackageUnfit.to_finding(&values))
}

/// Reports directories of the build machine in the RPATH or RUNPATH of members; on most other machines they contain
/// nothing.
pub(super) fn leading_out<'a>(members: impl Iterator<Item = (&'a str, &'a Binary)>) -> Option<Finding> {
    let (mut names, mut dirs) = (Vec::new(), BTreeSet::new());
    for (name, binary) in members {
        let path = binary.runpath.as_deref().or(binary.rpath.as_deref()).unwrap_or_default();
        let outside: Vec<&str> = path.split(':').filter(|dir| dir.starts_with('/')).collect();
        if !outside.is_empty() {
            names.push(name);
        }
        dirs.extend(outside);
    }
    let dirs: Vec<&str> = dirs.into_iter().collect();
    let values = Values::default().with("path", join_some(&names)).with("folder", join_some(&dirs));
    (!names.is_empty()).then(|| MessageTemplate::PackageUnfitPath.to_finding(&values).with_severity(Severity::Info))
}

/// Reports a library that the package contains in several releases. `held` contains the library, its release and the
/// member.
pub(super) fn duplicate_libraries<'a>(
    held: impl Iterator<Item = (&'static Library, &'a str, &'a str)>,
) -> Vec<Finding> {
    let mut all: BTreeMap<&str, (&'static Library, BTreeMap<&str, &str>)> = BTreeMap::new();
    for (library, version, member) in held {
        let (_, releases) = all.entry(library.key).or_insert_with(|| (library, BTreeMap::new()));
        let _ = releases.entry(version).or_insert(member);
    }
    let several = all.into_values().filter(|(_, releases)| releases.len() > 1);
    several
        .map(|(library, releases)| {
            let relevant = releases.iter().map(|(version, member)| format!("{version} in {member}"));
            let values = Values::default().with("library", library.name);
            MessageTemplate::PackageUnfitTwice
                .to_finding(&values.with("value", relevant.collect::<Vec<_>>().join(", ")))
        })
        .collect()
}

#[cfg(test)]
mod tests;
