/* PE images in memory: modules of this process, and files that are mapped as data. Windows has
 * checked their headers. No read exceeds the image. */
#ifndef CUDAGUARD_IMAGE_H
#define CUDAGUARD_IMAGE_H

#include "context.h"
#include "text.h"

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
SHIM_FN const char *get_image_text(const unsigned char *image, uint64_t offset) {
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

SHIM_FN char to_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Compares names of files, whose case Windows ignores. */
SHIM_FN int names_match(const char *a, const char *b) {
  for (; *a && to_lower(*a) == to_lower(*b); a++) b++;
  return to_lower(*a) == to_lower(*b);
}

/* Returns the part after the last separator. */
SHIM_FN const char *file_name(const char *path) {
  const char *name = path;
  for (; *path; path++)
    if (*path == '\\' || *path == '/' || *path == ':') name = path + 1;
  return name;
}

/* An iterator over the DLLs that an image imports, or loads at the first call. */
struct imports {
  const unsigned char *image, *at;
  uint32_t left;
  int delayed;
};

struct import {
  const char *dll;
  uint64_t names; /* offset of the table of names */
};

SHIM_FN struct imports start_imports(const unsigned char *image, int delayed) {
  struct imports all;
  all.image = image;
  all.delayed = delayed;
  all.left = 0;
  all.at = get_directory(image, delayed ? DELAYED_IMPORTS : IMPORTS, &all.left);
  return all;
}

SHIM_FN int next_import(struct imports *all, struct import *import) {
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
SHIM_FN uint64_t next_function(const unsigned char *image, uint64_t *names) {
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
SHIM_FN int imports_function(const unsigned char *image, const char *function) {
  struct imports all = start_imports(image, 0);
  struct import import;
  uint64_t name;
  while (next_import(&all, &import))
    while ((name = next_function(image, &import.names)))
      if (texts_are_equal(get_image_text(image, name), function)) return 1;
  return 0;
}

/* Returns whether an image exports a function of this name: 1 or 0; -1: unknown. */
SHIM_FN int exports_function(const unsigned char *image, const char *function) {
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

#endif
