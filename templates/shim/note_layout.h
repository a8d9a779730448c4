/* Generated from guard-core/src/manifest/note/layout.rs: the layout of a note's descriptor. MANIFEST.md
 * documents each value. `CUDAGUARD_BLESS=1 cargo test -p cudaguard --lib generated` writes it. */
#ifndef CUDAGUARD_NOTE_LAYOUT_H
#define CUDAGUARD_NOTE_LAYOUT_H

#include <stdint.h>

/* A text: the offset of its bytes in the descriptor, and how many there are. */
struct text_ref {
  uint16_t at, length;
};

struct note_head {
  char magic[8];
  uint16_t revision;
  uint16_t rows;
  uint16_t rows_at;
  uint16_t row_size;
  uint16_t json_at;
  uint16_t json_size;
  uint8_t mismatch;
  uint8_t gpu;
  uint8_t library;
  uint8_t archs_known;
  uint8_t sealed;
  uint8_t partial;
  uint16_t unused_26;
  struct text_ref name;
  struct text_ref version;
  struct text_ref cudaguard;
  struct text_ref toolkit;
};

struct library_row {
  uint16_t kind;
  uint16_t flags;
  uint32_t min;
  uint32_t below;
  uint32_t built;
  uint32_t drops_gpus_from;
  uint16_t oldest_gpu;
  uint16_t oldest_gpu_before;
  struct text_ref soname;
  struct text_ref library;
  struct text_ref names;
  uint8_t newest_gpus;
  uint8_t newest_gpus_from;
  uint8_t newest_gpus_before;
  uint8_t newest_gpus_below_cuda;
};

struct part_row {
  uint16_t kind;
  uint16_t needed;
  uint32_t older_cuda;
  uint32_t older_release;
  uint32_t newer_cuda;
  uint32_t newer_release;
  uint32_t unused_20;
  struct text_ref file;
  struct text_ref symbol;
  struct text_ref made_with;
  uint32_t unused_36;
};

struct driver_row {
  uint16_t kind;
  uint16_t unused_2;
  uint32_t unused_4;
  uint32_t unused_8;
  uint32_t cudart_built;
  uint32_t cuda;
  uint32_t release;
  struct text_ref because;
  struct text_ref cudart;
  struct text_ref names;
  uint32_t unused_36;
};

struct gpu_row {
  uint16_t kind;
  uint16_t served_by;
  uint32_t lowest;
  uint32_t highest;
  uint32_t arch;
  uint32_t cuda;
  uint32_t release;
  struct text_ref code;
  struct text_ref built_for;
  uint32_t sure_cuda;
  uint32_t sure_release;
};

enum { REVISION = 1 };
enum {
  HEAD_SIZE = 44,
  ROW_SIZE = 40,
};
enum {
  ROW_LIBRARY = 1,
  ROW_PART = 2,
  ROW_DRIVER = 3,
  ROW_GPU = 4,
};
enum {
  LIBRARY_LINKED = 1,
  LIBRARY_DLOPENED = 2,
  LIBRARY_STATIC = 4,
  LIBRARY_PATCH = 8,
  LIBRARY_REQUIRED = 16,
};
enum {
  BY_CUBIN = 1,
  BY_PTX = 2,
  BY_SOME = 4,
  BY_NONE = 8,
  BY_UNKNOWN = 16,
  NO_PTX = 32,
  PTX_ISA = 256,
};
enum {
  MISMATCH_WARNS = 0,
  MISMATCH_REFUSES = 1,
};
enum {
  GPU_AUTO = 0,
  GPU_REQUIRED = 1,
  GPU_OPTIONAL = 2,
};
enum {
  LIBRARY_REPORTS = 0,
  LIBRARY_ENFORCES = 1,
};
enum {
  ARCHS_UNSEALED = 0,
  ARCHS_DECLARED = 1,
  ARCHS_OBSERVED = 2,
};
enum {
  PARTIAL_SILENT = 0,
  PARTIAL_REFUSES = 1,
};

#endif
