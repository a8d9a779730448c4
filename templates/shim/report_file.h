/* Appends the report to the file that CUDAGUARD_REPORT names. */
#ifndef CUDAGUARD_REPORT_FILE_H
#define CUDAGUARD_REPORT_FILE_H

#include "report_json.h"

SHIM_FN void write_report(struct context *cx, const char *action) {
  const char *asked = get_variable("CUDAGUARD_REPORT");
  const size_t size = 4 << 20; /* more than any report; unused pages need no memory */
  struct text path = start_text(cx->real, sizeof cx->real), line;
  char host[128], *room;
  if (!*asked) return;
  room = allocate_pages(size);
  if (!room) return;
  line = start_text(room, size);
  read_host_name(cx, host, sizeof host);
  put_name(&path, asked, host);
  put_report(cx, &line, action, host);
  /* Truncated JSON is invalid, and a truncated path names another file. */
  if (!is_truncated(&line) && !is_truncated(&path)) append_to_file(cx, cx->real, room, line.used);
  free_pages(room, size);
}

#endif
