/* What was found: all that the shim knows of this process. Numbers stand first in a struct and long texts last: what is near
 * its beginning, shorter instructions reach. */

/* An inner library of cuDNN's. */
struct part {
  int needed, known, present;
  uint32_t version, cuda; /* cuda: of the cudart inside, as cudaRuntimeGetVersion says it */
  char file[NOTE_TEXT], symbol[NOTE_TEXT], made_with[NOTE_TEXT];
  char path[SHOW + 1];
};

enum { UNKNOWN, ABSENT, FOUND, INSIDE };

struct cudnn {
  int state, answered; /* answered: by the real cuDNN, in a child */
  int parts;
  const struct note *note;
  uint32_t version, by_name, by_code, cuda; /* by_code: major and minor of its own file; cuda: of its part */
  const char *from; /* where the version comes from, in words */
  const char *by;   /* and the inner library that says it, or null */
  char names[NOTE_TEXT]; /* that the program tries, one a line */
  char soname[NOTE_TEXT], path[PATH_MAX], why[WHY];
  struct part part[MAX_INNER];
};

/* Of this process: the rows ask for no more. Numbers are 0, `init` and `gpus` -1 where nobody knows. */
struct driver {
  int state;
  int by_files;          /* the driver was not asked: which of the GPUs it will be is not known, so all must be fit */
  int chosen;            /* a variable chooses among the GPUs */
  int init;              /* what cuInit answered */
  int gpus;              /* that the process sees */
  int jit;               /* whether PTX can be compiled: 1 yes, -1 no */
  uint32_t user, kernel; /* releases, widened */
  uint32_t cuda;         /* that the driver supports, as cuDriverGetVersion says it */
  uint16_t cc[MAX_GPUS];
  char trouble[SHOW]; /* why a libcuda that is there cannot be loaded */
  char path[PATH_MAX];
};

/* What a program gets that asks: cudaguard.h has the same. */
struct verdict {
  size_t size;
  int verdict, code, severity, level;
  char subject[16], component[256], built[32], found[32], message[2048], hint[512], not_judged[256];
};

/* One thing in this file that a GPU may use (self.c). */
enum { STARTS = 1 /* the first of its container */, IS_LINKED = 2, IS_INPUT = 4, IS_PACKED = 8, BY_13 = 16 };

struct code {
  uint16_t is; /* 0: it cannot be read */
  uint16_t isa, how;
};

/* Memory that the kernel zeroes in a forked child: what is held or was begun in the parent is not in the child. */
struct fork_page {
  int lock;    /* the process that holds it, or 0 */
  int process; /* the one that set up this page; 0 in a child of it */
};

/* All that is large lives here and not on the stack of whoever calls check(). In .bss: no byte in the file. */
struct state {
  struct fork_page *page, without_page; /* without_page: if the kernel has no such memory */
  int process;       /* the one in which the loader may be asked: a forked child must try that first */
  int loader_is_stuck;
  int current;       /* of the two verdicts, the one that is published; 0: none yet, else 1 or 2 */
  int ready, started, program, mode;
  int startup;     /* how many objects the loader brought before `main` */
  int first_noted; /* no guarded file stands before this one */
  int notes;
  int seen;        /* cuDNNs for the report */
  uint32_t notes_left_out;
  int driver_known, driver_asked;
  int by_name; /* the driver's libraries are found by their names alone, and not opened */
  int outcome, level;
  long patience; /* seconds for all questions; `left` is what is left of them */
  struct timespec left;
  size_t answered;
  const char *library_path;
  struct note *now; /* the one that is being judged */
  struct image first, own; /* own: the file that this guard is in */
  int looks; /* for kernels, since this file is not sealed */
  int codes;
  struct code code[MAX_CODES];
  struct driver driver, told; /* told: by the real driver, in a child */
  struct cudnn cudnn[MAX_SEEN]; /* the last one is used again */
  struct note note[MAX_NOTES];
  struct findings findings;
  char self[PATH_MAX], scratch[PATH_MAX];
  char rpath[4096], runpath[4096];
  char asked[PATH_MAX], real[PATH_MAX], answer[8192];
  const char *loader_name; /* the path that the loader was started with, or null */
  struct verdict verdict, published[2];
};
static struct state g;

/* A setuid program listens to nobody. */
CODE const char *variable(const char *name) {
  const char *value = secure_getenv(name);
  return value ? value : "";
}

CALLED int this_process(void) { return (int)sys1(SYS_getpid, 0); }

CODE int variable_is_one(const char *name) { return same(variable(name), "1"); }

CALLED long read_link(const char *path, char (*link)[PATH_MAX]) {
  char *to = *link;
  long n = READLINK(path, to, PATH_MAX - 1);
  to[n > 0 ? n : 0] = 0;
  return n;
}

/* Copies a path, made absolute by the working directory. */
CODE void keep_absolute(char (*to)[PATH_MAX], const char *path) {
  struct text t;
  while (starts(path, "./")) path += 2;
  keep_path(to, path);
  if (!*path || *path == '/' || read_link("/proc/self/cwd", to) <= 0) return;
  t.at = *to, t.used = len(*to), t.size = PATH_MAX;
  put_char(&t, '/');
  put(&t, path);
  if (is_cut(&t)) keep_path(to, path);
}

CODE int file_is_image(const char *path, const struct image *im);

/* Returns the program's path. The kernel names the file that it started, which may be the loader (`ld.so program`), and a path may
 * lead elsewhere by now: of the paths that are known, the first counts whose file has the program headers that are in memory. */
CODE const char *self(void) {
  const char *by_kernel = (const char *)getauxval(AT_EXECFN);
  if (g.self[0]) return g.self;
  if (g.loader_name) keep_absolute(&g.self, g.loader_name);
  if (g.self[0] && file_is_image(g.self, &g.first)) return g.self;
  if (read_link("/proc/self/exe", &g.self) > 0 && file_is_image(g.self, &g.first)) return g.self;
  if (by_kernel) keep_absolute(&g.self, by_kernel);
  if (g.self[0] && file_is_image(g.self, &g.first)) return g.self;
  if (g.loader_name) keep_absolute(&g.self, g.loader_name);
  else if (read_link("/proc/self/exe", &g.self) <= 0) keep_path(&g.self, by_kernel && *by_kernel ? by_kernel : "this program");
  return g.self;
}

CODE const char *file_of(const struct image *im) { return im->name[0] ? im->name : self(); }

/* What CUDAGUARD says, else the note. */
CODE int note_refuses(const struct note *n) {
  if (g.mode == MODE_WARN) return 0;
  return g.mode == MODE_ENFORCE || n->head.mismatch == MISMATCH_REFUSES;
}

/* Whether this guard speaks for the note. A library keeps still unless it is told to end the process; and where it speaks,
 * it speaks for itself, before the program that needs it. */
CODE int speaks_for(const struct note *n) {
  int library = g.mode == MODE_WARN || g.mode == MODE_ENFORCE || n->head.library == LIBRARY_ENFORCES;
  return g.program ? n->own || !library : n->own && library;
}

/* Whether the note is a part of this guard's verdict. */
CODE int in_scope(const struct note *n) { return n->own || g.program; }

/* Its name and version. */
CODE void component(const struct note *n, char (*to)[2 * NOTE_TEXT]) {
  char name[NOTE_TEXT], version[NOTE_TEXT];
  struct text t = text_in(*to, sizeof *to);
  if (!note_is_readable(n)) return;
  note_text(n, n->head.name, &name);
  note_text(n, n->head.version, &version);
  put_outside(&t, name);
  put_char(&t, ' ');
  put_outside(&t, version);
}

/* The toolkit that the note's package was built with; 0: none, or not known. */
CODE uint32_t toolkit_of(const struct note *n) {
  char version[NOTE_TEXT];
  uint32_t part[3];
  if (!note_text(n, n->head.toolkit, &version) || !numbers_in(version, 1, part)) return 0;
  return part[0] * 1000 + part[1] * 10;
}

/* ---- the notes of this process ---- */

static const char anchor = 0; /* stands in this very file: how it finds its own image */

/* Where a note goes for which there is no room: in place of one that is not this file's own, where it is. */
CALLED struct note *room_for_note(int own) {
  int k = g.notes;
  if (g.notes < MAX_NOTES) return &g.note[g.notes++];
  g.notes_left_out++;
  while (own && k-- > 0)
    if (!g.note[k].own) return &g.note[k];
  return 0;
}

/* Keeps the notes of an image, or only counts them. Looks for the mark at every 4 bytes: mold puts notes of both
 * alignments into one segment, where stepping from note to note by the segment's alignment goes astray. */
CODE int take_notes(struct image *im, int own, int keep) {
  static const unsigned char mark[16] = {1, 0, 0, 0, 'c', 'u', 'd', 'a', 'g', 'u', 'a', 'r', 'd', 0, 0, 0};
  enum { SIZES = 8, HEADER = SIZES + sizeof mark };
  int taken = 0, k;
  for (k = 0; k < im->n; k++) {
    const ElfW(Phdr) *ph = &im->ph[k];
    const unsigned char *p = (const unsigned char *)address_of_segment(im, ph);
    size_t left = ph->p_filesz;
    if (ph->p_type != PT_NOTE || !p || left > mapped_from(im, (uintptr_t)p)) continue;
    while (left >= HEADER) {
      size_t step = 4;
      uint32_t sizes[2]; /* of the owner's name, of the descriptor */
      memcpy(sizes, p, sizeof sizes);
      if (sizes[0] == 10 && same_bytes(p + SIZES, mark, sizeof mark) && sizes[1] <= left - HEADER) {
        struct note *n = keep ? room_for_note(own) : 0;
        if (!taken++ && keep) image_names(im);
        if (n) {
          read_note(n, p + HEADER, sizes[1] > 65535 ? 65535 : sizes[1]);
          n->own = own;
          n->image = *im;
        }
        step = HEADER + (((size_t)sizes[1] + 3) & ~(size_t)3);
      }
      if (step >= left) break;
      p += step;
      left -= step;
    }
  }
  return taken;
}

/* If this file has no note, a note without bytes takes its place, so that the guard reports that. */
CODE void note_absence(void) {
  struct note *n;
  int k;
  for (k = 0; k < g.notes; k++)
    if (g.note[k].own) return;
  n = room_for_note(1);
  if (!n) return;
  memset(n, 0, sizeof *n);
  n->state = NOTE_IS_ABSENT, n->own = 1;
  n->image = g.own;
}

struct walk {
  int all, index, noted;
};

/* Kept are the notes of this file and, in a program, those of the libraries that came with it: neither can be unloaded
 * while we look. In a constructor nothing can, and all are kept for the report. */
CODE int on_image(struct dl_phdr_info *info, size_t size, void *data) {
  struct walk *w = (struct walk *)data;
  struct image im = image_of(info);
  int own = 0, k, first = w->index++ == 0, program, taken;
  (void)size;
#ifdef __GLIBC__
  /* In a namespace of dlmopen, the first one is a library. The program has no name, except if the loader was started with it. */
  program = first && (!*im.name || (uintptr_t)info->dlpi_phdr == getauxval(AT_PHDR));
#else
  program = first;
#endif
  if (program && im.name && *im.name) g.loader_name = im.name;
  if (program || !im.name) im.name = "";
  for (k = 0; k < im.n; k++)
    if (im.ph[k].p_type == PT_LOAD && (uintptr_t)&anchor - (im.base + im.ph[k].p_vaddr) < im.ph[k].p_memsz) own = 1;
  if (first) {
    image_names(&im);
    g.first = im;
  }
  if (own) {
    image_names(&im);
    g.program = program;
    g.own = im;
  }
  taken = take_notes(&im, own, own || w->all || (g.program && w->index <= g.startup));
  if (taken && !w->noted++) g.first_noted = own;
  return 0;
}
