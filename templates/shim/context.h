/* The data model: all that the shim knows of its process. One `struct context` is passed to every
 * function that needs it. It lives in zero-initialised memory and never on the stack: a thread with
 * 16 KiB of stack may ask. */
#ifndef CUDAGUARD_CONTEXT_H
#define CUDAGUARD_CONTEXT_H

#include "platform.h"
#include "note_layout.h"
#include "findings.h"

/* A dynamic table by tag, each but DT_NEEDED being there once; 0 is the GNU hash table's place. */
struct tags {
  ElfW(Addr) at[32];
};

/* Where an object is in memory. */
struct loaded_file {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name; /* as the loader has it; empty: the program's */
};

struct image {
  uintptr_t base;
  const ElfW(Phdr) * ph;
  int n;
  const char *name;
  const ElfW(Dyn) * dynamic;
  size_t entries;
  const char *strings;
  size_t size;                          /* of the strings */
  const char *soname, *rpath, *runpath; /* among them, or null */
};

enum { MAX_PHDRS = 48 };

struct elf {
  long fd;
  int n;
  ElfW(Ehdr) eh;
  struct tags tags;
  ElfW(Phdr) ph[MAX_PHDRS];
  ElfW(Dyn) dynamic[128];
};

enum { NOTE_WHOLE, NOTE_IS_NEWER, NOTE_IS_DAMAGED, NOTE_IS_ABSENT };

struct note {
  const unsigned char *descriptor;
  uint32_t size;
  int state, own;             /* own: of the file that contains this guard */
  const char *damage;         /* what is wrong with its bytes */
  struct note_head head;      /* zeros if it is damaged or absent */
  uint32_t cudnn, cudnn_cuda; /* the version that it gets, and the CUDA that this was made with */
  uint64_t not_unfit;         /* of the GPUs, where it has kernels */
  int sees;                   /* rows are made from the kernels in its image (own_kernels.h) */
  struct loaded_file file;
};

/* A row; `kind` selects the member. */
union row {
  uint16_t kind;
  struct library_row cudnn;
  struct part_row inner;
  struct driver_row driver;
  struct gpu_row gpu;
};

/* No CUDA machine is big-endian, so that a struct of these members is what the bytes are. */
typedef char the_head_is_as_long_as_it_is_written[sizeof(struct note_head) == HEAD_SIZE ? 1 : -1];
typedef char a_row_is_as_long_as_it_is_written[sizeof(union row) == ROW_SIZE ? 1 : -1];

/* What an error of a code does to the verdict. A finding of an open code leaves it open, whatever
 * it weighs. */
enum { REFUSES, OPEN, INFORMS };

enum message {
#define NAME(name, code, severity, verdict, rank, subject, sentence_of, sentence, one, two, three, \
             hint_of, hint)                                                                        \
  name,
  FINDINGS(NAME)
#undef NAME
  /* Results without a finding. */
  FITS,
  CANNOT_BE_TOLD
};

struct finding {
  enum message words;
  int severity;
  const struct note *note;
  /* The values of its words, each by its name there. */
  uint32_t part, found, built, built_major, min, dropped_in, found_cuda, built_cuda, loader,
      needs_cuda, needs_release;
  uint32_t nvcc_major, cuda_major, newest_major, driver, cuda, kernel, answer, left_out, kept,
      made_from, made_to;
  uint16_t component, other; /* one more than the number of a note */
  /* Texts among those that are kept (struct texts); 0: none. */
  uint16_t file, symbol, why, kinds, path, beside, picked_by, library, libcuda, code, built_for,
      gpus, archs;
};

struct findings {
  int count, round;                    /* round: the first that was found in this one */
  uint32_t left_out, left_out_now;     /* now: in this round */
  struct finding at[MAX_FINDINGS + 2]; /* two more count what was left out */
  struct finding spare;                /* the one for which there is no room */
};

/* Texts of findings, each once and ended by a NUL. The first is empty: a text that does not fit
 * becomes this one. */
struct kept_texts {
  size_t used, used_before_round;
  char at[MAX_KEPT];
};

/* An inner library of cuDNN's. */
struct part {
  int needed, known, present;
  uint32_t version, cuda; /* cuda: of the cudart inside, as cudaRuntimeGetVersion returns it */
  char file[NOTE_TEXT];
  uint16_t row; /* of the note */
  char path[SHOW + 1];
};

/* What came of a lookup. The loader stops at a file that it cannot read, and looks on if there is
 * none. */
enum lookup { NOT_THERE, IS_THERE, UNREADABLE, IS_LOADED };

enum { UNKNOWN, ABSENT, FOUND, INSIDE };

struct cudnn {
  int state, answered; /* answered: by the real cuDNN, in a child */
  int parts;
  uint32_t version, by_name, cuda; /* cuda: of its part */
  const char *from;                /* name of the source of the version */
  const char *by;                  /* the inner library that has it, or null */
  char names[NOTE_TEXT];           /* that the program tries, one a line */
  char soname[NOTE_TEXT], path[PATH_MAX], why[WHY];
  struct part part[MAX_INNER];
};

/* A cuDNN that was found, as the report lists it. */
struct seen_cudnn {
  const struct note *note;
  const char *from;
  uint32_t version, cuda;
  uint16_t path, picked_by; /* kept texts */
};

/* The driver and GPUs of this process, as far as rows depend on them. Unknown numbers are 0,
 * unknown `init` and `gpus` -1. */
struct driver {
  int state;
  int by_files; /* the driver was not asked: which of the GPUs it will be is not known, so all must
                   be fit */
  int chosen;   /* a variable chooses among the GPUs */
  int init;     /* what cuInit answered */
  int gpus;     /* that the process sees */
  int jit;      /* whether PTX can be compiled: 1 yes, -1 no */
  uint32_t user, kernel; /* releases, widened */
  uint32_t cuda;         /* that the driver supports, as cuDriverGetVersion returns it */
  uint16_t cc[MAX_GPUS];
  char trouble[SHOW]; /* why a libcuda that is there cannot be loaded */
  char path[PATH_MAX];
};

/* The answer to cudaguard_check_verdict(): cudaguard.h has the same structure. */
struct verdict {
  size_t size;
  int verdict, code, severity, level;
  char subject[16], component[256], built[32], found[32], message[2048], hint[512], not_judged[256];
};

/* One thing in this file that a GPU may use (own_kernels.h). */
enum { IS_LINKED = 2, IS_INPUT = 4, IS_PACKED = 8, BY_13 = 16 };

struct code {
  uint16_t is; /* 0: it cannot be read */
  uint16_t isa, how;
};

struct record; /* of a fatbin container: own_kernels.h */

/* Memory that the kernel zeroes in a forked child: the child inherits no lock. */
struct fork_page {
  int lock;    /* the process that holds it, or 0 */
  int process; /* the one that set up this page; 0 in a child of it */
};

/* The state of the shim. It is in .bss, and takes no byte in the file. */
struct context {
  int lookup_failed; /* a lookup failed with another error than ENOENT: what was not found may be
                        there */
  struct fork_page *fork_page, without_page; /* without_page: if the kernel has no such memory */
  int process; /* the one in which the loader may be asked: a forked child must try that first */
  int loader_is_stuck;
  int current; /* of the two verdicts, the one that is published; 0: none yet, else 1 or 2 */
  int ready, started, program, mode;
  int startup;     /* how many objects the loader brought before `main` */
  int first_noted; /* no guarded file comes before this one */
  int notes;
  int seen; /* cuDNNs for the report */
  uint32_t notes_left_out;
  int driver_known, driver_asked;
  int by_name; /* the driver's libraries are found by their names alone, and not opened */
  int outcome, level;
  long patience; /* seconds for all questions; `left` is what is left of them */
  struct timespec left;
  size_t answered;
  const char *library_path;
  int library_path_is_unknown; /* the loader was started with the program, perhaps with a path */
  struct note *now;            /* the one that is being judged */
  struct image first, own;     /* own: the file that this guard is in */
  int looks;                   /* for kernels, since this file is not sealed */
  int codes;
  const struct record *first_record;
  const struct note *gpu_rows_of; /* the note for which the rows of GPUs were read, or null */
  union row gpu_row[MAX_GPUS];
  struct driver driver, probed; /* probed: by the real driver, in a child */
  union {
    struct {
      struct cudnn cudnn; /* of the row that is being judged */
      char runpath[4096]; /* of its file, or the RPATH */
    } row;
    char page[16 * 1024]; /* what is printed when all are */
  } shared;
  struct seen_cudnn seen_cudnn[MAX_SEEN];
  struct note note[MAX_NOTES];
  struct findings findings;
  struct kept_texts kept;
  char self[PATH_MAX], scratch[PATH_MAX];
  char asked[PATH_MAX], answer[8192]; /* by the child, and what was asked */
  char real[PATH_MAX], found[PATH_MAX], text[1024];
  uint64_t entries[256]; /* of a folder */
  struct elf elf;
  const char *loader_name;   /* the path that the loader was started with, or null */
  struct verdict verdict[2]; /* the one that is not published is being completed */
};

#endif
