/* Fills struct cudaguard_verdict for callers, and prints findings to stderr. */
#include "shim.h"

SHIM_FN void copy_version(char (*to)[32], void (*how)(struct text *, uint32_t), uint32_t n) {
  struct text t = start_text(*to, sizeof *to);
  if (n) how(&t, n);
}

/* Fills the members of a verdict that describe a finding. The message has one fact per line. */
SHIM_API void compose_verdict(struct context *cx, const struct finding *f,
                              struct cudaguard_verdict *v) {
  const struct meaning *m = get_meaning(f);
  struct text message = start_text(v->message, sizeof v->message),
              hint = start_text(v->hint, sizeof v->hint);
  struct text component = start_text(v->component, sizeof v->component);
  int driver = is_about_driver(f);
  void (*how)(struct text *, uint32_t) = driver ? put_cuda : put_version;
  int k;
  v->code = m->code;
  v->severity = f->severity;
  copy_text(v->subject, sizeof v->subject, get_text(m->subject));
  put_component(&component, f->component);
  copy_version(&v->built, how, driver ? f->needs_cuda : f->built);
  copy_version(&v->found, how, driver ? f->cuda : f->found);
  put_filled(cx, &message, get_text(m->sentence), f);
  for (k = 0; k < LINES_OF_MESSAGE; k++) put_line(cx, &message, "\n", f, k);
  put_filled(cx, &hint, get_text(m->hint), f);
}

SHIM_API void print_text(const char *text) {
  write_out(STDERR_FILENO, text, text_length(text), PIPE_BUF, 1);
}

SHIM_FN int is_printed(struct context *cx, const struct finding *f) {
  const struct note *n = f->component;
  /* The guard checks nothing if its own manifest is unreadable. */
  if (n->own && cx->program && !is_note_readable(n)) return 1;
  return f->severity == ERROR && reports_note(cx, n) &&
         !(is_about_driver(f) && n->head.gpu == GPU_OPTIONAL);
}

/* Returns the next finding to print after `last` (null: the first), in the order of ranks: of those
 * that refuse the program, or of those that do not. */
SHIM_FN const struct finding *find_next_printed(struct context *cx, const struct finding *last,
                                                int refuse) {
  const struct finding *f = cx->findings.at, *end = f + cx->findings.count, *best = 0;
  for (; f < end; f++) {
    int later = last ? get_meaning(f)->rank - get_meaning(last)->rank : 1;
    if (!is_printed(cx, f) || (f->severity == ERROR && refuses(cx, f->component)) != refuse ||
        later < 0 || (!later && f <= last))
      continue;
    if (!best || get_meaning(f)->rank < get_meaning(best)->rank) best = f;
  }
  return best;
}

/* Returns whether two findings differ only in the component, which has its own line. */
SHIM_FN int has_same_cause(const struct finding *a, const struct finding *b) {
  struct finding x;
  memcpy(&x, a, sizeof x);
  x.component = b->component;
  return names_component(a) && bytes_are_equal(&x, b, sizeof x);
}

/* Returns the first printed finding with the same cause: an earlier one or `f` itself. */
SHIM_FN const struct finding *find_same_cause(struct context *cx, const struct finding *f,
                                              int refuse) {
  const struct finding *first = 0;
  while ((first = find_next_printed(cx, first, refuse)) != f)
    if (has_same_cause(first, f)) return first;
  return f;
}

/* Appends the components of the other findings with the same cause. */
SHIM_FN void put_same_cause(struct context *cx, struct text *t, const struct finding *f,
                            int refuse) {
  const struct finding *other = f;
  while ((other = find_next_printed(cx, other, refuse)))
    if (has_same_cause(f, other)) {
      put(t, ", ");
      put_component(t, other->component);
    }
}

/* Appends a finding: all lines of the first one; of the others the sentence, the line of a
 * component that differs from the first one, and the hint. */
SHIM_FN void put_printed(struct context *cx, struct text *t, const struct finding *f,
                         const struct finding *first, int refuse) {
  const struct meaning *m = get_meaning(f);
  int k;
  put(t, refuse ? "cudaguard: error[CG" : "cudaguard: warning[CG");
  put_number(t, m->code);
  put(t, "]: ");
  put_filled(cx, t, get_text(m->sentence), f);
  for (k = 0; k < LINES_OF_MESSAGE; k++) {
    const int names = k == 0 && names_component(f);
    if (f != first && !(names && f->component != first->component)) continue;
    if (put_line(cx, t, "\n  ", f, k) && names) put_same_cause(cx, t, f, refuse);
  }
  if (*get_text(m->hint)) put(t, "\n  what to do: ");
  put_filled(cx, t, get_text(m->hint), f);
  put_char(t, '\n');
}

SHIM_FN void print_findings(struct context *cx, int refuse) {
  const struct finding *first = find_next_printed(cx, 0, refuse), *f = first;
  struct output *out = &cx->shared.output;
  struct text t;
  uint32_t n = 0;
  if (!f) return;
  t = start_text(out->page, sizeof out->page);
  for (; f; f = find_next_printed(cx, f, refuse))
    if (find_same_cause(cx, f, refuse) == f && n++ < MAX_PRINTED)
      put_printed(cx, &t, f, first, refuse);
  if (n > MAX_PRINTED) {
    put(&t, "cudaguard: and ");
    put_number(&t, n - MAX_PRINTED);
    put(&t, " more\n");
  }
  if (refuse)
    put(&t, "  (CUDAGUARD=warn starts it anyway; CUDAGUARD_REPORT=FILE writes a report)\n");
  print_text(out->page);
}

/* The report as JSON. */

SHIM_FN void put_json(struct text *t, const char *s) {
  put_char(t, '"');
  put_sanitized(t, s, 1);
  put_char(t, '"');
}

/* Appends a comma unless this is the first element of an object or array, then the string. */
SHIM_FN void put_next(struct text *t, const char *s) {
  char last = t->at[t->used - 1];
  if (last != '{' && last != '[') put_char(t, ',');
  put(t, s);
}

SHIM_FN void put_key(struct text *t, const char *key) {
  put_next(t, "\"");
  put(t, key);
  put(t, "\":");
}

SHIM_FN void put_member(struct text *t, const char *key, const char *value) {
  put_key(t, key);
  put_json(t, value);
}

SHIM_FN void put_version_member(struct text *t, const char *key,
                                void (*how)(struct text *, uint32_t), uint32_t n) {
  if (!n) return;
  put_key(t, key);
  put_char(t, '"');
  how(t, n);
  put_char(t, '"');
}

SHIM_FN void put_number_member(struct text *t, const char *key, uint32_t n) {
  put_key(t, key);
  put_number(t, n);
}

SHIM_FN void report_cudnn(struct context *cx, struct text *t, const struct seen_cudnn *c) {
  put(t, ",\"cudnn\":{");
  put_member(t, "path", cx->texts + c->path);
  put_member(t, "picked_by", cx->texts + c->picked_by);
  if (c->version) {
    put_version_member(t, "version", put_version, c->version);
    put_member(t, "version_from", c->from);
  }
  put_version_member(t, "cuda", put_cuda, c->cuda);
  put_char(t, '}');
}

SHIM_FN void report_note(struct context *cx, struct text *t, const struct note *n) {
  static const char states[][8] = {"whole", "newer", "damaged", "absent"};
  char name[NOTE_TEXT], version[NOTE_TEXT];
  size_t from;
  put_next(t, "{");
  put_member(t, "file", get_object_path(cx, n->file.name));
  put_member(t, "note", states[n->state]);
  if (is_note_readable(n)) {
    read_note_text(n, n->head.name, &name);
    read_note_text(n, n->head.version, &version);
    put_member(t, "name", name);
    put_member(t, "version", version);
    if (n->cudnn.is_seen) report_cudnn(cx, t, &n->cudnn);
    put(t, ",\"not_judged\":[\"");
    from = t->used;
    put_not_judged(cx, t, from, n, "\",\"");
    if (t->used > from) put_char(t, '"');
    else shorten_text(t, from - 1);
    put_char(t, ']');
  }
  put_char(t, '}');
}

SHIM_FN void report_driver(struct context *cx, struct text *t) {
  const struct driver *d = &cx->driver;
  int k;
  put(t, ",\"driver\":{");
  put_member(t, "path", *d->path);
  put_version_member(t, "user", put_release, d->is.user);
  put_version_member(t, "kernel", put_release, d->is.kernel);
  put_version_member(t, "cuda", put_cuda, d->is.cuda);
  put(t, "},\"gpus\":[");
  for (k = 0; k < d->is.gpu_count; k++) {
    put_next(t, "{");
    if (!d->chosen) put(t, "\"visible\":true");
    put_version_member(t, "cc", put_capability, d->gpu[k].cc);
    put_char(t, '}');
  }
  put_char(t, ']');
}

SHIM_FN void report_finding(struct context *cx, struct text *t, const struct finding *f,
                            struct cudaguard_verdict *v) {
  static const char severities[][8] = {"info", "warning", "error"};
  compose_verdict(cx, f, v);
  put_next(t, "{\"code\":\"CG");
  put_number(t, (uint32_t)v->code);
  put_char(t, '"');
  put_member(t, "severity", severities[v->severity]);
  put_member(t, "component", v->component);
  put_member(t, "subject", v->subject);
  put_member(t, "message", v->message);
  put_member(t, "hint", v->hint);
  put_char(t, '}');
}

/* Returns the file that contains this guard. */
SHIM_FN const char *find_own_file(struct context *cx) {
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].own) return get_object_path(cx, cx->note[k].file.name);
  return find_program(cx);
}

/* Appends the report of this guard as one line. */
SHIM_FN void put_report(struct context *cx, struct text *t, const char *action, const char *host,
                        struct cudaguard_verdict *v) {
  static const char verdicts[][8] = {"runs", "refused", "unknown"};
  char started[32];
  int k;
  read_start_time(cx, started, sizeof started);
  put_char(t, '{');
  put_member(t, "host", host);
  put_number_member(t, "pid", (uint32_t)get_process());
  put_member(t, "started", started);
  put_member(t, "file", find_own_file(cx));
  put_member(t, "role", cx->program ? "program" : "library");
  put_member(t, "verdict", verdicts[get_result(cx)]);
  put_member(t, "action", action);
  put_number_member(t, "level", (uint32_t)cx->level);
  if (cx->patience > cx->left.tv_sec + 1)
    put_number_member(t, "waited_seconds", (uint32_t)(cx->patience - cx->left.tv_sec));
  put(t, ",\"shim\":{\"revision\":1},\"components\":[");
  for (k = 0; k < cx->notes; k++) report_note(cx, t, &cx->note[k]);
  put_char(t, ']');
  if (cx->driver.is.state == FOUND) report_driver(cx, t);
  put(t, ",\"findings\":[");
  for (k = 0; k < cx->findings.count; k++) report_finding(cx, t, &cx->findings.at[k], v);
  put(t, "]}\n");
}

/* Expands %p to the process ID and %h to the host name. */
SHIM_FN void put_name(struct text *t, const char *s, const char *host) {
  for (; *s; s++) {
    char is = 0;
    if (*s == '%') is = s[1];
    if (is == 'p') {
      put_number(t, (uint32_t)get_process());
      s++;
    } else if (is == 'h') {
      put(t, host);
      s++;
    } else put_char(t, *s);
  }
}

/* Appends the report to the file that CUDAGUARD_REPORT names. */
SHIM_FN void write_report(struct context *cx, const char *action) {
  const char *asked = get_variable("CUDAGUARD_REPORT");
  const size_t size = 4 << 20; /* more than any report; unused pages need no memory */
  struct output *out = &cx->shared.output;
  struct text path, line;
  char host[128], *room;
  if (!*asked) return;
  room = allocate_pages(size);
  if (!room) return;
  path = start_text(out->page, PATH_MAX);
  line = start_text(room, size);
  read_host_name(cx, host, sizeof host);
  put_name(&path, asked, host);
  put_report(cx, &line, action, host, &out->verdict);
  /* Truncated JSON is invalid, and a truncated path names another file. */
  if (!is_truncated(&line) && !is_truncated(&path)) append_to_file(cx, path.at, room, line.used);
  free_pages(room, size);
}

/* The start of a program, which is the same on every system. */

/* Parses the value of CUDAGUARD. */
SHIM_FN int parse_mode(const char *word) {
  if (texts_are_equal(word, "off")) return MODE_OFF;
  if (texts_are_equal(word, "warn")) return MODE_WARN;
  return texts_are_equal(word, "enforce") ? MODE_ENFORCE : MODE_MANIFEST;
}

/* Reads CUDAGUARD, and prints that an unknown value is ignored. */
SHIM_API void read_mode(struct context *cx, int prints) {
  const char *mode = get_variable("CUDAGUARD");
  cx->mode = parse_mode(mode);
  if (*mode && cx->mode == MODE_MANIFEST && prints) {
    char line[SHOW + 100];
    struct text t = start_text(line, sizeof line);
    put(&t, "cudaguard: CUDAGUARD is ");
    put_untrusted(&t, mode);
    put(&t, ", not off, warn or enforce: ignored\n");
    print_text(line);
  }
}

/* Judges the notes, reports the result, and ends the process if it refuses. */
SHIM_API void judge_start(struct context *cx) {
  int refuse;
  judge(cx, 1, 0);
  refuse = find_next_printed(cx, 0, 1) != 0;
  write_report(cx, refuse ? "refuse" : find_next_printed(cx, 0, 0) ? "warn" : "start");
  print_findings(cx, refuse);
  if (refuse) exit_now(STATUS_REFUSED);
}
