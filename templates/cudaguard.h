/* cudaguard.h: what a guarded program or library can ask its guard.
 *
 * Works in C and C++, in every file that links the guard, and in one that does not: there the answer is CUDAGUARD_UNKNOWN.
 * The names behind it are hidden and carry the guard's revision, so that two guards can live in one process.
 *
 * What may be relied on:
 *   threads     any thread may ask, at any time; they wait for each other, and the answer is the same.
 *   signals     not from a signal handler: it may have interrupted the thread that is being answered, and would wait for ever.
 *   fork        parent and child may both ask, and neither hangs. A child that was forked while another thread was in the loader
 *               gets the last verdict of its parent: the loader would not answer it. Nothing of the guard's is left running, open or
 *               locked, and one page stays mapped; the program has no child that it did not make, and gets no SIGCHLD.
 *   stack       a thread of 16 KiB may ask.
 *   namespaces  a library that dlmopen() or LD_AUDIT loads is judged as a library, for its own namespace alone.
 *               If children go to a PID namespace of their own (unshare --pid without --fork), none is made, and nobody is asked.
 *   memory      no heap, but in the child that asks a driver or cuDNN.
 *   files read  of the program and its libraries: the notes, in memory; the files of cuDNN and libcuda, and what the loader reads to
 *               find them; below /proc/driver/nvidia, /sys/bus/pci/devices and /dev the names and texts of GPUs, opening none.
 *   written     a refusal, on stderr; and where CUDAGUARD_REPORT names a file, the report: beside it, and renamed, so that it is whole
 *               at any time. %p in the name is the number of the process, %h the name of the host. A library that is loaded later
 *               adds itself. Of several processes on one file the last one's report stays. One that is killed while it writes may
 *               leave FILE.HOST.PID.new. What is no plain file, and where the folder takes no other, is written to directly; what
 *               standard output or error leads to (/dev/stderr, a log) is written behind what stands there. In a folder that others
 *               can write to, a link is replaced and not followed; nothing is written by a path that another user's link leads to.
 *   time        a third of a millisecond where files tell; where the real driver or cuDNN must be asked, theirs, and in all no more
 *               than ten seconds (CUDAGUARD_TIMEOUT=SECONDS). A pipe on stderr that is full is waited for one second.
 *   calls of the system, by what they are for. One that is refused leaves a doubt, no more.
 *     start     getpid mmap madvise
 *     files     openat read pread64 newfstatat close mmap munmap access readlink, as the loader (aarch64: faccessat and readlinkat)
 *     GPUs      getdents64, where NVIDIA's kernel module is loaded
 *     words     rt_sigprocmask ppoll write rt_sigtimedwait exit_group
 *     report    uname getpid geteuid newfstatat unlinkat renameat, and those for words
 *     check()   getpid sched_yield; in a forked child clone wait4 nanosleep kill, too
 *     asking    pipe2 newfstatat clone ppoll wait4 nanosleep kill, where files do not tell
 *     child     prctl ppoll rt_sigaction rt_sigprocmask fcntl write exit_group, and all that the driver or cuDNN does */
#ifndef CUDAGUARD_H
#define CUDAGUARD_H

#include <stddef.h>

#define CUDAGUARD_COMPATIBLE 0   /* nothing that the guard checked prevents the program from running */
#define CUDAGUARD_INCOMPATIBLE 1 /* the program cannot run here; the text contains the reason */
#define CUDAGUARD_UNKNOWN 2      /* the guard could not determine it; the text contains the reason */

#define CUDAGUARD_INFO 0
#define CUDAGUARD_WARNING 1
#define CUDAGUARD_ERROR 2

/* The verdict as data. Its size says which members the caller knows: later ones are added behind, and these never move.
 * Texts are UTF-8, always ended by a NUL, cut where they would not fit, and empty where there is nothing to say. */
struct cudaguard_verdict {
  size_t size;          /* sizeof(struct cudaguard_verdict): cudaguard_check_verdict() sets it */
  int verdict;          /* CUDAGUARD_COMPATIBLE, CUDAGUARD_INCOMPATIBLE, CUDAGUARD_UNKNOWN */
  int code;             /* of the finding that decided: 202 for CG202; 0 where there is none */
  int severity;         /* of that finding */
  int level;            /* how far it had to look: 0 files and names only, 1 the real driver or cuDNN was asked */
  char subject[16];     /* "cuDNN", "driver", "manifest" */
  char component[256];  /* "my-model 0.3.0" */
  char built[32];       /* "9.15.1" where it is about cuDNN; the CUDA version needed, "13.0", where about the driver */
  char found[32];       /* "9.1.0"; the CUDA version that the driver supports, "12.2" */
  char message[2048];   /* what is wrong, and each fact on a line of its own */
  char hint[512];       /* what to do */
  char not_judged[256]; /* what of the file nobody could look at, joined by "; ": "GPU code that stands as plain data" */
};

#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))

#ifdef __cplusplus
extern "C" {
#endif
/* Not hidden here, only where it is defined: gold takes a hidden weak name that nobody defines for the file's start. */
extern int cudaguard_r1_check(char *text, size_t size) __attribute__((weak));
extern int cudaguard_r1_verdict(void *to) __attribute__((weak));
#ifdef __cplusplus
}
#endif

/* Completes the verdict about the file that this call stands in, and returns it. `text` gets at most `size` bytes, always
 * ended by a NUL; empty where nothing is wrong. Safe from any thread; may take as long as loading cuDNN does, once. */
static inline int cudaguard_check_text(char *text, size_t size) {
  if (cudaguard_r1_check) return cudaguard_r1_check(text, size);
  if (text && size) {
    const char *why = "this file was built without the guard";
    size_t i = 0;
    for (; why[i] && i + 1 < size; i++) text[i] = why[i];
    text[i] = 0;
  }
  return CUDAGUARD_UNKNOWN;
}

/* The same as data: fills the whole of `to`, and returns to->verdict. */
static inline int cudaguard_check_verdict(struct cudaguard_verdict *to) {
  size_t i;
  for (i = 0; i < sizeof *to; i++) ((char *)to)[i] = 0;
  to->size = sizeof *to;
  if (cudaguard_r1_verdict) return cudaguard_r1_verdict(to);
  return to->verdict = cudaguard_check_text(to->message, sizeof to->message);
}

#else

static inline int cudaguard_check_text(char *text, size_t size) {
  if (text && size) text[0] = 0;
  return CUDAGUARD_UNKNOWN;
}

static inline int cudaguard_check_verdict(struct cudaguard_verdict *to) {
  size_t i;
  for (i = 0; i < sizeof *to; i++) ((char *)to)[i] = 0;
  to->size = sizeof *to;
  return to->verdict = CUDAGUARD_UNKNOWN;
}

#endif

/* The same without the words. */
static inline int cudaguard_check(void) { return cudaguard_check_text((char *)0, 0); }

#endif
