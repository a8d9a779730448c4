/* Which notes a guard speaks for, and what CUDAGUARD makes of them. */
#ifndef CUDAGUARD_SCOPE_H
#define CUDAGUARD_SCOPE_H

#include "context.h"

/* Returns whether findings of the note refuse: by CUDAGUARD, else by the note. */
CODE int refuses(struct context *cx, const struct note *n) {
  if (cx->mode == MODE_WARN) return 0;
  return cx->mode == MODE_ENFORCE || n->head.mismatch == MISMATCH_REFUSES;
}

/* Whether this guard speaks for the note. A library keeps still unless it is told to end the
 * process; and where it speaks, it speaks for itself, before the program that needs it. */
CODE int speaks_for(struct context *cx, const struct note *n) {
  int library =
      cx->mode == MODE_WARN || cx->mode == MODE_ENFORCE || n->head.library == LIBRARY_ENFORCES;
  return cx->program ? n->own || !library : n->own && library;
}

/* Returns whether the note is a part of this guard's verdict. */
CODE int in_scope(struct context *cx, const struct note *n) { return n->own || cx->program; }

#endif
