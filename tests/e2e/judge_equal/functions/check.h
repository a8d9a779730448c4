/* Tables of the shim's functions, which need no guarded program. Each failed row is one line of the output. */
#include "shim.c"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct context *const cx = &the_context;

/* The text that a row builds. */
static char room[4096];
static struct text made;

static struct text *fresh(void) {
  made = start_text(room, sizeof room);
  return &made;
}

static void compare(const char *file, int line, const char *found, const char *expected) {
  if (!found) found = "(null)";
  if (strcmp(found, expected)) printf("%s:%d: %s, not %s\n", strrchr(file, '/') + 1, line, found, expected);
}

static void compare_numbers(const char *file, int line, long found, long expected) {
  if (found != expected) printf("%s:%d: %ld, not %ld\n", strrchr(file, '/') + 1, line, found, expected);
}

/* Compares the text that the function `how(t, ...)` appends. */
#define PUTS(expected, how, ...) (how(fresh(), __VA_ARGS__), compare(__FILE__, __LINE__, room, expected))
#define SAYS(found, expected) compare(__FILE__, __LINE__, found, expected)
#define IS(found, expected) compare_numbers(__FILE__, __LINE__, (long)(found), (long)(expected))
#define LENGTH(list) ((int)(sizeof(list) / sizeof *(list)))

/* Sets the compute capabilities of the GPUs. */
static void set_gpus(const uint16_t *cc, int count) {
  int k;
  for (k = 0; k < count; k++) cx->driver.gpu[k].cc = cc[k];
}
