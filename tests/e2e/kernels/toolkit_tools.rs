//! Calls of nvcc and cuobjdump.

use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::kernels::{ImageKind, KernelImage, Kernels, Role};
use cudaguard_tests::parts;
use cudaguard_tests::run::Call;
use cudaguard_tests::scratch::Scratch;

pub(crate) const KERNEL: &str = "__global__ void k(int *p) { p[threadIdx.x] = 1; }\n";
pub(crate) const MAIN: &str = "int main() { return cudaGetLastError(); }\n";

/// Directory with sources, and the nvcc of one toolkit.
pub(crate) struct Bench {
    pub(crate) toolkit: &'static str,
    root: PathBuf,
    dir: Scratch,
}

impl Bench {
    pub(crate) fn new(toolkit: &'static str) -> Self {
        let root = parts::cuda(toolkit);
        let dir = Scratch::new(&format!("kernels-{toolkit}"));
        dir.file("k.cu", format!("{KERNEL}{MAIN}"));
        dir.file("alone.cu", KERNEL);
        dir.file("host.cu", "int host() { return 1; }\n");
        dir.file("a.cu", format!("__device__ int f(int);\n__global__ void k(int *p) {{ *p = f(1); }}\n{MAIN}"));
        dir.file("b.cu", "__device__ int f(int x) { return x + 1; }\n");
        Self { toolkit, root, dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        self.dir.file(name, content)
    }

    /// Runs nvcc with `arguments`, split at blanks.
    pub(crate) fn nvcc(&self, arguments: &str) {
        let mut call = Call::new(self.root.join("bin/nvcc")).dir(self.dir.path());
        if self.toolkit == "11.8" {
            // The newest supported host compiler of 11.8 is gcc 11.
            call = call.arg("-allow-unsupported-compiler");
        }
        let _ = call.args(arguments.split_whitespace()).run().success();
    }

    /// Runs a shell command with tools of this machine.
    pub(crate) fn tool(&self, line: &str) {
        let _ = Call::new("sh").dir(self.dir.path()).args(["-ec", line]).run().success();
    }

    pub(crate) fn read(&self, name: &str) -> Kernels {
        read(&self.path(name))
    }

    /// Compiles and reads a file, and compares the result with this toolkit's cuobjdump.
    pub(crate) fn made(&self, arguments: &str, name: &str) -> Kernels {
        self.nvcc(&format!("{arguments} -o {name}"));
        let kernels = self.read(name);
        assert_listed_alike(self.toolkit, &self.path(name), &kernels);
        kernels
    }
}

pub(crate) fn read(path: &Path) -> Kernels {
    let kernels = cargo_cudaguard::binary::kernels::read_kernels(path).unwrap();
    assert_eq!(kernels.warnings(), [""; 0], "{}", path.display());
    kernels
}

/// Returns a `-gencode` option for each word, such as `75:sm_75 90:sm_90,compute_90`.
pub(crate) fn gencode(asked: &str) -> String {
    let one = |word: &str| {
        let (compute, codes) = word.split_once(':').unwrap();
        format!("-gencode arch=compute_{compute},code=[{codes}]")
    };
    asked.split_whitespace().map(one).collect::<Vec<_>>().join(" ")
}

/// Returns the names of all requested codes, in the form that [`found`] returns. The suffix is that of the `compute_` name:
/// code for a member of a family is limited to the family.
pub(crate) fn names(asked: &str) -> Vec<String> {
    let mut names: Vec<String> = asked
        .split_whitespace()
        .flat_map(|word| {
            let (compute, codes) = word.split_once(':').unwrap();
            let letter = compute.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
            codes.split(',').map(move |code| format!("{}{letter}", code.trim_end_matches(['a', 'f'])))
        })
        .collect();
    names.sort();
    names
}

/// Returns the archs of each container with this role, sorted.
pub(crate) fn found(kernels: &Kernels, role: Role) -> Vec<Vec<String>> {
    let containers = kernels.containers().iter().filter(|container| container.role == role);
    let archs = |entries: &[KernelImage]| {
        let mut archs: Vec<String> = entries.iter().map(KernelImage::arch_name).collect();
        archs.sort();
        archs
    };
    containers.map(|container| archs(kernels.entries_of(container))).collect()
}

/// Lists the archs of a file's cubins and of its PTX with cuobjdump, sorted. Returns its output as `Err` if it fails.
pub(crate) fn cuobjdump(toolkit: &str, file: &Path) -> Result<(Vec<String>, Vec<String>), String> {
    let tool = parts::cuda(toolkit).join("bin/cuobjdump");
    let outcome = Call::new(tool).args(["-all", "-lelf", "-lptx"]).arg(file).run();
    if outcome.status() != Some(0) || outcome.stderr.contains("fatal") {
        return Err(format!("{outcome}"));
    }
    let listed = |kind: &str, ending: &str| {
        let lines = outcome.stdout.lines().filter(|line| line.starts_with(kind));
        let mut archs: Vec<String> = lines
            .filter_map(|line| line.trim_end().strip_suffix(ending)?.rsplit_once(".sm_"))
            .map(|(_, arch)| arch.to_owned())
            .collect();
        archs.sort();
        archs
    };
    Ok((listed("ELF file", ".cubin"), listed("PTX file", ".ptx")))
}

/// Returns the list that cuobjdump would print: it reads only nvcc's two sections, and its list names `f` cubins without
/// the suffix (its long dump has the suffix).
pub(crate) fn as_cuobjdump(kernels: &Kernels, letters: Letters) -> (Vec<String>, Vec<String>) {
    let seen = kernels
        .containers()
        .iter()
        .filter(|container| matches!(kernels.section_name(container), ".nv_fatbin" | "__nv_relfatbin" | ""));
    let (mut cubins, mut ptx) = (Vec::new(), Vec::new());
    for entry in seen.flat_map(|container| kernels.entries_of(container)) {
        let name = entry.arch.to_string();
        let name = match letters {
            Letters::None => name.trim_end_matches(['a', 'f']).to_owned(),
            Letters::Specific if entry.kind == ImageKind::Cubin => name.trim_end_matches('f').to_owned(),
            Letters::Specific => name,
        };
        match entry.kind {
            ImageKind::Cubin => cubins.push(name),
            ImageKind::Ptx | ImageKind::RelocatablePtx => ptx.push(name),
            _ => {}
        }
    }
    cubins.sort();
    ptx.sort();
    (cubins, ptx)
}

/// Suffixes that a release of cuobjdump prints.
#[derive(Clone, Copy)]
pub(crate) enum Letters {
    /// 13.x prints `a`, and `f` for PTX.
    Specific,
    /// 11.8 prints none.
    None,
}

pub(crate) fn assert_listed_alike(toolkit: &str, file: &Path, kernels: &Kernels) {
    // 13.0 has no wheel with its own cuobjdump; a newer release reads its files.
    let (lister, letters) = if toolkit == "11.8" { ("11.8", Letters::None) } else { ("13.5", Letters::Specific) };
    let listed = cuobjdump(lister, file).unwrap_or_else(|words| panic!("{words}"));
    assert_eq!(as_cuobjdump(kernels, letters), listed, "{}", file.display());
}
