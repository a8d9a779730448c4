/* Adds the findings of the judge, with the values of their messages. */
#include "shim.h"

/* The messages of the judge's codes. The last is for codes that the facts of the shim never
 * produce. */
static const uint8_t judged_messages[] = {
#define MESSAGE(name) name,
    JUDGE_FINDINGS(MESSAGE)
#undef MESSAGE
        DRIVER_CANNOT_TELL};

SHIM_FN enum message get_judged_message(const struct judge_finding *f) {
  const size_t last = sizeof judged_messages - 1;
  return (enum message)judged_messages[f->code < last ? f->code : last];
}

/* Converts a packed version to the form of CUDA versions: 12020. */
SHIM_FN uint32_t convert_to_cuda(uint32_t packed) {
  return (packed >> 16) * 1000 + (packed >> 8 & 0xff) * 10;
}

/* ---- cuDNN ---- */

SHIM_FN struct finding *add_judged_finding(struct context *cx, const struct judge_finding *from) {
  return add_finding_with_severity(cx, get_judged_message(from), (int)from->severity);
}

/* Appends the files of the parts that a finding is about. */
SHIM_FN void put_parts(struct text *t, const struct cudnn *c, uint64_t parts) {
  const struct part *p = c->part;
  for (; parts; parts >>= 1, p++) {
    if (!(parts & 1)) continue;
    if (t->used) put(t, ", ");
    put_untrusted(t, p->file);
  }
}

SHIM_FN void add_cudnn_finding(struct context *cx, const struct judge_finding *from) {
  struct finding *f = add_judged_finding(cx, from);
  const struct cudnn *c = &cx->shared.note.cudnn;
  const union row row = get_row(cx, cx->now, from->row);
  const char *by = c->by, *path = c->path;
  struct text t;
  int k = 0;
  f->built = row.cudnn.built;
  f->min = row.cudnn.min;
  if ((row.cudnn.flags & LIBRARY_PATCH) && f->built > f->min) f->min = f->built;
  f->built_major = f->built >> 16;
  f->found = c->is.version;
  f->part = from->version;
  f->path = store_untrusted_text(cx, c->path);
  f->library = store_untrusted_text(cx, c->soname);
  f->picked_by = store_text(cx, c->why);
  /* Names the library that has the version if it is in another folder. */
  for (; by && *by && *by == *path; path++) by++;
  if (by && (base_name(by) != by || base_name(path) != path))
    f->beside = store_untrusted_text(cx, c->by);
  if (from->code == JUDGE_CUDNN_OTHER_CUDA) {
    f->found_cuda = c->is.made_with;
    f->built_cuda = cx->call.manifest.built_cuda;
  }
  if (!from->parts) return;
  t = start_stored_text(cx);
  put_parts(&t, c, from->parts);
  f->library = store_last_text(cx, &t);
  if (from->code != JUDGE_CUDNN_INNER_MIXED) return;
  while (!(from->parts >> k & 1)) k++;
  f->beside = store_untrusted_text(cx, c->part[k].path);
}

/* ---- driver and GPUs ---- */

/* Appends each compute capability once, in the order of the GPUs: as 7.5, or as the sm_75 of nvcc's
 * -arch. */
SHIM_FN void put_gpus(struct context *cx, struct text *t, uint64_t which, int as_archs) {
  const struct driver *d = &cx->driver;
  int k, before;
  for (k = 0; k < d->is.gpu_count; k++) {
    if (!(which >> k & 1) || !d->gpu[k].cc) continue;
    for (before = 0; before < k; before++)
      if ((which >> before & 1) && d->gpu[before].cc == d->gpu[k].cc) break;
    if (before < k) continue;
    if (t->used) put(t, ", ");
    if (as_archs) {
      put(t, "sm_");
      put_number(t, d->gpu[k].cc >> 8);
      put_number(t, d->gpu[k].cc & 0xff);
    } else {
      put_capability(t, d->gpu[k].cc);
    }
  }
}

SHIM_FN void name_gpus(struct context *cx, struct finding *f, uint64_t which) {
  struct text t;
  if (cx->driver.is.gpu_count <= 0) return;
  t = start_stored_text(cx);
  put_gpus(cx, &t, which, 0);
  f->gpus = store_last_text(cx, &t);
  t = start_stored_text(cx);
  put_gpus(cx, &t, which, 1);
  f->archs = store_last_text(cx, &t);
}

SHIM_FN void set_driver_values(struct context *cx, struct finding *f) {
  const struct driver *d = &cx->driver;
  f->cuda_major = d->is.cuda / 1000;
  f->answer = d->is.init > 0 ? (uint32_t)d->is.init : 0;
  if (d->is.state != FOUND) return;
  f->driver = d->is.user;
  f->cuda = d->is.cuda;
  f->kernel = d->is.kernel == d->is.user ? 0 : d->is.kernel;
  f->libcuda = store_untrusted_text(cx, *d->path);
}

/* Stores a text of the judged note, and returns its index; 0 if there is none. */
SHIM_FN uint16_t store_note_text(struct context *cx, struct text_ref ref) {
  char text[NOTE_TEXT];
  return read_row_text(cx, cx->now, ref, &text) ? store_untrusted_text(cx, text) : 0;
}

/* Sets the toolkits that compile for all GPUs of a finding about missing code. If the toolkit of
 * the build does not, the message is another one. */
SHIM_FN void set_makers(struct context *cx, struct finding *f, uint64_t gpus) {
  /* Toolkits as 130 for 13.0. */
  static const struct {
    uint16_t cc;
    uint8_t from, to;
  } archs[] = {
#define ARCH(cc, from, to) {cc, (from) / 100 + (from) % 100 / 10, (to) / 100 + (to) % 100 / 10},
      ARCH_MAKERS(ARCH)
#undef ARCH
  };
  const uint32_t built = read_toolkit(cx->now);
  uint32_t from = 0, to = 0;
  size_t i;
  int k;
  for (k = 0; k < cx->driver.is.gpu_count; k++)
    for (i = 0; i < sizeof archs / sizeof *archs; i++) {
      if (!(gpus >> k & 1) || cx->driver.gpu[k].cc != archs[i].cc) continue;
      if (archs[i].from > from) from = archs[i].from;
      if (archs[i].to && (!to || archs[i].to < to)) to = archs[i].to;
    }
  f->made_from = from / 10 * 1000 + from % 10 * 10;
  f->made_to = to / 10 * 1000 + to % 10 * 10;
  f->built_cuda = built;
  if (built && f->made_to && built > f->made_to) f->kind = NO_CODE_FOR_GPU_NO_LONGER_MADE;
  else if (built && built < f->made_from) f->kind = NO_CODE_FOR_GPU_NOT_YET_MADE;
}

/* Sets the values of a row of GPUs. */
SHIM_FN void set_gpu_row_values(struct context *cx, struct finding *f,
                                const struct judge_finding *from, const struct gpu_row *row) {
  if (f->kind == NO_CODE_FOR_GPU) set_makers(cx, f, from->gpus);
  if (f->kind == DRIVER_CANNOT_TELL_UNSURE) {
    f->nvcc_major = from->needs_cuda / 1000;
    f->needs_cuda = row->cuda;
  }
  f->code = store_note_text(cx, row->code);
  f->built_for = store_note_text(cx, row->built_for);
  /* Machine code for the GPU does not replace PTX text that the program loads. */
  if ((f->kind == DRIVER_TOO_OLD_FOR_CODE || f->kind == DRIVER_TOO_OLD_FOR_CODE_COMPRESSED) &&
      find_text(cx->texts + f->code, "PTX text"))
    f->kind = DRIVER_TOO_OLD_FOR_CODE_TEXT;
  if (from->isa) {
    struct text t = start_stored_text(cx);
    put(&t, "PTX ");
    put_capability(&t, from->isa);
    f->code = store_last_text(cx, &t);
  }
}

SHIM_FN void add_driver_finding(struct context *cx, const struct judge_finding *from) {
  struct finding *f = add_judged_finding(cx, from);
  union row row;
  name_gpus(cx, f, from->gpus);
  set_driver_values(cx, f);
  f->needs_cuda = from->needs_cuda;
  f->needs_release = from->needs_release;
  f->why = store_untrusted_text(cx, cx->driver.error);
  if (from->code == JUDGE_GPU_NOT_FOR_DRIVER) {
    struct text t = start_stored_text(cx);
    put_number(&t, from->version);
    f->branch = store_last_text(cx, &t);
  }
  if (from->row == NO_ROW) return;
  row = get_row(cx, cx->now, from->row);
  if (row.kind == ROW_DRIVER) f->code = store_note_text(cx, row.driver.because);
  if (row.kind == ROW_GPU) set_gpu_row_values(cx, f, from, &row.gpu);
  if (row.kind == ROW_PART) f->found_cuda = cx->call.result.made_with;
  if (row.kind == ROW_PART || row.kind == ROW_LIBRARY) f->found = cx->call.result.cudnn;
  if (row.kind != ROW_LIBRARY) return;
  f->min = row.cudnn.min;
  if (from->code != JUDGE_CUDNN_TOO_NEW_FOR_GPU) f->newest_major = from->version;
  else f->dropped_in = from->version;
  if (f->dropped_in && f->min >= f->dropped_in) f->min = 0; /* no cuDNN is between them */
}

/* ---- cudart ---- */

SHIM_FN void add_cudart_finding(struct context *cx, const struct judge_finding *from) {
  struct finding *f = add_judged_finding(cx, from);
  f->built_cuda = convert_to_cuda(cx->call.manifest.cudart_built);
  f->found_cuda = convert_to_cuda(cx->call.cudart.version);
  f->library = cx->call.cudart_soname;
  f->path = cx->call.cudart_path;
}

/* Adds the findings of the last call of the judge, about the note that is being judged. */
SHIM_FN void add_judged_findings(struct context *cx) {
  const struct judge_result *r = &cx->call.result;
  uint32_t i;
  for (i = 0; i < r->count; i++) {
    const struct judge_finding *f = &r->findings[i];
    if (f->code <= JUDGE_CUDNN_CANNOT_TELL_NOT_LOADED) add_cudnn_finding(cx, f);
    else if (f->code <= JUDGE_CUDART_UNKNOWN) add_cudart_finding(cx, f);
    else add_driver_finding(cx, f);
  }
  cx->findings.dropped += r->dropped;
}

/* Judges the notes of this process: calls the judge with the facts that it needs. */

SHIM_API const char *get_object_path(struct context *cx, const char *name) {
  return *name ? name : find_program(cx);
}

SHIM_API int is_variable_one(const char *name) { return texts_are_equal(get_variable(name), "1"); }

SHIM_API void reset_cudnn(struct cudnn *c) {
  memset(c, 0, offsetof(struct cudnn, names));
  c->names[0] = c->soname[0] = c->why[0] = c->path[0] = 0;
}

/* Resets the facts to unknown, but touches no unused page. */
SHIM_API void reset_driver(struct driver *d) {
  memset(&d->is, 0, offsetof(struct driver, error) + 1 - offsetof(struct driver, is));
  d->is.init = d->is.gpu_count = -1;
  d->is.gpus = d->gpu;
}

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

/* Appends a name that is not there yet. */
SHIM_FN void put_once(struct text *t, size_t from, const char *between, const char *name) {
  if (!find_text(t->at + from, name)) put_joined(t, from, between, name);
}

/* Appends the requirements of a note that were not judged, for the report and for check(). Several
 * notes may share an entry. */
SHIM_API void put_not_judged(struct context *cx, struct text *t, size_t from, const struct note *n,
                             const char *between) {
  const char *code = describe_unjudged_code(cx, n);
  int kind = -1;
  while ((kind = find_unknown_kind(cx, n, kind)) >= 0) {
    put_joined(t, from, between, "row of kind ");
    put_number(t, (uint32_t)kind);
  }
  if (code) put_once(t, from, between, code);
  /* A shared cudart is a needed library, and host code of nvcc uses a cudart. No other use is
   * visible. */
  if (n->own && cx->searches_kernels && !cx->seen_row[0].driver.release)
    put_once(t, from, between, "driver requirement of a static cudart");
  if (cx->is_probe_skipped)
    put_once(t, from, between, "facts that need a child process, because a debugger is attached");
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
  struct seen_cudnn *seen = &cx->now->cudnn;
  if (c->is.state != FOUND && c->is.state != INSIDE) return;
  seen->is_seen = 1;
  seen->from = c->from;
  seen->version = c->is.version;
  seen->cuda = c->is.made_with;
  seen->path = store_text(cx, c->path);
  seen->picked_by = store_text(cx, c->why);
}

/* Reads the texts of rows: the CUDA that the program was built with, if no toolkit is known, the
 * row of a shared cudart, and the names with which the program opens libcuda. */
SHIM_FN void read_driver_rows(struct context *cx, const struct note *n, uint32_t rows) {
  struct judge_manifest *m = &cx->call.manifest;
  char text[NOTE_TEXT];
  uint32_t i;
  m->built_cuda = read_toolkit(n);
  m->cudart_built = 0;
  copy_text(cx->libcuda_names, NOTE_TEXT, LIBCUDA);
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
  struct judge_facts facts;
  memset(&call->cudart, 0, sizeof call->cudart);
  facts.cudnn = &cx->shared.note.cudnn.is;
  facts.cudart = &call->cudart;
  facts.driver = &cx->driver.is;
  call->result.findings = cx->judged;
  call->result.capacity = MAX_FINDINGS;
  for (;;) {
    set_manifest(cx, n);
    cudaguard_judge_start(&call->manifest, &facts, &call->result);
    if (!(call->result.needs & allowed)) return;
    detect_needed(cx, n, call->result.needs & allowed, late);
    set_cudnn_facts(&cx->shared.note.cudnn);
  }
}

SHIM_FN void judge_note(struct context *cx, struct note *n, int level, int late) {
  struct cudnn *c = &cx->shared.note.cudnn;
  uint32_t library;
  if (!judge_bytes(cx, n)) return;
  reset_cudnn(c);
  call_judge(cx, n, level, late);
  add_judged_findings(cx);
  library = cx->call.result.library;
  if (library == NO_ROW) return;
  if (c->is.source == NOT_DETECTED) { /* it is linked into the program */
    c->is.state = INSIDE;
    c->is.version = read_note_row(n, library).cudnn.built;
    c->from = "the build";
  }
  remember_cudnn(cx);
}

SHIM_API void judge(struct context *cx, int level, int late) {
  int k;
  cx->findings.count = 0;
  cx->findings.dropped = 0;
  cx->findings.texts_used = 1;
  cx->level = cx->is_probe_skipped = 0;
  reset_driver(&cx->driver);
  for (k = 0; k < cx->notes; k++) {
    struct note *n = cx->now = &cx->note[k];
    n->cudnn.is_seen = 0;
    judge_note(cx, n, level && (late ? in_scope(cx, n) : reports_note(cx, n)), late);
  }
  judge_slots(cx);
  report_all_dropped(cx);
}
