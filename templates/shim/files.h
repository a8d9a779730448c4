/* File functions that use system calls directly. */
#ifndef CUDAGUARD_FILES_H
#define CUDAGUARD_FILES_H

#include "context.h"
#include "kernel.h"
#include "text.h"

SHIM_FN long record_failure(struct context *cx, long r) {
  if (r < 0 && r != -ENOENT && r != -ENOTDIR) cx->lookup_failed = 1;
  return r;
}

SHIM_FN long open_file(struct context *cx, const char *path, int how) {
  return record_failure(
      cx, sys4(SYS_openat, AT_FDCWD, (long)path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
}

SHIM_FN long stat_at(long dir, const char *path, struct stat *is, long how) {
  return sys4(SYS_newfstatat, dir, (long)path, (long)is, how);
}

/* Returns the size of a file without opening it, or -1. */
SHIM_FN long get_file_size(struct context *cx, const char *path) {
  struct stat is;
  return record_failure(cx, stat_at(AT_FDCWD, path, &is, 0)) == 0 ? (long)is.st_size : -1;
}

SHIM_FN void close_file(long fd) { sys1(SYS_close, fd); }

/* Writes a string in parts of at most `most` bytes. Suppresses SIGPIPE, and waits for a full pipe for
 * at most this number of seconds. A pipe accepts PIPE_BUF bytes without blocking, if it is ready. */
SHIM_FN void write_out(long fd, const char *at, size_t left, size_t most, long seconds) {
  enum { MASK = 8 };
  const uint64_t all = ~(uint64_t)0;
  const uint64_t ours = (uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1);
  uint64_t before;
  struct timespec wait;
  struct pollfd p;
  p.fd = (int)fd;
  p.events = POLLOUT;
  wait.tv_sec = seconds;
  wait.tv_nsec = 0;
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, MASK);
  while (left && sys4(SYS_ppoll, (long)&p, 1, (long)&wait, 0) > 0) {
    long n = sys3(SYS_write, fd, (long)at, (long)(left < most ? left : most));
    if (n <= 0) break;
    at += n;
    left -= (size_t)n;
  }
  wait.tv_sec = wait.tv_nsec = 0;
  while (sys4(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&wait, MASK) > 0)
    ;
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, MASK);
}

SHIM_FN long read_file_text(struct context *cx, const char *path, char *to, size_t size) {
  long fd = open_file(cx, path, O_RDONLY), n = -1;
  if (fd >= 0) {
    n = sys3(SYS_read, fd, (long)to, (long)size - 1);
    close_file(fd);
  }
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

SHIM_FN long read_link(const char *path, char (*link)[PATH_MAX]) {
  char *to = *link;
  long n = READLINK(path, to, PATH_MAX - 1);
  to[n > 0 ? n : 0] = 0;
  return n;
}

/* Appends with one write, so that the lines of several processes do not mix. */
SHIM_FN void append_to_file(struct context *cx, const char *path, const char *at, size_t size) {
  const long fd = open_file(cx, path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0) return;
  write_out(fd, at, size, size, 0);
  close_file(fd);
}

/* Returns zero-initialised memory, or null. */
SHIM_FN char *allocate_pages(size_t size) {
  const long at = sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (unsigned long)at > (unsigned long)-4096 ? 0 : (char *)at;
}

SHIM_FN void free_pages(char *at, size_t size) { sys2(SYS_munmap, (long)at, (long)size); }

SHIM_FN void read_host_name(struct context *cx, char *to, size_t size) {
  struct utsname host;
  (void)cx;
  host.nodename[0] = 0;
  sys1(SYS_uname, (long)&host);
  copy_text(to, size, host.nodename);
}

#endif
