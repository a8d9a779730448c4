/* The collection of findings. A finding that refuses is never dropped; if others are dropped, a
 * finding reports that. */
#ifndef CUDAGUARD_COLLECTION_H
#define CUDAGUARD_COLLECTION_H

#include "message.h"
#include "scope.h"

/* Retention priority of a finding when the table is full. */
SHIM_FN int get_retention_rank(struct context *cx, const struct finding *f) {
  const struct note *n = f->note;
  if (f->severity != ERROR) return get_meaning(f)->verdict == OPEN;
  return 2 + in_scope(cx, n) + (reports_note(cx, n) && refuses(cx, n));
}

/* Returns a place for a finding with the priority `more`. If the table is full, drops the finding
 * with the lowest priority if that is lower than `more`, and returns `spare` otherwise. */
SHIM_FN struct finding *make_room(struct context *cx, int more) {
  struct findings *all = &cx->findings;
  int k, least = 0;
  if (all->count < MAX_FINDINGS) return &all->at[all->count++];
  for (k = 1; k < all->count; k++)
    if (get_retention_rank(cx, &all->at[k]) <= get_retention_rank(cx, &all->at[least])) least = k;
  all->dropped++;
  if (get_retention_rank(cx, &all->at[least]) >= more) return &all->spare;
  for (k = least + 1; k < all->count; k++) all->at[k - 1] = all->at[k];
  return &all->at[all->count - 1];
}

/* Stores the string that start_kept_text() began, and returns its offset. Equal strings are stored
 * once. */
SHIM_FN uint16_t store_last_text(struct context *cx, const struct text *t) {
  const char *stored = cx->texts.at;
  size_t at, *used = &cx->findings.texts_used;
  if (!*t->at || t->used + 1 == t->size) return 0;
  for (at = 0; at < *used; at += text_length(stored + at) + 1)
    if (texts_are_equal(stored + at, t->at)) return (uint16_t)at;
  *used += t->used + 1;
  return (uint16_t)at;
}

SHIM_FN struct text start_stored_text(struct context *cx) {
  size_t *used = &cx->findings.texts_used;
  if (!*used) *used = 1;
  return start_text(cx->texts.at + *used, sizeof cx->texts.at - *used);
}

/* Stores a string without changes. */
SHIM_FN uint16_t store_text(struct context *cx, const char *s) {
  struct text t;
  if (!*s) return 0; /* touches no page */
  t = start_stored_text(cx);
  put(&t, s);
  return store_last_text(cx, &t);
}

/* Stores an untrusted string, sanitized and truncated. */
SHIM_FN uint16_t store_untrusted_text(struct context *cx, const char *s) {
  struct text t = start_stored_text(cx);
  put_untrusted(&t, s);
  return store_last_text(cx, &t);
}

/* Initialises a finding about the current note. */
SHIM_FN void begin_finding(struct context *cx, struct finding *f, enum message kind,
                                 int severity) {
  memset(f, 0, sizeof *f);
  f->kind = kind;
  f->severity = severity;
  f->note = cx->now;
  f->component = (uint16_t)(cx->now - cx->note + 1);
}

/* Adds a finding with another severity than the table has. */
SHIM_FN struct finding *add_finding_with_severity(struct context *cx, enum message kind,
                                                  int severity) {
  struct finding *f = &cx->findings.spare;
  begin_finding(cx, f, kind, severity);
  f = make_room(cx, get_retention_rank(cx, f));
  *f = cx->findings.spare;
  return f;
}

SHIM_FN struct finding *add_finding(struct context *cx, enum message kind) {
  return add_finding_with_severity(cx, kind, meanings[kind].severity);
}

SHIM_FN void report_dropped(struct context *cx, enum message kind, uint32_t left_out,
                            uint32_t capacity) {
  struct finding *f = &cx->findings.at[cx->findings.count];
  if (!left_out) return;
  cx->findings.count++;
  begin_finding(cx, f, kind, meanings[kind].severity);
  f->left_out = left_out;
  f->kept = capacity;
}

/* Adds a finding about dropped findings and notes to the first note in scope. */
SHIM_FN void report_all_dropped(struct context *cx) {
  int k;
  cx->now = cx->note;
  for (k = 1; k < cx->notes && !in_scope(cx, cx->now); k++) cx->now++;
  report_dropped(cx, NOT_ALL_KEPT, cx->findings.dropped, MAX_FINDINGS);
  report_dropped(cx, NOT_ALL_KEPT_NOTES, cx->dropped_notes, MAX_NOTES);
}

/* Returns the finding that determines this verdict, or null. If there are several, returns the one
 * with the lowest rank, which should be fixed first. */
SHIM_FN const struct finding *find_decisive(struct context *cx, int verdict) {
  const struct finding *best = 0;
  int k;
  for (k = 0; k < cx->findings.count; k++) {
    const struct finding *f = &cx->findings.at[k];
    const struct meaning *m = get_meaning(f);
    int decides = verdict == WRONG ? f->severity == ERROR && m->verdict == REFUSES
                                   : verdict == CANNOT_TELL && m->verdict == OPEN;
    if (decides && in_scope(cx, f->note) && (!best || m->rank < get_meaning(best)->rank)) best = f;
  }
  return best;
}

/* Computes the verdict from the findings; findings.h has a column for it. */
SHIM_FN int get_result(struct context *cx) {
  return find_decisive(cx, WRONG) ? WRONG : find_decisive(cx, CANNOT_TELL) ? CANNOT_TELL : RIGHT;
}

#endif
