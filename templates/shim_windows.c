/* cudaguard's shim for Windows: as shim.c, with other facts and no child process. It reads the
 * requirement rows in the section `.cudagd`, examines the DLLs and the driver by their version
 * resources, and refuses to start a program that cannot run correctly. shim/README.md explains it.
 *
 * It compiles with gcc (mingw-w64) and with clang for both ABIs, without the headers of an SDK. */
#if defined(_WIN32) && defined(__x86_64__)

#define CUDAGUARD_ONE_FILE 1
#include "shim/text.c"
#include "shim/notes.c"
#include "shim/coverage.c"
#include "shim/findings.c"
#include "shim/judge.c"
#include "shim/verdict.c"
#include "shim/report.c"
#include "shim/windows/process.c"
#include "shim/windows/objects.c"
#include "shim/windows/detection.c"
#include "shim/windows/entry.c"

#endif
