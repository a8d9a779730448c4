/* Finds the notes of the modules: in the section `.cudagd`, with the header of an ELF note. */
#ifndef CUDAGUARD_NOTES_IN_MEMORY_H
#define CUDAGUARD_NOTES_IN_MEMORY_H

#include "process.h"
#include "stored_notes.h"

/* The start of the file that contains this guard; the linker defines it. */
extern const unsigned char __ImageBase[];

/* Returns whether an equal note is stored. An object that is linked twice has two. */
SHIM_FN int has_equal_note(struct context *cx, const unsigned char *descriptor, uint32_t size) {
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].size == size && bytes_are_equal(cx->note[k].descriptor, descriptor, size))
      return 1;
  return 0;
}

SHIM_FN void store_note(struct context *cx, const unsigned char *image, const char *name,
                        const unsigned char *descriptor, long size) {
  const int own = image == cx->own;
  const uint32_t stored = size > 65535 ? 65535 : (uint32_t)size;
  struct note *n;
  if (own && has_equal_note(cx, descriptor, stored)) return;
  n = make_room_for_note(cx, own);
  if (!n) return;
  read_note(n, descriptor, stored);
  n->own = own;
  n->file.base = image;
  n->file.name = name;
}

SHIM_FN void collect_notes(struct context *cx, const unsigned char *image, const char *name) {
  uint32_t left = 0;
  const unsigned char *p = find_section(image, ".cudagd", &left);
  while (p && left >= NOTE_HEADER) {
    const long size = get_descriptor_size(p, left);
    const uint32_t step = size < 0 ? 4 : NOTE_HEADER + (((uint32_t)size + 3) & ~3u);
    if (size >= 0) store_note(cx, image, name, p + NOTE_HEADER, size);
    if (step >= left) break;
    p += step;
    left -= step;
  }
}

/* Stores the path of a module; returns "" if there is no room. */
SHIM_FN const char *store_module_name(struct context *cx, const handle module) {
  char *to = cx->names.at + cx->names.used;
  struct dll dll;
  dll.is_data = 0;
  dll.module = module;
  get_dll_path(cx, &dll, &cx->found);
  if (text_length(cx->found) + 2 > sizeof cx->names.at - cx->names.used) return "";
  copy_text(to, sizeof cx->names.at - cx->names.used, cx->found);
  cx->names.used += text_length(to) + 1;
  return to;
}

/* Stores the notes of this program and of the DLLs that were loaded with it. */
SHIM_FN void read_notes(struct context *cx) {
  uint32_t bytes = 0, size, k;
  cx->own = __ImageBase;
  cx->program = 1;
  collect_notes(cx, cx->own, "");
  add_absent_note(cx);
  if (!K32EnumProcessModules(cx->process, cx->modules, sizeof cx->modules, &bytes)) return;
  for (k = 0; k < bytes / sizeof *cx->modules && k < MAX_MODULES; k++) {
    const unsigned char *image = (const unsigned char *)cx->modules[k];
    if (image != cx->own && find_section(image, ".cudagd", &size))
      collect_notes(cx, image, store_module_name(cx, cx->modules[k]));
  }
}

#endif
