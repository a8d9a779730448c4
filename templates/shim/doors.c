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
  note_absence();
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

CODE void make_fork_page(void) {
  long page;
  if (g.page) return;
  g.page = &g.without_page;
  page = sys6(SYS_mmap, 0, sizeof *g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if ((unsigned long)page > (unsigned long)-4096) return;
  if (sys3(SYS_madvise, page, sizeof *g.page, MADV_WIPEONFORK) < 0) sys2(SYS_munmap, page, sizeof *g.page);
  else g.page = (struct fork_page *)page;
}

CODE void lock(void) {
  const int holder = this_process();
  int seen = 0;
  while (!__atomic_compare_exchange_n(&g.page->lock, &seen, holder, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (seen != holder) continue; /* inherited from the process that this one was forked from: taken over */
    sys1(SYS_sched_yield, 0);
    seen = 0;
  }
}

CODE void unlock(void) { __atomic_store_n(&g.page->lock, 0, __ATOMIC_RELEASE); }

/* Returns whether this process may use the loader. */
CODE int may_use_loader(void) {
  const int process = this_process();
  if (g.page->process == process && g.process == process) return 1;
  if (g.process && g.loader_is_stuck != process && !loader_is_free()) g.loader_is_stuck = process;
  if (g.process && g.loader_is_stuck == process) return 0;
  g.page->process = g.process = process;
  return 1;
}

/* Completes g.verdict, and publishes it: a child that is forked at any time inherits a whole one. */
CODE void publish(int result, const char *why) {
  struct verdict *v = &g.verdict;
  const struct finding *f = why ? 0 : decisive(result);
  struct text open;
  int k, next = g.current == 1 ? 2 : 1;
  memset(v, 0, sizeof *v);
  if (why) cut(v->message, sizeof v->message, why);
  if (f) compose(f);
  open = text_in(v->not_judged, sizeof v->not_judged);
  for (k = 0; !why && k < g.notes; k++)
    if (in_scope(&g.note[k])) put_not_judged(&open, 0, &g.note[k], "; ");
  v->verdict = result, v->level = g.level;
  g.published[next - 1] = *v;
  __atomic_store_n(&g.current, next, __ATOMIC_RELEASE);
}

static const char switched_off[] = "the guard is switched off by CUDAGUARD=off";

/* Judges the process as it is now, and returns the verdict. In a forked child in which the loader cannot be asked any more, this is
 * the last one of its parent. */
CODE const struct verdict *complete(void) {
  if (may_use_loader()) {
    prepare(0);
    if (g.mode != MODE_OFF) {
      judge(1, 1);
      leave_report("checked");
    }
    publish(g.mode == MODE_OFF ? CANNOT_TELL : overall(), g.mode == MODE_OFF ? switched_off : 0);
  } else if (!g.current) {
    publish(CANNOT_TELL, "the process was forked while the guard was at work");
  }
  return &g.published[g.current - 1];
}

#ifdef __cplusplus
extern "C" {
#endif

SHOWN int SHARED(check)(char *text, size_t size);
SHOWN int SHARED(verdict)(void *to);
SHOWN void SHARED(start)(void);

SHOWN int SHARED(check)(char *text, size_t size) {
  const struct verdict *v;
  int result;
  make_fork_page();
  lock();
  v = complete();
  result = v->verdict;
  if (text && size) {
    struct text t = text_in(text, size);
    if (v->code) {
      put(&t, "[CG");
      put_number(&t, (uint32_t)v->code);
      put(&t, "] ");
    }
    put(&t, v->message);
  }
  unlock();
  return result;
}

SHOWN int SHARED(verdict)(void *to) {
  const struct verdict *v;
  int result;
  size_t size;
  memcpy(&size, to, sizeof size); /* what the caller knows of it: newer members are left out, older ones never move */
  if (size > sizeof *v) size = sizeof *v;
  make_fork_page();
  lock();
  v = complete();
  result = v->verdict;
  if (size > sizeof size) memcpy((char *)to + sizeof size, (const char *)v + sizeof size, size - sizeof size);
  unlock();
  return result;
}

SHOWN void SHARED(start)(void) {
  const ElfW(Sym) * slot;
  int refuse;
  if (g.started) return;
  g.started = 1;
  make_fork_page();
  lock();
  g.page->process = g.process = this_process();
  prepare(1);
  if (g.mode != MODE_OFF && g.notes) {
    judge(1, 0);
    refuse = next_to_tell(0, 1) != 0;
    leave_report(refuse ? "refuse" : next_to_tell(0, 0) ? "warn" : "start");
    tell(refuse);
    if (refuse) leave(STATUS_REFUSED);
  }
  publish(g.mode == MODE_OFF ? CANNOT_TELL : overall(), g.mode == MODE_OFF ? switched_off : 0);
  slot = empty_slot();
  if (slot) end_as_the_loader(slot);
  unlock();
}

#ifdef __cplusplus
}
#endif

/* Outside the section of the rest, so that a copy whose code was dropped keeps these few bytes and no more. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void cudaguard_r1_init(void) { SHARED(start)(); }
