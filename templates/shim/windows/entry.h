/* The entry point: a TLS callback, which Windows calls before the C runtime starts and before any
 * constructor. Imported DLLs are initialised then. */
#ifndef CUDAGUARD_ENTRY_H
#define CUDAGUARD_ENTRY_H

#include "judge_notes.h"
#include "report_file.h"

/* Several copies in one file share this symbol; the first copy checks. */
__attribute__((common)) int cudaguard_r1_started;

/* Returns whether this file calls a function that adds directories to the search of DLLs. */
SHIM_FN int changes_search(const unsigned char *image) {
  return imports_function(image, "AddDllDirectory") ||
         imports_function(image, "SetDllDirectoryA") || imports_function(image, "SetDllDirectoryW");
}

SHIM_FN void read_mode(struct context *cx) {
  const char *mode = get_variable("CUDAGUARD");
  cx->mode = parse_mode(mode);
  if (*mode && cx->mode == MODE_MANIFEST) {
    char line[SHOW + 100];
    struct text t = start_text(line, sizeof line);
    put(&t, "cudaguard: CUDAGUARD is ");
    put_untrusted(&t, mode);
    put(&t, ", not off, warn or enforce: ignored\n");
    print_text(line);
  }
}

SHIM_FN void start(struct context *cx) {
  int refuse;
  cx->process = GetCurrentProcess();
  read_notes(cx);
  cx->changes_search = changes_search(cx->own);
  read_mode(cx);
  if (cx->mode == MODE_OFF) return;
  judge(cx, 1, 0);
  refuse = find_next_printed(cx, 0, 1) != 0;
  write_report(cx, refuse ? "refuse" : find_next_printed(cx, 0, 0) ? "warn" : "start");
  print_findings(cx, refuse);
  if (refuse) exit_now(STATUS_REFUSED);
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
