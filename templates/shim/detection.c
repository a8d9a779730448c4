/* Detects the cuDNN that this file has loaded or would load, and its version. */
#include "shim.h"

/* Returns the name of a file after all its links are resolved, or that of the path if this fails.
 * If the path is a link, `real` receives the path of the file. It may contain `path`. */
SHIM_FN const char *resolve_name(const char *path, char (*real)[PATH_MAX]) {
  char link[32];
  struct text t = start_text(link, sizeof link);
  int is_resolved;
  long fd;
  if (READLINK(path, link, sizeof link) < 0) return base_name(path);
  fd = sys4(SYS_openat, AT_FDCWD, (long)path, O_PATH | O_CLOEXEC, 0);
  put(&t, "/proc/self/fd/");
  put_number(&t, (uint32_t)fd);
  is_resolved = read_link(link, real);
  close_file(fd);
  return base_name(is_resolved ? *real : path);
}

/* Parses the version in libcudnn.so.9.10.2 or libcudart.so.12.4.127. Returns 0 if the name has
 * fewer than three numbers. */
SHIM_FN uint32_t parse_version_in_name(const char *name) {
  uint32_t n[3];
  return parse_numbers(name, 0, n) < 3 || (n[1] | n[2]) > 255 ? 0 : n[0] << 16 | n[1] << 8 | n[2];
}

SHIM_FN uint32_t check_version(uint32_t packed) {
  return packed >> 16 && packed >> 16 < 100 ? packed : 0;
}

/* Returns the release of the cudart in a sublibrary, from the code of its getter, or 0. */
SHIM_FN uint32_t read_cuda_version(const struct elf *e, const char *getter) {
  uint32_t n = *getter ? read_returned_constant(e, getter) : 0;
  return n < 7000 || n >= 100000 || n % 10 || n % 1000 >= 100 ? 0 : n;
}

/* Reads the versions from the file of a sublibrary. */
SHIM_FN void read_part(struct part *p, const struct note *n, struct library_file *f) {
  const union row row = read_note_row(n, p->is.row);
  char symbol[NOTE_TEXT], getter[NOTE_TEXT];
  p->is.state = FOUND;
  p->is.version = p->cuda = 0;
  copy_text(p->path, sizeof p->path, f->path);
  if (f->elf.is_open && read_note_text(n, row.inner.symbol, &symbol) && *symbol) {
    p->is.version = check_version(read_elf_word(&f->elf, symbol));
    if (read_note_text(n, row.inner.made_with, &getter))
      p->cuda = read_cuda_version(&f->elf, getter);
  }
  if (!p->is.version) p->is.version = parse_version_in_name(resolve_name(f->path, &f->path));
}

/* Finds a sublibrary as cuDNN does: first with the full version in the name, then with shorter
 * ones, each in all directories of the search path. */
SHIM_FN enum lookup find_part(struct context *cx, const struct cudnn *c, struct part *p,
                              const struct image *of, struct library_file *f) {
  char name[NOTE_TEXT + 16];
  const char *ending = find_text(p->file, ".so");
  enum lookup is = NOT_THERE;
  int numbers;
  for (numbers = 3; numbers >= 2 && c->is.loader && ending && is == NOT_THERE; numbers--) {
    struct text t = start_text(name, sizeof name);
    put(&t, p->file);
    shorten_text(&t, (size_t)(ending - p->file));
    put(&t, ".so.");
    if (numbers == 3) put_version(&t, c->is.loader);
    else put_capability(&t, c->is.loader >> 8); /* 9.1 */
    is = search_library(cx, name, of, &f->path, &f->elf, 0);
  }
  return is == NOT_THERE ? search_library(cx, p->file, of, &f->path, &f->elf, 0) : is;
}

/* Detects a sublibrary. */
SHIM_FN void detect_part(struct context *cx, struct cudnn *c, struct part *p, const struct note *n,
                         const struct image *of, struct library_file *f) {
  enum lookup is = IS_LOADED;
  if (is_loaded(p->file, &f->path)) open_elf(cx, &f->elf, f->path);
  else is = find_part(cx, c, p, of, f);
  if (is == IS_THERE || is == IS_LOADED) read_part(p, n, f);
  else p->is.state = is == ASK_LOADER || cx->lookup_failed ? UNKNOWN : ABSENT;
  if (is == ASK_LOADER) c->is.is_guess = 1;
}

/* Reads the files of the cuDNN at c->path, which may be open already. */
SHIM_FN void read_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                        struct library_file *f) {
  struct elf *e = &f->elf;
  struct image of;
  char own[NOTE_TEXT], *runpath = cx->shared.note.runpath;
  uint32_t i;
  c->is.state = FOUND;
  c->parts = 0;
  c->is.loader = parse_version_in_name(resolve_name(c->path, &f->path));
  memset(&of, 0, sizeof of);
  of.file.name = c->path;
  if (e->is_open || open_elf(cx, e, c->path) == IS_THERE) {
    /* The name may be libcudnn.so, or a link with another major than the file. */
    if (read_elf_string(e, DT_SONAME, own, sizeof own) && parse_major_in_name(own))
      copy_text(c->soname, NOTE_TEXT, own);
    of.runpath = read_elf_string(e, DT_RUNPATH, runpath, sizeof cx->shared.note.runpath);
    if (!of.runpath)
      of.rpath = read_elf_string(e, DT_RPATH, runpath, sizeof cx->shared.note.runpath);
  }
  for (i = 0; i < n->head.rows && c->parts < MAX_INNER; i++) {
    const union row row = read_note_row(n, i);
    struct part *p = &c->part[c->parts];
    const char *suffix;
    memset(p, 0, sizeof *p);
    if (row.kind != ROW_PART || !read_note_text(n, row.inner.file, &p->file)) continue;
    suffix = find_text(p->file, ".so"); /* skip sublibraries of another major */
    if (suffix && find_text(c->soname, ".so.") &&
        !texts_are_equal(suffix, find_text(c->soname, ".so")))
      continue;
    p->is.row = i;
    detect_part(cx, c, p, n, &of, f);
    c->parts++;
  }
}

SHIM_FN void settle_version(struct cudnn *c) {
  int k;
  c->is.version = c->is.made_with = 0;
  c->by = 0;
  for (k = c->parts; k-- > 0;)
    if (c->part[k].cuda) c->is.made_with = c->part[k].cuda;
  for (k = 0; k < c->parts && !c->is.version; k++)
    if (c->part[k].is.version) {
      c->is.version = c->part[k].is.version;
      c->by = c->part[k].path;
      c->from = "its inner library";
    }
  if (!c->is.version && c->is.loader) {
    c->is.version = c->is.loader;
    c->from = "its file's name";
  }
  if (!c->answered || c->is.version == (uint32_t)c->answered) return;
  /* If only the dynamic linker can find the files, for instance because an auditing library selects
   * them, the answer of the library decides. */
  if (c->is.is_guess) {
    for (k = 0; k < c->parts; k++) {
      c->part[k].is.state = UNKNOWN;
      c->part[k].is.version = 0;
    }
    c->is.version = 0;
    c->by = 0;
  }
  if (!c->is.version) {
    c->is.version = (uint32_t)c->answered;
    c->from = "cudnnGetVersion";
  }
}

/* Returns whether dlopen selects a loaded library of this name. musl knows the name of a library
 * that was loaded by its path only if its own search finds the same file. */
SHIM_FN int is_loaded_for_dlopen(const char *name, char (*path)[PATH_MAX]) {
#ifdef __GLIBC__
  return is_loaded(name, path);
#else
  (void)name, (void)path;
  return 0;
#endif
}

/* Searches cuDNN as dlopen does, by each of its names: a loaded library of that name first, then
 * the search path. */
SHIM_FN enum lookup search_cudnn(struct context *cx, struct cudnn *c, const struct image *of,
                                 int opens, struct elf *e) {
  const char *names = c->names;
  enum lookup is = NOT_THERE;
  while (is == NOT_THERE && (names = read_name(names, c->soname))) {
    if (is_loaded_for_dlopen(c->soname, &c->path)) return IS_LOADED;
    if (opens) is = search_library(cx, c->soname, of, &c->path, e, &c->why);
  }
  return is;
}

/* Level 0: detects the cuDNN that this file has loaded or would load. */
SHIM_FN void detect_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                          const struct library_row *row, int late, struct library_file *f) {
  const int opens = (row->flags & LIBRARY_DLOPENED) != 0;
  const struct image of = read_image(&n->file);
  const char *needed = find_needed(&of, CUDNN_FILE);
  enum lookup is;
  cx->lookup_failed = 0;
  reset_cudnn(c);
  c->is.source = BY_FILES;
  read_note_text(n, row->soname, &c->soname);
  if (!read_note_text(n, row->names, &c->names) || !c->names[0])
    copy_text(c->names, NOTE_TEXT, c->soname);
  if (needed && is_loaded(needed, &c->path)) {
    is = IS_LOADED;
    copy_text(c->soname, NOTE_TEXT, needed);
  } else {
    is = search_cudnn(cx, c, &of, opens, &f->elf);
  }
  if (is == NOT_THERE && opens && !cx->lookup_failed) c->is.state = ABSENT;
  /* After the program has started: if none of its names is found, the only loaded cuDNN is the one
   * that the program uses. */
  if (is == NOT_THERE && opens && late && is_loaded(0, &c->path)) {
    is = IS_THERE;
    copy_text(c->soname, NOTE_TEXT, base_name(c->path));
    copy_text(c->why, WHY, "the program itself");
  }
  if (is == IS_LOADED &&
      (search_library(cx, c->soname, &of, &f->path, &f->elf, &c->why) != IS_THERE ||
       !texts_are_equal(f->path, c->path))) {
    copy_text(c->why, WHY, "another library, LD_PRELOAD or its full path");
    close_elf(&f->elf);
  }
  c->is.is_guess = is == ASK_LOADER || (is == NOT_THERE && cx->lookup_failed);
  if (is != IS_LOADED && is != IS_THERE) return;
  read_cudnn(cx, c, n, f);
  settle_version(c);
}

/* Corrects the sublibraries by the answers of the child, which ended with this outcome. */
SHIM_FN void correct_parts(struct context *cx, struct cudnn *c, const struct note *n, int outcome,
                           struct library_file *f) {
  int k;
  for (k = 0; k < c->parts; k++) {
    struct part *p = &c->part[k];
    const char *text = get_answer(cx, (char)('0' + k));
    if (text) {
      if (p->is.state == FOUND && starts_with(text, p->path)) continue;
      copy_path(&f->path, text);
      open_elf(cx, &f->elf, text);
      read_part(p, n, f);
    } else if (p->is.state == ABSENT && (read_note_row(n, p->is.row).inner.needed & 1) &&
               (c->answered || outcome != DIED)) {
      p->is.state = UNKNOWN; /* cuDNN works without this library, or the probe failed */
    }
  }
}

/* Level 1: corrects the result of level 0 with the files that the real cuDNN loads and the version
 * that it returns. */
SHIM_FN void probe_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                         const struct library_row *row, struct library_file *f) {
  const char *text;
  const int opens = (row->flags & LIBRARY_DLOPENED) != 0;
  const int loaded = opens ? is_loaded_for_dlopen(c->soname, 0) : is_loaded(c->soname, 0);
  int outcome;
  cx->level = 1;
  c->is.source = DETECTED;
  /* The child searches in the context of this file. */
  if (!loaded && !n->own && c->is.state == UNKNOWN) return;
  outcome = ask_child(cx, !loaded && (n->own || c->is.state == ABSENT) ? c->names : c->path, c);
  text = get_answer(cx, 'L');
  if (c->is.state == ABSENT) {
    if (!get_answer(cx, 'N')) c->is.state = UNKNOWN;
    if (!text) return;
  }
  if (!loaded && opens && (get_answer(cx, 'N') || get_answer(cx, 'T'))) {
    /* dlopen fails in the program, too. What the program does if the file is broken is unknown. */
    c->is.state = get_answer(cx, 'N') ? ABSENT : UNKNOWN;
    return;
  }
  if (text && !texts_are_equal(text, c->path)) {
    copy_path(&c->path, text);
    copy_text(c->why, WHY, "the loader");
    read_cudnn(cx, c, n, f);
  }
  if ((text = get_answer(cx, 'V'))) {
    const long v = parse_number(&text, 9999999);
    c->answered = v < 0 ? 0 : (int)check_version(decode_version((uint64_t)v));
  }
  correct_parts(cx, c, n, outcome, f);
  settle_version(c);
}

/* Detects the driver and the GPUs: from files, or by calling the real driver in a child. */

/* Ranges of PCI device ids of NVIDIA's GPUs and their compute capability. They only serve to accept
 * a GPU; the compute capability of any other id is unknown. */
static const struct {
  uint16_t first, last, cc;
} pci[] = {
#define RANGE(first, last, cc) {first, last, cc},
    PCI_RANGES(RANGE)
#undef RANGE
};

/* Returns the compute capability of an id in the form of /sys/bus/pci, 0x2330, or 0 if it is
 * unknown. */
SHIM_FN uint16_t get_capability(const char *id) {
  uint32_t n = 0;
  size_t i;
  if (!starts_with(id, "0x")) return 0;
  for (id += 2; *id > ' ' && n <= 0xffff; id++)
    n = n << 4 | (uint32_t)(*id > '9' ? *id - 'a' + 10 : *id - '0');
  for (i = 0; i < sizeof pci / sizeof pci[0]; i++)
    if (n >= pci[i].first && n <= pci[i].last) return pci[i].cc;
  return 0;
}

/* Parses the first `535.261.03` or `535.261` in a string. Ignores branches below 100, which no
 * supported CUDA runs on. */
SHIM_FN uint32_t parse_release(const char *s) {
  uint32_t n[3];
  return parse_numbers(s, 100, n) ? n[0] << 20 | n[1] << 8 | (n[2] & 0xff) : 0;
}

/* Sets the release of libcuda by the name of its file. */
SHIM_FN void set_release(struct driver *d, const char *name) {
  d->is.user = parse_release(name);
  d->is.branch = d->is.user >> 20;
}

SHIM_FN int is_accessible(struct context *cx, const char *path, int mode) {
  return record_failure(cx, ACCESS(path, mode)) == 0;
}

/* Only checks the permission, because opening the device of a GPU would wake the GPU. */
SHIM_FN int may_open(struct context *cx, const char *path) {
  return is_accessible(cx, path, R_OK | W_OK);
}

#define NVIDIACTL "/dev/nvidiactl"

enum { DEVICE_PATH = 320 }; /* room for the name of a directory entry */

/* Open directories with an entry for each GPU. A path below them takes half the time to resolve. */
struct gpu_dirs {
  long nvidia, pci;
};

/* Reads a file in the directory of a GPU below `dir`. */
SHIM_FN void read_gpu_text(struct context *cx, long dir, const char *gpu, const char *file,
                           char (*text)[1024]) {
  char path[DEVICE_PATH];
  struct text t = start_text(path, sizeof path);
  put(&t, gpu);
  put(&t, file);
  read_text_at(cx, dir, path, *text, sizeof *text);
}

SHIM_FN const char *format_device_path(char (*to)[DEVICE_PATH], uint32_t minor) {
  struct text t = start_text(*to, sizeof *to);
  put(&t, "/dev/nvidia");
  put_number(&t, minor);
  return *to;
}

/* Detects the GPU with this name and its compute capability. NOT_THERE: this process may not open
 * its device file. */
SHIM_FN enum lookup detect_gpu(struct context *cx, const struct gpu_dirs *dirs, const char *name,
                               uint32_t *cc) {
  static const char mark[] = "Device Minor:";
  char path[DEVICE_PATH], text[1024];
  const char *s;
  read_gpu_text(cx, dirs->nvidia, name, "/information", &text);
  s = find_text(text, mark);
  if (!s) return UNREADABLE;
  for (s += sizeof mark - 1; *s == ' ' || *s == '\t';) s++;
  if (!may_open(cx, format_device_path(&path, (uint32_t)parse_number(&s, 9999)))) return NOT_THERE;
  *cc = 0;
  if (dirs->pci < 0) return IS_THERE;
  read_gpu_text(cx, dirs->pci, name, "/device", &text);
  *cc = get_capability(text);
  return IS_THERE;
}

/* Detects the GPUs of the kernel module that this process may open. Returns their number, or -1 if
 * one is unreadable. */
SHIM_FN int list_gpus(struct context *cx, struct driver *d) {
  struct linux_dirent64 {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[1];
  };
  char entries[1024] __attribute__((aligned(8)));
  struct gpu_dirs dirs;
  long got, at;
  int n = 0;
  dirs.nvidia = open_file(cx, "/proc/driver/nvidia/gpus", O_RDONLY | O_DIRECTORY);
  dirs.pci = open_file(cx, "/sys/bus/pci/devices", O_RDONLY | O_DIRECTORY);
  while (n >= 0 && (got = sys3(SYS_getdents64, dirs.nvidia, (long)entries, sizeof entries)) > 0)
    for (at = 0; n >= 0 && at < got;) {
      const struct linux_dirent64 *e = (const struct linux_dirent64 *)(entries + at);
      enum lookup is = NOT_THERE;
      at += e->size;
      if (e->name[0] != '.')
        is = n < MAX_GPUS ? detect_gpu(cx, &dirs, e->name, &d->gpu[n].cc) : UNREADABLE;
      n = is == UNREADABLE ? -1 : n + (is == IS_THERE);
    }
  close_file(dirs.nvidia);
  close_file(dirs.pci);
  return n;
}

/* Returns whether a value of CUDA_VISIBLE_DEVICES selects at least one GPU by index, without
 * repetition. An index without a GPU ends the list. Returns 0 for UUIDs, MIG instances and repeated
 * indices, which only the driver can evaluate. */
SHIM_FN int names_some_gpus(const char *list, int gpus) {
  uint64_t named = 0;
  for (;;) {
    const int is_negative = *list == '-' && list[1] > '0' && list[1] <= '9';
    const long n = is_negative ? gpus : parse_number(&list, 999999999);
    if (n >= gpus) return named != 0;
    if (n < 0 || (named >> n & 1)) return 0;
    named |= (uint64_t)1 << n;
    if (!*list) return 1;
    if (*list++ != ',') return 0;
  }
}

/* Detects the GPUs that this process sees. They are unknown if no GPU can be opened, or not the
 * devices that all GPUs share: the driver creates the files if it runs as root, otherwise cuInit
 * returns 100 without nvidiactl and 999 without nvidia-uvm (measured on an H200). */
SHIM_FN void detect_gpus(struct context *cx, struct driver *d) {
  const char *list = find_variable("CUDA_VISIBLE_DEVICES");
  int n;
  if (list && (!*list || texts_are_equal(list, "-1"))) {
    d->is.gpu_count = 0;
    return;
  }
  n = list_gpus(cx, d);
  d->chosen = list != 0;
  if (n > 0 && may_open(cx, NVIDIACTL) && may_open(cx, "/dev/nvidia-uvm") &&
      (!list || names_some_gpus(list, n)))
    d->is.gpu_count = n;
}

SHIM_FN void detect_driver(struct context *cx, const struct note *n, struct library_file *f) {
  struct driver *d = &cx->driver;
  const struct image of = read_image(&n->file);
  char text[NOTE_TEXT], path[DEVICE_PATH];
  const char *names, *others = "/dev/dxg\n/dev/nvmap"; /* WSL2; Jetson */
  enum lookup is = NOT_THERE;
  int k, there;
  reset_driver(d);
  d->is.state = ABSENT;
  d->is.source = BY_FILES;
  cx->lookup_failed = 0;
  cx->gpu_rows_of = 0;
  there = read_file_text(cx, "/proc/driver/nvidia/version", text, sizeof text) != 0;
  if (there) d->is.kernel = parse_release(text);
  /* No GPU works without /dev/nvidiactl, but alone it proves nothing, because libcuda creates it if
   * it runs as root. */
  if (!there && is_accessible(cx, NVIDIACTL, F_OK))
    for (k = 0; k < 16 && !there; k++)
      there = is_accessible(cx, format_device_path(&path, (uint32_t)k), F_OK);
  while (!there && (others = read_name(others, text))) there = is_accessible(cx, text, F_OK);
  if (there || cx->lookup_failed) d->is.state = UNKNOWN;
  if (!there) return;
  d->path = &cx->libcuda;
  names = cx->libcuda_names;
  while (is == NOT_THERE && (names = read_name(names, text)))
    is = is_loaded(text, d->path) ? IS_LOADED : search_library(cx, text, &of, d->path, &f->elf, 0);
  if (is == NOT_THERE || is == ASK_LOADER) return;
  set_release(d, resolve_name(*d->path, &f->path));
  d->is.state = FOUND;
  if (is_variable_one("CUDA_FORCE_PTX_JIT")) d->is.forces_ptx = FOUND;
  if (is_variable_one("CUDA_DISABLE_PTX_JIT")) d->is.disables_ptx = FOUND;
  detect_gpus(cx, d);
}

/* Detects by files whether PTX can be compiled. libcuda has neither RPATH nor RUNPATH. */
SHIM_FN void detect_compiler(struct context *cx, struct library_file *f) {
  struct judge_driver *d = &cx->driver.is;
  struct image libcuda;
  memset(&libcuda, 0, sizeof libcuda);
  libcuda.file.name = *cx->driver.path;
  d->compiler_source = BY_FILES;
  if (get_file_size(cx, join_compiler_path(&f->path, *cx->driver.path)) > 0 ||
      search_library(cx, LIBJIT, &libcuda, &f->path, &f->elf, 0) == IS_THERE)
    d->compiler = FOUND;
}

/* Reads the answers of the driver after cuInit. */
SHIM_FN void read_driver_answers(struct context *cx, struct driver *d, struct library_file *f) {
  const char *text = get_answer(cx, 'V');
  if (text) d->is.cuda = (uint32_t)parse_number(&text, 999999);
  text = get_answer(cx, 'L');
  if (text) {
    d->path = &cx->probed_libcuda;
    copy_path(d->path, text);
    set_release(d, resolve_name(text, &f->path));
  }
  text = get_answer(cx, 'G');
  if (!text) return;
  for (d->is.gpu_count = 0; *text && d->is.gpu_count < MAX_GPUS; text += *text != 0)
    d->gpu[d->is.gpu_count++].cc = (uint32_t)parse_number(&text, 65535);
  if (d->is.compiler) return;
  /* On WSL and Jetson, libcuda finds the PTX compiler itself. */
  d->is.compiler = get_answer(cx, 'J') || !d->is.user ? FOUND : ABSENT;
}

/* Level 1: calls the real driver in a child, once per process. It evaluates all variables, MIG,
 * WSL, Jetson and cuda-compat. */
SHIM_FN void probe_driver(struct context *cx, struct library_file *f) {
  struct driver *d = &cx->probed;
  const char *text;
  cx->level = 1;
  if (d->is.source != DETECTED) {
    *d = cx->driver;
    if (d->is.state != FOUND) {
      d->path = &cx->probed_libcuda;
      **d->path = 0;
    }
    d->is.source = DETECTED;
    d->chosen = 0;
    d->is.state = UNKNOWN;
    d->is.init = d->is.gpu_count = -1;
    if (ask_child(cx, cx->libcuda_names, 0) == ANSWERED) {
      if (get_answer(cx, 'N')) d->is.state = ABSENT;
      text = get_answer(cx, 'T');
      if (text) copy_text(d->error, sizeof d->error, text);
      d->is.cannot_load = text != 0;
      text = get_answer(cx, 'I');
      if (text) {
        d->is.state = FOUND;
        d->is.init = (int)parse_number(&text, 99999);
        /* The GPUs exist whatever cuInit returned. */
        if (d->is.init) d->is.gpu_count = cx->driver.is.gpu_count;
        read_driver_answers(cx, d, f);
      }
    } else if (!find_interpreter(&cx->first)) {
      /* dlopen may fail in a static program, also for cudart. Only the files show the driver. */
      *d = cx->driver;
      d->is.source = DETECTED;
    }
  }
  cx->driver = *d;
  cx->gpu_rows_of = 0;
}

/* Detects the facts that the judge needs. */

/* Detects the version of the shared cudart of a note, by the name of its file. */
SHIM_FN void detect_cudart(struct context *cx, const struct note *n, char (*path)[PATH_MAX]) {
  struct judge_call *call = &cx->call;
  char soname[NOTE_TEXT];
  call->cudart.source = BY_FILES;
  read_row_text(cx, n, get_row(cx, n, call->cudart_row).driver.cudart, &soname);
  if (!is_loaded(soname, path)) return;
  call->cudart_soname = store_untrusted_text(cx, soname);
  call->cudart_path = store_untrusted_text(cx, *path);
  call->cudart.state = FOUND;
  call->cudart.version = parse_version_in_name(resolve_name(*path, path));
}

/* Returns whether a debugger or tracer controls this process. A child would inherit its
 * breakpoints, which would end the child with SIGTRAP. */
SHIM_FN int is_traced(struct context *cx) {
  char text[1024];
  return read_file_text(cx, "/proc/self/status", text, sizeof text) &&
         !find_text(text, "TracerPid:\t0");
}

/* Replaces the answers of a child in a traced process: what only a child can determine is unknown.
 */
SHIM_FN void skip_probe(struct context *cx, struct cudnn *c) {
  cx->is_probe_skipped = 1;
  if (c) {
    c->is.source = DETECTED;
    c->is.state = UNKNOWN;
  } else {
    reset_driver(&cx->driver);
    cx->driver.is.source = DETECTED;
  }
}

/* Detects the first group of facts among those that the judge needs. */
SHIM_API void detect_needed(struct context *cx, struct note *n, uint32_t needs, int late) {
  struct cudnn *c = &cx->shared.note.cudnn;
  struct library_file *f = &cx->file;
  union row row;
  memset(&row, 0, sizeof row);
  if (needs & (NEED_CUDNN | NEED_CUDNN_ANSWER)) row = read_note_row(n, cx->call.result.library);
  if (needs & NEED_CUDNN) {
    detect_cudnn(cx, c, n, &row.cudnn, late, f);
  } else if (needs & NEED_CUDNN_ANSWER) {
    if (is_traced(cx)) skip_probe(cx, c);
    else probe_cudnn(cx, c, n, &row.cudnn, f);
  } else if (needs & NEED_CUDART) {
    detect_cudart(cx, n, &f->path);
  } else if (needs & NEED_DRIVER) {
    detect_driver(cx, n, f);
  } else if (needs & NEED_COMPILER) {
    detect_compiler(cx, f);
  } else if (is_traced(cx)) {
    skip_probe(cx, 0);
  } else {
    probe_driver(cx, f);
  }
  close_elf(&f->elf);
}
