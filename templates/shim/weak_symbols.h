/* Functions that are missing in all libraries. The dynamic linker binds most symbols before the
 * guard runs, and would end the program if one is missing. Sealing makes the symbols weak
 * (cargo-cudaguard/src/linked/seal/slots.rs), so that the slots of a missing function are empty and
 * the guard reports it. The program never calls an empty slot. */
#ifndef CUDAGUARD_WEAK_SYMBOLS_H
#define CUDAGUARD_WEAK_SYMBOLS_H

#include "collection.h"
#include "loaded.h"

enum {
  MADE_WEAK = 8, /* st_other: sealing made the symbol weak. The upper half of st_size is the offset
                    of the library's name, the lower half the first release with the function */
  HAS_VERSION = 16
};

/* In a separate section, so that only these few bytes remain of a copy whose code was dropped. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void
cudaguard_r1_init(void);

/* The number of symbols that sealing made weak in this file. Sealing finds this object by its mark,
 * which shows that the guard supports weak symbols. The constructor shows sealing which code runs
 * before the guard. */
static const volatile struct {
  unsigned char mark[12];
  uint32_t made_weak;
  void (*constructor)(void);
} slots = {{0xc6, 0x2a, 'c', 'u', 'd', 'a', 's', 'l', 'o', 't', 's', 0x95}, 0, cudaguard_r1_init};

SHIM_FN void search_slots(const struct image *im, const struct tags *t, int table, size_t size,
                          const ElfW(Sym) * *found) {
  const ElfW(Rela) *r = (const ElfW(Rela) *)resolve_address(im, t->at[table]);
  const ElfW(Rela) *end = (const ElfW(Rela) *)((const char *)r + size);
  for (; r < end && !*found; r++) {
    const ElfW(Sym) *s =
        (const ElfW(Sym) *)resolve_address(im, t->at[DT_SYMTAB]) + ELF64_R_SYM(r->r_info);
    if ((s->st_other & MADE_WEAK) &&
        *(const ElfW(Sxword) *)(im->file.base + r->r_offset) == r->r_addend)
      *found = s;
  }
}

/* Returns the first symbol with an empty slot, in the order of the dynamic linker, or null. */
SHIM_FN const ElfW(Sym) * find_empty_slot(struct context *cx) {
  const struct image *im = &cx->first;
  const ElfW(Sym) *found = 0;
  struct tags t;
  if (!slots.made_weak) return 0;
  read_tags(&t, im->dynamic, im->entries);
  search_slots(im, &t, DT_RELA, t.at[DT_RELASZ], &found);
  search_slots(im, &t, DT_JMPREL, t.at[DT_PLTRELSZ], &found);
  return found;
}

SHIM_FN void set_slot_names(struct context *cx, struct finding *f, const ElfW(Sym) * s) {
  f->symbol = store_untrusted_text(cx, cx->first.strings + s->st_name);
  f->library = store_untrusted_text(cx, cx->first.strings + ((uint64_t)s->st_size >> 32));
}

/* Reports an empty slot of a function, unless an error already explains it. */
SHIM_FN void judge_slots(struct context *cx) {
  const ElfW(Sym) *s = find_empty_slot(cx);
  struct finding *f;
  if (!s || !cx->note->own || get_result(cx) == WRONG) return;
  cx->now = cx->note; /* the note of the program is the first */
  f = add_finding(cx, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
  set_slot_names(cx, f, s);
  if (is_loaded(cx->texts.at + f->library, &cx->real, 0))
    f->path = store_untrusted_text(cx, cx->real);
  f->min = (uint32_t)s->st_size;
}

#endif
