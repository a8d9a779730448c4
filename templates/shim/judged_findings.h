/* Adds the findings of the judge, with the values of their messages. */
#ifndef CUDAGUARD_JUDGED_FINDINGS_H
#define CUDAGUARD_JUDGED_FINDINGS_H

#include "collection.h"
#include "own_kernels.h"
#include "detect_driver.h"
#include "archs.h"
/* NOLINTNEXTLINE(bugprone-suspicious-include): shim.c is joined from all files */
#include "judge.c"

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

SHIM_FN struct finding *add_judged_finding(struct context *cx,
                                                 const struct judge_finding *from) {
  return add_finding_with_severity(cx, get_judged_message(from), (int)from->severity);
}

/* Appends the files of the parts that a finding is about. */
SHIM_FN void put_parts(struct text *t, const struct cudnn *c, uint64_t parts) {
  int k;
  for (k = 0; k < c->parts; k++) {
    if (!(parts >> k & 1)) continue;
    if (t->used) put(t, ", ");
    put_untrusted(t, c->part[k].file);
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
    if (!(which >> k & 1) || !d->cc[k]) continue;
    for (before = 0; before < k; before++)
      if ((which >> before & 1) && d->cc[before] == d->cc[k]) break;
    if (before < k) continue;
    if (t->used) put(t, ", ");
    if (as_archs) {
      put(t, "sm_");
      put_number(t, d->cc[k] >> 8);
      put_number(t, d->cc[k] & 0xff);
    } else {
      put_capability(t, d->cc[k]);
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
      if (!(gpus >> k & 1) || cx->driver.cc[k] != archs[i].cc) continue;
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
      find_text(cx->texts.at + f->code, "PTX text"))
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
  f->why = store_text(cx, cx->driver.error);
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

#endif
