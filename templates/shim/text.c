/* String functions that do not call the C library, because no function of another file may run
 * before `main`. */
#include "shim.h"

/* The empty assembly statements keep compilers from replacing a loop with a call of the C library.
 */
SHIM_API size_t text_length(const char *s) {
  size_t n = 0;
  while (s[n]) {
    n++;
    __asm__ volatile("");
  }
  return n;
}

SHIM_API int bytes_are_equal(const void *a, const void *b, size_t n) {
  const char *x = (const char *)a, *y = (const char *)b;
  size_t i;
  for (i = 0; i < n; i++) {
    if (x[i] != y[i]) return 0;
    __asm__ volatile("");
  }
  return 1;
}

SHIM_API int starts_with(const char *s, const char *with) {
  size_t i;
  for (i = 0; with[i]; i++) {
    if (s[i] != with[i]) return 0;
    __asm__ volatile("");
  }
  return 1;
}

SHIM_API int texts_are_equal(const char *a, const char *b) {
  return starts_with(a, b) && !a[text_length(b)];
}

SHIM_API const char *find_text(const char *s, const char *what) {
  for (; *s; s++)
    if (*s == *what && starts_with(s, what)) return s;
  return 0;
}

/* Returns the part after the last '/'. */
SHIM_API const char *base_name(const char *path) {
  const char *base = path;
  for (; *path; path++)
    if (*path == '/') base = path + 1;
  return base;
}

/* Copies a string, truncated to `size`. */
SHIM_API void copy_text(char *to, size_t size, const char *s) {
  for (; size > 1 && *s; size--) *to++ = *s++;
  *to = 0;
}

/* Copies a path. */
SHIM_API void copy_path(char (*to)[PATH_MAX], const char *s) { copy_text(*to, sizeof *to, s); }

/* Reads the next name of a list with one name per line. Returns the rest of the list, or null at
 * its end. `name` has at least the size of the list. */
SHIM_API const char *read_name(const char *list, char *name) {
  if (!*list) return 0;
  while (*list && *list != '\n') *name++ = *list++;
  *name = 0;
  return list + (*list != 0);
}

/* Builds strings in a buffer of the caller: without the heap, always NUL-terminated, truncated at
 * the end of the buffer. */

SHIM_API struct text start_text(char *to, size_t size) {
  struct text t;
  t.at = to;
  t.used = 0;
  t.size = size;
  *to = 0;
  return t;
}

/* Begins to append to a path. */
SHIM_API struct text continue_path(char (*path)[PATH_MAX]) {
  struct text t;
  t.at = *path;
  t.used = text_length(*path);
  t.size = sizeof *path;
  return t;
}

SHIM_API void put_char(struct text *t, char c) {
  if (t->used + 1 < t->size) t->at[t->used++] = c;
  t->at[t->used] = 0;
}

SHIM_API void put(struct text *t, const char *s) {
  while (*s) put_char(t, *s++);
}

/* Returns whether the string may be truncated. */
SHIM_API int is_truncated(const struct text *t) { return t->used + 1 == t->size; }

SHIM_API void shorten_text(struct text *t, size_t to) { t->at[t->used = to] = 0; }

SHIM_API void put_number(struct text *t, uint64_t n) {
  uint64_t unit = 1;
  while (n / unit > 9) unit *= 10;
  for (; unit; unit /= 10) put_char(t, (char)('0' + n / unit % 10));
}

SHIM_API void put_pair(struct text *t, uint32_t major, uint32_t minor) {
  put_number(t, major);
  put_char(t, '.');
  put_number(t, minor);
}

/* Appends a compute capability in the packing of the rows: 9.0. */
SHIM_API void put_capability(struct text *t, uint32_t cc) { put_pair(t, cc >> 8, cc & 0xff); }

/* Appends a CUDA version in the form of cuDriverGetVersion, 12020: 12.2. */
SHIM_API void put_cuda(struct text *t, uint32_t n) { put_pair(t, n / 1000, n % 1000 / 10); }

/* Appends a version in the packing of the rows: 9.15.1. */
SHIM_API void put_version(struct text *t, uint32_t packed) {
  put_number(t, packed >> 16);
  put_char(t, '.');
  put_pair(t, packed >> 8 & 0xff, packed & 0xff);
}

SHIM_FN void put_point(struct text *t, uint32_t n, uint32_t two_digits) {
  put(t, two_digits && n < 10 ? ".0" : ".");
  put_number(t, n);
}

/* Appends a driver release in the packing of widen_release(): 535.54.03, 590.01, and 576.02 of
 * Windows. Only drivers of JetPack 6 have names such as 540.4.0. */
SHIM_API void put_release(struct text *t, uint32_t n) {
  enum { JETPACK = 540 };
  uint32_t branch = n >> 20, second = n >> 8 & 0xfff, third = n & 0xff;
  put_number(t, branch);
  if (!second && !third) return;
  put_point(t, second, third || branch != JETPACK);
  if (third || (second < 10 && branch == JETPACK)) put_point(t, third, third);
}

/* Returns the length of the UTF-8 character at s. Returns 0 if it is invalid or must not be
 * printed: control characters, line separators, marks that change the direction of text. */
SHIM_FN uint32_t get_printable_length(const unsigned char *s) {
  static const uint32_t least[] = {0x20, 0xa0, 0x800, 0x10000};
  uint32_t c = *s, more = 0, i;
  while (c << more & 0x80) more++;
  if (more == 1 || more > 4 || c == 0x7f) return 0;
  if (more) c &= 0x3f >> --more;
  for (i = 1; i <= more; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  if (c < least[more] || c >> 11 == 0x1b || c > 0x10ffff) return 0;
  return c == 0x61c || c - 0x200e < 2 || c - 0x2028 < 7 || c - 0x2066 < 4 ? 0 : more + 1;
}

/* Appends a string without control characters, escaped for JSON if `json` is set. */
SHIM_API void put_sanitized(struct text *t, const char *s, int json) {
  while (*s) {
    uint32_t bytes = get_printable_length((const unsigned char *)s);
    if (json && (*s == '"' || *s == '\\' || *s == '\n')) put_char(t, '\\');
    if (!bytes) {
      put_char(t, json && *s == '\n' ? 'n' : '?');
      s++;
    }
    for (; bytes; bytes--) put_char(t, *s++);
  }
}

/* Appends an untrusted string, sanitized and truncated to its last SHOW characters. */
SHIM_API void put_untrusted(struct text *t, const char *s) {
  size_t n = text_length(s);
  if (n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  put_sanitized(t, s, 0);
}

/* Parsers of numbers and versions. */

/* Parses a decimal number of at most `most` and advances past it. Returns -1 if there is none. */
SHIM_API long parse_number(const char **s, long most) {
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
SHIM_API int parse_numbers(const char *s, long least, uint32_t n[3]) {
  for (; *s; s++) {
    int k = 0;
    long is;
    n[2] = 0;
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

#ifndef CUDNN_STEM
#define CUDNN_STEM CUDNN_FILE "."
#endif

/* Parses the major in libcudnn.so.9. Returns 0 if the name has none. */
SHIM_API uint32_t parse_major_in_name(const char *name) {
  long a;
  if (!starts_with(name, CUDNN_STEM)) return 0;
  name += sizeof CUDNN_STEM - 1;
  a = parse_number(&name, 999);
  return a > 0 ? (uint32_t)a : 0;
}

/* Decodes the result of the function CUDNN_GETTER. */
SHIM_API uint32_t decode_version(uint64_t n) {
  uint32_t v = (uint32_t)n, scale = CUDNN_VERSION_FROM(v);
  return v / scale << 16 | v % scale / 100 << 8 | v % 100;
}
