/* The judge of a start, with a program and a host as words, each a letter and its numbers. Of the program: `l` a library row (flags, min,
 * built), `p` a part row (needed, CUDA and release of its older driver, of its newer one), `d` a driver row (CUDA, release), `g` a row of
 * GPUs (lowest, highest, served by, CUDA, release, certain CUDA), `n` the need for a GPU, `P` partial code refuses, `b` the CUDA of the
 * build, `t` the cudart of the build and the one found (its source, state, version). Of the host: `c` cuDNN (source, state, version, version
 * of the loader, major, CUDA), `k` a part (row, state, version), `D` the driver (source, state, libcuda, kernel module, CUDA, cuInit), `G` a
 * GPU, `f` variables (forces and disables PTX), `j` the compiler of PTX (state, source), `x` libcuda cannot be loaded, `w` cuDNN is a guess, `h` it has a
 * file, `U` the GPUs are unknown. After `|`, the rows are in the second list. `C` is the room for findings. */

static struct judge_call judged_call;
static struct judge_driver judged_driver;
static struct judge_cudnn judged_cudnn;
static struct judge_gpu judged_gpus[72];
static struct judge_part judged_parts[8];
static union row judged_rows[16];

static void read_judge_word(const char *s) {
  struct judge_call *c = &judged_call;
  struct judge_driver *d = &judged_driver;
  struct judge_cudnn *u = &judged_cudnn;
  /* The second list begins behind a gap. */
  union row *row = &judged_rows[c->manifest.rows[0].count + c->manifest.rows[1].count];
  if (c->manifest.rows[1].at) row++;
  uint32_t n[8], k;
  const char kind = *s;
  memset(n, 0, sizeof n);
  for (k = 0; k < 8 && *s && *s != ' '; k++) n[k] = (uint32_t)strtol(s + 1, (char **)&s, 0);
  switch (kind) {
  case 'l':
    row->cudnn.kind = ROW_LIBRARY;
    row->cudnn.flags = (uint16_t)n[0];
    row->cudnn.min = n[1];
    row->cudnn.built = n[2];
    row->cudnn.below = n[3] ? n[3] : 0xa0000;
    row->cudnn.drops_gpus_from = 0x90b00;
    row->cudnn.oldest_gpu = 0x705;
    row->cudnn.oldest_gpu_before = 0x500;
    row->cudnn.newest_gpus_below_cuda = (uint8_t)n[4];
    row->cudnn.newest_gpus_from = 5;
    row->cudnn.newest_gpus = 10;
    row->cudnn.newest_gpus_before = 9;
    break;
  case 'p':
    row->inner.kind = ROW_PART;
    row->inner.needed = (uint16_t)n[0];
    row->inner.older_cuda = n[1];
    row->inner.older_release = n[2] << 16;
    row->inner.newer_cuda = n[3];
    row->inner.newer_release = n[4] << 16;
    break;
  case 'd':
    row->driver.kind = ROW_DRIVER;
    row->driver.cuda = n[0];
    row->driver.release = n[1] << 16;
    break;
  case 'g':
    row->gpu.kind = ROW_GPU;
    row->gpu.lowest = n[0];
    row->gpu.highest = n[1];
    row->gpu.served_by = (uint16_t)n[2];
    row->gpu.cuda = n[3];
    row->gpu.release = n[4] << 16;
    row->gpu.sure_cuda = n[5];
    break;
  case 'n': c->manifest.gpu = n[0]; return;
  case 'P': c->manifest.partial = PARTIAL_REFUSES; return;
  case 'b': c->manifest.built_cuda = n[0]; return;
  case 't':
    c->manifest.cudart_built = n[0];
    c->cudart.source = n[1];
    c->cudart.state = n[2];
    c->cudart.version = n[3];
    return;
  case 'c':
    u->source = n[0];
    u->state = n[1];
    u->version = n[2];
    u->loader = n[3];
    u->major = n[4];
    u->made_with = n[5];
    return;
  case 'h': u->has_file = 1; return;
  case 'w': u->is_guess = 1; return;
  case 'k':
    judged_parts[u->part_count].row = n[0];
    judged_parts[u->part_count].state = n[1];
    judged_parts[u->part_count++].version = n[2];
    return;
  case 'D':
    d->source = n[0];
    d->state = n[1];
    d->user = n[2] << 20;
    d->kernel = n[3] << 20;
    d->cuda = n[4];
    d->init = (int32_t)n[5];
    d->branch = n[2];
    d->gpu_count = d->gpu_count < 0 ? 0 : d->gpu_count;
    return;
  case 'G':
    if (d->gpu_count < 0) d->gpu_count = 0;
    judged_gpus[d->gpu_count++].cc = n[0];
    return;
  case 'U': d->gpu_count = -1; return;
  case 'f':
    d->forces_ptx = n[0] ? FOUND : UNKNOWN;
    d->disables_ptx = n[1] ? FOUND : UNKNOWN;
    return;
  case 'j':
    d->compiler = n[0];
    d->compiler_source = n[1];
    return;
  case 'x': d->cannot_load = 1; return;
  case '|': c->manifest.rows[1].at = row + 1; return;
  case 'C': c->result.capacity = n[0]; return;
  default: return;
  }
  c->manifest.rows[c->manifest.rows[1].at != 0].count++;
}

/* Judges, and describes the findings, what the judge needs, and the GPUs that can be used. */
static const char *judge_words(const char *words) {
  static const char *const names[] = {
#define NAME(name) #name,
      JUDGE_FINDINGS(NAME)
#undef NAME
  };
  static struct judge_finding found[8];
  struct judge_call *c = &judged_call;
  struct judge_facts facts;
  struct judge_result *r = &c->result;
  uint32_t i;
  struct text *t = fresh();
  memset(c, 0, sizeof *c);
  memset(&judged_driver, 0, sizeof judged_driver);
  memset(&judged_cudnn, 0, sizeof judged_cudnn);
  memset(judged_gpus, 0, sizeof judged_gpus);
  for (i = 0; i < (uint32_t)LENGTH(judged_gpus); i++) judged_gpus[i].cc = 0x800; /* also behind the last GPU */
  memset(judged_rows, 0, sizeof judged_rows);
  judged_driver.gpus = judged_gpus;
  judged_driver.gpu_count = judged_driver.init = -1;
  judged_cudnn.parts = judged_parts;
  judged_cudnn.part_stride = sizeof *judged_parts;
  c->manifest.rows[0].at = judged_rows;
  c->manifest.rows[0].stride = c->manifest.rows[1].stride = sizeof *judged_rows;
  r->capacity = LENGTH(found);
  while (*words) {
    read_judge_word(words);
    while (*words && *words++ != ' ')
      ;
  }
  facts.cudnn = &judged_cudnn;
  facts.cudart = &c->cudart;
  facts.driver = &judged_driver;
  r->findings = found;
  cudaguard_judge_start(&c->manifest, &facts, r);
  for (i = 0; i < r->count; i++) {
    const struct judge_finding *f = &found[i];
    if (t->used) put(t, "; ");
    put(t, names[f->code]);
    put(t, f->severity == ERROR ? " error" : f->severity == WARNING ? " warning" : "");
    if (f->row != NO_ROW) put(t, " row "), put_number(t, f->row);
    put(t, " gpus "), put_number(t, (uint32_t)f->gpus);
    if (f->parts) put(t, " parts "), put_number(t, (uint32_t)f->parts);
    if (f->version) put(t, " version "), put_version(t, f->version);
    if (f->needs_cuda) put(t, " cuda "), put_number(t, f->needs_cuda);
    if (f->needs_release) put(t, " release "), put_number(t, f->needs_release >> 20);
    if (f->isa) put(t, " isa "), put_capability(t, f->isa);
  }
  if (r->dropped) put(t, " dropped "), put_number(t, r->dropped);
  put(t, " | needs "), put_number(t, r->needs);
  if (r->usable_gpus) put(t, " usable "), put_number(t, (uint32_t)r->usable_gpus);
  if (r->cudnn) put(t, " cudnn "), put_version(t, r->cudnn);
  if (r->made_with) put(t, " made with "), put_number(t, r->made_with);
  return room;
}

static void check_judge(void) {
  static const struct {
    const char *words, *result;
  } rows[] = {
#include "judge.inc"
  };
  int k;
  for (k = 0; k < LENGTH(rows); k++)
    if (strcmp(judge_words(rows[k].words), rows[k].result))
      printf("judge.inc: {\"%s\", \"%s\"},\n", rows[k].words, room);
  /* The cuDNN of the report: a linked one before one inside of the program. */
  for (k = 0; k < 8; k++) {
    char words[64];
    const int of[] = {k & 1 ? LIBRARY_STATIC : LIBRARY_LINKED, k & 2 ? LIBRARY_STATIC : LIBRARY_LINKED};
    const int rows_of_libraries = k & 4 ? 2 : 1, second = rows_of_libraries == 2 && !(k & 2);
    snprintf(words, sizeof words, rows_of_libraries == 2 ? "l%d,0,0 l%d,0,0" : "l%d,0,0", of[0], of[1]);
    judge_words(words);
    IS(judged_call.result.library, second);
  }
}
