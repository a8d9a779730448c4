/* The kernels of this very file, where nobody sealed it: read from memory, and given to the judge as the rows that a sealed
 * note would have, for the GPUs of this machine alone. The rules are those of guard-core/src/kernels/cover.rs and
 * guard-core/src/serves.rs; a table of builds proves them equal.
 *
 * nvcc leaves a record of each fatbin container, all of them side by side in one section. A record of our own, of a
 * container without entries, stands among them, and from it the others are found. */

struct container {
  uint32_t magic;
  uint16_t version, header;
  uint64_t size; /* of the entries behind the header */
};

struct record {
  uint32_t magic, version;
  const struct container *container;
  const void *more;
};

struct entry {
  uint16_t kind, format;
  uint32_t header;
  uint64_t size;
  uint32_t packed, options;
  uint16_t minor, major; /* the PTX ISA, or the ELF ABI of machine code */
  uint32_t arch, name, name_size;
  uint64_t flags, unused, unpacked;
};

enum { RECORD = 0x466243b1, LINKED_RECORD = 2 /* its container is a device linker's */ };
enum { PTX = 1, MACHINE_CODE = 2, LTO_IR = 8, RELOCATABLE_PTX = 0x40 };
enum { ZSTANDARD = 0x8000, SPECIFIC = 0x100000, FAMILY = 0x200000 };
/* Bytes below which an image holds no kernel, measured with nvcc 11.8 to 13.5. */
enum { LEAST_CODE = 2048, LEAST_PTX = 94 };
#define CONTAINER 0xba55ed50u

static const struct container empty __attribute__((used, section(".nv_fatbin"), aligned(8))) = {CONTAINER, 1, sizeof empty, 0};
static struct record own_record __attribute__((used, section(".nvFatBinSegment"), aligned(8))) = {RECORD, 1, &empty, 0};

static const struct floor {
  uint16_t of, cuda;
  uint32_t release;
} floors[] = {
    {0, 0, 0},
#define FLOOR(of, cuda, release) {of, cuda, release},
    FLOORS(FLOOR)
#undef FLOOR
    {0xffff, 0, 0}};

static const struct chip {
  uint16_t cc, other;
  uint8_t tegra, family;
} chips[] = {
#define CHIP(cc, other, tegra, family) {cc, other, tegra, family},
    CHIPS(CHIP)
#undef CHIP
    {0, 0, 0, 0}};

CODE const struct chip *chip_of(uint32_t cc) {
  const struct chip *c = chips;
  while (c->cc && c->cc != cc) c++;
  return c;
}

/* Code as a number: machine code first, the older arch, the wider suffix. */
enum { IS_PTX = 1 << 12, SUFFIX = 3, IS_FAMILY = 1, IS_SPECIFIC = 2 };

/* Whether GPUs of this compute capability run it. */
CALLED int serves(uint32_t code, uint32_t cc) {
  uint32_t arch = code >> 2 & 0x3ff, made = arch / 10 << 8 | arch % 10;
  int plain_ptx = (code & (IS_PTX | SUFFIX)) == IS_PTX;
  const struct chip *one = chip_of(made), *other = chip_of(cc);
  if (made == cc || (plain_ptx && made < cc)) return RIGHT;
  if (one->other == cc) return CANNOT_TELL;
  if (plain_ptx || (code & IS_SPECIFIC) || made >> 8 != cc >> 8 || made > cc) return WRONG;
  if (!(code & IS_FAMILY)) return one->tegra || other->tegra ? WRONG : RIGHT;
  return !one->family || !other->family ? CANNOT_TELL : one->family == other->family ? RIGHT : WRONG;
}

/* Keeps what the entries of a container say. */
CODE void take_container(const struct container *c, size_t left, int how) {
  static const char relocatable[] = "--compile-only";
  const struct entry *e = (const struct entry *)(c + 1);
  int first = g.codes, holds[2], ptx = 0, others = 0;
  uint32_t i;
  how |= STARTS;
  holds[0] = holds[1] = 0;
  if (left < sizeof *c || c->magic != CONTAINER || c->version != 1 || c->header != sizeof *c || c->size > left - sizeof *c) left = 1;
  else left = (size_t)c->size;
  for (; left && g.codes < MAX_CODES; e = (const struct entry *)((const char *)e + e->header + e->size)) {
    struct code *code = &g.code[g.codes];
    code->is = code->isa = code->how = 0;
    if (left < sizeof *e || e->header < sizeof *e || e->header > left || e->size > left - e->header) {
      g.codes++;
      others = holds[0] = 1; /* damaged */
      break;
    }
    left -= e->header + (size_t)e->size;
    ptx = e->kind == PTX || e->kind == RELOCATABLE_PTX;
    others |= !ptx;
    holds[ptx] |= (e->unpacked ? e->unpacked : e->size) >= (ptx ? LEAST_PTX : e->kind == MACHINE_CODE ? LEAST_CODE : 0);
    if (e->kind == LTO_IR) continue;
    g.codes++;
    if ((e->kind != MACHINE_CODE && !ptx) || e->arch < 10 || e->arch > 999) continue;
    for (i = sizeof *e; ptx && i + sizeof relocatable <= e->header; i++)
      if (same_bytes((const char *)e + i, relocatable, sizeof relocatable - 1)) how |= IS_INPUT;
    /* PTX ISA 9 came with CUDA 13, and so did ELF ABI 8 below arch 100, and these archs. */
    if (ptx ? e->major >= 9 : e->arch < 100 ? (e->major << 8 | e->minor) >= 0x108 : e->arch == 107 || e->arch == 110) how |= BY_13;
    code->is = (uint16_t)(e->arch << 2 | (e->flags & SPECIFIC ? IS_SPECIFIC : e->flags & FAMILY ? IS_FAMILY : 0) | (ptx ? IS_PTX : 0));
    if (ptx) code->isa = (uint16_t)(e->major << 8 | e->minor);
    if (e->flags & ZSTANDARD) code->how = IS_PACKED;
  }
  /* All images come from one source: what one of them holds, the others hold. */
  if (!holds[!others]) g.codes = first;
  if (first < g.codes) g.code[first].how |= (uint16_t)how;
}

/* The driver that several things need. */
struct needs {
  uint32_t cuda, release;
};

/* The release is that of the newer CUDA: of one that no table has, none is known, and that of an older one does not serve. */
CALLED void raise_to(struct needs *n, uint32_t cuda, uint32_t release) {
  if (n->cuda > cuda) return;
  if (n->cuda < cuda || n->release < release) n->release = release;
  n->cuda = cuda;
}

CODE void raise_needs(struct needs *n, uint32_t of) {
  const struct floor *f = floors;
  while (f->of < of) f++;
  raise_to(n, f->cuda, f->release);
}

/* The oldest PTX ISA whose driver supports this CUDA version, as a row has it; 0 where no table knows. */
CODE uint32_t packed_isa(uint32_t cuda) {
  enum { OLDEST_ISA = 1 << 10 };
  const struct floor *f = floors;
  if (!cuda || cuda > NEWEST_CUDA) return 0;
  while (f->of < OLDEST_ISA || f->cuda < cuda) f++;
  return ((uint32_t)f->of >> 4 & 0xf0) | (f->of & 15);
}

/* What GPUs of one compute capability find in this file. */
struct service {
  int served, left_out, unknown, has_ptx, by_13;
  int bare;      /* machine code serves it, and its container has no PTX */
  uint32_t code; /* the weakest that one uses: PTX before machine code, then the older; less IS_PTX */
  struct needs needs, ptx; /* ptx: of PTX alone, beside machine code, too */
};

CALLED void need(struct needs *n, const struct code *code, int how) {
  raise_needs(n, code->isa);
  if (code->how & IS_PACKED) raise_needs(n, how & BY_13 ? 13 : 12);
}

CODE void use(struct service *s, const struct code *code, const struct code *ptx, int how) {
  s->served = 1;
  if (s->code > (code->is ^ IS_PTX)) s->code = code->is ^ IS_PTX;
  need(&s->needs, code, how);
  s->by_13 |= !(code->is & IS_PTX) && how & BY_13;
  if (ptx) need(&s->ptx, ptx, how);
  else s->bare = 1;
}

CODE struct service service_for(uint32_t cc) {
  /* Relocatable code goes through a device linker. Where it left nothing for a GPU, the driver links the PTX of all inputs. */
  struct service s, linking;
  int links = 0, unserved = 0, k = 0;
  memset(&s, 0, sizeof s);
  s.code = ~(uint32_t)0;
  linking = s;
  while (k < g.codes) {
    const struct code *best[2], *used;
    int how = g.code[k].how, unknown = 0;
    struct service *to = how & IS_INPUT ? &linking : &s;
    best[0] = best[1] = 0;
    do {
      const struct code *code = &g.code[k];
      int ptx = (code->is & IS_PTX) != 0, is = code->is ? serves(code->is, cc) : CANNOT_TELL;
      if (is == CANNOT_TELL) unknown = 1;
      if (is == RIGHT && (!best[ptx] || best[ptx]->is < code->is)) best[ptx] = code;
    } while (++k < g.codes && !(g.code[k].how & STARTS));
    used = best[0] && to == &s ? best[0] : best[1];
    s.has_ptx |= best[1] || unknown;
    links += (how & IS_LINKED) != 0;
    if (used) use(to, used, best[1], how);
    else if (how & IS_LINKED) unserved = 1;
    else if (unknown) to->unknown = 1;
    else to->left_out = 1;
  }
  if (unserved || (!links && (linking.served | linking.left_out | linking.unknown))) {
    if (linking.unknown || (linking.left_out && linking.served && links > 1)) s.unknown = 1;
    else if (linking.left_out || !linking.served) s.left_out = 1;
    else {
      s.served = 1;
      if (s.code > linking.code) s.code = linking.code;
      raise_to(&s.needs, linking.needs.cuda, linking.needs.release);
      raise_to(&s.ptx, linking.ptx.cuda, linking.ptx.release);
    }
  }
  return s;
}

/* Texts of rows that nobody wrote stand in no note. Such a row says SEEN for the place of a text, and in its length's stead a
 * number that says which text: one of these two, a code (1 << 2 is the least), or a cudart by its version, 1000 of a major. */
enum { ALL_CODES = 0, CUDART_NEEDED = 1, LEAST_VERSION = 1 << 13, MAJOR_ALONE = 1 /* added to a version */ };

CODE struct text_ref seen(uint32_t what) {
  struct text_ref ref;
  ref.at = SEEN, ref.length = (uint16_t)what;
  return ref;
}

#define CUDART_FILE "libcudart.so"

CODE void put_code(struct text *t, uint32_t code) {
  put(t, code & IS_PTX ? "compute_" : "sm_");
  put_number(t, code >> 2 & 0x3ff);
  if (code & SUFFIX) put_char(t, code & IS_SPECIFIC ? 'a' : 'f');
}

CODE void seen_text(const struct note *n, uint32_t what, char *to) {
  struct text t = text_in(to, NOTE_TEXT);
  if (what >= LEAST_VERSION) {
    put(&t, "libcudart ");
    if (what % 10 == MAJOR_ALONE) put_number(&t, what / 1000);
    else put_cuda(&t, what);
  } else if (what == CUDART_NEEDED) {
    const char *needed = image_needs(&n->image, CUDART_FILE);
    if (needed) put(&t, needed);
  } else if (what != ALL_CODES) {
    put_code(&t, what);
  } else {
    uint32_t last = 0, next;
    for (;; last = next) {
      int k;
      next = SEEN;
      for (k = 0; k < g.codes; k++)
        if (g.code[k].is > last && g.code[k].is < next) next = g.code[k].is;
      if (next == SEEN) break;
      if (last) put(&t, ", ");
      put_code(&t, next);
    }
  }
}

/* Host code that nvcc made is made for some cudart, which asks for a driver of its major: the shared one that the file needs,
 * else the static one of the toolkit. */
CODE union row cudart_row(const struct note *n) {
  const char *needed = image_needs(&n->image, CUDART_FILE);
  uint32_t built = toolkit_of(n), cudart = built;
  struct needs needs;
  union row row;
  long major;
  memset(&row, 0, sizeof row);
  memset(&needs, 0, sizeof needs);
  row.kind = ROW_DRIVER;
  if (needed && needed[sizeof CUDART_FILE - 1]) {
    needed += sizeof CUDART_FILE;
    major = number(&needed, 60);
    if (major > 0 && (uint32_t)major != built / 1000) cudart = (uint32_t)major * 1000;
    else if (built) row.driver.cudart = seen(CUDART_NEEDED), row.driver.cudart_built = built / 1000 << 16 | built % 1000 / 10 << 8;
  }
  raise_needs(&needs, cudart);
  row.driver.cuda = needs.cuda || !cudart ? needs.cuda : cudart / 1000 * 1000;
  row.driver.release = needs.release;
  row.driver.because = seen(cudart == built ? cudart : cudart + MAJOR_ALONE);
  return row;
}

CODE union row row_of_gpu(const struct note *n, uint32_t cc) {
  struct service s = service_for(cc);
  struct needs sure;
  union row row;
  int isa, by = s.code & IS_PTX ? BY_CUBIN : BY_PTX;
  memset(&row, 0, sizeof row);
  memset(&sure, 0, sizeof sure);
  row.kind = ROW_GPU;
  if (s.served && s.left_out) by = BY_SOME | (by & BY_PTX);
  else if (s.unknown) by = BY_UNKNOWN;
  else if (!s.served) by = BY_NONE;
  isa = s.bare ? 0 : (int)(packed_isa(s.ptx.cuda) * PTX_ISA);
  if (by & (BY_CUBIN | BY_SOME)) by |= s.has_ptx ? isa : NO_PTX;
  else if (by == BY_PTX && (s.bare || s.ptx.cuda > s.needs.cuda)) by |= isa ? isa : NO_PTX;
  row.gpu.served_by = (uint16_t)by;
  row.gpu.cuda = s.needs.cuda, row.gpu.release = s.needs.release;
  row.gpu.built_for = seen(ALL_CODES);
  if (s.served) row.gpu.code = seen(s.code ^ IS_PTX);
  raise_needs(&sure, 13000);
  if (s.by_13 && cudart_row(n).driver.cuda < sure.cuda) row.gpu.sure_cuda = sure.cuda, row.gpu.sure_release = sure.release;
  if (s.needs.cuda > NEWEST_CUDA) row.gpu.sure_cuda = NO_DRIVER_KNOWN, row.gpu.sure_release = 0;
  return row;
}

/* Rows behind those of the note: of cudart, then of each GPU. Zeros where the row of another one speaks for it: GPUs between
 * which all are served alike have one. */
CODE union row seen_row(const struct note *n, int i) {
  const struct driver *d = &g.driver;
  union row row, alike;
  uint32_t cc, at, last;
  int k;
  if (!i--) return cudart_row(n);
  cc = d->cc[i];
  row = alike = row_of_gpu(n, cc);
  row.gpu.lowest = row.gpu.highest = cc;
  for (k = 0; k < d->gpus; k++) {
    uint32_t other = d->cc[k];
    if (!other) continue;
    at = cc < other ? cc : other, last = cc ^ other ^ at;
    for (; at <= last; at = (at & 0xff) < 10 ? at + 1 : (at | 0xff) + 1) {
      union row between = row_of_gpu(n, at);
      if (!same_bytes(&between, &alike, sizeof alike)) break;
    }
    if (at <= last) continue;
    if (k < i) row.kind = 0;
    if (other < row.gpu.lowest) row.gpu.lowest = other;
    if (other > row.gpu.highest) row.gpu.highest = other;
  }
  return row;
}

CODE uint32_t rows_of(const struct note *n) {
  return n->head.rows + (n->sees ? 1 + (g.codes && g.driver.gpus > 0 ? (uint32_t)g.driver.gpus : 0) : 0);
}

/* Rows of kernels that were declared, last in their note: what is seen counts more. */
CODE void leave_out_declared(struct note *n) {
  while (n->head.rows && note_row(n, n->head.rows - 1).kind == ROW_GPU) n->head.rows--;
}

/* Which notes are judged by what is seen: those of this file, where none was sealed. A sanitizer would keep it from looking beside
 * its own record. */
__attribute__((no_sanitize_address)) CODE void look_at_kernels(void) {
  const struct record *r = &own_record;
  const struct note *n = 0;
  int k;
  for (k = 0; k < g.notes; k++)
    if (g.note[k].own) {
      n = &g.note[k];
      if (n->head.sealed || n->head.archs_known == ARCHS_OBSERVED) return;
    }
  if (!n) return;
  g.looks = 1;
  /* Compilers take it for one object, and what stands beside it for nothing. */
  __asm__("" : "+r"(r));
  while (mapped_from(&n->image, (uintptr_t)(r - 1)) >= sizeof *r && r[-1].magic == RECORD) r--;
  for (g.codes = 0; mapped_from(&n->image, (uintptr_t)r) >= sizeof *r && r->magic == RECORD; r++)
    if (r->container != &empty)
      take_container(r->container, mapped_from(&n->image, (uintptr_t)r->container), r->version == LINKED_RECORD ? IS_LINKED : 0);
  if (g.codes == MAX_CODES) g.code[MAX_CODES - 1].is = 0, g.code[MAX_CODES - 1].how = STARTS; /* and who knows what else */
  for (k = 0; k < g.notes; k++) {
    struct note *of = &g.note[k];
    of->sees = of->own && of->state == NOTE_WHOLE && (g.codes || image_needs(&of->image, CUDART_FILE));
    if (of->sees && g.codes) leave_out_declared(of);
  }
}
