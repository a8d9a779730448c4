//! Extension modules for Python, with and without pybind11: the import raises ImportError if they cannot work.

use cudaguard_tests::{Call, Outcome, e2e, parts, snapshot};

use super::fixture::{Cmake, NINJA, Tree, include, python};

/// Example from the documentation of cudaguard.h.
const PLAIN: &str = r#"#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cudaguard.h>

size_t cudnnGetVersion(void);

static PyObject *version(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return PyLong_FromSize_t(cudnnGetVersion());
}

static PyMethodDef methods[] = {{"version", version, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "plain", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_plain(void) {
  struct cudaguard_verdict verdict;
  if (cudaguard_check_verdict(&verdict) == CUDAGUARD_INCOMPATIBLE) {
    return PyErr_Format(PyExc_ImportError, "[CG%d] %s\nwhat to do: %s", verdict.code, verdict.message, verdict.hint);
  }
  return PyModule_Create(&module);
}
"#;

const BOUND: &str = r#"#include <cudaguard.h>
#include <pybind11/pybind11.h>

extern "C" size_t cudnnGetVersion();

PYBIND11_MODULE(bound, module) {
  cudaguard_verdict verdict;
  if (cudaguard_check_verdict(&verdict) == CUDAGUARD_INCOMPATIBLE) {
    throw pybind11::import_error("[CG" + std::to_string(verdict.code) + "] " + verdict.message + "\nwhat to do: " +
                                 verdict.hint);
  }
  module.def("version", &cudnnGetVersion);
}
"#;

const SCRIPT: &str = "
import sys
sys.path.insert(0, sys.argv[1])
for name in ['plain', 'bound']:
    try:
        print(name, __import__(name).version())
    except ImportError as error:
        print(name, 'ImportError:', error)
print('alive')
";

#[e2e(slow)]
fn import_reports_guard_errors() {
    let python = python();
    let text = format!(
        r#"cmake_minimum_required(VERSION 3.24)
project(extensions VERSION 1.0 LANGUAGES C CXX)
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(pybind11 REQUIRED)
{}
Python_add_library(plain MODULE WITH_SOABI plain.c)
pybind11_add_module(bound NO_EXTRAS bound.cpp)
foreach(module IN ITEMS plain bound)
  target_include_directories(${{module}} PRIVATE "${{CUDNN}}/include")
  target_link_libraries(${{module}} PRIVATE "${{CUDNN}}/lib/libcudnn.so.9" -Wl,--allow-shlib-undefined)
  # Where cuDNN is, the machine decides that runs it.
  set_target_properties(${{module}} PROPERTIES BUILD_RPATH_USE_ORIGIN ON SKIP_BUILD_RPATH ON)
  cudaguard_embed(${{module}})
endforeach()
"#,
        include()
    );
    let tree = Tree::new(
        "extensions",
        Cmake::Oldest,
        NINJA,
        &[("CMakeLists.txt", &text), ("plain.c", PLAIN), ("bound.cpp", BOUND)],
    );
    let _ = tree
        .configure(&["-DCMAKE_BUILD_TYPE=MinSizeRel"])
        .arg(format!("-DPython_EXECUTABLE={}", python.display()))
        .arg(format!("-Dpybind11_DIR={}", parts::part("pybind11").join("share/cmake/pybind11").display()))
        .arg(format!("-DCUDNN={}", parts::cudnn("9.15.1").display()))
        .run()
        .success();
    let _ = tree.build(&[]).run().success();
    let import = |cudnn: &str| -> Outcome {
        Call::new(&python)
            .args(["-B", "-c", SCRIPT])
            .arg(tree.out())
            .env("LD_LIBRARY_PATH", parts::cudnn(cudnn).join("lib"))
            .run()
            .success()
    };
    let good = import("9.15.1");
    assert_eq!((good.stdout.as_str(), good.stderr.as_str()), ("plain 91501\nbound 91501\nalive\n", ""), "{good}");
    let older = import("9.1.0");
    assert_eq!(older.stderr, "", "{older}");
    snapshot::check("cmake/import-error", &tree.plain(&older.stdout));
}
