//! Facts that real parts report about themselves, compared with the tables. This suite and `cargo tables` share them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use cudaguard::internal::arch::{Arch, Suffix, Target};
use cudaguard::internal::coverage::compatibility::Compatibility;
use cudaguard::internal::cudnn;
use cudaguard::internal::tables::{self, Cc, CcSupport};
use cudaguard::internal::version::{CudaVersion, DriverRelease, Version};
use cudaguard_tests::{Call, Scratch, parts};

/// Real toolkits that the suites use.
pub(crate) const TOOLKITS: &[&str] = &["11.8", "13.0", "13.2", "13.5"];

/// Real assemblers of releases whose nvcc is in no package that tests may fetch.
pub(crate) const ASSEMBLERS: &[&str] = &["12.4", "12.9"];

/// Real cuDNN releases with the CUDA major that each is built for.
pub(crate) const CUDNNS: &[(&str, u32)] =
    &[("8.5.0", 11), ("8.9.7", 12), ("9.1.0", 12), ("9.15.1-cu12", 12), ("9.15.1", 13), ("9.17.1", 13), ("9.28.0", 13)];

/// Real drivers.
pub(crate) const DRIVERS: &[&str] = &["535"];

/// Measured fact.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// Row of the table and name of the fact.
    pub(crate) what: String,
    /// Value in the table.
    pub(crate) table: String,
    /// Value of the real part.
    pub(crate) part: String,
}

impl Measurement {
    fn new(what: impl Into<String>, table: impl fmt::Display, part: impl fmt::Display) -> Self {
        Self { what: what.into(), table: table.to_string(), part: part.to_string() }
    }

    /// Returns true if table and part differ.
    pub(crate) fn differs(&self) -> bool {
        self.table != self.part
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differs() {
            write!(f, "{}\n  table: {}\n  part:  {}", self.what, self.table, self.part)?;
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<String>>();
            let (table, part) = (words(&self.table), words(&self.part));
            if table.len().max(part.len()) > 3 {
                let list =
                    |words: Vec<&String>| words.into_iter().map(|word| format!(" {word}")).collect::<Vec<_>>().concat();
                write!(f, "\n  only in the table:{}", list(table.difference(&part).collect()))?;
                write!(f, "\n  only in the part:{}", list(part.difference(&table).collect()))?;
            }
            Ok(())
        } else {
            write!(f, "{}: {}", self.what, self.table)
        }
    }
}

/// Returns all facts of a part. Fetches the part if it is missing.
pub(crate) fn part(name: &str) -> Result<Vec<Measurement>, parts::PartError> {
    let dir = parts::fetch(name)?;
    let measured = if let Some(version) = name.strip_prefix("cudnn-") {
        let major = CUDNNS.iter().find(|(known, _)| *known == version).map(|&(_, major)| major);
        major.ok_or_else(|| format!("{name}: for which CUDA major?")).and_then(|major| cudnn(&dir, major))
    } else if name.starts_with("driver-") {
        driver(&dir)
    } else if name.starts_with("ptxas-") {
        assembler(&dir)
    } else {
        toolkit(&dir)
    };
    measured.map_err(parts::PartError::Broken)
}

/// Measures a toolkit: archs of nvcc and ptxas, default, symbolic archs, PTX ISA, host compilers, families.
pub(crate) fn toolkit(root: &Path) -> Result<Vec<Measurement>, String> {
    let release = release(root)?;
    let scratch = Scratch::new("measure-toolkit");
    let row = row(release);
    let mut measured = Vec::new();

    let listed = call(root, "nvcc", &["--list-gpu-code"], &scratch)?;
    let listed: BTreeSet<Arch> = listed.split_whitespace().filter_map(|word| cubin(word.trim())).collect();
    let table = names(tables::arch_rows().iter().map(|row| row.arch).filter(|&arch| plain_made(release, arch)));
    measured.push(Measurement::new(row("archs by nvcc"), &table, names(listed)));
    let plain = ptxas_archs(root)?.into_iter().filter(|arch| arch.suffix == Suffix::None);
    measured.push(Measurement::new(row("archs without suffix by ptxas"), &table, names(plain)));

    scratch.file("k.cu", "__global__ void k() {}\n");
    let default =
        tables::default_arch(release).map(|arch| vec![Target::Cubin(arch), Target::Ptx(arch)]).unwrap_or_default();
    for (what, flags, table) in [
        ("nvcc without -arch", &[][..], default),
        ("nvcc -arch=all", &["-arch=all"], tables::expand_all(release)),
        ("nvcc -arch=all-major", &["-arch=all-major"], tables::expand_all_major(release)),
    ] {
        measured.push(Measurement::new(row(what), targets(table), targets(images(root, flags, &scratch)?)));
    }
    measured.extend(assembled(root, release)?);
    Ok(measured)
}

/// Measures a directory with only an assembler. ptxas prints its release.
fn assembler(root: &Path) -> Result<Vec<Measurement>, String> {
    let scratch = Scratch::new("measure-assembler");
    let printed = call(root, "ptxas", &["--version"], &scratch)?;
    let release = printed.split(", V").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    assembled(root, release.ok_or_else(|| format!("ptxas does not print its version: {printed}"))?)
}

/// Measures the facts from ptxas and `crt/host_config.h`: archs, PTX ISA, host compilers, families.
fn assembled(root: &Path, release: Version) -> Result<Vec<Measurement>, String> {
    let scratch = Scratch::new("measure-assembled");
    let row = row(release);
    let made = ptxas_archs(root)?;
    let table = names(tables::arch_rows().iter().map(|row| row.arch).filter(|&arch| makes(release, arch)));
    let mut measured = vec![Measurement::new(row("archs by ptxas"), table, names(made.iter().copied()))];

    let isa = tables::ptx_isa(release).map_or("nothing".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    measured.push(Measurement::new(row("PTX ISA"), isa, newest_isa(root, &made, &scratch)?));

    let limits = tables::host_compiler(release);
    let (gcc, clang) = host_limits(root)?;
    measured.push(Measurement::new(row("newest gcc"), limit(limits.gcc_newest), limit(gcc)));
    measured.push(Measurement::new(row("first clang refused"), limit(limits.clang_below), limit(clang)));

    measured.extend(ptx_compatibility(root, &made, &scratch, &row)?);
    Ok(measured)
}

fn row(release: Version) -> impl Fn(&str) -> String {
    move |what| format!("CUDA {}.{}: {what}", release.major, release.minor)
}

/// Returns the release in cuda.h. Fails if nvcc prints another one.
pub(crate) fn release(root: &Path) -> Result<Version, String> {
    let header = read(&root.join("include/cuda.h"))?;
    let number = header
        .lines()
        .find_map(|line| line.strip_prefix("#define CUDA_VERSION "))
        .and_then(|number| number.trim().parse().ok())
        .ok_or("cuda.h has no CUDA_VERSION")?;
    let header = CudaVersion::from_int(number);
    let printed = Call::new(root.join("bin/nvcc")).arg("--version").run();
    let nvcc: Version = printed
        .stdout
        .split(", V")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|version| version.parse().ok())
        .ok_or_else(|| format!("nvcc does not print its version: {printed}"))?;
    if header != nvcc.into() {
        return Err(format!("cuda.h is of {header}, nvcc of {nvcc}"));
    }
    Ok(nvcc)
}

fn makes(release: Version, arch: Arch) -> bool {
    tables::can_make(release, Target::Cubin(arch)) == CcSupport::Made
}

fn plain_made(release: Version, arch: Arch) -> bool {
    arch.suffix == Suffix::None && makes(release, arch)
}

/// Returns all `'sm_…'` in `ptxas --help`.
pub(crate) fn ptxas_archs(root: &Path) -> Result<BTreeSet<Arch>, String> {
    let help = Call::new(root.join("bin/ptxas")).arg("--help").run();
    let archs: BTreeSet<Arch> = help.stdout.split('\'').filter_map(cubin).collect();
    if archs.is_empty() { Err(format!("ptxas names no archs: {help}")) } else { Ok(archs) }
}

/// Returns the images that nvcc would put into an object, from its dry run.
pub(crate) fn images(root: &Path, flags: &[&str], scratch: &Scratch) -> Result<Vec<Target>, String> {
    scratch.file("k.cu", "__global__ void k() {}\n");
    let printed = call(root, "nvcc", &[&["--dryrun", "-c", "k.cu"], flags].concat(), scratch)?;
    let images: Vec<Target> = printed
        .split("kind=")
        .skip(1)
        .filter_map(|image| {
            let (kind, rest) = image.split_once(",sm=")?;
            let name = rest.split([',', '"', ' ']).next()?;
            let arch = name.parse().ok()?;
            match kind {
                "elf" => Some(Target::Cubin(arch)),
                "ptx" => Some(Target::Ptx(arch)),
                _ => None,
            }
        })
        .collect();
    if images.is_empty() { Err(format!("nvcc's dry run names no image:\n{printed}")) } else { Ok(images) }
}

/// Returns the newest PTX ISA, which ptxas prints when it rejects another one.
pub(crate) fn newest_isa(root: &Path, made: &BTreeSet<Arch>, scratch: &Scratch) -> Result<String, String> {
    let newest = made.iter().next_back().ok_or("no arch")?;
    scratch.file("v.ptx", format!(".version 99.9\n.target sm_{newest}\n.address_size 64\n"));
    let printed = Call::new(root.join("bin/ptxas"))
        .args([format!("-arch=sm_{newest}").as_str(), "v.ptx", "-o", "v.cubin"])
        .dir(scratch.path())
        .run();
    let current = printed.stderr.split("current version is '").nth(1).and_then(|rest| rest.split('\'').next());
    current.map(str::to_owned).ok_or_else(|| format!("ptxas does not print its ISA: {printed}"))
}

/// Returns the newest supported gcc and the first rejected clang, from the conditions in `crt/host_config.h`. The last
/// clang condition applies to all clangs.
pub(crate) fn host_limits(root: &Path) -> Result<(Option<u32>, Option<u32>), String> {
    let header = read(&root.join("include/crt/host_config.h"))?;
    let number = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    let tests = || header.lines().filter(|line| line.trim_start().starts_with("#if"));
    let gcc = tests().filter_map(|line| line.trim().strip_prefix("#if __GNUC__ > ")).filter_map(number).next_back();
    let clang = tests().filter_map(|line| line.split("(__clang_major__ >= ").nth(1)).filter_map(number).next_back();
    Ok((gcc, clang))
}

/// Assembles PTX of each arch for the GPUs at which the rule of [`Target::compatibility_with`] may change: those of the same major, their neighbours, the oldest and the newest.
fn ptx_compatibility(
    root: &Path,
    made: &BTreeSet<Arch>,
    scratch: &Scratch,
    row: &impl Fn(&str) -> String,
) -> Result<Vec<Measurement>, String> {
    let gpus: Vec<Arch> = made.iter().copied().filter(|arch| arch.suffix == Suffix::None).collect();
    let isa = newest_isa(root, made, scratch)?;
    let mut measured = Vec::new();
    for &arch in made {
        let file = format!("{arch}.ptx");
        scratch.file(
            &file,
            format!(".version {isa}\n.target sm_{arch}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"),
        );
        let (mut table, mut part) = (Vec::new(), Vec::new());
        let near = |&(index, gpu): &(usize, &Arch)| {
            let own_major = |index: usize| gpus.get(index).is_some_and(|gpu| gpu.cc().0 == arch.cc().0);
            let end = index == 0 || index + 1 == gpus.len();
            end || gpu.cc().0 == arch.cc().0 || own_major(index - 1) || own_major(index + 1)
        };
        for (_, gpu) in gpus.iter().enumerate().filter(near) {
            // PTX of an `a` arch can only be assembled for the GPU of that name.
            let own = if arch.suffix == Suffix::Specific && arch.number == gpu.number { arch } else { *gpu };
            let assembled = Call::new(root.join("bin/ptxas"))
                .args([format!("-arch=sm_{own}").as_str(), &file, "-o", "k.cubin"])
                .dir(scratch.path())
                .run();
            if assembled.status() == Some(0) {
                part.push(gpu.to_string());
            }
            if Target::Ptx(arch).compatibility_with(gpu.cc()) == Compatibility::Yes {
                table.push(gpu.to_string());
            }
        }
        measured.push(Measurement::new(row(&format!("GPUs for PTX of sm_{arch}")), table.join(" "), part.join(" ")));
    }
    Ok(measured)
}

/// Measures a cuDNN: its release, and the oldest GPU that its core library has code for.
pub(crate) fn cudnn(dir: &Path, cuda_major: u32) -> Result<Vec<Measurement>, String> {
    let header = read(&dir.join("include/cudnn_version.h"))?;
    let macro_ = |name: &str| {
        let value =
            header.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| format!("cudnn_version.h has no {name}"))
    };
    let version = Version::new(macro_("CUDNN_MAJOR ")?, macro_("CUDNN_MINOR ")?, macro_("CUDNN_PATCHLEVEL ")?);
    let row = |what: &str| format!("cuDNN {version} for CUDA {cuda_major}: {what}");
    let known = cudnn::RELEASES.releases_for(cuda_major).contains(&version);
    let mut measured = vec![Measurement::new(row("known release"), known, true)];

    let core = if version.major < 9 { "libcudnn_ops_infer.so.8" } else { "libcudnn_ops.so.9" };
    let path = dir.join("lib").join(core);
    let code = device_code(&fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    if code.is_empty() {
        return Err(format!("{}: no device code", path.display()));
    }
    let oldest =
        code.iter().filter(|target| matches!(target, Target::Cubin(_))).map(|target| target.base_arch().cc()).min();
    measured.push(Measurement::new(
        row("oldest GPU"),
        capability(cudnn::RELEASES.min_cc(version, cuda_major)),
        capability(oldest),
    ));
    if let Some(newest) = cudnn::RELEASES.newest_cc(version, cuda_major) {
        let served = code.iter().any(|target| target.compatibility_with(newest) == Compatibility::Yes);
        measured.push(Measurement::new(row(&format!("code for {}", capability(Some(newest)))), true, served));
    }
    Ok(measured)
}

/// Returns the targets of all fatbin containers in a file, found by their magic number. It only parses headers and is
/// independent of the tested reader.
fn device_code(file: &[u8]) -> BTreeSet<Target> {
    const MAGIC: &[u8; 8] = b"\x50\xed\x55\xba\x01\x00\x10\x00";
    let field = |at: usize, size: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    };
    let entry = |at: usize| -> Option<(Option<Target>, usize)> {
        let suffix = match field(at + 40, 8)? >> 20 & 3 {
            1 => Suffix::Specific,
            2 => Suffix::Family,
            _ => Suffix::None,
        };
        let arch = Arch { number: field(at + 28, 4)?.try_into().ok()?, suffix };
        let target = match field(at, 2)? {
            1 => Some(Target::Ptx(arch)),
            2 => Some(Target::Cubin(arch)),
            _ => None,
        };
        let next =
            at.checked_add(field(at + 4, 4)?.try_into().ok()?)?.checked_add(field(at + 8, 8)?.try_into().ok()?)?;
        Some((target, next))
    };
    let mut targets = BTreeSet::new();
    // The compiler aligns containers to eight bytes.
    for (index, word) in file.chunks_exact(8).enumerate() {
        if word != MAGIC {
            continue;
        }
        let start = index * 8;
        let end = field(start + 8, 8).and_then(|size| usize::try_from(size).ok()).map_or(0, |size| start + 16 + size);
        let mut at = start + 16;
        while at < end.min(file.len()) {
            let Some((target, next)) = entry(at).filter(|(_, next)| *next > at) else { break };
            targets.extend(target);
            at = next;
        }
    }
    targets
}

/// Measures a driver: the answers of its libcuda without a GPU.
pub(crate) fn driver(dir: &Path) -> Result<Vec<Measurement>, String> {
    let real = fs::canonicalize(dir.join("libcuda.so.1")).map_err(|error| format!("libcuda.so.1: {error}"))?;
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let release: DriverRelease = name
        .strip_prefix("libcuda.so.")
        .and_then(|release| release.parse().ok())
        .ok_or_else(|| format!("{name} does not name its release"))?;
    let scratch = Scratch::new("measure-driver");
    scratch.file("ask.c", ASK);
    let _ = Call::new("cc").args(["-o", "ask", "ask.c", "-ldl"]).dir(scratch.path()).run().success();
    let printed = Call::new(scratch.path().join("ask")).arg(&real).run().success();
    let answer = printed.stdout.trim().parse().map_err(|_| format!("no number: {printed}"))?;
    let table = tables::driver_supports(release).exact_version();
    Ok(vec![Measurement::new(
        format!("driver {release}: CUDA version"),
        table.map_or("not known exactly".to_owned(), |version| version.to_string()),
        CudaVersion::from_int(answer),
    )])
}

/// Program that prints the result of `cuDriverGetVersion` of a libcuda.
const ASK: &str = r#"
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    int version = 0;
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : 0;
    int (*ask)(int *) = library ? (int (*)(int *))dlsym(library, "cuDriverGetVersion") : 0;
    if (!ask || ask(&version)) {
        fprintf(stderr, "%s\n", ask ? "it answers an error" : dlerror());
        return 1;
    }
    printf("%d\n", version);
    return 0;
}
"#;

/// Runs a tool of the toolkit in the scratch directory. Returns its stdout and stderr.
fn call(root: &Path, tool: &str, arguments: &[&str], scratch: &Scratch) -> Result<String, String> {
    let outcome = Call::new(root.join("bin").join(tool)).args(arguments).dir(scratch.path()).run();
    match outcome.status() {
        Some(0) => Ok(outcome.stdout + &outcome.stderr),
        _ => Err(outcome.to_string()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn cubin(word: &str) -> Option<Arch> {
    match word.parse() {
        Ok(Target::Cubin(arch)) => Some(arch),
        _ => None,
    }
}

fn names(archs: impl IntoIterator<Item = Arch>) -> String {
    let sorted: BTreeSet<Arch> = archs.into_iter().collect();
    sorted.iter().map(|arch| format!("sm_{arch}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn targets(targets: Vec<Target>) -> String {
    let sorted: BTreeSet<Target> = targets.into_iter().collect();
    sorted.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

pub(crate) fn limit(number: Option<u32>) -> String {
    number.map_or("none".to_owned(), |number| number.to_string())
}

fn capability(cc: Option<Cc>) -> String {
    cc.map_or("none".to_owned(), |(major, minor)| format!("{major}.{minor}"))
}

/// Returns the names of all parts that can be measured.
pub(crate) fn all() -> Vec<String> {
    let toolkits = TOOLKITS.iter().map(|version| format!("cuda-{version}"));
    let cudnns = CUDNNS.iter().map(|(version, _)| format!("cudnn-{version}"));
    let drivers = DRIVERS.iter().map(|version| format!("driver-{version}"));
    let assemblers = ASSEMBLERS.iter().map(|version| format!("ptxas-{version}"));
    toolkits.chain(assemblers).chain(cudnns).chain(drivers).collect()
}
