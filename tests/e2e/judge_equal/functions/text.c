/* Texts, numbers, versions, coverage of GPUs: text.c, coverage.c, detection.c, probe.c. */

static void put_row_of_json(struct text *t, const char *s) { put_json(t, s); }

static void check_numbers(void) {
  static const struct {
    const char *text;
    long most, number, used;
  } numbers[] = {{"12.", 99, 12, 2}, {"99", 99, 99, 2}, {"100", 99, -1, 3}, {"0", 9, 0, 1}, {"", 9, -1, 0},
                 {"/1", 9, -1, 0},   {":1", 9, -1, 0},  {"9:", 9, 9, 1},    {"9/", 9, 9, 1}};
  static const struct {
    const char *text;
    long least;
    int count;
    uint32_t n[3];
  } sequences[] = {{"x 535.261.03 y", 100, 3, {535, 261, 3}},
                   {"535.54", 100, 2, {535, 54, 0}},
                   {"99.100.7", 100, 2, {100, 7, 0}},
                   {"100.1", 100, 2, {100, 1, 0}},
                   {"1.2.3.4", 0, 3, {1, 2, 3}},
                   {"4095.4095", 0, 2, {4095, 4095, 0}},
                   {"4096.1", 0, 0, {0, 0, 0}},
                   {"40960.7.8", 0, 2, {7, 8, 0}},
                   {"4096000.7.8", 0, 2, {7, 8, 0}},
                   {"7", 0, 0, {0, 0, 0}},
                   {"7.", 0, 0, {0, 0, 0}},
                   {"7x8.9", 0, 2, {8, 9, 0}},
                   {"0.0", 0, 2, {0, 0, 0}},
                   {"", 0, 0, {0, 0, 0}}};
  int k;
  for (k = 0; k < LENGTH(numbers); k++) {
    const char *s = numbers[k].text;
    IS(parse_number(&s, numbers[k].most), numbers[k].number);
    IS(s - numbers[k].text, numbers[k].used);
  }
  for (k = 0; k < LENGTH(sequences); k++) {
    uint32_t n[3];
    IS(parse_numbers(sequences[k].text, sequences[k].least, n), sequences[k].count);
    if (sequences[k].count) IS(memcmp(n, sequences[k].n, sizeof n), 0);
  }
  IS(parse_version_in_name("libcudnn.so.9.10.2"), 0x90a02);
  IS(parse_version_in_name("libcudnn.so.9.255.255"), 0x9ffff);
  IS(parse_version_in_name("libcudnn.so.9.256.0"), 0);
  IS(parse_version_in_name("libcudnn.so.9.0.256"), 0);
  IS(parse_version_in_name("libcudnn.so.9.10"), 0);
  IS(parse_version_in_name("libcudnn.so.0.1.2"), 0x102);
  IS(parse_major_in_name("libcudnn.so.9"), 9);
  IS(parse_major_in_name("libcudnn.so.9.1"), 9);
  IS(parse_major_in_name("libcudnn.so.0"), 0);
  IS(parse_major_in_name("libcudnn.so"), 0);
  IS(parse_major_in_name("libcudnn_ops.so.9"), 0);
  IS(decode_version(8907), 0x80907);
  IS(decode_version(91501), 0x90f01);
  IS(decode_version(90000), 0x90000);
  IS(parse_release("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Sun"), 0x21710503);
  IS(parse_release("libcuda.so.99.1"), 0);
  IS(parse_release("libcuda.so.590.44.259"), 590 << 20 | 44 << 8 | 3);
  IS(check_version(0xffff), 0);
  IS(check_version(0x10000), 0x10000);
  IS(check_version(0x63ffff), 0x63ffff);
  IS(check_version(0x640000), 0);
}

static void check_texts(void) {
  char small[4], list[] = "one\ntwo\n", name[16];
  const char *rest = list;
  struct text t = start_text(small, sizeof small);
  PUTS("0", put_number, 0);
  PUTS("9", put_number, 9);
  PUTS("10", put_number, 10);
  PUTS("99", put_number, 99);
  PUTS("4294967295", put_number, 4294967295u);
  PUTS("9.0", put_capability, 0x900);
  PUTS("12.1", put_capability, 0xc01);
  PUTS("12.2", put_cuda, 12020);
  PUTS("13.0", put_cuda, 13000);
  PUTS("9.15.1", put_version, 0x90f01);
  PUTS("535.54.03", put_release, 535u << 20 | 54 << 8 | 3);
  PUTS("535.104.12", put_release, 535u << 20 | 104 << 8 | 12);
  PUTS("535.09.10", put_release, 535u << 20 | 9 << 8 | 10);
  PUTS("590.01", put_release, 590u << 20 | 1 << 8);
  PUTS("590.10", put_release, 590u << 20 | 10 << 8);
  PUTS("540.4.0", put_release, 540u << 20 | 4 << 8);
  PUTS("540.10", put_release, 540u << 20 | 10 << 8);
  PUTS("540.04.03", put_release, 540u << 20 | 4 << 8 | 3);
  PUTS("580", put_release, 580u << 20);
  PUTS("580.00.01", put_release, 580u << 20 | 1);
  put(&t, "abc");
  SAYS(small, "abc");
  IS(is_truncated(&t), 1);
  put(&t, "d");
  SAYS(small, "abc");
  shorten_text(&t, 1);
  SAYS(small, "a");
  IS(is_truncated(&t), 0);
  copy_text(small, sizeof small, "abcd");
  SAYS(small, "abc");
  IS(text_length("four"), 4);
  IS(texts_are_equal("a", "ab") | texts_are_equal("ab", "a"), 0);
  IS(texts_are_equal("ab", "ab") && starts_with("ab", "a"), 1);
  IS(starts_with("xb", "ab"), 0);
  IS(bytes_are_equal("xyz", "xyx", 2), 1);
  IS(bytes_are_equal("xyz", "xyx", 3), 0);
  IS(bytes_are_equal("xyz", "zyz", 3), 0);
  SAYS(find_text("a bc bd", "bd"), "bd");
  SAYS(find_text("abc", "d"), "(null)");
  SAYS(base_name("a/b//c"), "c");
  SAYS(base_name("c"), "c");
  rest = read_name(rest, name);
  SAYS(name, "one");
  rest = read_name(rest, name);
  SAYS(name, "two");
  IS(read_name(rest, name) == 0, 1);
  SAYS(read_name("one", name), "");
}

/* Untrusted bytes in messages and in the report. */
static void check_sanitized(void) {
  static const struct {
    const char *from, *to;
  } texts[] = {{" ~\x1f\x7f\t\n", " ~????"},
               {"\xc2\xa0", "\xc2\xa0"},
               {"\xc2\x9f", "??"},
               {"\xc0\xa0", "??"},
               {"\x80\xbf", "??"},
               {"\xdf\xbf", "\xdf\xbf"},
               {"\xe0\xa0\x80", "\xe0\xa0\x80"},
               {"\xe0\x9f\xbf", "???"},
               {"\xed\x9f\xbf", "\xed\x9f\xbf"},
               {"\xed\xa0\x80", "???"},
               {"\xee\x80\x80", "\xee\x80\x80"},
               {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
               {"\xf0\x8f\xbf\xbf", "????"},
               {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
               {"\xf4\x90\x80\x80", "????"},
               {"\xf7\xbf\xbf\xbf", "????"},
               {"\xf8\x80\x80\x80", "????"},
               {"\xc3", "?"},
               {"\xc3(", "?("},
               {"\xc3\xc3", "??"},
               {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b??\xd8\x9d"},
               {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90", "\xe2\x80\x8d??????\xe2\x80\x90"},
               {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xae\xe2\x80\xaf", "\xe2\x80\xa7??????\xe2\x80\xaf"},
               {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5??????\xe2\x81\xaa"}};
  char text[SHOW + 2];
  int k;
  for (k = 0; k < LENGTH(texts); k++) PUTS(texts[k].to, put_untrusted, texts[k].from);
  PUTS("\"a\\\"b\\\\c\\nd?\"", put_row_of_json, "a\"b\\c\nd\t");
  memset(text, 'a', sizeof text);
  text[SHOW] = 0;
  PUTS(text, put_untrusted, text);
  text[SHOW] = 'a';
  text[SHOW + 1] = 0;
  put_untrusted(fresh(), text);
  IS(made.used, SHOW + 3);
  IS(starts_with(room, "...aaa"), 1);
}

/* GPU code, as nvcc names it. */
static uint32_t read_code_name(const char *s) {
  uint32_t code = s[0] == 'c' ? IS_PTX : 0;
  long arch;
  s += s[0] == 'c' ? 8 : 3;
  arch = parse_number(&s, 1023);
  return code | (uint32_t)arch << 2 | (*s == 'f' ? IS_FAMILY : *s == 'a' ? IS_SPECIFIC : 0);
}

static void check_coverage(void) {
  static const struct {
    const char *code;
    uint32_t cc;
    int is;
  } rows[] = {
      {"sm_80", 0x800, RIGHT},        {"sm_80", 0x806, RIGHT},        {"sm_86", 0x800, WRONG},
      {"sm_80", 0x900, WRONG},        {"sm_90", 0x806, WRONG},        {"sm_80", 0x807, WRONG},
      {"sm_87", 0x809, WRONG},        {"sm_87", 0x807, RIGHT},        {"compute_80", 0x900, RIGHT},
      {"compute_80", 0x807, RIGHT},   {"compute_90", 0x806, WRONG},   {"compute_80", 0x800, RIGHT},
      {"compute_90a", 0x900, RIGHT},  {"compute_90a", 0xa00, WRONG},  {"sm_90a", 0x900, RIGHT},
      {"sm_100a", 0xa03, WRONG},      {"sm_100f", 0xa03, RIGHT},      {"sm_103f", 0xa00, WRONG},
      {"sm_100f", 0xc00, WRONG},      {"sm_101f", 0xa03, WRONG},      {"sm_101", 0xb00, CANNOT_TELL},
      {"sm_110", 0xa01, CANNOT_TELL}, {"compute_100f", 0xa03, RIGHT}, {"sm_100f", 0xa05, CANNOT_TELL},
      {"sm_104f", 0xa07, CANNOT_TELL}};
  struct needs needs;
  int k;
  for (k = 0; k < LENGTH(rows); k++) IS(check_code(read_code_name(rows[k].code), rows[k].cc), rows[k].is);
  IS(find_last_branch(0x205), 390);
  IS(find_last_branch(0x300), 470);
  IS(find_last_branch(0x302), 0);
  IS(find_last_branch(0x402), 470);
  IS(find_last_branch(0x500), 580);
  IS(find_last_branch(0x702), 0);
  IS(find_last_branch(0x704), 580);
  IS(find_last_branch(0x705), 0);
  IS(find_last_branch(0), 0);
  memset(&needs, 0, sizeof needs);
  raise_needs(&needs, 0x804);
  IS(needs.cuda * 10000 + (needs.release >> 16), 12040l * 10000 + 550);
  raise_needs(&needs, 0x700);
  IS(needs.cuda, 12040);
  raise_needs_to(&needs, 12040, 600u << 16);
  IS(needs.release, 600u << 16);
  raise_needs_to(&needs, 12040, 590u << 16);
  IS(needs.release, 600u << 16);
  raise_needs_to(&needs, 12050, 580u << 16);
  IS(needs.cuda * 10000 + (needs.release >> 16), 12050l * 10000 + 580);
  needs.cuda = needs.release = 0;
  raise_needs(&needs, 14000);
  IS(needs.cuda | needs.release, 0);
  IS(find_isa(0), 0);
  IS(find_isa(12040), 0x84);
  IS(find_isa(12060), 0x86);
  IS(find_isa(6000), 0x41);
  IS(find_isa(NEWEST_CUDA), 0x95);
  IS(find_isa(NEWEST_CUDA + 10), 0);
}

static void check_lists_of_gpus(void) {
  static const struct {
    const char *list;
    int is;
  } rows[] = {{"0", 1},     {"1", 1},    {"2", 0},      {"0,1", 1},  {"1,0", 1},       {"0,0", 0},     {"1,2", 1},
              {"0,-1", 1},  {"-1", 0},   {"-9", 0},     {"0,-9", 1}, {"0,-0", 0},      {"0,-", 0},     {"0,-x", 0},
              {"GPU-1", 0}, {"0,MI", 0}, {"0 ", 0},     {"0,", 0},   {"0,2,1", 1},     {"0x", 0},      {"1,1,2", 0},
              {"-,0", 0},   {"0,:", 0},  {"0,-:", 0},   {"0,-/", 0}, {"999999999", 0}, {"0,99999999", 1}};
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    const int is = names_some_gpus(rows[k].list, 2);
    if (is != rows[k].is) printf("CUDA_VISIBLE_DEVICES=%s: %d\n", rows[k].list, is);
  }
  /* An empty list hides all GPUs. */
  for (k = 0; k < 2; k++) {
    setenv("CUDA_VISIBLE_DEVICES", k ? "-1" : "", 1);
    cx->driver.is.gpu_count = -1;
    detect_gpus(cx, &cx->driver);
    IS(cx->driver.is.gpu_count, 0);
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  IS(get_capability("0x2330\n"), 0x900);
  IS(get_capability("0x20b0"), 0x800);
  IS(get_capability("0x1db4"), 0x700);
  IS(get_capability("0x12330"), 0);
  IS(get_capability("2330"), 0);
  IS(get_capability(""), 0);
}

/* The errors of dlopen of glibc and musl. */
static void check_errors_of_dlopen(void) {
  IS(is_absence("libx.so: cannot open shared object file: No such file", "libx.so"), 1);
  IS(is_absence("liby.so: cannot open shared object file: No such file", "libx.so"), 0);
  IS(is_absence("libx.so: file too short", "libx.so"), 0);
  IS(is_absence("Error loading shared library libx.so: No such file", "libx.so"), 1);
  IS(is_absence("Error loading shared library liby.so: No such file (needed by libx.so)", "libx.so"), 0);
  IS(is_mount_point(cx, "/dev/null: file too short", &cx->file.path), 1);
  IS(is_mount_point(cx, "/proc/self/exe: file too short", &cx->file.path), 0);
  IS(is_mount_point(cx, "/dev/null", &cx->file.path), 0);
  IS(is_mount_point(cx, "dev/null: file too short", &cx->file.path), 0);
  SAYS(join_compiler_path(&cx->file.path, "/a/b/libcuda.so.1"), "/a/b/" LIBJIT);
  SAYS(join_compiler_path(&cx->file.path, "libcuda.so.1"), LIBJIT);
  memcpy(cx->answer.at, "B\0L/a\0VL7\0G", 11);
  cx->answered = 11;
  SAYS(get_answer(cx, 'L'), "/a");
  SAYS(get_answer(cx, 'V'), "L7");
  SAYS(get_answer(cx, 'B'), "");
  SAYS(get_answer(cx, 'E'), "(null)");
}
