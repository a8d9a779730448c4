/* cudaguard's shim. It reads the requirement rows that the build stored in this file (MANIFEST.md),
 * examines the machine, and refuses to start a program that cannot run correctly. C11 and valid
 * C++11; the C library only; no heap if it accepts, no threads, no locale. It never refuses because
 * of something that it cannot determine. shim/README.md explains how it works.
 *
 * guard-core/src/guard/mod.rs joins the headers into one text, so that a build needs no directory of
 * headers.
 *
 * Several copies in one link are harmless. Their shared symbols are weak and hidden and contain the
 * revision, so the linker keeps the first copy. The code of each copy is in one section, so
 * --gc-sections drops the others. COMDAT groups would do the same, but gcc and clang have no common
 * syntax for them in C. A change of the meaning of a shared symbol increments the revision. */
#if defined(__linux__) && defined(__ELF__)

#include "shim/entry.h"

#endif
