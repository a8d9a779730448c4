/* The report as JSON. */
#ifndef CUDAGUARD_REPORT_JSON_H
#define CUDAGUARD_REPORT_JSON_H

#include "report_stderr.h"

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
  put_member(t, "path", cx->texts.at + c->path);
  put_member(t, "picked_by", cx->texts.at + c->picked_by);
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
  int k;
  put_next(t, "{");
  put_member(t, "file", get_object_path(cx, n->file.name));
  put_member(t, "note", states[n->state]);
  if (is_note_readable(n)) {
    read_note_text(n, n->head.name, &name);
    read_note_text(n, n->head.version, &version);
    put_member(t, "name", name);
    put_member(t, "version", version);
    for (k = 0; k < cx->seen; k++)
      if (cx->seen_cudnn[k].note == n) {
        report_cudnn(cx, t, &cx->seen_cudnn[k]);
        break;
      }
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
    put_version_member(t, "cc", put_capability, d->cc[k]);
    put_char(t, '}');
  }
  put_char(t, ']');
}

SHIM_FN void report_finding(struct context *cx, struct text *t, const struct finding *f) {
  static const char severities[][8] = {"info", "warning", "error"};
  const struct verdict *v = &cx->draft;
  compose_verdict(cx, f, &cx->draft);
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
SHIM_FN void put_report(struct context *cx, struct text *t, const char *action, const char *host) {
  static const char verdicts[][8] = {"runs", "refused", "unknown"};
  int k;
  put_char(t, '{');
  put_member(t, "host", host);
  put_number_member(t, "pid", (uint32_t)get_process());
  put_member(t, "started", read_start_time(cx));
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
  for (k = 0; k < cx->findings.count; k++) report_finding(cx, t, &cx->findings.at[k]);
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

#endif
