/* Builds strings in a buffer of the caller: without the heap, always NUL-terminated, truncated at
 * the end of the buffer. */
#ifndef CUDAGUARD_TEXT_H
#define CUDAGUARD_TEXT_H

#include "c_strings.h"

struct text {
  char *at;
  size_t used, size;
};

SHIM_FN struct text start_text(char *to, size_t size) {
  struct text t;
  t.at = to;
  t.used = 0;
  t.size = size;
  *to = 0;
  return t;
}

SHIM_FN void put_char(struct text *t, char c) {
  if (t->used + 1 < t->size) t->at[t->used++] = c;
  t->at[t->used] = 0;
}

SHIM_FN void put(struct text *t, const char *s) {
  while (*s) put_char(t, *s++);
}

/* Returns whether the string may be truncated. */
SHIM_FN int is_truncated(const struct text *t) { return t->used + 1 == t->size; }

SHIM_FN void shorten_text(struct text *t, size_t to) { t->at[t->used = to] = 0; }

SHIM_FN void put_number(struct text *t, uint32_t n) {
  uint32_t unit = 1;
  while (n / unit > 9) unit *= 10;
  for (; unit; unit /= 10) put_char(t, (char)('0' + n / unit % 10));
}

SHIM_FN void put_pair(struct text *t, uint32_t major, uint32_t minor) {
  put_number(t, major);
  put_char(t, '.');
  put_number(t, minor);
}

/* Appends a compute capability in the packing of the rows: 9.0. */
SHIM_FN void put_capability(struct text *t, uint32_t cc) { put_pair(t, cc >> 8, cc & 0xff); }

/* Appends a CUDA version in the form of cuDriverGetVersion, 12020: 12.2. */
SHIM_FN void put_cuda(struct text *t, uint32_t n) { put_pair(t, n / 1000, n % 1000 / 10); }

/* Appends a version in the packing of the rows: 9.15.1. */
SHIM_FN void put_version(struct text *t, uint32_t packed) {
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
SHIM_FN void put_release(struct text *t, uint32_t n) {
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
SHIM_FN void put_sanitized(struct text *t, const char *s, int json) {
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
SHIM_FN void put_untrusted(struct text *t, const char *s) {
  size_t n = text_length(s);
  if (n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  put_sanitized(t, s, 0);
}

/* Copies an untrusted string as put_outside() does. */
SHIM_FN void copy_untrusted(char *to, size_t size, const char *s) {
  struct text t = start_text(to, size);
  put_untrusted(&t, s);
}

/* ---- JSON ---- */

SHIM_FN void put_json(struct text *t, const char *s) {
  put_char(t, '"');
  put_sanitized(t, s, 1);
  put_char(t, '"');
}

/* Appends a comma unless this is the first element of an object or array, then the string. */
SHIM_FN void put_next(struct text *t, const char *s) {
  char last = t->at[t->used - 1];
  if (last != '{' && last != '[') put_char(t, ',');
  put(t, s);
}

SHIM_FN void put_key(struct text *t, const char *key) {
  put_next(t, "\"");
  put(t, key);
  put(t, "\":");
}

SHIM_FN void put_member(struct text *t, const char *key, const char *value) {
  put_key(t, key);
  put_json(t, value);
}

#endif
