/* The judge of a start: the findings about a program on a host. Its input is the requirements in
 * the program's manifest, and facts about the host. It is a pure function: it has no state, and
 * writes only to `struct judge_result`. The shim calls it with the facts that it detected. The
 * command compiles the same file (judge_ffi.rs).
 *
 * Findings are codes, numbers and indices. The caller writes the text. */
#ifndef CUDAGUARD_JUDGE_H
#define CUDAGUARD_JUDGE_H

#include "attributes.h"
#include "note_layout.h"

#include <stddef.h>
#include <stdint.h>

/* A row; `kind` selects the member. */
union row {
  uint16_t kind;
  struct library_row cudnn;
  struct part_row inner;
  struct driver_row driver;
  struct gpu_row gpu;
};

/* No CUDA machine is big-endian, so a struct with these members has the layout of the bytes. */
typedef char the_head_is_as_long_as_it_is_written[sizeof(struct note_head) == HEAD_SIZE ? 1 : -1];
typedef char a_row_is_as_long_as_it_is_written[sizeof(union row) == ROW_SIZE ? 1 : -1];

/* Rows, one after the other. They need no alignment. */
struct judge_rows {
  const void *at;
  uint32_t count;
  uint32_t stride; /* bytes from a row to the next: ROW_SIZE or more */
};

/* The requirements of a program. */
struct judge_manifest {
  struct judge_rows rows[2]; /* counted as one list: those of the note, and those that the shim
                                derived from the kernels of an unsealed file */
  uint32_t gpu;              /* GPU_AUTO, GPU_REQUIRED, GPU_OPTIONAL */
  uint32_t partial;          /* PARTIAL_SILENT, PARTIAL_REFUSES */
  uint32_t built_cuda;       /* the CUDA that it was built with, as 12040; 0: unknown */
  uint32_t cudart_built;     /* version of the linked shared cudart, packed as in rows;
                                0: none, or unknown */
};

/* Set if facts marked "described" may be known. Only the description of a host has them, and the
 * shim is compiled without their code. */
#ifdef CUDAGUARD_EXPORT_JUDGE
enum { HAS_DESCRIBED_FACTS = 1 };
#else
enum { HAS_DESCRIBED_FACTS = 0 };
#endif

/* How a group of facts was detected. */
enum judge_source {
  NOT_DETECTED, /* not yet: the judge returns the groups that it needs */
  BY_FILES,     /* only by files: the libraries may contradict, and nothing refuses */
  DETECTED      /* finally: unknown facts remain unknown */
};

enum { UNKNOWN, ABSENT, FOUND };

/* A library that cuDNN loads. */
struct judge_part {
  uint32_t row;     /* the row that requires it, or NO_ROW */
  uint32_t state;   /* UNKNOWN, ABSENT, FOUND */
  uint32_t version; /* packed as in rows; 0: unknown */
};

/* The cuDNN that the program loads, or would load. */
struct judge_cudnn {
  const struct judge_part *parts;
  uint32_t part_count;
  uint32_t part_stride; /* bytes from a part to the next */
  uint32_t source;      /* enum judge_source */
  uint32_t state;       /* UNKNOWN, ABSENT, FOUND */
  uint32_t is_guess;    /* by files, and only the dynamic linker can find it or one of its parts */
  uint32_t has_file;    /* if UNKNOWN: there is a file, which cannot be examined */
  uint32_t major;       /* by its name; 0: unknown */
  uint32_t version;     /* packed as in rows; 0: unknown */
  uint32_t loader;    /* the version of the library that opens the parts, by its file; 0: unknown */
  uint32_t is_minor;  /* described: the patch of `loader` is unknown */
  uint32_t made_with; /* the CUDA of the cudart inside, as 12040; 0: unknown */
};

/* The shared cudart that the program loads. */
struct judge_cudart {
  uint32_t source;  /* enum judge_source */
  uint32_t state;   /* UNKNOWN, ABSENT, FOUND */
  uint32_t version; /* by its file's name, packed as in rows; 0: unknown */
};

/* The support of a GPU by a driver. */
enum judge_driven {
  IS_DRIVEN,     /* nothing contradicts */
  MAY_BE_DRIVEN, /* only drivers from `first_cuda`, `first_release` on certainly drive it */
  NOT_YET_DRIVEN,
  NO_LONGER_DRIVEN
};

enum judge_product { PRODUCT_UNKNOWN, PRODUCT_OF_DATA_CENTERS, PRODUCT_OF_CONSUMERS };

/* A GPU that the process sees. */
struct judge_gpu {
  uint32_t cc;      /* compute capability, major << 8 | minor; 0: unknown */
  uint32_t product; /* described, enum judge_product: cuda-compat supports no consumer GPU */
  uint32_t driven;  /* described, enum judge_driven */
  uint32_t branch;  /* if NO_LONGER_DRIVEN: the last branch that drives it */
  uint32_t first_cuda, first_release; /* if NOT_YET_DRIVEN or MAY_BE_DRIVEN; 0: unknown */
};

/* The support for older kernel modules in the ELF note of libcuda. */
enum judge_compat {
  COMPAT_UNKNOWN,
  COMPAT_NONE,     /* it is the libcuda of a driver, and has no such note */
  COMPAT_LISTED,   /* the note lists the branch of the kernel module */
  COMPAT_UNLISTED, /* the note lists other branches */
  COMPAT_ANY       /* the note lists none, as on Jetson */
};

/* The driver and the GPUs. Releases are wide: branch << 20 | minor << 8 | patch. */
struct judge_driver {
  const struct judge_gpu *gpus;
  int32_t gpu_count;    /* number of GPUs that the process sees; -1: unknown */
  int32_t init;         /* the result of cuInit; -1: unknown */
  uint32_t source;      /* enum judge_source */
  uint32_t state;       /* UNKNOWN, ABSENT, FOUND */
  uint32_t cannot_load; /* if UNKNOWN: libcuda exists, but cannot be loaded */
  uint32_t user;        /* the release of libcuda; 0: unknown */
  uint32_t kernel;      /* the release of the kernel module; 0: unknown */
  uint32_t branch;      /* the branch of libcuda as Linux numbers it; 0: unknown, or the last branch
                           of a GPU does not apply (WSL, Jetson) */
  uint32_t cuda;        /* the CUDA version that libcuda supports, as 12040; 0: unknown */
  uint32_t least_cuda;  /* described, if `cuda` is unknown: it supports this version at least */
  uint32_t most_cuda;   /* described, if `cuda` is unknown: and this one at most; 0: unknown */
  uint32_t compat;      /* described, enum judge_compat */
  uint32_t compiler;    /* UNKNOWN, ABSENT, FOUND: the library that compiles PTX. If it remains
                           unknown, the driver counts as complete */
  uint32_t compiler_source; /* enum judge_source */
  uint32_t forces_ptx;      /* FOUND: CUDA_FORCE_PTX_JIT=1; UNKNOWN counts as ABSENT */
  uint32_t disables_ptx;    /* FOUND: CUDA_DISABLE_PTX_JIT=1; UNKNOWN counts as ABSENT */
};

/* The host. A group of zeros, with -1 for `gpu_count` and `init`, contains no known fact. */
struct judge_facts {
  const struct judge_cudnn *cudnn;
  const struct judge_cudart *cudart;
  const struct judge_driver *driver;
};

/* Findings, each named as its message in findings.toml. */
#define JUDGE_FINDINGS(X)               \
  X(CUDNN_OTHER_MAJOR)                  \
  X(CUDNN_OLDER)                        \
  X(CUDNN_OLDER_PATCH)                  \
  X(CUDNN_INNER_MISSING)                \
  X(CUDNN_INNER_MISSING_NEEDED)         \
  X(CUDNN_ABSENT)                       \
  X(CUDNN_INNER_MIXED)                  \
  X(CUDNN_OTHER_CUDA)                   \
  X(CUDNN_CANNOT_TELL)                  \
  X(CUDNN_CANNOT_TELL_NOT_LOADED)       \
  X(CUDART_OLDER)                       \
  X(CUDART_UNKNOWN)                     \
  X(DRIVER_TOO_OLD)                     \
  X(DRIVER_TOO_OLD_NONE_KNOWN)          \
  X(DRIVER_TOO_OLD_FOR_CODE)            \
  X(DRIVER_TOO_OLD_FOR_CODE_NONE_KNOWN) \
  X(DRIVER_TOO_OLD_FOR_CODE_COMPRESSED) \
  X(DRIVER_TOO_OLD_FOR_CODE_FORCED)     \
  X(NO_CODE_FOR_GPU)                    \
  X(DRIVER_MISMATCH)                    \
  X(FORWARD_COMPAT_UNSUPPORTED)         \
  X(STUB_DRIVER)                        \
  X(DRIVER_MISSING)                     \
  X(JIT_DISABLED)                       \
  X(JIT_MISSING)                        \
  X(GPU_MISSING)                        \
  X(PARTIAL_CODE)                       \
  X(CUDNN_TOO_NEW_FOR_GPU)              \
  X(JIT_FORCED)                         \
  X(CUDNN_NEEDS_NEWER_DRIVER)           \
  X(NOTHING_TO_SEE)                     \
  X(DRIVER_CANNOT_TELL)                 \
  X(DRIVER_CANNOT_TELL_ANSWER)          \
  X(DRIVER_CANNOT_TELL_NOT_LOADED)      \
  X(DRIVER_CANNOT_TELL_UNSURE)          \
  X(DRIVER_CANNOT_TELL_NEWER_PTX)       \
  X(DRIVER_CANNOT_TELL_FORCED)          \
  X(CUDNN_BEFORE_THIS_GPU)              \
  X(GPU_NOT_FOR_DRIVER)

/* Findings about described facts. */
#define DESCRIBED_FINDINGS(X)  \
  X(CUDNN_INNER_MIXED_LOADER)  \
  X(DRIVER_CANNOT_TELL_BRANCH) \
  X(DRIVER_CANNOT_TELL_DRIVES) \
  X(GPU_NOT_FOR_DRIVER_YET)    \
  X(KERNEL_MODULE_UNKNOWN)

enum judge_code {
#define JUDGE_NAME(name) JUDGE_##name,
  JUDGE_FINDINGS(JUDGE_NAME) DESCRIBED_FINDINGS(JUDGE_NAME)
#undef JUDGE_NAME
      JUDGE_CODES,
  /* Results of a row without a finding. */
  FITS = JUDGE_CODES,
  IS_UNKNOWN
};

#define NO_ROW 0xffffffffu

/* In place of a PTX ISA: some machine code may have no PTX. */
enum { MIXED_ISA = 1 };

struct judge_finding {
  uint64_t gpus;     /* the affected GPUs, as bits by their index */
  uint64_t parts;    /* the affected parts, as bits */
  uint32_t code;     /* enum judge_code */
  uint32_t severity; /* INFO, WARNING, ERROR */
  uint32_t row;      /* the row that it is about, or NO_ROW */
  uint32_t version;  /* CUDNN_INNER_MIXED: that of the part; CUDNN_TOO_NEW_FOR_GPU: the first that
                        dropped the GPU; CUDNN_BEFORE_THIS_GPU: the newest major of GPUs that cuDNN
                        has code for */
  uint32_t needs_cuda, needs_release; /* the required driver: 12040, wide; 0: unknown */
  uint32_t isa; /* if a variable forces PTX: major << 8 | minor, or MIXED_ISA; else 0 */
  uint32_t unused;
};

/* Groups of facts that may change the verdict, to be detected in this order. */
enum judge_need {
  NEED_CUDNN = 1,
  NEED_CUDNN_ANSWER = 2, /* cuDNN must be called */
  NEED_CUDART = 4,
  NEED_DRIVER = 8,
  NEED_COMPILER = 16,
  NEED_DRIVER_ANSWER = 32 /* the driver must be called */
};

/* Unknown facts that leave the verdict about the driver unknown. */
enum judge_unknown {
  UNKNOWN_DRIVER = 1,
  UNKNOWN_RELEASE = 2,
  UNKNOWN_GPUS = 4,
  UNKNOWN_CAPABILITY = 8,
  UNKNOWN_PRODUCT = 16, /* cuda-compat does not support all */
  UNKNOWN_PAIR = 32     /* libcuda may not work on the kernel module */
};

struct judge_result {
  struct judge_finding *findings; /* array of the caller */
  uint32_t capacity;
  uint32_t count;
  uint32_t dropped;     /* findings beyond the capacity; an error replaces another finding */
  uint32_t needs;       /* enum judge_need, as bits */
  uint32_t unknown;     /* enum judge_unknown, as bits; for described hosts */
  uint32_t cudnn;       /* the version that the program loads, if of the major built with; or 0 */
  uint32_t made_with;   /* the CUDA of the cudart inside it; or 0 */
  uint32_t library;     /* the row that requires it, or NO_ROW */
  uint64_t usable_gpus; /* GPUs with code, and without an error */
};

/* Judges a program on a host. Sets everything in `result` but `findings` and `capacity`. GPUs and
 * parts beyond 64 are ignored. The command exports the function; in the shim it is static. */
#ifdef CUDAGUARD_EXPORT_JUDGE
#define JUDGE_LINKAGE
void cudaguard_judge_start(const struct judge_manifest *manifest, const struct judge_facts *facts,
                           struct judge_result *result);
#else
#define JUDGE_LINKAGE SHIM_API
SHIM_API void cudaguard_judge_start(const struct judge_manifest *manifest,
                                    const struct judge_facts *facts, struct judge_result *result);
#endif

#endif
