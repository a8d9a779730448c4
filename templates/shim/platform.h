/* The headers of Linux, and its system calls. */
#ifndef CUDAGUARD_PLATFORM_H
#define CUDAGUARD_PLATFORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
/* _FORTIFY_SOURCE would call the C library, which may not have started. All sizes are checked
 * before a copy. */
#undef _FORTIFY_SOURCE

#include "attributes.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PATH_MAX /* limits.h of a freestanding clang */
#define PATH_MAX 4096
#endif

/* Weak, because they are in libdl before glibc 2.34, and a static program has none. Without them
 * there is no level 1. */
#pragma weak dlopen
#pragma weak dlsym

#ifndef __GLIBC__ /* musl 1.2.2 and newer */
extern pid_t _Fork(void);
#pragma weak _Fork
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_NONE
#endif

/* The location of a loaded object. */
struct loaded_file {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name; /* from the dynamic linker; empty for the program */
};

/* System calls without the C library, because a function that is called before `main` may belong to
 * LD_PRELOAD or to a sanitizer that has not started yet. They do not change errno. A result below 0
 * is a negative error number. */
#define INLINE NO_SANITIZE static inline __attribute__((always_inline))

#if defined(__x86_64__)
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(r)
                   : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return r;
}
INLINE long sys4(long n, long a, long b, long c, long d) {
  long r;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(r)
                   : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10)
                   : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__)
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
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
#else
SHIM_FN long sys6(long n, long a, long b, long c, long d, long e, long f) {
  int saved = errno;
  long r = syscall(n, a, b, c, d, e, f);
  if (r == -1) r = -errno;
  errno = saved;
  return r;
}
#define sys4(n, a, b, c, d) sys6(n, a, b, c, d, 0, 0)
#endif
#define sys1(n, a) sys4(n, a, 0, 0, 0)
#define sys2(n, a, b) sys4(n, a, b, 0, 0)
#define sys3(n, a, b, c) sys4(n, a, b, c, 0)

/* A sandbox may allow only the older one of two system calls, which the C library uses. */
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

#endif
