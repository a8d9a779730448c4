/* Level 1: a child asks the real cuDNN, or the driver. */

enum { NOT_ASKED, NOBODY_TO_ASK, ANSWERED, DIED, HUNG };

#define LIBCUDA "libcuda.so.1"
#define LIBJIT "libnvidia-ptxjitcompiler.so.1"

CALLED void leave(int status) {
  sys1(SYS_exit_group, status);
  __builtin_trap(); /* a sandbox does not let it go */
}

/* A driver that calls exit() must not run what the program left to be done at its end. */
CODE void leave_at_once(void *unused) {
  (void)unused;
  leave(1);
}

/* One answer: its kind, its text and a NUL. */
CODE void say_back(long fd, int kind, const char *s) {
  char letter = (char)kind;
  if (sys3(SYS_write, fd, (long)&letter, 1) < 0 || sys3(SYS_write, fd, (long)s, (long)len(s) + 1) < 0) leave(1);
}

CODE void say_number(long fd, int kind, uint32_t n) {
  char digits[16];
  struct text t = text_in(digits, sizeof digits);
  put_number(&t, n);
  say_back(fd, kind, digits);
}

/* By its name alone, as a file that names no folders would search for it: libcuda does. */
CODE int driver_has(const char *library) {
  struct image nobody;
  int is;
  nobody.name = "", nobody.rpath = nobody.runpath = 0;
  g.by_name = 1;
  is = search(library, &nobody, &g.scratch, 0) == 1;
  g.by_name = 0;
  return is;
}

/* POSIX promises what C leaves open: that a symbol's address becomes a function's. */
#define FUNCTION(type, library, name) (__extension__(type) dlsym(library, name))

/* What it says: V and the CUDA version, I and what cuInit answered, G and the compute capability of each GPU, J where PTX
 * can be compiled. Nothing where this is no driver. */
CODE void ask_driver(long to, void *library, const char *path) {
  enum { MAJOR = 75, MINOR = 76 }; /* CUdevice_attribute */
  int (*get_version)(int *) = FUNCTION(int (*)(int *), library, "cuDriverGetVersion");
  int (*init)(unsigned) = FUNCTION(int (*)(unsigned), library, "cuInit");
  int (*get_count)(int *) = FUNCTION(int (*)(int *), library, "cuDeviceGetCount");
  int (*get)(int *, int) = FUNCTION(int (*)(int *, int), library, "cuDeviceGet");
  int (*get_attribute)(int *, int, int) = FUNCTION(int (*)(int *, int, int), library, "cuDeviceGetAttribute");
  static char line[PATH_MAX + 64];
  struct text t = text_in(line, sizeof line);
  int n = 0, k, device = 0, major = 0, minor = 0;
  if (!get_version || !init || !get_count || !get || !get_attribute) return;
  if (get_version(&n) == 0) say_number(to, 'V', (uint32_t)n);
  k = init(0);
  say_number(to, 'I', (uint32_t)k);
  if (k != 0 || get_count(&n) != 0) return;
  for (k = 0; k < n && k < MAX_GPUS; k++) {
    if (get(&device, k) || get_attribute(&major, MAJOR, device) || get_attribute(&minor, MINOR, device)) major = minor = 0;
    put_number(&t, (uint32_t)(major << 8 | minor));
    put_char(&t, ',');
  }
  say_back(to, 'G', line);
  if (g.driver.jit) return;
  /* The driver looks beside itself, too. */
  t = text_in(line, sizeof line);
  while (path < base_name(path)) put_char(&t, *path++);
  put(&t, LIBJIT);
  if (driver_has(LIBJIT) || dlopen(LIBJIT, RTLD_LAZY) || dlopen(line, RTLD_LAZY) || shut) say_back(to, 'J', "");
}

/* Code of a loaded object, anew from its file. A debugger's breakpoints stand in the child's copy of the code, too, and there
 * is nobody to take their traps. */
CODE int renew_code(struct dl_phdr_info *info, size_t size, void *unused) {
  static struct elf e;
  int k;
  (void)size, (void)unused;
  if (elf_open(&e, info->dlpi_name[0] ? info->dlpi_name : self()) <= 0) return 0;
  for (k = 0; k < e.n && same_bytes(e.ph, info->dlpi_phdr, (size_t)e.n * sizeof *e.ph); k++) {
    const ElfW(Phdr) *ph = &e.ph[k];
    const uintptr_t into = ph->p_vaddr & (ph->p_align - 1);
    if (ph->p_type != PT_LOAD || (ph->p_flags & (PF_X | PF_W)) != PF_X) continue;
    sys6(SYS_mmap, (long)(info->dlpi_addr + ph->p_vaddr - into), (long)(ph->p_filesz + into), PROT_READ | PROT_EXEC,
         MAP_PRIVATE | MAP_FIXED, e.fd, (long)(ph->p_offset - into));
  }
  close_file(e.fd);
  return 0;
}

/* Never returns. What it says: B where it begins to ask, N where there is no such library, T and why where there is one and it
 * cannot be loaded, L and the library's path, V and the answer, a row's number and that inner library's path, E at the end. */
CODE void ask_as_child(long to, const char *names, const struct cudnn *c, int traced) {
  const char none[64] __attribute__((aligned(8))) = {0}; /* a kernel's sigaction, the default, and a mask of signals */
  size_t (*cudnn_version)(void);
  static char path[PATH_MAX], soname[NOTE_TEXT];
  void *handle;
  struct timespec at_once;
  struct pollfd p;
  long fd;
  int k, there = 0;
  sys2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  at_once.tv_sec = at_once.tv_nsec = 0;
  p.fd = (int)to, p.events = POLLOUT;
  /* If the parent is gone already, nothing reads the pipe, and nothing would end this child. */
  if (sys4(SYS_ppoll, (long)&p, 1, (long)&at_once, 0) > 0 && (p.revents & POLLERR)) leave(1);
  sys2(SYS_prctl, PR_SET_DUMPABLE, 0); /* no core file */
  for (k = 1; k < 32; k++) sys4(SYS_rt_sigaction, k, (long)none, 0, 8);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)none, 0, 8);
  fd = sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC, 3); /* the pipe may be 0, 1 or 2 where the program was started with those closed */
  if (fd < 0) leave(1);
  close_file(to); /* where files are scarce, the loader needs its number */
  for (k = 0; k < 3; k++) { /* what is opened gets the least number that is free */
    close_file(k);
    open_file("/dev/null", O_RDWR);
  }
  if (traced) dl_iterate_phdr(renew_code, 0);
  __cxa_atexit(leave_at_once, 0, 0);
  shut = 0;
  say_back(fd, 'B', "");
  for (handle = 0; !handle && (names = next_name(names, g.real));) {
    handle = dlopen(g.real, RTLD_LAZY);
    if (!handle) there |= driver_has(g.real);
  }
  if (!handle) {
    /* Whatever the reason is: where nothing can be opened, it says nothing of what is there. */
    close_file(open_file("/", O_RDONLY));
    if (there && !c) say_back(fd, 'T', dlerror());
    else if (!shut) say_back(fd, 'N', "");
  } else {
    path[0] = soname[0] = 0;
    if (is_loaded(base_name(g.real), &path, &soname) || (c && is_loaded(0, &path, &soname))) say_back(fd, 'L', path);
    if (!c) ask_driver(fd, handle, path);
    else if ((cudnn_version = FUNCTION(size_t (*)(void), handle, GUARDED_ASKS))) say_number(fd, 'V', (uint32_t)cudnn_version());
    for (k = 0; c && k < c->parts; k++)
      if (is_loaded(c->part[k].file, &path, &soname)) say_back(fd, '0' + k, path);
  }
  say_back(fd, 'E', "");
  leave(0);
}

/* What it said of this kind, as far as it has said it; or null. */
CODE const char *answer(char kind) {
  size_t at = 0;
  while (at < g.answered) {
    if (g.answer[at] == kind) return g.answer + at + 1;
    at += len(g.answer + at) + 1;
  }
  return 0;
}

/* Makes a process of which neither the program nor a debugger sees anything: no SIGCHLD, and no wait() of the program's returns
 * it (a debugger would take it for a thread); nothing runs that others left with pthread_atfork. Emulators have no such call, but
 * one with the signal. Returns 0 in the child, and an error if children would go to another PID namespace: the first process
 * there would end it with its own end. */
CODE long start_child(void) {
  struct stat here, there;
  long child;
  if (!look_at(AT_FDCWD, "/proc/self/ns/pid", &here, 0) && !look_at(AT_FDCWD, "/proc/self/ns/pid_for_children", &there, 0) &&
      here.st_ino != there.st_ino)
    return -EPERM;
  child = sys2(SYS_clone, CLONE_UNTRACED, 0);
  return child < 0 ? sys2(SYS_clone, SIGCHLD, 0) : child;
}

/* Waits so many milliseconds at most for the end of a child; returns whether it has ended. */
CODE int reap_child(long child, int milliseconds) {
  struct timespec wait;
  int tries;
  wait.tv_sec = 0, wait.tv_nsec = 200000;
  for (tries = 0; tries < milliseconds * 5; tries++) {
    long got = sys4(SYS_wait4, child, 0, WNOHANG | __WALL, 0);
    if (got && got != -EINTR) return 1;
    sys2(SYS_nanosleep, (long)&wait, 0);
  }
  return 0;
}

CODE int stop_at_first(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info, (void)size, (void)unused;
  return 1;
}

/* Returns whether the loader's lock can be had. A forked child inherits it locked, for ever, if another thread of the parent was
 * in the loader: a process of our own tries. */
CODE int loader_is_free(void) {
  long child = start_child();
  if (child < 0) return 0;
  if (child == 0) {
    dl_iterate_phdr(stop_at_first, 0);
    leave(0);
  }
  if (reap_child(child, REAP_MS)) return 1;
  sys2(SYS_kill, child, SIGKILL);
  reap_child(child, REAP_MS);
  return 0;
}

/* Asks once per library and process; the answer is kept. A library may go by several names, one a line: the first that can
 * be opened counts. `c` is null where the library is the driver's. */
CODE int ask(const char *library, const struct cudnn *c) {
  struct pollfd p;
  static char status[512];
  int ends[2], traced;
  long child, got;
  if (same(g.asked, library)) return g.outcome;
  keep_path(&g.asked, library);
  g.answered = 0;
  g.outcome = NOBODY_TO_ASK;
  if (!dlopen || sys2(SYS_pipe2, (long)ends, O_CLOEXEC) != 0) return g.outcome;
  if (!g.patience) {
    const char *given = variable("CUDAGUARD_TIMEOUT");
    long seconds = number(&given, 3600);
    g.left.tv_sec = g.patience = seconds > 0 ? seconds : (long)PATIENCE;
  }
  traced = read_text("/proc/self/status", status, sizeof status) && !find_text(status, "TracerPid:\t0");
  /* If another thread holds the heap's lock at this moment, the child hangs until the time is over. */
  child = start_child();
  if (child == 0) {
    close_file(ends[0]);
    ask_as_child(ends[1], library, c, traced);
  }
  close_file(ends[1]);
  p.fd = ends[0], p.events = POLLIN;
  if (child > 0) g.outcome = HUNG;
  while (g.outcome == HUNG) {
    got = sys4(SYS_ppoll, (long)&p, 1, (long)&g.left, 0); /* takes from it what it waits */
    if (got == -EINTR) continue;
    if (got <= 0) break;
    got = sys3(SYS_read, ends[0], (long)(g.answer + g.answered), (long)(sizeof g.answer - 1 - g.answered));
    if (got == -EINTR) continue;
    if (got <= 0) g.outcome = g.answered ? DIED : NOBODY_TO_ASK; /* before it began, no library had ended it */
    else g.answered += (size_t)got;
    g.answer[g.answered] = 0;
    if (answer('E')) g.outcome = ANSWERED; /* the end of the file may take longer: a driver may leave a daemon behind */
  }
  close_file(ends[0]);
  if (child < 0) return g.outcome;
  if (g.outcome == HUNG) sys2(SYS_kill, child, SIGKILL);
  reap_child(child, REAP_MS);
  return g.outcome;
}
