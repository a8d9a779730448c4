/* This process: its environment, its ID, the path of the program. */
#ifndef CUDAGUARD_PROCESS_H
#define CUDAGUARD_PROCESS_H

#include "elf_file.h"

/* Returns the value of a variable, or null. A setuid program ignores all variables. */
SHIM_FN const char *find_variable(const char *name) {
  const size_t length = text_length(name);
  char **variable = getauxval(AT_SECURE) ? 0 : environ;
  for (; variable && *variable; variable++)
    if (starts_with(*variable, name) && (*variable)[length] == '=') return *variable + length + 1;
  return 0;
}

/* Returns how often a variable is in the environment. */
SHIM_FN int count_variables(const char *name) {
  const size_t length = text_length(name);
  char **variable = environ;
  int n = 0;
  for (; variable && *variable; variable++)
    n += starts_with(*variable, name) && (*variable)[length] == '=';
  return n;
}

/* Returns a variable, or an empty string. */
SHIM_FN const char *get_variable(const char *name) {
  const char *value = find_variable(name);
  return value ? value : "";
}

SHIM_NOINLINE int get_process(void) { return (int)sys1(SYS_getpid, 0); }

SHIM_FN int is_variable_one(const char *name) { return texts_are_equal(get_variable(name), "1"); }

/* Copies a path and makes it absolute. */
SHIM_FN void copy_absolute(char (*to)[PATH_MAX], const char *path) {
  struct text t;
  while (starts_with(path, "./")) path += 2;
  copy_path(to, path);
  if (!*path || *path == '/' || read_link("/proc/self/cwd", to) <= 0) return;
  t.at = *to;
  t.used = text_length(*to);
  t.size = PATH_MAX;
  put_char(&t, '/');
  put(&t, path);
  if (is_truncated(&t)) copy_path(to, path);
}

SHIM_FN struct loaded_file get_own_file(const struct context *cx) {
  return cx->own.file;
}

/* Returns the header of the path of the program's dynamic linker, or null for a static program. */
SHIM_FN const ElfW(Phdr) * find_interpreter(const struct image *program) {
  int k;
  for (k = 0; k < program->file.n; k++)
    if (program->file.ph[k].p_type == PT_INTERP) return &program->file.ph[k];
  return 0;
}

/* Returns whether the program was started as `ld.so program`. The kernel then loads no interpreter.
 */
SHIM_FN int is_started_by_loader(const struct image *program) {
  return find_interpreter(program) && !getauxval(AT_BASE);
}

/* Returns whether cx->self is the path of the program. */
SHIM_NOINLINE int is_program(struct context *cx) {
  return cx->self[0] && is_file_of_image(cx, cx->self, &cx->first);
}

/* Returns the path of the program. The path from the kernel may be that of the dynamic linker
 * (`ld.so program`), and the file at a path may have changed. So this returns the first known path
 * whose file has the same program headers as the image in memory. */
SHIM_FN const char *find_program(struct context *cx) {
  const char *by_kernel = (const char *)getauxval(AT_EXECFN);
  if (cx->self[0]) return cx->self;
  if (cx->loader_name) copy_absolute(&cx->self, cx->loader_name);
  if (is_program(cx)) return cx->self;
  read_link("/proc/self/exe", &cx->self);
  if (is_program(cx)) return cx->self;
  if (by_kernel) copy_absolute(&cx->self, by_kernel);
  if (is_program(cx)) return cx->self;
  if (cx->loader_name) copy_absolute(&cx->self, cx->loader_name);
  else if (read_link("/proc/self/exe", &cx->self) <= 0)
    copy_path(&cx->self, by_kernel && *by_kernel ? by_kernel : "this program");
  return cx->self;
}

SHIM_FN const char *get_object_path(struct context *cx, const char *name) {
  return *name ? name : find_program(cx);
}

/* Returns the start time of this process in clock ticks, because process IDs are reused. */
SHIM_NOINLINE const char *read_start_time(struct context *cx) {
  char *s = cx->text, *end;
  int spaces = 0;
  read_file_text(cx, "/proc/self/stat", cx->text, sizeof cx->text);
  for (end = s; *end; end++)
    if (*end == ')') s = end; /* the last one, because the name may contain others */
  while (*s && spaces < 20) spaces += *s++ == ' ';
  for (end = s; *end > ' ';) end++;
  *end = 0;
  return s;
}

#endif
