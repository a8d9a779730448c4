/* Reads the configuration of the fake libraries from the file `fake-driver` in their directory. Its lines:
 *
 *   CUDA RESULT MODE CC...      numbers: the version of cuDriverGetVersion; the result of cuInit, or 0 (then cuInit returns 0
 *                               or 100, depending on the GPUs); the mode (0 works, 1 cuInit crashes, 2 cuInit hangs,
 *                               3 cuInit writes to stdout and stderr, 4 crashes while it is loaded, 5 hangs while it is
 *                               loaded, 6 cuInit exits); the compute capability of each GPU as major * 256 + minor
 *   release 535.261.03          driver version that NVML returns
 *   nvml 18                     result of nvmlInit
 *   order 1 0                   order of the GPUs (fastest first) unless CUDA_DEVICE_ORDER is PCI_BUS_ID
 *   log /some/file              each cuInit appends a line to this file
 *   fail cuInit 802             each function whose name begins with `cuInit` returns 802
 *   device 0 8370               PCI device id of the first GPU
 *   memory 0 16384              memory of the first GPU in MiB
 *   mps                         each process is a client of MPS, which has each GPU for itself
 *   state 0 lost                state in which no program can use the first GPU: GpuState of the host file
 *   gpu 0 UUID SLOT MIG NAME    properties of the first GPU: GPU-..., 0000:01:00.0, MIG-... or -, NVIDIA H100 PCIe
 *
 * Only the first line is required. */
#ifndef FAKE_H
#define FAKE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKS, CRASHES, HANGS, PRINTS, CRASHES_IN_LOAD, HANGS_IN_LOAD, EXITS };
enum { MAX_GPUS = 64, MAX_FAILURES = 16 };

static struct {
  int cuda, result, mode, nvml, gpus, ordered, failures, mps;
  int order[MAX_GPUS];
  char release[64], log[512];
  struct {
    char call[64];
    int status;
  } failure[MAX_FAILURES];
  struct {
    int cc, device, memory;
    char uuid[64], slot[32], mig[64], name[96], state[32];
  } gpu[MAX_GPUS];
} fake;

static FILE *fake_open(const char *library) {
  char path[8192];
  const char *slash = strrchr(library, '/');
  if (!slash) return 0;
  snprintf(path, sizeof path, "%.*s/fake-driver", (int)(slash - library), library);
  return fopen(path, "r");
}

/* Reads the file next to a library, or next to the target of the library if that is a symbolic link. */
static void fake_read_of(const char *library) {
  char line[512], resolved[4096], key[16];
  FILE *file = fake_open(library);
  int n, used;
  if (!file && realpath(library, resolved)) file = fake_open(resolved);
  if (!file || fscanf(file, "%d %d %d", &fake.cuda, &fake.result, &fake.mode) != 3) abort();
  while (fake.gpus < MAX_GPUS && fscanf(file, "%d", &n) == 1) {
    snprintf(fake.gpu[fake.gpus].uuid, sizeof fake.gpu[0].uuid, "GPU-%08x-0000-4000-8000-%012x", fake.gpus + 1, fake.gpus + 1);
    snprintf(fake.gpu[fake.gpus].slot, sizeof fake.gpu[0].slot, "0000:%02x:00.0", fake.gpus + 1);
    strcpy(fake.gpu[fake.gpus].name, "NVIDIA GPU");
    fake.gpu[fake.gpus++].cc = n;
  }
  while (fgets(line, sizeof line, file)) {
    const char *at = line;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%15s%n", key, &used) != 1) continue;
    at += used;
    if (!strcmp(key, "release")) sscanf(at, "%63s", fake.release);
    if (!strcmp(key, "log")) sscanf(at, " %511[^\n]", fake.log);
    if (!strcmp(key, "fail") && fake.failures < MAX_FAILURES &&
        sscanf(at, "%63s %d", fake.failure[fake.failures].call, &fake.failure[fake.failures].status) == 2)
      fake.failures++;
    if (sscanf(at, "%d%n", &n, &used) == 1 && n >= 0 && n < fake.gpus) {
      if (!strcmp(key, "memory")) fake.gpu[n].memory = atoi(at + used);
      if (!strcmp(key, "device")) fake.gpu[n].device = atoi(at + used);
      if (!strcmp(key, "state")) sscanf(at + used, "%31s", fake.gpu[n].state);
    }
    if (!strcmp(key, "mps")) fake.mps = 1;
    if (!strcmp(key, "nvml")) fake.nvml = atoi(at);
    if (!strcmp(key, "order"))
      for (; fake.ordered < MAX_GPUS && sscanf(at, "%d%n", &n, &used) == 1; at += used)
        if (n >= 0 && n < fake.gpus) fake.order[fake.ordered++] = n;
    if (!strcmp(key, "gpu") && sscanf(at, "%d%n", &n, &used) == 1 && n >= 0 && n < fake.gpus &&
        sscanf(at + used, "%63s %31s %63s %95[^\n]", fake.gpu[n].uuid, fake.gpu[n].slot, fake.gpu[n].mig, fake.gpu[n].name) > 2 &&
        !strcmp(fake.gpu[n].mig, "-"))
      fake.gpu[n].mig[0] = 0;
  }
  fclose(file);
}

/* Reads the file once. */
static inline void fake_read(void) {
  Dl_info self;
  if (fake.cuda) return;
  if (!dladdr(&fake, &self)) abort();
  fake_read_of(self.dli_fname);
}

/* Returns the status with which a call fails, or 0. */
__attribute__((noinline, unused)) static int fake_status(const char *call) {
  fake_read();
  for (int k = 0; k < fake.failures; k++)
    if (!strncmp(call, fake.failure[k].call, strlen(fake.failure[k].call))) return fake.failure[k].status;
  return 0;
}

/* Returns early from a function of the library if it is to fail. */
#define MAY_FAIL \
  do { \
    int fake_result = fake_status(__func__); \
    if (fake_result) return fake_result; \
  } while (0)

static inline int is_state(int gpu, const char *state) { return !strcmp(fake.gpu[gpu].state, state); }

/* The sensors of a GPU that does no work. */
enum { IDLE_CELSIUS = 30, IDLE_WATTS = 25, IDLE_STATE = 8 };

/* Returns the mode as both libraries number it: 0 default, 2 prohibited, 3 exclusive process. */
static inline int compute_mode(int gpu) { return is_state(gpu, "compute-prohibited") ? 2 : fake.mps ? 3 : 0; }
#endif
