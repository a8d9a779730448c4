/* A fake libnvidia-ml for any driver version and any GPUs; fake.h describes its configuration. It returns every GPU in the
 * order of the PCI bus and ignores CUDA_VISIBLE_DEVICES. */
#include "fake.h"

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

/* nvmlPciInfo_t of nvml.h. */
struct pci {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

static int users;

static int text(char *to, unsigned size, const char *from) {
  if (!users) return UNINITIALIZED;
  if (strlen(from) >= size) return INSUFFICIENT_SIZE;
  strcpy(to, from);
  return SUCCESS;
}

/* Returns the index of the GPU of a handle, or -1. A handle is the index plus 1. */
static int gpu_index(const void *handle) {
  long n = (long)handle - 1;
  return users && n >= 0 && n < fake.gpus ? (int)n : -1;
}

int nvmlInit_v2(void) {
  MAY_FAIL;
  fake_read();
  users += !fake.nvml;
  return fake.nvml;
}

int nvmlInitWithFlags(unsigned flags) {
  MAY_FAIL;
  (void)flags;
  return nvmlInit_v2();
}

int nvmlShutdown(void) {
  MAY_FAIL;
  if (!users) return UNINITIALIZED;
  users--;
  return SUCCESS;
}

const char *nvmlErrorString(int result) {
  switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case GPU_IS_LOST: return "GPU is lost";
    case 9: return "Driver Not Loaded";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char *to, unsigned size) { return text(to, size, fake.release); }

int nvmlSystemGetCudaDriverVersion_v2(int *to) {
  MAY_FAIL;
  fake_read();
  *to = fake.cuda;
  return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *to) { return nvmlSystemGetCudaDriverVersion_v2(to); }

int nvmlDeviceGetCount_v2(unsigned *to) {
  MAY_FAIL;
  if (!users) return UNINITIALIZED;
  *to = (unsigned)fake.gpus;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **to) {
  MAY_FAIL;
  if (!users) return UNINITIALIZED;
  if (n >= (unsigned)fake.gpus) return INVALID_ARGUMENT;
  *to = (void *)(long)(n + 1);
  return is_state((int)n, "lost") ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(const void *handle, char *to, unsigned size) {
  MAY_FAIL;
  int n = gpu_index(handle);
  return n < 0 ? INVALID_ARGUMENT : text(to, size, fake.gpu[n].name);
}

int nvmlDeviceGetUUID(const void *handle, char *to, unsigned size) {
  MAY_FAIL;
  int n = gpu_index(handle);
  return n < 0 ? INVALID_ARGUMENT : text(to, size, fake.gpu[n].uuid);
}

int nvmlDeviceGetIndex(const void *handle, unsigned *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *to = (unsigned)n;
  return SUCCESS;
}

int nvmlDeviceGetMinorNumber(const void *handle, unsigned *to) { return nvmlDeviceGetIndex(handle, to); }

int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *major = fake.gpu[n].cc >> 8;
  *minor = fake.gpu[n].cc & 255;
  return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(const void *handle, struct pci *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  unsigned function = 0;
  if (n < 0) return INVALID_ARGUMENT;
  memset(to, 0, sizeof *to);
  sscanf(fake.gpu[n].slot, "%x:%x:%x.%x", &to->domain, &to->bus, &to->device, &function);
  snprintf(to->short_id, sizeof to->short_id, "%04X:%02X:%02X.%X", to->domain & 0xffff, to->bus & 0xff, to->device & 0xff, function & 7);
  snprintf(to->id, sizeof to->id, "%08X:%02X:%02X.%X", to->domain, to->bus & 0xff, to->device & 0xff, function & 7);
  return SUCCESS;
}

int nvmlDeviceGetMigMode(const void *handle, unsigned *current, unsigned *pending) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  if (fake.gpu[n].cc < 8 * 256) return NOT_SUPPORTED;
  *current = *pending = fake.gpu[n].mig[0] || is_state(n, "mig-without-instances");
  return SUCCESS;
}

int nvmlDeviceGetComputeMode(const void *handle, int *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *to = is_state(n, "compute-prohibited") ? 2 : 0;
  return SUCCESS;
}

int nvmlSystemGetNVMLVersion(char *to, unsigned size) { return text(to, size, fake.release); }

/* Values that a simulated machine does not state. Their parameters are ignored. */
#define UNKNOWN(name) \
  int name(void) { \
    MAY_FAIL; \
    return NOT_SUPPORTED; \
  }
UNKNOWN(nvmlDeviceGetMemoryInfo)
UNKNOWN(nvmlDeviceGetMemoryInfo_v2)
UNKNOWN(nvmlDeviceGetUtilizationRates)
UNKNOWN(nvmlDeviceGetTemperature)
UNKNOWN(nvmlDeviceGetFanSpeed)
UNKNOWN(nvmlDeviceGetPowerUsage)
UNKNOWN(nvmlDeviceGetEnforcedPowerLimit)
UNKNOWN(nvmlDeviceGetComputeRunningProcesses_v3)
UNKNOWN(nvmlDeviceGetGraphicsRunningProcesses_v3)
UNKNOWN(nvmlDeviceGetEncoderUtilization)
UNKNOWN(nvmlDeviceGetDecoderUtilization)
