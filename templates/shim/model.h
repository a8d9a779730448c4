/* The data model that is the same on every system: findings, detected libraries, and the judge. */
#ifndef CUDAGUARD_MODEL_H
#define CUDAGUARD_MODEL_H

#include "platform.h"
#include "judge.h"
#include "findings.h"

enum { NOTE_WHOLE, NOTE_IS_NEWER, NOTE_IS_DAMAGED, NOTE_IS_ABSENT };

struct note {
  const unsigned char *descriptor;
  uint32_t size;
  int state, own;        /* own: the note is in the same file as this guard */
  const char *damage;    /* why the note is invalid */
  struct note_head head; /* zeros if the note is invalid or absent */
  int from_kernels;      /* rows are made from its image (own_kernels.h) */
  struct loaded_file file;
};

/* The effect of a finding on the verdict. REFUSES applies to errors only, OPEN to every severity.
 */
enum { REFUSES, OPEN, INFORMS };

enum message {
#define NAME(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) \
  name,
  FINDINGS(NAME)
#undef NAME
};

struct finding {
  enum message kind;
  int severity;
  const struct note *note;
  /* The values of the placeholders of its message, by their names. */
  uint32_t part, found, built, built_major, min, dropped_in, found_cuda, built_cuda, loader,
      needs_cuda, needs_release;
  uint32_t nvcc_major, cuda_major, newest_major, driver, cuda, kernel, answer, left_out, kept,
      made_from, made_to;
  uint16_t component; /* index of a note plus 1 */
  /* Offsets in struct stored_texts; 0: none. */
  uint16_t file, symbol, why, kinds, path, beside, picked_by, library, libcuda, code, built_for,
      gpus, archs, branch;
};

struct findings {
  int count;
  uint32_t dropped;
  size_t texts_used;                   /* bytes of struct stored_texts */
  struct finding spare;                /* receives a finding if the table is full */
  struct finding at[MAX_FINDINGS + 2]; /* two more report dropped findings and notes */
};

/* NUL-terminated strings of findings, each stored once. The first one is empty; a string that does
 * not fit is replaced by it. */
struct stored_texts {
  char at[MAX_TEXTS];
};

/* A sublibrary of cuDNN. */
struct part {
  struct judge_part is;
  int needed;
  uint32_t cuda; /* version of its cudart, in the form of cudaRuntimeGetVersion */
  char file[NOTE_TEXT];
  char path[SHOW + 1];
};

/* The result of a library search. The dynamic linker stops at a file that it cannot read, and
 * continues if there is no file. ASK_LOADER: only the dynamic linker can find it. */
enum lookup { NOT_THERE, IS_THERE, UNREADABLE, IS_LOADED, ASK_LOADER };

enum { INSIDE = FOUND + 1 };

struct cudnn {
  struct judge_cudnn is;
  int answered; /* version that the real cuDNN returned in a child */
  int parts;
  const char *from;      /* name of the source of the version */
  const char *by;        /* the sublibrary that contains the version, or null */
  char names[NOTE_TEXT]; /* names that the program passes to dlopen, one per line */
  char soname[NOTE_TEXT], why[WHY];
  char path[PATH_MAX];
  struct part part[MAX_INNER];
};

SHIM_FN void reset_cudnn(struct cudnn *c) {
  memset(c, 0, offsetof(struct cudnn, names));
  c->names[0] = c->soname[0] = c->why[0] = c->path[0] = 0;
}

/* A detected cuDNN, for the report. */
struct seen_cudnn {
  const struct note *note;
  const char *from;
  uint32_t version, cuda;
  uint16_t path, picked_by; /* offsets in struct stored_texts */
};

/* The driver and GPUs of this process. */
struct driver {
  char (*path)[PATH_MAX]; /* of libcuda, if its state is FOUND */
  struct judge_driver is;
  int chosen;       /* CUDA_VISIBLE_DEVICES selects GPUs */
  char error[SHOW]; /* why an existing libcuda cannot be loaded */
  uint16_t cc[MAX_GPUS];
};

/* Resets the facts to unknown, but touches no unused page. */
SHIM_FN void reset_driver(struct driver *d) {
  memset(&d->is, 0, offsetof(struct driver, error) + 1 - offsetof(struct driver, is));
  d->is.init = d->is.gpu_count = -1;
}

/* The result of cudaguard_check_verdict(). cudaguard.h has the same structure. */
struct verdict {
  size_t size;
  int verdict, code, severity, level;
  char subject[16], component[256], built[32], found[32], message[2048], hint[512], not_judged[256];
};

/* The input and the result of the judge. */
struct judge_call {
  struct judge_manifest manifest;
  struct judge_facts facts;
  struct judge_cudart cudart;
  struct judge_result result;
  uint32_t cudart_row;
  uint16_t cudart_soname, cudart_path; /* stored texts */
};

#endif
