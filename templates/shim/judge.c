/* Judging: the same intervals as the judge in Rust (guard-core/src/judge/run.rs), proven equal by one table. */

/* Its name and version. */
CODE void component(const struct note *n, char *to, size_t size) {
  char name[TEXT], version[TEXT];
  if (n->state == NOTE_DAMAGED) return;
  note_text(n, n->d + 28, &name);
  note_text(n, n->d + 32, &version);
  format(to, size, "%p %p", name, version);
}

CODE struct finding *find(int code, int severity) {
  static struct finding overflow;
  struct finding *f = g.findings < MAX_FINDINGS ? &g.finding[g.findings++] : &overflow;
  memset(f, 0, sizeof *f);
  f->code = code, f->severity = severity, f->note = g.now;
  component(&g.note[g.now], f->component, sizeof f->component);
  return f;
}

CODE struct finding *find_cudnn(int code, int severity, const struct cudnn *c, const unsigned char *row) {
  struct finding *f = find(code, severity);
  const char *by, *path;
  f->min = u32(row + 4), f->built = u32(row + 12), f->found = c->version;
  show(f->path, sizeof f->path, c->path);
  for (by = c->by, path = c->path; by && *by && *by == *path;) by++, path++;
  if (by && (base_name(by) != by || base_name(path) != path)) show(f->beside, sizeof f->beside, c->by);
  cut(f->why, sizeof f->why, c->why);
  cut(f->file, sizeof f->file, c->soname);
  return f;
}

CODE void judge_cudnn(const struct cudnn *c, const unsigned char *row) {
  uint32_t flags = u16(row + 2), min = u32(row + 4), below = u32(row + 8), built = u32(row + 12), major, k;
  int missing = 0;
  if ((flags & PATCH) && built > min) min = built;
  if (c->state == INSIDE) return;
  if (c->state == ABSENT) {
    if (flags & DLOPENED) find_cudnn(205, flags & REQUIRED ? ERROR : INFO, c, row);
    return;
  }
  if (c->state == UNKNOWN) {
    find_cudnn(501, INFO, c, row);
    return;
  }
  major = c->version ? c->version >> 16 : major_in_name(c->soname);
  if (major && major != built >> 16) {
    find_cudnn(201, ERROR, c, row);
    return;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) missing |= c->part[k].known && !c->part[k].present && c->part[k].needed;
  if (!c->version) {
    if (!missing) find_cudnn(501, INFO, c, row);
  } else if (c->version < min) {
    struct finding *f = find_cudnn(c->version >> 8 == built >> 8 ? 203 : 202, ERROR, c, row);
    f->min = min;
  } else if (c->version >= below) {
    find_cudnn(201, ERROR, c, row);
    return;
  }
  if (c->version && c->by_name && c->by_name != c->version) {
    struct finding *f = find_cudnn(206, c->by_name >> 8 == c->version >> 8 ? WARNING : ERROR, c, row);
    f->other = c->by_name;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) {
    const struct part *p = &c->part[k];
    struct finding *f = 0;
    if (p->known && !p->present) f = find_cudnn(204, p->needed ? ERROR : WARNING, c, row);
    else if (p->known && p->version && c->version && p->version != c->version)
      f = find_cudnn(206, p->version >> 8 == c->version >> 8 ? WARNING : ERROR, c, row);
    if (!f) continue;
    f->other = p->version;
    cut(f->file, sizeof f->file, p->file);
    show(f->beside, sizeof f->beside, p->path);
  }
}

CODE int errors_from(int first) {
  int k, n = 0;
  for (k = first; k < g.findings; k++) n += g.finding[k].severity == ERROR;
  return n;
}

CODE uint64_t gpus_of(const unsigned char *row);

CODE struct finding *find_driver(int code, int severity, const unsigned char *row) {
  struct finding *f = find(code, severity);
  const struct driver *d = (struct driver *)at(&g.driver);
  uint64_t here = row ? gpus_of(row) : ~(uint64_t)0;
  struct text t;
  char text[TEXT];
  int k;
  if (d->state == FOUND)
    format(f->driver, sizeof f->driver, "driver< %r>< that supports CUDA %c>< on kernel module %r> in %p", d->user, d->cuda, d->kernel == d->user ? 0 : d->kernel, d->path);
  if (row) {
    f->found = g.note[g.now].cudnn;
    if (u16(row) != ROW_CUDNN) f->min = u32(row + 16), f->other = widen(u32(row + 20));
    if (note_text(&g.note[g.now], row + (code == 303 ? 28 : 24), &text)) show(f->file, sizeof f->file, text);
  }
  t.at = f->beside, t.used = 0, t.size = sizeof f->beside;
  for (k = 0; k < d->gpus; k++)
    if (here >> k & 1) putf(&t, t.used ? "<, %x>" : "<compute capability %x>", (uint32_t)d->cc[k]);
  return f;
}

enum { FITS, OPEN }; /* or the number of a finding */

/* A row's floor. What the driver says it supports decides; its release stands in where that is not known, and the kernel
 * module's only to accept. */
CODE int floor_of(const unsigned char *row, int too_old) {
  const struct driver *d = (struct driver *)at(&g.driver);
  uint32_t cuda = u32(row + 16), release = widen(u32(row + 20));
  if (!cuda && !release) return FITS;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : FITS;
  if (release && d->user) return d->user < release ? too_old : FITS;
  return release && d->kernel >= release ? FITS : OPEN;
}

CODE int is_one(const char *name) { return same(variable(name), "1"); }

/* Whether PTX can be compiled here: what is not found at level 0 is a doubt. */
CODE int find_jit(void) {
  struct driver *d = (struct driver *)at(&g.driver);
  if (!d->jit) d->jit = driver_has(LIBJIT);
  return d->jit > 0 ? FITS : d->jit < 0 ? 309 : OPEN;
}

CODE int served(const struct note *n, const unsigned char *row) {
  uint32_t by = u16(row + 2);
  int old = floor_of(row, 302);
  int sure = old != FITS ? old : floor_of(row + 16, OPEN); /* what older drivers make of its machine code is in no document */
  if ((by & (BY_CUBIN | BY_SOME)) && is_one("CUDA_FORCE_PTX_JIT")) return by & NO_PTX ? 315 : OPEN; /* which PTX it is, no row says */
  if (by & BY_CUBIN) return sure;
  if ((by & BY_PTX) && is_one("CUDA_DISABLE_PTX_JIT")) return 308;
  if (by & BY_PTX) return old != FITS ? old : find_jit();
  if (by & BY_SOME) return n->d[25] == 1 ? 311 : sure == FITS ? FITS : OPEN;
  return by & BY_NONE ? 303 : OPEN;
}

/* The GPUs that a row is about: those of its interval, or those that the cuDNN found has left behind. */
CODE uint64_t gpus_of(const unsigned char *row) {
  const struct driver *d = (const struct driver *)at(&g.driver);
  uint32_t kind = u16(row), from = 1, to = 0xffff;
  uint64_t gpus = 0;
  int k;
  if (kind == ROW_GPU) from = u32(row + 4), to = u32(row + 8);
  if (kind == ROW_CUDNN) to = g.note[g.now].cudnn >= u32(row + 16) && u32(row + 20) ? u32(row + 20) - 1 : 0;
  for (k = 0; k < d->gpus; k++)
    if (d->cc[k] && d->cc[k] >= from && d->cc[k] <= to) gpus |= (uint64_t)1 << k;
  return gpus;
}

/* `asks`: whether it asks anything of driver and GPU, but that the GPU is not too old for cuDNN. */
CODE void judge_driver(int asks) {
  struct note *n = &g.note[g.now];
  const struct driver *d = (const struct driver *)at(&g.driver);
  int required = n->d[21] == GPU_REQUIRED, certain = 1, open, pass, nothing = 0;
  uint64_t all = d->gpus > 0 ? ~(uint64_t)0 >> (64 - d->gpus) : 0, fit = 0, unfit = 0, kernels = 0;
  uint32_t i;
  n->not_unfit = 0;
  if (d->init == 34 && (d->gpus > 0 || required)) nothing = 306; /* one that builds and has no GPU may have it */
  else if (d->init == 803) nothing = 304;
  else if (d->init == 804) nothing = 305;
  else if (d->state == ABSENT || d->init == 34 || d->init == 100 || (d->init <= 0 && d->gpus == 0))
    certain = required, nothing = !required ? 504 : d->state == ABSENT ? 307 : 310;
  else if (d->init > 0 || d->state == UNKNOWN) certain = 0, nothing = 505;
  if (nothing) {
    if (asks) find_driver(nothing, certain ? ERROR : INFO, 0);
    return;
  }
  open = d->gpus < 0 || (d->init < 0 && d->user && d->kernel && d->user != d->kernel) || (d->strict && (!d->user || !d->kernel));
  for (pass = 0; pass < 2; pass++)
    for (i = 0; i < note_rows(n); i++) {
      const unsigned char *row = note_row(n, i);
      uint32_t kind = u16(row);
      uint64_t here = gpus_of(row);
      int is = 313;
      if (kind == ROW_DRIVER) {
        is = floor_of(row, 301);
        if (is == OPEN) open = 1;
        else if (is && pass) find_driver(is, ERROR, row);
      }
      if (kind == ROW_GPU) kernels = all;
      if (!here || (kind != ROW_GPU && kind != ROW_CUDNN)) continue;
      if (kind == ROW_GPU) is = served(n, row);
      if (is == FITS) fit |= here;
      if (is <= OPEN) continue;
      unfit |= here;
      if (pass) find_driver(is, all & ~unfit ? INFO : ERROR, row);
    }
  n->not_unfit = kernels & ~unfit;
  fit &= ~unfit;
  if ((n->not_unfit && !fit) || (d->strict && (unfit || kernels & ~fit))) open = 1;
  if (open && (asks || unfit)) find_driver(505, INFO, 0);
}

/* A shared libcudart of an older minor than built with: by its file's name, which in pip's packages does not say. */
CODE void judge_cudart(const unsigned char *row) {
  char soname[TEXT], path[PATH_MAX];
  uint32_t version;
  struct finding *f;
  if (!note_text(&g.note[g.now], row + 28, &soname) || !*soname || !is_loaded(soname, &path, 0)) return;
  real_name(path, &g.real);
  version = version_in_name(base_name(g.real));
  if (version && version >> 8 >= u32(row + 12) >> 8) return;
  f = version ? find(314, WARNING) : find(507, INFO);
  f->built = u32(row + 12), f->found = version;
  show(f->path, sizeof f->path, path);
}

CODE int action(const struct note *n) {
  if (g.mode == MODE_WARN) return 0;
  return g.mode == MODE_ENFORCE || (n->size > 20 && n->d[20] == 1);
}

/* Whether this guard speaks for the note. A library keeps still unless it is told to end the process; and where it speaks,
 * it speaks for itself, before the program that needs it. */
CODE int speaks(const struct note *n) {
  int library = g.mode == MODE_WARN || g.mode == MODE_ENFORCE || (n->size > 22 && n->d[22] == 1);
  return g.program ? n->own || !library : n->own && library;
}

CODE void judge_note(int level, int late) {
  struct note *n = &g.note[g.now];
  struct cudnn *c = &g.cudnn[g.seen];
  int asks = n->d[21] == GPU_REQUIRED, wants = 0;
  uint32_t i;
  if (n->state == NOTE_DAMAGED) {
    find(503, INFO);
    return;
  }
  if (n->state == NOTE_NEWER) find(502, INFO);
  for (i = 0; i < note_rows(n); i++) {
    const unsigned char *row = note_row(n, i);
    int before = g.findings, k;
    if (u16(row) == ROW_DRIVER) judge_cudart(row);
    if (u16(row) == ROW_DRIVER || u16(row) == ROW_GPU) asks = 1;
    if (u16(row) != ROW_CUDNN) continue;
    look(c, n, row, late);
    judge_cudnn(c, row);
    if (level && (errors_from(before) || (c->state == FOUND && !c->version))) {
      g.findings = before;
      ask_and_look(c, n, row);
      judge_cudnn(c, row);
    } else if (!level) {
      for (k = 0; k < c->parts; k++)
        if (c->part[k].needed && !c->part[k].present) c->part[k].known = 0;
      if (c->state == ABSENT && (u16(row + 2) & REQUIRED)) c->state = UNKNOWN;
      g.findings = before;
      judge_cudnn(c, row);
    }
    if (c->state == INSIDE) c->version = u32(row + 12), c->from = "the build";
    c->note = g.now;
    n->cudnn = c->state == FOUND && c->version >> 16 == u32(row + 12) >> 16 ? c->version : 0;
    wants |= n->cudnn >= u32(row + 16) && u32(row + 20);
    if (g.seen < MAX_SEEN - 1 && (c->state == FOUND || c->state == INSIDE)) c = &g.cudnn[++g.seen];
  }
  if (wants || asks) {
    int before = g.findings;
    if (!g.driver_known++) look_at_driver(n);
    judge_driver(asks);
    if (!g.driver.strict || g.findings == before || g.finding[before].code == 504) return;
    g.findings = before;
    /* A program that can do without a GPU is not kept waiting: it asks by check(). */
    if (level && (late || n->d[21] != GPU_OPTIONAL)) {
      ask_the_driver();
      judge_driver(asks);
    } else if (asks) {
      find_driver(505, INFO, 0);
    }
  }
}

CODE int in_scope(const struct note *n) { return n->own || g.program; }

CODE void judge(int level, int late) {
  int k;
  struct finding *f;
  g.findings = g.seen = g.level = g.driver_known = 0;
  for (g.now = 0; g.now < g.notes; g.now++) judge_note(level && (late ? in_scope(&g.note[g.now]) : speaks(&g.note[g.now])), late);
  for (g.now = 0; g.now < g.notes; g.now++)
    for (k = g.now + 1; k < g.notes; k++) {
      uint64_t one = g.note[g.now].not_unfit, two = g.note[k].not_unfit;
      if (!one || !two || (one & two)) continue;
      f = find_driver(312, WARNING, 0);
      component(&g.note[k], f->file, sizeof f->file);
      return;
    }
}

CODE int cannot_tell(const struct finding *f) { return f->code == 501 || f->code == 504 || f->code == 505; }

CODE int overall(void) {
  int k, v = RIGHT;
  for (k = 0; k < g.findings; k++) {
    if (!in_scope(&g.note[g.finding[k].note])) continue;
    if (g.finding[k].severity == ERROR) return WRONG;
    if (cannot_tell(&g.finding[k])) v = CANNOT_TELL;
  }
  return v;
}
