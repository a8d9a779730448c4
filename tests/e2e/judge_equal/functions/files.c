/* Files of libraries, the search of the dynamic linker, and notes: objects.c, search.c, notes.c, detection.c. The program itself is the
 * library to read: it exports symbols. */

const uint32_t exported_word = 0x90f01, exported_too = 7;
const uint64_t exported_wide = 8;

static char image[1 << 21], cut[] = "cut.so";
static size_t image_size;

static void write_file(const char *path, const void *bytes, size_t size) {
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  size_t done = 0;
  while (done < size) done += (size_t)write(fd, (const char *)bytes + done, size - done);
  close(fd);
}

/* Opens a copy of the program with these bytes at an offset. */
static enum lookup open_changed(size_t at, const void *bytes, size_t size) {
  char old[16];
  memcpy(old, image + at, size);
  memcpy(image + at, bytes, size);
  write_file(cut, image, image_size);
  memcpy(image + at, old, size);
  return open_elf(cx, &cx->file.elf, cut);
}

static void check_headers_of_files(void) {
#define AT(member) offsetof(ElfW(Ehdr), member), sizeof((ElfW(Ehdr) *)0)->member
  static const struct {
    size_t at, size;
    uint64_t value;
    int is;
  } rows[] = {{0, 1, 0x7e, ASK_LOADER},
              {3, 1, 0, ASK_LOADER},
              {EI_CLASS, 1, ELFCLASS32, NOT_THERE},
              {EI_DATA, 1, ELFDATA2MSB, ASK_LOADER},
              {EI_VERSION, 1, 2, ASK_LOADER},
              {EI_OSABI, 1, ELFOSABI_GNU, IS_THERE},
              {EI_OSABI, 1, ELFOSABI_FREEBSD, ASK_LOADER},
              {AT(e_version), 2, ASK_LOADER},
              {AT(e_machine), EM_S390, NOT_THERE},
              {AT(e_phnum), 0, ASK_LOADER},
              {AT(e_phnum), 1, ASK_LOADER},
              {AT(e_phentsize), 55, ASK_LOADER},
              {AT(e_phoff), 1 << 30, ASK_LOADER},
              {AT(e_type), ET_REL, ASK_LOADER},
              {AT(e_type), ET_EXEC, ASK_LOADER},
              {0, 1, 0x7f, IS_THERE}};
  const ElfW(Ehdr) *eh = (const ElfW(Ehdr) *)image;
  ElfW(Phdr) *ph;
  const int fd = open("/proc/self/exe", O_RDONLY);
  ElfW(Off) moved;
  int k;
  image_size = (size_t)read(fd, image, sizeof image);
  close(fd);
  for (k = 0; k < LENGTH(rows); k++) {
    const enum lookup is = open_changed(rows[k].at, &rows[k].value, rows[k].size);
    if (is != (enum lookup)rows[k].is) printf("byte %zu: %d, not %d\n", rows[k].at, is, rows[k].is);
  }
  for (k = 0; k <= 64; k += 8) {
    write_file(cut, image, (size_t)k);
    IS(open_elf(cx, &cx->file.elf, cut), ASK_LOADER);
  }
  /* The program headers are elsewhere. */
  memcpy(image + ((image_size + 7) & ~(size_t)7), image + eh->e_phoff, eh->e_phnum * sizeof *ph);
  moved = (image_size + 7) & ~(size_t)7;
  image_size = moved + eh->e_phnum * sizeof *ph;
  IS(open_changed(offsetof(ElfW(Ehdr), e_phoff), &moved, sizeof moved), IS_THERE);
  IS(read_elf_word(&cx->file.elf, "exported_word"), 0x90f01);
  close_elf(&cx->file.elf);
  /* The last segment is longer than the file. */
  ph = (ElfW(Phdr) *)(image + eh->e_phoff);
  for (k = 0; k < eh->e_phnum; k++)
    if (ph[k].p_type == PT_LOAD) {
      ElfW(Xword) size = image_size - ph[k].p_offset;
      const size_t at = (size_t)((char *)&ph[k].p_filesz - image);
      IS(open_changed(at, &size, sizeof size), IS_THERE);
      size++;
      IS(open_changed(at, &size, sizeof size), ASK_LOADER);
    }
  IS(open_elf(cx, &cx->file.elf, "absent.so"), NOT_THERE);
  IS(open_elf(cx, &cx->file.elf, "/proc/self/exe/x"), ASK_LOADER);
  IS(open_elf(cx, &cx->file.elf, "."), ASK_LOADER);
  close(0); /* the file gets this number */
  IS(open_elf(cx, &cx->file.elf, "/proc/self/exe"), IS_THERE);
  IS(cx->file.elf.fd, 0);
  close_elf(&cx->file.elf);
}

static void check_symbols(void) {
  struct elf *e = &cx->file.elf;
  char text[NOTE_TEXT], small[6], *table;
  size_t size;
  IS(open_elf(cx, &cx->file.elf, "/proc/self/exe"), IS_THERE);
  IS(read_elf_word(e, "exported_word"), 0x90f01);
  IS(read_elf_word(e, "exported_too"), 7);
  IS(read_elf_word(e, "exported_wide"), 0);
  IS(read_elf_word(e, "exported_absent"), 0);
  IS(read_elf_word(e, "alarm"), 0);
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = 0;
  IS(read_elf_word(e, text), 0);
  SAYS(read_elf_string(e, DT_RUNPATH, text, sizeof text), "/first:/second");
  SAYS(read_elf_string(e, DT_RUNPATH, small, sizeof small), "/firs");
  size = (size_t)(e->tags.at[DT_STRSZ] - e->tags.at[DT_RUNPATH]); /* to the end of the string table */
  table = (char *)malloc(size + 1);
  table[size] = table[size - 1] = 'x';
  SAYS(read_elf_string(e, DT_RUNPATH, table, size), "/first:/second");
  IS(table[size - 1], 0);
  IS(table[size], 'x');
  free(table);
  SAYS(read_elf_string(e, DT_RPATH, text, sizeof text), "(null)");
  e->tags.at[DT_RPATH] = e->tags.at[DT_STRSZ]; /* behind the last string */
  SAYS(read_elf_string(e, DT_RPATH, text, sizeof text), "(null)");
  e->tags.at[DT_RPATH] = 0;
  SAYS(read_elf_string(e, DT_SONAME, text, sizeof text), "libcudnn.so.9");
  IS(read_returned_constant(e, "returns_12040"), 12040);
  IS(read_cuda_version(e, "returns_12040"), 12040);
  IS(read_cuda_version(e, ""), 0);
  IS(read_cuda_version(e, "returns_6990"), 0);
  IS(read_cuda_version(e, "returns_7000"), 7000);
  IS(read_cuda_version(e, "returns_12001"), 0);
  IS(read_cuda_version(e, "returns_12100"), 0);
  IS(read_cuda_version(e, "returns_99090"), 99090);
  IS(read_cuda_version(e, "returns_100000"), 0);
  IS(read_returned_constant(e, "exported_absent"), 0);
  close_elf(&cx->file.elf);
}

/* A library whose hash table has a chain without an end: symbols are found up to a limit. */
static void check_long_chains(void) {
  enum { STEPS = 4096 };
  static struct {
    ElfW(Ehdr) eh;
    ElfW(Phdr) ph[2];
    ElfW(Dyn) dynamic[5];
    uint32_t head[4];
    ElfW(Addr) bloom;
    uint32_t bucket, chain[STEPS + 2];
    ElfW(Sym) symbols[STEPS + 3];
    uint32_t word;
    char name[2];
  } f;
#define PLACE(member) ((char *)&f.member - (char *)&f)
  static const struct {
    int at, size, section, found;
  } rows[] = {{0, 0, 1, 7}, {1, 4, 1, 7}, {1, 8, 1, 0}, {1, 4, SHN_UNDEF, 0}, {STEPS - 1, 4, 1, 7}, {STEPS, 4, 1, 0}};
  int k;
  memcpy(&f.eh, image, sizeof f.eh);
  f.eh.e_phnum = 2;
  f.eh.e_phoff = sizeof f.eh;
  f.dynamic[0].d_tag = DT_GNU_HASH, f.dynamic[0].d_un.d_ptr = (ElfW(Addr))PLACE(head);
  f.dynamic[1].d_tag = DT_SYMTAB, f.dynamic[1].d_un.d_ptr = (ElfW(Addr))PLACE(symbols);
  f.dynamic[2].d_tag = DT_STRTAB, f.dynamic[2].d_un.d_ptr = (ElfW(Addr))PLACE(name);
  f.head[0] = f.head[1] = f.head[2] = f.bucket = 1;
  f.word = 7;
  f.name[0] = 'a';
  for (k = 0; k < LENGTH(rows); k++) {
    ElfW(Sym) *const s = &f.symbols[1 + rows[k].at];
    ElfW(Phdr) *const load = &f.ph[k & 1], *const table = &f.ph[!(k & 1)]; /* in any order */
    load->p_type = PT_LOAD;
    load->p_offset = 0;
    load->p_filesz = sizeof f;
    table->p_type = PT_DYNAMIC;
    table->p_offset = (ElfW(Off))PLACE(dynamic);
    table->p_filesz = sizeof f.dynamic;
    memset(f.chain, 0, sizeof f.chain);
    f.chain[rows[k].at] = (5381 * 33 + 'a') & ~1u;
    s->st_value = (ElfW(Addr))PLACE(word);
    s->st_size = (ElfW(Xword))rows[k].size;
    s->st_shndx = (uint16_t)rows[k].section;
    write_file(cut, &f, sizeof f);
    IS(open_elf(cx, &cx->file.elf, cut), IS_THERE);
    IS(read_elf_word(&cx->file.elf, "a"), rows[k].found);
    IS(read_elf_word(&cx->file.elf, "b"), 0);
  }
  close_elf(&cx->file.elf);
  for (k = 0; k < 4; k++) {
    f.bucket = k == 0 ? 1 << 20 : (uint32_t)(k != 1); /* not in the file; an empty bucket */
    f.head[0] = k != 2;
    f.dynamic[0].d_tag = k == 3 ? DT_DEBUG : DT_GNU_HASH;
    write_file(cut, &f, sizeof f);
    IS(open_elf(cx, &cx->file.elf, cut), IS_THERE);
    IS(find_elf_symbol(&cx->file.elf, "a", &f.symbols[0]), 0);
    close_elf(&cx->file.elf);
  }
}

#define RETURNS(n) \
  unsigned returns_##n(void) { return n; }
RETURNS(12040)
RETURNS(6990)
RETURNS(7000)
RETURNS(12001)
RETURNS(12100)
RETURNS(99090)
RETURNS(100000)

/* Elements of path lists, for an object in /opt/x. */
static void check_path_elements(void) {
  static const struct {
    const char *element, *path;
  } rows[] = {{"/lib", "/lib/a.so"},
              {"", "a.so"},
              {"x", "x/a.so"},
              {"$ORIGIN", "/opt/x/a.so"},
              {"${ORIGIN}/../lib", "/opt/x/../lib/a.so"},
              {"$ORIGIN/", "/opt/x//a.so"},
              {"$ORIGINAL", "(null)"},
              {"/$ORIGIN", "(null)"},
              {"$ORIGIN/$LIB", "(null)"},
              {"$PLATFORM", "(null)"}};
  char to[PATH_MAX], longest[PATH_MAX];
  struct image of;
  int k;
  memset(&of, 0, sizeof of);
  for (k = 0; k < LENGTH(rows); k++) {
    of.file.name = "/opt/x/libx.so";
    SAYS(join_path(&to, rows[k].element, strlen(rows[k].element), "a.so", &of) ? to : 0, rows[k].path);
  }
  SAYS(join_path(&to, "/lib:/x", 4, "a.so", &of) ? to : 0, "/lib/a.so");
  of.file.name = "/libx.so";
  SAYS(join_path(&to, "$ORIGIN", 7, "a.so", &of) ? to : 0, "/a.so");
  of.file.name = "x/libx.so";
  SAYS(join_path(&to, "$ORIGIN", 7, "a.so", &of) ? to : 0, "(null)");
  memset(longest, 'a', sizeof longest);
  longest[PATH_MAX - 7] = 0;
  IS(join_path(&to, longest, strlen(longest), "a.so", &of), 1);
  longest[PATH_MAX - 7] = 'a';
  longest[PATH_MAX - 6] = 0;
  IS(join_path(&to, longest, strlen(longest), "a.so", &of), 0);
}

/* The cache of the dynamic linker: a head of 48 bytes, entries of 24 bytes, texts. */
struct cache_entry {
  int32_t flags;
  uint32_t key, value, version;
  uint64_t hwcap;
};

static enum lookup look_up(const struct cache_entry *entries, uint32_t count, size_t shift, size_t size, char (*to)[PATH_MAX]) {
  static char bytes[512] __attribute__((aligned(8)));
  static const char texts[] = "libx.so\0libxy.so\0/a/libx.so\0/b/libx.so";
  char *const head = bytes + shift;
  memset(bytes, 0, sizeof bytes);
  if (shift) {
    const uint32_t old = (uint32_t)(shift - 16) / 12;
    memcpy(bytes, "ld.so-1.7.0", 11);
    memcpy(bytes + 12, &old, sizeof old);
  }
  memcpy(head, "glibc-ld.so.cache1.1", 20);
  memcpy(head + 20, &count, sizeof count);
  memcpy(head + 48, entries, 4 * sizeof *entries);
  memcpy(head + 200, texts, sizeof texts);
  **to = 0;
  write_file("cache", bytes, size);
  IS(search_cache(cx, "cache", "libx.so", to), search_mapped_cache(bytes, size, "libx.so", to));
  return search_mapped_cache(bytes, size, "libx.so", to);
}

static void check_cache(void) {
  enum { X = 200, XY = 208, A = 217, B = 228, END = 240 };
  static const struct {
    uint32_t count;
    size_t shift, size;
    struct cache_entry entries[4];
    int is;
    const char *path;
  } rows[] = {
      {1, 0, END, {{CACHE_KIND, X, A, 0, 0}}, IS_THERE, "/a/libx.so"},
      {2, 0, END, {{CACHE_KIND, XY, A, 0, 0}, {CACHE_KIND, X, B, 0, 0}}, IS_THERE, "/b/libx.so"},
      {2, 0, END, {{CACHE_KIND, X, B, 0, 0}, {CACHE_KIND, X, A, 0, 0}}, IS_THERE, "/b/libx.so"},
      {2, 0, END, {{3, X, B, 0, 0}, {CACHE_KIND, X, A, 0, 0}}, IS_THERE, "/a/libx.so"},
      {1, 0, END, {{3, X, B, 0, 0}}, NOT_THERE, ""},
      {1, 0, END, {{CACHE_KIND, XY, A, 0, 0}}, NOT_THERE, ""},
      {0, 0, END, {{CACHE_KIND, X, A, 0, 0}}, NOT_THERE, ""},
      {1, 0, END, {{CACHE_KIND, X, A, 0, 1}}, ASK_LOADER, ""},
      {1, 0, END, {{CACHE_KIND, X, A, 1, 0}}, ASK_LOADER, ""},
      {1, 0, END, {{CACHE_KIND, END, A, 0, 0}}, ASK_LOADER, ""},
      {1, 0, END, {{CACHE_KIND, END - 4, A, 0, 0}}, NOT_THERE, ""},
      {1, 0, END, {{CACHE_KIND, X, END, 0, 0}}, ASK_LOADER, ""},
      {1, 0, END - 1, {{CACHE_KIND, X, B, 0, 0}}, IS_THERE, "/b/libx.so"},
      {1, 0, END - 2, {{CACHE_KIND, X, B, 0, 0}}, ASK_LOADER, ""},
      {1, 0, 207, {{CACHE_KIND, X, X, 0, 0}}, NOT_THERE, ""},
      {1, 0, 208, {{CACHE_KIND, X, X, 0, 0}}, IS_THERE, "libx.so"},
      {8, 0, END, {{CACHE_KIND, X, A, 0, 0}}, IS_THERE, "/a/libx.so"},
      {9, 0, END, {{CACHE_KIND, X, A, 0, 0}}, ASK_LOADER, ""},
      {9, 40, 40 + END, {{CACHE_KIND, X, A, 0, 0}}, ASK_LOADER, ""},
      {0, 0, 48, {{0}}, ASK_LOADER, ""},
      {0, 0, 49, {{0}}, NOT_THERE, ""},
      {1, 40, 40 + END, {{CACHE_KIND, X, A, 0, 0}}, IS_THERE, "/a/libx.so"},
      {1, 40, 40 + 208, {{CACHE_KIND, X, X, 0, 0}}, IS_THERE, "libx.so"},
      {1, 40, 16, {{CACHE_KIND, X, A, 0, 0}}, ASK_LOADER, ""},
      {1, 40, 17, {{CACHE_KIND, X, A, 0, 0}}, ASK_LOADER, ""},
  };
  char to[PATH_MAX];
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    const enum lookup is = look_up(rows[k].entries, rows[k].count, rows[k].shift, rows[k].size, &to);
    if (is != (enum lookup)rows[k].is || strcmp(to, rows[k].path)) printf("cache %d: %d %s\n", k, is, to);
  }
  write_file("cache", "", 0);
  IS(search_cache(cx, "cache-none", "libx.so", &to), NOT_THERE);
  IS(search_cache(cx, "cache/none", "libx.so", &to), ASK_LOADER);
  IS(search_cache(cx, "cache", "libx.so", &to), ASK_LOADER);
}

/* Notes: a head, rows, texts. */
static void check_notes(void) {
  static const struct {
    size_t at, size;
    uint32_t value;
    const char *damage;
  } rows[] = {{0, 1, 'c', ""},
              {0, 1, 'x', "it does not begin with `cudagrd`"},
              {7, 1, 1, "it does not begin with `cudagrd`"},
              {offsetof(struct note_head, revision), 2, 0, "its header is invalid"},
              {offsetof(struct note_head, revision), 2, 2, ""},
              {offsetof(struct note_head, row_size), 2, ROW_SIZE - 1, "its header is invalid"},
              {offsetof(struct note_head, rows_at), 2, 19, "its header is invalid"},
              {offsetof(struct note_head, rows_at), 2, 20, ""},
              {offsetof(struct note_head, rows_at), 2, 100, ""},
              {offsetof(struct note_head, rows_at), 2, 101, "its header is invalid"},
              {offsetof(struct note_head, rows_at), 2, 181, "its header is invalid"},
              {offsetof(struct note_head, rows), 2, 3, ""},
              {offsetof(struct note_head, rows), 2, 4, "its header is invalid"},
              {offsetof(struct note_head, name), 2, 180, ""},
              {offsetof(struct note_head, name), 2, 181, "a text is not within it"},
              {offsetof(struct note_head, name) + 2, 2, 180 - HEAD_SIZE, ""},
              {offsetof(struct note_head, name) + 2, 2, 181 - HEAD_SIZE, "a text is not within it"},
              {offsetof(struct note_head, version), 2, 181, "a text is not within it"},
              {HEAD_SIZE + offsetof(struct library_row, soname), 2, 181, "a text is not within it"},
              {HEAD_SIZE + offsetof(struct library_row, library), 2, 181, "a text is not within it"},
              {HEAD_SIZE + ROW_SIZE + offsetof(struct library_row, soname), 2, 181, ""}};
  static unsigned char bytes[180] __attribute__((aligned(8)));
  struct note_head head;
  struct note n;
  char text[NOTE_TEXT];
  struct text_ref ref;
  int k;
  memset(&head, 0, sizeof head);
  memcpy(head.magic, "cudagrd", 8);
  head.revision = REVISION;
  head.rows = 2;
  head.rows_at = HEAD_SIZE;
  head.row_size = ROW_SIZE;
  head.name.at = HEAD_SIZE;
  for (k = 0; k < LENGTH(rows); k++) {
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &head, sizeof head);
    bytes[HEAD_SIZE] = ROW_LIBRARY;
    memcpy(bytes + rows[k].at, &rows[k].value, rows[k].size);
    read_note(&n, bytes, sizeof bytes);
    if (strcmp(n.damage ? n.damage : "", rows[k].damage)) printf("note %d: %s\n", k, n.damage);
    IS(is_note_readable(&n), !*rows[k].damage);
    if (*rows[k].damage) IS(n.head.rows, 0);
    IS(n.state, *rows[k].damage ? NOTE_IS_DAMAGED : n.head.revision == 2 ? NOTE_IS_NEWER : NOTE_WHOLE);
  }
  read_note(&n, bytes, HEAD_SIZE - 1);
  IS(n.state, NOTE_IS_DAMAGED);
  memset(bytes, 0, sizeof bytes);
  memcpy(bytes, &head, sizeof head);
  bytes[offsetof(struct note_head, rows)] = 0;
  read_note(&n, bytes, HEAD_SIZE);
  IS(n.state, NOTE_WHOLE);
  ref.at = 0;
  ref.length = 7;
  SAYS(read_note_text(&n, ref, &text), "cudagrd");
  ref.length = NOTE_TEXT;
  n.size = 4096;
  SAYS(read_note_text(&n, ref, &text), "(null)");
}

static void check_note_headers(void) {
  static const unsigned char right[NOTE_HEADER + 8] = {10,  0,   0,   0,   8,   0,   0,   0,   1,   0,   0,   0,
                                                       'c', 'u', 'd', 'a', 'g', 'u', 'a', 'r', 'd', 0,   0,   0};
  unsigned char bytes[sizeof right];
  size_t k;
  IS(get_descriptor_size(right, sizeof right), 8);
  IS(get_descriptor_size(right, sizeof right - 1), -1);
  for (k = 0; k < NOTE_HEADER; k++) {
    memcpy(bytes, right, sizeof right);
    bytes[k]++;
    IS(get_descriptor_size(bytes, sizeof right), -1);
  }
}

/* The paths that links refer to. */
static void check_links(void) {
  char to[PATH_MAX];
  int k;
  mkdir("sub", 0700);
  symlink("file.1", "one");
  symlink("sub/../one", "two");
  symlink("/proc/self/exe", "three");
  symlink("loop", "loop");
  write_file("file.1", "four", 4);
  copy_path(&to, "one");
  SAYS(resolve_name(to, &to), "file.1");
  SAYS(resolve_name("two", &to), "file.1");
  SAYS(resolve_name("three", &to), "functions");
  SAYS(resolve_name("none", &to), "none");
  SAYS(resolve_name("loop", &to), "loop");
  IS(get_file_size(cx, "absent"), -1);
  IS(get_file_size(cx, "one"), 4);
  IS(read_file_text(cx, "one", to, 4), 1);
  SAYS(to, "fou");
  IS(read_file_text(cx, "absent", to, 4), 0);
  SAYS(to, "");
  write_file("letter", "a", 1);
  IS(read_file_text(cx, "letter", to, 4), 1);
  SAYS(to, "a");
  write_file("empty", "", 0);
  copy_text(to, 8, "before");
  IS(read_file_text(cx, "empty", to, 4), 0);
  SAYS(to, "");
  copy_text(to, 8, "before");
  IS(read_link("file.1", &to), 0);
  SAYS(to, "before");
  IS(read_link("one", &to), 1);
  SAYS(to, "file.1");
  k = (int)open_file(cx, "file.1", O_RDONLY);
  IS(fcntl(k, F_GETFD), FD_CLOEXEC);
  IS(fcntl(k, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  close_file(k);
  IS(fcntl(k, F_GETFD), -1);
  setenv("CG_ONE", "1", 1);
  IS(is_variable_one("CG_ONE"), 1);
  IS(is_variable_one("CG_ON"), 0);
  SAYS(get_variable("CG_ONE"), "1");
  SAYS(get_variable("CG_NONE"), "");
  IS(count_variables("CG_ONE"), 1);
  IS(count_variables("CG_O"), 0);
  for (k = 0; k < 5; k++) {
    static const long results[] = {0, 7, -ENOENT, -ENOTDIR, -EACCES};
    cx->lookup_failed = 0;
    record_failure(cx, results[k]);
    IS(cx->lookup_failed, k == 4);
  }
}

/* The order of the search: directories with a.so, for the object /opt/x.so. */
static void check_order_of_search(void) {
  static const struct {
    const char *rpath, *runpath, *library_path, *program_rpath, *program_runpath, *file;
    int is;
    const char *path, *why;
  } rows[] = {{"one.d", 0, "two.d", 0, 0, "a.so", IS_THERE, "one.d/a.so", "RPATH of /opt/x.so"},
              {"one.d", "none", "two.d", 0, 0, "a.so", IS_THERE, "two.d/a.so", "LD_LIBRARY_PATH"},
              {0, "one.d", "two.d", 0, 0, "a.so", IS_THERE, "two.d/a.so", "LD_LIBRARY_PATH"},
              {0, "one.d", "none", 0, 0, "a.so", IS_THERE, "one.d/a.so", "RUNPATH of /opt/x.so"},
              {0, 0, "two.d", "one.d", 0, "a.so", IS_THERE, "one.d/a.so", "RPATH of "},
              {0, 0, "two.d", "one.d", "none", "a.so", IS_THERE, "two.d/a.so", "LD_LIBRARY_PATH"},
              {0, "none", "two.d", "one.d", 0, "a.so", IS_THERE, "two.d/a.so", "LD_LIBRARY_PATH"},
              {"bad.d", 0, "two.d", "one.d", 0, "a.so", ASK_LOADER, "", ""},
              {0, "bad.d", "two.d", 0, 0, "one.d/a.so", ASK_LOADER, "", ""},
              {0, "none", "", 0, 0, "libcg-none.so", NOT_THERE, "", ""}};
  const struct image first = cx->first;
  const char *const before = cx->library_path;
  char to[PATH_MAX], why[WHY];
  struct image of;
  int k;
  for (k = 0; k < LENGTH(rows) + 5; k++) {
    const int at = k < LENGTH(rows) ? k : 0;
    char **const variables = environ;
    enum lookup is;
    memset(&of, 0, sizeof of);
    of.file.name = "/opt/x.so";
    of.rpath = rows[at].rpath;
    of.runpath = rows[at].runpath;
    cx->first.rpath = rows[at].program_rpath;
    cx->first.runpath = rows[at].program_runpath;
    cx->library_path = rows[at].library_path;
    /* Arrangements that only the dynamic linker knows. */
    if (k == LENGTH(rows)) of.has_special_search = 1;
    if (k == LENGTH(rows) + 1) cx->first.has_special_search = 1;
    if (k >= LENGTH(rows) + 2) {
      static char *const audit[] = {"LD_AUDIT=", 0}, *const twice[] = {"LD_LIBRARY_PATH=a", "LD_LIBRARY_PATH=b", 0};
      environ = (char **)(k == LENGTH(rows) + 2 ? audit : k == LENGTH(rows) + 3 ? twice : twice + 1);
    }
    copy_text(why, sizeof why, "");
    is = search_library(cx, rows[at].file, &of, &to, &cx->file.elf, &why);
    IS(cx->file.elf.is_open, is == IS_THERE);
    close_elf(&cx->file.elf);
    if (k >= LENGTH(rows) && k < LENGTH(rows) + 4) IS(is, ASK_LOADER);
    else if (is != (enum lookup)rows[at].is || strcmp(to, rows[at].path) || !starts_with(why, rows[at].why))
      printf("search %d: %d %s %s\n", k, is, to, why);
    cx->first.has_special_search = first.has_special_search;
    environ = variables;
  }
  /* A library with an RPATH may have loaded the one that searches, which is loaded. */
  dlopen("./librpath.so", RTLD_NOW);
  memset(&of, 0, sizeof of);
  of.file.name = cx->libc;
  of.rpath = cx->library_path = "one.d";
  IS(search_library(cx, "a.so", &of, &to, &cx->file.elf, 0), ASK_LOADER);
  of.runpath = "one.d";
  IS(search_library(cx, "a.so", &of, &to, &cx->file.elf, 0), IS_THERE);
  close_elf(&cx->file.elf);
  cx->first = first;
  cx->library_path = before;
}

/* The directories of path lists, which hold copies of the program as a library. */
static void check_lists_of_directories(void) {
  static const struct {
    const char *list;
    int is_owned;
    enum lookup before, is;
    const char *path;
  } rows[] = {{"none:two.d:one.d", 1, NOT_THERE, IS_THERE, "two.d/a.so"},
              {"one.d:two.d", 1, NOT_THERE, IS_THERE, "one.d/a.so"},
              {"none;one.d", 0, NOT_THERE, IS_THERE, "one.d/a.so"},
              {"none;one.d", 1, NOT_THERE, NOT_THERE, "none;one.d/a.so"},
              {"none:", 0, NOT_THERE, NOT_THERE, "a.so"},
              {"none", 1, NOT_THERE, NOT_THERE, "none/a.so"},
              {"", 1, NOT_THERE, NOT_THERE, ""},
              {0, 1, NOT_THERE, NOT_THERE, ""},
              {"one.d", 1, ASK_LOADER, ASK_LOADER, ""},
              {"bad.d:one.d", 1, NOT_THERE, ASK_LOADER, "bad.d/a.so"},
              {"hw.d:one.d", 1, NOT_THERE, ASK_LOADER, ""},
              {"$LIB:one.d", 1, NOT_THERE, ASK_LOADER, ""}};
  static const char *const dirs[] = {"one.d", "two.d", "bad.d", "hw.d", "hw.d/glibc-hwcaps"};
  struct image of;
  char to[PATH_MAX];
  int k;
  memset(&of, 0, sizeof of);
  of.file.name = "/opt/x";
  for (k = 0; k < LENGTH(dirs); k++) {
    char path[64];
    mkdir(dirs[k], 0700);
    snprintf(path, sizeof path, "%s/a.so", dirs[k]);
    write_file(path, image, k == 2 ? 100 : image_size);
  }
  for (k = 0; k < LENGTH(rows); k++) {
    struct library_search s;
    memset(&s, 0, sizeof s);
    s.file = "a.so";
    s.to = &to;
    s.elf = &cx->file.elf;
    s.is = rows[k].before;
    to[0] = 0;
    search_list(cx, &s, rows[k].list, "PLACE", rows[k].is_owned ? &of : 0);
    close_elf(&cx->file.elf);
    if (s.is != rows[k].is || (*rows[k].path && strcmp(to, rows[k].path))) printf("list %d: %d %s\n", k, s.is, to);
    SAYS(s.place, rows[k].list && *rows[k].list && rows[k].before == NOT_THERE ? "PLACE" : "(null)");
    /* The second search knows the directory. */
    s.is = rows[k].before;
    search_list(cx, &s, rows[k].list, "PLACE", rows[k].is_owned ? &of : 0);
    close_elf(&cx->file.elf);
    IS(s.is, rows[k].is);
  }
}
