/* Writes the report as JSON to the file that CUDAGUARD_REPORT names. */
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

SHIM_NOINLINE void report_cudnn(struct context *cx, struct text *t, const struct seen_cudnn *c) {
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
  put_member(t, "path", d->path);
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

SHIM_FN void report_finding(struct context *cx, struct text *t) {
  static const char severities[][8] = {"info", "warning", "error"};
  const struct verdict *v = get_next_verdict(cx);
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
SHIM_NOINLINE const char *find_own_file(struct context *cx) {
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].own) return get_object_path(cx, cx->note[k].file.name);
  return find_program(cx);
}

/* Returns the start time of this process in clock ticks, because process IDs are reused. */
SHIM_NOINLINE const char *read_start_time(struct context *cx) {
  char *s = cx->text, *end;
  int spaces = 0;
  read_file_text(cx, "/proc/self/stat", cx->text, sizeof cx->text);
  for (end = s; *end; end++)
    if (*end == ')') s = end; /* the last one, because the name may contain others */
  while (*s && spaces < 20) spaces += *s++ == ' ';
  for (end = s; *end > ' ';) end++;
  *end = 0;
  return s;
}

/* Appends the report of this guard as one object. Its first `process` bytes identify the process,
 * its first `guard` bytes the guard. */
SHIM_FN void put_report(struct context *cx, struct text *t, const char *action, const char *host,
                        size_t *process, size_t *guard) {
  static const char verdicts[][8] = {"runs", "refused", "unknown"};
  int k;
  put_char(t, '{');
  put_member(t, "host", host);
  put_number_member(t, "pid", (uint32_t)get_process());
  put_member(t, "started", read_start_time(cx));
  *process = t->used;
  put_member(t, "file", find_own_file(cx));
  *guard = t->used;
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
  for (k = 0; k < cx->findings.count; k++) {
    compose_verdict(cx, &cx->findings.at[k]);
    report_finding(cx, t);
  }
  put(t, "]}");
}

/* ---- The file: one line for the guard of the program or, without one, the first guard of the
 * process, and one line for each later guard ---- */

SHIM_FN void put_line(struct text *t, const char *line) {
  while (*line && *line != '\n') put_char(t, *line++);
  if (t->at[t->used - 1] == ',') shorten_text(t, t->used - 1);
}

SHIM_NOINLINE void append_line(struct text *t, const char *line) {
  put_next(t, "\n");
  put_line(t, line);
}

SHIM_NOINLINE const char *skip_line(const char *s) {
  while (*s && *s++ != '\n')
    ;
  return s;
}

/* Appends all reports of this process. `old` is the existing file, or empty; the reports of other
 * guards in it are preserved. */
SHIM_FN void put_all(struct context *cx, struct text *t, const char *mine, size_t guard,
                     const char *old) {
  int later = *old && !cx->program && !bytes_are_equal(old, mine, guard);
  if (later) {
    put_line(t, old);
  } else {
    put_line(t, mine);
    shorten_text(t, t->used - 1);
    put(t, ",\"loaded_later\":[");
  }
  while (*(old = skip_line(old)) == '{')
    if (!bytes_are_equal(old, mine, guard)) append_line(t, old);
  if (later) append_line(t, mine);
  put(t, "\n]}\n");
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

/* Returns standard error or output if the path refers to the same file, so that the report is
 * appended to a log and does not truncate or replace it. Otherwise returns 0. */
SHIM_FN long find_output(const char *path) {
  struct stat named, is;
  long fd = stat_at(AT_FDCWD, path, &named, 0) ? 0 : STDERR_FILENO;
  for (; fd; fd--)
    if (!stat_at(fd, "", &is, AT_EMPTY_PATH) && is.st_ino == named.st_ino &&
        is.st_dev == named.st_dev)
      break;
  return fd;
}

SHIM_FN void remove_file(const char *path) { sys3(SYS_unlinkat, AT_FDCWD, (long)path, 0); }

SHIM_NOINLINE int is_trusted(const struct stat *is) {
  return !is->st_uid || is->st_uid == (uid_t)sys1(SYS_geteuid, 0);
}

/* Security properties of a directory. */
enum { FOLDER_IS_OURS, FOLDER_IS_SHARED, FOLDER_IS_REDIRECTED };

/* Returns FOLDER_IS_SHARED if other users can create files in the directory of this path, and
 * FOLDER_IS_REDIRECTED if the path contains a symbolic link of another user. */
SHIM_FN int check_folder(struct context *cx, const char *path) {
  const char *end = base_name(path), *at, *folder = cx->found;
  struct text t = start_text(cx->found, sizeof cx->found);
  struct stat is;
  for (at = path; at < end; put_char(&t, *at++))
    if (*at == '/' && t.used && !stat_at(AT_FDCWD, folder, &is, AT_SYMLINK_NOFOLLOW) &&
        S_ISLNK(is.st_mode) && !is_trusted(&is))
      return FOLDER_IS_REDIRECTED;
  if (!t.used) put_char(&t, '.');
  if (stat_at(AT_FDCWD, folder, &is, 0)) return FOLDER_IS_SHARED;
  return is_trusted(&is) && !(is.st_mode & (S_IWGRP | S_IWOTH)) ? FOLDER_IS_OURS : FOLDER_IS_SHARED;
}

/* Opens the existing file or creates one. In a shared directory, opens only a pipe or device of
 * this user, and no link. */
SHIM_FN long open_in_place(struct context *cx, const char *path, int shared) {
  struct stat is;
  long fd;
  if (!shared) return open_file(cx, path, O_WRONLY | O_CREAT | O_TRUNC);
  fd = open_file(cx, path, O_WRONLY | O_NOFOLLOW);
  if (fd < 0 || (!stat_at(fd, "", &is, AT_EMPTY_PATH) && !S_ISREG(is.st_mode) && is_trusted(&is)))
    return fd;
  close_file(fd);
  return -1;
}

/* Writes the report to a new file and renames it, so that a reader always finds a complete file. A
 * rename replaces a link instead of following it. Writes to the existing file instead if no file
 * can be created in the directory, or if the path is a pipe, a device or, in a directory of this
 * user, a link. */
SHIM_FN void write_report_file(struct context *cx, const char *path, const char *temporary,
                               const struct text *t, int shared) {
  long fd = -1;
  int complete;
  if (*temporary) {
    remove_file(temporary); /* left by a process that was killed */
    fd = open_file(cx, temporary, O_WRONLY | O_CREAT | O_EXCL);
  }
  if (fd < 0) {
    temporary = "";
    fd = open_in_place(cx, path, shared);
  }
  if (fd < 0) return;
  complete = write_out(fd, t->at, t->used, 0); /* a full disk must not affect the program */
  close_file(fd);
  if (!*temporary) return;
  if (!complete || sys6(SYS_renameat, AT_FDCWD, (long)temporary, AT_FDCWD, (long)path, 0, 0) < 0)
    remove_file(temporary);
}

static const size_t REPORT_ROOM = 4 << 20; /* more than any report; unused pages need no memory */

SHIM_FN void write_report_to(struct context *cx, const char *asked, const char *action,
                             char *room) {
  char *path = cx->real, *temporary = cx->scratch;
  struct utsname host;
  char *old = room + 2 * REPORT_ROOM;
  struct text mine = start_text(room, REPORT_ROOM),
              all = start_text(room + REPORT_ROOM, REPORT_ROOM);
  struct text name = start_text(path, sizeof cx->real),
              next = start_text(temporary, sizeof cx->scratch);
  struct stat about;
  size_t process, guard;
  int folder, is_link = 0, is_new;
  long fd;
  sys1(SYS_uname, (long)&host);
  put_name(&name, asked, host.nodename);
  put_report(cx, &mine, action, host.nodename, &process, &guard);
  fd = find_output(path);
  folder = check_folder(cx, path);
  is_new = stat_at(AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW) < 0;
  if (!is_new) is_link = S_ISLNK(about.st_mode);
  if (!fd && (is_new || S_ISREG(about.st_mode) || (is_link && folder != FOLDER_IS_OURS))) {
    put(&next, path);
    put_name(&next, ".%h.%p.new", host.nodename);
    if (is_truncated(&next)) *temporary = 0;
    if (!is_link) read_file_text(cx, path, old, REPORT_ROOM);
    if (!bytes_are_equal(old, mine.at, process)) *old = 0;
  }
  put_all(cx, &all, mine.at, guard, old);
  if (is_truncated(&mine) || is_truncated(&all) || is_truncated(&name))
    return; /* truncated JSON is invalid, and a truncated path names another file */
  if (fd) write_out(fd, all.at, all.used, 0);
  else if (folder != FOLDER_IS_REDIRECTED)
    write_report_file(cx, path, temporary, &all, folder == FOLDER_IS_SHARED);
}

SHIM_FN void write_report(struct context *cx, const char *action) {
  const char *asked = get_variable("CUDAGUARD_REPORT");
  const size_t size = 3 * REPORT_ROOM; /* the report of this guard, the old file, and both */
  long room;
  if (!*asked) return;
  room = sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if ((unsigned long)room > (unsigned long)-4096) return;
  write_report_to(cx, asked, action, (char *)room);
  sys2(SYS_munmap, room, (long)size);
}

#endif
