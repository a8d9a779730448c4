/* The system's headers, attributes of functions, and limits. */
#ifndef CUDAGUARD_PLATFORM_H
#define CUDAGUARD_PLATFORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
/* A checked copy ends in the C library, which may not have started; every copy here is of a size
 * that was compared before. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX /* limits.h of a freestanding clang */
#define PATH_MAX 4096
#endif

/* Before glibc 2.34 these are in libdl, and a static program has none: then nothing is asked. */
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror

/* What the kernel writes, a sanitizer of memory does not see, and no sanitizer of calls knows the
 * functions of a library that was just opened: each would end a healthy program. */
#ifdef __clang__
#define UNWATCHED __attribute__((no_sanitize("memory", "cfi")))
#else
#define UNWATCHED
#endif

/* Every C library has it; no header declares it. */
#ifdef __cplusplus
extern "C"
#endif
    int
    __cxa_atexit(void (*)(void *), void *, void *);

#define SHARED(name) cudaguard_r1_##name
/* One section for all code of a copy: see the head of shim.c. */
#define CODE_SECTION section(".text.cudaguard_r1")
#define SHOWN UNWATCHED __attribute__((weak, used, visibility("hidden"), CODE_SECTION))
#define CODE UNWATCHED static __attribute__((unused, CODE_SECTION))
/* Where clang's -Oz would write a function out in its callers, and the shim would grow. */
#define CALLED CODE __attribute__((noinline))

/* Has the members of an object accessed by a register, where clang would write out the address of
 * the only object that a pointer can lead to at each of them: the code is shorter. */
#define BY_REGISTER(pointer) __asm__("" : "+r"(pointer))

/* Verdicts and severities, as cudaguard.h has them. */
enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };

/* Values of CUDAGUARD. */
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };

enum {
  STATUS_REFUSED = 78,
  STATUS_OF_LOADER = 127,
  PATIENCE = 10, /* seconds for all questions to the real ones: many GPUs that nobody keeps awake
                    take some to wake */
  REAP_MS = 200, /* for the killing of a child, where the driver does not let go of it */
  MAX_NOTES = 256,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_CODES = 16384,
  MAX_FINDINGS = 48,
  MAX_KEPT = 16 * 1024, /* bytes of texts of findings */
  MAX_SEEN = 8,         /* cuDNNs in the report */
  MAX_TOLD = 8,         /* refusals on stderr */
  SHOW = 400,           /* of a path in words */
  WHY = SHOW + 160,
  NOTE_TEXT = 256 /* of a note, with its NUL */
};

#ifndef MADV_WIPEONFORK /* Linux 4.14 */
#define MADV_WIPEONFORK 18
#endif

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#define NATIVE_MACHINE EM_NONE
#endif

#endif
