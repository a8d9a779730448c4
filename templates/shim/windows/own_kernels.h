/* The rows of a note. Kernels of an unsealed file are not read from memory: the report names them
 * as not judged. */
#ifndef CUDAGUARD_OWN_KERNELS_H
#define CUDAGUARD_OWN_KERNELS_H

#include "coverage.h"
#include "note.h"

enum { READS_OWN_KERNELS = 0 };

SHIM_FN union row get_row(struct context *cx, const struct note *n, uint32_t i) {
  (void)cx;
  return read_note_row(n, i);
}

SHIM_FN const char *read_row_text(struct context *cx, const struct note *n, struct text_ref ref,
                                  char (*text)[NOTE_TEXT]) {
  (void)cx;
  return read_note_text(n, ref, text);
}

SHIM_FN uint32_t make_seen_rows(struct context *cx, const struct note *n) {
  (void)cx;
  (void)n;
  return 0;
}

#endif
