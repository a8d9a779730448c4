/* Rules and tables of coverage.h. */
#include "coverage.h"
#include "tables.h"

#include <stdint.h>

static const struct floor {
  uint16_t of, cuda;
  uint32_t release;
} floors[] = {{0, 0, 0},
#ifdef _WIN32
#define FLOOR(of, cuda, linux, windows) {of, cuda, windows},
#else
#define FLOOR(of, cuda, linux, windows) {of, cuda, linux},
#endif
              FLOORS(FLOOR)
#undef FLOOR
                  {0xffff, 0, 0}};

static const struct chip chips[] = {
#define CHIP(cc, other, tegra, family) {cc, other, tegra, family},
    CHIPS(CHIP)
#undef CHIP
        {0, 0, 0, 0}};

static const struct {
  uint16_t below, last;
} last_branches[] = {
#define LAST_BRANCH(below, last) {below, last},
    LAST_BRANCHES(LAST_BRANCH)
#undef LAST_BRANCH
};

SHIM_API const struct chip *find_chip(uint32_t cc) {
  const struct chip *c = chips;
  while (c->cc && c->cc != cc) c++;
  return c;
}

/* Returns the last driver branch that supports GPUs of this compute capability, or 0 if no branch
 * is known to be the last. */
SHIM_API uint32_t find_last_branch(uint32_t cc) {
  size_t i;
  for (i = 0; cc && i < sizeof last_branches / sizeof *last_branches; i++)
    if (cc < last_branches[i].below) return find_chip(cc)->tegra ? 0 : last_branches[i].last;
  return 0;
}

/* Checks whether GPUs of this compute capability run the code. */
SHIM_API int check_code(uint32_t code, uint32_t cc) {
  uint32_t arch = code >> 2 & 0x3ff, made = arch / 10 << 8 | arch % 10;
  int plain_ptx = (code & (IS_PTX | SUFFIX)) == IS_PTX;
  const struct chip *one = find_chip(made), *other = find_chip(cc);
  if (made == cc || (plain_ptx && made < cc)) return RIGHT;
  if (one->other == cc) return CANNOT_TELL;
  if (plain_ptx || (code & IS_SPECIFIC) || made >> 8 != cc >> 8 || made > cc) return WRONG;
  if (!(code & IS_FAMILY)) return one->tegra || other->tegra ? WRONG : RIGHT;
  return !one->family || !other->family ? CANNOT_TELL
         : one->family == other->family ? RIGHT
                                        : WRONG;
}

/* Raises a requirement. The release belongs to the newer CUDA version; it is 0 if no table has it,
 * because the release of an older version is not sufficient. */
SHIM_API void raise_needs_to(struct needs *n, uint32_t cuda, uint32_t release) {
  if (n->cuda > cuda) return;
  if (n->cuda < cuda || n->release < release) n->release = release;
  n->cuda = cuda;
}

SHIM_API void raise_needs(struct needs *n, uint32_t of) {
  const struct floor *f = floors;
  while (f->of < of) f++;
  raise_needs_to(n, f->cuda, f->release);
}

/* Returns the oldest PTX ISA whose driver supports this CUDA version, encoded as in a row, or 0 if
 * no table has it. */
SHIM_API uint32_t find_isa(uint32_t cuda) {
  enum { OLDEST_ISA = 1 << 10 };
  const struct floor *f = floors;
  if (!cuda || cuda > NEWEST_CUDA) return 0;
  while (f->of < OLDEST_ISA || f->cuda < cuda) f++;
  return ((uint32_t)f->of >> 4 & 0xf0) | (f->of & 15);
}
