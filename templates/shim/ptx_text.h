/* PTX text in the read-only data of an unsealed file: `include_str!`, `.incbin`, literals. The
 * driver must compile it. cargo-cudaguard/src/binary/kernels/ptx.rs has the same rule for a header;
 * a test compares both. */
#ifndef CUDAGUARD_PTX_TEXT_H
#define CUDAGUARD_PTX_TEXT_H

#include "context.h"
#include "coverage.h"
#include "image.h"
#include "versions.h"

/* More read-only data is not searched, because that takes time. */
enum { MOST_SEARCHED = 1 << 20 };

/* The first bytes of a fatbin container and of an ELF file, and e_machine of a cubin. */
#define CONTAINER 0xba55ed50u
enum { ELF_MAGIC = 0x464c457f, CUDA_MACHINE = 190 };

/* Skips blanks and comments to the end of a line. */
SHIM_FN const char *skip_blank(const char *s) {
  for (;; s++)
    if (s[0] == '/' && s[1] == '/') {
      while (s[1] && s[1] != '\n') s++;
    } else if (*s != ' ' && (*s < '\t' || *s > '\r')) {
      return s;
    }
}

/* Skips blanks and this text; returns null if another text follows. */
SHIM_FN const char *skip_text(const char *s, const char *text) {
  s = skip_blank(s);
  return starts_with(s, text) ? s + text_length(text) : 0;
}

/* Parses a module after `.version`. Returns whether it is one, and declares anything: otherwise it
 * is text about PTX. */
SHIM_FN int parse_ptx(const char *s, struct code *code) {
  const char *rest;
  long major, minor, arch;
  s = skip_blank(s);
  major = parse_number(&s, 99);
  if (major < 0 || *s++ != '.') return 0;
  minor = parse_number(&s, 15);
  if (minor < 0 || !(s = skip_text(s, ".target")) || !(s = skip_text(s, "sm_"))) return 0;
  arch = parse_number(&s, 999);
  code->isa = (uint16_t)(major << 8 | minor);
  if (arch < 10) return 0;
  code->is = (uint16_t)(IS_PTX | arch << 2);
  if (*s == 'a') code->is |= IS_SPECIFIC;
  if (*s == 'f') code->is |= IS_FAMILY;
  s += (code->is & SUFFIX) != 0;
  if (*s != ',' && (unsigned char)*s > ' ') return 0;
  while (*s && *s != '\n') s++; /* `, debug` */
  rest = skip_text(s, ".address_size");
  if (rest) s = skip_blank(rest);
  if (rest) parse_number(&s, 64);
  return *skip_blank(s) == '.';
}

/* For functions that read the bytes of any object, which AddressSanitizer would report. */
#define ANY_BYTES __attribute__((no_sanitize_address))

/* Adds the module at this place, if it is one. Kernels that set conditions of CUDA graphs run only
 * if the driver has such graphs, so they require nothing. */
ANY_BYTES SHIM_FN void add_ptx(struct context *cx, const char *at, const char *end) {
  static const char marks[2][24] = {".version", "cudaGraphSetConditional"};
  struct code *known = cx->ptx, code = {0, 0, 0};
  size_t size;
  for (size = 0; size < 8; size++)
    if (at[size] != marks[0][size]) return;
  for (at += 8, size = 0; at + size < end && size + 1 < sizeof cx->text; size++)
    cx->text[size] = at[size];
  cx->text[size] = 0;
  if (!parse_ptx(cx->text, &code)) return;
  /* A module ends with a NUL, or another one follows. */
  for (size = 0; end - at > 2 && *at && (at[0] != '.' || at[1] != 'v' || at[2] != 'e'); at++) {
    size = *at == marks[1][size] ? size + 1 : *at == 'c';
    if (size == sizeof marks[1] - 1) return;
  }
  for (; known < cx->ptx + cx->ptx_count; known++)
    if (known->is == code.is && known->isa == code.isa) return;
  if (cx->ptx_count == MAX_PTX) return;
  *known = code;
  cx->ptx_count++;
}

ANY_BYTES SHIM_FN void search_segment(struct context *cx, const char *at, const char *end) {
  for (; end - at > 8; at++)
    if (at[7] != '.' && (at[7] < 'e' || at[7] > 'v')) at += 7; /* it is not in ".version" */
    else if (*at == '.') add_ptx(cx, at, end);
}

/* Returns whether a segment may contain a cubin or a fatbin container. */
ANY_BYTES SHIM_FN int has_bare_code(struct context *cx, const char *at, const char *end) {
  uint32_t mark;
  for (; end - at > 18; at++) {
    if (*at != 0x50 && *at != 0x7f) continue;
    memcpy(&mark, at, sizeof mark);
    if ((mark == CONTAINER && at != (const char *)cx->own_container) ||
        (mark == ELF_MAGIC && at[18] == (char)CUDA_MACHINE))
      return 1;
  }
  return 0;
}

/* Searches PTX in the read-only data of this file. An executable segment contains such data if it
 * begins with the headers of the file. */
SHIM_FN void search_ptx(struct context *cx) {
  enum { COUNTS, SEARCHES, CHECKS };
  const struct image *im = &cx->own;
  size_t size = 0;
  int k, pass;
  if (cx->is_ptx_searched) return;
  cx->is_ptx_searched = 1;
  for (pass = COUNTS; pass <= CHECKS && size <= MOST_SEARCHED; pass++)
    for (k = 0; k < im->file.n; k++) {
      const ElfW(Phdr) *ph = &im->file.ph[k];
      const char *at = (const char *)(im->file.base + ph->p_vaddr), *end = at + ph->p_filesz;
      if (ph->p_type != PT_LOAD || (ph->p_flags & (PF_R | PF_W)) != PF_R ||
          ((ph->p_flags & PF_X) && ph->p_offset))
        continue;
      if (pass == COUNTS) size += ph->p_filesz;
      else if (pass == SEARCHES) search_segment(cx, at, end);
      /* If there is other code, the program may prefer it to the PTX. */
      else if (cx->ptx_count && !cx->codes && has_bare_code(cx, at, end)) cx->ptx_count = 0;
    }
}

#endif
