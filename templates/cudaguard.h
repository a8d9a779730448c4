/* cudaguard.h: lets a guarded program or library ask its guard for the verdict.
 *
 * Include it in C or C++. In a file without a guard the answer is unknown. The symbols are hidden and carry the
 * revision of the guard, so that two guards can live in one process.
 *
 * Any thread with 16 KiB of stack may call these functions, also after fork, but not a signal handler. All calls return the same
 * answer. They never end the process. docs/internals/shim-contract.md states what they read, write and cost. */
#ifndef CUDAGUARD_H
#define CUDAGUARD_H

#include <stddef.h>

#define CUDAGUARD_COMPATIBLE 0   /* nothing that the guard checked prevents the program from running */
#define CUDAGUARD_INCOMPATIBLE 1 /* the program cannot run here; the text contains the reason */
#define CUDAGUARD_UNKNOWN 2      /* the guard could not determine it; the text contains the reason */

#define CUDAGUARD_INFO 0
#define CUDAGUARD_WARNING 1
#define CUDAGUARD_ERROR 2

/* The verdict as data. Its size says which members the caller knows: later ones are added behind, and these never move.
 * Texts are UTF-8, always ended by a NUL, cut where they would not fit, and empty where there is nothing to say. */
struct cudaguard_verdict {
  size_t size;          /* sizeof(struct cudaguard_verdict): cudaguard_check_verdict() sets it */
  int verdict;          /* CUDAGUARD_COMPATIBLE, CUDAGUARD_INCOMPATIBLE, CUDAGUARD_UNKNOWN */
  int code;             /* of the finding that decided: 202 for CG202; 0 where there is none */
  int severity;         /* of that finding */
  int level;            /* how far it had to look: 0 files and names only, 1 the real driver or cuDNN was asked */
  char subject[16];     /* "cuDNN", "driver", "manifest" */
  char component[256];  /* "my-model 0.3.0" */
  char built[32];       /* "9.15.1" where it is about cuDNN; the CUDA version needed, "13.0", where about the driver */
  char found[32];       /* "9.1.0"; the CUDA version that the driver supports, "12.2" */
  char message[2048];   /* what is wrong, and each fact on a line of its own */
  char hint[512];       /* what to do */
  char not_judged[256]; /* what of the file nobody could look at, joined by "; ": "GPU code that stands as plain data" */
};

#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))

#ifdef __cplusplus
extern "C" {
#endif
/* Not hidden here, only where it is defined: gold takes a hidden weak name that nobody defines for the file's start. */
extern int cudaguard_r1_check(char *text, size_t size) __attribute__((weak));
extern int cudaguard_r1_verdict(void *to) __attribute__((weak));
#ifdef __cplusplus
}
#endif

/* Completes the verdict about the file that this call stands in, and returns it. `text` gets at most `size` bytes, always
 * ended by a NUL; empty where nothing is wrong. Safe from any thread; may take as long as loading cuDNN does, once. */
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

/* The same as data: fills the whole of `to`, and returns to->verdict. */
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

/* The same without the words. */
static inline int cudaguard_check(void) { return cudaguard_check_text((char *)0, 0); }

#endif
