/* A fake libcuda for any driver version and any GPUs; fake.h describes its configuration. It implements CUDA_VISIBLE_DEVICES
 * (indices, prefixes of UUIDs, MIG) and CUDA_DEVICE_ORDER. COMPAT_NOTE adds the ELF note of a cuda-compat package. */
#include "fake.h"
#include "names.h"

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
    case 20: *to = compute_mode(shown[n]); return 0;
    case 33: *to = (int)bus; return 0;
    case 34: *to = (int)slot; return 0;
    case 50: *to = (int)domain; return 0;
    case 75: *to = fake.gpu[shown[n]].cc >> 8; return 0;
    case 76: *to = fake.gpu[shown[n]].cc & 255; return 0;
    case 133: *to = fake.mps != 0; return 0;
  }
  /* Limits that all GPUs since Maxwell have. */
  static const int limits[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 0x7fffffff}, {6, 65535}, {7, 65535},
                                  {8, 49152}, {9, 65536}, {10, 32}, {12, 65536}, {41, 1}, {82, 65536}};
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
    if (limits[k][0] == attribute) return *to = limits[k][1], 0;
  return attribute > 0 && attribute < 256 ? 801 : 1; /* The machine does not state the others. */
}

int cuDeviceGetName(char *to, int size, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  snprintf(to, (size_t)size, "%s", fake.gpu[shown[n]].name);
  return 0;
}

int cuDeviceTotalMem_v2(size_t *to, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  *to = (size_t)fake.gpu[shown[n]].memory << 20;
  return *to ? 0 : 801;
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

/* A context is the address of an element of `shown`. Each thread has a stack of contexts. */
static __thread void *contexts[16];
static __thread int depth;

static int is_context(const void *context) { return (const int *)context >= shown && (const int *)context < shown + visible; }

int cuDevicePrimaryCtxRetain(void **to, int n) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  *to = &shown[n];
  return 0;
}

int cuDevicePrimaryCtxGetState(int n, unsigned *flags, int *active) {
  MAY_FAIL;
  if (n < 0 || n >= visible) return 101;
  *flags = 0;
  *active = 0;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  MAY_FAIL;
  if (context && !is_context(context)) return 201;
  depth = depth ? depth : 1;
  contexts[depth - 1] = context;
  if (context) current = (int)((int *)context - shown);
  return 0;
}

int cuCtxGetCurrent(void **to) {
  MAY_FAIL;
  *to = depth ? contexts[depth - 1] : 0;
  return 0;
}

int cuCtxPushCurrent_v2(void *context) {
  MAY_FAIL;
  if (!is_context(context)) return 201;
  if (depth == sizeof contexts / sizeof *contexts) return 2;
  contexts[depth++] = context;
  current = (int)((int *)context - shown);
  return 0;
}

int cuCtxPopCurrent_v2(void **to) {
  MAY_FAIL;
  if (!depth) return 201;
  depth--;
  if (to) *to = contexts[depth];
  return 0;
}

#define NO_KERNELS "kernels do not run on a simulated machine"

static const struct {
  int status;
  const char *name, *text;
} statuses[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "API call is not supported in the installed CUDA driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported: " NO_KERNELS},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "MPS client failed to connect to the MPS control daemon or the MPS server"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

/* Returns the index of a status, or -1. */
static int status_index(int status) {
  for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++)
    if (statuses[k].status == status) return (int)k;
  return -1;
}

/* nvcc's detection of GPUs (`-arch=native`) needs this function. */
int cuGetErrorName(int error, const char **to) {
  MAY_FAIL;
  int k = status_index(error);
  *to = k < 0 ? 0 : statuses[k].name;
  return k < 0 ? 1 : 0;
}

int cuGetErrorString(int error, const char **to) {
  MAY_FAIL;
  int k = status_index(error);
  *to = k < 0 ? 0 : statuses[k].text;
  return k < 0 ? 1 : 0;
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

int cuMemcpyDtoD_v2(void *to, const void *from, size_t size) { return cuMemcpyHtoD_v2(to, from, size); }
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t size) { return cuMemcpyHtoD_v2(to, from, size); }
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t size) { return cuMemcpyDtoH_v2(to, from, size); }
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t size) { return cuMemcpyHtoD_v2(to, from, size); }
int cuMemAllocAsync(void **to, size_t size) { return cuMemAlloc_v2(to, size); }
int cuMemFreeAsync(void *memory) { return cuMemFree_v2(memory); }
int cuMemAllocManaged(void **to, size_t size) { return cuMemAlloc_v2(to, size); }
int cuMemAllocHost_v2(void **to, size_t size) { return cuMemAlloc_v2(to, size); }
int cuMemHostAlloc(void **to, size_t size) { return cuMemAlloc_v2(to, size); }
int cuMemFreeHost(void *memory) { return cuMemFree_v2(memory); }

int cuMemsetD8_v2(void *to, unsigned char value, size_t count) {
  MAY_FAIL;
  memset(to, value, count);
  return 0;
}

int cuMemsetD8Async(void *to, unsigned char value, size_t count) { return cuMemsetD8_v2(to, value, count); }

int cuCtxCreate_v2(void **to, unsigned flags, int n) {
  MAY_FAIL;
  (void)flags;
  if (n < 0 || n >= visible) return 101;
  *to = &shown[n];
  return cuCtxPushCurrent_v2(*to);
}

int cuCtxCreate_v3(void **to, const void *parameters, int count, unsigned flags, int n) {
  (void)parameters, (void)count;
  return cuCtxCreate_v2(to, flags, n);
}

int cuCtxCreate_v4(void **to, const void *parameters, unsigned flags, int n) {
  (void)parameters;
  return cuCtxCreate_v2(to, flags, n);
}

int cuCtxDestroy_v2(void *context) {
  MAY_FAIL;
  if (!is_context(context)) return 201;
  if (depth && contexts[depth - 1] == context) depth--;
  return 0;
}

int cuMemGetInfo_v2(size_t *left, size_t *total) {
  MAY_FAIL;
  if (!depth || !contexts[depth - 1]) return 201;
  *left = *total = (size_t)fake.gpu[*(int *)contexts[depth - 1]].memory << 20;
  return *total ? 0 : 801;
}

int cuCtxGetDevice(int *to) {
  MAY_FAIL;
  if (!depth || !contexts[depth - 1]) return 201;
  *to = (int)((int *)contexts[depth - 1] - shown);
  return 0;
}

/* A stream and an event are the address of an element of `shown`: everything has completed. */
static int create_handle(void **to) {
  *to = &shown[current];
  return 0;
}

int cuStreamCreate(void **to, unsigned flags) {
  MAY_FAIL;
  (void)flags;
  return create_handle(to);
}

int cuStreamCreateWithPriority(void **to, unsigned flags, int priority) {
  MAY_FAIL;
  (void)flags, (void)priority;
  return create_handle(to);
}

int cuEventCreate(void **to, unsigned flags) {
  MAY_FAIL;
  (void)flags;
  return create_handle(to);
}

int cuEventElapsedTime(float *to) {
  MAY_FAIL;
  *to = 0;
  return 0;
}

int cuEventElapsedTime_v2(float *to) { return cuEventElapsedTime(to); }

int cuMemHostGetDevicePointer_v2(void **to, void *memory) {
  MAY_FAIL;
  *to = memory;
  return 0;
}

/* Functions that have nothing to do. Their parameters are ignored. */
#define SUCCEEDS(name) \
  int name(void) { \
    MAY_FAIL; \
    return 0; \
  }
SUCCEEDS(cuCtxSynchronize)
SUCCEEDS(cuDevicePrimaryCtxRelease_v2)
SUCCEEDS(cuDevicePrimaryCtxReset_v2)
SUCCEEDS(cuDevicePrimaryCtxSetFlags_v2)
SUCCEEDS(cuEventDestroy_v2)
SUCCEEDS(cuEventQuery)
SUCCEEDS(cuEventRecord)
SUCCEEDS(cuEventSynchronize)
SUCCEEDS(cuMemHostRegister_v2)
SUCCEEDS(cuMemHostUnregister)
SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuProfilerStart)
SUCCEEDS(cuProfilerStop)
SUCCEEDS(cuStreamDestroy_v2)
SUCCEEDS(cuStreamQuery)
SUCCEEDS(cuStreamSynchronize)
SUCCEEDS(cuStreamWaitEvent)

int cuModuleGetFunction(void **to, void *module, const char *name) {
  MAY_FAIL;
  (void)name;
  *to = module;
  return 0;
}

/* Returns CUDA_ERROR_NOT_SUPPORTED, and reports the reason once. */
static int refuse(int *reported, const char *call, const char *reason) {
  if (!(*reported)++) fprintf(stderr, "cudaguard simulate: %s: %s\n", call, reason);
  return 801;
}

/* The functions have parameters, which they ignore. */
#define LAUNCH(name) \
  int name(void) { \
    static int reported; \
    MAY_FAIL; \
    return refuse(&reported, __func__, NO_KERNELS); \
  }
LAUNCH(cuLaunch)
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernelEx)
LAUNCH(cuLaunchCooperativeKernel)
LAUNCH(cuLaunchCooperativeKernelMultiDevice)
LAUNCH(cuLaunchGrid)
LAUNCH(cuLaunchGridAsync)
LAUNCH(cuGraphLaunch)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH(cuLaunchKernelEx_ptsz)
LAUNCH(cuLaunchCooperativeKernel_ptsz)
LAUNCH(cuGraphLaunch_ptsz)

/* The tables of private functions, which the CUDA runtime needs. */
int cuGetExportTable(const void **to, const void *id) {
  static int reported;
  (void)id;
  MAY_FAIL;
  *to = 0;
  return refuse(&reported, __func__, "the CUDA runtime needs private functions of a real driver; it does not work on a simulated machine");
}

/* Returns the newest version of a function that this CUDA version has, or 0. Sets `newer` if only a later one has it. */
static void *find_function(const char *symbol, int cuda, int *newer) {
  static void *self;
  char name[160];
  Dl_info where;
  void *found = 0;
  if (!self && dladdr(&fake, &where)) self = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  for (int version = 1; self && version < 8; version++) {
    if (version == 1) snprintf(name, sizeof name, "%s", symbol);
    else snprintf(name, sizeof name, "%s_v%d", symbol, version);
    for (const struct exported *one = exported; one && one->name; one++)
      if (!strcmp(one->name, name)) {
        if (one->first <= cuda) found = dlsym(self, name);
        else *newer = 1;
      }
  }
  return found;
}

/* `status` is 0 if the function was found, 1 if the driver does not have it, 2 if the version of CUDA is too old. */
int cuGetProcAddress_v2(const char *symbol, void **to, int cuda, unsigned long long flags, int *status) {
  MAY_FAIL;
  int newer = 0;
  if (!symbol || !to) return 1;
  *to = 0;
  (void)flags; /* A stream of a thread and the default stream are the same: nothing runs. */
  *to = find_function(symbol, cuda, &newer);
  if (status) *status = *to ? 0 : newer ? 2 : 1;
  return *to ? 0 : 500;
}

int cuGetProcAddress(const char *symbol, void **to, int cuda, unsigned long long flags) {
  return cuGetProcAddress_v2(symbol, to, cuda, flags, 0);
}

static unsigned u16_at(const unsigned char *p) { return (unsigned)(p[0] | p[1] << 8); }
static unsigned u32_at(const unsigned char *p) { return u16_at(p) | u16_at(p + 2) << 16; }

static int is_one(const char *name) { return getenv(name) && !strcmp(getenv(name), "1"); }

/* Accepts a fatbin container only, or the structure that nvcc makes of it, and applies the rules of architectures without a suffix. Returns 209 if it has no code for
 * the GPU, 221 if the PTX compiler is missing, 222 if the PTX is too new, 223 if PTX JIT compilation is disabled. */
int cuModuleLoadData(void **to, const void *image) {
  MAY_FAIL;
  const unsigned char *p = (const unsigned char *)image, *end;
  unsigned cc = visible ? (unsigned)(fake.gpu[shown[current]].cc >> 8) * 10 + (unsigned)(fake.gpu[shown[current]].cc & 255) : 0;
  int answer = 209;
  static int reported;
  *to = &shown;
  if (p && u32_at(p) == 0x466243b1) memcpy(&p, p + 8, sizeof p);
  if (!p) return 1;
  if (u32_at(p) != 0xba55ed50) {
    int is_code = u32_at(p) == 0x464c457f || (*p < 127 && (*p >= ' ' || *p == '\n'));
    return is_code ? refuse(&reported, __func__, NO_KERNELS ", and it examines no cubin and no PTX") : 200;
  }
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

int cuModuleLoadFatBinary(void **to, const void *image) { return cuModuleLoadData(to, image); }
int cuModuleLoadDataEx(void **to, const void *image) { return cuModuleLoadData(to, image); }
int cuLibraryLoadData(void **to, const void *image) { return cuModuleLoadData(to, image); }
