/* Judges the notes of this process, as cargo-cudaguard/src/host/judge.rs does: one table of cases keeps
 * them equal. */
#ifndef CUDAGUARD_JUDGE_H
#define CUDAGUARD_JUDGE_H

#include "judge_driver.h"
#include "weak_symbols.h"

/* Where nothing else is wrong already that explains it. */
CODE void judge_slots(struct context *cx) {
  const ElfW(Sym) *s = find_empty_slot(cx);
  struct finding *f;
  if (!s || !cx->note->own || get_result(cx) == WRONG) return;
  cx->now = cx->note; /* the program's is the first */
  f = add_finding(cx, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
  name_slot(cx, f, s);
  if (is_loaded(cx->kept.at + f->library, &cx->real, 0)) f->path = keep_shown_text(cx, cx->real);
  f->min = (uint32_t)s->st_size;
}

/* The least kind of a row that is not known and above this one; -1 where there is none. */
CODE int find_unknown_kind(struct context *cx, const struct note *n, int above) {
  int next = -1;
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = get_row(cx, n, i);
    if (!is_row_known(&row) && row.kind > above && (next < 0 || row.kind < next)) next = row.kind;
  }
  return next;
}

CODE void add_unknown_rows(struct context *cx, const struct note *n) {
  int kind = find_unknown_kind(cx, n, -1);
  struct finding *f;
  struct text kinds;
  if (kind < 0) return;
  f = add_finding(cx, NOTE_NEWER_ROWS);
  for (kinds = start_kept_text(cx); kind >= 0 && kinds.used < 56;
       kind = find_unknown_kind(cx, n, kind)) {
    if (kinds.used) put(&kinds, ", ");
    put_number(&kinds, (uint32_t)kind);
  }
  f->kinds = keep_last_text(cx, &kinds);
}

/* Describes the GPU code of a note's component that was not examined, or returns null. Declared
 * archs count as examined. */
CODE const char *describe_unjudged_code(struct context *cx, const struct note *n) {
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = get_row(cx, n, i);
    if (row.kind == ROW_GPU) return 0;
  }
  if (n->own && cx->looks) return "GPU code that stands as plain data"; /* which has no container */
  if (n->state != NOTE_WHOLE || n->head.archs_known == ARCHS_OBSERVED) return 0;
  if (!n->own) return "GPU code of another file"; /* its containers are not read */
  return n->head.sealed && n->head.archs_known == ARCHS_DECLARED
             ? "GPU code that was declared and not found"
             : 0;
}

/* Appends a name to those after `from`. */
CALLED void put_joined(struct text *t, size_t from, const char *between, const char *name) {
  if (t->used > from) put(t, between);
  put(t, name);
}

/* Names what was not judged of a note, for the report and for check(). Several notes may share an
 * entry. */
CODE void put_not_judged(struct context *cx, struct text *t, size_t from, const struct note *n,
                         const char *between) {
  static const char cudart[] = "what a static cudart asks of the driver";
  const char *code = describe_unjudged_code(cx, n);
  int kind = -1;
  while ((kind = find_unknown_kind(cx, n, kind)) >= 0) {
    put_joined(t, from, between, "row of kind ");
    put_number(t, (uint32_t)kind);
  }
  if (code && !find_text(t->at + from, code)) put_joined(t, from, between, code);
  /* A shared cudart is needed by name, and host code of nvcc uses one; no other use is visible. */
  if (n->own && cx->looks && !n->sees && !find_text(t->at + from, cudart))
    put_joined(t, from, between, cudart);
}

/* Adds a finding for what cannot be read of a note; returns whether it has rows to judge. */
CODE int judge_bytes(struct context *cx, const struct note *n) {
  if (!is_note_readable(n)) {
    struct finding *f =
        add_finding(cx, n->state == NOTE_IS_ABSENT ? NOTE_DAMAGED_NOT_FOUND : NOTE_DAMAGED);
    f->file = keep_shown_text(cx, base_name(get_object_path(cx, n->file.name)));
    if (n->damage) f->why = keep_text(cx, n->damage);
    return 0;
  }
  if (n->state == NOTE_IS_NEWER) add_finding(cx, NOTE_NEWER);
  else add_unknown_rows(cx, n);
  return 1;
}

/* Remembers the cuDNN of the row that was judged, for the report. */
CODE void remember_cudnn(struct context *cx) {
  const struct cudnn *c = &cx->shared.row.cudnn;
  struct seen_cudnn *seen = &cx->seen_cudnn[cx->seen];
  if (cx->seen == MAX_SEEN || (c->state != FOUND && c->state != INSIDE)) return;
  seen->note = cx->now;
  seen->from = c->from;
  seen->version = c->version;
  seen->cuda = c->cuda;
  seen->path = keep_text(cx, c->path);
  seen->picked_by = keep_text(cx, c->why);
  cx->seen++;
}

/* Returns whether only the real cuDNN can show what level 0 could not. */
CODE int needs_probe(struct context *cx, const struct cudnn *c, const struct library_row *row) {
  const int is_searched = (row->flags & LIBRARY_DLOPENED) && c->state != INSIDE;
  if (has_round(cx, ERROR) || (c->state == FOUND && !c->version)) return 1;
  return cx->library_path_is_unknown && is_searched && !is_loaded(c->soname, &cx->found, 0);
}

/* Judges the cuDNN of a row by files, and if those do not show that it is right, by the real one.
 */
CALLED void judge_cudnn_row(struct context *cx, struct note *n, const struct library_row *row,
                            int level, int late) {
  struct cudnn *c = &cx->shared.row.cudnn;
  int k;
  BY_REGISTER(c);
  begin_round(cx);
  detect_cudnn(cx, c, n, row, late);
  judge_cudnn(cx, c, row);
  if (level && needs_probe(cx, c, row)) {
    forget_round(cx);
    probe_cudnn(cx, c, n, row);
    judge_cudnn(cx, c, row);
  } else if (!level) { /* what the real one could contradict is not known */
    for (k = 0; k < c->parts; k++)
      if (c->part[k].needed && !c->part[k].present) c->part[k].known = 0;
    if (c->state == ABSENT && (row->flags & LIBRARY_REQUIRED)) c->state = UNKNOWN;
    forget_round(cx);
    judge_cudnn(cx, c, row);
  }
  if (c->state == INSIDE) {
    c->version = row->built;
    c->from = "the build";
  }
  n->cudnn = c->state == FOUND && c->version >> 16 == row->built >> 16 ? c->version : 0;
  n->cudnn_cuda = c->state == FOUND && (!c->version || n->cudnn) ? c->cuda : 0;
}

CODE int is_only_nothing_visible(struct context *cx) {
  const struct findings *all = &cx->findings;
  return all->count > all->round && all->at[all->count - 1].words == NOTHING_TO_SEE;
}

CODE void judge_driver_rows(struct context *cx, struct note *n, int asks, int level, int late) {
  if (!cx->driver_known++) detect_driver(cx, n);
  begin_round(cx);
  judge_driver(cx, n, asks);
  if (!cx->driver.by_files || !has_round(cx, INFO) || is_only_nothing_visible(cx)) return;
  forget_round(cx);
  /* A program that can do without a GPU is not kept waiting: it asks by check(). Who wants a report
   * waits for it. */
  if (level && (late || n->head.gpu != GPU_OPTIONAL || *get_variable("CUDAGUARD_REPORT"))) {
    probe_driver(cx);
    judge_driver(cx, n, asks);
  } else if (asks) {
    add_driver_finding(cx, DRIVER_CANNOT_TELL, INFO);
  }
}

CALLED void judge_note(struct context *cx, struct note *n, int level, int late) {
  int asks = n->head.gpu == GPU_REQUIRED, rests_on_cudnn = 0;
  uint32_t i;
  begin_round(cx);
  if (!judge_bytes(cx, n)) return;
  for (i = 0; i < count_rows(cx, n); i++) {
    const union row row = get_row(cx, n, i);
    if (row.kind == ROW_DRIVER) judge_cudart(cx, n, &row.driver);
    if (row.kind == ROW_DRIVER || row.kind == ROW_GPU) asks = 1;
    if (row.kind != ROW_LIBRARY) continue;
    judge_cudnn_row(cx, n, &row.cudnn, level, late);
    rests_on_cudnn |= n->cudnn_cuda || get_oldest_gpu(cx, &row) || get_newest_gpus(cx, &row);
    remember_cudnn(cx);
  }
  if (asks || rests_on_cudnn) judge_driver_rows(cx, n, asks, level, late);
}

/* Of two components whose fit GPUs are different ones, the warning that names both. */
CODE void judge_together(struct context *cx) {
  const struct note *end = cx->note + cx->notes, *other;
  for (cx->now = cx->note; cx->now < end; cx->now++)
    for (other = cx->now + 1; other < end; other++) {
      if (!cx->now->not_unfit || !other->not_unfit || (cx->now->not_unfit & other->not_unfit))
        continue;
      add_driver_finding(cx, NO_GPU_FOR_ALL, WARNING)->other = (uint16_t)(other - cx->note + 1);
      return;
    }
}

CODE void judge(struct context *cx, int level, int late) {
  int k;
  cx->findings.count = cx->findings.round = 0;
  cx->findings.left_out = cx->findings.left_out_now = 0;
  cx->kept.used = 1;
  cx->gpu_rows_of = 0;
  cx->seen = cx->level = cx->driver_known = 0;
  for (k = 0; k < cx->notes; k++) {
    struct note *n = cx->now = &cx->note[k];
    judge_note(cx, n, level && (late ? in_scope(cx, n) : speaks_for(cx, n)), late);
  }
  begin_round(cx);
  judge_together(cx);
  judge_slots(cx);
  add_all_left_out(cx);
}

#endif
