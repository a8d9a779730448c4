/* cuDNN: which one this file has or would get, and its version. */

CODE void real_name(const char *path, char (*real)[PATH_MAX]) {
  char *to = *real;
  int hops;
  keep_path(real, path);
  for (hops = 0; hops < 16 && read_link(to, &g.scratch) > 0; hops++) {
    char *base = g.scratch[0] == '/' ? to : to + (base_name(to) - to);
    cut(base, (size_t)(to + PATH_MAX - base), g.scratch);
  }
}

CODE uint32_t plausible(uint32_t packed) { return packed >> 16 && packed >> 16 < 100 ? packed : 0; }

/* The CUDA release of the cudart inside a part: `mov $13000, %eax` in the function that answers with it. 0 where it is not
 * told. */
CALLED uint32_t made_with(const struct elf *e, const char *answers) {
  static unsigned char code[2048];
  size_t size = *answers ? elf_code(e, answers, 0, &code) : 0, at;
  uint32_t n, found = 0;
  for (at = 0; at + 5 <= size; at++) {
    memcpy(&n, code + at + 1, sizeof n);
    if (code[at] != 0xb8 || n < 7000 || n >= 100000 || n % 10 || n % 1000 >= 100) continue;
    if (found && n != found) return 0;
    found = n;
  }
  return found;
}

/* Major and minor of the library itself, packed, by the names that it looks for, lib.so.9.15.1 and lib.so.9.15: `mov $15, %r9d`
 * before `mov $9, %r8d`. 0 where they are not told. */
CODE uint32_t own_minor(const struct elf *e) {
  static unsigned char code[2048];
  size_t size = elf_code(e, GUARDED_ASKS, 1024, &code), at;
  uint32_t n[2], found = 0;
  for (at = 0; at + 12 <= size; at++) {
    if (!same_bytes(code + at, "\x41\xb9", 2) || !same_bytes(code + at + 6, "\x41\xb8", 2)) continue;
    memcpy(&n[1], code + at + 2, sizeof n[1]);
    memcpy(&n[0], code + at + 8, sizeof n[0]);
    if (!n[0] || n[0] > 99 || n[1] > 255) continue;
    n[0] = n[0] << 16 | n[1] << 8;
    if (found && n[0] != found) return 0;
    found = n[0];
  }
  return found;
}

/* Reads what the file of an inner library says of itself. */
CODE void read_part(struct part *p, const char *path) {
  static struct elf e;
  p->known = p->present = 1;
  p->version = p->cuda = 0;
  cut(p->path, sizeof p->path, path);
  if (p->symbol[0] && elf_open(&e, path) > 0) {
    p->version = plausible(elf_word(&e, p->symbol));
    p->cuda = made_with(&e, p->made_with);
    close_file(e.fd);
  }
  if (p->version) return;
  real_name(path, &g.real);
  p->version = version_in_name(base_name(g.real));
}

/* cuDNN tries its own full version, then the shorter ones, each over the whole search path. */
CALLED int find_part(const struct cudnn *c, struct part *p, const struct image *of, char (*to)[PATH_MAX]) {
  char name[NOTE_TEXT + 16];
  const char *ending = find_text(p->file, ".so");
  int numbers;
  for (numbers = 3; numbers >= 2 && c->by_name && ending; numbers--) {
    struct text t = text_in(name, sizeof name);
    put(&t, p->file);
    cut_back(&t, (size_t)(ending - p->file));
    put(&t, ".so.");
    if (numbers == 3) put_version(&t, c->by_name);
    else put_capability(&t, c->by_name >> 8); /* 9.1 */
    if (search(name, of, to, 0) == 1) return 1;
  }
  return search(p->file, of, to, 0);
}

/* Fills in what the files of the cuDNN at c->path say. */
CODE void read_cudnn(struct cudnn *c, const struct note *n) {
  static struct elf e;
  struct image of;
  static char path[PATH_MAX], own[NOTE_TEXT];
  uint32_t i;
  c->state = FOUND;
  c->parts = 0;
  c->by_code = 0;
  real_name(c->path, &path);
  c->by_name = version_in_name(base_name(path));
  memset(&of, 0, sizeof of);
  of.name = c->path;
  if (elf_open(&e, c->path) > 0) {
    /* Found as libcudnn.so, or by a link that says another major than the file. */
    if (elf_string(&e, DT_SONAME, own, sizeof own) && major_in_name(own)) cut(c->soname, NOTE_TEXT, own);
    of.rpath = elf_string(&e, DT_RPATH, g.rpath, sizeof g.rpath);
    of.runpath = elf_string(&e, DT_RUNPATH, g.runpath, sizeof g.runpath);
    c->by_code = own_minor(&e);
    close_file(e.fd);
  }
  for (i = 0; i < n->head.rows && c->parts < MAX_INNER; i++) {
    const union row row = note_row(n, i);
    struct part *p = &c->part[c->parts];
    const char *suffix;
    memset(p, 0, sizeof *p);
    if (row.kind != ROW_PART || !note_text(n, row.inner.file, &p->file) || !note_text(n, row.inner.symbol, &p->symbol)) continue;
    suffix = find_text(p->file, ".so"); /* the parts of another major are not this one's */
    if (suffix && find_text(c->soname, ".so.") && !same(suffix, find_text(c->soname, ".so"))) continue;
    note_text(n, row.inner.made_with, &p->made_with);
    p->needed = row.inner.needed & 1;
    if (is_loaded(p->file, &path, 0) || find_part(c, p, &of, &path)) read_part(p, path);
    else p->known = !shut;
    c->parts++;
  }
}

CODE void settle_version(struct cudnn *c) {
  int k;
  c->version = c->cuda = 0;
  c->by = 0;
  for (k = c->parts; k-- > 0;)
    if (c->part[k].cuda) c->cuda = c->part[k].cuda;
  for (k = 0; k < c->parts && !c->version; k++)
    if (c->part[k].known && c->part[k].version) c->version = c->part[k].version, c->by = c->part[k].path, c->from = "its inner library";
  if (!c->version && c->by_name) c->version = c->by_name, c->from = "its file's name";
  if (!c->version && c->answered) c->version = (uint32_t)c->answered, c->from = "its own answer";
}

/* Level 0: which cuDNN this file has, or would get. */
CODE void look(struct cudnn *c, const struct note *n, const struct library_row *row, int late) {
  uint32_t flags = row->flags;
  const char *needed = image_needs(&n->image, GUARDED_FILE), *names = c->names;
  int found = 0, is = 0, broken = 0;
  shut = 0;
  memset(c, 0, sizeof *c); /* UNKNOWN */
  note_text(n, row->soname, &c->soname);
  if (!note_text(n, row->names, &c->names) || !c->names[0]) cut(c->names, NOTE_TEXT, c->soname);
  if ((flags & LIBRARY_STATIC) && !(flags & LIBRARY_LINKED)) {
    c->state = INSIDE;
    return;
  }
  if (needed && is_loaded(needed, &c->path, 0)) {
    found = 1;
    cut(c->soname, NOTE_TEXT, needed);
  } else {
    /* As dlopen would for each: what is loaded by that name, else what the search finds; where it cannot be opened, the next. */
    while (!found && is != 1 && (names = next_name(names, c->soname))) {
      found = is_loaded(c->soname, &c->path, 0);
      if (!found && (flags & LIBRARY_DLOPENED)) is = search(c->soname, &n->image, &c->path, &c->why), broken |= is < 0;
    }
  }
  if (found) {
    if (search(c->soname, &n->image, &g.scratch, &c->why) != 1 || !same(g.scratch, c->path))
      cut(c->why, WHY, "another library, LD_PRELOAD or its full path");
  } else if (flags & LIBRARY_DLOPENED) {
    if (is == 1) found = 1;
    else if (broken) return;
    else if (!shut) c->state = ABSENT;
    /* Once the program has run, the only cuDNN in the process is the one it took, where its own is not to be had. */
    if (!found && late && is_loaded(0, &c->path, &c->soname)) {
      found = 1;
      cut(c->why, WHY, "the program itself");
    }
  }
  if (found) {
    read_cudnn(c, n);
    settle_version(c);
  }
}

/* Level 1 over what level 0 found: the files that the real cuDNN really takes, and its own answer. */
CODE void ask_and_look(struct cudnn *c, const struct note *n, const struct library_row *row) {
  const char *said;
  static char path[PATH_MAX], name[PATH_MAX];
  int k, outcome, loaded = is_loaded(c->soname, &path, 0);
  keep_path(&name, !loaded && (n->own || c->state == ABSENT) ? c->names : c->path);
  outcome = ask(name, c);
  g.level = 1;
  said = answer('L');
  if (c->state == ABSENT) {
    if (!answer('N')) c->state = UNKNOWN;
    if (!said) return;
  }
  if (answer('N') && !loaded && (row->flags & LIBRARY_DLOPENED)) {
    c->state = ABSENT; /* it cannot be loaded, so the program will go without it */
    return;
  }
  if (said && !same(said, c->path)) {
    keep_path(&c->path, said);
    cut(c->why, WHY, "the loader");
    c->state = FOUND;
    read_cudnn(c, n);
  }
  if ((said = answer('V'))) {
    long v = number(&said, 999999999);
    c->answered = v > 0 ? (int)version_of_answer((uint64_t)v) : 0;
  }
  for (k = 0; k < c->parts; k++) {
    struct part *p = &c->part[k];
    if ((said = answer((char)('0' + k)))) {
      if (!p->present || !starts(said, p->path)) read_part(p, said);
    } else if (!p->present && p->needed && (c->answered || outcome != DIED)) {
      p->known = 0; /* it answers without that library, or there was nobody to ask */
    }
  }
  settle_version(c);
}
