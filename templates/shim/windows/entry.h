/* The entry point: a TLS callback, which Windows calls before the C runtime starts and before any
 * constructor. Imported DLLs are initialised then. */
#ifndef CUDAGUARD_ENTRY_H
#define CUDAGUARD_ENTRY_H

#include "start.h"

/* Several copies in one file share this symbol; the first copy checks. */
__attribute__((common)) int cudaguard_r1_started;

/* Returns whether this file calls a function that adds directories to the search of DLLs. */
SHIM_FN int changes_search(const unsigned char *image) {
  return imports_function(image, "AddDllDirectory") ||
         imports_function(image, "SetDllDirectoryA") || imports_function(image, "SetDllDirectoryW");
}

SHIM_FN void start(struct context *cx) {
  cx->process = GetCurrentProcess();
  read_notes(cx);
  cx->changes_search = changes_search(cx->own);
  read_mode(cx, 1);
  if (cx->mode != MODE_OFF) judge_start(cx);
}

static void on_attach(handle module, uint32_t reason, void *unused) {
  uint32_t error;
  (void)module;
  (void)unused;
  if (reason != ATTACHED || cudaguard_r1_started) return;
  cudaguard_r1_started = 1;
  error = GetLastError();
  start(&the_context);
  SetLastError(error);
}

/* The linker sorts these sections by name, and the C runtime begins and ends the list. */
__attribute__((section(".CRT$XLB"), used)) static void (*const callback)(handle, uint32_t,
                                                                         void *) = on_attach;

/* The TLS directory of the C runtime, which lists the callbacks. The reference makes the linker
 * include it. */
extern const uint32_t _tls_used;
__attribute__((used)) static const void *const tls_directory = &_tls_used;

#endif
