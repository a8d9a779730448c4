/* The entry points: the constructor, and the functions that a program or library calls. */
#ifndef CUDAGUARD_ENTRY_H
#define CUDAGUARD_ENTRY_H

#include "notes_in_memory.h"
#include "start.h"

static struct context the_context;

SHIM_FN void read_process(struct context *cx, int all) {
  struct walk w;
  w.context = cx;
  w.all = all;
  w.index = w.noted = 0;
  cx->notes = 0;
  cx->dropped_notes = 0;
  if (!cx->ready) cx->library_path = get_variable("LD_LIBRARY_PATH");
  dl_iterate_phdr(visit_image, &w);
  add_absent_note(cx);
  read_own_kernels(cx);
  if (cx->ready) return;
  cx->ready = 1;
  cx->library_path_is_unknown = is_started_by_loader(&cx->first);
  cx->startup = w.index;
  read_mode(cx, cx->first_noted);
}

SHIM_FN void lock(struct context *cx) {
  while (__atomic_exchange_n(&cx->lock, 1, __ATOMIC_ACQUIRE)) sys1(SYS_sched_yield, 0);
}

SHIM_FN void unlock(struct context *cx) { __atomic_store_n(&cx->lock, 0, __ATOMIC_RELEASE); }

/* Fills a verdict that has no finding. */
SHIM_FN void set_unchecked(struct verdict *v, const char *why) {
  memset(v, 0, sizeof *v);
  v->verdict = CANNOT_TELL;
  copy_text(v->message, sizeof v->message, why);
}

/* Fills a verdict with the result of the judge. */
SHIM_FN void set_verdict(struct context *cx, struct verdict *v) {
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
SHIM_FN int is_forked(const struct context *cx) { return cx->process && cx->process != get_process(); }

/* Returns the verdict of the parent process: of its last check() if no thread was in one during the
 * fork, otherwise of its start. */
SHIM_FN const struct verdict *get_inherited(struct context *cx) {
  if (cx->is_checked && !__atomic_load_n(&cx->lock, __ATOMIC_ACQUIRE)) return &cx->draft;
  if (!cx->is_published)
    set_unchecked(&cx->published, "the process was forked while the guard was at work");
  return &cx->published;
}

/* Checks the current state of the process and calls `use` with the verdict. */
SHIM_FN int check(struct context *cx, void (*use)(const struct verdict *v, void *to, size_t size),
                  void *to, size_t size) {
  int result;
  if (is_forked(cx)) {
    const struct verdict *v = get_inherited(cx);
    use(v, to, size);
    return v->verdict;
  }
  lock(cx);
  cx->process = get_process();
  read_process(cx, 0);
  if (cx->mode != MODE_OFF) judge(cx, 1, 1);
  set_verdict(cx, &cx->draft);
  cx->is_checked = 1;
  use(&cx->draft, to, size);
  result = cx->draft.verdict;
  unlock(cx);
  return result;
}

SHIM_FN void copy_reason(const struct verdict *v, void *to, size_t size) {
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
SHIM_FN void copy_members(const struct verdict *v, void *to, size_t size) {
  const size_t first = sizeof v->size;
  if (size > sizeof *v) size = sizeof *v;
  if (size > first) memcpy((char *)to + first, (const char *)v + first, size - first);
}

/* Prints the message of the dynamic linker for a missing symbol, and exits with its status. */
SHIM_FN void fail_like_loader(struct context *cx, const ElfW(Sym) * s) {
  struct finding *f = &cx->findings.spare;
  struct text t = start_text(cx->real, sizeof cx->real);
  set_slot_names(cx, f, s);
  if (!(s->st_other & HAS_VERSION)) f->library = 0;
  /* The first string in the file is argv[0]. */
  f->path = store_untrusted_text(
      cx, read_file_text(cx, "/proc/self/cmdline", cx->answer, sizeof cx->answer)
              ? cx->answer
              : find_program(cx));
  put_filled(cx, &t, get_text(TEXT_AT(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER_sentence)), f);
  put_char(&t, '\n');
  print_text(cx->real);
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

/* The constructor; weak_symbols.h declares it with its priority. */
static void cudaguard_r1_init(void) { SHARED(start)(); }

#endif
