/* Writes the report to the file that CUDAGUARD_REPORT names. */
#ifndef CUDAGUARD_REPORT_FILE_H
#define CUDAGUARD_REPORT_FILE_H

#include "report_json.h"

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
enum { DIR_IS_OURS, DIR_IS_SHARED, DIR_IS_REDIRECTED };

/* Returns DIR_IS_SHARED if other users can create files in the directory of this path, and
 * DIR_IS_REDIRECTED if the path contains a symbolic link of another user. */
SHIM_FN int check_dir(struct context *cx, const char *path) {
  const char *end = base_name(path), *at, *dir = cx->found;
  struct text t = start_text(cx->found, sizeof cx->found);
  struct stat is;
  for (at = path; at < end; put_char(&t, *at++))
    if (*at == '/' && t.used && !stat_at(AT_FDCWD, dir, &is, AT_SYMLINK_NOFOLLOW) &&
        S_ISLNK(is.st_mode) && !is_trusted(&is))
      return DIR_IS_REDIRECTED;
  if (!t.used) put_char(&t, '.');
  if (stat_at(AT_FDCWD, dir, &is, 0)) return DIR_IS_SHARED;
  return is_trusted(&is) && !(is.st_mode & (S_IWGRP | S_IWOTH)) ? DIR_IS_OURS : DIR_IS_SHARED;
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
  int dir, is_link = 0, is_new;
  long fd;
  sys1(SYS_uname, (long)&host);
  put_name(&name, asked, host.nodename);
  put_report(cx, &mine, action, host.nodename, &process, &guard);
  fd = find_output(path);
  dir = check_dir(cx, path);
  is_new = stat_at(AT_FDCWD, path, &about, AT_SYMLINK_NOFOLLOW) < 0;
  if (!is_new) is_link = S_ISLNK(about.st_mode);
  if (!fd && (is_new || S_ISREG(about.st_mode) || (is_link && dir != DIR_IS_OURS))) {
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
  else if (dir != DIR_IS_REDIRECTED)
    write_report_file(cx, path, temporary, &all, dir == DIR_IS_SHARED);
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
