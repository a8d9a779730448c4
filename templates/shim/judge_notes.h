/* Judges the notes of this process: calls the judge with the facts that it needs. */
#ifndef CUDAGUARD_JUDGE_NOTES_H
#define CUDAGUARD_JUDGE_NOTES_H

#include "judged_findings.h"
#include "detection.h"
#include "weak_symbols.h"

/* Returns the lowest unknown kind of a row that is higher than `above`, or -1. */
SHIM_FN int find_unknown_kind(struct context *cx, const struct note *n, int above) {
  int next = -1;
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = get_row(cx, n, i);
    if (!is_row_known(&row) && row.kind > above && (next < 0 || row.kind < next)) next = row.kind;
  }
  return next;
}

SHIM_FN void add_unknown_rows(struct context *cx, const struct note *n) {
  int kind = find_unknown_kind(cx, n, -1);
  struct finding *f;
  struct text kinds;
  if (kind < 0) return;
  f = add_finding(cx, NOTE_NEWER_ROWS);
  for (kinds = start_stored_text(cx); kind >= 0 && kinds.used < 56;
       kind = find_unknown_kind(cx, n, kind)) {
    if (kinds.used) put(&kinds, ", ");
    put_number(&kinds, (uint32_t)kind);
  }
  f->kinds = store_last_text(cx, &kinds);
}

/* Describes the GPU code of a note's component that was not examined, or returns null. Declared
 * archs count as examined. */
SHIM_FN const char *describe_unjudged_code(struct context *cx, const struct note *n) {
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = get_row(cx, n, i);
    if (row.kind == ROW_GPU) return 0;
  }
  if (!READS_OWN_KERNELS && n->own && !n->head.sealed) return "GPU code of this file";
  if (n->own && cx->searches_kernels)
    return "GPU code outside fatbin containers"; /* which has no container */
  if (n->state != NOTE_WHOLE || n->head.archs_known == ARCHS_OBSERVED) return 0;
  if (!n->own) return "GPU code of another file"; /* its containers are not read */
  return n->head.sealed && n->head.archs_known == ARCHS_DECLARED
             ? "declared GPU code that was not found"
             : 0;
}

/* Appends a name, with a separator if there are others after `from`. */
SHIM_FN void put_joined(struct text *t, size_t from, const char *between, const char *name) {
  if (t->used > from) put(t, between);
  put(t, name);
}

/* Appends the requirements of a note that were not judged, for the report and for check(). Several
 * notes may share an entry. */
SHIM_FN void put_not_judged(struct context *cx, struct text *t, size_t from, const struct note *n,
                            const char *between) {
  static const char cudart[] = "driver requirement of a static cudart";
  static const char traced[] = "facts that need a child process, because a debugger is attached";
  const char *code = describe_unjudged_code(cx, n);
  int kind = -1;
  while ((kind = find_unknown_kind(cx, n, kind)) >= 0) {
    put_joined(t, from, between, "row of kind ");
    put_number(t, (uint32_t)kind);
  }
  if (code && !find_text(t->at + from, code)) put_joined(t, from, between, code);
  /* A shared cudart is a needed library, and host code of nvcc uses a cudart. No other use is
   * visible. */
  if (n->own && cx->searches_kernels && !cx->seen_row[0].driver.release &&
      !find_text(t->at + from, cudart))
    put_joined(t, from, between, cudart);
  if (cx->is_probe_skipped && !find_text(t->at + from, traced)) put_joined(t, from, between, traced);
}

/* Adds findings about unreadable data of a note. Returns whether it has rows to judge. */
SHIM_FN int judge_bytes(struct context *cx, const struct note *n) {
  if (!is_note_readable(n)) {
    struct finding *f =
        add_finding(cx, n->state == NOTE_IS_ABSENT ? NOTE_DAMAGED_NOT_FOUND : NOTE_DAMAGED);
    f->file = store_untrusted_text(cx, base_name(get_object_path(cx, n->file.name)));
    if (n->damage) f->why = store_text(cx, n->damage);
    return 0;
  }
  if (n->state == NOTE_IS_NEWER) add_finding(cx, NOTE_NEWER);
  else add_unknown_rows(cx, n);
  return 1;
}

/* Stores the cuDNN of the judged row for the report. */
SHIM_FN void remember_cudnn(struct context *cx) {
  const struct cudnn *c = &cx->shared.note.cudnn;
  struct seen_cudnn *seen = &cx->seen_cudnn[cx->seen];
  if (cx->seen == MAX_SEEN || (c->is.state != FOUND && c->is.state != INSIDE)) return;
  seen->note = cx->now;
  seen->from = c->from;
  seen->version = c->is.version;
  seen->cuda = c->is.made_with;
  seen->path = store_text(cx, c->path);
  seen->picked_by = store_text(cx, c->why);
  cx->seen++;
}

/* Reads the texts of rows: the CUDA that the program was built with, if no toolkit is known, the
 * row of a shared cudart, and the names with which the program opens libcuda. */
SHIM_FN void read_driver_rows(struct context *cx, const struct note *n, uint32_t rows) {
  struct judge_manifest *m = &cx->call.manifest;
  char text[NOTE_TEXT];
  uint32_t i;
  m->built_cuda = read_toolkit(n);
  m->cudart_built = 0;
  copy_text(cx->libcuda_names, NOTE_TEXT, "libcuda.so.1");
  for (i = 0; i < rows; i++) {
    const union row row = get_row(cx, n, i);
    if (row.kind != ROW_DRIVER) continue;
    if (row.driver.names.length) read_row_text(cx, n, row.driver.names, &cx->libcuda_names);
    if (!m->built_cuda && read_row_text(cx, n, row.driver.because, &text) &&
        starts_with(text, "libcudart "))
      m->built_cuda = row.driver.cuda;
    if (m->cudart_built || !read_row_text(cx, n, row.driver.cudart, &text) || !*text) continue;
    m->cudart_built = row.driver.cudart_built;
    cx->call.cudart_row = i;
  }
}

SHIM_FN void set_manifest(struct context *cx, const struct note *n) {
  struct judge_manifest *m = &cx->call.manifest;
  m->rows[0].at = n->descriptor + n->head.rows_at;
  m->rows[0].count = n->head.rows;
  m->rows[0].stride = n->head.row_size;
  m->rows[1].at = cx->seen_row;
  m->rows[1].count = make_seen_rows(cx, n);
  m->rows[1].stride = ROW_SIZE;
  m->gpu = n->head.gpu;
  m->partial = n->head.partial;
  read_driver_rows(cx, n, m->rows[0].count + m->rows[1].count);
}

SHIM_FN void set_gpu_facts(struct context *cx) {
  struct driver *d = &cx->driver;
  struct judge_gpu *gpus = cx->gpus;
  int k;
  d->is.gpus = gpus;
  for (k = 0; k < d->is.gpu_count; k++) gpus[k].cc = d->cc[k];
#ifndef _WIN32 /* which numbers releases differently */
  d->is.branch = d->is.user >> 20;
#endif
}

SHIM_FN void set_cudnn_facts(struct cudnn *c) {
  c->is.parts = &c->part[0].is;
  c->is.part_stride = sizeof *c->part;
  c->is.part_count = (uint32_t)c->parts;
  c->is.has_file = c->path[0] != 0;
  c->is.major = parse_major_in_name(c->soname);
}

/* Returns the facts that the judge may request. If the GPU is optional and no report is requested,
 * the start does not wait for the driver: only check() calls it. */
SHIM_FN uint32_t get_allowed_needs(const struct note *n, int level, int late) {
  uint32_t allowed = NEED_CUDNN | NEED_CUDART | NEED_DRIVER | NEED_COMPILER;
  if (!level) return allowed;
  allowed |= NEED_CUDNN_ANSWER;
  return late || n->head.gpu != GPU_OPTIONAL || *get_variable("CUDAGUARD_REPORT")
             ? allowed | NEED_DRIVER_ANSWER
             : allowed;
}

/* Calls the judge until it needs no facts that may be detected. */
SHIM_FN void call_judge(struct context *cx, struct note *n, int level, int late) {
  const uint32_t allowed = get_allowed_needs(n, level, late);
  struct judge_call *call = &cx->call;
  memset(&call->cudart, 0, sizeof call->cudart);
  call->facts.cudnn = &cx->shared.note.cudnn.is;
  call->facts.cudart = &call->cudart;
  call->facts.driver = &cx->driver.is;
  call->result.findings = cx->judged;
  call->result.capacity = MAX_FINDINGS;
  for (;;) {
    set_manifest(cx, n);
    set_gpu_facts(cx);
    cudaguard_judge_start(&call->manifest, &call->facts, &call->result);
    if (!(call->result.needs & allowed)) return;
    detect_needed(cx, n, call->result.needs & allowed, late);
    if (call->result.needs & NEED_CUDNN) cx->is_shared_used = 1;
    if (cx->is_shared_used) set_cudnn_facts(&cx->shared.note.cudnn);
  }
}

SHIM_FN void judge_note(struct context *cx, struct note *n, int level, int late) {
  struct cudnn *c = &cx->shared.note.cudnn;
  uint32_t library;
  if (!judge_bytes(cx, n)) return;
  if (cx->is_shared_used) reset_cudnn(c);
  call_judge(cx, n, level, late);
  add_judged_findings(cx);
  library = cx->call.result.library;
  if (library == NO_ROW) return;
  if (c->is.source == NOT_DETECTED) { /* it is linked into the program */
    cx->is_shared_used = 1;
    c->is.state = INSIDE;
    c->is.version = read_note_row(n, library).cudnn.built;
    c->from = "the build";
  }
  remember_cudnn(cx);
}

SHIM_FN void judge(struct context *cx, int level, int late) {
  int k;
  cx->findings.count = 0;
  cx->findings.dropped = 0;
  cx->findings.texts_used = 1;
  cx->gpu_rows_of = 0;
  cx->seen = cx->level = cx->is_probe_skipped = 0;
  reset_driver(&cx->driver);
  for (k = 0; k < cx->notes; k++) {
    struct note *n = cx->now = &cx->note[k];
    judge_note(cx, n, level && (late ? in_scope(cx, n) : reports_note(cx, n)), late);
  }
  judge_slots(cx);
  report_all_dropped(cx);
}

#endif
