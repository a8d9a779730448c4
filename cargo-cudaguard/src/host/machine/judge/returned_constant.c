/* Exports find_returned_constant() to the command. */
#include "returned_constant.h"

uint32_t cudaguard_find_returned_constant(const unsigned char *code, size_t size,
                                          uint32_t machine) {
  return find_returned_constant(code, size, machine);
}
