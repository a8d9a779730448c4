/* Judges the cuDNN that was detected. */
#ifndef CUDAGUARD_JUDGE_CUDNN_H
#define CUDAGUARD_JUDGE_CUDNN_H

#include "collection.h"
#include "own_kernels.h"
#include "detect_cudnn.h"

/* The oldest that the program accepts. */
CODE uint32_t get_least_accepted(const struct library_row *row) {
  return (row->flags & LIBRARY_PATCH) && row->built > row->min ? row->built : row->min;
}

CODE struct finding *add_cudnn_finding(struct context *cx, enum message words, int severity,
                                       const struct cudnn *c, const struct library_row *row) {
  struct finding *f = add_weighed_finding(cx, words, severity);
  const char *by = c->by, *path = c->path;
  f->min = get_least_accepted(row);
  f->built = row->built;
  f->built_major = row->built >> 16;
  f->found = c->version;
  f->path = keep_shown_text(cx, c->path);
  f->library = keep_shown_text(cx, c->soname);
  f->picked_by = keep_text(cx, c->why);
  /* Names the library that has the version if it is in another folder. */
  for (; by && *by && *by == *path; path++) by++;
  if (by && (base_name(by) != by || base_name(path) != path))
    f->beside = keep_shown_text(cx, c->by);
  return f;
}

/* Converts a packed version to the form of CUDA versions: 12020. */
CALLED uint32_t convert_to_cuda(uint32_t packed) {
  return (packed >> 16) * 1000 + (packed >> 8 & 0xff) * 10;
}

CODE int is_same_minor(uint32_t one, uint32_t other) { return one >> 8 == other >> 8; }

CALLED struct finding *add_mixed(struct context *cx, uint32_t part, const struct cudnn *c,
                                 const struct library_row *row) {
  struct finding *f = add_cudnn_finding(cx, CUDNN_INNER_MIXED,
                                        is_same_minor(part, c->version) ? WARNING : ERROR, c, row);
  f->part = part;
  return f;
}

/* Judges a part. Missing parts that only some calls need are collected in `lacking`. */
CODE void judge_part(struct context *cx, const struct part *p, const struct cudnn *c,
                     const struct library_row *row, struct text *lacking) {
  struct finding *f;
  if (!p->known) return;
  if (!p->present && !p->needed) {
    put(lacking, ", ");
    put(lacking, p->file);
    return;
  }
  if (!p->present) {
    f = add_cudnn_finding(cx, CUDNN_INNER_MISSING_NEEDED, ERROR, c, row);
  } else if (p->version && c->version && p->version != c->version) {
    f = add_mixed(cx, p->version, c, row);
    f->beside = keep_shown_text(cx, p->path);
  } else {
    return;
  }
  f->library = keep_shown_text(cx, p->file);
}

/* The CUDA that the program was made with: its toolkit's, else its cudart's. 0 where neither is
 * known. */
CODE uint32_t get_built_cuda(struct context *cx, const struct note *n) {
  char text[NOTE_TEXT];
  uint32_t toolkit = read_toolkit(n), i;
  if (toolkit) return toolkit;
  for (i = 0; i < count_rows(cx, n); i++) {
    const union row row = get_row(cx, n, i);
    if (row.kind == ROW_DRIVER && read_row_text(cx, n, row.driver.because, &text) &&
        starts_with(text, "libcudart "))
      return row.driver.cuda;
  }
  return 0;
}

/* Judges the parts of a cuDNN, and adds one finding for all that are missing and that only some
 * calls need. */
CODE void judge_parts(struct context *cx, const struct cudnn *c, const struct library_row *row) {
  char files[SHOW];
  struct text lacking = start_text(files, sizeof files);
  int k;
  for (k = 0; k < c->parts; k++) judge_part(cx, &c->part[k], c, row, &lacking);
  if (lacking.used)
    add_cudnn_finding(cx, CUDNN_INNER_MISSING, WARNING, c, row)->library = keep_text(cx, files + 2);
}

CODE int lacks_needed_part(const struct cudnn *c) {
  int k;
  for (k = 0; k < c->parts; k++)
    if (c->part[k].known && !c->part[k].present && c->part[k].needed) return 1;
  return 0;
}

/* Judges a cuDNN that was found, of the major that was built with. */
CODE void judge_found_cudnn(struct context *cx, const struct cudnn *c,
                            const struct library_row *row) {
  const uint32_t min = get_least_accepted(row), built = get_built_cuda(cx, cx->now);
  struct finding *f;
  if (!c->version && !lacks_needed_part(c)) add_cudnn_finding(cx, CUDNN_CANNOT_TELL, INFO, c, row);
  if (c->version && c->version < min)
    add_cudnn_finding(cx, is_same_minor(c->version, row->built) ? CUDNN_OLDER_PATCH : CUDNN_OLDER,
                      ERROR, c, row);
  if (c->version && c->by_name && c->by_name != c->version) add_mixed(cx, c->by_name, c, row);
  judge_parts(cx, c, row);
  if (!c->cuda || !built || c->cuda / 1000 == built / 1000) return;
  f = add_cudnn_finding(cx, CUDNN_OTHER_CUDA, WARNING, c, row);
  f->found_cuda = c->cuda;
  f->built_cuda = built;
}

CODE void judge_cudnn(struct context *cx, const struct cudnn *c, const struct library_row *row) {
  const uint32_t major = c->version ? c->version >> 16 : parse_major_in_name(c->soname);
  if (c->state == ABSENT && (row->flags & LIBRARY_DLOPENED))
    add_cudnn_finding(cx, CUDNN_ABSENT, row->flags & LIBRARY_REQUIRED ? ERROR : INFO, c, row);
  if (c->state == UNKNOWN)
    add_cudnn_finding(cx, c->path[0] ? CUDNN_CANNOT_TELL : CUDNN_CANNOT_TELL_NOT_LOADED, INFO, c,
                      row);
  if (c->state != FOUND) return;
  if ((major && major != row->built >> 16) || (c->version && c->version >= row->below))
    add_cudnn_finding(cx, CUDNN_OTHER_MAJOR, ERROR, c, row);
  else judge_found_cudnn(cx, c, row);
}

#endif
