/* cudaguard's shim: reads the requirement rows that the build left in this file (MANIFEST.md), looks at the machine, and
 * says no before `main` where the program cannot run rightly. C11 and valid C++11; the C library only; no heap where it
 * accepts, no threads, no locale. It never harms: what cannot be looked at is "cannot tell", and that never refuses.
 *
 * One translation unit, written as parts that are read one at a time, in this order; the library joins them into one text
 * (guard-core/src/guard.rs), so that a build needs no folder of them.
 *
 * Several copies in one link are harmless. What is shared between them is weak, hidden and named by CUDAGUARD_REVISION,
 * so that the linker keeps the first copy's; each copy's code is one section, so that --gc-sections drops the others.
 * COMDAT groups would do the same, but C has no way to ask gcc and clang alike for one. Whoever changes the meaning of a
 * shared name raises the revision. */
#if defined(__linux__) && defined(__ELF__)

#include "shim/base.c"
#include "shim/system_calls.c"
#include "shim/strings.c"
#include "shim/text.c"
#include "shim/vendors.h"
#include "shim/versions.c"
#include "shim/objects.c"
#include "shim/note_layout.h"
#include "shim/note.c"
#include "shim/findings.h"
#include "shim/words.c"
#include "shim/state.c"
#include "shim/findings.c"
#include "shim/elf.c"
#include "shim/search.c"
#include "shim/loaded.c"
#include "shim/ask.c"
#include "shim/cudnn.c"
#include "shim/archs.h"
#include "shim/pci.h"
#include "shim/driver.c"
#include "shim/tables.h"
#include "shim/self.c"
#include "shim/slots.c"
#include "shim/judge.c"
#include "shim/tell.c"
#include "shim/report.c"
#include "shim/doors.c"

#endif
