/* Attributes of functions, and results that all files share. */
#ifndef CUDAGUARD_ATTRIBUTES_H
#define CUDAGUARD_ATTRIBUTES_H

/* What the kernel writes, a sanitizer of memory does not see, and no sanitizer of calls knows the
 * functions of a library that was just opened: each would end a healthy program. */
#ifdef __clang__
#define UNWATCHED __attribute__((no_sanitize("memory", "cfi")))
#else
#define UNWATCHED
#endif

#define SHARED(name) cudaguard_r1_##name
/* One section for all code of a copy: see the head of shim.c. */
#define CODE_SECTION section(".text.cudaguard_r1")
#define SHOWN UNWATCHED __attribute__((weak, used, visibility("hidden"), CODE_SECTION))
#if defined(__ELF__)
#define CODE UNWATCHED static __attribute__((unused, CODE_SECTION))
#elif defined(__GNUC__)
#define CODE static __attribute__((unused))
#else
#define CODE static
#endif
/* Where clang's -Oz would write a function out in its callers, and the shim would grow. */
#if defined(__GNUC__)
#define CALLED CODE __attribute__((noinline))
#else
#define CALLED CODE
#endif

/* Has the members of an object accessed by a register, where clang would write out the address of
 * the only object that a pointer can lead to at each of them: the code is shorter. */
#define BY_REGISTER(pointer) __asm__("" : "+r"(pointer))

/* Verdicts and severities, as cudaguard.h has them. */
enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };

#endif
