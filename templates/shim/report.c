/* The report: what was seen, as JSON, where CUDAGUARD_REPORT names a file. */

CODE void put_version_member(struct text *t, const char *key, void (*how)(struct text *, uint32_t), uint32_t n) {
  if (!n) return;
  put_key(t, key);
  put_char(t, '"');
  how(t, n);
  put_char(t, '"');
}

CODE void report_cudnn(struct text *t, const struct cudnn *c) {
  put(t, ",\"cudnn\":{");
  put_member(t, "path", c->path);
  put_member(t, "picked_by", c->why);
  if (c->version) {
    put_version_member(t, "version", put_version, c->version);
    put_member(t, "version_from", c->from);
  }
  put_version_member(t, "cuda", put_cuda, c->cuda);
  put_char(t, '}');
}

CODE void report_note(struct text *t, int note) {
  static const char states[][8] = {"whole", "newer", "damaged"};
  const struct note *n = &g.note[note];
  char name[NOTE_TEXT], version[NOTE_TEXT];
  uint32_t i, skipped = 0;
  int k;
  put(t, note ? ",{" : "{");
  put_member(t, "file", file_of(&n->image));
  put_member(t, "note", states[n->state]);
  if (n->state != NOTE_IS_DAMAGED) {
    note_text(n, n->head.name, &name);
    note_text(n, n->head.version, &version);
    put_member(t, "name", name);
    put_member(t, "version", version);
    for (k = 0; k < g.seen; k++)
      if (g.cudnn[k].note == n) {
        report_cudnn(t, &g.cudnn[k]);
        break;
      }
    put(t, ",\"not_judged\":[");
    for (i = 0; i < n->head.rows; i++) {
      const union row row = note_row(n, i);
      if (row_is_known(&row)) continue;
      put(t, skipped++ ? ",\"row of kind " : "\"row of kind ");
      put_number(t, row.kind);
      put_char(t, '"');
    }
    /* In another file nobody looks for containers; of what is plain data, they say nothing. */
    if (n->own ? g.looks : n->state == NOTE_WHOLE && n->head.archs_known != ARCHS_OBSERVED) {
      put(t, skipped ? ",\"GPU code" : "\"GPU code");
      put(t, n->own ? " that stands as plain data\"" : "\"");
    }
    put_char(t, ']');
  }
  put_char(t, '}');
}

CODE void report_driver(struct text *t) {
  const struct driver *d = &g.driver;
  int k;
  put(t, ",\"driver\":{");
  put_member(t, "path", d->path);
  put_version_member(t, "user", put_release, d->user);
  put_version_member(t, "kernel", put_release, d->kernel);
  put_version_member(t, "cuda", put_cuda, d->cuda);
  put(t, "},\"gpus\":[");
  for (k = 0; k < d->gpus; k++) {
    put(t, k ? ",{" : "{");
    if (!d->chosen) put(t, "\"visible\":true");
    put_version_member(t, "cc", put_capability, d->cc[k]);
    put_char(t, '}');
  }
  put_char(t, ']');
}

CODE void report_finding(struct text *t, int finding) {
  static const char severities[][8] = {"info", "warning", "error"};
  const struct verdict *v = &g.verdict;
  put(t, finding ? ",{\"code\":\"CG" : "{\"code\":\"CG");
  put_number(t, (uint32_t)v->code);
  put_char(t, '"');
  put_member(t, "severity", severities[v->severity]);
  put_member(t, "component", v->component);
  put_member(t, "subject", v->subject);
  put_member(t, "message", v->message);
  put_member(t, "hint", v->hint);
  put_char(t, '}');
}

CODE void leave_report(const char *action) {
  static const char verdicts[][8] = {"runs", "refused", "unknown"};
  static char buffer[4 << 20]; /* more than all notes and findings take */
  const char *path = variable("CUDAGUARD_REPORT");
  struct text t = text_in(buffer, sizeof buffer);
  long fd;
  int k;
  if (!*path) return;
  put_char(&t, '{');
  put_member(&t, "file", self());
  put_member(&t, "role", g.program ? "program" : "library");
  put_member(&t, "verdict", verdicts[overall()]);
  put_member(&t, "action", action);
  put(&t, ",\"level\":");
  put_number(&t, (uint32_t)g.level);
  if (g.patience > g.left.tv_sec + 1) {
    put(&t, ",\"waited_seconds\":");
    put_number(&t, (uint32_t)(g.patience - g.left.tv_sec));
  }
  put(&t, ",\"shim\":{\"revision\":1},\"components\":[");
  for (k = 0; k < g.notes; k++) report_note(&t, k);
  put_char(&t, ']');
  if (g.driver_known && g.driver.state == FOUND) report_driver(&t);
  put(&t, ",\"findings\":[");
  for (k = 0; k < g.findings.count; k++) {
    compose(&g.findings.at[k]);
    report_finding(&t, k);
  }
  put(&t, "]}\n");
  fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  write_out(fd, t.at, t.used, 0); /* a full disk is not the program's trouble */
  close_file(fd);
}
