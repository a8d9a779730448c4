/* File functions that use system calls directly. */
#include "shim.h"

SHIM_API long record_failure(struct context *cx, long r) {
  if (r < 0 && r != -ENOENT && r != -ENOTDIR) cx->lookup_failed = 1;
  return r;
}

/* Opens a file; a relative path is below `dir`. */
SHIM_FN long open_at(struct context *cx, long dir, const char *path, int how) {
  return record_failure(
      cx, sys4(SYS_openat, dir, (long)path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
}

SHIM_API long open_file(struct context *cx, const char *path, int how) {
  return open_at(cx, AT_FDCWD, path, how);
}

SHIM_API long stat_at(long dir, const char *path, struct stat *is, long how) {
  return sys4(SYS_newfstatat, dir, (long)path, (long)is, how);
}

/* Returns the size of a file without opening it, or -1. */
SHIM_API long get_file_size(struct context *cx, const char *path) {
  struct stat is;
  return record_failure(cx, stat_at(AT_FDCWD, path, &is, 0)) == 0 ? (long)is.st_size : -1;
}

SHIM_API void close_file(long fd) { sys1(SYS_close, fd); }

/* Writes a string in parts of at most `most` bytes. Suppresses SIGPIPE, and waits for a full pipe
 * for at most this number of seconds. A pipe accepts PIPE_BUF bytes without blocking, if it is
 * ready. */
SHIM_API void write_out(long fd, const char *at, size_t left, size_t most, long seconds) {
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

SHIM_API long read_text_at(struct context *cx, long dir, const char *path, char *to, size_t size) {
  const long fd = open_at(cx, dir, path, O_RDONLY);
  long n;
  *to = 0;
  if (fd < 0) return 0;
  n = sys3(SYS_read, fd, (long)to, (long)size - 1);
  close_file(fd);
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

SHIM_API long read_file_text(struct context *cx, const char *path, char *to, size_t size) {
  return read_text_at(cx, AT_FDCWD, path, to, size);
}

/* Reads the target of a link; returns whether there is one. */
SHIM_API int read_link(const char *path, char (*to)[PATH_MAX]) {
  const long n = READLINK(path, *to, PATH_MAX - 1);
  if (n > 0) (*to)[n] = 0;
  return n > 0;
}

/* Appends with one write, so that the lines of several processes do not mix. */
SHIM_API void append_to_file(struct context *cx, const char *path, const char *at, size_t size) {
  const long fd = open_file(cx, path, O_WRONLY | O_CREAT | O_APPEND);
  write_out(fd, at, size, size, 0);
  close_file(fd);
}

/* Returns zero-initialised memory, or null. */
SHIM_API char *allocate_pages(size_t size) {
  const long at =
      sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return (unsigned long)at > (unsigned long)-4096 ? 0 : (char *)at;
}

SHIM_API void free_pages(char *at, size_t size) { sys2(SYS_munmap, (long)at, (long)size); }

SHIM_API void read_host_name(struct context *cx, char *to, size_t size) {
  struct utsname host;
  (void)cx;
  host.nodename[0] = 0;
  sys1(SYS_uname, (long)&host);
  copy_text(to, size, host.nodename);
}

/* This process: its environment, its ID, the path of the program. */

/* Returns the value of a variable, or null. A setuid program ignores all variables. */
SHIM_API const char *find_variable(const char *name) {
  const size_t length = text_length(name);
  char **variable = getauxval(AT_SECURE) ? 0 : environ;
  for (; variable && *variable; variable++)
    if (starts_with(*variable, name) && (*variable)[length] == '=') return *variable + length + 1;
  return 0;
}

/* Returns how often a variable is in the environment. */
SHIM_API int count_variables(const char *name) {
  const size_t length = text_length(name);
  char **variable = environ;
  int n = 0;
  for (; variable && *variable; variable++)
    n += starts_with(*variable, name) && (*variable)[length] == '=';
  return n;
}

/* Returns a variable, or an empty string. */
SHIM_API const char *get_variable(const char *name) {
  const char *value = find_variable(name);
  return value ? value : "";
}

SHIM_API int get_process(void) { return (int)sys1(SYS_getpid, 0); }

/* Copies a path and makes it absolute. */
SHIM_FN void copy_absolute(char (*to)[PATH_MAX], const char *path) {
  struct text t;
  while (starts_with(path, "./")) path += 2;
  copy_path(to, path);
  if (!*path || *path == '/' || !read_link("/proc/self/cwd", to)) return;
  t = continue_path(to);
  put_char(&t, '/');
  put(&t, path);
  if (is_truncated(&t)) copy_path(to, path);
}

/* Returns the header of the path of the program's dynamic linker, or null for a static program. */
SHIM_API const ElfW(Phdr) * find_interpreter(const struct image *program) {
  int k;
  for (k = 0; k < program->file.n; k++)
    if (program->file.ph[k].p_type == PT_INTERP) return &program->file.ph[k];
  return 0;
}

/* Returns whether the program was started as `ld.so program`. The kernel then loads no interpreter.
 */
SHIM_API int is_started_by_loader(const struct image *program) {
  return find_interpreter(program) && !getauxval(AT_BASE);
}

/* Returns the path of the program. If it was started as `ld.so program`, /proc/self/exe is the
 * dynamic linker, which names the program, or corrects the auxiliary vector. */
SHIM_API const char *find_program(struct context *cx) {
  const char *given = (const char *)getauxval(AT_EXECFN);
  const int by_loader = is_started_by_loader(&cx->first);
  if (cx->self[0]) return cx->self;
  if (by_loader && cx->loader_name) given = cx->loader_name;
  if ((by_loader || !read_link("/proc/self/exe", &cx->self)) && given)
    copy_absolute(&cx->self, given);
  return cx->self;
}

/* Returns the start time of this process in clock ticks, because process IDs are reused. */
SHIM_API void read_start_time(struct context *cx, char *to, size_t size) {
  char line[1024], *s = line, *end;
  int spaces = 0;
  read_file_text(cx, "/proc/self/stat", line, sizeof line);
  for (end = s; *end; end++)
    if (*end == ')') s = end; /* the last one, because the name may contain others */
  while (*s && spaces < 20) spaces += *s++ == ' ';
  for (end = s; *end > ' ';) end++;
  *end = 0;
  copy_text(to, size, s);
}
