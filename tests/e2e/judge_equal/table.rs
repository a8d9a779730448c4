//! The table of cases: requirements of a manifest on a machine, and the verdict and codes that the judge, `verify` and started
//! programs must report.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cargo_cudaguard::host::facts::{CudnnState, Host, Inner, LoaderVersion as Own};
use cargo_cudaguard::host::judge::judge;
use cargo_cudaguard::verdict::Verdict;
use cudaguard::internal::finding::{MessageTemplate, Values};
use cudaguard::internal::manifest::{Linkage, Manifest, Opens, Requirement};
use cudaguard::internal::vendor::{self, CUDNN};
use cudaguard::internal::version::{CudaVersion, Version};
use cudaguard_tests::{Call, Scratch, Test, command, e2e, last_report, sorted_codes, test};

use super::fixture::{AARCH64, Arch, NATIVE, Says, descriptor, is_short, manifest, version};
use super::front_ends::{ReportedFinding, are_printed, sorted};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    vec![
        test("judge_returns_expected_codes", judge_returns_expected_codes),
        test("judges_agree", || drive(&NATIVE, false)),
        test("front_ends_agree", || drive(&NATIVE, true)).slow(),
        test("judges_agree_on_aarch64", || {
            AARCH64.need();
            drive(&AARCH64, false);
        })
        .slow(),
        test("host_from_manifest_passes", fits_itself),
    ]
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
    let part = |part: &vendor::Part| (part.file, if part.symbol.is_empty() { Part::NoWord } else { Part::Word(v) });
    let parts = CUDNN.parts_of_major(v.major).map(part).collect();
    Machine {
        loader: Some(Loader { major: v.major, name: None, says: Says::Number(number(v)) }),
        parts,
        ..Machine::default()
    }
}

/// A cuDNN whose loader library has the version in its name.
fn whole_named(text: &str) -> Machine {
    let mut machine = whole(text);
    machine.loader.as_mut().expect("a loader").name = Some(version(text));
    machine
}

/// A single library, with the version in its file name as in system packages, or with only the result of its function.
fn single(major: u32, name: Option<&str>, says: Says) -> Machine {
    let parts = CUDNN.parts_of_major(major).filter(|part| !part.needed).map(|part| (part.file, Part::NoWord)).collect();
    Machine { loader: Some(Loader { major, name: name.map(version), says }), parts, ..Machine::default() }
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

    fn saying(mut self, says: Says) -> Self {
        self.loader.as_mut().expect("a loader").says = says;
        self
    }

    fn made_with(self, cuda: u32) -> Self {
        Self { made_with: Some(cuda), ..self }
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
            let tells = CUDNN.needed_parts(9).any(|needed| needed.file == *file);
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

    /// Returns the facts of this machine. The order of evidence is that of MANIFEST.md: the version symbol of a sub-library, the
    /// file name, the answer of a child.
    fn host(&self, manifest: &Manifest, linked: bool) -> Host {
        let Some(Requirement::Library { built, linkage, .. }) = manifest.requires.first() else {
            return Host::default();
        };
        if self.broken_loader {
            return Host::default();
        }
        let named = || self.loader.as_ref().filter(|loader| linked || loader.major == built.major);
        let first = manifest.library_names().filter(|_| !linked).and(match &self.plain {
            Plain::Is(loader) => Some(loader),
            Plain::Nothing | Plain::Broken => None,
        });
        let reached = first.or_else(named);
        let Some(loader) = reached.filter(|_| linked || *linkage == Linkage::Dlopened) else {
            let unknown = *linkage != Linkage::Dlopened;
            return Host { library: if unknown { CudnnState::Unknown } else { CudnnState::Absent }, ..Host::default() };
        };
        let mut inner = Vec::new();
        for requirement in &manifest.requires {
            let Requirement::Part { file, needed, .. } = requirement else { continue };
            if !file.ends_with(&format!(".so.{}", loader.major)) {
                continue;
            }
            let by_minor =
                loader.name.map(|v| file.replace(&format!(".so.{}", v.major), &format!(".so.{}.{}", v.major, v.minor)));
            let mut parts = self.parts.iter();
            let named = parts.clone().find(|(name, _)| Some(*name) == by_minor.as_deref());
            let part = named.or_else(|| parts.find(|(name, _)| name == file)).map(|(_, part)| part);
            let version = match part {
                Some(Part::Word(v) | Part::Named(v)) => Some(*v),
                _ => None,
            };
            // A loader library that answers without the sub-library does not need it. If it aborts, this is unknown.
            if part.is_some() || !needed || loader.says == Says::Aborts {
                inner.push(Inner { file: file.clone(), present: part.is_some(), version, path: None });
            }
        }
        let word = inner.iter().find_map(|part| part.version);
        let answer = match loader.says {
            Says::Number(number) if number >= 1000 => {
                CUDNN.asked.as_ref().and_then(|asked| asked.version_of_answer(number.into()))
            }
            _ => None,
        };
        let version = word.or(loader.name).or(answer);
        let cudnn = CudnnState::Found {
            path: "libcudnn.so".into(),
            picked_by: None,
            major: loader.major,
            version,
            inner,
            loader: loader.name.map(Own::Version).unwrap_or_default(),
            made_with: self.made_with.map(CudaVersion::from_int),
        };
        Host { library: cudnn, ..Host::default() }
    }
}

fn symbol_of(file: &str) -> &'static str {
    match file {
        _ if file.starts_with("libcudnn_graph.so.9") => "cudnn_graph_version",
        _ => "cudnn_ops_infer_version",
    }
}

fn case(name: &str, manifest: Manifest, machine: Machine, codes: &'static str) -> Case {
    let linked = matches!(manifest.requires.first(), Some(Requirement::Library { linkage: Linkage::Linked, .. }));
    Case { name: name.to_owned(), manifests: vec![manifest], revision: 1, linked, machine, codes }
}

fn linked(built: &str) -> Manifest {
    manifest("demo", version(built), Linkage::Linked)
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

/// Returns cases with expected codes and severities, which are written by hand.
fn written() -> Vec<Case> {
    use Linkage::{Dlopened, Static, Unknown};
    const GRAPH: &str = "libcudnn_graph.so.9";
    const OPS: &str = "libcudnn_ops.so.9";
    const CNN: &str = "libcudnn_cnn.so.9";
    const ADV: &str = "libcudnn_adv.so.9";
    const ENGINES: &str = "libcudnn_engines_precompiled.so.9";
    const OPS8: &str = "libcudnn_ops_infer.so.8";
    let word = |text: &str| Part::Word(version(text));
    let mut cases = vec![
        // The most common report in forums.
        case(
            "8.1.0 finds 8.0.5, by name",
            linked("8.1.0"),
            single(8, Some("8.0.5"), Says::Number(8005)),
            "CG202 error",
        ),
        case("8.1.0 finds 8.0.5, by its answer", linked("8.1.0"), single(8, None, Says::Number(8005)), "CG202 error"),
        case("8.1.0 finds 8.0.5, by its word", linked("8.1.0"), whole("8.0.5"), "CG202 error"),
        case("8.1.0 finds 8.1.0", linked("8.1.0"), single(8, Some("8.1.0"), Says::Number(8100)), ""),
        case("8.1.0 finds 8.9.7", linked("8.1.0"), whole("8.9.7"), ""),
        // Patch releases.
        case("older patch", linked("9.15.1"), whole("9.15.0"), ""),
        case("newer patch", linked("9.15.1"), whole("9.15.7"), ""),
        case("older patch, strict", strict(linked("9.15.1")), whole("9.15.0"), "CG203 error"),
        case("same patch, strict", strict(linked("9.15.1")), whole("9.15.1"), ""),
        case("newer patch, strict", strict(linked("9.15.1")), whole("9.15.2"), ""),
        case("newer minor, strict", strict(linked("9.15.1")), whole("9.16.0"), ""),
        case("older minor, strict", strict(linked("9.15.1")), whole("9.14.9"), "CG202 error"),
        case(
            "older patch of 7, strict",
            strict(linked("7.6.5")),
            single(7, Some("7.6.4"), Says::Number(7604)),
            "CG203 error",
        ),
        // Major releases.
        case(
            "9 in the place of 8, by its name",
            linked("8.9.7"),
            single(8, Some("9.1.0"), Says::Number(90_100)),
            "CG201 error",
        ),
        case(
            "9 in the place of 8, by its answer",
            linked("8.9.7"),
            single(8, None, Says::Number(90_100)),
            "CG201 error",
        ),
        case("linked to 8, built for 9", linked("9.1.0"), whole("8.9.7"), "CG201 error"),
        case("linked to 9, built for 8", linked("8.9.7"), whole("9.1.0"), "CG201 error"),
        case("linked to a mute 7, built for 8", linked("8.9.7"), single(7, None, Says::Nothing), "CG201 error"),
        case("an unknown major", linked("10.2.0"), single(10, Some("10.3.0"), Says::Nothing), ""),
        case("that one, older", linked("10.2.0"), single(10, Some("10.1.0"), Says::Nothing), "CG202 error"),
        // cuDNN 7 is a single library.
        case(
            "the part of the minor in the name goes first",
            linked("9.15.1"),
            whole_named("9.15.1").with("libcudnn_graph.so.9.15", word("9.14.0")),
            "CG202 error, CG206 error, CG206 error",
        ),
        case("7 by name", linked("7.6.5"), single(7, Some("7.6.5"), Says::Nothing), ""),
        case("7 by its answer", linked("7.6.5"), single(7, None, Says::Number(7605)), ""),
        case("older 7 by its answer", linked("7.6.5"), single(7, None, Says::Number(7501)), "CG202 error"),
        // Sub-libraries.
        case("graph missing", linked("9.15.1"), whole("9.15.1").without(GRAPH).saying(Says::Aborts), "CG204 error"),
        case(
            "graph and ops missing",
            linked("9.15.1"),
            whole("9.15.1").without(GRAPH).without(OPS).saying(Says::Aborts),
            "CG204 error, CG204 warning",
        ),
        case("ops missing", linked("9.15.1"), whole("9.15.1").without(OPS), "CG204 warning"),
        case("cnn and adv missing", linked("9.15.1"), whole("9.15.1").without(CNN).without(ADV), "CG204 warning"),
        case("engines missing", by(Dlopened, "9.15.1"), whole("9.15.1").without(ENGINES), "CG204 warning"),
        case("train missing", linked("8.5.0"), whole("8.9.7").without("libcudnn_ops_train.so.8"), "CG204 warning"),
        case(
            "engines and ops missing, and graph",
            linked("9.15.1"),
            whole("9.15.1").without(ENGINES).without(OPS).without(GRAPH).saying(Says::Aborts),
            "CG204 error, CG204 warning",
        ),
        case(
            "engines of another minor",
            linked("9.1.0"),
            whole("9.15.1").with(ENGINES, Part::Named(version("9.10.2"))),
            "CG206 error",
        ),
        case(
            "engines of another patch",
            linked("9.1.0"),
            whole("9.15.1").with(ENGINES, Part::Named(version("9.15.0"))),
            "CG206 warning",
        ),
        case("engines of the same", linked("9.1.0"), whole("9.15.1").with(ENGINES, Part::Named(version("9.15.1"))), ""),
        case(
            "cnn of another minor",
            linked("8.5.0"),
            whole("8.9.7").with("libcudnn_cnn_infer.so.8", Part::Named(version("8.5.0"))),
            "CG206 error",
        ),
        case("ops_infer missing", linked("8.9.7"), whole("8.9.7").without(OPS8).saying(Says::Aborts), "CG204 error"),
        case(
            "ops_infer missing in a newer one",
            linked("8.1.0"),
            single(8, Some("8.9.7"), Says::Aborts),
            "CG204 error",
        ),
        case(
            "ops_infer missing in an older one",
            linked("8.9.7"),
            single(8, Some("8.1.0"), Says::Aborts),
            "CG202 error, CG204 error",
        ),
        case("graph missing, and no function needs it", linked("9.15.1"), single(9, None, Says::Number(91_501)), ""),
        case("ops of another minor", linked("9.1.0"), whole("9.10.2").with(OPS, word("9.1.0")), "CG206 error"),
        case("ops of another patch", linked("9.1.0"), whole("9.10.2").with(OPS, word("9.10.1")), "CG206 warning"),
        case(
            "an older graph after a newer loader",
            linked("9.10.2"),
            whole("9.10.2").with(GRAPH, word("9.1.0")),
            "CG202 error, CG206 error",
        ),
        case(
            "the file's word against the answer",
            linked("9.15.1"),
            whole("9.1.0").saying(Says::Number(91_501)),
            "CG202 error",
        ),
        case("a newer word against the answer", linked("9.15.1"), whole("9.28.0").saying(Says::Number(90_100)), ""),
        case(
            "the name against the word",
            linked("9.10.2"),
            Machine {
                loader: Some(Loader { major: 9, name: Some(version("9.10.2")), says: Says::Number(91_501) }),
                ..whole("9.15.1")
            },
            "CG206 error",
        ),
        case(
            "the name against the word, by a patch",
            linked("9.10.2"),
            Machine {
                loader: Some(Loader { major: 9, name: Some(version("9.15.0")), says: Says::Nothing }),
                ..whole("9.15.1")
            },
            "CG206 warning",
        ),
        case(
            "the name and the word agree",
            linked("9.10.2"),
            Machine {
                loader: Some(Loader { major: 9, name: Some(version("9.15.1")), says: Says::Nothing }),
                ..whole("9.15.1")
            },
            "",
        ),
        // cuDNN has a GNU hash table. With only the old one, the version symbol is not found, and other evidence decides.
        case(
            "the old hash table, and an answer",
            linked("8.9.7"),
            whole("8.5.0").with(OPS8, Part::OldHash(version("8.9.7"))),
            "CG202 error",
        ),
        case(
            "the old hash table, and silence",
            linked("8.9.7"),
            whole("8.9.7").with(OPS8, Part::OldHash(version("8.9.7"))).saying(Says::Nothing),
            "CG501 info",
        ),
        case("only ops tells", linked("9.15.1"), whole("9.15.1").with(GRAPH, Part::NoWord).saying(Says::Nothing), ""),
        case(
            "only ops shows the version, and is older",
            linked("9.15.1"),
            whole("9.1.0").with(GRAPH, Part::NoWord).saying(Says::Nothing),
            "CG202 error",
        ),
        // The version is unknown.
        case("mute", linked("9.15.1"), single(9, None, Says::Nothing), "CG501 info"),
        case(
            "mute, without a word",
            linked("8.9.7"),
            whole("8.9.7").with(OPS8, Part::NoWord).saying(Says::Nothing),
            "CG501 info",
        ),
        case(
            "aborts, without a word",
            linked("8.9.7"),
            whole("8.9.7").with(OPS8, Part::NoWord).saying(Says::Aborts),
            "CG501 info",
        ),
        case(
            "hangs, without a word",
            linked("8.9.7"),
            whole("8.9.7").with(OPS8, Part::NoWord).saying(Says::Hangs),
            "CG501 info",
        ),
        case(
            "a broken inner library",
            linked("8.9.7"),
            whole("8.9.7").with(OPS8, Part::Broken).saying(Says::Aborts),
            "CG501 info",
        ),
        case("a broken inner library, and an answer", linked("8.9.7"), whole("8.9.7").with(OPS8, Part::Broken), ""),
        case("an answer that is no version", linked("8.9.7"), single(8, None, Says::Number(7)), "CG501 info"),
        case("7, mute", linked("7.6.5"), single(7, None, Says::Nothing), "CG501 info"),
        // Libraries loaded at run time.
        case("dlopened, right", by(Dlopened, "9.15.1"), whole("9.15.1"), ""),
        case("dlopened, newer", by(Dlopened, "9.1.0"), whole("9.15.1"), ""),
        case("dlopened, older", by(Dlopened, "9.15.1"), whole("9.1.0"), "CG202 error"),
        case("dlopened, 8 older", by(Dlopened, "8.9.7"), whole("8.5.0"), "CG202 error"),
        case(
            "dlopened, older by its answer",
            by(Dlopened, "8.1.0"),
            single(8, None, Says::Number(8005)),
            "CG202 error",
        ),
        case(
            "dlopened, graph missing",
            by(Dlopened, "9.15.1"),
            whole("9.15.1").without(GRAPH).saying(Says::Aborts),
            "CG204 error",
        ),
        case("dlopened, absent", by(Dlopened, "9.15.1"), Machine::default(), "CG205 info"),
        case("dlopened, another major only", by(Dlopened, "9.15.1"), whole("8.9.7"), "CG205 info"),
        case("dlopened, absent but required", required(by(Dlopened, "9.15.1")), Machine::default(), "CG205 error"),
        case("dlopened, another major but required", required(by(Dlopened, "9.15.1")), whole("8.9.7"), "CG205 error"),
        case("dlopened, required and there", required(by(Dlopened, "9.15.1")), whole("9.15.1"), ""),
        case("dlopened, required and older", required(by(Dlopened, "9.15.1")), whole("9.1.0"), "CG202 error"),
        case(
            "dlopened, required, older patch",
            strict(required(by(Dlopened, "9.15.1"))),
            whole("9.15.0"),
            "CG203 error",
        ),
        case("dlopened, mute", by(Dlopened, "7.6.5"), single(7, None, Says::Nothing), "CG501 info"),
        case(
            "dlopened, a broken file",
            by(Dlopened, "9.15.1"),
            Machine { broken_loader: true, ..Machine::default() },
            "CG501 info",
        ),
        // A cuDNN linked statically, or with unknown linkage.
        case("static", by(Static, "9.15.1"), Machine::default(), ""),
        case("static, and an older one is on the machine", by(Static, "9.15.1"), whole("9.1.0"), ""),
        case("not known, not loaded", by(Unknown, "9.15.1"), whole("9.1.0"), "CG501 info"),
        case("not known, nothing there", by(Unknown, "9.15.1"), Machine::default(), "CG501 info"),
    ];
    for (name, machine, codes) in [
        ("not known, loaded, right", whole("9.15.1"), ""),
        ("not known, loaded, older", whole("9.1.0"), "CG202 error"),
        ("not known, loaded, of another major", whole("8.9.7"), "CG201 error"),
        ("not known, loaded, older patch", whole("9.15.0"), ""),
    ] {
        cases.push(Case { linked: true, ..case(name, by(Unknown, "9.15.1"), machine, codes) });
    }
    // The names that a crate tries, in its order.
    let plain = |text: &str| {
        let v = version(text);
        Plain::Is(Loader { major: v.major, name: Some(v), says: Says::Number(number(v)) })
    };
    for (name, built, plain, numbered, codes) in [
        ("the plain name goes first, right", "7.6.5", plain("7.6.5"), Some("7.5.1"), ""),
        ("the plain name goes first, older", "7.6.5", plain("7.5.1"), Some("7.6.5"), "CG202 error"),
        ("the plain name goes first, newer", "7.5.1", plain("7.6.5"), None, ""),
        ("the plain name is of another major", "7.6.5", plain("8.1.0"), Some("7.6.5"), "CG201 error"),
        ("the plain name is of an older major", "8.1.0", plain("7.6.5"), None, "CG201 error"),
        ("no plain name", "7.6.5", Plain::Nothing, Some("7.6.5"), ""),
        ("no plain name, older", "7.6.5", Plain::Nothing, Some("7.5.1"), "CG202 error"),
        ("the plain name cannot be loaded", "7.6.5", Plain::Broken, Some("7.6.5"), ""),
        ("the plain name cannot be loaded, older", "7.6.5", Plain::Broken, Some("7.5.1"), "CG202 error"),
        ("none of the names", "7.6.5", Plain::Nothing, None, "CG205 info"),
    ] {
        let numbered = numbered.map(|text| single(7, Some(text), Says::Number(number(version(text)))));
        let machine = Machine { plain, ..numbered.unwrap_or_default() };
        cases.push(case(name, trying(by(Dlopened, built)), machine.clone(), codes));
        if codes == "CG205 info" {
            cases.push(case(
                "none of the names, required",
                trying(required(by(Dlopened, built))),
                machine,
                "CG205 error",
            ));
        }
    }
    cases.push(case(
        "linked, whatever a crate would try",
        trying(linked("7.6.5")),
        Machine { plain: plain("8.1.0"), ..single(7, Some("7.6.5"), Says::Nothing) },
        "",
    ));
    // A newer note is judged by the rows that are known.
    cases.push(Case { revision: 2, ..case("a newer note, right", linked("9.15.1"), whole("9.15.1"), "CG502 info") });
    cases.push(Case {
        revision: 9,
        ..case("a newer note, older cuDNN", linked("9.15.1"), whole("9.1.0"), "CG202 error, CG502 info")
    });
    // Several components.
    let two = |a: Manifest, b: Manifest| {
        let mut b = b;
        "other".clone_into(&mut b.component.name);
        vec![a, b]
    };
    for (name, a, b, machine, codes) in [
        ("two components, both right", "9.1.0", "9.15.1", "9.15.1", ""),
        ("two components, one wrong", "9.1.0", "9.15.1", "9.10.2", "CG202 error"),
        ("two components, both wrong", "9.10.2", "9.15.1", "9.1.0", "CG202 error, CG202 error"),
        ("two components, one of another major", "8.9.7", "9.15.1", "9.15.1", "CG201 error"),
    ] {
        cases.push(Case { manifests: two(linked(a), linked(b)), ..case(name, linked(a), whole(machine), codes) });
    }
    let mut plain = linked("9.1.0");
    plain.requires.clear();
    cases.push(Case {
        manifests: two(plain.clone(), linked("9.15.1")),
        linked: true,
        ..case("one component without cuDNN", plain.clone(), whole("9.1.0"), "CG202 error")
    });
    cases.push(case("no rows", plain, Machine::default(), ""));
    cases
}

/// Returns cases whose cuDNN returns the CUDA release it was built with.
fn made_for_cuda() -> Vec<Case> {
    use Linkage::{Dlopened, Linked};
    let toolkit = |manifest: Manifest, text: &str| Manifest { toolkit: Some(version(text)), ..manifest };
    vec![
        case(
            "for CUDA 13, in a program of 12",
            toolkit(linked("9.15.1"), "12.4.1"),
            whole("9.15.1").made_with(13000),
            "CG207 warning",
        ),
        case(
            "for CUDA 12, in a program of 13",
            toolkit(by(Dlopened, "9.15.1"), "13.0.48"),
            whole("9.15.1").made_with(12090),
            "CG207 warning",
        ),
        case("for another minor", toolkit(linked("9.15.1"), "12.4.1"), whole("9.15.1").made_with(12090), ""),
        case("for CUDA 13, and the program's is unknown", by(Linked, "9.15.1"), whole("9.15.1").made_with(13000), ""),
        case(
            "for CUDA 13 of another major",
            toolkit(linked("8.9.7"), "12.4.1"),
            whole("9.15.1").made_with(13000),
            "CG201 error",
        ),
    ]
}

fn judged(case: &Case) -> (Vec<String>, &'static str) {
    let mut findings = Vec::new();
    for manifest in &case.manifests {
        findings.extend(judge(manifest, &case.machine.host(manifest, case.linked)));
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

/// Returns the differences between the report of the start and `verify`, `exec` and the API in the program.
fn check_front_ends(case: &Case, dir: &Path) -> String {
    let report = last_report(&dir.join("report.json"));
    let (verdict, reported) =
        (report["verdict"].as_str().expect("a verdict"), ReportedFinding::list(&report["findings"]));
    let program = dir.join("program").display().to_string();
    let on = |call: Call| call.env("LD_LIBRARY_PATH", dir.join("lib")).env("HOME", "/nowhere");
    let mut differences = String::new();
    let mut differ = |front_end: &str, heard: &dyn std::fmt::Debug| {
        let _ = writeln!(
            differences,
            "{}: the start reports {verdict} {reported:#?}\n  {front_end}: {heard:#?}",
            case.name
        );
    };

    let outcome = on(command::call(["verify", "--json", &program])).run();
    let answer = outcome.json();
    let mut heard = ReportedFinding::list(&answer["findings"]);
    // The start does not examine what cuDNN opens later: the fake one comes without cuBLASLt and NVRTC.
    heard.retain(|reported| reported.code != "CG234");
    // `verify` runs no code of cuDNN. It does not know the version that only cuDNN returns, and it reports a missing sub-library
    // that every real cuDNN needs, although the fake one answers without it.
    let asked = report["level"] == 1;
    let open = answer["verdict"] == "unknown";
    let missing = |reported: &ReportedFinding| reported.is_error() && reported.code == "CG204";
    let by_files_alone = asked && (open || heard.iter().any(missing) && !reported.iter().any(missing));
    if by_files_alone {
        return differences;
    }
    // The findings are equal, except for a version that only the answer contains.
    let codes =
        |list: &[ReportedFinding]| sorted(list).iter().map(|reported| reported.code.clone()).collect::<Vec<_>>();
    let same = if asked { codes(&heard) == codes(&reported) } else { sorted(&heard) == sorted(&reported) };
    if answer["verdict"] != verdict || !same {
        differ("verify", &(&answer["verdict"], &heard));
    }

    let status = if verdict == "refused" { 78 } else { 0 };
    let outcome = on(command::call(["exec", "--", &program])).run();
    let printed = |reported: &ReportedFinding| are_printed(&[reported], &outcome.stderr);
    // `exec` prints the findings of `verify`, and the program reports the rest.
    if outcome.status() != Some(status)
        || (status == 78 && !heard.iter().filter(|reported| reported.is_error()).all(printed))
    {
        differ("exec", &(outcome.status(), outcome.stderr));
    }

    let outcome = on(Call::new(&program).arg("check")).env("CUDAGUARD", "warn").run();
    let number = ["runs", "refused", "unknown"].iter().position(|name| *name == verdict).expect("a verdict");
    if !outcome.stdout.starts_with(&format!("check {number} ")) {
        differ("cudaguard_check()", &outcome.stdout);
    }
    differences
}

fn drive(arch: &Arch, asks_front_ends: bool) {
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
        // The shim does not read symbols with the old hash table, which no cuDNN has alone. The file reader does.
        if asks_front_ends && !case.name.starts_with("the old hash table") {
            differences += &check_front_ends(case, scratch.path());
        }
        let refused = verdict == "refused";
        if status != Some(if refused { 78 } else { 0 }) || stderr.is_empty() == refused || !is_short(&stderr) {
            let _ = writeln!(differences, "{}: status {status:?}, on stderr:\n{stderr}", case.name);
        }
    }
    assert!(differences.is_empty(), "of {} cases:\n{differences}", cases.len());
}

fn table() -> Vec<Case> {
    written().into_iter().chain(made_for_cuda()).collect()
}

fn judge_returns_expected_codes() {
    for case in table() {
        assert_eq!(judged(&case).0.join(", "), case.codes, "{}", case.name);
    }
}

fn fits_itself() {
    for built in ["7.6.5", "8.1.0", "8.9.7", "9.0.0", "9.15.1", "10.2.0"] {
        for linkage in [Linkage::Linked, Linkage::Dlopened, Linkage::Static] {
            for manifest in [by(linkage, built), strict(required(by(linkage, built)))] {
                let host = whole(built).host(&manifest, linkage == Linkage::Linked);
                assert_eq!(judge(&manifest, &host), [], "{built} {linkage:?}");
            }
        }
    }
}
