/* Level 1: a child process asks the real cuDNN, or the driver. */
#ifndef CUDAGUARD_PROBE_H
#define CUDAGUARD_PROBE_H

#include "library_search.h"
#include "loaded.h"

enum { NOT_ASKED, NOBODY_TO_ASK, ANSWERED, DIED, HUNG };

#define LIBCUDA "libcuda.so.1"
#define LIBJIT "libnvidia-ptxjitcompiler.so.1"

CALLED void exit_now(int status) {
  sys1(SYS_exit_group, status);
  __builtin_trap(); /* a sandbox does not let it go */
}

/* A driver that calls exit() must not run what the program left to be done at its end. */
CODE void exit_without_handlers(void *unused) {
  (void)unused;
  exit_now(1);
}

/* One answer: its kind, its text and a NUL. */
CODE void send_answer(long fd, int kind, const char *s) {
  char letter = (char)kind;
  if (sys3(SYS_write, fd, (long)&letter, 1) < 0 ||
      sys3(SYS_write, fd, (long)s, (long)text_length(s) + 1) < 0)
    exit_now(1);
}

CODE void send_number(long fd, int kind, uint32_t n) {
  char digits[16];
  struct text t = start_text(digits, sizeof digits);
  put_number(&t, n);
  send_answer(fd, kind, digits);
}

/* By its name alone, as a file that names no folders would search for it: libcuda does. */
CODE int has_driver_library(struct context *cx, const char *library) {
  struct image nobody;
  int is;
  nobody.name = "";
  nobody.rpath = nobody.runpath = 0;
  cx->by_name = 1;
  is = search_library(cx, library, &nobody, &cx->scratch, 0) == IS_THERE;
  cx->by_name = 0;
  return is;
}

/* POSIX promises what C leaves open: that a symbol's address becomes a function's. */
#define FUNCTION(type, address) (__extension__(type)(address))

/* Sends V and the CUDA version, I and the result of cuInit, G and the compute capability of each
 * GPU, J if PTX can be compiled. Sends nothing if this is no driver. */
CODE void call_driver(struct context *cx, long to, void *library, const char *path) {
  enum { MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
  const char *names = "cuInit\ncuDriverGetVersion\ncuDeviceGetCount\ncuDeviceGet\n"
                      "cuDeviceGetAttribute";
  void *calls[5];
  int (*init)(unsigned);
  int (*get_version)(int *);
  int (*get_count)(int *);
  int (*get)(int *, int);
  int (*get_attribute)(int *, int, int);
  char *line = cx->answer; /* the child's own */
  struct text t;
  int n = 0, k = 0, device = 0, major = 0, minor = 0;
  for (; (names = read_name(names, line)); k++)
    if (!(calls[k] = dlsym(library, line))) return;
  init = FUNCTION(int (*)(unsigned), calls[0]);
  get_version = FUNCTION(int (*)(int *), calls[1]);
  get_count = FUNCTION(int (*)(int *), calls[2]);
  get = FUNCTION(int (*)(int *, int), calls[3]);
  get_attribute = FUNCTION(int (*)(int *, int, int), calls[4]);
  t = start_text(line, sizeof cx->answer);
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
  if (cx->driver.jit) return;
  /* The driver also searches its own folder. */
  t = start_text(line, sizeof cx->answer);
  while (path < base_name(path)) put_char(&t, *path++);
  put(&t, LIBJIT);
  if (has_driver_library(cx, LIBJIT) || dlopen(LIBJIT, RTLD_LAZY) || dlopen(line, RTLD_LAZY) ||
      cx->lookup_failed)
    send_answer(to, 'J', "");
}

/* Maps the code of a loaded object from its file again. The child inherits a debugger's
 * breakpoints, and nothing would handle their traps. */
CODE int renew_code(struct dl_phdr_info *info, size_t size, void *data) {
  struct context *cx = (struct context *)data;
  struct elf *e = &cx->elf;
  int k;
  (void)size;
  if (open_elf(cx, e, info->dlpi_name[0] ? info->dlpi_name : find_program(cx)) != IS_THERE)
    return 0;
  for (k = 0; k < e->n && bytes_are_equal(e->ph, info->dlpi_phdr, (size_t)e->n * sizeof *e->ph);
       k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    const uintptr_t into = ph->p_vaddr & (ph->p_align - 1);
    if (ph->p_type != PT_LOAD || (ph->p_flags & (PF_X | PF_W)) != PF_X) continue;
    sys6(SYS_mmap, (long)(info->dlpi_addr + ph->p_vaddr - into), (long)(ph->p_filesz + into),
         PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, e->fd, (long)(ph->p_offset - into));
  }
  close_file(e->fd);
  return 0;
}

/* Makes a child that was just made fit to run code of others: it ends with its parent, dumps no
 * core, handles no signal, and has no file of the program's. Returns where to write answers to. */
CODE long prepare_child(struct context *cx, long to) {
  const char none[64] __attribute__((aligned(8))) = {
      0}; /* a kernel's sigaction, the default, and a mask of signals */
  struct timespec at_once;
  struct pollfd p;
  long fd;
  int k;
  sys2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  at_once.tv_sec = at_once.tv_nsec = 0;
  p.fd = (int)to;
  p.events = POLLOUT;
  /* If the parent is gone already, nothing reads the pipe, and nothing would end this child. */
  if (sys4(SYS_ppoll, (long)&p, 1, (long)&at_once, 0) > 0 && (p.revents & POLLERR)) exit_now(1);
  sys2(SYS_prctl, PR_SET_DUMPABLE, 0);
  for (k = 1; k < 32; k++) sys4(SYS_rt_sigaction, k, (long)none, 0, 8);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)none, 0, 8);
  fd = sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC,
            3); /* the pipe may be 0, 1 or 2 if the program was started with those closed */
  if (fd < 0) exit_now(1);
  close_file(to);           /* if files are scarce, the loader needs its number */
  for (k = 0; k < 3; k++) { /* a file that is opened gets the least number that is free */
    close_file(k);
    open_file(cx, "/dev/null", O_RDWR);
  }
  return fd;
}

/* Answers what the loaded library is: L and its path; of a driver what call_driver() answers; of
 * cuDNN V and its version, and a part's number and that part's path. */
CODE void answer_for_library(struct context *cx, long fd, void *library, const struct cudnn *c) {
  char(*path)[PATH_MAX] = &cx->found, soname[NOTE_TEXT];
  size_t (*get_version)(void);
  int k;
  (*path)[0] = soname[0] = 0;
  if (is_loaded(base_name(cx->real), path, &soname) || (c && is_loaded(0, path, &soname)))
    send_answer(fd, 'L', *path);
  if (!c) {
    call_driver(cx, fd, library, *path);
    return;
  }
  get_version = FUNCTION(size_t(*)(void), dlsym(library, GUARDED_ASKS));
  if (get_version) send_number(fd, 'V', (uint32_t)get_version());
  for (k = 0; k < c->parts; k++)
    if (is_loaded(c->part[k].file, path, &soname)) send_answer(fd, '0' + k, *path);
}

/* Never returns. Answers: B at the begin, N if there is no such library, T and why if there is one
 * that cannot be loaded, what answer_for_library() answers, and E at the end. */
CODE void run_child(struct context *cx, long to, const char *names, const struct cudnn *c,
                    int traced) {
  const long fd = prepare_child(cx, to);
  void *library = 0;
  int there = 0;
  if (traced) dl_iterate_phdr(renew_code, cx);
  __cxa_atexit(exit_without_handlers, 0, 0);
  cx->lookup_failed = 0;
  send_answer(fd, 'B', "");
  while (!library && (names = read_name(names, cx->real))) {
    library = dlopen(cx->real, RTLD_LAZY);
    if (!library) there |= has_driver_library(cx, cx->real);
  }
  if (library) {
    answer_for_library(cx, fd, library, c);
  } else {
    /* If nothing can be opened, absence is not proven. */
    close_file(open_file(cx, "/", O_RDONLY));
    if (there && !c) send_answer(fd, 'T', dlerror());
    else if (!cx->lookup_failed) send_answer(fd, 'N', "");
  }
  send_answer(fd, 'E', "");
  exit_now(0);
}

/* Returns the answer of this kind, as far as it was received; or null. */
CODE const char *get_answer(struct context *cx, char kind) {
  size_t at = 0;
  while (at < cx->answered) {
    if (cx->answer[at] == kind) return cx->answer + at + 1;
    at += text_length(cx->answer + at) + 1;
  }
  return 0;
}

/* Returns whether the children of this process are in its PID namespace. The link of a namespace
 * that has no process yet leads nowhere; kernels before 4.12 have no link. */
CODE int keeps_namespace(void) {
  static const char children[] = "/proc/self/ns/pid_for_children";
  struct stat here, there;
  if (stat_at(AT_FDCWD, children, &there, AT_SYMLINK_NOFOLLOW)) return 1;
  if (stat_at(AT_FDCWD, children, &there, 0)) return 0;
  return !stat_at(AT_FDCWD, "/proc/self/ns/pid", &here, 0) && here.st_ino == there.st_ino;
}

/* Makes a process of which neither the program nor a debugger sees anything: no SIGCHLD, and no
 * wait() of the program's returns it (a debugger would take it for a thread); nothing runs that
 * others left with pthread_atfork. Emulators have no such call, but one with the signal. Returns 0
 * in the child, and an error if children would go to another PID namespace: the first process there
 * would end it with its own end. */
CODE long start_child(void) {
  long child;
  if (!keeps_namespace()) return -EPERM;
  child = sys2(SYS_clone, CLONE_UNTRACED, 0);
  return child < 0 ? sys2(SYS_clone, SIGCHLD, 0) : child;
}

/* Waits so many milliseconds at most for the end of a child; returns whether it has ended. */
CODE int reap_child(long child, int milliseconds) {
  struct timespec wait;
  int tries;
  wait.tv_sec = 0;
  wait.tv_nsec = 200000;
  for (tries = 0; tries < milliseconds * 5; tries++) {
    long got = sys4(SYS_wait4, child, 0, WNOHANG | __WALL, 0);
    if (got && got != -EINTR) return 1;
    sys2(SYS_nanosleep, (long)&wait, 0);
  }
  return 0;
}

CODE int stop_at_first(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info;
  (void)size;
  (void)unused;
  return 1;
}

/* Returns whether the loader's lock can be had. A forked child inherits it locked, for ever, if
 * another thread of the parent was in the loader: a process of our own tries. */
CODE int is_loader_free(void) {
  long child = start_child();
  if (child < 0) return 0;
  if (child == 0) {
    dl_iterate_phdr(stop_at_first, 0);
    exit_now(0);
  }
  if (reap_child(child, REAP_MS)) return 1;
  sys2(SYS_kill, child, SIGKILL);
  reap_child(child, REAP_MS);
  return 0;
}

/* Reads the answers of a child until it ends, answers E, or the time is over. */
CODE void read_answers(struct context *cx, int from) {
  struct pollfd p;
  long got;
  p.fd = from;
  p.events = POLLIN;
  while (cx->outcome == HUNG) {
    got = sys4(SYS_ppoll, (long)&p, 1, (long)&cx->left, 0); /* takes from it what it waits */
    if (got == -EINTR) continue;
    if (got <= 0) return;
    got = sys3(SYS_read, from, (long)(cx->answer + cx->answered),
               (long)(sizeof cx->answer - 1 - cx->answered));
    if (got == -EINTR) continue;
    if (got <= 0)
      cx->outcome =
          cx->answered ? DIED : NOBODY_TO_ASK; /* before it began, no library had ended it */
    else cx->answered += (size_t)got;
    cx->answer[cx->answered] = 0;
    if (get_answer(cx, 'E'))
      cx->outcome =
          ANSWERED; /* the end of the file may take longer: a driver may leave a daemon behind */
  }
}

/* Asks once per library and process; the answer is kept. A library may have several names, one a
 * line: the first that can be opened counts. `c` is null if the library is the driver's. */
CODE int ask_child(struct context *cx, const char *library, const struct cudnn *c) {
  int ends[2], traced;
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
  traced = read_file_text(cx, "/proc/self/status", cx->text, sizeof cx->text) &&
           !find_text(cx->text, "TracerPid:\t0");
  /* If another thread holds the heap's lock at this moment, the child hangs until the time is over.
   */
  child = start_child();
  if (child == 0) {
    close_file(ends[0]);
    run_child(cx, ends[1], cx->asked, c, traced);
  }
  close_file(ends[1]);
  if (child > 0) cx->outcome = HUNG;
  read_answers(cx, ends[0]);
  close_file(ends[0]);
  if (child < 0) return cx->outcome;
  if (cx->outcome == HUNG) sys2(SYS_kill, child, SIGKILL);
  reap_child(child, REAP_MS);
  return cx->outcome;
}

#endif
