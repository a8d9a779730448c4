/* Readers of note descriptors (MANIFEST.md). No read exceeds the descriptor. */
#ifndef CUDAGUARD_NOTE_H
#define CUDAGUARD_NOTE_H

#include "context.h"
#include "text.h"
#include "versions.h"

SHIM_FN int is_note_readable(const struct note *n) {
  return n->state == NOTE_WHOLE || n->state == NOTE_IS_NEWER;
}

/* Offsets from SEEN on are not in a note; the lower byte is a PTX ISA, as in a row of GPUs. */
enum { SEEN = 0xff00 };

/* Reads a string of the note; returns null if it is outside of the descriptor or too long. */
SHIM_FN const char *read_note_text(const struct note *n, struct text_ref ref,
                                   char (*text)[NOTE_TEXT]) {
  char *to = *text;
  *to = 0;
  if (ref.length >= NOTE_TEXT || ref.at > n->size || ref.length > n->size - ref.at) return 0;
  memcpy(to, n->descriptor + ref.at, ref.length);
  to[ref.length] = 0;
  return to;
}

/* Reads a row. Rows may be longer in later revisions; the additional bytes are ignored. */
SHIM_FN union row read_note_row(const struct note *n, uint32_t i) {
  union row row;
  memcpy(&row, n->descriptor + n->head.rows_at + (size_t)i * n->head.row_size, sizeof row);
  return row;
}

SHIM_FN int is_row_known(const union row *row) {
  return row->kind >= ROW_LIBRARY && row->kind <= ROW_GPU;
}

/* Rows of every kind have these two strings at the same offsets. */
SHIM_FN int are_texts_complete(const struct note *n, const union row *row) {
  char text[NOTE_TEXT];
  return read_note_text(n, row->cudnn.soname, &text) &&
         read_note_text(n, row->cudnn.library, &text);
}

/* Returns why the note is invalid, or null. */
SHIM_FN const char *find_damage(const struct note *n) {
  const struct note_head *h = &n->head;
  char text[NOTE_TEXT];
  uint32_t i;
  int is_complete = 1;
  if (n->size < HEAD_SIZE || !bytes_are_equal(h->magic, "cudagrd", sizeof h->magic))
    return "it does not begin with `cudagrd`";
  if (!h->revision || h->row_size < ROW_SIZE ||
      (h->rows && h->rows_at < offsetof(struct note_head, mismatch)) || h->rows_at > n->size ||
      (uint32_t)h->rows * h->row_size > n->size - h->rows_at)
    return "its header is invalid";
  if (h->revision == REVISION)
    is_complete = read_note_text(n, h->name, &text) && read_note_text(n, h->version, &text);
  for (i = 0; i < h->rows; i++) {
    const union row row = read_note_row(n, i);
    if (is_row_known(&row)) is_complete &= are_texts_complete(n, &row);
  }
  return is_complete ? 0 : "a text is not within it";
}

SHIM_FN void read_note(struct note *n, const unsigned char *descriptor, uint32_t size) {
  memset(n, 0, sizeof *n);
  n->descriptor = descriptor;
  n->size = size;
  memcpy(&n->head, descriptor, size < sizeof n->head ? size : sizeof n->head);
  n->damage = find_damage(n);
  n->state = n->damage                      ? NOTE_IS_DAMAGED
             : n->head.revision != REVISION ? NOTE_IS_NEWER
                                            : NOTE_WHOLE;
  if (n->damage) memset(&n->head, 0, sizeof n->head);
}

/* Appends the name and version of a component; `number` is the index of its note plus 1. */
SHIM_FN void put_component(struct context *cx, struct text *t, uint32_t number) {
  const struct note *n = &cx->note[number - 1];
  char text[NOTE_TEXT];
  if (!number || !is_note_readable(n)) return;
  read_note_text(n, n->head.name, &text);
  put_untrusted(t, text);
  put_char(t, ' ');
  read_note_text(n, n->head.version, &text);
  put_untrusted(t, text);
}

/* Returns the version of the toolkit in the note, or 0 if there is none or it is unknown. */
SHIM_FN uint32_t read_toolkit(const struct note *n) {
  char version[NOTE_TEXT];
  uint32_t part[3];
  if (!read_note_text(n, n->head.toolkit, &version) || !parse_numbers(version, 1, part)) return 0;
  return part[0] * 1000 + part[1] * 10;
}

#endif
