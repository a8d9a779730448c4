/* The data model, and the functions that several files of the shim use. context.h has what differs
 * on Windows. */
#ifndef CUDAGUARD_SHIM_H
#define CUDAGUARD_SHIM_H

#ifdef _WIN32
#include "windows/platform.h"
#else
#include "platform.h"
#endif

#include "../cudaguard.h"
#include "coverage.h"
#include "findings.h"
#include "judge.h"
#include "tables.h"

/* Values of CUDAGUARD. */
enum { MODE_MANIFEST, MODE_OFF, MODE_WARN, MODE_ENFORCE };

enum {
  STATUS_REFUSED = 78,
  STATUS_OF_LOADER = 127,
  PATIENCE = 10, /* default time limit of all probes in seconds; many sleeping GPUs take time */
  REAP_MS = 200, /* time limit for killing a child, which the driver may delay */
  MAX_NOTES = 256,
  MAX_INNER = 8,
  MAX_GPUS = 64,
  MAX_FINDINGS = 48,
  MAX_TEXTS = 16 * 1024, /* bytes of strings of findings */
  MAX_PRINTED = 8,       /* findings on stderr */
  SHOW = 400,            /* characters of an untrusted string in a message */
  WHY = SHOW + 160,
  NOTE_TEXT = 256 /* size of a string in a note, with its NUL */
};

enum { NOTE_WHOLE, NOTE_IS_NEWER, NOTE_IS_DAMAGED, NOTE_IS_ABSENT };

/* A detected cuDNN, for the report. */
struct seen_cudnn {
  const char *from;
  uint32_t version, cuda;
  uint16_t path, picked_by; /* offsets of stored texts */
  int is_seen;
};

struct note {
  const unsigned char *descriptor;
  uint32_t size;
  int state, own;        /* own: the note is in the same file as this guard */
  const char *damage;    /* why the note is invalid */
  struct note_head head; /* zeros if the note is invalid or absent */
  int from_kernels;      /* rows are made from its image (kernels.c) */
  struct seen_cudnn cudnn;
  struct loaded_file file;
};

/* The effect of a finding on the verdict. REFUSES applies to errors only, OPEN to every severity.
 */
enum { REFUSES, OPEN, INFORMS };

enum message {
#define NAME(name, code, severity, verdict, rank, subject, one, two, three, sentence, hint) name,
  FINDINGS(NAME)
#undef NAME
};

struct finding {
  enum message kind;
  int severity;
  const struct note *component; /* that it is about */
  /* The values of the placeholders of its message, by their names. */
  uint32_t part, found, built, built_major, min, dropped_in, found_cuda, built_cuda, loader,
      needs_cuda, needs_release;
  uint32_t nvcc_major, cuda_major, newest_major, driver, cuda, kernel, answer, left_out, kept,
      made_from, made_to;
  /* Offsets of stored texts; 0: none. */
  uint16_t file, symbol, why, kinds, path, beside, picked_by, library, libcuda, code, built_for,
      gpus, archs, branch;
};

struct findings {
  int count;
  uint32_t dropped;
  size_t texts_used;                   /* bytes of stored texts */
  struct finding spare;                /* receives a finding if the table is full */
  struct finding at[MAX_FINDINGS + 2]; /* two more report dropped findings and notes */
};

/* A sublibrary of cuDNN. */
struct part {
  struct judge_part is;
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

/* The driver and GPUs of this process. */
struct driver {
  char (*path)[PATH_MAX]; /* of libcuda, if its state is FOUND */
  struct judge_driver is;
  int chosen;       /* CUDA_VISIBLE_DEVICES selects GPUs */
  char error[SHOW]; /* why an existing libcuda cannot be loaded */
  struct judge_gpu gpu[MAX_GPUS];
};

/* The input and the result of the judge. */
struct judge_call {
  struct judge_manifest manifest;
  struct judge_cudart cudart;
  struct judge_result result;
  uint32_t cudart_row;
  uint16_t cudart_soname, cudart_path; /* stored texts */
};

/* Memory of the output. */
struct output {
  char page[16 * 1024];
  struct cudaguard_verdict verdict; /* of the finding that is written */
};

/* Builds a string in a buffer of the caller: without the heap, always NUL-terminated, truncated at
 * the end of the buffer. */
struct text {
  char *at;
  size_t used, size;
};

/* Offsets from SEEN on are not in a note; the lower byte is a PTX ISA, as in a row of GPUs. */
enum { SEEN = 0xff00 };

enum { NOTE_HEADER = 24 }; /* sizes, type and owner */

enum { LINES_OF_MESSAGE = 3 };

/* A row of the table of findings. Strings are offsets. The offsets of subjects are below 256. */
struct meaning {
  uint16_t code, sentence, hint, line[LINES_OF_MESSAGE];
  uint8_t severity : 4, verdict : 4;
  uint8_t rank, subject;
};

#ifdef _WIN32
#include "windows/context.h"
#else
#include "context.h"
#endif

/* Strings without the C library: text.c */
SHIM_API size_t text_length(const char *s);
SHIM_API int bytes_are_equal(const void *a, const void *b, size_t n);
SHIM_API int starts_with(const char *s, const char *with);
SHIM_API int texts_are_equal(const char *a, const char *b);
SHIM_API const char *find_text(const char *s, const char *what);
SHIM_API const char *base_name(const char *path);
SHIM_API void copy_text(char *to, size_t size, const char *s);
SHIM_API void copy_path(char (*to)[PATH_MAX], const char *s);
SHIM_API const char *read_name(const char *list, char *name);
SHIM_API struct text start_text(char *to, size_t size);
SHIM_API struct text continue_path(char (*path)[PATH_MAX]);
SHIM_API void put_char(struct text *t, char c);
SHIM_API void put(struct text *t, const char *s);
SHIM_API int is_truncated(const struct text *t);
SHIM_API void shorten_text(struct text *t, size_t to);
SHIM_API void put_number(struct text *t, uint64_t n);
SHIM_API void put_pair(struct text *t, uint32_t major, uint32_t minor);
SHIM_API void put_capability(struct text *t, uint32_t cc);
SHIM_API void put_cuda(struct text *t, uint32_t n);
SHIM_API void put_version(struct text *t, uint32_t packed);
SHIM_API void put_release(struct text *t, uint32_t n);
SHIM_API void put_sanitized(struct text *t, const char *s, int json);
SHIM_API void put_untrusted(struct text *t, const char *s);
SHIM_API long parse_number(const char **s, long most);
SHIM_API int parse_numbers(const char *s, long least, uint32_t n[3]);
SHIM_API uint32_t parse_major_in_name(const char *name);
SHIM_API uint32_t decode_version(uint64_t n);

/* Notes: notes.c */
SHIM_API int is_note_readable(const struct note *n);
SHIM_API const char *read_note_text(const struct note *n, struct text_ref ref,
                                    char (*text)[NOTE_TEXT]);
SHIM_API union row read_note_row(const struct note *n, uint32_t i);
SHIM_API int is_row_known(const union row *row);
SHIM_API void put_component(struct text *t, const struct note *n);
SHIM_API uint32_t read_toolkit(const struct note *n);
SHIM_API int collect_notes(struct context *cx, const unsigned char *p, size_t left,
                           const struct loaded_file *file, int own, int keep);
SHIM_API void add_absent_note(struct context *cx, const struct loaded_file *file);

/* Findings and their messages: findings.c */
SHIM_API const struct meaning *get_meaning(const struct finding *f);
SHIM_API int is_about_driver(const struct finding *f);
SHIM_API const char *get_text(uint32_t offset);
SHIM_API int put_filled(struct context *cx, struct text *t, const char *format,
                        const struct finding *f);
SHIM_API int names_component(const struct finding *f);
SHIM_API int put_line(struct context *cx, struct text *t, const char *before,
                      const struct finding *f, int k);
SHIM_API int refuses(struct context *cx, const struct note *n);
SHIM_API int reports_note(struct context *cx, const struct note *n);
SHIM_API int in_scope(struct context *cx, const struct note *n);
SHIM_API uint16_t store_last_text(struct context *cx, const struct text *t);
SHIM_API struct text start_stored_text(struct context *cx);
SHIM_API uint16_t store_text(struct context *cx, const char *s);
SHIM_API uint16_t store_untrusted_text(struct context *cx, const char *s);
SHIM_API struct finding *add_finding_with_severity(struct context *cx, enum message kind,
                                                   int severity);
SHIM_API struct finding *add_finding(struct context *cx, enum message kind);
SHIM_API void report_all_dropped(struct context *cx);
SHIM_API const struct finding *find_decisive(struct context *cx, int verdict);
SHIM_API int get_result(struct context *cx);

/* The judge of the notes of this process: verdict.c */
SHIM_API void reset_cudnn(struct cudnn *c);
SHIM_API void reset_driver(struct driver *d);
SHIM_API void put_not_judged(struct context *cx, struct text *t, size_t from, const struct note *n,
                             const char *between);
SHIM_API void judge(struct context *cx, int level, int late);

/* Output: stderr, and the report: report.c */
SHIM_API void compose_verdict(struct context *cx, const struct finding *f,
                              struct cudaguard_verdict *v);
SHIM_API void print_text(const char *text);
SHIM_API void read_mode(struct context *cx, int prints);
SHIM_API void judge_start(struct context *cx);

/* Functions of each system */
SHIM_API void append_to_file(struct context *cx, const char *path, const char *at, size_t size);
SHIM_API char *allocate_pages(size_t size);
SHIM_API void free_pages(char *at, size_t size);
SHIM_API void read_host_name(struct context *cx, char *to, size_t size);
SHIM_API const char *get_variable(const char *name);
SHIM_API int get_process(void);
SHIM_API int is_variable_one(const char *name);
SHIM_API const char *find_program(struct context *cx);
SHIM_API const char *get_object_path(struct context *cx, const char *name);
SHIM_API void read_start_time(struct context *cx, char *to, size_t size);
SHIM_API union row get_row(struct context *cx, const struct note *n, uint32_t i);
SHIM_API const char *read_row_text(struct context *cx, const struct note *n, struct text_ref ref,
                                   char (*text)[NOTE_TEXT]);
SHIM_API uint32_t make_seen_rows(struct context *cx, const struct note *n);
SHIM_API void exit_now(int status);
SHIM_API void detect_needed(struct context *cx, struct note *n, uint32_t needs, int late);
SHIM_API void judge_slots(struct context *cx);

#endif
