/* Detects the cuDNN that this file has loaded or would load, without running it. */
#ifndef CUDAGUARD_DETECT_CUDNN_H
#define CUDAGUARD_DETECT_CUDNN_H

#include "notes_in_memory.h"

/* Reads the release of a DLL of cuDNN from its version resource; 0 if it is unknown. cuDNN 9 has
 * its release there, older ones have 6.14.11 and the result of cudnnGetVersion(). */
SHIM_FN uint32_t read_cudnn_version(const struct dll *dll) {
  enum { OLDEST_WITH_RELEASE = 7 };
  uint16_t v[4];
  if (!read_file_version(dll, v)) return 0;
  if (v[0] < OLDEST_WITH_RELEASE) return decode_version(v[3]);
  return v[0] > 99 || (v[1] | v[2]) > 255 ? 0 : (uint32_t)v[0] << 16 | v[1] << 8 | v[2];
}

/* Finds a sublibrary: a loaded one, otherwise the one next to cuDNN. If the loader picks another
 * file, it is unknown which one cuDNN opens. */
SHIM_FN enum lookup find_part(struct context *cx, const struct cudnn *c, const char *name,
                              struct dll *dll) {
  struct text sibling = start_text(cx->text, sizeof cx->text);
  const char *at, *end = file_name(c->path);
  enum lookup is = find_dll(cx, name, dll);
  if (is == IS_LOADED || is == UNREADABLE) return is;
  if (is == IS_THERE) {
    get_dll_path(cx, dll, &cx->found);
    if (have_same_dir(cx->found, c->path)) return is;
    release_dll(dll);
    is = UNREADABLE;
  }
  for (at = c->path; at < end;) put_char(&sibling, *at++);
  put(&sibling, name);
  if (is_truncated(&sibling)) return UNREADABLE;
  dll->module = LoadLibraryExW(widen(cx, cx->text), 0, AS_DATA);
  dll->is_data = dll->module != 0;
  if (dll->is_data && is == UNREADABLE) release_dll(dll);
  return dll->is_data ? IS_THERE : UNREADABLE;
}

/* Detects the sublibraries that the note lists for this major. One that is not found is unknown,
 * because it is not documented where cuDNN searches. */
SHIM_FN void detect_parts(struct context *cx, struct cudnn *c, const struct note *n) {
  const char *suffix = find_text(c->soname, "64_");
  char soname[NOTE_TEXT];
  uint32_t i;
  for (i = 0; suffix && i < n->head.rows && c->parts < MAX_INNER; i++) {
    const union row row = read_note_row(n, i);
    struct part *p = &c->part[c->parts];
    struct dll dll;
    memset(p, 0, sizeof *p);
    if (row.kind != ROW_PART || !read_note_text(n, row.inner.file, &soname) ||
        !name_dll(soname, &p->file) || !find_text(p->file, suffix))
      continue;
    p->is.row = i;
    p->needed = row.inner.needed & 1;
    c->parts++;
    switch (find_part(cx, c, p->file, &dll)) {
    case IS_LOADED:
    case IS_THERE:
      p->is.state = FOUND;
      p->is.version = read_cudnn_version(&dll);
      get_dll_path(cx, &dll, &cx->found);
      copy_text(p->path, sizeof p->path, cx->found);
      release_dll(&dll);
      break;
    default:
      p->is.state = UNKNOWN;
    }
  }
}

/* Searches the names that the program opens, in their order. */
SHIM_FN enum lookup search_cudnn(struct context *cx, struct cudnn *c, struct dll *dll) {
  const char *names = c->names;
  char soname[NOTE_TEXT];
  enum lookup result = NOT_THERE;
  while ((names = read_name(names, soname))) {
    enum lookup is;
    if (!name_dll(soname, &c->soname)) continue;
    is = find_dll(cx, c->soname, dll);
    if (is == IS_LOADED || is == IS_THERE) return is;
    if (is == UNREADABLE) result = is;
  }
  return result;
}

SHIM_FN void detect_cudnn(struct context *cx, struct cudnn *c, const struct note *n,
                          const struct library_row *row) {
  struct dll dll;
  enum lookup is;
  reset_cudnn(c);
  c->is.source = DETECTED;
  if (!read_note_text(n, row->names, &c->names) || !c->names[0])
    read_note_text(n, row->soname, &c->names);
  is = search_cudnn(cx, c, &dll);
  /* The loader has loaded an imported DLL, so this one is delay-loaded or opened by name. A program
   * that adds directories may find it later. */
  if (is == NOT_THERE && !cx->changes_search) c->is.state = ABSENT;
  if (is != IS_LOADED && is != IS_THERE) return;
  get_dll_path(cx, &dll, &c->path);
  copy_text(c->why, WHY, explain_path(cx, c->path));
  c->is.state = FOUND;
  c->is.version = c->is.loader = read_cudnn_version(&dll);
  if (c->is.version) c->from = "its version resource";
  release_dll(&dll);
  detect_parts(cx, c, n);
}

#endif
