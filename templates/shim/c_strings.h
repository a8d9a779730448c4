/* String functions that do not call the C library, because no function of another file may run
 * before `main`. */
#ifndef CUDAGUARD_C_STRINGS_H
#define CUDAGUARD_C_STRINGS_H

#include "platform.h"

/* The empty assembly statements keep compilers from replacing a loop with a call of the C library.
 */
SHIM_FN size_t text_length(const char *s) {
  size_t n = 0;
  while (s[n]) {
    n++;
    __asm__ volatile("");
  }
  return n;
}

SHIM_FN int bytes_are_equal(const void *a, const void *b, size_t n) {
  const char *x = (const char *)a, *y = (const char *)b;
  size_t i;
  for (i = 0; i < n; i++) {
    if (x[i] != y[i]) return 0;
    __asm__ volatile("");
  }
  return 1;
}

SHIM_FN int starts_with(const char *s, const char *with) {
  size_t i;
  for (i = 0; with[i]; i++) {
    if (s[i] != with[i]) return 0;
    __asm__ volatile("");
  }
  return 1;
}

SHIM_FN int texts_are_equal(const char *a, const char *b) {
  return starts_with(a, b) && !a[text_length(b)];
}

SHIM_FN const char *find_text(const char *s, const char *what) {
  for (; *s; s++)
    if (*s == *what && starts_with(s, what)) return s;
  return 0;
}

/* Returns the part after the last '/'. */
SHIM_FN const char *base_name(const char *path) {
  const char *base = path;
  for (; *path; path++)
    if (*path == '/') base = path + 1;
  return base;
}

/* Copies a string, truncated to `size`. */
SHIM_FN void copy_text(char *to, size_t size, const char *s) {
  for (; size > 1 && *s; size--) *to++ = *s++;
  *to = 0;
}

/* Copies a path. */
SHIM_FN void copy_path(char (*to)[PATH_MAX], const char *s) { copy_text(*to, sizeof *to, s); }

/* Reads the next name of a list with one name per line. Returns the rest of the list, or null at
 * its end. `name` has at least the size of the list. */
SHIM_FN const char *read_name(const char *list, char *name) {
  if (!*list) return 0;
  while (*list && *list != '\n') *name++ = *list++;
  *name = 0;
  return list + (*list != 0);
}

#endif
