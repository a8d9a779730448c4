/* The entry point: an initializer of the C runtime. It runs before the constructors of the program,
 * and after the loader has released its lock. The initializers of a DLL run under that lock, in
 * which no library may be loaded, so the guard of a DLL checks nothing. */
#include "../shim.h"

/* Several copies in one file share this symbol; the first copy checks. */
__attribute__((common)) int cudaguard_r1_started;

/* Returns whether this file calls a function that adds directories to the search of DLLs. */
SHIM_FN int changes_search(const unsigned char *image) {
  return imports_function(image, "AddDllDirectory") ||
         imports_function(image, "SetDllDirectoryA") || imports_function(image, "SetDllDirectoryW");
}

static void initialize(void) {
  struct context *cx = get_context();
  uint32_t error;
  if (cudaguard_r1_started || (handle)__ImageBase != GetModuleHandleW(0)) return;
  cudaguard_r1_started = 1;
  error = GetLastError();
  read_notes(cx);
  cx->changes_search = changes_search(cx->own);
  read_mode(cx, 1);
  if (cx->mode != MODE_OFF) judge_start(cx);
  SetLastError(error);
}

/* The linker sorts these sections by name. C++ constructors are in .CRT$XCU. */
__attribute__((section(".CRT$XCB"), used)) static void (*const initializer)(void) = initialize;
