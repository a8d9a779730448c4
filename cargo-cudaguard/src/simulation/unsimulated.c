/* Functions that a fake library exports and does not implement: each returns NOT_SUPPORTED of the library. exports.h has a line
 * EXPORT(name, first CUDA version) for each function of the release. */
#include "fake.h"
#include "names.h"

static int unsimulated(const char *call) {
  int status = fake_status(call);
  return status ? status : UNSIMULATED;
}

#define EXPORT(name, first) \
  __attribute__((weak)) int name(void) { return unsimulated(#name); }
#include "exports.h"
#undef EXPORT

#define EXPORT(name, first) {#name, first},
const struct exported exported[] = {
#include "exports.h"
    {0, 0},
};
