/* What every part uses: the system's headers, attributes, numbers with names. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
/* Its checked memcpy is inlined by force, which functions of other options than the file's do not allow; every copy here is
 * of a size that was compared before. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX /* limits.h of a freestanding clang */
#define PATH_MAX 4096
#endif

/* Before glibc 2.34 these live in libdl, and a static program has none: then there is nobody to ask, and no more. */
#pragma weak dlopen
#pragma weak dlsym
#ifdef __has_attribute
#if __has_attribute(noplt) /* a table entry less for each */
extern __typeof__(dlopen) dlopen __attribute__((noplt));
extern __typeof__(dlsym) dlsym __attribute__((noplt));
extern __typeof__(secure_getenv) secure_getenv __attribute__((noplt));
extern __typeof__(dl_iterate_phdr) dl_iterate_phdr __attribute__((noplt));
#endif
#endif

#define SHARED(name) cudaguard_r1_##name
/* Small whatever the build's own -O is: what runs once at the start gains nothing by being unrolled. */
#if defined(__clang__)
#define SMALL_CODE minsize
#else
#if __GNUC__ >= 12
#define SMALLEST "Oz"
#else
#define SMALLEST "Os"
#endif
#if defined(__x86_64__) && __GNUC__ >= 11
#define REGISTERS , target("general-regs-only")
#else
#define REGISTERS
#endif
/* What is switched off makes code faster and larger: a KiB in all. */
#define SMALL_CODE \
  optimize(SMALLEST, "no-thread-jumps", "no-move-loop-invariants", "no-if-conversion", "no-tree-loop-im", "no-tree-tail-merge", \
           "no-tree-scev-cprop", "no-caller-saves", "no-optimize-sibling-calls", "no-shrink-wrap", "no-ssa-phiopt") REGISTERS
#endif
#define SMALL SMALL_CODE, section(".text.cudaguard_r1")
#define SHOWN __attribute__((weak, used, visibility("hidden"), SMALL))
/* Compilers align tables for speed. */
#define TIGHT __attribute__((aligned(4)))
#define CODE static __attribute__((SMALL))
#define APART static __attribute__((noinline, SMALL)) /* larger where it is inlined, whatever compilers think */

enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };
enum { ROW_CUDNN = 1, ROW_INNER = 2, ROW_DRIVER = 3, ROW_GPU = 4 };
enum { LINKED = 1, DLOPENED = 2, STATIC = 4, PATCH = 8, REQUIRED = 16 };
enum { GPU_REQUIRED = 1, GPU_OPTIONAL = 2 };
enum { BY_CUBIN = 1, BY_PTX = 2, BY_SOME = 4, BY_NONE = 8, NO_PTX = 32 };
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };
enum { UNKNOWN, ABSENT, FOUND, INSIDE };

enum {
  STATUS_REFUSED = 78,
  CHILD_MS = 2000,      /* the longest that a question to the real cuDNN may take */
  DRIVER_MS = 10000,    /* and one to the driver: many GPUs that nobody keeps awake take seconds to wake */
  REAP_MS = 200,        /* and its killing, where the driver does not let go of it */
  MAX_NOTES = 64,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_FINDINGS = 24,
  MAX_SEEN = 9,         /* cuDNNs in the report */
  SHOW = 400,           /* of a path in words */
  WHY = SHOW + 160,
  TEXT = 256            /* of a note, with its NUL */
};

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif
