/* cudaguard.h: lets a guarded program or library ask its guard for the verdict.
 *
 * Include it in C or C++. In a file without a guard the result is unknown. The symbols are hidden and contain the
 * revision of the guard, so that a process can contain several guards.
 *
 * Any thread with 16 KiB of stack may call these functions, also after fork, but not a signal handler. All calls return the same
 * result. They never end the process. docs/internals/shim-contract.md documents what they read and write, and their costs. */
#ifndef CUDAGUARD_H
#define CUDAGUARD_H

#include <stddef.h>

#define CUDAGUARD_COMPATIBLE 0   /* nothing that the guard checked prevents the program from running */
#define CUDAGUARD_INCOMPATIBLE 1 /* the program cannot run here; the text contains the reason */
#define CUDAGUARD_UNKNOWN 2      /* the guard could not determine it; the text contains the reason */

#define CUDAGUARD_INFO 0
#define CUDAGUARD_WARNING 1
#define CUDAGUARD_ERROR 2

/* The verdict as data. Later revisions append members and never move one; `size` states which members the caller has. Strings are
 * UTF-8, NUL-terminated, truncated to their size, and empty if they do not apply. */
struct cudaguard_verdict {
  size_t size;          /* sizeof(struct cudaguard_verdict): cudaguard_check_verdict() sets it */
  int verdict;          /* CUDAGUARD_COMPATIBLE, CUDAGUARD_INCOMPATIBLE, CUDAGUARD_UNKNOWN */
  int code;             /* the finding that determines the verdict: 202 for CG202; 0 if there is none */
  int severity;         /* of that finding */
  int level;            /* 0: only files and names were read; 1: a child process loaded the real driver or cuDNN */
  char subject[16];     /* "cuDNN", "driver", "manifest" */
  char component[256];  /* "my-model 0.3.0" */
  char built[32];       /* cuDNN: its version in the build, "9.15.1"; driver: the CUDA version that the program needs, "13.0" */
  char found[32];       /* cuDNN: the version found, "9.1.0"; driver: the CUDA version that it supports, "12.2" */
  char message[2048];   /* the problem, and one fact on each further line */
  char hint[512];       /* the action to take */
  char not_judged[256]; /* what the guard could not examine, separated by "; " */
};

#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))

#ifdef __cplusplus
extern "C" {
#endif
/* Hidden only in the definition, because gold resolves an undefined hidden weak symbol to the start of the file. */
extern int cudaguard_r1_check(char *text, size_t size) __attribute__((weak));
extern int cudaguard_r1_verdict(void *to) __attribute__((weak));
#ifdef __cplusplus
}
#endif

/* Completes the verdict on the file that contains this call, and returns it. Writes the reason to `text`: at most `size` bytes,
 * NUL-terminated, empty if the verdict is compatible. Thread-safe. The first call may take as long as loading cuDNN. */
static inline int cudaguard_check_text(char *text, size_t size) {
  if (cudaguard_r1_check) return cudaguard_r1_check(text, size);
  if (text && size) {
    const char *why = "this file was built without the guard";
    size_t i = 0;
    for (; why[i] && i + 1 < size; i++) text[i] = why[i];
    text[i] = 0;
  }
  return CUDAGUARD_UNKNOWN;
}

/* As cudaguard_check_text(), but fills `to`, and returns to->verdict. */
static inline int cudaguard_check_verdict(struct cudaguard_verdict *to) {
  size_t i;
  for (i = 0; i < sizeof *to; i++) ((char *)to)[i] = 0;
  to->size = sizeof *to;
  if (cudaguard_r1_verdict) return cudaguard_r1_verdict(to);
  return to->verdict = cudaguard_check_text(to->message, sizeof to->message);
}

#else

static inline int cudaguard_check_text(char *text, size_t size) {
  if (text && size) text[0] = 0;
  return CUDAGUARD_UNKNOWN;
}

static inline int cudaguard_check_verdict(struct cudaguard_verdict *to) {
  size_t i;
  for (i = 0; i < sizeof *to; i++) ((char *)to)[i] = 0;
  to->size = sizeof *to;
  return to->verdict = CUDAGUARD_UNKNOWN;
}

#endif

/* As cudaguard_check_text(), but without the reason. */
static inline int cudaguard_check(void) { return cudaguard_check_text((char *)0, 0); }

#endif
