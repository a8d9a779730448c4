/* Functions that no library has. The loader looks for most before any code of ours runs, and would end the program in its own
 * words. Sealing makes them weak (guard-core/src/seal/slots.rs): where one is missing its slots stay empty, the guard gets to
 * speak, and answers for it that no empty slot is ever called. */

enum {
  MADE_WEAK = 8, /* in st_other: by sealing. st_size then says where the library's name stands, and the first release that has it */
  HAS_VERSION = 16
};

/* How many sealing has made weak in this file. The mark tells it that this guard answers for them. */
static const volatile struct {
  unsigned char mark[12];
  uint32_t made_weak;
} slots = {{0xc6, 0x2a, 'c', 'u', 'd', 'a', 's', 'l', 'o', 't', 's', 0x95}, 0};

CODE void find_empty(const struct image *im, const struct tags *t, int table, size_t size, const ElfW(Sym) * *found) {
  const ElfW(Rela) *r = (const ElfW(Rela) *)in_image(im, t->at[table]);
  for (; size && !*found; size -= sizeof *r, r++) {
    const ElfW(Sym) *s = (const ElfW(Sym) *)in_image(im, t->at[DT_SYMTAB]) + ELF64_R_SYM(r->r_info);
    if ((s->st_other & MADE_WEAK) && *(const ElfW(Sxword) *)(im->base + r->r_offset) == r->r_addend) *found = s;
  }
}

/* The first symbol with an empty slot, in the order in which the loader comes to them; or null. */
CODE const ElfW(Sym) *empty_slot(void) {
  const struct image *im = &g.first;
  const ElfW(Sym) *found = 0;
  struct tags t;
  if (!slots.made_weak) return 0;
  take_tags(&t, im->dynamic, im->entries);
  find_empty(im, &t, DT_RELA, t.at[DT_RELASZ], &found);
  find_empty(im, &t, DT_JMPREL, t.at[DT_PLTRELSZ], &found);
  return found;
}

CODE void name_slot(struct finding *f, const ElfW(Sym) * s) {
  show(f->symbol, sizeof f->symbol, g.first.strings + s->st_name);
  show(f->library, sizeof f->library, g.first.strings + ((uint64_t)s->st_size >> 32));
}

/* Where nothing else is wrong already that explains it. */
CODE void judge_slots(void) {
  const ElfW(Sym) *s = empty_slot();
  struct finding *f;
  if (!s || !g.note->own || overall() == WRONG) return;
  g.now = g.note; /* the program's is the first */
  f = find(LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
  name_slot(f, s);
  if (is_loaded(f->library, &g.real, 0)) show(f->path, sizeof f->path, g.real);
  f->min = (uint32_t)s->st_size;
}
