/* The judge of a start: see judge.h. */
#include "judge.h"
#include "coverage.h"
#include "tables.h"

#ifndef CUDAGUARD_PLATFORM_H
#include <string.h>
#endif

/* The results of all rows about driver and GPU. GPUs are bits by their index. */
struct row_results {
  uint64_t fit, unfit;
  uint32_t unsure_row;  /* the first row of GPUs that may fit, or NO_ROW */
  uint32_t branch_row;  /* a row whose driver's branch has an unknown CUDA version, or NO_ROW */
  uint8_t has_kernels;  /* there are rows of GPUs */
  uint8_t is_open;      /* a fact is missing that a row, or any row, depends on */
  uint8_t is_uncertain; /* files show that a row does not fit, or do not show that it fits */
};

/* The GPUs that the cuDNN found supports. */
struct cudnn_gpus {
  uint32_t row;        /* the row of that cuDNN */
  uint32_t oldest;     /* the oldest GPU; 0: all */
  uint32_t dropped_in; /* the cuDNN that dropped older ones */
  uint32_t newest; /* the newest generation for which it has code, if no document describes it on
                      later ones; or 0 */
  int has_dropped; /* the cuDNN found has dropped GPUs */
};

/* The state of one call. GPUs are bits by their index. */
struct judging {
  const struct judge_manifest *manifest;
  const struct judge_cudnn *cudnn;
  const struct judge_driver *driver;
  struct judge_result *result;
  uint64_t visible;        /* GPUs, without those that the driver does not drive */
  uint64_t maybe;          /* visible GPUs that the driver may not drive */
  int32_t gpu_count;       /* as many as there are bits */
  uint32_t rows, i;        /* i: the row that is being judged */
  uint8_t by_files;        /* the driver was not called. It is unknown which GPUs it shows, so all
                              must fit */
  uint8_t has_requirement; /* the manifest has a requirement for driver or GPU */
  union row row;
  struct cudnn_gpus cudnn_gpus;
  struct judge_finding spare;
};

/* Converts a release of a row to the wide form. */
SHIM_FN uint32_t widen_release(uint32_t packed) { return packed >> 16 << 20 | (packed & 0xffff); }

SHIM_FN void copy_row(const struct judging *judging, uint32_t i, union row *to) {
  const struct judge_rows *from = &judging->manifest->rows[0];
  if (i >= from->count) {
    i -= from->count;
    from++;
  }
  memcpy(to, (const char *)from->at + (size_t)i * from->stride, sizeof *to);
}

/* Begins to judge a row. */
SHIM_FN void begin_row(struct judging *judging, uint32_t i) {
  judging->i = i;
  copy_row(judging, i, &judging->row);
}

SHIM_FN struct judge_finding *add_judged(struct judging *judging, uint32_t code,
                                         uint32_t severity) {
  struct judge_result *r = judging->result;
  struct judge_finding *f = &judging->spare;
  uint32_t k = r->count;
  if (k < r->capacity) {
    f = &r->findings[r->count++];
  } else {
    r->dropped++;
    while (severity == ERROR && k-- > 0)
      if (r->findings[k].severity != ERROR) {
        f = &r->findings[k];
        break;
      }
  }
  memset(f, 0, sizeof *f);
  f->code = code;
  f->severity = severity;
  f->row = judging->i;
  f->gpus = judging->visible;
  return f;
}

/* Adds a finding that is not about a row. */
SHIM_FN struct judge_finding *add_general(struct judging *judging, uint32_t code,
                                          uint32_t severity) {
  judging->i = NO_ROW;
  return add_judged(judging, code, severity);
}

/* ---- cuDNN ---- */

SHIM_FN int is_same_minor(uint32_t one, uint32_t other) { return one >> 8 == other >> 8; }

/* Returns whether cuDNN is linked into the program. */
SHIM_FN int is_inside(const struct library_row *row) {
  return (row->flags & LIBRARY_STATIC) && !(row->flags & LIBRARY_LINKED);
}

/* Adds an error. If only files were examined, the answer of cuDNN may contradict it. */
SHIM_FN struct judge_finding *add_cudnn_error(struct judging *judging, uint32_t code) {
  if (judging->cudnn->source == BY_FILES) judging->result->needs |= NEED_CUDNN_ANSWER;
  return add_judged(judging, code, ERROR);
}

SHIM_FN void add_mixed(struct judging *judging, uint32_t version, uint64_t parts) {
  struct judge_finding *f = is_same_minor(version, judging->cudnn->version)
                                ? add_judged(judging, JUDGE_CUDNN_INNER_MIXED, WARNING)
                                : add_cudnn_error(judging, JUDGE_CUDNN_INNER_MIXED);
  f->version = version;
  f->parts = parts;
}

/* Returns whether cuDNN does not work without the part of this row. */
SHIM_FN int is_part_needed(const struct judging *judging, uint32_t i) {
  union row row;
  copy_row(judging, i, &row);
  return row.kind == ROW_PART && (row.inner.needed & 1);
}

/* Judges the parts of a cuDNN. All missing parts that only some calls need share one finding.
 * Returns whether a needed part is missing. */
SHIM_FN int judge_parts(struct judging *judging) {
  const struct judge_cudnn *c = judging->cudnn;
  uint64_t lacking = 0, bit = 1;
  uint32_t k;
  int lacks_needed = 0;
  for (k = 0; k < c->part_count; k++, bit <<= 1) {
    const struct judge_part *p =
        (const struct judge_part *)((const char *)c->parts + (size_t)k * c->part_stride);
    if (p->state == FOUND && p->version && c->version && p->version != c->version)
      add_mixed(judging, p->version, bit);
    if (p->state != ABSENT || p->row >= judging->rows) continue;
    if (!is_part_needed(judging, p->row)) {
      lacking |= bit;
    } else if (c->source == BY_FILES) {
      judging->result->needs |= NEED_CUDNN_ANSWER; /* cuDNN may work without it */
    } else {
      lacks_needed = 1;
      add_judged(judging, JUDGE_CUDNN_INNER_MISSING_NEEDED, ERROR)->parts = bit;
    }
  }
  if (lacking) add_judged(judging, JUDGE_CUDNN_INNER_MISSING, WARNING)->parts = lacking;
  return lacks_needed;
}

/* Compares the loader library with the parts that it opens. */
SHIM_FN void judge_loader(struct judging *judging) {
  const struct judge_cudnn *c = judging->cudnn;
  if (!c->loader || !c->version || c->loader == c->version) return;
  if (!HAS_DESCRIBED_FACTS || !c->is_minor) add_mixed(judging, c->loader, 0);
  else if (!is_same_minor(c->loader, c->version))
    add_judged(judging, JUDGE_CUDNN_INNER_MIXED_LOADER, ERROR)->version = c->loader;
}

/* Judges a cuDNN that was found, and whose major version is that of the build. */
SHIM_FN void judge_found_cudnn(struct judging *judging, const struct library_row *row) {
  const struct judge_cudnn *c = judging->cudnn;
  const uint32_t min =
      (row->flags & LIBRARY_PATCH) && row->built > row->min ? row->built : row->min;
  const uint32_t built = judging->manifest->built_cuda;
  if (!judge_parts(judging) && !c->version) add_judged(judging, JUDGE_CUDNN_CANNOT_TELL, INFO);
  if (c->version && c->version < min)
    add_cudnn_error(judging, is_same_minor(c->version, row->built) ? JUDGE_CUDNN_OLDER_PATCH
                                                                   : JUDGE_CUDNN_OLDER);
  judge_loader(judging);
  if (c->made_with && built && c->made_with / 1000 != built / 1000)
    add_judged(judging, JUDGE_CUDNN_OTHER_CUDA, WARNING);
}

/* Judges a cuDNN that was not found; returns whether it is absent. */
SHIM_FN int judge_absent_cudnn(struct judging *judging, uint32_t flags) {
  if (judging->cudnn->state != ABSENT || !(flags & (LIBRARY_LINKED | LIBRARY_DLOPENED))) return 0;
  if (!(flags & (LIBRARY_LINKED | LIBRARY_REQUIRED))) {
    add_judged(judging, JUDGE_CUDNN_ABSENT, INFO);
    return 1;
  }
  if (judging->cudnn->source == BY_FILES) {
    judging->result->needs |= NEED_CUDNN_ANSWER;
    return 0;
  }
  add_judged(judging, JUDGE_CUDNN_ABSENT, ERROR);
  return 1;
}

/* Stores the GPU generations that the cuDNN of a row supports. */
SHIM_FN void set_generations(struct judging *judging, const struct library_row *row) {
  const uint32_t cudnn = judging->result->cudnn, cuda = judging->result->made_with / 1000;
  struct cudnn_gpus *gpus = &judging->cudnn_gpus;
  gpus->row = judging->i;
  gpus->has_dropped = cudnn >= row->drops_gpus_from;
  gpus->oldest = row->oldest_gpu_before;
  gpus->dropped_in = cudnn & 0xff0000; /* 9.0.0: the first of its major */
  if (gpus->has_dropped) {
    gpus->oldest = row->oldest_gpu;
    gpus->dropped_in = row->drops_gpus_from;
  }
  if ((cuda ? cuda : 254) >= row->newest_gpus_below_cuda) return;
  gpus->newest =
      (cudnn >> 8 & 0xff) >= row->newest_gpus_from ? row->newest_gpus : row->newest_gpus_before;
}

/* Judges the cuDNN of a row. If only files were examined, requests the answer of cuDNN if it may
 * change the result. */
SHIM_FN void judge_library_row(struct judging *judging, const struct library_row *row) {
  const struct judge_cudnn *c = judging->cudnn;
  struct judge_result *r = judging->result;
  const uint32_t major = c->version ? c->version >> 16 : c->major, built = row->built >> 16;
  if (r->library == NO_ROW || !is_inside(row)) r->library = judging->i;
  if (is_inside(row)) return;
  if (c->source == NOT_DETECTED) r->needs |= NEED_CUDNN;
  if (c->source == BY_FILES && c->is_guess) r->needs |= NEED_CUDNN_ANSWER;
  if (c->state != FOUND) {
    if (!judge_absent_cudnn(judging, row->flags))
      add_judged(judging,
                 c->state != ABSENT && c->has_file ? JUDGE_CUDNN_CANNOT_TELL
                                                   : JUDGE_CUDNN_CANNOT_TELL_NOT_LOADED,
                 INFO);
    return;
  }
  if (c->source == BY_FILES && !c->version) r->needs |= NEED_CUDNN_ANSWER;
  if ((major && major != built) || (c->version && c->version >= row->below))
    add_cudnn_error(judging, JUDGE_CUDNN_OTHER_MAJOR);
  else judge_found_cudnn(judging, row);
  if (c->version && c->version >> 16 != built) return;
  r->made_with = c->made_with;
  if (!c->version || r->cudnn) return;
  r->cudnn = c->version;
  set_generations(judging, row);
}

/* Reports a shared cudart whose minor version is unknown or older than that of the build. The file
 * name contains the version, except in pip's packages. */
SHIM_FN void compare_cudart(struct judging *judging, const struct judge_cudart *c) {
  const uint32_t built = judging->manifest->cudart_built;
  if (!built) return;
  if (c->source == NOT_DETECTED) judging->result->needs |= NEED_CUDART;
  if (c->state != FOUND) return;
  if (!c->version) add_general(judging, JUDGE_CUDART_UNKNOWN, INFO);
  else if (c->version >> 8 < built >> 8 && c->version >> 16 == built >> 16)
    add_general(judging, JUDGE_CUDART_OLDER, WARNING);
}

/* ---- the driver and the GPUs ---- */

/* Returns the visible GPUs whose compute capability is known, and in this interval. */
SHIM_FN uint64_t select_gpus(const struct judging *judging, uint32_t lowest, uint32_t highest) {
  uint64_t gpus = 0;
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++) {
    const uint32_t cc = judging->driver->gpus[k].cc;
    if (cc && cc >= lowest && cc <= highest) gpus |= (uint64_t)1 << k;
  }
  return gpus & judging->visible;
}

SHIM_FN int has_product(const struct judging *judging, uint32_t product) {
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++)
    if ((judging->visible >> k & 1) && judging->driver->gpus[k].product == product) return 1;
  return 0;
}

/* Returns whether only the CUDA version of the driver's branch is unknown. */
SHIM_FN int is_open_by_branch(const struct judging *judging, uint32_t cuda) {
  const struct judge_driver *d;
  if (!HAS_DESCRIBED_FACTS) return 0;
  d = judging->driver;
  if (!cuda || !d->user || d->cuda || !(d->least_cuda | d->most_cuda)) return 0;
  return d->least_cuda < cuda && (!d->most_cuda || d->most_cuda >= cuda);
}

/* Judges a required driver. The CUDA version that the driver supports decides, otherwise the
 * release of libcuda. The release of the kernel module can only confirm that the driver fits,
 * because cuda-compat may be newer. */
SHIM_FN uint32_t judge_floor(const struct judging *judging, uint32_t cuda, uint32_t packed_release,
                             uint32_t too_old) {
  const struct judge_driver *d = judging->driver;
  const uint32_t release = widen_release(packed_release);
  if (!cuda && !release) return FITS;
  if (d->state != FOUND) return IS_UNKNOWN;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : (uint32_t)FITS;
  if (HAS_DESCRIBED_FACTS && cuda && d->user && d->least_cuda >= cuda) return FITS;
  if (!release || !d->user) return release && d->kernel >= release ? FITS : IS_UNKNOWN;
  if (d->user >= release) return FITS;
  return is_open_by_branch(judging, cuda) ? (uint32_t)IS_UNKNOWN : too_old;
}

/* Judges whether the driver can compile PTX. */
SHIM_FN uint32_t judge_compiler(struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  if (d->compiler == ABSENT) return JUDGE_JIT_MISSING;
  if (d->compiler == FOUND || !judging->by_files) return FITS;
  if (d->compiler_source == NOT_DETECTED) judging->result->needs |= NEED_COMPILER;
  return IS_UNKNOWN;
}

/* Judges the cudart inside cuDNN, which needs a driver of its major version or a newer one. */
SHIM_FN uint32_t judge_cudnn_cuda(const struct judging *judging, const struct part_row *row) {
  const uint32_t major = judging->result->made_with / 1000 * 1000;
  uint32_t release = row->older_release;
  if (!major || !row->needed || !row->newer_cuda) return FITS;
  if (major > row->older_cuda) release = major <= row->newer_cuda ? row->newer_release : 0;
  return judge_floor(judging, major, release, JUDGE_CUDNN_NEEDS_NEWER_DRIVER);
}

/* Changes a row of GPUs if a variable makes the driver ignore machine code and compile PTX. `arch`
 * is then the ISA of the PTX, or MIXED_ISA if some code may have no PTX; otherwise 0. */
SHIM_FN void apply_forced_ptx(const struct judging *judging, struct gpu_row *row) {
  const uint32_t by = row->served_by;
  struct needs needs;
  row->arch = 0;
  /* For code that PTX serves, the flags describe machine code only if that makes a difference. */
  if (by & (BY_CUBIN | BY_SOME) ? by & NO_PTX : !(by & BY_PTX) || by < NO_PTX) return;
  if (judging->driver->forces_ptx != FOUND) return;
  row->served_by = BY_UNKNOWN;
  row->arch = MIXED_ISA;
  if (!(by & BY_PTX)) /* a row of PTX keeps its requirements */
    row->cuda = row->release = row->sure_cuda = row->sure_release = 0;
  if (by < PTX_ISA) return;
  row->served_by = (uint16_t)((by & (BY_SOME | BY_UNKNOWN)) | BY_PTX);
  row->arch = by >> 12 << 8 | (by >> 8 & 15);
  needs.cuda = row->cuda;
  needs.release = row->release;
  raise_needs(&needs, row->arch);
  row->cuda = needs.cuda;
  row->release = needs.release;
}

/* Judges the code that serves GPUs. BY_UNKNOWN together with another flag means that some
 * containers cannot be read. */
SHIM_FN uint32_t judge_service(const struct judging *judging, uint32_t by) {
  const int is_refused = judging->manifest->partial == PARTIAL_REFUSES;
  if (by & (BY_CUBIN | BY_PTX | BY_SOME)) {
    uint32_t is = JUDGE_PARTIAL_CODE;
    if ((by & NO_PTX) && judging->driver->forces_ptx == FOUND) is = JUDGE_JIT_FORCED;
    else if (!(by & BY_SOME) || !is_refused) return FITS;
    return by & BY_UNKNOWN ? (uint32_t)IS_UNKNOWN : is;
  }
  if (!(by & BY_UNKNOWN)) return JUDGE_NO_CODE_FOR_GPU;
  return (by & BY_NONE) && is_refused ? JUDGE_PARTIAL_CODE : IS_UNKNOWN;
}

/* Judges a row of GPUs. If some containers serve the GPU (BY_SOME), one of them may do so by PTX.
 */
SHIM_FN uint32_t judge_gpu_code(struct judging *judging, const struct gpu_row *row) {
  const uint32_t by = row->served_by;
  uint32_t is = judge_service(judging, by);
  if (is != FITS) return is;
  if ((by & BY_PTX) && judging->driver->disables_ptx == FOUND) return JUDGE_JIT_DISABLED;
  is = judge_floor(judging, row->cuda, row->release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  if (is == FITS && (by & BY_PTX)) is = judge_compiler(judging);
  if (is != FITS) return is;
  /* No document describes whether older drivers load newer machine code, or which drivers compile
   * PTX that is in no table. */
  is = judge_floor(judging, row->sure_cuda, row->sure_release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  return is == FITS ? FITS : IS_UNKNOWN;
}

/* Adds a finding about the row, with the values of the row. */
SHIM_FN struct judge_finding *add_row_finding(struct judging *judging, uint32_t code,
                                              uint32_t severity) {
  /* Rows of drivers and of GPUs have the required driver at the same offsets. */
  typedef char
      are_alike[offsetof(struct driver_row, release) == offsetof(struct gpu_row, release) ? 1 : -1];
  const struct gpu_row *row = &judging->row.gpu;
  struct judge_finding *f;
  (void)sizeof(are_alike);
  if (code == JUDGE_DRIVER_TOO_OLD_FOR_CODE && row->arch)
    code = JUDGE_DRIVER_TOO_OLD_FOR_CODE_FORCED;
  else if (code == JUDGE_DRIVER_TOO_OLD_FOR_CODE && !(row->served_by & BY_PTX))
    code = JUDGE_DRIVER_TOO_OLD_FOR_CODE_COMPRESSED; /* nothing else of machine code needs it */
  else if ((code == JUDGE_DRIVER_TOO_OLD || code == JUDGE_DRIVER_TOO_OLD_FOR_CODE) && !row->release)
    code++; /* no release is known */
  f = add_judged(judging, code, severity);
  f->needs_cuda = row->cuda;
  f->needs_release = widen_release(row->release);
  if (row->kind == ROW_PART) f->needs_cuda = judging->result->made_with / 1000 * 1000;
  if (row->kind != ROW_GPU) return f;
  f->gpus = select_gpus(judging, row->lowest, row->highest);
  f->isa = row->arch;
  return f;
}

/* Judges a row that requires a driver, whatever the GPU is. Returns the code of the finding, FITS
 * or IS_UNKNOWN. */
SHIM_FN uint32_t judge_driver_row(struct judging *judging, struct row_results *all) {
  const union row *row = &judging->row;
  uint32_t is = IS_UNKNOWN; /* zeros: a static cudart of an unknown release */
  if (row->kind == ROW_PART) is = judge_cudnn_cuda(judging, &row->inner);
  else if (row->driver.cuda | row->driver.release)
    is = judge_floor(judging, row->driver.cuda, row->driver.release, JUDGE_DRIVER_TOO_OLD);
  if (is == FITS) return is;
  if (judging->by_files) all->is_uncertain = 1;
  if (is != IS_UNKNOWN) return is;
  if (row->kind == ROW_DRIVER && is_open_by_branch(judging, row->driver.cuda))
    all->branch_row = judging->i;
  else all->is_open = 1;
  return is;
}

/* Judges a row of GPUs. Returns the code of the finding, FITS or IS_UNKNOWN. */
SHIM_FN uint32_t judge_gpu_row(struct judging *judging, struct row_results *all) {
  struct gpu_row *row = &judging->row.gpu;
  const uint64_t here = select_gpus(judging, row->lowest, row->highest);
  uint32_t is;
  all->has_kernels = 1;
  if (!here) return FITS;
  apply_forced_ptx(judging, row);
  is = judge_gpu_code(judging, row);
  if (is == FITS) all->fit |= here;
  else if (is != IS_UNKNOWN) all->unfit |= here;
  return is;
}

SHIM_FN uint32_t judge_row(struct judging *judging, uint32_t i, struct row_results *all) {
  begin_row(judging, i);
  if (judging->row.kind == ROW_GPU) return judge_gpu_row(judging, all);
  if (judging->row.kind == ROW_DRIVER || judging->row.kind == ROW_PART)
    return judge_driver_row(judging, all);
  return FITS;
}

/* Judges all rows, and adds their findings. The severity of a row of GPUs depends on all rows: one
 * fit GPU is enough. */
SHIM_FN void judge_each_row(struct judging *judging, uint64_t dropped, struct row_results *all) {
  uint32_t i, is;
  for (i = 0; i < judging->rows; i++) judge_row(judging, i, all);
  all->unfit |= dropped;
  for (i = 0; i < judging->rows; i++) {
    is = judge_row(judging, i, all);
    if (judging->row.kind != ROW_GPU) {
      if (is < FITS) add_row_finding(judging, is, ERROR);
    } else if (is < FITS) {
      add_row_finding(judging, is, judging->visible & ~all->unfit ? INFO : ERROR);
    } else if (is == IS_UNKNOWN && all->unsure_row == NO_ROW &&
               (select_gpus(judging, judging->row.gpu.lowest, judging->row.gpu.highest) &
                ~all->unfit)) {
      all->unsure_row = i;
    }
  }
}

/* Returns whether all visible GPUs are newer than the generations for which the cuDNN found has
 * code. */
SHIM_FN int are_later(const struct judging *judging) {
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++) {
    const uint32_t cc = judging->driver->gpus[k].cc;
    if ((judging->visible >> k & 1) &&
        (cc >> 8 <= judging->cudnn_gpus.newest || find_chip(cc)->tegra))
      return 0;
  }
  return judging->cudnn_gpus.newest && judging->visible;
}

/* Judges whether the cuDNN found is too old or too new for the visible GPUs. */
SHIM_FN void judge_generations(struct judging *judging, uint64_t dropped, uint64_t unfit) {
  judging->i = judging->cudnn_gpus.row;
  if (dropped) {
    struct judge_finding *f =
        add_judged(judging, JUDGE_CUDNN_TOO_NEW_FOR_GPU, judging->visible & ~unfit ? INFO : ERROR);
    f->gpus = dropped;
    f->version = judging->cudnn_gpus.dropped_in;
  }
  if (are_later(judging))
    add_judged(judging, JUDGE_CUDNN_BEFORE_THIS_GPU, INFO)->version = judging->cudnn_gpus.newest;
}

/* Returns the code that explains why it is unknown whether a row of GPUs fits, or JUDGE_CODES. */
SHIM_FN uint32_t explain_unsure(const struct judging *judging, const struct gpu_row *row) {
  uint32_t is;
  if (row->arch == MIXED_ISA) return JUDGE_DRIVER_CANNOT_TELL_FORCED;
  if (!(row->served_by & (BY_CUBIN | BY_PTX | BY_SOME))) return JUDGE_CODES;
  if (is_open_by_branch(judging, row->cuda)) return JUDGE_DRIVER_CANNOT_TELL_BRANCH;
  is = judge_floor(judging, row->sure_cuda, row->sure_release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  if (is == IS_UNKNOWN && row->sure_cuda != NO_DRIVER_KNOWN &&
      is_open_by_branch(judging, row->sure_cuda))
    return JUDGE_DRIVER_CANNOT_TELL_UNSURE;
  if (is >= FITS) return JUDGE_CODES;
  return row->sure_cuda == NO_DRIVER_KNOWN ? JUDGE_DRIVER_CANNOT_TELL_NEWER_PTX
                                           : JUDGE_DRIVER_CANNOT_TELL_UNSURE;
}

/* Begins the row that may fit; returns the code that explains it, or JUDGE_CODES. */
SHIM_FN uint32_t begin_unsure(struct judging *judging, uint32_t row) {
  if (row == NO_ROW) return JUDGE_CODES;
  begin_row(judging, row);
  apply_forced_ptx(judging, &judging->row.gpu);
  return explain_unsure(judging, &judging->row.gpu);
}

/* Adds a finding about the row that may fit. */
SHIM_FN void add_unsure(struct judging *judging, uint32_t code) {
  const struct gpu_row *row = &judging->row.gpu;
  struct judge_finding *f = add_row_finding(judging, code, INFO);
  if (code != JUDGE_DRIVER_CANNOT_TELL_UNSURE) return;
  f->needs_cuda = row->sure_cuda;
  f->needs_release = widen_release(row->sure_release);
}

/* Adds a finding about a GPU that only newer drivers certainly drive. */
SHIM_FN void add_maybe_driven(struct judging *judging, uint64_t gpus) {
  struct judge_finding *f = add_general(judging, JUDGE_DRIVER_CANNOT_TELL_DRIVES, INFO);
  int k = 0;
  while (!(gpus >> k & 1)) k++;
  f->gpus = (uint64_t)1 << k;
  f->needs_cuda = judging->driver->gpus[k].first_cuda;
  f->needs_release = judging->driver->gpus[k].first_release;
}

/* Returns whether it is unknown if libcuda and the kernel module work together. */
SHIM_FN int is_pair_unknown(const struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  if (d->state != FOUND || d->init >= 0 || !d->user || !d->kernel || d->user == d->kernel) return 0;
  return !HAS_DESCRIBED_FACTS || d->compat != COMPAT_LISTED || d->gpu_count < 0 ||
         has_product(judging, PRODUCT_UNKNOWN);
}

SHIM_FN uint32_t find_unknown(const struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  uint32_t unknown = d->state == FOUND ? 0 : UNKNOWN_DRIVER;
  if (!unknown && !d->user && !d->cuda && d->init < 0) unknown |= UNKNOWN_RELEASE;
  if (d->gpu_count < 0) unknown |= UNKNOWN_GPUS;
  if (select_gpus(judging, 0, NO_ROW) != judging->visible) unknown |= UNKNOWN_CAPABILITY;
  if (is_pair_unknown(judging))
    unknown |= d->compat == COMPAT_LISTED ? UNKNOWN_PRODUCT : UNKNOWN_PAIR;
  return unknown;
}

SHIM_FN void add_cannot_tell(struct judging *judging) {
  add_general(judging, JUDGE_DRIVER_CANNOT_TELL, INFO);
  if (HAS_DESCRIBED_FACTS) judging->result->unknown = find_unknown(judging);
}

/* Returns whether a fact is missing that any row may depend on. */
SHIM_FN int is_driver_unknown(const struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  if (d->state != FOUND || d->gpu_count < 0) return 1;
  return is_pair_unknown(judging) || (judging->by_files && (!d->user || !d->kernel));
}

/* Adds findings about unknown facts after the driver was called. `maybe`: GPUs that have code, but
 * that the driver may not drive. */
SHIM_FN void conclude_rows(struct judging *judging, const struct row_results *all, int is_covered,
                           uint64_t maybe) {
  const int by_branch = all->branch_row != NO_ROW;
  int is_explained = is_covered || maybe;
  uint32_t code = is_explained ? (uint32_t)JUDGE_CODES : begin_unsure(judging, all->unsure_row);
  if (!is_covered && !all->is_open && !by_branch) {
    if (maybe) add_maybe_driven(judging, maybe);
    else if (code != JUDGE_CODES) add_unsure(judging, code);
  }
  if (code != JUDGE_CODES) is_explained = 1;
  if (all->is_open || !is_explained) {
    add_cannot_tell(judging);
  } else if (by_branch) {
    begin_row(judging, all->branch_row);
    add_row_finding(judging, JUDGE_DRIVER_CANNOT_TELL_BRANCH, INFO);
  }
  if (HAS_DESCRIBED_FACTS && judging->driver->state == FOUND && judging->driver->user &&
      !judging->driver->kernel && judging->driver->init < 0)
    add_general(judging, JUDGE_KERNEL_MODULE_UNKNOWN, INFO);
}

/* Adds the finding about unknown facts if only files were examined, which cannot show that the
 * driver sees all GPUs. */
SHIM_FN void conclude_files(struct judging *judging, struct row_results *all) {
  const struct cudnn_gpus *gpus = &judging->cudnn_gpus;
  if (((gpus->has_dropped && gpus->oldest) || gpus->newest) &&
      (judging->driver->gpu_count < 0 || select_gpus(judging, 0, NO_ROW) != judging->visible))
    all->is_open = all->is_uncertain = 1;
  if (all->unfit || (all->has_kernels && (judging->visible & ~all->fit))) all->is_open = 1;
  if (all->is_open && (judging->has_requirement || all->unfit || all->is_uncertain))
    add_cannot_tell(judging);
}

/* Judges all rows about driver and GPU. One fit GPU among others is enough. */
SHIM_FN void judge_all_rows(struct judging *judging) {
  const uint32_t oldest = judging->cudnn_gpus.oldest;
  const uint64_t dropped = oldest ? select_gpus(judging, 0, oldest - 1) : 0;
  struct row_results all;
  uint64_t usable, suits, maybe;
  int is_covered;
  memset(&all, 0, sizeof all);
  all.unsure_row = all.branch_row = NO_ROW;
  all.is_open = is_driver_unknown(judging) != 0;
  judge_each_row(judging, dropped, &all);
  judge_generations(judging, dropped, all.unfit);
  usable = judging->visible & ~all.unfit;
  suits = all.has_kernels ? all.fit & usable : usable;
  maybe = HAS_DESCRIBED_FACTS ? judging->maybe & suits : 0;
  is_covered = !usable || (suits & ~maybe);
  if (all.has_kernels) judging->result->usable_gpus = usable;
  if (judging->by_files) conclude_files(judging, &all);
  else if (judging->has_requirement) conclude_rows(judging, &all, is_covered, maybe);
}

/* Returns the last branch that supports a GPU if this driver is newer, or 0. A libcuda that is
 * newer than the kernel module lists such a GPU, but cannot use it. */
SHIM_FN uint32_t find_passed_branch(const struct judging *judging, const struct judge_gpu *gpu) {
  const uint32_t last = find_last_branch(gpu->cc);
  if (HAS_DESCRIBED_FACTS && gpu->driven == NO_LONGER_DRIVEN) return gpu->branch;
  return judging->driver->branch > last ? last : 0;
}

/* Returns the GPUs that the driver does not drive for the same reason as this one. */
SHIM_FN uint64_t find_same_reason(const struct judging *judging, const struct judge_gpu *gpu) {
  const uint32_t last = find_passed_branch(judging, gpu);
  uint64_t gpus = 0;
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++) {
    const struct judge_gpu *other = &judging->driver->gpus[k];
    if (other->cc && find_passed_branch(judging, other) == last && !(judging->visible >> k & 1) &&
        other->first_cuda == gpu->first_cuda && other->first_release == gpu->first_release)
      gpus |= (uint64_t)1 << k;
  }
  return gpus;
}

/* Adds a finding for each reason why the driver does not drive GPUs. */
SHIM_FN void add_undriven(struct judging *judging) {
  uint64_t known = judging->visible;
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++) {
    const struct judge_gpu *gpu = &judging->driver->gpus[k];
    const uint32_t last = find_passed_branch(judging, gpu);
    struct judge_finding *f;
    if (!gpu->cc || (known >> k & 1)) continue;
    f = add_general(judging, last ? JUDGE_GPU_NOT_FOR_DRIVER : JUDGE_GPU_NOT_FOR_DRIVER_YET, ERROR);
    f->gpus = find_same_reason(judging, gpu);
    f->version = last;
    f->needs_cuda = gpu->first_cuda;
    f->needs_release = gpu->first_release;
    known |= f->gpus;
  }
}

enum { STUB = 34, NO_DEVICE = 100, MISMATCH = 803, NOT_FOR_COMPAT = 804 }; /* CUresult */

/* Returns the result of cuInit: the detected one, or the one that the releases of libcuda and of
 * the kernel module predict; -1: unknown. A newer libcuda may be a cuda-compat without a note; an
 * older one never works. */
SHIM_FN int32_t predict_init(const struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  if (d->state != FOUND) return -1;
  if (!HAS_DESCRIBED_FACTS || d->init >= 0 || !d->user || !d->kernel || d->user == d->kernel)
    return d->init;
  /* A single unsupported GPU fails the entire process. */
  if (d->compat == COMPAT_LISTED)
    return has_product(judging, PRODUCT_OF_CONSUMERS) ? NOT_FOR_COMPAT : -1;
  if (d->compat == COMPAT_ANY || (d->compat == COMPAT_UNKNOWN && d->user > d->kernel)) return -1;
  return MISMATCH;
}

/* Adds the finding that the driver or the GPU is missing. */
SHIM_FN void add_nothing(struct judging *judging, uint32_t code) {
  const int is_required = judging->manifest->gpu == GPU_REQUIRED;
  add_general(judging, is_required ? code : (uint32_t)JUDGE_NOTHING_TO_SEE,
              is_required ? ERROR : INFO);
}

/* Adds the finding about the result of cuInit. */
SHIM_FN void add_answer(struct judging *judging, int32_t init) {
  const struct judge_driver *d = judging->driver;
  uint32_t code = JUDGE_DRIVER_CANNOT_TELL_ANSWER;
  if (init == MISMATCH) code = JUDGE_DRIVER_MISMATCH;
  if (init == NOT_FOR_COMPAT) code = JUDGE_FORWARD_COMPAT_UNSUPPORTED;
  /* To a module that an update left loaded, the new libcuda looks like cuda-compat. */
  if (init == NOT_FOR_COMPAT && d->compat == COMPAT_NONE && d->kernel && d->user != d->kernel)
    code = JUDGE_DRIVER_MISMATCH;
  if (init == STUB) code = JUDGE_STUB_DRIVER;
  /* Without a GPU, a driver that fails is harmless: images for builds contain a stub, and an empty
   * CUDA_VISIBLE_DEVICES hides all. */
  if (init <= 0 || init == NO_DEVICE ||
      (judging->manifest->gpu != GPU_REQUIRED && !judging->visible &&
       (init == STUB || d->gpu_count == 0)))
    add_nothing(judging, JUDGE_GPU_MISSING);
  else add_general(judging, code, code == JUDGE_DRIVER_CANNOT_TELL_ANSWER ? INFO : ERROR);
}

SHIM_FN void judge_known_driver(struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  const int32_t init = predict_init(judging);
  const int sees_none = d->gpu_count >= 0 && !judging->visible;
  if (d->state != ABSENT && init <= 0 && !sees_none && !d->cannot_load) judge_all_rows(judging);
  else if (!judging->has_requirement)
    return; /* a broken driver does not affect a program without requirements */
  else if (d->state == ABSENT) add_nothing(judging, JUDGE_DRIVER_MISSING);
  else if (init <= 0 && sees_none && d->gpu_count > 0) add_undriven(judging);
  else if (init <= 0 && !sees_none) add_general(judging, JUDGE_DRIVER_CANNOT_TELL_NOT_LOADED, INFO);
  else add_answer(judging, init);
}

/* Judges the driver by files. Only two results are certain: it fits, or no GPU is visible. All
 * others need the answer of the driver. */
SHIM_FN void judge_driver_by_files(struct judging *judging) {
  struct judge_result *r = judging->result, guess = *r;
  struct judge_finding finding;
  guess.findings = &finding;
  guess.capacity = 1;
  guess.count = guess.dropped = 0;
  judging->result = &guess;
  judge_known_driver(judging);
  judging->result = r;
  r->needs |= guess.needs;
  r->unknown |= guess.unknown;
  if (!guess.count) {
    r->usable_gpus = guess.usable_gpus;
  } else if (finding.code == JUDGE_NOTHING_TO_SEE) {
    add_general(judging, JUDGE_NOTHING_TO_SEE, INFO);
  } else {
    r->needs |= NEED_DRIVER_ANSWER;
    if (judging->has_requirement) add_cannot_tell(judging);
  }
}

/* Sets the GPUs that the driver drives, and those that it may drive. */
SHIM_FN void set_visible(struct judging *judging) {
  const struct judge_driver *d = judging->driver;
  int32_t k;
  for (k = 0; k < judging->gpu_count; k++) {
    const uint32_t driven = HAS_DESCRIBED_FACTS ? d->gpus[k].driven : (uint32_t)IS_DRIVEN;
    if (driven >= NOT_YET_DRIVEN || find_passed_branch(judging, &d->gpus[k])) continue;
    judging->visible |= (uint64_t)1 << k;
    if (driven == MAY_BE_DRIVEN) judging->maybe |= (uint64_t)1 << k;
  }
}

SHIM_FN void judge_all(struct judging *judging, const struct judge_facts *facts) {
  struct judge_result *r = judging->result;
  uint32_t i;
  set_visible(judging);
  for (i = 0; i < judging->rows; i++) {
    begin_row(judging, i);
    if (judging->row.kind == ROW_DRIVER || judging->row.kind == ROW_GPU)
      judging->has_requirement = 1;
    if (judging->row.kind == ROW_LIBRARY) judge_library_row(judging, &judging->row.cudnn);
  }
  compare_cudart(judging, facts->cudart);
  if (!judging->has_requirement && !r->made_with && !judging->cudnn_gpus.oldest &&
      !judging->cudnn_gpus.newest)
    return;
  if (judging->driver->source == NOT_DETECTED) {
    r->needs |= NEED_DRIVER;
    if (judging->has_requirement) add_cannot_tell(judging);
  } else if (judging->by_files) {
    judge_driver_by_files(judging);
  } else {
    judge_known_driver(judging);
  }
}

JUDGE_LINKAGE void cudaguard_judge_start(const struct judge_manifest *manifest,
                                         const struct judge_facts *facts,
                                         struct judge_result *result) {
  struct judging j;
  const size_t kept = offsetof(struct judge_result, count);
  memset((char *)result + kept, 0, sizeof *result - kept);
  result->library = NO_ROW;
  memset(&j, 0, sizeof j);
  j.manifest = manifest;
  j.cudnn = facts->cudnn;
  j.driver = facts->driver;
  j.gpu_count = j.driver->gpu_count < 64 ? j.driver->gpu_count : 64;
  j.result = result;
  j.rows = manifest->rows[0].count + manifest->rows[1].count;
  j.has_requirement = manifest->gpu == GPU_REQUIRED;
  j.by_files = facts->driver->source != DETECTED;
  judge_all(&j, facts);
}
