/* Telling: a finding as a program gets it that asks, and on stderr. */

CODE int is_about_driver(const struct finding *f) { return meaning_of(f)->subject == TEXT_AT(subject_driver); }

CODE void put_where_known(char (*to)[32], void (*how)(struct text *, uint32_t), uint32_t n) {
  struct text t = text_in(*to, sizeof *to);
  if (n) how(&t, n);
}

/* Into g.verdict, all but the verdict. Each fact stands on a line of its own. */
CODE void compose(const struct finding *f) {
  const struct meaning *m = meaning_of(f);
  struct verdict *v = &g.verdict;
  struct text message = text_in(v->message, sizeof v->message), hint = text_in(v->hint, sizeof v->hint);
  int driver = is_about_driver(f);
  void (*how)(struct text *, uint32_t) = driver ? put_cuda : put_version;
  v->code = m->code, v->severity = f->severity;
  cut(v->subject, sizeof v->subject, text_of(m->subject));
  cut(v->component, sizeof v->component, f->component);
  put_where_known(&v->built, how, driver ? f->needs_cuda : f->built);
  put_where_known(&v->found, how, driver ? f->cuda : f->found);
  put_message(&message, f);
  put_filled(&hint, text_of(m->hint), f);
}

CODE void say(const char *text) { write_out(STDERR_FILENO, text, len(text), 1); }

/* A program warns of its own manifest if that cannot be read: nothing else is checked then. */
CODE int is_unreadable(const struct finding *f) { return f->note->own && g.program && !note_is_readable(f->note); }

CODE int is_told(const struct finding *f) {
  const struct note *n = f->note;
  if (is_unreadable(f)) return 1;
  return f->severity == ERROR && speaks_for(n) && !(is_about_driver(f) && n->head.gpu == GPU_OPTIONAL);
}

/* Of the errors that this guard speaks for, and that refuse the program or do not, the next behind this one (null: the first):
 * what has to be mended first comes first. */
CODE const struct finding *next_to_tell(const struct finding *last, int refuse) {
  const struct finding *f = g.findings.at, *end = f + g.findings.count, *best = 0;
  for (; f < end; f++) {
    int later = last ? meaning_of(f)->rank - meaning_of(last)->rank : 1;
    if (!is_told(f) || (f->severity == ERROR && note_refuses(f->note)) != refuse || later < 0 || (!later && f <= last)) continue;
    if (!best || meaning_of(f)->rank < meaning_of(best)->rank) best = f;
  }
  return best;
}

/* The first with all its facts in lines of their own; of the others what is wrong, and what to do. */
CALLED void put_told(struct text *t, const struct finding *f, int first, int refuse) {
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
  const struct finding *f = 0;
  struct text t = text_in(page, sizeof page);
  uint32_t n = 0;
  while ((f = next_to_tell(f, refuse)))
    if (n++ < MAX_TOLD) put_told(&t, f, n == 1, refuse);
  if (!n) return;
  if (n > MAX_TOLD) {
    put(&t, "cudaguard: and ");
    put_number(&t, n - MAX_TOLD);
    put(&t, " more\n");
  }
  if (refuse) put(&t, "  (CUDAGUARD=warn starts it all the same; CUDAGUARD_REPORT=FILE tells more)\n");
  say(page);
}

/* What the loader would have said and done. */
CODE void end_as_the_loader(const ElfW(Sym) * s) {
  struct finding *f = &g.findings.spare;
  struct text t = text_in(g.real, sizeof g.real);
  name_slot(f, s);
  if (!(s->st_other & HAS_VERSION)) f->library[0] = 0;
  /* The file holds more: up to the first NUL it is what the program was called by. */
  show(f->path, sizeof f->path, read_text("/proc/self/cmdline", g.answer, sizeof g.answer) ? g.answer : self());
  put_filled(&t, text_of(TEXT_AT(LIBRARY_LACKS_SYMBOL_BY_THE_LOADER_sentence)), f);
  put_char(&t, '\n');
  say(g.real);
  leave(STATUS_OF_LOADER);
}
