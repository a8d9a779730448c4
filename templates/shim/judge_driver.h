/* Judges the driver and the GPUs. */
#ifndef CUDAGUARD_JUDGE_DRIVER_H
#define CUDAGUARD_JUDGE_DRIVER_H

#include "judge_cudnn.h"
#include "detect_driver.h"
#include "archs.h"

/* Whether the cuDNN found is one of those that have dropped GPUs last, by this row of it. */
CODE int has_dropped(struct context *cx, const struct library_row *row) {
  return cx->now->cudnn >= row->drops_gpus_from;
}

/* The oldest GPU that the cuDNN found still serves, where this row is of it; 0: no release has left
 * any behind. */
CALLED uint32_t get_oldest_gpu(struct context *cx, const union row *row) {
  if (row->kind != ROW_LIBRARY || !cx->now->cudnn) return 0;
  return has_dropped(cx, &row->cudnn) ? row->cudnn.oldest_gpu : row->cudnn.oldest_gpu_before;
}

/* Returns the newest generation of GPUs that the cuDNN found has code for, if nothing documents
 * what it does on later ones; else 0. */
CODE uint32_t get_newest_gpus(struct context *cx, const union row *row) {
  const struct library_row *of = &row->cudnn;
  uint32_t cuda = cx->now->cudnn_cuda / 1000;
  if (row->kind != ROW_LIBRARY || !cx->now->cudnn ||
      (cuda ? cuda : 254) >= of->newest_gpus_below_cuda)
    return 0;
  return (cx->now->cudnn >> 8 & 0xff) >= of->newest_gpus_from ? of->newest_gpus
                                                              : of->newest_gpus_before;
}

/* Whether all visible GPUs are later ones. */
CODE int are_later(struct context *cx, uint32_t newest) {
  int k = 0;
  while (k < cx->driver.gpus && cx->driver.cc[k] >> 8 > newest &&
         !find_chip(cx->driver.cc[k])->tegra)
    k++;
  return newest && k && k == cx->driver.gpus;
}

/* Whether it is known of each visible GPU what it is. */
CODE int gpus_are_known(struct context *cx) {
  int k = 0;
  while (k < cx->driver.gpus && cx->driver.cc[k]) k++;
  return k == cx->driver.gpus;
}

/* The GPUs that a row is about: those of its interval, or those that the cuDNN found has left
 * behind. */
CODE uint64_t select_gpus(struct context *cx, const union row *row) {
  const struct driver *d = &cx->driver;
  const uint32_t oldest = get_oldest_gpu(cx, row);
  uint32_t lowest = 1, highest = 0;
  uint64_t gpus = 0;
  int k;
  if (row->kind == ROW_GPU) {
    lowest = row->gpu.lowest;
    highest = row->gpu.highest;
  }
  if (oldest) highest = oldest - 1;
  for (k = 0; k < d->gpus; k++)
    if (d->cc[k] && d->cc[k] >= lowest && d->cc[k] <= highest) gpus |= (uint64_t)1 << k;
  return gpus;
}

/* Appends each compute capability once, in the order of the GPUs: 7.5, 8.6, or as nvcc's -arch
 * spells them. */
CODE void put_gpus(struct context *cx, struct text *t, uint64_t which, int as_archs) {
  const struct driver *d = &cx->driver;
  int k, before;
  for (k = 0; k < d->gpus; k++) {
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

CODE void name_gpus(struct context *cx, struct finding *f, uint64_t which) {
  struct text t = start_kept_text(cx);
  put_gpus(cx, &t, which, 0);
  f->gpus = keep_last_text(cx, &t);
  t = start_kept_text(cx);
  put_gpus(cx, &t, which, 1);
  f->archs = keep_last_text(cx, &t);
}

CODE struct finding *add_driver_finding(struct context *cx, enum message words, int severity) {
  struct finding *f = add_weighed_finding(cx, words, severity);
  const struct driver *d = &cx->driver;
  name_gpus(cx, f, ~(uint64_t)0);
  f->cuda_major = d->cuda / 1000;
  f->answer = d->init > 0 ? (uint32_t)d->init : 0;
  if (d->state != FOUND) return f;
  f->driver = d->user;
  f->cuda = d->cuda;
  f->kernel = d->kernel == d->user ? 0 : d->kernel;
  f->libcuda = keep_shown_text(cx, d->path);
  return f;
}

/* A text of the note that is being judged. */
CODE uint16_t keep_note_text(struct context *cx, struct text_ref ref) {
  char text[NOTE_TEXT];
  return read_row_text(cx, cx->now, ref, &text) ? keep_shown_text(cx, text) : 0;
}

/* The first and the last toolkit that compile for all of these GPUs; 0: there is no limit. */
struct makers {
  uint32_t from, to;
};

CODE struct makers get_makers(struct context *cx, uint64_t gpus) {
  static const struct {
    uint16_t cc, from, to;
  } archs[] = {
#define ARCH(cc, from, to) {cc, from, to},
      ARCH_MAKERS(ARCH)
#undef ARCH
  };
  struct makers all;
  size_t i;
  int k;
  all.from = all.to = 0;
  for (k = 0; k < cx->driver.gpus; k++)
    for (i = 0; i < sizeof archs / sizeof *archs; i++) {
      if (!(gpus >> k & 1) || cx->driver.cc[k] != archs[i].cc) continue;
      if (archs[i].from > all.from) all.from = archs[i].from;
      if (archs[i].to && (!all.to || archs[i].to < all.to)) all.to = archs[i].to;
    }
  return all;
}

/* No code for these GPUs: the cure is another where the toolkit in use makes none for them. */
CODE struct finding *add_no_code(struct context *cx, int severity, uint64_t gpus) {
  const uint32_t built = read_toolkit(cx->now);
  const struct makers makers = get_makers(cx, gpus);
  enum message words = NO_CODE_FOR_GPU;
  struct finding *f;
  if (built && makers.to && built > makers.to) words = NO_CODE_FOR_GPU_NO_LONGER_MADE;
  else if (built && built < makers.from) words = NO_CODE_FOR_GPU_NOT_YET_MADE;
  f = add_driver_finding(cx, words, severity);
  f->built_cuda = built;
  f->made_from = makers.from;
  f->made_to = makers.to;
  return f;
}

/* Adds a finding about the GPUs of a row, with the values of the row. */
CODE struct finding *add_row_finding(struct context *cx, enum message words, int severity,
                                     const union row *row) {
  struct finding *f;
  if (words == DRIVER_TOO_OLD && !row->driver.release) words = DRIVER_TOO_OLD_NONE_KNOWN;
  if (words == DRIVER_TOO_OLD_FOR_CODE)
    words = row->gpu.arch      ? DRIVER_TOO_OLD_FOR_CODE_FORCED
            : row->gpu.release ? words
                               : DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN;
  f = words == NO_CODE_FOR_GPU ? add_no_code(cx, severity, select_gpus(cx, row))
                               : add_driver_finding(cx, words, severity);
  if (row->kind == ROW_DRIVER) {
    f->needs_cuda = row->driver.cuda;
    f->needs_release = widen_release(row->driver.release);
    f->code = keep_note_text(cx, row->driver.because);
    return f;
  }
  if (row->kind == ROW_PART) {
    f->found = cx->now->cudnn;
    f->found_cuda = cx->now->cudnn_cuda;
    f->needs_cuda = f->found_cuda / 1000 * 1000;
    return f;
  }
  name_gpus(cx, f, select_gpus(cx, row));
  if (row->kind == ROW_LIBRARY) {
    f->found = cx->now->cudnn;
    f->min = row->cudnn.min;
    f->dropped_in = has_dropped(cx, &row->cudnn)
                        ? row->cudnn.drops_gpus_from
                        : f->found & 0xff0000; /* 9.0.0: the first of its major */
    return f;
  }
  f->needs_cuda = row->gpu.cuda;
  f->needs_release = widen_release(row->gpu.release);
  f->code = keep_note_text(cx, row->gpu.code);
  f->built_for = keep_note_text(cx, row->gpu.built_for);
  if (row->gpu.arch) {
    struct text t = start_kept_text(cx);
    put(&t, "PTX ");
    put_capability(&t, row->gpu.arch);
    f->code = keep_last_text(cx, &t);
  }
  return f;
}

/* Judges the driver that a row needs. The result, here and below, is FITS, CANNOT_BE_TOLD, or the
 * message of what is wrong. The version that the driver supports decides, else its release; the
 * release of the kernel module can only accept. */
CODE enum message judge_floor(struct context *cx, uint32_t cuda, uint32_t packed_release,
                              enum message too_old) {
  const struct driver *d = &cx->driver;
  uint32_t release = widen_release(packed_release);
  if (!cuda && !release) return FITS;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : FITS;
  if (release && d->user) return d->user < release ? too_old : FITS;
  return release && d->kernel >= release ? FITS : CANNOT_BE_TOLD;
}

/* Whether PTX can be compiled here: what is not found by files is a doubt. */
CODE enum message judge_jit(struct context *cx) {
  struct driver *d = &cx->driver;
  if (!d->jit) d->jit = has_driver_library(cx, LIBJIT);
  if (d->jit < 0) return JIT_MISSING;
  return d->jit > 0 ? FITS : CANNOT_BE_TOLD;
}

/* cuDNN has a cudart of its own inside, which starts on drivers of its major alone. */
CODE enum message judge_cudnn_cuda(struct context *cx, const struct part_row *row) {
  uint32_t major = cx->now->cudnn_cuda / 1000 * 1000;
  uint32_t release = major <= row->older_cuda   ? row->older_release
                     : major <= row->newer_cuda ? row->newer_release
                                                : 0;
  return major && row->needed && row->newer_cuda
             ? judge_floor(cx, major, release, CUDNN_NEEDS_NEWER_DRIVER)
             : FITS;
}

/* What a row of GPUs comes to where a variable has machine code passed over, and PTX compiled in
 * its place. `arch` is then its ISA, MIXED where not all is known to have PTX, else 0. */
enum { MIXED = 1 };

CODE void apply_forced_jit(struct gpu_row *row) {
  uint32_t by = row->served_by;
  struct needs needs;
  row->arch = 0;
  /* For code that PTX serves, the flags describe machine code only if that makes a difference. */
  if (by & (BY_CUBIN | BY_SOME) ? by & NO_PTX : !(by & BY_PTX) || by < NO_PTX) return;
  if (!is_variable_one("CUDA_FORCE_PTX_JIT")) return;
  row->served_by = BY_UNKNOWN;
  row->arch = MIXED;
  if (!(by & BY_PTX))
    row->cuda = row->release = row->sure_cuda = row->sure_release =
        0; /* what is PTX anyway keeps what it needs */
  if (by < PTX_ISA) return;
  row->served_by = (uint16_t)((by & BY_SOME) | BY_PTX);
  row->arch = by >> 12 << 8 | (by >> 8 & 15);
  needs.cuda = row->cuda;
  needs.release = row->release;
  raise_needs(&needs, row->arch);
  row->cuda = needs.cuda;
  row->release = needs.release;
}

/* Judges a row of GPUs. If some containers serve the GPU (BY_SOME), one of them may do so by PTX.
 */
CALLED enum message judge_gpu(struct context *cx, const struct note *n, const struct gpu_row *row) {
  uint32_t by = row->served_by;
  enum message is;
  if (by & NO_PTX && (by & (BY_CUBIN | BY_SOME)) && is_variable_one("CUDA_FORCE_PTX_JIT"))
    return JIT_FORCED;
  if ((by & BY_SOME) && n->head.partial == PARTIAL_REFUSES) return PARTIAL_CODE;
  if (!(by & (BY_CUBIN | BY_PTX | BY_SOME))) return by & BY_NONE ? NO_CODE_FOR_GPU : CANNOT_BE_TOLD;
  if ((by & BY_PTX) && is_variable_one("CUDA_DISABLE_PTX_JIT")) return JIT_DISABLED;
  is = judge_floor(cx, row->cuda, row->release, DRIVER_TOO_OLD_FOR_CODE);
  if (is == FITS && (by & BY_PTX)) is = judge_jit(cx);
  if (is != FITS) return is;
  /* What older drivers make of newer machine code is in no document, nor what newer ones make of
   * PTX that no table has. */
  return judge_floor(cx, row->sure_cuda, row->sure_release, DRIVER_TOO_OLD_FOR_CODE) == FITS
             ? FITS
             : CANNOT_BE_TOLD;
}

/* Judges a driver that does not work, or is absent; returns whether the rows need not be judged.
 * `asks`: the note needs a driver for more than cuDNN. */
CODE int judge_answer(struct context *cx, const struct note *n, int asks) {
  const struct driver *d = &cx->driver;
  enum { STUB = 34, NO_DEVICE = 100, MISMATCH = 803, NOT_FOR_COMPAT = 804 }; /* CUresult */
  int required = n->head.gpu == GPU_REQUIRED, severity = ERROR;
  enum message words;
  if (d->init == STUB && (d->gpus > 0 || required))
    words = STUB_DRIVER; /* one that builds and has no GPU may have it */
  else if (d->init == MISMATCH) words = DRIVER_MISMATCH;
  else if (d->init == NOT_FOR_COMPAT) words = FORWARD_COMPAT_UNSUPPORTED;
  else if (d->state == ABSENT || d->init == STUB || d->init == NO_DEVICE ||
           (d->init <= 0 && d->gpus == 0)) {
    words = !required ? NOTHING_TO_SEE : d->state == ABSENT ? DRIVER_MISSING : GPU_MISSING;
    severity = required ? ERROR : INFO;
  } else if (d->init > 0 || d->state == UNKNOWN) {
    words = d->init > 0   ? DRIVER_CANNOT_TELL_ANSWER
            : *d->trouble ? DRIVER_CANNOT_TELL_NOT_LOADED
                          : DRIVER_CANNOT_TELL;
    severity = INFO;
  } else {
    return 0;
  }
  if (asks) add_driver_finding(cx, words, severity)->why = keep_text(cx, d->trouble);
  return 1;
}

/* What the rows of a note come to. GPUs are bits. */
struct row_results {
  uint64_t fit, unfit, kernels; /* kernels: those that a row of code is about */
  int open, doubt, has_unsure;
  union row unsure; /* the first that may fit */
};

/* Judges a row that asks for a driver, whatever the GPU is. */
CODE void judge_driver_row(struct context *cx, const union row *row, int adds,
                           struct row_results *r) {
  enum message is = FITS;
  if (row->kind == ROW_DRIVER)
    is = judge_floor(cx, row->driver.cuda, row->driver.release, DRIVER_TOO_OLD);
  if (row->kind == ROW_PART) is = judge_cudnn_cuda(cx, &row->inner);
  if (is == CANNOT_BE_TOLD) r->open = 1;
  if (is < FITS && adds) add_row_finding(cx, is, ERROR, row);
  if (is != FITS && cx->driver.by_files) r->doubt = 1;
}

/* Judges whether the cuDNN of a row works on GPUs of this generation: too old or too new for it.
 * What every release of its major has left behind, no driver of today drives. */
CODE void judge_generation(struct context *cx, const union row *row, int adds,
                           struct row_results *r) {
  const uint32_t newest = get_newest_gpus(cx, row);
  const int dropped = get_oldest_gpu(cx, row) && has_dropped(cx, &row->cudnn);
  struct finding *f;
  if (cx->driver.by_files && (dropped || newest) && !gpus_are_known(cx)) {
    r->open = 1;
    r->doubt = 1;
  }
  if (!adds || !are_later(cx, newest)) return;
  f = add_driver_finding(cx, CUDNN_BEFORE_THIS_GPU, INFO);
  f->found = cx->now->cudnn;
  f->newest_major = newest;
}

/* Adds to the results what a row is for these GPUs. */
CALLED void judge_gpus(struct context *cx, const union row *row, enum message is, uint64_t all,
                       int adds, struct row_results *r) {
  const uint64_t here = select_gpus(cx, row);
  if (!here) return;
  if (is == FITS) r->fit |= here;
  if (is < FITS) {
    r->unfit |= here;
    if (adds) add_row_finding(cx, is, all & ~r->unfit ? INFO : ERROR, row);
  }
  if (is == CANNOT_BE_TOLD && adds && !r->has_unsure && (here & ~r->unfit)) {
    r->unsure = *row;
    r->has_unsure = 1;
  }
}

CODE void judge_row(struct context *cx, struct note *n, uint32_t i, int adds,
                    struct row_results *r) {
  const struct driver *d = &cx->driver;
  const uint64_t all = d->gpus > 0 ? ~(uint64_t)0 >> (64 - d->gpus) : 0;
  union row row = get_row(cx, n, i);
  judge_driver_row(cx, &row, adds, r);
  judge_generation(cx, &row, adds, r);
  if (row.kind == ROW_LIBRARY) judge_gpus(cx, &row, CUDNN_TOO_NEW_FOR_GPU, all, adds, r);
  if (row.kind != ROW_GPU) return;
  apply_forced_jit(&row.gpu);
  r->kernels = all;
  judge_gpus(cx, &row, judge_gpu(cx, n, &row.gpu), all, adds, r);
}

/* Adds a finding about a row that may fit; returns whether it explains why that is unknown. */
CODE int add_unsure(struct context *cx, const union row *row) {
  const struct gpu_row *gpu = &row->gpu;
  enum message message = DRIVER_CANNOT_TELL_NEWER_PTX;
  struct finding *f;
  if (gpu->arch == MIXED) message = DRIVER_CANNOT_TELL_FORCED;
  else if (judge_floor(cx, gpu->sure_cuda, gpu->sure_release, DRIVER_TOO_OLD_FOR_CODE) >= FITS)
    return 0;
  else if (gpu->sure_release) message = DRIVER_CANNOT_TELL_UNSURE;
  f = add_row_finding(cx, message, INFO, row);
  f->needs_release = widen_release(gpu->sure_release);
  f->nvcc_major = gpu->sure_cuda / 1000;
  return 1;
}

/* Returns whether a fact is missing that any row may depend on. */
CODE int is_driver_unknown(const struct driver *d) {
  if (d->gpus < 0) return 1;
  if (d->init < 0 && d->user && d->kernel && d->user != d->kernel) return 1;
  return d->by_files && (!d->user || !d->kernel);
}

/* The rows about driver and GPU. One fit GPU among others is enough. */
CODE void judge_rows(struct context *cx, struct note *n, int asks) {
  const struct driver *d = &cx->driver;
  struct row_results r;
  uint32_t i;
  int adds, covered;
  memset(&r, 0, sizeof r);
  r.open = is_driver_unknown(d);
  for (adds = 0; adds < 2; adds++) /* what a row weighs depends on those behind it */
    for (i = 0; i < count_rows(cx, n); i++) judge_row(cx, n, i, adds, &r);
  n->not_unfit = r.kernels & ~r.unfit;
  covered = !n->not_unfit || (r.fit & ~r.unfit);
  if (!r.open && !covered && r.has_unsure && !d->by_files && add_unsure(cx, &r.unsure)) return;
  if (!covered || (d->by_files && (r.unfit || r.kernels & ~r.fit))) r.open = 1;
  if (r.open && (asks || r.unfit || r.doubt)) add_driver_finding(cx, DRIVER_CANNOT_TELL, INFO);
}

CODE void judge_driver(struct context *cx, struct note *n, int asks) {
  n->not_unfit = 0;
  if (!judge_answer(cx, n, asks)) judge_rows(cx, n, asks);
}

/* Judges a shared libcudart of an older minor than built with, by the name of its file; those of
 * pip's packages have no minor. */
CALLED void judge_cudart(struct context *cx, const struct note *n, const struct driver_row *row) {
  char soname[NOTE_TEXT];
  uint32_t version;
  struct finding *f;
  if (!read_row_text(cx, n, row->cudart, &soname) || !*soname || !is_loaded(soname, &cx->found, 0))
    return;
  resolve_links(cx, cx->found, &cx->real);
  version = parse_version_in_name(base_name(cx->real));
  if (version && version >> 8 >= row->cudart_built >> 8) return;
  f = add_finding(cx, version ? CUDART_OLDER : CUDART_UNKNOWN);
  f->built_cuda = convert_to_cuda(row->cudart_built);
  f->found_cuda = convert_to_cuda(version);
  f->library = keep_shown_text(cx, soname);
  f->path = keep_shown_text(cx, cx->found);
}

#endif
