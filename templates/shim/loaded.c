/* What is loaded already. */

struct loaded {
  const char *name; /* soname or file name; null: any cuDNN loader library */
  char (*path)[PATH_MAX], (*soname)[TEXT]; /* soname: or null */
  int found;
};

CODE int on_loaded(struct dl_phdr_info *info, size_t size, void *data) {
  struct loaded *l = (struct loaded *)data;
  struct image im;
  const char *base, *hit = 0;
  (void)size;
  if (!info->dlpi_name || !info->dlpi_name[0]) return 0;
  image_of(&im, info);
  base = base_name(im.name);
  image_names(&im);
  if (l->name) {
    if (same(base, l->name) || (im.soname && same(im.soname, l->name))) hit = l->name;
  } else if (im.soname && major_in_name(im.soname)) {
    hit = im.soname;
  } else if (major_in_name(base) || same(base, CUDNN_STEM)) {
    hit = base;
  }
  if (!hit) return 0;
  if (l->found++) return 1;
  keep(l->path, im.name);
  if (l->soname) cut(*l->soname, sizeof *l->soname, hit);
  return l->name != 0;
}

CODE int is_loaded(const char *name, char (*path)[PATH_MAX], char (*soname)[TEXT]) {
  struct loaded l;
  l.name = name, l.path = path, l.soname = soname;
  l.found = 0;
  dl_iterate_phdr(on_loaded, &l);
  return l.found == 1;
}
