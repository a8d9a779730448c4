/* The loader's search: LD_LIBRARY_PATH, RPATH, RUNPATH, the cache, the default folders. */

/* One element of a path list, $ORIGIN replaced, joined with the file's name. */
CODE int join(char *to, const char *dir, size_t n, const char *file, const char *origin) {
  struct text t;
  const char *end = dir + n, *base = base_name(origin);
  t.at = to, t.used = 0, t.size = PATH_MAX;
  while (dir < end) {
    if (*dir == '$') {
      int braces = dir[1] == '{';
      if (!starts(dir + 1 + braces, "ORIGIN")) return 0; /* $LIB, $PLATFORM: the child knows */
      dir += 7 + 2 * braces;
      if (base == origin) put_char(&t, '.');
      while (origin + 1 < base) put_char(&t, *origin++);
    } else {
      put_char(&t, *dir++);
    }
  }
  if (n) put_char(&t, '/');
  put(&t, file);
  return t.used + 1 < t.size;
}

CODE int elf_is(const char *path) {
  struct elf e;
  struct stat about;
  int is;
  /* Images of containers hold empty files where the host's are to be mounted. */
  if (g.by_name) return looked(sys4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&about, 0)) == 0 && about.st_size > 0;
  is = elf_open(&e, path);
  if (is > 0) close_file(e.fd);
  return is;
}

/* In this list: 1 found, 0 go on, -1 the loader would stop here (`to` names the file). */
CODE int search_list(const char *list, char also, const char *file, const char *origin, char *to) {
  int is = 0;
  while (list && *list && !is) {
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != also) n++;
    if (join(to, list, n, file, origin)) is = elf_is(to);
    list += n + (list[n] != 0);
  }
  return is;
}

#define CACHE "/etc/ld.so.cache"

CODE int in_cache(const char *file, char *to) {
  struct head {
    char magic[20];
    uint32_t count, strings;
    uint32_t more[5];
  };
  struct entry {
    int32_t flags;
    uint32_t key, value, version;
    uint64_t hwcap;
  };
#if defined(__x86_64__)
  const int32_t kind = 0x0303;
#elif defined(__aarch64__)
  const int32_t kind = 0x0a03;
#else
  const int32_t kind = -1;
#endif
  size_t length = len(file), size, at = 0, i;
  long fd = open_file(CACHE, O_RDONLY), end;
  int found = 0;
  const char *map;
  const struct head *h;
  const struct entry *en;
  if (fd < 0) return 0;
  end = sys3(SYS_lseek, fd, 0, SEEK_END);
  size = end > 0 && end < (64 << 20) ? (size_t)end : 0;
  map = (const char *)(size > sizeof *h ? sys6(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, 0) : -1);
  close_file(fd);
  if ((unsigned long)map > (unsigned long)-4096) {
    shut = 1;
    return 0;
  }
  if (same_bytes(map, "ld.so-1.7.0", 11)) { /* the old table first, 12 bytes an entry */
    uint32_t old;
    memcpy(&old, map + 12, 4);
    at = old < size / 12 ? (16 + (size_t)old * 12 + 7) & ~(size_t)7 : size;
  }
  if (at + sizeof *h <= size && same_bytes(map + at, "glibc-ld.so.cache1.1", 20)) {
    h = (const struct head *)(map + at);
    en = (const struct entry *)(map + at + 48);
    for (i = 0; i < h->count && at + 48 + (i + 1) * sizeof *en <= size && !found; i++) {
      size_t key = at + en[i].key, value = at + en[i].value;
      if (en[i].flags != kind || en[i].hwcap || key >= size || value >= size) continue;
      if (size - key <= length || !same_bytes(map + key, file, length + 1)) continue;
      for (value = at + en[i].value, at = 0; value < size && at < PATH_MAX - 1 && map[value];) to[at++] = map[value++];
      to[at] = 0;
      found = 1;
    }
  }
  sys2(SYS_munmap, (long)map, (long)size);
  return found;
}

/* Where the loader would find `file` for the object of `of`: 1 and the path, 0 nowhere, -1 at a file it cannot read. */
CODE int search(const char *file, const struct image *of, char *to, char *why) {
  static const char TIGHT defaults[] =
#if defined(__x86_64__)
      "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
      "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
      "/lib64:/usr/lib64:/lib:/usr/lib";
  int k, is = 0;
  for (k = 0; k < 6 && !is; k++) {
    const char *list = k == 0 ? of->rpath : k == 1 ? g.first.rpath : k == 2 ? g.library_path : k == 3 ? of->runpath : defaults;
    const char *origin = k == 0 || k == 3 ? file_of(of) : self();
    if (k < 2 && (of->runpath || (k && g.first.runpath))) continue;
    is = k != 4 ? search_list(list, k == 2 ? ';' : ':', file, origin, to) : in_cache(file, to) ? elf_is(to) : 0;
    if (is && why)
      format(why, WHY, k < 2 ? "RPATH of %p" : k == 2 ? "LD_LIBRARY_PATH" : k == 3 ? "RUNPATH of %p" : k == 4 ? CACHE : "the system's library folders", origin);
  }
  if (!is) *to = 0;
  return is;
}
