//! The declared architectures: the requests of policy, builder, variables and nvcc's flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::nvcc::NvccCandidate;
use super::{BuildSystemFacts, DetectOptions, Sourced, nvcc};
use crate::knowledge::tables;
use crate::model::arch::{self, Arch, ArchError, ArchRequest, Dialect, Target};
use crate::model::version::Version;
use crate::sys::env::Env;
use crate::sys::subprocess;
use crate::text::lists::IteratorExt as _;
use crate::text::shell_words::split_words;

/// The name of the policy as a source.
const POLICY: &str = "[gpu] archs";
/// The name of a build script as a source.
const BUILDER: &str = "the builder";

/// The declaration of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// `[gpu] archs`, `the builder`, or a variable.
    pub source: String,
    /// The text as written.
    pub text: String,
    /// The parsed requests.
    pub requests: Result<Vec<ArchRequest>, ArchError>,
    /// The targets of the requests with this toolkit and the GPU of this machine; `all` and `native` are resolved if
    /// that is possible.
    pub targets: Vec<Target>,
    /// True for flags of nvcc's own variables, which add to every other declaration.
    pub adds: bool,
    /// The additional targets of these flags with nvcc 13 and later ([`arch::NvccFlags::besides_from_13`]).
    from_13: Option<Target>,
}

impl Declared {
    fn new(source: &str, text: String, requests: Result<Vec<ArchRequest>, ArchError>) -> Self {
        Self { source: source.to_owned(), text, requests, targets: Vec::new(), adds: false, from_13: None }
    }

    /// Returns true if the requests contain this word.
    pub fn has_request(&self, word: ArchRequest) -> bool {
        self.requests.as_ref().is_ok_and(|requests| requests.contains(&word))
    }

    /// Returns true if the project itself declares them for the kernels of the package. A variable applies to every
    /// build.
    pub fn is_of_project(&self) -> bool {
        let of_target = self.source.split_once(" of ").is_some_and(|(property, _)| property.ends_with("ARCHITECTURES"));
        of_target || [POLICY, BUILDER].contains(&self.source.as_str())
    }

    /// Returns true for PyTorch's list. Its containers set it for all users, and only PyTorch's extensions read it.
    pub fn is_of_torch(&self) -> bool {
        self.source == "TORCH_CUDA_ARCH_LIST"
    }

    /// Returns true if the source declares any architecture.
    fn has_archs(&self) -> bool {
        match &self.requests {
            Ok(requests) => requests.iter().any(|request| *request != ArchRequest::Off),
            Err(_) => true,
        }
    }
}

/// The GPUs of this machine, if `native` requires them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Native {
    /// Their compute capabilities, each once.
    Gpus(Sourced<Vec<(u8, u8)>>),
    /// Why none is known.
    Unknown(String),
}

/// All declared architectures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredArchs {
    /// The sources with a declaration, the strongest first.
    pub declared: Vec<Declared>,
    /// The meaning of `native` here; `None` if no source uses it.
    pub native: Option<Native>,
    /// The result: the targets of the strongest source and of nvcc's own variables, sorted.
    pub in_force: Vec<Target>,
}

/// nvcc's flags that do not come from a build script: the source and the text of each.
#[derive(Debug, Default)]
pub(super) struct ProjectNvccFlags(Vec<(String, String)>);

impl ProjectNvccFlags {
    pub(super) fn read(env: &Env, candidate: Option<&NvccCandidate>, given: Option<&BuildSystemFacts>) -> Self {
        let own = match given {
            Some(given) if !given.compiles => return Self::default(),
            Some(given) => {
                let source = given.by.choose("nvcc's flags", "CMAKE_CUDA_FLAGS", "--nvcc-flags");
                Some((source.to_owned(), given.flags.join(" ")))
            }
            None => candidate.map(|candidate| (candidate.source.clone(), candidate.flags.join(" "))),
        };
        let [before, after] =
            ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"].map(|name| Some((name.to_owned(), env.var(name)?)));
        let all = [before, own, after].into_iter().flatten();
        Self(all.filter(|(_, flags)| !flags.trim().is_empty()).collect::<Vec<_>>())
    }

    /// Returns true if the flags contain `-allow-unsupported-compiler`.
    pub(super) fn allows_any_host(&self) -> bool {
        let mut flags = self.0.iter().flat_map(|(_, flags)| split_words(flags));
        flags.any(|flag| flag.trim_start_matches('-') == "allow-unsupported-compiler")
    }

    /// Returns the host compiler in the flags, and its source. The last one wins.
    pub(super) fn host_compiler(&self) -> Option<Sourced<String>> {
        self.0.iter().rev().find_map(|(source, flags)| {
            Some(Sourced::new(nvcc::find_ccbin(&split_words(flags))?, format!("-ccbin in {source}")))
        })
    }
}

/// Variables with lists of architectures, the strongest first.
const VARIABLES: &[&str] = &["CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES", "CUDA_COMPUTE_CAP", "TORCH_CUDA_ARCH_LIST"];

impl DeclaredArchs {
    pub(super) fn read(request: &DetectOptions, flags: &ProjectNvccFlags) -> Self {
        let mut declared = Vec::new();
        if !request.policy_archs.is_empty() {
            let requests = request.policy_archs.clone();
            declared.push(Declared::new(POLICY, arch::join_requests(&requests), Ok(requests)));
        }
        if let Some(text) = &request.archs {
            declared.push(Declared::new(BUILDER, text.clone(), arch::parse_list(text, Dialect::Policy)));
        }
        let given = request.given.as_ref();
        if let Some(archs) = given.and_then(|given| given.archs.as_ref()) {
            let requests = arch::parse_list(&archs.value, Dialect::Cmake);
            declared.push(Declared::new(&archs.source, archs.value.clone(), requests));
        }
        for name in VARIABLES.iter().filter(|_| given.is_none()) {
            let Some((text, dialect)) = request.env.var(name).zip(Dialect::from_variable(name)) else { continue };
            let requests = arch::parse_list(&text, dialect);
            declared.push(Declared::new(name, text, requests));
        }
        for (source, text) in &flags.0 {
            let flags = arch::nvcc_flags(text);
            let from_13 = flags.as_ref().ok().and_then(|flags| flags.besides_from_13);
            let requests = flags.map(|flags| flags.requests);
            declared.push(Declared { adds: true, from_13, ..Declared::new(source, text.clone(), requests) });
        }
        declared.retain(Declared::has_archs);
        Self { declared, ..Self::default() }
    }

    /// Returns the source of the resulting architectures; `None` if it is PyTorch's list, which containers set for all
    /// users.
    pub fn named_by(&self) -> Option<&str> {
        let strongest = self.declared.iter().find(|declared| !declared.adds).or(self.declared.first())?;
        (!strongest.is_of_torch()).then_some(&*strongest.source)
    }

    /// Returns true if a source uses the GPU of this machine.
    pub(super) fn wants_native(&self) -> bool {
        self.declared.iter().any(|declared| declared.has_request(ArchRequest::Native))
    }

    /// Converts the requests to targets for this toolkit.
    pub(super) fn resolved(mut self, toolkit: Option<Version>) -> Self {
        let native: Vec<Target> = match &self.native {
            Some(Native::Gpus(gpus)) => {
                gpus.value.iter().filter_map(|cc| Arch::from_cc(*cc)).map(Target::Cubin).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        for declared in &mut self.declared {
            let mut targets: Vec<Target> = Vec::new();
            for request in declared.requests.iter().flatten() {
                match request {
                    ArchRequest::Target(target) => targets.push(*target),
                    ArchRequest::All => targets.extend(toolkit.map(tables::expand_all).unwrap_or_default()),
                    ArchRequest::AllMajor => targets.extend(toolkit.map(tables::expand_all_major).unwrap_or_default()),
                    ArchRequest::Native => targets.extend(&native),
                    ArchRequest::Off => {}
                }
            }
            targets.extend(declared.from_13.filter(|_| toolkit.is_some_and(|toolkit| toolkit.major >= 13)));
            targets.sort();
            targets.dedup();
            declared.targets = targets;
        }
        let strongest = self.declared.iter().find(|declared| !declared.adds);
        let adding = self.declared.iter().filter(|declared| declared.adds);
        let mut in_force = strongest.map(|declared| declared.targets.clone()).unwrap_or_default();
        for adding in adding {
            in_force.extend(&adding.targets);
        }
        in_force.sort();
        in_force.dedup();
        self.in_force = in_force;
        self
    }
}

/// The program that lists the GPUs.
pub(super) enum GpuLister {
    /// nvcc's own program.
    Nvcc(PathBuf),
    /// The build system.
    BuildSystemFacts(Sourced<String>),
    /// The driver's command.
    Driver(Option<PathBuf>),
}

/// Returns the program whose answer counts.
pub(super) fn who_knows(env: &Env, given: Option<&BuildSystemFacts>) -> GpuLister {
    if let Some(query) = given.and_then(BuildSystemFacts::device_query) {
        return GpuLister::Nvcc(query);
    }
    match given.and_then(|given| given.native.clone()) {
        Some(native) => GpuLister::BuildSystemFacts(native),
        None => GpuLister::Driver(subprocess::in_path("nvidia-smi", env)),
    }
}

type Parse = fn(&str) -> Vec<(u8, u8)>;

/// Queries the GPUs.
pub(super) fn ask_gpus(who: GpuLister, variables: Option<&BTreeMap<String, OsString>>, patience: Duration) -> Native {
    let (program, words, parse): (_, &[&str], Parse) = match who {
        GpuLister::Driver(None) => return Native::Unknown("no nvidia-smi in PATH".to_owned()),
        GpuLister::Driver(Some(smi)) => (smi, &["--query-gpu=compute_cap", "--format=csv,noheader"], parse_gpus),
        GpuLister::Nvcc(query) => (query, &[], parse_numbers),
        GpuLister::BuildSystemFacts(fact) => {
            let requests = arch::parse_list(&fact.value, Dialect::Cmake).unwrap_or_default();
            let mut gpus: Vec<_> =
                requests.iter().filter_map(|one| one.as_target()).map(|one| one.base_arch().cc()).collect();
            gpus.sort_unstable();
            gpus.dedup();
            return Native::Gpus(Sourced::new(gpus, fact.source));
        }
    };
    let shown = program.display();
    match subprocess::run_with_timeout(&program, words, variables, patience) {
        Err(problem) => Native::Unknown(format!("{shown} {problem}")),
        Ok(answer) => {
            let gpus = parse(&answer.out);
            if gpus.is_empty() {
                let message = format!("{}{}", answer.out, answer.err);
                let message = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim();
                let message = message.strip_prefix(&format!("{shown} ")).unwrap_or(message);
                Native::Unknown(format!("{shown} lists no GPU, but prints: {message}"))
            } else {
                let call = [shown.to_string()].into_iter().chain(words.first().map(ToString::to_string));
                Native::Gpus(Sourced::new(gpus, call.join(" ")))
            }
        }
    }
}

/// Parses the output of nvcc's own program: `86,90`.
fn parse_numbers(text: &str) -> Vec<(u8, u8)> {
    let mut gpus: Vec<(u8, u8)> =
        text.split(',').filter_map(|one| one.trim().parse::<u8>().ok()).map(|cc| (cc / 10, cc % 10)).collect();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}

/// Parses the compute capabilities from `nvidia-smi --query-gpu=compute_cap`, each once.
fn parse_gpus(text: &str) -> Vec<(u8, u8)> {
    let mut gpus: Vec<(u8, u8)> = text
        .lines()
        .filter_map(|line| {
            let (major, minor) = line.trim().split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        })
        .collect::<Vec<_>>();
    gpus.sort_unstable();
    gpus.dedup();
    gpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_answers_are_parsed() {
        assert_eq!(parse_gpus("9.0\n8.6\n9.0\n"), [(8, 6), (9, 0)]);
        assert_eq!(parse_gpus("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"), []);
        assert_eq!(parse_gpus("[N/A]\n"), []);
        assert_eq!(parse_numbers("90,86,120,90"), [(8, 6), (9, 0), (12, 0)]);
        assert_eq!(parse_numbers("__nvcc_device_query failed to call cudaLoader::cuInit(0) with error 0x64"), []);
    }

    // The program of nvcc is a script here.
    #[cfg(unix)]
    #[test]
    fn gpu_query_tries_each_source() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        let nvcc = Some(Sourced::new(dir.join("bin/nvcc"), "CMAKE_CUDA_COMPILER"));
        let native = Some(Sourced::new("90-real;86-real".to_owned(), "CMAKE_CUDA_ARCHITECTURES_NATIVE"));
        let given = BuildSystemFacts { nvcc, native, ..BuildSystemFacts::default() };
        let seen = |given: &BuildSystemFacts| {
            ask_gpus(who_knows(&Env::from_process(), Some(given)), None, Duration::from_secs(60))
        };
        let Native::Gpus(gpus) = seen(&given) else { panic!("it is given") };
        assert_eq!((&gpus.value[..], &*gpus.source), (&[(8, 6), (9, 0)][..], "CMAKE_CUDA_ARCHITECTURES_NATIVE"));
        // nvcc uses its own program, so that one comes first.
        let query = dir.join("bin/__nvcc_device_query");
        for (script, expected) in [("echo 75", Ok(vec![(7, 5)])), ("echo broken >&2; exit 1", Err("prints: broken"))] {
            std::fs::write(&query, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&query, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            match (seen(&given), expected) {
                (Native::Gpus(gpus), Ok(expected)) => assert_eq!(gpus.value, expected),
                (Native::Unknown(why), Err(expected)) => assert!(why.ends_with(expected), "{why}"),
                (other, _) => panic!("{script}: {other:?}"),
            }
        }
    }

    fn read(variables: &[(&str, &str)], policy: &[&str], builder: Option<&str>) -> DeclaredArchs {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let env = Env::from_variables(variables, "/");
        let mut request = DetectOptions::new(&env, "x86_64-unknown-linux-gnu");
        request.policy_archs = policy.iter().map(|arch| arch.parse::<Target>().unwrap().into()).collect();
        request.archs = builder.map(str::to_owned);
        let flags = ProjectNvccFlags::read(&env, None, None);
        DeclaredArchs::read(&request, &flags).resolved(Some(Version::new(13, 0, 88)))
    }

    fn names(targets: &[Target]) -> String {
        targets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strongest_source_wins_and_flags_add() {
        let archs = read(
            &[("CUDAARCHS", "75-real"), ("TORCH_CUDA_ARCH_LIST", "8.0"), ("NVCC_APPEND_FLAGS", "-O3 -arch=sm_90")],
            &[],
            None,
        );
        let sources: Vec<_> = archs.declared.iter().map(|declared| declared.source.as_str()).collect();
        assert_eq!(sources, ["CUDAARCHS", "TORCH_CUDA_ARCH_LIST", "NVCC_APPEND_FLAGS"]);
        assert_eq!(names(&archs.in_force), "sm_75 sm_90 compute_90");
        let archs = read(&[("CUDAARCHS", "75-real")], &["sm_80"], Some("90a"));
        assert_eq!(names(&archs.in_force), "sm_80");
    }

    #[test]
    fn flags_without_arch_declare_nothing() {
        assert_eq!(
            read(&[("NVCC_PREPEND_FLAGS", "-ccbin g++-11"), ("CUDAARCHS", "OFF")], &[], None),
            DeclaredArchs::default()
        );
    }

    #[test]
    fn all_expands_to_toolkit_archs() {
        let archs = read(&[("CUDAARCHS", "all-major")], &[], None);
        assert!(names(&archs.in_force).starts_with("sm_75 sm_80 "), "{}", names(&archs.in_force));
        assert!(!archs.wants_native());
    }

    #[test]
    fn unreadable_arch_is_retained() {
        let archs = read(&[("CUDA_COMPUTE_CAP", "ninety")], &[], None);
        assert!(archs.declared[0].requests.is_err() && archs.in_force.is_empty());
    }
}
