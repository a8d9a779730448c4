/* The list of the notes that were found in memory. */
#ifndef CUDAGUARD_STORED_NOTES_H
#define CUDAGUARD_STORED_NOTES_H

#include "note.h"
#include "process.h"

enum { NOTE_HEADER = 24 }; /* sizes, type and owner */

/* Returns a place for a note. If the table is full, a note of this file replaces a note of another
 * file. */
SHIM_FN struct note *make_room_for_note(struct context *cx, int own) {
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
  n->file = get_own_file(cx);
}

#endif
