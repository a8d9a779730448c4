/* GPU code of an unsealed file: kernels.c. Containers are built from their description: `;` separates containers, a blank the
 * images in one. `sm_80`, `compute_90a`; after it `:8.4` the PTX ISA or `:1.8` the ELF ABI, then `z` Zstandard, `s` too small for a
 * kernel, `u` small if packed, `e` empty, `i` input of a linker, `r` relocatable PTX, `x` LTO IR, `k` of an unknown kind, `d` damaged. A container
 * that begins with `L` is the output of the device linker, one with `V` has an unknown version, one with `C` is longer than mapped. */

static struct {
  struct record records[8];
  char bytes[1 << 16];
} arena __attribute__((aligned(8)));

static ElfW(Phdr) arena_header;

static void add_image(struct container *c, const char *s) {
  static const char option[] = "--compile-only";
  struct entry *e = (struct entry *)((char *)(c + 1) + c->size);
  const char *colon = s;
  uint32_t code = read_code_name(s);
  memset(e, 0, sizeof *e);
  e->kind = code & IS_PTX ? PTX : MACHINE_CODE;
  e->format = 0x101;
  e->header = sizeof *e;
  e->arch = code >> 2 & 0x3ff;
  e->size = 4096;
  e->major = code & IS_PTX ? 8 : 1;
  e->minor = code & IS_PTX ? 0 : 7;
  if (code & IS_SPECIFIC) e->flags |= SPECIFIC;
  if (code & IS_FAMILY) e->flags |= FAMILY;
  while (*colon && *colon != ' ' && *colon != ';' && *colon != ':') colon++;
  if (*colon == ':') {
    colon++;
    e->major = (uint16_t)parse_number(&colon, 99);
    colon++;
    e->minor = (uint16_t)parse_number(&colon, 99);
    for (; *colon && *colon != ' ' && *colon != ';'; colon++) {
      if (*colon == 'z') e->flags |= ZSTANDARD;
      if (*colon == 's') e->size = code & IS_PTX ? LEAST_PTX - 1 : LEAST_CODE - 1;
      if (*colon == 'l') e->size = code & IS_PTX ? LEAST_PTX : LEAST_CODE;
      if (*colon == 'u') e->size = 8, e->unpacked = 4096;
      if (*colon == 'r') e->kind = RELOCATABLE_PTX;
      if (*colon == 'e') e->size = 0;
      if (*colon == 'x') e->kind = LTO_IR;
      if (*colon == 'k') e->kind = 77;
      if (*colon == 'd') e->header = sizeof *e - 1;
      if (*colon == 'i') {
        memcpy((char *)e + sizeof *e, option, sizeof option);
        e->header += sizeof option;
      }
    }
  }
  c->size += e->header + (*colon == 'd' ? 0 : e->size);
}

/* Fills the arena, and refers to it as the only segment of this file. */
static void describe_code(const char *s) {
  struct record *r = arena.records;
  char *at = arena.bytes;
  const struct record *rest = arena.records;
  struct kernels one;
  int is_cut;
  memset(&arena, 0, sizeof arena);
  arena_header.p_type = PT_LOAD;
  arena_header.p_flags = PF_R | PF_W;
  arena_header.p_filesz = sizeof arena;
  cx->own.file.base = (uintptr_t)&arena;
  cx->own.file.ph = &arena_header;
  cx->own.file.n = 1;
  while (*s) {
    struct container *c = (struct container *)at;
    r->magic = RECORD;
    r->version = *s == 'L' ? LINKED_RECORD : 1;
    (r++)->container = c;
    c->magic = CONTAINER;
    c->version = *s == 'V' ? 2 : 1;
    c->header = sizeof *c;
    is_cut = *s == 'C';
    for (s += *s == 'L' || *s == 'V' || is_cut; *s && *s != ';';) {
      add_image(c, s);
      while (*s && *s != ' ' && *s != ';') s++;
      s += *s == ' ';
    }
    s += *s == ';';
    at += (sizeof *c + c->size + 7) & ~(size_t)7;
    if (is_cut) c->size = sizeof arena;
  }
  cx->first_record = arena.records;
  cx->is_ptx_searched = 1;
  cx->has_codes = next_container(cx, &rest, &one);
}

/* Describes the row of a GPU. */
static const char *describe_row(const union row *row) {
  static const char names[][8] = {"cubin", "ptx", "some", "none", "unknown", "no-ptx"};
  const uint32_t by = row->gpu.served_by;
  char text[NOTE_TEXT];
  struct text *t = fresh();
  int k;
  for (k = 0; k < LENGTH(names); k++)
    if (by >> k & 1) {
      if (t->used) put_char(t, '+');
      put(t, names[k]);
    }
  if (by >> 8) {
    put(t, " isa ");
    put_pair(t, by >> 12, by >> 8 & 15);
  }
  if (row->gpu.code.at) {
    format_seen_text(cx, row->gpu.code, text);
    put(t, " by ");
    put(t, text);
  }
  if (row->gpu.cuda) {
    put(t, " needs ");
    put_cuda(t, row->gpu.cuda);
    put(t, row->gpu.release ? " known" : "");
  }
  if (row->gpu.sure_cuda) {
    put(t, " sure ");
    put_cuda(t, row->gpu.sure_cuda);
    put(t, row->gpu.sure_release ? " known" : "");
  }
  return room;
}

/* Texts of rows that are in no note. */
static void check_seen_texts(void) {
  static const struct {
    uint32_t what, isa;
    const char *text;
  } rows[] = {{13000, 0, "libcudart 13.0"},
              {12040, 0, "libcudart 12.4"},
              {12000 + MAJOR_ALONE, 0, "libcudart 12"},
              {80 << 2, 0, "sm_80"},
              {IS_PTX | 999 << 2, 0x804, "compute_999 and PTX text 8.4"},
              {90 << 2 | IS_SPECIFIC, 0, "sm_90a"},
              {ALL_CODES, 0xf0f, "sm_80, compute_90f and PTX text 15.15"}};
  char text[NOTE_TEXT];
  int k;
  describe_code("compute_90f:8.0 sm_80;sm_80");
  for (k = 0; k < LENGTH(rows); k++) {
    format_seen_text(cx, refer_to_seen(rows[k].what, rows[k].isa), text);
    SAYS(text, rows[k].text);
  }
}

static void check_rows_of_gpus(void) {
  static const struct {
    const char *code;
    uint32_t cc;
    const char *row;
  } rows[] = {
#include "kernels.inc"
  };
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    union row row;
    describe_code(rows[k].code);
    row = make_gpu_row(cx, rows[k].cc);
    if (strcmp(describe_row(&row), rows[k].row))
      printf("kernels.inc: {\"%s\", 0x%x, \"%s\"},\n", rows[k].code, rows[k].cc, room);
  }
  for (k = 0; k < 2; k++) { /* the driver of the cudart is new enough */
    union row row;
    cx->seen_row[0].driver.cuda = 12990 + (uint32_t)k * 10;
    describe_code("sm_90:1.8");
    row = make_gpu_row(cx, 0x900);
    SAYS(describe_row(&row), k ? "cubin+no-ptx by sm_90" : "cubin+no-ptx by sm_90 sure 13.0 known");
  }
  cx->seen_row[0].driver.cuda = 0;
}

/* PTX text, after `.version`. */
static void check_headers_of_ptx(void) {
  static const struct {
    const char *text;
    int is;
    uint32_t isa;
    const char *code;
  } rows[] = {
      {" 8.4\n.target sm_80\n.address_size 64\n.visible", 1, 0x804, "compute_80"},
      {"8.4 .target sm_90a, debug\n.entry", 1, 0x804, "compute_90a"},
      {" 8.15\n.target sm_100f\n.entry", 1, 0x80f, "compute_100f"},
      {" 99.0\r\n// a\n.target\tsm_80\r\n//b\n.address_size 64 .f", 1, 0x6300, "compute_80"},
      {" 8.4\n.target sm_10\n.address_size 32\n\v.f", 1, 0x804, "compute_10"},
      {" 8.4\n.target sm_999\n.f", 1, 0x804, "compute_999"},
      {" 8.4\n.target sm_80\n.address_size 64\n", 0, 0, ""},
      {" 8.4\n.target sm_80\n/ .f", 0, 0, ""},
      {" 8.4\n.target sm_80\n//\0.f", 0, 0, ""},
      {" 8.4\n.target sm_80\nf", 0, 0, ""},
      {" 8.4\n.target sm_80\n/ x\n.f", 0, 0, ""},
      {" 8.4\n.target sm_80b\n.f", 0, 0, ""},
      {" 8.4\n.target sm_80", 0, 0, ""},
      {" 8.4\n.target sm_9\n.f", 0, 0, ""},
      {" 8.4\n.target sm_1000\n.f", 0, 0, ""},
      {" 8.4\n.target compute_80\n.f", 0, 0, ""},
      {" 8.4\n.arch sm_80\n.f", 0, 0, ""},
      {" 100.4\n.target sm_80\n.f", 0, 0, ""},
      {" 8.16\n.target sm_80\n.f", 0, 0, ""},
      {" 8,4\n.target sm_80\n.f", 0, 0, ""},
      {" %d.%d\n.target sm_80\n.f", 0, 0, ""},
      {" 8.x\n.target sm_80\n.f", 0, 0, ""},
      {" 8.4 /.target sm_80\n.f", 0, 0, ""},
      {" 8.4\b.target sm_80\n.f", 0, 0, ""},
      {" 8.4\016.target sm_80\n.f", 0, 0, ""},
  };
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    struct code code;
    memset(&code, 0, sizeof code);
    IS(parse_ptx(rows[k].text, &code), rows[k].is);
    if (!rows[k].is) continue;
    IS(code.isa, rows[k].isa);
    put_code(fresh(), code.is);
    SAYS(room, rows[k].code);
  }
}

/* Writes the codes that a segment contains. */
static const char *search(const char *text, size_t size) {
  cx->has_codes = cx->ptx_count = 0;
  search_segment(cx, text, text + size);
  put_all_codes(cx, fresh());
  return room;
}

static void check_segments(void) {
#define MODULE(isa, arch) ".version " isa "\n.target sm_" arch "\n.entry q() { ret; }\n"
#define CONDITION "{ call cudaGraphSetConditional; }"
  static const struct {
    const char *text, *codes;
  } rows[] = {{"", ""},
              {MODULE("8.0", "80"), "compute_80"},
              {MODULE("8.0", "80") MODULE("8.0", "75"), "compute_75, compute_80"},
              {MODULE("8.0", "80") MODULE("8.1", "80"), "compute_80"},
              {MODULE("8.0", "80") CONDITION, ""},
              {MODULE("8.0", "80") CONDITION MODULE("8.0", "75"), "compute_75"},
              {MODULE("8.0", "80") MODULE("8.0", "75") CONDITION, "compute_80"},
              {MODULE("8.0", "80") "ccudaGraphSetCccudaGraphSetConditional;", ""},
              {MODULE("8.0", "80") "cudaGraphSetCondition", "compute_80"},
              {MODULE("8.0", "80") "xudaGraphSetConditional", "compute_80"},
              {".versi0n 8.0\n.target sm_80\n.entry", ""},
              {"..version 8.0\n.target sm_80\n.entry", "compute_80"}};
  static char bytes[512], head[] = MODULE("8.0", "80");
  struct code *ptx = cx->ptx;
  size_t k, size;
  describe_code("");
  for (k = 0; k < (size_t)LENGTH(rows); k++) SAYS(search(rows[k].text, strlen(rows[k].text) + 1), rows[k].codes);
  /* At each place, behind bytes that are and are not in the mark. */
  for (k = 0; k < 32; k++) {
    memset(bytes, k & 1 ? 0 : "e.vnsz"[k % 6], k);
    memcpy(bytes + k, head, sizeof head);
    SAYS(search(bytes, k + sizeof head), "compute_80");
  }
  /* A module that the segment cuts off. */
  size = strlen(".version 8.0\n.target sm_80\n.");
  SAYS(search(head, size), "compute_80");
  SAYS(search(head, size - 1), "");
  SAYS(search(head, size - 3), "");
  SAYS(search(head, 8), "");
  /* A long module, and more modules than there is room for. */
  memset(bytes, 0, sizeof bytes);
  for (k = 0; k < MAX_PTX + 4; k++) {
    struct text t = start_text(bytes, sizeof bytes);
    put(&t, ".version 8.0\n.target sm_");
    put_number(&t, 50 + (uint32_t)k);
    put(&t, "\n.entry");
    search_segment(cx, bytes, bytes + t.used + 1);
  }
  IS(cx->ptx_count, MAX_PTX);
  IS(ptx[MAX_PTX - 1].is, IS_PTX | (50 + MAX_PTX - 1) << 2);
}

static void check_bare_code(void) {
  static const uint32_t container = CONTAINER, elf = ELF_MAGIC;
  char bytes[64];
  cx->own_container = bytes;
  memset(bytes, 0, sizeof bytes);
  IS(has_bare_code(cx, bytes, bytes + 64), 0);
  memcpy(bytes, &container, 4);
  IS(has_bare_code(cx, bytes, bytes + 64), 0);
  memcpy(bytes + 4, &container, 4);
  IS(has_bare_code(cx, bytes, bytes + 64), 1);
  IS(has_bare_code(cx, bytes, bytes + 4 + 18), 0);
  IS(has_bare_code(cx, bytes, bytes + 4 + 19), 1);
  memcpy(bytes + 4, &elf, 4);
  bytes[4 + 18] = 62;
  IS(has_bare_code(cx, bytes, bytes + 64), 0);
  bytes[4 + 18] = (char)CUDA_MACHINE;
  IS(has_bare_code(cx, bytes, bytes + 64), 1);
}

/* The rows with PTX text, as `isa sm` pairs after a `|`. */
static void check_rows_with_text(void) {
  static const struct {
    const char *code;
    struct code text[3];
    const char *row;
  } rows[] = {{"", {{IS_PTX | 70 << 2, 0x704, 0}}, "ptx by compute_70 needs 11.4 known"},
              {"", {{IS_PTX | 70 << 2, 0x804, 0}, {IS_PTX | 75 << 2, 0x704, 0}}, "ptx by compute_70 needs 11.4 known"},
              {"", {{IS_PTX | 75 << 2, 0x704, 0}, {IS_PTX | 70 << 2, 0x804, 0}}, "ptx by compute_70 needs 11.4 known"},
              {"", {{IS_PTX | 90 << 2, 0x704, 0}}, "unknown"},
              {"", {{IS_PTX | 90 << 2, 0x704, 0}, {IS_PTX | 70 << 2, 0x804, 0}}, "ptx by compute_70 needs 12.4 known"},
              {"sm_80", {{IS_PTX | 70 << 2, 0x804, 0}}, "cubin+no-ptx by sm_80 and PTX text 8.4 needs 12.4 known"},
              {"sm_80", {{IS_PTX | 90 << 2, 0x804, 0}}, "cubin+no-ptx by sm_80"},
              {"sm_90", {{IS_PTX | 70 << 2, 0x700, 0}}, "none+unknown needs 11.0 known"},
              {"sm_90", {{IS_PTX | 70 << 2, 0x607, 0}}, "none needs 11.0 known"},
              {"sm_90", {{IS_PTX | 70 << 2, 0x607, 0}, {IS_PTX | 50 << 2, 0x804, 0}}, "none+unknown needs 11.0 known"},
              {"compute_70:8.4", {{IS_PTX | 70 << 2, 0x804, 0}}, "ptx by compute_70 needs 12.4 known"},
              {"compute_70:8.4", {{IS_PTX | 70 << 2, 0x805, 0}}, "ptx by compute_70 and PTX text 8.5 needs 12.5 known"}};
  int k;
  for (k = 0; k < LENGTH(rows); k++) {
    union row row;
    describe_code(rows[k].code);
    memcpy(cx->ptx, rows[k].text, sizeof rows[k].text);
    for (cx->ptx_count = 0; cx->ptx_count < 3 && cx->ptx[cx->ptx_count].is;) cx->ptx_count++;
    row = make_gpu_row(cx, 0x800);
    describe_row(&row);
    put(&made, row.gpu.lowest || row.gpu.kind != ROW_GPU ? " not of a GPU" : "");
    SAYS(room, rows[k].row);
  }
  cx->ptx_count = 0;
}

/* GPUs that are neighbours and have equal rows share one. */
static void check_shared_rows(void) {
  static const struct {
    const char *code;
    uint16_t cc[5];
    const char *rows;
  } rows[] = {{"sm_80", {0x800, 0x806}, "8.0 to 8.6;"},
              {"sm_80", {0x806, 0x800, 0x806}, "8.0 to 8.6;"},
              {"sm_80", {0x900, 0x800, 0x705}, "7.5 to 7.5; 8.0 to 8.0; 9.0 to 9.0;"},
              {"sm_80", {0x900, 0x705}, "7.5 to 7.5; 9.0 to 9.0;"},
              {"sm_80", {0x700, 0x705}, "7.0 to 7.5;"},
              {"sm_87", {0x809, 0x806}, "8.6 to 8.6; 8.9 to 8.9;"},
              {"sm_80", {0x900, 0}, "9.0 to 9.0;"},
              {"sm_80", {0}, "0.0 to 0.0;"}};
  static const int counts[] = {2, 3, 3, 2, 2, 2, 2, 1};
  struct note note;
  uint32_t i;
  int k;
  memset(&note, 0, sizeof note);
  note.from_kernels = 1;
  for (k = 0; k < LENGTH(rows); k++) {
    describe_code(rows[k].code);
    set_gpus(rows[k].cc, LENGTH(rows[k].cc));
    cx->driver.is.gpu_count = counts[k];
    cx->gpu_rows_of = 0;
    i = make_seen_rows(cx, &note);
    IS(i, 1 + cx->gpu_rows);
    fresh();
    for (i = 1; i <= cx->gpu_rows; i++) {
      const struct gpu_row row = get_row(cx, &note, i).gpu;
      if (made.used) put_char(&made, ' ');
      put_capability(&made, row.lowest);
      put(&made, " to ");
      put_capability(&made, row.highest);
      put_char(&made, ';');
    }
    SAYS(room, rows[k].rows);
  }
  cx->driver.is.gpu_count = 0;
  IS(make_seen_rows(cx, &note), 1);
  note.from_kernels = 0;
  IS(make_seen_rows(cx, &note), 0);
  note.from_kernels = 1;
  cx->has_codes = 0;
  IS(make_seen_rows(cx, &note), 1);
  IS(get_row(cx, &note, 0).driver.cuda, 1);
}
