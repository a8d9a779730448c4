/* Notes: the descriptors of MANIFEST.md, every read within their bytes. */

enum { NOTE_WHOLE, NOTE_IS_NEWER, NOTE_IS_DAMAGED, NOTE_IS_ABSENT };

struct note {
  const unsigned char *descriptor;
  uint32_t size;
  int state, own;     /* own: of the file that this very guard stands in */
  const char *damage; /* what is wrong with its bytes */
  struct note_head head; /* zeros if it is damaged or absent */
  uint32_t cudnn, cudnn_cuda; /* the version that it gets, and the CUDA that this was made with */
  uint64_t not_unfit; /* of the GPUs, where it has kernels */
  int sees;           /* the kernels in its image stand for rows (self.c) */
  struct image image;
};

CODE int note_is_readable(const struct note *n) { return n->state == NOTE_WHOLE || n->state == NOTE_IS_NEWER; }

/* A row; `kind` says which member it is. */
union row {
  uint16_t kind;
  struct library_row cudnn;
  struct part_row inner;
  struct driver_row driver;
  struct gpu_row gpu;
};

/* No CUDA machine is big-endian, so that a struct of these members is what the bytes are. */
typedef char the_head_is_as_long_as_it_is_written[sizeof(struct note_head) == HEAD_SIZE ? 1 : -1];
typedef char a_row_is_as_long_as_it_is_written[sizeof(union row) == ROW_SIZE ? 1 : -1];

enum { SEEN = 0xffff };
CODE void seen_text(const struct note *n, uint32_t which, char *to);

/* A text of the note; null where it points outside or is longer than what is kept of one. */
CODE const char *note_text(const struct note *n, struct text_ref ref, char (*text)[NOTE_TEXT]) {
  char *to = *text;
  *to = 0;
  if (n->sees && ref.at == SEEN) {
    seen_text(n, ref.length, to);
    return to;
  }
  if (ref.length >= NOTE_TEXT || ref.at > n->size || ref.length > n->size - ref.at) return 0;
  memcpy(to, n->descriptor + ref.at, ref.length);
  to[ref.length] = 0;
  return to;
}

CODE union row seen_row(const struct note *n, int i);

/* Rows may be longer in later revisions: what is behind the known part is left out. */
CODE union row note_row(const struct note *n, uint32_t i) {
  union row row;
  if (i >= n->head.rows) return seen_row(n, (int)(i - n->head.rows));
  memcpy(&row, n->descriptor + n->head.rows_at + (size_t)i * n->head.row_size, sizeof row);
  return row;
}

CODE int row_is_known(const union row *row) { return row->kind >= ROW_LIBRARY && row->kind <= ROW_GPU; }

/* The two texts that every row has stand in the same place, whatever its kind. */
CODE int texts_are_whole(const struct note *n, const union row *row) {
  char text[NOTE_TEXT];
  return note_text(n, row->cudnn.soname, &text) && note_text(n, row->cudnn.library, &text);
}

/* What is wrong with a note's bytes, or null. */
CODE const char *note_damage(const struct note *n) {
  const struct note_head *h = &n->head;
  char text[NOTE_TEXT];
  uint32_t i;
  if (n->size < HEAD_SIZE || !same_bytes(h->magic, "cudagrd", sizeof h->magic)) return "it does not begin with `cudagrd`";
  if (!h->revision) return "its revision is 0";
  if (h->row_size < ROW_SIZE) return "its rows are too short";
  if ((h->rows && h->rows_at < offsetof(struct note_head, mismatch)) || h->rows_at > n->size ||
      (uint32_t)h->rows * h->row_size > n->size - h->rows_at)
    return "its rows are not within it";
  if (h->revision == REVISION && (!note_text(n, h->name, &text) || !note_text(n, h->version, &text)))
    return "the component's name is not within it";
  for (i = 0; i < h->rows; i++) {
    union row row = note_row(n, i);
    if (row_is_known(&row) && !texts_are_whole(n, &row)) return "a text of a row is not within it";
  }
  return 0;
}

CALLED void read_note(struct note *n, const unsigned char *descriptor, uint32_t size) {
  memset(n, 0, sizeof *n);
  n->descriptor = descriptor;
  n->size = size;
  memcpy(&n->head, descriptor, size < sizeof n->head ? size : sizeof n->head);
  n->damage = note_damage(n);
  n->state = n->damage ? NOTE_IS_DAMAGED : n->head.revision != REVISION ? NOTE_IS_NEWER : NOTE_WHOLE;
  if (n->damage) memset(&n->head, 0, sizeof n->head);
}
