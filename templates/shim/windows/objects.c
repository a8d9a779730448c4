/* PE images in memory: modules of this process, and files that are mapped as data. Windows has
 * checked their headers. No read exceeds the image. */
#include "../shim.h"

/* Offsets in the headers of a 64-bit image. */
enum {
  AT_HEADERS = 60,
  AT_SECTION_COUNT = 6,
  AT_OPTIONAL_SIZE = 20,
  AT_OPTIONAL = 24,
  AT_IMAGE_SIZE = AT_OPTIONAL + 56,
  AT_DIRECTORIES = AT_OPTIONAL + 112,
  SECTION_SIZE = 40,
  PE32_PLUS = 0x20b
};

enum { EXPORTS = 0, IMPORTS = 1, DELAYED_IMPORTS = 13 };

SHIM_FN uint32_t read_u32(const unsigned char *at) {
  uint32_t n;
  memcpy(&n, at, sizeof n);
  return n;
}

SHIM_FN uint32_t read_u16(const unsigned char *at) { return at[0] | (uint32_t)at[1] << 8; }

/* Returns the PE header, or null if the image has not 64 bits. */
SHIM_FN const unsigned char *get_headers(const unsigned char *image) {
  const unsigned char *headers = image + read_u32(image + AT_HEADERS);
  return read_u16(headers + AT_OPTIONAL) == PE32_PLUS ? headers : 0;
}

/* Returns the bytes at this offset of an image, or null unless `size` bytes are within the image.
 */
SHIM_FN const unsigned char *get_bytes(const unsigned char *image, uint64_t offset, uint32_t size) {
  const unsigned char *headers = get_headers(image);
  const uint32_t end = headers ? read_u32(headers + AT_IMAGE_SIZE) : 0;
  return offset && offset < end && size <= end - offset ? image + offset : 0;
}

/* Returns a string of the image, or an empty one. */
SHIM_API const char *get_image_text(const unsigned char *image, uint64_t offset) {
  uint32_t n;
  for (n = 1; n < NOTE_TEXT; n++) {
    const unsigned char *at = get_bytes(image, offset, n);
    if (!at) return "";
    if (!at[n - 1]) return (const char *)at;
  }
  return "";
}

/* Returns a data directory of an image, or null if it is empty. */
SHIM_FN const unsigned char *get_directory(const unsigned char *image, int which, uint32_t *size) {
  const unsigned char *headers = get_headers(image), *at;
  if (!headers) return 0;
  at = headers + AT_DIRECTORIES + 8 * which;
  *size = read_u32(at + 4);
  return get_bytes(image, read_u32(at), *size);
}

/* Finds a section by the eight bytes of its name; returns its start, or null. */
SHIM_FN const unsigned char *find_section(const unsigned char *image, const char *name,
                                          uint32_t *size) {
  const unsigned char *headers = get_headers(image), *at;
  uint32_t k, count;
  if (!headers) return 0;
  count = read_u16(headers + AT_SECTION_COUNT);
  at = headers + AT_OPTIONAL + read_u16(headers + AT_OPTIONAL_SIZE);
  for (k = 0; k < count; k++, at += SECTION_SIZE)
    if (bytes_are_equal(at, name, 8)) {
      *size = read_u32(at + 8);
      return get_bytes(image, read_u32(at + 12), *size);
    }
  return 0;
}

SHIM_API char to_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Returns the part after the last separator. */
SHIM_API const char *file_name(const char *path) {
  const char *name = path;
  for (; *path; path++)
    if (*path == '\\' || *path == '/' || *path == ':') name = path + 1;
  return name;
}

SHIM_API struct imports start_imports(const unsigned char *image, int delayed) {
  struct imports all;
  all.image = image;
  all.delayed = delayed;
  all.left = 0;
  all.at = get_directory(image, delayed ? DELAYED_IMPORTS : IMPORTS, &all.left);
  return all;
}

SHIM_API int next_import(struct imports *all, struct import *import) {
  const uint32_t size = all->delayed ? 32 : 20;
  if (!all->at || all->left < size) return 0;
  import->dll = get_image_text(all->image, read_u32(all->at + (all->delayed ? 4 : 12)));
  import->names = read_u32(all->at + (all->delayed ? 16 : 0));
  all->at += size;
  all->left -= size;
  return *import->dll != 0;
}

/* Returns the offset of the name of an imported function, 0 at the end; advances past it. Functions
 * that are imported by number are skipped. */
SHIM_API uint64_t next_function(const unsigned char *image, uint64_t *names) {
  for (;; *names += 8) {
    const unsigned char *at = get_bytes(image, *names, 8);
    uint64_t n = 0;
    if (at) memcpy(&n, at, sizeof n);
    if (!n) return 0;
    if (n >> 63) continue;
    *names += 8;
    return (uint32_t)n + 2;
  }
}

/* Returns whether the image imports this function from any DLL. */
SHIM_API int imports_function(const unsigned char *image, const char *function) {
  struct imports all = start_imports(image, 0);
  struct import import;
  uint64_t name;
  while (next_import(&all, &import))
    while ((name = next_function(image, &import.names)))
      if (texts_are_equal(get_image_text(image, name), function)) return 1;
  return 0;
}

/* Returns whether an image exports a function of this name: 1 or 0; -1: unknown. */
SHIM_API int exports_function(const unsigned char *image, const char *function) {
  uint32_t size, k, count;
  const unsigned char *exports = get_directory(image, EXPORTS, &size), *names;
  if (!exports || size < 40) return -1;
  count = read_u32(exports + 24);
  names = count < 1 << 20 ? get_bytes(image, read_u32(exports + 32), count * 4) : 0;
  if (!names) return -1;
  for (k = 0; k < count; k++)
    if (texts_are_equal(get_image_text(image, read_u32(names + 4 * k)), function)) return 1;
  return 0;
}

/* The DLLs of this process, and those that the loader would pick: their paths and versions. */

/* Converts to UTF-16. Returns the empty string if it does not fit. */
SHIM_API const wide *widen(struct context *cx, const char *s) {
  if (!MultiByteToWideChar(UTF_8, 0, s, -1, cx->wide, PATH_MAX)) cx->wide[0] = 0;
  return cx->wide;
}

/* Converts from UTF-16. Returns the empty string if it does not fit. */
SHIM_API const char *narrow(const wide *from, char *to, int size) {
  if (!WideCharToMultiByte(UTF_8, 0, from, -1, to, size, 0, 0)) *to = 0;
  return to;
}

/* Returns whether a path of UTF-16 begins with another, and what follows. */
SHIM_FN const wide *skip_wide(const wide *path, const wide *start) {
  for (; *start; start++)
    if (*path++ != *start) return 0;
  return path;
}

/* Replaces the name of a device at the start of cx->wide by its drive letter:
 * \Device\HarddiskVolume3\x becomes C:\x. Wine returns \??\C:\x. Writes the path to `to`. */
SHIM_FN void name_drive(struct context *cx, char (*to)[PATH_MAX]) {
  static const wide prefix[] = {'\\', '?', '?', '\\', 0};
  const wide *named = skip_wide(cx->wide, prefix);
  wide drive[3] = {'A', ':', 0};
  narrow(named ? named : cx->wide, *to, PATH_MAX);
  for (; drive[0] <= 'Z'; drive[0]++) {
    const wide *rest;
    if (!QueryDosDeviceW(drive, cx->device, PATH_MAX)) continue;
    rest = skip_wide(cx->wide, cx->device);
    if (!rest || *rest != '\\') continue;
    (*to)[0] = (char)drive[0];
    (*to)[1] = ':';
    narrow(rest, *to + 2, PATH_MAX - 2);
    return;
  }
}

/* Returns whether a DLL is mapped as data, and must be released. Otherwise it is a module of the
 * process. The lowest bits of a handle distinguish them. */
SHIM_FN int is_data(handle dll) { return ((uintptr_t)dll & 3) != 0; }

SHIM_API const unsigned char *get_image(handle dll) {
  return (const unsigned char *)((uintptr_t)dll & ~(uintptr_t)3);
}

/* Finds a DLL by name: the loaded one, otherwise the file that the loader would pick now. */
SHIM_API enum lookup find_dll(struct context *cx, const char *name, handle *dll) {
  uint32_t error;
  *dll = GetModuleHandleW(widen(cx, name));
  if (*dll) return IS_LOADED;
  *dll = LoadLibraryExW(cx->wide, 0, AS_DATA);
  if (*dll) return IS_THERE;
  error = GetLastError();
  return error == NO_FILE || error == NO_PATH || error == NO_MODULE ? NOT_THERE : UNREADABLE;
}

SHIM_API void release_dll(handle dll) {
  if (is_data(dll)) FreeLibrary(dll);
}

SHIM_API void get_dll_path(struct context *cx, handle dll, char (*to)[PATH_MAX]) {
  **to = 0;
  if (is_data(dll)) {
    if (K32GetMappedFileNameW(GetCurrentProcess(), (void *)get_image(dll), cx->wide, PATH_MAX))
      name_drive(cx, to);
  } else if (GetModuleFileNameW(dll, cx->wide, PATH_MAX)) {
    narrow(cx->wide, *to, PATH_MAX);
  }
}

/* Reads the file version of the version resource: major, minor, build, private. Returns whether
 * there is one. */
SHIM_API int read_file_version(handle dll, uint16_t version[4]) {
  enum { VERSION_TYPE = 16, SIGNATURE = (int)0xfeef04bd };
  const handle found = FindResourceW(dll, (const wide *)1, (const wide *)VERSION_TYPE);
  const unsigned char *at;
  uint32_t size, k;
  if (!found) return 0;
  size = SizeofResource(dll, found);
  at = (const unsigned char *)LockResource(LoadResource(dll, found));
  for (k = 0; at && k + 16 <= size; k += 4) {
    if (read_u32(at + k) != (uint32_t)SIGNATURE) continue;
    version[0] = (uint16_t)read_u16(at + k + 10);
    version[1] = (uint16_t)read_u16(at + k + 8);
    version[2] = (uint16_t)read_u16(at + k + 14);
    version[3] = (uint16_t)read_u16(at + k + 12);
    return 1;
  }
  return 0;
}

/* Finds the notes of the modules: in the section `.cudagd`, with the header of an ELF note. */

/* Removes notes of this file that are equal to an earlier one. An object that is linked twice has
 * two. */
SHIM_FN void remove_equal_notes(struct context *cx) {
  int k, i, kept = 0;
  for (k = 0; k < cx->notes; k++) {
    const struct note *n = &cx->note[k];
    for (i = 0; i < kept; i++)
      if (cx->note[i].size == n->size &&
          bytes_are_equal(cx->note[i].descriptor, n->descriptor, n->size))
        break;
    if (i == kept) cx->note[kept++] = *n;
  }
  cx->notes = kept;
}

SHIM_FN void collect_module_notes(struct context *cx, const struct loaded_file *file) {
  uint32_t left = 0;
  const unsigned char *p = find_section(file->base, ".cudagd", &left);
  if (p) collect_notes(cx, p, left, file, file->base == cx->own, 1);
}

/* Stores the path of a module; returns "" if there is no room. */
SHIM_FN const char *store_module_name(struct context *cx, const handle module) {
  char *to = cx->names.at + cx->names.used;
  get_dll_path(cx, module, &cx->path);
  if (text_length(cx->path) + 2 > sizeof cx->names.at - cx->names.used) return "";
  copy_text(to, sizeof cx->names.at - cx->names.used, cx->path);
  cx->names.used += text_length(to) + 1;
  return to;
}

/* Stores the notes of this program and of the DLLs that were loaded with it. */
SHIM_API void read_notes(struct context *cx) {
  struct loaded_file file = {__ImageBase, ""};
  uint32_t bytes = 0, size, k;
  cx->own = __ImageBase;
  cx->program = 1;
  collect_module_notes(cx, &file);
  remove_equal_notes(cx);
  add_absent_note(cx, &file);
  if (!K32EnumProcessModules(GetCurrentProcess(), cx->modules, sizeof cx->modules, &bytes)) return;
  for (k = 0; k < bytes / sizeof *cx->modules && k < MAX_MODULES; k++) {
    file.base = (const unsigned char *)cx->modules[k];
    if (file.base == cx->own || !find_section(file.base, ".cudagd", &size)) continue;
    file.name = store_module_name(cx, cx->modules[k]);
    collect_module_notes(cx, &file);
  }
}

/* The rows of a note. Kernels of an unsealed file are not read from memory: the report names them
 * as not judged. */

SHIM_API union row get_row(struct context *cx, const struct note *n, uint32_t i) {
  (void)cx;
  return read_note_row(n, i);
}

SHIM_API const char *read_row_text(struct context *cx, const struct note *n, struct text_ref ref,
                                   char (*text)[NOTE_TEXT]) {
  (void)cx;
  return read_note_text(n, ref, text);
}

SHIM_API uint32_t make_seen_rows(struct context *cx, const struct note *n) {
  (void)cx;
  (void)n;
  return 0;
}
