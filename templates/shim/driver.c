/* Driver and GPU: what can be seen of them without asking the driver. */

/* PCI device ids of NVIDIA's GPUs, first and last, and their compute capability. Used to accept only: any other id is a
 * doubt. */
static const struct {
  uint16_t first, last, cc;
} pci[] = {
#define RANGE(first, last, cc) {first, last, cc},
    PCI_RANGES(RANGE)
#undef RANGE
};

/* Of an id as /sys/bus/pci has it, 0x2330; 0 where it is not known. */
CODE uint16_t cc_of(const char *id) {
  uint32_t n = 0;
  size_t i;
  if (!starts(id, "0x")) return 0;
  for (id += 2; *id > ' ' && n <= 0xffff; id++) n = n << 4 | (uint32_t)(*id > '9' ? *id - 'a' + 10 : *id - '0');
  for (i = 0; i < sizeof pci / sizeof pci[0]; i++)
    if (n >= pci[i].first && n <= pci[i].last) return pci[i].cc;
  return 0;
}

/* A release as the rows pack it: its numbers may be larger in what is found, 535.261.03, and are kept wider. */
CODE uint32_t widen(uint32_t packed) { return packed >> 16 << 20 | (packed & 0xffff); }

/* The first `535.261.03` or `535.261` of a text. No driver of a branch below 100 has what CUDA needs today. */
CODE uint32_t release_in(const char *s) {
  uint32_t n[3];
  return numbers_in(s, 100, n) ? n[0] << 20 | n[1] << 8 | (n[2] & 0xff) : 0;
}

CODE int is_there(const char *path, int mode) { return looked(ACCESS(path, mode)) == 0; }

#define GPUS "/proc/driver/nvidia/gpus/"

/* A path of three pieces. */
CODE const char *path_of(char (*to)[PATH_MAX], const char *before, const char *name, const char *after) {
  struct text t = text_in(*to, PATH_MAX);
  put(&t, before);
  put(&t, name);
  put(&t, after);
  return *to;
}

CODE const char *device_path(char (*to)[PATH_MAX], uint32_t minor) {
  struct text t = text_in(*to, PATH_MAX);
  put(&t, "/dev/nvidia");
  put_number(&t, minor);
  return *to;
}

/* The GPU of this name in GPUS, as far as this process may open it: 1 with its compute capability, 0 where it may not, -1 where
 * it cannot be told. Opening one would wake it: the right to do so must be enough. */
CODE int look_at_gpu(const char *name, uint16_t *cc) {
  static const char mark[] = "Device Minor:";
  static char path[PATH_MAX], text[1024];
  const char *s;
  if (!read_text(path_of(&path, GPUS, name, "/information"), text, sizeof text) || !(s = find_text(text, mark))) return -1;
  for (s += sizeof mark - 1; *s == ' ' || *s == '\t';) s++;
  if (!is_there(device_path(&path, (uint32_t)number(&s, 9999)), R_OK | W_OK)) return 0;
  read_text(path_of(&path, "/sys/bus/pci/devices/", name, "/device"), text, sizeof text);
  *cc = cc_of(text);
  return 1;
}

/* The GPUs that the kernel module drives and this process may open. Where not one can be opened, the driver may yet make
 * their nodes. */
CODE void count_gpus(struct driver *d) {
  struct entry { /* linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[1];
  };
  static char entries[2048] __attribute__((aligned(8)));
  const char *list = secure_getenv("CUDA_VISIBLE_DEVICES");
  int n = 0, is = 0;
  const struct entry *e;
  long fd, got, first;
  if (list && (!*list || same(list, "-1"))) {
    d->gpus = 0;
    return;
  }
  fd = open_file(GPUS, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  while (is >= 0 && (got = sys3(SYS_getdents64, fd, (long)entries, sizeof entries)) > 0)
    for (e = (const struct entry *)entries; is >= 0 && (const char *)e < entries + got; e = (const struct entry *)((const char *)e + e->size)) {
      if (e->name[0] == '.') continue;
      is = n < MAX_GPUS ? look_at_gpu(e->name, &d->cc[n]) : -1;
      n += is > 0;
    }
  close_file(fd);
  if (list) {
    d->chosen = 1;
    first = is < 0 ? -1 : number(&list, 9999);
    if (first < 0 || first >= n || (*list && *list != ',')) return; /* UUIDs, MIG, mistakes: the driver knows */
  }
  if (is >= 0 && n > 0) d->gpus = n;
}

CODE void look_at_driver(const struct note *n) {
  struct driver *d = &g.driver;
  static char text[512], path[PATH_MAX];
  int k, there;
  memset(d, 0, sizeof *d);
  d->state = ABSENT, d->by_files = 1, d->init = d->gpus = -1;
  shut = 0;
  there = read_text("/proc/driver/nvidia/version", text, sizeof text) != 0;
  if (there) d->kernel = release_in(text);
  /* /dev/nvidiactl alone proves nothing: libcuda makes it where it runs as root. */
  for (k = 0; k < 16 && !there; k++) there = is_there(device_path(&path, (uint32_t)k), F_OK);
  /* WSL2; Jetson. */
  there = there || is_there("/dev/dxg", F_OK) || is_there("/dev/nvmap", F_OK) || is_there("/dev/nvhost-ctrl", F_OK);
  if (there || shut) d->state = UNKNOWN;
  if (!there) return;
  g.by_name = 1;
  there = is_loaded(LIBCUDA, &d->path, 0) || search(LIBCUDA, &n->image, &d->path, 0);
  g.by_name = 0;
  if (!there) return;
  real_name(d->path, &path);
  d->user = release_in(base_name(path));
  d->state = FOUND;
  count_gpus(d);
}

/* Level 1: what the real driver answers. It honours every variable, and knows MIG, WSL, Jetson and cuda-compat. */
CODE void ask_the_driver(void) {
  struct driver *d = &g.told;
  const char *said;
  g.level = 1;
  if (!g.driver_asked++) {
    *d = g.driver;
    d->by_files = d->chosen = 0, d->state = UNKNOWN, d->init = d->gpus = -1;
    if (ask(LIBCUDA, 0) == ANSWERED) {
      if (answer('N')) d->state = ABSENT;
      if ((said = answer('T'))) show(d->trouble, sizeof d->trouble, said);
      if ((said = answer('I'))) {
        d->state = FOUND;
        if ((d->init = (int)number(&said, 99999))) d->gpus = g.driver.gpus; /* whatever it answers, they stand there */
        if ((said = answer('V'))) d->cuda = (uint32_t)number(&said, 999999);
        if ((said = answer('L'))) {
          keep_path(&d->path, said);
          real_name(said, &g.real);
          d->user = release_in(base_name(g.real));
        }
        if ((said = answer('G'))) {
          for (d->gpus = 0; *said && d->gpus < MAX_GPUS; said += *said != 0) d->cc[d->gpus++] = (uint16_t)number(&said, 65535);
          if (!d->jit) d->jit = answer('J') || !d->user ? 1 : -1; /* on WSL and Jetson, their libcuda knows where it is */
        }
      }
    }
  }
  g.driver = *d;
}
