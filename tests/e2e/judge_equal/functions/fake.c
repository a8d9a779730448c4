/* A library that is a driver and a cuDNN. `FAKE` has the results of its functions, one digit each: cuDriverGetVersion, cuInit,
 * cuDeviceGetCount, cuDeviceGet of the second GPU. `H` instead of the first: the library never loads; `S`: it loads slowly. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int result(int k) { return getenv("FAKE")[k] - '0'; }

__attribute__((constructor)) static void hang(void) {
  while (*getenv("FAKE") == 'H') sleep(1);
  if (*getenv("FAKE") == 'S') usleep(100000);
}

int cuDriverGetVersion(int *n) {
  *n = 12040;
  return result(0);
}

int cuInit(unsigned flags) { return result(1) + (int)flags; }

int cuDeviceGetCount(int *n) {
  *n = 2;
  return result(2);
}

int cuDeviceGet(int *device, int k) {
  *device = k + 7;
  return k ? result(3) : 0;
}

int cuDeviceGetAttribute(int *to, int what, int device) {
  if (what != 75 && what != 76) return 1;
  *to = what == 75 ? device + 1 : device == 8 ? 6 : 0;
  return 0;
}

/* Returns whether this process is prepared for foreign code. */
static int is_prepared(void) {
  struct sigaction action;
  struct stat null, is;
  sigset_t mask, empty;
  int k, ends_with = 0;
  prctl(PR_GET_PDEATHSIG, &ends_with);
  if (ends_with != SIGKILL || prctl(PR_GET_DUMPABLE)) return 0;
  sigemptyset(&empty);
  sigprocmask(SIG_SETMASK, 0, &mask);
  if (memcmp(&mask, &empty, 8)) return 0;
  for (k = 1; k < 32; k++)
    if (k != SIGKILL && k != SIGSTOP && (sigaction(k, 0, &action) || action.sa_handler != SIG_DFL)) return 0;
  stat("/dev/null", &null);
  for (k = 0; k < 3; k++)
    if (fstat(k, &is) || is.st_rdev != null.st_rdev || (fcntl(k, F_GETFL) & O_ACCMODE) != O_RDWR) return 0;
  return 1;
}

size_t cudnnGetVersion(void) { return is_prepared() ? 91501 : 1; }
