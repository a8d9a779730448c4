/* Loaded objects. */

/* A dynamic table by tag, each but DT_NEEDED being there once; 0 is the GNU hash table's place. */
struct tags {
  ElfW(Addr) at[32];
};

CODE void take_tags(struct tags *t, const ElfW(Dyn) * d, size_t n) {
  memset(t, 0, sizeof *t);
  for (; n && d->d_tag != DT_NULL; n--, d++)
    if (d->d_tag > 0 && d->d_tag < 32) t->at[d->d_tag] = d->d_un.d_ptr;
    else if (d->d_tag == DT_GNU_HASH) t->at[0] = d->d_un.d_ptr;
}

struct image {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name;
  const ElfW(Dyn) * dynamic;
  size_t entries;
  const char *strings;
  size_t size;                            /* of the strings */
  const char *soname, *rpath, *runpath;   /* among them, or null */
};

CODE const char *image_string(const struct image *im, ElfW(Addr) at) { return at && at < im->size ? im->strings + at : 0; }

CODE void image_names(struct image *im) {
  struct tags t;
  int k;
  im->dynamic = 0, im->entries = 0;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_DYNAMIC) {
      im->dynamic = (const ElfW(Dyn) *)(im->base + im->ph[k].p_vaddr);
      im->entries = im->ph[k].p_memsz / sizeof *im->dynamic;
    }
  take_tags(&t, im->dynamic, im->entries);
  im->strings = (const char *)(t.at[DT_STRTAB] < im->base ? t.at[DT_STRTAB] + im->base : t.at[DT_STRTAB]); /* musl: as linked */
  im->size = t.at[DT_STRSZ];
  im->soname = image_string(im, t.at[DT_SONAME]);
  im->rpath = image_string(im, t.at[DT_RPATH]);
  im->runpath = image_string(im, t.at[DT_RUNPATH]);
}

CODE void image_of(struct image *im, const struct dl_phdr_info *info) {
  im->base = info->dlpi_addr, im->ph = info->dlpi_phdr, im->n = info->dlpi_phnum, im->name = info->dlpi_name;
}

/* The name by which it needs a library `stem` of any version, or null. */
CODE const char *image_needs(const struct image *im, const char *stem) {
  size_t i;
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) {
    const char *needed = im->dynamic[i].d_tag == DT_NEEDED ? image_string(im, im->dynamic[i].d_un.d_ptr) : 0;
    if (!needed) continue;
    needed = base_name(needed);
    if (starts(needed, stem) && (!needed[len(stem)] || needed[len(stem)] == '.')) return needed;
  }
  return 0;
}

/* ---- notes ----------------------------------------------------------------------------------------------------------- */

enum { NOTE_WHOLE, NOTE_NEWER, NOTE_DAMAGED };

struct note {
  const unsigned char *d;
  uint32_t size;
  int state, own;
  uint32_t cudnn;    /* the version that it gets */
  uint64_t not_unfit; /* of the GPUs, where it has kernels */
  struct image image;
};

/* No CUDA machine is big-endian. */
INLINE uint32_t u16(const void *p) {
  uint16_t n;
  memcpy(&n, p, sizeof n);
  return n;
}

INLINE uint32_t u32(const void *p) {
  uint32_t n;
  memcpy(&n, p, sizeof n);
  return n;
}

/* A text of the note; null where it points outside or is longer than what is kept of one. */
CODE const char *note_text(const struct note *n, const unsigned char *ref, char (*text)[TEXT]) {
  char *to = *text;
  uint32_t at = u16(ref), length = u16(ref + 2);
  *to = 0;
  if (length >= TEXT || at > n->size || length > n->size - at) return 0;
  memcpy(to, n->d + at, length);
  to[length] = 0;
  return to;
}

CODE uint32_t note_rows(const struct note *n) { return u16(n->d + 10); }
CODE const unsigned char *note_row(const struct note *n, uint32_t i) { return n->d + u16(n->d + 12) + i * u16(n->d + 14); }

CODE int note_judge_bytes(const struct note *n) {
  uint32_t rows, start, size, i;
  char text[TEXT];
  if (n->size < 44 || !same_bytes(n->d, "cudagrd", 8)) return NOTE_DAMAGED;
  rows = u16(n->d + 10), start = u16(n->d + 12), size = u16(n->d + 14);
  if (!u16(n->d + 8) || size < 40 || (rows && start < 20) || start > n->size || rows * size > n->size - start) return NOTE_DAMAGED;
  for (i = 0; i <= rows; i++) { /* the head, then the rows: their two texts stand at the same distance */
    const unsigned char *texts = i ? note_row(n, i - 1) + 24 : n->d + 28;
    if (i ? u16(texts - 24) < ROW_CUDNN || u16(texts - 24) > ROW_GPU : u16(n->d + 8) != 1) continue;
    if (!note_text(n, texts, &text) || !note_text(n, texts + 4, &text)) return NOTE_DAMAGED;
  }
  return u16(n->d + 8) == 1 ? NOTE_WHOLE : NOTE_NEWER;
}
