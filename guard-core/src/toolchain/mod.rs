//! Facts of the build side: what is really being built with, each with its source.
//!
//! What counts as *in use*:
//!
//! - **the compiler**: `NVCC`, `CUDACXX`, the first nvcc in `PATH`, then `bin/nvcc` of the roots that `CUDA_HOME`,
//!   `CUDA_PATH`, `CUDA_ROOT`, `CUDA_TOOLKIT_ROOT_DIR` and `CUDAToolkit_ROOT` name, then of `/usr/local/cuda`,
//!   `/opt/cuda`, `/usr/lib/cuda`, `/usr`, `/usr/local/cuda-X.Y` newest first. That is cudaforge's order, with `CUDACXX`
//!   where CMake reads it;
//! - **the headers**: those of the first of these roots that a variable names and that has a `cuda.h`, as cudarc,
//!   bindgen_cuda and PyTorch look for them; else the compiler's own;
//! - **cudart and cuDNN**: the first folder on the linker's way: `-L` of `RUSTFLAGS`, `LIBRARY_PATH`, the toolkit's own
//!   folders, the system's; for cuDNN its own variables before all of them.
//!
//! A toolkit or cuDNN in a conda or virtual environment, the HPC SDK or a `.pc` file is listed, and in use only where one
//! of the above leads to it: no build script of cargo's world looks there by itself.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arch::Target;
use crate::env;
use crate::json::{Value, array, object};
use crate::version::{CudaVersion, Version};

mod archs;
mod ask;
mod cudnn;
mod host_compiler;
mod library;
mod nvcc;
mod places;

pub use archs::{Archs, Declared, Native};
pub use cudnn::{Cudnn, Headers as CudnnHeaders, Library as CudnnLibrary, Part as CudnnPart, cuda_majors};
pub use host_compiler::{Family, HostCompiler, Limits};
pub use nvcc::Nvcc;
use places::{Layout, Place, Reach, below};

/// A fact and where it came from, in words: `CUDA_HOME`, `/usr/local/cuda/include/cuda.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact<T> {
    /// The fact.
    pub value: T,
    /// Its source.
    pub source: String,
}

impl<T> Fact<T> {
    /// A fact of a source.
    pub fn new(value: T, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }
}

/// What to look for, and where.
#[derive(Clone, Debug)]
pub struct Request {
    /// The target triple.
    pub target: String,
    /// Whether this is a release build.
    pub release: bool,
    /// Archs that the builder names, one list, in any spelling.
    pub archs: Option<String>,
    /// `[gpu] archs` of the policy.
    pub policy_archs: Vec<Target>,
    /// Where the building machine's folders (`/usr`, `/usr/local/cuda`, …) begin: `/`, or a sysroot.
    pub system_root: PathBuf,
    /// How long a compiler or the driver may take to answer.
    pub patience: Duration,
}

impl Request {
    /// A dev build for this target on this machine, with nothing declared.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            release: false,
            archs: None,
            policy_archs: Vec::new(),
            system_root: PathBuf::from("/"),
            patience: Duration::from_secs(10),
        }
    }
}

/// A folder on a way of searching.
#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    source: String,
    reach: Reach,
}

/// A toolkit, or what of one stands in a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolkit {
    /// Its root, as found.
    pub root: PathBuf,
    /// What led to it: variables and places, the surest first.
    pub found: Vec<String>,
    /// Its compiler.
    pub nvcc: Option<Nvcc>,
    /// Its `cuda.h`.
    pub headers: Option<Headers>,
    /// The release that `version.json`, `version.txt`, pkg-config or the folder's name states.
    pub stated: Option<Fact<Version>>,
    /// Its libcudart.
    pub cudart: Option<Cudart>,
    /// The host compilers that it takes.
    pub limits: Option<Limits>,
}

/// A `cuda.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The file.
    pub path: PathBuf,
    /// Its `CUDA_VERSION`; `None` where it says none.
    pub version: Option<CudaVersion>,
}

/// A libcudart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cudart {
    /// As found.
    pub path: PathBuf,
    /// By its soname.
    pub major: Option<u32>,
    /// By the real file's name or the toolkit's `version.json`.
    pub version: Option<Fact<Version>>,
    /// What puts it on the linker's way.
    pub source: String,
}

/// The one in use, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its place in the list.
    pub index: usize,
    /// Why it, in words: `first nvcc in PATH`.
    pub reason: String,
}

/// Everything found.
#[derive(Clone, Debug, Default)]
pub struct Toolchain {
    /// The target triple.
    pub target: String,
    /// Whether this is a release build.
    pub release: bool,
    /// Every toolkit found, those in use first.
    pub toolkits: Vec<Toolkit>,
    /// Whose nvcc compiles.
    pub compiler: Option<Choice>,
    /// Whose headers are included.
    pub headers: Option<Choice>,
    /// Toolkits that further variables name, which some build scripts would follow instead: (index, variable).
    pub also_named: Vec<(usize, String)>,
    /// The libcudart that the linker would most probably take.
    pub cudart: Option<Cudart>,
    /// Every cuDNN found, those in use first.
    pub cudnns: Vec<Cudnn>,
    /// Whose headers are included.
    pub cudnn_headers: Option<Choice>,
    /// Whose library the linker would most probably take.
    pub cudnn_library: Option<Choice>,
    /// The host compiler that nvcc would call.
    pub host: Option<HostCompiler>,
    /// Whether `-allow-unsupported-compiler` stands in nvcc's flags.
    pub any_host: bool,
    /// The archs, by each source.
    pub archs: Archs,
    /// Folders of stubs in a runtime path, with the variable that names them.
    pub stubs: Vec<Fact<PathBuf>>,
    /// Variables that name something that is not there.
    pub dangling: Vec<Fact<PathBuf>>,
    files: BTreeSet<PathBuf>,
}

impl Toolchain {
    /// Looks at everything: variables, folders, files; asks the compilers in use.
    pub fn look(request: &Request) -> Self {
        look(request)
    }

    /// The toolkit whose nvcc compiles.
    pub fn compiling(&self) -> Option<&Toolkit> {
        self.toolkits.get(self.compiler.as_ref()?.index)
    }

    /// The toolkit whose headers are included.
    pub fn including(&self) -> Option<&Toolkit> {
        self.toolkits.get(self.headers.as_ref()?.index)
    }

    /// The release of the toolkit in use, with its source: by nvcc, else by `cuda.h`, else as its files state it. The
    /// third number is nvcc's build, and 0 where only `cuda.h` speaks.
    pub fn toolkit(&self) -> Option<Fact<Version>> {
        let by_nvcc = self.compiling().and_then(Toolkit::by_nvcc);
        by_nvcc
            .or_else(|| self.including().and_then(Toolkit::by_headers))
            .or_else(|| self.compiling().or_else(|| self.including())?.stated.clone())
    }

    /// The release of the toolkit in use: by nvcc, else by `cuda.h`.
    pub fn toolkit_version(&self) -> Option<Version> {
        self.toolkit().map(|fact| fact.value)
    }

    /// cuDNN's headers in use.
    pub fn cudnn_headers_used(&self) -> Option<&CudnnHeaders> {
        self.cudnns.get(self.cudnn_headers.as_ref()?.index)?.headers.as_ref()
    }

    /// cuDNN's library in use.
    pub fn cudnn_library_used(&self) -> Option<&CudnnLibrary> {
        self.cudnns.get(self.cudnn_library.as_ref()?.index)?.library.as_ref()
    }

    /// The version of the cuDNN headers in use.
    pub fn cudnn_version(&self) -> Option<Version> {
        self.cudnn_headers_used()?.version
    }

    /// The declared archs in force.
    pub fn declared(&self) -> Vec<Target> {
        self.archs.in_force.clone()
    }

    /// `gcc 12.2.0`.
    pub fn host_compiler(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        Some(format!("{} {}", host.family.name(), host.version?)).filter(|_| host.family != Family::Other)
    }

    /// Files that were read, sorted: when one changes, look again. cuDNN's inner libraries (hundreds of MB) are left
    /// out; the loader library and the headers change with them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.iter().cloned().collect()
    }
}

impl Toolkit {
    fn by_nvcc(&self) -> Option<Fact<Version>> {
        let nvcc = self.nvcc.as_ref()?;
        Some(Fact::new(nvcc.version?, format!("{} --version", nvcc.path.display())))
    }

    fn by_headers(&self) -> Option<Fact<Version>> {
        let headers = self.headers.as_ref()?;
        let version = headers.version?;
        Some(Fact::new(Version::new(version.major, version.minor, 0), headers.path.display().to_string()))
    }

    /// Its release, with its source.
    pub fn version(&self) -> Option<Fact<Version>> {
        self.by_nvcc().or_else(|| self.by_headers()).or_else(|| self.stated.clone())
    }
}

/// `CUDA_VERSION` in a `cuda.h`.
fn parse_cuda_h(text: &str) -> Option<CudaVersion> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix('#')?.split_whitespace();
        let found = words.next() == Some("define") && words.next() == Some("CUDA_VERSION");
        let number: u32 = found.then(|| words.next()?.parse().ok())??;
        (number >= 1000).then(|| CudaVersion::from_int(number))
    })
}

/// The version of a component in a `version.json`: of `"cuda"`, `"cuda_cudart"`, … Without a JSON reader, which
/// nothing else here needs: the first `"version"` behind the key.
fn parse_version_json(text: &str, component: &str) -> Option<Version> {
    let (_, rest) = text.split_once(&format!("\"{component}\""))?;
    let (object, _) = rest.split_once('}')?;
    let (_, rest) = object.split_once("\"version\"")?;
    rest.split('"').nth(1)?.parse().ok()
}

/// `CUDA Version 10.2.89` of a `version.txt`.
fn parse_version_txt(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("CUDA Version ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A file's text; what is not UTF-8 keeps what can be read.
fn read(path: &Path) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Only the start of a file: `CUDA_VERSION` stands in the first tenth of a `cuda.h` of a megabyte.
fn read_start(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(128 << 10).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn headers_in(folders: &[PathBuf]) -> Option<Headers> {
    let path = folders.iter().map(|folder| folder.join("cuda.h")).find(|path| path.is_file())?;
    let version = read_start(&path).as_deref().and_then(parse_cuda_h).or_else(|| parse_cuda_h(&read(&path)?));
    Some(Headers { path, version })
}

fn stated_in(root: &Path, layout: &Layout) -> Option<Fact<Version>> {
    let of = |path: PathBuf, parse: &dyn Fn(&str) -> Option<Version>| {
        Some(Fact::new(parse(&read(&path)?)?, path.display().to_string()))
    };
    of(root.join("version.json"), &|text| parse_version_json(text, "cuda"))
        .or_else(|| of(root.join("version.txt"), &parse_version_txt))
        .or_else(|| {
            let folders = layout.libraries(root).into_iter().map(|folder| folder.join("pkgconfig"));
            folders.flat_map(|folder| places::entries(&folder, "cuda")).find_map(|file| {
                let wanted = file.extension().is_some_and(|extension| extension == "pc");
                wanted.then(|| of(file, &|text| places::pc_value(text, "Version:")?.parse().ok()))?
            })
        })
        .or_else(|| match places::version_in_name(root)[..] {
            [major, minor] if root.file_name()?.to_str()?.starts_with("cuda-") => {
                Some(Fact::new(Version::new(major, minor, 0), format!("the folder's name, {}", root.display())))
            }
            _ => None,
        })
}

/// The libcudart of a folder. `root`: the toolkit's, whose `version.json` may tell what a file name does not.
fn cudart_in(folder: &Path, root: Option<&Path>, source: &str) -> Option<Cudart> {
    let linked = folder.join("libcudart.so");
    let path = if linked.is_file() {
        linked
    } else {
        let found = places::entries(folder, "libcudart.so.").into_iter().find(|file| file.is_file());
        found.or_else(|| Some(folder.join("libcudart_static.a")).filter(|file| file.is_file()))?
    };
    let real = path.canonicalize().ok()?;
    let numbers = library::numbers_of(&real.file_name()?.to_string_lossy());
    let version = match numbers[..] {
        [major, minor, patch, ..] => Some(Fact::new(Version::new(major, minor, patch), real.display().to_string())),
        // Up to 10.2 the soname has the whole release (libcudart.so.10.2), 11's is 11.0 in all of them.
        [major @ ..=10, minor] => Some(Fact::new(Version::new(major, minor, 0), real.display().to_string())),
        _ => root.map(|root| root.join("version.json")).and_then(|file| {
            let version = parse_version_json(&read(&file)?, "cuda_cudart")?;
            Some(Fact::new(version, file.display().to_string()))
        }),
    };
    // A version.json that speaks of another major is of another toolkit.
    let version = version.filter(|version| numbers.first().is_none_or(|major| *major == version.value.major));
    let major = numbers.first().copied().or(version.as_ref().map(|version| version.value.major));
    Some(Cudart { path, major, version, source: source.to_owned() })
}

fn limits_of(headers: Option<&Headers>, root: &Path) -> Option<Limits> {
    let beside = headers.and_then(|headers| headers.path.parent()).map(|folder| folder.join("crt/host_config.h"));
    // CUDA 8 and older kept it beside the headers.
    let file = beside.into_iter().chain([root.join("include/crt/host_config.h")]).find(|file| file.is_file())?;
    let (gcc_max, clang_below) = host_compiler::parse_limits(&read(&file)?);
    Some(Limits { gcc_max, clang_below, source: file.display().to_string() })
}

/// A candidate for the compiler in use.
struct Candidate {
    path: PathBuf,
    flags: Vec<String>,
    source: String,
    reason: String,
}

struct Looking<'a> {
    request: &'a Request,
    layout: Layout,
    out: Toolchain,
    /// How surely each of `out.toolkits` is looked at, in the same order.
    reach: Vec<Reach>,
}

fn look(request: &Request) -> Toolchain {
    let layout = Layout::of(&request.target, std::env::consts::ARCH);
    let out = Toolchain { target: request.target.clone(), release: request.release, ..Toolchain::default() };
    let mut looking = Looking { request, layout, out, reach: Vec::new() };
    looking.toolkits();
    looking.cudart();
    looking.cudnn();
    looking.stubs();
    looking.read_files();
    looking.out
}

impl Looking<'_> {
    fn toolkits(&mut self) {
        let places = places::places(&self.request.system_root);
        let candidate = self.compiler_in_use(&places);
        for place in &places {
            if place.reach == Reach::Named && !place.root.is_dir() {
                self.out.dangling.push(Fact::new(place.root.clone(), place.source.clone()));
            }
            self.add(place);
        }
        let flags = NvccFlags::read(candidate.as_ref());
        self.out.any_host = flags.all().any(|flag| flag.trim_start_matches('-') == "allow-unsupported-compiler");
        self.out.archs = Archs::read(self.request, &flags);
        self.ask(candidate.as_ref(), &flags);
        if let Some(candidate) = candidate {
            let index = self.settle(&candidate);
            self.out.compiler = Some(Choice { index, reason: candidate.reason });
        }
        self.choose_headers();
        let release = self.out.toolkit().map(|fact| CudaVersion::from(fact.value));
        self.out.archs.resolve(release);
        self.in_use_first();
    }

    /// Which nvcc a build would run.
    fn compiler_in_use(&mut self, places: &[Place]) -> Option<Candidate> {
        let path = env::var_os("PATH");
        for variable in ["NVCC", "CUDACXX"] {
            let Some(value) = env::var(variable) else { continue };
            let Some((program, flags)) = nvcc::command(&value, Path::is_file) else { continue };
            // CMake compiles CUDA with clang too; the toolkit is then found by the roots alone.
            if program.file_name().is_some_and(|name| name.to_string_lossy().contains("clang")) {
                continue;
            }
            let found = if program.components().count() > 1 {
                Some(program.clone()).filter(|program| ask::executable(program))
            } else {
                ask::in_path(&program.to_string_lossy(), path.as_deref())
            };
            match found {
                Some(path) => {
                    let (source, reason) = (variable.to_owned(), format!("{variable} names it"));
                    return Some(Candidate { path, flags, source, reason });
                }
                None => self.out.dangling.push(Fact::new(program, variable)),
            }
        }
        if let Some(path) = ask::in_path("nvcc", path.as_deref()) {
            let (source, reason) = ("PATH".to_owned(), "first nvcc in PATH".to_owned());
            return Some(Candidate { path, flags: Vec::new(), source, reason });
        }
        places.iter().filter(|place| place.reach < Reach::Listed).find_map(|place| {
            let path = Some(place.root.join("bin/nvcc")).filter(|path| ask::executable(path))?;
            let reason = match place.reach {
                Reach::Named => format!("{} names it; PATH has no nvcc", place.source),
                _ => format!("found in {}; no variable names a toolkit, and PATH has no nvcc", place.source),
            };
            Some(Candidate { path, flags: Vec::new(), source: place.source.clone(), reason })
        })
    }

    /// Adds what stands at a place, or one more reason to a toolkit that is known already.
    fn add(&mut self, place: &Place) -> Option<usize> {
        let nvcc = Some(place.root.join("bin/nvcc")).filter(|path| ask::executable(path));
        let headers = headers_in(&self.layout.includes(&place.root));
        let known = self.known(&place.root, headers.as_ref());
        if let Some(index) = known {
            let toolkit = &mut self.out.toolkits[index];
            if !toolkit.found.contains(&place.source) {
                toolkit.found.push(place.source.clone());
            }
            toolkit.nvcc = toolkit.nvcc.take().or_else(|| nvcc.map(|path| Nvcc { path, ..Nvcc::default() }));
            self.reach[index] = self.reach[index].min(place.reach);
            return Some(index);
        }
        let cudart = self.layout.libraries(&place.root).iter().find_map(|folder| {
            cudart_in(folder, Some(&place.root), &place.source)
        });
        // `/usr` is a toolkit only where Debian has put one there.
        let splayed = place.source == "/usr";
        if nvcc.is_none() && headers.is_none() && (cudart.is_none() || splayed) {
            return None;
        }
        let limits = limits_of(headers.as_ref(), &place.root);
        self.out.toolkits.push(Toolkit {
            root: place.root.clone(),
            found: vec![place.source.clone()],
            nvcc: nvcc.map(|path| Nvcc { path, ..Nvcc::default() }),
            stated: stated_in(&place.root, &self.layout),
            headers,
            cudart,
            limits,
        });
        self.reach.push(place.reach);
        Some(self.out.toolkits.len() - 1)
    }

    /// The toolkit that this root is, by its real folder or its real `cuda.h`.
    fn known(&self, root: &Path, headers: Option<&Headers>) -> Option<usize> {
        let real = |path: &Path| path.canonicalize().ok();
        let (root, header) = (real(root), headers.and_then(|headers| real(&headers.path)));
        self.out.toolkits.iter().position(|known| {
            let same_root = root.is_some() && real(&known.root) == root;
            let same_header = header.is_some() && known.headers.as_ref().and_then(|own| real(&own.path)) == header;
            same_root || same_header
        })
    }

    /// Runs what has to be run, all at once: the nvcc in use, those of toolkits that say no version otherwise, the host
    /// compiler, and the driver where `native` asks for it.
    fn ask(&mut self, candidate: Option<&Candidate>, flags: &NvccFlags) {
        let variables = env::for_child();
        let variables = variables.as_ref();
        let patience = self.request.patience;
        let mut asked: Vec<(Option<usize>, PathBuf, bool)> = Vec::new();
        if let Some(candidate) = candidate {
            asked.push((None, candidate.path.clone(), needs_top(&candidate.path, &self.layout)));
        }
        for (index, toolkit) in self.out.toolkits.iter().enumerate() {
            let Some(nvcc) = &toolkit.nvcc else { continue };
            let told = toolkit.by_headers().is_some() || toolkit.stated.is_some();
            if !told && candidate.is_none_or(|candidate| !same_file(&candidate.path, &nvcc.path)) {
                asked.push((Some(index), nvcc.path.clone(), false));
            }
        }
        let host = self.host_candidate(candidate, flags);
        let native = self.out.archs.wants_native();
        let smi = native.then(|| ask::in_path("nvidia-smi", env::var_os("PATH").as_deref()));
        let (answers, host, gpus) = std::thread::scope(|scope| {
            let running: Vec<_> = asked
                .iter()
                .map(|(_, path, top)| scope.spawn(move || ask_nvcc(path, *top, variables, patience)))
                .collect();
            let host = host.map(|(path, source)| {
                scope.spawn(move || {
                    let said = ask::ask(&path, &["--version"], variables, patience).unwrap_or_default();
                    let (family, version) = host_compiler::parse(&said.out);
                    HostCompiler { path, source, family, version }
                })
            });
            let gpus = smi.map(|smi| scope.spawn(move || archs::ask_driver(smi, variables, patience)));
            let answers: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
            (answers, host.and_then(|thread| thread.join().ok()), gpus.and_then(|thread| thread.join().ok()))
        });
        self.out.host = host;
        if let Some(gpus) = gpus {
            self.out.archs.native = Some(gpus);
        }
        for ((index, ..), nvcc) in asked.into_iter().zip(answers) {
            match index {
                Some(index) => self.out.toolkits[index].nvcc = Some(nvcc),
                None => self.compiler = Some(nvcc),
            }
        }
    }

    /// Puts the compiler in use into its toolkit, which may be new: the root that nvcc compiles with.
    fn settle(&mut self, candidate: &Candidate) -> usize {
        let mut nvcc = self.compiler.take().unwrap_or_default();
        nvcc.compiler_bindir = profile_of(&candidate.path);
        let root = nvcc.top.clone().or_else(|| root_beside(&candidate.path, &self.layout)).unwrap_or_else(|| {
            let real = candidate.path.canonicalize().unwrap_or_else(|_| candidate.path.clone());
            real.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_owned()
        });
        let place = Place { root, source: candidate.source.clone(), reach: Reach::Named };
        let index = self.add(&place).unwrap_or_else(|| {
            self.out.toolkits.push(Toolkit {
                root: place.root.clone(),
                found: vec![candidate.source.clone()],
                stated: stated_in(&place.root, &self.layout),
                ..Toolkit::default()
            });
            self.reach.push(Reach::Named);
            self.out.toolkits.len() - 1
        });
        let toolkit = &mut self.out.toolkits[index];
        // What leads to the compiler comes first among the reasons.
        toolkit.found.retain(|source| *source != candidate.source);
        toolkit.found.insert(0, candidate.source.clone());
        toolkit.nvcc = Some(nvcc);
        index
    }
}
