/* The system's headers. */
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

#include "limits.h"

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

/* The location of a loaded object. */
struct loaded_file {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name; /* from the dynamic linker; empty for the program */
};

#endif
