/* Compatibility of GPU code with GPUs, and the driver that it needs. */
#ifndef CUDAGUARD_COVERAGE_H
#define CUDAGUARD_COVERAGE_H

#include "attributes.h"

#include <stddef.h>
#include <stdint.h>

/* A GPU outside of the general rule. */
struct chip {
  uint16_t cc, other;
  uint8_t tegra, family;
};

/* The encoding of code as a number. The order is: machine code before PTX, older archs first, and
 * the more compatible suffix first. */
enum { IS_PTX = 1 << 12, SUFFIX = 3, IS_FAMILY = 1, IS_SPECIFIC = 2 };

/* A driver requirement. */
struct needs {
  uint32_t cuda, release;
};

/* Compatibility of GPU code with GPUs: coverage.c */
SHIM_API const struct chip *find_chip(uint32_t cc);
SHIM_API uint32_t find_last_branch(uint32_t cc);
SHIM_API int check_code(uint32_t code, uint32_t cc);
SHIM_API void raise_needs_to(struct needs *n, uint32_t cuda, uint32_t release);
SHIM_API void raise_needs(struct needs *n, uint32_t of);
SHIM_API uint32_t find_isa(uint32_t cuda);

#endif
