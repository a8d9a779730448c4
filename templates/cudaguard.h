/* cudaguard.h: what a guarded program or library can ask its guard.
 *
 * Works in C and C++, in every file that links the guard, and in one that does not: there the answer is "cannot tell".
 * The names behind it are hidden and carry the guard's revision, so that two guards can live in one process. */
#ifndef CUDAGUARD_H
#define CUDAGUARD_H

#include <stddef.h>

#define CUDAGUARD_RIGHT 0       /* nothing is wrong */
#define CUDAGUARD_WRONG 1       /* something is wrong: the text says what */
#define CUDAGUARD_CANNOT_TELL 2 /* it cannot be told: the text says why */

#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))

#ifdef __cplusplus
extern "C" {
#endif
/* Not hidden here, only where it is defined: gold takes a hidden weak name that nobody defines for the file's start. */
extern int cudaguard_r1_check(char *text, size_t size) __attribute__((weak));
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
  return CUDAGUARD_CANNOT_TELL;
}

#else

static inline int cudaguard_check_text(char *text, size_t size) {
  if (text && size) text[0] = 0;
  return CUDAGUARD_CANNOT_TELL;
}

#endif

/* The same without the words. */
static inline int cudaguard_check(void) { return cudaguard_check_text((char *)0, 0); }

#endif
