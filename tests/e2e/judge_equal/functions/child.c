/* Children, which load libfake.so (fake.c): probe.c. */

static void ignore_signal(int number) { (void)number; }

static void check_children(void) {
  /* Names of libraries, `FAKE` of libfake.so, the outcome, and the answers. The directory of this test is `@`. */
  static const struct {
    const char *names, *fake;
    int is_cudnn, outcome;
    const char *answers;
  } rows[] = {
      {"@/libfake.so", "0000", 0, ANSWERED, "B|L@/libfake.so|V12040|I0|G2048,2310,|E"},
      {"libcg-none.so\n@/libfake.so", "0000", 0, ANSWERED, "B|L@/libfake.so|V12040|I0|G2048,2310,|E"},
      {"@/libfake.so\nlibcg-none.so", "1000", 0, ANSWERED, "B|L@/libfake.so|I0|G2048,2310,|E"},
      {"@/broken.so\n@/libfake.so", "0300", 0, ANSWERED, "B|L@/libfake.so|V12040|I3|E"},
      {"@/libfake.so", "0020", 0, ANSWERED, "B|L@/libfake.so|V12040|I0|E"},
      {"@/libfake.so", "0001", 0, ANSWERED, "B|L@/libfake.so|V12040|I0|G2048,0,|E"},
      {"@/jit/libfake.so", "0000", 0, ANSWERED, "B|L@/jit/libfake.so|V12040|I0|G2048,2310,|J|E"},
      {"libm.so.6", "0000", 0, ANSWERED, "B|L?|E"},
      {"@/libfake.so", "0000", 1, ANSWERED, "B|L@/libfake.so|V91501|1@/libfake.so|E"},
      {"libm.so.6", "0000", 1, ANSWERED, "B|L?|E"},
      {"libcg-none.so\nlibcg-none.so.1", "0000", 0, ANSWERED, "B|N|E"},
      {"@/empty.so\n@/none.so", "0000", 0, ANSWERED, "B|N|E"},
      {"@/broken.so\nlibcg-none.so", "0000", 0, ANSWERED, "B|T@/broken.so: |E"},
      {"@/broken.so\n@/cut.so", "0000", 0, ANSWERED, "B|T@/broken.so: |E"},
      {"@/libfake.so", "H", 0, HUNG, "B"},
  };
  struct cudnn *c = &cx->shared.note.cudnn;
  char dir[PATH_MAX];
  sigset_t blocked, before;
  pid_t sender;
  int k, i;
  getcwd(dir, sizeof dir);
  mkdir("jit", 0700);
  link("libfake.so", "jit/libfake.so");
  link("libfake.so", "jit/" LIBJIT);
  write_file("empty.so", "", 0);
  write_file("broken.so", "text", 4);
  memset(&cx->driver, 0, sizeof cx->driver);
  memset(c, 0, sizeof *c);
  c->parts = 2;
  copy_text(c->part[0].file, NOTE_TEXT, "libcg-none.so");
  copy_text(c->part[1].file, NOTE_TEXT, "libfake.so");
  /* A child does not inherit these. */
  signal(SIGHUP, SIG_IGN);
  signal(SIGSYS, SIG_IGN);
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, &before);
  for (k = 0; k < LENGTH(rows); k++) {
    char names[2 * PATH_MAX];
    struct text t = start_text(names, sizeof names);
    const char *s = rows[k].names;
    for (; *s; s++)
      if (*s == '@') put(&t, dir);
      else put_char(&t, *s);
    setenv("FAKE", rows[k].fake, 1);
    cx->asked[0] = 0;
    cx->lookup_failed = 0;
    cx->patience = cx->left.tv_sec = 5;
    if (*rows[k].fake == 'H') cx->left.tv_sec = 0, cx->left.tv_nsec = 100000000;
    IS(ask_child(cx, names, rows[k].is_cudnn ? c : 0), rows[k].outcome);
    fresh();
    for (i = 0; i < (int)cx->answered; i++) {
      const char *at = cx->answer.at + i;
      if (strncmp(at, dir, strlen(dir)) == 0) {
        put_char(&made, '@');
        i += (int)strlen(dir) - 1;
      } else if (*at == 'L' && find_text(at, "libm.so")) {
        put(&made, "L?");
        i += (int)strlen(at) - 1;
      } else if (*at == ' ') { /* the rest depends on the C library */
        put_char(&made, ' ');
        i += (int)strlen(at) - 1;
      } else {
        put_char(&made, *at ? *at : '|');
      }
    }
    if (made.at[made.used - 1] == '|') shorten_text(&made, made.used - 1); /* its NUL may be late */
    if (strcmp(room, rows[k].answers)) printf("child %d -> %s\n", k, room);
    IS(cx->answer.at[cx->answered], 0);
    IS(waitpid(-1, 0, WNOHANG | __WALL), -1); /* no child remains */
    IS(ask_child(cx, names, 0), rows[k].outcome); /* it is asked once */
  }
  sigprocmask(SIG_SETMASK, &before, 0);
  signal(SIGHUP, SIG_DFL);
  signal(SIGSYS, SIG_DFL);
  /* Absence is not proven. */
  cx->asked[0] = 0;
  cx->lookup_failed = 1;
  ask_child(cx, "libcg-none.so", 0);
  SAYS(get_answer(cx, 'N'), "(null)");
  /* The compiler of a driver is not searched twice. */
  cx->driver.is.compiler = FOUND;
  ask_child(cx, "jit/libfake.so", 0);
  SAYS(get_answer(cx, 'J'), "(null)");
  memset(&cx->driver, 0, sizeof cx->driver);
  /* A signal does not end the wait. */
  signal(SIGUSR1, ignore_signal);
  setenv("FAKE", "S000", 1);
  sender = fork();
  if (!sender) {
    usleep(20000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  cx->asked[0] = 0;
  cx->left.tv_sec = 5;
  IS(ask_child(cx, "./libfake.so", 0), ANSWERED);
  waitpid(sender, 0, 0);
  cx->asked[0] = 0;
  cx->lookup_failed = 0;
}
