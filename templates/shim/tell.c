/* Telling: a finding as a program gets it that asks, and on stderr. */

CODE int is_about_driver(const struct finding *f) { return same(phrase(meaning_of(f)->subject), "driver"); }

CODE void put_where_known(char *to, size_t size, void (*how)(struct text *, uint32_t), uint32_t n) {
  struct text t = text_in(to, size);
  if (n) how(&t, n);
}

/* Into g.verdict, all but the verdict. Each fact stands on a line of its own. */
CODE void compose(const struct finding *f) {
  const struct meaning *m = meaning_of(f);
  struct verdict *v = &g.verdict;
  struct text message = text_in(v->message, sizeof v->message), hint = text_in(v->hint, sizeof v->hint);
  int driver = is_about_driver(f);
  v->code = m->code, v->severity = f->severity;
  cut(v->subject, sizeof v->subject, phrase(m->subject));
  cut(v->component, sizeof v->component, f->component);
  put_where_known(v->built, sizeof v->built, driver ? put_cuda : put_version, driver ? f->needs_cuda : f->built);
  put_where_known(v->found, sizeof v->found, driver ? put_cuda : put_version, driver ? f->cuda : f->found);
  put_message(&message, f);
  put_filled(&hint, phrase(m->hint), f);
}

/* One write: never mixed with what other processes write, and no signal where nobody reads. */
CODE void say(const char *text) {
  uint64_t pipe_only = (uint64_t)1 << (SIGPIPE - 1), before, pending = 0;
  struct timespec now;
  now.tv_sec = now.tv_nsec = 0;
  sys2(SYS_rt_sigpending, (long)&pending, sizeof pending);
  sys4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_only, (long)&before, sizeof before);
  if (sys3(SYS_write, STDERR_FILENO, (long)text, (long)len(text)) == -EPIPE && !(pending & pipe_only))
    sys4(SYS_rt_sigtimedwait, (long)&pipe_only, 0, (long)&now, sizeof pipe_only);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

CODE int is_told(const struct finding *f) {
  const struct note *n = f->note;
  return f->severity == ERROR && speaks_for(n) && !(is_about_driver(f) && n->head.gpu == GPU_OPTIONAL);
}

/* The errors that this guard speaks for, what has to be mended first first; where the program is refused, those that refuse
 * it. How many there are, of which `told` gets as many as it holds. */
CODE int errors_to_tell(const struct finding *told[MAX_TOLD], int refuse) {
  int k, at, n = 0;
  for (k = 0; k < g.findings.count; k++) {
    const struct finding *f = &g.findings.at[k];
    if (!is_told(f) || note_refuses(f->note) != refuse) continue;
    for (at = n < MAX_TOLD ? n : MAX_TOLD; at > 0 && meaning_of(told[at - 1])->rank > meaning_of(f)->rank; at--)
      if (at < MAX_TOLD) told[at] = told[at - 1];
    if (at < MAX_TOLD) told[at] = f;
    n++;
  }
  return n;
}

/* The first with all its facts in lines of their own; of the others what is wrong, and what to do. */
CODE void put_told(struct text *t, const struct finding *f, int first, int refuse) {
  const char *s;
  compose(f);
  put(t, refuse ? "cudaguard: error[CG" : "cudaguard: warning[CG");
  put_number(t, (uint32_t)g.verdict.code);
  put(t, "]: ");
  for (s = g.verdict.message; *s && (first || *s != '\n'); s++) {
    put_char(t, *s);
    if (*s == '\n') put(t, "  ");
  }
  if (*g.verdict.hint) {
    put(t, "\n  what to do: ");
    put(t, g.verdict.hint);
  }
  put_char(t, '\n');
}

CODE void tell(int refuse) {
  static char page[16 * 1024];
  const struct finding *told[MAX_TOLD];
  struct text t = text_in(page, sizeof page);
  int n = errors_to_tell(told, refuse), k;
  if (!n) return;
  for (k = 0; k < n && k < MAX_TOLD; k++) put_told(&t, told[k], k == 0, refuse);
  if (n > MAX_TOLD) {
    put(&t, "cudaguard: and ");
    put_number(&t, (uint32_t)(n - MAX_TOLD));
    put(&t, " more\n");
  }
  if (refuse) put(&t, "  (CUDAGUARD=warn starts it all the same; CUDAGUARD_REPORT=FILE tells more)\n");
  say(page);
}
