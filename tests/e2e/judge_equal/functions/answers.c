/* What the answers of the child change: detection.c. An answer ends with `|`. */

static void give_answers(const char *answers, int outcome) {
  size_t k;
  for (k = 0; answers[k]; k++) cx->answer.at[k] = answers[k] == '|' ? 0 : answers[k];
  cx->answer.at[k] = 0;
  cx->answered = k;
  cx->outcome = outcome;
}

static void check_answers_of_driver(void) {
  static const struct {
    const char *answers;
    int outcome, compiler;
    const char *driver;
  } rows[] = {
      {"B|LX/libcuda.so.535.54.03|V12020|I0|G2048,2304,|J|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 12020 user 535.54.03 compiler 2 at X/libcuda.so.535.54.03 gpus 8.0 9.0"},
      {"B|LX/libcuda.so.535.54.03|V12020|I0|G2048,|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 12020 user 535.54.03 compiler 1 at X/libcuda.so.535.54.03 gpus 8.0"},
      {"B|LX/libcuda.so.535.54.03|V12020|I0|G2048,|E|", ANSWERED, FOUND, "2 init 0 cuda 12020 user 535.54.03 compiler 2 at X/libcuda.so.535.54.03 gpus 8.0"},
      {"B|LX/libcuda.so.1|V12020|I0|G2048,|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 12020 user 0 compiler 2 at X/libcuda.so.1 gpus 8.0"},
      {"B|LX/libcuda.so.535.54.03|V12020|I0|G|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 12020 user 535.54.03 compiler 1 at X/libcuda.so.535.54.03 gpus"},
      {"B|LX/libcuda.so.535.54.03|V12020|I100|E|", ANSWERED, UNKNOWN, "2 init 100 cuda 12020 user 535.54.03 compiler 0 at X/libcuda.so.535.54.03 gpus 8.0 9.0 0.0"},
      {"B|V12020|I0|G2048,|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 12020 user 530 compiler 1 at /files/libcuda.so.1 gpus 8.0"},
      {"B|I0|E|", ANSWERED, UNKNOWN, "2 init 0 cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
      {"B|N|E|", ANSWERED, UNKNOWN, "1 init ? cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
      {"B|Tbroken|E|", ANSWERED, UNKNOWN, "0 init ? cuda 0 user 530 compiler 0 broken: broken at /files/libcuda.so.1 gpus ?"},
      {"B|E|", ANSWERED, UNKNOWN, "0 init ? cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
      {"B|I0|", DIED, UNKNOWN, "0 init ? cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
      {"B|I0|", HUNG, UNKNOWN, "0 init ? cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
      {"", NOBODY_TO_ASK, UNKNOWN, "0 init ? cuda 0 user 530 compiler 0 at /files/libcuda.so.1 gpus ?"},
  };
  int k, i, state;
  for (k = 0; k < LENGTH(rows) * 2; k++) {
    struct driver *d = &cx->driver;
    state = k % 2 ? UNKNOWN : FOUND;
    forget();
    reset_driver(d);
    d->is.state = (uint32_t)state;
    d->is.source = BY_FILES;
    d->is.user = 530u << 20;
    d->is.compiler = (uint32_t)rows[k / 2].compiler;
    d->is.gpu_count = 3;
    d->chosen = 1;
    d->path = &cx->libcuda;
    copy_path(&cx->libcuda, "/files/libcuda.so.1");
    cx->level = 0;
    cx->probed.is.source = NOT_DETECTED;
    copy_text(cx->libcuda_names, NOTE_TEXT, LIBCUDA);
    copy_path(&cx->asked, LIBCUDA);
    give_answers(rows[k / 2].answers, rows[k / 2].outcome);
    probe_driver(cx, &cx->file);
    fresh();
    put_number(&made, d->is.state);
    put(&made, d->is.source == DETECTED && cx->level == 1 && !d->chosen ? "" : " not detected");
    put(&made, d->is.init < 0 ? " init ?" : " init ");
    if (d->is.init >= 0) put_number(&made, (uint32_t)d->is.init);
    put(&made, " cuda ");
    put_number(&made, d->is.cuda);
    put(&made, " user ");
    put_release(&made, d->is.user);
    put(&made, " compiler ");
    put_number(&made, d->is.compiler);
    put(&made, d->is.cannot_load ? " broken: " : "");
    put(&made, d->error);
    put(&made, " at ");
    put(&made, *d->path);
    put(&made, d->is.gpu_count < 0 ? " gpus ?" : " gpus");
    for (i = 0; i < d->is.gpu_count; i++) {
      put_char(&made, ' ');
      put_capability(&made, d->gpu[i].cc);
    }
    if (k % 2 == 0) {
      if (strcmp(room, rows[k / 2].driver)) printf("answers: %s -> %s\n", rows[k / 2].answers, room);
    } else {
      /* The files showed no libcuda, so there is no path but in an answer. */
      IS(find_text(room, "/files") != 0, 0);
    }
    /* It is asked once. */
    give_answers("", NOBODY_TO_ASK);
    d->is.state = 77;
    probe_driver(cx, &cx->file);
    IS(d->is.state != 77, 1);
  }
  memset(&cx->driver, 0, sizeof cx->driver);
  cx->asked[0] = 0;
}

static void check_answers_of_cudnn(void) {
  static const struct {
    const char *answers;
    int outcome, state, flags;
    const char *cudnn;
  } rows[] = {
      {"B|L/a/libcudnn.so.9|V91501|0/a/p0|1/a/p1|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 2 0.0.0"},
      {"B|L/a/libcudnn.so.9|V91501|1/a/p1|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 2 0.0.0"},
      {"B|L/a/libcudnn.so.9|V91501|0/b/libp.so.9.10.2|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.10.2 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.10.2 0 0.0.0"},
      {"B|L/a/libcudnn.so.9|", DIED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 1 0.0.0"},
      {"B|L/a/libcudnn.so.9|V91501|", DIED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"B|L/a/libcudnn.so.9|", HUNG, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"B|L/b/libcudnn.so.9.10.2|V91501|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.10.2 from its file's name at /b/libcudnn.so.9.10.2 by the loader parts"},
      {"B|L/b/libcudnn.so.9|V91002|E|", ANSWERED, ABSENT, LIBRARY_DLOPENED, "2 9.10.2 from cudnnGetVersion at /b/libcudnn.so.9 by the loader parts"},
      {"B|L/b/libcudnn.so.9|V91002|E|", ANSWERED, UNKNOWN, LIBRARY_DLOPENED, "2 9.10.2 from cudnnGetVersion at /b/libcudnn.so.9 by the loader parts"},
      {"B|N|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "1 0.0.0 at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 1 0.0.0"},
      {"B|N|E|", ANSWERED, ABSENT, LIBRARY_DLOPENED, "1 0.0.0 at  by RUNPATH parts"},
      {"B|N|E|", ANSWERED, FOUND, LIBRARY_LINKED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"B|Tbroken|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "0 0.0.0 at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 1 0.0.0"},
      {"B|Tbroken|E|", ANSWERED, ABSENT, LIBRARY_DLOPENED, "0 0.0.0 at  by RUNPATH parts"},
      {"B|L/a/libcudnn.so.9|V7|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"B|L/a/libcudnn.so.9|V99999999|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"B|L/a/libcudnn.so.9|V0|E|", ANSWERED, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"", NOBODY_TO_ASK, FOUND, LIBRARY_DLOPENED, "2 9.15.1 from its inner library at /a/libcudnn.so.9 by RUNPATH parts 2 9.15.1 0 0.0.0"},
      {"", NOBODY_TO_ASK, ABSENT, LIBRARY_DLOPENED, "0 0.0.0 at  by RUNPATH parts"},
  };
  int k, i, way;
  for (k = 0; k < LENGTH(rows); k++)
    for (way = 0; way < 2; way++) { /* the note is of this file, and of another one */
      struct cudnn *c = &cx->shared.note.cudnn;
      struct library_row row;
      struct note *n;
      forget();
      n = make_note(!way, "");
      get_written_row(n, 0)->inner.needed = 1;
      memset(&row, 0, sizeof row);
      memset(c, 0, sizeof *c);
      row.flags = (uint16_t)rows[k].flags;
      c->is.state = (uint32_t)rows[k].state;
      c->is.source = BY_FILES;
      copy_text(c->names, NOTE_TEXT, "libcudnn.so.9");
      copy_text(c->soname, NOTE_TEXT, "libcudnn-test.so.9");
      copy_path(&c->path, rows[k].state == FOUND ? "/a/libcudnn.so.9" : "");
      copy_text(c->why, WHY, "RUNPATH");
      c->parts = rows[k].state == FOUND ? 2 : 0;
      for (i = 0; i < c->parts; i++) {
        c->part[i].is.state = i ? ABSENT : FOUND;
        c->part[i].is.version = i ? 0 : 0x90f01;
        copy_text(c->part[i].path, 8, i ? "" : "/a/p0");
      }
      copy_path(&cx->asked, !way || rows[k].state == ABSENT ? c->names : c->path);
      give_answers(rows[k].answers, rows[k].outcome);
      cx->level = 0;
      probe_cudnn(cx, c, n, &row, &cx->file);
      fresh();
      put_number(&made, c->is.state);
      put(&made, c->is.source == DETECTED && cx->level == 1 ? " " : " not detected ");
      put_version(&made, c->is.version);
      put(&made, c->from ? " from " : "");
      put(&made, c->from ? c->from : "");
      put(&made, " at ");
      put(&made, c->path);
      put(&made, " by ");
      put(&made, c->why);
      put(&made, " parts");
      for (i = 0; i < c->parts; i++) {
        put_char(&made, ' ');
        put_number(&made, c->part[i].is.state);
        put_char(&made, ' ');
        put_version(&made, c->part[i].is.version);
      }
      if (way && rows[k].state == UNKNOWN) SAYS(room, "0 0.0.0 at  by RUNPATH parts"); /* not asked */
      else if (strcmp(room, rows[k].cudnn)) printf("answers: %s %d -> %s\n", rows[k].answers, way, room);
    }
  cx->asked[0] = 0;
}
