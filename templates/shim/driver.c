/* Driver and GPU: what can be seen of them without asking the driver. */

/* PCI device ids of NVIDIA's GPUs, first and last, and their compute capability. Used to accept only: any other id is a
 * doubt. */
static const struct {
  uint16_t first;
  uint8_t more, cc; /* how many ids follow the first; 0x75: 7.5 */
} TIGHT pci[] = {
    {0x0fc0, 0x3f, 0x30}, {0x1000, 0x24, 0x35}, {0x1026, 0x04, 0x35}, {0x102d, 0x00, 0x37}, {0x102e, 0x01, 0x35}, {0x103a, 0x00, 0x35},
    {0x103c, 0x00, 0x35}, {0x103f, 0x00, 0x35}, {0x1180, 0x7f, 0x30}, {0x1280, 0x3f, 0x35}, {0x1300, 0x1f, 0x35}, {0x1340, 0x5f, 0x50},
    {0x13ad, 0x01, 0x52}, {0x13b0, 0x04, 0x50}, {0x13b6, 0x00, 0x50}, {0x13b9, 0x04, 0x50}, {0x13be, 0x81, 0x52}, {0x15c0, 0x3f, 0x60},
    {0x1600, 0x1f, 0x52}, {0x1660, 0x1f, 0x52}, {0x1720, 0x1f, 0x60}, {0x1740, 0x1f, 0x50}, {0x1780, 0x1f, 0x50}, {0x17c0, 0x3f, 0x52},
    {0x1b00, 0x3f, 0x61}, {0x1b60, 0xdf, 0x61}, {0x1c60, 0xff, 0x61}, {0x1d80, 0x7f, 0x70}, {0x1e00, 0x3f, 0x75}, {0x1e60, 0xff, 0x75},
    {0x1f60, 0x9f, 0x75}, {0x2080, 0x7f, 0x80}, {0x2180, 0x5f, 0x75}, {0x2200, 0x3f, 0x86}, {0x2300, 0x7f, 0x90}, {0x23a0, 0x1f, 0x90},
    {0x23e0, 0x1f, 0x90}, {0x2400, 0x3f, 0x86}, {0x2460, 0xff, 0x86}, {0x2560, 0x5f, 0x86}, {0x25e0, 0x1f, 0x86}, {0x2680, 0x3f, 0x89},
    {0x26e0, 0xdf, 0x89}, {0x27e0, 0x5f, 0x89}, {0x2860, 0x5f, 0x89}, {0x28e0, 0x1f, 0x89}, {0x2900, 0xff, 0xa0}, {0x2b00, 0x1f, 0xb0},
    {0x2b80, 0x3f, 0xc0}, {0x2c00, 0x1f, 0xc0}, {0x2c31, 0x00, 0xc0}, {0x2c33, 0x01, 0xc0}, {0x2c38, 0x02, 0xc0}, {0x2c40, 0x3f, 0xc0},
    {0x2d00, 0x1f, 0xc0}, {0x2d30, 0x00, 0xc0}, {0x2d39, 0x00, 0xc0}, {0x2d40, 0xbf, 0xc0}, {0x2e00, 0x3f, 0xc1}, {0x2f00, 0x5f, 0xc0},
    {0x3180, 0x7f, 0xa3}, {0x3400, 0x1f, 0xb0},
};

APART uint16_t cc_of(const char *id) {
  uint32_t n = 0;
  size_t i;
  if (starts(id, "0x"))
    for (id += 2; *id && n <= 0xffff; id++) {
      int digit = *id >= '0' && *id <= '9' ? *id - '0' : *id >= 'a' && *id <= 'f' ? *id - 'a' + 10 : -1;
      if (digit < 0) break;
      n = n << 4 | (uint32_t)digit;
    }
  for (i = 0; i < sizeof pci / sizeof pci[0]; i++)
    if (n - pci[i].first <= pci[i].more) return (uint16_t)(pci[i].cc >> 4 << 8 | (pci[i].cc & 15));
  return 0;
}

/* A release as the rows pack it: its numbers may be larger in what is found, 535.261.03, and are kept wider. */
CODE uint32_t widen(uint32_t packed) { return packed >> 16 << 20 | (packed & 0xffff); }

/* The first `535.261.03` or `535.261` of a text. No driver of a branch below 100 has what CUDA needs today. */
CODE uint32_t release_in(const char *s) {
  uint32_t n[3];
  return numbers_in(s, 100, n) ? n[0] << 20 | n[1] << 8 | (n[2] & 0xff) : 0;
}

CODE long read_text(const char *path, char *to, size_t size) {
  long fd = open_file(path, O_RDONLY), n = -1;
  if (fd >= 0) {
    n = sys3(SYS_read, fd, (long)to, (long)size - 1);
    close_file(fd);
  }
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

APART int is_there(const char *path, int mode) { return looked(sys3(SYS_faccessat, AT_FDCWD, (long)path, mode)) == 0; }

#define GPUS "/proc/driver/nvidia/gpus"

/* The GPUs that the kernel module drives and this process may open. Where not one can be opened, the driver may yet make
 * their nodes. Opening one here would wake it: the right to do so must be enough. */
CODE void count_gpus(struct driver *d) {
  char entries[2048] __attribute__((aligned(8))), path[300], text[1024];
  const char *list = secure_getenv("CUDA_VISIBLE_DEVICES"), *s;
  int n = 0;
  long fd, got = 0, at;
  if (list && (!*list || same(list, "-1"))) {
    d->gpus = 0;
    return;
  }
  fd = open_file(GPUS, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  while (n >= 0 && (got = sys3(SYS_getdents64, fd, (long)entries, sizeof entries)) > 0)
    for (at = 0; n >= 0 && at < got; at += *(const unsigned short *)(entries + at + 16)) {
      const char *name = entries + at + 19;
      if (name[0] == '.') continue;
      format(path, sizeof path, GPUS "/%s/information", name);
      if (n >= MAX_GPUS || !read_text(path, text, sizeof text) || !(s = find_text(text, "Device Minor:"))) {
        n = -1;
        break;
      }
      for (s += 13; *s == ' ' || *s == '\t';) s++;
      format(path, sizeof path, "/dev/nvidia%n", (uint32_t)number(&s, 9999));
      if (!is_there(path, R_OK | W_OK)) continue;
      format(path, sizeof path, "/sys/bus/pci/devices/%s/device", name);
      read_text(path, text, sizeof text);
      d->cc[n++] = cc_of(text);
    }
  close_file(fd);
  if (list) {
    d->strict = 2;
    at = number(&list, 9999);
    if (at < 0 || at >= n || (*list && *list != ',')) return; /* UUIDs, MIG, mistakes: the driver knows */
  }
  if (n > 0) d->gpus = n;
}

APART void look_at_driver(const struct note *n) {
  struct driver *d = (struct driver *)at(&g.driver);
  char text[512], path[PATH_MAX];
  int k, there;
  d->state = ABSENT, d->strict = 1, d->init = d->gpus = -1;
  d->user = d->kernel = d->cuda = 0;
  d->path[0] = 0;
  d->jit = 0;
  shut = 0;
  there = read_text("/proc/driver/nvidia/version", text, sizeof text) != 0;
  if (there) d->kernel = release_in(text);
  /* /dev/nvidiactl alone proves nothing: libcuda makes it where it runs as root. */
  for (k = 0; k < 16 && !there; k++) {
    format(path, sizeof path, "/dev/nvidia%n", (uint32_t)k);
    there = is_there(path, F_OK);
  }
  /* WSL2; Jetson. */
  there = there || is_there("/dev/dxg", F_OK) || is_there("/dev/nvmap", F_OK) || is_there("/dev/nvhost-ctrl", F_OK);
  if (there || shut) d->state = UNKNOWN;
  if (!there) return;
  g.by_name = 1;
  there = is_loaded(LIBCUDA, &d->path, 0) || search(LIBCUDA, &n->image, d->path, 0);
  g.by_name = 0;
  if (!there) return;
  real_name(d->path, &path);
  d->user = release_in(base_name(path));
  d->state = FOUND;
  count_gpus(d);
}

/* Level 1: what the real driver answers. It honours every variable, and knows MIG, WSL, Jetson and cuda-compat. */
CODE void ask_the_driver(void) {
  struct driver *d = (struct driver *)at(&g.told);
  const char *said;
  g.level = 1;
  if (!g.driver_asked++) {
    *d = g.driver;
    d->strict = 0, d->state = UNKNOWN, d->init = d->gpus = -1;
    if (ask(LIBCUDA, 0) == ANSWERED) {
      if (answer('N')) d->state = ABSENT;
      if ((said = answer('I'))) {
        d->state = FOUND;
        if ((d->init = (int)number(&said, 99999))) d->gpus = g.driver.gpus; /* whatever it answers, they stand there */
        if ((said = answer('V'))) d->cuda = (uint32_t)number(&said, 999999);
        if ((said = answer('L'))) {
          keep(&d->path, said);
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
