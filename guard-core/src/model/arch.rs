//! GPU architectures in every spelling of common tools, and the GPUs that run each.
//!
//! Each spelling keeps the meaning of its tool: CMake's plain `90` is machine code and PTX, PyTorch's `9.0` is machine
//! code alone, nvcc's `-arch=sm_90` is both. [`parse_list`] parses variables, policy and builder, [`nvcc_flags`] parses
//! nvcc's command line.

use std::fmt;
use std::str::FromStr;

use crate::text::lists::IteratorExt as _;
use crate::text::shell_words::split_words;

/// The number of an `sm_` or `compute_` name, with its suffix: `90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// 75, 90, 100, 120: ten times the major plus the minor.
    pub number: u16,
    /// Its suffix.
    pub suffix: Suffix,
}

/// The suffix of an arch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suffix {
    /// No suffix: forward compatible by the general rule.
    #[default]
    None,
    /// `f`: its family.
    Family,
    /// `a`: exactly this compute capability.
    Specific,
}

/// A compilation target: machine code or PTX of an arch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// `sm_90a`.
    Cubin(Arch),
    /// `compute_90`.
    Ptx(Arch),
}

/// An entry of an arch list: a target, or a word that needs a toolkit or a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArchRequest {
    /// `sm_90a`, `compute_90`.
    Target(Target),
    /// `all`: every arch of the toolkit ([`crate::knowledge::tables::expand_all`]).
    All,
    /// `all-major`: one arch of each major ([`crate::knowledge::tables::expand_all_major`]).
    AllMajor,
    /// `native`: the GPU of the building machine.
    Native,
    /// CMake's `OFF`: no arch flags; the project's own flags decide.
    Off,
}

/// The dialect of a list. Every dialect accepts every unambiguous spelling. They differ in plain numbers and
/// generation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `CUDAARCHS`, `CMAKE_CUDA_ARCHITECTURES`: `90` is `sm_90` and `compute_90`; false constants mean `OFF`.
    Cmake,
    /// `TORCH_CUDA_ARCH_LIST`: `9.0` is `sm_90`; generations have names (`Ampere`).
    Torch,
    /// `CUDA_COMPUTE_CAP`: `90` names a GPU. Crates compile machine code, PTX or both (`cudaforge` compiles `sm_90a`),
    /// so it means the minimum that all of them support: `sm_90`.
    ComputeCap,
    /// `[gpu] archs` and the builder: plain numbers as in CMake, `9.0` as in PyTorch.
    Policy,
}

/// A word that names no architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchError {
    /// The word as written.
    pub word: String,
    /// The problem and the expected form, as a clause after the word.
    pub reason: String,
}

impl fmt::Display for ArchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.word, self.reason)
    }
}

impl std::error::Error for ArchError {}

impl ArchError {
    fn new(word: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { word: word.into(), reason: reason.into() }
    }

    fn unknown_arch(word: &str) -> Self {
        Self::new(
            word,
            "is not an architecture; expected a spelling such as sm_90, compute_90, 90, 90a, 90-real, 90-virtual, 9.0 or \
             9.0+PTX",
        )
    }

    fn lto_only(word: &str) -> Self {
        Self::new(
            word,
            "is LTO-IR, which runs on no GPU before it is linked; write the machine code (sm_…) or PTX (compute_…) that it \
             becomes",
        )
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Specific => "a",
        };
        write!(f, "{}{suffix}", self.number)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin(arch) => write!(f, "sm_{arch}"),
            Self::Ptx(arch) => write!(f, "compute_{arch}"),
        }
    }
}

impl fmt::Display for ArchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(target) => target.fmt(f),
            Self::All => f.write_str("all"),
            Self::AllMajor => f.write_str("all-major"),
            Self::Native => f.write_str("native"),
            Self::Off => f.write_str("OFF"),
        }
    }
}

impl FromStr for Arch {
    type Err = ArchError;

    /// Parses `90`, `90a`, `100f`: the number as in an `sm_` name.
    fn from_str(word: &str) -> Result<Self, ArchError> {
        let (digits, suffix) = split_suffix(word);
        // Two or three digits, because every minor has one digit: `9` is a mistake.
        if !matches!(digits.len(), 2 | 3) || digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ArchError::unknown_arch(word));
        }
        let number = digits.parse().map_err(|_| ArchError::unknown_arch(word))?;
        Ok(Self { number, suffix })
    }
}

impl FromStr for Target {
    type Err = ArchError;

    /// Parses nvcc's names: `sm_90a`, `compute_90`.
    fn from_str(word: &str) -> Result<Self, ArchError> {
        let Some((kind, arch)) = word.split_once('_') else { return Err(ArchError::unknown_arch(word)) };
        match (kind, arch.parse()) {
            ("sm", Ok(arch)) => Ok(Self::Cubin(arch)),
            ("compute", Ok(arch)) => Ok(Self::Ptx(arch)),
            ("lto", Ok(_)) => Err(ArchError::lto_only(word)),
            _ => Err(ArchError::unknown_arch(word)),
        }
    }
}

impl Arch {
    /// Returns the arch without suffix.
    pub const fn without_suffix(number: u16) -> Self {
        Self { number, suffix: Suffix::None }
    }

    /// Returns the arch of a compute capability: 9.0 → 90. `None` if no such name exists.
    pub fn from_cc(cc: (u8, u8)) -> Option<Self> {
        (cc.0 >= 1 && cc.0 <= 99 && cc.1 <= 9).then(|| Self::without_suffix(u16::from(cc.0) * 10 + u16::from(cc.1)))
    }

    /// Returns (major, minor) of its compute capability: 90 → 9.0, 103 → 10.3.
    pub const fn cc(self) -> (u8, u8) {
        #[allow(clippy::cast_possible_truncation)]
        ((self.number / 10) as u8, (self.number % 10) as u8)
    }
}

impl Target {
    /// Returns the arch of either kind.
    pub const fn base_arch(self) -> Arch {
        match self {
            Self::Cubin(arch) | Self::Ptx(arch) => arch,
        }
    }
}

impl From<Target> for ArchRequest {
    fn from(target: Target) -> Self {
        Self::Target(target)
    }
}

impl ArchRequest {
    /// Returns the target, if it is one.
    pub const fn as_target(self) -> Option<Target> {
        match self {
            Self::Target(target) => Some(target),
            _ => None,
        }
    }
}

impl Dialect {
    /// Returns the dialect of an environment variable; `None` for variables without archs.
    pub fn from_variable(name: &str) -> Option<Self> {
        match name {
            "CUDAARCHS" | "CMAKE_CUDA_ARCHITECTURES" => Some(Self::Cmake),
            "TORCH_CUDA_ARCH_LIST" => Some(Self::Torch),
            "CUDA_COMPUTE_CAP" => Some(Self::ComputeCap),
            _ => None,
        }
    }
}

/// Formats requests so that [`parse_list`] parses them in any dialect: `all`, `sm_90,compute_90`.
pub fn join_requests(requests: &[ArchRequest]) -> String {
    requests.iter().join(",")
}

/// Parses a list separated by commas, semicolons or blanks: each request once, in the order of first mention. An
/// empty list is valid.
pub fn parse_list(text: &str, dialect: Dialect) -> Result<Vec<ArchRequest>, ArchError> {
    let words: Vec<&str> = text
        .split(|c: char| matches!(c, ',' | ';') || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>();
    let mut requests = Vec::new();
    for &word in &words {
        for request in self::parse_word(word, dialect)? {
            if request == ArchRequest::Off && words.len() > 1 {
                return Err(ArchError::new(word, "cannot be combined with architectures in one list"));
            }
            push_unique(&mut requests, request);
        }
    }
    Ok(requests)
}

/// Generation names of PyTorch with their archs (`torch/utils/cpp_extension.py`, `named_arches`).
const TORCH_NAMES: &[(&str, &str)] = &[
    ("Kepler+Tesla", "3.7"),
    ("Kepler", "3.5+PTX"),
    ("Maxwell+Tegra", "5.3"),
    ("Maxwell", "5.0;5.2+PTX"),
    ("Pascal", "6.0;6.1+PTX"),
    ("Volta+Tegra", "7.2"),
    ("Volta", "7.0+PTX"),
    ("Turing", "7.5+PTX"),
    ("Ampere+Tegra", "8.7"),
    ("Ampere", "8.0;8.6+PTX"),
    ("Ada", "8.9+PTX"),
    ("Hopper", "9.0+PTX"),
    // 2.7 uses this one; later releases add 10.3 and 12.1. This is the minimum.
    ("Blackwell", "10.0;12.0+PTX"),
];

fn parse_word(word: &str, dialect: Dialect) -> Result<Vec<ArchRequest>, ArchError> {
    match word {
        "all" => return Ok(vec![ArchRequest::All]),
        "all-major" => return Ok(vec![ArchRequest::AllMajor]),
        "native" => return Ok(vec![ArchRequest::Native]),
        _ => {}
    }
    // PyTorch's CMake files also accept these. Each release defines the common archs differently, and `Auto` queries
    // the installed GPU, so neither declares an arch.
    if dialect == Dialect::Torch {
        match word {
            "All" => return Ok(vec![ArchRequest::All]),
            "Common" | "Auto" => return Ok(Vec::new()),
            _ => {}
        }
    }
    // CMake's false constants; a plain 0 is no arch in any dialect.
    let off: &[&str] =
        if dialect == Dialect::Cmake { &["off", "0", "no", "n", "false", "ignore", "notfound"] } else { &["off"] };
    if off.iter().any(|constant| word.eq_ignore_ascii_case(constant)) {
        return Ok(vec![ArchRequest::Off]);
    }
    if let Some(&(_, archs)) = TORCH_NAMES.iter().find(|(name, _)| *name == word) {
        if dialect == Dialect::Torch {
            return parse_list(archs, Dialect::Torch);
        }
        return Err(ArchError::new(
            word,
            format!("is the name of a GPU generation, which only TORCH_CUDA_ARCH_LIST accepts; write {archs}"),
        ));
    }
    if word.contains('_') {
        return Ok(vec![word.parse::<Target>()?.into()]);
    }
    if let Some(number) = word.strip_suffix("-real") {
        return Ok(vec![Target::Cubin(parse_number(number, word)?).into()]);
    }
    if let Some(number) = word.strip_suffix("-virtual") {
        return Ok(vec![Target::Ptx(parse_number(number, word)?).into()]);
    }
    let with_ptx = word.strip_suffix("+PTX");
    let arch = parse_number(with_ptx.unwrap_or(word), word)?;
    if with_ptx.is_none() && (word.contains('.') || matches!(dialect, Dialect::ComputeCap | Dialect::Torch)) {
        Ok(vec![Target::Cubin(arch).into()])
    } else {
        Ok(vec![Target::Cubin(arch).into(), Target::Ptx(arch).into()])
    }
}

/// Parses `90a` or `9.0a`.
fn parse_number(text: &str, word: &str) -> Result<Arch, ArchError> {
    let Some((major, rest)) = text.split_once('.') else {
        return text.parse().map_err(|_| ArchError::unknown_arch(word));
    };
    let (minor, _) = split_suffix(rest);
    if !matches!(major.len(), 1 | 2) || minor.len() != 1 {
        return Err(ArchError::unknown_arch(word));
    }
    format!("{major}{rest}").parse().map_err(|_| ArchError::unknown_arch(word))
}

fn split_suffix(text: &str) -> (&str, Suffix) {
    if let Some(rest) = text.strip_suffix('a') {
        (rest, Suffix::Specific)
    } else if let Some(rest) = text.strip_suffix('f') {
        (rest, Suffix::Family)
    } else {
        (text, Suffix::None)
    }
}

fn push_unique(requests: &mut Vec<ArchRequest>, request: ArchRequest) {
    if !requests.contains(&request) {
        requests.push(request);
    }
}

/// The requests of nvcc's flags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvccFlags {
    /// Targets and symbolic requests, each once, in the order of first mention.
    pub requests: Vec<ArchRequest>,
    /// Additional PTX of nvcc 13 for an `-arch` with a suffix and no `-code`: without the suffix (`compute_90` for
    /// `-arch=sm_90a`; measured with 13.0, 13.2 and 13.5).
    pub besides_from_13: Option<Target>,
    /// `lto_90`: link-time code, which no GPU can run until nvlink compiles it.
    pub lto: Vec<Arch>,
    /// `--options-file`: files with more flags.
    pub options_files: Vec<String>,
    /// `-ccbin`: the host compiler in the flags.
    pub ccbin: Option<String>,
}

/// nvcc's options with any text in the next word (`nvcc --help` of 11.8 and 13.5), long and short. That word is no
/// option of nvcc (`-Xcompiler -arch=…` is for the host compiler).
const TEXT_FOLLOWS: &[(&str, &str)] = &[
    ("--Werror", "-Werror"),
    ("--apply-controls", "-apply-controls"),
    ("--archive-options", "-Xarchive"),
    ("--archiver-binary", "-arbin"),
    ("--compiler-options", "-Xcompiler"),
    ("--define-macro", "-D"),
    ("--dependency-drive-prefix", "-ddp"),
    ("--dependency-output", "-MF"),
    ("--dependency-target-name", "-MT"),
    ("--diag-error", "-diag-error"),
    ("--diag-suppress", "-diag-suppress"),
    ("--diag-warn", "-diag-warn"),
    ("--drive-prefix", "-dp"),
    ("--entries", "-e"),
    ("--fdevice-time-trace", "-fdevice-time-trace"),
    ("--frandom-seed", "-frandom-seed"),
    ("--include-path", "-I"),
    ("--input-drive-prefix", "-idp"),
    ("--keep-dir", "-keep-dir"),
    ("--libdevice-directory", "-ldir"),
    ("--library", "-l"),
    ("--library-path", "-L"),
    ("--linker-options", "-Xlinker"),
    ("--nvlink-options", "-Xnvlink"),
    ("--nvprune-options", "-Xnvprune"),
    ("--optimization-info", "-opt-info"),
    ("--output-directory", "-odir"),
    ("--output-file", "-o"),
    ("--pre-include", "-include"),
    ("--ptxas-options", "-Xptxas"),
    ("--run-args", "-run-args"),
    ("--std", "-std"),
    ("--system-include", "-isystem"),
    ("--target-directory", "-target-dir"),
    ("--tileiras-options", "-Xtileiras"),
    ("--time", "-time"),
    ("--undefine-macro", "-U"),
    ("--x", "-x"),
];

/// Parses nvcc's flags (`NVCC_PREPEND_FLAGS`, `NVCC_APPEND_FLAGS`, the arguments after the compiler in `CUDACXX`):
/// `-arch`, `-code`, `-gencode` and their long forms, with `=` or a blank, quoted or not. Other arguments are ignored.
///
/// As in nvcc 13.0, `-arch` and `-gencode` add up, the last of several `-arch` counts, `-arch=sm_90` alone is machine
/// code and PTX, and only a virtual `-arch` is valid together with `-code`.
pub fn nvcc_flags(text: &str) -> Result<NvccFlags, ArchError> {
    let words = split_words(text);
    let mut words = words.iter().map(String::as_str);
    let mut flags = NvccFlags::default();
    let mut arch: Option<String> = None;
    let mut codes: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, Some(value)),
            _ => (word, None),
        };
        let values = &mut attached.into_iter().chain(&mut words);
        match name {
            "-arch" | "--gpu-architecture" => arch = Some(flag_value(word, values)?.to_owned()),
            "-code" | "--gpu-code" => codes.extend(flag_value(word, values)?.split(',').map(str::to_owned)),
            "-gencode" | "--generate-code" => generate_code(flag_value(word, values)?, &mut flags)?,
            "-optf" | "--options-file" => {
                flags.options_files.extend(flag_value(word, values)?.split(',').map(str::to_owned));
            }
            "-ccbin" | "--compiler-bindir" => flags.ccbin = Some(flag_value(word, values)?.to_owned()),
            _ if TEXT_FOLLOWS.iter().any(|&(long, short)| name == long || name == short) => {
                values.next();
            }
            _ => {}
        }
    }
    if arch.is_none() {
        // The -arch=compute_… that nvcc requires for -code may be in the build script's own flags.
        for code in &codes {
            nvcc_code(code, &mut flags)?;
        }
    }
    if let Some(arch) = arch {
        match (arch.as_str(), codes.is_empty()) {
            ("all", true) => push_unique(&mut flags.requests, ArchRequest::All),
            ("all-major", true) => push_unique(&mut flags.requests, ArchRequest::AllMajor),
            ("native", true) => push_unique(&mut flags.requests, ArchRequest::Native),
            (_, true) => {
                nvcc_code(&arch, &mut flags)?;
                if let Ok(target) = arch.parse::<Target>() {
                    let made_of = target.base_arch();
                    push_unique(&mut flags.requests, Target::Ptx(made_of).into());
                    flags.besides_from_13 =
                        (made_of.suffix != Suffix::None).then(|| Target::Ptx(Arch::without_suffix(made_of.number)));
                }
            }
            (_, false) => {
                if !matches!(arch.parse(), Ok(Target::Ptx(_))) {
                    return Err(ArchError::new(
                        format!("-arch={arch}"),
                        "is combined with -code; expected a virtual architecture, for example -arch=compute_90",
                    ));
                }
                for code in &codes {
                    nvcc_code(code, &mut flags)?;
                }
            }
        }
    }
    Ok(flags)
}

fn flag_value<'w>(flag: &str, values: &mut impl Iterator<Item = &'w str>) -> Result<&'w str, ArchError> {
    values.next().ok_or_else(|| ArchError::new(flag, "has no value; expected one after it"))
}

/// Parses `arch=compute_90,code=[sm_90,compute_90]`, `code=sm_90,arch=…`, with the list in brackets or quotes.
fn generate_code(spec: &str, flags: &mut NvccFlags) -> Result<(), ArchError> {
    let mut depth = false;
    let parts = spec
        .split(|c: char| {
            match c {
                '[' => depth = true,
                ']' => depth = false,
                '"' | '\'' => depth = !depth,
                _ => {}
            }
            c == ',' && !depth
        })
        .collect::<Vec<_>>();
    let (mut arch, mut code): (_, Option<String>) = (None, None);
    for part in parts {
        match (part.split_once('='), &mut code) {
            (Some(("arch", value)), _) if arch.is_none() => arch = Some(value),
            (Some(("code", value)), None) => code = Some(value.to_owned()),
            // A shell has removed the quotes around the list.
            (None, Some(code)) => {
                code.push(',');
                code.push_str(part);
            }
            _ => {
                let reason = "is not a form that nvcc accepts; expected arch=compute_90,code=[sm_90,compute_90]";
                return Err(ArchError::new(format!("-gencode {spec}"), reason));
            }
        }
    }
    let reason = match (arch.map(str::parse), code) {
        (Some(Ok(Target::Ptx(_))), Some(code)) => {
            let mut codes = code.trim_matches(['[', ']', '"', '\'']).split(',');
            return codes.try_for_each(|code| nvcc_code(code, flags));
        }
        (None, _) => "has no arch; expected arch=compute_90,code=sm_90",
        (_, None) => "has no code; expected arch=compute_90,code=sm_90",
        _ => "has no virtual architecture after arch=; expected arch=compute_90",
    };
    Err(ArchError::new(format!("-gencode {spec}"), reason))
}

fn nvcc_code(code: &str, flags: &mut NvccFlags) -> Result<(), ArchError> {
    let code = code.trim();
    if let Some(Ok(arch)) = code.strip_prefix("lto_").map(str::parse) {
        if !flags.lto.contains(&arch) {
            flags.lto.push(arch);
        }
        return Ok(());
    }
    push_unique(&mut flags.requests, code.parse::<Target>()?.into());
    Ok(())
}

#[cfg(test)]
mod tests;
