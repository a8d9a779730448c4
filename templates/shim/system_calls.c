/* The kernel, without the C library: whoever stands before that (LD_PRELOAD, a sanitizer that has not started yet) would be
 * called before `main`. errno stays as it is. An answer below 0 is an error's number. */
#define INLINE UNWATCHED static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(__ILP32__)
INLINE long sys1(long n, long a) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys2(long n, long a, long b) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys3(long n, long a, long b, long c) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys4(long n, long a, long b, long c, long d) {
  long r;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__) && !defined(__ILP32__)
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
INLINE long sys4(long n, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#define sys1(n, a) sys4(n, a, 0, 0, 0)
#define sys2(n, a, b) sys4(n, a, b, 0, 0)
#define sys3(n, a, b, c) sys4(n, a, b, c, 0)
#else
CODE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  int saved = errno;
  long r = syscall(n, a, b, c, d, e, f);
  if (r == -1) r = -errno;
  errno = saved;
  return r;
}
#define sys1(n, a) sys6(n, a, 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys6(n, a, b, 0, 0, 0, 0)
#define sys3(n, a, b, c) sys6(n, a, b, c, 0, 0, 0)
#define sys4(n, a, b, c, d) sys6(n, a, b, c, d, 0, 0)
#endif

/* A sandbox may know the older of two calls alone, which is the C library's own. */
#ifdef SYS_access
#define ACCESS(path, how) sys2(SYS_access, (long)(path), how)
#else
#define ACCESS(path, how) sys3(SYS_faccessat, AT_FDCWD, (long)(path), how)
#endif
#ifdef SYS_readlink
#define READLINK(path, to, size) sys3(SYS_readlink, (long)(path), (long)(to), size)
#else
#define READLINK(path, to, size) sys4(SYS_readlinkat, AT_FDCWD, (long)(path), (long)(to), size)
#endif

/* Whether something could not be looked at: it may be there, for all that is known. */
static int shut;

CODE long looked(long r) {
  if (r < 0 && r != -ENOENT && r != -ENOTDIR) shut = 1;
  return r;
}

CODE long open_file(const char *path, int how) {
  return looked(sys4(SYS_openat, AT_FDCWD, (long)path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
}

CALLED long look_at(long folder, const char *path, struct stat *is, long how) {
  return sys4(SYS_newfstatat, folder, (long)path, (long)is, how);
}

/* -1 where there is none. Nothing is opened. */
CODE long size_of_file(const char *path) {
  struct stat is;
  return looked(look_at(AT_FDCWD, path, &is, 0)) == 0 ? (long)is.st_size : -1;
}

CODE void close_file(long fd) { sys1(SYS_close, fd); }

/* Writes, whatever the other end is: no signal ends the program for it, and where nobody reads, nobody waits longer than so many
 * seconds. Pieces that a pipe takes in whole or not at all; most is one write, never mixed with what other processes write.
 * Whether all was written. */
CODE int write_out(long fd, const char *at, size_t left, long seconds) {
  enum { MASK = 8 };
  const uint64_t all = ~(uint64_t)0;
  const uint64_t ours = (uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1);
  uint64_t before;
  struct timespec wait;
  struct pollfd p;
  p.fd = (int)fd, p.events = POLLOUT;
  wait.tv_sec = seconds, wait.tv_nsec = 0;
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, MASK);
  while (left && sys4(SYS_ppoll, (long)&p, 1, (long)&wait, 0) > 0) {
    long n = sys3(SYS_write, fd, (long)at, (long)(left < PIPE_BUF ? left : PIPE_BUF));
    if (n <= 0) break;
    at += n, left -= (size_t)n;
  }
  wait.tv_sec = wait.tv_nsec = 0;
  while (sys4(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&wait, MASK) > 0)
    ;
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, MASK);
  return !left;
}

CODE long read_text(const char *path, char *to, size_t size) {
  long fd = open_file(path, O_RDONLY), n = -1;
  if (fd >= 0) {
    n = sys3(SYS_read, fd, (long)to, (long)size - 1);
    close_file(fd);
  }
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}
