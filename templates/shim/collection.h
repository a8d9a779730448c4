/* The collection of findings. A finding that refuses is never dropped; if others are dropped, a
 * finding reports that. */
#ifndef CUDAGUARD_COLLECTION_H
#define CUDAGUARD_COLLECTION_H

#include "message.h"
#include "scope.h"

/* Retention priority of a finding when the table is full. */
CODE int weigh_finding(struct context *cx, const struct finding *f) {
  const struct note *n = f->note;
  if (f->severity != ERROR) return get_meaning(f)->verdict == OPEN;
  return 2 + in_scope(cx, n) + (speaks_for(cx, n) && refuses(cx, n));
}

/* Returns a place for a finding with the priority `more`. If the table is full, drops the finding
 * with the lowest priority if that is lower than `more`, and returns `spare` otherwise. */
CODE struct finding *make_room(struct context *cx, int more) {
  struct findings *all = &cx->findings;
  int k, least = 0;
  BY_REGISTER(all);
  if (all->count < MAX_FINDINGS) return &all->at[all->count++];
  for (k = 1; k < all->count; k++)
    if (weigh_finding(cx, &all->at[k]) <= weigh_finding(cx, &all->at[least])) least = k;
  all->left_out++;
  if (weigh_finding(cx, &all->at[least]) >= more) return &all->spare;
  for (k = least + 1; k < all->count; k++) all->at[k - 1] = all->at[k];
  return &all->at[all->count - 1];
}

/* Stores the string that start_kept_text() began, and returns its offset. Equal strings are stored
 * once. */
CODE uint16_t keep_last_text(struct context *cx, const struct text *t) {
  struct kept_texts *kept = &cx->kept;
  size_t at;
  if (!*t->at || t->used + 1 == t->size) return 0;
  for (at = 0; at < kept->used; at += text_length(kept->at + at) + 1)
    if (texts_are_equal(kept->at + at, t->at)) return (uint16_t)at;
  kept->used += t->used + 1;
  return (uint16_t)at;
}

CODE struct text start_kept_text(struct context *cx) {
  struct kept_texts *kept = &cx->kept;
  if (!kept->used) kept->used = 1;
  return start_text(kept->at + kept->used, sizeof kept->at - kept->used);
}

/* Stores a string without changes. */
CODE uint16_t keep_text(struct context *cx, const char *s) {
  struct text t = start_kept_text(cx);
  put(&t, s);
  return keep_last_text(cx, &t);
}

/* Stores an untrusted string, sanitized and truncated. */
CODE uint16_t keep_shown_text(struct context *cx, const char *s) {
  struct text t = start_kept_text(cx);
  put_outside(&t, s);
  return keep_last_text(cx, &t);
}

/* Initialises a finding about the current note. */
CALLED void begin_finding(struct context *cx, struct finding *f, enum message words, int severity) {
  memset(f, 0, sizeof *f);
  f->words = words;
  f->severity = severity;
  f->note = cx->now;
  f->component = (uint16_t)(cx->now - cx->note + 1);
}

/* Adds a finding with another severity than the table has. */
CODE struct finding *add_weighed_finding(struct context *cx, enum message words, int severity) {
  struct finding *f = &cx->findings.spare;
  begin_finding(cx, f, words, severity);
  f = make_room(cx, weigh_finding(cx, f));
  *f = cx->findings.spare;
  return f;
}

CODE struct finding *add_finding(struct context *cx, enum message words) {
  return add_weighed_finding(cx, words, meanings[words].severity);
}

CODE void add_left_out(struct context *cx, enum message words, uint32_t left_out, uint32_t kept) {
  struct finding *f = &cx->findings.at[cx->findings.count];
  if (!left_out) return;
  cx->findings.count++;
  begin_finding(cx, f, words, meanings[words].severity);
  f->left_out = left_out;
  f->kept = kept;
}

/* Adds a finding about dropped findings and notes to the first note in scope. */
CODE void add_all_left_out(struct context *cx) {
  int k;
  cx->now = cx->note;
  for (k = 1; k < cx->notes && !in_scope(cx, cx->now); k++) cx->now++;
  add_left_out(cx, NOT_ALL_KEPT, cx->findings.left_out, MAX_FINDINGS);
  add_left_out(cx, NOT_ALL_KEPT_NOTES, cx->notes_left_out, MAX_NOTES);
}

/* Returns the finding that determines this verdict, or null. If there are several, returns the one
 * with the lowest rank, which should be fixed first. */
CODE const struct finding *find_decisive(struct context *cx, int verdict) {
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
CODE int get_result(struct context *cx) {
  return find_decisive(cx, WRONG) ? WRONG : find_decisive(cx, CANNOT_TELL) ? CANNOT_TELL : RIGHT;
}

#endif
