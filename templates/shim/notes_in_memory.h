/* Finds the notes of the loaded objects. */
#ifndef CUDAGUARD_NOTES_IN_MEMORY_H
#define CUDAGUARD_NOTES_IN_MEMORY_H

#include "image.h"
#include "note.h"

enum { NOTE_HEADER = 24 }; /* sizes, type and owner */

static const char anchor = 0; /* its address identifies the image of this file */

/* Returns a place for a note. If the table is full, a note of this file replaces a note of another
 * file. */
SHIM_NOINLINE struct note *make_room_for_note(struct context *cx, int own) {
  int k = cx->notes;
  if (cx->notes < MAX_NOTES) return &cx->note[cx->notes++];
  cx->dropped_notes++;
  while (own && k-- > 0)
    if (!cx->note[k].own) return &cx->note[k];
  return 0;
}

/* Returns the size of the descriptor if this is a note of cudaguard, or -1. */
SHIM_FN long get_descriptor_size(const unsigned char *p, size_t left) {
  static const unsigned char mark[NOTE_HEADER - 8] = {1,   0,   0,   0,   'c', 'u', 'd', 'a',
                                                      'g', 'u', 'a', 'r', 'd', 0,   0,   0};
  uint32_t sizes[2]; /* of the owner name and the descriptor */
  memcpy(sizes, p, sizeof sizes);
  if (sizes[0] != 10 || !bytes_are_equal(p + sizeof sizes, mark, sizeof mark) ||
      sizes[1] > left - NOTE_HEADER)
    return -1;
  return (long)sizes[1];
}

SHIM_FN void store_note(struct context *cx, const struct image *im, int own,
                        const unsigned char *descriptor, long size) {
  struct note *n = make_room_for_note(cx, own);
  if (!n) return;
  read_note(n, descriptor, size > 65535 ? 65535 : (uint32_t)size);
  n->own = own;
  n->file = get_loaded_file(im);
}

/* Stores the notes of an image, or only counts them. Searches the note header at every multiple of
 * 4 bytes, because mold puts notes with both alignments into one segment, so the alignment of the
 * segment does not give the next note. */
SHIM_FN int collect_notes(struct context *cx, const struct image *im, int own, int keep) {
  int taken = 0, k;
  for (k = 0; k < im->n; k++) {
    const ElfW(Phdr) *ph = &im->ph[k];
    const unsigned char *p = (const unsigned char *)find_segment(im, ph);
    size_t left = ph->p_filesz;
    if (ph->p_type != PT_NOTE || !p || left > count_mapped(im, (uintptr_t)p)) continue;
    while (left >= NOTE_HEADER) {
      const long size = get_descriptor_size(p, left);
      const size_t step = size < 0 ? 4 : NOTE_HEADER + (((size_t)size + 3) & ~(size_t)3);
      if (size >= 0) taken++;
      if (size >= 0 && keep) store_note(cx, im, own, p + NOTE_HEADER, size);
      if (step >= left) break;
      p += step;
      left -= step;
    }
  }
  return taken;
}

/* Adds an empty note if this file has none, so that the guard reports the missing note. */
SHIM_FN void add_absent_note(struct context *cx) {
  struct note *n;
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].own) return;
  n = make_room_for_note(cx, 1);
  if (!n) return;
  memset(n, 0, sizeof *n);
  n->state = NOTE_IS_ABSENT;
  n->own = 1;
  n->file = get_loaded_file(&cx->own);
}

struct walk {
  struct context *context;
  int all, index, noted;
};

/* Stores the notes of this file and, in a program, those of the libraries that were loaded with it,
 * because neither can be unloaded meanwhile. A constructor stores all notes for the report, because
 * nothing can be unloaded then. */
SHIM_FN int visit_image(struct dl_phdr_info *info, size_t size, void *data) {
  struct walk *w = (struct walk *)data;
  struct context *cx = w->context;
  struct image im = make_image(info);
  int own = 0, k, first = w->index++ == 0, program, taken;
  (void)size;
#ifdef __GLIBC__
  /* In a dlmopen namespace, the first object is a library. The name of the program is empty, unless
   * it was started as `ld.so program`. */
  program = first && (!*im.name || (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR));
#else
  program = first;
#endif
  if (program && im.name && *im.name) cx->loader_name = im.name;
  if (program || !im.name) im.name = "";
  for (k = 0; k < im.n; k++)
    if (im.ph[k].p_type == PT_LOAD &&
        (uintptr_t)&anchor - (im.base + im.ph[k].p_vaddr) < im.ph[k].p_memsz)
      own = 1;
  if (first) {
    read_image_names(&im);
    cx->first = im;
  }
  if (own) {
    read_image_names(&im);
    cx->program = program;
    cx->own = im;
  }
  taken = collect_notes(cx, &im, own, own || w->all || (cx->program && w->index <= cx->startup));
  if (taken && !w->noted++) cx->first_noted = own;
  return 0;
}

#endif
