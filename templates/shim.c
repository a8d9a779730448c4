/* cudaguard's shim. It reads the requirement rows that the build stored in this file (MANIFEST.md),
 * examines the machine, and refuses to start a program that cannot run correctly. C11 and valid
 * C++11; the C library only; no heap if it accepts, no threads, no locale. It never refuses because
 * of something that it cannot determine. shim/README.md explains how it works.
 *
 * guard-core/src/guard/mod.rs joins the files into one text, so that a build needs no directory.
 *
 * Several copies in one link are harmless. Their shared symbols are weak and hidden and contain the
 * revision, so the linker keeps the first copy. The code of each copy is in one section, so
 * --gc-sections drops the others. COMDAT groups would do the same, but gcc and clang have no common
 * syntax for them in C. A change of the meaning of a shared symbol increments the revision. */
#if defined(__linux__) && defined(__ELF__)

#define CUDAGUARD_ONE_FILE 1
#include "shim/text.c"
#include "shim/process.c"
#include "shim/objects.c"
#include "shim/search.c"
#include "shim/notes.c"
#include "shim/kernels.c"
#include "shim/coverage.c"
#include "shim/probe.c"
#include "shim/detection.c"
#include "shim/findings.c"
#include "shim/judge.c"
#include "shim/verdict.c"
#include "shim/report.c"
#include "shim/entry.c"

#endif
