/* PTX text in the read-only data of an unsealed file: `include_str!`, `.incbin`, literals. The
 * driver must compile it. cargo-cudaguard/src/binary/kernels/ptx.rs has the same rule for a header;
 * a test compares both. */
#include "shim.h"

/* More read-only data is not searched, because that takes time. */
enum { MOST_SEARCHED = 1 << 20 };

/* The first bytes of a fatbin container and of an ELF file, and e_machine of a cubin. */
#define CONTAINER 0xba55ed50u
enum { ELF_MAGIC = 0x464c457f, CUDA_MACHINE = 190 };

/* Skips blanks and comments to the end of a line. */
SHIM_FN const char *skip_blank(const char *s) {
  for (;; s++)
    if (s[0] == '/' && s[1] == '/') {
      while (s[1] && s[1] != '\n') s++;
    } else if (*s != ' ' && (*s < '\t' || *s > '\r')) {
      return s;
    }
}

/* Skips blanks and this text; returns null if another text follows. */
SHIM_FN const char *skip_text(const char *s, const char *text) {
  s = skip_blank(s);
  return starts_with(s, text) ? s + text_length(text) : 0;
}

/* Parses a module after `.version`. Returns whether it is one, and declares anything: otherwise it
 * is text about PTX. */
SHIM_FN int parse_ptx(const char *s, struct code *code) {
  const char *rest;
  long major, minor, arch;
  s = skip_blank(s);
  major = parse_number(&s, 99);
  if (major < 0 || *s++ != '.') return 0;
  minor = parse_number(&s, 15);
  if (minor < 0 || !(s = skip_text(s, ".target")) || !(s = skip_text(s, "sm_"))) return 0;
  arch = parse_number(&s, 999);
  code->isa = (uint16_t)(major << 8 | minor);
  if (arch < 10) return 0;
  code->is = (uint16_t)(IS_PTX | arch << 2);
  if (*s == 'a') code->is |= IS_SPECIFIC;
  if (*s == 'f') code->is |= IS_FAMILY;
  s += (code->is & SUFFIX) != 0;
  if (*s != ',' && (unsigned char)*s > ' ') return 0;
  while (*s && *s != '\n') s++; /* `, debug` */
  rest = skip_text(s, ".address_size");
  if (rest) {
    s = skip_blank(rest);
    parse_number(&s, 64);
  }
  return *skip_blank(s) == '.';
}

/* For functions that read the bytes of any object, which AddressSanitizer would report. */
#define ANY_BYTES __attribute__((no_sanitize_address))

/* Adds the module at this place, if it is one. Kernels that set conditions of CUDA graphs run only
 * if the driver has such graphs, so they require nothing. */
ANY_BYTES SHIM_FN void add_ptx(struct context *cx, const char *at, const char *end) {
  static const char marks[2][24] = {".version", "cudaGraphSetConditional"};
  struct code *known = cx->ptx, code = {0, 0, 0};
  char text[1024];
  size_t size;
  for (size = 0; size < 8; size++)
    if (at[size] != marks[0][size]) return;
  for (at += 8, size = 0; at + size < end && size + 1 < sizeof text; size++) text[size] = at[size];
  text[size] = 0;
  if (!parse_ptx(text, &code)) return;
  /* A module ends with a NUL, or another one follows. */
  for (size = 0; end - at > 2 && *at && (at[0] != '.' || at[1] != 'v' || at[2] != 'e'); at++) {
    size = *at == marks[1][size] ? size + 1 : *at == 'c';
    if (size == sizeof marks[1] - 1) return;
  }
  for (; known < cx->ptx + cx->ptx_count; known++)
    if (known->is == code.is && known->isa == code.isa) return;
  if (cx->ptx_count == MAX_PTX) return;
  *known = code;
  cx->ptx_count++;
}

ANY_BYTES SHIM_FN void search_segment(struct context *cx, const char *at, const char *end) {
  for (; end - at > 8; at++)
    if (at[7] != '.' && (at[7] < 'e' || at[7] > 'v')) at += 7; /* it is not in ".version" */
    else add_ptx(cx, at, end);
}

/* Returns whether a segment may contain a cubin or a fatbin container. */
ANY_BYTES SHIM_FN int has_bare_code(struct context *cx, const char *at, const char *end) {
  uint32_t mark;
  for (; end - at > 18; at++) {
    if (*at != 0x50 && *at != 0x7f) continue;
    memcpy(&mark, at, sizeof mark);
    if ((mark == CONTAINER && at != (const char *)cx->own_container) ||
        (mark == ELF_MAGIC && at[18] == (char)CUDA_MACHINE))
      return 1;
  }
  return 0;
}

/* Searches PTX in the read-only data of this file. An executable segment contains such data if it
 * begins with the headers of the file. */
SHIM_FN void search_ptx(struct context *cx) {
  enum { COUNTS, SEARCHES, CHECKS };
  const struct image *im = &cx->own;
  size_t size = 0;
  int k, pass;
  if (cx->is_ptx_searched++) return;
  for (pass = COUNTS; pass <= CHECKS && size <= MOST_SEARCHED; pass++)
    for (k = 0; k < im->file.n; k++) {
      const ElfW(Phdr) *ph = &im->file.ph[k];
      const char *at = (const char *)(im->file.base + ph->p_vaddr), *end = at + ph->p_filesz;
      if (ph->p_type != PT_LOAD || (ph->p_flags & (PF_R | PF_W)) != PF_R ||
          ((ph->p_flags & PF_X) && ph->p_offset))
        continue;
      if (pass == COUNTS) size += ph->p_filesz;
      else if (pass == SEARCHES) search_segment(cx, at, end);
      /* If there is other code, the program may prefer it to the PTX. */
      else if (cx->ptx_count && !cx->has_codes && has_bare_code(cx, at, end)) cx->ptx_count = 0;
    }
}

/* Reads the kernels of an unsealed file from memory, and creates the rows that a sealed note would
 * have for the GPUs of this machine. cargo-cudaguard/src/binary/kernels/cover.rs and
 * guard-core/src/coverage/compatibility.rs have the same rules; a test compares both with a table
 * of builds.
 *
 * nvcc writes a record of each fatbin container to one section. The shim adds a record of an empty
 * container to this section, to find the other records next to it. */

/* For functions that read the records next to own_record, which AddressSanitizer would report as an
 * error. */
#define NEIGHBOURS __attribute__((no_sanitize_address))

struct container {
  uint32_t magic;
  uint16_t version, header;
  uint64_t size; /* of the entries after the header */
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

enum { RECORD = 0x466243b1, LINKED_RECORD = 2 /* the device linker wrote its container */ };
enum { PTX = 1, MACHINE_CODE = 2, LTO_IR = 8, RELOCATABLE_PTX = 0x40 };
enum { ZSTANDARD = 0x8000, SPECIFIC = 0x100000, FAMILY = 0x200000 };
enum { NEWEST_ABI = 0x108 /* of CUDA 13; it is unknown which drivers load a newer one */ };
/* Smaller images contain no kernel (measured with nvcc 11.8 to 13.5). */
enum { LEAST_CODE = 2048, LEAST_PTX = 94 };

static const struct container empty
    __attribute__((used, section(".nv_fatbin"), aligned(8))) = {CONTAINER, 1, sizeof empty, 0};
static struct record own_record
    __attribute__((used, section(".nvFatBinSegment"), aligned(8))) = {RECORD, 1, &empty, 0};

/* An iterator over the entries of a container. */
struct entries {
  const struct entry *at;
  size_t left;
};

enum { NO_ENTRY, WHOLE_ENTRY, DAMAGED_ENTRY };

SHIM_FN int next_entry(struct entries *all, const struct entry **entry) {
  const struct entry *e = all->at;
  size_t left = all->left;
  *entry = e;
  if (!left) return NO_ENTRY;
  all->left = 0;
  if (left < sizeof *e || e->header < sizeof *e || e->header > left || e->size > left - e->header)
    return DAMAGED_ENTRY;
  all->left = left - e->header - (size_t)e->size;
  all->at = (const struct entry *)((const char *)e + e->header + e->size);
  return WHOLE_ENTRY;
}

SHIM_FN int is_ptx(const struct entry *e) { return e->kind == PTX || e->kind == RELOCATABLE_PTX; }

/* Reads an entry; `is` is 0 if it is unknown. */
SHIM_FN struct code read_code(const struct entry *e) {
  struct code code = {0, 0, 0};
  if ((e->kind != MACHINE_CODE && !is_ptx(e)) || e->arch < 10 || e->arch > 999) return code;
  if (e->kind == MACHINE_CODE && (e->major << 8 | e->minor) > NEWEST_ABI) return code;
  code.is = (uint16_t)(e->arch << 2 | (is_ptx(e) ? IS_PTX : 0));
  if (e->flags & SPECIFIC) code.is |= IS_SPECIFIC;
  else if (e->flags & FAMILY) code.is |= IS_FAMILY;
  if (is_ptx(e)) code.isa = (uint16_t)(e->major << 8 | e->minor);
  if (e->flags & ZSTANDARD) code.how = IS_PACKED;
  return code;
}

SHIM_FN int is_for_linking(const struct entry *e) {
  static const char option[] = "--compile-only";
  uint32_t i;
  for (i = sizeof *e; is_ptx(e) && i + sizeof option <= e->header; i++)
    if (bytes_are_equal((const char *)e + i, option, sizeof option - 1)) return 1;
  return 0;
}

/* Returns whether CUDA 13 or newer wrote the code: it introduced PTX ISA 9, ELF ABI 8 for archs
 * below 100, and the archs 107 and 110. */
SHIM_FN int is_made_by_13(const struct entry *e) {
  if (is_ptx(e)) return e->major >= 9;
  return e->arch < 100 ? (e->major << 8 | e->minor) >= 0x108 : e->arch == 107 || e->arch == 110;
}

/* Returns whether the size of an image allows a kernel. */
SHIM_FN int holds_kernel(const struct entry *e) {
  const uint64_t size = e->unpacked ? e->unpacked : e->size;
  return size >= (is_ptx(e)                 ? (uint64_t)LEAST_PTX
                  : e->kind == MACHINE_CODE ? (uint64_t)LEAST_CODE
                                            : 0);
}

/* A container with kernels: its entries, and their common properties (`how`). */
struct kernels {
  struct entries entries;
  int how;
};

SHIM_FN struct entries get_entries(const struct container *c, size_t left) {
  struct entries all;
  all.at = (const struct entry *)(c + 1);
  all.left = 1; /* damaged */
  if (left >= sizeof *c && c->magic == CONTAINER && c->version == 1 && c->header == sizeof *c &&
      c->size <= left - sizeof *c)
    all.left = (size_t)c->size;
  return all;
}

/* Reads a container; returns whether it has kernels. All images of a container are compiled from
 * the same source, so either all or none contain kernels. */
SHIM_FN int read_container(const struct container *c, size_t left, struct kernels *kernels) {
  struct entries rest = get_entries(c, left);
  const struct entry *e;
  int is, holds[2] = {0, 0}, others = 0, has_code = 0;
  kernels->entries = rest;
  kernels->how = 0;
  while ((is = next_entry(&rest, &e)) != NO_ENTRY) {
    if (is == DAMAGED_ENTRY) {
      has_code = others = holds[0] = 1;
      break;
    }
    others |= !is_ptx(e);
    holds[is_ptx(e)] |= holds_kernel(e);
    if (e->kind == LTO_IR) continue;
    has_code = 1;
    if (!read_code(e).is) continue;
    if (is_for_linking(e)) kernels->how |= IS_INPUT;
    if (is_made_by_13(e)) kernels->how |= BY_13;
  }
  return holds[!others] && has_code;
}

/* Reads the next code of a container; returns whether there is one. */
SHIM_FN int next_code(struct entries *rest, struct code *code) {
  const struct code unknown = {0, 0, 0};
  const struct entry *e;
  int is;
  do is = next_entry(rest, &e);
  while (is == WHOLE_ENTRY && e->kind == LTO_IR);
  *code = is == WHOLE_ENTRY ? read_code(e) : unknown;
  return is != NO_ENTRY;
}

/* Reads the next container with kernels of this file; returns whether there is one. */
NEIGHBOURS SHIM_FN int next_container(struct context *cx, const struct record **at,
                                      struct kernels *kernels) {
  const struct image *im = &cx->own;
  const struct record *r;
  while (count_mapped(im, (uintptr_t)(r = *at)) >= sizeof *r && r->magic == RECORD) {
    *at = r + 1;
    if (r->container == &empty ||
        !read_container(r->container, count_mapped(im, (uintptr_t)r->container), kernels))
      continue;
    if (r->version == LINKED_RECORD) kernels->how |= IS_LINKED;
    return 1;
  }
  return 0;
}

/* The GPU code in this file for one compute capability. */
struct service {
  int served, lacks_code, unknown, has_ptx, by_13;
  int bare;      /* a container has machine code for it and no PTX */
  uint32_t text; /* the ISA of PTX text that needs a newer driver, or 0 */
  uint32_t code; /* the weakest code that it uses, xor IS_PTX: PTX first, then the oldest arch */
  struct needs needs, ptx; /* ptx: of all PTX, including PTX next to machine code */
};

SHIM_FN void add_needs(struct needs *n, const struct code *code, int how) {
  raise_needs(n, code->isa);
  if (code->how & IS_PACKED) raise_needs(n, how & BY_13 ? 13 : 12);
}

SHIM_FN void add_code(struct service *s, const struct code *code, const struct code *ptx, int how) {
  s->served = 1;
  if (s->code > (code->is ^ IS_PTX)) s->code = code->is ^ IS_PTX;
  add_needs(&s->needs, code, how);
  s->by_13 |= !(code->is & IS_PTX) && how & BY_13;
  if (ptx) add_needs(&s->ptx, ptx, how);
  else s->bare = 1;
}

SHIM_FN void join_linking(struct service *s, const struct service *linking, int links) {
  if (linking->unknown || (linking->lacks_code && linking->served && links > 1)) {
    s->unknown = 1;
  } else if (linking->lacks_code || !linking->served) {
    s->lacks_code = 1;
  } else {
    s->served = 1;
    if (s->code > linking->code) s->code = linking->code;
    raise_needs_to(&s->needs, linking->needs.cuda, linking->needs.release);
    raise_needs_to(&s->ptx, linking->ptx.cuda, linking->ptx.release);
  }
}

/* The best codes in a container for a GPU. */
struct best {
  struct code machine_code, ptx; /* `is` is 0 if there is none */
  int unknown;
};

SHIM_FN struct best choose_codes(struct entries codes, uint32_t cc) {
  struct best best;
  struct code code;
  memset(&best, 0, sizeof best);
  while (next_code(&codes, &code)) {
    struct code *one = code.is & IS_PTX ? &best.ptx : &best.machine_code;
    int is = code.is ? check_code(code.is, cc) : CANNOT_TELL;
    if (is == CANNOT_TELL) best.unknown = 1;
    if (is == RIGHT && one->is < code.is) *one = code;
  }
  return best;
}

/* Adds the PTX text of this file. Texts may be alternatives, of which the program uses one, so only
 * the oldest ISA is certainly required. Next to containers that serve the GPU, text affects only
 * the driver. Otherwise it is unknown which of them the program uses, except for text older than
 * CUDA 11, which has helpers only. */
SHIM_FN void add_texts(struct context *cx, struct service *s, uint32_t cc) {
  const uint32_t before = s->needs.cuda;
  uint32_t oldest = 0, newest = 0;
  int k;
  for (k = 0; k < cx->ptx_count; k++) {
    const struct code *text = &cx->ptx[k];
    if (check_code(text->is, cc) != RIGHT) continue;
    if (!oldest || oldest > text->isa) oldest = text->isa;
    if (newest < text->isa) newest = text->isa;
    if (!cx->has_codes && s->code > (text->is ^ IS_PTX)) s->code = text->is ^ IS_PTX;
  }
  if (oldest) raise_needs(&s->needs, oldest);
  if (!cx->has_codes && oldest) {
    s->served = s->has_ptx = 1;
    s->ptx = s->needs;
  } else if (!cx->has_codes || (newest >= 0x700 && !s->served)) {
    s->unknown = 1;
  } else if (s->needs.cuda > before) {
    s->text = oldest;
  }
}

SHIM_FN struct service read_service(struct context *cx, uint32_t cc) {
  /* Relocatable code is the input of a device linker. If its output has no code for a GPU, the
   * driver links the PTX of all inputs. */
  struct service s, linking;
  const struct record *rest = cx->first_record;
  struct kernels one;
  int links = 0, unserved = 0;
  memset(&s, 0, sizeof s);
  s.code = ~(uint32_t)0;
  linking = s;
  while (next_container(cx, &rest, &one)) {
    const struct best best = choose_codes(one.entries, cc);
    struct service *to = one.how & IS_INPUT ? &linking : &s;
    const struct code *used = best.machine_code.is && to == &s ? &best.machine_code : &best.ptx;
    s.has_ptx |= best.ptx.is || best.unknown;
    links += (one.how & IS_LINKED) != 0;
    if (used->is) add_code(to, used, best.ptx.is ? &best.ptx : 0, one.how);
    else if (one.how & IS_LINKED) unserved = 1;
    else if (best.unknown) to->unknown = 1;
    else to->lacks_code = 1;
  }
  if (unserved || (!links && (linking.served | linking.lacks_code | linking.unknown)))
    join_linking(&s, &linking, links);
  add_texts(cx, &s, cc);
  return s;
}

/* References to strings of rows that are not in a note. The offset is SEEN. The length is one of
 * the first two values, a code (at least 1 << 2), or the version of a cudart. */
enum {
  ALL_CODES = 0,
  CUDART_NEEDED = 1,
  LEAST_VERSION = 1 << 13,
  MAJOR_ALONE = 1 /* added to a version */
};

SHIM_FN struct text_ref refer_to_seen(uint32_t what, uint32_t text_isa) {
  struct text_ref ref;
  ref.at = (uint16_t)(SEEN | (text_isa >> 4 & 0xf0) | (text_isa & 15));
  ref.length = (uint16_t)what;
  return ref;
}

#define CUDART_FILE "libcudart.so"

SHIM_FN void put_code(struct text *t, uint32_t code) {
  put(t, code & IS_PTX ? "compute_" : "sm_");
  put_number(t, code >> 2 & 0x3ff);
  if (code & SUFFIX) put_char(t, code & IS_SPECIFIC ? 'a' : 'f');
}

/* Appends all codes of this file without duplicates, in ascending order. */
SHIM_FN void put_all_codes(struct context *cx, struct text *t) {
  uint32_t last = 0, next;
  int k;
  for (;; last = next) {
    const struct record *rest = cx->first_record;
    struct kernels one;
    struct code code;
    next = SEEN;
    for (k = 0; k < cx->ptx_count && !cx->has_codes; k++)
      if (cx->ptx[k].is > last && cx->ptx[k].is < next) next = cx->ptx[k].is;
    while (next_container(cx, &rest, &one))
      while (next_code(&one.entries, &code))
        if (code.is > last && code.is < next) next = code.is;
    if (next == SEEN) return;
    if (last) put(t, ", ");
    put_code(t, next);
  }
}

SHIM_FN void format_seen_text(struct context *cx, struct text_ref ref, char *to) {
  const uint32_t what = ref.length, text = ref.at & 0xff;
  struct text t = start_text(to, NOTE_TEXT);
  if (what >= LEAST_VERSION) {
    put(&t, "libcudart ");
    if (what % 10 == MAJOR_ALONE) put_number(&t, what / 1000);
    else put_cuda(&t, what);
  } else if (what == CUDART_NEEDED) {
    put(&t, find_needed(&cx->own, CUDART_FILE)); /* only a row about it refers to it */
  } else if (what != ALL_CODES) {
    put_code(&t, what);
  } else {
    put_all_codes(cx, &t);
  }
  if (!text) return;
  put(&t, " and PTX text ");
  put_pair(&t, text >> 4, text & 15);
}

/* Creates the driver row of the cudart. Host code by nvcc uses a cudart, which needs a driver for
 * its major: the shared cudart that the file needs, otherwise the static one of the toolkit. A file
 * with PTX text alone, or that needs libcuda, needs any driver. */
SHIM_FN union row make_cudart_row(struct context *cx, const struct note *n) {
  const char *needed = find_needed(&cx->own, CUDART_FILE);
  uint32_t built = read_toolkit(n), cudart = built;
  struct needs needs = {0, 0};
  union row row;
  long major;
  memset(&row, 0, sizeof row);
  if (!needed && !cx->has_codes) {
    row.kind = ROW_DRIVER;
    row.driver.cuda = 1;
    return row;
  }
  if (needed && needed[sizeof CUDART_FILE - 1]) {
    needed += sizeof CUDART_FILE;
    major = parse_number(&needed, 60);
    if (major > 0 && (uint32_t)major != built / 1000) cudart = (uint32_t)major * 1000;
    else if (built) {
      row.driver.cudart = refer_to_seen(CUDART_NEEDED, 0);
      row.driver.cudart_built = built / 1000 << 16 | built % 1000 / 10 << 8;
    }
  }
  if (cudart) row.kind = ROW_DRIVER;
  raise_needs(&needs, cudart);
  row.driver.cuda = needs.cuda || !cudart ? needs.cuda : cudart / 1000 * 1000;
  row.driver.release = needs.release;
  row.driver.because = refer_to_seen(cudart == built ? cudart : cudart + MAJOR_ALONE, 0);
  return row;
}

SHIM_FN union row make_gpu_row(struct context *cx, uint32_t cc) {
  struct service s = read_service(cx, cc);
  struct needs sure = {0, 0};
  union row row;
  int isa, by = s.code & IS_PTX ? BY_CUBIN : BY_PTX;
  memset(&row, 0, sizeof row);
  row.kind = ROW_GPU;
  if (s.served && (s.lacks_code || s.unknown))
    by = BY_SOME | (by & BY_PTX) | (s.lacks_code ? 0 : BY_UNKNOWN);
  else if (s.unknown) by = BY_UNKNOWN | (s.lacks_code ? BY_NONE : 0);
  else if (!s.served) by = BY_NONE;
  isa = s.bare ? 0 : (int)(find_isa(s.ptx.cuda) * PTX_ISA);
  if (by & (BY_CUBIN | BY_SOME)) by |= s.has_ptx ? isa : NO_PTX;
  else if (by == BY_PTX && (s.bare || s.ptx.cuda > s.needs.cuda)) by |= isa ? isa : NO_PTX;
  row.gpu.served_by = (uint16_t)by;
  row.gpu.cuda = s.needs.cuda;
  row.gpu.release = s.needs.release;
  row.gpu.built_for = refer_to_seen(ALL_CODES, 0);
  if (s.served) row.gpu.code = refer_to_seen(s.code ^ IS_PTX, s.text);
  raise_needs(&sure, 13000);
  if (s.by_13 && cx->seen_row[0].driver.cuda < sure.cuda) {
    row.gpu.sure_cuda = sure.cuda;
    row.gpu.sure_release = sure.release;
  }
  if (s.needs.cuda > NEWEST_CUDA) {
    row.gpu.sure_cuda = NO_DRIVER_KNOWN;
    row.gpu.sure_release = 0;
  }
  return row;
}

/* Reads the kernels for all compute capabilities from the lowest to the highest of a GPU, as
 * sealing does. Neighbours with equal rows share one. */
SHIM_FN void read_gpu_rows(struct context *cx, const struct note *n) {
  const struct driver *d = &cx->driver;
  union row last, row;
  uint32_t cc, lowest = 0, highest = 0;
  int k, is_new = 0;
  search_ptx(cx);
  memset(&last, 0, sizeof last);
  cx->gpu_rows_of = n;
  cx->gpu_rows = 0;
  for (k = 0; k < d->is.gpu_count; k++) {
    if (d->gpu[k].cc && (!lowest || d->gpu[k].cc < lowest)) lowest = d->gpu[k].cc;
    if (d->gpu[k].cc > highest) highest = d->gpu[k].cc;
  }
  for (cc = lowest; cc <= highest; cc = (cc & 0xff) < 9 ? cc + 1 : (cc | 0xff) + 1) {
    row = make_gpu_row(cx, cc);
    is_new |= !bytes_are_equal(&row, &last, sizeof row);
    last = row;
    for (k = 0; k < d->is.gpu_count && d->gpu[k].cc != cc;) k++;
    if (k == d->is.gpu_count) continue;
    row.gpu.lowest = cc;
    if (is_new) cx->seen_row[++cx->gpu_rows] = row;
    cx->seen_row[cx->gpu_rows].gpu.highest = cc;
    is_new = 0;
  }
}

/* Returns a row of a note, or one that was made from the kernels of its file (make_seen_rows()). */
SHIM_API union row get_row(struct context *cx, const struct note *n, uint32_t i) {
  return i < n->head.rows ? read_note_row(n, i) : cx->seen_row[i - n->head.rows];
}

/* Reads a string of a row; returns null if it is invalid. */
SHIM_API const char *read_row_text(struct context *cx, const struct note *n, struct text_ref ref,
                                   char (*text)[NOTE_TEXT]) {
  if (!n->from_kernels || ref.at < SEEN) return read_note_text(n, ref, text);
  format_seen_text(cx, ref, *text);
  return *text;
}

/* Returns the number of rows after those of the note: the first one, then those of GPUs. */
SHIM_API uint32_t make_seen_rows(struct context *cx, const struct note *n) {
  if (!n->from_kernels) return 0;
  cx->seen_row[0] = make_cudart_row(cx, n);
  if (!(cx->has_codes | cx->ptx_count) || cx->driver.is.gpu_count <= 0) return 1;
  if (cx->gpu_rows_of != n) read_gpu_rows(cx, n);
  return 1 + cx->gpu_rows;
}

/* Drops the rows of declared archs, which are the last rows of the note, because the detected
 * kernels replace them. */
SHIM_FN void drop_declared_rows(struct note *n) {
  while (n->head.rows && read_note_row(n, n->head.rows - 1).kind == ROW_GPU) n->head.rows--;
}

/* Detects the kernels of this file, and marks its notes that get additional rows. Does nothing if a
 * note is sealed. */
NEIGHBOURS SHIM_API void read_own_kernels(struct context *cx) {
  const struct record *r = &own_record;
  struct kernels one;
  const struct note *n = 0;
  int k;
  for (k = 0; k < cx->notes; k++)
    if (cx->note[k].own) {
      n = &cx->note[k];
      if (n->head.sealed || n->head.archs_known == ARCHS_OBSERVED) return;
    }
  if (!n) return;
  cx->searches_kernels = 1;
  /* Hides the origin of the pointer, because compilers assume that it cannot refer to another
   * object. */
  __asm__("" : "+r"(r));
  while (count_mapped(&cx->own, (uintptr_t)(r - 1)) >= sizeof *r && r[-1].magic == RECORD) r--;
  cx->first_record = r;
  cx->has_codes = next_container(cx, &r, &one);
  cx->own_container = &empty;
  if (!cx->has_codes) search_ptx(cx); /* otherwise later, and only if there is a GPU */
  for (k = 0; k < cx->notes; k++) {
    struct note *of = &cx->note[k];
    of->from_kernels = of->own && of->state == NOTE_WHOLE &&
                       (cx->has_codes || cx->ptx_count || find_needed(&cx->own, CUDART_FILE) ||
                        find_needed(&cx->own, LIBCUDA));
    if (of->from_kernels && cx->has_codes) drop_declared_rows(of);
  }
}
