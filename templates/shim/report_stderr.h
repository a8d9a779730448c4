/* Fills struct verdict for callers, and prints findings to stderr. */
#ifndef CUDAGUARD_REPORT_STDERR_H
#define CUDAGUARD_REPORT_STDERR_H

#include "judge_notes.h"

SHIM_FN int is_about_driver(const struct finding *f) {
  return get_meaning(f)->subject == TEXT_AT(subject_driver);
}

SHIM_FN void copy_version(char (*to)[32], void (*how)(struct text *, uint32_t), uint32_t n) {
  struct text t = start_text(*to, sizeof *to);
  if (n) how(&t, n);
}

/* Fills the members of a verdict that describe a finding. The message has one fact per line. */
SHIM_FN void compose_verdict(struct context *cx, const struct finding *f, struct verdict *v) {
  const struct meaning *m = get_meaning(f);
  struct text message = start_text(v->message, sizeof v->message),
              hint = start_text(v->hint, sizeof v->hint);
  struct text component = start_text(v->component, sizeof v->component);
  int driver = is_about_driver(f);
  void (*how)(struct text *, uint32_t) = driver ? put_cuda : put_version;
  v->code = m->code;
  v->severity = f->severity;
  copy_text(v->subject, sizeof v->subject, get_text(m->subject));
  put_component(cx, &component, f->component);
  copy_version(&v->built, how, driver ? f->needs_cuda : f->built);
  copy_version(&v->found, how, driver ? f->cuda : f->found);
  put_message(cx, &message, f);
  put_filled(cx, &hint, get_text(m->hint), f);
}

SHIM_FN void print_text(const char *text) { write_out(STDERR_FILENO, text, text_length(text), PIPE_BUF, 1); }

/* A program warns about its own manifest if it is unreadable, because the guard then checks
 * nothing. */
SHIM_FN int is_unreadable(struct context *cx, const struct finding *f) {
  return f->note->own && cx->program && !is_note_readable(f->note);
}

SHIM_FN int is_printed(struct context *cx, const struct finding *f) {
  const struct note *n = f->note;
  if (is_unreadable(cx, f)) return 1;
  return f->severity == ERROR && reports_note(cx, n) &&
         !(is_about_driver(f) && n->head.gpu == GPU_OPTIONAL);
}

/* Returns the next finding to print after `last` (null: the first), in the order of ranks: of those
 * that refuse the program, or of those that do not. */
SHIM_FN const struct finding *find_next_printed(struct context *cx, const struct finding *last,
                                                int refuse) {
  const struct finding *f = cx->findings.at, *end = f + cx->findings.count, *best = 0;
  for (; f < end; f++) {
    int later = last ? get_meaning(f)->rank - get_meaning(last)->rank : 1;
    if (!is_printed(cx, f) || (f->severity == ERROR && refuses(cx, f->note)) != refuse ||
        later < 0 || (!later && f <= last))
      continue;
    if (!best || get_meaning(f)->rank < get_meaning(best)->rank) best = f;
  }
  return best;
}

/* Returns whether two findings differ only in the component, which has its own line. */
SHIM_FN int has_same_cause(const struct finding *a, const struct finding *b) {
  const size_t first_number = offsetof(struct finding, part);
  const size_t numbers = offsetof(struct finding, component) - first_number;
  const size_t first_text = offsetof(struct finding, file);
  const size_t texts_size = offsetof(struct finding, archs) + sizeof a->archs - first_text;
  const char *x = (const char *)a, *y = (const char *)b;
  return a->kind == b->kind && get_meaning(a)->line[0] == LINE_needed_by &&
         bytes_are_equal(x + first_number, y + first_number, numbers) &&
         bytes_are_equal(x + first_text, y + first_text, texts_size);
}

/* Returns the first printed finding with the same cause: an earlier one or `f` itself. */
SHIM_FN const struct finding *find_same_cause(struct context *cx, const struct finding *f,
                                              int refuse) {
  const struct finding *first = 0;
  while ((first = find_next_printed(cx, first, refuse)) != f)
    if (has_same_cause(first, f)) return first;
  return f;
}

/* Appends the components of the other findings with the same cause. */
SHIM_FN void put_same_cause(struct context *cx, struct text *t, const struct finding *f,
                            int refuse) {
  const struct finding *other = f;
  while ((other = find_next_printed(cx, other, refuse)))
    if (has_same_cause(f, other)) {
      put(t, ", ");
      put_component(cx, t, other->component);
    }
}

/* Appends a finding: all lines of the first one; of the others the sentence, the line of a
 * component that differs from the first one, and the hint. */
SHIM_FN void put_printed(struct context *cx, struct text *t, const struct finding *f,
                               const struct finding *first, int refuse) {
  static const char needed_by[] = "\nneeded by:";
  const struct verdict *v = &cx->draft;
  const char *s;
  int shows = 1, names = 0;
  compose_verdict(cx, f, &cx->draft);
  put(t, refuse ? "cudaguard: error[CG" : "cudaguard: warning[CG");
  put_number(t, (uint32_t)v->code);
  put(t, "]: ");
  for (s = v->message; *s; s++) {
    if (*s == '\n') {
      if (names && shows) put_same_cause(cx, t, f, refuse);
      names = starts_with(s, needed_by);
      shows = f == first || (names && f->component != first->component);
    }
    if (shows) put_char(t, *s);
    if (shows && *s == '\n') put(t, "  ");
  }
  if (names && shows) put_same_cause(cx, t, f, refuse);
  if (*v->hint) {
    put(t, "\n  what to do: ");
    put(t, v->hint);
  }
  put_char(t, '\n');
}

SHIM_FN void print_findings(struct context *cx, int refuse) {
  const struct finding *first = find_next_printed(cx, 0, refuse), *f = first;
  struct text t;
  uint32_t n = 0;
  if (!f) return;
  cx->is_shared_used = 1;
  t = start_text(cx->shared.page, sizeof cx->shared.page);
  for (; f; f = find_next_printed(cx, f, refuse))
    if (find_same_cause(cx, f, refuse) == f && n++ < MAX_PRINTED)
      put_printed(cx, &t, f, first, refuse);
  if (n > MAX_PRINTED) {
    put(&t, "cudaguard: and ");
    put_number(&t, n - MAX_PRINTED);
    put(&t, " more\n");
  }
  if (refuse)
    put(&t, "  (CUDAGUARD=warn starts it anyway; CUDAGUARD_REPORT=FILE writes a report)\n");
  print_text(cx->shared.page);
}

#endif
