/* The constant that an exported getter returns. No other code of a library is read. The command
 * compiles this file, too. */
#ifndef CUDAGUARD_RETURNED_CONSTANT_H
#define CUDAGUARD_RETURNED_CONSTANT_H

#include "attributes.h"

#include <stddef.h>
#include <stdint.h>
#ifndef CUDAGUARD_PLATFORM_H
#include <string.h>
#endif

enum { ON_X86_64 = 62, ON_AARCH64 = 183 }; /* e_machine */
enum { GETTER_SIZE = 1024 }; /* bytes of a getter to read (measured: up to 461 are needed) */

/* Returns the constant of `mov $imm32, %eax` if only pop, leave and additions to the stack pointer
 * are between it and the return; otherwise 0. */
SHIM_FN uint32_t read_x86_return(const unsigned char *code, size_t size) {
  uint32_t n;
  size_t at = 5;
  if (size < 6 || code[0] != 0xb8) return 0;
  memcpy(&n, code + 1, sizeof n);
  while (at + 1 < size && code[at] != 0xc3) {
    if (code[at] == 0x41 && code[at + 1] >> 3 == 0x58 >> 3) at += 2;
    else if (code[at] >> 3 == 0x58 >> 3 || code[at] == 0xc9) at++;
    else if (code[at] == 0x48 && code[at + 1] == 0x83) at += 4;
    else if (code[at] == 0x48 && code[at + 1] == 0x81) at += 7;
    else return 0;
  }
  return at < size && code[at] == 0xc3 ? n : 0;
}

/* Returns the constant of `mov w0, #imm16` if only movk of w0, ldp and ldr from the stack,
 * additions to the stack pointer, and autiasp are between it and the return; otherwise 0. */
SHIM_FN uint32_t read_aarch64_return(const unsigned char *code, size_t size) {
  uint32_t n = 0, w;
  size_t at;
  for (at = 0; at + 4 <= size; at += 4) {
    memcpy(&w, code + at, sizeof w);
    if (!at && (w & 0x7fe0001f) != 0x52800000) return 0;
    if (!at) n = w >> 5 & 0xffff;
    else if ((w & 0x7fe0001f) == 0x72a00000) n |= (w >> 5 & 0xffff) << 16;
    else if (w == 0xd65f03c0) return n;
    else if ((w & 0xfe4003e0) != 0xa84003e0 && (w & 0xfec003e0) != 0xf84003e0 &&
             (w & 0xff00001f) != 0x9100001f && w != 0xd50323bf)
      return 0;
  }
  return 0;
}

/* Returns the constant that a function returns, or 0 if it is unknown. Recognises one form only: on
 * x86-64 `mov $imm32, %eax`, on aarch64 `mov w0, #imm16` with an optional `movk w0, #imm16, lsl
 * #16`, directly before the instructions that restore registers and return. If there are several
 * returns, all must have the same constant. Code before these instructions (endbr64, bti, tracing)
 * is ignored. */
SHIM_FN uint32_t find_returned_constant(const unsigned char *code, size_t size, uint32_t machine) {
  const size_t step = machine == ON_AARCH64 ? 4 : 1;
  uint32_t found = 0, n = 0;
  size_t at;
  for (at = 0; at < size; at += step) {
    if (machine == ON_X86_64) n = read_x86_return(code + at, size - at);
    if (machine == ON_AARCH64) n = read_aarch64_return(code + at, size - at);
    if (n && found && n != found) return 0;
    if (n) found = n;
  }
  return found;
}

#endif
