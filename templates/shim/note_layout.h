/* Made from guard-core/src/note/layout.rs: how the descriptor of a note is laid out (MANIFEST.md). Do not edit. */

/* Where a text's bytes start, from the start of the descriptor, and how many there are. */
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
  uint16_t unused;
  struct text_ref name;
  struct text_ref version;
  struct text_ref cudaguard;
  struct text_ref toolkit;
};

struct cudnn_row {
  uint16_t kind;
  uint16_t flags;
  uint32_t min;
  uint32_t below;
  uint32_t built;
  uint32_t drops_gpus_from;
  uint32_t oldest_gpu;
  struct text_ref soname;
  struct text_ref library;
  struct text_ref names;
  uint32_t unused;
};

struct inner_row {
  uint16_t kind;
  uint16_t needed;
  uint32_t unused[5];
  struct text_ref file;
  struct text_ref symbol;
  uint32_t unused_too[2];
};

struct driver_row {
  uint16_t kind;
  uint16_t unused;
  uint32_t unused_too[2];
  uint32_t cudart_built;
  uint32_t cuda;
  uint32_t release;
  struct text_ref because;
  struct text_ref cudart;
  uint32_t unused_last[2];
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

enum { REVISION = 1, HEAD_SIZE = 44, ROW_SIZE = 40 };
enum { ROW_CUDNN = 1, ROW_INNER = 2, ROW_DRIVER = 3, ROW_GPU = 4 };
enum { CUDNN_LINKED = 1, CUDNN_DLOPENED = 2, CUDNN_STATIC = 4, CUDNN_PATCH = 8, CUDNN_REQUIRED = 16 };
enum { BY_CUBIN = 1, BY_PTX = 2, BY_SOME = 4, BY_NONE = 8, NO_PTX = 32 };
enum { MISMATCH_REFUSES = 1 };
enum { GPU_REQUIRED = 1, GPU_OPTIONAL = 2 };
enum { LIBRARY_ENFORCES = 1 };
enum { PARTIAL_REFUSES = 1 };
