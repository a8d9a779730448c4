/* Parsers of numbers and versions. */
#ifndef CUDAGUARD_VERSIONS_H
#define CUDAGUARD_VERSIONS_H

#include "c_strings.h"
#include "vendors.h"

/* Parses a decimal number of at most `most` and advances past it. Returns -1 if there is none. */
SHIM_FN long parse_number(const char **s, long most) {
  long n = 0;
  if (**s < '0' || **s > '9') return -1;
  while (**s >= '0' && **s <= '9') {
    n = n * 10 + *(*s)++ - '0';
    if (n > most) return -1;
  }
  return n;
}

/* Parses the first sequence of two or three numbers with dots between them, the first of which is
 * at least `least`. Returns their count, or 0. */
SHIM_FN int parse_numbers(const char *s, long least, uint32_t n[3]) {
  for (; *s; s++) {
    int k = 0;
    long is;
    n[1] = n[2] = 0;
    while (k < 3 && (is = parse_number(&s, 4095)) >= (k ? 0 : least)) {
      n[k++] = (uint32_t)is;
      if (*s != '.') break;
      s++;
    }
    if (k > 1) return k;
    while (*s >= '0' && *s <= '9') s++; /* skip the rest of a number that is too large */
    if (!*s) break;
  }
  return 0;
}

/* Parses the version in libcudnn.so.9.10.2 or libcudart.so.12.4.127. Returns 0 if the name has
 * fewer than three numbers. */
SHIM_FN uint32_t parse_version_in_name(const char *name) {
  uint32_t n[3];
  return parse_numbers(name, 0, n) < 3 || (n[1] | n[2]) > 255 ? 0 : n[0] << 16 | n[1] << 8 | n[2];
}

#ifndef CUDNN_STEM
#define CUDNN_STEM CUDNN_FILE "."
#endif

/* Parses the major in libcudnn.so.9. Returns 0 if the name has none. */
SHIM_FN uint32_t parse_major_in_name(const char *name) {
  long a;
  if (!starts_with(name, CUDNN_STEM)) return 0;
  name += sizeof CUDNN_STEM - 1;
  a = parse_number(&name, 999);
  return a > 0 ? (uint32_t)a : 0;
}

/* Decodes the result of the function CUDNN_GETTER. */
SHIM_FN uint32_t decode_version(uint64_t n) {
  uint32_t v = (uint32_t)n, scale = CUDNN_VERSION_FROM(v);
  if (n < 1000 || n > 9999999) return 0;
  return v / scale << 16 | v % scale / 100 << 8 | v % 100;
}

#endif
