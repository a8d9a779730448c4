/* cudaguard's shim: reads the requirement rows that the build left in this file (MANIFEST.md), looks at the machine, and
 * says no before `main` where the program cannot run rightly. C11 and valid C++11; the C library only; no heap where it
 * accepts, no threads, no locale. It never harms: what cannot be looked at is "cannot tell", and that never refuses.
 *
 * Several copies in one link are harmless. What is shared between them is weak, hidden and named by CUDAGUARD_REVISION,
 * so that the linker keeps the first copy's; each copy's code is one section, so that --gc-sections drops the others.
 * COMDAT groups would do the same, but C has no way to ask gcc and clang alike for one. Whoever changes the meaning of a
 * shared name raises the revision. */
#if defined(__linux__) && defined(__ELF__)

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
/* Its checked memcpy is inlined by force, which functions of other options than the file's do not allow; every copy here is
 * of a size that was compared before. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PATH_MAX /* limits.h of a freestanding clang */
#define PATH_MAX 4096
#endif

/* Before glibc 2.34 these live in libdl, and a static program has none: then there is nobody to ask, and no more. */
#pragma weak dlopen
#pragma weak dlsym
#ifdef __has_attribute
#if __has_attribute(noplt) /* a table entry less for each */
extern __typeof__(dlopen) dlopen __attribute__((noplt));
extern __typeof__(dlsym) dlsym __attribute__((noplt));
extern __typeof__(secure_getenv) secure_getenv __attribute__((noplt));
extern __typeof__(dl_iterate_phdr) dl_iterate_phdr __attribute__((noplt));
#endif
#endif

#define SHARED(name) cudaguard_r1_##name
/* Small whatever the build's own -O is: what runs once at the start gains nothing by being unrolled. */
#if defined(__clang__)
#define SMALL_CODE minsize
#else
#if __GNUC__ >= 12
#define SMALLEST "Oz"
#else
#define SMALLEST "Os"
#endif
#if defined(__x86_64__) && __GNUC__ >= 11
#define REGISTERS , target("general-regs-only")
#else
#define REGISTERS
#endif
/* What is switched off makes code faster and larger: a KiB in all. */
#define SMALL_CODE \
  optimize(SMALLEST, "no-thread-jumps", "no-move-loop-invariants", "no-if-conversion", "no-tree-loop-im", "no-tree-tail-merge", \
           "no-tree-scev-cprop", "no-caller-saves", "no-optimize-sibling-calls", "no-shrink-wrap", "no-ssa-phiopt") REGISTERS
#endif
#define SMALL SMALL_CODE, section(".text.cudaguard_r1")
#define SHOWN __attribute__((weak, used, visibility("hidden"), SMALL))
/* Compilers align tables for speed. */
#define TIGHT __attribute__((aligned(4)))
#define CODE static __attribute__((SMALL))
#define APART static __attribute__((noinline, SMALL)) /* larger where it is inlined, whatever compilers think */

enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };
enum { ROW_CUDNN = 1, ROW_INNER = 2, ROW_DRIVER = 3, ROW_GPU = 4 };
enum { LINKED = 1, DLOPENED = 2, STATIC = 4, PATCH = 8, REQUIRED = 16 };
enum { GPU_REQUIRED = 1, GPU_OPTIONAL = 2 };
enum { BY_CUBIN = 1, BY_PTX = 2, BY_SOME = 4, BY_NONE = 8, NO_PTX = 32 };
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };
enum { UNKNOWN, ABSENT, FOUND, INSIDE };

enum {
  STATUS_REFUSED = 78,
  CHILD_MS = 2000,      /* the longest that a question to the real cuDNN may take */
  DRIVER_MS = 10000,    /* and one to the driver: many GPUs that nobody keeps awake take seconds to wake */
  REAP_MS = 200,        /* and its killing, where the driver does not let go of it */
  MAX_NOTES = 64,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_FINDINGS = 24,
  MAX_SEEN = 9,         /* cuDNNs in the report */
  SHOW = 400,           /* of a path in words */
  WHY = SHOW + 160,
  TEXT = 256            /* of a note, with its NUL */
};

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

/* ---- the kernel and strings, without the C library ------------------------------------------------------------------- */

/* Each name that is imported costs a stripped program 80 to 100 bytes of tables, and whoever stands before the C library
 * (LD_PRELOAD, a sanitizer that has not started yet) would be called before `main`. errno stays as it is. */
#define INLINE static inline __attribute__((always_inline, SMALL_CODE))

#if defined(__x86_64__) && !defined(__ILP32__)
INLINE long sys1(long n, long a) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys2(long n, long a, long b) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys3(long n, long a, long b, long c) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  long r;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return r;
}
INLINE long sys4(long n, long a, long b, long c, long d) {
  long r;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(r) : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}
#elif defined(__aarch64__) && !defined(__ILP32__)
INLINE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
INLINE long sys4(long n, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#define sys1(n, a) sys4(n, a, 0, 0, 0)
#define sys2(n, a, b) sys4(n, a, b, 0, 0)
#define sys3(n, a, b, c) sys4(n, a, b, c, 0)
#else
CODE long sys6(long n, long a, long b, long c, long d, long e, long f) {
  int saved = errno;
  long r = syscall(n, a, b, c, d, e, f);
  if (r == -1) r = -errno;
  errno = saved;
  return r;
}
#define sys1(n, a) sys6(n, a, 0, 0, 0, 0, 0)
#define sys2(n, a, b) sys6(n, a, b, 0, 0, 0, 0)
#define sys3(n, a, b, c) sys6(n, a, b, c, 0, 0, 0)
#define sys4(n, a, b, c, d) sys6(n, a, b, c, d, 0, 0)
#endif

/* Whether something could not be looked at: it may be there, for all that is known. */
static int shut;

CODE long looked(long r) {
  if (r < 0 && r != -ENOENT && r != -ENOTDIR) shut = 1;
  return r;
}

APART long open_file(const char *path, int how) {
  return looked(sys4(SYS_openat, AT_FDCWD, (long)path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
}

CODE void close_file(long fd) { sys1(SYS_close, fd); }

/* The empty assembly keeps compilers from calling the C library's function for the loop that they recognise. */
CODE size_t len(const char *s) {
  size_t n = 0;
  while (s[n]) {
    n++;
    __asm__ volatile("");
  }
  return n;
}

CODE int same_bytes(const void *a, const void *b, size_t n) {
  const char *x = (const char *)a, *y = (const char *)b;
  for (; n; n--, x++, y++) {
    if (*x != *y) return 0;
    __asm__ volatile("");
  }
  return 1;
}

CODE int starts(const char *s, const char *with) {
  for (; *with; s++, with++) {
    if (*s != *with) return 0;
    __asm__ volatile("");
  }
  return 1;
}

CODE int same(const char *a, const char *b) { return starts(a, b) && !a[len(b)]; }

CODE const char *find_text(const char *s, const char *what) {
  for (; *s; s++)
    if (starts(s, what)) return s;
  return 0;
}

/* What follows the last '/'. */
CODE const char *base_name(const char *path) {
  const char *base = path;
  for (; *path; path++)
    if (*path == '/') base = path + 1;
  return base;
}

/* ---- text, without the heap ---------------------------------------------------------------------------------------- */

struct finding {
  int code, severity, note;
  uint32_t min, built, found, other;
  char component[2 * TEXT], path[SHOW + 4], why[WHY], file[2 * TEXT], beside[SHOW + 4], driver[2 * SHOW];
};

struct text {
  char *at;
  size_t used, size;
  const struct finding *of; /* whose facts the capital letters mean */
};

/* Capital letters stand for what a finding holds, and for how it is written. */
static const struct {
  char letter, how;
  uint16_t at;
} TIGHT facts[] = {
#define FACT(letter, how, field) {letter, how, (uint16_t)offsetof(struct finding, field)}
    FACT('B', 'v', built), FACT('C', 's', component), FACT('D', 's', driver), FACT('E', 'e', min), FACT('F', 'v', found), FACT('G', 's', beside),
    FACT('L', 's', file), FACT('M', 'v', min), FACT('N', 'h', built), FACT('O', 'v', other), FACT('P', 's', path),
    FACT('R', 'r', other), FACT('U', 'c', min), FACT('W', 's', why),
};

APART void put_char(struct text *t, char c) {
  if (t->used + 1 < t->size) t->at[t->used++] = c;
  t->at[t->used] = 0;
}

CODE void put(struct text *t, const char *s) {
  while (*s) put_char(t, *s++);
}

/* The nth of texts that stand behind each other. */
CODE const char *nth(const char *s, int n) {
  while (n--) s += len(s) + 1;
  return s;
}

CODE void put_number(struct text *t, uint32_t n) {
  if (n > 9) put_number(t, n / 10);
  put_char(t, (char)('0' + n % 10));
}

/* The length of the UTF-8 character at s, 0 where it is none. */
APART int utf8(const unsigned char *s) {
  static const uint32_t TIGHT least[] = {0, 0, 0x80, 0x800, 0x10000};
  int n = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0, i;
  uint32_t c = n > 1 ? *s & (0x7fu >> n) : *s;
  for (i = 1; i < n; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (s[i] & 0x3f);
  }
  return n && (c < least[n] || c >> 11 == 0x1b || c > 0x10ffff) ? 0 : n;
}

/* s as it is; p what came from outside: cut where it is long, and never a second line or a terminal's command; i indented;
 * j as JSON. */
CODE void put_string(struct text *t, const char *s, char how) {
  size_t n = len(s);
  if (how == 'j') put_char(t, '"');
  if (how == 'p' && n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  while (*s) {
    int bytes = 1;
    char c = *s;
    if (how == 'i' && c == '\n') put(t, "\n ");
    if (how == 'i' && c == '\n') c = ' ';
    else if (how == 'j' && c == '\n') put_char(t, '\\'), c = 'n';
    else if (how != 's' && how != 'i' && ((unsigned char)c < 0x20 || c == 0x7f)) c = '?';
    else if (how == 'j') {
      bytes = utf8((const unsigned char *)s);
      if (c == '"' || c == '\\') put_char(t, '\\');
      if (!bytes) put(t, "\\uff"), put(t, "fd");
    }
    if (bytes) put_char(t, c);
    while (bytes > 1) put_char(t, *++s), bytes--;
    s++;
  }
  if (how == 'j') put_char(t, '"');
}

/* What words hold often, one byte each: \n is none of them. */
#define LD_LIBRARY_PATH "\1"
#define cuDNN "\2"
#define DRIVER "\3"
#define OLDER "\4"
#define WITH "\5"
#define INSTALL "\6"
#define REBUILD "\7"
#define THAT "\10"
#define CUDA_ "\11"
#define THE "\13"
#define WAS_BUILT_WITH "\14"
#define START_A_CONTAINER "\15"
#define IS_MISSING "\16"
#define KEY(name) "\17" name "\":" /* of JSON, after a text */
static const char TIGHT often[] = "LD_LIBRARY_PATH\0" "cuDNN\0" "driver\0" " older\0" " with \0" "install \0" "rebuild\0" " that \0" "CUDA_\0" "\0"
                                  "the \0" "%C was built with\0" "start a container" WITH "\0" " is missing\0" "%j,\"\0";

/* Strings as above; n a number, h its upper half, v a version, r a driver's release, c a CUDA version as the driver says
 * it, x a compute capability, e nothing. What stands between < and > is left out where a value in it is empty. */
CODE void put_list(struct text *t, const char *f, va_list *more) {
  size_t from[4];
  unsigned depth = 0, gone = 0;
  for (; *f; f++) {
    const char *s = 0;
    uint32_t n = 0;
    char how;
    if (*f == '<') {
      from[++depth & 3] = t->used;
      gone &= ~(1u << depth);
      continue;
    }
    if (*f == '>') {
      if (gone >> depth & 1) t->at[t->used = from[depth & 3]] = 0;
      depth--;
      continue;
    }
    if (*f < ' ' && *f != '\n') put_list(t, nth(often, *f - 1), more);
    else if (*f != '%') put_char(t, *f);
    if (*f != '%') continue;
    how = *++f;
    if (how < 'a') {
      const char *at = (const char *)t->of;
      size_t k = 0;
      while (facts[k].letter != how) k++;
      at += facts[k].at;
      how = facts[k].how;
      if (how == 's') s = at;
      else memcpy(&n, at, sizeof n);
    } else if (how == 'w') {
      put_list(t, va_arg(*more, const char *), more);
      continue;
    } else if (how == 's' || how == 'p' || how == 'i' || how == 'j') {
      s = va_arg(*more, const char *);
    } else {
      n = va_arg(*more, uint32_t);
    }
    if (s ? !*s : !n) gone |= 1u << depth;
    if (s) put_string(t, s, how);
    if (s || how == 'e') continue;
    if (how == 'h') n >>= 16;
    if (how == 'v') put_number(t, n >> 16), put_char(t, '.'), n &= 0xffff;
    if (how == 'c') n = n / 1000 << 8 | n % 1000 / 10;
    if (how == 'r') { /* 535.54.03, and 590.1 */
      uint32_t last = n & 0xff;
      put_number(t, n >> 20);
      put(t, (n >> 8 & 0xfff) < 10 ? ".0" : ".");
      n = n >> 8 & 0xfff;
      if (last) {
        put_number(t, n);
        put(t, last < 10 ? ".0" : ".");
        n = last;
      }
    } else if (how != 'n' && how != 'h') {
      put_number(t, n >> 8), put_char(t, '.');
      n &= 0xff;
    }
    put_number(t, n);
  }
}

CODE void putf(struct text *t, const char *f, ...) {
  va_list more;
  va_start(more, f);
  put_list(t, f, &more);
  va_end(more);
}

/* The whole of a buffer. */
CODE void format(char *to, size_t size, const char *f, ...) {
  struct text t;
  va_list more;
  t.at = to, t.used = 0, t.size = size, t.of = 0;
  *to = 0;
  va_start(more, f);
  put_list(&t, f, &more);
  va_end(more);
}

/* As much as there is room for. */
CODE void cut(char *to, size_t size, const char *s) {
  for (; size > 1 && *s; size--) *to++ = *s++;
  *to = 0;
}

/* A path. */
CODE void keep(char (*to)[PATH_MAX], const char *s) { cut(*to, sizeof *to, s); }

/* What came from outside, for words. */
CODE void show(char *to, size_t size, const char *s) { format(to, size, "%p", s); }

CODE int copy(char *to, size_t size, const char *from, size_t n) {
  if (n >= size) return 0;
  memcpy(to, from, n);
  to[n] = 0;
  return 1;
}

/* A decimal number of at most `most`, moving past it; -1 where there is none. */
CODE long number(const char **s, long most) {
  long n = 0;
  if (**s < '0' || **s > '9') return -1;
  while (**s >= '0' && **s <= '9') {
    n = n * 10 + *(*s)++ - '0';
    if (n > most) return -1;
  }
  return n;
}

#define CUDNN_STEM "libcudnn.so"

/* The first numbers with dots between them, the first of them being `least` or more: how many, three at most. */
CODE int numbers_in(const char *s, long least, uint32_t n[3]) {
  for (; *s; s++) {
    int k = 0;
    long is;
    n[1] = n[2] = 0;
    while (k < 3 && (is = number(&s, 4095)) >= (k ? 0 : least)) {
      n[k++] = (uint32_t)is;
      if (*s != '.') break;
      s++;
    }
    if (k > 1) return k;
    while (*s >= '0' && *s <= '9') s++; /* of a number that is too large */
    if (!*s) break;
  }
  return 0;
}

/* libcudnn.so.9.10.2, libcudart.so.12.4.127 -> that version; 0 where the name has no three numbers. */
CODE uint32_t version_in_name(const char *name) {
  uint32_t n[3];
  return numbers_in(name, 0, n) < 3 || (n[1] | n[2]) > 255 ? 0 : n[0] << 16 | n[1] << 8 | n[2];
}

/* libcudnn.so.9 -> 9; 0 where the name does not say. */
CODE uint32_t major_in_name(const char *name) {
  long a;
  if (!starts(name, CUDNN_STEM ".")) return 0;
  name += sizeof CUDNN_STEM;
  a = number(&name, 999);
  return a > 0 ? (uint32_t)a : 0;
}

/* What cudnnGetVersion() answers, in its two encodings. */
CODE uint32_t version_of_answer(uint64_t n) {
  uint32_t v = (uint32_t)n, minors = v >= 90000 ? 100 : 10;
  if (n < 1000 || n > 9999999) return 0;
  return v / 100 / minors << 16 | v / 100 % minors << 8 | v % 100;
}

/* ---- loaded objects -------------------------------------------------------------------------------------------------- */

/* A dynamic table by tag, each but DT_NEEDED being there once; 0 is the GNU hash table's place. */
struct tags {
  ElfW(Addr) at[32];
};

CODE void take_tags(struct tags *t, const ElfW(Dyn) * d, size_t n) {
  memset(t, 0, sizeof *t);
  for (; n && d->d_tag != DT_NULL; n--, d++)
    if (d->d_tag > 0 && d->d_tag < 32) t->at[d->d_tag] = d->d_un.d_ptr;
    else if (d->d_tag == DT_GNU_HASH) t->at[0] = d->d_un.d_ptr;
}

struct image {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name;
  const ElfW(Dyn) * dynamic;
  size_t entries;
  const char *strings;
  size_t size;                            /* of the strings */
  const char *soname, *rpath, *runpath;   /* among them, or null */
};

CODE const char *image_string(const struct image *im, ElfW(Addr) at) { return at && at < im->size ? im->strings + at : 0; }

CODE void image_names(struct image *im) {
  struct tags t;
  int k;
  im->dynamic = 0, im->entries = 0;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_DYNAMIC) {
      im->dynamic = (const ElfW(Dyn) *)(im->base + im->ph[k].p_vaddr);
      im->entries = im->ph[k].p_memsz / sizeof *im->dynamic;
    }
  take_tags(&t, im->dynamic, im->entries);
  im->strings = (const char *)(t.at[DT_STRTAB] < im->base ? t.at[DT_STRTAB] + im->base : t.at[DT_STRTAB]); /* musl: as linked */
  im->size = t.at[DT_STRSZ];
  im->soname = image_string(im, t.at[DT_SONAME]);
  im->rpath = image_string(im, t.at[DT_RPATH]);
  im->runpath = image_string(im, t.at[DT_RUNPATH]);
}

CODE void image_of(struct image *im, const struct dl_phdr_info *info) {
  im->base = info->dlpi_addr, im->ph = info->dlpi_phdr, im->n = info->dlpi_phnum, im->name = info->dlpi_name;
}

/* The name by which it needs a library `stem` of any version, or null. */
CODE const char *image_needs(const struct image *im, const char *stem) {
  size_t i;
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) {
    const char *needed = im->dynamic[i].d_tag == DT_NEEDED ? image_string(im, im->dynamic[i].d_un.d_ptr) : 0;
    if (!needed) continue;
    needed = base_name(needed);
    if (starts(needed, stem) && (!needed[len(stem)] || needed[len(stem)] == '.')) return needed;
  }
  return 0;
}

/* ---- notes ----------------------------------------------------------------------------------------------------------- */

enum { NOTE_WHOLE, NOTE_NEWER, NOTE_DAMAGED };

struct note {
  const unsigned char *d;
  uint32_t size;
  int state, own;
  uint32_t cudnn;    /* the version that it gets */
  uint64_t not_unfit; /* of the GPUs, where it has kernels */
  struct image image;
};

/* No CUDA machine is big-endian. */
INLINE uint32_t u16(const void *p) {
  uint16_t n;
  memcpy(&n, p, sizeof n);
  return n;
}

INLINE uint32_t u32(const void *p) {
  uint32_t n;
  memcpy(&n, p, sizeof n);
  return n;
}

/* A text of the note; null where it points outside or is longer than what is kept of one. */
CODE const char *note_text(const struct note *n, const unsigned char *ref, char (*text)[TEXT]) {
  char *to = *text;
  uint32_t at = u16(ref), length = u16(ref + 2);
  *to = 0;
  if (length >= TEXT || at > n->size || length > n->size - at) return 0;
  memcpy(to, n->d + at, length);
  to[length] = 0;
  return to;
}

CODE uint32_t note_rows(const struct note *n) { return u16(n->d + 10); }
CODE const unsigned char *note_row(const struct note *n, uint32_t i) { return n->d + u16(n->d + 12) + i * u16(n->d + 14); }

CODE int note_judge_bytes(const struct note *n) {
  uint32_t rows, start, size, i;
  char text[TEXT];
  if (n->size < 44 || !same_bytes(n->d, "cudagrd", 8)) return NOTE_DAMAGED;
  rows = u16(n->d + 10), start = u16(n->d + 12), size = u16(n->d + 14);
  if (!u16(n->d + 8) || size < 40 || (rows && start < 20) || start > n->size || rows * size > n->size - start) return NOTE_DAMAGED;
  for (i = 0; i <= rows; i++) { /* the head, then the rows: their two texts stand at the same distance */
    const unsigned char *texts = i ? note_row(n, i - 1) + 24 : n->d + 28;
    if (i ? u16(texts - 24) < ROW_CUDNN || u16(texts - 24) > ROW_GPU : u16(n->d + 8) != 1) continue;
    if (!note_text(n, texts, &text) || !note_text(n, texts + 4, &text)) return NOTE_DAMAGED;
  }
  return u16(n->d + 8) == 1 ? NOTE_WHOLE : NOTE_NEWER;
}

/* ---- what was found ---------------------------------------------------------------------------------------------------- */

struct part {
  char file[TEXT], symbol[TEXT];
  int needed, known, present;
  uint32_t version;
  char path[SHOW + 1];
};

struct cudnn {
  int state, answered; /* answered: by the real cuDNN, in a child */
  int note;
  char names[TEXT]; /* that the program tries, one a line */
  char soname[TEXT], path[PATH_MAX], why[WHY];
  uint32_t version, by_name;
  const char *from; /* where the version comes from, in words */
  const char *by;   /* and the inner library that says it, or null */
  struct part part[MAX_INNER];
  int parts;
};

/* Of this process: the rows ask for no more. Numbers are 0, `init` and `gpus` -1 where nobody knows. */
struct driver {
  int state;
  int strict;            /* level 0: which of the GPUs it will be is not known, so all must be fit; 2: a variable chooses */
  int init;              /* what cuInit answered */
  int gpus;              /* that the process sees */
  int jit;               /* whether PTX can be compiled: 1 yes, -1 no */
  uint32_t user, kernel; /* releases, widened */
  uint32_t cuda;         /* that the driver supports, as cuDriverGetVersion says it */
  uint16_t cc[MAX_GPUS];
  char path[PATH_MAX];
};

/* What a program gets that asks: cudaguard.h has the same. */
struct verdict {
  size_t size;
  int verdict, code, severity, level;
  char subject[16], component[256], built[32], found[32], message[2048], hint[512];
};

/* All that is large lives here and not on the stack of whoever calls check(). In .bss: no byte in the file. */
struct state {
  int lock; /* the process that holds it */
  int ready, program, mode;
  int startup;     /* how many objects the loader brought before `main` */
  int first_noted; /* no guarded file stands before this one */
  int notes, now, findings, seen; /* seen: of those in the report */
  int driver_known, driver_asked;
  int by_name; /* the driver's libraries are found by their names alone, and not opened */
  int outcome, level;
  size_t answered;
  const char *library_path;
  struct image first;
  struct driver driver, told; /* told: by the real driver, in a child */
  struct cudnn cudnn[MAX_SEEN]; /* the last one is used again */
  struct note note[MAX_NOTES];
  struct finding finding[MAX_FINDINGS];
  char self[PATH_MAX], scratch[PATH_MAX];
  char rpath[4096], runpath[4096];
  char asked[PATH_MAX], real[PATH_MAX], answer[8192];
  struct verdict verdict;
};
static struct state g;
INLINE void *at(void *s) {
  __asm__("" : "+r"(s));
  return s;
}

static const char anchor = 0; /* stands in this very file: how it finds its own image */

/* Keeps the notes of an image, or only counts them. Looks for the mark at every 4 bytes: mold puts notes of both
 * alignments into one segment, where stepping from note to note by the segment's alignment goes astray. */
CODE int take_notes(struct image *im, int own, int keep) {
  static const unsigned char TIGHT mark[16] = {1, 0, 0, 0, 'c', 'u', 'd', 'a', 'g', 'u', 'a', 'r', 'd', 0, 0, 0};
  int taken = 0, k;
  for (k = 0; k < im->n; k++) {
    const ElfW(Phdr) *ph = &im->ph[k];
    const unsigned char *p = (const unsigned char *)(im->base + ph->p_vaddr);
    size_t left = ph->p_memsz;
    if (ph->p_type != PT_NOTE || left > (64u << 20) || ph->p_filesz < left) continue;
    while (left >= 24) {
      size_t step = 4;
      if (u32(p) == 10 && same_bytes(p + 8, mark, sizeof mark) && u32(p + 4) <= left - 24) {
        uint32_t size = u32(p + 4);
        taken++;
        if (keep && g.notes < MAX_NOTES) {
          struct note *n = &g.note[g.notes++];
          if (taken == 1) image_names(im);
          n->d = p + 24;
          n->size = size > 65535 ? 65535 : size;
          n->own = own;
          n->image = *im;
          n->state = note_judge_bytes(n);
        }
        step = 24 + (((size_t)size + 3) & ~(size_t)3);
      }
      if (step >= left) break;
      p += step;
      left -= step;
    }
  }
  return taken;
}

struct walk {
  int all, index, noted;
};

/* Kept are the notes of this file and, in a program, those of the libraries that came with it: neither can be unloaded
 * while we look. In a constructor nothing can, and all are kept for the report. */
CODE int on_image(struct dl_phdr_info *info, size_t size, void *data) {
  struct walk *w = (struct walk *)data;
  struct image im;
  int own = 0, k, first = w->index++ == 0, taken;
  (void)size;
  image_of(&im, info);
  if (first || !im.name) im.name = ""; /* musl calls the program argv[0] */
  for (k = 0; k < im.n; k++)
    if (im.ph[k].p_type == PT_LOAD && (uintptr_t)&anchor - (im.base + im.ph[k].p_vaddr) < im.ph[k].p_memsz) own = 1;
  if (first) {
    image_names(&im);
    g.first = im;
  }
  if (own) g.program = first;
  taken = take_notes(&im, own, own || w->all || (g.program && w->index <= g.startup));
  if (taken && !w->noted++) g.first_noted = own;
  return 0;
}

/* A setuid program listens to nobody. */
CODE const char *variable(const char *name) {
  const char *value = secure_getenv(name);
  return value ? value : "";
}

CODE long read_link(const char *path, char (*link)[PATH_MAX]) {
  char *to = *link;
  long n = sys4(SYS_readlinkat, AT_FDCWD, (long)path, (long)to, PATH_MAX - 1);
  to[n > 0 ? n : 0] = 0;
  return n;
}

CODE const char *self(void) {
  if (!g.self[0]) {
    long n = read_link("/proc/self/exe", &g.self);
    if (n <= 0) copy(g.self, sizeof g.self, "this program", 12);
  }
  return g.self;
}

CODE const char *file_of(const struct image *im) { return im->name[0] ? im->name : self(); }

/* ---- ELF files, by bounded reads: a file that shrinks while it is read is no signal --------------------------------- */

struct elf {
  long fd;
  ElfW(Ehdr) eh;
  ElfW(Phdr) ph[48];
  int n;
  struct tags tags;
};

CODE int read_at(long fd, uint64_t at, void *to, size_t size) {
  size_t done = 0;
  while (done < size) {
    long got = sys4(SYS_pread64, fd, (long)((char *)to + done), (long)(size - done), (long)(at + done));
    if (got == -EINTR) continue;
    if (got <= 0) return 0;
    done += (size_t)got;
  }
  return 1;
}

CODE int elf_read(const struct elf *e, ElfW(Addr) at, void *to, size_t size) {
  int k;
  for (k = 0; k < e->n; k++) {
    const ElfW(Phdr) *ph = &e->ph[k];
    if (ph->p_type == PT_LOAD && at >= ph->p_vaddr && at - ph->p_vaddr <= ph->p_filesz &&
        size <= ph->p_filesz - (at - ph->p_vaddr))
      return read_at(e->fd, ph->p_offset + (at - ph->p_vaddr), to, size);
  }
  return 0;
}

/* 1: a library of this kind of machine; 0: not there, or of another kind (the loader looks on); -1: not to be read (the
 * loader would stop at it). Open only where 1. */
CODE int elf_open(struct elf *e, const char *path) {
#if defined(__x86_64__)
  const int machine = EM_X86_64;
#elif defined(__aarch64__)
  const int machine = EM_AARCH64;
#else
  const int machine = EM_NONE;
#endif
  int k, is = -1;
  memset(e, 0, sizeof *e);
  e->fd = open_file(path, O_RDONLY);
  if (e->fd < 0) return 0;
  if (read_at(e->fd, 0, &e->eh, sizeof e->eh) && same_bytes(e->eh.e_ident, ELFMAG, SELFMAG)) {
    e->n = e->eh.e_phnum < 48 ? e->eh.e_phnum : 48;
    if (e->eh.e_ident[EI_CLASS] != NATIVE_CLASS || (machine != EM_NONE && e->eh.e_machine != machine)) is = 0;
    else if (e->n && e->eh.e_phentsize == sizeof *e->ph && read_at(e->fd, e->eh.e_phoff, e->ph, (size_t)e->n * sizeof *e->ph)) is = 1;
  }
  for (k = 0; k < e->n && is > 0; k++)
    if (e->ph[k].p_type == PT_DYNAMIC) {
      ElfW(Dyn) d[128];
      size_t size = e->ph[k].p_filesz < sizeof d ? e->ph[k].p_filesz : sizeof d;
      if (!read_at(e->fd, e->ph[k].p_offset, d, size)) is = -1;
      else take_tags(&e->tags, d, size / sizeof *d);
    }
  if (is <= 0) close_file(e->fd);
  return is;
}

/* A string of the file's dynamic table, or null where it has none; what is longer than `size` is cut. */
CODE const char *elf_string(const struct elf *e, int tag, char *to, size_t size) {
  ElfW(Addr) at = e->tags.at[tag], left = e->tags.at[DT_STRSZ] - at;
  if (!at || at >= e->tags.at[DT_STRSZ]) return 0;
  if (left > size - 1) left = (ElfW(Addr))(size - 1);
  to[left] = 0;
  return elf_read(e, e->tags.at[DT_STRTAB] + at, to, (size_t)left) ? to : 0;
}

/* The value of an exported 4-byte data object; 0 where there is none. By the GNU hash table, the only one that cuDNN's
 * libraries have (measured: 8.5.0 to 9.28.0). */
APART uint32_t elf_word(const struct elf *e, const char *name) {
  size_t i;
  ElfW(Sym) s;
  char text[128];
  uint32_t head[4], h = 5381, at, c, steps, value;
  ElfW(Addr) buckets;
  if (!e->tags.at[0] || !elf_read(e, e->tags.at[0], head, sizeof head) || !head[0]) return 0;
  for (i = 0; name[i]; i++) h = h * 33 + (unsigned char)name[i];
  buckets = e->tags.at[0] + 16 + (ElfW(Addr))head[2] * sizeof(ElfW(Addr));
  if (!elf_read(e, buckets + (ElfW(Addr))(h % head[0]) * 4, &at, 4) || at < head[1]) return 0;
  buckets += (ElfW(Addr))head[0] * 4; /* the chains */
  for (steps = 0; steps < 4096; steps++, at++) {
    if (!elf_read(e, buckets + (ElfW(Addr))(at - head[1]) * 4, &c, 4)) break;
    if ((c | 1) == (h | 1) && elf_read(e, e->tags.at[DT_SYMTAB] + at * sizeof s, &s, sizeof s) && s.st_shndx != SHN_UNDEF &&
        elf_read(e, e->tags.at[DT_STRTAB] + s.st_name, text, i + 1) && same_bytes(text, name, i + 1))
      return (!s.st_size || s.st_size == 4) && elf_read(e, s.st_value, &value, 4) ? value : 0;
    if (c & 1) break;
  }
  return 0;
}

/* ---- the loader's search: LD_LIBRARY_PATH, RPATH, RUNPATH, the cache, the default folders ---------------------------- */

/* One element of a path list, $ORIGIN replaced, joined with the file's name. */
CODE int join(char *to, const char *dir, size_t n, const char *file, const char *origin) {
  struct text t;
  const char *end = dir + n, *base = base_name(origin);
  t.at = to, t.used = 0, t.size = PATH_MAX;
  while (dir < end) {
    if (*dir == '$') {
      int braces = dir[1] == '{';
      if (!starts(dir + 1 + braces, "ORIGIN")) return 0; /* $LIB, $PLATFORM: the child knows */
      dir += 7 + 2 * braces;
      if (base == origin) put_char(&t, '.');
      while (origin + 1 < base) put_char(&t, *origin++);
    } else {
      put_char(&t, *dir++);
    }
  }
  if (n) put_char(&t, '/');
  put(&t, file);
  return t.used + 1 < t.size;
}

CODE int elf_is(const char *path) {
  struct elf e;
  struct stat about;
  int is;
  /* Images of containers hold empty files where the host's are to be mounted. */
  if (g.by_name) return looked(sys4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&about, 0)) == 0 && about.st_size > 0;
  is = elf_open(&e, path);
  if (is > 0) close_file(e.fd);
  return is;
}

/* In this list: 1 found, 0 go on, -1 the loader would stop here (`to` names the file). */
CODE int search_list(const char *list, char also, const char *file, const char *origin, char *to) {
  int is = 0;
  while (list && *list && !is) {
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != also) n++;
    if (join(to, list, n, file, origin)) is = elf_is(to);
    list += n + (list[n] != 0);
  }
  return is;
}

#define CACHE "/etc/ld.so.cache"

CODE int in_cache(const char *file, char *to) {
  struct head {
    char magic[20];
    uint32_t count, strings;
    uint32_t more[5];
  };
  struct entry {
    int32_t flags;
    uint32_t key, value, version;
    uint64_t hwcap;
  };
#if defined(__x86_64__)
  const int32_t kind = 0x0303;
#elif defined(__aarch64__)
  const int32_t kind = 0x0a03;
#else
  const int32_t kind = -1;
#endif
  size_t length = len(file), size, at = 0, i;
  long fd = open_file(CACHE, O_RDONLY), end;
  int found = 0;
  const char *map;
  const struct head *h;
  const struct entry *en;
  if (fd < 0) return 0;
  end = sys3(SYS_lseek, fd, 0, SEEK_END);
  size = end > 0 && end < (64 << 20) ? (size_t)end : 0;
  map = (const char *)(size > sizeof *h ? sys6(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, fd, 0) : -1);
  close_file(fd);
  if ((unsigned long)map > (unsigned long)-4096) {
    shut = 1;
    return 0;
  }
  if (same_bytes(map, "ld.so-1.7.0", 11)) { /* the old table first, 12 bytes an entry */
    uint32_t old;
    memcpy(&old, map + 12, 4);
    at = old < size / 12 ? (16 + (size_t)old * 12 + 7) & ~(size_t)7 : size;
  }
  if (at + sizeof *h <= size && same_bytes(map + at, "glibc-ld.so.cache1.1", 20)) {
    h = (const struct head *)(map + at);
    en = (const struct entry *)(map + at + 48);
    for (i = 0; i < h->count && at + 48 + (i + 1) * sizeof *en <= size && !found; i++) {
      size_t key = at + en[i].key, value = at + en[i].value;
      if (en[i].flags != kind || en[i].hwcap || key >= size || value >= size) continue;
      if (size - key <= length || !same_bytes(map + key, file, length + 1)) continue;
      for (value = at + en[i].value, at = 0; value < size && at < PATH_MAX - 1 && map[value];) to[at++] = map[value++];
      to[at] = 0;
      found = 1;
    }
  }
  sys2(SYS_munmap, (long)map, (long)size);
  return found;
}

/* Where the loader would find `file` for the object of `of`: 1 and the path, 0 nowhere, -1 at a file it cannot read. */
CODE int search(const char *file, const struct image *of, char *to, char *why) {
  static const char TIGHT defaults[] =
#if defined(__x86_64__)
      "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
      "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
      "/lib64:/usr/lib64:/lib:/usr/lib";
  int k, is = 0;
  for (k = 0; k < 6 && !is; k++) {
    const char *list = k == 0 ? of->rpath : k == 1 ? g.first.rpath : k == 2 ? g.library_path : k == 3 ? of->runpath : defaults;
    const char *origin = k == 0 || k == 3 ? file_of(of) : self();
    if (k < 2 && (of->runpath || (k && g.first.runpath))) continue;
    is = k != 4 ? search_list(list, k == 2 ? ';' : ':', file, origin, to) : in_cache(file, to) ? elf_is(to) : 0;
    if (is && why)
      format(why, WHY, k < 2 ? "RPATH of %p" : k == 2 ? "LD_LIBRARY_PATH" : k == 3 ? "RUNPATH of %p" : k == 4 ? CACHE : "the system's library folders", origin);
  }
  if (!is) *to = 0;
  return is;
}

/* ---- what is loaded already ---------------------------------------------------------------------------------------------- */

struct loaded {
  const char *name; /* soname or file name; null: any cuDNN loader library */
  char (*path)[PATH_MAX], (*soname)[TEXT]; /* soname: or null */
  int found;
};

CODE int on_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  struct loaded *l = (struct loaded *)data;
  struct image im;
  const char *base, *hit = 0;
  (void)size;
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  image_of(&im, info);
  base = base_name(im.name);
  image_names(&im);
  if (l->name) {
    if (same(base, l->name) || (im.soname && same(im.soname, l->name))) hit = l->name;
  } else if (im.soname && major_in_name(im.soname)) {
    hit = im.soname;
  } else if (major_in_name(base) || same(base, CUDNN_STEM)) {
    hit = base;
  }
  if (!hit) return 0;
  if (l->found++) return 1;
  keep(l->path, im.name);
  if (l->soname) cut(*l->soname, sizeof *l->soname, hit);
  return l->name != 0;
}

CODE int is_loaded(const char *name, char (*path)[PATH_MAX], char (*soname)[TEXT]) {
  struct loaded l;
  l.name = name, l.path = path, l.soname = soname;
  l.found = 0;
  dl_iterate_phdr(on_loaded, &l);
  return l.found == 1;
}

/* ---- level 1: a child asks the real cuDNN, or the driver -------------------------------------------------------------------------------- */

enum { NOT_ASKED, NOBODY_TO_ASK, ANSWERED, DIED, HUNG };

#define LIBCUDA "libcuda.so.1"
#define LIBJIT "libnvidia-ptxjitcompiler.so.1"

CODE long now_ms(void) {
  struct timespec now;
  sys2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now);
  return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

CODE void leave(int status) {
  for (;;) sys1(SYS_exit_group, status);
}

/* One answer: its kind, its text and a NUL. */
CODE void say_back(long fd, int kind, const char *s) {
  char letter = (char)kind;
  if (sys3(SYS_write, fd, (long)&letter, 1) < 0 || sys3(SYS_write, fd, (long)s, (long)len(s) + 1) < 0) leave(1);
}

CODE void say_number(long fd, int kind, uint32_t n) {
  char digits[16];
  format(digits, sizeof digits, "%n", n);
  say_back(fd, kind, digits);
}

/* By its name alone, as a file that names no folders would search for it: libcuda does. */
CODE int driver_has(const char *library) {
  struct image nobody;
  int is;
  nobody.name = "", nobody.rpath = nobody.runpath = 0;
  g.by_name = 1;
  is = search(library, &nobody, g.scratch, 0) == 1;
  g.by_name = 0;
  return is;
}

/* What it says: V and the CUDA version, I and what cuInit answered, G and the compute capability of each GPU, J where PTX
 * can be compiled. Nothing where this is no driver. */
CODE void ask_driver(long to, void *library, const char *path) {
  static const char TIGHT names[] = "cuDriverGetVersion\0cuDeviceGetCount\0cuInit\0cuDeviceGet\0cuDeviceGetAttribute\0";
  union {
    void *symbol;
    int (*ask)(int *);
    int (*start)(unsigned);
    int (*get)(int *, int);
    int (*attribute)(int *, int, int);
  } call[5];
  const char *name;
  char line[PATH_MAX + 64];
  struct text t;
  int n = 0, k = 0, device, major, minor;
  for (name = names; *name; name += len(name) + 1)
    if (!(call[k++].symbol = dlsym(library, name))) return;
  if (call[0].ask(&n) == 0) say_number(to, 'V', (uint32_t)n);
  k = call[2].start(0);
  say_number(to, 'I', (uint32_t)k);
  if (k != 0 || call[1].ask(&n) != 0) return;
  t.at = line, t.used = 0, t.size = sizeof line;
  *line = 0;
  for (k = 0; k < n && k < MAX_GPUS; k++) {
    if (call[3].get(&device, k) | call[4].attribute(&major, 75, device) | call[4].attribute(&minor, 76, device)) major = minor = 0;
    putf(&t, "%n,", (uint32_t)(major << 8 | minor));
  }
  say_back(to, 'G', line);
  if (g.driver.jit) return;
  t.used = (size_t)(base_name(path) - path);
  memcpy(line, path, t.used);
  put(&t, LIBJIT);
  if (driver_has(LIBJIT) || dlopen(LIBJIT, RTLD_LAZY) || dlopen(line, RTLD_LAZY) || shut) say_back(to, 'J', "");
}

/* The next of names that stand one a line, or null. */
CODE const char *next_name(const char *list, char *name) {
  if (!*list) return 0;
  for (; *list && *list != '\n';) *name++ = *list++;
  *name = 0;
  return list + (*list != 0);
}

/* Never returns. What it says: N where there is no such library, L and the library's path, V and the answer, a row's number and that
 * inner library's path, E at the end. */
CODE void ask_as_child(long to, const char *names, const struct cudnn *c) {
  union {
    struct itimerval timer;
    struct rlimit limit;
    uint64_t signals;
    char action[64]; /* a kernel's sigaction: the default, no mask */
  } none;
  union {
    void *symbol;
    size_t (*version)(void);
  } cudnn;
  char path[PATH_MAX], soname[TEXT];
  void *handle;
  long fd, null;
  int k;
  memset(&none, 0, sizeof none);
  sys2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  sys4(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0);
  sys2(SYS_prctl, PR_SET_DUMPABLE, 0); /* a core_pattern that pipes asks no limit */
  for (k = 1; k < 32; k++) sys4(SYS_rt_sigaction, k, (long)&none, 0, 8);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8);
  fd = sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC, 3); /* the pipe may be 0, 1 or 2 where the program was started with those closed */
  if (fd < 0) leave(1);
  null = open_file("/dev/null", O_RDWR);
  for (k = 0; k < 3; k++)
    if (null < 0) close_file(k);
    else if (null != k) sys3(SYS_dup3, null, k, 0);
  none.timer.it_value.tv_sec = (c ? CHILD_MS : DRIVER_MS) / 1000 + 1;
  sys3(SYS_setitimer, ITIMER_REAL, (long)&none, 0);
  shut = 0;
  for (handle = 0; !handle && (names = next_name(names, g.real));) {
    handle = dlopen(g.real, RTLD_LAZY);
    if (!handle) driver_has(g.real);
  }
  if (!handle) {
    /* Whatever the reason is: where nothing can be opened, it says nothing of what is there. */
    close_file(open_file("/", O_RDONLY));
    if (!shut) say_back(fd, 'N', "");
  } else {
    path[0] = soname[0] = 0;
    if (is_loaded(base_name(g.real), &path, &soname) || (c && is_loaded(0, &path, &soname))) say_back(fd, 'L', path);
    if (!c) ask_driver(fd, handle, path);
    else if ((cudnn.symbol = dlsym(handle, "cudnnGetVersion"))) say_number(fd, 'V', (uint32_t)cudnn.version());
    for (k = 0; c && k < c->parts; k++)
      if (is_loaded(c->part[k].file, &path, &soname)) say_back(fd, '0' + k, path);
  }
  say_back(fd, 'E', "");
  leave(0);
}

/* Asks once per library and process; the answer is kept. A library may go by several names, one a line: the first that can
 * be opened counts. `c` is null where the library is the driver's. */
CODE int ask(const char *library, const struct cudnn *c) {
  struct timespec wait;
  struct pollfd p;
  int ends[2];
  long child, got, end;
  if (g.outcome != NOT_ASKED && same(g.asked, library)) return g.outcome;
  keep(&g.asked, library);
  g.answered = 0;
  g.outcome = NOBODY_TO_ASK;
  if (!dlopen || !dlsym || sys2(SYS_pipe2, (long)ends, O_CLOEXEC) != 0) return g.outcome;
  end = now_ms() + (c ? CHILD_MS : DRIVER_MS);
  /* Exit signal 0: no SIGCHLD, and no wait() of the program sees it; nothing runs that others left with pthread_atfork.
   * Where another thread holds the heap at this moment, the child hangs: it costs CHILD_MS, and we cannot tell. Emulators
   * have no such call, but one with the signal. */
  child = sys6(SYS_clone, 0, 0, 0, 0, 0, 0);
  if (child < 0) child = sys6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
  if (child == 0) {
    close_file(ends[0]);
    ask_as_child(ends[1], library, c);
  }
  close_file(ends[1]);
  p.fd = ends[0], p.events = POLLIN;
  if (child > 0) g.outcome = HUNG;
  while (g.outcome == HUNG) {
    long left = end - now_ms();
    wait.tv_sec = left / 1000, wait.tv_nsec = left % 1000 * 1000000;
    got = left > 0 ? sys6(SYS_ppoll, (long)&p, 1, (long)&wait, 0, 0, 0) : 0;
    if (got == -EINTR) continue;
    if (got <= 0) break;
    got = sys3(SYS_read, ends[0], (long)(g.answer + g.answered), (long)(sizeof g.answer - 1 - g.answered));
    if (got == -EINTR) continue;
    if (got <= 0) g.outcome = DIED;
    else g.answered += (size_t)got;
  }
  close_file(ends[0]);
  if (child < 0) return g.outcome;
  g.answer[g.answered] = 0;
  if (g.answered >= 2 && same_bytes(g.answer + g.answered - 2, "E", 2) && (g.answered == 2 || !g.answer[g.answered - 3])) g.outcome = ANSWERED;
  if (g.outcome == HUNG) sys2(SYS_kill, child, SIGKILL);
  end = now_ms() + REAP_MS;
  for (;;) {
    got = sys4(SYS_wait4, child, 0, WNOHANG | __WALL, 0);
    if ((got && got != -EINTR) || now_ms() > end) return g.outcome;
    wait.tv_sec = 0, wait.tv_nsec = 200000;
    sys2(SYS_nanosleep, (long)&wait, 0);
  }
}

CODE const char *answer(char kind) {
  size_t at = 0;
  while (at < g.answered) {
    if (g.answer[at] == kind) return g.answer + at + 1;
    at += len(g.answer + at) + 1;
  }
  return 0;
}

/* ---- gathering ------------------------------------------------------------------------------------------------------------ */

CODE void real_name(const char *path, char (*real)[PATH_MAX]) {
  char *to = *real;
  int hops;
  keep(real, path);
  for (hops = 0; hops < 16 && read_link(to, &g.scratch) > 0; hops++) {
    char *base = g.scratch[0] == '/' ? to : to + (base_name(to) - to);
    cut(base, (size_t)(to + PATH_MAX - base), g.scratch);
  }
}

CODE uint32_t plausible(uint32_t packed) { return packed >> 16 && packed >> 16 < 100 ? packed : 0; }

/* Reads what the file of an inner library says of itself. */
CODE void read_part(struct part *p, const char *path) {
  struct elf e;
  p->known = p->present = 1;
  p->version = 0;
  cut(p->path, sizeof p->path, path);
  if (p->symbol[0] && elf_open(&e, path) > 0) {
    p->version = plausible(elf_word(&e, p->symbol));
    close_file(e.fd);
  }
}

/* cuDNN tries its own full version, then the shorter ones, each over the whole search path. */
CODE int find_part(const struct cudnn *c, struct part *p, const struct image *of, char *to) {
  char name[160];
  const char *dot = find_text(p->file, ".so");
  int numbers;
  for (numbers = 3; numbers >= 2 && c->by_name && dot; numbers--) {
    size_t n = (size_t)(dot - p->file) + 3;
    memcpy(name, p->file, n);
    format(name + n, sizeof name - n, numbers == 3 ? ".%v" : ".%x", numbers == 3 ? c->by_name : c->by_name >> 8);
    if (search(name, of, to, 0) == 1) return 1;
  }
  return search(p->file, of, to, 0);
}

/* Fills in what the files of the cuDNN at c->path say. */
CODE void read_cudnn(struct cudnn *c, const struct note *n) {
  struct elf e;
  struct image of;
  char path[PATH_MAX], own[TEXT];
  uint32_t i;
  c->state = FOUND;
  c->parts = 0;
  c->version = 0;
  c->from = 0;
  real_name(c->path, &path);
  c->by_name = version_in_name(base_name(path));
  of.name = c->path, of.rpath = of.runpath = 0;
  if (elf_open(&e, c->path) > 0) {
    /* Found as libcudnn.so, or by a link that says another major than the file. */
    if (elf_string(&e, DT_SONAME, own, sizeof own) && major_in_name(own)) cut(c->soname, TEXT, own);
    of.rpath = elf_string(&e, DT_RPATH, g.rpath, sizeof g.rpath);
    of.runpath = elf_string(&e, DT_RUNPATH, g.runpath, sizeof g.runpath);
    close_file(e.fd);
  }
  for (i = 0; i < note_rows(n) && c->parts < MAX_INNER; i++) {
    const unsigned char *row = note_row(n, i);
    struct part *p = &c->part[c->parts];
    const char *suffix;
    if (u16(row) != ROW_INNER || !note_text(n, row + 24, &p->file) || !note_text(n, row + 28, &p->symbol))
      continue;
    suffix = find_text(p->file, ".so"); /* the parts of another major are not this one's */
    if (suffix && find_text(c->soname, ".so.") && !same(suffix, find_text(c->soname, ".so"))) continue;
    p->needed = u16(row + 2) & 1;
    p->present = 0;
    p->version = 0;
    p->path[0] = 0;
    if (is_loaded(p->file, &path, 0) || find_part(c, p, &of, path)) read_part(p, path);
    else p->known = !shut;
    c->parts++;
  }
}

CODE void settle_version(struct cudnn *c) {
  int k;
  c->version = 0;
  c->by = 0;
  for (k = 0; k < c->parts && !c->version; k++)
    if (c->part[k].known && c->part[k].version) c->version = c->part[k].version, c->by = c->part[k].path, c->from = "its inner library";
  if (!c->version && c->by_name) c->version = c->by_name, c->from = "its file's name";
  if (!c->version && c->answered) c->version = (uint32_t)c->answered, c->from = "its own answer";
}

/* Level 0: which cuDNN this file has, or would get. */
APART void look(struct cudnn *c, const struct note *n, const unsigned char *row, int late) {
  uint32_t flags = u16(row + 2);
  const char *needed = image_needs(&n->image, CUDNN_STEM), *names = c->names;
  int found = 0, is = 0, broken = 0;
  shut = 0;
  c->state = UNKNOWN;
  c->answered = c->parts = 0;
  c->version = c->by_name = 0;
  c->path[0] = c->why[0] = 0;
  note_text(n, row + 24, &c->soname);
  if (!note_text(n, row + 32, &c->names) || !c->names[0]) cut(c->names, TEXT, c->soname);
  if ((flags & STATIC) && !(flags & LINKED)) {
    c->state = INSIDE;
    return;
  }
  if (needed && is_loaded(needed, &c->path, 0)) {
    found = 1;
    cut(c->soname, TEXT, needed);
  } else {
    /* As dlopen would for each: what is loaded by that name, else what the search finds; where it cannot be opened, the next. */
    while (!found && is != 1 && (names = next_name(names, c->soname))) {
      found = is_loaded(c->soname, &c->path, 0);
      if (!found && (flags & DLOPENED)) is = search(c->soname, &n->image, c->path, c->why), broken |= is < 0;
    }
  }
  if (found) {
    if (search(c->soname, &n->image, g.scratch, c->why) != 1 || !same(g.scratch, c->path))
      cut(c->why, WHY, "another library, LD_PRELOAD or its full path");
  } else if (flags & DLOPENED) {
    if (is == 1) found = 1;
    else if (broken) return;
    else if (!shut) c->state = ABSENT;
    /* Once the program has run, the only cuDNN in the process is the one it took, where its own is not to be had. */
    if (!found && late && is_loaded(0, &c->path, &c->soname)) {
      found = 1;
      cut(c->why, WHY, "the program itself");
    }
  }
  if (found) {
    read_cudnn(c, n);
    settle_version(c);
  }
}

/* Level 1 over what level 0 found: the files that the real cuDNN really takes, and its own answer. */
CODE void ask_and_look(struct cudnn *c, const struct note *n, const unsigned char *row) {
  const char *said;
  char path[PATH_MAX], name[PATH_MAX];
  int k, outcome, loaded = is_loaded(c->soname, &path, 0);
  keep(&name, !loaded && (n->own || c->state == ABSENT) ? c->names : c->path);
  outcome = ask(name, c);
  g.level = 1;
  said = answer('L');
  if (c->state == ABSENT) {
    if (!answer('N')) c->state = UNKNOWN;
    if (!said) return;
  }
  if (answer('N') && !loaded && (u16(row + 2) & DLOPENED)) {
    c->state = ABSENT; /* it cannot be loaded, so the program will go without it */
    return;
  }
  if (said && !same(said, c->path)) {
    keep(&c->path, said);
    cut(c->why, WHY, "the loader");
    c->state = FOUND;
    read_cudnn(c, n);
  }
  if ((said = answer('V'))) {
    long v = number(&said, 999999999);
    c->answered = v > 0 ? (int)version_of_answer((uint64_t)v) : 0;
  }
  for (k = 0; k < c->parts; k++) {
    struct part *p = &c->part[k];
    if ((said = answer((char)('0' + k)))) {
      if (!p->present || !starts(said, p->path)) read_part(p, said);
    } else if (!p->present && p->needed && (c->answered || outcome != DIED)) {
      p->known = 0; /* it answers without that library, or there was nobody to ask */
    }
  }
  settle_version(c);
}

/* ---- driver and GPU: what can be seen of them without asking the driver ------------------------------------------------- */

/* PCI device ids of NVIDIA's GPUs, first and last, and their compute capability. Used to accept only: any other id is a
 * doubt. */
static const struct {
  uint16_t first;
  uint8_t more, cc; /* how many ids follow the first; 0x75: 7.5 */
} TIGHT pci[] = {
    {0x0fc0, 0x3f, 0x30}, {0x1000, 0x24, 0x35}, {0x1026, 0x04, 0x35}, {0x102d, 0x00, 0x37}, {0x102e, 0x01, 0x35}, {0x103a, 0x00, 0x35},
    {0x103c, 0x00, 0x35}, {0x103f, 0x00, 0x35}, {0x1180, 0x7f, 0x30}, {0x1280, 0x3f, 0x35}, {0x1300, 0x1f, 0x35}, {0x1340, 0x5f, 0x50},
    {0x13ad, 0x01, 0x52}, {0x13b0, 0x04, 0x50}, {0x13b6, 0x00, 0x50}, {0x13b9, 0x04, 0x50}, {0x13be, 0x81, 0x52}, {0x15c0, 0x3f, 0x60},
    {0x1600, 0x1f, 0x52}, {0x1660, 0x1f, 0x52}, {0x1720, 0x1f, 0x60}, {0x1740, 0x1f, 0x50}, {0x1780, 0x1f, 0x50}, {0x17c0, 0x3f, 0x52},
    {0x1b00, 0x3f, 0x61}, {0x1b60, 0xdf, 0x61}, {0x1c60, 0xff, 0x61}, {0x1d80, 0x7f, 0x70}, {0x1e00, 0x3f, 0x75}, {0x1e60, 0xff, 0x75},
    {0x1f60, 0x9f, 0x75}, {0x2080, 0x7f, 0x80}, {0x2180, 0x5f, 0x75}, {0x2200, 0x3f, 0x86}, {0x2300, 0x7f, 0x90}, {0x23a0, 0x1f, 0x90},
    {0x23e0, 0x1f, 0x90}, {0x2400, 0x3f, 0x86}, {0x2460, 0xff, 0x86}, {0x2560, 0x5f, 0x86}, {0x25e0, 0x1f, 0x86}, {0x2680, 0x3f, 0x89},
    {0x26e0, 0xdf, 0x89}, {0x27e0, 0x5f, 0x89}, {0x2860, 0x5f, 0x89}, {0x28e0, 0x1f, 0x89}, {0x2900, 0xff, 0xa0}, {0x2b00, 0x1f, 0xb0},
    {0x2b80, 0x3f, 0xc0}, {0x2c00, 0x1f, 0xc0}, {0x2c31, 0x00, 0xc0}, {0x2c33, 0x01, 0xc0}, {0x2c38, 0x02, 0xc0}, {0x2c40, 0x3f, 0xc0},
    {0x2d00, 0x1f, 0xc0}, {0x2d30, 0x00, 0xc0}, {0x2d39, 0x00, 0xc0}, {0x2d40, 0xbf, 0xc0}, {0x2e00, 0x3f, 0xc1}, {0x2f00, 0x5f, 0xc0},
    {0x3180, 0x7f, 0xa3}, {0x3400, 0x1f, 0xb0},
};

APART uint16_t cc_of(const char *id) {
  uint32_t n = 0;
  size_t i;
  if (starts(id, "0x"))
    for (id += 2; *id && n <= 0xffff; id++) {
      int digit = *id >= '0' && *id <= '9' ? *id - '0' : *id >= 'a' && *id <= 'f' ? *id - 'a' + 10 : -1;
      if (digit < 0) break;
      n = n << 4 | (uint32_t)digit;
    }
  for (i = 0; i < sizeof pci / sizeof pci[0]; i++)
    if (n - pci[i].first <= pci[i].more) return (uint16_t)(pci[i].cc >> 4 << 8 | (pci[i].cc & 15));
  return 0;
}

/* A release as the rows pack it: its numbers may be larger in what is found, 535.261.03, and are kept wider. */
CODE uint32_t widen(uint32_t packed) { return packed >> 16 << 20 | (packed & 0xffff); }

/* The first `535.261.03` or `535.261` of a text. No driver of a branch below 100 has what CUDA needs today. */
CODE uint32_t release_in(const char *s) {
  uint32_t n[3];
  return numbers_in(s, 100, n) ? n[0] << 20 | n[1] << 8 | (n[2] & 0xff) : 0;
}

CODE long read_text(const char *path, char *to, size_t size) {
  long fd = open_file(path, O_RDONLY), n = -1;
  if (fd >= 0) {
    n = sys3(SYS_read, fd, (long)to, (long)size - 1);
    close_file(fd);
  }
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

APART int is_there(const char *path, int mode) { return looked(sys3(SYS_faccessat, AT_FDCWD, (long)path, mode)) == 0; }

#define GPUS "/proc/driver/nvidia/gpus"

/* The GPUs that the kernel module drives and this process may open. Where not one can be opened, the driver may yet make
 * their nodes. Opening one here would wake it: the right to do so must be enough. */
CODE void count_gpus(struct driver *d) {
  char entries[2048] __attribute__((aligned(8))), path[300], text[1024];
  const char *list = secure_getenv("CUDA_VISIBLE_DEVICES"), *s;
  int n = 0;
  long fd, got = 0, at;
  if (list && (!*list || same(list, "-1"))) {
    d->gpus = 0;
    return;
  }
  fd = open_file(GPUS, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  while (n >= 0 && (got = sys3(SYS_getdents64, fd, (long)entries, sizeof entries)) > 0)
    for (at = 0; n >= 0 && at < got; at += *(const unsigned short *)(entries + at + 16)) {
      const char *name = entries + at + 19;
      if (name[0] == '.') continue;
      format(path, sizeof path, GPUS "/%s/information", name);
      if (n >= MAX_GPUS || !read_text(path, text, sizeof text) || !(s = find_text(text, "Device Minor:"))) {
        n = -1;
        break;
      }
      for (s += 13; *s == ' ' || *s == '\t';) s++;
      format(path, sizeof path, "/dev/nvidia%n", (uint32_t)number(&s, 9999));
      if (!is_there(path, R_OK | W_OK)) continue;
      format(path, sizeof path, "/sys/bus/pci/devices/%s/device", name);
      read_text(path, text, sizeof text);
      d->cc[n++] = cc_of(text);
    }
  close_file(fd);
  if (list) {
    d->strict = 2;
    at = number(&list, 9999);
    if (at < 0 || at >= n || (*list && *list != ',')) return; /* UUIDs, MIG, mistakes: the driver knows */
  }
  if (n > 0) d->gpus = n;
}

APART void look_at_driver(const struct note *n) {
  struct driver *d = (struct driver *)at(&g.driver);
  char text[512], path[PATH_MAX];
  int k, there;
  d->state = ABSENT, d->strict = 1, d->init = d->gpus = -1;
  d->user = d->kernel = d->cuda = 0;
  d->path[0] = 0;
  d->jit = 0;
  shut = 0;
  there = read_text("/proc/driver/nvidia/version", text, sizeof text) != 0;
  if (there) d->kernel = release_in(text);
  /* /dev/nvidiactl alone proves nothing: libcuda makes it where it runs as root. */
  for (k = 0; k < 16 && !there; k++) {
    format(path, sizeof path, "/dev/nvidia%n", (uint32_t)k);
    there = is_there(path, F_OK);
  }
  /* WSL2; Jetson. */
  there = there || is_there("/dev/dxg", F_OK) || is_there("/dev/nvmap", F_OK) || is_there("/dev/nvhost-ctrl", F_OK);
  if (there || shut) d->state = UNKNOWN;
  if (!there) return;
  g.by_name = 1;
  there = is_loaded(LIBCUDA, &d->path, 0) || search(LIBCUDA, &n->image, d->path, 0);
  g.by_name = 0;
  if (!there) return;
  real_name(d->path, &path);
  d->user = release_in(base_name(path));
  d->state = FOUND;
  count_gpus(d);
}

/* Level 1: what the real driver answers. It honours every variable, and knows MIG, WSL, Jetson and cuda-compat. */
CODE void ask_the_driver(void) {
  struct driver *d = (struct driver *)at(&g.told);
  const char *said;
  g.level = 1;
  if (!g.driver_asked++) {
    *d = g.driver;
    d->strict = 0, d->state = UNKNOWN, d->init = d->gpus = -1;
    if (ask(LIBCUDA, 0) == ANSWERED) {
      if (answer('N')) d->state = ABSENT;
      if ((said = answer('I'))) {
        d->state = FOUND;
        if ((d->init = (int)number(&said, 99999))) d->gpus = g.driver.gpus; /* whatever it answers, they stand there */
        if ((said = answer('V'))) d->cuda = (uint32_t)number(&said, 999999);
        if ((said = answer('L'))) {
          keep(&d->path, said);
          real_name(said, &g.real);
          d->user = release_in(base_name(g.real));
        }
        if ((said = answer('G'))) {
          for (d->gpus = 0; *said && d->gpus < MAX_GPUS; said += *said != 0) d->cc[d->gpus++] = (uint16_t)number(&said, 65535);
          if (!d->jit) d->jit = answer('J') || !d->user ? 1 : -1; /* on WSL and Jetson, their libcuda knows where it is */
        }
      }
    }
  }
  g.driver = *d;
}

/* ---- judging: the same intervals as the judge in Rust (guard-core/src/judge/run.rs), proven equal by one table ------ */

/* Its name and version. */
CODE void component(const struct note *n, char *to, size_t size) {
  char name[TEXT], version[TEXT];
  if (n->state == NOTE_DAMAGED) return;
  note_text(n, n->d + 28, &name);
  note_text(n, n->d + 32, &version);
  format(to, size, "%p %p", name, version);
}

CODE struct finding *find(int code, int severity) {
  static struct finding overflow;
  struct finding *f = g.findings < MAX_FINDINGS ? &g.finding[g.findings++] : &overflow;
  memset(f, 0, sizeof *f);
  f->code = code, f->severity = severity, f->note = g.now;
  component(&g.note[g.now], f->component, sizeof f->component);
  return f;
}

CODE struct finding *find_cudnn(int code, int severity, const struct cudnn *c, const unsigned char *row) {
  struct finding *f = find(code, severity);
  const char *by, *path;
  f->min = u32(row + 4), f->built = u32(row + 12), f->found = c->version;
  show(f->path, sizeof f->path, c->path);
  for (by = c->by, path = c->path; by && *by && *by == *path;) by++, path++;
  if (by && (base_name(by) != by || base_name(path) != path)) show(f->beside, sizeof f->beside, c->by);
  cut(f->why, sizeof f->why, c->why);
  cut(f->file, sizeof f->file, c->soname);
  return f;
}

CODE void judge_cudnn(const struct cudnn *c, const unsigned char *row) {
  uint32_t flags = u16(row + 2), min = u32(row + 4), below = u32(row + 8), built = u32(row + 12), major, k;
  int missing = 0;
  if ((flags & PATCH) && built > min) min = built;
  if (c->state == INSIDE) return;
  if (c->state == ABSENT) {
    if (flags & DLOPENED) find_cudnn(205, flags & REQUIRED ? ERROR : INFO, c, row);
    return;
  }
  if (c->state == UNKNOWN) {
    find_cudnn(501, INFO, c, row);
    return;
  }
  major = c->version ? c->version >> 16 : major_in_name(c->soname);
  if (major && major != built >> 16) {
    find_cudnn(201, ERROR, c, row);
    return;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) missing |= c->part[k].known && !c->part[k].present && c->part[k].needed;
  if (!c->version) {
    if (!missing) find_cudnn(501, INFO, c, row);
  } else if (c->version < min) {
    struct finding *f = find_cudnn(c->version >> 8 == built >> 8 ? 203 : 202, ERROR, c, row);
    f->min = min;
  } else if (c->version >= below) {
    find_cudnn(201, ERROR, c, row);
    return;
  }
  if (c->version && c->by_name && c->by_name != c->version) {
    struct finding *f = find_cudnn(206, c->by_name >> 8 == c->version >> 8 ? WARNING : ERROR, c, row);
    f->other = c->by_name;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) {
    const struct part *p = &c->part[k];
    struct finding *f = 0;
    if (p->known && !p->present) f = find_cudnn(204, p->needed ? ERROR : WARNING, c, row);
    else if (p->known && p->version && c->version && p->version != c->version)
      f = find_cudnn(206, p->version >> 8 == c->version >> 8 ? WARNING : ERROR, c, row);
    if (!f) continue;
    f->other = p->version;
    cut(f->file, sizeof f->file, p->file);
    show(f->beside, sizeof f->beside, p->path);
  }
}

CODE int errors_from(int first) {
  int k, n = 0;
  for (k = first; k < g.findings; k++) n += g.finding[k].severity == ERROR;
  return n;
}

CODE uint64_t gpus_of(const unsigned char *row);

CODE struct finding *find_driver(int code, int severity, const unsigned char *row) {
  struct finding *f = find(code, severity);
  const struct driver *d = (struct driver *)at(&g.driver);
  uint64_t here = row ? gpus_of(row) : ~(uint64_t)0;
  struct text t;
  char text[TEXT];
  int k;
  if (d->state == FOUND)
    format(f->driver, sizeof f->driver, "driver< %r>< that supports CUDA %c>< on kernel module %r> in %p", d->user, d->cuda, d->kernel == d->user ? 0 : d->kernel, d->path);
  if (row) {
    f->found = g.note[g.now].cudnn;
    if (u16(row) != ROW_CUDNN) f->min = u32(row + 16), f->other = widen(u32(row + 20));
    if (note_text(&g.note[g.now], row + (code == 303 ? 28 : 24), &text)) show(f->file, sizeof f->file, text);
  }
  t.at = f->beside, t.used = 0, t.size = sizeof f->beside;
  for (k = 0; k < d->gpus; k++)
    if (here >> k & 1) putf(&t, t.used ? "<, %x>" : "<compute capability %x>", (uint32_t)d->cc[k]);
  return f;
}

enum { FITS, OPEN }; /* or the number of a finding */

/* A row's floor. What the driver says it supports decides; its release stands in where that is not known, and the kernel
 * module's only to accept. */
CODE int floor_of(const unsigned char *row, int too_old) {
  const struct driver *d = (struct driver *)at(&g.driver);
  uint32_t cuda = u32(row + 16), release = widen(u32(row + 20));
  if (!cuda && !release) return FITS;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : FITS;
  if (release && d->user) return d->user < release ? too_old : FITS;
  return release && d->kernel >= release ? FITS : OPEN;
}

CODE int is_one(const char *name) { return same(variable(name), "1"); }

/* Whether PTX can be compiled here: what is not found at level 0 is a doubt. */
CODE int find_jit(void) {
  struct driver *d = (struct driver *)at(&g.driver);
  if (!d->jit) d->jit = driver_has(LIBJIT);
  return d->jit > 0 ? FITS : d->jit < 0 ? 309 : OPEN;
}

CODE int served(const struct note *n, const unsigned char *row) {
  uint32_t by = u16(row + 2);
  int old = floor_of(row, 302);
  int sure = old != FITS ? old : floor_of(row + 16, OPEN); /* what older drivers make of its machine code is in no document */
  if ((by & (BY_CUBIN | BY_SOME)) && is_one("CUDA_FORCE_PTX_JIT")) return by & NO_PTX ? 315 : OPEN; /* which PTX it is, no row says */
  if (by & BY_CUBIN) return sure;
  if ((by & BY_PTX) && is_one("CUDA_DISABLE_PTX_JIT")) return 308;
  if (by & BY_PTX) return old != FITS ? old : find_jit();
  if (by & BY_SOME) return n->d[25] == 1 ? 311 : sure == FITS ? FITS : OPEN;
  return by & BY_NONE ? 303 : OPEN;
}

/* The GPUs that a row is about: those of its interval, or those that the cuDNN found has left behind. */
CODE uint64_t gpus_of(const unsigned char *row) {
  const struct driver *d = (const struct driver *)at(&g.driver);
  uint32_t kind = u16(row), from = 1, to = 0xffff;
  uint64_t gpus = 0;
  int k;
  if (kind == ROW_GPU) from = u32(row + 4), to = u32(row + 8);
  if (kind == ROW_CUDNN) to = g.note[g.now].cudnn >= u32(row + 16) && u32(row + 20) ? u32(row + 20) - 1 : 0;
  for (k = 0; k < d->gpus; k++)
    if (d->cc[k] && d->cc[k] >= from && d->cc[k] <= to) gpus |= (uint64_t)1 << k;
  return gpus;
}

/* `asks`: whether it asks anything of driver and GPU, but that the GPU is not too old for cuDNN. */
CODE void judge_driver(int asks) {
  struct note *n = &g.note[g.now];
  const struct driver *d = (const struct driver *)at(&g.driver);
  int required = n->d[21] == GPU_REQUIRED, certain = 1, open, pass, nothing = 0;
  uint64_t all = d->gpus > 0 ? ~(uint64_t)0 >> (64 - d->gpus) : 0, fit = 0, unfit = 0, kernels = 0;
  uint32_t i;
  n->not_unfit = 0;
  if (d->init == 34 && (d->gpus > 0 || required)) nothing = 306; /* one that builds and has no GPU may have it */
  else if (d->init == 803) nothing = 304;
  else if (d->init == 804) nothing = 305;
  else if (d->state == ABSENT || d->init == 34 || d->init == 100 || (d->init <= 0 && d->gpus == 0))
    certain = required, nothing = !required ? 504 : d->state == ABSENT ? 307 : 310;
  else if (d->init > 0 || d->state == UNKNOWN) certain = 0, nothing = 505;
  if (nothing) {
    if (asks) find_driver(nothing, certain ? ERROR : INFO, 0);
    return;
  }
  open = d->gpus < 0 || (d->init < 0 && d->user && d->kernel && d->user != d->kernel) || (d->strict && (!d->user || !d->kernel));
  for (pass = 0; pass < 2; pass++)
    for (i = 0; i < note_rows(n); i++) {
      const unsigned char *row = note_row(n, i);
      uint32_t kind = u16(row);
      uint64_t here = gpus_of(row);
      int is = 313;
      if (kind == ROW_DRIVER) {
        is = floor_of(row, 301);
        if (is == OPEN) open = 1;
        else if (is && pass) find_driver(is, ERROR, row);
      }
      if (kind == ROW_GPU) kernels = all;
      if (!here || (kind != ROW_GPU && kind != ROW_CUDNN)) continue;
      if (kind == ROW_GPU) is = served(n, row);
      if (is == FITS) fit |= here;
      if (is <= OPEN) continue;
      unfit |= here;
      if (pass) find_driver(is, all & ~unfit ? INFO : ERROR, row);
    }
  n->not_unfit = kernels & ~unfit;
  fit &= ~unfit;
  if ((n->not_unfit && !fit) || (d->strict && (unfit || kernels & ~fit))) open = 1;
  if (open && (asks || unfit)) find_driver(505, INFO, 0);
}

/* A shared libcudart of an older minor than built with: by its file's name, which in pip's packages does not say. */
CODE void judge_cudart(const unsigned char *row) {
  char soname[TEXT], path[PATH_MAX];
  uint32_t version;
  struct finding *f;
  if (!note_text(&g.note[g.now], row + 28, &soname) || !*soname || !is_loaded(soname, &path, 0)) return;
  real_name(path, &g.real);
  version = version_in_name(base_name(g.real));
  if (version && version >> 8 >= u32(row + 12) >> 8) return;
  f = version ? find(314, WARNING) : find(507, INFO);
  f->built = u32(row + 12), f->found = version;
  show(f->path, sizeof f->path, path);
}

CODE int action(const struct note *n) {
  if (g.mode == MODE_WARN) return 0;
  return g.mode == MODE_ENFORCE || (n->size > 20 && n->d[20] == 1);
}

/* Whether this guard speaks for the note. A library keeps still unless it is told to end the process; and where it speaks,
 * it speaks for itself, before the program that needs it. */
CODE int speaks(const struct note *n) {
  int library = g.mode == MODE_WARN || g.mode == MODE_ENFORCE || (n->size > 22 && n->d[22] == 1);
  return g.program ? n->own || !library : n->own && library;
}

CODE void judge_note(int level, int late) {
  struct note *n = &g.note[g.now];
  struct cudnn *c = &g.cudnn[g.seen];
  int asks = n->d[21] == GPU_REQUIRED, wants = 0;
  uint32_t i;
  if (n->state == NOTE_DAMAGED) {
    find(503, INFO);
    return;
  }
  if (n->state == NOTE_NEWER) find(502, INFO);
  for (i = 0; i < note_rows(n); i++) {
    const unsigned char *row = note_row(n, i);
    int before = g.findings, k;
    if (u16(row) == ROW_DRIVER) judge_cudart(row);
    if (u16(row) == ROW_DRIVER || u16(row) == ROW_GPU) asks = 1;
    if (u16(row) != ROW_CUDNN) continue;
    look(c, n, row, late);
    judge_cudnn(c, row);
    if (level && (errors_from(before) || (c->state == FOUND && !c->version))) {
      g.findings = before;
      ask_and_look(c, n, row);
      judge_cudnn(c, row);
    } else if (!level) {
      for (k = 0; k < c->parts; k++)
        if (c->part[k].needed && !c->part[k].present) c->part[k].known = 0;
      if (c->state == ABSENT && (u16(row + 2) & REQUIRED)) c->state = UNKNOWN;
      g.findings = before;
      judge_cudnn(c, row);
    }
    if (c->state == INSIDE) c->version = u32(row + 12), c->from = "the build";
    c->note = g.now;
    n->cudnn = c->state == FOUND && c->version >> 16 == u32(row + 12) >> 16 ? c->version : 0;
    wants |= n->cudnn >= u32(row + 16) && u32(row + 20);
    if (g.seen < MAX_SEEN - 1 && (c->state == FOUND || c->state == INSIDE)) c = &g.cudnn[++g.seen];
  }
  if (wants || asks) {
    int before = g.findings;
    if (!g.driver_known++) look_at_driver(n);
    judge_driver(asks);
    if (!g.driver.strict || g.findings == before || g.finding[before].code == 504) return;
    g.findings = before;
    /* A program that can do without a GPU is not kept waiting: it asks by check(). */
    if (level && (late || n->d[21] != GPU_OPTIONAL)) {
      ask_the_driver();
      judge_driver(asks);
    } else if (asks) {
      find_driver(505, INFO, 0);
    }
  }
}

CODE int in_scope(const struct note *n) { return n->own || g.program; }

CODE void judge(int level, int late) {
  int k;
  struct finding *f;
  g.findings = g.seen = g.level = g.driver_known = 0;
  for (g.now = 0; g.now < g.notes; g.now++) judge_note(level && (late ? in_scope(&g.note[g.now]) : speaks(&g.note[g.now])), late);
  for (g.now = 0; g.now < g.notes; g.now++)
    for (k = g.now + 1; k < g.notes; k++) {
      uint64_t one = g.note[g.now].not_unfit, two = g.note[k].not_unfit;
      if (!one || !two || (one & two)) continue;
      f = find_driver(312, WARNING, 0);
      component(&g.note[k], f->file, sizeof f->file);
      return;
    }
}

CODE int cannot_tell(const struct finding *f) { return f->code == 501 || f->code == 504 || f->code == 505; }

CODE int overall(void) {
  int k, v = RIGHT;
  for (k = 0; k < g.findings; k++) {
    if (!in_scope(&g.note[g.finding[k].note])) continue;
    if (g.finding[k].severity == ERROR) return WRONG;
    if (cannot_tell(&g.finding[k])) v = CANNOT_TELL;
  }
  return v;
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

CODE int about_driver(const struct finding *f) { return f->code / 100 == 3 || f->code > 503; }

#define BUILT_WITH " than " cuDNN " %B, which " WAS_BUILT_WITH
#define NEWER WITH cuDNN " %M or newer"
#define OR_REBUILD "; or " REBUILD " against " THE "one found"
#define WHERE_GPUS START_A_CONTAINER "its GPUs (--gpus all)"
#define WITH_ARCH REBUILD WITH "that architecture"

/* What is wrong, what to do; empty where the next says it for both. */
#define WORDS(X) \
  X(201, cuDNN "< %F> is of another major" BUILT_WITH,                                                                     \
    INSTALL cuDNN " %N (%M or newer) where " THE "loader looks first" OR_REBUILD)                                             \
  X(202, cuDNN " %F is" OLDER BUILT_WITH, "")                                                                              \
  X(203, cuDNN " %F is an" OLDER " patch" BUILT_WITH, "%w" NEWER "%s" OR_REBUILD)                                             \
  X(204, cuDNN "'s library %L" IS_MISSING "%w", "re" INSTALL cuDNN " whole, so" THAT "all its libraries stand in one folder")       \
  X(205, "no " cuDNN " was found", INSTALL cuDNN " %M or newer, or name its folder in " LD_LIBRARY_PATH)                        \
  X(206, cuDNN " is mixed: %L is %O, " THE "rest %F", "remove " THE "stray copy, or re" INSTALL cuDNN " whole from one package")     \
  X(301, "", "")                                                                                                          \
  X(302, THE "" DRIVER " is too old: %L needs one" THAT "supports CUDA %U",                                                     \
    "update " THE "" DRIVER "< to %R or newer>; or " REBUILD WITH "an" OLDER " toolkit")                                               \
  X(304, "libcuda and " THE "kernel module do not belong together (803)",                                                    \
    "reboot after a " DRIVER "'s update; in a container, remove its own libcuda")                                             \
  X(305, "cuda-compat does not work" WITH "this GPU (804)",                                                                 \
    "take " THE "compat folder out of " LD_LIBRARY_PATH " and update " THE "" DRIVER ", or hide" THAT "GPU by " CUDA_ "VISIBLE_DEVICES")      \
  X(306, "this libcuda is " THE "stub" THAT "is for linking only (34)",                                                        \
    "take " THE "folder" WITH THE "stubs out of " LD_LIBRARY_PATH " and of RPATH")                                                 \
  X(307, "there is no libcuda.so.1, and " THE "program requires a GPU", INSTALL THE "NVIDIA " DRIVER "; " WHERE_GPUS)            \
  X(308, CUDA_ "DISABLE_PTX_JIT forbids what %G needs: %L", "unset " CUDA_ "DISABLE_PTX_JIT; or " WITH_ARCH)                   \
  X(309, LIBJIT IS_MISSING ", and %G needs it for %L (221)",                                                              \
    INSTALL THE "" DRIVER " whole; " START_A_CONTAINER "NVIDIA_DRIVER_CAPABILITIES=compute,utility; or " WITH_ARCH)         \
  X(310, "there is no GPU, and " THE "program requires one", "see nvidia-smi and " CUDA_ "VISIBLE_DEVICES; " WHERE_GPUS)         \
  X(303, "%C has no code for %G", "")                                                                                     \
  X(311, "only a part of " THE "code in %C is for %G", "")                                                                   \
  X(312, "no GPU is fit for both %C and %L", WITH_ARCH " among those built for")                                          \
  X(313, cuDNN " %F no longer works on %G", INSTALL "an" OLDER " " cuDNN THAT THE "program accepts; or run it on a newer GPU")   \
  X(315, "%C has no PTX for %G, and " CUDA_ "FORCE_PTX_JIT passes over all else", "unset " CUDA_ "FORCE_PTX_JIT")             \
  X(314, "libcudart %F in %P is" OLDER " than " THE "toolkit %B" THAT "" WAS_BUILT_WITH,                                        \
    "put " THE "libcudart built" WITH "first in " LD_LIBRARY_PATH ", or update it; or link it statically")                         \
  X(501, "%w", "nothing; its inner libraries should stand beside it")                                                     \
  X(502, THE "manifest is newer than " THE "guard: judged as far as it is known", "update cudaguard")          \
  X(503, "a manifest is damaged: left out", REBUILD " " THE "file")                                                           \
  X(504, "no GPU to be seen: nothing to judge", "")                                                                       \
  X(507, "cannot tell how old libcudart in %P is", "nothing")                                                             \
  X(505, "cannot tell whether " DRIVER " and GPU fit", "nothing")

static const uint16_t TIGHT codes[] = {
#define CODE_OF(code, what, hint) code,
    WORDS(CODE_OF)};
static const char TIGHT words[] =
#define WORDS_OF(code, what, hint) what "\0" hint "\0"
    WORDS(WORDS_OF);

CODE const char *words_of(const struct finding *f, int skip) {
  const char *s = words;
  int k;
  for (k = 0; codes[k] != f->code; k++) skip += 2;
  for (; skip-- || !*s; s += len(s) + 1)
    if (skip < 0) skip = 1;
  return s;
}

/* A finding as a program gets it that asks: in g.verdict, all but the verdict. Each fact stands on a line of its own. */
CODE void compose(const struct finding *f) {
  struct verdict *v = &g.verdict;
  struct text t;
  int driver = about_driver(f), first = starts(f->why, "LD_LIBRARY_PATH");
  v->code = f->code, v->severity = f->severity;
  format(v->subject, sizeof v->subject, f->code == 314 || f->code == 507 ? "cudart" : driver ? "driver" : f->code > 501 ? "manifest" : "cuDNN");
  cut(v->component, sizeof v->component, f->component);
  format(v->built, sizeof v->built, driver ? "<%c>" : "<%v>", driver ? f->min : f->built);
  format(v->found, sizeof v->found, driver ? "<%c>" : "<%v>", driver ? g.driver.cuda : f->found);
  t.of = f;
  t.at = v->message, t.used = 0, t.size = sizeof v->message;
  putf(&t, words_of(f, 0), f->code == 204 ? f->severity == ERROR ? ": " THE "first call would abort" : "" : f->path[0] ? "cannot tell which " cuDNN " this is" : "no " cuDNN " is loaded yet, so it cannot be told which");
  putf(&t, !driver ? "<\nbuilt with: " cuDNN " %B (%C)><\nfound:      " cuDNN "< %F> in %P<," WITH "%G>><\npicked by:  %W>"
                    : "<\nbuilt for:  %s><\nneeded by:  %C%E><\nfound:      %D><\nGPUs:       %G>",
       f->code == 303 ? f->file : "");
  t.at = v->hint, t.used = 0, t.size = sizeof v->hint;
  putf(&t, words_of(f, 1), first ? "take" THAT "folder out of " LD_LIBRARY_PATH ", or put one" : "update it, or put a folder in " LD_LIBRARY_PATH, first ? " first" : "");
}

/* One write: never mixed with what other processes write, and no signal where nobody reads. */
CODE void say(const char *text) {
  uint64_t pipe_only = (uint64_t)1 << (SIGPIPE - 1), before, pending;
  struct timespec now;
  now.tv_sec = now.tv_nsec = 0;
  sys2(SYS_rt_sigpending, (long)&pending, sizeof pending);
  sys4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_only, (long)&before, sizeof before);
  if (sys3(SYS_write, STDERR_FILENO, (long)text, (long)len(text)) == -EPIPE && !(pending & pipe_only))
    sys4(SYS_rt_sigtimedwait, (long)&pipe_only, 0, (long)&now, sizeof pipe_only);
  sys4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before);
}

static const char TIGHT names[][8] = {"runs", "refused", "unknown", "info", "warning", "error", "whole", "newer", "damaged"};

CODE void say_finding(const struct finding *f, int refuse) {
  char line[4096];
  compose(f);
  format(line, sizeof line, "cudaguard: %s[CG%n]: %i\n  what to do: %s\n%s", names[4 + refuse], (uint32_t)f->code, g.verdict.message,
         g.verdict.hint, refuse ? "  (CUDAGUARD=warn starts it all the same; CUDAGUARD_REPORT=FILE tells more)\n" : "");
  say(line);
}

/* ---- the report --------------------------------------------------------------------------------------------------------------- */

struct report {
  long fd;
  struct text t;
  char buffer[64 * 1024]; /* more than one component or finding takes */
};

CODE void flush(struct report *r) {
  size_t at = 0;
  while (at < r->t.used) {
    long n = sys3(SYS_write, r->fd, (long)(r->t.at + at), (long)(r->t.used - at));
    if (n == -EINTR) continue;
    if (n <= 0) break; /* a full disk is not the program's trouble */
    at += (size_t)n;
  }
  r->t.used = 0;
}

CODE void report_note(struct text *t, int note) {
  const struct note *n = &g.note[note];
  char name[TEXT], version[TEXT];
  uint32_t i;
  int k, skipped = 0;
  putf(t, "%s{\"file\":" KEY("note") "%j", note ? "," : "", file_of(&n->image),
       names[6 + n->state]);
  if (n->state != NOTE_DAMAGED) {
    note_text(n, n->d + 28, &name);
    note_text(n, n->d + 32, &version);
    putf(t, ",\"name\":" KEY("version") "%j", name, version);
    for (k = 0; k < g.seen; k++)
      if (g.cudnn[k].note == note) {
        putf(t, ",\"cudnn\":{\"path\":" KEY("picked_by") "%j<,\"version\":\"%v\",\"version_from\":%j>}", g.cudnn[k].path, g.cudnn[k].why,
             g.cudnn[k].version, g.cudnn[k].version ? g.cudnn[k].from : "");
        break;
      }
    put(t, ",\"not_judged\":[");
    for (i = 0; i < note_rows(n); i++) {
      uint32_t kind = u16(note_row(n, i));
      if (kind < ROW_CUDNN || kind > ROW_GPU) putf(t, "%s\"row of kind %n\"", skipped++ ? "," : "", kind);
    }
    put(t, "]");
  }
  put(t, "}");
}

CODE void leave_report(const char *done) {
  const char *path = variable("CUDAGUARD_REPORT");
  static struct report r;
  const struct verdict *v = &g.verdict;
  const struct driver *d = (const struct driver *)at(&g.driver);
  int k;
  if (!*path) return;
  r.fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (r.fd < 0) return;
  r.t.at = r.buffer, r.t.used = 0, r.t.size = sizeof r.buffer;
  k = overall();
  putf(&r.t, "{\"file\":" KEY("role") "%j,\"verdict\":" KEY("action") "%j,\"level\":%n,\"shim\":{\"revision\":1},\"components\":[", self(),
       g.program ? "program" : "library", names[k], done, (uint32_t)g.level);
  for (k = 0; k < g.notes; k++) flush(&r), report_note(&r.t, k);
  put(&r.t, "]");
  if (g.driver_known && d->state == FOUND) {
    putf(&r.t, ",\"driver\":{\"path\":%j<,\"user\":\"%r\"><,\"kernel\":\"%r\"><,\"cuda\":\"%c\">},\"gpus\":[", d->path, d->user, d->kernel, d->cuda);
    for (k = 0; k < d->gpus; k++)
      putf(&r.t, d->strict == 2 ? "%s{<\"cc\":\"%x\">}" : "%s{\"visible\":true<,\"cc\":\"%x\">}", k ? "," : "", (uint32_t)d->cc[k]);
    put(&r.t, "]");
  }
  put(&r.t, ",\"findings\":[");
  for (k = 0; k < g.findings; k++) {
    compose(&g.finding[k]);
    flush(&r);
    putf(&r.t, "%s{\"code\":\"CG%n\",\"severity\":" KEY("component") "%j,\"subject\":" KEY("message") "%j,\"hint\":%j}", k ? "," : "", (uint32_t)v->code,
         names[3 + v->severity], v->component, v->subject, v->message, v->hint);
  }
  put(&r.t, "]}\n");
  flush(&r);
  close_file(r.fd);
}

/* ---- the doors ---------------------------------------------------------------------------------------------------------------- */

CODE void prepare(int all) {
  static const char TIGHT modes[] = "off\0warn\0enforce\0"; /* from MODE_OFF on */
  struct walk w;
  const char *mode, *k = modes;
  w.all = all, w.index = w.noted = 0;
  g.notes = 0;
  if (!g.ready) {
    g.library_path = variable("LD_LIBRARY_PATH");
  }
  dl_iterate_phdr(on_image, &w);
  if (g.ready) return;
  g.ready = 1;
  g.startup = w.index;
  mode = variable("CUDAGUARD");
  if (!*mode) return;
  for (g.mode = MODE_OFF; *k; g.mode++, k += len(k) + 1)
    if (same(mode, k)) return;
  g.mode = MODE_MANIFEST;
  if (g.first_noted) {
    char line[SHOW + 100];
    format(line, sizeof line, "cudaguard: CUDAGUARD is none of off, warn, enforce, but %p: ignored\n", mode);
    say(line);
  }
}

/* The worst finding that this guard speaks for: a refusal before a warning. */
CODE const struct finding *worst(int *refuse) {
  const struct finding *f = 0;
  int k;
  *refuse = 0;
  for (k = 0; k < g.findings; k++) {
    const struct note *n = &g.note[g.finding[k].note];
    if (g.finding[k].severity != ERROR || !speaks(n) || *refuse) continue;
    if (about_driver(&g.finding[k]) && n->d[21] == GPU_OPTIONAL) continue;
    if (action(n)) *refuse = 1, f = &g.finding[k];
    else if (!f) f = &g.finding[k];
  }
  return f;
}

CODE void lock(void) {
  int pid = (int)sys1(SYS_getpid, 0), seen = 0;
  while (!__atomic_compare_exchange_n(&g.lock, &seen, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    if (seen != pid) continue; /* left locked by the process that this one was forked from: taken over */
    sys1(SYS_sched_yield, 0);
    seen = 0;
  }
}

CODE void unlock(void) { __atomic_store_n(&g.lock, 0, __ATOMIC_RELEASE); }

/* Completes the verdict, into g.verdict. */
CODE void complete(void) {
  struct verdict *v = &g.verdict;
  const char *why = "the guard is switched off by CUDAGUARD=off";
  int k, result = CANNOT_TELL;
  prepare(0);
  if (g.mode != MODE_OFF) {
    judge(1, 1);
    leave_report("checked");
    for (k = 0; k < g.notes && !in_scope(&g.note[k]); k++) continue;
    why = k == g.notes ? "this file has no manifest" : 0;
    if (!why) result = overall();
  }
  memset(v, 0, sizeof *v);
  if (why) format(v->message, sizeof v->message, why);
  for (k = 0; !why && k < g.findings; k++) {
    const struct finding *f = &g.finding[k];
    if (!in_scope(&g.note[f->note]) || (result == WRONG ? f->severity != ERROR : result == RIGHT || !cannot_tell(f))) continue;
    compose(f);
    break;
  }
  v->verdict = result, v->level = g.level;
}

#ifdef __cplusplus
extern "C" {
#endif

SHOWN int SHARED(check)(char *text, size_t size);
SHOWN int SHARED(verdict)(void *to);
SHOWN void SHARED(start)(void);

SHOWN int SHARED(check)(char *text, size_t size) {
  int result;
  lock();
  complete();
  result = g.verdict.verdict;
  if (text && size) format(text, size, "<[CG%n] >%s", (uint32_t)g.verdict.code, g.verdict.message);
  unlock();
  return result;
}

SHOWN int SHARED(verdict)(void *to) {
  int result;
  size_t size;
  memcpy(&size, to, sizeof size); /* what the caller knows of it: newer members are left out, older ones never move */
  if (size > sizeof g.verdict) size = sizeof g.verdict;
  lock();
  complete();
  result = g.verdict.verdict;
  if (size > sizeof size) memcpy((char *)to + sizeof size, (const char *)&g.verdict + sizeof size, size - sizeof size);
  unlock();
  return result;
}

SHOWN void SHARED(start)(void) {
  int refuse = 0;
  const struct finding *f;
  if (g.ready) return;
  lock();
  prepare(1);
  if (g.mode != MODE_OFF && g.notes) {
    judge(1, 0);
    f = worst(&refuse);
    leave_report(refuse ? "refuse" : f ? "warn" : "start");
    if (f) say_finding(f, refuse);
    if (refuse) leave(STATUS_REFUSED);
  }
  unlock();
}

#ifdef __cplusplus
}
#endif

/* Outside the section of the rest, so that a copy whose code was dropped keeps these few bytes and no more. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void cudaguard_r1_init(void) { SHARED(start)(); }

#endif
