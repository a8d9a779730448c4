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
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Before glibc 2.34 these live in libdl, and a static program has none: then there is nobody to ask, and no more. */
#pragma weak dlopen
#pragma weak dlsym

#define SHARED(name) cudaguard_r1_##name
/* Small whatever the build's own -O is: what runs once at the start gains nothing by being unrolled. */
#if defined(__clang__)
#define SMALL minsize, section(".text.cudaguard_r1")
#elif defined(__GNUC__) && __GNUC__ >= 12
#define SMALL optimize("Oz"), section(".text.cudaguard_r1")
#else
#define SMALL optimize("Os"), section(".text.cudaguard_r1")
#endif
#define SHOWN __attribute__((weak, used, visibility("hidden"), SMALL))
#define CODE static __attribute__((SMALL))

enum { RIGHT = 0, WRONG = 1, CANNOT_TELL = 2 };
enum { INFO, WARNING, ERROR };
enum { ROW_CUDNN = 1, ROW_INNER = 2, ROW_DRIVER = 3, ROW_GPU = 4 };
enum { LINKED = 1, DLOPENED = 2, STATIC = 4, PATCH = 8, REQUIRED = 16 };
enum { GPU_REQUIRED = 1, GPU_OPTIONAL = 2 };
enum { BY_CUBIN = 1, BY_PTX = 2, BY_SOME = 4, BY_NONE = 8 };
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
  SHOW = 400            /* of a path in words */
};

#if __SIZEOF_POINTER__ == 8
#define NATIVE_CLASS ELFCLASS64
#else
#define NATIVE_CLASS ELFCLASS32
#endif

/* ---- text, without the heap ---------------------------------------------------------------------------------------- */

struct text {
  char *at;
  size_t used, size;
};

CODE void put_bytes(struct text *t, const char *bytes, size_t n) {
  if (n > t->size - 1 - t->used) n = t->size - 1 - t->used;
  memcpy(t->at + t->used, bytes, n);
  t->used += n;
  t->at[t->used] = 0;
}

CODE void put(struct text *t, const char *s) { put_bytes(t, s, strlen(s)); }

/* What came from outside: cut where it is long, and never a second line or a terminal's command. */
CODE void put_shown(struct text *t, const char *s) {
  size_t n = strlen(s), i;
  if (n > SHOW) {
    put(t, "...");
    s += n - SHOW;
  }
  for (i = 0; s[i]; i++) {
    char c = (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
    put_bytes(t, &c, 1);
  }
}

CODE void put_number(struct text *t, uint32_t n) {
  char digits[10];
  size_t i = sizeof digits;
  do {
    digits[--i] = (char)('0' + n % 10);
    n /= 10;
  } while (n);
  put_bytes(t, digits + i, sizeof digits - i);
}

/* %s as it is, %p what came from outside, %n a number, %v a version, %r a driver's release, %c a CUDA version as the
 * driver says it, %x a compute capability. */
CODE void putf(struct text *t, const char *f, ...) {
  va_list more;
  va_start(more, f);
  for (; *f; f++) {
    uint32_t n, i;
    if (*f != '%') {
      put_bytes(t, f, 1);
      continue;
    }
    f++;
    if (*f == 's' || *f == 'p') {
      const char *s = va_arg(more, const char *);
      if (*f == 's') put(t, s);
      else put_shown(t, s);
      continue;
    }
    n = va_arg(more, uint32_t);
    if (*f == 'v') put_number(t, n >> 16), put(t, "."), n &= 0xffff;
    else if (*f == 'c') n = n / 1000 << 8 | n % 1000 / 10;
    else if (*f == 'r') {
      put_number(t, n >> 20);
      for (i = 0; i < (n & 0xff ? 2 : 1); i++) {
        uint32_t part = i ? n & 0xff : n >> 8 & 0xfff;
        put(t, part < 10 ? ".0" : "."), put_number(t, part);
      }
      continue;
    }
    if (*f != 'n') {
      put_number(t, n >> 8), put(t, ".");
      n &= 0xff;
    }
    put_number(t, n);
  }
  va_end(more);
}

CODE void put_version(struct text *t, uint32_t packed) { putf(t, "%v", packed); }

CODE int copy(char *to, size_t size, const char *from, size_t n) {
  if (n >= size) return 0;
  memcpy(to, from, n);
  to[n] = 0;
  return 1;
}

CODE int starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

CODE const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
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

/* libcudnn.so.9.10.2 -> that version; 0 where the name has no three numbers. */
CODE uint32_t version_in_name(const char *name) {
  long a, b, c;
  if (!starts(name, CUDNN_STEM ".")) return 0;
  name += sizeof CUDNN_STEM;
  if ((a = number(&name, 999)) < 0 || *name++ != '.') return 0;
  if ((b = number(&name, 255)) < 0 || *name++ != '.') return 0;
  if ((c = number(&name, 255)) < 0 || (*name && *name != '.')) return 0;
  return (uint32_t)(a << 16 | b << 8 | c);
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
  uint32_t v = (uint32_t)n;
  if (n < 1000 || n > 9999999) return 0;
  return v >= 90000 ? v / 10000 << 16 | v / 100 % 100 << 8 | v % 100 : v / 1000 << 16 | v / 100 % 10 << 8 | v % 100;
}

/* ---- loaded objects -------------------------------------------------------------------------------------------------- */

struct image {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name;
  const ElfW(Dyn) * dynamic;
  size_t entries;
  const char *soname, *rpath, *runpath; /* in the object's own string table, or null */
};

CODE const char *image_string(const struct image *im, ElfW(Sxword) tag, size_t *from) {
  const char *strings = 0, *s = 0;
  size_t size = 0, i;
  for (i = 0; i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++) {
    uintptr_t value = (uintptr_t)im->dynamic[i].d_un.d_val;
    if (im->dynamic[i].d_tag == DT_STRTAB) strings = (const char *)(value < im->base ? value + im->base : value); /* musl: as linked */
    if (im->dynamic[i].d_tag == DT_STRSZ) size = value;
  }
  for (i = *from; strings && !s && i < im->entries && im->dynamic[i].d_tag != DT_NULL; i++)
    if (im->dynamic[i].d_tag == tag && im->dynamic[i].d_un.d_val < size) s = strings + im->dynamic[i].d_un.d_val;
  *from = i;
  return s;
}

CODE void image_names(struct image *im) {
  size_t a = 0, b = 0, c = 0;
  int k;
  im->dynamic = 0;
  im->entries = 0;
  for (k = 0; k < im->n; k++)
    if (im->ph[k].p_type == PT_DYNAMIC) {
      im->dynamic = (const ElfW(Dyn) *)(im->base + im->ph[k].p_vaddr);
      im->entries = im->ph[k].p_memsz / sizeof *im->dynamic;
    }
  im->soname = image_string(im, DT_SONAME, &a);
  im->rpath = image_string(im, DT_RPATH, &b);
  im->runpath = image_string(im, DT_RUNPATH, &c);
}

/* The name by which it needs `stem`, or null. */
CODE const char *image_needs(const struct image *im, const char *stem) {
  size_t from = 0, n = strlen(stem);
  const char *needed;
  while ((needed = image_string(im, DT_NEEDED, &from))) {
    needed = base_name(needed);
    if (starts(needed, stem) && (!needed[n] || needed[n] == '.')) return needed;
  }
  return 0;
}

/* ---- notes ----------------------------------------------------------------------------------------------------------- */

enum { NOTE_WHOLE, NOTE_NEWER, NOTE_DAMAGED };

struct note {
  const unsigned char *d;
  uint32_t size;
  int state, own;
  struct image image;
};

CODE uint32_t u16(const unsigned char *p) { return (uint32_t)(p[0] | p[1] << 8); }
CODE uint32_t u32(const unsigned char *p) { return u16(p) | u16(p + 2) << 16; }

/* A text of the note; 0 where it points outside. */
CODE int note_text(const struct note *n, const unsigned char *ref, char *to, size_t size) {
  uint32_t at = u16(ref), length = u16(ref + 2);
  to[0] = 0;
  if (at > n->size || length > n->size - at) return 0;
  return copy(to, size, (const char *)n->d + at, length);
}

CODE uint32_t note_rows(const struct note *n) { return u16(n->d + 10); }
CODE const unsigned char *note_row(const struct note *n, uint32_t i) { return n->d + u16(n->d + 12) + i * u16(n->d + 14); }

CODE int note_judge_bytes(const struct note *n) {
  uint32_t revision, rows, start, size, i;
  char text[256];
  if (n->size < 44 || memcmp(n->d, "cudagrd", 8) != 0) return NOTE_DAMAGED;
  revision = u16(n->d + 8), rows = u16(n->d + 10), start = u16(n->d + 12), size = u16(n->d + 14);
  if (!revision || size < 40 || (rows && start < 20) || start > n->size || rows * size > n->size - start) return NOTE_DAMAGED;
  if (revision == 1 && (!note_text(n, n->d + 28, text, sizeof text) || !note_text(n, n->d + 32, text, sizeof text)))
    return NOTE_DAMAGED;
  for (i = 0; i < rows; i++) {
    const unsigned char *row = note_row(n, i);
    if (u16(row) >= ROW_CUDNN && u16(row) <= ROW_GPU)
      if (!note_text(n, row + 24, text, sizeof text) || !note_text(n, row + 28, text, sizeof text)) return NOTE_DAMAGED;
  }
  return revision == 1 ? NOTE_WHOLE : NOTE_NEWER;
}

/* ---- what was found ---------------------------------------------------------------------------------------------------- */

struct part {
  char file[128], symbol[128];
  int needed, known, present;
  uint32_t version;
  char path[SHOW + 1];
};

struct cudnn {
  int state, answered; /* answered: by the real cuDNN, in a child */
  char soname[128], path[PATH_MAX], why[SHOW + 160];
  uint32_t version, by_name;
  const char *from; /* where the version comes from, in words */
  struct part part[MAX_INNER];
  int parts;
};

/* Of this process: the rows ask for no more. Numbers are 0, `init` and `gpus` -1 where nobody knows. */
struct driver {
  int state;
  int strict;            /* level 0: which of the GPUs it will be is not known, so all must be fit */
  int init;              /* what cuInit answered */
  int gpus;              /* that the process sees */
  uint32_t user, kernel; /* releases, widened */
  uint32_t cuda;         /* that the driver supports, as cuDriverGetVersion says it */
  uint16_t cc[MAX_GPUS];
  char path[PATH_MAX];
};

struct finding {
  int code, severity, note, part;
  uint32_t min, built, found, other;
  char component[300], path[SHOW + 4], why[SHOW + 160], file[128], beside[SHOW + 4];
};

/* All that is large lives here and not on the stack of whoever calls check(). In .bss: no byte in the file. */
struct state {
  int lock; /* the process that holds it */
  int ready, program, secure, mode;
  int startup; /* how many objects the loader brought before `main` */
  struct image first;
  int first_noted; /* no guarded file stands before this one */
  int notes;
  struct note note[MAX_NOTES];
  int findings;
  struct finding finding[MAX_FINDINGS];
  struct cudnn cudnn;
  int driver_known, driver_asked;
  struct driver driver, told; /* told: by the real driver, in a child */
  int seen; /* of them in the report */
  struct {
    int note;
    uint32_t version;
    const char *from;
    char path[SHOW + 4], why[SHOW + 160];
  } seen_cudnn[8];
  char self[PATH_MAX], scratch[PATH_MAX];
  char rpath[4096], runpath[4096];
  const char *library_path;
  char asked[PATH_MAX], answer[8192];
  size_t answered;
  int outcome, level;
};
static struct state g;
static const char anchor = 0; /* stands in this very file: how it finds its own image */

/* Keeps the notes of an image, or only counts them. Looks for the mark at every 4 bytes: mold puts notes of both
 * alignments into one segment, where stepping from note to note by the segment's alignment goes astray. */
CODE int take_notes(struct image *im, int own, int keep) {
  static const unsigned char mark[16] = {1, 0, 0, 0, 'c', 'u', 'd', 'a', 'g', 'u', 'a', 'r', 'd', 0, 0, 0};
  int taken = 0, k;
  for (k = 0; k < im->n; k++) {
    const ElfW(Phdr) *ph = &im->ph[k];
    const unsigned char *p = (const unsigned char *)(im->base + ph->p_vaddr);
    size_t left = ph->p_memsz;
    if (ph->p_type != PT_NOTE || left > (64u << 20) || ph->p_filesz < left) continue;
    while (left >= 24) {
      size_t step = 4;
      if (u32(p) == 10 && memcmp(p + 8, mark, sizeof mark) == 0 && u32(p + 4) <= left - 24) {
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
  im.base = info->dlpi_addr, im.ph = info->dlpi_phdr, im.n = info->dlpi_phnum;
  im.name = !first && info->dlpi_name ? info->dlpi_name : ""; /* musl calls the program argv[0] */
  im.dynamic = 0, im.entries = 0;
  im.soname = im.rpath = im.runpath = 0;
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

CODE const char *self(void) {
  if (!g.self[0]) {
    ssize_t n = readlink("/proc/self/exe", g.self, sizeof g.self - 1);
    g.self[n > 0 ? n : 0] = 0;
    if (n <= 0) copy(g.self, sizeof g.self, "this program", 12);
  }
  return g.self;
}

CODE const char *file_of(const struct image *im) { return im->name[0] ? im->name : self(); }

/* ---- ELF files, by bounded reads: a file that shrinks while it is read is no signal --------------------------------- */

struct elf {
  int fd;
  ElfW(Ehdr) eh;
  ElfW(Phdr) ph[48];
  int n;
  ElfW(Addr) symbols, strings, hash, gnu_hash;
  size_t strings_size;
  int has[3];
  ElfW(Xword) name[3]; /* soname, rpath, runpath */
};

CODE int read_at(int fd, uint64_t at, void *to, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
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
  int k;
  unsigned i;
  e->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (e->fd < 0) return 0;
  if (!read_at(e->fd, 0, &e->eh, sizeof e->eh) || memcmp(e->eh.e_ident, ELFMAG, SELFMAG) != 0) goto broken;
  if (e->eh.e_ident[EI_CLASS] != NATIVE_CLASS) goto other;
#if defined(__x86_64__)
  if (e->eh.e_machine != EM_X86_64) goto other;
#elif defined(__aarch64__)
  if (e->eh.e_machine != EM_AARCH64) goto other;
#endif
  if (e->eh.e_phentsize != sizeof(ElfW(Phdr)) || !e->eh.e_phnum) goto broken;
  e->n = e->eh.e_phnum < 48 ? e->eh.e_phnum : 48;
  if (!read_at(e->fd, e->eh.e_phoff, e->ph, (size_t)e->n * sizeof e->ph[0])) goto broken;
  e->symbols = e->strings = e->hash = e->gnu_hash = 0;
  e->strings_size = 0;
  e->has[0] = e->has[1] = e->has[2] = 0;
  for (k = 0; k < e->n; k++) {
    ElfW(Dyn) d[16];
    uint64_t at = e->ph[k].p_offset, end = at + e->ph[k].p_filesz;
    int more = e->ph[k].p_type == PT_DYNAMIC, blocks = 64;
    while (more && blocks-- && at + sizeof d[0] <= end) {
      size_t block = end - at < sizeof d ? (size_t)(end - at) / sizeof d[0] : sizeof d / sizeof d[0];
      if (!read_at(e->fd, at, d, block * sizeof d[0])) goto broken;
      for (i = 0; i < block && more; i++) {
        ElfW(Addr) value = d[i].d_un.d_ptr;
        switch (d[i].d_tag) {
          case DT_NULL: more = 0; break;
          case DT_SYMTAB: e->symbols = value; break;
          case DT_STRTAB: e->strings = value; break;
          case DT_STRSZ: e->strings_size = (size_t)value; break;
          case DT_HASH: e->hash = value; break;
          case DT_GNU_HASH: e->gnu_hash = value; break;
          case DT_SONAME: e->name[0] = value, e->has[0] = 1; break;
          case DT_RPATH: e->name[1] = value, e->has[1] = 1; break;
          case DT_RUNPATH: e->name[2] = value, e->has[2] = 1; break;
          default: break;
        }
      }
      at += block * sizeof d[0];
    }
  }
  return 1;
broken:
  close(e->fd);
  return -1;
other:
  close(e->fd);
  return 0;
}

/* A string of the file's dynamic table; what is longer than `size` is cut at the last ':'. */
CODE int elf_string(const struct elf *e, int which, char *to, size_t size) {
  size_t want = size - 1;
  to[0] = 0;
  if (!e->has[which] || e->name[which] >= e->strings_size) return 0;
  if (want > e->strings_size - e->name[which]) want = e->strings_size - (size_t)e->name[which];
  if (!elf_read(e, e->strings + (ElfW(Addr))e->name[which], to, want)) return to[0] = 0, 0;
  to[want] = 0;
  return 1;
}

CODE int elf_symbol_is(const struct elf *e, uint32_t index, const char *name, size_t length, ElfW(Sym) * s) {
  char text[128];
  if (length >= sizeof text || !elf_read(e, e->symbols + index * sizeof *s, s, sizeof *s)) return 0;
  if (s->st_shndx == SHN_UNDEF || s->st_name >= e->strings_size) return 0;
  if (!elf_read(e, e->strings + s->st_name, text, length + 1)) return 0;
  return memcmp(text, name, length + 1) == 0;
}

/* The value of an exported 4-byte data object; 0 where there is none. */
CODE uint32_t elf_word(const struct elf *e, const char *name) {
  size_t length = strlen(name), i;
  ElfW(Sym) s;
  uint32_t head[4], h = 5381, at, c, value, steps, found = 0;
  if (!length || !e->symbols || !e->strings) return 0;
  if (e->gnu_hash && elf_read(e, e->gnu_hash, head, sizeof head) && head[0]) {
    ElfW(Addr) buckets = e->gnu_hash + 16 + (ElfW(Addr))head[2] * sizeof(ElfW(Addr)), chain = buckets + (ElfW(Addr))head[0] * 4;
    for (i = 0; i < length; i++) h = h * 33 + (unsigned char)name[i];
    if (!elf_read(e, buckets + (ElfW(Addr))(h % head[0]) * 4, &at, 4) || at < head[1]) return 0;
    for (steps = 0; steps < 4096 && !found; steps++, at++) {
      if (!elf_read(e, chain + (ElfW(Addr))(at - head[1]) * 4, &c, 4)) return 0;
      if ((c | 1) == (h | 1)) found = (uint32_t)elf_symbol_is(e, at, name, length, &s);
      if (c & 1) break;
    }
  } else if (e->hash && elf_read(e, e->hash, head, 8) && head[0]) {
    h = 0;
    for (i = 0; i < length; i++) {
      h = (h << 4) + (unsigned char)name[i];
      h ^= (h >> 24) & 0xf0;
      h &= 0x0fffffff;
    }
    if (!elf_read(e, e->hash + 8 + (ElfW(Addr))(h % head[0]) * 4, &at, 4)) return 0;
    for (steps = 0; steps < 4096 && at && !found; steps++) {
      found = (uint32_t)elf_symbol_is(e, at, name, length, &s);
      if (!found && !elf_read(e, e->hash + 8 + ((ElfW(Addr))head[0] + at) * 4, &at, 4)) return 0;
    }
  }
  if (!found || (s.st_size && s.st_size != 4) || !elf_read(e, s.st_value, &value, 4)) return 0;
  return value;
}

/* ---- the loader's search: LD_LIBRARY_PATH, RPATH, RUNPATH, the cache, the default folders ---------------------------- */

struct paths {
  const char *rpath, *runpath, *file;
};

/* One element of a path list, $ORIGIN replaced, joined with the file's name. */
CODE int join(char *to, const char *dir, size_t n, const char *file, const char *origin) {
  struct text t;
  size_t i = 0, tail;
  t.at = to, t.used = 0, t.size = PATH_MAX;
  while (i < n) {
    if (dir[i] == '$') {
      size_t skip = n - i >= 9 && strncmp(dir + i, "${ORIGIN}", 9) == 0 ? 9 : n - i >= 7 && strncmp(dir + i, "$ORIGIN", 7) == 0 ? 7 : 0;
      const char *slash = strrchr(origin, '/');
      if (!skip) return 0; /* $LIB, $PLATFORM: the child knows */
      if (slash) put_bytes(&t, origin, slash == origin ? 1 : (size_t)(slash - origin));
      else put(&t, ".");
      i += skip;
    } else {
      put_bytes(&t, dir + i, 1);
      i++;
    }
  }
  if (!t.used && n) return 0;
  if (t.used && to[t.used - 1] != '/') put(&t, "/");
  tail = strlen(file);
  if (t.used + tail + 1 >= t.size) return 0;
  put(&t, file);
  return 1;
}

/* In this list: 1 found, 0 go on, -1 the loader would stop here (`to` names the file). */
CODE int search_list(const char *list, const char *separators, const char *file, const char *origin, char *to, struct elf *e) {
  while (list && *list) {
    size_t n = strcspn(list, separators);
    if (join(to, list, n, file, origin)) {
      int is = elf_open(e, to);
      if (is > 0) close(e->fd);
      if (is) return is;
    }
    list += n;
    if (*list) list++;
  }
  return 0;
}

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
  size_t length = strlen(file), size, at = 0, i;
  int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC), found = 0;
  off_t end;
  const char *map;
  const struct head *h;
  const struct entry *en;
  if (fd < 0) return 0;
  end = lseek(fd, 0, SEEK_END);
  size = end > 0 && end < (64 << 20) ? (size_t)end : 0;
  map = size > sizeof *h ? (const char *)mmap(0, size, PROT_READ, MAP_PRIVATE, fd, 0) : (const char *)MAP_FAILED;
  close(fd);
  if (map == (const char *)MAP_FAILED) return 0;
  if (memcmp(map, "ld.so-1.7.0", 11) == 0) { /* the old table first, 12 bytes an entry */
    uint32_t old;
    memcpy(&old, map + 12, 4);
    at = old < size / 12 ? (16 + (size_t)old * 12 + 7) & ~(size_t)7 : size;
  }
  if (at + sizeof *h <= size && memcmp(map + at, "glibc-ld.so.cache1.1", 20) == 0) {
    h = (const struct head *)(map + at);
    en = (const struct entry *)(map + at + 48);
    for (i = 0; i < h->count && at + 48 + (i + 1) * sizeof *en <= size && !found; i++) {
      size_t key = at + en[i].key, value = at + en[i].value;
      if (en[i].flags != kind || en[i].hwcap || key >= size || value >= size) continue;
      if (size - key <= length || memcmp(map + key, file, length + 1) != 0) continue;
      found = copy(to, PATH_MAX, map + value, strnlen(map + value, size - value));
    }
  }
  munmap((void *)map, size);
  return found;
}

/* Where the loader would find `file` for the object of `of`: 1 and the path, 0 nowhere, -1 at a file it cannot read. */
CODE int search(const char *file, const struct paths *of, char *to, struct text *why) {
  static const char defaults[] =
#if defined(__x86_64__)
      "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
      "/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
      "/lib64:/usr/lib64:/lib:/usr/lib";
  struct elf e;
  int is;
  if (!of->runpath) {
    if ((is = search_list(of->rpath, ":", file, of->file, to, &e))) {
      put(why, "RPATH of "), put_shown(why, of->file);
      return is;
    }
    if (!g.first.runpath && g.first.rpath && (is = search_list(g.first.rpath, ":", file, self(), to, &e))) {
      put(why, "RPATH of "), put_shown(why, self());
      return is;
    }
  }
  if ((is = search_list(g.library_path, ":;", file, self(), to, &e))) {
    put(why, "LD_LIBRARY_PATH");
    return is;
  }
  if ((is = search_list(of->runpath, ":", file, of->file, to, &e))) {
    put(why, "RUNPATH of "), put_shown(why, of->file);
    return is;
  }
  if (in_cache(file, to) && (is = elf_open(&e, to))) {
    if (is > 0) close(e.fd);
    put(why, "the system's library cache (/etc/ld.so.cache)");
    return is;
  }
  if ((is = search_list(defaults, ":", file, "", to, &e))) put(why, "the system's library folders");
  return is;
}

/* ---- what is loaded already ---------------------------------------------------------------------------------------------- */

struct loaded {
  const char *name; /* soname or file name; null: any cuDNN loader library */
  char *path;
  char soname[128];
  int found, several;
};

CODE int on_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  struct loaded *l = (struct loaded *)data;
  struct image im;
  const char *base, *hit = 0;
  (void)size;
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  im.base = info->dlpi_addr, im.ph = info->dlpi_phdr, im.n = info->dlpi_phnum, im.name = info->dlpi_name;
  base = base_name(im.name);
  image_names(&im);
  if (l->name) {
    if (strcmp(base, l->name) == 0 || (im.soname && strcmp(im.soname, l->name) == 0)) hit = l->name;
  } else if (im.soname && major_in_name(im.soname)) {
    hit = im.soname;
  } else if (major_in_name(base) || strcmp(base, CUDNN_STEM) == 0) {
    hit = base;
  }
  if (!hit) return 0;
  if (l->found++) return l->several = 1;
  if (!copy(l->path, PATH_MAX, im.name, strlen(im.name)) || !copy(l->soname, sizeof l->soname, hit, strlen(hit))) l->found = 0;
  return l->name ? l->found : 0;
}

CODE int is_loaded(const char *name, char *path, char *soname, size_t size) {
  struct loaded l;
  memset(&l, 0, sizeof l);
  l.name = name, l.path = path;
  dl_iterate_phdr(on_loaded, &l);
  if (l.found != 1) return 0;
  if (soname) copy(soname, size, l.soname, strlen(l.soname));
  return 1;
}

/* ---- level 1: a child asks the real cuDNN, or the driver -------------------------------------------------------------------------------- */

enum { NOT_ASKED, NOBODY_TO_ASK, ANSWERED, DIED, HUNG };

#define LIBCUDA "libcuda.so.1"

CODE long since_ms(const struct timespec *from) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)(now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000;
}

CODE void say_back(int fd, char kind, const char *s) {
  char line[PATH_MAX + 8];
  struct text t;
  t.at = line, t.used = 0, t.size = sizeof line;
  put_bytes(&t, &kind, 1);
  put(&t, s);
  line[t.used++] = 0;
  if (write(fd, line, t.used) < 0) _exit(1);
}

CODE int function(void *library, const char *name, void *to) {
  void *symbol = dlsym(library, name);
  memcpy(to, &symbol, sizeof symbol);
  return symbol != 0;
}

/* What it says: V and the CUDA version, I and what cuInit answered, G and the compute capability of each GPU. Nothing where
 * this is no driver. */
CODE void ask_driver(int to, void *library) {
  int (*version)(int *), (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*attribute)(int *, int, int);
  char line[16 * MAX_GPUS];
  struct text t;
  int n = 0, k, device, major, minor;
  t.at = line, t.size = sizeof line;
  if (!function(library, "cuDriverGetVersion", &version) || !function(library, "cuInit", &init) ||
      !function(library, "cuDeviceGetCount", &count) || !function(library, "cuDeviceGet", &get) ||
      !function(library, "cuDeviceGetAttribute", &attribute))
    return;
  line[t.used = 0] = 0;
  if (version(&n) == 0) putf(&t, "%n", (uint32_t)n);
  say_back(to, 'V', line);
  line[t.used = 0] = 0;
  k = init(0);
  putf(&t, "%n", (uint32_t)k);
  say_back(to, 'I', line);
  line[t.used = 0] = 0;
  if (k != 0 || count(&n) != 0) return;
  for (k = 0; k < n && k < MAX_GPUS; k++) {
    if (get(&device, k) != 0 || attribute(&major, 75, device) != 0 || attribute(&minor, 76, device) != 0) major = minor = 0;
    putf(&t, "%n,", (uint32_t)(major << 8 | minor));
  }
  say_back(to, 'G', line);
}

/* Never returns. What it says: N where there is no such library, L and the loader library's path, V and the answer, I, the row's number and that inner
 * library's path, E at the end. */
CODE void ask_as_child(int to, const char *library, const struct cudnn *c) {
  static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGTERM, SIGALRM, SIGSYS, SIGPIPE};
  struct rlimit none;
  struct text t;
  char path[PATH_MAX], soname[128], digits[16];
  sigset_t all;
  void *handle, *symbol;
  size_t (*version)(void);
  size_t i;
  int null, k, fd;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  none.rlim_cur = none.rlim_max = 0;
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that pipes asks no limit */
  for (i = 0; i < sizeof fatal / sizeof fatal[0]; i++) signal(fatal[i], SIG_DFL);
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, 0);
  fd = fcntl(to, F_DUPFD_CLOEXEC, 3); /* the pipe may be 0, 1 or 2 where the program was started with those closed */
  if (fd < 0) _exit(1);
  null = open("/dev/null", O_RDWR);
  for (k = 0; k < 3; k++)
    if (null < 0) close(k);
    else if (null != k) dup2(null, k);
  alarm((c ? CHILD_MS : DRIVER_MS) / 1000 + 1);
  handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    say_back(fd, 'N', "");
    say_back(fd, 'E', "");
    _exit(0);
  }
  soname[0] = 0;
  if (!c) {
    if (is_loaded(library, path, 0, 0)) say_back(fd, 'L', path);
    ask_driver(fd, handle);
    say_back(fd, 'E', "");
    _exit(0);
  }
  if (is_loaded(base_name(library), path, soname, sizeof soname) || is_loaded(0, path, soname, sizeof soname)) say_back(fd, 'L', path);
  symbol = dlsym(handle, "cudnnGetVersion");
  if (symbol) {
    memcpy(&version, &symbol, sizeof version);
    t.at = digits, t.used = 0, t.size = sizeof digits;
    put_number(&t, (uint32_t)version());
    say_back(fd, 'V', digits);
  }
  for (k = 0; k < c->parts; k++)
    if (is_loaded(c->part[k].file, path, 0, 0)) say_back(fd, (char)('0' + k), path);
  say_back(fd, 'E', "");
  _exit(0);
}

/* Asks once per library and process; the answer is kept. `c` is null where the library is the driver's. */
CODE int ask(const char *library, const struct cudnn *c) {
  struct timespec start;
  int ends[2], status, done = 0;
  pid_t child = -1;
  if (g.outcome != NOT_ASKED && strcmp(g.asked, library) == 0) return g.outcome;
  copy(g.asked, sizeof g.asked, library, strlen(library));
  g.answered = 0;
  g.outcome = NOBODY_TO_ASK;
  if (!dlopen || !dlsym || pipe2(ends, O_CLOEXEC) != 0) return g.outcome;
  clock_gettime(CLOCK_MONOTONIC, &start);
  /* Exit signal 0: no SIGCHLD, and no wait() of the program sees it; nothing runs that others left with pthread_atfork.
   * Where another thread holds the heap at this moment, the child hangs: it costs CHILD_MS, and we cannot tell. Emulators
   * have no such call. */
  child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (child < 0) child = fork();
  if (child == 0) {
    close(ends[0]);
    ask_as_child(ends[1], library, c);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return g.outcome;
  }
  g.outcome = HUNG;
  for (;;) {
    struct pollfd p;
    long left = (c ? CHILD_MS : DRIVER_MS) - since_ms(&start);
    ssize_t got;
    int ready;
    p.fd = ends[0], p.events = POLLIN, p.revents = 0;
    ready = left > 0 ? poll(&p, 1, (int)left) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    got = read(ends[0], g.answer + g.answered, sizeof g.answer - 1 - g.answered);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || g.answered + (size_t)got >= sizeof g.answer - 1) {
      if (got > 0) g.answered += (size_t)got;
      g.outcome = DIED;
      break;
    }
    g.answered += (size_t)got;
  }
  close(ends[0]);
  g.answer[g.answered] = 0;
  if (g.answered >= 2 && g.answer[g.answered - 2] == 'E' && (g.answered == 2 || g.answer[g.answered - 3] == 0)) g.outcome = ANSWERED;
  if (g.outcome == HUNG) kill(child, SIGKILL);
  clock_gettime(CLOCK_MONOTONIC, &start);
  while (!done) {
    pid_t got = waitpid(child, &status, WNOHANG | __WALL);
    struct timespec nap;
    if (got == child || (got < 0 && errno != EINTR) || since_ms(&start) > REAP_MS) done = 1;
    else nap.tv_sec = 0, nap.tv_nsec = 200000, nanosleep(&nap, 0);
  }
  return g.outcome;
}

CODE const char *answer(char kind) {
  size_t at = 0;
  while (at < g.answered) {
    if (g.answer[at] == kind) return g.answer + at + 1;
    at += strlen(g.answer + at) + 1;
  }
  return 0;
}

/* ---- gathering ------------------------------------------------------------------------------------------------------------ */

CODE void real_name(const char *path, char *to) {
  int hops;
  struct text t;
  if (!copy(to, PATH_MAX, path, strlen(path))) to[0] = 0;
  for (hops = 0; hops < 16; hops++) {
    char *slash = strrchr(to, '/');
    ssize_t n = readlink(to, g.scratch, sizeof g.scratch - 1);
    if (n <= 0) return;
    g.scratch[n] = 0;
    t.at = to, t.size = PATH_MAX;
    t.used = g.scratch[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - to);
    put(&t, g.scratch);
  }
}

CODE uint32_t plausible(uint32_t packed) { return packed >> 16 && packed >> 16 < 100 ? packed : 0; }

/* Reads what the file of an inner library says of itself. */
CODE void read_part(struct part *p, const char *path) {
  struct elf e;
  p->known = p->present = 1;
  p->version = 0;
  copy(p->path, sizeof p->path, path, strlen(path) < sizeof p->path ? strlen(path) : sizeof p->path - 1);
  if (p->symbol[0] && elf_open(&e, path) > 0) {
    p->version = plausible(elf_word(&e, p->symbol));
    close(e.fd);
  }
}

/* cuDNN tries its own full version, then the shorter ones, each over the whole search path. */
CODE int find_part(const struct cudnn *c, struct part *p, const struct paths *of, char *to) {
  char name[160], ignored[8];
  struct text t, why;
  const char *dot = strstr(p->file, ".so");
  int numbers, is;
  for (numbers = 3; numbers >= 2 && c->by_name && dot; numbers--) {
    t.at = name, t.used = 0, t.size = sizeof name;
    put_bytes(&t, p->file, (size_t)(dot - p->file) + 3);
    put(&t, "."), put_number(&t, c->by_name >> 16);
    put(&t, "."), put_number(&t, c->by_name >> 8 & 0xff);
    if (numbers == 3) put(&t, "."), put_number(&t, c->by_name & 0xff);
    why.at = ignored, why.used = 0, why.size = sizeof ignored;
    if (search(name, of, to, &why) == 1) return 1;
  }
  why.at = ignored, why.used = 0, why.size = sizeof ignored;
  is = search(p->file, of, to, &why);
  return is;
}

/* Fills in what the files of the cuDNN at c->path say. */
CODE void read_cudnn(struct cudnn *c, const struct note *n) {
  struct elf e;
  struct paths of;
  char path[PATH_MAX];
  uint32_t i;
  c->state = FOUND;
  c->parts = 0;
  c->version = 0;
  c->from = 0;
  real_name(c->path, path);
  c->by_name = version_in_name(base_name(path));
  of.rpath = of.runpath = 0;
  of.file = c->path;
  if (elf_open(&e, c->path) > 0) {
    if (elf_string(&e, 1, g.rpath, sizeof g.rpath)) of.rpath = g.rpath;
    if (elf_string(&e, 2, g.runpath, sizeof g.runpath)) of.runpath = g.runpath;
    close(e.fd);
  }
  for (i = 0; i < note_rows(n) && c->parts < MAX_INNER; i++) {
    const unsigned char *row = note_row(n, i);
    struct part *p = &c->part[c->parts];
    const char *suffix;
    if (u16(row) != ROW_INNER || !note_text(n, row + 24, p->file, sizeof p->file) || !note_text(n, row + 28, p->symbol, sizeof p->symbol))
      continue;
    suffix = strstr(p->file, ".so"); /* the parts of another major are not this one's */
    if (suffix && strstr(c->soname, ".so.") && strcmp(suffix, strstr(c->soname, ".so")) != 0) continue;
    p->needed = u16(row + 2) & 1;
    p->known = 1;
    p->present = 0;
    p->version = 0;
    p->path[0] = 0;
    if (is_loaded(p->file, path, 0, 0) || find_part(c, p, &of, path)) read_part(p, path);
    c->parts++;
  }
}

CODE void settle_version(struct cudnn *c) {
  int k;
  c->version = 0;
  for (k = 0; k < c->parts && !c->version; k++)
    if (c->part[k].known && c->part[k].version) c->version = c->part[k].version, c->from = "the inner library's own word";
  if (!c->version && c->by_name) c->version = c->by_name, c->from = "the file's name";
  if (!c->version && c->answered) c->version = (uint32_t)c->answered, c->from = "its own answer, in a child process";
}

/* Level 0: which cuDNN this file has, or would get. */
CODE void look(struct cudnn *c, const struct note *n, const unsigned char *row, int late) {
  uint32_t flags = u16(row + 2);
  const char *needed = image_needs(&n->image, CUDNN_STEM);
  struct paths of;
  struct text why;
  int found = 0;
  c->state = UNKNOWN;
  c->answered = c->parts = 0;
  c->version = c->by_name = 0;
  c->path[0] = c->why[0] = 0;
  note_text(n, row + 24, c->soname, sizeof c->soname);
  if ((flags & STATIC) && !(flags & LINKED)) {
    c->state = INSIDE;
    return;
  }
  of.rpath = n->image.rpath, of.runpath = n->image.runpath, of.file = file_of(&n->image);
  why.at = c->why, why.used = 0, why.size = sizeof c->why;
  if (needed && is_loaded(needed, c->path, 0, 0)) {
    found = 1;
    copy(c->soname, sizeof c->soname, needed, strlen(needed));
  } else if (is_loaded(c->soname, c->path, 0, 0)) {
    found = 1;
  }
  if (found) {
    if (search(c->soname, &of, g.scratch, &why) != 1 || strcmp(g.scratch, c->path) != 0) {
      why.used = 0;
      put(&why, "another library, LD_PRELOAD or its full path");
    }
  } else if (flags & DLOPENED) {
    int is = search(c->soname, &of, c->path, &why);
    if (is == 1) found = 1;
    else if (is < 0) return;
    else c->state = ABSENT;
    /* Once the program has run, the only cuDNN in the process is the one it took, where its own is not to be had. */
    if (!found && late && is_loaded(0, c->path, c->soname, sizeof c->soname)) {
      found = 1;
      put(&why, "the program itself");
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
  int k, outcome, loaded = is_loaded(c->soname, path, 0, 0);
  const char *library = !loaded && (n->own || c->state == ABSENT) ? c->soname : c->path;
  copy(name, sizeof name, library, strlen(library));
  outcome = ask(name, c);
  g.level = 1;
  said = answer('L');
  if (c->state == ABSENT) {
    if (outcome != ANSWERED) c->state = UNKNOWN;
    if (!said) return;
  }
  if (!said && outcome == ANSWERED && !loaded && (u16(row + 2) & DLOPENED)) {
    c->state = ABSENT; /* it cannot be loaded, so the program will go without it */
    return;
  }
  if (said && strcmp(said, c->path) != 0) {
    copy(c->path, sizeof c->path, said, strlen(said));
    copy(c->why, sizeof c->why, "the loader", 10);
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
      if (!p->present || strncmp(said, p->path, SHOW) != 0) read_part(p, said);
    } else if (!p->present && p->needed && (c->answered || outcome != DIED)) {
      p->known = 0; /* it answers without that library, or there was nobody to ask */
    }
  }
  settle_version(c);
}

/* ---- driver and GPU: what can be seen of them without asking the driver ------------------------------------------------- */

/* PCI device ids of NVIDIA's GPUs: first, last, compute capability. Used to accept only: any other id is a doubt. */
static const uint16_t pci_ids[][3] = {
    {0x0fc0, 0x0fff, 0x300}, {0x1000, 0x1024, 0x305}, {0x1026, 0x102a, 0x305}, {0x102d, 0x102d, 0x307},
    {0x102e, 0x102f, 0x305}, {0x103a, 0x103a, 0x305}, {0x103c, 0x103c, 0x305}, {0x103f, 0x103f, 0x305},
    {0x1180, 0x11ff, 0x300}, {0x1280, 0x12bf, 0x305}, {0x1300, 0x131f, 0x305}, {0x1340, 0x139f, 0x500},
    {0x13ad, 0x13ae, 0x502}, {0x13b0, 0x13b4, 0x500}, {0x13b6, 0x13b6, 0x500}, {0x13b9, 0x13bd, 0x500},
    {0x13be, 0x143f, 0x502}, {0x15c0, 0x15ff, 0x600}, {0x1600, 0x161f, 0x502}, {0x1660, 0x167f, 0x502},
    {0x1720, 0x173f, 0x600}, {0x1740, 0x175f, 0x500}, {0x1780, 0x179f, 0x500}, {0x17c0, 0x17ff, 0x502},
    {0x1b00, 0x1b3f, 0x601}, {0x1b60, 0x1c3f, 0x601}, {0x1c60, 0x1d5f, 0x601}, {0x1d80, 0x1dff, 0x700},
    {0x1e00, 0x1e3f, 0x705}, {0x1e60, 0x1fff, 0x705}, {0x2080, 0x20ff, 0x800}, {0x2180, 0x21df, 0x705},
    {0x2200, 0x223f, 0x806}, {0x2300, 0x237f, 0x900}, {0x23a0, 0x23bf, 0x900}, {0x23e0, 0x23ff, 0x900},
    {0x2400, 0x243f, 0x806}, {0x2460, 0x25bf, 0x806}, {0x25e0, 0x25ff, 0x806}, {0x2680, 0x26bf, 0x809},
    {0x26e0, 0x27bf, 0x809}, {0x27e0, 0x283f, 0x809}, {0x2860, 0x28bf, 0x809}, {0x28e0, 0x28ff, 0x809},
    {0x2900, 0x29ff, 0xa00}, {0x2b00, 0x2b1f, 0xb00}, {0x2b80, 0x2bbf, 0xc00}, {0x2c00, 0x2c1f, 0xc00},
    {0x2c31, 0x2c31, 0xc00}, {0x2c33, 0x2c34, 0xc00}, {0x2c38, 0x2c3a, 0xc00}, {0x2c40, 0x2c7f, 0xc00},
    {0x2d00, 0x2d1f, 0xc00}, {0x2d30, 0x2d30, 0xc00}, {0x2d39, 0x2d39, 0xc00}, {0x2d40, 0x2dff, 0xc00},
    {0x2e00, 0x2e3f, 0xc01}, {0x2f00, 0x2f5f, 0xc00}, {0x3180, 0x31ff, 0xa03}, {0x3400, 0x341f, 0xb00},
};

CODE uint16_t cc_of(const char *id) {
  uint32_t n = 0;
  size_t i;
  if (starts(id, "0x"))
    for (id += 2; *id && n <= 0xffff; id++) {
      int digit = *id >= '0' && *id <= '9' ? *id - '0' : *id >= 'a' && *id <= 'f' ? *id - 'a' + 10 : -1;
      if (digit < 0) break;
      n = n << 4 | (uint32_t)digit;
    }
  for (i = 0; i < sizeof pci_ids / sizeof pci_ids[0]; i++)
    if (n >= pci_ids[i][0] && n <= pci_ids[i][1]) return pci_ids[i][2];
  return 0;
}

/* A release as the rows pack it: its numbers may be larger in what is found, 535.261.03, and are kept wider. */
CODE uint32_t widen(uint32_t packed) { return packed >> 16 << 20 | (packed & 0xffff); }

/* The first `535.261.03` or `535.261` of a text. No driver of a branch below 100 has what CUDA needs today. */
CODE uint32_t release_in(const char *s) {
  for (; *s; s++) {
    const char *at = s;
    long a = number(&at, 4095), b, c = 0;
    if (a < 0) continue;
    if (a >= 100 && *at == '.' && (at++, b = number(&at, 4095)) >= 0) {
      if (*at == '.') at++, c = number(&at, 255);
      return (uint32_t)(a << 20 | b << 8 | (c > 0 ? c : 0));
    }
    while (s[1] >= '0' && s[1] <= '9') s++;
  }
  return 0;
}

CODE int read_text(const char *path, char *to, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  ssize_t n;
  if (fd < 0) return 0;
  n = read(fd, to, size - 1);
  close(fd);
  to[n > 0 ? n : 0] = 0;
  return n > 0;
}

CODE int is_there(const char *path, int mode) { return access(path, mode) == 0; }

#define GPUS "/proc/driver/nvidia/gpus"

/* The GPUs that the kernel module drives and this process may open. Where not one can be opened, the driver may yet make
 * their nodes. Opening one here would wake it: the right to do so must be enough. */
CODE void count_gpus(struct driver *d) {
  char entries[2048] __attribute__((aligned(8))), path[300], text[1024];
  const char *variable = getenv("CUDA_VISIBLE_DEVICES"), *s;
  struct text t;
  int fd, n = 0;
  long got = 0, at;
  t.at = path, t.size = sizeof path;
  if (variable && (!*variable || strcmp(variable, "-1") == 0)) {
    d->gpus = 0;
    return;
  }
  fd = open(GPUS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (fd >= 0 && (got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
    for (at = 0; at < got; at += *(const unsigned short *)(entries + at + 16)) {
      const char *name = entries + at + 19;
      if (name[0] == '.') continue;
      t.used = 0, putf(&t, GPUS "/%s/information", name);
      if (n >= MAX_GPUS || !read_text(path, text, sizeof text) || !(s = strstr(text, "Device Minor:"))) {
        close(fd);
        return;
      }
      for (s += 13; *s == ' ' || *s == '\t';) s++;
      t.used = 0, putf(&t, "/dev/nvidia%n", (uint32_t)number(&s, 9999));
      if (!is_there(path, R_OK | W_OK)) continue;
      t.used = 0, putf(&t, "/sys/bus/pci/devices/%s/device", name);
      d->cc[n++] = read_text(path, text, sizeof text) ? cc_of(text) : 0;
    }
  if (fd >= 0) close(fd);
  if (variable) {
    at = number(&variable, 9999);
    if (at < 0 || at >= n || (*variable && *variable != ',')) return; /* UUIDs, MIG, mistakes: the driver knows */
  }
  if (n) d->gpus = n;
}

CODE void look_at_driver(const struct note *n) {
  struct driver *d = &g.driver;
  struct paths of;
  struct text why, t;
  char text[512], path[PATH_MAX];
  int k, there;
  d->state = ABSENT, d->strict = 1, d->init = d->gpus = -1;
  d->user = d->kernel = d->cuda = 0;
  d->path[0] = 0;
  there = read_text("/proc/driver/nvidia/version", text, sizeof text);
  if (there) d->kernel = release_in(text);
  /* /dev/nvidiactl alone proves nothing: libcuda makes it where it runs as root. */
  t.at = path, t.size = sizeof path;
  for (k = 0; k < 16 && !there && is_there("/dev/nvidiactl", F_OK); k++) {
    t.used = 0, putf(&t, "/dev/nvidia%n", (uint32_t)k);
    there = is_there(path, F_OK);
  }
  if (!there && !is_there("/dev/dxg", F_OK) && !is_there("/dev/nvmap", F_OK) && !is_there("/dev/nvhost-ctrl", F_OK)) return;
  d->state = UNKNOWN;
  of.rpath = n->image.rpath, of.runpath = n->image.runpath, of.file = file_of(&n->image);
  why.at = text, why.used = 0, why.size = sizeof text;
  if (!is_loaded(LIBCUDA, d->path, 0, 0) && search(LIBCUDA, &of, d->path, &why) != 1) return;
  real_name(d->path, path);
  d->user = release_in(base_name(path));
  d->state = FOUND;
  count_gpus(d);
}

/* Level 1: what the real driver answers. It honours every variable, and knows MIG, WSL, Jetson and cuda-compat. */
CODE void ask_the_driver(void) {
  struct driver *d = &g.told;
  const char *said;
  char path[PATH_MAX];
  if (!g.driver_asked) {
    g.driver_asked = 1;
    d->init = d->gpus = -1; /* all else is zero: UNKNOWN */
    if (ask(LIBCUDA, 0) == ANSWERED) {
      if (answer('N')) d->state = ABSENT;
      if ((said = answer('I'))) {
        d->state = FOUND;
        d->init = (int)number(&said, 99999);
        d->kernel = g.driver.kernel;
        if ((said = answer('V')) && *said) d->cuda = (uint32_t)number(&said, 999999);
        if ((said = answer('L'))) {
          copy(d->path, sizeof d->path, said, strlen(said));
          real_name(said, path);
          d->user = release_in(base_name(path));
        }
        /* Whatever cuInit answers, the GPUs stand there. */
        d->gpus = d->init ? g.driver.gpus : -1;
        memcpy(d->cc, g.driver.cc, sizeof d->cc);
        if ((said = answer('G')))
          for (d->gpus = 0; *said && d->gpus < MAX_GPUS; said += *said != 0) d->cc[d->gpus++] = (uint16_t)number(&said, 65535);
      }
    }
    g.level = 1;
  }
  g.driver = *d;
}

/* ---- judging: the same intervals as the judge in Rust (guard-core/src/judge/run.rs), proven equal by one table ------ */

CODE struct finding *find(int code, int severity, int note) {
  static struct finding overflow;
  struct finding *f = g.findings < MAX_FINDINGS ? &g.finding[g.findings++] : &overflow;
  struct text t;
  const struct note *n = &g.note[note];
  char part[140];
  memset(f, 0, sizeof *f);
  f->code = code, f->severity = severity, f->note = note;
  t.at = f->component, t.used = 0, t.size = sizeof f->component;
  if (n->state != NOTE_DAMAGED) {
    note_text(n, n->d + 28, part, sizeof part);
    put_shown(&t, part);
    note_text(n, n->d + 32, part, sizeof part);
    put(&t, " "), put_shown(&t, part);
  }
  return f;
}

CODE void show_path(char *to, size_t size, const char *path) {
  struct text t;
  t.at = to, t.used = 0, t.size = size;
  put_shown(&t, path);
}

CODE struct finding *find_cudnn(int code, int severity, int note, const struct cudnn *c, const unsigned char *row) {
  struct finding *f = find(code, severity, note);
  f->min = u32(row + 4), f->built = u32(row + 12), f->found = c->version;
  show_path(f->path, sizeof f->path, c->path);
  copy(f->why, sizeof f->why, c->why, strlen(c->why));
  copy(f->file, sizeof f->file, c->soname, strlen(c->soname));
  return f;
}

CODE void judge_cudnn(const struct cudnn *c, int note, const unsigned char *row) {
  uint32_t flags = u16(row + 2), min = u32(row + 4), below = u32(row + 8), built = u32(row + 12), major, k;
  int missing = 0;
  if ((flags & PATCH) && built > min) min = built;
  if (c->state == INSIDE) return;
  if (c->state == ABSENT) {
    if (flags & DLOPENED) find_cudnn(205, flags & REQUIRED ? ERROR : INFO, note, c, row);
    return;
  }
  if (c->state == UNKNOWN) {
    find_cudnn(501, INFO, note, c, row);
    return;
  }
  major = c->version ? c->version >> 16 : major_in_name(c->soname);
  if (major && major != built >> 16) {
    find_cudnn(201, ERROR, note, c, row);
    return;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) missing |= c->part[k].known && !c->part[k].present && c->part[k].needed;
  if (!c->version) {
    if (!missing) find_cudnn(501, INFO, note, c, row);
  } else if (c->version < min) {
    struct finding *f = find_cudnn(c->version >> 8 == built >> 8 ? 203 : 202, ERROR, note, c, row);
    f->min = min;
  } else if (c->version >= below) {
    find_cudnn(201, ERROR, note, c, row);
    return;
  }
  if (c->version && c->by_name && c->by_name != c->version) {
    struct finding *f = find_cudnn(206, c->by_name >> 8 == c->version >> 8 ? WARNING : ERROR, note, c, row);
    f->other = c->by_name;
  }
  for (k = 0; k < (uint32_t)c->parts; k++) {
    const struct part *p = &c->part[k];
    struct finding *f = 0;
    if (p->known && !p->present) f = find_cudnn(204, p->needed ? ERROR : WARNING, note, c, row);
    else if (p->known && p->version && c->version && p->version != c->version)
      f = find_cudnn(206, p->version >> 8 == c->version >> 8 ? WARNING : ERROR, note, c, row);
    if (!f) continue;
    f->other = p->version;
    copy(f->file, sizeof f->file, p->file, strlen(p->file));
    show_path(f->beside, sizeof f->beside, p->path);
  }
}

CODE int errors_from(int first) {
  int k, n = 0;
  for (k = first; k < g.findings; k++) n += g.finding[k].severity == ERROR;
  return n;
}

CODE struct finding *find_driver(int code, int severity, int note, const unsigned char *row) {
  struct finding *f = find(code, severity, note);
  const struct driver *d = &g.driver;
  struct text t;
  char text[128];
  int k, first = 1;
  show_path(f->path, sizeof f->path, d->path);
  if (row) {
    f->min = u32(row + 16), f->other = widen(u32(row + 20));
    t.at = f->file, t.used = 0, t.size = sizeof f->file;
    if (note_text(&g.note[note], row + 24, text, sizeof text)) put_shown(&t, text);
  }
  t.at = f->beside, t.used = 0, t.size = sizeof f->beside;
  for (k = 0; k < d->gpus; k++)
    if (!row || u16(row) == ROW_DRIVER || (d->cc[k] >= u32(row + 4) && d->cc[k] <= u32(row + 8)))
      if (d->cc[k]) putf(&t, first ? "compute capability %x" : ", %x", (uint32_t)d->cc[k]), first = 0;
  return f;
}

enum { FITS, OPEN }; /* or the number of a finding */

/* A row's floor. What the driver says it supports decides; its release stands in where that is not known, and the kernel
 * module's only to accept. */
CODE int floor_of(const unsigned char *row, int too_old) {
  const struct driver *d = &g.driver;
  uint32_t cuda = u32(row + 16), release = widen(u32(row + 20));
  if (!cuda && !release) return FITS;
  if (cuda && d->cuda) return d->cuda < cuda ? too_old : FITS;
  if (release && d->user) return d->user < release ? too_old : FITS;
  return release && d->kernel >= release ? FITS : OPEN;
}

CODE int is_one(const char *variable) {
  const char *s = getenv(variable);
  return s && strcmp(s, "1") == 0;
}

CODE int served(const struct note *n, const unsigned char *row) {
  uint32_t by = u16(row + 2);
  int old = floor_of(row, 302);
  if (by & BY_CUBIN) return is_one("CUDA_FORCE_PTX_JIT") ? OPEN : old;
  if (by & BY_PTX) return is_one("CUDA_DISABLE_PTX_JIT") ? 308 : old;
  if (by & BY_SOME) return n->d[25] == 1 ? 311 : old == FITS ? FITS : OPEN;
  return by & BY_NONE ? 303 : OPEN;
}

CODE int wants_driver(const struct note *n) {
  uint32_t i;
  for (i = 0; i < note_rows(n); i++)
    if (u16(note_row(n, i)) == ROW_DRIVER || u16(note_row(n, i)) == ROW_GPU) return 1;
  return n->d[21] == GPU_REQUIRED;
}

CODE void judge_driver(int note) {
  const struct note *n = &g.note[note];
  const struct driver *d = &g.driver;
  int required = n->d[21] == GPU_REQUIRED, kernels = 0, fit = 0, unfit = 0, doubt = 0, open = 0, placed = 0, pass, k, nothing = 0;
  uint32_t i;
  if (d->state == ABSENT) nothing = 307;
  else if (d->init == 34 && (d->gpus > 0 || required)) nothing = -306; /* one that builds and has no GPU may have it */
  else if (d->init == 803) nothing = -304;
  else if (d->init == 804) nothing = -305;
  else if (d->init == 34 || d->init == 100 || (d->init <= 0 && d->gpus == 0)) nothing = 310;
  else if (d->init > 0) nothing = -505;
  if (nothing) {
    int certain = nothing < 0 || required;
    if (nothing == -505) find_driver(505, INFO, note, 0);
    else find_driver(nothing < 0 ? -nothing : certain ? nothing : 504, certain ? ERROR : INFO, note, 0);
    return;
  }
  open = d->state == UNKNOWN || d->gpus < 0 || (d->init < 0 && d->user && d->kernel && d->user != d->kernel) ||
         (d->strict && (!d->user || !d->kernel));
  for (pass = 0; pass < 2; pass++) {
    for (i = 0; i < note_rows(n); i++) {
      const unsigned char *row = note_row(n, i);
      int here = 0, is;
      if (u16(row) == ROW_DRIVER && pass) {
        is = floor_of(row, 301);
        if (is == OPEN) open = 1;
        else if (is) find_driver(is, ERROR, note, row);
      }
      if (u16(row) != ROW_GPU) continue;
      kernels = 1;
      for (k = 0; k < d->gpus; k++) here += d->cc[k] && d->cc[k] >= u32(row + 4) && d->cc[k] <= u32(row + 8);
      if (!here) continue;
      is = served(n, row);
      if (pass) {
        if (is > OPEN) find_driver(is, fit || doubt ? INFO : ERROR, note, row);
        continue;
      }
      placed += here;
      if (is == FITS) fit = 1;
      else if (is == OPEN) doubt = 1;
      else unfit = 1;
    }
    if (kernels && placed < d->gpus) doubt = 1;
  }
  if (doubt && !fit) open = 1;
  if (d->strict && (doubt || unfit)) open = 1;
  if (open) find_driver(505, INFO, note, 0);
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

CODE void judge_note(int note, int level, int late) {
  const struct note *n = &g.note[note];
  struct cudnn *c = &g.cudnn;
  uint32_t i;
  if (n->state == NOTE_DAMAGED) {
    find(503, INFO, note);
    return;
  }
  if (n->state == NOTE_NEWER) find(502, INFO, note);
  for (i = 0; i < note_rows(n); i++) {
    const unsigned char *row = note_row(n, i);
    int before = g.findings, k;
    if (u16(row) != ROW_CUDNN) continue;
    look(c, n, row, late);
    judge_cudnn(c, note, row);
    if (level && (errors_from(before) || (c->state == FOUND && !c->version))) {
      g.findings = before;
      ask_and_look(c, n, row);
      judge_cudnn(c, note, row);
    } else if (!level) {
      for (k = 0; k < c->parts; k++)
        if (c->part[k].needed && !c->part[k].present) c->part[k].known = 0;
      if (c->state == ABSENT && (u16(row + 2) & REQUIRED)) c->state = UNKNOWN;
      g.findings = before;
      judge_cudnn(c, note, row);
    }
    if (g.seen < 8 && (c->state == FOUND || c->state == INSIDE)) {
      g.seen_cudnn[g.seen].note = note;
      g.seen_cudnn[g.seen].version = c->state == INSIDE ? u32(row + 12) : c->version;
      g.seen_cudnn[g.seen].from = c->state == INSIDE ? "the build: it is linked statically" : c->from;
      show_path(g.seen_cudnn[g.seen].path, sizeof g.seen_cudnn[0].path, c->path);
      copy(g.seen_cudnn[g.seen].why, sizeof g.seen_cudnn[0].why, c->why, strlen(c->why));
      g.seen++;
    }
  }
  if (wants_driver(n)) {
    int before = g.findings;
    if (!g.driver_known++) look_at_driver(n);
    judge_driver(note);
    if (!g.driver.strict || g.findings == before || g.finding[before].code == 504) return;
    g.findings = before;
    /* A program that can do without a GPU is not kept waiting: it asks by check(). */
    if (level && (late || n->d[21] != GPU_OPTIONAL)) {
      ask_the_driver();
      judge_driver(note);
    } else {
      find_driver(505, INFO, note, 0);
    }
  }
}

CODE int in_scope(const struct note *n) { return n->own || g.program; }

CODE void judge(int level, int late) {
  int k;
  g.findings = g.seen = g.level = g.driver_known = 0;
  for (k = 0; k < g.notes; k++) judge_note(k, level && (late ? in_scope(&g.note[k]) : speaks(&g.note[k])), late);
}

CODE int cannot_tell(const struct finding *f) { return f->code == 501 || f->code > 503; }

CODE int verdict(void) {
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

CODE void put_found(struct text *t, const struct finding *f) { putf(t, f->found ? "cuDNN %v" : "cuDNN", f->found); }

CODE void say_what(struct text *t, const struct finding *f) {
  switch (f->code) {
    case 201:
      put_found(t, f);
      putf(t, " is of another major than cuDNN %v", f->built);
      break;
    case 202:
      put_found(t, f);
      putf(t, " is older than cuDNN %v", f->built);
      break;
    case 203:
      put_found(t, f);
      putf(t, " is an older patch than cuDNN %v", f->built);
      break;
    case 204: putf(t, "cuDNN's library %p is missing%s", f->file, f->severity == ERROR ? ": the first call would abort" : ""); break;
    case 205: put(t, "no cuDNN was found"); break;
    case 206: putf(t, "cuDNN is mixed: %p is %v, the rest %v", f->file, f->other, f->found); break;
    case 301:
    case 302: putf(t, "the driver is too old: %p needs one that supports CUDA %c", f->file, f->min); break;
    case 303: putf(t, "%s has no code for %s", f->component, f->beside); break;
    case 304: put(t, "libcuda and the kernel module do not belong together (803)"); break;
    case 305: put(t, "cuda-compat does not work with this GPU (804)"); break;
    case 306: put(t, "this libcuda is the stub that is for linking only (34)"); break;
    case 307: put(t, "there is no libcuda.so.1, and the program requires a GPU"); break;
    case 308: putf(t, "CUDA_DISABLE_PTX_JIT forbids what %s needs: %p", f->beside, f->file); break;
    case 310: put(t, "there is no GPU, and the program requires one"); break;
    case 311: putf(t, "only a part of the code in %s is for %s", f->component, f->beside); break;
    case 501: put(t, f->path[0] ? "cannot tell which cuDNN this is" : "no cuDNN is loaded yet, so it cannot be told which"); break;
    case 502: put(t, "the manifest is of a newer revision than the guard: judged as far as it is known"); break;
    case 503: put(t, "a manifest is damaged: left out"); break;
    case 504: put(t, "no GPU to be seen: nothing to judge"); break;
    default: put(t, "cannot tell whether driver and GPU fit"); break;
  }
  if (f->code == 201 || f->code == 202 || f->code == 203) putf(t, ", which %s was built with", f->component);
}

/* Each fact on a line of its own, behind `indent`. */
CODE void say_facts(struct text *t, const struct finding *f, const char *indent) {
  if (f->built) putf(t, "%sbuilt with: cuDNN %v (%s)", indent, f->built, f->component);
  if (about_driver(f)) {
    const struct driver *d = &g.driver;
    if (f->min) putf(t, "%sneeded by:  %s", indent, f->component);
    if (d->user || d->cuda || d->kernel) {
      putf(t, "%sfound:     ", indent);
      if (d->user) putf(t, " driver %r", d->user);
      if (d->cuda) putf(t, " that supports CUDA %c", d->cuda);
      if (d->kernel && d->kernel != d->user) putf(t, " on kernel module %r", d->kernel);
    }
    if (f->path[0]) putf(t, " in %s", f->path);
    if (f->beside[0]) putf(t, "%sGPUs:       %s", indent, f->beside);
    return;
  }
  if (f->path[0]) {
    putf(t, "%sfound:      ", indent), put_found(t, f), putf(t, " in %s", f->path);
    if (f->beside[0]) putf(t, ", with %s", f->beside);
    if (f->why[0]) putf(t, "%spicked by:  %s", indent, f->why);
  }
}

CODE void say_hint(struct text *t, const struct finding *f) {
  switch (f->code) {
    case 202:
    case 203:
      putf(t, starts(f->why, "LD_LIBRARY_PATH")
                  ? "take that folder out of LD_LIBRARY_PATH, or put one with cuDNN %v or newer first; or rebuild against the one found"
                  : "update it, or put a folder in LD_LIBRARY_PATH that has cuDNN %v or newer; or rebuild against the one found",
           f->min);
      break;
    case 201:
      putf(t, "install cuDNN %n (%v or newer) where the loader looks first; or rebuild against the one found", f->built >> 16, f->min);
      break;
    case 204: put(t, "reinstall cuDNN whole, so that all its libraries stand in one folder"); break;
    case 205: putf(t, "install cuDNN %v or newer, or name its folder in LD_LIBRARY_PATH", f->min); break;
    case 206: put(t, "remove the stray copy, or reinstall cuDNN whole from one package"); break;
    case 301:
    case 302: putf(t, f->other ? "update the driver to %r or newer; or rebuild with an older toolkit" : "update the driver; or rebuild with an older toolkit", f->other); break;
    case 303:
    case 311: put(t, "rebuild with that architecture among those built for"); break;
    case 304: put(t, "reboot after a driver's update; in a container, remove its own libcuda"); break;
    case 305: put(t, "take the compat folder out of LD_LIBRARY_PATH and update the driver, or hide that GPU by CUDA_VISIBLE_DEVICES"); break;
    case 306: put(t, "take the folder with the stubs out of LD_LIBRARY_PATH and of RPATH"); break;
    case 307: put(t, "install the NVIDIA driver; start a container with its GPUs (--gpus all)"); break;
    case 308: put(t, "unset CUDA_DISABLE_PTX_JIT; or rebuild with that architecture"); break;
    case 310: put(t, "see nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with its GPUs (--gpus all)"); break;
    case 501: put(t, "nothing; its inner libraries should stand beside it"); break;
    case 502: put(t, "update cudaguard"); break;
    case 503: put(t, "rebuild the file"); break;
    default: put(t, "nothing"); break;
  }
}

CODE void put_code(struct text *t, int code) {
  putf(t, "CG%n", (uint32_t)code);
}

/* One write: never mixed with what other processes write, and no signal where nobody reads. */
CODE void say(const struct text *t) {
  sigset_t pipe_only, before, pending;
  struct timespec now;
  ssize_t done;
  int had;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&pending);
  had = sigismember(&pending, SIGPIPE);
  sigprocmask(SIG_BLOCK, &pipe_only, &before);
  done = write(STDERR_FILENO, t->at, t->used);
  if (done < 0 && errno == EPIPE && !had) {
    now.tv_sec = now.tv_nsec = 0;
    sigtimedwait(&pipe_only, 0, &now);
  }
  sigprocmask(SIG_SETMASK, &before, 0);
}

CODE void say_finding(const struct finding *f, int refuse) {
  char line[3072];
  struct text t;
  t.at = line, t.used = 0, t.size = sizeof line;
  put(&t, refuse ? "cudaguard: error[" : "cudaguard: warning["), put_code(&t, f->code), put(&t, "]: ");
  say_what(&t, f);
  say_facts(&t, f, "\n  ");
  put(&t, "\n  what to do: ");
  say_hint(&t, f);
  if (refuse) put(&t, "\n  (CUDAGUARD=warn starts it all the same; CUDAGUARD_REPORT=FILE tells more)");
  put(&t, "\n");
  say(&t);
}

/* ---- the report --------------------------------------------------------------------------------------------------------------- */

struct out {
  int fd;
  struct text t;
  char buffer[1024];
};

CODE void flush(struct out *o) {
  size_t at = 0;
  while (at < o->t.used) {
    ssize_t n = write(o->fd, o->t.at + at, o->t.used - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break; /* a full disk is not the program's trouble */
    at += (size_t)n;
  }
  o->t.used = 0;
}

CODE void raw(struct out *o, const char *s) {
  size_t n = strlen(s);
  while (n) {
    size_t some = n < 256 ? n : 256;
    if (o->t.size - 1 - o->t.used < some) flush(o);
    put_bytes(&o->t, s, some);
    s += some, n -= some;
  }
}

/* The length of the UTF-8 character at s, 0 where it is none. */
CODE int utf8(const unsigned char *s) {
  int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0, i;
  for (i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) return 0;
  return n;
}

CODE void json(struct out *o, const char *s) {
  char one[8];
  raw(o, "\"");
  while (*s) {
    int n = utf8((const unsigned char *)s);
    if (*s == '"' || *s == '\\') {
      one[0] = '\\', one[1] = *s, one[2] = 0;
      raw(o, one);
    } else if (*s == '\n') {
      raw(o, "\\n");
    } else if (!n) {
      raw(o, "\\ufffd");
    } else if ((unsigned char)*s < 0x20 || *s == 0x7f) {
      raw(o, "?");
    } else {
      memcpy(one, s, (size_t)n);
      one[n] = 0;
      raw(o, one);
    }
    s += n ? n : 1;
  }
  raw(o, "\"");
}

CODE void member(struct out *o, const char *key, const char *value) {
  raw(o, ",\"");
  raw(o, key);
  raw(o, "\":");
  json(o, value);
}

CODE void report_note(struct out *o, int note) {
  const struct note *n = &g.note[note];
  char text[256];
  struct text t;
  uint32_t i;
  int k, skipped = 0;
  raw(o, note ? ",{\"file\":" : "{\"file\":");
  json(o, file_of(&n->image));
  member(o, "note", n->state == NOTE_WHOLE ? "whole" : n->state == NOTE_NEWER ? "newer" : "damaged");
  if (n->state != NOTE_DAMAGED) {
    if (note_text(n, n->d + 28, text, sizeof text)) member(o, "name", text);
    if (note_text(n, n->d + 32, text, sizeof text)) member(o, "version", text);
    for (k = 0; k < g.seen; k++)
      if (g.seen_cudnn[k].note == note) {
        raw(o, ",\"cudnn\":{\"path\":");
        json(o, g.seen_cudnn[k].path);
        if (g.seen_cudnn[k].version) {
          t.at = text, t.used = 0, t.size = sizeof text;
          put_version(&t, g.seen_cudnn[k].version);
          member(o, "version", text);
          member(o, "version_from", g.seen_cudnn[k].from);
        }
        member(o, "picked_by", g.seen_cudnn[k].why);
        raw(o, "}");
        break;
      }
    raw(o, ",\"not_judged\":[");
    for (i = 0; i < note_rows(n); i++) {
      uint32_t kind = u16(note_row(n, i));
      if (kind >= ROW_CUDNN && kind <= ROW_GPU) continue;
      t.at = text, t.used = 0, t.size = sizeof text;
      putf(&t, "row of kind %n", kind);
      if (skipped++) raw(o, ",");
      json(o, text);
    }
    raw(o, "]");
  }
  raw(o, "}");
}

CODE void report(const char *done) {
  static const char verdicts[][8] = {"runs", "refused", "unknown"}, severities[][8] = {"info", "warning", "error"};
  const char *path = g.secure ? 0 : getenv("CUDAGUARD_REPORT");
  static struct out o;
  char text[2048];
  struct text t;
  int k;
  if (!path || !*path) return;
  o.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (o.fd < 0) return;
  o.t.at = o.buffer, o.t.used = 0, o.t.size = sizeof o.buffer;
  raw(&o, "{\"file\":");
  json(&o, self());
  member(&o, "role", g.program ? "program" : "library");
  member(&o, "verdict", verdicts[verdict()]);
  member(&o, "action", done);
  raw(&o, g.level ? ",\"level\":1" : ",\"level\":0");
  raw(&o, ",\"shim\":{\"revision\":1},\"components\":[");
  for (k = 0; k < g.notes; k++) report_note(&o, k);
  raw(&o, "],\"findings\":[");
  for (k = 0; k < g.findings; k++) {
    const struct finding *f = &g.finding[k];
    raw(&o, k ? ",{\"code\":" : "{\"code\":");
    t.at = text, t.used = 0, t.size = sizeof text;
    put_code(&t, f->code);
    json(&o, text);
    member(&o, "severity", severities[f->severity]);
    member(&o, "component", f->component);
    member(&o, "subject", about_driver(f) ? "driver" : f->code > 501 ? "manifest" : "cuDNN");
    t.used = 0;
    say_what(&t, f), say_facts(&t, f, "\n");
    member(&o, "message", text);
    t.used = 0;
    say_hint(&t, f);
    member(&o, "hint", text);
    raw(&o, "}");
  }
  raw(&o, "]}\n");
  flush(&o);
  close(o.fd);
}

/* ---- the doors ---------------------------------------------------------------------------------------------------------------- */

CODE void prepare(int all) {
  struct walk w;
  const char *mode;
  w.all = all, w.index = w.noted = 0;
  g.notes = 0;
  if (!g.ready) {
    g.secure = getauxval(AT_SECURE) != 0;
    g.library_path = g.secure ? 0 : getenv("LD_LIBRARY_PATH");
  }
  dl_iterate_phdr(on_image, &w);
  if (g.ready) return;
  g.ready = 1;
  g.startup = w.index;
  mode = g.secure ? 0 : getenv("CUDAGUARD");
  if (!mode || !*mode) g.mode = MODE_MANIFEST;
  else if (strcmp(mode, "off") == 0) g.mode = MODE_OFF;
  else if (strcmp(mode, "warn") == 0) g.mode = MODE_WARN;
  else if (strcmp(mode, "enforce") == 0) g.mode = MODE_ENFORCE;
  else if (g.first_noted) {
    char line[SHOW + 100];
    struct text t;
    t.at = line, t.used = 0, t.size = sizeof line;
    put(&t, "cudaguard: CUDAGUARD is none of off, warn, enforce, but ");
    put_shown(&t, mode);
    put(&t, ": ignored\n");
    say(&t);
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

CODE int lock(void) {
  int pid = (int)getpid(), seen;
  for (;;) {
    seen = 0;
    if (__atomic_compare_exchange_n(&g.lock, &seen, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return pid;
    if (seen != pid && __atomic_compare_exchange_n(&g.lock, &seen, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return pid; /* left locked by the process that this one was forked from */
    sched_yield();
  }
}

#ifdef __cplusplus
extern "C" {
#endif

SHOWN int SHARED(check)(char *text, size_t size);
SHOWN void SHARED(start)(void);

SHOWN int SHARED(check)(char *text, size_t size) {
  int saved = errno, result, k;
  struct text t;
  char none[1];
  lock();
  t.at = text && size ? text : none, t.used = 0, t.size = text && size ? size : 1;
  t.at[0] = 0;
  prepare(0);
  if (g.mode == MODE_OFF) {
    result = CANNOT_TELL;
    put(&t, "the guard is switched off by CUDAGUARD=off");
  } else {
    judge(1, 1);
    result = verdict();
    for (k = 0; k < g.notes && !in_scope(&g.note[k]); k++) continue;
    if (k == g.notes) {
      result = CANNOT_TELL;
      put(&t, "this file has no manifest");
    }
    for (k = 0; k < g.findings; k++) {
      const struct finding *f = &g.finding[k];
      if (!in_scope(&g.note[f->note]) || (result == WRONG ? f->severity != ERROR : result == RIGHT || !cannot_tell(f))) continue;
      put(&t, "["), put_code(&t, f->code), put(&t, "] ");
      say_what(&t, f), say_facts(&t, f, "\n");
      break;
    }
    report("checked");
  }
  __atomic_store_n(&g.lock, 0, __ATOMIC_RELEASE);
  errno = saved;
  return result;
}

SHOWN void SHARED(start)(void) {
  int saved = errno, refuse = 0;
  const struct finding *f;
  if (g.ready) return;
  lock();
  prepare(1);
  if (g.mode != MODE_OFF && g.notes) {
    judge(1, 0);
    f = worst(&refuse);
    report(refuse ? "refuse" : f ? "warn" : "start");
    if (f) say_finding(f, refuse);
    if (refuse) _exit(STATUS_REFUSED);
  }
  __atomic_store_n(&g.lock, 0, __ATOMIC_RELEASE);
  errno = saved;
}

#ifdef __cplusplus
}
#endif

/* Outside the section of the rest, so that a copy whose code was dropped keeps these few bytes and no more. */
__attribute__((constructor(101), used, section(".text.cudaguard_r1_init"))) static void cudaguard_r1_init(void) { SHARED(start)(); }

#endif
