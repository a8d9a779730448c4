/* Level 1: a child process loads and calls the real cuDNN or driver. */
#include "shim.h"

SHIM_API void exit_now(int status) {
  sys1(SYS_exit_group, status);
  __builtin_trap(); /* if a sandbox forbids exit_group */
}

/* Ends the child. If the driver calls exit(), the exit handlers of the program must not run. */
SHIM_FN void end_child(void *unused) {
  (void)unused;
  exit_now(0);
}

/* Sends an answer: its kind, its string and a NUL. */
SHIM_FN void send_answer(long fd, int kind, const char *s) {
  char letter = (char)kind;
  if (sys3(SYS_write, fd, (long)&letter, 1) < 0 ||
      sys3(SYS_write, fd, (long)s, (long)text_length(s) + 1) < 0)
    end_child(0);
}

SHIM_FN void send_number(long fd, int kind, uint32_t n) {
  char digits[16];
  struct text t = start_text(digits, sizeof digits);
  put_number(&t, n);
  send_answer(fd, kind, digits);
}

/* Returns the path of the PTX compiler in the directory of libcuda, where the driver searches it,
 * too. */
SHIM_API const char *join_compiler_path(char (*to)[PATH_MAX], const char *libcuda) {
  struct text t = start_text(*to, sizeof *to);
  const char *name = base_name(libcuda);
  while (libcuda < name) put_char(&t, *libcuda++);
  put(&t, LIBJIT);
  return *to;
}

/* POSIX guarantees the conversion of an object pointer from dlsym to a function pointer; C does
 * not. */
#define FUNCTION(type, address) (__extension__(type)(address))

/* Sends V and the CUDA version, I and the result of cuInit, G and the compute capability of each
 * GPU, J if PTX can be compiled. Sends nothing if the library is not a driver. */
SHIM_FN void call_driver(struct context *cx, long to, void *library, const char *path,
                         char (*text)[PATH_MAX]) {
  enum { MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
  const char *names = "cuInit\ncuDriverGetVersion\ncuDeviceGetCount\ncuDeviceGet\n"
                      "cuDeviceGetAttribute";
  void *calls[5];
  int (*init)(unsigned);
  int (*get_version)(int *);
  int (*get_count)(int *);
  int (*get)(int *, int);
  int (*get_attribute)(int *, int, int);
  char *line = *text;
  struct text t;
  int n, k, device, major, minor;
  for (k = 0; (names = read_name(names, line)); k++)
    if (!(calls[k] = dlsym(library, line))) return;
  init = FUNCTION(int (*)(unsigned), calls[0]);
  get_version = FUNCTION(int (*)(int *), calls[1]);
  get_count = FUNCTION(int (*)(int *), calls[2]);
  get = FUNCTION(int (*)(int *, int), calls[3]);
  get_attribute = FUNCTION(int (*)(int *, int, int), calls[4]);
  t = start_text(line, sizeof *text);
  if (get_version(&n) == 0) send_number(to, 'V', (uint32_t)n);
  k = init(0);
  send_number(to, 'I', (uint32_t)k);
  if (k != 0 || get_count(&n) != 0) return;
  for (k = 0; k < n && k < MAX_GPUS; k++) {
    if (get(&device, k) || get_attribute(&major, MAJOR, device) ||
        get_attribute(&minor, MINOR, device))
      major = minor = 0;
    put_number(&t, (uint32_t)(major << 8 | minor));
    put_char(&t, ',');
  }
  send_answer(to, 'G', line);
  if (cx->driver.is.compiler) return;
  if (dlopen(LIBJIT, RTLD_LAZY) || dlopen(join_compiler_path(text, path), RTLD_LAZY))
    send_answer(to, 'J', "");
}

/* Prepares a new child for running foreign code: it ends with its parent, dumps no core, has no
 * signal handlers and no open files of the program. Returns the file descriptor for answers. */
SHIM_FN long prepare_child(struct context *cx, long to) {
  const char none[64] __attribute__((aligned(8))) = {
      0}; /* struct sigaction of the kernel with SIG_DFL, and a signal mask */
  struct timespec at_once;
  struct pollfd p;
  long fd;
  int k;
  sys2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  at_once.tv_sec = at_once.tv_nsec = 0;
  p.fd = (int)to;
  p.events = POLLOUT;
  /* If the parent has ended already, nothing reads the pipe and PDEATHSIG does not end this child.
   */
  if (sys4(SYS_ppoll, (long)&p, 1, (long)&at_once, 0) > 0 && p.revents & POLLERR) end_child(0);
  sys2(SYS_prctl, PR_SET_DUMPABLE, 0);
  for (k = SIGSYS; k; k--) sys4(SYS_rt_sigaction, k, (long)none, 0, 8);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)none, 0, 8);
  fd = sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC,
            3); /* the pipe may be 0, 1 or 2 if the program started without them */
  if (fd < 0) end_child(0);
  close_file(to);           /* the dynamic linker may need its number at the limit of open files */
  for (k = 0; k < 3; k++) { /* open() returns the lowest free number */
    close_file(k);
    open_file(cx, "/dev/null", O_RDWR);
  }
  return fd;
}

/* Copies the path of an open library; returns whether it is known. */
SHIM_FN int find_opened(void *library, char (*path)[PATH_MAX]) {
  int (*get_info)(void *, int, void *) =
      FUNCTION(int (*)(void *, int, void *), dlsym(RTLD_DEFAULT, "dlinfo"));
  struct link_map *map;
  if (!get_info || get_info(library, RTLD_DI_LINKMAP, &map)) return 0;
  copy_path(path, map->l_name);
  return **path != 0;
}

/* Sends facts about the loaded library: L and its path; for a driver those of call_driver(); for
 * cuDNN V and its version, and the index and path of each sublibrary. */
SHIM_FN void answer_for_library(struct context *cx, long fd, void *library, const struct cudnn *c,
                                struct child_memory *m) {
  char (*path)[PATH_MAX] = &m->name;
  size_t (*get_version)(void);
  int k;
  (*path)[0] = 0;
  if (find_opened(library, path)) send_answer(fd, 'L', *path);
  if (!c) {
    call_driver(cx, fd, library, *path, &m->text);
    return;
  }
  get_version = FUNCTION(size_t (*)(void), dlsym(library, CUDNN_GETTER));
  if (get_version) send_number(fd, 'V', (uint32_t)get_version());
  for (k = 0; k < c->parts; k++)
    if (is_loaded(c->part[k].file, path)) send_answer(fd, '0' + k, *path);
}

/* Returns whether this error of dlopen is that no file has the name. The error may also be about a
 * file that the library needs. */
SHIM_FN int is_absence(const char *error, const char *name) {
  static const char musl[] = "Error loading shared library ";
  const int of_musl = starts_with(error, musl);
  if (of_musl) error += sizeof musl - 1;
  return starts_with(error, name) &&
         starts_with(error + text_length(name), of_musl ? ":" : ": cannot open shared object");
}

/* Returns whether this error of dlopen is about an empty file. Container images contain empty files
 * as mount points for the files of the host. */
SHIM_FN int is_mount_point(struct context *cx, const char *error, char (*path)[PATH_MAX]) {
  const char *end = find_text(error, ": ");
  struct text t = start_text(*path, sizeof *path);
  if (*error != '/') return 0;
  while (end && error < end) put_char(&t, *error++);
  return !get_file_size(cx, *path);
}

/* Runs the child; never returns. Sends B at the start, N if the library does not exist, T and the
 * reason if it cannot be loaded, the answers of answer_for_library(), and E at the end. */
SHIM_FN void run_child(struct context *cx, long to, const char *names, const struct cudnn *c) {
  const long fd = prepare_child(cx, to);
  /* Only the child needs these, so the file does not import them. */
  int (*at_exit)(void (*)(void *), void *, void *) =
      FUNCTION(int (*)(void (*)(void *), void *, void *), dlsym(RTLD_DEFAULT, "__cxa_atexit"));
  char *(*get_error)(void) = FUNCTION(char *(*)(void), dlsym(RTLD_DEFAULT, "dlerror"));
  struct child_memory *m = &cx->answer.child;
  void *library = 0;
  const char *error;
  int there = 0;
  if (at_exit) at_exit(end_child, 0, 0);
  send_answer(fd, 'B', "");
  while (!library && (names = read_name(names, m->name))) {
    library = dlopen(m->name, RTLD_LAZY);
    error = library || !get_error ? 0 : get_error();
    if (!error || there || is_absence(error, m->name) || is_mount_point(cx, error, &m->text))
      continue;
    there = 1;
    copy_text(m->text, sizeof m->text, error);
  }
  if (library) {
    answer_for_library(cx, fd, library, c, m);
  } else if (there) {
    send_answer(fd, 'T', m->text);
  } else {
    /* If this or the search of the parent could not open a file, absence is not proven. */
    close_file(open_file(cx, "/", O_RDONLY));
    if (!cx->lookup_failed) send_answer(fd, 'N', "");
  }
  send_answer(fd, 'E', "");
  end_child(0);
}

/* Returns the answer of this kind, which may be incomplete, or null. */
SHIM_API const char *get_answer(struct context *cx, char kind) {
  size_t at = 0;
  while (at < cx->answered) {
    if (cx->answer.at[at] == kind) return cx->answer.at + at + 1;
    at += text_length(cx->answer.at + at) + 1;
  }
  return 0;
}

/* Returns whether the PID namespace of new children has a process. The link of one without a
 * process is dangling; kernels before 4.12 have no link. */
SHIM_FN int is_namespace_alive(void) {
  static const char children[] = "/proc/self/ns/pid_for_children";
  struct stat is;
  return stat_at(AT_FDCWD, children, &is, AT_SYMLINK_NOFOLLOW) ||
         !stat_at(AT_FDCWD, children, &is, 0);
}

/* Creates a process that is invisible to the program and to debuggers: no SIGCHLD, no result of
 * wait(), no pthread_atfork handlers. A debugger would treat it as a thread. Emulators support only
 * the call with SIGCHLD. Returns 0 in the child. Returns an error if the child would be the first
 * process of a PID namespace, which would end with it. */
SHIM_FN long start_child(void) {
#ifdef __GLIBC__
  long child;
  if (!is_namespace_alive()) return -EPERM;
  child = sys2(SYS_clone, CLONE_UNTRACED, 0);
  return child < 0 ? sys2(SYS_clone, SIGCHLD, 0) : child;
#else
  if (!is_namespace_alive()) return -EPERM;
  /* abort() of musl signals the thread that its last fork recorded: after a system call alone, one
   * of the program. */
  return _Fork ? _Fork() : -ENOSYS;
#endif
}

/* Waits for the end of a child, at most REAP_MS. */
SHIM_FN void reap_child(long child) {
  struct timespec wait;
  int tries;
  wait.tv_sec = 0;
  wait.tv_nsec = 200000;
  for (tries = 0; tries < REAP_MS * 5; tries++) {
    if (sys4(SYS_wait4, child, 0, WNOHANG | __WALL, 0)) return;
    sys2(SYS_nanosleep, (long)&wait, 0);
  }
}

/* Reads the answers of a child until it ends, sends E, or the time limit expires. */
SHIM_FN void read_answers(struct context *cx, int from) {
  struct pollfd p;
  long got;
  p.fd = from;
  p.events = POLLIN;
  while (cx->outcome == HUNG) {
    got = sys4(SYS_ppoll, (long)&p, 1, (long)&cx->left, 0); /* subtracts the time */
    if (got == -EINTR) continue;
    if (got <= 0) return;
    got = sys3(SYS_read, from, (long)(cx->answer.at + cx->answered),
               (long)(sizeof cx->answer.at - 1 - cx->answered));
    if (got <= 0)
      cx->outcome =
          cx->answered ? DIED : NOBODY_TO_ASK; /* without B, the library was not the cause */
    else cx->answered += (size_t)got;
    cx->answer.at[cx->answered] = 0;
    if (get_answer(cx, 'E'))
      cx->outcome = ANSWERED; /* the end of the file may be late: a driver may start a daemon */
  }
}

/* Runs the child once per library and process, and caches the answer. `library` has one name per
 * line; the child uses the first that it can open. `c` is null for the driver. */
SHIM_API int ask_child(struct context *cx, const char *library, const struct cudnn *c) {
  int ends[2];
  long child;
  if (texts_are_equal(cx->asked, library)) return cx->outcome;
  copy_path(&cx->asked, library);
  cx->answered = 0;
  cx->outcome = NOBODY_TO_ASK;
  if (!dlopen || sys2(SYS_pipe2, (long)ends, O_CLOEXEC) != 0) return cx->outcome;
  if (!cx->patience) {
    const char *given = get_variable("CUDAGUARD_TIMEOUT");
    long seconds = parse_number(&given, 3600);
    cx->left.tv_sec = cx->patience = seconds > 0 ? seconds : (long)PATIENCE;
  }
  /* If another thread holds the lock of the heap now, the child hangs until the time limit. */
  child = start_child();
  if (child == 0) {
    close_file(ends[0]);
    run_child(cx, ends[1], cx->asked, c);
  }
  close_file(ends[1]);
  if (child > 0) cx->outcome = HUNG;
  read_answers(cx, ends[0]);
  close_file(ends[0]);
  if (child < 0) return cx->outcome;
  if (cx->outcome == HUNG) sys2(SYS_kill, child, SIGKILL);
  reap_child(child);
  return cx->outcome;
}
