/* The library search of glibc's dynamic linker, for the arrangements in which this search certainly
 * has the same result. Anything else is ASK_LOADER: only the dynamic linker can find the file. */
#include "shim.h"

#if defined(__x86_64__)
#define INTERPRETER "/lib64/ld-linux-x86-64.so.2"
#define MULTIARCH "x86_64-linux-gnu"
#define HARDWARE_DIRS "x86_64\nhaswell\navx512_1"
enum { CACHE_KIND = 0x0303 };
#else
#define INTERPRETER "/lib/ld-linux-aarch64.so.1"
#define MULTIARCH "aarch64-linux-gnu"
#define HARDWARE_DIRS "aarch64\natomics"
enum { CACHE_KIND = 0x0a03 };
#endif

/* Returns whether the program runs with the dynamic linker that distributions install, whose
 * directories are known. A static program contains the same search. */
SHIM_FN int has_usual_loader(const struct image *program) {
  const ElfW(Phdr) *ph = find_interpreter(program);
  return !ph || (ph->p_filesz == sizeof INTERPRETER &&
                 bytes_are_equal((const char *)program->file.base + ph->p_vaddr, INTERPRETER,
                                 sizeof INTERPRETER));
}

/* Returns whether this file knows the rules that apply to the process. An auditing library may
 * select any file. */
SHIM_FN int knows_rules(struct context *cx) {
#ifdef __GLIBC__
  return NATIVE_MACHINE != EM_NONE && !getauxval(AT_SECURE) && !is_started_by_loader(&cx->first) &&
         count_variables("LD_LIBRARY_PATH") < 2 && !find_variable("LD_AUDIT") &&
         !cx->first.has_special_search && has_usual_loader(&cx->first);
#else
  (void)cx;
  return 0;
#endif
}

/* Appends a file name to an element of a path list. The element may begin with $ORIGIN; returns 0
 * if it contains another token. */
SHIM_FN int join_path(char (*to)[PATH_MAX], const char *dir, size_t n, const char *file,
                      const struct image *of) {
  struct text t = start_text(*to, PATH_MAX);
  const char *end = dir + n;
  const size_t token = starts_with(dir, "$ORIGIN")     ? sizeof "$ORIGIN" - 1
                       : starts_with(dir, "${ORIGIN}") ? sizeof "${ORIGIN}" - 1
                                                       : 0;
  if (token && (dir + token == end || dir[token] == '/')) {
    if (*of->file.name) copy_path(to, of->file.name);
    else read_link("/proc/self/exe", to);
    if (**to != '/') return 0;
    shorten_text(&t, (size_t)(base_name(*to) - *to) - 1);
    dir += token;
  }
  for (; dir < end; dir++) {
    if (*dir == '$') return 0;
    put_char(&t, *dir);
  }
  if (n) put_char(&t, '/'); /* an empty element is the current directory */
  put(&t, file);
  return !is_truncated(&t);
}

/* Returns whether a directory has no subdirectory that glibc searches before it. Most searches of a
 * process are in the same directory. */
SHIM_FN int is_plain_directory(struct context *cx, char (*to)[PATH_MAX], const char *dir, size_t n,
                               const struct image *of) {
  const char *names = "glibc-hwcaps\ntls\n" HARDWARE_DIRS;
  char name[sizeof "glibc-hwcaps\ntls\n" HARDWARE_DIRS];
  struct stat is;
  if (join_path(to, dir, n, "", of) && **to && texts_are_equal(*to, cx->plain_directory)) return 1;
  while ((names = read_name(names, name)))
    if (!join_path(to, dir, n, name, of) || !stat_at(AT_FDCWD, *to, &is, 0)) return 0;
  if (join_path(to, dir, n, "", of) && text_length(*to) < sizeof cx->plain_directory)
    copy_text(cx->plain_directory, sizeof cx->plain_directory, *to);
  return 1;
}

/* The state of a library search, and its result. */
struct library_search {
  const char *file;
  char (*to)[PATH_MAX];
  struct elf *elf;
  enum lookup is;
  const char *place;         /* name of the source of the path list */
  const struct image *owner; /* the object that has the path list, or null */
};

/* Tries a directory of a path list. */
SHIM_FN enum lookup try_directory(struct context *cx, const struct library_search *s,
                                  const char *dir, size_t n, const struct image *of) {
  return is_plain_directory(cx, s->to, dir, n, of) && join_path(s->to, dir, n, s->file, of)
             ? open_elf(cx, s->elf, *s->to)
             : ASK_LOADER;
}

/* Searches the directories of a path list, unless the search has ended. */
SHIM_FN void search_list(struct context *cx, struct library_search *s, const char *list,
                         const char *place, const struct image *owner) {
  const char also = owner ? ':' : ';'; /* LD_LIBRARY_PATH has two separators */
  int more = list && *list && s->is == NOT_THERE;
  while (more) {
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != also) n++;
    s->is = try_directory(cx, s, list, n, owner ? owner : &cx->first);
    s->place = place;
    s->owner = owner;
    more = list[n] && s->is == NOT_THERE;
    list += n + 1;
  }
}

#define CACHE "/etc/ld.so.cache"

/* Returns whether the string at this offset ends within the cache. ldconfig of glibc 2.33 and newer
 * ends the file with the name of its generator, which has no NUL. */
SHIM_FN int is_terminated(const char *map, size_t size, size_t at) {
  while (at < size && map[at]) at++;
  return at < size;
}

/* Searches a mapped cache. Its first entry of a name decides: entries of hardware directories
 * precede the others. */
SHIM_FN enum lookup search_mapped_cache(const char *map, size_t size, const char *file,
                                        char (*to)[PATH_MAX]) {
  struct head {
    char magic[20];
    uint32_t count, strings;
    uint32_t more[5];
  };
  struct cached {
    int32_t flags;
    uint32_t key, value, version;
    uint64_t hwcap;
  };
  const size_t length = text_length(file);
  const struct head *h;
  const struct cached *en;
  size_t at = 0, i;
  if (size > 16 && starts_with(map, "ld.so-1.7.0")) { /* the old table, 12 bytes per entry */
    uint32_t old;
    memcpy(&old, map + 12, 4);
    at = old < size / 12 ? (16 + (size_t)old * 12 + 7) & ~(size_t)7 : size;
  }
  h = (const struct head *)(map + at);
  if (at + sizeof *h >= size || !starts_with(map + at, "glibc-ld.so.cache1.1") ||
      h->count > (size - at - sizeof *h) / sizeof *en)
    return ASK_LOADER;
  en = (const struct cached *)(h + 1);
  for (i = 0; i < h->count; i++, en++) {
    const size_t key = at + en->key, value = at + en->value;
    if (key >= size) return ASK_LOADER;
    /* Most names have another length. */
    if (key + length >= size || map[key + length] || !starts_with(map + key, file)) continue;
    if (en->flags != CACHE_KIND) continue;
    if (en->hwcap || en->version || !is_terminated(map, size, value)) return ASK_LOADER;
    copy_path(to, map + value);
    return IS_THERE;
  }
  return NOT_THERE;
}

/* Searches a cache of the dynamic linker. ASK_LOADER: it cannot be read. */
SHIM_FN enum lookup search_cache(struct context *cx, const char *cache, const char *file,
                                 char (*to)[PATH_MAX]) {
  const long fd = open_file(cx, cache, O_RDONLY);
  struct stat is;
  enum lookup found = ASK_LOADER;
  long map;
  if (fd < 0) return fd == -ENOENT ? NOT_THERE : ASK_LOADER;
  if (!stat_at(fd, "", &is, AT_EMPTY_PATH) && is.st_size > 0 && is.st_size < (64 << 20)) {
    map = sys6(SYS_mmap, 0, (long)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if ((unsigned long)map <= (unsigned long)-4096) {
      found = search_mapped_cache((const char *)map, (size_t)is.st_size, file, to);
      sys2(SYS_munmap, map, (long)is.st_size);
    }
  }
  close_file(fd);
  return found;
}

/* The directories that one of the distributions searches. */
static const char default_dirs[] =
    "/lib/" MULTIARCH ":/usr/lib/" MULTIARCH ":/lib64:/usr/lib64:/lib:/usr/lib";

/* Searches the default directories. The first one of glibc contains the C library; whether glibc
 * searches another one depends on the distribution. */
SHIM_FN void search_default_dirs(struct context *cx, struct library_search *s) {
  size_t n;
  if (s->is != NOT_THERE) return;
  search_list(cx, s, default_dirs, "the system directories", 0);
  if (s->is != IS_THERE || !find_interpreter(&cx->first)) return;
  n = (size_t)(base_name(*s->to) - *s->to);
  if (cx->libc && (size_t)(base_name(cx->libc) - cx->libc) == n &&
      bytes_are_equal(cx->libc, *s->to, n))
    return;
  close_elf(s->elf);
  s->is = ASK_LOADER;
}

/* The RPATHs of loaded libraries. */
struct rpaths {
  const char *name; /* of the object that searches */
  int is_loaded, has_others;
};

SHIM_FN int visit_rpath(struct dl_phdr_info *info, size_t size, void *data) {
  struct rpaths *r = (struct rpaths *)data;
  const struct image im = read_visited(info);
  (void)size;
  if (!*im.file.name) return 0;
  if (texts_are_equal(im.file.name, r->name)) {
    r->is_loaded = 1;
    return 0;
  }
  r->has_others |= im.rpath && !im.runpath;
  return 0;
}

/* Returns whether the RPATH of another library may apply to searches of this object: that of the
 * library that needs it, and so on. Without one, only that of the program applies, as for an object
 * that dlopen loads. */
SHIM_FN int may_inherit_rpath(const struct image *of) {
  struct rpaths r;
  r.name = of->file.name;
  r.is_loaded = r.has_others = 0;
  if (*r.name) dl_iterate_phdr(visit_rpath, &r);
  return r.is_loaded && r.has_others;
}

/* Searches a library as the dynamic linker does for the object `of`. IS_THERE: the path is set, and
 * the library is open. `why`, if it is not null, receives the source of the directory. */
SHIM_API enum lookup search_library(struct context *cx, const char *file, const struct image *of,
                                    char (*to)[PATH_MAX], struct elf *e, char (*why)[WHY]) {
  struct library_search s;
  s.file = file;
  s.to = to;
  s.elf = e;
  s.is =
      knows_rules(cx) && !of->has_special_search && !find_text(file, "/") ? NOT_THERE : ASK_LOADER;
  s.place = 0;
  s.owner = 0;
  /* The RPATH of an object with a RUNPATH is ignored. */
  if (!of->runpath) {
    if (s.is == NOT_THERE && may_inherit_rpath(of)) s.is = ASK_LOADER;
    search_list(cx, &s, of->rpath, "RPATH of ", of);
    if (*of->file.name && !cx->first.runpath)
      search_list(cx, &s, cx->first.rpath, "RPATH of ", &cx->first);
  }
  search_list(cx, &s, cx->library_path, "LD_LIBRARY_PATH", 0);
  search_list(cx, &s, of->runpath, "RUNPATH of ", of);
  if (s.is == NOT_THERE) {
    s.place = CACHE;
    s.owner = 0;
    s.is = search_cache(cx, CACHE, file, to);
    if (s.is == IS_THERE) s.is = open_elf(cx, e, *to);
  }
  search_default_dirs(cx, &s);
  if (s.is == IS_THERE && why) {
    struct text t = start_text(*why, WHY);
    put(&t, s.place);
    if (s.owner) put_untrusted(&t, get_object_path(cx, s.owner->file.name));
  }
  if (s.is != IS_THERE) **to = 0;
  return s.is;
}
