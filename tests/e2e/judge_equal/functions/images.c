/* Loaded objects: their segments, notes and dynamic tables: objects.c, kernels.c. */

static struct {
  unsigned char bytes[512];
} mapped __attribute__((aligned(8)));

static void put_note(unsigned char *at, uint32_t size, const char *begins) {
  static const unsigned char head[] = {10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'c', 'u', 'd', 'a', 'g', 'u', 'a', 'r', 'd', 0, 0, 0};
  memcpy(at, head, sizeof head);
  memcpy(at + 4, &size, sizeof size);
  memcpy(at + NOTE_HEADER, begins, strlen(begins));
}

static struct image map_segments(ElfW(Phdr) * ph, int n) {
  struct image im;
  memset(&im, 0, sizeof im);
  memset(ph, 0, (size_t)n * sizeof *ph);
  memset(&mapped, 0, sizeof mapped);
  im.file.base = (uintptr_t)&mapped;
  im.file.ph = ph;
  im.file.n = n;
  im.file.name = "libx.so";
  ph[0].p_type = PT_LOAD;
  ph[0].p_flags = PF_R;
  ph[0].p_filesz = 256;
  return im;
}

static void check_mapped(void) {
  ElfW(Phdr) ph[4];
  struct image im = map_segments(ph, 4);
  const uintptr_t base = im.file.base;
  IS(count_mapped(&im, base), 256);
  IS(count_mapped(&im, base + 255), 1);
  IS(count_mapped(&im, base + 256), 0);
  IS(count_mapped(&im, base - 1), 0);
  ph[1] = ph[0];
  ph[1].p_vaddr = ph[1].p_offset = 256;
  ph[1].p_filesz = 64;
  IS(count_mapped(&im, base + 255), 65);
  ph[1].p_flags = PF_W;
  IS(count_mapped(&im, base + 255), 1);
  ph[1].p_flags = PF_R;
  ph[1].p_type = PT_NOTE;
  IS(count_mapped(&im, base + 255), 1);
  /* The address of a segment by its offset: of several, that of its header. */
  ph[1].p_type = PT_LOAD;
  ph[1].p_vaddr = 300;
  ph[2].p_type = PT_NOTE;
  ph[2].p_offset = 256 + 8;
  IS(find_segment(&im, &ph[2]), base + 308);
  ph[2].p_offset = 255;
  IS(find_segment(&im, &ph[2]), base + 255);
  ph[2].p_offset = 320;
  IS(find_segment(&im, &ph[2]), 0);
  ph[1].p_offset = 128;
  ph[2].p_offset = 136;
  IS(find_segment(&im, &ph[2]), base + 136);
  ph[2].p_vaddr = 308;
  IS(find_segment(&im, &ph[2]), base + 308);
}

static void check_collected_notes(void) {
  ElfW(Phdr) ph[3];
  struct image im = map_segments(ph, 3);
  forget();
  IS(collect_image_notes(cx, &im, 0, 1), 0);
  ph[1].p_type = PT_NOTE;
  ph[1].p_filesz = 256;
  IS(collect_image_notes(cx, &im, 0, 1), 0);
  put_note(mapped.bytes + 4, 5, "first");
  put_note(mapped.bytes + 4 + NOTE_HEADER + 8, 8, "second");
  put_note(mapped.bytes + 4 + 2 * NOTE_HEADER + 20, 4, "third");
  put_note(mapped.bytes + 256 - NOTE_HEADER, 0, "");
  IS(collect_image_notes(cx, &im, 1, 0), 4);
  IS(cx->notes, 0);
  IS(collect_image_notes(cx, &im, 1, 1), 4);
  IS(cx->notes, 4);
  IS(collect_image_notes(cx, &im, 0, 1), 4);
  IS(cx->notes, 8);
  IS(cx->note[0].own, 1);
  IS(cx->note[0].size, 5);
  IS(memcmp(cx->note[0].descriptor, "first", 5), 0);
  IS(memcmp(cx->note[1].descriptor, "second", 6), 0);
  IS(memcmp(cx->note[2].descriptor, "third", 5), 0);
  SAYS(cx->note[2].file.name, "libx.so");
  ph[1].p_filesz = 257; /* more than is mapped */
  IS(collect_image_notes(cx, &im, 1, 0), 0);
  ph[1].p_filesz = 255;
  IS(collect_image_notes(cx, &im, 1, 0), 3);
  ph[2] = ph[1];
  IS(collect_image_notes(cx, &im, 1, 0), 6);
  ph[2] = ph[0];
  ph[0] = ph[1];
  ph[1].p_type = PT_NULL;
  IS(collect_image_notes(cx, &im, 1, 0), 3);
  forget();
  add_absent_note(cx, &cx->own.file);
  IS(cx->notes, 1);
  IS(cx->note[0].state, NOTE_IS_ABSENT);
  add_absent_note(cx, &cx->own.file);
  IS(cx->notes, 1);
  /* There is always room for it. */
  forget();
  while (make_room_for_note(cx, 0)) cx->note[cx->notes - 1].own = 0;
  add_absent_note(cx, &cx->own.file);
  IS(cx->note[MAX_NOTES - 1].state, NOTE_IS_ABSENT);
  IS(cx->note[MAX_NOTES - 1].own, 1);
  IS(cx->dropped_notes, 2);
  forget();
}

/* Whose notes are kept: those of all objects, or of those that were loaded with the program. */
static void check_kept_notes(void) {
  static const struct {
    int all, program, index, kept;
  } rows[] = {{1, 0, 9, 1}, {0, 1, 1, 1}, {0, 1, 2, 0}, {0, 0, 1, 0}};
  const int before = cx->startup;
  ElfW(Phdr) ph[3];
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    const struct image im = map_segments(ph, 3);
    struct dl_phdr_info info;
    struct walk w;
    forget();
    memset(&info, 0, sizeof info);
    memset(&w, 0, sizeof w);
    info.dlpi_addr = im.file.base;
    info.dlpi_phdr = ph;
    info.dlpi_phnum = 2;
    info.dlpi_name = "libx.so";
    ph[1].p_type = PT_NOTE;
    ph[1].p_filesz = 64;
    put_note(mapped.bytes, 4, "text");
    w.context = cx;
    w.all = rows[k].all;
    w.index = rows[k].index;
    cx->startup = 2;
    cx->program = rows[k].program;
    cx->first_noted = 1;
    IS(visit_image(&info, sizeof info, &w), 0);
    IS(cx->notes, rows[k].kept);
    IS(w.noted, 1);
    IS(cx->first_noted, 0);
    IS(w.index, rows[k].index + 1);
  }
  cx->startup = before;
}

static void check_dynamic_tables(void) {
  static const char strings[] = "\0libx.so.1\0libcudart.so.13\0dir/libcudnn.so\0libcudnn.so.9\0rp\0rup";
  static const char *const needed[][2] = {
      {"libcudart.so", "libcudart.so.13"}, {"libcudnn.so", "libcudnn.so"}, {"libcuda", 0}, {"libx.so", "libx.so.1"}, {"rp", 0}};
  ElfW(Phdr) ph[3];
  struct image im = map_segments(ph, 3);
  ElfW(Dyn) *d = (ElfW(Dyn) *)mapped.bytes; /* with addresses as musl leaves them */
  struct tags tags;
  int k;
  d[0].d_tag = DT_STRTAB, d[0].d_un.d_ptr = 300;
  memcpy(mapped.bytes + 300, strings, sizeof strings);
  d[1].d_tag = DT_NEEDED, d[1].d_un.d_val = 1;
  d[2].d_tag = DT_NEEDED, d[2].d_un.d_val = 11;
  d[3].d_tag = DT_NEEDED, d[3].d_un.d_val = 27;
  d[4].d_tag = DT_SONAME, d[4].d_un.d_val = 43;
  d[5].d_tag = DT_RPATH, d[5].d_un.d_val = 57;
  d[6].d_tag = DT_RUNPATH, d[6].d_un.d_val = 60;
  d[7].d_tag = DT_FLAGS_1, d[7].d_un.d_val = DF_1_NOW;
  ph[2].p_type = PT_DYNAMIC;
  im = read_image(&im.file);
  SAYS(im.soname, "libcudnn.so.9");
  SAYS(im.rpath, "rp");
  SAYS(im.runpath, "rup");
  IS(im.has_special_search, 0);
  for (k = 0; k < LENGTH(needed); k++) SAYS(find_needed(&im, needed[k][0]), needed[k][1] ? needed[k][1] : "(null)");
  d[7].d_un.d_val = DF_1_NODEFLIB;
  im = read_image(&im.file);
  IS(im.has_special_search, 1);
  d[7].d_tag = DT_FLAGS, d[7].d_un.d_val = DF_1_NODEFLIB;
  im = read_image(&im.file);
  IS(im.has_special_search, 0);
  d[7].d_tag = DT_AUDIT;
  im = read_image(&im.file);
  IS(im.has_special_search, 1);
  d[7].d_tag = DT_DEPAUDIT;
  im = read_image(&im.file);
  IS(im.has_special_search, 1);
  d[7].d_tag = DT_NULL;
  d[8].d_tag = DT_AUDIT;
  im = read_image(&im.file);
  IS(im.has_special_search, 0);
  d[7].d_tag = DT_GNU_HASH, d[7].d_un.d_ptr = 77;
  d[8].d_tag = DT_NULL;
  read_tags(&tags, d);
  IS(tags.at[0], 77);
  IS(tags.at[DT_SONAME], 43);
  d[8].d_tag = SPECIAL_SEARCH;
  read_tags(&tags, d);
  IS(tags.at[SPECIAL_SEARCH], 0);
  d[4].d_tag = DT_NULL;
  read_tags(&tags, d);
  IS(tags.at[DT_SONAME], 0);
  IS(tags.at[DT_STRTAB], 300);
  IS(resolve_address(&im, 8) - (const char *)&mapped, 8);
  IS(resolve_address(&im, im.file.base) - (const char *)&mapped, 0);
}

/* Whether an RPATH of another library may apply: the program, the object that searches, and another one, with their RPATHs. */
static void check_inherited_rpaths(void) {
  static const struct {
    int tag[3];
    const char *name;
    int is_loaded, has_others;
  } rows[] = {{{DT_RPATH, DT_RPATH, DT_RPATH}, "libx.so", 1, 1},
              {{DT_RPATH, DT_RPATH, DT_RUNPATH}, "libx.so", 1, 0},
              {{DT_RPATH, DT_RPATH, DT_SONAME}, "libx.so", 1, 0},
              {{DT_SONAME, DT_SONAME, DT_RPATH}, "libz.so", 0, 1},
              {{DT_RPATH, DT_SONAME, DT_SONAME}, "libz.so", 0, 0}};
  static const char *const names[] = {"", "libx.so", "liby.so"};
  ElfW(Phdr) ph[3];
  ElfW(Dyn) *d = (ElfW(Dyn) *)mapped.bytes;
  int k, i;
  for (k = 0; k < LENGTH(rows); k++) {
    struct rpaths r;
    r.name = rows[k].name;
    r.is_loaded = r.has_others = 0;
    for (i = 0; i < 3; i++) {
      const struct image im = map_segments(ph, 3);
      struct dl_phdr_info info;
      memset(&info, 0, sizeof info);
      info.dlpi_addr = im.file.base;
      info.dlpi_phdr = ph;
      info.dlpi_phnum = 3;
      info.dlpi_name = names[i];
      d[0].d_tag = DT_STRTAB, d[0].d_un.d_ptr = 300;
      d[1].d_tag = rows[k].tag[i], d[1].d_un.d_val = 1;
      ph[2].p_type = PT_DYNAMIC;
      IS(visit_rpath(&info, sizeof info, &r), 0);
    }
    IS(r.is_loaded, rows[k].is_loaded);
    IS(r.has_others, rows[k].has_others);
  }
}

/* The segments in which PTX text is searched. */
static void check_segments_of_ptx(void) {
  static const struct {
    int type, flags;
    size_t offset, size;
    const char *codes;
  } rows[] = {{PT_LOAD, PF_R, 0, 256, "compute_80"},
              {PT_LOAD, PF_R, 4096, 256, "compute_80"},
              {PT_LOAD, PF_R | PF_X, 0, 256, "compute_80"},
              {PT_LOAD, PF_R | PF_X, 4096, 256, ""},
              {PT_LOAD, PF_R | PF_W, 0, 256, ""},
              {PT_LOAD, PF_X, 0, 256, ""},
              {PT_NOTE, PF_R, 0, 256, ""},
              {PT_LOAD, PF_R, 0, 16, ""}};
  static const uint32_t container = CONTAINER;
  static char much[MOST_SEARCHED + 64];
  const struct image before = cx->own;
  ElfW(Phdr) ph[2];
  int k;
  cx->has_codes = 0;
  for (k = 0; k < LENGTH(rows) + 4; k++) {
    const char *codes = k < LENGTH(rows) ? rows[k].codes : k & 1 ? "" : "compute_80";
    cx->own = map_segments(ph, 2);
    cx->own_container = mapped.bytes;
    ph[1] = ph[0];
    ph[!(k & 1)].p_type = PT_NOTE;
    memcpy(mapped.bytes + 16, ".version 8.0\n.target sm_80\n.entry", 34);
    if (k < LENGTH(rows)) {
      ph[k & 1].p_type = (ElfW(Word))rows[k].type;
      ph[k & 1].p_flags = (ElfW(Word))rows[k].flags;
      ph[k & 1].p_offset = rows[k].offset;
      ph[k & 1].p_filesz = rows[k].size;
    } else if (k < LENGTH(rows) + 2) {
      if (k & 1) memcpy(mapped.bytes + 100, &container, sizeof container);
      else memcpy(mapped.bytes, &container, sizeof container);
    } else {
      memcpy(much, mapped.bytes, 64);
      cx->own.file.base = (uintptr_t)much;
      ph[k & 1].p_filesz = MOST_SEARCHED + (k & 1);
    }
    cx->is_ptx_searched = cx->ptx_count = 0;
    search_ptx(cx);
    put_all_codes(cx, fresh());
    if (strcmp(room, codes)) printf("segment %d: %s\n", k, room);
  }
  /* Code in containers is preferred to that of other segments, too. */
  cx->own = before;
}
