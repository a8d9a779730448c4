/* The state of the shim on Windows. See ../context.h. */
#ifndef CUDAGUARD_CONTEXT_H
#define CUDAGUARD_CONTEXT_H

enum { MAX_MODULES = 512 };

/* The state of the shim, in zero-initialised memory. */
struct context {
  int program, mode, notes, level, searches_kernels;
  int changes_search;   /* this file calls functions that add directories to the search of DLLs */
  int is_probe_skipped; /* never */
  uint32_t dropped_notes;
  long patience; /* 0: no other process is asked */
  struct {
    long tv_sec;
  } left;
  struct note *now;         /* the note that is being checked */
  union row seen_row[1];    /* no rows: kernels are not read from memory */
  const unsigned char *own; /* the image with this guard */
  struct driver driver;
  struct {
    struct {
      struct cudnn cudnn; /* of the note that is being checked */
    } note;
    struct output output;
  } shared;
  struct judge_call call;
  struct judge_finding judged[MAX_FINDINGS];
  struct note note[MAX_NOTES];
  struct findings findings;
  char texts[MAX_TEXTS]; /* see ../context.h */
  handle modules[MAX_MODULES];
  struct {
    size_t used;
    char at[16 * 1024];
  } names; /* of modules with a note */
  wide wide[PATH_MAX], device[PATH_MAX];
  char libcuda[PATH_MAX];              /* nvcuda.dll */
  char libcuda_names[NOTE_TEXT];       /* not used: Windows has one driver */
  char self[PATH_MAX], path[PATH_MAX]; /* path: of the DLL that is being examined */
  char value[PATH_MAX];                /* of the variable that was read last */
};

/* The start of the file that contains this guard; the linker defines it. */
extern const unsigned char __ImageBase[];

enum { READS_OWN_KERNELS = 0 };

/* An iterator over the DLLs that an image imports, or loads at the first call. */
struct imports {
  const unsigned char *image, *at;
  uint32_t left;
  int delayed;
};

struct import {
  const char *dll;
  uint64_t names; /* offset of the table of names */
};

#define LIBCUDA "libcuda.so.1" /* the name that a note records on every system */

/* Files, and this process: process.c */
SHIM_API struct context *get_context(void);
SHIM_API void write_out(long which, const char *at, size_t size, size_t most, long seconds);

/* Loaded objects, ELF files, and notes in memory: objects.c */
SHIM_API const char *get_image_text(const unsigned char *image, uint64_t offset);
SHIM_API char to_lower(char c);
SHIM_API const char *file_name(const char *path);
SHIM_API struct imports start_imports(const unsigned char *image, int delayed);
SHIM_API int next_import(struct imports *all, struct import *import);
SHIM_API uint64_t next_function(const unsigned char *image, uint64_t *names);
SHIM_API int imports_function(const unsigned char *image, const char *function);
SHIM_API int exports_function(const unsigned char *image, const char *function);
SHIM_API const wide *widen(struct context *cx, const char *s);
SHIM_API const char *narrow(const wide *from, char *to, int size);
SHIM_API const unsigned char *get_image(handle dll);
SHIM_API enum lookup find_dll(struct context *cx, const char *name, handle *dll);
SHIM_API void release_dll(handle dll);
SHIM_API void get_dll_path(struct context *cx, handle dll, char (*to)[PATH_MAX]);
SHIM_API int read_file_version(handle dll, uint16_t version[4]);
SHIM_API void read_notes(struct context *cx);

#endif
