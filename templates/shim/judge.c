/* Judging: the same intervals as the judge in Rust (guard-core/src/judge/run.rs), proven equal by one table. */

/* ---- cuDNN ---- */

/* The oldest that the program accepts. */
CODE uint32_t least_accepted(const struct library_row *row) {
  return (row->flags & LIBRARY_PATCH) && row->built > row->min ? row->built : row->min;
}

CODE struct finding *find_cudnn(enum words words, int severity, const struct cudnn *c, const struct library_row *row) {
  struct finding *f = find_weighing(words, severity);
  const char *by = c->by, *path = c->path;
  f->min = least_accepted(row), f->built = row->built, f->built_major = row->built >> 16, f->found = c->version;
  show(f->path, sizeof f->path, c->path);
  show(f->library, sizeof f->library, c->soname);
  cut(f->picked_by, sizeof f->picked_by, c->why);
  /* The library that says the version is named where it stands in another folder. */
  for (; by && *by && *by == *path; path++) by++;
  if (by && (base_name(by) != by || base_name(path) != path)) show(f->beside, sizeof f->beside, c->by);
  return f;
}

/* Major and minor of a packed version, as the driver says CUDA's: 12020. */
CALLED uint32_t as_cuda(uint32_t packed) { return (packed >> 16) * 1000 + (packed >> 8 & 0xff) * 10; }

CODE int same_minor(uint32_t one, uint32_t other) { return one >> 8 == other >> 8; }

CALLED struct finding *find_mixed(uint32_t part, const struct cudnn *c, const struct library_row *row) {
  struct finding *f = find_cudnn(CUDNN_INNER_MIXED, same_minor(part, c->version) ? WARNING : ERROR, c, row);
  f->part = part;
  return f;
}

/* Those that are missing and that only some calls need are told together: `lacking`. */
CODE void judge_part(const struct part *p, const struct cudnn *c, const struct library_row *row, struct text *lacking) {
  struct finding *f;
  if (!p->known) return;
  if (!p->present && !p->needed) {
    put(lacking, ", ");
    put(lacking, p->file);
    return;
  }
  if (!p->present) {
    f = find_cudnn(CUDNN_INNER_MISSING_NEEDED, ERROR, c, row);
  } else if (p->version && c->version && p->version != c->version) {
    f = find_mixed(p->version, c, row);
    show(f->beside, sizeof f->beside, p->path);
  } else {
    return;
  }
  show(f->library, sizeof f->library, p->file);
}

/* The CUDA that the program was made with: its toolkit's, else its cudart's. 0 where neither is known. */
CODE uint32_t cuda_of(const struct note *n) {
  char text[NOTE_TEXT];
  uint32_t toolkit = toolkit_of(n), i;
  if (toolkit) return toolkit;
  for (i = 0; i < rows_of(n); i++) {
    const union row row = note_row(n, i);
    if (row.kind == ROW_DRIVER && note_text(n, row.driver.because, &text) && starts(text, "libcudart ")) return row.driver.cuda;
  }
  return 0;
}

CODE void judge_cudnn(const struct cudnn *c, const struct library_row *row) {
  uint32_t min = least_accepted(row), major = c->version ? c->version >> 16 : major_in_name(c->soname), built = cuda_of(g.now);
  int missing = 0, k;
  char files[SHOW];
  struct text lacking = text_in(files, sizeof files);
  if (c->state == INSIDE) return;
  if (c->state == ABSENT) {
    if (row->flags & LIBRARY_DLOPENED) find_cudnn(CUDNN_ABSENT, row->flags & LIBRARY_REQUIRED ? ERROR : INFO, c, row);
    return;
  }
  if (c->state == UNKNOWN) {
    find_cudnn(c->path[0] ? CUDNN_CANNOT_TELL : CUDNN_CANNOT_TELL_NOT_LOADED, INFO, c, row);
    return;
  }
  if ((major && major != row->built >> 16) || (c->version && c->version >= row->below)) {
    find_cudnn(CUDNN_OTHER_MAJOR, ERROR, c, row);
    return;
  }
  for (k = 0; k < c->parts; k++) missing |= c->part[k].known && !c->part[k].present && c->part[k].needed;
  if (!c->version && !missing) find_cudnn(CUDNN_CANNOT_TELL, INFO, c, row);
  if (c->version && c->version < min)
    find_cudnn(same_minor(c->version, row->built) ? CUDNN_OLDER_PATCH : CUDNN_OLDER, ERROR, c, row)->min = min;
  if (c->version && c->by_name && c->by_name != c->version) {
    find_mixed(c->by_name, c, row);
  } else if (c->version && !c->by_name && c->by_code && !same_minor(c->by_code, c->version)) {
    find_cudnn(CUDNN_INNER_MIXED_LOADER, ERROR, c, row)->loader = as_cuda(c->by_code);
  }
  for (k = 0; k < c->parts; k++) judge_part(&c->part[k], c, row, &lacking);
  if (lacking.used) {
    struct finding *f = find_cudnn(CUDNN_INNER_MISSING, WARNING, c, row);
    cut(f->library, sizeof f->library, files + 2);
  }
  if (c->cuda && built && c->cuda / 1000 != built / 1000) {
    struct finding *f = find_cudnn(CUDNN_OTHER_CUDA, WARNING, c, row);
    f->found_cuda = c->cuda, f->built_cuda = built;
  }
}

/* ---- driver and GPU ---- */

/* Whether the cuDNN found is one of those that have dropped GPUs last, by this row of it. */
CODE int has_dropped(const struct library_row *row) { return g.now->cudnn >= row->drops_gpus_from; }

/* The oldest GPU that the cuDNN found still serves, where this row is of it; 0: no release has left any behind. */
CALLED uint32_t oldest_gpu(const union row *row) {
  if (row->kind != ROW_LIBRARY || !g.now->cudnn) return 0;
  return has_dropped(&row->cudnn) ? row->cudnn.oldest_gpu : row->cudnn.oldest_gpu_before;
}

/* The newest generation of GPUs that the cuDNN found has code for, where no document says what it does on later ones; else 0. */
CODE uint32_t newest_gpus(const union row *row) {
  const struct library_row *of = &row->cudnn;
  uint32_t cuda = g.now->cudnn_cuda / 1000;
  if (row->kind != ROW_LIBRARY || !g.now->cudnn || (cuda ? cuda : 254) >= of->newest_gpus_below_cuda) return 0;
  return (g.now->cudnn >> 8 & 0xff) >= of->newest_gpus_from ? of->newest_gpus : of->newest_gpus_before;
}

/* Whether all visible GPUs are later ones. */
CODE int are_later(uint32_t newest) {
  int k = 0;
  while (k < g.driver.gpus && g.driver.cc[k] >> 8 > newest && !chip_of(g.driver.cc[k])->tegra) k++;
  return newest && k && k == g.driver.gpus;
}

/* Whether it is known of each visible GPU what it is. */
CODE int gpus_are_known(void) {
  int k = 0;
  while (k < g.driver.gpus && g.driver.cc[k]) k++;
  return k == g.driver.gpus;
}

/* The GPUs that a row is about: those of its interval, or those that the cuDNN found has left behind. */
CODE uint64_t gpus_of(const union row *row) {
  const struct driver *d = &g.driver;
  const uint32_t oldest = oldest_gpu(row);
  uint32_t lowest = 1, highest = 0;
  uint64_t gpus = 0;
  int k;
  if (row->kind == ROW_GPU) lowest = row->gpu.lowest, highest = row->gpu.highest;
  if (oldest) highest = oldest - 1;
  for (k = 0; k < d->gpus; k++)
    if (d->cc[k] && d->cc[k] >= lowest && d->cc[k] <= highest) gpus |= (uint64_t)1 << k;
  return gpus;
}

/* Each compute capability once, in the order of the GPUs: 7.5, 8.6, and as nvcc's -arch spells them. */
CODE void name_gpus(struct finding *f, uint64_t which) {
  const struct driver *d = &g.driver;
  struct text gpus = text_in(f->gpus, sizeof f->gpus), archs = text_in(f->archs, sizeof f->archs);
  int k, before;
  for (k = 0; k < d->gpus; k++) {
    if (!(which >> k & 1) || !d->cc[k]) continue;
    for (before = 0; before < k; before++)
      if ((which >> before & 1) && d->cc[before] == d->cc[k]) break;
    if (before < k) continue;
    if (gpus.used) put(&gpus, ", "), put(&archs, ", ");
    put_capability(&gpus, d->cc[k]);
    put(&archs, "sm_");
    put_number(&archs, d->cc[k] >> 8);
    put_number(&archs, d->cc[k] & 0xff);
  }
}

CODE struct finding *find_driver(enum words words, int severity) {
  struct finding *f = find_weighing(words, severity);
  const struct driver *d = &g.driver;
  name_gpus(f, ~(uint64_t)0);
  f->cuda_major = d->cuda / 1000;
  f->answer = d->init > 0 ? (uint32_t)d->init : 0;
  if (d->state != FOUND) return f;
  f->driver = d->user, f->cuda = d->cuda, f->kernel = d->kernel == d->user ? 0 : d->kernel;
  show(f->libcuda, sizeof f->libcuda, d->path);
  return f;
}

/* A text of the note that is being judged. */
CODE void show_text(char *to, size_t size, struct text_ref ref) {
  char text[NOTE_TEXT];
  if (note_text(g.now, ref, &text)) show(to, size, text);
}

/* The toolkits that make code for all of these GPUs, as the driver says CUDA versions; 0: no such end. */
struct makers {
  uint32_t from, to;
};

CODE struct makers makers_of(uint64_t gpus) {
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
  for (k = 0; k < g.driver.gpus; k++)
    for (i = 0; i < sizeof archs / sizeof *archs; i++) {
      if (!(gpus >> k & 1) || g.driver.cc[k] != archs[i].cc) continue;
      if (archs[i].from > all.from) all.from = archs[i].from;
      if (archs[i].to && (!all.to || archs[i].to < all.to)) all.to = archs[i].to;
    }
  return all;
}

/* No code for these GPUs: the cure is another where the toolkit in use makes none for them. */
CODE struct finding *find_no_code(int severity, uint64_t gpus) {
  const uint32_t built = toolkit_of(g.now);
  const struct makers makers = makers_of(gpus);
  enum words words = NO_CODE_FOR_GPU;
  struct finding *f;
  if (built && makers.to && built > makers.to) words = NO_CODE_FOR_GPU_NO_LONGER_MADE;
  else if (built && built < makers.from) words = NO_CODE_FOR_GPU_NOT_YET_MADE;
  f = find_driver(words, severity);
  f->built_cuda = built, f->made_from = makers.from, f->made_to = makers.to;
  return f;
}

/* The same about the GPUs of a row, and what the row says. */
CODE struct finding *find_row(enum words words, int severity, const union row *row) {
  struct finding *f;
  if (words == DRIVER_TOO_OLD && !row->driver.release) words = DRIVER_TOO_OLD_NONE_KNOWN;
  if (words == DRIVER_TOO_OLD_FOR_CODE)
    words = row->gpu.arch ? DRIVER_TOO_OLD_FOR_CODE_FORCED : row->gpu.release ? words : DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN;
  f = words == NO_CODE_FOR_GPU ? find_no_code(severity, gpus_of(row)) : find_driver(words, severity);
  if (row->kind == ROW_DRIVER) {
    f->needs_cuda = row->driver.cuda, f->needs_release = widen(row->driver.release);
    show_text(f->code, sizeof f->code, row->driver.because);
    return f;
  }
  if (row->kind == ROW_PART) {
    f->found = g.now->cudnn, f->found_cuda = g.now->cudnn_cuda, f->needs_cuda = f->found_cuda / 1000 * 1000;
    return f;
  }
  name_gpus(f, gpus_of(row));
  if (row->kind == ROW_LIBRARY) {
    f->found = g.now->cudnn, f->min = row->cudnn.min;
    f->dropped_in = has_dropped(&row->cudnn) ? row->cudnn.drops_gpus_from : f->found & 0xff0000; /* 9.0.0: the first of its major */
    return f;
  }
  f->needs_cuda = row->gpu.cuda, f->needs_release = widen(row->gpu.release);
  show_text(f->code, sizeof f->code, row->gpu.code);
  show_text(f->built_for, sizeof f->built_for, row->gpu.built_for);
  if (row->gpu.arch) {
    struct text t = text_in(f->code, sizeof f->code);
    put(&t, "PTX ");
    put_capability(&t, row->gpu.arch);
  }
  return f;
}

/* A row's floor. The answer, here and below: it fits, or cannot be told, or these are the words of what is wrong. What the driver
 * says it supports decides; its release stands in where that is not known, and the kernel module's only to accept. */
CODE enum words judge_floor(uint32_t cuda, uint32_t packed_release, enum words too_old) {
  const struct driver *d = &g.driver;
  uint32_t release = widen(packed_release);
  if (!cuda && !release) return FITS;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : FITS;
  if (release && d->user) return d->user < release ? too_old : FITS;
  return release && d->kernel >= release ? FITS : CANNOT_BE_TOLD;
}

/* Whether PTX can be compiled here: what is not found by files is a doubt. */
CODE enum words judge_jit(void) {
  struct driver *d = &g.driver;
  if (!d->jit) d->jit = driver_has(LIBJIT);
  if (d->jit < 0) return JIT_MISSING;
  return d->jit > 0 ? FITS : CANNOT_BE_TOLD;
}

/* cuDNN has a cudart of its own inside, which starts on drivers of its major alone. */
CODE enum words judge_cudnn_cuda(const struct part_row *row) {
  uint32_t major = g.now->cudnn_cuda / 1000 * 1000;
  uint32_t release = major <= row->older_cuda ? row->older_release : major <= row->newer_cuda ? row->newer_release : 0;
  return major && row->needed && row->newer_cuda ? judge_floor(major, release, CUDNN_NEEDS_NEWER_DRIVER) : FITS;
}

/* What a row of GPUs comes to where a variable has machine code passed over, and PTX compiled in its place. `arch` is then its
 * ISA, MIXED where not all is known to have PTX, else 0. */
enum { MIXED = 1 };

CODE void force(struct gpu_row *row) {
  uint32_t by = row->served_by;
  struct needs needs;
  row->arch = 0;
  /* What PTX serves says of machine code beside it only where that makes a difference. */
  if (by & (BY_CUBIN | BY_SOME) ? by & NO_PTX : !(by & BY_PTX) || by < NO_PTX) return;
  if (!variable_is_one("CUDA_FORCE_PTX_JIT")) return;
  row->served_by = BY_UNKNOWN, row->arch = MIXED;
  if (!(by & BY_PTX)) row->cuda = row->release = row->sure_cuda = row->sure_release = 0; /* what is PTX anyway keeps what it needs */
  if (by < PTX_ISA) return;
  row->served_by = (uint16_t)((by & BY_SOME) | BY_PTX);
  row->arch = by >> 12 << 8 | (by >> 8 & 15);
  needs.cuda = row->cuda, needs.release = row->release;
  raise_needs(&needs, row->arch);
  row->cuda = needs.cuda, row->release = needs.release;
}

/* A row of GPUs. Flags that stand together: where some containers serve the GPU (BY_SOME), one of them may do so by PTX. */
CALLED enum words judge_gpu(const struct note *n, const struct gpu_row *row) {
  uint32_t by = row->served_by;
  enum words is;
  if (by & NO_PTX && (by & (BY_CUBIN | BY_SOME)) && variable_is_one("CUDA_FORCE_PTX_JIT")) return JIT_FORCED;
  if ((by & BY_SOME) && n->head.partial == PARTIAL_REFUSES) return PARTIAL_CODE;
  if (!(by & (BY_CUBIN | BY_PTX | BY_SOME))) return by & BY_NONE ? NO_CODE_FOR_GPU : CANNOT_BE_TOLD;
  if ((by & BY_PTX) && variable_is_one("CUDA_DISABLE_PTX_JIT")) return JIT_DISABLED;
  is = judge_floor(row->cuda, row->release, DRIVER_TOO_OLD_FOR_CODE);
  if (is == FITS && (by & BY_PTX)) is = judge_jit();
  if (is != FITS) return is;
  /* What older drivers make of newer machine code is in no document, nor what newer ones make of PTX that no table has. */
  return judge_floor(row->sure_cuda, row->sure_release, DRIVER_TOO_OLD_FOR_CODE) == FITS ? FITS : CANNOT_BE_TOLD;
}

/* What a driver that does not work, or none, comes to; whether that is all there is to say. `asks`: whether the note asks
 * anything of driver and GPU, beyond what cuDNN asks of them. */
CODE int judge_answer(const struct note *n, int asks) {
  const struct driver *d = &g.driver;
  enum { STUB = 34, NO_DEVICE = 100, MISMATCH = 803, NOT_FOR_COMPAT = 804 }; /* CUresult */
  int required = n->head.gpu == GPU_REQUIRED, severity = ERROR;
  enum words words;
  if (d->init == STUB && (d->gpus > 0 || required)) words = STUB_DRIVER; /* one that builds and has no GPU may have it */
  else if (d->init == MISMATCH) words = DRIVER_MISMATCH;
  else if (d->init == NOT_FOR_COMPAT) words = FORWARD_COMPAT_UNSUPPORTED;
  else if (d->state == ABSENT || d->init == STUB || d->init == NO_DEVICE || (d->init <= 0 && d->gpus == 0)) {
    words = !required ? NOTHING_TO_SEE : d->state == ABSENT ? DRIVER_MISSING : GPU_MISSING;
    severity = required ? ERROR : INFO;
  } else if (d->init > 0 || d->state == UNKNOWN) {
    words = d->init > 0 ? DRIVER_CANNOT_TELL_ANSWER : *d->trouble ? DRIVER_CANNOT_TELL_NOT_LOADED : DRIVER_CANNOT_TELL;
    severity = INFO;
  } else {
    return 0;
  }
  if (asks) cut(find_driver(words, severity)->why, SHOW, d->trouble);
  return 1;
}

/* The rows about driver and GPU. One fit GPU among others is enough. */
CODE void judge_rows(struct note *n, int asks) {
  const struct driver *d = &g.driver;
  const uint64_t all = d->gpus > 0 ? ~(uint64_t)0 >> (64 - d->gpus) : 0;
  uint64_t fit = 0, unfit = 0, kernels = 0;
  union row unsure;
  uint32_t i;
  int pass, covered, open, doubt = 0, has_unsure = 0;
  memset(&unsure, 0, sizeof unsure);
  open = d->gpus < 0 || (d->init < 0 && d->user && d->kernel && d->user != d->kernel) || (d->by_files && (!d->user || !d->kernel));
  for (pass = 0; pass < 2; pass++) /* what a row weighs depends on those behind it */
    for (i = 0; i < rows_of(n); i++) {
      union row row = note_row(n, i);
      uint64_t here = gpus_of(&row);
      enum words is = CUDNN_TOO_NEW_FOR_GPU;
      if (row.kind == ROW_DRIVER) is = judge_floor(row.driver.cuda, row.driver.release, DRIVER_TOO_OLD);
      if (row.kind == ROW_PART) is = judge_cudnn_cuda(&row.inner);
      if (row.kind == ROW_DRIVER || row.kind == ROW_PART) {
        if (is == CANNOT_BE_TOLD) open = 1;
        if (is < FITS && pass) find_row(is, ERROR, &row);
        if (is != FITS && d->by_files) doubt = 1;
      }
      /* Too old or too new for it; what every release of its major has left behind, no driver of today drives. */
      if (d->by_files && ((oldest_gpu(&row) && has_dropped(&row.cudnn)) || newest_gpus(&row)) && !gpus_are_known())
        open = doubt = 1;
      if (pass && are_later(newest_gpus(&row))) {
        struct finding *f = find_driver(CUDNN_BEFORE_THIS_GPU, INFO);
        f->found = n->cudnn, f->newest_major = newest_gpus(&row);
      }
      if (row.kind == ROW_GPU) force(&row.gpu), kernels = all, is = judge_gpu(n, &row.gpu);
      if (!here || (row.kind != ROW_GPU && row.kind != ROW_LIBRARY)) continue;
      if (is == FITS) fit |= here;
      if (is < FITS) {
        unfit |= here;
        if (pass) find_row(is, all & ~unfit ? INFO : ERROR, &row);
      }
      if (is == CANNOT_BE_TOLD && pass && !has_unsure && (here & ~unfit)) unsure = row, has_unsure = 1;
    }
  n->not_unfit = kernels & ~unfit;
  covered = !n->not_unfit || (fit & ~unfit);
  if (!open && !covered && has_unsure && !d->by_files &&
      (unsure.gpu.arch == MIXED || judge_floor(unsure.gpu.sure_cuda, unsure.gpu.sure_release, DRIVER_TOO_OLD_FOR_CODE) < FITS)) {
    struct finding *f = find_row(unsure.gpu.arch == MIXED ? DRIVER_CANNOT_TELL_FORCED
                                 : unsure.gpu.sure_release ? DRIVER_CANNOT_TELL_UNSURE
                                                           : DRIVER_CANNOT_TELL_NEWER_PTX,
                                 INFO, &unsure);
    f->needs_release = widen(unsure.gpu.sure_release);
    f->nvcc_major = unsure.gpu.sure_cuda / 1000;
    return;
  }
  if (!covered || (d->by_files && (unfit || kernels & ~fit))) open = 1;
  if (open && (asks || unfit || doubt)) find_driver(DRIVER_CANNOT_TELL, INFO);
}

CODE void judge_driver(struct note *n, int asks) {
  n->not_unfit = 0;
  if (!judge_answer(n, asks)) judge_rows(n, asks);
}

/* A shared libcudart of an older minor than built with: by its file's name, which in pip's packages does not say. */
CALLED void judge_cudart(const struct note *n, const struct driver_row *row) {
  static char soname[NOTE_TEXT], path[PATH_MAX];
  uint32_t version;
  struct finding *f;
  if (!note_text(n, row->cudart, &soname) || !*soname || !is_loaded(soname, &path, 0)) return;
  real_name(path, &g.real);
  version = version_in_name(base_name(g.real));
  if (version && version >> 8 >= row->cudart_built >> 8) return;
  f = find(version ? CUDART_OLDER : CUDART_UNKNOWN);
  f->built_cuda = as_cuda(row->cudart_built), f->found_cuda = as_cuda(version);
  show(f->library, sizeof f->library, soname);
  show(f->path, sizeof f->path, path);
}

/* ---- notes ---- */

/* The least kind of a row that is not known and above this one; -1 where there is none. */
CODE int next_unknown_kind(const struct note *n, int above) {
  int next = -1;
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = note_row(n, i);
    if (!row_is_known(&row) && row.kind > above && (next < 0 || row.kind < next)) next = row.kind;
  }
  return next;
}

CODE void find_unknown_rows(const struct note *n) {
  int kind = next_unknown_kind(n, -1);
  struct finding *f;
  struct text kinds;
  if (kind < 0) return;
  f = find(NOTE_NEWER_ROWS);
  for (kinds = text_in(f->kinds, sizeof f->kinds); kind >= 0 && kinds.used + 8 < kinds.size; kind = next_unknown_kind(n, kind)) {
    if (kinds.used) put(&kinds, ", ");
    put_number(&kinds, (uint32_t)kind);
  }
}

/* GPU code of the note's component that nobody has looked at, in words, or null. Of what its owner declares, his word counts. */
CODE const char *code_not_judged(const struct note *n) {
  uint32_t i;
  for (i = 0; i < n->head.rows; i++) {
    const union row row = note_row(n, i);
    if (row.kind == ROW_GPU) return 0;
  }
  if (n->own && g.looks) return "GPU code that stands as plain data"; /* of which no container says anything */
  if (n->state != NOTE_WHOLE || n->head.archs_known == ARCHS_OBSERVED) return 0;
  if (!n->own) return "GPU code of another file"; /* where nobody looks for containers */
  return n->head.sealed && n->head.archs_known == ARCHS_DECLARED ? "GPU code that was declared and not found" : 0;
}

/* Puts one name more behind those that stand from there on. */
CALLED void put_behind(struct text *t, size_t from, const char *between, const char *name) {
  if (t->used > from) put(t, between);
  put(t, name);
}

/* Names what of a note was not judged, for the report and for whoever asks. Several notes may say the same. */
CODE void put_not_judged(struct text *t, size_t from, const struct note *n, const char *between) {
  static const char cudart[] = "what a static cudart asks of the driver";
  const char *code = code_not_judged(n);
  int kind = -1;
  while ((kind = next_unknown_kind(n, kind)) >= 0) {
    put_behind(t, from, between, "row of kind ");
    put_number(t, (uint32_t)kind);
  }
  if (code && !find_text(t->at + from, code)) put_behind(t, from, between, code);
  /* A shared one is needed by its name, and host code that nvcc made has one; of others nothing shows. */
  if (n->own && g.looks && !n->sees && !find_text(t->at + from, cudart)) put_behind(t, from, between, cudart);
}

/* What cannot be read of a note is said, and leaves the verdict open. Whether there is anything in it to judge. */
CODE int judge_bytes(const struct note *n) {
  if (!note_is_readable(n)) {
    struct finding *f = find(n->state == NOTE_IS_ABSENT ? NOTE_DAMAGED_NOT_FOUND : NOTE_DAMAGED);
    show(f->file, sizeof f->file, base_name(file_of(&n->image)));
    if (n->damage) cut(f->why, sizeof f->why, n->damage);
    return 0;
  }
  if (n->state == NOTE_IS_NEWER) find(NOTE_NEWER);
  else find_unknown_rows(n);
  return 1;
}

/* The cuDNN of a row, by files; where they do not say that it is right, by the real one. */
CALLED void judge_cudnn_row(struct note *n, struct cudnn *c, const struct library_row *row, int level, int late) {
  int k;
  begin_round();
  look(c, n, row, late);
  judge_cudnn(c, row);
  if (level && (round_has(ERROR) || (c->state == FOUND && !c->version))) {
    forget_round();
    ask_and_look(c, n, row);
    judge_cudnn(c, row);
  } else if (!level) { /* what the real one could contradict is not known */
    for (k = 0; k < c->parts; k++)
      if (c->part[k].needed && !c->part[k].present) c->part[k].known = 0;
    if (c->state == ABSENT && (row->flags & LIBRARY_REQUIRED)) c->state = UNKNOWN;
    forget_round();
    judge_cudnn(c, row);
  }
  if (c->state == INSIDE) c->version = row->built, c->from = "the build";
  c->note = g.now;
  n->cudnn = c->state == FOUND && c->version >> 16 == row->built >> 16 ? c->version : 0;
  n->cudnn_cuda = c->state == FOUND && (!c->version || n->cudnn) ? c->cuda : 0;
}

CODE int only_nothing_to_see(void) {
  const struct findings *all = &g.findings;
  return all->count > all->round && all->at[all->count - 1].words == NOTHING_TO_SEE;
}

CODE void judge_driver_rows(struct note *n, int asks, int level, int late) {
  if (!g.driver_known++) look_at_driver(n);
  begin_round();
  judge_driver(n, asks);
  if (!g.driver.by_files || !round_has(INFO) || only_nothing_to_see()) return;
  forget_round();
  /* A program that can do without a GPU is not kept waiting: it asks by check(). Who wants a report waits for it. */
  if (level && (late || n->head.gpu != GPU_OPTIONAL || *variable("CUDAGUARD_REPORT"))) {
    ask_the_driver();
    judge_driver(n, asks);
  } else if (asks) {
    find_driver(DRIVER_CANNOT_TELL, INFO);
  }
}

CALLED void judge_note(struct note *n, int level, int late) {
  int asks = n->head.gpu == GPU_REQUIRED, rests_on_cudnn = 0;
  uint32_t i;
  begin_round();
  if (!judge_bytes(n)) return;
  for (i = 0; i < rows_of(n); i++) {
    const union row row = note_row(n, i);
    struct cudnn *c = &g.cudnn[g.seen];
    if (row.kind == ROW_DRIVER) judge_cudart(n, &row.driver);
    if (row.kind == ROW_DRIVER || row.kind == ROW_GPU) asks = 1;
    if (row.kind != ROW_LIBRARY) continue;
    judge_cudnn_row(n, c, &row.cudnn, level, late);
    rests_on_cudnn |= n->cudnn_cuda || oldest_gpu(&row) || newest_gpus(&row);
    if (g.seen < MAX_SEEN - 1 && (c->state == FOUND || c->state == INSIDE)) g.seen++;
  }
  if (asks || rests_on_cudnn) judge_driver_rows(n, asks, level, late);
}

/* Of two components whose fit GPUs are different ones, the warning that names both. */
CODE void judge_together(void) {
  const struct note *end = g.note + g.notes, *other;
  for (g.now = g.note; g.now < end; g.now++)
    for (other = g.now + 1; other < end; other++) {
      if (!g.now->not_unfit || !other->not_unfit || (g.now->not_unfit & other->not_unfit)) continue;
      component(other, &find_driver(NO_GPU_FOR_ALL, WARNING)->other);
      return;
    }
}

CODE void judge(int level, int late) {
  int k;
  g.findings.count = g.findings.round = 0;
  g.findings.left_out = g.findings.left_out_now = 0;
  g.seen = g.level = g.driver_known = 0;
  for (k = 0; k < g.notes; k++) {
    struct note *n = g.now = &g.note[k];
    judge_note(n, level && (late ? in_scope(n) : speaks_for(n)), late);
  }
  begin_round();
  judge_together();
  judge_slots();
  find_what_was_left_out();
}
