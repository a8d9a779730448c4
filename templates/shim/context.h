/* The data model: everything that the shim knows about its process. One `struct context` is passed
 * to the functions. It is in zero-initialised memory and never on the stack, because a thread with
 * 16 KiB of stack may call the shim. */
#ifndef CUDAGUARD_CONTEXT_H
#define CUDAGUARD_CONTEXT_H

/* The index of a flag in struct tags that no tag uses: the object is not searched for in the usual
 * directories, or an auditing library may select any file. */
enum { SPECIAL_SEARCH = 31 };

/* The values of a dynamic table by tag, without DT_NEEDED. Index 0 is DT_GNU_HASH. */
struct tags {
  ElfW(Addr) at[32];
};

struct image {
  struct loaded_file file;
  const ElfW(Dyn) * dynamic;
  const char *strings;
  const char *soname, *rpath, *runpath; /* in `strings`, or null */
  int has_special_search;               /* see SPECIAL_SEARCH */
};

enum { MAX_PHDRS = 48, MAX_TAGS = 128 };

struct elf {
  int is_open;
  long fd;
  int n;
  struct tags tags;
  ElfW(Ehdr) eh;
  ElfW(Phdr) ph[MAX_PHDRS];
  ElfW(Dyn) dynamic[MAX_TAGS + 1]; /* ends with DT_NULL */
};

/* A library file that is being examined. */
struct library_file {
  char path[PATH_MAX];
  struct elf elf; /* of the file, if it is open */
};

/* Memory of the child process. */
struct child_memory {
  char name[PATH_MAX], text[PATH_MAX];
};

/* GPU code in this file (kernels.c). */
enum { IS_LINKED = 2, IS_INPUT = 4, IS_PACKED = 8, BY_13 = 16 };

struct code {
  uint16_t is; /* 0: unreadable */
  uint16_t isa, how;
};

enum { MAX_PTX = 16 }; /* different PTX texts */

struct record; /* a record of a fatbin container (kernels.c) */

/* The state of the shim. It is in .bss, so it does not increase the size of the file. Each page
 * that is written costs time, so members that every start writes are at the beginning, and at the
 * beginning of `shared`, `findings` and `note`. */
struct context {
  int lookup_failed; /* a lookup failed with an error other than ENOENT, so absence is not proven */
  int lock;
  int process;      /* the process that started */
  int is_published; /* `published` has the verdict of the start */
  int is_checked;   /* `checked` has the verdict of check(), if no thread holds the lock */
  int started, program, mode;
  int startup;     /* number of objects that were loaded before `main`, after they are read */
  int first_noted; /* no guarded file is loaded before this one */
  int notes;
  uint32_t dropped_notes;
  int outcome, level;
  int is_probe_skipped; /* a debugger controls the process, so no child was created */
  long patience;        /* time limit of all probes in seconds; `left`: remaining time */
  struct timespec left;
  size_t answered;
  const char *library_path;
  const char *libc;        /* path of the C library, or null */
  const char *loader_name; /* path in the command line of `ld.so program`, or null */
  struct note *now;        /* the note that is being checked */
  struct image first, own; /* own: the file that contains this guard */
  int searches_kernels;    /* the shim searches for kernels, since this file is not sealed */
  int has_codes;           /* this file has containers with kernels */
  const struct record *first_record;
  const void *own_container; /* that of the shim */
  int is_ptx_searched, ptx_count;
  const struct note *gpu_rows_of; /* the note that the rows of GPUs belong to, or null */
  uint32_t gpu_rows;              /* number of these rows */
  struct judge_call call;
  struct driver driver;
  char libcuda_names[NOTE_TEXT];      /* names that the program passes to dlopen, one per line */
  struct cudaguard_verdict published; /* of the start; nothing changes it later */
  union {
    struct {
      struct cudnn cudnn;     /* of the note that is being checked */
      char runpath[PATH_MAX]; /* RUNPATH or RPATH of its file */
    } note;
    struct output output; /* used after all notes are checked */
  } shared;
  struct cudaguard_verdict checked; /* of check() */
  struct findings findings;
  struct judge_finding judged[MAX_FINDINGS];
  struct note note[MAX_NOTES];
  /* NUL-terminated strings of findings, each stored once. The first one is empty; a string that
   * does not fit is replaced by it. */
  char texts[MAX_TEXTS];
  struct driver probed;             /* result of the real driver in a child */
  struct code ptx[MAX_PTX];         /* PTX text in this file (kernels.c) */
  union row seen_row[1 + MAX_GPUS]; /* of cudart, and of GPUs */
  struct library_file file;         /* that is being examined */
  char libcuda[PATH_MAX], probed_libcuda[PATH_MAX], self[PATH_MAX];
  char plain_directory[NOTE_TEXT]; /* the last one of the library search */
  char asked[PATH_MAX];            /* the request to the child */
  union {
    char at[8192];
    struct child_memory child; /* in the child, instead of the answer */
  } answer;
};

/* On every system that reads kernels from memory. */
enum { READS_OWN_KERNELS = 1 };

/* Outcomes of a child process. */
enum { NOT_ASKED, NOBODY_TO_ASK, ANSWERED, DIED, HUNG };

/* The name of libcuda, with a mark in front: readers of a guarded file skip a marked name, and
 * count another one as the program's. An array, because linkers merge equal literals. */
static const char marked_libcuda[] = "guard:libcuda.so.1";
#define LIBCUDA (marked_libcuda + sizeof "guard:" - 1)
#define LIBJIT "libnvidia-ptxjitcompiler.so.1"

/* Files, and this process: process.c */
SHIM_API long record_failure(struct context *cx, long r);
SHIM_API long open_file(struct context *cx, const char *path, int how);
SHIM_API long stat_at(long dir, const char *path, struct stat *is, long how);
SHIM_API long get_file_size(struct context *cx, const char *path);
SHIM_API void close_file(long fd);
SHIM_API void write_out(long fd, const char *at, size_t left, size_t most, long seconds);
SHIM_API long read_text_at(struct context *cx, long dir, const char *path, char *to, size_t size);
SHIM_API long read_file_text(struct context *cx, const char *path, char *to, size_t size);
SHIM_API int read_link(const char *path, char (*link)[PATH_MAX]);
SHIM_API const char *find_variable(const char *name);
SHIM_API int count_variables(const char *name);
SHIM_API const ElfW(Phdr) * find_interpreter(const struct image *program);
SHIM_API int is_started_by_loader(const struct image *program);

/* Loaded objects, ELF files, and notes in memory: objects.c */
SHIM_API void read_tags(struct tags *t, const ElfW(Dyn) * d);
SHIM_API size_t count_mapped(const struct image *im, uintptr_t address);
SHIM_API const char *resolve_address(const struct image *im, ElfW(Addr) at);
SHIM_API struct image read_image(const struct loaded_file *file);
SHIM_API struct image read_visited(const struct dl_phdr_info *info);
SHIM_API const char *find_needed(const struct image *im, const char *stem);
SHIM_API int is_loaded(const char *name, char (*path)[PATH_MAX]);
SHIM_API void read_process(struct context *cx, int all);
SHIM_API void close_elf(struct elf *e);
SHIM_API enum lookup open_elf(struct context *cx, struct elf *e, const char *path);
SHIM_API const char *read_elf_string(const struct elf *e, int tag, char *to, size_t size);
SHIM_API uint32_t read_elf_word(const struct elf *e, const char *name);
SHIM_API uint32_t read_returned_constant(const struct elf *e, const char *name);

/* The search of the dynamic linker: search.c */
SHIM_API enum lookup search_library(struct context *cx, const char *file, const struct image *of,
                                    char (*to)[PATH_MAX], struct elf *e, char (*why)[WHY]);

/* Kernels of an unsealed file: kernels.c */
SHIM_API void read_own_kernels(struct context *cx);

/* Level 1: a child process: probe.c */
SHIM_API const char *join_compiler_path(char (*to)[PATH_MAX], const char *libcuda);
SHIM_API const char *get_answer(struct context *cx, char kind);
SHIM_API int ask_child(struct context *cx, const char *library, const struct cudnn *c);

#endif
