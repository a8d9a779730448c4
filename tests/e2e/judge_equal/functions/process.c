/* This process: output, its names, its verdict: process.c, report.c, entry.c. */

static void check_written(void) {
  enum { MANY = 20000 };
  static char many[MANY], got[MANY + 1];
  sigset_t before, after, pending;
  int ends[2], k;
  long n;
  size_t done = 0;
  for (k = 0; k < MANY; k++) many[k] = (char)('a' + k % 26);
  sigemptyset(&before);
  sigaddset(&before, SIGUSR1);
  sigprocmask(SIG_SETMASK, &before, 0);
  pipe(ends);
  fcntl(ends[1], F_SETFL, O_NONBLOCK); /* an error of the function must not block the test */
  write_out(ends[1], many, MANY, PIPE_BUF, 1);
  close(ends[1]);
  while ((n = read(ends[0], got + done, sizeof got - done)) > 0) done += (size_t)n;
  IS(done, MANY);
  IS(memcmp(got, many, MANY), 0);
  close(ends[0]);
  /* The pipe has no reader: no signal remains, and the mask is as before. */
  pipe(ends);
  close(ends[0]);
  write_out(ends[1], many, 10, PIPE_BUF, 1);
  close(ends[1]);
  sigpending(&pending);
  IS(sigismember(&pending, SIGPIPE), 0);
  sigprocmask(SIG_SETMASK, 0, &after);
  IS(memcmp(&before, &after, 8), 0);
  /* A full pipe. */
  pipe(ends);
  fcntl(ends[1], F_SETPIPE_SZ, 4096);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  write_out(ends[1], many, MANY, PIPE_BUF, 0);
  close(ends[1]);
  IS(read(ends[0], got, sizeof got), 4096);
  close(ends[0]);
  /* A file that may not grow: no signal remains. */
  {
    const struct rlimit limit = {4, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    append_to_file(cx, "limited", many, 10);
    setrlimit(RLIMIT_FSIZE, &none);
  }
  IS(get_file_size(cx, "limited"), 4);
  unlink("lines");
  append_to_file(cx, "lines", "one\n", 4);
  append_to_file(cx, "lines", "two\n", 4);
  IS(read_file_text(cx, "lines", got, sizeof got), 1);
  SAYS(got, "one\ntwo\n");
}

static void check_names_of_process(void) {
  char path[PATH_MAX], expected[PATH_MAX + 8], *s;
  ElfW(Phdr) headers[] = {{PT_INTERP}, {PT_INTERP}};
  struct image program;
  int k;
  program.file.ph = headers;
  program.file.n = 1;
  IS(find_interpreter(&program) == headers, 1);
  headers[0].p_type = PT_LOAD;
  IS(find_interpreter(&program) == 0, 1);
  getcwd(expected, PATH_MAX);
  strcat(expected, "/a/b");
  copy_absolute(&path, "a/b");
  SAYS(path, expected);
  copy_absolute(&path, "././a/b");
  SAYS(path, expected);
  copy_absolute(&path, "/a/b");
  SAYS(path, "/a/b");
  copy_absolute(&path, "");
  SAYS(path, "");
  memset(expected, 0, sizeof expected);
  readlink("/proc/self/exe", expected, PATH_MAX);
  SAYS(find_program(cx), expected);
  SAYS(get_object_path(cx, ""), expected);
  SAYS(get_object_path(cx, "/lib"), "/lib");
  gethostname(expected, sizeof expected);
  read_host_name(cx, path, sizeof path);
  SAYS(path, expected);
  /* The 22nd word of the file: the third follows the name in parentheses. */
  IS(read_file_text(cx, "/proc/self/stat", expected, sizeof expected), 1);
  for (s = strrchr(expected, ')'), k = 0; k < 20; k++) s = strchr(s + 1, ' ');
  *strchr(s + 1, ' ') = 0;
  read_start_time(cx, path, sizeof path);
  SAYS(path, s + 1);
  IS(get_process(), getpid());
}

static void use_nothing(const struct cudaguard_verdict *v, void *to, size_t size) {
  copy_reason(v, to, size);
}

static void check_verdict_of_process(void) {
  struct cudaguard_verdict v, to;
  char reason[64];
  const int mode = cx->mode, process = cx->process;
  memset(&v, 0, sizeof v);
  memset(&to, 7, sizeof to);
  to.size = sizeof to;
  v.code = 202;
  v.verdict = WRONG;
  copy_text(v.message, sizeof v.message, "older");
  copy_reason(&v, reason, sizeof reason);
  SAYS(reason, "[CG202] older");
  copy_reason(&v, reason, 6);
  SAYS(reason, "[CG20");
  copy_reason(&v, 0, 6);
  copy_reason(&v, reason, 0);
  SAYS(reason, "[CG20");
  v.code = 0;
  copy_reason(&v, reason, sizeof reason);
  SAYS(reason, "older");
  copy_members(&v, &to, sizeof to + 8);
  IS(to.size, sizeof to);
  IS(memcmp((char *)&to + sizeof to.size, (char *)&v + sizeof v.size, sizeof v - sizeof v.size), 0);
  memset(&to, 7, sizeof to);
  copy_members(&v, &to, offsetof(struct cudaguard_verdict, message));
  IS(to.verdict, WRONG);
  IS(to.message[0], 7);
  /* In a fork, the verdict of the parent counts: of its last check, or of its start. */
  cx->process = 1;
  cx->published.verdict = 5;
  cx->checked.verdict = 6;
  cx->is_checked = cx->is_published = 1;
  cx->lock = 0;
  IS(check(cx, use_nothing, reason, sizeof reason), 6);
  cx->lock = 1;
  IS(check(cx, use_nothing, reason, sizeof reason), 5);
  cx->lock = cx->is_checked = 0;
  IS(check(cx, use_nothing, reason, sizeof reason), 5);
  cx->is_published = 0;
  IS(check(cx, use_nothing, reason, sizeof reason), CANNOT_TELL);
  SAYS(reason, "the process was forked while the guard was at work");
  IS(is_forked(cx), 1);
  cx->process = 0;
  IS(is_forked(cx), 0);
  cx->process = getpid();
  IS(is_forked(cx), 0);
  cx->mode = MODE_OFF;
  IS(check(cx, use_nothing, reason, sizeof reason), CANNOT_TELL);
  SAYS(reason, "CUDAGUARD=off switches the guard off");
  IS(cx->lock, 0);
  lock(cx);
  IS(cx->lock, 1);
  unlock(cx);
  cx->mode = MODE_MANIFEST;
  /* A place behind the notes counts for nothing. */
  forget();
  make_note(1, "")->head.sealed = 1;
  make_note(1, "");
  get_written_row(&cx->note[1], 0)->kind = 99;
  cx->note[1].head.rows = 1;
  set_verdict(cx, &v);
  SAYS(v.not_judged, "row of kind 99");
  cx->notes = 1;
  set_verdict(cx, &v);
  SAYS(v.not_judged, "");
  cx->mode = mode;
  cx->process = process;
}

/* What is printed: all lines of the first finding, fewer of the others, and no cause twice. */
static const char *print_all(int refuse) {
  static char text[8192];
  int ends[2], saved = dup(2);
  long n;
  pipe(ends);
  dup2(ends[1], 2);
  print_findings(cx, refuse);
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  n = read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  text[n > 0 ? n : 0] = 0;
  return text;
}

static int count(const char *s, const char *what) {
  int n = 0;
  while ((s = strstr(s, what))) s += strlen(what), n++;
  return n;
}

static void check_printed(void) {
  struct finding *f;
  const char *text;
  int k;
  forget();
  make_note(1, "");
  for (k = 7; k < 10; k += 2) {
    cx->patience = 10;
    cx->left.tv_sec = k;
    put_report(cx, fresh(), "start", "host", &cx->checked);
    IS(count(room, "\"waited_seconds\":3,"), k == 7);
    IS(count(room, "waited"), k == 7);
  }
  cx->patience = 0;
  /* A check forgets the findings of the last one. */
  cx->findings.count = 3;
  judge(cx, 0, 0);
  IS(cx->findings.count, 0);
  forget();
  make_note(1, "");
  SAYS(print_all(1), "");
  for (k = 0; k < 3; k++) {
    make_note(0, "");
    cx->now = &cx->note[k];
    f = add_finding(cx, DRIVER_TOO_OLD);
    f->driver = 535u << 20;
    f->needs_release = 580u << 20;
    f->needs_cuda = 13000;
    if (k == 2) f->driver = 550u << 20;
  }
  cx->now = cx->note;
  add_finding(cx, JIT_MISSING);
  add_finding(cx, CUDNN_OTHER_CUDA);
  SAYS(print_all(0), "");
  text = print_all(1);
  IS(count(text, "\n"), 10);
  IS(count(text, "cudaguard: error[CG301]: "), 2);
  IS(count(text, "\n  needed by:  demo 0.1.0, demo 0.1.0\n"), 1);
  IS(count(text, "\n  needed by:  demo 0.1.0\n"), 1);
  IS(count(text, "\n  found: "), 1);
  IS(count(text, "\n  what to do: "), 3);
  IS(count(text, "what to do: install the complete driver"), 1);
  IS(count(text, "\n  (CUDAGUARD=warn "), 1);
  forget();
  make_note(1, "")->head.mismatch = MISMATCH_WARNS;
  for (k = 0; k < MAX_PRINTED + 2; k++) add_finding(cx, CUDNN_OLDER)->found = (uint32_t)k << 16;
  SAYS(print_all(1), "");
  SAYS(strstr(print_all(0), "  what to do") ? "" : "nothing", "");
  IS(strncmp(print_all(0), "cudaguard: warning[CG202]: cuDNN", 32), 0);
  SAYS(strstr(print_all(0), "cudaguard: and"), "cudaguard: and 2 more\n");
}
