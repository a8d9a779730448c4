/* Finds the notes of the loaded objects. */
#ifndef CUDAGUARD_NOTES_IN_MEMORY_H
#define CUDAGUARD_NOTES_IN_MEMORY_H

#include "image.h"
#include "stored_notes.h"

static const char anchor = 0; /* its address identifies the image of this file */

SHIM_FN void store_note(struct context *cx, const struct image *im, int own,
                        const unsigned char *descriptor, long size) {
  struct note *n = make_room_for_note(cx, own);
  if (!n) return;
  read_note(n, descriptor, size > 65535 ? 65535 : (uint32_t)size);
  n->own = own;
  n->file = im->file;
}

/* Stores the notes of an image, or only counts them. Searches the note header at every multiple of
 * 4 bytes, because mold puts notes with both alignments into one segment, so the alignment of the
 * segment does not give the next note. */
SHIM_FN int collect_notes(struct context *cx, const struct image *im, int own, int keep) {
  int taken = 0, k;
  for (k = 0; k < im->file.n; k++) {
    const ElfW(Phdr) *ph = &im->file.ph[k];
    const unsigned char *p;
    size_t left = ph->p_filesz;
    if (ph->p_type != PT_NOTE) continue;
    p = (const unsigned char *)find_segment(im, ph);
    if (!p || left > count_mapped(im, (uintptr_t)p)) continue;
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
  int own, first = w->index++ == 0, program, taken;
  (void)size;
#ifdef __GLIBC__
  /* In a dlmopen namespace, the first object is a library. The name of the program is empty, unless
   * it was started as `ld.so program`. */
  program = first && (!*im.file.name || (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR));
#else
  program = first;
#endif
  if (program && im.file.name && *im.file.name) cx->loader_name = im.file.name;
  if (program || !im.file.name) im.file.name = "";
  own = count_mapped(&im, (uintptr_t)&anchor) != 0;
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
