/* Detects the cuDNN that this file has loaded or would load, without running it. */
#include "../shim.h"

/* Returns the DLL of a soname, as NVIDIA names it: libcudnn_ops.so.9 is cudnn_ops64_9.dll,
 * libcudart.so.11.0 is cudart64_110.dll. Returns 0 for a name without a number. */
SHIM_FN int name_dll(const char *soname, char (*to)[NOTE_TEXT]) {
  const char *end = find_text(soname, ".so.");
  struct text t = start_text(*to, sizeof *to);
  if (!end || !starts_with(soname, "lib")) return 0;
  for (soname += 3; soname < end;) put_char(&t, *soname++);
  put(&t, "64_");
  for (end += 4; *end; end++)
    if (*end != '.') put_char(&t, *end);
  put(&t, ".dll");
  return !is_truncated(&t);
}

/* Returns whether both paths have the same directory. */
SHIM_FN int have_same_dir(const char *a, const char *b) {
  const char *const end_a = file_name(a), *const end_b = file_name(b);
  if (end_a - a != end_b - b) return 0;
  for (; a < end_a; a++)
    if (to_lower(*a) != to_lower(*b++)) return 0;
  return 1;
}

/* Adds a separator and a name, so that have_same_dir() compares a directory. */
SHIM_FN const char *as_dir(char (*path)[PATH_MAX]) {
  struct text t = continue_path(path);
  put_char(&t, '\\');
  return *path;
}

/* Returns why the loader picks this file, by its directory. */
SHIM_FN const char *explain_path(struct context *cx, const char *path, char (*dir)[PATH_MAX]) {
  GetModuleFileNameW(0, cx->wide, PATH_MAX);
  if (have_same_dir(path, narrow(cx->wide, *dir, PATH_MAX))) return "the directory of the program";
  GetSystemDirectoryW(cx->wide, PATH_MAX);
  narrow(cx->wide, *dir, PATH_MAX);
  if (have_same_dir(path, as_dir(dir))) return "System32";
  GetCurrentDirectoryW(PATH_MAX, cx->wide);
  narrow(cx->wide, *dir, PATH_MAX);
  return have_same_dir(path, as_dir(dir)) ? "the current directory" : "PATH";
}

/* Reads the release of a DLL of cuDNN from its version resource; 0 if it is unknown. cuDNN 9 has
 * its release there, older ones have 6.14.11 and the result of cudnnGetVersion(). */
SHIM_FN uint32_t read_cudnn_version(handle dll) {
  enum { OLDEST_WITH_RELEASE = 7 };
  uint16_t v[4];
  if (!read_file_version(dll, v)) return 0;
  if (v[0] < OLDEST_WITH_RELEASE) return decode_version(v[3]);
  return v[0] > 99 || (v[1] | v[2]) > 255 ? 0 : (uint32_t)v[0] << 16 | v[1] << 8 | v[2];
}

/* Finds a sublibrary: a loaded one, otherwise the one next to cuDNN. If the loader picks another
 * file, it is unknown which one cuDNN opens. */
SHIM_FN enum lookup find_part(struct context *cx, const struct cudnn *c, const char *name,
                              handle *dll, char (*path)[PATH_MAX]) {
  struct text sibling;
  const char *at, *end = file_name(c->path);
  const enum lookup is = find_dll(cx, name, dll);
  if (is == IS_LOADED || is == UNREADABLE) return is;
  if (is == IS_THERE) {
    get_dll_path(cx, *dll, path);
    if (have_same_dir(*path, c->path)) return is;
    release_dll(*dll);
    return UNREADABLE;
  }
  sibling = start_text(*path, sizeof *path);
  for (at = c->path; at < end;) put_char(&sibling, *at++);
  put(&sibling, name);
  if (is_truncated(&sibling)) return UNREADABLE;
  *dll = LoadLibraryExW(widen(cx, *path), 0, AS_DATA);
  return *dll ? IS_THERE : UNREADABLE;
}

/* Detects the sublibraries that the note lists for this major. One that is not found is unknown,
 * because it is not documented where cuDNN searches. */
SHIM_FN void detect_parts(struct context *cx, struct cudnn *c, const struct note *n,
                          char (*path)[PATH_MAX]) {
  const char *suffix = find_text(c->soname, "64_");
  char soname[NOTE_TEXT];
  uint32_t i;
  for (i = 0; suffix && i < n->head.rows && c->parts < MAX_INNER; i++) {
    const union row row = read_note_row(n, i);
    struct part *p = &c->part[c->parts];
    handle dll;
    memset(p, 0, sizeof *p);
    if (row.kind != ROW_PART || !read_note_text(n, row.inner.file, &soname) ||
        !name_dll(soname, &p->file) || !find_text(p->file, suffix))
      continue;
    p->is.row = i;
    c->parts++;
    if (find_part(cx, c, p->file, &dll, path) == UNREADABLE) continue;
    p->is.state = FOUND;
    p->is.version = read_cudnn_version(dll);
    get_dll_path(cx, dll, path);
    copy_text(p->path, sizeof p->path, *path);
    release_dll(dll);
  }
}

/* Searches the names that the program opens, in their order. */
SHIM_FN enum lookup search_cudnn(struct context *cx, struct cudnn *c, handle *dll) {
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
                          const struct library_row *row, char (*path)[PATH_MAX]) {
  handle dll;
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
  get_dll_path(cx, dll, &c->path);
  copy_text(c->why, WHY, explain_path(cx, c->path, path));
  c->is.state = FOUND;
  c->is.version = c->is.loader = read_cudnn_version(dll);
  if (c->is.version) c->from = "its version resource";
  release_dll(dll);
  detect_parts(cx, c, n, path);
}

/* Detects the driver by the version resource of nvcuda.dll, which does not show the GPUs. */

/* Returns the release in a version of Windows, in the packing of widen_release(): the last five
 * digits of 31.0.15.5222 are 552.22. Returns 0 if it is none. */
SHIM_FN uint32_t decode_release(uint32_t third, uint32_t fourth) {
  const uint32_t digits = third % 10 * 10000 + fourth;
  if (fourth > 9999 || digits < 10000) return 0;
  return digits / 100 << 20 | digits % 100 << 8;
}

/* The mark shows other tools that this name is the guard's, and not one of the program. */
static const char marked_nvcuda[] = "guard:nvcuda.dll";
#define NVCUDA (marked_nvcuda + sizeof "guard:" - 1)

/* Reads the nvcuda.dll of the driver. */
SHIM_FN void detect_nvcuda(struct context *cx, struct driver *d) {
  uint16_t v[4];
  struct text path;
  enum lookup is;
  handle dll;
  d->path = &cx->libcuda;
  GetSystemDirectoryW(cx->wide, PATH_MAX);
  narrow(cx->wide, *d->path, PATH_MAX);
  path = continue_path(d->path);
  put(&path, "\\");
  put(&path, NVCUDA);
  dll = LoadLibraryExW(widen(cx, *d->path), 0, AS_DATA);
  if (dll) {
    d->is.state = FOUND;
    if (read_file_version(dll, v)) d->is.user = decode_release(v[2], v[3]);
    release_dll(dll);
    return;
  }
  /* Others provide a DLL of this name for GPUs of another vendor, with its own releases. */
  is = find_dll(cx, NVCUDA, &dll);
  if (is == IS_LOADED || is == IS_THERE) {
    d->is.state = FOUND;
    get_dll_path(cx, dll, d->path);
    release_dll(dll);
  } else if (is == NOT_THERE) {
    **d->path = 0;
    d->is.state = cx->changes_search ? UNKNOWN : ABSENT;
  }
}

SHIM_FN void detect_driver(struct context *cx) {
  struct driver *d = &cx->driver;
  const char *devices;
  reset_driver(d);
  d->is.source = DETECTED;
  detect_nvcuda(cx, d);
  if (d->is.state != FOUND) return;
  if (is_variable_one("CUDA_FORCE_PTX_JIT")) d->is.forces_ptx = FOUND;
  if (is_variable_one("CUDA_DISABLE_PTX_JIT")) d->is.disables_ptx = FOUND;
  devices = get_variable("CUDA_VISIBLE_DEVICES");
  d->chosen = *devices != 0;
  if (texts_are_equal(devices, "-1")) d->is.gpu_count = 0;
}

/* Detects the facts that the judge needs. None of them requires another process. */

/* Detects the version of the shared cudart of a note. The last number of its version resource is
 * CUDART_VERSION. */
SHIM_FN void detect_cudart(struct context *cx, const struct note *n, char (*path)[PATH_MAX]) {
  struct judge_call *call = &cx->call;
  char soname[NOTE_TEXT], name[NOTE_TEXT];
  uint16_t v[4];
  handle dll;
  enum lookup is;
  call->cudart.source = DETECTED;
  read_row_text(cx, n, get_row(cx, n, call->cudart_row).driver.cudart, &soname);
  if (!name_dll(soname, &name)) return;
  is = find_dll(cx, name, &dll);
  if (is != IS_LOADED && is != IS_THERE) return;
  get_dll_path(cx, dll, path);
  call->cudart_soname = store_untrusted_text(cx, name);
  call->cudart_path = store_untrusted_text(cx, *path);
  call->cudart.state = FOUND;
  if (read_file_version(dll, v) && v[3] >= 7000 && v[3] % 10 == 0)
    call->cudart.version = (uint32_t)v[3] / 1000 << 16 | v[3] % 1000 / 10 << 8;
  release_dll(dll);
}

SHIM_API void detect_needed(struct context *cx, struct note *n, uint32_t needs, int late) {
  union row row;
  (void)late;
  if (needs & NEED_CUDNN) {
    row = read_note_row(n, cx->call.result.library);
    detect_cudnn(cx, &cx->shared.note.cudnn, n, &row.cudnn, &cx->path);
  } else if (needs & NEED_CUDART) {
    detect_cudart(cx, n, &cx->path);
  } else {
    detect_driver(cx);
  }
}

/* Functions that are missing in delay-loaded DLLs of NVIDIA. Their first call would end the
 * program. The loader itself ends a program whose import is missing, before any code of the
 * program. */

SHIM_FN int is_nvidias(const char *dll) {
  static const char starts[][10] = {"cudnn64_", "cudart64_", "cublas64_", "cublaslt64",
                                    "cufft64_", "curand64_", "cusolver6", "cusparse6"};
  char lower[16];
  size_t k;
  for (k = 0; k + 1 < sizeof lower && dll[k]; k++) lower[k] = to_lower(dll[k]);
  lower[k] = 0;
  for (k = 0; k < sizeof starts / sizeof *starts; k++)
    if (starts_with(lower, starts[k])) return 1;
  return 0;
}

/* Finds the first function that a DLL lacks; returns its offset in the image of this file, or 0. */
SHIM_FN uint64_t find_missing(const unsigned char *own, handle dll, uint64_t names) {
  uint64_t name;
  while ((name = next_function(own, &names)))
    if (!exports_function(get_image(dll), get_image_text(own, name))) return name;
  return 0;
}

/* Reports a missing function, unless an error already explains it. */
SHIM_API void judge_slots(struct context *cx) {
  struct imports all = start_imports(cx->own, 1);
  struct import import;
  if (!cx->note->own || get_result(cx) == WRONG) return;
  while (next_import(&all, &import)) {
    struct finding *f;
    handle dll;
    enum lookup is;
    uint64_t missing;
    if (!is_nvidias(import.dll)) continue;
    is = find_dll(cx, import.dll, &dll);
    if (is != IS_LOADED && is != IS_THERE) continue;
    missing = cx->changes_search && is == IS_THERE ? 0 : find_missing(cx->own, dll, import.names);
    get_dll_path(cx, dll, &cx->path);
    release_dll(dll);
    if (!missing) continue;
    cx->now = cx->note; /* the note of the program is the first */
    f = add_finding(cx, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
    f->symbol = store_untrusted_text(cx, get_image_text(cx->own, missing));
    f->library = store_untrusted_text(cx, import.dll);
    f->path = store_untrusted_text(cx, cx->path);
    return;
  }
}
