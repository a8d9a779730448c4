/* Writes the report to the file that CUDAGUARD_REPORT names. */
#ifndef CUDAGUARD_REPORT_FILE_H
#define CUDAGUARD_REPORT_FILE_H

#include "report_json.h"

static const size_t REPORT_ROOM = 4 << 20; /* more than any report; unused pages need no memory */

SHIM_FN void read_report(struct context *cx, const char *path, char *to) {
  const handle file =
      CreateFileW(widen(cx, path), (uint32_t)READ_ACCESS, SHARE_ALL, 0, OPEN_FILE, 0, 0);
  uint32_t n = 0;
  if (file == INVALID_HANDLE) return;
  if (!ReadFile(file, to, (uint32_t)REPORT_ROOM - 1, &n, 0)) n = 0;
  to[n] = 0;
  CloseHandle(file);
}

/* Writes a new file and renames it, so that a reader always finds a complete file. Writes to the
 * existing file if no file can be created in the directory. */
SHIM_FN void write_report_file(struct context *cx, const char *path, const char *temporary,
                               const struct text *t) {
  uint32_t written = 0;
  handle file;
  int is_complete;
  DeleteFileW(widen(cx, temporary)); /* left by a process that was killed */
  file = CreateFileW(widen(cx, temporary), WRITE_ACCESS, 0, 0, CREATE_NEW_FILE, 0, 0);
  if (file == INVALID_HANDLE) {
    temporary = "";
    file = CreateFileW(widen(cx, path), WRITE_ACCESS, 0, 0, CREATE_ANY_FILE, 0, 0);
  }
  if (file == INVALID_HANDLE) return;
  is_complete = WriteFile(file, t->at, (uint32_t)t->used, &written, 0) && written == t->used;
  CloseHandle(file);
  if (!*temporary) return;
  MultiByteToWideChar(UTF_8, 0, path, -1, cx->device, PATH_MAX);
  if (!is_complete || !MoveFileExW(widen(cx, temporary), cx->device, REPLACE_FILE))
    DeleteFileW(widen(cx, temporary));
}

SHIM_FN void write_report_to(struct context *cx, const char *asked, const char *action,
                             char *room) {
  struct text mine = start_text(room, REPORT_ROOM),
              all = start_text(room + REPORT_ROOM, REPORT_ROOM);
  struct text name = start_text(cx->real, sizeof cx->real),
              next = start_text(cx->found, sizeof cx->found);
  char *old = room + 2 * REPORT_ROOM, host[128];
  uint32_t length = PATH_MAX;
  size_t process, guard;
  if (!GetComputerNameW(cx->wide, &length)) cx->wide[0] = 0;
  narrow(cx->wide, host, sizeof host);
  put_name(&name, asked, host);
  put(&next, cx->real);
  put_name(&next, ".%h.%p.new", host);
  put_report(cx, &mine, action, host, &process, &guard);
  read_report(cx, cx->real, old);
  if (!bytes_are_equal(old, mine.at, process)) *old = 0;
  put_all(cx, &all, mine.at, guard, old);
  if (is_truncated(&mine) || is_truncated(&all) || is_truncated(&name) || is_truncated(&next))
    return; /* truncated JSON is invalid, and a truncated path names another file */
  write_report_file(cx, cx->real, cx->found, &all);
}

SHIM_FN void write_report(struct context *cx, const char *action) {
  const char *asked = get_variable("CUDAGUARD_REPORT");
  char *room;
  if (!*asked) return;
  /* The report of this guard, the old file, and both. */
  room = (char *)VirtualAlloc(0, 3 * REPORT_ROOM, COMMIT, READ_AND_WRITE);
  if (!room) return;
  write_report_to(cx, asked, action, room);
  VirtualFree(room, 0, RELEASE);
}

#endif
