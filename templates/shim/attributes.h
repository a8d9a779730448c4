/* Attributes of functions, and results that all files share. */
#ifndef CUDAGUARD_ATTRIBUTES_H
#define CUDAGUARD_ATTRIBUTES_H

/* MemorySanitizer does not see data that the kernel writes, and CFI does not know the functions of
 * a library that was just opened. Both would end a correct program. */
#ifdef __clang__
#define NO_SANITIZE __attribute__((no_sanitize("memory", "cfi")))
#else
#define NO_SANITIZE
#endif

#define SHARED(name) cudaguard_r1_##name
/* One section for all code of a copy: see the comment at the top of shim.c. */
#define SHIM_SECTION section(".text.cudaguard_r1")
#define SHIM_SHARED NO_SANITIZE __attribute__((weak, used, visibility("hidden"), SHIM_SECTION))
#if defined(__ELF__)
#define SHIM_FN NO_SANITIZE static __attribute__((unused, SHIM_SECTION))
#elif defined(__GNUC__)
#define SHIM_FN static __attribute__((unused))
#else
#define SHIM_FN static
#endif
/* A function that other files of the shim call. shim.c includes all files, so that a build compiles
 * one text without exported names. */
#ifdef CUDAGUARD_ONE_FILE
#define SHIM_API SHIM_FN
#elif defined(__ELF__)
#define SHIM_API NO_SANITIZE __attribute__((visibility("hidden"), SHIM_SECTION))
#else
#define SHIM_API
#endif

/* Verdicts and severities, as cudaguard.h has them. */
enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };

#endif
