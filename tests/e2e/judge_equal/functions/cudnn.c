/* The cuDNN that files show: detection.c. The libraries are copies of the program, which exports a version and a getter. */

static void set_text(struct note *n, struct text_ref *ref, uint16_t *at, const char *text) {
  ref->at = *at;
  ref->length = (uint16_t)strlen(text);
  memcpy((char *)(uintptr_t)n->descriptor + *at, text, ref->length);
  *at = (uint16_t)(*at + ref->length);
}

/* A note with a row of cuDNN and of two parts, the second of which is needed. `suffix`: the major of both, or of each. */
static struct note *make_note_of_cudnn(int flags, const char *names, const char *symbol, const char *suffix) {
  static unsigned char bytes[1024] __attribute__((aligned(8)));
  struct note *n = make_note(1, "");
  uint16_t at = HEAD_SIZE + 4 * ROW_SIZE;
  int k;
  memset(bytes, 0, sizeof bytes);
  n->descriptor = bytes;
  n->size = sizeof bytes;
  n->head.rows = 3;
  for (k = 0; k < 3; k++) {
    union row *row = get_written_row(n, k);
    char file[64];
    if (k == 0) {
      row->cudnn.kind = ROW_LIBRARY;
      row->cudnn.flags = (uint16_t)flags;
      set_text(n, &row->cudnn.soname, &at, "libcudnn.so.9");
      set_text(n, &row->cudnn.names, &at, names);
      continue;
    }
    row->inner.kind = ROW_PART;
    row->inner.needed = (uint16_t)(k - 1);
    snprintf(file, sizeof file, "libcudnn_%s.so.%c", k == 1 ? "ops" : "graph", suffix[k == 1 ? 0 : strlen(suffix) - 1]);
    set_text(n, &row->inner.file, &at, file);
    set_text(n, &row->inner.symbol, &at, symbol);
    set_text(n, &row->inner.made_with, &at, "returns_12040");
  }
  return n;
}

/* A cuDNN that the program has loaded: copies of libfake.so. */
static void check_loaded_cudnn(struct cudnn *c) {
  static const struct {
    int late, is_another_loaded;
    const char *names, *library_path, *cudnn;
  } rows[] = {
      {0, 0, "libcudnn.so.5", "", "1 libcudnn.so.5  "},
      {1, 0, "libcudnn.so.5", "", "2 libcudnn.so.7 loaded.d/libcudnn.so.7 the program itself"},
      {1, 1, "libcudnn.so.5", "", "1 libcudnn.so.5  "},
      {0, 0, "libcudnn.so.5\nlibcudnn.so.7", "", "2 libcudnn.so.7 loaded.d/libcudnn.so.7 another library, LD_PRELOAD or its full path"},
      {1, 1, "libcudnn.so.7", "", "2 libcudnn.so.7 loaded.d/libcudnn.so.7 another library, LD_PRELOAD or its full path"},
      {0, 0, "libcudnn.so.7", "loaded.d", "2 libcudnn.so.7 loaded.d/libcudnn.so.7 LD_LIBRARY_PATH"},
      {0, 0, "libcudnn.so.6", "loaded.d", "2 libcudnn.so.6 loaded.d/libcudnn.so.6 LD_LIBRARY_PATH"},
      {0, 0, "libcudnn.so.7", "other.d", "2 libcudnn.so.7 loaded.d/libcudnn.so.7 another library, LD_PRELOAD or its full path"}};
  struct judge_call *call = &cx->call;
  struct note *n;
  char path[PATH_MAX];
  void *library;
  uint16_t at = HEAD_SIZE + ROW_SIZE;
  int k;
  setenv("FAKE", "0000", 1);
  system("mkdir -p loaded.d other.d; for n in 6 7; do cp libfake.so loaded.d/libcudnn.so.$n; cp libfake.so other.d/libcudnn.so.$n; done;"
         "cp libfake.so loaded.d/libcudart.so.12.4.127; ln -s libcudart.so.12.4.127 loaded.d/libcudart.so.12");
  library = dlopen("loaded.d/libcudnn.so.7", RTLD_NOW);
  for (k = 0; k < LENGTH(rows); k++) {
    void *const another = rows[k].is_another_loaded ? dlopen("loaded.d/libcudnn.so.6", RTLD_NOW) : 0;
    struct library_row row;
    forget();
    n = make_note_of_cudnn(LIBRARY_DLOPENED, rows[k].names, "", "4");
    row = read_note_row(n, 0).cudnn;
    cx->library_path = rows[k].library_path;
    detect_cudnn(cx, c, n, &row, rows[k].late, &cx->file);
    close_elf(&cx->file.elf);
    fresh();
    put_number(&made, c->is.state);
    put_char(&made, ' ');
    put(&made, c->soname);
    put_char(&made, ' ');
    put(&made, c->path);
    put_char(&made, ' ');
    put(&made, c->why);
    if (strcmp(room, rows[k].cudnn)) printf("loaded cudnn %d -> %s\n", k, room);
    if (another) dlclose(another);
  }
  dlclose(library);
  /* A shared cudart. */
  forget();
  n = make_note_of_cudnn(LIBRARY_DLOPENED, "", "", "4");
  n->head.rows = 1;
  memset(get_written_row(n, 0), 0, ROW_SIZE);
  set_text(n, &get_written_row(n, 0)->driver.cudart, &at, "libcudart.so.12");
  memset(call, 0, sizeof *call);
  detect_cudart(cx, n, &path);
  IS(call->cudart.source, BY_FILES);
  IS(call->cudart.state, UNKNOWN);
  library = dlopen("loaded.d/libcudart.so.12", RTLD_NOW);
  detect_cudart(cx, n, &path);
  IS(call->cudart.state, FOUND);
  IS(call->cudart.version, 0xc047f);
  SAYS(cx->texts + call->cudart_soname, "libcudart.so.12");
  SAYS(cx->texts + call->cudart_path, "loaded.d/libcudart.so.12");
  dlclose(library);
}

static void check_detected_cudnn(void) {
  /* A file after `!` is cut, one after `>` is a link to the next one. */
  static const struct {
    const char *files;
    int flags;
    const char *names, *symbol, *suffix, *cudnn;
  } rows[] = {
      {"libcudnn.so.9 libcudnn_ops.so.9 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "exported_word", "9", "2 0.0.0 9.15.1 made libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 9.15.1 cudnn.d/libcudnn_ops.so.9, needed 2 9.15.1 cudnn.d/libcudnn_graph.so.9"},
      {"libcudnn.so.9 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "exported_word", "9", "2 0.0.0 9.15.1 made libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 1 0.0.0 , needed 2 9.15.1 cudnn.d/libcudnn_graph.so.9"},
      {"libcudnn.so.9 libcudnn_ops.so.9 !libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "exported_word", "9", "2 guess 0.0.0 9.15.1 made libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 9.15.1 cudnn.d/libcudnn_ops.so.9, needed 0 0.0.0 "},
      {"libcudnn.so.9 libcudnn_ops.so.9 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "exported_too", "9", "2 0.0.0 0.0.0 made libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 0.0.0 cudnn.d/libcudnn_ops.so.9, needed 2 0.0.0 cudnn.d/libcudnn_graph.so.9"},
      {"libcudnn.so.9 libcudnn_ops.so.9 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "", "9", "2 0.0.0 0.0.0 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 0.0.0 cudnn.d/libcudnn_ops.so.9, needed 2 0.0.0 cudnn.d/libcudnn_graph.so.9"},
      {"libcudnn.so.9 libcudnn_ops.so.8 libcudnn_graph.so.8", LIBRARY_DLOPENED, "", "exported_word", "8", "2 0.0.0 0.0.0 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH"},
      {">libcudnn.so.9 libcudnn.so.9.15.1 libcudnn_ops.so.9.15.1 libcudnn_graph.so.9.15 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "", "9", "2 9.15.1 9.15.1 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 9.15.1 cudnn.d/libcudnn_ops.so.9.15.1, needed 2 0.0.0 cudnn.d/libcudnn_graph.so.9.15"},
      {">libcudnn.so.9 libcudnn.so.9.15.1 >libcudnn_ops.so.9 libcudnn_ops.so.9.14.0 libcudnn_graph.so.9", LIBRARY_DLOPENED, "", "", "9", "2 9.15.1 9.14.0 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 2 9.14.0 cudnn.d/libcudnn_ops.so.9, needed 2 0.0.0 cudnn.d/libcudnn_graph.so.9"},
      {"", LIBRARY_DLOPENED, "", "exported_word", "9", "1 0.0.0 0.0.0 libcudnn.so.9  "},
      {"", LIBRARY_LINKED, "", "exported_word", "9", "0 0.0.0 0.0.0 libcudnn.so.9  "},
      {"!libcudnn.so.9", LIBRARY_DLOPENED, "", "exported_word", "9", "0 guess 0.0.0 0.0.0 libcudnn.so.9  "},
      {"libcudnn.so.9", LIBRARY_DLOPENED, "libcudnn.so.8\nlibcudnn.so.9\nlibcudnn.so", "exported_word", "9", "2 0.0.0 0.0.0 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, 1 0.0.0 , needed 1 0.0.0 "},
      {"libcudnn.so.9", LIBRARY_DLOPENED, "libcudnn.so.9", "exported_word", "8 or 9", "2 0.0.0 0.0.0 libcudnn.so.9 cudnn.d/libcudnn.so.9 LD_LIBRARY_PATH, needed 1 0.0.0 "},
      {"libcudnn.so", LIBRARY_DLOPENED, "libcudnn.so.8\nlibcudnn.so", "exported_word", "9", "2 0.0.0 0.0.0 libcudnn.so.9 cudnn.d/libcudnn.so LD_LIBRARY_PATH, 1 0.0.0 , needed 1 0.0.0 "},
      {"libcudnn.so.9", LIBRARY_LINKED, "libcudnn.so.9", "exported_word", "9", "0 0.0.0 0.0.0 libcudnn.so.9  "},
  };
  struct cudnn *c = &cx->shared.note.cudnn;
  const char *const before = cx->library_path;
  int k, i;
  cx->library_path = "cudnn.d";
  for (k = 0; k < LENGTH(rows); k++) {
    struct library_row row;
    struct note *n;
    char names[256], name[64], path[128];
    const char *s = names;
    char *blank;
    forget();
    system("rm -rf cudnn.d; mkdir cudnn.d");
    copy_text(names, sizeof names, rows[k].files);
    for (blank = names; *blank; blank++)
      if (*blank == ' ') *blank = '\n';
    for (i = 0; (s = read_name(s, name)); i++) {
      const int is_link = *name == '>', is_cut = *name == '!';
      snprintf(path, sizeof path, "cudnn.d/%s", name + (is_link || is_cut));
      if (!is_link) {
        write_file(path, image, is_cut ? 4096 : image_size);
        continue;
      }
      memset(name, 0, sizeof name);
      memcpy(name, s, strcspn(s, "\n"));
      symlink(name, path);
    }
    n = make_note_of_cudnn(rows[k].flags, rows[k].names, rows[k].symbol, rows[k].suffix);
    row = read_note_row(n, 0).cudnn;
    detect_cudnn(cx, c, n, &row, 0, &cx->file);
    fresh();
    put_number(&made, c->is.state);
    put(&made, c->is.is_guess ? " guess " : " ");
    put_version(&made, c->is.loader);
    put_char(&made, ' ');
    put_version(&made, c->is.version);
    put(&made, c->is.made_with == 12040 ? " made " : " ");
    put(&made, c->soname);
    put_char(&made, ' ');
    put(&made, c->path);
    put_char(&made, ' ');
    put(&made, c->why);
    for (i = 0; i < c->parts; i++) {
      put(&made, read_note_row(n, c->part[i].is.row).inner.needed ? ", needed " : ", ");
      put_number(&made, c->part[i].is.state);
      put_char(&made, ' ');
      put_version(&made, c->part[i].is.version);
      put_char(&made, ' ');
      put(&made, c->part[i].path);
    }
    if (strcmp(room, rows[k].cudnn)) printf("cudnn %d -> %s\n", k, room);
  }
  check_loaded_cudnn(c);
  /* The directory cannot be opened, so absence is not proven. */
  forget();
  mkdir("closed.d", 0);
  seteuid(65534);
  cx->library_path = "closed.d";
  {
    struct note *n = make_note_of_cudnn(LIBRARY_DLOPENED, "libcudnn-test.so.9", "", "9");
    const struct library_row row = read_note_row(n, 0).cudnn;
    detect_cudnn(cx, c, n, &row, 0, &cx->file);
    IS(c->is.state, UNKNOWN);
    IS(c->is.is_guess, 1);
  }
  seteuid(getuid());
  cx->library_path = before;
}
