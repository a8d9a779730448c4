/* A fake libnvidia-ml for any driver version and any GPUs; fake.h describes its configuration. It returns every GPU in the
 * order of the PCI bus and ignores CUDA_VISIBLE_DEVICES. */
#include "fake.h"

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

#define MIG_PROFILE "MIG 1g.10gb"

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

/* A handle is the index of a GPU plus 1, or of the MIG instance in it plus MIG. */
enum { MIG = 1000 };

/* Returns the index of the GPU of a handle, or of the GPU in which the instance is, or -1. */
static int gpu_index(const void *handle) {
  long n = (long)handle >= MIG ? (long)handle - MIG : (long)handle - 1;
  return users && n >= 0 && n < fake.gpus ? (int)n : -1;
}

static int is_instance(const void *handle) { return (long)handle >= MIG; }

static int set_handle(int n, void **to) {
  if (n < 0) return NOT_FOUND;
  *to = (void *)(long)(n + 1);
  return is_state(n, "lost") ? GPU_IS_LOST : SUCCESS;
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
  static const char *const texts[] = {
      "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions", "Already Initialized", "Not Found",
      "Insufficient Size", "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
      "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
      "GPU requires restart", "The operating system has blocked the request.", "Driver/library version mismatch", "In use by another client",
      "Insufficient Memory", "No data", "The requested vgpu operation is not available on target device, because ECC is enabled",
      "Insufficient Resources", "Frequency is not supported", "Argument version mismatch", "The operation is deprecated", "Not Ready",
      "GPU Not Found", "Invalid State"};
  return result >= 0 && result < (int)(sizeof texts / sizeof *texts) ? texts[result] : "Unknown Error";
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
  return n < (unsigned)fake.gpus ? set_handle((int)n, to) : INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **to) {
  MAY_FAIL;
  if (!users) return UNINITIALIZED;
  for (int n = 0; n < fake.gpus; n++) {
    if (!strcmp(uuid, fake.gpu[n].uuid)) return set_handle(n, to);
    if (fake.gpu[n].mig[0] && !strcmp(uuid, fake.gpu[n].mig)) return *to = (void *)(long)(n + MIG), SUCCESS;
  }
  return NOT_FOUND;
}

/* Accepts a domain of four or eight digits, or none. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *text, void **to) {
  MAY_FAIL;
  unsigned domain = 0, bus, slot, own[3];
  if (!users) return UNINITIALIZED;
  if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 && (domain = 0, sscanf(text, "%x:%x", &bus, &slot)) != 2) return INVALID_ARGUMENT;
  for (int n = 0; n < fake.gpus; n++) {
    sscanf(fake.gpu[n].slot, "%x:%x:%x", own, own + 1, own + 2);
    if (own[0] == domain && own[1] == bus && own[2] == slot) return set_handle(n, to);
  }
  return NOT_FOUND;
}

int nvmlDeviceGetName(const void *handle, char *to, unsigned size) {
  MAY_FAIL;
  int n = gpu_index(handle);
  char name[128];
  if (n < 0) return INVALID_ARGUMENT;
  snprintf(name, sizeof name, "%s%s", fake.gpu[n].name, is_instance(handle) ? " " MIG_PROFILE : "");
  return text(to, size, name);
}

int nvmlDeviceGetUUID(const void *handle, char *to, unsigned size) {
  MAY_FAIL;
  int n = gpu_index(handle);
  return n < 0 ? INVALID_ARGUMENT : text(to, size, is_instance(handle) ? fake.gpu[n].mig : fake.gpu[n].uuid);
}

int nvmlDeviceGetIndex(const void *handle, unsigned *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *to = is_instance(handle) ? 0 : (unsigned)n;
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
  to->device_id = fake.gpu[n].device ? (unsigned)fake.gpu[n].device << 16 | 0x10de : 0;
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
  *to = compute_mode(n);
  return SUCCESS;
}

int nvmlSystemGetNVMLVersion(char *to, unsigned size) { return text(to, size, fake.release); }

/* Number of the generation: Kepler 2 to Blackwell 10. */
int nvmlDeviceGetArchitecture(const void *handle, unsigned *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  static const struct {
    int cc, number;
  } generations[] = {{0xa00, 10}, {0x900, 9}, {0x809, 8}, {0x800, 7}, {0x705, 6}, {0x700, 5}, {0x600, 4}, {0x500, 3}, {0x300, 2}};
  if (n < 0) return INVALID_ARGUMENT;
  for (size_t k = 0; k < sizeof generations / sizeof *generations; k++)
    if (fake.gpu[n].cc >= generations[k].cc) return *to = (unsigned)generations[k].number, SUCCESS;
  return NOT_SUPPORTED;
}

int nvmlDeviceIsMigDeviceHandle(const void *handle, unsigned *to) {
  MAY_FAIL;
  *to = is_instance(handle);
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(const void *handle, unsigned *to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  *to = fake.gpu[n].cc < 8 * 256 ? 0 : 7;
  return SUCCESS;
}

/* Each GPU in MIG mode has one instance. */
int nvmlDeviceGetMigDeviceHandleByIndex(const void *handle, unsigned instance, void **to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  if (instance || !fake.gpu[n].mig[0]) return NOT_FOUND;
  *to = (void *)(long)(n + MIG);
  return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(const void *handle, void **to) {
  MAY_FAIL;
  int n = gpu_index(handle);
  return n < 0 || !is_instance(handle) ? INVALID_ARGUMENT : set_handle(n, to);
}

int nvmlDeviceGetGpuInstanceId(const void *handle, unsigned *to) {
  MAY_FAIL;
  *to = 1;
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : is_instance(handle) ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetComputeInstanceId(const void *handle, unsigned *to) {
  MAY_FAIL;
  *to = 0;
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : is_instance(handle) ? SUCCESS : NOT_SUPPORTED;
}

/* No other process uses a simulated GPU. */
#define NO_PROCESSES(name) \
  int name(const void *handle, unsigned *count) { \
    MAY_FAIL; \
    *count = 0; \
    return gpu_index(handle) < 0 ? INVALID_ARGUMENT : SUCCESS; \
  }
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* A simulated GPU does no work. */
int nvmlDeviceGetUtilizationRates(const void *handle, unsigned to[2]) {
  MAY_FAIL;
  to[0] = to[1] = 0;
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : SUCCESS;
}

/* nvmlMemory_t: total, free, used. */
int nvmlDeviceGetMemoryInfo(const void *handle, unsigned long long to[3]) {
  MAY_FAIL;
  int n = gpu_index(handle);
  if (n < 0) return INVALID_ARGUMENT;
  to[0] = to[1] = (unsigned long long)fake.gpu[n].memory << 20;
  to[2] = 0;
  return to[0] ? SUCCESS : NOT_SUPPORTED;
}

/* nvmlMemory_v2_t: version, total, reserved, free, used. */
int nvmlDeviceGetMemoryInfo_v2(const void *handle, unsigned long long to[5]) {
  MAY_FAIL;
  int status = nvmlDeviceGetMemoryInfo(handle, to + 1);
  to[3] = to[1];
  to[2] = to[4] = 0;
  return status;
}

int nvmlDeviceGetTemperature(const void *handle, int sensor, unsigned *to) {
  MAY_FAIL;
  if (gpu_index(handle) < 0 || sensor) return INVALID_ARGUMENT;
  *to = IDLE_CELSIUS;
  return SUCCESS;
}

int nvmlDeviceGetPowerUsage(const void *handle, unsigned *to) {
  MAY_FAIL;
  *to = IDLE_WATTS * 1000;
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlDeviceGetPerformanceState(const void *handle, int *to) {
  MAY_FAIL;
  *to = IDLE_STATE;
  return gpu_index(handle) < 0 ? INVALID_ARGUMENT : SUCCESS;
}

int nvmlSystemGetProcessName(unsigned process, char *to, unsigned size) {
  MAY_FAIL;
  char path[64], name[4096] = "";
  snprintf(path, sizeof path, "/proc/%u/cmdline", process);
  FILE *file = users ? fopen(path, "r") : 0;
  if (!users) return UNINITIALIZED;
  if (!file) return NOT_FOUND;
  name[fread(name, 1, sizeof name - 1, file)] = 0;
  fclose(file);
  snprintf(to, size, "%s", name);
  return SUCCESS;
}

/* Units (S-class systems), and GPUs that the driver excludes. */
int nvmlUnitGetCount(unsigned *to) {
  MAY_FAIL;
  *to = 0;
  return users ? SUCCESS : UNINITIALIZED;
}

int nvmlGetExcludedDeviceCount(unsigned *to) {
  MAY_FAIL;
  *to = 0;
  return SUCCESS;
}

/* The first versions of functions. */
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlDeviceGetCount(unsigned *to) { return nvmlDeviceGetCount_v2(to); }
int nvmlDeviceGetHandleByIndex(unsigned n, void **to) { return nvmlDeviceGetHandleByIndex_v2(n, to); }
int nvmlDeviceGetHandleByPciBusId(const char *text, void **to) { return nvmlDeviceGetHandleByPciBusId_v2(text, to); }
