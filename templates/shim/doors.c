/* The doors: the constructor, and what a program or library calls. */

CODE int mode_of(const char *word) {
  if (same(word, "off")) return MODE_OFF;
  if (same(word, "warn")) return MODE_WARN;
  return same(word, "enforce") ? MODE_ENFORCE : MODE_MANIFEST;
}

CODE void prepare(int all) {
  struct walk w;
  const char *mode;
  w.all = all, w.index = w.noted = 0;
  g.notes = 0;
  g.notes_left_out = 0;
  if (!g.ready) g.library_path = variable("LD_LIBRARY_PATH");
  dl_iterate_phdr(on_image, &w);
  look_at_kernels();
  if (g.ready) return;
  g.ready = 1;
  g.startup = w.index;
  mode = variable("CUDAGUARD");
  g.mode = mode_of(mode);
  if (*mode && g.mode == MODE_MANIFEST && g.first_noted) {
    char line[SHOW + 100];
    struct text t = text_in(line, sizeof line);
    put(&t, "cudaguard: CUDAGUARD is ");
    put_outside(&t, mode);
    put(&t, ", not off, warn or enforce: ignored\n");
    say(line);
  }
}

/* Whoever holds the lock: a process, or the start, which asks the kernel for no number. */
enum { START = -1 };

CODE void lock(int holder) {
  int seen = 0;
  while (!__atomic_compare_exchange_n(&g.lock, &seen, holder, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (seen != holder && seen != START) continue; /* left locked by the process that this one was forked from: taken over */
    sys1(SYS_sched_yield, 0);
    seen = 0;
  }
}

CODE void unlock(void) { __atomic_store_n(&g.lock, 0, __ATOMIC_RELEASE); }

/* Completes the verdict, into g.verdict. */
CODE void complete(void) {
  struct verdict *v = &g.verdict;
  const struct finding *f = 0;
  const char *why = 0;
  struct text open;
  int k = 0, result = CANNOT_TELL;
  prepare(0);
  if (g.mode == MODE_OFF) {
    why = "the guard is switched off by CUDAGUARD=off";
  } else {
    judge(1, 1);
    leave_report("checked");
    while (k < g.notes && !in_scope(&g.note[k])) k++;
    if (k == g.notes) why = "this file has no manifest";
    else result = overall();
  }
  memset(v, 0, sizeof *v);
  if (why) cut(v->message, sizeof v->message, why);
  else f = decisive(result);
  if (f) compose(f);
  open = text_in(v->not_judged, sizeof v->not_judged);
  for (k = 0; !why && k < g.notes; k++)
    if (in_scope(&g.note[k])) put_not_judged(&open, 0, &g.note[k], "; ");
  v->verdict = result, v->level = g.level;
}

#ifdef __cplusplus
extern "C" {
#endif

SHOWN int SHARED(check)(char *text, size_t size);
SHOWN int SHARED(verdict)(void *to);
SHOWN void SHARED(start)(void);

SHOWN int SHARED(check)(char *text, size_t size) {
  int result;
  lock(this_process());
  complete();
  result = g.verdict.verdict;
  if (text && size) {
    struct text t = text_in(text, size);
    if (g.verdict.code) {
      put(&t, "[CG");
      put_number(&t, (uint32_t)g.verdict.code);
      put(&t, "] ");
    }
    put(&t, g.verdict.message);
  }
  unlock();
  return result;
}

SHOWN int SHARED(verdict)(void *to) {
  int result;
  size_t size;
  memcpy(&size, to, sizeof size); /* what the caller knows of it: newer members are left out, older ones never move */
  if (size > sizeof g.verdict) size = sizeof g.verdict;
  lock(this_process());
  complete();
  result = g.verdict.verdict;
  if (size > sizeof size) memcpy((char *)to + sizeof size, (const char *)&g.verdict + sizeof size, size - sizeof size);
  unlock();
  return result;
}

SHOWN void SHARED(start)(void) {
  const ElfW(Sym) * slot;
  int refuse;
  if (g.ready) return;
  lock(START);
  prepare(1);
  if (g.mode != MODE_OFF && g.notes) {
    judge(1, 0);
    refuse = next_to_tell(0, 1) != 0;
    leave_report(refuse ? "refuse" : next_to_tell(0, 0) ? "warn" : "start");
    tell(refuse);
    if (refuse) leave(STATUS_REFUSED);
  }
  slot = empty_slot();
  if (slot) end_as_the_loader(slot);
  unlock();
}

#ifdef __cplusplus
}
#endif

/* Outside the section of the rest, so that a copy whose code was dropped keeps these few bytes and no more. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void cudaguard_r1_init(void) { SHARED(start)(); }
