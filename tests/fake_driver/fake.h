/* What the fake libraries are told: the file `fake-driver` in their own folder. Line by line:
 *
 *   CUDA ANSWER MANNER CC...    numbers: what cuDriverGetVersion answers; what cuInit answers, GPUs or not; how it behaves
 *                               (0 it works, 1 cuInit crashes, 2 cuInit hangs, 3 it says something on both outputs, 4 it
 *                               crashes while it is loaded, 5 it hangs while it is loaded, 6 cuInit ends the process); and
 *                               the compute capability of each GPU, major * 256 + minor
 *   release 535.261.03          of the driver, as NVML tells it
 *   nvml 18                     what nvmlInit answers
 *   order 1 0                   the GPUs fastest first, where CUDA_DEVICE_ORDER does not ask for PCI_BUS_ID
 *   log /some/file              gets a line at each cuInit
 *   gpu 0 UUID SLOT MIG NAME    of the first GPU: GPU-..., 0000:01:00.0, MIG-... or -, NVIDIA H100 PCIe
 *
 * All but the numbers may be missing. */
#ifndef FAKE_H
#define FAKE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKS, CRASHES, HANGS, TALKS, CRASHES_EARLY, HANGS_EARLY, ENDS };
enum { MOST = 64 };

static struct {
  int cuda, answer, manner, nvml, gpus, ordered;
  int order[MOST];
  char release[64], log[512];
  struct {
    int cc;
    char uuid[64], slot[32], mig[64], name[96];
  } gpu[MOST];
} fake;

static FILE *fake_open(const char *library) {
  char path[8192];
  const char *slash = strrchr(library, '/');
  if (!slash) return 0;
  snprintf(path, sizeof path, "%.*s/fake-driver", (int)(slash - library), library);
  return fopen(path, "r");
}

/* Once. The file lies beside the library, or beside what the library's name is a link to. */
static void fake_read(void) {
  char line[512], resolved[4096], word[16];
  Dl_info self;
  FILE *file;
  int n, used;
  if (fake.cuda) return;
  if (!dladdr(&fake, &self)) abort();
  file = fake_open(self.dli_fname);
  if (!file && realpath(self.dli_fname, resolved)) file = fake_open(resolved);
  if (!file || fscanf(file, "%d %d %d", &fake.cuda, &fake.answer, &fake.manner) != 3) abort();
  while (fake.gpus < MOST && fscanf(file, "%d", &n) == 1) {
    snprintf(fake.gpu[fake.gpus].uuid, sizeof fake.gpu[0].uuid, "GPU-%08x-0000-4000-8000-%012x", fake.gpus + 1, fake.gpus + 1);
    snprintf(fake.gpu[fake.gpus].slot, sizeof fake.gpu[0].slot, "0000:%02x:00.0", fake.gpus + 1);
    strcpy(fake.gpu[fake.gpus].name, "NVIDIA GPU");
    fake.gpu[fake.gpus++].cc = n;
  }
  while (fgets(line, sizeof line, file)) {
    const char *at = line;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%15s%n", word, &used) != 1) continue;
    at += used;
    if (!strcmp(word, "release")) sscanf(at, "%63s", fake.release);
    if (!strcmp(word, "log")) sscanf(at, " %511[^\n]", fake.log);
    if (!strcmp(word, "nvml")) fake.nvml = atoi(at);
    if (!strcmp(word, "order"))
      for (; fake.ordered < MOST && sscanf(at, "%d%n", &n, &used) == 1; at += used)
        if (n >= 0 && n < fake.gpus) fake.order[fake.ordered++] = n;
    if (!strcmp(word, "gpu") && sscanf(at, "%d%n", &n, &used) == 1 && n >= 0 && n < fake.gpus &&
        sscanf(at + used, "%63s %31s %63s %95[^\n]", fake.gpu[n].uuid, fake.gpu[n].slot, fake.gpu[n].mig, fake.gpu[n].name) > 2 &&
        !strcmp(fake.gpu[n].mig, "-"))
      fake.gpu[n].mig[0] = 0;
  }
  fclose(file);
}
#endif
