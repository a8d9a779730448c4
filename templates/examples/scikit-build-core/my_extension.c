#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cudaguard.h>

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "my_extension", NULL, -1, NULL, NULL, NULL, NULL, NULL};

/* On a machine that cannot run the module, the import raises ImportError with the reason and the action to take. */
PyMODINIT_FUNC PyInit_my_extension(void) {
  struct cudaguard_verdict verdict;
  if (cudaguard_check_verdict(&verdict) == CUDAGUARD_INCOMPATIBLE) {
    return PyErr_Format(PyExc_ImportError, "[CG%d] %s\nwhat to do: %s", verdict.code, verdict.message, verdict.hint);
  }
  return PyModule_Create(&module);
}
