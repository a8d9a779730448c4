/* Detects the driver and the GPUs: from files, or by calling the real driver in a child. */
#ifndef CUDAGUARD_DETECT_DRIVER_H
#define CUDAGUARD_DETECT_DRIVER_H

#include "detect_cudnn.h"
#include "pci.h"

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

SHIM_FN int is_accessible(struct context *cx, const char *path, int mode) {
  return record_failure(cx, ACCESS(path, mode)) == 0;
}

/* Only checks the permission, because opening the device of a GPU would wake the GPU. */
SHIM_FN int may_open(struct context *cx, const char *path) {
  return is_accessible(cx, path, R_OK | W_OK);
}

#define GPUS "/proc/driver/nvidia/gpus/"
#define NVIDIACTL "/dev/nvidiactl"

/* Concatenates a path of three parts. */
SHIM_FN const char *join_three(char (*to)[PATH_MAX], const char *before, const char *name,
                               const char *after) {
  struct text t = start_text(*to, PATH_MAX);
  put(&t, before);
  put(&t, name);
  put(&t, after);
  return *to;
}

SHIM_FN const char *format_device_path(char (*to)[PATH_MAX], uint32_t minor) {
  struct text t = start_text(*to, PATH_MAX);
  put(&t, "/dev/nvidia");
  put_number(&t, minor);
  return *to;
}

/* Detects the GPU with this name in GPUS and its compute capability. NOT_THERE: this process may
 * not open its device file. */
SHIM_FN enum lookup detect_gpu(struct context *cx, const char *name, uint16_t *cc) {
  static const char mark[] = "Device Minor:";
  const char *s;
  join_three(&cx->found, GPUS, name, "/information");
  if (!read_file_text(cx, cx->found, cx->text, sizeof cx->text)) return UNREADABLE;
  s = find_text(cx->text, mark);
  if (!s) return UNREADABLE;
  for (s += sizeof mark - 1; *s == ' ' || *s == '\t';) s++;
  format_device_path(&cx->found, (uint32_t)parse_number(&s, 9999));
  if (!may_open(cx, cx->found)) return NOT_THERE;
  read_file_text(cx, join_three(&cx->found, "/sys/bus/pci/devices/", name, "/device"), cx->text,
                 sizeof cx->text);
  *cc = get_capability(cx->text);
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
  int n = 0;
  long fd = open_file(cx, GPUS, O_RDONLY | O_DIRECTORY), got = 0, at;
  if (fd < 0) return 0;
  while (n >= 0 && (got = sys3(SYS_getdents64, fd, (long)cx->scratch, sizeof cx->scratch)) > 0)
    for (at = 0; n >= 0 && at < got;) {
      const struct linux_dirent64 *e = (const struct linux_dirent64 *)(cx->scratch + at);
      at += e->size;
      if (e->name[0] == '.') continue;
      switch (n < MAX_GPUS ? detect_gpu(cx, e->name, &d->cc[n]) : UNREADABLE) {
      case IS_THERE:
        n++;
        break;
      case NOT_THERE:
        break;
      default:
        n = -1;
      }
    }
  close_file(fd);
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

SHIM_FN void detect_driver(struct context *cx, const struct note *n) {
  struct driver *d = &cx->driver;
  const struct image of = read_image(&n->file);
  const char *names, *others = "/dev/dxg\n/dev/nvmap"; /* WSL2; Jetson */
  enum lookup is = NOT_THERE;
  int k, there;
  reset_driver(d);
  d->is.state = ABSENT;
  d->is.source = BY_FILES;
  cx->lookup_failed = 0;
  cx->gpu_rows_of = 0;
  there = read_file_text(cx, "/proc/driver/nvidia/version", cx->text, sizeof cx->text) != 0;
  if (there) d->is.kernel = parse_release(cx->text);
  /* No GPU works without /dev/nvidiactl, but alone it proves nothing, because libcuda creates it if
   * it runs as root. */
  if (!there && is_accessible(cx, NVIDIACTL, F_OK))
    for (k = 0; k < 16 && !there; k++)
      there = is_accessible(cx, format_device_path(&cx->found, (uint32_t)k), F_OK);
  while (!there && (others = read_name(others, cx->text)))
    there = is_accessible(cx, cx->text, F_OK);
  if (there || cx->lookup_failed) d->is.state = UNKNOWN;
  if (!there) return;
  d->path = &cx->libcuda;
  names = cx->libcuda_names;
  while (is == NOT_THERE && (names = read_name(names, cx->real)))
    is = is_loaded(cx->real, d->path, 0) ? IS_LOADED
                                         : search_library(cx, cx->real, &of, d->path, 0);
  close_elf(cx);
  if (is == NOT_THERE || is == ASK_LOADER) return;
  d->is.user = parse_release(base_name(resolve_links(cx, *d->path, &cx->found)));
  d->is.state = FOUND;
  if (is_variable_one("CUDA_FORCE_PTX_JIT")) d->is.forces_ptx = FOUND;
  if (is_variable_one("CUDA_DISABLE_PTX_JIT")) d->is.disables_ptx = FOUND;
  detect_gpus(cx, d);
}

/* Detects by files whether PTX can be compiled. libcuda has neither RPATH nor RUNPATH. */
SHIM_FN void detect_compiler(struct context *cx) {
  struct judge_driver *d = &cx->driver.is;
  struct image libcuda;
  memset(&libcuda, 0, sizeof libcuda);
  libcuda.file.name = *cx->driver.path;
  d->compiler_source = BY_FILES;
  join_compiler_path(cx->scratch, sizeof cx->scratch, *cx->driver.path);
  if (get_file_size(cx, cx->scratch) > 0 ||
      search_library(cx, LIBJIT, &libcuda, &cx->scratch, 0) == IS_THERE)
    d->compiler = FOUND;
  close_elf(cx);
}

/* Reads the answers of the driver after cuInit. */
SHIM_FN void read_driver_answers(struct context *cx, struct driver *d) {
  const char *text = get_answer(cx, 'V');
  if (text) d->is.cuda = (uint32_t)parse_number(&text, 999999);
  text = get_answer(cx, 'L');
  if (text) {
    d->path = &cx->probed_libcuda;
    copy_path(d->path, text);
    d->is.user = parse_release(base_name(resolve_links(cx, text, &cx->real)));
  }
  text = get_answer(cx, 'G');
  if (!text) return;
  for (d->is.gpu_count = 0; *text && d->is.gpu_count < MAX_GPUS; text += *text != 0)
    d->cc[d->is.gpu_count++] = (uint16_t)parse_number(&text, 65535);
  if (d->is.compiler) return;
  /* On WSL and Jetson, libcuda finds the PTX compiler itself. */
  d->is.compiler = get_answer(cx, 'J') || !d->is.user ? FOUND : ABSENT;
}

/* Level 1: calls the real driver in a child, once per process. It evaluates all variables, MIG,
 * WSL, Jetson and cuda-compat. */
SHIM_FN void probe_driver(struct context *cx) {
  struct driver *d = &cx->probed;
  const char *text;
  BY_REGISTER(d);
  cx->level = 1;
  if (!cx->driver_asked++) {
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
      if (text) copy_untrusted(d->error, sizeof d->error, text);
      d->is.cannot_load = text != 0;
      text = get_answer(cx, 'I');
      if (text) {
        d->is.state = FOUND;
        d->is.init = (int)parse_number(&text, 99999);
        /* The GPUs exist whatever cuInit returned. */
        if (d->is.init) d->is.gpu_count = cx->driver.is.gpu_count;
        read_driver_answers(cx, d);
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

#endif
