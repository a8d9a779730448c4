/* Functions that are missing in all libraries. The dynamic linker binds most symbols before the
 * guard runs, and would end the program if one is missing. Sealing makes the symbols weak
 * (cargo-cudaguard/src/linked/seal/slots.rs), so that the slots of a missing function are empty and
 * the guard reports it. The program never calls an empty slot. */
#include "shim.h"

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
  read_tags(&t, im->dynamic);
  search_slots(im, &t, DT_RELA, t.at[DT_RELASZ], &found);
  search_slots(im, &t, DT_JMPREL, t.at[DT_PLTRELSZ], &found);
  return found;
}

SHIM_FN void set_slot_names(struct context *cx, struct finding *f, const ElfW(Sym) * s) {
  f->symbol = store_untrusted_text(cx, cx->first.strings + s->st_name);
  f->library = store_untrusted_text(cx, cx->first.strings + ((uint64_t)s->st_size >> 32));
}

/* Reports an empty slot of a function, unless an error already explains it. */
SHIM_API void judge_slots(struct context *cx) {
  const ElfW(Sym) *s = find_empty_slot(cx);
  struct finding *f;
  if (!s || !cx->note->own || get_result(cx) == WRONG) return;
  cx->now = cx->note; /* the note of the program is the first */
  f = add_finding(cx, LIBRARY_LACKS_SYMBOL_EMPTY_SLOT);
  set_slot_names(cx, f, s);
  if (is_loaded(cx->texts + f->library, &cx->file.path))
    f->path = store_untrusted_text(cx, cx->file.path);
  f->min = (uint32_t)s->st_size;
}

/* The entry points: the constructor, and the functions that a program or library calls. */

static struct context the_context;

SHIM_FN void lock(struct context *cx) {
  while (__atomic_exchange_n(&cx->lock, 1, __ATOMIC_ACQUIRE)) sys1(SYS_sched_yield, 0);
}

SHIM_FN void unlock(struct context *cx) { __atomic_store_n(&cx->lock, 0, __ATOMIC_RELEASE); }

/* Fills a verdict that has no finding. */
SHIM_FN void set_unchecked(struct cudaguard_verdict *v, const char *why) {
  memset(v, 0, sizeof *v);
  v->verdict = CANNOT_TELL;
  copy_text(v->message, sizeof v->message, why);
}

/* Fills a verdict with the result of the judge. */
SHIM_FN void set_verdict(struct context *cx, struct cudaguard_verdict *v) {
  const int result = get_result(cx);
  const struct finding *f = find_decisive(cx, result);
  struct text open;
  int k;
  if (cx->mode == MODE_OFF) {
    set_unchecked(v, "CUDAGUARD=off switches the guard off");
    return;
  }
  memset(v, 0, sizeof *v);
  if (f) compose_verdict(cx, f, v);
  open = start_text(v->not_judged, sizeof v->not_judged);
  for (k = 0; k < cx->notes; k++)
    if (in_scope(cx, &cx->note[k])) put_not_judged(cx, &open, 0, &cx->note[k], "; ");
  v->verdict = result;
  v->level = cx->level;
}

/* Returns whether this is another process than the one that started. It may have inherited a lock
 * of the dynamic linker or of the guard that nobody releases. */
SHIM_FN int is_forked(const struct context *cx) {
  return cx->process && cx->process != get_process();
}

/* Returns the verdict of the parent process: of its last check() if no thread was in one during the
 * fork, otherwise of its start. */
SHIM_FN const struct cudaguard_verdict *get_inherited(struct context *cx) {
  if (cx->is_checked && !__atomic_load_n(&cx->lock, __ATOMIC_ACQUIRE)) return &cx->checked;
  if (!cx->is_published)
    set_unchecked(&cx->published, "the process was forked while the guard was at work");
  return &cx->published;
}

/* Checks the current state of the process and calls `use` with the verdict. */
SHIM_FN int check(struct context *cx,
                  void (*use)(const struct cudaguard_verdict *v, void *to, size_t size), void *to,
                  size_t size) {
  int result;
  if (is_forked(cx)) {
    const struct cudaguard_verdict *v = get_inherited(cx);
    use(v, to, size);
    return v->verdict;
  }
  lock(cx);
  cx->process = get_process();
  read_process(cx, 0);
  if (cx->mode != MODE_OFF) judge(cx, 1, 1);
  set_verdict(cx, &cx->checked);
  cx->is_checked = 1;
  use(&cx->checked, to, size);
  result = cx->checked.verdict;
  unlock(cx);
  return result;
}

SHIM_FN void copy_reason(const struct cudaguard_verdict *v, void *to, size_t size) {
  struct text t;
  if (!to || !size) return;
  t = start_text((char *)to, size);
  if (v->code) {
    put(&t, "[CG");
    put_number(&t, (uint32_t)v->code);
    put(&t, "] ");
  }
  put(&t, v->message);
}

/* Copies the members that the caller's version of cudaguard.h has, except its size. */
SHIM_FN void copy_members(const struct cudaguard_verdict *v, void *to, size_t size) {
  const size_t first = sizeof v->size;
  if (size > sizeof *v) size = sizeof *v;
  memcpy((char *)to + first, (const char *)v + first, size - first);
}

/* Prints the message of the dynamic linker for a missing symbol, and exits with its status. */
SHIM_FN void fail_like_loader(struct context *cx, const ElfW(Sym) * s) {
  struct finding *f = &cx->findings.spare;
  struct text t = start_text(cx->shared.output.page, sizeof cx->shared.output.page);
  set_slot_names(cx, f, s);
  if (!(s->st_other & HAS_VERSION)) f->library = 0;
  /* The first string in the file is argv[0]. */
  f->path = store_untrusted_text(
      cx, read_file_text(cx, "/proc/self/cmdline", t.at, t.size) ? t.at : find_program(cx));
  f->kind = LIBRARY_LACKS_SYMBOL_BY_THE_LOADER;
  put_filled(cx, &t, get_text(get_meaning(f)->sentence), f);
  put_char(&t, '\n');
  print_text(t.at);
  exit_now(STATUS_OF_LOADER);
}

#ifdef __cplusplus
extern "C" {
#endif

SHIM_SHARED int SHARED(check)(char *text, size_t size);
SHIM_SHARED int SHARED(verdict)(void *to);
SHIM_SHARED void SHARED(start)(void);

SHIM_SHARED int SHARED(check)(char *text, size_t size) {
  return check(&the_context, copy_reason, text, size);
}

SHIM_SHARED int SHARED(verdict)(void *to) {
  size_t size;
  memcpy(&size, to, sizeof size);
  return check(&the_context, copy_members, to, size);
}

SHIM_SHARED void SHARED(start)(void) {
  struct context *cx = &the_context;
  const ElfW(Sym) * slot;
  if (cx->started) return;
  cx->started = 1;
  lock(cx); /* an earlier constructor or .preinit_array may have called check() in a thread */
  cx->process = get_process();
  read_process(cx, 1);
  if (cx->mode != MODE_OFF && cx->notes) judge_start(cx);
  set_verdict(cx, &cx->published);
  cx->is_published = 1;
  slot = find_empty_slot(cx);
  if (slot) fail_like_loader(cx, slot);
  unlock(cx);
}

#ifdef __cplusplus
}
#endif

/* The constructor; entry.c declares it with its priority. */
static void cudaguard_r1_init(void) { SHARED(start)(); }
