/* The notes that a guard is responsible for, and the effect of CUDAGUARD. */
#ifndef CUDAGUARD_SCOPE_H
#define CUDAGUARD_SCOPE_H

#include "context.h"
#include "c_strings.h"

/* Parses the value of CUDAGUARD. */
SHIM_FN int parse_mode(const char *word) {
  if (texts_are_equal(word, "off")) return MODE_OFF;
  if (texts_are_equal(word, "warn")) return MODE_WARN;
  return texts_are_equal(word, "enforce") ? MODE_ENFORCE : MODE_MANIFEST;
}

/* Returns whether errors about the note refuse the program. CUDAGUARD overrides the note. */
SHIM_FN int refuses(struct context *cx, const struct note *n) {
  if (cx->mode == MODE_WARN) return 0;
  return cx->mode == MODE_ENFORCE || n->head.mismatch == MISMATCH_REFUSES;
}

/* Returns whether this guard reports the findings of the note. The guard of a library reports only
 * if it is configured to end the process; otherwise the guard of the program reports for it. */
SHIM_FN int reports_note(struct context *cx, const struct note *n) {
  int library =
      cx->mode == MODE_WARN || cx->mode == MODE_ENFORCE || n->head.library == LIBRARY_ENFORCES;
  return cx->program ? n->own || !library : n->own && library;
}

/* Returns whether the note contributes to the verdict of this guard. */
SHIM_FN int in_scope(struct context *cx, const struct note *n) { return n->own || cx->program; }

#endif
