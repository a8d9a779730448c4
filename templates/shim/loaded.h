/* Loaded libraries. */
#ifndef CUDAGUARD_LOADED_H
#define CUDAGUARD_LOADED_H

#include "image.h"
#include "versions.h"

struct loaded {
  const char *name; /* soname or file name; null: any cuDNN loader library */
  char (*path)[PATH_MAX], (*soname)[NOTE_TEXT]; /* soname: or null. path: null if `name` is only the
                                                   start of the names to count */
  int found;
};

SHIM_FN int matches_loaded(const struct loaded *l, const char *name) {
  return l->path ? texts_are_equal(name, l->name) : starts_with(name, l->name);
}

SHIM_FN int visit_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  struct loaded *l = (struct loaded *)data;
  struct image im = make_image(info);
  const char *base, *hit = 0;
  (void)size;
  if (!im.file.name || !im.file.name[0]) return 0;
  base = base_name(im.file.name);
  if (l->name && matches_loaded(l, base)) hit = l->name;
  else read_image_names(&im);
  if (l->name) {
    if (im.soname && matches_loaded(l, im.soname)) hit = l->name;
  } else if (im.soname && parse_major_in_name(im.soname)) {
    hit = im.soname;
  } else if (parse_major_in_name(base) || texts_are_equal(base, CUDNN_FILE)) {
    hit = base;
  }
  if (!hit) return 0;
  if (l->found++ || !l->path) return 1;
  copy_path(l->path, im.file.name);
  if (l->soname) copy_text(*l->soname, sizeof *l->soname, hit);
  return l->name != 0;
}

SHIM_FN int is_loaded(const char *name, char (*path)[PATH_MAX], char (*soname)[NOTE_TEXT]) {
  struct loaded l;
  l.name = name;
  l.path = path;
  l.soname = soname;
  l.found = 0;
  dl_iterate_phdr(visit_loaded, &l);
  return l.found == 1;
}

#endif
