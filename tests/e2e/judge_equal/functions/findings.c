/* Findings: their texts, order and number, and the values that they get: findings.c, verdict.c, report.c, detection.c. */

/* A note with a name, rows of unknown kinds, and a toolkit. */
static struct note *make_note(int own, const char *toolkit) {
  static unsigned char bytes[4][HEAD_SIZE + 5 * ROW_SIZE + 64] __attribute__((aligned(8)));
  struct note *n = &cx->note[cx->notes];
  unsigned char *at = bytes[cx->notes++];
  struct note_head *h = (struct note_head *)at;
  const uint16_t texts = HEAD_SIZE + 5 * ROW_SIZE;
  memset(at, 0, sizeof *bytes);
  memcpy(h->magic, "cudagrd", 8);
  h->revision = REVISION;
  h->rows_at = HEAD_SIZE;
  h->row_size = ROW_SIZE;
  h->mismatch = MISMATCH_REFUSES;
  h->name.at = texts;
  h->name.length = 4;
  h->version.at = texts + 4;
  h->version.length = 5;
  h->toolkit.at = texts + 9;
  h->toolkit.length = (uint16_t)strlen(toolkit);
  memcpy(at + texts, "demo0.1.0", 9);
  memcpy(at + texts + 9, toolkit, strlen(toolkit));
  read_note(n, at, sizeof *bytes);
  n->own = own;
  n->file.name = "";
  return n;
}

static union row *get_written_row(struct note *n, int i) {
  return (union row *)(uintptr_t)(n->descriptor + HEAD_SIZE + i * ROW_SIZE);
}

static void forget(void) {
  cx->notes = cx->searches_kernels = cx->is_probe_skipped = 0;
  memset(&cx->findings, 0, sizeof cx->findings);
  cx->findings.texts_used = 1;
  cx->mode = MODE_MANIFEST;
  cx->program = 1;
  cx->dropped_notes = 0;
  cx->driver.is.gpu_count = 0;
  cx->now = cx->note;
}

/* Who reports a note, and whether it refuses. */
static void check_responsibility(void) {
  static const struct {
    int mode, program, own, library, mismatch, reports, refuses, scope;
  } rows[] = {{MODE_MANIFEST, 1, 1, LIBRARY_REPORTS, 1, 1, 1, 1},  {MODE_MANIFEST, 1, 1, LIBRARY_ENFORCES, 0, 1, 0, 1},
              {MODE_MANIFEST, 1, 0, LIBRARY_REPORTS, 1, 1, 1, 1},  {MODE_MANIFEST, 1, 0, LIBRARY_ENFORCES, 1, 0, 1, 1},
              {MODE_MANIFEST, 0, 1, LIBRARY_REPORTS, 1, 0, 1, 1},  {MODE_MANIFEST, 0, 1, LIBRARY_ENFORCES, 1, 1, 1, 1},
              {MODE_MANIFEST, 0, 0, LIBRARY_ENFORCES, 1, 0, 1, 0}, {MODE_WARN, 1, 0, LIBRARY_REPORTS, 1, 0, 0, 1},
              {MODE_WARN, 0, 1, LIBRARY_REPORTS, 1, 1, 0, 1},      {MODE_ENFORCE, 1, 0, LIBRARY_REPORTS, 0, 0, 1, 1},
              {MODE_ENFORCE, 0, 1, LIBRARY_REPORTS, 0, 1, 1, 1},   {MODE_ENFORCE, 1, 1, LIBRARY_REPORTS, 0, 1, 1, 1}};
  struct note n;
  int k;
  memset(&n, 0, sizeof n);
  for (k = 0; k < LENGTH(rows); k++) {
    cx->mode = rows[k].mode;
    cx->program = rows[k].program;
    n.own = rows[k].own;
    n.head.library = (uint8_t)rows[k].library;
    n.head.mismatch = (uint8_t)rows[k].mismatch;
    if (!!reports_note(cx, &n) != rows[k].reports || !!refuses(cx, &n) != rows[k].refuses ||
        !!in_scope(cx, &n) != rows[k].scope)
      printf("responsibility %d\n", k);
  }
  /* The findings that are kept: those that refuse, errors, and those that leave the verdict open. */
  for (k = 0; k < LENGTH(rows); k++) {
    struct finding f;
    memset(&f, 0, sizeof f);
    f.component = &n;
    f.severity = ERROR;
    cx->mode = rows[k].mode;
    cx->program = rows[k].program;
    n.own = rows[k].own;
    n.head.library = (uint8_t)rows[k].library;
    n.head.mismatch = (uint8_t)rows[k].mismatch;
    IS(get_retention_rank(cx, &f), 2 + rows[k].scope + (rows[k].reports & rows[k].refuses));
  }
  IS(parse_mode("off"), MODE_OFF);
  IS(parse_mode("warn"), MODE_WARN);
  IS(parse_mode("enforce"), MODE_ENFORCE);
  IS(parse_mode("of"), MODE_MANIFEST);
  IS(parse_mode(""), MODE_MANIFEST);
}

/* More findings than there is room for. An error is kept, and information is dropped first. */
static void check_room(void) {
  int k;
  forget();
  make_note(1, "");
  for (k = 0; k < MAX_FINDINGS + 2; k++) add_finding_with_severity(cx, CUDART_UNKNOWN, INFO)->min = (uint32_t)k;
  IS(cx->findings.count, MAX_FINDINGS);
  IS(cx->findings.dropped, 2);
  IS(cx->findings.at[MAX_FINDINGS - 1].min, MAX_FINDINGS - 1);
  add_finding_with_severity(cx, CUDNN_OLDER, ERROR)->min = 77;
  IS(cx->findings.at[MAX_FINDINGS - 1].min, 77);
  IS(cx->findings.at[MAX_FINDINGS - 2].min, MAX_FINDINGS - 2);
  IS(cx->findings.dropped, 3);
  add_finding_with_severity(cx, NOTE_NEWER, INFO)->min = 78; /* it leaves the verdict open */
  IS(cx->findings.at[MAX_FINDINGS - 2].min, 77);
  IS(cx->findings.at[MAX_FINDINGS - 1].min, 78);
  for (k = 0; k < MAX_FINDINGS - 1; k++) add_finding_with_severity(cx, CUDNN_OLDER, ERROR)->min = 100;
  IS(cx->findings.at[0].min, 77);
  IS(cx->findings.at[1].min, 100);
  IS(cx->findings.dropped, 4 + MAX_FINDINGS - 1);
  add_finding_with_severity(cx, NOTE_NEWER, INFO)->min = 79;
  for (k = 0; k < MAX_FINDINGS; k++) IS(cx->findings.at[k].min, k ? 100 : 77);
  IS(cx->findings.spare.min, 79);
  cx->call.result.count = 0;
  cx->call.result.dropped = 5; /* by the judge */
  add_judged_findings(cx);
  IS(cx->findings.dropped, 5 + MAX_FINDINGS - 1 + 5);
  cx->dropped_notes = 3;
  report_all_dropped(cx);
  IS(cx->findings.count, MAX_FINDINGS + 2);
  IS(cx->findings.at[MAX_FINDINGS].left_out, cx->findings.dropped);
  IS(cx->findings.at[MAX_FINDINGS].kept, MAX_FINDINGS);
  IS(cx->findings.at[MAX_FINDINGS + 1].left_out, 3);
  IS(cx->findings.at[MAX_FINDINGS + 1].kept, MAX_NOTES);
}

/* Notes beyond the room for them: one of this file replaces another one. */
static void check_room_for_notes(void) {
  int k;
  forget();
  for (k = 0; k < MAX_NOTES; k++) {
    IS(make_room_for_note(cx, 0) - cx->note, k);
    cx->note[k].own = k >= MAX_NOTES - 2;
  }
  IS(make_room_for_note(cx, 0) == 0, 1);
  IS(make_room_for_note(cx, 1) - cx->note, MAX_NOTES - 3);
  IS(cx->dropped_notes, 2);
  IS(cx->notes, MAX_NOTES);
  for (k = 1; k < MAX_NOTES; k++) cx->note[k].own = 1;
  IS(make_room_for_note(cx, 1) - cx->note, 0);
  cx->note[0].own = 1;
  IS(make_room_for_note(cx, 1) == 0, 1);
}

/* Texts are stored once, and not cut. */
static void check_stored_texts(void) {
  char longest[MAX_TEXTS];
  uint16_t a, b, k;
  forget();
  cx->findings.texts_used = 0;
  a = store_text(cx, "one");
  b = store_text(cx, "two");
  SAYS(cx->texts + a, "one");
  SAYS(cx->texts + b, "two");
  IS(store_text(cx, "one"), a);
  IS(store_text(cx, "tw"), b + 4);
  IS(store_text(cx, ""), 0);
  IS(store_untrusted_text(cx, ""), 0);
  IS(store_untrusted_text(cx, "a\tb"), b + 7);
  SAYS(cx->texts + b + 7, "a?b");
  k = (uint16_t)cx->findings.texts_used;
  memset(longest, 'x', sizeof longest);
  longest[MAX_TEXTS - k - 1] = 0;
  IS(store_text(cx, longest), 0);
  longest[MAX_TEXTS - k - 2] = 0;
  IS(store_text(cx, longest), k);
  IS(cx->findings.texts_used, MAX_TEXTS - 1);
}

static void check_templates(void) {
  static const struct {
    const char *format, *text;
    int has_values;
  } rows[] = {{"cuDNN {found}", "cuDNN 9.1.0", 1},
              {"cuDNN {built}", "cuDNN ", 0},
              {"a[ {built}]b", "ab", 0},
              {"a[ {found}]b", "a 9.1.0b", 1},
              {"{found}[ {built} {found}]", "9.1.0", 1},
              {"[{built}][{found}]", "9.1.0", 1},
              {"[x{built}][y]{found}", "y9.1.0", 1},
              {"{found} {built}", "9.1.0 ", 0},
              {"{needs_cuda} {driver} {left_out} {file} {component}", "12.4 580.95.05 7 f demo 0.1.0", 1},
              {"plain", "plain", 0}};
  struct finding f;
  int k;
  forget();
  make_note(1, "");
  memset(&f, 0, sizeof f);
  f.found = 0x90100;
  f.needs_cuda = 12040;
  f.driver = 580u << 20 | 95 << 8 | 5;
  f.left_out = 7;
  f.file = store_text(cx, "f");
  f.component = cx->note;
  for (k = 0; k < LENGTH(rows); k++) {
    IS(put_filled(cx, fresh(), rows[k].format, &f), rows[k].has_values);
    SAYS(room, rows[k].text);
  }
}

/* The finding that decides, and the order in which findings are printed. */
static void check_order(void) {
  const struct finding *f;
  forget();
  make_note(1, "");
  make_note(0, "")->head.mismatch = MISMATCH_WARNS;
  add_finding(cx, NOTE_NEWER);
  IS(get_result(cx), CANNOT_TELL);
  add_finding(cx, DRIVER_CANNOT_TELL);
  IS(find_decisive(cx, CANNOT_TELL)->kind, NOTE_NEWER);
  IS(find_decisive(cx, RIGHT) == 0, 1);
  add_finding_with_severity(cx, DRIVER_MISSING, INFO);
  add_finding(cx, CUDNN_OTHER_CUDA);
  IS(get_result(cx), CANNOT_TELL);
  cx->now = cx->note + 1;
  add_finding(cx, CUDNN_OLDER)->found = 3;
  cx->now = cx->note;
  add_finding(cx, CUDNN_OLDER)->found = 2;
  add_finding(cx, CUDNN_OTHER_MAJOR)->found = 1;
  add_finding(cx, CUDNN_OLDER)->found = 4;
  IS(get_result(cx), WRONG);
  IS(find_decisive(cx, WRONG)->found, 1);
  f = find_next_printed(cx, 0, 1);
  IS(f->found, 1);
  f = find_next_printed(cx, f, 1);
  IS(f->found, 2);
  f = find_next_printed(cx, f, 1);
  IS(f->found, 4);
  IS(find_next_printed(cx, f, 1) == 0, 1);
  f = find_next_printed(cx, 0, 0);
  IS(f->found, 3);
  IS(find_next_printed(cx, f, 0) == 0, 1);
  cx->program = 0;
  IS(find_decisive(cx, WRONG)->found, 1);
}

/* Findings that differ in the component share one text. */
static void check_same_cause(void) {
  struct finding a, b;
  int k;
  memset(&a, 0, sizeof a);
  a.kind = CUDNN_OLDER;
  IS(names_component(&a), 0);
  a.kind = JIT_MISSING;
  for (k = -2; k < 5; k++) {
    b = a;
    b.component = cx->note + 7;
    if (k == -2) b.kind = (enum message)(a.kind + 1);
    if (k == 0) b.part = 1;
    if (k == 1) b.driver = 1;
    if (k == 2) b.made_to = 1;
    if (k == 3) b.file = 1;
    if (k == 4) b.branch = 1;
    IS(has_same_cause(&a, &b), k == -1);
  }
}

static void check_texts_of_gpus(void) {
  static const uint16_t cc[] = {0x705, 0, 0x800, 0x705, 0xc00};
  forget();
  set_gpus(cc, LENGTH(cc));
  cx->driver.is.gpu_count = LENGTH(cc);
  put_gpus(cx, fresh(), 0x1f, 0);
  SAYS(room, "7.5, 8.0, 12.0");
  put_gpus(cx, fresh(), 0x1f, 1);
  SAYS(room, "sm_75, sm_80, sm_120");
  put_gpus(cx, fresh(), 0x18, 0);
  SAYS(room, "7.5, 12.0");
  put_gpus(cx, fresh(), 0x3, 0);
  SAYS(room, "7.5");
}

/* The toolkits that compile for GPUs, from and to, and the message about that of the build. */
static void check_makers(void) {
  static const struct {
    uint16_t cc[2];
    uint64_t gpus;
    const char *toolkit;
    uint32_t from, to;
    int kind;
  } rows[] = {{{0x800, 0}, 1, "13.0.88", 11000, 0, NO_CODE_FOR_GPU},
              {{0x700, 0}, 1, "13.0.88", 9000, 12090, NO_CODE_FOR_GPU_NO_LONGER_MADE},
              {{0x700, 0}, 1, "12.9.1", 9000, 12090, NO_CODE_FOR_GPU},
              {{0x700, 0}, 1, "", 9000, 12090, NO_CODE_FOR_GPU},
              {{0x800, 0}, 1, "10.2.1", 11000, 0, NO_CODE_FOR_GPU_NOT_YET_MADE},
              {{0x800, 0}, 1, "11.0.1", 11000, 0, NO_CODE_FOR_GPU},
              {{0x800, 0}, 1, "", 11000, 0, NO_CODE_FOR_GPU},
              {{0x900, 0}, 1, "", 11080, 0, NO_CODE_FOR_GPU},
              {{0xa00, 0}, 1, "", 12080, 0, NO_CODE_FOR_GPU},
              {{0x305, 0x700}, 3, "9.0", 9000, 11080, NO_CODE_FOR_GPU},
              {{0x700, 0x305}, 3, "9.0", 9000, 11080, NO_CODE_FOR_GPU},
              {{0x700, 0x305}, 1, "9.0", 9000, 12090, NO_CODE_FOR_GPU},
              {{0x700, 0x305}, 7, "9.0", 9000, 12090, NO_CODE_FOR_GPU},
              {{0x700, 0x800}, 3, "", 11000, 12090, NO_CODE_FOR_GPU}};
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    struct finding f;
    forget();
    memset(&f, 0, sizeof f);
    f.kind = NO_CODE_FOR_GPU;
    make_note(1, rows[k].toolkit);
    set_gpus(rows[k].cc, 2);
    /* A bit without a GPU is ignored. */
    cx->driver.is.gpu_count = rows[k].cc[1] && rows[k].gpus != 7 ? 2 : 1;
    set_makers(cx, &f, rows[k].gpus);
    if (f.made_from != rows[k].from || f.made_to != rows[k].to || f.kind != (enum message)rows[k].kind)
      printf("makers %d: %u to %u, kind %d\n", k, f.made_from, f.made_to, f.kind);
    IS(f.built_cuda, read_toolkit(cx->note));
  }
  forget();
  IS(read_toolkit(make_note(1, "12.4.131")), 12040);
  IS(read_toolkit(make_note(1, "0.12.4")), 12040);
}

/* The driver for the cudart of a toolkit; a newer CUDA than the tables have needs any driver of its major. */
static void check_row_of_cudart(void) {
  static const struct {
    const char *toolkit;
    uint32_t cuda, because;
    int kind;
  } rows[] = {{"12.4", 12000, 12040, ROW_DRIVER}, {"60.0", 60000, 60000, ROW_DRIVER}, {"61.0", 0, 0, 0}, {"", 0, 0, 0}};
  int k;
  describe_code("sm_80");
  for (k = 0; k < LENGTH(rows); k++) {
    union row row;
    forget();
    row = make_cudart_row(cx, make_note(1, rows[k].toolkit));
    IS(row.kind, rows[k].kind);
    IS(row.driver.cuda, rows[k].cuda);
    IS(row.driver.because.length, rows[k].because);
    IS(row.driver.release != 0, k == 0);
  }
}

/* A shared cudart decides, unless its major is that of the toolkit. */
static void check_row_of_shared_cudart(void) {
  static const ElfW(Dyn) table[] = {{DT_NEEDED, {1}}, {DT_NULL, {0}}};
  static const struct {
    const char *needed, *toolkit;
    uint32_t cuda, because, built;
  } rows[] = {{" libcudart.so.12", "13.0", 12000, 12000 + MAJOR_ALONE, 0},
              {" libcudart.so.12", "12.4", 12000, 12040, 0xc0400},
              {" libcudart.so.12", "", 12000, 12000 + MAJOR_ALONE, 0},
              {" libcudart.so.60", "12.4", 60000, 60000 + MAJOR_ALONE, 0},
              {" libcudart.so.61", "12.4", 12000, 12040, 0xc0400},
              {" libcudart.so", "12.4", 12000, 12040, 0},
              {" libcudart-a1b2.so.12", "13.0", 13000, 13000, 0}};
  const struct image own = cx->own;
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    union row row;
    forget();
    describe_code("sm_80");
    cx->own.dynamic = table;
    cx->own.strings = rows[k].needed;
    row = make_cudart_row(cx, make_note(1, rows[k].toolkit));
    IS(row.driver.cuda, rows[k].cuda);
    IS(row.driver.because.length, rows[k].because);
    IS(row.driver.cudart_built, rows[k].built);
    IS(row.driver.cudart.at, rows[k].built ? SEEN : 0);
  }
  cx->own = own;
}

/* Notes without rows to judge, and one of a newer revision. */
static void check_unreadable_notes(void) {
  static const struct {
    int state, kind, has_rows;
  } rows[] = {{NOTE_IS_ABSENT, NOTE_DAMAGED_NOT_FOUND, 0}, {NOTE_IS_DAMAGED, NOTE_DAMAGED, 0}, {NOTE_IS_NEWER, NOTE_NEWER, 1}};
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    forget();
    make_note(1, "")->state = rows[k].state;
    IS(judge_bytes(cx, cx->note), rows[k].has_rows);
    IS(cx->findings.count, 1);
    IS(cx->findings.at[0].kind, rows[k].kind);
  }
}

/* The facts that the judge gets, and the findings that it returns. */
static void check_judged_call(void) {
  struct cudnn *c = &cx->shared.note.cudnn;
  forget();
  make_note(1, "");
  memset(c, 0, sizeof *c);
  copy_text(c->soname, sizeof c->soname, "libcudnn.so.9");
  set_cudnn_facts(c);
  IS(c->is.has_file, 0);
  IS(c->is.major, 9);
  copy_path(&c->path, "/a");
  set_cudnn_facts(c);
  IS(c->is.has_file, 1);
  memset(cx->judged, 0, sizeof *cx->judged);
  cx->judged[0].code = JUDGE_CUDART_OLDER;
  cx->judged[0].row = NO_ROW;
  cx->call.result.findings = cx->judged;
  cx->call.result.count = 1;
  cx->call.result.dropped = 2;
  add_judged_findings(cx);
  IS(cx->findings.count, 1);
  IS(cx->findings.dropped, 2);
}

/* A debugger controls the process. */
static void check_skipped_probe(void) {
  struct cudnn *c = &cx->shared.note.cudnn;
  forget();
  c->is.state = FOUND;
  skip_probe(cx, c);
  IS(cx->is_probe_skipped, 1);
  IS(c->is.source, DETECTED);
  IS(c->is.state, UNKNOWN);
  forget();
  cx->driver.is.state = FOUND;
  skip_probe(cx, 0);
  IS(cx->is_probe_skipped, 1);
  IS(cx->driver.is.source, DETECTED);
  IS(cx->driver.is.state, UNKNOWN);
}

/* Requirements that are not judged. */
static void check_not_judged(void) {
  struct note *n;
  forget();
  n = make_note(1, "13.0.88");
  cx->seen_row[0].kind = ROW_GPU; /* it is not in the note */
  n->head.rows = 4;
  get_written_row(n, 0)->kind = 9;
  get_written_row(n, 1)->kind = ROW_LIBRARY;
  get_written_row(n, 2)->kind = 7;
  get_written_row(n, 3)->kind = 0;
  n->head.archs_known = ARCHS_OBSERVED;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "row of kind 0; row of kind 7; row of kind 9");
  add_unknown_rows(cx, n);
  SAYS(cx->texts + cx->findings.at[0].kinds, "0, 7, 9");
  n->head.rows = n->own = 0;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "");
  n->head.archs_known = ARCHS_UNSEALED;
  n->state = NOTE_IS_NEWER;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "");
  n->state = NOTE_WHOLE;
  n->own = 1;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "");
  n->own = 0;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "GPU code of another file");
  put_not_judged(cx, &made, 0, n, "; ");
  SAYS(room, "GPU code of another file");
  n->own = 1;
  cx->searches_kernels = 1;
  memset(&cx->seen_row[0], 0, sizeof cx->seen_row[0]);
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "GPU code outside fatbin containers; driver requirement of a static cudart");
  put_not_judged(cx, &made, 0, n, "; ");
  SAYS(room, "GPU code outside fatbin containers; driver requirement of a static cudart");
  cx->seen_row[0].driver.release = 1;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "GPU code outside fatbin containers");
  n->head.rows = 1;
  get_written_row(n, 0)->kind = ROW_GPU;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "");
  n->head.rows = 0;
  cx->searches_kernels = 0;
  n->head.sealed = 1;
  n->head.archs_known = ARCHS_DECLARED;
  cx->is_probe_skipped = 1;
  put_not_judged(cx, fresh(), 0, n, "; ");
  SAYS(room, "declared GPU code that was not found; facts that need a child process, because a debugger is attached");
}

/* The version of a cuDNN, by its parts, the name of its file and its answer. */
static void check_versions_of_cudnn(void) {
  static const struct {
    uint32_t loader, part[2], cuda[2];
    int answered, is_guess;
    uint32_t version, made_with;
    const char *from;
  } rows[] = {{0x90f01, {0, 0}, {0, 0}, 0, 0, 0x90f01, 0, "its file's name"},
              {0x90f01, {0x90f02, 0x90f03}, {0, 0}, 0, 0, 0x90f02, 0, "its inner library"},
              {0x90f01, {0, 0x90f03}, {12040, 13000}, 0, 0, 0x90f03, 12040, "its inner library"},
              {0, {0, 0}, {0, 13000}, 0x90a00, 0, 0x90a00, 13000, "cudnnGetVersion"},
              {0x90f01, {0, 0}, {0, 0}, 0x90f01, 1, 0x90f01, 0, "its file's name"},
              {0x90f01, {0, 0}, {0, 0}, 0x90a00, 0, 0x90f01, 0, "its file's name"},
              {0x90f01, {0, 0x90f01}, {0, 0}, 0x90a00, 1, 0x90a00, 0, "cudnnGetVersion"},
              {0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0}};
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    struct cudnn *c = &cx->shared.note.cudnn;
    int i;
    memset(c, 0, sizeof *c);
    c->parts = 2;
    c->is.loader = rows[k].loader;
    c->is.is_guess = (uint32_t)rows[k].is_guess;
    c->answered = rows[k].answered;
    for (i = 0; i < 2; i++) {
      c->part[i].is.state = FOUND;
      c->part[i].is.version = rows[k].part[i];
      c->part[i].cuda = rows[k].cuda[i];
      copy_text(c->part[i].path, 4, i ? "b" : "a");
    }
    settle_version(c);
    if (c->is.version != rows[k].version || c->is.made_with != rows[k].made_with)
      printf("cuDNN %d: %x, %u\n", k, c->is.version, c->is.made_with);
    SAYS(c->from, rows[k].from ? rows[k].from : "(null)");
    SAYS(c->by, !rows[k].from || strcmp(rows[k].from, "its inner library") ? "(null)" : rows[k].part[0] ? "a" : "b");
    IS(c->part[1].is.state, rows[k].is_guess && c->is.version == 0x90a00 ? UNKNOWN : FOUND);
  }
}

/* The values of a finding about cuDNN. */
static void check_values_of_cudnn(void) {
  static const struct {
    const char *path, *by, *beside;
  } places[] = {{"/a/libcudnn.so.9", 0, ""},
                {"/a/libcudnn.so.9", "/a/libcudnn_graph.so.9", ""},
                {"/a/libcudnn.so.9", "/b/libcudnn_graph.so.9", "/b/libcudnn_graph.so.9"},
                {"/a/libcudnn.so.9", "/a/b/libcudnn_graph.so.9", "/a/b/libcudnn_graph.so.9"},
                {"/a/b/libcudnn.so.9", "/a/libcudnn_graph.so.9", "/a/libcudnn_graph.so.9"},
                {"/a/libcudnn.so.9", "/a/libcudnn.so.9", ""}};
  struct cudnn *c = &cx->shared.note.cudnn;
  struct judge_finding from;
  struct library_row *row;
  struct finding *f;
  int k;
  for (k = 0; k < LENGTH(places) + 3; k++) {
    const int place = k < LENGTH(places) ? k : 0;
    forget();
    row = &get_written_row(make_note(1, ""), 0)->cudnn;
    cx->note->head.rows = 1;
    row->kind = ROW_LIBRARY;
    row->min = 0x90f00;
    row->built = 0x90f01;
    row->flags = k & 1 ? LIBRARY_PATCH : 0;
    memset(c, 0, sizeof *c);
    memset(&from, 0, sizeof from);
    c->is.version = 0x90e00;
    c->is.made_with = 12040;
    c->by = places[place].by;
    copy_path(&c->path, places[place].path);
    copy_text(c->soname, sizeof c->soname, "libcudnn.so.9");
    copy_text(c->why, sizeof c->why, "RUNPATH");
    c->parts = 3;
    for (from.parts = 0; from.parts < 3; from.parts++) {
      copy_text(c->part[from.parts].file, 8, from.parts == 0 ? "p0" : from.parts == 1 ? "p1" : "p2");
      copy_text(c->part[from.parts].path, 8, from.parts == 0 ? "/p0" : from.parts == 1 ? "/p1" : "/p2");
    }
    cx->call.manifest.built_cuda = 13000;
    from.code = k == LENGTH(places) ? JUDGE_CUDNN_OTHER_CUDA : k == LENGTH(places) + 1 ? JUDGE_CUDNN_INNER_MIXED : JUDGE_CUDNN_INNER_MISSING;
    from.parts = k == LENGTH(places) + 1 ? 6 : k > LENGTH(places) ? 5 : 0;
    from.severity = ERROR;
    from.version = 0x90d00;
    add_cudnn_finding(cx, &from);
    f = cx->findings.at;
    IS(f->built, 0x90f01);
    IS(f->min, k & 1 ? 0x90f01 : 0x90f00);
    IS(f->built_major, 9);
    IS(f->found, 0x90e00);
    IS(f->part, 0x90d00);
    IS(f->found_cuda, k == LENGTH(places) ? 12040 : 0);
    IS(f->built_cuda, k == LENGTH(places) ? 13000 : 0);
    SAYS(cx->texts + f->library, from.parts == 5 ? "p0, p2" : from.parts ? "p1, p2" : "libcudnn.so.9");
    SAYS(cx->texts + f->picked_by, "RUNPATH");
    SAYS(cx->texts + f->beside, k == LENGTH(places) + 1 ? "/p1" : k < LENGTH(places) ? places[k].beside : "");
  }
  IS(convert_to_cuda(0xd0100), 13010);
  for (k = 0; k < JUDGE_CODES + 2; k++) {
    from.code = (uint32_t)k;
    IS(get_judged_message(&from), k < LENGTH(judged_messages) ? judged_messages[k] : DRIVER_CANNOT_TELL);
  }
}

/* Rows of declared archs, at the end of a note, give way to those of the kernels. */
static void check_declared_rows(void) {
  static const struct {
    uint16_t kinds[3];
    int left;
  } rows[] = {{{ROW_LIBRARY, ROW_GPU, ROW_GPU}, 1}, {{ROW_GPU, ROW_GPU, ROW_GPU}, 0}, {{ROW_GPU, ROW_GPU, ROW_DRIVER}, 3}};
  int k, i;
  for (k = 0; k < LENGTH(rows); k++) {
    struct note *n;
    forget();
    n = make_note(1, "");
    n->head.rows = 3;
    for (i = 0; i < 3; i++) get_written_row(n, (uint32_t)i)->kind = rows[k].kinds[i];
    drop_declared_rows(n);
    IS(n->head.rows, rows[k].left);
  }
}

/* The values of a finding about driver and GPU. */
static void check_values_of_driver(void) {
  static const struct {
    int row, code, kind;
    uint32_t version, needs_cuda, isa;
    const char *values;
  } rows[] = {
      {-1, JUDGE_GPU_NOT_FOR_DRIVER, GPU_NOT_FOR_DRIVER, 580, 0, 0, "branch 580"},
      {0, JUDGE_DRIVER_TOO_OLD, DRIVER_TOO_OLD, 0, 13000, 0, "code libcudart 13.0"},
      {1, JUDGE_DRIVER_TOO_OLD_FOR_CODE, DRIVER_TOO_OLD_FOR_CODE, 0, 13000, 0, "code compute_80 for sm_70"},
      {1, JUDGE_DRIVER_TOO_OLD_FOR_CODE_FORCED, DRIVER_TOO_OLD_FOR_CODE_FORCED, 0, 13000, 0x804, "code PTX 8.4 for sm_70"},
      {1, JUDGE_DRIVER_CANNOT_TELL_UNSURE, DRIVER_CANNOT_TELL_UNSURE, 0, 13000, 0, "code compute_80 for sm_70 nvcc 13"},
      {3, JUDGE_CUDNN_NEEDS_NEWER_DRIVER, CUDNN_NEEDS_NEWER_DRIVER, 0, 13000, 0, "cuda 12040 found 9.15.0"},
      {2, JUDGE_CUDNN_TOO_NEW_FOR_GPU, CUDNN_TOO_NEW_FOR_GPU, 0x90b00, 0, 0, "found 9.15.0 min 9.10.0 dropped 9.11.0"},
      {2, JUDGE_CUDNN_TOO_NEW_FOR_GPU, CUDNN_TOO_NEW_FOR_GPU, 0x90a00, 0, 0, "found 9.15.0 dropped 9.10.0"},
      {2, JUDGE_CUDNN_BEFORE_THIS_GPU, CUDNN_BEFORE_THIS_GPU, 9, 0, 0, "found 9.15.0 min 9.10.0 newest 9"},
      {4, JUDGE_DRIVER_TOO_OLD_FOR_CODE, DRIVER_TOO_OLD_FOR_CODE_TEXT, 0, 13000, 0, "code compute_80 and PTX text 8.4 for sm_70"},
      {4, JUDGE_DRIVER_TOO_OLD_FOR_CODE_COMPRESSED, DRIVER_TOO_OLD_FOR_CODE_TEXT, 0, 13000, 0, "code compute_80 and PTX text 8.4 for sm_70"},
      {4, JUDGE_DRIVER_CANNOT_TELL_NEWER_PTX, DRIVER_CANNOT_TELL_NEWER_PTX, 0, 13000, 0, "code compute_80 and PTX text 8.4 for sm_70"},
  };
  static const char texts[] = "libcudart 13.0sm_70compute_80 and PTX text 8.4";
  struct driver *d = &cx->driver;
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    struct judge_finding from;
    struct finding *f;
    struct note *n;
    union row *row;
    uint16_t at;
    forget();
    n = make_note(1, "");
    n->head.rows = 5;
    at = (uint16_t)(n->size - sizeof texts);
    memcpy((char *)(uintptr_t)n->descriptor + at, texts, sizeof texts);
    row = get_written_row(n, 0);
    row->driver.kind = ROW_DRIVER;
    row->driver.because.at = at;
    row->driver.because.length = 14;
    row = get_written_row(n, 1);
    row->gpu.kind = ROW_GPU;
    row->gpu.cuda = 12000;
    row->gpu.built_for.at = (uint16_t)(at + 14);
    row->gpu.built_for.length = 5;
    row->gpu.code.at = (uint16_t)(at + 19);
    row->gpu.code.length = 10;
    *get_written_row(n, 4) = *row;
    get_written_row(n, 4)->gpu.code.length = sizeof texts - 1 - 19;
    row = get_written_row(n, 2);
    row->cudnn.kind = ROW_LIBRARY;
    row->cudnn.min = 0x90a00;
    get_written_row(n, 3)->inner.kind = ROW_PART;
    d->is.state = k ? FOUND : UNKNOWN;
    d->is.user = 580u << 20;
    d->is.kernel = (k & 1 ? 580u : 570u) << 20;
    d->is.cuda = 13010;
    d->is.init = k - 1;
    d->path = &cx->libcuda;
    copy_path(d->path, "/lib/libcuda.so.1");
    copy_text(d->error, 8, "broken");
    d->is.gpu_count = 1;
    d->gpu[0].cc = 0x700;
    cx->call.result.cudnn = 0x90f00;
    cx->call.result.made_with = 12040;
    memset(&from, 0, sizeof from);
    from.row = (uint32_t)rows[k].row;
    from.code = (uint32_t)rows[k].code;
    from.version = rows[k].version;
    from.needs_cuda = rows[k].needs_cuda;
    from.needs_release = 7;
    from.isa = rows[k].isa;
    from.gpus = 1;
    from.severity = ERROR;
    add_driver_finding(cx, &from);
    f = cx->findings.at;
    IS(f->kind, rows[k].kind);
    IS(f->answer, k > 1 ? k - 1 : 0);
    IS(f->cuda_major, 13);
    IS(f->driver, k ? 580u << 20 : 0);
    IS(f->cuda, k ? 13010 : 0);
    IS(f->kernel, k && !(k & 1) ? 570u << 20 : 0);
    IS(f->needs_cuda, rows[k].code == JUDGE_DRIVER_CANNOT_TELL_UNSURE ? 12000 : rows[k].needs_cuda);
    IS(f->needs_release, 7);
    SAYS(cx->texts + f->libcuda, k ? "/lib/libcuda.so.1" : "");
    SAYS(cx->texts + f->why, "broken");
    SAYS(cx->texts + f->gpus, "7.0");
    SAYS(cx->texts + f->archs, "sm_70");
    put_filled(cx, fresh(),
               "[ branch {branch}][ code {code}][ for {built_for}][ nvcc {nvcc_major}][ cuda {found_cuda}][ found {found}][ min "
               "{min}][ dropped {dropped_in}][ newest {newest_major}]",
               f);
    if (rows[k].row == 3) SAYS(room, " cuda 12.4 found 9.15.0");
    else SAYS(room + 1, rows[k].values);
  }
  memset(d, 0, sizeof *d);
}

/* The rows of drivers: the names of libcuda, the CUDA of the build, the shared cudart. */
static void check_rows_of_drivers(void) {
  static const char texts[] = "libcudart 13.0libcuda.so.1libcudart.so.13";
  struct note *n;
  union row *row;
  int k;
  forget();
  n = make_note(1, "");
  n->head.rows = 3;
  memcpy((char *)(uintptr_t)n->descriptor + n->size - sizeof texts, texts, sizeof texts);
  for (k = 1; k < 3; k++) {
    row = get_written_row(n, k);
    row->driver.kind = ROW_DRIVER;
    row->driver.cuda = 13000 + (uint32_t)k;
    row->driver.cudart_built = (uint32_t)k;
    row->driver.because.at = row->driver.cudart.at = row->driver.names.at = (uint16_t)(n->size - sizeof texts);
    row->driver.because.length = 14;
    row->driver.cudart.at += 26;
    row->driver.cudart.length = 15;
    row->driver.names.at += 14;
    row->driver.names.length = k == 2 ? 12 : 0;
  }
  cx->call.cudart_row = 0;
  read_driver_rows(cx, n, 3);
  IS(cx->call.manifest.built_cuda, 13001);
  IS(cx->call.manifest.cudart_built, 1);
  IS(cx->call.cudart_row, 1);
  SAYS(cx->libcuda_names, "libcuda.so.1");
  get_written_row(n, 1)->driver.because.at++;
  get_written_row(n, 1)->driver.cudart.length = 0;
  read_driver_rows(cx, n, 3);
  IS(cx->call.manifest.built_cuda, 13002);
  IS(cx->call.manifest.cudart_built, 2);
  IS(cx->call.cudart_row, 2);
  for (k = 1; k < 3; k++) {
    read_driver_rows(cx, n, (uint32_t)k);
    IS(cx->call.manifest.built_cuda, 0);
    IS(cx->call.manifest.cudart_built, 0);
    SAYS(cx->libcuda_names, LIBCUDA);
  }
}

/* Who may ask for the answer of the driver. */
static void check_allowed_needs(void) {
  const uint32_t files = NEED_CUDNN | NEED_CUDART | NEED_DRIVER | NEED_COMPILER;
  struct note n;
  memset(&n, 0, sizeof n);
  n.head.gpu = GPU_OPTIONAL;
  IS(get_allowed_needs(&n, 0, 1), files);
  IS(get_allowed_needs(&n, 1, 0), files | NEED_CUDNN_ANSWER);
  IS(get_allowed_needs(&n, 1, 1), files | NEED_CUDNN_ANSWER | NEED_DRIVER_ANSWER);
  n.head.gpu = GPU_AUTO;
  IS(get_allowed_needs(&n, 1, 0), files | NEED_CUDNN_ANSWER | NEED_DRIVER_ANSWER);
}

static void check_report_names(void) {
  char pid[32];
  struct text t = start_text(pid, sizeof pid);
  put_number(&t, (uint32_t)getpid());
  put(&t, "-here%x%");
  put_name(fresh(), "%p-%h%x%", "here");
  SAYS(room, pid);
  put_char(fresh(), '{');
  put_member(&made, "a", "b");
  put_number_member(&made, "n", 7);
  put_version_member(&made, "v", put_version, 0x90f01);
  put_version_member(&made, "w", put_version, 0);
  put(&made, ",\"l\":[");
  put_next(&made, "1");
  put_next(&made, "2");
  SAYS(room, "{\"a\":\"b\",\"n\":7,\"v\":\"9.15.1\",\"l\":[1,2");
}
