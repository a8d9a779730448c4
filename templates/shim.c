/* cudaguard's shim. It reads the requirement rows that the build left in this file (MANIFEST.md),
 * examines the machine, and refuses to start a program that cannot run correctly. C11 and valid
 * C++11; the C library only; no heap if it accepts, no threads, no locale. What it cannot determine
 * never refuses. shim/README.md explains how it works.
 *
 * The library joins the headers into one text (guard-core/src/guard/mod.rs), so that a build needs no
 * folder of them.
 *
 * Several copies in one link are harmless. What they share is weak, hidden and named by the
 * revision, so that the linker keeps the first copy; the code of each copy is one section, so that
 * --gc-sections drops the others. COMDAT groups would do the same, but gcc and clang have no common
 * way to ask for one in C. A change of the meaning of a shared name raises the revision. */
#if defined(__linux__) && defined(__ELF__)

#include "shim/entry.h"

#endif
