//! Libraries that NVIDIA ships.

use std::io::BufRead as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cargo_cudaguard::binary::kernels::{
    Compression, Container, Coverage, ImageForm, ImageKind, KernelImage, Kernels, Role,
};
use cudaguard_tests::Test;
use cudaguard_tests::run::Call;
use cudaguard_tests::scratch::Scratch;
use cudaguard_tests::{e2e, parts, test};

use super::toolkit_tools::{Letters, as_cuobjdump, cuobjdump, read};

#[e2e(rows)]
fn tests() -> Vec<Test> {
    // Accepts libraries that are too large to fetch in each run: `CUDAGUARD_LIBRARIES=libcufft.so.12:libcublasLt.so.13`.
    let more = std::env::var_os("CUDAGUARD_LIBRARIES").unwrap_or_default();
    let more: Vec<PathBuf> = std::env::split_paths(&more).filter(|path| !path.as_os_str().is_empty()).collect();
    let named = more.into_iter().map(|file| test(format!("{}", file.display()), move || everywhere(&file)).slow());
    let mut tests = vec![
        test("cudnn_8.9.7", || cudnn("8.9.7", "libcudnn_ops_infer.so.8")).slow(),
        test("cudnn_9.1.0", || cudnn("9.1.0", "libcudnn_ops.so.9")).slow(),
        test("cudnn_9.15.1", || cudnn("9.15.1", "libcudnn_ops.so.9")).slow(),
        test("cudnn_9.28.0", || cudnn("9.28.0", "libcudnn_ops.so.9")).slow(),
    ];
    tests.extend(named);
    tests
}

/// Returns true if this toolkit's cuobjdump can read the file. Checks that it lists the same code.
fn listed(toolkit: &str, file: &Path, kernels: &Kernels) -> bool {
    let letters = if toolkit == "11.8" { Letters::None } else { Letters::Specific };
    let Ok(lists) = cuobjdump(toolkit, file) else { return false };
    assert_eq!(as_cuobjdump(kernels, letters), lists, "{} by {toolkit}", file.display());
    true
}

fn cudnn(version: &str, library: &str) {
    let file = parts::cudnn(version).join("lib").join(library);
    let kernels = read(&file);
    assert!(kernels.has_kernels());
    // The cuobjdump of 13.5 fails on images that are too old for it; the one of 11.8 reads them.
    let read = listed("13.5", &file, &kernels) || listed("11.8", &file, &kernels);
    assert!(read, "no lister reads {}", file.display());
    // Each release contains machine code for all discrete GPUs of its time.
    let served: &[(u8, u8)] = match version {
        "8.9.7" | "9.1.0" => &[(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0)],
        _ => &[(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)],
    };
    for cc in served {
        let by = kernels.gpu_support(*cc).by;
        assert!(matches!(by, Coverage::Cubin | Coverage::Ptx), "{version} on {cc:?}: {by:?}");
    }
}

#[e2e(slow)]
fn device_runtime_is_read() {
    for toolkit in ["11.8", "13.0", "13.5"] {
        let file = parts::cuda(toolkit).join("lib64/libcudadevrt.a");
        let kernels = read(&file);
        assert!(!kernels.entries().is_empty());
        assert!(kernels.containers().iter().all(|container| container.role == Role::DeviceRuntime), "{toolkit}");
        assert_eq!(kernels.requirement_rows(), [], "it never decides anything");
        assert!(listed(if toolkit == "11.8" { toolkit } else { "13.5" }, &file, &kernels), "{toolkit}");
    }
}

#[e2e(slow)]
fn cudart_holds_no_kernels() {
    for toolkit in ["11.8", "13.0", "13.2", "13.5"] {
        let kernels = read(&parts::cuda(toolkit).join("lib64/libcudart_static.a"));
        assert_eq!(kernels.entries(), []);
        assert_eq!(kernels.coverage_by_cc(), []);
    }
}

/// Machine code without containers, in read-only and in writable data; and containers in read-only data.
#[e2e(slow)]
fn cupti_12_6() {
    let file = parts::part("cupti-12.6").join("lib/libcupti.so.12");
    let kernels = read(&file);
    let count = |section: &str, form: ImageForm| {
        let of = |at: &&Container| kernels.section_name(at) == section && at.form == form;
        kernels.containers().iter().filter(of).count()
    };
    assert_eq!(
        (count(".rodata", ImageForm::Fatbin), count(".rodata", ImageForm::Cubin), count(".data", ImageForm::Cubin)),
        (3, 14, 38)
    );

    // cuobjdump reads each image alone in the same way.
    let bytes = std::fs::read(&file).unwrap();
    let dir = Scratch::new("cupti");
    let alone = |container: &&Container| container.form != ImageForm::Ptx;
    for (number, container) in kernels.containers().iter().filter(alone).enumerate() {
        let name = format!("{number}.{}", if container.form == ImageForm::Cubin { "cubin" } else { "fatbin" });
        let piece = dir.file(&name, &bytes[range(container)]);
        let read = read(&piece);
        assert!(listed("13.5", &piece, &read) || listed("11.8", &piece, &read), "no lister reads {name}");
        let archs = |kernels: &Kernels, container| -> Vec<_> {
            kernels.entries_of(container).iter().map(|entry| (entry.kind, entry.arch)).collect()
        };
        assert_eq!(archs(&kernels, container), archs(&read, &read.containers()[0]));
    }
    // The file contains no other ELF images for a GPU.
    let images = bytes.windows(20).filter(|start| start.starts_with(b"\x7fELF") && start[18..] == [190, 0]).count();
    let stored = |entry: &&KernelImage| (entry.compression, entry.kind) == (Compression::None, ImageKind::Cubin);
    assert_eq!(images, kernels.entries().iter().filter(stored).count());
    // The two texts of this library, `.version 3.2.target sm_35`, have no blank before the dots.
    let texts: Vec<String> = kernels
        .containers()
        .iter()
        .filter(|container| container.form == ImageForm::Ptx)
        .map(|container| kernels.entries_of(container)[0].arch_name())
        .collect();
    assert_eq!(texts, ["compute_35", "compute_20"]);
}

/// Checks that all containers of the file are found at any position, and read as cuobjdump reads them. Containers outside
/// nvcc's sections are copied into such a section for cuobjdump.
fn everywhere(file: &Path) {
    let kernels = read(file);
    assert!(kernels.has_kernels());
    assert!(listed("13.5", file, &kernels), "13.5's lister does not read {}", file.display());

    let bytes = std::fs::read(file).unwrap();
    let there = carved(&bytes);
    let whose = |container: &&Container| matches!(kernels.section_name(container), ".nv_fatbin" | "__nv_relfatbin");
    let fatbins = kernels.containers().iter().filter(|container| container.form == ImageForm::Fatbin);
    let (known, others): (Vec<&Container>, Vec<&Container>) = fatbins.partition(whose);
    let others: Vec<Range<usize>> = others.into_iter().map(range).collect();
    let mut all: Vec<Range<usize>> = known.into_iter().map(range).chain(others.iter().cloned()).collect();
    all.sort_by_key(|range| range.start);
    assert_eq!(all, there);
    if others.is_empty() {
        return;
    }
    let dir = Scratch::new("carved");
    let carved: Vec<u8> = others.iter().flat_map(|range| padded(&bytes[range.clone()])).collect();
    dir.file("carved", carved);
    dir.file("carved.s", ".section .nv_fatbin,\"a\"\n.balign 8\n.incbin \"carved\"\n");
    let _ = Call::new("as").args(["carved.s", "-o", "carved.o"]).dir(dir.path()).run().success();
    let object = dir.path().join("carved.o");
    let again = read(&object);
    assert_eq!(again.containers().len(), others.len());
    assert!(listed("13.5", &object, &again), "13.5's lister does not read the containers of {}", file.display());
    let entries = |kernels: &Kernels, wanted: &dyn Fn(&Container) -> bool| -> Vec<_> {
        let containers = kernels.containers().iter().filter(|container| wanted(container));
        let entries = containers.flat_map(|container| kernels.entries_of(container));
        entries.map(|entry| (entry.kind, entry.arch, entry.version, entry.compression, entry.size)).collect()
    };
    let elsewhere = |container: &Container| others.contains(&range(container));
    assert_eq!(entries(&kernels, &elsewhere), entries(&again, &|_| true));
}

fn range(container: &Container) -> Range<usize> {
    let start = usize::try_from(container.offset).unwrap();
    start..start + usize::try_from(container.size).unwrap()
}

fn padded(container: &[u8]) -> Vec<u8> {
    let mut bytes = container.to_vec();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Returns all containers of a file, found only by their magic number, without sections.
fn carved(bytes: &[u8]) -> Vec<Range<usize>> {
    let mark = [0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    let (mut found, mut at) = (Vec::new(), 0);
    // Skips to the next first byte at the speed of `memchr`, also without optimization.
    while let Ok(step @ 1..) = (&bytes[at..]).skip_until(mark[0]) {
        let start = at + step - 1;
        at = start + 1;
        if !bytes[start..].starts_with(&mark) {
            continue;
        }
        let size = bytes.get(start + 8..start + 16).map(|size| u64::from_le_bytes(size.try_into().unwrap()));
        let end = start + 16 + usize::try_from(size.unwrap()).unwrap();
        assert!(end <= bytes.len());
        found.push(start..end);
        at = end;
    }
    found
}
