/* This process: its environment, its ID, the path of the program. */
#include "../shim.h"

static struct context the_context;

/* Returns the state of this guard. */
SHIM_API struct context *get_context(void) { return &the_context; }

/* Returns a variable, or an empty string; the next call overwrites it. Windows has no setuid
 * programs. */
SHIM_API const char *get_variable(const char *name) {
  struct context *cx = &the_context;
  const uint32_t size = GetEnvironmentVariableW(widen(cx, name), cx->device, PATH_MAX);
  if (!size || size >= PATH_MAX) return "";
  return narrow(cx->device, cx->value, PATH_MAX);
}

SHIM_API int get_process(void) { return (int)GetCurrentProcessId(); }

SHIM_API const char *find_program(struct context *cx) {
  if (!cx->self[0] && GetModuleFileNameW(0, cx->wide, PATH_MAX))
    narrow(cx->wide, cx->self, PATH_MAX);
  return cx->self;
}

/* Returns the start time of this process, because process IDs are reused. */
SHIM_API void read_start_time(struct context *cx, char *to, size_t size) {
  uint64_t start = 0, unused[3];
  struct text t = start_text(to, size);
  GetProcessTimes(GetCurrentProcess(), &start, &unused[0], &unused[1], &unused[2]);
  (void)cx;
  put_number(&t, start);
}

SHIM_API void write_out(long which, const char *at, size_t size, size_t most, long seconds) {
  uint32_t written;
  (void)most;
  (void)seconds;
  WriteFile(GetStdHandle((uint32_t)which), at, (uint32_t)size, &written, 0);
}

/* Ends the process before its own code and without the exit functions of DLLs. */
SHIM_API void exit_now(int status) { TerminateProcess(GetCurrentProcess(), (uint32_t)status); }

/* Appends with one write, so that the lines of several processes do not mix. */
SHIM_API void append_to_file(struct context *cx, const char *path, const char *at, size_t size) {
  const handle file = CreateFileW(widen(cx, path), APPEND_ACCESS, SHARE_ALL, 0, ANY_FILE, 0, 0);
  uint32_t written;
  if (file == INVALID_HANDLE) return;
  WriteFile(file, at, (uint32_t)size, &written, 0);
  CloseHandle(file);
}

/* Returns zero-initialised memory, or null. */
SHIM_API char *allocate_pages(size_t size) {
  return (char *)VirtualAlloc(0, size, COMMIT, READ_AND_WRITE);
}

SHIM_API void free_pages(char *at, size_t size) {
  (void)size;
  VirtualFree(at, 0, RELEASE);
}

SHIM_API void read_host_name(struct context *cx, char *to, size_t size) {
  uint32_t length = PATH_MAX;
  if (!GetComputerNameW(cx->wide, &length)) cx->wide[0] = 0;
  narrow(cx->wide, to, (int)size);
}
