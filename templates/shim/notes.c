/* Readers of note descriptors (MANIFEST.md). No read exceeds the descriptor. */
#include "shim.h"

SHIM_API int is_note_readable(const struct note *n) {
  return n->state == NOTE_WHOLE || n->state == NOTE_IS_NEWER;
}

/* Reads a string of the note; returns null if it is outside of the descriptor or too long. */
SHIM_API const char *read_note_text(const struct note *n, struct text_ref ref,
                                    char (*text)[NOTE_TEXT]) {
  char *to = *text;
  *to = 0;
  if (ref.length >= NOTE_TEXT || ref.at > n->size || ref.length > n->size - ref.at) return 0;
  memcpy(to, n->descriptor + ref.at, ref.length);
  to[ref.length] = 0;
  return to;
}

/* Reads a row. Rows may be longer in later revisions; the additional bytes are ignored. */
SHIM_API union row read_note_row(const struct note *n, uint32_t i) {
  union row row;
  memcpy(&row, n->descriptor + n->head.rows_at + (size_t)i * n->head.row_size, sizeof row);
  return row;
}

SHIM_API int is_row_known(const union row *row) {
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

/* Appends the name and version of a component. */
SHIM_API void put_component(struct text *t, const struct note *n) {
  char text[NOTE_TEXT];
  if (!is_note_readable(n)) return;
  read_note_text(n, n->head.name, &text);
  put_untrusted(t, text);
  put_char(t, ' ');
  read_note_text(n, n->head.version, &text);
  put_untrusted(t, text);
}

/* Returns the version of the toolkit in the note, or 0 if there is none or it is unknown. */
SHIM_API uint32_t read_toolkit(const struct note *n) {
  enum { LIMIT = 61000 }; /* the tables of requirements have numbers of 16 bits */
  char version[NOTE_TEXT];
  uint32_t part[3], toolkit;
  if (!read_note_text(n, n->head.toolkit, &version) || !parse_numbers(version, 1, part)) return 0;
  toolkit = part[0] * 1000 + part[1] * 10;
  return toolkit < LIMIT ? toolkit : 0;
}

/* The list of the notes that were found in memory. */

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

/* Stores the notes in these bytes of a file, or only counts them. Searches the header at every
 * multiple of 4 bytes, because mold puts notes with both alignments into one segment, so the
 * alignment of the segment does not give the next note. */
SHIM_API int collect_notes(struct context *cx, const unsigned char *p, size_t left,
                           const struct loaded_file *file, int own, int keep) {
  int taken = 0;
  while (left >= NOTE_HEADER) {
    const long size = get_descriptor_size(p, left);
    const size_t step = size < 0 ? 4 : NOTE_HEADER + (((size_t)size + 3) & ~(size_t)3);
    struct note *n = size >= 0 && keep ? make_room_for_note(cx, own) : 0;
    if (n) {
      read_note(n, p + NOTE_HEADER, size > 65535 ? 65535 : (uint32_t)size);
      n->own = own;
      n->file = *file;
    }
    taken += size >= 0;
    if (step >= left) break;
    p += step;
    left -= step;
  }
  return taken;
}

/* Adds an empty note if this file has none, so that the guard reports the missing note. */
SHIM_API void add_absent_note(struct context *cx, const struct loaded_file *file) {
  struct note *n;
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].own) return;
  n = make_room_for_note(cx, 1);
  if (!n) return;
  memset(n, 0, sizeof *n);
  n->state = NOTE_IS_ABSENT;
  n->own = 1;
  n->file = *file;
}
