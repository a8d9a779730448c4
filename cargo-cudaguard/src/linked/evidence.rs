//! Facts in a linked file about the tools that built it, independent of the build's environment: the releases of the
//! toolkits that compiled its kernels, the release of the cudart in it, and the compilers of its host code.
//!
//! `docs/internals/evidence.md` describes the evidence for each fact. A fact that the file does not contain is absent.

use crate::binary::ar;
use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;

use crate::binary::elf::{self, Elf};
use crate::binary::file::{Binary, BinaryKind, only_value};
use crate::binary::kernels::{Kernels, Known, Provenance};
use crate::binary::pe::Pe;
use crate::knowledge::vendor::CUDART;
use crate::knowledge::vendor::HYBRID_CUDART;
use cudaguard::internal::bytes::u32_at;
use cudaguard::internal::linkage::Linkage;
use cudaguard::internal::tables;
use cudaguard::internal::version::CudaVersion;
use object::elf::{EM_AARCH64, EM_X86_64, PF_X, PT_LOAD, SHF_EXECINSTR, SHT_PROGBITS};
use serde::{Serialize, Serializer};

mod host;
mod included;
mod link_evidence;

pub use host::HostCode;
pub use included::{Included, included_headers};
pub use link_evidence::{Kernel, LinkEvidence};

/// The build facts of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Provenance of the kernels, each with the number of its container.
    pub kernels: Vec<(usize, Provenance)>,
    /// Release of the cudart in the file: one, or none if it is unknown.
    pub cudart: Vec<CudaVersion>,
    /// Compilers of the host code, as `.comment` names them.
    pub compilers: Vec<String>,
}

impl Evidence {
    /// Collects the facts of a file from its contents and its kernels.
    pub fn from_binary(binary: &Binary, kernels: &Kernels) -> Self {
        // The code of a large library is searched only if the library contains a cudart.
        let linked = matches!(binary.kind, BinaryKind::Executable | BinaryKind::SharedLibrary);
        Self::from_data(binary.data(), kernels, !linked || binary.linkage(&CUDART) == Linkage::Static)
    }

    /// Collects the facts from the bytes of a file.
    pub fn in_bytes(data: &[u8], kernels: &Kernels) -> Self {
        Self::from_data(data, kernels, true)
    }

    fn from_data(data: &[u8], kernels: &Kernels, code: bool) -> Self {
        let (mut cudart, mut compilers) = (BTreeMap::new(), BTreeSet::new());
        if ar::is_archive(data) {
            for member in ar::archive_members(data).into_iter().flatten().map_while(Result::ok) {
                if let Some(elf) = member.data.and_then(|data| Elf::parse(data).ok()) {
                    collect_evidence(&elf, code, &mut cudart, &mut compilers);
                }
            }
        } else if let Ok(elf) = Elf::parse(data) {
            collect_evidence(&elf, code, &mut cudart, &mut compilers);
        } else if let (true, Ok(image)) = (code && Pe::is_pe(data), Pe::parse(data)) {
            collect_cudart_of_pe(&image, &mut cudart);
        }
        Self {
            kernels: kernels.provenance(data),
            cudart: likely_release(&cudart),
            compilers: compilers.into_iter().collect(),
        }
    }

    /// Returns each provenance of the kernels with its number of containers.
    pub fn kernel_makers(&self) -> Vec<(Provenance, usize)> {
        let mut counts = BTreeMap::new();
        for (_, made) in &self.kernels {
            *counts.entry(*made).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }

    /// Returns true if the file contains no facts.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The `evidence` object of `inspect`.
#[derive(Serialize)]
struct EvidenceView<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<MakerView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cudart: Vec<CudartView>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    compilers: &'a [String],
}

#[derive(Serialize)]
struct MakerView {
    kind: String,
    at_least: Option<String>,
    release: Option<String>,
    known: &'static str,
    containers: usize,
}

#[derive(Serialize)]
struct CudartView {
    version: String,
    known: &'static str,
}

impl MakerView {
    fn new((made, containers): (Provenance, usize)) -> Self {
        let (major, minor) = made.release;
        let release = format!("{major}.{minor}");
        let (at_least, release) = if made.known == Known::Isa { (Some(release), None) } else { (None, Some(release)) };
        Self { kind: made.kind.to_string(), at_least, release, known: made.known.name(), containers }
    }
}

impl Serialize for Evidence {
    fn serialize<S: Serializer>(&self, json: S) -> Result<S::Ok, S::Error> {
        let cudart = self.cudart.iter();
        let view = EvidenceView {
            kernels: self.kernel_makers().into_iter().map(MakerView::new).collect(),
            cudart: cudart.map(|version| CudartView { version: version.to_string(), known: "code" }).collect(),
            compilers: &self.compilers,
        };
        view.serialize(json)
    }
}

/// Number of occurrences of each constant in code of the form in which a cudart stores its release.
type Counts = BTreeMap<u32, usize>;

/// Limits above what real files contain, because the table of a damaged file must not fill the memory.
const MOST_COMPILERS: usize = 16;
const LONGEST_COMPILER: usize = 200;

fn collect_evidence(elf: &Elf<'_>, code: bool, cudart: &mut Counts, compilers: &mut BTreeSet<String>) {
    for section in elf.sections().filter(|section| section.name == ".comment") {
        for text in
            section.data.split(|byte| *byte == 0).filter(|text| !text.is_empty() && text.len() <= LONGEST_COMPILER)
        {
            if compilers.len() < MOST_COMPILERS {
                compilers.insert(String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    let count: fn(&[u8], &mut Counts) = match elf.machine {
        EM_X86_64 if code => on_x86_64,
        EM_AARCH64 if code => on_aarch64,
        _ => return,
    };
    let sections =
        elf.sections().filter(|section| section.kind == SHT_PROGBITS && section.flags.contains(SHF_EXECINSTR));
    let mut parts: Vec<(u64, &[u8])> = sections.map(|section| (section.offset, section.data)).collect();
    if parts.is_empty() {
        let segments = elf.segments().filter(|segment| segment.kind == PT_LOAD && segment.flags.contains(PF_X));
        parts.extend(segments.map(|segment| (segment.offset, segment.data)));
    }
    for ((_, data), rest) in parts.iter().zip(elf::without_overlaps(parts.iter().copied())) {
        // Code that overlaps other code was not written by a linker.
        if rest.len() == data.len() {
            count(data, cudart);
        }
    }
}

/// Counts the releases in the machine code of a PE file. Measured in twelve DLLs of CUDA 11.8 to 13.3.
fn collect_cudart_of_pe(image: &Pe<'_>, counts: &mut Counts) {
    if image.machine() != EM_X86_64 {
        return;
    }
    let sections: Vec<_> = image.sections().collect();
    let rests = elf::without_overlaps(sections.iter().map(|section| (section.offset, section.data)));
    let pieces: Vec<_> = sections.iter().zip(rests).collect();
    let hybrid = memmem::Finder::new(HYBRID_CUDART.as_bytes());
    let is_hybrid = pieces.iter().any(|(section, data)| !section.is_code && hybrid.find(data).is_some());
    for (_, code) in pieces.iter().filter(|(section, _)| section.is_code) {
        // `movl $12020, (%rcx)` after one `ret` and before `xor %eax, %eax`.
        for (at, release) in stores(code, b"\xc7\x01") {
            let is_getter = at.checked_sub(1).is_some_and(|before| code[before] == 0xc3);
            if is_getter && code.get(at + 6..).is_some_and(|rest| rest.starts_with(b"\x33\xc0")) {
                *counts.entry(release).or_default() += 2;
            }
        }
        // `movl $13030, 48(%rsp)`: an argument for the runtime that the driver brings.
        for (_, release) in stores(code, b"\xc7\x44\x24\x30").filter(|_| is_hybrid) {
            *counts.entry(release).or_default() += 2;
        }
    }
}

/// Returns the offsets of an instruction that stores what may be a release, and the releases.
fn stores(code: &[u8], instruction: &'static [u8]) -> impl Iterator<Item = (usize, u32)> {
    memmem::find_iter(code, instruction).filter_map(move |at| {
        let value = u32_at(code, at + instruction.len())?;
        CudaVersion::is_plausible(value).then_some((at, value))
    })
}

/// `movl $13000, (%rdi)`: `cudaRuntimeGetVersion` stores its release, in two copies of the code.
fn on_x86_64(code: &[u8], counts: &mut Counts) {
    for (_, release) in stores(code, b"\xc7\x07") {
        *counts.entry(release).or_default() += 1;
    }
}

/// Counts `mov w19, #13000` next to `mov w25, #13003`, which only a cudart contains. The pair counts twice, like the
/// two stores on x86-64.
fn on_aarch64(code: &[u8], counts: &mut Counts) {
    const MOVE: u32 = 0x5280_0000 >> 21;
    let mut before: Option<u32> = None;
    for word in code.chunks_exact(4) {
        let this = u32_at(word, 0).filter(|word| word >> 21 == MOVE).map(|word| word >> 5 & 0xffff);
        if let Some((one, other)) = before.zip(this)
            && one.abs_diff(other) == 3
            && CudaVersion::is_plausible(one.min(other))
        {
            *counts.entry(one.min(other)).or_default() += 2;
        }
        before = this;
    }
}

/// Returns the existing release that occurs as often as in a cudart. Other code may store such a number by chance, so
/// the release is unknown if there are several.
fn likely_release(counts: &Counts) -> Vec<CudaVersion> {
    // Any release that is older or newer than the tables may exist.
    let known: Vec<_> = tables::toolkit_rows().iter().map(|row| row.version).collect();
    let often = counts.iter().filter(|(_, count)| **count >= 2 && **count % 2 == 0);
    let releases = often.map(|(value, _)| CudaVersion::from_int(*value)).filter(|version| {
        known.contains(version) || known.iter().all(|row| row > version) || known.iter().all(|row| row < version)
    });
    only_value(releases).into_iter().collect()
}

#[cfg(test)]
mod tests;
