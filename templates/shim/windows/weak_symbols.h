/* Functions that are missing in delay-loaded DLLs of NVIDIA. Their first call would end the
 * program. The loader itself ends a program whose import is missing, before any code of the
 * program. */
#ifndef CUDAGUARD_WEAK_SYMBOLS_H
#define CUDAGUARD_WEAK_SYMBOLS_H

#include "detect_driver.h"
#include "judged_findings.h"

SHIM_FN int is_nvidias(const char *dll) {
  static const char starts[][10] = {"cudnn64_", "cudart64_", "cublas64_", "cublaslt64",
                                    "cufft64_", "curand64_", "cusolver6", "cusparse6"};
  char lower[16];
  size_t k;
  for (k = 0; k + 1 < sizeof lower && dll[k]; k++) lower[k] = to_lower(dll[k]);
  lower[k] = 0;
  for (k = 0; k < sizeof starts / sizeof *starts; k++)
    if (starts_with(lower, starts[k])) return 1;
  return 0;
}

/* Finds the first function that a DLL lacks; returns its offset in the image of this file, or 0. */
SHIM_FN uint64_t find_missing(const unsigned char *own, const struct dll *dll, uint64_t names) {
  uint64_t name;
  while ((name = next_function(own, &names)))
    if (!exports_function(get_image(dll), get_image_text(own, name))) return name;
  return 0;
}

/* Reports a missing function, unless an error already explains it. */
SHIM_FN void judge_slots(struct context *cx) {
  struct imports all = start_imports(cx->own, 1);
  struct import import;
  if (!cx->note->own || get_result(cx) == WRONG) return;
  while (next_import(&all, &import)) {
    struct finding *f;
    struct dll dll;
    enum lookup is;
    uint64_t missing;
    if (!is_nvidias(import.dll)) continue;
    is = find_dll(cx, import.dll, &dll);
    if (is != IS_LOADED && is != IS_THERE) continue;
    missing = cx->changes_search && is == IS_THERE ? 0 : find_missing(cx->own, &dll, import.names);
    get_dll_path(cx, &dll, &cx->found);
    release_dll(&dll);
    if (!missing) continue;
    cx->now = cx->note; /* the note of the program is the first */
    f = add_finding(cx, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
    f->symbol = store_untrusted_text(cx, get_image_text(cx->own, missing));
    f->library = store_untrusted_text(cx, import.dll);
    f->path = store_untrusted_text(cx, cx->found);
    return;
  }
}

#endif
