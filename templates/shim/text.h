/* Builds strings in a buffer of the caller: without the heap, always NUL-terminated, truncated at
 * the end of the buffer. */
#ifndef CUDAGUARD_TEXT_H
#define CUDAGUARD_TEXT_H

#include "c_strings.h"

struct text {
  char *at;
  size_t used, size;
};

CALLED struct text start_text(char *to, size_t size) {
  struct text t;
  t.at = to;
  t.used = 0;
  t.size = size;
  *to = 0;
  return t;
}

CALLED void put_char(struct text *t, char c) {
  if (t->used + 1 < t->size) t->at[t->used++] = c;
  t->at[t->used] = 0;
}

CODE void put(struct text *t, const char *s) {
  while (*s) put_char(t, *s++);
}

/* Returns whether the string may be truncated. */
CODE int is_cut(const struct text *t) { return t->used + 1 == t->size; }

CALLED void shorten_text(struct text *t, size_t to) { t->at[t->used = to] = 0; }

CODE void put_number(struct text *t, uint32_t n) {
  uint32_t unit = 1;
  while (n / unit > 9) unit *= 10;
  for (; unit; unit /= 10) put_char(t, (char)('0' + n / unit % 10));
}

CODE void put_two(struct text *t, uint32_t major, uint32_t minor) {
  put_number(t, major);
  put_char(t, '.');
  put_number(t, minor);
}

/* Appends a compute capability in the packing of the rows: 9.0. */
CODE void put_capability(struct text *t, uint32_t cc) { put_two(t, cc >> 8, cc & 0xff); }

/* Appends a CUDA version in the form of cuDriverGetVersion, 12020: 12.2. */
CODE void put_cuda(struct text *t, uint32_t n) { put_two(t, n / 1000, n % 1000 / 10); }

/* Appends a version in the packing of the rows: 9.15.1. */
CODE void put_version(struct text *t, uint32_t packed) {
  put_number(t, packed >> 16);
  put_char(t, '.');
  put_two(t, packed >> 8 & 0xff, packed & 0xff);
}

CODE void put_point(struct text *t, uint32_t n, uint32_t two_digits) {
  put(t, two_digits && n < 10 ? ".0" : ".");
  put_number(t, n);
}

/* Appends a driver release in the packing of widen_release(): 535.54.03, 590.01, and 576.02 of Windows. Only drivers of JetPack 6 are called for Tegra 540.4.0.
 */
CODE void put_release(struct text *t, uint32_t n) {
  enum { JETPACK = 540 };
  uint32_t branch = n >> 20, second = n >> 8 & 0xfff, third = n & 0xff;
  put_number(t, branch);
  if (!second && !third) return;
  put_point(t, second, third || branch != JETPACK);
  if (third || (second < 10 && branch == JETPACK)) put_point(t, third, third);
}

/* Returns the length of the UTF-8 character at s. Returns 0 if it is invalid or must not be
 * printed: control characters, line separators, marks that change the direction of text. */
CODE uint32_t get_shown_length(const unsigned char *s) {
  static const uint32_t least[] = {0x20, 0xa0, 0x800, 0x10000};
  uint32_t c = *s,
           more = c < 0x80   ? 0
                  : c < 0xc0 ? 4
                  : c < 0xe0 ? 1
                  : c < 0xf0 ? 2
                  : c < 0xf8 ? 3
                             : 4,
           i;
  if (more > 3 || c == 0x7f) return 0;
  if (more) c &= 0x3f >> more;
  for (i = 1; i <= more; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  if (c < least[more] || c >> 11 == 0x1b || c > 0x10ffff) return 0;
  return c == 0x61c || c - 0x200e < 2 || c - 0x2028 < 7 || c - 0x2066 < 4 ? 0 : more + 1;
}

/* Appends a string without control characters, escaped for JSON if `json` is set. */
CODE void put_shown(struct text *t, const char *s, int json) {
  while (*s) {
    uint32_t bytes = get_shown_length((const unsigned char *)s);
    if (json && (*s == '"' || *s == '\\' || *s == '\n')) put_char(t, '\\');
    if (!bytes) {
      put_char(t, json && *s == '\n' ? 'n' : '?');
      s++;
    }
    for (; bytes; bytes--) put_char(t, *s++);
  }
}

/* Appends an untrusted string, sanitized and truncated to its last SHOW characters. */
CODE void put_outside(struct text *t, const char *s) {
  size_t n = text_length(s);
  if (n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  put_shown(t, s, 0);
}

/* Copies an untrusted string as put_outside() does. */
CODE void copy_shown(char *to, size_t size, const char *s) {
  struct text t = start_text(to, size);
  put_outside(&t, s);
}

/* ---- JSON ---- */

CODE void put_json(struct text *t, const char *s) {
  put_char(t, '"');
  put_shown(t, s, 1);
  put_char(t, '"');
}

/* Appends a comma unless this is the first element of an object or array, then the string. */
CALLED void put_next(struct text *t, const char *s) {
  char last = t->at[t->used - 1];
  if (last != '{' && last != '[') put_char(t, ',');
  put(t, s);
}

CODE void put_key(struct text *t, const char *key) {
  put_next(t, "\"");
  put(t, key);
  put(t, "\":");
}

CODE void put_member(struct text *t, const char *key, const char *value) {
  put_key(t, key);
  put_json(t, value);
}

#endif
