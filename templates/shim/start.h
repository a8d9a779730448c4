/* The start of a program, which is the same on every system. */
#ifndef CUDAGUARD_START_H
#define CUDAGUARD_START_H

#include "judge_notes.h"
#include "report_file.h"

/* Reads CUDAGUARD, and prints that an unknown value is ignored. */
SHIM_FN void read_mode(struct context *cx, int prints) {
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
SHIM_FN void judge_start(struct context *cx) {
  int refuse;
  judge(cx, 1, 0);
  refuse = find_next_printed(cx, 0, 1) != 0;
  write_report(cx, refuse ? "refuse" : find_next_printed(cx, 0, 0) ? "warn" : "start");
  print_findings(cx, refuse);
  if (refuse) exit_now(STATUS_REFUSED);
}

#endif
