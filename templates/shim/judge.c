/* The judge of a start: see judge.h. */
#include "judge.h"

#include "coverage.h"

#ifndef CUDAGUARD_PLATFORM_H
#include <string.h>
#endif

/* The state of one call. GPUs are bits by their index. */
struct judging {
  const struct judge_manifest *manifest;
  const struct judge_cudnn *cudnn;
  const struct judge_driver *driver;
  struct judge_result *result;
  uint64_t visible;     /* GPUs, without those that the driver does not drive */
  uint64_t fit, unfit;  /* visible GPUs, by the rows of GPUs */
  uint32_t rows, i;     /* i: the row that is being judged */
  uint32_t unsure;      /* the first row of GPUs that may fit, or NO_ROW */
  uint32_t oldest_gpu;  /* the oldest that the cuDNN found serves; 0: all */
  uint32_t newest_gpus; /* the newest generation for which the cuDNN has code, if no document
                           describes it on later ones; or 0 */
  uint32_t last;        /* the code of the last finding that was not added, or JUDGE_CODES */
  uint8_t is_muted;     /* findings are not added */
  uint8_t by_files;     /* the driver was not called. It is unknown which GPUs it shows, so all
                           must fit */
  uint8_t asks;         /* the manifest has a requirement for driver or GPU */
  uint8_t adds;         /* findings are added in a second pass, because the severity of a row
                           depends on all rows */
  uint8_t has_kernels, open, doubt;
  uint8_t has_dropped;  /* the cuDNN found has dropped GPUs */
  union row row;
  uint32_t dropped_in; /* the cuDNN that dropped them */
  uint32_t library;    /* the row of that cuDNN */
  uint32_t branch;     /* a row whose driver's branch has an unknown CUDA version, or NO_ROW */
  uint64_t maybe;      /* visible GPUs that the driver may not drive */
  struct judge_finding spare;
};

/* Converts a release of a row to the wide form. */
SHIM_FN uint32_t widen_release(uint32_t packed) {
  return packed >> 16 << 20 | (packed & 0xffff);
}

SHIM_FN void copy_row(const struct judging *j, uint32_t i, union row *to) {
  const struct judge_rows *from = &j->manifest->rows[0];
  if (i >= from->count) {
    i -= from->count;
    from++;
  }
  memcpy(to, (const char *)from->at + (size_t)i * from->stride, sizeof *to);
}

/* Begins to judge a row. */
SHIM_FN void begin_row(struct judging *j, uint32_t i) {
  j->i = i;
  copy_row(j, i, &j->row);
}

SHIM_FN struct judge_finding *add_judged(struct judging *j, uint32_t code,
                                               uint32_t severity) {
  struct judge_result *r = j->result;
  struct judge_finding *f = &j->spare;
  uint32_t k = r->count;
  if (j->is_muted) j->last = code;
  else if (k < r->capacity) {
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
  f->row = j->i;
  f->gpus = j->visible;
  return f;
}

/* Adds a finding that is not about a row. */
SHIM_FN struct judge_finding *add_general(struct judging *j, uint32_t code,
                                                uint32_t severity) {
  j->i = NO_ROW;
  return add_judged(j, code, severity);
}

/* ---- cuDNN ---- */

SHIM_FN int is_same_minor(uint32_t one, uint32_t other) { return one >> 8 == other >> 8; }

/* Returns whether cuDNN is linked into the program. */
SHIM_FN int is_inside(const struct library_row *row) {
  return (row->flags & LIBRARY_STATIC) && !(row->flags & LIBRARY_LINKED);
}

/* Adds an error. If only files were examined, the answer of cuDNN may contradict it. */
SHIM_FN struct judge_finding *add_cudnn_error(struct judging *j, uint32_t code) {
  if (j->cudnn->source == BY_FILES) j->result->needs |= NEED_CUDNN_ANSWER;
  return add_judged(j, code, ERROR);
}

SHIM_FN void add_mixed(struct judging *j, uint32_t version, uint64_t parts) {
  struct judge_finding *f = is_same_minor(version, j->cudnn->version)
                                ? add_judged(j, JUDGE_CUDNN_INNER_MIXED, WARNING)
                                : add_cudnn_error(j, JUDGE_CUDNN_INNER_MIXED);
  f->version = version;
  f->parts = parts;
}

/* Returns whether a part is needed: 1 or 0, or -1 if it has no row. */
SHIM_FN int is_part_needed(const struct judging *j, const struct judge_part *p) {
  union row row;
  if (p->row >= j->rows) return -1;
  copy_row(j, p->row, &row);
  return row.kind == ROW_PART && (row.inner.needed & 1);
}

/* Judges the parts of a cuDNN. All missing parts that only some calls need share one finding.
 * Returns whether a needed part is missing. */
SHIM_FN int judge_parts(struct judging *j) {
  const struct judge_cudnn *c = j->cudnn;
  uint64_t lacking = 0, bit = 1;
  uint32_t k;
  int lacks_needed = 0;
  for (k = 0; k < c->part_count && k < 64; k++, bit <<= 1) {
    const struct judge_part *p =
        (const struct judge_part *)((const char *)c->parts + (size_t)k * c->part_stride);
    if (p->state == FOUND && p->version && c->version && p->version != c->version)
      add_mixed(j, p->version, bit);
    if (p->state != ABSENT) continue;
    switch (is_part_needed(j, p)) {
    case 0:
      lacking |= bit;
      break;
    case 1:
      if (c->source == BY_FILES) {
        j->result->needs |= NEED_CUDNN_ANSWER; /* cuDNN may work without it */
        break;
      }
      lacks_needed = 1;
      add_judged(j, JUDGE_CUDNN_INNER_MISSING_NEEDED, ERROR)->parts = bit;
      break;
    default:
      break;
    }
  }
  if (lacking) add_judged(j, JUDGE_CUDNN_INNER_MISSING, WARNING)->parts = lacking;
  return lacks_needed;
}

/* Compares the loader library with the parts that it opens. */
SHIM_FN void judge_loader(struct judging *j) {
  const struct judge_cudnn *c = j->cudnn;
  if (!c->loader || !c->version || c->loader == c->version) return;
  if (!HAS_DESCRIBED_FACTS || !c->is_minor) add_mixed(j, c->loader, 0);
  else if (!is_same_minor(c->loader, c->version))
    add_judged(j, JUDGE_CUDNN_INNER_MIXED_LOADER, ERROR)->version = c->loader;
}

/* Judges a cuDNN that was found, and whose major version is that of the build. */
SHIM_FN void judge_found_cudnn(struct judging *j, const struct library_row *row) {
  const struct judge_cudnn *c = j->cudnn;
  const uint32_t min =
      (row->flags & LIBRARY_PATCH) && row->built > row->min ? row->built : row->min;
  const uint32_t built = j->manifest->built_cuda;
  if (!judge_parts(j) && !c->version) add_judged(j, JUDGE_CUDNN_CANNOT_TELL, INFO);
  if (c->version && c->version < min)
    add_cudnn_error(j, is_same_minor(c->version, row->built) ? JUDGE_CUDNN_OLDER_PATCH
                                                             : JUDGE_CUDNN_OLDER);
  judge_loader(j);
  if (c->made_with && built && c->made_with / 1000 != built / 1000)
    add_judged(j, JUDGE_CUDNN_OTHER_CUDA, WARNING);
}

/* Judges a cuDNN that was not found; returns whether it is absent. */
SHIM_FN int judge_absent_cudnn(struct judging *j, uint32_t flags) {
  if (j->cudnn->state != ABSENT || !(flags & (LIBRARY_LINKED | LIBRARY_DLOPENED))) return 0;
  if (!(flags & (LIBRARY_LINKED | LIBRARY_REQUIRED))) {
    add_judged(j, JUDGE_CUDNN_ABSENT, INFO);
    return 1;
  }
  if (j->cudnn->source == BY_FILES) {
    j->result->needs |= NEED_CUDNN_ANSWER;
    return 0;
  }
  add_judged(j, JUDGE_CUDNN_ABSENT, ERROR);
  return 1;
}

/* Stores the GPU generations that the cuDNN of a row supports. */
SHIM_FN void set_generations(struct judging *j, const struct library_row *row) {
  const uint32_t cudnn = j->result->cudnn, cuda = j->result->made_with / 1000;
  j->library = j->i;
  j->has_dropped = cudnn >= row->drops_gpus_from;
  j->oldest_gpu = row->oldest_gpu_before;
  j->dropped_in = cudnn & 0xff0000; /* 9.0.0: the first of its major */
  if (j->has_dropped) {
    j->oldest_gpu = row->oldest_gpu;
    j->dropped_in = row->drops_gpus_from;
  }
  if ((cuda ? cuda : 254) >= row->newest_gpus_below_cuda) return;
  j->newest_gpus = (cudnn >> 8 & 0xff) >= row->newest_gpus_from ? row->newest_gpus
                                                                : row->newest_gpus_before;
}

/* Judges the cuDNN of a row. If only files were examined, requests the answer of cuDNN if it may
 * change the result. */
SHIM_FN void judge_library_row(struct judging *j, const struct library_row *row) {
  const struct judge_cudnn *c = j->cudnn;
  struct judge_result *r = j->result;
  const uint32_t major = c->version ? c->version >> 16 : c->major, built = row->built >> 16;
  if (r->library == NO_ROW || !is_inside(row)) r->library = j->i;
  if (is_inside(row)) return;
  if (c->source == NOT_DETECTED) r->needs |= NEED_CUDNN;
  if (c->source == BY_FILES && c->is_guess && (row->flags & LIBRARY_DLOPENED))
    r->needs |= NEED_CUDNN_ANSWER;
  if (c->state != FOUND) {
    if (!judge_absent_cudnn(j, row->flags))
      add_judged(j,
                 c->state != ABSENT && c->has_file ? JUDGE_CUDNN_CANNOT_TELL
                                                   : JUDGE_CUDNN_CANNOT_TELL_NOT_LOADED,
                 INFO);
    return;
  }
  if (c->source == BY_FILES && !c->version) r->needs |= NEED_CUDNN_ANSWER;
  if ((major && major != built) || (c->version && c->version >= row->below))
    add_cudnn_error(j, JUDGE_CUDNN_OTHER_MAJOR);
  else judge_found_cudnn(j, row);
  if (c->version && c->version >> 16 != built) return;
  r->made_with = c->made_with;
  if (!c->version || r->cudnn) return;
  r->cudnn = c->version;
  set_generations(j, row);
}

/* Reports a shared cudart whose minor version is unknown or older than that of the build. The file
 * name contains the version, except in pip's packages. */
SHIM_FN void compare_cudart(struct judging *j, const struct judge_cudart *c) {
  const uint32_t built = j->manifest->cudart_built;
  if (!built) return;
  if (c->source == NOT_DETECTED) j->result->needs |= NEED_CUDART;
  if (c->state != FOUND) return;
  if (!c->version) add_general(j, JUDGE_CUDART_UNKNOWN, INFO);
  else if (c->version >> 8 < built >> 8 && c->version >> 16 == built >> 16)
    add_general(j, JUDGE_CUDART_OLDER, WARNING);
}

/* ---- the driver and the GPUs ---- */

/* Returns the visible GPUs whose compute capability is known, and in this interval. */
SHIM_FN uint64_t select_gpus(const struct judging *j, uint32_t lowest, uint32_t highest) {
  uint64_t gpus = 0;
  int32_t k;
  for (k = 0; k < j->driver->gpu_count && k < 64; k++) {
    const uint32_t cc = j->driver->gpus[k].cc;
    if (cc && cc >= lowest && cc <= highest) gpus |= (uint64_t)1 << k;
  }
  return gpus & j->visible;
}

SHIM_FN int has_product(const struct judging *j, uint32_t product) {
  int32_t k;
  for (k = 0; k < j->driver->gpu_count && k < 64; k++)
    if ((j->visible >> k & 1) && j->driver->gpus[k].product == product) return 1;
  return 0;
}

/* Returns whether only the CUDA version of the driver's branch is unknown. */
SHIM_FN int is_open_by_branch(const struct judging *j, uint32_t cuda) {
  const struct judge_driver *d;
  if (!HAS_DESCRIBED_FACTS) return 0;
  d = j->driver;
  if (!cuda || !d->user || d->cuda || !(d->least_cuda | d->most_cuda)) return 0;
  return d->least_cuda < cuda && (!d->most_cuda || d->most_cuda >= cuda);
}

/* Judges a required driver. The CUDA version that the driver supports decides, otherwise the
 * release of libcuda. The release of the kernel module can only confirm that the driver fits,
 * because cuda-compat may be newer. */
SHIM_FN uint32_t judge_floor(const struct judging *j, uint32_t cuda, uint32_t packed_release,
                                   uint32_t too_old) {
  const struct judge_driver *d = j->driver;
  const uint32_t release = widen_release(packed_release);
  if (!cuda && !release) return FITS;
  if (d->state != FOUND) return IS_UNKNOWN;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : (uint32_t)FITS;
  if (HAS_DESCRIBED_FACTS && cuda && d->user && d->least_cuda >= cuda) return FITS;
  if (!release || !d->user) return release && d->kernel >= release ? FITS : IS_UNKNOWN;
  if (d->user >= release) return FITS;
  return is_open_by_branch(j, cuda) ? (uint32_t)IS_UNKNOWN : too_old;
}

/* Judges whether the driver can compile PTX. */
SHIM_FN uint32_t judge_compiler(struct judging *j) {
  const struct judge_driver *d = j->driver;
  if (d->compiler == ABSENT) return JUDGE_JIT_MISSING;
  if (d->compiler == FOUND || !j->by_files) return FITS;
  if (d->compiler_source == NOT_DETECTED) j->result->needs |= NEED_COMPILER;
  return IS_UNKNOWN;
}

/* Judges the cudart inside cuDNN, which needs a driver of its major version or a newer one. */
SHIM_FN uint32_t judge_cudnn_cuda(const struct judging *j, const struct part_row *row) {
  const uint32_t major = j->result->made_with / 1000 * 1000;
  uint32_t release = row->older_release;
  if (!major || !row->needed || !row->newer_cuda) return FITS;
  if (major > row->older_cuda) release = major <= row->newer_cuda ? row->newer_release : 0;
  return judge_floor(j, major, release, JUDGE_CUDNN_NEEDS_NEWER_DRIVER);
}

/* Changes a row of GPUs if a variable makes the driver ignore machine code and compile PTX. `arch`
 * is then the ISA of the PTX, or MIXED_ISA if some code may have no PTX; otherwise 0. */
SHIM_FN void apply_forced_ptx(const struct judging *j, struct gpu_row *row) {
  const uint32_t by = row->served_by;
  struct needs needs;
  row->arch = 0;
  /* For code that PTX serves, the flags describe machine code only if that makes a difference. */
  if (by & (BY_CUBIN | BY_SOME) ? by & NO_PTX : !(by & BY_PTX) || by < NO_PTX) return;
  if (j->driver->forces_ptx != FOUND) return;
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
SHIM_FN uint32_t judge_service(const struct judging *j, uint32_t by) {
  const int is_refused = j->manifest->partial == PARTIAL_REFUSES;
  if (by & (BY_CUBIN | BY_PTX | BY_SOME)) {
    uint32_t is = JUDGE_PARTIAL_CODE;
    if ((by & NO_PTX) && (by & (BY_CUBIN | BY_SOME)) && j->driver->forces_ptx == FOUND)
      is = JUDGE_JIT_FORCED;
    else if (!(by & BY_SOME) || !is_refused) return FITS;
    return by & BY_UNKNOWN ? (uint32_t)IS_UNKNOWN : is;
  }
  if (!(by & BY_UNKNOWN)) return JUDGE_NO_CODE_FOR_GPU;
  return (by & BY_NONE) && is_refused ? JUDGE_PARTIAL_CODE : IS_UNKNOWN;
}

/* Judges a row of GPUs. If some containers serve the GPU (BY_SOME), one of them may do so by PTX.
 */
SHIM_FN uint32_t judge_gpu_code(struct judging *j, const struct gpu_row *row) {
  const uint32_t by = row->served_by;
  uint32_t is = judge_service(j, by);
  if (is != FITS) return is;
  if ((by & BY_PTX) && j->driver->disables_ptx == FOUND) return JUDGE_JIT_DISABLED;
  is = judge_floor(j, row->cuda, row->release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  if (is == FITS && (by & BY_PTX)) is = judge_compiler(j);
  if (is != FITS) return is;
  /* No document describes whether older drivers load newer machine code, or which drivers compile
   * PTX that is in no table. */
  is = judge_floor(j, row->sure_cuda, row->sure_release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  return is == FITS ? FITS : IS_UNKNOWN;
}

/* Adds a finding about the row, with the values of the row. */
SHIM_FN struct judge_finding *add_row_finding(struct judging *j, uint32_t code,
                                                    uint32_t severity) {
  /* Rows of drivers and of GPUs have the required driver at the same offsets. */
  typedef char are_alike[offsetof(struct driver_row, release) == offsetof(struct gpu_row, release)
                             ? 1
                             : -1];
  const struct gpu_row *row = &j->row.gpu;
  struct judge_finding *f;
  (void)sizeof(are_alike);
  if (code == JUDGE_DRIVER_TOO_OLD_FOR_CODE && row->arch)
    code = JUDGE_DRIVER_TOO_OLD_FOR_CODE_FORCED;
  else if (code == JUDGE_DRIVER_TOO_OLD_FOR_CODE && !(row->served_by & BY_PTX))
    code = JUDGE_DRIVER_TOO_OLD_FOR_CODE_COMPRESSED; /* nothing else of machine code needs it */
  else if ((code == JUDGE_DRIVER_TOO_OLD || code == JUDGE_DRIVER_TOO_OLD_FOR_CODE) &&
           !row->release)
    code++; /* no release is known */
  f = add_judged(j, code, severity);
  f->needs_cuda = row->cuda;
  f->needs_release = widen_release(row->release);
  if (row->kind == ROW_PART) f->needs_cuda = j->result->made_with / 1000 * 1000;
  if (row->kind != ROW_GPU) return f;
  f->gpus = select_gpus(j, row->lowest, row->highest);
  f->isa = row->arch;
  return f;
}

/* Judges a row that requires a driver, whatever the GPU is. */
SHIM_FN void judge_driver_row(struct judging *j) {
  const union row *row = &j->row;
  uint32_t is = IS_UNKNOWN; /* zeros: a static cudart of an unknown release */
  if (row->kind == ROW_PART) is = judge_cudnn_cuda(j, &row->inner);
  else if (row->driver.cuda | row->driver.release)
    is = judge_floor(j, row->driver.cuda, row->driver.release, JUDGE_DRIVER_TOO_OLD);
  if (is == FITS) return;
  if (j->by_files) j->doubt = 1;
  if (is != IS_UNKNOWN) {
    if (j->adds) add_row_finding(j, is, ERROR);
  } else if (row->kind == ROW_DRIVER && is_open_by_branch(j, row->driver.cuda)) {
    j->branch = j->i;
  } else {
    j->open = 1;
  }
}

SHIM_FN void judge_gpu_row(struct judging *j) {
  struct gpu_row *row = &j->row.gpu;
  const uint64_t here = select_gpus(j, row->lowest, row->highest);
  uint32_t is;
  j->has_kernels = 1;
  if (!here) return;
  apply_forced_ptx(j, row);
  is = judge_gpu_code(j, row);
  if (is == FITS) {
    j->fit |= here;
  } else if (is != IS_UNKNOWN) {
    j->unfit |= here;
    if (j->adds) add_row_finding(j, is, j->visible & ~j->unfit ? INFO : ERROR);
  } else if (j->adds && j->unsure == NO_ROW && (here & ~j->unfit)) {
    j->unsure = j->i;
  }
}

SHIM_FN void judge_each_row(struct judging *j, int adds) {
  uint32_t i;
  j->adds = adds != 0;
  for (i = 0; i < j->rows; i++) {
    begin_row(j, i);
    if (j->row.kind == ROW_GPU) judge_gpu_row(j);
    if (j->row.kind == ROW_DRIVER || j->row.kind == ROW_PART) judge_driver_row(j);
  }
}

/* Returns whether all visible GPUs are newer than the generations for which the cuDNN found has
 * code. */
SHIM_FN int are_later(const struct judging *j) {
  int32_t k;
  for (k = 0; k < j->driver->gpu_count && k < 64; k++) {
    const uint32_t cc = j->driver->gpus[k].cc;
    if ((j->visible >> k & 1) && (cc >> 8 <= j->newest_gpus || find_chip(cc)->tegra)) return 0;
  }
  return j->newest_gpus && j->visible;
}

/* Judges whether the cuDNN found is too old or too new for the visible GPUs. */
SHIM_FN void judge_generations(struct judging *j, uint64_t dropped) {
  j->i = j->library;
  if (dropped) {
    struct judge_finding *f = add_judged(j, JUDGE_CUDNN_TOO_NEW_FOR_GPU,
                                         j->visible & ~j->unfit ? INFO : ERROR);
    f->gpus = dropped;
    f->version = j->dropped_in;
  }
  if (are_later(j)) add_judged(j, JUDGE_CUDNN_BEFORE_THIS_GPU, INFO)->version = j->newest_gpus;
}

/* Returns the code that explains why it is unknown whether a row of GPUs fits, or JUDGE_CODES. */
SHIM_FN uint32_t explain_unsure(const struct judging *j, const struct gpu_row *row) {
  uint32_t is;
  if (row->arch == MIXED_ISA) return JUDGE_DRIVER_CANNOT_TELL_FORCED;
  if (!(row->served_by & (BY_CUBIN | BY_PTX | BY_SOME))) return JUDGE_CODES;
  if (is_open_by_branch(j, row->cuda)) return JUDGE_DRIVER_CANNOT_TELL_BRANCH;
  is = judge_floor(j, row->sure_cuda, row->sure_release, JUDGE_DRIVER_TOO_OLD_FOR_CODE);
  if (is == IS_UNKNOWN && row->sure_cuda != NO_DRIVER_KNOWN &&
      is_open_by_branch(j, row->sure_cuda))
    return JUDGE_DRIVER_CANNOT_TELL_UNSURE;
  if (is >= FITS) return JUDGE_CODES;
  return row->sure_cuda == NO_DRIVER_KNOWN ? JUDGE_DRIVER_CANNOT_TELL_NEWER_PTX
                                           : JUDGE_DRIVER_CANNOT_TELL_UNSURE;
}

/* Adds a finding about the row that may fit; returns whether there is one. */
SHIM_FN int add_unsure(struct judging *j) {
  const struct gpu_row *row = &j->row.gpu;
  struct judge_finding *f;
  uint32_t code;
  if (j->unsure == NO_ROW) return 0;
  begin_row(j, j->unsure);
  apply_forced_ptx(j, &j->row.gpu);
  code = explain_unsure(j, row);
  if (code == JUDGE_CODES) return 0;
  f = add_row_finding(j, code, INFO);
  if (code != JUDGE_DRIVER_CANNOT_TELL_UNSURE) return 1;
  f->needs_cuda = row->sure_cuda;
  f->needs_release = widen_release(row->sure_release);
  return 1;
}

/* Adds a finding about a GPU that only newer drivers certainly drive. */
SHIM_FN void add_maybe_driven(struct judging *j, uint64_t gpus) {
  struct judge_finding *f = add_general(j, JUDGE_DRIVER_CANNOT_TELL_DRIVES, INFO);
  int k = 0;
  while (!(gpus >> k & 1)) k++;
  f->gpus = (uint64_t)1 << k;
  f->needs_cuda = j->driver->gpus[k].first_cuda;
  f->needs_release = j->driver->gpus[k].first_release;
}

/* Returns whether it is unknown if libcuda and the kernel module work together. */
SHIM_FN int is_pair_unknown(const struct judging *j) {
  const struct judge_driver *d = j->driver;
  if (d->state != FOUND || d->init >= 0 || !d->user || !d->kernel || d->user == d->kernel)
    return 0;
  return !HAS_DESCRIBED_FACTS || d->compat != COMPAT_LISTED || d->gpu_count < 0 ||
         has_product(j, PRODUCT_UNKNOWN);
}

SHIM_FN uint32_t find_unknown(const struct judging *j) {
  const struct judge_driver *d = j->driver;
  uint32_t unknown = d->state == FOUND ? 0 : UNKNOWN_DRIVER;
  if (!unknown && !d->user && !d->cuda && d->init < 0) unknown |= UNKNOWN_RELEASE;
  if (d->gpu_count < 0) unknown |= UNKNOWN_GPUS;
  if (select_gpus(j, 0, NO_ROW) != j->visible) unknown |= UNKNOWN_CAPABILITY;
  if (is_pair_unknown(j))
    unknown |= d->compat == COMPAT_LISTED ? UNKNOWN_PRODUCT : UNKNOWN_PAIR;
  return unknown;
}

SHIM_FN void add_cannot_tell(struct judging *j) {
  add_general(j, JUDGE_DRIVER_CANNOT_TELL, INFO);
  if (HAS_DESCRIBED_FACTS) j->result->unknown = find_unknown(j);
}

/* Returns whether a fact is missing that any row may depend on. */
SHIM_FN int is_driver_unknown(const struct judging *j) {
  const struct judge_driver *d = j->driver;
  if (d->state != FOUND || d->gpu_count < 0) return 1;
  return is_pair_unknown(j) || (j->by_files && (!d->user || !d->kernel));
}

/* Adds findings about unknown facts after the driver was called. `maybe`: GPUs that have code, but
 * that the driver may not drive. */
SHIM_FN void conclude_rows(struct judging *j, int is_covered, uint64_t maybe) {
  int is_explained = is_covered;
  if (!is_covered) {
    j->is_muted = j->open || (HAS_DESCRIBED_FACTS && j->branch != NO_ROW);
    is_explained = 1;
    if (maybe) add_maybe_driven(j, maybe);
    else is_explained = add_unsure(j);
    j->is_muted = 0;
  }
  if (j->open || !is_explained) {
    add_cannot_tell(j);
  } else if (HAS_DESCRIBED_FACTS && j->branch != NO_ROW) {
    begin_row(j, j->branch);
    add_row_finding(j, JUDGE_DRIVER_CANNOT_TELL_BRANCH, INFO);
  }
  if (HAS_DESCRIBED_FACTS && j->driver->state == FOUND && j->driver->user &&
      !j->driver->kernel && j->driver->init < 0)
    add_general(j, JUDGE_KERNEL_MODULE_UNKNOWN, INFO);
}

/* Judges all rows about driver and GPU. One fit GPU among others is enough. */
SHIM_FN void judge_all_rows(struct judging *j) {
  uint64_t usable, suits, maybe, dropped;
  int is_covered;
  j->open = is_driver_unknown(j) != 0;
  judge_each_row(j, 0);
  dropped = j->oldest_gpu ? select_gpus(j, 0, j->oldest_gpu - 1) : 0;
  j->unfit |= dropped;
  judge_each_row(j, 1);
  judge_generations(j, dropped);
  usable = j->visible & ~j->unfit;
  suits = j->has_kernels ? j->fit & usable : usable;
  maybe = HAS_DESCRIBED_FACTS ? j->maybe & suits : 0;
  is_covered = !usable || (suits & ~maybe);
  if (j->has_kernels) j->result->usable_gpus = usable;
  if (!j->by_files) {
    if (j->asks) conclude_rows(j, is_covered, maybe);
    return;
  }
  if (((j->has_dropped && j->oldest_gpu) || j->newest_gpus) &&
      (j->driver->gpu_count < 0 || select_gpus(j, 0, NO_ROW) != j->visible))
    j->open = j->doubt = 1;
  if (!is_covered || (HAS_DESCRIBED_FACTS && j->branch != NO_ROW) || j->unfit ||
      (j->has_kernels && (j->visible & ~j->fit)))
    j->open = 1;
  if (j->open && (j->asks || j->unfit || j->doubt)) add_cannot_tell(j);
}

/* Returns the GPUs that the driver does not drive for the same reason as this one. */
SHIM_FN uint64_t find_same_reason(const struct judging *j, const struct judge_gpu *gpu) {
  uint64_t gpus = 0;
  int32_t k;
  for (k = 0; k < j->driver->gpu_count && k < 64; k++) {
    const struct judge_gpu *other = &j->driver->gpus[k];
    if (other->cc && other->driven == gpu->driven && other->branch == gpu->branch &&
        other->first_cuda == gpu->first_cuda && other->first_release == gpu->first_release)
      gpus |= (uint64_t)1 << k;
  }
  return gpus;
}

/* Adds a finding for each reason why the driver does not drive GPUs. */
SHIM_FN void add_undriven(struct judging *j) {
  uint64_t known = j->visible;
  int32_t k;
  for (k = 0; k < j->driver->gpu_count && k < 64; k++) {
    const struct judge_gpu *gpu = &j->driver->gpus[k];
    struct judge_finding *f;
    if (!gpu->cc || (known >> k & 1)) continue;
    f = add_general(j,
                    gpu->driven == NO_LONGER_DRIVEN ? JUDGE_GPU_NOT_FOR_DRIVER
                                                    : JUDGE_GPU_NOT_FOR_DRIVER_YET,
                    ERROR);
    f->gpus = find_same_reason(j, gpu);
    f->version = gpu->branch;
    f->needs_cuda = gpu->first_cuda;
    f->needs_release = gpu->first_release;
    known |= f->gpus;
  }
}

enum { STUB = 34, NO_DEVICE = 100, MISMATCH = 803, NOT_FOR_COMPAT = 804 }; /* CUresult */

/* Returns the result of cuInit: the detected one, or the one that the releases of libcuda and of
 * the kernel module predict; -1: unknown. A newer libcuda may be a cuda-compat without a note; an
 * older one never works. */
SHIM_FN int32_t predict_init(const struct judging *j) {
  const struct judge_driver *d = j->driver;
  if (d->state != FOUND) return -1;
  if (!HAS_DESCRIBED_FACTS || d->init >= 0 || !d->user || !d->kernel || d->user == d->kernel)
    return d->init;
  /* A single unsupported GPU fails the entire process. */
  if (d->compat == COMPAT_LISTED)
    return has_product(j, PRODUCT_OF_CONSUMERS) ? NOT_FOR_COMPAT : -1;
  if (d->compat == COMPAT_ANY || (d->compat == COMPAT_UNKNOWN && d->user > d->kernel)) return -1;
  return MISMATCH;
}

/* Adds the finding that the driver or the GPU is missing. */
SHIM_FN void add_nothing(struct judging *j, uint32_t code) {
  const int is_required = j->manifest->gpu == GPU_REQUIRED;
  add_general(j, is_required ? code : (uint32_t)JUDGE_NOTHING_TO_SEE, is_required ? ERROR : INFO);
}

/* Adds the finding about the result of cuInit. */
SHIM_FN void add_answer(struct judging *j, int32_t init) {
  uint32_t code = JUDGE_DRIVER_CANNOT_TELL_ANSWER;
  if (init == MISMATCH) code = JUDGE_DRIVER_MISMATCH;
  if (init == NOT_FOR_COMPAT) code = JUDGE_FORWARD_COMPAT_UNSUPPORTED;
  if (init == STUB) code = JUDGE_STUB_DRIVER;
  /* A stub without a GPU is harmless: images for builds contain it. */
  if (init <= 0 || init == NO_DEVICE ||
      (init == STUB && j->manifest->gpu != GPU_REQUIRED && !j->visible))
    add_nothing(j, JUDGE_GPU_MISSING);
  else
    add_general(j, code, code == JUDGE_DRIVER_CANNOT_TELL_ANSWER ? INFO : ERROR);
}

SHIM_FN void judge_known_driver(struct judging *j) {
  const struct judge_driver *d = j->driver;
  const int32_t init = predict_init(j);
  const int sees_none = d->gpu_count >= 0 && !j->visible;
  if (d->state != ABSENT && init <= 0 && !sees_none && !d->cannot_load) judge_all_rows(j);
  else if (!j->asks) return; /* a broken driver does not affect a program without requirements */
  else if (d->state == ABSENT) add_nothing(j, JUDGE_DRIVER_MISSING);
  else if (HAS_DESCRIBED_FACTS && init < 0 && sees_none && d->gpu_count) add_undriven(j);
  else if (init <= 0 && !sees_none) add_general(j, JUDGE_DRIVER_CANNOT_TELL_NOT_LOADED, INFO);
  else add_answer(j, init);
}

/* Judges the driver by files. Only two results are certain: it fits, or no GPU is visible. */
SHIM_FN void judge_driver_by_files(struct judging *j) {
  struct judge_result *r = j->result;
  j->is_muted = 1;
  judge_known_driver(j);
  j->is_muted = 0;
  if (j->last == JUDGE_CODES) return;
  if (j->last == JUDGE_NOTHING_TO_SEE) {
    add_general(j, JUDGE_NOTHING_TO_SEE, INFO);
    return;
  }
  r->needs |= NEED_DRIVER_ANSWER;
  r->usable_gpus = 0;
  if (j->asks) add_cannot_tell(j);
}

/* Sets the GPUs that the driver drives, and those that it may drive. */
SHIM_FN void set_visible(struct judging *j) {
  const struct judge_driver *d = j->driver;
  int32_t k;
  if (!HAS_DESCRIBED_FACTS) {
    if (d->gpu_count > 0)
      j->visible = ~(uint64_t)0 >> (d->gpu_count < 64 ? 64 - d->gpu_count : 0);
    return;
  }
  for (k = 0; k < d->gpu_count && k < 64; k++) {
    if (d->gpus[k].driven < NOT_YET_DRIVEN) j->visible |= (uint64_t)1 << k;
    if (d->gpus[k].driven == MAY_BE_DRIVEN) j->maybe |= (uint64_t)1 << k;
  }
}

SHIM_FN void judge_all(struct judging *j, const struct judge_facts *facts) {
  struct judge_result *r = j->result;
  uint32_t i;
  set_visible(j);
  for (i = 0; i < j->rows; i++) {
    begin_row(j, i);
    if (j->row.kind == ROW_DRIVER || j->row.kind == ROW_GPU) j->asks = 1;
    if (j->row.kind == ROW_LIBRARY) judge_library_row(j, &j->row.cudnn);
  }
  compare_cudart(j, facts->cudart);
  if (!j->asks && !r->made_with && !j->oldest_gpu && !j->newest_gpus) return;
  if (j->driver->source == NOT_DETECTED) {
    r->needs |= NEED_DRIVER;
    if (j->asks) add_cannot_tell(j);
  } else if (j->by_files) {
    judge_driver_by_files(j);
  } else {
    judge_known_driver(j);
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
  j.result = result;
  j.rows = manifest->rows[0].count + manifest->rows[1].count;
  j.asks = manifest->gpu == GPU_REQUIRED;
  j.by_files = facts->driver->source != DETECTED;
  j.unsure = j.branch = NO_ROW;
  j.last = JUDGE_CODES;
  judge_all(&j, facts);
}
