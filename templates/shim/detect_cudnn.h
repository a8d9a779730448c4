/* Detects the cuDNN that this file has loaded or would load, and its version. */
#ifndef CUDAGUARD_DETECT_CUDNN_H
#define CUDAGUARD_DETECT_CUDNN_H

#include "note.h"
#include "probe.h"

/* Returns the path of a file after all its links are resolved. `real` has room for it. */
SHIM_FN const char *resolve_links(struct context *cx, const char *path, char (*real)[PATH_MAX]) {
  char *to = *real;
  int hops;
  for (hops = 0; hops < 16 && read_link(path, &cx->scratch) > 0; hops++) {
    char *base;
    if (path != to) copy_path(real, path);
    path = to;
    base = cx->scratch[0] == '/' ? to : to + (base_name(to) - to);
    copy_text(base, (size_t)(to + PATH_MAX - base), cx->scratch);
  }
  return path;
}

SHIM_FN uint32_t check_version(uint32_t packed) {
  return packed >> 16 && packed >> 16 < 100 ? packed : 0;
}

/* Returns the release of the cudart in a sublibrary, from the code of its getter, or 0. */
SHIM_FN uint32_t read_cuda_version(struct context *cx, const struct elf *e, const char *getter) {
  uint32_t n = *getter ? read_returned_constant(cx, e, getter) : 0;
  return n < 7000 || n >= 100000 || n % 10 || n % 1000 >= 100 ? 0 : n;
}

/* Reads the versions from the file of a sublibrary. */
SHIM_FN void read_part(struct context *cx, struct part *p, const struct note *n, const char *path) {
  const union row row = read_note_row(n, p->is.row);
  char symbol[NOTE_TEXT], getter[NOTE_TEXT];
  struct elf *e = &cx->elf;
  p->is.state = FOUND;
  p->is.version = p->cuda = 0;
  copy_text(p->path, sizeof p->path, path);
  if (read_note_text(n, row.inner.symbol, &symbol) && *symbol && open_found(cx, path) == IS_THERE) {
    p->is.version = check_version(read_elf_word(e, symbol));
    if (read_note_text(n, row.inner.made_with, &getter)) p->cuda = read_cuda_version(cx, e, getter);
  }
  close_elf(cx);
  if (p->is.version) return;
  p->is.version = parse_version_in_name(base_name(resolve_links(cx, path, &cx->real)));
}

/* Finds a sublibrary as cuDNN does: first with the full version in the name, then with shorter
 * ones, each in all directories of the search path. */
SHIM_NOINLINE enum lookup find_part(struct context *cx, const struct cudnn *c, struct part *p,
                                    const struct image *of, char (*to)[PATH_MAX]) {
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
    is = search_library(cx, name, of, to, 0);
  }
  return is == NOT_THERE ? search_library(cx, p->file, of, to, 0) : is;
}

/* Detects a sublibrary. */
SHIM_FN void detect_part(struct context *cx, struct cudnn *c, struct part *p, const struct note *n,
                         const struct image *of, int are_loaded) {
  enum lookup is = IS_LOADED;
  if (!are_loaded || !is_loaded(p->file, &cx->found, 0)) is = find_part(cx, c, p, of, &cx->found);
  if (is == IS_THERE || is == IS_LOADED) read_part(cx, p, n, cx->found);
  else p->is.state = is == ASK_LOADER || cx->lookup_failed ? UNKNOWN : ABSENT;
  if (is == ASK_LOADER) c->is.is_guess = 1;
}

/* Reads the files of the cuDNN at c->path. */
SHIM_FN void read_cudnn(struct context *cx, struct cudnn *c, const struct note *n) {
  struct elf *e = &cx->elf;
  struct image of;
  char own[NOTE_TEXT], *runpath = cx->shared.note.runpath;
  uint32_t i;
  /* Usually no sublibrary is loaded, so one walk answers for all. */
  const int are_loaded = is_loaded("libcudnn_", 0, 0);
  c->is.state = FOUND;
  c->parts = 0;
  c->is.loader = parse_version_in_name(base_name(resolve_links(cx, c->path, &cx->found)));
  memset(&of, 0, sizeof of);
  of.file.name = c->path;
  if (open_found(cx, c->path) == IS_THERE) {
    /* The name may be libcudnn.so, or a link with another major than the file. */
    if (read_elf_string(e, DT_SONAME, own, sizeof own) && parse_major_in_name(own))
      copy_text(c->soname, NOTE_TEXT, own);
    of.runpath = read_elf_string(e, DT_RUNPATH, runpath, sizeof cx->shared.note.runpath);
    if (!of.runpath)
      of.rpath = read_elf_string(e, DT_RPATH, runpath, sizeof cx->shared.note.runpath);
    of.has_special_search = e->tags.at[SPECIAL_SEARCH] != 0;
    close_elf(cx);
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
    p->needed = row.inner.needed & 1;
    detect_part(cx, c, p, n, &of, are_loaded);
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
  /* An auditing library may open other files than the dynamic linker names. */
  if (c->answered && c->is.version != (uint32_t)c->answered) {
    for (k = 0; k < c->parts; k++) {
      c->part[k].is.state = UNKNOWN;
      c->part[k].is.version = 0;
    }
    c->is.version = (uint32_t)c->answered;
    c->by = 0;
    c->from = "cudnnGetVersion";
  }
}

/* Searches cuDNN as dlopen does, by each of its names: a loaded library of that name first, then
 * the search path. */
SHIM_FN enum lookup search_cudnn(struct context *cx, struct cudnn *c, const struct image *of,
                                 int opens) {
  const char *names = c->names;
  enum lookup is = NOT_THERE;
  while (is == NOT_THERE && (names = read_name(names, c->soname))) {
    if (is_loaded(c->soname, &c->path, 0)) return IS_LOADED;
    if (opens) is = search_library(cx, c->soname, of, &c->path, &c->why);
  }
  return is;
}

/* Level 0: detects the cuDNN that this file has loaded or would load. */
SHIM_FN void detect_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                          const struct library_row *row, int late) {
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
  if (needed && is_loaded(needed, &c->path, 0)) {
    is = IS_LOADED;
    copy_text(c->soname, NOTE_TEXT, needed);
  } else {
    is = search_cudnn(cx, c, &of, opens);
  }
  if (is == NOT_THERE && opens && !cx->lookup_failed) c->is.state = ABSENT;
  /* After the program has started: if none of its names is found, the only loaded cuDNN is the one
   * that the program uses. */
  if (is == NOT_THERE && opens && late && is_loaded(0, &c->path, &c->soname)) {
    is = IS_THERE;
    copy_text(c->why, WHY, "the program itself");
  }
  if (is == IS_LOADED && (search_library(cx, c->soname, &of, &cx->scratch, &c->why) != IS_THERE ||
                          !texts_are_equal(cx->scratch, c->path))) {
    copy_text(c->why, WHY, "another library, LD_PRELOAD or its full path");
    close_elf(cx);
  }
  c->is.is_guess = is == ASK_LOADER || (is == NOT_THERE && cx->lookup_failed);
  if (is != IS_LOADED && is != IS_THERE) return;
  read_cudnn(cx, c, n);
  settle_version(c);
}

/* Corrects the sublibraries by the answers of the child, which ended with this outcome. */
SHIM_FN void correct_parts(struct context *cx, struct cudnn *c, const struct note *n, int outcome) {
  int k;
  for (k = 0; k < c->parts; k++) {
    struct part *p = &c->part[k];
    const char *text = get_answer(cx, (char)('0' + k));
    if (text) {
      if (p->is.state != FOUND || !starts_with(text, p->path)) read_part(cx, p, n, text);
    } else if (p->is.state == ABSENT && p->needed && (c->answered || outcome != DIED)) {
      p->is.state = UNKNOWN; /* cuDNN works without this library, or the probe failed */
    }
  }
}

/* Level 1: corrects the result of level 0 with the files that the real cuDNN loads and the version
 * that it returns. */
SHIM_FN void probe_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                         const struct library_row *row) {
  const char *text;
  int outcome, loaded = is_loaded(c->soname, &cx->found, 0);
  cx->level = 1;
  c->is.source = DETECTED;
  /* The child searches in the context of this file. */
  if (!loaded && !n->own && c->is.state == UNKNOWN) return;
  copy_path(&cx->found, !loaded && (n->own || c->is.state == ABSENT) ? c->names : c->path);
  outcome = ask_child(cx, cx->found, c);
  text = get_answer(cx, 'L');
  if (c->is.state == ABSENT) {
    if (!get_answer(cx, 'N')) c->is.state = UNKNOWN;
    if (!text) return;
  }
  if (get_answer(cx, 'N') && !loaded && (row->flags & LIBRARY_DLOPENED)) {
    c->is.state = ABSENT; /* dlopen fails in the program, too */
    return;
  }
  if (text && !texts_are_equal(text, c->path)) {
    copy_path(&c->path, text);
    copy_text(c->why, WHY, "the loader");
    c->is.state = FOUND;
    read_cudnn(cx, c, n);
  }
  if ((text = get_answer(cx, 'V'))) {
    long v = parse_number(&text, 999999999);
    c->answered = v > 0 ? (int)decode_version((uint64_t)v) : 0;
  }
  correct_parts(cx, c, n, outcome);
  settle_version(c);
}

#endif
