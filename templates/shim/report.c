/* The report. */

struct report {
  long fd;
  struct text t;
  char buffer[64 * 1024]; /* more than one component or finding takes */
};

CODE void flush(struct report *r) {
  size_t at = 0;
  while (at < r->t.used) {
    long n = sys3(SYS_write, r->fd, (long)(r->t.at + at), (long)(r->t.used - at));
    if (n == -EINTR) continue;
    if (n <= 0) break; /* a full disk is not the program's trouble */
    at += (size_t)n;
  }
  r->t.used = 0;
}

CODE void report_note(struct text *t, int note) {
  const struct note *n = &g.note[note];
  char name[TEXT], version[TEXT];
  uint32_t i;
  int k, skipped = 0;
  putf(t, "%s{\"file\":" KEY("note") "%j", note ? "," : "", file_of(&n->image),
       names[6 + n->state]);
  if (n->state != NOTE_DAMAGED) {
    note_text(n, n->d + 28, &name);
    note_text(n, n->d + 32, &version);
    putf(t, ",\"name\":" KEY("version") "%j", name, version);
    for (k = 0; k < g.seen; k++)
      if (g.cudnn[k].note == note) {
        putf(t, ",\"cudnn\":{\"path\":" KEY("picked_by") "%j<,\"version\":\"%v\",\"version_from\":%j>}", g.cudnn[k].path, g.cudnn[k].why,
             g.cudnn[k].version, g.cudnn[k].version ? g.cudnn[k].from : "");
        break;
      }
    put(t, ",\"not_judged\":[");
    for (i = 0; i < note_rows(n); i++) {
      uint32_t kind = u16(note_row(n, i));
      if (kind < ROW_CUDNN || kind > ROW_GPU) putf(t, "%s\"row of kind %n\"", skipped++ ? "," : "", kind);
    }
    put(t, "]");
  }
  put(t, "}");
}

CODE void leave_report(const char *done) {
  const char *path = variable("CUDAGUARD_REPORT");
  static struct report r;
  const struct verdict *v = &g.verdict;
  const struct driver *d = (const struct driver *)at(&g.driver);
  int k;
  if (!*path) return;
  r.fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (r.fd < 0) return;
  r.t.at = r.buffer, r.t.used = 0, r.t.size = sizeof r.buffer;
  k = overall();
  putf(&r.t, "{\"file\":" KEY("role") "%j,\"verdict\":" KEY("action") "%j,\"level\":%n,\"shim\":{\"revision\":1},\"components\":[", self(),
       g.program ? "program" : "library", names[k], done, (uint32_t)g.level);
  for (k = 0; k < g.notes; k++) flush(&r), report_note(&r.t, k);
  put(&r.t, "]");
  if (g.driver_known && d->state == FOUND) {
    putf(&r.t, ",\"driver\":{\"path\":%j<,\"user\":\"%r\"><,\"kernel\":\"%r\"><,\"cuda\":\"%c\">},\"gpus\":[", d->path, d->user, d->kernel, d->cuda);
    for (k = 0; k < d->gpus; k++)
      putf(&r.t, d->strict == 2 ? "%s{<\"cc\":\"%x\">}" : "%s{\"visible\":true<,\"cc\":\"%x\">}", k ? "," : "", (uint32_t)d->cc[k]);
    put(&r.t, "]");
  }
  put(&r.t, ",\"findings\":[");
  for (k = 0; k < g.findings; k++) {
    compose(&g.finding[k]);
    flush(&r);
    putf(&r.t, "%s{\"code\":\"CG%n\",\"severity\":" KEY("component") "%j,\"subject\":" KEY("message") "%j,\"hint\":%j}", k ? "," : "", (uint32_t)v->code,
         names[3 + v->severity], v->component, v->subject, v->message, v->hint);
  }
  put(&r.t, "]}\n");
  flush(&r);
  close_file(r.fd);
}
