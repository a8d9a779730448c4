/* The library search of the dynamic linker: LD_LIBRARY_PATH, RPATH, RUNPATH, the cache, the default
 * directories. */
#ifndef CUDAGUARD_LIBRARY_SEARCH_H
#define CUDAGUARD_LIBRARY_SEARCH_H

#include "process.h"

/* Expands $ORIGIN in an element of a path list and appends the file name. */
SHIM_FN int join_path(struct context *cx, char (*to)[PATH_MAX], const char *dir, size_t n,
                      const char *file, const struct image *of) {
  struct text t = start_text(*to, PATH_MAX);
  const char *end = dir + n, *origin, *base, *from;
  while (dir < end) {
    if (*dir == '$') {
      int braces = dir[1] == '{';
      if (!starts_with(dir + 1 + braces, "ORIGIN")) return 0; /* $LIB, $PLATFORM: for level 1 */
      dir += sizeof "$ORIGIN" - 1 + (size_t)(2 * braces);
      origin = get_object_path(cx, of->file.name);
      base = base_name(origin);
      if (base == origin) put_char(&t, '.');
      for (from = origin; from + 1 < base; from++) put_char(&t, *from);
    } else {
      put_char(&t, *dir++);
    }
  }
  if (n) put_char(&t, '/');
  put(&t, file);
  return !is_truncated(&t);
}

SHIM_FN enum lookup look_up_elf(struct context *cx, const char *path) {
  /* Container images contain empty files as mount points for the files of the host. */
  if (cx->by_name) return get_file_size(cx, path) > 0 ? IS_THERE : NOT_THERE;
  return open_elf(cx, path);
}

/* The state of a library search, and its result. */
struct library_search {
  const char *file;
  char (*to)[PATH_MAX];
  enum lookup is;
  const char *place;         /* name of the source of the path list */
  const struct image *owner; /* the object that has the path list, or null */
};

/* Searches the directories of a path list, unless the library is found already. */
SHIM_FN void search_list(struct context *cx, struct library_search *s, const char *list,
                         const char *place, const struct image *owner) {
  const char also = owner ? ':' : ';'; /* LD_LIBRARY_PATH has two separators */
  while (list && *list && s->is == NOT_THERE) {
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != also) n++;
    if (join_path(cx, s->to, list, n, s->file, owner ? owner : &cx->first))
      s->is = look_up_elf(cx, *s->to);
    if (s->is != NOT_THERE) {
      s->place = place;
      s->owner = owner;
    }
    list += n + (list[n] != 0);
  }
}

#define CACHE "/etc/ld.so.cache"

/* Returns whether a string of the cache ends within `left` bytes. ldconfig of glibc 2.33 and newer
 * ends the file with the name of its generator, which has no NUL. */
SHIM_FN int is_terminated(const char *s, size_t left) {
  while (left && *s) s++, left--;
  return left != 0;
}

SHIM_FN int search_cache(struct context *cx, const char *file, char (*to)[PATH_MAX]) {
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
#if defined(__x86_64__)
  const int32_t kind = 0x0303;
#elif defined(__aarch64__)
  const int32_t kind = 0x0a03;
#else
  const int32_t kind = -1;
#endif
  const size_t length = text_length(file);
  const long fd = open_file(cx, CACHE, O_RDONLY);
  size_t size = 0, at = 0, i;
  struct stat is;
  long room;
  int found = 0;
  const char *map;
  const struct head *h;
  if (fd < 0) return 0;
  if (!stat_at(fd, "", &is, AT_EMPTY_PATH) && is.st_size < (64 << 20)) size = (size_t)is.st_size;
  room = sys6(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, 0);
  close_file(fd);
  if ((unsigned long)room > (unsigned long)-4096) {
    cx->lookup_failed = 1;
    return 0;
  }
  map = (const char *)room;
  if (size > 16 && starts_with(map, "ld.so-1.7.0")) { /* the old table, 12 bytes per entry */
    uint32_t old;
    memcpy(&old, map + 12, 4);
    at = old < size / 12 ? (16 + (size_t)old * 12 + 7) & ~(size_t)7 : size;
  }
  if (at + sizeof *h < size && starts_with(map + at, "glibc-ld.so.cache1.1")) {
    const struct cached *en = (const struct cached *)(map + at + 48);
    h = (const struct head *)(map + at);
    for (i = 0; i < h->count && (const char *)(en + 1) <= map + size && !found; i++, en++) {
      const size_t key = at + en->key, value = at + en->value;
      /* Most names have another length. */
      if (en->flags != kind || en->hwcap || value >= size || key + length >= size ||
          map[key + length] || !starts_with(map + key, file) ||
          !is_terminated(map + value, size - value))
        continue;
      copy_path(to, map + value);
      found = 1;
    }
  } else {
    cx->lookup_failed = 1; /* a cache of another format may have an entry */
  }
  sys2(SYS_munmap, room, (long)size);
  return found;
}

static const char default_dirs[] =
#if defined(__x86_64__)
    "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
    "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
    "/lib64:/usr/lib64:/lib:/usr/lib";

/* Searches a library as the dynamic linker does for the object `of`. Sets the path, also of an
 * unreadable file. Leaves the library open for open_found(). `why`, if it is not null, receives the
 * source of the directory. */
SHIM_FN enum lookup search_library(struct context *cx, const char *file, const struct image *of,
                                   char (*to)[PATH_MAX], char (*why)[WHY]) {
  struct library_search s;
  s.file = file;
  s.to = to;
  s.is = NOT_THERE;
  s.place = 0;
  s.owner = 0;
  /* The RPATH of an object with a RUNPATH is ignored. The RPATH of the program applies to objects
   * without a RUNPATH. */
  if (!of->runpath) {
    search_list(cx, &s, of->rpath, "RPATH of ", of);
    if (!cx->first.runpath) search_list(cx, &s, cx->first.rpath, "RPATH of ", &cx->first);
  }
  search_list(cx, &s, cx->library_path, "LD_LIBRARY_PATH", 0);
  search_list(cx, &s, of->runpath, "RUNPATH of ", of);
  if (s.is == NOT_THERE && search_cache(cx, file, to)) {
    s.is = look_up_elf(cx, *to);
    if (s.is != NOT_THERE) s.place = CACHE;
  }
  search_list(cx, &s, default_dirs, "the system directories", 0);
  if (s.place && why) {
    struct text t = start_text(*why, WHY);
    put(&t, s.place);
    if (s.owner) put_untrusted(&t, get_object_path(cx, s.owner->file.name));
  }
  if (s.is == NOT_THERE) **to = 0;
  return s.is;
}

#endif
