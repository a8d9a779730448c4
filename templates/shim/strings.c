/* Strings, without the C library: nobody else's functions run before `main`. */

/* The empty assembly keeps compilers from calling the C library's function for the loop that they recognise. */
CODE size_t len(const char *s) {
  size_t n = 0;
  while (s[n]) {
    n++;
    __asm__ volatile("");
  }
  return n;
}

CODE int same_bytes(const void *a, const void *b, size_t n) {
  const char *x = (const char *)a, *y = (const char *)b;
  for (; n; n--, x++, y++) {
    if (*x != *y) return 0;
    __asm__ volatile("");
  }
  return 1;
}

CODE int starts(const char *s, const char *with) {
  for (; *with; s++, with++) {
    if (*s != *with) return 0;
    __asm__ volatile("");
  }
  return 1;
}

CODE int same(const char *a, const char *b) { return starts(a, b) && !a[len(b)]; }

CODE const char *find_text(const char *s, const char *what) {
  for (; *s; s++)
    if (starts(s, what)) return s;
  return 0;
}

/* What follows the last '/'. */
CODE const char *base_name(const char *path) {
  const char *base = path;
  for (; *path; path++)
    if (*path == '/') base = path + 1;
  return base;
}

/* As much of it as there is room for. */
CODE void cut(char *to, size_t size, const char *s) {
  for (; size > 1 && *s; size--) *to++ = *s++;
  *to = 0;
}

/* A path. */
CODE void keep_path(char (*to)[PATH_MAX], const char *s) { cut(*to, sizeof *to, s); }

/* The next of names that stand one a line, or null. `name` has room for the whole list. */
CODE const char *next_name(const char *list, char *name) {
  if (!*list) return 0;
  while (*list && *list != '\n') *name++ = *list++;
  *name = 0;
  return list + (*list != 0);
}
