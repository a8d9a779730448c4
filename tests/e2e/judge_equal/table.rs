//! The table of cases: requirements of a manifest on a machine, and the verdict and codes that the judge, `verify` and started
//! programs must report.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cargo_cudaguard::host::machine::judge::judge;
use cargo_cudaguard::host::machine::{
    HostLibrary, HostLibraryPart, LibraryState, LoaderVersion as Own, Machine as Described,
};
use cargo_cudaguard::knowledge::vendor;
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::cudnn;
use cudaguard::internal::finding::{Finding, MessageTemplate, Values};
use cudaguard::internal::manifest::{Linkage, Manifest, Opens, Requirement};
use cudaguard::internal::version::{CudaVersion, Version};
use cudaguard_tests::{Scratch, e2e, last_report, sorted_codes};

use super::driver::{named, plain, split_word};
use super::fixture::{AARCH64, Arch, NATIVE, Says, descriptor, is_short, manifest, version};

#[e2e]
fn judges_agree() {
    drive(&NATIVE);
}

#[e2e(slow)]
fn judges_agree_on_aarch64() {
    AARCH64.need();
    drive(&AARCH64);
}

/// The state of a sub-library.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Word(Version),
    OldHash(Version),
    NoWord,
    /// A file whose name contains the version, as in system packages.
    Named(Version),
    Broken,
}

impl Part {
    fn read(state: &str) -> Self {
        let (kind, release) = state.split_once(':').unwrap_or((state, ""));
        match kind {
            "word" => Self::Word(version(release)),
            "old-hash" => Self::OldHash(version(release)),
            "named" => Self::Named(version(release)),
            "no-word" => Self::NoWord,
            "broken" => Self::Broken,
            _ => panic!("no such state: {state}"),
        }
    }
}

#[derive(Clone, Debug)]
struct Loader {
    major: u32,
    /// Version in the name of the real file, such as `libcudnn.so.8.0.5`.
    name: Option<Version>,
    says: Says,
}

/// The state of `libcudnn.so`, the name without a number.
#[derive(Clone, Debug, Default)]
enum Plain {
    #[default]
    Nothing,
    /// A file that cannot be loaded.
    Broken,
    Is(Loader),
}

impl Plain {
    fn read(state: &str) -> Self {
        if state == "broken" {
            return Self::Broken;
        }
        let release = version(state);
        Self::Is(Loader { major: release.major, name: Some(release), says: Says::Number(number(release)) })
    }
}

#[derive(Clone, Debug, Default)]
struct Machine {
    loader: Option<Loader>,
    plain: Plain,
    broken_loader: bool,
    parts: Vec<(&'static str, Part)>,
    /// The CUDA release that the sub-library with the version returns.
    made_with: Option<u32>,
}

struct Case {
    name: String,
    manifests: Vec<Manifest>,
    revision: u8,
    linked: bool,
    machine: Machine,
    /// The expected codes, written by hand.
    codes: &'static str,
}

fn number(v: Version) -> u32 {
    if v.major < 9 { v.major * 1000 + v.minor * 100 + v.patch } else { v.major * 10000 + v.minor * 100 + v.patch }
}

/// A cuDNN as NVIDIA ships it: the sub-library exports the version, and the loader library returns it.
fn whole(text: &str) -> Machine {
    let v = version(text);
    let part = |part: &cudnn::CudnnPart| (part.file, if part.symbol.is_empty() { Part::NoWord } else { Part::Word(v) });
    let parts = cudnn::parts_of_major(v.major).map(part).collect();
    Machine {
        loader: Some(Loader { major: v.major, name: None, says: Says::Number(number(v)) }),
        parts,
        ..Machine::default()
    }
}

/// A single library without a version and without an answer.
fn single(major: u32) -> Machine {
    let parts =
        cudnn::parts_of_major(major).filter(|part| !part.needed).map(|part| (part.file, Part::NoWord)).collect();
    Machine { loader: Some(Loader { major, name: None, says: Says::Nothing }), parts, ..Machine::default() }
}

impl Machine {
    fn with(mut self, file: &'static str, part: Part) -> Self {
        self.parts.retain(|(name, _)| *name != file);
        self.parts.push((file, part));
        self
    }

    fn without(mut self, file: &str) -> Self {
        self.parts.retain(|(name, _)| *name != file);
        self
    }

    /// Sets the version in the name of the library.
    fn file(mut self, name: &str) -> Self {
        self.loader.as_mut().expect("a loader").name = Some(version(name));
        self
    }

    fn saying(mut self, says: Says) -> Self {
        self.loader.as_mut().expect("a loader").says = says;
        self
    }

    fn build(&self, arch: &Arch, lib: &Path) {
        fs::create_dir_all(lib).expect("a directory can be made");
        if let Some(loader) = &self.loader {
            let soname = lib.join(format!("libcudnn.so.{}", loader.major));
            if let Some(name) = loader.name {
                let real = lib.join(format!("libcudnn.so.{name}"));
                arch.loader(&real, loader.major, loader.says);
                std::os::unix::fs::symlink(real.file_name().expect("a name"), soname).expect("a link can be made");
            } else {
                arch.loader(&soname, loader.major, loader.says);
            }
        }
        match &self.plain {
            Plain::Is(loader) => {
                let real = lib.join(format!("libcudnn.so.{}", loader.name.expect("its own file's name")));
                arch.loader(&real, loader.major, loader.says);
                let name = real.file_name().expect("a name");
                std::os::unix::fs::symlink(name, lib.join("libcudnn.so")).expect("a link can be made");
            }
            Plain::Broken => fs::write(lib.join("libcudnn.so"), "not a library").expect("a file can be written"),
            Plain::Nothing => {}
        }
        if self.broken_loader {
            for major in 7..=9 {
                fs::write(lib.join(format!("libcudnn.so.{major}")), "not a library").expect("a file can be written");
            }
        }
        for (file, part) in &self.parts {
            let path = lib.join(file);
            let symbol = symbol_of(file);
            let tells = cudnn::needed_parts(9).any(|needed| needed.file == *file);
            match (part, self.made_with.filter(|_| tells)) {
                (Part::Word(v), Some(cuda)) => arch.part_made_with(&path, symbol, *v, cuda),
                (part, _) => Self::build_part(arch, &path, symbol, part),
            }
        }
    }

    fn build_part(arch: &Arch, path: &Path, symbol: &str, part: &Part) {
        match part {
            Part::Word(v) => arch.part(path, symbol, Some(*v), "-Wl,--hash-style=gnu"),
            Part::OldHash(v) => arch.part(path, symbol, Some(*v), "-Wl,--hash-style=sysv"),
            Part::NoWord => arch.part(path, symbol, None, "-Wl,--hash-style=gnu"),
            Part::Named(v) => {
                let name = path.file_name().expect("a name").to_string_lossy();
                let stem = name.split_once(".so").expect("a library").0;
                let real = path.with_file_name(format!("{stem}.so.{v}"));
                arch.part(&real, symbol, None, "-Wl,--hash-style=gnu");
                std::os::unix::fs::symlink(real.file_name().expect("a name"), path).expect("a link can be made");
            }
            Part::Broken => fs::write(path, "not a library").expect("a file can be written"),
        }
    }

    /// Returns the findings of the judge. The order of evidence is that of MANIFEST.md: the version symbol of a sub-library, the file
    /// name, the answer of a child.
    fn judge(&self, manifest: &Manifest, linked: bool) -> Vec<Finding> {
        let machine = Described::default();
        let host = machine.host("this machine");
        let Some(Requirement::Library { built, linkage, .. }) = manifest.requires.first() else {
            return judge(manifest, &host, LibraryState::Unknown);
        };
        if self.broken_loader {
            return judge(manifest, &host, LibraryState::Unknown);
        }
        let named = || self.loader.as_ref().filter(|loader| linked || loader.major == built.major);
        let first =
            manifest.names_of_opened(cudaguard::internal::cudnn::KEY).filter(|_| !linked).and(match &self.plain {
                Plain::Is(loader) => Some(loader),
                Plain::Nothing | Plain::Broken => None,
            });
        let reached = first.or_else(named);
        let Some(loader) = reached.filter(|_| linked || *linkage == Linkage::Dlopened) else {
            let unknown = *linkage != Linkage::Dlopened;
            return judge(manifest, &host, if unknown { LibraryState::Unknown } else { LibraryState::Absent });
        };
        let mut parts = Vec::new();
        let mut manifest = manifest.clone();
        manifest.requires.retain(|requirement| {
            let Requirement::Part { file, needed, .. } = requirement else { return true };
            if !file.ends_with(&format!(".so.{}", loader.major)) {
                return false;
            }
            let by_minor =
                loader.name.map(|v| file.replace(&format!(".so.{}", v.major), &format!(".so.{}.{}", v.major, v.minor)));
            let mut all = self.parts.iter();
            let named = all.clone().find(|(name, _)| Some(*name) == by_minor.as_deref());
            let part = named.or_else(|| all.find(|(name, _)| name == file)).map(|(_, part)| part);
            let version = match part {
                Some(Part::Word(v) | Part::Named(v)) => Some(*v),
                _ => None,
            };
            parts.extend(part.map(|_| HostLibraryPart { file: file.clone(), version, path: None }));
            // A loader library that answers without the sub-library does not need it. If it aborts, this is unknown.
            part.is_some() || !needed || loader.says == Says::Aborts
        });
        let word = parts.iter().find_map(|part| part.version);
        let answer = match loader.says {
            Says::Number(number) if number >= 1000 => vendor::version_of_answer(&cudnn::GETTER, number.into()),
            _ => None,
        };
        let library = HostLibrary {
            soname: Some(format!("libcudnn.so.{}", loader.major)),
            version: word.or(loader.name).or(answer),
            parts: Some(parts),
            loader: loader.name.map(Own::Version).unwrap_or_default(),
            cuda: self.made_with.map(CudaVersion::from_int),
            ..HostLibrary::default()
        };
        judge(&manifest, &host, LibraryState::Found(&library))
    }
}

fn symbol_of(file: &str) -> &'static str {
    match file {
        _ if file.starts_with("libcudnn_graph.so.9") => "cudnn_graph_version",
        _ => "cudnn_ops_infer_version",
    }
}

fn by(linkage: Linkage, built: &str) -> Manifest {
    manifest("demo", version(built), linkage)
}

fn change(mut manifest: Manifest, f: impl FnOnce(&mut bool, &mut bool)) -> Manifest {
    if let Some(Requirement::Library { patch_refuse, required, .. }) = manifest.requires.first_mut() {
        f(patch_refuse, required);
    }
    manifest
}

fn strict(manifest: Manifest) -> Manifest {
    change(manifest, |patch_refuse, _| *patch_refuse = true)
}

fn required(manifest: Manifest) -> Manifest {
    change(manifest, |_, required| *required = true)
}

/// Adds the names that a crate in the program tries, as cudarc does.
fn trying(mut manifest: Manifest) -> Manifest {
    let endings = [".so", ".so.8", ".so.7"].map(str::to_owned).to_vec();
    manifest.opens.push(Opens { by: "cudarc 0.19.10".to_owned(), libraries: vec!["cudnn".to_owned()], endings });
    manifest
}

/// The table of cases; its head lists the words.
const CASES: &str = include_str!("table.txt");

fn table() -> Vec<Case> {
    let rows = CASES.lines().filter(|line| !line.starts_with('#'));
    rows.map(Case::read).collect()
}

impl Case {
    fn read(line: &'static str) -> Self {
        let columns: Vec<&str> = line.split(" | ").collect();
        let [name, manifests, machine, codes] = columns[..] else { panic!("four columns, not {line}") };
        let words = || manifests.split_whitespace().map(split_word);
        let revision = words().find(|(what, _)| *what == "revision").map_or("1", |(_, value)| value);
        Self {
            name: name.to_owned(),
            manifests: manifests.split(" + ").map(read_manifest).collect(),
            revision: revision.parse().expect("a revision"),
            linked: words().any(|(what, _)| what == "linked" || what == "loaded"),
            machine: read_machine(machine),
            codes: if codes == "-" { "" } else { codes },
        }
    }
}

/// Parses a manifest: its linkage and version, and what is added.
fn read_manifest(words: &str) -> Manifest {
    let mut words = words.split(' ').map(split_word);
    let (linkage, built) = words.next().expect("a linkage");
    let manifest = match linkage {
        "linked" => by(Linkage::Linked, built),
        "dlopened" => by(Linkage::Dlopened, built),
        "static" => by(Linkage::Static, built),
        "unknown" => by(Linkage::Unknown, built),
        "plain" => plain(),
        _ => panic!("no such linkage: {linkage}"),
    };
    words.fold(manifest, |manifest, (what, value)| match what {
        "name" => named(manifest, value),
        "strict" => strict(manifest),
        "required" => required(manifest),
        "trying" => trying(manifest),
        "toolkit" => Manifest { toolkit: Some(version(value)), ..manifest },
        "loaded" | "revision" => manifest,
        _ => panic!("no such word: {what}"),
    })
}

/// Parses a cuDNN: its libraries, and what is different.
fn read_machine(words: &'static str) -> Machine {
    let mut words = words.split(' ').map(split_word);
    let (libraries, value) = words.next().expect("libraries");
    let mut machine = match libraries {
        "none" => Machine::default(),
        "whole" => whole(value),
        "single" => single(value.parse().expect("a major")),
        _ => panic!("no such libraries: {libraries}"),
    };
    for (what, value) in words {
        machine = match what {
            "file" => machine.file(value),
            "says" => machine.saying(Says::Number(value.parse().expect("a number"))),
            "aborts" => machine.saying(Says::Aborts),
            "hangs" => machine.saying(Says::Hangs),
            "mute" => machine.saying(Says::Nothing),
            "made-with" => Machine { made_with: Some(value.parse().expect("a number")), ..machine },
            "broken-loader" => Machine { broken_loader: true, ..machine },
            "libcudnn.so" => Machine { plain: Plain::read(value), ..machine },
            "without" => machine.without(value),
            file => machine.with(file, Part::read(value)),
        };
    }
    machine
}

fn judged(case: &Case) -> (Vec<String>, &'static str) {
    let mut findings = Vec::new();
    for manifest in &case.manifests {
        findings.extend(case.machine.judge(manifest, case.linked));
        if case.revision > 1 {
            findings
                .push(MessageTemplate::NoteNewer.to_finding(&Values::default().with("component", &manifest.component)));
        }
    }
    let mut codes: Vec<_> = findings.iter().map(|finding| format!("{} {}", finding.code, finding.severity)).collect();
    codes.sort();
    let verdict = Verdict::from_findings(&findings).name();
    (codes, verdict)
}

fn by_the_shim(arch: &Arch, case: &Case, dir: &Path) -> (Vec<String>, String, Option<i32>, String) {
    let lib = dir.join("lib");
    case.machine.build(arch, &lib);
    let descriptors = case.manifests.iter().map(|manifest| {
        let mut bytes = descriptor(manifest);
        bytes[8] = case.revision;
        bytes
    });
    let program = dir.join("program");
    let major = case.machine.loader.as_ref().filter(|_| case.linked).map(|loader| loader.major);
    arch.program(&program, &descriptors.collect::<Vec<_>>(), major);
    let report = dir.join("report.json");
    let outcome = arch.call(&program).env("LD_LIBRARY_PATH", &lib).env("CUDAGUARD_REPORT", &report);
    // A child that does not hang but is late runs on a busy machine.
    let hangs = case.machine.loader.as_ref().is_some_and(|loader| loader.says == Says::Hangs);
    let outcome = outcome.env("CUDAGUARD_TIMEOUT", if hangs { "1" } else { "300" }).run();
    let report = last_report(&report);
    (sorted_codes(&report), report["verdict"].as_str().expect("verdict").to_owned(), outcome.status(), outcome.stderr)
}

fn drive(arch: &Arch) {
    let native = std::ptr::eq(arch, &raw const NATIVE);
    let mut cases = table();
    if !native {
        // An emulator starts these programs. The judge is the same code, so an eighth covers what depends on the processor.
        cases = cases.into_iter().step_by(8).collect();
    }
    let mut differences = String::new();
    for case in &cases {
        let (expected, verdict) = judged(case);
        let scratch = Scratch::new("judge-equal-case");
        let (codes, shim_verdict, status, stderr) = by_the_shim(arch, case, scratch.path());
        if (&codes, &*shim_verdict) != (&expected, verdict) {
            let _ = writeln!(
                differences,
                "{}: the judge returns {verdict} {expected:?}, the shim {shim_verdict} {codes:?}\n{stderr}",
                case.name
            );
        }
        let refused = verdict == "refused";
        if status != Some(if refused { 78 } else { 0 }) || stderr.is_empty() == refused || !is_short(&stderr) {
            let _ = writeln!(differences, "{}: status {status:?}, on stderr:\n{stderr}", case.name);
        }
    }
    assert!(differences.is_empty(), "of {} cases:\n{differences}", cases.len());
}

#[e2e]
fn judge_returns_expected_codes() {
    for case in table() {
        assert_eq!(judged(&case).0.join(", "), case.codes, "{}", case.name);
    }
}

#[e2e]
fn host_from_manifest_passes() {
    for built in ["7.6.5", "8.1.0", "8.9.7", "9.0.0", "9.15.1", "10.2.0"] {
        for linkage in [Linkage::Linked, Linkage::Dlopened, Linkage::Static] {
            for manifest in [by(linkage, built), strict(required(by(linkage, built)))] {
                assert_eq!(whole(built).judge(&manifest, linkage == Linkage::Linked), [], "{built} {linkage:?}");
            }
        }
    }
}
