/* The collection of findings: a finding that refuses is never lost, and what is left out is a
 * finding, too. */
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

/* A place for one more, of this worth at most: where all are taken, that of the one that is worth
 * least, if it is less. */
CODE struct finding *make_room(struct context *cx, int more) {
  struct findings *all = &cx->findings;
  int k, least = 0;
  BY_REGISTER(all);
  if (all->count < MAX_FINDINGS) return &all->at[all->count++];
  for (k = 1; k < all->count; k++)
    if (weigh_finding(cx, &all->at[k]) <= weigh_finding(cx, &all->at[least])) least = k;
  if (weigh_finding(cx, &all->at[least]) >= more) {
    all->left_out_now++;
    return &all->spare;
  }
  if (least >= all->round) all->left_out_now++;
  else {
    all->left_out++;
    all->round--;
  }
  for (k = least + 1; k < all->count; k++) all->at[k - 1] = all->at[k];
  return &all->at[all->count - 1];
}

/* Keeps the text that was put behind those that are kept, and returns its place. */
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

/* Keeps a text as it is. */
CODE uint16_t keep_text(struct context *cx, const char *s) {
  struct text t = start_kept_text(cx);
  put(&t, s);
  return keep_last_text(cx, &t);
}

/* Keeps a text from outside. */
CODE uint16_t keep_shown_text(struct context *cx, const char *s) {
  struct text t = start_kept_text(cx);
  put_outside(&t, s);
  return keep_last_text(cx, &t);
}

/* A finding about the note that is being judged, of this severity. */
CALLED void begin_finding(struct context *cx, struct finding *f, enum message words, int severity) {
  memset(f, 0, sizeof *f);
  f->words = words;
  f->severity = severity;
  f->note = cx->now;
  f->component = (uint16_t)(cx->now - cx->note + 1);
}

/* A new one, in its place among the others. */
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

/* Findings come in rounds: what a look at files alone has found is forgotten where the real library
 * is asked afterwards. */
CODE void begin_round(struct context *cx) {
  struct findings *all = &cx->findings;
  BY_REGISTER(all);
  all->round = all->count;
  all->left_out += all->left_out_now;
  all->left_out_now = 0;
  cx->kept.used_before_round = cx->kept.used;
}

CALLED void forget_round(struct context *cx) {
  struct findings *all = &cx->findings;
  BY_REGISTER(all);
  all->count = all->round;
  all->left_out_now = 0;
  cx->kept.used = cx->kept.used_before_round;
}

CODE int has_round(struct context *cx, int severity) {
  int k, n = (int)cx->findings.left_out_now;
  for (k = cx->findings.round; k < cx->findings.count; k++)
    n += cx->findings.at[k].severity >= severity;
  return n;
}

CODE void add_left_out(struct context *cx, enum message words, uint32_t left_out, uint32_t kept) {
  struct finding *f = &cx->findings.at[cx->findings.count];
  if (!left_out) return;
  cx->findings.count++;
  begin_finding(cx, f, words, meanings[words].severity);
  f->left_out = left_out;
  f->kept = kept;
}

/* Adds what was left out, to the first note in scope. */
CODE void add_all_left_out(struct context *cx) {
  int k;
  cx->now = cx->note;
  for (k = 1; k < cx->notes && !in_scope(cx, cx->now); k++) cx->now++;
  add_left_out(cx, NOT_ALL_KEPT, cx->findings.left_out + cx->findings.left_out_now, MAX_FINDINGS);
  add_left_out(cx, NOT_ALL_KEPT_NOTES, cx->notes_left_out, MAX_NOTES);
}

/* Returns the finding that decides this verdict: of several the one to fix first; null if there is
 * none. */
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

/* The verdict is a function of the findings: see the column of findings.h. */
CODE int get_result(struct context *cx) {
  return find_decisive(cx, WRONG) ? WRONG : find_decisive(cx, CANNOT_TELL) ? CANNOT_TELL : RIGHT;
}

#endif
