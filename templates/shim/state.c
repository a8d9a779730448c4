/* What was found. */

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
