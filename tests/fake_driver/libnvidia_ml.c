/* A fake libnvidia-ml for any driver version and any GPUs; fake.h describes its configuration. It returns every GPU in the
 * order of the PCI bus and ignores CUDA_VISIBLE_DEVICES. */
#include "fake.h"

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };

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
  fake_read();
  users += !fake.nvml;
  return fake.nvml;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}

int nvmlShutdown(void) {
  if (!users) return UNINITIALIZED;
  users--;
  return SUCCESS;
}

const char *nvmlErrorString(int result) {
  switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case 9: return "Driver Not Loaded";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char *to, unsigned size) { return text(to, size, fake.release); }

int nvmlSystemGetCudaDriverVersion_v2(int *to) {
  fake_read();
  *to = fake.cuda;
  return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *to) { return nvmlSystemGetCudaDriverVersion_v2(to); }

int nvmlDeviceGetCount_v2(unsigned *to) {
  if (!users) return UNINITIALIZED;
  *to = (unsigned)fake.gpus;
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **to) {
  if (!users) return UNINITIALIZED;
  if (n >= (unsigned)fake.gpus) return INVALID_ARGUMENT;
  *to = (void *)(long)(n + 1);
  return SUCCESS;
}

int nvmlDeviceGetName(const void *handle, char *to, unsigned size) {
  int n = gpu_index(handle);
  return n < 0 ? INVALID_ARGUMENT : text(to, size, fake.gpu[n].name);
}

int nvmlDeviceGetUUID(const void *handle, char *to, unsigned size) {
  int n = gpu_index(handle);
  return n < 0 ? INVALID_ARGUMENT : text(to, size, fake.gpu[n].uuid);
}

int nvmlDeviceGetIndex(const void *handle, unsigned *to) {
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *to = (unsigned)n;
  return SUCCESS;
}

int nvmlDeviceGetMinorNumber(const void *handle, unsigned *to) { return nvmlDeviceGetIndex(handle, to); }

int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor) {
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *major = fake.gpu[n].cc >> 8;
  *minor = fake.gpu[n].cc & 255;
  return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(const void *handle, struct pci *to) {
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
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *current = *pending = fake.gpu[n].mig[0] != 0;
  return SUCCESS;
}

