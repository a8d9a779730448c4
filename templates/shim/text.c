/* Text, without the heap. */

struct finding {
  int code, severity, note;
  uint32_t min, built, found, other;
  char component[2 * TEXT], path[SHOW + 4], why[WHY], file[2 * TEXT], beside[SHOW + 4], driver[2 * SHOW];
};

struct text {
  char *at;
  size_t used, size;
  const struct finding *of; /* whose facts the capital letters mean */
};

/* Capital letters stand for what a finding holds, and for how it is written. */
static const struct {
  char letter, how;
  uint16_t at;
} TIGHT facts[] = {
#define FACT(letter, how, field) {letter, how, (uint16_t)offsetof(struct finding, field)}
    FACT('B', 'v', built), FACT('C', 's', component), FACT('D', 's', driver), FACT('E', 'e', min), FACT('F', 'v', found), FACT('G', 's', beside),
    FACT('L', 's', file), FACT('M', 'v', min), FACT('N', 'h', built), FACT('O', 'v', other), FACT('P', 's', path),
    FACT('R', 'r', other), FACT('U', 'c', min), FACT('W', 's', why),
};

APART void put_char(struct text *t, char c) {
  if (t->used + 1 < t->size) t->at[t->used++] = c;
  t->at[t->used] = 0;
}

CODE void put(struct text *t, const char *s) {
  while (*s) put_char(t, *s++);
}

/* The nth of texts that stand behind each other. */
CODE const char *nth(const char *s, int n) {
  while (n--) s += len(s) + 1;
  return s;
}

CODE void put_number(struct text *t, uint32_t n) {
  if (n > 9) put_number(t, n / 10);
  put_char(t, (char)('0' + n % 10));
}

/* The length of the UTF-8 character at s, 0 where it is none. */
APART int utf8(const unsigned char *s) {
  static const uint32_t TIGHT least[] = {0, 0, 0x80, 0x800, 0x10000};
  int n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0, i;
  uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;
  for (i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  return n && (c < least[n] || c >> 11 == 0x1b || c > 0x10ffff) ? 0 : n;
}

/* s as it is; p what came from outside: cut where it is long, and never a second line or a terminal's command; i indented;
 * j as JSON. */
CODE void put_string(struct text *t, const char *s, char how) {
  size_t n = len(s);
  if (how == 'j') put_char(t, '"');
  if (how == 'p' && n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  while (*s) {
    int bytes = 1;
    char c = *s;
    if (how == 'i' && c == '\n') put(t, "\n ");
    if (how == 'i' && c == '\n') c = ' ';
    else if (how == 'j' && c == '\n') put_char(t, '\\'), c = 'n';
    else if (how != 's' && how != 'i' && ((unsigned char)c < 0x20 || c == 0x7f)) c = '?';
    else if (how == 'j') {
      bytes = utf8((const unsigned char *)s);
      if (c == '"' || c == '\\') put_char(t, '\\');
      if (!bytes) put(t, "\\uff"), put(t, "fd");
    }
    if (bytes) put_char(t, c);
    while (bytes > 1) put_char(t, *++s), bytes--;
    s++;
  }
  if (how == 'j') put_char(t, '"');
}

/* What words hold often, one byte each: \n is none of them. */
#define LD_LIBRARY_PATH "\1"
#define cuDNN "\2"
#define DRIVER "\3"
#define OLDER "\4"
#define WITH "\5"
#define INSTALL "\6"
#define REBUILD "\7"
#define THAT "\10"
#define CUDA_ "\11"
#define THE "\13"
#define WAS_BUILT_WITH "\14"
#define START_A_CONTAINER "\15"
#define IS_MISSING "\16"
#define KEY(name) "\17" name "\":" /* of JSON, after a text */
static const char TIGHT often[] = "LD_LIBRARY_PATH\0" "cuDNN\0" "driver\0" " older\0" " with \0" "install \0" "rebuild\0" " that \0" "CUDA_\0" "\0"
                                  "the \0" "%C was built with\0" "start a container" WITH "\0" " is missing\0" "%j,\"\0";

/* Strings as above; n a number, h its upper half, v a version, r a driver's release, c a CUDA version as the driver says
 * it, x a compute capability, e nothing. What stands between < and > is left out where a value in it is empty. */
CODE void put_list(struct text *t, const char *f, va_list *more) {
  size_t from[4];
  unsigned depth = 0, gone = 0;
  for (; *f; f++) {
    const char *s = 0;
    uint32_t n = 0;
    char how;
    if (*f == '<') {
      from[++depth & 3] = t->used;
      gone &= ~(1u << depth);
      continue;
    }
    if (*f == '>') {
      if (gone >> depth & 1) t->at[t->used = from[depth & 3]] = 0;
      depth--;
      continue;
    }
    if (*f < ' ' && *f != '\n') put_list(t, nth(often, *f - 1), more);
    else if (*f != '%') put_char(t, *f);
    if (*f != '%') continue;
    how = *++f;
    if (how < 'a') {
      const char *at = (const char *)t->of;
      size_t k = 0;
      while (facts[k].letter != how) k++;
      at += facts[k].at;
      how = facts[k].how;
      if (how == 's') s = at;
      else memcpy(&n, at, sizeof n);
    } else if (how == 'w') {
      put_list(t, va_arg(*more, const char *), more);
      continue;
    } else if (how == 's' || how == 'p' || how == 'i' || how == 'j') {
      s = va_arg(*more, const char *);
    } else {
      n = va_arg(*more, uint32_t);
    }
    if (s ? !*s : !n) gone |= 1u << depth;
    if (s) put_string(t, s, how);
    if (s || how == 'e') continue;
    if (how == 'h') n >>= 16;
    if (how == 'v') put_number(t, n >> 16), put_char(t, '.'), n &= 0xffff;
    if (how == 'c') n = n / 1000 << 8 | n % 1000 / 10;
    if (how == 'r') { /* 535.54.03, and 590.1 */
      uint32_t last = n & 0xff;
      put_number(t, n >> 20);
      put(t, (n >> 8 & 0xfff) < 10 ? ".0" : ".");
      n = n >> 8 & 0xfff;
      if (last) {
        put_number(t, n);
        put(t, last < 10 ? ".0" : ".");
        n = last;
      }
    } else if (how != 'n' && how != 'h') {
      put_number(t, n >> 8), put_char(t, '.');
      n &= 0xff;
    }
    put_number(t, n);
  }
}

CODE void putf(struct text *t, const char *f, ...) {
  va_list more;
  va_start(more, f);
  put_list(t, f, &more);
  va_end(more);
}

/* The whole of a buffer. */
CODE void format(char *to, size_t size, const char *f, ...) {
  struct text t;
  va_list more;
  t.at = to, t.used = 0, t.size = size, t.of = 0;
  *to = 0;
  va_start(more, f);
  put_list(&t, f, &more);
  va_end(more);
}

/* As much as there is room for. */
CODE void cut(char *to, size_t size, const char *s) {
  for (; size > 1 && *s; size--) *to++ = *s++;
  *to = 0;
}

/* A path. */
CODE void keep(char (*to)[PATH_MAX], const char *s) { cut(*to, sizeof *to, s); }

/* What came from outside, for words. */
CODE void show(char *to, size_t size, const char *s) { format(to, size, "%p", s); }

CODE int copy(char *to, size_t size, const char *from, size_t n) {
  if (n >= size) return 0;
  memcpy(to, from, n);
  to[n] = 0;
  return 1;
}

/* A decimal number of at most `most`, moving past it; -1 where there is none. */
CODE long number(const char **s, long most) {
  long n = 0;
  if (**s < '0' || **s > '9') return -1;
  while (**s >= '0' && **s <= '9') {
    n = n * 10 + *(*s)++ - '0';
    if (n > most) return -1;
  }
  return n;
}

#define CUDNN_STEM "libcudnn.so"

/* The first numbers with dots between them, the first of them being `least` or more: how many, three at most. */
CODE int numbers_in(const char *s, long least, uint32_t n[3]) {
  for (; *s; s++) {
    int k = 0;
    long is;
    n[1] = n[2] = 0;
    while (k < 3 && (is = number(&s, 4095)) >= (k ? 0 : least)) {
      n[k++] = (uint32_t)is;
      if (*s != '.') break;
      s++;
    }
    if (k > 1) return k;
    while (*s >= '0' && *s <= '9') s++; /* of a number that is too large */
    if (!*s) break;
  }
  return 0;
}

/* libcudnn.so.9.10.2, libcudart.so.12.4.127 -> that version; 0 where the name has no three numbers. */
CODE uint32_t version_in_name(const char *name) {
  uint32_t n[3];
  return numbers_in(name, 0, n) < 3 || (n[1] | n[2]) > 255 ? 0 : n[0] << 16 | n[1] << 8 | n[2];
}

/* libcudnn.so.9 -> 9; 0 where the name does not say. */
CODE uint32_t major_in_name(const char *name) {
  long a;
  if (!starts(name, CUDNN_STEM ".")) return 0;
  name += sizeof CUDNN_STEM;
  a = number(&name, 999);
  return a > 0 ? (uint32_t)a : 0;
}

/* What cudnnGetVersion() answers, in its two encodings. */
CODE uint32_t version_of_answer(uint64_t n) {
  uint32_t v = (uint32_t)n, minors = v >= 90000 ? 100 : 10;
  if (n < 1000 || n > 9999999) return 0;
  return v / 100 / minors << 16 | v / 100 % minors << 8 | v % 100;
}
