/* The system's headers, and limits. */
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

/* Weak, because they are in libdl before glibc 2.34, and a static program has none. Without them
 * there is no level 1. */
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror

/* Every C library has it; no header declares it. */
#ifdef __cplusplus
extern "C"
#endif
    int
    __cxa_atexit(void (*)(void *), void *, void *);

/* Values of CUDAGUARD. */
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };

enum {
  STATUS_REFUSED = 78,
  STATUS_OF_LOADER = 127,
  PATIENCE = 10, /* default time limit of all probes in seconds; many sleeping GPUs take time */
  REAP_MS = 200, /* time limit for killing a child, which the driver may delay */
  MAX_NOTES = 256,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_CODES = 16384,
  MAX_FINDINGS = 48,
  MAX_TEXTS = 16 * 1024, /* bytes of strings of findings */
  MAX_SEEN = 8,          /* cuDNNs in the report */
  MAX_PRINTED = 8,       /* findings on stderr */
  SHOW = 400,            /* characters of an untrusted string in a message */
  WHY = SHOW + 160,
  NOTE_TEXT = 256 /* size of a string in a note, with its NUL */
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
