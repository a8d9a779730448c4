/* The doors. */

CODE void prepare(int all) {
  static const char TIGHT modes[] = "off\0warn\0enforce\0"; /* from MODE_OFF on */
  struct walk w;
  const char *mode, *k = modes;
  w.all = all, w.index = w.noted = 0;
  g.notes = 0;
  if (!g.ready) {
    g.library_path = variable("LD_LIBRARY_PATH");
  }
  dl_iterate_phdr(on_image, &w);
  if (g.ready) return;
  g.ready = 1;
  g.startup = w.index;
  mode = variable("CUDAGUARD");
  if (!*mode) return;
  for (g.mode = MODE_OFF; *k; g.mode++, k += len(k) + 1)
    if (same(mode, k)) return;
  g.mode = MODE_MANIFEST;
  if (g.first_noted) {
    char line[SHOW + 100];
    format(line, sizeof line, "cudaguard: CUDAGUARD is none of off, warn, enforce, but %p: ignored\n", mode);
    say(line);
  }
}

/* The worst finding that this guard speaks for: a refusal before a warning. */
CODE const struct finding *worst(int *refuse) {
  const struct finding *f = 0;
  int k;
  *refuse = 0;
  for (k = 0; k < g.findings; k++) {
    const struct note *n = &g.note[g.finding[k].note];
    if (g.finding[k].severity != ERROR || !speaks(n) || *refuse) continue;
    if (about_driver(&g.finding[k]) && n->d[21] == GPU_OPTIONAL) continue;
    if (action(n)) *refuse = 1, f = &g.finding[k];
    else if (!f) f = &g.finding[k];
  }
  return f;
}

CODE void lock(void) {
  int pid = (int)sys1(SYS_getpid, 0), seen = 0;
  while (!__atomic_compare_exchange_n(&g.lock, &seen, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (seen != pid) continue; /* left locked by the process that this one was forked from: taken over */
    sys1(SYS_sched_yield, 0);
    seen = 0;
  }
}

CODE void unlock(void) { __atomic_store_n(&g.lock, 0, __ATOMIC_RELEASE); }

/* Completes the verdict, into g.verdict. */
CODE void complete(void) {
  struct verdict *v = &g.verdict;
  const char *why = "the guard is switched off by CUDAGUARD=off";
  int k, result = CANNOT_TELL;
  prepare(0);
  if (g.mode != MODE_OFF) {
    judge(1, 1);
    leave_report("checked");
    for (k = 0; k < g.notes && !in_scope(&g.note[k]); k++) continue;
    why = k == g.notes ? "this file has no manifest" : 0;
    if (!why) result = overall();
  }
  memset(v, 0, sizeof *v);
  if (why) format(v->message, sizeof v->message, why);
  for (k = 0; !why && k < g.findings; k++) {
    const struct finding *f = &g.finding[k];
    if (!in_scope(&g.note[f->note]) || (result == WRONG ? f->severity != ERROR : result == RIGHT || !cannot_tell(f))) continue;
    compose(f);
    break;
  }
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
  lock();
  complete();
  result = g.verdict.verdict;
  if (text && size) format(text, size, "<[CG%n] >%s", (uint32_t)g.verdict.code, g.verdict.message);
  unlock();
  return result;
}

SHOWN int SHARED(verdict)(void *to) {
  int result;
  size_t size;
  memcpy(&size, to, sizeof size); /* what the caller knows of it: newer members are left out, older ones never move */
  if (size > sizeof g.verdict) size = sizeof g.verdict;
  lock();
  complete();
  result = g.verdict.verdict;
  if (size > sizeof size) memcpy((char *)to + sizeof size, (const char *)&g.verdict + sizeof size, size - sizeof size);
  unlock();
  return result;
}

SHOWN void SHARED(start)(void) {
  int refuse = 0;
  const struct finding *f;
  if (g.ready) return;
  lock();
  prepare(1);
  if (g.mode != MODE_OFF && g.notes) {
    judge(1, 0);
    f = worst(&refuse);
    leave_report(refuse ? "refuse" : f ? "warn" : "start");
    if (f) say_finding(f, refuse);
    if (refuse) leave(STATUS_REFUSED);
  }
  unlock();
}

#ifdef __cplusplus
}
#endif

/* Outside the section of the rest, so that a copy whose code was dropped keeps these few bytes and no more. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void cudaguard_r1_init(void) { SHARED(start)(); }
