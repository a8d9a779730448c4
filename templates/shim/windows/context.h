/* The state of the shim on Windows. See ../context.h. */
#ifndef CUDAGUARD_CONTEXT_H
#define CUDAGUARD_CONTEXT_H

#include "model.h"

enum { MAX_MODULES = 512 };

/* The state of the shim, in zero-initialised memory. */
struct context {
  int program, mode, notes, seen, outcome, level, searches_kernels;
  int changes_search; /* this file calls functions that add directories to the search of DLLs */
  int library_path_is_unknown;
  int is_shared_used; /* `shared` may contain other bytes than zeros */
  int is_probe_skipped; /* never */
  uint32_t dropped_notes;
  long patience; /* 0: no other process is asked */
  struct {
    long tv_sec;
  } left;
  struct note *now; /* the note that is being checked */
  const struct note *gpu_rows_of;
  union row seen_row[1];    /* no rows: kernels are not read from memory */
  const unsigned char *own; /* the image with this guard */
  handle process;
  struct driver driver;
  struct {
    struct {
      struct cudnn cudnn; /* of the note that is being checked */
    } note;
    char page[16 * 1024];
  } shared;
  struct judge_call call;
  struct judge_gpu gpus[MAX_GPUS];
  struct judge_finding judged[MAX_FINDINGS];
  struct seen_cudnn seen_cudnn[MAX_SEEN];
  struct note note[MAX_NOTES];
  struct findings findings;
  struct stored_texts texts;
  handle modules[MAX_MODULES];
  struct {
    size_t used;
    char at[16 * 1024];
  } names; /* of modules with a note */
  wide wide[PATH_MAX], device[PATH_MAX];
  char libcuda[PATH_MAX]; /* nvcuda.dll */
  char libcuda_names[NOTE_TEXT]; /* not used: Windows has one driver */
  char self[PATH_MAX], found[PATH_MAX], real[PATH_MAX], text[1024];
  char value[PATH_MAX]; /* of the variable that was read last */
  struct verdict draft; /* of the finding that is printed */
};

#endif
