//! Libraries as NVIDIA ships them.

use std::path::Path;

use cudaguard::kernels::{By, Form, Kernels, Role};
use cudaguard_tests::{parts, trial};
use libtest_mimic::Trial;

use crate::real::{Letters, as_cuobjdump, cuobjdump, read};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("cudnn_8.9.7", || cudnn("8.9.7", "libcudnn_ops_infer.so.8")),
        trial("cudnn_9.1.0", || cudnn("9.1.0", "libcudnn_ops.so.9")),
        trial("cudnn_9.15.1", || cudnn("9.15.1", "libcudnn_ops.so.9")),
        trial("cudnn_9.28.0", || cudnn("9.28.0", "libcudnn_ops.so.9")),
        trial("a_library_that_compiles_its_kernels", graph),
        trial("the_device_runtime", device_runtime),
        trial("cudart_holds_no_kernels", cudart),
    ]
}

/// Whether this toolkit's lister reads the file; if so, it lists the same.
fn listed(toolkit: &str, file: &Path, kernels: &Kernels) -> bool {
    let letters = if toolkit == "11.8" { Letters::None } else { Letters::Specific };
    let Ok(lists) = cuobjdump(toolkit, file) else { return false };
    assert_eq!(as_cuobjdump(kernels, letters), lists, "{} by {toolkit}", file.display());
    true
}

fn cudnn(version: &str, library: &str) {
    let file = parts::cudnn(version).join("lib").join(library);
    let kernels = read(&file);
    assert!(kernels.any());
    // 13.5's stops at images older than it knows; 11.8's reads these.
    let read = listed("13.5", &file, &kernels) || listed("11.8", &file, &kernels);
    assert!(read, "no lister reads {}", file.display());
    // Each of them serves every discrete GPU of its time by code of its own.
    let served: &[(u8, u8)] = match version {
        "8.9.7" | "9.1.0" => &[(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0)],
        _ => &[(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)],
    };
    for cc in served {
        let by = kernels.service(*cc).by;
        assert!(matches!(by, By::Cubin | By::Ptx), "{version} on {cc:?}: {by:?}");
    }
}

fn graph() {
    let kernels = read(&parts::cudnn("9.28.0").join("lib/libcudnn_graph.so.9"));
    // It compiles at run time; all it carries is a text for a test of the compiler.
    let forms: Vec<Form> = kernels.containers().iter().map(|container| container.form).collect();
    assert_eq!(forms, [Form::Ptx]);
}

fn device_runtime() {
    for toolkit in ["11.8", "13.0", "13.5"] {
        let file = parts::cuda(toolkit).join("lib64/libcudadevrt.a");
        let kernels = read(&file);
        assert!(!kernels.entries().is_empty());
        assert!(kernels.containers().iter().all(|container| container.role == Role::DeviceRuntime), "{toolkit}");
        assert_eq!(kernels.requirements(), [], "it never decides anything");
        assert!(listed(if toolkit == "11.8" { toolkit } else { "13.5" }, &file, &kernels), "{toolkit}");
    }
}

fn cudart() {
    for toolkit in ["11.8", "13.0", "13.2", "13.5"] {
        let kernels = read(&parts::cuda(toolkit).join("lib64/libcudart_static.a"));
        assert_eq!(kernels.entries(), []);
        assert_eq!(kernels.covers(), []);
    }
}
