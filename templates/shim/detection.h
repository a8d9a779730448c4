/* Detects the facts that the judge needs. */
#ifndef CUDAGUARD_DETECTION_H
#define CUDAGUARD_DETECTION_H

#include "judged_findings.h"

/* Detects the version of the shared cudart of a note, by the name of its file. */
SHIM_FN void detect_cudart(struct context *cx, const struct note *n) {
  struct judge_call *call = &cx->call;
  char soname[NOTE_TEXT];
  call->cudart.source = BY_FILES;
  read_row_text(cx, n, get_row(cx, n, call->cudart_row).driver.cudart, &soname);
  if (!is_loaded(soname, &cx->found, 0)) return;
  call->cudart_soname = store_untrusted_text(cx, soname);
  call->cudart_path = store_untrusted_text(cx, cx->found);
  call->cudart.state = FOUND;
  call->cudart.version =
      parse_version_in_name(base_name(resolve_links(cx, cx->found, &cx->real)));
}

/* Returns whether a debugger or tracer controls this process. A child would inherit its breakpoints,
 * which would end the child with SIGTRAP. */
SHIM_FN int is_traced(struct context *cx) {
  return read_file_text(cx, "/proc/self/status", cx->text, sizeof cx->text) &&
         !find_text(cx->text, "TracerPid:\t0");
}

/* Replaces the answers of a child in a traced process: what only a child can determine is unknown.
 */
SHIM_FN void skip_probe(struct context *cx, struct cudnn *c) {
  cx->is_probe_skipped = 1;
  if (c) {
    c->is.source = DETECTED;
    c->is.state = UNKNOWN;
  } else {
    reset_driver(&cx->driver);
    cx->driver.is.source = DETECTED;
  }
}

/* Detects the first group of facts among those that the judge needs. */
SHIM_FN void detect_needed(struct context *cx, struct note *n, uint32_t needs, int late) {
  struct cudnn *c = &cx->shared.note.cudnn;
  union row row;
  memset(&row, 0, sizeof row);
  if (needs & (NEED_CUDNN | NEED_CUDNN_ANSWER)) row = read_note_row(n, cx->call.result.library);
  if (needs & NEED_CUDNN) {
    detect_cudnn(cx, c, n, &row.cudnn, late);
  } else if (needs & NEED_CUDNN_ANSWER) {
    if (is_traced(cx)) skip_probe(cx, c);
    else probe_cudnn(cx, c, n, &row.cudnn);
  } else if (needs & NEED_CUDART) {
    detect_cudart(cx, n);
  } else if (needs & NEED_DRIVER) {
    detect_driver(cx, n);
  } else if (needs & NEED_COMPILER) {
    detect_compiler(cx);
  } else if (is_traced(cx)) {
    skip_probe(cx, 0);
  } else {
    probe_driver(cx);
  }
}

#endif
