/* A fake libcuda for any driver version and any GPUs; fake.h describes its configuration. It implements CUDA_VISIBLE_DEVICES
 * (indices, prefixes of UUIDs, MIG) and CUDA_DEVICE_ORDER. COMPAT_NOTE adds the ELF note of a cuda-compat package. */
#include "fake.h"

#include <unistd.h>

#ifdef COMPAT_NOTE
__asm__(".pushsection .note.cuda.fwd_compatibility,\"a\",%note\n.balign 4\n.long 19, 2f - 1f, 1\n"
        ".asciz \"NVIDIA Corporation\"\n.balign 4\n1: .ascii \"" COMPAT_NOTE "\"\n2: .balign 4\n.popsection\n");
#endif

static int ready, visible, shown[MAX_GPUS], current;

/* Returns the GPU that an entry of CUDA_VISIBLE_DEVICES names, or -1. The instances of a GPU in MIG mode count as one: a
 * process sees the first instance, or the one that is find_gpu. */
static int find_gpu(const char *name, size_t length) {
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
  while (list && *list && visible < MAX_GPUS) {
    size_t length = strcspn(list, ",");
    int n = find_gpu(list, length);
    if (n < 0) break; /* An invalid entry hides itself and all entries after it. */
    shown[visible++] = n;
    list += length + (list[length] == ',');
  }
  for (int k = visible - 1; k >= 0; k--)
    if (fake.gpu[shown[k]].state[0] && !is_state(shown[k], "compute-prohibited"))
      memmove(shown + k, shown + k + 1, (size_t)(--visible - k) * sizeof *shown);
  for (int k = 0; k < visible; k++)
    if (fake.gpu[shown[k]].mig[0]) shown[0] = shown[k], visible = 1; /* A process sees one instance and no other GPU. */
}

__attribute__((constructor)) static void loaded(void) {
  fake_read();
  if (fake.mode == CRASHES_IN_LOAD) abort();
  for (; fake.mode == HANGS_IN_LOAD;) pause();
}

int cuDriverGetVersion(int *to) {
  MAY_FAIL;
  prepare();
  if (fake.result == 34) return 34;
  *to = fake.cuda;
  return 0;
}

int cuInit(unsigned flags) {
  MAY_FAIL;
  static pid_t first;
  FILE *log;
  (void)flags;
  prepare();
  if (fake.log[0] && (log = fopen(fake.log, "a"))) fputs("cuInit\n", log), fclose(log);
  if (first && first != getpid()) return 3; /* CUDA does not work in a forked child of the process that initialized it. */
  first = getpid();
  if (fake.mode == CRASHES) abort();
  for (; fake.mode == HANGS;) pause();
  if (fake.mode == PRINTS) puts("a driver that talks"), fputs("a driver that talks\n", stderr), fflush(stdout);
  if (fake.mode == EXITS) exit(3);
  return fake.result ? fake.result : visible ? 0 : 100;
}

int cuDeviceGetCount(int *to) {
  MAY_FAIL;
  *to = visible;
  return 0;
}

int cuDeviceGet(int *to, int n) {
  MAY_FAIL;
  *to = n;
  return n >= 0 && n < visible ? 0 : 101;
}

int cuDeviceGetAttribute(int *to, int attribute, int n) {
  MAY_FAIL;
  unsigned domain = 0, bus = 0, slot = 0;
  if (n < 0 || n >= visible) return 101;
  sscanf(fake.gpu[shown[n]].slot, "%x:%x:%x", &domain, &bus, &slot);
  switch (attribute) {
    case 20: *to = is_state(shown[n], "compute-prohibited") ? 2 : 0; return 0;
    case 33: *to = (int)bus; return 0;
    case 34: *to = (int)slot; return 0;
    case 50: *to = (int)domain; return 0;
    case 75: *to = fake.gpu[shown[n]].cc >> 8; return 0;
    case 76: *to = fake.gpu[shown[n]].cc & 255; return 0;
    default: return 1;
  }
}

int cuDeviceGetName(char *to, int size, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  snprintf(to, (size_t)size, "%s", fake.gpu[shown[n]].name);
  return 0;
}

int cuDeviceGetPCIBusId(char *to, int size, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  snprintf(to, (size_t)size, "%s", fake.gpu[shown[n]].slot);
  return 0;
}

/* Converts `GPU-00000001-0000-...` to 16 bytes. */
static void put_uuid(const char *text, unsigned char *to) {
  int at = 0;
  unsigned byte;
  for (text = strchr(text, '-') ? strchr(text, '-') + 1 : text; *text && at < 16; text++)
    if (*text != '-' && sscanf(text, "%2x", &byte) == 1) to[at++] = (unsigned char)byte, text++;
  while (at < 16) to[at++] = 0;
}

/* Returns the UUID of the GPU, even if it is a MIG instance. */
int cuDeviceGetUuid(unsigned char *to, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  put_uuid(fake.gpu[shown[n]].uuid, to);
  return 0;
}

/* Returns the UUID of the MIG instance, or of the GPU if it is not in MIG mode. */
int cuDeviceGetUuid_v2(unsigned char *to, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  put_uuid(fake.gpu[shown[n]].mig[0] ? fake.gpu[shown[n]].mig : fake.gpu[shown[n]].uuid, to);
  return 0;
}

int cuDevicePrimaryCtxRetain(void **to, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  *to = &shown[n];
  return 0;
}

int cuCtxSetCurrent(void *context) {
  MAY_FAIL;
  long n = (int *)context - shown;
  if (n < 0 || n >= visible) return 201;
  current = (int)n;
  return 0;
}

/* nvcc's detection of GPUs (`-arch=native`) needs this function. */
int cuGetErrorName(int error, const char **to) {
  MAY_FAIL;
  *to = error == 100   ? "CUDA_ERROR_NO_DEVICE"
        : error == 801 ? "CUDA_ERROR_NOT_SUPPORTED"
        : error        ? "CUDA_ERROR_UNKNOWN"
                       : "CUDA_SUCCESS";
  return 0;
}

#define NO_KERNELS "kernels do not run on a simulated machine"

int cuGetErrorString(int error, const char **to) {
  *to = error == 100   ? "no CUDA-capable device is detected"
        : error == 801 ? "operation not supported: " NO_KERNELS
        : error        ? "unknown error"
                       : "no error";
  return 0;
}

/* Memory of the simulated GPU is memory of the process. */
int cuMemAlloc_v2(void **to, size_t size) {
  MAY_FAIL;
  *to = malloc(size);
  return *to ? 0 : 2;
}

int cuMemFree_v2(void *memory) {
  MAY_FAIL;
  free(memory);
  return 0;
}

int cuMemcpyHtoD_v2(void *to, const void *from, size_t size) {
  MAY_FAIL;
  memcpy(to, from, size);
  return 0;
}

int cuMemcpyDtoH_v2(void *to, const void *from, size_t size) {
  MAY_FAIL;
  memcpy(to, from, size);
  return 0;
}

int cuCtxCreate_v2(void **to, unsigned flags, int n) {
  MAY_FAIL;
  (void)flags;
  if (n < 0 || n >= visible) return 101;
  *to = &shown[n];
  current = n;
  return 0;
}

int cuCtxDestroy_v2(void *context) {
  MAY_FAIL;
  (void)context;
  return 0;
}

int cuCtxSynchronize(void) {
  MAY_FAIL;
  return 0;
}

int cuCtxGetDevice(int *to) {
  MAY_FAIL;
  *to = current;
  return visible ? 0 : 201;
}

int cuModuleGetFunction(void **to, void *module, const char *name) {
  MAY_FAIL;
  (void)name;
  *to = module;
  return 0;
}

/* Fails, and reports the reason once. The functions below have parameters, which they ignore. */
static int refuse_launch(const char *call) {
  static int reported;
  if (!reported++) fprintf(stderr, "cudaguard simulate: %s: " NO_KERNELS "\n", call);
  return 801;
}

#define LAUNCH(name) \
  int name(void) { \
    MAY_FAIL; \
    return refuse_launch(__func__); \
  }
LAUNCH(cuLaunch)
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernelEx)
LAUNCH(cuLaunchCooperativeKernel)
LAUNCH(cuGraphLaunch)

static unsigned u16_at(const unsigned char *p) { return (unsigned)(p[0] | p[1] << 8); }
static unsigned u32_at(const unsigned char *p) { return u16_at(p) | u16_at(p + 2) << 16; }

static int is_one(const char *name) { return getenv(name) && !strcmp(getenv(name), "1"); }

/* Accepts a fatbin container only, and applies the rules of architectures without a suffix. Returns 209 if it has no code for
 * the GPU, 221 if the PTX compiler is missing, 222 if the PTX is too new, 223 if PTX JIT compilation is disabled. */
int cuModuleLoadData(void **to, const void *image) {
  MAY_FAIL;
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
