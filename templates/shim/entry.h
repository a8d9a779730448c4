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

/* Creates the fork page, unless there is one. Several threads may do so at the same time. */
SHIM_FN void make_fork_page(struct context *cx) {
  struct fork_page *page = &cx->without_page, *none = 0;
  long room;
  if (__atomic_load_n(&cx->fork_page, __ATOMIC_ACQUIRE)) return;
  room = sys6(SYS_mmap, 0, sizeof *page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0);
  if ((unsigned long)room <= (unsigned long)-4096) {
    if (sys3(SYS_madvise, room, sizeof *page, MADV_WIPEONFORK) >= 0)
      page = (struct fork_page *)room;
    else sys2(SYS_munmap, room, sizeof *page);
  }
  if (!__atomic_compare_exchange_n(&cx->fork_page, &none, page, 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE) &&
      page != &cx->without_page)
    sys2(SYS_munmap, room, sizeof *page);
}

SHIM_FN void lock(struct context *cx) {
  const int holder = get_process();
  int seen = 0;
  make_fork_page(cx);
  while (!__atomic_compare_exchange_n(&cx->fork_page->lock, &seen, holder, 0, __ATOMIC_ACQUIRE,
                                      __ATOMIC_RELAXED)) {
    if (seen != holder)
      continue; /* inherited from the parent process: acquire it */
    sys1(SYS_sched_yield, 0);
    seen = 0;
  }
}

SHIM_FN void unlock(struct context *cx) {
  __atomic_store_n(&cx->fork_page->lock, 0, __ATOMIC_RELEASE);
}

/* Returns whether this is certainly the process that ran the start. A forked child may have its ID
 * in another PID namespace, where the first ID is 1, or much later, with another parent. */
SHIM_FN int is_started_process(const struct context *cx) {
  const int process = get_process();
  return cx->process == process && process != 1 && cx->parent == (int)sys1(SYS_getppid, 0);
}

/* Returns whether this process may call the dynamic linker. */
SHIM_FN int may_use_loader(struct context *cx) {
  const int process = get_process();
  if (cx->fork_page->process == process && cx->process == process) return 1;
  if (cx->process && !is_started_process(cx) && cx->loader_is_stuck != process && !is_loader_free())
    cx->loader_is_stuck = process;
  if (cx->process && cx->loader_is_stuck == process) return 0;
  cx->fork_page->process = cx->process = process;
  return 1;
}

/* Fills a verdict and publishes it atomically, so that a forked child always inherits a complete
 * one. */
SHIM_FN void publish(struct context *cx, int result, const char *why) {
  struct verdict *v = get_next_verdict(cx);
  const struct finding *f = why ? 0 : find_decisive(cx, result);
  struct text open;
  int k;
  memset(v, 0, offsetof(struct verdict, message));
  v->hint[0] = 0;
  copy_text(v->message, sizeof v->message, why ? why : "");
  if (f) compose_verdict(cx, f);
  open = start_text(v->not_judged, sizeof v->not_judged);
  for (k = 0; !why && k < cx->notes; k++)
    if (in_scope(cx, &cx->note[k])) put_not_judged(cx, &open, 0, &cx->note[k], "; ");
  v->verdict = result;
  v->level = cx->level;
  __atomic_store_n(&cx->current, (int)(v - cx->verdict) + 1, __ATOMIC_RELEASE);
}

/* Publishes the verdict of the findings, unless CUDAGUARD is off. */
SHIM_NOINLINE void publish_result(struct context *cx) {
  if (cx->mode == MODE_OFF)
    publish(cx, CANNOT_TELL, "CUDAGUARD=off switches the guard off");
  else publish(cx, get_result(cx), 0);
}

/* Checks the current state of the process and returns the verdict. In a forked child that must not
 * call the dynamic linker, returns the last verdict of the parent. */
SHIM_FN const struct verdict *complete_verdict(struct context *cx) {
  if (may_use_loader(cx)) {
    read_process(cx, 0);
    if (cx->mode != MODE_OFF) {
      judge(cx, 1, 1);
      write_report(cx, "checked");
    }
    publish_result(cx);
  } else if (!cx->current) {
    publish(cx, CANNOT_TELL, "the process was forked while the guard was at work");
  }
  return &cx->verdict[cx->current - 1];
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
  struct context *cx = &the_context;
  const struct verdict *v;
  int result;
  lock(cx);
  v = complete_verdict(cx);
  result = v->verdict;
  if (text && size) {
    struct text t = start_text(text, size);
    if (v->code) {
      put(&t, "[CG");
      put_number(&t, (uint32_t)v->code);
      put(&t, "] ");
    }
    put(&t, v->message);
  }
  unlock(cx);
  return result;
}

SHIM_SHARED int SHARED(verdict)(void *to) {
  struct context *cx = &the_context;
  const struct verdict *v;
  int result;
  size_t size;
  memcpy(&size, to, sizeof size); /* the size in the caller's version of cudaguard.h */
  if (size > sizeof *v) size = sizeof *v;
  lock(cx);
  v = complete_verdict(cx);
  result = v->verdict;
  if (size > sizeof size)
    memcpy((char *)to + sizeof size, (const char *)v + sizeof size, size - sizeof size);
  unlock(cx);
  return result;
}

SHIM_SHARED void SHARED(start)(void) {
  struct context *cx = &the_context;
  const ElfW(Sym) * slot;
  int shares;
  if (cx->started) return;
  cx->started = 1;
  /* Only if a constructor or .preinit_array called check(), other threads may do so now. */
  shares = cx->fork_page != 0;
  if (shares) lock(cx);
  cx->process = get_process();
  cx->parent = (int)sys1(SYS_getppid, 0);
  read_process(cx, 1);
  if (cx->mode != MODE_OFF && cx->notes) judge_start(cx);
  publish_result(cx);
  slot = find_empty_slot(cx);
  if (slot) fail_like_loader(cx, slot);
  if (shares) unlock(cx);
}

#ifdef __cplusplus
}
#endif

/* In a separate section, so that only these few bytes remain of a copy whose code was dropped. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void
cudaguard_r1_init(void) {
  SHARED(start)();
}

#endif
