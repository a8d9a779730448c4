/* Text, put together in a buffer of the caller's: without the heap, always ended by a NUL, cut where the buffer ends. */

struct text {
  char *at;
  size_t used, size;
};

CODE struct text text_in(char *to, size_t size) {
  struct text t;
  t.at = to, t.used = 0, t.size = size;
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

CODE void cut_back(struct text *t, size_t to) { t->at[t->used = to] = 0; }

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

/* Of a GPU, as the rows have it: 9.0. */
CODE void put_capability(struct text *t, uint32_t cc) { put_two(t, cc >> 8, cc & 0xff); }

/* A CUDA version as the driver says it, 12020: 12.2. */
CODE void put_cuda(struct text *t, uint32_t n) { put_two(t, n / 1000, n % 1000 / 10); }

/* A version as the rows pack it: 9.15.1. */
CODE void put_version(struct text *t, uint32_t packed) {
  put_number(t, packed >> 16);
  put_char(t, '.');
  put_two(t, packed >> 8 & 0xff, packed & 0xff);
}

/* A driver's release, as widen() packs it: 535.54.03, and 590.01. */
CODE void put_release(struct text *t, uint32_t n) {
  uint32_t second = n >> 8 & 0xfff, third = n & 0xff;
  put_number(t, n >> 20);
  if (!second && !third) return;
  put(t, third && second < 10 ? ".0" : ".");
  put_number(t, second);
  if (!third && second < 10) put(t, ".0"); /* as Tegra's drivers are called */
  if (!third) return;
  put(t, third < 10 ? ".0" : ".");
  put_number(t, third);
}

/* What came from outside: cut where it is long, and never a second line or a terminal's command. */
CODE void put_outside(struct text *t, const char *s) {
  size_t n = len(s);
  if (n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  for (; *s; s++) {
    char c = '?';
    if ((unsigned char)*s >= 0x20 && *s != 0x7f) c = *s;
    put_char(t, c);
  }
}

/* The same as the whole of a buffer. */
CODE void show(char *to, size_t size, const char *s) {
  struct text t = text_in(to, size);
  put_outside(&t, s);
}

/* The length of the UTF-8 character at s, 0 where it is none. */
CODE int utf8(const unsigned char *s) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  int n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0, i;
  uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;
  for (i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  return n && (c < least[n] || c >> 11 == 0x1b || c > 0x10ffff) ? 0 : n;
}

/* ---- JSON ---- */

CODE void put_json(struct text *t, const char *s) {
  put_char(t, '"');
  while (*s) {
    int bytes = utf8((const unsigned char *)s);
    if (!bytes) {
      put(t, "\\uff" "fd"); /* apart, or a C compiler takes it for a character of its own */
      s++;
    } else if (*s == '\n') {
      put(t, "\\n");
      s++;
    } else if (bytes == 1 && ((unsigned char)*s < 0x20 || *s == 0x7f)) {
      put_char(t, '?');
      s++;
    } else {
      if (*s == '"' || *s == '\\') put_char(t, '\\');
      for (; bytes; bytes--) put_char(t, *s++);
    }
  }
  put_char(t, '"');
}

/* A comma goes before it, but where it is the first of its object. */
CODE void put_key(struct text *t, const char *key) {
  if (t->at[t->used - 1] != '{') put_char(t, ',');
  put_char(t, '"');
  put(t, key);
  put(t, "\":");
}

CODE void put_member(struct text *t, const char *key, const char *value) {
  put_key(t, key);
  put_json(t, value);
}
