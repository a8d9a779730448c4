/* Feeds the judge of a start with bytes as rows and as facts. It is compiled in both ways: for the
 * command (this file), and for the shim (shim.c). */
#include "judge.c"

#include <stdio.h>
#include <stdlib.h>

void judge_as_shim(const struct judge_manifest *manifest, const struct judge_facts *facts,
                   struct judge_result *result);

enum { MAX_PARTS = 70, MAX_GPUS = 70, ROOM = 12 };

struct input {
  const uint8_t *at;
  size_t left;
};

/* Takes this number of bytes. After the last byte of the input it returns zeros. */
static void take(struct input *in, void *to, size_t size) {
  const size_t taken = size < in->left ? size : in->left;
  memset(to, 0, size);
  memcpy(to, in->at, taken);
  in->at += taken;
  in->left -= taken;
}

static uint32_t take_below(struct input *in, uint32_t limit) {
  uint8_t byte;
  take(in, &byte, 1);
  return byte % limit;
}

/* Most numbers are small, or those that versions and capabilities have. */
static uint32_t take_number(struct input *in) {
  static const uint32_t known[] = {0,     1,     0x705,     0x800,     0x900,     0xa00,
                                   11000, 12000, 12040,     13000,     99000,     0x90f01,
                                   34,    100,   803,       804,       0x2440000, 580 << 20,
                                   535,   0xffff, 0x80907,  0x91000,   0xffffffff};
  uint32_t number;
  if (take_below(in, 4)) return known[take_below(in, sizeof known / sizeof *known)];
  take(in, &number, sizeof number);
  return number;
}

#define REQUIRE(is)                                                                                \
  do {                                                                                             \
    if (!(is)) {                                                                                   \
      fprintf(stderr, "line %d: not %s\n", __LINE__, #is);                                         \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

static void compare(const struct judge_result *one, const struct judge_result *other) {
  REQUIRE(one->count == other->count && one->dropped == other->dropped);
  REQUIRE(one->needs == other->needs && one->usable_gpus == other->usable_gpus);
  REQUIRE(one->cudnn == other->cudnn && one->made_with == other->made_with);
  REQUIRE(one->library == other->library);
  REQUIRE(!memcmp(one->findings, other->findings, one->count * sizeof *one->findings));
}

static void take_rows(struct input *in, struct judge_rows *rows, void **owned) {
  const uint32_t stride = ROW_SIZE + take_below(in, 3);
  uint32_t count = take_below(in, 12), i;
  uint8_t *at = (uint8_t *)malloc((size_t)count * stride + 1);
  *owned = at;
  for (i = 0; i < count; i++) {
    union row row;
    take(in, &row, sizeof row);
    if (take_below(in, 8)) row.kind = (uint16_t)(1 + take_below(in, 4));
    if (row.kind == ROW_GPU && take_below(in, 4)) {
      row.gpu.lowest = take_number(in) & 0xfff;
      row.gpu.highest = row.gpu.lowest + take_number(in);
      row.gpu.cuda = take_number(in);
      row.gpu.release = take_number(in);
      row.gpu.sure_cuda = take_number(in);
    }
    if (row.kind == ROW_LIBRARY && take_below(in, 4)) {
      row.cudnn.built = take_number(in);
      row.cudnn.below = row.cudnn.built + 0x10000;
      row.cudnn.min = row.cudnn.built & 0xffff00;
    }
    memcpy(at + (size_t)i * stride, &row, sizeof row);
  }
  rows->at = at;
  rows->count = count;
  rows->stride = stride;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input in;
  struct judge_manifest manifest;
  struct judge_cudnn cudnn;
  struct judge_cudart cudart;
  struct judge_driver driver;
  struct judge_facts facts;
  struct judge_part *parts;
  struct judge_gpu *gpus;
  struct judge_finding *room[3];
  struct judge_result result[3];
  void *rows[2];
  uint32_t i, is_described;
  in.at = data;
  in.left = size;
  is_described = take_below(&in, 2);
  take_rows(&in, &manifest.rows[0], &rows[0]);
  take_rows(&in, &manifest.rows[1], &rows[1]);
  manifest.gpu = take_below(&in, 3);
  manifest.partial = take_below(&in, 2);
  manifest.built_cuda = take_number(&in);
  manifest.cudart_built = take_number(&in);

  memset(&cudnn, 0, sizeof cudnn);
  cudnn.part_count = take_below(&in, 4) ? take_below(&in, 4) : take_below(&in, MAX_PARTS);
  cudnn.part_stride = sizeof *parts;
  parts = (struct judge_part *)malloc(cudnn.part_count * sizeof *parts + 1);
  for (i = 0; i < cudnn.part_count; i++) {
    parts[i].row = take_number(&in);
    parts[i].state = take_below(&in, 4);
    parts[i].version = take_number(&in);
  }
  cudnn.parts = parts;
  cudnn.source = take_below(&in, 4);
  cudnn.state = take_below(&in, 4);
  cudnn.is_guess = take_below(&in, 2);
  cudnn.has_file = take_below(&in, 2);
  cudnn.major = take_below(&in, 12);
  cudnn.version = take_number(&in);
  cudnn.loader = take_number(&in);
  cudnn.made_with = take_number(&in);

  cudart.source = take_below(&in, 3);
  cudart.state = take_below(&in, 3);
  cudart.version = take_number(&in);

  memset(&driver, 0, sizeof driver);
  driver.gpu_count = (int32_t)take_below(&in, 6) - 1;
  if (driver.gpu_count == 4) driver.gpu_count = (int32_t)take_below(&in, MAX_GPUS);
  gpus = (struct judge_gpu *)calloc(driver.gpu_count > 0 ? (size_t)driver.gpu_count : 1,
                                    sizeof *gpus);
  for (i = 0; (int32_t)i < driver.gpu_count; i++) {
    gpus[i].cc = take_number(&in) & 0xffff;
    if (!is_described) continue;
    gpus[i].product = take_below(&in, 3);
    gpus[i].driven = take_below(&in, 4);
    gpus[i].branch = take_number(&in);
    gpus[i].first_cuda = take_number(&in);
    gpus[i].first_release = take_number(&in);
  }
  driver.gpus = gpus;
  driver.init = take_below(&in, 3) ? 0 : (int32_t)take_number(&in);
  driver.source = take_below(&in, 3);
  driver.state = take_below(&in, 3) ? FOUND : take_below(&in, 4);
  driver.cannot_load = take_below(&in, 2);
  driver.user = take_number(&in);
  driver.kernel = take_below(&in, 2) ? driver.user : take_number(&in);
  driver.branch = take_below(&in, 2) ? driver.user >> 20 : 0;
  driver.cuda = take_number(&in);
  driver.compiler = take_below(&in, 3);
  driver.compiler_source = take_below(&in, 3);
  driver.forces_ptx = take_below(&in, 3);
  driver.disables_ptx = take_below(&in, 3);
  if (is_described) {
    cudnn.is_minor = take_below(&in, 2);
    driver.least_cuda = take_number(&in);
    driver.most_cuda = take_number(&in);
    driver.compat = take_below(&in, 5);
  }

  facts.cudnn = &cudnn;
  facts.cudart = &cudart;
  facts.driver = &driver;
  for (i = 0; i < 3; i++) {
    memset(&result[i], 0xa5, sizeof result[i]);
    result[i].capacity = take_below(&in, ROOM);
    if (i) result[i].capacity = result[0].capacity;
    room[i] = (struct judge_finding *)malloc(result[i].capacity * sizeof *room[i] + 1);
    result[i].findings = room[i];
    if (i < 2) cudaguard_judge_start(&manifest, &facts, &result[i]);
    else judge_as_shim(&manifest, &facts, &result[i]);
    REQUIRE(result[i].count <= result[i].capacity);
  }
  /* It depends on nothing but its input. */
  compare(&result[0], &result[1]);
  /* If no fact is described, both variants return equal results, except for the result of cuInit:
   * only the command predicts that. */
  if (!is_described && (driver.init >= 0 || driver.user == driver.kernel)) compare(&result[0], &result[2]);
  /* Facts that were detected finally are not needed again, and files alone never prove absence. */
  if (cudnn.source >= DETECTED && cudart.source == DETECTED && driver.source == DETECTED)
    REQUIRE(!result[0].needs);
  for (i = 0; i < result[0].count; i++) {
    REQUIRE(result[0].findings[i].code < JUDGE_CODES);
    REQUIRE(result[0].findings[i].severity <= ERROR);
    if (driver.source != DETECTED && result[0].findings[i].code > JUDGE_CUDART_UNKNOWN &&
        result[0].findings[i].code != JUDGE_CUDNN_INNER_MIXED_LOADER)
      REQUIRE(result[0].findings[i].severity == INFO);
  }
  for (i = 0; i < 3; i++) free(room[i]);
  free(gpus);
  free(parts);
  free(rows[0]);
  free(rows[1]);
  return 0;
}
