/* The DLLs of this process, and those that the loader would pick: their paths and versions. */
#ifndef CUDAGUARD_DLL_H
#define CUDAGUARD_DLL_H

#include "image.h"

/* Converts to UTF-16. Returns the empty string if it does not fit. */
SHIM_FN const wide *widen(struct context *cx, const char *s) {
  if (!MultiByteToWideChar(UTF_8, 0, s, -1, cx->wide, PATH_MAX)) cx->wide[0] = 0;
  return cx->wide;
}

/* Converts from UTF-16. Returns the empty string if it does not fit. */
SHIM_FN const char *narrow(const wide *from, char *to, int size) {
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

/* A mapped DLL: a module of the process, or a file that is mapped as data and must be released. */
struct dll {
  handle module;
  int is_data;
};

SHIM_FN const unsigned char *get_image(const struct dll *dll) {
  return (const unsigned char *)((uintptr_t)dll->module & ~(uintptr_t)3);
}

/* Finds a DLL by name: the loaded one, otherwise the file that the loader would pick now. */
SHIM_FN enum lookup find_dll(struct context *cx, const char *name, struct dll *dll) {
  uint32_t error;
  dll->is_data = 0;
  dll->module = GetModuleHandleW(widen(cx, name));
  if (dll->module) return IS_LOADED;
  dll->module = LoadLibraryExW(cx->wide, 0, AS_DATA);
  dll->is_data = dll->module != 0;
  if (dll->is_data) return IS_THERE;
  error = GetLastError();
  return error == NO_FILE || error == NO_PATH || error == NO_MODULE ? NOT_THERE : UNREADABLE;
}

SHIM_FN void release_dll(struct dll *dll) {
  if (dll->is_data) FreeLibrary(dll->module);
  dll->is_data = 0;
}

SHIM_FN void get_dll_path(struct context *cx, const struct dll *dll, char (*to)[PATH_MAX]) {
  **to = 0;
  if (dll->is_data) {
    if (K32GetMappedFileNameW(cx->process, (void *)get_image(dll), cx->wide, PATH_MAX))
      name_drive(cx, to);
  } else if (GetModuleFileNameW(dll->module, cx->wide, PATH_MAX)) {
    narrow(cx->wide, *to, PATH_MAX);
  }
}

/* Reads the file version of the version resource: major, minor, build, private. Returns whether
 * there is one. */
SHIM_FN int read_file_version(const struct dll *dll, uint16_t version[4]) {
  enum { VERSION_TYPE = 16, SIGNATURE = (int)0xfeef04bd };
  const handle found = FindResourceW(dll->module, (const wide *)1, (const wide *)VERSION_TYPE);
  const unsigned char *at;
  uint32_t size, k;
  if (!found) return 0;
  size = SizeofResource(dll->module, found);
  at = (const unsigned char *)LockResource(LoadResource(dll->module, found));
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
  struct text t;
  t.at = *path;
  t.used = text_length(*path);
  t.size = PATH_MAX;
  put_char(&t, '\\');
  return *path;
}

/* Returns why the loader picks this file, by its directory. */
SHIM_FN const char *explain_path(struct context *cx, const char *path) {
  GetModuleFileNameW(0, cx->wide, PATH_MAX);
  if (have_same_dir(path, narrow(cx->wide, cx->real, PATH_MAX)))
    return "the directory of the program";
  GetSystemDirectoryW(cx->wide, PATH_MAX);
  narrow(cx->wide, cx->real, PATH_MAX);
  if (have_same_dir(path, as_dir(&cx->real))) return "System32";
  GetCurrentDirectoryW(PATH_MAX, cx->wide);
  narrow(cx->wide, cx->real, PATH_MAX);
  return have_same_dir(path, as_dir(&cx->real)) ? "the current directory" : "PATH";
}

#endif
