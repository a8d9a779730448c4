/* Detects the facts that the judge needs. None of them requires another process. */
#ifndef CUDAGUARD_DETECTION_H
#define CUDAGUARD_DETECTION_H

#include "judged_findings.h"

/* Detects the version of the shared cudart of a note. The last number of its version resource is
 * CUDART_VERSION. */
SHIM_FN void detect_cudart(struct context *cx, const struct note *n) {
  struct judge_call *call = &cx->call;
  char soname[NOTE_TEXT], name[NOTE_TEXT];
  uint16_t v[4];
  struct dll dll;
  enum lookup is;
  call->cudart.source = DETECTED;
  read_row_text(cx, n, get_row(cx, n, call->cudart_row).driver.cudart, &soname);
  if (!name_dll(soname, &name)) return;
  is = find_dll(cx, name, &dll);
  if (is != IS_LOADED && is != IS_THERE) return;
  get_dll_path(cx, &dll, &cx->found);
  call->cudart_soname = store_untrusted_text(cx, name);
  call->cudart_path = store_untrusted_text(cx, cx->found);
  call->cudart.state = FOUND;
  if (read_file_version(&dll, v) && v[3] >= 7000 && v[3] % 10 == 0)
    call->cudart.version = (uint32_t)v[3] / 1000 << 16 | v[3] % 1000 / 10 << 8;
  release_dll(&dll);
}

SHIM_FN void detect_needed(struct context *cx, struct note *n, uint32_t needs, int late) {
  union row row;
  (void)late;
  if (needs & NEED_CUDNN) {
    row = read_note_row(n, cx->call.result.library);
    detect_cudnn(cx, &cx->shared.note.cudnn, n, &row.cudnn);
  } else if (needs & NEED_CUDART) {
    detect_cudart(cx, n);
  } else {
    detect_driver(cx);
  }
}

#endif
