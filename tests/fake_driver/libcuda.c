/* A libcuda for any driver and any GPUs: fake.h tells how it is told what it is. It honours CUDA_VISIBLE_DEVICES (indices,
 * beginnings of UUIDs, MIG) and CUDA_DEVICE_ORDER. With COMPAT_NOTE it carries the note of a cuda-compat package. */
#include "fake.h"

#include <unistd.h>

#ifdef COMPAT_NOTE
__asm__(".pushsection .note.cuda.fwd_compatibility,\"a\",%note\n.balign 4\n.long 19, 2f - 1f, 1\n"
        ".asciz \"NVIDIA Corporation\"\n.balign 4\n1: .ascii \"" COMPAT_NOTE "\"\n2: .balign 4\n.popsection\n");
#endif

static int ready, visible, shown[MOST], current;

/* The instances of a GPU in MIG mode count as one: a process sees the first, or the one that is named. */
static int named(const char *name, size_t length) {
  char *end;
  long n = strtol(name, &end, 10);
  int k, hit = -1, several = 0;
  if (end == name + length && length) return n >= 0 && n < fake.gpus ? fake.ordered ? fake.order[n] : (int)n : -1;
  for (k = 0; k < fake.gpus; k++)
    if (length > 4 && (!strncmp(fake.gpu[k].uuid, name, length) || (fake.gpu[k].mig[0] && !strncmp(fake.gpu[k].mig, name, length))))
      hit = k, several++;
  return several == 1 ? hit : -1;
}

static void prepare(void) {
  const char *list = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
  fake_read();
  if (ready++) return;
  if (order && !strcmp(order, "PCI_BUS_ID")) fake.ordered = 0;
  for (int k = 0; !list && k < fake.gpus; k++) shown[visible++] = fake.ordered ? fake.order[k] : k;
  while (list && *list && visible < MOST) {
    size_t length = strcspn(list, ",");
    int n = named(list, length);
    if (n < 0) break; /* the first that is not valid hides what follows */
    shown[visible++] = n;
    list += length + (list[length] == ',');
  }
  for (int k = 0; k < visible; k++)
    if (fake.gpu[shown[k]].mig[0]) shown[0] = shown[k], visible = 1; /* no more than one instance, and nothing beside it */
}

__attribute__((constructor)) static void loaded(void) {
  fake_read();
  if (fake.manner == CRASHES_EARLY) abort();
  for (; fake.manner == HANGS_EARLY;) pause();
}

int cuDriverGetVersion(int *to) {
  prepare();
  if (fake.answer == 34) return 34;
  *to = fake.cuda;
  return 0;
}

int cuInit(unsigned flags) {
  static pid_t first;
  FILE *log;
  (void)flags;
  prepare();
  if (fake.log[0] && (log = fopen(fake.log, "a"))) fputs("cuInit\n", log), fclose(log);
  if (first && first != getpid()) return 3; /* CUDA does not live on in a child of the process that began it */
  first = getpid();
  if (fake.manner == CRASHES) abort();
  for (; fake.manner == HANGS;) pause();
  if (fake.manner == TALKS) puts("a driver that talks"), fputs("a driver that talks\n", stderr), fflush(stdout);
  if (fake.manner == ENDS) exit(3);
  return fake.answer ? fake.answer : visible ? 0 : 100;
}

int cuDeviceGetCount(int *to) {
  *to = visible;
  return 0;
}

int cuDeviceGet(int *to, int n) {
  *to = n;
  return n >= 0 && n < visible ? 0 : 101;
}

int cuDeviceGetAttribute(int *to, int attribute, int n) {
  unsigned domain = 0, bus = 0, slot = 0;
  if (n < 0 || n >= visible) return 101;
  sscanf(fake.gpu[shown[n]].slot, "%x:%x:%x", &domain, &bus, &slot);
  switch (attribute) {
    case 33: *to = (int)bus; return 0;
    case 34: *to = (int)slot; return 0;
    case 50: *to = (int)domain; return 0;
    case 75: *to = fake.gpu[shown[n]].cc >> 8; return 0;
    case 76: *to = fake.gpu[shown[n]].cc & 255; return 0;
    default: return 1;
  }
}

int cuDeviceGetName(char *to, int size, int n) {
  if (n < 0 || n >= visible) return 101;
  snprintf(to, (size_t)size, "%s", fake.gpu[shown[n]].name);
  return 0;
}

int cuDeviceGetPCIBusId(char *to, int size, int n) {
  if (n < 0 || n >= visible) return 101;
  snprintf(to, (size_t)size, "%s", fake.gpu[shown[n]].slot);
  return 0;
}

/* `GPU-00000001-0000-...` as its sixteen bytes. */
static void put_uuid(const char *text, unsigned char *to) {
  int at = 0;
  unsigned byte;
  for (text = strchr(text, '-') ? strchr(text, '-') + 1 : text; *text && at < 16; text++)
    if (*text != '-' && sscanf(text, "%2x", &byte) == 1) to[at++] = (unsigned char)byte, text++;
  while (at < 16) to[at++] = 0;
}

/* Of the GPU. */
int cuDeviceGetUuid(unsigned char *to, int n) {
  if (n < 0 || n >= visible) return 101;
  put_uuid(fake.gpu[shown[n]].uuid, to);
  return 0;
}

/* Of the MIG instance, where it is one. */
int cuDeviceGetUuid_v2(unsigned char *to, int n) {
  if (n < 0 || n >= visible) return 101;
  put_uuid(fake.gpu[shown[n]].mig[0] ? fake.gpu[shown[n]].mig : fake.gpu[shown[n]].uuid, to);
  return 0;
}

int cuDevicePrimaryCtxRetain(void **to, int n) {
  if (n < 0 || n >= visible) return 101;
  *to = &shown[n];
  return 0;
}

int cuCtxSetCurrent(void *context) {
  long n = (int *)context - shown;
  if (n < 0 || n >= visible) return 201;
  current = (int)n;
  return 0;
}

/* nvcc's own look at the GPUs (`-arch=native`) goes on only where it is there. */
int cuGetErrorName(int error, const char **to) {
  *to = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error ? "CUDA_ERROR_UNKNOWN" : "CUDA_SUCCESS";
  return 0;
}

static unsigned u16_at(const unsigned char *p) { return (unsigned)(p[0] | p[1] << 8); }
static unsigned u32_at(const unsigned char *p) { return u16_at(p) | u16_at(p + 2) << 16; }

static int is_one(const char *name) { return getenv(name) && !strcmp(getenv(name), "1"); }

/* Of a container alone: what the entries say, by the rules of plain architectures. 209 no code, 221 no compiler of PTX, 222
 * PTX that is too new, 223 PTX that may not be compiled. */
int cuModuleLoadData(void **to, const void *image) {
  const unsigned char *p = (const unsigned char *)image, *end;
  unsigned cc = visible ? (unsigned)(fake.gpu[shown[current]].cc >> 8) * 10 + (unsigned)(fake.gpu[shown[current]].cc & 255) : 0;
  int answer = 209;
  *to = &shown;
  if (!p || u32_at(p) != 0xba55ed50) return 200;
  for (end = p + 16 + u32_at(p + 8), p += 16; p < end; p += u32_at(p + 4) + u32_at(p + 8)) {
    unsigned arch = u32_at(p + 28), cuda = u16_at(p + 26) == 9 ? 13000 + u16_at(p + 24) * 10 : 0;
    int tegra = arch == 87 || cc == 87;
    if (u16_at(p) == 2 && !is_one("CUDA_FORCE_PTX_JIT") && (tegra ? arch == cc : arch / 10 == cc / 10 && arch <= cc)) return 0;
    if (u16_at(p) != 1 || arch > cc) continue;
    if (is_one("CUDA_DISABLE_PTX_JIT")) answer = 223;
    else if (cuda > (unsigned)fake.cuda) answer = 222;
    else if (!dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_LAZY)) answer = 221;
    else return 0;
  }
  return answer;
}
